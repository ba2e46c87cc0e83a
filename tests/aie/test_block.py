"""Block vectors, their streams, and the choices behind them."""

from __future__ import annotations

import io

import numpy as np
import pytest

import bittrue as bt
from bittrue import aie
from bittrue.aie.block import BlockVectorStream, block_format, block_types, block_vector

BYTES = {"bfp16ebs8": 9, "bfp16ebs16": 17, "mx9": 18, "mx6": 12, "mx4": 8}
SIZES = [(t.name, t.arch.name, n) for t in block_types() for n in t.sizes]
X = np.random.default_rng(0).standard_normal(256).astype(np.float32)


@pytest.mark.parametrize("tag,arch,size", SIZES)
def test_vectors(tag: str, arch: str, size: int) -> None:
    v = block_vector(tag, size, X[:size])
    fmt = bt.format(tag)
    assert (v.tag, v.arch.name, v.size, v.shape, len(v)) == (tag, arch, size, (size,), size)
    assert v.nbytes == size // fmt.block_size * BYTES[tag] == len(v.tobytes())
    np.testing.assert_array_equal(np.asarray(v), bt.quantize(X[:size], tag, "floor"))  # the register's reset value
    again = block_vector.frombytes(v.tobytes(), tag, size)
    np.testing.assert_array_equal(np.asarray(again), np.asarray(v))
    assert not np.asarray(block_vector(tag, size)).any()


@pytest.mark.parametrize("mode", [m.value for m in aie.RoundingMode])
def test_the_tile_rounds(mode: str) -> None:
    rounding = aie.RoundingMode(mode).rounding
    with aie.tile(arch="aie-mlv2", rounding=mode):
        v = block_vector("mx6", 128, X[:128])
        w = block_vector("mx6", 128, X[:128], rounding="conv_even")
    np.testing.assert_array_equal(np.asarray(v), bt.quantize(X[:128], "mx6", rounding))
    np.testing.assert_array_equal(np.asarray(w), bt.quantize(X[:128], "mx6"))


def test_register_image_of_bfp16() -> None:
    v = block_vector("bfp16ebs8", 64, X[:64], rounding="conv_even")
    image = v.tobytes("register")
    assert image[64:] == bytes(v.exponents) and image[:64] == bytes(v.mantissas)
    assert block_vector.frombytes(image, "bfp16ebs8", 64, layout="register").tobytes() == v.tobytes()


def test_extract_and_insert() -> None:
    v = block_vector("mx6", 128, X[:128])
    low, high = v.extract(64, 0), v.extract(64, 1)
    np.testing.assert_array_equal(np.asarray(high), np.asarray(v)[64:])
    before = np.asarray(v)
    assert v.insert(0, high).insert(1, low) is v  # as vectors and accumulators do it, and the API
    np.testing.assert_array_equal(np.asarray(v), np.roll(before, 64))
    np.testing.assert_array_equal(np.asarray(low), before[:64])
    grown = low.grow(256, 3)
    assert grown.extract(64, 3) == low and not np.asarray(grown)[:192].any() and grown.size == 256
    wide = block_vector("mx6", 256)
    for call in (lambda: v.extract(256, 0), lambda: v.insert(0, wide), lambda: wide.grow(128)):
        with pytest.raises(ValueError, match="of 256 elements: a vector of 128 has no such part"):
            call()
    with pytest.raises(ValueError, match="index=2 must be from 0 to 1"):
        v.extract(64, 2)
    with pytest.raises(TypeError, match="block vector of mx6"):
        v.insert(0, block_vector("mx9", 64))


def test_equality() -> None:
    v, w = (block_vector("mx9", 64, X[:64]) for _ in range(2))
    assert v == w and v != block_vector("mx9", 64, -X[:64]) and v != v.tobytes()
    assert v.grow(128) != v
    assert block_vector("mx9", 64) != block_vector("mx9", 64, choices=aie.Choices(convention="am027"))


def test_illegal_vectors_name_the_legal_ones() -> None:
    for size in (64.0, "64", None, True, np.array([64, 64])):
        with pytest.raises(ValueError, match="is not a size of mx9 block vectors"):
            block_vector("mx9", size)
    with pytest.raises(ValueError, match="size=32 is not a size of mx9 block vectors on aie-mlv2: 64, 128, 256 are"):
        block_vector("mx9", 32)
    with pytest.raises(ValueError, match="128, 256 are; 64 only by extract"):
        block_vector("mx6", 64)
    with pytest.raises(ValueError, match=r"does not exist on arch=xdna2: aie-mlv2 has it .*bfp16ebs8, bfp16ebs16"):
        block_vector("mx9", 64, arch="xdna2")
    with pytest.raises(ValueError, match="did you mean 'mx9'"):
        block_vector("mx8", 64)
    with pytest.raises(ValueError, match=r"values have shape \(3,\)"):
        block_vector("mx9", 64, [1, 2, 3])


def test_elements_cannot_be_accessed() -> None:
    v = block_vector("mx9", 64)
    with pytest.raises(TypeError, match="element 3: the elements of a mx9 block vector cannot be accessed"):
        v[3]
    with pytest.raises(TypeError, match="cannot be accessed"):
        v[0] = 1
    with pytest.raises(TypeError, match="cannot be iterated"):
        list(v)


@pytest.mark.parametrize(
    "choices,fmt,rule",
    [
        ({"convention": "am027"}, "mx9_am027", {}),
        ({"mx_overflow": "bump_block"}, "mx9", {"overflow": "bump_block"}),
        ({"zero_pair_e2": 0}, "mx9", {"zero_pair_shift": 0}),
        ({"flush_subnormals": False}, "mx9", {"flush_subnormals": False}),
        ({"nonfinite": "saturate"}, "mx9", {"nonfinite": "saturate"}),
        ({"mx_rounding": "nearest_even"}, "mx9", {"rounding": "nearest_even"}),
        ({"neg_zero": "clear"}, "mx9", {"negative_zero": "clear"}),
        ({"convention": "am027", "min_code": "allow"}, "mx9_am027", {"min_code": "allow"}),
    ],
    ids=str,
)
def test_choices_of_the_conversion(choices: dict, fmt: str, rule: dict) -> None:
    x = X[:64].copy()
    x[:16] = -1.999, -0.0, *[2.0**-140] * 4, *[0] * 4, 1.9999, -0.9999, *[-1e-9] * 4
    x[32:48] = 2.0**-130
    if "nonfinite" in choices:
        x[16], x[17] = np.inf, np.nan
    v = block_vector("mx9", 64, x, choices=aie.Choices(**choices))
    wanted = bt.encode(x, fmt, rule=bt.BlockRule(**{"rounding": "floor", **rule}))
    assert v.tobytes() == wanted.tobytes()
    assert v.tobytes() != block_vector("mx9", 64, np.where(np.isfinite(x), x, 0)).tobytes()


def test_choices_of_the_layout() -> None:
    plain = block_vector("mx6", 128, X[:128])
    answers = [("block_order", "mantissas_first"), ("e2_order", "msb"), ("bit_layout", "planes"), ("bit_layout", "msb")]
    for field, answer in answers:
        made = aie.Choices(**{field: answer})
        v = block_vector("mx6", 128, X[:128], choices=made)
        assert v.tobytes() != plain.tobytes()
        np.testing.assert_array_equal(np.asarray(v), np.asarray(plain))
        assert v.format.name != "mx6" and v.format == block_format("mx6", made)
        again = block_vector.frombytes(v.tobytes(), "mx6", 128, choices=made)
        np.testing.assert_array_equal(np.asarray(again), np.asarray(plain))


def test_choices_of_am027_and_of_the_top() -> None:
    image = bytes([255]) + bytes(17)
    nan = block_vector.frombytes(image * 4, "mx9", 64, choices=aie.Choices(convention="am027"))
    assert np.isnan(np.asarray(nan)).all()
    finite = aie.Choices(convention="am027", e1_255="finite")
    assert not np.asarray(block_vector.frombytes(image * 4, "mx9", 64, choices=finite)).any()
    top = np.full(32, 3.4028235e38, np.float32)
    heads = {"saturate": 254, "e255": 255}
    for answer, head in heads.items():
        v = block_vector("bfp16ebs8", 32, top, rounding="ceil", choices=aie.Choices(bump_254=answer))
        assert v.exponents.tolist() == [head] * 4
    with pytest.raises(OverflowError):
        block_vector("bfp16ebs8", 32, top, rounding="ceil", choices=aie.Choices(bump_254="raise"))


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag,size", [("mx9", 64), ("mx6", 128), ("mx4", 128), ("bfp16ebs8", 64), ("bfp16ebs16", 32)])
def test_streams_over_buffers(tag: str, size: int) -> None:
    vectors = [block_vector(tag, size, X[:size] * k) for k in (1, 2, 4)]
    image = b"".join(v.tobytes() for v in vectors)
    for memory in (bytearray(len(image)), np.zeros(len(image), np.uint8)):
        out = BlockVectorStream(memory, tag, size)
        for v in vectors:
            out.push(v)
        assert bytes(memory) == image and out.position == 3
        with pytest.raises(EOFError, match="nothing left to write: the stream ends after 3 vectors"):
            out.push(vectors[0])
    stream = BlockVectorStream(image, tag, size)
    assert stream.vector_bytes * 3 == len(image)
    assert stream.peek().tobytes() == stream.peek().tobytes() == stream.pop().tobytes() == vectors[0].tobytes()
    assert [v.tobytes() for v in stream] == [v.tobytes() for v in vectors[1:]]
    for read in (stream.pop, stream.peek):
        with pytest.raises(EOFError, match="nothing left to read: the stream ends after 3"):
            read()
    assert list(stream) == []
    with pytest.raises(TypeError, match="read-only"):
        BlockVectorStream(image, tag, size).push(vectors[0])


def test_streams_over_files(tmp_path: object) -> None:
    vectors = [block_vector("mx9", 128, X[:128] * k) for k in (1, 3)]
    path = f"{tmp_path}/blocks.bin"
    with open(path, "wb") as file:
        out = BlockVectorStream(file, "mx9", 128)
        for v in vectors:
            out.push(v)
    with open(path, "rb") as file:
        stream = BlockVectorStream(file, "mx9", 128)
        assert stream.peek().tobytes() == vectors[0].tobytes()
        assert [v.tobytes() for v in stream] == [v.tobytes() for v in vectors]
        with pytest.raises(EOFError):
            stream.pop()
    cut = BlockVectorStream(io.BytesIO(vectors[0].tobytes()[:-1]), "mx9", 128)
    with pytest.raises(ValueError, match="ends within a vector: 143 of 144 bytes"):
        cut.pop()


def test_a_stream_writes_where_it_was_told() -> None:
    memory = np.zeros((4, 18), np.uint8)
    BlockVectorStream(memory, "mx9", 64).push(block_vector("mx9", 64, np.ones(64)))
    assert (memory[:, 0] == 128).all()
    for strided in (np.zeros((18, 4), np.uint8).T, np.zeros(144, np.uint8)[::2]):
        with pytest.raises(ValueError, match=r"is not C-contiguous; a stream does not copy it"):
            BlockVectorStream(strided, "mx9", 64)


def test_streams_refuse() -> None:
    with pytest.raises(ValueError, match="100 bytes, which are not whole vectors of 64 mx9: these take 72"):
        BlockVectorStream(bytes(100), "mx9", 64)
    with pytest.raises(ValueError, match="not a size of mx4"):
        BlockVectorStream(bytes(64), "mx4", 64)
    with pytest.raises(TypeError, match="bytes-like or a binary file"):
        BlockVectorStream(3, "mx9", 64)
    with pytest.raises(TypeError, match="block vector of 64 mx9"):
        BlockVectorStream(bytearray(72), "mx9", 64).push(block_vector("mx6", 128))


def test_registers():
    """Specification 6.5: 640 bits for 64 MX9 elements, 384 for MX6 and MX4; each field picked apart by hand."""
    x = np.zeros(64)
    x[:4] = 1.0, -1.5, 0.25, 0.375  # E1 = 128; the second pair is two binades below, so its level-2 bit is set
    x[16] = 2.0
    nine = block_vector("mx9", 64, x).registers()
    assert [len(r) for r in nine] == [80]
    assert nine[0][:4] == bytes([0x40, 0x80 | 0x60, 0x20, 0x30]) and nine[0][16] == 0x40
    assert nine[0][64:72] == bytes([128, 128, 129, 129, 0, 0, 0, 0])
    assert nine[0][72:80] == bytes([0b11111110, 0b11111110, 0, 0, 0, 0, 0, 0])
    six = block_vector("mx6", 128, np.concatenate([x, -x])).registers()
    assert [len(r) for r in six] == [48, 48]
    assert six[0][:2] == bytes([0xC8, 0x64])  # 01000, 11100; 00100, 00110: low nibbles 8, c and 4, 6
    assert six[0][32:34] == bytes([0b10, 0]) and six[1][32] & 15 == 0b1101
    assert six[0][40:48] == bytes([0b11111110, 0b11111110, 0, 0, 128, 129, 0, 0])
    four = block_vector("mx4", 128, np.concatenate([x, x]))
    left, right = (four.registers(aie.Choices(mx4_register=side))[0] for side in ("left", "right"))
    assert left == four.registers()[0]
    assert left[:2] == bytes([0xC8, 0x44]) and left[32] == 0b10  # 010, 111; 001, 001: moved up two bits
    assert right[:2] == bytes([0x72, 0x11]) and right[32] == 0
    assert left[40:] == right[40:]
    with pytest.raises(ValueError, match="tobytes"):
        block_vector("bfp16ebs8", 32, np.ones(32)).registers()
