"""Check the links of the built site: every page, file and anchor that a page points to must be there.

    python docs/_ext/links.py build/docs

Links to other hosts are counted. `make linkcheck` lets Sphinx follow them, and reads its findings with

    python docs/_ext/links.py --outside build/linkcheck/output.json

A host that cannot be reached from here, as without a network, says nothing about its links: they count as not checked.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["broken", "outside"]

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


#: What the errors of a host say that could not be asked.
_UNREACHABLE = ("NameResolutionError", "ConnectTimeout", "Connection refused", "Network is unreachable", "ProxyError")


def outside(findings: Path) -> tuple[list[str], int, int]:
    """Return the links to other hosts that are broken, how many work, and how many could not be checked."""
    rows = [json.loads(line) for line in findings.read_text(encoding="utf-8").splitlines()]
    bad = [row for row in rows if row["status"] in ("broken", "timeout")]
    unasked = [row for row in bad if row["status"] == "timeout" or any(e in row["info"] for e in _UNREACHABLE)]
    found = [f"{row['filename']}:{row['lineno']}: {row['uri']}: {row['info']}" for row in bad if row not in unasked]
    return found, sum(row["status"] in ("working", "redirected") for row in rows), len(unasked)


if __name__ == "__main__":
    if sys.argv[1] == "--outside":
        bad, good, unasked = outside(Path(sys.argv[2]))
        said = f"{good} links to other hosts work; {unasked} not checked: their hosts cannot be reached from here"
        print("\n".join([*bad, said]))
    else:
        bad, elsewhere = broken(Path(sys.argv[1]).resolve())
        said = f"all links inside of the site lead somewhere ({elsewhere} to other hosts: make linkcheck)"
        print("\n".join(bad) or said)
    sys.exit(bool(bad))
