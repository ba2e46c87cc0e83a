"""Which kernels turn one format into another under a rule: the choice is made here once and kept.

A plan is a row of stages. Every stage reads one flat array and writes the next; floats travel as unsigned bit patterns,
integers as themselves. Rounding happens in one stage only: what comes before it is exact, or rounds to odd with enough
bits to spare that the last rounding cannot tell the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np

from . import exact, tables
from .formats import BoolFormat, FloatFormat, Format, IntFormat, TaperedFormat, floor_log2, format
from .kernels import decode as decoding
from .kernels import encode as encoding
from .rounding import NanPolicy, Negative, Overflow, Rounding, Rule

__all__ = ["Plan", "decode_plan", "encode_plan"]

Array = np.ndarray[Any, Any]
Run = Callable[[Array, Array, int, Array], object]

_F16, _BF16, _F32, _F64 = (cast(FloatFormat, format(n)) for n in ("float16", "bfloat16", "float32", "float64"))

_BLOCK = 1 << 17
_NOTHING = np.empty(0, np.uint32)
_TO_ODD = Rule(rounding=Rounding.odd, overflow=Overflow.saturate_finite)

#: Floats that the kernels can read as upper and lower halves: lanes and fraction bits of the upper half.
_HALVES: dict[Format, tuple[np.dtype[Any], int]] = {_F32: (np.dtype(np.uint16), 7), _F64: (np.dtype(np.uint32), 20)}

#: Rounding modes for the kernels: nearest, t_lsb, t_sign, t_const (see `kernels.encode`).
_MODES: dict[Rounding, tuple[int, int, int, int]] = {
    Rounding.nearest_even: (1, 1, 0, 0),
    Rounding.nearest_odd: (1, 1, 0, 1),
    Rounding.nearest_away: (1, 0, 0, 1),
    Rounding.nearest_zero: (1, 0, 0, 0),
    Rounding.nearest_up: (1, 0, 1, 1),
    Rounding.nearest_down: (1, 0, 1, 0),
    Rounding.floor: (0, 0, 1, 0),
    Rounding.ceil: (0, 0, 1, 1),
    Rounding.trunc: (0, 0, 0, 0),
    Rounding.away: (0, 0, 0, 1),
    Rounding.odd: (0, 1, 0, 1),
}


@dataclass(frozen=True)
class Plan:
    """Stages with the dtype that each writes; `run` of a stage takes (source, destination, start, random bits)."""

    stages: tuple[tuple[Run, np.dtype[Any]], ...]

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.stages + other.stages)


def bits_dtype(fmt: Format) -> np.dtype[Any]:
    """Return the dtype in which a plan passes values of `fmt`: bit patterns for floats, integers as they are."""
    if isinstance(fmt, IntFormat):
        return np.dtype(f"{'i' if fmt.signed else 'u'}{fmt.code_dtype.itemsize}")
    return fmt.code_dtype


@lru_cache(maxsize=512)
def encode_plan(source: Format, target: Format, rule: Rule) -> Plan:
    """Return the stages from values of `source` (a NumPy number format) to codes of `target`."""
    exact.check_rule(rule, target)
    if isinstance(target, BoolFormat):
        return _plan((_truth(source), target.code_dtype))
    if isinstance(source, BoolFormat):
        source = format("uint8")
    if isinstance(source, IntFormat):
        return _from_int(source, target, rule)
    assert isinstance(source, FloatFormat)
    if rule.rounding is Rounding.hybrid and source.name not in ("float16", "bfloat16", "float32"):
        exact.encode(1.0, target, rule, source=source)  # raises: hybrid is not defined for this source
    return _from_float(source, target, rule)


def _plan(*stages: tuple[Run, Any]) -> Plan:
    return Plan(tuple((run, np.dtype(dtype)) for run, dtype in stages))


def _stage(kernel: Callable[..., object], *args: object) -> Run:
    """Make a stage of a kernel that needs neither the position nor random bits."""
    return lambda src, dst, _start, _random: kernel(src, dst, *args)


# --- sources ----------------------------------------------------------------------------------------------------------


def _truth(source: Format) -> Run:
    if isinstance(source, FloatFormat):
        mask = source.code_dtype.type((1 << source.magnitude_bits) - 1)
        return lambda src, dst, _start, _random: np.not_equal(src & mask, 0, out=dst.view(np.bool_))
    return lambda src, dst, _start, _random: np.not_equal(src, 0, out=dst.view(np.bool_))


def _from_int(source: IntFormat, target: Format, rule: Rule) -> Plan:
    rule = replace(rule, flush_inputs=False)
    if isinstance(target, IntFormat):
        from .kernels import integer

        parameters = integer.narrow_parameters(
            bits_dtype(source),
            target.code_dtype,
            int(target.min),
            int(target.max),
            int(rule.overflow is Overflow.wrap),
            (1 << target.bits) - 1,
        )
        return _plan((_stage(integer.narrow_int, *parameters), target.code_dtype))
    if source.bits == 8 and target.bits <= 16 and rule.rounding is not Rounding.stochastic:
        table = _every_byte(source, target, rule)
        if target.bits > 8:
            return _plan((_stage(_by_pattern, table), target.code_dtype))
        pairs = (table[None, :] | table[:, None].astype(np.uint16) << 8).reshape(-1)
        return _plan((_stage(_by_pairs, table, pairs), target.code_dtype))
    if source.bits <= 16:
        widen = _plan((lambda src, dst, _start, _random: np.copyto(dst.view(np.float32), src), np.uint32))
        return widen + _from_float(_F32, target, rule)
    if source.bits <= 32 and rule.rounding is not Rounding.stochastic and getattr(target, "mantissa_bits", 3) <= 21:
        from .kernels import integer

        odd = _stage(integer.int_to_float_odd, integer.odd_parameters(np.uint32))
        return _plan((odd, np.uint32)) + _from_float(_F32, target, rule)
    if source.bits <= 32:
        widen = _plan((lambda src, dst, _start, _random: np.copyto(dst.view(np.float64), src), np.uint64))
        return widen + _from_float(_F64, target, rule)
    # 64 bits: rounded to odd at 53 bits first. The final rounding needs two bits fewer, stochastic rounding 33.
    if target is _F64 and rule.rounding in _MODES:
        return _plan((_stage(_int_to_double, *_MODES[rule.rounding]), target.code_dtype))
    spare = 52 - getattr(target, "mantissa_bits", 3)
    if spare < (33 if rule.rounding is Rounding.stochastic else 2):
        return _plan((_exactly(source, target, rule), target.code_dtype))
    from .kernels import integer

    odd = _stage(integer.int_to_float_odd, integer.odd_parameters(np.uint64))
    return _plan((odd, np.uint64)) + _from_float(_F64, target, rule)


def _int_to_double(src: Array, dst: Array, nearest: int, t_lsb: int, t_sign: int, t_const: int) -> None:
    """Round 64-bit integers to the 53 bits of float64: at most 11 bits are dropped."""
    negative = src < 0
    magnitude = np.where(negative, -src, src).astype(np.uint64)
    # The exponent of the upper bits, which float64 holds exactly, counts the bits of the whole.
    dropped = np.maximum(np.frexp((magnitude >> np.uint64(11)).astype(np.float64))[1] + 11 - 53, 0)
    shift = dropped.astype(np.uint64)
    kept = magnitude >> shift
    rest = magnitude - (kept << shift)
    half = (np.uint64(1) << shift) >> np.uint64(1)
    t = ((kept & np.uint64(t_lsb)) ^ (negative & t_sign).astype(np.uint64) ^ np.uint64(t_const)).astype(np.bool_)
    up = (rest > half) | ((rest == half) & t) if nearest else t
    kept += up & (rest != 0)
    values = dst.view(np.float64)
    np.ldexp(kept.astype(np.float64), dropped, out=values)
    np.negative(values, out=values, where=negative)


def _every_byte(source: IntFormat, target: Format, rule: Rule) -> Array:
    """Return the codes of all 8-bit integers in `target`, by byte."""
    numbers = range(256) if not source.signed else [*range(128), *range(-128, 0)]
    return np.array([exact.encode(n, target, rule, source=source) for n in numbers], target.code_dtype)


def _widen(source: FloatFormat) -> tuple[Plan, FloatFormat]:
    """Return the exact step to the next wider float."""
    if source is _F16:
        return _plan((_half_to_float, np.uint32)), _F32
    if source is _BF16:
        return _plan((_stage(decoding.bfloat_to_float), np.uint32)), _F32
    return _plan((_float_to_double, np.uint64)), _F64


def _half_to_float(src: Array, dst: Array, _start: int, _random: Array) -> None:
    decoding.half_to_float(src, dst.view(np.float32))


def _float_to_double(src: Array, dst: Array, _start: int, _random: Array) -> None:
    with np.errstate(invalid="ignore"):  # signalling NaNs
        np.copyto(dst.view(np.float64), src.view(np.float32))


def _flush(source: FloatFormat) -> Plan:
    """Return the stage that turns subnormal patterns into zeros of their sign."""
    sign = source.code_dtype.type(1 << source.magnitude_bits)
    exponent = source.code_dtype.type(source.inf_magnitude)

    def run(src: Array, dst: Array, _start: int, _random: Array) -> None:
        np.copyto(dst, np.where(src & exponent, src, src & sign))

    return _plan((run, source.code_dtype))


def _exactly(source: Format, target: Format, rule: Rule) -> Run:
    """Make a stage that asks `exact` once per distinct value: for the rare pairs that no kernel serves."""

    def run(src: Array, dst: Array, start: int, random: Array) -> None:
        if rule.rounding is Rounding.stochastic:
            bits = random if random.size else _random_bits(rule.seed, start, src.size)
            pairs = zip(src.tolist(), bits.tolist())
            dst[:] = [exact.encode(_value(source, v), target, rule, r, source) for v, r in pairs]
            return
        distinct, inverse = np.unique(src, return_inverse=True)
        codes = [exact.encode(_value(source, v), target, rule, source=source) for v in distinct.tolist()]
        dst[:] = np.array(codes, dst.dtype)[inverse]

    return run


def _random_bits(seed: int, start: int, size: int) -> Array:
    from .kernels import stochastic

    bits = np.empty(size, np.uint32)
    stochastic.random_bits(np.uint64(seed), start, bits)
    return bits


def _value(source: Format, item: int) -> Any:
    return item if isinstance(source, IntFormat) else source.value(item)


# --- targets ----------------------------------------------------------------------------------------------------------


def _from_float(source: FloatFormat, target: Format, rule: Rule) -> Plan:
    steps, at = Plan(()), source
    if rule.flush_inputs and not _takes(at, target, rule):
        steps, rule = _flush(source), replace(rule, flush_inputs=False)
    while not _takes(at, target, rule):
        if at is _F64 and _survives_float32(target, rule):
            steps, at = steps + _ieee(at, _F32, _TO_ODD), _F32
            continue
        if at is _F64:
            return steps + _plan((_exactly(at, target, rule), target.code_dtype))
        step, at = _widen(at)
        steps += step
    return steps + _last(at, target, rule)


def _takes(at: FloatFormat, target: Format, rule: Rule) -> bool:
    """Whether a last stage exists that reads `at`."""
    if isinstance(target, IntFormat):
        return target.bits <= (at.bits if rule.rounding is not Rounding.stochastic else at.bits * (at is _F64))
    assert isinstance(target, (FloatFormat, TaperedFormat))
    if rule.rounding is Rounding.hybrid:
        return at in (_F16, _F32)
    if rule.rounding is Rounding.stochastic:
        return _same_grid(at, target) and (target.has_zero or target.bits <= 8)
    if _by_table(target):
        return tables.sticky_shift(target, at) is not None
    return target.has_zero and _same_grid(at, target)


def _same_grid(at: FloatFormat, target: FloatFormat | TaperedFormat) -> bool:
    """Whether every value of `target` is one of `at`, and its normal ones are normal there."""
    fraction = target.mantissa_bits if isinstance(target, FloatFormat) else 3
    lowest = target.min_exponent if isinstance(target, FloatFormat) else floor_log2(target.min_subnormal)
    return fraction <= at.mantissa_bits and lowest >= at.min_exponent and target.max <= at.max


def _survives_float32(target: Format, rule: Rule) -> bool:
    """Whether float64 may be rounded to odd in float32 first, for a table that reads only float32."""
    return (
        isinstance(target, (FloatFormat, TaperedFormat))
        and _by_table(target)
        and tables.sticky_shift(target, _F32) is not None
        and 4 * target.max <= _F32.max  # so that the largest float32 still lies beyond the range
        and rule.rounding is not Rounding.stochastic
    )


def _by_table(target: FloatFormat | TaperedFormat) -> bool:
    """Whether encoding goes by table: no zero, or no arithmetic order of codes."""
    return isinstance(target, TaperedFormat) or (not target.zero and target.bits <= 8)


def _last(at: FloatFormat, target: Format, rule: Rule) -> Plan:
    lenient = replace(
        rule,
        overflow=Overflow.infinity if rule.overflow is Overflow.raise_ else rule.overflow,
        nan=NanPolicy.keep if rule.nan is NanPolicy.raise_ else rule.nan,
    )
    if isinstance(target, IntFormat):
        return _to_int(at, target, lenient)
    assert isinstance(target, (FloatFormat, TaperedFormat))
    if rule.rounding is Rounding.stochastic and target == _F64:  # holds every value of `at`: nothing is rounded
        rule, lenient = (replace(r, rounding=Rounding.trunc, seed=0) for r in (rule, lenient))
    if rule.rounding is Rounding.hybrid:
        assert isinstance(target, TaperedFormat)
        if at is _F16:
            run = _stage(_by_pattern, tables.every_code(target, lenient, at))
        else:
            run = _stage(_hybrid, tables.hybrid_table(target, lenient))
        return _plan((run, target.code_dtype))
    before = Plan(())
    if not target.signed and rule.negative is Negative.magnitude:
        before = _plan((_magnitude(at), at.code_dtype))
    if rule.rounding is Rounding.stochastic:
        return before + _stochastic(at, target, lenient)
    if _by_table(target) and not _by_arithmetic(at, target):
        shift = tables.sticky_shift(target, at)
        assert shift is not None
        table = tables.sticky_table(target, lenient, at, shift)
        run = _stage(encoding.encode_sticky, table, shift) if shift else _stage(_by_pattern, table)
        return before + _plan((run, target.code_dtype))
    assert isinstance(target, FloatFormat)
    plan = _ieee(at, target, lenient)
    if not target.zero:
        shift = tables.sticky_shift(target, at)
        assert shift is not None
        table = tables.sticky_table(target, lenient, at, shift)
        limit = at.code_dtype.type(exact.encode(2 * target.min_normal, at))
        run = _stage(_then_below, plan.stages[0][0], limit, table, shift)
        plan = _plan((run, target.code_dtype))
    return before + plan


def _by_arithmetic(at: FloatFormat, target: FloatFormat | TaperedFormat) -> bool:
    """Whether a format without zero may be encoded by arithmetic, and by table in its lowest binade only."""
    narrow = isinstance(target, FloatFormat) and target.mantissa_bits < _HALVES[_F32][1]
    return narrow and at is _F32 and 2 * target.min_normal >= _F32.min_normal and target.max <= _F32.max


def _then_below(src: Array, dst: Array, encode: Run, limit: Any, table: Array, shift: int) -> None:
    for start in range(0, src.size, _BLOCK):  # the second pass finds the block in the cache
        part, out = src[start : start + _BLOCK], dst[start : start + _BLOCK]
        if encode(part, out, 0, _NOTHING):
            encoding.replace_below(part, out, limit, table, shift)


def _magnitude(at: FloatFormat) -> Run:
    mask = at.code_dtype.type((1 << at.magnitude_bits) - 1)
    return lambda src, dst, _start, _random: np.bitwise_and(src, mask, out=dst)


def _results(target: FloatFormat | TaperedFormat | IntFormat, rule: Rule, source: FloatFormat) -> dict[str, int]:
    """Codes of what is not a finite value in range, asked from the specification."""
    plain = replace(rule, rounding=Rounding.nearest_away if rule.rounding is Rounding.hybrid else rule.rounding)
    beyond = 4 * max(target.max, -target.min)

    def code(value: Any) -> int:
        return exact.encode(value, target, plain, source=source)

    return {
        "over_pos": code(beyond),
        "over_neg": code(-beyond),
        "inf_pos": code(float("inf")),
        "inf_neg": code(-float("inf")),
        "nan_pos": code(float("nan")),
        "nan_neg": code(-float("nan")),
    }


def _ieee(at: FloatFormat, target: FloatFormat, rule: Rule) -> Plan:
    results = _results(target, rule, at)
    codes = np.array([results[n] for n in ("inf_pos", "inf_neg", "nan_pos", "nan_neg")], at.code_dtype)
    quiet = not any(target.is_nan(c) and not c & 0x200 for c in codes.tolist())
    if target is _F16 and at is _F32 and rule.rounding is Rounding.nearest_even and quiet and not _flushes(rule):
        saturate = int(rule.overflow in (Overflow.saturate, Overflow.saturate_finite))
        codes = codes.astype(np.uint16)
        return _plan((_stage(encoding.encode_half, saturate, codes), np.uint16))
    lanes, fraction, narrow = at.code_dtype, at.mantissa_bits, False
    if at in _HALVES and (target.mantissa_bits < _HALVES[at][1] or target is _BF16):
        lanes, fraction, narrow = (*_HALVES[at], True)
    nearest, t_lsb, t_sign, t_const = _MODES[rule.rounding]
    flush_below = min(1 << target.mantissa_bits, target.max_code + 1) if rule.flush_outputs else 0
    parameters = encoding.ieee_parameters(
        lanes,
        fraction_bits=fraction,
        drop=fraction - target.mantissa_bits,
        emin=target.min_exponent + (not target.zero) + at.bias,
        nearest=nearest,
        t_lsb=t_lsb,
        t_sign=t_sign,
        t_const=t_const,
        max_code=target.max_code,
        max_code_neg=target.max_code if target.signed else max(flush_below - 1, 0),
        sign_bit=1 << target.magnitude_bits if target.signed else 0,
        zero_neg=target.with_sign(0, True),
        flush_below=flush_below,
        daz=int(rule.flush_inputs),
        below=int(not target.zero),
        **results,
    )
    kernel = _narrow if narrow else encoding.encode_ieee
    return _plan((_stage(kernel, parameters), target.code_dtype))


def _by_pattern(src: Array, dst: Array, table: Array) -> None:
    decoding.decode_table(src.view(f"u{src.itemsize}"), table, dst)


def _by_pairs(src: Array, dst: Array, table: Array, pairs: Array) -> None:
    """Look up two bytes at a time: `pairs` has the codes of both."""
    even = src.size & ~1
    decoding.decode_table(src[:even].view(np.uint16), pairs, dst[:even].view(np.uint16))
    dst[even:] = table[src[even:].view(np.uint8)]


def _hybrid(src: Array, dst: Array, table: Array) -> None:
    encoding.encode_hybrid32(src.view(np.uint16), dst, table)


def _narrow(src: Array, dst: Array, parameters: Array) -> object:
    return encoding.encode_narrow(src.view(parameters.dtype), dst, parameters)


def _flushes(rule: Rule) -> bool:
    return rule.flush_inputs or rule.flush_outputs


def _stochastic(at: FloatFormat, target: FloatFormat | TaperedFormat, rule: Rule) -> Plan:
    from .kernels import stochastic

    shift, base, codes, top = tables.regime_tables(target, at)
    results = _results(target, rule, at)
    flush_below = _rank_of_min_normal(target, codes, top) if rule.flush_outputs else 0
    parameters = stochastic.stochastic_parameters(
        fraction_bits=at.mantissa_bits,
        width=at.bits,
        max_rank=top,
        max_rank_neg=top if target.signed else max(flush_below - 1, 0),
        sign_bit=1 << target.magnitude_bits if target.signed else 0,
        zero_neg=target.with_sign(0, True) if target.has_zero else results["over_neg"],
        flush_below=flush_below,
        daz=int(rule.flush_inputs),
        **results,
    )
    seed = np.uint64(rule.seed)
    zeros = [exact.encode(zero, target, rule) for zero in (0.0, -0.0)]

    def run(src: Array, dst: Array, start: int, random: Array) -> None:
        stochastic.encode_stochastic(src, dst, shift, base, codes, parameters, seed, start, random)
        if not target.has_zero:
            for pattern, code in zip((0, 1 << at.magnitude_bits), zeros):
                dst[src == pattern] = code

    return _plan((run, target.code_dtype))


def _rank_of_min_normal(target: FloatFormat | TaperedFormat, codes: Array, top: int) -> int:
    binade = floor_log2(target.min_normal)
    q = target.quantum_exponent(binade)
    code = target.place(1 << (binade - q), q)
    if code is None:  # no normal values
        return top + 1
    return int(np.flatnonzero(codes == code)[0]) if codes.size else code


def _to_int(at: FloatFormat, target: IntFormat, rule: Rule) -> Plan:
    from .kernels import integer

    nearest, t_lsb, t_sign, t_const = _MODES.get(rule.rounding, (0, 0, 0, 0))
    results = _results(target, rule, at)
    parameters = integer.int_parameters(
        at.code_dtype,
        fraction_bits=at.mantissa_bits,
        bias=at.bias,
        nearest=nearest,
        t_lsb=t_lsb,
        t_sign=t_sign,
        t_const=t_const,
        lo_mag=-int(target.min),
        hi_mag=int(target.max),
        nan_code=results.pop("nan_pos"),
        wrap=int(rule.overflow is Overflow.wrap),
        mask=(1 << target.bits) - 1,
        daz=int(rule.flush_inputs),
        **{name: code for name, code in results.items() if name != "nan_neg"},
    )
    if rule.rounding is not Rounding.stochastic:
        return _plan((_stage(integer.encode_int, parameters), target.code_dtype))

    from .kernels import stochastic

    def run(src: Array, dst: Array, start: int, random: Array) -> None:
        stochastic.encode_int_stochastic(src, dst, parameters, np.uint64(rule.seed), start, random)

    return _plan((run, target.code_dtype))


# --- decoding ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def decode_plan(source: Format, target: Format) -> Plan:
    """Return the stages from codes of `source` to values of the NumPy number format `target`.

    What `target` cannot hold is rounded as NumPy's casts do: nearest even, Inf beyond the range.
    """
    if isinstance(target, BoolFormat):
        return _plan((_truth(source), target.code_dtype))
    if source is target:
        return _plan((_copy, target.code_dtype))
    if source.bits <= 8 or (source.bits <= 16 and source not in (_F16, _BF16)):
        table = tables.decode_table(source, target)
        return _plan((_stage(_look_up, table, source), target.code_dtype))
    if isinstance(source, IntFormat):
        first, *rest = encode_plan(_native(source), target, tables.AS_NUMPY).stages
        return Plan(((partial(_as_numbers, first[0], source), first[1]), *rest))
    if source in (_F16, _BF16, _F32, _F64):
        return _widened(source, target) or encode_plan(source, target, tables.AS_NUMPY)
    assert isinstance(source, FloatFormat)
    wide = _plan((_stage(_unpack, source), np.uint64))
    return wide if target is _F64 else wide + encode_plan(_F64, target, tables.AS_NUMPY)


def _widened(source: Format, target: Format) -> Plan | None:
    """Return the exact steps from a float to a wider one, or None."""
    plan, at = Plan(()), cast(FloatFormat, source)
    while at is not target:
        if at is _F64 or target not in (_F32, _F64):
            return None
        step, at = _widen(at)
        plan += step
    return plan


def _copy(src: Array, dst: Array, _start: int, _random: Array) -> None:
    np.copyto(dst, src.view(dst.dtype))


def _native(source: IntFormat) -> IntFormat:
    """Return the integer format that fills the storage of `source`."""
    return IntFormat("native", width=8 * source.code_dtype.itemsize, signed=source.signed)


def _as_numbers(run: Run, source: IntFormat, src: Array, dst: Array, start: int, random: Array) -> None:
    numbers = src.view(bits_dtype(source))
    spare = 8 * numbers.itemsize - source.bits
    if spare:
        check_codes(int(np.bitwise_or.reduce(src, initial=0)), source)
        numbers = numbers << spare >> spare  # extends the sign
    run(numbers, dst, start, random)


def _look_up(codes: Array, dst: Array, table: Array, source: Format) -> None:
    check_codes(decoding.decode_table(codes, table, dst), source)


def check_codes(seen: int, source: Format) -> None:
    """Raise `ValueError` if `seen`, the OR of all codes, has bits that the format lacks."""
    if seen >> source.bits:
        raise ValueError(
            f"codes: at least one is out of range for {source.name}: 0 to {(1 << source.bits) - 1:#x}"
        )


def _unpack(codes: Array, dst: Array, source: FloatFormat) -> None:
    """Decode a float of more than 16 bits into float64 patterns, field by field."""
    check_codes(int(np.bitwise_or.reduce(codes, initial=0)), source)
    magnitude = (codes & codes.dtype.type((1 << source.magnitude_bits) - 1)).astype(np.int64)
    fraction = magnitude & ((1 << source.mantissa_bits) - 1)
    exponent = magnitude >> source.mantissa_bits
    implicit = (exponent > 0) if source.zero else np.ones_like(exponent)
    significand = fraction + (implicit.astype(np.int64) << source.mantissa_bits)
    scale = np.maximum(exponent, int(source.zero)) - source.bias - source.mantissa_bits
    values = dst.view(np.float64)
    with np.errstate(over="ignore"):  # the codes of Inf and NaN
        np.ldexp(significand.astype(np.float64), scale, out=values)
    if source.inf_magnitude is not None:
        values[magnitude == source.inf_magnitude] = np.inf
    if source.nan == "exponent":
        values[magnitude > int(source.inf_magnitude or 0)] = np.nan
    elif source.nan_code is not None:
        values[magnitude == source.nan_code if source.nan == "ones" else codes == source.nan_code] = np.nan
    if source.signed:
        negative = codes >> source.magnitude_bits != 0
        np.copysign(values, np.where(negative & (source.nan_signed | ~np.isnan(values)), -1.0, 1.0), out=values)
