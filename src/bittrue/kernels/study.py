"""The loop that measures what a format did to values for `bittrue.study`; it knows plain arrays and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import kernel

__all__ = ["errors"]


@kernel
def errors(x: Any, scaled: Any, y: Any, low: Any, high: Any, sums: Any, counts: Any) -> None:
    """Compare rows of values `x` with what became of them, `y`, and add to `sums` and `counts`.

    `scaled` is `x` over its scale, judged against the limits. Over finite pairs, in float64: sums[0] = sum x**2,
    sums[1] = sum (x - y)**2, sums[2] = sum |x - y| / |x|, sums[3] = the largest of these (x = 0 left out).
    counts[0]: finite pairs with x != 0; counts[1]: finite x whose scaled value is >= high or <= low; counts[2]: others
    that are not zero and became zero; counts[3]: x that are not finite.
    """
    for r in range(x.shape[0]):
        signal = noise = relative = 0.0
        largest = sums[3]
        for i in range(x.shape[1]):
            value = np.float64(x[r, i])
            size = abs(value)
            if not size < np.inf:
                counts[3] += 1
                continue
            error = abs(value - np.float64(y[r, i]))
            if error < np.inf:
                signal += value * value
                noise += error * error
                if size > 0:
                    counts[0] += 1
                    ratio = error / size
                    relative += ratio
                    largest = max(largest, ratio)
            if scaled[r, i] >= high or scaled[r, i] <= low:
                counts[1] += 1
            elif y[r, i] == 0 and size > 0:
                counts[2] += 1
        sums[0] += signal
        sums[1] += noise
        sums[2] += relative
        sums[3] = largest
