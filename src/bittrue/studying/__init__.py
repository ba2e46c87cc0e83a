"""`study`: what every format costs every tensor of a checkpoint, on threads or on a cluster; resumable."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import numpy as np

from ..array import Array
from ..chunks import thread_count, usable_cpus
from ..cluster import Cluster, Place
from ..files import RAW_SUFFIXES, open_tensors
from ..files.base import Path
from ..files.patterns import matching
from ..formats import FloatFormat, Format, TaperedFormat
from ..formats import format as find_format
from .journal import Journal
from .measure import measure, spread
from .plan import Trial, parse_trial
from .report import Cost, Skipped, Spread, Study, Summary
from .values import HELD, Held, Streamed, Values, as_floats

__all__ = ["DEFAULT_FORMATS", "Cost", "Skipped", "Spread", "Study", "Summary", "Trial", "study"]

Plain = np.ndarray[Any, Any]
Found = tuple[list[Cost], Spread]
Part = tuple[list[Cost], Spread | None]  # some formats of a tensor; the first part of each tensor has its spread
Progress = Callable[[str, int, int], object]

DEFAULT_FORMATS = ("hifloat8", "float8_e4m3fn", "mx9", "mx6", "mx4", "mxfp4", "nvfp4", "int8")


def study(
    source: Path | Mapping[str, Any],
    formats: Format | str | Trial | Iterable[Format | str | Trial] = DEFAULT_FORMATS,
    *,
    granularity: str = "tensor",
    scale: str = "absmax",
    include: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    resume: Path | None = None,
    scheduler: Any = None,
) -> Study:
    """Measure what each of several formats does to the floating tensors of a model.

    Parameters
    ----------
    source : path or mapping of names to arrays
        A file as for `bittrue.load`, of which at most 2**24 elements are in memory at a time (larger tensors are read
        again for every format); or NumPy arrays, `bittrue.Array` or torch tensors.
    formats : Format, name or text, or iterable of them
        ``"int8@channel"``, ``"int4@group:128@mse"`` give one format a granularity and a choice of scale of its own.
    granularity : str
        What shares a scale: "tensor", "channel" (first axis) or "group:N" (N elements along the other axes as one).
    scale : str
        "none", "absmax", "power_of_two" or "mse". Block formats bring their own scales and ignore both arguments, but
        for the scale of the whole tensor that NVFP4 has ("none": 1); their blocks lie as groups do.
    include, exclude : str or iterable of str, optional
        Shell patterns of tensor names; each must match one.
    threads : int, optional
        Default: one per processor. The result never depends on it.
    progress : callable, optional
        Called as ``progress(name, done, total)`` with elements, whenever a tensor is done in one more format.
    resume : path, optional
        A journal of the tensors that are done. If it exists and belongs to the same file, formats and options, they
        are not measured again; it is removed when the study is complete.
    scheduler : str or distributed.Client, optional
        "tcp://host:port" of a dask.distributed scheduler whose workers measure, with the same result; they read the
        file under the same path. What a lost worker had is measured again.

    Returns
    -------
    Study

    Raises
    ------
    FileError
        For a file that is missing or damaged.
    ValueError
        When no tensor matches, for unknown formats, granularities and scales, and for arrays with a scheduler.
    ClusterError
        For a scheduler that cannot be reached, or a cluster that fails (a `ConnectionError`).

    Examples
    --------
    >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16)
    >>> found = study({"w": x}, ["int8", "mx6", "float8_e4m3fn@none"])
    >>> [(c.format, f"{c.sqnr_db:.1f}", float(c.bits_per_value)) for c in found.costs]
    [('int8', '48.3', 8.5), ('mx6', '31.7', 6.0), ('float8_e4m3fn@none', '32.0', 8.0)]
    >>> found.worst[0].tensor
    'w'
    """
    formats = [formats] if isinstance(formats, (Format, str, Trial)) else formats
    workers = thread_count(threads) or usable_cpus()
    trials = list(dict.fromkeys(parse_trial(f, granularity, scale) for f in formats))
    if not trials:
        raise ValueError("formats is empty: give at least one")
    if scheduler is not None and isinstance(source, Mapping):
        raise ValueError("scheduler= needs a file, which its workers can read; these are arrays")
    if scheduler is not None and threads is not None:
        raise ValueError(f"threads={threads!r} has no meaning with a scheduler: its workers have theirs")
    with ExitStack() as stack:
        store: _Named | _File
        store = _Named(source) if isinstance(source, Mapping) else stack.enter_context(_File(source))
        chosen, skipped = _choose(store, include, exclude)
        about = None if resume is None else [store.fingerprint(), [t.label for t in trials], chosen]
        journal = stack.enter_context(Journal(resume, about))
        cluster = None if scheduler is None else stack.enter_context(Cluster(scheduler))
        count = _Count(progress, sum(store.elements(name) for name in chosen), len(trials))
        todo = [name for name in chosen if journal.get(name) is None]
        if cluster is not None:
            assert isinstance(store, _File)
            work = _on_cluster(cluster, store, todo, trials, count)
        else:
            work = _on_threads(workers, store, todo, trials, count)
        results = stack.enter_context(closing(work))
        costs: list[Cost] = []
        spreads: list[Spread] = []
        for name in chosen:
            found = journal.get(name)
            if found is None:
                found = next(results)
                journal.put(name, *found)
            else:
                count.add(name, store.elements(name), len(trials))
            costs += found[0]
            spreads.append(found[1])
        result = Study(store.name, tuple(trials), tuple(costs), tuple(skipped), Spread.total(spreads))
        journal.finish()
    return result


class _Count:
    """What is done, in elements: a tensor in one of several formats counts for its share."""

    def __init__(self, progress: Progress | None, total: int, trials: int) -> None:
        self._progress, self._total, self._trials, self._done = progress, total, trials, 0

    def add(self, name: str, elements: int, trials: int) -> None:
        """Count a tensor in so many formats."""
        self._done += elements * trials
        if self._progress is not None:
            self._progress(name, self._done // self._trials, self._total)


def _on_threads(
    threads: int, store: _File | _Named, names: Iterable[str], trials: Sequence[Trial], count: _Count
) -> Generator[Found, None, None]:
    """Yield what is found of each tensor; every format is a job for a thread."""
    with ThreadPoolExecutor(threads, thread_name_prefix="bittrue-study") as pool:
        for name in names:
            jobs = [pool.submit(part) for part in store.parts(name, trials)]
            parts: list[Part] = []
            try:
                for job in jobs:
                    parts.append(job.result())
                    count.add(name, store.elements(name), 1)
            finally:
                for job in jobs:
                    job.cancel()
            yield _joined(parts)


def _on_cluster(
    cluster: Cluster, store: _File, names: Sequence[str], trials: Sequence[Trial], count: _Count
) -> Generator[Found, None, None]:
    """Yield what is found of each tensor; a worker gets one in all formats, of a large one in one format."""

    def shares(name: str) -> list[Sequence[Trial]]:
        return [trials] if store.elements(name) <= HELD else [[trial] for trial in trials]

    places: dict[str, Place] = {}

    def calls() -> Iterator[tuple[Any, ...]]:
        for name in names:
            place = store.place(name, places)
            for number, share in enumerate(shares(name)):
                yield place, name, share, number == 0

    with closing(cluster.map(measure_part, calls())) as made:
        for name in names:
            parts: list[Part] = []
            for share in shares(name):
                parts.append(next(made))
                count.add(name, store.elements(name), len(share))
            yield _joined(parts)


def _joined(parts: Sequence[Part]) -> Found:
    first = parts[0][1]
    assert first is not None
    return [cost for costs, _ in parts for cost in costs], first


def measure_part(place: Place, name: str, trials: Sequence[Trial], first: bool) -> Part:
    """Measure a tensor of a file in some formats: the work of a worker, or of a thread where the tensor is large."""
    with place.open() as reader:
        info = reader[name]
        values: Values = Streamed(reader, name) if info.elements > HELD else Held(as_floats(reader.read(name)))
        costs = [measure(name, values, trial, info.format.name) for trial in trials]
        return costs, spread(values) if first else None


# --- where tensors come from ------------------------------------------------------------------------------------------


class _File:
    """The tensors of a file."""

    def __init__(self, path: Path) -> None:
        if os.fspath(path).lower().endswith(RAW_SUFFIXES):
            raise ValueError(f"{path}: a raw file does not tell its format; study .safetensors, .npz or .npy")
        self._reader = open_tensors(path, lenient=True)
        self.name = os.fspath(path)
        self.names = [*self._reader.names, *self._reader.unsupported]

    def __enter__(self) -> _File:
        self._reader.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._reader.__exit__(*error)

    def format(self, name: str) -> str:
        """Return the name of a tensor's format, or of its dtype where that is not known."""
        unknown = self._reader.unsupported.get(name)
        return unknown.dtype if unknown else self._reader[name].format.name

    def studied(self, name: str) -> bool:
        """Whether a tensor holds floating values."""
        info = self._reader.tensors.get(name)
        return info is not None and isinstance(info.format, (FloatFormat, TaperedFormat))

    def elements(self, name: str) -> int:
        """Return the number of elements."""
        return self._reader[name].elements

    def place(self, name: str, known: dict[str, Place]) -> Place:
        """Return where a tensor lies."""
        path = self._reader.file_of(name)
        if path not in known:
            known[path] = Place.of(path)
        return known[path]

    def parts(self, name: str, trials: Sequence[Trial]) -> list[Callable[[], Part]]:
        """Return the work on a tensor, by format; a large one each part reads for itself."""
        if self.elements(name) > HELD:
            place = self.place(name, {})
            return [partial(measure_part, place, name, [trial], k == 0) for k, trial in enumerate(trials)]
        return _parts(name, as_floats(self._reader.read(name)), self.format(name), trials)

    def fingerprint(self) -> object:
        """Return what tells this file from another, or from itself before it was written again."""
        files = [self.name, *(reader.path for reader in getattr(self._reader, "shards", {}).values())]
        status = [os.stat(file) for file in files]
        return [[os.path.abspath(f), s.st_size, s.st_mtime_ns] for f, s in zip(files, status)]


class _Named:
    """Arrays by name."""

    name = "tensors"

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        self._tensors = {name: _typed(value) for name, value in tensors.items()}
        self.names = list(self._tensors)

    def format(self, name: str) -> str:
        """Return the name of a tensor's format."""
        value = self._tensors[name]
        return value.format.name if isinstance(value, Array) else str(value.dtype)

    def studied(self, name: str) -> bool:
        """Whether a tensor holds floating values."""
        value = self._tensors[name]
        return isinstance(value, Array) and isinstance(value.format, (FloatFormat, TaperedFormat))

    def elements(self, name: str) -> int:
        """Return the number of elements."""
        return int(self._tensors[name].size)

    def parts(self, name: str, trials: Sequence[Trial]) -> list[Callable[[], Part]]:
        """Return the work on a tensor, by format."""
        return _parts(name, as_floats(self._tensors[name]), self.format(name), trials)

    def fingerprint(self) -> object:
        """Return what tells these tensors from others: nothing short of their values."""
        import hashlib

        floats = {n: as_floats(self._tensors[n]) for n in self.names if self.studied(n)}
        return {n: hashlib.sha256(x.data).hexdigest() for n, x in floats.items()}


def _typed(value: Any) -> Any:
    """Return an `Array`, or a NumPy array of a dtype for which there is no format."""
    if isinstance(value, Array):
        return value
    if type(value).__module__.partition(".")[0] == "torch":
        from ..torch import from_torch

        return from_torch(value.cpu())
    array = np.asarray(value)
    try:
        return Array(array, find_format(array.dtype))
    except ValueError:
        return array


def _parts(name: str, x: Plain, source: str, trials: Sequence[Trial]) -> list[Callable[[], Part]]:
    values = Held(x)

    def part(trial: Trial, first: bool) -> Part:
        return [measure(name, values, trial, source)], spread(values) if first else None

    return [partial(part, trial, k == 0) for k, trial in enumerate(trials)]


def _choose(store: _File | _Named, include: Any, exclude: Any) -> tuple[list[str], list[Skipped]]:
    """Return the names to study in their order, and what has no floating values."""
    taken = set(store.names) if include is None else matching(store.names, include, "include", store.name)
    if exclude is not None:
        taken -= matching(store.names, exclude, "exclude", store.name)
    wanted = [n for n in store.names if n in taken]
    chosen = [n for n in wanted if store.studied(n)]
    if not chosen:
        some = ", ".join(store.names[:5]) + (", ..." if len(store.names) > 5 else "")
        why = "no tensor of floating values" if wanted or not store.names else "include and exclude leave no tensor"
        raise ValueError(f"{store.name}: {why} (has {some or 'no tensors'})")
    return chosen, [Skipped(n, store.format(n)) for n in wanted if not store.studied(n)]
