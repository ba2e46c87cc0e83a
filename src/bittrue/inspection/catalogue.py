"""Formats in plain records: layout, range, special codes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..exact import encode
from ..formats import BoolFormat, ComplexFormat, FloatFormat, Format, IntFormat, TaperedFormat
from .numbers import as_json, power

__all__ = ["RANGE", "code_text", "format_record", "layout", "special_codes", "specials"]

#: Limits that a format may have, by the names of its properties.
RANGE = ("max", "min", "min_normal", "min_subnormal", "epsilon")


def code_text(f: Format, code: int) -> str:
    """Return a code in hexadecimal, as wide as the format."""
    return f"0x{code:0{-(-f.bits // 4)}x}"


def layout(f: Format) -> str:
    """Return the widths of a format's fields as "1-4-3", or a word where they vary."""
    if isinstance(f, FloatFormat):
        return f"{int(f.signed)}-{f.exponent_bits}-{f.mantissa_bits}"
    if isinstance(f, ComplexFormat):
        return f"2x{layout(f.part)}"
    if isinstance(f, TaperedFormat):
        return "1-var."
    if f.kind == "block":
        return f"x{f.block_size}"  # type: ignore[attr-defined]
    return f"{int(f.signed)}-{f.bits - f.signed}" if isinstance(f, IntFormat) else ""


def specials(f: Format) -> str:
    """Return which of Inf, NaN, -0 and 0 a format has, with the absence of zero said in words."""
    named = [name for name, has in (("Inf", f.has_inf), ("NaN", f.has_nan), ("-0", f.has_negative_zero)) if has]
    return " ".join(named + ([] if f.has_zero else ["no 0"]))


def format_record(f: Format) -> dict[str, Any]:
    """Return everything about a format except its code table."""
    data: dict[str, Any] = {
        "name": f.name,
        "bits": f.bits if isinstance(f.bits, int) else float(f.bits),
        "kind": f.kind,
        "layout": layout(f),
        "signed": bool(f.signed),
        "exponent_bits": f.exponent_bits if isinstance(f, FloatFormat) else None,
        "fraction_bits": f.mantissa_bits if isinstance(f, FloatFormat) else None,
        "bias": f.bias if isinstance(f, FloatFormat) else None,
        "storage": f.storage.name,
        "has_inf": f.has_inf,
        "has_nan": f.has_nan,
        "has_zero": f.has_zero,
        "has_negative_zero": f.has_negative_zero,
        "aliases": list(f.aliases),
        "description": f.describe(),
    }
    if f.kind == "block":
        data |= {name: getattr(f, name) for name in ("block_size", "block_bytes")}
    for name in RANGE:
        value = getattr(f, name, None)
        data[name] = None if value is None else {**as_json(value), "powers": power(value)}
    return data


def special_codes(f: Format) -> list[tuple[str, int]]:
    """Return the named codes of a format with one value per code: zeros, limits, Inf and NaN."""
    if isinstance(f, BoolFormat):
        return [("false", 0), ("true", 1)]
    if isinstance(f, IntFormat):
        return [("zero", 0), ("max", f.pack(int(f.max))), ("min", f.pack(int(f.min)))]
    if not isinstance(f, (FloatFormat, TaperedFormat)):
        return []
    found: list[tuple[str, int]] = []
    if f.has_zero:
        found.append(("zero", 0))
    if f.has_negative_zero:
        found.append(("negative zero", f.with_sign(0, True)))
    for label, value in (("min subnormal", f.min_subnormal), ("min normal", f.min_normal)):
        if label == "min normal" or value != f.min_normal:
            found.append((label, encode(value, f)))
    found += [("one", encode(Fraction(1), f))] if f.min_subnormal <= 1 <= f.max else []
    found += [(f"{'-' * n}max", f.with_sign(f.max_code, n)) for n in (False, True)[: 1 + f.signed]]
    if f.inf_magnitude is not None:
        found += [(f"{'-' * n}inf", f.with_sign(f.inf_magnitude, n)) for n in (False, True)[: 1 + f.signed]]
    if f.nan_code is not None:
        found.append(("nan", f.nan_code))
        if f.nan_signed:
            found.append(("-nan", f.with_sign(f.nan_code, True)))
    return found
