"""Formats as data: which values exist, how their codes are laid out, and by which names they are known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .rounding import suggestion

__all__ = [
    "BoolFormat",
    "ComplexFormat",
    "Field",
    "FloatFormat",
    "Format",
    "IntFormat",
    "Regime",
    "TaperedFormat",
    "format",
    "formats",
    "p3109",
    "register",
]

#: A decoded value: a Fraction, or a float where a Fraction cannot say it (-0.0, infinities, NaN of either sign).
Value = Fraction | float


class Field(NamedTuple):
    """A named run of bits in a code, most significant field first."""

    name: str
    value: int
    width: int


def _dyadic(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def floor_log2(value: Fraction) -> int:
    """Return the exponent of the binade that holds the positive `value`, from its integers alone."""
    n, d = value.numerator, value.denominator
    e = n.bit_length() - d.bit_length()
    return e if (n >= d << e if e >= 0 else n << -e >= d) else e - 1


def _odd_part(n: int, exponent: int) -> tuple[int, int]:
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
        return _ALIASES.get(self.name, ())

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

    has_inf: ClassVar[bool] = False
    has_nan: ClassVar[bool] = False
    has_zero: ClassVar[bool] = True
    has_negative_zero: ClassVar[bool] = False
    signed: ClassVar[Any]

    def value(self, code: int) -> Value:
        """Return the exact value of `code`; raise `ValueError` when it is out of range."""
        raise TypeError(f"format {self.name} has no single value per code")

    def fields(self, code: int) -> tuple[Field, ...]:
        """Split `code` into its named bit fields, most significant first.

        Examples
        --------
        >>> format("float8_e4m3fn").fields(0x7E)
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
        >>> [float(v) for v in format("float4_e2m1fn").values()[:8]]
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
    signed: ClassVar[bool] = False  # type: ignore[misc]

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


@dataclass(frozen=True)
class _RealFormat(Format):
    """What float and tapered formats share: sign and magnitude codes, and the grid of representable values.

    A subclass gives the codes (`max_code`, `inf_magnitude`, ...), the grid (`quantum_exponent`, `place`) and
    `magnitude_value`.
    """

    max_code: ClassVar[Any]  # magnitude code of the largest finite value
    inf_magnitude: ClassVar[Any]  # magnitude code of Inf, or None
    nan_code: ClassVar[Any]  # the canonical (quiet, positive) NaN code, or None
    nan_signed: ClassVar[Any]  # whether the NaN code has a negative twin

    @property
    def magnitude_bits(self) -> int:
        """Bits of a code below the sign."""
        return self.bits - self.signed

    @property
    def has_inf(self) -> bool:  # type: ignore[override]
        return self.inf_magnitude is not None

    @property
    def has_nan(self) -> bool:  # type: ignore[override]
        return self.nan_code is not None

    def quantum_exponent(self, exponent: int) -> int:
        """Return q: neighbouring values in the binade of 2**`exponent` are 2**q apart, also beyond the range."""
        raise AttributeError(exponent)

    def place(self, steps: int, q: int) -> int | None:
        """Return the magnitude code of the grid point `steps` * 2**`q`, or None beyond the largest value."""
        raise AttributeError(steps, q)

    def magnitude_value(self, magnitude: int) -> Fraction:
        """Return the value of a finite magnitude code."""
        raise AttributeError(magnitude)

    def is_nan(self, code: int) -> bool:
        """Whether `code` is a NaN."""
        raise AttributeError(code)

    def with_sign(self, magnitude: int, negative: bool) -> int:
        """Put the sign on a magnitude code; zero stays unsigned where the format has no -0."""
        if not negative or not self.signed or (magnitude == 0 and not self.has_negative_zero):
            return magnitude
        return magnitude | 1 << self.magnitude_bits

    def value(self, code: int) -> Value:
        self.check(code)
        negative = bool(self.signed and code >> self.magnitude_bits)
        magnitude = code & ((1 << self.magnitude_bits) - 1)
        sign = -1.0 if negative else 1.0
        if self.is_nan(code):
            return math.copysign(math.nan, sign if self.nan_signed else 1.0)
        if magnitude == self.inf_magnitude:
            return sign * math.inf
        if magnitude == 0 and self.has_zero:
            return -0.0 if negative else Fraction(0)
        value = self.magnitude_value(magnitude)
        return -value if negative else value

    @property
    def max(self) -> Fraction:
        """Largest finite value, exact."""
        return self.magnitude_value(self.max_code)

    @property
    def min(self) -> Fraction:
        """Lowest finite value, exact."""
        if self.signed:
            return -self.max
        return Fraction(0) if self.has_zero else self.magnitude_value(0)

    @property
    def epsilon(self) -> Fraction:
        """Distance from 1 to the next larger value."""
        return _dyadic(self.quantum_exponent(0))


@dataclass(frozen=True)
class FloatFormat(_RealFormat):
    """Sign, exponent and significand fields, IEEE 754 fashion.

    Parameters
    ----------
    name
    exponent_bits, mantissa_bits
        Widths of the exponent field (0 to 11) and of the fraction (0 to 52).
    bias
        Exponent bias; default ``2**(exponent_bits - 1) - 1``.
    signed
        Whether there is a sign bit.
    inf
        Whether there is an Inf.
    nan
        Where NaN lives: "exponent" (all-ones exponent, non-zero fraction: IEEE 754), "ones" (the all-ones magnitude
        alone), "negative_zero" (the code of -0, which then does not exist) or "none".
    zero
        False: exponent field 0 is an ordinary binade and there is no zero (e8m0).

    Examples
    --------
    >>> mine = FloatFormat("mine", exponent_bits=3, mantissa_bits=2, inf=False, nan="none")
    >>> mine.bits, mine.max
    (6, Fraction(28, 1))
    """

    exponent_bits: int = 8
    mantissa_bits: int = 7
    bias: int = None  # type: ignore[assignment]  # None until __post_init__ puts the default
    signed: bool = True
    inf: bool = True
    nan: str = "exponent"
    zero: bool = True
    kind: ClassVar[str] = "float"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.exponent_bits <= 11:
            raise ValueError(f"exponent_bits={self.exponent_bits!r} must be from 0 to 11")
        if not 0 <= self.mantissa_bits <= 52:
            raise ValueError(f"mantissa_bits={self.mantissa_bits!r} must be from 0 to 52")
        if self.bits < 2:
            raise ValueError(f"{self.name}: a float format needs at least 2 bits")
        if self.nan not in ("exponent", "ones", "negative_zero", "none"):
            raise ValueError(f"nan={self.nan!r} must be 'exponent', 'ones', 'negative_zero' or 'none'")
        if self.nan == "exponent" and not (self.inf and self.mantissa_bits and self.exponent_bits and self.zero):
            raise ValueError("nan='exponent' needs inf=True, zero=True and at least one exponent and fraction bit")
        if self.nan == "negative_zero" and not (self.signed and self.zero):
            raise ValueError("nan='negative_zero' needs a signed format with a zero")
        if self.bias is None:
            object.__setattr__(self, "bias", (1 << self.exponent_bits >> 1) - 1)
        if not (
            -1022 <= self.min_exponent - self.mantissa_bits + 52
            and self.min_exponent >= -1022
            and self.max < _dyadic(1024)
        ):
            raise ValueError(f"bias={self.bias!r}: the values of {self.name} must lie within float64's range")

    @property
    def bits(self) -> int:
        return self.signed + self.exponent_bits + self.mantissa_bits

    @property
    def has_zero(self) -> bool:  # type: ignore[override]
        return self.zero

    @property
    def has_negative_zero(self) -> bool:  # type: ignore[override]
        return self.signed and self.zero and self.nan != "negative_zero"

    @property
    def nan_signed(self) -> bool:  # type: ignore[override]
        return self.signed and self.nan in ("exponent", "ones")

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal binade."""
        return int(self.zero) - self.bias

    @cached_property
    def inf_magnitude(self) -> int | None:  # type: ignore[override]
        if not self.inf:
            return None
        if self.nan == "exponent":
            return ((1 << self.exponent_bits) - 1) << self.mantissa_bits
        return (1 << self.magnitude_bits) - 1 - (self.nan == "ones")

    @cached_property
    def max_code(self) -> int:  # type: ignore[override]
        if self.inf_magnitude is not None:
            return self.inf_magnitude - 1
        return (1 << self.magnitude_bits) - 1 - (self.nan == "ones")

    @cached_property
    def nan_code(self) -> int | None:  # type: ignore[override]
        if self.nan == "exponent":
            assert self.inf_magnitude is not None
            return self.inf_magnitude | 1 << (self.mantissa_bits - 1)
        return {
            "ones": (1 << self.magnitude_bits) - 1,
            "negative_zero": 1 << self.magnitude_bits,
        }.get(self.nan)

    def is_nan(self, code: int) -> bool:
        """Whether `code` is a NaN."""
        magnitude = code & ((1 << self.magnitude_bits) - 1)
        if self.nan == "exponent":
            assert self.inf_magnitude is not None
            return magnitude > self.inf_magnitude
        if self.nan == "ones":
            return magnitude == self.nan_code
        return code == self.nan_code

    @property
    def min_normal(self) -> Fraction:
        """Smallest positive normal value."""
        return _dyadic(self.min_exponent)

    @property
    def min_subnormal(self) -> Fraction:
        """Smallest positive value (the smallest normal one where there are no subnormals)."""
        return _dyadic(self.min_exponent - self.mantissa_bits) if self.zero else self.min_normal

    def quantum_exponent(self, exponent: int) -> int:
        return max(exponent, self.min_exponent) - self.mantissa_bits

    def place(self, steps: int, q: int) -> int | None:
        # `steps` carries the implicit one, which adds one to the exponent field; a carry out of it adds another.
        binade = q + self.mantissa_bits - self.min_exponent - (not self.zero)
        code = (binade << self.mantissa_bits) + steps
        return code if code <= self.max_code else None

    def magnitude_value(self, magnitude: int) -> Fraction:
        exponent, fraction = divmod(magnitude, 1 << self.mantissa_bits)
        if exponent == 0 and self.zero:
            return fraction * self.min_subnormal
        significand = fraction + (1 << self.mantissa_bits)
        return significand * _dyadic(exponent - self.bias - self.mantissa_bits)

    def fields(self, code: int) -> tuple[Field, ...]:
        self.check(code)
        sign = code >> self.magnitude_bits
        exponent, fraction = divmod(code & ((1 << self.magnitude_bits) - 1), 1 << self.mantissa_bits)
        every = (
            Field("sign", sign, int(self.signed)),
            Field("exponent", exponent, self.exponent_bits),
            Field("significand", fraction, self.mantissa_bits),
        )
        return tuple(f for f in every if f.width)

    def describe(self) -> str:
        parts = [
            f"{self.name}: {self.bits} bits ({int(self.signed)} sign, {self.exponent_bits} exponent, "
            f"{self.mantissa_bits} fraction), bias {self.bias}",
            f"largest {float(self.max):g}, smallest normal {float(self.min_normal):g}, "
            f"smallest {float(self.min_subnormal):g}",
            f"{'Inf' if self.has_inf else 'no Inf'}, {'NaN' if self.has_nan else 'no NaN'}, "
            f"{'-0' if self.has_negative_zero else 'no -0'}",
        ]
        return "; ".join(parts)


class Regime(NamedTuple):
    """One row of a tapered format: a prefix in the top bits of the payload and the fields below it."""

    prefix: int
    prefix_bits: int
    exponent_bits: int  # sign-magnitude with an implicit leading one; 0: the exponent is 0
    mantissa_bits: int
    subnormal: bool = False  # the fraction m stands for 2**(m + subnormal_bias), m = 0 for zero


@dataclass(frozen=True)
class TaperedFormat(_RealFormat):
    """A prefix code (the "dot" field) tells how the other bits split into exponent and fraction.

    hifloat8 is the instance (Ascend C data types, table 4): see `specs` in the documentation for its figures.
    """

    width: int = 8
    regimes: tuple[Regime, ...] = ()
    subnormal_bias: int = 0
    inf_magnitude: int | None = None  # type: ignore[misc,assignment]
    nan_code: int | None = None  # type: ignore[misc,assignment]
    max_code: int = 0  # type: ignore[misc]
    has_negative_zero: bool = False  # type: ignore[misc]
    kind: ClassVar[str] = "tapered"
    signed: ClassVar[bool] = True  # type: ignore[misc]
    nan_signed: ClassVar[bool] = False

    @property
    def bits(self) -> int:
        return self.width

    def is_nan(self, code: int) -> bool:
        """Whether `code` is a NaN."""
        return code == self.nan_code

    def regime(self, magnitude: int) -> Regime:
        """Return the row whose prefix `magnitude` carries."""
        for row in self.regimes:
            if magnitude >> (self.magnitude_bits - row.prefix_bits) == row.prefix:
                return row
        raise ValueError(f"magnitude {magnitude:#x} has no prefix of {self.name}")

    def _split(self, magnitude: int) -> tuple[Regime, int, int]:
        row = self.regime(magnitude)
        fraction = magnitude & ((1 << row.mantissa_bits) - 1)
        return row, (magnitude >> row.mantissa_bits) & ((1 << row.exponent_bits) - 1), fraction

    def magnitude_value(self, magnitude: int) -> Fraction:
        row, field, fraction = self._split(magnitude)
        if row.subnormal:
            return _dyadic(fraction + self.subnormal_bias)
        exponent = 0
        if row.exponent_bits:
            leading = 1 << (row.exponent_bits - 1)  # the place of the exponent's sign, and its implicit one
            exponent = leading + (field & (leading - 1))
            if field & leading:
                exponent = -exponent
        return (Fraction(1) + Fraction(fraction, 1 << row.mantissa_bits)) * _dyadic(exponent)

    @cached_property
    def _ordered(self) -> list[tuple[Fraction, int]]:
        """Positive finite values in order, with their magnitude codes."""
        codes = (c for c in range(1, 1 << self.magnitude_bits) if c != self.inf_magnitude)
        return sorted((self.magnitude_value(c), c) for c in codes)

    @cached_property
    def _places(self) -> dict[tuple[int, int], int]:
        """Magnitude code by (odd integer, exponent)."""
        return {_odd_part(v.numerator, 1 - v.denominator.bit_length()): c for v, c in self._ordered}

    @cached_property
    def _quanta(self) -> tuple[int, int, dict[int, int]]:
        """Lowest and highest binade, and the exponent of the distance of neighbours in each."""
        values = [v for v, _ in self._ordered]
        steps = [(floor_log2(a), floor_log2(b - a)) for a, b in zip(values, values[1:])]
        quanta = dict(reversed(steps))
        top = floor_log2(values[-1])
        quanta.setdefault(top, top - self.regime(self.max_code).mantissa_bits)
        return min(quanta), top, quanta

    def quantum_exponent(self, exponent: int) -> int:
        bottom, top, quanta = self._quanta
        if exponent < bottom:
            return bottom
        return quanta[min(exponent, top)] + max(exponent - top, 0)

    def place(self, steps: int, q: int) -> int | None:
        return self._places.get(_odd_part(steps, q)) if steps else 0

    @property
    def min_subnormal(self) -> Fraction:
        """Smallest positive value."""
        return self._ordered[0][0]

    @property
    def min_normal(self) -> Fraction:
        """Smallest positive value outside the subnormal row."""
        return min(v for v, c in self._ordered if not self.regime(c).subnormal)

    def fields(self, code: int) -> tuple[Field, ...]:
        self.check(code)
        magnitude = code & ((1 << self.magnitude_bits) - 1)
        row, field, fraction = self._split(magnitude)
        every = (
            Field("sign", code >> self.magnitude_bits, 1),
            Field("dot", row.prefix, row.prefix_bits),
            Field("exponent", field, row.exponent_bits),
            Field("significand", fraction, row.mantissa_bits),
        )
        return tuple(f for f in every if f.width)

    def describe(self) -> str:
        return (
            f"{self.name}: {self.bits} bits, tapered: 1 sign, a dot field of 2 to 4 bits, 0 to 4 exponent and 1 to 3 "
            f"fraction bits; largest {float(self.max):g}, smallest normal {float(self.min_normal):g}, smallest "
            f"{float(self.min_subnormal):g}; Inf, one NaN, no -0"
        )


@dataclass(frozen=True)
class ComplexFormat(Format):
    """A pair of equal float codes: the real part in the low half, the imaginary part in the high half.

    In memory the real part comes first (Ascend C ``Complex<T>``, little-endian).
    """

    part: FloatFormat = None  # type: ignore[assignment]
    kind: ClassVar[str] = "complex"
    signed: ClassVar[bool] = True  # type: ignore[misc]

    @property
    def bits(self) -> int:
        return 2 * self.part.bits

    @property
    def has_inf(self) -> bool:  # type: ignore[override]
        return self.part.has_inf

    @property
    def has_nan(self) -> bool:  # type: ignore[override]
        return self.part.has_nan

    @property
    def has_negative_zero(self) -> bool:  # type: ignore[override]
        return self.part.has_negative_zero

    @property
    def max(self) -> Fraction:
        """Largest finite value of a part."""
        return self.part.max

    @property
    def min(self) -> Fraction:
        """Lowest finite value of a part."""
        return self.part.min

    @property
    def epsilon(self) -> Fraction:
        """Distance from 1 to the next value of a part."""
        return self.part.epsilon

    @property
    def min_normal(self) -> Fraction:
        """Smallest positive normal value of a part."""
        return self.part.min_normal

    @property
    def min_subnormal(self) -> Fraction:
        """Smallest positive value of a part."""
        return self.part.min_subnormal

    def split(self, code: int) -> tuple[int, int]:
        """Return the codes of the real and the imaginary part."""
        self.check(code)
        return code & ((1 << self.part.bits) - 1), code >> self.part.bits

    def fields(self, code: int) -> tuple[Field, ...]:
        real, imag = self.split(code)
        return tuple(
            Field(f"{part}.{f.name}", f.value, f.width)
            for part, half in (("imag", imag), ("real", real))
            for f in self.part.fields(half)
        )

    def describe(self) -> str:
        return f"{self.name}: {self.bits} bits, real and imaginary part in {self.part.name}, real part first"


def p3109(bits: int, precision: int, signed: bool = True, extended: bool = True) -> FloatFormat:
    """Return a format of the IEEE P3109 family.

    Parameters
    ----------
    bits : int
        Width K of a code, 2 to 16.
    precision : int
        Significand bits P with the implicit one, from 1 to `bits` (signed: to ``bits - 1``).
    signed, extended : bool
        With a sign bit; with infinities ("extended" domain) or without ("finite").

    Examples
    --------
    >>> p3109(8, 4).max, p3109(8, 4).nan_code
    (Fraction(224, 1), 128)

    References
    ----------
    IEEE Working Group P3109, interim report, section "Binary floating-point formats for machine learning".
    """
    if not 2 <= bits <= 16:
        raise ValueError(f"bits={bits!r} must be from 2 to 16")
    if not 1 <= precision <= bits - signed:
        raise ValueError(f"precision={precision!r} must be from 1 to {bits - signed} for {bits} bits")
    exponent_bits = bits - precision + (not signed)
    return FloatFormat(
        f"p3109_k{bits}p{precision}{'s' if signed else 'u'}{'e' if extended else 'f'}",
        exponent_bits=exponent_bits,
        mantissa_bits=precision - 1,
        bias=1 << (exponent_bits - 1),
        signed=signed,
        inf=extended,
        nan="negative_zero" if signed else "ones",
    )


def _float(name: str, exponent_bits: int, mantissa_bits: int, **more: Any) -> FloatFormat:
    return FloatFormat(name, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits, **more)


_FN: dict[str, Any] = {"inf": False, "nan": "ones"}
_FNUZ: dict[str, Any] = {"inf": False, "nan": "negative_zero"}
_FINITE: dict[str, Any] = {"inf": False, "nan": "none"}

_float16 = _float("float16", 5, 10)
_float32 = _float("float32", 8, 23)

#: The catalogue: every format once, with its other names. Lookup ignores case.
_CATALOGUE: tuple[tuple[Format, str], ...] = (
    (BoolFormat("bool"), "bool_ DT_BOOL"),
    (IntFormat("int1", width=1), ""),
    (IntFormat("int2", width=2), ""),
    (IntFormat("int4", width=4), "S4 int4b_t int4x2_t int4_t DT_INT4"),
    (IntFormat("int8", width=8), "S8 int8_t DT_INT8 I8"),
    (IntFormat("int16", width=16), "S16 int16_t DT_INT16 I16 short"),
    (IntFormat("int32", width=32), "S32 int32_t DT_INT32 I32 int"),
    (IntFormat("int64", width=64), "S64 int64_t DT_INT64 I64 long"),
    (IntFormat("uint1", width=1, signed=False), ""),
    (IntFormat("uint2", width=2, signed=False), ""),
    (IntFormat("uint4", width=4, signed=False), "U4 uint4_t DT_UINT4"),
    (IntFormat("uint8", width=8, signed=False), "U8 uint8_t DT_UINT8"),
    (IntFormat("uint16", width=16, signed=False), "U16 uint16_t DT_UINT16"),
    (IntFormat("uint32", width=32, signed=False), "U32 uint32_t DT_UINT32"),
    (IntFormat("uint64", width=64, signed=False), "U64 uint64_t DT_UINT64"),
    (_float16, "half FP16 F16 DT_FP16 DT_FLOAT16"),
    (_float("bfloat16", 8, 7), "BF16 bfloat16_t DT_BF16 DT_BFLOAT16"),
    (_float("tfloat32", 8, 10), "TF32 tensorfloat32"),
    (_float32, "float FP32 F32 DT_FP32 DT_FLOAT float32_t"),
    (_float("float64", 11, 52), "double FP64 F64 DT_FP64 DT_DOUBLE float64_t"),
    (_float("float8_e3m4", 3, 4), "F8_E3M4 fp8_e3m4_t FLOAT8E3M4"),
    (_float("float8_e4m3", 4, 3), ""),
    (
        _float("float8_e4m3fn", 4, 3, **_FN),
        "fp8_e4m3fn_t fp8_e4m3fn FP8_E4M3 fp8_e4m3_t F8_E4M3 F8_E4M3FN FLOAT8E4M3FN DT_FP8E4M3 DT_FP8_E4M3FN",
    ),
    (_float("float8_e4m3fnuz", 4, 3, bias=8, **_FNUZ), "F8_E4M3FNUZ fp8_e4m3fnuz FLOAT8E4M3FNUZ"),
    (_float("float8_e4m3b11fnuz", 4, 3, bias=11, **_FNUZ), "float8_e4m3b11 F8_E4M3B11FNUZ FLOAT8E4M3B11FNUZ"),
    (
        _float("float8_e5m2", 5, 2),
        "fp8_e5m2_t fp8_e5m2 FP8_E5M2 F8_E5M2 FLOAT8E5M2 DT_FP8E5M2 DT_FP8_E5M2",
    ),
    (_float("float8_e5m2fnuz", 5, 2, bias=16, **_FNUZ), "F8_E5M2FNUZ fp8_e5m2fnuz FLOAT8E5M2FNUZ"),
    (
        _float("float8_e8m0fnu", 8, 0, signed=False, zero=False, **_FN),
        "fp8_e8m0_t fp8_e8m0 FP8_E8M0 float8_e8m0 e8m0 F8_E8M0 FLOAT8E8M0 F8_E8M0FNU",
    ),
    (_float("float6_e2m3fn", 2, 3, **_FINITE), "float6_e2m3 F6_E2M3 fp6_e2m3 FLOAT6E2M3 FLOAT6E2M3FN"),
    (_float("float6_e3m2fn", 3, 2, **_FINITE), "float6_e3m2 F6_E3M2 fp6_e3m2 FLOAT6E3M2 FLOAT6E3M2FN"),
    (
        _float("float4_e2m1fn", 2, 1, **_FINITE),
        "float4_e2m1 float4_e2m1fn_x2 fp4x2_e2m1_t fp4_e2m1 FP4_E2M1 FLOAT4E2M1 FLOAT4E2M1FN F4 F4_E2M1 "
        "DT_FP4_E2M1X2",
    ),
    (
        _float("float4_e1m2fn", 1, 2, bias=1, **_FINITE),
        "float4_e1m2 fp4x2_e1m2_t fp4_e1m2 FP4_E1M2 FLOAT4E1M2 F4_E1M2 DT_FP4_E1M2X2",
    ),
    (
        TaperedFormat(
            "hifloat8",
            regimes=(
                Regime(0b0000, 4, 0, 3, subnormal=True),
                Regime(0b0001, 4, 0, 3),
                Regime(0b001, 3, 1, 3),
                Regime(0b01, 2, 2, 3),
                Regime(0b10, 2, 3, 2),
                Regime(0b11, 2, 4, 1),
            ),
            subnormal_bias=-23,
            inf_magnitude=0x6F,
            nan_code=0x80,
            max_code=0x6E,
        ),
        "hifloat8_t HiF8 HF8 DT_HF8 DT_HIFLOAT8 DT_FP8_HIF8",
    ),
    (ComplexFormat("complex32", part=_float16), "C32 complex32_t DT_COMPLEX32 chalf"),
    (ComplexFormat("complex64", part=_float32), "C64 complex64_t DT_COMPLEX64 cfloat"),
)

_NATIVE = {
    n: n for n in "int32 int64 uint32 uint64 float32 float64 complex64 int8 int16 uint8 uint16 float16 bool".split()
}
_ALIASES: dict[str, tuple[str, ...]] = {f.name: tuple(names.split()) for f, names in _CATALOGUE}
_BY_NAME: dict[str, Format] = {}
_PREFIXES = ("torch.", "numpy.", "np.", "ml_dtypes.", "en_dtypes.", "ascendc::", "pypto.", "tensorproto.", "bittrue.")


def register(format: Format, *aliases: str) -> Format:
    """Make a format of your own known to `format` (and so to every function and command) under its name.

    Raises
    ------
    ValueError
        When the name or an alias already belongs to another format.

    Examples
    --------
    >>> mine = register(FloatFormat("e3m2_ieee", exponent_bits=3, mantissa_bits=2))
    >>> format("E3M2_IEEE") is mine
    True
    """
    names = (format.name, *aliases)
    for name in names:
        if _BY_NAME.get(name.lower(), format) != format:
            raise ValueError(f"name {name!r} already belongs to the format {_BY_NAME[name.lower()].name}")
    for name in names:
        _BY_NAME[name.lower()] = format
    if aliases:
        _ALIASES[format.name] = (*_ALIASES.get(format.name, ()), *aliases)
    return format


for _f, _ in _CATALOGUE:
    for _name in (_f.name, *_ALIASES[_f.name]):
        assert _name.lower() not in _BY_NAME or _BY_NAME[_name.lower()] is _f, _name
        _BY_NAME[_name.lower()] = _f


def _names() -> Iterator[str]:
    for f in formats():
        yield f.name
        yield from f.aliases


def format(name: object) -> Format:
    """Return the format with this name.

    Parameters
    ----------
    name : str, dtype or Format
        The canonical name or any alias of Ascend C, PyPTO, torch, ONNX, safetensors, ml_dtypes or en_dtypes, in any
        case; a NumPy, ml_dtypes, en_dtypes or torch dtype object; or a format, which is returned as it is. Strings are
        never read as NumPy type codes ("U8" is uint8, not uint64).

    Raises
    ------
    ValueError
        For an unknown name, with a suggestion.

    Examples
    --------
    >>> format("half") is format("DT_FP16") is format(np.float16)
    True
    >>> format("FP8_E4M3").name
    'float8_e4m3fn'
    """
    if isinstance(name, Format):
        return name
    key = _key(name)
    found = _BY_NAME.get(key) if key else None
    if found is None:
        shown = name if isinstance(name, str) else repr(name)
        raise ValueError(
            f"format {shown!r} is not known{suggestion(key or '', map(str.lower, _names()))} "
            "(bittrue.formats() or 'bittrue formats' lists them)"
        )
    return found


def _key(name: object) -> str | None:
    if name is None:
        return None
    if isinstance(name, str):
        text = name.strip().lower()
    elif type(name).__module__ == "torch" and type(name).__name__ == "dtype":
        text = str(name).lower()
    else:
        try:
            dtype = np.dtype(name)  # type: ignore[call-overload]
        except (TypeError, ValueError):
            return None
        if dtype.fields is not None or dtype.subdtype is not None or dtype.kind in "OSUMm":
            return None
        text = str(dtype.name).lower()
    for prefix in _PREFIXES:
        text = text.removeprefix(prefix)
    return text


def formats() -> list[Format]:
    """Return the catalogue: the built-in formats in their order, then the registered ones.

    Examples
    --------
    >>> [f.name for f in formats()][:3]
    ['bool', 'int1', 'int2']
    """
    return list(dict.fromkeys(_BY_NAME.values()))
