"""Pieces of the number line, and maps of all codes."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from ...formats import ComplexFormat, FloatFormat, Format, TaperedFormat, Value
from ...inspection import line as lines
from ...inspection.catalogue import code_text
from ...inspection.number import NumberView, category
from ...inspection.numbers import power, short
from ..fields import FieldError, Fields
from .common import DEFAULTS, VALUE_LIMIT, Record, about, entry, finite, scalar, typed
from .number import carried, read_parts

__all__ = ["MAP_BITS", "codes", "line"]

MAP_BITS = 8

_MOVES: dict[str, Callable[[lines.Window, Fraction, list[Format]], lines.Window]] = {
    "in": lambda w, at, f: w.scaled(-1, at, f),
    "out": lambda w, at, f: w.scaled(1, at, f),
    "left": lambda w, at, f: w.moved(Fraction(-1, 4), f),
    "right": lambda w, at, f: w.moved(Fraction(1, 4), f),
    "to": lambda w, at, f: w.moved(at - Fraction(1, 2), f),
    "all": lambda w, at, f: lines.whole(f),
}


def line(given: Fields) -> Record:
    """What one format has, or two have, in a window of the number line; the window as it is, or moved."""
    f = scalar(given, "format", DEFAULTS["format"])
    shown = [f]
    name = "code" if "code" in given else "value"
    text = given.text(name, DEFAULTS["value"], VALUE_LIMIT)
    parts = read_parts(name, text, f)
    views = [parts[0][1]]
    if "second" in given:
        shown.append(scalar(given, "second", ""))
        views.append(carried(shown[1], parts)[0][1])
    view = views[0]
    if "at" in given or "zoom" in given:
        centre = given.number("at", "0")
        if isinstance(centre, float) and centre:
            raise FieldError("at", f"at={centre} must be finite")
        window = lines.Window(finite(centre), given.integer("zoom", -1100, 1100, 3)).within(shown)
    else:
        window = lines.around(view, shown)
    if "move" in given:
        move = _MOVES[given.choice("move", tuple(_MOVES), "in")]
        window = move(window, Fraction(given.integer("point", -1000, 2000, 500), 1000), shown)
    shows = not (view.is_nan or view.is_infinite)
    return {
        "at": window.centre_text,
        "zoom": window.zoom,
        "width": power(window.width),
        "axis": [{"x": x, "text": text} for x, text in lines.axis(window)],
        "value": {"x": window.place(view.number), "text": short(view.value, 16, 9)} if shows else None,
        "rows": [_line_row(each, window, view) for each, view in zip(shown, views)],
    }


def _line_row(f: Format, window: lines.Window, view: NumberView) -> Record:
    part = f.part if isinstance(f, ComplexFormat) else f
    row = lines.row(f, window)
    smallest: Fraction = part.min_normal if isinstance(part, (FloatFormat, TaperedFormat)) else Fraction(0)
    most = max(row.bins, default=1) or 1
    return {
        "format": part.name,
        "total": str(row.total),
        "taken": code_text(part, view.code),
        "points": [
            {
                "x": p.x,
                "code": code_text(part, p.code),
                "text": short(p.value, 16, 9),
                "typed": typed(p.value),
                "kind": "zero" if p.value == 0 else "subnormal" if abs(finite(p.value)) < smallest else "normal",
            }
            for p in row.points
        ],
        "bins": [n / most for n in row.bins],
    }


def codes(given: Fields) -> Record:
    """Every code of a format of at most eight bits, with how large it is among the others."""
    f = scalar(given, "format", DEFAULTS["format"])
    if f.bits > MAP_BITS or isinstance(f, ComplexFormat):
        raise FieldError("format", f"{f.name} has {f.bits} bits; a map is drawn up to {MAP_BITS}")
    return _map(f)


@lru_cache(maxsize=64)
def _map(f: Format) -> Record:
    values = f.values()
    sizes = [abs(v) for v in values if isinstance(v, Fraction) and v]
    low, high = math.log2(min(sizes)), math.log2(max(sizes))
    cells = []
    for code, value in enumerate(values):
        kind = _kind(value)
        level = (math.log2(abs(finite(value))) - low) / (high - low or 1) if kind in ("positive", "negative") else 0.0
        cells.append(
            {**entry(f, code), "label": _label(value), "kind": kind, "level": round(level, 3),
             "class": category(f, code)}
        )  # fmt: skip
    return {"format": about(f), "columns": min(16, len(cells)), "cells": cells}


def _label(value: Value) -> str:
    """Return a value in six characters or so, rounded where it must be."""
    text = short(value, 6, 3)
    if len(text.lstrip("-")) <= 6 or isinstance(value, float):
        return text
    digits, _, exponent = f"{float(value):.1e}".partition("e")
    return f"{digits}e{int(exponent)}"


def _kind(value: Value) -> str:
    if value != value:
        return "nan"
    if value in (math.inf, -math.inf):
        return "infinite"
    if value == 0:
        return "zero"
    return "negative" if value < 0 else "positive"
