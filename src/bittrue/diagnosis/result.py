"""What `bittrue.diagnose` returns: explanations in their order, and what would tell the best ones apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..rounding import Rule

__all__ = ["Diagnosis", "Explanation", "Separation"]


@dataclass(frozen=True)
class Explanation:
    """One rule, with a layout slip or without, and how much of the dump it explains.

    Attributes
    ----------
    name : str
    about : str
        What it means.
    rule, slip : str
        The parts of the name: the rounding rule, and what went wrong with the layout ("" for nothing).
    matches, elements : int
        Elements that it explains, of how many (bytes, for block formats).
    core_rule : Rule or None
        The rule as `bittrue.encode` takes it, where there is one.
    same : list of str
        Other names of it: rules that cannot be told apart by any input that was tried.
    """

    name: str
    about: str
    rule: str
    slip: str
    matches: int
    elements: int
    core_rule: Rule | None = None
    same: list[str] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Share of the elements that it explains."""
        return self.matches / self.elements if self.elements else 0.0

    @property
    def complete(self) -> bool:
        """Whether it explains everything."""
        return self.matches == self.elements

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON takes."""
        return {
            "name": self.name, "about": self.about, "rule": self.rule, "slip": self.slip, "matches": self.matches,
            "elements": self.elements, "ratio": self.ratio, "same": self.same,
        }  # fmt: skip


@dataclass(frozen=True)
class Separation:
    """An input on which explanations differ.

    Attributes
    ----------
    x : str
        The input (block formats: the block) in decimal.
    bits : str
        Its bit pattern, where it is a single number.
    index : tuple of int or None
        Where it is in the given data; None: it is not there, and the device has yet to be asked.
    expected : dict of str to str
        The code that each explanation gives.
    actual : str
        The device's code, where the input is in the given data.
    """

    x: str
    bits: str
    index: tuple[int, ...] | None
    expected: dict[str, str]
    actual: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON takes."""
        index = None if self.index is None else list(self.index)
        return {"x": self.x, "bits": self.bits, "index": index, "expected": self.expected, "actual": self.actual}


@dataclass(frozen=True)
class Diagnosis:
    """The result of `bittrue.diagnose`.

    Attributes
    ----------
    verdict : str
        "explained": one rule explains every element. "ambiguous": several likely ones do. "close": the best one leaves
        a few elements (up to a tenth). "unexplained": nothing comes near.
    to, target : str
    elements : int
    tried : int
        Number of rules and slips that were tried together.
    explanations : list of Explanation
        The best first.
    rivals : list of Explanation
        Those that explain as much as the best, are about as likely, and differ from it on some input.
    unlikely : list of Explanation
        The same, but far-fetched beside it.
    separating : list of Separation
        The smallest set of inputs found that tells the best from its rivals (without any: from the second).
    unexplained : list of (index, x, expected, actual)
        Elements that the best does not explain, the first few.
    notes : list of str
        What the data says nothing about.
    """

    verdict: str
    to: str
    target: str
    elements: int
    tried: int
    explanations: list[Explanation]
    rivals: list[Explanation]
    unlikely: list[Explanation]
    separating: list[Separation]
    unexplained: list[tuple[tuple[int, ...], str, str, str]]
    notes: list[str]

    @property
    def best(self) -> Explanation:
        """The explanation that matches most."""
        return self.explanations[0]

    @property
    def explained(self) -> bool:
        """Whether some rule explains every element."""
        return self.verdict in ("explained", "ambiguous")

    @property
    def ambiguous(self) -> bool:
        """Whether several rules do, which differ on other inputs."""
        return self.verdict == "ambiguous"

    def __bool__(self) -> bool:
        return self.explained

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON takes."""
        return {
            "verdict": self.verdict,
            "to": self.to,
            "target": self.target,
            "elements": self.elements,
            "tried": self.tried,
            "explanations": [e.to_dict() for e in self.explanations],
            "rivals": [e.to_dict() for e in self.rivals],
            "unlikely": [e.to_dict() for e in self.unlikely],
            "separating": [s.to_dict() for s in self.separating],
            "unexplained": [
                {"index": list(i), "x": x, "expected": e, "actual": a} for i, x, e, a in self.unexplained
            ],
            "notes": self.notes,
        }

    def headline(self) -> str:
        """Return the verdict in one line."""
        best = self.best
        share = f"{best.matches} of {best.elements} elements"
        if self.verdict == "explained":
            return f"EXPLAINED: {best.name} ({share})"
        if self.verdict == "ambiguous":
            several = len(self.rivals) > 1
            others = f"as {'do' if several else 'does'} {len(self.rivals)} other rule{'s' * several}"
            return f"AMBIGUOUS: {best.name} explains all {best.elements} elements, {others}"
        if self.verdict == "close":
            return f"NOT QUITE: {best.name} explains {share} ({percent(best)})"
        return f"UNEXPLAINED: nothing explains it; the closest, {best.name}, {share} ({percent(best)})"

    def __str__(self) -> str:
        lines = [self.headline()]
        if self.explained or self.verdict == "close":
            lines.append(f"  {self.best.about}")
        if self.best.same:
            lines.append(f"  here the same as: {'; '.join(self.best.same[:4])}" + _more(len(self.best.same) - 4))
        if self.rivals:
            lines.append("  also possible: " + "; ".join(r.name for r in self.rivals[:6]) + _more(len(self.rivals) - 6))
        if self.unlikely:
            names = "; ".join(r.name for r in self.unlikely[:2]) + _more(len(self.unlikely) - 2)
            lines.append(f"  not excluded, but far-fetched: {names}")
        for s in self.separating:
            expected = "; ".join(f"{code} if {name}" for name, code in s.expected.items())
            if s.index is None:
                lines.append(f"  to decide, run x = {s.x}{f' ({s.bits})' if s.bits else ''}: {expected}")
            else:
                lines.append(f"  decided by x[{', '.join(map(str, s.index))}] = {s.x}: device {s.actual}; {expected}")
        if self.unexplained:
            lines.append(f"  not explained by {self.best.name}:")
            lines += [
                f"    [{', '.join(map(str, i))}] x = {x}: expected {e}, device {a}" for i, x, e, a in self.unexplained
            ]
        others = self.explanations[1:5]
        if others and not self.rivals and not self.unlikely:
            lines.append("  next: " + "; ".join(f"{e.name} ({percent(e)})" for e in others))
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


def percent(e: Explanation) -> str:
    """Return the share that is explained; 100 % only where it is all."""
    text = f"{100 * e.ratio:.4g}"
    return f"{'> 99.99' if text == '100' and not e.complete else text} %"


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""
