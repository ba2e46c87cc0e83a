"""Sums, means and dot products: every accumulator against a one-step-at-a-time reference in exact arithmetic."""

import csv
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import bittrue as bt
from bittrue import Rule, exact
from bittrue import operations as ops
from bittrue.accumulators import accumulator
from bittrue.array import Array, array

CASES = list(csv.DictReader((Path(__file__).parent / "data" / "cases.csv").read_text("utf-8").splitlines()))
IEEE = Rule(overflow="infinity")
FLOATS = [f for f in bt.formats() if f.kind in ("float", "tapered")]
INTS = [f for f in bt.formats() if f.kind in ("int", "bool")]


def sample(fmt, n, seed=0, finite=True):
    rng = np.random.default_rng(seed)
    raw = np.frombuffer(rng.bytes(8 * 4 * n), np.uint64) & np.uint64((1 << fmt.bits) - 1)
    a = Array(raw.astype(fmt.code_dtype).view(fmt.storage), fmt)
    return a[ops.isfinite(a)][:n] if finite else a[:n]


def decoded(a):
    return [exact.decode(int(c), a.format) for c in a.codes.view(a.format.code_dtype).ravel()]


def add(x, y, step):
    """Add two exact values and round with `step`."""
    if isinstance(x, float) or isinstance(y, float):
        if any(not math.isfinite(v) for v in (x, y)) or (x == 0 and y == 0):
            return step(float(x) + float(y))
        x, y = Fraction(x), Fraction(y)
    return step(x + y)


def reference(values, step, order):
    """Sum as the docstring of `bittrue.sum` says."""
    values = list(values)
    if order == "sequential":
        total = values[0]
        for v in values[1:]:
            total = add(total, v, step)
        return total
    while len(values) > 1:
        odd = values[len(values) // 2 * 2 :]
        values = [add(x, y, step) for x, y in zip(values[0::2], values[1::2])] + odd
    return values[0]


def rounder(fmt, rule=IEEE):
    return lambda v: exact.decode(exact.encode(v, fmt, rule), fmt)


def same(got, expected):
    got, expected = float(got), float(expected)
    return (math.isnan(got) and math.isnan(expected)) or (
        got == expected and math.copysign(1, got) == math.copysign(1, expected)
    )


# --- floats -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["pairwise", "sequential"])
@pytest.mark.parametrize(
    "accumulate", ["float32", "float64", "bfloat16", "float16", "tfloat32", "float8_e4m3fn", "hifloat8"]
)
@pytest.mark.parametrize("fmt", FLOATS, ids=str)
def test_sums_round_at_every_step(fmt, accumulate, order):
    step = rounder(accumulate)
    for n in (1, 2, 3, 13, 40):
        a = sample(fmt, n, seed=n)
        got = a.sum(accumulate=accumulate, order=order)
        assert same(got, reference(map(step, decoded(a)), step, order)), n
        if accumulate in ("float32", "float64"):
            assert got.dtype == accumulate


@pytest.mark.parametrize("order", ["pairwise", "sequential"])
@pytest.mark.parametrize("accumulate", ["float32", "float16", "float8_e5m2"])
def test_dot_rounds_products_then_sums(accumulate, order):
    step = rounder(accumulate)
    for fmts in (("float16", "float16"), ("float8_e4m3fn", "bfloat16"), ("float64", "int32"), ("int4", "hifloat8")):
        a, b = (sample(bt.format(f), 21, seed=i) for i, f in enumerate(fmts))
        products = []
        for x, y in zip(map(step, decoded(a)), map(step, decoded(b))):
            exactly = isinstance(x, float) or isinstance(y, float)
            products.append(step(float(x) * float(y) if exactly else x * y))
        got = ops.dot(a, b, accumulate=accumulate, order=order)
        assert same(got, reference(products, step, order))


def test_long_sequential_sums_cross_chunks():
    x = np.random.default_rng(0).standard_normal(200_001).astype(np.float32)
    total = x[0]
    for v in x[1:]:
        total = total + v
    assert array(x, "float32").sum(order="sequential") == total
    two = array(np.stack([x, x[::-1]]), "float32").sum(axis=1, order="sequential")
    assert two[0] == total and two.shape == (2,)


def test_special_values():
    inf, nan = math.inf, math.nan
    for values, expected in (
        ([inf, 1], inf), ([-inf, 1], -inf), ([inf, -inf], nan), ([nan, 1], nan), ([nan, inf], nan),
        ([-0.0, -0.0], -0.0),
        ([-0.0, 0.0], 0.0), ([-0.0], -0.0), ([1, -1], 0.0), ([inf, inf], inf), ([65504, 65504], 131008),
    ):  # fmt: skip
        a = array(values, "float16", overflow="infinity")
        for accumulate in ("float32", "float64", "exact", "bfloat16"):
            for order in ("pairwise", "sequential"):
                got = a.sum(accumulate=accumulate, order=order)
                rounded = rounder("bfloat16")(float(expected)) if accumulate == "bfloat16" else expected
                assert same(got, rounded), (values, accumulate, order)
            ones = array(np.ones(len(values)), "float16")
            assert same(ops.dot(a, ones, accumulate=accumulate), a.sum(accumulate=accumulate))
            assert same(ops.dot(a.astype("float64", overflow="infinity"), ones, accumulate="exact"), expected)
    assert array([60000, 60000], "float16").sum(accumulate="float16") == inf
    assert np.isnan(array([448, 448], "float8_e4m3fn").sum(accumulate="float8_e4m3fn"))


# --- integers ---------------------------------------------------------------------------------------------------------


def limited(fmt, overflow):
    def step(v):
        if overflow == "raise" and not fmt.min <= v <= fmt.max:
            raise OverflowError
        return exact.decode(exact.encode(v, fmt, Rule(overflow=overflow)), fmt)

    return step


@pytest.mark.parametrize("overflow", ["saturate", "wrap", "raise"])
@pytest.mark.parametrize("order", ["pairwise", "sequential"])
@pytest.mark.parametrize("accumulate", ["int3", "uint2", "int8", "uint16", "int32", "int64", "uint64"])
@pytest.mark.parametrize("fmt", INTS, ids=str)
def test_integer_accumulators(fmt, accumulate, order, overflow):
    target = bt.IntFormat("int3", width=3) if accumulate == "int3" else bt.format(accumulate)
    step = limited(target, overflow)
    for n in (1, 2, 7, 30):
        for rows in (1, 20):
            a = ops.concatenate([sample(fmt, n, seed=n + i) for i in range(rows)]).reshape(rows, n)
            try:
                start = [0] if order == "sequential" else []
                expected = [step(reference(start + decoded(row), step, order)) for row in a]
            except OverflowError:
                with pytest.raises(OverflowError, match="partial sum is beyond"):
                    a.sum(1, accumulate=target, order=order, overflow=overflow)
                continue
            got = a.sum(1, accumulate=target, order=order, overflow=overflow)
            assert got.tolist() == expected and got.dtype == np.asarray(Array([], target)).dtype


def test_integer_dot_takes_exact_products():
    a, b = array([-(2**63), 2**63 - 1, 7], "int64"), array([-(2**63), -5, 11], "int64")
    total = 2**126 - 5 * (2**63 - 1) + 77
    assert ops.dot(a, b) == 2**63 - 1  # saturates
    assert ops.dot(a, b, overflow="wrap") == (total + 2**63) % 2**64 - 2**63
    assert float(ops.dot(a, b, accumulate="exact", out_format="float64")) == float(total)
    with pytest.raises(OverflowError):
        ops.dot(a, b, accumulate="exact")
    with pytest.raises(OverflowError):
        ops.dot(a, b, overflow="raise")
    big = array([2**64 - 1, 1], "uint64")
    assert ops.dot(big, array([1, 0], "uint64")) == 2**64 - 1 and big.sum() == 2**64 - 1
    assert big.sum(overflow="wrap") == 0 and big.sum(accumulate="float64") == 2.0**64
    eights = array(np.full(10, -128), "int8")
    assert ops.dot(eights, eights) == 163840 and ops.dot(eights, eights).dtype == np.int32
    assert ops.dot(eights, eights, accumulate="int16") == 32767


# --- exact ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", FLOATS + INTS, ids=str)
def test_exact_sums(fmt):
    for n in (1, 5, 300):
        a = sample(fmt, n, seed=n)
        total = sum(Fraction(v) for v in decoded(a))
        for out in ("float32", "bfloat16", "float64"):
            got = a.sum(accumulate="exact", out_format=out, rule=Rule("floor"))
            assert got.format.name == out
            assert int(got.codes.view(got.format.code_dtype)) == exact.encode(total, out, Rule("floor"))
            mean = a.mean(accumulate="exact", out_format=out)
            assert mean.codes.view(mean.format.code_dtype) == exact.encode(total / n, out)
        if fmt.kind in ("float", "tapered"):
            plain = "float64" if fmt.name == "float64" else "float32"
            assert same(a.sum(accumulate="exact"), exact.decode(exact.encode(total, plain, IEEE), plain))
            assert a.sum(accumulate="exact").dtype == plain
        elif fmt.bits < 64:
            assert a.sum(accumulate="exact") == total and a.sum(accumulate="exact").dtype == np.int64


@pytest.mark.parametrize(
    "fmts",
    [
        ("float32", "float32"),
        ("float64", "float64"),
        ("float64", "int64"),
        ("float8_e5m2", "int4"),
        ("float32", "uint64"),
        ("hifloat8", "float16"),
    ],
    ids=str,
)
def test_exact_dots(fmts):
    a, b = (sample(bt.format(f), 50, seed=i) for i, f in enumerate(fmts))
    total = sum(Fraction(x) * Fraction(y) for x, y in zip(decoded(a), decoded(b)))
    got = ops.dot(a, b, accumulate="exact", out_format="float64", rule=IEEE)
    assert int(got.codes.view(np.uint64)) == exact.encode(total, "float64", IEEE)


# --- means ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accumulate", ["float32", "float64", "bfloat16", "float8_e4m3fn"])
def test_means_round_once_more(accumulate):
    step = rounder(accumulate)
    for n in (1, 3, 7, 100):
        a = sample(bt.format("float8_e4m3fn"), n, seed=n)
        total = reference(map(step, decoded(a)), step, "pairwise")
        expected = total / n if isinstance(total, float) else step(Fraction(total) / n)
        assert same(a.mean(accumulate=accumulate), expected)


def test_means_of_integers_and_of_nothing():
    assert array([1, 2], "int8").mean() == 1.5 and array([1, 2], "int8").mean().dtype == np.float64
    assert array([2**62 + 1, 2**62], "int64").mean() == (2**63 + 1) / 2
    assert array([True, False, True], "bool").mean() == 2 / 3 and array([True] * 300, "bool").sum() == 300
    for accumulate in ("float32", "int32", "exact"):
        assert math.isnan(array([], "int8").mean(accumulate=accumulate))
        assert array([], "int8").sum(accumulate=accumulate) == 0
    assert array(np.zeros((0, 3)), "bfloat16").sum(0).tolist() == [0, 0, 0]
    assert array(np.zeros((3, 0)), "bfloat16").sum(0).shape == (0,)
    assert array(np.zeros((3, 0)), "bfloat16").sum(1, order="sequential").tolist() == [0, 0, 0]


# --- shapes and types -------------------------------------------------------------------------------------------------


def test_axes():
    x = np.arange(120).reshape(2, 3, 4, 5) % 7
    a = array(x, "float8_e4m3fn")
    for axis in (None, 0, -1, (0, 2), (3, 1), (0, 1, 2, 3), ()):
        for keepdims in (False, True):
            for ours, numpys in ((ops.sum, np.sum), (ops.mean, np.mean)):
                got = ours(a, axis, keepdims=keepdims)
                expected = numpys(x.astype(np.float32), axis, keepdims=keepdims)
                assert np.shape(got) == np.shape(expected) and got.dtype == np.float32
                np.testing.assert_allclose(got, expected, rtol=1e-6)
    assert isinstance(a.sum(), np.float32) and isinstance(a.sum(out_format="bfloat16"), Array)
    np.testing.assert_array_equal(a.T.sum(0), a.sum(-1).T)
    for axis in (4, (0, 0)):
        with pytest.raises(ValueError):
            a.sum(axis)


def test_dot_shapes():
    rng = np.random.default_rng(1)
    for left, right in (
        ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((2, 5, 3), (4, 3, 2)), ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
    ):  # fmt: skip
        x, y = rng.integers(-8, 8, left), rng.integers(-8, 8, right)
        got = array(x, "int4").dot(array(y, "int4"))
        np.testing.assert_array_equal(got, np.dot(x, y))
        assert got.dtype == np.int32 and got.shape == np.dot(x, y).shape
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\) do not fit"):
        ops.dot(array([1, 2], "int4"), array([1, 2, 3], "int4"))
    with pytest.raises(ValueError, match="at least one axis"):
        ops.dot(array(1, "int4"), array([1], "int4"))
    with pytest.raises(TypeError, match="b must be a bittrue"):
        ops.dot(array([1], "int4"), [1])


def test_default_accumulators():
    for names, dtype in (
        (("float8_e4m3fn",), "f4"), (("bfloat16",), "f4"), (("float64",), "f8"), (("int4",), "i4"), (("uint16",), "i4"),
        (("bool",), "i4"), (("int32",), "i8"), (("uint32",), "i8"), (("int64",), "i8"), (("uint64",), "u8"),
        (("complex32",), "c8"), (("int8", "uint8"), "i4"), (("int8", "float8_e5m2"), "f4"), (("float64", "int8"), "f8"),
        (("uint64", "int8"), "i8"),
    ):  # fmt: skip
        ones = [array([1], n) for n in names]
        assert (ones[0].sum() if len(ones) == 1 else ops.dot(*ones)).dtype == np.dtype(dtype), names


def test_complex_sums():
    a = array([[1 + 2j, 3 - 1j], [np.inf, 1j]], "complex32", overflow="infinity")
    assert a[0].sum() == 4 + 1j and a[0].sum().dtype == np.complex64 and a[0].mean() == 2 + 0.5j
    assert a.sum(0)[0] == complex(math.inf, 2) and a[0].sum(accumulate="float64").dtype == np.complex128
    assert a[0].sum(accumulate="exact") == 4 + 1j
    with pytest.raises(TypeError, match="complex32"):
        ops.dot(a[0], a[0])
    with pytest.raises(TypeError, match="out_format='float16' is for real formats"):
        a.sum(out_format="float16")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"order": "pairwse"}, ValueError, "did you mean 'pairwise'"),
        ({"accumulate": "float31"}, ValueError, "float31"),
        (
            {"accumulate": "int32"},
            TypeError,
            "accumulate='int32' cannot add up bfloat16; take a float format or 'exact'",
        ),
        ({"accumulate": "complex64"}, TypeError, "complex64"),
        ({"overflow": "infinity"}, ValueError, "overflow='infinity' has no meaning for an accumulator"),
        ({"overflow": "warp"}, ValueError, "did you mean 'wrap'"),
        ({"rule": Rule()}, ValueError, "out_format, which is not given"),
        ({"out_format": "bf17"}, ValueError, "bf17"),
        ({"accumulate": bt.FloatFormat("e8m30", mantissa_bits=30)}, TypeError, "more than 25 significand bits"),
    ],
)
def test_bad_arguments(arguments, error, words):
    with pytest.raises(error) as caught:
        array([1.0], "bfloat16").sum(**arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize("row", [r for r in CASES if r["kind"] == "reduce"], ids=lambda r: r["id"])
def test_published_cases(row):
    parameters, source, target = json.loads(row["params"]), row["source_format"], row["target_format"]
    operands = json.loads(row["input"])
    operands = operands if isinstance(operands[0], list) else [operands]
    arrays = []
    for items in operands:
        items = items * parameters.pop("repeat", 1)
        values = "p" in items[0]
        arrays.append(
            array(list(map(float.fromhex, items)), source) if values else Array([int(c, 16) for c in items], source)
        )
    how = {k: parameters[k] for k in ("order", "overflow") if k in parameters}
    how["accumulate"] = parameters["accumulate"].split(",")[0]
    if how["accumulate"] == "int3":
        how["accumulate"] = bt.IntFormat("int3", width=3)
    out = how["accumulate"] if target == "int3" else bt.format(target)
    expected = [int(c, 16) for c in json.loads(row["expected"])]
    call = getattr(ops, parameters["op"])
    got = call(*arrays, **how, out_format=out)
    assert got.codes.view(out.code_dtype).ravel().tolist() == expected
    if parameters["op"] != "mean":  # the accumulator itself has the value
        assert [exact.encode(Fraction(call(*arrays, **how).item()), out)] == expected


@pytest.mark.parametrize("order", ["sequential", "pairwise"])
@pytest.mark.parametrize("accumulate", ["float32", "float64", "float16", "bfloat16", "hifloat8"])
def test_matrices_are_multiplied_as_dot_multiplies_them(accumulate: str, order: str) -> None:
    rng = np.random.default_rng(7)
    for k in (0, 1, 2, 7, 16):
        a = bt.array(rng.standard_normal((5, k)), "float32")
        b = bt.array(rng.standard_normal((k, 6)), "float32")
        start = bt.quantize(rng.standard_normal(6), accumulate)
        how = accumulator(accumulate, [a.format] * 2, order, "saturate")
        expected = np.asarray(bt.dot(a, b, accumulate=accumulate, order=order))
        found = how.matmul(np.asarray(a), np.asarray(b))
        assert found.dtype == expected.dtype and (found == expected).all()
        if order == "pairwise":  # added last
            last = bt.quantize(expected.astype(np.float64) + np.float64(start), accumulate, overflow="infinity")
        else:  # the first of the terms
            ones, first = np.ones((5, 1)), bt.quantize(start, accumulate)[None]
            longer = (np.concatenate([ones, np.asarray(a)], axis=1), np.concatenate([first, np.asarray(b)]))
            last = bt.dot(*(bt.array(x, "float64") for x in longer), accumulate=accumulate, order=order)
        assert (how.matmul(np.asarray(a), np.asarray(b), start) == np.asarray(last)).all()
