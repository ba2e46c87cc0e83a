"""Rows of `bittrue bench` for Ascend: casts and what a call costs; those of Fixpipe are in `fixpipe_bench`."""

from __future__ import annotations

import timeit
from typing import Any

import numpy as np

from ..bench.measure import Case, Row, Settings, throughput
from ..codec import encode
from ..formats import format
from ..rounding import Overflow, Rule
from . import fixpipe_bench
from .cast import cast
from .dequant import cast_dequant
from .hf32 import hf32
from .modes import RoundMode, rounding
from .quant import QuantParam
from .rule import cast_rule

__all__ = ["rows"]

_GOAL = {"share_one": 0.4}
_MODES = [RoundMode.RINT, RoundMode.ROUND, RoundMode.FLOOR, RoundMode.CEIL, RoundMode.TRUNC]
_CALLS = 2000


def rows() -> list[Row]:
    """Return the rows."""
    found = [
        _to_int(name, mode, saturates)
        for name in ("int8", "int16", "int32")
        for saturates in (True, False)
        for mode in _MODES
    ]
    found += [_dequant(saturates) for saturates in (True, False)]
    found += [_cast_dequant(words) for words in (1, 16)] + [_hf32()]
    return [*found, _call(), *fixpipe_bench.rows()]


def _numbers(size: int, width: float) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal(size, np.float32) * np.float32(width)


def _to_int(name: str, mode: RoundMode, saturates: bool) -> Row:
    """float32 to an integer type; from float to int8_t Ascend has no cast, so the core is timed by the same rule."""
    f = format(name)
    rule = Rule(rounding(mode), Overflow.saturate if saturates else Overflow.wrap)

    def prepare(size: int) -> Case:
        x, out = _numbers(size, float(f.max) / 3), np.empty(size, f.storage)
        plain = np.empty(size, f.storage.name.lstrip("u"))

        def ours(threads: int) -> object:
            if name == "int8":
                return encode(x, f, rule=rule, out=out, threads=threads)
            return cast(x, f, mode, saturation=saturates, out=out, threads=threads)

        return Case(size, ours, lambda: _copy(plain, x))

    what = "saturating" if saturates else "wrapping"
    return throughput(f"ascend: float to {name}, {what}", mode.short, prepare, _GOAL)


def _copy(dst: np.ndarray[Any, Any], src: np.ndarray[Any, Any]) -> None:
    with np.errstate(invalid="ignore"):  # values beyond the integer's range
        np.copyto(dst, src, casting="unsafe")


def _dequant(saturates: bool) -> Row:
    def prepare(size: int) -> Case:
        x, out = _numbers(size, 1e6).astype(np.int32), np.empty(size, np.uint16)
        plain = np.empty(size, np.int16)
        return Case(
            size,
            lambda threads: cast(x, "half", deqscale=0.01, saturation=saturates, out=out, threads=threads),
            lambda: _copy(plain, x),
        )

    return throughput("ascend: int32 to half with a scale", "saturating" if saturates else "to Inf", prepare, _GOAL)


def _cast_dequant(words: int) -> Row:
    def prepare(size: int) -> Case:
        x, out = _numbers(size, 1e4).astype(np.int16), np.empty(size, np.int8)
        param = QuantParam(0.01 if words == 1 else np.linspace(0.01, 0.02, words), 3)
        plain = np.empty(size, np.int8)
        return Case(
            size,
            lambda threads: cast_dequant(x, "int8_t", param, out=out, threads=threads),
            lambda: _copy(plain, x),
        )

    name = "one word" if words == 1 else f"{words} words"
    return throughput("ascend: CastDequant, int16 to int8", name, prepare, {"share_one": 0.3})


def _hf32() -> Row:
    def prepare(size: int) -> Case:
        x, plain = _numbers(size, 1), np.empty(size, np.float32)
        return Case(size, lambda threads: hf32(x, threads=threads), lambda: _copy(plain, x))

    return throughput("ascend: float32 to HF32", "NEAREST_EVEN, a new array", prepare, {"share_one": 0.4})


def _call() -> Row:
    """Seconds that a call takes beyond the codec's, on four elements."""

    def measure(settings: Settings) -> dict[str, float]:
        x = np.array([1, 2.5, -3, 1e6], np.float32)
        rule = cast_rule("float", "half")

        def seconds(job: Any) -> float:
            job()
            return min(timeit.repeat(job, number=_CALLS, repeat=settings.repeat)) / _CALLS

        ours = seconds(lambda: cast(x, "half"))
        return {"seconds": max(ours - seconds(lambda: encode(x, rule.destination.format, rule=rule.rule)), 0.0)}

    return Row("ascend: calls", "cast, beyond encode", measure, {"seconds": 20e-6})
