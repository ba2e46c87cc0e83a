"""Which kernels convert blocks, with which numbers: chosen once per format and rule; and the threads around them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..chunks import in_chunks
from ..formats import FloatFormat, IntFormat
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
from .layout import is_kernel_order, to_kernel_order

__all__ = ["decode_flat", "encode_flat", "quantize_flat", "take_apart"]

Array = np.ndarray[Any, Any]

_LANES = 32  # of 16 bits: what the widest vectors of today's processors hold


def encode_flat(
    src: Array, dst: Array, fmt: BlockFormat, rule: BlockRule, tensor: float, threads: int | None
) -> None:
    """Encode whole blocks of float32 or bfloat16 into packed bytes in the kernels' order."""
    plan = _encode_plan(fmt, rule, tensor, src.dtype)
    _report(_in_blocks(partial(_encode_chunk, plan, fmt, src, dst), src.size // fmt.block_size, fmt, threads), fmt)


def quantize_flat(src: Array, dst: Array, fmt: BlockFormat, rule: BlockRule, threads: int | None) -> None:
    """Encode and decode whole blocks of float32 or bfloat16; `dst` is float32."""
    plan = _encode_plan(fmt, rule, 1.0, src.dtype)
    _report(_in_blocks(partial(_quantize_chunk, plan, fmt, src, dst), src.size // fmt.block_size, fmt, threads), fmt)


# --- plans ------------------------------------------------------------------------------------------------------------


def _layout(fmt: BlockFormat) -> tuple[int, int]:
    """Return what the kernels need besides the shape to find the parts of a block: its bytes, bits per element."""
    return fmt.block_bytes, fmt.element_bits


class _Plan(NamedTuple):
    """Calls of the kernels with everything but source and destination put in; and which reports matter."""

    encode: Callable[[Array, Array], int]
    quantize: Callable[[Array, Array], int]
    bits: np.dtype[Any]
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
    bits = np.dtype(np.uint16 if narrow else np.uint32)
    lanes = bits if not rule.flush_subnormals else np.dtype(np.uint16)
    bumps = rule.overflow is not BlockOverflow.saturate
    uses_lowest = rule.min_code is MinCode.allow or (rule.min_code is MinCode.auto and bumps)
    assert rule.rounding is not None and rule.overflow is not None
    p, q = kernels.shared_parameters(
        lanes,
        policy=list(BlockOverflow).index(rule.overflow),
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
    layout, shape = _layout(fmt), _shape(fmt)
    form, scale = _shared_form(fmt)

    def run(src: Array, dst: Array) -> int:
        return int(kernels.encode_shared(src, dst, p, q, shape, layout))

    def round_trip(src: Array, dst: Array) -> int:
        return int(kernels.quantize_shared(src, dst, p, q, shape, form, scale))

    return _Plan(run, round_trip, bits, mind)


@lru_cache(maxsize=64)
def _shape(fmt: BlockFormat) -> tuple[tuple[int, ...], ...]:
    """Return how blocks lie in vectors of at least 32 lanes; see `kernels.blocks.lanes`."""
    group = (fmt.shift_group if isinstance(fmt, SharedExponentFormat) else 0) or fmt.block_size
    parts = (group, fmt.block_size // group, max(_LANES // fmt.block_size, 1))
    return tuple((0,) * _log2(n) for n in parts)


@lru_cache(maxsize=64)
def _shared_form(fmt: SharedExponentFormat) -> tuple[Array, Any]:
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
    if fmt.powers_of_two:
        table = np.ldexp(np.float32(1), s.bias - np.arange(256))
    else:
        table = np.ones(256, np.float64 if long else np.float32)
        for code in range(s.max_code + 1):
            value = s.value(code)
            table[code] = float(Fraction(value) * Fraction(tensor)) if value else np.inf
    limit = float(fmt.element_max * Fraction(tensor))
    layout, shape = _layout(fmt), _shape(fmt)
    scales, form = _value_tables(fmt, np.dtype(np.float32))[1], _element_form(fmt)
    bits = np.dtype(np.uint16 if dtype.name == "bfloat16" else np.uint32)

    def run(src: Array, dst: Array) -> int:
        return int(kernels.encode_scaled(src, dst, p, q, q_scale, limit, table, shape, layout))

    def round_trip(src: Array, dst: Array) -> int:
        return int(kernels.quantize_scaled(src, dst, p, q, q_scale, limit, table, scales, shape, form))

    return _Plan(run, round_trip, bits, mind)


@lru_cache(maxsize=64)
def _element_form(fmt: ScaledFormat) -> Array:
    """Return how the kernels compute the values of element codes."""
    e = fmt.element
    if isinstance(e, FloatFormat):
        return kernels.element_form(e.bits, 0, e.mantissa_bits, e.bias, e.max_code)
    fraction = e.bits - 2  # as a float with two binades of one step
    return kernels.element_form(e.bits, 1, fraction, 1 - (fraction - fmt.fraction_bits), 0)


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


def _report(bits: int, fmt: BlockFormat) -> None:
    if bits & kernels.NONFINITE:
        raise ValueError(
            f"x has an Inf or a NaN, for which {fmt.name} has no code here (nonfinite='raise'); "
            "see BlockRule.nonfinite for other rules"
        )
    if bits & kernels.AT_TOP:
        raise OverflowError(f"a block of x rounds beyond the largest exponent of {fmt.name} (top_bump='raise')")


def _in_blocks(work: Callable[[int, int], int], blocks: int, fmt: BlockFormat, threads: int | None) -> int:
    return in_chunks(work, blocks, threads, fmt.block_size, kernels.TILE // fmt.block_size)


def _encode_chunk(plan: _Plan, fmt: BlockFormat, src: Array, dst: Array, lo: int, hi: int) -> int:
    size, bytes_ = fmt.block_size, fmt.block_bytes
    part = src[lo * size : hi * size].view(plan.bits)
    return plan.encode(part, dst[lo * bytes_ : hi * bytes_]) & plan.mind


def _quantize_chunk(plan: _Plan, fmt: BlockFormat, src: Array, dst: Array, lo: int, hi: int) -> int:
    size = fmt.block_size
    return plan.quantize(src[lo * size : hi * size].view(plan.bits), dst[lo * size : hi * size]) & plan.mind


def decode_flat(src: Array, dst: Array, fmt: BlockFormat, tensor: float, threads: int | None) -> None:
    """Decode whole blocks into float32 or float64."""
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
    layout, shape = _layout(fmt), _shape(fmt)
    elements, scales = _value_tables(fmt, dst.dtype)
    part = src[lo * fmt.block_bytes : hi * fmt.block_bytes]
    values = dst[lo * fmt.block_size : hi * fmt.block_size]
    factor, form = dst.dtype.type(tensor), _element_form(fmt)
    return int(kernels.decode_scaled(part, values, elements, scales, factor, shape, layout, form))


def _decode_shared(src: Array, dst: Array, fmt: SharedExponentFormat, threads: int | None) -> None:
    layout = _layout(fmt)
    shape = _shape(fmt)
    form, scale = _shared_form(fmt)

    def narrow(lo: int, hi: int) -> int:
        part = src[lo * fmt.block_bytes : hi * fmt.block_bytes]
        values = dst[lo * fmt.block_size : hi * fmt.block_size]
        kernels.decode_shared(part, values, shape, layout, form, scale)
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
    codes, heads = np.empty(blocks * fmt.block_size, np.uint8), np.empty(blocks, np.uint8)
    level2 = np.zeros(blocks * fmt.shift_bytes, np.uint8)
    kernels.unpack(flat, codes, heads, level2, _shape(fmt), _layout(fmt))
    if fmt.shift_bytes:
        shifts = np.unpackbits(level2.reshape(blocks, fmt.shift_bytes), axis=1, bitorder="little").astype(np.int64)
    else:
        shifts = np.zeros((blocks, 1), np.int64)
    return heads, shifts, codes.reshape(blocks, fmt.block_size)
