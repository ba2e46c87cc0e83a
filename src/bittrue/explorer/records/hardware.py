"""Ascend's Fixpipe and rule book, and AI Engine's shift-round-saturate, on one number."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ... import aie, ascend
from ...ascend.quantmodes import QuantMode
from ...formats import IntFormat, Value, format
from ...inspection.casts import SEMANTICS, cast_under_every_mode
from ...inspection.numbers import decimal, short
from ...inspection.words import fields_of, input_of, walk
from ..fields import FieldError, Fields
from .common import DEFAULTS, VALUE_LIMIT, Record, entry, typed

__all__ = ["INTEGERS", "fixpipe", "rule", "srs"]

_ANY_SHIFT = aie.Choices(shift_check="accept")  # what is to be said of a negative one, the page says
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


def fixpipe(given: Fields) -> Record:
    """A parameter word and its fields (from the word, or from fields that are given), and an accumulator's way."""
    product = _fixpipe_product(given)
    arch = product.arch
    assert arch is not None
    modes = [m for m in QuantMode if arch in m.info.fields]
    mode = QuantMode[given.choice("qmode", [m.name for m in modes], DEFAULTS["qmode"])]
    info = mode.info
    word = _word(given, arch, mode) if info.parametrised else None
    value = given.number("acc", DEFAULTS["acc"], 60)
    relu = given.flag("relu")
    try:
        input_of(value, mode)
        steps, target, code = walk(value, mode, word, relu, product)
    except ValueError as error:
        raise FieldError("word" if "word" in str(error) else "acc", str(error)) from None
    record: Record = {
        "product": product.name,
        "arch": arch,
        "modes": [m.name for m in modes],
        "mode": {
            "name": mode.name,
            "number": mode.value,
            "accumulators": list(info.accumulators),
            "outputs": list(info.outputs),
            "per_channel": info.per_channel,
            "reads": list(info.reads(arch)),
            "document": info.document,
        },
        "word": None,
        "steps": [
            {"name": s.name, "formula": s.formula, "value": short(s.value, 20, 12), "note": s.note,
             "full": typed(s.value)}
            for s in steps
        ],
        "result": {**entry(target, code), "format": target.name},
    }  # fmt: skip
    if word is not None:
        param = ascend.QuantParam.unpack(word, arch, mode)
        record["word"] = {
            "hex": f"{word:#018x}",
            "scale": typed(Fraction(param.scale)) if param.scale else str(param.scale),
            "offset": str(param.offset),
            "signed": bool(param.signed),
            "shift": "" if param.shift is None else str(param.shift),
            "has_shift": any(f.name == "N" for f in fields_of(word, arch)),
            "fields": [
                {
                    "name": f.name,
                    "high": f.high,
                    "low": f.low,
                    "meaning": f.meaning,
                    "ignored": f.ignored,
                    "bits": [
                        {"bit": f.high - i, "set": int(bit), "kind": _word_kind(f.name, f.high - i, f.low)}
                        for i, bit in enumerate(f.pattern)
                    ],
                }
                for f in fields_of(word, arch, mode)
            ],
        }
    return record


def _fixpipe_product(given: Fields) -> ascend.Product:
    text = given.text("product", DEFAULTS["product"])
    try:
        product = ascend.product(text)
    except ValueError as error:
        raise FieldError("product", str(error)) from None
    if product.arch is None:
        have = ", ".join(p.name for p in ascend.products() if p.arch)
        raise FieldError("product", f"no document describes the Fixpipe of {product}; of these one does: {have}")
    return product


def _word(given: Fields, arch: int, mode: QuantMode) -> int:
    """Return the word that is given, with a bit flipped or fields put in where asked."""
    word = given.integer("word", 0, (1 << 64) - 1, int(DEFAULTS["word"], 0))
    if "flip" in given:
        word ^= 1 << given.integer("flip", 0, 63, 0)
    try:
        param = ascend.QuantParam.unpack(word, arch, mode)
    except ValueError as error:
        raise FieldError("word", str(error)) from None
    put: dict[str, Any] = {"scale": param.scale, "offset": param.offset, "signed": param.signed, "shift": param.shift}
    changed = False
    for name in put:
        if name in given:
            put[name] = _READERS[name](given)
            changed = True
    if not changed:
        return word
    try:
        return int(ascend.QuantParam(**put).pack(arch))
    except (ValueError, OverflowError) as error:
        field = next((n for n in put if str(error).startswith(f"{n}=")), "word")
        raise FieldError(field, str(error)) from None


def _scale_field(given: Fields) -> float:
    value = given.number("scale", "1", 60)
    try:
        return float(value)
    except OverflowError:
        raise FieldError("scale", f"scale={given.text('scale')[:40]} must be a finite float32") from None


def _shift_field(given: Fields) -> int | None:
    return given.integer("shift", 0, 16, 0) or None


_READERS: dict[str, Callable[[Fields], Any]] = {
    "scale": _scale_field,
    "offset": lambda given: given.integer("offset", -256, 255, 0),
    "signed": lambda given: given.flag("signed"),
    "shift": _shift_field,
}


def _word_kind(name: str, bit: int, low: int) -> str:
    """Return the colour of a bit: the scale is a float32 whose low bits the device does not read."""
    if name == "M1":
        return "sign" if bit == 31 else "exponent" if bit >= 23 else "significand" if bit >= 13 else "unread"
    return {"Offset": "offset", "Sign": "flag", "MCB": "shift", "N": "shift"}.get(name, "unread")


def rule(given: Fields) -> Record:
    """The rule of a cast on an Ascend product, its evidence, and what each mode makes of a number."""
    read: dict[str, Any] = {}
    readers: tuple[tuple[str, Callable[[str], Any]], ...] = (
        ("product", ascend.product),
        ("src", ascend.type_info),
        ("dst", ascend.type_info),
        ("mode", ascend.mode),
    )
    for name, find in readers:
        try:
            read[name] = find(given.text(name, DEFAULTS[name]))
        except ValueError as error:
            raise FieldError(name, str(error)) from None
    product, src, dst, mode = read.values()
    value = given.number("value", DEFAULTS["value"], VALUE_LIMIT)
    for name in ("src", "dst"):
        if read[name].name not in ascend.supported_types(product):
            have = ", ".join(ascend.supported_types(product))
            raise FieldError(name, f"{product} has no {read[name].name}; it has {have}")
    try:
        found = ascend.cast_rule(src, dst, mode, product)
    except ValueError as error:
        raise FieldError("dst", str(error)) from None
    rows = ascend.rules(product, src, dst, mode)
    texts = {n: q for q in ascend.questions() for n in q.numbers}
    return {
        "title": f"{found.source} to {found.destination} on {found.product}",
        "modes": [m.name for m in found.modes],
        "requested": found.effect.requested.name,
        "effective": found.effect.effective.name,
        "status": found.effect.status,
        "reason": found.effect.reason,
        "semantics": found.row.semantics,
        "meaning": SEMANTICS.get(found.row.semantics, ""),
        "overflow": found.overflow_text,
        "evidence": found.row.evidence,
        "document": found.row.document,
        "rows": [
            {
                "api": row.api,
                "modes": " ".join(m.short for m in row.modes),
                "default": row.default.short,
                "effect": "" if row.effect is None else f"{row.effect.status}: {row.effect.effective.short}",
                "evidence": row.evidence,
                "document": row.document,
            }
            for row in rows
        ],
        "questions": [
            {"number": n, "text": texts[n].text, "answer": str(found.choices.answer(n))}
            for n in found.row.questions
            if n in texts
        ],
        "casts": _casts(value, src, dst, product),
    }


def _casts(value: Value, src: ascend.Type, dst: ascend.Type, product: ascend.Product) -> Record | None:
    """What each mode makes of the number; None for types whose values are pairs."""
    if src.is_complex or dst.is_complex:
        return None
    try:
        found = cast_under_every_mode(value, dst.format, f"ascend:{product.name}", src.name)
    except (ValueError, OverflowError) as error:
        raise FieldError("value", str(error)) from None
    return {
        "given": short(found["given"], 20, 12),
        "source": found["source"],
        "modes": [
            {"mode": m["mode"], "effect": m["effect"], **entry(dst.format, m["code"])} for m in found["modes"]
        ],
    }


def srs(given: Fields) -> Record:
    """AI Engine's shift-round-saturate of one accumulator, in every rounding mode of an architecture."""
    try:
        arch = aie.arch(given.text("arch", DEFAULTS["arch"]))
    except ValueError as error:
        raise FieldError("arch", str(error)) from None
    to = format(given.choice("to", INTEGERS, DEFAULTS["to"]))
    value = given.integer("srs", -(1 << 63), (1 << 63) - 1, int(DEFAULTS["srs"]))
    shift = given.integer("shift", -4, 59, int(DEFAULTS["shift"]))
    saturation = given.choice("saturation", tuple(m.value for m in aie.SaturationMode), DEFAULTS["saturation"])
    assert isinstance(to, IntFormat)
    quotient = Fraction(value) / Fraction(2) ** shift
    found = []
    for mode in aie.rounding_modes(arch):
        try:
            result = int(aie.srs([value], to, shift, mode, saturation, arch=arch, choices=_ANY_SHIFT)[0])
        except (ValueError, OverflowError) as error:
            raise FieldError("srs", str(error)) from None
        found.append(
            {"mode": mode.value, "register": aie.rounding_code(mode, arch), "same": mode.rounding.value,
             "result": str(result), "error": decimal(result - quotient, 6)}
        )  # fmt: skip
    return {
        "arch": arch.name,
        "quotient": short(quotient, 24, 17),
        "to": to.name,
        "note": _shift_note(shift),
        "modes": found,
    }


def _shift_note(shift: int) -> str:
    """Return what the documents say of a negative shift."""
    if shift >= 0:
        return ""
    [about] = [q for q in aie.questions() if q.name == "shift_check"]
    candidate = about.candidates[0]
    return f"{candidate.meaning} ({candidate.source})"
