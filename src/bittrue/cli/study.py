"""`bittrue study`: the arguments, the progress bar, the journal and the tables around `bittrue.study`."""

from __future__ import annotations

import hashlib
import math
import os
import sys
import time
from collections.abc import Sequence

from ..files import AtomicFile
from ..studying import DEFAULT_FORMATS, Study, study
from .arguments import check_outputs, checkpoint_of, quiet_cluster
from .output import console, middle, print_json, table
from .progress import Bar

__all__ = ["study_file"]

_WORST = 8


def study_file(
    source: str,
    formats: str | None,
    granularity: str,
    scale: str,
    include: Sequence[str],
    exclude: Sequence[str],
    html: str | None,
    csv: str | None,
    force: bool,
    threads: int | None,
    resume: str | None,
    scheduler: str | None,
    as_json_text: bool,
) -> bool:
    """Study a file, print what was found, and return whether every tensor could be studied."""
    source = checkpoint_of(source)
    check_outputs([html, csv], [source], force)
    names = [n.strip() for n in formats.split(",") if n.strip()] if formats else list(DEFAULT_FORMATS)
    quiet_cluster(scheduler)
    started = time.perf_counter()
    with Bar() as bar:
        found = study(
            source, names, granularity=granularity, scale=scale, include=list(include) or None,
            exclude=list(exclude) or None, threads=threads, progress=bar.show,
            resume=resume or _journal(source, [names, granularity, scale, list(include), list(exclude)]),
            scheduler=scheduler,
        )
    seconds = time.perf_counter() - started
    if html is not None:
        found.to_html(html, force=force)
    if csv is not None:
        with AtomicFile(csv, force) as file:
            file.write(found.to_csv().encode())
    if as_json_text:
        print_json({**found.to_dict(), "seconds": round(seconds, 3)})
    else:
        _print(found)
        wrote = "".join(f"; wrote {output}" for output in (html, csv) if output)
        things = ((len(found.tensors), "tensor"), (len(found.trials), "format"))
        counts = [f"{n} {what}{'s' * (n != 1)}" for n, what in things]
        print(f"\nstudied {counts[0]} in {counts[1]} in {seconds:.2f} s{wrote}")
    strange = [s for s in found.skipped if not s.expected]
    for s in strange:
        print(f"warning: {s.tensor}: {s.format} tensors cannot be studied; skipped", file=sys.stderr)
    return not strange


def _journal(source: str, options: object) -> str | None:
    """Return where an interrupted study is kept: in the user's cache, named after the file and the options."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(home, "bittrue")
    try:
        status = os.stat(source)
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return None
    about = repr([os.path.abspath(source), status.st_size, status.st_mtime_ns, options])
    name = os.path.join(folder, f"study-{hashlib.sha256(about.encode()).hexdigest()[:24]}.jsonl")
    return name if os.access(folder, os.W_OK) else None


def _print(found: Study) -> None:
    screen = console()
    heads = ("bits", "bytes", "SQNR\ndB", "median", "least", "mean\nrel", "overfl.\n%", "underfl.\n%")
    shown = table("format", "", *heads, "worst\ntensor", right=heads, padding=(0, 1, 0, 0))  # fits in 80 columns
    for s in found.summary:
        shown.add_row(
            s.format, "*" if s.pareto else "", f"{float(s.bits_per_value):.3f}", f"{s.nbytes:,}", _db(s.sqnr_db),
            _db(s.median_sqnr_db), _db(s.min_sqnr_db), f"{s.mean_rel_error:.3g}", f"{100 * s.overflowed:.3g}",
            f"{100 * s.underflowed:.3g}", middle(s.worst, 40), style="bold" if s.pareto else None,
        )
    screen.print(shown)
    screen.print("* Pareto front: no format has fewer bits and no less SQNR", style="dim")
    if len(found.tensors) > 1:
        medians = {s.format: s.median_sqnr_db for s in found.summary}
        right = ("SQNR dB", "median")
        worst = table("tensor", "in format", *right, right=right, title="tensors that suffer most")
        for c in found.worst[:_WORST]:
            worst.add_row(middle(c.tensor, 48), c.format, _db(c.sqnr_db), _db(medians[c.format]))
        screen.print()
        screen.print(worst)


def _db(value: float) -> str:
    return "exact" if value == math.inf else f"{value:.1f}"
