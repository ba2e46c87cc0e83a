"""Accumulators against Python integers and fractions: shifts, products, parts, wrap, and what they refuse."""

from __future__ import annotations

import csv
import json
import math
import random
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import bittrue as bt
from bittrue import aie, exact
from bittrue.aie import floats
from bittrue.rounding import Rule

from .test_srs import MODES, SATURATIONS, expected, saturate

DATA = Path(__file__).parents[1] / "data"
INTEGER = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]


def wrap(n, bits):
    return saturate(n, bits, True, "none")


def some(rng, name, lanes):
    """Random lanes, the extremes among them."""
    part = aie.element(name).part
    low, high = int(part.min), int(part.max)

    def one():
        return rng.choice([low, high, 0, 1, rng.randint(low, high), rng.randint(low, high)])

    return [complex(one(), one()) if name.startswith("c") else one() for _ in range(lanes)]


# --- shifts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ("aie", "aie-ml", "xdna2", "aie-mlv2"))
def test_up_and_down_again(arch):
    rng = random.Random(arch)
    for tag in aie.tags(arch):
        if tag.is_float:
            continue
        names = ["cint16", "cint32"] if tag.is_complex else ["int8", "int16", "int32"]
        for name in names + ([] if tag.is_complex or arch == "aie" else ["uint16", "uint32"]):
            lanes = max(tag.lanes[0], dict(aie.element(name).sizes)[arch][0])
            values = some(rng, name, lanes)
            copied = tag.bits == 32 and name.endswith("32")
            shift = 0 if copied else rng.choice([0, 3, 12, 20, 63])
            acc = aie.accum.from_vector(aie.vector(name, values, arch), shift, tag.name)
            parts = [int(p) for v in values for p in ((v.real, v.imag) if tag.is_complex else (v,))]
            want = [wrap(p << shift, tag.bits) for p in parts]
            found = [p for v in acc.tolist() for p in (v if tag.is_complex else (v,))]
            assert found == want, (tag, name)
            down, mode, saturation = (
                rng.randint(0, 59),
                rng.choice(aie.rounding_modes(arch)).value,
                rng.choice(SATURATIONS),
            )
            for target in ["cint16", "cint32"] if tag.is_complex else ["int8", "int16", "int32"]:
                if lanes not in dict(aie.element(target).sizes)[arch]:
                    continue
                v = acc.to_vector(target, down, mode, saturation)
                part = aie.element(target).part.name
                shown = want if tag.bits == 32 and part == "int32" else expected(want, down, part, mode, saturation)
                assert v.integers().tolist() == shown


def test_the_hardware_s_short_cuts():
    acc = aie.accum("acc32", 8, [5, -7, 2**31 - 1, -(2**31), 0, 1, 2, 3], "aie-ml")
    assert acc.to_vector("int32", 9, "ceil", "symmetric").tolist() == acc.tolist()  # a copy, whatever the shift
    with pytest.raises(ValueError, match=r"shift=1 must be 0 from int32 to acc32, which is a copy"):
        aie.accum.from_vector(aie.vector("int32", range(8), "aie-ml"), 1, "acc32")
    values = [2**40 + 300, -(2**40), 300, -300, 127, -128, 32767, -32768]
    wide = aie.accum("acc64", 8, values, "aie-ml")
    for saturation in SATURATIONS:  # from 64 bits int8 is SRS to int16, then pack
        v16 = wide.grow(16).to_vector("int16", 1, "floor", saturation)
        assert wide.grow(16).to_vector("int8", 1, "floor", saturation) == v16.pack(saturation)
    floats = aie.accum("accfloat", 8, [1.5] * 8, "aie-ml")
    assert floats.to_vector("float", 5).tolist() == [1.5] * 8  # float accumulators ignore the shift


def test_acc_300_to_uint8():
    acc = aie.accum("acc32", 16, [300] * 16, "aie-ml")
    assert acc.to_vector("uint8")[0] == 44
    assert acc.to_vector("uint8", saturation="saturate")[0] == 255


def test_registers_reach_accumulators():
    acc = aie.accum("acc64", 8, [11, -11] * 4, "xdna2")
    with aie.tile("xdna2"):
        assert acc.to_vector("int16", 2).tolist()[:2] == [2, -3]
        aie.set_rounding("conv_even")
        assert acc.to_vector("int16", 2).tolist()[:2] == [3, -3]


# --- products ---------------------------------------------------------------------------------------------------------


def parts_of(values):
    return [(int(v.real), int(v.imag)) for v in values]


@pytest.mark.parametrize("arch", ("aie", "aie-ml", "xdna2"))
def test_integer_products(arch):
    rng = random.Random(5)
    names = [e.name for e in aie.elements() if e.is_integer and arch in dict(e.sizes)]
    tried = 0
    for a in names:
        for b in names:
            common = set(aie.lanes(a, arch)) & set(aie.lanes(b, arch))
            try:
                default = aie.tag(aie.default_tag(a, b, arch), arch)
            except ValueError:
                continue
            lanes = sorted(common & set(default.lanes))[0]
            x, y, z = some(rng, a, lanes), some(rng, b, lanes), some(rng, b, lanes)
            u, v, w = aie.vector(a, x, arch), aie.vector(b, y, arch), aie.vector(b, z, arch)

            def times(p, q):
                return [(m * r - n * s, m * s + n * r) for (m, n), (r, s) in zip(parts_of(p), parts_of(q))]

            def shown(pairs, tag=default):
                lanes = [(wrap(m, tag.bits), wrap(n, tag.bits)) for m, n in pairs]
                return lanes if tag.is_complex else [m for m, _ in lanes]

            xy, xz = times(x, y), times(x, z)
            acc = aie.mul(u, v)
            assert acc.tag.name == default.name and acc.tolist() == shown(xy)
            assert aie.negmul(u, v).tolist() == shown([(-m, -n) for m, n in xy])
            first = [(wrap(m, default.bits), wrap(n, default.bits)) for m, n in xy]
            assert acc.mac(u, w).tolist() == shown([(m + p, n + q) for (m, n), (p, q) in zip(first, xz)])
            assert aie.msc(acc, u, w).tolist() == shown([(m - p, n - q) for (m, n), (p, q) in zip(first, xz)])
            assert acc.tolist() == shown(xy)  # mac makes a new accumulator
            tried += 1
    assert tried > 15


def test_a_number_stands_for_a_vector():
    v = aie.vector("int16", range(8), "aie-ml")
    assert aie.mul(v, -3).tolist() == [-3 * n for n in range(8)]
    assert aie.mul(v, v, "acc64").tag.bits == 64


def test_wrap_and_raise():
    v = aie.vector("int16", [-32768, 1] * 4, "aie-ml")
    acc = aie.mul(v, v)
    assert acc.mac(v, v)[0] == -(2**31)  # 2**31 wraps
    with pytest.raises(OverflowError, match=r"lane 0 holds 2147483648, which is beyond acc32 \(overflow='raise'\)"):
        acc.mac(v, v, overflow="raise")
    with aie.tile("aie-ml", overflow="raise"), pytest.raises(OverflowError, match="lane 0"):
        acc.mac(v, v)
    assert aie.mul(v, v, "acc48").mac(v, v, overflow="raise")[0] == 2**31
    big = aie.accum("acc80", 4, [2**79 - 1, -(2**79), 0, 1], "aie")
    w = aie.vector("int32", [1, -1, 1, 1], "aie")
    assert big.mac(w, 1).tolist() == [-(2**79), 2**79 - 1, 1, 2]
    c = aie.vector("cint32", [-(2**31) - 2**31 * 1j] * 2, "aie")
    assert aie.mul(c, c)[0] == (0, 2**63)
    assert aie.mul(c, c).mac(c, c)[0] == (0, 2**64)


# --- parts, types -----------------------------------------------------------------------------------------------------


def test_parts():
    acc = aie.accum("acc64", 16, list(range(16)), "aie-ml")
    assert acc.extract(8, 1).tolist() == list(range(8, 16)) and acc[-1] == 15 and len(acc) == 16
    assert [p.size for p in acc.split(4)] == [4] * 4
    assert acc.insert(1, aie.accum("acc48", 4, [-1] * 4, "aie-ml")) is acc  # the same native accumulator
    assert acc.tolist() == [0, 1, 2, 3, -1, -1, -1, -1, *range(8, 16)]
    assert acc.extract(4, 0).grow(16, 3).tolist() == [0] * 12 + [0, 1, 2, 3]
    assert acc.extract(4, 0).grow_replicate(8).tolist() == [0, 1, 2, 3] * 2
    assert (acc.bits, acc.accum_bits, acc.value_bits, acc.is_complex, acc.is_floating_point) == (
        1024,
        64,
        64,
        False,
        False,
    )
    c = aie.accum("cacc48", 4, [1 + 2j] * 4, "aie")
    assert (c.bits, c.value_bits, c[0], c.is_real) == (384, 96, (1, 2), False)
    assert c.to_numpy().shape == (4, 2)
    assert aie.accum("acc80", 4, [2**70, 1, 2, 3], "aie").to_numpy()[0] == 2**70


def test_queries_of_the_api():
    """Section 2.3: what was asked for, what is native, what lies in memory (the next power of two)."""
    wanted = {
        ("acc40", "aie"): ("Int", 40, 48, 48, 64),
        ("acc80", "aie"): ("Int", 80, 80, 80, 128),
        ("cacc48", "aie"): ("CInt", 48, 48, 96, 128),
        ("cacc72", "aie"): ("CInt", 72, 80, 160, 256),
        ("acc48", "aie-ml"): ("Int", 48, 64, 64, 64),
        ("cacc32", "aie-ml"): ("CInt", 32, 64, 128, 128),
        ("accfloat", "xdna2"): ("FP", 32, 32, 32, 32),
        ("caccfloat", "aie-mlv2"): ("CFP", 32, 32, 64, 64),
    }
    for (tag, arch), numbers in wanted.items():
        acc = aie.accum(tag, 8, arch=arch)
        assert (acc.value_class, acc.accum_min_bits, acc.accum_bits, acc.value_bits, acc.memory_bits) == numbers
    acc = aie.accum("acc64", 8, range(8), "aie-ml")
    assert acc.grow_extract(4, 1).tolist() == [4, 5, 6, 7] and acc.grow_extract(16, 1).tolist() == [0] * 8 + [*range(8)]


def test_cast_to():
    acc = aie.accum("acc64", 4, [1, -1, 2**40, 0], "aie-ml")
    assert acc.cast_to("acc32").tolist() == [1, 0, -1, -1, 0, 256, 0, 0]
    assert acc.cast_to("cacc64").tolist() == [(1, -1), (2**40, 0)]
    assert acc.cast_to("acc32").cast_to("acc64") == acc
    floats = aie.accum("accfloat", 8, [1.0, -2.0] * 4, "aie-ml")
    assert floats.cast_to("acc32").tolist() == [0x3F800000, -(2**30)] * 4
    assert aie.accum("cacc48", 4, [1 + 2j] * 4, "aie").cast_to("acc48").tolist() == [1, 2] * 4
    with pytest.raises(ValueError, match="lanes of 48 bits are no lanes of 80 bits"):
        aie.accum("acc48", 8, arch="aie").cast_to("acc80")


def test_bad_input():
    v, w = aie.vector("int16", range(8), "aie-ml"), aie.vector("int16", range(8), "aie")
    acc = aie.accum("acc32", 8, arch="aie-ml")
    c = aie.vector("cint16", [1] * 8, "aie-ml")
    checks = [
        (lambda: aie.mul(v, w), "b is of aie, a of aie-ml; architectures cannot be mixed"),
        (lambda: acc.mac(w, w), "a is of aie, the accumulator of aie-ml; architectures cannot be mixed"),
        (lambda: aie.mul(v, aie.vector("int16", range(16), "aie-ml")), "b has 16 lanes, a has 8"),
        (lambda: acc.mac(v.grow(16), v.grow(16)), "a has 16 lanes, the accumulator 8"),
        (lambda: acc.mac(c, c), "tag='acc32' cannot hold cint16 x cint16 on aie-ml, which needs cacc64 or more"),
        (lambda: acc.to_vector("cint16"), r"dtype='cint16' is complex, but accum<acc32, 8> is real"),
        (lambda: aie.accum.from_vector(c, 0, "acc64"), r"tag='acc64' is real, but vector<cint16, 8> is complex"),
        (lambda: acc.to_vector("bfloat16"), "dtype='bfloat16': acc32 goes to integer types only"),
        (lambda: aie.accum.from_vector(v, 0, "accfloat"), "tag='accfloat' does not take vectors of int16"),
        (lambda: acc.to_vector("int16", 60), "shift=60 must be an integer from -4 to 59"),
        (lambda: aie.accum.from_vector(v, 64), "shift=64 must be an integer from 0 to 63"),
        (
            lambda: aie.accum("acc32", 4, arch="aie-ml"),
            r"lanes=4 is not a size of acc32 accumulators on aie-ml \(8, 16",
        ),
        (
            lambda: aie.accum("acc48", 8, [2**47] * 8, "aie"),
            "values holds 140737488355328, which is no integer of acc48",
        ),
        (lambda: aie.accum("acc32", 8, [1] * 7, "aie-ml"), "values has 7 numbers for 8 lanes"),
        (lambda: aie.accum.from_vector(v, 0, arch="aie"), "the vector is of aie-ml; architectures cannot be mixed"),
        (lambda: acc.insert(0, aie.accum("acc64", 8, arch="aie-ml")), "part has acc64 lanes, not acc32"),
        (
            lambda: aie.mul(v, aie.vector("bfloat16", [1] * 8, "aie-ml")),
            r"int16 x bfloat16 is not a product of aie-ml \(",
        ),
        (lambda: aie.mul(v, v, "acc4"), r"tag='acc4' is not an accumulator tag of aie-ml"),
        (lambda: aie.accum.from_vector(aie.vector.zeros("int4", 32, "aie-ml"), 0, "acc32"), "unpack them first"),
        (lambda: aie.accum("acc32", 32, arch="aie-ml").to_vector("int4"), "take int8 and pack it"),
    ]
    for make, message in checks:
        with pytest.raises(ValueError, match=message):
            make()
    with pytest.raises(TypeError, match=r"lanes of accum<acc32, 8> cannot be written one by one"):
        acc[0] = 1
    with aie.tile("aie-ml", choices=aie.Choices(accum_index="refused")), pytest.raises(TypeError, match="no index"):
        acc[0]
    with pytest.raises(IndexError, match="index=8 is out of range; accum<acc32, 8> has 8 lanes"):
        acc[8]
    with pytest.raises(TypeError, match=r"v must be an aie\.vector, not list"):
        aie.accum.from_vector([1])


# --- floats -----------------------------------------------------------------------------------------------------------


def golden_bf16():
    with (DATA / "aie_golden.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["op"] == "float_to_bf16"]
    assert len(rows) == 3
    return rows


@pytest.mark.parametrize("row", golden_bf16(), ids=lambda r: json.loads(r["params"])["rounding"])
def test_golden_float_to_bfloat16(row):
    params = json.loads(row["params"])
    given = np.array([int(x, 16) for x in json.loads(row["input"])], np.uint32).view(np.float32)
    want = [int(x, 16) for x in json.loads(row["expected"])]
    assert aie.float_to_bfloat16(given, params["rounding"], arch=int(row["arch"])).view(np.uint16).tolist() == want
    acc = aie.accum("accfloat", 8, [*given, *[0] * (8 - len(given))], int(row["arch"]))
    assert acc.to_vector("bfloat16", 0, params["rounding"]).codes[: len(want)].tolist() == want


def bf16_by_the_text(u, mode):
    """Section 9.1, on integers."""
    s, hi, d = u >> 31, u >> 16, u & 0xFFFF
    if hi & 0x7F80 == 0x7F80:
        nan = u & 0x7FFFFF
        return hi if not nan or hi & 0x7F else hi | 1
    tie = {
        "negative_inf": s, "positive_inf": 1 - s, "symmetric_zero": 0, "symmetric_inf": 1, "conv_even": hi & 1,
        "conv_odd": 1 - (hi & 1),
    }  # fmt: skip
    if mode in tie:
        return hi + (d > 0x8000 or (d == 0x8000 and tie[mode]))
    return hi + (d > 0 and {"floor": s, "ceil": 1 - s, "symmetric_floor": 0, "symmetric_ceil": 1}[mode])


@pytest.mark.parametrize("mode", MODES)
def test_float_to_bfloat16(mode):
    rng = np.random.default_rng(3)
    upper = np.concatenate(
        [rng.integers(0, 1 << 16, 300), [0, 0x8000, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0x80, 0x7F]]
    )
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
    bits = (upper[:, None] << 16 | lower).astype(np.uint32).ravel()
    want = [bf16_by_the_text(u, mode) for u in bits.tolist()]
    assert aie.float_to_bfloat16(bits.view(np.float32), mode).view(np.uint16).tolist() == want


def test_bfloat16_nan_choice():
    x = np.array([0x7F800001, 0xFFC12345], np.uint32).view(np.float32)
    assert aie.float_to_bfloat16(x).view(np.uint16).tolist() == [0x7F81, 0xFFC1]
    canonical = aie.float_to_bfloat16(x, choices=aie.Choices(bf16_nan="canonical"))
    assert canonical.view(np.uint16).tolist() == [0x7FC0, 0x7FC0]


def test_sources_of_bfloat16():
    """Shapes stay, other types are rounded to float32 first; nothing warns."""
    assert aie.float_to_bfloat16(1.5).shape == () and aie.float_to_bfloat16(np.nan).view(np.uint16) == 0x7FC0
    with np.errstate(all="raise"):
        wide = aie.float_to_bfloat16([1e300, -(2**200), Fraction(1, 3)], "conv_even")
        assert wide.view(np.uint16).tolist() == [0x7F80, 0xFF80, 0x3EAB]
        assert aie.accum("accfloat", 8, [1e300] * 8, "aie-ml").tolist() == [np.inf] * 8
    plain = np.array([[1.5, np.nan, -2], [np.inf, 0, 7]], ">f4")
    assert aie.float_to_bfloat16(plain.T).astype(float).tolist()[0] == [1.5, np.inf]
    with pytest.raises(TypeError, match="x has complex values"):
        aie.float_to_bfloat16([1j])


def test_fp8_overflow_choice():
    acc = aie.accum("accfloat", 16, [1e6, -1e6, np.inf, 448] * 4, "aie-mlv2")
    assert acc.to_vector("float8").codes.tolist()[:4] == [0x7F, 0xFF, 0x7F, 0x7E]
    assert acc.to_vector("bfloat8").codes.tolist()[:3] == [0x7C, 0xFC, 0x7C]
    assert acc.to_vector("float16").codes.tolist()[:3] == [0x7C00, 0xFC00, 0x7C00]
    sat = aie.Choices(fp8_overflow="sat")
    assert acc.to_vector("float8", choices=sat).codes.tolist()[:3] == [0x7E, 0xFE, 0x7E]
    assert acc.to_vector("bfloat8", choices=sat).codes.tolist()[:3] == [0x7B, 0xFB, 0x7B]


def test_fixed_point():
    x = np.float32([1.25, 1.75, -1.25, -1.75, 1e12, -1e12, np.nan, np.inf])
    assert aie.to_fixed(x, "int32", 1).tolist() == [2, 4, -2, -4, 2**31 - 1, -(2**31), 0, 2**31 - 1]
    old = aie.Choices(api_version="2025.1")
    assert aie.to_fixed(x, "int16", 1, choices=old).tolist() == [2, 3, -2, -3, 32767, -32768, 0, 32767]
    b = x.astype(ml_dtypes.bfloat16)
    assert aie.to_fixed(b, "int32", 1, choices=old).tolist()[:4] == [2, 3, -3, -4]  # floor
    assert aie.to_fixed(ml_dtypes.bfloat16(70144), "int16").item() == 70144 - 65536
    assert aie.to_fixed(ml_dtypes.bfloat16(70144), "int16", choices=aie.Choices(bf16_int16="saturate")).item() == 32767
    assert aie.to_fixed(b, "uint8", 0).tolist() == [1, 2, 0, 0, 255, 0, 0, 255]
    n = np.int32([2**31 - 1, -3, 2**24 + 1, 2**24 + 3])
    assert aie.to_float(n, 4).tolist() == [2.0**27, -3 / 16, 2.0**20, (2**24 + 4) / 16]
    v = aie.to_fixed(aie.vector("float", [0.5, 1.5, 2.5, -1], "aie-ml"), "int32", 0)
    assert v.tolist() == [0, 2, 2, -1] and aie.to_float(v, 1).tolist() == [0, 1, 1, -0.5]
    with aie.tile(rounding="ceil", saturation="none"):  # the registers do not count
        assert aie.to_fixed(np.float32([0.25, 3e9]), "int32").tolist() == [0, 2**31 - 1]
    for bad, message in (
        (lambda: aie.to_fixed(np.float64([1])), "x has dtype float64"),
        (lambda: aie.to_float(np.float32([1])), "x has dtype float32"),
    ):
        with pytest.raises(TypeError, match=message):
            bad()
    with pytest.raises(ValueError, match="dtype='int4' must be int8"):
        aie.to_fixed(x, "int4")
    with pytest.raises(ValueError, match="shift=200 must be"):
        aie.to_float(n, 200)


def test_fixed_point_of_vectors():
    c = aie.vector("cint16", [3 - 5j, 1j, -32768, 7] * 2, "aie-ml")
    f = aie.to_float(c, 1)  # part by part: aie_api 2025, aie.hpp
    assert f.element.name == "cfloat" and f.tolist() == [1.5 - 2.5j, 0.5j, -16384, 3.5] * 2
    assert aie.to_fixed(f, "cint16", 1) == c
    assert aie.to_fixed(f, "cint32", 2).tolist() == [6 - 10j, 2j, -65536, 14] * 2
    with np.errstate(all="raise"):
        assert aie.to_float(np.int32([2**30, -1]), -128).tolist() == [np.inf, -np.inf]
    assert aie.to_float(7, 1).shape == () and aie.to_float([7], 1).tolist() == [3.5]
    assert aie.to_fixed(np.array([2.5], ">f4"), "int8").tolist() == [2]
    v, w = aie.vector("int16", range(8), "aie-ml"), aie.vector("float", range(8), "aie-ml")
    checks = [
        (lambda: aie.to_float(aie.vector.zeros("int4", 32, "aie-ml")), "vectors of int4 do not become floats; unpack"),
        (lambda: aie.to_float(v.grow(64)), "lanes=64 is not a size of float vectors on aie-ml"),
        (lambda: aie.to_float(v, arch="aie"), "the vector is of aie-ml; architectures cannot be mixed"),
        (lambda: aie.to_float(aie.vector("cint16", [1] * 8, "xdna2")), "'cfloat' is not a vector element"),
        (lambda: aie.to_fixed(v), r"vectors of int16 do not become fixed point \(float, bfloat16 and cfloat do\)"),
        (lambda: aie.to_fixed(f, "int16"), "dtype='int16' and vectors of cfloat: only one of them is complex"),
        (lambda: aie.to_fixed(w, "int8"), "lanes=8 is not a size of int8 vectors"),
    ]
    for make, message in checks:
        with pytest.raises(ValueError, match=message):
            make()


def to_float32(value):
    """Round an exact value to float32, nearest even."""
    return float(exact.decode(exact.encode(value, "float32", Rule(overflow="infinity")), "float32"))


def aligned(addends):
    """Section 9.4: XDNA1's sum of exact addends: numbers, and products as pairs of factors.

    The exponent of a product is the sum of its factors' (xdna-emu 7380bd5, bf16_pipeline.rs), though it may be twice as
    large.
    """
    factors = [a if isinstance(a, tuple) else (a, Fraction(1)) for a in addends]
    factors = [(a, b) for a, b in factors if a and b]
    if not factors:
        return 0.0
    top = max(max(floor_log2(abs(a)), -126) + max(floor_log2(abs(b)), -126) for a, b in factors)
    unit = Fraction(2) ** (top - 23)
    total = sum(round(a * b / unit) for a, b in factors) * unit  # round: half to even
    if 0 < abs(total) < Fraction(2) ** -126 * (1 - Fraction(1, 2**25)):  # subnormal, though rounded to 24 bits
        return math.copysign(0.0, total)
    return to_float32(total)


def floor_log2(value):
    e = 0
    while value >= 2:
        value, e = value / 2, e + 1
    while value < 1:
        value, e = value * 2, e - 1
    return e


def bf16_values(rng, count, spread=12):
    x = rng.standard_normal(count) * 2.0 ** rng.integers(-spread, spread, count)
    return x.astype(np.float32).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("arch", ("aie-ml", "xdna2"))
def test_bfloat16_mac(arch):
    rng = np.random.default_rng(7)
    for _ in range(20):
        x, y, z = (bf16_values(rng, 16) for _ in range(3))
        u, v, w = (aie.vector("bfloat16", n, arch) for n in (x, y, z))
        acc = aie.mul(u, v)
        products = [Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, y)]
        assert acc.tolist() == [float(p) for p in products]  # 16 bits: exact
        sums = [(p, Fraction(float(a)), Fraction(float(b))) for p, a, b in zip(products, x, z)]

        def at_once(p, a, b):
            return aligned([p, (a, b)])

        def ieee(p, a, b):
            return to_float32(p + a * b)

        combine, other_way = (at_once, ieee) if arch == "aie-ml" else (ieee, at_once)
        assert acc.mac(u, w).tolist() == [combine(*s) for s in sums]
        assert acc.msc(u, w).tolist() == [combine(p, -a, b) for p, a, b in sums]
        assert aie.negmul(u, v).tolist() == [-float(p) for p in products]
        other = {"aie-ml": "ieee", "xdna2": "aligned23"}[arch]
        found = acc.mac(u, w, choices=aie.Choices(mac_model=other)).tolist()
        assert found == [other_way(*s) for s in sums]


@pytest.mark.parametrize(
    "products, total",
    [
        ([(1.5, 1.5), (2.0**-23, 1), (2.0**-23, 1)], 2.25 + 2.0**-22),  # at the exponent 0, a unit of 2**-23 each
        ([(2, 1), (2.0**-23, 1), (2.0**-23, 1)], 2.0),  # at the exponent 1, half a unit each: to even
        ([(2, 1), (1.5 * 2.0**-23, 1), (2.0**-24, 1)], 2 + 2.0**-22),  # three quarters of a unit, and a quarter
        ([(1.5, 1.5), (1.5 * 2.0**-24, 1), (-1.5 * 2.0**-24, -1)], 2.25 + 2.0**-22),  # three quarters each
        ([(1.5, 1.5), (2.0**-23, 1)], 2.25),  # a sum of 25 bits: half to even
    ],
)
def test_exponents_of_products_are_sums(products, total):
    """1.5 * 1.5 is 2.25 at the exponent 0, not 1.125 at the exponent 1: xdna-emu 7380bd5, bf16_pipeline.rs."""
    a, b = np.array(products).T.astype(ml_dtypes.bfloat16)
    assert aie.matmul(a[None], b[:, None], arch="aie-ml")[0, 0] == total
    lanes = [aie.vector("bfloat16", [float(x)] * 8, "aie-ml") for x in (*a[:2], *b[:2])]
    if len(products) == 2:
        assert aie.mul(lanes[1], lanes[3]).mac(lanes[0], lanes[2])[0] == total


def test_a_vector_of_xdna_emu():
    """bf16_pipeline.rs of xdna-emu 7380bd5, whose model of the MAC was compared with XDNA1 silicon."""
    a = np.uint16([0xEBD7, 0xB13B, 0x4F6C, 0x8D21, 0x6080, 0x39C6, 0x107E, 0xD6A6]).view(ml_dtypes.bfloat16)
    b = np.uint16([0x0802, 0x7B38, 0x6983, 0x2273, 0x33A8, 0x1130, 0xE493, 0x18EC]).view(ml_dtypes.bfloat16)
    assert aie.matmul(a[None], b[:, None], arch="aie-ml").view(np.uint32)[0, 0] == 0x797187FF


def test_subnormals_take_part_in_sums():
    """Subnormal addends count, subnormal sums do not: xdna-emu 7380bd5, vector_float.rs, measured on XDNA1."""
    acc = aie.accum("acc32", 8, [-0x7FAE0000] * 8, "aie-ml").cast_to("accfloat")  # 0x80520000
    v = aie.vector("int16", [-0x7F82] * 8, "aie-ml").cast_to("bfloat16")  # 0x807E
    found = acc.mac(v, 1)
    assert found.cast_to("acc32")[0] & 0xFFFFFFFF == 0x80D00000
    back = found.msc(v, 1)  # 0x80520000 again, but as a result
    assert back.cast_to("acc32")[0] & 0xFFFFFFFF == 0x80000000
    rng = np.random.default_rng(11)
    for _ in range(60):
        a, b = (rng.choice([1, -1], (2, 8)) * rng.uniform(1, 2, (2, 8)) * 2.0 ** rng.integers(-70, -60, (2, 8))).astype(
            ml_dtypes.bfloat16
        )
        a[::3] = a[::3].astype(float) * 2.0**-65  # subnormal
        b[::3] = b[::3].astype(float) * 2.0**65
        start = np.float32(rng.choice([0, 2.0**-126, 3 * 2.0**-149, -(2.0**-127)]))
        terms = [Fraction(float(start)), *((Fraction(float(x)), Fraction(float(y))) for x, y in zip(a, b))]
        found = start.reshape(1, 1).copy()
        floats.add_products(found, np.float32(a)[None], np.float32(b)[:, None], aie.current_tile())
        assert found[0, 0] == aligned(terms) and np.signbit(found[0, 0]) == (math.copysign(1, aligned(terms)) < 0)


@pytest.mark.parametrize("last, total", [((224, 146), 2.0**-126), ((255, 128), 0.0)])
def test_sums_that_round_to_a_normal_value(last, total):
    """In units of 2**-151: 255 * 255 * 2**9 + 255 * 128 * 2**3 + 511 or 510: one or two below 2**25, or 2**-126."""
    a = np.array([255 * 2.0**-71, 255 * 2.0**-71, last[0] * 2.0**-71]).astype(ml_dtypes.bfloat16)
    b = np.array([255 * 2.0**-71, 128 * 2.0**-77, last[1] * 2.0**-86]).astype(ml_dtypes.bfloat16)
    assert sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b)) == 2.0**-151 * (2**25 - 2 + bool(total))
    assert aie.matmul(a[None], b[:, None], arch="aie-ml")[0, 0] == total


def test_bfloat16_special_values():
    special = [np.inf, -np.inf, np.nan, 0, 1, np.inf, 2.0**-127, -(2.0**-127)]
    u = aie.vector("bfloat16", special, "aie-ml")
    v = aie.vector("bfloat16", [1, 1, 1, 1, 1, 0, 1, 1], "aie-ml")
    found = aie.mul(u, v).cast_to("acc32").to_numpy().astype(np.int32).view(np.uint32).tolist()
    assert found[:3] == [0x7F800000, 0xFF800000, 0x7FC00000] and found[5] == 0x7FC00000  # Inf * 0
    assert found[6] == 0 and found[7] in (0, 0x80000000)  # denormals count as zero
    assert aie.mul(u.cast_to("bfloat16"), v, choices=aie.Choices(mac_model="ieee"))[6] == 2.0**-127
    acc = aie.accum("accfloat", 8, [2.0**-126] * 8, "aie-ml")
    minus = aie.vector("bfloat16", [2.0**-63] * 8, "aie-ml")
    less = aie.vector("bfloat16", [2.0**-64] * 8, "aie-ml")
    assert acc.msc(minus, less).tolist() == [0.0] * 8  # 2**-127 is a denormal result
    big = aie.vector("bfloat16", [3e38] * 8, "aie-ml")
    assert aie.mul(big, big)[0] == np.inf


# Parts of v1 and v2 whose products are added, in the words of llvm-aie's aiev2_core.h: v1 = a + b + c, v2 = d + e + f.
CHAINS = {
    "low": "bd ae ad",
    "fast": "af be cd bd ae ad",
    "safe": "cf ce bf af be cd bd ae ad",
}


def one_by_one(addends):
    """IEEE additions in float32, products rounded before."""
    total = Fraction(0)
    for a in addends:
        a = to_float32(a[0] * a[1]) if isinstance(a, tuple) else a
        total = Fraction(to_float32(total + Fraction(a)))
    return float(total)


def fitted(addends):
    """XDNA2's adder by xdna-engine 9bcbe24, attn_ref.py and chain_ref.py: products one by one, sums like XDNA1's."""
    total = Fraction(0)
    for a in addends:
        if not isinstance(a, tuple):
            total = Fraction(aligned([total, Fraction(a)])) if total else Fraction(a)
        elif a[0] and a[1]:
            e = floor_log2(abs(a[0])) + floor_log2(abs(a[1])) + 1
            e = max(e, floor_log2(abs(total))) if total else e
            units, eighths = Fraction(2) ** (e - 23), Fraction(2) ** (e - 26)
            total = Fraction(to_float32(round(total / eighths) * eighths + round(a[0] * a[1] / units) * units))
    return float(total)


def test_sums_as_fitted_on_xdna2():
    rng = np.random.default_rng(15)
    model = aie.Choices(mac_model="aligned26")
    a, b = bf16_values(rng, 4 * 40, 3).reshape(4, 40), bf16_values(rng, 40 * 5, 3).reshape(40, 5)
    x, y = ([[Fraction(float(v)) for v in row] for row in m] for m in (a, b.T))
    wanted = [[fitted(list(zip(row, column))) for column in y] for row in x]
    assert aie.matmul(a, b, arch="xdna2", choices=model).tolist() == wanted
    assert aie.matmul(a, b, arch="xdna2").tolist() != wanted  # LLVM's model
    z = (rng.standard_normal(32) * 2.0 ** rng.integers(-9, 9, 32)).astype(np.float32).tolist()
    u, v = aie.vector("bfloat16", a[0, :32], "xdna2"), aie.vector("bfloat16", b.T[0, :32], "xdna2")
    acc = aie.accum("accfloat", 32, z, "xdna2")
    pairs = [(Fraction(s), Fraction(p), Fraction(q)) for s, p, q in zip(z, u.tolist(), v.tolist())]
    assert acc.mac(u, v, choices=model).tolist() == [fitted([s, (p, q)]) for s, p, q in pairs]
    assert acc.msc(u, v, choices=model).tolist() == [fitted([s, (-p, q)]) for s, p, q in pairs]
    one = aie.Choices(mac_model="aligned26", float_products="safe")
    with aie.tile("xdna2", "conv_even", choices=one):
        f, g = aie.vector("float", z), aie.vector("float", z[::-1])
        how = {"add": fitted_apart, "at_once": False}
        assert aie.mul(f, g).tolist() == [out_of_parts(p, q, "conv_even", "safe", **how) for p, q in zip(z, z[::-1])]


def fitted_apart(addends):
    """The same where a product is made first and then added, as option safe does; splits multiply and subtract."""
    if isinstance(addends[-1], tuple) and addends[-1][1] != 1:
        return fitted([addends[0], fitted([addends[-1]])])
    return fitted(addends)


@pytest.mark.parametrize("model, total", [("aligned26", 1.0), ("aligned23", 1 + 2.0**-23), ("ieee", 1 + 2.0**-23)])
def test_an_accumulator_beside_a_larger_product(model, total):
    """2**-24 + 2**-26 beside 1 * 1, whose exponent is 1 on XDNA2: 2.5 units of 2**-25, to even 2, and then a tie."""
    v = aie.vector("bfloat16", [1.0] * 8, "xdna2")
    acc = aie.accum("accfloat", 8, [2.0**-24 + 2.0**-26] * 8, "xdna2")
    assert acc.mac(v, v, choices=aie.Choices(mac_model=model))[0] == total


def split(value, mode, names, add):
    """The bfloat16 parts of a float32, each of what those before left; by the rule of section 9.1, on bits."""
    found = {}
    for name in names:
        code = bf16_by_the_text(int(np.float32(value).view(np.uint32)), mode) << 16
        part = float(np.uint32(code).view(np.float32))
        found[name] = Fraction(part)
        value = add([Fraction(value), (-Fraction(part), Fraction(1))])
    return found


def out_of_parts(x, y, mode, option, acc=None, minus=False, add=aligned, at_once=True):
    parts = {**split(x, mode, "abc", add), **split(y, mode, "def", add)}
    *first, last = ((parts[p], parts[q]) for p, q in CHAINS[option].split())
    total = 0.0
    for pair in first:
        total = add([Fraction(total), pair])
    if acc is not None and not minus and at_once:
        return add([Fraction(total), Fraction(acc), last])  # addmac_elem_16_2
    total = add([Fraction(total), last])
    if acc is not None:
        return add([Fraction(acc), -Fraction(total) if minus else Fraction(total)])
    return -total if minus else total


@pytest.mark.parametrize("arch", ("xdna2", "aie-mlv2"))
@pytest.mark.parametrize("option", CHAINS)
def test_products_of_floats_on_later_engines(option, arch):
    """mul of all options; added to accumulators the safe ones only: tmp = add(tmp, mul(...)), then add(acc, tmp)."""
    rng = np.random.default_rng(14)
    x, y, z = (rng.standard_normal((3, 16)) * 2.0 ** rng.integers(-9, 9, (3, 16))).astype(np.float32).tolist()
    how = {"add": one_by_one, "at_once": False}
    with aie.tile(arch, "conv_even", choices=aie.Choices(float_products=option)):
        u, v, acc = aie.vector("float", x), aie.vector("float", y), aie.accum("accfloat", 16, z)
        assert aie.mul(u, v).tolist() == [out_of_parts(p, q, "conv_even", option, **how) for p, q in zip(x, y)]
        assert aie.negmul(u, v).tolist() == [-n for n in aie.mul(u, v).tolist()]
        for minus, call in ((False, acc.mac), (True, acc.msc)):
            if option != "safe":
                with pytest.raises(ValueError, match=f"how {arch} adds such products to accumulators is not known"):
                    call(u, v)
                continue
            wanted = [out_of_parts(p, q, "conv_even", option, s, minus, **how) for p, q, s in zip(x, y, z)]
            assert call(u, v).tolist() == wanted


@pytest.mark.parametrize("mode", ("floor", "conv_even", "symmetric_ceil"))
@pytest.mark.parametrize("option", CHAINS)
def test_products_of_floats_out_of_bfloat16(option, mode):
    rng = np.random.default_rng(12)
    x, y, z = (rng.standard_normal((3, 16)) * 2.0 ** rng.integers(-20, 20, (3, 16))).astype(np.float32).tolist()
    x[:3], y[:3] = (1.0, 1 + 2.0**-23, -1.3 * 2.0**-60), (1.0, 1 + 2.0**-23, 1.7 * 2.0**-60)  # products of parts vanish
    x[2], y[2] = (float(np.float32(v)) for v in (x[2], y[2]))
    with aie.tile("aie-ml", mode, choices=aie.Choices(float_products=option)):
        u, v = aie.vector("float", x), aie.vector("float", y)
        acc = aie.accum("accfloat", 16, z)
        found = {"mul": aie.mul(u, v), "negmul": aie.negmul(u, v), "mac": acc.mac(u, v), "msc": acc.msc(u, v)}
    wanted = {
        "mul": [out_of_parts(p, q, mode, option) for p, q in zip(x, y)],
        "negmul": [out_of_parts(p, q, mode, option, minus=True) for p, q in zip(x, y)],
        "mac": [out_of_parts(p, q, mode, option, s) for p, q, s in zip(x, y, z)],
        "msc": [out_of_parts(p, q, mode, option, s, True) for p, q, s in zip(x, y, z)],
    }
    assert {name: lanes.tolist() for name, lanes in found.items()} == wanted
    assert wanted["mul"] != [to_float32(Fraction(p) * Fraction(q)) for p, q in zip(x, y)]  # parts round on the way


def test_exact_products_of_floats_round_once():
    rng = np.random.default_rng(13)
    x, y, z = rng.uniform(-2, 2, (3, 4000)).astype(np.float32).tolist()
    for n in range(0, 4000, 32):
        p, q, s = (aie.vector("float", v[n : n + 32], "aie-ml") for v in (x, y, z))
        exact = [to_float32(Fraction(a) * Fraction(b)) for a, b in zip(p.tolist(), q.tolist())]
        assert aie.mul(p, q).tolist() == exact
        acc = aie.accum.from_vector(s, 0, "accfloat")
        assert acc.mac(p, q).tolist() == [aligned([Fraction(c), Fraction(e)]) for c, e in zip(s.tolist(), exact)]


def test_where_products_of_parts_are_not_known():
    fast = aie.Choices(float_products="fast")
    x = np.ones((4, 8), np.float32)
    checks = [
        ("aie-ml", lambda v, w: aie.mul(w, w), "float_products='fast' is known for real products only"),
        ("aie-ml", lambda v, w: aie.matmul(x, x.T), "known for products lane by lane, not for matrices"),
        ("aie-ml", lambda v, w: aie.mmul(4, 8, 4, "float", "float").mul(x, x.T), "not for matrices; take 'exact'"),
    ]
    for arch, make, message in checks:
        with aie.tile(arch, choices=fast), pytest.raises(ValueError, match=message):
            make(aie.vector("float", [1.0] * 8), aie.vector("cfloat", [1.0] * 8))
    with aie.tile("aie", choices=fast):  # has float products of its own
        assert aie.mul(aie.vector("float", [3.0] * 8), 1.1).tolist() == [float(np.float32(3) * np.float32(1.1))] * 8
    with aie.tile("aie-ml", choices=fast):
        v = aie.vector("bfloat16", [3.0] * 8)
        assert aie.mul(v, v).tolist() == [9.0] * 8
        inf = aie.mul(aie.vector("float", [np.inf, -0.0, 2, 1] * 2), 1.0).tolist()
        assert np.isnan(inf[0]) and inf[1:4] == [0, 2, 1]  # what Inf leaves for the next part is no number


def test_first_ai_engine_s_floats():
    a = aie.vector("float", [2.0**-100, 1.1, 3, 1e38], "aie")
    b = aie.vector("float", [2.0**-40, 1.1, -2, 1e38], "aie")
    x = np.float32(1.1)
    assert aie.mul(a, b).tolist() == [2.0**-140, float(x * x), -6.0, np.inf]
    flush = aie.Choices(aie1_denormals="flush")
    assert aie.mul(a, b, choices=flush).tolist()[:2] == [0.0, float(x * x)]


def test_complex_floats():
    rng = np.random.default_rng(9)
    x = bf16_values(rng, 8).astype(np.float32).view(np.complex64)
    y = bf16_values(rng, 8).astype(np.float32).view(np.complex64)
    u, v = aie.vector("cbfloat16", x, "aie-ml"), aie.vector("cbfloat16", y, "aie-ml")
    found = aie.mul(u, v)
    assert found.tag.name == "caccfloat" and found.is_complex
    for lane, (p, q) in zip(found.tolist(), zip(x.tolist(), y.tolist())):
        m, n, r, s = (Fraction(t) for t in (p.real, p.imag, q.real, q.imag))
        assert (lane.real, lane.imag) == (aligned([(m, r), (-n, s)]), aligned([(m, s), (n, r)]))
    assert found.to_vector("cfloat").to_numpy().tolist() == found.tolist()
    assert aie.Choices(xdna2_caccfloat="refused") == aie.Choices()
    with pytest.raises(ValueError, match="caccfloat"):
        aie.accum("caccfloat", 4, arch="xdna2")
    with aie.tile("xdna2", choices=aie.Choices(xdna2_caccfloat="offered")):
        assert aie.accum("caccfloat", 4).bits == 256


# --- blocks -----------------------------------------------------------------------------------------------------------


def golden_bfp16():
    with (DATA / "aie_golden.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["op"] == "float_to_bfp16ebs8"]
    assert len(rows) == 47
    return rows


@pytest.mark.parametrize("row", golden_bfp16(), ids=lambda r: json.loads(r["params"])["case"])
def test_golden_accfloat_to_bfp16(row):
    params = json.loads(row["params"])
    given = np.array([int(x, 16) for x in json.loads(row["input"])], np.uint32).view(np.float32)
    exponent, mantissas = json.loads(row["expected"])
    acc = aie.accum("accfloat", 32, arch="xdna2")
    acc = acc.insert(1, aie.accum("accfloat", 8, list(given), arch="xdna2"))
    with aie.tile("xdna2", params["rounding"]):
        found = acc.to_vector("bfp16ebs8")
    assert found.exponents.tolist()[1] == exponent
    assert found.mantissas.view(np.int8)[8:16].tolist() == mantissas
    assert found.exponents.tolist()[0] == 0 and not found.mantissas[:8].any()


def test_blocks_in_and_out():
    x = np.random.default_rng(2).standard_normal(64).astype(np.float32)
    acc = aie.accum("accfloat", 64, list(x), arch="aie-mlv2")
    block = acc.to_vector("mx9", 7, "conv_even")  # the shift has no effect
    assert block.tag == "mx9" and block.tobytes() == bt.encode(x, "mx9").tobytes()
    assert acc.to_vector("mx9").tobytes() == bt.encode(x, "mx9", "floor").tobytes()
    back = aie.accum.from_vector(block)
    assert back.tag.name == "accfloat" and back.tolist() == np.asarray(block, np.float32).tolist()
    am027 = aie.Choices(convention="am027")
    assert acc.to_vector("mx9", choices=am027).tobytes() == bt.encode(x, "mx9_am027", "floor").tobytes()
    with pytest.raises(ValueError, match="block vectors go to accfloat with shift 0 only"):
        aie.accum.from_vector(block, 1)
    with pytest.raises(ValueError, match="bfp16ebs16 have no way into an accumulator"):
        aie.accum.from_vector(aie.block_vector("bfp16ebs16", 64))
    with pytest.raises(ValueError, match="'mx9' does not exist on arch=xdna2"):
        aie.accum("accfloat", 64, arch="xdna2").to_vector("mx9")
