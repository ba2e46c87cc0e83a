"""NumPy's own narrowing casts, which round once to nearest even: float32 and float64 to float16, float64 to float32."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.disagreements import compare, same_nan
from oracles.inputs import exact_values, inputs, pattern_sample

import bittrue as bt


@pytest.mark.parametrize("source", ["float32", "float64"])
def test_float16(source):
    x = inputs("float16", source)
    with np.errstate(all="ignore"):
        theirs = x.astype(np.float16).view(np.uint16)
    ours = bt.encode(x, "float16", overflow="infinity")
    compare("numpy", source, "float16", exact_values(x), same_nan(theirs, "float16"), same_nan(ours, "float16"))


def test_float32():
    x = np.concatenate([pattern_sample(3 * 10**5, 64).view(np.float64), inputs("bfloat16", "float64")])
    with np.errstate(all="ignore"):
        theirs = x.astype(np.float32).view(np.uint32)
    ours = bt.encode(x, "float32", overflow="infinity").view(np.uint32)
    compare("numpy", "float64", "float32", exact_values(x), same_nan(theirs, "float32"), same_nan(ours, "float32"))
