"""Casts: the seed's modes bit by bit, every row of the rule table against `exact`, and bad input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ascend.semantics import A5, MODES, ascendc_rows, expected, expected_dequant, inputs, is_int, pypto_rows

import bittrue as bt
from bittrue import ascend
from bittrue.array import Array
from bittrue.ascend.rulebook import Row, rows

ANY_TYPE = ascend.Choices(type_matrix="cast_table")
SEVEN = "NONE RINT ROUND FLOOR CEIL TRUNC ODD".split()


def floats(*patterns: int) -> np.ndarray:
    return np.array(patterns, np.uint32).view(np.float32)


# --- 1. the seed's rules ----------------------------------------------------------------------------------------------

# float bits -> half bits in the order of SEVEN; LSB of half is bit 13. Worked out by hand from the seed's rules.
HALF_BITS = {
    0x3F800000: "3C00 3C00 3C00 3C00 3C00 3C00 3C00",  # 1, exact
    0x3F801000: "3C00 3C00 3C01 3C00 3C01 3C00 3C01",  # tie, kept part even
    0xBF801000: "BC00 BC00 BC01 BC01 BC00 BC00 BC01",
    0x3F803000: "3C02 3C02 3C02 3C01 3C02 3C01 3C01",  # tie, kept part odd
    0xBF803000: "BC02 BC02 BC02 BC02 BC01 BC01 BC01",
    0x3F800FFF: "3C00 3C00 3C00 3C00 3C01 3C00 3C01",  # just below the tie
    0xBF800FFF: "BC00 BC00 BC00 BC01 BC00 BC00 BC01",
    0x3F801001: "3C01 3C01 3C01 3C00 3C01 3C00 3C01",  # just above
    0xBF801001: "BC01 BC01 BC01 BC01 BC00 BC00 BC01",
    0x3F803FFF: "3C02 3C02 3C02 3C01 3C02 3C01 3C01",  # far above, kept part odd
    0x3F000800: "3800 3800 3800 3800 3801 3800 3801",  # 0.5 + 2**-12... below the tie
}
# float bits -> bfloat16 bits without ODD, which the pair lacks and which becomes RINT; LSB is bit 16.
BF16_BITS = {
    0x3F800000: "3F80 3F80 3F80 3F80 3F80 3F80",
    0x3F808000: "3F80 3F80 3F81 3F80 3F81 3F80",
    0xBF808000: "BF80 BF80 BF81 BF81 BF80 BF80",
    0x3F818000: "3F82 3F82 3F82 3F81 3F82 3F81",
    0xBF818000: "BF82 BF82 BF82 BF82 BF81 BF81",
    0x3F807FFF: "3F80 3F80 3F80 3F80 3F81 3F80",
    0x3F808001: "3F81 3F81 3F81 3F80 3F81 3F80",
    0xBF808001: "BF81 BF81 BF81 BF81 BF80 BF80",
}
# value -> int32 in the order of SEVEN; NONE is TRUNC, and so is ODD, which the pair lacks.
INTEGERS = {
    2.5: (2, 2, 3, 2, 3, 2, 2),
    -2.5: (-2, -2, -3, -3, -2, -2, -2),
    3.5: (3, 4, 4, 3, 4, 3, 3),
    -3.5: (-3, -4, -4, -4, -3, -3, -3),
    0.5: (0, 0, 1, 0, 1, 0, 0),
    -0.5: (0, 0, -1, -1, 0, 0, 0),
    1.25: (1, 1, 1, 1, 2, 1, 1),
    -1.25: (-1, -1, -1, -2, -1, -1, -1),
    1.75: (1, 2, 2, 1, 2, 1, 1),
    -1.75: (-1, -2, -2, -2, -1, -1, -1),
    7.0: (7, 7, 7, 7, 7, 7, 7),
}


@pytest.mark.parametrize("product", ["950", "A3", "A2"])
@pytest.mark.parametrize("mode", SEVEN)
def test_seed_modes_float_to_half(mode: str, product: str) -> None:
    want = [int(row.split()[SEVEN.index(mode)], 16) for row in HALF_BITS.values()]
    assert ascend.cast(floats(*HALF_BITS), "half", mode, product).codes.tolist() == want


@pytest.mark.parametrize("product", ["950", "A3", "A2"])
@pytest.mark.parametrize("mode", SEVEN)
def test_seed_modes_float_to_bfloat16(mode: str, product: str) -> None:
    column = SEVEN.index(mode) if mode != "ODD" else SEVEN.index("RINT")
    want = [int(row.split()[column], 16) for row in BF16_BITS.values()]
    assert ascend.cast(floats(*BF16_BITS), "bfloat16_t", mode, product).codes.tolist() == want


@pytest.mark.parametrize("product", ["950", "A3", "A2"])
@pytest.mark.parametrize("mode", SEVEN)
def test_seed_modes_float_to_integer(mode: str, product: str) -> None:
    want = [row[SEVEN.index(mode)] for row in INTEGERS.values()]
    assert ascend.cast(np.float32(list(INTEGERS)), "int32_t", mode, product).tolist() == want
    assert ascend.cast(np.float16(list(INTEGERS)), "int8_t", mode, product).tolist() == want


@pytest.mark.parametrize("mode", SEVEN)
@pytest.mark.parametrize(("dst", "drop"), [("half", 13), ("bfloat16_t", 16)])
def test_seed_bit_rules_on_many_patterns(dst: str, drop: int, mode: str) -> None:
    """The seed's section on binary rounding, bit by bit, for values that are normal before and after."""
    bits = np.random.default_rng(4).integers(0, 1 << 23, 200_000, np.uint32)
    exponent = np.random.default_rng(5).integers(127 - 13, 127 + 14, bits.size, np.uint32)
    sign = np.random.default_rng(6).integers(0, 2, bits.size, np.uint32)
    ties = np.arange(0, bits.size, 3)
    bits[ties] = bits[ties] >> drop << drop | np.uint32(1 << (drop - 1))
    pattern = sign << 31 | exponent << 23 | bits

    kept, dropped = bits >> drop, bits & ((1 << drop) - 1)
    last, first = kept & 1, dropped >> (drop - 1)
    others, any_dropped = dropped & ((1 << (drop - 1)) - 1) != 0, dropped != 0
    if dst == "bfloat16_t" and mode == "ODD":
        mode, asked = "RINT", "ODD"
    else:
        asked = mode
    carry = {
        "NONE": (first == 1) & (others | (last == 1)),
        "RINT": (first == 1) & (others | (last == 1)),
        "FLOOR": (sign == 1) & any_dropped,
        "CEIL": (sign == 0) & any_dropped,
        "ROUND": first == 1,
        "TRUNC": np.zeros(bits.size, bool),
        "ODD": any_dropped & (last == 0),
    }[mode]
    bias = 127 - 15 if dst == "half" else 0
    fraction = 23 - drop
    want = sign << 15 | ((exponent - bias) << fraction) + kept + carry
    assert np.array_equal(ascend.cast(pattern.view(np.float32), dst, asked).codes, want)


@contextmanager
def softfloat_mode(soft: Any, mode: Any) -> Iterator[None]:
    before = soft.get_rounding_mode()
    soft.set_rounding_mode(mode)
    try:
        yield
    finally:
        soft.set_rounding_mode(before)


FIVE = "RINT ROUND FLOOR CEIL TRUNC".split()


@pytest.mark.parametrize(
    ("dst", "mode"), [("half", "ODD"), *((dst, mode) for dst in ("half", "bfloat16_t", "int32_t") for mode in FIVE)]
)
def test_modes_against_softfloat(dst: str, mode: str) -> None:
    soft = pytest.importorskip("softfloatpy")
    theirs = {
        "RINT": soft.RoundingMode.NEAR_EVEN,
        "ROUND": soft.RoundingMode.NEAR_MAX_MAG,
        "FLOOR": soft.RoundingMode.MIN,
        "CEIL": soft.RoundingMode.MAX,
        "TRUNC": soft.RoundingMode.MIN_MAG,
        "ODD": soft.RoundingMode.MIN_MAG,
    }[mode]
    x = _softfloat_inputs(dst)
    want = []
    with softfloat_mode(soft, theirs):
        for bits in x.view(np.uint32).tolist():
            soft.set_exception_flags(0)
            value = soft.Float32.from_bytes(bits.to_bytes(4, "big"))
            if dst == "int32_t":
                result = int.from_bytes(soft.f32_to_i32(value, theirs, True).to_bytes(), "big")
            else:
                convert = {"half": soft.f32_to_f16, "bfloat16_t": soft.f32_to_bf16}[dst]
                result = int.from_bytes(convert(value).to_bytes(), "big")
            if mode == "ODD" and soft.get_exception_flags() & 1:  # truncation with the last bit set when inexact
                result |= 1
            want.append(result)
        soft.set_exception_flags(0)
    got = ascend.cast(x, dst, mode, saturation=False).codes
    assert np.array_equal(got.view(f"u{got.itemsize}"), np.array(want, f"u{got.itemsize}"))


def _softfloat_inputs(dst: str) -> np.ndarray:
    """Values within the range of the destination: beyond it the conventions differ."""
    rng = np.random.default_rng(11)
    low, high = {"half": (100, 141), "bfloat16_t": (1, 253), "int32_t": (100, 157)}[dst]
    bits = rng.integers(0, 1 << 23, 3000) | rng.integers(low, high, 3000) << 23 | rng.integers(0, 2, 3000) << 31
    bits[::3] &= ~0x1FFF  # exact in half, or ties
    bits[1::3] = bits[1::3] & ~0xFFF
    return bits.astype(np.uint32).view(np.float32)


# --- 2. every row, every mode -----------------------------------------------------------------------------------------


def array_of(name: str, codes: tuple[int, ...]) -> Array:
    f = bt.format(name)
    return Array(np.array(codes, f.code_dtype).view(f.storage), f)


@cache
def wanted(semantics: str, src: str, dst: str, mode: str, saturate: bool) -> np.ndarray:
    codes = inputs(src, dst)
    f = bt.format(dst)
    if semantics == "dequant":
        numbers = array_of(src, codes).tolist()
        return np.array([expected_dequant(n, 0.3, saturate) for n in numbers], f.code_dtype)
    return np.array([expected(semantics, src, dst, mode, c, saturate) for c in codes], f.code_dtype)


def check(row: Row, mode: str, saturation: bool, strict: bool, effective: str | None = None) -> None:
    src, dst = row.source, row.destination
    x = array_of(src, inputs(src, dst))
    scale = {"deqscale": 0.3} if row.semantics == "dequant" else {}
    even = x[: x.size // 2 * 2]
    got = ascend.cast(even, dst, mode, row.product, saturation, strict, choices=ANY_TYPE, **scale)
    assert got.format is bt.format(dst) and got.shape == even.shape
    want = wanted(row.semantics, src, dst, effective or mode, saturation)[: even.size]
    codes = got.codes.view(want.dtype)
    if 39 in row.questions:  # table 32 of the boundary values: A2 and A3 make +0 of -0
        want = np.where(want == 0x80000000, 0, want)
    bad = np.flatnonzero(codes != want)
    assert not bad.size, (
        f"{row.source} -> {row.destination} {mode} on {row.product}: code {inputs(src, dst)[bad[0]]:#x} "
        f"gives {codes[bad[0]]:#x}, not {want[bad[0]]:#x} ({bad.size} of {codes.size} differ)"
    )


def saturations(row: Row) -> list[bool]:
    return [True, False] if ascend.product(row.product).control_bits else [True]


PAIRS = sorted({(r.source, r.destination) for r in rows()})


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_every_row_in_every_allowed_mode(src: str, dst: str) -> None:
    for row in rows():
        if (row.source, row.destination) != (src, dst):
            continue
        for mode in row.modes:
            for saturation in saturations(row):
                strict = row.api in ("memory", "reg", "simt")
                if mode.short == "NONE" and not strict and row.semantics != "dequant":
                    check(row, "NONE", saturation, strict, row.fallback.short)
                else:
                    check(row, mode.short, saturation, strict)


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_every_disallowed_mode(src: str, dst: str) -> None:
    """Strict: an error that lists the modes. Default use: the default of the pair, as S2 states it."""
    found = [r for r in rows() if (r.source, r.destination) == (src, dst)]
    for product in sorted({r.product for r in found}):
        ours = [r for r in found if r.product == product]
        ascendc = [r for r in ours if r.api in ("memory", "reg", "simt")]
        deciding = [r for r in ours if r.api == "pypto"] or ours
        for mode in MODES:
            allowed = {m.short for r in ascendc for m in r.modes}
            if mode not in allowed:
                with pytest.raises(ValueError) as caught:
                    ascend.cast_rule(src, dst, mode, product, strict=True, choices=ANY_TYPE)
                text = str(caught.value)
                if ascendc:
                    assert text.startswith(f"mode=CAST_{mode} is not a mode of {src} to {dst} on {product}")
                    assert all(f"CAST_{name}" in text for name in allowed)
            listed = {m.short for r in deciding for m in r.modes} - {"NONE"}
            if mode not in listed:
                check(deciding[0], mode, True, False, default_mode(src, dst, listed))


def default_mode(src: str, dst: str, listed: set[str]) -> str:
    if dst == "hifloat8_t":
        return "ROUND"
    to_int = not is_int(src) and is_int(dst)
    return "TRUNC" if to_int and "TRUNC" in listed else "RINT"


def test_the_tables_are_all_covered() -> None:
    pairs = {(r["src"], r["dst"]) for r in ascendc_rows()} | {(r["src"], r["dst"]) for r in pypto_rows()}
    own = {("half", "half"), ("bfloat16_t", "bfloat16_t"), ("bfloat16_t", "hifloat8_t")}
    assert set(PAIRS) == pairs | own


@pytest.mark.parametrize("dst", ["fp8_e4m3fn_t", "fp8_e5m2_t", "hifloat8_t", "half"])
def test_ctrl_50_keeps_nan_in_fp8_only(dst: str) -> None:
    codes = inputs("float", dst)
    semantics, mode = ("hif8", "ROUND") if dst == "hifloat8_t" else ("fp8", "RINT")
    got = ascend.cast(array_of("float", codes), dst, mode, saturation=ascend.Ctrl(bit50=True))
    want = [expected(semantics, "float", dst, mode, c, True, keep_nan=True) for c in codes]
    assert got.codes.tolist() == want
    assert want[codes.index(0x7FC00000)] == (0x7F if dst.startswith("fp8") else 0)


# --- single figures of the specification ------------------------------------------------------------------------------

ANCHORS: list[tuple[Any, str, dict[str, Any], list[Any]]] = [
    (np.float32([40959, 40960]), "hifloat8_t", {"saturation": False}, [0x6E, 0x6F]),
    (np.float32([2.0**-23, 1.5 * 2.0**-23]), "hifloat8_t", {}, [0x01, 0x01]),
    (np.float32([464, 465]), "fp8_e4m3fn_t", {"saturation": False}, [0x7E, 0x7F]),
    (np.float32([61440]), "fp8_e5m2_t", {"saturation": False}, [0x7C]),
    (np.float32([61440]), "fp8_e5m2_t", {}, [0x7B]),
    (np.float16([257]), "uint8_t", {}, [255]),
    (np.float16([257]), "uint8_t", {"saturation": False}, [1]),
    (np.int32([256]), "uint8_t", {"saturation": False}, [0]),
    (np.float32([0.5 + 2**-12]), "half", {"mode": "RINT"}, [0x3800]),
    (np.float32([0.5 + 2**-12]), "half", {"mode": "CEIL"}, [0x3801]),
    (np.float32([0.5 + 2**-12]), "half", {"mode": "ODD"}, [0x3801]),
    (np.int32([1000]), "half", {"deqscale": 0.5}, [np.float16(500).view(np.uint16)]),
]


@pytest.mark.parametrize(("x", "dst", "options", "codes"), ANCHORS)
def test_anchor_codes(x: Any, dst: str, options: dict[str, Any], codes: list[Any]) -> None:
    assert ascend.cast(x, dst, **options).codes.tolist() == codes


_FLOATS = {"RINT": 2**25 + 4, "FLOOR": 2**25, "CEIL": 2**25 + 4, "ROUND": 2**25 + 4, "TRUNC": 2**25}


@pytest.mark.parametrize(
    ("x", "dst", "values"),
    [
        (np.int16(4098), "half", {"RINT": 4096, "FLOOR": 4096, "CEIL": 4100, "ROUND": 4100, "TRUNC": 4096}),
        (np.int32(2**25 + 3), "float", _FLOATS),
        (np.float32(0.5), "float", {"RINT": 0, "FLOOR": 0, "CEIL": 1, "ROUND": 1, "TRUNC": 0}),
        (np.float32(0.5 + 2**-9 + 2**-11), "bfloat16_t", {"RINT": 0.5 + 2**-8, "FLOOR": 0.5}),
    ],
)
def test_anchor_values(x: Any, dst: str, values: dict[str, float]) -> None:
    assert {m: float(ascend.cast(x, dst, m)) for m in values} == values


def test_pypto_saturation_example() -> None:
    x = np.float16([300, -300, 50])
    for off in (ascend.SaturationMode.OFF, "off", "OFF", False):
        assert ascend.cast(x, "int8_t", saturation=off).tolist() == [44, -44, 50]
    for on in (ascend.SaturationMode.ON, "on", True, None):
        assert ascend.cast(x, "int8_t", saturation=on).tolist() == [127, -128, 50]


def test_infinities_and_nan_into_integers() -> None:
    x = np.float32([np.inf, -np.inf, np.nan, -np.nan])
    for saturation in (True, False):
        assert ascend.cast(x, "int16_t", saturation=saturation).tolist() == [32767, -32768, 0, 0]
        assert ascend.cast(x.astype(np.float16), "uint8_t", saturation=saturation).tolist() == [255, 0, 0, 0]


def test_same_type_keeps_the_sign_of_zero() -> None:
    x = np.float32([-0.0, -0.4, 0.4, -0.5, 2.0**30 + 64, np.inf, -np.inf])
    for mode in ("RINT", "ROUND", "FLOOR", "CEIL", "TRUNC"):
        y = ascend.cast(x, "float", mode).to_numpy()
        assert np.array_equal(np.signbit(y), [True, True, False, True, False, False, True]) and y[4] == x[4]
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)]
    for mode, function in {"RINT": np.rint, "FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc}.items():
        assert np.array_equal(ascend.cast(finite, "half", mode).codes, function(finite).view(np.uint16))


def test_dequantisation_takes_the_vendor_steps() -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(-(2**31), 2**31, 100_000).astype(np.int32)
    x[:7] = [0, 1, -1, 2**31 - 1, -(2**31), 2**24 + 1, -(2**24) - 1]
    for scale in (1.0, 0.3, 2.0**-24, 65504.0, -0.001, 0.0):
        t = x.astype(np.float32) * np.float32(2.0**-17)
        t = t * np.float32(np.float16(scale)) * np.float32(2.0**17)
        with np.errstate(over="ignore"):
            half = t.astype(np.float16)
        assert np.array_equal(ascend.cast(x, "half", deqscale=scale, saturation=False).codes, half.view(np.uint16))
        clipped = np.clip(half, np.float16(-65504), np.float16(65504))
        assert np.array_equal(ascend.cast(x, "half", deqscale=scale).codes, clipped.view(np.uint16))
    plain = ascend.cast(x, "half", product="Atlas 200I/500 A2", strict=True)  # lists the pair without a scale
    assert np.array_equal(plain.codes, np.clip(x, -65504, 65504).astype(np.float64).astype(np.float16).view(np.uint16))


# --- types of input and output ----------------------------------------------------------------------------------------


def test_numbers_give_numbers() -> None:
    for x, dst, want in [
        (1.0, "int32_t", np.int32(1)),
        (2.5, "half", np.float16(2.5)),
        (np.float32(1.7), "int16_t", np.int16(1)),
        (7, "int64_t", np.int64(7)),
        (True + 1, "float", np.float32(2)),
        (1.3, "bfloat16_t", ml_dtypes.bfloat16(1.3)),
        (0.1, "fp8_e4m3fn_t", ml_dtypes.float8_e4m3fn(0.1)),
        (np.float16(9), "int4x2_t", ml_dtypes.int4(7)),
    ]:
        got = ascend.cast(x, dst)
        assert type(got) is type(want) and got == want
    assert ascend.cast(1.0, "int32_t", mode="CAST_ROUND") == 1
    for x, dst in [(1.3, "hifloat8_t"), (ml_dtypes.bfloat16(1.3), "fp4x2_e1m2_t")]:
        assert isinstance(ascend.cast(x, dst), Array) and ascend.cast(x, dst).shape == ()
    assert ascend.cast(ascend.complex32(1, 2), "complex64") == ascend.complex64(1, 2)
    assert ascend.cast(1 + 1e6j, "complex32") == ascend.complex32(1, 65504)


def test_python_numbers_have_the_types_of_literals() -> None:
    assert ascend.cast(16777217.0, "int32_t") == 16777216  # a float literal, not a double
    assert ascend.cast(np.float64(16777217), "int32_t") == 16777217  # a double
    assert ascend.cast(2**40, "float") == 2.0**40  # int64_t: the pair int64_t to float
    assert ascend.cast([1, 2], "int64_t").format.name == "int64"
    assert ascend.cast([1.5, -1.5], "int32_t", "ROUND").tolist() == [2, -2]
    assert ascend.cast(["0.5", "-inf"], "half").tolist() == [0.5, -65504]
    assert ascend.cast([], "half").shape == (0,)
    assert ascend.cast(1.3, "hifloat8_t", src="half").codes == ascend.cast(np.float16(1.3), "hifloat8_t").codes
    with pytest.raises(OverflowError):
        ascend.cast(2**70, "float")


def test_shapes_strides_and_byte_order() -> None:
    x = np.random.default_rng(3).normal(size=(5, 6, 4)).astype(np.float32) * 100
    want = np.stack([ascend.cast(part, "fp8_e5m2_t").codes for part in x])
    keep = x.copy()
    assert np.array_equal(ascend.cast(x, "fp8_e5m2_t").codes, want)
    assert np.array_equal(ascend.cast(x.astype(">f4"), "fp8_e5m2_t").codes, want)
    assert np.array_equal(ascend.cast(x[::-1, :, ::2], "fp8_e5m2_t").codes, want[::-1, :, ::2])
    assert np.array_equal(ascend.cast(np.asfortranarray(x), "fp8_e5m2_t").codes, want)
    assert np.array_equal(ascend.cast(x, "fp8_e5m2_t", threads=3).codes, want)
    out = np.empty(x.shape, np.uint8)
    assert ascend.cast(x, "fp8_e5m2_t", out=out).codes is out and np.array_equal(out, want)
    strided = np.empty((5, 6, 8), np.uint8)[:, :, ::2]
    assert np.array_equal(ascend.cast(x, "fp8_e5m2_t", out=strided).codes, want) and np.array_equal(strided, want)
    zero = ascend.cast(np.array(1.5, np.float32), "half")
    assert isinstance(zero, Array) and zero.shape == () and np.array_equal(x, keep)


def test_foreign_dtypes_and_typed_arrays() -> None:
    f8 = np.float32([1, 2, 448]).astype(ml_dtypes.float8_e4m3fn)
    assert ascend.cast(f8, "float").tolist() == [1, 2, 448]
    int4 = np.array([-8, 7, -1, 0], np.int8).astype(ml_dtypes.int4)
    assert ascend.cast(int4, "int16_t").tolist() == [-8, 7, -1, 0]
    typed = ascend.cast(np.float32([14]), "hifloat8_t")
    assert ascend.cast(typed, "half").tolist() == [14]
    with pytest.raises(ValueError, match="src='half' differs from the format of x, hifloat8"):
        ascend.cast(typed, "float", src="half")


def test_packed_types() -> None:
    x = np.float16([1, -2, 7.6, -9, 3, 0])
    packed = ascend.cast(x, "int4x2_t", "RINT")
    assert packed.tobytes().hex() == "e18703" and packed.nbytes == 3
    assert ascend.cast(packed, "half").tolist() == [1, -2, 7, -8, 3, 0]
    x = x[:5]
    with pytest.raises(ValueError, match=r"x has 5 elements, but int4x2_t packs 2 in a byte; .*odd='pad' or odd="):
        ascend.cast(x, "int4x2_t")
    assert ascend.cast(x, "int4x2_t", odd="pad").shape == (5,)
    assert ascend.cast(x, "int4x2_t", "RINT", odd="pad").tobytes().hex() == "e18703"
    assert ascend.cast(x, "int4x2_t", odd="drop").tolist() == [1, -2, 7, -8]
    assert ascend.cast(x.reshape(5, 1), "int4x2_t", odd="drop").shape == (4,)
    assert ascend.cast(x, "int8_t", odd="drop").shape == (5,)
    with pytest.raises(ValueError, match="odd='paddd' must be None, 'pad' or 'drop'"):
        ascend.cast(x, "int4x2_t", odd="paddd")
    fp4 = ascend.cast(x[:4].astype(ml_dtypes.bfloat16), "fp4x2_e2m1_t")
    assert fp4.tobytes().hex() == "c2f7" and fp4.tolist() == [1, -2, 6, -6]


def test_complex_casts_are_component_wise() -> None:
    x = np.complex64([1 + 2j, 1e6 - 1e-9j, complex(np.nan, -np.inf), 0.5 - 1.5j])
    half = ascend.cast(x, "complex32")
    parts = ascend.cast(x.view(np.float32), "half")
    assert half.tobytes() == parts.tobytes() and half.format.name == "complex32"
    assert ascend.cast(half, "complex64").tobytes() == ascend.cast(parts, "float").tobytes()
    rounded = ascend.cast(x, "complex64", "ROUND")
    assert rounded.tobytes() == ascend.cast(x.view(np.float32), "float", "ROUND").tobytes()
    kept = ascend.cast(x, "complex32", saturation=False)
    assert np.isnan(kept.real.to_numpy()[2]) and np.isneginf(kept.imag.to_numpy()[2])


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((1.0, "int8_t"), {}, r"float to int8_t is not a cast of Ascend 950PR/950DT; float has .* to half to int8_t\)"),
        ((np.float64(1), "half"), {}, "double to half is not a cast .* double has bfloat16_t, int32_t, float, int64_t"),
        ((1.0, "int32_t"), {"strict": True}, r"CAST_NONE is not a mode of float to int32_t .*CAST_RINT, CAST_ROUND"),
        ((1.0, "half", "HYBRID"), {"strict": True}, "mode=CAST_HYBRID is not a mode of float to half"),
        ((1.0, "half"), {"product": "Atlas inference Vector Core"}, "Atlas inference Vector Core has no Cast"),
        ((1j, "float"), {}, "complex values cannot become float; cast their real and imaginary parts"),
        ((np.complex64([1j]), "half"), {}, "complex values cannot become half"),
        ((1.0, "complex64"), {}, "float to complex64 is not a cast"),
        ((True, "half"), {}, "bool to half is not a cast of Ascend 950PR/950DT; bool has none"),
        ((np.int32([1]), "half"), {"strict": True}, "deqscale is missing: int32_t to half on Ascend 950PR/950DT"),
        ((np.int32([1]), "half"), {"product": "310P"}, "deqscale is missing"),
        ((np.int32([1]), "half"), {"deqscale": 1e6}, "deqscale=1000000.0 must be a finite half"),
        ((np.int32([1]), "half"), {"deqscale": np.nan}, "deqscale=nan must be a finite half"),
        ((1.0, "half"), {"deqscale": 1.0}, "deqscale=1.0 is for the dequantising cast int32_t to half"),
        ((1.0, "hiflot8_t"), {}, "did you mean 'hifloat8_t'"),
        ((1.0, "half", "RINTT"), {}, "did you mean 'rint'"),
        ((1.0, "half", True), {}, "mode=True is not a cast mode"),
        ((1.0, "half", []), {}, r"mode=\[\] is not a cast mode"),
        ((1.0, "half"), {"product": "A7"}, "product='A7' is not an Ascend product"),
        ((ml_dtypes.bfloat16(1), "hifloat8_t"), {"strict": True}, "bfloat16_t to hifloat8_t is not a cast"),
        ((np.longdouble(1), "half"), {}, "is not an Ascend C type"),
        ((1.0, "half"), {"saturation": 1}, "saturation=1 must be None, True, False"),
        ((np.ones(3, np.float32), "half"), {"out": np.empty(4, np.uint16)}, "out has shape"),
    ],
)
def test_bad_input(arguments: tuple[Any, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ascend.cast(*arguments, **options)


def test_bad_types() -> None:
    with pytest.raises(TypeError, match=r"choices='x' must be an ascend\.Choices"):
        ascend.cast(1.0, "half", choices="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="deqscale='1' must be a number"):
        ascend.cast(np.int32([1]), "half", deqscale="1")  # type: ignore[arg-type]


def test_a_cached_mode_does_not_let_true_pass() -> None:
    ascend.cast(1.0, "half", 1)
    with pytest.raises(ValueError, match="mode=True"):
        ascend.cast(1.0, "half", True)


def test_default_scale_is_pyptos() -> None:
    assert ascend.cast(np.int32([7, -8]), "half").tolist() == [7, -8]


def test_ascend_a5_is_the_default_product() -> None:
    assert ascend.cast_rule("float", "half").product.name == A5
