"""What a study tries: a format with the granularity and the choice of its scales."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..files.base import image_bytes
from ..formats import ComplexFormat, Format, TaperedFormat, floor_log2
from ..formats import format as find_format
from ..kinds.block import BlockFormat, ScaledFormat
from ..rounding import suggestion

__all__ = ["SCALES", "Trial", "largest_precise", "matrix_shape", "parse_trial"]

#: How a scale is chosen, and the bits that it takes.
SCALES = {"none": 0, "absmax": 32, "power_of_two": 8, "mse": 32}


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
            bare = isinstance(self.format, ScaledFormat) and self.format.tensor_scale and not self.scaled_tensor
            return f"{self.format.name}@none" if bare else self.format.name
        parts = [self.format.name]
        if self.scale == "none":
            return f"{self.format.name}@none"
        if self.granularity != "tensor":
            parts.append(self.granularity)
        if self.scale != "absmax":
            parts.append(self.scale)
        return "@".join(parts)

    @property
    def scaled_tensor(self) -> bool:
        """Whether it is a block format that has a scale of the whole tensor besides those of its blocks."""
        return isinstance(self.format, ScaledFormat) and self.format.tensor_scale and self.scale != "none"

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
    if isinstance(fmt, ComplexFormat) or fmt.kind == "bool" or not fmt.max:  # of 1-bit integers it is 0
        raise ValueError(f"formats: {fmt.name} is no format for real tensors")
    if scale not in SCALES:
        raise ValueError(f"scale={scale!r} is not a choice of scale{suggestion(scale, SCALES)} ({', '.join(SCALES)})")
    kind, _, size = granularity.partition(":") if isinstance(granularity, str) else ("", "", "")
    if granularity not in ("tensor", "channel") and not (kind == "group" and size.isdecimal() and int(size)):
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


def largest_precise(fmt: Format) -> float:
    """Return the largest value; of a tapered format the largest one with all its fraction bits."""
    if not isinstance(fmt, TaperedFormat):
        return float(fmt.max)
    bits = {e: e - fmt.quantum_exponent(e) for e in range(floor_log2(fmt.min_normal), floor_log2(fmt.max) + 1)}
    most = max(bits.values())
    return float(2 - 2.0**-most) * 2.0 ** max(e for e, n in bits.items() if n == most)
