"""`bittrue formats`: the table of all formats, and one format in full."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..formats import (
    FloatFormat,
    Format,
    TaperedFormat,
    Value,
    format,
    formats,
)
from ..inspection.catalogue import RANGE, code_text, format_record, layout, special_codes, specials
from ..inspection.numbers import as_json, exact, power, product, short, special
from ..kinds.block import BlockFormat
from .blocks import print_layout
from .output import COLOURS, console, print_json, table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["coloured_bits", "list_formats", "one_format"]

_CODE_TABLE_BITS = 8


def list_formats(as_json_text: bool) -> None:
    """Print the catalogue."""
    every: list[Any] = [*formats(), *formats("block")]  # Any: all of them have limits, though `Format` alone does not
    if as_json_text:
        print_json([format_record(f) for f in every])
        return
    screen = console()
    rows = [
        (
            f.name,
            f"{float(f.bits):g}",
            f.kind,
            layout(f),
            short(f.max, 10, 4),
            *(power(value) for value in (f.min_normal, f.min_subnormal)),
            specials(f),
        )
        for f in every
    ]
    used = sum(max(len(part) for row in [_COLUMNS, *rows] for part in row[i].split("\n")) for i in range(len(_COLUMNS)))
    used += len(_COLUMNS)  # a blank after each
    room = screen.width - used
    more = room >= _ALIASES_NEED
    shown = table(*_COLUMNS, *["aliases"] * more, right=("bits", "max", *_COLUMNS[5:7]), padding=0)
    for row, f in zip(rows, every):
        shown.add_row(*row, *[_cut(f.aliases, room)] * more)
    screen.print(shown)
    print("\nfields: sign-exponent-fraction bits; xN: blocks of N. 'bittrue formats NAME' shows one in full.")


_COLUMNS = ("name", "bits", "kind", "fields", "max", "min\nnormal", "min\nsubn.", "special")
_ALIASES_NEED = 20  # characters; with less room the column is left out


def _cut(names: tuple[str, ...], room: int) -> str:
    """Return as many names as there is room for."""
    kept = list(names)
    while kept and len(", ".join(kept)) + 4 * (len(kept) < len(names)) > room:
        kept.pop()
    return ", ".join(kept) + (", .." if 0 < len(kept) < len(names) else "")


# --- one format -------------------------------------------------------------------------------------------------------


def coloured_bits(f: Format, code: int) -> Text:
    """Return the bits of a code, its fields apart and coloured."""
    from rich.text import Text

    text = Text()
    for field in f.fields(code):
        if text:
            text.append(" ")
        text.append(f"{field.value:0{field.width}b}", style=COLOURS.get(field.name.rpartition(".")[2], ""))
    return text


def one_format(name: str, as_json_text: bool) -> None:
    """Print one format: fields, range, special codes, aliases, code table."""
    f = format(name)
    small = f.bits <= _CODE_TABLE_BITS and f.kind in ("bool", "int", "float", "tapered")
    if as_json_text:
        data = format_record(f)
        data["special_codes"] = [
            {"name": label, "code": code_text(f, code), "value": as_json(f.value(code))}
            for label, code in special_codes(f)
        ]
        if small:
            data["codes"] = [
                {"code": code_text(f, code), **as_json(value)} for code, value in enumerate(f.values())
            ]
        print_json(data)
        return
    screen = console()
    screen.print(f.describe(), style="bold")
    screen.print()
    _print_fields(screen, f)
    _print_range(screen, f)
    if special_codes(f):
        codes = table("special", "code", "bits", "value", padding=(0, 2, 0, 0))
        for label, code in special_codes(f):
            codes.add_row(label, code_text(f, code), coloured_bits(f, code), _special_value(f.value(code)))
        screen.print(codes)
        screen.print()
    each = "packed blocks" if f.kind == "block" else "one per element"
    screen.print(f"codes  {f.storage.name}, {each}")
    if f.aliases:
        from rich.padding import Padding

        screen.print("aliases")
        screen.print(Padding(", ".join(f.aliases), (0, 0, 0, 2), expand=False))
    if small:
        screen.print()
        _print_codes(screen, f)


def _special_value(value: Value) -> str:
    return special(value) or f"{exact(value)}" if len(exact(value)) < 24 else power(value)


def _print_fields(screen: Console, f: Format) -> None:
    """Draw the fields, most significant bit first."""
    from rich.text import Text

    if isinstance(f, BlockFormat):
        print_layout(screen, f)
        return
    if isinstance(f, TaperedFormat):
        rows = table("payload", "dot", "exponent", "fraction", "values", padding=(0, 2, 0, 0))
        for row in f.regimes:
            free = f.magnitude_bits - row.prefix_bits
            text = Text("s ", style=COLOURS["sign"])
            text.append(f"{row.prefix:0{row.prefix_bits}b} ", style=COLOURS["dot"])
            if row.exponent_bits:
                text.append("e" * row.exponent_bits + " ", style=COLOURS["exponent"])
            text.append("m" * row.mantissa_bits, style=COLOURS["significand"])
            low = row.prefix << free
            inside = [
                v
                for v in (f.value(c) for c in range(low, low + (1 << free)))
                if isinstance(v, Fraction) and v > 0
            ]
            rows.add_row(
                text,
                f"{row.prefix:0{row.prefix_bits}b}",
                str(row.exponent_bits),
                str(row.mantissa_bits),
                f"{power(min(inside))} .. {power(max(inside))}" + (" (powers of two)" if row.subnormal else ""),
            )
        screen.print(rows)
        screen.print()
        return
    parts = f.fields(0)
    bit, line = f.bits, Text("  ")
    for field in parts:
        high, low = bit - 1, bit - field.width
        bit = low
        where = f"[{high}:{low}]" if field.width > 1 else f"[{high}]"
        line.append(f"{field.name.replace('significand', 'fraction')} {where}", style=_field_colour(field.name))
        line.append("   ")
    screen.print(line)
    if f.bits <= 32:
        drawn = Text("  ")
        for field in parts:
            letter = {"exponent": "e", "sign": "s"}.get(field.name.rpartition(".")[2], "m")
            drawn.append(letter * field.width + " ", style=_field_colour(field.name))
        screen.print(drawn)
    screen.print()


def _field_colour(name: str) -> str:
    return COLOURS.get(name.rpartition(".")[2], "")


def _print_range(screen: Console, f: Format) -> None:
    rows = table("range", "value", "exact", padding=(0, 2, 0, 0))
    for name in RANGE:
        value = getattr(f, name, None)
        if value is not None and not (f.kind in ("int", "bool") and name.startswith("min_")):
            rows.add_row(name.replace("_", " "), short(value, 20, 9), power(value))
    screen.print(rows)
    screen.print()


def _print_codes(screen: Console, f: Format) -> None:
    """Print the value of every code, in as many columns as the width allows; a mirrored half is left out."""
    values = f.values()
    half = len(values) // 2
    mirrored = f.signed and isinstance(f, (FloatFormat, TaperedFormat))
    count = half if mirrored else len(values)
    cells = [_in_code_table(v) for v in values[:count]]
    head = len(code_text(f, 0)) + 2
    widest = max(map(len, cells)) + 1 + (f.kind == "int")
    columns = 16
    while columns > 1 and head + columns * widest > screen.width:
        columns //= 2
    columns = min(columns, count)
    digits = -(-f.bits // 4)
    heading = "".join(f"{f'+{i:x}' if columns > 1 else 'value':>{widest}}" for i in range(columns))
    screen.print(f"{'code':<{head}}{heading}", style="bold", soft_wrap=True)
    for start in range(0, count, columns):
        row = "".join(f"{cell:>{widest}}" for cell in cells[start : start + columns])
        screen.print(f"{f'0x{start:0{digits}x}':<{head}}{row}", soft_wrap=True)
    if mirrored:
        screen.print("\n" + _mirror_note(f, values, half))


def _in_code_table(value: Value) -> str:
    """Return the value in full in 8 characters where possible: a short decimal, or an odd number times 2^k."""
    if len(exact(value)) <= 7:
        return exact(value)
    text = product(value) if isinstance(value, Fraction) else ""
    return text if 0 < len(text) <= 8 else short(value, 8, 4)


def _mirror_note(f: Format, values: list[Value], half: int) -> str:
    """Say how the codes with the sign bit set differ from those without."""

    def opposite(a: Value, b: Value) -> bool:
        if isinstance(a, float) and isinstance(b, float) and a != a and b != b:
            return special(a) != special(b)
        return a == -b and (a != 0 or special(b) == "-0")

    odd_ones = [c for c in range(half) if not opposite(values[c], values[c + half])]
    note = f"{code_text(f, half)} to {code_text(f, 2 * half - 1)}: the same with a minus sign"
    if odd_ones:
        note += ", but " + ", ".join(f"{code_text(f, c + half)} = {short(values[c + half])}" for c in odd_ones)
    return note + "."
