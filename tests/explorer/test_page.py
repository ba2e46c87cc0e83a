"""The page in headless Chromium: typing, flipping, sharing, mistakes, colours, narrow screens, keys, and silence."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlparse

import pytest

VIEWS = ("number", "map", "block", "fixpipe", "rule")
READY = "body[data-ready]"


class Page:
    """A page of the explorer, and what was said and fetched while it was open."""

    def __init__(self, browser, address, **options):
        self.address = address
        self.context = browser.new_context(viewport={"width": 1200, "height": 900}, **options)
        self.page = self.context.new_page()
        self.said, self.fetched = [], []
        self.page.on("console", lambda m: self.said.append(m.text))
        self.page.on("pageerror", lambda e: self.said.append(str(e)))
        self.page.on("request", lambda r: self.fetched.append(r.url))
        self.page.set_default_timeout(20_000)

    def open(self, query=""):
        self.page.goto(self.address + query)
        self.page.wait_for_selector(READY)
        return self

    def __getattr__(self, name):
        return getattr(self.page, name)

    @property
    def state(self):
        return {name: texts[0] for name, texts in parse_qs(urlparse(self.page.url).query).items()}

    def until(self, selector, text):
        """Wait until an element says this."""
        self.page.locator(selector).filter(has_text=re.compile(f"^{re.escape(text)}$")).first.wait_for()

    def bits(self, card="first"):
        return "".join(self.page.locator(f"[data-card={card}] .bit").all_inner_texts())

    def light(self, element="body"):
        colour = self.page.evaluate(f"getComputedStyle(document.querySelector('{element}')).backgroundColor")
        red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
        return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


@pytest.fixture
def page(browser, address):
    opened = Page(browser, address)
    yield opened
    opened.context.close()


VALUE = "[data-card=first] .value"


def test_type_a_value(page):
    page.open("?format=float8_e4m3fn")
    page.fill("#value", "448")  # OCP FP8: the largest E4M3 is S.1111.110
    page.until(VALUE, "448")
    assert page.bits() == "01111110" and page.input_value("#code") == "0x7e"
    assert page.state == {"format": "float8_e4m3fn", "value": "448"}
    page.fill("#value", "1e6")
    page.locator("#roundings h3").first.wait_for()
    assert "beyond the range" in page.inner_text("#roundings") and page.bits() == "01111110"


def test_flip_a_bit(page):
    page.open("?value=1.25")  # hifloat8: sign 0, dot 0001, fraction 010
    assert page.bits() == "00001010"
    page.click("[data-card=first] [data-bit='7']")
    page.until(VALUE, "-1.25")
    page.click("[data-card=first] [data-bit='0']")
    page.until(VALUE, "-1.375")
    assert page.bits() == "10001011" and page.state == {"code": "0x8b"} and page.input_value("#value") == "-1.375"
    assert page.evaluate("document.activeElement.dataset.bit") == "0"  # the focus stays where it was
    page.go_back()
    page.until(VALUE, "-1.25")
    page.go_back()
    page.until(VALUE, "1.25")
    assert page.state == {"value": "1.25"}


def test_change_the_format_by_an_alias_and_compare(page):
    page.open("?value=1.3")
    page.fill("#format", "DT_FP16")
    page.until("[data-card=first] h2", "float16")
    assert page.bits() == "0011110100110011"  # 1.3 = 1.0100110011 | 0011...: half 0x3d33
    page.fill("#second", "fp8_e5m2")
    page.until("[data-card=second] h2", "float8_e5m2")
    assert page.bits("second") == "00111101" and page.locator("#line .row").count() == 2  # 1.25 = 0 01111 01
    assert "fp8_e5m2" in page.locator("#all-formats option[value=float8_e5m2]").inner_text().lower()


SHARED = [
    "?format=half&code=0x3555&second=bfloat16&at=0.333&zoom=-9",
    "?view=map&format=float4_e2m1fn&code=0x5",
    "?view=block&block=mx6&values=1%2C-3%2C0.5&rounding=floor",
    "?view=fixpipe&npu=Atlas+A2&qmode=VDEQF16&word=0x3f000000&acc=77&relu=1",
    "?view=rule&product=Atlas+A2&src=half&dst=int8_t&mode=CAST_CEIL&x=2.5&theme=dark",
]


def test_follow_a_shared_address(page, browser, address):
    """What one sees is what the other sees, and the address stays as it is."""
    fields = "[...document.querySelectorAll('section:not([hidden]) :is(input, select, textarea)')].map(f => f.value)"
    other = Page(browser, address)
    for query in SHARED:
        page.open(query)
        other.open("?" + urlparse(page.url).query)
        assert other.inner_text("main") == page.inner_text("main")
        assert other.evaluate(fields) == page.evaluate(fields)
        assert page.url.endswith(query)
    other.context.close()


def test_what_the_shared_addresses_show(page):
    page.open("?format=half&code=0x3555")  # the half nearest to 1/3: 1365 * 2^-12
    assert page.inner_text(VALUE) == "0.333251953125"
    page.open("?view=map&format=float4_e2m1fn&code=0x5")  # OCP MX: 0x5 is 3
    assert page.locator(".cell").count() == 16 and page.inner_text("#map-detail .value") == "3"
    page.open("?view=rule&product=Atlas+A2&src=half&dst=int8_t&mode=CAST_CEIL&x=2.5")
    assert "CAST_CEIL used" in page.inner_text("#rules") and "documented" in page.inner_text("#rules")


MISTAKES = [
    ("", "value", "1.x", "is not a number", "1.5"),
    ("", "format", "hifloat9", "did you mean 'hifloat8'", "half"),
    ("", "code", "0x1ff", "out of range", "0x1f"),
    ("?view=map", "map-format", "half", "16 bits", "int4"),
    ("?view=block", "values", "1,2,<b>", "is not a number", "1,2"),
    ("?view=fixpipe", "acc", "0.5", "not an int32", "5"),
    ("?view=rule", "x", "zero", "is not a number", "0"),
    ("?view=rule", "shift", "99", "-4 to 59", "9"),
]


@pytest.mark.parametrize("view", ["nothing", "constructor", "__proto__"])
def test_an_unknown_view_is_that_of_numbers(page, view):
    page.open(f"?view={view}")
    assert page.locator("section[data-view=number]").is_visible() and page.said == []


def test_a_mistake_is_said_beside_its_field(page):
    for query, field, text, said, right in MISTAKES:
        page.open(query)
        page.fill(f"#{field}", text)
        message = page.locator(f"#{field}-error")
        message.wait_for(state="visible")
        assert said in message.inner_text() and message.get_attribute("role") == "alert"
        assert page.get_attribute(f"#{field}", "aria-invalid") == "true"
        assert page.get_attribute(f"#{field}", "aria-describedby") == f"{field}-error"
        box, beside = page.locator(f"#{field}").bounding_box(), message.bounding_box()
        assert 0 <= beside["y"] - box["y"] - box["height"] < 12 and abs(beside["x"] - box["x"]) < 2
        page.fill(f"#{field}", right)
        message.wait_for(state="hidden")
        assert page.get_attribute(f"#{field}", "aria-invalid") is None


def test_light_and_dark(browser, address):
    for scheme, other in (("light", "dark"), ("dark", "light")):
        page = Page(browser, address, color_scheme=scheme).open()
        system = page.light()
        assert (system > 0.9) is (scheme == "light") and (system < 0.1) is (scheme == "dark")
        for expected in ("light", "dark", None):  # the button goes round: light, dark, as the system
            page.click("#theme")
            assert page.state.get("theme") == expected
            assert (page.light() > 0.5) is ((expected or scheme) == "light")
        page.emulate_media(color_scheme=other)  # the system changes while the page is open
        page.wait_for_selector(f"html[data-theme={other}]")
        assert (page.light() > 0.5) is (other == "light")
        page.open(f"?theme={other}")
        assert (page.light() > 0.5) is (other == "light")
        page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(browser, address, scheme):
    """WCAG 2.1 AA: 4.5 to 1, for the text of bits, badges, notes and fields on their own grounds."""
    page = Page(browser, address, color_scheme=scheme)
    for view in VIEWS:
        page.open(f"?view={view}&second=half&value=1e9")
        assert page.evaluate(CONTRAST) == [], view
    page.context.close()


CONTRAST = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (text) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const lum = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c[3] > 250) return c; } return [255, 255, 255]; };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.closest("svg, option") || e.classList.contains("visually-hidden")) continue;
    const [a, b] = [lum(rgb(getComputedStyle(e).color)), lum(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push(`${e.className || e.tagName} ${e.textContent.slice(0, 20)} ${ratio.toFixed(2)}`);
  }
  return found;
})()"""


def test_a_narrow_screen(page):
    page.set_viewport_size({"width": 360, "height": 780})
    for view in VIEWS:
        page.open(f"?view={view}&format=hifloat8&second=float64&value=0.1&block=mxfp8_e4m3")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        wide = """[...document.querySelectorAll('main *')].filter(e => e.checkVisibility() && !e.closest('.scroll, svg')
          && !e.classList.contains('visually-hidden') && e.getBoundingClientRect().right > innerWidth + 1)
          .map(e => e.tagName + '.' + e.className)"""
        assert page.evaluate(wide) == [], view
        assert page.locator("nav a").count() == 5 and page.locator("nav a[aria-current=page]").is_visible()


def test_keys(page):
    page.open("?value=1.25")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    order = []
    for _ in range(40):
        page.keyboard.press("Tab")
        at = page.evaluate("(e => e.id || e.dataset.bit || e.textContent)(document.activeElement)")
        order.append(at)
        ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert ring not in ("none", ""), at
        if at == "line":
            break
    names = ["format", "value", "code", "second", "7", "0", "line"]
    assert [order.index(name) for name in names] == sorted(order.index(name) for name in names)
    before = page.locator("#line-about").inner_text()
    page.keyboard.press("+")
    page.wait_for_url("**zoom=**")
    page.locator("#line-about").filter(has_not_text=before).wait_for()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Home")
    page.wait_for_url(lambda url: "zoom" not in url)
    page.focus("[data-card=first] [data-bit='7']")
    page.keyboard.press("Space")
    page.until(VALUE, "-1.25")
    page.keyboard.press("Enter")  # the focus is still on the bit
    page.until(VALUE, "1.25")


def test_keys_on_the_map(page):
    page.open("?view=map&format=hifloat8&code=0x08")
    page.focus(".cell.chosen")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")  # hifloat8 0x19: dot 001, exponent bit 1 (-1), fraction 001: 0.5625
    page.until("#map-detail .value", "0.5625")
    assert page.state["code"] == "0x19"
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "0x19: 0.5625"
    page.keyboard.press("End")
    page.until("#map-detail .value", "-0.0000457763671875")
    page.click("#map-detail a")
    page.until("[data-card=first] h2", "hifloat8")
    assert page.input_value("#code") == "0xff"


def test_points_on_the_line(page):
    page.open("?format=float4_e2m1fn&value=2.4")
    assert page.locator("#line .taken").count() == 1
    page.locator("#line .point", has_text="0x6").locator(".hit").click()  # OCP MX: 0x6 is 4
    page.until(VALUE, "4")
    assert page.state["code"] == "0x6"
    page.click("[data-move=all]")
    page.wait_for_url("**zoom=4**")
    page.wait_for_selector("#line .point >> nth=14")  # the fifteenth


def test_drag_the_line_and_follow_a_neighbour(page):
    page.open("?format=int8&value=5&at=5&zoom=4")
    box = page.locator("#line").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + 30
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] - box["width"] / 4, middle[1], steps=4)
    page.mouse.up()
    page.wait_for_url(lambda url: "at=9&" in url)  # a quarter of 16 to the right
    above = page.locator("dd a", has_text="0x06")
    assert parse_qs(urlparse(above.get_attribute("href")).query) == {"format": ["int8"], "code": ["0x06"]}
    above.click()
    page.until(VALUE, "6")
    assert page.title() == "0x06 in int8 - bittrue explorer"


def test_a_word_of_fixpipe(page):
    page.open("?view=fixpipe&npu=Atlas+A2&word=0x3f000000&acc=7")  # 7 * 0.5 = 3.5: 4, uint8
    assert page.inner_text(".walk .end .step-value") == "4" and "uint8" in page.inner_text(".walk .end")
    page.click("[data-bit='46']")
    page.until(".walk .end .step-name", "int8")
    page.fill("#offset", "-3")
    page.keyboard.press("Tab")
    page.until(".walk .end .step-value", "1")
    assert int(page.state["word"], 16) == 0x3F000000 | 1 << 46 | 509 << 37
    page.fill("#offset", "999")
    page.keyboard.press("Tab")
    page.locator("#offset-error").wait_for(state="visible")
    page.select_option("#qmode", "DEQF16")
    page.until(".walk .end .step-name", "float16")
    assert page.inner_text(".walk .end .step-value") == "3.5"
    assert page.locator(".badge", has_text="not read").count() == 2


def test_a_block(page):
    page.open("?view=block")
    page.fill("#values", "1.5, -0.25")
    page.locator("tr.off").first.wait_for()
    assert page.locator(".byte-hex").all_inner_texts() == ["80", "fe", "60", "90", *["00"] * 14]  # see test_answers
    page.select_option("#block", "mxfp4")
    page.until("#blocks h2", "mxfp4")
    assert page.locator("#scale_rule").is_visible() and page.locator("#overflow").count() == 0
    page.select_option("#scale_rule", "ceil")
    page.wait_for_url("**scale_rule=ceil**")


def test_no_request_leaves_and_nothing_is_wrong(page):
    for view in VIEWS:
        page.open(f"?view={view}")
    page.click("nav a[data-view=number]")
    page.wait_for_selector("[data-card=first]")
    assert page.said == []
    assert page.fetched and all(url.startswith(page.address) for url in page.fetched)
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0 and page.context.cookies() == []


def test_names_for_screen_readers(page):
    for view in VIEWS:
        page.open(f"?view={view}&second=half")
        assert page.get_attribute("html", "lang") == "en" and "bittrue explorer" in page.title()
        nameless = """[...document.querySelectorAll('input, select, textarea, button, a, [tabindex="0"]')]
          .filter(e => e.checkVisibility())
          .filter(e => !(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim()))
          .map(e => e.outerHTML.slice(0, 80))"""
        assert page.evaluate(nameless) == []
        shown = "[...document.querySelectorAll('h1')].filter(e => e.checkVisibility()).length"
        assert page.evaluate(shown) == 1
        assert page.evaluate("[...document.querySelectorAll('img')].every(e => e.hasAttribute('alt'))")
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
        assert len(ids) == len(set(ids))
        assert page.locator("#status").inner_text()
    page.open("?value=1.25")
    first = page.get_by_role("button", name="bit 7, sign: 0")
    assert first.get_attribute("aria-pressed") == "false"
    assert page.locator("section:not([hidden])").get_by_label("Value", exact=True).input_value() == "1.25"
