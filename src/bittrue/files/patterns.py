"""Shell patterns of tensor names."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from .base import Path

__all__ = ["matching"]


def matching(names: Sequence[str], patterns: str | Iterable[str], argument: str, path: Path) -> set[str]:
    """Return the names that match one of the patterns (``*``, ``?``, ``[...]``; case matters).

    Raises
    ------
    ValueError
        For a pattern that matches none; the message gives `argument` and `path`.

    Examples
    --------
    >>> sorted(matching(["a.bias", "a.weight", "b.bias"], "*.bias", "include", "m.npz"))
    ['a.bias', 'b.bias']
    """
    found: set[str] = set()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        matched = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
        if not matched:
            some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            raise ValueError(f"{argument}={pattern!r} matches no tensor of {path} ({some or 'it has none'})")
        found.update(matched)
    return found
