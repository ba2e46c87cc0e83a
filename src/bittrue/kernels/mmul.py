"""Matrix products of the AI Engine: aligned additions, and block floats; plain matrices, accumulators in place."""

from typing import Any

import numpy as np

from .compiled import kernel
from .ops import widest_vectors

_LEAST = 2.0**-126  # the smallest normal float32, whose exponent subnormals have, too
_NORMAL = 2.0**-126 - 2.0**-151  # from here on, 24 bits round to a normal float32
_MAGIC = 1.5 * 2.0**52  # added and taken away: rounds a small double to an integer, ties to even


@kernel
def aligned(acc: Any, a: Any, b: Any, power_a: Any, power_b: Any, step: int, work: Any) -> None:
    """``acc += a @ b`` where `step` products and the accumulator are added at once, aligned to the largest exponent.

    Products of the doubles in `a` and `b` must be exact. `power_a` and `power_b` hold the powers of two of their
    elements (of subnormals, the least normal one's), for the exponent of a product is the sum of those of its factors,
    whether or not their significands multiply to 2 or more. Each addend is rounded to nearest even at 23 fraction bits
    below the largest exponent; the integers are added exactly; the sum is rounded to 24 bits once, and what is
    subnormal then becomes a zero of its sign. `work`: three rows of doubles as long as a row of `acc`.
    """
    widest_vectors()
    n = acc.shape[1]
    largest, total, scale = work[0, :n], work[1, :n], work[2, :n]
    exponents = largest.view(np.int64)
    factors = scale.view(np.int64)
    for i in range(a.shape[0]):
        row = acc[i]
        for start in range(0, a.shape[1], step):
            stop = min(start + step, a.shape[1])
            for j in range(n):
                p = abs(np.float64(row[j]))
                largest[j] = _LEAST if 0 < p < _LEAST else p
            for k in range(start, stop):
                x, line = power_a[i, k], power_b[k]
                for j in range(n):
                    p = x * line[j]
                    largest[j] = p if p > largest[j] else largest[j]
            for j in range(n):
                e = exponents[j] >> np.int64(52)
                e = e if e > np.int64(24) else np.int64(24)
                factors[j] = (np.int64(2069) - e) << np.int64(52)  # two to the power of 23 - exponent
                total[j] = (np.float64(row[j]) * scale[j] + _MAGIC) - _MAGIC
            for k in range(start, stop):
                x, line = a[i, k], b[k]
                for j in range(n):
                    total[j] += ((x * line[j]) * scale[j] + _MAGIC) - _MAGIC
            for j in range(n):
                factors[j] = (np.int64(2046) << np.int64(52)) - factors[j]  # the reciprocal
                t = total[j] * scale[j]
                row[j] = np.float32(t if not abs(t) < _NORMAL else 0 * t)


@kernel
def aligned_singly(acc: Any, a: Any, b: Any, power_a: Any, power_b: Any, work: Any) -> None:
    """``acc += a @ b`` product by product, each aligned with the accumulator as XDNA2's unit does; see `aligned`.

    A product counts with twice the power of two of its factors' product. It is rounded to nearest even at 23 fraction
    bits below the larger exponent, the accumulator at 26; the exact sum is rounded to float32.
    """
    widest_vectors()
    n = acc.shape[1]
    largest, scale = work[0, :n], work[1, :n]
    exponents = largest.view(np.int64)
    factors = scale.view(np.int64)
    for i in range(a.shape[0]):
        row = acc[i]
        for k in range(a.shape[1]):
            x, line = a[i, k], b[k]
            power, powers = 2 * power_a[i, k], power_b[k]
            for j in range(n):
                old = abs(np.float64(row[j]))
                before, p = (_LEAST if 0 < old < _LEAST else old), power * powers[j]
                largest[j] = p if p > before else before
            for j in range(n):
                e = exponents[j] >> np.int64(52)
                e = e if e > np.int64(24) else np.int64(24)
                factors[j] = (np.int64(2069) - e) << np.int64(52)  # two to the power of 23 - exponent
            for j in range(n):
                eighths = (8 * (np.float64(row[j]) * scale[j]) + _MAGIC) - _MAGIC
                units = ((x * line[j]) * scale[j] + _MAGIC) - _MAGIC
                row[j] = np.float32((eighths + 8 * units) / 8 / scale[j])


@kernel
def aligned_blocks(
    acc: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, size: int, top: float, sums: Any, work: Any
) -> None:
    """As `blocks`, but each sum of a block and the accumulator are aligned: both are rounded to nearest even at 23
    fraction bits below the larger exponent, which of a block is that of its two scales times `top`.
    """
    widest_vectors()
    n = acc.shape[1]
    largest, scale = work[0, :n], work[1, :n]
    exponents = largest.view(np.int64)
    factors = scale.view(np.int64)
    for i in range(a.shape[0]):
        row = acc[i]
        for block in range(scale_a.shape[1]):
            for j in range(n):
                sums[j] = 0
            for k in range(block * size, (block + 1) * size):
                x, line = a[i, k], b[k]
                for j in range(n):
                    sums[j] += x * line[j]
            left, right = scale_a[i, block], scale_b[block]
            for j in range(n):
                old = abs(np.float64(row[j]))
                before, p = (_LEAST if 0 < old < _LEAST else old), left * right[j] * top
                largest[j] = p if p > before else before
            for j in range(n):
                e = exponents[j] >> np.int64(52)
                e = e if e > np.int64(24) else np.int64(24)
                factors[j] = (np.int64(2069) - e) << np.int64(52)
            for j in range(n):
                units = (np.float64(row[j]) * scale[j] + _MAGIC) - _MAGIC
                units += (np.float64(sums[j]) * left * right[j] * scale[j] + _MAGIC) - _MAGIC
                row[j] = np.float32(units / scale[j])


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
            for j in range(n):
                sums[j] = 0
            for k in range(block * size, (block + 1) * size):
                x, line = a[i, k], b[k]
                for j in range(n):
                    sums[j] += x * line[j]
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
