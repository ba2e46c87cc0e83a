"""CastDequant: every step against a transcription in Fractions, the example of the page, blocks, choices, bad input."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from ascend.fixpipe_semantics import clamp, m1_of, rint, round_to, times
from ascend.semantics import expected_dequant

import bittrue as bt
from bittrue import ascend
from bittrue.ascend import Choices, QuantParam, cast_dequant

ALL = [p.name for p in ascend.products()]
WITH = {
    "int8_t": [*ALL[:3], "Atlas inference AI Core"],
    "uint8_t": [*ALL[:3], "Atlas inference AI Core"],
    "half": ALL[:3],
}


def expected(x: int, word: int) -> int:
    """Section 9.2 of the facts, as written; the code as an unsigned byte."""
    t = round_to("float", times(x, m1_of(word & 0xFFFFFFFF)))  # f32(src) is exact
    if not np.isfinite(t):
        t = 32767 if t > 0 else -32768
    t = clamp(rint(Fraction(t)), -32768, 32767)
    t = clamp(t, -256, 255) + (word >> 37 & 0xFF) - (word >> 37 & 0x100)
    return (clamp(t, -128, 127) if word >> 46 & 1 else clamp(t, 0, 255)) & 0xFF


SCALES = [
    0x3F800000, 0x3F000000, 0x3DCCCCCD, 0xBF400000, 0x00000000, 0x80000000, 0x00002000, 0x3F801FFF, 0x7F7FE000,
    0xFF7FE000, 0x3C23D70A, 0x40490FDB, 0x38D1B717, 0x007FFFFF, 0x43000000, 0x3EAAAAAB,
]  # fmt: skip
OFFSETS = [0, 1, -1, -256, 255, 10, -128, 200]
X = sorted({s * v for v in (0, 1, 2, 3, 5, 7, 127, 129, 255, 257, 509, 511, 513, 1023, 4097, 32767) for s in (1, -1)})
X += [-32768, *np.random.default_rng(2).integers(-32768, 32768, 60).tolist()]


def word(i: int, signed: bool) -> int:
    return SCALES[i % 16] | (OFFSETS[i * 5 % 8] & 0x1FF) << 37 | signed << 46


@pytest.mark.parametrize("dst", ["int8_t", "uint8_t"])
def test_every_step(dst: str) -> None:
    """One word for the tensor; 16 of them, for tensors of every length modulo 16, in threads too."""
    signed = dst == "int8_t"
    x = np.array(X, np.int16)
    table = np.array([[expected(v, word(i, signed)) for v in X] for i in range(16)], np.uint8)
    for i in range(16):
        got = cast_dequant(x, dst, word(i, signed), WITH[dst][i % 4])
        assert got.format.name == dst.removesuffix("_t")
        assert np.array_equal(got.codes.view(np.uint8), table[i]), hex(word(i, signed))
    lanes = [word(i, signed) for i in range(16)]
    for size in (0, 1, 15, 16, 17, 31, 1023, 1024, 1041, 5003):
        at = np.arange(size) * 7 % x.size
        for threads in (1, 3):
            got = cast_dequant(x[at], dst, lanes, threads=threads)
            assert np.array_equal(got.codes.view(np.uint8), table[np.arange(size) % 16, at])
    shaped = cast_dequant(x[:91].reshape(7, 13)[::-1], dst, np.array(lanes, np.uint64))
    flat = cast_dequant(np.ascontiguousarray(x[:91].reshape(7, 13)[::-1]).reshape(-1), dst, lanes)
    assert shaped.shape == (7, 13) and np.array_equal(shaped.codes.reshape(-1), flat.codes)


def test_every_int16_by_powers_of_two() -> None:
    """x * 2**-k is exact: NumPy's integers say what rounding to nearest even gives."""
    x = np.arange(-32768, 32768, dtype=np.int16)
    for k in (0, 1, 5, 8, 13):
        whole, rest = x.astype(np.int64) >> k, x.astype(np.int64) & ((1 << k) - 1)
        whole += (2 * rest > 1 << k) | ((2 * rest == 1 << k) & (whole & 1 == 1))
        for offset in (0, -3, 255):
            want = np.clip(np.clip(whole, -256, 255) + offset, -128, 127)
            assert np.array_equal(cast_dequant(x, "int8_t", QuantParam(2.0**-k, offset)).tolist(), want)


def test_the_sign_flag_is_that_of_the_destination() -> None:
    x = np.int16([-5, 300])
    for param in (QuantParam(1.0), QuantParam([1.0] * 16)):
        assert cast_dequant(x, "int8_t", param).tolist() == [-5, 127]
        assert cast_dequant(x, "uint8_t", param).tolist() == [0, 255]
    with pytest.raises(ValueError, match=r"^deqscale has signMode 1, but dst is uint8_t, which is signMode 0$"):
        cast_dequant(x, "uint8_t", QuantParam(1.0, signed=True))
    with pytest.raises(ValueError, match=r"^deqscale\[3\] has signMode 0, but dst is int8_t, which is signMode 1$"):
        cast_dequant(x, "int8_t", QuantParam([1.0] * 16, signed=[True] * 3 + [False] * 13))


def test_the_example_of_the_page() -> None:
    """First and last block of the input there, and what it shows of the output with halfBlock = true."""
    first, last = "20 53 26 12 36 6 20 93 66 30 56 99 59 92 7 37", "10 89 3 39 94 23 89 16 23 60 71 42 46 58 65 90"
    x = np.array((first + " " + last).split(), np.int16)
    blocks = cast_dequant(x, "uint8_t", QuantParam([1.0] * 16), half_block=True)
    assert blocks.tolist() == [[0] * 16 + x[:16].tolist(), [0] * 16 + x[16:].tolist()]
    upper = cast_dequant(x[:20], "uint8_t", QuantParam(1.0), half_block=False)
    assert upper.tolist() == [x[:16].tolist() + [0] * 16, x[16:20].tolist() + [0] * 28]
    out = np.full((2, 32), 9, np.uint8)
    assert cast_dequant(x[:20], "uint8_t", QuantParam(1.0), half_block=False, out=out).codes is out
    assert np.array_equal(out, upper.codes)


def test_int32_to_half_is_the_dequantising_cast() -> None:
    x = np.int32([0, 1, -7, 2**24 + 1, 2**31 - 1, -(2**31), 1000, 131071])
    for product in WITH["half"]:
        for saturation in (True, False):
            got = cast_dequant(x, "half", 0.33, product, saturation=saturation).codes
            assert got.tolist() == [expected_dequant(int(v), 0.33, saturation) for v in x]
    assert cast_dequant(np.int32(9), "half", 2).item() == 18


def test_out_and_arrays() -> None:
    x = np.array(X, np.int16)
    want = cast_dequant(x, "int8_t", QuantParam(0.3, 5))
    out = np.empty(x.size * 2, np.int8)[::2]
    assert cast_dequant(bt.array(x, "int16"), "int8_t", QuantParam(0.3, 5), out=out).codes is out
    assert out.tolist() == want.tolist()
    assert np.array_equal(cast_dequant(x.astype(">i2"), "int8_t", QuantParam(0.3, 5)).codes, want.codes)


def test_dequant_order() -> None:
    """0.5 + 1: rounded first 0 + 1, as a sum 2; and the nine-bit clamp, which the formula lacks."""
    x = np.int16([1, 3, -600])
    param = QuantParam(0.5, 201, signed=False)
    assert cast_dequant(x, "uint8_t", param).tolist() == [201, 203, 0]
    summed = Choices(dequant_order="sum")
    assert cast_dequant(x, "uint8_t", param, choices=summed).tolist() == [202, 202, 0]
    assert cast_dequant(np.int16([-600]), "int8_t", QuantParam(1.0, 255)).tolist() == [-1]
    assert cast_dequant(np.int16([-600]), "int8_t", QuantParam(1.0, 255), choices=summed).tolist() == [-128]
    lanes = QuantParam([0.5, 1.0] * 8, [1, 0] * 8)
    assert cast_dequant(np.int16([1, 7] * 9), "int8_t", lanes, choices=summed).tolist() == [2, 7] * 9
    huge = QuantParam(3e38)
    assert cast_dequant(np.int16([-9, 0, 9]), "int8_t", huge, choices=summed).tolist() == [-128, 0, 127]


def test_choices_about_the_word() -> None:
    x = np.int16([10])
    low = 0x3F801FFF | 0x1FF << 37
    assert cast_dequant(x, "uint8_t", low).tolist() == [9]
    assert cast_dequant(x, "uint8_t", low, choices=Choices(offset_signed=False)).tolist() == [255]
    fine = QuantParam(0.25 * (1 + 2.0**-10 - 2.0**-20), -253, signed=False)
    assert cast_dequant(np.int16([1018]), "uint8_t", fine).tolist() == [1]  # 254.5, to even
    assert cast_dequant(np.int16([1018]), "uint8_t", fine, choices=Choices(m1="round")).tolist() == [2]
    with pytest.raises(ValueError, match=r"^deqscale\[0\]=0x402000 must be a word whose M1 is not subnormal"):
        cast_dequant(x, "uint8_t", 0x00402000, choices=Choices(m1_subnormal="raise"))


def test_products() -> None:
    for dst, x in (("int8_t", np.int16([1])), ("uint8_t", np.int16([1])), ("half", np.int32([1]))):
        scale: Any = 1.0 if dst == "half" else QuantParam(1.0)
        for product in ALL:
            if product in WITH[dst]:
                assert cast_dequant(x, dst, scale, product).tolist() == [1]
            else:
                with pytest.raises(ValueError, match=rf"^int\d+_t to {dst} is no CastDequant of {product}; it has "):
                    cast_dequant(x, dst, scale, product)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: cast_dequant(x, "half", 1.0), r"int16_t to half is no CastDequant of Ascend 950PR/950DT; it"),
        (lambda x: cast_dequant(x.astype(np.int8), "int8_t", 0), r"x has dtype int8; CastDequant takes"),
        (lambda x: cast_dequant([1, 2], "int8_t", 0), r"x is a list; CastDequant takes NumPy arrays or Arrays"),
        (lambda x: cast_dequant(x, "int8_t", [0, 0]), r"deqscale has shape \(2,\); one word is needed, or 16"),
        (lambda x: cast_dequant(x, "int8_t", 0.5), r"deqscale=0.5 must be a 64-bit word"),
        (lambda x: cast_dequant(x, "uint8_t", 0x7F800000), r"deqscale\[0\]=0x7f800000 must be a word whose M1 is"),
        (lambda x: cast_dequant(x, "int8_t", QuantParam(1.0, shift=2)), r"shift=2: NPU architecture 3510 has no shift"),
        (lambda x: cast_dequant(x, "int8_t", 0, half_block="low"), r"half_block='low' must be None, True or False"),
        (
            lambda x: cast_dequant(x.astype(np.int32), "half", 1.0, half_block=True),
            r"half_block=True is for 8-bit results, not for half",
        ),
        (
            lambda x: cast_dequant(x.astype(np.int32), "half", QuantParam(1.0)),
            r"deqscale=QuantParam\(.*\) must be a number",
        ),
        (lambda x: cast_dequant(x, "int8_t", 1 << 46, choices="x"), r"choices='x' must be an ascend.Choices"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        call(np.int16([1, 2]))
