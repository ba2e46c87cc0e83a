"""The oracle: what `exact` says of a range of consecutive patterns, asked only where the answer changes.

Within one binade of one sign the values of float patterns grow with the pattern, and rounding is monotonic: the codes
of consecutive patterns form steps. Their first patterns are found by bisection, so that the oracle runs at the speed of
memory. That a step is constant inside is tested too, at one random pattern of each.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from bittrue import exact
from bittrue.formats import FloatFormat, Format, TaperedFormat
from bittrue.rounding import Overflow, Rounding, Rule

Codes = np.ndarray[Any, Any]
Ask = Callable[[int], int]

#: What `asker` says of a value that is beyond the range under ``overflow="raise"``.
BEYOND = -1


def asker(source: FloatFormat, target: Format, rule: Rule) -> Ask:
    """Return the function from a pattern of `source` to its code in `target` by the specification."""

    def ask(pattern: int) -> int:
        try:
            return exact.encode(source.value(pattern), target, rule, source=source)
        except OverflowError:
            return BEYOND

    return ask


def spans(source: FloatFormat, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Cut the patterns first..last into ranges within one binade and sign; zero and Inf stand alone."""
    binade, sign = 1 << source.mantissa_bits, 1 << source.magnitude_bits
    infinity = int(source.inf_magnitude or 0)
    while first <= last:
        magnitude = first & (sign - 1)
        if magnitude in (0, infinity):
            end = first
        elif magnitude > infinity:
            end = first | (sign - 1)
        else:
            end = first | (binade - 1)
        yield first, min(end, last)
        first = end + 1


def steps(ask: Ask, first: int, last: int) -> list[tuple[int, int]]:
    """Return (first pattern, code) of every step in first..last, in order.

    A step is first supposed to be as long as the last one or the one before (round to odd has long and short steps in
    turn), which two questions confirm; otherwise its end is found by bisection.

    Raises
    ------
    AssertionError
        When a pattern inside a step has another code: the specification would not be monotonic.
    """
    found, lengths = [], [0, 0]
    start, code, final = first, ask(first), ask(last)
    while code != final:
        end, after = 0, 0  # the first pattern that has another code, and that code
        for length in lengths:
            guess = start + length
            if length and guess <= last and (length == 1 or ask(guess - 1) == code) and (after := ask(guess)) != code:
                end = guess
                break
        else:
            low, end, after = start, last, final
            while end - low > 1:
                middle = (low + end) // 2
                at_middle = ask(middle)
                if at_middle == code:
                    low = middle
                else:
                    end, after = middle, at_middle
        found.append((start, code))
        lengths = [lengths[1], end - start]
        start, code = end, after
    found.append((start, code))
    ends = [start for start, _ in found[1:]] + [last + 1]
    for (start, code), end in zip(found, ends):
        if end - start < 3:
            continue
        inside = random.Random(start).randrange(start + 1, end - 1)
        assert ask(inside) == code, f"pattern {inside:#x} lies in the step of {code:#x} that begins at {start:#x}"
    return found


def fill(out: Codes, ask: Ask, source: FloatFormat, first: int) -> None:
    """Write the codes of the patterns from `first` on into `out`."""
    for low, high in spans(source, first, first + out.size - 1):
        found = steps(ask, low, high)
        ends = [start for start, _ in found[1:]] + [high + 1]
        for (start, code), end in zip(found, ends):
            out[start - first : end - first] = code


def fill_hybrid(out: Codes, patterns: Codes, target: TaperedFormat, overflow: Overflow, first: int) -> None:
    """Write the codes of hybrid rounding from float32: the vendor's text on whole arrays, grid points from `exact`.

    Ascend C Reg Cast, CAST_HYBRID (specs/ascend.md 2.4). It is no step function: the threshold is the 14 lowest
    fraction bits of the input itself. `first` is the first of the consecutive `patterns`, which lie in one binade.
    """
    sign = -1 if first >> 31 else 1
    exponent = (first >> 23 & 0xFF) - 127
    rule = Rule(overflow=overflow)
    if exponent == 128:
        out[:] = exact.encode(sign * float("nan"), target, rule)
        if not first & 0x7FFFFF:
            out[0] = exact.encode(sign * float("inf"), target, rule)
        return
    if exponent < -23:
        out[:] = 0
        return
    if exponent > 15:
        out[:] = exact.encode(sign * 2 * target.max, target, rule)
        return
    size = abs(exponent)
    kept = 3 if size <= 3 else 2 if size <= 7 else 1 if size <= 15 else 0
    fraction = patterns & np.uint32(0x7FFFFF)
    threshold = fraction & np.uint32(0x3FFF)
    if exponent == -23:
        grid = [Fraction(0), Fraction(2) ** -22]
        lower: Any = 0
        up = (np.uint32(1 << 13) | fraction >> np.uint32(10)) >= threshold
    else:
        grid = [(2**kept + k) * Fraction(2) ** (exponent - kept) for k in range(2**kept + 1)]
        lower = fraction >> np.uint32(23 - kept)
        first_dropped = fraction >> np.uint32(9 - kept) & np.uint32(0x3FFF)
        up = first_dropped >> np.uint32(13) if size <= 3 else first_dropped >= threshold
    codes = np.array([exact.encode(sign * v, target, rule) for v in grid], out.dtype)
    np.take(codes, lower + up.astype(np.uint32), out=out, mode="clip")


DETERMINISTIC = [m for m in Rounding if m not in (Rounding.stochastic, Rounding.hybrid)]
