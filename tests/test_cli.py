"""The command line: what every command prints, what mistakes cost, and that pipes carry every code unharmed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import bittrue as bt
from bittrue import exact
from bittrue.cli import main, pipes
from bittrue.formats import FloatFormat, TaperedFormat
from bittrue.parse import parse_number

DIGITS = Path(__file__).parents[1] / "examples" / "digits" / "digits.safetensors"
REAL = [f for f in bt.formats() if f.kind in ("bool", "int", "float", "tapered")]
SMALL = [f for f in REAL if f.bits <= 8]
ROUNDINGS = [m for m in bt.Rounding if m not in (bt.Rounding.hybrid, bt.Rounding.stochastic)]


class Run:
    """The command line in this process: `run("show", "1")` gives (exit code, stdout, stderr)."""

    def __init__(self, capsys, monkeypatch):
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments, stdin=""):
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        code = main([str(a) for a in arguments])
        captured = self._capsys.readouterr()
        return code, captured.out, captured.err

    def ok(self, *arguments, stdin=""):
        code, out, err = self(*arguments, stdin=stdin)
        assert (code, err) == (0, "")
        return out

    def json(self, *arguments):
        return json.loads(self.ok(*arguments, "--json"))

    def fails(self, *arguments, stdin=""):
        """Return the one line of a mistake."""
        code, _, err = self(*arguments, stdin=stdin)
        assert code == 2
        assert err.startswith("error: ") and err.count("\n") == 1, err
        assert "Traceback" not in err
        return err[len("error: ") : -1]


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.delenv("BITTRUE_TRACEBACK", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    return Run(capsys, monkeypatch)


def value_of(entry):
    return parse_number(entry["decimal"])


def same(a, b):
    """Equality that tells -0 from 0 and knows NaN."""
    if a != a or b != b:
        return a != a and b != b
    return a == b and str(float(a)) == str(float(b))


# --- start, help, mistakes --------------------------------------------------------------------------------------------


COMMANDS = ("formats", "show", "encode", "decode", "convert", "rules", "bench")


def test_the_help_names_every_command(run):
    out = run.ok("--help")
    assert all(name in out for name in COMMANDS)
    assert run.ok() == out  # without arguments


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(run, command):
    out = run.ok(command, "--help")
    assert "Example" in out and f"bittrue {command}" in out


def test_version(run):
    assert run.ok("--version") == f"bittrue {bt.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["fromats"], "formats"),
        (["formats", "hifloat9"], "did you mean 'hifloat8'"),
        (["show", "1"], "--format"),
        (["show", "1", "--format", "hlf"], "did you mean 'half'"),
        (["show", "1.x", "--format", "half"], "is not a number"),
        (["show", "0x100", "--format", "int8"], "0 to 0xff"),
        (["show", "1+2j", "--format", "half"], "complex"),
        (["show", "--fromat", "half"], "--format"),
        (["encode"], "--to"),
        (["encode", "--to", "half", "--rounding", "nearst_even"], "did you mean 'nearest_even'"),
        (["encode", "--to", "half", "--rounding", "hybrid"], "hifloat8 only"),
        (["encode", "--to", "half", "--overflow", "wrap"], "integer formats only"),
        (["encode", "--to", "complex32"], "--to complex32"),
        (["encode", "--to", "half", "--seed", "-1"], "seed=-1"),
        (["decode", "--from", "half", "--as", "hexfloat"], "did you mean 'hex-float'"),
        (["convert", "nowhere.npy", "--to", "half"], "nowhere.npy: no such file"),
        (["convert", "x.txt", "--to", "half"], "x.txt"),
        (["convert", "x.bin", "--to", "half"], "--format"),
        (["convert", "x.npy", "--to", "half", "--mode", "CAST_RINT"], "--target"),
        (["convert", "x.npy", "--to", "half", "--saturation", "off"], "--target"),
        (["convert", "x.npy", "--to", "mx9", "--target", "aie:aie-mlv2"], "choose with --rounding"),
        (["convert", "x.npy", "--to", "half", "--target", "ascend:a2", "--rounding", "odd"], "--rounding"),
        (["rules", "--src", "flot"], "did you mean 'float'"),
        (["rules", "--src", "float", "--saturation", "off"], "--dst"),
        (["rules", "--mode", "CAST_RND"], "CAST_RINT"),
        (["rules", "--product", "a22"], "Atlas A2"),
        (["rules", "--product", "aie:x"], "ascend"),
        (["bench", "--only", "nothing like this"], "groups:"),
        (["bench", "--size", "much"], "2^24"),
        (["bench", "--repeat", "0"], "repeat=0"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(run, arguments, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert expected in run.fails(*arguments)


def test_bugs_can_be_traced(run, monkeypatch):
    monkeypatch.setenv("BITTRUE_TRACEBACK", "1")
    with pytest.raises(ValueError, match="not known"):
        main(["formats", "nonsense"])


def test_no_colour_and_no_cut_text_in_pipes(run):
    for arguments in (["formats"], ["formats", "hifloat8"], ["show", "1.3", "--format", "hifloat8"]):
        out = run.ok(*arguments)
        assert "\x1b" not in out and "…" not in out


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    "arguments", [["formats"], ["formats", "float8_e5m2"], ["show", "1.3", "--format", "hifloat8"], ["rules"]]
)
def test_columns_are_respected(run, monkeypatch, columns, arguments):
    monkeypatch.setenv("COLUMNS", str(columns))
    out = run.ok(*arguments)
    tables = [line for line in out.splitlines() if not line.startswith("fields: ")]
    assert max(map(len, tables)) <= columns
    assert "…" not in out


# --- formats ----------------------------------------------------------------------------------------------------------


def test_formats_lists_the_catalogue(run):
    out = run.ok("formats")
    every = [*bt.formats(), *bt.formats("block")]
    assert [line.split()[0] for line in out.splitlines()[3:] if line and not line.startswith("fields")] == [
        f.name for f in every
    ]
    assert [entry["name"] for entry in run.json("formats")] == [f.name for f in every]


@pytest.mark.parametrize(
    ("name", "figures"),
    [  # Ascend C, "Built-in data types", tables 2 to 4
        ("float8_e4m3fn", {"max": "2^9 - 2^6", "min_normal": "2^-6", "min_subnormal": "2^-9"}),
        ("float8_e5m2", {"max": "2^16 - 2^13", "min_normal": "2^-14", "min_subnormal": "2^-16"}),
        ("bfloat16", {"max": "2^128 - 2^120", "min_normal": "2^-126"}),
        ("half", {"max": "2^16 - 2^5", "min": "-2^16 + 2^5", "epsilon": "2^-10"}),
        ("float4_e1m2fn", {"max": "2^1 - 2^-2"}),
        ("hifloat8", {"max": "2^15", "min_subnormal": "2^-22"}),
        ("int8", {"max": "2^7 - 1", "min": "-2^7"}),
    ],
)
def test_one_format_states_its_range_exactly(run, name, figures):
    data = run.json("formats", name)
    assert {key: data[key]["powers"] for key in figures} == figures
    out = run.ok("formats", name)
    assert all(text in out for text in figures.values())
    assert all(alias in out for alias in bt.format(name).aliases)


@pytest.mark.parametrize("f", bt.formats(), ids=str)
def test_one_format_prints_and_lists_its_codes(run, f):
    assert f.name in run.ok("formats", f.name)
    codes = run.json("formats", f.name).get("codes")
    if f in SMALL:
        assert [int(entry["code"], 16) for entry in codes] == list(range(1 << f.bits))
        assert all(same(value_of(entry), f.value(code)) for code, entry in enumerate(codes))
    else:
        assert codes is None


def test_the_code_table_shows_every_value(run):
    f = bt.format("float8_e4m3fn")
    table = run.ok("formats", f.name).split("code ")[-1].splitlines()[1:]
    cells = [cell for line in table if line.startswith("0x") and "to" not in line for cell in line.split()[1:]]
    assert len(cells) == 128

    def number(cell):
        if cell == "nan":
            return cell
        odd, _, power = cell.rpartition("2^")
        return Fraction(odd.rstrip("*") or 1) * Fraction(2) ** int(power) if "^" in cell else Fraction(cell)

    assert [number(c) for c in cells[:-1]] == [f.value(c) for c in range(127)] and cells[-1] == "nan"


# --- show -------------------------------------------------------------------------------------------------------------


def test_show_is_readable(run):
    out = run.ok("show", "1.3", "--format", "hifloat8_t")
    for text in ("1.3 in hifloat8", "0 0001 010", "5 * 2^-2", "0x1.4p+0", "0x0b   0 0001 011   1.375", "-0.4"):
        assert text in out
    assert all(mode.value in out for mode in bt.Rounding)


@pytest.mark.parametrize("f", REAL, ids=str)
def test_show_gives_what_every_rounding_mode_gives(run, f):
    rng = random.Random(f.name)
    top = float(f.max)
    for text in ["0", "-0", "1/3", "-1e-30", repr(rng.uniform(-top, top)), repr(rng.gauss(0, 1)), f"{top * 0.99:.17g}"]:
        value = parse_number(text)
        data = run.json("show", text, "--format", f.name)
        assert same(value_of(data["value"]) if "/" not in text else value, value)
        for mode in ROUNDINGS:
            entry = data["rounding"][mode.value]
            code = exact.encode(value, f, bt.Rule(mode))
            assert int(entry["code"], 16) == code
            assert same(value_of(entry), f.value(code))


@pytest.mark.parametrize("f", SMALL, ids=str)
def test_show_finds_the_neighbours_of_every_code(run, f):
    values = sorted({v for v in f.values() if v == v})
    step = 1 if f.bits < 8 else 5
    for code in range(0, 1 << f.bits, step):
        value = f.value(code)
        data = run.json("show", f"{code:#x}", "--format", f.name)
        assert int(data["result"]["code"], 16) == code or f.kind == "bool" or value != value
        below = [v for v in values if v < value]
        above = [v for v in values if v > value]
        if f.kind == "bool":
            below = above = []
        for name, expected in (("below", below[-1:]), ("above", above[:1])):
            found = [value_of(data[name])] if data[name] else []
            assert found == expected, (code, name)


def test_show_brackets_values_between_and_beyond(run):
    data = run.json("show", "1.3", "--format", "hifloat8")
    assert (data["below"]["decimal"], data["above"]["decimal"]) == ("1.25", "1.375")
    data = run.json("show", "1e9", "--format", "float8_e4m3fn")
    assert data["below"]["decimal"] == "448" and data["above"] is None
    data = run.json("show", "-1e9", "--format", "half")
    assert data["below"]["decimal"] == "-inf" and data["above"]["decimal"] == "-65504"


def test_show_says_what_overflow_and_nan_rules_do(run):
    outcomes = run.json("show", "1e9", "--format", "float8_e4m3fn")["other_rules"]["outcomes"]
    assert {name: entry.get("decimal") for name, entry in outcomes.items()} == {
        "saturate": "448",
        "saturate_finite": "448",
        "infinity": "nan",
        "ieee": "nan",
        "raise": None,
    }
    outcomes = run.json("show", "300.5", "--format", "int8")["other_rules"]["outcomes"]
    assert outcomes["wrap"]["decimal"] == "44"
    outcomes = run.json("show", "nan", "--format", "int8")["other_rules"]["outcomes"]
    assert {name: entry.get("decimal") for name, entry in outcomes.items()} == {
        "keep": "0",
        "zero": "0",
        "max": "127",
        "raise": None,
    }
    outcomes = run.json("show", "-1.5", "--format", "e8m0")["other_rules"]["outcomes"]
    assert outcomes["magnitude / saturate"]["decimal"] == "2"


def test_show_takes_codes_infinities_and_huge_numbers(run):
    assert run.json("show", "0b1010", "--format", "float4_e2m1fn")["value"]["decimal"] == "-1"
    assert run.json("show", "inf", "--format", "half")["result"]["code"] == "0x7c00"
    assert run.json("show", "inf", "--format", "float4_e2m1fn")["result"]["decimal"] == "6"
    assert len(run.ok("show", "1e5000", "--format", "float32").splitlines()) < 40
    assert run.json("show", "1e5000", "--format", "float32")["value"]["decimal"] == "1e+5000"
    data = run.json("show", "1+2j", "--format", "complex32")
    assert (data["real"]["result"]["code"], data["imaginary"]["result"]["code"]) == ("0x3c00", "0x4000")
    data = run.json("show", "0x40003c00", "--format", "complex32")
    assert (data["real"]["value"]["decimal"], data["imaginary"]["value"]["decimal"]) == ("1", "2")


def test_show_warns_of_hybrid_on_exact_values(run):
    assert "every rounding mode but hybrid" in run.ok("show", "256", "--format", "hifloat8")


def test_show_follows_a_product(run):
    modes = run.json("show", "2.5", "--format", "int32", "--target", "ascend:950")["target"]["modes"]
    assert {m["mode"]: m["decimal"] for m in modes} == {
        "CAST_NONE": "2",  # TRUNC
        "CAST_RINT": "2",
        "CAST_FLOOR": "2",
        "CAST_CEIL": "3",
        "CAST_ROUND": "3",
        "CAST_TRUNC": "2",
        "CAST_ODD": "2",  # replaced by TRUNC
    }
    out = run.ok("show", "1.3", "--format", "hifloat8", "--target", "ascend:950")
    assert "CAST_HYBRID" in out and "evidence: " in out
    assert "not supported by Atlas A2" in run.fails("show", "1", "--format", "hifloat8", "--target", "ascend:a2")


# --- pipes ------------------------------------------------------------------------------------------------------------


PIPED = [f for f in REAL if f.bits <= 16]


@pytest.mark.parametrize("output", ["hex-float", "decimal", "float32-bits"])
@pytest.mark.parametrize("f", SMALL, ids=str)
def test_every_code_survives_decode_and_encode(run, f, output):
    codes = range(1 << f.bits) if f.kind != "bool" else range(2)
    digits = -(-f.bits // 4)
    lines = "".join(f"0x{code:0{digits}x}\n" for code in codes)
    values = run.ok("decode", "--from", f.name, "--as", output, stdin=lines)
    source = ["--source", "float32"] if output.endswith("bits") else []
    back = run.ok("encode", "--to", f.name, "--overflow", "infinity", *source, stdin=values)
    expected = []
    for code in codes:
        nan = isinstance(f, (FloatFormat, TaperedFormat)) and f.is_nan(code)
        expected.append(exact.encode(f.value(code), f) if nan else code)
    assert [int(line, 16) for line in back.splitlines()] == expected


def test_encode_reads_every_notation(run):
    lines = "1.3\n+2\n-inf\nnan\n0x1.8p3\n1/3\n-0\n .5 \r\n1e400\n123456789012345678901234567890"
    assert run.ok("encode", "--to", "half", "--overflow", "ieee", stdin=lines).split() == [
        "0x3d33", "0x4000", "0xfc00", "0x7e00", "0x4a00", "0x3555", "0x8000", "0x3800", "0x7c00", "0x7c00",
    ]


@pytest.mark.parametrize("f", [f for f in REAL if f.bits > 1], ids=str)
@pytest.mark.parametrize("mode", ROUNDINGS)
def test_encode_rounds_decimals_once(run, f, mode):
    """Decimals just beside the midpoints and the values of the format, nearer than any float64 is."""
    rng = random.Random(f"{f.name} {mode}")
    numbers = []
    for _ in range(12):
        low = f.value(rng.randrange(1 << min(f.bits, 60)))
        if isinstance(low, float):
            continue
        high = low + f.min_subnormal if low >= 0 else low - f.min_subnormal
        middle = (low + high) / 2
        for x in (low, middle, middle * (1 + Fraction(1, 10**25)), middle * (1 - Fraction(1, 10**25))):
            scaled = x * 10**400  # every such number ends within 400 places, or is cut there
            text = f"{int(scaled)}e-400"
            numbers.append((text, parse_number(text)))
    out = run.ok("encode", "--to", f.name, "--rounding", mode.value, stdin="\n".join(t for t, _ in numbers))
    assert [int(line, 16) for line in out.split()] == [exact.encode(v, f, bt.Rule(mode)) for _, v in numbers]


def test_encode_wraps_integers_exactly(run):
    numbers = [2**70 + 1, -(2**65) - 3, 300, 2**53 + 1]
    out = run.ok("encode", "--to", "int8", "--overflow", "wrap", stdin="\n".join(map(str, numbers)))
    assert [int(line, 16) for line in out.split()] == [n % 256 for n in numbers]


@pytest.mark.parametrize("arguments", [["--to", "hifloat8", "--rounding", "stochastic"], ["--to", "half"]])
def test_blocks_do_not_show(run, monkeypatch, arguments):
    lines = "".join(f"{x:.9g}\n" for x in np.random.default_rng(3).standard_normal(500))
    whole = run.ok("encode", *arguments, stdin=lines)
    monkeypatch.setattr(pipes, "_BLOCK", 61)
    assert run.ok("encode", *arguments, stdin=lines) == whole
    assert run.ok("encode", *arguments, stdin=lines.rstrip("\n")) == whole


def test_stochastic_pipes_equal_the_library(run):
    x = np.random.default_rng(4).standard_normal(300).astype(np.float32)
    lines = "".join(f"{bits:08x}\n" for bits in x.view(np.uint32))
    out = run.ok("encode", "--to", "bfloat16", "--source", "float32", "--rounding", "stochastic", stdin=lines)
    assert [int(line, 16) for line in out.split()] == bt.encode(x, "bfloat16", "stochastic").tolist()


@pytest.mark.parametrize(
    "source", ["float8_e4m3fn", "half", "bfloat16", "float64", "int8", "uint64", "hifloat8", "int4"]
)
def test_encode_from_codes_of_another_format(run, source):
    src = bt.format(source)
    rng = random.Random(source)
    codes = [rng.randrange(1 << src.bits) for _ in range(200)]
    out = run.ok("encode", "--to", "float8_e5m2", "--source", source, stdin="\n".join(f"{c:x}" for c in codes))
    expected = [exact.encode(src.value(c), "float8_e5m2", source=src) for c in codes]
    assert [int(line, 16) for line in out.split()] == expected


@pytest.mark.parametrize("f", [f for f in REAL if f.bits > 8], ids=str)
def test_decode_wide_formats(run, f):
    rng = random.Random(f.name)
    codes = [rng.randrange(1 << f.bits) for _ in range(100)]
    lines = "\n".join(f"{c:x}" for c in codes)
    out = run.ok("decode", "--from", f.name, "--as", "decimal", stdin=lines).split()
    assert all(same(float(text), float(f.value(code))) for text, code in zip(out, codes))
    out = run.ok("decode", "--from", f.name, "--as", "float64-bits", stdin=lines).split()
    found = np.array([int(text, 16) for text in out], np.uint64).view(np.float64)
    assert all(same(float(a), float(f.value(code))) for a, code in zip(found, codes))


@pytest.mark.parametrize(
    ("arguments", "lines", "expected"),
    [
        (["encode", "--to", "half"], "1\n2\nx\n", "line 3: 'x' is not a number"),
        (["encode", "--to", "half"], "1\n\n2\n", "line 2: '' is not a number"),
        (["encode", "--to", "half"], "1_000\n", "line 1: '1_000' is not a number"),
        (["encode", "--to", "half"], b"1\n\xff\xfe\n", "line 2: "),
        (["encode", "--to", "half"], "1\n2j\n", "line 2: '2j' is complex"),
        (["encode", "--to", "int8", "--overflow", "raise"], "1\n127\n128\n", "line 3: value 128 is beyond"),
        (["encode", "--to", "int8", "--nan", "raise"], "1\nnan\n", "line 2: NaN"),
        (["encode", "--to", "int8", "--source", "half", "--nan", "raise"], "3c00\n7e00\n", "line 2: "),
        (["encode", "--to", "half", "--source", "half"], "3c00\n13c00\n", "line 2: code 13c00 is out of range"),
        (["decode", "--from", "hifloat8"], "2e\n0x1g\n", "line 2: '0x1g' is not a code"),
        (["decode", "--from", "hifloat8"], "2e\n\n", "line 2: '' is not a code"),
        (["decode", "--from", "hifloat8"], "2e\n-1\n", "line 2: '-1' is not a code"),
        (["decode", "--from", "int4"], "f\n10\n", "line 2: code 10 is out of range for int4: 0 to 0xf"),
    ],
)
def test_bad_lines_are_named(run, arguments, lines, expected):
    assert run.fails(*arguments, stdin=lines).startswith(expected)


def test_bad_lines_are_counted_across_blocks(run, monkeypatch):
    monkeypatch.setattr(pipes, "_BLOCK", 16)
    code, out, err = run("encode", "--to", "half", stdin="1.0\n" * 100 + "x\n")
    assert code == 2 and err.startswith("error: line 101: ")
    assert out == "0x3c00\n" * 100


def test_empty_input(run):
    assert run.ok("encode", "--to", "half") == ""
    assert run.ok("decode", "--from", "half") == ""


COMMAND = [sys.executable, "-c", "import sys; from bittrue.cli import main; sys.exit(main())"]


def test_a_reader_that_goes_away_is_no_error():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen([*COMMAND, "decode", "--from", "hifloat8"], **pipes)
    child.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(b"2e\n" * 100_000)
    with contextlib.suppress(BrokenPipeError):
        child.stdin.close()
    assert child.stderr.read() == b""
    assert child.wait() == 141
    child.stderr.close()


@pytest.mark.parametrize("arguments", [["rules"], ["formats"], ["bench", "--list"]])
def test_a_report_may_be_cut_short(arguments):
    child = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait() == 141
    child.stderr.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "formats"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: no space left on device\n")


@pytest.mark.skipif(os.name != "posix", reason="closes streams in a shell")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_closed_streams_are_no_reason_to_fail(closed):
    script = f'"$0" -c "import sys; from bittrue.cli import main; sys.exit(main())" encode --to half {closed}'
    command = ["sh", "-c", script, sys.executable]
    done = subprocess.run(command, input="1\n", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_may_write_one_line_and_wait():
    with subprocess.Popen(
        [*COMMAND, "encode", "--to", "hifloat8"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        for line, code in ((b"1.3\n", b"0x0a\n"), (b"14\n", b"0x2e\n")):
            child.stdin.write(line)
            child.stdin.flush()
            assert child.stdout.readline() == code
        child.stdin.close()
        assert child.wait() == 0


# --- convert ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path):
    x = np.random.default_rng(5).standard_normal((40, 30)).astype(np.float32)
    x[0, :3] = 1e9, np.nan, 1e-30
    path = tmp_path / "model.safetensors"
    bt.save(path, {"a.weight": x, "a.bias": x[0], "steps": np.arange(3)})
    return path


def test_convert_writes_beside_its_input_and_reports(run, model):
    data = run.json("convert", model, "--to", "hifloat8")
    output = model.with_name("model.hifloat8.safetensors")
    assert data["output"] == str(output)
    assert data["rule"]["rounding"] == "nearest_even"
    tensors = {t["name"]: t for t in data["tensors"]}
    assert {name: (t["elements"], t["bytes_before"], t["bytes_after"]) for name, t in tensors.items()} == {
        "a.weight": (1200, 4800, 1200),
        "a.bias": (30, 120, 30),
        "steps": (3, 24, 24),
    }
    bias = tensors["a.bias"]
    assert (bias["overflowed"], bias["nan"], bias["flushed_to_zero"]) == (1, 1, 1)
    assert not tensors["steps"]["converted"]
    before, after = bt.load(model), bt.load(output)
    assert np.array_equal(after["a.weight"].codes, bt.encode(before["a.weight"], "hifloat8"))


def test_convert_prints_a_table(run, model, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = run.ok("convert", model, "--to", "bf16", "--rounding", "floor", "-o", model.with_name("out.npz"))
    lines = out.splitlines()
    assert "SQNR dB" in lines[0] and max(map(len, lines[:-1])) <= 80
    assert sorted(line.split()[0] for line in lines[2:5]) == ["a.bias", "a.weight", "steps"]
    assert any(line.startswith("total") and "1233" in line for line in lines)
    assert lines[-1].endswith(" s") and "(rounding floor)" in lines[-1] and "1 copied" in lines[-1]


def test_convert_never_replaces_without_force(run, model):
    output = model.with_name("out.safetensors")
    run.ok("convert", model, "--to", "half", "-o", output)
    before = output.read_bytes()
    assert "--force" in run.fails("convert", model, "--to", "int8", "-o", output)
    assert output.read_bytes() == before
    run.ok("convert", model, "--to", "int8", "-o", output, "--force")
    assert output.read_bytes() != before


def test_convert_chooses_tensors(run, model):
    arguments = ["convert", model, "--to", "half", "--force"]
    data = run.json(*arguments, "--include", "a.*", "--exclude", "*bias")
    assert {t["name"]: t["converted"] for t in data["tensors"]} == {"a.bias": False, "a.weight": True, "steps": False}
    assert "matches no tensor" in run.fails(*arguments, "--include", "b.*")


def test_convert_raw_files(run, tmp_path):
    x = np.random.default_rng(6).standard_normal((8, 16)).astype(np.float32)
    (tmp_path / "x.bin").write_bytes(x.tobytes())
    run.ok("convert", tmp_path / "x.bin", "--to", "fp8_e4m3fn", "--format", "float32", "--shape", "8,16")
    assert (tmp_path / "x.float8_e4m3fn.bin").read_bytes() == bt.encode(x, "float8_e4m3fn").tobytes()
    arguments = ["convert", tmp_path / "x.bin", "--to", "half", "--format", "float32", "--shape"]
    assert "not a shape" in run.fails(*arguments, "8,b")
    assert "512 bytes" in run.fails(*arguments, "9x16")


def test_convert_folders(run, tmp_path):
    assert "name the file" in run.fails("convert", tmp_path, "--to", "half")
    weights = {"w": np.ones((4, 4), np.float32)}
    bt.save(tmp_path / "model-1.safetensors", weights)
    index = {"metadata": {}, "weight_map": {"w": "model-1.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    data = run.json("convert", tmp_path, "--to", "half")
    assert data["output"] == str(tmp_path / "model.float16")
    written = bt.load(tmp_path / "model.float16" / "model.safetensors.index.json")
    assert written["w"].format.name == "float16"


def test_convert_follows_a_product(run, model):
    output = model.with_name("t.safetensors")
    arguments = ["convert", model, "--to", "hifloat8", "-o", output, "--force", "--target", "ascend:950"]
    x = bt.load(model)["a.weight"].codes
    for mode in ("CAST_ROUND", "CAST_HYBRID"):
        out = run.ok(*arguments, "--mode", mode)
        assert f"{mode}: used" in out
        expected = bt.ascend.cast(x, "hifloat8", mode=mode, product="950")
        assert np.array_equal(bt.load(output)["a.weight"].codes, expected.codes)
    assert "round-integral" in run.fails("convert", model, "--to", "float", "--target", "ascend:950", "-o", output)


def test_convert_with_saturation_off(run, tmp_path):
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    np.save(tmp_path / "x.npy", every)
    arguments = ["convert", tmp_path / "x.npy", "--to", "hifloat8", "-o", tmp_path / "y.bin", "--target", "ascend:950"]
    for state, large, nan in (("off", 0x6F, 0x80), ("on", 0x6E, 0x00)):
        run.ok(*arguments, "--saturation", state, "--force")
        codes = np.fromfile(tmp_path / "y.bin", np.uint8)
        assert set(codes[(every >= 40960) & (every <= np.inf)]) == {large}
        assert set(codes[np.isnan(every)]) == {nan}
    assert "'off'" in run.fails(*arguments, "--saturation", "no", "--force")


def test_rules_with_saturation_off(run):
    arguments = ["rules", "--product", "950", "--src", "half", "--dst", "hifloat8"]
    assert "NaN stays NaN" in run.ok(*arguments, "--saturation", "off")
    assert "NaN gives 0" in run.ok(*arguments)


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "bittrue", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"bittrue {bt.__version__}\n"


def test_an_interrupt_leaves_nothing_behind(run, model, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("bittrue.cli.progress.Bar.show", interrupt)
    before = sorted(os.listdir(model.parent))
    code, out, err = run("convert", model, "--to", "half")
    assert (code, out, err) == (130, "", "\n")
    assert sorted(os.listdir(model.parent)) == before


def test_the_committed_checkpoint_converts(run, tmp_path):
    data = run.json("convert", DIGITS, "--to", "hifloat8", "-o", tmp_path / "d.safetensors")
    assert all(t["sqnr_db"] > 20 for t in data["tensors"] if t["converted"])


# --- rules ------------------------------------------------------------------------------------------------------------


def test_rules_lists_the_book(run):
    data = run.json("rules")
    assert len(data["rows"]) == len(bt.ascend.rules()) and data["cast"] is None
    out = run.ok("rules")
    assert all(product.name in out for product in bt.ascend.products() if product.casts)


def test_rules_says_what_becomes_of_a_mode(run):
    data = run.json("rules", "--product", "a2", "--src", "half", "--dst", "int8_t", "--mode", "ODD")
    assert {(row["effect"], row["effective"]) for row in data["rows"]} == {("replaced", "TRUNC")}
    assert data["cast"]["rounding"] == "trunc"
    out = run.ok("rules", "--product", "ascend:a2", "--src", "half", "--dst", "int8_t", "--mode", "ODD")
    assert "replaced -> TRUNC" in out and "evidence: " in out and "[1] Ascend C API" in out
