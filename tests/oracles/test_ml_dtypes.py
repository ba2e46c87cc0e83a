"""ml_dtypes: nearest even into all its formats, from every 16-bit float and a million float32 patterns; decoding."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from oracles.disagreements import X86, compare, entries, installed
from oracles.inputs import every_float32, exact_values, inputs, same_number

import bittrue as bt
from bittrue import exact
from bittrue.rounding import Rule

#: ml_dtypes rounds to nearest even (e8m0: ties up) and overflows to Inf, else to NaN, else to the largest value.
FLOATS = (
    "bfloat16 float8_e3m4 float8_e4m3 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2 float8_e5m2fnuz "
    "float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn"
).split()
INTS = [n for n in "int1 int2 int4 uint1 uint2 uint4".split() if hasattr(ml_dtypes, n)]
SOURCES = "float16 bfloat16 float32 float64 int8 uint8 int16 uint16 int32 int64 uint32".split()


def rule_of(target: str) -> Rule:
    return Rule(rounding="nearest_up" if "e8m0" in target else "nearest_even", overflow="infinity")


@pytest.mark.parametrize(("target", "source"), [(t, s) for t in FLOATS for s in SOURCES if s != t])
def test_encode(target, source):
    x, fmt, rule = inputs(target, source), bt.format(target), rule_of(target)
    with np.errstate(all="ignore"):
        theirs = x.astype(np.dtype(target)).view(fmt.code_dtype)
    ours = bt.encode(x, fmt, rule=rule)
    v = exact_values(x)
    compare("ml_dtypes", source, target, v, theirs, ours)
    for i in np.random.default_rng(1).choice(x.size, 300).tolist():
        assert exact.encode(float(v[i]), fmt, rule, source=source) == ours[i], v[i]


@pytest.mark.slow
@pytest.mark.parametrize("target", FLOATS)
def test_every_float32(target):
    """All 2**32 inputs; a difference has an entry in the table."""
    fmt, rule, known = bt.format(target), rule_of(target), entries("ml_dtypes", "float32", target)
    for x in every_float32():
        with np.errstate(all="ignore"):
            theirs = x.astype(np.dtype(target)).view(fmt.code_dtype)
        bad = x[theirs != bt.encode(x, fmt, rule=rule)]
        v = exact_values(bad)
        assert np.logical_or.reduce([e.inputs(v, target) for e in known] + [np.zeros(v.shape, np.bool_)]).all(), v[0]


@pytest.mark.parametrize("target", FLOATS)
def test_decode_every_code(target):
    fmt = bt.format(target)
    codes = np.arange(1 << fmt.bits).astype(fmt.storage)
    for dtype in ("float32", "float64"):
        with np.errstate(invalid="ignore"):
            theirs = codes.view(np.dtype(target)).astype(dtype)
        ours = bt.decode(codes, fmt, dtype)
        nan = np.isnan(theirs)
        assert (np.isnan(ours) == nan).all()
        assert ours[~nan].tobytes() == theirs[~nan].tobytes()
    for code, value in zip(codes.tolist(), theirs.tolist()):  # the specification itself
        assert same_number(exact.decode(code, fmt), value)


def test_unused_bits_of_a_byte_are_refused():
    """They take the sign from the byte's highest bit and the rest from the low four: 0xF2 is -1. We refuse it."""
    byte = np.array([0xF2], np.uint8)
    if installed("ml_dtypes") == "0.6.0":
        assert byte.view(ml_dtypes.float4_e2m1fn).astype(np.float32) == -1
    with pytest.raises(ValueError, match="out of range for float4_e2m1fn"):
        bt.decode(byte, "float4_e2m1fn")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", INTS)
def test_integers(target, source):
    """They truncate and keep the low bits. What no int32 holds is undefined; on x86 Inf and NaN are known to give 0."""
    x, fmt = inputs("float8_e5m2", source), bt.format(target)
    v = exact_values(x)
    keep = (np.abs(v) < 2.0**31) | (X86 & ~np.isfinite(v))
    x, v = x[keep], v[keep]
    with np.errstate(all="ignore"):
        theirs = x.astype(np.dtype(target)).view(np.uint8) & ((1 << fmt.bits) - 1)
    ours = bt.encode(x, fmt, "trunc", "wrap", "zero")
    compare("ml_dtypes", source, target, v, theirs, ours)


@pytest.mark.parametrize("target", INTS)
def test_decode_integers(target):
    fmt = bt.format(target)
    codes = np.arange(1 << fmt.bits, dtype=np.uint8)
    theirs = codes.view(np.dtype(target)).astype(np.int32)
    assert (bt.decode(codes, fmt, np.int32) == theirs).all()
    assert [exact.decode(c, fmt) for c in codes.tolist()] == theirs.tolist()


@pytest.mark.parametrize("target", [*FLOATS, "float16", "float32", "float64"])
def test_limits(target):
    fmt, info = bt.format(target), ml_dtypes.finfo(np.dtype(target))
    assert fmt.bits == info.bits
    for ours, theirs in [
        (fmt.max, info.max),
        (fmt.min, info.min),
        (fmt.min_normal, info.smallest_normal),
        (fmt.min_subnormal, info.smallest_subnormal),
        (fmt.epsilon, info.eps),
    ]:
        assert ours == Fraction(float(theirs))
    assert (fmt.exponent_bits, fmt.mantissa_bits) == (info.nexp, info.nmant)


@pytest.mark.parametrize("target", INTS)
def test_integer_limits(target):
    info = ml_dtypes.iinfo(np.dtype(target))
    fmt = bt.format(target)
    assert (fmt.bits, fmt.min, fmt.max) == (info.bits, int(info.min), int(info.max))
