"""`bittrue quantparam`: Fixpipe's parameter word from its fields and back, with the bits drawn."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..ascend.quant import BITS, QuantParam
from ..ascend.quantmodes import QuantMode, architecture, quant_mode
from ..inspection.numbers import exact, short
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
    for n, (word, param) in enumerate(zip(words, params)):
        if n:
            screen.print()
        _draw(screen, word, param, number, named)


def _pattern(word: int, low: int, high: int) -> str:
    return f"{word >> low & ((1 << (high - low + 1)) - 1):0{high - low + 1}b}"


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
            {"field": b.name, "high": b.high, "low": b.low, "pattern": _pattern(word, b.low, b.high)}
            for b in reversed(BITS[arch])
        ],
    }


def _draw(screen: Console, word: int, param: QuantParam, arch: int, mode: QuantMode | None) -> None:
    title = f"{word:#018x} on NPU architecture {arch}" + ("" if mode is None else f", mode {mode.name}")
    screen.print(title, style="bold")
    screen.print()
    shown = table("field", "bits", "pattern", "means", padding=(0, 2, 0, 0))
    for bits in reversed(BITS[arch]):
        place = f"{bits.high}-{bits.low}" if bits.high > bits.low else str(bits.high)
        meaning = _meaning(bits.name, param)
        if mode is not None and bits.name and _field_of(bits.name) not in mode.info.reads(arch):
            meaning += f" (ignored by {mode.name})"
        shown.add_row(bits.name or "-", place, _drawn(word, bits.name, bits.low, bits.high), meaning)
    screen.print(shown)


def _field_of(name: str) -> str:
    return {"M1": "scale", "N": "shift", "MCB": "shift", "Offset": "offset", "Sign": "signed"}[name]


def _drawn(word: int, name: str, low: int, high: int) -> Text:
    """Return the bits of a field; those of M1 apart: sign, exponent, fraction, and what the device cuts off."""
    from rich.text import Text

    pattern = _pattern(word, low, high)
    if name != "M1":
        return Text(pattern, style="" if name else "dim")
    parts = [(pattern[:1], "sign"), (pattern[1:9], "exponent"), (pattern[9:19], "significand")]
    text = Text(" ").join(Text(bits, style=COLOURS[kind]) for bits, kind in parts)
    return text.append(f" {pattern[19:]}", style="dim") if pattern[19:] else text


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
