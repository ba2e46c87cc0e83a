"""`bittrue aie`: the tables of AMD's AI Engine on paper: accumulators, vectors, matrix shapes, ports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import aie
from .output import console, print_json, table

__all__ = ["show"]


def show(what: str, arch: str | None, as_json: bool) -> None:
    """Print one of the tables, for all architectures or for one.

    Parameters
    ----------
    what : {"accum", "vector", "mmul", "ports"}
    arch : str, optional
    as_json : bool
    """
    chosen = aie.archs() if arch is None else (aie.arch(arch),)
    rows = _TABLES[what][1](chosen)
    if as_json:
        print_json(rows)
        return
    names = [a.name for a in chosen]
    columns = list(dict.fromkeys(name for row in rows for name in row if name not in names)) + names
    shown = table(*columns, title=_TABLES[what][0])
    for column in shown.columns:
        if what == "mmul" and column.header in names:  # long lists
            column.no_wrap = False
        elif column.header not in names:
            column.min_width = max(len(str(row[str(column.header)])) for row in rows)
    for row in rows:
        shown.add_row(*(_cell(row.get(name)) for name in columns))
    screen = console()
    screen.print(shown)
    screen.print()
    screen.print(_TABLES[what][2], style="dim")


def _cell(value: Any) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, dict):
        return f"{value['native']} {_cell(value['lanes'])}"
    if isinstance(value, list):
        return (", " if isinstance(value[0], str) else "/").join(map(str, value))
    return str(value)


def _accumulators(archs: Sequence[aie.Arch]) -> list[dict[str, Any]]:
    names = dict.fromkeys(t.name for a in archs for t in aie.tags(a))
    found = []
    for name in names:
        row: dict[str, Any] = {"tag": name}
        for a in archs:
            tags = {t.name: t for t in aie.tags(a)}
            if name in tags:
                tag = tags[name]
                row[a.name] = {"native": tag.native, "bits": tag.bits * tag.parts, "lanes": list(tag.lanes)}
        found.append(row)
    return found


def _vectors(archs: Sequence[aie.Arch]) -> list[dict[str, Any]]:
    found = []
    for element in aie.elements():
        sizes = dict(element.sizes)
        if any(a.name in sizes for a in archs):
            row: dict[str, Any] = {"element": element.name, "bits": element.bits, "format": element.part.name}
            found.append(row | {a.name: list(sizes.get(a.name, ())) for a in archs})
    return found


_BLOCKS = ("bfp16ebs8", "mx9", "mx6", "mx4")


def _shapes(archs: Sequence[aie.Arch]) -> list[dict[str, Any]]:
    names = [e.name for e in aie.elements() if not e.name.startswith("u")] + list(_BLOCKS)
    found = []
    for sparse in (False, True):
        for a in names:
            for b in names:
                row: dict[str, Any] = {"A": a, "B": f"{b}, sparse" if sparse else b}
                shapes = {arch.name: _shapes_of(a, b, arch, sparse) for arch in archs}
                if any(shapes.values()):
                    found.append(row | shapes)
    return found


def _shapes_of(a: str, b: str, arch: aie.Arch, sparse: bool) -> list[str]:
    try:
        return [str(shape) for shape in aie.mmul_shapes(a, b, arch, sparse=sparse)]
    except ValueError:
        return []


def _ports(archs: Sequence[aie.Arch]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for port in ("stream", "cascade", "rtp", "input_stream_acc"):
        for a in archs:
            for t in aie.port_types(port, a):
                row = found.setdefault((port, t.name), {"port": port, "type": t.name, "kind": t.kind})
                row[a.name] = "yes" if t.is_native else f"as {t.native}"
    order = ("stream", "cascade", "rtp", "input_stream_acc")
    return sorted(found.values(), key=lambda row: (order.index(row["port"]), row["kind"] != "accumulator"))


def _words(*lines: str) -> str:
    return " ".join(lines)


_TABLES: dict[str, tuple[str, Any, str]] = {
    "accum": (
        "Accumulators: native type and lanes",
        _accumulators,
        _words(
            "A tag asks for a minimum of bits and gets the native accumulator.",
            "Complex tags have two native accumulators in a lane.",
        ),
    ),
    "vector": ("Vectors: legal numbers of lanes", _vectors, "Complex elements have two numbers of the format."),
    "mmul": (
        "Matrix products: M x K x N",
        _shapes,
        _words(
            "a: several intrinsics; b: extra data movement; e: through bfp16 emulation;",
            "(32), (64): accumulators of that width only. Unsigned operands like signed ones.",
        ),
    ),
    "ports": (
        "Types on ports",
        _ports,
        "as ...: the header accepts the tag, graph code wants the native accumulator that it maps to.",
    ),
}
