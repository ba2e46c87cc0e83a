"""A piece of the number line: which values a format has there, and where they lie between its two ends."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from ..exact import encode
from ..formats import ComplexFormat, FloatFormat, Format, IntFormat, TaperedFormat, Value, floor_log2
from ..rounding import Rounding, Rule
from .number import NumberView
from .numbers import decimal, exact, hex_float

__all__ = ["MOST_POINTS", "Point", "Row", "Window", "around", "axis", "row", "whole"]

MOST_POINTS = 256  # above, values are counted in bins
_BINS = 128

_FLOOR = Rule(rounding=Rounding.floor)
_SMALL = 8  # bits; the values of such formats are listed once
_CENTRE_BITS = 10  # a centre is a multiple of the width / 2**10, so that it can be written shortly
_WIDEST, _DEEPEST = 1100, -1100
_SPARE = 2  # a window is never narrower than a quarter of the distance of neighbours


class Point(NamedTuple):
    """A value of a format in a window: its place from 0 (left end) to 1, its code, the value."""

    x: float
    code: int
    value: Value


class Row(NamedTuple):
    """The values of a format in a window: each of them, or (of too many) their numbers in equal bins."""

    total: int
    points: list[Point]
    bins: list[int]


class Window(NamedTuple):
    """A piece of the line: 2**zoom wide, with its centre."""

    centre: Fraction
    zoom: int

    @property
    def width(self) -> Fraction:
        """Right end minus left end."""
        return Fraction(2) ** self.zoom

    @property
    def low(self) -> Fraction:
        """The left end."""
        return self.centre - self.width / 2

    @property
    def high(self) -> Fraction:
        """The right end."""
        return self.centre + self.width / 2

    @property
    def centre_text(self) -> str:
        """The centre, exactly, as a number to type: a decimal where that is short."""
        full = exact(self.centre)
        return full if len(full) <= 24 else hex_float(self.centre) or full

    def place(self, value: Fraction) -> float:
        """Return where a value lies: 0 at the left end, 1 at the right one, within a window's width outside."""
        at = (value - self.low) / self.width
        return float(min(max(at, Fraction(-1)), Fraction(2)))

    def scaled(self, by: int, at: Fraction, formats: Sequence[Format]) -> Window:
        """Return the window that is 2**by times as wide, with the place `at` (0 to 1) where it was."""
        fixed = self.low + at * self.width
        made = Window(fixed, self.zoom + by)
        return Window(fixed + (Fraction(1, 2) - at) * made.width, made.zoom).within(formats)

    def moved(self, by: Fraction, formats: Sequence[Format]) -> Window:
        """Return the window moved to the right by `by` of its width."""
        return Window(self.centre + by * self.width, self.zoom).within(formats)

    def within(self, formats: Sequence[Format]) -> Window:
        """Return the window with a short centre inside the formats' ranges, and no narrower than can tell anything."""
        limits = [_limits(f) for f in formats]
        low, high = min(lo for lo, _ in limits), max(hi for _, hi in limits)
        centre = min(max(self.centre, low), high)
        deepest = min(_quantum(f, centre) for f in formats) - _SPARE
        zoom = min(max(self.zoom, deepest, _DEEPEST), _WIDEST, max(_covering(low, high), deepest))
        unit = Fraction(2) ** (zoom - _CENTRE_BITS)
        return Window(round(centre / unit) * unit, zoom)


def _real(f: Format) -> Format:
    return f.part if isinstance(f, ComplexFormat) else f


def _limits(f: Format) -> tuple[Fraction, Fraction]:
    part = _real(f)
    return part.min, part.max


def _covering(low: Fraction, high: Fraction) -> int:
    """Return the exponent of the smallest window that shows both with some room beside them."""
    return floor_log2((high - low) * Fraction(17, 16)) + 1


def _quantum(f: Format, value: Fraction) -> int:
    """Return the exponent of the distance of neighbours at a value."""
    part = _real(f)
    if isinstance(part, (FloatFormat, TaperedFormat)):
        return part.quantum_exponent(floor_log2(max(abs(value), part.min_subnormal)))
    return 0


def whole(formats: Sequence[Format]) -> Window:
    """Return the window with all finite values of the formats.

    Examples
    --------
    >>> from bittrue import format
    >>> whole([format("int8")])
    Window(centre=Fraction(-1, 2), zoom=9)
    """
    limits = [_limits(f) for f in formats]
    low, high = min(lo for lo, _ in limits), max(hi for _, hi in limits)
    return Window((low + high) / 2, _covering(low, high)).within(formats)


def around(view: NumberView, formats: Sequence[Format]) -> Window:
    """Return a window in which a number's neighbours can be told apart; the whole line for NaN.

    Examples
    --------
    >>> from bittrue import format
    >>> f = format("hifloat8")
    >>> around(NumberView(f, Fraction(13, 10)), [f])
    Window(centre=Fraction(1331, 1024), zoom=0)
    """
    if view.is_nan:
        return whole(formats)
    low, high = _limits(view.f)
    if view.is_infinite:
        centre = high if view.value > 0 else low
    else:
        centre = min(max(view.number, low), high)
    return Window(centre, _quantum(view.f, centre) + 3).within(formats)


class _Grid:
    """The finite values of a format in their order: ranks without gaps, zero counted once."""

    def __init__(self, f: Format) -> None:
        self.f = f
        self.values: list[Fraction] = []
        self.codes: list[int] = []
        if f.bits <= _SMALL:
            seen: dict[Fraction, int] = {}
            for code, value in enumerate(f.values()):
                if isinstance(value, Fraction) or value == 0:
                    seen.setdefault(Fraction(value), code)
            self.values = sorted(seen)
            self.codes = [seen[v] for v in self.values]
            self.low, self.high = 0, len(self.values) - 1
        elif isinstance(f, IntFormat):
            self.low, self.high = int(f.min), int(f.max)
        else:
            assert isinstance(f, FloatFormat)
            self.low, self.high = (-f.max_code if f.signed else 0), f.max_code

    def floor(self, value: Fraction) -> int:
        """Return the rank of the largest value that is not above `value`; one less than the lowest where none is."""
        if self.values:
            return bisect_right(self.values, value) - 1
        if value < self.f.min:
            return self.low - 1
        code = encode(value, self.f, _FLOOR)
        if isinstance(self.f, IntFormat):
            return int(Fraction(self.f.value(code)))
        assert isinstance(self.f, FloatFormat)
        magnitude = code & ((1 << self.f.magnitude_bits) - 1)
        return -magnitude if self.f.signed and code >> self.f.magnitude_bits else magnitude

    def point(self, rank: int) -> tuple[int, Fraction]:
        """Return code and value of a rank."""
        if self.values:
            return self.codes[rank], self.values[rank]
        if isinstance(self.f, IntFormat):
            return self.f.pack(rank), Fraction(rank)
        assert isinstance(self.f, FloatFormat)
        code = self.f.with_sign(abs(rank), rank < 0)
        return code, Fraction(self.f.value(code))


@lru_cache(maxsize=64)
def _grid(f: Format) -> _Grid:
    return _Grid(f)


def row(f: Format, window: Window) -> Row:
    """Return what a format has in a window (a complex one: its parts).

    Examples
    --------
    >>> from bittrue import format
    >>> [str(p.value) for p in row(format("float4_e2m1fn"), Window(Fraction(3), 2)).points]
    ['1', '3/2', '2', '3', '4']
    """
    grid = _grid(_real(f))
    last = grid.floor(window.high)
    first = grid.floor(window.low)
    if first < grid.low or grid.point(first)[1] < window.low:
        first += 1
    count = max(last - first + 1, 0)
    if count <= MOST_POINTS:
        found = [grid.point(rank) for rank in range(first, last + 1)]
        return Row(count, [Point(window.place(value), code, value) for code, value in found], [])
    edges = [grid.floor(window.low + window.width * i / _BINS) for i in range(_BINS + 1)]
    edges[0] = first - 1
    return Row(count, [], [b - a for a, b in zip(edges, edges[1:])])


def axis(window: Window, most: int = 7) -> list[tuple[float, str]]:
    """Return places and texts of round decimal numbers in a window.

    Examples
    --------
    >>> axis(Window(Fraction(3), 2))
    [(0.0, '1'), (0.25, '2'), (0.5, '3'), (0.75, '4'), (1.0, '5')]
    """
    rough = window.width / most
    power = math.floor((floor_log2(rough) - 1) * math.log10(2)) - 1
    step = Fraction(10) ** power
    factors = (2, Fraction(5, 2), 2)
    turn = 0
    while step < rough:
        step *= factors[turn % 3]
        turn += 1
    first, last = math.ceil(window.low / step), math.floor(window.high / step)
    return [(window.place(n * step), _tick(n * step, step)) for n in range(first, last + 1)]


def _tick(value: Fraction, step: Fraction) -> str:
    """Return a tick's number with the digits that tell it from the next one."""
    full = exact(value)
    if len(full.lstrip("-")) <= 9 or value == 0:
        return full
    digits = max(floor_log2(abs(value)) - floor_log2(step), 0) * 0.30103 + 2
    return decimal(value, min(math.ceil(digits), 30))
