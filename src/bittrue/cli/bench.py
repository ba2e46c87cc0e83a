"""`bittrue bench`: the tables around `bittrue.bench`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..bench import PEERS, Point, Result, Row, Settings, collect, draw, header, measure_scaling, run
from .output import console, print_json, table

__all__ = ["bench"]

_SHORT = {"share_one": "one", "share_two": "two", "one": "rate", "megabytes": "peak", "seconds": "time"}
_GOAL_TEXT = {"share_one": "{:g}", "share_two": "{:g}", "one": "{:g}/us", "megabytes": "{:g} MB"}


def bench(size: str, repeat: int, only: str | None, full: bool, form: str, picture: str | None = None) -> None:
    """Measure and print; `form` is "table", "json", "markdown" or "list"; `picture` is a file for the scaling."""
    plot = None if picture is None else Path(picture)
    if plot is not None:
        if find_spec("matplotlib") is None:
            raise ValueError("--plot needs matplotlib: pip install 'bittrue[plot]'")
        if not plot.parent.is_dir():
            raise ValueError(f"--plot {plot}: there is no directory {plot.parent}")
    settings = Settings(_size(size), repeat, (2 << 30) if full else (256 << 20))
    rows = collect(only)
    if form == "list":
        for row in rows:
            print(f"{row.group}: {row.name}")
        return
    facts = header()  # before the measurement, whose own load it would show
    results = _measure(rows, settings)
    points = _scaling(settings) if plot is not None else []
    if plot is not None:
        draw(points, plot)
    if form == "json":
        about = {**facts, "size": settings.size, "repeat": settings.repeat, "file_bytes": settings.file_bytes}
        print_json({**about, "rows": [_as_dict(r) for r in results], "scaling": [p._asdict() for p in points]})
    elif form == "markdown":
        _print_markdown(results, facts, settings)
        if plot is not None:
            _print_scaling(points, plot)
    else:
        _print_tables(results, facts, settings)


def _size(text: str) -> int:
    base, power, exponent = text.partition("^")
    try:
        return int(base) ** int(exponent) if power else int(text)
    except ValueError:
        raise ValueError(f"--size {text!r} is not a number of elements; expected one such as 2^24 or 1000000") from None


def _measure(rows: Sequence[Row], settings: Settings) -> list[Result]:
    if not sys.stderr.isatty():
        return list(run(rows, settings))
    screen = console(stderr=True)
    results: list[Result] = []
    with screen.status("") as status:
        for row in rows:
            status.update(f"{len(results) + 1} of {len(rows)}: {row.name}")
            results += run([row], settings)
    return results


def _scaling(settings: Settings) -> list[Point]:
    with console(stderr=True).status("scaling"):
        return [point for points in measure_scaling(settings.repeat) for point in points]


def _as_dict(result: Result) -> dict[str, Any]:
    return {
        "group": result.row.group,
        "name": result.row.name,
        "figures": {name: float(f"{value:.4g}") for name, value in result.figures.items()},
        "goals": dict(result.row.goals),
        "met": result.verdicts,
    }


def _groups(results: Sequence[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.row.group, []).append(result)
    return groups


#: What rows about PyTorch are set beside: the same conversion of a NumPy array, the same model as it is.
_OURS = ("NumPy", "plain")


def _columns(results: Sequence[Result]) -> list[str]:
    """Return the headings of a group: only figures that some row has."""
    named = [
        ("one", "1 thr"),
        ("two", "2 thr"),
        ("limit", "copy"),
        ("share_one", "share"),
        *((f"times {peer}", peer) for peer in (*PEERS, *_OURS)),
        ("seconds", "time"),
        ("MB/s", "MB/s"),
        ("copy MB/s", "file copy"),
        ("megabytes", "peak MB"),
    ]
    return [heading for name, heading in named if any(name in r.figures for r in results)]


def _cells(result: Result, headings: Sequence[str]) -> list[str]:
    figures = result.figures
    shares = [f"{figures[name]:.2f}" for name in ("share_one", "share_two") if name in figures]
    texts = {
        "1 thr": _number(figures.get("one"), "{:.0f}"),
        "2 thr": _number(figures.get("two"), "{:.0f}"),
        "copy": _number(figures.get("limit"), "{:.0f}"),
        "share": " ".join(shares),
        **{peer: _number(figures.get(f"times {peer}"), "{:.3g}x") for peer in (*PEERS, *_OURS)},
        "time": _duration(figures["seconds"]) if "seconds" in figures else "",
        "MB/s": _number(figures.get("MB/s"), "{:.0f}"),
        "file copy": _number(figures.get("copy MB/s"), "{:.0f}"),
        "peak MB": _number(figures.get("megabytes"), "{:.0f}"),
    }
    return [texts[heading] for heading in headings]


def _number(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _goals(result: Result) -> str:
    """Return the goals of a row that could be measured, in one short text."""
    verdicts = result.verdicts
    return " ".join(
        _duration(goal) if name == "seconds" else _GOAL_TEXT.get(name, "{:g}x").format(goal)
        for name, goal in result.row.goals.items()
        if name in verdicts
    )


def _duration(seconds: float) -> str:
    scale, unit = next(((k, u) for k, u in ((1.0, "s"), (1e3, "ms")) if seconds * k >= 0.1), (1e6, "us"))
    return f"{seconds * scale:.2g} {unit}" if seconds * scale < 100 else f"{seconds * scale:.0f} {unit}"


def _verdict(result: Result) -> str:
    """Return "ok", or which goals are missed."""
    missed = [_SHORT.get(name, name.removeprefix("times ")) for name, met in result.verdicts.items() if not met]
    if missed:
        return f"below: {', '.join(missed)}"
    return "ok" if result.verdicts else ""


def _about(facts: dict[str, str], settings: Settings) -> list[str]:
    return [
        *(f"{name}: {value}" for name, value in facts.items()),
        f"arrays: {settings.size:,} elements, output allocated before; medians of {settings.repeat} rounds in turns",
        "1 thr, 2 thr: million elements per second on one and two threads",
        "copy: NumPy's plain copy between the same widths, in the same run; share: of the copy, on one and two threads",
        f"{', '.join(PEERS)}: how many times as fast as that, one thread each",
    ]


def _summary(results: Sequence[Result]) -> str:
    verdicts = [met for r in results for met in r.verdicts.values()]
    return f"{sum(verdicts)} of {len(verdicts)} goals met"


def _print_tables(results: Sequence[Result], facts: dict[str, str], settings: Settings) -> None:
    screen = console()
    for line in _about(facts, settings):
        screen.print(line)
    for group, members in _groups(results).items():
        headings = _columns(members)
        shown = table("", *headings, "goal", "", right=headings, title=group, padding=0)
        for column in shown.columns[-2:]:
            column.no_wrap, column.overflow = False, "fold"
        for result in members:
            style = "red" if not all(result.verdicts.values()) else None
            shown.add_row(result.row.name, *_cells(result, headings), _goals(result), _verdict(result), style=style)
        screen.print()
        screen.print(shown)
    screen.print(f"\n{_summary(results)}", style="bold")


_PAGE = """\
# Benchmarks

How they are taken, and what one machine gave.

## Method

`bittrue bench` (or `make bench`) prints all figures; nothing in the test suite looks at a clock.

- Inputs are 2^24 numbers from a standard normal distribution (integers: a thousand times that), outputs are allocated
  before. A file is a synthetic safetensors checkpoint of 256 MB, `--full`: 2 GB.
- **The limit** is NumPy's plain copy between the same widths in the same run: float32 to int8 for 8-bit and narrower
  codes, float32 to int16 for 16-bit ones, uint8 to float32 for decoding, and so on. Nothing that reads and writes the
  same bytes with one thread can be much faster.
- Arrays are warm: each row runs for a while before it is timed, until its arrays have settled in the last-level cache
  (where they fit, as they do here; a server's holds hundreds of megabytes). Cold, copy and conversion are both slower.
- What is compared runs **in turns**: copy, one thread, two threads, each quick peer, then the same again, starting
  with another one; eleven rounds. Rates are medians. Shares and "times as fast" are medians of the ratios within each
  round, so that what slows the machine down for a while cancels out. Peers more than eight times slower than the
  copy take their turns afterwards: their long passes would let the cache go cold, and flatter our shares.
- Peers are used as their documentation shows: `numpy.copyto` into their dtype, torch's `copy_` on one thread, gfloat's
  `round_ndarray` and `encode_ndarray`, torchao's `to_mx` (scales and elements), amd-quark's `fake_quantize_mx6_mx9`;
  the last three allocate their results. Those that are not installed are left out.
- Start-up times are those of fresh processes on a warm disk. Numba imports SciPy where it is installed, which bittrue
  does without: the first conversion is timed without it, and also with it where it is there. Peak memory is
  the child's own high-water mark.
- Goals stand in each row; "below" names those that are missed: one, two: the share on that many threads.

One format: `bittrue bench --only hifloat8`; a quick look: `--size 2^20`; for programs: `--json`. This page:

<!-- not run: it takes minutes -->
```console
$ bittrue bench --markdown > docs/benchmarks.md
```

## Results
"""


def _print_markdown(results: Sequence[Result], facts: dict[str, str], settings: Settings) -> None:
    """Write docs/benchmarks.md."""
    print(_PAGE)
    for line in _about(facts, settings):
        print(f"- {line}")
    for group, members in _groups(results).items():
        headings = _columns(members)
        print(f"\n### {group}\n")
        print("| | " + " | ".join([*headings, "goal", "met"]) + " |")
        print("|---|" + "---:|" * len(headings) + "---|---|")
        for result in members:
            cells = [result.row.name, *_cells(result, headings), _goals(result), _verdict(result)]
            print(f"| {' | '.join(cells)} |")
    print(f"\n{_summary(results)}.")


def _print_scaling(points: Sequence[Point], plot: Path) -> None:
    print("\n### Elements and threads\n")
    print("Million elements per second; beside the rates, their share of the plain copy of the same size.\n")
    print(f"![rates by elements and threads]({plot.parent.name}/{plot.name})\n")
    threads = sorted({p.threads for p in points if p.threads})
    print("| | elements | copy | " + " | ".join(f"{n} thr" for n in threads) + " |")
    print("|---|---:|---:|" + "---:|" * len(threads))
    by_case: dict[tuple[str, int], dict[int, float]] = {}
    for p in points:
        by_case.setdefault((p.row, p.elements), {})[p.threads] = p.rate
    for (row, elements), rates in by_case.items():
        copy = rates.get(0)
        cells = [f"{rates[n]:.0f}" + ("" if copy is None else f" ({rates[n] / copy:.2f})") for n in threads]
        print(f"| {row} | {elements:,} | {_number(copy, '{:.0f}')} | {' | '.join(cells)} |")
