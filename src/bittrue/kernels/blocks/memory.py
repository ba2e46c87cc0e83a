"""Blocks in bytes: what all block kernels share."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.extending import intrinsic

from ..compiled import kernel
from ..ops import and_, lshr, or_, shl
from .lanes import inlined, load, paired, store, to_longs, unpaired

TILE = 8192  # elements per pass
AHEAD = 1024  # elements between those at work and those the memory is asked for


# --- bytes ------------------------------------------------------------------------------------------------------------


def _pointer(context: Any, builder: Any, kind: Any, array: Any, offset: Any, width: int) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), ir.IntType(width).as_pointer())


@intrinsic
def store_word(typingctx: Any, array: Any, offset: Any, word: Any) -> Any:
    """Store 8 bytes at any offset of an array of bytes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _pointer(context, builder, signature.args[0], args[0], args[1], 64)).align = 1
        return context.get_dummy_value()

    return types.none(array, types.int64, types.uint64), codegen


@intrinsic
def load_word(typingctx: Any, array: Any, offset: Any) -> Any:
    """Load 8 bytes from any offset of an array of bytes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = builder.load(_pointer(context, builder, signature.args[0], args[0], args[1], 64))
        word.align = 1
        return word

    return types.uint64(array, types.int64), codegen


@intrinsic
def store_byte(typingctx: Any, array: Any, offset: Any, byte: Any) -> Any:
    """Store a byte, without the check for a negative index."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _pointer(context, builder, signature.args[0], args[0], args[1], 8))
        return context.get_dummy_value()

    return types.none(array, types.int64, types.uint8), codegen


@intrinsic
def load_byte(typingctx: Any, array: Any, offset: Any) -> Any:
    """Load a byte, without the check for a negative index."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args[0], args[0], args[1], 8))

    return types.uint8(array, types.int64), codegen


@intrinsic
def double_to_bits(typingctx: Any, x: Any) -> Any:
    """The pattern (uint64) of a float64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), codegen


@inlined
def folded(codes: Any, bits: Any) -> Any:
    """Lanes of 64 bits with the codes, of `bits` bits, of eight lanes of 16 bits each, the first lowest."""
    w = paired(codes)
    w = and_(or_(w, lshr(w, 16 - bits)), (1 << 2 * bits) - 1)
    w = paired(w)
    w = paired(to_longs(or_(w, lshr(w, 32 - 2 * bits))))
    four = (1 << 4 * bits) - 1
    return or_(and_(w, four), and_(lshr(w, 32 - 4 * bits), four << 4 * bits))


@inlined
def unfolded(data: Any, bits: Any) -> Any:
    """The inverse of `folded`, from and to lanes of 8 bits."""
    w = paired(paired(paired(data)))
    four, two, one = (1 << 4 * bits) - 1, (1 << 2 * bits) - 1, (1 << bits) - 1
    w = unpaired(or_(and_(w, four), and_(shl(w, 32 - 4 * bits), four << 32)))
    w = unpaired(or_(and_(w, two), and_(shl(w, 16 - 2 * bits), two << 16)))
    return unpaired(or_(and_(w, one), and_(shl(w, 8 - bits), one << 8)))


@njit(nogil=True, error_model="numpy")
def _padded(src: Any, start: Any, n: Any, spare: Any, lanes: Any) -> Any:
    """Where `n` elements lie in whole vectors: in `src` at `start`, or copied and followed by zeros."""
    if n % lanes == 0:
        return src, start
    spare[:n] = src[start : start + n]
    spare[n : n + lanes - n % lanes] = 0
    return spare, 0


@inlined
def _parts(shape: Any) -> Any:
    """Constants of a geometry: level-2 bytes and words per block."""
    return (1 << len(shape[1])) >> 3, (1 << (len(shape[0]) + len(shape[1]))) >> 3


@njit(nogil=True, error_model="numpy")
def _whole(size: Any, at: Any, blocks: Any, shape: Any, block_bytes: Any, step: Any) -> Any:
    """How many of the blocks from `at` on may be moved in words, without touching bytes beyond the end."""
    shift_bytes, per_block = _parts(shape)
    beyond = 1 + shift_bytes + (per_block - 1) * step + 8 - block_bytes
    return blocks if at + blocks * block_bytes + beyond <= size else max(blocks - 1 - beyond // block_bytes, 0)


@njit(nogil=True, error_model="numpy")
def _pack(dst: Any, at: Any, words: Any, heads: Any, shifts: Any, shape: Any, layout: Any) -> None:
    """Write blocks: head, level-2 bytes, words of `step` bytes each; nothing beyond the end of `dst`.

    Words are stored whole, one after the other, so that the next one covers what is beyond its `step` bytes.
    """
    shift_bytes, per_block = _parts(shape)
    block_bytes, step = layout
    whole = _whole(dst.size, at, heads.size, shape, block_bytes, step)
    offset = at
    for b in range(whole):
        store_byte(dst, offset, heads[b])
        for k in range(shift_bytes):
            store_byte(dst, offset + 1 + k, shifts[b * shift_bytes + k])
        for k in range(per_block):
            store_word(dst, offset + 1 + shift_bytes + k * step, words[b * per_block + k])
        offset += block_bytes
    for b in range(whole, heads.size):
        dst[offset] = heads[b]
        for k in range(shift_bytes):
            dst[offset + 1 + k] = shifts[b * shift_bytes + k]
        for k in range(per_block):
            w = words[b * per_block + k]
            for byte in range(step):
                dst[offset + 1 + shift_bytes + k * step + byte] = (w >> np.uint64(8 * byte)) & np.uint64(255)
        offset += block_bytes


@njit(nogil=True, error_model="numpy")
def _unpack(src: Any, at: Any, words: Any, heads: Any, shifts: Any, shape: Any, layout: Any) -> None:
    """Read blocks; words carry what follows them in their upper bytes, which `unfolded` ignores."""
    shift_bytes, per_block = _parts(shape)
    block_bytes, step = layout
    whole = _whole(src.size, at, heads.size, shape, block_bytes, step)
    offset = at
    for b in range(whole):
        heads[b] = load_byte(src, offset)
        for k in range(shift_bytes):
            shifts[b * shift_bytes + k] = load_byte(src, offset + 1 + k)
        for k in range(per_block):
            words[b * per_block + k] = load_word(src, offset + 1 + shift_bytes + k * step)
        offset += block_bytes
    for b in range(whole, heads.size):
        heads[b] = src[offset]
        for k in range(shift_bytes):
            shifts[b * shift_bytes + k] = src[offset + 1 + k]
        for k in range(per_block):
            w = np.uint64(0)
            for byte in range(step):
                w |= np.uint64(src[offset + 1 + shift_bytes + k * step + byte]) << np.uint64(8 * byte)
            words[b * per_block + k] = w
        offset += block_bytes


# --- whole arrays -----------------------------------------------------------------------------------------------------


@kernel
def unpack(src: Any, codes: Any, heads: Any, shifts: Any, shape: Any, layout: Any) -> None:
    """Take packed blocks apart: element codes, heads (exponent or scale), level-2 bytes."""
    shift_bytes, per_block = _parts(shape)
    words = np.empty(TILE // 8, np.uint64)
    data, eight = words.view(np.uint8), ((), (), (0, 0, 0))
    for start in range(0, codes.size, TILE):
        n = min(TILE, codes.size - start)
        first, last = start // 8 // per_block, (start + n) // 8 // per_block
        level2 = shifts[first * shift_bytes : last * shift_bytes]
        _unpack(src, first * layout[0], words, heads[first:last], level2, shape, layout)
        for i in range(0, n, 8):
            store(codes, start + i, unfolded(load(data, i, eight), layout[1]))
