"""`bittrue compare`: the arguments, the progress bar and the tables around `bittrue.compare`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ..comparison import Mismatch, Report, TensorReport, compare
from ..comparison.report import code_text, ulp_text, value_text
from ..formats import Format
from .arguments import check_outputs, one_array, or_hex, parse_shape, rows_of
from .output import console, middle, print_json, table
from .progress import Bar

__all__ = ["compare_files"]

_SHOWN = 8  # tensors that fail and are shown in full


def compare_files(
    golden: str,
    actual: str,
    standard: str,
    third: str | None,
    format: str | None,
    shape: str | None,
    layout: str | None,
    tensors: Sequence[str],
    html: str | None,
    force: bool,
    as_json_text: bool,
    **options: Any,
) -> bool:
    """Compare two files, print the report, and return whether everything passed."""
    check_outputs([html], [golden, actual, third], force)
    given = {name: value for name, value in options.items() if value is not None}
    sizes = parse_shape(shape)
    reference, dump = or_hex(golden, format, "--format"), or_hex(actual, format, "--format")
    if layout is not None:
        matrix = one_array(golden, format, sizes)
        dump = rows_of(actual, layout, matrix.format, matrix.shape)
    started = time.perf_counter()
    with Bar() as bar:
        report = compare(
            reference, dump, standard, third=third, format=format, shape=sizes,
            tensors=list(tensors) or None, progress=bar.show, **given,
        )
    seconds = time.perf_counter() - started
    if html is not None:
        report.to_html(html, force=force)
    if as_json_text:
        print_json({**report.to_dict(), "seconds": round(seconds, 3), **({"html": html} if html else {})})
    else:
        _print(report)
        where = f"; wrote {html}" if html else ""
        print(f"\ncompared {report.elements:,} elements in {seconds:.2f} s{where}")
    return report.passed


def _print(report: Report) -> None:
    screen = console()
    style = "bold green" if report.passed else "bold red"
    screen.print(f"{'PASS' if report.passed else 'FAIL'} {report.reason}", style=style)
    screen.print(f"standard {report.standard}: {report.formula}", style="dim")
    if len(report.tensors) > 1:
        heads = ("elements", "differ", "max ULP", "MERE", "MARE")
        shown = table("tensor", "format", *heads, "", right=heads)
        for t in report.tensors:
            f = t.figures
            shown.add_row(
                middle(t.name, 40), t.format.name, f"{f.elements:,}", f"{f.mismatches:,}", f"{f.max_ulp:,}",
                f"{f.mean_rel:.3g}", f"{f.max_rel:.3g}", "pass" if t.passed else "FAIL",
                style=None if t.passed else "red",
            )
        screen.print()
        screen.print(shown)
    wanted = [t for t in report.tensors if not t.passed or (len(report.tensors) == 1 and t.figures.mismatches)]
    for t in wanted[:_SHOWN]:
        _print_tensor(t, screen, len(report.tensors) > 1)


def _print_tensor(t: TensorReport, screen: Any, named: bool) -> None:
    f = t.figures
    screen.print()
    if named:
        screen.print(t.name, style="bold")
    for check in t.checks if named else t.checks[1:]:
        screen.print(f"  {check.text}", style=None if check.passed else "red")
    if t.note:
        screen.print(f"  note: {t.note}")
    if not f.mismatches:
        return
    screen.print(f"  {f.mismatches:,} of {f.elements:,} differ ({100 * f.ratio:.3g} %); {ulp_text(f)}")
    screen.print(f"  max AE {f.max_abs:.4g}, MERE {f.mean_rel:.4g}, MARE {f.max_rel:.4g}, RMSE {f.rmse:.4g}")
    if f.signed_zeros:
        screen.print(f"  {f.signed_zeros:,} differ in the sign of zero")
    for text in t.place.findings:
        screen.print(f"  where: {text}")
    title = "  worst pairs of codes, where they come first" if t.format.bits <= 8 else "  worst"
    screen.print(_mismatches(title, t.worst, t.format))
    if [m.index for m in t.first] != [m.index for m in t.worst]:
        screen.print(_mismatches("  first", t.first[:5], t.format))


def _mismatches(title: str, found: Sequence[Mismatch], f: Format) -> Any:
    right = ("golden", "actual", "ULP", "times")
    names = ("  index", "golden", "code", "actual", "code", "ULP", "times")
    shown = table(*names, right=right, title=title, padding=(0, 1, 0, 0))  # the bits of both codes fit in 80 columns
    for m in found:
        shown.add_row(
            f"  [{', '.join(map(str, m.index))}]", value_text(m.golden_value), code_text(m.golden, f),
            value_text(m.actual_value), code_text(m.actual, f), "NaN" if m.steps is None else f"{m.steps:,}",
            f"{m.repeated:,}" if m.repeated > 1 else "",
        )
    return shown
