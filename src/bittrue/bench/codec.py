"""Rows of the codec: encode, decode, other sources, stochastic rounding, beside the copy and the peers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..codec import decode, encode
from ..formats import FloatFormat, Format, TaperedFormat, format, formats
from ..rounding import Rounding
from .measure import Case, Row, throughput
from .peers import casts, numpy_dtype

__all__ = ["rows"]

Array = np.ndarray[Any, Any]

_ENCODE = {"share_one": 0.55, "share_two": 0.85, "times ml_dtypes": 12.0, "times en_dtypes": 20.0, "times torch": 1.0}
_TAPERED = {**_ENCODE, "share_one": 0.35, "share_two": 0.65}
_HALVES = {"share_one": 0.8}
_DECODE = {"share_one": 0.5}
_SOURCES = {"share_one": 0.3}
_STOCHASTIC = {"one": 300.0}

_MODES_OF = "float8_e4m3fn"
_DETERMINISTIC = [m.value for m in Rounding if m not in (Rounding.stochastic, Rounding.hybrid)]


def rows() -> list[Row]:
    """Return the rows."""
    small = [f for f in formats() if isinstance(f, (FloatFormat, TaperedFormat)) and f.bits <= 8]
    found = [_encode_row("float32 to", f, "nearest_even") for f in small]
    found += [
        _encode_row(f"float32 to {_MODES_OF}, every mode", format(_MODES_OF), mode) for mode in _DETERMINISTIC
    ]
    tapered = format("hifloat8")
    found += [_encode_row("float32 to hifloat8, every mode", tapered, mode) for mode in [*_DETERMINISTIC, "hybrid"]]
    for name in ("float16", "bfloat16"):
        found.append(_encode_row("float32 to and from 16 bits", format(name), "nearest_even", _HALVES))
        found.append(_decode_row("float32 to and from 16 bits", format(name), _HALVES))
    integers = [format(name) for name in ("int4", "int8", "uint8")]
    found += [_decode_row("decode to float32", f, _DECODE) for f in small + integers]
    for source in ("float64", "float16", "bfloat16", "int8", "int32", "int64"):
        for target in (_MODES_OF, "hifloat8"):
            found.append(_source_row(source, format(target)))
    for target in (_MODES_OF, "hifloat8", "bfloat16"):
        found.append(_encode_row("stochastic rounding", format(target), "stochastic", _STOCHASTIC))
    return found


@lru_cache(maxsize=2)
def _normal(size: int, dtype: str = "float32") -> Array:
    """Return standard normal numbers; integers from a normal distribution a thousand times as wide."""
    x = np.random.default_rng(0).standard_normal(size, np.float32)
    if dtype.startswith(("int", "uint")):
        return np.clip(x * 1000, -128, 127).astype(dtype) if dtype == "int8" else (x * 1000).astype(dtype)
    return x if dtype == "float32" else x.astype(numpy_dtype(format(dtype)))


def _encode_row(group: str, f: Format, mode: str, goals: dict[str, float] | None = None) -> Row:
    def prepare(size: int) -> Case:
        x, out = _normal(size), np.empty(size, f.storage)
        plain = np.empty(size, f"i{f.storage.itemsize}")
        return Case(
            size,
            lambda threads: encode(x, f, mode, out=out, threads=threads),
            lambda: np.copyto(plain, x, casting="unsafe"),
            casts(x, f) if mode == "nearest_even" else {},
        )

    if goals is None:
        goals = _TAPERED if isinstance(f, TaperedFormat) else _ENCODE
    return throughput(group, mode if "every mode" in group else f.name, prepare, goals)


def _decode_row(group: str, f: Format, goals: dict[str, float]) -> Row:
    def prepare(size: int) -> Case:
        bits = np.random.default_rng(1).integers(0, 1 << f.bits, size, f.code_dtype)
        codes = encode(_normal(size), f) if f.bits > 8 else bits
        numbers, out = codes.view(f.code_dtype), np.empty(size, np.float32)
        plain = np.empty(size, np.float32)
        return Case(
            size,
            lambda threads: decode(codes, f, out=out, threads=threads),
            lambda: np.copyto(plain, numbers),
            casts(codes, f, back=True),
        )

    return throughput(group, f"{f.name} -> float32" if f.bits > 8 else f.name, prepare, goals)


def _source_row(source: str, f: Format) -> Row:
    def prepare(size: int) -> Case:
        x, out = _normal(size, source), np.empty(size, f.storage)
        numbers = x.view(np.int16) if x.itemsize == 2 else x
        plain = np.empty(size, np.int8)
        return Case(
            size,
            lambda threads: encode(x, f, out=out, threads=threads),
            lambda: np.copyto(plain, numbers, casting="unsafe"),
            casts(x, f),
        )

    return throughput("other sources", f"{source} -> {f.name}", prepare, _SOURCES)
