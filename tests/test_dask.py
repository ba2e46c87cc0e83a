"""Dask arrays: however they are cut, the result is that of the whole array."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import bittrue as bt

da = pytest.importorskip("dask.array")

from bittrue import dask as bdask  # noqa: E402

BLOCKS = "mx9 mx6 mx4 mxfp4 nvfp4 bfp16ebs8".split()
ELEMENTS = "int8 int4 float8_e4m3fn hifloat8 bfloat16 float16 int32 bool".split()
CHUNKS = [(5, 100), (3, 16), (2, 7), ((1, 4), (33, 1, 0, 66))]


def values(dtype: str = "float32") -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.standard_normal((5, 100)) * 2.0 ** rng.integers(-9, 5, (5, 100))).astype(dtype)


def equal(lazy: da.Array, expected: np.ndarray) -> bool:
    assert isinstance(lazy, da.Array)
    assert lazy.shape == expected.shape and lazy.dtype == expected.dtype
    found = lazy.compute(scheduler="threads")
    return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("name", ELEMENTS + BLOCKS)
def test_the_result_is_that_of_the_whole_array(name: str, chunks: tuple) -> None:
    x = values()
    lazy = da.from_array(x, chunks=chunks)
    axes = (-1, 0) if name in BLOCKS else (-1,)
    for axis, rounding in itertools.product(axes, (None, "floor")):
        assert equal(bdask.quantize(lazy, name, rounding, axis=axis), bt.quantize(x, name, rounding, axis=axis))
        codes = bt.encode(x, name, rounding, axis=axis)
        assert equal(bdask.encode(lazy, name, rounding, axis=axis), codes)
        cut = da.from_array(codes, chunks=(2, 11))
        assert equal(bdask.decode(cut, name, axis=axis), bt.decode(codes, name, axis=axis))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int16", "int64"])
def test_dtypes_and_options(dtype: str) -> None:
    x = np.abs(values()).astype(dtype)
    lazy = da.from_array(x, chunks=(2, 30))
    for name in ("int8", "float8_e5m2", "mx6"):
        assert equal(bdask.quantize(lazy, name), bt.quantize(x, name))
    some = values()
    lazy = da.from_array(some, chunks=(2, 30))
    options = {"scale": 0.25, "zero_point": 3, "overflow": "wrap"}
    assert equal(bdask.quantize(lazy, "int8", **options), bt.quantize(some, "int8", **options))
    codes = bt.encode(some, "int4")
    assert equal(bdask.decode(da.from_array(codes, chunks=30), "int4", scale=0.5), bt.decode(codes, "int4", scale=0.5))


def test_nothing_is_computed_before_it_is_asked_for() -> None:
    def fails(block: np.ndarray) -> np.ndarray:
        raise AssertionError("computed")

    x = da.ones((4, 64), chunks=(2, 32)).map_blocks(fails, dtype="f4", meta=np.empty((0, 0), "f4"))
    lazy = bdask.decode(bdask.encode(bdask.quantize(x, "mx9"), "hifloat8"), "hifloat8")
    assert lazy.chunks == ((2, 2), (32, 32))


def test_rules_that_raise_are_asked_only_about_the_values() -> None:
    x = np.float32([1, 0.25])
    lazy = bdask.quantize(da.from_array(x, chunks=1), "float8_e8m0fnu", overflow="raise")
    assert equal(lazy, x)
    with pytest.raises(OverflowError):
        bdask.quantize(da.zeros(2, chunks=1), "float8_e8m0fnu", overflow="raise").compute()


def test_mistakes() -> None:
    x = da.ones((4, 32), chunks=2)
    with pytest.raises(TypeError, match="ndarray"):
        bdask.quantize(np.ones(3), "int8")
    with pytest.raises(ValueError, match="stochastic"):
        bdask.encode(x, "int8", "stochastic")
    with pytest.raises(ValueError, match="stochastic"):
        bdask.quantize(x * 1j, "complex32", "stochastic")
    with pytest.raises(ValueError, match="axis=2"):
        bdask.encode(x, "mx9", axis=2)
    with pytest.raises(ValueError, match="out="):
        bdask.encode(x, "int8", out=np.empty(3))
    with pytest.raises(ValueError, match=r"scale= must be one number"):
        bdask.quantize(x, "int8", scale=np.ones(4))
    with pytest.raises(ValueError, match="unknown size"):
        bdask.quantize(x[x > 0], "int8")
