"""Rows, and how they are timed: what is compared runs in turns, so that noise disturbs all alike."""

from __future__ import annotations

import fnmatch
import importlib
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata, util
from statistics import median

from ..chunks import usable_cpus

__all__ = ["Case", "Result", "Row", "Settings", "collect", "header", "run", "throughput"]

#: Modules with a function ``rows() -> list[Row]``; those that are not there are passed over.
ROOMS = (
    "bittrue.bench.codec",
    "bittrue.ascend.bench",
    "bittrue.aie.bench",
    "bittrue.blocks.bench",
    "bittrue.comparison.bench",
    "bittrue.studying.bench",
    "bittrue.explorer.bench",
    "bittrue.bench.process",
)

#: Figures that should be small; all others should be large.
AT_MOST = frozenset({"seconds", "megabytes"})

_PACKAGES = ("bittrue", "numpy", "numba", "ml_dtypes", "en_dtypes", "torch", "gfloat", "torchao", "amd-quark")


@dataclass(frozen=True)
class Settings:
    """How much to measure.

    Attributes
    ----------
    size : int
        Elements per array.
    repeat : int
        Rounds; the figures are medians.
    file_bytes : int
        Size of the file to convert.
    warm_up : float
        Seconds per row before the timed rounds.
    """

    size: int = 1 << 24
    repeat: int = 11
    file_bytes: int = 256 << 20
    warm_up: float = 0.4

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"size={self.size} must be at least 1 element")
        if self.repeat < 1:
            raise ValueError(f"repeat={self.repeat} must be at least 1")


@dataclass(frozen=True)
class Row:
    """One line of the benchmark.

    Attributes
    ----------
    group, name : str
    measure : callable
        Takes the `Settings` and returns the figures by name. Those known to the report: "one" and "two" (Melem/s on one
        and two threads), "limit" (Melem/s of the copy), "share_one" and "share_two" (of the limit), a peer's name
        (Melem/s) and "times <peer>" (how much faster "one" is), "seconds", "megabytes", "MB/s".
    goals : mapping
        What a figure should reach at least ("seconds" and "megabytes": at most).
    prepare : callable, optional
        Of throughput rows: makes the `Case` for a number of elements.
    """

    group: str
    name: str
    measure: Callable[[Settings], dict[str, float]]
    goals: Mapping[str, float] = field(default_factory=dict)
    prepare: Callable[[int], Case] | None = None


@dataclass(frozen=True)
class Result:
    """The figures of a row."""

    row: Row
    figures: dict[str, float]

    @property
    def verdicts(self) -> dict[str, bool]:
        """Whether each goal whose figure could be measured here is met."""
        return {
            name: (self.figures[name] <= goal if name in AT_MOST else self.figures[name] >= goal)
            for name, goal in self.row.goals.items()
            if name in self.figures
        }


@dataclass(frozen=True)
class Case:
    """What a throughput row compares, arrays allocated and filled.

    Attributes
    ----------
    elements : int
    ours : callable
        Takes the number of threads.
    limit : callable, optional
        NumPy's plain copy from and to the same widths.
    peers : mapping of name to callable
    """

    elements: int
    ours: Callable[[int], object]
    limit: Callable[[], object] | None = None
    peers: Mapping[str, Callable[[], object]] = field(default_factory=dict)


def throughput(
    group: str, name: str, prepare: Callable[[int], Case], goals: Mapping[str, float] | None = None
) -> Row:
    """Return a row that times the `Case` which `prepare` makes for a number of elements."""

    def measure(settings: Settings) -> dict[str, float]:
        case = prepare(settings.size)
        jobs: dict[str, Callable[[], object]] = {} if case.limit is None else {"limit": case.limit}
        jobs["one"] = lambda: case.ours(1)
        if usable_cpus() > 1:
            jobs["two"] = lambda: case.ours(2)
        times = in_turns({**jobs, **case.peers}, settings.repeat, settings.warm_up)
        figures = {name: case.elements / median(seconds) / 1e6 for name, seconds in times.items()}
        for ours in ("one", "two"):
            if ours in times and "limit" in times:
                figures[f"share_{ours}"] = _ratio(times["limit"], times[ours])
        for peer in case.peers:
            figures[f"times {peer}"] = _ratio(times[peer], times["one"][: len(times[peer])])
        return figures

    return Row(group, name, measure, goals or {}, prepare)


def in_turns(jobs: Mapping[str, Callable[[], object]], repeat: int, warm_up: float = 0.0) -> dict[str, list[float]]:
    """Time every job `repeat` times, one after the other in each round.

    Before that, the jobs run for `warm_up` seconds: it takes dozens of passes until arrays that fit into a large
    last-level cache have settled there, and only then are rates steady. Jobs that are `_SLOW` times slower than the
    quickest take turns among themselves, after the others and `_SLOW_ROUNDS` times at most: while one of them runs, the
    arrays of the quick ones would leave the cache again, and all would be measured at the speed of main memory.
    """
    for job in jobs.values():
        job()  # what compiles, compiles now
    once = {name: _seconds(job) for name, job in jobs.items()}
    bound = _SLOW * min(once.values())
    quick = [name for name in jobs if once[name] <= bound]
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for names in (quick, [name for name in jobs if once[name] > bound]):
        until = time.perf_counter() + (warm_up if names is quick else 0.0)
        while time.perf_counter() < until:
            for name in names:
                jobs[name]()
        for turn in range(repeat if names is quick else min(repeat, _SLOW_ROUNDS)):
            for i in range(len(names)):
                name = names[(turn + i) % len(names)]
                times[name].append(_seconds(jobs[name]))
    return times


_SLOW = 8
_SLOW_ROUNDS = 5


def _seconds(job: Callable[[], object]) -> float:
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def _ratio(slower: Sequence[float], faster: Sequence[float]) -> float:
    """Median of the ratios within each round: what slows the machine down for a while cancels out."""
    return median(a / b for a, b in zip(slower, faster))


# --- all rows ---------------------------------------------------------------------------------------------------------


def collect(pattern: str | None = None) -> list[Row]:
    """Return the rows of all rooms; with `pattern`, those whose "group: name" contains it.

    A pattern with ``*`` or ``?`` must match the name or "group: name".
    """
    rows: list[Row] = []
    for room in ROOMS:
        if util.find_spec(room.rpartition(".")[0]) is not None and util.find_spec(room) is not None:
            rows += importlib.import_module(room).rows()
    if pattern is None:
        return rows
    shape = pattern.lower() if any(c in pattern for c in "*?[") else f"*{pattern.lower()}*"
    chosen = [
        row
        for row in rows
        if any(fnmatch.fnmatchcase(text.lower(), shape) for text in (row.name, f"{row.group}: {row.name}"))
    ]
    if not chosen:
        groups = "; ".join(dict.fromkeys(row.group for row in rows))
        raise ValueError(f"only={pattern!r} matches no row of the benchmark (groups: {groups})")
    return chosen


def run(rows: Sequence[Row], settings: Settings) -> Iterator[Result]:
    """Measure one row after the other."""
    for row in rows:
        yield Result(row, row.measure(settings))


def header() -> dict[str, str]:
    """Return what the figures depend on: date, processor, versions."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cpu": f"{_cpu_name()}, {usable_cpus()} usable, {_load()}",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }


def _load() -> str:
    """Say how busy others keep the machine: figures of a busy one are not worth much."""
    return f"load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"


def _cpu_name() -> str:
    if sys.platform == "linux":
        names, flags = [], ""
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    names.append(value.strip())
                elif key.strip() in ("flags", "Features"):
                    flags = value
        widest = next((name for flag, name in _VECTORS if f" {flag} " in f" {flags.strip()} "), "")
        if names:
            return names[0] + (f" ({widest})" if widest else "")
    return platform.processor() or platform.machine()


_VECTORS = (("avx512bw", "AVX-512"), ("avx2", "AVX2"), ("asimd", "NEON"))
