"""`encode`, `decode` and `quantize` of block formats: arguments, axes, padding and threads around the kernels.

`bittrue.encode` and its sisters come here for block formats; the arguments mean the same, where they mean anything.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from .. import exact_blocks
from ..arguments import finish, output, quantized_dtype, target_of, values_of
from ..codec import encode as encode_elements
from ..formats import Format, format
from ..kinds.block import BlockFormat, BlockRule, Nonfinite, ScaledFormat
from ..rounding import Rule
from .layout import from_kernel_order, is_kernel_order

__all__ = ["block_rule", "checked_scale", "decode", "encode", "quantize", "take_apart", "tensor_scale"]

Array = np.ndarray[Any, Any]

_DIRECT = ("float32", "bfloat16")
_EXACT_IN_FLOAT32 = ("float16", "int8", "int16", "uint8", "uint16", "bool")


def block_rule(
    fmt: BlockFormat,
    rounding: Any = None,
    overflow: Any = None,
    nan: Any = None,
    rule: Rule | BlockRule | None = None,
) -> BlockRule:
    """Return the whole rule of a conversion: the format's, then `rule`, then the single arguments.

    A core `Rule` gives its rounding; it must not ask for anything else.
    """
    if rounding is None and overflow is None and nan is None and rule is None:
        return fmt.rule
    if isinstance(rule, Rule):
        if rule != Rule(rounding=rule.rounding):
            raise ValueError(f"rule={rule!r}: {fmt.name} takes a bittrue.BlockRule; of a Rule only its rounding")
        rule = BlockRule(rounding=rule.rounding)
    elif rule is not None and not isinstance(rule, BlockRule):
        raise TypeError(f"rule={rule!r} must be a bittrue.BlockRule, not {type(rule).__name__}")
    if nan is not None and getattr(nan, "value", nan) not in ("keep", "raise"):
        raise ValueError(
            f"nan={nan!r}: {fmt.name} takes 'keep' (the format's own rule) or 'raise'; see BlockRule.nonfinite"
        )
    if overflow is not None and isinstance(fmt, ScaledFormat):
        if getattr(overflow, "value", overflow) != "saturate":
            raise ValueError(f"overflow={overflow!r}: elements of {fmt.name} saturate; see BlockRule.scale_rule")
        overflow = None
    nonfinite = Nonfinite.raise_ if getattr(nan, "value", nan) == "raise" else None
    single = BlockRule(rounding=rounding, overflow=getattr(overflow, "value", overflow), nonfinite=nonfinite)
    base = fmt.rule if rule is None else rule.over(fmt.rule, fmt.name)
    whole = single.over(base, fmt.name)
    fmt.with_rule(whole)  # raises what does not fit the format
    return whole


def encode(
    x: Any,
    fmt: BlockFormat,
    rounding: Any = None,
    overflow: Any = None,
    nan: Any = None,
    rule: Rule | BlockRule | None = None,
    out: Array | None = None,
    threads: int | None = None,
    *,
    scale: Any = None,
    axis: int = -1,
    **others: Any,
) -> Array:
    """Convert values into packed blocks along an axis.

    Parameters
    ----------
    x : array_like
        As in `bittrue.encode`, with at least one axis. What float32 does not hold is rounded once, from its exact
        value; magnitudes beyond float32's count as its largest.
    fmt : BlockFormat
    rounding, overflow, nan, rule
        What differs from the format's own `BlockRule`.
    out : ndarray of uint8, optional
    threads : int, optional
    scale : float, optional
        The float32 scale of the whole tensor, for formats that have one (NVFP4); default 1.
    axis : int
        Along which the elements of a block lie. A last block that is not full is padded with zeros.

    Returns
    -------
    ndarray of uint8
        The other axes of `x` in their order, then one axis of bytes: ``fmt.blocks(x.shape[axis]) * fmt.block_bytes``.

    Raises
    ------
    ValueError
        Inf or NaN under ``nonfinite="raise"``, an axis out of range, an unsuitable argument.
    OverflowError
        Under ``top_bump="raise"``.

    Examples
    --------
    >>> encode(np.float32([1, -0.5, 3, 0.25]), format("mx4")).tobytes().hex()
    '81fdea0000000000'
    """
    _refuse(others, fmt)
    how, tensor = block_rule(fmt, rounding, overflow, nan, rule), _tensor(scale, fmt)
    values, source = values_of(x, fmt)
    rows, moved = _rows(values, source, fmt, tensor, axis)
    shape = (*moved[:-1], fmt.blocks(moved[-1]) * fmt.block_bytes)
    result = output(out, shape, np.dtype(np.uint8), None, values)
    flat = result.reshape(-1)
    if rows.dtype == object:
        flat[:] = _exactly(rows, fmt, how, tensor)
    else:
        from .plans import encode_flat

        encode_flat(rows.reshape(-1), flat, fmt, how, tensor, threads)
        if not is_kernel_order(fmt):
            flat[:] = from_kernel_order(flat, fmt)
    return _delivered(result, result, out)


def decode(
    codes: Any,
    fmt: BlockFormat,
    dtype: Any = np.float32,
    out: Array | None = None,
    threads: int | None = None,
    *,
    scale: Any = None,
    axis: int = -1,
    **others: Any,
) -> Array:
    """Convert packed blocks into values.

    Parameters
    ----------
    codes : array_like of uint8
        What `encode` returns: whole blocks along the last axis.
    fmt : BlockFormat
    dtype : dtype
        float32, float64, float16 or bfloat16; what it cannot hold is rounded to nearest even.
    out, threads
        As in `encode`.
    scale : float, optional
    axis : int
        Where the axis of the elements goes.

    Returns
    -------
    ndarray of `dtype`
        All elements of all blocks; how many the last one was padded with, the codes do not tell.

    Raises
    ------
    ValueError
        When the bytes are not whole blocks, or a scale code is reserved.
    """
    _refuse(others, fmt)
    tensor = _tensor(scale, fmt)
    array = np.asarray(codes)
    if array.dtype != np.uint8:
        raise TypeError(f"codes have dtype {array.dtype}; blocks of {fmt.name} are bytes (uint8)")
    if array.ndim == 0 or array.shape[-1] % fmt.block_bytes:
        length = array.shape[-1] if array.ndim else "no axis of"
        raise ValueError(f"codes: {length} bytes are not whole blocks of {fmt.name}, which take {fmt.block_bytes}")
    array = np.ascontiguousarray(array)
    length = array.shape[-1] // fmt.block_bytes * fmt.block_size
    axis = _axis(axis, array.ndim)
    target_of(dtype, fmt)  # raises what cannot hold the values
    target = np.dtype(dtype)
    shape = [*array.shape[:-1]]
    shape.insert(axis, length)
    result = output(out, tuple(shape), target, None, array)
    wide = np.dtype(np.float64 if target.itemsize == 8 or tensor != 1 else np.float32)
    direct = target == wide and axis == array.ndim - 1
    found = result if direct else np.empty((*array.shape[:-1], length), wide)
    from .plans import decode_flat

    decode_flat(array.reshape(-1), found.reshape(-1), fmt, tensor, threads)
    return _delivered(found if direct else np.moveaxis(_converted(found, target), -1, axis), result, out)


def quantize(
    x: Any,
    fmt: BlockFormat,
    rounding: Any = None,
    overflow: Any = None,
    nan: Any = None,
    rule: Rule | BlockRule | None = None,
    out: Array | None = None,
    threads: int | None = None,
    *,
    scale: Any = None,
    axis: int = -1,
    **others: Any,
) -> Array:
    """Round values to those that blocks along `axis` hold; arguments of `encode`, result of the shape and dtype of `x`.

    Examples
    --------
    >>> quantize(np.float32([1, 0.3, 3.3]), format("mx4"))
    array([1. , 0.5, 3. ], dtype=float32)
    """
    _refuse(others, fmt)
    how, tensor = block_rule(fmt, rounding, overflow, nan, rule), _tensor(scale, fmt)
    values, source = values_of(x, fmt)
    rows, moved = _rows(values, source, fmt, tensor, axis)
    dtype = quantized_dtype(values, source, fmt)
    result = output(out, values.shape, dtype, None, None if out is x else values)
    length, place = moved[-1], _axis(axis, len(moved))
    direct = dtype == np.float32 and place == len(moved) - 1 and length == rows.shape[-1]
    if rows.dtype != object and tensor == 1 and dtype != np.float64:
        found = result if direct else np.empty((*moved[:-1], rows.shape[-1]), np.float32)
        from .plans import quantize_flat

        quantize_flat(rows.reshape(-1), found.reshape(-1), fmt, how, threads)
    else:
        codes = encode(x, fmt, rule=how, threads=threads, scale=scale, axis=axis)
        found = decode(codes, fmt, np.float64 if dtype == np.float64 or tensor != 1 else np.float32, scale=scale)
    if found is result:
        return _delivered(found, result, out)
    return _delivered(np.moveaxis(_converted(found[..., :length], dtype), -1, place), result, out)


def tensor_scale(x: Any, fmt: BlockFormat | str = "nvfp4") -> np.float32:
    """Return the usual scale of a whole tensor: its largest magnitude over that of the format.

    Examples
    --------
    >>> tensor_scale(np.float32([-5376, 1]))
    np.float32(2.0)
    """
    found = format(fmt)
    if not isinstance(found, ScaledFormat) or not found.tensor_scale:
        raise ValueError(f"fmt={found.name!r} has no scale of the whole tensor")
    values, _ = values_of(x, found)
    amax = float(np.max(np.abs(values.astype(np.float64)), initial=0))
    if not math.isfinite(amax):
        raise ValueError("x has an Inf or a NaN, of which there is no scale")
    amax = min(amax, float(np.finfo(np.float32).max))  # as `encode` takes what is beyond
    return max(np.float32(amax / float(found.max)), np.finfo(np.float32).smallest_subnormal) if amax else np.float32(1)


def take_apart(codes: Array, fmt: BlockFormat) -> tuple[Array, Array, Array]:
    """Split packed blocks into their fields.

    Returns
    -------
    heads : ndarray of uint8, shape (n,)
        Shared exponents or scale codes.
    shifts : ndarray, shape (n, level-2 exponents), or (n, 1) of zeros
    codes : ndarray of uint8, shape (n, block_size)
    """
    from . import plans

    return plans.take_apart(codes, fmt)


# --- arguments --------------------------------------------------------------------------------------------------------


def _refuse(others: dict[str, Any], fmt: BlockFormat) -> None:
    for name, value in others.items():
        if value is not None:
            raise ValueError(f"{name}={value!r} has no meaning for the block format {fmt.name}")


def _tensor(scale: Any, fmt: BlockFormat) -> float:
    return 1.0 if scale is None else checked_scale(scale, fmt)


def checked_scale(scale: Any, fmt: BlockFormat) -> float:
    """Return the scale of a whole tensor, or raise `ValueError` for what is none."""
    if not isinstance(fmt, ScaledFormat) or not fmt.tensor_scale:
        raise ValueError(f"scale={scale!r}: {fmt.name} has no scale of the whole tensor")
    value = np.asarray(scale)
    if value.size != 1 or value.dtype.kind not in "fiu" or not 0 < float(value.reshape(())) < math.inf:
        raise ValueError(f"scale={scale!r} must be one positive number, a float32")
    with np.errstate(over="ignore", under="ignore"):
        nearest = value.astype(np.float32).reshape(())
    if nearest != value:
        raise ValueError(f"scale={scale!r} is not a float32; the nearest is {nearest[()]!r}")
    return float(nearest)


def _axis(axis: Any, ndim: int) -> int:
    if not isinstance(axis, (int, np.integer)) or not -ndim <= axis < ndim:
        raise ValueError(f"axis={axis!r} is out of range for {ndim} dimensions")
    return int(axis) % ndim


def _rows(
    array: Array, source: Format | None, fmt: BlockFormat, tensor: float, axis: int
) -> tuple[Array, tuple[int, ...]]:
    """Return float32, bfloat16 or exact values, blocks along the last axis and padded; and the shape before padding."""
    if array.ndim == 0:
        raise ValueError(f"x has no axis along which blocks of {fmt.name} could lie")
    array = np.moveaxis(array, _axis(axis, array.ndim), -1)
    moved = array.shape
    name = None if source is None else source.name
    if name in _EXACT_IN_FLOAT32:
        array = array.astype(np.float32)
    elif name not in _DIRECT:
        if name is None or tensor != 1:
            array = _exact_values(array)
        else:  # with 24 bits, the last odd if anything was dropped, no rounding that follows can tell the difference
            array = np.asarray(encode_elements(array, "float32", "odd", "saturate_finite"))
    missing = -moved[-1] % fmt.block_size
    if missing:
        padded = np.zeros((*moved[:-1], moved[-1] + missing), array.dtype)
        padded[..., : moved[-1]] = array
        array = padded
    return np.ascontiguousarray(array), moved


def _exact_values(array: Array) -> Array:
    from ..parse import exact_value

    flat = array.reshape(-1).tolist()
    found = np.empty(array.size, object)
    found[:] = [exact_value(item)[0] for item in flat]
    return found.reshape(array.shape)


def _delivered(found: Array, result: Array, out: Array | None) -> Array:
    """Return what was found: in `out` where given, else in `result`, which has its shape and dtype."""
    if found is not result:
        np.copyto(result, found)
    return finish(result, out, result)


def _converted(found: Array, dtype: np.dtype[Any]) -> Array:
    """Convert float32 or float64 to `dtype`, in native byte order, with one rounding."""
    native = dtype.newbyteorder("=")
    if found.dtype == native:
        return found
    return np.asarray(encode_elements(found, format(native), overflow="infinity")).view(native)


def _exactly(rows: Array, fmt: BlockFormat, rule: BlockRule, tensor: float) -> Array:
    """Ask the specification, block by block."""
    found = bytearray()
    for block in rows.reshape(-1, fmt.block_size).tolist():
        found += exact_blocks.to_bytes(exact_blocks.encode(block, fmt, rule, Fraction(tensor)), fmt)
    return np.frombuffer(found, np.uint8)
