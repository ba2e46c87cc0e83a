"""Sphinx extension: the pages that are computed from the package, so that they cannot drift from it.

Before Sphinx reads its sources this writes, and git ignores,

- `reference/api/`: a page for each room, from its public names and their docstrings;
- `reference/cli.md`: from the program's own description of its commands;
- `reference/rules.md`: from the rule books of the hardware;
- `formats/`: a page for each format of the catalogue;
- `project/`: CONTRIBUTING.md and CHANGELOG.md, which lie outside of the sources.

A page that has not changed is not written, so that a repeated build stays quick.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bittrue

from . import api, cli, formats, rules

__all__ = ["setup"]

_PROJECT = ("CONTRIBUTING.md", "CHANGELOG.md")


def _pages(root: Path, absent: list[str]) -> Iterator[tuple[str, str]]:
    """Yield name and text of every computed page."""
    yield from api.pages(absent)
    yield "reference/cli.md", cli.page()
    yield "reference/rules.md", rules.page()
    yield from formats.pages()
    for name in _PROJECT:
        text = (root / name).read_text(encoding="utf-8")
        yield f"project/{name.lower()}", text.replace("](docs/", "](../")


def _write(app: Any) -> None:
    source = Path(app.srcdir)
    written = set()
    for name, text in _pages(source.parent, app.config.autodoc_mock_imports):
        path = source / name
        written.add(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for folder in {path.parent for path in written} - {source / "reference"}:
        for stale in set(folder.glob("*.*")) - written:  # a format or a room that is gone
            stale.unlink()


def _links(app: Any, name: str, text: list[str]) -> None:
    """Let links to files outside of the sources, which GitHub follows, lead to their pages."""
    for file in _PROJECT:
        text[0] = text[0].replace(f"](../{file})", f"](project/{file.lower()})")


_LITERAL = re.compile(r"(``.*?``)")
_PLAIN = re.compile(r"\||(?<=[\w)])\*(?=\*[\w(-])|(?<=[\w)]\*)\*(?=[\w(-])")
_PLURAL = re.compile(r"((?<!`)`[^`\s][^`]*`)(?=\w)")

_NAME = re.compile(r"(?<![`:])`(\w+)`(?!`)")
_TOGETHER = re.compile(r":(ivar|vartype) (\w+(?:, \w+)+):(.*)")
_COLON = "\N{RATIO}"


def _property(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Hide a colon in the first line of a property from Napoleon, which would take what is before it for a type."""
    if what in ("property", "attribute", "data") and lines:
        lines[0] = lines[0].replace(":", _COLON)


def _docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Write as reStructuredText wants it what docstrings say plainly.

    |x| is no substitution, `Array`s a plural, a parameter's name no link to a function of that name, and attributes
    described together are several.
    """
    own = _parameters(thing)
    example = False
    written = []
    for line in lines:
        line = line.replace(_COLON, ":")
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = _LITERAL.split(line)
            parts[::2] = [_PLURAL.sub(r"\1\\ ", _PLAIN.sub(r"\\\g<0>", part)) for part in parts[::2]]
            line = _NAME.sub(lambda found: f"`{found[0]}`" if found[1] in own else found[0], "".join(parts))
        together = _TOGETHER.match(line)
        if together:
            field, names, rest = together.groups()
            *first, last = names.split(", ")
            written += [f":{field} {one}:{rest if field == 'vartype' else ''}" for one in first]
            line = f":{field} {last}:{rest}"
        written.append(line)
    lines[:] = written


def _parameters(thing: Any) -> set[str]:
    try:
        return set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return set()


def _types(app: Any, doctree: Any) -> None:
    """Types of parameters are words: link only what is a class of the package, wherever it is named."""
    from sphinx.addnodes import pending_xref

    for node in list(doctree.findall(pending_xref)):
        target = node.get("reftarget", "")
        if node.get("refdomain") != "py" or "." in target:
            continue
        word = node.attributes.pop("refspecific", None) is not None  # Sphinx would take any name that ends like it
        if inspect.isclass(getattr(bittrue, target, None)):
            node["reftarget"] = f"bittrue.{target}"
        elif word and not target[:1].isupper():
            node.replace_self(node.children)


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", _write)
    app.connect("source-read", _links)
    app.connect("doctree-read", _types)
    app.connect("autodoc-process-docstring", _property, priority=400)  # before Napoleon
    app.connect("autodoc-process-docstring", _docstring)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
