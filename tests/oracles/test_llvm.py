"""LLVM's APFloat: every OCP and FNUZ type, float16, bfloat16, tfloat32, float32 and integers, in five modes.

    apt-get install llvm-22-dev g++        # Debian; other releases from 20 on will do

The tests compile `apfloat.cpp` first, and skip where there is no compiler or no LLVM.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from oracles.disagreements import compare, llvm_config
from oracles.inputs import exact_values, inputs

import bittrue as bt
from bittrue import exact
from bittrue.rounding import Rule

MODES = ("nearest_even", "nearest_away", "trunc", "floor", "ceil")
FLOATS = (
    "float16 bfloat16 tfloat32 float32 float8_e3m4 float8_e4m3 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz "
    "float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn"
).split()
INTS = "int4 int8 uint8 int16 uint16 int32 uint32 int64".split()
SOURCES = ("float16", "bfloat16", "float32", "float64")
NAN = np.uint64(0xFFFFFFFFFFFFFFFF)

pytestmark = pytest.mark.skipif(
    llvm_config() is None or shutil.which("g++") is None,
    reason="needs LLVM's headers and a compiler: apt-get install llvm-22-dev g++",
)


@pytest.fixture(scope="session")
def apfloat(tmp_path_factory):
    """The filter, compiled; returns a function from codes to codes."""
    program = tmp_path_factory.mktemp("llvm") / "apfloat"
    config = llvm_config()
    flags = [
        subprocess.run([config, flag], capture_output=True, text=True, check=True).stdout.split()
        for flag in ("--cppflags", "--ldflags", "--libs")
    ]
    source = str(Path(__file__).with_name("apfloat.cpp"))
    before, *after = flags
    command = ["g++", "-O1", "-std=c++17", *before, source, "-o", str(program), *after[0], *after[1]]
    subprocess.run(command, check=True, capture_output=True, timeout=300)

    def convert(codes: np.ndarray, source: str, target: str, mode: str) -> np.ndarray:
        given = codes.astype(np.uint64).tobytes()
        command = [program, source, target, mode]
        done = subprocess.run(command, input=given, capture_output=True, check=True, timeout=300)
        return np.frombuffer(done.stdout, np.uint64)

    return convert


@functools.cache
def selection(target: str, source: str) -> np.ndarray:
    """Return the inputs of the other oracles, of float32 and float64 a part, chosen with a fixed seed."""
    near = {"tfloat32": "float16", "float32": "bfloat16"}.get(target, target)
    every = inputs("bfloat16" if target in INTS else near, source)
    if every.size <= 1 << 16:
        return every
    rng = np.random.default_rng(4)
    chosen = rng.choice(every[:-4], min(every.size - 4, 30_000), replace=False)
    if target == "float32":  # ties of float32 and their neighbours: its patterns with more bits below
        single = rng.integers(0, 1 << 32, 20_000, np.uint64).astype(np.uint32).view(np.float32)
        with np.errstate(invalid="ignore", over="ignore"):
            wide = single.astype(np.float64)
            chosen = np.concatenate([chosen, wide * (1 + 2.0**-24), np.nextafter(wide, np.inf)])
    elif target in INTS:
        whole = rng.integers(-(1 << 17), 1 << 17, 20_000) / 4
        chosen = np.concatenate([chosen, *(a.astype(every.dtype) for a in (whole, whole * 2.0**47))])
    return np.concatenate([chosen, np.zeros(1, every.dtype), every[-4:]])


def patterns(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.itemsize}")


def marked(codes: np.ndarray, target: str) -> np.ndarray:
    """Write every NaN as the filter does."""
    nan = np.isnan(np.asarray(bt.decode(codes, target, np.float64)))
    return np.where(nan, NAN, codes.view(bt.format(target).code_dtype).astype(np.uint64))


@pytest.mark.parametrize(("target", "source"), [(t, s) for t in FLOATS for s in SOURCES if s != t])
def test_encode(apfloat, target, source):
    """Overflow is IEEE 754's: directed modes stop at the largest value. There is no saturation."""
    x = selection(target, source)
    v = exact_values(x)
    if target == "float8_e8m0fnu":  # they drop the sign
        x, v = x[~(v < 0)], v[~(v < 0)]
    if not bt.format(target).has_nan:  # the value stays a NaN and has no code
        x, v = x[~np.isnan(v)], v[~np.isnan(v)]
    for mode in MODES:
        up = target == "float8_e8m0fnu" and mode == "nearest_even"  # there, ties go up
        rule = Rule(rounding="nearest_up" if up else mode, overflow="ieee")
        theirs, ours = apfloat(patterns(x), source, target, mode), bt.encode(x, target, rule=rule)
        for i in np.random.default_rng(1).choice(x.size, 50).tolist():
            assert exact.encode(float(v[i]), target, rule, source=source) == patterns(ours)[i], v[i]
        compare("llvm", source, target, v, theirs.view(np.int64), marked(ours, target).view(np.int64))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", INTS)
def test_integers(apfloat, target, source):
    """Out of range is an invalid operation that saturates; NaN gives 0."""
    x = selection(target, source)
    for mode in MODES:
        ours = bt.encode(x, target, mode, "saturate", "zero")
        theirs = apfloat(patterns(x), source, target, mode)
        codes = ours.view(bt.format(target).code_dtype).astype(np.uint64)
        compare("llvm", source, target, exact_values(x), theirs.view(np.int64), codes.view(np.int64))


@pytest.mark.parametrize("source", [f for f in FLOATS if f != "float32"])
def test_decode_every_code(apfloat, source):
    fmt = bt.format(source)
    codes = np.arange(1 << fmt.bits).astype(fmt.code_dtype)
    ours = bt.decode(codes, fmt, np.float64)
    theirs = apfloat(codes, source, "float64", "nearest_even")
    nan = np.isnan(ours)
    assert (nan == (theirs == NAN)).all()
    assert (ours.view(np.uint64)[~nan] == theirs[~nan]).all()
