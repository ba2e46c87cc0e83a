"""`compare`: figures against brute force, every standard at its threshold from both sides, files, and mistakes."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import bittrue as bt
from bittrue.cli import main
from bittrue.comparison import standards
from bittrue.comparison.measure import CHUNK

REAL = [f for f in bt.formats() if f.kind in ("bool", "int", "float", "tapered")]
SMALL = [f for f in REAL if f.bits <= 8]
_NAMES = "float16 bfloat16 tfloat32 float32 float64 int16 int32 int64 uint64"
WIDE = [bt.format(n) for n in _NAMES.split()]
RNG = np.random.default_rng(7)


def random_codes(f, size):
    if f.bits <= 8:
        return RNG.integers(0, 1 << f.bits, size, dtype=np.uint64).astype(f.storage)
    whole = RNG.integers(0, 1 << 63, size, dtype=np.uint64) * 2 + RNG.integers(0, 2, size, dtype=np.uint64)
    return (whole >> np.uint64(64 - f.bits)).astype(f.code_dtype).view(f.storage)


# --- distances --------------------------------------------------------------------------------------------------------


def brute_ranks(f):
    """Rank of the value of each code, from exact fractions; None for NaN."""
    values = f.values()
    numbers = sorted({Fraction(v) if math.isfinite(v) else v for v in values if not math.isnan(v)})
    rank = {v: i for i, v in enumerate(numbers)}
    return [None if math.isnan(v) else rank[Fraction(v) if math.isfinite(v) else v] for v in values]


@pytest.mark.parametrize("f", SMALL, ids=str)
def test_distances_of_all_pairs_equal_brute_force(f):
    n = 1 << f.bits
    ranks = brute_ranks(f)
    golden, actual = np.repeat(np.arange(n), n).astype(f.storage), np.tile(np.arange(n), n).astype(f.storage)
    pairs = [(ranks[g], ranks[a]) for g in range(n) for a in range(n)]
    steps = [abs(g - a) if None not in (g, a) else 0 if g is a else None for g, a in pairs]
    got = bt.ulp_distance(bt.Array(golden, f), bt.Array(actual, f))
    assert got.tolist() == [int(bt.ULP_NAN) if s is None else s for s in steps]

    figures = bt.compare(bt.Array(golden, f), bt.Array(actual, f), kept=3).figures
    known = [s for s in steps if s is not None]
    assert figures.max_ulp == max(known)
    assert figures.mean_ulp * figures.elements == pytest.approx(sum(known), rel=1e-12)
    assert figures.unordered == steps.count(None)
    nan_pairs = sum(g is None and a is None and i // n != i % n for i, (g, a) in enumerate(pairs))
    assert figures.mismatches == n * n - n - nan_pairs
    for low, high, count in figures.histogram:
        if low == 0:  # equal values of different codes
            assert count == sum(s == 0 for s in steps) - n - nan_pairs
        elif low > 0:
            assert count == sum(low <= s <= high for s in known)
        else:
            assert count == steps.count(None)


@pytest.mark.parametrize("f", WIDE, ids=str)
def test_figures_of_wide_formats_equal_brute_force(f):
    golden = random_codes(f, 3000)
    actual = golden.copy()
    change = RNG.random(3000) < 0.4
    actual[change] = random_codes(f, 3000)[change]
    near = RNG.random(3000) < 0.2
    moved = bt.nextafter(bt.Array(golden, f), np.inf).codes
    actual[near] = moved[near]
    g, a = bt.Array(golden, f), bt.Array(actual, f)
    report = bt.compare(g, a, kept=20)
    steps = bt.ulp_distance(g, a)
    nan = steps == bt.ULP_NAN
    both = bt.isnan(g) & bt.isnan(a)
    differ = (golden.view(f.code_dtype) != actual.view(f.code_dtype)) & ~both
    assert report.mismatches == int(differ.sum())
    assert report.max_ulp == int(steps[~nan].max())
    assert report.figures.unordered == int(nan.sum())
    assert [m.index for m in report.first] == [(int(i),) for i in np.flatnonzero(differ)[:20]]
    order = sorted(np.flatnonzero(differ).tolist(), key=lambda i: (-int(steps[i]), i))[:20]
    assert [m.index[0] for m in report.worst] == order
    assert sum(count for *_, count in report.figures.histogram) == report.mismatches
    exact = [_error(x, y) for x, y in zip(g.tolist(), a.tolist())]
    if not nan.any() and all(map(math.isfinite, exact)):
        assert report.figures.max_abs == pytest.approx(max(exact), rel=1e-12)
        assert report.figures.mean_abs == pytest.approx(math.fsum(exact) / 3000, rel=1e-9)


def _error(g, a):
    if g == a or (g != g and a != a):
        return 0.0
    if not (math.isfinite(g) and math.isfinite(a)):
        return math.inf
    return float(abs(Fraction(a) - Fraction(g)))


@pytest.mark.parametrize("name", ["float32", "float16", "hifloat8", "int8"])
def test_errors_equal_the_formulas(name):
    f = bt.format(name)
    x = RNG.standard_normal(5000).astype(np.float32) * 20
    g, a = bt.array(x, f), bt.array(x, f, rounding="floor")
    gv, av = (np.asarray(v).astype(np.float64) for v in (g, a))
    ae = np.abs(av - gv)
    re = ae / (np.abs(gv) + 1e-7)
    figures = bt.compare(g, a).figures
    assert figures.max_abs == ae.max() and figures.max_rel == re.max()
    assert figures.mean_abs == pytest.approx(math.fsum(ae) / 5000, rel=1e-13)
    assert figures.mean_rel == pytest.approx(math.fsum(re) / 5000, rel=1e-13)
    assert figures.rmse == pytest.approx(math.sqrt(math.fsum(ae**2) / 5000), rel=1e-13)
    binades = {e: n for e, n, _ in figures.binades}
    changed = gv[ae > 0]
    expected = {}
    for v in changed.tolist():
        e = None if v == 0 else math.frexp(v)[1] - 1
        expected[e] = expected.get(e, 0) + 1
    assert binades == expected


# --- NaN, zeros, infinities -------------------------------------------------------------------------------------------


def cases():
    path = Path(__file__).parent / "data" / "cases.csv"
    with open(path, encoding="utf-8", newline="") as file:
        return {r["id"]: r for r in csv.DictReader(file) if r["kind"] == "compare"}


def test_published_cases():
    rows = cases()

    def pair(name):
        row = rows[name]
        codes = [[int(c, 16) for c in line] for line in json.loads(row["input"])]
        return [bt.Array(line, row["source_format"]) for line in codes]

    assert bt.compare(*pair("cmp-001"), nan="equal").mismatches == 0
    report = bt.compare(*pair("cmp-002"), nan="code")
    assert report.mismatches == 1 and report.first[0].index == (2,)
    report = bt.compare(*pair("cmp-003"))
    assert report.mismatches == 1 and report.first[0].index == (1,) and not report


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float16", "float32"])
def test_nan_and_zero_rules(name):
    f = bt.format(name)
    sign = 1 << (f.bits - 1)
    codes = [f.nan_code, f.nan_code | sign, 0, sign, f.nan_code, 5]
    other = [f.nan_code, f.nan_code, sign, sign, 5, f.nan_code]
    g, a = (bt.Array(np.array(c, f.code_dtype).view(f.storage), f) for c in (codes, other))

    def where(**rules):
        return [m.index[0] for m in bt.compare(g, a, **rules).first]

    assert where() == [2, 4, 5]
    assert where(nan="code") == [1, 2, 4, 5]
    assert where(nan="never") == [0, 1, 2, 4, 5]
    assert where(zeros="equal") == [4, 5]
    figures = bt.compare(g, a).figures
    assert figures.signed_zeros == 1 and figures.unordered == 2
    assert figures.max_abs == figures.mean_rel == math.inf
    assert bt.compare(g, a, nan="never").figures.unordered == 4
    assert [m.steps for m in bt.compare(g, a).worst] == [None, None, 0]
    assert not bt.compare(g, a, "ulp", max_ulp=1 << 20)


def test_equal_infinities_have_no_error_and_others_an_infinite_one():
    g = np.float32([np.inf, np.inf, 1])
    assert bt.compare(g, g, "mere_mare").figures.max_rel == 0
    assert bt.compare(g, np.float32([np.inf, -np.inf, 1])).figures.max_abs == math.inf
    assert not bt.compare(g, np.float32([np.inf, 3e38, 1]), "double_thousandth", tolerance=0.3)
    assert not bt.compare(np.float32([1]), np.float32([np.nan]), "allclose", rtol=1e9)


# --- standards --------------------------------------------------------------------------------------------------------


def test_every_standard_says_what_it_does():
    assert {s.name for s in standards()} == {
        "bitwise", "ulp", "allclose", "absolute", "double_thousandth", "double_ten_thousandth", "mere_mare",
        "double_benchmark", "mixed_tolerance",
    }  # fmt: skip
    assert all(s.formula and s.source for s in standards())


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_ulp_at_its_threshold(steps):
    g = bt.Array(np.full(10, 0x3F80, np.uint16), "bfloat16")
    a = bt.Array(np.array([0x3F80] * 9 + [0x3F80 - steps], np.uint16), "bfloat16")
    assert bool(bt.compare(g, a, "ulp", max_ulp=steps))
    assert not bt.compare(g, a, "ulp", max_ulp=steps - 1) if steps else True


def test_allclose_at_its_threshold():
    # |a - g| = atol + rtol |g| exactly: 2**-3 + 2**-2 * 4
    g = np.float64([4.0])
    edge = 4 + 2.0**-3 + 1
    for a, passes in ((edge, True), (np.nextafter(edge, 9), False), (4 - 1.125, True), (4 - 1.1251, False)):
        assert bool(bt.compare(g, np.float64([a]), "allclose", rtol=0.25, atol=0.125)) is passes
        assert np.allclose(a, g, rtol=0.25, atol=0.125) is passes


def test_absolute_at_its_threshold():
    g = bt.Array([5, 250], "uint8")
    assert bt.compare(g, bt.Array([6, 249], "uint8"), "absolute")
    assert not bt.compare(g, bt.Array([6, 248], "uint8"), "absolute")
    assert bt.compare(g, bt.Array([6, 248], "uint8"), "absolute", limit=2)


@pytest.mark.parametrize(
    ("name", "t", "n"), [("double_thousandth", 1e-3, 3000), ("double_ten_thousandth", 1e-4, 20000)]
)
@pytest.mark.parametrize("error", ["relative", "absolute"])
def test_double_thousandth_counts_outliers(name, t, n, error):
    """The vendor's reading: count(err > t) <= t N, brute force in the formula's own words."""
    allowed = round(n * t)
    for outliers in (allowed - 1, allowed, allowed + 1):
        g = np.full(n, 1.0)
        a = g.copy()
        a[:outliers] *= 1 + 3 * t
        a[outliers : outliers + 50] *= 1 + t / 2
        err = np.abs(a - g) / (np.abs(g) + 1e-7) if error == "relative" else np.abs(a - g)
        expected = bool(np.count_nonzero(err > t) * round(1 / t) <= n)
        report = bt.compare(g, a, name, error=error)
        assert bool(report) is expected is (outliers <= allowed), report
        assert report.figures.violations == (outliers,)


def test_double_thousandth_error_exactly_at_the_tolerance():
    # err = |a| / 1e-7 for g = 0; at the tolerance it is no outlier, one float above it is
    t, divisor = 2.0**-10, 0.0 + 1e-7
    edge = t * divisor
    assert edge / divisor == t
    g = np.zeros(2)
    assert bt.compare(g, np.array([edge, 0]), "double_thousandth", tolerance=t)
    above = np.nextafter(edge, 1)
    while above / divisor == t:
        above = np.nextafter(above, 1)
    assert not bt.compare(g, np.array([above, 0]), "double_thousandth", tolerance=t)


def test_double_thousandth_second_reading():
    """rtol = atol, no outliers: one element beyond fails however many there are."""
    t = 2.0**-10
    g = np.full(100_000, 3.0)
    a = g.copy()
    a[7] = 3 + t + t * 3
    assert bt.compare(g, a, "double_thousandth", reading="rtol_atol", tolerance=t)
    a[7] = np.nextafter(a[7], 9)
    assert not bt.compare(g, a, "double_thousandth", reading="rtol_atol", tolerance=t)
    assert bt.compare(g, a, "double_thousandth", tolerance=t)


ROWS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-13, "float8_e4m3fn": 2.0**-3, "float8_e5m2": 2.0**-2}


@pytest.mark.parametrize("name", ROWS)
def test_mere_and_mare_by_type(name):
    """MERE < T and MARE < 10 T, transcribed; data whose figures lie just below and just above."""
    t = ROWS[name]
    g = np.full(64, 1.0)
    for factor_mere, factor_mare in ((0.9, 9.9), (1.1, 9.9), (0.9, 10.1)):
        a = g.copy()
        a[0] += factor_mare * t
        rest = (factor_mere * 64 - factor_mare) * t / 63
        a[1:] += rest
        err = np.abs(a - g) / (np.abs(g) + 1e-7)
        expected = bool(err.mean() < t and err.max() < 10 * t)
        assert expected is (factor_mere < 1 and factor_mare < 10)
        assert bool(bt.compare(g, a, "mere_mare", threshold=t)) is expected
    # the row of the type: exactly representable deviations on both sides
    one = bt.array(np.ones(16), name)
    up = bt.nextafter(one, np.inf)
    step = float(np.asarray(up)[0]) - 1
    figure = step / (1 + 1e-7)
    assert bool(bt.compare(one, up, "mere_mare")) is (figure < t)


def test_mere_is_strictly_below():
    g = np.zeros(4)
    a = np.full(4, 2.0**-10 * 1e-7)
    assert bt.compare(g, a).figures.mean_rel == 2.0**-10
    assert not bt.compare(g, a, "mere_mare", threshold=2.0**-10)
    assert bt.compare(g, a, "mere_mare", threshold=float(np.nextafter(2.0**-10, 1)))


MIXED = {
    "float16": (2.0**-9, 2.0**-14, 1e-1),
    "bfloat16": (2.0**-6, 2.0**-10, 1.0),
    "float32": (2.0**-10, 2.0**-16, 1e-2),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixed_tolerance(name):
    rtol, atol, limit = MIXED[name]
    f = bt.format(name)

    def expected(g, a):
        bad = sum(abs(y - x) > atol + rtol * abs(x) for x, y in zip(g, a))
        ulp = [Fraction(2) ** f.quantum_exponent(math.floor(math.log2(abs(x)))) for x in g]
        far = any(abs(Fraction(y) - Fraction(x)) > max(Fraction(limit), 32 * u) for x, y, u in zip(g, a, ulp))
        return Fraction(len(g) - bad, len(g)) >= Fraction(99, 100) and not far

    step = float(f.epsilon)
    inside = 1 + math.floor((atol + rtol) / step) * step
    beyond = inside + step
    for outliers in (2, 3):
        for value in (inside, beyond):
            g, a = [1.0] * 200, [value] * outliers + [1.0] * (200 - outliers)
            assert bool(bt.compare(bt.array(g, f), bt.array(a, f), "mixed_tolerance")) is expected(g, a)
    for g0 in (1.0, 64.0, 1024.0):
        ulp = float(Fraction(2) ** f.quantum_exponent(int(math.log2(g0))))
        edge = math.floor(max(limit, 32 * ulp) / ulp) * ulp
        for value in (g0 + edge, g0 + edge + 2 * ulp):
            g, a = [g0] * 400, [value] + [g0] * 399
            report = bt.compare(bt.array(g, f), bt.array(a, f), "mixed_tolerance")
            assert bool(report) is expected(g, a), (g0, value, report)


@pytest.mark.parametrize(("level", "limits"), [("L0", (10, 2, 2)), ("L1", (5, 1.5, 1.5)), ("L2", (2, 1.2, 1.2))])
def test_double_benchmark(level, limits):
    """Ratios of MARE, MERE and RMSE over |g| >= threshold; small values by the count of AE > error."""
    threshold, error = 2.0**-11, 2.0**-16

    def verdict(g, a, b):
        big = np.abs(g) >= threshold
        ae, be = np.abs(a - g), np.abs(b - g)
        figures = []
        for e in (ae, be):
            re = (e / (np.abs(g) + 1e-7))[big]
            figures.append((re.max(), re.mean(), math.sqrt((e[big] ** 2).mean())))
        small = [np.count_nonzero(e[~big] > error) for e in (ae, be)]
        ratios = [1.0 if x == y else x / y if y else math.inf for x, y in zip(*figures)]
        return bool(all(r <= limit for r, limit in zip(ratios, limits)) and small[0] / max(small[1], 1) <= 2)

    rng = np.random.default_rng(3)
    outcomes = set()
    for spread in (1.0, 1.15, 1.4, 1.9, 3.0):
        for peak in (1.0, 1.9, 4.0, 9.0, 20.0):
            for extra in (2, 3):
                g = np.where(rng.random(400) < 0.5, 2.0**-13, 1.0) * rng.uniform(1, 2, 400)
                b = g + g * 2.0**-11 * rng.choice([-1, 1], 400)
                a = g + (b - g) * spread
                at = np.flatnonzero(np.abs(g) >= threshold)[0]
                a[at] = g[at] * (1 + 2.0**-11 * peak)
                low = np.flatnonzero(np.abs(g) < threshold)
                b[low], a[low] = g[low], g[low]
                b[low[:1]] += 2 * error
                a[low[:extra]] += 2 * error
                golden, ours, third = g, a.astype(np.float16), b.astype(np.float16)
                got = bt.compare(golden, ours, "double_benchmark", third=third, level=level)
                wanted = verdict(golden, ours.astype(np.float64), third.astype(np.float64))
                assert bool(got) is wanted, str(got)
                outcomes.add(wanted)
    assert outcomes == {True, False}


def test_double_benchmark_needs_a_third_and_its_divisor():
    x = np.float16([1, 2, 3])
    with pytest.raises(ValueError, match="give third="):
        bt.compare(x, x, "double_benchmark")
    with pytest.raises(ValueError, match="third= is for"):
        bt.compare(x, x, third=x)
    worse = np.float16([1.001, 2, 3])
    assert not bt.compare(x, worse, "double_benchmark", third=x)
    assert bt.compare(x, worse, "double_benchmark", third=x, divisor="threshold")


def test_rows_that_are_borrowed_or_missing():
    g = bt.array([1.0, 2.0], "hifloat8")
    assert "open question 30" in str(bt.compare(g, bt.nextafter(g, 9), "mere_mare"))
    with pytest.raises(ValueError, match="has no thresholds for float4_e2m1fn"):
        bt.compare(*[bt.array([1.0], "float4_e2m1fn")] * 2, "mere_mare")
    assert bt.compare(*[bt.array([1.0], "float4_e2m1fn")] * 2, "mere_mare", threshold=0.1)


def test_wide_golden_is_not_rounded_for_errors_but_is_for_codes():
    golden = np.float64([1.001, 2.0, -3.3])
    actual = bt.array(golden, "bfloat16")
    report = bt.compare(golden, actual, "mere_mare", wide_golden=True)
    assert report and report.mismatches == 0
    err = np.abs(np.asarray(actual).astype(np.float64) - golden) / (np.abs(golden) + 1e-7)
    assert report.figures.max_rel == err.max()
    off = bt.nextafter(actual, 99)
    assert bt.compare(golden, off, "ulp", wide_golden=True).figures.max_ulp == 1
    with pytest.raises(ValueError, match="the formats differ: golden float64, actual bfloat16"):
        bt.compare(golden, actual)


# --- where ------------------------------------------------------------------------------------------------------------


def damaged(shape, select):
    g = np.zeros(shape, np.uint8)
    a = g.copy()
    a[select] = 1
    return bt.compare(bt.Array(g, "uint8"), bt.Array(a, "uint8"))


def test_findings_name_the_place():
    assert any("axis 1 at 17" in t for t in damaged((64, 256), np.s_[:, 17]).findings)
    assert any("axis 0 at 5" in t for t in damaged((64, 256), np.s_[5, ::3]).findings)
    assert any("axis 0 at 2 " in t for t in damaged((4, 8, 16, 32), np.s_[2, :, ::2]).findings)
    assert any("position" in t and "3 of every 16" in t for t in damaged((64, 256), np.s_[:, 3::16]).findings)
    tile = damaged((64, 256), np.s_[16:32, 64:96]).findings
    assert "16..31 of axis 0" in tile[0] and "64..95 of axis 1" in tile[0]
    assert any("up to the end" in t for t in damaged((100_000,), np.s_[90_000:]).findings)
    blocks = np.zeros((256, 256), bool)
    for i in RNG.integers(0, 256 * 16, 9):
        blocks.reshape(-1, 16)[i] = True
    assert any("blocks of 16" in t for t in damaged((256, 256), blocks).findings)
    scattered = RNG.random((256, 256)) < 0.01
    assert damaged((256, 256), scattered).findings == ["no row, column or block stands out"]
    assert damaged((8, 8), np.s_[:]).findings == ["every element differs"]


@pytest.mark.parametrize("shape", [(), (1,), (7,), (5000,), (70_001,), (1, 9, 1), (3, 1, 40_000), (2, 3, 4, 5)])
def test_counts_by_axis_and_map_add_up(shape):
    g = np.zeros(shape, np.uint8)
    a = (RNG.random(shape) < 0.3).astype(np.uint8) if shape else np.uint8(1)
    report = bt.compare(bt.Array(g, "uint8"), bt.Array(a, "uint8"))
    t = report.tensors[0]
    n = int(np.count_nonzero(a))
    assert report.mismatches == n == int(t.place.grid.sum())
    for axis in t.place.axes:
        number = int(axis.name.split()[1])
        others = tuple(i for i in range(len(shape)) if i != number)
        assert axis.counts.tolist() == np.count_nonzero(a, axis=others).tolist()
    if n:
        assert t.place.first == int(np.flatnonzero(a)[0]) and t.place.last == int(np.flatnonzero(a)[-1])
        assert t.place.blocks_hit == len(set((np.flatnonzero(a) // 16).tolist()))


def test_many_rows_are_counted_in_groups():
    from bittrue.comparison.place import Geometry

    g = Geometry.of((5, 1 << 19, 3, 4))
    assert (g.rows, g.columns, g.group) == (5 * (1 << 19) * 3, 4, 3 << 19)
    assert Geometry.of((1 << 22, 1 << 22)).shift == 2


def test_dense_and_sparse_stretches_take_turns():
    g = np.zeros(3 * CHUNK + 7, np.uint8)
    a = g.copy()
    a[CHUNK // 2 : CHUNK + 99] = RNG.integers(0, 3, CHUNK // 2 + 99)
    a[-1] = 9
    report = bt.compare(bt.Array(g, "uint8"), bt.Array(a, "uint8"))
    assert report.mismatches == np.count_nonzero(a)
    assert report.figures.mean_abs == pytest.approx(a.sum() / a.size, rel=1e-13)
    assert report.worst[0].index == (a.size - 1,) and report.worst[1].repeated == np.count_nonzero(a == 2)
    assert report.first[0].index == (int(np.flatnonzero(a)[0]),)
    assert report.first[0].repeated == np.count_nonzero(a == a[report.first[0].index])


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def data():
    x = np.random.default_rng(1).standard_normal((300, 64)).astype(np.float32)
    return bt.array(x, "hifloat8"), bt.array(x, "hifloat8", rounding="floor")


@pytest.mark.parametrize("suffix", ["npy", "npz", "safetensors", "bin"])
@pytest.mark.parametrize("other", ["npy", "npz", "safetensors", "bin"])
def test_files_compare_as_arrays_do(tmp_path, data, suffix, other):
    paths = [tmp_path / f"golden.{suffix}", tmp_path / f"actual.{other}"]
    for path, array in zip(paths, data):
        bt.save(path, {"w": array} if path.suffix in (".npz", ".safetensors") else array)
    raw = {"format": "hifloat8", "shape": (300, 64)} if suffix == "bin" else {}
    report = bt.compare(*paths, **raw)
    expected = bt.compare(*data)
    assert report.figures == expected.figures and report.worst == expected.worst


def test_files_longer_than_a_piece(tmp_path):
    piece = 1 << 16
    n = CHUNK + 3 * piece + 5
    g = np.zeros(n, np.uint16)
    a = g.copy()
    spots = [0, piece - 1, piece, CHUNK - 1, CHUNK, n - 1]
    a[spots] = 1
    bt.save(tmp_path / "g.npy", bt.Array(g, "bfloat16"))
    (tmp_path / "a.bin").write_bytes(a.tobytes())
    calls = []
    report = bt.compare(tmp_path / "g.npy", tmp_path / "a.bin", kept=9, progress=lambda *c: calls.append(c))
    assert [m.index[0] for m in report.first] == spots
    assert calls[-1][1:] == (n, n)


def test_packed_and_complex_data(tmp_path):
    g = bt.Array(RNG.integers(0, 16, (5, 7)), "float4_e2m1fn")
    codes = g.codes.copy()
    codes[4, 6] ^= 1
    bt.save(tmp_path / "g.safetensors", {"w": g})
    bt.save(tmp_path / "a.safetensors", {"w": bt.Array(codes, "float4_e2m1fn")})
    assert [m.index for m in bt.compare(tmp_path / "g.safetensors", tmp_path / "a.safetensors").first] == [(4, 6)]
    z = np.array([[1 + 2j, 3 - 4j]], np.complex64)
    w = z.copy()
    w[0, 1] = 3 + 4j
    report = bt.compare(z, w)
    assert report.mismatches == 1 and report.first[0].index == (0, 1, 1) and report.tensors[0].shape == (1, 2, 2)


MEMORY = """
import sys, bittrue as bt
report = bt.compare(sys.argv[1], sys.argv[2], format="float8_e4m3fn")
assert report.mismatches == 1, report
# not ru_maxrss: that starts with the peak of the process this one was forked from
print(next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if "VmHWM" in line))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="sparse files and /proc/self/status")
def test_memory_does_not_grow_with_the_files(tmp_path):
    def peak(size):
        paths = [tmp_path / "g.bin", tmp_path / "a.bin"]
        for path in paths:
            with open(path, "wb") as file:
                file.truncate(size)
        with open(paths[1], "r+b") as file:
            file.seek(size - 3)
            file.write(b"\x01")
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, *map(str, paths)], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    assert peak(160 << 20) < peak(4 << 20) + 32


# --- mistakes ---------------------------------------------------------------------------------------------------------


def test_mistakes_are_one_clear_line(tmp_path, capsys):
    x = np.zeros((3, 4), np.float32)
    for name, arrays in {"g": {"w": x, "v": x}, "a": {"w": x, "u": x}, "t": {"w": x[:2], "v": x}}.items():
        bt.save(tmp_path / f"{name}.safetensors", arrays)
    bt.save(tmp_path / "h.npz", {"w": bt.array(x, "bfloat16"), "v": x})
    (tmp_path / "odd.bin").write_bytes(b"12345")
    (tmp_path / "damaged.safetensors").write_bytes(b"nonsense")
    g = tmp_path / "g.safetensors"

    def fails(*arguments):
        assert main(["compare", *map(str, arguments)]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("error: ") and err.count("\n") == 1 and "Traceback" not in err
        return err

    assert "(1 in common): only in" in (err := fails(g, tmp_path / "a.safetensors")) and ": v;" in err
    assert "the shapes differ: golden (3, 4), actual (2, 4)" in fails(g, tmp_path / "t.safetensors")
    assert "the formats differ: golden float32, actual bfloat16" in fails(g, tmp_path / "h.npz")
    assert "is not a comparison standard; did you mean 'mere_mare'?" in fails(g, g, "--standard", "mere_mara")
    assert "not an option of standard 'bitwise'" in fails(g, g, "--rtol", "1")
    assert "has 5 bytes" in fails(tmp_path / "odd.bin", tmp_path / "odd.bin", "--format", "float32", "--shape", "2")
    assert "give format" in fails(tmp_path / "odd.bin", tmp_path / "odd.bin")
    assert "no such file" in fails(g, tmp_path / "none.npy")
    fails(g, tmp_path / "damaged.safetensors")
    assert "match no tensor" in fails(g, g, "--tensor", "x*")
    assert "nan='maybe'" in fails(g, g, "--nan", "maybe")
    assert "exists already" in fails(g, g, "--html", g)


def test_a_pattern_and_numbers_of_numpy():
    g, a = {"w*": np.float32([1]), "x": np.float32([2])}, {"w*": np.float32([1]), "x": np.float32([3])}
    assert [t.name for t in bt.compare(g, a, tensors="w*")] == ["w*"]
    report = bt.compare(g, a, "ulp", max_ulp=np.int64(1 << 22), kept=np.int64(3))
    assert report and json.dumps(report.to_dict())
    assert bt.compare(g, a, "allclose", rtol=np.float32(0.5), atol=None)
    assert bt.compare(g, a, "mere_mare", threshold=np.float32(1)).to_dict()["passed"]


def test_one_array_beside_one_of_several_tensors():
    several = {"a": np.float32([1, 2]), "b": np.float32([3, 4])}
    for g, a in ((several, several["b"]), (several["b"], several)):
        assert bt.compare(g, a, tensors="b") and not bt.compare(g, a, tensors="a")
        with pytest.raises(ValueError, match=r"has 2 tensors \(a, b\); take one of them by tensors= \(--tensor\)"):
            bt.compare(g, a)
        with pytest.raises(ValueError, match=r"tensors=\['c'\] match no tensor \(a, b\)"):
            bt.compare(g, a, tensors="c")


def test_arguments_are_checked():
    x = np.zeros(3, np.float32)
    for wrong in ({"kept": 0}, {"zeros": "what"}, {"standard": "ulp", "max_ulp": -1},
                  {"standard": "allclose", "rtol": "x"}, {"standard": "double_thousandth", "reading": "mine"},
                  {"standard": "double_benchmark", "third": x, "level": "L9"}):  # fmt: skip
        with pytest.raises(ValueError):
            bt.compare(x, x, **wrong)
    with pytest.raises(ValueError, match="empty mapping"):
        bt.compare({}, {})
    with pytest.raises(ValueError, match="is one array, but"):
        bt.compare(x, {"a": x, "b": x})
    with pytest.raises(ValueError, match="holds no codes of hifloat8"):
        bt.compare(x, x, format="hifloat8")
    with pytest.raises(ValueError, match="no format"):
        bt.compare(np.array(["a"]), np.array(["a"]))


def test_empty_and_scalar_data():
    assert bt.compare(np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32)).passed
    assert not bt.compare(np.float32(1), np.float32(2))


# --- the command ------------------------------------------------------------------------------------------------------


def test_command_exit_codes_and_json(tmp_path, data, capsys):
    g, a = tmp_path / "g.npy", tmp_path / "a.bin"
    bt.save(g, data[0])
    bt.save(a, data[1])
    assert main(["compare", str(g), str(g)]) == 0
    assert "PASS" in capsys.readouterr().out
    assert main(["compare", str(g), str(a), "--html", str(tmp_path / "r.html")]) == 1
    out = capsys.readouterr().out
    assert out.startswith("FAIL") and "worst pairs of codes" in out and (tmp_path / "r.html").exists()
    assert main(["compare", str(g), str(a), "--standard", "ulp", "--max-ulp", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] and found["mismatches"] == bt.compare(*data).mismatches
    assert found["tensors"][0]["max_ulp"] == 1


def test_bytes_in_npy_are_not_compared_as_integers_where_a_packed_format_is_given(tmp_path, capsys):
    for name in "ga":
        np.save(tmp_path / f"{name}.npy", np.arange(4, dtype=np.uint8))  # codes, or several of them in a byte?
    assert main(["compare", str(tmp_path / "g.npy"), str(tmp_path / "a.npy"), "--format", "float6_e2m3fn"]) == 2
    assert "packed .bin file" in capsys.readouterr().err
    assert main(["compare", str(tmp_path / "g.npy"), str(tmp_path / "a.npy"), "--format", "hifloat8"]) == 0


def test_text_of_a_report_of_several_tensors():
    x = np.float32([1, 2, 3])
    report = bt.compare({"a": x, "b": x}, {"a": x, "b": x + 1})
    assert report.reason == "b: 3 of 3 elements differ" and "b float32[3]" in str(report)
    assert [t.name for t in report] == ["a", "b"] and json.dumps(report.to_dict())


# --- blocks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mx9", "mx4", "bfp16ebs8", "mxfp8_e4m3"])
@pytest.mark.parametrize("axis", [0, 1])
def test_blocks_compare_by_values_and_bytes(tmp_path, name, axis):
    x = np.random.default_rng(4).standard_normal((40, 50)).astype(np.float32)
    g, a = (bt.array(x, name, rounding=mode, axis=axis) for mode in ("nearest_even", "floor"))
    gv, av = np.asarray(g), np.asarray(a)
    report = bt.compare(g, a)
    assert report.mismatches == np.count_nonzero(gv.view(np.uint32) != av.view(np.uint32))
    assert f"{np.count_nonzero(g.codes != a.codes)} of {g.codes.size} bytes differ" == report.reason
    assert report.figures.max_abs == np.abs(gv.astype(np.float64) - av).max()
    assert bt.compare(g, g) and bt.compare(g, a, "allclose", atol=10.0)
    bt.save(tmp_path / "g.safetensors", {"w": g})
    bt.save(tmp_path / "a.npz", {"w": a})
    assert bt.compare(tmp_path / "g.safetensors", tmp_path / "a.npz").figures == report.figures
    other = bt.array(x.T.copy(), name, axis=1 - axis)
    with pytest.raises(ValueError, match="differ"):
        bt.compare(g, other)
