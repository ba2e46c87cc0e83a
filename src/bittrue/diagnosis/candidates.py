"""Rules that could have made a dump, as rows: a name, what it means, and how to compute the codes it expects.

What a target can do comes from its own rule book; the rules of the core, double rounding, a mistaken format and a
mistaken scale are tried for every target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from .. import exact
from ..codec import decode, encode
from ..formats import BoolFormat, ComplexFormat, FloatFormat, Format, IntFormat, TaperedFormat, format, formats
from ..rounding import NanPolicy, Negative, Overflow, Rounding, Rule
from .case import Case, Facts

__all__ = ["Candidate", "candidates", "fitted"]

Codes = np.ndarray[Any, Any]

#: Deterministic modes, the most usual first.
_MODES = (
    Rounding.nearest_even, Rounding.nearest_away, Rounding.trunc, Rounding.floor, Rounding.ceil, Rounding.away,
    Rounding.nearest_zero, Rounding.nearest_up, Rounding.nearest_down, Rounding.nearest_odd, Rounding.odd,
)  # fmt: skip
_USUAL = _MODES[:5]
_DETOUR = {"float32": 12, "tfloat32": 42}  # through float32: what software does with float64 and wide integers
_HYBRID_SOURCES = ("float32", "float16", "bfloat16")

_SAID: dict[Any, str] = {
    Overflow.saturate: "overflow and Inf give the largest value",
    Overflow.saturate_finite: "overflow gives the largest value, Inf stays",
    Overflow.infinity: "overflow gives Inf (NaN where there is none)",
    Overflow.ieee: "overflow as in IEEE 754",
    Overflow.wrap: "overflow keeps the low bits",
    NanPolicy.zero: "NaN gives 0",
    NanPolicy.max: "NaN gives the largest value",
}


@dataclass(frozen=True)
class Candidate:
    """One rule that could have been at work.

    Attributes
    ----------
    name, about : str
    make : callable
        Takes a `Case` and returns the codes it expects, of the shape of ``case.x``.
    prior : int
        The smaller, the sooner it is believed among rules that explain equally much.
    rule : Rule or None
        The core's rule, where there is one.
    own : bool
        Whether it is the target's own rule: elsewhere, a mistake has been made or another device was at work.
    """

    name: str
    about: str
    make: Callable[[Case], Codes]
    prior: int
    rule: Rule | None = None
    own: bool = False


def candidates(case: Case, known: Facts, target: str | None) -> Iterator[Candidate]:
    """Yield the candidates for a case."""
    if case.to.kind == "block":
        from .blocks import block_candidates

        yield from block_candidates(case, target)
        return
    if target is not None:
        yield from _of_target(case, target)
        if case.options.get("quant") is not None:
            return
    yield from _core(case, known, 20 if target else 0)
    yield from _added_half(case)
    yield from _double(case, known)
    yield from _biased(case)
    yield from _other_formats(case)
    if case.scaled:
        yield from _misscaled(case)


# --- the core's rules -------------------------------------------------------------------------------------------------


def _rules(case: Case, known: Facts) -> Iterator[Rule]:
    """Yield the rules that the input can tell apart, by distance from the default."""
    to, source = case.to, case.source
    modes = list(_MODES)
    if isinstance(to, TaperedFormat) and source.name in _HYBRID_SOURCES and not case.scaled:
        modes.append(Rounding.hybrid)
    overflows = [Overflow.saturate]
    if isinstance(to, IntFormat):
        overflows += [Overflow.wrap] if known.overflowing else []
    elif known.overflowing or known.infinite or (known.negative and not to.signed):
        overflows += [Overflow.saturate_finite, Overflow.infinity, Overflow.ieee]
    nans = [NanPolicy.keep]
    if known.nan:
        nans += [NanPolicy.zero, NanPolicy.max]
    flushes = [(False, False)]
    if isinstance(to, (FloatFormat, TaperedFormat)) and not case.scaled and to.has_zero:
        flushes += [(False, True)] if known.small else []
        flushes += [(True, False), (True, True)][: 2 if known.small else 1] if known.subnormal else []
    negatives = [Negative.overflow]
    if isinstance(to, FloatFormat) and not to.signed and known.negative:
        negatives.append(Negative.magnitude)
    for negative in negatives:
        for flush_inputs, flush_outputs in flushes:
            for nan in nans:
                for overflow in overflows:
                    for mode in modes:
                        yield Rule(mode, overflow, nan, flush_inputs, flush_outputs, negative)


def _core(case: Case, known: Facts, prior: int) -> Iterator[Candidate]:
    for k, rule in enumerate(_rules(case, known)):
        yield Candidate(_rule_name(rule), _rule_about(rule), _by_rule(rule), prior + (k > 0) + _distance(rule), rule)


def _distance(rule: Rule) -> int:
    """Count in how many respects a rule is unusual."""
    usual = Rule()
    fields = ("overflow", "nan", "flush_inputs", "flush_outputs", "negative")
    changes = sum(bool(getattr(rule, n) != getattr(usual, n)) for n in fields)
    return changes + (_MODES.index(rule.rounding) // 5 if rule.rounding in _MODES else 1)


def _rule_name(rule: Rule) -> str:
    parts = [rule.rounding.value]
    if rule.overflow is not Overflow.saturate:
        parts.append(f"overflow {rule.overflow.value}")
    if rule.nan is not NanPolicy.keep:
        parts.append(f"NaN {rule.nan.value}")
    if rule.flush_inputs:
        parts.append("subnormal inputs flushed")
    if rule.flush_outputs:
        parts.append("subnormal results flushed")
    if rule.negative is Negative.magnitude:
        parts.append("sign dropped")
    return ", ".join(parts)


def _rule_about(rule: Rule) -> str:
    parts = [f"one rounding, {rule.rounding.value}", _SAID[rule.overflow]]
    if rule.nan in _SAID:
        parts.append(_SAID[rule.nan])
    if rule.flush_inputs or rule.flush_outputs:
        parts.append("subnormals count as zero")
    return "; ".join(parts)


def _by_rule(rule: Rule) -> Callable[[Case], Codes]:
    return lambda case: encoded(case, case.to, rule)


def encoded(case: Case, f: Format, rule: Rule, x: Any = None, scale: Any = None) -> Codes:
    """Return the codes of a conversion by the core, with the case's scale and zero point unless others are given."""
    x = case.x if x is None else x
    scale = case.scale if scale is None else scale
    zero_point = case.zero_point
    if isinstance(f, TaperedFormat) and zero_point is None and x.dtype.kind == "f":
        if scale is not None:
            x = np.divide(x, np.asarray(scale, x.dtype))
        return _from_relative(np.ascontiguousarray(x), f, rule, case.source)
    if np.ndim(scale) == 0 and np.ndim(zero_point) == 0:
        return np.asarray(encode(x, f, rule=rule, scale=scale, zero_point=zero_point))
    flat = [None if v is None else np.broadcast_to(v, x.shape).reshape(-1) for v in (scale, zero_point)]
    return np.asarray(encode(x.reshape(-1), f, rule=rule, scale=flat[0], zero_point=flat[1])).reshape(x.shape)


def _from_relative(x: Codes, f: TaperedFormat, rule: Rule, source: Format) -> Codes:
    """Encode by the rule of the same mode that keeps Inf and NaN, and put in what the given one makes of specials.

    Tapered formats are encoded by tables, one per rule, which take long to compile; this needs one per mode.
    """
    relative = Rule(rule.rounding, Overflow.infinity)
    codes = np.asarray(encode(x, f, rule=relative))
    if rule == relative:
        return codes

    def put(where: Codes, value: Any) -> None:
        if where.any():
            for minus in (False, True):
                code = exact.encode(-value if minus else value, f, rule, source=_exact_source(source))
                codes[where & (np.signbit(x) == minus)] = code

    finite = np.isfinite(x)
    put(finite & ((codes & ((1 << f.magnitude_bits) - 1)) == f.inf_magnitude), Fraction(1 << 17))
    put(np.isinf(x), math.inf)
    put(np.isnan(x), math.nan)
    if rule.flush_outputs:
        codes = np.take(_flushed(f), codes)
    if rule.flush_inputs and isinstance(source, (FloatFormat, TaperedFormat)):
        codes[(np.abs(x) < float(source.min_normal)) & finite] = 0
    return codes


def _exact_source(source: Format) -> Format:
    """Return the source of a value that every format could hold; hybrid rounding wants one that it knows."""
    return source if source.name in _HYBRID_SOURCES else format("float32")


@lru_cache(maxsize=16)
def _flushed(f: TaperedFormat) -> Codes:
    """Return every code, subnormals as zero."""
    codes = np.arange(1 << f.bits).astype(f.storage)
    for code in codes.tolist():
        magnitude = code & ((1 << f.magnitude_bits) - 1)
        finite = magnitude != f.inf_magnitude and not f.is_nan(code)
        if magnitude and finite and f.magnitude_value(magnitude) < f.min_normal:
            codes[code] = f.with_sign(0, bool(code >> f.magnitude_bits))
    return codes


# --- other ways of rounding -------------------------------------------------------------------------------------------


def _added_half(case: Case) -> Iterator[Candidate]:
    """float32 to a format with its exponent: add half a unit to the bits, cut."""
    to, source = case.to, case.source
    if not (isinstance(to, FloatFormat) and source.name == "float32" and to.exponent_bits == 8 and to.signed):
        return
    drop = 23 - to.mantissa_bits
    if not 0 < drop < 23 or case.scaled:
        return

    def make(case: Case) -> Codes:
        bits = case.x.view(np.uint32).astype(np.uint64) + np.uint64(1 << (drop - 1))
        return np.asarray(((bits & np.uint64(0xFFFF_FFFF)) >> np.uint64(drop)).astype(to.code_dtype).view(to.storage))

    yield Candidate(
        f"adds {1 << (drop - 1):#x} to the bits and cuts",
        "ties go away from zero, and large NaNs run over into -0: the usual hand-written golden code",
        make,
        25,
    )


def _double(case: Case, known: Facts) -> Iterator[Candidate]:
    """Rounding through an intermediate type."""
    for middle in (format(n) for n in ("float32", "float16", "bfloat16", "tfloat32")):
        if middle in (case.source, case.to) or not _narrower(middle, case.source) or _holds(case.to, middle):
            continue
        for rule in _rules(case, known):
            if rule.rounding not in _USUAL or rule.flush_inputs or rule.flush_outputs:
                continue
            firsts = dict.fromkeys((Rounding.nearest_even, rule.rounding, Rounding.trunc))
            for first in firsts:
                yield Candidate(
                    f"through {middle.name} ({first.value}), then {_rule_name(rule)}",
                    f"rounded twice: to {middle.name}, then to {case.to.name}",
                    _through(middle, first, rule),
                    _DETOUR.get(middle.name, 40) + (first is not Rounding.nearest_even) * 4 + _distance(rule),
                    rule,
                )


def _through(middle: Format, first: Rounding, rule: Rule) -> Callable[[Case], Codes]:
    def make(case: Case) -> Codes:
        codes = encode(case.x, middle, rounding=first, overflow="infinity")
        return encoded(case, case.to, rule, decode(codes, middle, np.float32))

    return make


def _bits(f: Format) -> int:
    """Return the significand bits of a format's widest values."""
    if isinstance(f, (FloatFormat, TaperedFormat)):
        return getattr(f, "mantissa_bits", 3) + 1
    return f.bits


def _narrower(middle: Format, source: Format) -> bool:
    if isinstance(source, (IntFormat, BoolFormat)) and source.max > middle.max:
        return True
    return _bits(middle) < _bits(source)


def _holds(to: Format, middle: Format) -> bool:
    """Whether rounding to `middle` first leaves nothing to round for `to`."""
    return isinstance(to, FloatFormat) and isinstance(middle, FloatFormat) and (
        to.mantissa_bits >= middle.mantissa_bits and to.exponent_bits >= middle.exponent_bits
    )


def _biased(case: Case) -> Iterator[Candidate]:
    if not isinstance(case.to, (FloatFormat, TaperedFormat)):
        return
    for step, word in ((1, "large"), (-1, "small")):
        for mode in _USUAL:
            for overflow in (Overflow.saturate, Overflow.infinity):
                rule = Rule(mode, overflow)
                yield Candidate(
                    f"exponent bias off by one (results 2**{step:+d} too {word}), {_rule_name(rule)}",
                    f"every value is {'twice' if step > 0 else 'half'} what it should be",
                    _shifted(step, rule),
                    45 + _distance(rule),
                    rule,
                )


def _shifted(step: int, rule: Rule) -> Callable[[Case], Codes]:
    def make(case: Case) -> Codes:
        with np.errstate(invalid="ignore", over="ignore"):
            x = np.asarray(case.x)
            # Wide enough for every exponent; for tapered formats, whose range is small, float32 is.
            kind = np.float32 if x.dtype == np.float32 and isinstance(case.to, TaperedFormat) else np.float64
            return encoded(case, case.to, rule, np.ldexp(x.astype(kind), step).astype(kind))

    return make


def _other_formats(case: Case) -> Iterator[Candidate]:
    to = case.to
    if isinstance(to, (ComplexFormat, BoolFormat)):
        return
    for other in formats():
        if other.kind not in ("int", "float", "tapered") or other.bits != to.bits or other == to:
            continue
        if other.storage.itemsize != to.storage.itemsize:
            continue
        beyond = Overflow.wrap if other.kind == "int" else Overflow.infinity
        for mode in _USUAL:
            for overflow in (Overflow.saturate, beyond):
                rule = Rule(mode, overflow)
                yield Candidate(
                    f"codes of {other.name} instead of {to.name}, {_rule_name(rule)}",
                    f"the table of {other.name} was used",
                    _as_format(other, rule),
                    40 + _distance(rule),
                    rule,
                )


def _as_format(other: Format, rule: Rule) -> Callable[[Case], Codes]:
    def make(case: Case) -> Codes:
        given = replace(case, zero_point=None) if other.kind != "int" else case
        return encoded(given, other, rule).view(other.code_dtype).view(case.to.storage)

    return make


# --- scale and zero point ---------------------------------------------------------------------------------------------


def _misscaled(case: Case) -> Iterator[Candidate]:
    """Faults in scale and zero point, as rows of (name, change of scale, change of zero point)."""
    rows: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = []
    same = _same
    if case.scale is not None:
        rows += [
            ("scale ignored", lambda s: np.float32(1), same),
            ("multiplied by the scale instead of divided", lambda s: 1 / np.asarray(s, np.float64), same),
            ("scale twice as large", lambda s: np.multiply(s, 2), same),
            ("scale half as large", lambda s: np.divide(s, 2), same),
            ("scale cut to 10 fraction bits", _cut, same),
            ("scale rounded to half", lambda s: np.asarray(s).astype(np.float16).astype(np.float32), same),
            ("scale rounded to bfloat16", _to_bfloat16, same),
        ]
    if case.zero_point is not None:
        rows += [
            ("zero point ignored", same, lambda z: np.zeros_like(z)),
            ("zero point one too large", same, lambda z: np.add(z, 1)),
            ("zero point one too small", same, lambda z: np.subtract(z, 1)),
            ("zero point with the other sign", same, np.negative),
            ("zero point off by 128", same, lambda z: np.add(z, 128)),
            ("zero point off by -128", same, lambda z: np.subtract(z, 128)),
        ]
    elif isinstance(case.to, IntFormat):
        rows += [(f"zero point {z}", same, _constant(z)) for z in (128, -128, 1, -1)]
    for name, scale, zero in rows:
        for mode in _USUAL:
            rule = Rule(mode)
            yield Candidate(
                f"{name}, {_rule_name(rule)}",
                "the quantisation parameters are not those that were given",
                _with_parameters(scale, zero, rule),
                50 + _distance(rule),
                rule,
            )
    if case.scale is not None:
        for mode in _USUAL:
            yield Candidate(
                f"multiplied by the reciprocal of the scale, {mode.value}",
                "x * (1 / scale) in the type of the input: two roundings where division has one",
                _reciprocal(Rule(mode)),
                26 + _distance(Rule(mode)),
                Rule(mode),
            )


def _same(value: Any) -> Any:
    return value


def _constant(value: int) -> Callable[[Any], Any]:
    return lambda _given: np.int64(value)


def _cut(scale: Any) -> Any:
    return (np.asarray(scale, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _to_bfloat16(scale: Any) -> Any:
    return decode(encode(np.asarray(scale, np.float32), "bfloat16"), "bfloat16", np.float32)


def _with_parameters(scale: Callable[[Any], Any], zero: Callable[[Any], Any], rule: Rule) -> Callable[[Case], Codes]:
    def make(case: Case) -> Codes:
        s = None if case.scale is None else scale(case.scale)
        z = None if case.zero_point is None and zero is _same else zero(case.zero_point)
        return parametrised(case.x, case.to, rule, s, z)

    return make


def parametrised(x: Codes, f: Format, rule: Rule, scale: Any, zero_point: Any) -> Codes:
    """Return codes of round(x / scale) + zero_point in range, also for zero points that are no code of the format."""
    with np.errstate(all="ignore"):
        values = np.asarray(x) if scale is None else np.asarray(np.divide(x, np.asarray(scale, _working(x))))
    if zero_point is None or not isinstance(f, IntFormat):
        return np.asarray(encode(values, f, rule=rule))
    whole = np.asarray(encode(values, "int32", rounding=rule.rounding)).astype(np.int64) + np.asarray(zero_point)
    return np.asarray(encode(whole, f))


def _working(x: Codes) -> Any:
    """Return the dtype in which x is divided: its own, float32 for narrower ones and integers."""
    return x.dtype if x.dtype in (np.float32, np.float64) else np.float32


def _reciprocal(rule: Rule) -> Callable[[Case], Codes]:
    def make(case: Case) -> Codes:
        kind = _working(case.x)
        with np.errstate(all="ignore"):
            product = np.asarray(case.x).astype(kind) * (kind_of(kind, 1) / np.asarray(case.scale, kind))
        return parametrised(product, case.to, rule, None, case.zero_point)

    return make


def kind_of(kind: Any, value: float) -> Any:
    """Return a number of a dtype."""
    return np.dtype(kind).type(value)


def fitted(case: Case, actual: Codes) -> Iterator[Candidate]:
    """Yield a scale that explains the codes, where there is one: every code allows an interval, their intersection all.

    Only for numbers (no scale per channel), nearest rounding, and formats up to 16 bits.
    """
    f = case.to
    if f.bits > 16 or f.kind not in ("int", "float", "tapered") or np.ndim(case.scale) or np.ndim(case.zero_point):
        return
    with np.errstate(invalid="ignore", over="ignore"):
        x = np.asarray(case.x).astype(np.float64).reshape(-1)
    codes = actual.reshape(-1)
    offsets = [0 if case.zero_point is None else int(case.zero_point)]
    if isinstance(f, IntFormat):
        offsets += [z for z in (_zero_point(x, codes, f),) if z is not None and z not in offsets]
    for z in offsets:
        if isinstance(f, IntFormat) and not float(f.min) <= z <= float(f.max):
            continue
        interval = _interval(x, codes, f, z)
        if interval is None:
            continue
        scale = _simplest(*interval)
        given = 1.0 if case.scale is None else float(case.scale)
        if interval[0] <= given <= interval[1] and z == offsets[0]:
            continue
        about = f"any scale from {interval[0]:.9g} to {interval[1]:.9g} explains the codes; given: {given:.9g}"
        what = f"scale {scale:.9g} instead of {given:.9g}"
        if z != offsets[0]:
            what += f", zero point {z} instead of {offsets[0]}"
        zero = z if z or case.zero_point is not None else None

        def make(case: Case, scale: float = scale, zero: int | None = zero) -> Codes:
            return parametrised(np.asarray(case.x).astype(np.float64), case.to, Rule(), np.float64(scale), zero)

        yield Candidate(what, about, make, 52, Rule())


def _zero_point(x: Codes, codes: Codes, f: IntFormat) -> int | None:
    """Estimate the zero point from the unsaturated elements by a straight line."""
    q = decode(codes, f, np.float64)
    inside = np.isfinite(x) & (q > float(f.min)) & (q < float(f.max))
    if np.count_nonzero(inside) < 8 or np.ptp(x[inside]) == 0:
        return None
    slope, offset = map(float, np.polyfit(x[inside], q[inside], 1))
    return round(offset) if math.isfinite(offset) and abs(offset) < 2**31 and slope else None


def _interval(x: Codes, codes: Codes, f: Format, zero_point: int) -> tuple[float, float] | None:
    """Return the scales under which x / scale rounds to nearest to every code, or None."""
    table = np.asarray(decode(np.arange(1 << f.bits).astype(f.storage), f, np.float64))
    values = np.unique(table[np.isfinite(table)])
    q = np.asarray(decode(codes, f, np.float64))
    use = np.isfinite(x) & (x != 0) & np.isfinite(q) & (q > values[0]) & (q < values[-1])
    x, q = x[use], q[use]
    if x.size < 8:
        return None
    at = np.searchsorted(values, q)
    low, high = (values[at - 1] + values[at]) / 2 - zero_point, (values[at] + values[at + 1]) / 2 - zero_point
    low, high = np.where(x > 0, low, -high), np.where(x > 0, high, -low)  # limits of |x| / scale
    size = np.abs(x)
    if (high <= 0).any():
        return None
    least = float((size / high).max())
    positive = low > 0
    most = float((size[positive] / low[positive]).min()) if positive.any() else math.inf
    return (least, most) if least <= most < math.inf else None


def _simplest(low: float, high: float) -> float:
    """Return the number with the fewest decimal digits strictly inside an interval."""
    middle = (low + high) / 2
    shorter = (float(f"{middle:.{digits}g}") for digits in range(1, 17))
    return next((value for value in shorter if low < value < high), middle)


# --- targets ----------------------------------------------------------------------------------------------------------


def _of_target(case: Case, target: str) -> Iterator[Candidate]:
    from .targets import target_candidates

    yield from target_candidates(case, target)
