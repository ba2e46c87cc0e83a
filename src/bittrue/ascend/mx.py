"""Operands of MmadMx: 8-bit and 4-bit floats with a power of two for each 32 of them along k."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import codec
from ..array import Array
from ..blocks.array import BlockArray
from ..kinds.block import ScaledFormat
from .choices import Choices
from .types import Type, type_info

__all__ = ["element_of", "is_scaled", "scaled_values"]

Plain = np.ndarray[Any, Any]

_BLOCK = 32  # elements along k that share a scale (asc-devkit 82b89a15, MmadMx)
_SCALE = "fp8_e8m0_t"


def is_scaled(x: Any, scale: Any) -> bool:
    """Whether an operand has scales: of its own, or given beside it."""
    return scale is not None or isinstance(x, BlockArray)


def element_of(x: Any, name: str) -> Type:
    """Return the type of an operand's elements."""
    if not isinstance(x, BlockArray):
        return _typed(x, name)
    fmt = x.format
    if not isinstance(fmt, ScaledFormat) or fmt.scale != type_info(_SCALE).format or fmt.block_size != _BLOCK:
        raise ValueError(f"{name} is a BlockArray of {fmt.name}; MmadMx takes {_SCALE} scales of {_BLOCK} elements")
    return type_info(fmt.element)


def scaled_values(x: Any, scale: Any, name: str, axis: int, choices: Choices) -> Plain:
    """Return, in float32, the elements of an operand times their scales.

    Parameters
    ----------
    x : ndarray, Array or BlockArray
        Of 8-bit or 4-bit floats.
    scale : ndarray or Array of fp8_e8m0_t, or None for a BlockArray
        One for each 32 elements along `axis`.
    name : {"a", "b"}
    axis : int
        That of k: 1 for the left operand, 0 for the right one.
    choices : Choices
        `e8m0_zero_code` says what the scale 0x00 is.

    Raises
    ------
    ValueError
        Scales missing or of another type or shape; elements whose scaled value float32 does not hold.
    """
    codes, scales = _parts(x, scale, name, axis)
    if codes.ndim != 2:
        raise ValueError(f"{name} has shape {codes.shape}; a matrix is needed")
    wanted = list(codes.shape)
    wanted[axis] = -(-wanted[axis] // _BLOCK)
    if scales.shape != tuple(wanted):
        raise ValueError(f"scale_{name} has shape {scales.shape}; {name} of shape {codes.shape} needs {tuple(wanted)}")
    powers = np.ldexp(1.0, np.arange(256) - 127)
    powers[0xFF] = np.nan
    if choices.e8m0_zero_code == "zero":
        powers[0] = 0
    factors = np.repeat(powers[scales], _BLOCK, axis)
    factors = factors[:, : codes.shape[1]] if axis else factors[: codes.shape[0]]
    with np.errstate(over="ignore", invalid="ignore"):
        exact = np.asarray(codec.decode(codes, element_of(x, name).format, dtype=np.float64)) * factors
        values: Plain = exact.astype(np.float32)
    wrong = (values != exact) & ~np.isnan(exact)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise ValueError(
            f"{name}[{i}, {j}] times its scale is {float(exact[i, j])!r}, which float32 does not hold, and no document "
            "says what the matrix unit makes of it"
        )
    return values


def _parts(x: Any, scale: Any, name: str, axis: int) -> tuple[Plain, Plain]:
    """Return the codes of the elements and of the scales."""
    if not isinstance(x, BlockArray):
        if scale is None:
            raise ValueError(f"scale_{name} is missing: MmadMx takes scales for both operands")
        of = _typed(scale, f"scale_{name}")
        if of.name != _SCALE:
            raise ValueError(f"scale_{name} is {of}; scales are {_SCALE}")
        return _codes(x), _codes(scale)
    if scale is not None:
        raise ValueError(f"scale_{name} is given, but {name} is a BlockArray of {x.format.name}, which has its own")
    if x.ndim != 2 or x.axis != axis:
        raise ValueError(f"{name} is a BlockArray of shape {x.shape} in blocks along axis {x.axis}; k is axis {axis}")
    codes, scales = x.element_codes[:, : x.shape[axis]], x.exponents  # both: the other axis, then that of the blocks
    return (codes, scales) if axis else (codes.T, scales.T)


def _typed(x: Any, name: str) -> Type:
    if isinstance(x, Array):
        return type_info(x.format)
    if not isinstance(x, np.ndarray):
        raise TypeError(f"{name} is a {type(x).__name__}; give a NumPy array or an Array, whose type is known")
    return type_info(x.dtype)


def _codes(x: Any) -> Plain:
    return np.asarray(x.codes if isinstance(x, Array) else x.view(np.uint8))
