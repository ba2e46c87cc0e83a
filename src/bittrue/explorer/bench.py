"""Rows of `bittrue bench` for the explorer: the page with all that it loads, and what each action asks for."""

from __future__ import annotations

import http.client
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import util
from statistics import median
from typing import Any

from ..bench.measure import Row, Settings

__all__ = ["rows"]

_GROUP = "explorer, on this machine"
_PAGE_GOAL, _ACTION_GOAL = {"seconds": 0.3}, {"seconds": 0.05}

#: What the page asks for after each action; {n} is another number in every round.
_ACTIONS: dict[str, tuple[str, ...]] = {
    "type a value": ("number?format=hifloat8&value=1.{n}", "line?format=hifloat8&value=1.{n}"),
    "type a value, two formats": (
        "number?format=half&second=float64&value=1.{n}",
        "line?format=half&second=float64&value=1.{n}",
    ),
    "flip a bit": (
        "number?format=float32&code=0x3f8{n:05x}&flip=3",
        "number?format=float32&code=0x3f8{n:05x}",
        "line?format=float32&code=0x3f8{n:05x}",
    ),
    "zoom out on the line": ("line?format=float32&at=0&zoom={z}&move=out", "line?format=float32&at=0&zoom={z}"),
    "map of all codes": ("map?format=hifloat8",),
    "block of 32 values": ("block?block=mxfp8_e4m3&values=1.{n},-3.5,0.{n}",),
    "Fixpipe": ("fixpipe?product=a2&acc={n}&word=0x7fb03f000000",),
    "rule of a cast": ("rule?product=950&src=float&dst=hifloat8_t&value=1.{n}", "srs?srs={n}"),
}
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


def rows() -> list[Row]:
    """Return the rows; none without the explorer's packages, no browser's without Playwright and Chromium."""
    if any(util.find_spec(name) is None for name in ("starlette", "uvicorn", "jinja2")):
        return []
    found = [Row(_GROUP, "load the page and all its files", _load, _PAGE_GOAL)]
    found += [_action(name, paths) for name, paths in _ACTIONS.items()]
    if util.find_spec("playwright") is not None and _chromium() is not None:
        found.append(Row(_GROUP, "load and draw the page in Chromium", _drawn, _PAGE_GOAL))
        found.append(Row(_GROUP, "flip a bit in Chromium, until drawn", _flipped, _ACTION_GOAL))
    return found


@contextmanager
def _served() -> Iterator[int]:
    """Serve the explorer in a thread; yields the port."""
    import uvicorn

    from .app import create_app
    from .server import listen

    listening: socket.socket = listen(0)
    server = uvicorn.Server(uvicorn.Config(create_app(), log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def _get(connection: http.client.HTTPConnection, path: str) -> str:
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status != 200:
        raise RuntimeError(f"{path} gives {answer.status}: {text[:200]}")
    return text


def _load(settings: Settings) -> dict[str, float]:
    """Seconds for the page, its files one after the other, and its first questions, over one connection."""
    first = [f"/api/{path.format(n=3)}" for path in _ACTIONS["type a value"]]
    with _served() as port:
        times = []
        for _ in range(settings.repeat + 1):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            started = time.perf_counter()
            waiting, seen = ["/"], set()
            while waiting:
                path = waiting.pop()
                text = _get(connection, path)
                seen.add(path)
                named = re.findall(r'(?:src|href)="(/static/[\w.]+)"', text)
                if path.endswith(".js"):
                    named += [f"/static/{name}" for name in re.findall(r'from "\./([\w.]+)"', text)]
                waiting += [name for name in dict.fromkeys(named) if name not in seen and name not in waiting]
            for path in first:
                _get(connection, path)
            times.append(time.perf_counter() - started)
            connection.close()
    return {"seconds": median(times[1:])}


def _action(name: str, paths: Sequence[str]) -> Row:
    def measure(settings: Settings) -> dict[str, float]:
        with _served() as port:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            times = []
            for n in range(4 * settings.repeat + 1):
                asked = [f"/api/{path.format(n=1000 + 37 * n, z=n % 100 - 50)}" for path in paths]
                started = time.perf_counter()
                for path in asked:
                    _get(connection, path)
                times.append(time.perf_counter() - started)
            connection.close()
        return {"seconds": median(times[1:])}  # the first one compiles or loads kernels

    return Row(_GROUP, name, measure, _ACTION_GOAL)


def _chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path is not None), None)


@contextmanager
def _browser() -> Iterator[tuple[Any, str]]:
    """Open a page of a headless Chromium; yields it and the explorer's address."""
    from playwright.sync_api import sync_playwright

    with _served() as port, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=_FLAGS)
        try:
            yield browser.new_page(viewport={"width": 1200, "height": 900}), f"http://127.0.0.1:{port}/"
        finally:
            browser.close()


def _drawn(settings: Settings) -> dict[str, float]:
    """Seconds from the navigation's start to the drawn page, by the browser's own clock; its cache is off."""
    with _browser() as (page, address):
        page.context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})
        times = []
        for _ in range(settings.repeat + 1):
            page.goto("about:blank")
            page.goto(address)
            page.wait_for_selector("body[data-ready]")
            times.append(page.evaluate("performance.getEntriesByName('drawn')[0].startTime") / 1000)
    return {"seconds": median(times[1:])}


def _flipped(settings: Settings) -> dict[str, float]:
    """Seconds from a press on a bit to the drawing, by the browser's own clock."""
    with _browser() as (page, address):
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        times = []
        for n in range(4 * settings.repeat + 1):
            turn = int(page.get_attribute("body", "data-ready"))
            page.evaluate(
                "bit => { performance.clearMarks(); performance.mark('pressed');"
                " document.querySelector(`[data-card=first] [data-bit='${bit}']`).click(); }",
                str(n % 8),
            )
            page.wait_for_selector(f"body[data-ready='{turn + 1}']")
            times.append(page.evaluate("performance.measure('flip', 'pressed', 'drawn').duration") / 1000)
    return {"seconds": median(times[1:])}
