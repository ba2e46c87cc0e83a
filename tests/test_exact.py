"""The exact specification against figures typed by hand, definitions, and the vendor's pseudo-code."""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest

import bittrue as bt
from bittrue import exact
from bittrue.rounding import NanPolicy, Negative, Overflow, Rounding, Rule

INF, NAN = math.inf, math.nan
MINUS_NAN = -math.nan
assert math.copysign(1, MINUS_NAN) == -1


def two(exponent):
    return Fraction(2) ** exponent


def encode(value, name, rounding="nearest_even", overflow="infinity", **more):
    random = more.pop("random", 0)
    source = more.pop("source", None)
    rule = Rule(rounding=rounding, overflow=overflow, **more)
    return exact.encode(value, name, rule, random=random, source=source)


# --- the thirteen modes -----------------------------------------------------------------------------------------------

#: What each mode makes of 2.25, 2.5, 2.75, 3.25, 3.5, 3.75 and of their negatives, by its definition: directed modes
#: look at the sign, nearest ones differ at 2.5 (even below, odd above) and 3.5 (odd below, even above) alone.
MODES = {
    "nearest_even": ([2, 2, 3, 3, 4, 4], [-2, -2, -3, -3, -4, -4]),
    "nearest_away": ([2, 3, 3, 3, 4, 4], [-2, -3, -3, -3, -4, -4]),
    "nearest_zero": ([2, 2, 3, 3, 3, 4], [-2, -2, -3, -3, -3, -4]),
    "nearest_up": ([2, 3, 3, 3, 4, 4], [-2, -2, -3, -3, -3, -4]),
    "nearest_down": ([2, 2, 3, 3, 3, 4], [-2, -3, -3, -3, -4, -4]),
    "nearest_odd": ([2, 3, 3, 3, 3, 4], [-2, -3, -3, -3, -3, -4]),
    "floor": ([2, 2, 2, 3, 3, 3], [-3, -3, -3, -4, -4, -4]),
    "ceil": ([3, 3, 3, 4, 4, 4], [-2, -2, -2, -3, -3, -3]),
    "trunc": ([2, 2, 2, 3, 3, 3], [-2, -2, -2, -3, -3, -3]),
    "away": ([3, 3, 3, 4, 4, 4], [-3, -3, -3, -4, -4, -4]),
    "odd": ([3, 3, 3, 3, 3, 3], [-3, -3, -3, -3, -3, -3]),
}
INPUTS = [Fraction(n, 4) for n in (9, 10, 11, 13, 14, 15)]


def test_every_mode_is_in_the_table():
    assert {m.value for m in Rounding} == {*MODES, "stochastic", "hybrid"}


@pytest.mark.parametrize("rounding", list(MODES))
@pytest.mark.parametrize(
    "name", ["int8", "int64", "int4", "float8_e4m3fn", "float16", "float64", "hifloat8", "bfloat16"]
)
def test_modes(name, rounding):
    """In the binade of 8 the floats with three fraction bits have the integers' steps: 8 more does the same there."""
    more = 8 if name in ("float8_e4m3fn", "hifloat8") else 0
    unit = {"float16": two(-9), "bfloat16": two(-6), "float64": two(-51)}.get(name, 1)
    for sign, results in zip((1, -1), MODES[rounding]):
        for x, result in zip(INPUTS, results):
            value = sign * (x + more) * unit
            expected = (result + sign * more) * unit
            if name in ("float16", "bfloat16", "float64"):  # steps of `unit` in the binade of 2, where 2 is even
                value, expected = value + sign * (2 - 2 * unit), expected + sign * (2 - 2 * unit)
            assert exact.decode(encode(value, name, rounding), name) == expected
            assert exact.decode(encode(expected, name, rounding), name) == expected  # exact values stay


@pytest.mark.parametrize("rounding", list(MODES))
def test_modes_of_unsigned_integers(rounding):
    for x, result in zip(INPUTS, MODES[rounding][0]):
        assert encode(x, "uint8", rounding) == result
        assert encode(x, "uint4", rounding) == result


@pytest.mark.parametrize(
    ("rounding", "codes"),
    [
        # 2.5, 3, 3.5 lie between 2**1 (code 128, even) and 2**2 (129, odd); 5, 6, 7 between 2**2 and 2**3 (130, even)
        ("nearest_even", [128, 128, 129, 129, 130, 130]),
        ("nearest_away", [128, 129, 129, 129, 130, 130]),
        ("nearest_zero", [128, 128, 129, 129, 129, 130]),
        ("nearest_up", [128, 129, 129, 129, 130, 130]),
        ("nearest_down", [128, 128, 129, 129, 129, 130]),
        ("nearest_odd", [128, 129, 129, 129, 129, 130]),
        ("floor", [128, 128, 128, 129, 129, 129]),
        ("ceil", [129, 129, 129, 130, 130, 130]),
        ("trunc", [128, 128, 128, 129, 129, 129]),
        ("away", [129, 129, 129, 130, 130, 130]),
        ("odd", [129, 129, 129, 129, 129, 129]),
    ],
)
def test_modes_without_fraction_bits(rounding, codes):
    """e8m0: even and odd speak of the code; a tie is 1.5 * 2**k."""
    assert [encode(x, "float8_e8m0fnu", rounding) for x in (2.5, 3, 3.5, 5, 6, 7)] == codes
    assert [encode(two(k), "float8_e8m0fnu", rounding) for k in (-127, 0, 127)] == [0, 127, 254]


def test_hifloat8_ties_by_code():
    """The last bit of a hifloat8 code is its fraction's, or tells subnormals apart; neighbours differ in it."""
    for tie, even, odd in [
        (two(-23), 0x00, 0x01),
        (3 * two(-23), 0x02, 0x01),
        (3 * two(-22), 0x02, 0x03),
        (3 * two(-17), 0x7E, 0x07),  # between the largest subnormal and the smallest normal value
        (Fraction(17, 16), 0x08, 0x09),
        (Fraction(31, 16), 0x10, 0x0F),  # from 1.875 to 2: another row of the table
        (Fraction(15) + Fraction(1, 2), 0x40, 0x2F),  # from 15 to 16
        (Fraction(240), 0x60, 0x4F),  # from 224 to 256
        (Fraction(24576) + 4096, 0x6E, 0x6D),
    ]:
        for sign in (0, 0x80):
            value = -tie if sign else tie
            assert encode(value, "hifloat8", "nearest_even") == (even | sign if even else 0)
            assert encode(value, "hifloat8", "nearest_odd") == odd | sign
            assert encode(value, "hifloat8", "odd") == odd | sign


SMALL = [f.name for f in bt.formats() if f.kind in ("float", "tapered") and f.bits <= 8]


@pytest.mark.parametrize("name", SMALL)
def test_modes_by_definition(name):
    """Fractions that no float can say: search the neighbours among all values and choose as the mode's words say."""
    fmt = bt.format(name)
    table = sorted((v, c) for c, v in enumerate(fmt.values()) if v == v and abs(v) != INF and c != 1 << (fmt.bits - 1))
    if name == "float8_e8m0fnu":
        table = [(two(c - 127), c) for c in range(255)]
    numbers = [Fraction(v) for v, _ in table]
    rng = np.random.default_rng(7)
    for i in rng.integers(0, len(table) - 1, 60).tolist():
        (low, low_code), (high, _) = table[i], table[i + 1]
        part = Fraction(int(rng.integers(1, 999)), 999) if i % 3 else Fraction(1, 2)
        x = Fraction(low) + (Fraction(high) - Fraction(low)) * part
        assert bisect_right(numbers, x) == i + 1
        odd, even = (high, low) if low_code % 2 == 0 else (low, high)
        nearest = low if part < Fraction(1, 2) else high
        tie = part == Fraction(1, 2)
        to_zero, away = (low, high) if x > 0 else (high, low)
        expected = {
            "nearest_even": even if tie else nearest,
            "nearest_odd": odd if tie else nearest,
            "nearest_away": away if tie else nearest,
            "nearest_zero": to_zero if tie else nearest,
            "nearest_up": high if tie else nearest,
            "nearest_down": low if tie else nearest,
            "floor": low,
            "ceil": high,
            "trunc": to_zero,
            "away": away,
            "odd": odd,
        }
        for rounding, value in expected.items():
            assert exact.decode(encode(x, name, rounding), name) == value, (rounding, x)


# --- anchors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "name", "rounding", "overflow", "code"),
    [
        (40959, "hifloat8", "nearest_away", "infinity", 0x6E),
        (40960, "hifloat8", "nearest_away", "infinity", 0x6F),
        (40960, "hifloat8", "nearest_even", "infinity", 0x6E),  # a tie between 32768, even, and the place of Inf
        (two(-23), "hifloat8", "nearest_away", "infinity", 0x01),
        (Fraction(3, 2) * two(-23), "hifloat8", "nearest_away", "infinity", 0x01),
        (two(-23) - two(-60), "hifloat8", "nearest_away", "infinity", 0x00),
        (16, "hifloat8", "hybrid", "infinity", 0x41),
        (256, "hifloat8", "hybrid", "infinity", 0x61),
        (24576, "hifloat8", "hybrid", "infinity", 0x6E),
        (32768, "hifloat8", "hybrid", "infinity", 0x6F),
        (32768, "hifloat8", "hybrid", "saturate", 0x6E),
        (two(-16), "hifloat8", "hybrid", "infinity", 0x7E),
        (8, "hifloat8", "hybrid", "infinity", 0x28),
        (464, "float8_e4m3fn", "nearest_even", "infinity", 0x7E),
        (465, "float8_e4m3fn", "nearest_even", "infinity", 0x7F),
        (61440, "float8_e5m2", "nearest_even", "infinity", 0x7C),
        (61440, "float8_e5m2", "nearest_even", "saturate", 0x7B),
        (257, "uint8", "nearest_even", "saturate", 255),
        (257, "uint8", "nearest_even", "wrap", 1),
        (0.5 + 2**-12, "float16", "nearest_even", "infinity", 0x3800),
        (0.5 + 2**-12, "float16", "ceil", "infinity", 0x3801),
        (0.5 + 2**-12, "float16", "odd", "infinity", 0x3801),
        (0.5 + 2**-9 + 2**-11, "bfloat16", "nearest_even", "infinity", 0x3F01),
        (0.5 + 2**-9 + 2**-11, "bfloat16", "floor", "infinity", 0x3F00),
    ],
)
def test_anchors(value, name, rounding, overflow, code):
    """Section "anchor values" of the reference on Ascend casts."""
    assert encode(value, name, rounding, overflow) == code


def test_anchors_from_integers():
    for rounding, half, single in [
        ("nearest_even", 4096, 2**25 + 4),
        ("floor", 4096, 2**25),
        ("ceil", 4100, 2**25 + 4),
        ("nearest_away", 4100, 2**25 + 4),
        ("trunc", 4096, 2**25),
    ]:
        assert exact.decode(encode(4098, "float16", rounding), "float16") == half
        assert exact.decode(encode(2**25 + 3, "float32", rounding), "float32") == single


def test_one_rounding():
    """Values that two roundings get wrong, and numbers that no NumPy type holds."""
    assert encode(-431.99999999999994, "float8_e4m3fn") == 0xFD  # -416, not the tie's -448
    assert exact.decode(encode(16973823, "bfloat16"), "bfloat16") == 16908288
    assert encode(2**70, "bfloat16") == 0x6280
    assert encode(Fraction(1, 3), "float32") == 0x3EAAAAAB
    assert encode(Fraction(1, 3), "float64") == struct.unpack("<Q", struct.pack("<d", 1 / 3))[0]
    assert encode(10**400, "float64", overflow="infinity") == 0x7FF0 << 48
    assert encode(Fraction(1, 10**400), "float64", "ceil") == 1
    assert encode(Fraction(1, 10**400), "float64") == 0


# --- overflow ---------------------------------------------------------------------------------------------------------

BEYOND = {  # a value beyond the range; its code as finite maximum, as infinity; those of -value
    "float8_e5m2": (2**17, 0x7B, 0x7C, 0xFB, 0xFC),  # Inf
    "float8_e4m3fn": (500, 0x7E, 0x7F, 0xFE, 0xFF),  # no Inf: NaN of the sign
    "float8_e4m3fnuz": (300, 0x7F, 0x80, 0xFF, 0x80),  # the one NaN
    "float6_e3m2fn": (40, 0x1F, 0x1F, 0x3F, 0x3F),  # neither: the largest value
    "float4_e1m2fn": (2, 0x7, 0x7, 0xF, 0xF),
    "hifloat8": (10**6, 0x6E, 0x6F, 0xEE, 0xEF),
    "float16": (10**6, 0x7BFF, 0x7C00, 0xFBFF, 0xFC00),
    "bfloat16": (2**130, 0x7F7F, 0x7F80, 0xFF7F, 0xFF80),
    "float64": (2**1024, 0x7FEF_FFFF_FFFF_FFFF, 0x7FF0 << 48, 0xFFEF_FFFF_FFFF_FFFF, 0xFFF0 << 48),
    "int8": (128, 0x7F, 0x7F, 0x80, 0x80),  # integers: the limits
    "int4": (100, 0x7, 0x7, 0x8, 0x8),
    "uint8": (256, 0xFF, 0xFF, 0x00, 0x00),
    "int64": (2**63, 2**63 - 1, 2**63 - 1, 2**63, 2**63),
}


@pytest.mark.parametrize("name", list(BEYOND))
def test_overflow(name):
    value, top, inf, bottom, minus_inf = BEYOND[name]
    for x, limit, infinity in ((value, top, inf), (-value, bottom, minus_inf)):
        if name in ("int8", "int64") and x < 0:
            x *= 2
        assert encode(x, name, overflow="saturate") == limit
        assert encode(x, name, overflow="saturate_finite") == limit
        assert encode(x, name, overflow="infinity") == infinity
        assert encode(x, name, overflow="ieee") == infinity
        with pytest.raises(OverflowError, match=f"beyond the range of {name}"):
            encode(x, name, overflow="raise")
    for x, limit, infinity in ((INF, top, inf), (-INF, bottom, minus_inf)):
        assert encode(x, name, overflow="saturate") == limit
        assert encode(x, name, overflow="saturate_finite") == infinity
        assert encode(x, name, overflow="infinity") == infinity
        for rounding in MODES:  # an infinity is not rounded
            assert encode(x, name, rounding, overflow="ieee") == infinity
        if bt.format(name).has_inf:
            assert encode(x, name, overflow="raise") == infinity
        else:
            with pytest.raises(OverflowError, match=f"inf is beyond the range of {name}"):
                encode(x, name, overflow="raise")


@pytest.mark.parametrize(
    ("rounding", "positive", "negative"),
    [(m, True, True) for m in MODES if m.startswith("nearest")]
    + [
        ("away", True, True),
        ("floor", False, True),
        ("ceil", True, False),
        ("trunc", False, False),
        ("odd", False, False),
        ("stochastic", True, True),
    ],
)
def test_overflow_ieee(rounding, positive, negative):
    """IEEE 754 section 7.4: a direction that points away from the infinity carries to the largest value."""
    for value, is_infinite, codes in ((2**17, positive, (0x7B, 0x7C)), (-(2**17), negative, (0xFB, 0xFC))):
        assert encode(value, "float8_e5m2", rounding, overflow="ieee") == codes[is_infinite]
    for value, is_infinite, codes in ((500, positive, (0x7E, 0x7F)), (-500, negative, (0xFE, 0xFF))):
        assert encode(value, "float8_e4m3fn", rounding, overflow="ieee") == codes[is_infinite]


def test_overflow_is_judged_after_rounding():
    """e5m2: 57344 is the largest value, 65536 would be the next. What rounds to 57344 has not overflowed."""
    for value, rounding, code in [
        (61439, "nearest_even", 0x7B),
        (61440, "nearest_even", 0x7C),
        (61440, "nearest_zero", 0x7B),
        (61440, "nearest_down", 0x7B),
        (61440, "nearest_up", 0x7C),
        (61440, "nearest_odd", 0x7B),  # 57344 has an odd code
        (61440, "nearest_away", 0x7C),
        (65535, "trunc", 0x7B),
        (65535, "floor", 0x7B),
        (57345, "ceil", 0x7C),
        (57345, "away", 0x7C),
        (65535, "odd", 0x7B),
        (65536, "trunc", 0x7C),  # with an unbounded exponent the value itself
        (65536, "odd", 0x7C),
        (-61440, "nearest_up", 0xFB),
        (-61440, "nearest_down", 0xFC),
        (-57345, "floor", 0xFC),
        (-57345, "ceil", 0xFB),
    ]:
        assert encode(value, "float8_e5m2", rounding, "infinity") == code, (value, rounding)
    assert encode(61439, "float8_e5m2", overflow="raise") == 0x7B
    with pytest.raises(OverflowError, match="is beyond the range of float8_e5m2"):
        encode(61440, "float8_e5m2", overflow="raise")
    with pytest.raises(OverflowError, match=r"2\*\*1328"):
        encode(10**400, "float64", overflow="raise")
    assert encode(Fraction(510, 4), "int8", "floor", overflow="raise") == 127
    with pytest.raises(OverflowError):
        encode(Fraction(510, 4), "int8", "nearest_even", overflow="raise")


@pytest.mark.parametrize(
    ("name", "value", "rounding", "code"),
    [
        ("int8", 128, "nearest_even", 0x80),
        ("int8", -129, "nearest_even", 0x7F),
        ("int8", 300, "nearest_even", 44),
        ("int8", -300, "nearest_even", 0x100 - 44),
        ("int8", Fraction(511, 2), "nearest_even", 0x00),  # 255.5 rounds to 256
        ("int8", Fraction(511, 2), "trunc", 0xFF),
        ("uint8", -1, "nearest_even", 0xFF),
        ("uint8", Fraction(-1, 3), "floor", 0xFF),
        ("uint8", Fraction(-1, 3), "ceil", 0x00),
        ("uint4", 17, "nearest_even", 0x1),
        ("int4", 8, "nearest_even", 0x8),
        ("int1", 1, "nearest_even", 1),
        ("int64", 2**63, "nearest_even", 2**63),
        ("int32", 10**30 + 7, "nearest_even", (10**30 + 7) % 2**32),
        ("int8", INF, "nearest_even", 0x7F),
        ("int8", -INF, "nearest_even", 0x80),
        ("uint8", -INF, "nearest_even", 0x00),
    ],
)
def test_wrap(name, value, rounding, code):
    """The low bits of the rounded value; infinities, which have none, give the limits."""
    assert encode(value, name, rounding, "wrap") == code


# --- NaN --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "keep", "negative", "largest"),
    [
        ("float8_e5m2", 0x7E, 0xFE, 0x7B),  # the quiet NaN
        ("float8_e4m3fn", 0x7F, 0xFF, 0x7E),
        ("float8_e4m3fnuz", 0x80, 0x80, 0x7F),
        ("hifloat8", 0x80, 0x80, 0x6E),
        ("float8_e8m0fnu", 0xFF, 0xFF, 0xFE),
        ("float4_e2m1fn", 0x0, 0x0, 0x7),  # none: zero, without a sign
        ("float6_e2m3fn", 0x00, 0x00, 0x1F),
        ("float16", 0x7E00, 0xFE00, 0x7BFF),
        ("float32", 0x7FC00000, 0xFFC00000, 0x7F7FFFFF),
        ("int8", 0, 0, 0x7F),
        ("uint4", 0, 0, 0xF),
        ("int64", 0, 0, 2**63 - 1),
    ],
)
def test_nan(name, keep, negative, largest):
    for overflow in ("saturate", "infinity", "raise"):
        assert encode(NAN, name, overflow=overflow) == keep
        assert encode(MINUS_NAN, name, overflow=overflow) == negative
    assert encode(MINUS_NAN, name, nan_sign="positive") == keep
    for value in (NAN, MINUS_NAN):
        assert encode(value, name, nan="zero") == 0
        assert encode(value, name, nan="max") == largest
        with pytest.raises(ValueError, match=f"NaN is not allowed in the conversion to {name}"):
            encode(value, name, nan="raise")


def test_nan_code():
    assert encode(NAN, "float16", nan_code=0x7FFF) == 0x7FFF
    assert encode(MINUS_NAN, "float16", nan_code=0x7FFF) == 0xFFFF
    assert encode(MINUS_NAN, "float16", nan_code=0x7FFF, nan_sign="positive") == 0x7FFF
    assert encode(INF, "float8_e4m3fn", overflow="infinity") == 0x7F
    for name, code in [
        ("float16", 0x7C00),
        ("float8_e4m3fn", 0x7E),
        ("float4_e2m1fn", 1),
        ("int8", 1),
        ("hifloat8", 0),
    ]:
        with pytest.raises(ValueError, match=f"nan_code={code:#x} is not a NaN of {name}"):
            encode(1, name, nan_code=code)


# --- zero, subnormals, flushing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [n for n in [*SMALL, "float16", "bfloat16", "float32", "float64", "tfloat32"] if n != "float8_e8m0fnu"]
)
def test_signed_zero(name):
    sign = 1 << (bt.format(name).bits - 1)
    minus = 0 if "fnuz" in name or name == "hifloat8" else sign
    tiny = two(-1200)
    for value, rounding, code in [
        (0, "nearest_even", 0),
        (0.0, "ceil", 0),
        (-0.0, "nearest_even", minus),
        (-0.0, "floor", minus),
        (tiny, "nearest_even", 0),
        (-tiny, "nearest_even", minus),
        (-tiny, "ceil", minus),
        (-tiny, "trunc", minus),
        (tiny, "ceil", 1),
        (-tiny, "floor", 1 | sign),
        (-tiny, "away", 1 | sign),
        (tiny, "odd", 1),
    ]:
        assert encode(value, name, rounding) == code, (value, rounding)


def test_zero_in_integers_and_bool():
    assert encode(-0.0, "int8") == encode(Fraction(-1, 3), "uint8") == 0
    for value, code in [
        (0, 0),
        (0.0, 0),
        (-0.0, 0),
        (5e-324, 1),
        (Fraction(1, 10**400), 1),
        (-3, 1),
        (INF, 1),
        (NAN, 1),
    ]:
        assert encode(value, "bool") == code
        assert encode(value, "bool", "floor", "wrap") == code


@pytest.mark.parametrize(
    ("value", "name", "code"),
    [
        (two(-9), "float8_e4m3fn", 0x01),
        (two(-10), "float8_e4m3fn", 0x00),
        (two(-10) + two(-40), "float8_e4m3fn", 0x01),
        (3 * two(-10), "float8_e4m3fn", 0x02),  # a tie between codes 1 and 2
        (7 * two(-9), "float8_e4m3fn", 0x07),
        (15 * two(-10), "float8_e4m3fn", 0x08),  # a tie between the largest subnormal and the smallest normal value
        (two(-16), "float8_e5m2", 0x01),
        (two(-24), "float16", 0x0001),
        (two(-25), "float16", 0x0000),
        (two(-14) - two(-25), "float16", 0x0400),
        (two(-133), "bfloat16", 0x0001),
        (two(-149), "float32", 0x00000001),
        (two(-150), "float32", 0x00000000),
        (two(-1074), "float64", 1),
        (Fraction(1, 2), "float4_e2m1fn", 0x1),
        (Fraction(1, 4), "float4_e2m1fn", 0x0),
        (Fraction(1, 8), "float4_e1m2fn", 0x0),
        (Fraction(3, 8), "float4_e1m2fn", 0x2),
        (two(-10), "float8_e4m3fnuz", 0x01),
        (two(-17), "float8_e5m2fnuz", 0x01),
    ],
)
def test_subnormals(value, name, code):
    sign = 1 << (bt.format(name).bits - 1)
    assert encode(value, name) == code
    assert encode(-value, name) == (code | sign if code or "fnuz" not in name else 0)


def test_flush_outputs():
    """Subnormal results become zeros of their sign; what rounds up to the smallest normal value does not."""
    for value, name, code in [
        (two(-7), "float8_e4m3fn", 0x00),
        (-two(-7), "float8_e4m3fn", 0x80),
        (two(-6), "float8_e4m3fn", 0x08),
        (two(-6) - two(-30), "float8_e4m3fn", 0x08),
        (15 * two(-10), "float8_e4m3fn", 0x08),
        (14 * two(-10), "float8_e4m3fn", 0x00),
        (two(-16), "hifloat8", 0x00),
        (-two(-16), "hifloat8", 0x00),
        (two(-15), "hifloat8", 0x7E),
        (Fraction(1, 2), "float4_e2m1fn", 0x0),
        (Fraction(-1, 2), "float4_e2m1fn", 0x8),
        (1, "float4_e2m1fn", 0x2),
        (two(-127), "float8_e8m0fnu", 0x00),  # is normal
        (two(-140), "float32", 0),
        (1, "int8", 1),
    ]:
        assert encode(value, name, flush_outputs=True) == code, (value, name)
    assert encode(two(-7), "float8_e4m3fn", "ceil", flush_outputs=True) == 0
    assert encode(two(-7) + two(-20), "float8_e4m3fn", "stochastic", random=2**32 - 1, flush_outputs=True) == 0
    assert encode(two(-6), "float8_e4m3fn", "stochastic", flush_outputs=True) == 0x08


def test_flush_inputs():
    """The source's subnormals count as zero, before anything else; the destination does not matter."""
    for value, source, name, rounding, code in [
        (two(-127), "float32", "float64", "nearest_even", 0),
        (-two(-127), "float32", "float64", "nearest_even", 1 << 63),
        (two(-126), "float32", "float64", "nearest_even", (1023 - 126) << 52),
        (two(-127), "float64", "float64", "nearest_even", (1023 - 127) << 52),
        (two(-15), "float16", "float8_e5m2", "nearest_even", 0),
        (two(-14), "float16", "float8_e5m2", "nearest_even", 0x04),
        (two(-15), None, "float8_e5m2", "nearest_even", 0x02),  # without a source: float32
        (two(-130), "bfloat16", "float8_e5m2", "ceil", 0),
        (-two(-130), "bfloat16", "int8", "floor", 0),
        (two(-130), "bfloat16", "float8_e8m0fnu", "floor", 0xFF),  # zero, under overflow="infinity"
        (two(-20), "hifloat8", "float32", "nearest_even", 0),
    ]:
        assert encode(value, name, rounding, source=source, flush_inputs=True) == code, (value, source, name)
    assert encode(NAN, "float16", flush_inputs=True) == 0x7E00
    assert encode(INF, "float16", flush_inputs=True) == 0x7C00


# --- unsigned formats -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "name", "shown"),
    [
        (500, "float8_e4m3fn", "500"),
        (-500, "float8_e4m3fn", "-500"),
        (128, "int8", "128"),
        (-129, "int8", "-129"),
        (INF, "float8_e4m3fn", "inf"),
        (-INF, "int8", "-inf"),
        (two(5000), "hifloat8", r"of about 2\*\*5000"),
    ],
)
def test_what_is_raised_names_the_value(value, name, shown):
    with pytest.raises(OverflowError, match=rf"^value {shown} is beyond the range of {name} \(overflow='raise'\)$"):
        encode(value, name, overflow="raise")


def test_negative_into_e8m0():
    """No zero and no sign: what lies below the range is the smallest value, or NaN by the overflow rule."""
    for value, saturate, finite, infinity, magnitude in [
        (-1.0, 0x00, 0x00, 0xFF, 0x7F),
        (-3.0, 0x00, 0x00, 0xFF, 0x80),
        (-INF, 0x00, 0xFF, 0xFF, 0xFF),
        (0.0, 0x00, 0x00, 0xFF, 0xFF),
        (-0.0, 0x00, 0x00, 0xFF, 0xFF),
        (0, 0x00, 0x00, 0xFF, 0xFF),
        (INF, 0xFE, 0xFF, 0xFF, 0xFF),
        (two(128), 0xFE, 0xFE, 0xFF, 0xFF),
        (two(-128), 0x00, 0x00, 0x00, 0x00),  # positive and finite: the smallest value under every rule
        (-two(-128), 0x00, 0x00, 0xFF, 0x00),
    ]:
        assert encode(value, "float8_e8m0fnu", overflow="saturate") == saturate
        assert encode(value, "float8_e8m0fnu", overflow="saturate_finite") == finite
        assert encode(value, "float8_e8m0fnu", overflow="infinity") == infinity
        assert encode(value, "float8_e8m0fnu", overflow="infinity", negative="magnitude") == magnitude
    assert encode(-INF, "float8_e8m0fnu", overflow="saturate", negative="magnitude") == 0xFE
    with pytest.raises(OverflowError, match="0 is not a value of float8_e8m0fnu"):
        encode(0, "float8_e8m0fnu", overflow="raise")
    for value, shown in ((-1, "-1"), (-two(-130), "-7.34684e-40")):
        with pytest.raises(OverflowError, match=f"value {shown} is beyond the range"):
            encode(value, "float8_e8m0fnu", overflow="raise")


def test_e8m0_limits():
    for value, rounding, code in [
        (Fraction(3, 2) * two(127), "nearest_even", 0xFE),  # the code of 2**127 is even
        (Fraction(3, 2) * two(127), "nearest_away", 0xFF),
        (Fraction(3, 2) * two(127), "ceil", 0xFF),
        (Fraction(3, 2) * two(127), "floor", 0xFE),
        (Fraction(5, 4) * two(-127), "nearest_even", 0x00),
        (Fraction(5, 4) * two(-127), "ceil", 0x01),
        (Fraction(3, 2) * two(-127), "nearest_even", 0x00),
        (Fraction(3, 2) * two(-127), "nearest_up", 0x01),
        (two(-200), "ceil", 0x00),
        (two(-200), "floor", 0x00),
    ]:
        assert encode(value, "float8_e8m0fnu", rounding) == code, (value, rounding)


def test_negative_into_unsigned_p3109():
    fmt = bt.p3109(8, 4, signed=False)  # has zero; NaN 0xFF
    tiny = fmt.min_subnormal / 4
    for value, rounding, saturate, infinity, magnitude in [
        (-1, "nearest_even", 0x00, 0xFF, 0x80),
        (-0.0, "nearest_even", 0x00, 0x00, 0x00),
        (-INF, "nearest_even", 0x00, 0xFF, 0xFE),
        (-tiny, "nearest_even", 0x00, 0x00, 0x00),  # rounds to zero, which is no overflow
        (-tiny, "ceil", 0x00, 0x00, 0x01),  # with the sign gone it is a positive number
        (-tiny, "floor", 0x00, 0xFF, 0x00),
    ]:
        assert encode(value, fmt, rounding, "saturate") == saturate
        assert encode(value, fmt, rounding, "infinity") == infinity
        assert encode(value, fmt, rounding, "infinity", negative="magnitude") == magnitude
    assert encode(-tiny, fmt, "floor", "ieee") == 0xFF
    assert encode(-1, fmt, "trunc", "ieee") == 0x00
    with pytest.raises(OverflowError, match="value -1 is beyond"):
        encode(-1, fmt, overflow="raise")


def test_negative_into_unsigned_integers():
    for value, rounding, saturate, wrap in [
        (-1, "nearest_even", 0, 255),
        (Fraction(-1, 2), "nearest_even", 0, 0),
        (Fraction(-1, 2), "nearest_away", 0, 255),
        (Fraction(-1, 2), "floor", 0, 255),
        (Fraction(-1, 2), "ceil", 0, 0),
    ]:
        assert encode(value, "uint8", rounding, "saturate") == saturate
        assert encode(value, "uint8", rounding, "wrap") == wrap
        assert encode(value, "uint8", rounding, "saturate", negative="magnitude") == saturate  # is for floats
    with pytest.raises(OverflowError):
        encode(-1, "uint8", overflow="raise")
    assert encode(Fraction(-1, 2), "uint8", overflow="raise") == 0


# --- hybrid: the vendor's pseudo-code, transcribed --------------------------------------------------------------------


def pack(s, e, m):
    """Put hifloat8's fields together (reference on Ascend casts, 2.3)."""
    if e <= -16:
        return s << 7 | (e + 23)
    a, g = abs(e), int(e < 0)
    if a == 0:
        return s << 7 | 0x08 | m
    w, k, prefix = (1, 3, 0x10) if a == 1 else (2, 3, 0x20) if a <= 3 else (3, 2, 0x40) if a <= 7 else (4, 1, 0x60)
    return s << 7 | prefix | g << (w - 1 + k) | (a - (1 << (w - 1))) << k | m


def to_hifloat8(s, e, m, bits, hybrid):
    """The vendor's steps for a number of `bits` fraction bits that is neither Inf nor NaN (2.4 and 2.5)."""
    window = 14 if bits == 23 else 2
    threshold = m & 0x3FFF if bits == 23 else (m & 1) << 1 | 1
    if e > 15:
        return s << 7 | 0x6F
    if e < -23:
        return 0x00
    if e == -23:
        keep = not hybrid or (1 << (window - 1) | m >> (bits - window + 1)) >= threshold
        return (s << 7 | 0x01) if keep else 0x00
    k = 3 if abs(e) <= 3 else 2 if abs(e) <= 7 else 1 if abs(e) <= 15 else 0
    kept = m >> (bits - k)
    first_dropped = m >> (bits - 1 - k) & 1
    dropped = m >> (bits - window - k) & ((1 << window) - 1)
    up = first_dropped == 1 if abs(e) <= 3 or not hybrid else dropped >= threshold
    if up:
        kept += 1
        if kept == 1 << k:
            kept, e = 0, e + 1
    return s << 7 | 0x6F if e > 15 else pack(s, e, kept)


def single_to_hifloat8(u, hybrid):
    s, e, m = u >> 31, (u >> 23 & 0xFF) - 127, u & 0x7FFFFF
    if e == 128:
        return 0x80 if m else s << 7 | 0x6F
    return to_hifloat8(s, e, m, 23, hybrid)


def half_to_hifloat8(h, hybrid):
    s, e, m = h >> 15, (h >> 10 & 0x1F) - 15, h & 0x3FF
    if e == 16:
        return 0x80 if m else s << 7 | 0x6F
    if e == -15:  # subnormals are normalised first
        if m == 0:
            return 0x00
        shift = 11 - m.bit_length()
        e, m = -14 - shift, (m << shift) & 0x3FF
    return to_hifloat8(s, e, m, 10, hybrid)


def saturated(code):
    return {0x6F: 0x6E, 0xEF: 0xEE, 0x80: 0x00}.get(code, code)


SINGLES = [
    *np.random.default_rng(1).integers(0, 1 << 32, 4000, np.uint64).tolist(),
    # every exponent of the format's range and beyond, with fractions that meet the thresholds
    *(
        s << 31 | (e + 127) << 23 | m
        for s in (0, 1)
        for e in range(-26, 18)
        for m in (0, 1, 0x1FFF, 0x2000, 0x3FFF, 0x400000, 0x3FFFFF, 0x400001, 0x7FFFFF, 0x600000, 0x602000, 0x5FF555)
    ),
    *(
        (e + 127) << 23 | high << 14 | low
        for e, high, low in np.random.default_rng(2).integers([-25, 0, 0], [17, 1 << 9, 1 << 14], (6000, 3)).tolist()
    ),
    *((e + 127) << 23 | t << 9 - (abs(e) > 7) | t >> 6 for e in (4, -5, 9, -12) for t in range(1 << 13, 1 << 14, 97)),
]


@pytest.mark.parametrize("rounding", ["nearest_away", "hybrid"])
def test_hifloat8_from_float32(rounding):
    for u in SINGLES:
        value = struct.unpack("<f", struct.pack("<I", u))[0]
        code = single_to_hifloat8(u, rounding == "hybrid")
        assert encode(value, "hifloat8", rounding, source="float32") == code, hex(u)
        assert encode(value, "hifloat8", rounding, "saturate", nan="zero", source="float32") == saturated(code), hex(u)


@pytest.mark.parametrize("rounding", ["nearest_away", "hybrid"])
def test_hifloat8_from_every_float16(rounding):
    for h in range(1 << 16):
        value = struct.unpack("<e", struct.pack("<H", h))[0]
        code = half_to_hifloat8(h, rounding == "hybrid")
        assert encode(value, "hifloat8", rounding, source="float16") == code, hex(h)


def test_hybrid_from_bfloat16_goes_through_float32():
    for b in range(0, 1 << 16, 7):
        value = struct.unpack("<f", struct.pack("<I", b << 16))[0]
        assert encode(value, "hifloat8", "hybrid", source="bfloat16") == single_to_hifloat8(b << 16, True), hex(b)


# --- stochastic -------------------------------------------------------------------------------------------------------


def test_stochastic_without_random_bits_truncates():
    almost = (1 << 32) - 1
    assert not exact.round_up(Rounding.stochastic, odd=False, negative=False, rest=almost, whole=1 << 32)
    assert exact.round_up(Rounding.stochastic, odd=False, negative=False, rest=almost, whole=1 << 32, random=1)
    assert exact.encode(2 - Fraction(1, 1 << 60), "int8", Rule(rounding="stochastic")) == 1


@pytest.mark.parametrize(
    ("part", "threshold"),
    [
        (Fraction(1, 2), 1 << 31),
        (Fraction(1, 4), 3 << 30),
        (Fraction(3, 4), 1 << 30),
        (Fraction(1, 1 << 32), (1 << 32) - 1),
        (1 - Fraction(1, 1 << 32), 1),
        (Fraction(1, 3), -(-2 * (1 << 32) // 3)),
        (1 - Fraction(1, 10**30), 1),
    ],
)
def test_stochastic_threshold(part, threshold):
    """Up when the dropped part and random / 2**32 make one: from this random word on, and not below it."""
    for sign in (1, -1):
        for name, low, step in [("int8", 2, 1), ("float8_e4m3fn", 8, 1), ("float16", 2, two(-9)), ("hifloat8", 64, 16)]:
            value = sign * (low + part * step)
            down, up = sign * Fraction(low), sign * (low + step)
            assert exact.decode(encode(value, name, "stochastic", random=threshold), name) == up
            assert exact.decode(encode(value, name, "stochastic", random=(1 << 32) - 1), name) == up
            assert exact.decode(encode(value, name, "stochastic", random=threshold - 1), name) == down
            assert exact.decode(encode(value, name, "stochastic", random=0), name) == down


def test_stochastic_limits():
    top = (1 << 32) - 1
    for name, value in [
        ("int8", 5),
        ("float8_e4m3fn", 448),
        ("hifloat8", -32768),
        ("float16", 0),
        ("float32", two(-149)),
    ]:
        assert exact.decode(encode(value, name, "stochastic", random=top), name) == value  # exact values stay
    # less than 2**-32 of a step is never enough
    assert encode(Fraction(1, (1 << 32) + 1), "int8", "stochastic", random=top) == 0
    assert encode(two(-149 - 33), "float32", "stochastic", random=top) == 0
    assert encode(two(-149 - 32), "float32", "stochastic", random=top) == 1
    assert encode(57344 + 4096, "float8_e5m2", "stochastic", random=1 << 31) == 0x7C
    assert encode(57344 + 4096, "float8_e5m2", "stochastic", "saturate", random=1 << 31) == 0x7B
    assert encode(57344 + 4096, "float8_e5m2", "stochastic", random=(1 << 31) - 1) == 0x7B
    assert encode(-0.0, "float16", "stochastic", random=top) == 0x8000


def test_stochastic_is_unbiased():
    """Over equally spaced random words the mean is the value, to one part in their number."""
    words = range(1 << 21, 1 << 32, 1 << 22)
    for numerator in (1, 333, 512, 1000, 1023):
        value = 2 + Fraction(numerator, 1024)
        ups = sum(encode(value, "int8", "stochastic", random=w) == 3 for w in words)
        assert ups == numerator


# --- decoding, complex, mistakes --------------------------------------------------------------------------------------


def test_decode():
    assert exact.decode(0x2E, "hifloat8") == 14 and type(exact.decode(0x2E, "hifloat8")) is Fraction
    minus_zero = exact.decode(0x80, "float8_e4m3fn")
    assert type(minus_zero) is float and minus_zero == 0 and math.copysign(1, minus_zero) == -1
    assert type(exact.decode(0x00, "float8_e4m3fn")) is Fraction
    assert exact.decode(0xFC, "float8_e5m2") == -INF
    assert math.copysign(1, exact.decode(0xFF, "float8_e4m3fn")) == -1
    assert math.copysign(1, exact.decode(0x7F, "float8_e4m3fn")) == 1
    assert exact.decode(1, "float64") == two(-1074)
    assert exact.decode(0x0040, "bfloat16") == two(-127)
    assert exact.decode(0x00, "float8_e8m0fnu") == two(-127)
    assert exact.decode(0x4000_3C00, "complex32") == (1, 2)
    for code in (256, -1):
        with pytest.raises(ValueError, match="out of range for hifloat8"):
            exact.decode(code, "hifloat8")
    with pytest.raises(ValueError, match="not known"):
        exact.decode(0, "hifloat9")


def test_complex():
    assert encode(1 + 2j, "complex32") == 0x4000_3C00
    assert encode((Fraction(1), -0.0), "complex32") == 0x8000_3C00
    assert encode(complex(INF, NAN), "complex32") == 0x7E00_7C00
    assert encode(3, "complex64") == 0x40400000
    assert encode(complex(1e6, -1e6), "complex32", overflow="saturate") == 0xFBFF_7BFF
    assert encode((Fraction(1, 3), 0), "complex64", "floor") == 0x3EAAAAAA
    with pytest.raises(TypeError, match="a complex value cannot become float16"):
        encode(1j, "float16")
    with pytest.raises(TypeError, match="complex"):
        encode((1, 2), "int8")


@pytest.mark.parametrize("value", ["1.5", None, b"1", [1], object()])
def test_values_that_are_no_numbers(value):
    for name in ("float16", "int8", "hifloat8", "bool"):
        with pytest.raises(TypeError, match=f"must be a Fraction, an int or a float, not {type(value).__name__}$"):
            encode(value, name)


def test_rules_that_do_not_fit_the_format():
    for call, words in [
        (lambda: encode(1, "float16", "hybrid"), "'hybrid' is defined for hifloat8 only, not for float16"),
        (lambda: encode(1, "int8", "hybrid"), "hifloat8 only"),
        (lambda: encode(1, "float16", overflow="wrap"), "'wrap' is defined for integer formats only, not for float16"),
        (lambda: encode(1, "hifloat8", overflow="wrap"), "integer formats only"),
        (lambda: encode(1, "hifloat8", "hybrid", source="float64"), "float32 or float16 inputs"),
        (lambda: encode(1, "hifloat8", "hybrid", source="int8"), "float32 or float16 inputs"),
        (lambda: encode(Fraction(1, 3), "hifloat8", "hybrid"), "is not a float32"),
        (lambda: encode(1 + two(-11), "hifloat8", "hybrid", source="float16"), "is not a float16"),
        (lambda: encode(1, "hifloat9"), "did you mean 'hifloat8'"),
        (lambda: encode(1, "float16", source="flot32"), "did you mean 'float32'"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()


def test_rules_are_checked():
    for arguments, words in [
        ({"rounding": "nearst_even"}, "did you mean 'nearest_even'"),
        ({"rounding": None}, "rounding=None is not one of the rounding rules"),
        ({"overflow": "clamp"}, "overflow='clamp' is not one of the overflow rules.*saturate_finite"),
        ({"nan": "drop"}, "nan='drop'.*keep, zero, max, raise"),
        ({"negative": "abs"}, "negative='abs'.*overflow, magnitude"),
        ({"nan_sign": "negative"}, "nan_sign='negative' must be 'keep' or 'positive'"),
        ({"seed": -1}, "seed=-1 must be"),
        ({"seed": 1 << 64}, "seed="),
    ]:
        with pytest.raises(ValueError, match=words):
            Rule(**arguments)
    rule = Rule(rounding="FLOOR", overflow=Overflow.infinity, nan="Max", negative="magnitude")
    assert (rule.rounding, rule.overflow) == (Rounding.floor, Overflow.infinity)
    assert (rule.nan, rule.negative) == (NanPolicy.max, Negative.magnitude)
    assert Rule() == Rule(rounding="nearest_even", overflow="saturate", nan="keep")


@pytest.mark.parametrize("code", [-1, 0x00, 0x7E, 0x100, 0x17F, 0x1FF])
def test_nan_code_is_a_nan_of_the_format(code):
    with pytest.raises(ValueError, match=rf"^nan_code={code:#x} is not a NaN of float8_e4m3fn$"):
        encode(1, "float8_e4m3fn", nan_code=code)
    assert encode(math.nan, "float8_e4m3fn", nan_code=0x7F) == 0x7F


def test_hybrid_is_no_choice_between_neighbours():
    with pytest.raises(ValueError, match=r"^rounding='hybrid' is no rule for a single neighbour$"):
        exact.round_up(Rounding.hybrid, odd=False, negative=False, rest=1, whole=2)


def test_parts_of_complex_values_take_the_whole_rule():
    up = Rule(rounding="stochastic")
    for random, code in ((0, 0x3C00), ((1 << 32) - 1, 0x3C01)):
        value = (1 + two(-12), -1 - two(-12))
        assert exact.encode(value, "complex32", up, random) == code | (code | 0x8000) << 16
    flush = Rule(flush_inputs=True)  # 2**-15 is subnormal in float16, but not in float32
    assert exact.encode(complex(2**-15, 1), "complex32", flush, source="float16") == 0x3C00 << 16
    assert exact.encode(complex(2**-15, 1), "complex32", flush, source="float32") == 0x3C00 << 16 | 0x0200


@pytest.mark.parametrize("value", [131072, -131072, 49152])
def test_hybrid_overflow_names_the_value(value):
    with pytest.raises(OverflowError, match=rf"^value {value} is beyond the range of hifloat8"):
        encode(value, "hifloat8", "hybrid", "raise")
