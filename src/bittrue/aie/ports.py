"""Which types may travel on streams, cascades and run-time parameters (ADF front-end header; UG1079, UG1603)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..formats import format
from ..records import records
from ..rounding import suggestion
from .arch import Arch
from .choices import Choices
from .elements import Element, find
from .tags import Tag, find_tag
from .tile import in_force

__all__ = ["PORTS", "PortType", "check_port", "port_types"]

#: Kinds of ports; the last is the input_stream_accX of older interfaces.
PORTS = ("stream", "cascade", "rtp", "input_stream_acc")

_ALIASES = {"run-time parameter": "rtp", "runtime parameter": "rtp", "input_stream_accx": "input_stream_acc"}


@dataclass(frozen=True)
class PortType:
    """A type that a port takes.

    Attributes
    ----------
    name : str
    kind : str
        "vector" or "accumulator".
    native : str
        The native accumulator for accumulators, else the name itself.
    """

    name: str
    kind: str
    native: str

    def __str__(self) -> str:
        return self.name

    @property
    def is_native(self) -> bool:
        """Whether graph code supports it as it is."""
        return self.name == self.native


def port_types(
    port: str, arch: str | int | Arch | None = None, *, choices: Choices | None = None
) -> tuple[PortType, ...]:
    """Return the types that the ADF header accepts on a port.

    Parameters
    ----------
    port : {"stream", "cascade", "rtp", "input_stream_acc"}
    arch, choices : optional
        Default: the current tile's.

    Examples
    --------
    >>> [t.name for t in port_types("cascade", "aie") if t.kind == "accumulator"][-3:]
    ['acc80', 'cacc80', 'caccfloat']
    """
    state = in_force(arch, choices=choices)
    wanted = _port(port)
    number = state.arch.number
    found = []
    for row in records("aie", "ports"):
        last = int(row["last_arch"])
        offered = row["type"] == "caccfloat" and state.choices.mlv2_caccfloat_cascade == "offered"
        if offered and wanted == "cascade" and number == 22:
            last = 22
        if row["port"] == wanted and int(row["first_arch"]) <= number <= last:
            native = find_tag(row["type"], state).native if row["kind"] == "accumulator" else row["type"]
            found.append(PortType(row["type"], row["kind"], native))
    return tuple(found)


def check_port(
    port: str,
    dtype: Any,
    arch: str | int | Arch | None = None,
    *,
    map_nonnative: bool = False,
    choices: Choices | None = None,
) -> PortType:
    """Return the type of a port, or raise what is wrong with it.

    Parameters
    ----------
    port : str
        As in `port_types`.
    dtype : str, dtype, Element, Tag or format
    arch, choices : optional
    map_nonnative : bool
        Take an accumulator tag that is not native as the native one it maps to; graph code supports native ones only.

    Raises
    ------
    ValueError
        For a type that the port does not take, with the list; for accumulators on anything but cascades; for block
        types; for accumulator tags that are not native.

    Examples
    --------
    >>> check_port("cascade", "acc48", "aie").name, check_port("cascade", "acc48", "aie-ml", map_nonnative=True).name
    ('acc48', 'acc64')
    >>> check_port("cascade", "acc48", "aie-ml")
    Traceback (most recent call last):
    ValueError: dtype='acc48' is not native on aie-ml: graph code takes acc64 (or pass map_nonnative=True)
    """
    of = in_force(arch).arch
    wanted = _port(port)
    name = _name(dtype)
    legal = port_types(wanted, of, choices=choices)
    found = {t.name: t for t in legal}.get(name.lower())
    if found is None:
        if _is_accumulator(name) and wanted in ("stream", "rtp"):
            raise ValueError(f"dtype={name!r} is an accumulator type, which travels on cascades, not on a {wanted}")
        names = [t.name for t in legal]
        block = "block types travel on no port; " if name.startswith(("mx", "bfp")) else ""
        raise ValueError(
            f"dtype={name!r} is not a type of a {wanted} on {of}{suggestion(name, names)} ({block}{', '.join(names)})"
        )
    if found.is_native:
        return found
    if not map_nonnative:
        raise ValueError(
            f"dtype={name!r} is not native on {of}: graph code takes {found.native} (or pass map_nonnative=True)"
        )
    return PortType(found.native, found.kind, found.native)


def _port(port: object) -> str:
    name = port.lower() if isinstance(port, str) else port
    found = _ALIASES.get(name, name) if isinstance(name, str) else name
    if found not in PORTS:
        raise ValueError(f"port={port!r} is not a kind of port{suggestion(port, PORTS)} ({', '.join(PORTS)})")
    return str(found)


def _name(dtype: Any) -> str:
    known = dtype if isinstance(dtype, (Element, Tag)) else find(dtype)
    if known is not None:
        return known.name
    try:
        return format(dtype).name
    except (TypeError, ValueError):
        return str(dtype)


def _is_accumulator(name: str) -> bool:
    return name.lower().startswith(("acc", "cacc"))
