"""Element types of vectors and the lane counts that each architecture has for them (aie_api, 2025 and 2026; UG1603)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..formats import FloatFormat, Format, IntFormat, format
from ..records import records
from ..rounding import suggestion
from .arch import Arch, arch, archs
from .tile import current_tile

__all__ = ["Element", "element", "elements", "find", "lanes"]


@dataclass(frozen=True)
class Element:
    """A vector element type.

    Attributes
    ----------
    name : str
        As in `aie::vector<T, N>`, without ``_t``.
    part : Format
        Of the number; of the real and the imaginary part for complex types.
    is_complex : bool
    sizes : tuple of (str, tuple of int)
        For each architecture that has it, the legal numbers of lanes.
    """

    name: str
    part: IntFormat | FloatFormat
    is_complex: bool
    sizes: tuple[tuple[str, tuple[int, ...]], ...]

    def __str__(self) -> str:
        return self.name

    @property
    def parts(self) -> int:
        """Numbers per element: 2 for complex types."""
        return 2 if self.is_complex else 1

    @property
    def bits(self) -> int:
        """Width of an element."""
        return self.part.bits * self.parts

    @property
    def is_integer(self) -> bool:
        """Whether the numbers are integers."""
        return isinstance(self.part, IntFormat)

    @property
    def signed(self) -> bool:
        """Whether there are negative numbers."""
        return bool(self.part.signed)

    @property
    def dtype(self) -> np.dtype[Any]:
        """How a vector keeps its numbers: integers by value, floats by their bits."""
        if self.is_integer:
            return np.dtype(f"{'i' if self.signed else 'u'}{max(self.part.bits, 8) // 8}")
        return self.part.code_dtype


@cache
def elements() -> tuple[Element, ...]:
    """Return all element types."""
    return tuple(
        Element(
            row["element"],
            _part(row["format"]),
            row["complex"] == "yes",
            tuple((a.name, tuple(map(int, row[a.name].split()))) for a in archs() if row[a.name]),
        )
        for row in records("aie", "elements")
    )


def _part(name: str) -> IntFormat | FloatFormat:
    found = format(name)
    assert isinstance(found, (IntFormat, FloatFormat))
    return found


@cache
def _by_name() -> dict[str, Element]:
    named = {e.name: e for e in elements()}
    return named | {f"{name}_t": e for name, e in named.items()}


@cache
def _by_format() -> dict[str, Element]:
    real = {e.part.name: e for e in elements() if not e.is_complex}
    return {**real, "complex64": _by_name()["cfloat"]}


def element(dtype: object, of: str | int | Arch | None = None) -> Element:
    """Return an element type by name; bittrue's names and dtypes of the same format will do.

    Parameters
    ----------
    dtype : str, dtype, Format or Element
    of : architecture, optional
        Refuse what it does not have.

    Raises
    ------
    ValueError
        For an unknown type, or one that the architecture lacks; with the list.

    Examples
    --------
    >>> element("cint16").bits, element(np.float32).name, element("float8").part.name
    (32, 'float', 'float8_e4m3fn')
    """
    found = dtype if isinstance(dtype, Element) else find(dtype)
    if of is None:
        if found is None:
            raise ValueError(f"dtype={_shown(dtype)} is not an AI Engine element type{_list(elements(), dtype)}")
        return found
    wanted = arch(of)
    legal = [e for e in elements() if wanted.name in dict(e.sizes)]
    if wanted.number == 22 and current_tile().choices.mlv2_cbfloat16 == "refused":
        legal = [e for e in legal if e.name != "cbfloat16"]
    if found is None or found not in legal:
        raise ValueError(f"dtype={_shown(dtype)} is not a vector element type of {wanted}{_list(legal, dtype)}")
    return found


def find(dtype: object) -> Element | None:
    """Return the element type of this name or format, or None."""
    if isinstance(dtype, str) and dtype.lower() in _by_name():
        return _by_name()[dtype.lower()]
    try:
        known: Format = format(dtype)
    except (ValueError, TypeError):
        return None
    return _by_format().get(known.name)


def _shown(dtype: object) -> str:
    return repr(str(dtype) if isinstance(dtype, (Format, Element, np.dtype)) else dtype)


def _list(legal: Any, dtype: object) -> str:
    names = [e.name for e in legal]
    return f"{suggestion(dtype, names)} ({', '.join(names)})"


def lanes(dtype: object, of: str | int | Arch) -> tuple[int, ...]:
    """Return the legal numbers of lanes of a vector.

    Examples
    --------
    >>> lanes("int8", "aie-ml"), lanes("cint32", "aie")
    ((16, 32, 64, 128), (2, 4, 8, 16))
    """
    return dict(element(dtype, of).sizes)[arch(of).name]
