"""The HTML report: one file without any other, right in its numbers, and readable in a browser, dark and printed."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import bittrue as bt
from bittrue.files import ExistingFileError


def reports():
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((96, 160)) * np.exp2(rng.integers(-9, 6, (96, 160)))).astype(np.float32)
    golden = bt.array(x, "hifloat8")
    codes = golden.codes.copy()
    codes[:, 32:48] = bt.encode(x, "hifloat8", "trunc")[:, 32:48]
    codes[5, 7] = 0x80
    wide = bt.array(x, "bfloat16")
    name = "layers.0.<b>&attn"
    return bt.compare(
        {name: golden, "mlp": wide, "norm": wide},
        {name: bt.Array(codes, "hifloat8"), "mlp": bt.array(x, "bfloat16", "floor"), "norm": wide},
        "mere_mare",
    )


@pytest.fixture(scope="module")
def report():
    return reports()


@pytest.fixture(scope="module")
def text(report):
    return report.to_html()


class Checker(HTMLParser):
    """Notes tags that are not closed, and what would be fetched."""

    VOID = frozenset("meta line rect circle".split())

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.links = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [v for n, v in attributes if n in ("src", "href", "srcset", "data")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag, (tag, self.getpos())


def test_well_formed_and_self_contained(text):
    page = Checker()
    page.feed(text)
    assert page.open == [] and page.links == []
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert "http" not in text and "url(" not in text and "@import" not in text
    assert len(text) < 1 << 20


def test_names_are_escaped(text):
    assert "layers.0.&lt;b&gt;&amp;attn" in text and "<b>&attn" not in text


def test_figures_are_those_of_the_report(report, text):
    for t in report.tensors[:2]:
        assert f"{t.figures.mismatches:,}" in text and f"{t.figures.mean_rel:.4g}" in text
        for m in t.worst:
            assert f"[{', '.join(map(str, m.index))}]" in text
    assert "NaN beside numbers" in text and "32..47" in text


def test_light_dark_and_print(text):
    assert "prefers-color-scheme: dark" in text and "@media print" in text


def test_a_pass_and_writing(tmp_path):
    x = np.zeros(4, np.float32)
    path = tmp_path / "r.html"
    assert "PASS" in bt.compare(x, x).to_html(path)
    assert path.read_text(encoding="utf-8").count("<section>") == 1
    with pytest.raises(ExistingFileError):
        bt.compare(x, x).to_html(path, force=False)


def test_in_chromium(tmp_path, report, browser):
    path = tmp_path / "report.html"
    report.to_html(path)
    shots = Path(tmp_path)
    grounds = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme, viewport={"width": 1100, "height": 900})
        said = []
        page.on("console", lambda m, said=said: said.append(m.text))
        page.on("pageerror", lambda e, said=said: said.append(str(e)))
        fetched = []
        page.on("request", lambda r, fetched=fetched: fetched.append(r.url))
        page.goto(path.as_uri())
        assert said == [] and fetched == [path.as_uri()]
        assert page.locator("h1").inner_text() == "Comparison of golden and actual data"
        assert page.locator(".verdict").inner_text().startswith("FAIL")
        assert page.locator("section").count() == 3
        assert page.locator("svg").count() >= 8
        grounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        # nothing is wider than the page, and every drawing and every bar has a size
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        wide = "[...document.querySelectorAll('svg')].every(s => s.getBoundingClientRect().width > 200)"
        assert page.evaluate(wide)
        assert page.evaluate("[...document.querySelectorAll('rect.bar')].every(r => r.getBBox().height > 0)")
        # text stands out from its ground
        ink = page.evaluate("getComputedStyle(document.body).color")
        assert abs(_light(ink) - _light(grounds[scheme])) > 0.6
        page.screenshot(path=shots / f"{scheme}.png", full_page=True)
        assert (shots / f"{scheme}.png").stat().st_size > 20_000
    assert _light(grounds["dark"]) < 0.3 < 0.7 < _light(grounds["light"])
    page.emulate_media(media="print")
    assert _light(page.evaluate("getComputedStyle(document.body).backgroundColor")) > 0.99
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF") and len(pdf) > 20_000
    narrow = browser.new_page(viewport={"width": 420, "height": 800})
    narrow.goto(path.as_uri())
    assert narrow.evaluate("document.documentElement.scrollWidth <= innerWidth")


def _light(colour):
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255
