"""Loops that scale accumulators on their way into a format; they know plain arrays, no format."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import kernel
from .ops import float_to_half_bits, widest_vectors

__all__ = ["scale_to_half"]


@kernel
def scale_to_half(src: Any, dst: Any, scale: Any, cap: Any) -> None:
    """``dst = half(float32(src) * scale)`` as bit patterns, each step rounded to nearest even.

    `src` is int32, `dst` uint16, `scale` a finite float32. Products are clamped to +-`cap` (float32: 65504 to saturate,
    Inf to let what rounds beyond it become Inf).
    """
    widest_vectors()
    for i in range(src.size):
        x = np.float32(src[i]) * scale
        x = cap if x > cap else x
        x = -cap if x < -cap else x
        dst[i] = float_to_half_bits(x)
