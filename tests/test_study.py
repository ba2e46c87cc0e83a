"""What a format costs: figures against computations in float64, sizes against memory images, scales against loops."""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
import re
import subprocess
import sys
import textwrap
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue as bt
from bittrue import studying
from bittrue.cli import main
from bittrue.convert.report import decibels
from bittrue.files import FileError, load, save
from bittrue.studying import html
from bittrue.studying import values as studied
from bittrue.studying.report import Cost, Spread

DIGITS = Path(__file__).parents[1] / "examples" / "digits" / "digits.safetensors"
BLOCKS = "mx9 mx6 mx4 mxfp4 nvfp4 bfp16ebs8".split()
ELEMENTS = "int8 int4 float8_e4m3fn float8_e5m2 hifloat8 float4_e2m1fn bfloat16".split()


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make ordinary test arrays span several pieces, with rests."""
    monkeypatch.setattr(studied, "_PIECE", 208)


def tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    wide = (rng.standard_normal((7, 5, 50)) * 2.0 ** rng.integers(-12, 3, (7, 5, 50))).astype(np.float32)
    wide[0, 0, :4] = [0, -0.0, 1e-30, 3]
    wide[3] = 0
    return {
        "wide": wide,
        "long": rng.standard_normal(1037).astype(np.float32),
        "half": rng.standard_normal((40, 33)).astype(np.float16),
        "double": rng.standard_normal((9, 65)),
        "one": np.float32(0.3),
        "none": np.zeros((3, 0), np.float32),
    }


def limit(f: bt.Format) -> float:
    """The value that the largest magnitude goes to."""
    return 15.0 if f.name == "hifloat8" else float(f.max)


def groups(x: np.ndarray, granularity: str) -> list[tuple]:
    """Indices of the elements that share a scale, written down once more."""
    if not x.size:
        return []
    if granularity == "channel" and x.ndim > 1:
        return [(i,) for i in range(x.shape[0])]
    if granularity.startswith("group") and x.ndim:
        n = int(granularity[6:])
        return [
            (*outer, slice(k, k + n)) for outer in np.ndindex(x.shape[:-1]) for k in range(0, x.shape[-1], n)
        ]
    return [(...,)]


def quantized(x: np.ndarray, f: bt.Format, granularity: str, scale: str) -> tuple[np.ndarray, int]:
    """What becomes of `x`, group by group, and how many scales that took."""
    y = np.empty(x.shape, x.dtype)
    found = groups(x, granularity)
    for at in found:
        largest = float(np.abs(x[at]).max())
        s = np.float32(1)
        if largest and scale == "absmax":
            s = np.float32(max(largest / limit(f), 2.0**-126))
        elif largest and scale == "power_of_two":
            s = np.float32(2.0 ** math.ceil(math.log2(largest / limit(f))))
        y[at] = bt.quantize(x[at] / s, f) * s
    return y, len(found)


def check(cost: Cost, x: np.ndarray, y: np.ndarray) -> None:
    x, y = x.astype(np.float64).ravel(), y.astype(np.float64).ravel()
    noise = math.fsum((x - y) ** 2)
    relative = np.abs(x - y)[x != 0] / np.abs(x[x != 0])
    assert cost.noise == pytest.approx(noise, rel=1e-12)
    assert cost.signal == pytest.approx(math.fsum(x * x), rel=1e-12)
    if noise and len(x):
        assert cost.sqnr_db == pytest.approx(10 * math.log10(math.fsum(x * x) / noise), rel=1e-12)
    assert cost.max_rel_error == pytest.approx(relative.max(initial=0), rel=1e-12)
    assert cost.mean_rel_error == pytest.approx(relative.mean() if len(relative) else 0, rel=1e-12)


@pytest.mark.parametrize("scale", ["none", "absmax", "power_of_two"])
@pytest.mark.parametrize("granularity", ["tensor", "channel", "group:16", "group:100"])
def test_figures_and_sizes_of_elements(granularity: str, scale: str) -> None:
    found = bt.study(tensors(), ELEMENTS, granularity=granularity, scale=scale, threads=2)
    assert len(found.costs) == len(ELEMENTS) * len(tensors())
    for k, cost in enumerate(found.costs):
        x, f = tensors()[cost.tensor], bt.format(ELEMENTS[k % len(ELEMENTS)])
        x = x.astype(np.float32) if x.dtype == np.float16 else np.asarray(x)
        x = x.reshape(x.shape[0], -1) if x.ndim > 2 else x  # a convolution's weights are a matrix
        y, scales = quantized(x, f, granularity, scale)
        check(cost, x, y)
        image = bt.array(x, f).nbytes
        assert cost.nbytes == image + scales * {"none": 0, "absmax": 4, "power_of_two": 1}[scale]
        assert cost.bits_per_value == Fraction(8 * cost.nbytes, max(x.size, 1))


@pytest.mark.parametrize("scale", ["none", "absmax"])
@pytest.mark.parametrize("name", BLOCKS)
def test_figures_and_sizes_of_blocks(name: str, scale: str) -> None:
    found = bt.study(tensors(), [name], scale=scale)
    for cost in found.costs:
        x = tensors()[cost.tensor]
        x = np.atleast_1d(x.astype(np.float32) if x.dtype == np.float16 else x)
        x = x.reshape(x.shape[0], -1) if x.ndim > 2 else x
        s = None
        if name == "nvfp4" and scale == "absmax":  # 6 * 448 is the largest value of NVFP4
            s = np.float32(np.abs(x).max(initial=0) / 2688) if np.abs(x).max(initial=0) else np.float32(1)
        check(cost, x, bt.quantize(x, name, scale=s))
        assert cost.nbytes == bt.encode(x, name, scale=s).nbytes + (4 if s is not None else 0)


def test_overflow_and_underflow_are_counted() -> None:
    x = np.float32([0, 1e-9, -1e-9, 1, 447, 465, -1e9, np.inf, np.nan, 2])
    (cost,) = bt.study({"w": x}, ["float8_e4m3fn@none"]).costs
    assert (cost.overflowed, cost.underflowed, cost.nonfinite) == (2, 2, 2)  # 464 is where 448 ends
    (cost,) = bt.study({"w": x}, ["mx9"]).costs
    assert cost.nonfinite == 2 and math.isfinite(cost.noise)
    assert cost.underflowed == 7  # Inf saturates at the largest exponent, beside which the others are nothing


def test_the_least_squares_scale_is_the_best_of_those_it_tries() -> None:
    x = tensors()["wide"]
    for granularity in ("tensor", "channel", "group:16"):
        (cost,) = bt.study({"w": x}, [f"int4@{granularity}@mse"]).costs
        least = 0.0
        x = x.reshape(x.shape[0], -1)
        for at in groups(x, granularity):
            part = x[at].astype(np.float64)
            base = np.float32(max(np.abs(part).max() / 7, 2.0**-126)) if part.any() else np.float32(1)
            tried = [np.maximum(base * np.float32(r), np.float32(2.0**-126)) for r in np.arange(100, 25, -5) / 100]
            least += min(
                math.fsum(((np.rint(x[at] / s).clip(-8, 7).astype(np.float64) * s - part) ** 2).ravel()) for s in tried
            )
        assert cost.noise == pytest.approx(least, rel=1e-6)
        plain = bt.study({"w": x}, [f"int4@{granularity}"]).costs[0]
        assert cost.noise <= plain.noise and cost.nbytes == plain.nbytes


def test_the_result_does_not_depend_on_threads() -> None:
    formats = ["int8@group:16@mse", "mx6", "hifloat8@channel"]
    one = bt.study(tensors(), formats, threads=1)
    assert bt.study(tensors(), formats, threads=4) == one


@pytest.mark.parametrize("piece", [208, 1 << 18])
def test_large_tensors_are_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    """A tensor that is read again for every format and pass costs what it costs in memory."""
    arrays = {**tensors(), "tall": tensors()["wide"].reshape(-1, 2), "row": tensors()["wide"].reshape(1, -1)}
    arrays["codes"] = bt.array(tensors()["wide"], "float6_e3m2fn")
    formats = ["mx9", "nvfp4"]
    for granularity in ("tensor", "channel", "group:7", "group:300"):
        formats += [f"int8@{granularity}@{scale}" for scale in ("absmax", "power_of_two", "mse")]
    monkeypatch.setattr(studied, "_PIECE", piece)
    for suffix in ("safetensors", "npz"):
        path = tmp_path / f"m.{suffix}"
        save(path, arrays)
        whole = bt.study(path, formats, threads=2)
        with monkeypatch.context() as patch:
            patch.setattr(studying, "HELD", -1)
            patch.setattr(studying, "Held", None)
            assert bt.study(path, formats, threads=2) == whole


@pytest.mark.skipif(sys.platform != "linux", reason="needs VmHWM")
def test_memory_does_not_grow_with_the_tensor(tmp_path: Path) -> None:
    """With a bound of 2**18 elements, a tensor of 32 MB in formats with and without passes over all of it."""
    code = """
        import sys
        import bittrue as bt, numpy as np
        from bittrue import studying
        studying.HELD = 1 << 18
        formats = ["int8@mse", "mx6"]
        bt.study(sys.argv[1], formats, threads=2)  # compiles
        def peak():
            return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
        before = peak()
        bt.study(sys.argv[2], formats, threads=2)
        print(peak() - before)
    """
    for name, rows in (("small", 512), ("large", 8192)):
        save(tmp_path / f"{name}.npy", np.ones((rows, 1024), np.float32))
    arguments = [sys.executable, "-c", textwrap.dedent(code), *(tmp_path / f"{n}.npy" for n in ("small", "large"))]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20_000  # kB; the tensor has 32 768


def test_names_in_the_drawing_stand_at_their_own_points() -> None:
    points = {"hifloat8": (78.0, 200.0), "float8_e4m3fn": (78.0, 206.0), "mx9": (500.0, 20.0)}
    names = html._Names(list(points.values()), [points["hifloat8"], points["mx9"]])
    for name, own in points.items():
        text = names.put(*own, name)
        x, y = (float(re.search(f" {axis}='([^']*)'", text)[1]) for axis in "xy")  # type: ignore[index]
        assert min(points, key=lambda n: math.dist(points[n], (x, y - 4))) == name, text


def test_summary_front_and_worst() -> None:
    rng = np.random.default_rng(1)
    good = rng.standard_normal((64, 64)).astype(np.float32)
    bad = good.copy()
    bad[0, 0] = 3000
    found = bt.study({"a": good, "outlier": bad, "c": good}, ["int8", "mx9", "mx4", "float8_e4m3fn"])
    by_name = {s.format: s for s in found.summary}
    assert by_name["int8"].worst == "outlier" and found.worst[0].tensor == "outlier"
    assert [s.bits_per_value for s in found.summary] == sorted(s.bits_per_value for s in found.summary)
    for s in found.summary:
        beaten = [
            o for o in found.summary
            if (o.bits_per_value <= s.bits_per_value and o.sqnr_db > s.sqnr_db)
            or (o.bits_per_value < s.bits_per_value and o.sqnr_db == s.sqnr_db)
        ]
        assert s.pareto == (not beaten), s.format
        costs = found.of(s.format)
        assert s.sqnr_db == pytest.approx(decibels(sum(c.signal for c in costs), sum(c.noise for c in costs)))
        assert s.nbytes == sum(c.nbytes for c in costs)


def test_spread_counts_binades_below_the_largest() -> None:
    spread = Spread.of([np.float32([8, 9, -4, 1]), np.float32([0, np.nan, np.inf, 2.0**-100])])
    assert spread.counts[:5] == [2, 1, 0, 1, 0] and spread.counts[-1] == 1 and spread.zeros == 1
    assert Spread.of([]).counts == [0] * 40


def test_sources(tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 96, dtype=np.float32).reshape(6, 16)
    arrays = {"w": bt.array(x, "bfloat16"), "v": bt.array(x, "float8_e4m3fn"), "n": np.arange(3), "z": x + 1j}
    save(tmp_path / "m.safetensors", {k: v if k != "z" else v.astype(np.complex64) for k, v in arrays.items()})
    from_file, given = bt.study(tmp_path / "m.safetensors"), bt.study(load(tmp_path / "m.safetensors"))
    assert from_file.costs == given.costs and {c.source for c in given.costs} == {"bfloat16", "float8_e4m3fn"}
    skipped = {(s.tensor, s.format, s.expected) for s in given.skipped}
    assert skipped == {("n", "int64", True), ("z", "complex64", False)}
    assert bt.study(tmp_path / "m.safetensors", include="v").tensors == ["v"]


# --- going on after an interruption -----------------------------------------------------------------------------------


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("cut", [0, 1, 40])
def test_an_interrupted_study_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    journal = tmp_path / "journal"

    def stop(name: str, done: int, total: int) -> None:
        if name == "layers.1.weight":
            raise Interrupted

    whole = bt.study(DIGITS, ["int8", "mx6"])
    with pytest.raises(Interrupted):
        bt.study(DIGITS, ["int8", "mx6"], progress=stop, resume=journal)
    data = journal.read_bytes()
    journal.write_bytes(data[: len(data) - cut])  # a crash may cut the last line short
    done = sum(line.endswith(b"\n") for line in journal.read_bytes().splitlines(True)) - 1
    measured = []
    original = studying.measure
    monkeypatch.setattr(studying, "measure", lambda *a: measured.append(a[0]) or original(*a))
    assert bt.study(DIGITS, ["int8", "mx6"], resume=journal) == whole
    assert len(measured) == 2 * (len(whole.tensors) - done) and not journal.exists()


def test_a_journal_of_something_else_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "journal"

    def stop(*_: object) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        bt.study(DIGITS, ["int8"], resume=journal, progress=stop)
    before = journal.read_bytes()
    with pytest.raises(FileError, match="other formats"):
        bt.study(DIGITS, ["int4"], resume=journal)
    assert journal.read_bytes() == before
    (tmp_path / "text").write_text("precious\n")
    with pytest.raises(FileError, match="not the journal"):
        bt.study(DIGITS, ["int8"], resume=tmp_path / "text")
    assert (tmp_path / "text").read_text() == "precious\n"


# --- faces ------------------------------------------------------------------------------------------------------------


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    page, lines = tmp_path / "r.html", tmp_path / "r.csv"
    arguments = ["study", str(DIGITS), "--formats", "int8@channel,mx6", "--html", str(page), "--csv", str(lines)]
    assert main([*arguments, "--json"]) == 0
    out = capsys.readouterr()
    found = json.loads(out.out)
    expected = bt.study(DIGITS, ["int8@channel", "mx6"])
    assert [r["sqnr_db"] for r in found["tensors"]] == [c.sqnr_db for c in expected.costs] and out.err == ""
    rows = list(csv.DictReader(io.StringIO(lines.read_text())))
    assert [float(r["bits_per_value"]) for r in rows] == [float(c.bits_per_value) for c in expected.costs]
    assert page.read_text().count("<svg") == 3 and "layers.0.weight" in page.read_text()
    assert list((tmp_path / "cache" / "bittrue").iterdir()) == []
    assert main(arguments) == 2 and "exists already" in capsys.readouterr().err
    monkeypatch.setattr("bittrue.cli.study.study", lambda *_, **__: pytest.fail("worked for nothing"))
    precious = tmp_path / "m.safetensors"
    precious.write_bytes(DIGITS.read_bytes())
    for outputs in (["--html", str(precious)], ["--html", str(page), "--csv", str(page)]):
        assert main(["study", str(precious), *outputs, "--force"]) == 2
        assert "reads or writes that file already" in capsys.readouterr().err
    assert main(["compare", str(DIGITS), str(precious), "--html", str(precious), "--force"]) == 2
    assert "name another" in capsys.readouterr().err and precious.read_bytes() == DIGITS.read_bytes()
    assert main(["study", str(DIGITS), "--html", str(tmp_path / "no" / "r.html")]) == 2
    assert "does not exist" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main([*arguments, "--force"]) == 0 and "Pareto front" in capsys.readouterr().out


def test_strange_tensors_are_named_and_change_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "m.safetensors"
    save(path, {"w": np.ones((2, 16), np.float32), "z": np.ones(3, np.complex64), "ids": np.arange(3)})
    assert main(["study", str(path)]) == 1
    assert capsys.readouterr().err == "warning: z: complex64 tensors cannot be studied; skipped\n"


def test_an_unknown_dtype_is_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "m.safetensors"
    save(path, {"w": np.ones((2, 16), np.float32), "new": np.ones(4, np.uint16)})
    path.write_bytes(path.read_bytes().replace(b'"U16"', b'"F9N"'))
    assert main(["study", str(path)]) == 1
    out = capsys.readouterr()
    assert out.err == "warning: new: F9N tensors cannot be studied; skipped\n" and "studied 1 tensor " in out.out
    assert main(["study", str(path), "--exclude", "new"]) == 0
    assert capsys.readouterr().err == ""
    whole = bt.study(path)
    assert [(s.tensor, s.format) for s in whole.skipped] == [("new", "F9N")] and whole.tensors == ["w"]
    assert main(["convert", str(path), "--to", "int8", "-o", str(tmp_path / "o.safetensors")]) == 1
    out = capsys.readouterr()
    assert out.err == f"warning: new: dtype 'F9N' is not known; left out of {tmp_path / 'o.safetensors'}\n"
    assert "left out" in out.out and list(load(tmp_path / "o.safetensors")) == ["w"]
    to = ["--to", "hifloat8", "--target", "ascend:950", "-o", str(tmp_path / "t.safetensors")]
    assert main(["convert", str(path), *to]) == 1 and "left out" in capsys.readouterr().err
    assert main(["convert", str(path), "--to", "int8", "-o", str(tmp_path / "p.safetensors"), "--json"]) == 1
    (found,) = [t for t in json.loads(capsys.readouterr().out)["tensors"] if t["name"] == "new"]
    assert (found["source"], found["target"], found["converted"], found["bytes_before"]) == ("F9N", "", False, 8)


def test_one_format_big_endian_arrays_and_values_beyond_float32() -> None:
    x = np.float32([0.3, -1.7, 5])
    (plain,) = bt.study({"w": x}, "int8").costs
    assert bt.study({"w": x.astype(">f4")}, ["int8"], threads=np.int64(1)).costs == (plain,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sum(bt.study({"w": np.array([1e300, 1.0])}, "bfloat16@none").spread.counts) == 1
        found = bt.study({"w": np.array([1e308, -1e307])}, ["int8", "int8@channel", "nvfp4", "mxfp4"])
        assert [c.overflowed for c in found.costs] == [2] * 4  # no scale is as large


def test_arrays_are_hashed_only_for_a_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studying._Named, "fingerprint", lambda self: pytest.fail("hashed"))
    assert bt.study({"w": np.float32([1])}, "int8").tensors == ["w"]


def test_mistakes(tmp_path: Path) -> None:
    x = {"w": np.ones(4, np.float32)}
    for threads in (0, -1, "2"):
        with pytest.raises(ValueError, match=r"threads=.* must be a positive integer"):
            bt.study(x, "int8", threads=threads)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="int1 is no format"):
        bt.study(x, "int1")
    with pytest.raises(ValueError, match="granularity=None"):
        bt.study(x, "int8", granularity=None)  # type: ignore[arg-type]
    save(tmp_path / "empty.npz", {})
    with pytest.raises(ValueError, match=r"no tensor of floating values \(has no tensors\)"):
        bt.study(tmp_path / "empty.npz")
    with pytest.raises(ValueError, match=r"include='conv\*' matches no tensor"):
        bt.study(DIGITS, include=["layers*", "conv*"])
    with pytest.raises(ValueError, match="leave no tensor"):
        bt.study(DIGITS, include="*bias", exclude="layers*")
    with pytest.raises(ValueError, match=r"study \.safetensors, \.npz or \.npy"):
        bt.study("x.bin")
    with pytest.raises(ValueError, match="no tensor of floating values"):
        bt.study({"n": np.arange(3)})
    with pytest.raises(ValueError, match="granularity='chanel'"):
        bt.study(x, ["int8@chanel"])
    with pytest.raises(ValueError, match="scale='best'"):
        bt.study(x, ["int8"], scale="best")
    with pytest.raises(ValueError, match="complex64"):
        bt.study(x, ["complex64"])
    with pytest.raises(ValueError, match="formats is empty"):
        bt.study(x, [])
    with pytest.raises(FileNotFoundError):
        bt.study(tmp_path / "absent.safetensors")


@pytest.mark.parametrize("package", ["torch", "dask"])
def test_a_missing_package_is_named_with_its_remedy(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (package, f"{package}.array"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, f"bittrue.{package}", raising=False)
    with pytest.raises(ImportError, match=rf"pip install 'bittrue\[{package}\]'"):
        importlib.import_module(f"bittrue.{package}")


def test_the_page_in_a_browser(tmp_path: Path, browser: Any) -> None:
    """Nothing complains, nothing is wider than the window, and every drawing has ink."""
    bt.study(DIGITS).to_html(tmp_path / "r.html")
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((tmp_path / "r.html").as_uri())
    assert said == [] and page.evaluate("document.documentElement.scrollWidth") <= 1100
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    inks = page.evaluate(
        "[...document.querySelectorAll('svg')].map(s => s.querySelectorAll('circle, rect').length)"
    )
    assert len(inks) == 3 and min(inks) > 5
    outside = page.evaluate(
        "[...document.querySelectorAll('svg text')].filter(t => {const a = t.getBoundingClientRect(), "
        "b = t.ownerSVGElement.getBoundingClientRect(); return a.left < b.left - 1 || a.right > b.right + 1})"
        ".map(t => t.textContent)"
    )
    assert outside == []


def test_a_study_prints_a_line_for_each_format(tmp_path: Path) -> None:
    x = np.float32([1, 1.75, 3, 6, 0.5, 2, 4, 1.5])
    save(tmp_path / "a.npz", {"w": x})
    header, fp4, plain = str(bt.study(tmp_path / "a.npz", ["float32@none", "float4_e2m1fn@none"])).splitlines()
    assert header.split() == ["format", "bits", "SQNR", "median", "least", "worst", "tensor"]
    sqnr = 10 * math.log10(float((x.astype(float) ** 2).sum()) / 0.25**2)  # 1.75, a tie, becomes 2
    assert fp4.split() == ["float4_e2m1fn@none", "*", "4.000", *[f"{sqnr:.1f}"] * 3, "w"]
    assert plain.split() == ["float32@none", "*", "32.000", "inf", "inf", "inf", "w"]
    assert header.index("SQNR") + 4 == fp4.index(f"{sqnr:.1f}") + len(f"{sqnr:.1f}")
