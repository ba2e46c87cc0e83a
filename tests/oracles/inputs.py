"""Inputs for comparisons with oracles: bit patterns and neighbourhoods; and numbers compared as numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import boundary
import ml_dtypes
import numpy as np

import bittrue as bt

Values = np.ndarray[Any, Any]

__all__ = ["every_float32", "exact_values", "inputs", "pattern_sample", "same_number"]


def pattern_sample(n: int, bits: int, seed: int = 0) -> Values:
    """Return n random bit patterns."""
    return np.random.default_rng(seed).integers(0, 1 << bits, n, np.uint64).astype(f"u{bits // 8}")


def inputs(target: str, source: str) -> Values:
    """Return inputs of a dtype for conversions to a format.

    16-bit floats: all. float32: 10**6 random patterns, and every value and midpoint of the target with its neighbours;
    float64: 10**5 and the same. Integers: random bits, also shifted down, and ties of bfloat16 and e8m0.
    """
    if source in ("float16", "bfloat16"):
        return np.arange(1 << 16, dtype=np.uint16).view(np.float16 if source == "float16" else ml_dtypes.bfloat16)
    specials = [np.inf, -np.inf, np.nan, -np.nan]
    if source == "float32":
        near = boundary.neighbourhood(bt.format(target), np.float32)
        return np.concatenate([pattern_sample(10**6, 32).view(np.float32), near, np.array(specials, np.float32)])
    if source == "float64":  # float32's range with a float64's fraction: other patterns all over- or underflow
        wide = exact_values(pattern_sample(10**5, 32).view(np.float32)).view(np.uint64)
        fine = (wide | pattern_sample(10**5, 64) >> np.uint64(35)).view(np.float64)
        near = boundary.neighbourhood(bt.format(target), np.float64)
        return np.concatenate([fine, near, specials])
    info = np.iinfo(source)
    x = pattern_sample(10**5, info.bits).view(source)
    if info.bits == 64:  # below 2**53, where float64 holds them
        x = x >> np.int64(11)
    shifted = x >> (np.arange(x.size) % min(info.bits, 50)).astype(x.dtype)
    ties = np.ldexp(np.append(np.arange(2**8 + 1, 2**9, 2), 3 * 2**7), np.arange(10, 24)[:, None]).ravel()
    ties = np.concatenate([ties - 1, ties, ties + 1])
    return np.concatenate([x, shifted, ties[ties <= info.max].astype(source)])


def every_float32() -> Iterator[Values]:
    """Yield all 2**32 float32 patterns in pieces."""
    for start in range(0, 1 << 32, 1 << 24):
        yield np.arange(start, start + (1 << 24), dtype=np.uint32).view(np.float32)


def exact_values(x: Values) -> Values:
    """Return an array of any float or integer dtype as float64, which must hold it; NaN keeps its sign."""
    with np.errstate(invalid="ignore"):
        v = x.astype(np.float64)
    if x.dtype.kind in "iu":
        assert (v.astype(x.dtype) == x).all()
        return v
    return np.where(np.isnan(v), np.copysign(np.nan, np.where(np.signbit(x), -1.0, 1.0)), v)


def same_number(ours: Fraction | float, theirs: float) -> bool:
    """Say whether two numbers are equal, signs of zero included; a NaN is any NaN."""
    if theirs != theirs:
        return ours != ours
    return ours == theirs and math.copysign(1, ours) == math.copysign(1, theirs)
