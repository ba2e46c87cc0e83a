"""`aie.vector`: the lanes of a vector register, with a type, a legal size and an architecture."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codec import decode, encode
from ..codes import ecosystem_dtype
from ..formats import IntFormat
from ..packing import as_bytes
from ..packing import pack as pack_bits
from ..packing import unpack as unpack_bits
from ..rounding import Overflow
from .arch import Arch
from .elements import Element, element
from .modes import SaturationMode
from .tile import in_force

__all__ = ["check_lanes", "part_number", "vector"]

Array = np.ndarray[Any, Any]
Bytes = bytes  # a vector has a member of that name


class vector:
    """A vector of one element type: `aie::vector<T, N>`.

    Parameters
    ----------
    dtype : name, dtype or Element
        int4 ... int32, uint4 ... uint32, cint16, cint32, bfloat16, float16, float8, bfloat8, float, cfloat, cbfloat16;
        what the architecture has.
    values : array_like
        One value per lane (complex numbers for complex types). Integers must fit; floats are rounded to nearest even,
        as literals are.
    arch : name, number or Arch, optional
        Default: the current tile's.

    Raises
    ------
    ValueError
        For a type that the architecture lacks, an illegal number of lanes, or an integer out of range.

    Examples
    --------
    >>> v = vector("int16", range(8), arch="aie-ml")
    >>> v
    vector<int16, 8>([0, 1, 2, 3, 4, 5, 6, 7])
    >>> v[3] = -1
    >>> v.cast_to("int8").to_numpy()[4:8]
    array([ 2,  0, -1, -1], dtype=int8)
    """

    __slots__ = ("_numbers", "arch", "element")
    __hash__ = None  # type: ignore[assignment]
    element: Element
    arch: Arch
    _numbers: Array  # one entry per number (two per complex lane): integers by value, floats by their bits

    def __init__(self, dtype: Any, values: ArrayLike, arch: str | int | Arch | None = None) -> None:
        self.arch = in_force(arch).arch
        self.element = element(dtype, self.arch)
        found = values.to_numpy() if isinstance(values, vector) else np.asarray(_listed(values))
        if found.ndim != 1:
            raise ValueError(f"values has {found.ndim} dimensions; a vector has one")
        check_lanes(self.element, len(found), self.arch)
        self._numbers = _numbers(found, self.element, "values")

    @classmethod
    def of(cls, numbers: Array, kind: Element, arch: Arch) -> vector:
        """Wrap numbers that are known to fit."""
        self = cls.__new__(cls)
        self._numbers, self.element, self.arch = numbers, kind, arch
        return self

    @staticmethod
    def numbers(values: Array, kind: Element, argument: str) -> Array:
        """Return values as the numbers that a vector keeps, or raise what does not fit."""
        return _numbers(values, kind, argument)

    @classmethod
    def zeros(cls, dtype: Any, lanes: int, arch: str | int | Arch | None = None) -> vector:
        """Return a vector of zeros (`aie::zeros`)."""
        of = in_force(arch).arch
        kind = element(dtype, of)
        check_lanes(kind, lanes, of)
        return cls.of(np.zeros(lanes * kind.parts, kind.dtype), kind, of)

    @classmethod
    def frombytes(cls, data: Any, dtype: Any, arch: str | int | Arch | None = None) -> vector:
        """Read a register's memory image, bytes or an array of uint8; the inverse of `tobytes`."""
        of = in_force(arch).arch
        kind, image = element(dtype, of), as_bytes(data)
        if image.size * 8 % kind.bits:
            raise ValueError(f"data has {image.size} bytes, which are no whole lanes of {kind}")
        check_lanes(kind, image.size * 8 // kind.bits, of)
        return cls.of(_from_image(image, kind), kind, of)

    # --- what it holds ------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of lanes."""
        return self._numbers.size // self.element.parts

    @property
    def type_bits(self) -> int:
        """Bits of an element."""
        return self.element.bits

    @property
    def bits(self) -> int:
        """Bits of the whole vector."""
        return self.size * self.element.bits

    @property
    def bytes(self) -> int:
        """Bytes of the whole vector."""
        return self.bits // 8

    @property
    def is_complex(self) -> bool:
        """Whether the elements are complex."""
        return self.element.is_complex

    @property
    def is_real(self) -> bool:
        """Whether the elements are real."""
        return not self.element.is_complex

    @property
    def codes(self) -> Array:
        """Bits of each number as unsigned integers; for complex types real and imaginary parts in turns."""
        mask = (1 << self.element.part.bits) - 1
        return np.asarray(self._numbers.view(self.element.part.code_dtype) & self.element.part.code_dtype.type(mask))

    def integers(self) -> Array:
        """Return the numbers of an integer vector (parts in turns); raise `TypeError` for floats."""
        if not self.element.is_integer:
            raise TypeError(f"vector<{self.element}, {self.size}> holds floats, not integers")
        return self._numbers

    def floats(self) -> Array:
        """Return the numbers of a float vector as float32 (parts in turns); raise `TypeError` for integers."""
        if self.element.is_integer:
            raise TypeError(f"vector<{self.element}, {self.size}> holds integers, not floats")
        if self.element.part.bits == 32:
            return self._numbers.view(np.float32)
        return decode(self._numbers, self.element.part)

    def to_numpy(self) -> Array:
        """Return the values: integers, float32 or ml_dtypes' types; complex64, or complex128 for cint32."""
        if self.element.is_complex:
            wide = self.element.name == "cint32"
            parts = self._numbers if self.element.is_integer else self.floats()
            kind = np.float64 if wide else np.float32
            return parts.astype(kind).view(np.complex128 if wide else np.complex64)
        own = ecosystem_dtype(self.element.part)
        assert own is not None
        if own.kind in "iu" and own.itemsize == self._numbers.itemsize:
            return self._numbers.copy()
        return self._numbers.astype(own) if self.element.is_integer else self._numbers.view(own).copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        found = self.to_numpy()
        return found if dtype is None else found.astype(dtype)

    def tobytes(self) -> Bytes:
        """Return the memory image: lanes in order, little-endian, int4 two in a byte (the first in the low half)."""
        return _image(self._numbers, self.element).tobytes()

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """Return Python numbers."""
        found = self.to_numpy()
        return list(found.tolist()) if found.dtype.kind in "iufc" else [found[i].item() for i in range(len(found))]

    def __repr__(self) -> str:
        return f"vector<{self.element}, {self.size}>({self.tolist()})"

    def __eq__(self, other: object) -> bool:
        """Same architecture, type, size and bits."""
        return (
            isinstance(other, vector)
            and (self.arch, self.element) == (other.arch, other.element)
            and np.array_equal(self.codes, other.codes)
        )

    # --- lanes --------------------------------------------------------------------------------------------------------

    def __getitem__(self, index: int) -> Any:
        return self.tolist()[self._lane(index)]

    def get(self, index: int) -> Any:
        """Return the value of a lane."""
        return self[index]

    def __setitem__(self, index: int, value: Any) -> None:
        lane, parts = self._lane(index), self.element.parts
        self._numbers[lane * parts : (lane + 1) * parts] = _numbers(np.asarray([value]), self.element, "value")

    def set(self, value: Any, index: int) -> None:
        """Write a lane."""
        self[index] = value

    def _lane(self, index: int) -> int:
        try:
            lane = operator.index(index)
        except TypeError:
            raise TypeError(f"index={index!r} must be an integer; use extract for parts of a vector") from None
        if not -self.size <= lane < self.size:
            raise IndexError(f"index={lane} is out of range; vector<{self.element}, {self.size}> has {self.size} lanes")
        return lane % self.size

    def push(self, value: Any) -> vector:
        """Shift all lanes up by one, write the first and lose the last; returns the vector itself.

        Examples
        --------
        >>> vector("int32", [1, 2, 3, 4], "aie").push(0)
        vector<int32, 4>([0, 1, 2, 3])
        """
        parts = self.element.parts
        first = _numbers(np.asarray([value]), self.element, "value")
        self._numbers = np.concatenate([first, self._numbers[:-parts]])
        return self

    # --- parts --------------------------------------------------------------------------------------------------------

    def extract(self, lanes: int, index: int) -> vector:
        """Return lanes ``index * lanes`` to ``(index + 1) * lanes`` as a vector.

        Examples
        --------
        >>> vector("int16", range(16), "aie-ml").extract(8, 1)
        vector<int16, 8>([8, 9, 10, 11, 12, 13, 14, 15])
        """
        check_lanes(self.element, lanes, self.arch)
        start, stop = part_number(index, lanes, self.size, self.element.parts)
        return self._with(self._numbers[start:stop].copy())

    def split(self, lanes: int) -> list[vector]:
        """Return the whole vector in parts."""
        return [self.extract(lanes, i) for i in range(max(self.size // _positive(lanes, "lanes"), 1))]

    def insert(self, index: int, part: vector) -> vector:
        """Write a smaller vector over lanes ``index * part.size`` and on; returns the vector itself."""
        self._same(part, "part")
        start, stop = part_number(index, part.size, self.size, self.element.parts)
        self._numbers[start:stop] = part._numbers
        return self

    def grow(self, lanes: int, index: int = 0) -> vector:
        """Return a larger vector with this one at part `index`; the other lanes are undefined in hardware, 0 here."""
        check_lanes(self.element, lanes, self.arch)
        start, stop = part_number(index, self.size, lanes, self.element.parts)
        numbers = np.zeros(lanes * self.element.parts, self.element.dtype)
        numbers[start:stop] = self._numbers
        return self._with(numbers)

    def grow_replicate(self, lanes: int) -> vector:
        """Return a larger vector that repeats this one."""
        check_lanes(self.element, lanes, self.arch)
        part_number(0, self.size, lanes, 1)
        return self._with(np.tile(self._numbers, lanes // self.size))

    def copy(self) -> vector:
        """Return a copy."""
        return self._with(self._numbers.copy())

    def _with(self, numbers: Array) -> vector:
        return vector.of(numbers, self.element, self.arch)

    def _same(self, other: object, argument: str) -> None:
        if not isinstance(other, vector):
            raise TypeError(f"{argument} must be an aie.vector, not {type(other).__name__}")
        if other.arch != self.arch:
            raise ValueError(f"{argument} is of {other.arch}, not of {self.arch}; architectures cannot be mixed")
        if other.element != self.element:
            raise ValueError(f"{argument} has elements of {other.element}, not of {self.element}")

    # --- types --------------------------------------------------------------------------------------------------------

    def cast_to(self, dtype: Any) -> vector:
        """Read the same bits as lanes of another type; the total size stays.

        Examples
        --------
        >>> vector("float", [1, -2, 0, 0.5], "aie-ml").cast_to("int32")
        vector<int32, 4>([1065353216, -1073741824, 0, 1056964608])
        """
        return vector.frombytes(self.tobytes(), dtype, self.arch)

    def unpack(self) -> vector:
        """Return the integers in twice the bits: int4 to int8, int8 to int16 and their unsigned kin."""
        target = self._neighbour(2)
        return vector.of(self.integers().astype(target.dtype), target, self.arch)

    def pack(self, saturation: object = None) -> vector:
        """Return the integers in half the bits: int16 to int8, int8 to int4; what does not fit follows `saturation`.

        Default: the current tile's saturation mode.
        """
        target = self._neighbour(1)
        state = in_force(self.arch, None, saturation)
        numbers = self.integers()
        if state.saturation is SaturationMode.none:
            spare = 8 * target.dtype.itemsize - target.bits
            low = numbers.astype(target.dtype)
            return vector.of((low << spare) >> spare, target, self.arch)
        limits = state.saturation.limits(target.bits, target.signed)
        assert limits is not None
        return vector.of(np.clip(numbers, *limits).astype(target.dtype), target, self.arch)

    def _neighbour(self, factor: int) -> Element:
        bits = self.element.bits * 2 if factor == 2 else self.element.bits // 2
        allowed = (8, 16) if factor == 2 else (4, 8)
        if not self.element.is_integer or self.element.is_complex or bits not in allowed:
            names = "int4, uint4, int8, uint8" if factor == 2 else "int8, uint8, int16, uint16"
            word = "unpack" if factor == 2 else "pack"
            raise ValueError(f"vector<{self.element}, {self.size}> cannot {word}; these can: {names}")
        target = element(f"{'' if self.element.signed else 'u'}int{bits}", self.arch)
        check_lanes(target, self.size, self.arch)
        return target


def check_lanes(kind: Element, lanes: object, arch: Arch) -> None:
    """Raise `ValueError` for a number of lanes that the architecture does not have."""
    legal = dict(kind.sizes)[arch.name]
    if isinstance(lanes, bool) or not isinstance(lanes, (int, np.integer)) or lanes not in legal:
        raise ValueError(f"lanes={lanes!r} is not a size of {kind} vectors on {arch} ({', '.join(map(str, legal))})")


def part_number(index: object, lanes: int, size: int, parts: int) -> tuple[int, int]:
    """Return where part `index` of `lanes` lanes starts and stops in the numbers of a register of `size` lanes."""
    if lanes > size or size % lanes:
        raise ValueError(f"{lanes} lanes are no part of {size}")
    count = size // lanes
    if isinstance(index, bool) or not isinstance(index, (int, np.integer)) or not 0 <= index < count:
        raise ValueError(f"index={index!r} must be an integer from 0 to {count - 1}: {size} lanes = {count} x {lanes}")
    return int(index) * lanes * parts, (int(index) + 1) * lanes * parts


def _positive(number: Any, argument: str) -> int:
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
        raise ValueError(f"{argument}={number!r} must be a positive integer")
    return int(number)


def _listed(values: Any) -> Any:
    return list(values) if isinstance(values, (range, Iterator)) else values


def _numbers(values: Array, kind: Element, argument: str) -> Array:
    """Return values as the numbers that a vector keeps."""
    if values.dtype.kind in "USMm" or (values.dtype == object and not all(isinstance(v, Number) for v in values)):
        raise TypeError(f"{argument} holds {values[:1].tolist()[0]!r}, which is no number for {kind}")
    if values.dtype.kind == "c":
        if not kind.is_complex:
            raise ValueError(f"{argument} has complex values, which {kind} cannot hold")
        parts = np.stack([values.real, values.imag], axis=-1).reshape(-1)
    elif kind.is_complex:
        parts = np.stack([values, np.zeros_like(values)], axis=-1).reshape(-1)
    else:
        parts = values
    if not kind.is_integer:
        codes = encode(parts, kind.part, overflow=Overflow.infinity)
        return np.asarray(codes).view(kind.part.code_dtype).reshape(-1)
    if parts.dtype.kind not in "iub" and parts.dtype != object:
        parts = parts.astype(np.float64)
        if not (np.isfinite(parts) & (parts == np.floor(parts))).all():
            bad = parts[~(np.isfinite(parts) & (parts == np.floor(parts)))][0]
            raise ValueError(f"{argument} holds {bad}, which is no integer for {kind}")
    assert isinstance(kind.part, IntFormat)
    low, high = int(kind.part.min), int(kind.part.max)
    outside = (parts < low) | (parts > high)
    if outside.any():
        raise ValueError(f"{argument} holds {parts[outside][0]}, which is out of range for {kind}: {low} to {high}")
    return parts.astype(kind.dtype)


def _image(numbers: Array, kind: Element) -> Array:
    if kind.part.bits < 8:
        return pack_bits(numbers.view(np.uint8) & np.uint8(0xF), 4)
    return np.ascontiguousarray(numbers).view(np.uint8)


def _from_image(data: Array, kind: Element) -> Array:
    if kind.part.bits < 8:
        codes = unpack_bits(data, 4, data.size * 2)
        if not kind.signed:
            return codes.astype(kind.dtype)
        return (codes.astype(np.uint8) << 4).view(np.int8) >> 4
    return data.copy().view(kind.dtype)
