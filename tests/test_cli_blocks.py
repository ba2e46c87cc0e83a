"""Block formats on the command line: the drawn layout, blocks taken apart, checkpoints converted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import bittrue as bt
from bittrue.cli import main
from bittrue.cli.blocks import block_rows
from bittrue.inspection.blocks import byte_parts
from bittrue.kinds.block import SharedExponentFormat

X = np.random.default_rng(0).standard_normal((6, 40)).astype(np.float32)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def call(*arguments: object) -> str:
        code = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out

    return call


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]):
    def call(*arguments: object) -> str:
        assert main([str(a) for a in arguments]) == 2
        return capsys.readouterr().err

    return call


def test_formats_draws_a_block(run) -> None:
    text = run("formats", "mx6")
    assert "16 values in 12 bytes" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["0", "E1"] in lines
    assert ["1", "7-0:", "E2[7]", "..", "E2[0]"] in lines
    assert ["3", "7:", "m3[0]", "6-2:", "m2", "1-0:", "m1[4:3]"] in lines
    assert ["2..17", "m0", "..", "m15"] in [line.split() for line in run("formats", "mx9").splitlines()]
    listed = run("formats")
    assert all(f.name in listed for f in bt.formats("block"))


@pytest.mark.parametrize("fmt", bt.formats("block"), ids=str)
def test_the_drawing_covers_every_bit(fmt: bt.BlockFormat) -> None:
    for parts in byte_parts(fmt):
        assert [b for high, low, _ in parts for b in range(high, low - 1, -1)] == list(range(7, -1, -1))
    assert len(block_rows(fmt)) <= fmt.block_bytes


@pytest.mark.parametrize("layout", ["lsb", "msb", "planes"])
def test_the_drawing_says_where_the_bits_are(layout: str) -> None:
    """Set one mantissa bit at a time; it must appear where the drawing has it."""
    fmt = SharedExponentFormat("x", mantissa_bits=5, shift_group=2, bit_layout=layout)
    from bittrue.exact_blocks import Block, to_bytes

    drawn = {}
    for byte, parts in enumerate(byte_parts(fmt)):
        for high, low, name in parts:
            field, _, bits = name.partition("[")
            if not field.startswith("m"):
                continue
            first = int(bits.rstrip("]").rpartition(":")[2]) if bits and layout != "planes" else 0
            if layout == "planes":
                first = int(bits.split("]")[0].rpartition(":")[2])
                if bits.count("["):
                    first += int(bits.rpartition("[")[2].rstrip("]").rpartition(":")[2])
            for k in range(high - low + 1):
                drawn[int(field[1:]), first + k] = (byte, low + k)
    for element in range(16):
        for bit in range(5):
            codes = [0] * 16
            codes[element] = 1 << bit
            image = to_bytes(Block(0, (0,) * 8, tuple(codes)), fmt)
            (byte,) = [i for i, b in enumerate(image) if b]
            assert drawn[element, bit] == (byte, image[byte].bit_length() - 1)


def test_show_takes_a_block_apart(run) -> None:
    text = run("show", "1,0.5,-0.75,1.3", "--format", "mx6")
    assert "E1 = 128 (2**0)" in text and "E2 = 0 0 1 1 1 1 1 1" in text and "12 zeros to fill the block" in text
    data = json.loads(run("show", "1,0.5,-0.75,1.3", "--format", "mx6", "--json"))
    block = data["blocks"][0]
    assert (block["E1"], block["E2"][:2]) == (128, [0, 0])
    assert block["codes"][:4] == [8, 4, 16 + 6, 10] and block["elements"][:4] == ["8", "4", "-6", "10"]
    assert block["bytes"] == bt.encode(np.float32([1, 0.5, -0.75, 1.3]), "mx6").tobytes().hex()
    scaled = json.loads(run("show", ",".join(["6", "-3"] * 20), "--format", "mxfp4", "--json"))
    assert len(scaled["blocks"]) == 2 and scaled["blocks"][1]["scale"] == 127
    assert scaled["blocks"][0]["elements"][:2] == ["6", "-3"]
    assert "scale = 0x7f (1)" in run("show", "6,-3", "--format", "mxfp4")


def test_show_refuses(fails) -> None:
    assert "apart by commas" in fails("show", ",", "--format", "mx6")
    assert "block format" in fails("show", "1", "--format", "mx6", "--target", "ascend:950")
    assert "nonfinite" in fails("show", "1,nan", "--format", "mx9")


@pytest.mark.parametrize(
    "name,options,rule",
    [
        ("mx9", [], {}),
        ("mx9", ["--convention", "am027", "--overflow", "bump_block"], {"overflow": "bump_block"}),
        ("mx6", ["--rounding", "floor", "--axis", "0"], {"rounding": "floor", "axis": 0}),
        ("bfp16ebs8", ["--axis", "-1"], {}),
        ("mxfp4", ["--axis", "1"], {"axis": 1}),
        ("nvfp4", [], {}),
    ],
)
def test_convert(run, tmp_path: Path, name: str, options: list[str], rule: dict) -> None:
    source, target = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    wide = np.random.default_rng(1).standard_normal((9, 4, 64)).astype(np.float64)
    bt.save(source, {"w": X, "wide": wide, "half": X.astype(np.float16), "one": np.float32(3).reshape(()), "n": X > 0})
    report = json.loads(run("convert", source, "--to", name, "-o", target, *options, "--json"))
    stored = bt.load(target)
    fmt = bt.format(f"{name}_am027" if "am027" in options else name)
    for key, x in (("w", X), ("wide", wide), ("half", X.astype(np.float16))):
        assert stored[key].format == fmt and stored[key].shape == x.shape
        assert stored[key].tobytes() == bt.encode(x, fmt, **rule).tobytes()
        found = next(t for t in report["tensors"] if t["name"] == key)
        y = np.asarray(stored[key], np.float64)
        sqnr = 10 * np.log10(np.sum(x.astype(float) ** 2) / np.sum((x.astype(float) - y) ** 2))
        assert found["bytes_after"] == stored[key].nbytes and found["sqnr_db"] == pytest.approx(sqnr, rel=1e-6)
    assert np.asarray(stored["one"]) == 3 and stored["one"].format.name == "float32"
    assert stored["n"].format.name == "bool"
    text = run("convert", source, "--to", name, "-o", target, "--force", *options)
    assert f"to {fmt.name}" in text


def test_convert_out_of_blocks(run, fails, tmp_path: Path) -> None:
    own = SharedExponentFormat("own", block_size=16, mantissa_bits=5)
    source, target = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    tensors = {"a": bt.array(X, "mxfp4"), "b": bt.array(X, own, axis=0), "c": X}
    bt.save(source, tensors)
    assert "3 tensors to float32 in " in run("convert", source, "--to", "float32", "-o", target)
    for name, stored in bt.load(target).items():
        assert (np.asarray(stored) == np.asarray(tensors[name])).all()
    text = run("convert", source, "--to", "mxfp4", "-o", target, "--force")
    assert "2 tensors to mxfp4, 1 copied unchanged in " in text
    assert bt.load(target)["b"].axis == 0
    report = json.loads(run("convert", source, "--to", "half", "-o", target, "--force", "--exclude", "b", "--json"))
    assert sorted((t["name"], t["source"], t["target"]) for t in report["tensors"]) == [
        ("a", "mxfp4", "float16"), ("b", "own", "own"), ("c", "float32", "float16")
    ]
    error = fails("convert", source, "--to", "half", "-o", target, "--force", "--target", "ascend:950")
    assert "no product casts the block format mxfp4; leave --target out, or its tensors by --exclude" in error


def test_convert_in_pieces_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bittrue.convert import work

    x = np.random.default_rng(2).standard_normal((100, 512)).astype(np.float32)
    bt.save(tmp_path / "a.npy", x)
    monkeypatch.setattr(work, "_CHUNK", 1 << 12)
    monkeypatch.setattr(work, "_PIECE", 1 << 9)
    bt.convert(tmp_path / "a.npy", tmp_path / "b.npy", "mx6", threads=3)
    assert bt.load(tmp_path / "b.npy").tobytes() == bt.encode(x, "mx6").tobytes()


def test_convert_refuses(fails, tmp_path: Path) -> None:
    source = tmp_path / "a.npy"
    bt.save(source, X)
    assert "for block formats" in fails("convert", source, "--to", "int8", "--axis", "0")
    assert "has only one" in fails("convert", source, "--to", "mxfp4", "--convention", "am027")
    assert "must be 'ug1603' or 'am027'" in fails("convert", source, "--to", "mx9", "--convention", "ocp")
    assert "did you mean 'bump_block'" in fails("convert", source, "--to", "mx9", "--overflow", "bumpblock")
    assert "--seed has no meaning" in fails("convert", source, "--to", "mx9", "--seed", "3")
    x = X.copy()
    x[0, 0] = np.nan
    bt.save(source, x, force=True)
    assert "nonfinite='raise'" in fails("convert", source, "--to", "mx9")
