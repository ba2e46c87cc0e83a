"""What a conversion says about each tensor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..files import TensorInfo

__all__ = ["TensorReport", "Totals", "decibels"]

Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TensorReport:
    """What a conversion did to one tensor.

    The figures are None for tensors that were copied. They compare the source's exact values with those of the target's
    codes, in float64.

    Attributes
    ----------
    name : str
    shape : tuple of int
    source, target : str
        Names of the formats; the same for a tensor that was copied. `target` is empty for a tensor that was left out,
        because the dtype of the source is not known.
    converted : bool
        False: copied byte for byte, or left out.
    elements, bytes_before, bytes_after : int
    sqnr_db : float or None
        ``10 log10(sum x**2 / sum (x - y)**2)`` over the elements finite on both sides; inf when nothing changed,
        nan where the squares leave float64's range.
    max_abs_error, max_rel_error : float or None
        Over the same elements; zeros have no relative error.
    overflowed : int or None
        Finite elements that round beyond the target's range under the rule's rounding, whatever became of them. For
        stochastic and hybrid rounding: those beyond which every number overflows. Infinite inputs are not among them.
    flushed_to_zero : int or None
        Elements within the range that were not zero and are now.
    nan, infinite : int or None
        NaNs and infinities of the source.
    """

    name: str
    shape: tuple[int, ...]
    source: str
    target: str
    converted: bool
    elements: int
    bytes_before: int
    bytes_after: int
    sqnr_db: float | None = None
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    overflowed: int | None = None
    flushed_to_zero: int | None = None
    nan: int | None = None
    infinite: int | None = None

    @property
    def skipped(self) -> bool:
        """Whether the output lacks this tensor."""
        return not self.target


class Totals:
    """The figures of a whole tensor, added up in the order of its pieces."""

    def __init__(self) -> None:
        self._signal = self._noise = self._max_abs = self._max_rel = 0.0
        self._counts = np.zeros(4, np.int64)

    def add(self, sums: Values, counts: Values) -> None:
        """Add the figures of a piece."""
        signal, noise, max_abs, max_rel = (float(s) for s in sums)
        self._signal += signal
        self._noise += noise
        self._max_abs = max(self._max_abs, max_abs)
        self._max_rel = max(self._max_rel, max_rel)
        self._counts += counts

    def report(self, source: TensorInfo, target: TensorInfo) -> TensorReport:
        """Return the report of a converted tensor."""
        overflowed, flushed, nan, infinite = (int(c) for c in self._counts)
        return TensorReport(
            source.name,
            source.shape,
            source.format.name,
            target.format.name,
            True,
            source.elements,
            source.nbytes,
            target.nbytes,
            decibels(self._signal, self._noise),
            self._max_abs,
            self._max_rel,
            overflowed,
            flushed,
            nan,
            infinite,
        )


def decibels(signal: float, noise: float) -> float:
    """Return ``10 log10(signal / noise)`` without leaving the range of float64; inf without noise."""
    if noise == 0:
        return math.inf
    return 10 * (math.log10(signal) - math.log10(noise)) if signal else -math.inf
