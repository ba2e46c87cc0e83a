"""Formats with a sign and a magnitude: IEEE-like floats, tapered floats, and complex pairs of floats."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from .base import Field, Format, Value, dyadic, floor_log2, odd_part

__all__ = ["ComplexFormat", "FloatFormat", "RealFormat", "Regime", "TaperedFormat"]


@dataclass(frozen=True)
class RealFormat(Format):
    """What float and tapered formats share: sign and magnitude codes, and the grid of representable values.

    A subclass gives the codes (`max_code`, `inf_magnitude`, ...), the grid (`quantum_exponent`, `place`) and
    `magnitude_value`.
    """

    if TYPE_CHECKING:

        @property
        def max_code(self) -> int:
            """Magnitude code of the largest finite value."""

        @property
        def inf_magnitude(self) -> int | None:
            """Magnitude code of Inf, or None."""

        @property
        def nan_code(self) -> int | None:
            """The canonical (quiet, positive) NaN code, or None."""

        @property
        def nan_signed(self) -> bool:
            """Whether the NaN code has a negative twin."""

    @property
    def magnitude_bits(self) -> int:
        """Bits of a code below the sign."""
        return self.bits - self.signed

    @property
    def has_inf(self) -> bool:
        return self.inf_magnitude is not None

    @property
    def has_nan(self) -> bool:
        return self.nan_code is not None

    def quantum_exponent(self, exponent: int) -> int:
        """Return q: neighbouring values in the binade of ``2**exponent`` are ``2**q`` apart, also beyond the range."""
        raise AttributeError(exponent)

    def place(self, steps: int, q: int) -> int | None:
        """Return the magnitude code of the grid point ``steps * 2**q``, or None beyond the largest value."""
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
        return dyadic(self.quantum_exponent(0))


@dataclass(frozen=True)
class FloatFormat(RealFormat):
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
        if self.signed and not self.zero:
            raise ValueError("zero=False needs signed=False")
        if self.max_code < self.zero:
            raise ValueError(f"{self.name}: Inf and NaN leave no finite value but zero")
        if self.bias is None:
            object.__setattr__(self, "bias", (1 << self.exponent_bits >> 1) - 1)
        if not (
            -1022 <= self.min_exponent - self.mantissa_bits + 52
            and self.min_exponent >= -1022
            and self.max < dyadic(1024)
        ):
            raise ValueError(f"bias={self.bias!r}: the values of {self.name} must lie within float64's range")

    @property
    def bits(self) -> int:
        return self.signed + self.exponent_bits + self.mantissa_bits

    @property
    def has_zero(self) -> bool:
        return self.zero

    @property
    def has_negative_zero(self) -> bool:
        return self.signed and self.zero and self.nan != "negative_zero"

    @property
    def nan_signed(self) -> bool:
        return self.signed and self.nan in ("exponent", "ones")

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal binade."""
        return int(self.zero) - self.bias

    @cached_property
    def inf_magnitude(self) -> int | None:
        if not self.inf:
            return None
        if self.nan == "exponent":
            return ((1 << self.exponent_bits) - 1) << self.mantissa_bits
        return (1 << self.magnitude_bits) - 1 - (self.nan == "ones")

    @cached_property
    def max_code(self) -> int:
        if self.inf_magnitude is not None:
            return self.inf_magnitude - 1
        return (1 << self.magnitude_bits) - 1 - (self.nan == "ones")

    @cached_property
    def nan_code(self) -> int | None:
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
        return dyadic(self.min_exponent)

    @property
    def min_subnormal(self) -> Fraction:
        """Smallest positive value (the smallest normal one where there are no subnormals)."""
        return dyadic(self.min_exponent - self.mantissa_bits) if self.zero else self.min_normal

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
        return significand * dyadic(exponent - self.bias - self.mantissa_bits)

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
class TaperedFormat(RealFormat):
    """A prefix code (the "dot" field) tells how the other bits split into exponent and fraction.

    hifloat8 is the instance (Ascend C data types, table 4).

    Raises
    ------
    ValueError
        When the regimes do not give each magnitude code one value, these do not lie on one grid in each binade, or
        `max_code` is not the code of the largest finite one.
    """

    width: int = 8
    regimes: tuple[Regime, ...] = ()
    subnormal_bias: int = 0
    inf_magnitude: int | None = None
    nan_code: int | None = None
    max_code: int = 0
    has_negative_zero: bool = False
    kind: ClassVar[str] = "tapered"
    signed: ClassVar[bool] = True
    nan_signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for row in self.regimes:
            widths = (row.prefix_bits, row.exponent_bits, row.mantissa_bits)
            if not all(0 <= n <= 15 for n in widths) or row.exponent_bits > 6 or sum(widths) != self.width - 1:
                raise ValueError(
                    f"format {self.name!r}: the fields of regime {list(row)} do not make {self.width - 1} bits"
                )
        if not 3 <= self.width <= 16 or abs(self.subnormal_bias) > 1000:
            raise ValueError(
                f"format {self.name!r}: width={self.width}, subnormal_bias={self.subnormal_bias} is out of range"
            )
        if self.nan_code not in (None, 1 << self.magnitude_bits) or (self.nan_code and self.has_negative_zero):
            raise ValueError(f"nan_code={self.nan_code!r} must be None, or the code of -0 where there is no -0")
        if self.inf_magnitude is not None and self.inf_magnitude not in range(1, 1 << self.magnitude_bits):
            raise ValueError(f"inf_magnitude={self.inf_magnitude!r} must be None or a magnitude code above 0")
        if all(row.subnormal for row in self.regimes):
            raise ValueError(f"format {self.name!r}: there must be a regime of normal values")
        if self.max_code != self._ordered[-1][1]:
            raise ValueError(f"max_code={self.max_code!r} must be {self._ordered[-1][1]:#x}, that of the largest value")
        values, quanta = [v for v, _ in self._ordered], self._quanta[2]
        if not all(b == a + dyadic(quanta.get(floor_log2(a), 0)) for a, b in zip(values, values[1:])):
            raise ValueError(f"format {self.name!r}: the values do not lie on one grid in each binade")

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
            return dyadic(fraction + self.subnormal_bias)
        exponent = 0
        if row.exponent_bits:
            leading = 1 << (row.exponent_bits - 1)  # the place of the exponent's sign, and its implicit one
            exponent = leading + (field & (leading - 1))
            if field & leading:
                exponent = -exponent
        return (Fraction(1) + Fraction(fraction, 1 << row.mantissa_bits)) * dyadic(exponent)

    @cached_property
    def _ordered(self) -> list[tuple[Fraction, int]]:
        """Positive finite values in order, with their magnitude codes."""
        codes = (c for c in range(1, 1 << self.magnitude_bits) if c != self.inf_magnitude)
        return sorted((self.magnitude_value(c), c) for c in codes)

    @cached_property
    def _places(self) -> dict[tuple[int, int], int]:
        """Magnitude code by (odd integer, exponent)."""
        return {odd_part(v.numerator, 1 - v.denominator.bit_length()): c for v, c in self._ordered}

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
        return self._places.get(odd_part(steps, q)) if steps else 0

    @property
    def min_subnormal(self) -> Fraction:
        """Smallest positive value."""
        return self._ordered[0][0]

    @cached_property
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
    signed: ClassVar[bool] = True

    @property
    def bits(self) -> int:
        return 2 * self.part.bits

    @property
    def has_inf(self) -> bool:
        return self.part.has_inf

    @property
    def has_nan(self) -> bool:
        return self.part.has_nan

    @property
    def has_negative_zero(self) -> bool:
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
