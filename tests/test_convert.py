"""Checkpoint conversion: the codes are encode's, the figures are right, memory is bounded, output is all or nothing."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import textwrap
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import bittrue as bt
from bittrue import Array, Rounding, Rule, exact
from bittrue.cluster import Place
from bittrue.convert import TensorReport, overflow_limits
from bittrue.convert import convert as convert_file
from bittrue.files import ExistingFileError, FileError, load, open_tensors, save
from bittrue.formats import FloatFormat, IntFormat, TaperedFormat, floor_log2

PACKAGE, WORK = sys.modules["bittrue.convert"], sys.modules["bittrue.convert.work"]
TARGETS = [f for f in bt.formats() if f.kind not in ("complex",)]
OWN = bt.FloatFormat("mine_e4m4", exponent_bits=4, mantissa_bits=4, bias=9, inf=False, nan="none")
SOURCES = [f for f in bt.formats() if f.kind in ("float", "tapered")] + [OWN]
DIRECTED = [r for r in Rounding if r not in (Rounding.stochastic, Rounding.hybrid)]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make ordinary test arrays span several chunks and pieces, with rests."""
    monkeypatch.setattr(WORK, "_CHUNK", 160)
    monkeypatch.setattr(WORK, "_PIECE", 64)
    monkeypatch.setattr(PACKAGE, "_COPY", 64)


def weights(seed: int = 0, count: int = 500) -> np.ndarray:
    """Values over many binades, with everything that is special, as 25 columns."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(count) * 2.0 ** rng.integers(-30, 30, count)).astype(np.float32)
    x[:8] = [0, -0.0, np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 1e-45]
    rng.shuffle(x)
    return x.reshape(-1, 25)


def codes(a: Array) -> np.ndarray:
    return a.codes.view(a.format.code_dtype)


def one(reports: list[TensorReport]) -> TensorReport:
    assert len(reports) == 1
    return reports[0]


def expected_figures(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """SQNR, largest absolute and relative error of float64 values, written down once more."""
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    error = np.abs(x - y)
    signal, noise = math.fsum(x * x), math.fsum(error * error)
    sqnr = math.inf if noise == 0 else 10 * math.log10(signal / noise) if signal else -math.inf
    relative = error[x != 0] / np.abs(x[x != 0])
    return sqnr, float(error.max(initial=0)), float(relative.max(initial=0))


# --- codes and figures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [*TARGETS, OWN], ids=str)
def test_codes_and_figures_from_float32(tmp_path: Path, target: bt.Format) -> None:
    x = weights()
    save(tmp_path / "in.safetensors", {"w": x})
    report = one(convert_file(tmp_path / "in.safetensors", tmp_path / "out.safetensors", target))
    out = load(tmp_path / "out.safetensors")["w"]
    assert out.format == target and out.shape == x.shape
    assert (codes(out) == codes(Array(bt.encode(x, target), target))).all()

    y = bt.decode(out.codes, target, np.float64)
    x64 = x.astype(np.float64)
    sqnr, max_abs, max_rel = expected_figures(x64, y)
    assert report.converted and (report.source, report.target) == ("float32", target.name)
    assert report.sqnr_db == pytest.approx(sqnr, rel=1e-9, abs=1e-9)
    assert report.max_abs_error == pytest.approx(max_abs, rel=1e-12)
    assert report.max_rel_error == pytest.approx(max_rel, rel=1e-12)
    assert (report.nan, report.infinite) == (1, 2)
    finite = np.isfinite(x)
    beyond = np.array([math.isfinite(v) and overflows(v, target, Rule()) for v in x.ravel().tolist()]).reshape(x.shape)
    assert report.flushed_to_zero == int(((y == 0) & (x != 0) & finite & ~beyond).sum())
    assert report.overflowed == int(beyond.sum())
    assert (report.elements, report.bytes_before, report.bytes_after) == (500, 2000, out.nbytes)


@pytest.mark.parametrize("source", SOURCES, ids=str)
@pytest.mark.parametrize("target", ["float4_e2m1fn", "hifloat8", "int8", "float64"])
def test_every_floating_source(tmp_path: Path, source: bt.Format, target: str) -> None:
    rng = np.random.default_rng(1)
    if source.bits <= 16:
        made = rng.integers(0, 1 << source.bits, 400).astype(source.storage)
    else:
        made = bt.encode(weights(count=400).reshape(-1), source, overflow="infinity")
    save(tmp_path / "in.npz", {"w": Array(made, source)})
    report = one(convert_file(tmp_path / "in.npz", tmp_path / "out.npz", target))
    out = load(tmp_path / "out.npz")["w"]
    f = bt.format(target)
    values = [exact.decode(int(c), source) for c in made.view(source.code_dtype)]
    wanted = [exact.encode(v, f, Rule(), source=source) for v in values]
    assert codes(out).tolist() == wanted
    x = np.array([float(v) for v in values])
    y = np.array([float(exact.decode(c, f)) for c in wanted])
    figures = report.sqnr_db, report.max_abs_error, report.max_rel_error
    assert figures == pytest.approx(expected_figures(x, y), rel=1e-9, abs=1e-9)
    assert report.nan == int(np.isnan(x).sum()) and report.infinite == int(np.isinf(x).sum())


def overflows(value: float, target: bt.Format, rule: Rule) -> bool:
    """Ask the specification whether a finite value rounds beyond the range."""
    if value == 0 or target.kind == "bool":
        return False
    raising = Rule(rule.rounding, "raise", negative=rule.negative, flush_outputs=rule.flush_outputs)
    try:
        exact.encode(value, target, raising)
    except OverflowError:
        return True
    return False


def boundaries(target: bt.Format) -> list[float]:
    """Floats about the largest and the lowest value, the next ones that the format lacks, and the middle between."""
    exact_values: list[Fraction] = []
    for edge in {target.max, target.min}:
        if isinstance(target, IntFormat):
            step = Fraction(1)
        else:
            assert isinstance(target, (FloatFormat, TaperedFormat))
            top = abs(edge) if edge else target.min_subnormal
            step = Fraction(2) ** target.quantum_exponent(floor_log2(top))
        for quarters in range(-6, 7):
            exact_values.append(edge + step * quarters / 4)
    found = set()
    for v in exact_values:
        if abs(v) <= Fraction(sys.float_info.max):
            near = float(v)
            found |= {near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf)}
    return sorted(v for v in found if v and math.isfinite(v))


@pytest.mark.parametrize("target", [*TARGETS, OWN, bt.p3109(6, 3, signed=False), bt.p3109(8, 1)], ids=str)
def test_overflow_limits_agree_with_the_specification(target: bt.Format) -> None:
    if target.kind == "bool":
        assert overflow_limits(target, Rule(), bt.format("float64")) == (-math.inf, math.inf)
        return
    for rounding in DIRECTED:
        for negative in ("overflow", "magnitude"):
            for flush in (False, True):
                if isinstance(target, IntFormat) and (flush or negative == "magnitude"):
                    continue
                rule = Rule(rounding, negative=negative, flush_outputs=flush)
                low, high = overflow_limits(target, rule, bt.format("float64"))
                for value in boundaries(target):
                    inside = low < value < high
                    assert inside != overflows(value, target, rule), (value, rule)


def test_stochastic_and_hybrid_count_certain_overflow() -> None:
    for rounding, target, high in (("stochastic", "float8_e4m3fn", 480), ("hybrid", "hifloat8", 49152)):
        assert overflow_limits(bt.format(target), Rule(rounding), bt.format("float32")) == (-high, high)


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64], ids=lambda d: np.dtype(d).name
)
def test_stochastic_rounding_does_not_depend_on_chunks(tmp_path: Path, dtype: type) -> None:
    x = np.linspace(-3, 3, 500).astype(dtype)
    rule = Rule("stochastic", seed=7)
    save(tmp_path / "in.npy", x)
    convert_file(tmp_path / "in.npy", tmp_path / "out.npy", "float8_e4m3fn", rule=rule)
    assert (load(tmp_path / "out.npy").codes == bt.encode(x, "float8_e4m3fn", rule=rule)).all()


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float8_e5m2", "hifloat8"])
def test_flushing_inputs_means_the_sources_subnormals(tmp_path: Path, source: str) -> None:
    f, rule = bt.format(source), Rule(flush_inputs=True)
    made = np.arange(256).astype(f.storage)
    save(tmp_path / "in.npz", {"w": Array(made, f)})
    convert_file(tmp_path / "in.npz", tmp_path / "out.npz", "float32", rule=rule)
    out = load(tmp_path / "out.npz")["w"]
    wanted = [exact.encode(exact.decode(int(c), f), "float32", rule, source=f) for c in made]
    assert codes(out).tolist() == wanted


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(tmp_path: Path, threads: int) -> None:
    save(tmp_path / "in.npz", {"w": weights(), "v": weights(5).reshape(-1)[:33]})
    reports = []
    for count in (None, np.int64(threads)):
        reports.append(convert_file(tmp_path / "in.npz", tmp_path / f"{count}.npz", "hifloat8", threads=count))
    assert reports[0] == reports[1]
    assert (tmp_path / "None.npz").read_bytes() == (tmp_path / f"{threads}.npz").read_bytes()


def test_figures_of_simple_cases(tmp_path: Path) -> None:
    save(
        tmp_path / "in.npz",
        {
            "exact": np.float32([1, -2, 0.5]),
            "empty": np.zeros((0, 3), np.float32),
            "zeros": np.zeros(3, np.float32),
            "scalar": np.float32(1.03125),
            "clipped": np.float32([1000, 448, -464, -465, np.inf]),
        },
    )
    reports = {r.name: r for r in convert_file(tmp_path / "in.npz", tmp_path / "out.npz", "float8_e4m3fn")}
    for name in ("exact", "empty", "zeros"):
        assert (reports[name].sqnr_db, reports[name].max_abs_error, reports[name].overflowed) == (math.inf, 0, 0)
    scalar = reports["scalar"]
    assert (scalar.shape, scalar.max_abs_error, scalar.sqnr_db) == ((), 0.03125, pytest.approx(20 * math.log10(33)))
    clipped = reports["clipped"]
    assert (clipped.overflowed, clipped.infinite, clipped.max_abs_error) == (2, 1, 552)
    assert clipped.max_rel_error == 0.552
    zero = Array(np.zeros(3, np.uint8), "hifloat8")
    save(tmp_path / "zero.npy", zero)
    report = one(convert_file(tmp_path / "zero.npy", tmp_path / "e8m0.npy", "float8_e8m0fnu"))
    assert report.sqnr_db == -math.inf and report.max_rel_error == 0


# --- which tensors, which containers ----------------------------------------------------------------------------------


def checkpoint(path: Path) -> dict:
    arrays = {
        "model.layer.0.weight": weights(),
        "model.layer.1.weight": np.clip(weights(2)[:7], -6e4, 6e4).astype(np.float16),
        "model.norm": np.ones(5, ml_dtypes.bfloat16),
        "steps": np.arange(300, dtype=np.int64),
        "mask": np.array([True, False]),
        "packed": Array(np.arange(7, dtype=np.uint8), "uint4"),
        "phase": np.ones(3, np.complex64),
        "none": np.zeros((0, 4), np.int8),
    }
    save(path, arrays, metadata={"format": "pt", "note": "kept"} if path.suffix == ".safetensors" else None)
    return arrays


def test_other_tensors_are_copied(tmp_path: Path) -> None:
    checkpoint(tmp_path / "in.safetensors")
    before = load(tmp_path / "in.safetensors")
    reports = convert_file(tmp_path / "in.safetensors", tmp_path / "out.safetensors", "float8_e5m2")
    after = load(tmp_path / "out.safetensors")
    with open_tensors(tmp_path / "in.safetensors") as reader:
        assert [r.name for r in reports] == reader.names
    converted = {r.name for r in reports if r.converted}
    assert converted == {"model.layer.0.weight", "model.layer.1.weight", "model.norm"}
    for report in reports:
        was, now = before[report.name], after[report.name]
        assert (report.source, report.target) == (was.format.name, now.format.name)
        assert (report.bytes_before, report.bytes_after) == (was.nbytes, now.nbytes)
        if not report.converted:
            assert was.format == now.format and was.shape == now.shape and was.tobytes() == now.tobytes()
            assert report.sqnr_db is report.nan is report.overflowed is report.max_rel_error is None
    with open_tensors(tmp_path / "out.safetensors") as reader:
        assert reader.metadata == {"format": "pt", "note": "kept"}


@pytest.mark.parametrize(
    ("include", "exclude", "wanted"),
    [
        ("*.weight", None, {"model.layer.0.weight", "model.layer.1.weight"}),
        (["*.0.*", "*norm"], None, {"model.layer.0.weight", "model.norm"}),
        (None, "*.weight", {"model.norm"}),
        ("model.*", ["*norm", "*.[1-9].*"], {"model.layer.0.weight"}),
        ("steps", None, set()),
    ],
)
def test_include_and_exclude(tmp_path: Path, include: object, exclude: object, wanted: set) -> None:
    checkpoint(tmp_path / "in.npz")
    reports = convert_file(tmp_path / "in.npz", tmp_path / "out.npz", "bfloat16", include=include, exclude=exclude)
    assert {r.name for r in reports if r.converted} == wanted


@pytest.mark.parametrize("argument", ["include", "exclude"])
def test_a_pattern_that_matches_nothing(tmp_path: Path, argument: str) -> None:
    checkpoint(tmp_path / "in.npz")
    with pytest.raises(ValueError, match=rf"{argument}='\*\.wieght' matches no tensor of .*in\.npz \(model\.layer"):
        convert_file(tmp_path / "in.npz", tmp_path / "out.npz", "bfloat16", **{argument: "*.wieght"})
    assert not (tmp_path / "out.npz").exists()


def test_progress_counts_every_element_once(tmp_path: Path) -> None:
    arrays = checkpoint(tmp_path / "in.safetensors")
    calls: list[tuple[str, int, int]] = []
    convert_file(
        tmp_path / "in.safetensors", tmp_path / "out.safetensors", "int4", progress=lambda *call: calls.append(call)
    )
    total = sum(int(np.prod(a.shape)) for a in arrays.values())
    assert {c[2] for c in calls} == {total} and calls[-1][1] == total
    done = [c[1] for c in calls]
    assert done == sorted(done) and len([c for c in calls if c[0] == "model.layer.0.weight"]) == 4


@pytest.mark.parametrize("source", [".npy", ".npz", ".safetensors", ".bin"])
@pytest.mark.parametrize("target", [".npy", ".npz", ".safetensors", ".bin"])
def test_any_container_to_any(tmp_path: Path, source: str, target: str) -> None:
    x = weights()
    save(tmp_path / f"x{source}", {"x": x})
    raw = {"source_format": "float32", "source_shape": x.shape} if source == ".bin" else {}
    convert_file(tmp_path / f"x{source}", tmp_path / f"y{target}", "float4_e2m1fn", **raw)
    raw = {"format": "float4_e2m1fn", "shape": x.shape} if target == ".bin" else {}
    out = load(tmp_path / f"y{target}", **raw)
    out = out["x"] if isinstance(out, dict) else out
    assert out.shape == x.shape and (out.codes == bt.encode(x, "float4_e2m1fn")).all()


def test_big_endian_fortran_npy(tmp_path: Path) -> None:
    x = weights()
    np.save(tmp_path / "x.npy", np.asfortranarray(x).astype(">f4"))
    convert_file(tmp_path / "x.npy", tmp_path / "y.npy", "hifloat8")
    assert (load(tmp_path / "y.npy").codes == bt.encode(x, "hifloat8")).all()


def test_several_tensors_do_not_fit_one_npy(tmp_path: Path) -> None:
    checkpoint(tmp_path / "in.npz")
    with pytest.raises(ValueError, match="holds exactly one array, not 8"):
        convert_file(tmp_path / "in.npz", tmp_path / "out.npy", "int8")


# --- all or nothing ---------------------------------------------------------------------------------------------------


def test_raising_rules_name_the_tensor(tmp_path: Path) -> None:
    x = np.ones(400, np.float32)
    x[333] = 1e9
    save(tmp_path / "in.npz", {"good": np.ones(3, np.float32), "bad": x})
    with pytest.raises(OverflowError, match=r"tensor 'bad', from element 320: x\[13\].* is beyond the range"):
        convert_file(tmp_path / "in.npz", tmp_path / "out.npz", "float8_e4m3fn", rule=Rule(overflow="raise"))
    x[333] = np.nan
    save(tmp_path / "in.npz", {"bad": x}, force=True)
    with pytest.raises(ValueError, match=r"tensor 'bad', from element 320: .* NaN"):
        convert_file(tmp_path / "in.npz", tmp_path / "out.npz", "float8_e4m3fn", rule=Rule(nan="raise"))
    assert [p.name for p in tmp_path.iterdir()] == ["in.npz"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("container", [".npy", ".npz", ".safetensors", ".bin"])
def test_an_interrupted_conversion_leaves_nothing(tmp_path: Path, error: type, container: str) -> None:
    save(tmp_path / "in.npy", weights())

    def interrupt(name: str, done: int, total: int) -> None:
        if done > 200:
            raise error

    with pytest.raises(error):
        convert_file(tmp_path / "in.npy", tmp_path / f"out{container}", "int8", progress=interrupt)
    assert [p.name for p in tmp_path.iterdir()] == ["in.npy"]


def test_existing_output_and_conversion_in_place(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save(path, {"x": weights()})
    before = path.read_bytes()
    with pytest.raises(ExistingFileError):
        convert_file(path, path, "int8")
    assert path.read_bytes() == before
    convert_file(path, path, "int8", force=True)
    assert load(path)["x"].format.name == "int8" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("format", "rule", "message"),
    [
        ("float9", None, "format 'float9' is not known"),
        ("complex64", None, "real tensors do not become complex"),
        ("bfloat16", Rule(overflow="wrap"), "overflow='wrap' is defined for integer formats only"),
        ("int8", Rule("hybrid"), "rounding='hybrid' is defined for hifloat8 only"),
    ],
)
def test_unsuitable_targets(tmp_path: Path, format: str, rule: Rule | None, message: str) -> None:
    save(tmp_path / "in.npy", weights())
    with pytest.raises(ValueError, match=message):
        convert_file(tmp_path / "in.npy", tmp_path / "out.npy", format, rule=rule)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_unsuitable_threads(tmp_path: Path, threads: object) -> None:
    save(tmp_path / "in.npy", weights())
    with pytest.raises(ValueError, match=r"threads=.* must be a positive integer"):
        convert_file(tmp_path / "in.npy", tmp_path / "out.npy", "int8", threads=threads)


def test_rules_and_axes_that_are_none(tmp_path: Path) -> None:
    save(tmp_path / "in.npy", weights())
    with pytest.raises(TypeError, match=r"rule='floor' must be a bittrue\.Rule"):
        convert_file(tmp_path / "in.npy", tmp_path / "out.npy", "int8", rule="floor")  # type: ignore[arg-type]
    for axis in (0.5, "0", True):
        with pytest.raises(ValueError, match=r"axis=.* must be an integer"):
            convert_file(tmp_path / "in.npy", tmp_path / "out.npy", "mx9", axis=axis)  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_FSIZE")
def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    save(tmp_path / "in.npy", np.zeros(1_000_000, np.float32))
    code = f"""
        import resource, bittrue as bt
        from bittrue.convert import convert
        bt.encode([1.0], "int8"), bt.decode([1], "int8")
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            convert({str(tmp_path / "in.npy")!r}, {str(tmp_path / "out.npy")!r}, "int8")
        except bt.FileError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert "out.npy: no space left to write it" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["in.npy"]


# --- sources in blocks ------------------------------------------------------------------------------------------------

SHAPES = [((500,), 0), ((9, 33), 1), ((9, 33), 0), ((4, 96), -1), ((3, 50, 5), 1), ((3, 64, 2), 0), ((2, 40, 1), 1)]


def random_blocks(fmt: bt.BlockFormat, shape: tuple[int, ...], axis: int, seed: int = 0) -> bt.BlockArray:
    """Blocks of any codes, among them the largest exponents, NaN blocks and the lowest code, but no reserved ones."""
    rng = np.random.default_rng(seed)
    image = bt.encode(np.zeros(shape, np.float32), fmt, axis=axis).shape
    data = rng.integers(0, 256, image, np.uint8)
    heads = data.reshape(-1, fmt.block_bytes)[:, 0]
    heads[:] = rng.integers(100, 140, heads.size)
    heads[rng.random(heads.size) < 0.2] = 254
    if fmt.name == "nvfp4":
        heads &= 0x7F  # with a sign they would be reserved
    elif fmt.has_nan:
        heads[0] = 255
    return bt.BlockArray(data, fmt, shape, axis)


def exactly(a: bt.BlockArray) -> np.ndarray:
    """Return the values as the decoder gives them for the whole array, in float64."""
    keep = tuple(slice(n) for n in a.shape)
    return bt.decode(a.codes, a.format, np.float64, axis=a.axis)[keep]


@pytest.mark.parametrize(
    ("source", "shape", "axis"),
    [(f, *SHAPES[i % len(SHAPES)]) for i, f in enumerate(bt.formats("block"))]
    + [(bt.format("mxfp4"), *each) for each in SHAPES],
    ids=str,
)
def test_blocks_become_values_with_one_rounding(
    tmp_path: Path, source: bt.BlockFormat, shape: tuple[int, ...], axis: int
) -> None:
    a = random_blocks(source, shape, axis)
    values = exactly(a)
    save(tmp_path / "in.safetensors", {"w": a})
    for target in ("float32", "bfloat16", "float4_e2m1fn"):
        report = one(convert_file(tmp_path / "in.safetensors", tmp_path / "out.safetensors", target, force=True))
        out, f = load(tmp_path / "out.safetensors")["w"], bt.format(target)
        assert out.shape == shape and codes(out).ravel().tolist() == [
            exact.encode(v, f, Rule()) for v in values.ravel().tolist()
        ]
        y = np.array([float(exact.decode(c, f)) for c in codes(out).ravel().tolist()]).reshape(shape)
        figures = report.sqnr_db, report.max_abs_error, report.max_rel_error
        assert figures == pytest.approx(expected_figures(values, y), rel=1e-9, abs=1e-9)
        beyond = np.array([math.isfinite(v) and overflows(v, f, Rule()) for v in values.ravel().tolist()])
        lost = (y == 0) & (values != 0) & np.isfinite(values) & ~beyond.reshape(shape)
        counts = int(beyond.sum()), int(lost.sum()), int(np.isnan(values).sum()), int(np.isinf(values).sum())
        assert (report.overflowed, report.flushed_to_zero, report.nan, report.infinite) == counts
        assert (report.converted, report.source, report.bytes_before) == (True, source.name, a.nbytes)


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("source", ["mx9", "mxfp4", "nvfp4"])
@pytest.mark.parametrize("target", ["mx6", "mxfp8_e4m3"])
def test_blocks_become_blocks_along_their_axis(
    tmp_path: Path, source: str, target: str, shape: tuple[int, ...], axis: int
) -> None:
    x = np.nan_to_num(weights(3, 750), posinf=1, neginf=1).reshape(-1)[: math.prod(shape)].reshape(shape)
    a = bt.array(x, source, axis=axis)
    values = exactly(a)
    save(tmp_path / "in.npz", {"w": a})
    for wanted in (None, 0):
        report = one(convert_file(tmp_path / "in.npz", tmp_path / "out.npz", target, axis=wanted, force=True))
        out = load(tmp_path / "out.npz")["w"]
        along = a.axis if wanted is None else wanted
        assert (out.format.name, out.shape, out.axis) == (target, shape, along)
        assert out.tobytes() == bt.encode(values, target, axis=along).tobytes()
        sqnr, largest, _ = expected_figures(values, exactly(out))
        assert (report.sqnr_db, report.max_abs_error) == (pytest.approx(sqnr), pytest.approx(largest))


def test_values_beyond_float32_are_rounded_from_what_they_are(tmp_path: Path) -> None:
    """The lowest code of MXINT8 under the largest scale is -2**128; of MXFP4, 6 * 2**127."""
    lowest = bt.BlockArray(np.uint8([254] + [0x80] * 32), "mxint8")
    largest = bt.BlockArray(np.uint8([254] + [0x77] * 16), "mxfp4")
    save(tmp_path / "in.npz", {"a": lowest, "b": largest})
    convert_file(tmp_path / "in.npz", tmp_path / "out.npz", "float64")
    out = load(tmp_path / "out.npz")
    assert (np.asarray(out["a"]) == -(2.0**128)).all() and (np.asarray(out["b"]) == 6 * 2.0**127).all()
    reports = convert_file(tmp_path / "in.npz", tmp_path / "out.npz", "float32", force=True)
    assert [(r.overflowed, r.infinite) for r in reports] == [(32, 0), (32, 0)]
    assert (np.asarray(load(tmp_path / "out.npz")["a"]) == -np.finfo(np.float32).max).all()


def test_blocks_of_the_format_are_copied(tmp_path: Path) -> None:
    arrays = {"same": random_blocks(bt.format("mx9"), (4, 40), 1), "plain": np.ones((4, 40), np.float32)}
    arrays["along"] = bt.array(arrays["plain"], "mx9", axis=0)
    save(tmp_path / "in.npz", arrays)
    for axis, copied in ((None, {"same", "along"}), (1, {"same"}), (-2, {"along"}), (2, {"same", "along", "plain"})):
        reports = convert_file(tmp_path / "in.npz", tmp_path / "out.npz", "mx9", axis=axis, force=True)
        assert {r.name for r in reports if not r.converted} == copied
        assert load(tmp_path / "out.npz")["same"].tobytes() == arrays["same"].tobytes() or axis == -2


@pytest.mark.parametrize("rule", [Rule("stochastic", seed=5), Rule(flush_inputs=True), Rule("floor", "infinity")])
def test_rules_for_blocks(tmp_path: Path, rule: Rule) -> None:
    """Blocks have no subnormal values: of `flush_inputs` nothing is left to do."""
    a = random_blocks(bt.format("mxint8"), (3, 70, 5), 1)
    a.codes.reshape(-1, 33)[::3, 0] = 0  # far below float32's normal values
    save(tmp_path / "in.npz", {"w": a})
    convert_file(tmp_path / "in.npz", tmp_path / "out.npz", "float32", rule=rule, threads=3)
    values = exactly(a)
    wanted = bt.encode(values, "float32", rule=rule)
    assert (load(tmp_path / "out.npz")["w"].codes == wanted).all()


def test_reserved_codes_in_blocks_name_the_tensor(tmp_path: Path) -> None:
    data = np.zeros((20, 9), np.uint8)
    data[17, 0] = 0x81
    save(tmp_path / "in.npz", {"bad": bt.BlockArray(data, "nvfp4")})
    for target in ("float32", "mx9"):
        for axis in (None, 0):
            with pytest.raises(ValueError, match=r"tensor 'bad', from element \d+: .*scale"):
                convert_file(tmp_path / "in.npz", tmp_path / "out.npz", target, axis=axis)
    assert [p.name for p in tmp_path.iterdir()] == ["in.npz"]


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("target", ["float4_e2m1fn", "mxfp8_e4m3"])
def test_parts_for_workers_are_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, shape: tuple[int, ...], axis: int
) -> None:
    monkeypatch.setattr(WORK, "_PART", 256)
    a = random_blocks(bt.format("nvfp4"), (4 * shape[0], *shape[1:]), axis)
    save(tmp_path / "in.npy", a)
    convert_file(tmp_path / "in.npy", tmp_path / "out.npy", target)
    place, f = Place.of(str(tmp_path / "in.npy")), bt.format(target)
    conversion = WORK.Conversion(f, f.rule if isinstance(f, bt.BlockFormat) else Rule())
    with place.open() as reader:
        parts = conversion.parts(reader["in"])
    made = [WORK.convert_part(place, "in", conversion, *part) for part in parts]
    assert sum(piece.elements for piece in made) == a.size and (len(parts) > 1 or axis == 0 or a.size < 600)
    image = b"".join(image.tobytes() for piece in made for image in piece.images)
    assert image == load(tmp_path / "out.npy").tobytes()


# --- sharded checkpoints ----------------------------------------------------------------------------------------------


def sharded(folder: Path) -> Path:
    folder.mkdir()
    one, two = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    save(folder / one, {"a": weights(), "ids": np.arange(9)}, metadata={"format": "pt"})
    save(folder / two, {"b": weights(3)[:3]}, metadata={"format": "pt"})
    index = {"metadata": {"total_size": 2372, "total_parameters": 575}, "weight_map": {"a": one, "b": two, "ids": one}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder / "model.safetensors.index.json"


@pytest.mark.parametrize("target", ["out", "out/model.safetensors.index.json", "out/other.safetensors.index.json"])
@pytest.mark.parametrize("exists", [False, True])
def test_sharded_to_sharded(tmp_path: Path, target: str, exists: bool) -> None:
    source = sharded(tmp_path / "in")
    if exists:
        (tmp_path / "out").mkdir()
    reports = convert_file(source, tmp_path / target, "hifloat8", include="[ab]")
    assert [(r.name, r.converted) for r in reports] == [("ids", False), ("a", True), ("b", True)]
    index = tmp_path / (target if target.endswith("json") else f"{target}/model.safetensors.index.json")
    about = json.loads(index.read_text())
    assert about["metadata"] == {"total_size": 500 + 75 + 72, "total_parameters": 575}
    assert about["weight_map"] == json.loads(source.read_text())["weight_map"]
    out = load(index)
    assert (out["a"].codes == bt.encode(weights(), "hifloat8")).all()
    assert (out["b"].codes == bt.encode(weights(3)[:3], "hifloat8")).all()
    assert (np.asarray(out["ids"]) == np.arange(9)).all()
    assert len(list((tmp_path / "out").iterdir())) == 3
    with open_tensors(index) as reader:
        assert reader.metadata == {"format": "pt"}


@pytest.mark.parametrize("target", ["one.safetensors", "one.npz"])
def test_sharded_to_one_file(tmp_path: Path, target: str) -> None:
    convert_file(sharded(tmp_path / "in"), tmp_path / target, "int8")
    out = load(tmp_path / target)
    assert (
        set(out) == {"a", "b", "ids"} and (codes(out["a"]) == codes(Array(bt.encode(weights(), "int8"), "int8"))).all()
    )


def fails(call: Callable[[], object], error: type[BaseException], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_sharded_output_is_all_or_nothing(tmp_path: Path) -> None:
    source = sharded(tmp_path / "in")
    before = {p.name: p.read_bytes() for p in source.parent.iterdir()}

    def interrupt(name: str, done: int, total: int) -> None:
        if name == "b":
            raise KeyboardInterrupt

    out = tmp_path / "deep" / "out"
    fails(lambda: convert_file(source, out, "int8", progress=interrupt), KeyboardInterrupt, "^$")
    assert not out.parent.exists()
    fails(lambda: convert_file(source, tmp_path / "new" / ("x" * 300), "int8"), FileError, "cannot be made a folder")
    assert not (tmp_path / "new").exists()
    fails(lambda: convert_file(source, source.parent, "int8", force=True), FileError, "is part of the source")
    fails(lambda: convert_file(source, tmp_path / "x.npy", "int8"), ValueError, "needs a folder, an index")
    fails(
        lambda: convert_file(
            tmp_path / "in" / "model-00001-of-00002.safetensors", tmp_path / "y.safetensors.index.json", "int8"
        ),
        ValueError,
        "only a sharded source has an index",
    )

    out = tmp_path / "other"
    out.mkdir()
    (out / "model-00002-of-00002.safetensors").write_bytes(b"precious")
    fails(
        lambda: convert_file(source, out, "int8"), ExistingFileError, "model-00002-of-00002.safetensors: exists already"
    )
    assert [p.read_bytes() for p in out.iterdir()] == [b"precious"]
    convert_file(source, out, "int8", force=True)
    assert load(out / source.name)["b"].format.name == "int8"
    assert {p.name: p.read_bytes() for p in source.parent.iterdir()} == before


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/status is Linux's")
@pytest.mark.parametrize("target", ["float8_e4m3fn", "float4_e2m1fn"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, target: str) -> None:
    """A 300 MB file costs little more memory than a 16 MB one."""
    for name, count in (("small", 1 << 22), ("large", 75 << 20)):
        text = json.dumps({"w": {"dtype": "F32", "shape": [count], "data_offsets": [0, 4 * count]}}).encode()
        with open(tmp_path / f"{name}.safetensors", "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + 4 * count)
    code = f"""
        from bittrue.convert import convert
        peaks = []
        for name in ("small", "large"):
            path = {str(tmp_path)!r} + "/" + name
            convert(path + ".safetensors", path + "-out.safetensors", {target!r}, threads=2)
            # not ru_maxrss: that starts with the peak of the process this one was forked from
            peaks += [int(line.split()[1]) / 1024 for line in open("/proc/self/status") if "VmHWM" in line]
        print(*peaks)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    small, large = map(float, done.stdout.split())
    assert large < 400 and large - small < 64


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/status is Linux's")
@pytest.mark.parametrize("target", ["bfloat16", "mx4"])
def test_memory_does_not_grow_with_blocks(tmp_path: Path, target: str) -> None:
    """16 million values in blocks along the middle axis cost little more memory than 2 million."""
    code = f"""
        import numpy as np, bittrue as bt
        from bittrue.files import TensorInfo
        peaks = []
        for name, count in (("small", 1), ("large", 8)):
            path, info = {str(tmp_path)!r} + "/" + name, TensorInfo("w", bt.format("mxfp4"), (count, 1000, 2048), 1)
            with bt.Writer(path + ".npy", [info]) as writer:
                for _ in range(count):
                    writer.write("w", np.full((2048, 32 * 17), 127, np.uint8))
            bt.convert(path + ".npy", path + "-out.npy", {target!r}, threads=2)
            peaks += [int(line.split()[1]) / 1024 for line in open("/proc/self/status") if "VmHWM" in line]
        print(*peaks)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    small, large = map(float, done.stdout.split())
    assert large < 400 and large - small < 32
