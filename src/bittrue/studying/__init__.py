"""`study`: what every format costs every tensor of a checkpoint; one tensor in memory at a time, resumable."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fractions import Fraction
from typing import Any

import numpy as np

from ..array import Array
from ..codec import quantize
from ..convert import _ceiling, _fits_float32, overflow_limits
from ..files import open_tensors
from ..files.base import Path
from ..formats import FloatFormat, Format, TaperedFormat
from ..formats import format as find_format
from ..kinds.block import BlockFormat
from ..rounding import Rule
from .journal import Journal
from .plan import Pieces, Trial, parse_trial, scales_of
from .report import Cost, Skipped, Spread, Study, Summary

__all__ = ["DEFAULT_FORMATS", "Cost", "Skipped", "Spread", "Study", "Summary", "Trial", "study"]

Values = np.ndarray[Any, Any]
Progress = Callable[[str, int, int], object]

DEFAULT_FORMATS = ("hifloat8", "float8_e4m3fn", "mx9", "mx6", "mx4", "mxfp4", "nvfp4", "int8")


def study(
    source: Path | Mapping[str, Any],
    formats: Iterable[Format | str | Trial] = DEFAULT_FORMATS,
    *,
    granularity: str = "tensor",
    scale: str = "absmax",
    include: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    resume: Path | None = None,
) -> Study:
    """Measure what each of several formats does to the floating tensors of a model.

    Parameters
    ----------
    source : path or mapping of names to arrays
        A file as for `bittrue.load`, read one tensor at a time; or NumPy arrays, `bittrue.Array` or torch tensors.
    formats : iterable of Format, name or text
        ``"int8@channel"``, ``"int4@group:128@mse"`` give one format a granularity and a choice of scale of its own.
    granularity : str
        What shares a scale: "tensor", "channel" (first axis) or "group:N" (N elements along the other axes as one).
    scale : str
        "none", "absmax", "power_of_two" or "mse". Block formats bring their own scales and ignore both arguments, but
        for the scale of the whole tensor that NVFP4 has ("none": 1); their blocks lie as groups do.
    include, exclude : str or iterable of str, optional
        Shell patterns of tensor names.
    threads : int, optional
        Default: one per processor. The result never depends on it.
    progress : callable, optional
        Called as ``progress(name, done, total)`` with elements, after every tensor.
    resume : path, optional
        A journal of the tensors that are done. If it exists and belongs to the same file, formats and options, they
        are not measured again; it is removed when the study is complete.

    Returns
    -------
    Study

    Raises
    ------
    FileError
        For a file that is missing or damaged.
    ValueError
        When no tensor matches, and for unknown formats, granularities and scales.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16)
    >>> found = study({"w": x}, ["int8", "mx6", "float8_e4m3fn@none"])
    >>> [(c.format, f"{c.sqnr_db:.1f}", float(c.bits_per_value)) for c in found.costs]
    [('int8', '48.3', 8.5), ('mx6', '31.7', 6.0), ('float8_e4m3fn@none', '32.0', 8.0)]
    >>> found.worst[0].tensor
    'w'
    """
    trials = list(dict.fromkeys(parse_trial(f, granularity, scale) for f in formats))
    if not trials:
        raise ValueError("formats is empty: give at least one")
    with ExitStack() as stack:
        store: _Named | _File
        store = _Named(source) if isinstance(source, Mapping) else stack.enter_context(_File(source))
        chosen, skipped = _choose(store, include, exclude)
        total = sum(store.elements(name) for name in chosen)
        journal = stack.enter_context(Journal(resume, [store.fingerprint(), [t.label for t in trials], chosen]))
        count = threads or _cpus()
        pool = stack.enter_context(ThreadPoolExecutor(count, thread_name_prefix="bittrue-study"))
        costs: list[Cost] = []
        spreads: list[Spread] = []
        done = 0
        for name in chosen:
            found = journal.get(name)
            if found is None:
                x = store.values(name)
                jobs = [pool.submit(_measure, name, x, trial, store.format(name)) for trial in trials]
                spread = Spread.of(x)
                found = [job.result() for job in jobs], spread
                journal.put(name, *found)
            costs += found[0]
            spreads.append(found[1])
            done += store.elements(name)
            if progress is not None:
                progress(name, done, total)
        result = Study(store.name, tuple(trials), tuple(costs), tuple(skipped), Spread.total(spreads))
        journal.finish()
    return result


def _cpus() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


# --- where tensors come from ------------------------------------------------------------------------------------------


class _File:
    """The tensors of a file."""

    def __init__(self, path: Path) -> None:
        self._reader = open_tensors(path)
        self.name = os.fspath(path)
        self.names = self._reader.names

    def __enter__(self) -> _File:
        self._reader.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._reader.__exit__(*error)

    def format(self, name: str) -> str:
        """Return the name of a tensor's format."""
        return self._reader[name].format.name

    def studied(self, name: str) -> bool:
        """Whether a tensor holds floating values."""
        return isinstance(self._reader[name].format, (FloatFormat, TaperedFormat))

    def elements(self, name: str) -> int:
        """Return the number of elements."""
        return self._reader[name].elements

    def values(self, name: str) -> Values:
        """Return values in float32, or in float64 where float32 does not hold them."""
        return _as_floats(self._reader.read(name))

    def fingerprint(self) -> object:
        """Return what tells this file from another, or from itself before it was written again."""
        files = [self.name, *(reader.path for reader in getattr(self._reader, "shards", {}).values())]
        status = [os.stat(file) for file in files]
        return [[os.path.abspath(f), s.st_size, s.st_mtime_ns] for f, s in zip(files, status)]


class _Named:
    """Arrays by name."""

    name = "tensors"

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        self._tensors = {name: _plain(value) for name, value in tensors.items()}
        self.names = list(self._tensors)

    def format(self, name: str) -> str:
        """Return the name of a tensor's format."""
        value = self._tensors[name]
        return value.format.name if isinstance(value, Array) else str(value.dtype)

    def studied(self, name: str) -> bool:
        """Whether a tensor holds floating values."""
        try:
            return isinstance(find_format(self.format(name)), (FloatFormat, TaperedFormat))
        except ValueError:
            return False

    def elements(self, name: str) -> int:
        """Return the number of elements."""
        return int(self._tensors[name].size)

    def values(self, name: str) -> Values:
        """Return values in float32, or in float64 where float32 does not hold them."""
        value = self._tensors[name]
        return _as_floats(value if isinstance(value, Array) else Array(value, find_format(value.dtype)))

    def fingerprint(self) -> object:
        """Return what tells these tensors from others: nothing short of their values."""
        import hashlib

        return {n: hashlib.sha256(self.values(n).data).hexdigest() for n in self.names if self.studied(n)}


def _plain(value: Any) -> Any:
    if isinstance(value, Array):
        return value
    if type(value).__module__.partition(".")[0] == "torch":
        from ..torch import from_torch

        return from_torch(value.cpu())
    return np.asarray(value)


def _as_floats(a: Array) -> Values:
    dtype = np.float32 if _fits_float32(a.format) else np.float64
    return np.ascontiguousarray(a, dtype)


def _choose(store: _File | _Named, include: Any, exclude: Any) -> tuple[list[str], list[Skipped]]:
    """Return the names to study in their order, and what has no floating values."""
    wanted = [n for n in store.names if include is None or _matches(n, include)]
    wanted = [n for n in wanted if exclude is None or not _matches(n, exclude)]
    chosen = [n for n in wanted if store.studied(n)]
    if not chosen:
        some = ", ".join(store.names[:5]) + (", ..." if len(store.names) > 5 else "")
        why = "no tensor of floating values" if wanted else f"include={include!r}, exclude={exclude!r} leave no tensor"
        raise ValueError(f"{store.name}: {why} (has {some or 'no tensors'})")
    return chosen, [Skipped(n, store.format(n)) for n in wanted if not store.studied(n)]


def _matches(name: str, patterns: str | Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, p) for p in ([patterns] if isinstance(patterns, str) else patterns))


# --- one tensor in one format -----------------------------------------------------------------------------------------


def _measure(name: str, x: Values, trial: Trial, source: str) -> Cost:
    from ..kernels.study import errors

    pieces = Pieces(x, trial)
    scales = scales_of(pieces, trial)
    low, high = _limits(trial.format, x.dtype)
    sums, counts = np.zeros(4), np.zeros(4, np.int64)
    for values, scaled, result in _pieces(pieces, trial, scales):
        errors(values, scaled, result, low, high, sums, counts)
    size = trial.nbytes(x.shape, 0 if scales is None else scales.size)
    signal, noise, relative, largest = (float(s) for s in sums)
    return Cost(
        name, trial.label, source, tuple(x.shape), x.size, size, signal, noise, largest,
        relative / int(counts[0]) if counts[0] else 0.0, int(counts[1]), int(counts[2]), int(counts[3]),
    )


def _pieces(pieces: Pieces, trial: Trial, scales: Values | None) -> Iterator[tuple[Values, Values, Values]]:
    """Yield values, values over their scale, and what becomes of the values."""
    own = isinstance(trial.format, BlockFormat)
    for at in pieces:
        values = np.ascontiguousarray(pieces.rows[at])
        with np.errstate(all="ignore"):
            if own:
                tensor = None if scales is None else scales[0, 0]
                scaled = values if tensor is None else values / tensor
                result = quantize(values, trial.format, threads=1, scale=tensor, rule=_keeping(trial.format))
            elif scales is None:
                scaled, result = values, quantize(values, trial.format, threads=1)
            else:
                scale = pieces.scale(scales, *at)
                scaled = values / scale
                result = quantize(scaled, trial.format, threads=1)
                result *= scale
        yield values, scaled, result


def _keeping(fmt: Format) -> Any:
    """Return the rule of a block format, made not to raise for Inf and NaN."""
    from ..kinds.block import BlockRule, Nonfinite

    assert isinstance(fmt, BlockFormat)
    raising = fmt.rule.nonfinite is Nonfinite.raise_
    return BlockRule(nonfinite=Nonfinite.saturate) if raising else None


def _limits(fmt: Format, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return between which values nothing overflows; of a block format, its whole range."""
    if isinstance(fmt, BlockFormat):
        high = _ceiling(fmt.max * (1 + Fraction(1, 1 << 20)), dtype)  # a scale that was rounded down is no overflow
        return -high, high
    source = find_format(dtype)
    low, high = overflow_limits(fmt, Rule(), source)
    return -_ceiling(-low, dtype), _ceiling(high, dtype)


