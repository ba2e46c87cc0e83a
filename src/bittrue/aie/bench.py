"""Rows of `bittrue bench` for the AI Engine: shift-round-saturate and upshift beside the copy, matrix products."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from ..bench.measure import Case, Row, Settings, in_turns, throughput
from .mmul import matmul
from .modes import RoundingMode, SaturationMode
from .srs import srs, ups

__all__ = ["rows"]

Array = np.ndarray[Any, Any]

_GOAL = {"share_one": 0.4}


def rows() -> list[Row]:
    """Return the rows."""
    found = [
        _srs(name, mode, saturation)
        for name in ("int16", "int8")
        for mode in RoundingMode
        for saturation in SaturationMode
        if saturation is SaturationMode.saturate or mode is RoundingMode.floor
    ]
    found += [_ups(name) for name in ("int8", "int16", "int32")]
    return [*found, _integers(), *(_blocks(name, arch) for name, arch in (("bfp16ebs8", "xdna2"), ("mx9", "aie-mlv2")))]


def _srs(name: str, mode: RoundingMode, saturation: SaturationMode) -> Row:
    def prepare(size: int) -> Case:
        x = np.random.default_rng(0).integers(-(1 << 40), 1 << 40, size)
        out, plain = np.empty(size, name), np.empty(size, name)
        return Case(
            size,
            lambda threads: srs(x, name, 25, mode, saturation, arch="aie-ml", out=out, threads=threads),
            lambda: np.copyto(plain, x, casting="unsafe"),
        )

    return throughput(f"aie: SRS of int64 to {name}", f"{mode.value}, {saturation.value}", prepare, _GOAL)


def _ups(name: str) -> Row:
    def prepare(size: int) -> Case:
        x = np.random.default_rng(0).integers(-100, 100, size).astype(name)
        out, plain = np.empty(size, np.int64), np.empty(size, np.int64)
        return Case(
            size,
            lambda threads: ups(x, "acc64", 12, "saturate", arch="aie-ml", out=out, threads=threads),
            lambda: np.copyto(plain, x),
        )

    return throughput("aie: UPS to 64 bits", name, prepare, _GOAL)


def _turns(jobs: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    return {name: median(seconds) for name, seconds in in_turns(jobs, repeat).items()}


def _integers() -> Row:
    """int8 products, exact and wrapped to 32 bits, beside NumPy's float32 product of that size."""

    def measure(settings: Settings) -> dict[str, float]:
        rng = np.random.default_rng(0)
        a, b = (rng.integers(-128, 128, (1024, 1024), np.int8) for _ in range(2))
        x, y = a.astype(np.float32), b.astype(np.float32)
        jobs: dict[str, Callable[[], object]] = {
            "ours": lambda: matmul(a, b, arch="aie-ml"),
            "numpy": lambda: np.matmul(x, y),
        }
        times = _turns(jobs, settings.repeat)
        return {"seconds": times["ours"], "times numpy": times["numpy"] / times["ours"]}

    return Row("aie: matrix products", "int8, 1024 x 1024 x 1024", measure, {"times numpy": 0.5})


def _blocks(name: str, arch: str) -> Row:
    def measure(settings: Settings) -> dict[str, float]:
        x = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32)
        return {"seconds": _turns({"ours": lambda: matmul(x, x, block=name, arch=arch)}, settings.repeat)["ours"]}

    return Row("aie: matrix products", f"{name}, 512 x 512 x 512", measure, {"seconds": 5.0})
