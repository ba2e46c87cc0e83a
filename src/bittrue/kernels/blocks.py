"""Loops between float bit patterns and packed blocks; they know plain arrays and numbers, no format.

The work is done tile by tile, in short passes over scratch arrays that stay in the first-level cache, each of which
LLVM turns into vector code of its own lane width:

1. exponents: the exponent fields as bytes;
2. maxima: pairs of bytes are merged level by level until one is left per group and per block, and block results are
   spread back to the elements the same way, so that any power of two is served by one loop;
3. codes: the significand is shifted to the block's step and rounded as in `encode`. Patterns are doubled, which drops
   the sign; of float32 the upper half alone is used, doubled, with a sticky bit for the lower one in the place made
   free (16-bit lanes: 8 exponent bits, 7 fraction bits, sticky);
4. packing: the codes of eight elements are folded in a 64-bit word, of which the bytes are stored.

Whether a mantissa will round beyond its range is known from its pattern alone: a constant added to the fraction, which
depends on the rounding rule and the sign, carries into the exponent field exactly if it does. So the exponent of a
block that must go up is found in pass 2, and nothing is ever quantised twice.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.extending import intrinsic

from .encode import _round, _split
from .ops import (
    add,
    and_,
    bits_to_float,
    eq,
    float_to_bits,
    gt,
    lit,
    lshr,
    lt,
    lt_signed,
    max_,
    min_,
    ne,
    or_,
    select,
    shl,
    sub,
    widest_vectors,
    xor,
)

TILE = 8192  # elements per pass

#: Overflow policies of shared exponents.
SATURATE, BUMP, CLEAR = 0, 1, 2

#: What `encode_shared` reports (bits of its result).
NONFINITE, AT_TOP = 1, 2


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
def signed_to_float(typingctx: Any, x: Any) -> Any:
    """The float32 of a small integer (uint32 lanes)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.sitofp(args[0], ir.FloatType())

    return types.float32(x), codegen


@intrinsic
def double_to_bits(typingctx: Any, x: Any) -> Any:
    """The pattern (uint64) of a float64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), codegen


def fold_masks(bits: int) -> np.ndarray:
    """Return masks and shift counts for words of eight codes of `bits` bits: low, high, shift of three folds."""
    found = []
    for width in (8, 16, 32):
        field = bits * width // 8
        low = sum(((1 << field) - 1) << lane for lane in range(0, 64, 2 * width))
        found += [low, low << width, width - field]
    return np.array(found, np.uint64)


@njit(nogil=True, error_model="numpy")
def _fold(codes: Any, masks: Any, words: Any) -> None:
    widest_vectors()
    source = codes.view(np.uint64)
    for i in range(words.size):
        w = source[i]
        w = (w & masks[0]) | ((w & masks[1]) >> masks[2])
        w = (w & masks[3]) | ((w & masks[4]) >> masks[5])
        words[i] = (w & masks[6]) | ((w & masks[7]) >> masks[8])


@njit(nogil=True, error_model="numpy")
def _unfold(words: Any, masks: Any, codes: Any) -> None:
    widest_vectors()
    target = codes.view(np.uint64)
    for i in range(words.size):
        w = words[i]
        w = (w & masks[6]) | ((w << masks[8]) & masks[7])
        w = (w & masks[3]) | ((w << masks[5]) & masks[4])
        target[i] = (w & masks[0]) | ((w << masks[2]) & masks[1])


@njit(nogil=True, error_model="numpy")
def _whole(size: Any, at: Any, blocks: Any, layout: Any) -> Any:
    """How many of the blocks from `at` on may be moved in words, without touching bytes beyond the end."""
    block_bytes, shift_bytes, per_block, step = layout
    beyond = 1 + shift_bytes + (per_block - 1) * step + 8 - block_bytes
    return blocks if at + blocks * block_bytes + beyond <= size else max(blocks - 1 - beyond // block_bytes, 0)


@njit(nogil=True, error_model="numpy")
def _pack(dst: Any, at: Any, words: Any, heads: Any, shifts: Any, layout: Any) -> None:
    """Write blocks: head, level-2 bytes, words of `step` bytes each; nothing beyond the end of `dst`.

    Words are stored whole, one after the other, so that the next one covers what is beyond its `step` bytes.
    """
    block_bytes, shift_bytes, per_block, step = layout
    whole = _whole(dst.size, at, heads.size, layout)
    offset = at
    if shift_bytes == 1 and per_block == 2:
        for b in range(whole):
            store_byte(dst, offset, heads[b])
            store_byte(dst, offset + 1, shifts[b])
            store_word(dst, offset + 2, words[2 * b])
            store_word(dst, offset + 2 + step, words[2 * b + 1])
            offset += block_bytes
    elif shift_bytes == 0 and per_block == 4:
        for b in range(whole):
            store_byte(dst, offset, heads[b])
            store_word(dst, offset + 1, words[4 * b])
            store_word(dst, offset + 1 + step, words[4 * b + 1])
            store_word(dst, offset + 1 + 2 * step, words[4 * b + 2])
            store_word(dst, offset + 1 + 3 * step, words[4 * b + 3])
            offset += block_bytes
    elif shift_bytes == 0 and per_block == 2:
        for b in range(whole):
            store_byte(dst, offset, heads[b])
            store_word(dst, offset + 1, words[2 * b])
            store_word(dst, offset + 1 + step, words[2 * b + 1])
            offset += block_bytes
    elif shift_bytes == 0 and per_block == 1:
        for b in range(whole):
            store_byte(dst, offset, heads[b])
            store_word(dst, offset + 1, words[b])
            offset += block_bytes
    else:
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
def _unpack(src: Any, at: Any, words: Any, heads: Any, shifts: Any, layout: Any) -> None:
    """Read blocks; words carry what follows them in their upper bytes, which `_unfold` ignores."""
    block_bytes, shift_bytes, per_block, step = layout
    whole = _whole(src.size, at, heads.size, layout)
    offset = at
    if shift_bytes == 1 and per_block == 2:
        for b in range(whole):
            heads[b] = load_byte(src, offset)
            shifts[b] = load_byte(src, offset + 1)
            words[2 * b] = load_word(src, offset + 2)
            words[2 * b + 1] = load_word(src, offset + 2 + step)
            offset += block_bytes
    elif shift_bytes == 0 and per_block == 4:
        for b in range(whole):
            heads[b] = load_byte(src, offset)
            words[4 * b] = load_word(src, offset + 1)
            words[4 * b + 1] = load_word(src, offset + 1 + step)
            words[4 * b + 2] = load_word(src, offset + 1 + 2 * step)
            words[4 * b + 3] = load_word(src, offset + 1 + 3 * step)
            offset += block_bytes
    elif shift_bytes == 0 and per_block == 2:
        for b in range(whole):
            heads[b] = load_byte(src, offset)
            words[2 * b] = load_word(src, offset + 1)
            words[2 * b + 1] = load_word(src, offset + 1 + step)
            offset += block_bytes
    elif shift_bytes == 0 and per_block == 1:
        for b in range(whole):
            heads[b] = load_byte(src, offset)
            words[b] = load_word(src, offset + 1)
            offset += block_bytes
    else:
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


@njit(nogil=True, error_model="numpy")
def _gather_bits(flags: Any, shifts: Any) -> None:
    """Pack bytes of 0 or 1 into bits, the first lowest: the product moves bit 8p to bit 56 + p."""
    widest_vectors()
    words = flags.view(np.uint64)
    for i in range(shifts.size):
        shifts[i] = (words[i] * np.uint64(0x0102040810204080)) >> np.uint64(56)


@njit(nogil=True, error_model="numpy")
def _spread_bits(shifts: Any, flags: Any) -> None:
    widest_vectors()
    words = flags.view(np.uint64)
    for i in range(shifts.size):
        w = (np.uint64(shifts[i]) * np.uint64(0x0101010101010101)) & np.uint64(0x8040201008040201)
        words[i] = ((w + np.uint64(0x7F7F7F7F7F7F7F7F)) >> np.uint64(7)) & np.uint64(0x0101010101010101)


# --- maxima and back --------------------------------------------------------------------------------------------------


@njit(nogil=True, error_model="numpy")
def _halve(src: Any, dst: Any) -> None:
    widest_vectors()
    pairs = src.view(np.uint16)
    for i in range(dst.size):
        w = pairs[i]
        dst[i] = max_(and_(w, 0xFF), lshr(w, 8))


@njit(nogil=True, error_model="numpy")
def _double(src: Any, dst: Any) -> None:
    widest_vectors()
    pairs = dst.view(np.uint16)
    for i in range(src.size):
        w = lit(np.uint16(0), src[i])
        pairs[i] = or_(w, shl(w, 8))


@njit(nogil=True, error_model="numpy")
def _maxima(src: Any, levels: Any, x: Any, y: Any) -> Any:
    """The largest byte of each 2**levels; the result lies in one of the scratch arrays, or is `src`."""
    found = src
    for _ in range(levels):
        part = x[: found.size // 2]
        _halve(found, part)
        found, x, y = part, y, x
    return found


@njit(nogil=True, error_model="numpy")
def _spread(src: Any, levels: Any, x: Any, y: Any) -> Any:
    """Each byte 2**levels times."""
    found = src
    for _ in range(levels):
        part = x[: found.size * 2]
        _double(found, part)
        found, x, y = part, y, x
    return found


# --- shared exponents -------------------------------------------------------------------------------------------------


@njit(nogil=True, error_model="numpy")
def _exponents(src: Any, stride: Any, e: Any, field: Any) -> None:
    """Pass 1. `src`: float32 as pairs of halves (stride 2), bfloat16 (uint16, stride 1), or float32 in 32-bit lanes."""
    widest_vectors()
    if stride == 2:
        whole = src.view(np.uint32)
        for i in range(e.size):
            e[i] = lshr(shl(whole[i], 1), 24)
    else:
        for i in range(e.size):
            e[i] = lshr(shl(src[i], 1), field)


@njit(nogil=True, error_model="numpy")
def _carry(a: Any, negative: Any, carry: Any) -> Any:
    pos, neg, sub_pos, sub_neg, hidden, inf, field = carry
    a = min_(a, inf)
    c = select(lt(a, hidden), select(negative, sub_neg, sub_pos), select(negative, neg, pos))
    return lshr(add(a, c), field)


@njit(nogil=True, error_model="numpy")
def _carried(src: Any, stride: Any, e: Any, carry: Any, one: Any) -> None:
    """The exponent fields after rounding: one higher where the mantissa at the element's own exponent overflows."""
    widest_vectors()
    if stride == 2:
        for i in range(e.size):
            low = src[2 * i]
            u = src[2 * i + 1]
            e[i] = _carry(or_(shl(u, 1), min_(low, one)), lt_signed(u, 0), carry)
    else:
        for i in range(e.size):
            u = src[i]
            e[i] = _carry(shl(u, 1), lt_signed(u, 0), carry)


@njit(nogil=True, error_model="numpy")
def _stand_ins(src: Any, stride: Any, e: Any, special: Any, patched: Any) -> None:
    """Copy a tile with other patterns for Inf and NaN, and give them the exponent field they count with."""
    inf, inf_v, nan_v, inf_e, one, top = special
    for i in range(src.size):
        patched[i] = src[i]
    for i in range(e.size):
        at = stride * i + stride - 1
        a = shl(src[at], 1)
        if stride == 2:
            a = or_(a, min_(src[2 * i], one))
        if a >= inf:
            value = inf_v if a == inf else nan_v
            patched[at] = or_(and_(src[at], top), lshr(value, 1))
            if stride == 2:
                patched[2 * i] = 0
            e[i] = inf_e


@njit(nogil=True, error_model="numpy")
def _levels(block_max: Any, group_max: Any, group_carried: Any, t: Any, over: Any, how: Any) -> None:
    """The level-2 exponent of each group and whether it overflows; `block_max` is spread to the groups."""
    widest_vectors()
    policy, most, zero_pair = how
    most8, zero8, one, zero = np.uint8(most), np.uint8(zero_pair), np.uint8(1), np.uint8(0)
    if policy == 0:
        for i in range(t.size):
            h = group_max[i]
            shift = min_(sub(block_max[i], h), most8)
            t[i] = select(eq(h, 0), min_(shift, zero8), shift)
    elif policy == 1:
        for i in range(t.size):
            b = block_max[i]
            h = group_max[i]
            shift = min_(sub(b, h), most8)
            shift = select(eq(h, 0), min_(shift, zero8), shift)
            t[i] = shift
            over[i] = select(gt(group_carried[i], sub(b, shift)), one, zero)
    else:
        for i in range(t.size):
            b = block_max[i]
            h = group_max[i]
            shift = min_(sub(b, h), most8)
            shift = select(eq(h, 0), min_(shift, zero8), shift)
            beyond = select(gt(group_carried[i], sub(b, shift)), one, zero)
            t[i] = select(ne(beyond, 0), zero, shift)
            over[i] = select(ne(shift, 0), zero, beyond)


@njit(nogil=True, error_model="numpy")
def _up(block_max: Any, over: Any, limit: Any, up: Any) -> Any:
    """Whether each block's exponent goes up; the result says whether one overflowed at the top exponent."""
    seen = np.uint8(0)
    top = np.uint8(limit)
    for b in range(up.size):
        up[b] = select(lt(block_max[b], top), over[b], lit(over[b], 0))
        seen = or_(seen, select(eq(block_max[b], 254), over[b], lit(over[b], 0)))
    return seen


@njit(nogil=True, error_model="numpy")
def _heads(block_max: Any, up: Any, bias: Any, keep: Any, src: Any, heads: Any) -> None:
    widest_vectors()
    offset = np.uint8(bias)
    for b in range(heads.size):
        m = block_max[b]
        heads[b] = select(eq(m, 0), m, add(add(m, offset), up[b]))
    if keep:
        size = src.size // heads.size
        for b in range(heads.size):
            if block_max[b] == 0:
                some = False
                for i in range(b * size, (b + 1) * size):
                    some |= shl(src[i], 1) != 0
                if some:
                    heads[b] = add(offset, up[b])


@njit(nogil=True, error_model="numpy")
def _mantissa(a: Any, negative: Any, step: Any, binade: Any, rule: Any, form: Any) -> Any:
    """Round a doubled magnitude pattern to the code of a mantissa of exponent field `step`."""
    field, hidden, fraction, keep, shift, limit, width = binade
    top, low, flip, mask, sign_bit, first_signed = form
    x = lshr(a, field)
    part = and_(a, fraction)
    part = select(eq(x, 0), and_(shl(part, 1), keep), or_(part, hidden))
    s = min_(add(sub(lit(a, step), x), shift), limit)
    rank = _round(lshr(part, s), shl(part, sub(width, s)), negative, rule)
    rank = min_(rank, select(negative, low, top))
    zero = lit(rank, 0)
    turn = select(negative, flip, zero)
    code = and_(sub(xor(rank, turn), turn), mask)
    return or_(code, select(negative, select(lt(rank, first_signed), zero, sign_bit), zero))


@njit(nogil=True, error_model="numpy")
def _mantissas(src: Any, stride: Any, step: Any, codes: Any, one: Any, binade: Any, rule: Any, form: Any) -> None:
    """Pass 3: round at the exponents `step`."""
    widest_vectors()
    if stride == 2:
        for i in range(codes.size):
            low = src[2 * i]
            u = src[2 * i + 1]
            codes[i] = _mantissa(or_(shl(u, 1), min_(low, one)), lt_signed(u, 0), step[i], binade, rule, form)
    else:
        for i in range(codes.size):
            u = src[i]
            codes[i] = _mantissa(shl(u, 1), lt_signed(u, 0), step[i], binade, rule, form)


@njit(nogil=True, error_model="numpy")
def _blank(heads: Any, block_max: Any, shifts: Any, codes: Any) -> None:
    """Make NaN blocks of the blocks whose exponent field is that of Inf and NaN."""
    size, bytes_ = codes.size // heads.size, shifts.size // heads.size
    for b in range(heads.size):
        if block_max[b] == 255:
            heads[b] = 255
            shifts[b * bytes_ : (b + 1) * bytes_] = 0
            codes[b * size : (b + 1) * size] = 0


@njit(nogil=True, error_model="numpy")
def _copy(src: Any, dst: Any) -> Any:
    widest_vectors()
    most = np.uint8(0)
    for i in range(dst.size):
        dst[i] = src[i]
        most = max_(most, src[i])
    return most


@njit(nogil=True, error_model="numpy")
def _steps(block_max: Any, lifted: Any, t: Any, step: Any) -> None:
    """Exponent field of the step of each group."""
    widest_vectors()
    for i in range(step.size):
        step[i] = sub(add(block_max[i], lifted[i]), t[i])


@njit(nogil=True, error_model="numpy")
def _last_levels(lifted: Any, over: Any, t: Any) -> None:
    """The level-2 exponents after a bump of `CLEAR`: none where the group overflowed, one elsewhere."""
    widest_vectors()
    for i in range(t.size):
        t[i] = select(ne(lifted[i], 0), sub(lifted[i], over[i]), t[i])


@njit(nogil=True, error_model="numpy")
def _shared_tile(src: Any, stride: Any, scratch: Any, p: Any, q: Any, codes: Any, heads: Any, shifts: Any) -> Any:
    """Passes 1 to 3 of a tile: fills codes, heads and level-2 bytes."""
    patched, e, carried, x, y, z, t, over, up = scratch
    e, carried = e[: codes.size], carried[: codes.size]
    policy, group_levels, block_levels, report = p[0], p[1], p[2], 0
    t, over, up = t[: codes.size >> group_levels], over[: codes.size >> group_levels], up[: heads.size]
    group_max, group_carried = z[: t.size], e[: t.size]  # the scratch arrays x and y are used again and again
    block_max = heads
    _exponents(src, stride, e, q[4])
    _copy(_maxima(e, group_levels, x, y), group_max)
    most = _copy(_maxima(group_max, block_levels, x, y), block_max)
    if most == 255:
        _stand_ins(src, stride, e, (q[0], q[1], q[2], q[3], q[5], q[26]), patched)
        src = patched[: src.size]
        _copy(_maxima(e, group_levels, x, y), group_max)
        _copy(_maxima(group_max, block_levels, x, y), block_max)
    if policy:
        _carried(src, stride, carried, (q[6], q[7], q[8], q[9], q[10], q[0], q[4]), q[5])
        _copy(_maxima(carried, group_levels, x, y), group_carried)
    _levels(_spread(block_max, block_levels, x, y), group_max, group_carried, t, over, (policy, p[3], p[4]))
    if policy:
        if _up(block_max, _maxima(over, block_levels, carried, y), p[5], up):
            report |= 2
    else:
        up[:] = 0
    lifted = _spread(up, block_levels, carried, z)
    if policy == 2:
        _last_levels(lifted, over, t)
    _steps(_spread(block_max, block_levels, x, y), lifted, t, group_carried)
    _mantissas(
        src,
        stride,
        _spread(group_carried, group_levels, x, y),
        codes,
        q[5],
        (q[4], q[10], q[11], q[12], q[13], q[14], q[15]),
        (q[16], q[17], q[18], q[19]),
        (q[20], q[21], q[22], q[23], q[24], q[25]),
    )
    if shifts.size:
        _gather_bits(t, shifts)
    _copy(block_max, z[: heads.size])
    _heads(z[: heads.size], up, p[6], p[7], src, heads)
    if most == 255:
        report |= 1
        if p[8]:
            _blank(heads, z[: heads.size], shifts, codes)
    return report


@njit(nogil=True, error_model="numpy")
def _scratch(lane: Any) -> Any:
    """Scratch arrays: a copy of a tile of the source, eight arrays of bytes."""
    b = np.empty((8, TILE), np.uint8)
    return np.empty(2 * TILE, lane.dtype), b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]


@njit(nogil=True, cache=True, error_model="numpy")
def encode_shared(src: Any, stride: Any, dst: Any, count: Any, p: Any, q: Any, masks: Any, layout: Any) -> Any:
    """Encode `count` float patterns, whole blocks, into packed blocks with a shared exponent.

    `src` with its `stride` as in `_exponents`; `p` (int64) and `q` (lanes of `src`) from `shared_parameters`; `masks`
    from `fold_masks`; `layout`: block_bytes, level-2 bytes per block, words per block, bytes per word.  Returns bits:
    `NONFINITE` if a block has an Inf or a NaN, `AT_TOP` if one rounds beyond the largest exponent.
    """
    widest_vectors()
    scratch = _scratch(src)
    heads, shifts, codes = np.empty(TILE, np.uint8), np.empty(TILE, np.uint8), np.empty(TILE, np.uint8)
    words = np.empty(TILE // 8, np.uint64)
    size, report = 1 << (p[1] + p[2]), 0
    for start in range(0, count, TILE):
        n = min(TILE, count - start)
        blocks = n // size
        found, level2 = heads[:blocks], shifts[: blocks * layout[1]]
        part = src[start * stride : (start + n) * stride]
        report |= _shared_tile(part, stride, scratch, p, q, codes[:n], found, level2)
        _fold(codes[:n], masks, words[: n // 8])
        _pack(dst, start // size * layout[0], words, found, level2, layout)
    return report


@njit(nogil=True, error_model="numpy")
def _shared_values(codes: Any, exponents: Any, t: Any, dst: Any, form: Any) -> None:
    """Values of mantissas: magnitude times a power of two, which may be a float32 subnormal, and the sign."""
    widest_vectors()
    sign_shift, flip, offset, field0, nan = form
    for i in range(codes.size):
        exponent = lit(np.uint32(0), exponents[i])
        code = lit(np.uint32(0), codes[i])
        negative = ne(lshr(code, sign_shift), 0)
        magnitude = select(negative, add(xor(code, flip), offset), code)
        field = add(sub(exponent, lit(np.uint32(0), t[i])), field0)
        normal = lt_signed(lit(field, 0), field)
        zero = lit(field, 0)
        power = select(
            normal, shl(field, 23), lshr(lit(field, 0x00400000), select(normal, zero, sub(zero, field)))
        )
        bits = float_to_bits(signed_to_float(magnitude) * bits_to_float(power))
        bits = or_(bits, select(negative, lit(bits, 0x80000000), zero))
        dst[i] = select(eq(exponent, nan), lit(bits, 0x7FC00000), bits)


@njit(nogil=True, cache=True, error_model="numpy")
def decode_shared(src: Any, dst: Any, levels: Any, masks: Any, layout: Any, form: Any) -> None:
    """Decode packed blocks into float32 patterns (uint32), the inverse of `encode_shared`.

    `levels`: log2 of the elements per group and of the groups per block; `form` (uint32) from `shared_form`.
    """
    widest_vectors()
    words = np.empty(TILE // 8, np.uint64)
    b = np.empty((7, TILE), np.uint8)
    size = 1 << (levels[0] + levels[1])
    numbers = (form[0], form[1], form[2], form[3], form[4])
    for start in range(0, dst.size, TILE):
        n = min(TILE, dst.size - start)
        blocks, groups = n // size, n >> levels[0]
        heads, shifts, codes = b[0][:blocks], b[1][: blocks * layout[1]], b[2][:n]
        _unpack(src, start // size * layout[0], words, heads, shifts, layout)
        _unfold(words[: n // 8], masks, codes)
        exponents = _spread(heads, levels[0] + levels[1], b[3], b[4])
        t = b[5][:groups]
        if shifts.size:
            _spread_bits(shifts, t)
        else:
            t[:] = 0
        t = _spread(t, levels[0], b[6], b[1])
        _shared_values(codes, exponents, t, dst[start : start + n], numbers)


@njit(nogil=True, cache=True, error_model="numpy")
def quantize_shared(
    src: Any, stride: Any, dst: Any, p: Any, q: Any, form: Any, shift_bytes: Any
) -> Any:
    """Encode and decode in one pass, without packing; `dst` holds float32 patterns.  Returns as `encode_shared`."""
    widest_vectors()
    scratch = _scratch(src)
    b = np.empty((7, TILE), np.uint8)
    levels = p[1] + p[2]
    report = 0
    numbers = (form[0], form[1], form[2], form[3], form[4])
    for start in range(0, dst.size, TILE):
        n = min(TILE, dst.size - start)
        blocks, groups = n >> levels, n >> p[1]
        heads, shifts = b[0][:blocks], b[1][: blocks * shift_bytes]
        part = src[start * stride : (start + n) * stride]
        report |= _shared_tile(part, stride, scratch, p, q, b[6][:n], heads, shifts)
        exponents = _spread(heads, levels, b[2], b[3])
        t = scratch[6][:groups]
        if shift_bytes:
            _spread_bits(shifts, t)
        else:
            t[:] = 0
        t = _spread(t, p[1], b[4], b[5])
        _shared_values(b[6][:n], exponents, t, dst[start : start + n], numbers)
    return report


@njit(nogil=True, cache=True, error_model="numpy")
def unpack(src: Any, codes: Any, heads: Any, shifts: Any, masks: Any, layout: Any) -> None:
    """Take packed blocks apart: element codes, heads (exponent or scale), level-2 bytes."""
    size = layout[2] * 8
    words = np.empty(TILE // 8, np.uint64)
    for start in range(0, codes.size, TILE):
        n = min(TILE, codes.size - start)
        first, last = start // size, (start + n) // size
        _unpack(src, first * layout[0], words, heads[first:last], shifts[first * layout[1] : last * layout[1]], layout)
        _unfold(words[: n // 8], masks, codes[start : start + n])


@njit(nogil=True, cache=True, error_model="numpy")
def pack(codes: Any, heads: Any, shifts: Any, dst: Any, masks: Any, layout: Any) -> None:
    """Put packed blocks together, the inverse of `unpack`."""
    size = layout[2] * 8
    words = np.empty(TILE // 8, np.uint64)
    for start in range(0, codes.size, TILE):
        n = min(TILE, codes.size - start)
        first, last = start // size, (start + n) // size
        _fold(codes[start : start + n], masks, words[: n // 8])
        _pack(dst, first * layout[0], words, heads[first:last], shifts[first * layout[1] : last * layout[1]], layout)


def shared_parameters(
    lanes: Any,
    *,
    policy: int,
    group_levels: int,
    block_levels: int,
    shifts: int,
    zero_pair: int,
    bump_below: int,
    bias: int,
    keep_subnormals: int,
    blank_nonfinite: int,
    saturate_nonfinite: int,
    fraction_bits: int,
    rounding: tuple[int, int, int, int],
    twos_complement: int,
    lowest: int,
    clear_negative_zero: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the two parameter arrays of `encode_shared`.

    Parameters
    ----------
    lanes : dtype
        uint16 (float32 as halves, bfloat16) or uint32 (float32 with its subnormals kept).
    policy : int
        `SATURATE`, `BUMP` or `CLEAR`.
    group_levels, block_levels : int
        log2 of the elements per group and of the groups per block.
    shifts, zero_pair : int
        Largest level-2 exponent (0: there are none), and that of a group that counts as zero.
    bump_below : int
        A block's exponent field goes up only below this one.
    bias : int
        Stored exponent minus exponent field.
    keep_subnormals, blank_nonfinite, saturate_nonfinite, clear_negative_zero : int
        0 or 1.
    fraction_bits : int
        Of a mantissa, 0 to 6.
    rounding : tuple
        nearest, t_lsb, t_sign, t_const; see `encode.ieee_parameters`.
    twos_complement, lowest : int
        Form of the mantissas; whether the lowest two's complement code is used.
    """
    dtype = np.dtype(lanes)
    width = 8 * dtype.itemsize
    field = width - 8  # bits of the doubled fraction
    ones, hidden = (1 << width) - 1, 1 << field
    inf = 255 << field
    nearest, t_lsb, t_sign, t_const = rounding
    half = 1 << (width - 1)
    flip = (ones if nearest else 0) ^ (ones if t_const else 0) if t_lsb else 0
    offsets = []
    for t in (t_const, t_const ^ t_sign):
        offsets.append((half - t if nearest else (0 if t else ones)) - flip)
    top = (1 << (fraction_bits + 1)) - 1
    shift = field - fraction_bits

    def carry(negative: int, drop: int) -> int:
        """What added to the fraction carries exactly if the largest mantissa rounds up; `drop` bits are dropped."""
        t = (top & t_lsb) ^ (negative & t_sign) ^ t_const
        if negative and lowest:
            return 0
        return (1 << (drop - 1)) - (not t) if nearest else ((1 << drop) - 1 if t else 0)

    sub = [carry(s, shift - 1) if keep_subnormals else 0 for s in (0, 1)]
    fraction_of_top = (((1 << field) - 1) >> shift) << shift
    largest = (254 << field) | fraction_of_top
    p = [
        policy,
        group_levels,
        block_levels,
        shifts,
        zero_pair,
        bump_below,
        bias,
        keep_subnormals,
        blank_nonfinite,
    ]
    q = [
        inf,
        largest if saturate_nonfinite else inf,
        0 if saturate_nonfinite else inf | hidden >> 1,
        254 if saturate_nonfinite else 255,
        field,
        1,
        carry(0, shift),
        carry(1, shift),
        *sub,
        hidden,
        hidden - 1,
        ones if keep_subnormals else 0,
        shift,
        field + 2,
        width,
        t_lsb,
        flip,
        *offsets,
        top,
        top + 1 if lowest else top,
        ones if twos_complement else 0,
        (1 << (fraction_bits + 2)) - 1,
        0 if twos_complement else 1 << (fraction_bits + 1),
        1 if clear_negative_zero else 0,
        1 << (width - 1),
    ]
    return np.array(p, np.int64), np.array([n & ones for n in q], dtype)


def shared_form(mantissa_bits: int, twos_complement: int, bias: int, nan: int) -> np.ndarray:
    """Return parameters of decoding: sign position, two numbers for the magnitude, exponent offset, NaN exponent."""
    n = mantissa_bits
    magnitude = (0xFFFFFFFF, (1 << n) + 1) if twos_complement else (0, -(1 << (n - 1)))
    numbers = [n - 1, *magnitude, 127 - bias - (n - 2), 255 if nan else 256]
    return np.array([number & 0xFFFFFFFF for number in numbers], np.uint32)


# --- scaled elements --------------------------------------------------------------------------------------------------


@njit(nogil=True, error_model="numpy")
def _scale_fields(x: Any, e: Any, carry: Any) -> None:
    """Exponent fields of magnitudes plus a constant, which carries where the scale rule wants the next binade."""
    widest_vectors()
    inf = np.uint32(0xFF000000)
    for i in range(e.size):
        e[i] = lshr(add(min_(shl(x[i], 1), inf), carry), 24)


@njit(nogil=True, error_model="numpy")
def _rare_scale(x: Any, carry: Any) -> Any:
    """Exponent of the largest magnitude of one block after `carry`, exactly; -1000: zeros only, 1000: Inf, NaN."""
    a = np.uint32(0)
    for i in range(x.size):
        a = max_(a, shl(x[i], 1))
    if a >= np.uint32(0xFF000000):
        return 1000
    if a == 0:
        return -1000
    exponent = np.int64(a >> np.uint32(24)) - np.int64(127)
    fraction = np.int64(a) & 0xFFFFFF
    if exponent == -127:  # a subnormal: its leading one goes to the hidden place
        exponent = np.int64(-126)
        while fraction < 1 << 24:
            fraction <<= 1
            exponent -= 1
        fraction &= 0xFFFFFF
    return exponent + (fraction + np.int64(carry) >> 24)


@njit(nogil=True, error_model="numpy")
def _power_scales(x: Any, e: Any, heads: Any, p: Any) -> Any:
    """Scale codes of blocks from their largest exponent field; says whether a block has an Inf or a NaN."""
    offset, top, nonfinite, carry = p[0], p[1], p[2], np.uint32(p[3])
    size = x.size // heads.size
    report = 0
    for b in range(heads.size):
        heads[b] = min(max(np.int64(e[b]) - 127 + offset, 0), top)
    for b in range(heads.size):
        if e[b] <= 1 or e[b] == 255:  # subnormals, which may have carried, and beyond the range
            exponent = _rare_scale(x[b * size : (b + 1) * size], carry)
            if exponent == 1000:
                report = 1
                heads[b] = nonfinite
            else:
                heads[b] = min(max(exponent + offset, 0), top)
    return report


@njit(nogil=True, error_model="numpy")
def _by_power(x: Any, codes: Any, v: Any, offset: Any) -> None:
    """Elements divided by their scale, 2**(code - bias), as doubled magnitudes with a sticky bit (16-bit lanes)."""
    widest_vectors()
    for i in range(v.size):
        u = x[i]
        a = shl(u, 1)
        field = sub(offset, lit(u, codes[i]))
        power = max_(shl(field, 23), 0x00400000)
        scaled = shl(float_to_bits(bits_to_float(lshr(a, 1)) * bits_to_float(power)), 1)
        low = and_(scaled, 0xFFFF)
        nothing = eq(scaled, 0)
        sticky = select(nothing, min_(a, 1), min_(low, 1))
        found = or_(lshr(scaled, 16), sticky)
        v[i] = select(gt(a, 0xFF000000), lit(found, 0), found)


@njit(nogil=True, error_model="numpy")
def _larger(src: Any, dst: Any) -> None:
    widest_vectors()
    pairs = src.view(np.uint64)
    for i in range(dst.size):
        w = pairs[i]
        dst[i] = max_(and_(w, 0xFFFFFFFF), lshr(w, 32))


@njit(nogil=True, error_model="numpy")
def _magnitudes(x: Any, dst: Any) -> None:
    widest_vectors()
    for i in range(dst.size):
        dst[i] = shl(x[i], 1)


@njit(nogil=True, error_model="numpy")
def _block_maxima(x: Any, levels: Any, a: Any, b: Any) -> Any:
    """Largest doubled magnitude of each block, in one of the scratch arrays."""
    found = b[: x.size]
    _magnitudes(x, found)
    for _ in range(levels):
        part = a[: found.size // 2]
        _larger(found, part)
        found, a, b = part, b, a
    return found


@njit(nogil=True, error_model="numpy")
def _quotient_scales(largest: Any, heads: Any, limit: Any, p: Any, q: Any) -> Any:
    """Scale codes by division: the largest magnitude over the largest element, rounded to nearest even."""
    widest_vectors()
    top, lowest, nonfinite = p[1], p[4], p[2]
    report = 0
    binades = (q[0], q[1], q[2], q[3], q[4], q[5], q[6])
    half = np.uint64(1) << np.uint64(63)
    for b in range(heads.size):
        amax = np.float64(bits_to_float(lshr(largest[b], 1)))
        bits = double_to_bits(amax / limit)
        kept, rest = _split(shl(bits, 1), binades)
        rank = kept + np.uint64(rest > half or (rest == half and (kept & np.uint64(1)) == np.uint64(1)))
        code = max(min(np.int64(rank), top), lowest)
        if largest[b] >= np.uint32(0xFF000000):
            report = 1
            code = nonfinite
        heads[b] = code
    return report


@njit(nogil=True, error_model="numpy")
def _by_quotient(x: Any, codes: Any, table: Any, v: Any) -> None:
    """Elements divided by their scale in float32, as doubled magnitudes with a sticky bit (16-bit lanes)."""
    widest_vectors()
    for i in range(v.size):
        a = shl(x[i], 1)
        scaled = shl(float_to_bits(bits_to_float(lshr(a, 1)) / table[codes[i]]), 1)
        sticky = select(eq(scaled, 0), min_(a, 1), min_(and_(scaled, 0xFFFF), 1))
        found = or_(lshr(scaled, 16), sticky)
        v[i] = select(gt(a, 0xFF000000), lit(found, 0), found)


@njit(nogil=True, error_model="numpy")
def _by_long_quotient(x: Any, codes: Any, table: Any, v: Any) -> None:
    """The same in float64 (32-bit lanes), for divisors of more than a few bits."""
    widest_vectors()
    for i in range(v.size):
        a = shl(x[i], 1)
        scaled = shl(double_to_bits(np.float64(bits_to_float(lshr(a, 1))) / table[codes[i]]), 1)
        found = lshr(scaled, 32)
        found = or_(found, select(ne(and_(scaled, 0xFFFFFFFF), 0), lit(found, 1), lit(found, 0)))
        v[i] = select(gt(a, 0xFF000000), lit(found, 0), found)


@njit(nogil=True, error_model="numpy")
def _elements(v: Any, x: Any, codes: Any, q: Any) -> None:
    """Round to element codes, as `encode.encode_ieee` does, with saturation."""
    widest_vectors()
    binades = (q[0], q[1], q[2], q[3], q[4], q[5], q[6])
    rule = (q[7], q[8], q[9], q[10])
    top, low, flip, mask, sign_bit = q[11], q[12], q[13], q[14], q[15]
    for i in range(v.size):
        negative = lt_signed(x[i], 0)
        kept, rest = _split(v[i], binades)
        rank = _round(kept, rest, negative, rule)
        zero = lit(rank, 0)
        rank = min_(rank, select(negative, low, top))
        turn = select(negative, flip, zero)
        code = and_(sub(xor(rank, turn), turn), mask)
        codes[i] = or_(code, select(negative, sign_bit, zero))


@njit(nogil=True, error_model="numpy")
def _zeros(heads: Any, which: Any, codes: Any, keep: Any) -> None:
    """Clear the codes of the blocks whose head is `which`, but for the bits `keep`."""
    size = codes.size // heads.size
    kept = np.uint8(keep)
    for b in range(heads.size):
        if heads[b] == which:
            for i in range(b * size, (b + 1) * size):
                codes[i] = and_(codes[i], kept)


@njit(nogil=True, error_model="numpy")
def _widen(src: Any, x: Any) -> Any:
    """float32 patterns of a tile: as they are, or from bfloat16."""
    if src.itemsize == 4:
        return src.view(np.uint32)
    for i in range(src.size):
        x[i] = shl(lit(np.uint32(0), src[i]), 16)
    return x[: src.size]


@njit(nogil=True, error_model="numpy")
def _power_tile(x: Any, scratch: Any, heads: Any, p: Any, q: Any) -> Any:
    e, a, b, codes, v = scratch[0][: x.size], scratch[1], scratch[2], scratch[3][: x.size], scratch[4][: x.size]
    _scale_fields(x, e, np.uint32(p[3]))
    report = _power_scales(x, _maxima(e, p[5], a, b), heads, p)
    _by_power(x, _spread(heads, p[5], a, b), v, np.uint32(p[6]))
    _elements(v, x, codes, q)
    if report and p[7]:
        _zeros(heads, p[2], codes, 0)
    return report


@njit(nogil=True, error_model="numpy")
def _quotient_tile(x: Any, scratch: Any, heads: Any, p: Any, q: Any, q_scale: Any, limit: Any, table: Any) -> Any:
    a, b, codes, v = scratch[1], scratch[2], scratch[3][: x.size], scratch[4][: x.size]
    report = _quotient_scales(_block_maxima(x, p[5], scratch[5], scratch[6]), heads, limit, p, q_scale)
    spread = _spread(heads, p[5], a, b)
    if table.itemsize == 4:
        _by_quotient(x, spread, table, v)
    else:
        _by_long_quotient(x, spread, table, v)
    _elements(v, x, codes, q)
    if p[8]:
        _zeros(heads, 0, codes, p[9])
    if report and p[7]:
        _zeros(heads, p[2], codes, 0)
    return report


@njit(nogil=True, error_model="numpy")
def _scaled_scratch(lane: Any) -> Any:
    b = np.empty((4, TILE), np.uint8)
    return b[0], b[1], b[2], b[3], np.empty(TILE, lane.dtype), np.empty(TILE, np.uint32), np.empty(TILE, np.uint32)


@njit(nogil=True, cache=True, error_model="numpy")
def encode_scaled(
    src: Any, dst: Any, count: Any, p: Any, q: Any, q_scale: Any, limit: Any, table: Any, masks: Any, layout: Any
) -> Any:
    """Encode `count` float patterns, whole blocks, into packed blocks of a scale and elements.

    `src`: float32 (uint32) or bfloat16 (uint16).  Parameters from `scaled_parameters`.  Powers of two: `table` is
    empty.  Otherwise the scale is the largest magnitude over `limit`, and `table` holds the divisor of every scale code
    (float32, or float64 where it has more than a few bits).  Returns `NONFINITE` if a block has an Inf or a NaN.
    """
    widest_vectors()
    scratch = _scaled_scratch(q)
    heads, none = np.empty(TILE, np.uint8), np.empty(0, np.uint8)
    words, wide = np.empty(TILE // 8, np.uint64), np.empty(TILE, np.uint32)
    size, report = layout[2] * 8, 0
    for start in range(0, count, TILE):
        n = min(TILE, count - start)
        x = _widen(src[start : start + n], wide)
        found = heads[: n // size]
        if table.size:
            report |= _quotient_tile(x, scratch, found, p, q, q_scale, limit, table)
        else:
            report |= _power_tile(x, scratch, found, p, q)
        _fold(scratch[3][:n], masks, words[: n // 8])
        _pack(dst, start // size * layout[0], words, found, none, layout)
    return report


@njit(nogil=True, error_model="numpy")
def _scaled_values(codes: Any, heads: Any, elements: Any, scales: Any, tensor: Any, dst: Any) -> None:
    """Products of elements and scales, whose codes are spread to the elements."""
    widest_vectors()
    if tensor == 1:
        for i in range(codes.size):
            dst[i] = elements[codes[i]] * scales[heads[i]]
    else:
        for i in range(codes.size):
            dst[i] = elements[codes[i]] * scales[heads[i]] * tensor


@njit(nogil=True, error_model="numpy")
def _all_bits(codes: Any) -> Any:
    widest_vectors()
    seen = np.uint8(0)
    for i in range(codes.size):
        seen = or_(seen, codes[i])
    return seen


@njit(nogil=True, cache=True, error_model="numpy")
def decode_scaled(
    src: Any, dst: Any, elements: Any, scales: Any, tensor: Any, masks: Any, layout: Any
) -> Any:
    """Decode packed blocks into `dst` (float32 or float64) by tables of that type; returns the OR of scale codes."""
    words = np.empty(TILE // 8, np.uint64)
    b, none = np.empty((4, TILE), np.uint8), np.empty(0, np.uint8)
    codes, levels, seen = b[1], 3, np.uint8(0)
    while layout[2] << 3 > 1 << levels:
        levels += 1
    for start in range(0, dst.size, TILE):
        n = min(TILE, dst.size - start)
        found = b[0][: n >> levels]
        _unpack(src, (start >> levels) * layout[0], words, found, none, layout)
        _unfold(words[: n // 8], masks, codes[:n])
        seen |= _all_bits(found)
        _scaled_values(codes[:n], _spread(found, levels, b[2], b[3]), elements, scales, tensor, dst[start : start + n])
    return seen


@njit(nogil=True, cache=True, error_model="numpy")
def quantize_scaled(
    src: Any,
    dst: Any,
    p: Any,
    q: Any,
    q_scale: Any,
    limit: Any,
    table: Any,
    elements: Any,
    scales: Any,
    tensor: Any,
    size: Any,
) -> Any:
    """Encode and decode in one pass, without packing. Returns what `encode_scaled` does."""
    widest_vectors()
    scratch = _scaled_scratch(q)
    heads, wide = np.empty(TILE, np.uint8), np.empty(TILE, np.uint32)
    report = 0
    for start in range(0, dst.size, TILE):
        n = min(TILE, dst.size - start)
        x = _widen(src[start : start + n], wide)
        found = heads[: n // size]
        if table.size:
            report |= _quotient_tile(x, scratch, found, p, q, q_scale, limit, table)
        else:
            report |= _power_tile(x, scratch, found, p, q)
        spread = _spread(found, p[5], scratch[1], scratch[2])
        _scaled_values(scratch[3][:n], spread, elements, scales, tensor, dst[start : start + n])
    return report


def _binades(width: int, field: int, emin: int, drop: int) -> list[int]:
    """The numbers `_split` wants: see `encode.ieee_parameters`."""
    hidden, ones = 1 << field, (1 << width) - 1
    return [field, hidden, ones << field & ones, (emin << field) - hidden, (emin + drop) << field, field + 2, width]


def scaled_parameters(
    *,
    powers: bool,
    long: bool,
    block_levels: int,
    emax: int,
    scale_bias: int,
    scale_top: int,
    scale_lowest: int,
    scale_nonfinite: int,
    blank_nonfinite: int,
    carry: int,
    scale_emin: int,
    scale_fraction: int,
    emin: int,
    fraction_bits: int,
    rounding: tuple[int, int, int, int],
    max_code: int,
    lowest: int,
    twos_complement: int,
    bits: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the three parameter arrays of `encode_scaled`.

    Parameters
    ----------
    powers, long : bool
        Whether scales are powers of two; whether division is in float64.
    block_levels : int
        log2 of the elements per block.
    emax : int
        Exponent of the largest element's binade.
    scale_bias, scale_top, scale_lowest, scale_nonfinite : int
        Of the scale codes: bias, largest, smallest, and the one for blocks with Inf or NaN.
    blank_nonfinite : int
        Whether such blocks get codes of zero.
    carry : int
        What added to the doubled fraction of the largest magnitude carries if the scale is to go up.
    scale_emin, scale_fraction : int
        Exponent of the lowest binade of the scale format, and its fraction bits.
    emin, fraction_bits : int
        The same of the element format.
    rounding : tuple
        nearest, t_lsb, t_sign, t_const.
    max_code, lowest, twos_complement, bits : int
        Largest magnitude code of an element, whether the lowest two's complement code is used, the form, the width.
    """
    sign_bit = 0 if twos_complement else 1 << (bits - 1)
    p = [
        scale_bias - emax,
        scale_top,
        scale_nonfinite,
        carry,
        scale_lowest,
        block_levels,
        127 + scale_bias,
        blank_nonfinite,
        int(not powers and scale_lowest == 0),
        sign_bit,
    ]
    width, field, bias = (32, 21, 1023) if long else (16, 8, 127)
    ones, half = (1 << width) - 1, 1 << (width - 1)
    nearest, t_lsb, t_sign, t_const = rounding
    flip = (ones if nearest else 0) ^ (ones if t_const else 0) if t_lsb else 0
    offsets = [(half - t if nearest else (0 if t else ones)) - flip for t in (t_const, t_const ^ t_sign)]
    q = [
        *_binades(width, field, emin + bias, field - 1 - fraction_bits),
        t_lsb,
        flip,
        *offsets,
        max_code,
        max_code + 1 if lowest else max_code,
        ones if twos_complement else 0,
        (1 << bits) - 1,
        sign_bit,
    ]
    q_scale = _binades(64, 53, scale_emin + 1023, 52 - scale_fraction)
    lanes = np.uint32 if long else np.uint16
    return np.array(p, np.int64), np.array([n & ones for n in q], lanes), np.array(q_scale, np.uint64)
