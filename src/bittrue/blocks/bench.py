"""Rows of the block formats: encode into packed bytes, decode, quantize."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..bench.measure import Case, Row, throughput
from ..bench.peers import block_jobs
from ..codec import decode, encode, quantize
from ..formats import formats
from ..kinds.block import BlockFormat, SharedExponentFormat

__all__ = ["rows"]

_SHARED = {"encode": 1000.0, "decode": 1200.0, "quantize": 800.0}
_SCALED = {"encode": 600.0}


def rows() -> list[Row]:
    """Return the rows."""
    found = []
    for f in formats("block"):
        assert isinstance(f, BlockFormat)
        goals = _SHARED if isinstance(f, SharedExponentFormat) else _SCALED
        for what in ("encode", "decode", "quantize"):
            found.append(_row(f, what, {"one": goals[what]} if what in goals else {}))
    return found


@lru_cache(maxsize=1)
def _normal(size: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal(size, np.float32)


def _row(f: BlockFormat, what: str, goals: dict[str, float]) -> Row:
    def prepare(size: int) -> Case:
        count = max(f.blocks(size), 1)
        x = _normal(count * f.block_size)
        codes, values = encode(x, f), np.empty_like(x)
        out, small = np.empty_like(codes), np.ones(x.size, np.int8)
        jobs = {
            "encode": lambda threads: encode(x, f, out=out, threads=threads),
            "decode": lambda threads: decode(codes, f, out=values, threads=threads),
            "quantize": lambda threads: quantize(x, f, out=values, threads=threads),
        }
        source, target = {"encode": (x, small), "decode": (small, values), "quantize": (x, values)}[what]
        copy = partial(np.copyto, target, source, casting="unsafe")
        return Case(x.size, jobs[what], copy, block_jobs(x, f, what))

    return throughput(f"blocks, {what}", f.name, prepare, goals)
