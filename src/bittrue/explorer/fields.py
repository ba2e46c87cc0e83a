"""What a request may ask: its fields, read one by one, with limits; a mistake names its field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from ..formats import Format, Value, floor_log2, format
from ..parse import parse_number
from ..rounding import suggestion

__all__ = ["FieldError", "Fields", "checked_size"]

#: Magnitudes from 2**-_FAR to 2**_FAR: all that a format here can tell apart, and far beyond.
_FAR = 5000
_SHOWN = 40  # characters of a mistake that are said back


class FieldError(ValueError):
    """A mistake in one field.

    Attributes
    ----------
    field : str
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Fields:
    """The fields of one request.

    Parameters
    ----------
    given : iterable of (name, text)
    known : sequence of str
        The fields that this request has.

    Raises
    ------
    FieldError
        For a field that it does not have, or that is given twice.
    """

    def __init__(self, given: Iterable[tuple[str, str]], known: Sequence[str]) -> None:
        self._texts: dict[str, str] = {}
        for name, text in given:
            if name not in known:
                raise FieldError(_cut(name), f"{_cut(name)!r} is not a field of this request ({', '.join(known)})")
            if name in self._texts:
                raise FieldError(name, f"{name} is given twice")
            self._texts[name] = text

    def __contains__(self, name: str) -> bool:
        return bool(self._texts.get(name, "").strip())

    def text(self, name: str, default: str = "", limit: int = 60) -> str:
        """Return a field without the blanks around it, or the default for one that is not given."""
        found = self._texts.get(name, default).strip()
        if len(found) > limit:
            raise FieldError(name, f"{name} has {len(found)} characters; it may have {limit}")
        if not found and default:
            raise FieldError(name, f"{name} is empty; an example: {default[:_SHOWN]}")
        return found

    def choice(self, name: str, allowed: Sequence[str], default: str) -> str:
        """Return a field that is one of a few words."""
        found = self.text(name, default)
        if found not in allowed:
            close = suggestion(found, allowed)
            raise FieldError(name, f"{name}={_cut(found)!r} is not known{close} ({', '.join(allowed)})")
        return found

    def flag(self, name: str) -> bool:
        """Return a field that is 1 or 0; without it, no."""
        return self.choice(name, ("0", "1"), "0") == "1"

    def integer(self, name: str, low: int, high: int, default: int) -> int:
        """Return a whole number within limits."""
        text = self.text(name, str(default), 24)
        try:
            found = int(text, 0)
        except ValueError:
            found = low - 1
        if not low <= found <= high:
            raise FieldError(name, f"{name}={_cut(text)!r} must be a whole number from {low} to {high}")
        return found

    def number(self, name: str, default: str, limit: int = 400) -> Value:
        """Return a real number."""
        text = self.text(name, default, limit)
        try:
            found = parse_number(text)
        except ValueError as error:
            raise FieldError(name, str(error)) from None
        if isinstance(found, tuple):
            raise FieldError(name, f"{_cut(text)} is complex; a real number is needed")
        return checked_size(name, found)

    def format(self, name: str, default: str) -> Format:
        """Return a format by any of its names."""
        try:
            return format(self.text(name, default))
        except ValueError as error:
            raise FieldError(name, str(error)) from None


def checked_size(name: str, value: Value) -> Value:
    """Return a number if it is of a size that formats could tell from others.

    Examples
    --------
    >>> checked_size("value", Fraction(10) ** 400) == Fraction(10) ** 400
    True
    """
    if isinstance(value, Fraction) and value and not -_FAR <= floor_log2(abs(value)) <= _FAR:
        raise FieldError(name, f"{name} must be 0 or of a magnitude from 2^-{_FAR} to 2^{_FAR}")
    return value


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
