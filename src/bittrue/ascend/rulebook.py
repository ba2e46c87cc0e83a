"""The rule book: which casts a product has, in which modes, what they do and who says so; a table, no arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ..records import records
from .modes import RoundMode, mode
from .products import Product, product
from .types import type_info

__all__ = ["Effect", "Row", "pairs", "rows", "rules"]

#: Semantics in which a rounding mode has nothing to decide, and why.
_UNROUNDED = {
    "exact": "the conversion is exact",
    "exact-special": "the conversion is exact",
    "int-narrow": "integers narrow without rounding; saturation control alone decides",
    "int-widen-clamp": "the conversion is exact but for negative values, which give 0",
    "e8m0": "the exponent field is copied",
    "dequant": "dequantisation always rounds to nearest even",
}


@dataclass(frozen=True)
class Effect:
    """What becomes of a requested mode in one row of the rule book.

    Attributes
    ----------
    requested, effective : RoundMode
        The mode asked for, and the one that rounds (NONE: nothing is rounded).
    status : str
        "used", "default" (no mode was asked for), "ignored", "replaced" or "refused" (strict only).
    reason : str
    """

    requested: RoundMode
    effective: RoundMode
    status: str
    reason: str


@dataclass(frozen=True)
class Row:
    """One row of the rule book.

    Attributes
    ----------
    product, source, destination : str
    api : str
        "memory" and "reg" (Ascend C's tensor and register Cast), "simt", "pypto", or "bittrue" (our own assumption).
    modes : tuple of RoundMode
        Modes that the document lists.
    default : RoundMode
        Mode that is taken when none is given.
    semantics : str
        What happens: exact, round, float-to-int, int-narrow, hif8, dequant, ... (`bittrue rules` explains them).
    saturation : str
        Who decides about saturation: "float" and "int" (the control bits), "float-global" (CTRL[48] alone), "always",
        "never", or "none" (nothing can overflow).
    nan_code : int or None
        Code that this cast writes for NaN, where it is not the type's own.
    pto_satmode : str
        PyPTO rows: what the generator of the pto-isa tests takes as default of satmode.
    questions : tuple of int
        Open questions that bear on this row; see `Choices`.
    evidence, document : str
        Strength of the evidence (documented, vendor-code, measured, derived, assumed) and its source.
    effect : Effect or None
        What becomes of a mode, if one was asked about.
    """

    product: str
    api: str
    source: str
    destination: str
    modes: tuple[RoundMode, ...]
    default: RoundMode
    semantics: str
    saturation: str
    nan_code: int | None
    pto_satmode: str
    questions: tuple[int, ...]
    evidence: str
    document: str
    effect: Effect | None = None

    @property
    def selectable(self) -> tuple[RoundMode, ...]:
        """The modes that choose a rounding: all but NONE."""
        return tuple(m for m in self.modes if m is not RoundMode.NONE)

    @property
    def fallback(self) -> RoundMode:
        """Mode for NONE or an unsupported one (PyPTO): ROUND to hifloat8, TRUNC from float to integer, else RINT."""
        if self.semantics == "hif8":
            return RoundMode.ROUND
        if self.semantics == "float-to-int" and RoundMode.TRUNC in self.modes:
            return RoundMode.TRUNC
        return RoundMode.RINT

    def judge(self, requested: RoundMode, strict: bool = False, odd_to_int: bool = False) -> Effect:
        """Say what becomes of a mode.

        Parameters
        ----------
        requested : RoundMode
        strict : bool
            Ascend C's view (a mode that is not listed is refused) instead of PyPTO's (it becomes the default).
        odd_to_int : bool
            Count ODD as listed where open question 32 asks whether it is.
        """
        extra = (RoundMode.ODD,) if odd_to_int and 32 in self.questions else ()
        unrounded = _UNROUNDED.get(self.semantics)
        if self.semantics == "complex" and not self.selectable:
            unrounded = _UNROUNDED["exact"]
        if strict and requested not in self.modes + extra:
            return Effect(requested, requested, "refused", f"it has {_listed(self.modes)}")
        if unrounded:
            status = "default" if requested is RoundMode.NONE else "ignored"
            return Effect(requested, RoundMode.NONE, status, unrounded)
        if requested in self.selectable + extra:
            return Effect(requested, requested, "used", "the document lists it for this pair")
        if strict:
            return Effect(requested, RoundMode.RINT, "used", "NONE rounds as RINT where bits are lost")
        why = {
            RoundMode.ROUND: "to hifloat8 it is ROUND",
            RoundMode.TRUNC: "from float to integer it is TRUNC",
        }.get(self.fallback, "it is RINT")
        if requested is RoundMode.NONE:
            return Effect(requested, self.fallback, "default", f"no mode is given, and the default applies: {why}")
        return Effect(
            requested,
            self.fallback,
            "replaced",
            f"the pair {'has ' + _listed(self.selectable) if self.selectable else 'has no selectable mode'}, "
            f"and the default applies: {why}",
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the row as plain strings, with the effect of the mode asked about."""
        found: dict[str, Any] = {
            "product": self.product,
            "api": self.api,
            "source": self.source,
            "destination": self.destination,
            "modes": [m.short for m in self.modes],
            "default": self.default.short,
            "semantics": self.semantics,
            "saturation": self.saturation,
            "evidence": self.evidence,
            "document": self.document,
            "questions": list(self.questions),
        }
        if self.effect is not None:
            found |= {
                "mode": self.effect.requested.short,
                "effect": self.effect.status,
                "effective": self.effect.effective.short,
                "strict": "refused" if self.judge(self.effect.requested, True).status == "refused" else "allowed",
                "reason": self.effect.reason,
            }
        return found


def _listed(modes: Sequence[RoundMode]) -> str:
    return ", ".join(m.name for m in modes)


@cache
def rows() -> tuple[Row, ...]:
    """Return the whole rule book."""
    documents = {r["key"]: r["title"] for r in records("ascend", "documents")}
    return tuple(
        Row(
            product=r["product"],
            api=r["api"],
            source=r["source"],
            destination=r["destination"],
            modes=tuple(RoundMode[m] for m in r["modes"].split("|")),
            default=RoundMode[r["default"]],
            semantics=r["semantics"],
            saturation=r["saturation"],
            nan_code=int(r["nan_code"], 16) if r["nan_code"] else None,
            pto_satmode=r["pto_satmode"],
            questions=tuple(map(int, r["questions"].split())),
            evidence=r["evidence"],
            document=documents[r["document"]],
        )
        for r in records("ascend", "rules")
    )


@cache
def pairs(of: str) -> dict[tuple[str, str], tuple[Row, ...]]:
    """Return the rows of a product by (source, destination)."""
    found: dict[tuple[str, str], tuple[Row, ...]] = {}
    for row in rows():
        if row.product == of:
            at = (row.source, row.destination)
            found[at] = (*found.get(at, ()), row)
    return found


def rules(
    product: str | int | Product | None = None,
    src: Any = None,
    dst: Any = None,
    mode: RoundMode | str | int | None = None,
) -> list[Row]:
    """Return the rows of the rule book for a product, a source and a destination; None stands for all.

    Parameters
    ----------
    product, src, dst
        Names in any spelling.
    mode
        A mode: the rows then say in `effect` what becomes of it.

    Raises
    ------
    ValueError
        For unknown names.

    Examples
    --------
    >>> row = rules("a2", "half", "int8_t", mode="ODD")[-1]
    >>> row.api, row.effect.status, row.effect.effective
    ('pypto', 'replaced', <RoundMode.CAST_TRUNC: 5>)
    """
    of = None if product is None else _product(product).name
    source = None if src is None else type_info(src).name
    destination = None if dst is None else type_info(dst).name
    found = [
        row
        for row in rows()
        if of in (None, row.product) and source in (None, row.source) and destination in (None, row.destination)
    ]
    if mode is None:
        return found
    asked = _mode(mode)
    return [replace(row, effect=row.judge(asked)) for row in found]


_product, _mode = product, mode
