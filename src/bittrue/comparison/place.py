"""Where mismatches sit: counts by row, column and block while a tensor passes, and what stands out in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Axis", "Geometry", "Place"]

Counts = np.ndarray[Any, Any]

_MOST = 1 << 20  # rows, and columns, that are counted one by one
_GRID = (48, 96)  # lines and columns of the map at most
_BLOCK = 16
_FOLD = 4096  # a longer tensor of one axis is folded into rows
_PERIODS = (2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Axis:
    """How the mismatches are spread over one axis.

    Attributes
    ----------
    name : str
        "axis 1", or what a folded axis stands for.
    size : int
    counts : ndarray
        Mismatches at every index.
    """

    name: str
    size: int
    counts: Counts


@dataclass(frozen=True)
class Place:
    """Where the mismatches of a tensor sit.

    Attributes
    ----------
    first, last : int
        Flat positions of the first and the last mismatch; -1 without any.
    axes : list of Axis
    blocks_hit, blocks, most_in_block : int
        Blocks of 16 neighbouring elements with a mismatch, all blocks, most mismatches in one.
    grid : ndarray
        A coarse map, lines by columns.
    line_label, column_label : str
        What the lines and columns of the map are.
    findings : list of str
        What stands out, most telling first; empty without mismatches.
    """

    first: int
    last: int
    axes: list[Axis]
    blocks_hit: int
    blocks: int
    most_in_block: int
    grid: Counts
    line_label: str
    column_label: str
    findings: list[str] = field(default_factory=list)


class Geometry:
    """A tensor seen as rows and columns, with the counters that the kernel fills."""

    def __init__(self, shape: tuple[int, ...], rows: int, columns: int, folded: bool) -> None:
        self.shape, self.rows, self.columns, self.folded = shape, rows, columns, folded
        self.shift = max((columns - 1).bit_length() - _MOST.bit_length() + 1, 0)
        self.group = self._row_group()
        groups = -(-rows // self.group)
        cells = (columns + (1 << self.shift) - 1) >> self.shift
        self.row_hits, self.column_hits = np.zeros(groups, np.int64), np.zeros(cells, np.int64)
        lines, across = min(groups, _GRID[0]), min(cells, _GRID[1])
        self.row_cell = (np.arange(groups) * lines // groups).astype(np.uint8)
        self.column_cell = (np.arange(cells) * across // cells).astype(np.uint8)
        self.grid = np.zeros((lines, across), np.int64)
        self.blocks = np.array([-1, 0, 0, 0])
        self.first = self.last = -1

    @classmethod
    def of(cls, shape: tuple[int, ...]) -> Geometry:
        """Return the geometry of a shape: the last axis longer than 1 makes the columns."""
        sizes = [n for n in shape if n != 1]
        if not sizes or 0 in sizes:
            return cls(shape, 1, 1, False)
        if len(sizes) == 1 and sizes[0] >= _FOLD:
            width = 1 << max((sizes[0].bit_length() + 1) // 2, 6)
            return cls(shape, -(-sizes[0] // width), width, True)
        return cls(shape, math.prod(sizes[:-1]), sizes[-1], False)

    def _row_group(self) -> int:
        """Return how many rows are counted together: whole trailing axes where that suffices."""
        if self.rows <= _MOST:
            return 1
        group = 1
        for n in reversed([n for n in self.shape if n != 1][:-1]):
            group *= n
            if self.rows // group <= _MOST and group < self.rows:
                return group
        return -(-self.rows // _MOST)

    def add(self, where: Counts, base: int) -> None:
        """Count the mismatches at ascending positions `base` + `where`."""
        from ..kernels.compare import locate

        locate(
            where, base, self.columns, self.shift, self.group, self.row_cell, self.column_cell,
            self.row_hits, self.column_hits, self.grid, self.blocks,
        )
        if self.first < 0:
            self.first = base + int(where[0])
        self.last = base + int(where[-1])

    def place(self, mismatches: int) -> Place:
        """Return what was counted."""
        elements = math.prod(self.shape)
        blocks = -(-elements // _BLOCK)
        hit, most = int(self.blocks[1]), int(self.blocks[3])
        axes = self._axes()
        lines, columns = self._labels()
        place = Place(self.first, self.last, axes, hit, blocks, most, self.grid, lines, columns)
        place.findings.extend(_findings(place, mismatches, elements, self._exact_columns()))
        return place

    def _labels(self) -> tuple[str, str]:
        if self.folded:
            return f"position // {self.columns}", f"position % {self.columns}"
        kept = [i for i, n in enumerate(self.shape) if n != 1]
        if len(kept) < 2:
            return "", f"axis {kept[0]}" if kept else ""
        before = kept[:-1]
        return ("axis " if len(before) == 1 else "axes ") + ", ".join(map(str, before)), f"axis {kept[-1]}"

    def _exact_columns(self) -> Counts | None:
        return self.column_hits if self.shift == 0 else None

    def _axes(self) -> list[Axis]:
        """Return the axes that were counted index by index."""
        if self.folded or 0 in self.shape:
            return []
        kept = [i for i, n in enumerate(self.shape) if n != 1]
        if not kept:
            return []
        found = []
        sizes, group, outer = [self.shape[i] for i in kept[:-1]], self.group, kept[:-1]
        while group > 1 and sizes and group % sizes[-1] == 0:
            group //= sizes.pop()
            outer = outer[:-1]
        if group == 1 and sizes:
            shaped = self.row_hits.reshape(sizes)
            for k, i in enumerate(outer):
                others = tuple(j for j in range(len(sizes)) if j != k)
                found.append(Axis(f"axis {i}", sizes[k], shaped.sum(axis=others)))
        if self.shift == 0:
            found.append(Axis(f"axis {kept[-1]}", self.columns, self.column_hits))
        return found


# --- what stands out --------------------------------------------------------------------------------------------------


def _findings(place: Place, mismatches: int, elements: int, columns: Counts | None) -> list[str]:
    if mismatches == 0:
        return []
    if mismatches == elements:
        return ["every element differs"]
    if mismatches < 3:
        return []
    found: list[str] = []
    narrow = []
    for axis in place.axes:
        text = _concentrated(axis, mismatches)
        if text:
            found.append(text)
        inside = _range(axis.counts)
        if 1 < inside[1] - inside[0] + 1 <= axis.size // 2:
            narrow.append(f"{inside[0]}..{inside[1]} of {axis.name}")
    if len(narrow) > 1:
        found.insert(0, f"all lie in one tile: {', '.join(narrow)}")
    period = None if columns is None else _periodic(columns)
    if period:
        found.append(period)
    span = place.last - place.first + 1
    if not found and elements >= 64 and span <= elements // 2:
        end = ", up to the end" if place.last == elements - 1 else ""
        found.append(f"all lie between flat positions {place.first} and {place.last}{end} ({_percent(span, elements)})")
    expected = place.blocks * -math.expm1(mismatches * math.log1p(-1 / place.blocks)) if place.blocks > 1 else 1.0
    if place.most_in_block >= 8 and place.blocks_hit < 0.5 * expected:
        found.append(
            f"they come in blocks: {place.blocks_hit} of {place.blocks} blocks of {_BLOCK} hold them all, up to "
            f"{place.most_in_block} in one"
        )
    return found or ["no row, column or block stands out"]


def _range(counts: Counts) -> tuple[int, int]:
    hit = np.flatnonzero(counts)
    return int(hit[0]), int(hit[-1])


def _concentrated(axis: Axis, mismatches: int) -> str:
    """Say so where few indexes of an axis hold nearly all mismatches."""
    order = np.argsort(-axis.counts, kind="stable")
    held = np.cumsum(axis.counts[order])
    for share in (1.0, 0.9):
        needed = int(np.searchsorted(held, share * mismatches)) + 1
        few = needed == 1 if axis.size < 8 else needed <= axis.size // 8
        if few and axis.size > 1 and (mismatches >= 2 * needed or share < 1):
            amount = "all" if share == 1 else _percent(int(held[needed - 1]), mismatches)
            return f"{amount} of them in {axis.name} at {_indexes(np.sort(order[:needed]))} (of {axis.size})"
    return ""


def _periodic(columns: Counts) -> str:
    """Say so where the columns that are hit repeat with a period."""
    hit = np.flatnonzero(columns)
    best: tuple[float, int, Counts] | None = None
    for period in _PERIODS:
        if columns.size % period or columns.size < 2 * period:
            continue
        lanes = np.flatnonzero(np.bincount(hit % period))
        share = lanes.size / period
        if (lanes.size == 1 or share <= 0.25) and hit.size > lanes.size and (best is None or share < best[0]):
            best = share, period, lanes
    if best is None:
        return ""
    return f"only at positions {_indexes(best[2])} of every {best[1]} along the last axis"


def _indexes(numbers: Counts) -> str:
    """Write ascending numbers with ranges, shortened."""
    runs: list[list[int]] = []
    for n in numbers.tolist():
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    texts = [str(a) if a == b else f"{a}..{b}" for a, b in runs[:6]]
    return ", ".join(texts) + (f" and {len(runs) - 6} more" if len(runs) > 6 else "")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3g} %"


def bars(counts: Sequence[int] | Counts, width: int) -> list[int]:
    """Add neighbouring counts up until there are at most `width`."""
    values = np.asarray(counts)
    step = -(-values.size // width)
    return [int(n) for n in np.add.reduceat(values, np.arange(0, values.size, step))] if values.size else []
