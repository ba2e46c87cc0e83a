"""Float bit patterns to and from blocks with a shared exponent."""

from typing import Any

import numpy as np

from ..compiled import kernel
from ..encode import _round
from ..ops import add, and_, eq, gt, lit, lshr, lt, lt_signed, min_, ne, or_, select, shl, sub, xor
from .lanes import (
    any_,
    below,
    block_maxima,
    floats,
    group_maxima,
    inlined,
    load,
    load_blocks,
    load_group_bits,
    of_blocks,
    of_groups,
    prefetch,
    prefetch_to_store,
    store,
    times,
    to_bytes,
    to_floats,
    to_longs,
    to_words,
    upper,
    width_of,
)
from .memory import AHEAD, TILE, _pack, _padded, _unpack, folded, unfolded

#: Overflow policies of shared exponents.
SATURATE, BUMP, CLEAR = 0, 1, 2

#: What `encode_shared` reports (bits of its result).
NONFINITE, AT_TOP = 1, 2


@inlined
def _carried(a: Any, negative: Any, field: Any, carry: Any) -> Any:
    """The exponent fields after rounding: one higher where the mantissa at the element's own exponent overflows."""
    pos, neg, sub_pos, sub_neg = carry
    normal = select(negative, lit(a, neg), lit(a, pos))
    c = select(lt(a, 1 << field), select(negative, lit(a, sub_neg), lit(a, sub_pos)), normal)
    return lshr(add(min_(a, 255 << field), c), field)


@inlined
def _mantissas(a: Any, negative: Any, x: Any, step: Any, width: Any, rule: Any, form: Any) -> Any:
    """Round doubled magnitude patterns, of exponent field `x`, to codes of mantissas of exponent field `step`."""
    keep, shift, lsb, flip, offset_pos, offset_neg = rule
    top, low, turn, mask, sign_bit, first_signed = form
    hidden = 1 << (width - 8)
    part = and_(a, hidden - 1)
    part = select(eq(x, 0), and_(shl(part, 1), keep), or_(part, hidden))
    s = min_(add(sub(step, x), shift), width - 6)
    rounding = (lsb, flip, lit(a, offset_pos), lit(a, offset_neg))
    rank = _round(lshr(part, s), shl(part, sub(lit(a, width), s)), negative, rounding)
    rank = min_(rank, select(negative, lit(a, low), lit(a, top)))
    zero = lit(a, 0)
    turned = select(negative, lit(a, turn), zero)
    code = and_(sub(xor(rank, turned), turned), mask)
    return or_(code, select(negative, select(lt(rank, first_signed), zero, lit(a, sign_bit)), zero))


@inlined
def _blocks(w: Any, p: Any, q: Any, rule: Any, form: Any, shape: Any) -> Any:
    """Quantise whole blocks of float patterns.

    Returns the codes, the stored exponents and the level-2 exponents, each in all of its lanes, and what to report:
    whether an Inf or a NaN was seen, and lanes of ones where a block rounds beyond the largest exponent.
    """
    policy, most, zero_pair, bump_below, bias, keep, blank, width = p
    inf_v, nan_v, inf_e, carry, like = q
    field = width - 8
    u = upper(w, like)
    negative = lt_signed(u, 0)
    a = or_(shl(u, 1), min_(below(w, like), 1))
    x = lshr(a, field)
    e, zero = x, lit(x, 0)
    special = any_(eq(x, 255))
    if special:
        nan, e = gt(a, 255 << field), select(eq(x, 255), lit(x, inf_e), x)
        a = select(eq(x, 255), select(nan, lit(a, nan_v), lit(a, inf_v)), a)
        x = lshr(a, field)
    group_max = group_maxima(e, shape)
    block_max = block_maxima(group_max, shape)
    t = min_(sub(block_max, group_max), most)
    t = select(eq(group_max, 0), min_(t, zero_pair), t)
    up, at_top = zero, zero
    if policy:
        carried = group_maxima(_carried(a, negative, field, carry), shape)
        over = select(gt(carried, sub(block_max, t)), lit(x, 1), zero)
        if policy == CLEAR:
            beyond = over
            over = select(ne(t, 0), zero, beyond)
            t = select(ne(beyond, 0), zero, t)
        up = block_maxima(over, shape)
        at_top = select(eq(block_max, 254), up, zero)
        up = select(lt(block_max, bump_below), up, zero)
        if policy == CLEAR:  # after a bump: no level-2 exponent where the group overflowed, one elsewhere
            t = select(ne(up, 0), sub(up, over), t)
    step = sub(add(block_max, up), t)
    codes = _mantissas(a, negative, x, step, width, rule, form)
    occupied = block_maxima(group_maxima(a, shape), shape) if keep else block_max
    heads = select(eq(occupied, 0), zero, and_(add(add(block_max, bias), up), 255))
    if special and blank:
        nan = eq(block_max, 255)
        heads, t, codes = select(nan, lit(x, 255), heads), select(nan, zero, t), select(nan, zero, codes)
    return to_words(codes), to_words(heads), to_words(t), special, at_top


@inlined
def _unpacked(p: Any, q: Any) -> Any:
    """The numbers of `shared_parameters` as `_blocks` takes them."""
    return (
        (p[0], p[1], p[2], p[3], p[4], p[5], p[6], width_of(q)),
        (q[0], q[1], q[2], (q[3], q[4], q[5], q[6]), q),
        (q[7], q[8], q[9], q[10], q[11], q[12]),
        (q[13], q[14], q[15], q[16], q[17], q[18]),
    )


@inlined
def _values(codes: Any, heads: Any, level2: Any, form: Any) -> Any:
    """float32 of mantissas: the magnitude times a power of two with its sign, as upper half of a float pattern."""
    sign_bit, turn, offset, nan, scale = form
    zero = lit(codes, 0)
    negative = ne(and_(codes, sign_bit), 0)
    magnitude = select(negative, add(xor(codes, turn), offset), codes)
    field = sub(heads, 3)  # `scale` makes up for what is missing
    field = select(level2, sub(field, 1), field)
    power = select(lt_signed(zero, field), shl(field, 7), lshr(lit(field, 0x0040), sub(zero, field)))
    power = or_(power, select(negative, lit(codes, 0x8000), zero))
    power = select(eq(heads, nan), lit(codes, 0x7FC0), power)
    return times(times(to_floats(to_longs(magnitude)), scale), floats(shl(to_longs(power), 16)))


@kernel
def encode_shared(src: Any, dst: Any, p: Any, q: Any, shape: Any, layout: Any) -> Any:
    """Encode float patterns, whole blocks, into packed blocks with a shared exponent.

    `src`: float32 (uint32) or bfloat16 (uint16); `p` (int64) and `q` (the lanes to compute in: uint16 takes of float32
    the upper halves, with a sticky bit) from `shared_parameters`; `shape` as in `lanes`; `layout`: bytes per
    block, bits per mantissa.  Returns bits: `NONFINITE` if a block has an Inf or a NaN,
    `AT_TOP` if one rounds beyond the largest exponent.
    """
    heads, level2, words = np.empty(TILE, np.uint8), np.empty(TILE, np.uint8), np.empty(TILE // 8, np.uint64)
    spare = np.empty(TILE, src.dtype)
    group_levels, block_levels = len(shape[0]), len(shape[0]) + len(shape[1])
    lanes, size = 1 << (block_levels + len(shape[2])), 1 << block_levels
    report = 0
    for start in range(0, src.size, TILE):
        n = min(TILE, src.size - start)
        part, at = _padded(src, start, n, spare, lanes)
        seen = at_tops = False
        numbers, lane_numbers, rule, form = _unpacked(p, q)
        for i in range(0, n, lanes):
            w = load(part, at + i, shape)
            prefetch(part, at + i + AHEAD, shape)
            codes, head, t, special, at_top = _blocks(w, numbers, lane_numbers, rule, form, shape)
            seen |= special
            at_tops |= any_(ne(at_top, 0))
            store(words, i >> 3, folded(codes, layout[1]))
            store(heads, i >> block_levels, to_bytes(of_blocks(head, shape)))
            if len(shape[1]):
                store(level2, i >> group_levels >> 3, ne(of_groups(t, shape), 0))
        report |= NONFINITE * seen | AT_TOP * at_tops
        _pack(dst, start // size * layout[0], words, heads[: n // size], level2, shape, layout)
    return report


@kernel
def decode_shared(src: Any, dst: Any, shape: Any, layout: Any, form: Any, scale: Any) -> None:
    """Decode packed blocks into float32, the inverse of `encode_shared`; `form`, `scale` from `shared_form`."""
    heads, level2, words = np.empty(TILE, np.uint8), np.zeros(TILE, np.uint8), np.empty(TILE // 8, np.uint64)
    spare = np.empty(TILE, np.float32)
    group_levels, block_levels = len(shape[0]), len(shape[0]) + len(shape[1])
    lanes, size = 1 << (block_levels + len(shape[2])), 1 << block_levels
    numbers = (form[0], form[1], form[2], form[3], scale)
    data = words.view(np.uint8)
    for start in range(0, dst.size, TILE):
        n = min(TILE, dst.size - start)
        _unpack(src, start // size * layout[0], words, heads[: n // size], level2, shape, layout)
        to, at = (dst, start) if n % lanes == 0 else (spare, 0)
        for i in range(0, n, lanes):
            codes = to_words(unfolded(load(data, i, shape), layout[1]))
            head = to_words(load_blocks(heads, i >> block_levels, shape))
            t = load_group_bits(level2, i >> group_levels >> 3, shape)
            prefetch_to_store(to, at + i + AHEAD, shape)
            store(to, at + i, _values(codes, head, t, numbers))
        if n % lanes:
            dst[start : start + n] = spare[:n]


@kernel
def quantize_shared(src: Any, dst: Any, p: Any, q: Any, shape: Any, form: Any, scale: Any) -> Any:
    """Encode and decode in one pass, without packing, into float32.  Returns what `encode_shared` does."""
    spare, results = np.empty(TILE, src.dtype), np.empty(TILE, np.float32)
    lanes = 1 << (len(shape[0]) + len(shape[1]) + len(shape[2]))
    report = 0
    for start in range(0, dst.size, TILE):
        n = min(TILE, dst.size - start)
        part, at = _padded(src, start, n, spare, lanes)
        to, there = (dst, start) if n % lanes == 0 else (results, 0)
        seen = at_tops = False
        numbers, lane_numbers, rule, code_form = _unpacked(p, q)
        value_form = (form[0], form[1], form[2], form[3], scale)
        for i in range(0, n, lanes):
            w = load(part, at + i, shape)
            prefetch(part, at + i + AHEAD, shape)
            codes, head, t, special, at_top = _blocks(w, numbers, lane_numbers, rule, code_form, shape)
            seen |= special
            at_tops |= any_(ne(at_top, 0))
            prefetch_to_store(to, there + i + AHEAD, shape)
            store(to, there + i, _values(codes, head, ne(t, 0), value_form))
        report |= NONFINITE * seen | AT_TOP * at_tops
        if n % lanes:
            dst[start : start + n] = results[:n]
    return report


def shared_parameters(
    lanes: Any,
    *,
    policy: int,
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
        shifts,
        zero_pair,
        bump_below,
        bias,
        keep_subnormals,
        blank_nonfinite,
    ]
    q = [
        largest if saturate_nonfinite else inf,
        0 if saturate_nonfinite else inf | hidden >> 1,
        254 if saturate_nonfinite else 255,
        carry(0, shift),
        carry(1, shift),
        *sub,
        ones if keep_subnormals else 0,
        shift,
        t_lsb,
        flip,
        *offsets,
        top,
        top + 1 if lowest else top,
        ones if twos_complement else 0,
        (1 << (fraction_bits + 2)) - 1,
        0 if twos_complement else 1 << (fraction_bits + 1),
        1 if clear_negative_zero else 0,
    ]
    return np.array(p, np.int64), np.array([n & ones for n in q], dtype)


def shared_form(mantissa_bits: int, twos_complement: int, bias: int, nan: int) -> tuple[np.ndarray, np.float32]:
    """Return parameters of decoding: sign bit, two numbers for the magnitude and the NaN exponent; the scale."""
    n = mantissa_bits
    magnitude = (0xFFFF, (1 << n) + 1) if twos_complement else (0, -(1 << (n - 1)))
    numbers = [1 << (n - 1), *magnitude, 255 if nan else 256]
    return np.array([number & 0xFFFF for number in numbers], np.uint16), np.float32(2.0 ** (132 - bias - n))
