"""What the commands print about block formats: the drawn layout of a block, and blocks of values taken apart."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import exact_blocks
from ..blocks import encode, take_apart
from ..formats import Value, format
from ..kinds.block import BlockFormat, SharedExponentFormat
from ..parse import parse_number
from .numbers import as_json, short
from .output import console, print_json, table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["block_rows", "convention_of", "print_layout", "show_blocks"]


def byte_parts(f: BlockFormat) -> list[list[tuple[int, int, str]]]:
    """Return what each byte of a block holds, from its highest bit down: (highest bit, lowest bit, name).

    The name says which bits of the field these are, where they are not all.

    Examples
    --------
    >>> byte_parts(format("mx6"))[3]
    [(7, 7, 'm3[0]'), (6, 2, 'm2'), (1, 0, 'm1[4:3]')]
    """
    backwards = isinstance(f, SharedExponentFormat) and f.bit_layout == "msb" and f.mantissa_bits < 8
    found: list[list[tuple[int, int, str]]] = [[] for _ in range(f.block_bytes)]
    start = next((p.bit for p in f.pieces() if p.name.startswith("m")), 0)
    for piece in f.pieces():
        place = [piece.bit + i for i in range(piece.width)]
        if backwards and piece.name.startswith("m"):  # counted from the highest bit of the first byte
            place = [start + (p - start) // 8 * 8 + 7 - (p - start) % 8 for p in reversed(place)]
        for byte in sorted({p // 8 for p in place}):
            inside = [(p % 8, i) for i, p in enumerate(place) if p // 8 == byte]
            (low, first), (high, last) = min(inside), max(inside)
            name = piece.name
            if len(inside) < piece.width:
                name += f"[{last}]" if first == last else f"[{last}:{first}]"
            found[byte].append((high, low, name))
    return [sorted(parts, reverse=True) for parts in found]


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
    values = [parse_number(part) for part in text.split(",") if part.strip()]
    if not values or any(isinstance(v, tuple) for v in values):
        raise ValueError(f"value={text!r}: a block format takes real numbers, apart by commas, as 1,0.5,-3")
    data = encode(values, f)
    blocks = data.reshape(-1, f.block_bytes)
    heads, shifts, codes = take_apart(data, f)
    size = f.block_size
    found = []
    for b, image in enumerate(blocks):
        decoded = exact_blocks.decode(exact_blocks.from_bytes(image.tobytes(), f), f)
        given: list[Any] = [*values[b * size : (b + 1) * size]]
        found.append((image, int(heads[b]), shifts[b].tolist(), codes[b].tolist(), decoded, given))
    if as_json_text:
        print_json({"given": text, "format": f.name, "blocks": [_as_dict(f, *block) for block in found]})
        return
    screen = console()
    screen.print(f.describe(), style="bold")
    for b, (image, head, level2, row, decoded, given) in enumerate(found):
        screen.print()
        screen.print(f"block {b}  {image.tobytes().hex(' ')}")
        if isinstance(f, SharedExponentFormat):
            pairs = f"   E2 = {' '.join(map(str, level2))} (pairs 0 to {f.shifts - 1})" if f.shifts else ""
            screen.print(f"E1 = {head} (2**{head - f.bias}){pairs}")
        else:
            screen.print(f"scale = 0x{head:02x} ({short(f.scale.value(head))})")  # type: ignore[attr-defined]
        kind = "integer" if isinstance(f, SharedExponentFormat) else "element"
        rows = table("i", "given", "code", kind, "value", right=("i", "given", "value"))
        for i, (x, code, value) in enumerate(zip(given, row, decoded)):
            rows.add_row(
                str(i), short(x), f"0b{code:0{f.element_bits}b}", _element(f, code), short(value)
            )
        screen.print(rows)
        if len(given) < size:
            screen.print(f"and {size - len(given)} zeros to fill the block")


def _element(f: BlockFormat, code: int) -> str:
    """Return a mantissa as an integer (-0 too), an element as its value."""
    if not isinstance(f, SharedExponentFormat):
        return short(f.element.value(code))  # type: ignore[attr-defined]
    top = 1 << (f.mantissa_bits - 1)
    if f.twos_complement:
        return str(code - 2 * top if code & top else code)
    return f"-{code - top}" if code & top else str(code)


def _as_dict(
    f: BlockFormat,
    image: np.ndarray[Any, Any],
    head: int,
    level2: list[int],
    codes: list[int],
    decoded: list[Value],
    given: list[Fraction | float],
) -> dict[str, Any]:
    name = "E1" if isinstance(f, SharedExponentFormat) else "scale"
    data: dict[str, Any] = {"bytes": image.tobytes().hex(), name: head}
    if isinstance(f, SharedExponentFormat) and f.shifts:
        data["E2"] = level2
    data["codes"] = codes
    data["elements"] = [_element(f, code) for code in codes]
    data["given"] = [as_json(v) for v in given]
    data["values"] = [as_json(v) for v in decoded]
    return data
