"""Which values a conversion takes beyond the range of a format, and which formats float32 holds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from .. import exact
from ..formats import BoolFormat, FloatFormat, Format, IntFormat, TaperedFormat, floor_log2
from ..formats import format as _format
from ..rounding import Negative, Rounding, Rule

__all__ = ["ceiling", "fits_float32", "overflow_limits"]

_FLOAT32 = _format("float32")


def fits_float32(fmt: Format) -> bool:
    """Whether float32 holds every value of `fmt`."""
    if isinstance(fmt, IntFormat):
        return fmt.bits <= 24
    if isinstance(fmt, FloatFormat) and fmt.mantissa_bits > 23:
        return False
    least = Fraction(1, 1 << 149)
    if isinstance(fmt, BoolFormat):
        return True
    return fmt.max <= _FLOAT32.max and -fmt.min <= _FLOAT32.max and fmt.min_subnormal >= least


def ceiling(value: Fraction | float, dtype: np.dtype[Any]) -> Any:
    """Return the smallest number of `dtype` not below `value`; inf beyond its range."""
    if isinstance(value, float):
        return dtype.type(value)
    with np.errstate(over="ignore"):
        try:
            near = dtype.type(float(value))
        except OverflowError:
            return dtype.type(math.inf if value > 0 else np.finfo(dtype).min)
    if math.isinf(near):
        return near if near > 0 else np.finfo(dtype).min
    return near if Fraction(float(near)) >= value else np.nextafter(near, dtype.type(math.inf))


def overflow_limits(target: Format, rule: Rule, source: Format) -> tuple[Fraction | float, Fraction | float]:
    """Return (low, high): a finite x rounds beyond the range of `target` iff x >= high or x <= low.

    Examples
    --------
    >>> overflow_limits(_format("float8_e4m3fn"), Rule(), _FLOAT32)[1] > 464
    True
    """
    if isinstance(target, BoolFormat):
        return -math.inf, math.inf
    tiny = Fraction(1, 1 << 1100)  # stands for "anything above"; thresholds are far coarser than this
    if isinstance(target, IntFormat):
        high = _limit(rule, int(target.max), Fraction(1), bool(target.max % 2), False, tiny)
        return -_limit(rule, -int(target.min), Fraction(1), bool(target.min % 2), True, tiny), high
    assert isinstance(target, (FloatFormat, TaperedFormat))
    step = Fraction(2) ** target.quantum_exponent(floor_log2(target.max))
    odd = bool(target.max_code & 1)
    high = _limit(rule, target.max, step, odd, False, tiny)
    if target.signed:
        return -_limit(rule, target.max, step, odd, True, tiny), high
    if rule.negative is Negative.magnitude:
        return -high, high
    if not target.has_zero:
        low = tiny  # there is nothing at or below zero
    elif rule.flush_outputs:
        largest = target.min_normal - target.min_subnormal  # the largest value that still becomes zero
        odd = bool(int(largest / target.min_subnormal) & 1)
        low = _limit(rule, largest, target.min_subnormal, odd, True, tiny)
    else:
        low = _limit(rule, Fraction(0), target.min_subnormal, False, True, tiny)
    if rule.flush_inputs and isinstance(source, (FloatFormat, TaperedFormat)):
        low = max(low, source.min_normal)
    return -low, high


def _limit(rule: Rule, largest: Fraction | int, step: Fraction, odd: bool, negative: bool, tiny: Fraction) -> Fraction:
    """Return the smallest magnitude that rounds beyond `largest`, whose next value would be `step` further."""
    certain = largest + step
    if rule.rounding in (Rounding.hybrid, Rounding.stochastic):
        return certain
    for rest, limit in ((1, largest + tiny), (2, largest + step / 2), (3, largest + step / 2 + tiny)):
        if exact.round_up(rule.rounding, odd, negative, rest, 4):
            return limit
    return certain
