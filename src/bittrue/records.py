"""Reads the CSV files of facts of a vendor's room: products, types, rules, shapes; no facts live in code."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

__all__ = ["key", "records"]


@cache
def records(room: str, name: str) -> tuple[dict[str, str], ...]:
    """Return the rows of ``ROOM/data/NAME.csv``, read once."""
    path = Path(__file__).parent / room / "data" / f"{name}.csv"
    with open(path, encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def key(name: str) -> str:
    """Return a name without what people write differently: case, spaces, hyphens, underscores, slashes, dots."""
    return "".join(c for c in name.casefold() if c.isalnum())
