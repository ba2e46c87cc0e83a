"""Full and read-only disks, files that shrink while they are read, signals, rivals for one output, caches in any state.

Nothing is ever lost or half written, and the message says what happened. kill -9 in mid-conversion of one file is in
tests/test_interruption.py, failing writers are in tests/test_files.py and tests/test_convert.py.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue as bt
from bittrue.cli import main
from bittrue.convert import convert
from bittrue.files import ExistingFileError, FileError, load, open_tensors, save

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts, /proc, fork and capabilities are Linux's")

PACKAGE = Path(bt.__file__).parent


def weights(rows: int = 256) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, 512)).astype(np.float32)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def sharded(folder: Path, rows: int = 64) -> Path:
    folder.mkdir()
    shards = {f"layers.{n}": f"model-{n}-of-3.safetensors" for n in range(3)}
    for name, shard in shards.items():
        save(folder / shard, {name: weights(rows)})
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": shards}))
    return index


def python(
    code: str, *arguments: object, prepare: Callable[[], None] | None = None, **environment: str | None
) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own; None takes a variable out of its environment."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={n: v for n, v in {**os.environ, **environment}.items() if v is not None},
        preexec_fn=prepare,
    )


def obey_permissions() -> None:
    """Take from root the right to write everywhere; others do not have it."""
    prctl = ctypes.CDLL(None).prctl
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP: for the program that is executed next


# --- disks ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with 64 KB left."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(disk)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("may not mount a small file system here")
    try:
        (disk / "ballast").write_bytes(bytes(64 << 10))
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


FULL = {
    "convert": ["convert", "{folder}/a.safetensors", "--to", "float8_e4m3fn", "-o", "{disk}/o.safetensors"],
    "replace": ["convert", "{folder}/a.safetensors", "--to", "float8_e4m3fn", "-o", "{disk}/ballast.npz", "--force"],
    "blocks": ["convert", "{folder}/a.safetensors", "--to", "mx9", "-o", "{disk}/o.npz"],
    "shards": ["convert", "{folder}/in/model.safetensors.index.json", "--to", "int8", "-o", "{disk}/out"],
    "study": ["study", "{folder}/b.safetensors", "--formats", "int8", "--html", "{disk}/o.html"],
    "journal": ["study", "{folder}/b.safetensors", "--formats", "int8", "--resume", "{disk}/more"],
    "compare": ["compare", "{folder}/b.safetensors", "{folder}/c.safetensors", "--html", "{disk}/o.html"],
}


@pytest.mark.parametrize("case", FULL)
def test_a_full_disk(
    tmp_path: Path, small_disk: Path, case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if case == "shards":
        sharded(tmp_path / "in")
    elif case in ("study", "compare", "journal"):  # pages and lines of some KB
        shutil.copy(small_disk / "ballast", small_disk / "more")  # which leaves no room at all
        if case == "journal":
            os.truncate(small_disk / "more", 0)
            (small_disk / "rest").write_bytes(bytes(60 << 10))  # and here one for a few tensors
        save(tmp_path / "b.safetensors", {f"w{n}": weights(1) for n in range(20)})
        save(tmp_path / "c.safetensors", {f"w{n}": weights(1) + 1 for n in range(20)})
    else:
        save(tmp_path / "a.safetensors", {"w": weights()})
        (small_disk / "ballast").rename(small_disk / "ballast.npz")
    before = contents(small_disk)
    words = [word.format(folder=tmp_path, disk=small_disk) for word in FULL[case]]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "no space left" in said.lower() and str(small_disk) in said
    after = contents(small_disk)
    if case == "journal":
        assert after.pop("more").count(b"\n") > 1  # what was done is kept
        del before["more"]
    assert after == before


def test_a_damaged_journal_is_measured_again_from_there(tmp_path: Path) -> None:
    model, journal = {f"w{n}": weights(1) * (n + 1) for n in range(6)}, tmp_path / "journal"

    def interrupt(name: str, done: int, total: int) -> None:
        if name == "w4":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bt.study(model, ["int8", "mx6"], progress=interrupt, resume=journal)
    expected, sound = bt.study(model, ["int8", "mx6"]).to_dict(), journal.read_bytes()
    lines = sound.splitlines(keepends=True)
    assert len(lines) >= 4
    for bad in (b"", b"{}\n", b"[1]\n", b'{"tensor": 1, "costs": 2}\n', b"\xff\n", lines[2][:-9]):
        journal.write_bytes(b"".join([*lines[:2], bad, *lines[3:]]))
        assert bt.study(model, ["int8", "mx6"], resume=journal).to_dict() == expected
        assert not journal.exists()


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    save(tmp_path / "a.safetensors", {"w": weights(8)})
    sharded(tmp_path / "in", 8)
    closed, secret = tmp_path / "closed", tmp_path / "secret.npy"
    save(secret, weights(1))
    secret.chmod(0)
    closed.mkdir()
    (closed / "o.html").write_bytes(b"precious")
    closed.chmod(0o500)
    code = """
        import contextlib, io, os, sys
        from bittrue.cli import main
        folder, commands = sys.argv[1], sys.argv[2:]
        os.environ["XDG_CACHE_HOME"] = folder + "/cache"
        for words in commands:
            error = io.StringIO()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(error):
                code = main(words.replace("@", folder).split())
            print(code, error.getvalue(), end="")
        """
    commands = {
        "convert @/a.safetensors --to int8 -o @/closed/o.npz": "closed/o.npz: permission denied",
        "convert @/in/model.safetensors.index.json --to int8 -o @/closed/new": "closed/new: cannot be made a folder",
        "study @/gone.npy --html @/closed/o.html --force": "closed/o.html: permission denied",  # before the work
        "compare @/a.safetensors @/a.safetensors --html @/closed/p.html": "closed/p.html: permission denied",
        "convert @/secret.npy --to int8 -o @/o.npy": "secret.npy: permission denied",
    }
    done = python(code, tmp_path, *commands, prepare=obey_permissions)
    closed.chmod(0o700)
    lines = done.stdout.splitlines()
    assert len(lines) == len(commands) and not done.stderr, done.stdout + done.stderr
    for line, message in zip(lines, commands.values()):
        assert line.startswith("2 error: ") and message in line
    assert contents(closed) == {"o.html": b"precious"} and not (tmp_path / "o.npy").exists()


# --- files that change while they are read ----------------------------------------------------------------------------

CONTAINERS = (".npy", ".npz", ".safetensors", ".bin")


def how(container: str) -> dict[str, Any]:
    return {"format": "float32", "shape": (256, 512)} if container == ".bin" else {}


def write(path: Path, array: np.ndarray) -> None:
    save(path, array if path.suffix in (".npy", ".bin") else {path.stem: array})


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_file_cut_short_while_it_is_read(tmp_path: Path, container: str) -> None:
    """A mapped file would end the process by SIGBUS here; so none is mapped."""
    path = tmp_path / f"x{container}"
    write(path, weights())
    with open_tensors(path, **how(container)) as reader:
        pieces = reader.chunks("x", 1 << 12)
        assert (next(pieces).view(np.float32) == weights().reshape(-1)[: 1 << 12]).all()
        assert str(path) not in Path("/proc/self/maps").read_text()
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(FileError, match=rf"x\{container}, tensor 'x': "):
            for _ in pieces:
                pass
    with pytest.raises(FileError, match=rf"x\{container}"):
        load(path, **how(container))


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_source_cut_short_in_mid_conversion(tmp_path: Path, container: str) -> None:
    path, out = tmp_path / f"x{container}", tmp_path / "out"
    out.mkdir()
    write(path, weights(1 << 13))
    given = {"source_format": "float32", "source_shape": (1 << 13, 512)} if container == ".bin" else {}

    def cut(name: str, done: int, total: int) -> None:
        os.truncate(path, 1 << 20)

    with pytest.raises(FileError, match=rf"x\{container}, tensor 'x': "):
        convert(path, out / "o.npy", "int8", progress=cut, **given)
    assert not contents(out)


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_source_that_is_replaced_in_mid_conversion(tmp_path: Path, container: str) -> None:
    """What was opened is what is converted: all of the old file."""
    path = tmp_path / f"x{container}"
    write(path, weights(1 << 13))
    given = {"source_format": "float32", "source_shape": (1 << 13, 512)} if container == ".bin" else {}

    def replace(name: str, done: int, total: int) -> None:
        (tmp_path / "other").write_bytes(b"other")
        os.replace(tmp_path / "other", path)

    convert(path, tmp_path / "o.npy", "float8_e4m3fn", progress=replace, **given)
    assert (load(tmp_path / "o.npy").codes == bt.encode(weights(1 << 13), "float8_e4m3fn")).all()


@pytest.mark.parametrize("words", [["encode", "--to", "half"], ["decode", "--from", "half"]], ids=" ".join)
def test_a_pipe_whose_line_never_ends(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It took time quadratic in the length and six times its memory."""
    ones = 0

    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            nonlocal ones
            assert ones < 8 << 20, "the command goes on reading"
            buffer[:] = b"1" * len(buffer) if ones else b"1\n2\n".ljust(len(buffer), b"1")
            ones += len(buffer)
            return len(buffer)

    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BufferedReader(Endless()))
    try:
        assert main(words) == 2
    finally:
        sys.stdin = before
    captured = capsys.readouterr()
    assert captured.err == "error: line 3: is longer than 1048576 bytes; expected one number in each line\n"
    assert captured.out.count("\n") == 2


# --- signals ----------------------------------------------------------------------------------------------------------

#: Runs the command line in children and sends each a signal at some moment; prints what became of every one.
_SIGNALS = """
    import collections, contextlib, io, json, os, random, signal, sys, time
    from pathlib import Path
    from bittrue.cli import main
    out, number, trials, words = Path(sys.argv[1]), getattr(signal, sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored

    def state():
        files = sorted(p for p in out.rglob("*") if p.is_file()) if out.exists() else []
        return {str(p.relative_to(out)): p.read_bytes() for p in files}

    def clear():
        for name in state():
            (out / name).unlink()

    def run(after):
        read, write = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        child = os.fork()
        if not child:
            code = 99
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(write, 2)
                sys.stdout, sys.stderr = (open(n, "w", closefd=False) for n in (1, 2))
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
                code = main(words)
                sys.stderr.flush()
            except KeyboardInterrupt:  # before the command began
                code = 130
            finally:
                os._exit(code)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        os.close(write)
        if after is not None:
            time.sleep(after)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with os.fdopen(read) as pipe:
            return code, pipe.read().strip()

    with contextlib.redirect_stdout(io.StringIO()):
        assert main(words) == 0  # compiles and warms
    expected = state()
    clear()
    start = time.monotonic()
    assert run(None) == (0, "")
    takes = time.monotonic() - start
    moments, found = random.Random(0), collections.Counter()
    for _ in range(trials):
        clear()
        code, said = run(moments.uniform(0, takes))
        now = state()
        hidden = [n for n in now if n.startswith(".bittrue-")]
        wrong = [n for n in now if n not in hidden and now[n] != expected[n]]
        named = set(now) - set(hidden)
        indexed = any(n.endswith("index.json") for n in named)
        parts = "whole" if named == set(expected) else "none" if not named else "broken" if indexed else "shards"
        found[json.dumps([code, said, parts, bool(hidden), wrong])] += 1
    clear()
    assert run(None) == (0, "") and state() == expected
    print(json.dumps([json.loads(k) + [n] for k, n in found.items()]))
"""


def signalled(out: Path, name: str, trials: int, *words: object) -> list[Any]:
    done = python(_SIGNALS, out, name, trials, *words, "--threads", "2")
    assert done.returncode == 0 and not done.stderr, done.stderr
    found: list[Any] = json.loads(done.stdout)
    # Python says so itself, and goes on, where a signal meets the callback of a weak reference.
    assert all(not said or said.startswith("Exception ignored in") for _, said, *_ in found), found
    return found


def test_ctrl_c_in_mid_conversion_leaves_nothing(tmp_path: Path) -> None:
    save(tmp_path / "m.safetensors", {f"layers.{n}": weights() for n in range(8)})
    out = tmp_path / "out"
    out.mkdir()
    words = ["convert", tmp_path / "m.safetensors", "--to", "float8_e4m3fn", "-o", out / "o.safetensors"]
    stopped = 0
    for code, _, parts, hidden, wrong, trials in signalled(out, "SIGINT", 30, *words):
        assert code in (0, 130) and not hidden and not wrong
        assert parts in ("none", "whole") and (code or parts == "whole")
        stopped += trials * (code == 130)
    assert stopped >= 10


@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_an_index_names_only_whole_shards(tmp_path: Path, name: str) -> None:
    """A killed conversion may leave shards without an index, and temporary files; never an index without its shards."""
    index, out = sharded(tmp_path / "in", 512), tmp_path / "out"
    before, stopped = contents(index.parent), 0
    for code, _, parts, hidden, wrong, trials in signalled(
        out, name, 20, "convert", index, "--to", "float8_e4m3fn", "-o", out
    ):
        assert code in (0, 130, -9) and not wrong and parts != "broken"
        assert code == -9 or (not hidden and parts != "shards")
        stopped += trials * (code != 0)
    assert stopped >= 6 and contents(index.parent) == before


@pytest.mark.parametrize("name", ["a.npy", "a.bin"])
def test_ctrl_c_while_the_temporary_file_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def opened(*args: Any) -> Any:
        file = open(*args)  # noqa: SIM115  # as the writer does
        signal.raise_signal(signal.SIGINT)
        return file

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr("bittrue.files.writer.open", opened, raising=False)
    try:
        with pytest.raises(KeyboardInterrupt):
            bt.save(tmp_path / name, bt.array([1.0, 2.0], "hifloat8"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not list(tmp_path.iterdir())


# --- rivals -----------------------------------------------------------------------------------------------------------


def test_eight_threads_convert_at_once(tmp_path: Path) -> None:
    save(tmp_path / "a.safetensors", {"w": weights(), "b": np.arange(9)})
    convert(tmp_path / "a.safetensors", tmp_path / "serial.npz", "hifloat8")
    expected = (tmp_path / "serial.npz").read_bytes()
    start = threading.Barrier(8, timeout=60)  # else one that fails would leave the others waiting
    outcomes: dict[str, list[object]] = {"own": [], "first": [], "forced": []}

    def work(n: int) -> None:
        for kind, name, force in (("own", f"{n}.npz", False), ("first", "one.npz", False), ("forced", "all.npz", True)):
            start.wait()
            try:
                convert(tmp_path / "a.safetensors", tmp_path / name, "hifloat8", threads=2, force=force)
                outcomes[kind].append("done")
            except ExistingFileError:
                outcomes[kind].append("exists")

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert outcomes["own"] == outcomes["forced"] == ["done"] * 8
    assert sorted(map(str, outcomes["first"])) == ["done"] + ["exists"] * 7
    found = contents(tmp_path)
    assert len(found) == 12 and all(data == expected for name, data in found.items() if name.endswith(".npz"))


def test_eight_forks_of_a_busy_process_convert_at_once(tmp_path: Path) -> None:
    """The parent has used all thread pools, and others of its threads are at work when it forks."""
    save(tmp_path / "a.safetensors", {"w": weights(), "b": np.arange(9)})
    code = """
        import os, sys, threading
        from pathlib import Path
        import numpy as np
        import bittrue as bt
        from bittrue.convert import convert
        from bittrue.files import ExistingFileError
        folder = Path(sys.argv[1])
        x = np.random.default_rng(1).standard_normal(1 << 20).astype(np.float32)
        whole = bt.encode(x, "hifloat8", threads=4)
        convert(folder / "a.safetensors", folder / "serial.npz", "hifloat8", threads=4)
        stop = threading.Event()

        def busy():
            while not stop.is_set():
                bt.encode(x, "hifloat8", threads=4)

        others = [threading.Thread(target=busy) for _ in range(3)]
        for other in others:
            other.start()
        children = []
        for n in range(8):
            child = os.fork()
            if not child:
                code = 1
                try:
                    assert (bt.encode(x, "hifloat8", threads=4) == whole).all()
                    convert(folder / "a.safetensors", folder / f"own{n}.npz", "hifloat8", threads=2)
                    convert(folder / "a.safetensors", folder / "forced.npz", "hifloat8", threads=2, force=True)
                    try:
                        convert(folder / "a.safetensors", folder / "first.npz", "hifloat8", threads=2)
                        code = 10
                    except ExistingFileError:
                        code = 11
                finally:
                    os._exit(code)
            children.append(child)
        codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
        stop.set()
        for other in others:
            other.join()
        assert (bt.encode(x, "hifloat8", threads=4) == whole).all()
        print(codes)
        """
    done = python(code, tmp_path, PYTHONWARNINGS="ignore::DeprecationWarning")  # Python 3.12: on forks of threads
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{[10] + [11] * 7}\n", "")
    found = contents(tmp_path)
    expected = found["serial.npz"]
    assert len(found) == 12 and all(data == expected for name, data in found.items() if name.endswith(".npz"))


# --- the cache of compiled kernels ------------------------------------------------------------------------------------

_DECODE = """
    import sys
    import numpy as np
    import bittrue as bt
    print("ready", flush=True)
    sys.stdin.readline()
    assert bt.decode(np.uint16([0x3F80, 0xC000]), "bfloat16").tolist() == [1.0, -2.0]
    from bittrue.kernels.decode import bfloat_to_float
    print(sum(bfloat_to_float.stats.cache_hits.values()), sum(bfloat_to_float.stats.cache_misses.values()))
"""


def decode(prepare: Callable[[], None] | None = None, **environment: str | None) -> tuple[str, str]:
    """Decode in a new process; return what it said of hits and misses of the cache, and stderr."""
    done = python(_DECODE, prepare=prepare, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.removeprefix("ready\n").strip(), done.stderr


HIT, MISS = "1 0", "0 1"


@pytest.fixture
def closed_package(tmp_path: Path) -> Iterator[dict[str, str | None]]:
    """A copy of the package, never compiled, in a folder that may not be written; and a home of the same kind."""
    for path in (tmp_path / "lib", tmp_path / "home"):
        path.mkdir()
    shutil.copytree(PACKAGE, tmp_path / "lib" / "bittrue", ignore=shutil.ignore_patterns("__pycache__", "explorer"))
    folders = [p for p in tmp_path.rglob("*") if p.is_dir()]
    for folder in folders:
        folder.chmod(0o500)
    places = {"PYTHONPATH": str(tmp_path / "lib"), "HOME": str(tmp_path / "home")}
    yield {**places, "NUMBA_CACHE_DIR": None, "XDG_CACHE_HOME": None}
    for folder in folders:
        folder.chmod(0o700)


def test_nowhere_to_keep_kernels(closed_package: dict[str, str | None]) -> None:
    said, error = decode(obey_permissions, **closed_package)
    assert said == MISS
    assert error.count("RuntimeWarning") == 1
    assert "kernels cannot be kept (neither the folder of the package nor the user's cache can be written)" in error


def test_a_package_that_may_not_be_written_uses_the_home(closed_package: dict[str, str | None]) -> None:
    home = Path(str(closed_package["HOME"]))
    home.chmod(0o700)
    assert decode(obey_permissions, **closed_package) == (MISS, "")
    assert decode(obey_permissions, **closed_package) == (HIT, "")
    assert list(home.rglob("decode.bfloat_to_float*.nbi"))


def test_damaged_kernel_files_are_replaced(tmp_path: Path) -> None:
    assert decode(NUMBA_CACHE_DIR=str(tmp_path)) == (MISS, "")
    (index,), (data,) = tmp_path.rglob("*.nbi"), tmp_path.rglob("*.nbc")
    for path, size in ((index, 0), (index, index.stat().st_size - 9), (data, data.stat().st_size // 2)):
        os.truncate(path, size)
        assert decode(NUMBA_CACHE_DIR=str(tmp_path)) == (MISS, "")
    assert decode(NUMBA_CACHE_DIR=str(tmp_path)) == (HIT, "")


def test_no_room_to_keep_kernels(small_disk: Path) -> None:
    shutil.copy(small_disk / "ballast", small_disk / "more")
    said, error = decode(NUMBA_CACHE_DIR=str(small_disk))
    assert said == MISS and error.count("RuntimeWarning") == 1
    assert f"kernels cannot be kept ({small_disk}" in error and "No space left on device" in error


def test_two_processes_compile_one_kernel_at_once(tmp_path: Path) -> None:
    rivals = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(_DECODE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        )
        for _ in range(2)
    ]
    for rival in rivals:
        assert rival.stdout is not None and rival.stdout.readline() == "ready\n"
    for rival in rivals:
        assert rival.stdin is not None
        rival.stdin.write("go\n")
        rival.stdin.flush()
    for rival in rivals:
        out, error = rival.communicate(timeout=300)
        assert (rival.returncode, error) == (0, "") and out.strip() in (HIT, MISS)
    assert decode(NUMBA_CACHE_DIR=str(tmp_path)) == (HIT, "")
