"""What is said about a number agrees with the specification: kept and dropped bits, reasons, and the line's values."""

from __future__ import annotations

from fractions import Fraction

import pytest

import bittrue as bt
from bittrue import exact
from bittrue.inspection import line
from bittrue.inspection.number import NumberView
from bittrue.rounding import Rounding, Rule

REAL = [f for f in (*bt.formats(), bt.format("p3109_k8p3ue")) if f.kind in ("int", "float", "tapered")]
MODES = [m for m in Rounding if m not in (Rounding.stochastic, Rounding.hybrid)]


def numbers(f):
    """Around zero, one, the limits and between neighbours, of both signs."""
    q = f.min_subnormal
    found = [Fraction(13, 10), Fraction(5, 2), Fraction(7, 2), Fraction(1, 3), q / 3, q / 2, q * 5 / 2, f.max - q / 3]
    found += [f.max, f.max + f.epsilon * f.max / 3, f.max * 2, f.min_normal * Fraction(15, 16), Fraction(10) ** 40]
    return [*found, *(-x for x in found)]


@pytest.mark.parametrize("f", REAL, ids=str)
def test_decisions_are_those_of_the_specification(f):
    judged = 0
    for x in numbers(f):
        view = NumberView(f, x)
        d = view.decision
        if d is None or "bits" in d.kept:
            continue
        whole, _, fraction = d.kept.partition(".")
        step = Fraction(2) ** (d.exponent - len(fraction))
        low = int(whole + fraction, 2) * step
        assert low + d.dropped * step == abs(x) and 0 <= d.dropped < 1
        assert d.round_bit == (d.dropped >= Fraction(1, 2)) and d.sticky == (d.dropped * 2 % 1 != 0)
        for mode in MODES:
            value = low + step * d.up(mode)
            why = view.why(mode)
            if value > f.max if x > 0 else -value < f.min:
                assert "range: saturates" in why, (x, mode)
                continue
            judged += 1
            assert abs(Fraction(f.value(exact.encode(x, f, Rule(rounding=mode))))) == value, (x, mode)
            assert ("up" in why.split(": ")[-1]) is d.up(mode) and "range" not in why
    assert judged > 20


@pytest.mark.parametrize("f", [f for f in REAL if f.bits <= 16], ids=str)
def test_the_whole_line_has_every_finite_value_once(f):
    finite = {Fraction(v) for v in f.values() if isinstance(v, Fraction) or v == 0}
    window = line.whole([f])
    row = line.row(f, window)
    assert row.total == len(finite) == (len(row.points) or sum(row.bins))
    assert window.low <= f.min and f.max <= window.high
    if row.points:
        assert [p.value for p in row.points] == sorted(finite)
        assert all(f.value(p.code) == p.value for p in row.points)
    half = [line.row(f, line.Window(window.centre + way * window.width / 4, window.zoom - 1)) for way in (-1, 1)]
    assert sum(r.total for r in half) == len(finite) + (window.centre in finite)


def test_ticks_are_round_numbers_inside():
    for zoom in (-1000, -60, -3, 0, 7, 130, 1020):
        for centre in (Fraction(0), Fraction(2) ** zoom * 1000):
            window = line.Window(centre, zoom)
            ticks = line.axis(window)
            assert 2 <= len(ticks) <= 12 and len({text for _, text in ticks}) == len(ticks)
            for place, text in ticks:
                assert abs(window.low + Fraction(place) * window.width - Fraction(text)) < window.width / 1000
