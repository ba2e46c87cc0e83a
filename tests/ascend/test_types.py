"""Types and products against the seed's tables, typed in from the document of record."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest

import bittrue as bt
from bittrue import ascend

ALL = "int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t half float double"
SUPPORT = {
    "Ascend 950PR/950DT": (
        "bool int8_t uint8_t fp4x2_e2m1_t fp4x2_e1m2_t hifloat8_t fp8_e5m2_t fp8_e4m3fn_t fp8_e8m0_t int4x2_t int16_t "
        "uint16_t half bfloat16_t int32_t uint32_t float complex32 int64_t uint64_t double complex64"
    ),
    "Atlas A3": ALL + " bfloat16_t",
    "Atlas A2": ALL + " bfloat16_t",
    "Atlas 200I/500 A2": ALL,
    "Atlas inference AI Core": ALL,
    "Atlas inference Vector Core": ALL,
    "Atlas training": ALL,
}
WIDTHS = {
    "b8": "bool int8_t uint8_t fp4x2_e2m1_t fp4x2_e1m2_t hifloat8_t fp8_e5m2_t fp8_e4m3fn_t fp8_e8m0_t int4x2_t",
    "b16": "int16_t uint16_t half bfloat16_t",
    "b32": "int32_t uint32_t float complex32",
    "b64": "int64_t uint64_t double complex64",
}
SHORT = {
    "S4": "int4b_t", "U8": "uint8_t", "S8": "int8_t", "U16": "uint16_t", "S16": "int16_t", "U32": "uint32_t",
    "S32": "int32_t", "U64": "uint64_t", "S64": "int64_t", "FP8_E4M3": "fp8_e4m3fn_t", "HiF8": "hifloat8_t",
    "FP16": "half", "BF16": "bfloat16_t", "FP32": "float",
}  # fmt: skip
IMMEDIATE = "bool int8_t uint8_t int16_t uint16_t half int32_t uint32_t float int64_t uint64_t".split()
RANGES = {
    "int4x2_t": (F(-8), F(7)),
    "int8_t": (F(-128), F(127)),
    "uint8_t": (F(0), F(255)),
    "int16_t": (F(-32768), F(32767)),
    "uint16_t": (F(0), F(65535)),
    "int32_t": (F(-2147483648), F(2147483647)),
    "uint32_t": (F(0), F(4294967295)),
    "int64_t": (F(-9223372036854775808), F(9223372036854775807)),
    "uint64_t": (F(0), F(18446744073709551615)),
    "fp4x2_e2m1_t": (F(-6), F(6)),
    "fp4x2_e1m2_t": (F(-7, 4), F(7, 4)),
    "fp8_e8m0_t": (F(1, 2**127), F(2**127)),
    "fp8_e5m2_t": (F(2**13 - 2**16), F(2**16 - 2**13)),
    "fp8_e4m3fn_t": (F(2**6 - 2**9), F(2**9 - 2**6)),
    "half": (F(2**5 - 2**16), F(2**16 - 2**5)),
    "bfloat16_t": (F(2**120 - 2**128), F(2**128 - 2**120)),
    "float": (F(2**104 - 2**128), F(2**128 - 2**104)),
    "double": (F(2**971 - 2**1024), F(2**1024 - 2**971)),
}
FIELDS = {  # sign, exponent and significand bits, table 3
    "fp4x2_e2m1_t": (1, 2, 1), "fp4x2_e1m2_t": (1, 1, 2), "fp8_e8m0_t": (0, 8, 0), "fp8_e5m2_t": (1, 5, 2),
    "fp8_e4m3fn_t": (1, 4, 3), "half": (1, 5, 10), "bfloat16_t": (1, 8, 7), "float": (1, 8, 23), "double": (1, 11, 52),
}  # fmt: skip
#: Table 4 of hifloat8: the dot field, its width, bits of exponent and fraction, exponents, and fractions.
REGIMES = [
    ("0001", 0, 3, [0]),
    ("001", 1, 3, [1]),
    ("01", 2, 3, [2, 3]),
    ("10", 3, 2, [4, 5, 6, 7]),
    ("11", 4, 1, list(range(8, 16))),
]


@pytest.mark.parametrize("product", SUPPORT)
@pytest.mark.parametrize("name", SUPPORT["Ascend 950PR/950DT"].split())
def test_support_matrix_cell(product: str, name: str) -> None:
    assert (name in ascend.supported_types(product)) == (name in SUPPORT[product].split())


def test_support_matrix_has_no_other_rows_or_types() -> None:
    assert [p.name for p in ascend.products()] == list(SUPPORT)
    for product, names in SUPPORT.items():
        assert set(ascend.supported_types(product)) == set(names.split())


@pytest.mark.parametrize("name", RANGES)
def test_ranges_of_tables_2_and_3(name: str) -> None:
    f = ascend.type_info(name).format
    assert (f.min, f.max) == RANGES[name]


@pytest.mark.parametrize("name", FIELDS)
def test_field_widths_of_table_3(name: str) -> None:
    f = ascend.type_info(name).format
    assert isinstance(f, bt.FloatFormat)
    assert (int(f.signed), f.exponent_bits, f.mantissa_bits) == FIELDS[name]


def test_hifloat8_table_4() -> None:
    f = ascend.type_info("hifloat8_t").format
    found = {}
    for m in range(1, 8):  # D = 4'b0000: S_v * 2**(M_v - 23)
        found[0b0000 << 3 | m] = F(2) ** (m - 23)
    for dot, bits, fraction, exponents in REGIMES:
        for magnitude in exponents:
            for negative in (False, True) if magnitude else (False,):
                for m in range(1 << fraction):
                    exponent = -magnitude if negative else magnitude
                    field = (magnitude & ~(1 << bits >> 1)) | negative << max(bits - 1, 0) if bits else 0
                    code = ((int(dot, 2) << bits | field) << fraction) | m
                    found[code] = (1 + F(m, 1 << fraction)) * F(2) ** exponent
    assert sorted(found) == list(range(1, 128))  # 1 sign + 4/3/2 dot + exponent + fraction bits fill the byte
    for code, value in found.items():
        if code != 0x6F:  # Inf stands in the place of 1.5 * 2**15
            assert f.value(code) == value and f.value(code | 0x80) == -value
    assert f.max == 2**15 and f.min_subnormal == F(1, 2**22)


@pytest.mark.parametrize("width", WIDTHS)
def test_width_classes(width: str) -> None:
    assert {t.name for t in ascend.types() if t.width == width} == set(WIDTHS[width].split())


@pytest.mark.parametrize("short", SHORT)
def test_short_names(short: str) -> None:
    assert ascend.type_info(short) is ascend.type_info(SHORT[short])


@pytest.mark.parametrize("name", [t.name for t in ascend.types()])
def test_immediates(name: str) -> None:
    if name in IMMEDIATE:
        value = ascend.immediate(1, name)
        assert value == 1 and value.dtype == np.dtype(ascend.type_info(name).format.name)
    else:
        with pytest.raises(ValueError, match="takes no immediate value; types that do: bool, int8_t"):
            ascend.immediate(1, name)


def test_immediates_keep_to_the_range() -> None:
    assert ascend.immediate(0.1, "half") == np.float16(0.1)
    for value, name, message in [
        (300, "int8_t", "beyond int8_t: -128 to 127"),
        (1.5, "int8_t", "not an integer"),
        (float("nan"), "int8_t", "not an integer"),
        (1e6, "half", "beyond half"),
        (10**400, "float", "beyond float"),
    ]:
        with pytest.raises(ValueError, match=message):
            ascend.immediate(value, name)
    assert np.isinf(ascend.immediate(float("inf"), "half"))
    with pytest.raises(TypeError, match="must be a number"):
        ascend.immediate("1", "int8_t")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("950", "Ascend 950PR/950DT"),
        ("A5", "Ascend 950PR/950DT"),
        ("Ascend 950PR", "Ascend 950PR/950DT"),
        ("Ascend 950PR/Ascend 950DT", "Ascend 950PR/950DT"),
        (3510, "Ascend 950PR/950DT"),
        ("a2", "Atlas A2"),
        ("Ascend910B", "Atlas A2"),
        ("910B", "Atlas A2"),
        (2201, "Atlas A2"),
        ("Atlas A2 训练系列产品/Atlas A2 推理系列产品", "Atlas A2"),
        ("910C", "Atlas A3"),
        ("A3", "Atlas A3"),
        ("Atlas 200I/500 A2 推理产品", "Atlas 200I/500 A2"),
        ("atlas_inference_vector_core", "Atlas inference Vector Core"),
        ("Atlas 训练系列产品", "Atlas training"),
    ],
)
def test_product_names(given: str | int, name: str) -> None:
    assert ascend.product(given).name == name


def test_targets() -> None:
    assert ascend.parse_target("ascend:950").name == "Ascend 950PR/950DT"
    assert ascend.parse_target("ascend").name == "Ascend 950PR/950DT"
    with pytest.raises(ValueError, match="expected 'ascend:PRODUCT'"):
        ascend.parse_target("aie:aie-ml")


def test_unknown_names_get_suggestions() -> None:
    with pytest.raises(ValueError, match=r"product='Atlass A2' is not an Ascend product; did you mean 'atlas a2'\?"):
        ascend.product("Atlass A2")
    with pytest.raises(ValueError, match=r"did you mean 'hifloat8_t'\?"):
        ascend.type_info("hiflot8_t")
    with pytest.raises(ValueError, match="'uint4' is a format, but not an Ascend C type"):
        ascend.type_info("uint4")
    with pytest.raises(ValueError, match=r"mode='CAST_RNIT' .*did you mean 'cast_rint'\?"):
        ascend.mode("CAST_RNIT")
    for bad in (8, -1, True, None, 1.0, []):
        with pytest.raises(ValueError, match="is not a cast mode"):
            ascend.mode(bad)  # type: ignore[arg-type]


def test_a_type_that_a_product_lacks_names_those_that_have_it() -> None:
    with pytest.raises(ValueError, match="hifloat8_t is not supported by Atlas A2; it is by: Ascend 950PR/950DT"):
        ascend.cast(1.0, "hifloat8_t", product="a2")
    with pytest.raises(ValueError, match=r"it is by: Ascend 950PR/950DT, Atlas A3, Atlas A2"):
        ascend.cast(np.float32([1]), "bf16", product="Atlas training")


@pytest.mark.parametrize("number", range(8))
def test_modes_have_their_numbers_and_spellings(number: int) -> None:
    name = "NONE RINT FLOOR CEIL ROUND TRUNC ODD HYBRID".split()[number]
    found = ascend.RoundMode(number)
    assert found.name == f"CAST_{name}" and found == number
    for spelling in (name, name.lower(), f"CAST_{name}", f"cast_{name.lower()}", f"RoundMode::CAST_{name}", number):
        assert ascend.mode(spelling) is found
    assert ascend.CastMode[f"CAST_{name}"] is ascend.RoundMode[name] is found


def test_complex_constructors_and_equality() -> None:
    value = ascend.complex32(1, 2)
    assert complex(value) == 1 + 2j and value.real.dtype == np.float16
    assert complex(ascend.complex32(3)) == 3 + 0j
    assert ascend.complex64(4) == 4 and ascend.complex64(4) == ascend.complex64(4, 0)
    assert value == ascend.complex32(1, 2) and value != ascend.complex32(1, 3) and value != ascend.complex32(0, 2)
    nan = ascend.complex64(float("nan"), 1)
    assert nan != ascend.complex64(float("nan"), 1)
    assert value == ascend.complex32(1 + 2j) and value == 1 + 2j
    assert hash(ascend.complex64(1, 2)) == hash(ascend.complex32(1, 2))
    assert ascend.complex32(1 + 2.0**-11).real == 1  # a half, nearest even
    with pytest.raises(AttributeError):
        value.real = 3
    with pytest.raises(TypeError, match="imag='2' must be a real number"):
        ascend.complex32(1, "2")


def test_complex_arrays() -> None:
    a = ascend.complex32.array([1, 2], [3, 4])
    assert a.format.name == "complex32" and a.tolist() == [1 + 3j, 2 + 4j]
    assert np.array_equal(a.tobytes(), np.float16([1, 3, 2, 4]).tobytes())  # real part first
    assert ascend.complex64.array(np.ones((2, 1)), np.zeros(3)).shape == (2, 3)
