"""What the HTML pages of `compare` and `study` share: one file each, with its styles inside."""

from collections.abc import Sequence
from string import Template

__all__ = ["document", "svg_text", "table"]

_DOCUMENT = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<style>
:root { --ground: #fcfcfb; --card: #fff; --ink: #1c2024; --soft: #5d6670; --line: #d9dde1; --bar: #2f6fb5;
  --heat: 47, 111, 181; --bad: #b3261e; --badground: #fdecea; --good: #1b6e3c; --goodground: #e6f4ea; --mark: #ffe08a; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #15181b; --card: #1d2125; --ink: #e6e8ea; --soft: #9aa4ad; --line: #363c42; --bar: #6ba6e8;
    --heat: 107, 166, 232; --bad: #ff9a92; --badground: #3b1f1d; --good: #7fd6a0; --goodground: #17321f;
    --mark: #6a5512; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1.25rem 3rem; max-width: 66rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 0 0 .6rem; overflow-wrap: anywhere; }
h3 { font-size: .95rem; margin: 0 0 .4rem; color: var(--soft); font-weight: 600; }
p { margin: .3rem 0; } .soft { color: var(--soft); } code, td, .mono { font-variant-numeric: tabular-nums; }
code, .mono { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .86em; overflow-wrap: anywhere; }
.verdict { border-radius: .5rem; padding: .8rem 1rem; margin: 1rem 0; }
.verdict strong { margin-right: .5rem; }
.pass { background: var(--goodground); color: var(--good); } .fail { background: var(--badground); color: var(--bad); }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.1rem;
  margin: 1rem 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; margin: .2rem 0 1rem; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .85em; }
th, td { padding: .22rem .7rem .22rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th.r, td.r { text-align: right; } td.no { color: var(--bad); } td.yes { color: var(--good); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .5rem 1rem;
  margin: .6rem 0 1rem; }
.figures div span { display: block; color: var(--soft); font-size: .8em; }
.drawings { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1rem 1.6rem; }
figure { margin: 0 0 .6rem; } svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; } svg .axis { stroke: var(--line); }
svg .bar { fill: var(--bar); } svg .frame { fill: none; stroke: var(--line); } svg .dot { fill: var(--bar); }
mark { background: var(--mark); color: inherit; border-radius: 2px; }
.bits { white-space: nowrap; } .small table { width: auto; } ul { margin: .2rem 0 1rem; padding-left: 1.2rem; }
@media print { :root { --ground: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb; --bar: #2f6fb5;
    --heat: 47, 111, 181; --bad: #8f1d17; --badground: #fff; --good: #14532d; --goodground: #fff; --mark: #ffe08a; }
  body { max-width: none; padding: 0; font-size: 11px; } .verdict { border: 1px solid currentColor; }
  section { break-inside: auto; border: 0; padding: 0; } figure, tr, .figures { break-inside: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
$style</style>
</head>
<body>
$body</body>
</html>
""")


def document(title: str, body: str, style: str = "") -> str:
    """Return a page; `style` adds to the common one."""
    return _DOCUMENT.substitute(title=title, body=body, style=style)


def svg_text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    """Return text in a drawing; `text` is HTML."""
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'>{text}</text>"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return a table of HTML cells; columns in `right` are flush right."""

    def cells(tag: str, texts: Sequence[str]) -> str:
        return "".join(f"<{tag}{' class=r' if k in right else ''}>{t}</{tag}>" for k, t in enumerate(texts))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<div class=wide><table><thead><tr>{cells('th', heads)}</tr></thead><tbody>{body}</tbody></table></div>"
