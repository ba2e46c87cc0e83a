"""How a number gets into a format: rounding, overflow and NaN rules as data; no arithmetic lives here."""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

__all__ = ["NanPolicy", "Negative", "Overflow", "Rounding", "Rule", "make_rule"]


class Rounding(str, enum.Enum):
    """Which of the two representable neighbours of an inexact value is taken.

    "Even" and "odd" speak of the last bit of the code's significand (for formats without fraction bits, of the code).
    """

    nearest_even = "nearest_even"  #: nearest; a tie goes to the even neighbour (IEEE 754 roundTiesToEven)
    nearest_away = "nearest_away"  #: nearest; a tie goes away from zero
    nearest_zero = "nearest_zero"  #: nearest; a tie goes toward zero
    nearest_up = "nearest_up"  #: nearest; a tie goes toward +infinity
    nearest_down = "nearest_down"  #: nearest; a tie goes toward -infinity
    nearest_odd = "nearest_odd"  #: nearest; a tie goes to the odd neighbour
    floor = "floor"  #: toward -infinity
    ceil = "ceil"  #: toward +infinity
    trunc = "trunc"  #: toward zero
    away = "away"  #: away from zero
    odd = "odd"  #: the odd neighbour (von Neumann rounding: the sticky bit is never lost)
    stochastic = "stochastic"  #: up with the probability of the dropped fraction
    hybrid = "hybrid"  #: hifloat8 only: half away for |E| <= 3, else a threshold from the input's own low bits


class Overflow(str, enum.Enum):
    """What becomes of a value beyond the largest finite one *after* rounding with an unbounded exponent."""

    saturate = "saturate"  #: the largest finite value of that sign; infinities too
    saturate_finite = "saturate_finite"  #: the largest finite value; an infinity stays one (NaN where there is none)
    infinity = "infinity"  #: Inf, or NaN where the format has no Inf, or the largest value where it has neither
    ieee = "ieee"  #: as infinity, but directed modes that point toward zero stop at the largest value (IEEE 754)
    wrap = "wrap"  #: integers: keep the low bits of the rounded value; infinities give the limits
    raise_ = "raise"  #: OverflowError


class NanPolicy(str, enum.Enum):
    """What becomes of a NaN."""

    keep = "keep"  #: NaN, or zero where the format has no NaN
    zero = "zero"  #: +0 (the smallest value where the format has no zero)
    max = "max"  #: the largest finite value
    raise_ = "raise"  #: ValueError


class Negative(str, enum.Enum):
    """What becomes of a negative value in a float format without a sign bit."""

    overflow = "overflow"  #: it lies below the range: the overflow rule decides (smallest value, or NaN)
    magnitude = "magnitude"  #: the sign is dropped


_E = TypeVar("_E", bound=enum.Enum)

#: What others call the rounding modes: IEEE 754, RISC-V, CUDA, Ascend C, AIE API, Python.
_ELSEWHERE = {
    "nearest_even": "rne rn half_even round_half_even conv_even roundtiestoeven rint cast_rint",
    "nearest_away": "rna rmm half_away half_up round_half_up roundtiestoaway cast_round symmetric_inf",
    "nearest_zero": "half_down round_half_down symmetric_zero",
    "nearest_up": "positive_inf",
    "nearest_down": "negative_inf",
    "nearest_odd": "conv_odd",
    "floor": "rdn rd rm roundtowardnegative cast_floor",
    "ceil": "rup ru rp ceiling roundtowardpositive cast_ceil",
    "trunc": "rtz rz truncate toward_zero roundtowardzero cast_trunc symmetric_floor",
    "away": "raz away_from_zero symmetric_ceil",
    "odd": "rto to_odd von_neumann cast_odd",
    "stochastic": "sr",
    "hybrid": "cast_hybrid",
}
_SYNONYMS = {synonym: name for name, synonyms in _ELSEWHERE.items() for synonym in synonyms.split()}


def member(kind: type[_E], value: object, argument: str) -> _E:
    """Return the member of `kind` that `value` names, or raise a `ValueError` that lists what is allowed."""
    if isinstance(value, kind):
        return value
    names = [str(m.value) for m in kind]
    if isinstance(value, str) and value.lower() in names:
        return kind(value.lower())
    known = _SYNONYMS.get(value.lower()) if kind is Rounding and isinstance(value, str) else None
    meant = f"; did you mean {known!r}?" if known else suggestion(value, names)
    raise ValueError(f"{argument}={value!r} is not one of the {argument} rules{meant} ({', '.join(names)})")


def suggestion(value: object, names: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the closest of `names`, or nothing."""
    close = difflib.get_close_matches(str(value).lower(), list(names), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


@dataclass(frozen=True)
class Rule:
    """One complete conversion rule.

    Parameters
    ----------
    rounding, overflow, nan, negative
        See `Rounding`, `Overflow`, `NanPolicy` and `Negative`; strings are accepted.
    flush_inputs
        Subnormal values of the *source* format count as zeros of their sign.
    flush_outputs
        Results that are subnormal in the destination (after rounding) become zeros of their sign.
    nan_sign
        "keep": a NaN keeps its sign where the format has two; "positive": always the positive NaN.
    nan_code
        Code written for a (positive) NaN instead of the format's quiet one; payloads are never kept.
    seed
        Seed of stochastic rounding, 0 .. 2**64 - 1.

    Examples
    --------
    >>> Rule(rounding="floor").overflow
    <Overflow.saturate: 'saturate'>
    """

    rounding: Rounding = Rounding.nearest_even
    overflow: Overflow = Overflow.saturate
    nan: NanPolicy = NanPolicy.keep
    flush_inputs: bool = False
    flush_outputs: bool = False
    negative: Negative = Negative.overflow
    nan_sign: str = "keep"
    nan_code: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            object.__setattr__(self, name, member(kind, getattr(self, name), name))
        if self.nan_sign not in ("keep", "positive"):
            raise ValueError(f"nan_sign={self.nan_sign!r} must be 'keep' or 'positive'")
        if not 0 <= self.seed < 1 << 64:
            raise ValueError(f"seed={self.seed!r} must be an integer from 0 to 2**64 - 1")


_KINDS: dict[str, type[enum.Enum]] = {
    "rounding": Rounding,
    "overflow": Overflow,
    "nan": NanPolicy,
    "negative": Negative,
}


_DEFAULT = Rule()


def make_rule(rule: Rule | None, **given: object) -> Rule:
    """Return `rule` with the arguments in `given` that are not None put in; without a rule, the defaults."""
    changes = {name: value for name, value in given.items() if value is not None}
    if rule is None:
        return Rule(**changes) if changes else _DEFAULT  # type: ignore[arg-type]
    if not isinstance(rule, Rule):
        raise TypeError(f"rule={rule!r} must be a bittrue.Rule, not {type(rule).__name__}")
    return replace(rule, **changes) if changes else rule  # type: ignore[arg-type]
