"""What is to be explained: the input, the codes that a device made of it, and what can be learnt from both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arguments import along
from ..codes import is_nan
from ..formats import FloatFormat, Format, TaperedFormat

__all__ = ["Case", "Facts", "as_rows", "facts", "plain_nan", "telling_rows"]

Codes = np.ndarray[Any, Any]

_FOLD = 4096


@dataclass(frozen=True)
class Case:
    """An input in rows and columns, and what is known about its conversion.

    Attributes
    ----------
    x : ndarray of shape [rows, columns]
        Values in a dtype that `bittrue.encode` takes.
    source, to : Format
    scale, zero_point : ndarray of that shape, number or None
    options : mapping
        What targets ask for besides: shift, deqscale, quant, mode, relu.
    """

    x: Codes
    source: Format
    to: Format
    scale: Any = None
    zero_point: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scaled(self) -> bool:
        """Whether there is a scale or a zero point."""
        return self.scale is not None or self.zero_point is not None

    def rows(self, pick: Any) -> Case:
        """Return the case of some rows."""
        parts = {n: v[pick] if isinstance(v := getattr(self, n), np.ndarray) else v for n in ("scale", "zero_point")}
        return replace(self, x=np.ascontiguousarray(self.x[pick]), **parts)

    def with_input(self, x: Codes) -> Case:
        """Return the case of another input of any shape, if no scale differs from element to element."""
        return replace(self, x=x)


def as_rows(x: Codes, scale: Any, zero_point: Any, axis: int, fold: bool) -> tuple[Codes, Any, Any]:
    """Return input, scale and zero point as [rows, columns]; with `fold`, one axis becomes several rows."""
    shape = x.shape
    columns = math.gcd(x.size, _FOLD) if x.ndim < 2 and fold else x.size if x.ndim < 2 else shape[-1]
    if scale is not None and not (np.isfinite(scale) & (np.asarray(scale) > 0)).all():
        raise ValueError("scale must be finite and above zero")
    parts = []
    for value, name in ((scale, "scale"), (zero_point, "zero_point")):
        if value is None or np.ndim(value) == 0:
            parts.append(value if value is None else np.asarray(value)[()])
            continue
        found = along(value, x, axis, name, None)
        parts.append(np.ascontiguousarray(np.broadcast_to(found, shape)).reshape(-1, columns))
    return x.reshape(-1, columns), parts[0], parts[1]


@dataclass(frozen=True)
class Facts:
    """Which rules the input can tell apart."""

    nan: bool
    infinite: bool
    overflowing: bool
    negative: bool
    small: bool
    subnormal: bool

    def untested(self, to: Format) -> list[str]:
        """Return what the input says nothing about."""
        found = []
        if not self.nan:
            found.append("NaN rule (no NaN in the input)")
        if not self.overflowing and not self.infinite:
            found.append("overflow rule (nothing beyond the range)")
        if isinstance(to, (FloatFormat, TaperedFormat)) and not self.small and not self.subnormal:
            found.append("flushing of subnormals (no such value)")
        return found


def facts(case: Case) -> Facts:
    """Look through the input."""
    x, to = case.x, case.to
    if x.dtype.kind not in "biuf":
        x = x.astype(np.float32)
    if x.dtype.kind in "biu":
        values = x.astype(np.float64)
        nan = infinite = subnormal = False
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            values = x.astype(np.float64)
        nan, infinite = bool(np.isnan(values).any()), bool(np.isinf(values).any())
        least = float(case.source.min_normal) if isinstance(case.source, (FloatFormat, TaperedFormat)) else 0.0
        subnormal = bool(((np.abs(values) < least) & (values != 0)).any())
    if case.scale is not None:
        with np.errstate(all="ignore"):
            values = values / case.scale
    if case.zero_point is not None:
        values = values + case.zero_point
    if to.kind == "block":
        return Facts(nan, infinite, False, bool((values < 0).any()), False, subnormal)
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(values)
        over = bool((finite & ((values > float(to.max)) | (values < float(to.min)))).any())
        small = (np.abs(values) < float(to.min_normal)) & (values != 0)
        return Facts(nan, infinite, over, bool((values < 0).any()), bool(small.any()), subnormal)


def plain_nan(codes: Codes, f: Format) -> Codes:
    """Return the codes with every NaN as the canonical one, so that NaNs count as equal."""
    if not isinstance(f, (FloatFormat, TaperedFormat)) or f.nan_code is None:
        return codes
    nan = is_nan(codes, f)
    if not nan.any():
        return codes
    canonical = np.array([f.nan_code], f.code_dtype).view(f.storage)[0]
    return np.where(nan, canonical, codes)


def telling_rows(case: Case, count: int) -> Codes:
    """Return the numbers of about `count` rows, evenly spread, and of some with each kind of special input."""
    rows = case.x.shape[0]
    with np.errstate(invalid="ignore"):
        x = np.abs(case.x.astype(np.float32)) if case.x.dtype.kind not in "biu" else np.abs(case.x.astype(np.float64))
    picked = [np.unique(np.linspace(0, rows - 1, count).astype(np.int64))]
    if case.to.kind != "block":
        with np.errstate(all="ignore"):
            size = x if case.scale is None else x / np.abs(case.scale)
        tiny = x != 0
        special = (
            np.isnan(x),
            np.isinf(x),
            size > float(case.to.max),
            tiny & (size < float(case.to.min_normal)),
            tiny & (x < 2.0**-126),
        )
        picked += [np.flatnonzero(kind.any(axis=1))[:4] for kind in special]
        picked += [np.unique(x.argmax(axis=0)[:4]), np.flatnonzero((x == 0).any(axis=1))[:2]]
    return np.unique(np.concatenate(picked))
