"""Array: construction, values, text, indexing, comparison, order and neighbours, against `exact` and NumPy."""

import copy
import csv
import json
import math
import pickle
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import bittrue as bt
from bittrue import exact
from bittrue import operations as ops
from bittrue.array import Array, array
from bittrue.codes import compare_values, order
from bittrue.operations import ULP_NAN

CASES = list(csv.DictReader((Path(__file__).parent / "data" / "cases.csv").read_text("utf-8").splitlines()))
OWN = [
    bt.IntFormat("int5", width=5),
    bt.IntFormat("uint7", width=7, signed=False),
    bt.FloatFormat("finite_ieee", exponent_bits=3, mantissa_bits=2, inf=False, nan="none"),
    bt.FloatFormat("fraction_only", exponent_bits=0, mantissa_bits=5, bias=0, inf=False, nan="none"),
    bt.p3109(6, 3),
    bt.p3109(7, 4, extended=False),
    bt.p3109(8, 3, signed=False),
    bt.p3109(5, 2, signed=False, extended=False),
]
ALL = bt.formats() + OWN
REAL = [f for f in ALL if f.kind != "complex"]
SMALL = [f for f in REAL if f.bits <= 8]
FLOATS = [f for f in SMALL if f.kind in ("float", "tapered")]
WIDE = [
    f for f in bt.formats() if f.bits > 16 and f.kind != "complex"
] + [bt.IntFormat("int24", width=24), bt.IntFormat("uint40", width=40, signed=False),
     bt.FloatFormat("e6m15", exponent_bits=6, mantissa_bits=15),
     bt.FloatFormat("u_e7m20", exponent_bits=7, mantissa_bits=20, signed=False, inf=False, nan="ones")]  # fmt: skip


def all_codes(fmt):
    return Array(np.arange(1 << fmt.bits, dtype=fmt.storage), fmt)


def sample(fmt, n=300, seed=0):
    """Codes of a wide format: random ones, the ends of the range, and those around zero."""
    rng = np.random.default_rng(seed)
    top = 1 << fmt.bits
    picked = [0, 1, 2, top - 1, top - 2, top // 2, top // 2 + 1, top // 2 - 1, top // 2 - 2]
    if fmt.kind == "float":
        picked += [int(fmt.max_code), int(fmt.max_code) - 1]
        picked += [c for c in (fmt.inf_magnitude, fmt.nan_code) if c is not None]
        picked += [c | top // 2 for c in picked[-4:]] if fmt.signed else []
    picked += [int.from_bytes(rng.bytes(8), "little") % top for _ in range(n)]
    return Array(np.array(picked, np.uint64).astype(fmt.code_dtype).view(fmt.storage), fmt)


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def sign(value):
    return math.copysign(1, value) < 0 if isinstance(value, float) else value < 0


def decoded(a):
    return [exact.decode(int(c), a.format) for c in a.codes.view(a.format.code_dtype).ravel()]


def codes_of(a):
    return a.codes.view(a.format.code_dtype).tolist()


def levels(fmt):
    """Return the different values of a format in ascending order, infinities at the ends."""
    finite = {Fraction(v) for v in fmt.values() if not is_nan(v) and math.isfinite(v)}
    infinite = {v for v in fmt.values() if isinstance(v, float) and math.isinf(v)}
    return sorted(finite | infinite, key=float)


# --- construction and values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", ALL, ids=str)
def test_values_of_every_code(fmt):
    a = all_codes(fmt) if fmt.bits <= 8 else sample(fmt, 2000)
    got = np.asarray(a)
    for value, expected in zip(got.tolist(), decoded(a)):
        pairs = zip((value.real, value.imag), expected) if fmt.kind == "complex" else [(value, expected)]
        for v, e in pairs:
            assert (is_nan(v) and is_nan(e)) or v == e
            assert fmt.kind in ("int", "bool") or sign(v) == sign(e)
    assert a.tolist() == got.tolist() or np.isnan(got).any()
    assert a.shape == got.shape and a.size == len(a) == got.size and a.ndim == 1


def test_dtypes_of_values():
    expected = {
        "bool": "bool", "int1": "int8", "int4": "int8", "uint2": "uint8", "int16": "int16", "uint64": "uint64",
        "int32": "int32",
        "float8_e4m3fn": "float32", "float8_e8m0fnu": "float32", "hifloat8": "float32", "bfloat16": "float32",
        "float16": "float32", "tfloat32": "float32", "float32": "float32", "float64": "float64",
        "complex32": "complex64", "complex64": "complex64",
    }  # fmt: skip
    for name, dtype in expected.items():
        assert np.asarray(array([0, 1], name)).dtype == dtype, name
    wide = bt.FloatFormat("wide_range", exponent_bits=9, mantissa_bits=3)
    assert np.asarray(array([1e60], wide)).tolist() == pytest.approx([1e60], rel=0.1)
    assert np.asarray(array([1], bt.IntFormat("int20", width=20))).dtype == np.int32


def test_array_protocol():
    a = array([1.5, np.nan, -0.0], "float8_e4m3fn")
    assert np.asarray(a, np.float64).dtype == np.float64
    assert np.asarray(a[:1], np.int8).tolist() == [1]
    own = np.asarray(a, ml_dtypes.float8_e4m3fn)
    assert own.dtype == ml_dtypes.float8_e4m3fn and np.shares_memory(own, a.codes)
    assert not np.shares_memory(np.array(a, ml_dtypes.float8_e4m3fn), a.codes)
    with pytest.raises(ValueError, match="without a copy"):
        np.array(a, copy=False)
    b = array([1.5], "float32")
    assert np.shares_memory(np.asarray(b), b.codes) and np.array(b, copy=False)[0] == 1.5
    assert np.array(a, dtype=object).tolist()[0] == 1.5
    # one rounding, where ml_dtypes would go through float32
    assert np.asarray(array([16973823], "int64"), ml_dtypes.bfloat16).astype(np.float64) == 16908288
    assert np.asarray(array([-431.99999999999994], "float64"), ml_dtypes.float8_e4m3fn).astype(np.float64) == -416


@pytest.mark.parametrize("fmt", bt.formats(), ids=str)
def test_to_numpy_is_a_view(fmt):
    a = array([0, 1, 1], fmt)
    view = a.to_numpy()
    assert np.shares_memory(view, a.codes) and view.dtype.itemsize == fmt.storage.itemsize
    if view.dtype != fmt.storage:
        assert bt.format(view.dtype) == fmt
        np.testing.assert_array_equal(view.astype(np.complex64), np.asarray(a).astype(np.complex64))
        assert Array(view, fmt) is not a and codes_of(Array(view, fmt)) == codes_of(a)


def test_to_numpy_of_odd_truth_values():
    a = Array([0, 1, 2, 255], "bool")
    assert a.to_numpy().tolist() == [False, True, True, True] == np.asarray(a).tolist()


def test_own_format_with_a_taken_name_keeps_its_codes():
    mine = bt.FloatFormat("bfloat16", exponent_bits=7, mantissa_bits=8)
    assert Array([1], mine).to_numpy().dtype == np.uint16


def test_codes_are_shared_and_checked():
    codes = np.array([1, 2], np.uint8)
    assert np.shares_memory(Array(codes, "int4").codes, codes)
    assert Array(np.array([-1], np.int8), "int8").codes.tolist() == [255]
    assert Array(np.array([1.5], np.float16), "half").codes.tolist() == [0x3E00]
    assert Array(np.array([0x3FC00000], np.uint32), "float32").codes.tolist() == [1.5]
    assert Array([-3], "int32").tolist() == [-3]
    assert Array(np.array([0x0138], ">u2"), "bfloat16").codes.tolist() == [0x138]
    assert Array(np.array([0xF3, 0x03], np.uint8).view(ml_dtypes.int4), "int4").codes.tolist() == [3, 3]
    assert Array([], "bfloat16").codes.dtype == np.uint16
    assert Array(Array([1], "int4"), "int4").tolist() == [1]
    assert Array(7, "int4").shape == ()


@pytest.mark.parametrize(
    ("codes", "fmt", "error", "words"),
    [
        ([16], "int4", ValueError, "codes: 0x10 is out of range for int4: 0x0 to 0xf"),
        (np.array([0xF2], np.uint8), "float4_e2m1fn", ValueError, "0xf2"),
        ([-1], "uint8", ValueError, "-0x1"),
        ([1 << 19], "tfloat32", ValueError, "0x80000"),
        ([1 << 31], "int32", ValueError, "0x80000000"),
        ([1.5], "int4", TypeError, "float64"),
        ([1], "float32", TypeError, "codes have dtype int64; float32 takes float32 or uint32"),
        (["1"], "int4", TypeError, "<U1"),
        (np.ones(2, ml_dtypes.bfloat16), "float16", TypeError, "bfloat16"),
        ([1], "int3", ValueError, "int3"),
    ],
)
def test_bad_codes(codes, fmt, error, words):
    with pytest.raises(error) as caught:
        Array(codes, fmt)
    assert words in str(caught.value) and "\n" not in str(caught.value)


# --- conversion -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["float8_e4m3fn", "int4", "bfloat16", "float32", "hifloat8", "uint64", "float64"])
@pytest.mark.parametrize("fmt", [f for f in REAL if f.kind != "bool"], ids=str)
def test_arrays_convert_with_one_rounding(fmt, target):
    a = all_codes(fmt) if fmt.bits <= 8 else sample(fmt)
    for rule in (bt.Rule(), bt.Rule("floor", "saturate_finite")):
        b = a.astype(target, rule=rule)
        assert b.format is bt.format(target) and b.shape == a.shape
        assert codes_of(b) == [exact.encode(v, target, rule) for v in decoded(a)]


def test_conversion_of_complex_arrays():
    a = array([1 + 2j, complex(np.nan, -0.0)], "complex64")
    b = a.astype("complex32")
    assert b.real.format.name == "float16" and b.real.codes.tolist() == [0x3C00, 0x7E00]
    assert b.imag.codes.tolist() == [0x4000, 0x8000] and b.astype("complex64").codes.view("u8").tolist() == codes_of(a)
    with pytest.raises(TypeError):
        a.astype("float32")
    assert array([1.0], "float16").real.tolist() == [1.0]
    with pytest.raises(TypeError, match="not complex"):
        _ = array([1.0], "float16").imag


def test_arguments_reach_the_rule():
    assert array(2.5, "int8", rounding="nearest_away").item() == 3
    assert array(np.inf, "float16", "nearest_even", "infinity").item() == math.inf
    assert array([300], "int8").astype("uint4", overflow="wrap").tolist() == [15]
    assert array([4.0, 8.0], "int8", scale=2.0, zero_point=1).tolist() == [3, 5]
    x = np.linspace(0, 1, 50)
    np.testing.assert_array_equal(
        array(x, "float8_e5m2", "stochastic", seed=9).codes, bt.encode(x, "float8_e5m2", "stochastic", seed=9)
    )


# --- text -------------------------------------------------------------------------------------------------------------


def test_text():
    a = array([[1.5, np.nan], [-0.0, 448]], "float8_e4m3fn")
    assert repr(a) == "Array([[  1.5,   nan],\n       [ -0. , 448. ]], shape=(2, 2), format=float8_e4m3fn)"
    assert str(a) == str(np.asarray(a))
    assert str(a[0, 0]) == "1.5" and repr(a[0, 0]) == "Array(1.5, shape=(), format=float8_e4m3fn)"
    assert str(array(-3, "int4")) == "-3" == f"{array(-3, 'int4')}" and str(array(True, "bool")) == "True"
    assert f"{a[1, 1]:.3e}" == "4.480e+02" and format(array(5, "uint4"), "03d") == "005"
    with pytest.raises(TypeError, match=r"shape \(2, 2\)"):
        format(a, ".3f")
    assert repr(Array([], "int4")) == "Array([], shape=(0,), format=int4)"


def test_text_of_large_arrays_shows_the_edges():
    x = np.arange(2000 * 7 * 3).reshape(2000, 7, 3) % 100
    a = array(x, "int8")
    assert str(a) == str(x.astype(np.int8))
    assert "..." in repr(a) and repr(a).endswith("shape=(2000, 7, 3), format=int8)")
    assert str(array(np.arange(1001) % 7, "int4")) == str(np.arange(1001) % 7)


@pytest.mark.parametrize("fmt", SMALL[1:], ids=str)
def test_text_is_read_back(fmt):
    a = all_codes(fmt)
    codes = [str(v) for v in a]
    back = array(codes, fmt, overflow="infinity")
    nan = ops.isnan(a)
    np.testing.assert_array_equal(back.codes[~nan], a.codes[~nan])
    np.testing.assert_array_equal(ops.isnan(back), nan)


@pytest.mark.parametrize("row", [r for r in CASES if '"op":"format"' in r["params"]], ids=lambda r: r["id"])
def test_published_format_case(row):
    a = Array([int(c, 16) for c in json.loads(row["input"])], row["source_format"])
    assert format(a[0], json.loads(row["params"])["spec"]) == json.loads(row["expected"])


# --- scalars, indexing, copies ----------------------------------------------------------------------------------------


def test_scalars():
    a = array([2, -3], "int8")
    assert float(a[0]) == 2.0 and int(a[1]) == -3 and complex(a[0]) == 2
    assert a.item(1) == -3 and [10, 20, 30][a[0]] == 30
    assert bool(a[0]) and not bool(array(0, "float16")) and bool(array([1.0], "float16"))
    assert type(a[0].item()) is int and type(array(1, "float16").item()) is float
    assert type(array(1, "bool").item()) is bool and type(array(1, "complex32").item()) is complex
    assert int(array("123456789012345678", "int64")) == 123456789012345678
    for call in (float, int, complex):
        with pytest.raises(TypeError, match=r"shape \(2,\)"):
            call(a)
    with pytest.raises(ValueError, match="neither true nor false"):
        bool(a)
    with pytest.raises(TypeError, match="not an index"):
        [1][array(0.0, "float16")]
    with pytest.raises(TypeError):
        len(a[0])
    with pytest.raises(TypeError):
        iter(a[0])
    with pytest.raises(TypeError):
        hash(a)
    with pytest.raises(TypeError):
        a[0] = 1


def test_indexing_like_numpy():
    x = np.arange(24).reshape(2, 3, 4)
    a = array(x, "int8")
    mask = x % 2 == 0
    for key in (
        0, -1, (1, 2, 3), slice(None), (slice(None), 1), (..., slice(None, None, -2)), None, mask, [1, 0], (0, [0, 2]),
        np.array([[1], [0]]), (slice(None), mask[0, :, 0]), np.int64(1), (),
    ):  # fmt: skip
        got = a[key]
        assert isinstance(got, Array) and got.format is a.format
        np.testing.assert_array_equal(np.asarray(got), x[key])
    np.testing.assert_array_equal(np.asarray(a[array(mask, "bool")]), x[mask])
    np.testing.assert_array_equal(np.asarray(a[array([1, 0, 1], "uint2")]), x[[1, 0, 1]])
    np.testing.assert_array_equal(np.asarray(a[array(1, "int4"), :, array(2, "int4")]), x[1, :, 2])
    assert [v.tolist() for v in a] == x.tolist()
    with pytest.raises(IndexError):
        a[5]


def test_shapes():
    x = np.arange(24).reshape(2, 3, 4)
    a = array(x, "int8")
    for got, expected in (
        (a.reshape(4, 6), x.reshape(4, 6)),
        (a.reshape((3, -1)), x.reshape(3, -1)),
        (a.T, x.T),
        (a.transpose(1, 0, 2), x.transpose(1, 0, 2)),
        (a.ravel(), x.ravel()),
        (a.T.ravel(), x.T.ravel()),
        (a.take([0, 5]), x.take([0, 5])),
        (ops.take(a, [[1], [0]], axis=1), np.take(x, [[1], [0]], axis=1)),
        (ops.concatenate([a, a], axis=1), np.concatenate([x, x], axis=1)),
        (ops.concatenate([a, a[0]], axis=None), np.concatenate([x, x[0]], axis=None)),
    ):
        assert got.format is a.format
        np.testing.assert_array_equal(np.asarray(got), expected)
    assert a.T.tobytes() == x.T.astype(np.int8).tobytes()
    assert np.shares_memory(a.T.codes, a.codes) and not np.shares_memory(a.copy().codes, a.codes)
    with pytest.raises(ValueError, match="one format, not int8 and int4"):
        ops.concatenate([a, array(x, "int4")])
    with pytest.raises(ValueError, match="empty"):
        ops.concatenate([])
    with pytest.raises(TypeError, match=r"arrays\[1\] must be a bittrue.Array, not ndarray"):
        ops.concatenate([a, x])


@pytest.mark.parametrize("fmt", ALL, ids=str)
def test_pickle_and_copy(fmt):
    a = array(np.arange(6).reshape(2, 3) % 2, fmt).T
    for b in (pickle.loads(pickle.dumps(a)), copy.copy(a), copy.deepcopy(a)):
        assert b.shape == a.shape and codes_of(b) == codes_of(a) and b.format == a.format
        assert b.format is a.format or fmt in OWN
    assert not np.shares_memory(copy.deepcopy(a).codes, a.codes)


# --- comparison -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_comparison_of_all_pairs(fmt):
    a = all_codes(fmt)
    rank = {v: i for i, v in enumerate(levels(fmt))}
    ranks = np.array([np.nan if is_nan(v) else rank[v] for v in decoded(a)])
    x, y = ranks[:, None], ranks[None, :]
    left, right = a.reshape(-1, 1), a.reshape(1, -1)
    for got, expected in (
        (left == right, x == y), (left != right, x != y), (left < right, x < y),
        (left <= right, x <= y), (left > right, x > y), (left >= right, x >= y), (ops.equal(left, right), x == y),
    ):  # fmt: skip
        assert isinstance(got, np.ndarray)
        np.testing.assert_array_equal(got, expected)


def test_comparison_between_formats_is_exact():
    big = array([2**53 + 1, -(2**63), 2**63 - 1, 0], "int64")
    near = array([2.0**53, -(2.0**63), 2.0**63, -0.0], "float64")
    assert (big == near).tolist() == [False, True, False, True]
    assert (big > near).tolist() == [True, False, False, False]
    assert (near <= big).tolist() == [True, True, False, True]
    assert (array([2**64 - 1], "uint64") < 2.0**64).all() and (array([2**63], "uint64") > array([-1], "int64")).all()
    assert (array([2.0**70, 1], "bfloat16") == [2**70, 1]).tolist() == [True, True]
    assert (array([1 / 3], "float32") == [Fraction(1, 3)]).tolist() == [False]
    assert (array([0.1], "float32") == 0.1).tolist() == [False]
    assert (array([1, 2], "int4") == np.array([1.0, np.nan])).tolist() == [True, False]
    assert (np.array([1.0, 2.0]) == array([1, 3], "int4")).tolist() == [True, False]
    assert (2 > array([1, 3], "int4")).tolist() == [True, False]
    assert (array([1.5], "float16") == np.array([1.5], ml_dtypes.bfloat16)).tolist() == [True]
    assert (array([1 + 2j, 1], "complex32") == array([1 + 2j, 1j], "complex64")).tolist() == [True, False]
    assert bool(array(1, "int4") == 1) and not bool(array(np.nan, "float16") == np.nan)
    assert (array([1, 2], "int4") == "text") is False and (array([1], "int4") != "text") is True
    with pytest.raises(TypeError):
        _ = array([1], "int4") < "text"
    with pytest.raises(TypeError, match="must be a bittrue"):
        ops.equal([1], [1])


def test_compare_values_against_fractions():
    x = np.array([2**62, 2**62 + 1, 2**63 - 1, -(2**63), 5, 0], np.int64)
    y = np.array([2.0**62, 2.0**63, -np.inf, np.inf, np.nan, 5.5, -0.0])
    got = compare_values(x[:, None], y[None, :])
    for i, a in enumerate(x.tolist()):
        for j, b in enumerate(y.tolist()):
            assert got[i, j] == (2 if math.isnan(b) else (a > b) - (a < b))


# --- classes and signs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", REAL, ids=str)
def test_classes_and_signs(fmt):
    a = all_codes(fmt) if fmt.bits <= 8 else sample(fmt, 3000)
    values = decoded(a)
    nan = [is_nan(v) for v in values]
    assert ops.isnan(a).tolist() == nan
    assert ops.isinf(a).tolist() == [isinstance(v, float) and math.isinf(v) for v in values]
    assert ops.isfinite(a).tolist() == [math.isfinite(v) for v in values]
    assert ops.signbit(a).tolist() == [sign(v) for v in values]
    for got, change in ((ops.abs, abs), (ops.neg, lambda v: -v)):
        if fmt.kind == "bool" or (got is ops.neg and fmt.kind == "float" and not fmt.signed):
            continue
        b = got(a)
        for before, after in zip(values, decoded(b)):
            expected = change(before)
            if fmt.kind == "int":
                assert after == (expected - fmt.min) % (1 << fmt.bits) + fmt.min  # wraps
            elif is_nan(before):
                assert is_nan(after) and (sign(after) == sign(expected) or not fmt.nan_signed)
            else:
                assert after == expected
                if not before:
                    wanted = fmt.has_negative_zero and (got is ops.neg and not sign(before))
                    assert sign(after) == wanted
    assert codes_of(+a) == codes_of(a)


def test_signs_where_there_are_none():
    for fmt in ("bool", "float8_e8m0fnu"):
        with pytest.raises(TypeError, match=f"{fmt} has no negative values"):
            -array([1], fmt)
    assert (-array([1 - 2j], "complex32")).item() == -1 + 2j
    for call in (abs, ops.signbit, lambda a: ops.nextafter(a, a), lambda a: ops.ulp_distance(a, a)):
        with pytest.raises(TypeError, match="complex32"):
            call(array([1j], "complex32"))
    assert ops.isnan(array([complex(np.nan, 1), 1j], "complex32")).tolist() == [True, False]
    assert ops.isinf(array([complex(1, -np.inf), 1j], "complex64", overflow="infinity")).tolist() == [True, False]
    assert bool(ops.isnan(array(np.nan, "float16"))) and not bool(ops.signbit(array(1, "int4")))
    with pytest.raises(TypeError, match=r"a must be a .*, not list"):
        ops.isnan([1.0])


# --- neighbours -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_nextafter_of_all_pairs(fmt):
    a = all_codes(fmt)
    values, steps = decoded(a), levels(fmt)
    got = ops.nextafter(a.reshape(-1, 1), a.reshape(1, -1))
    codes = got.codes
    for i, x in enumerate(values):
        if is_nan(x):
            assert (codes[i] == i).all()
            continue
        at = steps.index(x)
        moved = {-1: steps[max(at - 1, 0)], 0: x, 1: steps[min(at + 1, len(steps) - 1)]}
        for j, y in enumerate(values):
            result = exact.decode(int(codes[i, j]), fmt)
            if is_nan(y):
                assert is_nan(result)
                continue
            direction = (y > x) - (y < x)
            if direction == 0:
                assert codes[i, j] == j
                continue
            expected = moved[direction]
            assert result == expected
            if not expected and fmt.kind != "int" and fmt.kind != "bool" and x:
                assert sign(result) == (x < 0 and fmt.has_negative_zero)


@pytest.mark.parametrize(("name", "dtype"), [("float32", "f4"), ("float64", "f8"), ("float16", "f2")])
def test_nextafter_like_numpy(name, dtype):
    a, b = sample(bt.format(name), 3000), sample(bt.format(name), 3000, seed=1)
    x, y = a.to_numpy(), b.to_numpy()
    with np.errstate(all="ignore"):
        expected = np.nextafter(x, y)
    nan = np.isnan(expected)
    got = ops.nextafter(a, b).to_numpy()
    np.testing.assert_array_equal(got[~nan].view(f"u{dtype[1]}"), expected[~nan].view(f"u{dtype[1]}"))
    assert np.isnan(got[nan]).all()


@pytest.mark.parametrize("fmt", WIDE, ids=str)
def test_nextafter_and_distance_of_wide_formats(fmt):
    a = sample(fmt, 500)
    finite = ops.isfinite(a)
    for toward, way in ((np.inf, 1), (-np.inf, -1)):
        b = ops.nextafter(a, toward)
        for x, y, ok in zip(decoded(a), decoded(b), finite.tolist()):
            if not ok:
                continue
            if x == (fmt.max if way > 0 else fmt.min):
                assert y == way * math.inf if fmt.has_inf and (fmt.signed or way > 0) else y == x
                continue
            step = Fraction(y) - Fraction(x)
            assert step * way > 0  # and nothing lies between: the middle rounds to one of them
            middle = (Fraction(x) + Fraction(y)) / 2
            assert {exact.decode(exact.encode(middle, fmt, bt.Rule(r)), fmt) for r in ("floor", "ceil")} == {x, y}
        distance = ops.ulp_distance(a, b)
        assert ((distance == 1) | (a == b) | ops.isnan(a)).all()
        # from one end to the other
    low, high = array([fmt.min], fmt), array([fmt.max], fmt)
    count = int(fmt.max - fmt.min) if fmt.kind == "int" else int(fmt.max_code) * (1 + fmt.signed)
    assert int(ops.ulp_distance(low, high)[0]) == count == int(ops.ulp_distance(high, low)[0])


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_ulp_distance_of_all_pairs(fmt):
    a = all_codes(fmt)
    rank = {v: i for i, v in enumerate(levels(fmt))}
    ranks = np.array([-1 if is_nan(v) else rank[v] for v in decoded(a)])
    got = ops.ulp_distance(a.reshape(-1, 1), a.reshape(1, -1))
    expected = np.abs(ranks[:, None] - ranks[None, :]).astype(np.uint64)
    nan = ranks == -1
    expected[nan, :] = expected[:, nan] = ULP_NAN
    expected[np.ix_(nan, nan)] = 0
    assert got.dtype == np.uint64
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("fmt", [f for f in REAL if 8 < f.bits <= 16 and f.kind == "float"], ids=str)
def test_order_of_16_bit_floats(fmt):
    codes = np.arange(1 << fmt.bits)
    magnitude = codes & 0x7FFF
    rank = np.where(codes > 0x7FFF, -magnitude, magnitude) + fmt.inf_magnitude
    table = order(fmt)
    finite = magnitude <= fmt.inf_magnitude
    np.testing.assert_array_equal(table.ranks[finite], rank[finite])
    assert (table.ranks[~finite] == 2 * fmt.inf_magnitude + 1).all()


def test_neighbour_arguments():
    a = array([1.0, 2.0], "float8_e4m3fn")
    assert ops.nextafter(a, [0, 3]).tolist() == [0.9375, 2.25]
    assert ops.nextafter(a, array([2**60, -(2**60)], "int64")).tolist() == [1.125, 1.875]
    assert ops.nextafter(a[0], np.inf).shape == () and ops.nextafter(a[0], [0.0, 2.0]).shape == (2,)
    assert np.isnan(ops.nextafter(a, np.nan).tolist()).all()
    with pytest.raises(ValueError, match="toward is NaN, which int8 does not have"):
        ops.nextafter(array([1], "int8"), np.nan)
    with pytest.raises(TypeError, match="toward must be numbers"):
        ops.nextafter(a, "up")
    with pytest.raises(ValueError, match="one format, not float8_e4m3fn and bfloat16"):
        ops.ulp_distance(a, a.astype("bfloat16"))
    with pytest.raises(TypeError, match="b must be a bittrue"):
        ops.ulp_distance(a, [1.0])


@pytest.mark.parametrize("row", [r for r in CASES if '"op":"nextafter"' in r["params"]], ids=lambda r: r["id"])
def test_published_nextafter_case(row):
    read = [json.loads(row["input"]), json.loads(row["params"])["toward"], json.loads(row["expected"])]
    a, toward, expected = (Array([int(c, 16) for c in codes], row["source_format"]) for codes in read)
    assert codes_of(ops.nextafter(a, toward)) == codes_of(expected)


@pytest.mark.parametrize("row", [r for r in CASES if '"op":"ldexp"' in r["params"]], ids=lambda r: r["id"])
def test_published_ldexp_case(row):
    a = array([float.fromhex(v) for v in json.loads(row["input"])], row["source_format"])
    scaled = array(np.ldexp(np.asarray(a), json.loads(row["params"])["by"]), row["target_format"])
    assert codes_of(scaled) == [int(c, 16) for c in json.loads(row["expected"])]


# --- order ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", [f for f in ALL if f.bits <= 16] + WIDE + ["complex32", "complex64"], ids=str)
def test_order_like_numpy(fmt):
    """NumPy's own floats are the reference; the codes that come out tell whether sorting is stable."""
    fmt = bt.format(fmt)
    rng = np.random.default_rng(3)
    a = all_codes(fmt)[rng.permutation(1 << fmt.bits)[:3000]] if fmt.bits <= 16 else sample(fmt, 400)
    a = ops.concatenate([a, a[::3], a, a])
    a = a[: len(a) // 4 * 4].reshape(4, -1)
    x = np.asarray(a)
    for axis in (0, 1, -1, None):
        indices = np.argsort(x, axis=axis, kind="stable")
        np.testing.assert_array_equal(a.argsort(axis), indices)
        flat, at = (a.codes.ravel(), -1) if axis is None else (a.codes, axis)
        expected = np.take_along_axis(flat.view(fmt.code_dtype), indices, at)
        np.testing.assert_array_equal(a.sort(axis).codes.view(fmt.code_dtype), expected)
        np.testing.assert_array_equal(ops.argmax(a, axis), np.argmax(x, axis))
        np.testing.assert_array_equal(ops.argmin(a, axis, keepdims=True), np.argmin(x, axis, keepdims=True))
        np.testing.assert_array_equal(np.asarray(ops.max(a, axis)), np.max(x, axis))
        np.testing.assert_array_equal(np.asarray(ops.min(a, axis, keepdims=True)), np.min(x, axis, keepdims=True))
    np.testing.assert_array_equal(np.asarray(a.max((0, 1))), np.max(x, (0, 1)))
    clean = a.ravel()[~ops.isnan(a).ravel()]
    np.testing.assert_array_equal(np.asarray(clean.max()), np.asarray(clean).max())
    np.testing.assert_array_equal(np.asarray(clean.min()), np.asarray(clean).min())


@pytest.mark.parametrize("fmt", [*ALL, *WIDE], ids=str)
def test_unique(fmt):
    a = all_codes(fmt) if fmt.bits <= 8 else sample(fmt, 200)
    a = ops.concatenate([a[::-1], a])
    found, first, inverse, counts = ops.unique(a, True, True, True)
    x = np.asarray(a)
    np.testing.assert_array_equal(np.asarray(found), np.unique(x))
    np.testing.assert_array_equal(a.codes[first].view(fmt.code_dtype), found.codes.view(fmt.code_dtype))
    np.testing.assert_array_equal(np.asarray(found)[inverse], x)
    assert counts.sum() == len(a) and np.asarray(ops.unique(a)).shape == found.shape
    if fmt.kind != "complex":
        again = ops.unique(a.reshape(2, -1)).codes
        np.testing.assert_array_equal(again.view(fmt.code_dtype), found.codes.view(fmt.code_dtype))
        for value, index in zip(np.asarray(found).tolist(), first.tolist()):
            same = np.isnan(x) if is_nan(value) else x == value
            assert index == np.flatnonzero(same)[0]


@pytest.mark.parametrize("row", [r for r in CASES if r["kind"] == "sort"], ids=lambda r: r["id"])
def test_published_sort_cases(row):
    a = Array([int(c, 16) for c in json.loads(row["input"])], row["source_format"])
    got = getattr(ops, json.loads(row["params"])["op"])(a)
    assert got.format == bt.format(row["target_format"])
    assert codes_of(got) == [int(c, 16) for c in json.loads(row["expected"])]


def test_extremes_of_nothing():
    a = Array([], "hifloat8")
    for call in (a.max, a.min):
        with pytest.raises(ValueError, match="of no elements"):
            call()
    for call in (a.argmax, a.argmin):
        with pytest.raises(ValueError):
            call()
    assert a.sort().shape == (0,) and a.reshape(3, 0).max(0).shape == (0,)


# --- NumPy's own functions --------------------------------------------------------------------------------------------


def test_numpy_functions_keep_the_format():
    a = array([[3, np.nan, 1], [-0.0, 2, 1]], "hifloat8")
    for got, expected in (
        (np.sort(a), a.sort()), (np.sort(a, axis=0, kind="stable"), a.sort(0)), (np.max(a), a.max()),
        (np.min(a, axis=1), a.min(1)), (np.unique(a), ops.unique(a)), (np.take(a, [0, 1]), a.take([0, 1])),
        (np.concatenate([a, a]), ops.concatenate([a, a])), (np.reshape(a, (3, 2)), a.reshape(3, 2)),
        (np.ravel(a), a.ravel()),
        (np.transpose(a), a.T), (np.transpose(a, (1, 0)), a.T), (np.copy(a), a),
        (np.negative(a), -a), (np.abs(a), abs(a)),
        (np.nextafter(a, 0), ops.nextafter(a, 0)),
    ):  # fmt: skip
        assert isinstance(got, Array) and got.format is a.format
        np.testing.assert_array_equal(got.codes, expected.codes)
    assert np.argmax(a) == 1 and np.argsort(a, axis=None).tolist() == a.argsort(None).tolist()
    assert np.isnan(a).tolist() == ops.isnan(a).tolist() and np.isfinite(a).sum() == 5 and np.signbit(a).sum() == 0
    assert np.isinf(a).sum() == 0 and np.equal(a, a).sum() == 5 and np.less(0, a).sum() == 4
    assert np.shape(a) == (2, 3) and np.ndim(a) == 2 and np.size(a) == 6
    assert np.sum(a[1]) == 3 and np.mean(a[1]) == 1 and np.dot(a[1], a[1]) == 5
    b = array([1, 2], "int4")
    assert np.sum(b) == 3 and np.sum(b).dtype == np.int32 and np.mean(b) == 1.5


def test_other_numpy_functions_work_on_values():
    a = array([1, 2, 4], "bfloat16")
    assert np.sum(a, dtype=np.float64) == 7 and np.sum(a, dtype=np.float64).dtype == np.float64
    assert np.add(a, 1).tolist() == [2, 3, 5] and (np.float32(1) + a).tolist() == [2, 3, 5]
    assert np.add.reduce(a) == 7 and np.exp2(a).dtype == np.float32
    assert np.std(a) == np.std(np.float32([1, 2, 4])) and np.stack([a, a]).shape == (2, 3)
    assert np.where(a > 1, a, 0).tolist() == [0, 2, 4] and np.allclose(a, [1, 2, 4])
    assert np.array_equal(a, a) and np.nextafter(np.float32(1), a[1]) > 1
    with pytest.raises(TypeError):
        a + 1


def test_the_package_exports_the_function_not_the_module():
    assert callable(bt.array) and bt.array([1], "int4").tolist() == [1] and bt.Array is Array
