"""`matmul`: operands through the matrix unit into accumulators and out through Fixpipe."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import codec
from .. import matmul as products
from ..array import Array
from ..blocks.array import BlockArray
from ..records import records
from ..rounding import Overflow
from .choices import Choices
from .control import Ctrl, Saturation, checked
from .fixpipe import fixpipe
from .hf32 import HF32TransMode
from .hf32 import hf32 as to_hf32
from .mx import element_of, is_scaled, scaled_values
from .products import DEFAULT_PRODUCT, Product
from .products import product as find_product
from .quant import QuantParam
from .quantmodes import QuantMode, architecture, quant_mode
from .types import Type, require, type_info

__all__ = ["MatmulReport", "matmul"]

Plain = np.ndarray[Any, Any]

#: What CTRL[45] = 1 makes of two operands of one type (asc-devkit 82b89a15, SetCtrlSpr, table 3).
_CTRL45 = {"fp8_e4m3fn_t": "hifloat8_t"}


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
    a: ArrayLike | Array | BlockArray,
    b: ArrayLike | Array | BlockArray,
    bias: ArrayLike | Array | None = None,
    quant: QuantMode | str | int | tuple[Any, QuantParam | ArrayLike] | None = None,
    relu: bool = False,
    product: str | int | Product = DEFAULT_PRODUCT,
    *,
    alpha: float | None = None,
    clip: float | None = None,
    hf32: HF32TransMode | str | None = None,
    scale_a: ArrayLike | Array | None = None,
    scale_b: ArrayLike | Array | None = None,
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
        int8_t; or half, bfloat16_t or float, both the same; on Ascend 950 also fp8 pairs and hifloat8_t pairs; on A2
        and A3 also int4x2_t, if ``Choices(type_matrix="devkit_2026")`` says that they have it. With scales (MmadMx,
        Ascend 950): pairs of fp4 or of fp8, or `BlockArray`s of MXFP4 and MXFP8 in blocks along k.
    bias : array_like, optional
        Where the accumulators start, [n] or [m, n]: integers, or floats (rounded to float32).
    quant : QuantMode, name or number, or (mode, parameters), optional
        What Fixpipe does with the accumulators; see `fixpipe`. Default: it moves them out as they are.
    relu, alpha, clip, product, layout, saturation, choices, threads
        As in `fixpipe`. A `Ctrl` with bit45 as `saturation` reads two fp8_e4m3fn_t operands as hifloat8_t.
    hf32 : HF32TransMode or name, optional
        HF32 mode: float operands are rounded to HF32 first, in this mode; see `bittrue.ascend.hf32`.
    scale_a, scale_b : array_like or Array of fp8_e8m0_t, shapes [m, ceil(k / 32)] and [ceil(k / 32), n], optional
        Scales of MmadMx: each 32 elements along k share one. Operands times their scales must be float32 values.
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
    >>> import bittrue as bt
    >>> x = bt.array(np.full((1, 64), 0.75, np.float32), "mxfp4")
    >>> matmul(x, bt.array(np.full((64, 1), 96, np.float32), "mxfp4", axis=0)).item()
    4608.0
    >>> matmul(np.float16([[0.1]]), np.float16([[3]]), quant="F322F16", report=True).bound < 1e-6
    array([[ True]])

    References
    ----------
    Ascend C API, "Mmad", "MmadMx", "HF32", "SetCtrlSpr" and "Fused quantisation".
    """
    of = find_product(product)
    arch = architecture(product, "product")
    own = Choices() if choices is None else choices
    if is_scaled(a, scale_a) or is_scaled(b, scale_b):
        left, right = _scaled(a, b, of, saturation, own)
        accumulator, takes_bias = _accumulator(left, right, arch, of, scaled=True)
        x, y = scaled_values(a, scale_a, "a", 1, own), scaled_values(b, scale_b, "b", 0, own)
    else:
        left, right, a, b = _read(a, b, of, saturation, own)
        accumulator, takes_bias = _accumulator(left, right, arch, of)
        x, y = _values(a, left), _values(b, right)
    if bias is not None and not takes_bias:
        raise ValueError(f"bias={bias!r}: Mmad of {left} and {right} takes none on {of}")
    for name, v in (("a", x), ("b", y)):
        if v.ndim != 2:
            raise ValueError(f"{name} has shape {v.shape}; a matrix is needed")
    if hf32 is not None:
        if left.name != "float":
            raise ValueError(f"hf32={hf32!r}: operands are {left} and {right}; HF32 mode is for float")
        x, y = (to_hf32(v, hf32, of, choices=choices, threads=threads) for v in (x, y))
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
        acc, chosen, parameters, relu, of, alpha=alpha, clip=clip, layout=layout, saturation=saturation,
        choices=choices, threads=threads,
    )  # fmt: skip
    return result if bound is None else MatmulReport(result, acc, bound)


def _read(a: Any, b: Any, of: Product, saturation: Saturation, choices: Choices) -> tuple[Type, Type, Any, Any]:
    """Return the types of the operands and the operands, as the matrix unit reads them."""
    left, right = _type(a, "a"), _type(b, "b")
    for t in (left, right):
        require(of, t, choices)
    if isinstance(saturation, Ctrl) and checked(saturation, of).bit45 and left is right and left.name in _CTRL45:
        left = right = require(of, _CTRL45[left.name], choices)
        a, b = (Array(_codes(operand), left.format) for operand in (a, b))
    return left, right, a, b


def _scaled(a: Any, b: Any, of: Product, saturation: Saturation, choices: Choices) -> tuple[Type, Type]:
    """Return the types of the elements of both operands of MmadMx."""
    if isinstance(saturation, Ctrl) and saturation.bit45:
        raise ValueError("saturation has CTRL[45] = 1, and no document says what that does to operands with scales")
    left, right = element_of(a, "a"), element_of(b, "b")
    for t in (left, right):
        require(of, t, choices)
    return left, right


@cache
def _pairs(arch: int, scaled: bool) -> dict[tuple[str, str], tuple[str, bool]]:
    return {
        (r["left"], r["right"]): (r["accumulator"], r["bias"] == "yes")
        for r in records("ascend", "cube_types")
        if str(arch) in r["archs"].split() and bool(r["scale"]) == scaled
    }


def _accumulator(left: Type, right: Type, arch: int, of: Product, scaled: bool = False) -> tuple[str, bool]:
    """Return the type of the accumulators of a pair of operands, and whether a bias can start them."""
    pairs, how = _pairs(arch, scaled), " with scales" if scaled else ""
    found = pairs.get((left.name, right.name))
    if found is None:
        have = ", ".join(f"{a} x {b}" for a, b in pairs) or "none"
        raise ValueError(
            f"a is {left} and b is {right}; the matrix unit of {of} does not multiply these{how}, but {have}"
        )
    return found


def _type(x: Any, name: str) -> Type:
    if isinstance(x, Array):
        return type_info(x.format)
    if not isinstance(x, (np.ndarray, np.generic)):
        raise TypeError(f"{name} is a {type(x).__name__}; give a NumPy array or an Array, whose type is known")
    return type_info(x.dtype)


def _codes(x: Any) -> Plain:
    return np.asarray(x.codes if isinstance(x, Array) else np.asarray(x).view(np.uint8))


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
