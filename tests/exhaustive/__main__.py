"""The command ``make exhaustive``: run what has no result yet, a slice of everything, or write the tables anew."""

from __future__ import annotations

import argparse
import datetime
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import results
from .jobs import Job, Outcome, jobs, total

SLICE = results.ROOT / "build/exhaustive-slice.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the jobs; return 1 where something differs without an explanation."""
    given = _arguments(argv)
    share, shares = given.share
    chosen = [job for job in jobs() if _wanted(job, given)][share - 1 :: shares]
    path = given.results or (SLICE if given.minutes is not None else results.FILE)
    if given.page:
        for page in results.PAGES:
            page.write_text(results.page(page.read_text(encoding="utf-8"), results.load(path)), encoding="utf-8")
        return 0
    if given.list:
        print("\n".join(f"{job.key} ({job.parts} parts)" for job in chosen))
        return 0
    try:
        return run(chosen, path, given.minutes, given.threads, given.seed, given.any_code)
    except KeyboardInterrupt:
        print(f"interrupted; the same command goes on from {path}", file=sys.stderr)
        return 130


def run(
    chosen: Sequence[Job], path: Path, minutes: float | None, threads: int, seed: int, any_code: bool = False
) -> int:
    """Run jobs and keep their results in `path`.

    Without `minutes`, every job that has no result of this code (of any code) is run whole. With it, all jobs get an
    equal share of the time and try their parts in an order drawn from `seed`.
    """
    code, rows = results.digest(), results.load(path) if minutes is None else {}
    if minutes is not None:
        path.unlink(missing_ok=True)
    commit = results.commit()
    todo = [job for job in chosen if not results.done(rows.get(job.key), None if any_code else code)]
    print(f"{len(todo)} of {len(chosen)} jobs to run; code {code}, commit {commit or 'unknown'}, seed {seed}")
    end = None if minutes is None else time.monotonic() + 60 * minutes
    with ThreadPoolExecutor(threads) as pool:
        for number, job in enumerate(todo, start=1):
            began, limit = time.monotonic(), float("inf")
            if end is not None:
                if began >= end:
                    print(f"time is up: {len(todo) - number + 1} jobs had no turn")
                    break
                limit = began + (end - began) / (len(todo) - number + 1)
            outcomes = _run(job, pool, limit, seed)
            outcome, seconds = total(iter(outcomes)), time.monotonic() - began
            today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
            rows[job.key] = results.row(
                job, outcome, len(outcomes), seconds=round(seconds, 1), date=today, commit=commit, digest=code
            )
            results.keep(path, job.key, rows[job.key])
            print(
                f"[{number}/{len(todo)}] {job.key}: {outcome.inputs} inputs, {outcome.differences} differ"
                f"{f', {outcome.explained} explained' * bool(outcome.explained)}, {seconds:.1f} s"
                f"{f'; {outcome.example}' * bool(outcome.example)}",
                flush=True,
            )
    wrong = sum(rows[job.key]["differences"] for job in chosen if job.key in rows)
    print(f"{sum(r['inputs'] for r in rows.values())} inputs in {path}, {wrong} unexplained differences")
    return int(wrong > 0)


def _run(job: Job, pool: ThreadPoolExecutor, limit: float, seed: int) -> list[Outcome]:
    order = list(range(job.parts))
    if limit < float("inf"):
        random.Random(f"{seed} {job.key}").shuffle(order)

    def check(at: int) -> Outcome | None:
        return job.check(order[at]) if at == 0 or time.monotonic() < limit else None

    futures = [pool.submit(check, at) for at in range(job.parts)]
    try:
        return [one for future in futures if (one := future.result()) is not None]
    finally:
        for future in futures:  # after an interruption: what has not begun never will
            future.cancel()


def _wanted(job: Job, given: argparse.Namespace) -> bool:
    asked = {
        job.source: given.sources,
        job.target: given.formats,
        job.rounding: given.modes,
        job.overflow: given.overflows,
    }
    return all(not names or value in names for value, names in asked.items()) and (given.oracle or "") in job.oracle


def _share(text: str) -> tuple[int, int]:
    share, shares = map(int, text.split("/"))
    if not 1 <= share <= shares:
        raise ValueError(text)
    return share, shares


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m exhaustive", description=__doc__)
    for name in ("sources", "formats", "modes", "overflows"):
        parser.add_argument(f"--{name}", nargs="+", default=[], metavar="NAME", help="only jobs with one of these")
    parser.add_argument("--oracle", help="only jobs whose oracle's name contains this")
    parser.add_argument("--minutes", type=float, help="a slice of every job in this time; default: all jobs, whole")
    parser.add_argument("--threads", type=int, default=1, help="default 1")
    parser.add_argument(
        "--share", type=_share, default=(1, 1), metavar="I/N", help="the I-th of N processes that share the jobs"
    )
    parser.add_argument("--seed", type=int, default=datetime.date.today().toordinal(), help="default: today's")
    parser.add_argument("--results", type=Path, help=f"default: {results.FILE.name}, or a slice's own file")
    parser.add_argument("--any-code", action="store_true", help="results of earlier code count too; rows name theirs")
    parser.add_argument("--list", action="store_true", help="show the jobs and stop")
    parser.add_argument("--page", action="store_true", help="write the tables of the documentation anew and stop")
    given = parser.parse_args(argv)
    if given.minutes is not None and given.share != (1, 1):
        parser.error("--share divides whole jobs; a slice (--minutes) takes a part of each")
    return given


if __name__ == "__main__":
    sys.exit(main())
