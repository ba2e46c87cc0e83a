"""`encode`, `decode` and `quantize`: arguments, scratch memory and threads around the plans."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import exact
from .formats import BoolFormat, ComplexFormat, FloatFormat, Format, IntFormat, format
from .kinds.block import BlockFormat, BlockRule
from .parse import as_input, encode_objects
from .rounding import NanPolicy, Negative, Overflow, Rounding, Rule, make_rule

if TYPE_CHECKING:
    from .plans import Plan

__all__ = ["decode", "encode", "quantize"]

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 16  # elements per pass where a plan has several stages: all scratch stays in the second-level cache
_PER_THREAD = 1 << 17  # elements below which another thread costs more than it brings
_NO_RANDOM = np.empty(0, np.uint32)
_SOURCES = {
    n: format(n)
    for n in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64".split()
    )
}
_BY_DTYPE = {np.dtype(n): f for n, f in _SOURCES.items() if n != "bfloat16"}  # native byte order


def encode(
    x: ArrayLike,
    format: Format | str | DTypeLike,
    rounding: Rounding | str | None = None,
    overflow: Overflow | str | None = None,
    nan: NanPolicy | str | None = None,
    rule: Rule | BlockRule | None = None,
    out: Array | None = None,
    threads: int | None = None,
    *,
    negative: Negative | str | None = None,
    seed: int | None = None,
    random: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    zero_point: ArrayLike | None = None,
    axis: int = -1,
) -> Array:
    """Convert values into codes of a format, with one rounding.

    Parameters
    ----------
    x : array_like
        Real numbers of any shape: float16, bfloat16, float32, float64, any integer type, bool, a `bittrue.Array`;
        Python numbers of any size, fractions and strings are rounded from their exact value. Complex values for
        complex formats. Never modified.
    format : Format, name or dtype
        Destination; see `bittrue.format`.
    rounding, overflow, nan, negative : str or enum member, optional
        Parts of the rule; default nearest_even, saturate, keep, overflow. See `Rounding`, `Overflow`, `NanPolicy`.
    rule : Rule, optional
        A whole rule; the arguments above override parts of it.
    out : ndarray, optional
        Array of the result's shape and dtype (``format.storage``) to write into; must not overlap `x`.
    threads : int, optional
        Number of threads; default: one per processor for large arrays. The result never depends on it.
    seed : int, optional
        Seed of stochastic rounding: the result is a function of seed, element index and value.
    random : array_like of uint32, optional
        The random bits of stochastic rounding instead, one word per element.
    scale, zero_point : array_like, optional
        Affine quantisation: codes of ``round(x / scale) + zero_point``. The division is done in the type of `x`, as in
        ONNX QuantizeLinear; `zero_point` needs an integer format. One-dimensional arrays lie along `axis`.
    axis : int
        Axis of one-dimensional `scale` and `zero_point`.

    Returns
    -------
    ndarray of ``format.storage``, of the shape of `x`
        One code per element: uint8 up to 8 bits, uint16 up to 16, the native dtype above. Integers are two's
        complement. A scalar `x` gives a NumPy scalar.

    Raises
    ------
    ValueError
        Unknown names, an unsuitable rule or `out`; NaN under ``nan="raise"``; an unreadable string.
    OverflowError
        Values beyond the range under ``overflow="raise"``.
    TypeError
        Values that are no real numbers.

    Examples
    --------
    >>> encode([0.1, -2.0, 1e9], "float8_e4m3fn")
    array([ 29, 192, 126], dtype=uint8)
    >>> encode(2.5, "int8"), encode(2.5, "int8", rounding="nearest_away")
    (np.uint8(2), np.uint8(3))
    """
    fmt = _format(format)
    if isinstance(fmt, BlockFormat):
        from . import blocks

        return blocks.encode(
            x, fmt, rounding, overflow, nan, rule, out, threads, scale=scale, axis=axis,
            negative=negative, seed=seed, random=random, zero_point=zero_point,
        )
    if isinstance(rule, BlockRule):
        raise TypeError(f"rule={rule!r} is for block formats, not for {fmt.name}")
    given = make_rule(rule, rounding=rounding, overflow=overflow, nan=nan, negative=negative, seed=seed)
    exact.check_rule(given, fmt)
    if scale is not None or zero_point is not None:
        return _encode_affine(x, fmt, given, out, threads, random, scale, zero_point, axis)
    values, source = _values(x, fmt)
    if source is None:
        return _deliver(encode_objects(values, fmt, given, random), out, fmt)
    _check_raising(values, source, fmt, given)
    part, planned = (fmt.part, source.part) if isinstance(fmt, ComplexFormat) else (fmt, source)
    from .plans import bits_dtype, encode_plan

    plan = encode_plan(planned, part, given)
    result = _output(out, values.shape, fmt.storage, fmt, values)
    flat = values.reshape(-1).view(bits_dtype(planned))
    _run(plan, flat, _flat(result, part.code_dtype), _random(random, values, given), threads)
    return _finish(result, out, x)


def decode(
    codes: ArrayLike,
    format: Format | str | DTypeLike,
    dtype: DTypeLike = np.float32,
    out: Array | None = None,
    threads: int | None = None,
    *,
    scale: ArrayLike | None = None,
    zero_point: ArrayLike | None = None,
    axis: int = -1,
) -> Array:
    """Convert codes of a format into values.

    Parameters
    ----------
    codes : array_like
        What `encode` returns: one code per element in ``format.storage`` (an unsigned array of that width will do, and
        so does an ml_dtypes or en_dtypes array of the format).
    format : Format, name or dtype
    dtype : dtype
        float16, bfloat16, float32 or float64; for integer formats also an integer dtype that holds them; complex64 or
        complex128 for complex formats. A dtype that cannot hold a value gets it rounded to nearest even.
    out, threads, axis
        As in `encode`.
    scale, zero_point : array_like, optional
        ``(value - zero_point) * scale``, computed in `dtype`.

    Returns
    -------
    ndarray of `dtype`, of the shape of `codes`

    Raises
    ------
    ValueError
        Codes out of range for the format, or an unsuitable dtype or `out`.

    Examples
    --------
    >>> decode([0x2E, 0x6F, 0x01], "hifloat8")
    array([1.4000000e+01,           inf, 2.3841858e-07], dtype=float32)
    """
    fmt = _format(format)
    if isinstance(fmt, BlockFormat):
        from . import blocks

        return blocks.decode(codes, fmt, dtype, out, threads, scale=scale, axis=axis, zero_point=zero_point)
    target = _target(dtype, fmt)
    array = _codes(codes, fmt)
    from .plans import decode_plan

    if isinstance(fmt, ComplexFormat):
        assert isinstance(target, ComplexFormat)
        part: Format
        plan, part, kind = decode_plan(fmt.part, target.part), target.part, fmt.part.code_dtype
    else:
        plan, part, kind = decode_plan(fmt, target), target, array.dtype
    result = _output(out, array.shape, np.dtype(dtype), None, array)
    _run(plan, array.reshape(-1).view(kind), _flat(result, part.code_dtype), _NO_RANDOM, threads)
    if scale is not None or zero_point is not None:
        offset = 0 if zero_point is None else _along(zero_point, result, axis, "zero_point", result.dtype)
        factor = 1 if scale is None else _along(scale, result, axis, "scale", result.dtype)
        np.multiply(np.subtract(result, offset, out=result), factor, out=result)
    return _finish(result, out, codes)


def quantize(
    x: ArrayLike,
    format: Format | str | DTypeLike,
    rounding: Rounding | str | None = None,
    overflow: Overflow | str | None = None,
    nan: NanPolicy | str | None = None,
    rule: Rule | BlockRule | None = None,
    out: Array | None = None,
    threads: int | None = None,
    *,
    negative: Negative | str | None = None,
    seed: int | None = None,
    random: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    zero_point: ArrayLike | None = None,
    axis: int = -1,
) -> Array:
    """Round values to the nearest ones that a format holds: `encode` and `decode` in one pass, without the codes.

    Parameters are those of `encode`. The result has the dtype of `x` (integers give float32, from 32 bits on float64);
    `out` may be `x` itself.

    Examples
    --------
    >>> quantize(np.float32([0.1, 3.3, 500]), "float8_e4m3fn")
    array([1.015625e-01, 3.250000e+00, 4.480000e+02], dtype=float32)
    """
    fmt = _format(format)
    if isinstance(fmt, BlockFormat):
        from . import blocks

        return blocks.quantize(
            x, fmt, rounding, overflow, nan, rule, out, threads, scale=scale, axis=axis,
            negative=negative, seed=seed, random=random, zero_point=zero_point,
        )
    if isinstance(rule, BlockRule):
        raise TypeError(f"rule={rule!r} is for block formats, not for {fmt.name}")
    given = make_rule(rule, rounding=rounding, overflow=overflow, nan=nan, negative=negative, seed=seed)
    exact.check_rule(given, fmt)
    values, source = _values(x, fmt)
    dtype = _quantized_dtype(values, source, fmt)
    if source is None or scale is not None or zero_point is not None:
        codes = encode(
            x, fmt, rule=given, threads=threads, random=random, scale=scale, zero_point=zero_point, axis=axis
        )
        return decode(codes, fmt, dtype, out, threads, scale=scale, zero_point=zero_point, axis=axis)
    _check_raising(values, source, fmt, given)
    part, planned = (fmt.part, source.part) if isinstance(fmt, ComplexFormat) else (fmt, source)
    from .plans import bits_dtype, decode_plan, encode_plan

    target = _SOURCES[{"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype.name)]
    plan = encode_plan(planned, part, given) + decode_plan(part, target)
    same = out is not None and out is x
    result = _output(out, values.shape, dtype, None, None if same else values)
    flat = values.reshape(-1).view(bits_dtype(planned))
    _run(plan, flat, _flat(result, target.code_dtype), _random(random, values, given), threads)
    return _finish(result, out, x)


# --- arguments --------------------------------------------------------------------------------------------------------


_format = format


def _values(x: Any, fmt: Format) -> tuple[Array, Any]:
    """Return `x` as a contiguous native array, and the format of its numbers (None: Python objects or strings)."""
    exact_values = getattr(x, "exact_values", None)  # a bittrue.Array, which lives above this room
    if exact_values is not None:
        x = exact_values()
    array = x if isinstance(x, np.ndarray) and x.dtype.kind in "fiub" and x.itemsize <= 8 else as_input(x)
    if array.dtype.kind in "OUS":
        return array, None
    source = _BY_DTYPE.get(array.dtype) or _SOURCES.get(array.dtype.name)
    if isinstance(fmt, ComplexFormat):
        source = _complex(array)
        if source is None:
            return _values(array.astype(np.complex128 if array.dtype.itemsize > 4 else np.complex64), fmt)
    elif array.dtype.kind == "c":
        raise TypeError(f"x has complex values, which {fmt.name} cannot hold; take x.real or a complex format")
    elif source is None:
        return _values(_from_foreign(array), fmt)
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape), source


def _complex(array: Array) -> ComplexFormat | None:
    if array.dtype.kind != "c" or array.dtype.itemsize > 16:
        return None
    part = _SOURCES["float32" if array.dtype.itemsize == 8 else "float64"]
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
    return np.asarray(decode(codes, known)).reshape(array.shape)


def _codes(codes: Any, fmt: Format) -> Array:
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


def _target(dtype: DTypeLike, fmt: Format) -> Format:
    """Return the number format of the dtype to decode into."""
    wanted = np.dtype(dtype)
    name = wanted.name
    if isinstance(fmt, ComplexFormat):
        if name not in ("complex64", "complex128"):
            raise ValueError(f"dtype={name} cannot hold the values of {fmt.name}; use complex64 or complex128")
        part = _SOURCES["float32" if name == "complex64" else "float64"]
        assert isinstance(part, FloatFormat)
        return ComplexFormat(name, part=part)
    target = _SOURCES.get(name)
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


def _quantized_dtype(values: Array, source: Any, fmt: Format) -> np.dtype[Any]:
    if values.dtype.kind == "c" or isinstance(fmt, ComplexFormat):
        return np.dtype(values.dtype if values.dtype.kind == "c" else np.complex128)
    if isinstance(source, FloatFormat):
        return np.dtype(values.dtype)
    return np.dtype(np.float32 if source is not None and source.bits <= 16 else np.float64)


def _output(
    out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], fmt: Format | None, source: Array | None
) -> Array:
    """Return the contiguous array to compute into: `out` itself where it can serve."""
    if out is None:
        return np.empty(shape, dtype)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be a NumPy array, not {type(out).__name__}")
    fits = out.dtype == dtype or (
        fmt is not None and out.dtype.itemsize == dtype.itemsize and (out.dtype.kind == "u" or _names(out.dtype, fmt))
    )
    if out.shape != shape or not fits:
        raise ValueError(f"out has shape {out.shape} and dtype {out.dtype}; expected {shape} and {dtype}")
    if not out.flags.writeable:
        raise ValueError("out is read-only")
    if source is not None and np.may_share_memory(out, source) and np.shares_memory(out, source):
        raise ValueError("out overlaps the input; pass separate memory")
    return out if out.flags.c_contiguous else np.empty(shape, out.dtype)


def _flat(result: Array, dtype: np.dtype[Any]) -> Array:
    return result.reshape(-1).view(dtype)


def _finish(result: Array, out: Any, x: Any) -> Array:
    if out is not None:
        if out is not result:
            np.copyto(out, result)
        return out  # type: ignore[no-any-return]
    return result[()] if result.ndim == 0 and not isinstance(x, np.ndarray) else result


def _deliver(codes: Array, out: Any, fmt: Format) -> Array:
    if out is None:
        return codes[()] if codes.ndim == 0 else codes
    np.copyto(_output(out, codes.shape, fmt.storage, fmt, None).view(codes.dtype), codes)
    return out  # type: ignore[no-any-return]


def _random(random: Any, values: Array, rule: Rule) -> Array:
    if random is None:
        return _NO_RANDOM
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


def _check_raising(values: Array, source: Format, fmt: Format, rule: Rule) -> None:
    """Raise what the rule says must raise. Encoding is monotonic: the extremes tell whether any value overflows."""
    if values.size == 0 or (rule.overflow is not Overflow.raise_ and rule.nan is not NanPolicy.raise_):
        return
    if values.dtype.kind == "c":
        for part in (values.real, values.imag):
            _check_raising(part, source, fmt.part, rule)  # type: ignore[attr-defined]
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


def _along(value: Any, like: Array, axis: int, argument: str, dtype: Any) -> Array:
    """Shape a scalar, a vector along `axis` or a broadcastable array for arithmetic with `like`."""
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
        np.broadcast_shapes(array.shape, like.shape)
    except ValueError:
        raise ValueError(f"{argument} of shape {array.shape} does not fit x of shape {like.shape}") from None
    return array


def _encode_affine(
    x: Any, fmt: Format, rule: Rule, out: Any, threads: Any, random: Any, scale: Any, zero_point: Any, axis: int
) -> Array:
    values, source = _values(x, fmt)
    if source is None or values.dtype.kind == "c":
        raise TypeError("scale and zero_point need an array of real numbers")
    if not isinstance(source, FloatFormat):
        values = values.astype(np.float32 if source.bits <= 16 else np.float64)
    scaled = values
    if scale is not None:
        factor = _along(scale, values, axis, "scale", values.dtype)
        if not (np.isfinite(factor.astype(np.float64)) & (factor > 0)).all():
            raise ValueError("scale must be finite and above zero")
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            scaled = (values / factor).astype(values.dtype)
    if zero_point is None or not np.any(zero_point):
        return encode(scaled, fmt, rule=rule, out=out, threads=threads, random=random)
    if not isinstance(fmt, IntFormat):
        raise ValueError(f"zero_point needs an integer format, not {fmt.name}")
    offset = _along(zero_point, values, axis, "zero_point", np.int64)
    # 2**62 leaves room for the offset and lies beyond every clamp; NaN and the final range follow the rule.
    wide = replace(rule, overflow=Overflow.saturate)
    whole = encode(scaled, "int64", rule=wide, threads=threads, random=random)
    shifted = np.clip(whole, -(1 << 62), 1 << 62) + offset
    return encode(shifted, fmt, rule=rule, out=out, threads=threads)


# --- running ----------------------------------------------------------------------------------------------------------


_pool: ThreadPoolExecutor | None = None


def _forget_pool() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):  # a forked child has the pool's object, but none of its threads
    os.register_at_fork(after_in_child=_forget_pool)


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run(plan: Plan, src: Array, dst: Array, random: Array, threads: int | None) -> None:
    in_chunks(partial(_work, plan, src, dst, random), src.size, threads, 1, 64)


def in_chunks(work: Callable[[int, int], int], n: int, threads: int | None, width: int = 1, step: int = 1) -> int:
    """Call ``work(start, stop)`` over 0..n, in several threads where that pays; return the OR of the results.

    `width` says how many elements one of the `n` stands for. Chunks begin at multiples of `step`.
    """
    global _pool
    if threads is not None and (not isinstance(threads, (int, np.integer)) or threads < 1):
        raise ValueError(f"threads={threads!r} must be a positive integer")
    workers = max(1, min(_cpus(), n * width // _PER_THREAD) if threads is None else min(int(threads), n))
    if workers == 1:
        return work(0, n)
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=64, thread_name_prefix="bittrue")
    edges = [n * i // workers // step * step for i in range(workers)] + [n]
    jobs = [_pool.submit(work, lo, hi) for lo, hi in zip(edges[1:], edges[2:])]
    found = work(edges[0], edges[1])
    for job in jobs:
        found |= job.result()
    return found


def _work(plan: Plan, src: Array, dst: Array, random: Array, lo: int, hi: int) -> int:
    stages = plan.stages
    if len(stages) == 1:
        stages[0][0](src[lo:hi], dst[lo:hi], lo, random[lo:hi])
        return 0
    scratch = [np.empty(min(_CHUNK, hi - lo), dtype) for _, dtype in stages[:-1]]
    for start in range(lo, hi, _CHUNK):
        stop = min(start + _CHUNK, hi)
        now: Array = src[start:stop]
        for (run, _), buffer in zip(stages, [*scratch, dst[start:stop]]):
            buffer = buffer[: stop - start]
            run(now, buffer, start, random[start:stop])
            now = buffer
    return 0
