"""Block formats: kernels against the exact specification, published vectors, hand-computed bytes, theory, bad input."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import bittrue as bt
from bittrue import exact_blocks
from bittrue.blockformats import CATALOGUE
from bittrue.exact_blocks import Block
from bittrue.kinds.block import ORDERS, BlockFormat, BlockRule, ScaledFormat, SharedExponentFormat

FORMATS = [f for f, _ in CATALOGUE]
SHARED = [f for f in FORMATS if isinstance(f, SharedExponentFormat)]
SCALED = [f for f in FORMATS if isinstance(f, ScaledFormat)]
POWERS = [f for f in SCALED if f.powers_of_two]
MODES = [m for m in bt.Rounding if m.value not in ("stochastic", "hybrid")]
DATA = Path(__file__).parent / "data"

# A user's own: other group and block sizes, other widths, other scales.
OWN = [
    SharedExponentFormat("own_32x4", block_size=32, mantissa_bits=4, mantissa="sign_magnitude", bias=128),
    SharedExponentFormat("own_64x7", block_size=64, mantissa_bits=7, shift_group=4, exponent_255="nan"),
    SharedExponentFormat("own_8x2", block_size=8, mantissa_bits=2, shift_group=1, mantissa="sign_magnitude"),
    ScaledFormat("own_fp6_16", block_size=16, element=bt.format("float6_e3m2fn"), scale=bt.format("e8m0")),
    ScaledFormat("own_int4", block_size=64, element=bt.format("int4"), scale=bt.format("e8m0"), fraction_bits=1),
    ScaledFormat(
        "own_ue5m3",
        block_size=8,
        element=bt.format("float8_e5m2"),
        scale=bt.FloatFormat("ue5m3", exponent_bits=5, mantissa_bits=3, signed=False, inf=False, nan="ones"),
    ),
]


def samples(fmt: BlockFormat, seed: int = 0) -> np.ndarray:
    """Blocks of float32 that reach every branch, uniform over patterns rather than over values."""
    rng = np.random.default_rng(seed)
    n = fmt.block_size

    def scaled(x: np.ndarray, low: int = -60, high: int = 60) -> np.ndarray:
        return np.ldexp(x, rng.integers(low, high, (len(x), 1))).astype(np.float32)

    def patterns(count: int, low: int, high: int) -> np.ndarray:
        bits = rng.integers(low, high, (count, n), np.uint32)
        return (bits | rng.integers(0, 2, (count, n), np.uint32) << 31).view(np.float32)

    ties = rng.integers(-300, 300, (4, n)) / np.float64(64) + rng.choice([0, 0.5], (4, n)) / 64
    near_top = rng.choice([1, -1], (4, n)) * (2 - rng.integers(0, 9, (4, n)) * 2.0 ** -rng.integers(2, 12, (4, n)))
    spike = np.zeros((2, n))
    spike[0, 1], spike[1, n - 1] = -1.999, 1
    sparse = np.where(rng.random((2, n)) < 0.7, 0, rng.standard_normal((2, n)))
    top = np.float32([[3.4028235e38] * n, [-3.4028235e38] * n])
    top[0, 1:], top[1, : n // 2] = rng.standard_normal(n - 1) * 1e37, 2.0**120
    zeros = np.zeros((2, n), np.float32)
    zeros[1, ::3] = -0.0
    edge = patterns(2, 0x00000001, 0x01800000)  # subnormals beside the smallest normal values
    return np.concatenate(
        [
            scaled(rng.standard_normal((3, n))),
            scaled(ties),
            scaled(near_top),
            scaled(near_top, -130, -124),
            scaled(spike),
            scaled(sparse),
            patterns(2, 0x00800000, 0x7F800000),
            patterns(2, 0x00000001, 0x00800000),
            edge,
            top,
            zeros,
        ]
    ).reshape(-1)


def numbers(x: np.ndarray) -> list:
    """Exact values of float32."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wide = x.astype(np.float64)
    return [v if v != v or v in (np.inf, -np.inf) or v == 0 else Fraction(v) for v in wide.tolist()]


def specified(x: np.ndarray, fmt: BlockFormat, rule: BlockRule, scale: Fraction = Fraction(1)) -> np.ndarray:
    """Bytes by the specification."""
    blocks = x.reshape(-1, fmt.block_size)
    data = b"".join(exact_blocks.to_bytes(exact_blocks.encode(numbers(b), fmt, rule, scale), fmt) for b in blocks)
    return np.frombuffer(data, np.uint8)


def specified_values(data: np.ndarray, fmt: BlockFormat, scale: Fraction = Fraction(1)) -> list:
    blocks = data.reshape(-1, fmt.block_bytes)
    return [v for b in blocks for v in exact_blocks.decode(exact_blocks.from_bytes(b.tobytes(), fmt), fmt, scale)]


def check(x: np.ndarray, fmt: BlockFormat, rule: BlockRule) -> None:
    got = bt.encode(x, fmt, rule=rule)
    assert got.tobytes() == specified(x, fmt, rule).tobytes()
    back = bt.decode(got, fmt)
    again = bt.quantize(x, fmt, rule=rule)
    np.testing.assert_array_equal(back.view(np.uint32), again.view(np.uint32))


# --- kernels against the specification --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.value)
@pytest.mark.parametrize("fmt", FORMATS + OWN, ids=str)
def test_every_rounding_mode(fmt: BlockFormat, mode: bt.Rounding) -> None:
    check(samples(fmt), fmt, BlockRule(rounding=mode))


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.value)
@pytest.mark.parametrize("overflow", ["saturate", "bump_block", "clear_e2_then_bump"])
@pytest.mark.parametrize("fmt", [f for f in [*SHARED, *OWN] if isinstance(f, SharedExponentFormat)], ids=str)
def test_every_overflow_policy(fmt: SharedExponentFormat, overflow: str, mode: bt.Rounding) -> None:
    if overflow == fmt.rule.overflow.value:
        return  # test_every_rounding_mode
    if overflow == "clear_e2_then_bump" and not fmt.shifts:
        with pytest.raises(ValueError, match="level-2"):
            bt.encode(np.zeros(8, np.float32), fmt, overflow=overflow)
        return
    check(samples(fmt, 1), fmt, BlockRule(rounding=mode, overflow=overflow))


@pytest.mark.parametrize("mode", ["nearest_even", "floor", "away", "nearest_down"])
@pytest.mark.parametrize(
    "change",
    [
        {"flush_subnormals": False},
        {"flush_subnormals": False, "overflow": "bump_block"},
        {"flush_subnormals": False, "zero_pair_shift": 0},
        {"zero_pair_shift": 0, "overflow": "clear_e2_then_bump"},
        {"min_code": "allow"},
        {"min_code": "never", "overflow": "bump_block"},
        {"negative_zero": "clear"},
        {"top_bump": "next", "overflow": "bump_block"},
    ],
    ids=str,
)
@pytest.mark.parametrize("fmt", SHARED, ids=str)
def test_every_other_policy(fmt: SharedExponentFormat, change: dict, mode: str) -> None:
    rule = {"rounding": mode, **change}
    if not fmt.shifts and "clear" in str(rule.get("overflow")):
        rule["overflow"] = "bump_block"
    if rule.get("top_bump") == "next" and fmt.bias == 128:
        pytest.skip("exponent 256 does not exist")
    check(samples(fmt, 2), fmt, BlockRule(**rule))


@pytest.mark.parametrize("mode", ["nearest_even", "floor", "ceil", "nearest_zero"])
@pytest.mark.parametrize("scale_rule", ["floor", "ceil", "even", "rceil"])
@pytest.mark.parametrize("fmt", [*POWERS, OWN[3], OWN[4]], ids=str)
def test_every_scale_rule(fmt: ScaledFormat, scale_rule: str, mode: str) -> None:
    change = {"min_code": "allow"} if mode == "ceil" and isinstance(fmt.element, bt.IntFormat) else {}
    check(samples(fmt, 3), fmt, BlockRule(rounding=mode, scale_rule=scale_rule, **change))


@pytest.mark.parametrize("scale_floor", ["zero", "subnormal", "normal"])
@pytest.mark.parametrize("fmt", [bt.format("nvfp4"), OWN[5]], ids=str)
def test_scales_by_division(fmt: ScaledFormat, scale_floor: str) -> None:
    for mode in ("nearest_even", "ceil", "trunc"):
        check(samples(fmt, 4), fmt, BlockRule(rounding=mode, scale_floor=scale_floor))


@pytest.mark.parametrize("scale", [np.float32(0.1), np.float32(2.0**-40 * 1.7), np.float32(1e20)])
@pytest.mark.parametrize("mode", ["nearest_even", "floor", "away"])
def test_the_scale_of_a_tensor(scale: np.float32, mode: str) -> None:
    fmt, rule = bt.format("nvfp4"), BlockRule(rounding=mode)
    x = samples(fmt, 5) * np.float32(1e-3)
    exact_scale = Fraction(float(scale))
    got = bt.encode(x, fmt, rule=rule, scale=scale)
    assert got.tobytes() == specified(x, fmt, rule, exact_scale).tobytes()
    wanted = [float(v) for v in specified_values(got, fmt, exact_scale)]
    np.testing.assert_array_equal(bt.decode(got, fmt, np.float64, scale=scale), wanted)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(bt.quantize(x, fmt, mode, scale=scale), np.float64(wanted).astype(np.float32))
    wide = bt.encode(x.astype(np.float64), fmt, rule=rule, scale=scale)
    assert wide.tobytes() == got.tobytes()


def nonfinite(fmt: BlockFormat) -> np.ndarray:
    x = samples(fmt, 6).reshape(-1, fmt.block_size)[:9].copy()
    x[0, 1], x[1, 0], x[2, :2], x[3, 3] = np.inf, -np.inf, (np.nan, 1), np.nan
    x[4], x[5, 2] = np.nan, np.float32(3.4028235e38)
    x.view(np.uint32)[6, 5], x.view(np.uint32)[7, 7] = 0xFF800001, 0xFFFFFFFF
    return x.reshape(-1)


@pytest.mark.parametrize("policy", ["raise", "nan_block", "saturate", "coded"])
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_inf_and_nan(fmt: BlockFormat, policy: str) -> None:
    x, scaled = nonfinite(fmt), isinstance(fmt, ScaledFormat)
    possible = {
        "raise": True,
        "saturate": True,
        "nan_block": scaled or fmt.exponent_255 == "nan",
        "coded": not scaled and fmt.exponent_255 == "finite" and fmt.bias == 127,
    }
    if not possible[policy]:
        with pytest.raises(ValueError, match=policy):
            bt.encode(x, fmt, rule=BlockRule(nonfinite=policy))
    elif policy == "raise":
        for run in (bt.encode, bt.quantize):
            with pytest.raises(ValueError, match="nonfinite='raise'"):
                run(x, fmt, rule=BlockRule(nonfinite=policy))
            with pytest.raises(ValueError, match="nonfinite='raise'"):
                run(x, fmt, nan="raise")
    else:
        for mode in ("nearest_even", "floor", "ceil"):
            check(x, fmt, BlockRule(nonfinite=policy, rounding=mode))


@pytest.mark.parametrize("fmt", FORMATS + OWN, ids=str)
def test_every_byte_decodes_as_specified(fmt: BlockFormat) -> None:
    rng = np.random.default_rng(7)
    data = rng.integers(0, 256, (40, fmt.block_bytes), np.uint8)
    data[:4, 0] = 0, 1, 254, 255
    if isinstance(fmt, ScaledFormat):
        data[:, 0] &= (1 << fmt.scale.bits) - 1
    wanted = np.array([float(v) for v in specified_values(data, fmt)])
    flat = data.reshape(-1)
    np.testing.assert_array_equal(bt.decode(flat, fmt, np.float64), wanted)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(bt.decode(flat, fmt), wanted.astype(np.float32))
        np.testing.assert_array_equal(
            bt.decode(flat, fmt, ml_dtypes.bfloat16).astype(np.float64), wanted.astype(ml_dtypes.bfloat16).astype(float)
        )
    assert (np.signbit(bt.decode(flat, fmt)) == np.signbit(wanted))[~np.isnan(wanted)].all()


# Blocks as long as a whole vector and longer, and those of which several fill one.
ANY_SIZE = [
    *(bt.format(name) for name in ("mx9", "bfp16ebs8", "mxfp8_e4m3", "nvfp4")),
    *OWN[:5],
    SharedExponentFormat("own_128x6", block_size=128, mantissa_bits=6, shift_group=8, bias=127),
]


@pytest.mark.parametrize("fmt", ANY_SIZE, ids=str)
def test_any_number_of_blocks(fmt: BlockFormat) -> None:
    x = samples(fmt, 3)
    for count in (1, 3):
        check(x[7 * fmt.block_size :][: count * fmt.block_size], fmt, fmt.rule)


def test_zero_at_the_largest_exponent() -> None:
    fmt = OWN[2]  # two bits: its power of two at exponent 255 is beyond float32
    data = np.uint8([255, 0, 0b00110100, 0])
    values = specified_values(data, fmt)
    assert [v for v in values if v == 0] == [0] * 6
    expected = np.float32([v and np.inf if v >= 0 else -np.inf for v in values])
    np.testing.assert_array_equal(bt.decode(data, fmt), expected)


@pytest.mark.parametrize("fmt", SHARED, ids=str)
def test_every_pattern_of_the_mantissa_field_survives(fmt: SharedExponentFormat) -> None:
    size = fmt.block_size - 1
    codes = np.resize(np.arange(1 << fmt.mantissa_bits), (-(-(1 << fmt.mantissa_bits) // size), size)).tolist()
    for row in codes:
        block = Block(130, (0,) * fmt.shifts, (1 << fmt.fraction_bits, *row))
        image = exact_blocks.to_bytes(block, fmt)
        assert exact_blocks.from_bytes(image, fmt) == block
        heads, _, found = bt.blocks.take_apart(np.frombuffer(image, np.uint8), fmt)
        assert heads[0] == 130 and tuple(found[0]) == block.codes
        values = bt.decode(np.frombuffer(image, np.uint8), fmt)
        assert values.tolist() == [float(v) for v in exact_blocks.decode(block, fmt)]
        if -2 * values[0] not in values:  # -2.0 has the next exponent, at which the others have a bit less
            np.testing.assert_array_equal(bt.quantize(values, fmt).view(np.uint32), values.view(np.uint32))


# --- sources, axes, threads, outputs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_sources(fmt: BlockFormat) -> None:
    x = samples(fmt, 8)
    with np.errstate(over="ignore", invalid="ignore"):
        half, brain = x.astype(np.float16), x.astype(ml_dtypes.bfloat16)
    half[~np.isfinite(half)], brain[~np.isfinite(brain)] = 1, 1
    for source in (half, brain, np.arange(-50, 46, dtype=np.int8), np.arange(96, dtype=np.uint16)):
        wanted = bt.encode(source.astype(np.float32), fmt)
        np.testing.assert_array_equal(bt.encode(source, fmt), wanted)
        got = bt.quantize(source, fmt)
        assert got.dtype == (source.dtype if source.dtype.kind not in "iu" else np.float32)
        with np.errstate(over="ignore"):
            kept = bt.decode(wanted, fmt)[: source.size].astype(got.dtype)
        np.testing.assert_array_equal(got.astype(np.float64), kept.astype(np.float64))


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_wide_sources_round_once(fmt: BlockFormat) -> None:
    """Values just beside the ties of float32: rounding to float32 first would make ties of them."""
    x = samples(fmt, 9).reshape(-1, fmt.block_size)[3:9].astype(np.float64)
    x *= 1 + np.random.default_rng(0).choice([-1, 0, 1], x.shape) * 2.0**-50
    for mode in ("nearest_even", "ceil", "nearest_zero"):
        rule = BlockRule(rounding=mode)
        assert bt.encode(x.reshape(-1), fmt, rule=rule).tobytes() == specified(x, fmt, rule).tobytes()
    big = np.random.default_rng(1).integers(-(2**62), 2**62, fmt.block_size)
    wanted = exact_blocks.to_bytes(exact_blocks.encode([Fraction(int(v)) for v in big], fmt), fmt)
    assert bt.encode(big, fmt).tobytes() == wanted
    assert bt.encode([str(v) for v in big], fmt).tobytes() == wanted
    assert bt.encode([Fraction(int(v)) for v in big], fmt).tobytes() == wanted
    assert bt.quantize(big, fmt).dtype == np.float64


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("name", ["mx9", "mx6_am027", "bfp16ebs8", "mxfp4", "nvfp4"])
def test_axes_and_partial_blocks(name: str, axis: int) -> None:
    fmt = bt.format(name)
    x = np.random.default_rng(0).standard_normal((3, 41, 20)).astype(np.float32)
    moved = np.moveaxis(x, axis, -1)
    n, blocks = moved.shape[-1], fmt.blocks(moved.shape[-1])
    padded = np.zeros((*moved.shape[:-1], blocks * fmt.block_size), np.float32)
    padded[..., :n] = moved
    wanted = bt.encode(padded.reshape(-1), fmt).reshape(*moved.shape[:-1], blocks * fmt.block_bytes)
    got = bt.encode(x, fmt, axis=axis)
    np.testing.assert_array_equal(got, wanted)
    back = bt.decode(got, fmt, axis=axis)
    keep = [slice(None)] * 3
    keep[axis] = slice(n)
    np.testing.assert_array_equal(bt.quantize(x, fmt, axis=axis), back[tuple(keep)])
    np.testing.assert_array_equal(bt.quantize(np.asfortranarray(x), fmt, axis=axis), back[tuple(keep)])


@pytest.mark.parametrize("name", ["mx9", "mx4", "mxfp6_e2m3", "nvfp4"])
def test_threads_and_out(name: str) -> None:
    fmt = bt.format(name)
    x = np.random.default_rng(0).standard_normal(fmt.block_size * 3001).astype(np.float32)
    wanted = bt.encode(x, fmt, threads=1)
    for threads in (2, 3, 7):
        np.testing.assert_array_equal(bt.encode(x, fmt, threads=threads), wanted)
        np.testing.assert_array_equal(bt.decode(wanted, fmt, threads=threads), bt.decode(wanted, fmt, threads=1))
        np.testing.assert_array_equal(bt.quantize(x, fmt, threads=threads), bt.decode(wanted, fmt))
    out = np.zeros(2 * wanted.size, np.uint8)[::2]
    assert bt.encode(x, fmt, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    y = np.empty_like(x)
    assert bt.decode(wanted, fmt, out=y) is y and bt.quantize(x, fmt, out=y) is y
    np.testing.assert_array_equal(y, bt.decode(wanted, fmt))
    same = x.copy()
    assert bt.quantize(same, fmt, out=same) is same
    np.testing.assert_array_equal(same, y)
    assert bt.encode(x[:0], fmt).size == bt.decode(wanted[:0], fmt).size == bt.quantize(x[:0], fmt).size == 0


# --- published vectors ------------------------------------------------------------------------------------------------


def rows(name: str, kind: str, *wanted: str) -> list[dict]:
    with open(DATA / name, newline="") as file:
        return [row for row in csv.DictReader(file) if row[kind] in wanted]


GOLDEN = rows("aie_golden.csv", "op", "float_to_bfp16ebs8", *(f"float_mx{n}_roundtrip" for n in (9, 6, 4)))
#: aie::rounding_mode, by the names of specs/aie.md 4.1.
AIE_MODES = {
    "floor": "floor",
    "ceil": "ceil",
    "symmetric_floor": "trunc",
    "symmetric_ceil": "away",
    "positive_inf": "nearest_up",
    "negative_inf": "nearest_down",
    "symmetric_inf": "nearest_away",
    "symmetric_zero": "nearest_zero",
    "conv_even": "nearest_even",
    "conv_odd": "nearest_odd",
}


def floats(text: str) -> np.ndarray:
    return np.array([int(v, 16) for v in json.loads(text)], np.uint32).view(np.float32)


@pytest.mark.parametrize("row", GOLDEN, ids=lambda r: f"{r['op']}-{json.loads(r['params'])['case']}")
def test_golden_vectors_of_the_ai_engine(row: dict) -> None:
    params, x = json.loads(row["params"]), floats(row["input"])
    mode = AIE_MODES[params["rounding"]]
    if row["op"] == "float_to_bfp16ebs8":
        exponent, mantissas = json.loads(row["expected"])
        got = bt.encode(x, "bfp16ebs8", mode)
        assert got.tolist() == [exponent, *(m & 0xFF for m in mantissas)]
        return
    name = row["op"].split("_")[1]
    wanted = json.loads(row["expected"])
    for fmt in (name, f"{name}_am027"):
        if wanted[0] == "nan":
            with pytest.raises(ValueError, match="raise") if fmt == name else np.errstate():
                assert np.isnan(bt.quantize(x, fmt, mode)).all()
            continue
        got, values = bt.quantize(x, fmt, mode), floats(row["expected"])
        if fmt == name:
            np.testing.assert_array_equal(got.view(np.uint32), values.view(np.uint32))
        np.testing.assert_array_equal(got, values)


CASES = rows("cases.csv", "kind", "block", "bfp")
CASE_FORMATS = {"mxfp8_e4m3fn": "mxfp8_e4m3", "mxfp4_e2m1fn": "mxfp4", "mx9": "mx9_am027", "mx6": "mx6_am027"}


@pytest.mark.parametrize("row", CASES, ids=lambda r: r["id"])
def test_published_cases(row: dict) -> None:
    params, fmt = json.loads(row["params"]), bt.format(CASE_FORMATS.get(row["target_format"], row["target_format"]))
    if row["id"] == "bfp-007":  # sizes and layouts in words
        x = np.arange(64, dtype=np.float32)
        stream = bt.encode(x, fmt)
        register = bt.blocks.to_register(stream, fmt)
        assert stream.size == register.size == 72
        assert register[64:].tolist() == stream[::9].tolist()
        assert register[:8].tolist() == stream[1:9].tolist()
        np.testing.assert_array_equal(bt.blocks.from_register(register, fmt), stream)
        return
    x = np.array([bit_value(v) for v in json.loads(row["input"])])
    rule = BlockRule(scale_rule=params.get("scale_rule"))
    got = bt.encode(x, fmt, params.get("rounding"), rule=rule)
    if row["id"] == "blk-008":  # a NaN makes the scale NaN; the element codes do not matter
        assert got[0] == 0xFF and np.isnan(bt.decode(got, fmt)).all()
        return
    block = exact_blocks.from_bytes(got.tobytes(), fmt)
    head = [block.exponent, *([sum(s << p for p, s in enumerate(block.shifts))] if block.shifts else [])]
    wanted = [int(v, 16) for v in json.loads(row["expected"])]
    assert [*head, *block.codes][: len(wanted)] == wanted
    assert not any(block.codes[len(wanted) - len(head) :])


def bit_value(text: str) -> float:
    return float.fromhex(text) if "p" in text else float(np.array(int(text, 16), np.uint32).view(np.float32))


# --- bytes by hand ----------------------------------------------------------------------------------------------------

# x = 1, -1.5, 0.25, 0, 0.75, -0.25, then zeros: the largest exponent is 0.
# Pair 0 is at it (E2 = 0), all others are below (E2 = 1), zero pairs too: E2 byte 0b11111110.
HAND = np.float32([1, -1.5, 0.25, 0, 0.75, -0.25] + [0] * 10)
HAND_BYTES = {
    # 1 = 64/64; -1.5 = -96/64; at E2 = 1 the step is 1/128: 32, 0, 96, -32. E1 = 128 (sign and magnitude), 127 (two's).
    "mx9": "80fe 40e0 2000 60a0" + "00" * 10,
    "mx9_am027": "7ffe 40a0 2000 60e0" + "00" * 10,
    # f = 3: 8, -12; at E2 = 1: 4, 0, 12, -4. Five bits each, element 0 lowest:
    # sign and magnitude 01000 11100 00100 00000 01100 10100: bits 0-7 = 100_01000 = 88, 8-15 = 0_00100_11 = 13,
    # 16-23 = 1100_0000 = c0, 24-31 = 00_10100_0 = 28.
    "mx6": "80fe 88 13 c0 28" + "00" * 6,
    # two's complement: 01000 10100 00100 00000 01100 11100: 100_01000 = 88, 0_00100_10 = 12, c0, 00_11100_0 = 38.
    "mx6_am027": "7ffe 88 12 c0 38" + "00" * 6,
    # f = 1: 2, -3; at E2 = 1: 1, 0, 3, -1. Three bits each: 010 111 001 000 011 101:
    # 01_111_010 = 7a, 1_011_000_0 = b0, 00_0000_10 = 02.
    "mx4": "80fe 7a b0 02" + "00" * 3,
    # two's complement: 010 101 001 000 011 111: 01_101_010 = 6a, 1_011_000_0 = b0, 00_0000_11 = 03.
    "mx4_am027": "7ffe 6a b0 03" + "00" * 3,
}


@pytest.mark.parametrize("name", HAND_BYTES)
def test_bytes_by_hand(name: str) -> None:
    wanted = bytes.fromhex(HAND_BYTES[name])
    assert len(wanted) == {"9": 18, "6": 12, "4": 8}[name[2]]
    got = bt.encode(HAND, name)
    assert got.tobytes() == wanted
    np.testing.assert_array_equal(bt.decode(got, name), HAND)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bits", ["lsb", "msb", "planes"])
@pytest.mark.parametrize("width", [8, 5, 3])
def test_other_layouts(width: int, bits: str, order: str) -> None:
    for shift_order in ("lsb", "msb"):
        fmt = SharedExponentFormat(
            "layout",
            mantissa_bits=width,
            shift_group=2,
            exponent_255="nan",
            order=order,
            shift_order=shift_order,
            bit_layout=bits,
        )
        x = samples(fmt, 10)[: 4 * 16]
        got = bt.encode(x, fmt)
        assert got.tobytes() == specified(x, fmt, fmt.rule).tobytes()
        np.testing.assert_array_equal(bt.decode(got, fmt), [float(v) for v in specified_values(got, fmt)])


def test_planes_by_hand() -> None:
    """16 low fields of four bits, then 16 top bits."""
    layout = {"mantissa": "sign_magnitude", "bias": 128, "shift_group": 2, "bit_layout": "planes"}
    fmt = SharedExponentFormat("planes", mantissa_bits=5, **layout)
    got = bt.encode(HAND, fmt)
    # low: 8, 12, 4, 0, 12, 4 -> c8 04 4c; tops: elements 1 and 5 negative -> 0b100010 = 22
    assert got.tobytes() == bytes.fromhex("80fe c8 04 4c" + "00" * 5 + "22 00")


def test_pieces_cover_the_block() -> None:
    for fmt in FORMATS + OWN:
        bits = sorted(b for piece in fmt.pieces() for b in range(piece.bit, piece.bit + piece.width))
        assert bits == list(range(8 * fmt.block_bytes)), fmt.name


WHOLE = np.arange(-20.0, 28.0)  # three blocks of 16: every format with six fraction bits holds these exactly


@pytest.mark.parametrize("order", "<>=")
@pytest.mark.parametrize("name", ["mx9", "mx9_am027", "bfp16ebs16"])
def test_values_in_any_byte_order(name: str, order: str) -> None:
    """What goes in with foreign bytes comes out as the same numbers, and so does what is asked for in them."""
    for kind in ("f2", "f4", "f8", "i2", "i8"):
        x = WHOLE.astype(order + kind)
        found = bt.quantize(x, name)
        assert found.tolist() == WHOLE.tolist() and found.dtype.isnative
        assert bt.quantize(x[:41], name).tolist() == WHOLE[:41].tolist()
        if kind[0] == "f":
            back = bt.decode(bt.encode(x, name), name, order + kind)
            assert back.dtype == np.dtype(order + kind) and back.tolist() == WHOLE.tolist()


def test_where_results_may_go() -> None:
    for size in (48, 41):  # whole blocks, and a last one that is not full
        y = (WHOLE[:size] / 3).astype(np.float32)
        wanted = bt.quantize(y.copy(), "mx6").tolist()
        assert bt.quantize(y, "mx6", out=y) is y and y.tolist() == wanted
    y = np.ones((4, 20), np.float32)
    assert bt.quantize(y, "mx6", axis=0, out=y) is y and (y == 1).all()
    y, codes, frozen = np.ones(64, np.float32), bt.encode(WHOLE, "mx9"), np.ones(48, np.float32)
    frozen.setflags(write=False)
    shared = np.frombuffer(bytearray(192), np.uint8)
    refused = [
        (lambda: bt.quantize(y[:48], "mx9", out=y[16:]), "out overlaps the input"),
        (lambda: bt.encode(y[:16], "mx9", out=y.view(np.uint8)[:18]), "out overlaps the input"),
        (lambda: bt.decode(shared[:54], "mx9", out=shared.view(np.float32)), "out overlaps the input"),
        (lambda: bt.quantize(WHOLE.astype("f4"), "mx9", out=frozen), "out is read-only"),
        (lambda: bt.decode(codes, "mx9", out=frozen), "out is read-only"),
        (lambda: bt.decode(codes, "mx9", out=np.ones(47, np.float32)), r"out has shape \(47,\).* expected \(48,\)"),
        (lambda: bt.decode(codes, "mx9", np.complex128), "dtype=complex128 cannot hold the values of mx9"),
        (lambda: bt.decode(codes, "mx9", np.int64), "dtype=int64 cannot hold the values of mx9"),
    ]
    for make, message in refused:
        with pytest.raises(ValueError, match=message):
            make()
    for make in (bt.quantize, bt.encode):
        with pytest.raises(TypeError, match="out must be a NumPy array, not list"):
            make(WHOLE, "mx9", out=[1])
    with pytest.raises(TypeError, match="out must be a NumPy array, not list"):
        bt.decode(codes, "mx9", out=[1])


def test_results_of_lists_are_those_of_float64() -> None:
    x = [2.0**130, 1.0]  # beyond float32: counts as its largest value, whose neighbour below in mx9 is 127/64 * 2**127
    assert bt.quantize(x, "mx9").dtype == np.float64
    assert bt.quantize(x, "mx9").tolist() == [127 * 2.0**121, 0.0]


def test_the_usual_scale_of_a_tensor() -> None:
    """The largest magnitude over 6 * 448, always a positive float32."""
    scale = bt.blocks.tensor_scale
    assert scale(np.float64([-2688 * 3, 1])) == 3
    assert scale([]) == scale(np.zeros(3)) == 1
    assert scale([1e-45]) == np.float32(2.0**-149)
    assert scale([1e300]) == np.float32(float(np.finfo(np.float32).max) / 2688)
    assert scale(np.array([2688, -5376], ">f2")) == 2
    for bad in (np.inf, np.nan):
        with pytest.raises(ValueError, match="x has an Inf or a NaN"):
            scale([1, bad])
    with pytest.raises(ValueError, match="scale='x' must be one positive number"):
        bt.encode(WHOLE, "nvfp4", scale="x")
    with pytest.raises(ValueError, match=r"scale=1e\+39 is not a float32; the nearest is np.float32\(inf\)"):
        bt.encode(WHOLE, "nvfp4", scale=1e39)


# --- theory -----------------------------------------------------------------------------------------------------------


def transcribed(x: np.ndarray, f: int) -> np.ndarray:
    """MX quantisation with half-even rounding in plain float64, straight from UG1603's description."""
    blocks = x.astype(np.float64).reshape(-1, 8, 2)
    exponent = np.where(blocks == 0, -127, np.floor(np.log2(np.maximum(np.abs(blocks), 2.0**-127))))
    top = exponent.max(axis=(1, 2), keepdims=True)
    shift = np.minimum(1, top - exponent.max(axis=2, keepdims=True))
    step = 2.0 ** (top - shift - f)
    limit = 2 ** (f + 1) - 1
    return (np.clip(np.rint(blocks / step), -limit, limit) * step).reshape(-1)


def test_sqnr_of_mx_on_normal_input() -> None:
    x = np.random.default_rng(0).standard_normal(1 << 18).astype(np.float32)
    found = {}
    for name, f in (("mx9", 6), ("mx6", 3), ("mx4", 1)):
        y, wanted = bt.quantize(x, name).astype(np.float64), transcribed(x, f)
        np.testing.assert_array_equal(y, wanted)
        found[name] = 10 * np.log10(np.sum(x.astype(float) ** 2) / np.sum((x - y) ** 2))
    assert found["mx9"] > found["mx6"] > found["mx4"]
    # Three bits are about 6.02 dB each: 18 dB from mx9 to mx6, 12 dB from mx6 to mx4.
    assert abs(found["mx9"] - found["mx6"] - 18.06) < 1
    assert abs(found["mx6"] - found["mx4"] - 12.04) < 1.5


def test_bump_leaves_no_overflow() -> None:
    """After one bump no mantissa is beyond the range: nothing is off by a whole step (specs/aie.md 6.3)."""
    for fmt in SHARED:
        x = samples(fmt, 11)
        blocks = np.abs(x.astype(np.float64)).reshape(-1, fmt.block_size)
        step = blocks.max(axis=1, keepdims=True) * 2.0 ** (1 - fmt.fraction_bits)
        moderate = np.broadcast_to(step < 2.0**120, blocks.shape).reshape(-1)
        bound = np.broadcast_to(step + 2.0**-126, blocks.shape).reshape(-1)
        for mode in MODES:
            error = np.abs(bt.quantize(x, fmt, mode, "bump_block").astype(np.float64) - x)
            assert (error < bound)[moderate].all()


# --- another implementation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", POWERS, ids=str)
def test_ocp_elements_against_gfloat(fmt: ScaledFormat) -> None:
    """OCP floor rule by gfloat's own block code; its element rounding, its e8m0."""
    gfloat = pytest.importorskip("gfloat")
    formats = pytest.importorskip("gfloat.formats")
    known = {
        "mxfp8_e5m2": formats.format_info_ocp_e5m2,
        "mxfp8_e4m3": formats.format_info_ocp_e4m3,
        "mxfp6_e3m2": formats.format_info_ocp_e3m2,
        "mxfp6_e2m3": formats.format_info_ocp_e2m3,
        "mxfp4": formats.format_info_ocp_e2m1,
        "mxint8": formats.format_info_ocp_int8,
    }
    if fmt.name not in known:
        pytest.skip("gfloat has no such block format")
    element = known[fmt.name]
    rng = np.random.default_rng(12)
    x = np.ldexp(rng.standard_normal((12, 32)), rng.integers(-40, 40, (12, 1))).astype(np.float32)
    for row in x:
        emax = int(np.floor(np.log2(element.max)))
        scale = 2.0 ** (np.floor(np.log2(np.abs(row).max().astype(np.float64))) - emax)
        wanted = [gfloat.round_float(element, float(v) / scale, gfloat.RoundMode.TiesToEven, True) * scale for v in row]
        if fmt.name == "mxint8":  # gfloat saturates at -2, OCP lets the code be unused: our default keeps the symmetry
            wanted = [max(v, -127 / 64 * scale) for v in wanted]
        np.testing.assert_array_equal(bt.quantize(row, fmt), np.array(wanted, np.float32))


# --- bad input --------------------------------------------------------------------------------------------------------


def test_bad_input() -> None:
    x = np.zeros((4, 32), np.float32)
    with pytest.raises(ValueError, match=r"17 bytes are not whole blocks of mx9, which take 18"):
        bt.decode(np.zeros(17, np.uint8), "mx9")
    with pytest.raises(ValueError, match="axis=2 is out of range for 2 dimensions"):
        bt.encode(x, "mx9", axis=2)
    with pytest.raises(ValueError, match="axis=-3 is out of range"):
        bt.quantize(x, "mxfp4", axis=-3)
    with pytest.raises(ValueError, match="no axis"):
        bt.encode(1.0, "mx9")
    with pytest.raises(ValueError, match="scale code 0x8f is reserved in float8_ue4m3fn"):
        bt.decode(np.full(9, 0x8F, np.uint8), "nvfp4")
    with pytest.raises(ValueError, match="zero_point"):
        bt.encode(x, "mx9", zero_point=1)
    with pytest.raises(ValueError, match="no scale of the whole tensor"):
        bt.encode(x, "mxfp4", scale=2.0)
    with pytest.raises(ValueError, match="not a float32"):
        bt.encode(x, "nvfp4", scale=0.1)
    with pytest.raises(ValueError, match="stochastic"):
        bt.encode(x, "mx9", "stochastic")
    with pytest.raises(ValueError, match="did you mean 'bump_block'"):
        bt.encode(x, "mx9", overflow="bump_blocks")
    with pytest.raises(ValueError, match="scale_rule='ceil' has no meaning for mx9"):
        bt.encode(x, "mx9", rule=BlockRule(scale_rule="ceil"))
    with pytest.raises(ValueError, match="overflow='bump_block' has no meaning for mxfp4"):
        bt.encode(x, "mxfp4", rule=BlockRule(overflow="bump_block"))
    with pytest.raises(ValueError, match="must be from 2 to 8"):
        SharedExponentFormat("bad", mantissa_bits=9)
    with pytest.raises(ValueError, match="power of two"):
        SharedExponentFormat("bad", block_size=24)
    with pytest.raises(TypeError, match="bytes"):
        bt.decode(np.zeros(18, np.float32), "mx9")
    with pytest.raises(OverflowError, match="top_bump"):
        bt.encode(np.full(8, 3.4028235e38, np.float32), "bfp16ebs8", rule=BlockRule(top_bump="raise"))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int16"])
@pytest.mark.parametrize("name", ["mx9", "bfp16ebs8", "mxfp4", "nvfp4"])
def test_nothing_stays_nothing(name, dtype):
    for shape in ((0,), (0, 16), (3, 0)):
        x = np.zeros(shape, dtype)
        assert bt.quantize(x, name).shape == shape and bt.encode(x, name).size == 0
    assert bt.decode(np.zeros(0, np.uint8), name, np.float64).shape == (0,)
