"""Fixpipe's 64-bit parameter words: fields, packing, what a device reads in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .choices import Choices
from .products import Product
from .quantmodes import SHIFTING, QuantInfo, QuantMode, architecture, quant_mode, require_mode

__all__ = [
    "BITS",
    "QuantMode",
    "QuantParam",
    "architecture",
    "as_words",
    "offset_of",
    "quant_mode",
    "scale_of",
    "words_of",
]

Words = np.ndarray[Any, Any]

_DEFAULT = Choices()


class Bits(NamedTuple):
    """Where a field of the word is."""

    low: int
    high: int
    name: str

    @property
    def mask(self) -> int:
        """All its bits."""
        return ((1 << (self.high - self.low + 1)) - 1) << self.low


#: The fields of QUANT_PRE on each architecture (Ascend C, fused quantisation, tables 1 and 2).
BITS: dict[int, tuple[Bits, ...]] = {
    2201: (
        Bits(0, 31, "M1"),
        Bits(32, 35, "N"),
        Bits(36, 36, "MCB"),
        Bits(37, 45, "Offset"),
        Bits(46, 46, "Sign"),
        Bits(47, 63, ""),
    ),
    3510: (
        Bits(0, 12, ""),
        Bits(13, 31, "M1"),
        Bits(32, 36, ""),
        Bits(37, 45, "Offset"),
        Bits(46, 46, "Sign"),
        Bits(47, 63, ""),
    ),
}

_LOW = 0x1FFF  # bits of a float32 that the format (1, 8, 10) lacks
_FRACTION, _EXPONENT = 0x7FFFFF, 0x7F800000
_ALL = (1 << 64) - 1
_FAR = 1 << 62  # beyond the range of every field


class QuantParam:
    """The parameters of a quantising mode: one set, or one for each of n columns.

    Parameters
    ----------
    scale : float or array_like of shape [n]
        Factor M1; rounded to float32, of which the device takes 1 + 8 + 10 bits.
    offset : int or array_like of shape [n]
        Added after the first clamp: -256 to 255 (``Choices(offset_signed=False)``: 0 to 511).
    signed : bool or array_like of shape [n], optional
        Result int8 or uint8. Default int8, and nothing in modes that do not read the flag.
    shift : int or array_like of shape [n], optional
        Shift int32 accumulators right by so many bits, 1 to 16 (N; it sets MCB); None: no shift. In arrays -1 stands
        for None.
    rest : int or array_like of shape [n]
        Further bits of the word, which mean nothing; `unpack` keeps them here.

    Attributes
    ----------
    ignored : tuple of str
        After ``unpack(..., mode=...)``: the fields of the word that are set although the mode ignores them.

    Raises
    ------
    ValueError
        For a scale that is NaN or infinite in float32, for what no word can hold, or for arrays of different lengths.

    Examples
    --------
    >>> hex(QuantParam(scale=0.5, offset=-3, signed=True, shift=1).pack(arch=2201))
    '0x7fb03f000000'
    >>> QuantParam.unpack(0x7FB03F000000, 2201)
    QuantParam(scale=0.5, offset=-3, signed=True, shift=1)
    >>> QuantParam(scale=[0.5, 0.1]).pack(arch=3510)
    array([70369801142272, 70369781006336], dtype=uint64)

    References
    ----------
    Ascend C, fused quantisation, tables 1 (NPU architecture 2201) and 2 (3510).
    """

    __slots__ = ("_columns", "_offset", "_rest", "_scale", "_shift", "_signed", "ignored")
    __hash__ = None  # type: ignore[assignment]
    _scale: Words  # float32; the others int64, and uint64 for the rest; each of shape () or [n]
    _offset: Words
    _signed: Words  # -1: not said
    _shift: Words  # -1: none
    _rest: Words
    _columns: int | None
    ignored: tuple[str, ...]

    def __init__(
        self,
        scale: ArrayLike,
        offset: ArrayLike = 0,
        signed: ArrayLike | None = None,
        shift: ArrayLike | None = None,
        rest: ArrayLike = 0,
    ) -> None:
        with np.errstate(over="ignore"):
            scales = np.asarray(_reals_of(scale, "scale"), np.float32)
        _refuse(scales, ~np.isfinite(scales), "scale", "a finite float32", scale)
        offsets = _integers_of(offset, "offset")
        _refuse(offsets, (offsets < -256) | (offsets > 511), "offset", "a 9-bit integer, -256 to 255", offset)
        signs = np.asarray(-1 if signed is None else _flags(signed), np.int64)
        shifts = np.asarray(-1) if shift is None else _integers_of(shift, "shift")
        none = shift is None or shifts.ndim > 0
        _refuse(shifts, (shifts < -none) | (shifts > 16), "shift", "1 to 16, or None", shift)
        rests = np.asarray(as_words(rest, "rest"))
        parts: dict[str, Words] = {
            "scale": scales, "offset": offsets, "signed": signs, "shift": shifts, "rest": rests
        }  # fmt: skip
        self._columns = _columns(parts)
        self._scale, self._offset, self._signed, self._shift, self._rest = parts.values()
        self.ignored = ()

    # --- what it holds ------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> int | None:
        """The number n of columns, or None for one set."""
        return self._columns

    @property
    def scale(self) -> Any:
        """The scale as float32: a Python float or an array."""
        return _shown(self._scale, float)

    @property
    def offset(self) -> Any:
        """The offset."""
        return _shown(self._offset, int)

    @property
    def signed(self) -> Any:
        """The sign flag; None: not said."""
        if self._signed.ndim == 0 and int(self._signed) < 0:
            return None
        return _shown(self._signed.astype(np.bool_), bool)

    @property
    def shift(self) -> Any:
        """The shift N; None (in arrays -1): none."""
        if self._shift.ndim == 0 and int(self._shift) < 0:
            return None
        return _shown(self._shift, int)

    @property
    def rest(self) -> Any:
        """Bits that mean nothing."""
        return _shown(self._rest, int)

    def _items(self) -> Iterator[tuple[str, Any]]:
        yield "scale", self.scale
        yield "offset", self.offset
        yield "signed", self.signed
        yield "shift", self.shift
        if self._rest.any():
            yield "rest", self.rest

    def __repr__(self) -> str:
        parts = [f"{name}={value!r}" for name, value in self._items()]
        if self.ignored:
            parts.append(f"ignored={self.ignored!r}")
        return f"QuantParam({', '.join(parts)})"

    def __eq__(self, other: object) -> Any:
        """Compare all fields bit by bit; `ignored` does not count."""
        if not isinstance(other, QuantParam):
            return NotImplemented
        mine, its = (
            [p._scale.view(np.uint32), p._offset, p._signed, p._shift, p._rest] for p in (self, other)
        )
        return self._columns == other._columns and all(bool(np.all(a == b)) for a, b in zip(mine, its))

    def __reduce__(self) -> Any:
        return _restore, (self.scale, self.offset, self.signed, self.shift, self.rest, self.ignored)

    # --- words --------------------------------------------------------------------------------------------------------

    def pack(
        self,
        arch: int | str | Product = 2201,
        mode: QuantMode | str | int | None = None,
        choices: Choices | None = None,
    ) -> Any:
        """Return the word, or a uint64 array of n words.

        Parameters
        ----------
        arch : int or product
            2201 or 3510.
        mode : QuantMode, name or number, optional
            Refuse fields that this mode does not read (but for those that `unpack` found ignored).
        choices : Choices, optional
            `offset_signed` and `n_field` say how offset and N are written. The 13 low bits of the scale are cut off;
            under ``m1="round"``, where they matter, they stay.

        Raises
        ------
        ValueError
            For a mode that the architecture lacks or that takes no parameter, and for fields that it does not have.
        """
        number, chosen = architecture(arch), choices or _DEFAULT
        reads = _readable(number, mode, chosen)
        self._check(number, mode, reads)
        bits = np.asarray(self._scale.view(np.uint32), np.uint64)
        if chosen.m1 == "truncate":
            bits = bits & np.uint64(0xFFFFFFFF ^ _LOW)
        low, high = (-256, 255) if chosen.offset_signed else (0, 511)
        _refuse(self._offset, (self._offset < low) | (self._offset > high), "offset", f"{low} to {high}")
        first = int(chosen.n_field == "plus_one")
        shifted = self._shift >= 0
        wrong = shifted & ((self._shift < first) | (self._shift > first + 15))
        _refuse(self._shift, wrong, "shift", f"{first} to {first + 15}, or None")
        field = np.where(shifted, (self._shift - first) | 1 << 4, 0)
        default = 1 if "signed" in reads else 0
        sign = np.where(self._signed < 0, default, self._signed)
        fields = (0xFFFFFFFF ^ (_LOW if chosen.m1 == "truncate" else 0)) | 0x3FF << 37
        taken = np.where(shifted, np.uint64(fields | 0x1F << 32), np.uint64(fields | (1 << 36) * (number in SHIFTING)))
        _refuse(self._rest, (self._rest & taken) != 0, "rest", "bits that no field has", show=hex)
        words = bits | self._rest
        for part, at in ((field, 32), (self._offset & 0x1FF, 37), (sign, 46)):
            words = words | np.asarray(part).astype(np.uint64) << np.uint64(at)
        if self._columns is None:
            return int(words)
        return np.broadcast_to(words, (self._columns,)).copy()

    def _check(self, arch: int, mode: Any, reads: tuple[str, ...]) -> None:
        """Raise for a field that is set but that the architecture or the mode does not have."""
        given = {
            "shift": bool((self._shift >= 0).any()),
            "offset": bool(self._offset.any()),
            "signed": bool((self._signed > 0).any()),
        }
        for name, is_set in given.items():
            if is_set and name == "shift" and arch not in SHIFTING:
                raise ValueError(f"shift={self.shift!r}: NPU architecture {arch} has no shift (N, MCB); leave it out")
            if is_set and name not in reads and name not in self.ignored:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}: mode {quant_mode(mode).name} on NPU architecture {arch} "
                    f"does not read it; it reads {', '.join(reads)}"
                )

    @classmethod
    def unpack(
        cls,
        word: ArrayLike,
        arch: int | str | Product = 2201,
        mode: QuantMode | str | int | None = None,
        choices: Choices | None = None,
    ) -> QuantParam:
        """Read a word, or an array of n words; `pack` gives them back unchanged.

        Parameters
        ----------
        word : int or array_like of uint64, shape [n]
        arch, choices
            As in `pack`.
        mode : QuantMode, name or number, optional
            Name in `ignored` the fields that are set although this mode does not read them.

        Raises
        ------
        ValueError
            For a scale that is NaN or infinite.

        Examples
        --------
        >>> QuantParam.unpack(3 << 37 | 0x3F000000, 2201, "DEQF16").ignored
        ('offset',)
        """
        number, chosen = architecture(arch), choices or _DEFAULT
        reads = _readable(number, mode, chosen)
        words = as_words(word, "word")
        low = 0 if chosen.m1 == "round" else _LOW
        bits = (words & np.uint64(0xFFFFFFFF ^ low)).astype(np.uint32)
        _refuse(words, (bits & _EXPONENT) == _EXPONENT, "word", "one whose M1 is finite", show=hex)
        offset = offset_of(words, chosen)
        shift = np.asarray(np.full(words.shape, -1, np.int64))
        kept = _ALL ^ (0xFFFFFFFF ^ low | 0x1FF << 37 | 1 << 46)
        rest = words & np.uint64(kept)
        if number in SHIFTING:
            on = _field(words, 36, 1) == 1
            shift = np.where(on, _field(words, 32, 4) + int(chosen.n_field == "plus_one"), -1)
            rest = np.where(on, rest & np.uint64(_ALL ^ 0x1F << 32), rest)
        found = cls.__new__(cls)
        found._scale, found._offset, found._shift = bits.view(np.float32), offset, shift
        found._signed, found._rest = _field(words, 46, 1), np.asarray(rest)
        found._columns = len(words) if words.ndim else None
        given = {"offset": offset != 0, "signed": found._signed > 0, "shift": shift >= 0, "rest": rest != 0}
        found.ignored = tuple(n for n, is_set in given.items() if n not in reads and bool(np.any(is_set)))
        if mode is None:
            found.ignored = ()
        return found


def _readable(arch: int, mode: Any, choices: Choices) -> tuple[str, ...]:
    """Return the fields that a mode reads; without a mode all that the architecture has."""
    if mode is None:
        return ("scale", "shift", "offset", "signed")
    info = quant_mode(mode).info
    require_mode(info, arch)
    if not info.parametrised:
        raise ValueError(f"mode={info.mode.name} takes no parameter word")
    return info.reads(arch, choices)


def scale_of(words: Words, choices: Choices = _DEFAULT, name: str = "quant_pre") -> Words:
    """Return the factors M1 of words as the device reads them, in float32; errors call the words `name`.

    Raises
    ------
    ValueError
        For NaN and Inf, and for subnormals where the choice `m1_subnormal` says so.
    """
    bits = (words & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    if choices.m1 == "round":
        bits = bits + np.uint32(_LOW >> 1) + (bits >> np.uint32(13) & np.uint32(1))
    bits = bits & np.uint32(0xFFFFFFFF ^ _LOW)
    _refuse(words, (bits & _EXPONENT) == _EXPONENT, name, "a word whose M1 is finite", show=hex)
    subnormal = ((bits & _EXPONENT) == 0) & ((bits & _FRACTION) != 0)
    if choices.m1_subnormal == "raise":
        _refuse(words, subnormal, name, "a word whose M1 is not subnormal (m1_subnormal='raise')", show=hex)
    if choices.m1_subnormal == "flush":
        bits = np.where(subnormal, bits & np.uint32(0x80000000), bits)
    return np.asarray(bits).view(np.float32)


def offset_of(words: Words, choices: Choices = _DEFAULT) -> Words:
    """Return the offsets of words as the device reads them, in int64."""
    offset = _field(words, 37, 9)
    return (offset ^ 0x100) - 0x100 if choices.offset_signed else offset


def words_of(given: Any, info: QuantInfo, n: int, arch: int, choices: Choices = _DEFAULT) -> Words | None:
    """Return the parameter words of a mode, one or n of them, from what a caller gave; None where it takes none."""
    name = info.mode.name
    if not info.parametrised:
        if given is not None:
            raise ValueError(f"quant_pre={given!r}: mode {name} takes no parameter")
        return None
    if given is None:
        what = "a word for each column" if info.per_channel else "a word"
        raise ValueError(f"quant_pre is missing: mode {name} reads {what}")
    if isinstance(given, QuantParam):
        given = given.pack(arch, info.mode, choices)
    words = as_words(given, "quant_pre")
    if info.per_channel and words.shape != (n,):
        raise ValueError(f"quant_pre has shape {words.shape}; mode {name} takes one word for each of {n} columns")
    if not info.per_channel and words.shape not in ((), (1,)):
        raise ValueError(
            f"quant_pre has shape {words.shape}; mode {name} takes one word for the matrix, V{name} one per column"
        )
    return words.reshape(-1)


def _field(words: Words, low: int, width: int) -> Words:
    return np.asarray((words >> np.uint64(low) & np.uint64((1 << width) - 1)).astype(np.int64))


# --- arguments --------------------------------------------------------------------------------------------------------


def _reals_of(value: Any, name: str) -> Words:
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name}={value!r} must be a real number, or an array of one per column")
    return array


def _integers_of(value: Any, name: str) -> Words:
    """Return integers as int64; what is beyond it becomes a large one, not another."""
    array = np.asarray(value, object if isinstance(value, (list, tuple)) else None)
    if array.dtype.kind == "O" and name == "shift":
        array = np.array([-1 if item is None else item for item in array.flat], object).reshape(array.shape)
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    whole = [isinstance(item, (int, np.integer)) and not isinstance(item, bool) for item in array.flat]
    if array.dtype.kind not in "uO" or not all(whole):
        raise TypeError(f"{name}={value!r} must be an integer, or an array of one per column")
    return np.asarray(np.clip(array.astype(object), -_FAR, _FAR), np.int64)


def _flags(value: Any) -> Words:
    array = np.asarray(value)
    if array.dtype.kind not in "biu" or ((array != 0) & (array != 1)).any():
        raise TypeError(f"signed={value!r} must be True or False, or an array of one per column")
    return array


def as_words(value: Any, name: str) -> Words:
    """Return 64-bit words as uint64."""
    # As objects: NumPy makes float64 of a list in which some words need the top bit and others do not.
    array = np.asarray(value, object if isinstance(value, (list, tuple)) else None)
    integers = array.dtype.kind == "O" and all(isinstance(v, (int, np.integer)) for v in array.flat)
    if array.dtype.kind == "i" or integers:
        _refuse(array, (array < 0) | (array > _ALL), name, "a 64-bit word")
    elif array.dtype.kind != "u" and array.size:
        given = repr(value) if array.ndim == 0 else f"array of {array.dtype}"
        raise TypeError(
            f"{name}={given} must be a 64-bit word, or an array of one per column; QuantParam(scale=...) holds factors"
        )
    if array.ndim > 1:
        raise ValueError(f"{name} has shape {array.shape}; words come alone or in an array of shape [n]")
    return array.astype(np.uint64)


def _columns(parts: dict[str, Words]) -> int | None:
    for name, part in parts.items():
        if part.ndim > 1:
            raise ValueError(f"{name} has shape {part.shape}; it must be one number, or an array of shape [n]")
    lengths = {name: len(part) for name, part in parts.items() if part.ndim}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{', '.join(f'{n} has {k}' for n, k in lengths.items())} elements; they must agree")
    return next(iter(lengths.values()), None)


def _refuse(array: Words, wrong: Any, name: str, allowed: str, given: Any = None, show: Any = str) -> None:
    """Raise `ValueError` for the first element that is wrong."""
    if not np.any(wrong):
        return
    if np.ndim(array) == 0:
        item, where = (array.item() if given is None else given), ""
    else:
        at = int(np.flatnonzero(np.asarray(wrong))[0])
        item, where = np.asarray(array if given is None else given, object)[at : at + 1].tolist()[0], f"[{at}]"
    raise ValueError(f"{name}{where}={show(item)} must be {allowed}")


def _shown(array: Words, scalar: type) -> Any:
    if array.ndim == 0:
        return scalar(array.item())
    view = array.view()
    view.flags.writeable = False
    return view


def _restore(scale: Any, offset: Any, signed: Any, shift: Any, rest: Any, ignored: tuple[str, ...]) -> QuantParam:
    found = QuantParam(scale, offset, signed, shift, rest)
    found.ignored = ignored
    return found
