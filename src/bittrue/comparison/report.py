"""What `bittrue.compare` returns: verdict, figures and mismatches, as text and as plain data."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..formats import Format
from .measure import Figures, Mismatch
from .place import Place
from .standards import Check

__all__ = ["Report", "TensorReport", "code_text", "value_text"]


@dataclass(frozen=True)
class TensorReport:
    """The comparison of one tensor.

    Attributes
    ----------
    name : str
        Empty for an array.
    format : Format
    shape : tuple of int
        Logical; complex formats count real and imaginary parts along a last axis of 2.
    passed : bool
    checks : list of Check
        Every figure beside its limit.
    figures : Figures
    first, worst : list of Mismatch
        In the order of the tensor; by distance (up to 8 bits: each pair of codes once).
    place : Place
        Where the mismatches sit; `Place.findings` in words.
    note : str
    """

    name: str
    format: Format
    shape: tuple[int, ...]
    passed: bool
    checks: list[Check]
    figures: Figures
    first: list[Mismatch]
    worst: list[Mismatch]
    place: Place
    note: str = ""

    @property
    def reason(self) -> str:
        """The comparison that decided: the first that fails, else the first."""
        return next((c.text for c in self.checks if not c.passed), self.checks[0].text)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON takes: no infinities or NaN, which become strings."""
        f = self.figures
        return {
            "name": self.name,
            "format": self.format.name,
            "shape": list(self.shape),
            "passed": self.passed,
            "reason": self.reason,
            "checks": [
                {"figure": c.figure, "value": _plain(c.value), "limit": _plain(c.limit), "passed": c.passed}
                for c in self.checks
            ],
            "elements": f.elements,
            "mismatches": f.mismatches,
            "ratio": f.ratio,
            "nan_beside_numbers": f.unordered,
            "signed_zeros": f.signed_zeros,
            "max_ulp": f.max_ulp,
            "mean_ulp": f.mean_ulp,
            **{n: _plain(getattr(f, n)) for n in ("max_abs", "mean_abs", "max_rel", "mean_rel", "rmse")},
            "ulp_histogram": [{"from": low, "to": high, "count": n} for low, high, n in f.histogram],
            "findings": list(self.place.findings),
            "first": [_mismatch_dict(m, self.format) for m in self.first],
            "worst": [_mismatch_dict(m, self.format) for m in self.worst],
            **({"note": self.note} if self.note else {}),
        }


@dataclass(frozen=True)
class Report:
    """The result of `bittrue.compare`; true when everything passed.

    Attributes
    ----------
    standard, formula : str
    golden, actual : str
        What was compared: "golden" and "actual", or paths.
    tensors : list of TensorReport

    Examples
    --------
    >>> import numpy as np, bittrue as bt
    >>> report = bt.compare(np.float32([1, 2, 4]), np.float32([1, 2, 3]))
    >>> bool(report), report.mismatches, report.reason
    (False, 1, '1 of 3 elements differ')
    """

    standard: str
    formula: str
    golden: str
    actual: str
    tensors: list[TensorReport]

    def __bool__(self) -> bool:
        return self.passed

    def __iter__(self) -> Iterator[TensorReport]:
        return iter(self.tensors)

    @property
    def passed(self) -> bool:
        """Whether every tensor passed."""
        return all(t.passed for t in self.tensors)

    @property
    def elements(self) -> int:
        """Number of elements."""
        return sum(t.figures.elements for t in self.tensors)

    @property
    def mismatches(self) -> int:
        """Number of mismatches."""
        return sum(t.figures.mismatches for t in self.tensors)

    @property
    def ratio(self) -> float:
        """Share of the elements that differ."""
        return self.mismatches / self.elements if self.elements else 0.0

    @property
    def max_ulp(self) -> int:
        """Largest distance in representable values."""
        return max(t.figures.max_ulp for t in self.tensors)

    @property
    def decisive(self) -> TensorReport:
        """The first tensor that fails, else the first."""
        return next((t for t in self.tensors if not t.passed), self.tensors[0])

    @property
    def reason(self) -> str:
        """The figure that decided."""
        t = self.decisive
        return f"{t.name}: {t.reason}" if len(self.tensors) > 1 else t.reason

    @property
    def first(self) -> list[Mismatch]:
        """The first mismatches of the tensor that decided."""
        return self.decisive.first

    @property
    def worst(self) -> list[Mismatch]:
        """The worst mismatches of the tensor that decided."""
        return self.decisive.worst

    @property
    def figures(self) -> Figures:
        """The figures of the tensor that decided."""
        return self.decisive.figures

    @property
    def findings(self) -> list[str]:
        """Where the mismatches of the tensor that decided sit."""
        return self.decisive.place.findings

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON takes."""
        return {
            "passed": self.passed,
            "standard": self.standard,
            "formula": self.formula,
            "golden": self.golden,
            "actual": self.actual,
            "reason": self.reason,
            "elements": self.elements,
            "mismatches": self.mismatches,
            "ratio": self.ratio,
            "tensors": [t.to_dict() for t in self.tensors],
        }

    def to_html(self, path: str | os.PathLike[str] | None = None, *, force: bool = True) -> str:
        """Return the report as one self-contained HTML page; with `path`, also write it there.

        Raises
        ------
        FileError
            When the file cannot be written, or exists and `force` is false.
        """
        from .html import page

        text: str = page(self)
        if path is not None:
            from ..files import AtomicFile

            with AtomicFile(path, force=force) as file:
                file.write(text.encode())
        return text

    def __str__(self) -> str:
        lines = [f"{'PASS' if self.passed else 'FAIL'} ({self.standard}: {self.formula}): {self.reason}"]
        for t in self.tensors:
            if len(self.tensors) > 1:
                if not t.figures.mismatches:
                    continue
                lines.append(f"\n{t.name} {t.format.name}{list(t.shape)}: {t.reason}")
            lines += describe(t)
        return "\n".join(lines)


def describe(t: TensorReport, shown: int = 5) -> list[str]:
    """Return the figures of a tensor in a few lines."""
    f = t.figures
    lines = [f"  note: {t.note}"] if t.note else []
    lines += [f"  {c.text}" for c in t.checks[1:] or [] if c.text != t.reason]
    if not f.mismatches:
        return lines
    lines.append(f"  {f.mismatches} of {f.elements} differ ({100 * f.ratio:.3g} %); {ulp_text(f)}")
    lines.append(
        f"  max AE {f.max_abs:.4g}, MERE {f.mean_rel:.4g}, MARE {f.max_rel:.4g}, RMSE {f.rmse:.4g}"
        + (f"; {f.signed_zeros} differ in the sign of zero" if f.signed_zeros else "")
    )
    lines += [f"  where: {text}" for text in t.place.findings]
    lines.append("  worst:")
    lines += [f"    {mismatch_text(m, t.format)}" for m in t.worst[:shown]]
    if t.first and t.worst and t.first[0].index != t.worst[0].index:
        lines.append(f"  first: {mismatch_text(t.first[0], t.format)}")
    return lines


def ulp_text(f: Figures) -> str:
    """Return the distances in words."""
    nan = f", {f.unordered} NaN beside numbers" if f.unordered else ""
    return f"max {f.max_ulp} ULP, mean {f.mean_ulp:.3g} ULP{nan}"


def mismatch_text(m: Mismatch, f: Format) -> str:
    """Return a mismatch in one line."""
    steps = "NaN" if m.steps is None else f"{m.steps} ULP"
    again = f", {m.repeated} times" if m.repeated > 1 else ""
    return (
        f"[{', '.join(map(str, m.index))}] golden {value_text(m.golden_value)} ({code_text(m.golden, f)}), "
        f"actual {value_text(m.actual_value)} ({code_text(m.actual, f)}): {steps}{again}"
    )


def code_text(code: int, f: Format) -> str:
    """Return a code in hexadecimal and its bits by field.

    Examples
    --------
    >>> import bittrue as bt
    >>> code_text(0x7E, bt.format("float8_e4m3fn"))
    '0x7e = 0 1111 110'
    """
    return f"{code:#0{2 + -(-f.bits // 4)}x} = {' '.join(field_bits(code, f))}"


def field_bits(code: int, f: Format) -> list[str]:
    """Return the bits of each field of a code."""
    return [f"{field.value:0{field.width}b}" for field in f.fields(code)]


def value_text(value: float | int | bool) -> str:
    """Return a value with up to nine digits; integers in full."""
    return str(value) if isinstance(value, (bool, int)) else f"{value:.9g}"


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _mismatch_dict(m: Mismatch, f: Format) -> dict[str, Any]:
    return {
        "index": list(m.index),
        "golden": f"{m.golden:#x}",
        "actual": f"{m.actual:#x}",
        "golden_bits": " ".join(field_bits(m.golden, f)),
        "actual_bits": " ".join(field_bits(m.actual, f)),
        "golden_value": _plain(m.golden_value),
        "actual_value": _plain(m.actual_value),
        "ulp": m.steps,
        "repeated": m.repeated,
    }
