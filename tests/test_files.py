"""Files: every format survives every container, damage is reported in one sentence, output is all or nothing."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

import bittrue as bt
from bittrue import Array
from bittrue.files import (
    AtomicFile,
    ExistingFileError,
    FileError,
    MissingFileError,
    TensorInfo,
    Writer,
    load,
    open_tensors,
    save,
)
from bittrue.files.spec import format_from_json, format_to_json

OWN = [
    bt.p3109(6, 3),
    bt.p3109(8, 4, signed=False),
    bt.FloatFormat("ten_bits", exponent_bits=4, mantissa_bits=5, bias=9, inf=False, nan="none"),
    bt.IntFormat("int5", width=5),
    bt.IntFormat("uint12", width=12, signed=False),
    bt.ComplexFormat("complex_bf16", part=bt.format("bfloat16")),
]
FORMATS = [*bt.formats(), *OWN]
SHAPES = [(), (0,), (1,), (7,), (3, 4), (5, 3, 3), (2, 0, 3)]
CONTAINERS = [".npy", ".npz", ".safetensors", ".bin"]


@pytest.fixture(autouse=True)
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Keep hundreds of small files from waiting for the disk; the list counts what would have been synced."""
    calls: list[int] = []
    monkeypatch.setattr(os, "fsync", calls.append)
    return calls


def codes_of(fmt: bt.Format, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Random codes; every bit pattern that the format has may occur."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    if fmt.bits % 8 == 0:
        return rng.integers(0, 256, count * fmt.storage.itemsize, np.uint8).view(fmt.storage).reshape(shape)
    return rng.integers(0, 1 << fmt.bits, count).astype(fmt.storage).reshape(shape)


def same(a: Array, b: Array) -> bool:
    return a.format == b.format and a.shape == b.shape and a.tobytes() == b.tobytes()


def write_safetensors(path: Path, header: object, data: bytes = b"", length: int | None = None) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)


# --- round trips ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_type_and_shape_survive(tmp_path: Path, fmt: bt.Format, container: str) -> None:
    path = tmp_path / f"x{container}"
    for shape in SHAPES:
        array = Array(codes_of(fmt, shape), fmt)
        if container in (".npy", ".bin"):
            save(path, array, force=True)
            extra = {"format": fmt, "shape": shape} if container == ".bin" else {}
            assert same(load(path, **extra), array), shape
        else:
            other = Array(np.arange(4, dtype=np.uint8), "float4_e2m1fn")
            save(path, {"first": other, "a/ö b": array}, force=True)
            loaded = load(path)
            assert set(loaded) == {"first", "a/ö b"}
            assert same(loaded["a/ö b"], array) and same(loaded["first"], other), shape


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_bin_is_the_memory_image(tmp_path: Path, fmt: bt.Format) -> None:
    array = Array(codes_of(fmt, (3, 5)), fmt)
    save(tmp_path / "x.bin", array)
    assert (tmp_path / "x.bin").read_bytes() == array.tobytes()


def test_known_cases_of_lost_types(tmp_path: Path) -> None:
    """Rows sav-001 to sav-003 of the collected cases: ml_dtypes#41, ml_dtypes#324, fastsafetensors#69."""
    cases = [
        Array(np.array([0x3F80, 0x4000], np.uint16), "bfloat16"),
        Array(np.array([0x38, 0x40, 0x7F], np.uint8), "float8_e4m3fn"),
        Array(np.arange(12, dtype=np.uint8).reshape(3, 4), "float4_e2m1fn"),
    ]
    for array in cases:
        for container in (".npy", ".npz", ".safetensors"):
            path = tmp_path / f"x{container}"
            save(path, array if container == ".npy" else {"x": array}, force=True)
            loaded = load(path)
            assert same(loaded if container == ".npy" else loaded["x"], array)
    four = cases[2]
    save(tmp_path / "four.npy", four)
    assert np.load(tmp_path / "four.npy").nbytes == 6
    save(tmp_path / "four.safetensors", {"x": four})
    header = (tmp_path / "four.safetensors").read_bytes()[8:-6]
    assert json.loads(header)["x"] == {"dtype": "F4", "shape": [3, 4], "data_offsets": [0, 6]}


@pytest.mark.parametrize(
    "dtype",
    ["bool", "i1", "i8", "u4", "f2", "f4", "f8", "c8", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.int4],
    ids=str,
)
def test_arrays_of_numpy_and_ml_dtypes_keep_their_dtype(tmp_path: Path, dtype: object) -> None:
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    save(tmp_path / "x.safetensors", {"x": values})
    loaded = load(tmp_path / "x.safetensors")["x"]
    assert loaded.format is bt.format(values.dtype)
    assert loaded.to_numpy().dtype == values.dtype and (loaded.to_numpy() == values).all()


def test_npy_and_npz_are_plain_numpy_files(tmp_path: Path) -> None:
    floats = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    save(tmp_path / "f.npy", floats)
    assert np.load(tmp_path / "f.npy").dtype == np.float32 and (np.load(tmp_path / "f.npy") == floats).all()

    hif8 = Array(codes_of(bt.format("hifloat8"), (3, 4)), "hifloat8")
    int4 = Array(codes_of(bt.format("int4"), (3, 5)), "int4")
    save(tmp_path / "m.npz", {"h": hif8, "i": int4, "f": floats})
    with np.load(tmp_path / "m.npz") as read:
        assert (read["h"]["hifloat8"] == hif8.codes).all()
        assert read["i"]["int4"].tobytes() == int4.tobytes()
        assert (read["f"] == floats).all()


def test_numpys_own_writers_are_read(tmp_path: Path) -> None:
    arrays = {"a": np.arange(6, dtype=np.int16).reshape(2, 3), "b": np.float64(3.5), "c": np.zeros((0, 2), "?")}
    np.savez_compressed(tmp_path / "z.npz", **arrays)
    loaded = load(tmp_path / "z.npz")
    for name, array in arrays.items():
        assert loaded[name].shape == array.shape and (np.asarray(loaded[name]) == array).all()


@pytest.mark.parametrize("dtype", [">f4", ">i8", ">u2", ">c8", "<f8", ">f2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_big_endian_and_fortran_order(tmp_path: Path, dtype: str, order: str) -> None:
    values = np.arange(-12, 12).reshape(2, 3, 4).astype(dtype, order=order)
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "x.npz", x=values)
    for loaded in (load(tmp_path / "x.npy"), load(tmp_path / "x.npz")["x"]):
        assert loaded.codes.dtype.isnative and (loaded.to_numpy() == values).all()
    with open_tensors(tmp_path / "x.npy") as reader:
        pieces = [chunk.copy() for chunk in reader.chunks("x", 16)]
    assert [p.size for p in pieces] == [16, 8]
    assert (np.concatenate(pieces) == loaded.codes.reshape(-1)).all()


def test_codes_in_a_npy_that_does_not_tell(tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", np.array([1, 2], ml_dtypes.bfloat16))
    with pytest.raises(FileError, match=r"b\.npy: dtype <V2 does not tell the number format .* format='bfloat16'"):
        load(tmp_path / "b.npy")
    assert load(tmp_path / "b.npy", format="bfloat16").tolist() == [1.0, 2.0]
    np.save(tmp_path / "u.npy", np.array([[0x08, 0x0C]], np.uint8))
    assert load(tmp_path / "u.npy", format="hifloat8").codes.tolist() == [[8, 12]]
    np.save(tmp_path / "w.npy", np.array([0x3F80], ">u2"))
    assert load(tmp_path / "w.npy", format="bfloat16").tolist() == [1.0]
    with pytest.raises(FileError, match="items of 1 bytes; codes of bfloat16 have 2"):
        load(tmp_path / "u.npy", format="bfloat16")
    np.save(tmp_path / "f.npy", np.zeros(2, np.float32))
    with pytest.raises(FileError, match="holds float32 values, not codes of hifloat8"):
        load(tmp_path / "f.npy", format="hifloat8")


# --- safetensors and others -------------------------------------------------------------------------------------------

#: What the reference implementation calls the formats (safetensors/src/tensor.rs, enum Dtype).
NAMED = {
    "bool": "BOOL",
    "float4_e2m1fn": "F4",
    "float6_e2m3fn": "F6_E2M3",
    "float6_e3m2fn": "F6_E3M2",
    "uint8": "U8",
    "int8": "I8",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "int16": "I16",
    "uint16": "U16",
    "float16": "F16",
    "bfloat16": "BF16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "complex64": "C64",
    "float64": "F64",
    "int64": "I64",
    "uint64": "U64",
}


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
@pytest.mark.parametrize("shape", [(3, 8), (3, 3), (), (0, 5)])
def test_safetensors_itself_reads_our_files(tmp_path: Path, fmt: bt.Format, shape: tuple[int, ...]) -> None:
    array = Array(codes_of(fmt, shape), fmt)
    path = tmp_path / "x.safetensors"
    save(path, {"x": array, "y": np.ones(3, np.float32)}, metadata={"format": "pt"})
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata()["format"] == "pt"
        found = file.get_slice("x")
        whole = int(np.prod(shape)) * fmt.bits % 8 == 0
        if fmt.name in NAMED and whole:
            assert (found.get_dtype(), tuple(found.get_shape())) == (NAMED[fmt.name], shape)
        else:
            assert found.get_dtype() == "U8" and file.get_tensor("x").tobytes() == array.tobytes()
        assert (file.get_tensor("y") == 1).all()


def test_safetensors_numpy_reads_ours_and_we_read_its(tmp_path: Path) -> None:
    arrays = {
        "f": np.linspace(0, 1, 7, dtype=np.float32),
        "h": np.ones((2, 2), np.float16),
        "i": np.arange(5),
        "b": np.array([True, False]),
    }
    save(tmp_path / "ours.safetensors", arrays)
    for name, array in safetensors.numpy.load_file(tmp_path / "ours.safetensors").items():
        assert array.dtype == arrays[name].dtype and (array == arrays[name]).all()
    safetensors.numpy.save_file(arrays, tmp_path / "its.safetensors", metadata={"a": "b"})
    for name, array in load(tmp_path / "its.safetensors").items():
        assert array.format is bt.format(arrays[name].dtype) and (np.asarray(array) == arrays[name]).all()
    with open_tensors(tmp_path / "its.safetensors") as reader:
        assert reader.metadata == {"a": "b"}


def test_wide_tensors_are_aligned(tmp_path: Path) -> None:
    save(tmp_path / "x.safetensors", {"a": np.zeros(3, np.uint8), "b": np.zeros(1), "c": np.zeros(1, np.int16)})
    with open_tensors(tmp_path / "x.safetensors") as reader:
        assert reader.names == ["b", "c", "a"]
        for name, offset in reader._offsets.items():
            assert offset % reader[name].format.storage.itemsize == 0


def test_names_selects_tensors(tmp_path: Path) -> None:
    save(tmp_path / "x.npz", {"a": np.zeros(1), "b": np.ones(2)})
    save(tmp_path / "y.npz", {"a": np.zeros(1), "other": np.ones(2)})
    assert list(load(tmp_path / "y.npz", names="other")) == ["other"]
    assert list(load(tmp_path / "x.npz", names=["b"])) == ["b"]
    with pytest.raises(FileError, match=r"x\.npz: has no tensor 'B'; did you mean 'b'\?"):
        load(tmp_path / "x.npz", names=["B"])


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_formats_as_json(fmt: bt.Format) -> None:
    data = json.loads(json.dumps(format_to_json(fmt)))
    assert format_from_json(data) == fmt
    assert isinstance(data, str) == (fmt in bt.formats())


def test_a_users_format_is_read_by_a_process_that_never_saw_it(tmp_path: Path) -> None:
    fmt = bt.FloatFormat("e3m3_mine", exponent_bits=3, mantissa_bits=3, bias=1, inf=False, nan="negative_zero")
    for container in (".npy", ".safetensors"):
        array = Array(codes_of(fmt, (2, 3)), fmt)
        save(tmp_path / f"x{container}", array if container == ".npy" else {"x": array})
    code = f"""
        import bittrue as bt
        fmt = bt.FloatFormat("e3m3_mine", exponent_bits=3, mantissa_bits=3, bias=1, inf=False, nan="negative_zero")
        assert bt.load({str(tmp_path / "x.npy")!r}).format == fmt
        assert bt.load({str(tmp_path / "x.safetensors")!r})["x"].format == fmt
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_a_format_must_not_borrow_a_built_in_name(tmp_path: Path) -> None:
    false = bt.FloatFormat("float8_e4m3fn", exponent_bits=5, mantissa_bits=2)
    with pytest.raises(ValueError, match="'float8_e4m3fn' differs from the built-in one of that name"):
        save(tmp_path / "x.safetensors", {"x": Array(np.zeros(2, np.uint8), false)})
    assert not list(tmp_path.iterdir())


# --- pieces -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", ["float4_e2m1fn", "float6_e3m2fn", "int1", "float8_e4m3fn", "float32", "bool"])
@pytest.mark.parametrize("container", [".npy", ".npz", ".safetensors", ".bin"])
def test_chunks_and_pieces(tmp_path: Path, fmt: str, container: str) -> None:
    f = bt.format(fmt)
    codes = codes_of(f, (7, 11))
    path = tmp_path / f"x{container}"
    infos = [TensorInfo("x", f, (7, 11))]
    with Writer(path, infos) as writer:
        for start in range(0, 77, 16):
            writer.write("x", codes.reshape(-1)[start : start + 16])
    with open_tensors(path, **({"format": f, "shape": (7, 11)} if container == ".bin" else {})) as reader:
        assert reader.names == ["x"] and reader.formats == {"x": f} and reader.shapes == {"x": (7, 11)}
        pieces = [chunk.copy() for chunk in reader.chunks("x", 32)]
        assert [p.size for p in pieces] == [32, 32, 13]
        assert np.concatenate(pieces).tobytes() == codes.tobytes()
        for start, stop in ((0, 77), (16, 64), (48, 77), (64, 64), (32, 33)):
            pieces = [chunk.copy() for chunk in reader.chunks("x", 16, start, stop)]
            assert np.concatenate([codes.reshape(-1)[:0], *pieces]).tobytes() == codes.reshape(-1)[start:stop].tobytes()
        image = b"".join(part.tobytes() for part in reader.raw("x", 16))
        assert image == Array(codes, f).tobytes()
        last = len(image)
        for start, stop in ((0, last), (0, last // 2), (last // 16 * 16, last), (0, 0)):
            assert b"".join(p.tobytes() for p in reader.raw("x", 16, start, stop)) == image[start:stop]
        with pytest.raises(ValueError, match=rf"start=8, stop=None: start must be .* 16, both from 0 to {last}"):
            reader.raw("x", 16, 8)
        turns = [reader.chunks("x", 16), reader.chunks("x", 16)]
        if container != ".npz":  # two at a time do not disturb each other
            for a, b in zip(*turns):
                assert (a.view(f.code_dtype) == b.view(f.code_dtype)).all()
        with pytest.raises(ValueError, match="elements=10 must be a positive multiple of 16"):
            next(reader.chunks("x", 10))
        for start, stop in ((8, 16), (16, 78), (32, 16)):
            with pytest.raises(ValueError, match=f"start={start}, stop={stop}"):
                reader.chunks("x", 16, start, stop)


def test_writer_refuses_what_was_not_announced(tmp_path: Path) -> None:
    infos = [TensorInfo("a", bt.format("int4"), (5,)), TensorInfo("b", bt.format("uint8"), (2,))]
    path = tmp_path / "x.safetensors"
    cases = [
        ([("c", np.zeros(5, np.uint8))], "no tensor 'c' was announced"),
        ([("b", np.zeros(2, np.uint8))], "got tensor 'b', but 'a' is due"),
        ([("a", np.zeros(3, np.uint8))], "3 codes of 4 bits do not fill whole bytes"),
        ([("a", np.zeros(8, np.uint8))], "got more than the 3 bytes"),
        ([("a", np.zeros(5, np.uint16))], "codes of int4 are uint8, not uint16"),
        ([("a", np.full(5, 16, np.uint8))], "out of range"),
        ([("a", np.zeros(5, np.uint8)), ("b", np.zeros(1, np.uint8))], "tensor 'b' got 1 of its 2 bytes"),
        ([], "tensor 'a' got 0 of its 3 bytes"),
    ]
    for pieces, message in cases:
        with pytest.raises(ValueError, match=message), Writer(path, infos) as writer:
            for name, codes in pieces:
                writer.write(name, codes)
        assert not list(tmp_path.iterdir()), message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x.txt", np.zeros(2)), r"path='.*x.txt' must end in one of .safetensors"),
        (("x.pt", np.zeros(2)), r"path='.*x.pt' must end in .*; write PyTorch's state_dict with safetensors"),
        (("x.npz", np.zeros(2)), "arrays must map names to arrays for a .npz file, not be ndarray"),
        (("x.npy", {"a": np.zeros(1), "b": np.zeros(1)}), "holds exactly one array, not 2"),
        (("x.npz", {"a": [1, 2]}), r"arrays\['a'\] must be an Array or a NumPy array, not list"),
        (("x.npy", np.zeros(2, complex)), "arrays has dtype complex128, for which there is no format"),
        (("x.npz", {"a": np.array([None])}), r"arrays\['a'\] has dtype object"),
        (("x.npz", {"": np.zeros(1)}), "name='' of a tensor must be a non-empty string"),
        (("x.npz", {3: np.zeros(1)}), "name=3 of a tensor"),
        (("x.safetensors", {"__metadata__": np.zeros(1)}), "other than '__metadata__'"),
        (("x.safetensors", {"\ud800": np.zeros(1)}), "must be valid Unicode"),
    ],
)
def test_unsuitable_arguments(tmp_path: Path, arguments: tuple, message: str) -> None:
    name, arrays = arguments
    with pytest.raises((ValueError, TypeError), match=message):
        save(tmp_path / name, arrays)
    assert not list(tmp_path.iterdir())


def test_metadata_has_its_place(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a \.npz file has no place for metadata"):
        save(tmp_path / "x.npz", {"a": np.zeros(1)}, metadata={"a": "b"})
    with pytest.raises(ValueError, match="must map strings to strings"):
        save(tmp_path / "x.safetensors", {"a": np.zeros(1)}, metadata={"a": 1})
    with pytest.raises(ValueError, match="metadata key 'bittrue'"):
        save(tmp_path / "x.safetensors", {"a": np.zeros(1)}, metadata={"bittrue": "b"})


# --- damaged files ----------------------------------------------------------------------------------------------------


def entry(dtype: str, shape: list, begin: int, end: int) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def typed(name: str, fmt: object, shape: object) -> dict:
    return {"__metadata__": {"bittrue": json.dumps({name: {"format": fmt, "shape": shape}})}}


BAD_SAFETENSORS = {
    "empty": (b"", "has 0 bytes; a safetensors file has at least 8"),
    "no json": ((b"{nothing}",), "the header is not valid JSON"),
    "a list": ((b"[1]",), "the header begins with b'\\['"),
    "not utf-8": ((b'{"\xff":1}',), "not valid JSON"),
    "twice": (
        (
            b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
            b"1",
        ),
        "has the name 'a' twice",
    ),
    "deep": ((b'{"a":' * 100_000 + b"1" + b"}" * 100_000,), "not valid JSON"),
    "nan": ((b'{"a":NaN}',), "NaN is no JSON number"),
    "lone surrogate": ((b'{"\\ud800":1}',), "not valid JSON"),
    "header too long": (struct.pack("<Q", 1 << 40) + b"{}", "header length 1099511627776 but the file has 10 bytes"),
    "header longer than file": (({}, b"", 50), "header length 50 but"),
    "entry is a number": (({"a": 1},), "tensor 'a': its entry must have dtype, shape and data_offsets"),
    "no offsets": (({"a": {"dtype": "U8", "shape": [1]}},), "its entry must have"),
    "unknown dtype": (({"a": entry("F7", [1], 0, 1)}, b"1"), "tensor 'a': dtype 'F7' is not one of BOOL, F4"),
    "dtype is a list": (({"a": entry([], [1], 0, 1)}, b"1"), "dtype \\[\\] is not one of"),
    "three offsets": (({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 2]}}, b"1"), "must be two integers"),
    "true as offset": (({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, True]}}, b"1"), "must be two integers"),
    "reversed offsets": (({"a": entry("U8", [1], 1, 0)}, b"1"), "must not be negative or reversed"),
    "negative offset": (({"a": entry("U8", [2], -1, 1)}, b"1"), "must not be negative"),
    "beyond the file": (
        ({"a": entry("U8", [9], 0, 9)}, b"12"),
        "truncated: its tensors take 9 bytes, the file holds 2",
    ),
    "left over": (({"a": entry("U8", [1], 0, 1)}, b"123"), "2 bytes after the last tensor belong to none"),
    "overlap": (
        ({"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 1, 3)}, b"123"),
        "tensor 'b': begins at offset 1, expected 2; it overlaps tensor 'a'",
    ),
    "same place": (({"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 0, 2)}, b"12"), "overlaps tensor 'a'"),
    "gap": (({"a": entry("U8", [1], 0, 1), "b": entry("U8", [1], 2, 3)}, b"123"), "leaves a gap before it"),
    "wrong size": (
        ({"a": entry("F32", [3], 0, 8)}, b"12345678"),
        "data_offsets hold 8 bytes, but shape \\(3,\\) of float32 takes 12",
    ),
    "negative shape": (({"a": entry("U8", [-1], 0, 1)}, b"1"), "must not have negative dimensions"),
    "fractional shape": (({"a": entry("U8", [1.0], 0, 1)}, b"1"), "must be a list of integers"),
    "true as shape": (({"a": entry("U8", [True], 0, 1)}, b"1"), "must be a list of integers"),
    "shape is text": (({"a": entry("U8", "1", 0, 1)}, b"1"), "must be a list of integers"),
    "huge shape": (({"a": entry("F64", [2**62, 2**62], 0, 8)}, b"12345678"), "too large for any memory"),
    "huge empty shape": (({"a": entry("F64", [2**62, 0, 2**62], 0, 0)},), "too large for any memory"),
    "many dimensions": (({"a": entry("U8", [1] * 65, 0, 1)}, b"1"), "65 dimensions; at most 64"),
    "half a byte": (({"a": entry("F4", [3], 0, 2)}, b"12"), "does not fill whole bytes"),
    "metadata no text": (({"__metadata__": {"a": 1}},), "__metadata__ must map names to strings"),
    "metadata no json": (({"__metadata__": {"bittrue": "{"}},), "metadata 'bittrue' is not valid JSON"),
    "metadata a list": (({"__metadata__": {"bittrue": "[]"}},), "is a JSON list, expected an object"),
    "unknown format": (
        ({**typed("a", "float9", [1]), "a": entry("U8", [1], 0, 1)}, b"1"),
        "tensor 'a': format 'float9' is not built in",
    ),
    "other size": (
        ({**typed("a", "int4", [9]), "a": entry("U8", [1], 0, 1)}, b"1"),
        r"shape \(9,\), 5 bytes as U8, but U8 with 1",
    ),
    "not as U8": (({**typed("a", "hifloat8", [1]), "a": entry("I8", [1], 0, 1)}, b"1"), "but I8 with 1 bytes"),
    "no format": (({**typed("a", None, [1]), "a": entry("U8", [1], 0, 1)}, b"1"), "neither a name nor a description"),
    "kind": (
        ({**typed("a", {"name": "x", "kind": "q"}, [1]), "a": entry("U8", [1], 0, 1)}, b"1"),
        "kind 'q' is not one of",
    ),
    "parameter": (
        ({**typed("a", {"name": "x", "kind": "int", "width": 900}, [1]), "a": entry("U8", [1], 0, 1)}, b"1"),
        "width=900 must be from 1 to 64",
    ),
    "strange parameter": (
        ({**typed("a", {"name": "x", "kind": "int", "rm": "-rf"}, [1]), "a": entry("U8", [1], 0, 1)}, b"1"),
        "parameter 'rm' is not one of",
    ),
    "parameter of another type": (
        ({**typed("a", {"name": "x", "kind": "float", "exponent_bits": "8"}, [1]), "a": entry("U8", [1], 0, 1)}, b"1"),
        "exponent_bits='8' must be an integer",
    ),
    "a built-in with parameters": (
        ({**typed("a", {"name": "int8", "kind": "int", "width": 8}, [1]), "a": entry("U8", [1], 0, 1)}, b"1"),
        "built in and takes no parameters",
    ),
    "code out of range": (
        ({**typed("a", "tfloat32", [1]), "a": entry("U8", [4], 0, 4)}, b"\xff" * 4),
        "out of range for tfloat32",
    ),
}


@pytest.mark.parametrize("case", BAD_SAFETENSORS)
def test_damaged_safetensors(tmp_path: Path, case: str) -> None:
    content, message = BAD_SAFETENSORS[case]
    path = tmp_path / "bad.safetensors"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write_safetensors(path, *content)
    with pytest.raises(FileError, match=message) as caught:
        load(path)
    assert "bad.safetensors" in str(caught.value) and "\n" not in str(caught.value)


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    return (
        b"\x93NUMPY"
        + version
        + struct.pack("<H" if version[:1] == b"\x01" else "<I", len(header))
        + header.encode()
        + data
    )


def header(descr: object = "<f4", shape: object = (1,), fortran: object = False) -> str:
    return repr({"descr": descr, "fortran_order": fortran, "shape": shape})


def field(name: str, about: object, kind: str = "|u1") -> list:
    return [((json.dumps(about), name), kind)]


BAD_NPY = {
    "empty": (b"", "the header ends 8 bytes too early; not a .npy file, or truncated"),
    "magic": (b"PK\x03\x04 what is this", "expected b'.x93NUMPY'; not a .npy file"),
    "version": (npy(header(), b"1234", b"\x07\x00"), "version 7.0 is not known"),
    "cut in the header": (npy(header())[:30], "bytes too early"),
    "no dictionary": (npy("[1, 2]"), "expected a dictionary"),
    "code": (npy("__import__('os').system('true')"), "the header cannot be read"),
    "deep": (npy("(" * 3000 + ")" * 3000), "the header cannot be read"),
    "missing key": (npy("{'descr': '<f4', 'shape': ()}"), "expected a dictionary of descr"),
    "fortran": (npy(header(fortran=1), b"1234"), "fortran_order must be True or False"),
    "long header": (npy("{" + " " * 100_000 + "}", version=b"\x02\x00"), "header of 100002 bytes; at most"),
    "negative": (npy(header(shape=(-1,)), b"1234"), "negative dimensions"),
    "text as shape": (npy(header(shape=("1",)), b"1234"), "must be a list of integers"),
    "huge": (npy(header(shape=(2**61, 2**61))), "too large for any memory"),
    "short": (npy(header(shape=(5,)), b"1234"), "takes 20 bytes, but 4 follow the header"),
    "long": (npy(header(), b"12345"), "takes 4 bytes, but 5 follow the header"),
    "objects": (npy(header("|O", ()), b"12345678"), "Python objects .pickle., which are refused"),
    "strings": (npy(header("<U4", ()), b"1" * 16), "dtype '<U4' is not a number type"),
    "nonsense": (npy(header("f4,f4", ()), b"1" * 8), "not a number type"),
    "odd float": (npy(header("<f3", ()), b"1" * 3), "not a number type"),
    "quad": (npy(header("<f16", ()), b"1" * 16), "is not (supported|a number type)"),
    "records": (npy(header([("a", "<f4"), ("b", "<f4")], ()), b"1" * 8), "records .* are not supported"),
    "record with shape": (npy(header([("hifloat8", "|u1", (2,))], ()), b"12"), "are not supported"),
    "foreign record": (npy(header([("a", "|u1")]), b"1"), "format 'a' is not built in"),
    "record of another width": (npy(header([("bfloat16", "|u1")]), b"1"), "not how bfloat16 is stored"),
    "record of floats": (npy(header([("tfloat32", "<f4")]), b"1234"), "not how tfloat32 is stored"),
    "title no json": (npy(header([(("{", "int4"), "|u1")]), b"1"), "the title of field 'int4' is not valid JSON"),
    "title without shape": (npy(header([("int4", "|u1")]), b"1"), "must be a list of integers"),
    "packed size": (npy(header(field("int4", {"shape": [5]})), b"1"), "takes 3 bytes, but \\(1,\\) are stored"),
    "other name": (npy(header(field("mine", {"format": "int8"})), b"1"), "not how int8 is stored"),
    "own parameters": (
        npy(header(field("mine", {"format": {"name": "mine", "kind": "int", "width": 70}})), b"1"),
        "from 1 to 64",
    ),
    "untyped": (npy(header("|V1"), b"1"), "does not tell the number format"),
}


@pytest.mark.parametrize("case", BAD_NPY)
def test_damaged_npy(tmp_path: Path, case: str) -> None:
    content, message = BAD_NPY[case]
    (tmp_path / "bad.npy").write_bytes(content)
    with pytest.raises(FileError, match=message) as caught:
        load(tmp_path / "bad.npy")
    assert "bad.npy" in str(caught.value)
    with zipfile.ZipFile(tmp_path / "bad.npz", "w") as archive:
        archive.writestr("x.npy", content)
    with pytest.raises(FileError, match=message) as caught:
        load(tmp_path / "bad.npz")
    assert "bad.npz, member 'x.npy'" in str(caught.value)


def test_pickle_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([{}, None]), allow_pickle=True)
    np.savez(tmp_path / "o.npz", o=np.array([{}, None]))
    for path in (tmp_path / "o.npy", tmp_path / "o.npz"):
        with pytest.raises(FileError, match="unpickling may run any code"):
            load(path)


def test_damaged_npz(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    path.write_bytes(b"no zip at all")
    with pytest.raises(FileError, match=r"bad\.npz: file is not a zip file"):
        load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(FileError, match=r"member 'readme\.txt': is not a \.npy array"):
        load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", npy(header(), b"1234"))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("x.npy", npy(header(), b"1234"))
    with pytest.raises(FileError, match=r"member 'x\.npy': occurs twice"):
        load(path)
    save(path, {"x": np.arange(1000.0)}, force=True)
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match="tensor 'x': bad CRC-32"):
        load(path)


def test_a_member_that_claims_to_be_huge(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy(header(shape=(1 << 40,)), b"1234"))
    content = path.read_bytes()
    at = content.rindex(b"PK\x01\x02") + 24  # uncompressed size in the directory
    path.write_bytes(content[:at] + struct.pack("<I", 0xF0000000) + content[at + 4 :])
    with pytest.raises(FileError, match=r"claims 4026531840 bytes in .*; the file is damaged"):
        load(path)


def test_raw_files_must_fit(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"1234567")
    with pytest.raises(ValueError, match="does not tell its format; give it"):
        load(path)
    with pytest.raises(FileError, match=r"x\.bin: has 7 bytes, but shape \(2,\) of float32 takes 8"):
        load(path, format="float32", shape=(2,))
    with pytest.raises(FileError, match="has 7 bytes, but shape"):
        load(path, format="float16")
    with pytest.raises(ValueError, match="must not have negative dimensions"):
        load(path, format="int8", shape=(-1, 7))
    assert load(path, format="int4").shape == (14,)
    assert load(path, format="int4", shape=(13,)).shape == (13,)
    with pytest.raises(ValueError, match=r"shape=\(3,\) is for \.bin and \.raw"):
        load(tmp_path / "x.npz", shape=(3,))
    with pytest.raises(ValueError, match="format='int8' is for"):
        load(tmp_path / "x.npz", format="int8")


def test_missing_files_and_folders(tmp_path: Path) -> None:
    for name in ("x.npy", "x.npz", "x.safetensors", "x.safetensors.index.json"):
        with pytest.raises(MissingFileError, match=rf"{name}: no such file"):
            load(tmp_path / name)
        with pytest.raises(FileNotFoundError):
            load(tmp_path / name)
    with pytest.raises(FileError, match="is a folder; name a file in it"):
        load(tmp_path)
    with pytest.raises(FileError, match=r"the folder .*nowhere does not exist"):
        save(tmp_path / "nowhere" / "x.npy", np.zeros(1))


@pytest.mark.parametrize("container", [".npy", ".npz", ".safetensors"])
def test_random_damage_raises_file_errors_only(tmp_path: Path, container: str) -> None:
    arrays = {
        "a": Array(codes_of(bt.format("float4_e2m1fn"), (3, 3)), "float4_e2m1fn"),
        "b": Array(codes_of(OWN[2], (4,)), OWN[2]),
        "t": Array(codes_of(bt.format("tfloat32"), (2,)), "tfloat32"),
        "c": np.arange(6, dtype=np.float32).reshape(2, 3),
    }
    path = tmp_path / f"x{container}"
    draw = random.Random(20260)
    for array in arrays.values() if container == ".npy" else [arrays]:
        save(path, array, force=True)
        good = path.read_bytes()
        limit = len(good) - (16 if container == ".npy" else 0)
        for _ in range(500):
            bad = bytearray(good)
            if draw.random() < 0.2:
                del bad[draw.randrange(len(bad)) :]
            for _ in range(draw.choice([0, 1, 1, 2, 8])):
                if bad:
                    bad[draw.randrange(min(len(bad), limit))] ^= 1 << draw.randrange(8)
            path.write_bytes(bad)
            try:
                load(path)
            except FileError as error:
                assert path.name in str(error)


# --- all or nothing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
def test_an_existing_file_is_kept_without_force(tmp_path: Path, container: str) -> None:
    path = tmp_path / f"x{container}"
    arrays = np.zeros(3, np.float32) if container in (".npy", ".bin") else {"x": np.zeros(3, np.float32)}
    path.write_bytes(b"precious")
    with pytest.raises(ExistingFileError, match="exists already and was left alone"):
        save(path, arrays)
    with pytest.raises(FileExistsError):
        save(path, arrays)
    assert path.read_bytes() == b"precious" and len(list(tmp_path.iterdir())) == 1
    save(path, arrays, force=True)
    assert path.read_bytes() != b"precious" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("force", [False, True])
def test_an_interrupted_writer_leaves_nothing(tmp_path: Path, container: str, error: type, force: bool) -> None:
    path = tmp_path / f"x{container}"
    if force:
        path.write_bytes(b"precious")
    with pytest.raises(error), Writer(path, [TensorInfo("x", bt.format("uint8"), (64,))], force=force) as writer:
        writer.write("x", np.zeros(32, np.uint8))
        raise error
    assert [p.read_bytes() for p in tmp_path.iterdir()] == ([b"precious"] if force else [])


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    with pytest.raises(ExistingFileError), AtomicFile(path) as file:
        file.write(b"ours")
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs" and len(list(tmp_path.iterdir())) == 1


def test_file_systems_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "x.bin"
    with AtomicFile(path) as file:
        file.write(b"ours")
    assert path.read_bytes() == b"ours" and len(list(tmp_path.iterdir())) == 1
    path.unlink()
    with pytest.raises(ExistingFileError), AtomicFile(path) as file:
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs" and len(list(tmp_path.iterdir())) == 1


def test_links_are_followed_and_devices_are_safe(tmp_path: Path) -> None:
    real, link = tmp_path / "real.bin", tmp_path / "link.bin"
    real.write_bytes(b"old")
    link.symlink_to(real)
    save(link, np.array([7], np.uint8), force=True)
    assert link.is_symlink() and real.read_bytes() == b"\x07"
    device = tmp_path / "null.bin"
    device.symlink_to("/dev/null")
    with pytest.raises(FileError, match="exists and is not a regular file"):
        save(device, np.zeros(1), force=True)
    (tmp_path / "folder.bin").mkdir()
    with pytest.raises(FileError, match="is a folder"):
        save(tmp_path / "folder.bin", np.zeros(1), force=True)


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_FSIZE")
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_full_disk_is_a_clear_error(tmp_path: Path, container: str) -> None:
    path = tmp_path / f"x{container}"
    arrays = "a" if container in (".npy", ".bin") else "{'x': a}"
    code = f"""
        import resource, numpy as np, bittrue as bt
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        a = np.zeros(1_000_000, np.float32)
        try:
            bt.save({str(path)!r}, {arrays})
        except bt.FileError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert f"x{container}: no space left to write it" in done.stdout and not done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="permission denied"):
        save(tmp_path / "x.npy", np.zeros(1))


def test_the_file_and_its_folder_are_synced(tmp_path: Path, synced: list[int]) -> None:
    save(tmp_path / "x.npy", np.zeros(1))
    assert len(synced) == (2 if os.name == "posix" else 1)


def test_new_files_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        save(tmp_path / "x.npy", np.zeros(1))
    finally:
        os.umask(before)
    assert (tmp_path / "x.npy").stat().st_mode & 0o777 == 0o640


# --- sharded checkpoints ----------------------------------------------------------------------------------------------


def sharded(folder: Path) -> Path:
    save(
        folder / "m-1-of-2.safetensors",
        {"a": np.zeros((2, 3), np.float32), "b": np.ones(4, np.int64)},
        metadata={"format": "pt"},
    )
    save(folder / "m-2-of-2.safetensors", {"c": Array(np.arange(8, dtype=np.uint8), "float4_e2m1fn")})
    index = folder / "m.safetensors.index.json"
    names = {"a": "m-1-of-2.safetensors", "b": "m-1-of-2.safetensors", "c": "m-2-of-2.safetensors"}
    index.write_text(json.dumps({"metadata": {"total_size": 60}, "weight_map": names}))
    return index


def test_sharded_checkpoints_read_as_one(tmp_path: Path) -> None:
    index = sharded(tmp_path)
    loaded = load(index)
    assert sorted(loaded) == ["a", "b", "c"] and loaded["c"].tobytes() == bytes([0x10, 0x32, 0x54, 0x76])
    with open_tensors(index) as reader:
        assert reader.metadata == {"format": "pt"} and reader["a"].shape == (2, 3)
        assert sum(chunk.size for chunk in reader.chunks("a", 16)) == 6
        assert next(reader.raw("c")).tobytes() == bytes([0x10, 0x32, 0x54, 0x76])


def unknown_dtype(path: Path, name: str, dtype: str = "F9_FUTURE") -> None:
    """Make a tensor of a safetensors file one of a dtype that nobody knows."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header[name]["dtype"] = dtype
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def test_unknown_dtypes_are_listed_on_request(tmp_path: Path) -> None:
    index = sharded(tmp_path)
    shard = tmp_path / "m-1-of-2.safetensors"
    unknown_dtype(shard, "a")
    for path in (index, shard):
        with pytest.raises(FileError, match="'a': dtype 'F9_FUTURE' is not one of"):
            load(path)
        with open_tensors(path, lenient=True) as reader:
            assert reader.unsupported == {"a": ("a", "F9_FUTURE", (2, 3), 24)} and "a" not in reader.tensors
            assert reader.read("b").tolist() == [1, 1, 1, 1]
    unknown_dtype(shard, "a", [])  # damage, not a dtype
    with pytest.raises(FileError, match=r"dtype \[\] is not one of"):
        open_tensors(shard, lenient=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda i: i["weight_map"].update(a="../m-1-of-2.safetensors"),
            "'../m-1-of-2.safetensors', expected the plain name",
        ),
        (lambda i: i["weight_map"].update(a="/etc/x.safetensors"), "expected the plain name"),
        (lambda i: i["weight_map"].update(a="..\\x.safetensors"), "expected the plain name"),
        (lambda i: i["weight_map"].update(a="passwd"), "expected the plain name"),
        (lambda i: i["weight_map"].update(a=3), "in 3, expected the plain name"),
        (lambda i: i["weight_map"].update(a="m-3.safetensors"), "names the shard m-3.safetensors, which is missing"),
        (
            lambda i: i["weight_map"].update(d="m-2-of-2.safetensors"),
            "places tensor 'd' in m-2-of-2.safetensors, which does not",
        ),
        (lambda i: i["weight_map"].pop("b"), "holds tensor 'b', which the index places in nowhere"),
        (lambda i: i["weight_map"].update(b="m-2-of-2.safetensors"), "which does not have it"),
        (lambda i: i.pop("weight_map"), "has no weight_map"),
        (lambda i: i.update(metadata=[]), "metadata must be a JSON object"),
    ],
)
def test_damaged_index(tmp_path: Path, change: object, message: str) -> None:
    path = sharded(tmp_path)
    index = json.loads(path.read_text())
    change(index)
    path.write_text(json.dumps(index))
    with pytest.raises(FileError, match=message) as caught:
        load(path)
    assert "m.safetensors.index.json" in str(caught.value)


def test_index_that_is_no_json(tmp_path: Path) -> None:
    path = sharded(tmp_path)
    path.write_text("{")
    with pytest.raises(FileError, match="the index is not valid JSON"):
        load(path)
    path.write_text('{"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}}')
    with pytest.raises(FileError, match="the index has the name 'a' twice"):
        load(path)


def test_importing_files_does_not_import_numba() -> None:
    code = "import sys, bittrue.files; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
