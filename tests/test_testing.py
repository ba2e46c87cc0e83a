"""`bittrue.testing`: what a failure says, and that pytest knows the module."""

from __future__ import annotations

from importlib import metadata

import numpy as np
import pytest

import bittrue as bt
from bittrue.testing import assert_bit_true, assert_explained

X = np.random.default_rng(0).standard_normal((32, 48)).astype(np.float32)
GOLDEN, DEVICE = bt.array(X, "hifloat8"), bt.array(X, "hifloat8", rounding="trunc")


def test_a_pass_returns_the_report():
    assert assert_bit_true(GOLDEN, GOLDEN).elements == X.size
    assert assert_bit_true(DEVICE, GOLDEN, "ulp", max_ulp=1).max_ulp == 1
    assert assert_bit_true(GOLDEN.codes, GOLDEN)


def test_packed_blocks_have_the_format_and_shape_of_the_golden_data():
    golden, device = (bt.array(X[:, :20], "mx9", rounding=mode) for mode in ("nearest_even", "floor"))
    assert assert_bit_true(golden.codes.copy(), golden).elements == 32 * 32  # with what fills the last blocks
    with pytest.raises(AssertionError, match="diagnosis: AMBIGUOUS: floor explains all"):
        assert_bit_true(device.codes, golden, source=X[:, :20])


def test_a_failure_says_what_where_and_why(tmp_path):
    page = tmp_path / "report.html"
    with pytest.raises(AssertionError) as caught:
        assert_bit_true(DEVICE, GOLDEN, source=X, target="ascend:950", err_msg="cast of x", html=page)
    text = str(caught.value)
    assert text.startswith("cast of x\nFAIL (bitwise: every code equal)")
    worst = bt.compare(GOLDEN, DEVICE).worst[0]
    assert f"[{worst.index[0]}, {worst.index[1]}] golden" in text
    assert "diagnosis: EXPLAINED: trunc" in text
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>") and str(page) in text


def test_order_of_arguments_is_that_of_numpy():
    with pytest.raises(AssertionError, match=r"golden 2 .*actual 1 "):
        assert_bit_true(np.float32([1]), np.float32([2]))


def test_mistakes_of_the_test_are_no_assertion_errors():
    with pytest.raises(ValueError, match="shapes differ"):
        assert_bit_true(X[:3], X)
    with pytest.raises(ValueError, match="not a comparison standard"):
        assert_bit_true(X, X, "mare")


def test_a_dump_can_be_required_to_have_an_explanation():
    assert assert_explained(X, DEVICE).best.rule == "trunc"
    noise = np.random.default_rng(1).integers(0, 256, X.shape, dtype=np.uint8)
    with pytest.raises(AssertionError, match="nothing explains it"):
        assert_explained(X, noise, "hifloat8")


def test_registered_with_pytest():
    entries = metadata.entry_points(group="pytest11")
    if "bittrue" not in {e.name for e in entries}:
        pytest.skip("installed before the entry point was declared; install again")
    assert next(e for e in entries if e.name == "bittrue").value == "bittrue.testing"


def test_pytest_rewrites_and_hides(pytester_like):
    out = pytester_like(
        "import numpy as np, bittrue as bt\n"
        "from bittrue.testing import assert_bit_true\n"
        "def test_cast():\n"
        "    x = np.float32([1.12, -2.7, 3.3])\n"
        "    assert_bit_true(bt.array(x, 'float8_e4m3fn', 'floor'), bt.array(x, 'float8_e4m3fn'), source=x)\n"
    )
    assert "AssertionError: FAIL (bitwise: every code equal)" in out and "in compare" not in out


@pytest.fixture
def pytester_like(tmp_path):
    """Run a test file in a fresh pytest and return its output."""
    import subprocess
    import sys

    def run(source):
        path = tmp_path / "test_it.py"
        path.write_text(source, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(path)],
            capture_output=True, text=True, cwd=tmp_path, check=False,
        )  # fmt: skip
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stdout

    return run
