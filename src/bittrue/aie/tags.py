"""Accumulator tags: which native accumulator each maps to, its lanes, and the default tag of a product.

Tables of aie_api (2025 and 2026) and UG1603; a tag asks for a minimum of bits and gets the nearest native width.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from ..records import records
from ..rounding import suggestion
from .arch import Arch, arch
from .block import block_types
from .elements import Element, element
from .tile import State

__all__ = ["Tag", "default_tag", "find_tag", "native_accum", "product_tag", "tag", "tags"]


@dataclass(frozen=True)
class Tag:
    """An accumulator tag on one architecture.

    Attributes
    ----------
    name : str
        What was asked for: "acc48", "caccfloat" ...
    arch : Arch
    bits : int
        Native width; of each part for complex tags.
    lanes : tuple of int
        Legal numbers of lanes.
    """

    name: str
    arch: Arch
    bits: int
    lanes: tuple[int, ...]

    def __str__(self) -> str:
        return self.name

    @property
    def is_complex(self) -> bool:
        """Whether a lane is two native accumulators."""
        return self.name.startswith("c")

    @property
    def is_float(self) -> bool:
        """Whether it accumulates float32."""
        return self.name.endswith("float")

    @property
    def parts(self) -> int:
        """Native accumulators per lane."""
        return 2 if self.is_complex else 1

    @property
    def native(self) -> str:
        """Name of the native accumulator."""
        return self.name if self.is_float else f"{'c' if self.is_complex else ''}acc{self.bits}"

    @property
    def limits(self) -> tuple[int, int]:
        """Range of an integer accumulator."""
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1


@cache
def _table(of: Arch) -> dict[str, Tag]:
    return {
        row["tag"]: Tag(row["tag"], of, int(row["native_bits"]), _powers(int(row["min_lanes"]), int(row["max_lanes"])))
        for row in records("aie", "accumulators")
        if row["arch"] == of.name
    }


def _powers(lo: int, hi: int) -> tuple[int, ...]:
    return tuple(1 << n for n in range(lo.bit_length() - 1, hi.bit_length()))


def tags(of: str | int | Arch) -> tuple[Tag, ...]:
    """Return the accumulator tags of an architecture.

    Examples
    --------
    >>> [t.name for t in tags("aie-ml")][:5]
    ['acc32', 'acc40', 'acc48', 'acc56', 'acc64']
    """
    return tuple(_table(arch(of)).values())


def tag(name: object, of: str | int | Arch) -> Tag:
    """Return an accumulator tag as an architecture has it.

    Raises
    ------
    ValueError
        For a tag that the architecture does not have, with the list.

    Examples
    --------
    >>> tag("cacc48", "aie-ml").native, tag("acc32", "aie").bits
    ('cacc64', 48)
    """
    wanted = arch(of)
    if isinstance(name, Tag):
        if name.arch != wanted:
            raise ValueError(f"tag={name.name!r} is of {name.arch}, not of {wanted}; architectures cannot be mixed")
        return name
    table = _table(wanted)
    found = table.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        raise ValueError(
            f"tag={name!r} is not an accumulator tag of {wanted}{suggestion(name, table)} ({', '.join(table)})"
        )
    return found


def native_accum(name: str, arch: str | int | Arch) -> str:
    """Return the native accumulator that a tag maps to.

    Examples
    --------
    >>> native_accum("acc48", arch="aie-ml"), native_accum("acc32", arch="aie")
    ('acc64', 'acc48')
    """
    return tag(name, arch).native


# --- products ---------------------------------------------------------------------------------------------------------


@cache
def _products(of: Arch) -> dict[tuple[str, str], str]:
    found = {}
    for row in records("aie", "products"):
        if row[of.name]:
            found[row["a"], row["b"]] = found[row["b"], row["a"]] = row[of.name]
    return found


def kind(of: Element | str) -> str:
    """Return what the tables of products and of matrix shapes call an element type: "8", "c16", "bf16", "float" ...

    Examples
    --------
    >>> kind(element("uint8")), kind(element("cint32")), kind(element("bfloat8"))
    ('8', 'c32', 'fp8')
    """
    if isinstance(of, str):  # a block type
        return "bfp16" if of == "bfp16ebs8" else of
    if of.is_integer:
        return re.sub(r"u?int", "", of.name)
    return {"bfloat16": "bf16", "cbfloat16": "cbf16", "float16": "f16", "float8": "fp8", "bfloat8": "fp8"}.get(
        of.name, of.name
    )


def unkind(names: Iterable[str]) -> str:
    """Write kinds as element types, for messages."""
    words = {"bf16": "bfloat16", "cbf16": "cbfloat16", "f16": "float16", "fp8": "float8", "bfp16": "bfp16ebs8"}
    return " x ".join(words.get(n, re.sub(r"^(c?)(\d+)$", r"\1int\2", n)) for n in names)


def default_tag(a: object, b: object, of: str | int | Arch) -> str:
    """Return the accumulator tag that a product has unless a larger one is named.

    Parameters
    ----------
    a, b : element types, or block types ("mx9", "bfp16ebs8")
    of : architecture

    Raises
    ------
    ValueError
        For a pair that cannot be multiplied, with the legal pairs.

    Examples
    --------
    >>> default_tag("int8", "int8", "aie"), default_tag("int16", "int32", "aie-ml"), default_tag("mx6", "mx6", 22)
    ('acc48', 'acc64', 'accfloat')
    """
    wanted = arch(of)
    first, second = _factor(a, wanted), _factor(b, wanted)
    table = _products(wanted)
    found = table.get((kind(first), kind(second)))
    if found is None:
        legal = ", ".join(unkind(pair) for pair in table if pair[::-1] not in list(table)[: list(table).index(pair)])
        raise ValueError(f"{first} x {second} is not a product of {wanted} ({legal}; uint like int)")
    return found


def _factor(dtype: object, of: Arch) -> Element | str:
    name = str(dtype).removeprefix("aie::")
    return name if any(t.name == name and t.arch == of for t in block_types()) else element(dtype, of)


def find_tag(name: str | Tag, state: State) -> Tag:
    """Find a tag; `Choices.xdna2_caccfloat` may add one."""
    offered = state.arch.number == 21 and state.choices.xdna2_caccfloat == "offered"
    if offered and isinstance(name, str) and name.lower() == "caccfloat":
        return Tag("caccfloat", state.arch, 32, tag("caccfloat", 20).lanes)
    return tag(name, state.arch)


def product_tag(least: str, name: str | Tag | None, state: State, what: str) -> Tag:
    """Return the tag of a product: `least`, or `name` where it is as wide and of the same kind."""
    smallest = find_tag(least, state)
    if name is None:
        return smallest
    wanted = find_tag(name, state)
    same = (wanted.is_complex, wanted.is_float) == (smallest.is_complex, smallest.is_float)
    if not same or wanted.bits < smallest.bits:
        raise ValueError(
            f"tag={wanted.name!r} cannot hold {what} on {state.arch}, which needs "
            f"{smallest.native}{'' if smallest.is_float else ' or more'}"
        )
    return wanted
