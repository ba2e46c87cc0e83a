"""What several commands read out of their arguments."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from ..array import Array
from ..files import INDEX_SUFFIX, AtomicFile, load
from ..formats import Format
from ..formats import format as find_format
from .pipes import read_hex

__all__ = [
    "check_outputs", "checkpoint_of", "one_array", "or_hex", "parse_shape", "quant_words", "quiet_cluster", "rows_of",
]

_HEX, _RAW = (".hex", ".mem"), (".bin", ".raw")


def checkpoint_of(source: str) -> str:
    """Return the index of a sharded checkpoint where `source` is its folder."""
    if not os.path.isdir(source):
        return source
    found = [name for name in sorted(os.listdir(source)) if name.lower().endswith(INDEX_SUFFIX)]
    if len(found) != 1:
        raise ValueError(f"{source}: is a folder with {len(found)} files *{INDEX_SUFFIX}; name the file")
    return os.path.join(source, found[0])


def parse_shape(text: str | None) -> tuple[int, ...] | None:
    """Return the sizes in text such as "64,128".

    Examples
    --------
    >>> parse_shape("64x128")
    (64, 128)
    """
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.lower().replace("x", ",").split(",") if part.strip())
    except ValueError:
        raise ValueError(f"--shape {text!r} is not a shape; expected sizes such as 64,128") from None


def or_hex(path: str, format: Format | str | None, option: str) -> str | Array:
    """Return a path, or the codes of a text file of codes, as simulators of hardware write and read them."""
    if not path.lower().endswith(_HEX):
        return path
    if format is None:
        raise ValueError(f"{path}: lines of codes do not tell their format; give it ({option})")
    return read_hex(path, find_format(format))


def one_array(path: str, format: Format | str | None, shape: tuple[int, ...] | None) -> Array:
    """Return the one array of a file.

    Raises
    ------
    ValueError
        When there are several, or when it is one of blocks.
    """
    if path.lower().endswith(_HEX):
        text = or_hex(path, format, "--format")
        assert isinstance(text, Array)
        return text if shape is None else text.reshape(shape)
    if format is None and path.lower().endswith(_RAW):
        raise ValueError(f"{path}: a raw file does not tell its format; give it (--format)")
    named = path.lower().endswith((".npy", *_RAW))
    found = load(path, format=format if named else None, shape=shape)
    if isinstance(found, dict):
        if len(found) != 1:
            raise ValueError(f"{path}: has {len(found)} tensors; one is expected")
        found = next(iter(found.values()))
    if not isinstance(found, Array):
        raise ValueError(f"{path}: has the block format {found.format.name}; single numbers are expected")
    return found


def quant_words(text: str | None) -> Any:
    """Return the parameter word, or an array of several, that text or a file gives."""
    if text is None:
        return None
    suffix = os.path.splitext(text)[1].lower()
    if suffix in (".bin", ".raw", ".npy"):
        found = one_array(text, None if suffix == ".npy" else "uint64", None)
        if found.format.name not in ("uint64", "int64") or len(found.shape) != 1:
            raise ValueError(f"--quant {text}: {found.format.name} of shape {found.shape} is not n words of uint64")
        return found.codes.view(np.uint64)
    try:
        words = [int(part, 0) for part in text.split(",")]
        return words[0] if len(words) == 1 else np.array(words, np.uint64)
    except (ValueError, OverflowError):
        raise ValueError(
            f"--quant {text!r} is no parameter word; expected a number such as 0x7fb03f000000, several by comma, or a "
            f".bin or .npy file"
        ) from None


def rows_of(path: str, layout: str | None, format: Format | str, shape: tuple[int, ...]) -> str | Array:
    """Return a dump in rows: the file itself, or the matrix of this shape that lies in NZ blocks in it."""
    if layout is None or layout.upper() == "ND":
        return path
    if layout.upper() != "NZ":
        raise ValueError(f"--layout {layout} must be ND (rows) or NZ (blocks, as Fixpipe writes them)")
    from ..ascend import nz_to_nd

    try:
        found: Array = nz_to_nd(one_array(path, format, None).reshape(-1), shape)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return found


def check_outputs(outputs: Iterable[str | None], inputs: Iterable[str | None], force: bool) -> None:
    """Raise, before the work, where a report cannot be written or would replace what is read, or another report."""
    taken = {os.path.realpath(path) for path in inputs if path is not None}
    for output in outputs:
        if output is not None:
            AtomicFile(output, force).check()
            if os.path.realpath(output) in taken:
                raise ValueError(f"{output}: this command reads or writes that file already; name another")
            taken.add(os.path.realpath(output))


def quiet_cluster(scheduler: str | None) -> None:
    """Keep Dask's remarks about lost workers, which are dealt with, out of a command's output."""
    if scheduler is not None:
        with suppress(ImportError):  # about which the work itself complains
            import distributed  # noqa: F401  sets the levels that are changed here

            for name in ("distributed", "distributed.client"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
