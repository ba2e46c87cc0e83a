"""`compare`: a device's dump beside the golden data, by a stated standard, in one pass of constant memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from ..codec import decode
from ..files import TensorInfo
from ..formats import ComplexFormat, Format
from ..formats import format as find_format
from .measure import NAN_RULES, ZERO_RULES, Criterion, Figures, Measurement, Mismatch, Plan, rounded
from .place import Axis, Place
from .report import Report, TensorReport
from .sides import Side, check_alike, open_side, select
from .standards import Check, Standard, Test, options_of, standard, standards

__all__ = [
    "Axis",
    "Check",
    "Criterion",
    "Figures",
    "Mismatch",
    "Place",
    "Report",
    "Standard",
    "TensorReport",
    "compare",
    "standards",
]

Codes = np.ndarray[Any, Any]
Progress = Callable[[str, int, int], object]

_READ = 1 << 20  # elements that are read at a time


def compare(
    golden: Any,
    actual: Any,
    standard: str | Standard = "bitwise",
    *,
    format: Format | str | None = None,
    shape: Sequence[int] | None = None,
    third: Any = None,
    wide_golden: bool = False,
    nan: str = "equal",
    zeros: str = "differ",
    tensors: str | Sequence[str] | None = None,
    kept: int = 10,
    progress: Progress | None = None,
    **options: Any,
) -> Report:
    """Compare golden data with what a device produced.

    Parameters
    ----------
    golden, actual : array_like, Array, mapping of names to them, or path
        Arrays have the format of their dtype; paths are .npy, .npz, .safetensors, sharded checkpoints, .bin and .raw.
        Files of several tensors are compared name by name. Files are read in pieces: memory does not grow with them.
    standard : str
        "bitwise", "ulp", "allclose", "absolute", "double_thousandth", "double_ten_thousandth", "mere_mare",
        "double_benchmark" or "mixed_tolerance"; `bittrue.comparison.standards` gives their formulas and sources.
    format : Format or name, optional
        For unsigned arrays, untyped .npy and raw files: the format of the codes in them. A raw file without it takes
        format and shape of the other side.
    shape : sequence of int, optional
        Of raw files.
    third : as actual, optional
        The other implementation of "double_benchmark".
    wide_golden : bool
        The golden data may have another real format than the actual data, such as float64. Errors are then taken from
        the unrounded values, codes are compared with the golden values rounded to nearest even.
    nan : {"equal", "code", "never"}
        Two NaNs are equal always, only if their codes are, or never.
    zeros : {"differ", "equal"}
        Whether +0 and -0 are a mismatch; they are counted apart in any case. Their distance is no ULP.
    tensors : str or sequence of str, optional
        Names of the tensors to compare; ``*``, ``?`` and ``[..]`` match.
    kept : int
        How many of the first and of the worst mismatches to keep.
    progress : callable, optional
        Called with (name, elements done, elements in total).
    **options
        Of the standard: ``max_ulp=1``; ``rtol=, atol=``; ``limit=``; ``reading="vendor"`` or ``"rtol_atol"``,
        ``error="relative"`` or ``"absolute"``, ``tolerance=``; ``threshold=``; ``level="L1"``, ``divisor="error"`` or
        ``"threshold"``, ``small=``, ``small_error=``.

    Returns
    -------
    Report
        True if everything passed. Printing it shows the verdict with the figure that decided, the worst elements with
        their bits, and where the mismatches sit.

    Raises
    ------
    ValueError
        For different shapes, formats or tensor names; unknown standards and options; sizes that do not fit.
    FileError
        For files that cannot be read.

    Notes
    -----
    Errors are in float64: AE = |a - g|, RE = AE / (|g| + 1e-7). Equal NaNs and equal infinities have none; the error
    between a NaN or an infinity and anything else is infinite, and so counts as an outlier. Block formats are compared
    by their values in float32 (bitwise: by their bytes too), complex formats by their parts.

    Examples
    --------
    >>> import numpy as np, bittrue as bt
    >>> x = np.float32([[1.03125, 2.5], [-3.45, 300]])
    >>> golden, device = bt.array(x, "hifloat8"), bt.array(x, "hifloat8", rounding="trunc")
    >>> print(bt.compare(golden, device, "ulp", max_ulp=0))
    FAIL (ulp: distance in representable values <= max_ulp; max_ulp=0): max ULP 1 > 0
      1 of 4 differ (25 %); max 1 ULP, mean 0.25 ULP
      max AE 0.25, MERE 0.01786, MARE 0.07143, RMSE 0.125
      worst:
        [1, 0] golden -3.5 (0x96 = 1 001 0 110), actual -3.25 (0x95 = 1 001 0 101): 1 ULP
    """
    chosen = _standard(standard)
    given = options_of(chosen, options)
    _check_arguments(nan, zeros, kept, third, chosen)
    fmt = None if format is None else find_format(format)
    wide = wide_golden or chosen.third
    with ExitStack() as stack:
        g = open_side(golden, "golden", stack, None if wide else fmt, shape)
        a = open_side(actual, "actual", stack, fmt, shape, g)
        sides = [a] if third is None else [a, open_side(third, "third", stack, fmt, shape, a)]
        names = select(g, a, tensors)
        others = [select(g, s, tensors) for s in sides[1:]]
        for k, (mine, its) in enumerate(names):
            check_alike(g.tensors[mine], a.tensors[its], its, wide)
            for s, pairs in zip(sides[1:], others):
                check_alike(a.tensors[its], s.tensors[pairs[k][1]], its, False, "third")
        total = sum(math.prod(_shape(g.tensors[mine])) for mine, _ in names)
        reports, done = [], 0
        for k, (mine, its) in enumerate(names):
            of = [its, *(pairs[k][1] for pairs in others)]
            job = _Job(chosen, given, g, mine, list(zip(sides, of)), Plan(nan=nan, zeros=zeros, kept=kept), wide)
            for count in job.run():
                done = min(done + count, total)
                if progress is not None:
                    progress(its or mine, done, total)
            reports.append(job.report("" if g.unnamed and a.unnamed else its))
        return Report(chosen.name, _formula(chosen, given), g.label, a.label, reports)


_standard = standard


def _check_arguments(nan: str, zeros: str, kept: int, third: Any, chosen: Standard) -> None:
    for name, value, allowed in (("nan", nan, NAN_RULES), ("zeros", zeros, ZERO_RULES)):
        if value not in allowed:
            raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, allowed))}")
    if isinstance(kept, bool) or not isinstance(kept, (int, np.integer)) or kept < 1:
        raise ValueError(f"kept={kept!r} must be a positive integer")
    if chosen.third and third is None:
        raise ValueError(f"standard={chosen.name!r} compares two implementations with the golden data; give third=")
    if third is not None and not chosen.third:
        raise ValueError(f"third= is for the standard 'double_benchmark', not for {chosen.name!r}")


def _formula(chosen: Standard, given: Mapping[str, Any]) -> str:
    changed = [f"{n}={v!r}" for n, v in given.items() if v is not None and v != chosen.options[n]]
    return chosen.formula + (f"; {', '.join(changed)}" if changed else "")


class _Job:
    """The comparison of one tensor, with the actual data and perhaps a third side."""

    def __init__(
        self,
        chosen: Standard,
        given: Mapping[str, Any],
        golden: Side,
        name: str,
        sides: list[tuple[Side, str]],
        plan: Plan,
        wide: bool,
    ) -> None:
        self._golden, self._name, self._sides = golden, name, sides
        first, its = sides[0]
        source, target = golden.tensors[name], first.tensors[its]
        self._source, self._target = source.format, _part(target.format)
        self._wide = wide and source.format != target.format
        self._test: Test = chosen.prepare(self._target, given)
        plan = Plan(
            self._test.criteria, self._test.everything or self._wide, self._test.floor, plan.nan, plan.zeros, plan.kept
        )
        self._shape = _shape(target)
        self._measured = [Measurement(self._target, self._shape, plan) for _ in sides]
        self._whole = target
        self._codes_decide, self._bytes, self._differing = chosen.name == "bitwise", 0, 0

    def run(self) -> Iterator[int]:
        """Compare piece by piece; yield the number of elements after each."""
        if self._whole.format.kind == "block":
            yield from self._run_blocks()
            return
        size = _READ
        pieces = [side.chunks(name, size) for side, name in [(self._golden, self._name), *self._sides]]
        for golden, *actual in zip(*pieces, strict=True):  # to their ends: there checksums are checked
            exact = None
            if self._wide:
                g, exact = rounded(golden, self._source, self._target)
            else:
                g = _codes(golden, self._source)
            for measured, piece in zip(self._measured, actual):
                measured.add(g, _codes(piece, self._whole.format), exact)
            yield golden.size

    def _run_blocks(self) -> Iterator[int]:
        """Compare the values of blocks, and count the bytes that differ."""
        f: Any = self._whole.format
        size = f.block_bytes * 16 * max(_READ // (16 * f.block_size), 1)
        sides = [(self._golden, self._name), *self._sides]
        scales = [side.scale(name) for side, name in sides]
        if len(set(scales)) > 1:
            raise ValueError(f"the scales of the whole tensor differ: {', '.join(map(str, scales))}")
        for golden, *actual in zip(*(side.raw(name, size) for side, name in sides), strict=True):
            self._bytes += golden.size
            self._differing += int(np.count_nonzero(golden != actual[0]))
            g = decode(golden, f, np.float32, scale=scales[0])
            for measured, piece in zip(self._measured, actual):
                measured.add(g, decode(piece, f, np.float32, scale=scales[0]))
            yield golden.size // f.block_bytes * f.block_size

    def report(self, name: str) -> TensorReport:
        """Return the report of the tensor."""
        ours = self._measured[0]
        figures = ours.figures()
        third = self._measured[1].figures() if len(self._measured) > 1 else None
        checks = self._test.judge(figures, third)
        notes = [self._test.note] if self._test.note else []
        if self._whole.format.kind == "block":
            notes.append(f"values of {self._whole.format.name} compared in float32, the axis of its blocks last")
            if self._codes_decide:
                n = self._differing
                text = f"{n} of {self._bytes} bytes differ" if n else f"all {self._bytes} bytes are equal"
                checks = [Check("bytes", n, 0, n == 0, text), *checks]
        return TensorReport(
            name, self._target, self._shape, all(c.passed for c in checks), checks, figures,
            ours.first(), ours.worst(), ours.place(), "; ".join(notes),
        )


def _part(f: Format) -> Format:
    """Return the format whose codes are compared."""
    if isinstance(f, ComplexFormat):
        return f.part
    return find_format("float32") if f.kind == "block" else f


def _shape(info: TensorInfo) -> tuple[int, ...]:
    """Return the shape of what is compared: with padding and the axis of blocks last, and the parts of complex."""
    if info.axis is not None:
        f: Any = info.format
        others = [n for i, n in enumerate(info.shape) if i != info.axis]
        return (*others, f.blocks(info.shape[info.axis]) * f.block_size)
    return (*info.shape, 2) if isinstance(info.format, ComplexFormat) else info.shape


def _codes(codes: Codes, f: Format) -> Codes:
    """Return the codes that are compared: those of both parts for complex formats."""
    if isinstance(f, ComplexFormat):
        return np.ascontiguousarray(codes).view(f.part.code_dtype).view(f.part.storage)
    return codes
