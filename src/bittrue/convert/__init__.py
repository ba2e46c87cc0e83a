"""Checkpoint conversion: every floating tensor of a file into another format, piece by piece, with a report."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any

import numpy as np

from .. import exact
from ..blocks import block_rule
from ..chunks import thread_count, usable_cpus
from ..cluster import Cluster, Place
from ..files import (
    INDEX_SUFFIX,
    RAW_SUFFIXES,
    AtomicFile,
    FileError,
    Reader,
    ShardedReader,
    TensorInfo,
    Unsupported,
    Writer,
    open_tensors,
)
from ..files.base import Path, explained
from ..files.patterns import matching
from ..files.writer import uninterrupted
from ..formats import FloatFormat, Format, TaperedFormat
from ..formats import format as _format
from ..kinds.block import BlockFormat, BlockRule
from ..rounding import Rule, make_rule
from .limits import overflow_limits
from .report import TensorReport, Totals
from .work import Conversion, Piece, convert_part, pieces

__all__ = ["TensorReport", "chosen_tensors", "convert", "overflow_limits"]

Progress = Callable[[str, int, int], object]

_COPY = 1 << 22  # bytes copied at a time


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
    axis: int | None = None,
    scheduler: Any = None,
) -> list[TensorReport]:
    """Convert the floating tensors of a file, those in blocks too; copy the others as they are.

    Every value is rounded once, from its exact value. Memory use does not depend on the size of the file (except for
    .npy members in Fortran order, and what `axis` says). The output appears complete or not at all.

    Parameters
    ----------
    source : path
        .safetensors, the .safetensors.index.json of a sharded checkpoint, .npz, .npy, .bin or .raw.
    target : path
        The suffix chooses the container, which may differ from the source's. For a sharded checkpoint a folder (made
        if need be) or the path of the new index: the shards keep their names and get theirs only when all are
        complete, the index last. With the suffix .safetensors or .npz a sharded checkpoint becomes one file.
    format : Format or name
        What floating tensors become. Those that are in blocks of this format along the same axis are copied.
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
    axis : int, optional
        Block formats: along which the blocks lie; default: for tensors in blocks as theirs do, for others the last. A
        tensor that does not have this axis is copied; one whose blocks are not one run of memory (another axis than
        the last, or a last block to be filled; of a tensor in blocks, another axis than theirs) is held in memory
        whole. Blocks that become a plain format along another axis than the last: their bytes are held in memory for
        each index of the axes before, their values are not.
    scheduler : str or distributed.Client, optional
        "tcp://host:port" of a dask.distributed scheduler: its workers convert, part by part, and this process writes
        the same bytes as without it. They read the source under the same path. What a lost worker had is done again.

    Returns
    -------
    list of TensorReport
        In the order of the source; tensors of a dtype that is not known, which the output lacks, come last.

    Raises
    ------
    FileError
        For a source that is damaged, or a target that exists or cannot be written.
    ValueError
        For an unsuitable rule, pattern or suffix.
    OverflowError
        Under ``overflow="raise"``.
    ClusterError
        For a scheduler that cannot be reached, or a cluster that fails (a `ConnectionError`).

    Examples
    --------
    >>> import tempfile, numpy as np, bittrue as bt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bt.save(folder + "/a.safetensors", {"w": np.float32([0.3, 1000]), "steps": np.int64([7])})
    ...     reports = bt.convert(folder + "/a.safetensors", folder + "/b.safetensors", "float8_e4m3fn")
    >>> [(r.name, r.target, r.bytes_after, r.overflowed) for r in reports]
    [('steps', 'int64', 8, None), ('w', 'float8_e4m3fn', 2, 1)]

    Blocks into values, which are the blocks' own:

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bt.save(folder + "/a.npy", bt.array(np.float32([0.3, 1000, -5]), "mxfp4"))
    ...     reports = bt.convert(folder + "/a.npy", folder + "/b.npy", "float32")
    ...     bt.load(folder + "/b.npy"), reports[0].sqnr_db
    (Array([  0., 768.,  -0.], shape=(3,), format=float32), inf)
    """
    fmt = _format(format)
    rule = _rule(fmt, rule)
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer, type(None))):
        raise ValueError(f"axis={axis!r} must be an integer, or None")
    if fmt.kind == "complex":
        raise ValueError(f"format={fmt.name!r}: real tensors do not become complex ones")
    with ExitStack() as stack:
        reader = stack.enter_context(open_tensors(source, format=source_format, shape=source_shape, lenient=True))
        conversion = Conversion(fmt, rule, axis)
        chosen = chosen_tensors(reader, include, exclude)
        chosen = frozenset(name for name in chosen if conversion.changes(reader[name]))
        total = sum(info.elements for info in reader.tensors.values())
        if scheduler is not None and threads is not None:
            raise ValueError(f"threads={threads!r} has no meaning with a scheduler: its workers have theirs")
        cluster = None if scheduler is None else stack.enter_context(Cluster(scheduler))
        about = (source_format, source_shape)
        engine = stack.enter_context(_Engine(conversion, threads, progress, total, cluster, about))
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
        return [engine.reports[name] for name in reader.names] + [_left_out(t) for t in reader.unsupported.values()]


def _left_out(t: Unsupported) -> TensorReport:
    return TensorReport(t.name, t.shape, t.dtype, "", False, math.prod(t.shape), t.nbytes, 0)


def _rule(fmt: Format, rule: Rule | BlockRule | None) -> Rule | BlockRule:
    """Return a rule that fits the format, or raise."""
    if isinstance(fmt, BlockFormat):
        return block_rule(fmt, rule=rule)
    if isinstance(rule, BlockRule):
        raise TypeError(f"rule={rule!r} is for block formats, not for {fmt.name}")
    found = make_rule(rule)
    exact.check_rule(found, fmt)
    return found


def chosen_tensors(
    reader: Reader, include: str | Iterable[str] | None, exclude: str | Iterable[str] | None
) -> frozenset[str]:
    """Return the names of the tensors to convert: floating ones, in blocks or not, that the patterns choose."""
    floating = (FloatFormat, TaperedFormat, BlockFormat)
    chosen = {info.name for info in reader.tensors.values() if isinstance(info.format, floating)}
    names = [*reader.names, *reader.unsupported]
    if include is not None:
        chosen &= matching(names, include, "include", reader.path)
    if exclude is not None:
        chosen -= matching(names, exclude, "exclude", reader.path)
    return frozenset(chosen)


def _convert_shards(engine: _Engine, reader: ShardedReader, target: str, chosen: frozenset[str], force: bool) -> None:
    index = target
    if not target.lower().endswith(INDEX_SUFFIX):
        if os.path.splitext(target)[1].lower() in (".npy", *RAW_SUFFIXES):
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
        # What comes first gets its name last: the index names the shards only when all are there. Each is pushed before
        # it is entered, so that no Ctrl-C in between leaves its temporary file.
        file = AtomicFile(index, force)
        stack.push(file)
        written = file.__enter__()
        size = 0
        for shard, part in reader.shards.items():
            infos = [engine.target_info(info, chosen) for info in part.tensors.values()]
            writer = Writer(outputs[shard], infos, force=force, metadata=part.metadata)
            stack.push(writer)
            engine.transfer(part, writer.__enter__(), chosen)
            writer.finish()
            size += sum(info.nbytes for info in infos)
        weights = {name: shard for shard, part in reader.shards.items() for name in part.tensors}
        about = {**reader.about, "total_size": size}
        text = json.dumps({"metadata": about, "weight_map": dict(sorted(weights.items()))}, indent=2)
        with explained(index):
            written.write(text.encode() + b"\n")
            file.sync()
        with uninterrupted():
            stack.close()


@contextmanager
def _made(folder: str) -> Iterator[None]:
    """Make a folder and those above it, and remove again what was made if what follows fails."""
    made, above = [], os.path.abspath(folder)
    while not os.path.isdir(above):
        made.append(above)
        above = os.path.dirname(above)
    try:
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise FileError(f"{folder}: cannot be made a folder: {error.strerror}") from error
        yield
    except BaseException:
        for each in made:
            with suppress(OSError):  # not made after all, or others use it already
                os.rmdir(each)
        raise


# --- all tensors ------------------------------------------------------------------------------------------------------


class _Engine:
    """The conversion of many tensors, on threads of its own or a cluster; a context that holds the threads."""

    def __init__(
        self,
        conversion: Conversion,
        threads: int | None,
        progress: Progress | None,
        total: int,
        cluster: Cluster | None,
        about: tuple[Any, Any],
    ) -> None:
        self._pool = ThreadPoolExecutor(thread_count(threads) or usable_cpus(), thread_name_prefix="bittrue-convert")
        self._conversion, self._cluster, self._about = conversion, cluster, about
        self._progress, self._done, self._total = progress, 0, total
        self.reports: dict[str, TensorReport] = {}

    def __enter__(self) -> _Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def target_info(self, info: TensorInfo, chosen: frozenset[str]) -> TensorInfo:
        """Return what a tensor becomes."""
        return self._conversion.target(info) if info.name in chosen else info

    def transfer(self, reader: Reader, writer: Writer, chosen: frozenset[str]) -> None:
        """Convert or copy all tensors of `reader` into `writer`."""
        names = [name for name in writer.names if name in chosen and reader[name].elements]
        with closing(self._pieces(reader, names)) as made:
            for name in writer.names:
                self._convert(reader, writer, name, made) if name in chosen else self._copy(reader, writer, name)

    def _pieces(self, reader: Reader, names: list[str]) -> Generator[Piece, None, None]:
        """Yield all pieces of these tensors, one tensor after the other."""
        if self._cluster is None:
            for name in names:
                yield from pieces(reader, name, self._conversion, self._pool)
            return
        places: dict[str, Place] = {}

        def calls() -> Iterator[tuple[Any, ...]]:
            for name in names:
                path = reader.file_of(name)
                place = places.setdefault(path, Place.of(path, *self._about))
                for start, stop in self._conversion.parts(reader[name]):
                    yield place, name, self._conversion, start, stop

        yield from self._cluster.map(convert_part, calls())

    def _convert(self, reader: Reader, writer: Writer, name: str, made: Iterator[Piece]) -> None:
        info, totals, left = reader[name], Totals(), reader[name].elements
        while left:
            piece = next(made)
            for figures in piece.figures:
                totals.add(*figures)
            for image in piece.images:
                writer.write_raw(name, image)
            left -= piece.elements
            self._advance(name, piece.elements)
        self.reports[name] = totals.report(info, self._conversion.target(info))

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

    def _advance(self, name: str, elements: int) -> None:
        self._done += elements
        if self._progress is not None:
            self._progress(name, self._done, self._total)
