"""The kernels against brute force in plain Python integers and fractions, at every edge and on random patterns."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from bittrue.kernels import decode, encode, integer, stochastic

# (nearest, t_lsb, t_sign, t_const) of every deterministic mode
MODES = {
    "nearest_even": (1, 1, 0, 0),
    "nearest_odd": (1, 1, 0, 1),
    "nearest_away": (1, 0, 0, 1),
    "nearest_zero": (1, 0, 0, 0),
    "nearest_up": (1, 0, 1, 1),
    "nearest_down": (1, 0, 1, 0),
    "ceil": (0, 0, 1, 1),
    "floor": (0, 0, 1, 0),
    "trunc": (0, 0, 0, 0),
    "away": (0, 0, 0, 1),
    "odd": (0, 1, 0, 1),
}


@dataclass(frozen=True)
class Layout:
    """Sign, exponent and fraction of a source pattern or of a target code."""

    width: int
    exponent_bits: int
    fraction_bits: int
    bias: int

    def split(self, pattern: int) -> tuple[int, int, int]:
        fraction = pattern & ((1 << self.fraction_bits) - 1)
        exponent = (pattern >> self.fraction_bits) & ((1 << self.exponent_bits) - 1)
        return pattern >> (self.exponent_bits + self.fraction_bits), exponent, fraction

    def magnitude(self, exponent: int, fraction: int) -> tuple[int, int]:
        """The value as (significand, power of two)."""
        return fraction | ((exponent > 0) << self.fraction_bits), max(exponent, 1) - self.bias - self.fraction_bits

    @property
    def dtype(self) -> Any:
        return np.dtype(f"uint{self.width}")


FLOAT16 = Layout(16, 5, 10, 15)
BFLOAT16 = Layout(16, 8, 7, 127)
FLOAT32 = Layout(32, 8, 23, 127)
FLOAT64 = Layout(64, 11, 52, 1023)
# the lanes of `encode_narrow`: the upper halves of float32 and float64
UPPER = {FLOAT32: BFLOAT16, FLOAT64: Layout(32, 11, 20, 1023)}

TARGETS = {
    "e4m3": Layout(8, 4, 3, 7),
    "e5m2": Layout(8, 5, 2, 15),
    "e3m2": Layout(6, 3, 2, 3),
    "e2m3": Layout(6, 2, 3, 1),
    "e2m1": Layout(4, 2, 1, 1),
    "e5m0": Layout(6, 5, 0, 15),
    "float16": FLOAT16,
    "bfloat16": BFLOAT16,
    "tfloat32": Layout(19, 8, 10, 127),
    "float32": FLOAT32,
}


def up(kept: int, quarters: int, mode: str, negative: int) -> bool:
    """Whether `kept` goes up; `quarters` is the dropped part: 0, 1 (below half), 2 (half), 3 (above half)."""
    odd = kept & 1
    above = {
        "nearest_even": odd,
        "nearest_odd": not odd,
        "nearest_away": True,
        "nearest_zero": False,
        "nearest_up": not negative,
        "nearest_down": negative,
    }
    if mode in above:
        return quarters > 2 or (quarters == 2 and bool(above[mode]))
    directed = {"ceil": not negative, "floor": negative, "trunc": False, "away": True, "odd": not odd}
    return quarters > 0 and bool(directed[mode])


@functools.cache
def rank_down(significand: int, power: int, target: Layout) -> tuple[int, int]:
    """The rank (magnitude code) at or below ``significand * 2**power``; the dropped part: 0, 1, 2, 3 quarters.

    The quarters are rounded to odd: 0 exact, 1 below half, 2 half, 3 above half.
    """
    if significand == 0:
        return 0, 0
    binade = max(significand.bit_length() - 1 + power, 1 - target.bias)
    shift = binade - target.fraction_bits - power - 2
    quarters = significand << -shift if shift < 0 else significand >> shift
    if shift > 0 and significand & ((1 << shift) - 1):
        quarters |= 1
    return (quarters >> 2) + ((binade - 1 + target.bias) << target.fraction_bits), quarters & 3


@dataclass(frozen=True)
class Results:
    """The code parameters of one target."""

    max_code: int
    over_pos: int
    over_neg: int
    inf_pos: int
    inf_neg: int
    nan_pos: int
    nan_neg: int
    sign_bit: int
    zero_neg: int
    flush_below: int = 0
    daz: int = 0
    max_code_neg: int | None = None


def results(target: Layout, kind: str) -> Results:
    """Code parameters in several styles; the numbers are all different where the style allows it."""
    sign = 1 << (target.exponent_bits + target.fraction_bits)
    top = sign - 1
    if kind == "saturate":  # every code but the last is finite
        return Results(top - 1, top - 1, sign | (top - 1), top - 1, sign | (top - 1), top, sign | top, sign, sign)
    inf = top >> target.fraction_bits << target.fraction_bits
    nan = inf | 1
    if kind == "infinity" and target.fraction_bits:
        return Results(inf - 1, inf, sign | inf, inf, sign | inf, nan, sign | nan, sign, sign)
    if kind == "flush":  # every result different, no minus zero, subnormals flushed on both sides
        low = 1 << target.fraction_bits
        return Results(top - 5, top - 3, sign | (top - 4), top - 2, sign | (top - 1), sign, top, sign, 0, low, 1)
    if kind == "unsigned":
        return Results(top - 1, top - 1, 0, top - 1, 0, top, top, 0, 0, 0, 0, 0)
    return results(target, "saturate")


def encode_reference(pattern: int, source: Layout, target: Layout, mode: str, r: Results) -> int:
    sign, exponent, fraction = source.split(pattern)
    if exponent == (1 << source.exponent_bits) - 1:
        if fraction:
            return r.nan_neg if sign else r.nan_pos
        return r.inf_neg if sign else r.inf_pos
    significand, power = source.magnitude(exponent, fraction)
    if exponent == 0 and r.daz:
        significand = 0
    rank, quarters = rank_down(significand, power, target)
    if up(rank, quarters, mode, sign):
        rank += 1
    if rank < r.flush_below:
        rank = 0
    limit = r.max_code_neg if sign and r.max_code_neg is not None else r.max_code
    if rank > limit:
        return r.over_neg if sign else r.over_pos
    if rank == 0:
        return r.zero_neg if sign else 0
    return rank | (r.sign_bit if sign else 0)


def edges(source: Layout, target: Layout, seed: int = 0, count: int = 400) -> np.ndarray:
    """Patterns at every exponent boundary, at target midpoints and their neighbours, and random ones."""
    inf = ((1 << source.exponent_bits) - 1) << source.fraction_bits
    drop = source.fraction_bits - target.fraction_bits
    lowest = target_emin(source, target)
    found = {0, 1, 2, 3, inf - 1, inf, inf + 1, inf | (1 << (source.fraction_bits - 1)), 2 * inf - 1}
    rng = np.random.default_rng(seed)
    top = lowest + (1 << target.exponent_bits) + 2
    exponents = set(range(max(0, lowest - target.fraction_bits - 4), min(top, 1 << source.exponent_bits)))
    if len(exponents) > 60:
        exponents = set(rng.choice(sorted(exponents), 60, replace=False).tolist())
    exponents |= {0, 1, 2, (1 << source.exponent_bits) - 2}
    for exponent in exponents:
        base = exponent << source.fraction_bits
        below = max(0, lowest - exponent) + drop
        for unit in {max(0, min(below - 1, source.fraction_bits)), min(below, source.fraction_bits)}:
            for k in {0, 1, 2, 3, int(rng.integers(0, 1 << 12))}:
                for delta in (-1, 0, 1):
                    found.add(base + (((k << unit) + delta) % (1 << source.fraction_bits)))
    patterns = [p for p in found if 0 <= p < 1 << (source.width - 1)]
    patterns += [p | 1 << (source.width - 1) for p in patterns]
    noise = rng.integers(0, 1 << source.width, count, dtype=np.uint64).astype(source.dtype)
    return np.concatenate([np.array(sorted(patterns), dtype=np.uint64).astype(source.dtype), noise])


def target_emin(source: Layout, target: Layout) -> int:
    return source.bias + 1 - target.bias


def ieee_parameters(source: Layout, target: Layout, mode: str, r: Results) -> np.ndarray:
    nearest, t_lsb, t_sign, t_const = MODES[mode]
    return encode.ieee_parameters(
        source.dtype,
        fraction_bits=source.fraction_bits,
        drop=source.fraction_bits - target.fraction_bits,
        emin=target_emin(source, target),
        nearest=nearest,
        t_lsb=t_lsb,
        t_sign=t_sign,
        t_const=t_const,
        **r.__dict__,
    )


def code_dtype(target: Layout) -> Any:
    width = target.exponent_bits + target.fraction_bits + 1
    return np.uint8 if width <= 8 else np.uint16 if width <= 16 else np.uint32


PAIRS = [
    *((FLOAT32, name) for name in TARGETS),
    *((FLOAT64, name) for name in ("e4m3", "e2m1", "float16", "bfloat16", "float32")),
    (BFLOAT16, "e4m3"),
    (BFLOAT16, "bfloat16"),
    (FLOAT16, "e4m3"),
    (FLOAT16, "e2m1"),
    (FLOAT16, "e5m2"),
]


@pytest.mark.parametrize("kind", ["saturate", "infinity", "flush", "unsigned"])
@pytest.mark.parametrize(("source", "name"), PAIRS, ids=lambda v: v if isinstance(v, str) else f"u{v.width}.{v.bias}")
def test_encode_ieee(source: Layout, name: str, kind: str) -> None:
    target = TARGETS[name]
    r = results(target, kind)
    patterns = edges(source, target)
    modes = MODES if source is not FLOAT64 else dict(itertools.islice(MODES.items(), 0, None, 2))
    for mode in modes:
        dst = np.zeros(patterns.size, code_dtype(target))
        encode.encode_ieee(patterns, dst, ieee_parameters(source, target, mode, r))
        expected = [encode_reference(int(p), source, target, mode, r) for p in patterns]
        bad = np.flatnonzero(dst != np.array(expected, dst.dtype))
        assert not bad.size, (mode, hex(patterns[bad[0]]), hex(dst[bad[0]]), hex(expected[bad[0]]))


@pytest.mark.parametrize("kind", ["saturate", "infinity", "flush", "unsigned"])
@pytest.mark.parametrize(
    ("source", "name"),
    [
        *((FLOAT32, name) for name in ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "e5m0", "bfloat16")),
        *((FLOAT64, name) for name in ("e4m3", "e2m1", "float16", "bfloat16", "tfloat32")),
    ],
    ids=lambda v: v if isinstance(v, str) else f"u{v.width}",
)
def test_encode_narrow(source: Layout, name: str, kind: str) -> None:
    target = TARGETS[name]
    r = results(target, kind)
    patterns = edges(source, target)
    for mode in MODES:
        dst = np.zeros(patterns.size, code_dtype(target))
        lanes = UPPER[source]
        encode.encode_narrow(patterns.view(lanes.dtype), dst, ieee_parameters(lanes, target, mode, r))
        expected = [encode_reference(int(p), source, target, mode, r) for p in patterns]
        bad = np.flatnonzero(dst != np.array(expected, dst.dtype))
        assert not bad.size, (mode, hex(patterns[bad[0]]), hex(dst[bad[0]]), hex(expected[bad[0]]))


def test_encode_ieee_refuses_what_it_cannot_do() -> None:
    r = results(TARGETS["e4m3"], "saturate").__dict__
    with pytest.raises(ValueError, match="not at both"):
        encode.ieee_parameters(
            np.uint32, fraction_bits=23, drop=20, emin=121, nearest=1, t_lsb=1, t_sign=1, t_const=0, **r
        )
    with pytest.raises(ValueError, match="widen"):
        encode.ieee_parameters(
            np.uint32, fraction_bits=23, drop=20, emin=250, nearest=1, t_lsb=1, t_sign=0, t_const=0, **r
        )


def test_float64_to_float32_rounded_to_odd() -> None:
    """Tiny values become the lowest subnormal, huge ones the largest finite value; a second rounding is harmless."""
    r = Results(0x7F7FFFFF, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 1 << 31, 1 << 31)
    parameters = ieee_parameters(FLOAT64, FLOAT32, "odd", r)
    x = np.array([5e-324, -1e-300, 1e308, -1e308, np.inf, np.nan, 0.0, -0.0, 1 + 2**-40, 1.5])
    dst = np.zeros(x.size, np.uint32)
    encode.encode_ieee(x.view(np.uint64), dst, parameters)
    assert [hex(c) for c in dst] == [
        "0x1",
        "0x80000001",
        "0x7f7fffff",
        "0xff7fffff",
        "0x7f800000",
        "0x7fc00000",
        "0x0",
        "0x80000000",
        "0x3f800001",
        "0x3fc00000",
    ]


@pytest.mark.parametrize("saturate", [0, 1])
def test_encode_half(saturate: int) -> None:
    patterns = edges(FLOAT32, FLOAT16, count=200_000)
    codes = np.array([0x7BFF, 0xFBFE, 0x7E11, 0x7FFF], np.uint16)
    dst = np.zeros(patterns.size, np.uint16)
    encode.encode_half(patterns, dst, saturate, codes)
    with np.errstate(all="ignore"):
        expected = patterns.view(np.float32).astype(np.float16).view(np.uint16)  # NumPy rounds to nearest even
    source_inf = (patterns & 0x7FFFFFFF) == 0x7F800000
    nan = (patterns & 0x7FFFFFFF) > 0x7F800000
    negative = patterns >> 31
    if saturate:
        over = ((expected & 0x7FFF) == 0x7C00) & ~source_inf
        expected[over] -= 1
    expected = np.where(source_inf, codes[negative], expected)
    expected = np.where(nan, codes[2 + negative], expected)
    np.testing.assert_array_equal(dst, expected)


@pytest.mark.parametrize(
    ("dtype", "shift", "code"), [("uint32", 18, "uint8"), ("uint64", 48, "uint16"), ("uint16", 2, "uint8")]
)
def test_encode_sticky(dtype: str, shift: int, code: str) -> None:
    width = 8 * np.dtype(dtype).itemsize
    rng = np.random.default_rng(1)
    table = rng.integers(0, 1 << 8 * np.dtype(code).itemsize, 1 << (width - shift)).astype(code)
    src = rng.integers(0, 1 << width, 5000, dtype=np.uint64).astype(dtype)
    src[::3] &= np.array((1 << width) - (1 << shift), np.uint64).astype(dtype)
    dst = np.zeros(src.size, code)
    encode.encode_sticky(src, dst, table, shift)
    expected = [table[int(u) >> shift | bool(int(u) & ((1 << shift) - 1))] for u in src]
    np.testing.assert_array_equal(dst, np.array(expected, code))


def hifloat8(u: int, hybrid: bool) -> int:
    """float32 pattern to hifloat8, not saturated: the vendor's text (specs/ascend.md, 2.3 and 2.4), line by line."""
    s, exponent, m = u >> 31, (u >> 23 & 0xFF) - 127, u & 0x7FFFFF
    t = m & 0x3FFF
    sign = s << 7
    if exponent == 128:
        return 0x80 if m else sign | 0x6F
    if exponent > 15:
        return sign | 0x6F
    if exponent < -23:
        return 0
    if exponent == -23:
        return sign | 1 if not hybrid or ((1 << 13) | m >> 10) >= t else 0
    size = abs(exponent)
    k = 3 if size <= 3 else 2 if size <= 7 else 1 if size <= 15 else 0
    f = m >> (9 - k) & 0x3FFF
    fraction = m >> (23 - k)
    fraction += f >> 13 if size <= 3 or not hybrid else f >= t
    if fraction == 1 << k:
        fraction, exponent = 0, exponent + 1
    if exponent > 15:
        return sign | 0x6F
    if exponent <= -16:
        return sign | (exponent + 23)
    size, below = abs(exponent), exponent < 0
    if size == 0:
        return sign | 0x08 | fraction
    w, k, prefix = (
        (1, 3, 0x10) if size == 1 else (2, 3, 0x20) if size <= 3 else (3, 2, 0x40) if size <= 7 else (4, 1, 0x60)
    )
    return sign | prefix | below << (w - 1 + k) | (size - (1 << (w - 1))) << k | fraction


def test_encode_hybrid32() -> None:
    table = np.array([hifloat8(k << 19, hybrid=False) for k in range(8192)], np.uint8)
    rng = np.random.default_rng(2)
    exponent = rng.integers(127 - 26, 127 + 19, 40_000, dtype=np.uint32)
    # short random fractions meet F == T; the others cover the rest
    fraction = rng.integers(0, 1 << 23, exponent.size, dtype=np.uint32)
    fraction[::2] &= np.uint32(0x7FE007)
    fraction[::5] &= np.uint32(0x780000)
    random = rng.integers(0, 1 << 32, 5000, dtype=np.uint32)
    special = np.array([0, 1, 0x7FFFFF, 0x7F800000, 0x7F800001, 0x7FFFFFFF, 0x41800000, 0x47000000], np.uint32)
    src = np.concatenate([exponent << 23 | fraction, special, special | 0x80000000, random])
    src[: exponent.size // 2] |= np.uint32(1 << 31)
    dst = np.zeros(src.size, np.uint8)
    encode.encode_hybrid32(src.view(np.uint16), dst, table)
    expected = np.array([hifloat8(int(u), hybrid=True) for u in src], np.uint8)
    np.testing.assert_array_equal(dst, expected)


# integers


@dataclass(frozen=True)
class Int:
    """A target integer and what becomes of values it has not."""

    bits: int
    signed: bool
    wrap: bool

    @property
    def lo(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def hi(self) -> int:
        return (1 << (self.bits - self.signed)) - 1

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1

    def code(self, rounded: int) -> int:
        return (rounded if self.wrap else min(max(rounded, self.lo), self.hi)) & self.mask


INF_POS, INF_NEG, NAN = 5, 6, 7  # unlike any saturated result


def int_parameters(source: Layout, target: Int, mode: str) -> np.ndarray:
    nearest, t_lsb, t_sign, t_const = MODES[mode]
    return integer.int_parameters(
        source.dtype,
        fraction_bits=source.fraction_bits,
        bias=source.bias,
        nearest=nearest,
        t_lsb=t_lsb,
        t_sign=t_sign,
        t_const=t_const,
        lo_mag=-target.lo,
        hi_mag=target.hi,
        over_pos=target.hi,
        over_neg=target.lo & target.mask,
        inf_pos=INF_POS,
        inf_neg=INF_NEG,
        nan_code=NAN,
        wrap=int(target.wrap),
        mask=target.mask,
    )


def int_patterns(source: Layout) -> np.ndarray:
    """Integers, halves and their neighbours around every power of two, and random patterns."""
    rng = np.random.default_rng(3)
    unit = source.fraction_bits
    found = {0, 1, (1 << unit) - 1, 1 << unit}
    top = (1 << source.exponent_bits) - 1
    for power in range(-unit - 3, 70):
        base = (source.bias + power) << unit
        if not 0 < base < top << unit:
            continue
        for bit in {max(0, unit - power), max(0, unit - power - 1)}:
            for k in (0, 1, 2, 3, int(rng.integers(0, 1 << 10))):
                found |= {base + ((k << bit) + delta) % (1 << unit) for delta in (-1, 0, 1) if bit <= unit}
    found |= {top << unit, (top << unit) + 1, (top << unit) - 1, (top << unit) + (1 << (unit - 1))}
    sign = 1 << (source.width - 1)
    patterns = sorted(found) + [p | sign for p in sorted(found)]
    noise = rng.integers(0, 1 << source.width, 300, dtype=np.uint64)
    return np.concatenate([np.array(patterns, np.uint64), noise]).astype(source.dtype)


def int_reference(pattern: int, source: Layout, target: Int, mode: str, random: int = 0) -> int:
    sign, exponent, fraction = source.split(pattern)
    if exponent == (1 << source.exponent_bits) - 1:
        return NAN if fraction else INF_NEG if sign else INF_POS
    significand, power = source.magnitude(exponent, fraction)
    if power >= 0:
        magnitude = significand << power
    else:
        magnitude = significand >> -power
        rest = significand - (magnitude << -power)
        if mode == "stochastic":
            magnitude += (rest << 32 >> -power) + random >= 1 << 32
        else:
            twice, one = 2 * rest, 1 << -power
            magnitude += up(magnitude, 0 if not rest else 1 if twice < one else 2 if twice == one else 3, mode, sign)
    return target.code(-magnitude if sign else magnitude)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize(
    ("source", "bits"),
    [
        *((FLOAT32, b) for b in (1, 4, 8, 12, 16, 32)),
        *((FLOAT64, b) for b in (8, 33, 64)),
        (FLOAT16, 8),
        (FLOAT16, 16),
        (BFLOAT16, 16),
    ],
    ids=str,
)
def test_encode_int(source: Layout, bits: int, wrap: bool) -> None:
    patterns = int_patterns(source)
    dtype = next(d for d in ("uint8", "int16", "uint32", "int64") if 8 * np.dtype(d).itemsize >= bits)
    for signed in (False, True):
        target = Int(bits, signed, wrap)
        for mode in MODES:
            dst = np.zeros(patterns.size, dtype)
            integer.encode_int(patterns, dst, int_parameters(source, target, mode))
            expected = np.array([int_reference(int(p), source, target, mode) for p in patterns], np.uint64).astype(
                dtype
            )
            bad = np.flatnonzero(dst != expected)
            assert not bad.size, (signed, mode, hex(patterns[bad[0]]), dst[bad[0]], expected[bad[0]])


@pytest.mark.parametrize("src", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("wrap", [False, True])
def test_narrow_int(src: str, wrap: bool) -> None:
    info = np.iinfo(src)
    rng = np.random.default_rng(4)
    values = {info.min, info.max, 0, 1, *(int(v) for v in rng.integers(info.min, info.max, 50, dtype=src))}
    for power in range(64):
        values |= {
            v for v in (1 << power, (1 << power) - 1, -(1 << power), -(1 << power) - 1) if info.min <= v <= info.max
        }
    x = np.array(sorted(values), src)
    for target, dst in [(Int(4, True, wrap), "uint8"), (Int(12, False, wrap), "uint16"), (Int(8, True, wrap), "int8")]:
        out = np.zeros(x.size, dst)
        integer.narrow_int(x, out, *integer.narrow_parameters(src, dst, target.lo, target.hi, int(wrap), target.mask))
        expected = np.array([target.code(int(v)) for v in x], np.uint64).astype(dst)
        np.testing.assert_array_equal(out, expected)
    for target, dst in [
        (Int(64, False, wrap), "uint64"),
        (Int(64, True, wrap), "int64"),
        (Int(32, True, wrap), "int32"),
    ]:
        out = np.zeros(x.size, dst)
        integer.narrow_int(x, out, *integer.narrow_parameters(src, dst, target.lo, target.hi, int(wrap), target.mask))
        expected = np.array([target.code(int(v)) for v in x], np.uint64).astype(dst)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_int_to_float_odd(dtype: str) -> None:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(5)
    values = {0, info.min, info.max} | {
        v
        for power in range(64)
        for near in (-2, -1, 0, 1, 2)
        for v in ((1 << power) + near, -(1 << power) + near, int(rng.integers(0, 1 << power, dtype=np.uint64)))
        if info.min <= v <= info.max
    }
    x = np.array(sorted(values), dtype)
    dst = np.zeros(x.size, np.uint64)
    integer.int_to_float_odd(x, dst, integer.odd_parameters(dst.dtype))
    for value, pattern in zip(x.tolist(), dst.tolist(), strict=True):
        shift = max(0, abs(value).bit_length() - 53)
        kept = abs(value) >> shift
        kept |= kept << shift != abs(value)
        expected = float(kept << shift) * (-1 if value < 0 else 1)
        assert np.array([expected + 0.0]).view(np.uint64)[0] == pattern, value


# stochastic rounding

GOLDEN = 0x9E3779B97F4A7C15
WORD = (1 << 64) - 1


def finalise(z: int) -> int:
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
    return z ^ z >> 31


def random_reference(seed: int, index: int) -> int:
    return finalise(finalise(seed + GOLDEN & WORD) + (index + 1) * GOLDEN & WORD) >> 32


def test_random_bits() -> None:
    # published: the first outputs of splitmix64 for seed 0 start from the finaliser of GOLDEN
    assert finalise(GOLDEN) == 0xE220A8397B1DCDAF
    for seed, start in [(0, 0), (5, 3), (WORD, 1 << 40)]:
        dst = np.zeros(1000, np.uint32)
        stochastic.random_bits(np.uint64(seed), start, dst)
        assert dst.tolist() == [random_reference(seed, start + i) for i in range(dst.size)]


NO_RANDOM = np.zeros(0, np.uint32)


@pytest.mark.parametrize("kind", ["saturate", "flush", "unsigned"])
@pytest.mark.parametrize(
    ("source", "name"),
    [
        (FLOAT32, "e4m3"),
        (FLOAT32, "e2m1"),
        (FLOAT32, "bfloat16"),
        (FLOAT64, "float32"),
        (FLOAT64, "e4m3"),
        (FLOAT16, "e4m3"),
    ],
    ids=lambda v: v if isinstance(v, str) else f"u{v.width}",
)
def test_encode_stochastic(source: Layout, name: str, kind: str) -> None:
    target = TARGETS[name]
    r = results(target, kind)
    patterns = edges(source, target)
    emin, drop = target_emin(source, target), source.fraction_bits - target.fraction_bits
    exponent = np.arange(1 << source.exponent_bits)
    shift = drop + np.maximum(0, emin - np.maximum(exponent, 1))
    base = np.maximum(exponent - emin, 0) << target.fraction_bits
    identity = np.zeros(0, np.uint64)
    tables = [identity]
    if r.max_code < 256:  # a tapered format: any code for any rank but zero
        codes = np.random.default_rng(6).permutation(r.max_code) + 1
        tables.append(np.concatenate([[0], codes]).astype(np.uint64))
    fields = {k.replace("max_code", "max_rank"): v for k, v in r.__dict__.items()}
    parameters = stochastic.stochastic_parameters(fraction_bits=source.fraction_bits, width=source.width, **fields)
    given = np.random.default_rng(7).integers(0, 1 << 32, patterns.size, dtype=np.uint32)
    for ranks, random in itertools.product(tables, (NO_RANDOM, given)):
        dst = np.zeros(patterns.size, code_dtype(target))
        stochastic.encode_stochastic(patterns, dst, shift, base, ranks, parameters, np.uint64(9), 77, random)
        for i, pattern in enumerate(patterns.tolist()):
            bits = int(random[i]) if random.size else random_reference(9, 77 + i)
            expected = stochastic_reference(pattern, source, target, r, bits, ranks.tolist())
            assert dst[i] == expected, (hex(pattern), hex(dst[i]), hex(expected))


def stochastic_reference(
    pattern: int, source: Layout, target: Layout, r: Results, random: int, codes: list[int]
) -> int:
    sign, exponent, fraction = source.split(pattern)
    if exponent == (1 << source.exponent_bits) - 1:
        return encode_reference(pattern, source, target, "trunc", r)
    significand, power = source.magnitude(exponent, fraction)
    if exponent == 0 and r.daz:
        significand = 0
    rank, _ = rank_down(significand, power, target)
    if significand:
        binade = max(significand.bit_length() - 1 + power, 1 - target.bias)
        shift = binade - target.fraction_bits - power
        dropped = significand & ((1 << shift) - 1)
        rank += (dropped << 32 >> shift) + random >= 1 << 32
    if rank < r.flush_below:
        rank = 0
    limit = r.max_code_neg if sign and r.max_code_neg is not None else r.max_code
    if rank > limit:
        return r.over_neg if sign else r.over_pos
    if rank == 0:
        return r.zero_neg if sign else 0
    return (codes[rank] if codes else rank) | (r.sign_bit if sign else 0)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("bits", [4, 8, 64])
def test_encode_int_stochastic(bits: int, wrap: bool) -> None:
    patterns = int_patterns(FLOAT64)
    given = np.random.default_rng(8).integers(0, 1 << 32, patterns.size, dtype=np.uint32)
    target = Int(bits, True, wrap)
    for random in (NO_RANDOM, given):
        dst = np.zeros(patterns.size, np.uint64)
        parameters = int_parameters(FLOAT64, target, "trunc")
        stochastic.encode_int_stochastic(patterns, dst, parameters, np.uint64(3), 5, random)
        for i, pattern in enumerate(patterns.tolist()):
            bits_i = int(random[i]) if random.size else random_reference(3, 5 + i)
            assert dst[i] == int_reference(pattern, FLOAT64, target, "stochastic", bits_i), hex(pattern)


# decoding


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint16"])
@pytest.mark.parametrize("codes", ["uint8", "uint16"])
def test_decode_table(codes: str, dtype: str) -> None:
    rng = np.random.default_rng(9)
    table = rng.permutation(1 << 8 * np.dtype(codes).itemsize).astype(dtype)
    src = rng.integers(0, table.size, 3000).astype(codes)
    dst = np.zeros(src.size, dtype)
    assert decode.decode_table(src, table, dst) == np.bitwise_or.reduce(src)
    np.testing.assert_array_equal(dst, table[src])
    assert decode.decode_table(src & 0x0F, table, dst) == 0x0F


def test_half_and_bfloat_to_float() -> None:
    patterns = np.arange(1 << 16).astype(np.uint16)
    dst = np.zeros(patterns.size, np.float32)
    decode.half_to_float(patterns, dst)
    np.testing.assert_array_equal(dst, patterns.view(np.float16).astype(np.float32))
    bits = np.zeros(patterns.size, np.uint32)
    decode.bfloat_to_float(patterns, bits)
    np.testing.assert_array_equal(bits, patterns.astype(np.uint32) << 16)
