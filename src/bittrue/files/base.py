"""What all containers share: errors, the record of a tensor, memory images, and the reader; no container lives here."""

from __future__ import annotations

import errno
import math
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

import numpy as np

from ..array import Array
from ..blocks.array import BlockArray
from ..blocks.array import image_shape as block_image_shape
from ..formats import Format
from ..kinds.block import BlockFormat
from ..packing import pack, unpack
from ..rounding import suggestion

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ExistingFileError", "FileError", "MissingFileError", "Reader", "TensorInfo", "Unsupported"]

Codes = np.ndarray[Any, Any]
Path = str | os.PathLike[str]

RAW_SUFFIXES = (".bin", ".raw")  # files that hold one tensor's bytes and do not tell its format
_MAX_DIMENSIONS = 64  # NumPy's limit
_WIDEST = 16  # bytes of a complex128: what holds codes must be able to hold their values
FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
#: What reading from a damaged or vanishing file can raise.
_READ_ERRORS = (OSError, EOFError, zipfile.BadZipFile, zlib.error, UnicodeDecodeError, RuntimeError)


class FileError(ValueError):
    """A file that cannot be read or written; the message names the file, the tensor, what was found and expected."""


class MissingFileError(FileError, FileNotFoundError):
    """A file that does not exist; also a `FileNotFoundError`."""


class ExistingFileError(FileError, FileExistsError):
    """An output that exists already, without ``force=True``; also a `FileExistsError`."""


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn whatever the operating system or a decompressor raises into a `FileError` about `path`."""
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError as error:
        raise MissingFileError(f"{path}: no such file or folder") from error
    except IsADirectoryError as error:
        raise FileError(f"{path}: is a folder, expected a file") from error
    except _READ_ERRORS as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise FileError(f"{path}: no space left to write it ({error.strerror}); nothing was kept") from error
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or "unexpected end"
        raise FileError(f"{path}: {said[:1].lower()}{said[1:]}") from error


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of a file: its name, format and logical shape.

    Attributes
    ----------
    name : str
    format : Format
    shape : tuple of int
        Counts elements, also where several share a byte.
    axis : int or None
        Block formats: along which the blocks lie; default the last.

    Examples
    --------
    >>> import bittrue as bt
    >>> TensorInfo("w", bt.format("float4_e2m1fn"), (3, 5)).nbytes
    8
    """

    name: str
    format: Format
    shape: tuple[int, ...]
    axis: int | None = None

    def __post_init__(self) -> None:
        check_shape(self.shape, max(1, self.format.bits // 8))
        if isinstance(self.format, BlockFormat):
            axis = -1 if self.axis is None else self.axis
            block_image_shape(self.format, self.shape, axis)
            object.__setattr__(self, "axis", axis % len(self.shape))
        elif self.axis is not None:
            raise ValueError(f"axis={self.axis!r} is for block formats, not for {self.format.name}")

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the memory image."""
        if isinstance(self.format, BlockFormat):
            assert self.axis is not None
            return math.prod(block_image_shape(self.format, self.shape, self.axis))
        return image_bytes(self.format, self.elements)


class Unsupported(NamedTuple):
    """A tensor of a file whose dtype has no format here: it is listed, and cannot be read."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


def check_shape(shape: object, itemsize: int = 1) -> tuple[int, ...]:
    """Return `shape` as a tuple if an array can have it, else raise `ValueError`."""
    if not isinstance(shape, (tuple, list)) or not all(type(n) is int or isinstance(n, np.integer) for n in shape):
        raise ValueError(f"shape={shape!r} must be a list of integers")
    sizes = tuple(int(n) for n in shape)
    if any(n < 0 for n in sizes):
        raise ValueError(f"shape={sizes} must not have negative dimensions")
    if len(sizes) > _MAX_DIMENSIONS:
        raise ValueError(f"shape has {len(sizes)} dimensions; at most {_MAX_DIMENSIONS} are allowed")
    if math.prod(n for n in sizes if n) * max(itemsize, _WIDEST) >= 1 << 63:
        raise ValueError(f"shape={sizes} is too large for any memory")
    return sizes


# --- memory images ----------------------------------------------------------------------------------------------------


def is_packed(fmt: Format) -> bool:
    """Whether several codes of `fmt` share a byte in memory, or lie in blocks."""
    return isinstance(fmt, BlockFormat) or fmt.bits < 8


def image_bytes(fmt: Format, elements: int) -> int:
    """Return the size of the memory image of so many elements."""
    return -(-elements * fmt.bits // 8) if is_packed(fmt) else elements * fmt.storage.itemsize


def to_image(codes: Codes, fmt: Format) -> Codes:
    """Return the memory image of `codes` as flat bytes: little-endian, C order, low bits first where packed."""
    if isinstance(fmt, BlockFormat):
        return np.ascontiguousarray(codes).reshape(-1)
    if is_packed(fmt):
        return pack(codes.reshape(-1), fmt.bits)
    stored = np.ascontiguousarray(codes, fmt.storage.newbyteorder("<"))
    return stored.reshape(-1).view(np.uint8)


def from_image(data: Codes, fmt: Format, elements: int) -> Codes:
    """Return the flat codes of a memory image; a view of `data` where the format is not packed."""
    if is_packed(fmt):
        return unpack(data, fmt.bits, elements)
    codes = data.view(fmt.storage.newbyteorder("<")).astype(fmt.storage, copy=False)
    if codes.dtype.kind == "u" and fmt.bits < 8 * codes.itemsize and codes.size and int(codes.max()) >> fmt.bits:
        raise ValueError(f"code {int(codes.max()):#x} is out of range for {fmt.name}: {fmt.bits} bits")
    return codes


# --- reading ----------------------------------------------------------------------------------------------------------


class Stream(Protocol):
    """What a reader needs of an open tensor."""

    def readinto(self, buffer: Any, /) -> int | None:
        """Fill a part of `buffer` and return how many bytes that were."""


class Section:
    """A stream over a part of an open file; several may be read in turns."""

    def __init__(self, file: Any, offset: int) -> None:
        self._file, self._at = file, offset

    def readinto(self, buffer: Any, /) -> int:
        """Read on from where the last call stopped."""
        self._file.seek(self._at)
        count: int = self._file.readinto(buffer)
        self._at += count
        return count

    def skip(self, count: int) -> None:
        """Go on so many bytes further."""
        self._at += count


class Reader:
    """An open file of tensors, read piece by piece. Use it in a ``with`` statement; not for several threads at once.

    Attributes
    ----------
    path : str
    tensors : dict of str to TensorInfo
        In the order of the file.
    metadata : dict of str to str
        Free text that the file carries (safetensors only).
    unsupported : dict of str to Unsupported
        Tensors of unknown dtypes; empty unless the file was opened with ``lenient=True``.
    """

    def __init__(self, path: Path, tensors: dict[str, TensorInfo], metadata: dict[str, str] | None = None) -> None:
        self.path = os.fspath(path)
        self.tensors = tensors
        self.metadata = dict(metadata or {})
        self.unsupported: dict[str, Unsupported] = {}

    @property
    def names(self) -> list[str]:
        """Names of the tensors."""
        return list(self.tensors)

    @property
    def formats(self) -> dict[str, Format]:
        """Format of every tensor."""
        return {name: info.format for name, info in self.tensors.items()}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Logical shape of every tensor."""
        return {name: info.shape for name, info in self.tensors.items()}

    def file_of(self, name: str) -> str:
        """Return the path of the file that holds a tensor: of a sharded checkpoint, its shard."""
        self[name]
        return self.path

    def __getitem__(self, name: str) -> TensorInfo:
        try:
            return self.tensors[name]
        except KeyError:
            lowered = {n.lower(): n for n in self.tensors}
            raise FileError(
                f"{self.path}: has no tensor {name!r}{suggestion(name, lowered)} ({len(self.tensors)} tensors)"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""

    def _open(self, info: TensorInfo) -> AbstractContextManager[Stream]:
        """Open a tensor's bytes as they lie in the file."""
        raise NotImplementedError

    def _settle(self, info: TensorInfo, data: Codes) -> None:
        """Turn bytes as they lie in the file into the memory image, in place (byte order)."""

    def _end(self, info: TensorInfo, stream: Stream) -> None:
        """Check what can be checked only after the last byte (checksums)."""

    def _fill(self, info: TensorInfo, stream: Stream, buffer: Codes) -> None:
        self._read(info, stream, buffer)
        self._settle(info, buffer)

    def _skip(self, info: TensorInfo, stream: Stream, count: int) -> None:
        if isinstance(stream, Section):
            stream.skip(count)
            return
        scratch = np.empty(min(count, 1 << 20), np.uint8)
        for start in range(0, count, 1 << 20):
            self._read(info, stream, scratch[: min(1 << 20, count - start)])

    def _read(self, info: TensorInfo, stream: Stream, buffer: Codes) -> None:
        view, done = buffer.data, 0
        with explained(self._of(info)):
            while done < len(view):
                count = stream.readinto(view[done:])
                if not count:
                    raise FileError(f"{self._of(info)}: the file ends {len(view) - done} bytes too early")
                done += count

    def _of(self, info: TensorInfo) -> str:
        return f"{self.path}, tensor {info.name!r}"

    def image(self, name: str) -> Codes:
        """Return a tensor's whole memory image as bytes."""
        info = self[name]
        data = np.empty(info.nbytes, np.uint8)
        with explained(self._of(info)), self._open(info) as stream:
            self._fill(info, stream, data)
            self._end(info, stream)
        return data

    def raw(self, name: str, size: int = 1 << 22, start: int = 0, stop: int | None = None) -> Iterator[Codes]:
        """Yield a tensor's memory image in pieces of `size` bytes; each replaces the one before.

        `start` and `stop` choose a part of the bytes. `size` and `start` are multiples of 16, but for block formats,
        whose bytes may be cut anywhere.
        """
        info = self[name]
        step = 1 if isinstance(info.format, BlockFormat) else 16
        last = info.nbytes if stop is None else stop
        if size <= 0 or size % step:
            raise ValueError(f"size={size!r} must be a positive multiple of {step} bytes")
        if start % step or not 0 <= start <= last <= info.nbytes:
            raise ValueError(
                f"start={start!r}, stop={stop!r}: start must be a multiple of {step}, both from 0 to {info.nbytes}"
            )
        return self._pieces(info, size, start, last)

    def _pieces(self, info: TensorInfo, size: int, begin: int = 0, end: int | None = None) -> Iterator[Codes]:
        """Yield bytes `begin` to `end` of the memory image in pieces of `size`, all multiples of the item size."""
        last = info.nbytes if end is None else min(end, info.nbytes)
        buffer = np.empty(min(size, max(last - begin, 0)), np.uint8)
        with explained(self._of(info)):
            opened = self._open(info)
        with opened as stream:
            self._skip(info, stream, begin)
            for start in range(begin, last, size):
                part = buffer[: min(size, last - start)]
                self._fill(info, stream, part)
                yield part
            if last == info.nbytes:
                with explained(self._of(info)):
                    self._end(info, stream)

    def chunks(
        self, name: str, elements: int = 1 << 20, start: int = 0, stop: int | None = None
    ) -> Iterator[Codes]:
        """Yield a tensor's codes in C order, `elements` (a multiple of 16) at a time.

        Each piece is a flat array of ``format.storage`` whose memory the next piece may reuse; memory use does not
        depend on the size of the file. `start` and `stop` choose a part of the elements; `start` is a multiple of 16.
        """
        info = self[name]
        if isinstance(info.format, BlockFormat):
            raise ValueError(f"{self._of(info)}: {info.format.name} has no codes of single elements; use raw or read")
        if elements <= 0 or elements % 16:
            raise ValueError(f"elements={elements!r} must be a positive multiple of 16")
        last = info.elements if stop is None else stop
        if start % 16 or not 0 <= start <= last <= info.elements:
            raise ValueError(
                f"start={start!r}, stop={stop!r}: start must be a multiple of 16, both from 0 to {info.elements}"
            )
        return self._code_pieces(info, elements, start, last)

    def _code_pieces(self, info: TensorInfo, elements: int, start: int, stop: int) -> Iterator[Codes]:
        left, of = stop - start, info.format
        for data in self._pieces(info, image_bytes(of, elements), image_bytes(of, start), image_bytes(of, stop)):
            count = min(elements, left)
            yield self._codes(info, data, count)
            left -= count

    def _codes(self, info: TensorInfo, data: Codes, count: int) -> Codes:
        try:
            return from_image(data, info.format, count)
        except ValueError as error:
            raise FileError(f"{self._of(info)}: {error}") from None

    def read(self, name: str) -> Any:
        """Return a whole tensor: an `Array`, or a `BlockArray` for block formats."""
        info = self[name]
        if isinstance(info.format, BlockFormat):
            assert info.axis is not None
            return BlockArray.frombytes(self.image(name), info.format, info.shape, info.axis)
        codes = self._codes(info, self.image(name), info.elements)
        return Array(codes.reshape(info.shape), info.format)


@contextmanager
def kept_open(path: Path) -> Iterator[BinaryIO]:
    """Open a file to be kept; it is closed only if the block raises."""
    with explained(path):
        file: BinaryIO = open(path, "rb", buffering=0)  # noqa: SIM115
        try:
            yield file
        except BaseException:
            file.close()
            raise


class FileReader(Reader):
    """A reader whose tensors lie in one file as they are, each at an offset."""

    def __init__(
        self,
        path: Path,
        file: BinaryIO,
        offsets: dict[str, int],
        tensors: dict[str, TensorInfo],
        metadata: dict[str, str] | None = None,
    ) -> None:
        super().__init__(path, tensors, metadata)
        self._file, self._offsets = file, offsets

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _open(self, info: TensorInfo) -> AbstractContextManager[Stream]:
        return nullcontext(Section(self._file, self._offsets[info.name]))


# --- writing ----------------------------------------------------------------------------------------------------------


class Sink:
    """Lays out the tensors of one container in an open file; `Writer` checks and moves the bytes.

    The base class is a container without any frame.
    """

    def __init__(self, tensors: Sequence[TensorInfo], metadata: dict[str, str]) -> None:
        self.order = list(tensors)  # the order in which the tensors are written

    def start(self, file: BinaryIO) -> None:
        """Take the file and write what comes before the first tensor."""
        self._file = file

    def begin(self, info: TensorInfo) -> None:
        """Write what comes before a tensor."""

    def write(self, data: Any) -> None:
        """Write the next bytes of a tensor."""
        self._file.write(data)

    def end(self) -> None:
        """Write what comes after a tensor."""

    def finish(self) -> None:
        """Write what comes after the last tensor."""

    def abandon(self) -> None:
        """Let go of the file after a failure."""


def only_one(tensors: Sequence[TensorInfo], metadata: dict[str, str], container: str) -> None:
    """Raise `ValueError` where a container without a directory gets more than one tensor, or metadata."""
    if len(tensors) != 1:
        raise ValueError(f"a {container} file holds exactly one array, not {len(tensors)}; use .npz or .safetensors")
    no_metadata(metadata, container)


def no_metadata(metadata: dict[str, str], container: str) -> None:
    """Raise `ValueError` where a container has no place for metadata."""
    if metadata:
        raise ValueError(f"a {container} file has no place for metadata ({', '.join(metadata)}); use .safetensors")
