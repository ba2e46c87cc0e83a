"""What the documents say of a cast, written a second time for tests: plain Python over `exact`.

Shares nothing with `bittrue.ascend` but the names of the types; the tables of modes are copies in tests/data.
"""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np

import bittrue as bt
from bittrue import Rule, exact

DATA = Path(__file__).parents[1] / "data"
MODES = "NONE RINT FLOOR CEIL ROUND TRUNC ODD HYBRID".split()
ROUNDING = {
    "NONE": "nearest_even",
    "RINT": "nearest_even",
    "ROUND": "nearest_away",
    "FLOOR": "floor",
    "CEIL": "ceil",
    "TRUNC": "trunc",
    "ODD": "odd",
    "HYBRID": "hybrid",
}
#: Output NaN of each type (special codes of the types; positive).
NAN = {
    "half": 0x7FFF,
    "bfloat16_t": 0x7FFF,
    "float": 0x7FC00000,
    "double": 0x7FF8000000000000,
    "fp8_e4m3fn_t": 0x7F,
    "fp8_e5m2_t": 0x7F,
    "hifloat8_t": 0x80,
}
A5 = "Ascend 950PR/950DT"


def canonical(name: str) -> str:
    return "int4x2_t" if name == "int4b_t" else name


@cache
def ascendc_rows() -> list[dict[str, str]]:
    with open(DATA / "ascend_cast_rules.csv", newline="") as file:
        return [
            {**row, "src": canonical(row["src"]), "dst": canonical(row["dst"])} for row in csv.DictReader(file)
        ]


@cache
def pypto_rows() -> list[dict[str, str]]:
    names = {
        "FP32": "float", "FP16": "half", "BF16": "bfloat16_t", "INT64": "int64_t", "INT32": "int32_t",
        "INT16": "int16_t", "INT8": "int8_t", "UINT8": "uint8_t", "UINT16": "uint16_t", "UINT32": "uint32_t",
        "INT4": "int4x2_t", "FP8E4M3": "fp8_e4m3fn_t", "FP8E5M2": "fp8_e5m2_t", "HF8": "hifloat8_t",
        "FP4_E2M1X2": "fp4x2_e2m1_t", "FP4_E1M2X2": "fp4x2_e1m2_t",
    }  # fmt: skip
    with open(DATA / "pypto_cast_rules.csv", newline="") as file:
        return [{**row, "src": names[row["src"]], "dst": names[row["dst"]]} for row in csv.DictReader(file)]


def is_int(name: str) -> bool:
    return bt.format(name).kind == "int"


def expected(
    semantics: str, src: str, dst: str, mode: str, code: int, saturate: bool, keep_nan: bool = False
) -> int:
    """Return the code of one cast.

    Parameters
    ----------
    semantics : str
        Column of the rule table.
    mode : str
        The effective mode.
    code : int
        Code in the source type.
    saturate : bool
        What the control state says.
    keep_nan : bool
        CTRL[50].
    """
    source, target = bt.format(src), bt.format(dst)
    if semantics == "complex":
        low, high = source.split(code)
        part = {"complex32": "half", "complex64": "float"}
        inner = "round-integral" if src == dst else "round" if dst == "complex32" else "exact"
        real, imag = (
            expected(inner, part[src], part[dst], mode, piece, saturate) for piece in (low, high)
        )
        return real | imag << target.part.bits
    if semantics == "e8m0" and src == "bfloat16_t":
        field, fraction = code >> 7 & 0xFF, code & 0x7F
        return 0xFE if field == 0xFF and fraction == 0 else field
    if semantics == "e8m0":
        return {0: 0x0040, 0xFF: 0x7FC0}.get(code, code << 7)
    value = source.value(code)
    finite = isinstance(value, Fraction) or math.isfinite(value)
    if semantics == "dequant":
        raise AssertionError("needs a scale: see expected_dequant")
    if semantics == "round-integral" and finite:
        value = _integral(value, mode)
        mode = "RINT"
    if semantics == "int-widen-clamp":
        value = max(value, Fraction(0))
    if is_int(dst):
        wraps = semantics in ("float-to-int", "int-narrow") and not saturate
        return exact.encode(value, target, Rule(ROUNDING[mode], "wrap" if wraps else "saturate"))
    if dst in ("float", "double"):
        saturate = False
    if semantics in ("fp4", "int-to-float"):
        saturate = True
    if isinstance(value, float) and math.isnan(value):
        kept = (not saturate or (keep_nan and dst in ("fp8_e5m2_t", "fp8_e4m3fn_t"))) and dst in NAN
        return NAN[dst] if kept else 0
    rule = Rule(ROUNDING[mode], "saturate" if saturate else "infinity")
    found = exact.encode(value, target, rule, source=source)
    return 0x7F if dst == "fp8_e4m3fn_t" and found == 0xFF else found


def _integral(value: Fraction | float, mode: str) -> Fraction | float:
    exact_value = Fraction(value)
    negative = math.copysign(1, value) < 0 if isinstance(value, float) else value < 0
    whole, rest = divmod(abs(exact_value).numerator, abs(exact_value).denominator)
    rounding = bt.Rounding(ROUNDING[mode])
    whole += exact.round_up(rounding, bool(whole & 1), negative, rest, abs(exact_value).denominator)
    if whole == 0:
        return -0.0 if negative else Fraction(0)
    return Fraction(-whole if negative else whole)


def expected_dequant(number: int, scale: float, saturate: bool) -> int:
    """The four float32 steps of the vendor's implementation, as written."""
    t = np.float32(number)
    t = np.float32(t * np.float32(2.0**-17))
    t = np.float32(t * np.float32(np.float16(scale)))
    t = np.float32(t * np.float32(2.0**17))
    value = float(t) if t == 0 else Fraction(float(t))
    return exact.encode(value, "float16", Rule(overflow="saturate" if saturate else "infinity"))


@cache
def inputs(src: str, dst: str) -> tuple[int, ...]:
    """Return source codes around every boundary of the destination that matters, and all special codes."""
    source, target = bt.format(src), bt.format(dst)
    if source.bits <= 8:
        return tuple(range(1 << source.bits))
    if source.kind == "complex":
        part = inputs({"complex32": "half", "complex64": "float"}[src], "half")[::7]
        return tuple(a | b << source.part.bits for a, b in zip(part, reversed(part)))
    points = _integer_points(target) if target.kind == "int" else _float_points(target)
    if source.kind == "int":
        wanted = {math.floor(p) + d for p in points for d in (-1, 0, 1, 2)} | {source.min, source.max}
        return tuple(int(w) & ((1 << source.bits) - 1) for w in sorted(wanted) if source.min <= w <= source.max)
    codes = {exact.encode(p, source, Rule(m, "infinity")) for p in points for m in ("floor", "ceil")}
    sign = 1 << source.magnitude_bits
    inf = source.inf_magnitude
    codes |= {c + d for c in codes for d in (-1, 1) if 0 <= (c + d) & (sign - 1) <= inf}
    normal = 1 << source.mantissa_bits
    for magnitude in (0, 1, 2, normal - 1, normal, inf - 1, inf, inf + 1, source.nan_code):
        codes |= {magnitude, magnitude | sign}
    return tuple(sorted(c for c in codes if c < 1 << source.bits))


def _integer_points(target: bt.IntFormat) -> list[Fraction]:
    wide = [target.min, target.max, Fraction(0), *(Fraction(2) ** e for e in range(target.bits + 2))]
    near = [Fraction(n, 4) for n in range(-14, 15)]
    large = [w + d for w in wide for d in (Fraction(-1, 2), 0, Fraction(1, 2), 1)]
    return [*near, *large, *(-p for p in large)]


def _float_points(target: bt.Format) -> list[Fraction]:
    """Every value and midpoint of small formats; a few in every binade of large ones; beyond the ends."""
    if target.bits <= 8:
        values = sorted({v for v in target.values() if isinstance(v, Fraction) and v > 0})
    else:
        low, high = -target.min_subnormal.denominator.bit_length() - 1, int(target.max).bit_length()
        edge = _log2(target.min_normal)
        values = []
        for e in {*range(low, high, 1 if target.exponent_bits == 5 else 15), edge - 1, edge, edge + 1}:
            q = Fraction(2) ** (target.quantum_exponent(e))
            values += [Fraction(2) ** e, Fraction(2) ** e + q, Fraction(2) ** e + 2 * q]
        values = sorted({*values, target.max, target.min_subnormal})
    middles = [(a + b) / 2 for a, b in zip(values, values[1:])] if target.bits <= 8 else [
        v + Fraction(2) ** (target.quantum_exponent(_log2(v)) - 1) for v in values
    ]
    top, small = values[-1], values[0]
    beyond = [top * 17 / 16, top * 9 / 8, top * 5 / 4, top * 3 / 2, top * 2, top * 4, small / 2, small / 4]
    points = [*values, *middles, *beyond]
    return [Fraction(0), *points, *(-p for p in points)]


def _log2(value: Fraction) -> int:
    e = value.numerator.bit_length() - value.denominator.bit_length()
    return e if value >= Fraction(2) ** e else e - 1
