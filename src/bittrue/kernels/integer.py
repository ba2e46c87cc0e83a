"""Loops from floats to integers of any width, from integers to integers, and from integers to float64 bits."""

from typing import Any

import numpy as np

from .compiled import kernel
from .ops import (
    add,
    and_,
    eq,
    gt,
    leading_zeros,
    lit,
    lshr,
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


def int_parameters(
    lanes: Any,
    *,
    fraction_bits: int,
    bias: int,
    nearest: int,
    t_lsb: int,
    t_sign: int,
    t_const: int,
    lo_mag: int,
    hi_mag: int,
    over_pos: int,
    over_neg: int,
    inf_pos: int,
    inf_neg: int,
    nan_code: int,
    wrap: int,
    mask: int,
    daz: int = 0,
) -> np.ndarray:
    """Return the parameter array of `encode_int` and `encode_int_stochastic`, in the type of the lanes.

    Parameters
    ----------
    lanes : dtype
        uint16, uint32 or uint64: the type of the source patterns; at least as wide as the integer.
    fraction_bits, bias : int
        Of the source format: 23 and 127 for float32, 52 and 1023 for float64, 10 and 15 for float16, 7 and 127 for
        bfloat16.
    nearest, t_lsb, t_sign, t_const : int
        The rounding rule, as in `bittrue.kernels.encode.ieee_parameters`; the stochastic kernel ignores it.
    lo_mag, hi_mag : int
        Largest magnitudes of negative and positive results; ignored if `wrap`.
    over_pos, over_neg, inf_pos, inf_neg, nan_code : int
        Codes for finite values beyond those, for Inf, and for NaN.
    wrap : int
        1: keep the low bits of the rounded integer's two's complement instead.
    mask : int
        ``2**width - 1`` of the integer: codes are two's complement cut to it.
    daz : int
        1: source subnormals count as zero.
    """
    dtype = np.dtype(lanes)
    width = dtype.itemsize * 8
    ones = (1 << width) - 1
    half = 1 << (width - 1)
    field = fraction_bits + 1
    hidden = 1 << field
    unit = bias + fraction_bits  # exponent field whose last fraction bit weighs 1
    stay, leave = (half, half - 1) if nearest else (ones, 0)
    numbers = [
        field,
        hidden,
        ones << field,
        (bias - 2) << field,
        unit << field,
        (unit + 1) << field,
        width,
        width - 1 if wrap else width - field,
        0 if wrap else ones,
        half - 1,
        t_lsb,
        t_const,
        t_const ^ t_sign,
        stay,
        leave,
        hidden - 1 if daz else 0,
        mask,
        ones if wrap else hi_mag,
        ones if wrap else lo_mag,
        over_pos,
        over_neg,
        inf_pos,
        inf_neg,
        nan_code,
    ]
    return np.array([number & ones for number in numbers], dtype)


@kernel
def encode_int(src: Any, dst: Any, parameters: Any) -> None:
    """Encode float bit patterns into integers of any width up to the lanes'; `parameters` from `int_parameters`.

    `src` and `parameters` are uint16, uint32 or uint64 alike; `dst` is any integer type that holds the codes.  As in
    `encode_ieee`, the doubled significand is shifted right by at least one; exponents above the unit's shift it left.
    """
    widest_vectors()
    p = parameters
    field, hidden, inf, lowest, unit, total, width = p[0], p[1], p[2], p[3], p[4], p[5], p[6]
    left_limit, left_fill, top = p[7], p[8], p[9]
    t_lsb, t_pos, t_neg, stay, leave, tiny = p[10], p[11], p[12], p[13], p[14], p[15]
    mask, max_pos, max_neg, over_pos, over_neg = p[16], p[17], p[18], p[19], p[20]
    inf_pos, inf_neg, nan = p[21], p[22], p[23]
    last = sub(width, 1)
    fraction = sub(hidden, 1)
    for i in range(src.size):
        u = src[i]
        zero = lit(u, 0)
        negative = gt(u, top)
        a = shl(u, 1)
        b = max_(a, lowest)
        e = and_(b, inf)
        m = min_(e, unit)
        q = or_(and_(b, fraction), hidden)
        right = lshr(sub(total, m), field)
        left = lshr(sub(e, m), field)
        kept = lshr(q, right)
        rest = shl(q, sub(width, right))
        t = xor(and_(kept, t_lsb), select(negative, t_neg, t_pos))
        magnitude = select(gt(rest, select(eq(t, 0), stay, leave)), add(kept, 1), kept)
        magnitude = select(gt(a, tiny), magnitude, zero)
        magnitude = select(gt(left, left_limit), left_fill, shl(magnitude, min_(left, last)))
        code = and_(select(negative, sub(zero, magnitude), magnitude), mask)
        code = select(gt(magnitude, select(negative, max_neg, max_pos)), select(negative, over_neg, over_pos), code)
        code = select(eq(a, inf), select(negative, inf_neg, inf_pos), code)
        dst[i] = select(gt(a, inf), nan, code)


def narrow_parameters(src: Any, dst: Any, lo: int, hi: int, wrap: int, mask: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `bounds` and `mask` of `narrow_int` for integer dtypes `src` and `dst`.

    `lo` and `hi` are the target's range, `wrap` 1 keeps the low bits instead of clamping, `mask` is ``2**width - 1``.
    """
    info = np.iinfo(src)
    low, high = (info.min, info.max) if wrap else (max(lo, info.min), min(hi, info.max))
    dtype = np.dtype(dst)
    unsigned = np.array([mask & ((1 << 8 * dtype.itemsize) - 1)], np.dtype(f"u{dtype.itemsize}"))
    return np.array([low, high], src), unsigned.view(dtype)


@kernel
def narrow_int(src: Any, dst: Any, bounds: Any, mask: Any) -> None:
    """Clamp integers to `bounds` (dtype of `src`), then keep the bits of `mask` (dtype of `dst`)."""
    widest_vectors()
    low, high, bits = bounds[0], bounds[1], mask[0]
    for i in range(src.size):
        value = src[i]
        value = low if value < low else value
        value = high if value > high else value
        dst[i] = and_(bits, value)


def odd_parameters(lanes: Any) -> np.ndarray:
    """Return the parameters of `int_to_float_odd`: uint64 lanes make float64 bits, uint32 lanes float32 bits."""
    dtype = np.dtype(lanes)
    width = 8 * dtype.itemsize
    fraction, bias = {32: (23, 127), 64: (52, 1023)}[width]
    dropped = width - 1 - fraction
    return np.array([width - 1, (1 << dropped) - 1, dropped, bias + width - 2, fraction], dtype)


@kernel
def int_to_float_odd(src: Any, dst: Any, parameters: Any) -> None:
    """Integers to the bit patterns of a float of the same width, rounded to odd; `parameters` from `odd_parameters`.

    `src` is int64 or uint64 and `dst` uint64 (float64 bits), or int32 or uint32 and uint32 (float32 bits). Exact if the
    magnitude has at most 53 bits, or 24. A later rounding to two bits fewer then is a single rounding of the integer.
    """
    widest_vectors()
    top, mask, dropped, exponent, fraction = parameters
    for i in range(src.size):
        negative = src[i] < 0
        u = lit(top, src[i])
        zero, one = lit(top, 0), lit(top, 1)
        magnitude = select(negative, sub(zero, u), u)
        zeros = leading_zeros(magnitude)
        aligned = shl(magnitude, and_(zeros, top))
        sticky = select(ne(and_(aligned, mask), 0), one, zero)
        # the hidden bit of the aligned significand adds the last unit to the exponent field
        bits = or_(add(lshr(aligned, dropped), shl(sub(exponent, zeros), fraction)), sticky)
        bits = or_(bits, select(negative, shl(one, top), zero))
        dst[i] = select(eq(magnitude, 0), zero, bits)
