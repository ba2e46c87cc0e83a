"""Integers of up to 127 bits as pairs of NumPy arrays: what 80-bit accumulators need, without Python integers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Wide"]

Array = np.ndarray[Any, Any]

_LOW = (1 << 64) - 1


@dataclass(frozen=True, eq=False)
class Wide:
    """Two's complement integers of 128 bits: ``high * 2**64 + low``.

    Parameters
    ----------
    low : ndarray of uint64
    high : ndarray of int64, of the same shape

    Examples
    --------
    >>> w = Wide.from_ints([2**79 - 1, -1]) + Wide.from_ints([1, -1])
    >>> w.to_ints() == [2**79, -2], w.wrap(80).to_ints() == [-(2**79), -2]
    (True, True)
    """

    low: Array
    high: Array

    @classmethod
    def from_array(cls, x: Array) -> Wide:
        """Widen an integer array of any dtype; object arrays hold Python integers."""
        if x.dtype == object:
            return cls.from_ints(x.reshape(-1).tolist()).reshape(x.shape)
        if x.dtype == np.uint64:
            return cls(x.copy(), np.zeros(x.shape, np.int64))
        wide = x.astype(np.int64)
        return cls(wide.view(np.uint64), wide >> 63)

    @classmethod
    def from_ints(cls, numbers: Iterable[int]) -> Wide:
        """Take Python integers; their low 128 bits."""
        found = [int(n) for n in numbers]
        low = np.array([n & _LOW for n in found], np.uint64)
        high = np.array([(n >> 64) & _LOW for n in found], np.uint64)
        return cls(low, high.view(np.int64))

    @classmethod
    def zeros(cls, shape: int | tuple[int, ...]) -> Wide:
        """Return zeros."""
        return cls(np.zeros(shape, np.uint64), np.zeros(shape, np.int64))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of both arrays."""
        return tuple(self.low.shape)

    @property
    def size(self) -> int:
        """Number of integers."""
        return int(self.low.size)

    def to_ints(self) -> list[int]:
        """Return Python integers, in C order."""
        return [(h << 64) + lo for h, lo in zip(self.high.reshape(-1).tolist(), self.low.reshape(-1).tolist())]

    def to_int64(self) -> Array:
        """Return the low 64 bits as int64."""
        return self.low.view(np.int64)

    def reshape(self, shape: Any) -> Wide:
        """Return the same integers in another shape."""
        return Wide(self.low.reshape(shape), self.high.reshape(shape))

    def copy(self) -> Wide:
        """Return a copy."""
        return Wide(self.low.copy(), self.high.copy())

    def __getitem__(self, index: Any) -> Wide:
        return Wide(self.low[index], self.high[index])

    def put(self, index: Any, other: Wide) -> None:
        """Store integers at an index."""
        self.low[index] = other.low
        self.high[index] = other.high

    def __add__(self, other: Wide) -> Wide:
        low = self.low + other.low
        return Wide(low, self.high + other.high + (low < other.low))

    def __neg__(self) -> Wide:
        low = ~self.low + np.uint64(1)
        return Wide(low, ~self.high + (low == 0))

    def __sub__(self, other: Wide) -> Wide:
        return self + (-other)

    def __lshift__(self, count: int) -> Wide:
        """Multiply by ``2**count``, 0 <= count <= 63."""
        if count == 0:
            return self.copy()
        up = np.uint64(count)
        carried = (self.low >> np.uint64(64 - count)).view(np.int64)
        return Wide(self.low << up, (self.high << np.int64(count)) | carried)

    def wrap(self, bits: int) -> Wide:
        """Keep the low `bits` bits (at most 128), as a signed number."""
        if bits > 64:
            spare = np.int64(128 - bits)
            return Wide(self.low.copy(), (self.high << spare) >> spare)
        spare = np.int64(64 - bits)
        value = (self.low.view(np.int64) << spare) >> spare
        return Wide(value.view(np.uint64), value >> np.int64(63))

    def clamp(self, lo: int, hi: int) -> Wide:
        """Limit to a range."""
        smallest, largest = Wide.from_ints([lo])[0], Wide.from_ints([hi])[0]
        return self._where_less(smallest, smallest, False)._where_less(largest, largest, True)

    def _where_less(self, bound: Wide, replacement: Wide, above: bool) -> Wide:
        less = (self.high < bound.high) | ((self.high == bound.high) & (self.low < bound.low))
        outside = ~less if above else less
        return Wide(
            np.where(outside, replacement.low, self.low), np.where(outside, replacement.high, self.high)
        )

    def equals(self, other: Wide) -> Array:
        """Compare element by element."""
        return np.asarray((self.low == other.low) & (self.high == other.high))
