"""Ascend C's data types: names, width classes, packing, immediates, which product has which; complex numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ..formats import Format, format
from ..records import records
from ..rounding import suggestion
from .choices import Choices
from .products import DEFAULT_PRODUCT, Product, product, products

__all__ = ["Type", "immediate", "require", "supported_types", "type_info", "types"]

_DEFAULT = Choices()


@dataclass(frozen=True)
class Type:
    """One data type of Ascend C ("Built-in data types", tables 1 to 4).

    Attributes
    ----------
    name : str
        As Ascend C writes it.
    format : Format
        Its values and codes.
    width : str
        Class b8, b16, b32 or b64: the bits of its storage unit.
    per_byte : int
        Values in one byte: 2 for the packed four-bit types, else 1.
    short, pypto : str
        Short name (FP16) and PyPTO name (DT_FP16), or "".
    aliases : tuple of str
        Other Ascend C names.
    immediate : bool
        Whether it can be set from an immediate.
    nan_code : int or None
        The code that casts write for NaN (complex: in each part).
    control : tuple of str
        The CTRL bits that decide about overflow and NaN in casts to it; "always" saturating or "never".
    """

    name: str
    format: Format
    width: str
    per_byte: int
    short: str
    pypto: str
    aliases: tuple[str, ...]
    immediate: bool
    nan_code: int | None
    control: tuple[str, ...]

    def __str__(self) -> str:
        return self.name

    @property
    def is_int(self) -> bool:
        """Whether it is an integer type."""
        return self.format.kind == "int"

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex type."""
        return self.format.kind == "complex"


@cache
def types() -> tuple[Type, ...]:
    """Return Ascend C's types in the order of its table of widths.

    Examples
    --------
    >>> [t.name for t in types() if t.width == "b16"]
    ['int16_t', 'uint16_t', 'half', 'bfloat16_t']
    """
    return tuple(
        Type(
            name=row["name"],
            format=format(row["format"]),
            width=row["width"],
            per_byte=int(row["per_byte"]),
            short=row["short"],
            pypto=row["pypto"],
            aliases=tuple(row["aliases"].split()),
            immediate=row["immediate"] == "yes",
            nan_code=int(row["nan_code"], 16) if row["nan_code"] else None,
            control=tuple(row["control"].split()),
        )
        for row in records("ascend", "types")
    )


@cache
def _by_format() -> dict[str, Type]:
    return {t.format.name: t for t in types()}


@lru_cache(maxsize=512)
def type_info(name: str | Format | Type | Any) -> Type:
    """Return the Ascend C type with this name, short name, PyPTO name, or of this format or dtype.

    Raises
    ------
    ValueError
        For an unknown name, with a suggestion; for a format that is no Ascend C type.

    Examples
    --------
    >>> type_info("FP16").name, type_info("DT_HF8").name, type_info(np.float32).short
    ('half', 'hifloat8_t', 'FP32')
    """
    if isinstance(name, Type):
        return name
    names = ", ".join(t.name for t in types())
    try:
        fmt = format(name)
    except ValueError:
        every = (n.lower() for t in types() for n in (t.name, t.short, t.pypto, *t.aliases) if n)
        shown = name if isinstance(name, str) else repr(name)
        raise ValueError(f"type {shown!r} is not an Ascend C type{suggestion(name, every)} ({names})") from None
    found = _by_format().get(fmt.name)
    if found is None:
        raise ValueError(f"type {fmt.name!r} is a format, but not an Ascend C type ({names})")
    return found


@lru_cache(maxsize=64)
def supported_types(of: str | int | Product = DEFAULT_PRODUCT, choices: Choices = _DEFAULT) -> tuple[str, ...]:
    """Return the names of the types that a product supports ("Built-in data types", support table).

    Parameters
    ----------
    of : product name
    choices : Choices
        `type_matrix` adds what other documents list.

    Examples
    --------
    >>> "bfloat16_t" in supported_types("Atlas A2"), "hifloat8_t" in supported_types("Atlas A2")
    (True, False)
    """
    p = product(of)
    extra: tuple[str, ...] = ()
    if choices.type_matrix == "devkit_2026":
        extra = p.devkit_types
    elif choices.type_matrix == "cast_table":
        rows = (r for r in records("ascend", "rules") if r["product"] == p.name and r["api"] in ("memory", "reg"))
        extra = tuple(t for r in rows for t in (r["source"], r["destination"]))
    return tuple(dict.fromkeys((*p.types, *extra)))


def require(of: str | int | Product, name: Any, choices: Choices = _DEFAULT) -> Type:
    """Return the type; raise `ValueError` if the product lacks it, naming the products that have it.

    Examples
    --------
    >>> require("a2", "hifloat8_t")
    Traceback (most recent call last):
    ValueError: type hifloat8_t is not supported by Atlas A2; it is by: Ascend 950PR/950DT
    """
    found = type_info(name)
    p = product(of)
    if found.name not in supported_types(p, choices):
        having = [q.name for q in products() if found.name in supported_types(q, choices)]
        more = ""
        for matrix in ("devkit_2026", "cast_table"):
            if found.name in supported_types(p, Choices(type_matrix=matrix)):
                more = f" (another document lists it: choices=Choices(type_matrix={matrix!r}))"
                break
        raise ValueError(f"type {found} is not supported by {p}; it is by: {', '.join(having)}{more}")
    return found


def immediate(value: bool | int | float, name: Any, of: str | int | Product = DEFAULT_PRODUCT) -> Any:
    """Return an immediate value as Ascend C's assignment makes it: a NumPy scalar of the type.

    Only bool, the integers of 8 to 64 bits, half and float take immediates ("Built-in data types"). A value for half or
    float is rounded to nearest even.

    Raises
    ------
    ValueError
        For a type that takes no immediate, a value beyond its range, or a fraction for an integer.

    Examples
    --------
    >>> immediate(1, "int8_t"), immediate(0.1, "half")
    (np.int8(1), np.float16(0.1))
    >>> immediate(1, "bfloat16_t")
    Traceback (most recent call last):
    ValueError: type bfloat16_t takes no immediate value; types that do: bool, int8_t, uint8_t, int16_t, uint16_t, \
half, int32_t, uint32_t, float, int64_t, uint64_t
    """
    found = require(of, name)
    if not found.immediate:
        takers = ", ".join(t.name for t in types() if t.immediate)
        raise ValueError(f"type {found} takes no immediate value; types that do: {takers}")
    if not isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        raise TypeError(f"value={value!r} must be a number, not {value.__class__.__name__}")
    dtype = np.dtype(found.format.name)
    if found.format.kind == "bool":
        return np.bool_(value)
    if found.is_int:
        info = np.iinfo(dtype)
        if not isinstance(value, (int, np.integer)) and not (math.isfinite(value) and value == int(value)):
            raise ValueError(f"value={value!r} is not an integer, and {found} takes only those")
        if not info.min <= value <= info.max:
            raise ValueError(f"value={value!r} is beyond {found}: {info.min} to {info.max}")
        return dtype.type(int(value))
    try:
        with np.errstate(over="raise"):
            return dtype.type(value)
    except (OverflowError, FloatingPointError):
        limits = np.finfo(dtype)
        raise ValueError(f"value={value!r} is beyond {found}: {limits.min} to {limits.max}") from None
