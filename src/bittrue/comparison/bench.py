"""Rows of `bittrue bench` for comparisons and diagnoses: beside plain reading, and in seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from ..array import Array
from ..bench.measure import Row, Settings, in_turns
from ..codec import encode
from . import compare

__all__ = ["rows"]

Codes = np.ndarray[Any, Any]

_DIAGNOSED = 1 << 20  # elements at most


def rows() -> list[Row]:
    """Return the rows."""
    return [
        _compare("bitwise, 1 of 1000 differs", _sparse, {"share_one": 0.5}),
        _compare("bitwise, all equal", lambda x: encode(x, "hifloat8"), {"share_one": 0.5}),
        _compare("ULP and errors, half of all differ", _floor, {"one": 150.0}),
        _compare("ULP and errors, all differ", lambda x: encode(x, "hifloat8") ^ np.uint8(1), {"one": 150.0}),
        Row("diagnose: 2^20 elements", "float32 to hifloat8, all rules of ascend:950", _diagnose, {"seconds": 20.0}),
    ]


def _floor(x: Codes) -> Codes:
    return encode(x, "hifloat8", "floor")


def _sparse(x: Codes) -> Codes:
    codes = encode(x, "hifloat8")
    codes[np.random.default_rng(1).integers(0, x.size, x.size // 1000)] ^= 1
    return codes


def _compare(name: str, make: Callable[[Codes], Codes], goals: dict[str, float]) -> Row:
    """Compare two arrays of hifloat8; the limit is reading both, as 64-bit words."""

    def measure(settings: Settings) -> dict[str, float]:
        size = -(-settings.size // 8) * 8
        x = np.random.default_rng(0).standard_normal(size, np.float32)
        golden, actual = encode(x, "hifloat8"), make(x)
        pair = Array(golden, "hifloat8"), Array(actual, "hifloat8")
        words = golden.view(np.uint64), actual.view(np.uint64)
        times = in_turns(
            {"limit": lambda: [np.bitwise_or.reduce(w) for w in words], "one": lambda: compare(*pair, "ulp")},
            settings.repeat,
        )
        figures = {job: size / median(seconds) / 1e6 for job, seconds in times.items()}
        figures["share_one"] = median(a / b for a, b in zip(times["limit"], times["one"]))
        return figures

    return Row("compare: two hifloat8 arrays, beside reading both", name, measure, goals)


def _diagnose(settings: Settings) -> dict[str, float]:
    """One diagnosis of a dump, tables included: nobody runs it twice."""
    from ..diagnosis import diagnose

    rng = np.random.default_rng(0)
    shape = (max(min(settings.size, _DIAGNOSED) >> 10, 4), 1 << 10)
    x = (rng.standard_normal(shape) * np.exp2(rng.integers(-20, 18, shape))).astype(np.float32)
    x[0, :4] = np.nan, np.inf, -np.inf, 1e30
    dump = Array(encode(x, "hifloat8", "hybrid", nan="zero"), "hifloat8")
    started = time.perf_counter()
    found = diagnose(x, dump, target="ascend:950")
    seconds = time.perf_counter() - started
    if not found.explained:
        raise RuntimeError(f"the benchmark's own dump was not explained: {found.headline()}")
    return {"seconds": seconds}
