"""torch on the CPU, where it is installed: nearest even, from its own vector code, independent of ml_dtypes'."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.disagreements import compare, same_nan
from oracles.inputs import exact_values, inputs

import bittrue as bt
from bittrue.rounding import Rule

torch = pytest.importorskip("torch")

#: Overflow gives Inf, else NaN; only e4m3fn saturates (since 2.12). e8m0: ties up, and the sign is dropped.
RULES = {
    "float16": Rule(overflow="infinity"),
    "bfloat16": Rule(overflow="infinity"),
    "float8_e5m2": Rule(overflow="infinity"),
    "float8_e4m3fn": Rule(overflow="saturate"),
    "float8_e5m2fnuz": Rule(overflow="infinity"),
    "float8_e4m3fnuz": Rule(overflow="infinity"),
    "float8_e8m0fnu": Rule(rounding="nearest_up", overflow="infinity", negative="magnitude"),
}
PAIRS = [
    (target, source)
    for target in RULES
    for source in ("float16", "bfloat16", "float32", "float64")
    if source != target and (target, source) != ("float8_e8m0fnu", "float64")
]


def tensor(x: np.ndarray, source: str) -> torch.Tensor:
    if source == "bfloat16":
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


@pytest.mark.parametrize(("target", "source"), PAIRS)
def test_encode(target, source):
    x, fmt = inputs(target, source), bt.format(target)
    codes = tensor(x, source).to(getattr(torch, target)).view(torch.uint8 if fmt.bits == 8 else torch.int16).numpy()
    theirs, ours = codes.view(fmt.code_dtype), bt.encode(x, fmt, rule=RULES[target])
    if "fnu" not in target:  # payloads and signs of NaN are theirs
        theirs, ours = same_nan(theirs, target), same_nan(ours, target)
    compare("torch", source, target, exact_values(x), theirs, ours)


@pytest.mark.parametrize("target", list(RULES))
def test_decode_every_code(target):
    fmt = bt.format(target)
    codes = np.arange(1 << fmt.bits).astype(fmt.code_dtype)
    same = torch.from_numpy(codes.view(np.uint8 if fmt.bits == 8 else np.int16)).view(getattr(torch, target))
    theirs, ours = same.to(torch.float32).numpy(), bt.decode(codes, fmt)
    nan = np.isnan(theirs)
    assert (np.isnan(ours) == nan).all()
    assert ours[~nan].tobytes() == theirs[~nan].tobytes()


def test_dtype_objects_are_names():
    for name in [*RULES, "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool", "complex64"]:
        assert bt.format(getattr(torch, name)) is bt.format(name)
    assert bt.format(torch.half) is bt.format("float16")
    assert bt.format(torch.float) is bt.format("float32")
    assert bt.format(torch.double) is bt.format("float64")
    assert bt.format(torch.float4_e2m1fn_x2) is bt.format("float4_e2m1fn")
    assert bt.format(torch.complex32) is bt.format("complex32")
