"""`BlockArray`: shapes, slices on block boundaries, memory images, values, files."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import bittrue as bt
from bittrue.kinds.block import SharedExponentFormat

FORMATS = bt.formats("block")
NAMES = ["mx9", "mx6_am027", "mx4", "bfp16ebs8", "mxfp6_e3m2", "mxfp4", "nvfp4"]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_values_shape_and_image(fmt: bt.BlockFormat, axis: int) -> None:
    x = normal(3, 70) if axis else normal(70, 3)
    a = bt.array(x, fmt, axis=axis)
    assert isinstance(a, bt.BlockArray) and a.format is fmt
    assert a.shape == x.shape and a.size == x.size and a.ndim == 2 and a.axis == axis % 2 and len(a) == len(x)
    assert a.nbytes == 3 * fmt.blocks(70) * fmt.block_bytes == len(a.tobytes()) == a.codes.size
    np.testing.assert_array_equal(np.asarray(a), bt.quantize(x, fmt, axis=axis))
    np.testing.assert_array_equal(np.asarray(a, np.float64), np.asarray(a).astype(np.float64))
    for again in (
        bt.Array.frombytes(a.tobytes(), fmt, x.shape, axis=axis),
        bt.BlockArray.frombytes(bytearray(a.tobytes()), fmt, x.shape, axis),
        pickle.loads(pickle.dumps(a)),
        a.copy(),
    ):
        assert again.shape == a.shape and again.axis == a.axis and again.tobytes() == a.tobytes()
    assert fmt.name in repr(a) and f"shape={x.shape}" in repr(a)
    assert a.exponents.shape == (3, fmt.blocks(70)) and a.element_codes.shape == (3, fmt.blocks(70) * fmt.block_size)
    assert a.tolist() == np.asarray(a).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_slices(name: str) -> None:
    x = normal(4, 5 * bt.format(name).block_size + 3)
    size = bt.format(name).block_size
    a = bt.array(x, name)
    y = np.asarray(a)
    n = y.shape[1]
    for key in (
        (slice(None), slice(size, 3 * size)),
        (slice(1, 3), slice(None)),
        (slice(None, None, -1), slice(4 * size, None)),
        (2, slice(0, size)),
        (Ellipsis, slice(2 * size, n)),
        (slice(0, 2),),
        (-1, Ellipsis),
        (slice(None), slice(0, 0)),
        (slice(None), slice(n, None)),
    ):
        part = a[key]
        assert part.shape == y[key].shape, key
        np.testing.assert_array_equal(np.asarray(part), y[key])
    moved = bt.array(np.ascontiguousarray(x.T), name, axis=0)
    np.testing.assert_array_equal(np.asarray(moved[size : 2 * size, 1:3]), y.T[size : 2 * size, 1:3])
    three = bt.array(normal(2, 3 * size, 5), name, axis=1)
    np.testing.assert_array_equal(np.asarray(three[1, size:, 2:]), np.asarray(three)[1, size:, 2:])
    assert three[1, size:, 2:].axis == 0 and three[:, size:, 2].axis == 1


def test_what_slicing_refuses() -> None:
    a = bt.array(normal(4, 50), "mx9")
    with pytest.raises(TypeError, match=r"element 3 along axis 1: single elements of packed mx9 blocks cannot be"):
        a[0, 3]
    with pytest.raises(ValueError, match=r"slice 8:32 along axis 1 does not begin and end on block boundaries"):
        a[:, 8:32]
    with pytest.raises(ValueError, match="slice 0:40"):
        a[:, :40]
    with pytest.raises(ValueError, match="step 2"):
        a[:, ::2]
    with pytest.raises(TypeError, match="slices and integers only"):
        a[[0, 1]]
    with pytest.raises(IndexError, match="3 indices for 2"):
        a[0, 0:16, 0]
    with pytest.raises(TypeError, match=r"use bittrue\.BlockArray"):
        bt.Array(a.codes, "mx9")
    with pytest.raises(TypeError, match="one code per element"):
        bt.BlockArray(a.codes, "int8")


def test_values_are_compared_as_in_numpy() -> None:
    a = bt.array([[1.0, -2.0, 0.0]], "mx9")
    assert (a == [1, 2, 0]).tolist() == [[True, False, True]]
    assert (a != bt.array([1.0, 2.0, 0.0], "bfloat16")).tolist() == [[False, True, False]]
    assert (a == bt.array([[1.0, -2.0, 0.0]], "mx4")).all()


def test_what_an_array_of_blocks_refuses() -> None:
    codes = bt.encode(np.ones(40), "mx9")
    assert bt.BlockArray(codes, "mx9", 40).shape == bt.BlockArray(codes, "mx9", [40]).shape == (40,)
    checks = [
        (lambda: bt.BlockArray(codes, "mx9", (-40,)), r"shape=\(-40,\) must be whole numbers .*none below 0"),
        (lambda: bt.BlockArray(codes, "mx9", (40.0,)), r"shape=\(40\.0,\) must be whole numbers"),
        (lambda: bt.BlockArray.frombytes(b"", "mx9", (-1,)), r"shape=\(-1,\) must be whole numbers"),
        (lambda: bt.BlockArray(codes, "mx9", (40,), axis=0.5), r"axis=0\.5 is out of range for 1 dimensions"),
        (lambda: bt.BlockArray(codes, "mx9", scale=2.0), r"scale=2\.0: mx9 has no scale of the whole tensor"),
        (lambda: bt.BlockArray(np.zeros(9, np.uint8), "nvfp4", scale="a"), "scale='a' must be one positive number"),
    ]
    for make, message in checks:
        with pytest.raises(ValueError, match=message):
            make()
    with pytest.raises(TypeError, match="index True: blocks are indexed by slices and integers only"):
        bt.array(np.ones((2, 16)), "mx9")[True]


def test_images_of_the_wrong_size() -> None:
    with pytest.raises(ValueError, match="17 bytes, which are not whole blocks of mx9"):
        bt.BlockArray.frombytes(bytes(17), "mx9")
    with pytest.raises(ValueError, match=r"shape \(3, 16\) of mx9 takes 54"):
        bt.BlockArray.frombytes(bytes(36), "mx9", (3, 16))
    with pytest.raises(ValueError, match="takes"):
        bt.BlockArray(np.zeros(36, np.uint8), "mx9", (48,))
    with pytest.raises(ValueError, match="axis=2 is out of range"):
        bt.BlockArray.frombytes(bytes(36), "mx9", (2, 16), axis=2)
    with pytest.raises(ValueError, match="layout='tiles' must be"):
        bt.array(normal(16), "mx9").tobytes("tiles")
    with pytest.raises(ValueError, match="no register order"):
        bt.array(normal(64), "mx9").tobytes("register")


def test_register_order_of_bfp16() -> None:
    """64 mantissa bytes, then 8 exponent bytes (specs/aie.md 7)."""
    a = bt.array(normal(128), "bfp16ebs8")
    image = np.frombuffer(a.tobytes("register"), np.uint8).reshape(2, 72)
    stream = np.frombuffer(a.tobytes(), np.uint8).reshape(2, 8, 9)
    np.testing.assert_array_equal(image[:, :64].reshape(2, 8, 8), stream[:, :, 1:])
    np.testing.assert_array_equal(image[:, 64:], stream[:, :, 0])
    again = bt.BlockArray.frombytes(a.tobytes("register"), "bfp16ebs8", 128, layout="register")
    assert again.tobytes() == a.tobytes()


def test_the_scale_of_a_tensor_stays_with_the_array() -> None:
    x = normal(64) * 1e-5
    scale = bt.blocks.tensor_scale(x)
    a = bt.array(x, "nvfp4", scale=scale)
    np.testing.assert_array_equal(np.asarray(a), bt.quantize(x, "nvfp4", scale=scale))
    np.testing.assert_array_equal(np.asarray(a[16:32]), np.asarray(a)[16:32])
    assert np.abs(np.asarray(a) - x).max() < np.abs(x).max() / 6


def test_conversions_between_blocks_and_elements() -> None:
    a = bt.array(normal(64), "mxfp4")
    assert a.astype("mx9").format.name == "mx9"
    np.testing.assert_array_equal(np.asarray(a.astype("mxfp8_e4m3")), np.asarray(a))  # every value fits
    np.testing.assert_array_equal(np.asarray(bt.array(bt.array(a, "bfloat16"), "mxfp4")), np.asarray(a))


OWN = SharedExponentFormat("own", block_size=32, mantissa_bits=6, shift_group=4, mantissa="sign_magnitude", bias=128)


@pytest.mark.parametrize("suffix", [".safetensors", ".npz"])
@pytest.mark.parametrize("fmt", [*FORMATS, OWN], ids=str)
def test_files_keep_type_shape_and_axis(fmt: bt.BlockFormat, suffix: str, tmp_path: object) -> None:
    arrays = {"a": bt.array(normal(3, 70), fmt), "b": bt.array(normal(70, 2), fmt, axis=0), "c": normal(5)}
    path = f"{tmp_path}/x{suffix}"
    bt.save(path, arrays)
    back = bt.load(path)
    for name in ("a", "b"):
        assert isinstance(back[name], bt.BlockArray) and back[name].format == fmt
        assert back[name].shape == arrays[name].shape and back[name].axis == arrays[name].axis
        assert back[name].tobytes() == arrays[name].tobytes()
    np.testing.assert_array_equal(np.asarray(back["c"]), arrays["c"])


def test_raw_and_npy_files(tmp_path: object) -> None:
    a = bt.array(normal(3, 70), "mx6")
    bt.save(f"{tmp_path}/a.bin", a)
    assert np.fromfile(f"{tmp_path}/a.bin", np.uint8).tobytes() == a.tobytes()
    assert bt.load(f"{tmp_path}/a.bin", format="mx6", shape=(3, 70)).tobytes() == a.tobytes()
    bt.save(f"{tmp_path}/a.npy", a)
    assert bt.load(f"{tmp_path}/a.npy").tobytes() == a.tobytes()
    with pytest.raises(ValueError, match="scale of the whole tensor"):
        bt.save(f"{tmp_path}/b.npy", bt.array(normal(16), "nvfp4", scale=np.float32(0.5)))
