"""Drawings of the grids of formats, as SVG that takes its colours from the page (light or dark)."""

from __future__ import annotations

import io
import math
import re
from fractions import Fraction
from typing import Any

import bittrue as bt
from bittrue.kinds.block import BlockFormat, ScaledFormat, SharedExponentFormat

__all__ = ["grid", "positive_values"]

#: What matplotlib draws in these colours gets the page's.
_INK, _SOFT, _LINE = "#010203", "#040506", "#070809"
_COLOURS = {_INK: "var(--color-foreground-primary)", _SOFT: "var(--color-foreground-muted)", _LINE: "var(--bt-bar)"}

_WIDE = 24  # binades up to which the axis names every second one


def positive_values(f: Any) -> list[Fraction]:
    """Return the positive finite values in order; of block formats those of an element; none beyond 16 bits."""
    if isinstance(f, ScaledFormat):
        return [v / (1 << f.fraction_bits) for v in positive_values(f.element)]
    if isinstance(f, SharedExponentFormat):
        return [Fraction(m, 1 << f.fraction_bits) for m in range(1, 1 << (f.mantissa_bits - 1))]
    if f.kind in ("bool", "complex") or f.bits > 8:
        return []
    return sorted({v for v in f.values() if isinstance(v, Fraction) and v > 0})


def _svg(figure: Any, name: str) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    for colour, variable in _COLOURS.items():
        text = text.replace(colour, variable)
    text = text.replace("<svg ", f'<svg role="img" aria-label="grid of {name}" ', 1)
    return re.sub(r"\n\s*\n+", "\n", text).strip()  # a blank line would end the HTML block in Markdown


def _axes(height: float) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "bittrue", "font.family": "sans-serif"})
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, height))
    figure.subplots_adjust(left=0.07, right=0.99, top=0.98, bottom=0.48 / height)
    axes = figure.add_subplot()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(_SOFT)
    axes.tick_params(colors=_SOFT, labelcolor=_INK, labelsize=8)
    axes.xaxis.label.set_color(_INK)
    axes.yaxis.label.set_color(_INK)
    axes.xaxis.label.set_size(9)
    axes.yaxis.label.set_size(9)
    return figure, axes


def grid(f: Any) -> tuple[str, str]:
    """Return the drawing of a format's grid and its caption."""
    return _linear(f) if isinstance(f, BlockFormat) else _binades(f)


def _linear(f: Any) -> tuple[str, str]:
    """Elements of a block beside its scale, on a linear axis."""
    figure, axes = _axes(1.2)
    values = [float(v) for v in positive_values(f)]
    rows = [(0, values)]
    caption = "The magnitudes that an element can have, in units of the scale"
    if isinstance(f, SharedExponentFormat):
        caption = "The magnitudes that an element can have, in units of 2^(E1 - bias)"
        if f.shifts:
            rows.append((1, [v / 2 for v in values]))
            caption += ": above for pairs with E2 = 0, below with E2 = 1"
    for row, positions in rows:
        axes.vlines(positions, -row - 0.35, -row + 0.35, colors=_LINE, linewidths=0.8)
    axes.set_xlim(0, max(values) * 1.02)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    return _svg(figure, f.name), caption + ". Zero and the negative ones are not drawn."


def _binades(f: Any) -> tuple[str, str]:
    """Significand bits in each binade, over a logarithmic axis; below, each value of a small format."""
    part = f.part if isinstance(f, bt.ComplexFormat) else f
    values = positive_values(part)
    low, high = (math.floor(math.log2(v)) for v in (part.min_subnormal, part.max))
    exponents = list(range(low, high + 1))
    if isinstance(part, bt.IntFormat):
        bits = [e + 1 for e in exponents]
    else:
        bits = [e - part.quantum_exponent(e) + 1 for e in exponents]
    figure, axes = _axes(2.5)
    axes.stairs(bits, [*exponents, high + 1], color=_LINE, linewidth=1.6, baseline=None)
    axes.set_ylabel("significand bits")
    top = max(bits)
    floor = -0.28 * top if values else 0
    if values:
        axes.vlines([math.log2(v) for v in values], floor, floor * 0.45, colors=_INK, linewidths=0.6)
    axes.set_ylim(floor * 1.1, top * 1.15)
    axes.set_yticks([t for t in axes.get_yticks() if t >= 0 and t == int(t) and t <= top])
    span = high + 1 - low
    step = max(1, round(span / 12)) if span <= _WIDE else max(2, 2 ** round(math.log2(span / 10)))
    ticks = [e for e in range(low, high + 2) if e % step == 0]
    axes.set_xticks(ticks, [f"2^{e}" for e in ticks])
    axes.set_xlim(low - 0.02 * span, high + 1 + 0.02 * span)
    caption = "Line: bits of the significand, with the leading one, by magnitude."
    if values:
        caption += " Strokes: the positive values."
    return _svg(figure, f.name), caption
