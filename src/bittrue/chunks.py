"""A plan, or any other work on a flat array, run piece by piece on threads of our own."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .plans import Plan

__all__ = ["in_chunks", "run_plan", "thread_count", "usable_cpus"]

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 16  # elements per pass where a plan has several stages: all scratch stays in the second-level cache
_PER_THREAD = 1 << 17  # elements below which another thread costs more than it brings

_pool: ThreadPoolExecutor | None = None


def _forget_pool() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):  # a forked child has the pool's object, but none of its threads
    os.register_at_fork(after_in_child=_forget_pool)


def usable_cpus() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(threads: Any) -> int | None:
    """Return a number of threads as a caller may give it: a positive integer, or None."""
    if threads is None:
        return None
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise ValueError(f"threads={threads!r} must be a positive integer")
    return int(threads)


def run_plan(plan: Plan, src: Array, dst: Array, random: Array, threads: int | None) -> None:
    """Run the stages of a plan from `src` to `dst`, flat arrays, with scratch memory of a chunk per thread."""
    in_chunks(partial(_work, plan, src, dst, random), src.size, threads, 1, 64)


def in_chunks(work: Callable[[int, int], int], n: int, threads: int | None, width: int = 1, step: int = 1) -> int:
    """Call ``work(start, stop)`` over 0..n, in several threads where that pays; return the OR of the results.

    `width` says how many elements one of the `n` stands for. Chunks begin at multiples of `step`.
    """
    global _pool
    given = thread_count(threads)
    workers = max(1, min(usable_cpus(), n * width // _PER_THREAD) if given is None else min(given, n))
    if workers == 1:
        return work(0, n)
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=64, thread_name_prefix="bittrue")
    edges = [n * i // workers // step * step for i in range(workers)] + [n]
    jobs = [_pool.submit(work, lo, hi) for lo, hi in zip(edges[1:], edges[2:])]
    try:
        found = work(edges[0], edges[1])
        for job in jobs:
            found |= job.result()
    except BaseException:
        wait(jobs)  # the caller's memory is its own again when this returns
        raise
    return found


def _work(plan: Plan, src: Array, dst: Array, random: Array, lo: int, hi: int) -> int:
    stages = plan.stages
    if len(stages) == 1:
        stages[0][0](src[lo:hi], dst[lo:hi], lo, random[lo:hi])
        return 0
    scratch = [np.empty(min(_CHUNK, hi - lo), dtype) for _, dtype in stages[:-1]]
    for start in range(lo, hi, _CHUNK):
        stop = min(start + _CHUNK, hi)
        now: Array = src[start:stop]
        for (run, _), buffer in zip(stages, [*scratch, dst[start:stop]]):
            buffer = buffer[: stop - start]
            run(now, buffer, start, random[start:stop])
            now = buffer
    return 0
