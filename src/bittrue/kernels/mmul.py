"""Matrix products of the AI Engine: aligned additions, and block floats; plain matrices, accumulators in place."""

from typing import Any

import numpy as np
from numba import njit

from .compiled import kernel
from .ops import widest_vectors

_LEAST = 2.0**-126  # the smallest normal float32, whose exponent subnormals have, too
_NORMAL = 2.0**-126 - 2.0**-151  # from here on, 24 bits round to a normal float32
_MAGIC = 1.5 * 2.0**52  # added and taken away: rounds a small double to an integer, ties to even


@njit(nogil=True, error_model="numpy")
def _magnitude(x: Any) -> Any:
    """The magnitude of a float32 as far as its exponent counts."""
    m = abs(np.float64(x))
    return _LEAST if 0 < m < _LEAST else m


@njit(nogil=True, error_model="numpy")
def _set_units(largest: Any, scale: Any, back: Any) -> None:
    """From patterns of doubles: two to the power of 23 less the exponent of `largest`, which brings units to integers,
    and its reciprocal.
    """
    for j in range(largest.size):
        e = largest[j] >> np.int64(52)
        e = e if e > np.int64(24) else np.int64(24)
        scale[j] = (np.int64(2069) - e) << np.int64(52)
        back[j] = (e - np.int64(23)) << np.int64(52)


@njit(nogil=True, error_model="numpy")
def _rows(work: Any, n: int) -> Any:
    """Room for `largest`, `scale` and `back`, and their patterns for `_set_units`."""
    largest, scale, back = work[0, :n], work[1, :n], work[2, :n]
    return largest, scale, back, (largest.view(np.int64), scale.view(np.int64), back.view(np.int64))


@njit(nogil=True, error_model="numpy")
def _units(x: Any) -> Any:
    """The nearest integer, ties to even."""
    return (x + _MAGIC) - _MAGIC


@kernel
def aligned(acc: Any, a: Any, b: Any, power_a: Any, power_b: Any, step: int, work: Any) -> None:
    """``acc += a @ b`` where `step` products and the accumulator are added at once, aligned to the largest exponent.

    Products of the doubles in `a` and `b` must be exact. `power_a` and `power_b` hold the powers of two of their
    elements (of subnormals, the least normal one's), for the exponent of a product is the sum of those of its factors,
    whether or not their significands multiply to 2 or more. Each addend is rounded to nearest even at 23 fraction bits
    below the largest exponent; the integers are added exactly; the sum is rounded to 24 bits once, and what is
    subnormal then becomes a zero of its sign. `work`: four rows of doubles as long as a row of `acc`.
    """
    widest_vectors()
    n = acc.shape[1]
    largest, scale, back, patterns = _rows(work, n)
    total = work[3, :n]
    for i in range(a.shape[0]):
        row = acc[i]
        for start in range(0, a.shape[1], step):
            stop = min(start + step, a.shape[1])
            for j in range(n):
                largest[j] = _magnitude(row[j])
            for k in range(start, stop):
                x, line = power_a[i, k], power_b[k]
                for j in range(n):
                    p = x * line[j]
                    largest[j] = p if p > largest[j] else largest[j]
            _set_units(*patterns)
            for j in range(n):
                total[j] = _units(np.float64(row[j]) * scale[j])
            for k in range(start, stop):
                x, line = a[i, k], b[k]
                for j in range(n):
                    total[j] += _units((x * line[j]) * scale[j])
            for j in range(n):
                t = total[j] * back[j]
                row[j] = np.float32(t if not abs(t) < _NORMAL else 0 * t)


@kernel
def aligned_singly(acc: Any, a: Any, b: Any, power_a: Any, power_b: Any, work: Any) -> None:
    """``acc += a @ b`` product by product, each aligned with the accumulator as XDNA2's unit does; see `aligned`.

    A product counts with twice the power of two of its factors' product. It is rounded to nearest even at 23 fraction
    bits below the larger exponent, the accumulator at 26; the exact sum is rounded to float32.
    """
    widest_vectors()
    n = acc.shape[1]
    largest, scale, back, patterns = _rows(work, n)
    for i in range(a.shape[0]):
        row = acc[i]
        for k in range(a.shape[1]):
            x, line = a[i, k], b[k]
            power, powers = 2 * power_a[i, k], power_b[k]
            for j in range(n):
                m, p = _magnitude(row[j]), power * powers[j]
                largest[j] = p if p > m else m
            _set_units(*patterns)
            for j in range(n):
                eighths = _units(8 * (np.float64(row[j]) * scale[j])) + 8 * _units((x * line[j]) * scale[j])
                row[j] = np.float32(eighths / 8 * back[j])


@njit(nogil=True, error_model="numpy")
def _add_up(a: Any, b: Any, start: int, size: int, sums: Any) -> None:
    """Add the products of a block, exactly."""
    for j in range(b.shape[1]):
        sums[j] = 0
    for k in range(start, start + size):
        x, line = a[k], b[k]
        for j in range(b.shape[1]):
            sums[j] += x * line[j]


@kernel
def aligned_blocks(
    acc: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, size: int, top: float, sums: Any, work: Any
) -> None:
    """As `blocks`, but each sum of a block and the accumulator are aligned: both are rounded to nearest even at 23
    fraction bits below the larger exponent, which of a block is that of its two scales times `top`.
    """
    widest_vectors()
    n = acc.shape[1]
    largest, scale, back, patterns = _rows(work, n)
    for i in range(a.shape[0]):
        row = acc[i]
        for block in range(scale_a.shape[1]):
            left, right = scale_a[i, block], scale_b[block]
            _add_up(a[i], b, block * size, size, sums)
            for j in range(n):
                m, p = _magnitude(row[j]), left * right[j] * top
                largest[j] = p if p > m else m
            _set_units(*patterns)
            for j in range(n):
                term = np.float64(sums[j]) * left * right[j]
                row[j] = np.float32((_units(np.float64(row[j]) * scale[j]) + _units(term * scale[j])) * back[j])


@kernel
def blocks(acc: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, size: int, sums: Any, work: Any) -> None:
    """``acc += a @ b`` of block floats: exact sums of `size` products, each added to float32 with one rounding.

    Parameters
    ----------
    acc : float32 (M, N)
    a, b : float32 (M, K), (K, N)
        Integers; the sums of `size` products must stay below 2**24.
    scale_a, scale_b : float64 (M, K / size), (K / size, N)
        Powers of two, or NaN.
    size : int
    sums, work : a row of float32 and two of float64, as long as a row of `acc`

    The sum of an accumulator and a block is rounded to odd in float64, so that rounding to float32 is the only one.
    """
    widest_vectors()
    n = acc.shape[1]
    total, errors = work[0, :n], work[1, :n]
    bits = total.view(np.int64)
    for i in range(a.shape[0]):
        row = acc[i]
        for block in range(scale_a.shape[1]):
            _add_up(a[i], b, block * size, size, sums)
            left, right = scale_a[i, block], scale_b[block]
            for j in range(n):
                old = np.float64(row[j])
                term = np.float64(sums[j]) * left * right[j]
                s = old + term
                back = s - old
                total[j] = s
                errors[j] = (old - (s - back)) + (term - back)
            for j in range(n):  # the neighbour with an odd significand on the side of the error
                away = np.int64(errors[j] > 0) - np.int64(errors[j] < 0)  # 0 if exact, and for Inf and NaN
                away = away if bits[j] >= 0 else -away
                bits[j] += away & -(~bits[j] & np.int64(1))
                row[j] = np.float32(total[j])
