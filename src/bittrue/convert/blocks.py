"""Tensors in blocks as sources: their bytes read in order and cut into runs, which follow each other in the result."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..codec import decode
from ..files import Reader, TensorInfo
from ..kinds.block import BlockFormat

__all__ = ["Cut", "Run"]

Values = np.ndarray[Any, Any]


class Run(NamedTuple):
    """Blocks that become one run of elements.

    Attributes
    ----------
    format : BlockFormat
    data : ndarray of uint8, shape (slabs, columns, bytes)
        A column is what lies along the axis of the blocks; the columns of a slab lie beside each other.
    length : int
        Elements of a column, without padding.
    """

    format: BlockFormat
    data: Values
    length: int

    @property
    def elements(self) -> int:
        """Number of elements, without padding."""
        slabs, columns = self.data.shape[:2]
        return int(slabs * columns * self.length)

    def values(self, dtype: np.dtype[Any]) -> Values:
        """Return the values, flat: slab after slab, the columns of a slab innermost."""
        found = decode(self.data, self.format, dtype, threads=1)[:, :, : self.length]
        return np.ascontiguousarray(np.moveaxis(found, 1, 2)).reshape(-1)


class Cut:
    """How a tensor in blocks is cut.

    A slab is a run of memory in the file and in the result. In C order these are the columns below one index of the
    axes before that of the blocks; in the order of blocks, a column.

    Parameters
    ----------
    info : TensorInfo
        With elements.
    unit : int
        Elements of a column at whose multiples it may be cut: a multiple of the block size.
    in_order_of_blocks : bool
        Whether the result has the order of the blocks in the file, in place of C order.
    chunk, piece : int
        Elements read at a time, and elements of a run. Larger slabs of several columns are read as a whole; a run is
        never less than `unit` elements of each column.
    """

    def __init__(self, info: TensorInfo, unit: int, in_order_of_blocks: bool, chunk: int, piece: int) -> None:
        assert isinstance(info.format, BlockFormat) and info.axis is not None
        self._info, self._format, self._unit = info, info.format, unit
        self._chunk, self._piece = chunk, piece
        length = info.shape[info.axis]
        self._columns = 1 if in_order_of_blocks else math.prod(info.shape[info.axis + 1 :])
        slabs = info.elements // (length * self._columns)
        if self._columns == 1 and (slabs == 1 or length % unit == 0):
            length, slabs = length * slabs, 1  # without padding between them, all columns are one
        self._length, self._slab = length, length * self._columns
        self._single = self._columns == 1 and slabs == 1
        self._together = max(piece // self._slab, 1)  # slabs of a run

    def parts(self, part: int) -> list[tuple[int, int]]:
        """Return the first element and the one after the last of parts of about so many elements, for workers.

        All but the last are a multiple of 8 elements: whole bytes of any format.
        """
        total = self._info.elements
        least = self._step if self._single else 8 * self._together * self._slab
        size = max(part // least, 1) * least
        return [(start, min(start + size, total)) for start in range(0, total, size)]

    def runs(self, reader: Reader, start: int, stop: int) -> Iterator[list[Run]]:
        """Read elements `start` to `stop`, which a part begins and ends at; the next runs reuse the memory of these."""
        group: list[Run] = []
        for data, elements in self._reads(reader, start, stop):
            for run in self._runs(data, elements):
                if group and sum(r.elements for r in group) + run.elements > self._chunk:
                    yield group
                    group = []
                group.append(run)
            yield group
            group = []

    @property
    def _step(self) -> int:
        """Elements of a column in a run that does not hold a whole one."""
        return max(self._piece // self._columns // self._unit, 1) * self._unit

    def _reads(self, reader: Reader, start: int, stop: int) -> Iterator[tuple[Values, int]]:
        """Yield bytes as (slabs, columns, bytes), and how many elements of a column they hold."""
        each = self._format.blocks(self._length) * self._format.block_bytes
        if self._single:
            step = max(self._chunk // self._step, 1) * self._step
            first, last, size = (self._bytes(n) for n in (start, stop, step))
            for at, data in zip(range(start, stop, step), reader.raw(self._info.name, size, first, last)):
                yield data.reshape(1, 1, -1), min(step, stop - at)
            return
        slab = each * self._columns
        count = max(self._chunk // (self._together * self._slab), 1) * self._together
        first, last = start // self._slab * slab, stop // self._slab * slab
        for data in reader.raw(self._info.name, count * slab, first, last):
            yield data.reshape(-1, self._columns, each), self._length

    def _bytes(self, elements: int) -> int:
        return self._format.blocks(elements) * self._format.block_bytes

    def _runs(self, data: Values, length: int) -> Iterator[Run]:
        if not self._single and self._slab <= self._piece:
            for at in range(0, len(data), self._together):
                yield Run(self._format, data[at : at + self._together], length)
            return
        for slab in range(len(data)):
            for at in range(0, length, self._step):
                count = min(self._step, length - at)
                part = data[slab : slab + 1, :, self._bytes(at) : self._bytes(at + count)]
                yield Run(self._format, part, count)
