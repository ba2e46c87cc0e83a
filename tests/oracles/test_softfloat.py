"""SoftFloat: float32 and float64 to float16 and bfloat16 in five modes and round to odd, and integers both ways."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.disagreements import compare, same_nan
from oracles.inputs import exact_values, inputs, pattern_sample

import bittrue as bt
from bittrue import exact
from bittrue.rounding import Rule

sf = pytest.importorskip("softfloatpy")

MODES = {
    "nearest_even": sf.RoundingMode.NEAR_EVEN,
    "nearest_away": sf.RoundingMode.NEAR_MAX_MAG,
    "trunc": sf.RoundingMode.MIN_MAG,
    "floor": sf.RoundingMode.MIN,
    "ceil": sf.RoundingMode.MAX,
}
FLOATS = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}
INTS = {"int32": "i32", "int64": "i64", "uint32": "ui32", "uint64": "ui64"}
CLASSES = {
    "float32": sf.Float32,
    "float64": sf.Float64,
    "int32": sf.Int32,
    "int64": sf.Int64,
    "uint32": sf.UInt32,
    "uint64": sf.UInt64,
}


@pytest.fixture(autouse=True)
def _restored():
    """Rounding mode and flags are global."""
    mode, flags = sf.get_rounding_mode(), sf.get_exception_flags()
    yield
    sf.set_rounding_mode(mode)
    sf.set_exception_flags(flags)


def convert(x: np.ndarray, source: str, target: str, rounding: str) -> np.ndarray:
    """Convert one by one. The wheel lacks round to odd: it is truncation, made odd where the inexact flag is up."""
    function = getattr(sf, f"{({**FLOATS, **INTS})[source]}_to_{({**FLOATS, **INTS})[target]}")
    make, data, size = CLASSES[source].from_bytes, x.astype(x.dtype.newbyteorder(">")).tobytes(), x.dtype.itemsize
    numbers = [make(data[i : i + size]) for i in range(0, len(data), size)]
    odd = rounding == "odd"
    sf.set_rounding_mode(MODES["trunc" if odd else rounding])
    results = []
    for number in numbers:
        sf.set_exception_flags(0)
        code = int.from_bytes(function(number).to_bytes(), "big")
        results.append(code | (odd and sf.test_exception_flags(sf.ExceptionFlag.INEXACT)))
    return np.array(results, np.uint64)


def selection(target: str, source: str) -> np.ndarray:
    """Return 24 000 of the neighbourhoods of the target's values and of random patterns, and the special values."""
    every = inputs(target, source)
    patterns = pattern_sample(4000, every.dtype.itemsize * 8, seed=5).view(source)
    return np.concatenate([np.random.default_rng(2).choice(every[10**5 :], 20_000), patterns, every[-4:]])


@pytest.mark.parametrize("rounding", [*MODES, "odd"])
@pytest.mark.parametrize(
    ("source", "target"),
    [("float32", "float16"), ("float64", "float16"), ("float32", "bfloat16"), ("float64", "float32")],
)
def test_floats(source, target, rounding):
    x = selection("bfloat16" if target == "float32" else target, source)
    if target == "float32":  # ties and neighbours of float32: its patterns with more bits below
        single = pattern_sample(12_000, 32, seed=6).view(np.float32)
        with np.errstate(invalid="ignore"):
            wide = single.astype(np.float64)
        x = np.concatenate([x[:12_000], wide * (1 + 2.0**-24), np.nextafter(wide, np.inf), x[-4:]])
    rule = Rule(rounding=rounding, overflow="ieee")
    theirs = convert(x, source, target, rounding)
    ours = bt.encode(x, target, rule=rule).view(f"u{np.dtype(bt.format(target).storage).itemsize}")
    v = exact_values(x)
    compare("softfloatpy", source, target, v, same_nan(theirs, target), same_nan(ours, target))
    for i in np.random.default_rng(1).choice(x.size, 1000).tolist():
        assert exact.encode(float(v[i]), target, rule, source=source) == ours[i], v[i]


@pytest.mark.parametrize("source", list(INTS))
@pytest.mark.parametrize("target", ["float16", "float32", "float64"])
def test_integers_to_floats(source, target):
    bits = bt.format(source).bits
    x = pattern_sample(3000, bits, seed=7)
    x = np.concatenate([x, x >> (np.arange(x.size) % bits).astype(x.dtype)]).view(source)
    ties = np.array([(2 * m + 1) << s for m in (1 << 11, 3 << 23, 3 << 53) for s in range(9)], np.uint64)
    limit = np.uint64(bt.format(source).max)
    x = np.concatenate([x, *(t[t <= limit].astype(source) for t in (ties, ties - np.uint64(1), ties + np.uint64(1)))])
    for rounding in (*MODES, "odd"):
        theirs = convert(x, source, target, rounding)
        ours = bt.encode(x, target, rounding, "ieee").view(f"u{bt.format(target).bits // 8}").astype(np.uint64)
        bad = np.flatnonzero(theirs != ours)
        assert not bad.size, (rounding, bad.size, x[bad[0]], hex(int(ours[bad[0]])), hex(int(theirs[bad[0]])))


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", list(INTS))
def test_floats_to_integers(source, target):
    """In range only: beyond it SoftFloat returns what processors do. Not odd: an odd code is no odd magnitude."""
    fmt = bt.format(target)
    whole = pattern_sample(4000, 64, seed=8) >> (np.arange(4000) % 64).astype(np.uint64)
    x = whole.astype(source) * np.array([1, 0.5, 0.25, 0.75], source)[np.arange(4000) % 4]
    x = np.concatenate([x, -x, np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.0, -0.0, 1e-30], source)])
    x = x[(x > float(fmt.min) - 0.5) & (x < float(fmt.max))]
    for rounding in MODES:
        theirs = convert(x, source, target, rounding)
        ours = bt.encode(x, target, rounding, "saturate").view(f"u{fmt.bits // 8}").astype(np.uint64)
        bad = np.flatnonzero(theirs != ours)
        assert not bad.size, (rounding, bad.size, x[bad[0]], hex(int(ours[bad[0]])), hex(int(theirs[bad[0]])))
