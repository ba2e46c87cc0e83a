"""Where an oracle is wrong or keeps another convention than ours: one table, and the comparison that reads it.

`compare` asserts that an oracle and bittrue agree on every input outside the table, that inside it the oracle *still*
gives what the table says (so that an entry goes when its reason has gone), and that bittrue gives the right code there.
What is right is stated here by rule, never taken from bittrue.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

Codes = np.ndarray[Any, Any]

#: Conversions that C leaves undefined depend on the processor; what the table says of them was seen on this one.
X86 = platform.machine().lower() in ("x86_64", "amd64")


@dataclass(frozen=True)
class Disagreement:
    """One known difference.

    Parameters
    ----------
    oracle, version
        Distribution name and the release in which it was seen.
    source, target
        Names of formats, separated by blanks.
    where
        The predicate in words.
    inputs
        The predicate: float64 values (exact, NaN with its sign) and the target's name to a mask.
    gives
        Codes that the oracle returns inside, from the values and the target's name.
    right
        Codes by the published rule, likewise.
    reason, link
    """

    oracle: str
    version: str
    source: str
    target: str
    where: str
    inputs: Callable[[Codes, str], Codes]
    gives: Callable[[Codes, str], Codes]
    right: Callable[[Codes, str], Codes]
    reason: str
    link: str


# --- rules stated without bittrue -------------------------------------------------------------------------------------


def positive_nan(v: Codes, target: str) -> Codes:
    return np.isnan(v) & ~np.signbit(v)


def negative_nan(v: Codes, target: str) -> Codes:
    return np.isnan(v) & np.signbit(v)


def constant(code: int) -> Callable[[Codes, str], Codes]:
    return lambda v, target: np.full(v.shape, code)


def minus_zero(v: Codes, target: str) -> Codes:
    return np.full(v.shape, {"float4_e2m1fn": 0x8, "float4_e1m2fn": 0x8}.get(target, 0x20))


def integer_limit(v: Codes, target: str) -> Codes:
    """The code of the largest integer for positive values, of the lowest for negative ones."""
    bits = int(target[-1])
    if target.startswith("u"):
        return np.where(v > 0, (1 << bits) - 1, 0)
    return np.where(v > 0, (1 << (bits - 1)) - 1, 1 << (bits - 1))


def single(v: Codes) -> Codes:
    """Round to float32."""
    with np.errstate(all="ignore"):
        return v.astype(np.float32).astype(np.float64)


class Nearest:
    """Round to nearest by search among the values that an oracle decodes; ties to the even code or away from zero."""

    def __init__(self, values: Codes, top_step: float, beyond: int, away: bool, sign: int) -> None:
        """Tabulate the midpoints.

        Parameters
        ----------
        values
            Of every non-negative code.
        top_step
            Distance from the largest value to the next one, if there were one; it would have the code `beyond`.
        sign
            Bit of a negative code; 0 for none.
        """
        codes = np.flatnonzero(np.isfinite(values))
        codes = codes[np.argsort(values[codes], kind="stable")]
        grid = values[codes]
        grid = np.append(grid, grid[-1] + top_step)
        self.middles = (grid[1:] + grid[:-1]) / 2
        self.codes = np.append(codes, beyond)
        self.away, self.sign = away, sign

    def __call__(self, v: Codes) -> Codes:
        magnitude = np.abs(v)
        index = np.searchsorted(self.middles, magnitude)
        inside = np.minimum(index, self.middles.size - 1)
        up = (self.middles[inside] == magnitude) & (self.away | (self.codes[inside] % 2 == 1))
        return self.codes[index + np.where(index < self.middles.size, up, 0)]


@lru_cache(maxsize=64)
def nearest(oracle: str, target: str) -> Nearest:
    """Return the rule of an oracle, on the values that it decodes itself (torch's: that NumPy and ml_dtypes decode)."""
    library = {"float16": "numpy", "hifloat8": "en_dtypes", "float4_e1m2fn": "en_dtypes"}.get(target, "ml_dtypes")
    dtype = np.dtype(getattr(import_module(library), {"float4_e1m2fn": "float4_e1m2"}.get(target, target)))
    bits = {"float16": 16, "bfloat16": 16, "hifloat8": 8}.get(target) or int(target[len("float")])
    unsigned = "e8m0" in target
    codes = np.arange(1 << (bits - (not unsigned))).astype(f"u{dtype.itemsize}")
    with np.errstate(all="ignore"):
        values = codes.view(dtype).astype(np.float32).astype(np.float64)
        beyond = int(np.array([np.inf], np.float32).astype(dtype).view(codes.dtype)[0])
    finite = np.sort(values[np.isfinite(values)])
    top_step = finite[-1] - finite[-2]
    if target == "hifloat8":  # its top binade has one fraction bit, of which the lower half alone is finite
        top_step = finite[-1] / 2
    elif unsigned:
        top_step = finite[-1]
    if (oracle, target) == ("torch", "float8_e4m3fn"):
        beyond = 0x7E  # it saturates
    return Nearest(values, top_step, beyond, unsigned or target == "hifloat8", 0 if unsigned else 1 << (bits - 1))


def _detour(oracle: str) -> tuple[Callable[[Codes, str], Codes], ...]:
    """Predicate, wrong and right codes of an oracle that takes float64 and wide integers through float32."""

    def signed(v: Codes, codes: Codes, sign: int, target: str) -> Codes:
        unsigned = (codes == 0) & (target == "hifloat8" or "fnuz" in target)  # no -0
        return codes | np.where(np.signbit(v) & ~unsigned, sign, 0)

    def through(v: Codes, target: str) -> Codes:
        rule = nearest(oracle, target)
        return signed(v, rule(single(v)), rule.sign, target)

    def directly(v: Codes, target: str) -> Codes:
        rule = nearest(oracle, target)
        return signed(v, rule(v), rule.sign, target)

    def inputs(v: Codes, target: str) -> Codes:
        usable = np.isfinite(v) & ((v > 0) | ("e8m0" not in target))
        return usable & (through(v, target) != directly(v, target))

    return inputs, through, directly


_ML_FLOATS = (
    "bfloat16 float8_e3m4 float8_e4m3 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2 float8_e5m2fnuz "
    "float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn"
)
_SEEN = "seen in this release; no public report found"
_NO_NAN = "float6_e2m3fn float6_e3m2fn float4_e2m1fn"

TABLE = [
    Disagreement(
        *("ml_dtypes", "0.6.0", "float32 bfloat16 float64", "float8_e8m0fnu"),
        "2**-127 < x < 1.5 * 2**-127 (x as float32)",
        lambda v, _: (single(v) > 2.0**-127) & (v < 1.5 * 2.0**-127),
        constant(0x01),
        constant(0x00),  # the nearest power of two is 2**-127
        "subnormal inputs are rounded up whatever their fraction: 8.000998e-39 gives 2**-126",
        _SEEN,
    ),
    Disagreement(
        *("ml_dtypes", "0.6.0", "float16 bfloat16 float32 float64", _NO_NAN),
        "NaN without a sign",
        positive_nan,
        minus_zero,
        constant(0),
        "NaN into a format without NaN gives a zero with the sign inverted; ours is +0 (so -NaN agrees)",
        _SEEN,
    ),
    Disagreement(
        *("ml_dtypes", "0.6.0", "float64", _ML_FLOATS),
        "float32 rounds x onto a midpoint of the target",
        *_detour("ml_dtypes"),
        "arrays of float64 go through float32: two roundings",
        "https://github.com/jax-ml/ml_dtypes/pull/401",
    ),
    Disagreement(
        *("ml_dtypes", "0.6.0", "int32 uint32 int64", "bfloat16 float8_e8m0fnu"),
        "float32 rounds x onto a midpoint of the target",
        *_detour("ml_dtypes"),
        "integers go through float32; the other formats end where float32 still holds all integers",
        "https://github.com/jax-ml/ml_dtypes/pull/401",
    ),
    Disagreement(
        *("ml_dtypes", "0.6.0", "float64", "float8_e8m0fnu"),
        "0 < x <= 2**-150",
        lambda v, _: (v > 0) & (v <= 2.0**-150),
        constant(0xFF),
        constant(0x00),  # as larger values below the range, here and there
        "on the way through float32 the value becomes zero, which is NaN",
        "https://github.com/jax-ml/ml_dtypes/pull/401",
    ),
    Disagreement(
        *("ml_dtypes", "0.6.0", "float16 bfloat16 float32 float64", "int1 int2 int4 uint1 uint2 uint4"),
        "infinities whose limit is not zero",
        lambda v, target: np.isinf(v) & (integer_limit(v, target) != 0),
        constant(0),
        integer_limit,
        "an infinity becomes 0 by C's undefined conversion; ours is the limit of its sign, as in Ascend C's register "
        "Cast, table 4",
        _SEEN,
    ),
    Disagreement(
        *("en_dtypes", "0.0.4", "float16 float32 float64", _NO_NAN + " float4_e1m2fn"),
        "NaN with a sign",
        negative_nan,
        minus_zero,
        constant(0),
        "-NaN into a format without NaN gives -0; ours is +0 for both signs (NaN has no sign to keep)",
        _SEEN,
    ),
    Disagreement(
        *("en_dtypes", "0.0.4", "float32", "float8_e8m0fnu"),
        "0 < x < 2**-127",
        lambda v, _: (v > 0) & (v < 2.0**-127),
        constant(0xFF),
        constant(0x00),  # below the range: the smallest value
        "float32 subnormals below the smallest value give NaN",
        _SEEN,
    ),
    Disagreement(
        *("en_dtypes", "0.0.4", "float64", "hifloat8 float4_e1m2fn"),
        "float32 rounds x onto a midpoint of the target",
        *_detour("en_dtypes"),
        "arrays of float64 go through float32: two roundings",
        _SEEN,
    ),
    Disagreement(
        *("gfloat", "0.5.2", "float64", "float8_e8m0fnu"),
        "powers of two below 2**-127",
        lambda v, _: (v > 0) & (v < 2.0**-127) & (np.frexp(v)[0] == 0.5),
        lambda v, _: np.frexp(v)[1] - 1 + 127,
        constant(0x00),
        "values below the smallest are returned unrounded, and encode as negative numbers; corrected after 0.5.2",
        "https://github.com/graphcore-research/gfloat/issues/62",
    ),
    Disagreement(
        *("torch", "2.13.0", "float32 bfloat16 float16", "float8_e8m0fnu"),
        "zero of either sign",
        lambda v, _: v == 0,
        constant(0x00),
        constant(0xFF),
        "zero becomes 2**-127 while values above the range become NaN; by overflow='infinity' both are NaN",
        _SEEN,
    ),
    Disagreement(
        *("torch", "2.13.0", "float32 bfloat16", "float8_e8m0fnu"),
        "2**-127 < |x| < 1.5 * 2**-127",
        lambda v, _: (np.abs(v) > 2.0**-127) & (np.abs(v) < 1.5 * 2.0**-127),
        constant(0x01),
        constant(0x00),
        "subnormal inputs are rounded up whatever their fraction, as in ml_dtypes",
        _SEEN,
    ),
    Disagreement(
        *("torch", "2.13.0", "float64", "float16 bfloat16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz"),
        "float32 rounds x onto a midpoint of the target",
        *_detour("torch"),
        "float64 goes through float32: two roundings",
        _SEEN,
    ),
    Disagreement(
        *("llvm", "22.1", "float16 bfloat16 float32 float64", _NO_NAN),
        "infinities",
        lambda v, _: np.isinf(v),
        lambda v, target: np.where(v < 0, minus_zero(v, target), 0),
        lambda v, target: {"float6_e2m3fn": 0x1F, "float6_e3m2fn": 0x1F, "float4_e2m1fn": 0x7}[target]
        + np.where(v < 0, minus_zero(v, target), 0),
        "a type without Inf has no code for the Inf that the value remains: it reads as zero; ours is the largest",
        _SEEN,
    ),
    Disagreement(
        *("llvm", "22.1", "float16 bfloat16 float32 float64", "float8_e8m0fnu"),
        "zero of either sign",
        lambda v, _: v == 0,
        constant(0x00),
        constant(-1),  # NaN
        "zero becomes 2**-127 while values above the range become NaN; by overflow='ieee' both are NaN",
        _SEEN,
    ),
    Disagreement(
        *("onnx", "1.22.0", "float32 float16", "float4_e2m1fn"),
        "NaN without a sign",
        positive_nan,
        minus_zero,
        constant(0),
        "the vectors were made with ml_dtypes",
        "https://github.com/onnx/onnx/tree/main/onnx/backend/test/data/node",
    ),
]


# --- comparing --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def installed(oracle: str) -> str:
    """Return the release of an oracle: of LLVM without its last part, of the others the distribution's."""
    if oracle == "llvm":
        shown = subprocess.run([str(llvm_config()), "--version"], capture_output=True, text=True, check=True).stdout
        return ".".join(shown.split(".")[:2])
    return metadata.version(oracle).partition("+")[0]


@lru_cache(maxsize=1)
def llvm_config() -> str | None:
    """Return the path of the newest `llvm-config` from 20 on whose headers are there, or None."""
    found = (shutil.which(f"llvm-config-{release}") for release in range(29, 19, -1))
    for path in filter(None, found):
        include = subprocess.run([path, "--includedir"], capture_output=True, text=True, check=True).stdout.strip()
        if (Path(include) / "llvm/ADT/APFloat.h").exists():
            return path
    return None


def compare(oracle: str, source: str, target: str, values: Codes, theirs: Codes, ours: Codes) -> None:
    """Assert that codes agree but for the table's entries.

    Parameters
    ----------
    values
        The inputs as float64, exact, NaN with its sign; see `inputs.exact_values`.
    theirs, ours
        Codes, one per input. Where any NaN is right, both have been through `same_nan`.
    """
    theirs, ours = theirs.astype(np.int64), ours.astype(np.int64)
    known = np.zeros(values.shape, np.bool_)
    for entry in entries(oracle, source, target):
        inside = entry.inputs(values, target)
        assert inside.any(), f"no input for the entry {entry.oracle}: {entry.where}"
        x, gives, right = values[inside], entry.gives(values, target)[inside], entry.right(values, target)[inside]
        _assert_equal(f"ours where {entry.where}", x, ours[inside], right)
        if installed(oracle) == entry.version:
            _assert_equal(f"{oracle} has changed where {entry.where}", x, theirs[inside], gives)
            assert (gives != right).all(), f"the entry {entry.oracle}: {entry.where} covers inputs that agree"
        else:  # another release has the fault or not, but no third answer
            mended = np.where(theirs[inside] == right, right, gives)
            _assert_equal(f"{oracle} {installed(oracle)} where {entry.where}", x, theirs[inside], mended)
        known |= inside
    _assert_equal(f"{oracle}, {source} to {target}", values[~known], ours[~known], theirs[~known])


def entries(oracle: str, source: str, target: str) -> list[Disagreement]:
    """Return the table's entries for a conversion."""
    return [e for e in TABLE if e.oracle == oracle and source in e.source.split() and target in e.target.split()]


def _assert_equal(what: str, values: Codes, got: Codes, want: Codes) -> None:
    bad = np.flatnonzero(got != want)
    if bad.size:
        at = bad[np.argmin(np.abs(values[bad]))]
        raise AssertionError(
            f"{what}: {bad.size} of {values.size} differ, the smallest input {float(values[at]).hex()} "
            f"({values[at]!r}): {int(got[at]):#x} instead of {int(want[at]):#x}"
        )


#: Which codes are NaN, by their published layouts: magnitude bits, and the largest magnitude that is none.
NAN_ABOVE = {
    "float16": (0x7FFF, 0x7C00),
    "bfloat16": (0x7FFF, 0x7F80),
    "float32": (0x7FFFFFFF, 0x7F800000),
    "float64": (0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000),
    "float8_e5m2": (0x7F, 0x7C),
    "float8_e4m3fn": (0x7F, 0x7E),
}


def same_nan(codes: Codes, target: str) -> Codes:
    """Give every NaN code one and the same code, for targets with several."""
    mask, top = NAN_ABOVE[target]
    wide = codes.astype(np.uint64)
    return np.where((wide & np.uint64(mask)) > top, np.uint64(mask), wide).astype(np.int64)
