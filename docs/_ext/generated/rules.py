"""The page on the rules of the hardware: the rows of the rule books, each with its source and evidence."""

from __future__ import annotations

from typing import Any

from bittrue import aie, ascend
from bittrue.records import records

from .formats import table

__all__ = ["page"]

_APIS = {
    "memory": "Ascend C, tensor Cast",
    "reg": "Ascend C, register Cast",
    "simt": "Ascend C, SIMT",
    "pypto": "PyPTO",
    "bittrue": "nobody's: assumed here",
}
_INTRO = """\
# Rules of the hardware

Everything the hardware rooms know, from the tables they read (`src/bittrue/ascend/data`, `src/bittrue/aie/data`). Each
row has its source. Evidence is *documented* (in a vendor's document), *vendor-code* (read in a vendor's source),
*measured* (by those who are cited), *derived* (by arithmetic from the others) or *assumed*. Numbers of questions refer
to [open questions](../evidence.md). In a terminal: `bittrue rules`, `bittrue aie`."""


def _casts(sources: dict[str, int]) -> list[str]:
    parts = ["## Ascend: casts"]
    every = ascend.rules()
    for product in dict.fromkeys(row.product for row in every):
        parts.append(f"### {product}")
        for api, title in _APIS.items():
            rows = [row for row in every if (row.product, row.api) == (product, api)]
            if not rows:
                continue
            cells = []
            for row in rows:
                modes = ", ".join(f"**{m.short}**" if m == row.default else m.short for m in row.modes)
                number = sources.setdefault(row.document, len(sources) + 1)
                asked = ", ".join(map(str, row.questions))
                what = (row.semantics, row.saturation, asked, f"{row.evidence} [{number}]")
                cells.append([row.source, row.destination, modes, *what])
            parts += [title + ":", table(cells, ["from", "to", "modes", "what", "saturation", "questions", "evidence"])]
    return parts


def _book(room: str, name: str) -> str:
    rows: list[dict[str, Any]] = [dict(row) for row in records(room, name)]
    return table([[str(value) for value in row.values()] for row in rows], list(rows[0]))


def page() -> str:
    """Return the text of the page."""
    sources: dict[str, int] = {}
    parts = [_INTRO, *_casts(sources)]
    parts += ["Sources of the casts (the default mode is bold; [guide](../ascend.md)):"]
    parts.append("\n".join(f"{number}. {document}" for document, number in sources.items()))
    parts += ["## Ascend: CastDequant", _book("ascend", "dequant")]
    parts += [
        "## Ascend: quantisation modes of Fixpipe",
        "inf_nan: whether a document says that the mode can keep Inf and NaN (question 27).",
        _book("ascend", "quant_modes"),
    ]
    parts += ["## Ascend: products of the cube", _book("ascend", "cube_types")]
    parts += [
        "## AI Engine: rounding register",
        "aie_api `aie_types.hpp`, LLVM defines, UG1079; documented and vendor-code. `f` is the floor of the quotient.",
        _book("aie", "rounding"),
        "## AI Engine: block types",
        _book("aie", "blocks"),
        "## AI Engine: accumulators of products",
        "aie_api (2025 and 2026) and UG1603; bits of the operands, and the accumulator on each architecture.",
        _book("aie", "products"),
        "## AI Engine: what travels on ports",
        "The ADF front end's header; UG1079, UG1603. Numbers are architectures: "
        + ", ".join(f"{a.number} {a.name}" for a in aie.archs()) + ".",
        _book("aie", "ports"),
    ]
    return "\n\n".join(parts) + "\n"
