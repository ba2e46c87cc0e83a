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
    float_to_bits,
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
from .memory import TILE, _fold, _maxima, _pack, _spread, _unfold, _unpack, double_to_bits, signed_to_float


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
def _pick(table: Any, codes: Any, dst: Any) -> None:
    """Patterns of the table's entries for some codes."""
    for i in range(codes.size):
        dst[i] = float_to_bits(table[codes[i]])


@njit(nogil=True, error_model="numpy")
def _double_words(src: Any, dst: Any) -> None:
    widest_vectors()
    pairs = dst.view(np.uint64)
    for i in range(src.size):
        w = lit(np.uint64(0), src[i])
        pairs[i] = or_(w, shl(w, 32))


@njit(nogil=True, error_model="numpy")
def _spread_words(src: Any, levels: Any, a: Any, b: Any) -> Any:
    """Each word 2**levels times."""
    found = src
    for _ in range(levels):
        part = a[: found.size * 2]
        _double_words(found, part)
        found, a, b = part, b, a
    return found


@njit(nogil=True, error_model="numpy")
def _by_quotient(x: Any, divisors: Any, v: Any) -> None:
    """Elements divided by their scale in float32, as doubled magnitudes with a sticky bit (16-bit lanes)."""
    widest_vectors()
    for i in range(v.size):
        a = shl(x[i], 1)
        scaled = shl(float_to_bits(bits_to_float(lshr(a, 1)) / bits_to_float(divisors[i])), 1)
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
    if table.itemsize == 4:
        _pick(table, heads, scratch[5])
        _by_quotient(x, _spread_words(scratch[5][: heads.size], p[5], scratch[6], scratch[7]), v)
    else:
        _by_long_quotient(x, _spread(heads, p[5], a, b), table, v)
    _elements(v, x, codes, q)
    if p[8]:
        _zeros(heads, 0, codes, p[9])
    if report and p[7]:
        _zeros(heads, p[2], codes, 0)
    return report


@njit(nogil=True, error_model="numpy")
def _scaled_scratch(lane: Any) -> Any:
    b = np.empty((4, TILE), np.uint8)
    words = np.empty((3, TILE), np.uint32)
    return b[0], b[1], b[2], b[3], np.empty(TILE, lane.dtype), words[0], words[1], words[2]


@kernel
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
def _plain_values(codes: Any, scales: Any, dst: Any, form: Any) -> None:
    """Products of elements that are no Inf or NaN and scales (patterns), by arithmetic, as float32 patterns."""
    widest_vectors()
    sign_shift, flip, offset, fraction_bits, fraction, hidden, field0, _ = form
    for i in range(codes.size):
        code = lit(np.uint32(0), codes[i])
        negative = ne(lshr(code, sign_shift), 0)
        magnitude = select(negative, add(xor(code, flip), offset), code)
        exponent = lshr(magnitude, fraction_bits)
        significand = or_(and_(magnitude, fraction), select(eq(exponent, 0), lit(code, 0), hidden))
        power = shl(add(max_(exponent, 1), field0), 23)
        value = signed_to_float(significand) * bits_to_float(power) * bits_to_float(scales[i])
        dst[i] = or_(float_to_bits(value), select(negative, lit(code, 0x80000000), lit(code, 0)))


@njit(nogil=True, error_model="numpy")
def _has_specials(codes: Any, form: Any) -> Any:
    """Whether a magnitude code lies beyond the largest finite one."""
    widest_vectors()
    mask, top = np.uint8((1 << np.int64(form[0])) - 1), np.uint8(form[7])
    seen = np.uint8(0)
    for i in range(codes.size):
        seen = max_(seen, and_(codes[i], mask))
    return seen > top


@njit(nogil=True, error_model="numpy")
def _all_bits(codes: Any) -> Any:
    widest_vectors()
    seen = np.uint8(0)
    for i in range(codes.size):
        seen = or_(seen, codes[i])
    return seen


@kernel
def decode_scaled(
    src: Any, dst: Any, elements: Any, scales: Any, tensor: Any, masks: Any, layout: Any, form: Any
) -> Any:
    """Decode packed blocks into `dst` (float32 or float64) by tables of that type; returns the OR of scale codes.

    `form` (from `element_form`, for float32 without a scale of the tensor; else empty) allows arithmetic instead.
    """
    words, words32 = np.empty(TILE // 8, np.uint64), np.empty((3, TILE), np.uint32)
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
        part = dst[start : start + n]
        if form.size and not _has_specials(codes[:n], form):
            _pick(scales, found, words32[0])
            _plain_values(
                codes[:n],
                _spread_words(words32[0][: found.size], levels, words32[1], words32[2]),
                part.view(np.uint32),
                (form[0], form[1], form[2], form[3], form[4], form[5], form[6], form[7]),
            )
        else:
            _scaled_values(codes[:n], _spread(found, levels, b[2], b[3]), elements, scales, tensor, part)
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
    form: Any,
    size: Any,
) -> Any:
    """Encode and decode in one pass, without packing, into float32. Returns what `encode_scaled` does."""
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
        _pick(scales, found, scratch[5])
        _plain_values(
            scratch[3][:n],
            _spread_words(scratch[5][: found.size], p[5], scratch[6], scratch[7]),
            dst[start : start + n].view(np.uint32),
            (form[0], form[1], form[2], form[3], form[4], form[5], form[6], form[7]),
        )
    return report


def element_form(
    bits: int, twos_complement: int, fraction_bits: int, bias: int, max_code: int
) -> np.ndarray:
    """Return the parameters of `_plain_values`: `bias` is that of the element's exponent field."""
    magnitude = (0xFFFFFFFF, (1 << bits) + 1) if twos_complement else (0, -(1 << (bits - 1)))
    hidden = 1 << fraction_bits
    top = (1 << (bits - 1)) if twos_complement else max_code
    numbers = [bits - 1, *magnitude, fraction_bits, hidden - 1, hidden, 127 - bias - fraction_bits, top]
    return np.array([n & 0xFFFFFFFF for n in numbers], np.uint32)


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
