"""The comparison standards: formulas, thresholds and sources as data, and the verdict on measured figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..formats import Format
from ..rounding import suggestion
from .measure import Criterion, Figures

__all__ = ["Check", "Standard", "Test", "standard", "standards"]

_PS = "Ascend operator precision standard"


@dataclass(frozen=True)
class Check:
    """One figure beside its limit.

    Attributes
    ----------
    figure : str
    value, limit : float
    passed : bool
    text : str
        The comparison in words.
    """

    figure: str
    value: float
    limit: float
    passed: bool
    text: str


@dataclass(frozen=True)
class Test:
    """A standard made ready for one format: what to measure, and how to judge it.

    Attributes
    ----------
    criteria : tuple of Criterion
    judge : callable
        Takes the `Figures` of the data and, for a standard of three inputs, those of the third; returns the checks.
    everything : bool
        The means are over a part of the elements, so that equal ones must be measured too.
    floor : float
        |golden| below it is left out of sums and maxima.
    note : str
        A remark for the report.
    """

    criteria: tuple[Criterion, ...]
    judge: Callable[[Figures, Figures | None], list[Check]]
    everything: bool = False
    floor: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class Standard:
    """A comparison standard.

    Attributes
    ----------
    name, formula, source : str
    options : mapping of str to default
        Keyword arguments of `bittrue.compare` that it takes.
    third : bool
        It compares two implementations with the golden data.
    codes : bool
        It is about codes; otherwise about values, and the golden data may be wide.
    prepare : callable
        Takes the format and the options and returns the `Test`.
    """

    name: str
    formula: str
    source: str
    options: Mapping[str, Any]
    prepare: Callable[[Format, Mapping[str, Any]], Test]
    third: bool = False
    codes: bool = False
    aliases: tuple[str, ...] = ()


# --- thresholds -------------------------------------------------------------------------------------------------------

#: Rows by format: T of MERE and MARE; threshold and error of the small-value domain (standard of the Ascend ecosystem).
_ROWS: dict[str, tuple[float, float, float]] = {
    "float16": (2.0**-10, 2.0**-11, 2.0**-16),
    "bfloat16": (2.0**-7, 2.0**-8, 2.0**-16),
    "float32": (2.0**-13, 2.0**-14, 2.0**-30),
    "hifloat32": (2.0**-11, 2.0**-12, 2.0**-28),
    "float8_e4m3fn": (2.0**-3, 2.0**-4, 2.0**-6),
    "float8_e5m2": (2.0**-2, 2.0**-3, 2.0**-5),
}

#: Formats that borrow a row, and the remark (open question 30).
_BORROWED = {"hifloat8": "float8_e4m3fn"}

#: rtol, atol and limit of the mixed tolerance (opbase experimental_standard.md, 2026 draft).
_MIXED: dict[str, tuple[float, float, float]] = {
    "float16": (2.0**-9, 2.0**-14, 1e-1),
    "bfloat16": (2.0**-6, 2.0**-10, 1.0),
    "float32": (2.0**-10, 2.0**-16, 1e-2),
}

#: Limits of the double benchmark for the ratios of MARE, MERE and RMSE, by level.
_LEVELS = {"L0": (10.0, 2.0, 2.0), "L1": (5.0, 1.5, 1.5), "L2": (2.0, 1.2, 1.2)}


def _row(table: Mapping[str, tuple[float, ...]], f: Format, given: str, what: str) -> tuple[tuple[float, ...], str]:
    """Return the row of a format, and the remark where it is another's."""
    if f.name in table:
        return table[f.name], ""
    other = _BORROWED.get(f.name)
    if other in table:
        return table[str(other)], f"{f.name} has no row; that of {other} is taken (open question 30)"
    raise ValueError(
        f"{what} has no thresholds for {f.name} ({', '.join(table)} have); give {given}, or compare by ulp or bitwise"
    )


# --- checks -----------------------------------------------------------------------------------------------------------


def _at_most(figure: str, value: float, limit: float, text: str = "") -> Check:
    passed = value <= limit
    text = text or f"{figure} {_number(value)} {'<=' if passed else '>'} {_number(limit)}"
    return Check(figure, value, limit, passed, text)


def _below(figure: str, value: float, limit: float) -> Check:
    passed = value < limit
    return Check(figure, value, limit, passed, f"{figure} {_number(value)} {'<' if passed else '>='} {_number(limit)}")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def _share(figures: Figures, count: int, share: float, what: str) -> Check:
    """Check count <= share * N, exactly."""
    allowed = Fraction(repr(share)) * figures.elements
    passed = count <= allowed
    text = f"{count} of {figures.elements} elements with {what} {'<=' if passed else '>'} {float(allowed):g} allowed"
    return Check("outliers", count, float(allowed), passed, text)


def _positive(options: Mapping[str, Any], *names: str) -> None:
    for name in names:
        value = options[name]
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf
        ):
            raise ValueError(f"{name}={value!r} must be a number not below 0")


def _one_of(options: Mapping[str, Any], name: str, allowed: Sequence[str]) -> Any:
    if options[name] not in allowed:
        raise ValueError(f"{name}={options[name]!r} must be one of {', '.join(map(repr, allowed))}")
    return options[name]


# --- the standards ----------------------------------------------------------------------------------------------------


def _bitwise(f: Format, options: Mapping[str, Any]) -> Test:
    def judge(figures: Figures, _third: Figures | None) -> list[Check]:
        n = figures.mismatches
        text = f"{n} of {figures.elements} elements differ" if n else f"all {figures.elements} elements are equal"
        return [_at_most("mismatches", n, 0, text)]

    return Test((), judge)


def _ulp(f: Format, options: Mapping[str, Any]) -> Test:
    most = options["max_ulp"]
    if isinstance(most, bool) or not isinstance(most, int) or most < 0:
        raise ValueError(f"max_ulp={most!r} must be an integer not below 0")

    def judge(figures: Figures, _third: Figures | None) -> list[Check]:
        checks = [_at_most("max ULP", figures.max_ulp, most)]
        if figures.unordered:
            checks.append(_at_most("NaN", figures.unordered, 0, f"{figures.unordered} NaN beside numbers"))
        return checks

    return Test((), judge)


def _allclose(f: Format, options: Mapping[str, Any]) -> Test:
    _positive(options, "rtol", "atol")
    rtol, atol = float(options["rtol"]), float(options["atol"])
    what = f"|a-g| > {atol:g} + {rtol:g} |g|"
    return Test(
        (Criterion("allclose", constant=atol, slope=rtol),),
        lambda figures, _third: [_at_most("outside", figures.violations[0], 0, _outside(figures, what))],
    )


def _outside(figures: Figures, what: str) -> str:
    n = figures.violations[0]
    return f"{n} of {figures.elements} elements with {what}" if n else f"no element of {figures.elements} with {what}"


def _absolute(f: Format, options: Mapping[str, Any]) -> Test:
    _positive(options, "limit")
    limit = float(options["limit"])
    return Test((), lambda figures, _third: [_at_most("max AE", figures.max_abs, limit)])


def _double(f: Format, options: Mapping[str, Any]) -> Test:
    _positive(options, "tolerance")
    t = float(options["tolerance"])
    if _one_of(options, "reading", ("vendor", "rtol_atol")) == "rtol_atol":
        return _allclose(f, {"rtol": t, "atol": t})
    relative = _one_of(options, "error", ("relative", "absolute")) == "relative"
    what = f"{'RE' if relative else 'AE'} > {t:g}"
    return Test(
        (Criterion("double", relative=relative, constant=t),),
        lambda figures, _third: [_share(figures, figures.violations[0], t, what)],
    )


def _mere_mare(f: Format, options: Mapping[str, Any]) -> Test:
    _positive(options, "threshold")
    t, note = options["threshold"], ""
    if t is None:
        (t, *_), note = _row(_ROWS, f, "threshold=", "mere_mare")

    def judge(figures: Figures, _third: Figures | None) -> list[Check]:
        return [_below("MERE", figures.mean_rel, t), _below("MARE", figures.max_rel, 10 * t)]

    return Test((), judge, note=note)


def _double_benchmark(f: Format, options: Mapping[str, Any]) -> Test:
    _positive(options, "small", "small_error")
    level = _one_of(options, "level", tuple(_LEVELS))
    divisor = _one_of(options, "divisor", ("error", "threshold"))
    small, error, note = options["small"], options["small_error"], ""
    if small is None or error is None:
        row, note = _row(_ROWS, f, "small= and small_error=", "double_benchmark")
        small, error = row[1] if small is None else small, row[2] if error is None else error

    def judge(figures: Figures, third: Figures | None) -> list[Check]:
        assert third is not None
        checks = []
        for name, figure, limit in zip(("MARE", "MERE", "RMSE"), ("max_rel", "mean_rel", "rmse"), _LEVELS[level]):
            ours, its = getattr(figures, figure), getattr(third, figure)
            ratio = _ratio(ours, max(its, small) if divisor == "threshold" else its)
            text = f"{name} ratio {_number(ratio)} ({_number(ours)} / {_number(its)})"
            checks.append(_at_most(name, ratio, limit, f"{text} {'<=' if ratio <= limit else '>'} {limit:g}"))
        ours, its = figures.violations[0], third.violations[0]
        ratio = ours / max(its, 1)
        text = f"small values with AE > {error:g}: {ours} against {its}, ratio {_number(ratio)}"
        checks.append(_at_most("small values", ratio, 2.0, f"{text} {'<=' if ratio <= 2 else '>'} 2"))
        return checks

    return Test((Criterion("small", constant=error, high=small),), judge, True, small, note)


def _ratio(ours: float, its: float) -> float:
    if ours == its:
        return 1.0
    return ours / its if its else math.inf


def _mixed(f: Format, options: Mapping[str, Any]) -> Test:
    _positive(options, "rtol", "atol", "limit")
    given = [options[name] for name in ("rtol", "atol", "limit")]
    if None in given:
        row, _ = _row(_MIXED, f, "rtol=, atol= and limit=", "mixed_tolerance")
        given = [own if own is not None else default for own, default in zip(given, row)]
    rtol, atol, limit = map(float, given)
    criteria = (
        Criterion("tolerance", constant=atol, slope=rtol),
        Criterion("limit", constant=limit, spacings=32.0),
    )

    def judge(figures: Figures, _third: Figures | None) -> list[Check]:
        outside, far = figures.violations
        what = f"|a-g| > max({limit:g}, 32 ULP)"
        return [
            _share(figures, outside, 0.01, f"|a-g| > {atol:g} + {rtol:g} |g|"),
            _at_most("far off", far, 0, f"{far or 'no'} element{'s' * (far != 1)} with {what}"),
        ]

    return Test(criteria, judge)


_STANDARDS = (
    Standard("bitwise", "every code equal", f"{_PS}: move and cast operators, integers", {}, _bitwise, codes=True),
    Standard("ulp", "distance in representable values <= max_ulp", "bittrue", {"max_ulp": 1}, _ulp, codes=True),
    Standard("allclose", "|a-g| <= atol + rtol |g|", "numpy.allclose", {"rtol": 1e-5, "atol": 1e-8}, _allclose),
    Standard("absolute", "|a-g| <= limit", f"{_PS}: quantise to integer, AE <= 1", {"limit": 1.0}, _absolute),
    Standard(
        "double_thousandth",
        "count(RE > 1/1000) <= N / 1000; reading='rtol_atol': |a-g| <= 1/1000 (1 + |g|)",
        "asc-devkit, Mmad.md, footnote (vendor); ops-nn READMEs (rtol_atol); open questions 28, 29",
        {"reading": "vendor", "error": "relative", "tolerance": 1e-3},
        _double,
    ),
    Standard(
        "double_ten_thousandth",
        "count(RE > 1/10000) <= N / 10000; reading='rtol_atol': |a-g| <= 1/10000 (1 + |g|)",
        "asc-devkit, Mmad.md, footnote (vendor); ops-nn READMEs (rtol_atol); open questions 28, 29",
        {"reading": "vendor", "error": "relative", "tolerance": 1e-4},
        _double,
    ),
    Standard(
        "mere_mare",
        "mean RE < T and max RE < 10 T",
        f"{_PS}: single benchmark, ecosystem version",
        {"threshold": None},
        _mere_mare,
        aliases=("ecosystem", "single_benchmark"),
    ),
    Standard(
        "double_benchmark",
        "MARE, MERE and RMSE relative to a third implementation's <= limits of the level; small values by count",
        f"{_PS}: double benchmark, commercial 2.1",
        {"level": "L1", "divisor": "error", "small": None, "small_error": None},
        _double_benchmark,
        third=True,
        aliases=("commercial_2_1",),
    ),
    Standard(
        "mixed_tolerance",
        "|a-g| <= atol + rtol |g| for 99 % of the elements, and |a-g| <= max(limit, 32 ULP(g)) for all",
        f"{_PS}: opbase experimental_standard.md, 2026 draft",
        {"rtol": None, "atol": None, "limit": None},
        _mixed,
        aliases=("mixed_2026",),
    ),
)


def standards() -> list[Standard]:
    """Return all standards.

    Examples
    --------
    >>> [s.name for s in standards()][:3]
    ['bitwise', 'ulp', 'allclose']
    """
    return list(_STANDARDS)


def standard(name: str | Standard) -> Standard:
    """Return the standard with this name, or raise a `ValueError` that lists them."""
    if isinstance(name, Standard):
        return name
    for s in _STANDARDS:
        if isinstance(name, str) and name.lower() in (s.name, *s.aliases):
            return s
    names = [n for s in _STANDARDS for n in (s.name, *s.aliases)]
    raise ValueError(
        f"standard={name!r} is not a comparison standard{suggestion(name, names)} "
        f"({', '.join(s.name for s in _STANDARDS)})"
    )


def options_of(s: Standard, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a standard with those given (not None) put in; raise for one that it does not take."""
    for name in given:
        if name not in s.options:
            takes = ", ".join(s.options) or "none"
            raise ValueError(f"{name}={given[name]!r} is not an option of standard {s.name!r} (it takes: {takes})")
    plain = {n: v.item() if isinstance(v, np.generic) else v for n, v in given.items() if v is not None}
    return {**s.options, **plain}
