"""`aie.accum`: the lanes of an accumulator register, and the products that go into it."""

from __future__ import annotations

import math
import operator
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..formats import FloatFormat, IntFormat, format
from ..kinds.block import BlockFormat
from .arch import Arch
from .block import block_vector
from .elements import Element, element
from .floats import narrow
from .products import float_product, integer_product
from .srs import check_shift, check_upshift, run, shift_up
from .tags import Tag, default_tag, find_tag, product_tag
from .tile import State, in_force
from .vector import check_lanes, part_number, vector
from .wide import Wide

__all__ = ["accum", "check_tag_lanes", "is_block", "mac", "msc", "mul", "negmul"]

Array = np.ndarray[Any, Any]


class accum:
    """An accumulator: `aie::accum<Tag, N>`.

    Integer lanes have the native width of the tag (two for complex tags) and wrap beyond it, as hardware does; float
    lanes are float32.

    Parameters
    ----------
    tag : str or Tag
        acc32 ... acc80, cacc32 ... cacc80, accfloat, caccfloat; what the architecture has.
    lanes : int
    values : array_like, optional
        One number per lane (Python integers, complex numbers for complex tags); default zeros.
    arch : name, number or Arch, optional
        Default: the current tile's.

    Raises
    ------
    ValueError
        For a tag or number of lanes that the architecture lacks, and for values out of range.

    Examples
    --------
    >>> acc = accum("acc80", 4, [2**79 - 1, 0, -1, 5], arch="aie")
    >>> acc[0] == 2**79 - 1, acc.bits, acc.to_vector("int32", 2, saturation="saturate")
    (True, 320, vector<int32, 4>([2147483647, 0, -1, 1]))
    """

    __slots__ = ("_floats", "_wide", "arch", "tag")
    __hash__ = None  # type: ignore[assignment]
    tag: Tag
    arch: Arch
    _wide: Wide | None  # integer lanes, one entry per native accumulator
    _floats: Array | None  # float32 lanes likewise

    def __init__(
        self, tag: str | Tag, lanes: int, values: ArrayLike | None = None, arch: str | int | Arch | None = None
    ) -> None:
        state = in_force(tag.arch if arch is None and isinstance(tag, Tag) else arch)
        self.arch = state.arch
        self.tag = find_tag(tag, state)
        check_tag_lanes(self.tag, lanes)
        count = lanes * self.tag.parts
        self._wide = self._floats = None
        if values is not None:
            self._fill(values, lanes)
        elif self.tag.is_float:
            self._floats = np.zeros(count, np.float32)
        else:
            self._wide = Wide.zeros(count)

    def _fill(self, values: ArrayLike, lanes: int) -> None:
        if isinstance(values, np.ndarray) and values.dtype.kind == "V":  # a type of ml_dtypes
            values = values.astype(np.float32)
        items = list(np.asarray(values, object).reshape(-1)) if not isinstance(values, list) else values
        if len(items) != lanes:
            raise ValueError(f"values has {len(items)} numbers for {lanes} lanes")
        if not all(isinstance(v, Number) for v in items):
            raise TypeError(f"values holds {next(v for v in items if not isinstance(v, Number))!r}, which is no number")
        parts = [p for v in items for p in ((v.real, v.imag) if self.tag.is_complex else (v,))]
        if any(isinstance(p, (complex, np.complexfloating)) for p in parts):
            raise ValueError(f"values are complex, which {self.tag} cannot hold")
        if self.tag.is_float:
            with np.errstate(over="ignore"):
                self._floats = np.array(parts, np.float32)
            return
        numbers = [int(p) if math.isfinite(p) else 0 for p in parts]
        low, high = self.tag.limits
        for given, number in zip(parts, numbers):
            if given != number or not low <= number <= high:
                raise ValueError(f"values holds {given}, which is no integer of {self.tag.native}: {low} to {high}")
        self._wide = Wide.from_ints(numbers)

    @classmethod
    def of(cls, tag: Tag, wide: Wide | None, floats: Array | None) -> accum:
        """Wrap lanes that are known to fit."""
        self = cls.__new__(cls)
        self.tag, self.arch, self._wide, self._floats = tag, tag.arch, wide, floats
        return self

    @classmethod
    def from_vector(
        cls,
        v: vector | block_vector,
        shift: int = 0,
        tag: str | Tag | None = None,
        arch: str | int | Arch | None = None,
        *,
        saturation: object = None,
        choices: Any = None,
    ) -> accum:
        """Shift a vector up into an accumulator (UPS).

        Parameters
        ----------
        v : vector or block_vector
            Block vectors go into accfloat with their exact values (an identity matrix product in hardware).
        shift : int
            0 to 63; float accumulators ignore it, and int32 goes into 32-bit accumulators with 0 only.
        tag : str, optional
            Default: that of the product of two such vectors.
        arch : optional
            Must be the vector's, where given.
        saturation, choices : optional
            Default: the current tile's; see `Choices.ups_overflow`.

        Examples
        --------
        >>> accum.from_vector(vector("int16", [2, -1] * 4, "xdna2"), 4, "acc32")
        accum<acc32, 8>([32, -16, 32, -16, 32, -16, 32, -16])
        """
        if isinstance(v, block_vector):
            return cls._from_blocks(v, shift, tag)
        if not isinstance(v, vector):
            raise TypeError(f"v must be an aie.vector, not {type(v).__name__}")
        if arch is not None and _arch(arch) != v.arch:
            raise ValueError(f"arch={arch!r}: the vector is of {v.arch}; architectures cannot be mixed")
        state = in_force(v.arch, None, saturation, choices=choices)
        kind = v.element
        target = find_tag(default_tag(kind, kind, v.arch) if tag is None else tag, state)
        check_tag_lanes(target, v.size)
        if target.is_complex != kind.is_complex:
            raise ValueError(
                f"tag={target.name!r} is {_word(target.is_complex)}, but vector<{kind}, {v.size}> is "
                f"{_word(kind.is_complex)}"
            )
        if target.is_float != (not kind.is_integer):
            need = "accfloat or caccfloat" if not kind.is_integer else "an integer accumulator (or aie.to_float)"
            raise ValueError(f"tag={target.name!r} does not take vectors of {kind}; they need {need}")
        check_upshift(shift)
        if target.is_float:
            return cls.of(target, None, v.floats().astype(np.float32))
        if kind.part.bits < 8:
            raise ValueError(f"vectors of {kind} have no upshift; unpack them first (int8 to int32 have)")
        if kind.part.bits == 32 and target.bits == 32:
            if shift:
                raise ValueError(f"shift={shift} must be 0 from {kind} to {target.native}, which is a copy")
            return cls.of(target, Wide.from_array(v.integers()).wrap(32), None)
        return cls.of(target, shift_up(Wide.from_array(v.integers()), target, int(shift), state), None)

    @classmethod
    def _from_blocks(cls, v: block_vector, shift: object, name: str | Tag | None) -> accum:
        target = find_tag("accfloat" if name is None else name, in_force(v.arch))
        if not target.is_float or target.is_complex or shift != 0:
            raise ValueError(f"tag={target.name!r}, shift={shift!r}: block vectors go to accfloat with shift 0 only")
        if v.tag == "bfp16ebs16":
            raise ValueError("vectors of bfp16ebs16 have no way into an accumulator (LLVM); bfp16ebs8 have")
        check_tag_lanes(target, v.size)
        return cls.of(target, None, np.asarray(v, np.float32).copy())

    def to_vector(
        self,
        dtype: Any,
        shift: int = 0,
        rounding: object = None,
        saturation: object = None,
        *,
        choices: Any = None,
    ) -> Any:
        """Shift, round and saturate into a vector (SRS), or convert floats.

        Parameters
        ----------
        dtype : name or dtype
            int8 ... int32, uint8 ... uint32 (cint16, cint32 from complex accumulators); float, bfloat16, float16,
            float8, bfloat8 from accfloat; cfloat, cbfloat16 from caccfloat. A block type (mx9, bfp16ebs8 ...) gives
            a block vector from accfloat.
        shift : int
            -4 to 59. Float accumulators ignore it, and so does a 32-bit accumulator on its way to int32.
        rounding, saturation, choices : optional
            For this call; default: the current tile's registers.

        Returns
        -------
        vector or block_vector

        Examples
        --------
        >>> accum("acc32", 8, [300, -5, 7, 0, 0, 0, 0, 0], "aie-ml").extract(8, 0).to_vector("int16", 1)
        vector<int16, 8>([150, -3, 3, 0, 0, 0, 0, 0])
        """
        state = in_force(self.arch, rounding, saturation, choices=choices)
        if self._floats is not None and not self.is_complex and is_block(dtype):
            return block_vector(dtype, self.size, self._floats, arch=self.arch, rounding=rounding, choices=choices)
        kind = element(dtype, self.arch)
        check_lanes(kind, self.size, self.arch)
        return self.converted(kind, shift, state)

    def converted(self, kind: Element, shift: int, state: State) -> vector:
        """Do what `to_vector` does, for any number of lanes."""
        if kind.is_complex != self.tag.is_complex:
            raise ValueError(
                f"dtype={kind.name!r} is {_word(kind.is_complex)}, but accum<{self.tag}, {self.size}> is "
                f"{_word(self.tag.is_complex)}"
            )
        if kind.is_integer == self.tag.is_float:
            need = "float types" if self.tag.is_float else "integer types"
            raise ValueError(f"dtype={kind.name!r}: {self.tag} goes to {need} only (see aie.to_fixed, aie.to_float)")
        check_shift(shift, state)
        if self._floats is not None:
            assert isinstance(kind.part, FloatFormat)
            return vector.of(narrow(self._floats, kind.part, state), kind, self.arch)
        assert self._wide is not None and isinstance(kind.part, IntFormat)
        if kind.part.bits < 8:
            raise ValueError(f"dtype={kind.name!r} has no SRS; take int8 and pack it (int8 to int32 have)")
        if kind.part.bits == 32 and self.tag.bits == 32:
            return vector.of(self._wide.to_int64().astype(kind.dtype), kind, self.arch)
        # int8 from 64-bit accumulators is SRS to int16, then pack: under every saturation mode the same as in one step.
        numbers = np.empty(self._wide.size, kind.dtype)
        run(self._wide, numbers, kind.part, int(shift), state)
        return vector.of(numbers, kind, self.arch)

    # --- what it holds ------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of lanes."""
        lanes = self._floats.size if self._floats is not None else self._wide.size  # type: ignore[union-attr]
        return lanes // self.tag.parts

    @property
    def value_class(self) -> str:
        """What a lane is, by the API's name: Int, CInt, FP or CFP."""
        return f"{'C' if self.is_complex else ''}{'FP' if self.tag.is_float else 'Int'}"

    @property
    def accum_min_bits(self) -> int:
        """Bits that the tag asks for, of each part: 48 of acc48, whatever is native."""
        return 32 if self.tag.is_float else int(self.tag.name.lstrip("ac"))

    @property
    def memory_bits(self) -> int:
        """Bits of a lane in memory, both parts counted: the next power of two (aie_api 2025, accum.hpp)."""
        return 1 << (self.value_bits - 1).bit_length()

    @property
    def accum_bits(self) -> int:
        """Native bits of a lane; of each part for complex tags."""
        return self.tag.bits

    @property
    def value_bits(self) -> int:
        """Native bits of a lane, both parts counted."""
        return self.tag.bits * self.tag.parts

    @property
    def bits(self) -> int:
        """Native bits of all lanes."""
        return self.size * self.value_bits

    @property
    def is_complex(self) -> bool:
        """Whether the lanes are complex."""
        return self.tag.is_complex

    @property
    def is_real(self) -> bool:
        """Whether the lanes are real."""
        return not self.tag.is_complex

    @property
    def is_floating_point(self) -> bool:
        """Whether the lanes are floats."""
        return self.tag.is_float

    def tolist(self) -> list[Any]:
        """Return the lanes as Python numbers: exact integers, floats, or (real, imaginary) pairs of integers."""
        if self._floats is not None:
            return list((self._floats.view(np.complex64) if self.is_complex else self._floats).tolist())
        assert self._wide is not None
        numbers = self._wide.to_ints()
        return list(zip(numbers[::2], numbers[1::2])) if self.is_complex else list(numbers)

    def to_numpy(self) -> Array:
        """Return the lanes: float32, complex64, int64, or Python integers where 64 bits do not do.

        Complex integers get a last axis of two.
        """
        if self._floats is not None:
            return (self._floats.view(np.complex64) if self.is_complex else self._floats).copy()
        assert self._wide is not None
        if self.tag.bits <= 64:
            found = self._wide.to_int64().copy()
        else:
            found = np.array(self._wide.to_ints(), object)
        return found.reshape(-1, 2) if self.is_complex else found

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        if in_force(self.arch).choices.accum_index == "refused":
            raise TypeError("accumulators have no index in the API's code (Choices.accum_index); extract or to_vector")
        try:
            lane = operator.index(index)
        except TypeError:
            raise TypeError(f"index={index!r} must be an integer; use extract for parts of an accumulator") from None
        if not -self.size <= lane < self.size:
            raise IndexError(f"index={lane} is out of range; accum<{self.tag}, {self.size}> has {self.size} lanes")
        return self.tolist()[lane]

    def __setitem__(self, index: int, value: Any) -> None:
        raise TypeError(
            f"lanes of accum<{self.tag}, {self.size}> cannot be written one by one; use insert, mac or from_vector"
        )

    def __repr__(self) -> str:
        return f"accum<{self.tag}, {self.size}>({self.tolist()})"

    def __eq__(self, other: object) -> bool:
        """Same native accumulators, size and bits."""
        if not isinstance(other, accum) or (self.arch, self.tag.native) != (other.arch, other.tag.native):
            return False
        return self.size == other.size and np.array_equal(self._bits(), other._bits())

    def _bits(self) -> Array:
        if self._floats is not None:
            return self._floats.view(np.uint32)
        assert self._wide is not None
        return np.stack([self._wide.low, self._wide.high.view(np.uint64)])

    # --- parts --------------------------------------------------------------------------------------------------------

    def extract(self, lanes: int, index: int) -> accum:
        """Return lanes ``index * lanes`` to ``(index + 1) * lanes`` as an accumulator."""
        check_tag_lanes(self.tag, lanes)
        start, stop = part_number(index, lanes, self.size, self.tag.parts)
        return self._with(slice(start, stop))

    def split(self, lanes: int) -> list[accum]:
        """Return the whole accumulator in parts."""
        check_tag_lanes(self.tag, lanes)
        return [self.extract(lanes, i) for i in range(max(self.size // lanes, 1))]

    def insert(self, index: int, part: accum) -> accum:
        """Write a smaller accumulator over lanes ``index * part.size`` and on; returns the accumulator itself."""
        self._same(part, "part")
        start, stop = part_number(index, part.size, self.size, self.tag.parts)
        if self._floats is not None and part._floats is not None:
            self._floats[start:stop] = part._floats
        elif self._wide is not None and part._wide is not None:
            self._wide.put(slice(start, stop), part._wide)
        return self

    def grow(self, lanes: int, index: int = 0) -> accum:
        """Return a larger accumulator with this one at part `index`; other lanes are undefined in hardware, 0 here."""
        found = accum(self.tag, lanes)
        part_number(index, self.size, lanes, 1)
        return found.insert(index, self)

    def grow_replicate(self, lanes: int) -> accum:
        """Return a larger accumulator that repeats this one."""
        found = accum(self.tag, lanes)
        part_number(0, self.size, lanes, 1)
        for i in range(lanes // self.size):
            found.insert(i, self)
        return found

    def grow_extract(self, lanes: int, index: int = 0) -> accum:
        """Return part `index` of fewer lanes, or a larger accumulator with this one at part `index`."""
        return self.extract(lanes, index) if lanes <= self.size else self.grow(lanes, index)

    def copy(self) -> accum:
        """Return a copy."""
        return self._with(slice(None))

    def _with(self, part: slice) -> accum:
        wide = None if self._wide is None else self._wide[part].copy()
        return accum.of(self.tag, wide, None if self._floats is None else self._floats[part].copy())

    def _same(self, other: object, argument: str) -> None:
        if not isinstance(other, accum):
            raise TypeError(f"{argument} must be an aie.accum, not {type(other).__name__}")
        if other.arch != self.arch:
            raise ValueError(f"{argument} is of {other.arch}, not of {self.arch}; architectures cannot be mixed")
        if other.tag.native != self.tag.native:
            raise ValueError(f"{argument} has {other.tag.native} lanes, not {self.tag.native}")

    def cast_to(self, tag: str | Tag) -> accum:
        """Read the same bits as lanes of another tag; the total size stays.

        On the first AI Engine, whose lanes of 48 and 80 bits are no power of two, the native width must stay, too.

        Examples
        --------
        >>> accum("cacc64", 2, [1 + 2j, -1], "aie-ml").cast_to("acc64")
        accum<acc64, 4>([1, 2, -1, 0])
        """
        target = find_tag(tag, in_force(self.arch))
        if target.bits != self.tag.bits and not {target.bits, self.tag.bits} <= {32, 64}:
            raise ValueError(f"tag={target.name!r}: lanes of {self.tag.bits} bits are no lanes of {target.bits} bits")
        lanes = self.bits // (target.bits * target.parts)
        check_tag_lanes(target, lanes)
        if target.bits == self.tag.bits and target.is_float == self.tag.is_float:
            return accum.of(target, *self._copied())
        data = self._words()
        if target.is_float:
            return accum.of(target, None, data.view(np.float32).copy())
        return accum.of(target, Wide.from_array(data.view(f"i{target.bits // 8}")), None)

    def _copied(self) -> tuple[Wide | None, Array | None]:
        return (None if self._wide is None else self._wide.copy()), (
            None if self._floats is None else self._floats.copy()
        )

    def _words(self) -> Array:
        if self._floats is not None:
            return self._floats.view(np.uint8)
        assert self._wide is not None
        return self._wide.to_int64().astype(f"i{self.tag.bits // 8}").view(np.uint8)

    # --- products -----------------------------------------------------------------------------------------------------

    def mac(self, a: vector, b: Any, *, overflow: str | None = None, choices: Any = None) -> accum:
        """Return this plus ``a * b``, lane by lane; the tag stays."""
        return _accumulate(self, a, b, False, overflow, choices)

    def msc(self, a: vector, b: Any, *, overflow: str | None = None, choices: Any = None) -> accum:
        """Return this minus ``a * b``, lane by lane; the tag stays."""
        return _accumulate(self, a, b, True, overflow, choices)


def _arch(name: str | int | Arch) -> Arch:
    return in_force(name).arch


def _word(is_complex: bool) -> str:
    return "complex" if is_complex else "real"


def is_block(dtype: object) -> bool:
    """Say whether this names a block format."""
    try:
        return isinstance(format(dtype), BlockFormat)
    except ValueError:
        return False


def check_tag_lanes(tag: Tag, lanes: object) -> None:
    """Raise `ValueError` for a number of lanes that the tag does not have."""
    if isinstance(lanes, bool) or not isinstance(lanes, (int, np.integer)) or lanes not in tag.lanes:
        legal = ", ".join(map(str, tag.lanes))
        raise ValueError(f"lanes={lanes!r} is not a size of {tag} accumulators on {tag.arch} ({legal})")


# --- products of vectors ----------------------------------------------------------------------------------------------


def mul(
    a: vector, b: Any, tag: str | None = None, *, overflow: str | None = None, choices: Any = None
) -> accum:
    """Multiply two vectors lane by lane into an accumulator.

    Parameters
    ----------
    a : vector
    b : vector or number
        Of as many lanes; a number stands for a vector of the type of `a`.
    tag : str, optional
        Default: that of the product (`default_tag`); a wider one will do.
    overflow : {"wrap", "raise"}, optional
        What integers do beyond the native width; default: the current tile's, wrap.
    choices : Choices, optional

    Raises
    ------
    ValueError
        For types that cannot be multiplied, different sizes or architectures, a tag that is too narrow.
    OverflowError
        Under ``overflow="raise"``.

    Examples
    --------
    >>> mul(vector("int8", [127] * 16, "aie-ml"), 2).to_vector("int16")[0]
    254
    """
    return _product(a, b, tag, False, overflow, choices)


def negmul(
    a: vector, b: Any, tag: str | None = None, *, overflow: str | None = None, choices: Any = None
) -> accum:
    """Multiply two vectors lane by lane and negate; arguments as in `mul`."""
    return _product(a, b, tag, True, overflow, choices)


def mac(acc: accum, a: vector, b: Any, *, overflow: str | None = None, choices: Any = None) -> accum:
    """Return ``acc + a * b``, lane by lane, with the tag of `acc`.

    Examples
    --------
    >>> v = vector("int16", [300] * 8, "aie-ml")
    >>> mac(mul(v, v), v, v)[0]
    180000
    """
    return _accumulate(acc, a, b, False, overflow, choices)


def msc(acc: accum, a: vector, b: Any, *, overflow: str | None = None, choices: Any = None) -> accum:
    """Return ``acc - a * b``, lane by lane, with the tag of `acc`."""
    return _accumulate(acc, a, b, True, overflow, choices)


def _product(a: vector, b: Any, name: str | None, negative: bool, overflow: str | None, choices: Any) -> accum:
    second = _operand(a, b)
    state = in_force(a.arch, overflow=overflow, choices=choices)
    wanted = _product_tag(a, second, name, state)
    check_tag_lanes(wanted, a.size)
    count = a.size * wanted.parts
    if wanted.is_float:
        return accum.of(wanted, None, float_product(None, a, second, negative, state, wanted))
    return accum.of(wanted, integer_product(Wide.zeros(count), a, second, negative, state, wanted), None)


def _accumulate(acc: accum, a: vector, b: Any, negative: bool, overflow: str | None, choices: Any) -> accum:
    if not isinstance(acc, accum):
        raise TypeError(f"acc must be an aie.accum, not {type(acc).__name__}")
    second = _operand(a, b)
    if acc.arch != a.arch:
        raise ValueError(f"a is of {a.arch}, the accumulator of {acc.arch}; architectures cannot be mixed")
    if acc.size != a.size:
        raise ValueError(f"a has {a.size} lanes, the accumulator {acc.size}")
    state = in_force(a.arch, overflow=overflow, choices=choices)
    _product_tag(a, second, acc.tag, state)
    if acc._floats is not None:
        return accum.of(acc.tag, None, float_product(acc._floats, a, second, negative, state, acc.tag))
    assert acc._wide is not None
    return accum.of(acc.tag, integer_product(acc._wide, a, second, negative, state, acc.tag), None)


def _operand(a: Any, b: Any) -> vector:
    if not isinstance(a, vector):
        raise TypeError(f"a must be an aie.vector, not {type(a).__name__}")
    if not isinstance(b, vector):
        return vector(a.element, np.full(a.size, b), a.arch)
    if a.arch != b.arch:
        raise ValueError(f"b is of {b.arch}, a of {a.arch}; architectures cannot be mixed")
    if a.size != b.size:
        raise ValueError(f"b has {b.size} lanes, a has {a.size}")
    return b


def _product_tag(a: vector, b: vector, name: str | Tag | None, state: State) -> Tag:
    return product_tag(default_tag(a.element, b.element, a.arch), name, state, f"{a.element} x {b.element}")
