"""Block vectors and the streams that move them: MX9, MX6 and MX4 of AIE-MLv2, bfp16 of XDNA2.

Block vectors serve matrix multiplication only and have no padding in memory, so that a plain iterator cannot address
their elements (UG1603, "Data Types"); `BlockVectorStream` is the model of `block_vector_buffer_stream`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..blocks import BlockArray, encode
from ..formats import format
from ..kinds.block import ORDERS, BlockRule, SharedExponentFormat
from ..records import records
from ..rounding import suggestion
from .arch import Arch, arch
from .choices import Choices
from .tile import State, in_force

__all__ = ["BlockType", "BlockVectorStream", "block_format", "block_rule", "block_types", "block_vector", "type_of"]


@dataclass(frozen=True)
class BlockType:
    """A block type on the architecture that has it.

    Attributes
    ----------
    name : str
    arch : Arch
    sizes : tuple of int
        Legal numbers of elements of a vector.
    extract_only : tuple of int
        Sizes that exist only as the result of `block_vector.extract`.
    """

    name: str
    arch: Arch
    sizes: tuple[int, ...]
    extract_only: tuple[int, ...]


@cache
def block_types() -> tuple[BlockType, ...]:
    """Return the block types (`data/blocks.csv`; aie_api 2026, UG1603).

    Examples
    --------
    >>> [(t.name, t.arch.name, t.sizes) for t in block_types()][2]
    ('mx9', 'aie-mlv2', (64, 128, 256))
    """

    def numbers(text: str) -> tuple[int, ...]:
        return tuple(map(int, text.split()))

    return tuple(
        BlockType(r["type"], arch(r["arch"]), numbers(r["sizes"]), numbers(r["extract_only"]))
        for r in records("aie", "blocks")
    )


def _type(tag: object, of: Arch | None) -> BlockType:
    """Return the type named `tag`; `of`: the architecture that must have it, or None."""
    name = str(tag).removeprefix("aie::").removesuffix("_am027").removesuffix("_ug1603")
    found = [t for t in block_types() if t.name == name]
    if not found:
        names = [t.name for t in block_types()]
        raise ValueError(f"tag={str(tag)!r} is no block type{suggestion(name, names)} ({', '.join(names)})")
    for kind in found:
        if of is None or kind.arch == of:
            return kind
    having = ", ".join(t.arch.name for t in found)
    own = ", ".join(t.name for t in block_types() if t.arch == of) or "no block types"
    raise ValueError(f"tag={name!r} does not exist on arch={of!s}: {having} has it ({of!s} has {own})")


def type_of(fmt: SharedExponentFormat) -> BlockType | None:
    """Return the block type that a format is, under whatever choices; None: it is one of the user's own."""
    name = fmt.name.partition("[")[0].removesuffix("_am027")
    return next((t for t in block_types() if t.name == name), None)


_ORDERS = dict(zip(("exponent_first", "exponent_last_bytes", "mantissas_first"), ORDERS))


def block_format(tag: object, choices: Choices | None = None) -> SharedExponentFormat:
    """Return the format of a block type under the choices made (default: those of the current tile).

    Examples
    --------
    >>> block_format("mx9", Choices(convention="am027")).name
    'mx9_am027'
    """
    made = in_force(choices=choices).choices
    name = str(tag).removeprefix("aie::")
    kind = _type(name, None)
    if name == kind.name and kind.name.startswith("mx") and made.convention == "am027":
        name = f"{name}_am027"
    found = format(name)
    assert isinstance(found, SharedExponentFormat)
    if not kind.name.startswith("mx"):
        return found
    changes = {
        "order": _ORDERS[made.block_order],
        "shift_order": made.e2_order,
        "bit_layout": made.bit_layout if found.mantissa_bits < 8 else "lsb",
    }
    if found.exponent_255 == "nan" and made.e1_255 == "finite":
        changes["exponent_255"] = "finite"
    changes = {field: value for field, value in changes.items() if getattr(found, field) != value}
    if not changes:
        return found
    rule = found.rule if "exponent_255" not in changes else replace(found.rule, nonfinite=None)
    named = f"{found.name}[{','.join(str(v).replace(' ', '-') for v in changes.values())}]"
    return replace(found, name=named, rule=rule, **changes)  # type: ignore[arg-type]


def block_rule(fmt: SharedExponentFormat, state: State, overflow: object = None) -> BlockRule:
    """Return how values get into blocks of `fmt` on a tile in this state."""
    made = state.choices
    rounding = state.rounding.rounding if made.mx_rounding == "tile" or not fmt.shifts else None
    if not fmt.shifts:  # bfp16: known from silicon, but for the exponent beyond 254
        top = {"saturate": "saturate", "e255": "next", "raise": "raise"}[made.bump_254]
        return BlockRule(rounding=rounding, overflow=overflow, top_bump=top)  # type: ignore[arg-type]
    return BlockRule(
        rounding=rounding,
        overflow=made.mx_overflow if overflow is None else overflow,  # type: ignore[arg-type]
        nonfinite=None if made.nonfinite == "auto" else made.nonfinite,  # type: ignore[arg-type]
        flush_subnormals=made.flush_subnormals,
        zero_pair_shift=made.zero_pair_e2,
        min_code=made.min_code,  # type: ignore[arg-type]
        negative_zero=made.neg_zero,  # type: ignore[arg-type]
    )


class block_vector:
    """`aie::block_vector<tag, size>`: so many values in blocks with shared exponents.

    Parameters
    ----------
    tag : str
        "mx9", "mx6", "mx4" (AIE-MLv2), "bfp16ebs8", "bfp16ebs16" (XDNA2).
    size : int
        Number of elements; the architecture has few sizes.
    values : array_like, optional
        `size` numbers, converted with the tile's rounding mode (floor after reset). Default: zeros.
    arch, rounding, choices, optional
        Default: those of the current tile; `arch`: where that has no such type, the architecture that has it.
    overflow : {"saturate", "bump_block", "clear_e2_then_bump"}, optional
        What happens when a mantissa rounds beyond its range; default: `Choices.mx_overflow`, for bfp16 the block's
        exponent goes up (XDNA2 silicon).

    Raises
    ------
    ValueError
        For a type that the architecture does not have, and for a size that is not legal, with those that are.

    Examples
    --------
    >>> v = block_vector("mx9", 64, np.ones(64))
    >>> v.size, v.nbytes, v.exponents.tolist()
    (64, 72, [128, 128, 128, 128])
    """

    __slots__ = ("_blocks", "_kind")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        tag: object,
        size: int,
        values: ArrayLike | None = None,
        *,
        arch: str | int | Arch | None = None,
        rounding: object = None,
        overflow: object = None,
        choices: Choices | None = None,
    ) -> None:
        kind = _kind(tag, arch)
        state = in_force(kind.arch, rounding, choices=choices)
        fmt = block_format(tag, state.choices)
        _check_size(kind, size, kind.sizes)
        x = np.zeros(size, np.float32) if values is None else np.asarray(values)
        if x.shape != (size,):
            raise ValueError(f"values have shape {x.shape}; block_vector({kind.name!r}, {size}) takes ({size},)")
        codes = encode(x, fmt, rule=block_rule(fmt, state, overflow))
        self._kind, self._blocks = kind, BlockArray(codes, fmt)

    @classmethod
    def _of(cls, blocks: BlockArray, kind: BlockType) -> block_vector:
        self = cls.__new__(cls)
        self._kind, self._blocks = kind, blocks
        return self

    @classmethod
    def frombytes(
        cls,
        data: Any,
        tag: object,
        size: int,
        *,
        arch: str | int | Arch | None = None,
        layout: str = "stream",
        choices: Choices | None = None,
    ) -> block_vector:
        """Read a memory image; the inverse of `tobytes`."""
        kind, fmt = _kind(tag, arch), block_format(tag, choices)
        _check_size(kind, size, (*kind.extract_only, *kind.sizes))
        return cls._of(BlockArray.frombytes(data, fmt, size, layout=layout), kind)

    # --- what it holds ------------------------------------------------------------------------------------------------

    @property
    def tag(self) -> str:
        """Name of the block type."""
        return self._kind.name

    @property
    def arch(self) -> Arch:
        """The architecture."""
        return self._kind.arch

    @property
    def format(self) -> SharedExponentFormat:
        """The block format."""
        found = self._blocks.format
        assert isinstance(found, SharedExponentFormat)
        return found

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._blocks.size

    @property
    def shape(self) -> tuple[int]:
        """``(size,)``."""
        return (self.size,)

    @property
    def nbytes(self) -> int:
        """Bytes in memory: without padding."""
        return self._blocks.nbytes

    @property
    def blocks(self) -> BlockArray:
        """The same values as an array of blocks."""
        return self._blocks

    @property
    def exponents(self) -> np.ndarray[Any, Any]:
        """Shared exponents, one per block."""
        return self._blocks.exponents

    @property
    def mantissas(self) -> np.ndarray[Any, Any]:
        """Mantissa codes, one per element."""
        return self._blocks.element_codes

    def __len__(self) -> int:
        return self.size

    def tobytes(self, layout: str = "stream") -> bytes:
        """Return the memory image; ``layout="register"``: bfp16's C structure, mantissas before exponents."""
        return self._blocks.tobytes(layout)

    def registers(self, choices: Choices | None = None) -> list[bytes]:
        """Return the registers that hold an MX vector, one per 64 elements, each with its fields in ascending order.

        MX9, 80 bytes: 64 mantissas; the exponent of each block twice; four level-2 bytes, zero padded to eight.
        MX6, 48 bytes: the lower four bits of 64 mantissas, the even element in the low nibble; their 64 top bits; four
        level-2 bytes; four exponents. MX4 is held in the MX6 form (`Choices.mx4_register`). Sources: llvm-aie's
        typedefs, UG1639.

        Raises
        ------
        ValueError
            For bfp16, whose register order is ``tobytes("register")``.

        Examples
        --------
        >>> [len(r) for r in block_vector("mx6", 128, np.ones(128)).registers()]
        [48, 48]
        """
        if not self.format.shifts:
            raise ValueError(f"registers() is for MX vectors; a {self.tag} vector has tobytes('register')")
        made = in_force(choices=choices).choices
        parts: list[np.ndarray[Any, Any]]
        codes = self.mantissas.reshape(-1, 64).astype(np.uint8)
        exponents = self.exponents.reshape(-1, 4).astype(np.uint8)
        level2 = np.packbits(self._blocks.level2.reshape(-1, 32).astype(np.uint8), axis=1, bitorder="little")
        if self.format.mantissa_bits == 8:
            parts = [codes, np.repeat(exponents, 2, axis=1), np.pad(level2, ((0, 0), (0, 4)))]
        else:
            wide = codes << (5 - self.format.mantissa_bits if made.mx4_register == "left" else 0)
            nibbles = wide[:, ::2] & 15 | (wide[:, 1::2] & 15) << 4
            parts = [nibbles, np.packbits(wide >> 4, axis=1, bitorder="little"), level2, exponents]
        return [row.tobytes() for row in np.concatenate(parts, axis=1)]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self._blocks.__array__(dtype, copy)

    def __getitem__(self, index: object) -> NoReturn:
        raise TypeError(
            f"element {index!r}: the elements of a {self.tag} block vector cannot be accessed; take parts with "
            "extract, or the values with numpy.asarray"
        )

    def __setitem__(self, index: object, value: object) -> None:
        self[index]

    def __iter__(self) -> NoReturn:
        raise TypeError(f"the elements of a {self.tag} block vector cannot be iterated over; take numpy.asarray")

    def extract(self, size: int, index: int) -> block_vector:
        """Return elements ``[index * size, (index + 1) * size)``: `extract<size>(index)`."""
        _check_size(self._kind, size, (*self._kind.extract_only, *self._kind.sizes))
        self._check_part(index, size, "extract")
        return block_vector._of(self._blocks[index * size : (index + 1) * size].copy(), self._kind)

    def insert(self, index: int, part: block_vector) -> block_vector:
        """Write a smaller vector over elements ``index * part.size`` and on; returns the vector itself."""
        if not isinstance(part, block_vector) or part.format != self.format:
            raise TypeError(f"part={part!r} must be a block vector of {self.format.name}")
        self._check_part(index, part.size, "insert")
        codes = self._blocks.codes.copy()
        codes[index * part.nbytes : (index + 1) * part.nbytes] = part._blocks.codes
        self._blocks = BlockArray(codes, self.format)
        return self

    def grow(self, size: int, index: int = 0) -> block_vector:
        """Return a larger vector with this one at part `index`; other elements are undefined in hardware, 0 here."""
        _check_size(self._kind, size, self._kind.sizes)
        zeros = bytes(size // self.format.block_size * self.format.block_bytes)
        return block_vector._of(BlockArray.frombytes(zeros, self.format, size), self._kind).insert(index, self)

    def _check_part(self, index: object, size: int, what: str) -> None:
        if size > self.size:
            raise ValueError(f"{what} of {size} elements: a vector of {self.size} has no such part")
        last = self.size // size - 1
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)) or not 0 <= index <= last:
            raise ValueError(f"index={index!r} must be from 0 to {last} to {what} {size} of {self.size} elements")

    def __eq__(self, other: object) -> bool:
        """Same architecture, format, size and bytes."""
        return (
            isinstance(other, block_vector)
            and (self.arch, self.format) == (other.arch, other.format)
            and self.tobytes() == other.tobytes()
        )

    def __repr__(self) -> str:
        return f"block_vector({self.tag!r}, {self.size}, arch={self.arch!s}, format={self.format.name})"


def _kind(tag: object, of: str | int | Arch | None) -> BlockType:
    if of is not None:
        return _type(tag, arch(of))
    current = in_force().arch
    fits = any(t.arch == current for t in block_types() if t.name == _type(tag, None).name)
    return _type(tag, current if fits else None)


def _check_size(kind: BlockType, size: object, allowed: tuple[int, ...]) -> None:
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size not in allowed:
        only = f"; {', '.join(map(str, kind.extract_only))} only by extract" if kind.extract_only else ""
        raise ValueError(
            f"size={size!r} is not a size of {kind.name} block vectors on {kind.arch}: "
            f"{', '.join(map(str, kind.sizes))} are{only}"
        )


class BlockVectorStream:
    """Block vectors in a byte buffer or file, one after the other: `block_vector_buffer_stream`.

    Parameters
    ----------
    buffer : bytes, bytearray, memoryview, ndarray of uint8, or binary file
        Read, and written by `push`, from its start (a file: from where it stands). Not copied.
    tag, size
        As for `block_vector`.
    arch, choices, optional

    Raises
    ------
    TypeError
        When it is neither bytes nor a binary file.
    ValueError
        When a buffer does not hold a whole number of vectors, or an array is not C-contiguous.

    Examples
    --------
    >>> memory = bytearray(2 * 72)
    >>> stream = BlockVectorStream(memory, "mx9", 64)
    >>> for k in (1, 2):
    ...     stream.push(block_vector("mx9", 64, np.full(64, k)))
    >>> [float(np.asarray(v)[0]) for v in BlockVectorStream(memory, "mx9", 64)]
    [1.0, 2.0]
    """

    def __init__(
        self,
        buffer: Any,
        tag: object,
        size: int,
        *,
        arch: str | int | Arch | None = None,
        choices: Choices | None = None,
    ) -> None:
        self._kind, self._format = _kind(tag, arch), block_format(tag, choices)
        _check_size(self._kind, size, self._kind.sizes)
        self._size = size
        self._bytes = size // self._format.block_size * self._format.block_bytes
        self._at = 0
        self._file, self._view = None, None
        if hasattr(buffer, "read") or hasattr(buffer, "write"):
            self._file = buffer
            return
        data: Any = buffer
        if isinstance(buffer, np.ndarray):
            if not buffer.flags.c_contiguous:
                raise ValueError(f"buffer of shape {buffer.shape} is not C-contiguous; a stream does not copy it")
            data = buffer.reshape(-1)
        try:
            self._view = memoryview(data).cast("B")
        except (TypeError, ValueError):
            raise TypeError(f"buffer must be bytes-like or a binary file, not {type(buffer).__name__}") from None
        if len(self._view) % self._bytes:
            raise ValueError(
                f"buffer has {len(self._view)} bytes, which are not whole vectors of {size} {self._kind.name}: "
                f"these take {self._bytes}"
            )

    @property
    def position(self) -> int:
        """Number of vectors read or written."""
        return self._at

    @property
    def vector_bytes(self) -> int:
        """Bytes per vector."""
        return self._bytes

    def __iter__(self) -> Iterator[block_vector]:
        return self

    def __next__(self) -> block_vector:
        found = self._read(True)
        if found is None:
            raise StopIteration
        return found

    def pop(self) -> block_vector:
        """Return the next vector and go on; at the end `EOFError`."""
        found = self._read(True)
        if found is None:
            raise self._end("read")
        return found

    def peek(self) -> block_vector:
        """Return the next vector and stay; at the end `EOFError`."""
        found = self._read(False)
        if found is None:
            raise self._end("read")
        return found

    def push(self, vector: block_vector) -> None:
        """Write a vector and go on; at the end of a buffer `EOFError`. Files grow."""
        if not isinstance(vector, block_vector) or vector.format != self._format or vector.size != self._size:
            raise TypeError(f"vector={vector!r} must be a block vector of {self._size} {self._format.name}")
        data = vector.tobytes()
        if self._file is not None:
            self._file.write(data)
        else:
            assert self._view is not None
            if self._view.readonly:
                raise TypeError("buffer is read-only")
            start = self._at * self._bytes
            if start == len(self._view):
                raise self._end("write")
            self._view[start : start + self._bytes] = data
        self._at += 1

    def _read(self, advance: bool) -> block_vector | None:
        if self._file is not None:
            data = self._file.read(self._bytes)
            if not advance and data:
                self._file.seek(-len(data), io.SEEK_CUR)
        else:
            assert self._view is not None
            data = self._view[self._at * self._bytes : (self._at + 1) * self._bytes]
        if not len(data):
            return None
        if len(data) < self._bytes:
            raise ValueError(f"the file ends within a vector: {len(data)} of {self._bytes} bytes")
        self._at += advance
        blocks = BlockArray.frombytes(bytes(data), self._format, self._size)
        return block_vector._of(blocks, self._kind)

    def _end(self, action: str) -> EOFError:
        return EOFError(f"nothing left to {action}: the stream ends after {self._at} vectors of {self._bytes} bytes")
