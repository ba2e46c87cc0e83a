"""A page for each format of the catalogue: fields, limits, special codes, figure of its grid, table of its codes."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import bittrue as bt
from bittrue.formats import Value
from bittrue.inspection.blocks import byte_parts
from bittrue.inspection.catalogue import code_text, layout, special_codes, specials
from bittrue.inspection.numbers import exact, power, product, short, special
from bittrue.kinds.block import BlockFormat, ScaledFormat, SharedExponentFormat

from .figures import grid, positive_values

__all__ = ["pages", "table"]

_TABLE_BITS = 8  # up to which width all codes are listed

_CONTENTS = {
    "float": "Floats with exponent and fraction",
    "tapered": "Tapered floats",
    "int": "Integers",
    "bool": "Truth values",
    "complex": "Complex numbers",
    "block": "Block formats",
}


def table(rows: list[list[str]], head: list[str]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows])


def _code(text: object) -> str:
    return f"`{text}`"


# --- fields -----------------------------------------------------------------------------------------------------------


def _bits(parts: list[tuple[str, str, int]]) -> str:
    """Draw (class, label, width) from the highest bit down; wide fields take the room of eight bits."""
    high = sum(width for _, _, width in parts) - 1
    cells = []
    for kind, label, width in parts:
        low = high - width + 1
        where = f"{high}" if width == 1 else f"{high}–{low}"
        cells.append(
            f'<div class="field {kind}" style="flex:{min(width, 12)}"><b>{escape(label)}</b><span>{where}</span></div>'
        )
        high = low - 1
    return f'<div class="bits" role="img" aria-label="fields, most significant first">{"".join(cells)}</div>'


def _fields(f: Any) -> str:
    if isinstance(f, BlockFormat):
        return _block(f)
    if isinstance(f, bt.TaperedFormat):
        rows = []
        for row in f.regimes:
            prefix = f"{row.prefix:0{row.prefix_bits}b}"
            low = row.prefix << (f.magnitude_bits - row.prefix_bits)
            inside = [
                v
                for v in map(f.value, range(low, low + (1 << (f.magnitude_bits - row.prefix_bits))))
                if not isinstance(v, float) and v > 0
            ]
            parts = [("sign", "s", 1), ("dot", prefix, row.prefix_bits)]
            parts += [("exponent", "e" * row.exponent_bits, row.exponent_bits)] * bool(row.exponent_bits)
            parts += [("significand", "m" * row.mantissa_bits, row.mantissa_bits)]
            reach = f"{power(min(inside))} … {power(max(inside))}" + (", powers of two" if row.subnormal else "")
            rows.append(f"<tr><td>{_bits(parts)}</td><td>{reach}</td></tr>")
        return (
            "The *dot* field at the top tells how the bits below it split.\n\n"
            '<div class="wide"><table class="regimes"><thead><tr><th>bits</th><th>magnitudes</th></tr></thead><tbody>'
            + "".join(rows)
            + "</tbody></table></div>"
        )
    labels = {"significand": "fraction"}
    parts = []
    for field in f.fields(0):
        kind = field.name.rpartition(".")[2]
        parts.append((kind, field.name.replace(kind, labels.get(kind, kind)), field.width))
    return _bits(parts)


def _block(f: BlockFormat) -> str:
    """Draw the bytes of a block, eight bits a row."""
    rows = []
    for number, parts in enumerate(byte_parts(f)):
        cells = "".join(
            f'<td colspan="{high - low + 1}" class="{_part_kind(name)}">{escape(name)}</td>'
            for high, low, name in parts
        )
        rows.append(f"<tr><th>{number}</th>{cells}</tr>")
    head = "".join(f"<th>{bit}</th>" for bit in range(7, -1, -1))
    if isinstance(f, SharedExponentFormat):
        pairs = "E2[i]: exponent of pair i; " if f.shifts else ""
        legend = f"E1: shared exponent; {pairs}m*i*: mantissa of value i"
    else:
        legend = "scale: shared scale; x*i*: element i"
    return (
        f"{f.block_size} values in {f.block_bytes} bytes. {legend}. `x[4:3]` are bits 4 to 3 of x.\n\n"
        f'<div class="wide layout"><table><thead><tr><th>byte</th>{head}</tr></thead><tbody>'
        + "".join(rows)
        + "</tbody></table></div>"
    )


def _part_kind(name: str) -> str:
    """Return the class of a part of a block by its name."""
    if name == "scale" or name.startswith("E1"):
        return "exponent"
    return "dot" if name.startswith("E2") else "significand"


# --- numbers ----------------------------------------------------------------------------------------------------------


def _limits(f: Any) -> str:
    names = ("max", "min", "min_normal", "min_subnormal", "epsilon")
    rows = []
    for name in names:
        value = getattr(f, name, None)
        if value is not None and not (f.kind in ("int", "bool") and name.startswith("min_")):
            rows.append([_code(name), short(value, 24, 12), _code(power(value))])
    return table(rows, ["limit", "value", "exactly"])


def _specials(f: Any) -> str:
    rows = []
    for label, code in special_codes(f):
        bits = " ".join(f"{field.value:0{field.width}b}" for field in f.fields(code))
        value = f.value(code)
        rows.append([label, _code(code_text(f, code)), _code(bits), special(value) or power(value)])
    return table(rows, ["", "code", "bits", "value"])


def _in_table(value: Value) -> str:
    if len(exact(value)) <= 7 or isinstance(value, float):
        return exact(value)
    return product(value) if len(product(value)) <= 9 else short(value, 9, 4)


def _codes(f: Any) -> str:
    """Return the table of all codes, sixteen to a row, with the lowest hexadecimal digit across."""
    values = f.values()
    columns = min(16, len(values))
    head = "".join(f"<th>{i:x}</th>" for i in range(columns))
    rows = []
    for start in range(0, len(values), columns):
        cells = []
        for value in values[start : start + columns]:
            named = special(value)
            cells.append(f'<td class="{"special" if named else "value"}">{_in_table(value)}</td>')
        label = f"{start // columns:x}_" if len(values) > 16 else ""
        rows.append(f"<tr><th>{label}</th>{''.join(cells)}</tr>")
    return (
        "Rows: high digit of the code; columns: low digit.\n\n"
        f'<div class="wide codes"><table><thead><tr><th></th>{head}</tr></thead><tbody>'
        + "".join(rows)
        + "</tbody></table></div>"
    )


# --- pages ------------------------------------------------------------------------------------------------------------


def _facts(f: Any) -> str:
    rows = [["bits per value", f"{float(f.bits):g}"]]
    if isinstance(f, bt.FloatFormat):
        rows += [["sign, exponent, fraction", layout(f)], ["bias", str(f.bias)]]
    if isinstance(f, BlockFormat):
        rows += [["block", f"{f.block_size} values in {f.block_bytes} bytes"]]
    if isinstance(f, ScaledFormat):
        rows += [["elements", _name(f.element)], ["scale", _name(f.scale)]]
    rows += [["special", specials(f) or "none"]]
    rows += [["codes in NumPy", _code(f.storage.name) + (" (packed blocks)" if f.kind == "block" else "")]]
    rows += [["other names", ", ".join(map(_code, f.aliases)) or "none"]]
    return table(rows, ["", ""])


def _name(f: bt.Format) -> str:
    listed = f.name in {known.name for known in bt.formats()}
    return f"[{f.name}]({f.name}.md)" if listed else f"{_code(f.name)} ({f.describe().partition(': ')[2]})"


def _rule(f: BlockFormat) -> str:
    rows = []
    for name in f.rule.__dataclass_fields__:
        value = getattr(f.rule, name)
        if value is not None:
            rows.append([_code(name), _code(getattr(value, "value", value))])
    return (
        "What a conversion does unless told otherwise ([BlockRule](../reference/api/bittrue.rst)):\n\n"
        + table(rows, ["field", "value"])
    )


def _page(f: Any) -> str:
    summary = f.describe().partition(": ")[2].replace("*", "\\*")
    parts = [f"# {f.name}", f"{summary[:1].upper()}{summary[1:]}.", _facts(f)]
    parts += ["## Layout of a block" if f.kind == "block" else "## Fields", _fields(f)]
    parts += ["## Limits", _limits(f)]
    if special_codes(f):
        parts += ["## Special codes", _specials(f)]
    if isinstance(f, BlockFormat):
        parts += ["## Conversion", _rule(f)]
    if len(positive_values(f)) > 1 or f.bits > _TABLE_BITS:
        drawing, caption = grid(f)
        parts += ["## Grid", f'<figure class="wide">{drawing}</figure>', caption]
    if f.bits <= _TABLE_BITS and f.kind not in ("block", "complex"):
        parts += ["## Codes", _codes(f)]
    parts += ["## On the command line", f"```console\n$ bittrue formats {f.name}\n$ bittrue explore {f.name}\n```"]
    return "\n\n".join(parts) + "\n"


def pages() -> Iterator[tuple[str, str]]:
    """Yield name and text of each page, and of their contents."""
    every = [*bt.formats(), *bt.formats("block")]
    parts = [
        "# Formats",
        "One page for each format of the catalogue, computed from it. Each is known by many names; "
        "your own are made like these ([guide](../own.md)).",
    ]
    for kind, title in _CONTENTS.items():
        here = [f for f in every if f.kind == kind]
        rows = [
            [
                f"[{f.name}]({f.name}.md)",
                f"{float(f.bits):g}",
                layout(f),
                short(f.max, 10, 4),
                _code(power(f.min_subnormal)),
                specials(f),
            ]
            for f in here
        ]
        parts += [f"## {title}", table(rows, ["name", "bits", "fields", "largest", "smallest", "special"])]
    parts.append("Fields: sign-exponent-fraction bits; xN: blocks of N values.")
    names = "\n".join(f.name for f in every)
    parts.append(f"```{{toctree}}\n:hidden:\n\n{names}\n```")
    yield "formats/index.md", "\n\n".join(parts) + "\n"
    for f in every:
        yield f"formats/{f.name}.md", _page(f)
