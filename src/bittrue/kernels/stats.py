"""The loop that measures what a conversion did to values; it knows plain arrays and numbers.

Elements go round `LANES` running sums, so that every step of the loop is a vector operation without reassociation: the
result depends on the data alone, not on the machine.
"""

from typing import Any

import numpy as np

from .compiled import kernel
from .ops import widest_vectors

__all__ = ["COUNTS", "SUMS", "difference"]

LANES = 512

#: Meaning of the entries of `sums` and `counts`.
SUMS = ("signal", "noise", "max_abs", "max_rel")
COUNTS = ("overflowed", "flushed", "nan", "infinite")


@kernel
def difference(x: Any, y: Any, low: Any, high: Any, sums: Any, counts: Any) -> None:
    """Compare values `x` with what became of them, `y`, and add to `sums` (float64) and `counts` (int64).

    x, y, low, high: one float type. signal = sum of x**2 and noise = sum of (x - y)**2 in float64, over the elements of
    which both are finite; max_abs and max_rel (x = 0 left out) are maxima over the same. overflowed: x >= high or
    x <= low, infinities left out; flushed: y is zero and x is none of zero, infinite and outside; nan, infinite: of x.
    """
    widest_vectors()
    signal, noise = np.zeros(LANES), np.zeros(LANES)
    max_abs, max_rel = np.zeros(LANES), np.zeros(LANES)
    outside, flushed = np.zeros(LANES, x.dtype), np.zeros(LANES, x.dtype)  # small counts: exact in any float
    nan, infinite = np.zeros(LANES, x.dtype), np.zeros(LANES, x.dtype)
    one, zero = x.dtype.type(1), x.dtype.type(0)
    for start in range(0, x.size, LANES):
        n = min(LANES, x.size - start)
        before, after = x[start : start + n], y[start : start + n]
        for i in range(n):
            value = np.float64(before[i])
            change = abs(value - np.float64(after[i]))
            finite = change < np.inf  # false for NaN
            signal[i] += value * value if finite else 0.0
            error = change if finite else 0.0
            noise[i] += error * error
            max_abs[i] = error if error > max_abs[i] else max_abs[i]
            quotient = error / abs(value)
            ratio = quotient if quotient < np.inf else 0.0
            max_rel[i] = ratio if ratio > max_rel[i] else max_rel[i]
        for i in range(n):
            value, size = before[i], abs(before[i])
            beyond = (value >= high) | (value <= low)
            outside[i] += one if beyond else zero
            flushed[i] += one if (after[i] == 0) & (size > 0) & (size < np.inf) & (not beyond) else zero
            nan[i] += one if value != value else zero
            infinite[i] += one if size == np.inf else zero
    for i in range(LANES):
        sums[0] += signal[i]
        sums[1] += noise[i]
        sums[2] = max(sums[2], max_abs[i])
        sums[3] = max(sums[3], max_rel[i])
        counts[0] += np.int64(outside[i]) - np.int64(infinite[i])
        counts[1] += np.int64(flushed[i])
        counts[2] += np.int64(nan[i])
        counts[3] += np.int64(infinite[i])
