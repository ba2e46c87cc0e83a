"""One pass over two tensors: where their codes differ, by how much, and where the damage sits; no verdicts here."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..codec import decode, encode
from ..codes import ULP_NAN, bit_patterns, distance, is_nan, order, values
from ..formats import BoolFormat, FloatFormat, Format, IntFormat, TaperedFormat
from .place import Geometry, Place

__all__ = ["Criterion", "Figures", "Measurement", "Mismatch", "Plan", "spacing"]

Codes = np.ndarray[Any, Any]

_TABLE_BITS = 16
_PAIRS = 8  # formats up to this width are counted by pairs of codes
CHUNK = 1 << 20  # elements per pass while few differ
_DENSE = 1 << 15  # while many do: pieces and scratch stay in the second-level cache

NAN_RULES = ("equal", "code", "never")
ZERO_RULES = ("differ", "equal")


@dataclass(frozen=True)
class Criterion:
    """What a single element must satisfy: AE <= max(constant + slope |g|, spacings ULP(g)), or RE <= constant.

    It holds for low <= |golden| < high.
    """

    name: str
    relative: bool = False
    constant: float = 0.0
    slope: float = 0.0
    spacings: float = 0.0
    low: float = 0.0
    high: float = math.inf

    def row(self) -> list[float]:
        """Return the parameters as the kernel takes them."""
        return [float(self.relative), self.constant, self.slope, self.spacings, self.low, self.high]


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes
    ----------
    criteria : sequence of Criterion
    everything : bool
        Measure elements with equal codes too: a wide golden, or means over a part of the elements.
    floor : float
        Leave |golden| below it out of sums and maxima.
    nan : {"equal", "code", "never"}
        Whether two NaNs are equal: always, where their codes are, never.
    zeros : {"differ", "equal"}
        Whether +0 and -0 are a mismatch.
    kept : int
        How many of the first and of the worst mismatches to keep.
    """

    criteria: Sequence[Criterion] = ()
    everything: bool = False
    floor: float = 0.0
    nan: str = "equal"
    zeros: str = "differ"
    kept: int = 10


@dataclass(frozen=True)
class Mismatch:
    """One differing element.

    Attributes
    ----------
    index : tuple of int
    golden, actual : int
        The codes.
    golden_value, actual_value : float or int
    steps : int or None
        Distance in representable values; None between a NaN and a number.
    repeated : int
        How often the same pair of codes occurs, where that is known (up to 8 bits); else 1.
    """

    index: tuple[int, ...]
    golden: int
    actual: int
    golden_value: float | int
    actual_value: float | int
    steps: int | None
    repeated: int = 1


@dataclass(frozen=True)
class Figures:
    """What a comparison measured. Errors are those of section 13 of the Ascend reference, in float64.

    Attributes
    ----------
    elements, mismatches : int
    unordered : int
        Mismatches between a NaN and a number.
    signed_zeros : int
        Elements that are +0 on one side and -0 on the other (mismatches only under ``zeros="differ"``).
    max_ulp : int
        Largest distance in representable values, NaN left out.
    mean_ulp : float
        Mean over all elements.
    max_abs, mean_abs, max_rel, mean_rel, rmse : float
        AE = |a - g|; RE = AE / (|g| + 1e-7); MARE = max_rel, MERE = mean_rel. Infinite beside a NaN or an infinity.
    measured : int
        Elements that the means are over.
    histogram : list of (low, high, count)
        Distances in representable values.
    violations : tuple of int
        Elements beyond each `Criterion`.
    binades : list of (exponent, count, largest relative error)
        Mismatches by the binade of the golden value: 2**exponent <= |g|; the exponent of zero is None.
    """

    elements: int
    mismatches: int
    unordered: int
    signed_zeros: int
    max_ulp: int
    mean_ulp: float
    max_abs: float
    mean_abs: float
    max_rel: float
    mean_rel: float
    rmse: float
    measured: int
    histogram: list[tuple[int, int, int]]
    violations: tuple[int, ...] = ()
    binades: list[tuple[int | None, int, float]] = dataclasses.field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Share of the elements that differ."""
        return self.mismatches / self.elements if self.elements else 0.0


@lru_cache(maxsize=64)
def _values_of(f: Format) -> Codes:
    """Return the value of every code of a format up to 16 bits."""
    table = np.zeros(1 << (8 if f.bits <= 8 else 16))
    table[: 1 << f.bits] = decode(np.arange(1 << f.bits).astype(f.storage), f, np.float64)
    return table


def _floats(codes: Codes, f: Format) -> Codes:
    """Return values in float64 (64-bit integers: nearest)."""
    if f.bits <= _TABLE_BITS:
        from ..kernels.decode import decode_table

        out = np.empty(codes.shape)
        decode_table(codes.reshape(-1).view(f.code_dtype), _values_of(f), out.reshape(-1))
        return out
    with np.errstate(invalid="ignore"):  # signalling NaN
        return values(codes, f).astype(np.float64)


def spacing(golden: Codes, f: Format) -> Codes:
    """Return the distance of neighbouring values of `f` at each golden value (float64).

    Examples
    --------
    >>> import bittrue as bt
    >>> spacing(np.array([1.0, 1.99, 2.0, 0.0]), bt.format("bfloat16")) / 2.0**-7
    array([1.00000000e+00, 1.00000000e+00, 2.00000000e+00, 1.17549435e-38])
    """
    if isinstance(f, (IntFormat, BoolFormat)):
        return np.ones(golden.shape)
    assert isinstance(f, (FloatFormat, TaperedFormat))
    finite = np.where(np.isfinite(golden), golden, 0.0)
    exponent = np.frexp(finite)[1] - 1
    exponent[finite == 0] = -1100
    top = math.frexp(float(f.max))[1] - 1
    low = math.frexp(float(f.min_subnormal))[1] - 1
    exponent = np.clip(exponent, low, top)
    quanta = np.array([f.quantum_exponent(e) for e in range(low, top + 1)])
    return np.asarray(np.ldexp(1.0, quanta[exponent - low]))


@lru_cache(maxsize=64)
def _alike(f: Format, nan: str, zeros: str) -> Codes | None:
    """Return a code that stands for all codes equal to each code, or None where codes are equal only to themselves."""
    if not isinstance(f, (FloatFormat, TaperedFormat)):
        return None
    codes = np.arange(1 << f.bits).astype(f.storage)
    table = codes.copy()
    if nan == "equal" and f.nan_code is not None:
        table[is_nan(codes, f)] = f.nan_code
    if zeros == "equal" and f.has_negative_zero:
        table[1 << f.magnitude_bits] = 0
    return None if np.array_equal(table, codes) else table


@lru_cache(maxsize=64)
def _ranks_of(f: Format) -> tuple[Codes, int]:
    """Return the rank of every code of a format up to 16 bits (int32), and that of NaN."""
    found = order(f)
    ranks = np.zeros(1 << (8 if f.bits <= 8 else 16), np.int32)
    ranks[: found.ranks.size] = found.ranks
    return ranks, found.codes.size


def _finite(f: Format) -> int:
    """Return the magnitude above which the codes of a wide float are NaN; -1 where NaN is not to be told so."""
    if f.bits <= _TABLE_BITS or not isinstance(f, FloatFormat) or f.nan == "negative_zero":
        return -1
    return int(f.max_code if f.inf_magnitude is None else max(f.inf_magnitude, f.max_code))


@lru_cache(maxsize=64)
def _itself(f: Format) -> Codes:
    """Return every code of a format up to 16 bits."""
    return np.arange(1 << f.bits).astype(f.storage)


class Measurement:
    """Adds up what two tensors of one format differ in.

    Parameters
    ----------
    f : Format
        Of the actual data; neither complex nor of blocks.
    shape : tuple of int
    plan : Plan
    """

    def __init__(self, f: Format, shape: tuple[int, ...], plan: Plan) -> None:
        self.format, self.shape, self.plan = f, shape, plan
        self.elements = math.prod(shape)
        self._by_pairs = f.bits <= _PAIRS and not plan.everything
        self._geometry = Geometry.of(shape)
        self._where = np.empty(CHUNK + 1, np.int32)
        self._counts = np.zeros((2, 1 << 16 if self._by_pairs else 0), np.int64)
        self._first_pair = np.zeros(self._counts.shape[1], np.int64)
        self._criteria = np.array([c.row() for c in plan.criteria]).reshape(-1, 6)
        self._needs_spacing = bool((self._criteria[:, 3] != 0).any())
        from ..kernels import compare as kernels

        self._kernels = kernels
        self._sums = np.zeros(len(kernels.SUMS))
        self._tallies = np.zeros(len(kernels.COUNTS), np.int64)
        self._histogram = np.zeros(kernels.BUCKETS, np.int64)
        self._peak = np.zeros(1, np.uint64)
        self._binades = np.zeros((2048, 2))
        self._violations = np.zeros(len(plan.criteria), np.int64)
        self._done = self._mismatches = 0
        self._step = CHUNK
        self._zeros = np.zeros(1, np.int64)
        self._first: list[tuple[int, int, int]] = []  # position, golden, actual
        self._worst: list[tuple[int, int, int, int]] = []  # steps, -position, golden, actual
        self._bar = -1  # steps that a mismatch must pass to be among the worst
        self._finite = _finite(f)

    def add(self, golden: Codes, actual: Codes, exact: Codes | None = None) -> None:
        """Add a piece: flat codes, and the golden values in float64 where the golden data is wide."""
        start = 0
        while start < actual.size:
            stop = start + self._step
            found = self._piece(golden[start:stop], actual[start:stop], None if exact is None else exact[start:stop])
            start, self._step = stop, _DENSE if found * 16 > self._step else CHUNK

    def _piece(self, golden: Codes, actual: Codes, exact: Codes | None) -> int:
        """Add a piece that fits the caches; return how many elements differ."""
        where = self._find(golden, actual)
        if where.size:
            self._mismatches += where.size
            self._geometry.add(where, self._done)
            if len(self._first) < self.plan.kept:
                g, a = golden.view(self.format.code_dtype), actual.view(self.format.code_dtype)
                some = where[: self.plan.kept - len(self._first)].tolist()
                self._first += [(self._done + i, int(g[i]), int(a[i])) for i in some]
        if self._by_pairs:
            if where.size:
                kind = self.format.code_dtype
                self._kernels.pairs(
                    golden.view(kind), actual.view(kind), where, self._done, self._counts, self._first_pair
                )
        elif self.plan.everything or where.size:
            self._measure(golden, actual, where, exact)
        self._done += actual.size
        return where.size

    def _find(self, golden: Codes, actual: Codes) -> Codes:
        """Return the positions of mismatches under the rules for NaN and zeros."""
        f, plan = self.format, self.plan
        g, a = golden.view(f.code_dtype), actual.view(f.code_dtype)
        whole = g.size * g.itemsize // 8 * 8 // g.itemsize
        words = g[:whole].view(np.uint64), a[:whole].view(np.uint64)
        where = self._where[: self._kernels.different(g, a, *words, self._where)]
        if where.size and isinstance(f, (FloatFormat, TaperedFormat)):
            minus = 1 << f.magnitude_bits if f.has_negative_zero else 0
            if f.bits <= _TABLE_BITS:
                alike = _alike(f, plan.nan, plan.zeros)
                if alike is not None or minus:
                    table = _itself(f) if alike is None else alike
                    where = where[: self._kernels.unlike(g, a, where, table, minus, self._zeros)]
            elif self._finite >= 0:
                alike_nan, alike_zero = plan.nan == "equal", plan.zeros == "equal"
                kept = self._kernels.unlike_wide(g, a, where, minus, self._finite, alike_nan, alike_zero, self._zeros)
                where = where[:kept]
            else:
                where = self._unlike(golden, actual, where, minus)
        if plan.nan == "never" and f.has_nan:
            both = is_nan(golden, f) & is_nan(actual, f)
            both[where] = True
            where = np.flatnonzero(both).astype(np.int32)
        return where

    def _unlike(self, golden: Codes, actual: Codes, where: Codes, minus: int) -> Codes:
        """Drop positions that are alike under the rules, for formats too wide for a table."""
        f, plan = self.format, self.plan
        golden, actual = golden[where], actual[where]
        same = np.zeros(where.size, np.bool_)
        if minus:
            g, a = golden.view(f.code_dtype), actual.view(f.code_dtype)
            signed = (g | a == f.code_dtype.type(minus)) & (g & a == 0)
            self._zeros += int(np.count_nonzero(signed))
            if plan.zeros == "equal":
                same |= signed
        if plan.nan == "equal" and f.has_nan:
            same |= is_nan(golden, f) & is_nan(actual, f)
        return where[~same] if same.any() else where

    def _measure(self, golden: Codes, actual: Codes, where: Codes, exact: Codes | None) -> None:
        """Add the errors of a piece of a format that is not counted by pairs."""
        everything = self.plan.everything
        g, a = (golden, actual) if everything else (self._gathered(golden, where), self._gathered(actual, where))
        steps = self._steps(g, a)
        self._tally(g, a, steps, np.ones(g.size, np.int64), exact)
        if not where.size:
            return
        if everything:
            g, a, steps = (self._gathered(v, where) for v in (g, a, steps))
        beyond = np.flatnonzero(steps > np.uint64(self._bar)) if self._bar >= 0 else np.arange(steps.size)
        if beyond.size:
            if beyond.size > self.plan.kept:
                beyond = beyond[np.argsort(~steps[beyond], kind="stable")[: self.plan.kept]]
            g, a = bit_patterns(g, self.format), bit_patterns(a, self.format)
            self._worst += [
                (int(steps[k]), -(self._done + int(where[k])), int(g[k]), int(a[k])) for k in beyond.tolist()
            ]
            self._worst = sorted(self._worst, reverse=True)[: self.plan.kept]
            if len(self._worst) == self.plan.kept:
                self._bar = self._worst[-1][0]

    def _gathered(self, values: Codes, where: Codes) -> Codes:
        """Return ``values[where]`` for ascending positions."""
        if where.size == values.size:
            return values
        out = np.empty(where.size, values.dtype)
        self._kernels.gather(values.view(f"u{values.itemsize}"), where, out.view(f"u{values.itemsize}"))
        return out

    def _steps(self, golden: Codes, actual: Codes) -> Codes:
        f = self.format
        steps = np.empty(golden.size, np.uint64)
        g, a = golden.view(f.code_dtype), actual.view(f.code_dtype)
        if f.bits <= _TABLE_BITS:
            self._kernels.rank_distances(g, a, *_ranks_of(f), steps)
        elif self._finite >= 0:
            self._kernels.distances(g, a, 1 << (f.bits - 1) if f.signed else 0, self._finite, steps)
        else:
            steps = distance(golden, actual, f)
        if self.plan.nan == "never" and f.has_nan:
            steps[is_nan(golden, f) & is_nan(actual, f)] = ULP_NAN
        return steps

    def _tally(self, golden: Codes, actual: Codes, steps: Codes, weights: Codes, exact: Codes | None) -> None:
        g = _floats(golden, self.format) if exact is None else exact
        a = _floats(actual, self.format)
        if isinstance(self.format, IntFormat) and self.format.bits > 53 and exact is None:
            g, a = np.zeros(g.size), steps.astype(np.float64)  # the difference of 64-bit integers, rounded once
            if self._criteria.size or self.plan.floor:
                g = _floats(golden, self.format)
                a = np.where(_floats(actual, self.format) >= g, g + a, g - a)
        self._kernels.errors(
            g, a, steps, weights, spacing(g, self.format) if self._needs_spacing else g, self.plan.floor,
            self._criteria, self._violations, self._sums, self._tallies, self._histogram, self._peak,
            self._binades,
        )

    def _evaluate_pairs(self) -> None:
        """Turn the counts of pairs into sums; once, at the end."""
        self._counts = self._counts.sum(axis=0)
        pairs = np.flatnonzero(self._counts)
        golden = (pairs >> 8).astype(self.format.storage)
        actual = (pairs & 0xFF).astype(self.format.storage)
        steps = self._steps(golden, actual)
        self._tally(golden, actual, steps, self._counts[pairs], None)
        error = np.abs(_floats(actual, self.format) - _floats(golden, self.format))
        order = np.lexsort((self._first_pair[pairs], -np.nan_to_num(error, nan=math.inf), ~steps))
        for k in order[: self.plan.kept].tolist():
            at = int(self._first_pair[pairs[k]])
            self._worst.append((int(steps[k]), -at, int(golden[k]), int(actual[k])))
        self._by_pairs = False

    def figures(self) -> Figures:
        """Return the figures, after the last piece."""
        if self._by_pairs:
            self._evaluate_pairs()
        sums, count = self._sums, self._tallies
        measured = int(count[0]) if self.plan.everything else self.elements
        absolute, relative, square, steps = (
            float(sums[i] + sums[i + 1]) if math.isfinite(sums[i]) else float(sums[i]) for i in (0, 2, 4, 6)
        )
        histogram = self._histogram.copy()
        if self.plan.everything:  # equal codes were counted among the distances of none
            histogram[0] = self._mismatches - histogram[1:].sum()
        return Figures(
            self.elements,
            self._mismatches,
            int(count[1]),
            int(self._zeros[0]),
            int(self._peak[0]),
            steps / self.elements if self.elements else 0.0,
            float(sums[8]),
            absolute / measured if measured else 0.0,
            float(sums[9]),
            relative / measured if measured else 0.0,
            math.sqrt(square / measured) if measured else 0.0,
            measured,
            _buckets(histogram),
            tuple(self._violations.tolist()),
            [
                (field - 1023 if field else None, int(self._binades[field, 0]), float(self._binades[field, 1]))
                for field in np.flatnonzero(self._binades[:-1, 0]).tolist()
            ],
        )

    def place(self) -> Place:
        """Return where the mismatches sit."""
        return self._geometry.place(self._mismatches)

    def first(self) -> list[Mismatch]:
        """Return the first mismatches."""
        kind = self.format.code_dtype.type
        return [self._mismatch(at, kind(g), kind(a)) for at, g, a in self._first]

    def worst(self) -> list[Mismatch]:
        """Return the worst mismatches; up to 8 bits the worst pairs of codes, each where it comes first."""
        kind = self.format.code_dtype.type
        return [self._mismatch(-minus, kind(g), kind(a)) for _, minus, g, a in self._worst]

    def _mismatch(self, at: int, golden: Any, actual: Any) -> Mismatch:
        f = self.format
        pair = np.array([golden, actual])
        if pair.dtype != f.storage:
            pair = pair.astype(f.code_dtype).view(f.storage)
        steps = int(distance(pair[:1], pair[1:], f)[0])
        patterns = pair.view(f.code_dtype)
        g, a = (int(p) for p in patterns)
        numbers = values(pair, f).tolist()
        repeated = int(self._counts[g << 8 | a]) if self._counts.ndim == 1 else 1
        index = tuple(int(i) for i in np.unravel_index(at, self.shape)) if self.shape else ()
        unordered = steps == int(ULP_NAN)
        return Mismatch(index, g, a, numbers[0], numbers[1], None if unordered else steps, max(repeated, 1))


def _buckets(histogram: Codes) -> list[tuple[int, int, int]]:
    """Return (lowest, highest distance, count) up to the last that occurs; between a NaN and a number: (-1, -1, n)."""
    found = []
    last = max([k for k in range(histogram.size - 1) if histogram[k]], default=-1)
    for k in range(last + 1):
        low, high = (k, k) if k < 2 else ((1 << (k - 2)) + 1, 1 << (k - 1))
        found.append((low, high, int(histogram[k])))
    if histogram[-1]:
        found.append((-1, -1, int(histogram[-1])))
    return found


def rounded(golden: Codes, source: Format, target: Format) -> tuple[Codes, Codes]:
    """Return the codes in `target` nearest to wide golden codes, and the golden values in float64."""
    exact = _floats(golden, source)
    start = values(golden, source)
    return np.asarray(encode(start, target, overflow="infinity", threads=1)), exact
