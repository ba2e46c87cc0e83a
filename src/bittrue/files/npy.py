"""The NumPy containers: .npy, and .npz as a zip of them.

NumPy's own dtypes are stored as they are. Any other format is an array of one-field records: the field's name is the
format's and its type the unsigned integer of the codes, so that ``numpy.load(path)["hifloat8"]`` gives the codes. Where
several codes share a byte the records are the packed bytes, and the field's *title* (a NumPy notion: a second name)
holds the logical shape as JSON; for a user's own format it holds the parameters as well.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import numpy as np

from ..formats import Format, format
from .base import (
    Codes,
    FileError,
    FileReader,
    Path,
    Reader,
    Sink,
    Stream,
    TensorInfo,
    check_shape,
    explained,
    is_packed,
    kept_open,
    no_metadata,
    only_one,
)
from .safetensors import image_shape, loads
from .spec import axis_from_json, format_from_json, format_to_json, is_built_in

__all__ = ["NpyReader", "NpySink", "NpzReader", "NpzSink"]

_MAGIC = b"\x93NUMPY"
_MAX_HEADER = 1 << 16
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # NumPy's; LZMA would take as much memory as a file asks for
_ZIP_RATIO = 1100  # deflate makes data at most 1032 times smaller: a member that claims more is damaged
_DTYPE = re.compile(r"[<>|=]?([a-zA-Z?])\d*")


@dataclass(frozen=True)
class _Layout:
    """How one .npy holds its tensor."""

    info: TensorInfo
    item: int  # bytes that a change of byte order reverses
    swapped: bool
    fortran: bool
    data: int  # offset of the first element


def _parse(stream: Any, path: str, name: str, untyped: Format | None) -> _Layout:
    """Read a .npy header; `untyped` is the format of codes whose dtype does not tell."""
    start = _exactly(stream, 8, path)
    if start[:6] != _MAGIC:
        raise FileError(f"{path}: begins with {start[:6]!r}, expected {_MAGIC!r}; not a .npy file")
    version = start[6], start[7]
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise FileError(f"{path}: .npy version {version[0]}.{version[1]} is not known; 1.0, 2.0 and 3.0 are")
    width = 2 if version == (1, 0) else 4
    length = int.from_bytes(_exactly(stream, width, path), "little")
    if length > _MAX_HEADER:
        raise FileError(f"{path}: header of {length} bytes; at most {_MAX_HEADER} are allowed")
    text = _exactly(stream, length, path)
    try:
        header = ast.literal_eval(text.decode("utf-8" if version == (3, 0) else "latin1").strip())
        if not isinstance(header, dict) or header.keys() != {"descr", "fortran_order", "shape"}:
            raise ValueError("expected a dictionary of descr, fortran_order and shape")
        if not isinstance(header["fortran_order"], bool) or not isinstance(header["shape"], tuple):
            raise ValueError("fortran_order must be True or False and shape a tuple")
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise FileError(f"{path}: the header cannot be read ({error})") from None
    try:
        shape = check_shape(header["shape"])
        info, dtype = _understand(header["descr"], shape, path, name, untyped)
    except ValueError as error:
        raise error if isinstance(error, FileError) else FileError(f"{path}: {error}") from None
    return _Layout(
        info,
        dtype.itemsize // (2 if dtype.kind == "c" else 1),
        not dtype.isnative if sys.byteorder == "little" else dtype.isnative and dtype.itemsize > 1,
        header["fortran_order"] and len(shape) > 1 and not is_packed(info.format),
        8 + width + length,
    )


def _exactly(stream: Any, count: int, path: str) -> bytes:
    data: bytes = stream.read(count)
    if len(data) < count:
        raise FileError(f"{path}: the header ends {count - len(data)} bytes too early; not a .npy file, or truncated")
    return data


def _understand(
    descr: Any, shape: tuple[int, ...], path: str, name: str, untyped: Format | None
) -> tuple[TensorInfo, np.dtype[Any]]:
    """Return what the tensor is, and the dtype of what is stored."""
    record = descr[0] if isinstance(descr, list) and len(descr) == 1 else None
    if isinstance(record, tuple) and len(record) == 2:
        return _record(record, shape, path, name)
    if not isinstance(descr, str):
        raise FileError(f"{path}: records {descr!r} are not supported, except bittrue's own of one field")
    dtype = _dtype(descr)
    if untyped is not None and (dtype.kind in "uV" or dtype.name == untyped.name):
        if dtype.itemsize != untyped.storage.itemsize:
            raise ValueError(
                f"dtype {descr} has items of {dtype.itemsize} bytes; codes of {untyped.name} have "
                f"{untyped.storage.itemsize}"
            )
        if is_packed(untyped):
            raise ValueError(f"format={untyped.name!r}: give whole-byte codes to bittrue.Array, or a packed .bin file")
        stored = np.dtype(f"{descr[0] if descr[0] in '<>' else '|'}u{dtype.itemsize}")
        return TensorInfo(name, untyped, shape), stored
    if dtype.kind == "V":
        raise ValueError(
            f"dtype {descr} does not tell the number format (NumPy loses the types of ml_dtypes); "
            f"give it, e.g. format={'bfloat16' if dtype.itemsize == 2 else 'float8_e4m3fn'!r}"
        )
    if untyped is not None:
        raise ValueError(f"holds {dtype.name} values, not codes of {untyped.name}")
    try:
        return TensorInfo(name, format(dtype), shape), dtype
    except ValueError:
        raise ValueError(f"dtype {descr} is not supported") from None


def _dtype(descr: str) -> np.dtype[Any]:
    match = _DTYPE.fullmatch(descr)
    if match and match[1] == "O":
        raise ValueError("holds Python objects (pickle), which are refused: unpickling may run any code")
    try:
        if not match or match[1] not in "biufcV":
            raise TypeError
        return np.dtype(descr)
    except (TypeError, ValueError):
        raise ValueError(f"dtype {descr!r} is not a number type") from None


def _record(record: Any, shape: tuple[int, ...], path: str, name: str) -> tuple[TensorInfo, np.dtype[Any]]:
    """Read bittrue's own one-field records."""
    field, kind = record
    field, title = reversed(field) if isinstance(field, tuple) and len(field) == 2 else (field, "{}")
    if not isinstance(field, str) or not isinstance(title, str) or not isinstance(kind, str):
        raise ValueError(f"records {record!r} are not supported, except bittrue's own of one field")
    try:
        about = loads(title.encode(), path, f"the title of field {field!r}")
    except UnicodeEncodeError:
        raise ValueError(f"the title of field {field!r} is not text") from None
    fmt = format_from_json(about.get("format", field))
    dtype = _dtype(kind)
    if dtype.kind != "u" or dtype.itemsize != (1 if is_packed(fmt) else fmt.storage.itemsize) or fmt.name != field:
        raise ValueError(f"records {record!r} are not how {fmt.name} is stored")
    if not is_packed(fmt):
        return TensorInfo(name, fmt, shape), dtype
    info = TensorInfo(name, fmt, check_shape(about.get("shape")), axis_from_json(about))
    if info.nbytes != int(np.prod(shape, dtype=object)):
        raise ValueError(f"shape {info.shape} of {fmt.name} takes {info.nbytes} bytes, but {shape} are stored")
    return info, dtype


class _NumpyOrder(Reader):
    """What .npy and .npz readers share: byte order and Fortran order."""

    _layouts: dict[str, _Layout]

    def _settle(self, info: TensorInfo, data: Codes) -> None:
        layout = self._layouts[info.name]
        if layout.swapped:
            data.view(f"u{layout.item}").byteswap(inplace=True)

    def image(self, name: str) -> Codes:
        """Return a tensor's whole memory image as bytes."""
        data = super().image(name)
        if not self._layouts[name].fortran:
            return data
        info = self[name]
        columns = data.view(np.dtype((np.void, info.format.storage.itemsize))).reshape(info.shape[::-1])
        return np.ascontiguousarray(columns.T).reshape(-1).view(np.uint8)

    def _pieces(self, info: TensorInfo, size: int, begin: int = 0, end: int | None = None) -> Iterator[Codes]:
        """Yield the memory image in pieces; a tensor in Fortran order is read as a whole."""
        if not self._layouts[info.name].fortran:
            yield from super()._pieces(info, size, begin, end)
            return
        data = self.image(info.name)[:end]
        for start in range(begin, data.size, size):
            yield data[start : start + size]


class NpyReader(_NumpyOrder, FileReader):
    """Reader of one .npy file; its tensor is named after the file."""

    def __init__(self, path: Path, name: str, untyped: Format | None = None) -> None:
        with kept_open(path) as file:
            layout = _parse(file, str(path), name, untyped)
            held = file.seek(0, 2) - layout.data
            if held != layout.info.nbytes:
                raise FileError(
                    f"{path}: shape {layout.info.shape} of {layout.info.format.name} takes "
                    f"{layout.info.nbytes} bytes, but {held} follow the header"
                )
        self._layouts = {name: layout}
        super().__init__(path, file, {name: layout.data}, {name: layout.info})


class NpzReader(_NumpyOrder):
    """Reader of a .npz file: its members' names without .npy are the tensors'."""

    def __init__(self, path: Path) -> None:
        with explained(path):
            self._zip = zipfile.ZipFile(path)
            try:
                self._layouts = self._members(path)
            except BaseException:
                self._zip.close()
                raise
        super().__init__(path, {name: layout.info for name, layout in self._layouts.items()})

    def _members(self, path: Path) -> dict[str, _Layout]:
        layouts: dict[str, _Layout] = {}
        for member in self._zip.infolist():
            of = f"{path}, member {member.filename!r}"
            name = member.filename.removesuffix(".npy")
            if name == member.filename or not name:
                raise FileError(f"{of}: is not a .npy array")
            if name in layouts:
                raise FileError(f"{of}: occurs twice")
            if member.compress_type not in _ZIP_METHODS:
                raise FileError(f"{of}: is compressed by method {member.compress_type}; expected stored or deflated")
            if member.file_size > (member.compress_size + 1) * _ZIP_RATIO:
                raise FileError(f"{of}: claims {member.file_size} bytes in {member.compress_size}; the file is damaged")
            with explained(of), self._zip.open(member) as stream:
                layout = _parse(stream, of, name, None)
            if layout.data + layout.info.nbytes != member.file_size:
                raise FileError(
                    f"{of}: shape {layout.info.shape} of {layout.info.format.name} takes {layout.info.nbytes} bytes, "
                    f"but {member.file_size - layout.data} follow the header"
                )
            layouts[name] = layout
        return layouts

    def close(self) -> None:
        """Close the file."""
        self._zip.close()

    @contextmanager
    def _opened(self, info: TensorInfo) -> Iterator[Stream]:
        with self._zip.open(info.name + ".npy") as stream:
            stream.read(self._layouts[info.name].data)
            yield cast("Stream", stream)  # readinto is there; the stubs call it IO[bytes]

    def _open(self, info: TensorInfo) -> AbstractContextManager[Stream]:
        return self._opened(info)

    def _end(self, info: TensorInfo, stream: Any) -> None:
        if stream.read(1):  # also makes zipfile compare the checksum
            raise FileError(f"{self._of(info)}: is longer than its header says")


def _header(info: TensorInfo) -> bytes:
    """Return the .npy header of a tensor in C order."""
    shape, fmt = info.shape, info.format
    own = _numpy_dtype(fmt)
    descr: Any
    if own is not None:
        descr = own.newbyteorder("<").str
    else:
        about: dict[str, Any] = {} if is_built_in(fmt) else {"format": format_to_json(fmt)}
        if is_packed(fmt):
            about["shape"] = list(info.shape)
            if info.axis is not None:
                about["axis"] = info.axis
            shape = tuple(image_shape(info))
        field: Any = (json.dumps(about), fmt.name) if about else fmt.name
        descr = [(field, np.dtype(f"u{fmt.storage.itemsize}").newbyteorder("<").str)]
    text = repr({"descr": descr, "fortran_order": False, "shape": shape})
    encoded = text.encode("ascii" if text.isascii() else "utf-8")
    version, width = ((1, 0), 2) if text.isascii() and len(encoded) < 60000 else ((3, 0), 4)
    prefix = len(_MAGIC) + 2 + width
    encoded += b" " * (-(prefix + len(encoded) + 1) % 64) + b"\n"
    if len(encoded) > _MAX_HEADER:
        raise ValueError(f"the .npy header takes {len(encoded)} bytes; at most {_MAX_HEADER} are allowed")
    return _MAGIC + bytes(version) + len(encoded).to_bytes(width, "little") + encoded


def _numpy_dtype(fmt: Format) -> np.dtype[Any] | None:
    """Return NumPy's own dtype of a built-in format, or None."""
    try:
        dtype = np.dtype(fmt.name) if is_built_in(fmt) else None
    except TypeError:
        return None
    return dtype if dtype is not None and dtype.isbuiltin == 1 else None


class NpySink(Sink):
    """Layout of a .npy file."""

    def __init__(self, tensors: Sequence[TensorInfo], metadata: dict[str, str]) -> None:
        only_one(tensors, metadata, ".npy")
        super().__init__(tensors, metadata)
        self._header = _header(tensors[0])

    def start(self, file: BinaryIO) -> None:
        """Write the header."""
        super().start(file)
        file.write(self._header)


class NpzSink(Sink):
    """Layout of a .npz file, without compression."""

    def __init__(self, tensors: Sequence[TensorInfo], metadata: dict[str, str]) -> None:
        no_metadata(metadata, ".npz")
        super().__init__(tensors, metadata)
        self._headers = {info.name: _header(info) for info in tensors}
        self._member: Any = None
        self._zip: zipfile.ZipFile | None = None

    def start(self, file: BinaryIO) -> None:
        """Open the archive."""
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)

    def begin(self, info: TensorInfo) -> None:
        """Open a member and write its header."""
        assert self._zip is not None
        member = zipfile.ZipInfo(info.name + ".npy")  # dated 1980: the same arrays give the same bytes
        self._member = self._zip.open(member, "w", force_zip64=True)
        self._member.write(self._headers[info.name])

    def write(self, data: Any) -> None:
        """Write the next bytes of a member."""
        self._member.write(data)

    def end(self) -> None:
        """Close the member."""
        self._member.close()
        self._member = None

    def finish(self) -> None:
        """Write the directory of the archive."""
        assert self._zip is not None
        self._zip.close()

    def abandon(self) -> None:
        """Close what is open, although the disk may be full."""
        for part in (self._member, self._zip):
            try:
                if part is not None:
                    part.close()
            except (OSError, ValueError, RuntimeError):
                continue
