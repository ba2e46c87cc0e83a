"""Every published case of `data/cases.csv` that concerns casts, order, reductions, files and text; one test per row.

The expected codes are arithmetic or a published rule; what goes wrong elsewhere is in the row's note. The rows of the
other kinds belong to block formats, shift-round-saturate, Fixpipe and comparison.
"""

from __future__ import annotations

import csv
import json
import math
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import bittrue as bt
from bittrue import exact, operations, packing, reduce
from bittrue.rounding import Rule

HERE = "encode decode quantize int_cast e8m0 sort reduce save_load parse other".split()
ELSEWHERE = "block bfp srs fixpipe compare".split()


def read(row):
    columns = {k: json.loads(row[k]) if k in ("params", "input") else row[k] for k in row}
    if columns["expected"].startswith("["):
        columns["expected"] = json.loads(columns["expected"])
    return SimpleNamespace(**columns)


with (Path(__file__).parents[1] / "data/cases.csv").open(newline="") as file:
    ROWS = [read(row) for row in csv.DictReader(file)]


def rows(*kinds):
    return pytest.mark.parametrize("row", [r for r in ROWS if r.kind in kinds], ids=lambda r: r.id)


def format_of(name):
    """int3 is no built-in format: an accumulator of one's own."""
    return bt.IntFormat("int3", width=3) if name == "int3" else bt.format(name)


# --- reading the columns ----------------------------------------------------------------------------------------------


def is_value(item):
    """A number, or a string with an exponent; other strings are bit patterns."""
    return not isinstance(item, str) or "p" in item


def numbers(items, fmt):
    """The exact values of inputs: Fractions, or floats for what a Fraction cannot say."""
    found = []
    for item in items:
        value = item
        if isinstance(item, str):
            value = float.fromhex(item) if "p" in item else exact.decode(int(item, 16), fmt)
        special = isinstance(value, float) and (value == 0 or not math.isfinite(value))
        found.append(value if special else Fraction(value))
    return found


def array_of(items, name):
    """The inputs as a typed array; each is representable, so that no rounding takes part."""
    fmt = format_of(name)
    codes = []
    for item, value in zip(items, numbers(items, fmt)):
        codes.append(exact.encode(value, fmt, Rule(overflow="raise")) if is_value(item) else int(item, 16))
        if is_value(item):
            assert exact.decode(codes[-1], fmt) == value
    return bt.Array(np.array(codes, fmt.code_dtype).view(fmt.storage), fmt)


def numpy_input(array):
    """The same as the NumPy or ml_dtypes array that a user would have."""
    own = array.to_numpy()
    return array if own.dtype == np.uint8 and array.format.name != "uint8" else own


def assert_codes(codes, expected, fmt):
    found = [int(c) for c in np.asarray(codes).reshape(-1).view(fmt.code_dtype).tolist()]
    assert len(found) == len(expected)
    for code, want in zip(found, expected):
        if want == "nan":
            assert math.isnan(exact.decode(code, fmt)), hex(code)
        else:
            assert code == int(want, 16), (hex(code), want)


def rule_of(params):
    known = {k: params[k] for k in ("rounding", "overflow", "nan", "negative") if k in params}
    rest = set(params) - set(known) - {"scale", "zero_point", "underflow"}
    assert not rest and params.get("underflow", "min") == "min"
    return Rule(**known)


# --- rows -------------------------------------------------------------------------------------------------------------


def test_no_row_is_left_out():
    assert {r.kind for r in ROWS} == {*HERE, *ELSEWHERE}
    assert len({r.id for r in ROWS}) == len(ROWS) == 168
    marks = [mark for test in TESTS for mark in test.pytestmark if mark.args[0] == "row"]
    tested = {row.id for mark in marks for row in mark.args[1]}
    assert tested == {r.id for r in ROWS if r.kind in HERE}


@rows("encode", "e8m0", "int_cast")
def test_encode(row):
    fmt, rule = bt.format(row.target_format), rule_of(row.params)
    x = array_of(row.input, row.source_format)
    assert_codes(bt.encode(numpy_input(x), fmt, rule=rule), row.expected, fmt)
    assert_codes(x.astype(fmt, rule=rule).codes, row.expected, fmt)
    spec = [exact.encode(v, fmt, rule, source=row.source_format) for v in numbers(row.input, x.format)]
    assert_codes(np.array(spec, fmt.code_dtype), row.expected, fmt)


@rows("decode")
def test_decode(row):
    fmt, target = bt.format(row.source_format), bt.format(row.target_format)
    codes = np.array([int(c, 16) for c in row.input], fmt.storage)
    dtype = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16}[target.name]
    assert_codes(bt.decode(codes, fmt, dtype), row.expected, target)
    for code, want in zip(codes.tolist(), row.expected):
        value = exact.decode(code, fmt)
        if want == "nan":
            assert math.isnan(value)
        else:
            assert value == exact.decode(int(want, 16), target)
            assert math.copysign(1, value) == math.copysign(1, exact.decode(int(want, 16), target))


@rows("quantize")
def test_quantize(row):
    fmt, rule = bt.format(row.target_format), rule_of(row.params)
    scale, zero = float.fromhex(row.params["scale"]), row.params["zero_point"]
    x = numpy_input(array_of(row.input, row.source_format))
    assert_codes(bt.encode(x, fmt, rule=rule, scale=scale, zero_point=zero), row.expected, fmt)
    back = bt.quantize(x, fmt, rule=rule, scale=scale, zero_point=zero)
    levels = [float(exact.decode(int(code, 16), fmt)) for code in row.expected]
    assert back.tolist() == [(level - zero) * scale for level in levels]


@rows("sort")
def test_sort(row):
    fmt = bt.format(row.source_format)
    function = {"sort": operations.sort, "unique": operations.unique}[row.params["op"]]
    assert_codes(function(array_of(row.input, fmt.name)).codes, row.expected, fmt)


@rows("reduce")
def test_reduce(row):
    params, target = dict(row.params), format_of(row.target_format)
    function = {"sum": reduce.sum, "mean": reduce.mean, "dot": reduce.dot}[params.pop("op")]
    operands = row.input if isinstance(row.input[0], list) else [row.input]
    arrays = [array_of(items * params.get("repeat", 1), row.source_format) for items in operands]
    params.pop("repeat", None)
    accumulate = params.pop("accumulate")
    accumulate = "exact" if accumulate == "exact, rounded once" else format_of(accumulate)
    result = function(*arrays, accumulate=accumulate, out_format=target, **params)
    assert_codes(result.codes, row.expected, target)


@rows("save_load")
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors", ".bin"])
def test_save_load(row, suffix, tmp_path):
    fmt, path = bt.format(row.source_format), tmp_path / f"x{suffix}"
    shape = tuple(row.params.get("shape", [len(row.input)]))
    codes = [int(c, 16) for c in row.input] or [i % 16 for i in range(math.prod(shape))]
    array = bt.Array(np.array(codes, fmt.storage).reshape(shape), fmt)
    several = suffix in (".npz", ".safetensors")
    bt.save(path, {"x": array} if several else array)
    back = bt.load(path, **({"format": fmt, "shape": shape} if suffix == ".bin" else {}))
    back = back["x"] if several else back
    assert back.format is fmt and back.shape == shape
    assert (back.codes == array.codes).all()
    if row.params.get("packed"):
        assert back.nbytes == array.nbytes == len(array.tobytes()) == 6
        if suffix == ".bin":
            assert path.stat().st_size == 6


@rows("parse")
def test_parse(row):
    fmt = bt.format(row.target_format)
    values = {"str": str, "int": int, "float": float}[row.source_format]
    x = [values(item) for item in row.input]
    if row.expected == "raises ValueError":
        with pytest.raises(ValueError, match="'abc' is not a number"):
            bt.array(x, fmt, **row.params)
    elif row.expected == "raises OverflowError or ValueError, and the message names uint4":
        with pytest.raises((OverflowError, ValueError), match=r"\buint4\b"):
            bt.array(x, fmt, **row.params)
    else:
        assert_codes(bt.array(x, fmt, **row.params).codes, row.expected, fmt)


def op_nextafter(row):
    moved = operations.nextafter(array_of(row.input, "hifloat8"), array_of(row.params["toward"], "hifloat8"))
    assert_codes(moved.codes, row.expected, moved.format)


def op_pack(row):
    array = array_of(row.input, row.source_format)
    assert row.params["order"] in ("low_first", "lsb_first")  # two names of one order
    expected = bytes(int(c, 16) for c in row.expected)
    assert packing.pack(array.codes, array.format.bits, "low_first").tobytes() == expected
    assert array.tobytes() == expected


def op_unpack(row):
    fmt, data = bt.format(row.source_format), bytes(int(c, 16) for c in row.input)
    assert_codes(packing.unpack(data, fmt.bits, len(row.expected), row.params["order"]), row.expected, fmt)
    assert_codes(bt.Array.frombytes(data, fmt).codes, row.expected, fmt)


def op_view(row):
    image = array_of(row.input, row.source_format).tobytes()
    assert_codes(bt.Array.frombytes(image, row.target_format).codes, row.expected, bt.format(row.target_format))


def op_ldexp(row):
    scaled = np.ldexp(array_of(row.input, row.source_format), row.params["by"])
    assert_codes(bt.encode(scaled, row.target_format), row.expected, bt.format(row.target_format))


def op_format(row):
    (element,) = array_of(row.input, row.source_format)
    assert f'"{element:{row.params["spec"]}}"' == row.expected


def op_divide(row):
    x, divisors = (numpy_input(array_of(items, row.source_format)) for items in row.input)
    fmt = bt.format(row.target_format)
    assert_codes(bt.encode(x, fmt, row.params["rounding"], scale=divisors), row.expected, fmt)
    quotients = [Fraction(a) / Fraction(b) for a, b in zip(x.tolist(), divisors.tolist())]
    assert_codes(bt.encode(quotients, fmt, row.params["rounding"]), row.expected, fmt)


@rows("other")
def test_other(row):
    globals()[f"op_{row.params['op']}"](row)


TESTS = [test_encode, test_decode, test_quantize, test_sort, test_reduce, test_save_load, test_parse, test_other]
