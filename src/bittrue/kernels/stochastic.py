"""Counter-based random bits, and stochastic rounding of float bit patterns with them.

Element number i of a stream has the 32 bits r = high word of ``finalise(key + (i + 1) * GOLDEN)`` with
``key = finalise(seed + GOLDEN)`` and splitmix64's finaliser: a pure function of seed and i, on any number of threads.
A value goes up iff ``floor(dropped * 2**32) + r >= 2**32``, where `dropped` is the dropped part in units of the last
place.
"""

from typing import Any

import numpy as np
from numba import njit

from .compiled import kernel
from .ops import (
    add,
    and_,
    ashr,
    eq,
    gt,
    lit,
    lshr,
    lt,
    max_,
    min_,
    mul,
    or_,
    select,
    shl,
    sub,
    widest_vectors,
    xor,
)

BLOCK = 512  # elements per pass: the scratch blocks stay in the first-level cache
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(nogil=True, error_model="numpy")
def _finalise(z: Any) -> Any:
    """splitmix64's finaliser (Steele, Lea, Flood 2014, variant 13 of Stafford's mixers)."""
    z = mul(xor(z, lshr(z, 30)), np.uint64(0xBF58476D1CE4E5B9))
    z = mul(xor(z, lshr(z, 27)), np.uint64(0x94D049BB133111EB))
    return xor(z, lshr(z, 31))


@njit(nogil=True, error_model="numpy")
def _bits(key: Any, index: Any) -> Any:
    """The 32 random bits of element `index`, in 64-bit lanes."""
    return lshr(_finalise(add(key, mul(add(lit(key, index), 1), GOLDEN))), 32)


@njit(nogil=True, error_model="numpy")
def _round(significand: Any, shift: Any, random: Any, lanes: Any) -> Any:
    """``significand >> shift``, stochastically rounded, for any shift and a significand below the top bit.

    `lanes`: their width minus 1, a mask of the upper 32 bits, the width minus 32. The dropped part moves to the top of
    the lanes, so that adding the random bits there carries out of them where the value goes up.
    """
    top, mask, place = lanes
    near = min_(shift, top)
    dropped = shl(shl(significand, 1), sub(top, near))  # in two steps: a shift by the whole width means nothing
    dropped = and_(lshr(dropped, min_(sub(shift, near), top)), mask)
    random = shl(random, place)
    # The carry by its bits: comparing the sum with an addend becomes an instruction that LLVM has for scalars only.
    carry = or_(and_(dropped, random), and_(or_(dropped, random), sub(sub(lit(random, 0), 1), add(dropped, random))))
    return add(lshr(significand, near), lshr(carry, top))


@njit(nogil=True, error_model="numpy")
def _lanes(like: Any, width: Any) -> Any:
    """What `_round` wants to know of lanes of `width` bits."""
    place = sub(lit(like, width), 32)
    return add(place, 31), shl(lit(like, 0xFFFFFFFF), place), place


@kernel
def random_bits(seed: Any, start: Any, dst: Any) -> None:
    """Write the random bits of elements `start`, `start` + 1, ... of stream `seed` (np.uint64) to `dst` (uint32)."""
    widest_vectors()
    key = _finalise(add(seed, GOLDEN))
    for i in range(dst.size):
        dst[i] = _bits(key, start + i)


def stochastic_parameters(
    *,
    fraction_bits: int,
    width: int,
    max_rank: int,
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
    max_rank_neg: int | None = None,
) -> np.ndarray:
    """Return the parameter array of `encode_stochastic`, in the type of its lanes: uint64 for float64, else uint32.

    Parameters
    ----------
    fraction_bits, width : int
        Of the source patterns: 23 and 32 for float32, 52 and 64 for float64, 10 and 16 for float16.
    max_rank, max_rank_neg : int
        Largest finite rank; the second for negative values (default: the same; 0 for unsigned targets).
    over_pos, over_neg, inf_pos, inf_neg, nan_pos, nan_neg, sign_bit, zero_neg : int
        Codes as in `bittrue.kernels.encode.ieee_parameters`.
    flush_below, daz : int
        Ranks below the first become zero; 1: source subnormals count as zero.
    """
    ones = (1 << max(width, 32)) - 1
    hidden = 1 << fraction_bits
    numbers = [
        fraction_bits,
        hidden,
        ((1 << (width - 1)) - 1) ^ (hidden - 1),
        (1 << (width - 1)) - 1,
        max_rank,
        max_rank if max_rank_neg is None else max_rank_neg,
        over_pos,
        over_neg,
        inf_pos,
        inf_neg,
        nan_pos,
        nan_neg,
        sign_bit,
        zero_neg,
        max(flush_below, 1),
        hidden - 1 if daz else 0,
    ]
    return np.array([number & ones for number in numbers], np.uint64 if width == 64 else np.uint32)


@njit(nogil=True, error_model="numpy")
def _hash(key: Any, start: Any, r: Any) -> None:
    """The random bits of one block."""
    widest_vectors()
    for i in range(r.size):
        r[i] = _bits(key, start + i)


@njit(nogil=True, error_model="numpy")
def _look_up(src: Any, table: Any, p: Any, found: Any) -> None:
    """Shift and base of each element of one block, in one word."""
    fraction_bits, magnitude_bits = p[0], p[3]
    for i in range(src.size):
        e = lshr(and_(lit(p[0], src[i]), magnitude_bits), fraction_bits)
        found[i] = table[e]


@njit(nogil=True, error_model="numpy")
def _ranks(src: Any, found: Any, r: Any, p: Any, ranks: Any) -> None:
    """The rounded ranks of one block."""
    widest_vectors()
    hidden, magnitude_bits, floor, tiny = p[1], p[3], p[14], p[15]
    fraction = sub(hidden, 1)
    zero = sub(hidden, hidden)
    lanes = _lanes(hidden, p.itemsize * 8)
    for i in range(src.size):
        a = and_(lit(zero, src[i]), magnitude_bits)
        significand = or_(and_(a, fraction), select(lt(a, hidden), zero, hidden))
        shift, base = lit(zero, and_(found[i], 0xFFFFFFFF)), lit(zero, ashr(found[i], 32))
        rank = add(_round(significand, shift, lit(zero, r[i]), lanes), base)
        rank = select(gt(a, tiny), rank, zero)
        ranks[i] = select(lt(rank, floor), zero, rank)


@njit(nogil=True, error_model="numpy")
def _finish(src: Any, ranks: Any, codes: Any, p: Any, dst: Any) -> None:
    """Sign, zero, overflow, Inf and NaN of one block."""
    widest_vectors()
    inf, magnitude_bits, max_pos, max_neg, over_pos, over_neg = p[2], p[3], p[4], p[5], p[6], p[7]
    inf_pos, inf_neg, nan_pos, nan_neg, sign_bit, zero_neg = p[8], p[9], p[10], p[11], p[12], p[13]
    zero = sub(inf, inf)
    for i in range(src.size):
        u = lit(zero, src[i])
        a = and_(u, magnitude_bits)
        negative = gt(u, magnitude_bits)
        rank = ranks[i]
        code = or_(codes[i], select(negative, sign_bit, zero))
        code = select(eq(rank, 0), select(negative, zero_neg, zero), code)
        code = select(gt(rank, select(negative, max_neg, max_pos)), select(negative, over_neg, over_pos), code)
        code = select(eq(a, inf), select(negative, inf_neg, inf_pos), code)
        dst[i] = select(gt(a, inf), select(negative, nan_neg, nan_pos), code)


@kernel
def encode_stochastic(
    src: Any,
    dst: Any,
    shift_table: Any,
    base_table: Any,
    rank_to_code: Any,
    parameters: Any,
    seed: Any,
    start: Any,
    random: Any,
) -> None:
    """Encode float bit patterns with stochastic rounding into any format, tapered ones included.

    A source of exponent field e has the rank ``base_table[e] + round(significand / 2**shift_table[e])`` (hidden bit
    included, subnormals without); both tables are int64 with one entry per exponent field, bases may be negative.
    Ranks of the target are below 2**31: a format of 64 bits does not fit.
    `rank_to_code` (uint64) gives the magnitude code of every rank up to the largest; empty: the rank is the code.

    `src` is uint16, uint32 or uint64; `dst` holds the codes; `parameters` come from `stochastic_parameters`.  `random`
    (uint32) holds the random bits of each element; where it is empty they are those of stream `seed` (np.uint64) from
    element `start` on.
    """
    key = _finalise(add(seed, GOLDEN))
    largest = max_(parameters[4], parameters[5])
    r_block = np.empty(BLOCK, np.uint32)
    lanes = parameters.dtype
    table, found_block = np.empty(shift_table.size, np.uint64), np.empty(BLOCK, np.uint64)
    for e in range(shift_table.size):  # this large, a base lies beyond the range of all that rounds
        table[e] = shl(lit(GOLDEN, min(base_table[e], 0x7FFFFFFF)), 32) | lit(GOLDEN, shift_table[e])
    rank_block, code_block = np.empty(BLOCK, lanes), np.empty(BLOCK, lanes)
    # table look-ups do not vectorise: each pass over a block is all arithmetic or all look-ups
    for first in range(0, src.size, BLOCK):
        part = src[first : first + BLOCK]
        size = part.size
        r = random[first : first + BLOCK] if random.size else r_block[:size]
        found, ranks, codes = found_block[:size], rank_block[:size], code_block[:size]
        if random.size == 0:
            _hash(key, start + first, r)
        _look_up(part, table, parameters, found)
        _ranks(part, found, r, parameters, ranks)
        if rank_to_code.size:
            for i in range(size):
                codes[i] = lit(largest, rank_to_code[min_(ranks[i], largest)])
        else:
            codes = ranks
        _finish(part, ranks, codes, parameters, dst[first : first + BLOCK])


@kernel
def encode_int_stochastic(src: Any, dst: Any, parameters: Any, seed: Any, start: Any, random: Any) -> None:
    """Encode float64 bit patterns (uint64) into integers with stochastic rounding.

    `parameters` are those of `bittrue.kernels.integer.int_parameters` for uint64 lanes; `seed`, `start`, `random` as in
    `encode_stochastic`.
    """
    widest_vectors()
    p = parameters
    inf, unit = p[2], p[4]
    left_limit, left_fill, top, tiny = p[7], p[8], p[9], p[15]
    mask, max_pos, max_neg, over_pos, over_neg, inf_pos, inf_neg, nan = (
        p[16],
        p[17],
        p[18],
        p[19],
        p[20],
        p[21],
        p[22],
        p[23],
    )
    key = _finalise(add(seed, GOLDEN))
    zero = np.uint64(0)
    own = random.size == 0
    hidden = lshr(p[1], 1)
    at_unit = lshr(unit, p[0])
    lanes = _lanes(zero, 64)
    for i in range(src.size):
        u = src[i]
        negative = gt(u, top)
        a = shl(u, 1)
        e = lshr(a, p[0])
        m = min_(e, at_unit)
        significand = or_(and_(u, sub(hidden, 1)), select(gt(e, 0), hidden, zero))
        left = sub(e, m)
        r = _bits(key, start + i) if own else lit(zero, random[i])
        magnitude = _round(significand, sub(at_unit, m), r, lanes)
        magnitude = select(gt(a, tiny), magnitude, zero)
        magnitude = select(gt(left, left_limit), left_fill, shl(magnitude, min_(left, 63)))
        code = and_(select(negative, sub(zero, magnitude), magnitude), mask)
        code = select(gt(magnitude, select(negative, max_neg, max_pos)), select(negative, over_neg, over_pos), code)
        code = select(eq(a, inf), select(negative, inf_neg, inf_pos), code)
        dst[i] = select(gt(a, inf), nan, code)
