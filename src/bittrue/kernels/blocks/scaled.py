"""Float bit patterns to and from blocks of a scale and element codes."""

from typing import Any

import numpy as np
from numba import njit

from ..compiled import kernel
from ..encode import _round, _split
from ..ops import (
    add,
    and_,
    bits_to_float,
    eq,
    gt,
    lit,
    lshr,
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
from .lanes import (
    any_,
    below,
    floats,
    floats_like,
    group_maxima,
    inlined,
    load,
    load_blocks,
    of_groups,
    over,
    patterns,
    prefetch,
    prefetch_to_store,
    store,
    times,
    to_floats,
    to_longs,
    to_words,
    upper,
    widened,
    width_of,
)
from .memory import AHEAD, TILE, _pack, _padded, _unpack, double_to_bits, folded, unfolded


@njit(nogil=True, error_model="numpy")
def _largest(src: Any, at: Any, n: Any, shape: Any, largest: Any) -> None:
    """The largest doubled magnitude pattern of each block."""
    levels = len(shape[0])
    for i in range(0, n, 1 << (levels + len(shape[2]))):
        a = shl(widened(load(src, at + i, shape)), 1)
        store(largest, i >> levels, of_groups(group_maxima(a, shape), shape))


@njit(nogil=True, error_model="numpy")
def _rare_scale(a: Any, carry: Any) -> Any:
    """Exponent of a doubled magnitude after `carry`, exactly; -1000: zero, 1000: Inf, NaN."""
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
def _power_scales(largest: Any, heads: Any, p: Any) -> Any:
    """Scale codes of blocks from their largest magnitude; says whether a block has an Inf or a NaN.

    A constant added to the fraction carries where the scale rule wants the next binade.
    """
    widest_vectors()
    offset, top, nonfinite, carry = p[0], p[1], p[2], np.uint32(p[3])
    inf = np.uint32(0xFF000000)
    report, rare = 0, 0
    for b in range(heads.size):
        e = np.int64(lshr(add(min_(largest[b], inf), carry), 24))
        rare |= int(e <= 1 or e == 255)  # subnormals, which may have carried, and beyond the range
        heads[b] = min(max(e - 127 + offset, 0), top)
    if rare:
        for b in range(heads.size):
            exponent = _rare_scale(largest[b], carry)
            report |= exponent == 1000
            heads[b] = nonfinite if exponent == 1000 else min(max(exponent + offset, 0), top)
    return report


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
def _pick(table: Any, codes: Any, factors: Any) -> None:
    """The table's entries for some codes."""
    for i in range(codes.size):
        factors[i] = table[codes[i]]


@inlined
def _elements(x: Any, factor: Any, powers: Any, special: Any, like: Any, q: Any) -> Any:
    """Divide float32 patterns by their scale and round to element codes, as `encode.encode_ieee` does, saturating.

    `factor`: the inverse of the scale if `powers`, else the scale, in a type in which quotients round correctly.
    """
    field, hidden, inf, emin, total, limit, lsb, flip, offset_pos, offset_neg, top, low, turn, mask, sign_bit = q
    a = shl(x, 1)
    if special:  # a NaN counts as zero
        a = select(gt(a, 0xFF000000), lit(a, 0), a)
    value = floats_like(floats(lshr(a, 1)), factor)
    scaled = shl(patterns(times(value, factor) if powers else over(value, factor)), 1)
    scaled = select(eq(scaled, 0), lit(scaled, min_(a, 1)), scaled)  # what underflows is not nothing
    v = or_(upper(scaled, like), min_(below(scaled, like), 1))
    negative = lt_signed(upper(x, like), 0)
    kept, rest = _split(v, (field, hidden, inf, emin, lit(v, total), limit, lit(v, width_of(like))))
    rank = _round(kept, rest, negative, (lsb, flip, lit(v, offset_pos), lit(v, offset_neg)))
    zero = lit(v, 0)
    rank = min_(rank, select(negative, lit(v, low), lit(v, top)))
    turned = select(negative, lit(v, turn), zero)
    code = and_(sub(xor(rank, turned), turned), mask)
    return to_words(or_(code, select(negative, lit(v, sign_bit), zero)))


@njit(nogil=True, error_model="numpy")
def _scales(largest: Any, heads: Any, factors: Any, p: Any, q_scale: Any, limit: Any, table: Any) -> Any:
    """Scale codes of blocks and what the elements are to be multiplied with or divided by."""
    report = _power_scales(largest, heads, p) if p[8] else _quotient_scales(largest, heads, limit, p, q_scale)
    _pick(table, heads, factors)
    return report


@inlined
def _codes(src: Any, at: Any, i: Any, shape: Any, heads: Any, factors: Any, special: Any, p: Any, q: Any) -> Any:
    """Element codes of whole blocks."""
    nonfinite, blank, clear_zero, sign_bit, powers = p
    lane_numbers, like = q
    levels = len(shape[0])
    prefetch(src, at + i + TILE, shape)  # the next pass over maxima finds it near
    x = widened(load(src, at + i, shape))
    codes = _elements(x, load_blocks(factors, i >> levels, shape), powers, special, like, lane_numbers)
    if clear_zero:
        head = to_words(load_blocks(heads, i >> levels, shape))
        codes = select(eq(head, 0), and_(codes, sign_bit), codes)
    if special and blank:
        head = to_words(load_blocks(heads, i >> levels, shape))
        codes = select(eq(head, nonfinite), lit(codes, 0), codes)
    return codes


@inlined
def _unpacked(p: Any, q: Any) -> Any:
    """The numbers of `scaled_parameters` as `_codes` takes them."""
    rounding = (q[6], q[7], q[8], q[9], q[10], q[11], q[12], q[13], q[14])
    return (p[2], p[5], p[6], p[7], p[8]), ((q[0], q[1], q[2], q[3], q[4], q[5], *rounding), q)


@inlined
def _values(codes: Any, form: Any) -> Any:
    """float32 of element codes that are no Inf or NaN: a significand times a signed power of two."""
    sign_bit, turn, offset, fraction_bits, fraction, hidden, field0, _ = form
    zero = lit(codes, 0)
    negative = ne(and_(codes, sign_bit), 0)
    magnitude = select(negative, add(xor(codes, turn), offset), codes)
    exponent = lshr(magnitude, fraction_bits)
    significand = or_(and_(magnitude, fraction), select(eq(exponent, 0), zero, lit(codes, hidden)))
    power = or_(shl(add(max_(exponent, 1), field0), 7), select(negative, lit(codes, 0x8000), zero))
    return times(to_floats(to_longs(significand)), floats(shl(to_longs(power), 16)))


@kernel
def encode_scaled(
    src: Any, dst: Any, p: Any, q: Any, q_scale: Any, limit: Any, table: Any, shape: Any, layout: Any
) -> Any:
    """Encode float patterns, whole blocks, into packed blocks of a scale and elements.

    `src`: float32 (uint32) or bfloat16 (uint16).  Parameters from `scaled_parameters`.  `table` holds for every scale
    code the inverse of the scale if scales are powers of two.  Otherwise the scale is the largest magnitude over
    `limit`, and the table that of divisors (float32, or float64 where one has more than a few bits).  `shape`: see
    `lanes`; a block is one group.  Returns `NONFINITE` if a block has an Inf or a NaN.
    """
    heads, words, none = np.empty(TILE, np.uint8), np.empty(TILE // 8, np.uint64), np.empty(0, np.uint8)
    spare, largest, factors = np.empty(TILE, src.dtype), np.zeros(TILE // 8, np.uint32), np.ones(TILE // 8, table.dtype)
    levels = len(shape[0])
    lanes = 1 << (levels + len(shape[2]))
    report = 0
    for start in range(0, src.size, TILE):
        n = min(TILE, src.size - start)
        part, at = _padded(src, start, n, spare, lanes)
        _largest(part, at, n, shape, largest)
        found = heads[: n >> levels]
        special = _scales(largest, found, factors, p, q_scale, limit, table)
        report |= special
        numbers, lane_numbers = _unpacked(p, q)
        for i in range(0, n, lanes):
            codes = _codes(part, at, i, shape, heads, factors, special, numbers, lane_numbers)
            store(words, i >> 3, folded(codes, layout[1]))
        _pack(dst, (start >> levels) * layout[0], words, found, none, shape, layout)
    return report


@kernel
def decode_scaled(
    src: Any, dst: Any, elements: Any, scales: Any, tensor: Any, shape: Any, layout: Any, form: Any
) -> Any:
    """Decode packed blocks into `dst` (float32 or float64) by tables of that type; returns the OR of scale codes.

    `elements` serves codes of Inf and NaN; the others are computed, with `form` from `element_form`.
    """
    heads, words, none = np.empty(TILE, np.uint8), np.empty(TILE // 8, np.uint64), np.empty(0, np.uint8)
    spare, factors, few = np.empty(TILE, dst.dtype), np.ones(TILE // 8, dst.dtype), np.empty(128, np.uint8)
    levels, seen = len(shape[0]), np.uint8(0)
    lanes = 1 << (levels + len(shape[2]))
    data = words.view(np.uint8)
    for start in range(0, dst.size, TILE):
        n = min(TILE, dst.size - start)
        found = heads[: n >> levels]
        _unpack(src, (start >> levels) * layout[0], words, found, none, shape, layout)
        for b in range(found.size):
            seen |= found[b]
        _pick(scales, found, factors)
        numbers = (form[0], form[1], form[2], form[3], form[4], form[5], form[6], form[7])
        to, at = (dst, start) if n % lanes == 0 else (spare, 0)
        for i in range(0, n, lanes):
            codes = unfolded(load(data, i, shape), layout[1])
            if any_(gt(and_(to_words(codes), sub(form[0], 1)), form[7])):
                store(few, 0, codes)
                for j in range(lanes):
                    to[at + i + j] = elements[few[j]] * factors[(i + j) >> levels] * tensor
            else:
                scale = load_blocks(factors, i >> levels, shape)
                values = times(floats_like(_values(to_words(codes), numbers), scale), scale)
                prefetch_to_store(to, at + i + AHEAD, shape)
                store(to, at + i, times(values, tensor))
        if n % lanes:
            dst[start : start + n] = spare[:n]
    return seen


@kernel
def quantize_scaled(
    src: Any,
    dst: Any,
    p: Any,
    q: Any,
    q_scale: Any,
    limit: Any,
    table: Any,
    scales: Any,
    shape: Any,
    form: Any,
) -> Any:
    """Encode and decode in one pass, without packing, into float32. Returns what `encode_scaled` does."""
    heads, spare, results = np.empty(TILE, np.uint8), np.empty(TILE, src.dtype), np.empty(TILE, np.float32)
    largest, factors = np.zeros(TILE // 8, np.uint32), np.ones(TILE // 8, table.dtype)
    back = np.ones(TILE // 8, np.float32)
    levels = len(shape[0])
    lanes = 1 << (levels + len(shape[2]))
    report = 0
    for start in range(0, dst.size, TILE):
        n = min(TILE, dst.size - start)
        part, at = _padded(src, start, n, spare, lanes)
        _largest(part, at, n, shape, largest)
        found = heads[: n >> levels]
        special = _scales(largest, found, factors, p, q_scale, limit, table)
        report |= special
        _pick(scales, found, back)
        numbers, lane_numbers = _unpacked(p, q)
        value_form = (form[0], form[1], form[2], form[3], form[4], form[5], form[6], form[7])
        to, there = (dst, start) if n % lanes == 0 else (results, 0)
        for i in range(0, n, lanes):
            codes = _codes(part, at, i, shape, heads, factors, special, numbers, lane_numbers)
            prefetch_to_store(to, there + i + AHEAD, shape)
            store(to, there + i, times(_values(codes, value_form), load_blocks(back, i >> levels, shape)))
        if n % lanes:
            dst[start : start + n] = results[:n]
    return report


def element_form(
    bits: int, twos_complement: int, fraction_bits: int, bias: int, max_code: int
) -> np.ndarray:
    """Return the parameters of `_values`: `bias` is that of the element's exponent field."""
    magnitude = (0xFFFF, (1 << bits) + 1) if twos_complement else (0, -(1 << (bits - 1)))
    hidden = 1 << fraction_bits
    top = (1 << (bits - 1)) if twos_complement else max_code
    numbers = [1 << (bits - 1), *magnitude, fraction_bits, hidden - 1, hidden, 127 - bias - fraction_bits, top]
    return np.array([n & 0xFFFF for n in numbers], np.uint16)


def _binades(width: int, field: int, emin: int, drop: int) -> list[int]:
    """The numbers `_split` wants: see `encode.ieee_parameters`."""
    hidden, ones = 1 << field, (1 << width) - 1
    return [field, hidden, ones << field & ones, (emin << field) - hidden, (emin + drop) << field, field + 2, width]


def scaled_parameters(
    *,
    powers: bool,
    long: bool,
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
        blank_nonfinite,
        int(not powers and scale_lowest == 0),
        sign_bit,
        int(powers),
    ]
    width, field, bias = (32, 21, 1023) if long else (16, 8, 127)
    ones, half = (1 << width) - 1, 1 << (width - 1)
    nearest, t_lsb, t_sign, t_const = rounding
    flip = (ones if nearest else 0) ^ (ones if t_const else 0) if t_lsb else 0
    offsets = [(half - t if nearest else (0 if t else ones)) - flip for t in (t_const, t_const ^ t_sign)]
    q = [
        *_binades(width, field, emin + bias, field - 1 - fraction_bits)[:-1],
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
