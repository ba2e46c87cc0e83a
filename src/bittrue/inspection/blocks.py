"""Blocks taken apart: which bit of which byte is what, and what became of each value."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from .. import exact_blocks
from ..formats import Value
from ..kinds.block import BlockFormat, BlockRule, ScaledFormat, SharedExponentFormat
from ..parse import parse_number
from .numbers import short

__all__ = ["BlockView", "blocks_of", "byte_parts", "element_text", "read_values", "scale_of"]


class BlockView(NamedTuple):
    """One block: what was given, its fields and bytes, and the values that it holds."""

    given: list[Value]
    block: exact_blocks.Block
    image: bytes
    values: list[Value]


def read_values(text: str) -> list[Value]:
    """Read real numbers apart by commas.

    Raises
    ------
    ValueError
        Where there are none, or one is not a real number.

    Examples
    --------
    >>> read_values("1, -0.5")
    [Fraction(1, 1), Fraction(-1, 2)]
    """
    values = [parse_number(part) for part in text.split(",") if part.strip()]
    real = [v for v in values if not isinstance(v, tuple)]
    if not values or len(real) < len(values):
        raise ValueError(f"value={text!r}: a block format takes real numbers, apart by commas, as 1,0.5,-3")
    return real


def blocks_of(values: Sequence[Value], f: BlockFormat, rule: BlockRule | None = None) -> list[BlockView]:
    """Quantise values block by block.

    Parameters
    ----------
    values : sequence of Fraction or float
        Zeros fill the last block.
    f : BlockFormat
    rule : BlockRule, optional
        What differs from the format's own rule.

    Examples
    --------
    >>> from bittrue import format
    >>> [view.image.hex() for view in blocks_of(read_values("1,-0.5,3,0.25"), format("mx4"))]
    ['81fdea0000000000']
    """
    found = []
    for at in range(0, len(values), f.block_size):
        given = list(values[at : at + f.block_size])
        block = exact_blocks.encode(given, f, rule)
        found.append(BlockView(given, block, exact_blocks.to_bytes(block, f), exact_blocks.decode(block, f)))
    return found


def scale_of(block: exact_blocks.Block, f: BlockFormat) -> Value:
    """Return what the shared exponent or the scale stands for; NaN for a block of NaN.

    Examples
    --------
    >>> from bittrue import format
    >>> scale_of(exact_blocks.Block(129, (), ()), format("mx9"))
    Fraction(2, 1)
    """
    if isinstance(f, ScaledFormat):
        return f.scale.value(block.exponent)
    assert isinstance(f, SharedExponentFormat)
    if block.exponent == 255 and f.exponent_255 == "nan":
        return float("nan")
    return Fraction(2) ** (block.exponent - f.bias)


def byte_parts(f: BlockFormat) -> list[list[tuple[int, int, str]]]:
    """Return what each byte of a block holds, from its highest bit down: (highest bit, lowest bit, name).

    The name says which bits of the field these are, where they are not all.

    Examples
    --------
    >>> from bittrue import format
    >>> byte_parts(format("mx6"))[3]
    [(7, 7, 'm3[0]'), (6, 2, 'm2'), (1, 0, 'm1[4:3]')]
    """
    backwards = isinstance(f, SharedExponentFormat) and f.bit_layout == "msb" and f.mantissa_bits < 8
    found: list[list[tuple[int, int, str]]] = [[] for _ in range(f.block_bytes)]
    start = next((p.bit for p in f.pieces() if p.name.startswith("m")), 0)
    for piece in f.pieces():
        place = [piece.bit + i for i in range(piece.width)]
        if backwards and piece.name.startswith("m"):  # counted from the highest bit of the first byte
            place = [start + (p - start) // 8 * 8 + 7 - (p - start) % 8 for p in reversed(place)]
        for byte in sorted({p // 8 for p in place}):
            inside = [(p % 8, i) for i, p in enumerate(place) if p // 8 == byte]
            (low, first), (high, last) = min(inside), max(inside)
            name = piece.name
            if len(inside) < piece.width:
                name += f"[{last}]" if first == last else f"[{last}:{first}]"
            found[byte].append((high, low, name))
    return [sorted(parts, reverse=True) for parts in found]


def element_text(f: BlockFormat, code: int) -> str:
    """Return a mantissa as an integer (-0 too), an element as its value."""
    if not isinstance(f, SharedExponentFormat):
        return short(f.element.value(code))  # type: ignore[attr-defined]
    top = 1 << (f.mantissa_bits - 1)
    if f.twos_complement:
        return str(code - 2 * top if code & top else code)
    return f"-{code - top}" if code & top else str(code)
