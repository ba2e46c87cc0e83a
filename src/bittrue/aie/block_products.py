"""Matrix products of block floats: operands as integers and powers of two, exact block sums, one rounding each."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..blocks import encode, take_apart
from ..chunks import in_chunks
from ..kinds.block import SharedExponentFormat
from .block import block_rule, type_of
from .tile import State

__all__ = ["Blocks", "add_blocks", "block_operand", "quantised"]

Array = np.ndarray[Any, Any]

#: Mantissas as float32 integers (rows, K), the power of two of each block (rows, blocks), elements of a block.
Blocks = tuple[Array, Array, int]


def _encoded(x: Array, fmt: SharedExponentFormat, state: State) -> Array:
    if type_of(fmt) is not None:
        return encode(x, fmt, rule=block_rule(fmt, state))
    return encode(x, fmt, rounding=state.rounding.rounding)


def quantised(x: Array, fmt: SharedExponentFormat, state: State) -> Blocks:
    """Quantise the rows of a matrix under a tile's rounding mode."""
    return _take(_encoded(x, fmt, state), fmt, len(x))


def _take(data: Array, fmt: SharedExponentFormat, rows: int) -> Blocks:
    heads, shifts, codes = take_apart(data, fmt)
    mantissas = codes.astype(np.int32)
    top = 1 << (fmt.mantissa_bits - 1)
    if fmt.twos_complement:
        mantissas = (mantissas ^ top) - top
    else:
        mantissas = np.where(mantissas & top, -(mantissas & (top - 1)), mantissas)
    exponents = heads.astype(np.int32) - fmt.bias - fmt.fraction_bits
    if fmt.shift_group:  # a level-2 exponent halves: keep integers by doubling the others
        mantissas <<= 1 - np.repeat(shifts, fmt.shift_group, axis=1).astype(np.int32)
        exponents -= 1
    scale = np.ldexp(1.0, exponents)
    if fmt.exponent_255 == "nan":
        scale[heads == 255] = np.nan
    return mantissas.astype(np.float32).reshape(rows, -1), scale.reshape(rows, -1), fmt.block_size


def block_operand(x: Any, fmt: SharedExponentFormat, rows: int, columns: int, argument: str, state: State) -> Blocks:
    """Take a block vector, or values to be quantised along k, row by row."""
    own = getattr(x, "format", None)
    if isinstance(own, SharedExponentFormat):
        if own.name != fmt.name:
            raise ValueError(f"{argument} holds {own.name}, not {fmt.name}")
        data = np.frombuffer(x.tobytes(), np.uint8)
        if data.size != rows * columns // fmt.block_size * fmt.block_bytes:
            raise ValueError(f"{argument} has another number of elements than {rows} x {columns} = {rows * columns}")
        return _take(data, fmt, rows)
    values = np.asarray(x)
    if values.size != rows * columns or (values.ndim > 1 and values.shape != (rows, columns)):
        raise ValueError(f"{argument} has shape {values.shape}; {rows} x {columns} values are expected")
    return quantised(values.reshape(rows, columns), fmt, state)


def add_blocks(
    acc: Array, left: Blocks, right: Blocks, fmt: SharedExponentFormat, state: State, threads: int | None
) -> None:
    """Add ``left @ right.T`` of blocks of `fmt` to float32 accumulators, in ascending k."""
    from ..kernels import mmul as kernels

    a, scale_a, size = left
    b, scale_b = (np.ascontiguousarray(v.T) for v in right[:2])
    n = max(acc.shape[1], 1)
    top = 4.0 ** (fmt.fraction_bits + bool(fmt.shift_group))  # the scales are those of integers

    def work(lo: int, hi: int) -> int:
        sums, rows = np.empty(n, np.float32), np.empty((3, n))
        blocks = acc[lo:hi], a[lo:hi], b, scale_a[lo:hi], scale_b, size
        if state.choices.mx_accumulation == "aligned":
            kernels.aligned_blocks(*blocks, top, sums, rows)
        else:
            kernels.blocks(*blocks, sums, rows)
        return 0

    in_chunks(work, len(acc), threads, b.size)
    acc.view(np.uint32)[np.isnan(acc)] = 0x7FC00000
