"""Inputs on which rules differ: values, midpoints and their neighbours, limits, specials; no rules here."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..codec import decode
from ..formats import FloatFormat, Format, TaperedFormat
from .case import Case

__all__ = ["probe_case", "simplicity"]

Codes = np.ndarray[Any, Any]

_MOST = 1 << 13


def probe_case(case: Case) -> Case:
    """Return a case whose input tells rules apart, one probe a row; scales per element become their first one."""
    values = {n: v if v is None or np.ndim(v) == 0 else np.asarray(v).reshape(-1)[0]
              for n in ("scale", "zero_point") for v in (getattr(case, n),)}
    rng = np.random.default_rng(0)
    if case.to.kind == "block":
        x = _blocks(case, rng)
    else:
        x = _numbers(case, values["scale"], values["zero_point"], rng)
        x = x[simplicity(x).argsort(kind="stable")][:, None]
        columns = getattr(case.options.get("quant"), "columns", None) or np.size(case.options.get("quant", 0))
        if columns > 1:
            x = np.repeat(x, columns, axis=1)
    return Case(np.ascontiguousarray(x), case.source, case.to, values["scale"], values["zero_point"], case.options)


def _numbers(case: Case, scale: Any, zero_point: Any, rng: np.random.Generator) -> Codes:
    kind = case.x.dtype
    wanted = _boundaries(case.to, rng)
    if zero_point is not None:
        wanted = wanted - float(zero_point)
    if scale is not None:
        wanted = wanted * float(scale)
    quant = case.options.get("quant")
    if quant is not None:
        first = np.asarray(getattr(quant, "scale", 1.0), np.float64).reshape(-1)[0]
        wanted = np.concatenate([wanted / (first or 1.0), np.arange(-300.0, 300.0)])
    if case.options.get("shift"):
        wanted = np.ldexp(wanted, int(case.options["shift"]))
    if kind.kind in "iu":
        info = np.iinfo(kind)
        numbers = np.concatenate([np.floor(wanted), np.ceil(wanted), np.arange(-300.0, 300.0)])
        numbers = numbers[np.isfinite(numbers) & (numbers >= float(info.min)) & (numbers < float(info.max))]
        ends = np.array([info.min, info.max], kind)
        return np.unique(np.concatenate([numbers.astype(kind), ends]))
    with np.errstate(all="ignore"):
        near = wanted.astype(kind)
        inf = kind.type(np.inf)
        found = [near, np.nextafter(near, inf), np.nextafter(near, -inf)] if kind.kind == "f" else [near]
        specials = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32).astype(kind)
    found += [specials, _subnormals(case.source, kind)]
    x = np.concatenate([np.asarray(f, kind) for f in found])
    patterns = x.view(f"u{kind.itemsize}")
    return np.unique(patterns).view(kind)


def _subnormals(source: Format, kind: Any) -> Codes:
    if not isinstance(source, (FloatFormat, TaperedFormat)):
        return np.zeros(0, kind)
    least = float(source.min_subnormal)
    return np.asarray(np.array([least, -least, float(source.min_normal) / 2, float(source.min_normal)])).astype(kind)


def _boundaries(to: Format, rng: np.random.Generator) -> Codes:
    """Return values of a format, the midpoints between them, quarters, and what lies beyond."""
    if to.bits <= 16:
        table = np.asarray(decode(np.arange(1 << to.bits).astype(to.storage), to, np.float64))
        values = np.unique(table[np.isfinite(table)])
    else:
        patterns = rng.integers(0, 1 << min(to.bits, 63), _MOST, dtype=np.uint64).astype(to.code_dtype)
        with np.errstate(invalid="ignore"):
            table = np.asarray(decode(patterns.view(to.storage), to, np.float64))
        values = np.unique(table[np.isfinite(table)])
        ones = np.ldexp(1.0, -getattr(to, "mantissa_bits", 20))
        values = np.unique(np.concatenate([values, 1 + ones * np.arange(9)]))
    if values.size > _MOST // 4:
        middle = int(np.searchsorted(values, 1.0))
        keep = np.unique(np.concatenate([
            np.arange(32), np.arange(values.size - 32, values.size), np.arange(max(middle - 64, 0), middle + 64),
            np.searchsorted(values, 0.0) + np.arange(-32, 32), rng.integers(0, values.size, _MOST // 4),
        ]))
        values = values[keep[(keep >= 0) & (keep < values.size)]]
    a, b = values[:-1], values[1:]
    with np.errstate(over="ignore"):  # float64's own limits; infinities are probes too
        far = values[-1] * np.array([1.01, 1.07, 1.5, 2.0, 4.0, 1e6])
        step = values[-1] - values[-2]
        far = np.concatenate([far, -far, values[-1] + step * np.array([0.25, 0.5, 0.75, 1.0]), values[0] - step *
                              np.array([0.25, 0.5, 0.75, 1.0])])
        return np.concatenate([values, (a + b) / 2, a + (b - a) * 0.25, a + (b - a) * 0.75, far])


def _blocks(case: Case, rng: np.random.Generator) -> Codes:
    """Return blocks of small multiples, of ties and of values just below powers of two."""
    size: int = case.to.block_size  # type: ignore[attr-defined]
    x = rng.integers(-255, 256, (96, size)) / 2.0 ** rng.integers(0, 9, (96, size))
    x[:32] = rng.integers(-16, 17, (32, size)) / 8
    x[32:48] *= np.where(rng.random((16, size)) < 0.3, 1 - 2.0**-9, 1)
    x[48, :] = 0
    x[49, :] = 2.0**-130
    x[49, 0] = 2.0**-126
    return np.ascontiguousarray(x.astype(case.x.dtype))


def simplicity(x: Codes) -> Codes:
    """Return a number that is small for inputs that are easily written: few significant bits, ordinary size."""
    with np.errstate(all="ignore"):
        v = np.abs(np.asarray(x).astype(np.float64))
        special = ~np.isfinite(v)
        v = np.where(special | (v == 0), 1.0, v)
        mantissa, exponent = np.frexp(v)
        whole = np.ldexp(mantissa, 53).astype(np.uint64)
        low = whole & (~whole + np.uint64(1))
        digits = 53 - np.log2(low.astype(np.float64))
        cost = digits + np.abs(exponent - 1) / 4 + (np.asarray(x).astype(np.float64) < 0) * 0.5
    return np.where(special, 30.0, cost)
