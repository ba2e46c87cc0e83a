"""Laws that every format and every rounding mode obeys, tried on formats and values that Hypothesis draws.

Half of the formats are of the catalogue, the other half have never been seen before. The examples are the same in every
run; ``BITTRUE_EXAMPLES=2000 pytest tests/test_properties.py`` draws that many new ones for each law.
"""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import bittrue as bt
from bittrue import exact
from bittrue.formats import FloatFormat, TaperedFormat, floor_log2
from bittrue.rounding import Negative, Rounding, Rule

EXAMPLES = int(os.environ.get("BITTRUE_EXAMPLES", "0"))
SOME = settings(
    max_examples=EXAMPLES or 40,
    derandomize=not EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
DETERMINISTIC = [m for m in Rounding if m not in (Rounding.stochastic, Rounding.hybrid)]
NEAREST = [m for m in DETERMINISTIC if m.value.startswith("nearest")]
#: What a mode becomes when all signs are turned.
MIRROR = {"floor": "ceil", "ceil": "floor", "nearest_up": "nearest_down", "nearest_down": "nearest_up"}
CATALOGUE = [f for f in bt.formats() if isinstance(f, (FloatFormat, TaperedFormat)) and f.bits <= 16]


@st.composite
def own_formats(draw):
    """Formats of up to 12 bits with any bias, special codes and signs that the class allows."""
    exponent, mantissa = draw(st.integers(0, 6)), draw(st.integers(0, 5))
    nan = draw(st.sampled_from(["exponent", "ones", "negative_zero", "none"]))
    signed = nan == "negative_zero" or draw(st.booleans())
    try:
        return FloatFormat(
            "drawn",
            exponent_bits=exponent,
            mantissa_bits=mantissa,
            bias=draw(st.integers(-20, 70)),
            signed=signed,
            inf=nan == "exponent" or draw(st.booleans()),
            nan=nan,
            zero=signed or nan in ("exponent", "negative_zero") or draw(st.booleans()),
        )
    except ValueError:
        assume(False)


FORMATS = st.one_of(st.sampled_from(CATALOGUE), own_formats())
MODES = st.sampled_from(DETERMINISTIC)


@st.composite
def values_for(draw, fmt, signed=None):
    """Finite float64 numbers: near the format's values and midpoints, beyond its range, of any pattern; and zeros."""
    size = 1 << fmt.magnitude_bits
    numbers = [0.0, -0.0]
    for _ in range(draw(st.integers(1, 8))):
        code = draw(st.integers(0, size - 1))
        value = fmt.value(code)
        if value != value or abs(value) == float("inf"):
            value = fmt.max * draw(st.sampled_from([1, 2, 1024]))
        half = Fraction(2) ** (fmt.quantum_exponent(floor_log2(Fraction(value)) if value else -1000) - 1)
        x = float(Fraction(value) + draw(st.sampled_from([0, half])))
        for _ in range(draw(st.integers(0, 2))):
            x = float(np.nextafter(x, draw(st.sampled_from([-np.inf, np.inf]))))
        numbers.append(x)
    patterns = draw(st.lists(st.integers(0, (1 << 64) - 1), max_size=4))
    numbers += np.array(patterns, np.uint64).view(np.float64).tolist()
    x = np.array(numbers)
    x = x[np.isfinite(x)]
    signs = draw(st.lists(st.booleans(), min_size=x.size, max_size=x.size))
    x = np.where(signs, -x, x)
    return x if (fmt.signed if signed is None else signed) else np.abs(x)


def decoded(codes, fmt):
    return np.asarray(bt.decode(codes, fmt, np.float64))


def in_range(x, fmt):
    """The values that no rule calls overflow, and that a format without zero can hold."""
    below = 0 if fmt.has_zero else float(fmt.min_normal)
    return x[(np.abs(x) <= float(fmt.max)) & (np.abs(x) >= below)]


@SOME
@given(st.data(), FORMATS, MODES, st.sampled_from(["saturate", "infinity", "ieee"]))
def test_the_codec_is_the_specification(data, fmt, mode, overflow):
    x = data.draw(values_for(fmt, signed=True))
    flush = data.draw(st.sampled_from([False, False, True]))
    rule = Rule(mode, overflow, flush_inputs=flush, flush_outputs=flush, negative=data.draw(st.sampled_from(Negative)))
    x = np.append(x, [np.inf, -np.inf, np.nan, -np.nan])
    want = [exact.encode(v, fmt, rule, source="float64") for v in x.tolist()]
    assert bt.encode(x, fmt, rule=rule).tolist() == want
    with np.errstate(over="ignore", under="ignore"):
        narrow = x.astype(np.float32)
    want = [exact.encode(float(v), fmt, rule, source="float32") for v in narrow]
    assert bt.encode(narrow, fmt, rule=rule).tolist() == want


@SOME
@given(st.data(), FORMATS, MODES)
def test_rounding_keeps_the_order(data, fmt, mode):
    x = np.sort(data.draw(values_for(fmt, signed=True)))
    y = decoded(bt.encode(x, fmt, mode, "saturate"), fmt)
    assert (np.diff(y) >= 0).all()
    if fmt.has_inf and fmt.signed:
        y = decoded(bt.encode(x, fmt, mode, "ieee"), fmt)
        assert (y[1:] >= y[:-1]).all()


@SOME
@given(st.data(), FORMATS, st.sampled_from([*DETERMINISTIC, Rounding.stochastic]), st.integers(0, 2**64 - 1))
def test_what_was_rounded_stays(data, fmt, mode, seed):
    x = np.append(data.draw(values_for(fmt)), [np.inf, np.nan])
    overflow = data.draw(st.sampled_from(["saturate", "saturate_finite", "infinity", "ieee"]))
    once = bt.quantize(x, fmt, mode, overflow, seed=seed)
    assume(fmt.has_zero or not np.isnan(once[:-1]).any())
    again = bt.quantize(once, fmt, mode, overflow, seed=seed ^ 1)
    assert again.view(np.uint64)[~np.isnan(once)].tolist() == once.view(np.uint64)[~np.isnan(once)].tolist()
    assert (np.isnan(again) == np.isnan(once)).all()


@SOME
@given(FORMATS, st.sampled_from([*DETERMINISTIC, Rounding.stochastic]), st.sampled_from([np.float32, np.float64]))
def test_every_canonical_code_comes_back(fmt, mode, dtype):
    codes = np.arange(1 << fmt.bits).astype(fmt.storage)
    values = bt.decode(codes, fmt, dtype)
    if dtype is np.float32 and not (decoded(codes, fmt)[~np.isnan(values)] == values[~np.isnan(values)]).all():
        assume(False)  # float32 does not hold them
    nan = np.isnan(values)
    back = bt.encode(values, fmt, mode, "infinity")
    assert (back[~nan] == codes[~nan]).all()
    assert {fmt.is_nan(c) for c in back[nan].tolist()} <= {True}
    bits = f"u{values.itemsize}"
    assert (bt.decode(back, fmt, dtype).view(bits)[~nan] == values.view(bits)[~nan]).all()


@SOME
@given(st.data(), FORMATS)
def test_modes_surround_the_value(data, fmt):
    x = in_range(data.draw(values_for(fmt)), fmt)
    y = {mode: decoded(bt.encode(x, fmt, mode, "saturate"), fmt) for mode in DETERMINISTIC}
    floor, ceil = y[Rounding.floor], y[Rounding.ceil]
    assert (floor <= x).all() and (x <= ceil).all()
    assert (np.abs(y[Rounding.trunc]) <= np.abs(x)).all() and (np.abs(x) <= np.abs(y[Rounding.away])).all()
    for mode, rounded in y.items():
        assert ((rounded == floor) | (rounded == ceil)).all(), mode
    for mode in NEAREST:
        for v, *neighbours, near in zip(*(a.tolist() for a in (x, floor, ceil, y[mode]))):
            distances = [abs(Fraction(n) - Fraction(v)) for n in neighbours]
            assert abs(Fraction(near) - Fraction(v)) == min(distances), (mode, v)


@SOME
@given(st.data(), FORMATS)
def test_odd_never_loses_the_sticky_bit(data, fmt):
    """An inexact value gets an odd code, so that it is never mistaken for a value or a midpoint of a coarser format."""
    x = in_range(data.draw(values_for(fmt)), fmt)
    codes = bt.encode(x, fmt, "odd", "saturate")
    assert (codes[decoded(codes, fmt) != x] & 1 == 1).all()


@SOME
@given(st.data(), own_formats(), MODES)
def test_odd_first_and_two_bits_more_changes_nothing(data, fmt, mode):
    """Rounding to odd with two bits to spare, then in any mode, is rounding once."""
    assume(fmt.zero)
    try:
        wide = replace(
            fmt, name="wide", signed=True, exponent_bits=fmt.exponent_bits + 2, mantissa_bits=fmt.mantissa_bits + 2,
            inf=True, nan="exponent",
        )  # fmt: skip
    except ValueError:
        assume(False)
    x = data.draw(values_for(fmt, signed=True))
    x = x[np.abs(x) <= float(wide.max)]
    first = decoded(bt.encode(x, wide, "odd"), wide)
    assert bt.encode(first, fmt, mode, "ieee").tolist() == bt.encode(x, fmt, mode, "ieee").tolist()


@SOME
@given(st.data(), FORMATS, MODES, st.sampled_from(["saturate", "infinity", "ieee"]))
def test_turning_the_sign_turns_the_result(data, fmt, mode, overflow):
    """Modes that know no direction are symmetrical; those that do change places."""
    assume(fmt.signed)
    x = np.append(data.draw(values_for(fmt)), [np.inf, -np.inf])
    there = bt.encode(x, fmt, mode, overflow)
    back = bt.encode(-x, fmt, MIRROR.get(mode.value, mode), overflow)
    magnitude = (1 << fmt.magnitude_bits) - 1
    special = np.isnan(decoded(there, fmt)) & (not fmt.nan_signed)  # the code of -0: NaN, for either sign
    signless = special | ((there & magnitude == 0) & (not fmt.has_negative_zero))
    turned = there ^ np.where(signless, 0, 1 << fmt.magnitude_bits)
    assert back.tolist() == turned.tolist()


@SOME
@given(st.data(), FORMATS, st.sampled_from([*DETERMINISTIC, Rounding.stochastic]))
def test_pieces_make_the_whole(data, fmt, mode):
    x = data.draw(values_for(fmt))
    bits = data.draw(st.lists(st.integers(0, 2**32 - 1), min_size=x.size, max_size=x.size))
    random = np.array(bits, np.uint32) if mode is Rounding.stochastic else None
    whole = bt.encode(x, fmt, mode, random=random)
    at = data.draw(st.integers(0, x.size))
    parts = [
        bt.encode(x[part], fmt, mode, random=None if random is None else random[part])
        for part in (slice(None, at), slice(at, None))
    ]
    assert np.concatenate(parts).tolist() == whole.tolist()
    apart = np.repeat(x, 3)[::3][::-1]  # neither contiguous nor in order
    turned = bt.encode(apart, fmt, mode, random=None if random is None else random[::-1])
    assert turned[::-1].tolist() == whole.tolist()


@pytest.mark.parametrize("mode", [*DETERMINISTIC, Rounding.stochastic])
@pytest.mark.parametrize("name", ["float8_e4m3fn", "hifloat8", "float16"])
def test_threads_change_nothing(name, mode):
    rng = np.random.default_rng(7)
    for source, size in ((np.float32, 3 * (1 << 17) + 5), (np.float64, (1 << 18) + 3)):
        x = (rng.standard_normal(size) * np.exp2(rng.integers(-12, 12, size))).astype(source)
        one = bt.encode(x, name, mode, seed=5, threads=1)
        for threads in (2, 3, 7):
            assert (bt.encode(x, name, mode, seed=5, threads=threads) == one).all()
            y = bt.quantize(x, name, mode, seed=5, threads=threads)
            assert (y == bt.decode(one, name, source)).all()


#: Two-sided risk of 6 standard deviations of the normal approximation: 2e-9 for each example.
DEVIATIONS, DRAWS = 6.0, 1 << 14


@SOME
@given(st.data(), FORMATS, st.integers(0, 2**64 - 1))
def test_stochastic_rounding_is_fair(data, fmt, seed):
    """Of n values that lie p of the way up, n * p go up, to within 6 sqrt(n * p * (1 - p)) + 1."""
    x = in_range(data.draw(values_for(fmt)), fmt)
    for v in x[:4].tolist():
        low, high = (float(decoded(bt.encode(v, fmt, mode, "saturate"), fmt)) for mode in ("floor", "ceil"))
        codes = bt.encode(np.full(DRAWS, v), fmt, "stochastic", "saturate", seed=seed)
        ups = int(np.count_nonzero(decoded(codes, fmt) == high))
        if low == high:
            assert ups == DRAWS
            continue
        assert np.isin(decoded(codes, fmt), [low, high]).all()
        p = float((Fraction(v) - Fraction(low)) / (Fraction(high) - Fraction(low)))
        assert abs(ups - DRAWS * p) <= DEVIATIONS * np.sqrt(DRAWS * p * (1 - p)) + 1, (v, p, ups)


@SOME
@given(own_formats())
def test_codes_of_an_own_format_are_in_order(fmt):
    """Magnitude codes count the values upwards, and the limits are those of the values."""
    finite = [c for c in range(1 << fmt.magnitude_bits) if c != fmt.inf_magnitude and not fmt.is_nan(c)]
    values = [fmt.value(c) for c in finite]
    assert values == sorted(set(values)) and values[-1] == fmt.max
    assert fmt.min == (-fmt.max if fmt.signed else values[0])
    assert fmt.min_subnormal == values[int(fmt.zero)]
    assert decoded(np.array(finite, fmt.storage), fmt).tolist() == [float(v) for v in values]
