"""The executable specification of block formats: one block at a time, in exact fractions, slow and final.

Shared exponents follow specs/aie.md sections 6 and 7 (UG1603, AM027, and what was measured on silicon), scaled elements
OCP Microscaling 1.0 section 6.3 and NVIDIA's description of NVFP4. Values are Fractions, or floats where a Fraction
cannot say it: -0.0, the infinities, and NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from . import exact
from .formats import IntFormat, Value, floor_log2
from .kinds.block import (
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
from .rounding import Overflow, Rounding, Rule

__all__ = ["Block", "decode", "encode", "from_bytes", "to_bytes"]


class Block(NamedTuple):
    """The fields of a block: exponent or scale code, level-2 exponents, element codes."""

    exponent: int
    shifts: tuple[int, ...]
    codes: tuple[int, ...]


_ONE = Fraction(1)
_LARGEST = (2 - Fraction(1, 1 << 23)) * 2**127


def _two(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def encode(
    values: Iterable[Value], fmt: BlockFormat, rule: BlockRule | None = None, scale: Fraction = _ONE
) -> Block:
    """Quantise one block.

    Parameters
    ----------
    values : iterable of Fraction or float
        At most ``fmt.block_size``; zeros fill the rest.
    fmt : BlockFormat
    rule : BlockRule, optional
        What differs from the format's own rule.
    scale : Fraction
        The scale of the whole tensor, for formats that have one.

    Examples
    --------
    >>> from bittrue import format
    >>> encode([Fraction(3, 2), Fraction(-1, 4)], format("mx4")).codes[:2]
    (3, 4)
    """
    x = [_plain(v) for v in values]
    if len(x) > fmt.block_size:
        raise ValueError(f"values: {len(x)} of them, but a block of {fmt.name} holds {fmt.block_size}")
    x += [Fraction(0)] * (fmt.block_size - len(x))
    policy = (rule or BlockRule()).over(fmt.rule, fmt.name)
    if isinstance(fmt, SharedExponentFormat):
        return _encode_shared(x, fmt, policy)
    assert isinstance(fmt, ScaledFormat)
    return _encode_scaled(x, fmt, policy, scale)


def _plain(value: Value) -> Value:
    """Beyond float32's range a value counts as its largest."""
    if isinstance(value, float) and (not math.isfinite(value) or value == 0):
        return value
    return min(max(Fraction(value), -_LARGEST), _LARGEST)


def decode(block: Block, fmt: BlockFormat, scale: Fraction = _ONE) -> list[Value]:
    """Return the exact values of a block."""
    if isinstance(fmt, SharedExponentFormat):
        return _decode_shared(block, fmt)
    assert isinstance(fmt, ScaledFormat)
    return _decode_scaled(block, fmt, scale)


# --- shared exponents -------------------------------------------------------------------------------------------------


def _encode_shared(x: list[Value], f: SharedExponentFormat, rule: BlockRule) -> Block:
    if any(isinstance(v, float) and not math.isfinite(v) for v in x):
        return _nonfinite_shared(x, f, rule)
    return _quantise(x, [_exponent(v) for v in x], f, rule)


def _exponent(value: Value) -> int:
    """The exponent of a value as float32 has it: everything below the normal values counts as -127."""
    return max(floor_log2(abs(Fraction(value))), -127) if value else -127


def _quantise(x: Sequence[Value], exponents: Sequence[int], f: SharedExponentFormat, rule: BlockRule) -> Block:
    """The rule of specs/aie.md 6.3 and 7; `exponents` are those of the values."""
    e, top = max(exponents), 127  # the last exponent that a value has, and up to which a block goes up by itself
    if rule.flush_subnormals:
        x = [0.0 * math.copysign(1, v) if abs(Fraction(v)) < _two(-126) else v for v in x]
    if e == -127 and not any(x):
        return Block(0, (0,) * f.shifts, tuple(_code(0, v, f, rule) for v in x))
    group = f.shift_group or f.block_size
    groups = [range(i, i + group) for i in range(0, f.block_size, group)]
    highest = [max(exponents[i] for i in members) for members in groups]
    t = [min(1, e - h) if f.shift_group else 0 for h in highest]
    if not rule.zero_pair_shift:
        t = [0 if h == -127 else shift for shift, h in zip(t, highest)]

    def quantised(e: int, t: Sequence[int]) -> list[int]:
        return [_round(x[i], f.fraction_bits - (e - t[g]), rule) for g, members in enumerate(groups) for i in members]

    limit = (1 << (f.mantissa_bits - 1)) - 1
    lowest = -limit - _uses_lowest(f, rule)

    def overflowing(q: Sequence[int]) -> list[bool]:
        return [any(not lowest <= q[i] <= limit for i in members) for members in groups]

    q = quantised(e, t)
    over = overflowing(q)
    if rule.overflow is BlockOverflow.clear_e2_then_bump and any(over):
        t = [0 if o else shift for o, shift in zip(over, t)]
        over = overflowing(quantised(e, t))
    if rule.overflow is not BlockOverflow.saturate and any(over):
        if e < top or (e == top and rule.top_bump is TopBump.next):
            e += 1
            if rule.overflow is BlockOverflow.clear_e2_then_bump:
                t = [0 if o else 1 for o in over]
        elif e == top and rule.top_bump is TopBump.raise_:
            raise OverflowError(f"a block rounds beyond the largest exponent of {f.name} (top_bump='raise')")
    q = [min(max(n, lowest), limit) for n in quantised(e, t)]
    return Block(e + f.bias, tuple(t) if f.shift_group else (), tuple(_code(n, v, f, rule) for n, v in zip(q, x)))


def _uses_lowest(f: SharedExponentFormat, rule: BlockRule) -> bool:
    if not f.twos_complement or rule.min_code is MinCode.never:
        return False
    return rule.min_code is MinCode.allow or rule.overflow is not BlockOverflow.saturate


def _round(value: Value, exponent: int, rule: BlockRule) -> int:
    """Round value * 2**exponent to an integer."""
    scaled = abs(Fraction(value)) * _two(exponent)
    steps, rest = divmod(scaled.numerator, scaled.denominator)
    assert rule.rounding is not None
    steps += exact.round_up(rule.rounding, bool(steps & 1), value < 0, rest, scaled.denominator)
    return -steps if value < 0 else steps


def _code(q: int, value: Value, f: SharedExponentFormat, rule: BlockRule) -> int:
    if f.twos_complement:
        return q & ((1 << f.mantissa_bits) - 1)
    negative = math.copysign(1, value) < 0 and (q != 0 or rule.negative_zero is NegativeZero.keep)
    return abs(q) | negative << (f.mantissa_bits - 1)


def _nonfinite_shared(x: list[Value], f: SharedExponentFormat, rule: BlockRule) -> Block:
    if rule.nonfinite is Nonfinite.raise_:
        raise ValueError(f"a block has an Inf or a NaN, for which {f.name} has no code (nonfinite='raise')")
    if rule.nonfinite is Nonfinite.nan_block:
        return Block(255, (0,) * f.shifts, (0,) * f.block_size)
    if rule.nonfinite is Nonfinite.coded:  # Inf stands for 1.0 and NaN for 1.5 at the exponent 128
        stand_in = [_replaced(v, _two(128), _two(127) * 3) for v in x]
        return _quantise(stand_in, [_exponent(v) for v in stand_in], f, rule)
    limit = Fraction((1 << (f.mantissa_bits - 1)) - 1, 1 << f.fraction_bits) * _two(127)
    exponents = [_exponent(v) if math.isfinite(v) else 127 for v in x]  # a NaN counts with the exponent of an Inf
    return _quantise([_replaced(v, limit, Fraction(0)) for v in x], exponents, f, rule)


def _replaced(value: Value, infinity: Fraction, nan: Fraction) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        magnitude = nan if value != value else infinity
        return (-magnitude if magnitude else -0.0) if math.copysign(1, value) < 0 else magnitude
    return value


def _decode_shared(block: Block, f: SharedExponentFormat) -> list[Value]:
    if block.exponent == 255 and f.exponent_255 == "nan":
        return [math.nan] * f.block_size
    shifts = block.shifts or (0,)
    per_shift = f.block_size // len(shifts)
    values: list[Value] = []
    for i, code in enumerate(block.codes):
        step = _two(block.exponent - f.bias - shifts[i // per_shift] - f.fraction_bits)
        negative = bool(code >> (f.mantissa_bits - 1))
        if f.twos_complement:
            values.append((code - (negative << f.mantissa_bits)) * step)
            continue
        magnitude = code - (negative << (f.mantissa_bits - 1))
        values.append((-magnitude * step if magnitude else -0.0) if negative else magnitude * step)
    return values


# --- scaled elements --------------------------------------------------------------------------------------------------


def _encode_scaled(x: list[Value], f: ScaledFormat, rule: BlockRule, tensor: Fraction) -> Block:
    if any(isinstance(v, float) and not math.isfinite(v) for v in x):
        if rule.nonfinite is Nonfinite.raise_:
            raise ValueError("a block has an Inf or a NaN (nonfinite='raise')")
        if rule.nonfinite is Nonfinite.nan_block:
            assert f.scale.nan_code is not None
            return Block(f.scale.nan_code, (), (0,) * f.block_size)
        code = f.scale.max_code  # saturate
        largest = f.element_max * f.scale.max * tensor
        x = [_replaced(v, largest, Fraction(0)) for v in x]
    else:
        code = _scale_code(max(abs(Fraction(v)) for v in x), f, rule, tensor)
    scale = Fraction(f.scale.value(code)) * tensor
    return Block(code, (), tuple(_element(v, scale, f, rule) for v in x))


def _scale_code(amax: Fraction, f: ScaledFormat, rule: BlockRule, tensor: Fraction) -> int:
    s = f.scale
    if rule.scale_rule is ScaleRule.divide:
        code = exact.encode(amax / f.element_max / tensor, s)  # nearest even, saturating
        lowest = {ScaleFloor.subnormal: s.min_subnormal, ScaleFloor.normal: s.min_normal}
        return max(code, exact.encode(lowest.get(rule.scale_floor or ScaleFloor.zero, Fraction(0)), s))
    if amax == 0:
        return 0
    low, high = floor_log2(s.min_normal), floor_log2(s.max)
    exponent = min(max(_scale_exponent(amax, f, rule), low), high)
    return exact.encode(_two(exponent), s)


def _scale_exponent(amax: Fraction, f: ScaledFormat, rule: BlockRule) -> int:
    """OCP MX 1.0, section 6.3, and the other rules in use; see `ScaleRule`."""
    if rule.scale_rule is ScaleRule.floor:
        return floor_log2(amax) - f.element_emax
    if rule.scale_rule is ScaleRule.ceil:
        return _ceil_log2(amax) - f.element_emax
    if rule.scale_rule is ScaleRule.rceil:
        return _ceil_log2(amax / f.element_max)
    step = floor_log2(amax) - f.element_significand
    steps = _round(amax, -step, BlockRule(rounding=Rounding.nearest_even))
    return floor_log2(steps * _two(step)) - f.element_emax


def _ceil_log2(value: Fraction) -> int:
    return -floor_log2(1 / value)


def _element(value: Value, scale: Fraction, f: ScaledFormat, rule: BlockRule) -> int:
    """Round value / scale once; what lies beyond the largest element stops there."""
    e = f.element
    if isinstance(e, IntFormat):
        if not value or not scale:
            return 0
        q = _round(Fraction(value) / scale, f.fraction_bits, rule)
        lowest = int(e.min) + (rule.min_code is not MinCode.allow)
        return e.pack(min(max(q, lowest), int(e.max)))
    if not value or not scale:
        return e.with_sign(0, math.copysign(1, value) < 0)
    assert rule.rounding is not None
    return exact.encode(Fraction(value) / scale, e, Rule(rounding=rule.rounding, overflow=Overflow.saturate))


def _decode_scaled(block: Block, f: ScaledFormat, tensor: Fraction) -> list[Value]:
    scale = f.scale.value(block.exponent)
    if isinstance(scale, float):
        return [math.nan] * f.block_size
    values: list[Value] = []
    for code in block.codes:
        element = f.element.value(code)
        if isinstance(element, float):  # -0, Inf or NaN
            values.append(math.nan if math.isinf(element) and not scale else element)
        else:
            product = element * scale * tensor / (1 << f.fraction_bits)
            values.append(-0.0 if element < 0 and not product else product)
    return values


# --- bytes ------------------------------------------------------------------------------------------------------------


def to_bytes(block: Block, f: BlockFormat) -> bytes:
    """Return the memory image of a block."""
    if not isinstance(f, SharedExponentFormat):
        return bytes([block.exponent]) + _fields(block.codes, f.element_bits, "lsb")
    parts = {
        "exponent": bytes([block.exponent]),
        "shifts": _fields(block.shifts, 1, f.shift_order),
        "mantissas": _fields(block.codes, f.mantissa_bits, f.bit_layout),
    }
    return b"".join(parts[name] for name in f.order.split())


def from_bytes(data: bytes, f: BlockFormat) -> Block:
    """Read the memory image of a block."""
    if len(data) != f.block_bytes:
        raise ValueError(f"data has {len(data)} bytes; a block of {f.name} takes {f.block_bytes}")
    if not isinstance(f, SharedExponentFormat):
        return Block(data[0], (), _split(data[1:], f.element_bits, f.block_size, "lsb"))
    sizes = {"exponent": 1, "shifts": f.shift_bytes, "mantissas": f.block_bytes - 1 - f.shift_bytes}
    parts, at = {}, 0
    for name in f.order.split():
        parts[name] = data[at : at + sizes[name]]
        at += sizes[name]
    shifts = _split(parts["shifts"], 1, f.shifts, f.shift_order)
    codes = _split(parts["mantissas"], f.mantissa_bits, f.block_size, f.bit_layout)
    return Block(parts["exponent"][0], shifts, codes)


def _fields(codes: Sequence[int], bits: int, layout: str) -> bytes:
    size = len(codes) * bits // 8
    if layout == "planes" and bits < 8:
        low = [c & ((1 << (bits - 1)) - 1) for c in codes]
        word = _stack(low, bits - 1) | _stack([c >> (bits - 1) for c in codes], 1) << (len(codes) * (bits - 1))
        return word.to_bytes(size, "little")
    if layout == "msb":
        return _stack(codes[::-1], bits).to_bytes(size, "big")
    return _stack(codes, bits).to_bytes(size, "little")


def _stack(codes: Sequence[int], bits: int) -> int:
    return sum(c << (i * bits) for i, c in enumerate(codes))


def _split(data: bytes, bits: int, count: int, layout: str) -> tuple[int, ...]:
    mask = (1 << bits) - 1
    if layout == "planes" and bits < 8:
        word, low = int.from_bytes(data, "little"), bits - 1
        tops = word >> (count * low)
        return tuple(
            (word >> (i * low) & ((1 << low) - 1)) | (tops >> i & 1) << low for i in range(count)
        )
    word = int.from_bytes(data, "big" if layout == "msb" else "little")
    codes = tuple(word >> (i * bits) & mask for i in range(count))
    return codes[::-1] if layout == "msb" else codes
