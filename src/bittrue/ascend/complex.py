"""Ascend C's complex numbers: complex32 (two half) and complex64 (two float), with the device's one operator, ==."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..array import Array
from ..codec import encode
from ..formats import ComplexFormat, format

__all__ = ["Complex", "complex32", "complex64"]


class Complex:
    """A complex number of two equal parts; only ``==`` is defined, component by component (Ascend C `Complex<T>`).

    Parameters
    ----------
    real, imag : number
        Rounded to the part's type, to nearest even. `imag` is 0 by default, as in ``complex64 v = 4``.
    """

    format: ClassVar[ComplexFormat]
    __slots__ = ("imag", "real")
    real: Any
    imag: Any

    def __init__(self, real: Any, imag: Any = 0) -> None:
        if isinstance(real, (complex, np.complexfloating, Complex)) and not isinstance(imag, bool) and imag == 0:
            real, imag = real.real, real.imag
        for name, value in (("real", real), ("imag", imag)):
            object.__setattr__(self, name, _part(name, value, self.format))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed; make a new one")

    @classmethod
    def array(cls, real: ArrayLike, imag: ArrayLike = 0) -> Array:
        """Make an `Array` of real and imaginary parts that broadcast against each other.

        Examples
        --------
        >>> complex32.array([1, 2], 3).tolist()
        [(1+3j), (2+3j)]
        """
        part = cls.format.part
        codes = (np.asarray(encode(p, part, overflow="infinity")).view(part.code_dtype) for p in (real, imag))
        pairs = np.ascontiguousarray(np.stack(np.broadcast_arrays(*codes), axis=-1))
        return Array(pairs.view(cls.format.code_dtype)[..., 0].view(cls.format.storage), cls.format)

    @classmethod
    def from_array(cls, array: Array) -> Complex:
        """Make a number of an `Array` without axes."""
        return cls(array.real.to_numpy()[()], array.imag.to_numpy()[()])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(complex(self), dtype or np.complex64)

    def __complex__(self) -> complex:
        return complex(float(self.real), float(self.imag))

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, (Complex, complex, float, int, np.number)):
            return NotImplemented
        return bool(self.real == other.real and self.imag == other.imag)

    def __hash__(self) -> int:
        return hash(complex(self))

    def __reduce__(self) -> tuple[type, tuple[Any, Any]]:
        return type(self), (self.real, self.imag)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.real!s}, {self.imag!s})"


def _part(name: str, value: Any, fmt: ComplexFormat) -> Any:
    if not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name}={value!r} must be a real number, not {type(value).__name__}")
    dtype = np.dtype(fmt.part.name)
    return np.asarray(encode(value, fmt.part, overflow="infinity")).view(dtype)[()]


def _format(name: str) -> ComplexFormat:
    found = format(name)
    assert isinstance(found, ComplexFormat)
    return found


class complex32(Complex):
    """Complex number of two half parts; Ascend 950 only.

    Examples
    --------
    >>> complex32(1, 2), complex32(3), complex32(1, 2) == complex32(1, 2)
    (complex32(1.0, 2.0), complex32(3.0, 0.0), True)
    """

    format = _format("complex32")
    __slots__ = ()


class complex64(Complex):
    """Complex number of two float parts; Ascend 950 only.

    Examples
    --------
    >>> complex64(4) == 4
    True
    """

    format = _format("complex64")
    __slots__ = ()
