"""What every format has: a name, a width, storage for its codes; and the kinds without a grid: integers and bool."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

__all__ = ["ALIASES", "BoolFormat", "Field", "Format", "IntFormat", "Value", "dyadic", "floor_log2", "odd_part"]

#: A decoded value: a Fraction, or a float where a Fraction cannot say it (-0.0, infinities, NaN of either sign).
Value = Fraction | float

_NATIVE = {
    n: n for n in "int32 int64 uint32 uint64 float32 float64 complex64 int8 int16 uint8 uint16 float16 bool".split()
}

#: Other names of the formats, by canonical name; the catalogue fills it.
ALIASES: dict[str, tuple[str, ...]] = {}


class Field(NamedTuple):
    """A named run of bits in a code, most significant field first."""

    name: str
    value: int
    width: int


def dyadic(exponent: int) -> Fraction:
    """Return 2**exponent."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def floor_log2(value: Fraction) -> int:
    """Return the exponent of the binade that holds the positive `value`, from its integers alone."""
    n, d = value.numerator, value.denominator
    e = n.bit_length() - d.bit_length()
    return e if (n >= d << e if e >= 0 else n << -e >= d) else e - 1


def odd_part(n: int, exponent: int) -> tuple[int, int]:
    """Write n * 2**exponent with an odd integer."""
    zeros = (n & -n).bit_length() - 1
    return n >> zeros, exponent + zeros


@dataclass(frozen=True)
class Format:
    """Base of all formats: a name and a number of bits per code.

    Attributes
    ----------
    name
        The canonical name (ml_dtypes' where it has one).
    bits
        Width of one code. Codes are unsigned integers below ``2**bits``; integers are two's complement.
    """

    name: str
    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name={self.name!r} must be a non-empty string")

    def __str__(self) -> str:
        return self.name

    @property
    def bits(self) -> int:
        raise AttributeError("bits")

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names of this format (Ascend C, PyPTO, torch, ONNX, safetensors, en_dtypes)."""
        return ALIASES.get(self.name, ())

    @cached_property
    def storage(self) -> np.dtype[Any]:
        """NumPy dtype that `encode` writes and `decode` reads for this format.

        uint8 up to 8 bits, uint16 up to 16; above, the native dtype where NumPy has one, else an unsigned integer.
        """
        native = _NATIVE.get(self.name)
        if native is not None and self.bits > 16:
            return np.dtype(native)
        return np.dtype(np.uint8 if self.bits <= 8 else np.uint16 if self.bits <= 16 else _wide(self.bits))

    @cached_property
    def code_dtype(self) -> np.dtype[Any]:
        """Unsigned NumPy dtype with the width of `storage`."""
        return np.dtype(f"u{self.storage.itemsize}")

    if TYPE_CHECKING:  # properties to a reader: fields in some kinds, constants or computed in others

        @property
        def signed(self) -> bool: ...
        @property
        def has_inf(self) -> bool: ...
        @property
        def has_nan(self) -> bool: ...
        @property
        def has_zero(self) -> bool: ...
        @property
        def has_negative_zero(self) -> bool: ...
        @property
        def max(self) -> Fraction: ...
        @property
        def min(self) -> Fraction: ...
        @property
        def epsilon(self) -> Fraction: ...
        @property
        def min_normal(self) -> Fraction: ...
        @property
        def min_subnormal(self) -> Fraction: ...
    else:
        has_inf = has_nan = has_negative_zero = False
        has_zero = True

    def value(self, code: int) -> Value:
        """Return the exact value of `code`; raise `ValueError` when it is out of range."""
        raise TypeError(f"format {self.name} has no single value per code")

    def fields(self, code: int) -> tuple[Field, ...]:
        """Split `code` into its named bit fields, most significant first.

        Examples
        --------
        >>> import bittrue as bt
        >>> bt.format("float8_e4m3fn").fields(0x7E)
        (Field(name='sign', value=0, width=1), Field(name='exponent', value=15, width=4), \
Field(name='significand', value=6, width=3))
        """
        raise TypeError(f"format {self.name} has no bit fields")

    def check(self, code: int) -> int:
        """Return `code` as an int if it is one of this format's codes, else raise `ValueError`."""
        if not 0 <= code < 1 << self.bits:
            raise ValueError(f"code {code:#x} is out of range for {self.name}: 0 to {(1 << self.bits) - 1:#x}")
        return int(code)

    def values(self) -> list[Value]:
        """Return the value of every code in code order (formats up to 16 bits).

        Examples
        --------
        >>> import bittrue as bt
        >>> [float(v) for v in bt.format("float4_e2m1fn").values()[:8]]
        [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
        """
        if self.bits > 16:
            raise ValueError(f"values() lists formats up to 16 bits; {self.name} has {self.bits}")
        return [self.value(code) for code in range(1 << self.bits)]

    def describe(self) -> str:
        """Return a short account of the format in plain text."""
        return f"{self.name}: {self.bits} bits"


def _wide(bits: int) -> type[Any]:
    return np.uint32 if bits <= 32 else np.uint64


@dataclass(frozen=True)
class IntFormat(Format):
    """Two's complement or unsigned integers of 1 to 64 bits.

    Examples
    --------
    >>> IntFormat("int5", width=5).min
    Fraction(-16, 1)
    """

    width: int = 8
    signed: bool = True
    kind: ClassVar[str] = "int"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.width <= 64:
            raise ValueError(f"width={self.width!r} must be from 1 to 64 bits")

    @property
    def bits(self) -> int:
        return self.width

    @property
    def max(self) -> Fraction:
        """Largest value."""
        return Fraction((1 << (self.width - self.signed)) - 1)

    @property
    def min(self) -> Fraction:
        """Lowest value."""
        return Fraction(-(1 << (self.width - 1)) if self.signed else 0)

    @property
    def epsilon(self) -> Fraction:
        """Distance of neighbouring values."""
        return Fraction(1)

    @property
    def min_normal(self) -> Fraction:
        """Smallest positive value."""
        return Fraction(1)

    min_subnormal = min_normal

    def value(self, code: int) -> Value:
        self.check(code)
        return Fraction(code - (1 << self.width) if self.signed and code >> (self.width - 1) else code)

    def pack(self, number: int) -> int:
        """Return the code of an integer in range."""
        return number & ((1 << self.width) - 1)

    def fields(self, code: int) -> tuple[Field, ...]:
        self.check(code)
        if not self.signed:
            return (Field("magnitude", code, self.width),)
        low = self.width - 1
        sign = Field("sign", code >> low, 1)
        return (sign, Field("magnitude", code & ((1 << low) - 1), low)) if low else (sign,)

    def describe(self) -> str:
        kind = "two's complement" if self.signed else "unsigned"
        return f"{self.name}: {self.width}-bit {kind} integer, {self.min} to {self.max}"


@dataclass(frozen=True)
class BoolFormat(Format):
    """Truth values in eight bits: all bits zero is false, any other code is true (Ascend C data types, S1)."""

    kind: ClassVar[str] = "bool"
    signed: ClassVar[bool] = False

    @property
    def bits(self) -> int:
        return 8

    max = property(lambda self: Fraction(1))
    min = property(lambda self: Fraction(0))
    epsilon = min_normal = min_subnormal = max

    def value(self, code: int) -> Value:
        return Fraction(self.check(code) != 0)

    def fields(self, code: int) -> tuple[Field, ...]:
        return (Field("truth", self.check(code), 8),)

    def describe(self) -> str:
        return f"{self.name}: eight bits, all zero is false, anything else true"
