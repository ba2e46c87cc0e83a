"""A `Study` as one HTML page: tables, and drawings as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from html import escape
from string import Template
from typing import TYPE_CHECKING

from ..kinds.block import BlockFormat
from ..webpage import document, svg_text, table
from .plan import Trial, largest_precise

if TYPE_CHECKING:
    from .report import Study, Summary

__all__ = ["page"]

_STYLE = """\
svg .curve { fill: none; stroke-width: 1.4; } svg .front { stroke: var(--soft); stroke-dasharray: 4 3; fill: none; }
.swatch { display: inline-block; width: .7rem; height: .7rem; border-radius: 2px; margin-right: .4rem; }
.drawings { grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
.plot { overflow-x: auto; } .plot svg { min-width: 27rem; }  /* narrower, its text could not be read */
@media (min-width: 62rem) { .last { grid-column: 1 / -1; display: grid; grid-template-columns: 1fr 1fr; gap: 0 1.6rem; }
  .last h3 { grid-column: 1 / -1; } }
td { white-space: nowrap; } .legend span.key { margin-right: 1rem; white-space: nowrap; }
"""

_BODY = Template("""\
<h1>What number formats cost</h1>
<p class="soft"><code>$source</code>: $tensors, $elements elements$skipped</p>
<section><h2>Formats</h2>$summary
<p class="soft">SQNR = 10 log10(&Sigma;x&sup2; / &Sigma;(x&minus;y)&sup2;) in float64 over all elements; the median is
over the tensors. Bits count all scales. A star marks the Pareto front: nothing has fewer bits and no less SQNR.</p>
</section>
<section><h2>Drawings</h2><p class="legend">$legend</p><div class="drawings">$drawings</div></section>
<section><h2>Tensors that suffer most</h2>$worst</section>
<section><h2>SQNR by tensor, dB</h2>$all</section>
<p class="soft">Made by bittrue $version.</p>
""")

_W, _H, _LEFT, _RIGHT, _TOP, _BOTTOM = 560, 300, 46, 12, 12, 34
_WORST, _ALL = 12, 400


def page(study: Study) -> str:
    """Return the page of a study."""
    from .. import __version__

    summary = study.summary
    colours = {t.label: _colour(k, len(study.trials)) for k, t in enumerate(study.trials)}
    tensors = study.tensors
    skipped = len(study.skipped)
    drawings = [_front(summary, colours), _layers(study, colours), _spread(study, colours)]
    body = _BODY.substitute(
        source=escape(study.source),
        tensors=f"{len(tensors):,} tensor{'s' * (len(tensors) != 1)}",
        elements=f"{sum(c.elements for c in study.of(study.trials[0].label)):,}",
        skipped=f"; {skipped} skipped (no floating values, or of an unknown dtype)" if skipped else "",
        summary=_summary(summary, colours),
        legend="".join(f"<span class=key>{_swatch(c)}{escape(label)}</span>" for label, c in colours.items()),
        drawings="".join(drawings),
        worst=_worst(study),
        all=_all(study),
        version=escape(__version__),
    )
    return document("What number formats cost", body, _STYLE)


def _colour(k: int, count: int) -> str:
    """Return one of `count` colours that are apart from their neighbours, on light ground and on dark."""
    step = next(n for n in (5, 3, 7, 2, 1) if math.gcd(n, count) == 1)  # the next in the list is far off in hue
    return f"hsl({round(360 * (k * step % count) / count + 210) % 360} 65% {(46, 52, 58)[k % 3]}%)"


def _swatch(colour: str) -> str:
    return f"<span class=swatch style='background:{colour}'></span>"


def _db(value: float) -> str:
    return "exact" if value == math.inf else f"{value:.1f}"


def _summary(summary: Sequence[Summary], colours: dict[str, str]) -> str:
    heads = ["format", "", "bits per value", "bytes", "SQNR dB", "median", "least", "mean rel. error", "largest",
             "overflow", "underflow", "worst tensor"]
    rows = [
        [
            _swatch(colours[s.format]) + escape(s.format), "&#9733;" if s.pareto else "",
            f"{float(s.bits_per_value):.3f}", f"{s.nbytes:,}",
            _db(s.sqnr_db), _db(s.median_sqnr_db), _db(s.min_sqnr_db), f"{s.mean_rel_error:.3g}",
            f"{s.max_rel_error:.3g}", f"{100 * s.overflowed:.3g} %", f"{100 * s.underflowed:.3g} %",
            f"<code>{escape(s.worst)}</code>",
        ]
        for s in summary
    ]
    return table(heads, rows, range(2, 11))


def _worst(study: Study) -> str:
    medians = {s.format: s.median_sqnr_db for s in study.summary}
    rows = [
        [
            f"<code>{escape(c.tensor)}</code>", " &times; ".join(map(str, c.shape)), escape(c.format), _db(c.sqnr_db),
            _db(medians[c.format]), f"{c.mean_rel_error:.3g}", f"{100 * c.underflowed / max(c.elements, 1):.3g} %",
        ]
        for c in study.worst[:_WORST]
    ]
    heads = ["tensor", "shape", "worst format", "SQNR dB", "median of that format", "mean rel. error", "underflow"]
    return table(heads, rows, range(3, 7))


def _all(study: Study) -> str:
    labels = [t.label for t in study.trials]
    found = {(c.tensor, c.format): c.sqnr_db for c in study.costs}
    tensors = study.tensors
    rows = [
        [f"<code>{escape(name)}</code>", *(_db(found[name, label]) for label in labels)] for name in tensors[:_ALL]
    ]
    note = f"<p class=soft>and {len(tensors) - _ALL:,} more; the CSV has all</p>" if len(tensors) > _ALL else ""
    return table(["tensor", *map(escape, labels)], rows, range(1, len(labels) + 1)) + note


# --- drawings ---------------------------------------------------------------------------------------------------------


def _figure(title: str, body: str, about: str, height: int = _H, kind: str = "") -> str:
    return (
        f"<figure class='{kind}'><h3>{title}</h3><div class=plot><svg viewBox='0 0 {_W} {height}' role=img "
        f"aria-label='{title}'>{body}</svg></div><p class=soft>{about}</p></figure>"
    )


class _Axes:
    """Linear axes over given values, with ticks at round numbers."""

    def __init__(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        self._x, self._y = _span(xs), _span(ys)

    def x(self, value: float) -> float:
        """Return where a value lies across."""
        low, high = self._x
        return _LEFT + (value - low) / (high - low) * (_W - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        """Return where a value lies up."""
        low, high = self._y
        return _H - _BOTTOM - (value - low) / (high - low) * (_H - _BOTTOM - _TOP)

    def frame(self, across: str, up: str, ticks: bool = True) -> str:
        """Draw lines, ticks and names."""
        base = _H - _BOTTOM
        parts = [
            f"<line class=axis x1={_LEFT} x2={_W - _RIGHT} y1={base} y2={base} />",
            f"<line class=axis x1={_LEFT} x2={_LEFT} y1={_TOP} y2={base} />",
            svg_text(_W - _RIGHT, base + 28, across, "end"),
            svg_text(_LEFT + 5, _TOP + 6, up, "start"),
        ]
        parts += [svg_text(_LEFT - 6, self.y(v) + 4, f"{v:g}", "end") for v in _ticks(*self._y)]
        if ticks:
            parts += [svg_text(self.x(v), base + 14, f"{v:g}") for v in _ticks(*self._x)]
        return "".join(parts)


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = (high - low) * 0.08 or 1.0
    return low - room, high + room


def _ticks(low: float, high: float) -> list[float]:
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next(k for k in (1, 2, 5, 10) if (high - low) / (step * k) <= 6)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _front(summary: Sequence[Summary], colours: dict[str, str]) -> str:
    points = [(float(s.bits_per_value), s.sqnr_db, s) for s in summary if math.isfinite(s.sqnr_db)]
    axes = _Axes([p[0] for p in points], [p[1] for p in points])
    line = " ".join(f"{axes.x(b):.1f},{axes.y(q):.1f}" for b, q, s in points if s.pareto)
    parts = [axes.frame("bits per value", "SQNR, dB"), f"<polyline class=front points='{line}' />"]
    places = [(axes.x(bits), axes.y(sqnr)) for bits, sqnr, _ in points]
    names = _Names(places, [place for place, point in zip(places, points) if point[2].pareto])
    for (x, y), (bits, sqnr, s) in zip(places, points):
        parts.append(
            f"<circle cx='{x:.1f}' cy='{y:.1f}' r=5 style='fill:{colours[s.format]}'>"
            f"<title>{escape(s.format)}: {bits:.3f} bits, {sqnr:.2f} dB</title></circle>"
            + names.put(x, y, s.format)
        )
    return _figure("Bits against SQNR", "".join(parts), "Dashed: the Pareto front.")


class _Names:
    """Puts names beside points, nearest to their own, where they cover other names, points and a line the least."""

    _AROUND = ((9, 4, "start"), (-9, 4, "end"), (0, -10, "middle"), (0, 17, "middle"), (7, -7, "start"),
               (7, 15, "start"), (-7, -7, "end"), (-7, 15, "end"), (9, 24, "start"), (-9, 24, "end"))

    def __init__(self, points: Sequence[tuple[float, float]], line: Sequence[tuple[float, float]]) -> None:
        self._points = points
        self._boxes = [(x - 6, y - 6, x + 6, y + 6, 5.0) for x, y in points]
        for (a, b), (c, d) in zip(line, line[1:]):
            steps = max(int(math.hypot(c - a, d - b) / 6), 1)
            along = [(a + (c - a) * k / steps, b + (d - b) * k / steps) for k in range(steps)]
            self._boxes += [(x - 1, y - 1, x + 1, y + 1, 0.3) for x, y in along]

    def put(self, x: float, y: float, name: str) -> str:
        """Return the name as text beside a point."""
        def cost(way: tuple[float, float, str]) -> float:
            left, top, right, bottom = box(way)
            outside = left < _LEFT or right > _W or top < 0 or bottom > _H - _BOTTOM
            over = (w for a, b, c, d, w in self._boxes if a < right and c > left and b < bottom and d > top)
            at = x + way[0], y + way[1] - 4  # the middle of the name's edge
            nearer = sum(math.dist(at, other) < math.dist(at, (x, y)) for other in self._points)
            return 50.0 * outside + 4.0 * nearer + sum(over)

        def box(way: tuple[float, float, str]) -> tuple[float, float, float, float]:
            wide = 6.3 * len(name)
            left = x + way[0] - wide * {"start": 0, "middle": 0.5, "end": 1}[way[2]]
            return left, y + way[1] - 9, left + wide, y + way[1] + 2

        best = min(self._AROUND, key=cost)
        self._boxes.append((*box(best), 10.0))
        return svg_text(x + best[0], y + best[1], escape(name), best[2])


def _layers(study: Study, colours: dict[str, str]) -> str:
    finite = [c.sqnr_db for c in study.costs if math.isfinite(c.sqnr_db)]
    axes = _Axes([0, max(len(study.tensors) - 1, 1)], finite)
    parts = [axes.frame("tensors, in the order of the file", "SQNR, dB", ticks=False)]
    for label, colour in colours.items():
        costs = [(k, c) for k, c in enumerate(study.of(label)) if math.isfinite(c.sqnr_db)]
        line = " ".join(f"{axes.x(k):.1f},{axes.y(c.sqnr_db):.1f}" for k, c in costs)
        parts.append(f"<polyline class=curve points='{line}' style='stroke:{colour}' />")
        for k, c in costs if len(costs) <= 200 else ():
            parts.append(
                f"<circle cx='{axes.x(k):.1f}' cy='{axes.y(c.sqnr_db):.1f}' r=2.4 style='fill:{colour}'>"
                f"<title>{escape(c.tensor)}, {escape(label)}: {c.sqnr_db:.1f} dB</title></circle>"
            )
    return _figure("SQNR of each tensor", "".join(parts), "Colours as above; a tensor without error has no point.")


def _spread(study: Study, colours: dict[str, str]) -> str:
    counts = study.spread.counts
    total, top = sum(counts) or 1, max(counts, default=1) or 1
    used = max((k + 1 for k, n in enumerate(counts) if n), default=1)
    step = (_W - _LEFT - _RIGHT) / used
    base = 170
    parts = [f"<line class=axis x1={_LEFT} x2={_W - _RIGHT} y1={base} y2={base} />"]
    for k, n in enumerate(counts[:used]):
        tall = (base - _TOP - 10) * n / top
        parts.append(
            f"<rect class=bar x='{_LEFT + (k + 0.08) * step:.1f}' y='{base - tall:.1f}' width='{step * 0.84:.1f}' "
            f"height='{tall:.1f}'><title>2^-{k}: {100 * n / total:.3g} %</title></rect>"
        )
    parts += [svg_text(_LEFT + (k + 0.5) * step, base + 14, str(-k)) for k in range(0, used, max(1, used // 10))]
    row = base + 26.0
    shown = [t for t in study.trials if not isinstance(t.format, BlockFormat)]
    for trial in shown:
        normal, lowest = _reach(trial)
        left, colour = _LEFT, colours[trial.label]
        for depth, strength in ((lowest, 0.35), (normal, 1.0)):
            width = min(max(depth, 0), used) * step
            parts.append(
                f"<rect x={left} y='{row:.1f}' width='{width:.1f}' height=9 "
                f"style='fill:{colour};opacity:{strength}'><title>{escape(trial.label)}</title></rect>"
            )
        end = _LEFT + min(max(lowest, 0), used) * step
        if end < _W * 0.7:
            parts.append(svg_text(end + 6, row + 8.5, escape(trial.label), "start"))
        else:
            white = "style='fill:#fff;font-size:9.5px'"
            parts.append(f"<text {white} x={_LEFT + 5} y='{row + 8:.1f}'>{escape(trial.label)}</text>")
        row += 14
    about = (
        "Binades below the largest magnitude of each tensor (powers of two), all tensors together; below them how far "
        "a format reaches when that magnitude has its largest value: full colour normal, pale subnormal. Block formats "
        "reach as far below the largest of each block."
    )
    return _figure("Values against the reach of the formats", "".join(parts), about, int(row + 6), "last")


def _reach(trial: Trial) -> tuple[float, float]:
    """Return how many binades below its largest value a format is normal, and how many it has values at all."""
    top = math.log2(largest_precise(trial.format))
    return top - _log2(trial.format.min_normal), top - _log2(trial.format.min_subnormal)


def _log2(value: Fraction) -> float:
    return math.log2(value.numerator) - math.log2(value.denominator)
