"""Codes in memory: 1 to 8 bits as contiguous bit fields in bytes, wider ones as little-endian words; no values here.

Both directions fold lanes: neighbouring codes are merged in a word of twice the width until a group of codes fills
whole bytes (two 4-bit codes fill one, four 6-bit codes three, eight 5-bit codes five).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .formats import Format
from .rounding import suggestion

__all__ = ["pack", "packed_size", "unpack"]

ORDERS = ("low_first", "high_first")
_CHUNK = 1 << 16  # codes per step: the temporaries stay in the second-level cache
_Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def packed_size(count: int, bits: int) -> int:
    """Return the number of bytes that `count` codes of `bits` bits take.

    Examples
    --------
    >>> packed_size(3, 4), packed_size(4, 6)
    (2, 3)
    """
    return (count * bits + 7) // 8


def pack(codes: Any, bits: int, order: str = "low_first") -> _Bytes:
    """Put codes next to each other without gaps.

    Parameters
    ----------
    codes : array_like of integers
        Any shape; taken in C order. Each code is below ``2**bits``.
    bits : int
        Width of a code, 1 to 8.
    order : {"low_first", "high_first"}
        "low_first": the first code is in the lowest bits of the first byte (4 bits: in the low nibble), as Ascend C,
        OCP MX and ONNX have it. "high_first": the first code is in the highest bits.

    Returns
    -------
    numpy.ndarray
        uint8, one dimension, ``ceil(codes.size * bits / 8)`` bytes; unused bits at the end are zero. The caller keeps
        the number of codes.

    Raises
    ------
    TypeError
        When `codes` are not integers.
    ValueError
        For a code, a width or an order that is not allowed.

    Examples
    --------
    >>> pack([0x1, 0x2, 0xF], 4).tobytes().hex(), pack([0x1, 0x2, 0xF], 4, "high_first").tobytes().hex()
    ('210f', '12f0')
    >>> pack([0x3F, 0x01, 0x20, 0x15], 6).tobytes().hex()
    '7f0056'
    """
    _check(bits, order)
    flat = _code_bytes(codes, bits)
    if bits == 8:
        return flat.copy()
    group, width = _group(bits)
    out = np.empty((-(-flat.size // group), width), np.uint8)
    for start, stop in _chunks(flat.size, group):
        part = flat[start:stop]
        if part.size % group:
            part = np.concatenate([part, np.zeros(-part.size % group, np.uint8)])
        _write(_fold(part, bits, group, order), out[start // group : -(-stop // group)], order)
    return out.reshape(-1)[: packed_size(flat.size, bits)]


def unpack(data: Any, bits: int, count: int, order: str = "low_first") -> _Bytes:
    """Take codes out of contiguous bit fields; the inverse of `pack`.

    Parameters
    ----------
    data : bytes-like or numpy.ndarray of uint8
        Exactly ``ceil(count * bits / 8)`` bytes; the value of unused bits at the end does not matter.
    bits : int
        Width of a code, 1 to 8.
    count : int
        Number of codes.
    order : {"low_first", "high_first"}
        As in `pack`.

    Returns
    -------
    numpy.ndarray
        uint8, shape ``(count,)``, one code each.

    Raises
    ------
    ValueError
        For a wrong number of bytes, a width or an order that is not allowed.

    Examples
    --------
    >>> unpack(b"\\x21\\x7e", 4, 4)
    array([ 1,  2, 14,  7], dtype=uint8)
    """
    _check(bits, order)
    raw = as_bytes(data)
    if not isinstance(count, (int, np.integer)) or count < 0:
        raise ValueError(f"count={count!r} must be a non-negative integer")
    if raw.size != packed_size(int(count), bits):
        raise ValueError(
            f"data has {raw.size} bytes; {count} codes of {bits} bits take {packed_size(int(count), bits)}"
        )
    if bits == 8:
        return raw.copy()
    group, width = _group(bits)
    groups = -(-int(count) // group)
    out = np.empty(groups * group, np.uint8)
    for start, stop in _chunks(out.size, group):
        part = raw[start // group * width : stop // group * width]
        if part.size % width:
            part = np.concatenate([part, np.zeros(-part.size % width, np.uint8)])
        _unfold(_read(part.reshape(-1, width), group, order), bits, group, order, out[start:stop])
    return out[: int(count)]


def image_size(count: int, format: Format) -> int:
    """Return the number of bytes of the memory image of `count` codes."""
    return packed_size(count, format.bits) if format.bits < 8 else count * format.storage.itemsize


def to_image(codes: np.ndarray[Any, Any], format: Format, order: str = "low_first") -> np.ndarray[Any, Any]:
    """Return codes of `format` as they lie in a device's memory: packed below 8 bits, else little-endian words."""
    check_order(order)
    if format.bits < 8:
        return pack(codes, format.bits, order)
    return codes.astype(codes.dtype.newbyteorder("<"), copy=False)


def from_image(
    data: Any, format: Format, shape: int | tuple[int, ...] | None = None, order: str = "low_first"
) -> np.ndarray[Any, Any]:
    """Read the memory image of codes, the inverse of `to_image`; see `bittrue.Array.frombytes`.

    Raises
    ------
    ValueError
        When the number of bytes does not fit `format` and `shape`.
    """
    raw = as_bytes(data)
    check_order(order)
    if shape is None:
        shape = raw.size * 8 // format.bits if format.bits < 8 else raw.size // format.storage.itemsize
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if not all(isinstance(n, (int, np.integer)) and n >= 0 for n in sizes):
        raise ValueError(f"shape={shape!r} must be non-negative integers")
    count = math.prod(map(int, sizes))
    if raw.size != image_size(count, format):
        expected = image_size(count, format)
        raise ValueError(f"data has {raw.size} bytes; shape {sizes} of {format.name} takes {expected}")
    if format.bits < 8:
        return unpack(raw, format.bits, count, order).reshape(sizes)
    words = raw.view(format.storage.newbyteorder("<"))
    return words.astype(format.storage, copy=False).reshape(sizes)


def as_bytes(data: Any) -> _Bytes:
    """View a bytes-like object or a uint8 array as one run of bytes."""
    if isinstance(data, np.ndarray):
        if data.dtype != np.uint8:
            raise TypeError(f"data must be bytes or an array of uint8, not of {data.dtype}")
        return np.ascontiguousarray(data).reshape(-1)
    try:
        return np.frombuffer(data, np.uint8)
    except (TypeError, BufferError):
        raise TypeError(f"data must be bytes or an array of uint8, not {type(data).__name__}") from None


def check_order(order: str) -> None:
    """Raise `ValueError` for an unknown packing order."""
    if order not in ORDERS:
        raise ValueError(f"order={order!r} is not a packing order{suggestion(order, ORDERS)} ({', '.join(ORDERS)})")


def _check(bits: int, order: str) -> None:
    if not isinstance(bits, (int, np.integer)) or not 1 <= bits <= 8:
        raise ValueError(f"bits={bits!r} must be an integer from 1 to 8")
    check_order(order)


def _code_bytes(codes: Any, bits: int) -> _Bytes:
    """Flatten checked codes to uint8."""
    array = np.asarray(codes)
    if array.size == 0:
        return np.empty(0, np.uint8)
    if array.dtype.kind not in "iub":
        raise TypeError(f"codes must be integers, not {array.dtype}")
    flat = array.reshape(-1)
    low, high = (0, flat.max()) if array.dtype.kind != "i" else (flat.min(), flat.max())
    if low < 0 or high >= 1 << bits:
        index = int(np.argmax((flat < 0) | (flat >= 1 << bits)))
        raise ValueError(
            f"codes: {int(flat[index]):#x} at flat index {index} is out of range for {bits} bits: "
            f"0 to {(1 << bits) - 1:#x}"
        )
    return np.ascontiguousarray(flat).astype(np.uint8, copy=False)


def _group(bits: int) -> tuple[int, int]:
    """Return how many codes, a power of two, fill how many whole bytes."""
    group = 1
    while group * bits % 8:
        group *= 2
    return group, group * bits // 8


def _chunks(size: int, group: int) -> Iterator[tuple[int, int]]:
    assert _CHUNK % group == 0
    for start in range(0, size, _CHUNK):
        yield start, min(start + _CHUNK, size)


def _lanes(width: int) -> np.dtype[Any]:
    return np.dtype(f"<u{width // 8}")


def _mask(field: int, width: int, word: int) -> int:
    """Ones in the low `field` bits of each `width`-bit lane of a `word`-bit word."""
    return sum(((1 << field) - 1) << lane for lane in range(0, word, width))


def _fold(codes: _Bytes, bits: int, group: int, order: str) -> np.ndarray[Any, Any]:
    """Merge each `group` of codes into one word, the first code lowest or highest."""
    words, field, width = codes, bits, 8
    for _ in range(group.bit_length() - 1):
        words = words.view(_lanes(2 * width))
        low = words & words.dtype.type((1 << field) - 1)
        if order == "low_first":
            high = words >> words.dtype.type(width - field)
            high &= words.dtype.type(((1 << field) - 1) << field)
        else:
            low <<= low.dtype.type(field)
            high = words >> words.dtype.type(width)
        low |= high
        words, field, width = low, 2 * field, 2 * width
    return words


def _unfold(words: np.ndarray[Any, Any], bits: int, group: int, order: str, out: _Bytes) -> None:
    """Undo `_fold`, last merge first, and write one code a byte."""
    field, width = bits * group, 8 * group
    word = words.dtype.type
    while width > 8:
        field, width = field // 2, width // 2
        mask = word(_mask(field, 2 * width, 8 * group))
        first, second = words & mask, words >> word(field) & mask
        if order == "high_first":
            first, second = second, first
        second <<= word(width)
        first |= second
        words = first
    out[...] = words.view(np.uint8)


def _write(words: np.ndarray[Any, Any], out: _Bytes, order: str) -> None:
    """Write the low bytes of each word, in the order of the bit stream."""
    width = out.shape[1]
    for byte in range(width) if order == "low_first" else reversed(range(width)):
        out[:, byte] = words  # keeps the low eight bits
        if width > 1:
            words >>= words.dtype.type(8)


def _read(data: _Bytes, group: int, order: str) -> np.ndarray[Any, Any]:
    """Read the bytes of each group into a word; the inverse of `_write`."""
    width = data.shape[1]
    dtype = _lanes(8 * group)
    columns = list(reversed(range(width))) if order == "low_first" else list(range(width))
    words: np.ndarray[Any, Any] = data[:, columns[0]].astype(dtype)
    for byte in columns[1:]:
        words <<= dtype.type(8)
        words |= data[:, byte]
    return words
