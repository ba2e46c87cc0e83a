"""What a study found: a cost for each tensor and format, and what follows: totals, the Pareto front, the worst."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..convert.report import decibels
from ..files import AtomicFile
from ..files.base import Path
from .plan import Trial

__all__ = ["Cost", "Skipped", "Spread", "Study", "Summary"]


@dataclass(frozen=True)
class Cost:
    """What one format does to one tensor.

    Attributes
    ----------
    tensor, format : str
        `format` is the trial's label, such as "int8@channel".
    source : str
        Format of the tensor.
    shape, elements
    nbytes : int
        Bytes of the memory image and of all scales.
    signal, noise : float
        ``sum x**2`` and ``sum (x - y)**2`` in float64, over the elements finite on both sides.
    max_rel_error, mean_rel_error : float
        ``|x - y| / |x|`` over the same elements without zeros.
    overflowed : int
        Finite elements that round beyond the range of the format under their scale (block formats: beyond the range
        of the whole format; what saturates inside a block is part of the noise).
    underflowed : int
        Other elements that were not zero and are now.
    nonfinite : int
        Infinities and NaNs of the tensor.
    """

    tensor: str
    format: str
    source: str
    shape: tuple[int, ...]
    elements: int
    nbytes: int
    signal: float
    noise: float
    max_rel_error: float
    mean_rel_error: float
    overflowed: int
    underflowed: int
    nonfinite: int

    @property
    def sqnr_db(self) -> float:
        """``10 log10(signal / noise)``; inf where nothing changed."""
        return decibels(self.signal, self.noise)

    @property
    def bits_per_value(self) -> Fraction:
        """Effective bits per value, with all scales."""
        return Fraction(8 * self.nbytes, max(self.elements, 1))


@dataclass(frozen=True)
class Skipped:
    """A tensor that was not studied, and its format."""

    tensor: str
    format: str

    @property
    def expected(self) -> bool:
        """Whether it holds integers or truth values, which nobody wants to study."""
        return self.format == "bool" or self.format.lstrip("u").startswith("int")


@dataclass(frozen=True)
class Spread:
    """How far values lie below the largest of their tensor: counts by binade, 0 for that of the largest.

    Attributes
    ----------
    counts : list of int
        The last one counts all that lie further down.
    zeros : int
    """

    counts: list[int]
    zeros: int

    @classmethod
    def of(cls, parts: Iterable[np.ndarray[Any, Any]], binades: int = 40) -> Spread:
        """Count the values of a tensor that comes in parts."""
        fields = np.zeros(256, np.int64)
        for x in parts:
            with np.errstate(over="ignore"):  # beyond float32's range, like infinities, is nothing to count
                patterns = np.ascontiguousarray(x, np.float32).reshape(-1).view(np.uint32)
            fields += np.bincount((patterns >> np.uint32(23)) & np.uint32(255), minlength=256)
        finite = fields[1:255]
        top = int(np.flatnonzero(finite)[-1]) if finite.any() else 0
        down = finite[: top + 1][::-1]
        counts = [*down[: binades - 1].tolist(), int(down[binades - 1 :].sum())]
        return cls(counts + [0] * (binades - len(counts)), int(fields[0]))

    @classmethod
    def total(cls, spreads: Sequence[Spread]) -> Spread:
        """Add up."""
        return cls([sum(n) for n in zip(*(s.counts for s in spreads))], sum(s.zeros for s in spreads))


@dataclass(frozen=True)
class Summary:
    """A format over all tensors.

    Attributes
    ----------
    format : str
    nbytes, bits_per_value
    sqnr_db : float
        Of all elements together.
    median_sqnr_db, min_sqnr_db : float
        Over the tensors.
    max_rel_error, mean_rel_error : float
    overflowed, underflowed : float
        Shares of the elements.
    worst : str
        The tensor with the least SQNR.
    pareto : bool
        No other format has fewer bits and no less SQNR, or as many bits and more SQNR.
    """

    format: str
    nbytes: int
    bits_per_value: Fraction
    sqnr_db: float
    median_sqnr_db: float
    min_sqnr_db: float
    max_rel_error: float
    mean_rel_error: float
    overflowed: float
    underflowed: float
    worst: str
    pareto: bool


@dataclass(frozen=True)
class Study:
    """All costs, in the order of the tensors and the formats.

    Attributes
    ----------
    source : str
    trials : tuple of Trial
    costs : tuple of Cost
    skipped : tuple of Skipped
    spread : Spread
    """

    source: str
    trials: tuple[Trial, ...]
    costs: tuple[Cost, ...]
    skipped: tuple[Skipped, ...]
    spread: Spread

    def __str__(self) -> str:
        """A line for each format, with its bits per value, and SQNR in dB; * marks the Pareto front."""
        rows: list[tuple[str, ...]] = [("format", "", "bits", "SQNR", "median", "least", "worst tensor")]
        for s in self.summary:
            figures = (f"{x:.1f}" for x in (s.sqnr_db, s.median_sqnr_db, s.min_sqnr_db))
            rows.append((s.format, "*" * s.pareto, f"{float(s.bits_per_value):.3f}", *figures, s.worst))
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = [
            "  ".join(f"{cell:>{w}}" if 2 <= i <= 5 else f"{cell:<{w}}" for i, (cell, w) in enumerate(zip(row, widths)))
            for row in rows
        ]
        return "\n".join(line.rstrip() for line in lines)

    @property
    def tensors(self) -> list[str]:
        """Names of the tensors studied."""
        return list(dict.fromkeys(c.tensor for c in self.costs))

    def of(self, label: str) -> list[Cost]:
        """Return the costs of one format."""
        return [c for c in self.costs if c.format == label]

    @property
    def summary(self) -> list[Summary]:
        """One line for each format, fewest bits first, then best SQNR."""
        plain = [_sum_up(trial.label, self.of(trial.label)) for trial in self.trials]
        plain.sort(key=lambda s: (s["bits_per_value"], -s["sqnr_db"]))
        return [Summary(**s, pareto=not any(_beats(other, s) for other in plain)) for s in plain]

    @property
    def pareto(self) -> list[Summary]:
        """The formats that no other one beats."""
        return [s for s in self.summary if s.pareto]

    @property
    def worst(self) -> list[Cost]:
        """For each tensor its worst format, and of these the tensors that fall furthest below their format's median."""
        medians = {s.format: s.median_sqnr_db for s in self.summary}

        def below(cost: Cost) -> float:
            gap = cost.sqnr_db - medians[cost.format]
            return 0.0 if math.isnan(gap) else gap

        lowest: dict[str, Cost] = {}
        for cost in self.costs:
            if cost.tensor not in lowest or below(cost) < below(lowest[cost.tensor]):
                lowest[cost.tensor] = cost
        return sorted(lowest.values(), key=below)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON takes it; infinities are strings."""
        return {
            "source": self.source,
            "summary": [_plain(_fields(s)) for s in self.summary],
            "worst": [c.tensor for c in self.worst[:10]],
            "skipped": [_fields(s) for s in self.skipped],
            "tensors": [_plain(_row(c)) for c in self.costs],
        }

    def to_csv(self) -> str:
        """Return one line for each tensor and format."""
        text = io.StringIO()
        rows = [_row(c) for c in self.costs]
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({**r, "shape": "x".join(map(str, r["shape"]))} for r in rows)
        return text.getvalue()

    def to_html(self, path: Path, *, force: bool = False) -> None:
        """Write a page with tables and drawings, complete in itself.

        Raises
        ------
        FileError
            When the file exists, without `force`, or cannot be written.
        """
        from .html import page

        with AtomicFile(path, force) as file:
            file.write(page(self).encode())


def _sum_up(label: str, costs: list[Cost]) -> dict[str, Any]:
    elements = max(sum(c.elements for c in costs), 1)
    figures = sorted(c.sqnr_db for c in costs)
    nbytes = sum(c.nbytes for c in costs)
    return {
        "format": label,
        "nbytes": nbytes,
        "bits_per_value": Fraction(8 * nbytes, elements),
        "sqnr_db": decibels(math.fsum(c.signal for c in costs), math.fsum(c.noise for c in costs)),
        "median_sqnr_db": figures[(len(figures) - 1) // 2],
        "min_sqnr_db": figures[0],
        "max_rel_error": max(c.max_rel_error for c in costs),
        "mean_rel_error": math.fsum(c.mean_rel_error * c.elements for c in costs) / elements,
        "overflowed": sum(c.overflowed for c in costs) / elements,
        "underflowed": sum(c.underflowed for c in costs) / elements,
        "worst": min(costs, key=lambda c: c.sqnr_db).tensor,
    }


def _beats(a: dict[str, Any], b: dict[str, Any]) -> bool:
    bits, sqnr = a["bits_per_value"] - b["bits_per_value"], (a["sqnr_db"], b["sqnr_db"])
    return bool((bits < 0 and sqnr[0] >= sqnr[1]) or (bits == 0 and sqnr[0] > sqnr[1]))


def _fields(item: Any) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__dataclass_fields__}


def _row(c: Cost) -> dict[str, Any]:
    found = _fields(c)
    elements = max(c.elements, 1)
    for name in ("signal", "noise"):
        del found[name]
    found["overflowed"], found["underflowed"] = c.overflowed / elements, c.underflowed / elements
    return {**found, "bits_per_value": float(c.bits_per_value), "sqnr_db": c.sqnr_db}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    def value(v: Any) -> Any:
        if isinstance(v, Fraction):
            return float(v)
        if isinstance(v, tuple):
            return list(v)
        return str(v) if isinstance(v, float) and not math.isfinite(v) else v

    return {name: value(v) for name, v in row.items()}
