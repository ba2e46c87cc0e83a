"""How rates grow with the number of elements and of threads, as a table and as a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from ..chunks import usable_cpus
from .measure import Row, collect, in_turns

__all__ = ["Point", "draw", "measure_scaling"]

_ROWS = (
    ("float32 to", "float8_e4m3fn"),
    ("float32 to", "hifloat8"),
    ("float32 to and from 16 bits", "bfloat16"),
    ("decode to float32", "float8_e4m3fn"),
    ("blocks, encode", "mx9"),
)
_SIZES = tuple(1 << power for power in range(10, 27, 2))


class Point(NamedTuple):
    """Million elements per second of a row; of the plain copy beside it, where the row has one, with ``threads=0``."""

    row: str
    elements: int
    threads: int
    rate: float


def measure_scaling(repeat: int, sizes: Sequence[int] = _SIZES) -> Iterator[list[Point]]:
    """Measure some rows at each size, with 1, 2, 4 ... threads up to the number of processors; yield size by size."""
    threads = [1 << power for power in range(usable_cpus().bit_length())]
    rows: dict[tuple[str, str], Row] = {(row.group, row.name): row for row in collect()}
    for key in _ROWS:
        prepare = rows[key].prepare
        assert prepare is not None
        for size in sizes:
            case = prepare(size)
            jobs: dict[str, Callable[[], object]] = {str(n): partial(case.ours, n) for n in threads}
            if case.limit is not None:
                jobs["0"] = case.limit
            times = in_turns(jobs, repeat, warm_up=0.05)
            yield [
                Point(": ".join(key), case.elements, int(n), case.elements / median(seconds) / 1e6)
                for n, seconds in sorted(times.items())
            ]


def draw(points: Sequence[Point], path: Path) -> None:
    """Write a picture of the points: rates by elements, one panel per row, one line per number of threads."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    names = list(dict.fromkeys(p.row for p in points))
    figure = Figure(figsize=(3.1 * len(names), 3.4), layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for panel, name in zip(panels, names):
        for threads in sorted({p.threads for p in points if p.row == name}):
            line = [p for p in points if p.row == name and p.threads == threads]
            label = f"{threads} thread{'s' * (threads > 1)}" if threads else "plain copy, 1 thread"
            style = {"color": "0.55", "linestyle": "--"} if not threads else {"marker": "o", "markersize": 3}
            panel.plot([p.elements for p in line], [p.rate for p in line], label=label, **style)
        panel.set_title(name, fontsize=9)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xlabel("elements", fontsize=9)
        panel.tick_params(labelsize=8)
        panel.grid(alpha=0.3)
    panels[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panels[0].set_ylabel("million elements per second", fontsize=9)
    panels[0].legend(fontsize=8)
    figure.savefig(path, dpi=110)
