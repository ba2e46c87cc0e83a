"""Raw binary files: the memory image of one tensor and nothing else; the caller knows format and shape."""

from __future__ import annotations

from collections.abc import Sequence

from ..formats import Format
from ..kinds.block import BlockFormat
from .base import FileError, FileReader, Path, Sink, TensorInfo, is_packed, kept_open, only_one

__all__ = ["RawReader", "RawSink"]


class RawReader(FileReader):
    """Reader of a raw file; without a shape it is one-dimensional."""

    def __init__(self, path: Path, name: str, fmt: Format, shape: tuple[int, ...] | None = None) -> None:
        with kept_open(path) as file:
            size = file.seek(0, 2)
            info = TensorInfo(name, fmt, (_elements(fmt, size),) if shape is None else shape)
            if info.nbytes != size:
                raise FileError(f"{path}: has {size} bytes, but shape {info.shape} of {fmt.name} takes {info.nbytes}")
        super().__init__(path, file, {name: 0}, {name: info})


def _elements(fmt: Format, size: int) -> int:
    """Return how many elements so many bytes hold at most."""
    if isinstance(fmt, BlockFormat):
        return size // fmt.block_bytes * fmt.block_size
    return 8 * size // (fmt.bits if is_packed(fmt) else 8 * fmt.storage.itemsize)


class RawSink(Sink):
    """Layout of a raw file: none."""

    def __init__(self, tensors: Sequence[TensorInfo], metadata: dict[str, str]) -> None:
        only_one(tensors, metadata, "raw binary")
        super().__init__(tensors, metadata)
