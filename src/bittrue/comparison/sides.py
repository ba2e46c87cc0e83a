"""What can be compared: arrays, mappings of them and files, each as named tensors whose codes come in pieces."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ..array import Array
from ..blocks.array import BlockArray
from ..codes import ecosystem_dtype
from ..files import RAW_SUFFIXES, FileError, Reader, TensorInfo, open_tensors
from ..formats import Format
from ..formats import format as find_format
from ..rounding import suggestion

__all__ = ["Side", "as_array", "check_alike", "open_side", "select"]

Codes = np.ndarray[Any, Any]

_ONE = (".npy", *RAW_SUFFIXES)
_LISTED = 5  # names that a message shows


class Side:
    """One side of a comparison.

    Attributes
    ----------
    label : str
        What messages call it: "golden", or the path of a file.
    tensors : dict of str to TensorInfo
    unnamed : bool
        It is one tensor without a name of its own: an array, a .npy or a raw file.
    """

    def __init__(self, label: str, tensors: dict[str, TensorInfo], unnamed: bool) -> None:
        self.label, self.tensors, self.unnamed = label, tensors, unnamed

    @property
    def only(self) -> TensorInfo:
        """The first tensor."""
        return next(iter(self.tensors.values()))

    def chunks(self, name: str, elements: int) -> Iterator[Codes]:
        """Yield a tensor's codes in C order; a piece may be overwritten by the next."""
        raise NotImplementedError

    def raw(self, name: str, size: int) -> Iterator[Codes]:
        """Yield the memory image of a tensor in blocks, `size` bytes at a time."""
        raise NotImplementedError

    def scale(self, name: str) -> float | None:
        """Return the scale of a whole tensor in blocks, where it is known."""
        return None


class _ArraySide(Side):
    def __init__(self, label: str, arrays: dict[str, Array | BlockArray], unnamed: bool) -> None:
        infos = {n: TensorInfo(n, a.format, a.shape, getattr(a, "axis", None)) for n, a in arrays.items()}
        super().__init__(label, infos, unnamed)
        self._arrays = arrays

    def raw(self, name: str, size: int) -> Iterator[Codes]:
        flat = np.ascontiguousarray(self._arrays[name].codes).reshape(-1)
        return (flat[start : start + size] for start in range(0, flat.size, size))

    def scale(self, name: str) -> float | None:
        return getattr(self._arrays[name], "scale", None)

    def chunks(self, name: str, elements: int) -> Iterator[Codes]:
        flat = self._arrays[name].codes.reshape(-1)
        return (flat[start : start + elements] for start in range(0, flat.size, elements))


class _FileSide(Side):
    def __init__(self, reader: Reader) -> None:
        super().__init__(reader.path, reader.tensors, reader.path.lower().endswith(_ONE))
        self._reader = reader

    def chunks(self, name: str, elements: int) -> Iterator[Codes]:
        return self._reader.chunks(name, elements)

    def raw(self, name: str, size: int) -> Iterator[Codes]:
        return self._reader.raw(name, size)


def as_array(x: Any, argument: str, fmt: Format | None = None) -> Array | BlockArray:
    """Return an Array of what the caller gave: an Array, codes of `fmt`, or numbers of a NumPy or ml_dtypes dtype."""
    if isinstance(x, (Array, BlockArray)):
        if fmt is not None and x.format != fmt:
            raise ValueError(f"{argument} has format {x.format.name}, but format={fmt.name!r} is given")
        return x
    found = np.asarray(x)
    if fmt is not None and fmt.kind == "block":
        return BlockArray(found, fmt)
    if fmt is not None:
        if found.dtype in (fmt.storage, fmt.code_dtype, ecosystem_dtype(fmt)):
            return Array(found, fmt)
        if found.dtype.kind in "iu" and not isinstance(x, np.ndarray):
            return Array(found, fmt)
        raise ValueError(
            f"{argument} has dtype {found.dtype}, which holds no codes of {fmt.name} ({fmt.storage}); "
            f"bittrue.array({argument}, {fmt.name!r}) rounds values"
        )
    try:
        own = find_format(found.dtype)
    except ValueError:
        raise ValueError(f"{argument} has dtype {found.dtype}, for which there is no format; give format=") from None
    return Array(np.ascontiguousarray(found).reshape(found.shape), own)


def open_side(
    x: Any,
    argument: str,
    stack: ExitStack,
    fmt: Format | None = None,
    shape: Sequence[int] | None = None,
    like: Side | None = None,
) -> Side:
    """Open one side; a raw file without a format or shape of its own takes those of `like`."""
    if isinstance(x, Side):
        return x
    if isinstance(x, (str, os.PathLike)):
        return _open_file(os.fspath(x), stack, fmt, shape, like)
    if isinstance(x, Mapping):
        if not x:
            raise ValueError(f"{argument} is an empty mapping; there is nothing to compare")
        arrays = {str(name): as_array(value, f"{argument}[{name!r}]", fmt) for name, value in x.items()}
        return _ArraySide(argument, arrays, False)
    return _ArraySide(argument, {"": as_array(x, argument, fmt)}, True)


def _open_file(
    path: str, stack: ExitStack, fmt: Format | None, shape: Sequence[int] | None, like: Side | None
) -> Side:
    suffix = os.path.splitext(path)[1].lower()
    if suffix in RAW_SUFFIXES:
        if like is not None and len(like.tensors) == 1:
            fmt = fmt or like.only.format
            shape = like.only.shape if shape is None else shape
        if fmt is None:
            raise ValueError(f"{path}: a raw file does not tell its format; give format and shape (--format, --shape)")
        reader = open_tensors(path, format=fmt, shape=None if shape is None else tuple(shape))
    elif suffix == ".npy" and fmt is not None:
        try:
            reader = open_tensors(path, format=fmt)
        except FileError:
            reader = open_tensors(path)  # it tells its own format; whether that fits is seen by comparing
            if any(t.format.storage == fmt.code_dtype for t in reader.tensors.values()):  # or it does not: it has codes
                reader.close()
                raise
    else:
        reader = open_tensors(path)
    stack.enter_context(reader)
    if not reader.tensors:
        raise ValueError(f"{path}: holds no tensors; there is nothing to compare")
    return _FileSide(reader)


# --- do they fit together? --------------------------------------------------------------------------------------------


def select(golden: Side, actual: Side, patterns: str | Sequence[str] | None = None) -> list[tuple[str, str]]:
    """Return the names of the tensors to compare, (in golden, in actual).

    Raises
    ------
    ValueError
        When the names differ, with a diff, or no name matches `patterns`.
    """
    patterns = [patterns] if isinstance(patterns, str) else patterns
    mine, its = (_matching(side, patterns) for side in (golden, actual))
    named = [(side, found) for side, found in ((golden, mine), (actual, its)) if not side.unnamed]
    if patterns and named and not any(found for _, found in named):
        known = list(named[0][0].tensors)
        close = suggestion(patterns[0], known)
        raise ValueError(f"tensors={list(patterns)!r} match no tensor{close} ({_listed(known)})")
    if golden.unnamed and actual.unnamed:
        pairs = [(mine[0], its[0])]
    elif golden.unnamed or actual.unnamed:
        one, many, found = (golden, actual, its) if golden.unnamed else (actual, golden, mine)
        if len(found) != 1:
            raise ValueError(
                f"{one.label} is one array, but {many.label} has {len(found)} tensors"
                f" ({_listed(found)}); take one of them by tensors= (--tensor)"
            )
        pairs = [(mine[0], its[0])]
    else:
        missing, extra = [n for n in mine if n not in its], [n for n in its if n not in mine]
        if missing or extra:
            raise ValueError(_names_differ(golden.label, actual.label, missing, extra, len(mine) - len(missing)))
        pairs = [(n, n) for n in mine]
    return pairs


def _matching(side: Side, patterns: Sequence[str] | None) -> list[str]:
    """Return the names that match a pattern; the one of a side without names does."""
    if not patterns or side.unnamed:
        return list(side.tensors)
    return [name for name in side.tensors if any(name == p or fnmatchcase(name, p) for p in patterns)]


def _listed(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def _names_differ(golden: str, actual: str, missing: list[str], extra: list[str], common: int) -> str:
    parts = []
    for label, names in ((golden, missing), (actual, extra)):
        if names:
            parts.append(f"only in {label}: {_listed(names)}")
    return f"the tensor names differ ({common} in common): {'; '.join(parts)}"


def check_alike(golden: TensorInfo, actual: TensorInfo, what: str, wide: bool, second: str = "actual") -> None:
    """Raise `ValueError` unless two tensors have one shape and, but for a `wide` golden, one format."""
    where = f"tensor {what!r}: " if what else ""
    if golden.shape != actual.shape:
        raise ValueError(f"{where}the shapes differ: golden {golden.shape}, {second} {actual.shape}")
    if golden.format == actual.format:
        if golden.axis != actual.axis:
            raise ValueError(f"{where}the axes of the blocks differ: golden {golden.axis}, {second} {actual.axis}")
        return
    if not wide:
        raise ValueError(
            f"{where}the formats differ: golden {golden.format.name}, {second} {actual.format.name}; round the golden "
            "data, or compare with unrounded values by wide_golden=True (--wide-golden)"
        )
    for f in (golden.format, actual.format):
        if f.kind in ("complex", "block"):
            raise ValueError(f"{where}a wide golden takes real formats, not {f.name}")
