"""`bittrue diagnose`: the arguments, the progress bar and the text around `bittrue.diagnose`."""

from __future__ import annotations

from typing import Any

from ..diagnosis import Diagnosis, diagnose
from ..diagnosis.result import percent
from .arguments import one_array, or_hex, parse_shape, quant_words, rows_of
from .output import console, print_json, table
from .progress import Bar

__all__ = ["diagnose_files"]


def diagnose_files(
    source: str, actual: str, to: str | None, format: str | None, shape: str | None, layout: str | None,
    quant: str | None, as_json_text: bool, **options: Any,
) -> bool:
    """Diagnose a dump, print the result, and return whether a rule explains it."""
    sizes = parse_shape(shape)
    x, dump = or_hex(source, format, "--format"), or_hex(actual, to, "--to")
    if layout is not None:
        if to is None:
            raise ValueError(f"--layout {layout} needs --to, the format of ACTUAL")
        dump = rows_of(actual, layout, to, one_array(source, format, sizes).shape)
    with Bar() as bar:
        found = diagnose(
            x, dump, to, format=format, shape=sizes, quant=quant_words(quant), progress=bar.show, **options
        )
    if as_json_text:
        print_json(found.to_dict())
    else:
        _print(found)
    return found.explained


def _print(found: Diagnosis) -> None:
    screen = console()
    style = {"explained": "bold green", "ambiguous": "bold yellow"}.get(found.verdict, "bold red")
    head, *lines = str(found).splitlines()
    screen.print(head, style=style)
    for line in lines:
        if not line.startswith("  next: "):
            screen.print(line)
    shown = table("explanation", "matches", "", right=("matches", ""))
    for e in found.explanations:
        shown.add_row(e.name, f"{e.matches:,}", percent(e))
    screen.print()
    screen.print(shown)
    screen.print(f"{found.tried:,} combinations of rule and layout tried on {found.elements:,} elements", style="dim")
