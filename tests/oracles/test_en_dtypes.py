"""en_dtypes: hifloat8 (ties away) from every float16 and a million float32 patterns, the small formats, decoding."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.disagreements import compare
from oracles.inputs import every_float32, exact_values, inputs, same_number

import bittrue as bt
from bittrue import exact
from bittrue.rounding import Rule

en_dtypes = pytest.importorskip("en_dtypes")

#: Format: its name there, and the rule there. Overflow gives Inf, else NaN, else the largest value.
TYPES = {
    "hifloat8": ("hifloat8", "nearest_away"),
    "float4_e1m2fn": ("float4_e1m2", "nearest_even"),
    "float4_e2m1fn": ("float4_e2m1", "nearest_even"),
    "float6_e2m3fn": ("float6_e2m3", "nearest_even"),
    "float6_e3m2fn": ("float6_e3m2", "nearest_even"),
    "float8_e8m0fnu": ("float8_e8m0", "floor"),
}


def dtype_of(target: str) -> np.dtype:
    return np.dtype(getattr(en_dtypes, TYPES[target][0]))


@pytest.mark.parametrize("source", ["float16", "float32"])
@pytest.mark.parametrize("target", list(TYPES))
def test_encode(target, source):
    check(target, source)


@pytest.mark.parametrize("target", ["hifloat8", "float4_e1m2fn"])
def test_encode_float64(target):
    check(target, "float64")


def check(target, source):
    x, fmt = inputs(target, source), bt.format(target)
    rule = Rule(rounding=TYPES[target][1], overflow="infinity")
    with np.errstate(all="ignore"):
        theirs = x.astype(dtype_of(target)).view(np.uint8)
    ours = bt.encode(x, fmt, rule=rule)
    v = exact_values(x)
    compare("en_dtypes", source, target, v, theirs, ours)
    for i in np.random.default_rng(1).choice(x.size, 600).tolist():
        assert exact.encode(float(v[i]), fmt, rule, source=source) == ours[i], v[i]


@pytest.mark.slow
def test_hifloat8_from_every_float32():
    for x in every_float32():
        with np.errstate(all="ignore"):
            theirs = x.astype(dtype_of("hifloat8")).view(np.uint8)
        ours = bt.encode(x, "hifloat8", "nearest_away", "infinity")
        assert theirs.tobytes() == ours.tobytes()


@pytest.mark.parametrize("target", list(TYPES))
def test_decode_every_code(target):
    fmt = bt.format(target)
    codes = np.arange(1 << fmt.bits, dtype=np.uint8)
    theirs = codes.view(dtype_of(target)).astype(np.float32)
    ours = bt.decode(codes, fmt)
    for code, (mine, their) in enumerate(zip(ours.tolist(), theirs.tolist())):
        assert same_number(mine, their)
        assert same_number(exact.decode(code, fmt), their)


@pytest.mark.parametrize("target", ["hifloat8", "float4_e1m2fn"])
def test_limits(target):
    fmt, info = bt.format(target), en_dtypes.finfo(dtype_of(target))
    assert (fmt.max, fmt.min, fmt.min_subnormal) == (
        float(info.max),
        float(info.min),
        float(info.smallest_subnormal),
    )


def test_neighbours_go_by_value():
    """Their nextafter steps through codes, whose order is not the order of values: 46 of 252 steps are wrong."""
    from bittrue.operations import nextafter

    dtype = dtype_of("hifloat8")
    codes = np.arange(256, dtype=np.uint8)
    values = codes.view(dtype).astype(np.float64)
    finite = codes[np.isfinite(values)]
    order = finite[np.argsort(values[finite])]
    below, above = order[:-1], order[1:]  # each value and its neighbour above, from their own decoding
    ours = nextafter(bt.Array(below, "hifloat8"), np.inf)
    assert (ours.codes == above).all()
    with np.errstate(all="ignore"):
        theirs = np.nextafter(below.view(dtype), np.full(below.size, np.inf).astype(dtype)).view(np.uint8)
    assert (theirs != above).sum() == 46
