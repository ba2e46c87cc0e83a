"""What the arguments of `encode`, `decode` and `quantize` may be: values, codes, dtypes, `out`, random bits, scales."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from . import exact
from .formats import BoolFormat, ComplexFormat, FloatFormat, Format, IntFormat, format
from .parse import as_input
from .rounding import NanPolicy, Overflow, Rounding, Rule
from .tables import decode_table

__all__ = [
    "NO_RANDOM",
    "SOURCES",
    "along",
    "check_raising",
    "codes_of",
    "deliver",
    "finish",
    "output",
    "quantized_dtype",
    "random_words",
    "target_of",
    "values_of",
]

Array = np.ndarray[Any, Any]

NO_RANDOM = np.empty(0, np.uint32)
SOURCES = {
    n: format(n)
    for n in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64".split()
    )
}
_BY_DTYPE = {np.dtype(n): f for n, f in SOURCES.items() if n != "bfloat16"}  # native byte order


def values_of(x: Any, fmt: Format) -> tuple[Array, Any]:
    """Return `x` as a contiguous native array, and the format of its numbers (None: Python objects or strings)."""
    exact_values = getattr(x, "exact_values", None)  # a bittrue.Array, which lives above this room
    if exact_values is not None:
        x = exact_values()
    array = x if isinstance(x, np.ndarray) and x.dtype.kind in "fiub" and x.itemsize <= 8 else as_input(x)
    if array.dtype.kind in "OUS":
        return array, None
    source = _BY_DTYPE.get(array.dtype) or SOURCES.get(array.dtype.name)
    if isinstance(fmt, ComplexFormat):
        source = _complex(array)
        if source is None:
            return values_of(array.astype(np.complex128 if array.dtype.itemsize > 4 else np.complex64), fmt)
    elif array.dtype.kind == "c":
        raise TypeError(f"x has complex values, which {fmt.name} cannot hold; take x.real or a complex format")
    elif source is None:
        return values_of(_from_foreign(array), fmt)
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape), source


def _complex(array: Array) -> ComplexFormat | None:
    if array.dtype.kind != "c" or array.dtype.itemsize > 16:
        return None
    part = SOURCES["float32" if array.dtype.itemsize == 8 else "float64"]
    assert isinstance(part, FloatFormat)
    return ComplexFormat(array.dtype.name, part=part)


def _from_foreign(array: Array) -> Array:
    """Decode arrays of the small types of ml_dtypes and en_dtypes; float32 holds all their values."""
    try:
        known = format(array.dtype)
    except ValueError:
        known = None
    if known is None or known.bits > 8:
        allowed = "float16, bfloat16, float32, float64, an integer type, bool or a small type of ml_dtypes"
        raise TypeError(f"x has dtype {array.dtype}, which is not supported; allowed: {allowed}")
    codes = np.ascontiguousarray(array).view(np.uint8) & np.uint8((1 << known.bits) - 1)
    values: Array = decode_table(known, SOURCES["float32"])[codes].view(np.float32)
    return values.reshape(array.shape)


def codes_of(codes: Any, fmt: Format) -> Array:
    """Return codes as a contiguous native array of the format's unsigned dtype."""
    if isinstance(getattr(codes, "format", None), Format):  # a bittrue.Array, which lives above this room
        if codes.format != fmt:
            raise ValueError(f"codes are an Array of {codes.format.name}, not of {fmt.name}")
        codes = codes.codes
    array = np.asarray(codes)
    wanted, dtype = fmt.code_dtype, array.dtype
    if dtype.kind in "iu" and dtype.itemsize != wanted.itemsize:
        if array.size and not (0 <= int(array.min()) and int(array.max()) < 1 << fmt.bits):
            bad = array[(array < 0) | (array > (1 << fmt.bits) - 1)].flat[0]
            raise ValueError(f"codes: {bad} is out of range for {fmt.name}, whose codes go from 0 to "
                             f"{(1 << fmt.bits) - 1:#x}")
        array = array.astype(wanted)
    elif dtype.itemsize != wanted.itemsize or not (
        dtype.kind in "iu" or dtype == fmt.storage or _names(dtype, fmt)
    ):
        raise TypeError(f"codes have dtype {dtype}; {fmt.name} takes {fmt.storage} or {wanted}")
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
    return array.view(wanted)


def _names(dtype: np.dtype[Any], fmt: Format) -> bool:
    try:
        return format(dtype) == fmt
    except ValueError:
        return False


def target_of(dtype: DTypeLike, fmt: Format) -> Format:
    """Return the number format of the dtype to decode into."""
    wanted = np.dtype(dtype)
    name = wanted.name
    if isinstance(fmt, ComplexFormat):
        if name not in ("complex64", "complex128"):
            raise ValueError(f"dtype={name} cannot hold the values of {fmt.name}; use complex64 or complex128")
        part = SOURCES["float32" if name == "complex64" else "float64"]
        assert isinstance(part, FloatFormat)
        return ComplexFormat(name, part=part)
    target = SOURCES.get(name)
    if isinstance(target, FloatFormat) or (isinstance(target, BoolFormat) and isinstance(fmt, BoolFormat)):
        return target
    if isinstance(target, IntFormat) and isinstance(fmt, (IntFormat, BoolFormat)):
        if target.min <= fmt.min and fmt.max <= target.max:
            return target
        raise ValueError(f"dtype={name} cannot hold the values of {fmt.name}: {fmt.min} to {fmt.max}")
    raise ValueError(
        f"dtype={name} cannot hold the values of {fmt.name}; use float32, float64, float16 or ml_dtypes.bfloat16"
        + (", or a wide enough integer dtype" if isinstance(fmt, IntFormat) else "")
    )


def quantized_dtype(values: Array, source: Any, fmt: Format) -> np.dtype[Any]:
    """Return the dtype of the result of `quantize`."""
    if values.dtype.kind == "c" or isinstance(fmt, ComplexFormat):
        return np.dtype(values.dtype if values.dtype.kind == "c" else np.complex128)
    if isinstance(source, FloatFormat):
        return np.dtype(values.dtype)
    return np.dtype(np.float32 if source is not None and source.bits <= 16 else np.float64)


def output(
    out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], fmt: Format | None, source: Array | None
) -> Array:
    """Return the contiguous array to compute into: `out` itself where it can serve, else `finish` fills it."""
    if out is None:
        return np.empty(shape, dtype)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be a NumPy array, not {type(out).__name__}")
    fits = out.dtype == dtype
    if fmt is not None and out.dtype.isnative and out.dtype.itemsize == dtype.itemsize:
        fits = fits or out.dtype.kind == "u" or _names(out.dtype, fmt)
    if out.shape != shape or not fits:
        raise ValueError(f"out has shape {out.shape} and dtype {out.dtype}; expected {shape} and {dtype}")
    if not out.flags.writeable:
        raise ValueError("out is read-only")
    if source is not None and np.may_share_memory(out, source) and np.shares_memory(out, source):
        raise ValueError("out overlaps the input; pass separate memory")
    return out if out.flags.c_contiguous else np.empty(shape, out.dtype)


def finish(result: Array, out: Any, x: Any) -> Array:
    """Return the result of a call: in `out` where given, a scalar for a scalar `x`."""
    if out is not None:
        if out is not result:
            np.copyto(out, result)
        return out  # type: ignore[no-any-return]
    return result[()] if result.ndim == 0 and not isinstance(x, np.ndarray) else result


def deliver(codes: Array, out: Any, fmt: Format) -> Array:
    """Return codes made elsewhere, in `out` where given."""
    if out is None:
        return codes[()] if codes.ndim == 0 else codes
    result = output(out, codes.shape, fmt.storage, fmt, None)
    np.copyto(result.view(codes.dtype), codes)
    return finish(result, out, codes)


def random_words(random: Any, values: Array, rule: Rule) -> Array:
    """Return the given random bits as a flat array of uint32; an empty one where none are given."""
    if random is None:
        return NO_RANDOM
    if rule.rounding is not Rounding.stochastic:
        raise ValueError(f"random bits are for rounding='stochastic', not {rule.rounding.value!r}")
    array = np.asarray(random)
    if array.shape != values.shape or array.dtype.kind not in "iu":
        raise ValueError(
            f"random has shape {array.shape} and dtype {array.dtype}; expected one uint32 for each of {values.shape}"
        )
    if array.size and not (0 <= int(array.min()) and int(array.max()) < 1 << 32):
        raise ValueError("random holds words outside 0 .. 2**32 - 1")
    if values.dtype.kind == "c":
        raise ValueError("random bits are for real values; encode the parts one by one")
    return np.ascontiguousarray(array, np.uint32).reshape(-1)


def check_raising(values: Array, source: Format, fmt: Format, rule: Rule) -> None:
    """Raise what the rule says must raise.

    Encoding is monotonic, so that the extremes tell whether any value overflows; hybrid rounding is not. Stochastic
    rounding raises for what overflows by any random bits: no chance decides on an error.
    """
    if values.size == 0 or (rule.overflow is not Overflow.raise_ and rule.nan is not NanPolicy.raise_):
        return
    if values.dtype.kind == "c":
        for part in (values.real, values.imag):
            check_raising(part, source, fmt.part, rule)  # type: ignore[attr-defined]
        return
    numbers = values if values.dtype.kind in "iufb" else values.astype(np.float32)
    is_nan = np.isnan(numbers) if numbers.dtype.kind == "f" else np.zeros(numbers.shape, np.bool_)
    if rule.nan is NanPolicy.raise_ and is_nan.any():
        raise ValueError(f"x[{_index(is_nan)}] is NaN, which nan='raise' does not allow in {fmt.name}")
    if rule.overflow is not Overflow.raise_ or isinstance(fmt, BoolFormat):
        return
    infinite = np.isinf(numbers) if numbers.dtype.kind == "f" else np.zeros(numbers.shape, np.bool_)
    if infinite.any() and not fmt.has_inf:
        raise OverflowError(f"x[{_index(infinite)}] is infinite, which overflow='raise' does not allow in {fmt.name}")
    finite = numbers[~(is_nan | infinite)]
    suspects = {finite.min(), finite.max()} if finite.size else set()
    if rule.rounding is Rounding.hybrid:
        suspects = set(finite[np.abs(finite) > float(fmt.max)])
    if not fmt.has_zero and finite.size and (finite == 0).any():
        suspects.add(finite.dtype.type(0))
    for value in suspects:
        try:
            exact.encode(value.item(), fmt, rule, random=(1 << 32) - 1, source=source)
        except OverflowError as error:
            where = f"x[{_index(numbers == value)}]"
            if value == 0:
                raise OverflowError(f"{where}: {error}") from None
            raise OverflowError(
                f"{where} = {value} is beyond the range of {fmt.name}, which overflow='raise' does not allow"
            ) from None


def _index(mask: Array) -> str:
    return ", ".join(map(str, np.unravel_index(int(np.argmax(mask)), mask.shape)))


def along(value: Any, like: Array, axis: int, argument: str, dtype: Any) -> Array:
    """Shape a scalar, a vector along `axis` or an array that broadcasts to `like` for arithmetic with it."""
    array = np.asarray(value)
    if dtype is np.int64 and array.dtype.kind not in "iub":
        with np.errstate(invalid="ignore"):
            broken = np.asarray(array % 1 != 0)
        if broken.any():
            raise ValueError(f"{argument} must be integers; {array[broken].flat[0]} is none")
    array = np.asarray(value, dtype)
    if array.ndim == 1 and array.size > 1 and like.ndim > 0:
        if not -like.ndim <= axis < like.ndim:
            raise ValueError(f"axis={axis} is out of range for {like.ndim} dimensions")
        if array.size != like.shape[axis]:
            raise ValueError(f"{argument} has {array.size} elements, but axis {axis} of x has {like.shape[axis]}")
        shape = [1] * like.ndim
        shape[axis] = array.size
        array = array.reshape(shape)
    try:
        np.broadcast_to(array, like.shape)
    except ValueError:
        raise ValueError(f"{argument} of shape {array.shape} does not fit x of shape {like.shape}") from None
    return array
