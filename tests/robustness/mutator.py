"""Random damage with an understanding of what it damages: bytes, text, JSON trees and NumPy headers.

Everything is drawn from one `random.Random`, so that a seed names its input.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Mutator"]

#: Integers at which programs break: around the widths of fields, signs, page and header limits.
INTEGERS = (
    *(0, 1, 2, 3, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 255, 256, 4095, 4096, 65535, 65536, 100_000_001),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**40),
    *(-1, -2, -128, -(2**31), -(2**63), -(2**63) - 1),
)
#: Text at which parsers break.
TEXTS = (
    *("", " ", "\0", "\n", "a\nb", "-", "--", "..", "\u00e9", "\u6570", "\U0001f600", "\ufeff", "\u202e", "\x1b[31m"),
    *("0", "-0", "1e999999999", "-1e-999999999", "0x", "0x1p99999999", "1/0", "1/3", "nan", "-inf", "1_000", "1e"),
    *("9" * 50, "null", "true", "[bold]x[/bold]", "[/]", "%s%n", "{0}", "'", '"', "\\", "A" * 300, "*", "["),
)
_LEAVES: tuple[Any, ...] = (None, True, False, 0.5, 1e400, -0.0, [], {}, [[]], {"": 0})


class Mutator:
    """Draws choices and damage.

    Parameters
    ----------
    draw : random.Random
        The only source of chance.
    words : sequence of bytes
        What the input's language is made of; pieces of it are put in now and then.
    """

    def __init__(self, draw: random.Random, words: Sequence[bytes] = ()) -> None:
        self.draw, self._words = draw, words

    def pick(self, items: Sequence[Any]) -> Any:
        """Return one of `items`."""
        return items[self.draw.randrange(len(items))]

    def often(self, chance: float) -> bool:
        """Return True with this probability."""
        return self.draw.random() < chance

    # --- bytes --------------------------------------------------------------------------------------------------------

    def damage(self, data: bytes, most: int = 6) -> bytes:
        """Return `data` after one to `most` changes."""
        changed = bytearray(data)
        for _ in range(self.draw.randint(1, most)):
            self.pick(_BYTE_CHANGES)(self, changed)
        return bytes(changed)

    def _place(self, data: bytearray) -> int:
        """Return a place in `data`; the first bytes, where headers are, are as likely as all the others."""
        return self.draw.randrange(min(len(data), 64) if self.often(0.5) else len(data)) if data else 0

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self._place(data)] ^= 1 << self.draw.randrange(8)

    def _set(self, data: bytearray) -> None:
        if data:
            data[self._place(data)] = self.pick((0, 1, 0x7F, 0x80, 0xFF, 0x0A, 0x20, self.draw.randrange(256)))

    def _integer(self, data: bytearray) -> None:
        """Overwrite a little-endian field, by an awkward number or by one near to it."""
        width = self.pick((2, 4, 8))
        at = self._place(data)
        old = int.from_bytes(data[at : at + width], "little")
        new = self.pick(INTEGERS) if self.often(0.6) else old + self.draw.randint(-9, 9)
        data[at : at + width] = (new % (1 << 8 * width)).to_bytes(width, "little")

    def _truncate(self, data: bytearray) -> None:
        del data[self._place(data) :]

    def _delete(self, data: bytearray) -> None:
        at = self._place(data)
        del data[at : at + self.draw.randint(1, 16)]

    def _insert(self, data: bytearray) -> None:
        at = self._place(data)
        data[at:at] = self.draw.randbytes(self.draw.randint(1, 16))

    def _repeat(self, data: bytearray) -> None:
        at = self._place(data)
        data[at:at] = data[at : at + self.draw.randint(1, 64)] * self.draw.randint(1, 8)

    def _word(self, data: bytearray) -> None:
        at = self._place(data)
        word = self.pick(self._words) if self._words and self.often(0.7) else self.pick(TEXTS).encode()
        data[at : at + (len(word) if self.often(0.5) else 0)] = word

    # --- text and trees -----------------------------------------------------------------------------------------------

    def text(self, text: str) -> str:
        """Return `text` after some damage; it may hold any character, lone surrogates too."""
        if self.often(0.2):
            return str(self.pick(TEXTS))
        return self.damage(text.encode("utf-8", "surrogatepass"), 3).decode("utf-8", "surrogateescape")

    def tree(self, value: Any, most: int = 3) -> Any:
        """Return a copy of a tree of dictionaries, lists and scalars after one to `most` changes."""
        value = json.loads(json.dumps(value))
        for _ in range(self.draw.randint(1, most)):
            value = self._change(value)
        return value

    def _change(self, node: Any) -> Any:
        if isinstance(node, dict) and node and self.often(0.85):
            name = self.pick(list(node))
            what = self.draw.random()
            if what < 0.1:
                del node[name]
            elif what < 0.2:
                node[self.text(name)] = node.pop(name)
            elif what < 0.3:
                node[self.text(name)] = node[name]
            elif what < 0.4:
                node[name] = node[self.pick(list(node))]
            else:
                node[name] = self._change(node[name])
            return node
        if isinstance(node, list) and node and self.often(0.85):
            at = self.draw.randrange(len(node))
            what = self.draw.random()
            if what < 0.15:
                del node[at]
            elif what < 0.3:
                node.insert(at, node[at])
            else:
                node[at] = self._change(node[at])
            return node
        return self.leaf(node)

    def leaf(self, value: Any) -> Any:
        """Return another scalar, often one of the same type and near."""
        if isinstance(value, str) and self.often(0.6):
            return self._nested(value) or self.text(value)
        if isinstance(value, int) and self.often(0.7):
            return value + self.draw.randint(-9, 9) if self.often(0.5) else self.pick(INTEGERS)
        word = self.pick(self._words).decode("latin1") if self._words else ""
        leaf = copy.deepcopy(self.pick(_LEAVES))  # else trees would share it
        return self.pick((leaf, self.pick(INTEGERS), self.pick(TEXTS), word, [value], {"x": value}))

    def _nested(self, text: str) -> str | None:
        """JSON within JSON (safetensors' metadata) is damaged as a tree too."""
        if not text.startswith(("{", "[")):
            return None
        try:
            return json.dumps(self.tree(json.loads(text)))
        except ValueError:
            return None


_BYTE_CHANGES: tuple[Callable[[Mutator, bytearray], None], ...] = (
    Mutator._flip,
    Mutator._flip,
    Mutator._set,
    Mutator._integer,
    Mutator._truncate,
    Mutator._delete,
    Mutator._insert,
    Mutator._repeat,
    Mutator._word,
)
