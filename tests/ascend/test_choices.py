"""Open questions: every choice changes what it says, and nothing else; the document of them is current."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ascend.semantics import A5
from ascend.test_hifloat8 import EVERY_HALF, to_hif8

import bittrue as bt
from bittrue import ascend, evidence
from bittrue.array import Array, array
from bittrue.ascend import Choices, cast
from bittrue.ascend.rulebook import rows

DEFAULT = Choices()
FIXPIPE = {17, 18, *range(21, 28), 33, 35, 36}  # no cast depends on these: see test_fixpipe.py
NO_CAST = {*FIXPIPE, 34, 37, 38}  # nor on these: see test_dequant.py and test_cube.py
ALTERNATIVES = [
    (q.name, candidate.value)
    for q in ascend.questions()
    for candidate in q.candidates
    if candidate.value != q.default and not NO_CAST & {*q.numbers}
]


class Case:
    """One cast of a corpus that covers every pair of two products."""

    def __init__(self, product: str, src: str, dst: str, mode: str, saturation: Any, strict: bool) -> None:
        self.product, self.src, self.dst, self.mode = product, src, dst, mode
        self.saturation, self.strict = saturation, strict
        self.ints = bt.format(src).kind == "int"
        self.to_int = bt.format(dst).kind == "int"

    def result(self, choices: Choices) -> bytes | str:
        scale = 0.5 if (self.src, self.dst) == ("int32_t", "half") and self.product != "Atlas 200I/500 A2" else None
        try:
            return cast(
                inputs(self.src), self.dst, self.mode, self.product, self.saturation, self.strict, deqscale=scale,
                choices=choices, odd="pad",
            ).tobytes()  # fmt: skip
        except (ValueError, OverflowError) as error:
            return str(error).partition(";")[0].partition(" (another")[0]


@cache
def inputs(src: str) -> Array:
    f = bt.format(src)
    if f.kind == "int":
        return array([int(f.min), -1, 0, 1, 2, 7, 100, 255, 300, int(f.max)], f, overflow="saturate")
    if f.kind == "complex":
        return array([1.5 + 300.25j, complex(np.inf, np.nan), 1e6 - 0.5j], f, overflow="infinity")
    if f.bits <= 8:
        return Array(np.arange(1 << f.bits, dtype=np.uint8), f)
    values = [0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 16.0, 20.25, 300.25, 465.0, -465.0, 24576.0, 33000.0, 41000.0, -41000.0]
    values += [65519.0, 1e6, -1e6, 3e9, -3e9, np.inf, -np.inf, np.nan, -np.nan, 2.0**-16, 2.0**-20, 3e-7, 1.1, 70.7]
    return array(np.array(values), f, overflow="infinity")


@cache
def corpus() -> list[Case]:
    found = []
    for product in (A5, "Atlas A2", "Atlas 200I/500 A2"):
        pairs = sorted({(r.source, r.destination) for r in rows() if r.product == product})
        saturations = [None, True, False, "off", "pypto"] if ascend.product(product).control_bits else [None]
        for (src, dst), mode, saturation, strict in itertools.product(
            pairs, ("NONE", "RINT", "TRUNC", "ODD", "HYBRID"), saturations, (False, True)
        ):
            found.append(Case(product, src, dst, mode, saturation, strict))
    return found


@cache
def plain() -> list[bytes | str]:
    return [case.result(DEFAULT) for case in corpus()]


FP8 = ("fp8_e4m3fn_t", "fp8_e5m2_t")
HIF8 = "hifloat8_t"
FLOAT_TARGETS = ("half", "bfloat16_t", HIF8, *FP8, "fp8_e8m0_t", "complex32")

#: Where each choice may change a result.
SCOPE: dict[tuple[str, Any], Callable[[Case], bool]] = {
    ("type_matrix", "devkit_2026"): lambda c: "int4x2_t" in (c.src, c.dst) and c.product != A5,
    ("type_matrix", "cast_table"): lambda c: (
        ("int4x2_t" in (c.src, c.dst) and c.product == "Atlas A2")
        or ("bfloat16_t" in (c.src, c.dst) and c.product == "Atlas 200I/500 A2")
    ),
    ("hybrid_exact", "keep"): lambda c: c.dst == HIF8 and c.mode == "HYBRID",
    ("hybrid_overflow", "golden_script"): lambda c: c.dst == HIF8 and c.mode == "HYBRID",
    ("half_subnormal", "zero"): lambda c: (c.src, c.dst) == ("half", HIF8),
    ("bf16_hif8", "direct"): lambda c: (c.src, c.dst) == ("bfloat16_t", HIF8) and c.mode == "HYBRID",
    ("fp4_nan_code", 8): lambda c: c.dst.startswith("fp4"),
    ("mode_table", "ascendc"): lambda c: (c.dst in FP8 or c.dst.startswith("fp4")) and not c.strict,
    ("mode_table", "pypto"): lambda c: (c.dst in FP8 or c.dst.startswith("fp4")) and c.strict,
    ("fp8_nan_sign", "keep"): lambda c: c.dst == "fp8_e4m3fn_t" and c.saturation not in (None, True),
    ("e8m0_inf", 0xFF): lambda c: c.dst == "fp8_e8m0_t",
    ("e8m0_zero_code", "zero"): lambda c: c.src == "fp8_e8m0_t",
    ("e8m0_nan", 0x00): lambda c: c.dst == "fp8_e8m0_t" and c.saturation in (None, True),
    ("int_to_uint8", "cut"): lambda c: (
        c.dst == "uint8_t" and c.src in ("int16_t", "int32_t") and c.saturation is None
    ),
    ("entry_ctrl", "host_sets_48"): lambda c: c.dst in FLOAT_TARGETS and c.saturation is None,
    ("directed_overflow", "ieee"): lambda c: (
        c.dst in FLOAT_TARGETS and c.mode in ("TRUNC", "ODD") and c.saturation not in (None, True)
    ),
    ("a2a3_special", "torch"): lambda c: (
        c.product == "Atlas A2" and not c.ints and c.to_int and c.saturation not in (None, True)
    ),
    ("double_special", "raise"): lambda c: c.src == "double",
    ("satmode", "clamp"): lambda c: c.to_int and c.saturation in ("off", "pypto"),
    ("pypto_sat_default", "pto"): lambda c: c.saturation == "pypto",
    ("integral_zero", "keep"): lambda c: c.product == "Atlas A2" and c.src == c.dst == "float",
    ("half_bf16_sat", "never"): lambda c: (
        c.product == A5 and (c.src, c.dst) == ("half", "bfloat16_t") and c.saturation in (None, True)
    ),
    ("half_int16_sat", "limits"): lambda c: (
        c.product == A5 and (c.src, c.dst) == ("half", "int16_t") and c.saturation not in (None, True)
    ),
    ("odd_to_int", "offered"): lambda c: not c.ints and c.to_int and c.mode == "ODD",
}


def test_every_alternative_has_a_scope() -> None:
    assert set(SCOPE) == set(ALTERNATIVES)


@pytest.mark.parametrize(("field", "value"), ALTERNATIVES)
def test_a_choice_changes_what_it_says_and_nothing_else(field: str, value: Any) -> None:
    choices = Choices(**{field: value})
    changed = [c for c, before in zip(corpus(), plain()) if c.result(choices) != before]
    assert changed, "nothing changes"
    outside = [vars(c) for c in changed if not SCOPE[field, value](c)]
    assert not outside, outside[:3]


# --- what exactly each one changes ------------------------------------------------------------------------------------


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_type_matrix() -> None:
    for product in ("A3", "A2", "Atlas 200I/500 A2", "310P", "Atlas training"):
        plain = ascend.supported_types(product)
        more = ascend.supported_types(product, Choices(type_matrix="devkit_2026"))
        assert set(more) - set(plain) == {"bool", "int4x2_t"}
    for product, more in {"A2": {"int4x2_t"}, "310P": {"int4x2_t"}, "310B": {"bfloat16_t"}, "950": set()}.items():
        found = ascend.supported_types(product, Choices(type_matrix="cast_table"))
        assert set(found) - set(ascend.supported_types(product)) == more
    x = np.float16([1, -9])
    assert cast(x, "int4b_t", product="a2", choices=Choices(type_matrix="devkit_2026")).tolist() == [1, -8]
    with pytest.raises(ValueError, match=r"type int4x2_t is not supported by Atlas A2.*type_matrix='devkit_2026'"):
        cast(x, "int4b_t", product="a2")


def test_hybrid_exact() -> None:
    every = Array(np.arange(256, dtype=np.uint8), "hifloat8")
    finite = np.isfinite(cast(every, "float").to_numpy())
    keep = Choices(hybrid_exact="keep")
    for saturation in (True, False):
        for via in ("float", "half"):
            x = every if via == "float" else every[~np.isin(np.arange(256), [1, 0x81])]
            codes, held = x.codes, finite[x.codes]
            y = cast(cast(x, via), "hifloat8_t", "HYBRID", saturation=saturation, choices=keep).codes
            assert np.array_equal(y[held], codes[held])
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 32, 200_000).astype(np.uint32)
    x = bits.view(np.float32)
    inexact = cast(cast(x, "hifloat8_t", "ROUND", saturation=False), "float").to_numpy() != x
    before, after = (cast(x, "hifloat8_t", "HYBRID", saturation=False, choices=c).codes for c in (DEFAULT, keep))
    assert np.array_equal(before[inexact], after[inexact])


def test_hybrid_overflow() -> None:
    script = Choices(hybrid_overflow="golden_script")
    low = np.uint32(0x47000000) + np.arange(0, 0x900000, 97, dtype=np.uint32)  # 32768 to 98304
    x = low.view(np.float32)
    x = np.concatenate([x, -x])
    documented = cast(x, "hifloat8_t", "HYBRID", saturation=False).codes
    got = cast(x, "hifloat8_t", "HYBRID", saturation=False, choices=script).codes
    infinite = np.where(x > 0, 0x6F, 0xEF)
    assert np.array_equal(got, np.where(np.abs(x) >= 40960, infinite, documented))
    assert (documented != got).any()
    assert set(cast(x, "hifloat8_t", "HYBRID", choices=script).codes.tolist()) == {0x6E, 0xEE}


@pytest.mark.parametrize("mode", ["ROUND", "HYBRID"])
def test_half_subnormal(mode: str) -> None:
    x = EVERY_HALF.view(np.float16)
    before, after = (
        cast(x, "hifloat8_t", mode, choices=c).codes for c in (DEFAULT, Choices(half_subnormal="zero"))
    )
    subnormal = (EVERY_HALF & 0x7C00) == 0
    assert np.array_equal(after, np.where(subnormal, 0, before))
    assert cast(np.float16(2.0**-23), "hifloat8_t", mode).codes == 0x01


def test_bf16_hif8_direct() -> None:
    u = EVERY_HALF.astype(np.int64)
    s, e, m = u >> 15, (u >> 7 & 0xFF) - 127, u & 0x7F
    want = to_hif8(s, np.clip(e, -30, 20), m, (m & 1) << 1 | 1, 7, 2)
    want = np.where(e == 128, np.where(m != 0, 0x80, s << 7 | 0x6F), want)
    x = Array(EVERY_HALF, "bfloat16")
    direct = Choices(bf16_hif8="direct")
    assert np.array_equal(cast(x, "hifloat8_t", "HYBRID", saturation=False, choices=direct).codes, want)
    assert np.array_equal(cast(x, "hifloat8_t", "ROUND", choices=direct).codes, cast(x, "hifloat8_t", "ROUND").codes)


def test_codes_of_nan_and_infinity() -> None:
    bf16 = Array(np.uint16([0x7FC0, 0xFFC0, 0xFF80, 0x3F80]), "bfloat16")
    assert cast(bf16, "fp4x2_e2m1_t").codes.tolist() == [0, 0, 0xF, 2]
    assert cast(bf16, "fp4x2_e2m1_t", choices=Choices(fp4_nan_code=8)).codes.tolist() == [0, 8, 0xF, 2]
    x = floats(-465, 465, np.nan, -np.nan, -np.inf, 448)
    off = {"saturation": False}
    assert cast(x, "fp8_e4m3fn_t", **off).codes.tolist() == [0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7E]
    keep = Choices(fp8_nan_sign="keep")
    assert cast(x, "fp8_e4m3fn_t", choices=keep, **off).codes.tolist() == [0xFF, 0x7F, 0x7F, 0xFF, 0xFF, 0x7E]
    assert cast(x[3:4], "fp8_e5m2_t", choices=keep, **off).codes.tolist() == [0x7F]
    bf16 = Array(np.uint16([0x7F80, 0xFF80, 0x7FC0, 0x3F80, 0xC07F, 0x0001]), "bfloat16")
    assert cast(bf16, "fp8_e8m0_t").codes.tolist() == [0xFE, 0xFE, 0xFF, 0x7F, 0x80, 0x00]
    assert cast(bf16, "fp8_e8m0_t", choices=Choices(e8m0_inf=0xFF)).codes.tolist()[:3] == [0xFF, 0xFF, 0xFF]
    zero = Choices(e8m0_nan=0x00)
    assert cast(bf16, "fp8_e8m0_t", choices=zero).codes.tolist()[:3] == [0xFE, 0xFE, 0x00]
    assert cast(bf16, "fp8_e8m0_t", choices=zero, saturation=ascend.Ctrl(bit50=True)).codes[2] == 0xFF
    assert cast(bf16, "fp8_e8m0_t", choices=zero, saturation=False).codes[2] == 0xFF
    scales = Array(np.arange(256, dtype=np.uint8), "float8_e8m0fnu")
    plain = cast(scales, "bfloat16_t").codes
    assert plain[0] == 0x0040 and plain[255] == 0x7FC0 and np.array_equal(plain[1:255], np.arange(1, 255) << 7)
    other = cast(scales, "bfloat16_t", choices=Choices(e8m0_zero_code="zero")).codes
    assert other[0] == 0 and np.array_equal(other[1:], plain[1:])


def test_mode_tables() -> None:
    x = floats(1.0625, -1.0625)  # ties of e4m3fn
    by_call, ascendc, pypto = (Choices(mode_table=v) for v in ("by_call", "ascendc", "pypto"))
    up = {"mode": "CEIL"}
    assert cast(x, "fp8_e4m3fn_t", choices=by_call, **up).tolist() == [1.125, -1]
    assert cast(x, "fp8_e4m3fn_t", choices=ascendc, **up).tolist() == [1, -1]
    with pytest.raises(ValueError, match=r"strict casts have CAST_RINT$"):
        cast(x, "fp8_e4m3fn_t", strict=True, choices=by_call, **up)
    assert cast(x, "fp8_e4m3fn_t", strict=True, choices=pypto, **up).tolist() == [1.125, -1]
    b = array([2.25, -2.25], "bfloat16")
    assert cast(b, "fp4x2_e2m1_t", choices=by_call, **up).tolist() == [2, -2]
    assert cast(b, "fp4x2_e2m1_t", choices=ascendc, **up).tolist() == [3, -2]
    assert cast(b, "fp4x2_e2m1_t", strict=True, **up).tolist() == [3, -2]
    with pytest.raises(ValueError, match=r"strict casts have CAST_NONE$"):
        cast(b, "fp4x2_e2m1_t", strict=True, choices=pypto, **up)


def test_control_choices() -> None:
    wide = np.int32([300, -1])
    assert cast(wide, "uint8_t").tolist() == [255, 0]
    cut = Choices(int_to_uint8="cut")
    assert cast(wide, "uint8_t", choices=cut).tolist() == [44, 255]
    assert cast(wide, "uint8_t", saturation=True, choices=cut).tolist() == [255, 0]
    assert np.isposinf(cast(1e6, "half", choices=Choices(entry_ctrl="host_sets_48")))
    x = floats(1e6, -1e6, np.inf)
    off = {"saturation": False, "choices": Choices(directed_overflow="ieee")}
    assert cast(x, "half", "TRUNC", saturation=False).codes.tolist() == [0x7C00, 0xFC00, 0x7C00]
    assert cast(x, "half", "TRUNC", **off).codes.tolist() == [0x7BFF, 0xFBFF, 0x7C00]
    assert cast(x, "half", "FLOOR", **off).codes.tolist() == [0x7BFF, 0xFC00, 0x7C00]
    assert cast(x, "half", "RINT", **off).codes.tolist() == [0x7C00, 0xFC00, 0x7C00]


def test_specials_of_a2_and_doubles() -> None:
    x = floats(np.inf, -np.inf, np.nan, 70000)
    torch = Choices(a2a3_special="torch")
    assert cast(x, "int16_t", product="a2", saturation=False).tolist() == [32767, -32768, 0, 4464]
    assert cast(x, "int16_t", product="a2", saturation=False, choices=torch).tolist() == [-1, 0, 0, 4464]
    assert cast(x, "int16_t", product="a2", choices=torch).tolist() == [32767, -32768, 0, 32767]
    assert cast(x, "int16_t", product="950", saturation=False, choices=torch).tolist() == [32767, -32768, 0, 4464]
    raising = Choices(double_special="raise")
    assert cast(np.float64([1.5]), "int32_t", choices=raising).tolist() == [1]
    with pytest.raises(OverflowError):
        cast(np.float64([1, 1e10]), "int32_t", choices=raising)
    with pytest.raises(ValueError, match="NaN"):
        cast(np.float64([np.nan]), "bfloat16_t", choices=raising)


def test_pypto_choices() -> None:
    x = np.float16([300])
    off = ascend.SaturationMode.OFF
    clamp, pto = Choices(satmode="clamp"), Choices(pypto_sat_default="pto")
    assert cast(x, "int8_t", saturation=off, choices=clamp).tolist() == [127]
    assert cast(x, "int8_t", saturation=False, choices=clamp).tolist() == [44]
    assert cast(x, "int8_t", saturation="pypto").tolist() == [44]
    assert cast(x, "int8_t", saturation="pypto", choices=pto).tolist() == [44]
    assert cast(np.int32([300]), "uint8_t", saturation="pypto").tolist() == [44]
    assert cast(np.int32([300]), "uint8_t", saturation="pypto", choices=pto).tolist() == [255]


def test_odd_to_int() -> None:
    x = floats(1.5, 2.5, -2.5, 2.0, 0.1)
    offered = Choices(odd_to_int="offered")
    for strict in (False, True):
        assert cast(x, "int32_t", "ODD", strict=strict, choices=offered).tolist() == [1, 3, -3, 2, 1]
    assert cast(x, "int32_t", "ODD").tolist() == [1, 2, -2, 2, 0]
    with pytest.raises(ValueError, match="is not a mode of float to int32_t"):
        cast(x, "int32_t", "ODD", strict=True)


def test_integral_zero() -> None:
    x = floats(-0.0, -0.4, 0.0, -1.5, np.nan, -np.inf)
    keep = Choices(integral_zero="keep")
    for product in ("a2", "a3", "950", "310B"):
        for mode in ("RINT", "ROUND", "CEIL", "TRUNC"):
            plain, kept = (cast(x, "float", mode, product, choices=c).to_numpy() for c in (DEFAULT, keep))
            assert np.array_equal(plain, kept, equal_nan=True) and (plain[:3] == 0).all() and plain[3] <= -1
            assert np.signbit(kept).tolist()[:3] == [True, True, False]
            assert np.signbit(plain).tolist()[:3] == ([False] * 3 if product in ("a2", "a3") else [True, True, False])


def test_half_bf16_sat() -> None:
    x = np.float16([np.inf, -np.inf, np.nan, 65504])
    never = Choices(half_bf16_sat="never")
    assert cast(x, "bfloat16_t").codes.tolist() == [0x7F7F, 0xFF7F, 0, 0x4780]
    for saturation in (True, False, ascend.Ctrl(bit60=False)):
        assert cast(x, "bfloat16_t", saturation=saturation, choices=never).codes.tolist() == [
            0x7F80, 0xFF80, 0x7FFF, 0x4780,
        ]  # fmt: skip


def test_half_int16_sat() -> None:
    x = np.float16([65504, -65504, 40000, np.inf, 7])
    assert cast(x, "int16_t", saturation=False).tolist() == [-32, 32, -25536, 32767, 7]
    limits = Choices(half_int16_sat="limits")
    assert cast(x, "int16_t", saturation=False, choices=limits).tolist() == [32767, -32768, 32767, 32767, 7]
    assert cast(x, "int8_t", saturation=False, choices=limits).tolist()[:2] == [-32, 32]


def test_unknown_candidates() -> None:
    with pytest.raises(ValueError, match=r"hybrid_exact='kept' is not a candidate; did you mean 'keep'\?"):
        Choices(hybrid_exact="kept")
    with pytest.raises(ValueError, match=r"e8m0_inf=1 is not a candidate|e8m0_inf=0x01|0xFE, 0xFF"):
        Choices(e8m0_inf=1)
    assert hash(replace(DEFAULT, satmode="clamp")) == hash(Choices(satmode="clamp"))


# --- the document -----------------------------------------------------------------------------------------------------


def test_the_document_is_current() -> None:
    found = Path(__file__).parents[2] / "docs" / "evidence.md"
    text = found.read_text(encoding="utf-8")
    assert text == evidence.document(evidence.vendors(), evidence.proved(text)), (
        "docs/evidence.md is out of date: run python -m bittrue.evidence"
    )


def test_a_document_of_several_vendors(tmp_path: Path) -> None:
    text = evidence.document([("One", Choices), ("Two", Choices)])
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## One", "## Two", "## What has been proved"]
    assert "`0xFE` (default)" in text and "Choices.hybrid_exact" in text
    page = tmp_path / "e.md"
    page.write_text("old", encoding="utf-8")
    evidence.main(str(page))
    assert page.read_text(encoding="utf-8").startswith("# Open questions")
