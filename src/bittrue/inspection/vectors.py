"""Test vectors of a conversion: the inputs at which its rules part, and what each rounding mode makes of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from .. import codec, exact
from ..array import Array
from ..codes import bit_patterns, step
from ..formats import BoolFormat, ComplexFormat, FloatFormat, Format, TaperedFormat, format
from ..rounding import Rounding, Rule

__all__ = ["expected", "inputs", "modes_of"]

Codes = np.ndarray[Any, Any]

_MOST_BITS, _LEAST = 16, Fraction(1, 2**1000)
_HYBRID_SOURCES = ("float32", "float16", "bfloat16")


def inputs(to: Format | str, source: Format | str = "float32") -> Array:
    """Return the values of a source format at which roundings into another format part.

    They are: every value of `to`, every midpoint of two neighbours, the two places above the largest and below the
    smallest value at which overflow is decided, and the values of `source` on either side of each; both zeros, the
    smallest and largest values of `source`, its infinities and NaNs.

    Parameters
    ----------
    to : Format or name
        Up to 16 bits, neither complex nor in blocks.
    source : Format or name
        Likewise, of any width.

    Returns
    -------
    Array
        Of `source`, one-dimensional, in the order of the bit patterns, each once.

    Raises
    ------
    ValueError
        For formats that are wider, complex or in blocks, or whose midpoints float64 does not hold.

    Examples
    --------
    >>> inputs("int2", "float4_e2m1fn").tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
    """
    f, src = _real(to, "to"), _real(source, "source")
    if f.bits > _MOST_BITS:
        raise ValueError(f"to={f.name!r} has {f.bits} bits; all values of a format are listed up to {_MOST_BITS} bits")
    if isinstance(f, (FloatFormat, TaperedFormat)) and not (f.min_subnormal > _LEAST and f.max < 1 / _LEAST):
        raise ValueError(f"to={f.name!r} reaches beyond 2**-1000 or 2**1000, where float64 lacks midpoints")
    found = np.asarray(codec.decode(np.arange(1 << f.bits, dtype=f.code_dtype).view(f.storage), f, np.float64))
    values = np.unique(np.append(found[np.isfinite(found)], 0.0))
    steps = np.array([values[0] - values[1], values[-1] - values[-2]])
    beyond = np.concatenate([values[[0, -1]] + steps / 2, values[[0, -1]] + steps])
    wanted = np.concatenate([values, (values[:-1] + values[1:]) / 2, beyond])
    below, above = (codec.encode(wanted, src, way) for way in ("floor", "ceil"))
    near = np.concatenate([below, above])
    every = [near, *(step(near, np.full(near.shape, way, np.int8), src) for way in (-1, 1)), _specials(src)]
    return Array(np.unique(np.concatenate([bit_patterns(codes, src) for codes in every])).view(src.storage), src)


def modes_of(to: Format | str, source: Format | str = "float32") -> list[str]:
    """Return the rounding modes that the conversion has and that need no random bits.

    Examples
    --------
    >>> modes_of("half")[-3:], modes_of("hifloat8")[-1]
    (['trunc', 'away', 'odd'], 'hybrid')
    """
    f, src = _real(to, "to"), _real(source, "source")
    found = []
    for mode in Rounding:
        if mode is Rounding.stochastic or (mode is Rounding.hybrid and src.name not in _HYBRID_SOURCES):
            continue
        try:
            exact.check_rule(Rule(rounding=mode), f)
        except ValueError:
            continue
        found.append(mode.value)
    return found


def expected(x: Array, to: Format | str, rules: Iterable[Rule]) -> list[Codes]:
    """Return the codes that each rule makes of the inputs, as unsigned integers."""
    f = _real(to, "to")
    return [bit_patterns(codec.encode(x.exact_values(), f, rule=rule), f) for rule in rules]


def _real(given: Format | str, name: str) -> Format:
    f = format(given)
    if isinstance(f, (BoolFormat, ComplexFormat)) or f.kind == "block":
        raise ValueError(f"{name}={f.name!r}: test vectors are of single real numbers; {f.name} has none per code")
    return f


def _specials(src: Format) -> Codes:
    if not isinstance(src, FloatFormat):
        return codec.encode(np.array([src.min, src.max], object), src)
    edges = [src.min_subnormal, src.min_normal - src.min_subnormal, src.min_normal, src.max]
    numbers = np.array([*edges, 0.0, math.inf, math.nan], object)
    codes = bit_patterns(codec.encode(numbers, src, overflow="infinity"), src)
    if src.nan == "exponent" and src.inf_magnitude is not None:  # signalling, and all ones
        codes = np.append(codes, np.array([src.inf_magnitude + 1, (1 << src.magnitude_bits) - 1], codes.dtype))
    if src.signed:
        codes = np.append(codes, codes | codes.dtype.type(1 << src.magnitude_bits))
    return codes.view(src.storage)
