"""Numbers that NumPy has no dtype for: strings and Python objects become exact values, and codes with one rounding."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from . import exact
from .formats import ComplexFormat, Format, IntFormat, Value, format
from .rounding import Rounding, Rule

__all__ = ["as_input", "encode_objects", "parse_number"]

Pair = tuple[Value, Value]

_REAL = r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|0x[0-9a-f.]+(?:p[+-]?[0-9]+)?|inf(?:inity)?|nan)"
_DECIMAL = re.compile(r"([+-]?)([0-9]*)\.?([0-9]*)(?:e([+-]?[0-9]+))?")
_HEX = re.compile(r"([+-]?)0x([0-9a-f]*)\.?([0-9a-f]*)(?:p([+-]?[0-9]+))?")
_RATIO = re.compile(r"([+-]?[0-9]+)\s*/\s*([0-9]+)")
_PLAIN = re.compile(_REAL)
_COMPLEX = re.compile(rf"({_REAL})?(?:(?<!^)(?=[+-])|^)({_REAL}|[+-]?)j")

#: Exponents beyond this change no result: every format ends long before. It keeps "1e999999999" from filling memory.
_FAR = 20_000
_LONGEST = 4000  # characters; Python refuses to read integers of more than 4300 digits
_SAFE = 1 << 53
_MESSAGE = "is not a number; expected a decimal ('1.5e-3'), hexadecimal ('0x1.8p3'), a fraction ('1/3'), 'inf' or 'nan'"


def parse_number(text: str | bytes) -> Value | Pair:
    """Read one number exactly.

    Parameters
    ----------
    text : str or bytes
        Decimal ("1.5e-3"), hexadecimal ("0x1.8p3"), a fraction ("1/3"), "inf", "infinity", "nan", each with an optional
        sign; complex numbers as Python writes them ("1+2j"). Case and white space around do not matter.

    Returns
    -------
    Fraction, or float
        A float for -0.0, the infinities and NaN only. For a complex number the pair of its parts.

    Raises
    ------
    ValueError
        When `text` is not a number.

    Examples
    --------
    >>> parse_number("0x1.8p3"), parse_number("1/3"), parse_number("-0"), parse_number("-inf")
    (Fraction(12, 1), Fraction(1, 3), -0.0, -inf)
    """
    text = str(text) if isinstance(text, str) else bytes(text)  # plain, for messages
    if len(text) > _LONGEST:
        raise ValueError(f"{text[:40]!r}... has {len(text)} characters; a number may have {_LONGEST}")
    try:
        plain = (text.decode("ascii") if isinstance(text, bytes) else text).strip().lower()
        value = _parse(plain)
    except UnicodeDecodeError:
        value = None
    if value is None:
        raise ValueError(f"{text!r:.70} {_MESSAGE}")
    return value


def encode_objects(x: Any, fmt: Format | str, rule: Rule | None = None, random: Any = None) -> np.ndarray[Any, Any]:
    """Round strings and Python numbers into a format, each once from its exact value.

    Parameters
    ----------
    x : array_like
        Elements may be str, bytes, int of any size, float, Fraction, Decimal, bool, and NumPy, ml_dtypes or en_dtypes
        scalars; complex numbers too for complex formats.
    fmt : Format or name
    rule : Rule, optional
    random : array_like of uint32, optional
        Random bits of stochastic rounding, one word per element; default: the function of seed and element index that
        `encode` uses everywhere.

    Returns
    -------
    ndarray of ``fmt.storage``, of the shape of `x`

    Raises
    ------
    ValueError
        For a string that is not a number; for a NaN under ``nan="raise"``.
    TypeError
        For an element that is not a number (None, a list, ...), or a complex one for a real format.
    OverflowError
        Under ``overflow="raise"``.

    Examples
    --------
    >>> encode_objects(["1.5", "nan", 2**70], "bfloat16")
    array([16320, 32704, 25216], dtype=uint16)
    """
    f, rule = format(fmt), rule or Rule()
    array = np.asarray(x, dtype=None if isinstance(x, np.ndarray) else object)
    part = f.part if isinstance(f, ComplexFormat) else f
    per = 2 if isinstance(f, ComplexFormat) else 1  # each part has random bits of its own
    words = _random_words(array.size * per, rule, random)
    codes = np.empty(array.size * per, dtype=part.code_dtype)
    seen: dict[str | bytes, int] = {}
    for i, (value, source) in enumerate(_values(array, f)):
        key = value if isinstance(value, (str, bytes)) and words is None else None
        if key is not None and key in seen:
            codes[i] = seen[key]
            continue
        codes[i] = _encode_one(value, part, rule, 0 if words is None else int(words[i]), source, array, i // per)
        if key is not None:
            seen[key] = int(codes[i])
    return codes.view(f.code_dtype).view(f.storage).reshape(array.shape)


def as_input(x: Any) -> np.ndarray[Any, Any]:
    """Return `x` as an array, without the losses of `numpy.asarray` on mixed lists.

    NumPy turns ``[2**60 + 1, 0.5]`` into float64 and ``["1", 0.1]`` into strings; here they become object arrays, whose
    elements are exact. Extended floats and NumPy's variable-width strings become object arrays too.

    Raises
    ------
    ValueError
        For ragged nested sequences.

    Examples
    --------
    >>> as_input([2**60 + 1, 0.5]).tolist()
    [1152921504606846977, 0.5]
    >>> as_input([1, 0.5]).dtype
    dtype('float64')
    """
    try:
        array = np.asarray(x)
    except ValueError as error:
        if isinstance(x, (list, tuple)):
            raise ValueError("x is a nested sequence of uneven lengths; it must form a rectangle") from error
        raise
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "T" or (kind == "f" and size > 8) or (kind == "c" and size > 16):
        return array.astype(object)
    if isinstance(x, (list, tuple)) and kind in "fcUS":
        objects = np.array(x, dtype=object)
        if objects.shape == array.shape and not all(map(_same_in_array if kind in "fc" else _is_text, objects.flat)):
            return objects
    return array


def _same_in_array(element: Any) -> bool:
    return not isinstance(element, (int, np.integer)) or -_SAFE <= int(element) <= _SAFE


def _is_text(element: Any) -> bool:
    return isinstance(element, (str, bytes))


def _random_words(count: int, rule: Rule, random: Any) -> np.ndarray[Any, Any] | None:
    if rule.rounding is not Rounding.stochastic:
        return None
    if random is not None:
        words = np.asarray(random).reshape(-1)
        if words.size != count:
            raise ValueError(f"random has {words.size} words; {count} are needed, one for each number")
        return words
    from .kernels.stochastic import random_bits

    words = np.empty(count, np.uint32)
    random_bits(np.uint64(rule.seed), 0, words)
    return words


def _values(array: np.ndarray[Any, Any], f: Format) -> Iterator[tuple[Any, Format | None]]:
    """Yield each number to encode (strings for real formats unread), and the format it comes from, if any."""
    for index, element in enumerate(array.flat):
        if not isinstance(f, ComplexFormat):
            yield (element, None) if isinstance(element, (str, bytes)) else _located(element, array, index)
            continue
        value, source = _located(element, array, index)
        if isinstance(value, tuple):
            yield value[0], source
            yield value[1], source
        else:
            yield value, source
            yield Fraction(0), source


def _located(element: Any, array: np.ndarray[Any, Any], index: int) -> tuple[Value | int | Pair, Format | None]:
    """Read an element; name its place in the error."""
    try:
        return exact_value(element)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{_place(array, index)}: {error}") from None


def _encode_one(
    value: Any, f: Format, rule: Rule, random: int, source: Format | None, array: np.ndarray[Any, Any], index: int
) -> int:
    if isinstance(value, (str, bytes)):
        value, source = _located(value, array, index)
    if isinstance(value, tuple):
        raise TypeError(f"{_place(array, index)} is complex, which {f.name} cannot hold; take a complex format")
    if source is None or isinstance(source, IntFormat):
        rule = replace(rule, flush_inputs=False)  # has no subnormals
    return exact.encode(value, f, rule, random, source)


def _place(array: np.ndarray[Any, Any], index: int) -> str:
    return "x" + (f"[{', '.join(map(str, np.unravel_index(index, array.shape)))}]" if array.ndim else "")


def exact_value(element: Any) -> tuple[Value | int | Pair, Format | None]:
    """Return the exact value of a string or a number object, and the format it comes from (None: from none).

    Raises
    ------
    TypeError
        When `element` is not a number.
    ValueError
        When it is a string that is not a number.
    """
    if isinstance(element, (str, bytes)):
        return parse_number(element), None
    if isinstance(element, np.generic) and not isinstance(element, (float, complex)):
        return _from_scalar(element)
    if isinstance(element, int):
        return int(element), None
    if isinstance(element, float):
        return float(element), format("float64")
    if isinstance(element, numbers.Rational):
        return Fraction(int(element.numerator), int(element.denominator)), None
    if isinstance(element, Decimal):
        return _from_decimal(element), None
    if isinstance(element, complex):
        return (element.real, element.imag), format("float64")
    if hasattr(element, "__array__"):
        array = np.asarray(element)
        if array.ndim == 0 and array.dtype.kind != "O":
            return _from_scalar(array[()])
    raise TypeError(f"{element!r:.60} is a {type(element).__name__}, not a number or a string of one")


def _from_scalar(element: Any) -> tuple[Value | int | Pair, Format | None]:
    kind = element.dtype.kind
    if kind in "US":
        return parse_number(element.item()), None
    if kind in "biu":
        return int(element), None
    if kind == "c":
        (real, source), (imag, _) = _from_scalar(element.real), _from_scalar(element.imag)
        return (real, imag), source  # type: ignore[return-value]
    if kind == "f":
        if element.dtype.itemsize <= 8:
            return float(element), format(element.dtype)
        special = not np.isfinite(element) or element == 0
        return float(element) if special else Fraction(*element.as_integer_ratio()), None
    try:
        source = format(element.dtype)
    except ValueError:
        raise TypeError(f"{element!r:.60} is a {element.dtype}, not a number or a string of one") from None
    return (int(element) if isinstance(source, IntFormat) else float(element)), source


def _from_decimal(number: Decimal) -> Value:
    sign, digits, exponent = number.as_tuple()
    if exponent in ("n", "N"):
        return math.copysign(math.nan, -sign or 1)
    if exponent == "F":
        return -math.inf if sign else math.inf
    assert isinstance(exponent, int)
    return _scaled(bool(sign), int(Decimal((0, digits, 0))), 10, exponent, len(digits))


def _parse(text: str) -> Value | Pair | None:
    if text.endswith(("j", "j)")):
        return _parse_complex(text)
    ratio = _RATIO.fullmatch(text)
    if ratio:
        if int(ratio[2]) == 0:
            return None
        value = Fraction(int(ratio[1]), int(ratio[2]))
        return -0.0 if value == 0 and text.startswith("-") else value
    return _parse_real(text) if _PLAIN.fullmatch(text) else None


def _parse_real(text: str) -> Value | None:
    """Read what `_PLAIN` matches."""
    if text.endswith(("inf", "infinity", "nan")):
        return math.copysign(math.nan if text.endswith("nan") else math.inf, -1.0 if text[0] == "-" else 1.0)
    match = _HEX.fullmatch(text)
    base, step = (2, 4) if match else (10, 1)
    match = match or _DECIMAL.fullmatch(text)
    if match is None or not match[2] + match[3]:
        return None
    sign, digits = match[1], match[2] + match[3]
    exponent = int(match[4] or 0) - step * len(match[3])
    return _scaled(sign == "-", int(digits, 16 if base == 2 else 10), base, exponent, step * len(digits))


def _scaled(negative: bool, significand: int, base: int, exponent: int, digits: int) -> Value:
    """Return significand * base**exponent; beyond every format, another number that rounds in the same way."""
    if significand == 0:
        return -0.0 if negative else Fraction(0)
    reach = _FAR + digits
    power = base ** min(abs(exponent), reach)
    value = Fraction(significand * power) if exponent >= 0 else Fraction(significand, power)
    return -value if negative else value


def _parse_complex(text: str) -> Pair | None:
    match = _COMPLEX.fullmatch(text[1:-1] if text.startswith("(") and text.endswith(")") else text)
    if match is None:
        return None
    imag = match[2] if match[2] not in ("", "+", "-") else match[2] + "1"
    parts = (_parse_real(match[1]) if match[1] else Fraction(0)), _parse_real(imag)
    return None if parts[0] is None or parts[1] is None else (parts[0], parts[1])
