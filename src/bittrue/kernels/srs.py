"""Shift-round-saturate and its inverse: loops from accumulators to integers and back; plain arrays and numbers only.

A two's complement quotient is ``floor + rest``: `floor` is the arithmetic shift, `rest` the bits that it drops. Every
rounding mode is "add one if the rest exceeds a threshold", where the threshold is one of two numbers: `leave` if t,
else `stay`, with ``t = (lowest bit of floor & t_lsb) ^ (sign & t_sign) ^ t_const``. Nearest modes: half a unit, less
one if t. Directed modes: zero if t, otherwise a number that no rest exceeds. Ten modes are one loop without a branch.
"""

from typing import Any

import numpy as np

from .compiled import kernel
from .ops import widest_vectors

_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


def srs_parameters(
    *, shift: int, nearest: int, t_lsb: int, t_sign: int, t_const: int, lo: int, hi: int
) -> np.ndarray:
    """Return the parameters of `srs` and `srs_wide`.

    Parameters
    ----------
    shift : int
        Bits to drop, 0 to 62.
    nearest, t_lsb, t_sign, t_const : int
        The rounding rule, about the floor of the quotient (see above), not about its magnitude.
    lo, hi : int
        Limits of the result; those of int64 to keep the low bits instead.
    """
    mask = (1 << shift) - 1
    half = (1 << shift) >> 1
    stay, leave = (half, max(half - 1, 0)) if nearest else (mask, 0)
    return np.array([shift, mask, stay, leave, t_lsb, t_sign, t_const, lo, hi], np.int64)


@kernel
def srs(src: Any, dst: Any, p: Any) -> None:
    """Divide integers of up to 64 bits by ``2**shift``, round, limit; `dst` keeps the low bits that fit its dtype."""
    widest_vectors()
    shift, mask, stay, leave = p[0], p[1], p[2], p[3]
    t_lsb, t_sign, t_const, lo, hi = p[4], p[5], p[6], p[7], p[8]
    for i in range(src.size):
        a = np.int64(src[i])
        floor = a >> shift
        t = (floor & t_lsb) ^ ((a >> np.int64(63)) & t_sign) ^ t_const
        threshold = leave if t != 0 else stay
        v = floor + np.int64((a & mask) > threshold)
        v = lo if v < lo else v
        v = hi if v > hi else v
        dst[i] = v


@kernel
def srs_wide(low: Any, high: Any, dst: Any, p: Any) -> None:
    """As `srs`, from integers of up to 127 bits: `low` holds the lower 64 bits (uint64), `high` the rest (int64).

    Quotients beyond int64 become its limits, which `lo` and `hi` then cut further; when low bits are to be kept (`lo`
    and `hi` are the limits of int64), those of the whole quotient stay.
    """
    shift, mask, stay, leave = p[0], p[1], p[2], p[3]
    t_lsb, t_sign, t_const, lo, hi = p[4], p[5], p[6], p[7], p[8]
    up = np.uint64(63 - shift)
    down = np.uint64(shift)
    wrap = lo == _LOWEST and hi == _HIGHEST
    for i in range(low.size):
        a = low[i]
        b = high[i]
        floor = (a >> down) | ((np.uint64(b) << np.uint64(1)) << up)
        over = b >> shift
        negative = b >> np.int64(63)
        t = (np.int64(floor) & t_lsb) ^ (negative & t_sign) ^ t_const
        threshold = leave if t != 0 else stay
        one = np.uint64((np.int64(a) & mask) > threshold)
        v = floor + one
        over += np.int64(v < one)
        r = np.int64(v)
        fits = over == r >> np.int64(63)
        limit = np.int64(_LOWEST) if over < 0 else np.int64(_HIGHEST)
        r = r if fits or wrap else limit
        r = lo if r < lo else r
        r = hi if r > hi else r
        dst[i] = r


def ups_parameters(*, shift: int, bits: int, lo: int | None, hi: int | None) -> np.ndarray:
    """Return the parameters of `ups`: shift 0 to 63, accumulator bits up to 64, limits or None to keep the low bits."""
    smallest = _LOWEST if lo is None else -(-lo >> shift)
    largest = _HIGHEST if hi is None else hi >> shift
    lo, hi = lo or 0, hi or 0
    return np.array([shift, 64 - bits, smallest, largest, lo, hi], np.int64)


@kernel
def ups(src: Any, dst: Any, p: Any) -> None:
    """Multiply integers by ``2**shift``; those outside smallest..largest give the limits, all keep the low bits."""
    widest_vectors()
    shift, spare, smallest, largest, lo, hi = p[0], p[1], p[2], p[3], p[4], p[5]
    for i in range(src.size):
        a = np.int64(src[i])
        v = ((a << shift) << spare) >> spare
        v = lo if a < smallest else v
        v = hi if a > largest else v
        dst[i] = v
