"""`encode`, `decode` and `quantize` of block formats: arguments, axes, padding and threads around the kernels.

`bittrue.encode` and its sisters come here for block formats; the arguments mean the same, where they mean anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from .. import exact_blocks
from ..codec import _values as values_of
from ..codec import encode as encode_elements
from ..codec import in_chunks
from ..formats import FloatFormat, IntFormat, format
from ..kernels import blocks as kernels
from ..kinds.block import (
    BlockFormat,
    BlockOverflow,
    BlockRule,
    MinCode,
    NegativeZero,
    Nonfinite,
    ScaledFormat,
    ScaleFloor,
    ScaleRule,
    SharedExponentFormat,
    TopBump,
)
from ..plans import _MODES as MODES
from ..rounding import Rule
from .layout import from_kernel_order, is_kernel_order, to_kernel_order

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
        plan = _encode_plan(fmt, how, tensor, rows.dtype)
        chunk = partial(_encode_chunk, plan, fmt, rows.reshape(-1), flat)
        _report(_in_blocks(chunk, _count(rows, fmt), fmt, threads), fmt)
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
    found = np.empty((*array.shape[:-1], length), np.float64 if target.itemsize == 8 or tensor != 1 else np.float32)
    _decode_flat(array.reshape(-1), found.reshape(-1), fmt, tensor, threads)
    return _as_values(found, target, axis, out)


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
    in_place = (
        isinstance(out, np.ndarray)
        and out.dtype == dtype == np.float32
        and out.flags.c_contiguous
        and place == ndim - 1
        and out.shape == moved
        and length % fmt.block_size == 0
    )
    if rows.dtype != object and tensor == 1 and dtype != np.float64:
        found = out if in_place else np.empty((*moved[:-1], rows.shape[-1]), np.float32)
        assert found is not None
        plan = _encode_plan(fmt, how, tensor, rows.dtype)
        chunk = partial(_quantize_chunk, plan, fmt, rows.reshape(-1), found.reshape(-1))
        _report(_in_blocks(chunk, _count(rows, fmt), fmt, threads), fmt)
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


def _count(rows: Array, fmt: BlockFormat) -> int:
    return rows.size // fmt.block_size


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


def _report(bits: int, fmt: BlockFormat) -> None:
    if bits & kernels.NONFINITE:
        raise ValueError(
            f"x has an Inf or a NaN, for which {fmt.name} has no code here (nonfinite='raise'); "
            "see BlockRule.nonfinite for other rules"
        )
    if bits & kernels.AT_TOP:
        raise OverflowError(f"a block of x rounds beyond the largest exponent of {fmt.name} (top_bump='raise')")


def _exactly(rows: Array, fmt: BlockFormat, rule: BlockRule, tensor: float) -> Array:
    """Ask the specification, block by block."""
    found = bytearray()
    for block in rows.reshape(-1, fmt.block_size).tolist():
        found += exact_blocks.to_bytes(exact_blocks.encode(block, fmt, rule, Fraction(tensor)), fmt)
    return np.frombuffer(found, np.uint8)


# --- plans ------------------------------------------------------------------------------------------------------------


class _Layout(NamedTuple):
    """What the kernels need to pack: see `kernels.blocks._pack`."""

    masks: Array
    numbers: tuple[int, int, int, int]


@lru_cache(maxsize=64)
def layout_of(fmt: BlockFormat) -> _Layout:
    """Return masks and numbers of the packing kernels."""
    numbers = (fmt.block_bytes, fmt.shift_bytes, fmt.block_size // 8, fmt.element_bits)
    return _Layout(kernels.fold_masks(fmt.element_bits), numbers)


class _Plan(NamedTuple):
    """Calls of the kernels with everything but source, destination and count put in; and which reports matter."""

    encode: Callable[[Array, Array, int], int]
    quantize: Callable[[Array, Array], int]
    lanes: np.dtype[Any]
    stride: int
    mind: int


def _log2(n: int) -> int:
    return n.bit_length() - 1


@lru_cache(maxsize=256)
def _encode_plan(fmt: BlockFormat, rule: BlockRule, tensor: float, dtype: np.dtype[Any]) -> _Plan:
    assert rule.rounding is not None
    mind = kernels.NONFINITE if rule.nonfinite is Nonfinite.raise_ else 0
    if isinstance(fmt, SharedExponentFormat):
        mind |= kernels.AT_TOP if rule.top_bump is TopBump.raise_ and rule.overflow is not BlockOverflow.saturate else 0
        return _shared_plan(fmt, rule, dtype, mind)
    assert isinstance(fmt, ScaledFormat)
    return _scaled_plan(fmt, rule, tensor, dtype, mind)


def _shared_plan(fmt: SharedExponentFormat, rule: BlockRule, dtype: np.dtype[Any], mind: int) -> _Plan:
    narrow = dtype.name == "bfloat16"
    wide = not rule.flush_subnormals and not narrow
    lanes = np.dtype(np.uint32 if wide else np.uint16)
    stride = 1 if wide or narrow else 2
    group = fmt.shift_group or fmt.block_size
    bumps = rule.overflow is not BlockOverflow.saturate
    uses_lowest = rule.min_code is MinCode.allow or (rule.min_code is MinCode.auto and bumps)
    assert rule.rounding is not None and rule.overflow is not None
    p, q = kernels.shared_parameters(
        lanes,
        policy=list(BlockOverflow).index(rule.overflow),
        group_levels=_log2(group),
        block_levels=_log2(fmt.block_size // group),
        shifts=int(bool(fmt.shift_group)),
        zero_pair=int(rule.zero_pair_shift or 0),
        bump_below=255 if rule.top_bump is TopBump.next else 254,
        bias=fmt.bias - 127,
        keep_subnormals=int(not rule.flush_subnormals),
        blank_nonfinite=int(rule.nonfinite is Nonfinite.nan_block),
        saturate_nonfinite=int(rule.nonfinite is Nonfinite.saturate),
        fraction_bits=fmt.fraction_bits,
        rounding=MODES[rule.rounding],
        twos_complement=int(fmt.twos_complement),
        lowest=int(fmt.twos_complement and uses_lowest),
        clear_negative_zero=int(rule.negative_zero is NegativeZero.clear),
    )
    masks, numbers = layout_of(fmt)
    form = _shared_form(fmt)

    def run(src: Array, dst: Array, count: int) -> int:
        return int(kernels.encode_shared(src, stride, dst, count, p, q, masks, numbers))

    def round_trip(src: Array, dst: Array) -> int:
        return int(kernels.quantize_shared(src, stride, dst.view(np.uint32), p, q, form, fmt.shift_bytes))

    return _Plan(run, round_trip, lanes, stride, mind)


def _shared_form(fmt: SharedExponentFormat) -> Array:
    return kernels.shared_form(fmt.mantissa_bits, fmt.twos_complement, fmt.bias, fmt.exponent_255 == "nan")


def _scaled_plan(fmt: ScaledFormat, rule: BlockRule, tensor: float, dtype: np.dtype[Any], mind: int) -> _Plan:
    s, e = fmt.scale, fmt.element
    integer = isinstance(e, IntFormat)
    long = not fmt.powers_of_two and (tensor != 1 or s.mantissa_bits > 8)
    lowest = {None: 0, ScaleFloor.zero: 0, ScaleFloor.subnormal: 1, ScaleFloor.normal: 1 << s.mantissa_bits}
    assert rule.rounding is not None
    p, q, q_scale = kernels.scaled_parameters(
        powers=fmt.powers_of_two,
        long=long,
        block_levels=_log2(fmt.block_size),
        emax=fmt.element_emax,
        scale_bias=s.bias,
        scale_top=s.max_code,
        scale_lowest=lowest[rule.scale_floor],
        scale_nonfinite=s.max_code if s.nan_code is None or rule.nonfinite is Nonfinite.saturate else s.nan_code,
        blank_nonfinite=int(rule.nonfinite is Nonfinite.nan_block),
        carry=_scale_carry(fmt, rule),
        scale_emin=s.min_exponent,
        scale_fraction=s.mantissa_bits,
        emin=e.min_exponent if isinstance(e, FloatFormat) else e.bits - 2 - fmt.fraction_bits,
        fraction_bits=fmt.element_significand,
        rounding=MODES[rule.rounding],
        max_code=e.max_code if isinstance(e, FloatFormat) else int(e.max),
        lowest=int(integer and rule.min_code is MinCode.allow),
        twos_complement=int(integer),
        bits=e.bits,
    )
    table = np.empty(0, np.float32)
    if not fmt.powers_of_two:
        table = np.ones(256, np.float64 if long else np.float32)
        for code in range(s.max_code + 1):
            value = s.value(code)
            table[code] = float(Fraction(value) * Fraction(tensor)) if value else np.inf
    limit = float(fmt.element_max * Fraction(tensor))
    masks, numbers = layout_of(fmt)
    elements, scales = _value_tables(fmt, np.dtype(np.float32))
    lanes = np.dtype(np.uint16 if dtype.name == "bfloat16" else np.uint32)

    def run(src: Array, dst: Array, count: int) -> int:
        return int(kernels.encode_scaled(src, dst, count, p, q, q_scale, limit, table, masks, numbers))

    def round_trip(src: Array, dst: Array) -> int:
        one = dst.dtype.type(1)
        return int(
            kernels.quantize_scaled(
                src, dst, p, q, q_scale, limit, table, elements, scales, one, fmt.block_size
            )
        )

    return _Plan(run, round_trip, lanes, 1, mind)


def _scale_carry(fmt: ScaledFormat, rule: BlockRule) -> int:
    """What added to a doubled 24-bit fraction carries where the rule wants the next power of two; see `ScaleRule`."""
    ones = (1 << 24) - 2  # a fraction that is not zero carries
    if rule.scale_rule is ScaleRule.ceil:
        return ones
    if rule.scale_rule is ScaleRule.even:
        return 1 << (23 - fmt.element_significand)
    if rule.scale_rule is ScaleRule.rceil:  # a fraction above that of the largest element carries
        significand = fmt.element_max / Fraction(2) ** fmt.element_emax
        return ones - int((significand - 1) * (1 << 24))
    return 0


@lru_cache(maxsize=64)
def _value_tables(fmt: ScaledFormat, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Return the values of all element codes and of all scale codes (NaN where there is none)."""
    elements, scales = np.full(256, np.nan, dtype), np.full(256, np.nan, dtype)
    for code in range(1 << fmt.element_bits):
        value = fmt.element.value(code)
        elements[code] = float(value) / (1 << fmt.fraction_bits)
    for code in range(1 << fmt.scale.bits):
        scales[code] = float(fmt.scale.value(code))
    return elements, scales


# --- running ----------------------------------------------------------------------------------------------------------


def _in_blocks(work: Callable[[int, int], int], blocks: int, fmt: BlockFormat, threads: int | None) -> int:
    return in_chunks(work, blocks, threads, fmt.block_size, kernels.TILE // fmt.block_size)


def _encode_chunk(plan: _Plan, fmt: BlockFormat, src: Array, dst: Array, lo: int, hi: int) -> int:
    size, bytes_ = fmt.block_size, fmt.block_bytes
    part = src[lo * size : hi * size].view(plan.lanes)
    return plan.encode(part, dst[lo * bytes_ : hi * bytes_], (hi - lo) * size) & plan.mind


def _quantize_chunk(plan: _Plan, fmt: BlockFormat, src: Array, dst: Array, lo: int, hi: int) -> int:
    size = fmt.block_size
    return plan.quantize(src[lo * size : hi * size].view(plan.lanes), dst[lo * size : hi * size]) & plan.mind


def _decode_flat(src: Array, dst: Array, fmt: BlockFormat, tensor: float, threads: int | None) -> None:
    if not is_kernel_order(fmt):
        src = to_kernel_order(src, fmt)
    if isinstance(fmt, SharedExponentFormat):
        _decode_shared(src, dst, fmt, threads)
        return
    assert isinstance(fmt, ScaledFormat)
    seen = _in_blocks(partial(_decode_scaled, fmt, tensor, src, dst), dst.size // fmt.block_size, fmt, threads)
    if seen >> fmt.scale.bits:
        bad = src[:: fmt.block_bytes]
        first = int(bad[bad >> fmt.scale.bits != 0][0])
        raise ValueError(
            f"codes: the scale code {first:#x} is reserved in {fmt.scale.name}, which has {fmt.scale.bits} bits"
        )


def _decode_scaled(fmt: ScaledFormat, tensor: float, src: Array, dst: Array, lo: int, hi: int) -> int:
    masks, numbers = layout_of(fmt)
    elements, scales = _value_tables(fmt, dst.dtype)
    part = src[lo * fmt.block_bytes : hi * fmt.block_bytes]
    values = dst[lo * fmt.block_size : hi * fmt.block_size]
    return int(kernels.decode_scaled(part, values, elements, scales, dst.dtype.type(tensor), masks, numbers))


def _decode_shared(src: Array, dst: Array, fmt: SharedExponentFormat, threads: int | None) -> None:
    masks, numbers = layout_of(fmt)
    group = fmt.shift_group or fmt.block_size
    levels, form = (_log2(group), _log2(fmt.block_size // group)), _shared_form(fmt)

    def narrow(lo: int, hi: int) -> int:
        part = src[lo * fmt.block_bytes : hi * fmt.block_bytes]
        values = dst[lo * fmt.block_size : hi * fmt.block_size].view(np.uint32)
        kernels.decode_shared(part, values, levels, masks, numbers, form)
        return 0

    def wide(lo: int, hi: int) -> int:
        part = src[lo * fmt.block_bytes : hi * fmt.block_bytes]
        dst[lo * fmt.block_size : hi * fmt.block_size] = _wide_values(part, fmt)
        return 0

    _in_blocks(narrow if dst.dtype == np.float32 else wide, dst.size // fmt.block_size, fmt, threads)


def _wide_values(src: Array, fmt: SharedExponentFormat) -> Array:
    """Decode into float64, which holds the values of every exponent."""
    heads, shifts, codes = take_apart(src, fmt, ordered=True)
    mantissas = codes.astype(np.int64)
    negative = mantissas >> (fmt.mantissa_bits - 1) != 0
    mantissas = np.where(negative, mantissas - (1 << (fmt.mantissa_bits - (not fmt.twos_complement))), mantissas)
    exponents = heads[:, None].astype(np.int64) - np.repeat(shifts, fmt.shift_group or fmt.block_size, axis=1)
    values = np.ldexp(np.abs(mantissas).astype(np.float64), exponents - fmt.bias - fmt.fraction_bits)
    values = np.where(negative, -values, values)
    if fmt.exponent_255 == "nan":
        values[heads == 255] = np.nan
    return np.asarray(values.reshape(-1))


def take_apart(src: Array, fmt: BlockFormat, ordered: bool = False) -> tuple[Array, Array, Array]:
    """Split packed blocks into heads (n,), level-2 exponents (n, shifts or 1) and element codes (n, block_size).

    `ordered`: the bytes are in the kernels' order already.
    """
    flat = np.ascontiguousarray(src).reshape(-1)
    if flat.size % fmt.block_bytes:
        raise ValueError(
            f"codes: {flat.size} bytes are not whole blocks of {fmt.name}, which take {fmt.block_bytes}"
        )
    if not ordered and not is_kernel_order(fmt):
        flat = to_kernel_order(flat, fmt)
    blocks = flat.size // fmt.block_bytes
    masks, numbers = layout_of(fmt)
    codes, heads = np.empty(blocks * fmt.block_size, np.uint8), np.empty(blocks, np.uint8)
    level2 = np.zeros(blocks * fmt.shift_bytes, np.uint8)
    kernels.unpack(flat, codes, heads, level2, masks, numbers)
    if fmt.shift_bytes:
        shifts = np.unpackbits(level2.reshape(blocks, -1), axis=1, bitorder="little").astype(np.int64)
    else:
        shifts = np.zeros((blocks, 1), np.int64)
    return heads, shifts, codes.reshape(blocks, fmt.block_size)
