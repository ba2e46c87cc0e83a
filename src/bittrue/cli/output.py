"""What all commands print with: consoles that suit pipes and terminals, plain tables, JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["COLOURS", "console", "middle", "print_json", "table"]

#: One colour for each field of a code, wherever it is drawn.
COLOURS = {
    "sign": "red",
    "dot": "magenta",
    "exponent": "green",
    "significand": "cyan",
    "magnitude": "cyan",
    "truth": "cyan",
}

_PIPE_WIDTH = 1000  # nothing is cut or wrapped for a reader that is a program


def console(stderr: bool = False) -> Console:
    """Return a console: as wide as the terminal (or COLUMNS), coloured on terminals only, never guessing at text."""
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # `main` knows what to do; Rich would exit with code 1

    stream = sys.stderr if stderr else sys.stdout
    piped = not stream.isatty() and not os.environ.get("COLUMNS", "").isdigit()
    return Screen(file=stream, width=_PIPE_WIDTH if piped else None, highlight=False, markup=False, soft_wrap=False)


def table(*columns: str, right: Iterable[str] = (), title: str | None = None, **options: Any) -> Table:
    """Return an empty table with one line under its headings; the columns named in `right` are right-aligned."""
    from rich import box
    from rich.table import Table

    made = Table(
        box=box.SIMPLE_HEAD,
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        show_edge=False,
        pad_edge=False,
        **{"padding": (0, 1), **options},
    )
    right = tuple(right)
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", no_wrap=True, overflow="ellipsis")
    return made


def middle(name: str, width: int) -> str:
    """Cut a tensor's name in its middle: both of its ends tell it from the others."""
    if len(name) <= width:
        return name
    left = (width - 2) // 3
    return f"{name[:left]}..{name[len(name) - (width - 2 - left):]}"


def print_json(data: object) -> None:
    """Write `data` as JSON; infinities and NaN must be strings already."""
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False) + "\n")
