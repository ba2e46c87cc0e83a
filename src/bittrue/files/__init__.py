"""Files of typed tensors: npy, npz, safetensors (sharded too) and raw binary; read lazily, written atomically."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..array import Array
from ..blocks.array import BlockArray
from ..formats import Format
from ..formats import format as _format
from .base import (
    RAW_SUFFIXES,
    ExistingFileError,
    FileError,
    MissingFileError,
    Path,
    Reader,
    TensorInfo,
    Unsupported,
    check_shape,
)
from .npy import NpyReader, NpzReader
from .raw import RawReader
from .safetensors import SafetensorsReader
from .sharded import SUFFIX as INDEX_SUFFIX
from .sharded import ShardedReader
from .writer import AtomicFile, Writer, suffix_of

__all__ = [
    "save",
    "load",
    "open_tensors",
    "Reader",
    "Writer",
    "TensorInfo",
    "Unsupported",
    "FileError",
    "ExistingFileError",
    "MissingFileError",
    "AtomicFile",
    "INDEX_SUFFIX",
    "RAW_SUFFIXES",
    "ShardedReader",
]


def save(
    path: Path,
    arrays: Array | BlockArray | np.ndarray[Any, Any] | Mapping[str, Array | BlockArray | np.ndarray[Any, Any]],
    *,
    force: bool = False,
    metadata: dict[str, str] | None = None,
) -> None:
    """Write arrays to a file that keeps their formats and shapes.

    The file appears complete or not at all, and replaces no other without `force`.

    Parameters
    ----------
    path : path
        The suffix chooses the container: .safetensors or .npz for any number of arrays; .npy for one; .bin or .raw
        for the memory image of one (its format and shape are then yours to remember).
    arrays : Array, ndarray, or mapping of names to them
        An ndarray is stored in its own dtype (NumPy's or ml_dtypes').
    force : bool
        Replace a file that exists.
    metadata : dict of str to str, optional
        Free text to keep in the file (safetensors only).

    Raises
    ------
    FileError
        When the file exists already, or cannot be written (no permission, a full disk).
    ValueError
        For a suffix, a name or a dtype that cannot be stored.

    Notes
    -----
    safetensors stores a format under its own dtype where it has one, else as U8 with the format and shape in the
    header's metadata. .npy and .npz store formats that NumPy lacks as records of one field that is named after the
    format: ``numpy.load(path)["hifloat8"]`` gives the codes. Formats below 8 bits are packed in all containers.

    Examples
    --------
    >>> import tempfile, bittrue as bt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(folder + "/w.npz", {"w": bt.Array([[0x3, 0xD]], "float4_e2m1fn")})
    ...     load(folder + "/w.npz")["w"].format.name
    'float4_e2m1fn'
    """
    suffix = suffix_of(path)
    if isinstance(arrays, Mapping):
        named = {name: _typed(value, f"arrays[{name!r}]") for name, value in arrays.items()}
    elif suffix in (".npz", ".safetensors"):
        raise ValueError(f"arrays must map names to arrays for a {suffix} file, not be {type(arrays).__name__}")
    else:
        named = {_stem(path): _typed(arrays, "arrays")}
    infos = [
        TensorInfo(name, array.format, tuple(array.shape), array.axis if isinstance(array, BlockArray) else None)
        for name, array in named.items()
    ]
    with Writer(path, infos, force=force, metadata=metadata) as writer:
        for name in writer.names:
            writer.write(name, named[name].codes)


def load(
    path: Path,
    *,
    format: Format | str | None = None,
    shape: tuple[int, ...] | None = None,
    names: str | Iterable[str] | None = None,
) -> Any:
    """Read arrays from a file, with their formats.

    Parameters
    ----------
    path : path
        A .safetensors, .npz, .npy, .bin or .raw file, or the .safetensors.index.json of a sharded checkpoint.
    format : Format or name, optional
        Required for .bin and .raw. For .npy, the format of codes that the file holds as unsigned or untyped bytes.
    shape : tuple of int, optional
        For .bin and .raw: the logical shape; default one-dimensional.
    names : str or iterable of str, optional
        For files of several tensors: which to read.

    Returns
    -------
    Array for .npy, .bin and .raw; dict of str to Array for the others

    Raises
    ------
    FileError
        When the file does not exist (also a `FileNotFoundError`), is damaged, or holds no tensor of that name.

    Examples
    --------
    >>> import tempfile, bittrue as bt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(folder + "/image.bin", bt.Array([[2, 4, 5]], "float4_e2m1fn"))
    ...     load(folder + "/image.bin", format="float4_e2m1fn", shape=(1, 3)).shape
    (1, 3)
    """
    with open_tensors(path, format=format, shape=shape) as reader:
        if isinstance(reader, (NpyReader, RawReader)):
            if names is not None:
                raise ValueError(f"names={names!r}: {os.fspath(path)} holds one array without a name")
            return reader.read(reader.names[0])
        wanted = reader.names if names is None else [names] if isinstance(names, str) else list(names)
        for name in wanted:
            reader[name]
        return {name: reader.read(name) for name in wanted}


def open_tensors(
    path: Path,
    *,
    format: Format | str | None = None,
    shape: tuple[int, ...] | None = None,
    lenient: bool = False,
) -> Reader:
    """Open a file of tensors to read them piece by piece.

    Parameters
    ----------
    path, format, shape
        As in `load`.
    lenient : bool
        List tensors of a safetensors dtype that is not known as `Reader.unsupported`, instead of raising.

    Returns
    -------
    Reader
        Use it in a ``with`` statement. `Reader.tensors` lists what is there, `Reader.read` gives one tensor,
        `Reader.chunks` its codes in pieces. The tensor of a .npy, .bin or .raw file is named after the file.

    Examples
    --------
    >>> import tempfile, bittrue as bt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(folder + "/w.safetensors", {"w": np.zeros((3, 4), np.float32)})
    ...     with open_tensors(folder + "/w.safetensors") as reader:
    ...         reader.shapes, [chunk.size for chunk in reader.chunks("w")]
    ({'w': (3, 4)}, [12])
    """
    if os.fspath(path).lower().endswith(INDEX_SUFFIX):
        suffix = INDEX_SUFFIX
    elif os.path.isdir(path):
        raise FileError(f"{os.fspath(path)}: is a folder; name a file in it, such as model{INDEX_SUFFIX}")
    else:
        suffix = suffix_of(path)
    given = None if format is None else _format(format)
    if suffix in RAW_SUFFIXES:
        if given is None:
            raise ValueError(f"format=None: {os.fspath(path)} does not tell its format; give it")
        return RawReader(path, _stem(path), given, None if shape is None else check_shape(shape))
    if shape is not None:
        raise ValueError(f"shape={shape!r} is for .bin and .raw files; a {suffix} file tells its shapes")
    if suffix == ".npy":
        return NpyReader(path, _stem(path), given)
    if given is not None:
        raise ValueError(f"format={given.name!r} is for .npy, .bin and .raw files; a {suffix} file tells its formats")
    if suffix == INDEX_SUFFIX:
        return ShardedReader(path, lenient)
    return NpzReader(path) if suffix == ".npz" else SafetensorsReader(path, lenient)


def _stem(path: Path) -> str:
    return os.path.splitext(os.path.basename(os.fspath(path)))[0] or "data"


def _typed(value: object, argument: str) -> Array | BlockArray:
    """Return an Array of what NumPy or ml_dtypes calls its dtype."""
    if isinstance(value, BlockArray):
        if value.scale is not None:
            raise ValueError(
                f"{argument} has a scale of the whole tensor ({value.scale!r}), for which files have no place: keep it "
                "as a tensor of its own, and store the blocks as BlockArray(a.codes, a.format, a.shape, a.axis)"
            )
        return value
    if isinstance(value, Array):
        return value
    if not isinstance(value, (np.ndarray, np.generic)):
        raise TypeError(f"{argument} must be an Array or a NumPy array, not {type(value).__name__}")
    try:
        fmt = _format(value.dtype)
    except ValueError:
        raise ValueError(f"{argument} has dtype {value.dtype}, for which there is no format") from None
    return Array(value, fmt)
