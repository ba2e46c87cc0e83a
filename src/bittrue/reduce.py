"""`sum`, `mean` and `dot` over `Array`s; how an accumulator adds is in `accumulators`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .accumulators import Accumulator, accumulator, codes_from_exact, exact_target
from .array import Array, Axis, array, expect_array, rows_along
from .codes import values
from .formats import ComplexFormat, Format
from .formats import format as find_format
from .rounding import Overflow, Rule

__all__ = ["dot", "mean", "sum"]

Plain = np.ndarray[Any, Any]


def sum(
    a: Array,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    accumulate: Format | str | DTypeLike | None = None,
    order: str = "pairwise",
    overflow: Overflow | str = "saturate",
    out_format: Format | str | DTypeLike | None = None,
    rule: Rule | None = None,
) -> Any:
    """Add up elements in a stated accumulator, never in the format itself unless told to.

    Parameters
    ----------
    a : Array
    axis : int, tuple of int or None
        Axes to add along; default all.
    keepdims : bool
        Keep the reduced axes with length 1.
    accumulate : Format, name, dtype or "exact", optional
        Type of the accumulator. A float: elements are rounded to it, and so is every partial sum, to nearest even. An
        integer: elements are added as they are, every partial sum is limited to it (`overflow`). Default: float32
        (float64 where float32 does not hold the elements); for integers int32 up to 16 bits, else int64.
        "exact": nothing is rounded but the result, once, to `out_format` or, without it, to the default accumulator
        (integers: int64, or OverflowError).
    order : {"pairwise", "sequential"}
        "pairwise": a balanced tree. Neighbours are added, (x0 + x1), (x2 + x3), ..., then neighbouring sums; the last
        of an odd number moves up unchanged. "sequential": from the first to the last, as one hardware accumulator
        does. Both are independent of memory layout and NumPy's release. Several axes count as one, in C order.
    overflow : {"saturate", "wrap", "raise"}
        What an integer accumulator does at each addition. Floats become infinite.
    out_format : Format, name or dtype, optional
        Round the result to this format and return an `Array`.
    rule : Rule, optional
        How to round to `out_format`; default `Rule()`.

    Returns
    -------
    NumPy scalar or array of the accumulator's type (`Array` with `out_format`)
        Accumulators that NumPy lacks: the plainest NumPy type that holds their values.

    Raises
    ------
    TypeError
        For an integer accumulator of floats.
    OverflowError
        Under ``overflow="raise"``.

    Examples
    --------
    >>> ones = Array([0x3F80] * 4096, "bfloat16")
    >>> sum(ones), sum(ones, accumulate="bfloat16", order="sequential")
    (np.float32(4096.0), np.float32(256.0))
    """
    how = accumulator(accumulate, (expect_array(a).format,), order, overflow)
    return _along(a, axis, keepdims, how, out_format, rule, mean=False)


def mean(
    a: Array,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    accumulate: Format | str | DTypeLike | None = None,
    order: str = "pairwise",
    overflow: Overflow | str = "saturate",
    out_format: Format | str | DTypeLike | None = None,
    rule: Rule | None = None,
) -> Any:
    """Return the mean: the `sum`, divided by the number of elements with one more rounding.

    Parameters are those of `sum`. With ``accumulate="exact"`` the quotient alone is rounded.

    Returns
    -------
    NumPy scalar or array of the accumulator's type, float64 for integer ones (`Array` with `out_format`)
        NaN where there are no elements.

    Examples
    --------
    >>> ones = Array([0x3F80] * 4096, "bfloat16")
    >>> mean(ones), mean(ones, out_format="bfloat16")
    (np.float32(1.0), Array(1., shape=(), format=bfloat16))
    """
    how = accumulator(accumulate, (expect_array(a).format,), order, overflow)
    return _along(a, axis, keepdims, how, out_format, rule, mean=True)


def dot(
    a: Array,
    b: Array,
    *,
    accumulate: Format | str | DTypeLike | None = None,
    order: str = "pairwise",
    overflow: Overflow | str = "saturate",
    out_format: Format | str | DTypeLike | None = None,
    rule: Rule | None = None,
) -> Any:
    """Multiply and add up: along the last axis of `a` and the last but one (or only one) of `b`, as `numpy.dot`.

    Parameters
    ----------
    a, b : Array
        Formats may differ.
    accumulate, order, overflow, out_format, rule
        As in `sum`. Elements are rounded to a float accumulator, then each product is, then each partial sum (no fused
        multiply-add). Integer accumulators take exact products.

    Returns
    -------
    NumPy scalar or array of the accumulator's type (`Array` with `out_format`)

    Examples
    --------
    >>> dot(Array([1, 2, 3], "int4"), Array([1, 1, 1], "uint4"))
    np.int32(6)
    """
    formats = (expect_array(a, "a").format, expect_array(b, "b").format)
    for f in formats:
        if isinstance(f, ComplexFormat):
            raise TypeError(f"dot is not defined for the complex format {f.name}; take .real and .imag")
    how = accumulator(accumulate, formats, order, overflow)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"dot needs at least one axis, not shapes {a.shape} and {b.shape}")
    x, y = values(a.codes, formats[0]), values(b.codes, formats[1])
    y, n = np.moveaxis(y, -2 if y.ndim > 1 else -1, -1), x.shape[-1]
    if y.shape[-1] != n:
        raise ValueError(f"dot: shapes {a.shape} and {b.shape} do not fit: {n} elements against {y.shape[-1]}")
    rows, columns = x.reshape(math.prod(x.shape[:-1]), n), y.reshape(math.prod(y.shape[:-1]), n)
    none = how.sum_rows(np.zeros((0, 0), x.dtype))  # gives the dtype where there are no rows
    totals = np.concatenate([none, *(how.sum_rows(how.multiply(row, columns)) for row in rows)])
    return _delivered(totals.reshape(x.shape[:-1] + y.shape[:-1]), how, formats, out_format, rule, mean=False)


def _along(
    a: Array, axis: Axis, keepdims: bool, how: Accumulator, out_format: Any, rule: Rule | None, mean: bool
) -> Any:
    if isinstance(a.format, ComplexFormat):
        if out_format is not None:
            raise TypeError(f"out_format={out_format!r} is for real formats; reduce .real and .imag of {a.format.name}")
        both = np.stack([_along(part, axis, keepdims, how, None, None, mean) for part in (a.real, a.imag)], axis=-1)
        return both.view(np.result_type(both, np.complex64))[..., 0][()]
    rows, shape = rows_along(values(a.codes, a.format), axis, keepdims)
    totals = how.sum_rows(rows)
    if mean:
        totals = how.divide(totals, rows.shape[1])
    return _delivered(totals.reshape(shape), how, (a.format,), out_format, rule, mean)


def _delivered(
    totals: Plain, how: Accumulator, elements: tuple[Format, ...], out_format: Any, rule: Rule | None, mean: bool
) -> Any:
    """Give a result its type: the accumulator's, or an Array where `out_format` says so."""
    if out_format is None:
        if rule is not None:
            raise ValueError("rule is for the rounding to out_format, which is not given")
        if how.format is not None:
            return totals[()]
        target, ieee = exact_target(elements, mean)
        return values(codes_from_exact(totals, target, ieee), target)[()]
    target = find_format(out_format)
    if how.format is None:
        return Array(codes_from_exact(totals, target, rule or Rule()), target)
    return array(totals, target, rule=rule)
