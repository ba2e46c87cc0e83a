"""One number in one or two formats."""

from __future__ import annotations

from fractions import Fraction

from ...formats import ComplexFormat, Format, Value
from ...inspection.catalogue import code_text
from ...inspection.number import NumberView, Outcome, field_meaning, parts_of, read_code
from ...inspection.numbers import decimal, exact, hex_float, power, special
from ...rounding import Rounding
from ..fields import FieldError, Fields, checked_size
from .common import DEFAULTS, VALUE_LIMIT, Record, about, entry, scalar, typed

__all__ = ["Parts", "carried", "number", "read_parts"]

_FULL = 40  # characters; longer decimals are also given shortened


def number(given: Fields) -> Record:
    """One number, given as a value or a code (with a bit flipped, if asked), in one format or in two."""
    f = scalar(given, "format", DEFAULTS["format"])
    name = "code" if "code" in given else "value"
    if "code" in given and "value" in given:
        raise FieldError("code", "a value and a code are given; give one of them")
    text = given.text(name, DEFAULTS["value"], VALUE_LIMIT)
    parts = read_parts(name, text, f)
    if "flip" in given:
        code = _whole_code(f, parts) ^ 1 << given.integer("flip", 0, f.bits - 1, 0)
        text = code_text(f, code)
        parts = read_parts("code", text, f)
    record = {"first": _in_format(f, text, parts)}
    if "second" in given:
        other = scalar(given, "second", "")
        record["second"] = _in_format(other, text, carried(other, parts))
    return record


Parts = list[tuple[str, NumberView]]


def read_parts(name: str, text: str, f: Format) -> Parts:
    """Read a value or a code from the field of that name."""
    try:
        if name == "code" and read_code(text, f) is None:
            raise ValueError(f"code={text[:40]!r} must be hexadecimal or binary, as 0x2e or 0b101110")
        if name == "value" and read_code(text, f) is not None:
            raise ValueError(f"{text[:40]} reads like a code: type it beside 'code', or a value as {text[:40]}p0")
        parts = parts_of(text, f)
    except ValueError as error:
        raise FieldError(name, str(error)) from None
    for _, view in parts:
        checked_size(name, view.value)
    return parts


def carried(f: Format, parts: Parts) -> Parts:
    """Return the same number in another format; a complex one has an imaginary part, if only zero."""
    if not isinstance(f, ComplexFormat):
        if len(parts) > 1:
            raise FieldError("second", f"{f.name} cannot hold a complex number; take complex32 or complex64")
        return [("", NumberView(f, parts[0][1].value))]
    values = [view.value for _, view in parts] + [Fraction(0)]
    return [(label, NumberView(f.part, value)) for label, value in zip(("real", "imaginary"), values)]


def _whole_code(f: Format, parts: Parts) -> int:
    width = f.part.bits if isinstance(f, ComplexFormat) else 0
    return sum(view.code << i * width for i, (_, view) in enumerate(parts))


def _in_format(f: Format, text: str, parts: Parts) -> Record:
    code = _whole_code(f, parts)
    fields, bits, at = [], [], f.bits
    for field in f.fields(code):
        part, _, kind = field.name.rpartition(".")
        word = kind.replace("significand", "fraction")
        fields.append(
            {
                "kind": kind,
                "name": f"{part} {word}".strip(),
                "bits": f"{field.value:0{field.width}b}",
                "meaning": field_meaning(f, field, code),
            }
        )
        for i in reversed(range(field.width)):
            at -= 1
            bits.append({"bit": at, "set": field.value >> i & 1, "kind": kind, "name": fields[-1]["name"]})
    return {
        "format": about(f),
        "code": code_text(f, code),
        "value": _to_type(f, parts),
        "fields": fields,
        "bits": bits,
        "parts": [{"label": label, **_view(view)} for label, view in parts],
    }


def _to_type(f: Format, parts: Parts) -> str:
    """Return the number as one would type it: short where that is exact."""
    texts = [typed(view.value) for _, view in parts]
    if not isinstance(f, ComplexFormat):
        return texts[0]
    return f"{texts[0]}{'' if texts[1].startswith('-') else '+'}{texts[1]}j"


def _value(value: Value) -> Record:
    """A value in full: decimal (and shortened, where long), hexadecimal, fraction, powers of two."""
    full = exact(value)
    fraction = special(value) or str(value)
    return {
        "decimal": full,
        "short": decimal(value) if len(full) > _FULL else full,
        "hex": hex_float(value) or "",
        "fraction": fraction,
        "powers": power(value),
    }


def _view(view: NumberView) -> Record:
    f = view.f
    below, above = view.neighbours()
    about, others = view.alternatives()
    decision = view.decision
    error = view.error(view.code)
    return {
        "format": f.name,
        "given": _value(view.value),
        "exact": view.representable,
        "finite": not (view.is_nan or view.is_infinite),
        "result": {**entry(f, view.code), **_value(view.result)},
        "class": view.category(view.code),
        "error": "" if error is None else decimal(error, 4),
        "ulp": power(view.ulp),
        "below": None if below is None else entry(f, below),
        "above": None if above is None else entry(f, above),
        "decision": None
        if decision is None
        else {
            "kept": decision.kept,
            "exponent": decision.exponent,
            "round": decision.round_bit,
            "sticky": decision.sticky,
            "dropped": decimal(decision.dropped, 6),
        },
        "rounding": [{**_outcome(view, o), "why": _why(view, o)} for o in view.rules],
        "others": {"about": about, "outcomes": [_outcome(view, o) for o in others]},
    }


def _why(view: NumberView, outcome: Outcome) -> str:
    """Return the ground of a decision and what else there is to say; a note on chances says both."""
    said = [view.why(Rounding(outcome.name)), outcome.note]
    return "; ".join(text for text in said[outcome.name == "stochastic" and outcome.note != "" :] if text)


def _outcome(view: NumberView, outcome: Outcome) -> Record:
    record: Record = {"name": outcome.name, "note": outcome.note, "code": "", "bits": "", "text": "", "error": ""}
    if outcome.code is not None:
        error = view.error(outcome.code)
        record |= {**entry(view.f, outcome.code), "error": "" if error is None else decimal(error, 4)}
    return record
