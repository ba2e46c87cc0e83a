"""Loops that turn float bit patterns into codes; they know plain arrays and numbers, no format.

The arithmetic, stated once.  `a` is the source pattern without its sign, doubled (so that one shift drops the sign and
every later shift count is at least 1).  `m` is its exponent field, kept between the lowest normal binade of the source
and the lowest normal binade of the target, `emin`.  ``q = a - m + hidden`` then is the doubled significand, plus one
`hidden` unit per binade above `emin`; ``kept = q >> shift`` is the rank (the code without sign) rounded down, and
``rest``, the dropped bits moved to the top of the word, is compared with a threshold that depends on the rounding rule:
half a unit in the nearest modes, zero or "never" in the directed ones.  ``t = (kept & t_lsb) ^ t_sign`` selects the
threshold, so the ten deterministic modes are four numbers.
"""

from typing import Any

import numpy as np
from numba import njit

from .ops import (
    add,
    and_,
    bits_to_float,
    eq,
    float_to_half_bits,
    gt,
    lit,
    lshr,
    lt,
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

BLOCK = 2048  # elements per pass of the two-pass kernels: the scratch block stays in the first-level cache


def ieee_parameters(
    lanes: Any,
    *,
    fraction_bits: int,
    drop: int,
    emin: int,
    nearest: int,
    t_lsb: int,
    t_sign: int,
    t_const: int,
    max_code: int,
    over_pos: int,
    over_neg: int,
    inf_pos: int,
    inf_neg: int,
    nan_pos: int,
    nan_neg: int,
    sign_bit: int,
    zero_neg: int,
    flush_below: int = 0,
    daz: int = 0,
    max_code_neg: int | None = None,
) -> np.ndarray:
    """Return the parameter array of `encode_ieee` and `encode_narrow`: one number per name, in the type of the lanes.

    Parameters
    ----------
    lanes : dtype
        uint16, uint32 or uint64: the type the kernel computes in.
    fraction_bits : int
        Fraction bits of the source pattern in these lanes (float32 in uint32: 23; bfloat16 or a narrowed float32 in
        uint16: 7; float16 in uint16: 10; float64 in uint64: 52; a narrowed float64 in uint32: 20).
    drop : int
        `fraction_bits` minus the fraction bits of the target; at least 0.
    emin : int
        Biased exponent field, in the source, of the target's lowest normal binade; at least 1.
    nearest, t_lsb, t_sign, t_const : int
        The rounding rule.  With ``t = (lowest kept bit & t_lsb) ^ (sign & t_sign) ^ t_const`` a nearest mode
        (``nearest=1``) increments if dropped > half or (dropped == half and t); a directed one (``nearest=0``) if
        dropped != 0 and t.
    max_code, max_code_neg : int
        Largest finite magnitude code; the second for negative values (default: the same; 0 for unsigned targets).
    over_pos, over_neg, inf_pos, inf_neg, nan_pos, nan_neg : int
        Codes, sign included, of finite values beyond `max_code`, of Inf and of NaN.
    sign_bit : int
        The bit that negative values carry (0x80 for 8 bits, 0x8 for 4); 0 for unsigned targets.
    zero_neg : int
        Code of negative values that round to zero.
    flush_below : int
        Magnitude codes below it become zero (the smallest normal code, or 0).
    daz : int
        1: source subnormals count as zero of their sign.
    """
    dtype = np.dtype(lanes)
    width = dtype.itemsize * 8
    ones = (1 << width) - 1
    half = 1 << (width - 1)
    field = fraction_bits + 1
    hidden = 1 << field
    total = emin + drop + 1
    lowest = max(0, total - (fraction_bits + 3)) << field
    stay, leave = (half, half - 1) if nearest else (ones, 0)
    numbers = [
        field,
        hidden,
        ones << field,
        lowest,
        emin << field,
        total << field,
        drop + 1,
        width,
        half - 1,
        t_lsb,
        t_const,
        t_const ^ t_sign,
        stay,
        leave,
        hidden - 1 if daz else 0,
        max(flush_below, 1),
        sign_bit,
        zero_neg,
        max_code,
        max_code if max_code_neg is None else max_code_neg,
        over_pos,
        over_neg,
        inf_pos,
        inf_neg,
        nan_pos,
        nan_neg,
    ]
    return np.array([number & ones for number in numbers], dtype)


@njit(nogil=True, error_model="numpy")
def _code(kept: Any, rest: Any, a: Any, u: Any, rule: Any, result: Any) -> Any:
    """Round `kept` up or not, then put sign, zero, overflow, Inf and NaN in their places."""
    top, t_lsb, t_pos, t_neg, stay, leave, tiny, floor = rule
    (inf, sign_bit, zero_neg, max_pos, max_neg, over_pos, over_neg, inf_pos, inf_neg, nan_pos, nan_neg) = result
    zero = lit(u, 0)
    negative = gt(u, top)
    t = xor(and_(kept, t_lsb), select(negative, t_neg, t_pos))
    rank = select(gt(rest, select(eq(t, 0), stay, leave)), add(kept, 1), kept)
    rank = select(gt(a, tiny), rank, zero)
    code = or_(rank, select(negative, sign_bit, zero))
    code = select(lt(rank, floor), select(negative, zero_neg, zero), code)
    code = select(gt(rank, select(negative, max_neg, max_pos)), select(negative, over_neg, over_pos), code)
    code = select(eq(a, inf), select(negative, inf_neg, inf_pos), code)
    return select(gt(a, inf), select(negative, nan_neg, nan_pos), code)


@njit(nogil=True, cache=True, error_model="numpy")
def encode_ieee(src: Any, dst: Any, parameters: Any) -> None:
    """Encode float bit patterns into a sign-exponent-significand format; `parameters` from `ieee_parameters`.

    `src` and `parameters` are uint16, uint32 or uint64 alike; `dst` is any unsigned type that holds the codes.
    """
    widest_vectors()
    p = parameters
    field, hidden, inf, lowest, emin, total, shift, width = p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
    rule = (p[8], p[9], p[10], p[11], p[12], p[13], p[14], p[15])
    result = (inf, p[16], p[17], p[18], p[19], p[20], p[21], p[22], p[23], p[24], p[25])
    if emin == hidden:  # the exponent range of the source: one shift for all
        rest_shift = sub(width, shift)
        for i in range(src.size):
            u = src[i]
            a = shl(u, 1)
            dst[i] = _code(lshr(a, shift), shl(a, rest_shift), a, u, rule, result)
    else:
        for i in range(src.size):
            u = src[i]
            a = shl(u, 1)
            b = max_(a, lowest)
            m = min_(max_(and_(b, inf), hidden), emin)
            q = add(sub(b, m), hidden)
            s = lshr(sub(total, m), field)
            dst[i] = _code(lshr(q, s), shl(q, sub(width, s)), a, u, rule, result)


@njit(nogil=True, cache=True, error_model="numpy")
def encode_narrow(src: Any, dst: Any, parameters: Any) -> None:
    """Encode like `encode_ieee`, in lanes of half the source's width.

    Each block of patterns is first cut to its upper half, rounded to odd (the dropped bits OR-ed into the lowest bit).
    That is exact if the target has at least two fraction bits fewer than the upper half: 5 from float32 (uint32,
    `parameters` uint16 with ``fraction_bits=7``), 18 from float64 (uint64, uint32 with ``fraction_bits=20``).
    """
    widest_vectors()
    block = np.empty(BLOCK, parameters.dtype)
    half = block.itemsize * 8
    for start in range(0, src.size, BLOCK):
        part = src[start : start + BLOCK]
        for i in range(part.size):
            u = part[i]
            low = shl(u, half)
            block[i] = or_(lshr(u, half), select(ne(low, 0), lit(u, 1), lit(u, 0)))
        encode_ieee(block[: part.size], dst[start : start + BLOCK], parameters)


@njit(nogil=True, cache=True, error_model="numpy")
def encode_half(src: Any, dst: Any, saturate: Any, codes: Any) -> None:
    """Encode float32 bit patterns (uint32) into float16 codes (uint16), nearest even, by the host's own conversion.

    `saturate` (int): 1 clamps finite magnitudes to 65504 first.  `codes` (uint16) holds the results for an Inf (of the
    source, or of an overflow that was not clamped) and for NaN: inf_pos, inf_neg, nan_pos, nan_neg.
    """
    widest_vectors()
    inf_pos, inf_neg, nan_pos, nan_neg = codes[0], codes[1], codes[2], codes[3]
    inf = np.uint32(0x7F800000)
    cap = np.uint32(0x477FE000) if saturate else inf
    for i in range(src.size):
        u = src[i]
        a = and_(u, 0x7FFFFFFF)
        clamped = select(lt(a, inf), min_(a, cap), a)
        h = float_to_half_bits(bits_to_float(or_(clamped, and_(u, 0x80000000))))
        magnitude = and_(h, 0x7FFF)
        negative = gt(h, 0x7FFF)
        code = select(eq(magnitude, 0x7C00), select(negative, inf_neg, inf_pos), h)
        dst[i] = select(gt(magnitude, 0x7C00), select(negative, nan_neg, nan_pos), code)


@njit(nogil=True, cache=True, error_model="numpy")
def encode_sticky(src: Any, dst: Any, table: Any, shift: Any) -> None:
    """Encode by a table of the upper bits: index = (u >> shift) | (any dropped bit set).

    `src` is uint16, uint32 or uint64, `table` and `dst` are uint8 or uint16, `table` has ``2**(width - shift)`` entries.
    """
    n = lit(src[0] if src.size else src.dtype.type(0), shift)
    mask = sub(shl(lit(n, 1), n), 1)
    for i in range(src.size):
        u = src[i]
        index = or_(lshr(u, n), select(ne(and_(u, mask), 0), lit(u, 1), lit(u, 0)))
        dst[i] = table[index]
