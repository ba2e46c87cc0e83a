"""A second way to encode, for tests: exact values in a sorted table, searched; no arithmetic shared with the kernels.

Where a value lies between its neighbours (on the lower one, below half, on half, above half) is found by comparing
float64 numbers that are exact; which neighbour is taken is asked of `exact.round_up`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bittrue import exact
from bittrue.formats import FloatFormat, TaperedFormat, floor_log2
from bittrue.rounding import Overflow, Rounding, Rule

DETERMINISTIC = [m for m in Rounding if m not in (Rounding.stochastic, Rounding.hybrid)]


def grid(fmt: FloatFormat | TaperedFormat) -> tuple[np.ndarray, np.ndarray]:
    """Return the non-negative finite values in order (float64, exact) and their magnitude codes."""
    size = 1 << fmt.magnitude_bits
    codes = [c for c in range(size) if c != fmt.inf_magnitude and not fmt.is_nan(c)]
    pairs = sorted((Fraction(0) if c == 0 and fmt.has_zero else fmt.magnitude_value(c), c) for c in codes)
    values = np.array([float(v) for v, _ in pairs])
    assert all(Fraction(v) == exact_value for v, (exact_value, _) in zip(values.tolist(), pairs))
    return values, np.array([c for _, c in pairs], np.int64)


class Boundaries:
    """The table of one format, and the values of one input array placed in it."""

    def __init__(self, fmt: FloatFormat | TaperedFormat) -> None:
        self.fmt = fmt
        self.values, self.codes = grid(fmt)
        quantum = Fraction(2) ** fmt.quantum_exponent(floor_log2(fmt.max))
        self.edges = np.append(self.values, float(fmt.max + quantum))  # the grid goes on beyond the largest value

    def place(self, x: np.ndarray) -> None:
        """Find the neighbours of finite float64 values."""
        magnitude = np.abs(x)
        self.x, self.negative = x, np.signbit(x)
        self.lower = np.searchsorted(self.edges, magnitude, side="right") - 1
        inside = np.clip(self.lower, 0, len(self.values) - 1)
        low, high = self.edges[inside], self.edges[inside + 1]
        half = low + (high - low) / 2
        self.position = np.where(
            magnitude == low, 0, np.where(magnitude < half, 1, np.where(magnitude == half, 2, 3))
        )
        self.odd = (self.codes[inside] & 1).astype(bool)
        self.inside = inside

    def encode(self, rule: Rule) -> np.ndarray:
        """Return the codes under a rule whose overflow is not `raise`."""
        fmt = self.fmt
        choice = np.array(
            [
                [
                    [exact.round_up(rule.rounding, odd, negative, rest, 4) for rest in range(4)]
                    for negative in (False, True)
                ]
                for odd in (False, True)
            ]
        )
        up = choice[self.odd.astype(int), self.negative.astype(int), self.position]
        index = np.where(self.lower < 0, 0, self.inside + up)
        over = (index >= len(self.values)) | (self.lower >= len(self.values))
        magnitude = self.codes[np.minimum(index, len(self.values) - 1)]
        sign = np.where(self.negative & (fmt.has_negative_zero | (magnitude != 0)), 1 << fmt.magnitude_bits, 0)
        codes = magnitude | (sign if fmt.signed else 0)
        beyond = [exact.encode(s * 4 * fmt.max, fmt, rule) for s in (1, -1)]
        codes = np.where(over, np.where(self.negative, beyond[1], beyond[0]), codes)
        if not fmt.signed:
            codes = np.where(self.negative & ~over & ((magnitude != 0) | (not fmt.has_zero)), beyond[1], codes)
        if not fmt.has_zero:
            zeros = [exact.encode(z, fmt, rule) for z in (Fraction(0), -0.0)]
            codes = np.where(self.x == 0, np.where(self.negative, zeros[1], zeros[0]), codes)
        return codes


def neighbourhood(fmt: FloatFormat | TaperedFormat, dtype: type) -> np.ndarray:
    """Return every value and midpoint of both signs, one ulp of `dtype` either side, zeros and ends, in `dtype`."""
    values, _ = grid(fmt)
    quantum = float(Fraction(2) ** fmt.quantum_exponent(floor_log2(fmt.max)))
    values = np.append(values, [fmt.max + quantum, fmt.max + 2 * quantum]).astype(np.float64)
    points = np.concatenate([values, (values[1:] + values[:-1]) / 2, values[:1] / 2])
    limit = np.finfo(dtype)
    with np.errstate(over="ignore", under="ignore"):
        points = points.astype(dtype)
        points = points[np.isfinite(points)]
        up, down = np.nextafter(points, dtype(np.inf)), np.nextafter(points, dtype(-np.inf))
    every = np.concatenate([points, up, down, [limit.max, limit.tiny, limit.smallest_subnormal, 0]]).astype(dtype)
    every = every[np.isfinite(every)]
    return np.concatenate([every, -every])


def with_overflow(rounding: Rounding, overflow: str) -> Rule:
    """A rule of two names."""
    return Rule(rounding=rounding, overflow=Overflow(overflow))
