"""The rows of the benchmark about the explorer run; how fast anything is, no test says."""

from __future__ import annotations

import pytest

from bittrue import bench
from bittrue.explorer import bench as rows

ROWS = {row.name: row for row in rows.rows()}


def test_the_goals_of_issue_9():
    goals = {name: row.goals["seconds"] for name, row in ROWS.items()}
    assert goals.pop("load the page and all its files") == 0.3
    goals.pop("load and draw the page in Chromium", None)
    assert len(goals) >= 8 and set(goals.values()) == {0.05}
    assert {row.group for row in bench.collect("explorer")} == {rows._GROUP}


@pytest.mark.parametrize("name", [name for name in ROWS if "Chromium" not in name])
def test_every_row_runs(name):
    settings = bench.Settings(size=64, repeat=1, warm_up=0.0)
    assert 0 < ROWS[name].measure(settings)["seconds"] < 60
