"""Reads the CSV files of facts beside it (`data/`): architectures, element types, accumulators, shapes, ports."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

__all__ = ["key", "records"]

_FOLDER = Path(__file__).parent / "data"


@cache
def records(name: str) -> tuple[dict[str, str], ...]:
    """Return the rows of ``data/NAME.csv``, read once."""
    with open(_FOLDER / f"{name}.csv", encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def key(name: str) -> str:
    """Return a name without what people write differently: case, spaces, hyphens, underscores."""
    return "".join(c for c in name.casefold() if c.isalnum())
