"""Packing: bit fields against a bit-by-bit reference, memory images of every format, and clear errors."""

import csv
import json
import struct
from pathlib import Path

import numpy as np
import pytest

import bittrue as bt
from bittrue.array import array
from bittrue.packing import pack, packed_size, unpack

CASES = list(csv.DictReader((Path(__file__).parent / "data" / "cases.csv").read_text("utf-8").splitlines()))
ORDERS = ("low_first", "high_first")


def reference(codes, bits, order):
    """Write the bits one after the other."""
    low = order == "low_first"
    stream = [int(c) >> b & 1 for c in codes for b in (range(bits) if low else reversed(range(bits)))]
    stream += [0] * (-len(stream) % 8)
    out = []
    for i in range(0, len(stream), 8):
        eight = stream[i : i + 8]
        out.append(sum(bit << (j if low else 7 - j) for j, bit in enumerate(eight)))
    return bytes(out)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bits", range(1, 9))
def test_bit_by_bit(bits, order):
    rng = np.random.default_rng(bits)
    for count in [*range(20), 100, 65535, 65536, 65537, 65543]:
        codes = rng.integers(0, 1 << bits, count, dtype=np.uint8)
        data = pack(codes, bits, order)
        assert data.dtype == np.uint8 and data.size == packed_size(count, bits)
        if count <= 100:
            assert data.tobytes() == reference(codes, bits, order)
        else:
            tail = count - count % 8 - 64  # a whole number of bytes before it
            assert data[tail * bits // 8 :].tobytes() == reference(codes[tail:], bits, order)
            assert data[: 8 * bits].tobytes() == reference(codes[:64], bits, order)
        back = unpack(data, bits, count, order)
        assert back.dtype == np.uint8 and back.shape == (count,)
        np.testing.assert_array_equal(back, codes)


def test_known_images():
    assert pack([0x1, 0x2, 0xF, 0x8], 4).tolist() == [0x21, 0x8F]
    assert pack([0x1, 0x2, 0xF, 0x8], 4, "high_first").tolist() == [0x12, 0xF8]
    assert pack([1, 0, 0, 0, 0, 0, 0, 0, 1], 1).tolist() == [0x01, 0x01]
    assert pack([1, 0, 0, 0, 0, 0, 0, 0, 1], 1, "high_first").tolist() == [0x80, 0x80]
    assert pack([3, 0, 1, 2, 1], 2).tolist() == [0b10_01_00_11, 0b01]


def test_unused_bits_do_not_matter():
    assert unpack(b"\xf1", 4, 1).tolist() == [1]
    assert unpack(b"\x1f", 4, 1, "high_first").tolist() == [1]


@pytest.mark.parametrize("row", [r for r in CASES if '"op":"pack"' in r["params"]], ids=lambda r: r["id"])
def test_published_pack_cases(row):
    codes = [int(c, 16) for c in json.loads(row["input"])]
    fmt = bt.format(row["source_format"])
    assert pack(codes, fmt.bits).tolist() == [int(b, 16) for b in json.loads(row["expected"])]
    assert bt.Array(codes, fmt).tobytes() == bytes(int(b, 16) for b in json.loads(row["expected"]))


@pytest.mark.parametrize("row", [r for r in CASES if '"op":"unpack"' in r["params"]], ids=lambda r: r["id"])
def test_published_unpack_cases(row):
    data = bytes(int(b, 16) for b in json.loads(row["input"]))
    expected = [int(c, 16) for c in json.loads(row["expected"])]
    fmt = bt.format(row["source_format"])
    assert unpack(data, fmt.bits, len(expected), json.loads(row["params"])["order"]).tolist() == expected
    assert bt.Array.frombytes(data, fmt, len(expected)).codes.tolist() == expected


def test_published_view_case():
    (row,) = [r for r in CASES if '"op":"view"' in r["params"]]
    buffer = struct.pack("<2f", *map(float.fromhex, json.loads(row["input"])))
    assert bt.Array.frombytes(buffer, "bfloat16").codes.tolist() == [int(c, 16) for c in json.loads(row["expected"])]


def test_any_integer_dtype_shape_and_stride():
    codes = np.arange(24).reshape(2, 3, 4) % 16
    expected = pack(codes.ravel().astype(np.uint8), 4)
    for dtype in (np.int8, np.uint16, np.int64, ">u4"):
        np.testing.assert_array_equal(pack(codes.astype(dtype), 4), expected)
    wide = np.zeros((2, 3, 8), np.uint8)
    wide[..., ::2] = codes
    np.testing.assert_array_equal(pack(wide[..., ::2], 4), expected)
    np.testing.assert_array_equal(pack(codes.T, 4), pack(codes.T.copy(), 4))
    assert pack(np.array([True, False, True]), 1).tolist() == [5]
    assert pack([], 4).tolist() == [] and unpack(b"", 6, 0).tolist() == []


def test_input_is_untouched():
    codes = np.arange(16, dtype=np.uint8)
    codes.flags.writeable = False
    data = pack(codes, 4)
    data.flags.writeable = False
    np.testing.assert_array_equal(unpack(data, 4, 16), codes)
    copied = pack(codes, 8)
    assert not np.shares_memory(copied, codes)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: pack([16], 4), ValueError, "0x10 at flat index 0 is out of range for 4 bits"),
        (lambda: pack([0, -1], 4), ValueError, "-0x1 at flat index 1"),
        (lambda: pack([1.5], 4), TypeError, "must be integers, not float64"),
        (lambda: pack([1], 9), ValueError, "bits=9 must be an integer from 1 to 8"),
        (lambda: pack([1], 0), ValueError, "bits=0"),
        (lambda: pack([1], 4, "low_frist"), ValueError, "did you mean 'low_first'"),
        (lambda: unpack(b"\0", 4, 3), ValueError, "data has 1 bytes; 3 codes of 4 bits take 2"),
        (lambda: unpack(b"\0\0", 4, 2), ValueError, "data has 2 bytes; 2 codes of 4 bits take 1"),
        (lambda: unpack(b"", 4, -1), ValueError, "count=-1"),
        (lambda: unpack("text", 4, 1), TypeError, "not str"),
        (lambda: unpack(np.zeros(2, np.int16), 4, 4), TypeError, "not of int16"),
        (lambda: bt.Array.frombytes(b"\0\0\0", "float16"), ValueError, "data has 3 bytes; shape (1,) of float16"),
        (lambda: bt.Array.frombytes(b"\0", "int4", (2, -1)), ValueError, "shape=(2, -1)"),
        (lambda: bt.Array.frombytes(b"\0\0\0\1", "tfloat32"), ValueError, "out of range for tfloat32"),
        (lambda: bt.Array([1], "int4").tobytes("high_frst"), ValueError, "did you mean 'high_first'"),
    ],
)  # fmt: skip
def test_errors(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("fmt", bt.formats(), ids=str)
def test_memory_image_of_every_format(fmt, order):
    rng = np.random.default_rng(7)
    for shape in ((), (0,), (1,), (3, 5), (2, 3, 7)):
        count = int(np.prod(shape))
        raw = rng.integers(0, 256, (count, fmt.code_dtype.itemsize), dtype=np.uint8)
        patterns = raw.reshape(-1).view(fmt.code_dtype).reshape(shape)
        codes = (patterns & fmt.code_dtype.type((1 << fmt.bits) - 1)).astype(fmt.code_dtype)
        a = bt.Array(codes, fmt)
        image = a.tobytes(order)
        assert len(image) == a.nbytes
        if fmt.bits < 8:
            assert image == reference(codes.ravel(), fmt.bits, order)
        else:
            assert image == b"".join(int(c).to_bytes(fmt.storage.itemsize, "little") for c in codes.ravel())
        back = bt.Array.frombytes(image, fmt, shape, order)
        assert back.shape == shape and back.format is fmt
        assert back.codes.dtype == fmt.storage
        np.testing.assert_array_equal(np.asarray(back.codes).view(fmt.code_dtype), codes)


def test_nineteen_bits_take_four_bytes():
    a = array([1.0, -2.0], "tfloat32")
    assert a.nbytes == 8 and a.tobytes() == struct.pack("<2I", 127 << 10, 1 << 18 | 128 << 10)


def test_shape_is_counted_in_elements():
    assert bt.Array.frombytes(b"\x21\x43", "int4").shape == (4,)
    assert bt.Array.frombytes(bytes(3), "float6_e2m3fn").shape == (4,)
    assert bt.Array.frombytes(bytes(6), "float4_e2m1fn", (3, 4)).shape == (3, 4)
    assert bt.Array.frombytes(bytes(6), "float4_e2m1fn", (3, 4)).nbytes == 6
