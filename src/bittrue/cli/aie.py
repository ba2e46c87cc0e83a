"""`bittrue aie`: the tables of AMD's AI Engine on paper, and what shift, round and saturate make of a number."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from .. import aie
from ..inspection.numbers import decimal
from .output import console, print_json, table

__all__ = ["show", "srs"]


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
    columns = [name for name in rows[0] if name not in (*names, "kind")] + names
    shown = table(*columns, title=_TABLES[what][0])
    for column in shown.columns:
        if column.header in names:  # long lists
            column.no_wrap, column.min_width = False, len(str(column.header))
        else:
            column.min_width = max(len(str(row[str(column.header)])) for row in rows)
    for row in rows:
        shown.add_row(*(_cell(row.get(name)) for name in columns))
    screen = console()
    screen.print(shown)
    screen.print()
    screen.print(_TABLES[what][2], style="dim")


def srs(value: str, to: str, shift: int, arch: str | None, as_json: bool) -> None:
    """Print what each rounding and saturation mode makes of one accumulator."""
    try:
        number = int(value, 0)
    except ValueError:
        raise ValueError(f"VALUE {value!r:.60} is not an integer, such as -6, 0x7fff or {2**79 - 1}") from None
    of = aie.arch(aie.DEFAULT_ARCH if arch is None else arch)
    bits = max(t.bits for t in aie.tags(of) if not t.is_float)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(f"VALUE {value:.60} does not fit into {bits} bits, the widest accumulator of {of.name}")
    modes, kept = aie.rounding_modes(of), list(aie.SaturationMode)
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always")
        found = {
            m.value: {s.value: int(aie.srs([number], to, shift, m.value, s.value, arch=of)[0]) for s in kept}
            for m in modes
        }
    for text in dict.fromkeys(str(remark.message) for remark in remarks):
        print(f"warning: {text}", file=sys.stderr)
    if as_json:
        print_json({"value": number, "to": to, "shift": shift, "arch": of.name, "results": found})
        return
    shown = table("rounding", *(s.value for s in kept), right=tuple(s.value for s in kept))
    for mode, results in found.items():
        shown.add_row(mode, *map(str, results.values()))
    screen = console()
    quotient = Fraction(number) / Fraction(2) ** shift
    screen.print(f"{number} / 2^{shift} = {decimal(quotient, 90)} to {to} on {of.name}", style="bold")
    screen.print()
    screen.print(shown)
    screen.print()
    screen.print("columns: saturation modes; floor and none are the registers' state at reset", style="dim")


def _cell(value: Any) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, dict):
        return f"{value['native']} {_cell(value['lanes'])}"
    if isinstance(value, list):  # numbers of lanes are all powers of two between two of them
        return ", ".join(value) if isinstance(value[0], str) else f"{value[0]}..{value[-1]}"
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


def _shapes(archs: Sequence[aie.Arch]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for sparse in (False, True):
        for arch in archs:
            for a, b in aie.mmul_pairs(arch, sparse=sparse):
                second = f"{b}, sparse" if sparse else b
                row = found.setdefault((a, second), {"A": a, "B": second, **{other.name: [] for other in archs}})
                row[arch.name] = [str(shape) for shape in aie.mmul_shapes(a, b, arch, sparse=sparse)]
    return list(found.values())


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
            "A tag asks for a minimum of bits and gets the native accumulator; lanes are powers of two.",
            "Complex tags have two native accumulators in a lane.",
        ),
    ),
    "vector": (
        "Vectors: legal numbers of lanes",
        _vectors,
        "Powers of two. Complex elements have two numbers of the format.",
    ),
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
