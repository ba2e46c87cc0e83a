"""The control registers of a tile: rounding and saturation mode, sticky as in hardware, apart for each context.

A core's registers keep what was last written: a kernel that sets the rounding mode changes it for every kernel that
runs on the same tile afterwards. Here ``with aie.tile(...)`` puts a tile to work, `set_rounding` and `set_saturation`
write its registers, and leaving the block stops the tile; the same `tile` object goes on with its registers when it is
entered again. Outside of every block there is a tile at reset, too.

The state lives in a context variable and is never changed in place: threads start from reset, and an async task starts
from a copy of what its creator saw; neither sees the other's writes.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from .arch import Arch, arch
from .choices import Choices
from .modes import RoundingMode, SaturationMode, rounding_code, rounding_mode, saturation_mode

__all__ = ["State", "current_tile", "set_rounding", "set_saturation", "tile"]


@dataclass(frozen=True)
class State:
    """What is in force.

    Attributes
    ----------
    arch : Arch
    rounding : RoundingMode
        Reset value floor (UG1079, UG1603; measured on XDNA2).
    saturation : SaturationMode
        Reset value none.
    overflow : {"wrap", "raise"}
        What integer accumulators do beyond their native width. Hardware wraps; "raise" finds overflows.
    choices : Choices
    """

    arch: Arch = field(default_factory=arch)
    rounding: RoundingMode = RoundingMode.floor
    saturation: SaturationMode = SaturationMode.none
    overflow: str = "wrap"
    choices: Choices = field(default_factory=Choices)

    @property
    def rounding_code(self) -> int:
        """Value of the rounding register."""
        return rounding_code(self.rounding, self.arch)

    @property
    def saturation_code(self) -> int:
        """Value of the saturation register."""
        return self.saturation.code

    def __str__(self) -> str:
        return (
            f"{self.arch}: rounding={self.rounding.value} ({self.rounding_code}), "
            f"saturation={self.saturation.value} ({self.saturation_code})"
        )


#: The tiles at work, the innermost last, each with what its registers hold; None: the one outside of all blocks.
_stack: ContextVar[tuple[tuple[tile | None, State], ...]] = ContextVar("bittrue.aie.tile")


def _at_work() -> tuple[tuple[tile | None, State], ...]:
    return _stack.get(()) or ((None, State()),)


def current_tile() -> State:
    """Return the registers, the architecture and the choices that are in force.

    Examples
    --------
    >>> current_tile().rounding.value, current_tile().saturation.value
    ('floor', 'none')
    >>> with tile(arch="xdna2", rounding="conv_even"):
    ...     print(current_tile())
    xdna2: rounding=conv_even (12), saturation=none (0)
    """
    return _at_work()[-1][1]


def set_rounding(mode: object) -> None:
    """Write the rounding register of the current tile (`aie::set_rounding`); it stays until it is written again.

    Examples
    --------
    >>> def kernel_a():
    ...     set_rounding("conv_even")
    >>> with tile(arch="aie-ml"):
    ...     kernel_a()
    ...     current_tile().rounding.value  # what kernel B finds
    'conv_even'
    """
    *below, (of, state) = _at_work()
    _stack.set((*below, (of, replace(state, rounding=rounding_mode(mode, state.arch)))))


def set_saturation(mode: object) -> None:
    """Write the saturation register of the current tile (`aie::set_saturation`)."""
    *below, (of, state) = _at_work()
    _stack.set((*below, (of, replace(state, saturation=saturation_mode(mode)))))


class tile:
    """A tile: ``with tile(...)`` puts it to work for the block.

    Parameters
    ----------
    arch : name, number or Arch, optional
        Default: that of the current tile.
    rounding, saturation : str
        What its registers hold at first; default: reset values, floor and none. A tile inside another one's block is
        another tile, with registers of its own.
    overflow : {"wrap", "raise"}, optional
        Default: that of the current tile.
    choices : Choices, optional
        Default: those of the current tile.

    Raises
    ------
    ValueError
        For modes that the architecture does not have.
    RuntimeError
        When tiles are not left in the reverse order of entering them.

    Examples
    --------
    >>> core = tile(arch="aie-ml")
    >>> with core:
    ...     set_saturation("saturate")
    >>> with core:  # its registers were not reset in between
    ...     current_tile().saturation.value
    'saturate'
    """

    def __init__(
        self,
        arch: str | int | Arch | None = None,
        rounding: object = "floor",
        saturation: object = "none",
        *,
        overflow: str | None = None,
        choices: Choices | None = None,
    ) -> None:
        outer = current_tile()
        of = outer.arch if arch is None else _arch(arch)
        self.state = State(
            of,
            rounding_mode(rounding, of),
            saturation_mode(saturation),
            outer.overflow if overflow is None else checked_overflow(overflow),
            outer.choices if choices is None else checked_choices(choices),
        )

    def __enter__(self) -> State:
        _stack.set((*_at_work(), (self, self.state)))
        return self.state

    def __exit__(self, *_: object) -> None:
        *below, (of, state) = _at_work()
        if of is not self:  # as from generators that take turns: its registers would become those of another tile
            raise RuntimeError(f"tile ({self.state}) is left while one that was entered later is at work")
        self.state = state
        _stack.set(tuple(below))


_arch = arch


def checked_overflow(overflow: object) -> str:
    """Return `overflow`, or raise `ValueError`."""
    if overflow not in ("wrap", "raise"):
        raise ValueError(f"overflow={overflow!r} must be 'wrap' or 'raise'")
    return str(overflow)


def checked_choices(choices: object) -> Choices:
    """Return `choices`, or raise `TypeError`."""
    if not isinstance(choices, Choices):
        raise TypeError(f"choices={choices!r} must be an aie.Choices, not {type(choices).__name__}")
    return choices


def in_force(
    of: object = None,
    rounding: object = None,
    saturation: object = None,
    overflow: object = None,
    choices: object = None,
) -> State:
    """Return the current state with what a call names put in."""
    state = current_tile()
    if of is not None and (wanted := _arch(of)) != state.arch:  # type: ignore[arg-type]
        # A register value that the other architecture does not have can only come from a mode of its own.
        state = replace(state, arch=wanted, rounding=rounding_mode(rounding or state.rounding, wanted))
    if rounding is not None:
        state = replace(state, rounding=rounding_mode(rounding, state.arch))
    if saturation is not None:
        state = replace(state, saturation=saturation_mode(saturation))
    if overflow is not None:
        state = replace(state, overflow=checked_overflow(overflow))
    if choices is not None:
        state = replace(state, choices=checked_choices(choices))
    return state
