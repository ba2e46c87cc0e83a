"""The values of one tensor as a matrix, in memory or read again for every pass, cut into pieces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from ..array import Array
from ..codec import decode
from ..convert.limits import fits_float32
from ..files import Reader
from ..formats import Format
from ..kinds.block import BlockFormat
from .plan import Trial, matrix_shape

__all__ = ["HELD", "Held", "Layout", "Streamed", "Values", "as_floats"]

Plain = np.ndarray[Any, Any]

HELD = 1 << 24  # elements up to which a tensor is held in memory
_PIECE = 1 << 18  # elements at work at a time: they stay in the second-level cache


class Values(Protocol):
    """Values in float32, or in float64 where float32 does not hold them."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def runs(self, sizes: Iterable[int]) -> Iterator[Plain]:
        """Yield the values in C order, flat, so many at a time."""


class Held:
    """A tensor in memory."""

    def __init__(self, x: Plain) -> None:
        self.shape, self.dtype, self._flat = x.shape, x.dtype, x.reshape(-1)

    def runs(self, sizes: Iterable[int]) -> Iterator[Plain]:
        """Yield views."""
        at = 0
        for size in sizes:
            yield self._flat[at : at + size]
            at += size


class Streamed:
    """A tensor that is read from its file again for every pass; not for several threads at once."""

    def __init__(self, reader: Reader, name: str) -> None:
        info = reader[name]
        self.shape, self._format = info.shape, info.format
        self.dtype = _float_dtype(info.format)
        self._reader, self._name = reader, name

    def runs(self, sizes: Iterable[int]) -> Iterator[Plain]:
        """Read on; each run may replace the one before."""
        chunks = self._reader.chunks(self._name, _PIECE)
        rest = np.empty(0, self.dtype)
        for size in sizes:
            parts = [rest]
            have = rest.size
            while have < size:
                part = np.asarray(decode(next(chunks), self._format, self.dtype, threads=1)).reshape(-1)
                parts.append(part)
                have += part.size
            joined = parts[-1] if parts[0].size == 0 and len(parts) == 2 else np.concatenate(parts)
            yield joined[:size]
            rest = joined[size:]


def as_floats(a: Array) -> Plain:
    """Return the values of an array in float32, or in float64 where float32 does not hold them."""
    return np.ascontiguousarray(a, _float_dtype(a.format)).reshape(a.shape)  # NumPy makes 0-d arrays 1-d


def _float_dtype(fmt: Format) -> np.dtype[Any]:
    return np.dtype(np.float32 if fits_float32(fmt) else np.float64)


class Layout:
    """How a trial cuts a tensor, taken as a matrix (see `matrix_shape`), into pieces, and which scales lie where.

    A piece is a run of memory: whole rows, or a part of one row that begins at a whole block and a whole group.

    Attributes
    ----------
    group : int or None
        Elements of a row that share a scale, at most a row; None: all elements do, or the format brings its scales.
    local : bool
        Whether a piece holds all elements that its scales depend on. Otherwise a piece has one scale, which it may
        share with others.
    scales : int
        How many scales there are.
    """

    def __init__(self, shape: tuple[int, ...], trial: Trial) -> None:
        self._rows, self._length = matrix_shape(shape)
        own = isinstance(trial.format, BlockFormat)
        block = trial.format.block_size if isinstance(trial.format, BlockFormat) else 1
        groups = {"tensor": None, "channel": self._length if len(shape) > 1 else None}
        group = None if own else groups.get(trial.granularity, trial.group)
        self.group = group if group is None else max(min(group, self._length), 1)
        self.local = self.group is not None and self.group <= _PIECE
        elements = self._rows * self._length
        if trial.scale == "none" or (own and not trial.scaled_tensor):
            self.scales = 0
        elif self.group is None:
            self.scales = 1 if elements or own else 0
        else:
            self.scales = self._rows * -(-self._length // self.group) if elements else 0
        step = block * (self.group if self.group is not None and self.local else 1)
        self._wide = max(_PIECE // step * step, step)
        self._high = max(_PIECE // max(self._length, 1), 1)

    def _places(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield row, column, rows and columns of every piece."""
        if not self._rows * self._length:
            return
        stride = self._length if self.group is None or self.local else self.group  # which no piece crosses
        for top in range(0, self._rows, self._high):
            for begin in range(0, self._length, stride):
                for left in range(begin, min(begin + stride, self._length), self._wide):
                    right = min(left + self._wide, begin + stride, self._length)
                    yield top, left, min(self._high, self._rows - top), right - left

    def pieces(self, values: Values) -> Iterator[tuple[tuple[int, int], Plain]]:
        """Yield every piece and which cell of the scales it has, where it has one: (row, number of the group)."""
        places = list(self._places())
        for (top, left, rows, columns), run in zip(places, values.runs(r * c for _, _, r, c in places)):
            cell = (0, 0) if self.group is None else (top, left // self.group)
            yield cell, run.reshape(rows, columns)

    def cells(self) -> tuple[int, int]:
        """Return the shape of an array of scales that is not local."""
        return (1, 1) if self.group is None else (self._rows, max(math.ceil(self._length / self.group), 1))
