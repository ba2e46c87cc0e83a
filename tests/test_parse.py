"""Strings and Python objects: every notation, exactness, one rounding into every format, and clear errors."""

import csv
import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue as bt
from bittrue import Rule, exact
from bittrue.array import array
from bittrue.parse import as_input, encode_objects, parse_number

CASES = list(csv.DictReader((Path(__file__).parent / "data" / "cases.csv").read_text("utf-8").splitlines()))
REAL = [f for f in bt.formats() if f.kind != "complex"]


def same(a, b):
    """Equal as decoded values are: NaN and the sign of zero count."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and all(map(same, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return ((math.isnan(a) and math.isnan(b)) or a == b) and math.copysign(1, a) == math.copysign(1, b)
    return a == b


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", Fraction(3, 2)),
        ("+1", Fraction(1)),
        (" -2.50\n", Fraction(-5, 2)),
        ("1e3", Fraction(1000)),
        ("1E-3", Fraction(1, 1000)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("0.1", Fraction(1, 10)),
        ("-0", -0.0),
        ("-0.0e5", -0.0),
        ("0", Fraction(0)),
        ("0x1.8p3", Fraction(12)),
        ("-0X.8P+1", Fraction(-1)),
        ("0x10", Fraction(16)),
        ("0x1.00000000000000000001p0", 1 + Fraction(1, 16**20)),
        ("-0x0p0", -0.0),
        ("1/3", Fraction(1, 3)),
        ("-22 / 7", Fraction(-22, 7)),
        ("-0/5", -0.0),
        ("inf", math.inf),
        ("-Infinity", -math.inf),
        ("NaN", math.nan),
        ("-nan", -math.nan),
        (b"2.5", Fraction(5, 2)),
        ("1+2j", (Fraction(1), Fraction(2))),
        ("(0.1-0.2j)", (Fraction(1, 10), Fraction(-1, 5))),
        ("-j", (Fraction(0), Fraction(-1))),
        ("1e-3-1e+2j", (Fraction(1, 1000), Fraction(-100))),
        ("nan-infj", (math.nan, -math.inf)),
        ("-0-0j", (-0.0, -0.0)),
    ],
)
def test_notations(text, value):
    assert same(parse_number(text), value)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "abc", "1_0", "0x", "0x.p1", ".", "+", "-", "--1", "1/0", "1/-2", "1.5/2", "1e", "e5", "0x1.2.3",
        "1 2", "1,5", "٣", "infinit",
        "nanx", "j2", "1+2", "1++2j", "1+2i", "(1+2j", "1j+2", b"\xff", "0b1", "None", "true",
    ],
)  # fmt: skip
def test_what_is_no_number(text):
    with pytest.raises(ValueError, match="is not a number; expected") as caught:
        parse_number(text)
    assert "\n" not in str(caught.value)


def test_far_exponents_cost_nothing():
    for text, rounded in (("1e999999999", 448.0), ("-0x1p99999999999", -448.0), ("1e-999999999", 0.0)):
        assert float(array(text, "float8_e4m3fn")) == rounded
        assert float(array(Decimal(text) if "x" not in text else text, "float8_e4m3fn")) == rounded
    assert float(array("1e-999999999", "float8_e4m3fn", rounding="ceil")) == 2.0**-9
    assert int(array("1e999999999", "int8", overflow="wrap")) == 0
    with pytest.raises(ValueError, match="has 5000 characters; a number may have 4000"):
        parse_number("9" * 5000)
    with pytest.raises(OverflowError, match="float16"):
        array("1e999999999", "float16", overflow="raise")
    with pytest.raises(OverflowError, match="float16"):
        array(10**5000, "float16", overflow="raise")


@given(st.floats())
def test_python_floats_are_read_back(x):
    for text in (repr(x), x.hex()):
        value = parse_number(text)
        assert same(float(value), x) or (math.isnan(x) and math.isnan(value))  # Python prints no sign of a NaN
        assert not math.isfinite(x) or Fraction(value) == (Fraction(x) if text == x.hex() else Fraction(repr(x)))


@given(st.fractions(), st.decimals(allow_nan=False, allow_infinity=False))
def test_fractions_and_decimals(fraction, decimal):
    assert parse_number(str(fraction)) == fraction
    assert parse_number(str(decimal)) == Fraction(decimal)


@pytest.mark.parametrize("rounding", ["nearest_even", "odd", "ceil", "stochastic"])
@pytest.mark.parametrize("fmt", REAL, ids=str)
def test_every_format_rounds_once(fmt, rounding):
    values = [Fraction(0.1), Fraction(1, 3), Fraction(-7, 9), 2**70, -(10**40), Fraction(1, 10**60), Fraction(5, 2)]
    values += [float(fmt.max), float(fmt.min), -0.0, math.inf, -math.inf, math.nan]
    texts = [v.hex() if isinstance(v, float) else str(v) for v in values]
    rule = Rule(rounding=rounding, seed=3)
    random = np.arange(len(values), dtype=np.uint32) * 330_000_000
    expected = [exact.encode(v, fmt, rule, int(r)) for v, r in zip(values, random)]
    for x in (np.array(values, object), np.array(texts), np.array([t.encode() for t in texts]), texts):
        codes = encode_objects(x, fmt, rule, random=random)
        assert codes.dtype == fmt.storage and codes.view(fmt.code_dtype).tolist() == expected


def test_stochastic_objects_use_the_stream_of_every_other_source():
    x = np.linspace(-3, 3, 200)
    for fmt in ("float8_e4m3fn", "int4"):
        numbers = bt.encode(x, fmt, rounding="stochastic", seed=5)
        np.testing.assert_array_equal(encode_objects(x.astype(object), fmt, Rule("stochastic", seed=5)), numbers)


def test_object_elements():
    elements = [
        "1.5", b"0x1p-1", 3, 2**70, 0.25, Fraction(1, 3), Decimal("0.1"), True, np.float16(2), np.float32(0.1),
        np.int8(-3), np.longdouble("1.1"), np.bool_(True), ml_dtypes.bfloat16(3.5), ml_dtypes.float8_e4m3fn(448),
        ml_dtypes.int4(-2), np.str_("7"), np.array(6.5), Decimal("-0"), Decimal("-inf"),
    ]  # fmt: skip
    values = [
        Fraction(3, 2), Fraction(1, 2), 3, 2**70, 0.25, Fraction(1, 3), Fraction(1, 10), 1, 2, float(np.float32(0.1)),
        -3, Fraction(*np.longdouble("1.1").as_integer_ratio()), 1, 3.5, 448,
        -2, 7, 6.5, -0.0, -math.inf,
    ]  # fmt: skip
    x = np.empty(len(elements), object)
    x[:] = elements
    for fmt in ("float64", "float8_e3m4", "int16", "hifloat8"):
        expected = [exact.encode(v, fmt) for v in values]
        assert encode_objects(x, fmt).view(bt.format(fmt).code_dtype).tolist() == expected
        assert bt.encode(x, fmt).view(bt.format(fmt).code_dtype).tolist() == expected


def test_complex_objects():
    a = array(["1+2j", 3, -0.0, 1j, Fraction(1, 3), np.complex64(1 - 1j), "nan"], "complex32")
    halves = a.codes.view(np.uint16).view(np.float16).reshape(-1, 2)
    third = np.float16(1 / 3)
    expected = [[1, 2], [3, 0], [-0.0, 0], [0, 1], [third, 0], [1, -1], [np.nan, 0]]
    np.testing.assert_array_equal(halves, np.array(expected, np.float16))
    assert np.signbit(halves[2, 0])
    with pytest.raises(TypeError, match=r"x\[1\] is complex, which float16 cannot hold"):
        encode_objects(["1", "1+2j"], "float16")


def test_flushing_looks_at_the_source_of_each_object():
    rule = Rule(flush_inputs=True)
    x = np.empty(4, object)
    x[:] = [np.float16(2**-24), "0x1p-24", 2.0**-24, ml_dtypes.bfloat16(2.0**-24)]
    assert np.asarray(bt.Array(encode_objects(x, "float16", rule), "float16")).tolist() == [0, 2**-24, 2**-24, 2**-24]


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (["abc"], ValueError, "x[0]: 'abc' is not a number"),
        ([["1", "2"], ["3", "x"]], ValueError, "x[1, 1]: 'x' is not a number"),
        ("abc", ValueError, "x: 'abc' is not a number"),
        ([None], TypeError, "x[0]: None is a NoneType"),
        (None, TypeError, "x: None is a NoneType"),
        ({"a": 1}, TypeError, "a dict"),
        ([1.5, object], TypeError, "x[1]: <class 'object'> is a type"),
        ([[1, 2], [3]], ValueError, "uneven lengths"),
        (np.array([1], "m8[s]").astype(object), TypeError, "timedelta"),
        (["1+2j"], TypeError, "x[0] is complex"),
        (["x" * 100], ValueError, "is not a number"),
    ],
)
def test_errors_name_the_element(x, error, words):
    with pytest.raises(error) as caught:
        array(x, "float16")
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_rules_of_raising():
    with pytest.raises(OverflowError, match="uint4"):
        array(["16"], "uint4", overflow="raise")
    with pytest.raises(ValueError, match="NaN"):
        array(["nan"], "float16", nan="raise")
    with pytest.raises(ValueError, match="random has 1 words; 2 are needed"):
        encode_objects(["1", "2"], "float16", Rule("stochastic"), random=[1])


def test_lists_keep_what_numpy_would_lose():
    assert array([2**60 + 1, 0.5], "int64").tolist() == [2**60 + 1, 0]
    assert array([2**63, -1], "float64").tolist() == [2.0**63, -1.0]
    assert array([2**64 - 1, -1], "uint64").tolist() == [2**64 - 1, 0]
    assert int(array(["1", 0.1], "float64").codes.view(np.uint64)[1]) == np.float64(0.1).view(np.uint64)
    # 1 + 2**-24 + 2**-60 rounds up in float32; through float64 it would be a tie
    assert array([Fraction(1) + Fraction(1, 2**24) + Fraction(1, 2**60)], "float32").tolist() == [1 + 2**-23]
    assert array(np.longdouble(2) ** 70, "bfloat16").codes == 0x6280
    assert as_input([True, 2.5]).dtype == np.float64 and as_input([1, 2]).dtype.kind == "i"
    assert as_input([np.float32(1), 2**24 + 1]).tolist() == [1.0, 2**24 + 1]
    assert as_input(np.ones(3, np.float16)).dtype == np.float16
    assert array([], "int8").shape == (0,) and array([[]], "int8").shape == (1, 0)


def test_variable_width_strings():
    dtype = pytest.importorskip("numpy.dtypes").StringDType()
    assert array(np.array(["1.5", "-inf"], dtype), "float16").tolist() == [1.5, -65504.0]


@pytest.mark.parametrize("row", [r for r in CASES if r["kind"] == "parse"], ids=lambda r: r["id"])
def test_published_cases(row):
    x, parameters = json.loads(row["input"]), json.loads(row["params"])
    if row["expected"].startswith("raises"):
        with pytest.raises((ValueError, OverflowError)) as caught:
            array(x, row["target_format"], **parameters)
        assert row["source_format"] == "str" or row["target_format"] in str(caught.value)
        return
    a = array(x, row["target_format"], **parameters)
    expected = json.loads(row["expected"])
    assert [hex(c) for c, e in zip(a.codes.tolist(), expected) if e != "nan"] == [e for e in expected if e != "nan"]
    assert [bool(np.isnan(v)) for v in a.tolist()] == [e == "nan" for e in expected]
