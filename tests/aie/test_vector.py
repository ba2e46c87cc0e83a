"""Vectors: what they hold, how their bits are read, cut and put together, and what they refuse."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from bittrue import aie

SMALLEST = {name: (arch, sizes[0]) for e in aie.elements() for name in [e.name] for arch, sizes in e.sizes[-1:]}


@pytest.mark.parametrize("name", SMALLEST)
def test_every_type_keeps_its_bits(name):
    arch, lanes = SMALLEST[name]
    kind = aie.element(name)
    data = np.random.default_rng(1).integers(0, 256, lanes * kind.bits // 8, np.uint8).tobytes()
    v = aie.vector.frombytes(data, name, arch)
    assert v.tobytes() == data and len(v) == v.size == lanes
    assert (v.bits, v.bytes, v.type_bits) == (8 * len(data), len(data), kind.bits)
    assert v.is_complex == (not v.is_real) == name.startswith("c")
    assert v.copy() == v and v.copy() is not v
    assert aie.vector.frombytes(v.cast_to("int8").tobytes(), name, arch) == v
    if kind.is_integer and kind.bits != 4:
        plain = np.frombuffer(data, f"<{'u' if name.startswith('u') else 'i'}{kind.part.bits // 8}")
        want = plain[::2] + 1j * plain[1::2] if kind.is_complex else plain
        assert np.array_equal(v.to_numpy(), want)
        again = aie.vector(name, v.to_numpy(), arch)
        assert again == v


def test_images_are_bytes():
    image = np.arange(8, dtype="<i2").tobytes()
    for data in (bytearray(image), memoryview(image), np.frombuffer(image, np.uint8).reshape(4, 4)):
        assert aie.vector.frombytes(data, "int16", "aie-ml").tolist() == list(range(8))
    for data in (np.zeros(16, np.uint16), "sixteen letters."):
        with pytest.raises(TypeError, match="data must be bytes or an array of uint8, not"):
            aie.vector.frombytes(data, "int16", "aie-ml")


def test_int4_lies_two_in_a_byte_the_first_one_low():
    v = aie.vector("int4", [1, -2] * 16, "aie-ml")
    assert v.tobytes() == bytes([0xE1]) * 16
    assert v.cast_to("uint4").tolist()[:2] == [1, 14]
    assert v.to_numpy().dtype == ml_dtypes.int4 and v.tolist()[:3] == [1, -2, 1]
    assert v.unpack().tolist()[:2] == [1, -2] and v.unpack().pack() == v


def test_floats_and_complex():
    v = aie.vector("bfloat16", [1.5, -2, 1 / 3, 1e39, 0, -0.0, np.nan, np.inf], "aie-ml")
    assert v.to_numpy().dtype == ml_dtypes.bfloat16
    assert v.codes.tolist() == [0x3FC0, 0xC000, 0x3EAB, 0x7F80, 0, 0x8000, 0x7FC0, 0x7F80]
    c = aie.vector("cint16", [1 + 2j, -3, 0, 32767 - 32768j], "aie")
    assert c.tobytes() == np.array([1, 2, -3, 0, 0, 0, 32767, -32768], "<i2").tobytes()
    assert c[3] == 32767 - 32768j and c.to_numpy().dtype == np.complex64
    assert aie.vector("cint32", [2147483647 - 2147483648j, 0], "aie")[0] == 2147483647 - 2147483648j
    assert aie.vector("float8", [448, 500, -1, 0] * 4, "aie-mlv2").codes[:3].tolist() == [0x7E, 0x7F, 0xB8]
    assert np.asarray(aie.vector("float", range(4), "aie"), np.float64).tolist() == [0, 1, 2, 3]


def test_lanes_can_be_read_and_written():
    v = aie.vector("int32", range(8), "aie")
    v[2], v[-1] = -5, 9
    v.set(7, 0)
    assert v.tolist() == [7, 1, -5, 3, 4, 5, 6, 9] and v.get(2) == v[2] == -5 and list(v) == v.tolist()
    assert v.push(100) is v and v.tolist() == [100, 7, 1, -5, 3, 4, 5, 6]
    c = aie.vector.zeros("cint32", 2, "aie")
    c[1] = 3 - 4j
    assert c.push(1j).tolist() == [1j, 0]


def test_parts():
    v = aie.vector("int16", range(32), "aie-ml")
    assert v.extract(8, 2).tolist() == list(range(16, 24))
    assert [p.tolist() for p in v.split(16)] == [list(range(16)), list(range(16, 32))]
    assert v.insert(1, aie.vector("int16", [-1] * 8, "aie-ml")) is v
    assert v.tolist() == [*range(8), *[-1] * 8, *range(16, 32)]
    grown = v.extract(8, 0).grow(32, 3)
    assert grown.extract(8, 3) == v.extract(8, 0) and grown.extract(8, 0).tolist() == [0] * 8
    assert v.extract(8, 0).grow_replicate(16).tolist() == [*range(8), *range(8)]
    c = aie.vector("cint16", [1j, 2, 3, 4, 5, 6, 7, 8j], "aie")
    assert c.extract(4, 1).tolist() == [5, 6, 7, 8j]


def test_cast_to_reads_the_same_bits():
    v = aie.vector("int8", range(16), "aie")
    assert v.cast_to("int32").tolist() == [0x03020100, 0x07060504, 0x0B0A0908, 0x0F0E0D0C]
    assert v.cast_to("cint16").tolist()[0] == 0x0100 + 0x0302 * 1j
    assert v.cast_to("cint32").cast_to("int8") == v
    assert aie.vector("float", [1, 2, 3, 4], "aie").cast_to("int32")[0] == 0x3F800000


@pytest.mark.parametrize(
    "saturation, want",
    [("none", [44, -1, -128, 127]), ("saturate", [127, -1, -128, 127]), ("symmetric", [127, -1, -127, 127])],
)
def test_pack(saturation, want):
    v = aie.vector("int16", [300, -1, -128, 127] * 4, "aie-ml")
    assert v.pack(saturation).tolist()[:4] == want
    with aie.tile(saturation=saturation):
        assert v.pack().tolist()[:4] == want
    u = aie.vector("uint8", [255, 16, 15, 3] * 8, "aie-ml")
    assert u.pack(saturation).tolist()[:4] == ([15, 0, 15, 3] if saturation == "none" else [15, 15, 15, 3])


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: aie.vector("int16", range(9), "aie"),
            r"lanes=9 is not a size of int16 vectors on aie \(8, 16, 32, 64\)",
        ),
        (
            lambda: aie.vector("uint16", range(8), "aie"),
            r"dtype='uint16' is not a vector element type of aie.*\(int8, ",
        ),
        (lambda: aie.vector("bfloat17", [0] * 8, "aie-ml"), r"did you mean 'bfloat16'\?"),
        (
            lambda: aie.vector("int8", [128] * 16, "aie"),
            r"values holds 128, which is out of range for int8: -128 to 127",
        ),
        (lambda: aie.vector("int8", [0.5] * 16, "aie"), r"values holds 0\.5, which is no integer for int8"),
        (lambda: aie.vector("int8", [1j] * 16, "aie"), "values has complex values, which int8 cannot hold"),
        (lambda: aie.vector("int8", np.zeros((4, 4)), "aie"), "values has 2 dimensions"),
        (lambda: aie.vector("int8", range(16), "aie").cast_to("int4"), "is not a vector element type of aie"),
        (lambda: aie.vector("int8", range(16), "aie").extract(8, 0), r"lanes=8 is not a size of int8 vectors"),
        (lambda: aie.vector("int16", range(16), "aie").extract(8, 2), r"index=2 must be an integer from 0 to 1"),
        (lambda: aie.vector("int16", range(8), "aie").grow(8, 1), r"index=1 must be an integer from 0 to 0"),
        (lambda: aie.vector("int16", range(8), "aie").extract(16, 0), "16 lanes are no part of 8"),
        (
            lambda: aie.vector("int16", range(16), "aie").insert(0, aie.vector("int16", range(8), "aie-ml")),
            "part is of aie-ml, not of aie; architectures cannot be mixed",
        ),
        (
            lambda: aie.vector("int16", range(16), "aie").insert(0, aie.vector("int32", range(8), "aie")),
            "part has elements of int32, not of int16",
        ),
        (lambda: aie.vector("int32", range(8), "aie").pack(), "cannot pack; these can: int8, uint8, int16, uint16"),
        (lambda: aie.vector("int8", range(16), "aie").pack(), "is not a vector element type of aie"),
        (lambda: aie.vector.frombytes(bytes(7), "int16", "aie"), "7 bytes, which are no whole lanes of int16"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_bad_lanes():
    v = aie.vector("int32", range(4), "aie")
    with pytest.raises(IndexError, match="index=4 is out of range; vector<int32, 4> has 4 lanes"):
        v[4]
    with pytest.raises(TypeError, match="use extract"):
        v[0:2]
    with pytest.raises(ValueError, match="value holds 4294967296, which is out of range for int32"):
        v[0] = 1 << 32
    with pytest.raises(TypeError, match=r"part must be an aie\.vector"):
        v.insert(0, [1])


def test_cbfloat16_on_mlv2_is_a_choice():
    assert aie.vector.zeros("cbfloat16", 8, "aie-mlv2").size == 8
    with aie.tile("aie-mlv2", choices=aie.Choices(mlv2_cbfloat16="refused")):
        with pytest.raises(ValueError, match="dtype='cbfloat16' is not a vector element type of aie-mlv2"):
            aie.vector.zeros("cbfloat16", 8)
        assert aie.vector.zeros("cfloat", 8).size == 8
