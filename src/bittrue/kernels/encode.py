"""Loops that turn float bit patterns into codes; they know plain arrays and numbers, no format.

The arithmetic, stated once.  `a` is the source pattern without its sign, doubled (one shift drops the sign, and every
later shift count is at least 1).  `m` is its exponent field minus 1, cut to the range from 0 (subnormal sources have
the exponent of the lowest binade) to the target's lowest normal binade.  ``q = a - m`` then is the doubled significand,
hidden bit included, plus one hidden unit per binade above the target's lowest; ``kept = q >> shift`` is the rank (the
code without sign) rounded down.  The rank goes up if `rest`, the dropped bits moved to the top of the word, exceeds a
threshold: half a unit minus t in the nearest modes; zero if t and "never" otherwise in the directed ones; t depends on
the lowest kept bit or on the sign.  So the deterministic modes are four numbers, and subnormals, normals and carries
into the next binade are one formula.
"""

from typing import Any

import numpy as np
from numba import njit

from .compiled import kernel
from .memory import ask_ahead, step_of
from .ops import (
    add,
    and_,
    bits_to_float,
    eq,
    float_to_bits,
    float_to_half_bits,
    gt,
    half_bits_to_float,
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
    below: int = 0,
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
    below : int
        1: `encode_narrow` says whether it met magnitudes under the lowest normal binade.
    """
    dtype = np.dtype(lanes)
    width = dtype.itemsize * 8
    ones = (1 << width) - 1
    half = 1 << (width - 1)
    field = fraction_bits + 1
    hidden = 1 << field
    if t_lsb and t_sign:
        raise ValueError("t_lsb=1 and t_sign=1: a rounding rule may look at the kept bit or at the sign, not at both")
    if emin + drop + 1 >= 1 << (width - field):
        raise ValueError(
            f"emin={emin}, drop={drop}: the target's lowest binade is out of the reach of these lanes; widen"
        )
    # half - t in the nearest modes; in the directed ones zero if t, otherwise a threshold that is never exceeded
    flip = (ones if nearest else 0) ^ (ones if t_const else 0) if t_lsb else 0
    offsets = []
    for t in (t_const, t_const ^ t_sign):
        at_zero = half - t if nearest else (0 if t else ones)  # the threshold where the lowest kept bit is 0
        offsets.append(at_zero - flip)
    symmetric = (
        sign_bit != 0
        and zero_neg in (0, sign_bit)
        and over_neg == over_pos | sign_bit
        and inf_neg == inf_pos | sign_bit
        and max_code_neg in (None, max_code)
    )
    numbers = [
        field,
        hidden,
        ones << field,
        (emin << field) - hidden,
        (emin + drop) << field,
        drop + 1,
        fraction_bits + 3,
        width,
        t_lsb,
        flip,
        *offsets,
        max_code,
        over_pos,
        inf_pos,
        0 if zero_neg else 1,
        sign_bit,
        nan_pos,
        nan_neg,
        0 if symmetric and not (flush_below or daz or below) else 1,
        hidden - 1 if daz else 0,
        max(flush_below, 1),
        zero_neg,
        max_code if max_code_neg is None else max_code_neg,
        over_neg,
        inf_neg,
        1,  # as a number LLVM cannot know, it keeps min(low, 1) one instruction
    ]
    return np.array([number & ones for number in numbers], dtype)


@njit(nogil=True, error_model="numpy")
def _split(a: Any, binades: Any) -> Any:
    """`kept` and `rest` of doubled magnitude patterns `a`."""
    field, hidden, inf, emin, total, limit, width = binades
    m = min_(sub(max_(and_(a, inf), hidden), hidden), emin)
    q = sub(a, m)
    shift = min_(lshr(sub(total, m), field), limit)
    return lshr(q, shift), shl(q, sub(width, shift))


@njit(nogil=True, error_model="numpy")
def _round(kept: Any, rest: Any, negative: Any, rule: Any) -> Any:
    """The rounded rank."""
    lsb, flip, offset_pos, offset_neg = rule
    threshold = add(xor(and_(kept, lsb), flip), select(negative, offset_neg, offset_pos))
    return select(gt(rest, threshold), add(kept, 1), kept)


@njit(nogil=True, error_model="numpy")
def _symmetric(rank: Any, a: Any, negative: Any, codes: Any) -> Any:
    """The code of a rank where the codes of negative values are those of positive ones and a sign bit."""
    inf, max_code, over, inf_code, first_signed, sign_bit, nan_pos, nan_neg = codes
    code = select(gt(rank, max_code), over, rank)
    code = select(eq(a, inf), inf_code, code)
    code = select(negative, select(lt(code, first_signed), code, or_(code, sign_bit)), code)
    return select(gt(a, inf), select(negative, nan_neg, nan_pos), code)


@njit(nogil=True, error_model="numpy")
def _general(rank: Any, a: Any, negative: Any, codes: Any, more: Any) -> Any:
    """The code of a rank where every result may be different for negative values, and small ones may be flushed."""
    inf, max_code, over, inf_code, _first_signed, sign_bit, nan_pos, nan_neg = codes
    tiny, floor, zero_neg, max_neg, over_neg, inf_neg = more
    zero = lit(rank, 0)
    rank = select(gt(a, tiny), rank, zero)
    code = or_(rank, select(negative, sign_bit, zero))
    small = lt(rank, floor)
    code = select(small, select(negative, zero_neg, zero), code)
    rank = select(small, zero, rank)
    code = select(gt(rank, select(negative, max_neg, max_code)), select(negative, over_neg, over), code)
    code = select(eq(a, inf), select(negative, inf_neg, inf_code), code)
    return select(gt(a, inf), select(negative, nan_neg, nan_pos), code)


@kernel
def encode_ieee(src: Any, dst: Any, parameters: Any) -> None:
    """Encode float bit patterns into a sign-exponent-significand format; `parameters` from `ieee_parameters`.

    `src` and `parameters` are uint16, uint32 or uint64 alike; `dst` is any unsigned type that holds the codes.
    """
    widest_vectors()
    p = parameters
    shift = p[5]
    back = sub(p[7], shift)
    binades = (p[0], p[1], p[2], p[3], p[4], p[6], p[7])
    rule = (p[8], p[9], p[10], p[11])
    codes = (p[2], p[12], p[13], p[14], p[15], p[16], p[17], p[18])
    more = (p[20], p[21], p[22], p[23], p[24], p[25])
    if p[19]:
        for i in range(src.size):
            u = src[i]
            negative = lt_signed(u, 0)
            a = shl(u, 1)
            kept, rest = _split(a, binades)
            dst[i] = _general(_round(kept, rest, negative, rule), a, negative, codes, more)
    elif p[3]:
        for i in range(src.size):
            u = src[i]
            negative = lt_signed(u, 0)
            a = shl(u, 1)
            kept, rest = _split(a, binades)
            dst[i] = _symmetric(_round(kept, rest, negative, rule), a, negative, codes)
    else:  # the exponent range of the source: one shift for all
        for i in range(src.size):
            u = src[i]
            negative = lt_signed(u, 0)
            a = shl(u, 1)
            dst[i] = _symmetric(_round(lshr(a, shift), shl(a, back), negative, rule), a, negative, codes)


@kernel
def encode_narrow(src: Any, dst: Any, parameters: Any) -> Any:
    """Encode like `encode_ieee`, in lanes of half the source's width.

    `src` is the source viewed as pairs (lower half, upper half): float32 as uint16, float64 as uint32, twice as long as
    `dst`.  The fraction bits in these lanes are those of the upper half: 7 from float32, 20 from float64.  The lower
    half becomes a sticky bit below the doubled upper half, which is exact for every rule if the target has at least one
    fraction bit less than the upper half.  A target that is the upper half itself (bfloat16 from float32: ``drop=0``
    and ``emin=1``) is exact too: there the lower half is the dropped part.

    Returns whether a magnitude under the lowest normal binade was met, if `parameters` were made with ``below=1``.
    """
    widest_vectors()
    p = parameters
    upper = p[3] == 0 and p[5] == 1
    one = p[26]
    shift = p[5]
    back = sub(p[7], shift)
    binades = (p[0], p[1], p[2], p[3], p[4], p[6], p[7])
    rule = (p[8], p[9], p[10], p[11])
    codes = (p[2], p[12], p[13], p[14], p[15], p[16], p[17], p[18])
    more = (p[20], p[21], p[22], p[23], p[24], p[25])
    normal = add(p[3], p[1])
    found = lit(one, 0)
    step = step_of(src) >> 1
    for start in range(0, dst.size, step):
        part, out = src[2 * start : 2 * (start + step)], dst[start : start + step]
        ask_ahead(part)
        if p[19] and p[3]:
            for i in range(out.size):
                low = part[2 * i]
                u = part[2 * i + 1]
                negative = lt_signed(u, 0)
                a = or_(shl(u, 1), min_(low, one))
                found = or_(found, select(lt(a, normal), one, lit(u, 0)))
                kept, rest = _split(a, binades)
                out[i] = _general(_round(kept, rest, negative, rule), a, negative, codes, more)
        elif p[19]:  # the exponent range of the source: one shift for all
            for i in range(out.size):
                low = part[2 * i]
                u = part[2 * i + 1]
                negative = lt_signed(u, 0)
                a = or_(shl(u, 1), min_(low, one))
                found = or_(found, select(lt(a, normal), one, lit(u, 0)))
                rest = select(upper, low, shl(a, back))
                out[i] = _general(_round(lshr(a, shift), rest, negative, rule), a, negative, codes, more)
        elif not upper:
            for i in range(out.size):
                low = part[2 * i]
                u = part[2 * i + 1]
                negative = lt_signed(u, 0)
                a = or_(shl(u, 1), min_(low, one))
                kept, rest = _split(a, binades)
                out[i] = _symmetric(_round(kept, rest, negative, rule), a, negative, codes)
        else:
            for i in range(out.size):
                low = part[2 * i]
                u = part[2 * i + 1]
                negative = lt_signed(u, 0)
                a = or_(shl(u, 1), min_(low, one))
                out[i] = _symmetric(_round(lshr(a, 1), low, negative, rule), a, negative, codes)
    return found != 0


@kernel
def encode_half(src: Any, dst: Any, saturate: Any, codes: Any) -> None:
    """Encode float32 bit patterns (uint32) into float16 codes (uint16), nearest even, by the host's own conversion.

    `saturate` (int): 1 clamps finite magnitudes to 65504 first; otherwise what rounds beyond it becomes Inf.  `codes`
    (uint16) holds the results for an Inf of the source and for NaN: inf_pos, inf_neg, nan_pos, nan_neg.  They are put
    in place as float32 values, before the conversion, so a NaN among them must be quiet (bit 9 set).
    """
    widest_vectors()
    inf_pos = float_to_bits(half_bits_to_float(codes[0]))
    inf_neg = float_to_bits(half_bits_to_float(codes[1]))
    nan_pos = float_to_bits(half_bits_to_float(codes[2]))
    nan_neg = float_to_bits(half_bits_to_float(codes[3]))
    inf = np.uint32(0x7F800000)
    cap = np.uint32(0x477FE000) if saturate else inf
    step = step_of(src)
    for start in range(0, src.size, step):
        part, out = src[start : start + step], dst[start : start + step]
        ask_ahead(part)
        for i in range(out.size):
            u = part[i]
            a = and_(u, 0x7FFFFFFF)
            negative = lt_signed(u, 0)
            x = or_(min_(a, cap), and_(u, 0x80000000))
            x = select(eq(a, inf), select(negative, inf_neg, inf_pos), x)
            x = select(gt(a, inf), select(negative, nan_neg, nan_pos), x)
            out[i] = float_to_half_bits(bits_to_float(x))


@kernel
def encode_sticky(src: Any, dst: Any, table: Any, shift: Any) -> None:
    """Encode by a table of the upper bits: index = (u >> shift) | (any dropped bit set).

    `src` is uint16, uint32 or uint64 with ``width - shift <= 16``, `table` has ``2**(width - shift)`` entries; `table`
    and `dst` have one dtype.  The indices of a block are computed first, in vectors; then one load, one store each.
    """
    widest_vectors()
    block = np.empty(BLOCK, np.uint16)
    count = lit(src.dtype.type(0), shift)
    mask = sub(shl(lit(count, 1), count), 1)
    for start in range(0, src.size, BLOCK):
        part = src[start : start + BLOCK]
        out = dst[start : start + BLOCK]
        for i in range(part.size):
            u = part[i]
            block[i] = or_(lshr(u, count), select(ne(and_(u, mask), 0), lit(u, 1), lit(u, 0)))
        for i in range(part.size):
            out[i] = table[block[i]]


@kernel
def replace_below(src: Any, dst: Any, limit: Any, table: Any, shift: Any) -> None:
    """Encode by a sticky table what lies below `limit`, and leave the other codes as they are.

    For formats without zero, whose lowest binade is no subnormal one.  `src` is uint32 (float32 patterns), `limit` the
    uint32 pattern of a magnitude; `table` and `shift` as in `encode_sticky`.
    """
    mask = sub(shl(lit(limit, 1), lit(limit, shift)), 1)
    for i in range(src.size):
        u = src[i]
        if and_(u, 0x7FFFFFFF) < limit:
            dst[i] = table[or_(lshr(u, lit(u, shift)), select(ne(and_(u, mask), 0), lit(u, 1), lit(u, 0)))]


@njit(nogil=True, error_model="numpy")
def _hybrid_indices(pairs: Any, indices: Any) -> None:
    """The table indices of `encode_hybrid32`."""
    widest_vectors()
    for i in range(indices.size):
        low = pairs[2 * i]
        u = pairs[2 * i + 1]
        zero = lit(u, 0)
        a = or_(shl(u, 1), min_(low, 1))
        e = sub(lshr(a, 8), 127)
        size = min_(e, sub(zero, e))
        # F starts at fraction bit 20 up to |E| = 7, 21 up to 15, 22 up to 22; at the hidden bit at 23
        step = add(min_(lshr(size, 3), 2), select(gt(size, 22), lit(u, 1), zero))
        upper = or_(and_(u, 0x7F), 0x80)
        f = and_(or_(shl(upper, sub(lit(u, 9), step)), lshr(low, add(step, 7))), 0x3FFF)
        up = select(lt(f, and_(low, 0x3FFF)), zero, lit(u, 1))
        changed = add(u, shl(sub(up, lshr(f, 13)), add(step, 4)))
        u = select(gt(a, 0xFF00), or_(u, 0x40), u)
        indices[i] = lshr(select(lt(sub(size, 4), 20), changed, u), 3)


@kernel
def encode_hybrid32(src: Any, dst: Any, table: Any) -> None:
    """Encode float32 patterns into hifloat8 under HYBRID rounding; `dst` and `table` are uint8.

    `src` is the float32 array viewed as uint16 pairs (lower half, upper half), twice as long as `dst`.

    HYBRID differs from half-to-away (TA) where the exponent E has 4 <= |E| <= 23: there the increment is F >= T, with
    F the 14 bits that start at the first dropped bit and T the 14 lowest bits of the fraction.  So the first dropped
    bit is replaced by that comparison, and `table`, of 8192 TA results indexed by sign, exponent and four fraction bits
    (``u >> 19``), gives the code.  At E = -23 every bit is dropped and the first dropped bit is the hidden one;
    replacing it by 0 lowers the exponent by one, which TA maps to zero.  A NaN is looked up with its quiet bit set.
    """
    block = np.empty(BLOCK, np.uint16)
    for start in range(0, dst.size, BLOCK):
        out = dst[start : start + BLOCK]
        _hybrid_indices(src[2 * start : 2 * (start + BLOCK)], block[: out.size])
        for i in range(out.size):
            out[i] = table[block[i]]
