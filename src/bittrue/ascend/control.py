"""The CTRL register of Ascend's cores: the bits that change numbers, and what they decide in casts."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ..rounding import Rule
from .choices import Choices
from .modes import RoundMode, SaturationMode
from .products import DEFAULT_PRODUCT, Product
from .rulebook import Row

__all__ = ["Ctrl", "Saturation", "checked", "control_state"]


@dataclass(frozen=True)
class Ctrl:
    """Control bits of a core, with their reset values (asc-devkit, SetCtrlSpr and Reg Cast table 5).

    Architecture 3510 (Ascend 950) has all of them, 2201 (A2, A3) bits 48 and 59, the other products none. The bits of
    atomic operations (6 to 10) are not modelled.

    Attributes
    ----------
    bit48 : bool
        Float casts: False saturates (Inf and overflow give the largest value, NaN gives 0), True keeps Inf and NaN.
    bit50 : bool
        When saturating: True keeps NaN, for fp8_e8m0_t, fp8_e5m2_t and fp8_e4m3fn_t only.
    bit53 : bool
        Integer arithmetic: False wraps, True saturates. No cast reads it.
    bit59 : bool
        Casts into integers: False saturates, True keeps the low bits.
    bit60 : bool
        True: bits 48 and 59 decide for every instruction; False: each instruction's own SatMode does.
    sat : bool
        SatMode of the instruction (SAT or NO_SAT), which counts only where bit60 is False. Not part of the register.
    bit45 : bool
        Matrix unit: True reads two fp8_e4m3fn_t operands as hifloat8_t. No cast reads it; `matmul` does.

    Examples
    --------
    >>> hex(Ctrl().word), Ctrl.from_word(1 << 60 | 1 << 59).bit59
    ('0x1000000000000000', True)
    """

    bit48: bool = False
    bit50: bool = False
    bit53: bool = False
    bit59: bool = False
    bit60: bool = True
    sat: bool = True
    bit45: bool = False

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if value not in (0, 1):
                raise ValueError(f"{f.name}={value!r} must be 0 or 1")
            object.__setattr__(self, f.name, bool(value))

    @property
    def word(self) -> int:
        """The bits as a 64-bit register value; the bits not modelled are 0."""
        return sum(1 << bit for bit in _BITS if getattr(self, f"bit{bit}"))

    @classmethod
    def from_word(cls, word: int, sat: bool = True) -> Ctrl:
        """Read the modelled bits of a register value."""
        if not 0 <= word < 1 << 64:
            raise ValueError(f"word={word!r} must be a 64-bit register value")
        return cls(**{f"bit{bit}": bool(word >> bit & 1) for bit in _BITS}, sat=sat)

    def saturates(self, saturation: str) -> bool:
        """Say whether a cast saturates whose rule book row has this `saturation` (Reg Cast.md, table 5)."""
        if saturation == "always":
            return True
        if saturation in ("never", "none"):
            return False
        if saturation == "float-global" or (saturation == "float" and self.bit60):
            return not self.bit48
        return not self.bit59 if self.bit60 else self.sat

    def rule(
        self,
        src: Any,
        dst: Any,
        mode: RoundMode | str | int = RoundMode.CAST_NONE,
        product: str | int | Product = DEFAULT_PRODUCT,
    ) -> Rule:
        """Return the core's rule of a cast under these bits; `cast_rule` tells the rest.

        Examples
        --------
        >>> Ctrl(bit48=True).rule("float", "half").overflow
        <Overflow.infinity: 'infinity'>
        """
        from .rule import cast_rule

        return cast_rule(src, dst, mode, product, saturation=self).rule


_BITS = (45, 48, 50, 53, 59, 60)
_RESET = Ctrl()

#: What `saturation=` takes.
Saturation = bool | str | SaturationMode | Ctrl | None


def control_state(saturation: Saturation, product: Product, row: Row, choices: Choices) -> Ctrl:
    """Return the control state that an argument `saturation` stands for.

    None: the state at kernel entry. True, False: saturating or not, for floats and integers. A `SaturationMode`: the
    same under PyPTO's name. "pypto": the default of PyPTO's satmode. A `Ctrl`: itself.

    Raises
    ------
    ValueError
        For anything else, and for bits that the product does not have.
    """
    if saturation is None:
        return checked(Ctrl(bit48=choices.entry_ctrl == "host_sets_48" and 48 in product.control_bits), product)
    if isinstance(saturation, str) and saturation.lower() == "pypto":
        on = choices.pypto_sat_default == "pto" and row.pto_satmode != "OFF"
        saturation = SaturationMode.ON if on else SaturationMode.OFF
    if isinstance(saturation, str) and saturation.upper() in SaturationMode.__members__:
        saturation = SaturationMode[saturation.upper()]
    if isinstance(saturation, SaturationMode):
        off = saturation is SaturationMode.OFF
        return checked(Ctrl(bit48=off, bit59=off and choices.satmode == "truncation"), product)
    if isinstance(saturation, bool):
        return checked(Ctrl(bit48=not saturation, bit59=not saturation), product)
    if isinstance(saturation, Ctrl):
        return checked(saturation, product)
    raise ValueError(
        f"saturation={saturation!r} must be None, True, False, a SaturationMode ('on', 'off'), 'pypto' or a Ctrl"
    )


def checked(ctrl: Ctrl, product: Product) -> Ctrl:
    """Return the control state; raise `ValueError` where it needs a bit that the product lacks."""
    changed = [bit for bit in _BITS if getattr(ctrl, f"bit{bit}") != getattr(_RESET, f"bit{bit}")]
    missing = [bit for bit in changed if bit not in product.control_bits]
    if missing:
        have = ", ".join(f"CTRL[{bit}]" for bit in product.control_bits)
        raise ValueError(
            f"saturation asks for CTRL[{missing[0]}] = {int(not getattr(_RESET, f'bit{missing[0]}'))}, but {product} "
            + (f"has only {have}" if have else "has no saturation control: its casts always saturate")
        )
    return ctrl
