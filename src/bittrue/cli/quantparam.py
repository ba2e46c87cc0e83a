"""`bittrue quantparam`: Fixpipe's parameter word from its fields and back, with the bits drawn."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..ascend.quant import QuantParam
from ..ascend.quantmodes import QuantMode, architecture, quant_mode
from ..inspection.numbers import exact
from ..inspection.words import WordField, fields_of
from .output import COLOURS, console, print_json, table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["pack", "unpack"]


def pack(
    scale: str, offset: int, signed: bool | None, shift: int | None, arch: str, mode: str | None, as_json: bool
) -> None:
    """Print the word of one set of parameters."""
    try:
        factor = float(Fraction(scale)) if "/" in scale else float.fromhex(scale) if "0x" in scale else float(scale)
    except ValueError:
        raise ValueError(f"--scale {scale} is not a number, such as 0.05, 1/3 or 0x1.8p-3") from None
    word = QuantParam(factor, offset, signed, shift).pack(architecture(_arch(arch), "--arch"), mode)
    _report([word], arch, mode, as_json)


def unpack(words: Sequence[str], arch: str, mode: str | None, as_json: bool) -> None:
    """Print the fields of words."""
    numbers = []
    for text in words:
        try:
            numbers.append(int(text, 0))
        except ValueError:
            raise ValueError(f"word {text} is not a number, such as 0x40003f000000 or 70369801142272") from None
    _report(numbers, arch, mode, as_json)


def _arch(arch: str) -> int | str:
    return int(arch) if arch.isdigit() else arch


def _report(words: Sequence[int], arch: str, mode: str | None, as_json: bool) -> None:
    number = architecture(_arch(arch), "--arch")
    named = None if mode is None else quant_mode(mode)
    params = [QuantParam.unpack(word, number, named) for word in words]
    if as_json:
        entries = [_as_dict(word, param, number, named) for word, param in zip(words, params)]
        print_json(entries[0] if len(entries) == 1 else entries)
        return
    screen = console()
    for n, word in enumerate(words):
        if n:
            screen.print()
        _draw(screen, word, number, named)


def _as_dict(word: int, param: QuantParam, arch: int, mode: QuantMode | None) -> dict[str, Any]:
    return {
        "word": f"{word:#018x}",
        "arch": arch,
        "mode": None if mode is None else mode.name,
        "scale": exact(Fraction(param.scale)) if param.scale else str(param.scale),
        "offset": param.offset,
        "signed": param.signed,
        "shift": param.shift,
        "ignored": list(param.ignored),
        "bits": [
            {"field": f.name, "high": f.high, "low": f.low, "pattern": f.pattern} for f in fields_of(word, arch)
        ],
    }


def _draw(screen: Console, word: int, arch: int, mode: QuantMode | None) -> None:
    title = f"{word:#018x} on NPU architecture {arch}" + ("" if mode is None else f", mode {mode.name}")
    screen.print(title, style="bold")
    screen.print()
    shown = table("field", "bits", "pattern", "means", padding=(0, 2, 0, 0))
    for f in fields_of(word, arch, mode):
        place = f"{f.high}-{f.low}" if f.high > f.low else str(f.high)
        ignored = f" (ignored by {mode.name})" if mode is not None and f.ignored else ""
        shown.add_row(f.name or "-", place, _drawn(f), f.meaning + ignored)
    screen.print(shown)


def _drawn(field: WordField) -> Text:
    """Return the bits of a field; those of M1 apart: sign, exponent, fraction, and what the device cuts off."""
    from rich.text import Text

    pattern = field.pattern
    if field.name != "M1":
        return Text(pattern, style="" if field.name else "dim")
    parts = [(pattern[:1], "sign"), (pattern[1:9], "exponent"), (pattern[9:19], "significand")]
    text = Text(" ").join(Text(bits, style=COLOURS[kind]) for bits, kind in parts)
    return text.append(f" {pattern[19:]}", style="dim") if pattern[19:] else text
