"""Rows of `bittrue bench` for Fixpipe and the matrix unit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..bench.measure import Case, Row, throughput
from ..matmul import integer
from .fixpipe import fixpipe
from .quant import QuantParam

__all__ = ["rows"]

_GOALS = {"share_one": 0.3, "share_two": 0.55}


def rows() -> list[Row]:
    """Return the rows."""
    found = [
        _requantise(kind, mode, relu)
        for kind, base in (("int32", "REQ8"), ("float32", "QF322B8_PRE"))
        for mode in (base, "V" + base)
        for relu in (False, True)
    ]
    found += [_to_float("DEQF16", np.int32, np.int16), _to_float("QF322FP8_PRE", np.float32, np.int8)]
    return [*found, _product()]


def _matrix(size: int, dtype: Any) -> tuple[np.ndarray[Any, Any], int]:
    side = max(math.isqrt(size), 1)
    x = np.random.default_rng(0).standard_normal((side, side), np.float32) * np.float32(1e4)
    return x.astype(dtype), side


def _copy(dst: np.ndarray[Any, Any], src: np.ndarray[Any, Any]) -> None:
    with np.errstate(invalid="ignore"):  # values beyond the integer's range
        np.copyto(dst, src, casting="unsafe")


def _requantise(kind: str, mode: str, relu: bool) -> Row:
    def prepare(size: int) -> Case:
        x, side = _matrix(size, kind)
        out, plain = np.empty(x.shape, np.uint8), np.empty(x.shape, np.int8)
        scale = np.full(side, 0.01) if mode.startswith("V") else 0.01
        words = QuantParam(scale, 3, True).pack(2201)
        return Case(
            x.size,
            lambda threads: fixpipe(x, mode, words, relu, "a2", out=out, threads=threads),
            lambda: _copy(plain, x),
        )

    what = "per channel" if mode.startswith("V") else "one scale"
    return throughput(f"ascend: Fixpipe, {kind} to int8", f"{what}, ReLU" if relu else what, prepare, _GOALS)


def _to_float(mode: str, source: Any, width: Any) -> Row:
    def prepare(size: int) -> Case:
        x, _ = _matrix(size, source)
        result = fixpipe(x[:1], mode, QuantParam(0.01))
        out, plain = np.empty(x.shape, result.codes.dtype), np.empty(x.shape, width)
        param = QuantParam(0.01)
        return Case(
            x.size, lambda threads: fixpipe(x, mode, param, out=out, threads=threads), lambda: _copy(plain, x)
        )

    return throughput("ascend: Fixpipe, to floats", mode, prepare, {"share_one": 0.3})


def _product() -> Row:
    """int8 matrices of 1024 x 1024; an element is one multiplication."""

    def prepare(size: int) -> Case:
        side = min(1024, max(math.isqrt(size), 1))
        a, b = np.random.default_rng(0).integers(-128, 128, (2, side, side), np.int8)
        x, y, z = a.astype(np.float32), b.astype(np.float32), np.empty((side, side), np.float32)
        return Case(
            side**3,
            lambda threads: integer(a, b),
            peers={"NumPy's float32 product": lambda: np.matmul(x, y, out=z)},
        )

    return throughput("ascend: matrix unit", "int8 x int8", prepare, {"times NumPy's float32 product": 0.5})
