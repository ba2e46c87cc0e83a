"""Loops of a matrix unit's output stage: shift, scale, round, clamp and offset of accumulators.

All arrays are flat and contiguous. Parameters are arrays of one element, for the whole matrix, or of one per column;
`src` then holds whole rows. Accumulators below `limit` (of their type; NaN too) are scaled by `below` instead: with a
limit of 0, a `below` of 0 makes a ReLU and any other a leaky one; the type's lowest value leaves all as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .compiled import kernel
from .ops import float_to_bits, widest_vectors

__all__ = ["multiply", "rectify", "requantise", "shift_right"]

#: 1.5 * 2**23: adding it to a float32 of magnitude up to 2**22 rounds that to an integer, to nearest even, and leaves
#: the integer's two's complement in the low bits of the sum.
_TO_INTEGER = np.float32(12582912.0)


@njit(nogil=True, error_model="numpy")
def _code(t: Any, offset: Any, bounds: Any) -> Any:
    """NaN to 0, first clamp, round, add the offset, second clamp; the low byte of the pattern is the code.

    The first clamp has integer limits, so that it may come before the rounding. The limits of the second one are
    shifted by `_TO_INTEGER`, as the sum is.
    """
    first_low, first_high, low, high = bounds
    t = t if t == t else np.float32(0)
    t = first_high if t > first_high else t
    t = first_low if t < first_low else t
    t = (t + _TO_INTEGER) + offset
    t = high if t > high else t
    t = low if t < low else t
    return float_to_bits(t)


@kernel
def requantise(src: Any, dst: Any, m1: Any, below: Any, limit: Any, offset: Any, bounds: Any) -> None:
    """``dst = clamp(clamp(rint(float32(src) * m)) + offset)``, the product rounded once to float32.

    `src` is int16, int32 or float32, `dst` uint8; `below` is float32; `m1`, `offset` (integers) and `bounds` are
    float32 arrays. `bounds` are the limits of the first and of the second clamp; as numbers LLVM cannot know, they stay
    one instruction each.
    """
    widest_vectors()
    limits = (bounds[0], bounds[1], bounds[2] + _TO_INTEGER, bounds[3] + _TO_INTEGER)
    width = m1.size
    if width == 1:
        m, c = m1[0], offset[0]
        for i in range(src.size):
            x = src[i]
            dst[i] = _code(np.float32(x) * (m if x >= limit else below), c, limits)
        return
    for start in range(0, src.size, width):
        row = src[start : start + width]
        out = dst[start : start + width]
        for j in range(width):
            x = row[j]
            out[j] = _code(np.float32(x) * (m1[j] if x >= limit else below), offset[j], limits)


@kernel
def multiply(src: Any, dst: Any, m1: Any, below: Any, limit: Any) -> None:
    """``dst = float32(src) * m``, rounded once if `m1`, `below` and `dst` are float32; exact if they are float64.

    (24 significand bits of `src` times at most 29 of `m1` fit float64.)
    """
    widest_vectors()
    width = m1.size
    if width == 1:
        m = m1[0]
        for i in range(src.size):
            x = src[i]
            dst[i] = np.float32(x) * (m if x >= limit else below)
        return
    for start in range(0, src.size, width):
        row = src[start : start + width]
        out = dst[start : start + width]
        for j in range(width):
            x = row[j]
            out[j] = np.float32(x) * (m1[j] if x >= limit else below)


@kernel
def shift_right(src: Any, dst: Any, counts: Any, saturate: Any) -> None:
    """Shift int32 right arithmetically and narrow to 16 bits, by clamping or (`saturate` 0) by keeping the low bits.

    `dst` is int32; `counts` int32, with -1 for columns that stay as they are.
    """
    widest_vectors()
    width = counts.size
    step = width if width > 1 else max(src.size, 1)
    for start in range(0, src.size, step):
        row = src[start : start + step]
        out = dst[start : start + step]
        for j in range(row.size):
            count = counts[j] if width > 1 else counts[0]
            x = row[j]
            y = x >> max(count, 0)
            z = min(max(y, -32768), 32767) if saturate else np.int32(np.int16(y))
            out[j] = z if count >= 0 else x


@kernel
def rectify(src: Any, dst: Any, zero_nan: Any) -> None:
    """``dst = src if src >= 0 else 0``; NaN stays, or becomes 0 if `zero_nan` is 1."""
    widest_vectors()
    for i in range(src.size):
        x = src[i]
        kept = x if x >= 0 else src.dtype.type(0)
        dst[i] = kept if x == x or zero_nan else x
