"""`cast`: Ascend's type conversion with the product's rule; arguments and results around the plans of `steps`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import codec
from ..arguments import NO_RANDOM, finish, output
from ..array import Array
from ..chunks import run_plan
from ..codes import ecosystem_dtype
from ..formats import ComplexFormat, Format, format
from ..rounding import Overflow
from .choices import Choices
from .complex import Complex, complex32, complex64
from .control import Saturation
from .modes import RoundMode
from .products import DEFAULT_PRODUCT, Product
from .rule import CastRule, cast_rule
from .types import Type, type_info

if TYPE_CHECKING:
    from ..plans import Plan

__all__ = ["cast"]

Plain = np.ndarray[Any, Any]

#: PyPTO's set_deqscale starts at 1; Ascend C's SetDeqScale must be called.
_DEFAULT_SCALE = {"pypto": 1.0}
_COMPLEX: dict[str, type[Complex]] = {"complex32": complex32, "complex64": complex64}
_ODD = (None, "pad", "drop")


def cast(
    x: ArrayLike | Array | Complex,
    dst: Any,
    mode: RoundMode | str | int = RoundMode.CAST_NONE,
    product: str | int | Product = DEFAULT_PRODUCT,
    saturation: Saturation = None,
    strict: bool = False,
    *,
    src: Any = None,
    deqscale: float | None = None,
    odd: str | None = None,
    choices: Choices | None = None,
    out: Plain | None = None,
    threads: int | None = None,
) -> Any:
    """Convert values as an Ascend product does.

    Parameters
    ----------
    x : array_like, Array or complex32/complex64
        NumPy and ml_dtypes arrays and `bittrue.Array`s have their own type. Python floats are float, Python integers
        int32_t (int64_t or uint64_t where they must), Python complex numbers complex64.
    dst : str, dtype or format
        Destination type in any spelling ("half", "FP16", "DT_FP16").
    mode : RoundMode, str or int
        By default a mode that the pair lacks, and CAST_NONE, become the pair's default without an error: TRUNC from
        float to integer, ROUND to hifloat8, else RINT; conversions that are exact ignore it (PyPTO, CastMode).
    product : str, int or Product
    saturation : None, bool, SaturationMode, str or Ctrl
        None: the product's control state at kernel entry, which saturates and turns NaN into 0. True, False: saturate
        or not. "pypto": the default of PyPTO's satmode. A `Ctrl`: these control bits.
    strict : bool
        Follow Ascend C: a pair or mode that its tables lack is an error.
    src : str, dtype or format, optional
        Type that `x` is given in: values of another dtype are first rounded to it, to nearest even.
    deqscale : float, optional
        Scale of the dequantising cast int32_t to half, rounded to half. Default 1 (PyPTO); strict casts need it.
    odd : {None, "pad", "drop"}
        What to do with an odd number of elements for a type packed two in a byte: refuse (None), fill the last byte
        with a zero when packed ("pad"; the shape stays), or leave the last element out ("drop"; the result is flat). A
        single number is never packed.
    choices : Choices, optional
        Answers to open questions.
    out : ndarray, optional
        Array of codes of the result's shape and dtype to write into.
    threads : int, optional
        As in `bittrue.encode`.

    Returns
    -------
    Array
        Of the destination's format and the shape of `x`; its ``tobytes()`` is the device's memory image. For a Python
        or NumPy number a NumPy scalar where NumPy or ml_dtypes has the type, a complex32 or complex64, else an Array
        without axes.

    Raises
    ------
    ValueError
        Unknown names; a type, a pair or (when strict) a mode that the product lacks; a missing scale; an odd number of
        elements; see also `cast_rule`, which says what a cast does and why.
    OverflowError
        Only with ``Choices(double_special="raise")``.

    Notes
    -----
    Casts of a float type to itself round to integral values and keep the sign of zero, but on A2 and A3 (question 39).

    Examples
    --------
    >>> cast(1.0, "int32_t", mode="CAST_ROUND")
    np.int32(1)
    >>> cast(np.float32([16, 1.3, 1e6]), "hifloat8_t", "HYBRID").tolist()
    [20.0, 1.25, 32768.0]
    >>> cast(np.float16([300, -300, 50]), "int8_t", saturation=False).tolist()
    [44, -44, 50]

    References
    ----------
    Ascend C API, "Cast" (tensor and register); PyPTO, "pypto.cast", "CastMode"; `docs/evidence.md` for what is open.
    """
    values, key, single = _source(x, src)
    try:
        ready = _ready(key, dst, mode, product, saturation, strict, deqscale, choices)
    except TypeError:  # an argument that cannot be hashed: let the functions that read it say so
        ready = _ready.__wrapped__(key, dst, mode, product, saturation, strict, deqscale, choices)
    if ready.packed or odd is not None:
        values = _even(values, ready.rule.destination, odd, single)
    fmt = ready.target
    codes = output(out, values.shape, fmt.storage, fmt, values)
    if ready.plan is None:
        codec.encode(values, fmt, rule=ready.rule.rule, out=codes, threads=threads)
    else:
        run_plan(
            ready.plan,
            values.reshape(-1).view(ready.reads),
            codes.reshape(-1).view(ready.writes),
            NO_RANDOM,
            threads,
        )
    codes = finish(codes, out, codes)
    result = Array._wrap(codes, fmt)
    return _number(result) if single else result


class _Ready(NamedTuple):
    """What calls with the same arguments share."""

    rule: CastRule
    target: Format
    plan: Plan | None  # None: the core must look for what its rule raises on
    reads: np.dtype[Any]
    writes: np.dtype[Any]
    packed: bool


@lru_cache(maxsize=1024, typed=True)
def _ready(
    key: Any,
    dst: Any,
    mode: Any,
    product: Any,
    saturation: Any,
    strict: bool,
    deqscale: float | None,
    choices: Choices | None,
) -> _Ready:
    from ..plans import bits_dtype
    from .steps import plan_of

    rule = cast_rule(key, dst, mode, product, saturation, strict, choices)
    source, target = rule.source.format, rule.destination.format
    source, part = (f.part if isinstance(f, ComplexFormat) else f for f in (source, target))
    reads = bits_dtype(source) if source.bits >= 8 else source.code_dtype
    scale = _scale(rule, deqscale)
    plan = None if rule.rule.overflow is Overflow.raise_ else plan_of(rule, scale)
    return _Ready(rule, target, plan, reads, part.code_dtype, rule.destination.per_byte > 1)


def _scale(rule: CastRule, deqscale: float | None) -> np.float16 | None:
    """Return the scale of a dequantising cast; raise where it is missing, not a finite half, or not wanted."""
    if rule.row.semantics != "dequant":
        if deqscale is not None:
            pair = f"{rule.source} to {rule.destination}"
            raise ValueError(f"deqscale={deqscale!r} is for the dequantising cast int32_t to half, not for {pair}")
        return None
    given = _DEFAULT_SCALE.get(rule.row.api) if deqscale is None else deqscale
    if given is None:
        raise ValueError(f"deqscale is missing: int32_t to half on {rule.product} multiplies by a half scale")
    if not isinstance(given, (int, float, np.integer, np.floating)) or isinstance(given, bool):
        raise TypeError(f"deqscale={deqscale!r} must be a number, not {type(deqscale).__name__}")
    with np.errstate(over="ignore"):
        scale = np.float16(given)
    if not np.isfinite(scale):
        raise ValueError(f"deqscale={deqscale!r} must be a finite half: at most 65504 in magnitude")
    return scale


# --- input and output -------------------------------------------------------------------------------------------------


def _source(x: Any, src: Any) -> tuple[Plain, Any, bool]:
    """Return contiguous native values or codes, what names their type, and whether `x` is a single number."""
    if isinstance(x, np.ndarray) and src is None and x.dtype.isnative and x.dtype.isbuiltin == 1:
        return np.ascontiguousarray(x).reshape(x.shape), x.dtype, False
    if isinstance(x, Array):
        if src is not None and type_info(src).format != x.format:
            raise ValueError(f"src={src!r} differs from the format of x, {x.format.name}")
        return np.ascontiguousarray(x.codes).reshape(x.shape), x.format, False
    if isinstance(x, Complex):
        x = type(x).array(x.real, x.imag)
        return x.codes, x.format, True
    single = not isinstance(x, np.ndarray) and np.ndim(x) == 0
    if src is None and isinstance(x, (np.ndarray, np.generic)):
        array = np.asarray(x)
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
        fmt = type_info(array.dtype).format
        return (array if array.dtype.isbuiltin == 1 else Array(array, fmt).codes), fmt, single
    fmt = type_info(src).format if src is not None else _python_type(x)
    codes = np.asarray(codec.encode(x, fmt, overflow="infinity" if fmt.kind != "int" else "raise"))
    return codes, fmt, single


def _python_type(x: Any) -> Format:
    """Return the type of Python numbers: float and complex64 for literals, the first integer type that holds them."""
    array = np.asarray(x)
    if array.dtype.kind == "c":
        return format("complex64")
    if array.dtype.kind == "b":
        return format("bool")
    if array.dtype.kind == "O" and all(isinstance(item, int) for item in array.flat):
        return format("uint64")  # beyond 64 bits: the encoding says so
    if array.dtype.kind in "iu" and array.size:
        for name in ("int32", "int64"):
            if np.iinfo(name).min <= int(array.min()) and int(array.max()) <= np.iinfo(name).max:
                return format(name)
        return format("uint64")
    return format("float32")


def _even(values: Plain, destination: Type, odd: Any, single: bool) -> Plain:
    if odd not in _ODD:
        raise ValueError(f"odd={odd!r} must be None, 'pad' or 'drop'")
    if destination.per_byte == 1 or single or values.size % destination.per_byte == 0 or odd == "pad":
        return values
    if odd == "drop":
        return values.reshape(-1)[: values.size - values.size % destination.per_byte]
    raise ValueError(
        f"x has {values.size} elements, but {destination} packs {destination.per_byte} in a byte; "
        "give an even number, or odd='pad' or odd='drop'"
    )


def _number(result: Array) -> Any:
    """Return the NumPy scalar of an Array without axes; the Array where neither NumPy nor ml_dtypes has the type."""
    fmt = result.format
    if fmt.name in _COMPLEX:
        return _COMPLEX[fmt.name].from_array(result)
    dtype = ecosystem_dtype(fmt)
    return result if dtype is None or dtype.type.__module__ == "en_dtypes" else result.codes.view(dtype)[()]
