"""The explorer's answers: functions that read the fields of a request and return a record for JSON.

Whole numbers that JavaScript could not hold (codes, words) are hexadecimal strings; no value is a JavaScript number.
"""

from __future__ import annotations

from collections.abc import Callable

from ... import aie, ascend
from ...formats import Format, formats
from ..fields import Fields
from .block import block
from .common import DEFAULTS, Record
from .hardware import INTEGERS, fixpipe, rule, srs
from .line import MAP_BITS, codes, line
from .number import number

__all__ = ["ANSWERS", "DEFAULTS", "Record", "choices"]

ANSWERS: dict[str, tuple[tuple[str, ...], Callable[[Fields], Record]]] = {
    "number": (("format", "value", "code", "flip", "second"), number),
    "line": (("format", "value", "code", "second", "at", "zoom", "move", "point"), line),
    "map": (("format",), codes),
    "block": (("block", "values", "rounding", "overflow", "scale_rule", "nonfinite"), block),
    "fixpipe": (("product", "qmode", "word", "flip", "acc", "relu", "scale", "offset", "signed", "shift"), fixpipe),
    "rule": (("product", "src", "dst", "mode", "value"), rule),
    "srs": (("arch", "to", "srs", "shift", "saturation"), srs),
}


def choices() -> Record:
    """What the page's lists offer: formats with their other names, block formats, products, types, modes."""
    return {
        "formats": [_listed(f) for f in formats()],
        "small": [_listed(f) for f in formats() if f.bits <= MAP_BITS and f.kind != "complex"],
        "blocks": [_listed(f) for f in formats("block")],
        "fixpipe_products": [p.name for p in ascend.products() if p.arch],
        "products": [p.name for p in ascend.products() if p.casts],
        "types": [t.name for t in ascend.types()],
        "modes": [m.name for m in ascend.RoundMode],
        "archs": [a.name for a in aie.archs()],
        "integers": list(INTEGERS),
        "saturations": [m.value for m in aie.SaturationMode],
    }


def _listed(f: Format) -> Record:
    return {"name": f.name, "bits": str(f.bits), "aliases": list(f.aliases), "kind": f.kind}
