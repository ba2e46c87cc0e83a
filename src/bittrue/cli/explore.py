"""`bittrue explore`: the explorer's server, and what is missing where it cannot run."""

from __future__ import annotations

import importlib.util
from urllib.parse import urlencode

from ..formats import format as find_format
from ..kinds.block import BlockFormat

__all__ = ["explore"]

_NEEDS = ("starlette", "uvicorn", "jinja2")


def explore(format: str | None, value: str | None, port: int | None, browser: bool) -> None:
    """Serve the explorer to this machine until Ctrl-C; the page opens with a format and a value, if given."""
    missing = [name for name in _NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f"the explorer needs {', '.join(missing)}: pip install 'bittrue[explorer]'")
    from ..explorer.server import DEFAULT_PORT, serve

    serve(DEFAULT_PORT if port is None else port, browser, lambda line: print(line, flush=True), _state(format, value))


def _state(format: str | None, value: str | None) -> str:
    """Return the address of a page that shows a format and a value or code."""
    if format is None:
        return ""
    found = find_format(format)
    if isinstance(found, BlockFormat):
        state = {"view": "block", "block": found.name, "values": value}
    else:
        is_code = value is not None and value.lower().startswith(("0x", "0b")) and "p" not in value.lower()
        state = {"format": found.name, "code" if is_code else "value": value}
    return "?" + urlencode({name: text for name, text in state.items() if text is not None})
