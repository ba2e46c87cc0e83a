"""Layout slips as rows: how a dump's elements are found again if it was stored or read in the wrong way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..formats import FloatFormat, Format, IntFormat, TaperedFormat
from ..packing import pack, unpack

__all__ = ["NONE", "Slip", "slips"]

Codes = np.ndarray[Any, Any]

#: Rows and columns of the tiles in which matrices are stored besides Ascend's: AI Engine mmul shapes.
_TILES = ((4, 4), (4, 8), (8, 4), (8, 8), (4, 16), (16, 8))


@dataclass(frozen=True)
class Slip:
    """One way in which the right codes come to lie wrong.

    Attributes
    ----------
    name, about : str
    undo : callable
        Takes the codes as they were read and the format; returns them as they should have been.
    """

    name: str
    about: str
    undo: Callable[[Codes, Format], Codes]


NONE = Slip("", "", lambda codes, f: codes)


def slips(f: Format, shape: tuple[int, ...]) -> Iterator[Slip]:
    """Yield the slips that a dump of this format and shape can have."""
    if f.kind == "block":
        return
    yield from _packing(f, math.prod(shape))
    yield from _matrix(f, shape)
    yield from _codes(f)


# --- bytes ------------------------------------------------------------------------------------------------------------


def _packing(f: Format, elements: int) -> Iterator[Slip]:
    if f.bits < 8:
        what = "nibbles" if f.bits == 4 else "codes in a byte"
        yield Slip(
            f"{what} swapped",
            f"each byte holds its first code in the {'high nibble' if f.bits == 4 else 'high bits'}",
            _repacked,
        )
    elif f.storage.itemsize > 1:
        yield Slip("bytes of each element reversed", "the dump has the other endianness", _byteswapped)
    image = math.ceil(elements * f.bits / 8) if f.bits < 8 else elements * f.storage.itemsize
    for width in (2, 4, 8):
        if f.storage.itemsize < width and image % width == 0:
            yield Slip(
                f"bytes of {8 * width}-bit words reversed",
                f"the dump went through {8 * width}-bit words of the other endianness",
                _words_swapped(width),
            )


def _repacked(codes: Codes, f: Format) -> Codes:
    return unpack(pack(codes, f.bits), f.bits, codes.size, "high_first").reshape(codes.shape)


def _byteswapped(codes: Codes, f: Format) -> Codes:
    patterns = codes.view(f.code_dtype)
    swapped = patterns.byteswap()
    if f.bits < 8 * f.code_dtype.itemsize:
        swapped &= f.code_dtype.type((1 << f.bits) - 1)
    return swapped.view(f.storage)


def _words_swapped(width: int) -> Callable[[Codes, Format], Codes]:
    def undo(codes: Codes, f: Format) -> Codes:
        if f.bits < 8:
            image = pack(codes, f.bits)
            return unpack(_reversed(image, width), f.bits, codes.size).reshape(codes.shape)
        image = np.ascontiguousarray(codes).reshape(-1).view(np.uint8)
        return _reversed(image, width).view(f.storage).reshape(codes.shape)

    return undo


def _reversed(image: Codes, width: int) -> Codes:
    return np.ascontiguousarray(image.reshape(-1, width)[:, ::-1]).reshape(-1)


# --- matrices ---------------------------------------------------------------------------------------------------------


def _matrix(f: Format, shape: tuple[int, ...]) -> Iterator[Slip]:
    if len(shape) < 2 or min(shape[-2:]) < 2:
        return
    rows, columns = shape[-2:]
    yield Slip("transposed", f"the dump is stored [{columns}, {rows}], columns first", _transposed)
    bits = f.bits if f.bits < 8 else 8 * f.storage.itemsize
    widths = {max(256 // bits, 16), 256 // bits}
    for width in sorted(widths):
        if rows % 16 or columns % width or (rows == 16 and columns == width):
            continue
        what, nz = f"16 x {width}", (2, 0, 1, 3)
        yield Slip(f"stored as NZ ({what})", f"columns of {what} blocks, read as rows", _blocked(16, width, nz))
        yield Slip(f"rows read as NZ ({what})", f"plain rows, taken for NZ {what}", _unblocked(16, width, nz))
        yield Slip(f"stored as ZZ ({what})", f"rows of {what} blocks, rows inside", _blocked(16, width, (0, 2, 1, 3)))
        zn = (0, 2, 3, 1)
        yield Slip(f"stored as ZN ({what})", f"rows of {what} blocks, columns inside", _blocked(16, width, zn))
    for tile in _TILES:
        if rows % tile[0] == 0 and columns % tile[1] == 0 and tile[1] < columns:
            yield Slip(
                f"stored in tiles of {tile[0]} x {tile[1]}",
                "tiles row by row, as AI Engine's mmul takes them, read as rows",
                _blocked(*tile, (0, 2, 1, 3)),
            )


def _transposed(codes: Codes, f: Format) -> Codes:
    rows, columns = codes.shape[-2:]
    return np.ascontiguousarray(codes.reshape(*codes.shape[:-2], columns, rows).swapaxes(-1, -2))


def _blocked(height: int, width: int, order: tuple[int, ...]) -> Callable[[Codes, Format], Codes]:
    """Undo a storage order: axes (row of blocks, row, column of blocks, column) permuted by `order`."""

    def undo(codes: Codes, f: Format) -> Codes:
        rows, columns = codes.shape[-2:]
        split = (rows // height, height, columns // width, width)
        stored = codes.reshape(-1, *(split[i] for i in order))
        back = np.argsort(order)
        return np.ascontiguousarray(stored.transpose(0, *(int(i) + 1 for i in back))).reshape(codes.shape)

    return undo


def _unblocked(height: int, width: int, order: tuple[int, ...]) -> Callable[[Codes, Format], Codes]:
    """Undo a needless rearrangement: the host applied the inverse of a storage order to plain rows."""

    def undo(codes: Codes, f: Format) -> Codes:
        rows, columns = codes.shape[-2:]
        split = codes.reshape(-1, rows // height, height, columns // width, width)
        return np.ascontiguousarray(split.transpose(0, *(i + 1 for i in order))).reshape(codes.shape)

    return undo


# --- readings of a code -----------------------------------------------------------------------------------------------


def _codes(f: Format) -> Iterator[Slip]:
    if f.bits > 16 or f.bits < 2 or not f.signed:
        return
    if isinstance(f, IntFormat):
        about = "codes are sign and magnitude instead of two's complement"
        yield Slip("sign and magnitude", about, _from_sign_magnitude)
        yield Slip("offset binary", "the top bit is inverted: excess code instead of two's complement", _sign_inverted)
    elif isinstance(f, (FloatFormat, TaperedFormat)):
        yield Slip(
            "two's complement",
            "negative codes are the two's complement of the positive ones instead of sign and magnitude",
            _from_twos_complement,
        )
        yield Slip("sign bit inverted", "every sign is the wrong one", _sign_inverted)


def _patterns(codes: Codes, f: Format) -> tuple[Codes, int]:
    return codes.view(f.code_dtype).astype(np.int64), 1 << (f.bits - 1)


def _back(patterns: Codes, f: Format) -> Codes:
    return (patterns & ((1 << f.bits) - 1)).astype(f.code_dtype).view(f.storage)


def _from_sign_magnitude(codes: Codes, f: Format) -> Codes:
    patterns, top = _patterns(codes, f)
    return _back(np.where(patterns & top, -(patterns & (top - 1)), patterns), f)


def _from_twos_complement(codes: Codes, f: Format) -> Codes:
    patterns, top = _patterns(codes, f)
    return _back(np.where(patterns & top, top | ((2 * top - patterns) & (top - 1)), patterns), f)


def _sign_inverted(codes: Codes, f: Format) -> Codes:
    patterns, top = _patterns(codes, f)
    return _back(patterns ^ top, f)
