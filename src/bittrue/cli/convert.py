"""`bittrue convert`: the arguments, the progress bar and the table around `bittrue.convert`."""

from __future__ import annotations

import dataclasses
import math
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from ..convert import TensorReport
from ..convert import convert as run_convert
from ..files import INDEX_SUFFIX, RAW_SUFFIXES
from ..formats import Format, format
from ..kinds.block import BlockFormat, BlockRule
from ..rounding import Rule
from .arguments import checkpoint_of, parse_shape, quiet_cluster
from .output import console, middle, print_json, table
from .progress import Bar

__all__ = ["convert"]


def convert(
    source: str,
    name: str,
    output: str | None,
    rule: Rule | BlockRule,
    include: Sequence[str],
    exclude: Sequence[str],
    force: bool,
    threads: int | None,
    source_format: str | None,
    source_shape: str | None,
    product: str | None,
    mode: str | None,
    saturation: str | None,
    as_json_text: bool,
    axis: int | None = None,
    convention: str | None = None,
    scheduler: str | None = None,
) -> bool:
    """Convert a file, print what that did to each tensor, and return whether the output has all of them."""
    f = format(name)
    if isinstance(f, BlockFormat):
        if product is not None:
            raise ValueError(
                f"--target {product}: no product casts to the block format {f.name}; leave it out and choose with "
                f"--rounding (an AI Engine's register says floor at reset)"
            )
        from .blocks import convention_of

        f = convention_of(f, convention)
    elif axis is not None or convention is not None:
        raise ValueError(f"--axis and --convention are for block formats, not for {f.name}")
    source = checkpoint_of(source)
    if source.lower().endswith(RAW_SUFFIXES) and source_format is None:
        raise ValueError(f"{source}: a raw file does not tell its format; give --format (and --shape)")
    target = output or default_output(source, f)
    shape, about = parse_shape(source_shape), ""
    if product is not None:
        from .rules import file_rule

        rule, about = file_rule(source, product, mode, saturation, f.name, include, exclude, source_format, shape)
    quiet_cluster(scheduler)
    started = time.perf_counter()
    with Bar() as bar:
        reports = run_convert(
            source,
            target,
            f,
            rule=rule,
            include=list(include) or None,
            exclude=list(exclude) or None,
            force=force,
            threads=threads,
            progress=bar.show,
            source_format=source_format,
            source_shape=shape,
            axis=axis,
            scheduler=scheduler,
        )
    seconds = time.perf_counter() - started
    if as_json_text:
        print_json(
            {
                "input": source,
                "output": target,
                "format": f.name,
                "rule": _rule_dict(rule),
                **({"target": about} if about else {}),
                "seconds": round(seconds, 3),
                **{n: sum(getattr(r, n) for r in reports) for n in ("elements", "bytes_before", "bytes_after")},
                "tensors": [_report_dict(r) for r in reports],
            }
        )
    else:
        _print_table(reports)
        if about:
            print(f"\n{about}")
        converted, copied = _count_words(reports)
        print(f"\nwrote {target}: {converted} to {f.name}{_rule_words(rule, f)}{copied} in {seconds:.2f} s")
    left_out = [r for r in reports if r.skipped]
    for r in left_out:
        print(f"warning: {r.name}: dtype {r.source!r} is not known; left out of {target}", file=sys.stderr)
    return not left_out


def default_output(source: str, f: Format) -> str:
    """Return where the output goes when nobody says: beside the input, with the format in the name.

    Examples
    --------
    >>> from bittrue import format
    >>> default_output("a/model.safetensors", format("bf16"))
    'a/model.bfloat16.safetensors'
    >>> default_output("a/model.safetensors.index.json", format("bf16"))
    'a/model.bfloat16'
    """
    if source.lower().endswith(INDEX_SUFFIX):
        return f"{source[: -len(INDEX_SUFFIX)]}.{f.name}"
    stem, suffix = os.path.splitext(source)
    return f"{stem}.{f.name}{suffix}"


# --- report -----------------------------------------------------------------------------------------------------------


_FIGURES = ("elements", "bytes", "after", "SQNR dB", "abs err", "rel err", "overfl.", "to zero", "NaN")


def _print_table(reports: Sequence[TensorReport]) -> None:
    screen = console()
    rows = [_row(r) for r in reports]
    total = _total(reports)
    used = sum(max(map(len, column)) + 1 for column in zip(_FIGURES, *rows, total))
    room = max(screen.width - used, 12)
    shown = table("tensor", *_FIGURES, right=_FIGURES, padding=0)
    for report, row in zip(reports, rows):
        shown.add_row(middle(report.name, room), *row, style=None if report.converted else "dim")
    shown.add_section()
    shown.add_row("total", *total, style="bold")
    screen.print(shown)


def _row(report: TensorReport) -> list[str]:
    sizes = [_amount(report.elements), _amount(report.bytes_before), _amount(report.bytes_after)]
    if not report.converted:
        return [*sizes, "left out" if report.skipped else "copied", "", "", "", "", ""]
    return [
        *sizes,
        _figure(report.sqnr_db, ".1f"),
        _figure(report.max_abs_error, ".3g"),
        _figure(report.max_rel_error, ".3g"),
        *(_amount(n or 0) for n in (report.overflowed, report.flushed_to_zero, report.nan)),
    ]


def _total(reports: Sequence[TensorReport]) -> list[str]:
    converted = [r for r in reports if r.converted]
    worst = [
        max((e for r in converted if (e := getattr(r, name)) is not None), default=None)
        for name in ("max_abs_error", "max_rel_error")
    ]
    return [
        *(_amount(sum(getattr(r, name) for r in reports)) for name in ("elements", "bytes_before", "bytes_after")),
        "",
        *(_figure(value, ".3g") for value in worst),
        *(_amount(sum(getattr(r, name) for r in converted)) for name in ("overflowed", "flushed_to_zero", "nan")),
    ]


def _figure(value: float | None, spec: str) -> str:
    if value is None:
        return ""
    return "exact" if value == math.inf and spec == ".1f" else f"{value:{spec}}"


def _amount(count: int) -> str:
    """Return a count, in full up to five digits, else to three with k, M, G or T."""
    if count < 100_000:
        return str(count)
    for unit in "kMGT":
        count_ = count / 1000 ** ("kMGT".index(unit) + 1)
        if count_ < 999.5:
            return f"{count_:.{2 if count_ < 9.995 else 1 if count_ < 99.95 else 0}f}{unit}"
    return f"{count:.3g}"


def _count_words(reports: Sequence[TensorReport]) -> tuple[str, str]:
    converted = sum(r.converted for r in reports)
    copied = sum(not r.converted and not r.skipped for r in reports)
    return f"{converted} tensor{'s' * (converted != 1)}", f", {copied} copied unchanged" if copied else ""


def _rule_words(rule: Rule | BlockRule, f: Format) -> str:
    usual = _rule_dict(f.rule if isinstance(f, BlockFormat) else Rule())
    changed = {n: v for n, v in _rule_dict(rule).items() if v != usual[n]}
    return f" ({', '.join(f'{n} {v}' for n, v in changed.items())})" if changed else ""


def _rule_dict(rule: Rule | BlockRule) -> dict[str, Any]:
    return {n: getattr(v, "value", v) for n, v in dataclasses.asdict(rule).items() if v is not None or n == "nan_code"}


def _report_dict(report: TensorReport) -> dict[str, Any]:
    """Return a report for JSON, which knows no infinities."""
    data = dataclasses.asdict(report)
    return {n: str(v) if isinstance(v, float) and not math.isfinite(v) else v for n, v in data.items()}
