"""The executable specification: codes to exact values and back, one number at a time, slow and final.

Everything fast is tested against this module, and the lookup tables are compiled from it. Values are `Fraction`s, or
floats where a Fraction cannot say it: -0.0, the infinities, and NaN of either sign.
"""

from __future__ import annotations

import math
from fractions import Fraction

from .formats import (
    BoolFormat,
    ComplexFormat,
    FloatFormat,
    Format,
    IntFormat,
    TaperedFormat,
    Value,
    floor_log2,
    format,
)
from .rounding import NanPolicy, Negative, Overflow, Rounding, Rule

__all__ = ["decode", "encode"]

_DEFAULT = Rule()
Complex = complex | tuple[Value, Value]


def decode(code: int, fmt: Format | str) -> Value | tuple[Value, Value]:
    """Return the exact value of a code (for a complex format the pair of parts).

    Examples
    --------
    >>> decode(0x2E, "hifloat8"), decode(0xFF, "int8"), decode(0x80, "float8_e4m3fn")
    (Fraction(14, 1), Fraction(-1, 1), -0.0)
    """
    f = format(fmt)
    if isinstance(f, ComplexFormat):
        real, imag = f.split(code)
        return f.part.value(real), f.part.value(imag)
    return f.value(code)


def encode(
    value: Value | int | Complex,
    fmt: Format | str,
    rule: Rule = _DEFAULT,
    random: int = 0,
    source: Format | str | None = None,
) -> int:
    """Round one exact value into a format and return its code.

    Parameters
    ----------
    value : Fraction, int or float (complex or a pair of them for complex formats)
        A float stands for its own exact value.
    fmt : Format or name
    rule : Rule
    random : int
        The 32 random bits of stochastic rounding: the value goes up when (dropped fraction) + random / 2**32 >= 1.
    source : Format or name, optional
        The format the value comes from. Only `Rule.flush_inputs` and hybrid rounding look at it; default float32.

    Raises
    ------
    OverflowError
        Under ``overflow="raise"``, for a value that rounds beyond the range or an infinity.
    ValueError
        Under ``nan="raise"``, for a NaN; for a rule that does not apply to the format.

    Examples
    --------
    >>> hex(encode(Fraction(14), "hifloat8")), hex(encode(300, "int8", Rule(overflow="wrap")))
    ('0x2e', '0x2c')
    """
    f = format(fmt)
    if isinstance(f, ComplexFormat):
        parts = value if isinstance(value, tuple) else (value.real, value.imag)
        real, imag = (encode(part, f.part, rule, random, source) for part in parts)
        return real | imag << f.part.bits
    if isinstance(value, (complex, tuple)):
        raise TypeError(f"a complex value cannot become {f.name}")
    if not isinstance(value, (float, int, Fraction)):
        raise TypeError(f"value={value!r} must be a Fraction, an int or a float, not {type(value).__name__}")
    check_rule(rule, f)
    src = format(source or "float32")
    if isinstance(f, BoolFormat):
        return int(value != 0)  # NaN and infinities are not zero
    negative = math.copysign(1.0, value) < 0 if isinstance(value, float) else value < 0
    if isinstance(value, float) and math.isnan(value):
        return _nan(f, rule, negative)
    infinite = isinstance(value, float) and math.isinf(value)
    magnitude = Fraction(0) if infinite else abs(Fraction(value))
    if rule.flush_inputs and isinstance(src, (FloatFormat, TaperedFormat)) and magnitude < src.min_normal:
        magnitude = Fraction(0)
    if isinstance(f, IntFormat):
        if infinite:
            return _int_limit(f, rule, negative, value)
        return _encode_int(f, rule, magnitude, negative, random)
    assert isinstance(f, (FloatFormat, TaperedFormat))
    if negative and not f.signed and rule.negative is Negative.magnitude:
        negative = False
    if infinite:
        return _infinity(f, rule, negative, value)
    if rule.rounding is Rounding.hybrid:
        return _hybrid(f, rule, magnitude, negative, src)
    return _encode_float(f, rule, magnitude, negative, random)


def check_rule(rule: Rule, f: Format) -> None:
    """Raise `ValueError` where a rule has no meaning for a format."""
    if rule.rounding is Rounding.hybrid and not isinstance(f, TaperedFormat):
        raise ValueError(f"rounding='hybrid' is defined for hifloat8 only, not for {f.name}")
    if rule.overflow is Overflow.wrap and not isinstance(f, (IntFormat, BoolFormat)):
        raise ValueError(f"overflow='wrap' is defined for integer formats only, not for {f.name}")
    if rule.nan_code is not None and not (
        isinstance(f, (FloatFormat, TaperedFormat)) and 0 <= rule.nan_code < 1 << f.bits and f.is_nan(rule.nan_code)
    ):
        raise ValueError(f"nan_code={rule.nan_code:#x} is not a NaN of {f.name}")


def round_up(rounding: Rounding, odd: bool, negative: bool, rest: int, whole: int, random: int = 0) -> bool:
    """Say whether a magnitude moves to its upper neighbour.

    Parameters
    ----------
    odd : bool
        Whether the lower neighbour is odd.
    negative : bool
    rest, whole : int
        The value lies rest/whole of the way to its upper neighbour, 0 <= rest < whole.
    random : int
        32 random bits for stochastic rounding.
    """
    if rest == 0:
        return False
    if rounding is Rounding.floor:
        return negative
    if rounding is Rounding.ceil:
        return not negative
    if rounding is Rounding.trunc:
        return False
    if rounding is Rounding.away:
        return True
    if rounding is Rounding.odd:
        return not odd
    if rounding is Rounding.stochastic:
        return (rest << 32) + random * whole >= whole << 32
    if 2 * rest != whole:
        return 2 * rest > whole
    if rounding is Rounding.nearest_even:
        return odd
    if rounding is Rounding.nearest_odd:
        return not odd
    if rounding is Rounding.nearest_away:
        return True
    if rounding is Rounding.nearest_zero:
        return False
    if rounding is Rounding.nearest_up:
        return not negative
    if rounding is Rounding.nearest_down:
        return negative
    raise ValueError(f"rounding={rounding.value!r} is no rule for a single neighbour")


# --- integers ---------------------------------------------------------------------------------------------------------


def _encode_int(f: IntFormat, rule: Rule, magnitude: Fraction, negative: bool, random: int) -> int:
    steps, rest = divmod(magnitude.numerator, magnitude.denominator)
    steps += round_up(rule.rounding, bool(steps & 1), negative, rest, magnitude.denominator, random)
    number = -steps if negative else steps
    if rule.overflow is Overflow.wrap or f.min <= number <= f.max:
        return f.pack(number)
    return _int_limit(f, rule, negative, number)


def _int_limit(f: IntFormat, rule: Rule, negative: bool, value: Value) -> int:
    """Integers have no Inf: every rule but `raise` (and `wrap` for finite values) stops at the limit."""
    if rule.overflow is Overflow.raise_:
        raise _beyond(f, value)
    return f.pack(int(f.min if negative else f.max))


# --- floats -----------------------------------------------------------------------------------------------------------


def _encode_float(
    f: FloatFormat | TaperedFormat, rule: Rule, magnitude: Fraction, negative: bool, random: int
) -> int:
    if not f.has_zero and magnitude < f.min_normal:
        return _below(f, rule, magnitude, negative)
    if magnitude == 0:
        return f.with_sign(0, negative)
    q = f.quantum_exponent(floor_log2(magnitude))
    n, whole = magnitude.numerator << max(-q, 0), magnitude.denominator << max(q, 0)
    steps, rest = divmod(n, whole)  # the value is (steps + rest/whole) * 2**q
    code = f.place(steps, q)
    odd = bool((steps if code is None else code) & 1)
    up = round_up(rule.rounding, odd, negative, rest, whole, random)
    return _finish(f, rule, steps + up, q, negative, magnitude)


def _finish(
    f: FloatFormat | TaperedFormat, rule: Rule, steps: int, q: int, negative: bool, given: Fraction
) -> int:
    """Test the range of the grid point steps * 2**q that `given` was rounded to, flush it, put on the sign."""
    code = f.place(steps, q)
    if code is None:
        return _overflow(f, rule, negative, given)
    if code and rule.flush_outputs and f.magnitude_value(code) < f.min_normal:
        code = 0
    if negative and not f.signed and (code or not f.has_zero):
        return _overflow(f, rule, negative, given)
    return f.with_sign(code, negative)


def _below(f: FloatFormat | TaperedFormat, rule: Rule, magnitude: Fraction, negative: bool) -> int:
    """A format without zero: what lies between 0 and its smallest value becomes that; zero and negatives may not."""
    if magnitude == 0:
        if rule.overflow in (Overflow.infinity, Overflow.ieee) and f.nan_code is not None:
            return int(f.nan_code)
        if rule.overflow is Overflow.raise_:
            raise OverflowError(f"0 is not a value of {f.name} (overflow='raise')")
        return 0
    return _overflow(f, rule, negative, magnitude) if negative else 0


def _overflow(f: FloatFormat | TaperedFormat, rule: Rule, negative: bool, value: Fraction) -> int:
    overflow = rule.overflow
    if overflow is Overflow.raise_:
        raise _beyond(f, -value if negative else value)
    if overflow is Overflow.ieee and not _reaches_infinity(rule.rounding, negative):
        overflow = Overflow.saturate
    if overflow in (Overflow.saturate, Overflow.saturate_finite):
        return _largest(f, negative)
    return _inf_code(f, negative)


def _reaches_infinity(rounding: Rounding, negative: bool) -> bool:
    """IEEE 754 7.4: directed roundings that point away from an infinity stop at the largest finite value."""
    if rounding in (Rounding.trunc, Rounding.odd):
        return False
    return not (rounding is Rounding.floor and not negative) and not (rounding is Rounding.ceil and negative)


def _infinity(f: FloatFormat | TaperedFormat, rule: Rule, negative: bool, value: Value) -> int:
    if rule.overflow is Overflow.raise_ and not f.has_inf:
        raise _beyond(f, value)
    return _largest(f, negative) if rule.overflow is Overflow.saturate else _inf_code(f, negative)


def _largest(f: FloatFormat | TaperedFormat, negative: bool) -> int:
    """The finite value nearest to an infinity."""
    return 0 if negative and not f.signed else f.with_sign(f.max_code, negative)


def _inf_code(f: FloatFormat | TaperedFormat, negative: bool) -> int:
    """Inf, else NaN, else the largest value."""
    if f.inf_magnitude is not None and (f.signed or not negative):
        return f.with_sign(f.inf_magnitude, negative)
    if f.nan_code is not None:
        return f.nan_code | (negative and f.nan_signed) << f.magnitude_bits
    return _largest(f, negative)


def _nan(f: Format, rule: Rule, negative: bool) -> int:
    if rule.nan is NanPolicy.raise_:
        raise ValueError(f"NaN is not allowed in the conversion to {f.name} (nan='raise')")
    if isinstance(f, IntFormat):
        return f.pack(int(f.max)) if rule.nan is NanPolicy.max else 0
    assert isinstance(f, (FloatFormat, TaperedFormat))
    if rule.nan is NanPolicy.max:
        return int(f.max_code)
    if rule.nan is NanPolicy.zero or f.nan_code is None:
        return 0
    code = f.nan_code if rule.nan_code is None else rule.nan_code
    return int(code | (negative and f.nan_signed and rule.nan_sign == "keep") << f.magnitude_bits)


def _beyond(f: Format, value: Value) -> OverflowError:
    try:
        shown = f"{float(value):g}"
    except OverflowError:
        shown = f"of about 2**{floor_log2(abs(Fraction(value)))}"
    return OverflowError(f"value {shown} is beyond the range of {f.name} (overflow='raise')")


# --- hifloat8 hybrid --------------------------------------------------------------------------------------------------


def _hybrid(
    f: FloatFormat | TaperedFormat, rule: Rule, magnitude: Fraction, negative: bool, source: Format
) -> int:
    """Ascend C Reg Cast, CAST_HYBRID: for |E| >= 4 the dropped bits are compared with the input's own low bits.

    float32: F = the 14 bits from the first dropped one, threshold T = the 14 lowest fraction bits.
    half:    F = the 2 bits from the first dropped one, T = {lowest fraction bit, 1}.
    The comparison is F >= T, so that exact values with F = T = 0 move up too (a documented surprise).
    """
    if source.name == "bfloat16":
        source = format("float32")  # bfloat16 reaches hifloat8 through float32
    if source.name not in ("float32", "float16"):
        raise ValueError(
            f"rounding='hybrid' takes its threshold from float32 or float16 inputs (bfloat16 counts as float32), "
            f"not from {source.name}"
        )
    assert isinstance(source, FloatFormat)
    bits, window = source.mantissa_bits, 14 if source.name == "float32" else 2
    exponent = floor_log2(magnitude) if magnitude else -1000
    if exponent < -23:
        return f.with_sign(0, negative)
    if exponent > 15:
        return _overflow(f, rule, negative, magnitude)
    significand = magnitude / Fraction(2) ** (exponent - bits)
    if significand.denominator != 1:
        raise ValueError(f"value {float(magnitude):g} is not a {source.name}")
    fraction = int(significand) - (1 << bits)
    threshold = fraction & 0x3FFF if window == 14 else (fraction & 1) << 1 | 1
    if exponent == -23:  # half the smallest value: the implicit one is the first dropped bit
        up = (1 << (window - 1) | fraction >> (bits - window + 1)) >= threshold
        return _finish(f, rule, int(up), -22, negative, magnitude)
    size = abs(exponent)
    kept = 3 if size <= 3 else 2 if size <= 7 else 1 if size <= 15 else 0
    dropped = fraction & ((1 << (bits - kept)) - 1)
    half_away = bool(dropped >> (bits - kept - 1))
    up = half_away if size <= 3 else dropped >> (bits - kept - window) >= threshold
    return _finish(f, rule, (1 << kept | fraction >> (bits - kept)) + up, exponent - kept, negative, magnitude)
