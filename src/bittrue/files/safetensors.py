"""The safetensors container: an 8-byte header length, a JSON header, the tensors end to end.

Formats that safetensors names are stored under that name. The others are stored as U8, and the header's metadata under
the key "bittrue" holds ``{tensor: {"format": ..., "shape": [...]}}`` as JSON, for block formats with their "axis"; so
are 4 and 6-bit tensors that do not fill whole bytes, which safetensors does not allow.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple

from ..blocks.array import image_shape as block_image_shape
from ..formats import Format, format
from ..kinds.block import BlockFormat
from .base import FileError, FileReader, Path, Sink, TensorInfo, Unsupported, check_shape, image_bytes, kept_open
from .spec import axis_from_json, format_from_json, format_to_json

__all__ = ["SafetensorsReader", "SafetensorsSink", "loads"]

KEY = "bittrue"
_MAX_HEADER = 100_000_000  # the limit of the reference implementation
#: The dtypes of safetensors 0.8 (safetensors/src/tensor.rs, enum Dtype) and the formats that they are.
DTYPES: dict[str, Format] = {
    dtype: format(name)
    for dtype, name in {
        "BOOL": "bool",
        "F4": "float4_e2m1fn",
        "F6_E2M3": "float6_e2m3fn",
        "F6_E3M2": "float6_e3m2fn",
        "U8": "uint8",
        "I8": "int8",
        "F8_E5M2": "float8_e5m2",
        "F8_E4M3": "float8_e4m3fn",
        "F8_E8M0": "float8_e8m0fnu",
        "F8_E4M3FNUZ": "float8_e4m3fnuz",
        "F8_E5M2FNUZ": "float8_e5m2fnuz",
        "I16": "int16",
        "U16": "uint16",
        "F16": "float16",
        "BF16": "bfloat16",
        "I32": "int32",
        "U32": "uint32",
        "F32": "float32",
        "C64": "complex64",
        "F64": "float64",
        "I64": "int64",
        "U64": "uint64",
    }.items()
}
_NAMES = {fmt: dtype for dtype, fmt in DTYPES.items()}


def loads(text: bytes, path: Path, what: str) -> Any:
    """Parse JSON strictly: UTF-8, one object, no name twice, no NaN."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for name, value in pairs:
            if name in result:
                raise FileError(f"{path}: {what} has the name {name!r} twice")
            name.encode()  # lone surrogates are no text
            result[name] = value
        return result

    def constant(name: str) -> None:
        raise ValueError(f"{name} is no JSON number")

    try:
        value = json.loads(text.decode(), object_pairs_hook=unique, parse_constant=constant)
    except FileError:
        raise
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: {what} is not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise FileError(f"{path}: {what} is a JSON {type(value).__name__}, expected an object")
    return value


class _Entry(NamedTuple):
    info: TensorInfo | Unsupported
    begin: int
    end: int


class SafetensorsReader(FileReader):
    """Reader of one .safetensors file; a `lenient` one lists tensors of unknown dtypes as `unsupported`."""

    def __init__(self, path: Path, lenient: bool = False) -> None:
        with kept_open(path) as file:
            entries, metadata, data = _read_header(file, path, lenient)
        offsets = {name: data + entry.begin for name, entry in entries.items()}
        infos = {name: entry.info for name, entry in entries.items()}
        tensors = {name: info for name, info in infos.items() if isinstance(info, TensorInfo)}
        super().__init__(path, file, offsets, tensors, metadata)
        self.unsupported = {name: info for name, info in infos.items() if isinstance(info, Unsupported)}


def _read_header(file: BinaryIO, path: Path, lenient: bool) -> tuple[dict[str, _Entry], dict[str, str], int]:
    size = file.seek(0, 2)
    file.seek(0)
    start = file.read(8)
    if len(start) < 8:
        raise FileError(f"{path}: has {size} bytes; a safetensors file has at least 8")
    length = int.from_bytes(start, "little")
    if length > min(_MAX_HEADER, size - 8):
        limit = f"the file has {size} bytes" if length > size - 8 else f"at most {_MAX_HEADER} are allowed"
        raise FileError(
            f"{path}: header length {length} but {limit}; not a safetensors file, or a truncated one "
            f"(it begins with {start!r})"
        )
    text = file.read(length)
    if not text.startswith(b"{"):
        raise FileError(f"{path}: the header begins with {text[:1]!r}, expected '{{'")
    header = loads(text, path, "the header")
    metadata = header.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FileError(f"{path}: __metadata__ must map names to strings")
    try:
        "".join(metadata.values()).encode()
    except UnicodeEncodeError:
        raise FileError(f"{path}: __metadata__ holds half of a character pair, which is no text") from None
    typed = loads(metadata.pop(KEY).encode(), path, f"metadata {KEY!r}") if KEY in metadata else {}
    entries = {name: _entry(name, fields, typed.get(name), path, lenient) for name, fields in header.items()}
    _check_layout(entries, size - 8 - length, path)
    return entries, metadata, 8 + length


def _entry(name: str, fields: Any, typed: Any, path: Path, lenient: bool) -> _Entry:
    of = f"{path}, tensor {name!r}"
    if not isinstance(fields, dict) or not {"dtype", "shape", "data_offsets"} <= fields.keys():
        raise FileError(f"{of}: its entry must have dtype, shape and data_offsets")
    dtype, offsets = fields["dtype"], fields["data_offsets"]
    stored = DTYPES.get(dtype) if isinstance(dtype, str) else None
    if stored is None and not (lenient and isinstance(dtype, str)):
        raise FileError(f"{of}: dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(n) is int for n in offsets):
        raise FileError(f"{of}: data_offsets {offsets!r} must be two integers")
    begin, end = offsets
    if not 0 <= begin <= end:
        raise FileError(f"{of}: data_offsets {offsets} must not be negative or reversed")
    try:
        if stored is None:
            return _Entry(Unsupported(name, dtype, check_shape(fields["shape"]), end - begin), begin, end)
        info = TensorInfo(name, stored, check_shape(fields["shape"]))
        whole = info.elements * stored.bits % 8 == 0
        if typed is not None:
            stored_bytes = info.nbytes
            info = _typed_info(name, typed)
            if dtype != "U8" or info.nbytes != stored_bytes:
                raise ValueError(
                    f"metadata says {info.format.name} of shape {info.shape}, {info.nbytes} bytes as U8, "
                    f"but {dtype} with {stored_bytes} bytes is stored"
                )
        elif not whole:
            raise ValueError(f"shape {info.shape} of {dtype} does not fill whole bytes")
    except ValueError as error:
        raise FileError(f"{of}: {error}") from None
    if info.nbytes != end - begin:
        raise FileError(
            f"{of}: data_offsets hold {end - begin} bytes, but shape {info.shape} of {info.format.name} "
            f"takes {info.nbytes}"
        )
    return _Entry(info, begin, end)


def _typed_info(name: str, typed: Any) -> TensorInfo:
    if not isinstance(typed, dict) or not {"format", "shape"} <= typed.keys():
        raise ValueError(f"metadata {KEY!r} must give its format and shape")
    return TensorInfo(name, format_from_json(typed["format"]), check_shape(typed["shape"]), axis_from_json(typed))


def _check_layout(entries: dict[str, _Entry], size: int, path: Path) -> None:
    """The tensors cover the data from end to end: nothing overlaps, nothing is left over."""
    at, before = 0, ""
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != at:
            how = f"overlaps tensor {before!r}" if entry.begin < at else "leaves a gap before it"
            raise FileError(f"{path}, tensor {name!r}: begins at offset {entry.begin}, expected {at}; it {how}")
        at, before = entry.end, name
    if at > size:
        raise FileError(f"{path}: truncated: its tensors take {at} bytes, the file holds {size}")
    if at < size:
        raise FileError(f"{path}: {size - at} bytes after the last tensor belong to none")


class SafetensorsSink(Sink):
    """Layout of a .safetensors file."""

    def __init__(self, tensors: Sequence[TensorInfo], metadata: dict[str, str]) -> None:
        # Wide items first, as the reference implementation has them: every tensor is aligned to its item size.
        super().__init__(sorted(tensors, key=lambda info: -_stored(info)[2]), metadata)
        header: dict[str, Any] = {}
        typed: dict[str, Any] = {}
        at = 0
        for info in self.order:
            dtype, shape, _ = _stored(info)
            header[info.name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + info.nbytes]}
            at += info.nbytes
            if dtype == "U8" and info.format != DTYPES["U8"]:
                typed[info.name] = {"format": format_to_json(info.format), "shape": list(info.shape)}
                if info.axis is not None:
                    typed[info.name]["axis"] = info.axis
        metadata = {**metadata, **({KEY: json.dumps(typed, separators=(",", ":"))} if typed else {})}
        if metadata:
            header = {"__metadata__": metadata, **header}
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % 8)
        if len(text) > _MAX_HEADER:
            raise ValueError(f"the header takes {len(text)} bytes; safetensors allows {_MAX_HEADER}")
        self._header = len(text).to_bytes(8, "little") + text

    def start(self, file: BinaryIO) -> None:
        """Write the header."""
        super().start(file)
        file.write(self._header)


def _stored(info: TensorInfo) -> tuple[str, list[int], int]:
    """Return the dtype and shape under which a tensor is stored, and the size of an item."""
    fmt, shape = info.format, list(info.shape)
    dtype = _NAMES.get(fmt)
    if dtype and info.elements * fmt.bits % 8 == 0:
        return dtype, shape, max(1, fmt.bits // 8)
    return "U8", image_shape(info), 1


def image_shape(info: TensorInfo) -> list[int]:
    """Return the shape of a tensor's memory image as bytes: the last axis holds the bytes where it can."""
    shape = list(info.shape)
    if isinstance(info.format, BlockFormat):
        assert info.axis is not None
        return list(block_image_shape(info.format, info.shape, info.axis))
    if info.format.bits == 8:
        return shape
    if info.format.bits > 8:
        return [*shape, image_bytes(info.format, 1)]
    if shape and shape[-1] * info.format.bits % 8 == 0:
        return [*shape[:-1], shape[-1] * info.format.bits // 8]
    return [info.nbytes]
