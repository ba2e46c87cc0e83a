"""`bittrue show`: one number in one format, down to its bits, its neighbours and every rule's answer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..exact import encode
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
from ..kinds.block import BlockFormat
from ..parse import parse_number
from ..rounding import NanPolicy, Negative, Overflow, Rounding, Rule
from .catalogue import code_text, coloured_bits
from .numbers import as_json, decimal, exact, hex_float, power, short, special
from .output import COLOURS, console, print_json, table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show"]

_CODE = re.compile(r"0[xb][0-9a-f_]+", re.IGNORECASE)


@dataclass(frozen=True)
class Outcome:
    """What one rule makes of the number: a code, or why there is none."""

    name: str
    code: int | None
    note: str = ""


def show(text: str, name: str, target: str | None, source: str, as_json_text: bool) -> None:
    """Print everything about one value or code in one format; with a target, what each of its cast modes gives."""
    f = format(name)
    if isinstance(f, BlockFormat):
        if target is not None:
            raise ValueError(f"--target {target}: no product casts to the block format {f.name}")
        from .blocks import show_blocks

        show_blocks(text, f, as_json_text)
        return
    given = _read_code(text, f)
    if given is not None:
        parts = _code_parts(f, given)
    else:
        value = parse_number(text)
        if isinstance(value, tuple) and not isinstance(f, ComplexFormat):
            raise ValueError(f"{text} is complex, which {f.name} cannot hold; take complex32 or complex64")
        pair = value if isinstance(value, tuple) else (value, Fraction(0))
        parts = [("real", f.part, pair[0], None), ("imaginary", f.part, pair[1], None)] if isinstance(
            f, ComplexFormat
        ) else [("", f, pair[0], None)]
    if target is not None and isinstance(f, ComplexFormat):
        raise ValueError(f"--target {target}: {f.name} is cast part by part; show its parts in {f.part.name}")
    views = [(label, _View(part, v, code, target, source)) for label, part, v, code in parts]
    if as_json_text:
        found = [view.as_dict() for _, view in views]
        data = found[0] if len(found) == 1 else {"real": found[0], "imaginary": found[1]}
        print_json({"given": text, "format": f.name, **data})
        return
    screen = console()
    for i, (label, view) in enumerate(views):
        if i:
            screen.print()
        view.print(screen, f"{text} in {f.name}" + (f", {label} part ({view.f.name})" if label else ""))


def _read_code(text: str, f: Format) -> int | None:
    """Return the code that `text` writes (0x.., 0b..), None where it writes a value."""
    plain = text.strip()
    if not _CODE.fullmatch(plain):
        return None
    code = int(plain, 0)
    try:
        return f.check(code)
    except ValueError as error:
        raise ValueError(f"{error}; a hexadecimal *value* has an exponent, as in {plain}p0") from None


def _code_parts(f: Format, code: int) -> list[tuple[str, Format, Value, int | None]]:
    if isinstance(f, ComplexFormat):
        real, imag = f.split(code)
        return [("real", f.part, f.part.value(real), real), ("imaginary", f.part, f.part.value(imag), imag)]
    return [("", f, f.value(code), code)]


class _View:
    """One real number in one format."""

    def __init__(self, f: Format, value: Value, code: int | None, target: str | None, source: str) -> None:
        self.f, self.value = f, value
        self.is_nan = isinstance(value, float) and math.isnan(value)
        self.is_infinite = isinstance(value, float) and math.isinf(value)
        self.rules = [self._under(mode.value, Rule(rounding=mode)) for mode in Rounding]
        if code is None:
            default = Rule(overflow=Overflow.infinity if self.is_infinite and f.has_inf else Overflow.saturate)
            code = encode(value, f, default)
        self.code = code
        self.result = f.value(self.code)
        self.casts: dict[str, Any] = {}
        if target is not None:
            from .rules import cast_under_every_mode

            self.casts = cast_under_every_mode(value, f, target, source)

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

    @property
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
        single = format("float32")
        near = single.value(encode(self.value, single, Rule(overflow=Overflow.infinity)))
        code = encode(near, self.f, rule, source=single)
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
        f, value = self.f, self.f.value(code)
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

    # --- faces --------------------------------------------------------------------------------------------------------

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
            **({"target": self._casts_dict()} if self.casts else {}),
        }

    def _casts_dict(self) -> dict[str, Any]:
        from .rules import target_dict

        return target_dict(self.casts, self.f)

    def _entry(self, code: int) -> dict[str, Any]:
        return {"code": code_text(self.f, code), **as_json(self.f.value(code))}

    def _outcome_dict(self, outcome: Outcome) -> dict[str, Any]:
        entry: dict[str, Any] = {} if outcome.code is None else self._entry(outcome.code)
        error = self._error(outcome.code)
        if error is not None:
            entry["error_ulp"] = float(decimal(error))
        if outcome.note:
            entry["note"] = outcome.note
        return entry

    def _error(self, code: int | None) -> Fraction | None:
        """Return result minus value in ulps, None where either is not finite."""
        if code is None or self.is_nan or self.is_infinite:
            return None
        result = self.f.value(code)
        if isinstance(result, float):
            if not math.isfinite(result):
                return None
            result = Fraction(0)
        return (result - self.number) / self.ulp

    def print(self, screen: Console, title: str) -> None:
        """Write it for people."""
        screen.print(title, style="bold")
        screen.print()
        self._print_result(screen)
        screen.print()
        if self.casts:
            self._print_casts(screen)
            return
        if not self.is_nan and not self.is_infinite:
            self._print_rules(screen)
        about, others = self.alternatives()
        if others:
            screen.print(f"{about}:")
            self._print_outcomes(screen, "rule", others, errors=False)
            screen.print()

    def _print_result(self, screen: Console) -> None:
        from rich.text import Text

        grid = table("", "", show_header=False, padding=(0, 2, 0, 0))
        grid.columns[1].no_wrap, grid.columns[1].overflow = False, "fold"
        f, code = self.f, self.code
        if not self.representable:
            grid.add_row("given", _in_full(self.value, f))
        grid.add_row("code" if self.representable else "nearest", code_text(f, code))
        grid.add_row("bits", coloured_bits(f, code))
        names = Text("   ").join(
            Text(_field_text(f, field, code), style=COLOURS.get(field.name, "")) for field in f.fields(code)
        )
        grid.add_row("fields", names)
        grid.add_row("value", _in_full(self.result, f))
        error = self._error(code)
        if error:
            grid.add_row("error", f"{decimal(error, 4)} ulp (an ulp is {power(self.ulp)} here)")
        grid.add_row("class", self.category(code))
        for label, neighbour in zip(("below", "above"), self.neighbours()):
            entry = Text("-")
            if neighbour is not None:
                entry = Text(f"{code_text(f, neighbour)}   ")
                if f.bits <= _BITS_IN_TABLES:
                    entry.append_text(coloured_bits(f, neighbour))
                    entry.append("   ")
                entry.append(short(f.value(neighbour), 24, 17))
            grid.add_row(label, entry)
        screen.print(grid)

    def _print_casts(self, screen: Console) -> None:
        screen.print(self.casts["title"])
        if exact(self.casts["given"]) != exact(self.value):
            screen.print(f"given as {self.casts['source']} {exact(self.casts['given'])}")
        screen.print()
        outcomes = [Outcome(entry["mode"], entry["code"], entry["effect"]) for entry in self.casts["modes"]]
        self._print_outcomes(screen, "mode", outcomes, errors=True)
        screen.print()
        for note in self.casts["notes"]:
            screen.print(note)

    def _print_rules(self, screen: Console) -> None:
        every = [o for o in self.rules if o.code is not None]
        others = [o for o in every if o.code != self.code or (o.name == "stochastic" and o.note)]
        if not others or [o.name for o in others] == ["hybrid"]:
            reason = "The value is representable: every" if self.representable else "Every"
            screen.print(f"{reason} rounding mode{' but hybrid' * bool(others)} gives this code.\n")
            if others:
                self._print_outcomes(screen, "rounding", others, errors=True)
                screen.print()
            return
        self._print_outcomes(screen, "rounding", every, errors=True)
        if len(every) < len(self.rules):
            screen.print("hybrid                          defined for hifloat8 only", style="dim")
        screen.print()

    def _print_outcomes(self, screen: Console, head: str, outcomes: Iterable[Outcome], errors: bool) -> None:
        with_bits = self.f.bits <= _BITS_IN_TABLES
        columns = [head, "code", *["bits"] * with_bits, "value", *["error (ulp)"] * errors, ""]
        rows = table(*columns, right=("value", "error (ulp)"), padding=(0, 2, 0, 0))
        rows.columns[-1].no_wrap = False
        for o in outcomes:
            if o.code is None:
                rows.add_row(o.name, "-", *[""] * (len(columns) - 3), o.note)
                continue
            error = self._error(o.code)
            rows.add_row(
                o.name,
                code_text(self.f, o.code),
                *[coloured_bits(self.f, o.code)] * with_bits,
                short(self.f.value(o.code), 17, 9),
                *["" if error is None else decimal(error, 4)] * errors,
                o.note,
            )
        screen.print(rows)


_CERTAIN_DOWN, _CERTAIN_UP = 0, (1 << 32) - 1
_BITS_IN_TABLES = 16  # wider codes are drawn once, not in every row
_FULL_WIDTH = 60


def _in_full(value: Value, f: Format) -> str:
    """Return decimal, powers of two and hexadecimal side by side, each once and none beyond a line."""
    full = exact(value)
    shown = full if len(full) <= _FULL_WIDTH else f"{decimal(value, 17)}.."
    more = [] if special(value) else [power(value), "" if f.kind in ("int", "bool") else hex_float(value)]
    return " = ".join(dict.fromkeys([shown, *[text for text in more if text and len(text) <= _FULL_WIDTH]]))


def _field_text(f: Format, field: Field, code: int) -> str:
    """Return a field's name, its bits (in hexadecimal where there are many) and what they stand for."""
    name = field.name.replace("significand", "fraction")
    bits = f"{field.value:0{field.width}b}" if field.width <= _BITS_IN_TABLES else f"{field.value:#x}"
    return f"{name} {bits}{_meaning(f, field, code)}"


def _meaning(f: Format, field: Field, code: int) -> str:
    if field.name == "sign":
        return " (-)" if field.value else " (+)"
    result = f.value(code)
    if field.name == "exponent" and isinstance(result, Fraction) and result != 0:
        assert isinstance(f, (FloatFormat, TaperedFormat))
        return f" (2^{floor_log2(max(abs(result), f.min_normal))})"
    return ""
