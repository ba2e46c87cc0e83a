"""A page for each room of the package: its public names, with a table of their first lines."""

from __future__ import annotations

import enum
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from sphinx.ext.autodoc.mock import mock

import bittrue

__all__ = ["pages"]

#: Rooms with a page, in the order of the contents. What the package itself exports is documented there alone.
_ROOMS = (
    "bittrue",
    "bittrue.ascend",
    "bittrue.aie",
    "bittrue.blocks",
    "bittrue.comparison",
    "bittrue.diagnosis",
    "bittrue.testing",
    "bittrue.studying",
    "bittrue.torch",
    "bittrue.dask",
    "bittrue.cluster",
    "bittrue.files",
    "bittrue.convert",
    "bittrue.matmul",
    "bittrue.accumulators",
    "bittrue.packing",
    "bittrue.exact",
    "bittrue.exact_blocks",
    "bittrue.evidence",
)


def _kind(thing: object) -> str:
    if inspect.isclass(thing):
        return "Enumerations" if issubclass(thing, enum.Enum) else "Classes"
    return "Functions" if callable(thing) else "Constants"


_DIRECTIVES = {
    "Functions": (".. autofunction:: {}", ()),
    "Classes": (".. autoclass:: {}", ("   :members:", "   :inherited-members: object, tuple, dict, Exception, Module")),
    "Enumerations": (".. autoclass:: {}", ("   :members:", "   :undoc-members:")),
    "Constants": (".. autodata:: {}", ()),
}


def _page(room: str, seen: set[int]) -> str:
    module = importlib.import_module(room)
    named: dict[str, list[str]] = {kind: [] for kind in _DIRECTIVES}
    elsewhere: list[str] = []
    aliases: list[str] = []
    for name in sorted(module.__all__):
        thing: Any = getattr(module, name)
        kind = _kind(thing)
        other = getattr(thing, "__name__", name)
        if kind != "Constants" and id(thing) in seen:
            elsewhere.append(name)
        elif other != name and other in module.__all__:
            aliases.append(f":py:obj:`{name} <{other}>` is another name of :py:obj:`{other}`.")
        else:
            named[kind].append(name)
    seen.update(id(getattr(module, name)) for name in module.__all__)
    # A room of the name of a function of the package, bittrue.convert, leaves the name to the function.
    index = ["   :no-index:"] if room.rpartition(".")[2] in bittrue.__all__ else []
    lines = [room, "=" * len(room), "", f".. automodule:: {room}", *index, "", f".. currentmodule:: {room}", ""]
    if elsewhere:
        here = ", ".join(f":py:obj:`~bittrue.{name}`" for name in elsewhere)
        lines += [f"Described :doc:`elsewhere <bittrue>`: {here}.", ""]
    lines += [".. autosummary::", "   :nosignatures:", ""]
    lines += [f"   {name}" for kind, names in named.items() if kind != "Constants" for name in names] + [""]
    lines += [*aliases, ""]
    for kind, names in named.items():
        if names:
            lines += [kind, "-" * len(kind), ""]
        for name in names:
            directive, options = _DIRECTIVES[kind]
            lines += [directive.format(name), *options, ""]
    return "\n".join(lines)


def pages(absent: list[str]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each page, and of their contents; `absent` packages are replaced by mocks."""
    seen: set[int] = set()
    with mock(absent):
        for room in _ROOMS:
            yield f"reference/api/{room}.rst", _page(room, seen)
    title = "Python"
    contents = [title, "=" * len(title), "", ".. toctree::", "   :maxdepth: 1", "", *(f"   {r}" for r in _ROOMS), ""]
    yield "reference/api/index.rst", "\n".join(contents)
