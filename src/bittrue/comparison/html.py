"""A `Report` as one HTML page: tables, and drawings as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from string import Template
from typing import TYPE_CHECKING

from ..formats import Format
from ..webpage import document, svg_text, table
from .measure import Mismatch
from .place import Axis, bars

if TYPE_CHECKING:
    from .report import Report, TensorReport

__all__ = ["page"]

_BODY = Template("""\
<h1>$title</h1>
<p class="soft">golden <code>$golden</code>, actual <code>$actual</code></p>
<div class="verdict $kind"><strong>$word</strong>$reason</div>
<p class="soft">Standard <code>$standard</code>: $formula</p>
$summary
$sections
<p class="soft">Made by bittrue $version. AE = |a&minus;g|, RE = AE / (|g| + 1e-7), in float64; MERE and MARE are mean
and maximum of RE. An ULP is a step between neighbouring values of the format.</p>
""")

_SHOWN = 40  # tensors that are shown in full


def page(report: Report) -> str:
    """Return the page of a report."""
    from .. import __version__

    chosen = [t for t in report.tensors if t.figures.mismatches or not t.passed][:_SHOWN]
    if not chosen and len(report.tensors) == 1:
        chosen = report.tensors
    title = "Comparison of golden and actual data"
    body = _BODY.substitute(
        title=title,
        golden=escape(report.golden),
        actual=escape(report.actual),
        kind="pass" if report.passed else "fail",
        word="PASS" if report.passed else "FAIL",
        reason=escape(report.reason),
        standard=escape(report.standard),
        formula=escape(report.formula),
        summary=_summary(report.tensors) if len(report.tensors) > 1 else "",
        sections="\n".join(_section(t) for t in chosen),
        version=escape(__version__),
    )
    return document(title, body)


def _summary(tensors: Sequence[TensorReport]) -> str:
    rows = [
        [
            f"<code>{escape(t.name)}</code>",
            escape(t.format.name),
            " &times; ".join(map(str, t.shape)),
            _verdict_cell(t.passed),
            f"{t.figures.mismatches:,}",
            f"{100 * t.figures.ratio:.3g} %",
            f"{t.figures.max_ulp:,}",
            escape(t.reason),
        ]
        for t in tensors
    ]
    heads = ["tensor", "format", "shape", "", "differ", "", "max ULP", "decided by"]
    return f"<section><h2>{len(tensors)} tensors</h2>{table(heads, rows, (4, 5, 6))}</section>"


def _verdict_cell(passed: bool) -> str:
    return "pass" if passed else "<b>fail</b>"


def _section(t: TensorReport) -> str:
    f = t.figures
    shape = " &times; ".join(map(str, t.shape)) or "one element"
    parts = [
        f"<section><h2>{escape(t.name) or 'array'} <span class=soft>{escape(t.format.name)}, {shape}</span></h2>",
        f"<p class=soft>{escape(t.note)}</p>" if t.note else "",
        f'<div class="small">{_checks(t)}</div>',
        '<div class="figures">',
        *(f"<div><span>{name}</span>{value}</div>" for name, value in _figures(t)),
        "</div>",
    ]
    if f.mismatches:
        parts.append("<h3>Where</h3><ul>" + "".join(f"<li>{escape(text)}</li>" for text in t.place.findings) + "</ul>")
        drawings = [_histogram(t), _map(t), _error_plot(t), *(_axis(a) for a in t.place.axes if a.size > 1)]
        parts.append('<div class="drawings">' + "".join(drawings) + "</div>")
        worst = "Worst pairs of codes, each where it comes first" if t.format.bits <= 8 else "Worst elements"
        parts.append(f"<h3>{worst}</h3>" + _mismatches(t.worst, t.format))
        if [m.index for m in t.first] != [m.index for m in t.worst]:
            parts.append("<h3>First mismatches</h3>" + _mismatches(t.first, t.format))
    return "".join(parts) + "</section>"


def _checks(t: TensorReport) -> str:
    rows = [[escape(c.figure), _figure(c.value), _figure(c.limit), _verdict_cell(c.passed)] for c in t.checks]
    return table(["check", "value", "limit", ""], rows, (1, 2))


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _figures(t: TensorReport) -> list[tuple[str, str]]:
    f = t.figures
    found = [
        ("elements", f"{f.elements:,}"),
        ("differ", f"{f.mismatches:,} ({100 * f.ratio:.3g} %)"),
        ("max ULP", f"{f.max_ulp:,}"),
        ("mean ULP", f"{f.mean_ulp:.3g}"),
        ("max AE", f"{f.max_abs:.4g}"),
        ("MERE", f"{f.mean_rel:.4g}"),
        ("MARE", f"{f.max_rel:.4g}"),
        ("RMSE", f"{f.rmse:.4g}"),
    ]
    if f.unordered:
        found.append(("NaN beside numbers", f"{f.unordered:,}"))
    if f.signed_zeros:
        found.append(("sign of zero differs", f"{f.signed_zeros:,}"))
    return found


# --- mismatches -------------------------------------------------------------------------------------------------------


def _mismatches(found: Sequence[Mismatch], f: Format) -> str:
    from .report import value_text

    rows = []
    for m in found:
        golden, actual = _bits(m.golden, m.actual, f), _bits(m.actual, m.golden, f)
        width = 2 + -(-f.bits // 4)
        rows.append([
            f"<span class='mono bits'>[{', '.join(map(str, m.index))}]</span>",
            escape(value_text(m.golden_value)),
            f"<span class='mono bits'>{m.golden:#0{width}x}&ensp;{golden}</span>",
            escape(value_text(m.actual_value)),
            f"<span class='mono bits'>{m.actual:#0{width}x}&ensp;{actual}</span>",
            "NaN" if m.steps is None else f"{m.steps:,}",
            f"{m.repeated:,}" if m.repeated > 1 else "",
        ])
    names = ", ".join(field.name for field in f.fields(0))
    heads = ["index", "golden", f"code ({escape(names)})", "actual", "code", "ULP", "times"]
    return table(heads, rows, (1, 3, 5, 6))


def _bits(code: int, other: int, f: Format) -> str:
    """Return the bits of a code by field, with those that differ marked."""
    texts, at = [], 0
    for field in f.fields(code):
        text = ""
        for k in range(field.width):
            place = f.bits - 1 - at - k
            bit = str(code >> place & 1)
            text += f"<mark>{bit}</mark>" if (code ^ other) >> place & 1 else bit
        texts.append(text.replace("</mark><mark>", ""))
        at += field.width
    return " ".join(texts)


# --- drawings ---------------------------------------------------------------------------------------------------------

_W, _H = 440, 190
_LEFT, _BOTTOM, _TOP = 46, 30, 10


def _drawing(title: str, body: str, height: int = _H, about: str = "") -> str:
    note = f"<p class=soft>{about}</p>" if about else ""
    return (
        f"<figure><h3>{title}</h3><svg viewBox='0 0 {_W} {height}' role=img aria-label='{title}'>{body}</svg>"
        f"{note}</figure>"
    )


def _bars(counts: Sequence[int], labels: dict[int, str], log: bool = True, hints: Sequence[str] = ()) -> str:
    """Draw bars over a base line; `labels` by the number of the bar."""
    width, height = _W - _LEFT - 6, _H - _BOTTOM - _TOP
    top = max(counts, default=1) or 1
    scale = math.log10(top * 2) if log else 1.0

    def tall(n: int) -> float:
        return height * (math.log10(n * 2) / scale if log else n / top) if n else 0.0

    step = width / max(len(counts), 1)
    parts = []
    for k, n in enumerate(counts):
        if n:
            y, x = _TOP + height - tall(n), _LEFT + k * step
            hint = f"<title>{hints[k]}: {n:,}</title>" if hints else f"<title>{n:,}</title>"
            parts.append(
                f"<rect class=bar x='{x + step * 0.08:.2f}' y='{y:.2f}' width='{max(step * 0.84, 0.6):.2f}' "
                f"height='{tall(n):.2f}'>{hint}</rect>"
            )
    base = _TOP + height
    parts.append(f"<line class=axis x1={_LEFT} x2={_W - 6} y1={base} y2={base} />")
    decades = int(math.log10(top))
    ticks = [10**k for k in range(0, decades + 1, max(1, decades // 3))] if log else [top]
    for n in ticks:
        y = base - tall(n)
        parts.append(f"<line class=axis x1={_LEFT - 4} x2={_LEFT} y1={y:.2f} y2={y:.2f} />")
        parts.append(svg_text(_LEFT - 7, y + 4, _short(n), "end"))
    for k, text in labels.items():
        edge = k == len(counts) - 1 and step < 20  # the last label would leave the drawing
        x, anchor = (_W - 6.0, "end") if edge else (_LEFT + (k + 0.5) * step, "middle")
        parts.append(svg_text(x, base + 15, text, anchor))
    return "".join(parts)


def _short(n: int) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if n >= size:
            return f"{n / size:.3g}{unit}"
    return str(n)


def _histogram(t: TensorReport) -> str:
    rows = t.figures.histogram
    names = ["NaN" if a < 0 else str(a) if a == b else f"{_short(a)}&ndash;{_short(b)}" for a, b, _ in rows]
    every = max(1, math.ceil(len(rows) / 8))
    labels = {k: name for k, name in enumerate(names) if k % every == 0 or name == "NaN"}
    return _drawing("Distances in ULP (mismatches, logarithmic)", _bars([n for *_, n in rows], labels, hints=names))


def _map(t: TensorReport) -> str:
    grid, place = t.place.grid, t.place
    lines, across = grid.shape
    top = int(grid.max()) or 1
    width, height = _W - _LEFT - 6, max(14, min(_H - _BOTTOM - _TOP, 14 * lines))
    w, h = width / across, height / lines
    cells = []
    for i, j in zip(*(axis.tolist() for axis in grid.nonzero())):
        n = int(grid[i, j])
        strength = 0.25 + 0.75 * math.log1p(n) / math.log1p(top)
        cells.append(
            f"<rect x='{_LEFT + j * w:.2f}' y='{_TOP + i * h:.2f}' width='{w + 0.05:.2f}' height='{h + 0.05:.2f}' "
            f"style='fill:rgba(var(--heat),{strength:.2f})'><title>{n:,}</title></rect>"
        )
    frame = f"<rect class=frame x={_LEFT} y={_TOP} width={width} height={height:.2f} />"
    label = svg_text(_LEFT + width / 2, _TOP + height + 17, escape(place.column_label) + " &rarr;")
    y = _TOP + height / 2
    side = (
        f"<text transform='rotate(-90 {_LEFT - 12} {y:.1f})' x='{_LEFT - 12}' y='{y:.1f}' text-anchor=middle>"
        f"{escape(place.line_label)}</text>"
        if place.line_label and height > 60
        else ""
    )
    return _drawing("Map of mismatches", "".join(cells) + frame + label + side, int(_TOP + height + 24))


def _error_plot(t: TensorReport) -> str:
    rows = [(e, n, r) for e, n, r in t.figures.binades if e is not None and 0 < r < math.inf]
    if not rows:
        return ""
    low, high = min(e for e, *_ in rows), max(e for e, *_ in rows)
    bottom = math.floor(min(math.log2(r) for *_, r in rows)) - 1
    top = math.ceil(max(math.log2(r) for *_, r in rows)) + 1
    width, height = _W - _LEFT - 6, _H - _BOTTOM - _TOP
    base, parts = _TOP + height, []
    step = width / (high - low + 1)
    for e, n, r in rows:
        x, y = _LEFT + (e - low + 0.5) * step, base - height * (math.log2(r) - bottom) / (top - bottom)
        hint = f"<title>2^{e}: largest RE {r:.3g}, {n:,} mismatches</title>"
        radius = min(4.0, max(1.6, step / 3))
        parts.append(f"<circle class=dot cx='{x:.2f}' cy='{y:.2f}' r='{radius:.2f}'>{hint}</circle>")
    parts.append(f"<line class=axis x1={_LEFT} x2={_W - 6} y1={base} y2={base} />")
    every = max(1, math.ceil((high - low + 1) / 8))
    for e in range(low, high + 1, every):
        parts.append(svg_text(_LEFT + (e - low + 0.5) * step, base + 15, f"2<tspan dy=-4 font-size=8>{e}</tspan>"))
    for k in sorted({bottom, (bottom + top) // 2, top}):
        y = base - height * (k - bottom) / (top - bottom)
        parts.append(f"<line class=axis x1={_LEFT - 4} x2={_LEFT} y1={y:.2f} y2={y:.2f} />")
        parts.append(svg_text(_LEFT - 7, y + 4, f"2<tspan dy=-4 font-size=8>{k}</tspan>", "end"))
    return _drawing("Largest relative error by golden magnitude", "".join(parts))


def _axis(axis: Axis) -> str:
    counts = bars(axis.counts, 128)
    group = -(-axis.size // len(counts))
    last = len(counts) - 1
    labels = {0: "0", last // 2: str(last // 2 * group), last: str(last * group)}
    hints = [f"{k * group} to {min((k + 1) * group, axis.size) - 1}" if group > 1 else str(k) for k in range(last + 1)]
    return _drawing(f"Mismatches along {escape(axis.name)}", _bars(counts, labels, log=False, hints=hints))
