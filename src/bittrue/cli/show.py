"""`bittrue show`: one number in one format, down to its bits, its neighbours and every rule's answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..formats import ComplexFormat, Field, Format, Value, format
from ..inspection.catalogue import code_text
from ..inspection.number import NumberView, Outcome, field_meaning, parts_of
from ..inspection.numbers import decimal, exact, hex_float, power, short, special
from ..kinds.block import BlockFormat
from .catalogue import coloured_bits
from .output import COLOURS, console, print_json, table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show"]


def show(text: str, name: str, target: str | None, source: str, as_json_text: bool) -> None:
    """Print everything about one value or code in one format; with a target, what each of its cast modes gives."""
    f = format(name)
    if isinstance(f, BlockFormat):
        if target is not None:
            raise ValueError(f"--target {target}: no product casts to the block format {f.name}; leave it out")
        from .blocks import show_blocks

        show_blocks(text, f, as_json_text)
        return
    parts = parts_of(text, f)
    if target is not None and isinstance(f, ComplexFormat):
        raise ValueError(f"--target {target}: {f.name} is cast part by part; show its parts in {f.part.name}")
    pages = [(label, _Page(view, target, source)) for label, view in parts]
    if as_json_text:
        found = [page.as_dict() for _, page in pages]
        data = found[0] if len(found) == 1 else {"real": found[0], "imaginary": found[1]}
        print_json({"given": text, "format": f.name, **data})
        return
    screen = console()
    for i, (label, page) in enumerate(pages):
        if i:
            screen.print()
        page.print(screen, f"{text} in {f.name}" + (f", {label} part ({page.view.f.name})" if label else ""))


class _Page:
    """What is printed about one real number in one format."""

    def __init__(self, view: NumberView, target: str | None, source: str) -> None:
        self.view = view
        self.casts: dict[str, Any] = {}
        if target is not None:
            from ..inspection.casts import cast_under_every_mode

            self.casts = cast_under_every_mode(view.value, view.f, target, source)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        data = self.view.as_dict()
        if self.casts:
            from ..inspection.casts import target_dict

            data["target"] = target_dict(self.casts, self.view.f)
        return data

    def print(self, screen: Console, title: str) -> None:
        """Write it for people."""
        screen.print(title, style="bold")
        screen.print()
        self._print_result(screen)
        screen.print()
        if self.casts:
            self._print_casts(screen)
            return
        if not self.view.is_nan and not self.view.is_infinite:
            self._print_rules(screen)
        about, others = self.view.alternatives()
        if others:
            screen.print(f"{about}:")
            self._print_outcomes(screen, "rule", others, errors=False)
            screen.print()

    def _print_result(self, screen: Console) -> None:
        from rich.text import Text

        grid = table("", "", show_header=False, padding=(0, 2, 0, 0))
        grid.columns[1].no_wrap, grid.columns[1].overflow = False, "fold"
        f, code = self.view.f, self.view.code
        if not self.view.representable:
            grid.add_row("given", _in_full(self.view.value, f))
        grid.add_row("code" if self.view.representable else "nearest", code_text(f, code))
        grid.add_row("bits", coloured_bits(f, code))
        names = Text("   ").join(
            Text(_field_text(f, field, code), style=COLOURS.get(field.name, "")) for field in f.fields(code)
        )
        grid.add_row("fields", names)
        grid.add_row("value", _in_full(self.view.result, f))
        error = self.view.error(code)
        if error:
            grid.add_row("error", f"{decimal(error, 4)} ulp (an ulp is {power(self.view.ulp)} here)")
        grid.add_row("class", self.view.category(code))
        for label, neighbour in zip(("below", "above"), self.view.neighbours()):
            entry = Text("-")
            if neighbour is not None:
                entry = Text(f"{code_text(f, neighbour)}   ")
                if f.bits <= _BITS_IN_TABLES:
                    entry.append_text(coloured_bits(f, neighbour))
                    entry.append("   ")
                entry.append(short(f.value(neighbour), 24, 17))
            grid.add_row(label, entry)
        screen.print(grid)

    def _print_casts(self, screen: Console) -> None:
        screen.print(self.casts["title"])
        if exact(self.casts["given"]) != exact(self.view.value):
            screen.print(f"given as {self.casts['source']} {exact(self.casts['given'])}")
        screen.print()
        outcomes = [Outcome(entry["mode"], entry["code"], entry["effect"]) for entry in self.casts["modes"]]
        self._print_outcomes(screen, "mode", outcomes, errors=True)
        screen.print()
        for note in self.casts["notes"]:
            screen.print(note)

    def _print_rules(self, screen: Console) -> None:
        every = [o for o in self.view.rules if o.code is not None]
        others = [o for o in every if o.code != self.view.code or (o.name == "stochastic" and o.note)]
        if not others or [o.name for o in others] == ["hybrid"]:
            reason = "The value is representable: every" if self.view.representable else "Every"
            screen.print(f"{reason} rounding mode{' but hybrid' * bool(others)} gives this code.\n")
            if others:
                self._print_outcomes(screen, "rounding", others, errors=True)
                screen.print()
            return
        self._print_outcomes(screen, "rounding", every, errors=True)
        if len(every) < len(self.view.rules):
            screen.print("hybrid                          defined for hifloat8 only", style="dim")
        screen.print()

    def _print_outcomes(self, screen: Console, head: str, outcomes: Iterable[Outcome], errors: bool) -> None:
        with_bits = self.view.f.bits <= _BITS_IN_TABLES
        columns = [head, "code", *["bits"] * with_bits, "value", *["error (ulp)"] * errors, ""]
        rows = table(*columns, right=("value", "error (ulp)"), padding=(0, 2, 0, 0))
        rows.columns[-1].no_wrap = False
        for o in outcomes:
            if o.code is None:
                rows.add_row(o.name, "-", *[""] * (len(columns) - 3), o.note)
                continue
            error = self.view.error(o.code)
            rows.add_row(
                o.name,
                code_text(self.view.f, o.code),
                *[coloured_bits(self.view.f, o.code)] * with_bits,
                short(self.view.f.value(o.code), 17, 9),
                *["" if error is None else decimal(error, 4)] * errors,
                o.note,
            )
        screen.print(rows)


_BITS_IN_TABLES = 16  # wider codes are drawn once, not in every row
_FULL_WIDTH = 60


def _in_full(value: Value, f: Format) -> str:
    """Return decimal, powers of two and hexadecimal side by side, each once and none beyond a line."""
    full = exact(value)
    shown = full if len(full) <= _FULL_WIDTH else f"{decimal(value, 17)}.."
    more = [] if special(value) else [power(value), "" if f.kind in ("int", "bool") else hex_float(value)]
    return " = ".join(dict.fromkeys([shown, *[text for text in more if text and len(text) <= _FULL_WIDTH]]))


def _field_text(f: Format, field: Field, code: int) -> str:
    """Return a field's name, its bits (in hexadecimal where there are many) and what they stand for."""
    name = field.name.replace("significand", "fraction")
    bits = f"{field.value:0{field.width}b}" if field.width <= _BITS_IN_TABLES else f"{field.value:#x}"
    return f"{name} {bits}{_in_brackets(field_meaning(f, field, code))}"


def _in_brackets(meaning: str) -> str:
    return f" ({meaning})" if meaning else ""
