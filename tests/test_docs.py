"""Every block of code in the documentation runs, in both languages; the site builds; its links lead somewhere."""

from __future__ import annotations

import contextvars
import json
import os
import re
import subprocess
import sys
from urllib.parse import unquote

import pages
import pytest

from bittrue import formats
from bittrue.cli import main

ROOT = pages.ROOT

#: What the site's build computes is tested where it comes from.
COMPUTED = ("docs/formats/", "docs/project/", "docs/reference/")

PAGES = sorted(
    str(path.relative_to(ROOT).as_posix())
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"))
    if not path.relative_to(ROOT).as_posix().startswith(COMPUTED)
)
CHINESE = {
    "README.zh-CN.md": "README.md",
    **{f"docs/zh/{name}.md": f"docs/{name}.md" for name in ("start", "ascend", "fixpipe")},
}


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.fixture
def registry(monkeypatch):
    """The catalogue as it was: a page may register a format."""
    module = sys.modules["bittrue.formats"]
    monkeypatch.setattr(module, "_BY_NAME", dict(module._BY_NAME))
    for name, aliases in dict(module.ALIASES).items():
        monkeypatch.setitem(module.ALIASES, name, aliases)
    yield
    assert formats()


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_does_what_the_page_says(page, tmp_path, monkeypatch, registry):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(pages.WIDTH))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # A page may turn the registers of a tile: they are of its context.
    try:
        contextvars.copy_context().run(pages.run, text(page), page, main)
    except pages.Missing as rest:
        pytest.skip(str(rest))


@pytest.mark.parametrize("page", CHINESE)
def test_chinese_pages_have_the_same_code(page):
    def code(page):
        shown = [b for b in pages.blocks(text(page)) if b.language in ("python", "console")]
        return [(b.language, pages.without_comments(b.code)) for b in shown]

    assert code(page) == code(CHINESE[page])


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere_on_github(page):
    """Relative links, and anchors in pages that are in the repository (GitHub and the site make them alike)."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text(page), flags=re.DOTALL)
    for target in re.findall(r'\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"', prose):
        target = "".join(target)
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (ROOT / page).parent / unquote(path) if path else ROOT / page
        name = there.resolve().relative_to(ROOT).as_posix()
        if name.startswith(COMPUTED):  # only the site has it; its own links are checked there
            continue
        assert there.exists(), f"{page}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}, target


def test_the_demo_prints_what_the_readme_shows():
    run = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "digits" / "demo.py")],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "COLUMNS": str(pages.WIDTH)}, check=True,
    )  # fmt: skip
    shown = next(b for b in pages.blocks(text("README.md")) if b.language == "text")
    pages.check_output(pages.Command("make demo", f"...{shown.code}...", shown.line), run.stdout)


def test_the_site_builds_without_warnings(tmp_path):
    for package in ("sphinx", "myst_parser", "furo", "sphinx_copybutton", "matplotlib"):
        pytest.importorskip(package, reason=f"{package} is not installed; `make docs` installs it")
    built = tmp_path / "site"
    run = subprocess.run(
        [sys.executable, "-m", "sphinx.cmd.build", "-q", "-n", "-W", "--keep-going", str(ROOT / "docs"), str(built)],
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert run.returncode == 0 and not run.stderr, run.stderr
    for page in ("index", "start", "zh/start", "reference/cli", "reference/rules", "reference/api/bittrue", "evidence"):
        assert (built / f"{page}.html").is_file()
    shown = (built / "reference" / "api" / "bittrue.html").read_text(encoding="utf-8")
    assert 'id="bittrue.encode"' in shown and 'id="bittrue.format"' in shown
    for f in [*formats(), *formats("block")]:
        page = (built / "formats" / f"{f.name}.html").read_text(encoding="utf-8")
        assert all(f">{alias}<" in page for alias in f.aliases)
        assert ("<h2>Codes<" in page) == (f.bits <= 8 and f.kind not in ("block", "complex"))
    check = [sys.executable, str(ROOT / "docs" / "_ext" / "links.py"), str(built)]
    links = subprocess.run(check, capture_output=True, text=True, check=False)
    assert links.returncode == 0, links.stdout
    (built / "start.html").unlink()
    links = subprocess.run(check, capture_output=True, text=True, check=False)
    assert links.returncode == 1 and "index.html: start.html" in links.stdout


def test_a_host_out_of_reach_is_no_broken_link(tmp_path):
    def judge(*findings):
        rows = [{"filename": "a.md", "lineno": 1, "uri": "https://example.org", **f} for f in findings]
        (tmp_path / "output.json").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        script = [sys.executable, str(ROOT / "docs" / "_ext" / "links.py"), "--outside", str(tmp_path / "output.json")]
        run = subprocess.run(script, capture_output=True, text=True, check=False)
        return run.returncode, run.stdout

    away = {"status": "broken", "info": "Max retries exceeded (Caused by NameResolutionError(...))"}
    gone = {"status": "broken", "info": "404 Client Error: Not Found"}
    code, said = judge(away, {"status": "working", "info": ""})
    assert code == 0 and said.startswith("1 links to other hosts work; 1 not checked")
    code, said = judge(away, gone)
    assert code == 1 and said.startswith("a.md:1: https://example.org: 404 Client Error")


# --- the reader of pages itself ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("```python\n>>> 1 + 1\n3\n```", "Expected:\n    3\nGot:\n    2"),
        ("```python\nx = [1, 2]  # [1, 3]\n```", r"\[1, 2\], where the comment says \[1, 3\]"),
        ("```console\n$ echo a b\na c\n```", "echo a b"),
        ("```console\n$ bittrue formats nothing\n```", "format 'nothing' is not known"),
        ("```console\n$ cat <<'EOF'\nx\nEOF\ny\n```", "cat"),
    ],
)
def test_a_page_that_is_wrong_fails(page, complaint):
    with pytest.raises(AssertionError, match=complaint):
        pages.run(page, "page", main)


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("```sh\nls\n```", "'sh' is not python, console or text"),
        ("Text\n\n    make test\n", "line 3: code stands in a fence"),
        ("```text\nmake test  # lint\n```", "line 2: commands stand in a console block"),
        ("<!-- not run: -->\n```python\n1\n```", "say why"),
    ],
)
def test_code_that_would_not_run_is_refused(page, complaint):
    with pytest.raises(ValueError, match=complaint):
        list(pages.blocks(page))


def test_a_page_that_is_right_passes():
    page = (
        "<!-- setup\nk = 2\n-->\n```python\n>>> k\n2\n```\n```python\nx = k + 1  # 3: the sum\n```\n"
        "```console\n$ cat <<'EOF'\nx\nEOF\nx\n$ echo a; echo b; echo c\na\n...\nc\n```\n"
        "<!-- not run: it would fail -->\n```python\n1 / 0\n```\n```text\nnothing\n```\n"
    )
    assert pages.run(page, "page", main) == 4


def test_a_page_stops_where_a_package_is_missing():
    with pytest.raises(pages.Missing, match="page from line 4 on needs no_such_package"):
        pages.run("```python\n1\n```\n<!-- needs: no_such_package -->\n```python\n1 / 0\n```\n", "page", main)
