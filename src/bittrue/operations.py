"""Functions over `Array`s, and what NumPy's own functions do with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import codes as on_codes
from .array import Array, Axis, expect_array, plain_values
from .codes import ULP_NAN
from .formats import Format
from .reduce import dot, mean, sum

__all__ = [
    "ULP_NAN",
    "abs",
    "argmax",
    "argmin",
    "argsort",
    "concatenate",
    "equal",
    "isfinite",
    "isinf",
    "isnan",
    "max",
    "min",
    "neg",
    "nextafter",
    "signbit",
    "sort",
    "take",
    "ulp_distance",
    "unique",
]

Plain = np.ndarray[Any, Any]


# --- classes of values and signs --------------------------------------------------------------------------------------


def isnan(a: Array) -> Any:
    """Say which elements are NaN.

    Examples
    --------
    >>> isnan(Array([0x7F, 0x38], "float8_e4m3fn"))
    array([ True, False])
    """
    return on_codes.is_nan(expect_array(a).codes, a.format)[()]


def isinf(a: Array) -> Any:
    """Say which elements are infinite.

    Examples
    --------
    >>> isinf(Array([0x6F, 0xEF, 0x80], "hifloat8"))
    array([ True,  True, False])
    """
    return on_codes.is_inf(expect_array(a).codes, a.format)[()]


def isfinite(a: Array) -> Any:
    """Say which elements are neither infinite nor NaN.

    Examples
    --------
    >>> isfinite(Array([0x6F, 0xEF, 0x08], "hifloat8"))
    array([False, False,  True])
    """
    return ~(isnan(a) | isinf(a))


def signbit(a: Array) -> Any:
    """Say which elements have the sign of a negative number, -0.0 and negative NaN among them.

    Examples
    --------
    >>> signbit(Array([0x80, 0x00, 0xFF], "float8_e4m3fn"))
    array([ True, False,  True])
    """
    return on_codes.sign_bit(expect_array(a).codes, a.format)[()]


def abs(a: Array) -> Array:
    """Drop the sign, exactly. The lowest integer, whose negative does not exist, stays, as in NumPy.

    Examples
    --------
    >>> abs(Array([0xB8, 0x80], "float8_e4m3fn"))
    Array([1., 0.], shape=(2,), format=float8_e4m3fn)
    """
    return expect_array(a).__abs__()


def neg(a: Array) -> Array:
    """Change the sign, exactly. The lowest integer and unsigned integers wrap, as in NumPy.

    Where a format has no -0.0, zero stays; a NaN changes its sign where it has one.

    Raises
    ------
    TypeError
        For bool and unsigned float formats.

    Examples
    --------
    >>> neg(Array([0x38, 0x00], "float8_e4m3fn"))
    Array([-1., -0.], shape=(2,), format=float8_e4m3fn)
    """
    return -expect_array(a)


# --- neighbours -------------------------------------------------------------------------------------------------------


def nextafter(a: Array, toward: Any) -> Array:
    """Return the next value of the format in the direction of another number.

    Parameters
    ----------
    a : Array
    toward : Array or array_like of numbers
        Broadcast against `a`. Where it equals an element, that element is returned (from an Array of the same format,
        its code is taken, as in C).

    Returns
    -------
    Array
        In value order, which is not code order in hifloat8 or among negative numbers. Infinity follows the largest
        value where the format has one; at the end of the range an element stays. There is one zero; a step from a
        negative value onto it gives -0.0 where that exists. NaN stays, and a NaN in `toward` gives NaN.

    Raises
    ------
    ValueError
        When `toward` is NaN and the format has none.

    Examples
    --------
    >>> nextafter(Array([0x14, 0x20], "hifloat8"), 0)
    Array([2.75, 3.75], shape=(2,), format=hifloat8)
    """
    f, target = expect_array(a).format, plain_values(toward)
    if target is None:
        raise TypeError(f"toward must be numbers, not {toward!r:.60}")
    order = on_codes.compare_values(on_codes.values(a.codes, f), target)
    codes = np.broadcast_to(a.codes, order.shape)
    moved = on_codes.step(codes, -order, f)
    if isinstance(toward, Array) and toward.format == f:
        moved = np.where(order == 0, toward.codes, moved)
    lost = (order == on_codes.UNORDERED) & ~on_codes.is_nan(codes, f)
    if lost.any():
        code = getattr(f, "nan_code", None)
        if code is None:
            raise ValueError(f"toward is NaN, which {f.name} does not have")
        moved = np.where(lost, f.code_dtype.type(code), on_codes.bit_patterns(moved, f)).view(f.storage)
    return Array._wrap(moved, f)


def ulp_distance(a: Array, b: Array) -> Any:
    """Count the steps between representable values from `a` to `b`.

    Parameters
    ----------
    a, b : Array
        Of one format; broadcast against each other.

    Returns
    -------
    numpy.ndarray of uint64
        0 for equal values, -0.0 and 0.0, and two NaN; infinity is the value after the largest. `ULP_NAN`, the largest
        uint64, between a NaN and a number.

    Examples
    --------
    >>> ulp_distance(Array([0x38, 0x80, 0x81], "float8_e4m3fn"), Array([0x3A, 0x00, 0x01], "float8_e4m3fn"))
    array([2, 0, 2], dtype=uint64)
    """
    f = _same_format((expect_array(a, "a"), expect_array(b, "b")))
    x, y = np.broadcast_arrays(a.codes, b.codes)
    return on_codes.distance(x, y, f)[()]


def _same_format(arrays: Sequence[Array]) -> Format:
    if any(a.format != arrays[0].format for a in arrays):
        names = " and ".join(dict.fromkeys(a.format.name for a in arrays))
        raise ValueError(f"arrays must have one format, not {names}; use .astype first")
    return arrays[0].format


def equal(a: Any, b: Any) -> Any:
    """Compare values element by element: NaN differs from itself, -0.0 equals 0.0. Formats may differ.

    Examples
    --------
    >>> equal(Array([0x38, 0x7F], "float8_e4m3fn"), Array([0x3F80, 0x7FC0], "bfloat16"))
    array([ True, False])
    """
    return expect_array(a) == b if isinstance(a, Array) else expect_array(b, "b") == a


# --- order ------------------------------------------------------------------------------------------------------------


def sort(a: Array, axis: int | None = -1) -> Array:
    """Sort by value: stable, NaN last, -0.0 and 0.0 equal. ``axis=None`` sorts all elements.

    Examples
    --------
    >>> sort(Array([0x70, 0x7E, 0x08, 0x80], "hifloat8"))
    Array([3.0517578e-05, 3.9062500e-03, 1.0000000e+00,           nan],
          shape=(4,), format=hifloat8)
    """
    return expect_array(a).sort(axis)


def argsort(a: Array, axis: int | None = -1) -> Plain:
    """Return the indices that `sort` an array.

    Examples
    --------
    >>> argsort(Array([0x70, 0x7E, 0x08, 0x80], "hifloat8"))
    array([1, 0, 2, 3])
    """
    return expect_array(a).argsort(axis)


def argmax(a: Array, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Return the index of the first largest value; the first NaN counts as largest, as in NumPy.

    Examples
    --------
    >>> int(argmax(Array([0x70, 0x7E, 0x08], "hifloat8")))
    2
    """
    return expect_array(a).argmax(axis, keepdims=keepdims)


def argmin(a: Array, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Return the index of the first smallest value; the first NaN counts as smallest, as in NumPy.

    Examples
    --------
    >>> int(argmin(Array([0x70, 0x7E, 0x08], "hifloat8")))
    1
    """
    return expect_array(a).argmin(axis, keepdims=keepdims)


def max(a: Array, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """Return the largest value, of all or along axes; NaN where there is one.

    Examples
    --------
    >>> max(Array([0x38, 0x40, 0xB8], "float8_e4m3fn"))
    Array(2., shape=(), format=float8_e4m3fn)
    """
    return expect_array(a).max(axis, keepdims=keepdims)


def min(a: Array, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """Return the smallest value, of all or along axes; NaN where there is one.

    Examples
    --------
    >>> min(Array([0x38, 0x40, 0xB8], "float8_e4m3fn"))
    Array(-1., shape=(), format=float8_e4m3fn)
    """
    return expect_array(a).min(axis, keepdims=keepdims)


def unique(a: Array, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """Return the different values in ascending order, one NaN at the end; -0.0 and 0.0 count as one value.

    Parameters
    ----------
    a : Array
    return_index, return_inverse, return_counts : bool
        Also return, as `numpy.unique` does, the index of each value's first appearance (whose code is the one
        returned), the index of each element's value, and how often each appears.

    Examples
    --------
    >>> unique(Array([0x7F, 0x7F, 0x38, 0x7F], "float8_e4m3fn"))
    Array([ 1., nan], shape=(2,), format=float8_e4m3fn)
    """
    codes = expect_array(a).codes
    number: Any = np.unique  # its overloads know constant arguments only
    _, first, *more = number(on_codes.sort_keys(codes, a.format), True, return_inverse, return_counts)
    found = Array._wrap(codes.ravel()[first], a.format)
    extra = ([first] if return_index else []) + list(more)
    return (found, *extra) if extra else found


def take(a: Array, indices: ArrayLike, axis: int | None = None) -> Array:
    """Return the elements at `indices`, of the flattened array or along `axis`.

    Examples
    --------
    >>> take(Array([0x38, 0x40], "float8_e4m3fn"), [1, 1, 0])
    Array([2., 2., 1.], shape=(3,), format=float8_e4m3fn)
    """
    return expect_array(a).take(indices, axis)


def concatenate(arrays: Sequence[Array], axis: int | None = 0) -> Array:
    """Join arrays of one format along an axis; ``axis=None`` flattens them first.

    Raises
    ------
    ValueError
        When the formats or the shapes do not fit.

    Examples
    --------
    >>> concatenate([Array([0x38], "float8_e4m3fn"), Array([0x40], "float8_e4m3fn")])
    Array([1., 2.], shape=(2,), format=float8_e4m3fn)
    """
    every = [expect_array(a, f"arrays[{i}]") for i, a in enumerate(arrays)]
    if not every:
        raise ValueError("arrays is empty; at least one is needed")
    f = _same_format(every)
    return Array._wrap(np.concatenate([a.codes for a in every], axis), f)


# --- NumPy's functions ------------------------------------------------------------------------------------------------

#: NumPy functions that keep the format. Others, and arguments that ours lack, work on the values.
_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    np.sort: sort,
    np.argsort: argsort,
    np.argmax: argmax,
    np.argmin: argmin,
    np.max: max,
    np.min: min,
    np.amax: max,
    np.amin: min,
    np.unique: unique,
    np.take: take,
    np.concatenate: concatenate,
    np.sum: sum,
    np.mean: mean,
    np.dot: dot,
    np.reshape: lambda a, shape: a.reshape(shape),
    np.ravel: lambda a: a.ravel(),
    np.transpose: lambda a, axes=None: a.transpose(axes),
    np.copy: lambda a: a.copy(),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
}

_UFUNCS: Mapping[Any, Callable[..., Any]] = {
    np.isnan: isnan,
    np.isinf: isinf,
    np.isfinite: isfinite,
    np.signbit: signbit,
    np.absolute: abs,
    np.negative: neg,
    np.nextafter: nextafter,
    np.equal: equal,
    np.not_equal: lambda a, b: a != b,
    np.less: lambda a, b: a < b,
    np.less_equal: lambda a, b: a <= b,
    np.greater: lambda a, b: a > b,
    np.greater_equal: lambda a, b: a >= b,
}


def call_numpy_function(func: Any, args: Any, kwargs: Any) -> Any:
    """Run a NumPy function on arguments that hold `Array`s (NEP 18). Our sorts are stable whatever is asked for."""
    ours = _FUNCTIONS.get(func)
    if ours is not None:
        given = {k: v for k, v in kwargs.items() if k == "axis" or (v is not None and k not in ("kind", "stable"))}
        try:
            inspect.signature(ours).bind(*args, **given)
        except TypeError:
            ours = None
        else:
            return ours(*args, **given)
    return func(*_plain(args), **_plain(kwargs))


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run a NumPy ufunc on operands that hold `Array`s (NEP 13)."""
    ours = _UFUNCS.get(ufunc)
    if ours is not None and method == "__call__" and not kwargs:
        if isinstance(inputs[0], Array):
            return ours(*inputs)
        if ufunc is not np.nextafter:
            return ours(*inputs)
    return getattr(ufunc, method)(*_plain(inputs), **_plain(kwargs))


def _plain(x: Any) -> Any:
    """Replace arrays by their values, in nested containers too."""
    if isinstance(x, Array):
        return np.asarray(x)
    if isinstance(x, (list, tuple)):
        return type(x)(map(_plain, x))
    if isinstance(x, Mapping):
        return {k: _plain(v) for k, v in x.items()}
    return x
