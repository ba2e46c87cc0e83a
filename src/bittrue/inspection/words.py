"""Fixpipe's parameter words taken apart, and one accumulator on its way through the steps of a quantising mode."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from .. import exact
from ..ascend.modes import RoundMode
from ..ascend.products import Product
from ..ascend.quant import BITS, QuantParam
from ..ascend.quantmodes import QuantMode, architecture, quant_mode, require_mode
from ..ascend.rule import cast_rule
from ..formats import Format, IntFormat, Value, format
from ..rounding import Overflow, Rule
from .numbers import short

__all__ = ["Step", "WordField", "fields_of", "input_of", "walk"]

_FIELD_OF = {"M1": "scale", "N": "shift", "MCB": "shift", "Offset": "offset", "Sign": "signed"}
_ACCUMULATORS = {"float": format("float32"), "int32_t": format("int32")}


class WordField(NamedTuple):
    """A field of a parameter word: where it is, its bits, what they mean, and whether a mode takes no notice."""

    name: str
    high: int
    low: int
    pattern: str
    meaning: str
    ignored: bool


class Step(NamedTuple):
    """One step of an accumulator: what is done, in a formula, the value after it, and where it stops short."""

    name: str
    formula: str
    value: Value
    note: str


def fields_of(word: int, arch: int, mode: QuantMode | None = None) -> list[WordField]:
    """Take a word apart, most significant field first; fields without a name mean nothing.

    Raises
    ------
    ValueError
        For a scale that is NaN or infinite, and a mode without a parameter word.

    Examples
    --------
    >>> [(f.name, f.meaning) for f in fields_of(0x7FB03F000000, 2201) if f.name]
    [('Sign', 'int8'), ('Offset', '-3'), ('MCB', 'shifted to int16'), ('N', 'right by 1'), ('M1', '0.5')]
    """
    param = QuantParam.unpack(word, arch, mode)
    read = None if mode is None else mode.info.reads(arch)
    return [
        WordField(
            b.name,
            b.high,
            b.low,
            f"{word >> b.low & ((1 << (b.high - b.low + 1)) - 1):0{b.high - b.low + 1}b}",
            _meaning(b.name, param),
            bool(b.name) and read is not None and _FIELD_OF[b.name] not in read,
        )
        for b in reversed(BITS[arch])
    ]


def _meaning(name: str, param: QuantParam) -> str:
    if name == "M1":
        return short(Fraction(param.scale), 20, 12) if param.scale else str(param.scale)
    if name == "Offset":
        return str(param.offset)
    if name == "Sign":
        return "int8" if param.signed else "uint8"
    if name == "MCB":
        return "no shift" if param.shift is None else "shifted to int16"
    if name == "N":
        return "-" if param.shift is None else f"right by {param.shift}"
    return "-"


def input_of(value: Value, mode: QuantMode) -> tuple[Format, Value]:
    """Return the type of a mode's accumulators, and a value as such an accumulator.

    Raises
    ------
    ValueError
        For a value that is no int32, where the mode takes those.
    """
    names = mode.info.accumulators
    whole = isinstance(value, Fraction) and value.denominator == 1
    f = _ACCUMULATORS["int32_t" if "int32_t" in names and (whole or len(names) == 1) else names[0]]
    if isinstance(f, IntFormat):
        if not whole or not f.min <= value <= f.max:
            raise ValueError(f"acc={short(value, 24)} is not an int32, which mode {mode.name} takes")
        return f, value
    return f, f.value(exact.encode(value, f, Rule(overflow=Overflow.infinity)))


def walk(
    value: Value, mode: QuantMode | str | int, word: int | None, relu: bool, product: str | int | Product
) -> tuple[list[Step], Format, int]:
    """Move one accumulator through the steps of `bittrue.ascend.fixpipe`, and say what it is after each.

    Parameters
    ----------
    value : Fraction or float
    mode : QuantMode, name or number
    word : int or None
        The parameter word; None for a mode without.
    relu : bool
    product : product name or NPU architecture

    Returns
    -------
    list of Step, Format, int
        The steps, the result's format and its code.

    Raises
    ------
    ValueError
        A mode that the product lacks; a word that is missing, not wanted, or whose scale is not finite; a value that is
        no accumulator of the mode.

    Examples
    --------
    >>> steps, target, code = walk(Fraction(7), "REQ8", QuantParam(0.5, 10).pack(3510), False, "950")
    >>> [(s.name, str(s.value)) for s in steps], target.name, code
    ([('accumulator', '7'), ('scale', '7/2'), ('round', '4'), ('clamp', '4'), ('offset', '14'), ('clamp', '14')], \
'int8', 14)

    References
    ----------
    The steps and their sources: `bittrue.ascend.fixpipe`; open questions have their documented defaults.
    """
    chosen, arch = quant_mode(mode), architecture(product, "product")
    info = chosen.info
    require_mode(info, arch)
    if info.parametrised is (word is None):
        raise ValueError(f"word: mode {chosen.name} {'reads a' if info.parametrised else 'takes no'} parameter word")
    source, x = input_of(value, chosen)
    rounded = "" if x == value or x != x else f"{short(value, 24)} rounded to {source.name}"
    steps = [Step("accumulator", source.name, x, rounded)]
    if word is None:
        if relu:
            x = Fraction(0) if x < 0 else x
            steps.append(Step("ReLU", "max(x, 0)", x, ""))
        if info.cast is None:
            return steps, source, exact.encode(x, source, Rule(overflow=Overflow.infinity))
        return _cast(steps, x, format(info.outputs[0]), info.cast, product, False)
    param, reads = QuantParam.unpack(word, arch, chosen), info.reads(arch)
    if "shift" in reads and param.shift is not None:
        shifted = int(x) >> param.shift
        x = Fraction(min(max(shifted, -32768), 32767))
        steps.append(Step("shift", f"x >> {param.shift}, to int16", x, "" if x == shifted else "saturates"))
    m = np.float32(param.scale)
    if relu and not x >= 0:
        m = np.float32(0)
        steps.append(Step("ReLU", "x < 0: the scale becomes 0", x, ""))
    wide = np.float32(int(x)) if isinstance(source, IntFormat) else np.float32(float(x))
    with np.errstate(all="ignore"):
        product_ = wide * m
    t = _value(product_)
    steps.append(Step("scale", f"x * {short(_value(m), 16, 9)}, in float32", t, _inexact(t, x, _value(m))))
    if not info.to_integer:
        if info.cast is None:
            f = format("float32")
            return steps, f, exact.encode(t, f, Rule(overflow=Overflow.infinity))
        always = chosen in (QuantMode.DEQF16, QuantMode.VDEQF16)
        return _cast(steps, t, format(info.outputs[0]), info.cast, product, always)
    target = format("int8" if param.signed else "uint8")
    nan = isinstance(t, float) and math.isnan(t)
    number = Fraction(0) if nan else t if isinstance(t, float) and math.isinf(t) else Fraction(round(t))
    steps.append(Step("round", "nearest even", number, "NaN counts as 0" if nan else ""))
    first = int(min(max(number, -256), 255))
    steps.append(Step("clamp", "to -256 .. 255", Fraction(first), _clamped(first, number)))
    total = first + (param.offset if "offset" in reads else 0)
    steps.append(Step("offset", f"{'+' if param.offset >= 0 else '-'} {abs(param.offset)}", Fraction(total), ""))
    last = min(max(total, int(target.min)), int(target.max))
    limits = f"to {target.name}: {target.min} .. {target.max}"
    steps.append(Step("clamp", limits, Fraction(last), _clamped(last, Fraction(total))))
    assert isinstance(target, IntFormat)
    return steps, target, target.pack(last)


def _cast(
    steps: list[Step], t: Value, target: Format, mode: RoundMode, product: str | int | Product, always: bool
) -> tuple[list[Step], Format, int]:
    """Add the cast from float32, under the rule book's rule."""
    rule = cast_rule("float", target, mode, product, True if always else None, strict=True)
    code = exact.encode(t, target, rule.rule, source="float32")
    try:
        exact.encode(t, target, replace(rule.rule, overflow=Overflow.raise_), source="float32")
        note = ""
    except OverflowError:
        note = "beyond the range"
    name = f"{mode.name}: {rule.rule.rounding.value}, to {target.name}"
    steps.append(Step("round", name, target.value(code), note))
    return steps, target, code


def _value(number: np.float32) -> Value:
    """Return a float32 as an exact value."""
    f = format("float32")
    return f.value(int(number.view(np.uint32)))


def _inexact(t: Value, x: Value, m: Value) -> str:
    if isinstance(t, float) or isinstance(x, float) or isinstance(m, float) or t == x * m:
        return ""
    return "rounded to float32"


def _clamped(after: int, before: Value) -> str:
    return "" if after == before else f"{short(before, 12)} is beyond"
