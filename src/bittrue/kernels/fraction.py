"""Loops that shorten the fraction of float32 patterns, which stay float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import kernel
from .ops import add, and_, eq, gt, lit, lshr, or_, select, widest_vectors

__all__ = ["shorten"]


@kernel
def shorten(src: Any, dst: Any, dropped: Any, half: Any, even: Any, beyond: Any) -> None:
    """Round float32 patterns (uint32) to ``23 - dropped`` fraction bits.

    The increment below the last kept bit is `half`, plus that bit if `even` is 1: ``2**(dropped - 1) - 1`` with `even`
    rounds to nearest even, without it ties toward zero, ``2**(dropped - 1)`` ties away from zero, and 0 cuts. A carry
    out of the fraction runs into the exponent, where it belongs; finite values that it makes Inf become the magnitude
    `beyond`. Inf and NaN stay as they are. All numbers are uint32.
    """
    widest_vectors()
    magnitude, infinite = np.uint32(0x7FFFFFFF), np.uint32(0x7F800000)
    kept = np.uint32(0xFFFFFFFF) << dropped
    for i in range(src.size):
        x = src[i]
        last = and_(lshr(x, lit(x, dropped)), lit(x, even))
        size = and_(x, lit(x, magnitude))
        y = and_(add(size, add(lit(x, half), last)), lit(x, kept))
        y = select(eq(y, lit(x, infinite)), lit(x, beyond), y)
        y = select(gt(lit(x, infinite), size), y, size)
        dst[i] = or_(y, and_(x, lit(x, ~magnitude)))
