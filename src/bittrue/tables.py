"""Tables compiled from the exact specification and kept; the kernels only index them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from . import exact
from .formats import FloatFormat, Format, TaperedFormat, floor_log2, format
from .rounding import Overflow, Rounding, Rule

__all__ = ["AS_NUMPY", "decode_table", "every_code", "hybrid_table", "regime_tables", "sticky_shift", "sticky_table"]

#: A value that a narrower dtype cannot hold becomes what NumPy's casts make of it: nearest even, Inf beyond the range.
AS_NUMPY = Rule(overflow=Overflow.infinity)


@lru_cache(maxsize=256)
def decode_table(fmt: Format, target: Format) -> np.ndarray[Any, Any]:
    """Return the code in `target` of every code of `fmt`: 256 entries, or 65 536 above 8 bits; zero beyond its codes.

    A float `target` that cannot hold a value gets it rounded to nearest even; an integer one must hold all of them.
    """
    table = np.zeros(1 << (8 if fmt.bits <= 8 else 16), target.code_dtype)
    for code in range(1 << fmt.bits):
        table[code] = exact.encode(fmt.value(code), target, AS_NUMPY)
    table.flags.writeable = False
    return table


def sticky_shift(fmt: FloatFormat | TaperedFormat, source: FloatFormat) -> int | None:
    """Return how many bits of a `source` pattern the sticky index may drop, or None if the index would pass 16 bits.

    The index keeps sign, exponent and so many fraction bits that every value and every midpoint of the format lies on
    the grid of the index without its lowest bit, which then says "anything below".
    """
    midpoint = floor_log2(fmt.min_subnormal) - 1  # the finest boundary, and the finest value of the source:
    finest = source.min_exponent - source.mantissa_bits
    shift = max(min(source.mantissa_bits - (_fraction_bits(fmt) + 2), midpoint - finest - 1), 0)
    return shift if fmt.bits <= 8 and source.bits - shift <= 16 else None


def _fraction_bits(fmt: FloatFormat | TaperedFormat) -> int:
    if isinstance(fmt, FloatFormat):
        return fmt.mantissa_bits
    return max(row.mantissa_bits for row in fmt.regimes if not row.subnormal)


@lru_cache(maxsize=128)
def sticky_table(
    fmt: FloatFormat | TaperedFormat, rule: Rule, source: FloatFormat, shift: int
) -> np.ndarray[Any, Any]:
    """Return the code for every sticky index of `source`: ``(pattern >> shift) | (any dropped bit)``.

    Encoding is monotonic among subnormals and among normal values of one sign, so these are compiled by bisection:
    `exact` is asked only where the code changes.
    """
    size = 1 << (source.bits - shift)
    table = np.empty(size, np.uint8)
    infinity = int(source.inf_magnitude or 0) >> shift

    def code(index: int) -> int:
        return exact.encode(source.value(index << shift), fmt, rule, source=source)

    def fill(low: int, high: int) -> None:
        spans = [(low, code(low), high, code(high))]
        while spans:
            low, first, high, last = spans.pop()
            if first == last or high - low == 1:
                table[low:high], table[high] = first, last
            else:
                middle = (low + high) // 2
                between = code(middle)
                spans += [(low, first, middle, between), (middle, between, high, last)]

    for zero in (0, size // 2):
        normal = zero + (1 << (source.mantissa_bits - shift))
        for low, high in ((zero, zero), (zero + 1, normal - 1), (normal, zero + infinity - 1)):
            fill(low, high)
        table[zero + infinity] = code(zero + infinity)
        table[zero + infinity + 1 : zero + size // 2] = code(zero + infinity + 1)
    table.flags.writeable = False
    return table


def hybrid_table(fmt: TaperedFormat, rule: Rule) -> np.ndarray[Any, Any]:
    """Return the table of the hybrid kernels: half-away codes by sign, exponent and four fraction bits of float32."""
    source = format("float32")
    assert isinstance(source, FloatFormat)
    return sticky_table(fmt, replace(rule, rounding=Rounding.nearest_away), source, 19)


@lru_cache(maxsize=32)
def every_code(fmt: TaperedFormat, rule: Rule, source: FloatFormat) -> np.ndarray[Any, Any]:
    """Return the code for every one of the 65 536 patterns of a 16-bit source."""
    codes = (exact.encode(source.value(u), fmt, rule, source=source) for u in range(1 << 16))
    table = np.fromiter(codes, np.uint8, 1 << 16)
    table.flags.writeable = False
    return table


@lru_cache(maxsize=128)
def regime_tables(
    fmt: FloatFormat | TaperedFormat, source: FloatFormat
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any], int]:
    """Return what stochastic rounding needs per exponent field of the source, and the codes by rank.

    A rank counts the values from zero up. In the binade of field e, ``rank = base[e] + (significand >> shift[e])``,
    where the significand has the implicit one (subnormals: none, with the exponent of field 1).

    Returns
    -------
    shift, base : arrays with one entry per exponent field
    codes : magnitude code by rank; empty if the rank is the code
    top : rank of the largest finite value
    """
    fields = 1 << source.exponent_bits
    exponents = [max(field, 1) - source.bias for field in range(fields)]
    q = [fmt.quantum_exponent(e) for e in exponents]
    shift = np.array([q[i] - e + source.mantissa_bits for i, e in enumerate(exponents)])
    if isinstance(fmt, FloatFormat) and fmt.zero:
        base = np.array([max(e - fmt.min_exponent, 0) << fmt.mantissa_bits for e in exponents])
        return shift, base, np.empty(0, np.uint64), int(fmt.max_code)
    ordered = sorted((value, code) for code, value in _finite(fmt))
    rank = {value: i for i, (value, _) in enumerate(ordered, start=1)}
    # Where there is no zero, what lies below the smallest value becomes that value: ranks 0 and 1 share its code.
    codes = np.array([0, *(code for _, code in ordered)], np.uint64)
    top = len(ordered)
    lowest, highest = floor_log2(ordered[0][0]), floor_log2(fmt.max)
    base = np.zeros(fields, np.int64)
    for i, e in enumerate(exponents):
        if lowest <= e <= highest:
            base[i] = rank[Fraction(2) ** e] - (1 << (e - q[i]))
        elif e > highest:
            base[i] = top + 1
        elif not fmt.has_zero:
            shift[i] = 200  # rank 0, whatever the random bits say
    return shift, base, codes, top


def _finite(fmt: FloatFormat | TaperedFormat) -> list[tuple[int, Fraction]]:
    """Return (code, value) of the positive finite codes."""
    return [
        (code, fmt.magnitude_value(code))
        for code in range(int(fmt.has_zero), 1 << fmt.magnitude_bits)
        if code != fmt.inf_magnitude and not fmt.is_nan(code)
    ]
