"""The explorer's Starlette application: the page, its static files, and the questions under /api/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .fields import FieldError, Fields
from .records import ANSWERS, DEFAULTS, choices

__all__ = ["HOSTS", "create_app"]

_HERE = Path(__file__).parent

#: Host headers that are answered: a page of another name, which a DNS server points to this machine, is refused.
HOSTS = ("127.0.0.1", "localhost", "[::1]")

_NO_MODULES = ("app.js", "theme.js")  # the page itself loads these
_QUERY_LIMIT = 20_000  # characters
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class JsonResponse(Response):
    """Plain JSON in which no text can be taken for markup, whatever a browser makes of it."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes of a record."""
        text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        for sign in "<>&":
            text = text.replace(sign, f"\\u{ord(sign):04x}")
        return text.encode()


class _SafeHeaders:
    """Puts the headers on every response that forbid a page to load or to be framed by anything from elsewhere."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        await self.app(scope, receive, with_headers)


def create_app() -> Starlette:
    """Return the application; it keeps nothing between requests and writes nothing.

    Examples
    --------
    >>> [route.path for route in create_app().routes]
    ['/', '/api/{question}', '/static']
    """
    from .. import __version__

    pages = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    modules = sorted(file.name for file in (_HERE / "static").glob("*.js") if file.name not in _NO_MODULES)
    page = pages.get_template("index.html").render(
        version=__version__, defaults=DEFAULTS, modules=modules, **choices()
    )

    async def index(request: Request) -> Response:
        return HTMLResponse(page)

    return Starlette(
        routes=[
            Route("/", index),
            Route("/api/{question}", _answer),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ],
        middleware=[
            Middleware(_SafeHeaders),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False),
        ],
        exception_handlers={HTTPException: _failed},
    )


def _answer(request: Request) -> Response:
    """Answer one question; a mistake says in which field it is. (In a thread: a first cast may compile its kernel.)"""
    question = request.path_params["question"]
    if question not in ANSWERS:
        raise HTTPException(404)
    try:
        if len(request.url.query) > _QUERY_LIMIT:
            raise FieldError("", f"a request may have {_QUERY_LIMIT} characters")
        known, answer = ANSWERS[question]
        return JsonResponse(answer(Fields(request.query_params.multi_items(), known)))
    except FieldError as error:
        return JsonResponse({"field": error.field, "message": str(error)}, status_code=422)


async def _failed(request: Request, error: Exception) -> Response:
    """Say no more than the status."""
    assert isinstance(error, HTTPException)
    return JsonResponse({"field": "", "message": error.detail}, status_code=error.status_code, headers=error.headers)
