"""Conversions, Fixpipe and tiles interleaved over threads, event loops and both: always the serial result."""

from __future__ import annotations

import asyncio
import contextvars
import random
import subprocess
import sys
import textwrap
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue as bt
from bittrue import aie, ascend
from bittrue.convert import convert
from bittrue.files import load, save

#: A piece of work: it gives up control at every `yield`, where another may run, and returns what can be compared.
Work = Iterator[None]
Job = Callable[[list[bytes]], Work]

X = np.random.default_rng(0).standard_normal(1 << 12).astype(np.float32) * np.float32(50)
ACC = np.random.default_rng(1).integers(-(2**20), 2**20, (16, 16)).astype(np.int32)


def encoding(name: str, rounding: str, threads: int) -> Job:
    def run(out: list[bytes]) -> Work:
        codes = bt.encode(X, name, rounding, threads=threads)
        yield
        out.append(codes.tobytes() + bt.decode(codes, name, threads=threads).tobytes())

    return run


def blocks(name: str) -> Job:
    def run(out: list[bytes]) -> Work:
        array = bt.array(X, name)
        yield
        out.append(array.tobytes() + np.asarray(array).tobytes())

    return run


def fixpipe(mode: str, word: int | None, relu: bool, product: str) -> Job:
    def run(out: list[bytes]) -> Work:
        acc = ACC if mode in ("REQ8", "DEQF16") else ACC.astype(np.float32)
        first = ascend.fixpipe(acc, mode, word, relu, product)
        yield
        out.append(first.tobytes() + ascend.fixpipe(acc, mode, word, relu, product, threads=2).tobytes())

    return run


def cast(mode: str, saturation: bool) -> Job:
    def run(out: list[bytes]) -> Work:
        yield
        out.append(ascend.cast(X, "hifloat8_t", mode=mode, product="Ascend 950PR", saturation=saturation).tobytes())

    return run


def _use_tile() -> bytes:
    """Return what the registers of the current tile make of the same numbers."""
    state = aie.current_tile()
    acc = aie.accum("acc32", 16, ACC[0], arch=state.arch)
    narrow = acc.to_vector("int16", 7)
    return np.asarray(narrow).tobytes() + str(state).encode()


def tile(arch: str, rounding: str, saturation: str, then: str) -> Job:
    """Registers are written, others work, they are used; written again, others work, they are used."""

    def run(out: list[bytes]) -> Work:
        with aie.tile(arch=arch, rounding=rounding, saturation=saturation):
            yield
            found = _use_tile()
            aie.set_rounding(then)
            yield
            found += _use_tile()
            with aie.tile(arch=arch):
                yield
                aie.set_saturation("saturate")
                yield
                found += _use_tile()
            yield
            found += _use_tile()
        yield
        out.append(found + _use_tile())

    return run


JOBS: list[Job] = [
    *(encoding(name, mode, n) for name, mode, n in (
        ("hifloat8", "nearest_away", 1), ("float8_e4m3fn", "nearest_even", 3), ("bfloat16", "stochastic", 4),
        ("int8", "floor", 2), ("float4_e2m1fn", "odd", 1), ("float16", "nearest_even", 2),
    )),
    *map(blocks, ("mx9", "mx6", "nvfp4")),
    fixpipe("REQ8", 3 << 37 | 1 << 46 | 0x3B000000, False, "a2"),
    fixpipe("DEQF16", 0x3F000000, True, "950"),
    fixpipe("F322BF16", None, True, "a2"),
    cast("CAST_RINT", True),
    cast("CAST_HYBRID", False),
    tile("aie-ml", "conv_even", "saturate", "floor"),
    tile("aie-ml", "symmetric_inf", "none", "ceil"),
    tile("xdna2", "floor", "symmetric", "conv_even"),
    tile("aie", "positive_inf", "saturate", "symmetric_zero"),
]  # fmt: skip


def serially(job: Job) -> bytes:
    """Run a job alone, in a context at reset."""

    def run() -> bytes:
        out: list[bytes] = []
        for _ in job(out):
            pass
        return out[0]

    return contextvars.Context().run(run)


@pytest.fixture(scope="module")
def expected() -> list[bytes]:
    found = [serially(job) for job in JOBS]
    assert len(set(found)) == len(found)  # no job can be taken for another
    return found


@pytest.fixture(autouse=True)
def hurried() -> Iterator[None]:
    """Let threads take turns a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run ``work(n)`` in so many threads that start together; raise what one of them raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(count)

    def run(n: int) -> None:
        try:
            start.wait(60)
            work(n)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def shuffled(seed: int, times: int) -> list[int]:
    order = list(range(len(JOBS))) * times
    random.Random(seed).shuffle(order)
    return order


def test_threads(expected: list[bytes]) -> None:
    def work(n: int) -> None:
        for number in shuffled(n, 20):
            out: list[bytes] = []
            for _ in JOBS[number](out):
                pass
            assert out[0] == expected[number], number

    in_threads(8, work)


async def _task(number: int, expected: list[bytes]) -> None:
    out: list[bytes] = []
    for _ in JOBS[number](out):
        await asyncio.sleep(0)  # all other tasks come first
    assert out[0] == expected[number], number


async def _together(seed: int, expected: list[bytes]) -> None:
    await asyncio.gather(*(_task(number, expected) for number in shuffled(seed, 20)))


def test_tasks_of_one_event_loop(expected: list[bytes]) -> None:
    def work(_: int) -> None:
        asyncio.run(_together(0, expected))
        assert str(aie.current_tile()) == str(aie.tile().state)  # nothing leaked out of them

    in_threads(1, work)  # browser tests leave a loop running in the main thread


def test_event_loops_in_threads(expected: list[bytes]) -> None:
    in_threads(4, lambda n: asyncio.run(_together(n, expected)))


def test_a_thread_that_a_task_waits_for_sees_the_tasks_tile() -> None:
    async def task(arch: str, rounding: str, other: str) -> None:
        with aie.tile(arch=arch, rounding=rounding):
            alone = _use_tile()
            await asyncio.sleep(0)

            def elsewhere() -> bytes:
                found = _use_tile()
                aie.set_rounding(other)  # stays there
                return found

            assert await asyncio.to_thread(elsewhere) == alone
            assert _use_tile() == alone

    async def both() -> None:
        rows = [("aie-ml", "conv_even", "floor"), ("xdna2", "ceil", "conv_odd"), ("aie", "symmetric_inf", "ceil")] * 8
        wait: list[Awaitable[None]] = [task(*row) for row in rows]
        await asyncio.gather(*wait)

    in_threads(1, lambda _: asyncio.run(both()))


def test_a_new_thread_starts_from_reset() -> None:
    with aie.tile(arch="aie-ml", rounding="conv_even", saturation="saturate"):
        found: list[str] = []
        in_threads(3, lambda n: found.append(str(aie.current_tile())))
    assert found == [contextvars.Context().run(lambda: str(aie.current_tile()))] * 3


def test_generators_that_leave_tiles_out_of_order() -> None:
    """Generators share the context of their caller; registers must not move from one tile to another."""
    first, second = aie.tile(arch="aie-ml", rounding="ceil"), aie.tile(arch="xdna2", rounding="conv_even")

    def work(core: aie.tile) -> Iterator[None]:
        with core:
            yield

    def run() -> None:
        one, other = work(first), work(second)
        next(one), next(other)
        with pytest.raises(RuntimeError, match="is left while one that was entered later is at work"):
            next(one)
        next(other, None)

    contextvars.Context().run(run)
    assert [str(core.state).split(",")[0] for core in (first, second)] == [
        "aie-ml: rounding=ceil (1)", "xdna2: rounding=conv_even (12)"
    ]  # fmt: skip


_FIRST = """
    import hashlib, threading
    import numpy as np
    import bittrue as bt
    x = np.linspace(-300, 300, 1001, dtype=np.float32)
    start, found = threading.Barrier(8), [[] for _ in range(8)]

    def work(n):
        start.wait()
        for name in ("hifloat8", "float8_e4m3fn", "mx9", "bfloat16"):
            codes = bt.encode(x[:992], name)
            found[n].append(hashlib.sha256(codes.tobytes() + bt.decode(codes, name).tobytes()).hexdigest())
        with bt.aie.tile(arch="aie-ml", rounding="conv_even"):
            found[n].append(str(bt.aie.accum("acc32", 16, range(16)).to_vector("int16", 1)))
        found[n].append(str(bt.ascend.cast(x[:9], "hifloat8_t", mode="CAST_RINT")))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    start = threading.Barrier(1)
    found.append([])
    work(8)
    print([other == found[8] and len(other) == 6 for other in found])
"""


def test_eight_threads_are_the_first_users() -> None:
    """Modules, tables, plans and kernels are loaded and made by whoever comes first; here all do."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_FIRST)], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.stdout, done.stderr) == (f"{[True] * 9}\n", "")


def test_files_and_work_at_once(tmp_path: Path, expected: list[bytes]) -> None:
    """Conversions of files, which bring threads of their own, beside everything else."""
    save(tmp_path / "x.npz", {"x": X, "y": X[::-1].copy()})
    wanted = {name: bt.encode(x, "hifloat8").tobytes() for name, x in (("x", X), ("y", X[::-1]))}

    def work(n: int) -> None:
        if n % 2:
            asyncio.run(_together(n, expected))
            return
        for k in range(6):
            target = tmp_path / f"{n}-{k}.safetensors"
            convert(tmp_path / "x.npz", target, "hifloat8", threads=2)
            found: dict[str, Any] = load(target)
            assert {name: array.codes.tobytes() for name, array in found.items()} == wanted

    in_threads(6, work)
