"""Loops that turn codes into float values; they know plain arrays, no format."""

from typing import Any

from .compiled import kernel
from .memory import ask_ahead_to_store, step_of
from .ops import half_bits_to_float, or_, shl, widest_vectors


@kernel
def decode_table(codes: Any, table: Any, dst: Any) -> int:
    """``dst[i] = table[codes[i]]``; return the OR of all codes, so that the caller can refuse codes out of range.

    `codes` is uint8 with a `table` of 256 entries, or uint16 with one of 65 536; `table` and `dst` have one dtype.
    """
    seen = 0
    for i in range(codes.size):
        code = codes[i]
        seen |= code
        dst[i] = table[code]
    return seen


@kernel
def half_to_float(codes: Any, dst: Any) -> None:
    """float16 patterns (uint16) to float32; signalling NaNs become quiet."""
    widest_vectors()
    step = step_of(dst)
    for start in range(0, codes.size, step):
        part, out = codes[start : start + step], dst[start : start + step]
        ask_ahead_to_store(out)
        for i in range(out.size):
            out[i] = half_bits_to_float(part[i])


@kernel
def bfloat_to_float(codes: Any, dst: Any) -> None:
    """bfloat16 patterns (uint16) to float32 patterns (`dst` is uint32)."""
    widest_vectors()
    zero = dst.dtype.type(0)
    step = step_of(dst)
    for start in range(0, codes.size, step):
        part, out = codes[start : start + step], dst[start : start + step]
        ask_ahead_to_store(out)
        for i in range(out.size):
            out[i] = shl(or_(zero, part[i]), 16)
