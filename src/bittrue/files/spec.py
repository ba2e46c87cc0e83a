"""Formats as JSON: a built-in format by its name, a user's own by its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from ..blockformats import CATALOGUE as _BLOCKS
from ..formats import _CATALOGUE, ComplexFormat, FloatFormat, Format, IntFormat, Regime, TaperedFormat, format
from ..kinds.block import BlockRule, ScaledFormat, SharedExponentFormat

__all__ = ["axis_from_json", "format_from_json", "format_to_json", "is_built_in"]

_BUILT_IN: dict[str, Format] = {f.name: f for f, _ in (*_CATALOGUE, *_BLOCKS)}
_KINDS: dict[str, type[Format]] = {
    **{c.kind: c for c in (IntFormat, FloatFormat, TaperedFormat, ComplexFormat)},
    "shared_exponent": SharedExponentFormat,
    "scaled": ScaledFormat,
}
_NAMES = {c: name for name, c in _KINDS.items()}


def is_built_in(fmt: Format) -> bool:
    """Whether any installation of the package knows `fmt` by its name."""
    return _BUILT_IN.get(fmt.name) == fmt


def format_to_json(fmt: Format) -> str | dict[str, Any]:
    """Describe a format so that another process can make it again.

    Examples
    --------
    >>> format_to_json(format("int4")), sorted(format_to_json(IntFormat("int5", width=5)).items())
    ('int4', [('kind', 'int'), ('name', 'int5'), ('signed', True), ('width', 5)])
    """
    if is_built_in(fmt):
        return fmt.name
    if fmt.name in _BUILT_IN:
        raise ValueError(f"format {fmt.name!r} differs from the built-in one of that name; give it another name")
    if type(fmt) not in _NAMES:
        raise ValueError(f"format {fmt.name!r} cannot be described: {type(fmt).__name__} is not a known kind")
    return {"kind": _NAMES[type(fmt)], **{f.name: _plain(getattr(fmt, f.name)) for f in fields(fmt)}}


def _plain(value: Any) -> Any:
    if isinstance(value, Format):
        return format_to_json(value)
    if isinstance(value, BlockRule):
        given = {f.name: getattr(value, f.name) for f in fields(value)}
        return {name: getattr(v, "value", v) for name, v in given.items() if v is not None}
    return [list(row) for row in value] if isinstance(value, tuple) else value


def format_from_json(data: object) -> Format:
    """Make the format that `format_to_json` described; raise `ValueError` where `data` describes none.

    Examples
    --------
    >>> format_from_json({"kind": "float", "name": "e3m2", "exponent_bits": 3, "mantissa_bits": 2}).bits
    6
    """
    if isinstance(data, str):
        if data not in _BUILT_IN:
            raise ValueError(f"format {data!r} is not built in")
        return _BUILT_IN[data]
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise ValueError(f"format {data!r} is neither a name nor a description with a name")
    kind = _KINDS.get(data.get("kind")) if isinstance(data.get("kind"), str) else None  # type: ignore[arg-type]
    if kind is None:
        raise ValueError(f"format {data['name']!r}: kind {data.get('kind')!r} is not one of {', '.join(_KINDS)}")
    if data["name"] in _BUILT_IN:
        raise ValueError(f"format {data['name']!r} is built in and takes no parameters")
    parameters = {name: value for name, value in data.items() if name != "kind"}
    allowed = {f.name: str(f.type) for f in fields(kind)}
    for name, value in parameters.items():
        if name not in allowed:
            raise ValueError(f"format {data['name']!r}: parameter {name!r} is not one of {', '.join(sorted(allowed))}")
        parameters[name] = _CONVERT[name](name, value) if name in _CONVERT else _scalar(name, value, allowed[name])
    try:
        made = kind(**parameters)
        _check(made)
    except (TypeError, AttributeError, AssertionError, OverflowError, ArithmeticError) as error:
        raise ValueError(f"format {data['name']!r}: its parameters do not fit together ({error})") from error
    try:
        known = format(made.name)
    except ValueError:
        return made
    return known if known == made else made


#: What a parameter of a type may be in JSON.
_SCALARS: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "a string"),
    "bool": ((bool,), "true or false"),
    "int": ((int,), "an integer below 2**20"),
    "int | None": ((int, type(None)), "an integer below 2**20, or null"),
}


def _scalar(name: str, value: object, kind: str) -> object:
    types, words = _SCALARS[kind]
    if type(value) not in types or (type(value) is int and abs(value) >= 1 << 20):
        raise ValueError(f"parameter {name}={value!r} must be {words}")
    return value


def _regimes(name: str, value: object) -> object:
    rows: list[Any] = value if isinstance(value, list) else [None]
    for row in rows:
        if not isinstance(row, list) or len(row) not in (4, 5) or not {type(n) for n in row} <= {int, bool}:
            raise ValueError(f"parameter {name}={value!r} must be a list of rows of integers")
    return tuple(Regime(*row) for row in rows)


def _part(name: str, value: object) -> Format:
    part = format_from_json(value)
    if not isinstance(part, FloatFormat):
        raise ValueError(f"parameter {name}={value!r} must describe a float format")
    return part


def _element(name: str, value: object) -> Format:
    return format_from_json(value)


def _rule(name: str, value: object) -> BlockRule:
    if not isinstance(value, dict) or not all(isinstance(v, (str, bool, int)) for v in value.values()):
        raise ValueError(f"parameter {name}={value!r} must map names to strings, numbers or truth values")
    allowed = {f.name for f in fields(BlockRule)}
    if not value.keys() <= allowed:
        raise ValueError(f"parameter {name}={value!r}: the names are {', '.join(sorted(allowed))}")
    return BlockRule(**value)


_CONVERT: dict[str, Callable[[str, object], object]] = {
    "regimes": _regimes,
    "part": _part,
    "element": _element,
    "scale": _element,
    "rule": _rule,
}


def axis_from_json(data: dict[str, Any]) -> int | None:
    """Return the axis of the blocks that a tensor's record gives."""
    axis = data.get("axis")
    if axis is not None and type(axis) is not int:
        raise ValueError(f"axis={axis!r} must be an integer")
    return axis


def _check(fmt: Format) -> None:
    """Refuse what no constructor checks."""
    if not 1 <= fmt.bits <= 64:
        raise ValueError(f"format {fmt.name!r}: {fmt.bits} bits are not supported")
