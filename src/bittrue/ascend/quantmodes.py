"""Fixpipe's quantisation modes as a table: numbers, types, which fields of the parameter word each reads."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..records import records
from ..rounding import suggestion
from .choices import Choices
from .modes import RoundMode
from .products import Product, product, products

__all__ = ["CLIPPING", "SHIFTING", "QuantInfo", "QuantMode", "architecture", "quant_mode", "require_mode"]

SHIFTING = (2201,)  # architectures whose word has N and MCB
CLIPPING = (3510,)  # architectures of which a document says that they have ClipReLU (open question 36)

_DEFAULT = Choices()


class QuantMode(enum.IntEnum):
    """Ascend C's QuantMode_t, with its numeric values. A V in front: one parameter word per column.

    Examples
    --------
    >>> QuantMode.VREQ8.value, QuantMode.VREQ8.info.outputs
    (8, ('int8_t', 'uint8_t'))
    """

    NoQuant = 0
    F322F16 = 1
    VQF322HIF8_PRE = 2
    QF322HIF8_PRE = 3
    VQF322HIF8_PRE_HYBRID = 4
    QF322HIF8_PRE_HYBRID = 5
    VREQ8 = 8
    REQ8 = 9
    VDEQF16 = 10
    DEQF16 = 11
    VQF322FP8_PRE = 12
    QF322FP8_PRE = 13
    VQF322F32_PRE = 14
    QF322F32_PRE = 15
    F322BF16 = 16
    VQF322B8_PRE = 23
    QF322B8_PRE = 24
    VQF322F16_PRE = 31
    QF322F16_PRE = 32
    VQF322BF16_PRE = 33
    QF322BF16_PRE = 34
    VQS322BF16_PRE = 35
    QS322BF16_PRE = 36

    @property
    def info(self) -> QuantInfo:
        """What the mode reads and writes."""
        return _infos()[self]


@dataclass(frozen=True)
class QuantInfo:
    """One row of the table of modes.

    Attributes
    ----------
    mode : QuantMode
    accumulators : tuple of str
        Types of accumulators that the mode takes.
    outputs : tuple of str
        Types that it gives; of int8_t and uint8_t the sign flag chooses; none: that of the accumulators.
    per_channel : bool
        One parameter word per column instead of one for the matrix.
    cast : RoundMode or None
        How a float output is rounded.
    fields : dict of int to tuple of str
        For each NPU architecture that has the mode, the fields of the parameter word that it reads.
    inf_nan : dict of int to bool
        For architectures of which asc_copy_l0c2gm says it: whether Inf and NaN can be kept (open question 27).
    document : str
    """

    mode: QuantMode
    accumulators: tuple[str, ...]
    outputs: tuple[str, ...]
    per_channel: bool
    cast: RoundMode | None
    fields: dict[int, tuple[str, ...]]
    inf_nan: dict[int, bool]
    document: str

    @property
    def parametrised(self) -> bool:
        """Whether the mode reads a parameter word."""
        return any(self.fields.values())

    @property
    def to_integer(self) -> bool:
        """Whether the mode rounds to 8-bit integers."""
        return "int8_t" in self.outputs

    @property
    def products(self) -> tuple[str, ...]:
        """Names of the products that have the mode."""
        return tuple(p.name for p in products() if p.arch in self.fields)

    def reads(self, arch: int, choices: Choices = _DEFAULT) -> tuple[str, ...]:
        """Return the fields that count on an architecture; `mcb_modes` decides about the shift."""
        found = self.fields.get(arch, ())
        base = self.mode.name.removeprefix("V")
        if base == "DEQF16" and choices.deqf16_offset == "added":
            found = (*found, "offset")
        if base == "DEQF16" and choices.mcb_modes == "requant_only":
            found = tuple(f for f in found if f != "shift")
        if base == "QF322B8_PRE" and choices.mcb_modes == "golden_script" and arch in SHIFTING:
            found = (*found, "shift")
        return found


@cache
def _infos() -> dict[QuantMode, QuantInfo]:
    found = {}
    for row in records("ascend", "quant_modes"):
        mode = QuantMode[row["name"]]
        assert mode == int(row["value"])
        fields = {arch: row[f"fields_{arch}"] for arch in (2201, 3510)}
        inf_nan = {arch: row[f"inf_nan_{arch}"] for arch in fields}
        found[mode] = QuantInfo(
            mode,
            tuple(row["accumulator"].split()),
            tuple(row["destinations"].split()),
            row["per_channel"] == "yes",
            RoundMode[row["cast"]] if row["cast"] else None,
            {arch: tuple(f for f in text.split() if f != "-") for arch, text in fields.items() if text},
            {arch: text == "yes" for arch, text in inf_nan.items() if text},
            row["document"],
        )
    return found


def quant_mode(name: QuantMode | str | int) -> QuantMode:
    """Return the mode with this name or number: "REQ8", "QuantMode_t::REQ8", 9.

    Raises
    ------
    ValueError
        For an unknown name or number, with a suggestion and the list.
    """
    if isinstance(name, QuantMode):
        return name
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool) and int(name) in _numbers():
        return QuantMode(int(name))
    if isinstance(name, str):
        text = name.replace("::", ".").rpartition(".")[2].strip().lower()
        for mode in QuantMode:
            if mode.name.lower() == text:
                return mode
    close = suggestion(name, (m.name.lower() for m in QuantMode)) if isinstance(name, str) else ""
    raise ValueError(
        f"mode={name!r} is not a quantisation mode{close} ({', '.join(f'{m.name} = {m.value}' for m in QuantMode)})"
    )


@cache
def _numbers() -> frozenset[int]:
    return frozenset(m.value for m in QuantMode)


def architecture(arch: int | str | Product, argument: str = "arch") -> int:
    """Return the NPU architecture with this number, or of this product; raise where none is documented."""
    of = product(arch)
    if of.arch is None:
        have = ", ".join(f"{p.name} ({p.arch})" for p in products() if p.arch)
        raise ValueError(f"{argument}={arch!r}: no document describes the Fixpipe of {of}; of these one does: {have}")
    return of.arch


def require_mode(info: QuantInfo, arch: int) -> None:
    """Raise where an architecture lacks a mode, naming the modes that it has."""
    if arch not in info.fields:
        have = ", ".join(m.name for m in QuantMode if arch in m.info.fields)
        raise ValueError(
            f"mode={info.mode.name} is not on NPU architecture {arch}, but on {', '.join(map(str, info.fields))}; "
            f"{arch} has {have}"
        )
