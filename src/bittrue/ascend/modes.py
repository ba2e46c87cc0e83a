"""Rounding and saturation modes under the names and numbers of Ascend C and PyPTO."""

from __future__ import annotations

import enum

from ..rounding import Rounding, suggestion

__all__ = ["CastMode", "RoundMode", "SaturationMode", "mode", "rounding"]


class RoundMode(enum.IntEnum):
    """Ascend C's RoundMode, with its numeric values; PyPTO's CastMode has the same members but CAST_HYBRID.

    The numbers are those of the asc-devkit header; they also stand without the prefix: ``RoundMode.RINT``.
    """

    CAST_NONE = 0  #: no mode: nothing to round, or the default of the pair
    CAST_RINT = 1  #: nearest, ties to even
    CAST_FLOOR = 2  #: toward minus infinity
    CAST_CEIL = 3  #: toward plus infinity
    CAST_ROUND = 4  #: nearest, ties away from zero
    CAST_TRUNC = 5  #: toward zero
    CAST_ODD = 6  #: von Neumann: to the odd neighbour when inexact; float to half only
    CAST_HYBRID = 7  #: hifloat8 only, architecture 3510: a threshold from the input's own low bits
    NONE = 0
    RINT = 1
    FLOOR = 2
    CEIL = 3
    ROUND = 4
    TRUNC = 5
    ODD = 6
    HYBRID = 7

    @property
    def short(self) -> str:
        """The name without its prefix, as the rule tables write it."""
        return self.name.removeprefix("CAST_")


CastMode = RoundMode

_ROUNDINGS = {
    RoundMode.RINT: Rounding.nearest_even,
    RoundMode.FLOOR: Rounding.floor,
    RoundMode.CEIL: Rounding.ceil,
    RoundMode.ROUND: Rounding.nearest_away,
    RoundMode.TRUNC: Rounding.trunc,
    RoundMode.ODD: Rounding.odd,
    RoundMode.HYBRID: Rounding.hybrid,
}


def rounding(chosen: RoundMode) -> Rounding:
    """Return the core's rounding rule for a mode; NONE rounds as RINT where bits are lost (Ascend C)."""
    return _ROUNDINGS.get(chosen, Rounding.nearest_even)


def mode(name: RoundMode | str | int) -> RoundMode:
    """Return the mode with this name or number: "CAST_RINT", "rint", "RoundMode::CAST_RINT", 1.

    Examples
    --------
    >>> mode("cast_round"), mode("ROUND"), mode(4)
    (<RoundMode.CAST_ROUND: 4>, <RoundMode.CAST_ROUND: 4>, <RoundMode.CAST_ROUND: 4>)
    """
    if isinstance(name, RoundMode):
        return name
    if isinstance(name, int) and not isinstance(name, bool) and name in RoundMode._value2member_map_:
        return RoundMode(name)
    if isinstance(name, str):
        text = name.replace("::", ".").rpartition(".")[2].strip().upper()
        if text in RoundMode.__members__:
            return RoundMode[text]
    close = suggestion(name, (n.lower() for n in RoundMode.__members__))
    raise ValueError(
        f"mode={name!r} is not a cast mode{close} ({', '.join(m.name for m in RoundMode)}, or 0 to 7)"
    )


class SaturationMode(enum.Enum):
    """PyPTO's SaturationMode."""

    OFF = "off"  #: integers keep their low bits, floats keep Inf and NaN
    ON = "on"  #: beyond the range: the limit
