"""Rounding and saturation modes of the AI Engine: names, register codes per architecture, and bittrue's rounding rules.

The codes and meanings are data (`data/rounding.csv`; aie_api `aie_types.hpp`, LLVM defines, UG1079).
"""

from __future__ import annotations

import enum
from functools import cache

from ..records import records
from ..rounding import Rounding, suggestion
from .arch import Arch, arch

__all__ = ["RoundingMode", "SaturationMode", "rounding_code", "rounding_mode", "rounding_modes", "saturation_mode"]


class RoundingMode(str, enum.Enum):
    """`aie::rounding_mode`: what becomes of a quotient between two integers (or floats)."""

    floor = "floor"  #: the lower one
    ceil = "ceil"  #: the upper one
    symmetric_floor = "symmetric_floor"  #: the one toward zero
    symmetric_ceil = "symmetric_ceil"  #: the one away from zero
    positive_inf = "positive_inf"  #: the nearest; a tie goes up
    negative_inf = "negative_inf"  #: the nearest; a tie goes down
    symmetric_inf = "symmetric_inf"  #: the nearest; a tie goes away from zero
    symmetric_zero = "symmetric_zero"  #: the nearest; a tie goes toward zero
    conv_even = "conv_even"  #: the nearest; a tie goes to the even one
    conv_odd = "conv_odd"  #: the nearest; a tie goes to the odd one

    @property
    def rounding(self) -> Rounding:
        """The same rule under bittrue's name."""
        return _core()[self]


class SaturationMode(str, enum.Enum):
    """`aie::saturation_mode`: what becomes of a result that does not fit."""

    none = "none"  #: the low bits stay
    saturate = "saturate"  #: the nearest limit
    symmetric = "symmetric"  #: the nearest limit; the lowest signed value is minus the highest

    @property
    def code(self) -> int:
        """Value of the control register (UG1079; LLVM aie2p-srs-saturate.s)."""
        return {"none": 0, "saturate": 1, "symmetric": 3}[self.value]

    def limits(self, bits: int, signed: bool) -> tuple[int, int] | None:
        """Return the lowest and the highest result in `bits` bits, or None where the low bits stay.

        Examples
        --------
        >>> SaturationMode.symmetric.limits(8, True), SaturationMode.symmetric.limits(8, False)
        ((-127, 127), (0, 255))
        """
        if self is SaturationMode.none:
            return None
        if not signed:
            return 0, (1 << bits) - 1
        top = (1 << (bits - 1)) - 1
        return (-top if self is SaturationMode.symmetric else -top - 1), top


@cache
def _core() -> dict[RoundingMode, Rounding]:
    return {RoundingMode(row["mode"]): Rounding(row["rounding"]) for row in records("aie", "rounding")}


@cache
def _codes(of: Arch) -> dict[RoundingMode, int]:
    return {RoundingMode(row["mode"]): int(row[of.name]) for row in records("aie", "rounding") if row[of.name]}


def rounding_modes(of: str | int | Arch) -> tuple[RoundingMode, ...]:
    """Return the rounding modes that an architecture has.

    Examples
    --------
    >>> len(rounding_modes("aie")), len(rounding_modes("aie-ml"))
    (8, 10)
    """
    return tuple(_codes(arch(of)))


def rounding_mode(mode: object, of: str | int | Arch) -> RoundingMode:
    """Return the rounding mode with this name: AMD's, or bittrue's for the same rule ("nearest_even" is conv_even).

    Raises
    ------
    ValueError
        For a mode that the architecture does not have.

    Examples
    --------
    >>> rounding_mode("nearest_even", "xdna2").value
    'conv_even'
    """
    legal = rounding_modes(of)
    if isinstance(mode, str):
        name = str(mode.value if isinstance(mode, enum.Enum) else mode).lower()
        for found in legal:
            if name in (found.value, found.rounding.value):
                return found
    names = [m.value for m in legal]
    raise ValueError(
        f"rounding={getattr(mode, 'value', mode)!r} is not a rounding mode of {arch(of)}"
        f"{suggestion(mode, names)} ({', '.join(names)})"
    )


def rounding_code(mode: object, of: str | int | Arch) -> int:
    """Return the value of the rounding register for a mode.

    Examples
    --------
    >>> rounding_code("conv_even", "aie"), rounding_code("conv_even", "aie-ml")
    (6, 12)
    """
    return _codes(arch(of))[rounding_mode(mode, of)]


def saturation_mode(mode: object) -> SaturationMode:
    """Return the saturation mode with this name; "truncate" is the old name of "saturate".

    Raises
    ------
    ValueError
        For any other name.
    """
    if isinstance(mode, str):
        name = str(mode.value if isinstance(mode, enum.Enum) else mode).lower()
        name = "saturate" if name == "truncate" else name
        if name in SaturationMode.__members__:
            return SaturationMode(name)
    names = list(SaturationMode.__members__)
    raise ValueError(
        f"saturation={getattr(mode, 'value', mode)!r} is not a saturation mode{suggestion(mode, names)} "
        f"({', '.join(names)})"
    )
