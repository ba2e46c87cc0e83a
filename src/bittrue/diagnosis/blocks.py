"""Candidates of block formats: other rules, other readings of the bytes, other formats of as many bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..codec import encode
from ..formats import formats
from ..rounding import Rounding
from .candidates import Candidate
from .case import Case

__all__ = ["block_candidates"]

Codes = np.ndarray[Any, Any]

_AIE = {
    "floor": Rounding.floor, "ceil": Rounding.ceil, "symmetric_floor": Rounding.trunc, "symmetric_ceil": Rounding.away,
    "positive_inf": Rounding.nearest_up, "negative_inf": Rounding.nearest_down, "symmetric_inf": Rounding.nearest_away,
    "symmetric_zero": Rounding.nearest_zero, "conv_even": Rounding.nearest_even, "conv_odd": Rounding.nearest_odd,
}  # fmt: skip


def block_candidates(case: Case, target: str | None) -> Iterator[Candidate]:
    """Yield rules in the given reading of the bytes, then every other reading with the usual rules."""
    from ..kinds.block import BlockOverflow, ScaledFormat, ScaleRule, SharedExponentFormat
    from .targets import check_target

    f: Any = case.to
    aie = target is not None and check_target(target)[0] == "aie"
    modes = list(_AIE.items()) if aie else [(m.value, m) for m in (Rounding.nearest_even, *_others())]
    for variant, what, about, prior in _readings(f):
        for k, (label, mode) in enumerate(modes):
            policies: list[tuple[str, dict[str, Any]]] = [("", {})]
            if isinstance(variant, SharedExponentFormat):
                for overflow in BlockOverflow:
                    if overflow != f.rule.overflow and (variant.shift_group or overflow.value != "clear_e2_then_bump"):
                        policies.append((f"overflow {overflow.value}", {"overflow": overflow}))
                policies.append((
                    "subnormals kept" if f.rule.flush_subnormals else "subnormals flushed",
                    {"flush_subnormals": not f.rule.flush_subnormals},
                ))
            elif isinstance(variant, ScaledFormat):
                policies += [
                    (f"scale rule {r.value}", {"scale_rule": r})
                    for r in ScaleRule
                    if r != f.rule.scale_rule and (r.value != "divide") == (f.rule.scale_rule.value != "divide")
                ]
            for policy, changes in policies:
                name = ", ".join(t for t in (what, label, policy) if t)
                if aie and k == 0 and not what and not policy:
                    name += " (the register's state at kernel entry)"
                yield Candidate(
                    name, about or f"mantissas rounded {mode.value}", _encoded(variant, mode, changes),
                    prior + (k > 0) * 2 + bool(policy), None, not what,
                )


def _others() -> list[Rounding]:
    return [m for m in dict.fromkeys(_AIE.values()) if m is not Rounding.nearest_even]


def _encoded(f: Any, mode: Rounding, changes: dict[str, Any]) -> Callable[[Case], Codes]:
    def make(case: Case) -> Codes:
        from ..kinds.block import BlockRule

        return np.asarray(encode(case.x, f, rule=BlockRule(rounding=mode, **changes)))

    return make


def _readings(f: Any) -> Iterator[tuple[Any, str, str, int]]:
    """Yield (format, name, what it means, prior): the format itself first."""
    from ..kinds.block import BIT_LAYOUTS, ORDERS, SHIFT_ORDERS, SharedExponentFormat

    yield f, "", "", 0
    if isinstance(f, SharedExponentFormat):
        rows: list[tuple[str, str, dict[str, Any]]] = [
            (f"block order: {order}", "which part of a block comes first", {"order": order})
            for order in ORDERS
            if order != f.order
        ]
        if f.shift_group:
            rows += [(f"level-2 bits {o} first", "the order of bits in the level-2 byte", {"shift_order": o})
                     for o in SHIFT_ORDERS if o != f.shift_order]
        if f.mantissa_bits < 8:
            rows += [(f"mantissas laid out {n}", "the order of mantissa bits", {"bit_layout": n})
                     for n in BIT_LAYOUTS if n != f.bit_layout]
        signs = "sign_magnitude" if f.mantissa == "twos_complement" else "twos_complement"
        rows.append((f"mantissas in {signs.replace('_', ' ')}", "the other way to write signs", {"mantissa": signs}))
        rows += [(f"exponent bias {b} instead of {f.bias}", "exponents one off", {"bias": b})
                 for b in (f.bias - 1, f.bias + 1) if 127 <= b <= 133]
        for name, about, changes in rows:
            try:
                yield _replaced(f, changes), name, about, 20
            except ValueError:
                continue
    sizes = (f.block_size, f.block_bytes)
    for other in formats("block"):
        other_: Any = other
        if other == f or getattr(other, "tensor_scale", False):
            continue
        if (other_.block_size, other_.block_bytes) == sizes:
            yield other, f"blocks of {other.name} instead of {f.name}", f"the layout of {other.name} was used", 30


def _replaced(f: Any, changes: dict[str, Any]) -> Any:
    """Return the format with some fields changed and no claim to the catalogue's name."""
    names = {field.name for field in fields(f)}
    return replace(f, name=f"{f.name}*", **{n: v for n, v in changes.items() if n in names})
