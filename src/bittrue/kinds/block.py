"""Block formats: several elements share an exponent or a scale; what a block holds, where, and how values get there.

A block is a header and its element codes. In a `SharedExponentFormat` (AMD MX9/MX6/MX4, bfp16) the elements are
fixed-point mantissas below a common exponent; in a `ScaledFormat` (OCP MX, NVFP4) they are codes of an ordinary format
beside a common scale. No arithmetic lives here: `exact_blocks` is the specification.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..rounding import Rounding, member
from .base import Format, IntFormat, dyadic, floor_log2
from .real import FloatFormat

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "BlockFormat",
    "BlockOverflow",
    "BlockRule",
    "MinCode",
    "NegativeZero",
    "Nonfinite",
    "Piece",
    "ScaleFloor",
    "ScaleRule",
    "ScaledFormat",
    "SharedExponentFormat",
    "TopBump",
]


class BlockOverflow(str, enum.Enum):
    """What happens when a mantissa rounds beyond its range (shared exponents).

    Only bfp16's `bump_block` is known from silicon; for MX9, MX6 and MX4 nobody has published the hardware's rule
    (specs/aie.md, open questions 2 and 3).
    """

    saturate = "saturate"  #: the mantissa stops at the limit (amd-quark, tensorcast)
    bump_block = "bump_block"  #: the exponent goes up by one, the whole block is quantised again (bfp16ebs8, silicon)
    clear_e2_then_bump = "clear_e2_then_bump"  #: first give up the pair's level-2 exponent, then go up


class Nonfinite(str, enum.Enum):
    """What becomes of a block with an infinity or a NaN."""

    raise_ = "raise"  #: ValueError
    nan_block = "nan_block"  #: the exponent or scale becomes its NaN code, all element codes zero
    saturate = "saturate"  #: Inf: the largest value at the largest exponent; NaN: zero
    coded = "coded"  #: exponent 255, mantissas +-64 for Inf and +-96 for NaN (bfp16ebs8, silicon)


class MinCode(str, enum.Enum):
    """Whether two's complement mantissas use their lowest code, which has no positive counterpart."""

    auto = "auto"  #: with the bump policies only
    never = "never"
    allow = "allow"


class NegativeZero(str, enum.Enum):
    """The sign of a mantissa that is zero (sign and magnitude)."""

    keep = "keep"  #: that of the value
    clear = "clear"  #: plus


class TopBump(str, enum.Enum):
    """What a bump from the largest exponent of finite values does."""

    saturate = "saturate"  #: stays there, and the mantissa saturates
    next = "next"  #: goes on to exponent 255
    raise_ = "raise"  #: OverflowError


class ScaleRule(str, enum.Enum):
    """How the largest magnitude of a block, amax, sets the scale; ``emax`` and ``max`` are those of the element format.

    Powers of two are clamped to the range of the scale format. All are computed from the bits.
    """

    floor = "floor"  #: 2**(floor(log2(amax)) - emax): OCP MX 1.0, section 6.3; the largest values may saturate
    ceil = "ceil"  #: 2**(ceil(log2(amax)) - emax)
    even = "even"  #: 2**(floor(log2(amax rounded to the element's significand, nearest even)) - emax)
    rceil = "rceil"  #: 2**ceil(log2(amax / max)): the smallest power of two under which nothing saturates
    divide = "divide"  #: amax / max, rounded to nearest even in the scale format, at most its largest value (NVFP4)


class ScaleFloor(str, enum.Enum):
    """The smallest scale that `ScaleRule.divide` writes."""

    zero = "zero"  #: whatever rounds to zero: the block becomes zero
    subnormal = "subnormal"  #: the smallest positive value
    normal = "normal"  #: the smallest normal value (torchao)


_KINDS: dict[str, type[enum.Enum]] = {
    "rounding": Rounding,
    "overflow": BlockOverflow,
    "nonfinite": Nonfinite,
    "min_code": MinCode,
    "negative_zero": NegativeZero,
    "top_bump": TopBump,
    "scale_rule": ScaleRule,
    "scale_floor": ScaleFloor,
}


@dataclass(frozen=True)
class BlockRule:
    """How values get into blocks. None: what the format says (or nothing to say, for a format of the other kind).

    Parameters
    ----------
    rounding : Rounding
        Of mantissas and element codes; every mode but stochastic and hybrid.
    overflow, min_code, negative_zero, top_bump
        Shared exponents: see `BlockOverflow`, `MinCode`, `NegativeZero`, `TopBump`.
    flush_subnormals : bool
        Shared exponents: float32 subnormals count as zero (amd-quark; bfp16ebs8 on silicon).
    zero_pair_shift : int
        Shared exponents: the level-2 exponent, 0 or 1, of a pair below 2**-126 in a block that is not (amd-quark: 1).
    nonfinite
        See `Nonfinite`.
    scale_rule, scale_floor
        Scaled elements: see `ScaleRule`, `ScaleFloor`.

    Examples
    --------
    >>> BlockRule(overflow="bump_block").overflow
    <BlockOverflow.bump_block: 'bump_block'>
    """

    rounding: Rounding | None = None
    overflow: BlockOverflow | None = None
    nonfinite: Nonfinite | None = None
    flush_subnormals: bool | None = None
    zero_pair_shift: int | None = None
    min_code: MinCode | None = None
    negative_zero: NegativeZero | None = None
    top_bump: TopBump | None = None
    scale_rule: ScaleRule | None = None
    scale_floor: ScaleFloor | None = None

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, member(kind, given, name))
        if self.rounding in (Rounding.stochastic, Rounding.hybrid):
            raise ValueError(f"rounding={self.rounding.value!r} is not defined for block formats")
        if self.zero_pair_shift not in (None, 0, 1):
            raise ValueError(f"zero_pair_shift={self.zero_pair_shift!r} must be 0 or 1")
        if self.flush_subnormals not in (None, True, False):
            raise ValueError(f"flush_subnormals={self.flush_subnormals!r} must be True or False")

    def over(self, base: BlockRule, name: str) -> BlockRule:
        """Return `base` with what is given here put in; raise `ValueError` for what `base`, of format `name`, lacks."""
        changes = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        for field in changes:
            if getattr(base, field) is None:
                raise ValueError(f"{field}={_plain(changes[field])!r} has no meaning for {name}")
        return replace(base, **changes) if changes else base


def _plain(value: object) -> object:
    return value.value if isinstance(value, enum.Enum) else value


class Piece(NamedTuple):
    """A run of bits of a block, for drawings: bit 0 is the lowest bit of the first byte."""

    name: str
    bit: int
    width: int


@dataclass(frozen=True)
class BlockFormat(Format):
    """Base of the block formats.

    Parameters
    ----------
    name
    block_size
        Elements per block: a power of two from 8 to 128.
    rule
        The conversion policy: what a conversion does unless told otherwise.

    Attributes
    ----------
    block_bytes : int
        Bytes per block; there is no padding between blocks.
    bits_per_value : Fraction
        ``8 * block_bytes / block_size``; `bits` is the same.
    element_bits : int
        Width of an element code.
    """

    block_size: int = 16
    rule: BlockRule = BlockRule()
    kind: ClassVar[str] = "block"
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        n = self.block_size
        if not isinstance(n, int) or not 8 <= n <= 128 or n & (n - 1):
            raise ValueError(f"block_size={n!r} must be a power of two from 8 to 128")
        if not isinstance(self.rule, BlockRule):
            raise TypeError(f"rule={self.rule!r} must be a BlockRule")
        object.__setattr__(self, "rule", self.rule.over(self._default_rule(), self.name))

    def _default_rule(self) -> BlockRule:
        raise TypeError("BlockFormat is a base: take SharedExponentFormat or ScaledFormat")

    @property
    def element_bits(self) -> int:
        raise AttributeError("element_bits")

    @property
    def shift_bytes(self) -> int:
        """Bytes of level-2 exponents per block."""
        return 0

    @property
    def block_bytes(self) -> int:
        return 1 + self.shift_bytes + self.block_size * self.element_bits // 8

    @property
    def bits_per_value(self) -> Fraction:
        return Fraction(8 * self.block_bytes, self.block_size)

    @property
    def bits(self) -> Any:
        """Average number of bits per value: an int where it is whole, else a Fraction."""
        average = self.bits_per_value
        return int(average) if average.denominator == 1 else average

    @property
    def storage(self) -> np.dtype[Any]:
        """uint8: codes of a block format are the packed bytes."""
        return np.dtype(np.uint8)

    def blocks(self, length: int) -> int:
        """Return the number of blocks that hold `length` elements; the last one is padded with zeros."""
        return -(-length // self.block_size)

    def with_rule(self, rule: BlockRule | None = None, **changes: Any) -> Self:
        """Return the format with another conversion policy.

        Examples
        --------
        >>> from bittrue.formats import format
        >>> format("mx9").with_rule(overflow="bump_block").rule.overflow.value
        'bump_block'
        """
        wanted = rule or BlockRule()
        return replace(self, rule=replace(wanted, **changes).over(self.rule, self.name))

    def pieces(self) -> list[Piece]:
        """Return what the bits of a block are, in memory order."""
        raise AttributeError("pieces")


BIT_LAYOUTS = ("lsb", "msb", "planes")
ORDERS = ("exponent shifts mantissas", "exponent mantissas shifts", "mantissas shifts exponent")
SHIFT_ORDERS = ("lsb", "msb")


@dataclass(frozen=True)
class SharedExponentFormat(BlockFormat):
    """Fixed-point mantissas below an 8-bit exponent, with or without 1-bit level-2 exponents of groups.

    The value of an element is ``m / 2**fraction_bits * 2**(E1 - bias - E2)``.

    Parameters
    ----------
    mantissa_bits
        Width of a mantissa with its sign, 2 to 8.
    mantissa
        "sign_magnitude" (sign in the top bit) or "twos_complement".
    bias
        Of the exponent.
    shift_group
        Elements that share a level-2 exponent; 0: there are none.
    exponent_255
        "finite": an ordinary exponent; "nan": the whole block is NaN.
    order, shift_order, bit_layout
        Bytes of a block. `order`: which part comes first. `shift_order`: which bit of the level-2 byte belongs to the
        first pair. `bit_layout` of mantissas below 8 bits: "lsb", contiguous from the lowest bits up; "msb",
        contiguous from the highest bits down; "planes", first all low bits, then all top bits.
    convention
        The name under which the sources know this reading of the bytes.

    Examples
    --------
    >>> mine = SharedExponentFormat("mine", block_size=32, mantissa_bits=4, mantissa="twos_complement", bias=127)
    >>> mine.block_bytes, mine.bits_per_value
    (17, Fraction(17, 4))
    """

    mantissa_bits: int = 8
    mantissa: str = "twos_complement"
    bias: int = 127
    shift_group: int = 0
    exponent_255: str = "finite"
    order: str = ORDERS[0]
    shift_order: str = "lsb"
    bit_layout: str = "lsb"
    convention: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed: dict[str, tuple[str, ...]] = {
            "mantissa": ("sign_magnitude", "twos_complement"),
            "exponent_255": ("finite", "nan"),
            "order": ORDERS,
            "shift_order": SHIFT_ORDERS,
            "bit_layout": BIT_LAYOUTS,
        }
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {', '.join(map(repr, values))}")
        if not 2 <= self.mantissa_bits <= 8:
            raise ValueError(f"mantissa_bits={self.mantissa_bits!r} must be from 2 to 8")
        if not 127 <= self.bias <= 133:
            raise ValueError(f"bias={self.bias!r} must be from 127 to 133: every value is to be a float32")
        group = self.shift_group
        if group and (group & (group - 1) or not 1 <= group or self.block_size % (8 * group)):
            raise ValueError(f"shift_group={group!r} must be 0, or a power of two of which a block has a multiple of 8")
        rule = self.rule
        if rule.nonfinite is Nonfinite.nan_block and self.exponent_255 != "nan":
            raise ValueError(f"nonfinite='nan_block' needs exponent_255='nan', which {self.name} has not")
        if rule.nonfinite is Nonfinite.coded and (self.exponent_255 != "finite" or self.bias != 127):
            raise ValueError(f"nonfinite='coded' needs exponent_255='finite' and bias=127, which {self.name} has not")
        if rule.overflow is BlockOverflow.clear_e2_then_bump and not group:
            raise ValueError(f"overflow='clear_e2_then_bump' needs level-2 exponents, which {self.name} has not")

    def _default_rule(self) -> BlockRule:
        return BlockRule(
            rounding=Rounding.nearest_even,
            overflow=BlockOverflow.saturate,
            nonfinite=Nonfinite.nan_block if self.exponent_255 == "nan" else Nonfinite.raise_,
            flush_subnormals=True,
            zero_pair_shift=1,
            min_code=MinCode.auto,
            negative_zero=NegativeZero.keep,
            top_bump=TopBump.saturate,
        )

    @property
    def twos_complement(self) -> bool:
        """Whether mantissas are two's complement."""
        return self.mantissa == "twos_complement"

    @property
    def fraction_bits(self) -> int:
        """Fraction bits of a mantissa: one bit is the sign, one the integer bit."""
        return self.mantissa_bits - 2

    @property
    def element_bits(self) -> int:
        return self.mantissa_bits

    @property
    def shifts(self) -> int:
        """Level-2 exponents per block."""
        return self.block_size // self.shift_group if self.shift_group else 0

    @property
    def shift_bytes(self) -> int:
        return self.shifts // 8

    @property
    def top_exponent(self) -> int:
        """Largest stored exponent of finite blocks that a conversion writes without being told to go on."""
        return min(254 + self.bias - 127, 255)

    @property
    def has_nan(self) -> bool:
        return self.exponent_255 == "nan"

    @property
    def has_negative_zero(self) -> bool:
        return not self.twos_complement

    @property
    def max(self) -> Fraction:
        """Largest finite value."""
        top = 254 if self.exponent_255 == "nan" else 255
        return Fraction((1 << (self.mantissa_bits - 1)) - 1, 1 << self.fraction_bits) * dyadic(top - self.bias)

    @property
    def min(self) -> Fraction:
        """Lowest finite value."""
        top = 254 if self.exponent_255 == "nan" else 255
        return -2 * dyadic(top - self.bias) if self.twos_complement else -self.max

    @property
    def min_subnormal(self) -> Fraction:
        """Smallest positive value of any block."""
        return dyadic(-self.bias - self.fraction_bits - bool(self.shift_group))

    min_normal = min_subnormal

    @property
    def epsilon(self) -> Fraction:
        """Distance of neighbouring values in a block (or pair) whose largest value is from 1 to 2."""
        return dyadic(-self.fraction_bits)

    def pieces(self) -> list[Piece]:
        parts = {
            "exponent": [Piece("E1", 0, 8)],
            "shifts": [
                Piece(f"E2[{p if self.shift_order == 'lsb' else p ^ 7}]", p, 1) for p in range(self.shifts)
            ],
            "mantissas": self._mantissa_pieces(),
        }
        found, at = [], 0
        for part in self.order.split():
            found += [Piece(p.name, at + p.bit, p.width) for p in parts[part]]
            at += {"exponent": 8, "shifts": 8 * self.shift_bytes}.get(part, self.block_size * self.mantissa_bits)
        return found

    def _mantissa_pieces(self) -> list[Piece]:
        n, size = self.mantissa_bits, self.block_size
        if self.bit_layout == "planes" and n < 8:
            low = [Piece(f"m{i}[{n - 2}:0]", i * (n - 1), n - 1) for i in range(size)]
            return low + [Piece(f"m{i}[{n - 1}]", size * (n - 1) + i, 1) for i in range(size)]
        return [Piece(f"m{i}", i * n, n) for i in range(size)]

    def describe(self) -> str:
        form = "two's complement" if self.twos_complement else "sign and magnitude"
        level2 = f", {self.shifts} 1-bit level-2 exponents" if self.shifts else ""
        top = "255 makes the block NaN" if self.exponent_255 == "nan" else "no Inf, no NaN"
        known = f"convention {self.convention}; " if self.convention else ""
        return (
            f"{self.name}: blocks of {self.block_size} values in {self.block_bytes} bytes "
            f"({float(self.bits_per_value):g} bits a value): 8-bit exponent{level2}, "
            f"{self.mantissa_bits}-bit mantissas in {form}; {known}"
            f"value m / 2**{self.fraction_bits} * 2**(E1 - {self.bias}{' - E2' if self.shifts else ''}); "
            f"largest {float(self.max):g}; {top}"
        )


@dataclass(frozen=True)
class ScaledFormat(BlockFormat):
    """Element codes of an ordinary format beside one scale: the value is element * scale.

    Parameters
    ----------
    element
        A float format of 4, 6 or 8 bits with up to 5 fraction bits, or a signed integer format.
    scale
        A float format without sign, up to 8 bits: powers of two like e8m0, or with fraction bits.
    fraction_bits
        Integer elements: the value of a code is ``code / 2**fraction_bits``.
    tensor_scale
        Whether a float32 scale of the whole tensor multiplies every value (the argument ``scale=`` of the functions).

    Examples
    --------
    >>> from bittrue.formats import format
    >>> mine = ScaledFormat("fp6_by_16", block_size=16, element=format("float6_e2m3fn"), scale=format("e8m0"))
    >>> mine.block_bytes, mine.max == Fraction(15, 2) * 2**127
    (13, True)
    """

    element: FloatFormat | IntFormat = None  # type: ignore[assignment]
    scale: FloatFormat = None  # type: ignore[assignment]
    fraction_bits: int = 0
    tensor_scale: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        e, s = self.element, self.scale
        if isinstance(e, IntFormat):
            fits = e.signed and 2 <= e.bits <= 8 and 0 <= self.fraction_bits <= 16
        else:
            fits = isinstance(e, FloatFormat) and e.signed and e.zero and e.mantissa_bits <= 5 and 2 <= e.bits <= 8
            fits = fits and self.fraction_bits == 0 and e.min_exponent >= -64 and e.max < dyadic(64)
        if not fits or not e.has_zero:
            raise ValueError(
                f"element={e!r} must be a signed float format of 2 to 8 bits with at most 5 fraction bits and values "
                "between 2**-64 and 2**64, or a signed integer format of 2 to 8 bits"
            )
        if not isinstance(s, FloatFormat) or s.signed or s.bits > 8 or not (self.powers_of_two or s.zero) or s.inf:
            raise ValueError(f"scale={s!r} must be a float format without sign and Inf of at most 8 bits")
        if self.powers_of_two and (s.zero or s.max > dyadic(127) or s.min_normal < dyadic(-127)):
            raise ValueError(f"scale={s!r}: powers of two must lie from 2**-127 to 2**127, and have no zero")
        if (self.rule.scale_rule is ScaleRule.divide) == self.powers_of_two:
            needed = "'floor', 'ceil', 'even' or 'rceil'" if self.powers_of_two else "'divide'"
            raise ValueError(f"scale_rule={_plain(self.rule.scale_rule)!r}: a scale in {s.name} needs {needed}")
        if self.rule.nonfinite is Nonfinite.coded:
            raise ValueError("nonfinite='coded' is defined for shared exponents only")
        if self.rule.nonfinite is Nonfinite.nan_block and s.nan_code is None:
            raise ValueError(f"nonfinite='nan_block' needs a NaN code in {s.name}")

    def _default_rule(self) -> BlockRule:
        if not isinstance(self.scale, FloatFormat):
            raise ValueError(f"scale={self.scale!r} must be a float format, such as bittrue.format('e8m0')")
        return BlockRule(
            rounding=Rounding.nearest_even,
            nonfinite=Nonfinite.raise_ if self.scale.nan_code is None else Nonfinite.nan_block,
            min_code=MinCode.never if isinstance(self.element, IntFormat) else None,
            scale_rule=ScaleRule.floor if self.powers_of_two else ScaleRule.divide,
            scale_floor=None if self.powers_of_two else ScaleFloor.zero,
        )

    @property
    def powers_of_two(self) -> bool:
        """Whether every scale is a power of two."""
        return self.scale.mantissa_bits == 0

    @property
    def element_bits(self) -> int:
        return int(self.element.bits)

    @property
    def element_max(self) -> Fraction:
        """Largest value of an element."""
        return self.element.max / (1 << self.fraction_bits)

    @property
    def element_emax(self) -> int:
        """Exponent of the binade of `element_max`."""
        return floor_log2(self.element_max)

    @property
    def element_significand(self) -> int:
        """Fraction bits of an element in its highest binade."""
        return self.element.mantissa_bits if isinstance(self.element, FloatFormat) else self.element.bits - 2

    @property
    def has_nan(self) -> bool:
        return self.scale.has_nan or self.element.has_nan

    @property
    def has_inf(self) -> bool:
        return self.element.has_inf

    @property
    def has_negative_zero(self) -> bool:
        return self.element.has_negative_zero

    @property
    def max(self) -> Fraction:
        """Largest finite value (without a tensor scale)."""
        return self.element_max * self.scale.max

    @property
    def min(self) -> Fraction:
        """Lowest finite value (without a tensor scale)."""
        return self.element.min / (1 << self.fraction_bits) * self.scale.max

    @property
    def min_subnormal(self) -> Fraction:
        """Smallest positive value of any block (without a tensor scale)."""
        return self.element.min_subnormal / (1 << self.fraction_bits) * self.scale.min_subnormal

    min_normal = min_subnormal

    @property
    def epsilon(self) -> Fraction:
        """Distance from 1 to the next larger value in a block of scale 1."""
        return Fraction(self.element.epsilon) / (1 << self.fraction_bits)

    def pieces(self) -> list[Piece]:
        n = self.element_bits
        return [Piece("scale", 0, 8)] + [Piece(f"x{i}", 8 + i * n, n) for i in range(self.block_size)]

    def describe(self) -> str:
        tensor = ", times a float32 scale per tensor" if self.tensor_scale else ""
        fixed = f" / 2**{self.fraction_bits}" if self.fraction_bits else ""
        return (
            f"{self.name}: blocks of {self.block_size} values in {self.block_bytes} bytes "
            f"({float(self.bits_per_value):g} bits a value): a scale in {self.scale.name}, elements in "
            f"{self.element.name}{fixed}{tensor}; largest {float(self.max):g}; "
            f"{'a NaN scale makes the block NaN' if self.scale.has_nan else 'no NaN scale'}"
        )
