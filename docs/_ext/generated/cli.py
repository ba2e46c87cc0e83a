"""The page on the command line: what Typer's documentation command says of the program, with its examples as code."""

from __future__ import annotations

import html
import re
import subprocess
import sys

__all__ = ["page"]


def _summaries(text: str) -> dict[str, str]:
    """Return the first sentence of each command, by its full name (Typer cuts them short in its lists)."""
    found = re.findall(r"^#+ `(bittrue [^`]+)`\n\n(.+)$", text, re.MULTILINE)
    return {name: line.split("; ")[0].rstrip(".") for name, line in found}


def _example(match: re.Match[str]) -> str:
    lines = "\n".join(f"$ {line.strip()}" for line in match[1].split(" / "))
    return f"**Example**:\n\n```console\n{lines}\n```"


def page() -> str:
    """Return the text of the page."""
    run = subprocess.run(
        [sys.executable, "-m", "typer", "bittrue.cli.commands", "utils", "docs", "--name", "bittrue"],
        capture_output=True, text=True, encoding="utf-8", check=True,
    )  # fmt: skip
    text = html.unescape(run.stdout).replace("# `bittrue`\n", "# Command line\n", 1)
    summaries = _summaries(text)
    command = "bittrue"
    lines = []
    for line in text.splitlines():
        heading = re.match(r"#+ `(bittrue [^`]+)`", line)
        if heading:
            command = heading[1]
        listed = re.fullmatch(r"\* `(\w+)`: .*", line)
        full = f"{command} {listed[1]}" if listed else ""
        if full in summaries:
            line = f"* [`{full}`](#{full.replace(' ', '-')}): {summaries[full]}"
        lines.append(line)
    text = "\n".join(lines) + "\n"
    text = re.sub(r"^Examples?: (.+)$", _example, text, flags=re.MULTILINE)
    intro = (
        "Exit codes: 0; 1 where a comparison fails or nothing explains a dump; 2 for a mistake, with one line on "
        "stderr; 130 when interrupted. Colours only on a terminal, and never where `NO_COLOR` is set. "
        "`BITTRUE_TRACEBACK=1` shows where an error comes from.\n\n**Usage**"
    )
    return text.replace("**Usage**", intro, 1)
