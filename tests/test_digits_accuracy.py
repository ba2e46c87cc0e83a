"""The accuracy example: its datapaths give what the same arithmetic, written down in NumPy, gives."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import bittrue as bt

FOLDER = Path(__file__).parents[1] / "examples" / "digits"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("accuracy", "network"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import accuracy

    return accuracy


def test_every_row_of_eight_bits_and_more_is_as_good_as_float32(example) -> None:
    rows = example.results()
    assert len(rows) == 1 + len(example.SCALED) + len(example.AS_THEY_ARE) + 1 + len(example.AIE_BLOCKS)
    assert rows[0][3] == 0.98  # the README's figure
    for name, how, bits, reached, changed in rows:
        assert reached >= (0.97 if bits >= 6 else 0.9), (name, how)
        assert abs(reached - 0.98) <= changed / 500 + 1e-12, (name, how)
    assert example.drawing(rows).count("<rect") == 1 + len(rows)


def test_the_cube_is_integer_arithmetic(example) -> None:
    images, _ = example.network.load_test_set()
    tensors = {name: np.asarray(a, np.float32) for name, a in bt.load(example.network.CHECKPOINT).items()}
    x, floats = images.astype(np.int64), images.astype(np.float64) / 16
    x_scale = floats.max() / 127
    x = np.rint(floats / x_scale).astype(np.int64)
    for i in range(3):
        weight, bias = tensors[f"layers.{i}.weight"].astype(np.float64), tensors[f"layers.{i}.bias"]
        w_scale = np.abs(weight).max(axis=1) / 127
        sums = x @ np.rint(weight / w_scale[:, None]).astype(np.int64).T + np.rint(bias / (x_scale * w_scale))
        if i == 2:
            break
        floats = np.maximum(floats @ weight.T + bias, 0)
        y_scale = floats.max() / 127
        x = np.clip(np.rint(np.maximum(sums, 0) * (x_scale * w_scale / y_scale)), -128, 127).astype(np.int64)
        x_scale = y_scale
    found = example.through_the_cube(tensors, images)
    # The hardware's scale has fewer bits: single codes may differ by one, logits by little.
    assert np.abs(found - sums * (x_scale * w_scale)).max() < 0.02 * np.abs(found).max()
