"""The matrix unit: operand types, exact integers, float orders, bias, and Fixpipe behind it."""

from __future__ import annotations

import math
import runpy
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import bittrue as bt
from bittrue import ascend
from bittrue.ascend import Choices, QuantParam, matmul
from bittrue.matmul import ORDERS

A5, A2 = "Ascend 950PR/950DT", "Atlas A2"
PAIRS = [
    ("int8", "int8", (A5, A2)), ("float16", "float16", (A5, A2)), ("bfloat16", "bfloat16", (A5, A2)),
    ("float32", "float32", (A5, A2)), ("float8_e4m3fn", "float8_e4m3fn", (A5,)),
    ("float8_e4m3fn", "float8_e5m2", (A5,)), ("float8_e5m2", "float8_e4m3fn", (A5,)),
    ("float8_e5m2", "float8_e5m2", (A5,)), ("hifloat8", "hifloat8", (A5,)),
]  # fmt: skip


def operand(name: str, shape: tuple[int, int], seed: int) -> bt.Array:
    x = np.random.default_rng(seed).standard_normal(shape) * (50 if name == "int8" else 1)
    return bt.array(x, name)


@pytest.mark.parametrize(("left", "right", "on"), PAIRS, ids=lambda v: v if isinstance(v, str) else "")
def test_operand_types(left: str, right: str, on: tuple[str, ...]) -> None:
    a, b = operand(left, (5, 40), 1), operand(right, (40, 7), 2)
    x, y = np.asarray(a).astype(float), np.asarray(b).astype(float)
    for product in (A5, A2):
        if product not in on:
            with pytest.raises(ValueError, match="is not supported by Atlas A2"):
                matmul(a, b, product=product)
            continue
        found = matmul(a, b, product=product)
        assert found.shape == (5, 7) and found.format.name == ("int32" if left == "int8" else "float32")
        if left == "int8":
            assert np.array_equal(np.asarray(found), np.matmul(x, y))
        total = np.zeros((5, 7), np.float32)
        for k in range(40):
            total = total + np.float32(x[:, k : k + 1]) * np.float32(y[k])
        assert np.array_equal(np.asarray(found), total)
        own = [v.to_numpy() for v in (a, b)]
        if left not in ("hifloat8",) and right not in ("hifloat8",):
            assert np.array_equal(matmul(*own, product=product).codes, found.codes)


def test_pairs_that_no_unit_multiplies() -> None:
    x = {n: bt.array(np.zeros((2, 2)), n) for n in "int8 uint8 int16 int32 float16 bfloat16 float32 float64".split()}
    for left, right in (("int8", "float16"), ("float16", "bfloat16"), ("float64", "float64"), ("int16", "int16"),
                        ("uint8", "int8"), ("float32", "float16"), ("int32", "int32")):  # fmt: skip
        with pytest.raises(ValueError, match=r"^a is \w+ and b is \w+; the matrix unit of .* these, but int8_t x"):
            matmul(x[left], x[right])
    fp8, hif8 = bt.array(np.zeros((2, 2)), "float8_e4m3fn"), bt.array(np.zeros((2, 2)), "hifloat8")
    with pytest.raises(ValueError, match=r"^a is fp8_e4m3fn_t and b is hifloat8_t"):
        matmul(fp8, hif8)


def test_int4_where_the_devkit_lists_it() -> None:
    every = Choices(type_matrix="devkit_2026")
    a, b = bt.array([[-8, 7], [3, -1]], "int4"), bt.array([[-8], [5]], "int4")
    assert matmul(a, b, product=A2, choices=every).tolist() == [[99], [-29]]
    with pytest.raises(ValueError, match=r"^type int4x2_t is not supported by Atlas A2"):
        matmul(a, b, product=A2)
    with pytest.raises(ValueError, match=r"^a is int4x2_t and b is int4x2_t; the matrix unit of Ascend 950PR"):
        matmul(a, b)
    with pytest.raises(ValueError, match=r"^bias=\[1\]: Mmad of int4x2_t and int4x2_t takes none on Atlas A2"):
        matmul(a, b, [1], product=A2, choices=every)


def test_ctrl45_reads_fp8_e4m3fn_as_hifloat8() -> None:
    on = ascend.Ctrl(bit45=True)
    finite = np.setdiff1d(np.arange(256), [0x6F, 0xEF, 0x80])
    codes = np.random.default_rng(8).choice(finite, (2, 40, 40)).astype(np.uint8)
    e4m3, hif8 = ([bt.Array(c, f) for c in codes] for f in ("float8_e4m3fn", "hifloat8"))
    want = matmul(*hif8).codes
    assert np.array_equal(matmul(*e4m3, saturation=on).codes, want)
    borrowed = [c.view(ml_dtypes.float8_e4m3fn) for c in codes]
    assert np.array_equal(matmul(*borrowed, saturation=on).codes, want)
    assert matmul(bt.Array(np.uint8([[0x2E]]), "float8_e4m3fn"), e4m3[0][:1], saturation=on).shape == (1, 40)
    assert matmul(*(bt.Array(np.uint8([[0x2E]]), "float8_e4m3fn"),) * 2, saturation=on).tolist() == [[14.0 * 14]]
    e5m2 = [bt.Array(c & 0x7B, "float8_e5m2") for c in codes]
    small = bt.Array(codes[0] & 0x77, "float8_e4m3fn")
    for left, right in ((small, e5m2[1]), e5m2, hif8):
        assert np.array_equal(matmul(left, right, saturation=on).codes, matmul(left, right).codes)
    with pytest.raises(ValueError, match=r"^saturation asks for CTRL\[45\] = 1, but Atlas A2 has only CTRL\[48\]"):
        matmul(np.float16([[1]]), np.float16([[1]]), product=A2, saturation=ascend.Ctrl(bit45=True))


@pytest.mark.parametrize("order", ORDERS)
def test_boundary_values_of_mmad(order: str) -> None:
    """What asc-devkit's table of Mmad's boundary values says of products and sums of Inf, NaN, and what overflows."""
    inf, nan, big = np.inf, np.nan, 3e38

    def mmad(a: float, b: float, c: float = 0.0) -> float:
        return float(matmul(np.float32([[a]]), np.float32([[b]]), np.float32([c]), order=order).item())

    for sign in (1, -1):
        assert mmad(sign * inf, 2) == mmad(-sign * inf, -2) == mmad(2, sign * inf) == sign * inf
        assert mmad(inf, sign * inf) == sign * inf
        assert mmad(big, sign * 10) == sign * inf
        assert mmad(sign * inf, 1, sign * inf) == mmad(1, 1, sign * inf) == sign * inf
        for a, b, c in ((sign * inf, 0, 0), (0, sign * inf, 0), (sign * inf, 1, -sign * inf), (nan, sign * inf, 0)):
            assert np.isnan(mmad(a, b, c))
    assert np.isnan([mmad(nan, 1), mmad(0, nan), mmad(1, 1, nan), mmad(inf, 1, nan)]).all()


# --- MmadMx -----------------------------------------------------------------------------------------------------------

FP4, FP8 = ("float4_e2m1fn", "float4_e1m2fn"), ("float8_e4m3fn", "float8_e5m2")


@pytest.mark.parametrize(("left", "right"), [(a, b) for group in (FP4, FP8) for a in group for b in group])
def test_scales(left: str, right: str) -> None:
    """(scaleA x A) * (scaleB x B) + bias: 32 elements along k share a scale; the last block may be shorter."""
    rng = np.random.default_rng(4)
    m, k, n = 3, 71, 5
    a, b = operand(left, (m, k), 1), operand(right, (k, n), 2)
    sa, sb = rng.integers(117, 137, (m, 3)).astype(np.uint8), rng.integers(117, 137, (3, n)).astype(np.uint8)
    bias = rng.standard_normal(n).astype(np.float32)
    scales = {"scale_a": bt.Array(sa, "float8_e8m0fnu"), "scale_b": sb.view(ml_dtypes.float8_e8m0fnu)}
    x, y = np.asarray(a).astype(float), np.asarray(b).astype(float)
    want = np.zeros((m, n)) + bias  # sums of few bits: float64 is exact
    for i, j, t in np.ndindex(m, n, k):
        want[i, j] += x[i, t] * y[t, j] * 2.0 ** (int(sa[i, t // 32]) + int(sb[t // 32, j]) - 254)
    found = matmul(a, b, bias, order="float64", **scales)
    assert np.array_equal(found.to_numpy(), np.float32(want))
    report = matmul(a, b, bias, report=True, **scales)
    assert (np.abs(report.accumulators - want) <= report.bound).all()
    quantised = matmul(a, b, bias, "F322BF16", order="float64", **scales)
    assert np.array_equal(quantised.to_numpy(), np.float32(want).astype(ml_dtypes.bfloat16))


def test_block_arrays_bring_their_scales() -> None:
    rng = np.random.default_rng(5)
    for name, element in (("mxfp4", FP4[0]), ("mxfp8_e4m3", FP8[0]), ("mxfp8_e5m2", FP8[1])):
        a = bt.array((rng.standard_normal((6, 70)) * 9).astype(np.float32), name)
        b = bt.array(rng.standard_normal((70, 4)).astype(np.float32), name, axis=0)
        found = matmul(a, b).codes
        values = [np.asarray(v, np.float32) for v in (a, b)]  # in float32 they are what they are in blocks
        assert np.array_equal(found, matmul(*values).codes)
        parts = bt.Array(a.element_codes[:, :70], element), bt.Array(a.exponents, "float8_e8m0fnu")
        assert np.array_equal(matmul(parts[0], b, scale_a=parts[1]).codes, found)


def test_scales_that_are_not_numbers() -> None:
    one = bt.Array(np.uint8([[0x38]]), FP8[0])

    def run(a: int, b: int, **choices: Any) -> float:
        scale_a, scale_b = (bt.Array(np.uint8([[c]]), "float8_e8m0fnu") for c in (a, b))
        return float(matmul(one, one, scale_a=scale_a, scale_b=scale_b, choices=Choices(**choices)).item())

    assert run(127, 128) == 2 and np.isnan(run(127, 0xFF)) and np.isnan(run(0xFF, 0))
    assert run(0, 254) == 1 and run(0, 254, e8m0_zero_code="zero") == 0
    big = bt.Array(np.uint8([[0x7E]]), FP8[0])
    scale = bt.Array(np.uint8([[0xFE]]), "float8_e8m0fnu")
    with pytest.raises(ValueError, match=r"^a\[0, 0\] times its scale is 7.6\d+e\+40, which float32 does not hold"):
        matmul(big, one, scale_a=scale, scale_b=scale)


def bad_mx(x: bt.Array) -> list[tuple[Any, str]]:
    left, right = (bt.array(np.ones(shape), "float8_e8m0fnu") for shape in ((2, 1), (1, 2)))
    both = {"scale_a": left, "scale_b": right}
    blocks, mx9 = bt.array(np.ones((2, 2), np.float32), "mxfp4"), bt.array(np.ones((1, 16), np.float32), "mx9")
    fp8 = bt.array(np.ones((2, 2), np.float32), "mxfp8_e4m3")
    half, on = np.float16([[1, 1]] * 2), ascend.Ctrl(bit45=True)
    return [
        (lambda: matmul(x, x, scale_a=left), r"scale_b is missing: MmadMx takes scales for both operands"),
        (lambda: matmul(x, x, scale_a=x, scale_b=x), r"scale_a is fp8_e4m3fn_t; scales are fp8_e8m0_t"),
        (
            lambda: matmul(x, x, scale_a=left, scale_b=left),
            r"scale_b has shape \(2, 1\); b of shape \(2, 2\) needs \(1, 2\)",
        ),
        (lambda: matmul(x, x, product=A2, **both), r"type fp8_e4m3fn_t is not supported by Atlas A2"),
        (lambda: matmul(x, x, saturation=on, **both), r"saturation has CTRL\[45\] = 1, and no document"),
        (lambda: matmul(half, x, **both), r"a is half and b is fp8_e4m3fn_t; .* these with scales, but fp4x2"),
        (lambda: matmul(blocks, blocks), r"b is a BlockArray of shape \(2, 2\) in blocks along axis 1; k is axis 0"),
        (lambda: matmul(fp8, x), r"scale_b is missing"),
        (lambda: matmul(fp8, x, **both), r"scale_a is given, but a is a BlockArray of mxfp8_e4m3, which has its own"),
        (lambda: matmul(mx9, x), r"a is a BlockArray of mx9; MmadMx takes fp8_e8m0_t scales of 32 elements"),
        (lambda: matmul([[1.0]], x, **both), r"a is a list; give a NumPy array or an Array"),
    ]


@pytest.mark.parametrize("case", range(11))
def test_bad_operands_with_scales(case: int) -> None:
    call, message = bad_mx(bt.array(np.ones((2, 2)), FP8[0]))[case]
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        call()


# --- HF32 -------------------------------------------------------------------------------------------------------------


def to_hf32(x: float, fraction_bits: int, ties: str) -> float:
    """Sign, 8 exponent bits and a fraction: the nearest value, ties as said; beyond the range: Inf."""
    if x == 0 or not math.isfinite(x):
        return x
    exponent = max(math.frexp(x)[1] - 1, -126)
    unit = Fraction(2) ** (exponent - fraction_bits)
    whole, rest = divmod(abs(Fraction(x)) / unit, 1)
    up = rest > Fraction(1, 2) if ties != "cut" else False
    if rest == Fraction(1, 2):
        up = {"even": bool(whole & 1), "ties_to_zero": False, "ties_away": True, "cut": False}[ties]
    value = (whole + up) * unit
    return math.copysign(math.inf if value >= Fraction(2) ** 128 else float(value), x)


def hf32_inputs() -> np.ndarray:
    """Significands around every kind of tie at 10 and 11 bits, in all kinds of binades."""
    low = [0, 1, 0x7FF, 0x800, 0x801, 0xFFF, 0x1000, 0x1001, 0x17FF, 0x1800, 0x1801, 0x1FFF]
    fractions = [top << 13 | bits for top in (0, 1, 2, 511, 1022, 1023) for bits in low]
    patterns = [e << 23 | f for e in (0, 1, 100, 127, 128, 253, 254) for f in fractions]
    x = np.array([*patterns, 0x7F800000, 0x7FC00000], np.uint32).view(np.float32)
    return np.concatenate([x, -x])


@pytest.mark.parametrize(("product", "fraction_bits"), [(A5, 10), (A2, 11), ("A3", 11), ("Atlas 200I/500 A2", 11)])
def test_hf32(product: str, fraction_bits: int) -> None:
    x = hf32_inputs()
    cases: list[tuple[Any, str, str]] = [("HF32TransMode::NEAREST_EVEN", "even", "ties_to_zero")]
    cases += [(ascend.HF32TransMode.NEAREST_ZERO, ties, ties) for ties in ("ties_to_zero", "ties_away", "cut")]
    for mode, ties, zero in cases:
        got = ascend.hf32(x, mode, product, choices=Choices(hf32_zero=zero))
        want = np.float32([to_hf32(float(v), fraction_bits, ties) for v in x])
        assert np.array_equal(got, want, equal_nan=True) and np.array_equal(np.signbit(got), np.signbit(x)), ties
    even = ascend.hf32(x, product=product)
    for other in (x.astype(">f4"), bt.array(x, "float32"), np.stack([x, x], 1)[:, 0]):
        assert np.array_equal(ascend.hf32(other, product=product), even, equal_nan=True)
    many = np.resize(x, (3, 100_003))
    assert np.array_equal(ascend.hf32(many, product=product, threads=3), np.resize(even, many.shape), equal_nan=True)
    largest = ascend.hf32(np.float32([3.4028235e38]), product=product, choices=Choices(hf32_overflow="largest"))
    assert largest == np.float32((2 - 2.0**-fraction_bits) * 2.0**127)


def test_hf32_in_the_matrix_unit() -> None:
    a, b = (np.random.default_rng(i).standard_normal((9, 9)).astype(np.float32) for i in (1, 2))
    for product in (A5, A2):
        for mode in ascend.HF32TransMode:
            x, y = (ascend.hf32(v, mode, product) for v in (a, b))
            assert not np.array_equal(x, a)
            assert np.array_equal(matmul(a, b, product=product, hf32=mode).codes, matmul(x, y, product=product).codes)


def test_int8_at_the_limits() -> None:
    low = np.full((2, 4096), -128, np.int8)
    assert matmul(low, low.T).tolist() == [[2**26] * 2] * 2
    long = np.full((1, 1 << 17), -128, np.int8)
    with pytest.raises(OverflowError, match=r"^accumulator \[0, 0\] is 2147483648, beyond 32 bits"):
        matmul(long, long.T)
    assert matmul(long, long.T, overflow="wrap").tolist() == [[-(2**31)]]
    assert matmul(long, long.T, overflow="saturate").tolist() == [[2**31 - 1]]
    assert matmul(long, long.T, bias=np.int32([-1])).tolist() == [[2**31 - 1]]


def test_bias() -> None:
    a, b = np.int8([[1, 2], [3, 4]]), np.int8([[5, 6], [7, 8]])
    assert matmul(a, b, [100, -100]).tolist() == [[119, -78], [143, -50]]
    assert matmul(a, b, [[1, 0], [0, 1]]).tolist() == [[20, 22], [43, 51]]
    h = np.float16([[0.5, 2]])
    for bias in (np.float16([3.0]), np.float32([3]), bt.array([3.0], "bfloat16"), np.array([3], ml_dtypes.bfloat16)):
        assert matmul(h, h.T, bias).tolist() == [[7.25]]
    with pytest.raises(TypeError, match=r"^bias has dtype float32; int32_t accumulators start from integers"):
        matmul(a, b, np.float32([1, 2]))
    with pytest.raises(ValueError, match=r"^bias has shape \(3,\); \[2\] or \[2, 2\] is needed"):
        matmul(a, b, [1, 2, 3])


def test_the_whole_way() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(-128, 128, (33, 200), np.int8), rng.integers(-128, 128, (200, 45), np.int8)
    bias = rng.integers(-1000, 1000, 45, np.int32)
    param = QuantParam(rng.uniform(1e-4, 1e-3, 45), 3, True)
    acc = np.matmul(a.astype(np.int32), b.astype(np.int32)) + bias
    for product in (A5, A2):
        for relu in (False, True):
            found = matmul(a, b, bias, ("VREQ8", param), relu, product)
            assert np.array_equal(found.codes, ascend.fixpipe(acc, "VREQ8", param, relu, product).codes)
    blocks = matmul(a, b, bias, ("VREQ8", param.pack(3510)), layout="NZ")
    assert np.array_equal(ascend.nz_to_nd(blocks, (33, 45)).codes, matmul(a, b, bias, ("VREQ8", param)).codes)
    h = rng.standard_normal((8, 32)).astype(np.float16)
    half = matmul(h, h.T, quant="F322F16", order="float64")
    exactly = np.matmul(h.astype(float), h.T.astype(float))
    assert np.array_equal(half.to_numpy(), exactly.astype(np.float32).astype(np.float16))
    assert np.isinf(matmul(h * 300, h.T * 300, quant=1, saturation=False).to_numpy()).any()


@pytest.mark.parametrize("name", ["float16", "float8_e4m3fn", "bfloat16", "float32"])
def test_the_bound_covers_every_order(name: str) -> None:
    a, b = operand(name, (9, 300), 4), operand(name, (300, 11), 5)
    bias = np.linspace(-3, 3, 11, dtype=np.float32)
    reports = {o: matmul(a, b, bias, report=True, order=o) for o in ORDERS}
    accumulators = [r.accumulators for r in reports.values()]
    for report in reports.values():
        assert report.bound.shape == (9, 11) and (report.bound > 0).all()
        for other in accumulators:
            assert (np.abs(report.accumulators.astype(float) - other) <= report.bound).all()
        assert np.array_equal(np.asarray(report.result), report.accumulators)
        assert (report.bound < 0.02).all()
    assert len({r.tobytes() for r in accumulators}) > 1  # they do differ
    assert (matmul(np.int8([[1]]), np.int8([[2]]), report=True).bound == 0).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: matmul(x, x, order="tree"), r"order='tree' is not an order of accumulation"),
        (lambda x: matmul(x, x[:1]), r"a has shape \(2, 2\) and b \(1, 2\)"),
        (lambda x: matmul(x[0], x), r"a has shape \(2,\); a matrix is needed"),
        (lambda x: matmul([[1]], x), r"a is a list; give a NumPy array or an Array"),
        (lambda x: matmul(x, x, quant=QuantParam(1.0)), r"quant=QuantParam\(.*\) lacks a mode"),
        (lambda x: matmul(x, x, quant="REQ8"), r"acc has dtype float32; mode REQ8 takes accumulators of int32_t"),
        (lambda x: matmul(x, x, quant="QF322F16_PRE"), r"quant_pre is missing"),
        (lambda x: matmul(x, x, product="910A"), r"product='910A': no document describes"),
        (lambda x: matmul(x, x, hf32="nearest_even"), r"hf32='nearest_even': operands are half and half; HF32 mode is"),
        (lambda x: matmul(x * np.float32(1), np.float32(x), hf32="even"), r"mode='even' is not a mode of HF32"),
        (lambda x: ascend.hf32(x), r"x has dtype float16; HF32 is made of float32"),
        (lambda x: ascend.hf32(np.float32(x), product="910A"), r"product='910A': Atlas training has no HF32; these"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        call(np.ones((2, 2), np.float16))


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "quantised_linear.py"))
    out = capsys.readouterr().out
    assert "largest difference" in out
