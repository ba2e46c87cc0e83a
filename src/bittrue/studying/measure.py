"""One tensor in one format: its scales, what becomes of its values, the figures; in up to three passes of pieces."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from ..codec import quantize
from ..convert.limits import ceiling, overflow_limits
from ..formats import Format
from ..formats import format as find_format
from ..kinds.block import BlockFormat, BlockRule, Nonfinite
from ..rounding import Rule
from .plan import Trial, largest_precise
from .report import Cost, Spread
from .values import Layout, Values

__all__ = ["measure", "spread"]

Plain = np.ndarray[Any, Any]

_RATIOS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3)
_LEAST, _MOST = np.float32(2.0**-126), np.finfo(np.float32).max  # a scale is a float32


def measure(name: str, values: Values, trial: Trial, source: str) -> Cost:
    """Return what a format does to a tensor; `source` is the name of the tensor's own format."""
    from ..kernels.study import errors

    layout = Layout(values.shape, trial)
    low, high = _limits(trial.format, values.dtype)
    sums, counts = np.zeros(4), np.zeros(4, np.int64)
    for piece, scaled, result in _results(values, layout, trial):
        errors(piece, scaled, result, low, high, sums, counts)
    signal, noise, relative, largest = (float(s) for s in sums)
    elements = int(np.prod(values.shape, dtype=object))
    return Cost(
        name, trial.label, source, tuple(values.shape), elements, trial.nbytes(values.shape, layout.scales), signal,
        noise, largest, relative / int(counts[0]) if counts[0] else 0.0, int(counts[1]), int(counts[2]), int(counts[3]),
    )


def spread(values: Values) -> Spread:
    """Return how far the values lie below the largest."""
    whole = Layout(values.shape, Trial(find_format("float32")))
    return Spread.of(piece for _, piece in whole.pieces(values))


def _results(values: Values, layout: Layout, trial: Trial) -> Iterator[tuple[Plain, Plain, Plain]]:
    """Yield values, values over their scale, and what becomes of the values."""
    fmt = trial.format
    if isinstance(fmt, BlockFormat):
        tensor = _shared_scales(values, layout, trial)[0, 0] if trial.scaled_tensor else None
        rule = _keeping(fmt)
        for _, piece in layout.pieces(values):
            with np.errstate(all="ignore"):
                scaled = piece if tensor is None else piece / tensor
                yield piece, scaled, np.asarray(quantize(piece, fmt, threads=1, scale=tensor, rule=rule))
        return
    if trial.scale == "none":
        for _, piece in layout.pieces(values):
            yield piece, piece, np.asarray(quantize(piece, fmt, threads=1))
        return
    shared = None if layout.local else _shared_scales(values, layout, trial)
    for cell, piece in layout.pieces(values):
        with np.errstate(all="ignore"):
            scale = _local_scales(piece, layout, trial) if shared is None else shared[cell]
            scaled = piece / scale
            result = np.asarray(quantize(scaled, fmt, threads=1))
            result *= scale
        yield piece, scaled, result


def _keeping(fmt: BlockFormat) -> BlockRule | None:
    """Return the rule of a block format, made not to raise for Inf and NaN."""
    return BlockRule(nonfinite=Nonfinite.saturate) if fmt.rule.nonfinite is Nonfinite.raise_ else None


def _limits(fmt: Format, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return between which values nothing overflows; of a block format, its whole range."""
    if isinstance(fmt, BlockFormat):
        high = ceiling(fmt.max * (1 + Fraction(1, 1 << 20)), dtype)  # a scale that was rounded down is no overflow
        return -high, high
    low, high = overflow_limits(fmt, Rule(), find_format(dtype))
    return -ceiling(-low, dtype), ceiling(high, dtype)


# --- scales -----------------------------------------------------------------------------------------------------------


def _from_largest(largest: Plain, trial: Trial) -> Plain:
    """Return the scales (float32) of elements with these largest magnitudes, before any search."""
    top = largest_precise(trial.format)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        if trial.scale == "power_of_two" and not isinstance(trial.format, BlockFormat):
            fraction, exponent = np.frexp(largest / top)
            exact = np.ldexp(1.0, np.clip(exponent - (fraction == 0.5), -126, 127))
            return np.asarray(np.where(largest > 0, exact, 1), np.float32)
        scaled = np.clip((largest / top).astype(np.float32), _LEAST, _MOST)
        return np.asarray(np.where(largest > 0, scaled, np.float32(1)))


def _magnitudes(piece: Plain) -> Plain:
    size = np.abs(piece)
    size[~np.isfinite(size)] = 0
    return size


def _squares(piece: Plain, scale: Plain, fmt: Format) -> Plain:
    """Return the squared errors under a scale; of what is not finite, 0."""
    with np.errstate(all="ignore"):
        error = np.asarray(quantize(piece / scale, fmt, threads=1)).astype(np.float64) * scale - piece
        error[~np.isfinite(error)] = 0
        error *= error
    return error


def _shared_scales(values: Values, layout: Layout, trial: Trial) -> Plain:
    """Return the scales of a tensor whose pieces have one each."""
    largest = np.zeros(layout.cells())
    for cell, piece in layout.pieces(values):
        largest[cell] = max(largest[cell], float(_magnitudes(piece).max()))
    scales = _from_largest(largest, trial)
    if trial.scale != "mse" or isinstance(trial.format, BlockFormat):
        return scales
    tried = [np.maximum(scales * np.float32(ratio), _LEAST) for ratio in _RATIOS]
    noise = np.zeros((len(tried), *scales.shape))
    for cell, piece in layout.pieces(values):
        for k, candidates in enumerate(tried):
            noise[k][cell] += _squares(piece, candidates[cell], trial.format).sum()
    return np.asarray(np.take_along_axis(np.stack(tried), noise.argmin(axis=0)[None], axis=0)[0])


def _local_scales(piece: Plain, layout: Layout, trial: Trial) -> Plain:
    """Return the scales of a piece that holds all elements they depend on, repeated over these."""
    group = layout.group
    assert group is not None
    edges = np.arange(0, piece.shape[1], group)

    def repeated(scales: Plain) -> Plain:
        return scales if len(edges) == 1 else np.repeat(scales, group, axis=1)[:, : piece.shape[1]]

    largest = np.maximum.reduceat(_magnitudes(piece), edges, axis=1).astype(np.float64)
    best = _from_largest(largest, trial)
    if trial.scale != "mse":
        return repeated(best)
    least, base = np.full(best.shape, np.inf), best
    for ratio in _RATIOS:
        tried = np.maximum(base * np.float32(ratio), _LEAST)
        noise = np.add.reduceat(_squares(piece, repeated(tried), trial.format), edges, axis=1)
        best, least = np.where(noise < least, tried, best), np.minimum(noise, least)
    return repeated(best)
