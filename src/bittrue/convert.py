"""Checkpoint conversion: every floating tensor of a file into another format, piece by piece, with a report."""

from __future__ import annotations

import fnmatch
import json
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from . import exact
from .blocks import block_rule
from .codec import decode, encode
from .files import INDEX_SUFFIX, AtomicFile, FileError, Reader, ShardedReader, TensorInfo, Writer, open_tensors
from .files.base import Path
from .formats import BoolFormat, FloatFormat, Format, IntFormat, TaperedFormat, floor_log2
from .formats import format as _format
from .kinds.block import BlockFormat, BlockRule
from .rounding import Negative, Rounding, Rule

__all__ = ["TensorReport", "convert"]

Values = np.ndarray[Any, Any]
Progress = Callable[[str, int, int], object]

_CHUNK = 1 << 21  # elements read at a time
_PIECE = 1 << 18  # elements that one thread works on: source, codes and values stay in the second-level cache
_COPY = 1 << 22  # bytes copied at a time

_FLOAT32 = _format("float32")
_NATIVE: dict[str, np.dtype[Any]] = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}


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
        Names of the formats; the same for a tensor that was copied.
    converted : bool
        False: copied byte for byte.
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


def convert(
    source: Path,
    target: Path,
    format: Format | str,
    *,
    rule: Rule | BlockRule | None = None,
    include: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] | None = None,
    force: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    source_format: Format | str | None = None,
    source_shape: tuple[int, ...] | None = None,
    axis: int = -1,
) -> list[TensorReport]:
    """Convert the floating tensors of a file; copy the others as they are.

    Memory use does not depend on the size of the file (except for .npy members in Fortran order). The output appears
    complete or not at all.

    Parameters
    ----------
    source : path
        .safetensors, the .safetensors.index.json of a sharded checkpoint, .npz, .npy, .bin or .raw.
    target : path
        The suffix chooses the container, which may differ from the source's. For a sharded checkpoint a folder (made
        if need be) or the path of the new index: the shards keep their names and get theirs only when all are
        complete, the index last. With the suffix .safetensors or .npz a sharded checkpoint becomes one file.
    format : Format or name
        What floating tensors become.
    rule : Rule, optional
        Rounding, overflow and NaN; default nearest even and saturation. For block formats a `BlockRule`.
    include, exclude : str or iterable of str, optional
        Shell patterns of tensor names (``*``, ``?``, ``[...]``; case matters): convert only those that match one of
        `include` and none of `exclude`. Each pattern must match a tensor.
    force : bool
        Replace output that exists.
    threads : int, optional
        Default: one per processor. The result never depends on it.
    progress : callable, optional
        Called as ``progress(name, done, total)`` after every piece: the tensor at work, the elements done and the
        elements to do, both counted over the whole file.
    source_format, source_shape
        Of a .bin or .raw source (see `bittrue.load`).
    axis : int
        Block formats: along which the blocks lie. A tensor that does not have this axis is copied; one whose blocks
        are not one run of memory (another axis than the last, or a last block to be filled) is held in memory whole.

    Returns
    -------
    list of TensorReport
        In the order of the source.

    Raises
    ------
    FileError
        For a source that is damaged, or a target that exists or cannot be written.
    ValueError
        For an unsuitable rule, pattern or suffix.
    OverflowError
        Under ``overflow="raise"``.

    Examples
    --------
    >>> import tempfile, bittrue as bt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bt.save(folder + "/a.safetensors", {"w": np.float32([0.3, 1000]), "steps": np.int64([7])})
    ...     reports = convert(folder + "/a.safetensors", folder + "/b.safetensors", "float8_e4m3fn")
    >>> [(r.name, r.target, r.bytes_after, r.overflowed) for r in reports]
    [('steps', 'int64', 8, None), ('w', 'float8_e4m3fn', 2, 1)]
    """
    fmt = _format(format)
    rule = _rule(fmt, rule)
    if fmt.kind == "complex":
        raise ValueError(f"format={fmt.name!r}: real tensors do not become complex ones")
    with ExitStack() as stack:
        reader = stack.enter_context(open_tensors(source, format=source_format, shape=source_shape))
        chosen = _choose(reader, include, exclude)
        if isinstance(fmt, BlockFormat):
            chosen = frozenset(name for name in chosen if -len(reader[name].shape) <= axis < len(reader[name].shape))
        total = sum(info.elements for info in reader.tensors.values())
        engine = stack.enter_context(_Engine(fmt, rule, threads, progress, total, axis))
        folder = os.fspath(target)
        if isinstance(reader, ShardedReader) and not folder.lower().endswith((".safetensors", ".npz")):
            _convert_shards(engine, reader, folder, chosen, force)
        else:
            if folder.lower().endswith(INDEX_SUFFIX):
                raise ValueError(f"target={folder!r}: only a sharded source has an index; use .safetensors")
            metadata = reader.metadata if folder.lower().endswith(".safetensors") else None
            infos = [engine.target_info(info, chosen) for info in reader.tensors.values()]
            with Writer(target, infos, force=force, metadata=metadata) as writer:
                engine.transfer(reader, writer, chosen)
        return [engine.reports[name] for name in reader.names]


def _rule(fmt: Format, rule: Rule | BlockRule | None) -> Rule | BlockRule:
    """Return a rule that fits the format, or raise."""
    if isinstance(fmt, BlockFormat):
        return block_rule(fmt, rule=rule)
    if isinstance(rule, BlockRule):
        raise TypeError(f"rule={rule!r} is for block formats, not for {fmt.name}")
    found = Rule() if rule is None else rule
    exact.check_rule(found, fmt)
    return found


def _choose(reader: Reader, include: str | Iterable[str] | None, exclude: str | Iterable[str] | None) -> frozenset[str]:
    """Return the names of the tensors to convert."""
    chosen = {info.name for info in reader.tensors.values() if isinstance(info.format, (FloatFormat, TaperedFormat))}
    if include is not None:
        chosen &= _matching(reader, include, "include")
    if exclude is not None:
        chosen -= _matching(reader, exclude, "exclude")
    return frozenset(chosen)


def _matching(reader: Reader, patterns: str | Iterable[str], argument: str) -> set[str]:
    found: set[str] = set()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        matched = [name for name in reader.names if fnmatch.fnmatchcase(name, pattern)]
        if not matched:
            some = ", ".join(reader.names[:5]) + (", ..." if len(reader.names) > 5 else "")
            raise ValueError(f"{argument}={pattern!r} matches no tensor of {reader.path} ({some})")
        found.update(matched)
    return found


def _convert_shards(engine: _Engine, reader: ShardedReader, target: str, chosen: frozenset[str], force: bool) -> None:
    index = target
    if not target.lower().endswith(INDEX_SUFFIX):
        if os.path.splitext(target)[1] in (".npy", ".bin", ".raw"):
            raise ValueError(f"target={target!r}: a sharded checkpoint needs a folder, an index, .safetensors or .npz")
        index = os.path.join(target, os.path.basename(reader.path))
    folder = os.path.dirname(index) or "."
    with ExitStack() as stack:
        stack.enter_context(_made(folder))
        outputs = {shard: os.path.join(folder, shard) for shard in reader.shards}
        for output, shard in [(index, reader.path), *((outputs[s], r.path) for s, r in reader.shards.items())]:
            if os.path.exists(output) and os.path.samefile(output, shard):
                raise FileError(f"{output}: is part of the source; a sharded checkpoint needs another folder to go to")
            AtomicFile(output, force).check()
        # What is entered first gets its name last: the index names the shards only when all are there.
        file = stack.enter_context(AtomicFile(index, force))
        size = 0
        for shard, part in reader.shards.items():
            infos = [engine.target_info(info, chosen) for info in part.tensors.values()]
            writer = Writer(outputs[shard], infos, force=force, metadata=part.metadata)
            engine.transfer(part, stack.enter_context(writer), chosen)
            writer.finish()
            size += sum(info.nbytes for info in infos)
        weights = {name: shard for shard, part in reader.shards.items() for name in part.tensors}
        about = {**reader.about, "total_size": size}
        text = json.dumps({"metadata": about, "weight_map": dict(sorted(weights.items()))}, indent=2)
        file.write(text.encode() + b"\n")


@contextmanager
def _made(folder: str) -> Iterator[None]:
    """Make a folder, and remove it again if what follows fails."""
    made = not os.path.isdir(folder)
    try:
        if made:
            os.makedirs(folder)
    except OSError as error:
        raise FileError(f"{folder}: cannot be made a folder: {error.strerror}") from error
    try:
        yield
    except BaseException:
        if made:
            with suppress(OSError):
                os.rmdir(folder)
        raise


# --- one tensor -------------------------------------------------------------------------------------------------------


class _Engine:
    """The conversion of many tensors to one format under one rule; a context that holds the threads."""

    def __init__(
        self,
        fmt: Format,
        rule: Rule | BlockRule,
        threads: int | None,
        progress: Progress | None,
        total: int,
        axis: int = -1,
    ) -> None:
        if threads is not None and (type(threads) is not int or threads < 1):
            raise ValueError(f"threads={threads!r} must be a positive integer")
        affinity = getattr(os, "sched_getaffinity", None)
        count = threads or (len(affinity(0)) if affinity else os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="bittrue-convert")
        self._format, self._rule, self._axis = fmt, rule, axis
        self._progress, self._done, self._total = progress, 0, total
        self.reports: dict[str, TensorReport] = {}

    def __enter__(self) -> _Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def target_info(self, info: TensorInfo, chosen: frozenset[str]) -> TensorInfo:
        """Return what a tensor becomes."""
        return self._target(info) if info.name in chosen else info

    def _target(self, info: TensorInfo) -> TensorInfo:
        axis = self._axis if isinstance(self._format, BlockFormat) else None
        return TensorInfo(info.name, self._format, info.shape, axis)

    def transfer(self, reader: Reader, writer: Writer, chosen: frozenset[str]) -> None:
        """Convert or copy all tensors of `reader` into `writer`."""
        for name in writer.names:
            self._convert(reader, writer, name) if name in chosen else self._copy(reader, writer, name)

    def _advance(self, name: str, elements: int) -> None:
        self._done += elements
        if self._progress is not None:
            self._progress(name, self._done, self._total)

    def _copy(self, reader: Reader, writer: Writer, name: str) -> None:
        info = reader[name]
        moved = before = 0
        for data in reader.raw(name, _COPY):
            writer.write_raw(name, data)
            moved += data.size
            now = info.elements * moved // info.nbytes
            self._advance(name, now - before)
            before = now
        fmt = info.format.name
        self.reports[name] = TensorReport(name, info.shape, fmt, fmt, False, info.elements, info.nbytes, info.nbytes)

    def _convert(self, reader: Reader, writer: Writer, name: str) -> None:
        info, target = reader[name], self._target(reader[name])
        if isinstance(self._format, BlockFormat):
            self._convert_blocks(reader, writer, info, target, self._format)
            return
        assert isinstance(self._rule, Rule)
        cast = _Cast(info.format, self._format, self._rule)
        totals = _Totals()
        codes = np.empty(min(_CHUNK, info.elements), self._format.storage)
        start = 0
        for chunk in reader.chunks(name, _CHUNK):
            out = codes[: chunk.size]
            jobs = [
                self._pool.submit(cast.run, chunk[at : at + _PIECE], out[at : at + _PIECE], start + at)
                for at in range(0, chunk.size, _PIECE)
            ]
            try:
                for job in jobs:
                    totals.add(*job.result())
            except (OverflowError, ValueError) as error:
                for job in jobs:
                    job.cancel()
                raise type(error)(f"tensor {name!r}, from element {start}: {error}") from None
            writer.write(name, out)
            start += chunk.size
            self._advance(name, chunk.size)
        self.reports[name] = totals.report(info, target)


    def _convert_blocks(
        self, reader: Reader, writer: Writer, info: TensorInfo, target: TensorInfo, fmt: BlockFormat
    ) -> None:
        """Convert into blocks: piece by piece where they are one run of memory, else the whole tensor at once."""
        axis = target.axis or 0
        run = axis == len(info.shape) - 1 and info.shape[-1] % fmt.block_size == 0
        totals = _Totals()
        pieces = reader.chunks(info.name, _CHUNK) if run else iter([reader.read(info.name).codes])
        done = 0
        for codes in pieces:
            values = _values_of(codes, info.format)
            size = _PIECE if run else max(codes.size, 1)
            flat = values.reshape(-1) if run else values
            parts = [flat[at : at + size] for at in range(0, flat.size, size)] if run else [flat]
            jobs = [self._pool.submit(_cast_blocks, part, fmt, self._rule, -1 if run else axis) for part in parts]
            try:
                for job in jobs:
                    data, sums, counts = job.result()
                    totals.add(sums, counts)
                    writer.write_raw(info.name, data)
            except (OverflowError, ValueError) as error:
                for job in jobs:
                    job.cancel()
                raise type(error)(f"tensor {info.name!r}, from element {done}: {error}") from None
            done += codes.size
            self._advance(info.name, codes.size)
        self.reports[info.name] = totals.report(info, target)


def _values_of(codes: Values, source: Format) -> Values:
    """Return exact values of a source's codes in an array of its own."""
    native = _NATIVE.get(source.name)
    if native is not None:
        return codes.view(native)
    return np.asarray(decode(codes, source, np.float32 if _fits_float32(source) else np.float64))


def _cast_blocks(
    values: Values, fmt: BlockFormat, rule: Rule | BlockRule, axis: int
) -> tuple[Values, Values, Values]:
    """Return packed blocks, and the figures of the conversion."""
    from .kernels.stats import difference

    data = encode(values, fmt, rule=rule, axis=axis, threads=1)
    after = decode(data, fmt, np.float64, axis=axis, threads=1)
    keep = tuple(slice(n) for n in values.shape)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        before = values.astype(np.float64)
    sums, counts = np.zeros(4), np.zeros(4, np.int64)
    limit = np.float64(np.inf)  # blocks have no range of their own below float32's
    difference(before.reshape(-1), np.ascontiguousarray(after[keep]).reshape(-1), -limit, limit, sums, counts)
    return data.reshape(-1), sums, counts


class _Cast:
    """The conversion of pieces of one tensor, with its measurement."""

    def __init__(self, source: Format, target: Format, rule: Rule) -> None:
        from .kernels.stats import difference

        self._difference = difference
        self._source, self._target, self._rule = source, target, rule
        self._dtype = np.dtype(np.float32 if _fits_float32(source) and _fits_float32(target) else np.float64)
        low, high = overflow_limits(target, rule, source)
        self._low, self._high = -_ceiling(-low, self._dtype), _ceiling(high, self._dtype)
        self._scratch = threading.local()

    def run(self, data: Values, out: Values, start: int) -> tuple[Values, Values]:
        """Convert codes `data`, which begin at element `start` of the tensor, into codes `out`; return the figures."""
        values = self._values(data)
        random = None
        if self._rule.rounding is Rounding.stochastic:
            from .kernels.stochastic import random_bits

            random = np.empty(data.size, np.uint32)
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

    def _values(self, data: Values) -> Values:
        """Return the source's values, without rounding."""
        native = _NATIVE.get(self._source.name)
        if native is not None:
            return data.view(native)
        dtype = np.dtype(np.float32 if _fits_float32(self._source) else np.float64)
        values = self._buffer("values", dtype, data.size)
        decode(data, self._source, dtype, out=values, threads=1)
        if self._rule.flush_inputs:  # subnormals of the source are ordinary numbers of `dtype`
            values[np.abs(values) < float(self._source.min_normal)] *= 0
        return values

    def _buffer(self, name: str, dtype: np.dtype[Any], size: int) -> Values:
        """Return this thread's scratch memory."""
        buffer: Values | None = getattr(self._scratch, name, None)
        if buffer is None or buffer.size < size:
            buffer = np.empty(size, dtype)
            setattr(self._scratch, name, buffer)
        return buffer[:size]


class _Totals:
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
            _decibels(self._signal, self._noise),
            self._max_abs,
            self._max_rel,
            overflowed,
            flushed,
            nan,
            infinite,
        )


def _decibels(signal: float, noise: float) -> float:
    if noise == 0:
        return math.inf
    return 10 * (math.log10(signal) - math.log10(noise)) if signal else -math.inf


def _fits_float32(fmt: Format) -> bool:
    """Whether float32 holds every value of `fmt`."""
    if isinstance(fmt, IntFormat):
        return fmt.bits <= 24
    if isinstance(fmt, FloatFormat) and fmt.mantissa_bits > 23:
        return False
    least = Fraction(1, 1 << 149)
    return isinstance(fmt, BoolFormat) or (fmt.max <= _FLOAT32.max and fmt.min_subnormal >= least)


def _ceiling(value: Fraction | float, dtype: np.dtype[Any]) -> Any:
    """Return the smallest number of `dtype` not below `value`; inf beyond its range."""
    if isinstance(value, float):
        return dtype.type(value)
    with np.errstate(over="ignore"):
        try:
            near = dtype.type(float(value))
        except OverflowError:
            return dtype.type(math.inf if value > 0 else np.finfo(dtype).min)
    if math.isinf(near):
        return near if near > 0 else np.finfo(dtype).min
    return near if Fraction(float(near)) >= value else np.nextafter(near, dtype.type(math.inf))


def overflow_limits(target: Format, rule: Rule, source: Format) -> tuple[Fraction | float, Fraction | float]:
    """Return (low, high): a finite x rounds beyond the range of `target` iff x >= high or x <= low.

    Examples
    --------
    >>> overflow_limits(_format("float8_e4m3fn"), Rule(), _FLOAT32)[1] > 464
    True
    """
    if isinstance(target, BoolFormat):
        return -math.inf, math.inf
    tiny = Fraction(1, 1 << 1100)  # stands for "anything above"; thresholds are far coarser than this
    if isinstance(target, IntFormat):
        high = _limit(rule, int(target.max), Fraction(1), bool(target.max % 2), False, tiny)
        return -_limit(rule, -int(target.min), Fraction(1), bool(target.min % 2), True, tiny), high
    assert isinstance(target, (FloatFormat, TaperedFormat))
    step = Fraction(2) ** target.quantum_exponent(floor_log2(target.max))
    odd = bool(target.max_code & 1)
    high = _limit(rule, target.max, step, odd, False, tiny)
    if target.signed:
        return -_limit(rule, target.max, step, odd, True, tiny), high
    if rule.negative is Negative.magnitude:
        return -high, high
    if not target.has_zero:
        low = tiny  # there is nothing at or below zero
    elif rule.flush_outputs:
        largest = target.min_normal - target.min_subnormal  # the largest value that still becomes zero
        odd = bool(int(largest / target.min_subnormal) & 1)
        low = _limit(rule, largest, target.min_subnormal, odd, True, tiny)
    else:
        low = _limit(rule, Fraction(0), target.min_subnormal, False, True, tiny)
    if rule.flush_inputs and isinstance(source, (FloatFormat, TaperedFormat)):
        low = max(low, source.min_normal)
    return -low, high


def _limit(rule: Rule, largest: Fraction | int, step: Fraction, odd: bool, negative: bool, tiny: Fraction) -> Fraction:
    """Return the smallest magnitude that rounds beyond `largest`, whose next value would be `step` further."""
    certain = largest + step
    if rule.rounding in (Rounding.hybrid, Rounding.stochastic):
        return certain
    for rest, limit in ((1, largest + tiny), (2, largest + step / 2), (3, largest + step / 2 + tiny)):
        if exact.round_up(rule.rounding, odd, negative, rest, 4):
            return limit
    return certain
