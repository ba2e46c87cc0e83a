"""`bittrue vectors`: test vectors for hardware that is being verified, as lines of hexadecimal codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..codes import bit_patterns
from ..exact import check_rule
from ..formats import Format, format
from ..inspection.vectors import expected, inputs, modes_of
from ..rounding import make_rule

__all__ = ["write_vectors"]


def write_vectors(to: str, source: str, modes: Sequence[str], overflow: str | None, nan: str | None) -> None:
    """Write a line for each input: its code, and the codes that the modes give."""
    f = format(to)
    rules = [make_rule(None, rounding=m, overflow=overflow, nan=nan) for m in modes or modes_of(to, source)]
    if any(rule.rounding.value == "stochastic" for rule in rules):
        raise ValueError("--rounding stochastic has no result of its own; 'bittrue encode --seed' draws one")
    for rule in rules:
        check_rule(rule, f)
    x = inputs(f, source)
    columns = [(x.format, bit_patterns(x.codes, x.format)), *((f, codes) for codes in expected(x, f, rules))]
    out = sys.stdout
    out.write(f"// {x.format.name} to {f.name}, overflow {rules[0].overflow.value}, nan {rules[0].nan.value}\n")
    out.write(f"// input {' '.join(rule.rounding.value for rule in rules)}\n")
    for line in zip(*(_hex(codes, fmt) for fmt, codes in columns)):
        out.write(" ".join(line) + "\n")


def _hex(codes: np.ndarray[Any, Any], f: Format) -> list[str]:
    return [f"{code:0{-(-f.bits // 4)}x}" for code in codes.tolist()]
