"""`matmul`: operands through the matrix unit into accumulators and out through Fixpipe."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import codec
from .. import matmul as products
from ..array import Array
from ..records import records
from ..rounding import Overflow
from .choices import Choices
from .control import Saturation
from .fixpipe import fixpipe
from .products import DEFAULT_PRODUCT, Product
from .products import product as find_product
from .quant import QuantParam
from .quantmodes import QuantMode, architecture, quant_mode
from .types import Type, require, type_info

__all__ = ["MatmulReport", "matmul"]

Plain = np.ndarray[Any, Any]


class MatmulReport(NamedTuple):
    """What `matmul` returns with ``report=True``.

    Attributes
    ----------
    result : Array
    accumulators : ndarray of shape [m, n]
        What Fixpipe was given: int32 or float32.
    bound : ndarray of float64, shape [m, n]
        No order of accumulation that `matmul` offers gives an accumulator further away than this. 0 for integers.
    """

    result: Array
    accumulators: Plain
    bound: Plain


def matmul(
    a: ArrayLike | Array,
    b: ArrayLike | Array,
    bias: ArrayLike | Array | None = None,
    quant: QuantMode | str | int | tuple[Any, QuantParam | ArrayLike] | None = None,
    relu: bool = False,
    product: str | int | Product = DEFAULT_PRODUCT,
    *,
    order: str = "sequential",
    block: int = 16,
    overflow: Overflow | str = "raise",
    report: bool = False,
    layout: str = "ND",
    saturation: Saturation = None,
    choices: Choices | None = None,
    threads: int | None = None,
) -> Any:
    """Multiply matrices as an Ascend core does: matrix unit, bias, then Fixpipe.

    Parameters
    ----------
    a, b : array_like or Array of shapes [m, k] and [k, n]
        int8_t; or half, bfloat16_t or float, both the same; on Ascend 950 also fp8 pairs and hifloat8_t pairs.
    bias : array_like, optional
        Where the accumulators start, [n] or [m, n]: integers, or floats (rounded to float32).
    quant : QuantMode, name or number, or (mode, parameters), optional
        What Fixpipe does with the accumulators; see `fixpipe`. Default: it moves them out as they are.
    relu, product, layout, saturation, choices, threads
        As in `fixpipe`.
    order, block
        How float accumulators add, which no document says: "sequential" in k, "blocked" by 16, "pairwise" or "float64"
        (rounded once); see `bittrue.matmul.ordered`. Integers are exact.
    overflow : {"raise", "wrap", "saturate"}
        What becomes of integer sums beyond int32, which no document says either.
    report : bool
        Return accumulators and a bound as well.

    Returns
    -------
    Array of shape [m, n], or MatmulReport

    Raises
    ------
    ValueError
        Operands whose types the product's matrix unit does not multiply, or whose shapes do not fit; see `fixpipe`.
    OverflowError
        Integer sums beyond int32.

    Examples
    --------
    >>> a, b = np.int8([[1, 2], [3, -4]]), np.int8([[5, -6], [7, 8]])
    >>> matmul(a, b).tolist()
    [[19, 10], [-13, -50]]
    >>> matmul(a, b, bias=np.int32([1, -1]), quant=("REQ8", QuantParam(0.5)), relu=True).tolist()
    [[10, 4], [0, 0]]
    >>> matmul(np.float16([[0.1]]), np.float16([[3]]), quant="F322F16", report=True).bound < 1e-6
    array([[ True]])

    References
    ----------
    Ascend C API, "Mmad" and "Fused quantisation".
    """
    of = find_product(product)
    arch = architecture(product, "product")
    left, right = _type(a, "a"), _type(b, "b")
    for t in (left, right):
        require(of, t, *(() if choices is None else (choices,)))
    accumulator = _accumulator(left, right, arch, of)
    x, y = _values(a, left), _values(b, right)
    for name, v in (("a", x), ("b", y)):
        if v.ndim != 2:
            raise ValueError(f"{name} has shape {v.shape}; a matrix is needed")
    start = _bias(bias, accumulator, (len(x), y.shape[1]))
    if accumulator == "int32_t":
        acc = products.integer(x, y, start, overflow=overflow)
        bound = np.zeros(acc.shape) if report else None
    else:
        acc = products.ordered(x, y, start, order=order, block=block, threads=threads)
        bound = _apart(x, y, start, order, block) if report else None
    mode, parameters = quant if isinstance(quant, tuple) and len(quant) == 2 else (quant, None)
    if isinstance(mode, QuantParam):
        raise ValueError(f"quant={mode!r} lacks a mode; give (mode, parameters), such as ('REQ8', {mode!r})")
    chosen = QuantMode.NoQuant if mode is None else quant_mode(mode)
    result = fixpipe(
        acc, chosen, parameters, relu, of, layout=layout, saturation=saturation, choices=choices, threads=threads
    )
    return result if bound is None else MatmulReport(result, acc, bound)


@cache
def _pairs(arch: int) -> dict[tuple[str, str], str]:
    rows = records("ascend", "cube_types")
    return {(r["left"], r["right"]): r["accumulator"] for r in rows if str(arch) in r["archs"].split()}


def _accumulator(left: Type, right: Type, arch: int, of: Product) -> str:
    found = _pairs(arch).get((left.name, right.name))
    if found is None:
        have = ", ".join(f"{a} x {b}" for a, b in _pairs(arch))
        raise ValueError(f"a is {left} and b is {right}; the matrix unit of {of} does not multiply these, but {have}")
    return found


def _type(x: Any, name: str) -> Type:
    if isinstance(x, Array):
        return type_info(x.format)
    if not isinstance(x, (np.ndarray, np.generic)):
        raise TypeError(f"{name} is a {type(x).__name__}; give a NumPy array or an Array, whose type is known")
    return type_info(x.dtype)


def _values(x: Any, of: Type) -> Plain:
    """Return integers as they are and floats in float32, which holds all of them."""
    if of.is_int:
        return np.asarray(x.exact_values() if isinstance(x, Array) else x)
    if of.name in ("float", "half"):
        return np.asarray(x, np.float32)
    return codec.decode(x, of.format)


def _bias(bias: Any, accumulator: str, shape: tuple[int, int]) -> Plain | None:
    if bias is None:
        return None
    array = np.asarray(bias)
    integers = accumulator == "int32_t"
    if integers and array.dtype.kind not in "iu":
        raise TypeError(f"bias has dtype {array.dtype}; {accumulator} accumulators start from integers")
    if not integers:
        array = np.asarray(codec.quantize(array, "float32", overflow="infinity"), np.float32)
    if array.shape not in (shape, shape[1:]):
        raise ValueError(f"bias has shape {array.shape}; [{shape[1]}] or [{shape[0]}, {shape[1]}] is needed")
    return array


def _apart(x: Plain, y: Plain, start: Plain | None, order: str, block: int) -> Plain:
    """Bound how far the orders can lie from each other: each lies within its own bound of the exact sum."""
    bounds = {o: products.error_bound(x, y, start, order=o, block=block) for o in products.ORDERS}
    return np.asarray(bounds[order] + np.max(list(bounds.values()), axis=0))
