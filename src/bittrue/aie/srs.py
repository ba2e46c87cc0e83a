"""Shift-round-saturate and upshift on arrays of any size: what moves numbers between accumulators and vectors.

`bittrue.aie.accum` uses the same functions on the lanes of one register. The arithmetic is in `kernels.srs`.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import finish, output
from ..chunks import in_chunks
from ..codes import value_dtype
from ..formats import Format, IntFormat, format
from ..rounding import Rounding
from .arch import Arch
from .choices import Choices
from .modes import SaturationMode
from .tags import Tag, tag
from .tile import State, in_force
from .wide import Wide

__all__ = ["check_shift", "integers", "narrow_integers", "srs", "ups"]

Array = np.ndarray[Any, Any]

SHIFTS = (-4, 59)  # what the unit accepts (UG1583)
UPSHIFTS = (0, 63)

#: About the floor of a quotient: nearest?, t_lsb, t_sign, t_const; see `kernels.srs`.
_MODES: dict[Rounding, tuple[int, int, int, int]] = {
    Rounding.floor: (0, 0, 0, 0),
    Rounding.ceil: (0, 0, 0, 1),
    Rounding.trunc: (0, 0, 1, 0),
    Rounding.away: (0, 0, 1, 1),
    Rounding.nearest_up: (1, 0, 0, 1),
    Rounding.nearest_down: (1, 0, 0, 0),
    Rounding.nearest_away: (1, 0, 1, 1),
    Rounding.nearest_zero: (1, 0, 1, 0),
    Rounding.nearest_even: (1, 1, 0, 0),
    Rounding.nearest_odd: (1, 1, 0, 1),
}


def srs(
    acc: ArrayLike | Wide,
    dtype: Any,
    shift: int = 0,
    rounding: object = None,
    saturation: object = None,
    *,
    arch: str | int | Arch | None = None,
    choices: Choices | None = None,
    out: Array | None = None,
    threads: int | None = None,
) -> Array:
    """Divide accumulators by ``2**shift``, round, then saturate.

    Parameters
    ----------
    acc : array_like of integers, or Wide
        Any shape and integer dtype; Python integers of up to 128 bits (in a list, or an array of objects).
    dtype : name, dtype or IntFormat
        Any integer format of up to 32 bits.
    shift : int
        -4 to 59; a negative one multiplies (see `Choices.shift_check`).
    rounding, saturation : str, optional
        AMD's names (bittrue's for the same rounding will do). Default: the current tile's registers.
    arch, choices : optional
        Default: the current tile's. The architecture decides which rounding modes there are.
    out : ndarray, optional
        May be `acc` itself.
    threads : int, optional

    Returns
    -------
    ndarray
        Integers of `dtype` (for widths without a dtype, in the next wider one), of the shape of `acc`.

    Raises
    ------
    ValueError
        For a shift, mode, dtype or `out` that does not fit, and for integers of more than 128 bits.
    TypeError
        When `acc` holds no integers.

    Examples
    --------
    >>> srs([5, 6, 7, -6], "int16", 2), srs([5, 6, 7, -6], "int16", 2, "conv_even")
    (array([ 1,  1,  1, -2], dtype=int16), array([ 1,  2,  2, -2], dtype=int16))
    >>> srs([300, -5], "uint8"), srs([300, -5], "uint8", saturation="saturate")
    (array([ 44, 251], dtype=uint8), array([255,   0], dtype=uint8))

    References
    ----------
    UG1079 and UG1603 for the modes; round, then saturate: LLVM AIE2PSemantics.cpp, and measured on XDNA1 (xdna-emu).
    """
    state = in_force(arch, rounding, saturation, choices=choices)
    target = _integer(dtype)
    check_shift(shift, state)
    source = acc if isinstance(acc, Wide) else integers(acc, "acc")
    memory = None if out is acc or isinstance(source, Wide) else source
    result = output(out, source.shape, value_dtype(target), None, memory)
    run(source, result, target, shift, state, threads)
    return finish(result, out, result)


def run(source: Array | Wide, dst: Array, target: IntFormat, shift: int, state: State, threads: int | None = 1) -> None:
    """Do what `srs` does, with arguments that are known to fit."""
    from ..kernels import srs as kernels

    if shift < 0:
        wide = source if isinstance(source, Wide) else Wide.from_array(source)
        if state.saturation is not SaturationMode.none:  # so far beyond every limit that nothing is lost above 128 bits
            wide = wide.clamp(-(1 << 100), 1 << 100)
        source, shift = wide << -shift, 0
    p = _parameters(shift, state.rounding.rounding, state.saturation, target.bits, bool(target.signed))
    flat = dst.reshape(-1)
    if isinstance(source, Wide):
        low, high = np.ascontiguousarray(source.low).reshape(-1), np.ascontiguousarray(source.high).reshape(-1)
        in_chunks(lambda lo, hi: kernels.srs_wide(low[lo:hi], high[lo:hi], flat[lo:hi], p) or 0, low.size, threads)
    else:
        src = np.ascontiguousarray(source).reshape(-1)
        in_chunks(lambda lo, hi: kernels.srs(src[lo:hi], flat[lo:hi], p) or 0, src.size, threads)
    spare = 8 * dst.itemsize - target.bits
    if spare and state.saturation is SaturationMode.none:
        np.left_shift(dst, spare, out=dst)
        np.right_shift(dst, spare, out=dst)


@lru_cache(maxsize=1024)
def _parameters(shift: int, rounding: Rounding, saturation: SaturationMode, bits: int, signed: bool) -> Array:
    from ..kernels.srs import srs_parameters

    nearest, t_lsb, t_sign, t_const = _MODES[rounding]
    lo, hi = saturation.limits(bits, signed) or (-(1 << 63), (1 << 63) - 1)
    return srs_parameters(
        shift=shift, nearest=nearest, t_lsb=t_lsb, t_sign=t_sign, t_const=t_const, lo=lo, hi=hi
    )


def ups(
    x: ArrayLike,
    tag: str | Tag = "acc64",
    shift: int = 0,
    saturation: object = None,
    *,
    arch: str | int | Arch | None = None,
    choices: Choices | None = None,
    out: Array | None = None,
    threads: int | None = None,
) -> Array | Wide:
    """Multiply integers by ``2**shift`` into accumulators; nothing is rounded.

    Parameters
    ----------
    x : array_like of integers that 32 bits hold, with or without sign
    tag : str
        An integer accumulator; its native width on `arch` counts, and for complex ones `x` holds parts in turns.
    shift : int
        0 to 63.
    saturation, arch, choices : optional
        Default: the current tile's. What does not fit follows the saturation mode (`Choices.ups_overflow`).
    out : ndarray of int64, optional
        Only for accumulators of up to 64 bits.
    threads : int, optional

    Returns
    -------
    ndarray of int64, or Wide for 80-bit accumulators

    Raises
    ------
    ValueError
        For a tag, shift or `out` that does not fit, and for integers of more than 32 bits.
    TypeError
        When `x` holds no integers.

    Examples
    --------
    >>> ups(np.int16([2, -1]), "acc32", 4)
    array([ 32, -16])
    """
    state = in_force(arch, None, saturation, choices=choices)
    acc = _tag(tag, state.arch)
    if acc.is_float:
        raise ValueError(f"tag={acc.name!r} is a float accumulator; ups shifts integers")
    check_upshift(shift)
    source = narrow_integers(x, "x")
    if acc.bits > 64:
        if out is not None:
            raise ValueError(f"out cannot hold {acc.native} accumulators, which have {acc.bits} bits")
        return shift_up(Wide.from_array(source), acc, shift, state)
    result = output(out, source.shape, np.dtype(np.int64), None, None if out is x else source)
    from ..kernels import srs as kernels

    limits = _ups_limits(acc, state)
    p = kernels.ups_parameters(
        shift=shift, bits=acc.bits, lo=None if limits is None else limits[0], hi=None if limits is None else limits[1]
    )
    src, dst = np.ascontiguousarray(source).reshape(-1), result.reshape(-1)
    in_chunks(lambda lo, hi: kernels.ups(src[lo:hi], dst[lo:hi], p) or 0, src.size, threads)
    return finish(result, out, result)


_tag = tag


def shift_up(values: Wide, acc: Tag, shift: int, state: State) -> Wide:
    """Shift values of up to 33 bits into accumulators of any width."""
    limits = _ups_limits(acc, state)
    shifted = values << shift  # at most 96 bits
    return shifted.wrap(acc.bits) if limits is None else shifted.clamp(*limits)


def _ups_limits(acc: Tag, state: State) -> tuple[int, int] | None:
    if state.choices.ups_overflow == "wrap":
        return None
    return state.saturation.limits(acc.bits, True)


def check_shift(shift: object, state: State) -> None:
    """Raise `ValueError` for a shift that SRS does not take; warn about a negative one unless told otherwise."""
    low, high = SHIFTS
    if state.choices.shift_check == "refuse":
        low = 0
    if isinstance(shift, bool) or not isinstance(shift, (int, np.integer)) or not low <= shift <= high:
        raise ValueError(f"shift={shift!r} must be an integer from {low} to {high}")
    if shift < 0 and state.choices.shift_check == "warn":
        warnings.warn(f"shift={shift}: AMD's API calls negative shifts unsafe on AIE-ML", stacklevel=4)


def check_upshift(shift: object) -> None:
    """Raise `ValueError` for a shift that UPS does not take."""
    low, high = UPSHIFTS
    if isinstance(shift, bool) or not isinstance(shift, (int, np.integer)) or not low <= shift <= high:
        raise ValueError(f"shift={shift!r} must be an integer from {low} to {high}")


def _integer(dtype: Any) -> IntFormat:
    found: Format = dtype if isinstance(dtype, Format) else format(dtype)
    if not isinstance(found, IntFormat) or found.bits > 32:
        raise ValueError(f"dtype={found.name!r} is not an integer of up to 32 bits (int8, int16, int32, uint8 ...)")
    return found


def integers(x: Any, argument: str) -> Array | Wide:
    """Return integers in native byte order: int64 or less as they are, others as `Wide`.

    Raises
    ------
    TypeError
        For anything but integers.
    ValueError
        For integers of more than 128 bits.
    """
    found = np.asarray(x)
    if found.dtype.kind == "f" and not isinstance(x, np.ndarray):  # an empty list, or integers of many sizes
        numbers = np.array(x, object)
        found = numbers if all(isinstance(n, (int, np.integer)) for n in numbers.reshape(-1)) else found
    if found.dtype == object:
        numbers = found.reshape(-1)
        if not all(isinstance(n, (int, np.integer)) for n in numbers):
            bad = next(n for n in numbers if not isinstance(n, (int, np.integer)))
            raise TypeError(f"{argument} holds {bad!r}; integers are expected")
        for n in numbers:
            if not -(1 << 127) <= n < 1 << 127:
                raise ValueError(f"{argument} holds {n}, which has more than 128 bits")
        return Wide.from_array(found)
    if found.dtype.kind not in "iu":
        raise TypeError(f"{argument} has dtype {found.dtype}; integers are expected")
    found = found.astype(found.dtype.newbyteorder("="), copy=False)
    return Wide.from_array(found) if found.dtype == np.uint64 else found


def narrow_integers(x: Any, argument: str) -> Array:
    """Return integers that 32 bits hold, as vectors do, as a native array; errors as those of `integers`."""
    found = integers(x, argument)
    if isinstance(found, Wide):
        numbers = np.array(found.to_ints(), object).reshape(found.shape)
    elif found.itemsize <= 4:
        return found
    else:
        numbers = found
    outside = (numbers < -(1 << 31)) | (numbers >= 1 << 32)
    if outside.any():
        raise ValueError(f"{argument} holds {numbers[outside][0]}; vectors hold integers of up to 32 bits")
    return numbers.astype(np.int64, copy=False)
