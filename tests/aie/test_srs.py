"""Shift-round-saturate, upshift and their registers against Python integers and published vectors."""

from __future__ import annotations

import asyncio
import csv
import json
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import bittrue as bt
from bittrue import aie

DATA = Path(__file__).parents[1] / "data"
MODES = (
    "floor ceil symmetric_floor symmetric_ceil positive_inf negative_inf symmetric_inf symmetric_zero "
    "conv_even conv_odd"
).split()
SATURATIONS = ("none", "saturate", "symmetric")
TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


def round_quotient(value, shift, mode):
    """specs/aie.md, section 4.1, in Python integers."""
    if shift <= 0:
        return value << -shift
    f, rest = value >> shift, value & ((1 << shift) - 1)
    half = 1 << (shift - 1)
    if rest == 0:
        return f
    nearest = {
        "positive_inf": f + 1,
        "negative_inf": f,
        "symmetric_inf": f + (value > 0),
        "symmetric_zero": f + (value < 0),
        "conv_even": f + (f & 1),
        "conv_odd": f + (~f & 1),
    }
    if mode in nearest:
        return f + (rest > half) if rest != half else nearest[mode]
    return {"floor": f, "ceil": f + 1, "symmetric_floor": f + (value < 0), "symmetric_ceil": f + (value > 0)}[mode]


def saturate(value, bits, signed, mode):
    """Section 4.2."""
    if mode == "none":
        value &= (1 << bits) - 1
        return value - (1 << bits) if signed and value >> (bits - 1) else value
    if not signed:
        return min(max(value, 0), (1 << bits) - 1)
    top = (1 << (bits - 1)) - 1
    return min(max(value, -top if mode == "symmetric" else -top - 1), top)


def expected(values, shift, dtype, mode, saturation):
    bits, signed = int(dtype.lstrip("uint")), not dtype.startswith("u")
    return [saturate(round_quotient(v, shift, mode), bits, signed, saturation) for v in values]


def golden(op):
    with (DATA / "aie_golden.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["op"] == op]
    assert rows
    columns = ("params", "input", "expected", "arch")
    return [pytest.param(*(json.loads(row[c]) for c in columns), id=f"{op}-{i}") for i, row in enumerate(rows)]


def cases():
    with (DATA / "cases.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "srs"]
    assert len(rows) == 12
    return [pytest.param(row, id=row["id"]) for row in rows]


# --- published vectors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("params, given, want, arch", golden("srs"))
def test_golden_srs(params, given, want, arch):
    found = aie.srs(given, params["dst"], params["shift"], params["rounding"], params["saturation"], arch=arch)
    # the file writes some results as bit patterns
    bits = 8 * found.itemsize
    assert [n & ((1 << bits) - 1) for n in found.tolist()] == [n & ((1 << bits) - 1) for n in want]
    assert aie.rounding_code(params["rounding"], arch) == params["rnd_code"]


@pytest.mark.parametrize("params, given, want, arch", golden("ups"))
def test_golden_ups(params, given, want, arch):
    found = aie.ups(np.array(given, params["src"]), params["acc"], params["shift"], arch=arch)
    assert found.tolist() == want


@pytest.mark.parametrize("row", cases())
def test_cases(row):
    params = json.loads(row["params"])
    name = row["target_format"]
    target = bt.IntFormat(name, width=3, signed=False) if name == "uint3" else bt.format(name)
    given = np.array(json.loads(row["input"]), row["source_format"])
    found = aie.srs(given, target, params["shift"], params["rounding"], params["saturation"], arch="xdna2")
    mask = (1 << target.bits) - 1
    assert [n & mask for n in found.tolist()] == [int(code, 16) for code in json.loads(row["expected"])]


# --- every mode against integers --------------------------------------------------------------------------------------


def around_ties(shift, bits):
    """Values around every multiple of half a unit near zero and near the limits of the destinations and the source."""
    unit = 1 << shift
    half = unit >> 1
    centres = {k * half if shift else k for k in range(-6, 7)}
    for width in (8, 16, 32):
        for limit in (-(1 << (width - 1)), (1 << (width - 1)) - 1, (1 << width) - 1):
            centres |= {limit * unit, limit * unit + half, limit * unit - half}
    ends = {-(1 << (bits - 1)), (1 << (bits - 1)) - 1}
    found = {c + d for c in centres | ends for d in (-2, -1, 0, 1, 2)}
    return sorted(v for v in found if min(ends) <= v <= max(ends))


@pytest.mark.parametrize("bits", (32, 48, 64, 80))
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_around_every_tie(mode, bits):
    shifts = range(60) if bits >= 64 else (0, 1, 2, 7, 15, 16, 31, 47, 58, 59)
    for shift in shifts:
        values = around_ties(shift, bits)
        rounded = [round_quotient(v, shift, mode) for v in values]
        source = aie.Wide.from_ints(values) if bits > 64 else np.array(values, np.int64)
        for dtype in TYPES:
            width, signed = int(dtype.lstrip("uint")), not dtype.startswith("u")
            for saturation in SATURATIONS:
                found = aie.srs(source, dtype, shift, mode, saturation)
                assert found.dtype == dtype
                assert found.tolist() == [saturate(v, width, signed, saturation) for v in rounded], (shift, saturation)


def a_million(bits):
    """Random accumulators of all magnitudes: low and high 64 bits."""
    count = 1_000_000
    rng = np.random.default_rng(bits)
    high = rng.integers(-(1 << 15), 1 << 15, count)
    low = rng.integers(0, 1 << 64, count, np.uint64)
    if bits == 80:
        high >>= rng.integers(0, 16, count)
        return low, high
    low = (low.view(np.int64) >> rng.integers(64 - bits, 64, count)).view(np.uint64)
    return low, low.view(np.int64) >> 63


def accumulators(low, high, bits):
    return aie.Wide(low, high) if bits == 80 else low.view(np.int64)


@pytest.mark.parametrize("bits", (32, 48, 64, 80))
def test_a_million_random_accumulators(bits):
    low, high = a_million(bits)
    source = accumulators(low, high, bits)
    part = np.random.default_rng(0).choice(low.size, 1000, replace=False)
    numbers = [(h << 64) + lo for h, lo in zip(high[part].tolist(), low[part].tolist())]
    for n, mode in enumerate(MODES):
        dtype, saturation, shift = TYPES[n % 6], SATURATIONS[n % 3], (7 * n + 3) % 60
        found = aie.srs(source, dtype, shift, mode, saturation)
        assert found[part].tolist() == expected(numbers, shift, dtype, mode, saturation)
        every = slice(n, None, len(MODES))
        assert np.array_equal(found[every], by_digits(low[every], high[every], shift, mode, saturation, dtype)), mode


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bits", (32, 48, 64, 80))
def test_every_rule_on_a_million(bits, mode):
    low, high = a_million(bits)
    source = accumulators(low, high, bits)
    for n, (dtype, saturation) in enumerate((d, s) for d in TYPES for s in SATURATIONS):
        shift = (7 * n + 5 * MODES.index(mode) + bits) % 60
        found = aie.srs(source, dtype, shift, mode, saturation)
        assert np.array_equal(found, by_digits(low, high, shift, mode, saturation, dtype)), (dtype, saturation, shift)


def by_digits(low, high, shift, mode, saturation, dtype):
    """All of them once more by another way: digits of 2**16, most significant first, divided by hand."""
    digits = [(high >> (16 * k)) & 0xFFFF for k in (3, 2, 1, 0)]
    digits += [((low >> np.uint64(16 * k)) & np.uint64(0xFFFF)).astype(np.int64) for k in (3, 2, 1, 0)]
    negative = high < 0
    # quotient modulo 2**48 from the digits above the cut, remainder and tie from those below
    words, inside = divmod(shift, 16)
    value = [digits[7 - k] if k < 8 else np.where(negative, 0xFFFF, 0) for k in range(12)]  # least significant first
    quotient = np.zeros(low.size, np.int64)
    for k in range(3):
        piece = (value[words + k] >> inside) | (value[words + k + 1] << (16 - inside)) & 0xFFFF
        quotient |= piece << (16 * k)
    above = np.zeros(low.size, np.bool_)  # whether the quotient, as a signed number, needs more than 47 bits
    sign = np.where(negative, 0xFFFF, 0)
    for k in range(2, 8):
        piece = (value[min(words + k, 11)] >> inside) | (value[min(words + k + 1, 11)] << (16 - inside)) & 0xFFFF
        above |= (piece >> 15 if k == 2 else piece) != (sign >> 15 if k == 2 else sign)
    quotient = np.where(negative, quotient - (1 << 48), quotient)
    low_part = value[words] & ((1 << inside) - 1)
    zeros = np.ones(low.size, np.bool_)
    for k in range(words):
        zeros &= (value[k] == 0) if k < words - 1 or inside else ((value[k] & 0x7FFF) == 0)
    if inside:
        first = low_part >> (inside - 1)
        zeros &= (low_part & ((1 << (inside - 1)) - 1)) == 0
    else:
        first = value[words - 1] >> 15 if words else np.zeros(low.size, np.int64)
    rest, tie, more = (first != 0) | ~zeros, (first != 0) & zeros, (first != 0) & ~zeros
    odd = (quotient & 1) != 0
    up = {
        "floor": rest & False,
        "ceil": rest,
        "symmetric_floor": rest & negative,
        "symmetric_ceil": rest & ~negative,
        "positive_inf": more | tie,
        "negative_inf": more,
        "symmetric_inf": more | tie & ~negative,
        "symmetric_zero": more | tie & negative,
        "conv_even": more | tie & odd,
        "conv_odd": more | tie & ~odd,
    }[mode]
    result = quotient + up
    info = np.iinfo(dtype)
    if saturation != "none":
        least = -info.max if saturation == "symmetric" and info.min else info.min
        result = np.where(above, np.where(negative, least, info.max), np.clip(result, least, info.max))
    return result.astype(dtype)


def test_exact_module_agrees():
    """bittrue.exact rounds fractions; its modes under AMD's names must be AMD's."""
    from fractions import Fraction

    from bittrue import exact
    from bittrue.rounding import Rule

    values = around_ties(5, 32)
    for mode in MODES:
        rule = Rule(aie.RoundingMode(mode).rounding, "saturate")
        want = [exact.encode(Fraction(v, 32), "int16", rule) for v in values]
        assert aie.srs(values, "int16", 5, mode, "saturate").view(np.uint16).tolist() == want


# --- upshift ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arch, tag, bits",
    [("aie", "acc48", 48), ("aie", "acc80", 80), ("aie-ml", "acc32", 32), ("xdna2", "acc64", 64)],
)
def test_upshift(arch, tag, bits):
    for dtype in TYPES:
        info = np.iinfo(dtype)
        values = sorted({info.min, info.min + 1, 0, 1, 5, 100, info.max - 1, info.max})
        for shift in (0, 1, 15, 16, 24, 25, 31, 32, 33, 47, 60, 63):
            for saturation in SATURATIONS:
                want = [saturate(v << shift, bits, True, saturation) for v in values]
                found = aie.ups(np.array(values, dtype), tag, shift, saturation, arch=arch)
                assert (found.to_ints() if bits == 80 else found.tolist()) == want
            wrapped = aie.ups(
                np.array(values, dtype), tag, shift, "saturate", arch=arch, choices=aie.Choices(ups_overflow="wrap")
            )
            want = [saturate(v << shift, bits, True, "none") for v in values]
            assert (wrapped.to_ints() if bits == 80 else wrapped.tolist()) == want


# --- shapes, arguments ------------------------------------------------------------------------------------------------


def test_shapes_and_out():
    x = np.arange(-60, 60).reshape(4, 5, 6) * 3
    want = np.array(expected(x.ravel().tolist(), 2, "int8", "conv_even", "saturate")).reshape(x.shape)
    assert np.array_equal(aie.srs(x, "int8", 2, "conv_even", "saturate"), want)
    out = np.empty((6, 5, 4), np.int8).T
    assert aie.srs(x, "int8", 2, "conv_even", "saturate", out=out) is out and np.array_equal(out, want)
    assert np.array_equal(aie.srs(x[::2, ::-1], "int8", 2, "conv_even", "saturate"), want[::2, ::-1])
    big = np.tile(x.ravel(), 5000)
    assert np.array_equal(aie.srs(big, "int8", 2, "conv_even", "saturate", threads=2), np.tile(want.ravel(), 5000))
    assert aie.srs(np.zeros(0, np.int32), "int16", 3).shape == (0,)
    assert aie.srs(7, "int16", 1).shape == ()


@pytest.mark.parametrize("order", "<>")
def test_any_byte_order(order):
    for kind in ("i2", "i4", "i8"):
        values = [-300, -6, 5, 6, 7, 1000]
        given = np.array(values, order + kind)
        assert aie.srs(given, "int8", 2, "conv_even").tolist() == expected(values, 2, "int8", "conv_even", "none")
        assert aie.ups(given, "acc64", 40).tolist() == [v << 40 for v in values]
        assert aie.ups(given, "acc80", 60, arch="aie").to_ints() == [v << 60 for v in values]
    assert aie.srs(np.array([5, 2**64 - 1], order + "u8"), "uint32", 32).tolist() == [0, 2**32 - 1]


def test_lists_of_integers_of_all_sizes():
    values = [2**63, -1, 2**127 - 1, -(2**127), 7, -(2**90) - 1]
    for count in (2, 6):
        for shift in (0, 1, 40, 59):
            for saturation in SATURATIONS:
                want = expected(values[:count], shift, "int16", "conv_odd", saturation)
                assert aie.srs(values[:count], "int16", shift, "conv_odd", saturation).tolist() == want
    for saturation in SATURATIONS:  # a negative shift does not lose what is above 128 bits
        want = [saturate(v << 4, 8, True, saturation) for v in values]
        choices = aie.Choices(shift_check="accept")
        assert aie.srs(values, "int8", -4, saturation=saturation, choices=choices).tolist() == want
        assert aie.srs(aie.Wide.from_ints(values), "int8", -4, "floor", saturation, choices=choices).tolist() == want
    assert aie.srs([], "int8", 3).shape == (0,) and aie.srs([[], []], "int8").shape == (2, 0)
    assert aie.ups([], "acc32").shape == (0,)
    assert aie.ups([2**32 - 1, -(2**31)], "acc64", 31).tolist() == [(2**32 - 1) << 31, -(2**62)]


def test_integers_that_do_not_fit():
    checks = [
        (lambda: aie.srs([0, 2**127], "int8"), ValueError, f"acc holds {2**127}, which has more than 128 bits"),
        (lambda: aie.srs([1, None], "int8"), TypeError, "acc holds None; integers are expected"),
        (lambda: aie.srs([1, 0.5], "int8"), TypeError, "acc has dtype float64; integers are expected"),
        (lambda: aie.ups([2**32], "acc64"), ValueError, f"x holds {2**32}; vectors hold integers of up to 32 bits"),
        (lambda: aie.ups([-(2**70)], "acc64"), ValueError, f"x holds {-(2**70)}; vectors hold integers of up to 32"),
        (lambda: aie.ups([0.5], "acc64"), TypeError, "x has dtype float64; integers are expected"),
        (lambda: aie.to_float([2**32]), ValueError, f"x holds {2**32}; vectors hold"),
    ]
    for make, error, message in checks:
        with pytest.raises(error, match=message):
            make()


def test_where_results_may_go():
    a = np.arange(-500, 500, dtype=np.int32)
    want = expected(a.tolist(), 3, "int32", "positive_inf", "none")
    assert aie.srs(a, "int32", 3, "positive_inf", out=a) is a and a.tolist() == want
    frozen, b = np.zeros(4, np.int64), np.arange(5)
    frozen.setflags(write=False)
    calls = (
        (frozen, lambda out: aie.ups(b[:4], "acc64", out=out)),
        (frozen.view(np.int16)[:4], lambda out: aie.srs(b[:4], "int16", out=out)),
    )
    for fixed, make in calls:
        with pytest.raises(ValueError, match="out is read-only"):
            make(fixed)
        with pytest.raises(TypeError, match="out must be a NumPy array, not list"):
            make([0] * 4)
    with pytest.raises(ValueError, match="out overlaps the input"):
        aie.ups(b[:4], "acc64", out=b[1:])
    narrow = np.arange(9, dtype=np.int16)
    with pytest.raises(ValueError, match="out overlaps the input"):
        aie.srs(narrow[:-1], "int16", 1, out=narrow[1:])


def test_negative_shifts_multiply():
    with pytest.warns(UserWarning, match="shift=-2"):
        assert aie.srs([3, -40], "int8", -2, saturation="saturate").tolist() == [12, -128]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choices = aie.Choices(shift_check="accept")
        values = [2**63 - 1, -(2**63), 31, 32, -33, 0]
        for saturation in SATURATIONS:
            want = [saturate(v << 4, 8, True, saturation) for v in values]
            found = aie.srs(np.array(values, np.int64), "int8", -4, "ceil", saturation, choices=choices)
            assert found.tolist() == want
    with pytest.raises(ValueError, match="shift=-1 must be an integer from 0 to 59"):
        aie.srs([1], "int8", -1, choices=aie.Choices(shift_check="refuse"))


@pytest.mark.parametrize("shift", (-5, 60, 1.0, True, None))
def test_shift_out_of_range(shift):
    with pytest.raises(ValueError, match="must be an integer from -4 to 59"):
        aie.srs([1], "int8", shift)


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"rounding='conv_evn' .*did you mean 'conv_even'\?"):
        aie.srs([1], "int8", 1, "conv_evn")
    with pytest.raises(ValueError, match=r"rounding='symmetric_floor' is not a rounding mode of aie"):
        aie.srs([1], "int8", 1, "symmetric_floor", arch="aie")
    with pytest.raises(ValueError, match=r"saturation='clip' .*none, saturate, symmetric"):
        aie.srs([1], "int8", 1, saturation="clip")
    with pytest.raises(ValueError, match=r"dtype='float16' is not an integer of up to 32 bits"):
        aie.srs([1], "float16")
    with pytest.raises(TypeError, match="acc has dtype float64"):
        aie.srs([1.5], "int8")
    with pytest.raises(ValueError, match=r"out has shape \(2,\) and dtype int8; expected \(1,\) and int8"):
        aie.srs([1], "int8", out=np.empty(2, np.int8))
    with pytest.raises(ValueError, match=r"arch='aie3' is not an AI Engine architecture"):
        aie.srs([1], "int8", arch="aie3")
    with pytest.raises(ValueError, match=r"tag='acc80' is not an accumulator tag of aie-ml"):
        aie.ups(np.int8([1]), "acc80", arch="aie-ml")
    with pytest.raises(ValueError, match=r"shift=64 must be an integer from 0 to 63"):
        aie.ups(np.int8([1]), "acc64", 64)


# --- registers --------------------------------------------------------------------------------------------------------


def test_registers_are_sticky():
    def kernel_a():
        aie.set_rounding("conv_even")
        aie.set_saturation("saturate")

    with aie.tile(arch="aie-ml") as state:
        assert (state.rounding.value, state.saturation.value) == ("floor", "none")
        assert aie.srs([300, 7], "uint8", 1).tolist() == [150, 3]
        kernel_a()
        assert aie.srs([600, 7], "uint8", 1).tolist() == [255, 4]
        assert aie.srs([600, 7], "uint8", 1, "floor", "none").tolist() == [44, 3]  # one call only
        assert aie.current_tile().rounding_code == 12 and aie.current_tile().saturation_code == 1
        with aie.tile(arch="aie"):  # another tile
            assert str(aie.current_tile()) == "aie: rounding=floor (0), saturation=none (0)"
            aie.set_rounding("conv_odd")
        assert aie.current_tile().rounding.value == "conv_even"
    assert aie.current_tile().rounding.value == "floor"


def test_a_tile_keeps_its_registers():
    core = aie.tile("xdna2", "positive_inf")
    with core:
        aie.set_saturation("symmetric")
    with core as state:
        assert (state.arch.name, state.rounding_code, state.saturation_code) == ("xdna2", 9, 3)
    with pytest.raises(RuntimeError), core:
        aie.set_rounding("ceil")
        raise RuntimeError
    with core as state:
        assert state.rounding.value == "ceil"
    assert aie.current_tile().arch.name == "aie-ml"


def test_threads_do_not_leak():
    seen, ready, go = [], threading.Event(), threading.Event()

    def other():
        seen.append(aie.current_tile().rounding.value)
        aie.set_rounding("ceil")
        ready.set()
        go.wait(10)
        seen.append(aie.current_tile().rounding.value)

    with aie.tile(rounding="conv_odd"):
        thread = threading.Thread(target=other)
        thread.start()
        assert ready.wait(10)
        assert aie.current_tile().rounding.value == "conv_odd"
        aie.set_rounding("conv_even")
        go.set()
        thread.join()
    assert seen[1] == "ceil" and seen[0] in ("floor", "conv_odd")  # a free-threaded Python hands the context on


def test_async_tasks_do_not_leak():
    async def kernel(mode, out):
        aie.set_rounding(mode)
        for _ in range(3):
            await asyncio.sleep(0)
            out.append((mode, aie.current_tile().rounding.value))

    async def main():
        out = []
        with aie.tile(rounding="ceil"):
            await asyncio.gather(*(kernel(mode, out) for mode in MODES))
            assert aie.current_tile().rounding.value == "ceil"
        return out

    found = asyncio.run(main())
    assert len(found) == 30 and all(wanted == seen for wanted, seen in found)


def test_tile_arguments():
    with pytest.raises(ValueError, match="overflow='clip' must be 'wrap' or 'raise'"):
        aie.tile(overflow="clip")
    with pytest.raises(TypeError, match=r"choices='x' must be an aie\.Choices"):
        aie.tile(choices="x")
    with pytest.raises(ValueError, match="is not a rounding mode of aie"):
        aie.tile("aie", "symmetric_ceil")
    with aie.tile(rounding="symmetric_ceil"), pytest.raises(ValueError, match="is not a rounding mode of aie "):
        aie.srs([1], "int8", arch="aie")
