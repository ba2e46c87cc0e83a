"""Golden data for a kernel: the same numbers in six Ascend types, written as the device lays them out, and checked.

Run ``python examples/ascend_golden.py [FOLDER]``; without a folder a temporary one is used. A kernel's author copies
the files to the device, runs the kernel and compares its dump with them byte by byte.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import bittrue as bt
from bittrue import ascend

SHAPE = (64, 1024)
PRODUCT = "Ascend 950PR"

#: Destination, mode and the type in between: Ascend casts float to int8_t and int4x2_t by way of half.
JOBS = [
    ("half", "CAST_ODD", None),
    ("bfloat16_t", "CAST_RINT", None),
    ("fp8_e4m3fn_t", "CAST_RINT", None),
    ("hifloat8_t", "CAST_ROUND", None),
    ("hifloat8_t", "CAST_HYBRID", None),
    ("int8_t", "CAST_FLOOR", "half"),
    ("int4x2_t", "CAST_ROUND", "half"),
]


def main(folder: Path) -> None:
    """Write the files, then read each one back and check it."""
    x = np.random.default_rng(950).normal(0, 4, SHAPE).astype(np.float32)
    x.tofile(folder / "input_float.bin")
    print(f"{PRODUCT}: {x.size} random float values, written to {folder}")
    for dst, mode, between in JOBS:
        source = x if between is None else ascend.cast(x, between, product=PRODUCT)
        golden = ascend.cast(source, dst, mode, product=PRODUCT)
        path = folder / f"golden_{dst}_{mode.lower()}.bin"
        path.write_bytes(golden.tobytes())
        check(path, golden, source, mode)
        back = np.asarray(golden, np.float32)
        print(f"  {path.name:40} {path.stat().st_size:7} bytes   largest error {np.abs(back - x).max():.4g}")
    print()
    print(ascend.cast_rule("float", "hifloat8_t", "CAST_HYBRID", PRODUCT).explain())


def check(path: Path, golden: bt.Array, source: object, mode: str) -> None:
    """Read a file back; its size, its codes and a strict cast of the same input must agree with what was written."""
    data = path.read_bytes()
    read = bt.Array.frombytes(data, golden.format, golden.shape)
    strict = ascend.cast(source, golden.format, mode, PRODUCT, strict=True)  # Ascend C refuses a mode it does not have
    expected = golden.size * golden.format.bits // 8  # int4x2_t: two values in a byte
    if len(data) != expected or not (np.array_equal(read.codes, golden.codes) and strict.tobytes() == data):
        raise SystemExit(f"{path} does not hold what was written")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        target = Path(sys.argv[1])
        target.mkdir(parents=True, exist_ok=True)
        main(target)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
