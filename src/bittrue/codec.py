"""`encode`, `decode` and `quantize`: from arguments to a plan, run over chunks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import exact
from .arguments import (
    NO_RANDOM,
    SOURCES,
    along,
    check_raising,
    codes_of,
    deliver,
    finish,
    output,
    quantized_dtype,
    random_words,
    target_of,
    values_of,
)
from .chunks import run_plan
from .formats import ComplexFormat, FloatFormat, Format, IntFormat, format
from .kinds.block import BlockFormat, BlockRule
from .parse import encode_objects
from .rounding import NanPolicy, Negative, Overflow, Rounding, Rule, make_rule

__all__ = ["decode", "encode", "quantize"]

Array = np.ndarray[Any, Any]

_format = format  # `format` is an argument here


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
    values, source = values_of(x, fmt)
    if source is None:
        return deliver(encode_objects(values, fmt, given, random), out, fmt)
    check_raising(values, source, fmt, given)
    part, planned = (fmt.part, source.part) if isinstance(fmt, ComplexFormat) else (fmt, source)
    from .plans import bits_dtype, encode_plan

    plan = encode_plan(planned, part, given)
    result = output(out, values.shape, fmt.storage, fmt, values)
    flat = values.reshape(-1).view(bits_dtype(planned))
    run_plan(plan, flat, result.reshape(-1).view(part.code_dtype), random_words(random, values, given), threads)
    return finish(result, out, x)


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
    target = target_of(dtype, fmt)
    array = codes_of(codes, fmt)
    from .plans import decode_plan

    if isinstance(fmt, ComplexFormat):
        assert isinstance(target, ComplexFormat)
        part: Format
        plan, part, kind = decode_plan(fmt.part, target.part), target.part, fmt.part.code_dtype
    else:
        plan, part, kind = decode_plan(fmt, target), target, array.dtype
    wanted = np.dtype(dtype)
    result = output(out, array.shape, wanted, None, array)
    if not wanted.isnative:
        result = np.empty(array.shape, wanted.newbyteorder("="))
    run_plan(plan, array.reshape(-1).view(kind), result.reshape(-1).view(part.code_dtype), NO_RANDOM, threads)
    if scale is not None or zero_point is not None:
        offset = 0 if zero_point is None else along(zero_point, result, axis, "zero_point", result.dtype)
        factor = 1 if scale is None else along(scale, result, axis, "scale", result.dtype)
        np.multiply(np.subtract(result, offset, out=result), factor, out=result)
    return finish(result if wanted.isnative else result.astype(wanted), out, codes)


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
    values, source = values_of(x, fmt)
    dtype = quantized_dtype(values, source, fmt)
    if source is None or scale is not None or zero_point is not None:
        codes = encode(
            x, fmt, rule=given, threads=threads, random=random, scale=scale, zero_point=zero_point, axis=axis
        )
        return decode(codes, fmt, dtype, out, threads, scale=scale, zero_point=zero_point, axis=axis)
    check_raising(values, source, fmt, given)
    part, planned = (fmt.part, source.part) if isinstance(fmt, ComplexFormat) else (fmt, source)
    from .plans import bits_dtype, decode_plan, encode_plan

    target = SOURCES[{"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype.name)]
    plan = encode_plan(planned, part, given) + decode_plan(part, target)
    same = out is not None and out is x
    result = output(out, values.shape, dtype, None, None if same else values)
    flat = values.reshape(-1).view(bits_dtype(planned))
    run_plan(plan, flat, result.reshape(-1).view(target.code_dtype), random_words(random, values, given), threads)
    return finish(result, out, x)


def _encode_affine(
    x: Any, fmt: Format, rule: Rule, out: Any, threads: Any, random: Any, scale: Any, zero_point: Any, axis: int
) -> Array:
    values, source = values_of(x, fmt)
    if source is None or values.dtype.kind == "c":
        raise TypeError("scale and zero_point need an array of real numbers")
    if not isinstance(source, FloatFormat):
        values = values.astype(np.float32 if source.bits <= 16 else np.float64)
    scaled = values
    if scale is not None:
        factor = along(scale, values, axis, "scale", values.dtype)
        if not (np.isfinite(factor.astype(np.float64)) & (factor > 0)).all():
            raise ValueError("scale must be finite and above zero")
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            scaled = (values / factor).astype(values.dtype)
    if zero_point is None or not np.any(zero_point):
        return encode(scaled, fmt, rule=rule, out=out, threads=threads, random=random)
    if not isinstance(fmt, IntFormat):
        raise ValueError(f"zero_point needs an integer format, not {fmt.name}")
    offset = along(zero_point, values, axis, "zero_point", np.int64)
    # 2**62 leaves room for the offset and lies beyond every clamp; NaN and the final range follow the rule.
    wide = replace(rule, overflow=Overflow.saturate)
    whole = encode(scaled, "int64", rule=wide, threads=threads, random=random)
    shifted = np.clip(whole, -(1 << 62), 1 << 62) + offset
    return encode(shifted, fmt, rule=rule, out=out, threads=threads)
