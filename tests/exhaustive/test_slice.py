"""A slice of the exhaustive proof, small enough for every run; and that its oracle and its files do their work."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from exhaustive import jobs, results
from exhaustive.__main__ import main
from exhaustive.steps import BEYOND, asker, fill, spans

import bittrue as bt
from bittrue.rounding import Rule

ONE = 0x3F800000 // jobs.PIECE
PARTS = [
    *((jobs.Steps("float8_e4m3fn", mode, "saturate"), ONE) for mode in ("nearest_even", "odd", "nearest_down")),
    *((jobs.Steps("float8_e5m2", mode, "ieee"), 0xC7800000 // jobs.PIECE) for mode in ("nearest_even", "ceil")),
    (jobs.Steps("float16", "floor", "saturate"), 0xB8800000 // jobs.PIECE),
    (jobs.Steps("bfloat16", "nearest_away", "infinity"), 0x7F700000 // jobs.PIECE),
    (jobs.Steps("bfloat16", "nearest_even", "saturate"), 0x7F800000 // jobs.PIECE),
    *((jobs.Steps("float8_e8m0fnu", "away", o), part) for o in ("saturate", "infinity") for part in (0, 2048, 1022)),
    *((jobs.Steps("hifloat8", "hybrid", "infinity"), p) for p in (ONE, ONE + 40, ONE - 168, ONE - 184, 4088)),
    (jobs.Steps("int8", "nearest_even", "saturate"), 0x42700000 // jobs.PIECE),
    (jobs.Library("float8_e4m3", "nearest_even", "its own", "ml_dtypes"), 0x43700000 // jobs.PIECE),
    (jobs.Library("float8_e8m0fnu", "nearest_even", "its own", "ml_dtypes"), 0x00500000 // jobs.PIECE),
    (jobs.Library("float16", "nearest_even", "its own", "numpy"), 0x33000000 // jobs.PIECE),
    (jobs.Sixteen("float4_e2m1fn", "all", "all", "float16"), 3),
    (jobs.Sixteen("p3109_k6p3uf", "all", "all", "bfloat16"), 1),
    (jobs.Sixteen("int8", "all", "all", "float16"), 0),
    (jobs.Neighbours("float8_e5m2fnuz", "all", "all"), 0),
    (jobs.Sample("float6_e3m2fn", "nearest_even", "infinity"), 7),
    (jobs.Midpoints("float32", "odd", "saturate"), 5),
    (jobs.Midpoints("float32", "nearest_even", "saturate"), 2039),
]


@pytest.mark.parametrize(("job", "part"), PARTS, ids=[f"{job.key}-{part}" for job, part in PARTS])
def test_part(job, part):
    outcome = job.check(part)
    assert outcome.inputs and not outcome.differences, outcome.example


@pytest.mark.parametrize(("target", "mode"), [("float8_e4m3fn", "odd"), ("float8_e8m0fnu", "nearest_up")])
def test_steps_are_what_every_pattern_says(target, mode):
    source, fmt = jobs.SOURCES["float16"], bt.format(target)
    ask = asker(source, fmt, Rule(rounding=mode, overflow="infinity"))
    out = np.empty(1 << 16, np.int64)
    fill(out, ask, source, 0)
    assert out.tolist() == [ask(u) for u in range(1 << 16)]


def test_spans_cover_every_pattern_once():
    found = list(spans(jobs.SOURCES["bfloat16"], 0x7F40, 0x8102))
    assert found == [
        (0x7F40, 0x7F7F),
        (0x7F80, 0x7F80),
        (0x7F81, 0x7FFF),
        (0x8000, 0x8000),
        (0x8001, 0x807F),
        (0x8080, 0x80FF),
        (0x8100, 0x8102),
    ]


def test_what_lies_beyond_is_no_code():
    ask = asker(jobs.SOURCES["float16"], bt.format("float8_e4m3fn"), Rule(overflow="raise"))
    assert [ask(u) for u in (0x5F00, 0x5F40, 0x5F80, 0x7C00)] == [0x7E, 0x7E, BEYOND, BEYOND]  # 448, 464, 480, Inf


FIRST = {type(job): (job, part) for job, part in reversed(PARTS)}


@pytest.mark.parametrize(("job", "part"), FIRST.values(), ids=[kind.__name__ for kind in FIRST])
def test_a_false_code_is_counted(monkeypatch, job, part):
    right = bt.encode

    def encode(x, *args, **more):
        codes = right(x, *args, **more)
        if np.size(codes) > 1000:
            codes.view(codes.dtype.str.replace("f", "u"))[1000] ^= 1
        return codes

    monkeypatch.setattr(bt, "encode", encode)
    outcome = job.check(part)
    assert outcome.differences >= 1 and outcome.example


def test_runs_go_on_where_they_ended(tmp_path, capsys):
    only = ["--formats", "float4_e2m1fn", "--sources", "float64", "--overflows", "all"]
    path = tmp_path / "r.json"
    assert main([*only, "--results", str(path)]) == 0
    assert "1 of 1 jobs" in capsys.readouterr().out
    (row,) = json.loads(path.read_text()).values()
    assert row["parts"] == row["of"] == 1 and row["differences"] == 0 and row["inputs"] % 44 == 0
    assert main([*only, "--results", str(path)]) == 0
    assert "0 of 1 jobs" in capsys.readouterr().out
    path.write_text(json.dumps({key: {**r, "digest": "older"} for key, r in results.load(path).items()}))
    assert main([*only, "--results", str(path), "--any-code"]) == 0
    assert "0 of 1 jobs" in capsys.readouterr().out
    assert main([*only, "--results", str(path)]) == 0
    assert "1 of 1 jobs" in capsys.readouterr().out


def test_a_slice_gives_every_job_its_share(tmp_path, monkeypatch):
    now, seen = [0.0], []

    def check(job, part):
        now[0] += 0.5
        seen.append((job.rounding, part))
        return jobs.Outcome(1)

    monkeypatch.setattr(jobs.Steps, "check", check)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    path = tmp_path / "r.json"
    only = ["--formats", "float4_e1m2fn", "--overflows", "saturate", "--sources", "float32"]
    assert main([*only, "--minutes", "1.1", "--results", str(path), "--seed", "1"]) == 0
    rows = results.load(path)
    assert [r["parts"] for r in rows.values()] == [12] * 11 and now == [66.0]
    first, seen = sorted(seen), []
    assert len({part for _, part in first}) > 100  # each job in an order of its own
    assert main([*only, "--minutes", "1.1", "--results", str(path), "--seed", "2"]) == 0
    assert sorted(seen) != first


def test_a_difference_ends_with_status_1(tmp_path, monkeypatch):
    bad = jobs.Outcome(5, 2, 0, "0x1 gives 0x2 instead of 0x3")
    monkeypatch.setattr(jobs.Neighbours, "check", lambda self, part: bad)
    path = tmp_path / "r.json"
    only = ["--formats", "float4_e2m1fn", "--sources", "float64", "--overflows", "all"]
    assert main([*only, "--results", str(path)]) == 1
    (row,) = results.load(path).values()
    assert (row["differences"], row["example"]) == (2, bad.example)
    assert not results.done(row, row["digest"])


@pytest.mark.parametrize("page", results.PAGES, ids=lambda page: page.name)
def test_the_pages_show_the_results(page):
    text = page.read_text(encoding="utf-8")
    assert text == results.page(text, results.load(results.FILE))
