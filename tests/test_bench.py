"""The benchmark's own arithmetic, and that every row runs; no test looks at how fast anything is."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from bittrue import bench
from bittrue.bench import codec, measure, process
from bittrue.cli import main

TINY = bench.Settings(size=64, repeat=2, file_bytes=1 << 18, warm_up=0.0)


class Clock:
    """A clock that goes on only where a job takes its time, and what ran."""

    def __init__(self, monkeypatch):
        self.calls, self.now = [], 0.0
        monkeypatch.setattr(measure, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def job(self, name, seconds):
        """Return a job that takes so long."""

        def run():
            self.calls.append(name)
            self.now += seconds

        return run


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_jobs_run_in_turns(clock):
    times = measure.in_turns({name: clock.job(name, 1) for name in "abc"}, 3)
    calls = clock.calls
    assert "".join(calls) == "abc" * 2 + "abc" + "bca" + "cab"
    assert {name: len(seconds) for name, seconds in times.items()} == {"a": 3, "b": 3, "c": 3}


def test_slow_jobs_take_their_turns_after_the_quick_ones(clock):
    times = measure.in_turns({"s": clock.job("s", 50), "q": clock.job("q", 1), "t": clock.job("t", 50)}, 2, 10)
    calls = clock.calls
    assert "".join(calls).replace("q", "") == "st" * 2 + "stts"
    assert "".join(calls[6:]) == "q" * 12 + "stts"  # for 10 seconds to warm up, and two rounds
    assert {name: len(seconds) for name, seconds in times.items()} == {"s": 2, "q": 2, "t": 2}


def test_figures_are_medians_and_ratios_are_taken_within_each_round(monkeypatch):
    monkeypatch.setattr(measure, "usable_cpus", lambda: 2)
    seconds = {"limit": [1.0, 2.0, 4.0], "one": [2.0, 4.0, 5.0], "two": [1.0, 1.0, 1.0], "peer": [20.0, 40.0, 10.0]}
    monkeypatch.setattr(measure, "in_turns", lambda jobs, repeat, warm_up: {name: seconds[name] for name in jobs})
    case = bench.Case(8_000_000, lambda threads: None, lambda: None, {"peer": lambda: None})
    figures = bench.throughput("g", "n", lambda size: case).measure(TINY)
    assert figures == {
        "limit": 4.0,
        "one": 2.0,
        "two": 8.0,
        "peer": 0.4,
        "share_one": 0.5,
        "share_two": 2.0,
        "times peer": 10.0,
    }


def test_goals_are_met_from_above_or_below():
    goals = {"share_one": 0.5, "one": 10.0, "seconds": 0.4, "megabytes": 400.0, "times torch": 1.0}
    figures = {"share_one": 0.5, "one": 9.0, "seconds": 0.3, "megabytes": 401.0}
    result = bench.Result(bench.Row("g", "n", lambda settings: figures, goals), figures)
    assert result.verdicts == {"share_one": True, "one": False, "seconds": True, "megabytes": False}


def test_rows_are_chosen_by_text_or_pattern():
    every = bench.collect()
    assert len(every) == len({(row.group, row.name) for row in every})
    assert {row.group for row in bench.collect("start-up")} == {"start-up"}
    assert {row.name for row in bench.collect("*hifloat8")} >= {"hifloat8", "float64 -> hifloat8"}
    with pytest.raises(ValueError, match="matches no row"):
        bench.collect("no such row")


def test_the_goals_of_issue_2_are_in_the_rows():
    rows = {(row.group, row.name): row.goals for row in bench.collect()}
    assert rows["float32 to", "float8_e4m3fn"]["share_one"] == 0.55
    assert rows["float32 to", "hifloat8"]["share_two"] == 0.65
    assert all(
        rows["float32 to float8_e4m3fn, every mode", m.value]["share_two"] == 0.85 for m in codec.Rounding
        if m.value not in ("stochastic", "hybrid")
    )
    assert rows["stochastic rounding", "hifloat8"] == {"one": 300.0}
    assert rows["start-up", "import bittrue"] == {"seconds": 0.25}


@pytest.mark.parametrize("row", codec.rows(), ids=lambda row: f"{row.group}: {row.name}".replace(" ", "_"))
def test_every_codec_row_runs(row):
    result = next(bench.run([row], TINY))
    assert result.figures["one"] > 0
    assert {"share_one", "times ml_dtypes"} & set(result.figures) or "one" in row.goals


def test_the_rows_about_processes_run():
    rows = {row.name: row for row in process.rows()}
    settings = bench.Settings(repeat=1, file_bytes=1 << 18)
    assert 0 < rows["import bittrue"].measure(settings)["seconds"] < 60
    figures = rows["hifloat8"].measure(settings)
    assert 20 < figures["megabytes"] < 4000 and figures["MB/s"] > 0


def test_a_failing_child_is_reported():
    with pytest.raises(RuntimeError, match="boom"):
        process._child("raise SystemExit('boom')")


def test_settings_are_checked():
    with pytest.raises(ValueError, match="size=0"):
        bench.Settings(size=0)


@pytest.mark.parametrize("form", [[], ["--markdown"], ["--json"], ["--list"]])
def test_the_command_prints_every_form(capsys, monkeypatch, form):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["bench", "--only", "float32 to: float8_*", "--size", "2^8", "--repeat", "1", *form]) == 0
    out = capsys.readouterr().out
    assert "float8_e4m3fn" in out
    if form == ["--json"]:
        data = json.loads(out)
        assert data["size"] == 256 and {"cpu", "date", "packages"} <= set(data)
        assert all(set(row["met"]) <= set(row["goals"]) for row in data["rows"])
    elif form == ["--list"]:
        assert "float32 to: float8_e4m3fn" in out.splitlines()
    else:
        assert "goals met" in out and "cpu: " in out
        assert ("| float8_e4m3fn |" in out) == (form == ["--markdown"])


def test_rates_by_elements_and_threads_are_measured_and_drawn(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("bittrue.bench.scaling.usable_cpus", lambda: 5)
    points = [p for one_size in bench.measure_scaling(1, (64, 256)) for p in one_size]
    of_first = [p for p in points if p.row == "float32 to: float8_e4m3fn"]
    assert [(p.elements, p.threads) for p in of_first] == [(n, t) for n in (64, 256) for t in (0, 1, 2, 4)]
    assert all(p.rate > 0 for p in points)
    bench.draw(points, tmp_path / "scaling.png")
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_needs_a_place(capsys):
    assert main(["bench", "--only", "float32 to: float8_e5m2", "--plot", "nowhere/scaling.png"]) == 2
    assert "there is no directory nowhere" in capsys.readouterr().err


def test_slow_jobs_take_few_rounds(clock):
    times = measure.in_turns({"slow": clock.job("slow", 20), "quick": clock.job("quick", 1)}, 9)
    assert {name: len(seconds) for name, seconds in times.items()} == {"slow": 5, "quick": 9}
