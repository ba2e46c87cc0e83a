"""Fixpipe: every mode against the transcription in `fixpipe_semantics`, published cases, choices, bad input."""

from __future__ import annotations

import csv
import itertools
import json
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ascend.fixpipe_semantics import clamp, m1_of, rint
from ascend.fixpipe_semantics import fixpipe as expected
from ascend.semantics import DATA
from ascend.test_choices import FIXPIPE

import bittrue as bt
from bittrue import ascend
from bittrue.ascend import Choices, QuantMode, QuantParam, fixpipe
from bittrue.cli import main

ARCHES = (2201, 3510)
MODES = [m for m in QuantMode if m is not QuantMode.NoQuant]
OF_2201 = {"F322F16", "F322BF16", "REQ8", "DEQF16", "QF322B8_PRE"}
INT32 = {"REQ8", "DEQF16", "QS322BF16_PRE"}


def base(mode: QuantMode) -> str:
    return mode.name.removeprefix("V")


def bits(pattern: int) -> float:
    return float(np.uint32(pattern).view(np.float32))


# --- inputs -----------------------------------------------------------------------------------------------------------


@cache
def accumulators(kind: str) -> tuple[int | float, ...]:
    rng = np.random.default_rng(6)
    edges = [0, 1, 2, 3, 5, 7, 127, 128, 129, 254, 255, 256, 257, 258, 509, 510, 511, 512, 513, 514, 515, 1023, 1025]
    if kind == "int":
        edges += [32767, 32768, 65534, 65535, 65536, 131007, 131008, 2**24 + 1, 2**24 + 3, 2**30 + 65, 2**31 - 65]
        edges += rng.integers(0, 1 << 31, 12).tolist() + rng.integers(0, 1 << 12, 25).tolist()
        return tuple(dict.fromkeys([*edges, *(-e for e in edges), 2**31 - 1, -(2**31)]))
    halves = [0.25, 0.5, 0.75, 1.5, 2.5, 127.5, 128.5, 254.5, 255.5, 256.5, 447.9, 464.0, 480.0, 32768.0, 49152.0]
    halves += [65519.0, 65520.0, 2.0**-23, 2.0**-24, 3e-8, 2.0**-17 * 1.5, 1e-40, 2.0**-149, 2.0**-126, 1e38]
    halves += [3.4028234663852886e38]
    both = np.float32([*edges[:1], *edges[7::2], *halves])
    both = np.concatenate([both, np.nextafter(both[::2], np.float32(0)), np.nextafter(both[1::2], np.float32(3e38))])
    wide = rng.integers(0, 0x7F800000, 12, np.uint32).view(np.float32)
    near = rng.uniform(0, 300, 12).astype(np.float32)
    found = [float(v) for v in (*both, *wide, *near)]
    return (*found, *(-v for v in found), float("inf"), -float("inf"), float("nan"))


SCALES = [
    0x3F800000, 0x3F000000, 0x3DCCCCCD, 0xBF400000, 0x00000000, 0x80000000, 0x00002000, 0x007FFFFF, 0x00800000,
    0x7F7FFFFF, 0xFF7FE000, 0x3F801FFF, 0x3FFFFFFF, 0x40000000, 0x38D1B717, 0x2F800000, 0x43000000, 0x34001234,
]  # fmt: skip


@cache
def words(signed: bool) -> tuple[int, ...]:
    """Scales with every kind of offset; some with MCB set, and with bits that mean nothing."""
    offsets = [0, 1, -1, -256, 255, 10, -128, 200]
    found = [s | (offsets[i % 8] & 0x1FF) << 37 | signed << 46 for i, s in enumerate((*SCALES, *SCALES[:8]))]
    found[:3] += [w | 0xF << 32 | 0x1FFFF << 47 for w in found[:3]]  # N without MCB
    return (*found, *(w | 1 << 36 | i << 32 for i, w in enumerate(found[:16])))  # MCB with every N


@cache
def reference(mode: str, signed: bool, relu: bool, arch: int) -> np.ndarray:
    xs = accumulators("int" if mode in INT32 else "float")
    ws = words(signed) if mode not in ("F322F16", "F322BF16") else (0,)
    if mode not in ("REQ8", "DEQF16") or arch == 3510:
        ws = tuple(w & ~(1 << 36) for w in ws)  # ignored here: one computation for both
    codes = {w: [expected(x, mode, w, relu, arch) for x in xs] for w in dict.fromkeys(ws)}
    table = [codes[w] for w in ws]
    return np.array(table, np.uint32).T


def matrix(mode: QuantMode, columns: int) -> np.ndarray:
    kind, dtype = ("int", np.int32) if base(mode) in INT32 else ("float", np.float32)
    with np.errstate(over="ignore"):
        return np.repeat(np.array(accumulators(kind), dtype)[:, None], columns, axis=1)


def same_codes(result: bt.Array, want: np.ndarray, mode: QuantMode) -> None:
    codes = result.codes.view(result.format.code_dtype)
    if result.format.name == "float32":  # which NaN comes out of a product is not stated
        nan = np.isnan(want.view(np.float32))
        assert np.array_equal(np.isnan(result.codes), nan)
        codes, want = np.where(nan, 0, codes), np.where(nan, 0, want)
    wrong = np.argwhere(codes != want)
    assert not wrong.size, (mode.name, wrong[:3].tolist(), codes[tuple(wrong[0])], want[tuple(wrong[0])])


# --- 1. every mode ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relu", [False, True], ids=["plain", "relu"])
@pytest.mark.parametrize("mode", [m for m in MODES if not m.info.per_channel], ids=lambda m: m.name)
def test_every_mode_against_the_transcription(mode: QuantMode, relu: bool) -> None:
    """And its twin with a word per column; on both architectures where both have it."""
    name = mode.name
    for arch, signed in itertools.product(ARCHES if name in OF_2201 else (3510,), (True, False)):
        if not mode.info.to_integer and not signed:
            continue
        want = reference(name, signed, relu, arch if name in ("REQ8", "DEQF16") else 3510)
        if not mode.info.parametrised:
            same_codes(fixpipe(matrix(mode, 1), mode, relu=relu, product=arch), want, mode)
            continue
        twin = QuantMode["V" + name]
        every = np.array(words(signed), np.uint64)
        result = fixpipe(matrix(twin, every.size), twin, every, relu, arch)
        same_codes(result, want, twin)
        if mode.info.to_integer:
            assert result.format.name == ("int8" if signed else "uint8")
        column = matrix(mode, 1)
        for j, word in enumerate(words(signed)):
            same_codes(fixpipe(column, mode, word, relu, arch), want[:, j : j + 1], mode)


@pytest.mark.parametrize("mode", [m for m in MODES if not m.info.per_channel], ids=lambda m: m.name)
def test_every_mode_with_a_leaky_relu(mode: QuantMode) -> None:
    """M2 for what is below zero; its low bits are cut as those of M1 are."""
    name = mode.name
    xs = accumulators("int" if name in INT32 else "float")[::3]
    x = np.array([xs], np.int32 if name in INT32 else np.float32).T
    for i, alpha in enumerate((0x3DCCCCCD, 0xBF401FFF, 0x3F800000, 0x00000000)):
        for arch in ARCHES if name in OF_2201 else (3510,):
            word = words(True)[(5 * i + 3) % 26] if mode.info.parametrised else 0
            want = np.array([[expected(v, name, word, True, arch, alpha)] for v in xs], np.uint32)
            got = fixpipe(x, mode, word if mode.info.parametrised else None, True, arch, alpha=bits(alpha))
            same_codes(got, want, mode)
            if mode.info.parametrised:
                twin = QuantMode["V" + name]
                many = fixpipe(np.repeat(x, 3, 1), twin, [word] * 3, True, arch, alpha=bits(alpha))
                same_codes(many, np.repeat(want, 3, 1), twin)


def test_modes_are_those_of_the_transcription() -> None:
    """Nothing is tested twice under one name, and no mode is left out."""
    scalar = {m.name for m in MODES if not m.info.per_channel}
    vector = {m.name for m in MODES if m.info.per_channel}
    assert vector == {"V" + m for m in scalar - {"F322F16", "F322BF16"}} and len(MODES) == 22
    assert {m.name for m in MODES if 2201 in m.info.fields} == {*OF_2201, "VREQ8", "VDEQF16", "VQF322B8_PRE"}


def test_no_quantisation_keeps_accumulators() -> None:
    x = np.int32([[5, -7, 0, -(2**31)]])
    assert fixpipe(x, "NoQuant").tolist() == x.tolist()
    assert fixpipe(x, 0, relu=True).tolist() == [[5, 0, 0, 0]]
    y = fixpipe(np.float32([[1.5, -2, -0.0, np.nan, -np.inf]]), 0, relu=True)
    assert np.array_equal(np.asarray(y), [[1.5, 0, 0, np.nan, 0]], equal_nan=True)


def test_examples_of_the_document() -> None:
    """Section 11.5 of the facts."""

    def req8(x: int, **more: Any) -> int:
        return int(fixpipe(np.int32([[x]]), "REQ8", QuantParam(0.5, **more), product=2201).item())

    assert req8(5) == 2 and req8(7) == 4
    assert req8(1000, offset=-128, signed=True) == 127
    assert req8(1000, offset=10, signed=False) == 255
    assert req8(-1000, offset=100, signed=True) == -128
    assert req8(21, shift=1, offset=-3, signed=True) == 2
    assert fixpipe(np.int32([[1000]]), "DEQF16", QuantParam(0.5)).item() == 500


def test_the_product_is_rounded_once_and_not_fused_with_the_offset() -> None:
    """Products whose float32 rounding makes or breaks a tie, many offsets: a fused multiply-add would show."""
    rng = np.random.default_rng(1)
    x = rng.integers(1 << 24, 1 << 31, (20, 257)).astype(np.int32)
    scale = np.float32(rng.uniform(1, 250, 257) / 2.0**30)
    param = QuantParam(scale, rng.integers(-256, 256, 257), True)
    every = param.pack(2201)
    found = fixpipe(x, "VREQ8", every, product=2201).codes
    want = [[expected(int(v), "REQ8", int(w), False, 2201) for v, w in zip(row, every)] for row in x]
    assert np.array_equal(found.view(np.uint8), np.array(want, np.uint8))


# --- 3. the format (1, 8, 10) -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHES)
def test_low_bits_of_the_scale_are_cut_not_rounded(arch: int) -> None:
    x = np.int32([[1000003]])
    low = 0x3F801FFF  # 1 + 2**-10 - 2**-23: cut to 1, rounded to 1 + 2**-10
    for word in (low, low | 1 << 46):
        assert fixpipe(x // 10000, "REQ8", word, product=arch).item() == 100
    assert fixpipe(np.int32([[1024]]), "DEQF16", low, product=arch).item() == 1024
    rounded = fixpipe(np.int32([[1024]]), "DEQF16", low, product=arch, choices=Choices(m1="round"))
    assert rounded.item() == 1025
    param = QuantParam(bits(low))
    assert param.pack(arch) & 0xFFFFFFFF == 0x3F800000
    assert fixpipe(np.int32([[1024]]), "DEQF16", param, product=arch).item() == 1024
    assert fixpipe(np.int32([[1024]]), "DEQF16", param, product=arch, choices=Choices(m1="round")).item() == 1025


# --- 4. columns and layout --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (65, 130), (3, 40000), (40000, 1)])
def test_equal_columns_are_the_scalar_mode(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    for mode in (m for m in MODES if m.info.per_channel):
        scalar = QuantMode[base(mode)]
        x = rng.integers(-(2**31), 2**31, shape).astype(np.int32)
        if base(mode) not in INT32:
            x = (x * 2.0**-20).astype(np.float32)
        word = QuantParam(0.0123, 17 if mode.info.to_integer else 0).pack(3510)
        one = fixpipe(x, scalar, word, True)
        many = fixpipe(x, mode, np.full(shape[1], word, np.uint64), True)
        assert one.format is many.format and np.array_equal(one.codes, many.codes)


def test_result_in_blocks() -> None:
    x = np.arange(-300, 300, dtype=np.int32).reshape(15, 40)
    nd = fixpipe(x, "REQ8", QuantParam(0.5))
    nz = fixpipe(x, "REQ8", QuantParam(0.5), layout="NZ")
    assert nz.shape == (2, 1, 16, 32) and np.array_equal(ascend.nz_to_nd(nz, x.shape).codes, nd.codes)
    out = np.empty(nz.shape, np.uint8)
    assert fixpipe(x, "REQ8", QuantParam(0.5), layout="NZ", out=out).codes is out
    assert np.array_equal(out, nz.codes)


def test_threads_and_output_memory() -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(-(2**20), 2**20, (700, 1001)).astype(np.int32)
    for mode, param in (("VREQ8", QuantParam(np.full(1001, 0.001), 3, True, 2)), ("DEQF16", QuantParam(0.3, shift=4))):
        one = fixpipe(x, mode, param, product="a2", threads=1)
        for threads in (2, 5, None):
            assert np.array_equal(fixpipe(x, mode, param, product="a2", threads=threads).codes, one.codes)
        out = np.empty((1001, 700), one.codes.dtype).T
        assert np.array_equal(fixpipe(x, mode, param, product="a2", out=out).codes, one.codes)
        assert np.array_equal(out, one.codes)
        assert np.array_equal(fixpipe(x[::-1], mode, param, product="a2").codes, one.codes[::-1])
    assert fixpipe(x[:0], "REQ8", QuantParam(1.0)).shape == (0, 1001)
    assert fixpipe(x[:, :0], "VREQ8", np.empty(0, np.uint64)).shape == (700, 0)
    swapped = fixpipe(x.astype(">i4"), "REQ8", QuantParam(0.01))
    assert np.array_equal(swapped.codes, fixpipe(bt.array(x, "int32"), "REQ8", QuantParam(0.01)).codes)


# --- 5. published cases -----------------------------------------------------------------------------------------------


with (DATA / "cases.csv").open(newline="") as file:
    CASES = [row for row in csv.DictReader(file) if row["kind"] == "fixpipe"]


@pytest.mark.parametrize("row", CASES, ids=[row["id"] for row in CASES])
def test_published_case(row: dict[str, str]) -> None:
    params, want = json.loads(row["params"]), [int(c, 16) for c in json.loads(row["expected"])]
    if params["op"] == "scale field":
        for text, code in zip(json.loads(row["input"]), want):
            for arch in ARCHES:
                assert QuantParam(float.fromhex(text)).pack(arch) & 0xFFFFFFFF == code
        return
    param = QuantParam(float.fromhex(params["scale"]), params["offset"], row["target_format"] == "int8")
    for product in ("950", "a2", "a3"):
        x = np.array([json.loads(row["input"])], row["source_format"])
        result = fixpipe(x, params["op"], param, params["relu"], product)
        assert result.format.name == row["target_format"]
        assert result.codes[0].view(np.uint8).tolist() == want


def test_all_published_cases_are_tested() -> None:
    assert len(CASES) == 3


# --- control and choices ----------------------------------------------------------------------------------------------


def test_saturation_of_float_outputs() -> None:
    x = np.float32([[1e6, -1e6, np.inf, np.nan, 1]])
    assert fixpipe(x, "F322F16").codes.tolist() == [[0x7BFF, 0xFBFF, 0x7BFF, 0, 0x3C00]]
    assert fixpipe(x, "F322F16", saturation=False).codes.tolist() == [[0x7C00, 0xFC00, 0x7C00, 0x7FFF, 0x3C00]]
    one = QuantParam(1.0)
    assert fixpipe(x, "QF322FP8_PRE", one, saturation=False).codes.tolist() == [[0x7F, 0x7F, 0x7F, 0x7F, 0x38]]
    assert fixpipe(x, "QF322FP8_PRE", one, saturation=ascend.Ctrl(bit50=True)).codes.tolist() == [
        [0x7E, 0xFE, 0x7E, 0x7F, 0x38]
    ]
    assert fixpipe(x, "QF322HIF8_PRE", one, saturation=False).codes.tolist() == [[0x6F, 0xEF, 0x6F, 0x80, 0x08]]
    acc = np.int32([[2**31 - 1, -(2**31)]])
    assert fixpipe(acc, "DEQF16", one, saturation=False).codes.tolist() == [[0x7BFF, 0xFBFF]]


def run(mode: str, x: Any, param: Any, arch: int = 2201, relu: bool = False, **choices: Any) -> list[Any]:
    x = np.array([x], np.int32 if base(QuantMode[mode]) in INT32 else np.float32)
    return fixpipe(x, mode, param, relu, arch, choices=Choices(**choices)).tolist()[0]  # type: ignore[no-any-return]


def test_n_field() -> None:
    word = 0x3F800000 | 2 << 32 | 1 << 36 | 1 << 46
    assert run("REQ8", [80, -80], word) == [10, -10]
    assert run("REQ8", [80, -80], word, n_field="raw") == [20, -20]
    raw = Choices(n_field="raw")
    assert QuantParam(1.0, 0, True, 2).pack(2201, choices=raw) == word
    assert QuantParam.unpack(word, 2201, choices=raw).shift == 2 and QuantParam.unpack(word).shift == 3
    zero = QuantParam(1.0, 0, True, 0)
    assert zero.pack(2201, choices=raw) == 0x3F800000 | 1 << 36 | 1 << 46
    with pytest.raises(ValueError, match=r"^shift=0 must be 1 to 16, or None$"):
        zero.pack(2201)
    with pytest.raises(ValueError, match=r"^shift=16 must be 0 to 15, or None$"):
        QuantParam(1.0, shift=16).pack(2201, choices=raw)


def test_offset_signed() -> None:
    word = 0x3F800000 | 0x1FF << 37
    assert run("REQ8", [10, 0], word) == [9, 0]
    assert run("REQ8", [10, -256, -300], word, offset_signed=False) == [255, 255, 255]
    unsigned = Choices(offset_signed=False)
    assert QuantParam(1.0, 511, False).pack(choices=unsigned) == word
    assert QuantParam.unpack(word, choices=unsigned).offset == 511 and QuantParam.unpack(word).offset == -1
    with pytest.raises(ValueError, match=r"^offset=-1 must be 0 to 511$"):
        QuantParam(1.0, -1).pack(choices=unsigned)
    with pytest.raises(ValueError, match=r"^offset=256 must be -256 to 255$"):
        QuantParam(1.0, 256).pack()


def test_mcb_narrow() -> None:
    param = QuantParam(2.0**-8, 0, True, 1)
    assert run("REQ8", [65534, 65536, -65538, 2**20], param) == [127, 127, -128, 127]
    assert run("REQ8", [65534, 65536, -65538, 2**20], param, mcb_narrow="wrap") == [127, -128, 127, 0]


def test_mcb_modes() -> None:
    req, deq, flt = (0x3F800000 | 1 << 36 | 1 << 46 | n << 32 for n in (1, 1, 0))
    for choice, want in (("documented", [2, 2, 9]), ("requant_only", [2, 9, 9]), ("golden_script", [2, 2, 4])):
        assert [
            run("REQ8", [9], req, mcb_modes=choice)[0],
            run("DEQF16", [9], deq, mcb_modes=choice)[0],
            run("QF322B8_PRE", [9], flt, mcb_modes=choice)[0],
        ] == want
    assert run("QF322B8_PRE", [7.0, 1e9, np.nan], flt, mcb_modes="golden_script") == [4, 127, 0]
    mixed = [flt, flt ^ 1 << 36]
    assert run("VQF322B8_PRE", [7.0, 7.0], mixed, mcb_modes="golden_script") == [4, 7]
    assert run("QF322B8_PRE", [9], flt, 3510, mcb_modes="golden_script") == [9]
    assert QuantParam(1.0, shift=3).pack(2201, "DEQF16")
    with pytest.raises(ValueError, match=r"^shift=3: mode DEQF16 on NPU architecture 2201 does not read it"):
        QuantParam(1.0, shift=3).pack(2201, "DEQF16", Choices(mcb_modes="requant_only"))


def test_scale_product() -> None:
    """float32(x) * M1 exact: rounded once into the output."""
    rng = np.random.default_rng(5)
    x = rng.integers(1 << 24, 1 << 31, 4000)
    scale = 200 / 2.0**31
    word = QuantParam(scale, -5, True).pack(2201)
    m1 = m1_of(word)
    exactly = [rint(Fraction(float(np.float32(v))) * Fraction(m1)) for v in x.tolist()]
    want = [clamp(clamp(q, -256, 255) - 5, -128, 127) for q in exactly]
    assert run("REQ8", x, word, scale_product="exact") == want
    ties = np.float32(rng.integers(1 << 23, 1 << 24, 20000)) * np.float32(2.0**-23)
    factor = 1 + 3 * 2.0**-10
    found = run("QF322F16_PRE", ties, QuantParam(factor), 3510, scale_product="exact")
    want_half = np.float16(ties.astype(np.float64) * factor)
    assert found == want_half.tolist()
    assert found != run("QF322F16_PRE", ties, QuantParam(factor), 3510)
    for mode in ("QF322F32_PRE", "QF322HIF8_PRE_HYBRID"):
        same = [run(mode, ties, QuantParam(factor), 3510, scale_product=c) for c in ("float32", "exact")]
        assert same[0] == same[1]
    special = [np.inf, -np.inf, np.nan]
    assert run("QF322B8_PRE", special, QuantParam(2.0, 1), scale_product="exact") == [127, -128, 1]
    assert run("QF322B8_PRE", special, QuantParam(2.0, 1), relu=True, scale_product="exact") == [127, 1, 1]


def test_m1() -> None:
    """Rounded to nearest even at bit 13; see also the cut above."""
    for low, want in ((0x3F801000, 1024), (0x3F803000, 1026), (0x3F800FFF, 1024), (0x3F801001, 1025)):
        assert run("DEQF16", [1024], low, m1="round") == [want]
    with pytest.raises(ValueError, match=r"^quant_pre\[0\]=0x7f7fffff must be a word whose M1 is finite$"):
        run("DEQF16", [1], 0x7F7FFFFF, m1="round")
    word = 0x3F801FFF | 5 << 37
    param = QuantParam.unpack(word, choices=Choices(m1="round"))
    assert param.scale == bits(0x3F801FFF) and param.pack(choices=Choices(m1="round")) == word


def test_m1_subnormal() -> None:
    word = 0x00402000
    x = [3.0e38]
    kept = run("QF322F32_PRE", x, word, 3510)
    assert kept == [float(np.float32(np.float32(3.0e38) * np.float32(bits(word))))] and kept[0] > 0
    assert run("QF322F32_PRE", x, word, 3510, m1_subnormal="flush") == [0]
    with pytest.raises(ValueError, match=r"^quant_pre\[0\]=0x402000 must be a word whose M1 is not subnormal"):
        run("QF322F32_PRE", x, word, 3510, m1_subnormal="raise")
    assert run("QF322F32_PRE", [2.0], 0x40000000, 3510, m1_subnormal="raise") == [4]


def test_relu_nan() -> None:
    x = np.float32([[np.nan, -1, -np.inf, 2]])
    for mode, param in (("F322F16", None), ("QF322F16_PRE", QuantParam(1.0)), ("NoQuant", None)):
        for relu, choice, keeps in ((True, "m2", True), (True, "zero", False), (False, "zero", True)):
            y = fixpipe(x, mode, param, relu, saturation=False, choices=Choices(relu_nan=choice))
            assert np.isnan(np.asarray(y)[0, 0]) == keeps
            assert keeps or y[0, 0] == 0
            assert y[0, 3] == 2 and (y[0, 1] == (0 if relu else -1))


def test_fixpipe_nan() -> None:
    x = [np.nan, np.inf, -np.inf, 3.0]
    assert run("QF322B8_PRE", x, QuantParam(1.0, 7)) == [7, 127, -128, 10]
    with pytest.raises(ValueError, match=r"^acc holds NaN or Inf, which fixpipe_nan='raise' does not allow"):
        run("QF322B8_PRE", x, QuantParam(1.0, 7), fixpipe_nan="raise")
    assert run("QF322B8_PRE", x[3:], QuantParam(1.0, 7), fixpipe_nan="raise") == [10]
    assert run("QF322F16_PRE", x, QuantParam(1.0), 3510, fixpipe_nan="raise") == [0, 65504, -65504, 3]


def test_fixpipe_sat() -> None:
    x = np.float32([[1e6, np.nan]])
    always = {"saturation": False, "choices": Choices(fixpipe_sat="always")}
    for mode, codes in (("F322F16", [0x7BFF, 0]), ("QF322FP8_PRE", [0x7E, 0]), ("QF322HIF8_PRE", [0x6E, 0])):
        param = QuantParam(1.0) if QuantMode[mode].info.parametrised else None
        assert fixpipe(x, mode, param, **always).codes.tolist() == [codes]
        assert fixpipe(x, mode, param, saturation=False).codes.tolist() != [codes]


    told = Choices(fixpipe_sat="c_api")
    for mode, arch, codes in [
        ("F322F16", 3510, [0x7C00, 0x7FFF]), ("F322F16", 2201, [0x7BFF, 0]), ("F322BF16", 3510, [0x7F7F, 0]),
        ("F322BF16", 2201, [0x7F7F, 0]), ("QF322F16_PRE", 3510, [0x7C00, 0x7FFF]),
    ]:  # fmt: skip
        param = QuantParam(1e33) if mode == "QF322F16_PRE" else None
        y = fixpipe(np.float32([[3.4e38, np.nan]]), mode, param, product=arch, saturation=False, choices=told)
        assert y.codes.tolist() == [codes], mode


def test_leaky_factor() -> None:
    """In the place of M1, or after it; a negative M1 shows which sign decides."""
    x = [8, -8, -20000]
    for scale, m2, after in ((0.5, [4, -2, -128], [4, -1, -128]), (-0.5, [-4, -2, -128], [-1, 4, 127])):
        word = QuantParam(scale)
        for mode, kind in (("REQ8", np.int32), ("VREQ8", np.int32), ("QF322B8_PRE", np.float32)):
            param = QuantParam([scale] * 3) if mode == "VREQ8" else word
            for choice, want in (("m2", m2), ("after_scale", after)):
                choices = Choices(leaky_factor=choice)
                got = fixpipe(np.array([x], kind), mode, param, True, alpha=0.25, choices=choices)
                assert got.tolist() == [want], (mode, choice)
    for choices, want in (
        (Choices(leaky_factor="after_scale"), [4, -1, -2500]),
        (Choices(scale_product="exact"), [4, -2, -5000]),
        (Choices(leaky_factor="after_scale", scale_product="exact"), [4, -1, -2500]),
    ):
        half = fixpipe(np.int32([x]), "DEQF16", QuantParam(0.5), True, alpha=0.25, choices=choices)
        assert half.tolist() == [want]
    nan = np.float32([[np.nan, -4, 4]])
    kept = fixpipe(nan, "F322F16", None, True, alpha=0.5, saturation=False).tolist()[0]
    assert np.isnan(kept[0]) and kept[1:] == [-2, 4]
    zero = Choices(relu_nan="zero")
    assert fixpipe(nan, "NoQuant", None, True, alpha=0.5, choices=zero).tolist() == [[0, -2, 4]]


def test_command_with_a_leaky_relu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    acc, made = str(tmp_path / "acc.npy"), str(tmp_path / "made.npy")
    np.save(acc, np.int32([[5, 7, 1000, -1000]]))
    asked = ["fixpipe", acc, "--mode", "REQ8", "--quant", "0x40003f000000", "--alpha", "0.125", "-o", made]
    assert main(asked) == 2 and "alpha=0.125 needs relu=True" in capsys.readouterr().err
    assert main([*asked, "--relu"]) == 0
    assert np.load(made).tolist() == [[2, 4, 127, -125]]


def test_clip_relu() -> None:
    """SetFixPipeClipRelu's example: 0x3c00, the half 1, after DEQF16."""
    offered = Choices(clip_relu="offered")
    x = np.int32([[1, 2, 3, -5, 2**31 - 1]])
    y = fixpipe(x, "DEQF16", QuantParam(0.5), True, clip=1.0, choices=offered)
    assert y.codes.tolist() == [[0x3800, 0x3C00, 0x3C00, 0x8000, 0x3C00]]
    f = np.float32([[0.1, 5.999, 6.001, np.inf, np.nan, -1]])
    for mode, param in (("F322F16", None), ("QF322F16_PRE", QuantParam(1.0))):
        y = fixpipe(f, mode, param, True, clip=6, saturation=False, choices=offered).to_numpy()[0]
        assert y[:4].tolist() == [np.float16(0.1), 6, 6, 6] and np.isnan(y[4]) and y[5] == 0
    with pytest.raises(ValueError, match=r"^clip=6: documents disagree whether NPU architecture 3510 has ClipReLU"):
        fixpipe(f, "F322F16", None, True, clip=6)
    for more, message in [
        ({"mode": "F322F16", "product": 2201}, r"clip=6: no document gives NPU architecture 2201 a ClipReLU"),
        ({"mode": "F322BF16"}, r"clip=6 limits half results, but mode F322BF16 gives bfloat16"),
        ({"mode": "F322F16", "relu": False}, r"clip=6 needs a Normal ReLU: relu=True without alpha"),
        ({"mode": "F322F16", "alpha": 0.5}, r"clip=6 needs a Normal ReLU: relu=True without alpha"),
        ({"mode": "F322F16", "clip": -6}, r"clip=-6 must be above 0 in half"),
        ({"mode": "F322F16", "clip": 1e5}, r"clip=100000.0 must be a finite float16"),
        ({"mode": "F322F16", "clip": "6"}, r"clip='6' must be a number, not str"),
    ]:
        with pytest.raises((ValueError, TypeError), match=f"^{message}$"):
            fixpipe(f, **{"relu": True, "clip": 6, "choices": offered, **more})  # type: ignore[arg-type]


def test_deqf16_offset() -> None:
    word = QuantParam(0.5, -3).pack()
    assert run("DEQF16", [5, 2**31 - 1, -5], word) == [2.5, 65504, -2.5]
    assert run("DEQF16", [5, 2**31 - 1, -5], word, deqf16_offset="added") == [-0.5, 65504, -5.5]
    tie = QuantParam(0.5, -17).pack()  # 65487 lies nearer to 65472 than to 65504
    assert run("DEQF16", [131008], tie, deqf16_offset="added") == [65472]
    columns = [QuantParam(0.5, offset).pack() for offset in (1, 255)]
    assert run("VDEQF16", [2, 131008], columns, deqf16_offset="added") == [2, 65504]
    with pytest.raises(ValueError, match=r"^offset=-3: mode DEQF16 on NPU architecture 2201 does not read it"):
        run("DEQF16", [5], QuantParam(0.5, -3))
    assert run("DEQF16", [5], QuantParam(0.5, -3), deqf16_offset="added") == [-0.5]


def test_every_question_about_fixpipe_has_a_test() -> None:
    named = {q.name for q in ascend.questions() if FIXPIPE & {*q.numbers}}
    assert named and all(f"test_{name}" in globals() for name in named)
    assert {n for q in ascend.questions() for n in q.numbers} >= FIXPIPE


# --- bad input --------------------------------------------------------------------------------------------------------

X = np.zeros((2, 3), np.int32)
F = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: fixpipe(F, "QF322FP8_PRE", 0, product="a2"),
            r"mode=QF322FP8_PRE is not on NPU architecture 2201, but on 3510; 2201 has NoQuant, F322F16",
        ),
        (
            lambda: fixpipe(X, "REQ8", 0, product="310P"),
            r"product='310P': no document describes the Fixpipe of Atlas inference AI Core",
        ),
        (lambda: fixpipe(X, "REQ9", 0), r"mode='REQ9' is not a quantisation mode; did you mean 'req8'\?"),
        (lambda: fixpipe(X, 6, 0), r"mode=6 is not a quantisation mode \(NoQuant = 0"),
        (lambda: fixpipe(X, True, 0), r"mode=True is not"),
        (lambda: fixpipe(F, "REQ8", 0), r"acc has dtype float32; mode REQ8 takes accumulators of int32_t \(int32\)"),
        (
            lambda: fixpipe(X, "QF322B8_PRE", 0),
            r"acc has dtype int32; mode QF322B8_PRE takes accumulators of float \(float32\)",
        ),
        (
            lambda: fixpipe(F.astype(float), "NoQuant"),
            r"acc has dtype float64; .* float \(float32\) or int32_t \(int32\)",
        ),
        (lambda: fixpipe(X[0], "REQ8", 0), r"acc has shape \(3,\); a matrix \[m, n\] is needed"),
        (
            lambda: fixpipe(X, "VREQ8", [1, 2]),
            r"quant_pre has shape \(2,\); mode VREQ8 takes one word for each of 3 columns",
        ),
        (lambda: fixpipe(X, "VREQ8", 0), r"quant_pre has shape \(\); mode VREQ8 takes one word for each of 3"),
        (lambda: fixpipe(X, "VREQ8", QuantParam([1.0, 2.0])), r"quant_pre has shape \(2,\); mode VREQ8"),
        (
            lambda: fixpipe(X, "REQ8", [0, 0, 0]),
            r"quant_pre has shape \(3,\); mode REQ8 takes one word for the matrix, VREQ8 one per column",
        ),
        (lambda: fixpipe(X, "REQ8"), r"quant_pre is missing: mode REQ8 reads a word$"),
        (lambda: fixpipe(X, "VREQ8"), r"quant_pre is missing: mode VREQ8 reads a word for each column"),
        (lambda: fixpipe(F, "F322F16", 1), r"quant_pre=1: mode F322F16 takes no parameter"),
        (lambda: fixpipe(X, "REQ8", 0.5), r"quant_pre=0.5 must be a 64-bit word"),
        (lambda: fixpipe(X, "REQ8", -1), r"quant_pre=-1 must be a 64-bit word"),
        (lambda: fixpipe(X, "REQ8", 0x7F800000), r"quant_pre\[0\]=0x7f800000 must be a word whose M1 is finite"),
        (
            lambda: fixpipe(X, "VREQ8", [0, 0xFF812345, 0]),
            r"quant_pre\[1\]=0xff812345 must be a word whose M1 is finite",
        ),
        (
            lambda: fixpipe(X, "VREQ8", [0, 1 << 46, 0]),
            r"quant_pre has the sign flag in 1 of 3 words; one matrix is int8 or uint8",
        ),
        (lambda: fixpipe(X, "REQ8", QuantParam(1.0, shift=2)), r"shift=2: NPU architecture 3510 has no shift"),
        (
            lambda: fixpipe(X, "DEQF16", QuantParam(1.0, 5)),
            r"offset=5: mode DEQF16 on NPU architecture 3510 does not read it; it reads scale",
        ),
        (lambda: fixpipe(X, "DEQF16", QuantParam(1.0, signed=True)), r"signed=True: mode DEQF16"),
        (
            lambda: fixpipe(F, "QF322B8_PRE", QuantParam(1.0, shift=2), product="a2"),
            r"shift=2: mode QF322B8_PRE on NPU architecture 2201",
        ),
        (lambda: fixpipe(X, "REQ8", 0, relu="leaky"), r"relu='leaky' must be True or False"),
        (lambda: fixpipe(X, "REQ8", 0, alpha=0.1), r"alpha=0.1 needs relu=True: it is the factor of a leaky ReLU"),
        (lambda: fixpipe(X, "REQ8", 0, True, alpha=1e39), r"alpha=1e\+39 must be a finite float32"),
        (lambda: fixpipe(X, "REQ8", 0, True, alpha=[0.1]), r"alpha=\[0.1\] must be a number, not list"),
        (
            lambda: fixpipe(X, "NoQuant", None, True, alpha=0.1),
            r"alpha=0.1: mode NoQuant keeps int32 accumulators, which a factor would not",
        ),
        (lambda: fixpipe(X, "REQ8", 0, layout="NC"), r"layout='NC' must be 'ND' or 'NZ'"),
        (lambda: fixpipe(X, "REQ8", 0, choices="x"), r"choices='x' must be an ascend.Choices"),
        (
            lambda: fixpipe(X, "REQ8", 0, out=np.empty((3, 2), np.uint8)),
            r"out has shape \(3, 2\) and dtype uint8; expected \(2, 3\)",
        ),
        (lambda: fixpipe(F, "F322F16", saturation="maybe"), r"saturation='maybe' must be None"),
    ],
)  # fmt: skip
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        call()
