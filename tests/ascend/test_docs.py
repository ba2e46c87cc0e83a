"""The golden-data example runs and writes what a kernel reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_golden_example(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "ascend_golden.py"), str(tmp_path / "golden")],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "golden").iterdir()}
    count = 64 * 1024
    assert sizes == {
        "input_float.bin": 4 * count,
        "golden_half_cast_odd.bin": 2 * count,
        "golden_bfloat16_t_cast_rint.bin": 2 * count,
        "golden_fp8_e4m3fn_t_cast_rint.bin": count,
        "golden_hifloat8_t_cast_round.bin": count,
        "golden_hifloat8_t_cast_hybrid.bin": count,
        "golden_int8_t_cast_floor.bin": count,
        "golden_int4x2_t_cast_round.bin": count // 2,
    }
