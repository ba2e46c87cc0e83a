"""Float bit patterns to and from blocks with a shared exponent."""

from typing import Any

import numpy as np
from numba import njit

from ..compiled import kernel
from ..encode import _round
from ..ops import (
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
from .memory import (
    TILE,
    _fold,
    _gather_bits,
    _maxima,
    _pack,
    _spread,
    _spread_bits,
    _unfold,
    _unpack,
    signed_to_float,
)

#: Overflow policies of shared exponents.
SATURATE, BUMP, CLEAR = 0, 1, 2

#: What `encode_shared` reports (bits of its result).
NONFINITE, AT_TOP = 1, 2


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


@kernel
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


@kernel
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


@kernel
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
