"""hifloat8: its 256 codes, half-to-away against en_dtypes, hybrid against the vendor's pseudo-code in integers."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from ascend.semantics import DATA

from bittrue import ascend
from bittrue.array import Array

EVERY_HALF = np.arange(1 << 16, dtype=np.uint16)
SAT = pytest.mark.parametrize("saturation", [True, False])


def test_all_codes() -> None:
    with open(DATA / "hif8_codes.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    values = ascend.cast(Array(np.arange(256, dtype=np.uint8), "hifloat8"), "float").to_numpy()
    assert len(rows) == 256
    for row in rows:
        value = float(row["value"])
        assert np.array_equal(values[int(row["code_dec"])], np.float32(value), equal_nan=True)
    back = ascend.cast(values, "hifloat8_t", saturation=False).codes
    assert np.array_equal(back, np.arange(256))
    saturated = ascend.cast(values, "hifloat8_t").codes
    assert [(code, got) for code, got in enumerate(saturated.tolist()) if got != code] == [
        (0x6F, 0x6E), (0x80, 0x00), (0xEF, 0xEE),
    ]  # fmt: skip


def test_to_half_follows_ctrl_48_alone() -> None:
    every = Array(np.arange(256, dtype=np.uint8), "hifloat8")
    exact = ascend.cast(every, "float").to_numpy()
    with np.errstate(over="ignore"):
        half = exact.astype(np.float16)
    kept = ascend.cast(every, "half", saturation=ascend.Ctrl(bit48=True, bit60=False, sat=True)).codes
    assert np.array_equal(kept[exact == exact], half.view(np.uint16)[exact == exact]) and kept[0x80] == 0x7FFF
    assert (kept[0x6F], kept[0xEF]) == (0x7C00, 0xFC00)
    clamped = ascend.cast(every, "half", saturation=ascend.Ctrl(bit60=False, sat=False)).codes
    assert (clamped[0x80], clamped[0x6F], clamped[0xEF]) == (0, 0x7BFF, 0xFBFF)


def patterns() -> np.ndarray:
    """Return over 10**6 float32 patterns: every tie and its neighbours, specials, all halves, random bits."""
    codes = np.arange(128, dtype=np.uint8)
    values = np.sort(ascend.cast(Array(codes, "hifloat8"), "float").to_numpy())
    values = np.append(values[np.isfinite(values)], [32768 * 1.5, 65536]).astype(np.float64)
    ties = ((values[:-1] + values[1:]) / 2).astype(np.float32)
    points = np.concatenate([ties, values, 2.0 ** np.arange(-30, 20)]).astype(np.float32).view(np.uint32)
    near = np.concatenate([points[points > 1] + np.uint32(d) for d in (0, 1, 2, 2**32 - 1, 2**32 - 2)])
    special = np.uint32([0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF])
    with np.errstate(invalid="ignore"):
        halves = EVERY_HALF.view(np.float16).astype(np.float32).view(np.uint32)
    rng = np.random.default_rng(8)
    inside = rng.integers(0, 1 << 23, 1 << 19) | rng.integers(127 - 25, 127 + 18, 1 << 19) << 23
    sparse = inside[: 1 << 17] & 0x7F803FFF | rng.integers(0, 8, 1 << 17) << 20  # thresholds decide
    anywhere = rng.integers(0, 1 << 31, 1 << 17)
    every = np.concatenate([near, special, halves, inside, sparse, anywhere]).astype(np.uint32)
    return np.concatenate([every, every | np.uint32(1 << 31)])


PATTERNS = patterns()


def test_there_are_enough_patterns() -> None:
    assert np.unique(PATTERNS).size > 10**6


# --- half-to-away -----------------------------------------------------------------------------------------------------


def saturated(codes: np.ndarray) -> np.ndarray:
    """`saturate_hif8` of the specification."""
    table = np.arange(256, dtype=np.uint8)
    table[[0x6F, 0xEF, 0x80]] = 0x6E, 0xEE, 0x00
    return table[codes]


@SAT
def test_half_to_away_against_en_dtypes(saturation: bool) -> None:
    en = pytest.importorskip("en_dtypes")
    with np.errstate(invalid="ignore", over="ignore"):
        x = PATTERNS.view(np.float32)
        want = x.astype(en.hifloat8).view(np.uint8)
        halves = EVERY_HALF.view(np.float16)
        want_half = halves.astype(np.float32).astype(en.hifloat8).view(np.uint8)
    if saturation:
        want, want_half = saturated(want), saturated(want_half)
    assert np.array_equal(ascend.cast(x, "hifloat8_t", "CAST_ROUND", saturation=saturation).codes, want)
    assert np.array_equal(ascend.cast(halves, "hifloat8_t", "CAST_ROUND", saturation=saturation).codes, want_half)


# --- hybrid -----------------------------------------------------------------------------------------------------------


def pack(s: np.ndarray, e: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Section 2.3 of the specification, in arrays."""
    a, g = np.abs(e), (e < 0).astype(np.int64)
    w = np.select([a == 1, a <= 3, a <= 7], [1, 2, 3], 4)
    k = np.select([a <= 3, a <= 7], [3, 2], 1)
    prefix = np.select([a == 1, a <= 3, a <= 7], [0x10, 0x20, 0x40], 0x60)
    code = prefix | g << (w - 1 + k) | (a - (1 << (w - 1))) << k | m
    code = np.where(a == 0, 0x08 | m, code)
    return s << 7 | np.where(e <= -16, e + 23, code)


def to_hif8(s: np.ndarray, e: np.ndarray, m: np.ndarray, t: np.ndarray, fraction: int, window: int) -> np.ndarray:
    """Sections 2.4 and 2.5: the pseudo-code of Reg Cast with CAST_HYBRID, for normalised inputs.

    `fraction` is the number of fraction bits of the source, `window` the number of bits that are compared.
    """
    size = np.abs(e)
    k = np.select([size <= 3, size <= 7, size <= 15], [3, 2, 1], 0)
    kept = m >> (fraction - k)
    away = m >> (fraction - 1 - k) & 1
    f = m >> (fraction - window - k) & ((1 << window) - 1)
    up = np.where(size <= 3, away == 1, f >= t)
    kept = kept + up
    carry = kept == 1 << k
    kept, exponent = np.where(carry, 0, kept), e + carry
    codes = np.where(exponent > 15, s << 7 | 0x6F, pack(s, exponent, kept))
    keep = (1 << (window - 1) | m >> (fraction - window + 1)) >= t
    codes = np.where(e == -23, np.where(keep, s << 7 | 0x01, 0), codes)
    codes = np.where(e < -23, 0, codes)
    return np.where(e > 15, s << 7 | 0x6F, codes)


def float_to_hif8(u: np.ndarray) -> np.ndarray:
    u = u.astype(np.int64)
    s, e, m = u >> 31, (u >> 23 & 0xFF) - 127, u & 0x7FFFFF
    codes = to_hif8(s, np.clip(e, -30, 20), m, m & 0x3FFF, 23, 14)
    return np.where(e == 128, np.where(m != 0, 0x80, s << 7 | 0x6F), codes).astype(np.uint8)


def half_to_hif8(h: np.ndarray) -> np.ndarray:
    h = h.astype(np.int64)
    s, field, m = h >> 15, h >> 10 & 31, h & 0x3FF
    shift = np.zeros_like(m)
    for bit in range(10):  # subnormals are normalised first, so T is taken from the normalised fraction too
        shift = np.where((field == 0) & (m >> bit == 1), 10 - bit, shift)
    e = np.where(field == 0, np.where(m == 0, -30, -14 - shift), field - 15)
    m = np.where(field == 0, m << shift & 0x3FF, m)
    t = (m & 1) << 1 | 1
    return np.where(field == 31, np.where(m != 0, 0x80, s << 7 | 0x6F), to_hif8(s, e, m, t, 10, 2)).astype(np.uint8)


@SAT
def test_hybrid_from_float(saturation: bool) -> None:
    want = float_to_hif8(PATTERNS)
    got = ascend.cast(PATTERNS.view(np.float32), "hifloat8_t", "CAST_HYBRID", saturation=saturation).codes
    assert np.array_equal(got, saturated(want) if saturation else want)


@SAT
def test_hybrid_from_half(saturation: bool) -> None:
    want = half_to_hif8(EVERY_HALF)
    got = ascend.cast(EVERY_HALF.view(np.float16), "hifloat8_t", "CAST_HYBRID", saturation=saturation).codes
    assert np.array_equal(got, saturated(want) if saturation else want)


@SAT
def test_hybrid_from_bfloat16_goes_through_float(saturation: bool) -> None:
    x = Array(EVERY_HALF, "bfloat16")
    want = float_to_hif8(EVERY_HALF.astype(np.uint32) << 16)
    got = ascend.cast(x, "hifloat8_t", "CAST_HYBRID", saturation=saturation).codes
    assert np.array_equal(got, saturated(want) if saturation else want)


def test_hybrid_moves_exact_values() -> None:
    x = np.float32([16, 256, 24576, 32768, 2.0**-16, 8])
    kept = ascend.cast(x, "hifloat8_t", "HYBRID", saturation=False)
    assert kept.codes.tolist() == [0x41, 0x61, 0x6E, 0x6F, 0x7E, 0x28]
    assert ascend.cast(x, "hifloat8_t", "HYBRID").codes.tolist() == [0x41, 0x61, 0x6E, 0x6E, 0x7E, 0x28]


def test_pypto_forces_round_for_other_modes() -> None:
    x = PATTERNS[::50].view(np.float32)
    want = ascend.cast(x, "hifloat8_t", "ROUND").codes
    for mode in ("NONE", "RINT", "FLOOR", "CEIL", "TRUNC", "ODD"):
        assert np.array_equal(ascend.cast(x, "hifloat8_t", mode).codes, want)
