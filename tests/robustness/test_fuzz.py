"""A slice of the fuzzing run, what earlier runs found, and proof that the fuzzer sees faults."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from bittrue.files import FileError, load

from .targets import TARGETS, Sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the fuzzer forks, and reads /proc")

TESTS = Path(__file__).parents[1]
_FIVE = {"kind": "int", "name": "five", "width": 5}
_NPY = b"\x93NUMPY\x01\x00"


def npy(header: str) -> bytes:
    return _NPY + len(header).to_bytes(2, "little") + header.encode()


def safetensors(header: dict[str, Any]) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


#: Inputs that once got a wrong answer, cut down to what matters.
FOUND: dict[str, tuple[str, Any]] = {
    "words on both sides of 2**63 became float64": ("words", ([1, 2**63 + 1], 2201, None, False, [[0, 0]])),
    "a word beyond 64 bits in a list": ("words", ([1, 2**64], 2201, None, False, [[0, 0]])),
    "repr of a reserved scale code": ("raw", (b"\xff" * 9, "nvfp4", (16,))),
    "an empty array whose values are beyond any memory": (
        "npy",
        npy("{'descr': [('float8_e4m3fn', '|u1')], 'fortran_order': False, 'shape': (0, 9223372036854775807)}"),
    ),
    "a shard name of two lines": ("index", b'{"weight_map": {"a": "m\\n.safetensors"}}'),
    "half of a surrogate pair in the metadata": (
        "safetensors",
        safetensors({"__metadata__": {"bittrue": '{"a": "\ud800"}'}}),
    ),
    "an integer format whose sign is a number": (
        "safetensors",
        safetensors(
            {
                "__metadata__": {"bittrue": json.dumps({"a": {"format": _FIVE | {"signed": 255}, "shape": [0]}})},
                "a": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]},
            }
        ),
    ),
    "a member name that is no UTF-8": (
        "npz",
        b"PK\x03\x04\x14\0\0\x08\0\0" + b"\0" * 8 + b"\0\0\0\0\0\0\0\0\5\0\0\0\xff.npy"
        + b"PK\1\2\x14\3\x14\0\0\x08\0\0" + b"\0" * 8 + b"\0\0\0\0\0\0\0\0\5\0" + b"\0" * 16 + b"\xff.npy"
        + b"PK\5\6\0\0\0\0\1\0\1\0\x33\0\0\0\x23\0\0\0\0\0",
    ),
    "probes of float64 overflowed with a warning": ("arguments", ["diagnose", "bfloat167.npy", "float6412.npy"]),
    "an exponent beyond Decimal's": ("pipes", (["encode", "--to", "uint8"], b"1e" + b"3" * 40 + b"\n-1e-" + b"3" * 40)),
    "a product and a block format": ("arguments", ["convert", "complex6434.npy", "--to", "mx9", "--target=ascend:910"]),
    "a shift beyond 64 bits": ("arguments", ["quantparam", "pack", "--scale", "1", "--shift", "18446744073709551616"]),
}  # fmt: skip


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    monkeypatch.chdir(tmp_path)
    return Sandbox(tmp_path / "box")


@pytest.mark.parametrize("about", FOUND)
def test_what_was_found_before(box: Sandbox, about: str) -> None:
    target, case = FOUND[about]
    TARGETS[target].check(case, box)


def test_a_member_may_not_ask_for_any_amount_of_memory(tmp_path: Path) -> None:
    """The header of an LZMA stream names the size of its dictionary, up to 4 GB."""
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}") + b"\1")
    with pytest.raises(FileError, match=r"member 'x\.npy': is compressed by method 14; expected stored or deflated"):
        load(tmp_path / "x.npz")


def fuzz(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
    """Run the fuzzer in a process of its own; `code` comes before."""
    run = f"raise SystemExit(fuzz.main({arguments!r}))"
    script = "\n".join(("from robustness import fuzz, targets", textwrap.dedent(code), run))
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment, timeout=300
    )


def test_a_slice_finds_nothing(tmp_path: Path) -> None:
    done = fuzz("--count", "3000", "--seed", "20261130", "--output", str(tmp_path))
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    for target in TARGETS:
        assert re.search(rf"^{target} .*nothing found$", done.stdout, re.MULTILINE)
    assert not list(tmp_path.iterdir())


def test_faults_are_found_kept_and_repeatable(tmp_path: Path) -> None:
    """A target that raises, dies, hangs and takes memory at known numbers."""
    code = """
        import os
        def check(case, box):
            if case == 3:
                raise KeyError("three")
            if case == 5:
                os._exit(7)
            if case == 7:
                while True:
                    pass
            if case == 9:
                bytearray(600 << 20)
            if case == 11:
                targets.Target(0, None, None).missing
        targets.TARGETS.clear()
        targets.TARGETS["bad"] = targets.Target(100, None, check)
        fuzz.make = lambda target, seed, number: number
        fuzz._warm = lambda folder: None
        fuzz._SECONDS = 1
        targets.corpus()
        """
    done = fuzz("--count", "20", "--targets", "bad", "--output", str(tmp_path), code=code)
    assert done.returncode == 1
    last = done.stdout.splitlines()[-2]
    assert re.search(r"^bad +20 inputs", last), done.stdout
    for kind in ("KeyError", "exit 7", "hang", "MemoryError", "AttributeError"):
        assert re.search(rf"{kind}[^,]* \(1x\)", last), done.stdout
    assert len(list(tmp_path.iterdir())) == 5
    kept = next(p for p in tmp_path.iterdir() if "KeyError" in p.read_text())
    assert kept.read_text().endswith("\n('bad', 3)\n")
    again = fuzz("--targets", "bad", "--replay", str(kept), code=code)
    assert again.returncode == 1 and "KeyError: 'three'" in again.stderr


def test_an_index_takes_the_memory_that_it_has(box: Sandbox) -> None:
    """A read of at most 100 MB took 100 MB, whatever the size of the file."""
    tracemalloc.start()
    try:
        load("m.safetensors.index.json")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
