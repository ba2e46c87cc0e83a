"""One block of a block format, down to the bits of its bytes."""

from __future__ import annotations

from fractions import Fraction

from ...formats import Value
from ...inspection.blocks import blocks_of, byte_parts, element_text, read_values, scale_of
from ...inspection.numbers import decimal, power, short
from ...kinds.block import BlockFormat, BlockRule, ScaledFormat, SharedExponentFormat
from ...rounding import Rounding
from ..fields import FieldError, Fields, checked_size
from .common import DEFAULTS, Record, about, finite

__all__ = ["block"]

_VALUES_LIMIT = 4000
_OPTIONS = ("overflow", "scale_rule", "nonfinite")  # of a `BlockRule`, beside the rounding
_ROUNDINGS = tuple(m.value for m in Rounding if m not in (Rounding.stochastic, Rounding.hybrid))


def block(given: Fields) -> Record:
    """One block of values: exponent or scale, level-2 exponents, mantissas or elements, bytes."""
    f = given.format("block", DEFAULTS["block"])
    if not isinstance(f, BlockFormat):
        raise FieldError("block", f"{f.name} holds one number in a code: see the view of numbers")
    text = given.text("values", DEFAULTS["values"], _VALUES_LIMIT)
    try:
        values = read_values(text.replace("\n", ","))
    except ValueError as error:
        message = str(error) if len(text) <= 80 else "values must be real numbers, apart by commas"
        raise FieldError("values", message) from None
    for value in values:
        checked_size("values", value)
    if len(values) > f.block_size:
        raise FieldError("values", f"{len(values)} values are given; a block of {f.name} takes {f.block_size}")
    for name in _OPTIONS:
        if name in given and name not in _block_words(f):
            raise FieldError(name, f"{name} is not a field of {f.name}")
    asked = {
        name: given.choice(name, words, getattr(f.rule, name).value)
        for name, words in _block_words(f).items()
        if name in given
    }
    try:
        rule = BlockRule(**asked)  # type: ignore[arg-type]
        f.with_rule(rule)
        [view] = blocks_of(values, f, rule)
    except (ValueError, OverflowError) as error:
        field = next((n for n in asked if str(error).startswith(f"{n}=")), "values")
        raise FieldError(field, str(error)) from None
    head, scale = view.block.exponent, scale_of(view.block, f)
    shared = isinstance(f, SharedExponentFormat)
    group = f.shift_group if isinstance(f, SharedExponentFormat) else 0
    elements = []
    filled = [*view.given, *[Fraction(0)] * (f.block_size - len(view.given))]
    largest = max((abs(v) for v in (*filled, *view.values) if isinstance(v, Fraction)), default=Fraction(0))
    for i, (x, code, value) in enumerate(zip(filled, view.block.codes, view.values)):
        elements.append(
            {
                "given": short(x, 14, 7),
                "filled": i >= len(view.given),
                "code": f"{code:0{f.element_bits}b}",
                "element": element_text(f, code),
                "shift": str(view.block.shifts[i // group]) if group else "",
                "value": short(value, 14, 7),
                "error": _relative(x, value),
                "given_at": _height(x, largest),
                "value_at": _height(value, largest),
            }
        )
    return {
        "format": about(f),
        "head": {
            "name": "E1" if shared else "scale",
            "code": f"0x{head:02x}",
            "bits": f"{head:08b}",
            "text": f"{head} = {power(scale)}" if shared else f"0x{head:02x} = {power(scale)}",
        },
        "formula": _block_formula(f),
        "group": group,
        "elements": elements,
        "bytes": [
            {
                "hex": f"{byte:02x}",
                "parts": [
                    {"name": name, "bits": f"{byte >> low & (1 << high - low + 1) - 1:0{high - low + 1}b}",
                     "kind": _piece_kind(name), "of": _piece_index(name)}
                    for high, low, name in parts
                ],
            }
            for byte, parts in zip(view.image, byte_parts(f))
        ],
        "options": {
            name: {"words": list(words), "chosen": asked.get(name, getattr(f.rule, name).value)}
            for name, words in _block_words(f).items()
        },
    }  # fmt: skip


def _block_words(f: BlockFormat) -> dict[str, tuple[str, ...]]:
    """Return the options that a format's rule has, with their words."""
    found: dict[str, tuple[str, ...]] = {"rounding": _ROUNDINGS}
    for name in _OPTIONS:
        chosen = getattr(f.rule, name)
        if chosen is not None:
            found[name] = tuple(word.value for word in type(chosen) if _fits(f, name, word.value))
    return found


def _fits(f: BlockFormat, name: str, word: str) -> bool:
    try:
        f.with_rule(BlockRule(**{name: word}))  # type: ignore[arg-type]
    except ValueError:
        return False
    return True


def _block_formula(f: BlockFormat) -> str:
    if isinstance(f, SharedExponentFormat):
        return f"m / 2^{f.fraction_bits} * 2^(E1 - {f.bias}{' - E2' if f.shifts else ''})"
    assert isinstance(f, ScaledFormat)
    fixed = f" / 2^{f.fraction_bits}" if f.fraction_bits else ""
    return f"element ({f.element.name}){fixed} * scale ({f.scale.name})"


def _piece_kind(name: str) -> str:
    return {"E1": "exponent", "sc": "exponent", "E2": "dot"}.get(name[:2], "significand")


def _piece_index(name: str) -> int:
    """Return the number of the element, or of the level-2 exponent, that a piece belongs to; -1 for the head."""
    digits = name[2:].lstrip("[") if name.startswith("E2") else name[1:]
    number = digits.partition("[")[0].rstrip("]")
    return int(number) if number.isdigit() and not name.startswith("E1") else -1


def _height(value: Value, largest: Fraction) -> float | None:
    """Return a value as a part of the largest magnitude, for a drawing; None for NaN and infinities."""
    if isinstance(value, float) and value:
        return None
    return round(float(finite(value) / largest), 4) if largest else 0.0


def _relative(given: Value, value: Value) -> str:
    """Return the relative error in percent."""
    if not isinstance(given, Fraction) or given == 0 or (isinstance(value, float) and value):
        return ""
    return f"{decimal((finite(value) - given) / given * 100, 3)} %"
