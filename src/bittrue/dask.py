"""Dask: `quantize`, `encode` and `decode` of dask arrays, lazy and chunk by chunk; needs dask.

Every chunk goes through the function of the same name of the package, on one thread: Dask brings the threads. Where a
result depends on more than its own element (blocks, random bits), chunks are made to give what the whole array would.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from . import codec
from .formats import Format
from .formats import format as _format
from .kinds.block import BlockFormat
from .rounding import Rounding, make_rule

try:
    import dask.array as da
except ImportError as error:
    raise ImportError("bittrue.dask needs Dask, which is not installed: pip install 'bittrue[dask]'") from error

__all__ = ["decode", "encode", "quantize"]

_REFUSED = ("out", "threads", "random")


def quantize(x: da.Array, format: Format | str, *args: Any, axis: int = -1, **options: Any) -> da.Array:
    """Round values to those that a format holds; arguments of `bittrue.quantize`.

    Parameters
    ----------
    x : dask array
    format : Format or name
    axis : int
        Of block formats: chunks along it are merged where their edges cut a block. Of `scale` and `zero_point`.
    *args, **options
        As in `bittrue.quantize`, without `out`, `threads` and `random`; `scale` and `zero_point` are numbers.

    Returns
    -------
    dask array
        Of the shape and dtype of the result of `bittrue.quantize`; equal to it, however `x` is cut.

    Raises
    ------
    TypeError
        When `x` is no dask array.
    ValueError
        For stochastic rounding, whose random bits depend on the place of an element in the whole array.

    Examples
    --------
    >>> x = da.linspace(-4, 4, 9, chunks=4)
    >>> quantize(x, "float4_e2m1fn", "trunc").compute()
    array([-4., -3., -2., -1.,  0.,  1.,  2.,  3.,  4.])
    """
    fmt = _checked(x, format, args, options)
    x = _whole_blocks(x, fmt, axis)
    run = partial(_run, codec.quantize, format=fmt, args=args, options={**options, "axis": axis, "threads": 1})
    sample = (1,) * x.ndim if isinstance(fmt, BlockFormat) else (0,)  # nothing that a rule could refuse
    dtype = run(np.zeros(sample, x.dtype)).dtype
    return x.map_blocks(run, dtype=dtype, meta=np.empty((0,) * x.ndim, dtype))


def encode(x: da.Array, format: Format | str, *args: Any, axis: int = -1, **options: Any) -> da.Array:
    """Convert values into codes; arguments of `bittrue.encode`, restrictions of `quantize`.

    Block formats give bytes along a last axis, as `bittrue.encode` does.

    Examples
    --------
    >>> encode(da.ones((4, 32), chunks=(2, 8)), "mx6").chunks
    ((2, 2), (12, 12))
    """
    fmt = _checked(x, format, args, options)
    x = _whole_blocks(x, fmt, axis)
    run = partial(_run, codec.encode, format=fmt, args=args, options={**options, "axis": axis, "threads": 1})
    if not isinstance(fmt, BlockFormat):
        return x.map_blocks(run, dtype=fmt.storage, meta=np.empty((0,) * x.ndim, fmt.storage))
    moved = da.moveaxis(x, axis, -1)
    run.keywords["options"]["axis"] = -1
    sizes = tuple(fmt.blocks(n) * fmt.block_bytes for n in moved.chunks[-1])
    return moved.map_blocks(
        run, chunks=(*moved.chunks[:-1], sizes), dtype=np.uint8, meta=np.empty((0,) * x.ndim, np.uint8)
    )


def decode(
    codes: da.Array, format: Format | str, dtype: Any = np.float32, *, axis: int = -1, **options: Any
) -> da.Array:
    """Convert codes into values; arguments of `bittrue.decode` without `out` and `threads`.

    Examples
    --------
    >>> decode(encode(da.ones(48, chunks=16), "mx9"), "mx9").sum().compute()
    np.float32(48.0)
    """
    fmt = _checked(codes, format, (), options)
    kind = np.dtype(dtype)
    meta = np.empty((0,) * codes.ndim, kind)
    if not isinstance(fmt, BlockFormat):
        run = partial(_run, codec.decode, format=fmt, args=(kind,), options={**options, "axis": axis, "threads": 1})
        return codes.map_blocks(run, dtype=kind, meta=meta)
    merged = _rechunked(codes, codes.ndim - 1, fmt.block_bytes)
    sizes = tuple(n // fmt.block_bytes * fmt.block_size for n in merged.chunks[-1])
    run = partial(_run, codec.decode, format=fmt, args=(kind,), options={**options, "threads": 1})
    values = merged.map_blocks(run, chunks=(*merged.chunks[:-1], sizes), dtype=kind, meta=meta)
    return da.moveaxis(values, -1, axis)


def _run(function: Any, x: Any, *, format: Format, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return np.asarray(function(np.asarray(x), format, *args, **options))


def _checked(x: Any, format: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Format:
    if not isinstance(x, da.Array):
        raise TypeError(f"x must be a dask array, not {type(x).__name__}; for NumPy arrays take bittrue's functions")
    if any(math.isnan(n) for n in x.shape):
        raise ValueError(f"x has chunks of unknown size ({x.shape}); call x.compute_chunk_sizes() first")
    if len(args) > 4:
        raise TypeError(f"{len(args) + 2} arguments by position; name those after rule")
    fmt = _format(format)
    for name in _REFUSED:
        if options.get(name) is not None:
            raise ValueError(f"{name}= has no meaning for dask arrays")
    for name in ("scale", "zero_point"):
        if options.get(name) is not None and np.ndim(options[name]):
            raise ValueError(f"{name}= must be one number for dask arrays, not of shape {np.shape(options[name])}")
    if not isinstance(fmt, BlockFormat):
        given = {**dict(zip(("rounding", "overflow", "nan", "rule"), args)), **options}
        rule = make_rule(given.get("rule"), rounding=given.get("rounding"))
        if rule.rounding is Rounding.stochastic:
            raise ValueError("rounding='stochastic' depends on the place in the whole array; not for dask arrays")
    return fmt


def _whole_blocks(x: da.Array, fmt: Format, axis: int) -> da.Array:
    """Merge chunks whose edges cut a block."""
    if not isinstance(fmt, BlockFormat):
        return x
    if not isinstance(axis, int) or not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis={axis!r} is out of range for {x.ndim} dimensions")
    return _rechunked(x, axis % x.ndim, fmt.block_size)


def _rechunked(x: da.Array, axis: int, unit: int) -> da.Array:
    sizes: list[int] = []
    rest = 0
    for n in x.chunks[axis]:
        whole = (rest + n) // unit * unit
        rest += n - whole
        if whole:
            sizes.append(whole)
    if rest or not sizes:
        sizes.append(rest)
    return x if tuple(sizes) == x.chunks[axis] else x.rechunk({axis: tuple(sizes)})
