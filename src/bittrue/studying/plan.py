"""What a study tries: a format with the granularity and the choice of its scales, and the scales themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codec import quantize
from ..files.base import image_bytes
from ..formats import ComplexFormat, Format, TaperedFormat, floor_log2
from ..formats import format as find_format
from ..kinds.block import BlockFormat, ScaledFormat
from ..rounding import suggestion

__all__ = ["SCALES", "Trial", "Pieces", "largest_precise", "matrix_shape", "parse_trial", "scales_of"]

Values = np.ndarray[Any, Any]

#: How a scale is chosen, and the bits that it takes.
SCALES = {"none": 0, "absmax": 32, "power_of_two": 8, "mse": 32}
_RATIOS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3)
_LEAST = np.float32(2.0**-126)
_PIECE = 1 << 18  # elements at work at a time: they stay in the second-level cache


@dataclass(frozen=True)
class Trial:
    """A format and how values are scaled into it.

    Attributes
    ----------
    format : Format
    granularity : str
        "tensor", "channel" (the first axis of tensors of two and more) or "group:N" (along the other axes as one).
    scale : str
        "none", "absmax" (largest magnitude to largest value; for tapered formats to the largest value with all fraction
        bits, 15 for hifloat8), "power_of_two" (the smallest that is not less) or "mse" (the best of 15 scales from
        absmax down to 0.3 of it, by squared error). Block formats bring scales of their
        own; of NVFP4 "none" drops the scale of the whole tensor.
    """

    format: Format
    granularity: str = "tensor"
    scale: str = "absmax"

    @property
    def group(self) -> int | None:
        """Elements per group, of "group:N"."""
        return int(self.granularity[6:]) if self.granularity.startswith("group:") else None

    @property
    def label(self) -> str:
        """The name in reports, from which `parse_trial` makes the same trial.

        Examples
        --------
        >>> parse_trial("int8@channel").label, parse_trial("mx9").label, parse_trial("int4", "group:32", "mse").label
        ('int8@channel', 'mx9', 'int4@group:32@mse')
        """
        if isinstance(self.format, BlockFormat):
            bare = isinstance(self.format, ScaledFormat) and self.format.tensor_scale and self.scale == "none"
            return f"{self.format.name}@none" if bare else self.format.name
        parts = [self.format.name]
        if self.scale == "none":
            return f"{self.format.name}@none"
        if self.granularity != "tensor":
            parts.append(self.granularity)
        if self.scale != "absmax":
            parts.append(self.scale)
        return "@".join(parts)

    def nbytes(self, shape: tuple[int, ...], scales: int) -> int:
        """Return the bytes of a tensor's memory image and of so many scales."""
        count = math.prod(shape)
        if isinstance(self.format, BlockFormat):
            rows, length = matrix_shape(shape)
            return rows * self.format.blocks(length) * self.format.block_bytes + 4 * scales
        return image_bytes(self.format, count) + scales * SCALES[self.scale] // 8


def parse_trial(given: Any, granularity: str = "tensor", scale: str = "absmax") -> Trial:
    """Return the trial of a format or of text such as "int8@group:128@mse"; the arguments are for what it leaves open.

    Raises
    ------
    ValueError
        For an unknown format, granularity or choice of scale, and for complex formats.
    """
    if isinstance(given, Trial):
        return given
    name, *options = given.split("@") if isinstance(given, str) else (given,)
    for option in options:
        if option in SCALES:
            scale = option
        else:
            granularity = option
    fmt = find_format(name)
    if isinstance(fmt, ComplexFormat) or fmt.kind == "bool":
        raise ValueError(f"formats: {fmt.name} is no format for real tensors")
    if scale not in SCALES:
        raise ValueError(f"scale={scale!r} is not a choice of scale{suggestion(scale, SCALES)} ({', '.join(SCALES)})")
    known = granularity in ("tensor", "channel")
    if not known and not (granularity.startswith("group:") and granularity[6:].isdecimal() and int(granularity[6:])):
        raise ValueError(
            f"granularity={granularity!r} is none of tensor, channel, group:N (N: elements that share a scale), nor "
            f"a choice of scale ({', '.join(SCALES)})"
        )
    return Trial(fmt, granularity, scale)


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return rows and their length: the first axis and all others as one, which is how convolutions are multiplied.

    Examples
    --------
    >>> matrix_shape((64, 32, 3, 3)), matrix_shape((10,)), matrix_shape(())
    ((64, 288), (1, 10), (1, 1))
    """
    count = math.prod(shape)
    if not count:
        return 0, 1
    rows = shape[0] if len(shape) > 1 else 1
    return rows, count // rows


class Pieces:
    """A tensor as a matrix (see `matrix_shape`), cut into pieces, and which scale each element has.

    Attributes
    ----------
    rows : ndarray
        Two-dimensional view of the values.
    scales : tuple of int
        Shape of the array of scales.
    """

    def __init__(self, x: Values, trial: Trial) -> None:
        self.rows = x.reshape(matrix_shape(x.shape))
        count, length = self.rows.shape
        block = trial.format.block_size if isinstance(trial.format, BlockFormat) else 1
        self._group = trial.group if block == 1 else None
        channels = x.shape[0] if trial.granularity == "channel" and x.ndim > 1 and x.size else 1
        self._repeat = count // channels if channels > 1 else 0
        self.scales = (count, -(-length // self._group)) if self._group else (channels if x.size else 0, 1)
        step = block * (self._group or 1)
        self._wide = max(_PIECE // step * step, step)
        self._high = max(_PIECE // max(length, 1), 1)

    def __iter__(self) -> Iterator[tuple[slice, slice]]:
        """Yield slices of rows and columns; columns begin at whole blocks and groups."""
        count, length = self.rows.shape
        for top in range(0, count, self._high):
            for left in range(0, length, self._wide):
                yield slice(top, min(top + self._high, count)), slice(left, min(left + self._wide, length))

    def scale(self, scales: Values, rows: slice, columns: slice) -> Values:
        """Return the scales of a piece in a shape that broadcasts over it."""
        if self._group:
            first = columns.start // self._group
            some = scales[rows, first : -(-columns.stop // self._group)]
            return np.repeat(some, self._group, axis=1)[:, : columns.stop - columns.start]
        if self._repeat:
            own: Values = scales[np.arange(rows.start, rows.stop) // self._repeat]
            return own
        return scales

    def reduce(self, ufunc: np.ufunc, values: Values, into: Values, rows: slice, columns: slice) -> None:
        """Reduce the values of a piece to one per scale and combine them with `into`."""
        if self._group:
            first = columns.start // self._group
            found = ufunc.reduceat(values, np.arange(0, values.shape[1], self._group), axis=1)
            where = into[rows, first : first + found.shape[1]]
            where[...] = ufunc(where, found)
        else:
            found = ufunc.reduce(values, axis=1, keepdims=True)
            at = np.arange(rows.start, rows.stop) // self._repeat if self._repeat else np.zeros(len(found), np.intp)
            ufunc.at(into, at, found)


def scales_of(pieces: Pieces, trial: Trial) -> Values | None:
    """Return the scales (float32) of a tensor, or None where it has none."""
    fmt = trial.format
    own = isinstance(fmt, BlockFormat)
    if trial.scale == "none" or (own and not (isinstance(fmt, ScaledFormat) and fmt.tensor_scale)):
        return None
    largest = np.zeros((1, 1) if own else pieces.scales)
    for at in pieces:
        values = np.abs(pieces.rows[at])
        values[~np.isfinite(values)] = 0
        if own:
            largest[0, 0] = max(largest[0, 0], values.max(initial=0))
        else:
            pieces.reduce(np.maximum, values.astype(np.float64), largest, *at)
    top = largest_precise(fmt)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        if trial.scale == "power_of_two" and not own:
            fraction, exponent = np.frexp(largest / top)
            exact = np.ldexp(1.0, np.clip(exponent - (fraction == 0.5), -126, 127))
            return np.asarray(np.where(largest > 0, exact, 1), np.float32)
        scales = np.where(largest > 0, np.maximum((largest / top).astype(np.float32), _LEAST), np.float32(1))
    return scales if own or trial.scale == "absmax" else _least_squares(pieces, trial, scales)


def largest_precise(fmt: Format) -> float:
    """Return the largest value; of a tapered format the largest one with all its fraction bits."""
    if not isinstance(fmt, TaperedFormat):
        return float(fmt.max)
    bits = {e: e - fmt.quantum_exponent(e) for e in range(floor_log2(fmt.min_normal), floor_log2(fmt.max) + 1)}
    most = max(bits.values())
    return float(2 - 2.0**-most) * 2.0 ** max(e for e, n in bits.items() if n == most)


def _least_squares(pieces: Pieces, trial: Trial, scales: Values) -> Values:
    best, least = scales, np.full(scales.shape, np.inf)
    for ratio in _RATIOS:
        tried = np.maximum(scales * np.float32(ratio), _LEAST)
        noise = np.zeros(scales.shape)
        for at in pieces:
            values = pieces.rows[at]
            scale = pieces.scale(tried, *at)
            with np.errstate(all="ignore"):
                error = quantize(values / scale, trial.format, threads=1).astype(np.float64) * scale - values
            error[~np.isfinite(error)] = 0
            pieces.reduce(np.add, error * error, noise, *at)
        better = noise < least
        best, least = np.where(better, tried, best), np.where(better, noise, least)
    return best
