"""What several answers of the explorer share: defaults, codes with their values, formats."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ...formats import Format, Value
from ...inspection.catalogue import code_text, layout, specials
from ...inspection.numbers import decimal, exact, hex_float, short
from ...kinds.block import BlockFormat
from ..fields import FieldError, Fields

__all__ = ["DEFAULTS", "VALUE_LIMIT", "Record", "about", "entry", "finite", "scalar", "typed"]

Record = dict[str, Any]
VALUE_LIMIT = 400  # characters of a number

#: What the page shows where the address says nothing.
DEFAULTS = {
    "format": "hifloat8",
    "value": "1.3",
    "block": "mx9",
    "values": "1.3, -0.7, 0.02, 5, -3.1, 0.4, 0.25, -0.01, 2.2, -1.9, 0.6, 0.11, -0.33, 4.4, 0.9, -0.08",
    "product": "Ascend 950PR/950DT",
    "qmode": "REQ8",
    "acc": "1234",
    "word": "0x7fa03dccc000",
    "src": "float",
    "dst": "hifloat8_t",
    "mode": "CAST_NONE",
    "x": "16",
    "arch": "aie-ml",
    "srs": "1006",
    "shift": "2",
    "to": "int16",
    "saturation": "saturate",
}


def scalar(given: Fields, name: str, default: str) -> Format:
    """Read the name of a format that is not one of blocks."""
    f = given.format(name, default)
    if isinstance(f, BlockFormat):
        raise FieldError(name, f"{f.name} holds blocks of {f.block_size} values: see the view of blocks")
    return f


def about(f: Format) -> Record:
    """Return what is said about a format."""
    return {
        "name": f.name,
        "bits": str(f.bits),
        "kind": f.kind,
        "layout": layout(f),
        "specials": specials(f),
        "aliases": list(f.aliases),
        "text": f.describe(),
    }


def entry(f: Format, code: int) -> Record:
    """Return a code, the bits of its fields, and its value: short, and as one would type it."""
    value = f.value(code)
    return {
        "code": code_text(f, code),
        "fields": [[_kind(field.name), f"{field.value:0{field.width}b}"] for field in f.fields(code)],
        "text": short(value, 22, 17),
        "typed": typed(value),
    }


def _kind(name: str) -> str:
    """Return the kind of a field, whichever part of a complex number it belongs to."""
    return name.rpartition(".")[2]


def typed(value: Value) -> str:
    """Return a value as one would type it: exactly, and in short where that is exact."""
    full = exact(value)
    return full if len(full) <= 24 else hex_float(value) or (full if len(full) <= VALUE_LIMIT else decimal(value))


def finite(value: Value) -> Fraction:
    """Return a finite value without the sign of zero."""
    return Fraction(0) if isinstance(value, float) else value
