"""Open questions as data: fields of a vendor's `Choices` class, and the document that is generated from them.

Where vendors contradict each other or say nothing, behaviour is a named option. A `Choices` class is a frozen dataclass
whose fields are made by `question`; it knows nothing of the casts that read it.

Run ``python -m bittrue.evidence`` to write `docs/evidence.md` anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import Field, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from .rounding import suggestion

__all__ = ["Candidate", "Question", "check", "document", "proved", "question", "questions"]

BEGIN, END = "<!-- summary: begin -->", "<!-- summary: end -->"
_PROVED = (
    "Casts whose rules leave no question open are compared, input by input, with oracles that share no code with the",
    "fast codec. `make exhaustive` writes this table; [the proof](proof.md) has each run with its date and commit, and",
    "how to repeat it. Explained differences of outside libraries stand there; here they count as none.",
)


class Candidate(NamedTuple):
    """One possible answer: the value of the field, what it means, and who says so."""

    value: Any
    meaning: str
    source: str


class Question(NamedTuple):
    """An open question: its numbers in the vendor's list, the field that answers it, the candidates and the default."""

    numbers: tuple[int, ...]
    name: str
    text: str
    candidates: tuple[Candidate, ...]
    default: Any


def question(numbers: int | Sequence[int], text: str, *candidates: tuple[Any, str, str]) -> Any:
    """Make a dataclass field for an open question; the first candidate is the default.

    Parameters
    ----------
    numbers : int or sequence of int
        Number of the question in the vendor's list (several where one option answers them together).
    text : str
        The question in one sentence.
    candidates
        ``(value, meaning, source)`` each.
    """
    every = tuple(Candidate(*c) for c in candidates)
    numbered = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    return field(default=every[0].value, metadata={"numbers": numbered, "text": text, "candidates": every})


def questions(choices: type) -> list[Question]:
    """Return the questions of a `Choices` class in the order of their numbers."""
    found = [_question(f) for f in fields(choices) if "candidates" in f.metadata]
    return sorted(found, key=lambda q: q.numbers)


def _question(f: Field[Any]) -> Question:
    return Question(f.metadata["numbers"], f.name, f.metadata["text"], f.metadata["candidates"], f.default)


def check(choices: Any) -> None:
    """Raise `ValueError` for a field whose value is none of its candidates; for ``__post_init__``."""
    for q in questions(type(choices)):
        value = getattr(choices, q.name)
        allowed = [c.value for c in q.candidates]
        if not any(value == v and type(value) is type(v) for v in allowed):
            close = suggestion(value, map(str, allowed)) if isinstance(value, str) else ""
            raise ValueError(
                f"{q.name}={value!r} is not a candidate{close} ({', '.join(_shown(v) for v in allowed)})"
            )


def document(vendors: Iterable[tuple[str, type]], proved: str = "") -> str:
    """Return the Markdown text of `docs/evidence.md` for the `Choices` classes of several vendors.

    Parameters
    ----------
    vendors : iterable of (heading, class)
    proved : str
        The lines between the marks of the last section; `proved` finds them in a page.
    """
    lines = [
        "# Open questions and what bittrue does about them",
        "",
        "Generated from the `Choices` classes by `python -m bittrue.evidence`; edit those, not this file.",
        "",
        "Where vendor documents disagree or are silent, bittrue does not guess in secret: the behaviour is a field of",
        "a frozen data class, with the default below. Pass `choices=` to a function to choose another candidate.",
        "Found evidence that settles one? See CONTRIBUTING.md.",
        "",
        "What follows from the documents beyond doubt is [proved instead](#what-has-been-proved).",
    ]
    for heading, choices in vendors:
        room = choices.__module__.split(".")[1]
        lines += ["", f"## {heading}", ""]
        for q in questions(choices):
            numbers = ", ".join(map(str, q.numbers))
            lines += [f"### {numbers}. {q.text}", "", f"`{room}.{choices.__qualname__}.{q.name}`", ""]
            lines += ["| value | meaning | source |", "|---|---|---|"]
            for c in q.candidates:
                default = " (default)" if c.value == q.default else ""
                cells = (f"`{_shown(c.value)}`{default}", c.meaning, c.source)
                lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
            lines.append("")
        lines.pop()
    lines += ["", "## What has been proved", "", *_PROVED, "", BEGIN + proved + END]
    return "\n".join(lines) + "\n"


def proved(page: str) -> str:
    """Return what `make exhaustive` wrote into a page."""
    return page.partition(BEGIN)[2].partition(END)[0]


def _shown(value: object) -> str:
    """Codes are shown in hexadecimal."""
    return f"0x{value:02X}" if isinstance(value, int) and not isinstance(value, bool) else repr(value)


def vendors() -> list[tuple[str, type]]:
    """Return heading and `Choices` class of every hardware room."""
    from .aie.choices import Choices as AieChoices
    from .ascend.choices import Choices as AscendChoices

    return [("Ascend", AscendChoices), ("AMD AI Engine", AieChoices)]


def main(path: str = "docs/evidence.md") -> None:
    """Write the document; its last section stays."""
    file = Path(path)
    file.write_text(document(vendors(), proved(file.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
