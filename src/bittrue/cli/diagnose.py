"""`bittrue diagnose`: the arguments, the progress bar and the text around `bittrue.diagnose`."""

from __future__ import annotations

from typing import Any

from ..diagnosis import Diagnosis, diagnose
from ..diagnosis.result import percent
from .arguments import parse_shape
from .output import console, print_json, table
from .progress import Bar

__all__ = ["diagnose_files"]


def diagnose_files(
    source: str, actual: str, to: str | None, format: str | None, shape: str | None, quant: str | None,
    as_json_text: bool, **options: Any,
) -> bool:
    """Diagnose a dump, print the result, and return whether a rule explains it."""
    with Bar() as bar:
        found = diagnose(
            source, actual, to, format=format, shape=parse_shape(shape), quant=_word(quant), progress=bar.show,
            **options,
        )
    if as_json_text:
        print_json(found.to_dict())
    else:
        _print(found)
    return found.explained


def _word(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError(f"--quant {text!r} is no parameter word; expected a number such as 0x7fb03f000000") from None


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
