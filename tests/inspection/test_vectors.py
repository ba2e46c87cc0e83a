"""Test vectors: every boundary is among the inputs, and the codes beside them are those of the specification."""

from __future__ import annotations

import itertools
import struct
from fractions import Fraction

import numpy as np
import pytest

import bittrue as bt
from bittrue import exact
from bittrue.cli import main
from bittrue.inspection.vectors import inputs, modes_of


def neighbours(x):
    """Patterns of the float32 x and of the floats on either side of it."""
    (p,) = struct.unpack("<I", struct.pack("<f", x))
    return {p, p + 1, p - 1 if p & 0x7FFFFFFF else p}


def test_every_boundary_is_there():
    values = [Fraction(m, 8) for m in range(8)] + [Fraction(8 + m, 8) * 2**e for e in range(3) for m in range(8)]
    assert values[-1] == Fraction(15, 2)  # the largest value of float6_e2m3fn, from OCP MX 1.0
    middles = [(a + b) / 2 for a, b in itertools.pairwise(values)] + [Fraction(31, 4), Fraction(8)]
    found = set(inputs("float6_e2m3fn").codes.view(np.uint32).tolist())
    for v in values + middles:
        assert neighbours(float(v)) | neighbours(-float(v)) <= found
    assert {0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0x00000001, 0x007FFFFF, 0x7F7FFFFF} <= found


def test_a_source_that_cannot_hold_the_boundaries_has_both_sides():
    found = inputs("float8_e3m4", "float4_e2m1fn").tolist()
    assert sorted(set(found)) == [-6.0, -4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


@pytest.mark.parametrize(
    ("to", "source"), [("float4_e2m1fn", "float32"), ("float8_e5m2", "half"), ("int4", "bfloat16")]
)
def test_columns_are_what_the_specification_says(to, source, capsys):
    assert main(["vectors", "--to", to, "--source", source, "--nan", "zero"]) == 0
    lines = capsys.readouterr().out.splitlines()
    f, src, modes = bt.format(to), bt.format(source), lines[1].split()[2:]
    assert modes == modes_of(to, source) and len(modes) == 11
    for line in lines[2:]:
        code, *results = (int(text, 16) for text in line.split())
        for mode, result in zip(modes, results):
            rule = bt.Rule(rounding=mode, nan="zero")
            assert result == exact.encode(src.value(code), f, rule, source=src), (line, mode)


def test_arguments(capsys):
    arguments = ["vectors", "--to", "hifloat8", "--rounding", "nearest_away", "--rounding", "hybrid"]
    assert main([*arguments, "--overflow", "infinity"]) == 0
    first, second, *lines = capsys.readouterr().out.splitlines()
    assert (first, second) == ("// float32 to hifloat8, overflow infinity, nan keep", "// input nearest_away hybrid")
    assert "7f800000 6f 6f" in lines and "41800000 40 41" in lines  # Inf, and 16, which hybrid moves to 20
    for arguments, expected in (
        (["--to", "mx9"], "mx9 has none per code"),
        (["--to", "float32"], "up to 16 bits"),
        (["--to", "half", "--rounding", "hybrid"], "hifloat8 only"),
        (["--to", "half", "--rounding", "stochastic"], "--seed"),
    ):
        assert main(["vectors", *arguments]) == 2
        assert expected in capsys.readouterr().err


def test_dumps_of_simulators(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x = inputs("float6_e2m3fn")
    patterns = x.codes.view(np.uint32).tolist()
    codes = [exact.encode(x.format.value(p), "float6_e2m3fn", bt.Rule(rounding="nearest_zero")) for p in patterns]
    (tmp_path / "x.hex").write_text("// stimuli\n" + "".join(f"{p:08X}\n" for p in patterns))
    (tmp_path / "y.mem").write_text("".join(f"{c:02x} // {i}\n\n" for i, c in enumerate(codes)))
    assert main(["diagnose", "x.hex", "y.mem", "--format", "float32", "--to", "float6_e2m3fn"]) == 0
    assert capsys.readouterr().out.startswith("EXPLAINED: nearest_zero ")
    bt.save("y.npy", bt.Array(np.array(codes, np.uint8), "float6_e2m3fn"))
    assert main(["compare", "y.npy", "y.mem", "--format", "float6_e2m3fn"]) == 0
    assert "PASS" in capsys.readouterr().out
    (tmp_path / "bad.hex").write_text("3f\n\nxx\n")
    (tmp_path / "two.hex").write_text("3f 00\n")
    for arguments, expected in (
        (["y.mem", "bad.hex", "--format", "float6_e2m3fn"], "bad.hex: line 3: 'xx' is not a code"),
        (["y.mem", "two.hex", "--format", "float6_e2m3fn"], "two.hex: line 1: has 2 columns"),
        (["y.mem", "none.hex", "--format", "float6_e2m3fn"], "none.hex: "),
        (["y.npy", "y.mem"], "give it (--format)"),
    ):
        assert main(["compare", *arguments]) == 2
        assert expected in capsys.readouterr().err


def test_a_range_at_the_end_of_float64():
    far = bt.FloatFormat("far", exponent_bits=5, mantissa_bits=2, bias=1015)
    with pytest.raises(ValueError, match=r"to='far' reaches beyond"):
        inputs(far)
