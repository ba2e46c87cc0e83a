"""The catalogue against the documents: widths, ranges and special codes, every name, and errors.

The figures are typed from the vendor's tables (Ascend C data types, tables 1 to 4) or are IEEE 754, OCP and P3109
definitions; none is read from the code.
"""

from __future__ import annotations

import copy
import csv
import dataclasses
import math
import pickle
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import bittrue as bt
from bittrue.formats import _SEVERAL, Regime


def two(exponent):
    return Fraction(2) ** exponent


# --- widths and ranges: Ascend C, tables 1 to 4 -----------------------------------------------------------------------

#: Table 1. A type whose name says x2 is a pair of values in eight bits.
WIDTHS = {
    8: "bool int8_t uint8_t fp4x2_e2m1_t fp4x2_e1m2_t hifloat8_t fp8_e5m2_t fp8_e4m3fn_t fp8_e8m0_t int4x2_t",
    16: "int16_t uint16_t half bfloat16_t",
    32: "int32_t uint32_t float complex32",
    64: "int64_t uint64_t double complex64",
}


@pytest.mark.parametrize(("width", "name"), [(w, n) for w, names in WIDTHS.items() for n in names.split()])
def test_widths(width, name):
    fmt = bt.format(name)
    assert fmt.bits * (2 if "x2" in name else 1) == width
    assert fmt.storage.itemsize * 8 == max(width, 8)


#: Table 2.
INTEGERS = {
    "int4x2_t": (-8, 7),
    "int4b_t": (-8, 7),
    "int8_t": (-128, 127),
    "uint8_t": (0, 255),
    "int16_t": (-32768, 32767),
    "uint16_t": (0, 65535),
    "int32_t": (-2147483648, 2147483647),
    "uint32_t": (0, 4294967295),
    "int64_t": (-9223372036854775808, 9223372036854775807),
    "uint64_t": (0, 18446744073709551615),
}


@pytest.mark.parametrize("name", list(INTEGERS))
def test_integer_ranges(name):
    fmt = bt.format(name)
    assert (fmt.min, fmt.max) == INTEGERS[name]
    assert fmt.kind == "int" and fmt.signed == (INTEGERS[name][0] < 0)
    assert fmt.epsilon == fmt.min_normal == fmt.min_subnormal == 1
    assert not (fmt.has_inf or fmt.has_nan or fmt.has_negative_zero) and fmt.has_zero
    codes = {0: 0, fmt.bits - 1: fmt.min, fmt.bits: -1} if fmt.signed else {0: 0, fmt.bits: fmt.max}
    for power, value in codes.items():  # two's complement
        code = (1 << power) - (power == fmt.bits) if power else 0
        assert fmt.value(code) == value


#: Table 3: sign, exponent and fraction bits, range; then the smallest normal and positive value, from the same layouts.
FLOATS = {
    "fp4x2_e2m1_t": (1, 2, 1, -6, 6, 1, Fraction(1, 2)),
    "fp4x2_e1m2_t": (1, 1, 2, -7 * two(-2), 7 * two(-2), 1, Fraction(1, 4)),
    "fp8_e8m0_t": (0, 8, 0, two(-127), two(127), two(-127), two(-127)),
    "fp8_e5m2_t": (1, 5, 2, two(13) - two(16), two(16) - two(13), two(-14), two(-16)),
    "fp8_e4m3fn_t": (1, 4, 3, two(6) - two(9), two(9) - two(6), two(-6), two(-9)),
    "half": (1, 5, 10, two(5) - two(16), two(16) - two(5), two(-14), two(-24)),
    "bfloat16_t": (1, 8, 7, two(120) - two(128), two(128) - two(120), two(-126), two(-133)),
    "float": (1, 8, 23, two(104) - two(128), two(128) - two(104), two(-126), two(-149)),
    "double": (1, 11, 52, two(971) - two(1024), two(1024) - two(971), two(-1022), two(-1074)),
    # beyond the vendor's table: OCP, ml_dtypes' layouts, and NVIDIA's 19 bits
    "float8_e4m3": (1, 4, 3, -240, 240, two(-6), two(-9)),
    "float8_e3m4": (1, 3, 4, -Fraction(31, 2), Fraction(31, 2), two(-2), two(-6)),
    "float8_e4m3fnuz": (1, 4, 3, -240, 240, two(-7), two(-10)),
    "float8_e4m3b11fnuz": (1, 4, 3, -30, 30, two(-10), two(-13)),
    "float8_e5m2fnuz": (1, 5, 2, -57344, 57344, two(-15), two(-17)),
    "float6_e2m3fn": (1, 2, 3, -Fraction(15, 2), Fraction(15, 2), 1, two(-3)),
    "float6_e3m2fn": (1, 3, 2, -28, 28, two(-2), two(-4)),
    "tfloat32": (1, 8, 10, two(117) - two(128), two(128) - two(117), two(-126), two(-136)),
}


@pytest.mark.parametrize("name", list(FLOATS))
def test_float_ranges(name):
    fmt = bt.format(name)
    sign, exponent, fraction, low, high, normal, smallest = FLOATS[name]
    assert (fmt.signed, fmt.exponent_bits, fmt.mantissa_bits) == (sign, exponent, fraction)
    assert fmt.bits == sign + exponent + fraction
    assert (fmt.min, fmt.max) == (low, high)
    assert (fmt.min_normal, fmt.min_subnormal) == (normal, smallest)
    assert fmt.epsilon == two(-fraction)
    for figure in (fmt.min, fmt.max, fmt.min_normal, fmt.min_subnormal, fmt.epsilon):
        assert type(figure) is Fraction


#: Codes of +0, -0, Inf, NaN (all of them, without the sign) and the largest value.
SPECIAL = {
    "float4_e2m1fn": (0x0, 0x8, None, [], 0x7),
    "float4_e1m2fn": (0x0, 0x8, None, [], 0x7),
    "float6_e2m3fn": (0x00, 0x20, None, [], 0x1F),
    "float6_e3m2fn": (0x00, 0x20, None, [], 0x1F),
    "float8_e4m3fn": (0x00, 0x80, None, [0x7F], 0x7E),
    "float8_e5m2": (0x00, 0x80, 0x7C, [0x7D, 0x7E, 0x7F], 0x7B),
    "float8_e4m3": (0x00, 0x80, 0x78, list(range(0x79, 0x80)), 0x77),
    "float8_e3m4": (0x00, 0x80, 0x70, list(range(0x71, 0x80)), 0x6F),
    "float8_e4m3fnuz": (0x00, None, None, [0x80], 0x7F),
    "float8_e5m2fnuz": (0x00, None, None, [0x80], 0x7F),
    "float8_e4m3b11fnuz": (0x00, None, None, [0x80], 0x7F),
    "float8_e8m0fnu": (None, None, None, [0xFF], 0xFE),
    "hifloat8": (0x00, None, 0x6F, [0x80], 0x6E),
    "float16": (0x0000, 0x8000, 0x7C00, list(range(0x7C01, 0x8000)), 0x7BFF),
    "bfloat16": (0x0000, 0x8000, 0x7F80, list(range(0x7F81, 0x8000)), 0x7F7F),
}


@pytest.mark.parametrize("name", list(SPECIAL))
def test_special_codes(name):
    fmt = bt.format(name)
    zero, minus_zero, inf, nans, largest = SPECIAL[name]
    sign = 1 << (fmt.bits - 1)
    if len(nans) and nans[0] < sign and fmt.signed:
        nans = nans + [code | sign for code in nans]
    found = fmt.values()
    kinds = {
        "nan": {c for c, v in enumerate(found) if v != v},
        "inf": {c for c, v in enumerate(found) if v == math.inf},
        "-inf": {c for c, v in enumerate(found) if v == -math.inf},
        "zero": {c for c, v in enumerate(found) if v == 0 and not isinstance(v, float)},
        "-zero": {c for c, v in enumerate(found) if v == 0 and isinstance(v, float)},
    }
    assert kinds["nan"] == set(nans)
    assert kinds["inf"] == ({inf} if inf is not None else set())
    assert kinds["-inf"] == ({inf | sign} if inf is not None else set())
    assert kinds["zero"] == ({zero} if zero is not None else set())
    assert kinds["-zero"] == ({minus_zero} if minus_zero is not None else set())
    assert all(math.copysign(1, found[c]) == -1 for c in kinds["-zero"])
    assert found[largest] == fmt.max == max(v for v in found if v == v and abs(v) != math.inf)
    assert fmt.max_code == largest
    assert (fmt.has_inf, fmt.has_nan) == (inf is not None, bool(nans))
    assert (fmt.has_zero, fmt.has_negative_zero) == (zero is not None, minus_zero is not None)
    assert (fmt.nan_code in nans) if nans else fmt.nan_code is None
    for code in nans:  # the sign of a NaN is kept where there are two
        assert math.copysign(1, found[code]) == (-1 if code & sign and len(nans) > 1 else 1)


def test_vendor_examples():
    """The worked examples in the text and below the tables of the Ascend C page."""
    for name, code, value in [
        ("fp8_e5m2_t", 0b0_11110_11, Fraction(7, 4) * two(15)),  # (2 - 0.25) * 2**(30 - 15)
        ("fp8_e4m3fn_t", 0b1_0000_001, -two(-9)),  # (-1) * 2**-3 * 2**-6
        ("hifloat8_t", 0x2E, 14),
        ("half", 0b1_01111_1100000000, -Fraction(7, 4)),
        ("int8_t", 0b0_1100000, 96),
    ]:
        assert bt.format(name).value(code) == value


# --- hifloat8: table 4, and all codes ---------------------------------------------------------------------------------

#: Table 4: dot field, exponent magnitudes, fractions; the first row is the subnormal one.
HIFLOAT8 = [
    ("0001", [0], 3),
    ("001", [1], 3),
    ("01", [2, 3], 3),
    ("10", [4, 5, 6, 7], 2),
    ("11", list(range(8, 16)), 1),
]


def test_hifloat8_has_the_values_of_the_table():
    expected = {two(m - 23) for m in range(1, 8)}
    for _, exponents, bits in HIFLOAT8:
        for magnitude in exponents:
            for exponent in {magnitude, -magnitude}:
                expected |= {two(exponent) * (1 + Fraction(m, 1 << bits)) for m in range(1 << bits)}
    expected.remove(two(15) * Fraction(3, 2))  # that code is Inf
    found = [v for v in bt.format("hifloat8").values() if v == v and abs(v) != math.inf]
    assert {v for v in found if v > 0} == expected
    assert sorted(found) == sorted([*expected, *(-v for v in expected), 0])
    fmt = bt.format("hifloat8")
    assert (fmt.max, fmt.min, fmt.min_normal, fmt.min_subnormal) == (two(15), -two(15), two(-15), two(-22))
    assert fmt.epsilon == Fraction(1, 8)


@pytest.mark.parametrize(("dot", "exponents", "bits"), HIFLOAT8, ids=lambda x: str(x))
def test_hifloat8_rows(dot, exponents, bits):
    """Every code of a row: sign and magnitude exponent with an implicit leading one."""
    fmt, free = bt.format("hifloat8"), 7 - len(dot) - bits
    for field in range(1 << free):
        for m in range(1 << bits):
            payload = int(dot, 2) << (7 - len(dot)) | field << bits | m
            if payload == 0x6F:
                continue
            negative, low = field >> (free - 1) if free else 0, field & ((1 << max(free - 1, 0)) - 1)
            magnitude = exponents[low]
            value = two(-magnitude if negative else magnitude) * (1 + Fraction(m, 1 << bits))
            assert fmt.value(payload) == value and fmt.value(payload | 0x80) == -value


def test_hifloat8_all_codes():
    with (Path(__file__).parent / "data/hif8_codes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(r["code_hex"], 16) for r in rows] == list(range(256))
    fmt = bt.format("hifloat8")
    for code, row in enumerate(rows):
        value, expected = fmt.value(code), float.fromhex(row["value_hex"])
        assert value == expected or (math.isnan(value) and math.isnan(expected))
        assert math.isnan(expected) or math.copysign(1, value) == math.copysign(1, expected)


# --- names ------------------------------------------------------------------------------------------------------------

#: Canonical name: every name that the vendors and libraries give it.
NAMES = {
    "bool": "bool BOOL torch.bool np.bool_ numpy.bool bool_",
    "int1": "int1",
    "int2": "int2 INT2",
    "int4": "int4 S4 int4b_t int4x2_t DT_INT4 INT4 torch.int4 ml_dtypes.int4",
    "int8": "int8 S8 int8_t DT_INT8 I8 INT8 torch.int8",
    "int16": "int16 S16 int16_t DT_INT16 I16 INT16 torch.int16 torch.short",
    "int32": "int32 S32 int32_t DT_INT32 I32 INT32 torch.int32 torch.int",
    "int64": "int64 S64 int64_t DT_INT64 I64 INT64 torch.int64 torch.long",
    "uint1": "uint1",
    "uint2": "uint2 UINT2",
    "uint4": "uint4 UINT4 ml_dtypes.uint4 torch.uint4",
    "uint8": "uint8 U8 uint8_t DT_UINT8 UINT8 torch.uint8",
    "uint16": "uint16 U16 uint16_t DT_UINT16 UINT16 torch.uint16",
    "uint32": "uint32 U32 uint32_t DT_UINT32 UINT32 torch.uint32",
    "uint64": "uint64 U64 uint64_t DT_UINT64 UINT64 torch.uint64",
    "float16": "float16 half FP16 F16 DT_FP16 FLOAT16 torch.float16 torch.half np.half AscendC::half",
    "bfloat16": "bfloat16 BF16 bfloat16_t DT_BF16 BFLOAT16 torch.bfloat16 ml_dtypes.bfloat16",
    "tfloat32": "tfloat32 TF32",
    "float32": "float32 float FP32 F32 DT_FP32 FLOAT torch.float32 torch.float np.float32",
    "float64": "float64 double F64 DOUBLE torch.float64 torch.double np.double",
    "float8_e3m4": "float8_e3m4 ml_dtypes.float8_e3m4",
    "float8_e4m3": "float8_e4m3 ml_dtypes.float8_e4m3",
    "float8_e4m3fn": "float8_e4m3fn fp8_e4m3fn_t FP8_E4M3 F8_E4M3 FLOAT8E4M3FN DT_FP8E4M3 torch.float8_e4m3fn "
    "TensorProto.FLOAT8E4M3FN",
    "float8_e4m3fnuz": "float8_e4m3fnuz FLOAT8E4M3FNUZ torch.float8_e4m3fnuz F8_E4M3FNUZ",
    "float8_e4m3b11fnuz": "float8_e4m3b11fnuz",
    "float8_e5m2": "float8_e5m2 fp8_e5m2_t F8_E5M2 FLOAT8E5M2 DT_FP8E5M2 torch.float8_e5m2 FP8_E5M2",
    "float8_e5m2fnuz": "float8_e5m2fnuz FLOAT8E5M2FNUZ torch.float8_e5m2fnuz F8_E5M2FNUZ",
    "float8_e8m0fnu": "float8_e8m0fnu fp8_e8m0_t F8_E8M0 FLOAT8E8M0 torch.float8_e8m0fnu en_dtypes.float8_e8m0",
    "float6_e2m3fn": "float6_e2m3fn F6_E2M3 en_dtypes.float6_e2m3",
    "float6_e3m2fn": "float6_e3m2fn F6_E3M2 en_dtypes.float6_e3m2",
    "float4_e2m1fn": "float4_e2m1fn fp4x2_e2m1_t F4 FLOAT4E2M1 DT_FP4_E2M1X2 torch.float4_e2m1fn_x2 float4_e2m1",
    "float4_e1m2fn": "float4_e1m2fn fp4x2_e1m2_t DT_FP4_E1M2X2 en_dtypes.float4_e1m2",
    "hifloat8": "hifloat8 hifloat8_t HiF8 DT_HF8 en_dtypes.hifloat8 AscendC::hifloat8_t",
    "complex32": "complex32 torch.complex32 torch.chalf",
    "complex64": "complex64 C64 COMPLEX64 torch.complex64 torch.cfloat",
}


def test_catalogue():
    """DESIGN: these formats, once each."""
    names = [f.name for f in bt.formats()]
    assert set(NAMES) <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("canonical", list(NAMES))
def test_names(canonical):
    fmt = bt.format(canonical)
    assert fmt.name == canonical == str(fmt)
    for name in NAMES[canonical].split():
        for spelling in (name, name.lower(), name.upper(), f" {name} "):
            assert bt.format(spelling) is fmt, spelling
    for name in fmt.aliases:
        assert bt.format(name) is fmt
    assert bt.format(fmt) is fmt


def test_no_name_belongs_to_two_formats():
    every = [name.lower() for names in NAMES.values() for name in set(map(str.lower, names.split()))]
    assert len(every) == len(set(every))


ML_DTYPES = (
    "bfloat16 float8_e3m4 float8_e4m3 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2 float8_e5m2fnuz "
    "float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn int1 int2 int4 uint1 uint2 uint4"
).split()
NUMPY = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64".split()


@pytest.mark.parametrize("name", [n for n in [*NUMPY, *ML_DTYPES] if hasattr(np, n) or hasattr(ml_dtypes, n)])
def test_dtype_objects(name):
    kind = getattr(np, name, None) or getattr(ml_dtypes, name)
    assert bt.format(kind) is bt.format(np.dtype(kind)) is bt.format(name)
    if np.dtype(kind).byteorder == "=":
        assert bt.format(np.dtype(kind).newbyteorder()) is bt.format(name)


def test_en_dtypes_objects():
    en_dtypes = pytest.importorskip("en_dtypes")
    for theirs, ours in [
        ("hifloat8", "hifloat8"),
        ("float4_e1m2", "float4_e1m2fn"),
        ("float4_e2m1", "float4_e2m1fn"),
        ("float6_e2m3", "float6_e2m3fn"),
        ("float6_e3m2", "float6_e3m2fn"),
        ("float8_e8m0", "float8_e8m0fnu"),
    ]:
        kind = getattr(en_dtypes, theirs)
        assert bt.format(kind) is bt.format(np.dtype(kind)) is bt.format(ours)


def test_torch_is_not_imported():
    code = "import sys, bittrue; bittrue.format('torch.float8_e5m2'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_torch_objects():
    torch = pytest.importorskip("torch")
    for names in NAMES.values():
        for name in names.split():
            if name.startswith("torch."):
                kind = getattr(torch, name.removeprefix("torch."), None)
                assert kind is None or bt.format(kind) is bt.format(name)


def test_strings_are_no_numpy_codes():
    """U8 and F4 are names of vendors, not eight characters and not four bytes."""
    assert bt.format("U8") is bt.format("uint8")
    assert bt.format("F4") is bt.format("float4_e2m1fn")
    assert bt.format(np.dtype("f4")) is bt.format("float32")
    assert bt.format(np.dtype("u8")) is bt.format("uint64")
    assert bt.format("float") is bt.format("float32")  # Ascend C's, not Python's
    with pytest.raises(ValueError, match="'<f4'"):
        bt.format("<f4")


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("abc", "format 'abc' is not known"),
        ("float8_e4m3fm", "did you mean 'float8_e4m3fn'"),
        ("hifloat", "did you mean 'hifloat8'"),
        ("fp8_e5m2t", "did you mean 'fp8_e5m2_t'"),
        ("int9", "did you mean"),
        ("e4m3", r"; name one: float8_e4m3fn \(torch, OCP\), float8_e4m3 "),
        ("FP4", "; name one: float4_e2m1fn or float4_e1m2fn"),
        ("", "format '' is not known"),
        ("  ", "is not known"),
        ("torch.", "is not known"),
        ("half\0", "is not known"),
        ("ﬂoat16", "is not known"),
        ("x" * 5000, "is not known"),
    ],
)
def test_unknown_names(name, words):
    with pytest.raises(ValueError, match=words) as caught:
        bt.format(name)
    assert "bittrue.formats()" in str(caught.value)


def test_formats_that_share_a_name_exist():
    for shared, formats in _SEVERAL.items():
        named = re.findall(r"\w*\d\w*", formats)
        assert len({bt.format(name) for name in named}) == len(named) >= 2
        for name in shared.split():
            with pytest.raises(ValueError, match="name one"):
                bt.format(name)


@pytest.mark.parametrize(
    "thing",
    [
        None,
        3,
        3.5,
        [],
        {},
        (),
        object(),
        object,
        str,
        bytes,
        np.longdouble,
        np.complex128,
        np.dtype("M8[s]"),
        np.dtype("V4"),
        np.dtype("S4"),
        np.dtype("U4"),
        np.dtype([("a", "f4")]),
        np.dtype([("float32", "f4")]),
        np.dtype((np.float32, 3)),
        np.zeros(3, np.float32),
    ],
    ids=lambda t: f"{type(t).__name__}-{str(t)[:20]}",
)
def test_other_objects(thing):
    with pytest.raises(ValueError, match="is not known"):
        bt.format(thing)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bt.FloatFormat("x", exponent_bits=12), "exponent_bits=12 must be from 0 to 11"),
        (lambda: bt.FloatFormat("x", exponent_bits=-1), "exponent_bits=-1"),
        (lambda: bt.FloatFormat("x", mantissa_bits=53), "mantissa_bits=53 must be from 0 to 52"),
        (lambda: bt.FloatFormat("x", exponent_bits=1, mantissa_bits=0, signed=False), "at least 2 bits"),
        (lambda: bt.FloatFormat("x", nan="quiet"), "nan='quiet' must be"),
        (lambda: bt.FloatFormat("x", inf=False), "nan='exponent' needs inf=True"),
        (lambda: bt.FloatFormat("x", mantissa_bits=0), "nan='exponent' needs"),
        (lambda: bt.FloatFormat("x", signed=False, inf=False, nan="negative_zero"), "needs a signed format"),
        (lambda: bt.FloatFormat("x", inf=False, nan="ones", zero=False), "zero=False needs signed=False"),
        (lambda: bt.FloatFormat("x", exponent_bits=1, mantissa_bits=0, nan="none"), "no finite value but zero"),
        (lambda: bt.FloatFormat("x", exponent_bits=0, mantissa_bits=1, nan="ones"), "no finite value but zero"),
        (lambda: bt.FloatFormat("x", bias=2000), "bias=2000: .* float64's range"),
        (lambda: bt.FloatFormat("x", bias=-900), "bias=-900: .* float64's range"),
        (lambda: bt.FloatFormat(""), "name='' must be a non-empty string"),
        (lambda: bt.FloatFormat(None), "name=None"),
        (lambda: bt.IntFormat("x", width=0), "width=0 must be from 1 to 64 bits"),
        (lambda: bt.IntFormat("x", width=65), "width=65"),
        (lambda: bt.p3109(2, 1), "bits=2 must be from 3 to 16"),
        (lambda: bt.p3109(17, 5), "bits=17"),
        (lambda: bt.p3109(8, 0), "precision=0 must be from 1 to 7"),
        (lambda: bt.p3109(8, 8), "precision=8 must be from 1 to 7"),
        (lambda: bt.p3109(8, 9, signed=False), "precision=9 must be from 1 to 8"),
        (lambda: bt.p3109(12, 1), "float64's range"),
    ],
)
def test_constructor_mistakes(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_codes_out_of_range():
    for name, code in [("float4_e2m1fn", 16), ("int4", -1), ("hifloat8", 256), ("complex32", 1 << 32), ("bool", 256)]:
        with pytest.raises(ValueError, match=f"out of range for {name}"):
            bt.format(name).fields(code)
    with pytest.raises(ValueError, match="code 0x10 is out of range for float4_e2m1fn: 0 to 0xf"):
        bt.format("float4_e2m1fn").value(16)
    with pytest.raises(ValueError, match="up to 16 bits; float32 has 32"):
        bt.format("float32").values()
    with pytest.raises(TypeError, match="complex32 has no single value"):
        bt.format("complex32").value(0)


# --- formats of one's own ---------------------------------------------------------------------------------------------


@pytest.fixture
def catalogue(monkeypatch):
    """Undo registrations."""
    from bittrue.kinds import base

    module = sys.modules["bittrue.formats"]
    monkeypatch.setattr(module, "_BY_NAME", dict(module._BY_NAME))
    kept = dict(base.ALIASES)
    yield
    base.ALIASES.clear()
    base.ALIASES.update(kept)


def test_register(catalogue):
    mine = bt.FloatFormat("Mine_e3m2", exponent_bits=3, mantissa_bits=2)
    with pytest.raises(ValueError, match="mine_e3m2"):
        bt.format("mine_e3m2")
    assert bt.register(mine, "M32", "my.format") is mine
    assert bt.format("MINE_E3M2") is bt.format("m32") is bt.format("my.format") is mine
    assert mine in bt.formats() and mine.aliases == ("M32", "my.format")
    assert bt.register(mine) is mine  # again: nothing changes
    with pytest.raises(ValueError, match="'half' already belongs to the format float16"):
        bt.register(bt.FloatFormat("other", exponent_bits=3, mantissa_bits=2), "half")
    with pytest.raises(ValueError, match="other"):
        bt.format("other")  # the name was not taken either
    with pytest.raises(ValueError, match="'float16' already belongs"):
        bt.register(bt.FloatFormat("float16", exponent_bits=6, mantissa_bits=9))
    assert bt.encode([28.0, 1.1], mine, overflow="infinity").tolist() == [0b0_111_00, 0b0_011_00]


def test_registration_was_undone():
    with pytest.raises(ValueError, match="mine_e3m2"):
        bt.format("mine_e3m2")


def test_own_formats_derive_their_figures():
    e3m2 = bt.FloatFormat("e3m2", exponent_bits=3, mantissa_bits=2)
    assert (e3m2.bias, e3m2.max, e3m2.min_normal, e3m2.min_subnormal) == (3, 14, two(-2), two(-4))
    assert (e3m2.bits, e3m2.storage, e3m2.inf_magnitude, e3m2.nan_code) == (6, np.uint8, 0b111_00, 0b111_10)
    fixed = bt.FloatFormat("q1_6", exponent_bits=0, mantissa_bits=7, inf=False, nan="none", bias=1)
    assert (fixed.max, fixed.min_subnormal, fixed.bits) == (1 - two(-7), two(-7), 8)
    wide = bt.FloatFormat("e8m14", exponent_bits=8, mantissa_bits=14)
    assert (wide.bits, wide.storage, wide.max) == (23, np.uint32, two(128) - two(113))
    assert bt.IntFormat("int5", width=5).value(0b10000) == -16
    assert bt.IntFormat("uint12", width=12, signed=False).storage == np.uint16


def test_p3109_layout():
    """P3109: NaN where -0 would be (unsigned: on top), Inf below it or on top, bias 2**(K-P-1) (unsigned: 2**(K-P))."""
    fmt = bt.p3109(8, 4)
    assert (fmt.name, fmt.bits, fmt.bias, fmt.nan_code, fmt.max_code) == ("p3109_k8p4se", 8, 8, 0x80, 0x7E)
    assert (fmt.value(0x7F), fmt.value(0xFF), fmt.value(0x40)) == (math.inf, -math.inf, 1)
    assert math.isnan(fmt.value(0x80)) and not fmt.has_negative_zero
    assert (fmt.max, fmt.min_normal, fmt.min_subnormal) == (224, two(-7), two(-10))
    finite = bt.p3109(8, 4, extended=False)
    assert (finite.max, finite.has_inf, finite.value(0xFF)) == (240, False, -240)
    unsigned = bt.p3109(8, 4, signed=False)
    assert (unsigned.bias, unsigned.value(0xFE), unsigned.min) == (16, math.inf, 0)
    assert math.isnan(unsigned.value(0xFF)) and unsigned.value(0x80) == 1
    assert bt.p3109(6, 1).values()[1:4] == [two(-15), two(-14), two(-13)]  # no fraction, no subnormals


# --- fields, text, identity -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code", "fields"),
    [
        ("float8_e4m3fn", 0b1_0101_011, [("sign", 1, 1), ("exponent", 5, 4), ("significand", 3, 3)]),
        ("float16", 0x3C01, [("sign", 0, 1), ("exponent", 15, 5), ("significand", 1, 10)]),
        ("float8_e8m0fnu", 0x7F, [("exponent", 127, 8)]),
        ("float4_e1m2fn", 0b1_1_10, [("sign", 1, 1), ("exponent", 1, 1), ("significand", 2, 2)]),
        ("hifloat8", 0x00, [("sign", 0, 1), ("dot", 0, 4), ("significand", 0, 3)]),
        ("hifloat8", 0b1_0001_101, [("sign", 1, 1), ("dot", 1, 4), ("significand", 5, 3)]),
        ("hifloat8", 0b0_001_1_010, [("sign", 0, 1), ("dot", 1, 3), ("exponent", 1, 1), ("significand", 2, 3)]),
        ("hifloat8", 0x2E, [("sign", 0, 1), ("dot", 1, 2), ("exponent", 1, 2), ("significand", 6, 3)]),
        ("hifloat8", 0b0_10_101_01, [("sign", 0, 1), ("dot", 2, 2), ("exponent", 5, 3), ("significand", 1, 2)]),
        ("hifloat8", 0b1_11_1000_1, [("sign", 1, 1), ("dot", 3, 2), ("exponent", 8, 4), ("significand", 1, 1)]),
        ("int4", 0b1010, [("sign", 1, 1), ("magnitude", 2, 3)]),
        ("uint4", 0b1010, [("magnitude", 10, 4)]),
        ("int1", 1, [("sign", 1, 1)]),
        ("bool", 2, [("truth", 2, 8)]),
        (
            "complex32",
            0x4000_3C00,
            [
                ("imag.sign", 0, 1),
                ("imag.exponent", 16, 5),
                ("imag.significand", 0, 10),
                ("real.sign", 0, 1),
                ("real.exponent", 15, 5),
                ("real.significand", 0, 10),
            ],
        ),
    ],
)
def test_fields(name, code, fields):
    fmt = bt.format(name)
    found = fmt.fields(code)
    assert [tuple(f) for f in found] == fields
    assert sum(f.width for f in found) == fmt.bits
    joined = 0
    for field in found:
        joined = joined << field.width | field.value
    assert joined == code


@pytest.mark.parametrize("name", ["float6_e3m2fn", "float8_e4m3fnuz", "hifloat8", "int8", "uint4", "float8_e8m0fnu"])
def test_fields_of_every_code(name):
    fmt = bt.format(name)
    for code in range(1 << fmt.bits):
        joined = 0
        for field in fmt.fields(code):
            assert 0 <= field.value < 1 << field.width
            joined = joined << field.width | field.value
        assert joined == code


def test_values():
    assert bt.format("float4_e1m2fn").values()[:8] == [Fraction(n, 4) for n in range(8)]
    assert [float(v) for v in bt.format("float4_e2m1fn").values()] == [
        *(0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0),
        *(-0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0),
    ]
    assert bt.format("int2").values() == [0, 1, -2, -1]
    assert bt.format("uint2").values() == [0, 1, 2, 3]
    assert bt.format("bool").values() == [0, *[1] * 255]
    e8m0 = bt.format("float8_e8m0fnu").values()
    assert e8m0[:255] == [two(code - 127) for code in range(255)] and math.isnan(e8m0[255])


@pytest.mark.parametrize("name", ["bool", "int4", "uint64", "float16", "float8_e8m0fnu", "hifloat8", "complex32"])
def test_identity(name):
    fmt = bt.format(name)
    for twin in (pickle.loads(pickle.dumps(fmt)), copy.copy(fmt), copy.deepcopy(fmt)):
        assert twin == fmt and hash(twin) == hash(fmt) and str(twin) == name
        assert (twin.max, twin.bits, twin.storage, twin.aliases) == (fmt.max, fmt.bits, fmt.storage, fmt.aliases)
    with pytest.raises(AttributeError):
        fmt.name = "other"
    assert fmt != name and fmt != bt.format("int2")
    assert len({fmt, copy.deepcopy(fmt), bt.format("int2")}) == 2


def test_equality_is_by_content():
    one = bt.FloatFormat("x", exponent_bits=3, mantissa_bits=2)
    assert one == bt.FloatFormat("x", exponent_bits=3, mantissa_bits=2, bias=3)
    assert one != bt.FloatFormat("y", exponent_bits=3, mantissa_bits=2)
    assert one != bt.FloatFormat("x", exponent_bits=3, mantissa_bits=2, bias=4)
    assert bt.IntFormat("x", width=8) != bt.IntFormat("x", width=8, signed=False)
    assert bt.p3109(8, 3) == bt.p3109(8, 3) and bt.p3109(8, 3) != bt.p3109(8, 3, extended=False)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("float8_e4m3fn", ["8 bits", "4 exponent", "3 fraction", "bias 7", "448", "no Inf", "NaN", "-0"]),
        ("float8_e5m2fnuz", ["bias 16", "57344", "no Inf", "no -0"]),
        ("float4_e2m1fn", ["4 bits", "largest 6", "no NaN"]),
        ("hifloat8", ["8 bits", "32768", "Inf", "no -0"]),
        ("int4", ["4-bit two's complement", "-8 to 7"]),
        ("uint8", ["8-bit unsigned", "0 to 255"]),
        ("bool", ["true", "false"]),
        ("complex32", ["32 bits", "float16", "real part first"]),
    ],
)
def test_describe(name, words):
    text = bt.format(name).describe()
    assert text.startswith(name)
    for word in words:
        assert word in text


def test_complex_parts():
    for name, part in [("complex32", "float16"), ("complex64", "float32")]:
        fmt, of = bt.format(name), bt.format(part)
        assert (fmt.bits, fmt.part, fmt.kind) == (2 * of.bits, of, "complex")
        assert (fmt.max, fmt.min, fmt.min_normal, fmt.min_subnormal) == (
            of.max,
            of.min,
            of.min_normal,
            of.min_subnormal,
        )
        assert (fmt.has_inf, fmt.has_nan, fmt.has_negative_zero, fmt.signed) == (True, True, True, True)
    assert bt.format("complex32").split(0x4000_3C00) == (0x3C00, 0x4000)  # 1 + 2j: the real part is in the low half


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_code": 0}, "max_code=0 must be 0x6e, that of the largest value"),
        ({"inf_magnitude": None}, "max_code=110 must be 0x6f"),
        ({"inf_magnitude": 0}, "inf_magnitude=0 must be None or a magnitude code above 0"),
        ({"nan_code": 0x7F}, "nan_code=127 must be None, or the code of -0"),
        ({"has_negative_zero": True}, "nan_code=128 must be None, or the code of -0 where there is no -0"),
        ({"width": 9}, "do not make 8 bits"),
        ({"subnormal_bias": 2000}, "subnormal_bias=2000 is out of range"),
        ({"subnormal_bias": -30}, "do not lie on one grid in each binade"),
        ({"regimes": bt.format("hifloat8").regimes[:-1]}, "magnitude 0x60 has no prefix of hifloat8"),
        ({"regimes": ()}, "there must be a regime of normal values"),
    ],
)
def test_a_tapered_format_must_be_an_order_of_values(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(bt.format("hifloat8"), **change)


def test_a_tapered_format_of_ones_own():
    """Two regimes of 4 bits: 01 is the binade of 1 with a fraction bit, 1 those of 2 and 1/2."""
    fmt = bt.TaperedFormat(
        "tapered4",
        width=4,
        regimes=(Regime(0b00, 2, 0, 1, subnormal=True), Regime(0b01, 2, 0, 1), Regime(0b1, 1, 1, 1)),
        subnormal_bias=-3,
        nan_code=0x8,
        max_code=0x5,
    )
    assert fmt.values()[:8] == [0, two(-2), 1, Fraction(3, 2), 2, 3, two(-1), Fraction(3, 4)]
    assert math.isnan(fmt.value(8))
    assert (fmt.max, fmt.min_subnormal, fmt.min_normal) == (3, two(-2), two(-1))
    assert bt.encode([2.4, 2.6, 0.6, -9.0, 0.2, 0.1], fmt).tolist() == [0x4, 0x5, 0x6, 0xD, 0x1, 0x0]
