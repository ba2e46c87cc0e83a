"""From a rule book row, a mode, the control state and the choices to the one rule that a cast follows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..rounding import NanPolicy, Overflow, Rule
from .choices import Choices
from .control import Ctrl, Saturation, control_state
from .modes import RoundMode, mode, rounding
from .products import DEFAULT_PRODUCT, Product, product
from .rulebook import Effect, Row, pairs
from .types import Type, require

__all__ = ["CastRule", "cast_rule", "modes"]

_DEFAULT = Choices()
_ASCENDC = ("memory", "reg", "simt")
_EVERY = ("pypto", *_ASCENDC, "bittrue")


@dataclass(frozen=True)
class CastRule:
    """Everything that decides one cast.

    Attributes
    ----------
    product : Product
    source, destination : Type
    row : Row
        The row of the rule book that applies.
    modes : tuple of RoundMode
        The modes that can be asked for.
    effect : Effect
        What becomes of the mode that was asked for.
    ctrl : Ctrl
        The control state.
    saturates : bool
    rule : bittrue.Rule
        The core's rule; for complex types, of each part.
    choices : Choices
    """

    product: Product
    source: Type
    destination: Type
    row: Row
    modes: tuple[RoundMode, ...]
    effect: Effect
    ctrl: Ctrl
    saturates: bool
    rule: Rule
    choices: Choices

    @property
    def mode(self) -> RoundMode:
        """The mode that rounds."""
        return self.effect.effective

    def answered(self, number: int, value: object) -> bool:
        """Whether open question `number` bears on this cast and was answered with `value`."""
        return number in self.row.questions and self.choices.value(number) == value

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain strings and numbers."""
        return {
            "product": self.product.name,
            "api": self.row.api,
            "source": self.source.name,
            "destination": self.destination.name,
            "modes": [m.short for m in self.modes],
            "default": self.row.fallback.short if self.row.selectable else "NONE",
            "mode": self.effect.requested.short,
            "effect": self.effect.status,
            "effective": self.mode.short,
            "reason": self.effect.reason,
            "semantics": self.row.semantics,
            "rounding": self.rule.rounding.value,
            "saturates": self.saturates,
            "overflow": self.rule.overflow.value,
            "nan": self.rule.nan.value,
            "evidence": self.row.evidence,
            "document": self.row.document,
            "choices": {str(n): self.choices.answer(n) for n in self.row.questions},
        }

    def explain(self) -> str:
        """Return the rule in a few lines of plain text."""
        asked = self.effect
        arrow = {
            "used": "used",
            "default": f"{asked.effective.name}" if asked.effective else "nothing to round",
            "ignored": "ignored",
            "replaced": f"replaced by {asked.effective.name}",
        }[asked.status]
        lines = [
            f"{self.source} -> {self.destination} on {self.product} ({self.row.api}: {self.row.semantics})",
            f"mode: {asked.requested.name}: {arrow}, because {asked.reason}",
            f"modes: {', '.join(m.name for m in self.modes)}",
            f"overflow: {self.overflow_text}",
            f"evidence: {self.row.evidence}; {self.row.document}",
        ]
        if self.row.questions:
            lines.append(
                "open questions: " + "; ".join(f"{n}: {self.choices.answer(n)}" for n in self.row.questions)
            )
        return "\n".join(lines)

    @property
    def overflow_text(self) -> str:
        """What happens beyond the range and to a NaN, and who decides, in words."""
        if self.row.saturation == "none":
            return "cannot happen"
        who = {
            "always": "always",
            "never": "never",
            "float-global": "CTRL[48]",
            "float": "CTRL[48]" if self.ctrl.bit60 else "the instruction's SatMode",
            "int": "CTRL[59]" if self.ctrl.bit60 else "the instruction's SatMode",
        }[self.row.saturation]
        what = "saturates" if self.saturates else "wraps" if self.destination.is_int else "gives Inf or NaN"
        nan = {NanPolicy.keep: "stays NaN", NanPolicy.zero: "gives 0", NanPolicy.raise_: "is an error"}[self.rule.nan]
        return f"{what} ({who}); NaN {'gives 0' if self.destination.is_int else nan}"


def cast_rule(
    src: Any,
    dst: Any,
    mode: RoundMode | str | int = RoundMode.CAST_NONE,
    product: str | int | Product = DEFAULT_PRODUCT,
    saturation: Saturation = None,
    strict: bool = False,
    choices: Choices | None = None,
) -> CastRule:
    """Return the rule of a cast: modes, default, what becomes of this mode, saturation, evidence and source.

    Parameters are those of `cast`.

    Raises
    ------
    ValueError
        Unknown names; a type that the product lacks; a pair that it lacks, with those it has; when strict, a mode that
        the pair lacks, with those it has.

    Examples
    --------
    >>> cast_rule("half", "int8_t", "ODD").mode
    <RoundMode.CAST_TRUNC: 5>
    >>> print(cast_rule("float", "hifloat8_t", "FLOOR").explain())
    float -> hifloat8_t on Ascend 950PR/950DT (pypto: hif8)
    mode: CAST_FLOOR: replaced by CAST_ROUND, because the pair has CAST_ROUND, CAST_HYBRID, and the default applies: \
to hifloat8 it is ROUND
    modes: CAST_ROUND, CAST_HYBRID
    overflow: saturates (CTRL[48]); NaN gives 0
    evidence: documented; PyPTO, pypto.cast and CastMode; HYBRID from pypto_pro vf.astype (pypto 883e7dfb)
    open questions: 2: hybrid_exact='documented'; 3: hybrid_overflow='documented'; 19: satmode='truncation'; 20: \
pypto_sat_default='doc'
    """
    chosen = _checked(choices)
    of = _product(product)
    asked = _mode(mode)
    source, destination = require(of, src, chosen), require(of, dst, chosen)
    found = _rows(of, source, destination, strict, chosen)
    odd = chosen.odd_to_int == "offered"
    judged = [(row, row.judge(asked, strict, odd)) for row in found]
    row, effect = next(((r, e) for r, e in judged if e.status in ("used", "default", "ignored")), judged[0])
    offered = tuple(dict.fromkeys(m for r in found for m in r.modes))
    if odd and 32 in row.questions:
        offered += (RoundMode.ODD,)
    if effect.status == "refused":
        raise ValueError(
            f"mode={asked.name} is not a mode of {source} to {destination} on {of}; strict casts have "
            + ", ".join(m.name for m in offered)
        )
    ctrl = control_state(saturation, of, row, chosen)
    saturates = ctrl.saturates(row.saturation)
    if saturation is None and 12 in row.questions and chosen.int_to_uint8 == "cut":
        saturates = False
    if 40 in row.questions and chosen.half_bf16_sat == "never":
        saturates = False
    if 41 in row.questions and chosen.half_int16_sat == "limits":
        saturates = True
    rule = _rule(row, destination, effect.effective, ctrl, saturates, chosen)
    return CastRule(of, source, destination, row, offered, effect, ctrl, saturates, rule, chosen)


def modes(src: Any, dst: Any, product: str | int | Product = DEFAULT_PRODUCT) -> list[RoundMode]:
    """Return the modes that `cast` tells apart for a pair: those of every document; NONE where nothing is rounded.

    Examples
    --------
    >>> [m.short for m in modes("float", "hifloat8_t")]
    ['ROUND', 'HYBRID']
    """
    rule = cast_rule(src, dst, product=product)
    return list(row_modes) if (row_modes := rule.row.selectable) else [RoundMode.CAST_NONE]


def _checked(choices: Choices | None) -> Choices:
    if choices is None:
        return _DEFAULT
    if not isinstance(choices, Choices):
        raise TypeError(f"choices={choices!r} must be an ascend.Choices, not {type(choices).__name__}")
    return choices


def _rows(of: Product, source: Type, destination: Type, strict: bool, choices: Choices) -> list[Row]:
    """Return the rows that apply, the deciding one first; raise for a pair that the product lacks."""
    book = pairs(of.name)
    found = book.get((source.name, destination.name), ())
    order: tuple[str, ...] = _ASCENDC if strict else _EVERY
    if any(7 in row.questions for row in found):
        order = {"ascendc": _ASCENDC, "pypto": ("pypto",)}.get(choices.mode_table, order)
    rows = sorted((row for row in found if row.api in order), key=lambda row: order.index(row.api))
    if not rows:
        raise ValueError(_no_pair(of, source, destination, strict, book))
    if strict or rows[0].api != "pypto":
        return rows
    return rows[:1]


def _no_pair(
    of: Product, source: Type, destination: Type, strict: bool, book: dict[tuple[str, str], tuple[Row, ...]]
) -> str:
    if not of.casts:
        return f"{of} has no Cast"
    if source.is_complex and not destination.is_complex:
        return f"complex values cannot become {destination}; cast their real and imaginary parts one by one"
    have = [d for (s, d), rows in book.items() if s == source.name and not (strict and _only_ours(rows))]
    text = f"{source} to {destination} is not a cast of {of}; {source} has " + (", ".join(have) or "none")
    through = [s for (s, d) in book if d == destination.name and s in have and s != source.name]
    return text + (f" (two casts lead there: {source} to {through[0]} to {destination})" if through else "")


def _only_ours(rows: Iterable[Row]) -> bool:
    return all(row.api == "bittrue" for row in rows)


def _rule(row: Row, destination: Type, chosen: RoundMode, ctrl: Ctrl, saturates: bool, choices: Choices) -> Rule:
    """Return the core's rule (Reg Cast.md, table 4): overflow by saturation, NaN by saturation and CTRL[50]."""
    if 16 in row.questions and choices.double_special == "raise":
        return Rule(rounding(chosen), Overflow.raise_, NanPolicy.raise_)
    if destination.is_int:
        cut = row.saturation == "int" and not saturates
        return Rule(rounding(chosen), Overflow.wrap if cut else Overflow.saturate)
    kept = not saturates or (ctrl.bit50 and "50" in destination.control)
    unbounded = Overflow.ieee if 14 in row.questions and choices.directed_overflow == "ieee" else Overflow.infinity
    keeps_sign = 8 in row.questions and not saturates and choices.fp8_nan_sign == "keep"
    return Rule(
        rounding(chosen),
        Overflow.saturate if saturates else unbounded,
        NanPolicy.keep if kept else NanPolicy.zero,
        nan_sign="keep" if keeps_sign else "positive",
        nan_code=row.nan_code or destination.nan_code,
        flush_inputs=4 in row.questions and choices.half_subnormal == "zero",
    )


_product, _mode = product, mode
