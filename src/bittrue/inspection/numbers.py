"""Exact numbers as text: decimal, hexadecimal, powers of two; no rounding happens unseen."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

from ..formats import Value, floor_log2

__all__ = ["as_json", "decimal", "exact", "hex_float", "power", "product", "short", "special"]

_LONG = 12_000  # bits; beyond, Python refuses to write the digits, and nobody would read them


def _too_long(value: Fraction) -> bool:
    return max(value.numerator.bit_length(), value.denominator.bit_length()) > _LONG


def special(value: Value) -> str | None:
    """Return the name of a value that is no Fraction ("-0", "inf", "nan" ...), else None."""
    if not isinstance(value, float):
        return None
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isnan(value):
        return f"{sign}nan"
    return f"{sign}inf" if math.isinf(value) else f"{sign}0"


def _dyadic(value: Fraction) -> tuple[int, int] | None:
    """Return (odd, k) with value = odd * 2**k, or None."""
    if value.denominator & (value.denominator - 1) or value == 0:
        return None
    k = -(value.denominator.bit_length() - 1)
    zeros = (value.numerator & -value.numerator).bit_length() - 1
    return value.numerator >> zeros, k + zeros


def exact(value: Value) -> str:
    """Return the value in full: a decimal where it ends, else a fraction (rounded only where far beyond float64).

    Examples
    --------
    >>> exact(Fraction(1, 64)), exact(Fraction(1, 3)), exact(Fraction(1 << 20))
    ('0.015625', '1/3', '1048576')
    """
    named = special(value)
    if named is not None:
        return named
    assert isinstance(value, Fraction)
    if _too_long(value):
        return decimal(value)
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    places = max(twos, fives)
    digits = str(abs(value.numerator) * 2 ** (places - twos) * 5 ** (places - fives)).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"{'-' if value < 0 else ''}{text}"


def decimal(value: Value, digits: int = 17) -> str:
    """Return the value in decimal, rounded to so many significant digits."""
    named = special(value)
    if named is not None:
        return named
    assert isinstance(value, Fraction)
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emax=999999, Emin=-999999)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    if -4 <= quotient.adjusted() < max(digits, 6):
        return f"{quotient:f}"
    mantissa, _, exponent = f"{quotient:e}".partition("e")
    return f"{mantissa}e{int(exponent):+03d}"


def short(value: Value, width: int = 9, digits: int = 6) -> str:
    """Return the value in full where that takes at most `width` characters, else rounded.

    Examples
    --------
    >>> short(Fraction(1, 64)), short(Fraction(1, 1 << 20)), short(Fraction(1, 3)), short(-0.0)
    ('0.015625', '9.53674e-07', '0.333333', '-0')
    """
    full = exact(value)
    return full if len(full) <= width and "/" not in full else decimal(value, digits)


def hex_float(value: Value) -> str | None:
    """Return the value as C's ``%a`` does, with as many digits as it has; None where base 2 never ends.

    Examples
    --------
    >>> hex_float(Fraction(448)), hex_float(Fraction(-1, 3))
    ('0x1.cp+8', None)
    """
    named = special(value)
    if named is not None:
        return f"{named[:-1]}0x0p+0" if named.endswith("0") else named
    assert isinstance(value, Fraction)
    if value == 0:
        return "0x0p+0"
    parts = _dyadic(value)
    if parts is None:
        return None
    odd = abs(parts[0])
    exponent = floor_log2(abs(value))
    below = odd.bit_length() - 1
    digits = -(-below // 4)
    fraction = (odd - (1 << below)) << (4 * digits - below)
    return f"{'-' if value < 0 else ''}0x1{f'.{fraction:0{digits}x}' if digits else ''}p{exponent:+d}"


def power(value: Value) -> str:
    """Return the value in powers of two, the form in which the documents state ranges.

    Examples
    --------
    >>> power(Fraction(448)), power(Fraction(1, 512)), power(Fraction(127)), power(Fraction(-11, 4))
    ('2^9 - 2^6', '2^-9', '2^7 - 1', '-11 * 2^-2')
    """
    named = special(value)
    if named is not None:
        return named
    assert isinstance(value, Fraction)
    parts = _dyadic(value)
    if parts is None:
        return exact(value)
    odd, k = parts
    sign, odd = "-" if odd < 0 else "", abs(odd)
    if odd == 1:
        return f"{sign}2^{k}" if k else f"{sign}1"
    if odd & (odd + 1) == 0 and odd > 3:
        low = f"2^{k}" if k else "1"
        return f"{sign}2^{odd.bit_length() + k} {'+' if sign else '-'} {low}"
    return f"{sign}{odd} * 2^{k}" if k else f"{sign}{odd}"


def product(value: Fraction) -> str:
    """Return a dyadic value as an odd number times a power of two, without blanks.

    Examples
    --------
    >>> product(Fraction(7, 512)), product(Fraction(1, 4))
    ('7*2^-9', '2^-2')
    """
    parts = _dyadic(value)
    if parts is None:
        return exact(value)
    sign = "-" if parts[0] < 0 else ""
    return f"{sign}2^{parts[1]}" if abs(parts[0]) == 1 else f"{parts[0]}*2^{parts[1]}"


def as_json(value: Value) -> dict[str, Any]:
    """Return the value for a JSON document, unrounded (but for numbers far beyond float64: only a decimal)."""
    named = special(value)
    if named is not None:
        return {"decimal": named, "hex": hex_float(value), "fraction": named}
    assert isinstance(value, Fraction)
    if _too_long(value):
        return {"decimal": decimal(value), "hex": None, "fraction": None}
    whole = value.denominator == 1
    return {
        "decimal": exact(value),
        "hex": hex_float(value),
        "fraction": str(value.numerator) if whole else f"{value.numerator}/{value.denominator}",
    }
