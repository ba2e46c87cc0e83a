"""Byte layouts of blocks other than the kernels' own, and the register order of bfp16; no values here.

The kernels read and write head, level-2 bytes, then codes from the lowest bits up, block after block. Other orders are
permutations of bytes and bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kinds.block import ORDERS, BlockFormat, SharedExponentFormat

__all__ = ["from_kernel_order", "from_register", "is_kernel_order", "to_kernel_order", "to_register"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def is_kernel_order(fmt: BlockFormat) -> bool:
    """Whether the memory image is what the kernels read and write."""
    if not isinstance(fmt, SharedExponentFormat):
        return True
    plain = fmt.bit_layout == "lsb" or (fmt.bit_layout == "planes" and fmt.mantissa_bits == 8)
    return plain and fmt.order == ORDERS[0] and (fmt.shift_order == "lsb" or not fmt.shifts)


def from_kernel_order(data: Bytes, fmt: BlockFormat) -> Bytes:
    """Return flat bytes of blocks in the order of `fmt`."""
    assert isinstance(fmt, SharedExponentFormat)
    head, shifts, codes = _parts(data.reshape(-1, fmt.block_bytes), fmt, ORDERS[0])
    if fmt.shift_order == "msb":
        shifts = _reversed_bits(shifts)
    if fmt.bit_layout == "planes" and fmt.mantissa_bits < 8:
        bits = _bits(codes).reshape(-1, fmt.block_size, fmt.mantissa_bits)
        low, top = bits[:, :, :-1], bits[:, :, -1:]
        codes = _bytes(np.concatenate([low.reshape(len(bits), -1), top.reshape(len(bits), -1)], axis=1))
    elif fmt.bit_layout == "msb":
        bits = _bits(codes).reshape(-1, fmt.block_size, fmt.mantissa_bits)
        codes = np.packbits(bits[:, :, ::-1].reshape(len(bits), -1), axis=1)
    return _joined({"exponent": head, "shifts": shifts, "mantissas": codes}, fmt)


def to_kernel_order(data: Bytes, fmt: BlockFormat) -> Bytes:
    """Undo `from_kernel_order`."""
    assert isinstance(fmt, SharedExponentFormat)
    n, size = fmt.mantissa_bits, fmt.block_size
    head, shifts, codes = _parts(data.reshape(-1, fmt.block_bytes), fmt, fmt.order)
    if fmt.shift_order == "msb":
        shifts = _reversed_bits(shifts)
    if fmt.bit_layout == "planes" and n < 8:
        bits = _bits(codes)
        low, top = bits[:, : size * (n - 1)].reshape(-1, size, n - 1), bits[:, size * (n - 1) :].reshape(-1, size, 1)
        codes = _bytes(np.concatenate([low, top], axis=2).reshape(len(bits), -1))
    elif fmt.bit_layout == "msb":
        bits = np.unpackbits(codes, axis=1).reshape(-1, size, n)
        codes = _bytes(bits[:, :, ::-1].reshape(len(bits), -1))
    return np.concatenate([head, shifts, codes], axis=1).reshape(-1)


def _parts(blocks: Bytes, fmt: SharedExponentFormat, order: str) -> tuple[Bytes, Bytes, Bytes]:
    sizes = {"exponent": 1, "shifts": fmt.shift_bytes, "mantissas": fmt.block_bytes - 1 - fmt.shift_bytes}
    found, at = {}, 0
    for name in order.split():
        found[name] = blocks[:, at : at + sizes[name]]
        at += sizes[name]
    return found["exponent"], found["shifts"], found["mantissas"]


def _joined(parts: dict[str, Bytes], fmt: SharedExponentFormat) -> Bytes:
    return np.concatenate([parts[name] for name in fmt.order.split()], axis=1).reshape(-1)


def _bits(data: Bytes) -> Bytes:
    return np.unpackbits(data, axis=1, bitorder="little")


def _bytes(bits: Bytes) -> Bytes:
    return np.packbits(bits, axis=1, bitorder="little")


def _reversed_bits(data: Bytes) -> Bytes:
    return np.packbits(np.unpackbits(data, axis=1), axis=1, bitorder="little")


def to_register(data: Bytes, fmt: BlockFormat, elements: int = 64) -> Bytes:
    """Return stream bytes of bfp16 blocks in register order: `elements` mantissas, then their exponents.

    The C structure of 64 bfp16ebs8 values is 64 mantissa bytes and 8 exponent bytes (specs/aie.md 7; measured).

    Raises
    ------
    ValueError
        For a format with level-2 exponents or narrow mantissas, or a number of blocks that fills no register.
    """
    blocks = _register_blocks(data, fmt, elements)
    part = data.reshape(-1, blocks, fmt.block_bytes)
    mantissas, exponents = part[:, :, 1:].reshape(len(part), -1), part[:, :, 0]
    return np.concatenate([mantissas, exponents], axis=1).reshape(-1)


def from_register(data: Bytes, fmt: BlockFormat, elements: int = 64) -> Bytes:
    """Undo `to_register`."""
    blocks = _register_blocks(data, fmt, elements)
    part = data.reshape(-1, blocks * fmt.block_bytes)
    mantissas = part[:, :elements].reshape(-1, blocks, fmt.block_size)
    return np.concatenate([part[:, elements:, None], mantissas], axis=2).reshape(-1)


def _register_blocks(data: Bytes, fmt: BlockFormat, elements: int) -> int:
    if not isinstance(fmt, SharedExponentFormat) or fmt.shifts or fmt.mantissa_bits != 8:
        raise ValueError(f"{fmt.name} has no register order; bfp16ebs8 and bfp16ebs16 have")
    if elements <= 0 or elements % fmt.block_size:
        raise ValueError(f"elements={elements!r} must be a multiple of {fmt.block_size}")
    blocks = elements // fmt.block_size
    if data.size % (blocks * fmt.block_bytes):
        raise ValueError(
            f"data has {data.size} bytes; a register of {elements} {fmt.name} values takes {blocks * fmt.block_bytes}"
        )
    return blocks
