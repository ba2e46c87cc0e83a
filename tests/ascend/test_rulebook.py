"""The rule book against the copies of the vendors' tables, and what it says of every mode."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from ascend.semantics import A5, MODES, ascendc_rows, is_int, pypto_rows
from ascend.test_choices import NO_CAST

from bittrue import ascend
from bittrue.ascend.modes import RoundMode
from bittrue.ascend.rulebook import Effect, Row, pairs, rows


def test_ascend_c_rows_are_the_documents() -> None:
    ours = [
        {
            "product": r.product,
            "api": r.api,
            "src": r.source,
            "dst": r.destination,
            "modes": "|".join(m.short for m in r.modes),
            "default_mode": r.default.short,
            "semantics": r.semantics,
            "evidence": r.evidence,
        }
        for r in rows()
        if r.api in ("memory", "reg")
    ]
    theirs = ascendc_rows()
    assert len(ours) == 216 and ours == theirs


def test_pypto_rows_are_the_documents() -> None:
    ours = {(r.product, r.source, r.destination): r for r in rows() if r.api == "pypto"}
    products = {"A5": [A5], "A2A3": ["Atlas A3", "Atlas A2"]}
    theirs = [(p, row) for row in pypto_rows() for p in products[row["generation"]]]
    assert len(ours) == len(theirs) == 2 * 25 + 46
    for product, row in theirs:
        mine = ours[product, row["src"], row["dst"]]
        # HYBRID is no member of PyPTO's CastMode; pypto_pro offers it, and so do we.
        assert [m.short for m in mine.modes if m.short != "HYBRID"] == row["selectable_modes"].split("|")
        assert ("HYBRID" in [m.short for m in mine.modes]) == (row["dst"] == "hifloat8_t")
        assert mine.default.short == row["default_mode"]
        if mine.selectable:
            assert mine.fallback is mine.default


def test_rows_of_our_own_are_marked() -> None:
    own = [r for r in rows() if r.api == "bittrue"]
    assert [(r.source, r.destination, r.evidence) for r in own] == [("bfloat16_t", "hifloat8_t", "assumed")]
    simt = [(r.source, r.destination, r.semantics) for r in rows() if r.api == "simt"]
    assert simt == [("half", "half", "round-integral"), ("bfloat16_t", "bfloat16_t", "round-integral")]


def test_every_row_names_its_source_and_known_questions() -> None:
    numbers = {n for q in ascend.questions() for n in q.numbers}
    for row in rows():
        assert row.document and row.evidence in ("documented", "vendor-code", "measured", "derived", "assumed")
        assert set(row.questions) <= numbers
    asked = numbers - {13} - NO_CAST  # 13 is about the control state, not about rows
    assert {n for r in rows() for n in r.questions} == asked


def test_sat_defaults_of_the_pto_generator() -> None:
    off = {(r.source, r.destination) for r in rows() if r.pto_satmode == "OFF"}
    assert off == {
        ("half", "uint8_t"), ("half", "int8_t"), ("half", "int16_t"), ("float", "int16_t"), ("int64_t", "int32_t"),
        ("int32_t", "int16_t"),
    }  # fmt: skip


def test_rules_filter_in_any_spelling() -> None:
    found = ascend.rules("950", "FP32", "HiF8")
    assert [(r.api, r.semantics) for r in found] == [("memory", "hif8"), ("reg", "hif8"), ("pypto", "hif8")]
    assert len(ascend.rules()) == len(rows())
    assert ascend.rules("Atlas inference Vector Core") == []
    assert found[0].as_dict()["modes"] == ["ROUND", "HYBRID"]
    asked = ascend.rules("950", "half", "float", mode="floor")
    assert {(r.effect.status, r.effect.reason) for r in asked} == {("ignored", "the conversion is exact")}
    assert asked[0].as_dict()["strict"] == "refused"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("src", "dst", "product"),
    sorted({(r["src"], r["dst"], r["product"]) for r in ascendc_rows() if r["product"] in (A5, "Atlas training")}),
)
def test_default_use_never_refuses_and_says_what_happens(src: str, dst: str, product: str, mode: str) -> None:
    rule = ascend.cast_rule(src, dst, mode, product)
    pypto = [r for r in pypto_rows() if product == A5 and r["generation"] == "A5"]
    generation = [r for r in pypto if (r["src"], r["dst"]) == (src, dst)]
    if generation:
        listed = {m for r in generation for m in r["selectable_modes"].split("|")}
        listed |= {"HYBRID"} if dst == "hifloat8_t" else set()
    else:
        found = [r for r in ascendc_rows() if (r["product"], r["src"], r["dst"]) == (product, src, dst)]
        listed = {m for r in found for m in r["modes"].split("|")}
    if mode != "NONE" and mode in listed:
        assert (rule.effect.status, rule.mode.short) == ("used", mode)
        return
    status = "default" if mode == "NONE" else "ignored" if rule.mode.short == "NONE" else "replaced"
    assert rule.effect.status == status
    if status == "ignored" or rule.mode.short == "NONE":
        rounding = ("round", "float-to-int", "int-to-float", "fp4", "fp8", "hif8")
        assert listed == {"NONE"} and rule.row.semantics not in rounding
        return
    floats = not is_int(src) and src != "complex64"
    if dst == "hifloat8_t":
        assert rule.mode.short == "ROUND"
    elif floats and is_int(dst) and "TRUNC" in listed:
        assert rule.mode.short == "TRUNC"
    else:
        assert rule.mode.short == "RINT"


def test_explain_names_everything() -> None:
    text = ascend.cast_rule("float", "int32_t", "ODD", "a2", saturation=False).explain()
    for part in ("float -> int32_t on Atlas A2", "CAST_ODD: replaced by CAST_TRUNC", "(CTRL[59])", "15: a2a3_special"):
        assert part in text
    assert "the instruction's SatMode" in ascend.cast_rule("float", "half", saturation=ascend.Ctrl(bit60=0)).explain()
    assert "ignored, because the conversion is exact" in ascend.cast_rule("half", "float", "CEIL").explain()
    assert ascend.cast_rule("half", "float").as_dict()["effective"] == "NONE"


def test_modes_for_a_face() -> None:
    assert [m.short for m in ascend.modes("float", "hifloat8_t")] == ["ROUND", "HYBRID"]
    assert [m.short for m in ascend.modes("float", "half", "a2")] == "RINT ROUND FLOOR CEIL TRUNC ODD".split()
    assert [m.short for m in ascend.modes("half", "float")] == ["NONE"]


# --- control ----------------------------------------------------------------------------------------------------------


def test_ctrl_words() -> None:
    assert ascend.Ctrl().word == 1 << 60
    assert ascend.Ctrl.from_word(1 << 48 | 1 << 50 | 1 << 53 | 1 << 59) == ascend.Ctrl(1, 1, 1, 1, 0)  # type: ignore[arg-type]
    assert ascend.Ctrl.from_word(1 << 45) == ascend.Ctrl(bit60=False, bit45=True)
    assert ascend.Ctrl(bit45=True).word == 1 << 60 | 1 << 45
    with pytest.raises(ValueError, match="bit48=2 must be 0 or 1"):
        ascend.Ctrl(bit48=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="64-bit register"):
        ascend.Ctrl.from_word(1 << 64)


@pytest.mark.parametrize("bit60", [0, 1])
@pytest.mark.parametrize("bit48", [0, 1])
@pytest.mark.parametrize("bit59", [0, 1])
@pytest.mark.parametrize("sat", [False, True])
def test_effective_saturation(bit48: int, bit59: int, bit60: int, sat: bool) -> None:
    """The pseudo-code of the specification, section 8.1."""
    ctrl = ascend.Ctrl(bit48=bit48, bit59=bit59, bit60=bit60, sat=sat)  # type: ignore[arg-type]
    for src, dst, kind in [
        ("double", "float", "never"), ("hifloat8_t", "float", "never"), ("half", "bfloat16_t", "global"),
        ("hifloat8_t", "half", "global"), ("half", "half", "global"), ("float", "half", "float"),
        ("float", "hifloat8_t", "float"), ("float", "int16_t", "int"), ("int32_t", "int16_t", "int"),
        ("int32_t", "float", "never"), ("bfloat16_t", "fp4x2_e2m1_t", "always"), ("int16_t", "uint32_t", "always"),
    ]:  # fmt: skip
        wanted = {
            "never": False,
            "always": True,
            "global": not bit48,
            "float": not bit48 if bit60 else sat,
            "int": not bit59 if bit60 else sat,
        }[kind]
        rule = ascend.cast_rule(src, dst, saturation=ctrl)
        if dst == "float":
            assert rule.rule.overflow.value == "infinity" and rule.rule.nan.value == "keep"
        else:
            assert rule.saturates is wanted, (src, dst)


def test_products_have_only_their_control_bits() -> None:
    with pytest.raises(ValueError, match=r"CTRL\[60\] = 0, but Atlas A2 has only CTRL\[48\], CTRL\[59\]"):
        ascend.cast_rule("float", "half", product="a2", saturation=ascend.Ctrl(bit60=False))
    with pytest.raises(ValueError, match="Atlas training has no saturation control: its casts always saturate"):
        ascend.cast_rule("half", "int8_t", product="Atlas training", saturation=False)
    assert ascend.cast_rule("half", "int8_t", product="Atlas training", saturation=True).saturates
    with pytest.raises(ValueError, match="saturation='maybe' must be None"):
        ascend.cast_rule("half", "int8_t", saturation="maybe")


# --- what a row says of itself ----------------------------------------------------------------------------------------


def test_the_loader_keeps_every_field_of_the_files() -> None:
    """Two readings of the same files: this one by hand."""
    folder = Path(ascend.__file__).parent / "data"
    titles = dict(list(csv.reader((folder / "documents.csv").read_text("utf-8").splitlines()))[1:])
    names, *lines = list(csv.reader((folder / "rules.csv").read_text("utf-8").splitlines()))
    assert len(rows()) == len(lines)
    for row, line in zip(rows(), lines):
        given = dict(zip(names, line))
        plain = "product api source destination default semantics saturation evidence".split()
        shown = row.as_dict()
        assert shown == {
            "document": titles[given["document"]],
            **{name: given[name] for name in plain},
            "modes": given["modes"].split("|"),
            "questions": [int(n) for n in given["questions"].split()],
        }
        assert row.nan_code == (int(given["nan_code"], base=16) if given["nan_code"] else None)
        assert (row.pto_satmode, row.effect) == (given["pto_satmode"], None)
    assert {row.nan_code for row in rows()} > {None}


def test_the_effect_of_a_mode_is_part_of_a_row() -> None:
    (row,) = [r for r in ascend.rules("a2", "half", "int8_t", "ODD") if r.api == "pypto"]
    shown = row.as_dict()
    assert {name: shown[name] for name in ("mode", "effect", "effective", "strict", "reason")} == {
        "mode": "ODD",
        "effect": "replaced",
        "effective": "TRUNC",
        "strict": "refused",
        "reason": "the pair has CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC, and the default applies: "
        "from float to integer it is TRUNC",
    }
    (plain,) = [r for r in ascend.rules("a2", "half", "int8_t") if r.api == "pypto"]
    assert plain.effect is None and plain.as_dict().items() <= shown.items() and len(shown) == len(plain.as_dict()) + 5
    (row,) = [r for r in ascend.rules("a2", "half", "int8_t", "FLOOR") if r.api == "pypto"]
    assert [row.as_dict()[name] for name in ("effect", "effective", "strict")] == ["used", "FLOOR", "allowed"]


def row_of(src: str, dst: str, api: str = "memory", product: str = "950") -> Row:
    return next(r for r in ascend.rules(product, src, dst) if r.api == api)


@pytest.mark.parametrize(
    ("row", "mode", "status", "effective", "reason"),
    [
        (("half", "hifloat8_t"), "NONE", "default", "ROUND",
         "no mode is given, and the default applies: to hifloat8 it is ROUND"),
        (("half", "hifloat8_t"), "ODD", "replaced", "ROUND",
         "the pair has CAST_ROUND, CAST_HYBRID, and the default applies: to hifloat8 it is ROUND"),
        (("half", "int8_t"), "NONE", "default", "TRUNC",
         "no mode is given, and the default applies: from float to integer it is TRUNC"),
        (("half", "int8_t"), "RINT", "used", "RINT", "the document lists it for this pair"),
        (("float", "half"), "NONE", "default", "RINT", "no mode is given, and the default applies: it is RINT"),
        (("float", "half"), "HYBRID", "replaced", "RINT", "the pair has CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, "
         "CAST_TRUNC, CAST_ODD, and the default applies: it is RINT"),
        (("int32_t", "half"), "CEIL", "ignored", "NONE", "dequantisation always rounds to nearest even"),
        (("int32_t", "half"), "NONE", "default", "NONE", "dequantisation always rounds to nearest even"),
        (("fp8_e8m0_t", "bfloat16_t", "reg"), "RINT", "ignored", "NONE", "the exponent field is copied"),
        (("int16_t", "int4x2_t"), "ODD", "ignored", "NONE",
         "integers narrow without rounding; saturation control alone decides"),
        (("int16_t", "uint32_t"), "ODD", "ignored", "NONE",
         "the conversion is exact but for negative values, which give 0"),
        (("hifloat8_t", "half"), "ODD", "ignored", "NONE", "the conversion is exact"),
        (("half", "float"), "NONE", "default", "NONE", "the conversion is exact"),
        (("int16_t", "half", "memory", "Atlas training"), "ODD", "replaced", "RINT",
         "the pair has no selectable mode, and the default applies: it is RINT"),
        (("complex32", "complex64"), "ODD", "ignored", "NONE", "the conversion is exact"),
        (("complex64", "complex32"), "ODD", "used", "ODD", "the document lists it for this pair"),
    ],
)  # fmt: skip
def test_what_becomes_of_a_mode(row: tuple[str, ...], mode: str, status: str, effective: str, reason: str) -> None:
    found = row_of(*row).judge(RoundMode[mode])
    assert (found.requested.short, found.status, found.effective.short) == (mode, status, effective)
    assert found.reason == reason


def test_strict_refuses_what_is_not_listed() -> None:
    half = row_of("float", "half")
    assert half.judge(RoundMode.ODD, strict=True) == half.judge(RoundMode.ODD)
    refused = half.judge(RoundMode.HYBRID, strict=True)
    listed = "it has CAST_NONE, CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC, CAST_ODD"
    assert refused == Effect(RoundMode.HYBRID, RoundMode.HYBRID, "refused", listed)
    none = row_of("complex64", "complex32").judge(RoundMode.NONE, strict=True)
    assert none == Effect(RoundMode.NONE, RoundMode.RINT, "used", "NONE rounds as RINT where bits are lost")
    assert row_of("complex64", "complex32").judge(RoundMode.NONE).status == "default"


def test_odd_to_int_is_asked_of_the_rows_of_question_32() -> None:
    asked, other = row_of("half", "int8_t"), row_of("half", "hifloat8_t")
    assert 32 in asked.questions and 32 not in other.questions
    for strict in (False, True):
        assert asked.judge(RoundMode.ODD, strict, odd_to_int=True).status == "used"
        assert asked.judge(RoundMode.ODD, strict, odd_to_int=True).effective is RoundMode.ODD
        assert asked.judge(RoundMode.ODD, strict).status == ("refused" if strict else "replaced")
        assert asked.judge(RoundMode.ODD, strict) == asked.judge(RoundMode.ODD, strict, odd_to_int=False)
        assert other.judge(RoundMode.ODD, strict, odd_to_int=True) == other.judge(RoundMode.ODD, strict)


def test_pairs_are_the_rows_of_a_product() -> None:
    found = pairs(A5)
    assert [r for group in found.values() for r in group] != [] and sum(map(len, found.values())) == len(
        [r for r in rows() if r.product == A5]
    )
    assert all((r.product, r.source, r.destination) == (A5, *at) for at, group in found.items() for r in group)
    assert [r.api for r in found["float", "hifloat8_t"]] == ["memory", "reg", "pypto"]
    assert pairs("no product") == {}
