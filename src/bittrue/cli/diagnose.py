"""`bittrue diagnose`: the arguments, the progress bar and the text around `bittrue.diagnose`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..diagnosis import Diagnosis, diagnose
from ..diagnosis.result import percent
from .arguments import one_array, or_hex, parse_shape, rows_of
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
            x, dump, to, format=format, shape=sizes, quant=_words(quant), progress=bar.show, **options
        )
    if as_json_text:
        print_json(found.to_dict())
    else:
        _print(found)
    return found.explained


def _words(text: str | None) -> Any:
    """Return the parameter word, or an array of several, that text or a file gives."""
    if text is None:
        return None
    suffix = os.path.splitext(text)[1].lower()
    if suffix in (".bin", ".raw", ".npy"):
        found = one_array(text, None if suffix == ".npy" else "uint64", None)
        if found.format.name not in ("uint64", "int64") or len(found.shape) != 1:
            raise ValueError(f"--quant {text}: {found.format.name} of shape {found.shape} is not n words of uint64")
        return found.codes.view(np.uint64)
    try:
        words = [int(part, 0) for part in text.split(",")]
        return words[0] if len(words) == 1 else np.array(words, np.uint64)
    except (ValueError, OverflowError):
        raise ValueError(
            f"--quant {text!r} is no parameter word; expected a number such as 0x7fb03f000000, several by comma, or a "
            f".bin or .npy file"
        ) from None


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
