"""One number in one format: its code, its neighbours, what every rule makes of it and why."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from ..exact import encode, round_up
from ..formats import (
    BoolFormat,
    ComplexFormat,
    Field,
    FloatFormat,
    Format,
    IntFormat,
    TaperedFormat,
    Value,
    floor_log2,
    format,
)
from ..parse import parse_number
from ..rounding import NanPolicy, Negative, Overflow, Rounding, Rule
from .catalogue import code_text
from .numbers import as_json, decimal, special

__all__ = ["Decision", "NumberView", "Outcome", "category", "field_meaning", "parts_of", "read_code"]

_CODE = re.compile(r"0[xb][0-9a-f_]+", re.IGNORECASE)
_CERTAIN_DOWN, _CERTAIN_UP = 0, (1 << 32) - 1


@dataclass(frozen=True)
class Outcome:
    """What one rule makes of the number: a code, or why there is none."""

    name: str
    code: int | None
    note: str = ""


@dataclass(frozen=True)
class Decision:
    """What a rounding rule sees of a finite number.

    Attributes
    ----------
    kept : str
        The significand's bits that the format has room for, with its point (integers: none), as "1.010".
    exponent : int
        The kept bits times 2**exponent are the neighbour toward zero.
    round_bit, sticky : int
        The first bit that is dropped, and whether any of those below it is set.
    odd : bool
        Whether the neighbour toward zero is odd.
    negative : bool
    dropped : Fraction
        What is dropped, in ulps: 0 <= dropped < 1.
    """

    kept: str
    exponent: int
    round_bit: int
    sticky: int
    odd: bool
    negative: bool
    dropped: Fraction

    def up(self, mode: Rounding) -> bool:
        """Say whether the magnitude goes up (not for stochastic and hybrid rounding)."""
        return round_up(mode, self.odd, self.negative, self.dropped.numerator, self.dropped.denominator)

    def why(self, mode: Rounding) -> str:
        """Say in a few words what a mode decides, and on what ground.

        Examples
        --------
        >>> NumberView(format("bfloat16"), Fraction(13, 10)).decision.why(Rounding.nearest_even)
        'below half: stays'
        """
        if self.dropped == 0:
            return "nothing is dropped"
        if mode is Rounding.stochastic:
            return f"up with p = {decimal(self.dropped, 4)}"
        parity = "odd" if self.odd else "even"
        if mode in _NEAREST and (self.round_bit, self.sticky) != (1, 0):
            ground = "above half" if self.round_bit else "below half"
        else:
            ground = _GROUNDS[mode].format(parity=parity)
        return f"{ground}: {'up' if self.up(mode) else 'stays'}"


#: Modes that look at half an ulp, and the ground on which each mode (those: in a tie) decides.
_NEAREST = frozenset(m for m in Rounding if m.value.startswith("nearest_"))
_GROUNDS = {
    Rounding.nearest_even: "tie, kept bits {parity}",
    Rounding.nearest_odd: "tie, kept bits {parity}",
    Rounding.nearest_away: "tie, away from zero",
    Rounding.nearest_zero: "tie, toward zero",
    Rounding.nearest_up: "tie, toward +inf",
    Rounding.nearest_down: "tie, toward -inf",
    Rounding.floor: "toward -inf",
    Rounding.ceil: "toward +inf",
    Rounding.trunc: "toward zero",
    Rounding.away: "away from zero",
    Rounding.odd: "inexact, kept bits {parity}",
}
_KEPT_SHOWN = 72  # bits; integers far beyond every integer format are not written out


def read_code(text: str, f: Format) -> int | None:
    """Return the code that `text` writes (0x.., 0b..), None where it writes a value.

    Raises
    ------
    ValueError
        For a code that the format does not have.
    """
    plain = text.strip()
    if not _CODE.fullmatch(plain):
        return None
    try:
        return f.check(int(plain, 0))
    except ValueError as error:
        raise ValueError(f"{error}; a hexadecimal *value* has an exponent, as in {plain}p0") from None


def parts_of(text: str, f: Format) -> list[tuple[str, NumberView]]:
    """Read a value or a code and return what there is to see, under a label: complex formats have two parts.

    Raises
    ------
    ValueError
        For what is neither a number nor a code; for a complex number in a real format.

    Examples
    --------
    >>> [(label, view.code) for label, view in parts_of("1-2j", format("complex32"))]
    [('real', 15360), ('imaginary', 49152)]
    """
    code = read_code(text, f)
    if code is not None:
        if isinstance(f, ComplexFormat):
            halves = zip(("real", "imaginary"), f.split(code))
            return [(label, NumberView(f.part, f.part.value(half), half)) for label, half in halves]
        return [("", NumberView(f, f.value(code), code))]
    value = parse_number(text)
    if isinstance(f, ComplexFormat):
        pair = value if isinstance(value, tuple) else (value, Fraction(0))
        return [(label, NumberView(f.part, part)) for label, part in zip(("real", "imaginary"), pair)]
    if isinstance(value, tuple):
        raise ValueError(f"{text} is complex, which {f.name} cannot hold; take complex32 or complex64")
    return [("", NumberView(f, value))]


class NumberView:
    """One real number in one format.

    Parameters
    ----------
    f : Format
        Integer, bool, float or tapered.
    value : Fraction or float
    code : int, optional
        The code it comes from, where several have the value (NaN, bool). Default: rounded to nearest even.

    Attributes
    ----------
    code : int
    result : Fraction or float
        The value of the code.
    """

    def __init__(self, f: Format, value: Value, code: int | None = None) -> None:
        self.f, self.value = f, value
        self.is_nan = isinstance(value, float) and math.isnan(value)
        self.is_infinite = isinstance(value, float) and math.isinf(value)
        if code is None:
            default = Rule(overflow=Overflow.infinity if self.is_infinite and f.has_inf else Overflow.saturate)
            code = encode(value, f, default)
        self.code = code
        self.result = f.value(self.code)

    @cached_property
    def rules(self) -> list[Outcome]:
        """What every rounding mode gives."""
        return [self._under(mode.value, Rule(rounding=mode)) for mode in Rounding]

    @property
    def number(self) -> Fraction:
        """The finite value as a Fraction."""
        return Fraction(0) if isinstance(self.value, float) else self.value

    @property
    def representable(self) -> bool:
        """Whether the format has the value: then rounding has nothing to do."""
        if self.is_nan:
            return self.f.has_nan
        return bool(self.result == self.value)

    @cached_property
    def ulp(self) -> Fraction:
        """Distance of neighbours of the format at the value."""
        if isinstance(self.f, (FloatFormat, TaperedFormat)):
            size = abs(self.number) or self.f.min_subnormal
            return Fraction(2) ** self.f.quantum_exponent(floor_log2(size))
        return Fraction(1)

    def _under(self, name: str, rule: Rule) -> Outcome:
        if rule.rounding is Rounding.hybrid:
            return self._hybrid(name, rule)
        try:
            code = encode(self.value, self.f, rule, random=_CERTAIN_DOWN)
        except (ValueError, OverflowError) as error:
            return Outcome(name, None, f"raises {type(error).__name__}")
        if rule.rounding is not Rounding.stochastic:
            return Outcome(name, code)
        up = encode(self.value, self.f, rule, random=_CERTAIN_UP)
        if up == code:
            return Outcome(name, code)
        return Outcome(name, code, f"{code_text(self.f, up)} with p = {float(self._fraction_above()):.4g}")

    def _hybrid(self, name: str, rule: Rule) -> Outcome:
        """Hybrid rounding takes its threshold from the bits of a float32; another value becomes the nearest one."""
        if not isinstance(self.f, TaperedFormat):
            return Outcome(name, None, "hifloat8 only")
        near = _nearest_float32(self.value)
        code = encode(near, self.f, rule, source="float32")
        return Outcome(name, code, "" if self.is_nan or near == self.value else f"from float32 {decimal(near, 9)}")

    def _fraction_above(self) -> Fraction:
        """How far the magnitude lies above its lower neighbour, in ulps."""
        steps = abs(self.number) / self.ulp
        return steps - math.floor(steps)

    def overflows(self) -> Rule | None:
        """Return the rule under which the value leaves the range, None if none does."""
        if isinstance(self.f, BoolFormat) or self.is_nan:
            return None
        for mode in (Rounding.nearest_even, Rounding.away):
            rule = Rule(rounding=mode)
            try:
                encode(self.value, self.f, Rule(rounding=mode, overflow="raise"))  # type: ignore[arg-type]
            except OverflowError:
                return rule
            if self.is_infinite:
                return rule
        return None

    def alternatives(self) -> tuple[str, list[Outcome]]:
        """Return what the other rules than rounding give, where they matter, under a title."""
        if self.is_nan:
            return "what becomes of a NaN (nan=)", [self._under(p.value, Rule(nan=p)) for p in NanPolicy]
        below = isinstance(self.value, float) or self.value < 0
        if below and not self.f.signed and isinstance(self.f, FloatFormat) and math.copysign(1, self.value) < 0:
            found = [
                self._under(f"{n.value} / {o.value}", Rule(negative=n, overflow=o))
                for n in Negative
                for o in (Overflow.saturate, Overflow.infinity, Overflow.raise_)
            ]
            return f"{self.f.name} has no sign (negative= / overflow=)", found
        rule = self.overflows()
        if rule is None:
            return "", []
        outcomes = [
            self._under(o.value, Rule(rounding=rule.rounding, overflow=o))
            for o in Overflow
            if o is not Overflow.wrap or isinstance(self.f, IntFormat)
        ]
        return f"beyond the range (overflow=, with {rule.rounding.value})", outcomes

    def neighbours(self) -> tuple[int | None, int | None]:
        """Return the codes of the nearest other values below and above."""
        if self.is_nan or isinstance(self.f, BoolFormat):
            return None, None
        return self._next(Rounding.floor), self._next(Rounding.ceil)

    def _next(self, toward: Rounding) -> int | None:
        f: Any = self.f  # integers, floats and tapered formats all have limits
        up = toward is Rounding.ceil
        if self.is_infinite:
            inside = (self.value > 0) != up
            return encode(f.min if up else f.max, f) if inside else None
        tiny = f.min_subnormal / 4 if self.number != 0 else f.min_subnormal / 2
        beyond = self.number + (tiny if up else -tiny) if self.representable else self.number
        for overflow in (Overflow.ieee, Overflow.saturate):
            code = encode(beyond, f, Rule(rounding=toward, overflow=overflow))
            value = f.value(code)
            if value == value and value != self.number and (value > self.number) == up:  # the first: not NaN
                return code
        return None

    def category(self, code: int) -> str:
        """Return the class of a code in IEEE 754's words."""
        return category(self.f, code)

    @cached_property
    def decision(self) -> Decision | None:
        """What rounding decides on; None for NaN, infinities, zero, bool, and below the range of a format without zero.
        """
        f, magnitude = self.f, abs(self.number)
        if self.is_nan or self.is_infinite or magnitude == 0 or isinstance(f, BoolFormat):
            return None
        if not f.has_zero and magnitude < f.min_normal:
            return None
        q, digits = 0, 0
        if isinstance(f, (FloatFormat, TaperedFormat)):
            exponent = floor_log2(max(magnitude, f.min_subnormal if isinstance(f, TaperedFormat) else f.min_normal))
            q = f.quantum_exponent(exponent)
            digits = exponent - q
        steps, rest = divmod(magnitude / Fraction(2) ** q, 1)
        kept = f"{steps:0{digits + 1}b}" if steps.bit_length() <= _KEPT_SHOWN else f"1...({steps.bit_length()} bits)"
        place = f.place(steps, q) if isinstance(f, (FloatFormat, TaperedFormat)) else None
        return Decision(
            f"{kept[:-digits]}.{kept[-digits:]}" if digits else kept,
            q + digits,
            int(2 * rest >= 1),
            int(2 * rest % 1 != 0),
            bool((steps if place is None else place) & 1),
            self.number < 0,
            rest,
        )

    def why(self, mode: Rounding) -> str:
        """Say on what ground a mode takes the neighbour it takes; "" where there is nothing to decide."""
        if mode is Rounding.hybrid:
            return self._why_hybrid()
        if self.decision is None:
            return ""
        said = self.decision.why(mode)
        if not self._leaves(Rule(rounding=mode, overflow=Overflow.raise_)):
            return said
        if self.number < 0 and not self.f.signed:
            return "below the range: saturates"
        return f"{said}; beyond the range: saturates"

    def _leaves(self, rule: Rule) -> bool:
        try:
            encode(self.value, self.f, rule)
        except OverflowError:
            return True
        return False

    def _why_hybrid(self) -> str:
        """CAST_HYBRID: half to away for |E| <= 3, else the dropped bits against the float32's lowest ones."""
        if not isinstance(self.f, TaperedFormat) or self.decision is None:
            return ""
        if abs(floor_log2(abs(self.number))) <= 3:
            return f"|E| <= 3: {self.decision.why(Rounding.nearest_away)}"
        single = _nearest_float32(self.value)
        code = encode(single, self.f, Rule(rounding=Rounding.hybrid), source="float32")
        up = code != encode(single, self.f, Rule(rounding=Rounding.trunc))
        return f"|E| > 3: dropped bits {'>=' if up else '<'} low bits of float32: {'up' if up else 'stays'}"

    # --- records ------------------------------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        below, above = self.neighbours()
        title, others = self.alternatives()
        return {
            "value": as_json(self.value),
            "exact": self.representable,
            "result": {
                **self._entry(self.code),
                "class": self.category(self.code),
                "fields": [
                    {"name": field.name, "width": field.width, "bits": f"{field.value:0{field.width}b}"}
                    for field in self.f.fields(self.code)
                ],
            },
            "below": None if below is None else self._entry(below),
            "above": None if above is None else self._entry(above),
            "rounding": {o.name: self._outcome_dict(o) for o in self.rules},
            "other_rules": {"about": title, "outcomes": {o.name: self._outcome_dict(o) for o in others}},
        }

    def _entry(self, code: int) -> dict[str, Any]:
        return {"code": code_text(self.f, code), **as_json(self.f.value(code))}

    def _outcome_dict(self, outcome: Outcome) -> dict[str, Any]:
        entry: dict[str, Any] = {} if outcome.code is None else self._entry(outcome.code)
        error = self.error(outcome.code)
        if error is not None:
            entry["error_ulp"] = float(decimal(error))
        if outcome.note:
            entry["note"] = outcome.note
        return entry

    def error(self, code: int | None) -> Fraction | None:
        """Return result minus value in ulps, None where either is not finite."""
        if code is None or self.is_nan or self.is_infinite:
            return None
        result = self.f.value(code)
        if isinstance(result, float):
            if not math.isfinite(result):
                return None
            result = Fraction(0)
        return (result - self.number) / self.ulp


def _nearest_float32(value: Value) -> Value:
    single = format("float32")
    return single.value(encode(value, single, Rule(overflow=Overflow.infinity)))


def field_meaning(f: Format, field: Field, code: int) -> str:
    """Say what a sign or an exponent stands for in a code; "" for other fields.

    Examples
    --------
    >>> f = format("float8_e4m3fn")
    >>> [field_meaning(f, field, 0xC8) for field in f.fields(0xC8)]
    ['-', '2^2', '']
    """
    if field.name == "sign":
        return "-" if field.value else "+"
    if field.name != "exponent" or not isinstance(f, (FloatFormat, TaperedFormat)):
        return ""
    result = f.value(code)
    return "" if isinstance(result, float) or result == 0 else f"2^{floor_log2(max(abs(result), f.min_normal))}"


def category(f: Format, code: int) -> str:
    """Return the class of a code in IEEE 754's words.

    Examples
    --------
    >>> category(format("half"), 0x8001), category(format("half"), 0x7C00)
    ('subnormal', 'infinity')
    """
    value = f.value(code)
    if isinstance(value, float):
        named = special(value) or ""
        if "nan" in named:
            return "NaN"
        return f"{'negative ' if named[0] == '-' else ''}{'infinity' if 'inf' in named else 'zero'}"
    if value == 0:
        return "zero"
    if isinstance(f, (FloatFormat, TaperedFormat)):
        return "subnormal" if abs(value) < f.min_normal else "normal"
    return {"int": "integer", "bool": "truth value"}.get(f.kind, f.kind)
