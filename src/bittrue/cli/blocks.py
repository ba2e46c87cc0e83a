"""What the commands print about block formats: the drawn layout of a block, and blocks of values taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formats import format
from ..inspection.blocks import BlockView, blocks_of, byte_parts, element_text, read_values, scale_of
from ..inspection.numbers import as_json, short
from ..kinds.block import BlockFormat, SharedExponentFormat
from .output import console, print_json, table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["block_rows", "convention_of", "print_layout", "show_blocks"]


def block_rows(f: BlockFormat) -> list[tuple[str, str]]:
    """Return the lines of the drawing: byte numbers, and what the bits from 7 to 0 are; whole-byte fields in one line.

    Examples
    --------
    >>> block_rows(format("mx9"))[2]
    ('2..17', 'm0 .. m15')
    """
    rows: list[tuple[str, str]] = []
    parts = byte_parts(f)
    at = 0
    while at < len(parts):
        end = at
        if _whole_element(parts[at]):
            while end + 1 < len(parts) and _whole_element(parts[end + 1]):
                end += 1
        if end > at:
            rows.append((f"{at}..{end}", f"{parts[at][0][2]} .. {parts[end][0][2]}"))
        elif len(parts[at]) == 8:
            rows.append((str(at), f"7-0: {parts[at][0][2]} .. {parts[at][-1][2]}"))
        else:
            rows.append((str(at), "  ".join(_bits(part) for part in parts[at])))
        at = end + 1
    return rows


def _whole_element(parts: list[tuple[int, int, str]]) -> bool:
    return len(parts) == 1 and parts[0][2][0] in "mx" and "[" not in parts[0][2]


def _bits(part: tuple[int, int, str]) -> str:
    high, low, name = part
    return f"{high}{'' if high == low else f'-{low}'}: {name}" if (high, low) != (7, 0) else name


def print_layout(screen: Console, f: BlockFormat) -> None:
    """Print the drawn block."""
    screen.print(f"{f.block_size} values in {f.block_bytes} bytes; the bits of a byte from 7, the highest, down to 0")
    rows = table("byte", "bits", right=("byte",), padding=(0, 2, 0, 0))
    for byte, bits in block_rows(f):
        rows.add_row(byte, bits)
    screen.print(rows)
    screen.print()


def convention_of(f: BlockFormat, convention: str | None) -> BlockFormat:
    """Return the format that reads the bytes of `f` by another convention.

    Examples
    --------
    >>> convention_of(format("mx9"), "am027").name
    'mx9_am027'
    """
    if convention is None:
        return f
    known = getattr(f, "convention", "")
    if not known:
        raise ValueError(f"convention={convention!r}: {f.name} has only one; mx9, mx6 and mx4 have ug1603 and am027")
    if convention not in ("ug1603", "am027"):
        raise ValueError(f"convention={convention!r} must be 'ug1603' or 'am027'")
    found = format(f.name.removesuffix("_am027") + ("_am027" if convention == "am027" else ""))
    assert isinstance(found, BlockFormat)
    return found


def show_blocks(text: str, f: BlockFormat, as_json_text: bool) -> None:
    """Quantise comma-separated values and print each block: bytes, exponents, and every element with its code."""
    found = blocks_of(read_values(text), f)
    if as_json_text:
        print_json({"given": text, "format": f.name, "blocks": [_as_dict(f, view) for view in found]})
        return
    screen = console()
    screen.print(f.describe(), style="bold")
    for b, (given, block, image, values) in enumerate(found):
        screen.print()
        screen.print(f"block {b}  {image.hex(' ')}")
        head = block.exponent
        if isinstance(f, SharedExponentFormat):
            pairs = f"   E2 = {' '.join(map(str, block.shifts))} (pairs 0 to {f.shifts - 1})" if f.shifts else ""
            screen.print(f"E1 = {head} (2**{head - f.bias}){pairs}")
        else:
            screen.print(f"scale = 0x{head:02x} ({short(scale_of(block, f))})")
        kind = "integer" if isinstance(f, SharedExponentFormat) else "element"
        rows = table("i", "given", "code", kind, "value", right=("i", "given", "value"))
        for i, (x, code, value) in enumerate(zip(given, block.codes, values)):
            rows.add_row(
                str(i), short(x), f"0b{code:0{f.element_bits}b}", element_text(f, code), short(value)
            )
        screen.print(rows)
        if len(given) < f.block_size:
            screen.print(f"and {f.block_size - len(given)} zeros to fill the block")


def _as_dict(f: BlockFormat, view: BlockView) -> dict[str, Any]:
    name = "E1" if isinstance(f, SharedExponentFormat) else "scale"
    data: dict[str, Any] = {"bytes": view.image.hex(), name: view.block.exponent}
    if isinstance(f, SharedExponentFormat) and f.shifts:
        data["E2"] = list(view.block.shifts)
    data["codes"] = list(view.block.codes)
    data["elements"] = [element_text(f, code) for code in view.block.codes]
    data["given"] = [as_json(v) for v in view.given]
    data["values"] = [as_json(v) for v in view.values]
    return data
