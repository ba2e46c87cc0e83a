"""What a product makes of one value, in every mode that it has; the words of its rule book explained."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from .. import ascend
from ..array import Array
from ..codec import encode
from ..formats import FloatFormat, Format, TaperedFormat, Value
from .numbers import as_json

__all__ = ["SEMANTICS", "cast_under_every_mode", "effect_text", "target_dict"]

#: What a rule book's words for "what happens" mean.
SEMANTICS = {
    "exact": "every source value is representable",
    "exact-special": "exact; Inf and NaN as the destination has them",
    "round": "rounded to the narrower float",
    "round-integral": "rounded to an integral value of the same type",
    "float-to-int": "rounded to an integer, then saturated or cut",
    "int-to-float": "rounded, always saturating",
    "int-narrow": "clamped or cut to the low bits",
    "int-widen-clamp": "a negative number becomes 0",
    "hif8": "hifloat8: half to away, or hybrid",
    "fp8": "rounded to fp8, then saturated or not",
    "fp4": "rounded to fp4, saturating",
    "e8m0": "the exponent field is copied",
    "dequant": "multiplied by the dequantisation scale, then rounded to half",
    "complex": "part by part",
}


def effect_text(effect: ascend.Effect) -> str:
    """Say in a word or two what becomes of a mode."""
    if effect.status == "ignored":
        return "ignored"
    return {"used": "used", "default": f"-> {effect.effective.short}"}.get(
        effect.status, f"{effect.status} -> {effect.effective.short}"
    )


def cast_under_every_mode(value: Value, f: Format, target: str, source: str) -> dict[str, Any]:
    """Cast one value as a product does in each of its modes.

    Returns
    -------
    dict
        "title", "given" (the value in the source type), "overflow", "evidence", and "modes": for each mode its name,
        what becomes of it, the mode that rounds, and the code.
    """
    product = ascend.parse_target(target)
    src = ascend.type_info(source)
    if not isinstance(src.format, (FloatFormat, TaperedFormat)) and isinstance(value, Fraction):
        value = value if value.denominator == 1 else Fraction(round(value))
    beyond = "raise" if src.format.kind == "int" else "infinity"
    given = encode(np.array([value], dtype=object), src.format, overflow=beyond)
    modes = []
    for mode in ascend.RoundMode:
        rule = ascend.cast_rule(src, f, mode, product)
        if mode is not ascend.RoundMode.CAST_HYBRID or mode in rule.modes:
            result = ascend.cast(Array(given, src.format), f, mode, product, odd="pad")
            code = int(result.codes.view(f.code_dtype)[0])
            modes.append({"mode": mode.name, "effect": effect_text(rule.effect), "code": code})
    rule = ascend.cast_rule(src, f, product=product)
    lines = rule.explain().splitlines()
    return {
        "title": lines[0],
        "given": src.format.value(int(given.view(src.format.code_dtype)[0])),
        "source": src.format.name,
        "notes": [line for line in lines if line.startswith(("overflow", "evidence", "open questions"))],
        "modes": modes,
    }


def target_dict(found: dict[str, Any], f: Format) -> dict[str, Any]:
    """Return the answer of `cast_under_every_mode` for JSON."""
    modes = [
        {**entry, "code": f"{entry['code']:#0{2 + -(-f.bits // 4)}x}", **as_json(f.value(entry["code"]))}
        for entry in found["modes"]
    ]
    return {**found, "given": as_json(found["given"]), "modes": modes}
