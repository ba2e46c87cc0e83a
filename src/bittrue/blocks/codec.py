"""`encode`, `decode` and `quantize` of block formats: arguments, axes, padding and threads around the kernels.

`bittrue.encode` and its sisters come here for block formats; the arguments mean the same, where they mean anything.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from .. import exact_blocks
from ..arguments import values_of
from ..codec import encode as encode_elements
from ..formats import FloatFormat, format
from ..kinds.block import BlockFormat, BlockRule, Nonfinite, ScaledFormat
from ..rounding import Rule
from .layout import from_kernel_order, is_kernel_order

__all__ = ["block_rule", "decode", "encode", "quantize", "take_apart", "tensor_scale"]

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
    rows, moved = _rows(x, fmt, tensor, axis)
    shape = (*moved[:-1], fmt.blocks(moved[-1]) * fmt.block_bytes)
    result = _output(out, shape, np.dtype(np.uint8), rows)
    flat = result.reshape(-1)
    if rows.dtype == object:
        flat[:] = _exactly(rows, fmt, how, tensor)
    else:
        from .plans import encode_flat

        encode_flat(rows.reshape(-1), flat, fmt, how, tensor, threads)
        if not is_kernel_order(fmt):
            flat[:] = from_kernel_order(flat, fmt)
    return _deliver(result, out)


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
    target = np.dtype(dtype)
    wide = np.dtype(np.float64 if target.itemsize == 8 or tensor != 1 else np.float32)
    shape = (*array.shape[:-1], length)
    direct = target == wide and axis == array.ndim - 1 and _serves(out, shape, wide)
    found = out if out is not None and direct and not np.may_share_memory(out, array) else np.empty(shape, wide)
    from .plans import decode_flat

    decode_flat(array.reshape(-1), found.reshape(-1), fmt, tensor, threads)
    return found if found is out else _as_values(found, target, axis, out)


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
    rows, moved = _rows(x, fmt, tensor, axis)
    source = getattr(x, "dtype", rows.dtype)
    dtype = np.dtype(source) if getattr(source, "name", "") in ("float16", "bfloat16", "float64") else np.dtype("f4")
    if np.dtype(source).kind in "iub" and np.dtype(source).itemsize > 2:
        dtype = np.dtype(np.float64)
    length, ndim = moved[-1], len(moved)
    place = _axis(axis, ndim)
    whole = place == ndim - 1 and length % fmt.block_size == 0
    in_place = whole and dtype == np.float32 and _serves(out, moved, dtype)
    if rows.dtype != object and tensor == 1 and dtype != np.float64:
        found = out if in_place else np.empty((*moved[:-1], rows.shape[-1]), np.float32)
        assert found is not None
        from .plans import quantize_flat

        quantize_flat(rows.reshape(-1), found.reshape(-1), fmt, how, threads)
    else:
        codes = encode(x, fmt, rule=how, threads=threads, scale=scale, axis=axis)
        found = decode(codes, fmt, np.float64 if dtype == np.float64 or tensor != 1 else np.float32, scale=scale)
    if in_place and found is out:
        return found
    return _as_values(found[..., :length], dtype, place, out)


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
    amax = np.max(np.abs(np.asarray(x, np.float32)), initial=0)
    return np.float32(amax / np.float64(float(found.max))) if amax > 0 else np.float32(1)


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
    if scale is None:
        return 1.0
    if not isinstance(fmt, ScaledFormat) or not fmt.tensor_scale:
        raise ValueError(f"scale={scale!r}: {fmt.name} has no scale of the whole tensor")
    value = np.asarray(scale)
    if value.size != 1 or not math.isfinite(float(value)) or float(np.float32(value)) <= 0:
        raise ValueError(f"scale={scale!r} must be one positive number, a float32")
    if np.float32(value) != value:
        raise ValueError(f"scale={scale!r} is not a float32; the nearest is {np.float32(value)!r}")
    return float(value)


def _axis(axis: Any, ndim: int) -> int:
    if not isinstance(axis, (int, np.integer)) or not -ndim <= axis < ndim:
        raise ValueError(f"axis={axis!r} is out of range for {ndim} dimensions")
    return int(axis) % ndim


def _rows(x: Any, fmt: BlockFormat, tensor: float, axis: int) -> tuple[Array, tuple[int, ...]]:
    """Return float32, bfloat16 or exact values, blocks along the last axis and padded; and the shape before padding."""
    array, source = values_of(x, fmt)
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


def _output(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], source: Array) -> Array:
    if out is None:
        return np.empty(shape, dtype)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be a NumPy array, not {type(out).__name__}")
    if out.shape != shape or out.dtype != dtype:
        raise ValueError(f"out has shape {out.shape} and dtype {out.dtype}; expected {shape} and {dtype}")
    if not out.flags.writeable:
        raise ValueError("out is read-only")
    if source.dtype != object and np.may_share_memory(out, source) and np.shares_memory(out, source):
        raise ValueError("out overlaps the input; pass separate memory")
    return out if out.flags.c_contiguous else np.empty(shape, dtype)


def _serves(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether a kernel may write into `out` itself."""
    return (
        isinstance(out, np.ndarray)
        and out.dtype == dtype
        and out.shape == shape
        and out.flags.c_contiguous
        and out.flags.writeable
    )


def _deliver(result: Array, out: Array | None) -> Array:
    if out is None or out is result:
        return result
    np.copyto(out, result)
    return out


def _as_values(found: Array, dtype: np.dtype[Any], axis: int, out: Array | None) -> Array:
    """Convert float32 or float64 to `dtype` with one rounding and put the axis of the elements in its place."""
    if found.dtype != dtype:
        target = format(dtype)
        if not isinstance(target, FloatFormat) or target.name not in ("float16", "bfloat16", "float32", "float64"):
            raise ValueError(f"dtype={dtype} cannot hold values of blocks; use float32, float64, float16 or bfloat16")
        found = np.asarray(encode_elements(found, target, overflow="infinity")).view(dtype)
    found = np.moveaxis(found, -1, axis)
    if out is None:
        return np.ascontiguousarray(found)
    if out.shape != found.shape or out.dtype != found.dtype:
        raise ValueError(f"out has shape {out.shape} and dtype {out.dtype}; expected {found.shape} and {found.dtype}")
    np.copyto(out, found)
    return out


def _exactly(rows: Array, fmt: BlockFormat, rule: BlockRule, tensor: float) -> Array:
    """Ask the specification, block by block."""
    found = bytearray()
    for block in rows.reshape(-1, fmt.block_size).tolist():
        found += exact_blocks.to_bytes(exact_blocks.encode(block, fmt, rule, Fraction(tensor)), fmt)
    return np.frombuffer(found, np.uint8)
