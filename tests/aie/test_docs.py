"""The programs about users' complaints, the command's tables and the benchmark's rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bittrue import aie, bench
from bittrue.aie import bench as rows
from bittrue.cli import main

ROOT = Path(__file__).parents[2]


def run(name):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_floor_is_biased_and_nearest_even_is_not():
    found = {}
    for line in run("aie_floor_bias").splitlines():
        cells = line.split()
        if len(cells) == 5 and cells[1] in ("floor", "conv_even"):
            found[int(cells[0]), cells[1]] = float(cells[2]), float(cells[4])
    for k in (64, 512, 4096):
        mean, spread = found[k, "floor"]
        assert mean < -5 * spread  # far more than chance
        assert -0.05 < mean / k < -0.035  # the same loss for every k
        mean, spread = found[k, "conv_even"]
        assert abs(mean) < 5 * spread / 32  # the mean of 32 x 32 sums


def test_kernel_b_after_kernel_a():
    lines = {
        line[:32].strip(): line[32:].partition("]")[0].strip(" [") for line in run("aie_sticky_register").splitlines()
    }
    values = [1003, 1005, -1003, 70000, -70000, 6, 2, -2]
    floor = ", ".join(str(v // 4) for v in values)
    even = ", ".join(str(round(v / 4)) for v in values)
    assert floor != even
    assert lines["B alone"] == lines["B, careful, after A"] == lines["B on another tile, after A"] == floor
    assert lines["B after A on the same tile"] == even


def test_300_in_uint8():
    lines = [
        line.replace("[", "").replace("]", "").replace(",", "").split() for line in run("aie_saturation").splitlines()
    ]
    found = {tuple(cells[:2]): list(map(int, cells[2:])) for cells in lines[1:]}
    values = [300, 255, 256, -5, -300, 0, 100, 1000]
    assert found["uint8", "none"] == [v % 256 for v in values]
    assert found["uint8", "saturate"] == found["uint8", "symmetric"] == [min(max(v, 0), 255) for v in values]
    assert found["int8", "saturate"] == [min(max(v, -128), 127) for v in values]
    assert found["int8", "symmetric"] == [min(max(v, -127), 127) for v in values]


@pytest.mark.parametrize("what", ("accum", "vector", "mmul", "ports"))
def test_tables_on_the_command_line(capsys, what):
    assert main(["aie", what, "--arch", "xdna1", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    if what == "accum":
        assert {row["tag"]: row["aie-ml"]["lanes"] for row in data}["acc48"] == [4, 8, 16, 32, 64]
    elif what == "vector":
        assert {row["element"]: row["aie-ml"] for row in data}["bfloat16"] == [8, 16, 32, 64]
    elif what == "mmul":
        assert {(row["A"], row["B"]): row["aie-ml"] for row in data}["int8", "int8, sparse"][0] == "4x16x8"
    else:
        assert {(row["port"], row["type"]): row["aie-ml"] for row in data}["cascade", "acc48"] == "as acc64"
    assert main(["aie", what]) == 0
    out = capsys.readouterr().out
    assert all(a.name in out for a in aie.archs())
    assert main(["aie", what, "--arch", "aie9"]) == 2
    assert "arch='aie9' is not an AI Engine architecture" in capsys.readouterr().err


def test_the_goals_of_the_issue_are_in_the_rows():
    goals = {(row.group, row.name): row.goals for row in rows.rows()}
    for mode in aie.RoundingMode:
        for name in ("int16", "int8"):
            assert goals[f"aie: SRS of int64 to {name}", f"{mode.value}, saturate"] == {"share_one": 0.4}
    assert goals["aie: UPS to 64 bits", "int16"] == {"share_one": 0.4}
    assert goals["aie: matrix products", "int8, 1024 x 1024 x 1024"] == {"times numpy": 0.5}
    assert goals["aie: matrix products", "bfp16ebs8, 512 x 512 x 512"] == {"seconds": 5.0}


def test_a_row_of_each_group_runs():
    settings = bench.Settings(size=64, repeat=1)
    some = {row.group: row for row in rows.rows()}
    assert len(some) == 4
    for row in some.values():
        figures = row.measure(settings)
        assert set(row.goals) <= set(figures) and all(v > 0 for v in figures.values())
