"""Candidates of hardware: what each target's own rule book says it could have done."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..codec import encode
from ..formats import IntFormat
from ..rounding import NanPolicy, Overflow, Rule, suggestion
from .candidates import Candidate, encoded
from .case import Case

__all__ = ["check_target", "target_candidates"]

Codes = np.ndarray[Any, Any]
_VENDORS = ("ascend", "aie")


def check_target(target: str) -> tuple[str, str]:
    """Return vendor and product of "ascend:a2", "aie:aie-ml", "ascend" ...; raise `ValueError` for others."""
    if not isinstance(target, str):
        raise ValueError(f"target={target!r} must be a string such as 'ascend:950' or 'aie:aie-ml'")
    vendor, _, name = target.partition(":")
    vendor = vendor.strip().casefold()
    if vendor == "ascend":
        from ..ascend import parse_target

        parse_target(target)
    elif vendor == "aie":
        from ..aie.arch import DEFAULT_ARCH, arch

        arch(name.strip() or DEFAULT_ARCH)
    else:
        close = suggestion(vendor, _VENDORS)
        raise ValueError(
            f"target={target!r} is not a target{close}; expected 'ascend[:PRODUCT]', such as 'ascend:950', or "
            "'aie[:ARCH]', such as 'aie:aie-ml'"
        )
    return vendor, name.strip()


def target_candidates(case: Case, target: str) -> Iterator[Candidate]:
    """Yield the candidates of a target."""
    vendor, name = check_target(target)
    if vendor == "aie":
        yield from _aie(case, name)
    elif case.options.get("quant") is not None or case.options.get("mode") is not None:
        yield from _fixpipe(case, target)
    else:
        yield from _ascend(case, target)


# --- Ascend: casts ----------------------------------------------------------------------------------------------------


def _ascend(case: Case, target: str) -> Iterator[Candidate]:
    """Every mode and control state that the product has for the pair, then every answer to its open questions."""
    from ..ascend import Choices, RoundMode, cast_rule, parse_target, questions

    product = parse_target(target)
    if case.scaled:
        return
    try:
        default = cast_rule(case.source, case.to, product=product)
    except ValueError:
        return
    seen: dict[str, int] = {}
    states: list[Any] = [None, True, False]
    own = Choices()
    answers: list[tuple[str, Choices]] = [("", own)]
    for question in questions():
        if set(question.numbers) & set(default.row.questions):
            current = getattr(own, question.name)
            for value in (c.value for c in question.candidates):
                if value != current and value != "raise":
                    answers.append((f"{question.name}={value!r}", replace(own, **{question.name: value})))
    for k, (answer, choices) in enumerate(answers):
        for mode in dict.fromkeys(RoundMode):
            for state in states:
                try:
                    found = cast_rule(case.source, case.to, mode, product, state, choices=choices)
                except ValueError:
                    continue
                if found.effect.status in ("replaced", "ignored"):
                    continue
                name = found.mode.name if found.mode else "CAST_NONE"
                name += _state(found.row.saturation, found.saturates, state) + (f", {answer}" if answer else "")
                if name in seen:
                    continue
                seen[name] = 1
                usual = mode is RoundMode.CAST_NONE and state is None and not answer
                yield Candidate(
                    name,
                    found.explain().splitlines()[-1 if not found.row.questions else -2],
                    _cast(mode, product, state, choices),
                    (0 if usual else 2 + (state is False) + 3 * (k > 0)),
                    found.rule,
                    True,
                )


def _state(saturation: str, saturates: bool, state: Any) -> str:
    if saturation == "none":
        return ""
    return ", saturating" if saturates else ", not saturating"


def _cast(mode: Any, product: Any, state: Any, choices: Any) -> Callable[[Case], Codes]:
    def make(case: Case) -> Codes:
        from ..array import Array
        from ..ascend import cast

        x = case.x if case.x.dtype.isbuiltin == 1 else Array(case.x, case.source)
        done = cast(
            x, case.to, mode, product, state, deqscale=case.options.get("deqscale"), odd="pad", choices=choices
        )
        return np.asarray(done.codes)

    return make


# --- Ascend: the matrix unit's output ---------------------------------------------------------------------------------

#: Open questions of Fixpipe that are answered in every combination, and what the other answer means.
_FIXPIPE: dict[str, dict[Any, str]] = {
    "offset_signed": {False: "offset read as unsigned"},
    "n_field": {"raw": "shift by N instead of N + 1"},
    "m1": {"round": "scale rounded instead of cut to 10 bits"},
    "scale_product": {"exact": "product not rounded to float32"},
}


def _fixpipe(case: Case, target: str) -> Iterator[Candidate]:
    from ..ascend import Choices, parse_target

    product, own = parse_target(target), Choices()
    names = [n for n in _FIXPIPE if n in {f.name for f in fields(Choices)}]
    combinations = itertools.product(*([(getattr(own, n), ""), *_FIXPIPE[n].items()] for n in names))
    for chosen in combinations:
        said = [text for _, text in chosen if text]
        choices = replace(own, **{n: value for n, (value, _) in zip(names, chosen)})
        for relu in dict.fromkeys((bool(case.options.get("relu")), not case.options.get("relu"))):
            wrong = [] if relu == bool(case.options.get("relu")) else ["ReLU applied" if relu else "ReLU not applied"]
            yield Candidate(
                ", ".join([*said, *wrong]) or "Fixpipe as documented",
                "an open question answered otherwise" if said else "the documented steps",
                _piped(product, relu, choices),
                2 * len(said) + 6 * len(wrong),
                None,
                True,
            )
    for other in fields(Choices):
        if other.name in ("mcb_narrow", "mcb_modes", "m1_subnormal", "deqf16_offset", "relu_nan", "fixpipe_sat"):
            for value, meaning in _answers(other.name):
                choices = replace(own, **{other.name: value})
                relu = bool(case.options.get("relu"))
                yield Candidate(f"{other.name}={value!r}", meaning, _piped(product, relu, choices), 4, None, True)
    if isinstance(case.to, IntFormat):
        for name, about, flags in _FAULTS:
            yield Candidate(name, about, _faulty(product, flags), 8)


def _answers(name: str) -> list[tuple[Any, str]]:
    from ..ascend import Choices, questions

    own = getattr(Choices(), name)
    return [
        (c.value, c.meaning)
        for q in questions()
        if q.name == name
        for c in q.candidates
        if c.value not in (own, "raise")
    ]


def _piped(product: Any, relu: bool, choices: Any) -> Callable[[Case], Codes]:
    def make(case: Case) -> Codes:
        from ..ascend.fixpipe import fixpipe

        words = _words(case.options.get("quant"), product)
        return np.asarray(fixpipe(case.x, case.options["mode"], words, relu, product, choices=choices).codes)

    return make


def _words(quant: Any, product: Any) -> Any:
    """Return the words that the host writes: by the documented layout, with all bits of the scale."""
    from ..ascend import Choices
    from ..ascend.quant import QuantParam, architecture

    if not isinstance(quant, QuantParam):
        return quant
    return quant.pack(architecture(product), choices=Choices(m1="round"))


#: Departures from the documented steps that golden scripts and models have.
_FAULTS: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("scale not cut: all 24 bits used", "pto-isa's CPU model in scalar mode", frozenset({"full"})),
    ("no clamp to nine bits before the offset", "one clamp at the end", frozenset({"unclamped"})),
    ("offset added before rounding", "x * scale + offset rounded once: pto-isa's CPU model", frozenset({"once"})),
    (
        "scale not cut, offset added before rounding, one clamp",
        "pto-isa's CPU model",
        frozenset({"full", "unclamped", "once"}),
    ),
    ("scale not cut, one clamp", "two faults", frozenset({"full", "unclamped"})),
    ("offset forgotten", "the offset is not added", frozenset({"no offset"})),
    ("offset subtracted", "the offset is added with the opposite sign", frozenset({"minus offset"})),
    ("rounds half away from zero", "C's round() instead of rint()", frozenset({"away"})),
    ("cuts instead of rounding", "conversion to an integer in C", frozenset({"trunc"})),
)


def _faulty(product: Any, flags: frozenset[str]) -> Callable[[Case], Codes]:
    """Return 8-bit requantisation with some of its steps wrong (specs/ascend.md, 11.5)."""

    def make(case: Case) -> Codes:
        scale, offset, shift = _parameters(case, product)
        x = case.x
        if shift is not None and x.dtype.kind == "i":
            x = np.where(shift > 0, np.clip(x >> np.maximum(shift, 0), -32768, 32767), x)
        if "full" not in flags:
            scale = (scale.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
        if case.options.get("relu"):
            scale = np.where(x >= 0, scale, np.float32(0))
        with np.errstate(all="ignore"):
            t = np.nan_to_num(x.astype(np.float32) * scale, nan=0.0, posinf=1e9, neginf=-1e9).astype(np.float64)
        if flags & {"no offset", "minus offset"}:
            offset = -offset if "minus offset" in flags else np.zeros_like(offset)
        if "once" in flags:
            t = t + offset
        if "away" in flags:
            t = t + np.copysign(0.5, t)
        rounded = np.trunc(t) if flags & {"away", "trunc"} else np.rint(t)
        if "unclamped" not in flags:
            rounded = np.clip(rounded, -256, 255)
        if "once" not in flags:
            rounded = rounded + offset
        return np.asarray(encode(rounded, case.to))

    return make


def _parameters(case: Case, product: Any) -> tuple[Codes, Codes, Codes | None]:
    """Return scale (float32, uncut), offset and shift (0: none) of the parameter words."""
    from ..ascend.quant import QuantParam, architecture

    given = case.options["quant"]
    arch = architecture(product)
    if isinstance(given, QuantParam):
        shift = np.asarray(0 if given.shift is None else given.shift)
        return np.asarray(given.scale, np.float32), np.asarray(given.offset), np.maximum(shift, 0)
    words = np.asarray(given, np.uint64)
    bits = (words & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    offset = ((words >> np.uint64(37)) & np.uint64(0x1FF)).astype(np.int64)
    offset = (offset ^ 0x100) - 0x100
    if arch != 2201:
        return np.asarray(bits).view(np.float32), np.asarray(offset), None
    on = ((words >> np.uint64(36)) & np.uint64(1)).astype(np.int64)
    count = ((words >> np.uint64(32)) & np.uint64(0xF)).astype(np.int64) + 1
    return np.asarray(bits).view(np.float32), np.asarray(offset), np.asarray(on * count)


# --- AI Engine --------------------------------------------------------------------------------------------------------


def _aie(case: Case, name: str) -> Iterator[Candidate]:
    """Rounding and saturation registers; their state at kernel entry is floor and no saturation (UG1079, UG1603)."""
    from ..aie.arch import DEFAULT_ARCH, arch
    from ..aie.modes import RoundingMode, SaturationMode

    of = arch(name or DEFAULT_ARCH)
    integer = isinstance(case.to, IntFormat)
    for k, mode in enumerate(RoundingMode):
        if k > 0 and of.number == 10 and mode.value in ("symmetric_floor", "symmetric_ceil"):
            continue
        saturations = list(SaturationMode) if integer else [SaturationMode.none]
        for saturation in saturations:
            usual = k == 0 and saturation is SaturationMode.none
            label = mode.value + (f", saturation {saturation.value}" if integer else "")
            if usual:
                label += " (the registers' state at kernel entry)"
            yield Candidate(
                label,
                f"aie::rounding_mode::{mode.value}"
                + (f", aie::saturation_mode::{saturation.value}" if integer else "")
                + (": nobody set the sticky registers of the tile" if usual else ""),
                _vector(mode, saturation, of),
                0 if usual else 2 + k // 6,
                _aie_rule(mode.rounding, saturation.value, integer),
                True,
            )


def _aie_rule(rounding: Any, saturation: str, integer: bool) -> Rule:
    if integer:
        return Rule(rounding, Overflow.wrap if saturation == "none" else Overflow.saturate)
    return Rule(rounding, Overflow.infinity, NanPolicy.keep)


def _vector(mode: Any, saturation: Any, of: Any) -> Callable[[Case], Codes]:
    def make(case: Case) -> Codes:
        shift = int(case.options.get("shift") or 0)
        to = case.to
        if isinstance(to, IntFormat) and case.x.dtype.kind in "iu":
            from ..aie.srs import srs

            done = srs(case.x.astype(np.int64).reshape(-1), to.name, shift, mode, saturation, arch=of)
            return np.asarray(done).view(to.storage).reshape(case.x.shape)
        x = np.asarray(case.x)
        if shift:
            x = np.ldexp(x.astype(np.float64), -shift)
        codes = encoded(case, to, _aie_rule(mode.rounding, saturation.value, isinstance(to, IntFormat)), x)
        if saturation.value == "symmetric" and isinstance(to, IntFormat) and to.signed:
            lowest, next_ = (np.array(to.pack(int(to.min) + k)).astype(to.code_dtype).view(to.storage) for k in (0, 1))
            codes = np.where(codes == lowest, next_, codes)
        return codes

    return make


