"""The conversion of a part of a tensor, here or on a worker of a cluster: codes in, memory image and figures out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ..cluster import Place
from ..codec import decode, encode
from ..files import Reader, TensorInfo
from ..files.base import to_image
from ..formats import Format
from ..kinds.block import BlockFormat, BlockRule
from ..rounding import Rounding, Rule
from .blocks import Cut, Run
from .limits import ceiling, fits_float32, overflow_limits

__all__ = ["Conversion", "Piece", "convert_part", "pieces"]

Values = np.ndarray[Any, Any]
Figures = tuple[Values, Values]  # what `kernels.stats.difference` adds up of a piece

_CHUNK = 1 << 21  # elements read at a time
_PIECE = 1 << 18  # elements that one thread works on: source, codes and values stay in the second-level cache
_PART = 1 << 22  # elements that a worker of a cluster is given at a time

_NATIVE: dict[str, np.dtype[Any]] = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}


class Piece(NamedTuple):
    """So many elements: their memory image, one array after the other, and the figures of what they lost."""

    elements: int
    images: list[Values]
    figures: list[Figures]


@dataclass(frozen=True)
class Conversion:
    """What becomes of every tensor that is converted.

    Attributes
    ----------
    format : Format
    rule : Rule or BlockRule
    axis : int or None
        Block formats: along which the blocks lie; None: as those of a source in blocks, else the last.
    """

    format: Format
    rule: Rule | BlockRule
    axis: int | None = None

    def target(self, info: TensorInfo) -> TensorInfo:
        """Return what a tensor becomes."""
        return TensorInfo(info.name, self.format, info.shape, self.axis_of(info) if self._blocks else None)

    def changes(self, info: TensorInfo) -> bool:
        """Whether a floating tensor is converted, not copied: it has the axis for blocks, and is not there already."""
        if not isinstance(self.format, BlockFormat):
            return True
        axis, count = self.axis_of(info), len(info.shape)
        if not -count <= axis < count:
            return False
        return not (info.format == self.format and info.axis == axis % count)

    @property
    def _blocks(self) -> bool:
        return isinstance(self.format, BlockFormat)

    def axis_of(self, info: TensorInfo) -> int:
        """Return the axis along which the blocks of the result lie, where it has any."""
        if self.axis is not None:
            return self.axis
        return -1 if info.axis is None else info.axis

    def whole(self, info: TensorInfo) -> bool:
        """Whether a tensor cannot be cut: the blocks of the result are not one run of memory of the source."""
        if not isinstance(self.format, BlockFormat):
            return False
        axis = self.axis_of(info) % len(info.shape)
        if info.axis is not None:
            return axis != info.axis
        return axis != len(info.shape) - 1 or info.shape[-1] % self.format.block_size != 0

    def cut(self, info: TensorInfo) -> Cut | None:
        """Return how a source in blocks is cut; None for others, and for those that cannot be."""
        if not isinstance(info.format, BlockFormat) or self.whole(info):
            return None
        unit = info.format.block_size
        if isinstance(self.format, BlockFormat):
            unit = max(unit, self.format.block_size)  # both are powers of two
        return Cut(info, unit, self._blocks, _CHUNK, _PIECE)

    def parts(self, info: TensorInfo) -> list[tuple[int, int]]:
        """Return the first element and the one after the last of each part for a worker."""
        if self.whole(info):
            return [(0, info.elements)]
        cut = self.cut(info)
        if cut is not None:
            return cut.parts(_PART)
        return [(start, min(start + _PART, info.elements)) for start in range(0, info.elements, _PART)]


def pieces(
    reader: Reader,
    name: str,
    conversion: Conversion,
    pool: ThreadPoolExecutor | None,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[Piece]:
    """Convert elements `start` to `stop` of a tensor, a chunk at a time; the next piece reuses the memory of one.

    Without a pool all is done by the calling thread. Errors name the tensor and the chunk.
    """
    info = reader[name]
    cut = conversion.cut(info)
    if cut is not None:
        return _out_of_blocks(reader, info, conversion, cut, pool, start, info.elements if stop is None else stop)
    if isinstance(conversion.format, BlockFormat):
        return _in_blocks(reader, info, conversion, conversion.format, pool, start, stop)
    return _in_codes(reader, info, conversion, pool, start, stop)


def convert_part(place: Place, name: str, conversion: Conversion, start: int, stop: int) -> Piece:
    """Convert elements `start` to `stop` of a tensor of a file, on one thread: the work of a worker."""
    with place.open() as reader:
        made = [
            Piece(p.elements, [np.array(image) for image in p.images], p.figures)
            for p in pieces(reader, name, conversion, None, start, stop)
        ]
    images = [image for p in made for image in p.images]
    return Piece(sum(p.elements for p in made), images, [f for p in made for f in p.figures])


def _in_codes(
    reader: Reader,
    info: TensorInfo,
    conversion: Conversion,
    pool: ThreadPoolExecutor | None,
    start: int,
    stop: int | None,
) -> Iterator[Piece]:
    fmt, rule = conversion.format, conversion.rule
    assert isinstance(rule, Rule)
    cast = _Cast(info.format, fmt, rule)
    buffer = np.empty(min(_CHUNK, info.elements), fmt.storage)
    at = start
    for codes in reader.chunks(info.name, _CHUNK, start, stop):
        out = buffer[: codes.size]
        jobs = [
            partial(cast.run, codes[cut : cut + _PIECE], out[cut : cut + _PIECE], at + cut)
            for cut in range(0, codes.size, _PIECE)
        ]
        figures = _done(jobs, pool, info.name, at)
        yield Piece(codes.size, [to_image(out, fmt)], figures)
        at += codes.size


def _in_blocks(
    reader: Reader,
    info: TensorInfo,
    conversion: Conversion,
    fmt: BlockFormat,
    pool: ThreadPoolExecutor | None,
    start: int,
    stop: int | None,
) -> Iterator[Piece]:
    """Convert into blocks: chunk by chunk where they are one run of memory, else the whole tensor at once."""
    whole = conversion.whole(info)
    if whole:
        chunks = iter(_done([partial(_whole_values, reader, info)], None, info.name, 0))
    else:
        chunks = (_values_of(codes, info.format) for codes in reader.chunks(info.name, _CHUNK, start, stop))
    axis = conversion.axis_of(info) % len(info.shape) if whole else -1
    at = start
    for values in chunks:
        parts = [values] if whole else [values[cut : cut + _PIECE] for cut in range(0, values.size, _PIECE)]
        jobs = [partial(_cast_blocks, part, fmt, conversion.rule, axis) for part in parts]
        done = _done(jobs, pool, info.name, at)
        yield Piece(values.size, [image for image, _ in done], [figures for _, figures in done])
        at += values.size


def _out_of_blocks(
    reader: Reader,
    info: TensorInfo,
    conversion: Conversion,
    cut: Cut,
    pool: ThreadPoolExecutor | None,
    start: int,
    stop: int,
) -> Iterator[Piece]:
    """Convert a source in blocks, run by run."""
    fmt, rule = conversion.format, conversion.rule
    at = start
    if isinstance(fmt, BlockFormat):
        for runs in cut.runs(reader, start, stop):
            done = _done([partial(_cast_run, run, fmt, rule) for run in runs], pool, info.name, at)
            count = sum(run.elements for run in runs)
            yield Piece(count, [image for image, _ in done], [figures for _, figures in done])
            at += count
        return
    assert isinstance(rule, Rule)
    cast = _Cast(info.format, fmt, rule)
    rest = np.empty(0, fmt.storage)  # codes that do not fill a byte yet
    for runs in cut.runs(reader, start, stop):
        out = np.empty(rest.size + sum(run.elements for run in runs), fmt.storage)
        out[: rest.size] = rest
        jobs, end = [], rest.size
        for run in runs:
            jobs.append(partial(cast.run, run, out[end : end + run.elements], at + end - rest.size))
            end += run.elements
        figures = _done(jobs, pool, info.name, at)
        count = end - rest.size
        at += count
        full = end if at == stop else end // 8 * 8
        rest = out[full:].copy()
        yield Piece(count, [to_image(out[:full], fmt)], figures)


def _done(jobs: Sequence[Callable[[], Any]], pool: ThreadPoolExecutor | None, name: str, at: int) -> list[Any]:
    """Do all jobs and return their results in order."""
    try:
        if pool is None:
            return [job() for job in jobs]
        return list(pool.map(_call, jobs))
    except (OverflowError, ValueError) as error:
        raise type(error)(f"tensor {name!r}, from element {at}: {error}") from None


def _call(job: Callable[[], Any]) -> Any:
    return job()


def _whole_values(reader: Reader, info: TensorInfo) -> Values:
    """Return exact values of a whole tensor."""
    if isinstance(info.format, BlockFormat):
        return np.asarray(reader.read(info.name).decode(_exact_dtype(info.format)))
    return _values_of(reader.read(info.name).codes, info.format)


def _values_of(codes: Values, source: Format) -> Values:
    """Return exact values of a source's codes in an array of its own."""
    native = _NATIVE.get(source.name)
    if native is not None:
        return codes.view(native)
    return np.asarray(decode(codes, source, _exact_dtype(source)))


def _exact_dtype(source: Format) -> np.dtype[Any]:
    return np.dtype(np.float32 if fits_float32(source) else np.float64)


def _cast_run(run: Run, fmt: BlockFormat, rule: Rule | BlockRule) -> tuple[Values, Figures]:
    """Return packed blocks of a run in the order of blocks, and the figures of the conversion."""
    values = run.values(_exact_dtype(run.format)).reshape(-1, run.length)
    return _cast_blocks(values, fmt, rule, -1)


def _cast_blocks(
    values: Values, fmt: BlockFormat, rule: Rule | BlockRule, axis: int
) -> tuple[Values, Figures]:
    """Return packed blocks, and the figures of the conversion."""
    from ..kernels.stats import difference

    data = encode(values, fmt, rule=rule, axis=axis, threads=1)
    after = decode(data, fmt, _exact_dtype(fmt), axis=axis, threads=1).astype(np.float64, copy=False)
    keep = tuple(slice(n) for n in values.shape)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        before = values.astype(np.float64)
    sums, counts = np.zeros(4), np.zeros(4, np.int64)
    limit = np.float64(np.inf)  # blocks have no range of their own below float32's
    difference(before.reshape(-1), np.ascontiguousarray(after[keep]).reshape(-1), -limit, limit, sums, counts)
    return data.reshape(-1), (sums, counts)


class _Cast:
    """The conversion of pieces of one tensor, with its measurement."""

    def __init__(self, source: Format, target: Format, rule: Rule) -> None:
        from ..kernels.stats import difference

        self._difference = difference
        self._source, self._target, self._rule = source, target, rule
        # The casts flush what is subnormal in the dtype that they are given: in float64 no value of a small format is.
        self._exact = np.dtype(np.float64) if rule.flush_inputs else _exact_dtype(source)
        self._dtype = np.dtype(np.float32 if fits_float32(source) and fits_float32(target) else np.float64)
        low, high = overflow_limits(target, rule, source)
        self._low, self._high = -ceiling(-low, self._dtype), ceiling(high, self._dtype)
        self._scratch = threading.local()

    def run(self, data: Values | Run, out: Values, start: int) -> Figures:
        """Convert codes or blocks, which begin at element `start` of the tensor, into `out`; return the figures."""
        values = self._values(data)
        random = None
        if self._rule.rounding is Rounding.stochastic:
            from ..kernels.stochastic import random_bits

            random = np.empty(out.size, np.uint32)
            random_bits(np.uint64(self._rule.seed), start, random)
        encode(values, self._target, rule=self._rule, out=out, threads=1, random=random)
        after = self._buffer("after", self._dtype, out.size)
        decode(out, self._target, self._dtype, out=after, threads=1)
        before = values
        if values.dtype != self._dtype:
            before = self._buffer("before", self._dtype, values.size)
            with np.errstate(invalid="ignore"):  # signalling NaNs
                np.copyto(before, values)
        sums, counts = np.zeros(4), np.zeros(4, np.int64)
        self._difference(before, after, self._low, self._high, sums, counts)
        return sums, counts

    def _values(self, data: Values | Run) -> Values:
        """Return the source's values, without rounding."""
        if isinstance(data, Run):
            return data.values(self._exact)  # blocks have no subnormals to flush
        native = _NATIVE.get(self._source.name)
        if native is not None:
            return data.view(native)
        values = self._buffer("values", self._exact, data.size)
        decode(data, self._source, self._exact, out=values, threads=1)
        if self._rule.flush_inputs:  # subnormals of the source are ordinary numbers of this dtype
            values[np.abs(values) < float(self._source.min_normal)] *= 0
        return values

    def _buffer(self, name: str, dtype: np.dtype[Any], size: int) -> Values:
        """Return this thread's scratch memory."""
        buffer: Values | None = getattr(self._scratch, name, None)
        if buffer is None or buffer.size < size:
            buffer = np.empty(size, dtype)
            setattr(self._scratch, name, buffer)
        return buffer[:size]
