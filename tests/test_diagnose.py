"""`diagnose` on dumps that this file makes by transcriptions of its own: no conversion of the package makes a dump."""

from __future__ import annotations

import bisect
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import bittrue as bt
from bittrue.cli import main
from bittrue.diagnosis import diagnose

RNG = np.random.default_rng(11)


# --- transcriptions ---------------------------------------------------------------------------------------------------


def table(f):
    """Values and codes of the finite numbers of a small format, ascending; +0 before -0."""
    rows = []
    for code, value in enumerate(f.values()):
        if math.isfinite(value):
            rows.append((Fraction(value), code))
    rows.sort(key=lambda r: r[0])
    return rows


def picks(x, low, high, rounding):
    """Choose between the neighbours of x: `low` or `high`, rows (value, code)."""
    x = Fraction(x)
    if x == low[0]:
        return low
    if rounding == "floor":
        return low
    if rounding == "ceil":
        return high
    toward, away = (low, high) if x > 0 else (high, low)
    if rounding == "trunc":
        return toward
    if rounding == "away":
        return away
    if rounding == "odd":
        return low if low[1] & 1 else high
    if x - low[0] != high[0] - x:
        return low if x - low[0] < high[0] - x else high
    return {
        "nearest_even": low if not low[1] & 1 else high,
        "nearest_odd": low if low[1] & 1 else high,
        "nearest_away": away,
        "nearest_zero": toward,
        "nearest_up": high,
        "nearest_down": low,
    }[rounding]


MIRRORED = {"floor": "ceil", "ceil": "floor", "nearest_up": "nearest_down", "nearest_down": "nearest_up"}


def convert(x, f, rounding, overflow="saturate", nan="keep", flush_out=False, flush_in=False):
    """float32 to an IEEE-like format of 8 bits or fewer, number by number, from its values alone."""
    rows = table(f)
    values = [r[0] for r in rows]
    top, before = rows[-1], rows[-2]
    beyond = (2 * top[0] - before[0], top[1] + 1)  # the next value if the exponent had no end
    codes = []
    sign = 1 << (f.bits - 1)
    positive = {value: (value, code) for value, code in rows if not code & sign}
    for v in x.tolist():
        minus = math.copysign(1, v) < 0
        if math.isnan(v):
            codes.append({"keep": f.nan_code, "zero": 0, "max": top[1]}[nan])
            continue
        size = abs(v)
        if math.isinf(size):
            over = True
        else:
            if flush_in and 0 < size < 2.0**-126:
                size = 0.0
            inside = size <= top[0]
            at = bisect.bisect_right(values, Fraction(size)) - 1 if inside else len(values)
            if at < len(values) and values[at] == Fraction(size):
                chosen = positive[values[at]]
            else:
                low, high = (rows[at], rows[at + 1]) if at < len(values) - 1 else (top, beyond)
                low = positive.get(low[0], low)
                mode = MIRRORED.get(rounding, rounding) if minus else rounding
                chosen = beyond if Fraction(size) >= beyond[0] else picks(size, low, high, mode)
            over = chosen[1] == beyond[1] and chosen[0] == beyond[0]
        if over:
            inf = f.inf_magnitude if f.inf_magnitude is not None else f.nan_code
            finite = not math.isinf(v)
            saturates = overflow == "saturate" or (overflow == "saturate_finite" and finite)
            magnitude = top[1] if saturates else inf if inf is not None else top[1]
        else:
            magnitude = chosen[1]
            if flush_out and Fraction(size) and f.magnitude_value(magnitude) < f.min_normal:
                magnitude = 0
        codes.append(magnitude | (sign if minus else 0))
    return np.array(codes, np.uint8)


def telling_input(f):
    """float32 numbers that tell rules apart: ties of both parities and signs, near ties, limits, specials."""
    values = sorted({abs(v) for v in f.values() if math.isfinite(v)})
    middles = [float((Fraction(a) + Fraction(b)) / 2) for a, b in zip(values, values[1:])]
    top = float(values[-1])
    step = top - float(values[-2])
    some = middles[::3] + middles[1::3][:20]
    x = [*some, *(m * 1.001 for m in some), *(m * 0.999 for m in some), *map(float, values[::4])]
    x += [top + step / 4, top + step / 2, top + step * 0.75, top * 2, top * 64, math.inf, 1e-39]
    x.append(float(f.min_subnormal) * 1.5)
    x = np.array(x + [-v for v in x] + [math.nan], np.float32)
    rng = np.random.default_rng(5)
    extra = rng.standard_normal(4 * 96 - x.size % 96 if x.size % 96 else 96).astype(np.float32)
    x = np.concatenate([x, extra, np.zeros(-(x.size + extra.size) % 32, np.float32)])
    rng.shuffle(x)
    return x


E4M3, E5M2, HIF8 = bt.format("float8_e4m3fn"), bt.format("float8_e5m2"), bt.format("hifloat8")


# --- rules ------------------------------------------------------------------------------------------------------------

MODES = ["nearest_even", "nearest_away", "nearest_zero", "nearest_up", "nearest_down", "nearest_odd", "floor", "ceil",
         "trunc", "away", "odd"]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_every_rounding_mode(mode):
    x = telling_input(E4M3)
    found = diagnose(x, convert(x, E4M3, mode), to=E4M3)
    assert found.explained and found.best.rule.startswith(mode) and found.best.slip == "", str(found)
    assert found.best.core_rule.rounding.value == mode


@pytest.mark.parametrize("overflow", ["saturate", "saturate_finite", "infinity"])
@pytest.mark.parametrize("nan", ["keep", "zero", "max"])
def test_overflow_and_nan_rules(overflow, nan):
    x = telling_input(E5M2)
    found = diagnose(x, convert(x, E5M2, "nearest_even", overflow, nan), to=E5M2)
    assert found.verdict == "explained", str(found)
    assert (found.best.core_rule.overflow.value, found.best.core_rule.nan.value) == (overflow, nan)


@pytest.mark.parametrize(("flush_in", "flush_out"), [(False, True)])
def test_flushed_subnormals(flush_in, flush_out):
    x = telling_input(E5M2)
    found = diagnose(x, convert(x, E5M2, "nearest_even", flush_in=flush_in, flush_out=flush_out), to=E5M2)
    assert found.explained and found.best.core_rule.flush_outputs is flush_out, str(found)


def test_flushed_inputs():
    """float32 subnormals to bfloat16, which holds them."""
    bits = RNG.integers(0, 1 << 32, 4096, dtype=np.uint64).astype(np.uint32)
    bits[::4] &= 0x807FFFFF
    x = bits.view(np.float32)
    nearest = (bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
    dump = np.where(np.isnan(x), 0x7FC0, np.minimum(nearest & 0x7FFF, 0x7F7F) | (nearest & 0x8000)).astype(np.uint16)
    small = (bits & 0x7F800000) == 0
    dump[small] &= 0x8000
    found = diagnose(x, dump, to="bfloat16")
    assert found.explained and "subnormal inputs flushed" in found.best.name, str(found)


def hybrid(x):
    """Ascend C's HYBRID from float32, from its description: F >= T from |E| = 4 on, half away below."""
    order = {Fraction(v): c for c, v in enumerate(HIF8.values()) if math.isfinite(v)}
    codes = []
    for v in x.tolist():
        size, e = abs(Fraction(v)), math.frexp(v)[1] - 1
        kept = 3 if abs(e) <= 3 else 2 if abs(e) <= 7 else 1
        steps = size / Fraction(2) ** (e - kept)
        whole, rest = divmod(steps, 1)
        fraction = int(size / Fraction(2) ** (e - 23)) & 0x7FFFFF
        f = int(rest * (1 << 14))
        up = rest >= Fraction(1, 2) if abs(e) <= 3 else f >= (fraction & 0x3FFF)
        value = (whole + up) * Fraction(2) ** (e - kept)
        codes.append(order[value if v > 0 else -value])
    return np.array(codes, np.uint8)


def test_hybrid_on_ascend():
    x = (RNG.uniform(1, 2, 4096) * 2.0 ** RNG.integers(-11, 14, 4096) * RNG.choice([-1, 1], 4096)).astype(np.float32)
    found = diagnose(x, hybrid(x), to="hifloat8", target="ascend:950")
    assert found.explained and "HYBRID" in found.best.name, str(found)
    assert found.best.ratio == 1 and "NaN rule" in found.notes[0]


def half_away_hif8(x):
    """Ties away from zero, from the table of values."""
    rows = sorted((abs(Fraction(v)), c) for c, v in enumerate(HIF8.values()) if math.isfinite(v) and c < 0x80)
    codes = []
    for v in x.tolist():
        size = abs(Fraction(v))
        _, code = min(rows, key=lambda r: (abs(r[0] - size), -r[0]))
        codes.append(code | 0x80 if v < 0 and code else code)
    return np.array(codes, np.uint8)


def test_ascend_target_names_its_own_mode_first():
    x = (RNG.standard_normal(1500) * 8).astype(np.float32)
    deltas = (0.0625, -0.0625, 0.125, -0.125, 0.5, 1.0, 2.0, 8.0)
    x[:40] = [v + d for v in (1.0, 2.5, 9.0, 20.0, 160.0) for d in deltas]
    x[40:80] = -x[:40]
    found = diagnose(x, half_away_hif8(x), to="hifloat8", target="ascend:950")
    assert found.explained and found.best.rule.startswith("CAST_ROUND"), str(found)


@pytest.mark.parametrize("saturates", [True, False])
def test_ascend_saturation_control(saturates):
    limits = [300, -300, math.inf, -math.inf, 127.5, -129.5, 200.5]
    x = np.concatenate([RNG.standard_normal(500) * 100, limits]).astype(np.float16)
    whole = np.trunc(x.astype(np.float64))
    dump = np.clip(whole, -128, 127) if saturates else np.where(np.isinf(x), np.sign(x) * 128 - (x > 0), whole)
    dump = dump.astype(np.int64).astype(np.int8)
    found = diagnose(x, dump, to="int8", target="ascend:a2")
    expected = "saturating" if saturates else "not saturating"
    assert found.explained and found.best.rule == f"CAST_TRUNC, {expected}", str(found)


# --- AI Engine --------------------------------------------------------------------------------------------------------


def srs(acc, shift, rounding, saturation):
    """Section 5 of the AI Engine reference, in Python integers, to int16."""
    out = []
    for a in acc.tolist():
        f, r = divmod(a, 1 << shift)
        half = 1 << (shift - 1)
        up = {
            "floor": False, "ceil": r > 0, "symmetric_floor": a < 0 and r > 0, "symmetric_ceil": a > 0 and r > 0,
            "positive_inf": r >= half, "negative_inf": r > half,
            "symmetric_inf": r > half or (r == half and a > 0), "symmetric_zero": r > half or (r == half and a < 0),
            "conv_even": r > half or (r == half and f & 1), "conv_odd": r > half or (r == half and not f & 1),
        }[rounding]  # fmt: skip
        v = f + bool(up)
        low = {"saturate": -32768, "symmetric": -32767}.get(saturation)
        v = (v + 32768) % 65536 - 32768 if low is None else min(max(v, low), 32767)
        out.append(v)
    return np.array(out, np.int16)


@pytest.mark.parametrize(
    "rounding",
    ["floor", "ceil", "symmetric_floor", "symmetric_ceil", "positive_inf", "negative_inf", "symmetric_inf",
     "symmetric_zero", "conv_even", "conv_odd"],
)  # fmt: skip
def test_shift_round_saturate(rounding):
    acc = np.concatenate([np.arange(-200, 200), RNG.integers(-(1 << 24), 1 << 24, 600), [-(1 << 19) - 5]])
    found = diagnose(acc, srs(acc, 4, rounding, "saturate"), to="int16", target="aie:aie-ml", shift=4)
    assert found.explained and found.best.rule == f"{rounding}, saturation saturate", str(found)


@pytest.mark.parametrize("saturation", ["none", "symmetric"])
def test_shift_round_saturation_modes(saturation):
    acc = np.concatenate([np.arange(-200, 200), RNG.integers(-(1 << 24), 1 << 24, 600)])
    found = diagnose(acc, srs(acc, 4, "floor", saturation), to="int16", target="aie", shift=4)
    assert found.explained and f"saturation {saturation}" in found.best.rule, str(found)


def test_floor_is_the_default_of_the_tile():
    """bfloat16 by floor: the upper half of the bits, one more below zero where anything was cut."""
    x = RNG.standard_normal(5000).astype(np.float32)
    bits = x.view(np.uint32)
    dump = (bits >> 16) + ((bits >> 31) & ((bits & 0xFFFF) > 0))
    found = diagnose(x, dump.astype(np.uint16), to="bfloat16", target="aie:aie-ml")
    assert found.explained and found.best.rule.startswith("floor (the registers' state"), str(found)
    assert "nobody set the sticky registers" in found.best.about


# --- two roundings, bits ----------------------------------------------------------------------------------------------


def bf16_even(x):
    bits = x.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)).astype(np.uint16)


def test_float64_rounded_through_float32():
    """Ties after the first rounding that were none before: 1 + 2**-8 + 2**-40 and the like."""
    base = 1 + RNG.integers(0, 128, 3000) * 2.0**-7
    x = base + 2.0**-8 + RNG.choice([-1, 1, 3, 5], 3000) * 2.0**-40
    x[:500] = RNG.standard_normal(500)
    found = diagnose(x, bf16_even(x.astype(np.float32)), to="bfloat16")
    assert found.explained and found.best.rule == "through float32 (nearest_even), then nearest_even", str(found)
    direct = [e for e in found.explanations if e.rule == "nearest_even"]
    assert direct and direct[0].ratio < 1


@pytest.mark.parametrize("middle", [np.float16, "bfloat16"])
def test_rounded_through_a_16_bit_type(middle):
    x = (RNG.standard_normal(3000) * 4).astype(np.float32)
    step = x.astype(middle) if middle is np.float16 else (bf16_even(x).astype(np.uint32) << 16).view(np.float32)
    found = diagnose(x, convert(np.asarray(step, np.float32), E4M3, "nearest_even"), to=E4M3)
    name = "float16" if middle is np.float16 else "bfloat16"
    assert found.explained and found.best.rule == f"through {name} (nearest_even), then nearest_even", str(found)


def test_half_added_to_the_bits():
    x = RNG.standard_normal(4000).astype(np.float32)
    bits = x.view(np.uint32).copy()
    bits[:200] = bits[:200] & 0xFFFF0000 | 0x8000
    bits[200:203] = [0x7FFFFFFF, 0x7F7FFFFF, 0xFFC00000]
    dump = ((bits.astype(np.uint64) + 0x8000) & 0xFFFFFFFF) >> 16
    found = diagnose(bits.view(np.float32), dump.astype(np.uint16), to="bfloat16")
    assert found.verdict == "explained" and found.best.rule == "adds 0x8000 to the bits and cuts", str(found)


# --- formats and biases -----------------------------------------------------------------------------------------------


def test_table_of_the_wrong_fp4():
    x = np.concatenate([np.arange(-8, 8.01, 0.125), RNG.standard_normal(500)]).astype(np.float32)
    dump = convert(x, bt.format("float4_e2m1fn"), "nearest_even")
    found = diagnose(x, dump, to="float4_e1m2fn")
    assert found.explained and found.best.rule.startswith("codes of float4_e2m1fn instead of float4_e1m2fn"), str(found)
    assert "nearest_even" in found.best.rule


def test_wrong_fp8():
    x = telling_input(E4M3)
    found = diagnose(x, convert(x, E5M2, "nearest_even"), to=E4M3)
    assert found.explained and found.best.rule.startswith("codes of float8_e5m2 instead of"), str(found)


@pytest.mark.parametrize("step", [1, -1])
def test_bias_off_by_one(step):
    x = telling_input(E4M3)
    with np.errstate(over="ignore"):
        dump = convert(np.ldexp(x, step), E4M3, "nearest_even")
    found = diagnose(x, dump, to=E4M3)
    assert found.explained and found.best.rule.startswith("exponent bias off by one"), str(found)
    assert ("too large" if step > 0 else "too small") in found.best.rule


# --- scale and zero point ---------------------------------------------------------------------------------------------


def affine(x, scale, zero, low=-128, high=127):
    return np.clip(np.rint(x / np.float32(scale)) + zero, low, high).astype(np.int8)


DATA = (RNG.standard_normal((64, 96)) * 30).astype(np.float32)


@pytest.mark.parametrize(
    ("dump", "expected"),
    [
        (affine(DATA, 0.5, 3), "nearest_even"),
        (affine(DATA, 1.0, 3), "scale ignored"),
        (affine(DATA, 2.0, 3), "multiplied by the scale"),
        (affine(DATA, 0.25, 3), "scale half as large"),
        (affine(DATA, 0.5, 0), "zero point ignored"),
        (affine(DATA, 0.5, 4), "zero point one too large"),
        (affine(DATA, 0.5, 2), "zero point one too small"),
        (affine(DATA, 0.5, -3), "zero point with the other sign"),
        (affine(DATA, 0.43, 3), "scale 0.43 instead of 0.5"),
        (affine(DATA, 0.43, 9), "scale 0.43 instead of 0.5, zero point 9 instead of 3"),
    ],
)
def test_scale_and_zero_point(dump, expected):
    found = diagnose(DATA, dump, to="int8", scale=0.5, zero_point=3)
    assert found.explained and found.best.rule.startswith(expected), str(found)


def test_scales_per_channel_and_reciprocals():
    scale = RNG.uniform(0.1, 0.9, 96).astype(np.float32)
    right = np.clip(np.rint(DATA / scale), -128, 127).astype(np.int8)
    assert diagnose(DATA, right, to="int8", scale=scale).best.rule == "nearest_even"
    x = np.repeat(((np.arange(1, 129, dtype=np.float32) - 0.5) * scale[:1])[:, None], 96, 1) * np.float32(1)
    dump = np.clip(np.rint(x * (np.float32(1) / scale[0])), -128, 127).astype(np.int8)
    if (dump != np.clip(np.rint(x / scale[0]), -128, 127)).any():
        assert "reciprocal" in diagnose(x, dump, to="int8", scale=float(scale[0])).best.name


# --- layout -----------------------------------------------------------------------------------------------------------


def right_bf16(shape=(64, 96)):
    x = RNG.standard_normal(shape).astype(np.float32)
    x.reshape(-1)[:2000] = (1 + np.arange(2000) % 128 * 2.0**-7 + 2.0**-8).astype(np.float32)
    x.reshape(-1)[1000:2000] *= -1
    return x, bf16_even(x)


def slip_of(x, dump, to, **more):
    found = diagnose(x, dump, to=to, **more)
    assert found.explained and found.best.rule.startswith("nearest_even"), str(found)
    return found.best.slip


def test_no_slip():
    assert slip_of(*right_bf16(), "bfloat16") == ""


def test_swapped_nibbles():
    x = (RNG.integers(-28, 29, (32, 64)) / 4).astype(np.float32)
    codes = convert(x.reshape(-1), bt.format("float4_e2m1fn"), "nearest_even")
    image = (codes[0::2] << 4 | codes[1::2]).astype(np.uint8)
    assert slip_of(x, image.tobytes(), "float4_e2m1fn") == "nibbles swapped"
    right = (codes[1::2] << 4 | codes[0::2]).astype(np.uint8)
    assert slip_of(x, right.tobytes(), "float4_e2m1fn") == ""


def test_endianness():
    x, codes = right_bf16()
    assert slip_of(x, codes.byteswap(), "bfloat16") == "bytes of each element reversed"
    words = codes.view(np.uint8).reshape(-1, 4)[:, ::-1].tobytes()
    assert slip_of(x, words, "bfloat16") == "bytes of 32-bit words reversed"
    y = telling_input(E4M3)
    y = y[: y.size // 4 * 4]
    dump = convert(y, E4M3, "nearest_even").reshape(-1, 4)[:, ::-1].tobytes()
    assert slip_of(y, dump, "float8_e4m3fn") == "bytes of 32-bit words reversed"


def test_transposed():
    x, codes = right_bf16()
    assert slip_of(x, np.ascontiguousarray(codes.T), "bfloat16") == "transposed"
    assert slip_of(x, np.ascontiguousarray(codes.T).tobytes(), "bfloat16") == "transposed"


def test_nz_against_nd():
    x, codes = right_bf16()
    nz = [codes[r + i, c + j] for c in range(0, 96, 16) for r in range(0, 64, 16) for i in range(16) for j in range(16)]
    assert slip_of(x, np.array(nz, np.uint16).tobytes(), "bfloat16") == "stored as NZ (16 x 16)"
    back = np.zeros_like(codes).reshape(-1)
    for at, (r, c) in enumerate((r + i, c + j) for c in range(0, 96, 16) for r in range(0, 64, 16) for i in range(16)
                                for j in range(16)):  # fmt: skip
        back[r * 96 + c] = codes.reshape(-1)[at]
    assert slip_of(x, back, "bfloat16") == "rows read as NZ (16 x 16)"
    zz = [codes[r + i, c + j] for r in range(0, 64, 16) for c in range(0, 96, 16) for i in range(16) for j in range(16)]
    assert slip_of(x, np.array(zz, np.uint16).tobytes(), "bfloat16") == "stored as ZZ (16 x 16)"
    tiles = [codes[r + i, c + j] for r in range(0, 64, 4) for c in range(0, 96, 8) for i in range(4) for j in range(8)]
    assert slip_of(x, np.array(tiles, np.uint16).tobytes(), "bfloat16") == "stored in tiles of 4 x 8"


def test_signs_of_integers():
    x = RNG.integers(-120, 121, 3000).astype(np.float32) + RNG.choice([0, 0.5, 0.25], 3000).astype(np.float32)
    whole = np.clip(np.rint(x), -127, 127).astype(np.int64)
    magnitude = np.where(whole < 0, 128 - whole, whole).astype(np.uint8)
    assert slip_of(x, magnitude, "int8") == "sign and magnitude"
    assert slip_of(x, (whole + 128).astype(np.uint8), "int8") == "offset binary"


def test_signs_of_floats():
    x = telling_input(E4M3)
    codes = convert(x, E4M3, "nearest_even").astype(np.int64)
    complement = np.where(codes & 0x80, 256 - (codes & 0x7F), codes) & 0xFF
    assert slip_of(x[codes != 0x80], complement[codes != 0x80].astype(np.uint8), "float8_e4m3fn") == "two's complement"


# --- Fixpipe ----------------------------------------------------------------------------------------------------------


def requantise(acc, scale, offset, shift=None, relu=False, full=False):
    """REQ8 as section 11.5 has it; int8."""
    x = acc.astype(np.int64)
    if shift is not None:
        x = np.clip(x >> shift, -32768, 32767)
    m1 = np.float32(scale)
    if not full:
        m1 = (np.array(m1).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    t = x.astype(np.float32) * np.where(relu & (x < 0), np.float32(0), m1).astype(np.float32)
    t = np.clip(np.rint(t.astype(np.float64)), -256, 255) + offset
    return np.clip(t, -128, 127).astype(np.int8)


ACC = np.concatenate([np.arange(-400, 400), RNG.integers(-40_000, 40_000, 2272)]).astype(np.int32).reshape(48, 64)


@pytest.mark.parametrize(
    ("offset", "dump", "name"),
    [
        (-3, requantise(ACC, 0.1, -3, 4), "Fixpipe as documented"),
        (-200, requantise(ACC, 0.1, 312, 4), "offset read as unsigned"),
        (-3, requantise(ACC, 0.1, -3, 3), "shift by N instead of N + 1"),
        (-3, requantise(ACC, 0.1, -3, 4, full=True), "scale not cut: all 24 bits used"),
        (-3, requantise(ACC, 0.1, -3, 4, relu=True), "ReLU applied"),
        (-3, requantise(ACC, 0.1, 0, 4), "offset forgotten"),
        (-3, requantise(ACC, 0.1, 3, 4), "offset subtracted"),
    ],
)
def test_fixpipe(offset, dump, name):
    from bittrue.ascend import QuantParam

    quant = QuantParam(scale=0.1, offset=offset, signed=True, shift=4)
    found = diagnose(ACC, dump, to="int8", target="ascend:a2", mode="REQ8", quant=quant)
    assert found.explained and found.best.rule == name, str(found)


def test_fixpipe_scale_rounded_instead_of_cut():
    from bittrue.ascend import QuantParam

    scale = float(np.array(0x3DCCF000, np.uint32).view(np.float32))  # the cut bits are above half
    rounded = float(np.array(0x3DCD0000, np.uint32).view(np.float32))
    acc = np.arange(-2400, 2400, dtype=np.int32).reshape(48, 100)
    # QUANT_PRE keeps all 32 bits of the float in a word; a word, not a QuantParam, carries the low ones.
    word = int(np.float32(scale).view(np.uint32)) | 1 << 46
    found = diagnose(acc, requantise(acc, rounded, 0), to="int8", target="ascend:a2", mode="REQ8", quant=word)
    assert found.explained and found.best.rule == "scale rounded instead of cut to 10 bits", str(found)
    assert QuantParam


def test_fixpipe_words_per_column_and_a_dump_in_blocks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    acc = ACC[:40, :60]
    words = np.array([int(np.float32(s).view(np.uint32)) | 5 << 37 | 1 << 46 for s in 2.0 ** np.arange(-9, -3)] * 10)
    rows = np.hstack([requantise(acc[:, i : i + 1], 2.0 ** (-9 + i % 6), 5) for i in range(60)])
    padded = np.zeros((48, 64), np.int8)
    padded[:40, :60] = rows
    blocks = np.concatenate([padded[:, :32].ravel(), padded[:, 32:].ravel()])  # 32 bytes are a row of a block
    np.save("acc.npy", acc)
    np.save("golden.npy", rows)
    words.astype("<u8").tofile("words.bin")
    np.save("words.npy", words.astype(np.uint64))
    blocks.tofile("dump.bin")
    found = diagnose(acc, rows, to="int8", target="ascend:a2", mode="VREQ8", quant=words.astype(np.uint64))
    assert found.best.rule == "Fixpipe as documented"
    arguments = ["diagnose", "acc.npy", "dump.bin", "--to", "int8", "--target", "ascend:a2", "--mode", "VREQ8"]
    for given in ("words.bin", "words.npy", ",".join(hex(w) for w in words.tolist())):
        assert main([*arguments, "--layout", "nz", "--quant", given]) == 0
        assert "EXPLAINED: Fixpipe as documented (2400 of 2400" in capsys.readouterr().out
    made = ["fixpipe", "acc.npy", "--mode", "VREQ8", "--quant", "words.bin", "--product", "a2", "-o", "made.bin"]
    assert main([*made, "--layout", "nz"]) == 0
    assert "[40, 60] int32 to int8 by VREQ8 on Atlas A2, [2, 3, 16, 32] in NZ, 3072 bytes" in capsys.readouterr().out
    assert (tmp_path / "made.bin").read_bytes() == blocks.tobytes()
    assert main([*made, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["shape"] == [40, 60]
    assert (tmp_path / "made.bin").read_bytes() == rows.tobytes()
    for wrong, expected in (
        (made, "--force"),
        ([*made, "--force", "--product", "a22"], "Atlas A2"),
        (["fixpipe", "made.bin", *made[2:], "--force"], "(--format)"),
    ):
        assert main(wrong) == 2
        assert expected in capsys.readouterr().err
    assert main(["compare", "golden.npy", "dump.bin", "--layout", "NZ"]) == 0
    assert "PASS" in capsys.readouterr().out

    for more, expected in (
        (["--quant", "words.bin", "--layout", "NY"], "--layout NY"),
        (["--quant", "acc.npy", "--layout", "NZ"], "is not n words of uint64"),
        (["--quant", "1,2", "--layout", "NZ"], "one word for each of 60 columns"),
        (["--layout", "NZ"], "VREQ8 reads a word for each column"),
        (["--quant", "words.bin", "--layout", "NZ", "--mode", "CAST_ROUND"], "not a quantisation mode"),
    ):
        assert main([*arguments, *more]) == 2
        assert expected in capsys.readouterr().err
    assert main(["compare", "acc.npy", "dump.bin", "--layout", "NZ"]) == 2
    assert "dump.bin: " in capsys.readouterr().err


# --- blocks -----------------------------------------------------------------------------------------------------------


def ebs8(x, rounding):
    """bfp16ebs8 of ordinary values (specs/aie.md, section 7): common exponent, mantissas in 1/64; no bumps needed."""
    out = []
    for block in x.reshape(-1, 8).tolist():
        e = max(math.frexp(v)[1] - 1 for v in block)
        scaled = [Fraction(v) * 64 / Fraction(2) ** e for v in block]
        m = [math.floor(s) if rounding == "floor" else round(s) for s in scaled]
        assert all(-128 <= v <= 127 for v in m)
        out += [e + 127, *(v & 0xFF for v in m)]
    return np.array(out, np.uint8)


def block_data():
    x = (RNG.integers(-999, 1000, (40, 8)) / 512 * 2.0 ** RNG.integers(-3, 4, (40, 1))).astype(np.float32)
    x[:, 0] = np.abs(x[:, 0]) + 2.0**-9
    return x.reshape(10, 32)


def test_floor_default_of_bfp16():
    x = block_data()
    found = diagnose(x, ebs8(x, "floor"), to="bfp16ebs8", target="aie:xdna2")
    assert found.explained and found.best.rule.startswith("floor (the register's state at kernel entry)"), str(found)
    found = diagnose(x, ebs8(x, "even"), to="bfp16ebs8", target="aie:xdna2")
    assert found.explained and found.best.rule.startswith("conv_even"), str(found)


def test_byte_order_of_blocks():
    x = block_data()
    blocks = ebs8(x, "floor").reshape(-1, 9)
    found = diagnose(x, np.ascontiguousarray(np.roll(blocks, -1, axis=1)).reshape(-1), to="bfp16ebs8")
    assert found.explained and "block order: mantissas shifts exponent" in found.best.rule, str(found)


def test_sign_and_magnitude_of_mx9():
    """mx9 of small multiples, all exact: exponent byte, level-2 byte, mantissas in the two sign conventions."""
    m = RNG.integers(-100, 101, (30, 16))
    m[:, ::2] = np.where(RNG.random((30, 8)) < 0.5, 64, -64) + RNG.integers(0, 32, (30, 8))
    m[np.abs(m) == 0] = 1
    m[:, ::2][np.abs(m[:, ::2]) < 64] = 70
    x = (m / 64).astype(np.float32)
    head = np.tile(np.array([[128, 0]], np.uint8), (30, 1))
    magnitude = np.concatenate([head, np.where(m < 0, 128 - m, m).astype(np.uint8)], axis=1)
    complement = np.concatenate([head, (m & 0xFF).astype(np.uint8)], axis=1)
    assert diagnose(x, magnitude.reshape(-1), to="mx9").best.name == "nearest_even"
    found = diagnose(x, complement.reshape(-1), to="mx9")
    assert found.explained and "twos complement" in found.best.name, str(found)


# --- verdicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("to", "target"), [("float8_e4m3fn", None), ("hifloat8", "ascend:950"), ("bfloat16", "aie")])
def test_nothing_explains_random_codes(to, target):
    f = bt.format(to)
    x = RNG.standard_normal((32, 64)).astype(np.float32)
    found = diagnose(x, RNG.integers(0, 1 << f.bits, x.shape).astype(f.storage), to=to, target=target)
    assert found.verdict == "unexplained" and not found and "nothing explains it" in str(found)
    assert found.best.ratio < 0.1 and len(found.unexplained) == 5


def test_a_few_corrupted_elements_are_named():
    x, codes = right_bf16()
    codes[3, 5] ^= 0x40
    codes[60, 1] ^= 0x1
    found = diagnose(x, codes, to="bfloat16")
    assert found.verdict == "close" and not found.explained and found.best.rule == "nearest_even"
    assert [i for i, *_ in found.unexplained] == [(3, 5), (60, 1)]
    assert "NOT QUITE" in str(found)


def test_inputs_without_ties_are_ambiguous_and_a_tie_decides():
    x = np.float32([1.1, -2.7, 3.3, 0.2])
    found = diagnose(x, convert(x, E4M3, "nearest_even"), to=E4M3)
    assert found.ambiguous and {"nearest_away", "nearest_zero"} <= {r.rule for r in found.rivals}
    assert any("by chance" in n for n in found.notes)
    # the inputs it asks for do tell the best from every rival, by the transcription
    run = np.array([float(s.x) for s in found.separating], np.float32)
    assert 1 <= run.size <= 4
    best = convert(run, E4M3, found.best.rule)
    for rival in found.rivals:
        mode = rival.rule
        if mode in MODES:
            assert (convert(run, E4M3, mode) != best).any(), mode
    for s, code in zip(found.separating, best.tolist()):
        assert s.expected[found.best.name] == f"{code:#04x}" and s.index is None


def test_two_rivals_need_one_input():
    x = telling_input(E4M3)
    x = x[np.isfinite(x) & (np.abs(x) < 400)]
    keep = x[convert(x, E4M3, "trunc") == convert(x, E4M3, "floor")]
    found = diagnose(keep, convert(keep, E4M3, "floor"), to=E4M3)
    assert found.ambiguous and {found.best.rule, *(r.rule for r in found.rivals)} >= {"floor", "trunc"}
    assert len(found.separating) == 1


def test_zeros_say_nothing():
    found = diagnose(np.zeros(64, np.float32), np.zeros(64, np.uint8), to=E4M3)
    assert found.ambiguous and len(found.rivals) >= 10


def test_the_deciding_element_is_in_the_data():
    x = telling_input(E4M3)
    dump = convert(x, E4M3, "nearest_away")
    found = diagnose(x, dump, to=E4M3)
    (s,) = found.separating
    assert s.index is not None and s.actual == s.expected[found.best.name] == f"{int(dump[s.index]):#04x}"


def test_large_dumps_are_sampled_and_then_counted_in_full():
    n = 1 << 18
    x = RNG.standard_normal(n).astype(np.float32).reshape(512, 512)
    x[511, 511] = np.nan
    x[17, 3] = np.float32(1 + 2.0**-8)
    x[400, 3] = np.float32(-1 - 2.0**-8)
    dump = bf16_even(x)
    dump[511, 511] = 0
    found = diagnose(x, dump, to="bfloat16")
    assert found.explained and found.elements == n and "NaN zero" in found.best.name, str(found)
    dump[100, 100] ^= 1
    found = diagnose(x, dump, to="bfloat16")
    assert found.verdict == "close" and found.best.matches == n - 1
    assert [i for i, *_ in found.unexplained] == [(100, 100)]


# --- command and mistakes ---------------------------------------------------------------------------------------------


def test_command(tmp_path, capsys):
    x, codes = right_bf16()
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "a.bin").write_bytes(np.ascontiguousarray(codes.T).tobytes())
    arguments = ["diagnose", str(tmp_path / "x.npy"), str(tmp_path / "a.bin"), "--to", "bfloat16"]
    assert main(arguments) == 0
    assert "transposed" in capsys.readouterr().out.splitlines()[0]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["explanations"][0]["slip"] == "transposed"
    (tmp_path / "a.bin").write_bytes(RNG.bytes(codes.nbytes))
    assert main(arguments) == 1
    assert "UNEXPLAINED" in capsys.readouterr().out


def test_mistakes(tmp_path, capsys):
    x, codes = right_bf16((4, 4 * 125))
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "a.bin").write_bytes(codes.tobytes())

    def fails(*more, x="x.npy", a="a.bin"):
        assert main(["diagnose", str(tmp_path / x), str(tmp_path / a), *more]) == 2
        err = capsys.readouterr().err
        assert err.startswith("error: ") and err.count("\n") == 1
        return err

    assert "give the format of its codes" in fails()
    assert "actual has 4000 bytes; 2000 elements of float32 take 8000 bytes" in fails("--to", "float32")
    assert "is not a target; did you mean 'ascend'?" in fails("--to", "bfloat16", "--target", "ascent:950")
    assert "is not known" in fails("--to", "bfloat61")
    assert "no such file" in fails("--to", "bfloat16", a="none.bin").lower()
    assert "is for target 'aie:...'" in fails("--to", "bfloat16", "--shift", "3")
    assert "no parameter word" in fails("--to", "int8", "--target", "ascend:a2", "--quant", "zz")
    with pytest.raises(ValueError, match="complex"):
        diagnose(x, codes, to="complex64")
    with pytest.raises(ValueError, match="no elements"):
        diagnose(x[:0], codes[:0], to="bfloat16")
    with pytest.raises(ValueError, match="axis=5 is out of range for 2 dimensions"):
        diagnose(x, codes, to="bfloat16", scale=np.ones(4), axis=5)
    for scale in (0, -1, np.nan, [1, 1, 0, 1]):
        with pytest.raises(ValueError, match="scale must be finite and above zero"):
            diagnose(x, codes, to="bfloat16", scale=scale, axis=0)
    with pytest.raises(ValueError, match="nan='x'"):
        diagnose(x, codes, to="bfloat16", nan="x")


def test_codes_in_a_list_and_a_target_in_capitals():
    assert diagnose([1.3, 2.7, -3.2], [1, 3, 0xFD], to="int8").best.rule == "nearest_even"
    x = np.linspace(-3, 3, 64, dtype=np.float32)
    found = diagnose(x, bt.array(x, "mx9", rounding="floor"), target="AIE:aie2ps")
    assert found.best.name == "floor (the register's state at kernel entry)"


@pytest.mark.parametrize("to", ["float32", "float64", "float16"])
def test_nan_and_minus_zero_in_formats_that_numpy_computes_in(to):
    x = np.concatenate([[np.nan, -0.0], np.random.default_rng(0).standard_normal(98) * 1e-3])
    assert diagnose(x, bt.array(x, to, rounding="trunc")).explained
    codes = np.where(np.isnan(x), 0, x).astype(to).view(f"u{np.dtype(to).itemsize}")
    codes[1] = 0  # the sign of zero was lost
    found = diagnose(np.where(np.isnan(x), 0, x), codes, to=to)
    assert not found.explained and found.best.matches == 99
