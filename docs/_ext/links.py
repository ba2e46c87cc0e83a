"""Check the links of the built site: every page, file and anchor that a page points to must be there.

    python docs/_ext/links.py build/docs

Links to other hosts are counted, and checked by `make linkcheck`, which needs the network.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["broken"]

#: Pages that the theme makes, whose own links are its business.
_THEME = ("genindex.html", "search.html", "py-modindex.html")


class _Page(HTMLParser):
    """What a page points to, and what can be pointed to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src") and tag != "link":
                self.links.add(value)
            elif value and name in ("id", "name"):
                self.anchors.add(value)


@cache
def _page(path: Path) -> _Page:
    return _Page(path)


def broken(root: Path) -> tuple[list[str], int]:
    """Return the broken links of a built site, "page: link", and the number of links to other hosts."""
    found, outside = [], set()
    for path in sorted(root.rglob("*.html")):
        if path.name in _THEME or "_static" in path.parts:
            continue
        for link in sorted(_page(path).links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                outside.add(link)
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = target.is_file()
            if there and parts.fragment and target.suffix == ".html" and target.name not in _THEME:
                there = unquote(parts.fragment) in _page(target).anchors
            if not there:
                found.append(f"{path.relative_to(root)}: {link}")
    return found, len(outside)


if __name__ == "__main__":
    bad, elsewhere = broken(Path(sys.argv[1]).resolve())
    print("\n".join(bad) or f"all links inside of the site lead somewhere ({elsewhere} to other hosts: make linkcheck)")
    sys.exit(bool(bad))
