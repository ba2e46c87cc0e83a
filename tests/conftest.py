"""The headless Chromium of browser tests."""

from __future__ import annotations

import shutil

import pytest

_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@pytest.fixture(scope="module")  # Playwright's event loop runs as long as this lives: other modules have their own
def browser():
    """Return the system's Chromium, driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="drives the browser: pip install playwright")
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if binary is None:
        pytest.skip("there is no Chromium on this system: apt-get install chromium")
    with playwright.sync_playwright() as p:
        opened = p.chromium.launch(executable_path=binary, args=_FLAGS)
        yield opened
        opened.close()
