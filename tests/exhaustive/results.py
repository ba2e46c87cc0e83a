"""The results of exhaustive runs: a JSON file with a row for each job, and the tables of docs/proof.md made from it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from oracles.disagreements import TABLE

from .jobs import Job, Outcome
from .steps import DETERMINISTIC

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests/data/exhaustive.json"
PAGES = (ROOT / "docs/proof.md", ROOT / "docs/evidence.md")

#: What a conversion's bits depend on; a result counts for this text only.
_SOURCES = (
    "rounding.py formats.py exact.py tables.py plans.py codec.py parse.py kinds/base.py kinds/real.py kernels/ops.py "
    "kernels/memory.py kernels/encode.py kernels/decode.py kernels/integer.py kernels/stochastic.py"
).split()

Rows = dict[str, dict[str, Any]]

_MODES = [m.value for m in DETERMINISTIC]
_SOURCE_ORDER = ("float32", "float16", "bfloat16", "float64")


def digest() -> str:
    """Return a short hash of the code that converts."""
    text = b"".join((ROOT / "src/bittrue" / name).read_bytes() for name in _SOURCES)
    return hashlib.sha256(text).hexdigest()[:12]


def commit() -> str:
    """Return the commit at hand, with a plus sign where the code that converts has changed since; "" without git."""
    files = [f"src/bittrue/{name}" for name in _SOURCES]
    head, changed = (
        subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
        for command in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--", *files])
    )
    return head + "+" * bool(changed)


def load(path: Path) -> Rows:
    """Read the rows, by key; none where there is no file yet."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def save(path: Path, rows: Rows) -> None:
    """Replace the file as a whole, a row on each line."""
    lines = [f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in sorted(rows.items())]
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    os.replace(draft, path)


def keep(path: Path, key: str, row: dict[str, Any]) -> None:
    """Add a row to the file; other processes may do so at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        save(path, {**load(path), key: row})


def row(job: Job, outcome: Outcome, parts: int, **more: Any) -> dict[str, Any]:
    """Return the row of a job that ran `parts` of its parts."""
    return {
        "source": job.source,
        "target": job.target,
        "rounding": job.rounding,
        "overflow": job.overflow,
        "oracle": job.oracle,
        "parts": parts,
        "of": job.parts,
        "inputs": outcome.inputs,
        "differences": outcome.differences,
        "explained": outcome.explained,
        "example": outcome.example,
        **more,
    }


def done(row: dict[str, Any] | None, code: str | None) -> bool:
    """Whether a row is complete, of this code (None: of any), and without an unexplained difference."""
    if row is None or code not in (None, row["digest"]):
        return False
    return bool(row["parts"] == row["of"] and not row["differences"])


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def _many(row: dict[str, Any]) -> str:
    return "2^32" if row["inputs"] == 1 << 32 else _grouped(row["inputs"])


def _modes(names: Iterable[str]) -> str:
    given = list(names)
    if set(given) == set(_MODES):
        return f"all {len(_MODES)}"
    if len(given) == len(_MODES) - 1 and "nearest_even" not in given and set(given) < set(_MODES):
        return f"the {len(given)} others"
    return ", ".join(sorted(given, key=lambda n: _MODES.index(n) if n in _MODES else -1))


def table(rows: Rows) -> str:
    """Return the results as Markdown: modes that had as many inputs and the same outcome share a line."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in rows.values():
        key = ("oracle", "source", "target", "overflow", "inputs", "differences", "explained")
        groups.setdefault(tuple(one[k] for k in key), []).append(one)
    lines = [
        "| source | format | rounding | overflow | inputs | oracle | differences | explained | date | commit |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    order = sorted(groups.items(), key=lambda g: (_SOURCE_ORDER.index(g[0][1]), g[0][0], g[0][3], g[0][2], g[0][4]))
    for _, group in order:
        one = group[0]
        times = f"{len(group)} x " if len(group) > 1 else ""
        cells = (
            *(one["source"], one["target"], _modes(r["rounding"] for r in group), one["overflow"]),
            *(times + _many(one), one["oracle"], one["differences"], one["explained"]),
            *(max(r["date"] for r in group), ", ".join(sorted({r["commit"] for r in group}))),
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    inputs = sum(r["inputs"] for r in rows.values())
    wrong = sum(r["differences"] for r in rows.values())
    billions = f"{inputs / 1e9:,.1f}".replace(",", " ")
    head = f"{len(rows)} jobs, {billions} thousand million comparisons, {wrong} unexplained differences."
    return "\n".join([head, "", *lines])


def summary(rows: Rows) -> str:
    """Return the results as Markdown, a line for each target."""
    lines = [
        "| format | from | rounding | inputs compared | oracles | unexplained differences |",
        "|---|---|---|---|---|---|",
    ]
    for target in sorted({r["target"] for r in rows.values()}):
        own = [r for r in rows.values() if r["target"] == target]
        named = {r["rounding"] for r in own if r["source"] == "float32"}
        modes = [m for m in _MODES if m in named] or _MODES
        hybrid = ", hybrid" * ("hybrid" in named)
        cells = (
            *(target, ", ".join(s for s in _SOURCE_ORDER if any(r["source"] == s for r in own))),
            *(_modes(modes) + hybrid, _grouped(sum(r["inputs"] for r in own))),
            *(", ".join(sorted({r["oracle"] for r in own})), sum(r["differences"] for r in own)),
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def differences() -> str:
    """Return the table of known differences of the oracles as Markdown."""
    lines = ["| oracle | release | from | to | where | reason |", "|---|---|---|---|---|---|"]
    for e in TABLE:
        reason = f"[{e.reason}]({e.link})" if e.link.startswith("https:") else e.reason
        names = [", ".join(names.split()) for names in (e.source, e.target)]
        cells = [e.oracle, e.version, *names, e.where, reason]
        lines.append("| " + " | ".join(c.replace("|", "\\|").replace("*", "\\*") for c in cells) + " |")
    return "\n".join(lines)


def page(text: str, rows: Rows) -> str:
    """Return the text of docs/proof.md or docs/evidence.md with its tables made anew."""
    tables = {"exhaustive": table, "differences": lambda _: differences(), "summary": summary}
    for name, make in tables.items():
        if f"<!-- {name}: begin -->" not in text:
            continue
        made = make(rows)
        before, begin, rest = text.partition(f"<!-- {name}: begin -->")
        _, end, after = rest.partition(f"<!-- {name}: end -->")
        text = f"{before}{begin}\n{made}\n{end}{after}"
    return text
