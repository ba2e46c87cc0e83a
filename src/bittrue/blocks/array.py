"""`BlockArray`: packed blocks with their format, logical shape and axis, as a typed array."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..formats import Format, format
from ..kinds.block import BlockFormat, BlockRule
from ..packing import as_bytes
from ..rounding import Rounding, Rule
from .codec import checked_scale, decode, encode, take_apart
from .layout import from_register, to_register

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["BlockArray", "block_array", "image_shape"]

Plain = np.ndarray[Any, Any]

_LAYOUTS = ("stream", "register")


def image_shape(fmt: BlockFormat, shape: tuple[int, ...], axis: int = -1) -> tuple[int, ...]:
    """Return the shape of the packed bytes: the other axes, then the bytes of the blocks along `axis`.

    Examples
    --------
    >>> image_shape(format("mx9"), (3, 40), 0)  # 40 columns of one block each
    (40, 18)
    """
    if not shape:
        raise ValueError(f"shape=() has no axis along which blocks of {fmt.name} could lie")
    if not all(_is_whole(n) and n >= 0 for n in shape):
        raise ValueError(f"shape={shape!r} must be whole numbers of elements, none below 0")
    _check_axis(axis, len(shape))
    others = list(shape)
    length = others.pop(axis)
    return (*others, fmt.blocks(length) * fmt.block_bytes)


class BlockArray:
    """An array whose values lie in packed blocks along one axis.

    `numpy.asarray` gives the values. There is no padding between blocks, so single elements cannot be addressed, as in
    hardware; slices along the axis begin and end on block boundaries.

    Parameters
    ----------
    codes : ndarray of uint8
        Packed bytes of shape ``image_shape(format, shape, axis)``. Not copied.
    format : BlockFormat or name
    shape : int or tuple of int, optional
        Number of elements along each axis; default: all that the blocks hold.
    axis : int
        Along which the elements of a block lie.
    scale : float, optional
        The scale of the whole tensor, for formats that have one (NVFP4).

    Examples
    --------
    >>> a = block_array(np.arange(40, dtype=np.float32).reshape(1, 40), "mx9")
    >>> a.shape, a.nbytes, a[:, 16:].shape
    ((1, 40), 54, (1, 24))
    """

    __slots__ = ("_axis", "_data", "_format", "_scale", "_shape")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        codes: ArrayLike,
        format: Format | str,
        shape: int | tuple[int, ...] | None = None,
        axis: int = -1,
        scale: float | None = None,
    ) -> None:
        self._format = _block_format(format)
        data = np.asarray(codes)
        if data.dtype != np.uint8:
            raise TypeError(f"codes have dtype {data.dtype}; blocks of {self._format.name} are bytes (uint8)")
        if data.ndim == 0 or data.shape[-1] % self._format.block_bytes:
            raise ValueError(
                f"codes: {data.shape[-1] if data.ndim else 'no axis of'} bytes are not whole blocks of "
                f"{self._format.name}, which take {self._format.block_bytes}"
            )
        if shape is None:
            others = list(data.shape[:-1])
            _check_axis(axis, data.ndim)
            others.insert(axis % data.ndim, data.shape[-1] // self._format.block_bytes * self._format.block_size)
            shape = tuple(others)
        sizes = _sizes(shape)
        wanted = image_shape(self._format, sizes, axis)
        if data.shape != wanted:
            raise ValueError(f"codes have shape {data.shape}; {sizes} in {self._format.name} takes {wanted}")
        self._data, self._shape, self._axis = data, tuple(map(int, sizes)), int(axis) % len(sizes)
        self._scale = None if scale is None else checked_scale(scale, self._format)

    # --- what it holds ------------------------------------------------------------------------------------------------

    @property
    def codes(self) -> Plain:
        """The packed bytes, uint8 (shared memory, not a copy): the other axes, then bytes."""
        return self._data

    @property
    def format(self) -> BlockFormat:
        """The block format."""
        return self._format

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each axis, without padding."""
        return self._shape

    @property
    def axis(self) -> int:
        """Along which the elements of a block lie; never negative."""
        return self._axis

    @property
    def scale(self) -> float | None:
        """The scale of the whole tensor."""
        return self._scale

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements, without padding."""
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        """Size of the memory image."""
        return self._data.size

    def __len__(self) -> int:
        return self._shape[0]

    @property
    def exponents(self) -> Plain:
        """Shared exponents or scale codes: the other axes, then one number per block."""
        return np.ascontiguousarray(self._parts()[0].reshape(*self._data.shape[:-1], -1))

    @property
    def element_codes(self) -> Plain:
        """Codes of the elements, padding included: the other axes, then one code per element."""
        return np.ascontiguousarray(self._parts()[2].reshape(*self._data.shape[:-1], -1))

    @property
    def level2(self) -> Plain:
        """Level-2 exponents (MX9, MX6, MX4): the other axes, then one per pair of elements."""
        return np.ascontiguousarray(self._parts()[1].reshape(*self._data.shape[:-1], -1))

    def _parts(self) -> tuple[Plain, Plain, Plain]:
        return take_apart(self._data, self._format)

    # --- memory image -------------------------------------------------------------------------------------------------

    def tobytes(self, layout: str = "stream") -> bytes:
        """Return the memory image: block after block, the axis of the blocks innermost.

        Parameters
        ----------
        layout : {"stream", "register"}
            "register" (bfp16): of every 64 elements first the mantissas, then the exponents.
        """
        data = np.ascontiguousarray(self._data).reshape(-1)
        return (to_register(data, self._format) if _register(layout) else data).tobytes()

    @classmethod
    def frombytes(
        cls,
        data: Any,
        format: Format | str,
        shape: int | tuple[int, ...] | None = None,
        axis: int = -1,
        layout: str = "stream",
        scale: float | None = None,
    ) -> Self:
        """Read a memory image; the inverse of `tobytes`. Without `shape`, one axis with all elements.

        Raises
        ------
        ValueError
            When the number of bytes is not a whole number of blocks, or not what `shape` takes.
        """
        fmt = _block_format(format)
        raw = as_bytes(data)
        if raw.size % fmt.block_bytes:
            raise ValueError(
                f"data has {raw.size} bytes, which are not whole blocks of {fmt.name}: these take {fmt.block_bytes}"
            )
        if _register(layout):
            raw = from_register(raw, fmt)
        if shape is None:
            return cls(raw, fmt, None, axis, scale)
        sizes = _sizes(shape)
        wanted = image_shape(fmt, sizes, axis)
        if raw.size != math.prod(wanted):
            raise ValueError(f"data has {raw.size} bytes; shape {sizes} of {fmt.name} takes {math.prod(wanted)}")
        return cls(raw.reshape(wanted), fmt, sizes, axis, scale)

    # --- values -------------------------------------------------------------------------------------------------------

    def exact_values(self) -> Plain:
        """Return the values, float32, or float64 with a scale of the tensor."""
        return self.decode(np.float32 if self._scale is None else np.float64)

    def decode(self, dtype: DTypeLike = np.float32) -> Plain:
        """Return the values in `dtype`, without padding."""
        values = decode(self._data, self._format, dtype, scale=self._scale, axis=self._axis)
        keep = [slice(None)] * self.ndim
        keep[self._axis] = slice(self._shape[self._axis])
        return values[tuple(keep)]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Plain:
        if copy is False:
            raise ValueError(f"the values of {self._format.name} cannot be had without a copy")
        values = self.decode(np.float64 if dtype is not None and np.dtype(dtype) == np.float64 else np.float32)
        return values if dtype is None else values.astype(dtype, copy=False)

    def tolist(self) -> Any:
        """Return the values as nested lists of Python numbers."""
        return self.decode(np.float64).tolist()

    def astype(self, format: Format | str | DTypeLike, *args: Any, **more: Any) -> Any:
        """Convert to another format; arguments as in `bittrue.array`."""
        from ..array import array

        return array(self.exact_values(), format, *args, **more)

    def __eq__(self, other: object) -> Any:
        """Compare the values with others, element by element, as NumPy does."""
        return np.equal(self.decode(np.float64), _plain_values(other))

    def __ne__(self, other: object) -> Any:
        """Compare the values with others, element by element, as NumPy does."""
        return np.not_equal(self.decode(np.float64), _plain_values(other))

    # --- parts --------------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> BlockArray:
        """Take a part: slices and integers on the other axes, slices on block boundaries along the blocks' own."""
        keys = self._expanded(key)
        own = keys.pop(self._axis)
        first, last = self._bounds(own)
        lengths = [len(range(*k.indices(n))) if isinstance(k, slice) else None for k, n in self._others(keys)]
        step = self._format.block_bytes
        blocks = slice(first // self._format.block_size * step, self._format.blocks(last) * step if last > first else 0)
        data = self._data[(*keys, blocks)]
        before = sum(n is not None for n in lengths[: self._axis])
        shape = [n for n in lengths if n is not None]
        shape.insert(before, last - first)
        return BlockArray(data, self._format, tuple(shape), before, self._scale)

    def _others(self, keys: list[Any]) -> list[tuple[Any, int]]:
        sizes = [n for i, n in enumerate(self._shape) if i != self._axis]
        return list(zip(keys, sizes))

    def _expanded(self, key: Any) -> list[Any]:
        """Return one integer or slice for every axis."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if sum(k is Ellipsis for k in keys) > 1:
            raise IndexError("an index can hold only one ellipsis ('...')")
        for k in keys:
            if k is not Ellipsis and not isinstance(k, slice) and not _is_whole(k):
                raise TypeError(f"index {k!r}: blocks are indexed by slices and integers only")
        at = next((i for i, k in enumerate(keys) if k is Ellipsis), None)
        missing = self.ndim - len(keys) + (at is not None)
        if missing < 0:
            raise IndexError(f"{len(keys)} indices for {self.ndim} dimensions")
        fill = [slice(None)] * missing
        return [*keys, *fill] if at is None else [*keys[:at], *fill, *keys[at + 1 :]]

    def _bounds(self, key: Any) -> tuple[int, int]:
        n, size, name = self._shape[self._axis], self._format.block_size, self._format.name
        if not isinstance(key, slice):
            raise TypeError(
                f"element {key} along axis {self._axis}: single elements of packed {name} blocks cannot be accessed; "
                f"take a slice of whole blocks of {size}, or the values with numpy.asarray"
            )
        first, last, step = key.indices(n)
        if step != 1:
            raise ValueError(f"slice step {step} along axis {self._axis}: blocks of {name} go one after the other")
        last = max(first, last)
        if (first % size and first != n) or (last % size and last != n):
            raise ValueError(
                f"slice {first}:{last} along axis {self._axis} does not begin and end on block boundaries: "
                f"multiples of {size}, or the end at {n}"
            )
        return first, last

    def copy(self) -> BlockArray:
        """Return an array with its own memory."""
        return BlockArray(self._data.copy(), self._format, self._shape, self._axis, self._scale)

    def __repr__(self) -> str:
        scale = "" if self._scale is None else f", scale={self._scale!r}"
        try:
            text = np.array2string(self.decode(), separator=", ", prefix="BlockArray(", threshold=64, edgeitems=2)
        except ValueError as error:  # bytes from elsewhere may hold reserved codes
            text = f"<{error}>"
        return f"BlockArray({text}, shape={self._shape}, format={self._format.name}, axis={self._axis}{scale})"

    def __reduce__(self) -> tuple[Callable[..., BlockArray], tuple[Any, ...]]:
        return BlockArray, (self._data, self._format, self._shape, self._axis, self._scale)


def _is_whole(n: object) -> bool:
    return isinstance(n, (int, np.integer)) and not isinstance(n, bool)


def _sizes(shape: Any) -> tuple[int, ...]:
    return (shape,) if np.ndim(shape) == 0 else tuple(shape)


def _check_axis(axis: Any, ndim: int) -> None:
    if not _is_whole(axis) or not -ndim <= axis < ndim:
        raise ValueError(f"axis={axis!r} is out of range for {ndim} dimensions")


def _register(layout: str) -> bool:
    if layout not in _LAYOUTS:
        raise ValueError(f"layout={layout!r} must be one of {', '.join(_LAYOUTS)}")
    return layout == "register"


def _plain_values(x: Any) -> Plain:
    return np.asarray(x.exact_values() if hasattr(x, "exact_values") else x)


def _block_format(fmt: object) -> BlockFormat:
    found = format(fmt)
    if not isinstance(found, BlockFormat):
        raise TypeError(f"format={found.name!r} has one code per element; use bittrue.Array")
    return found


def block_array(
    x: Any,
    fmt: BlockFormat | str,
    rounding: Rounding | str | None = None,
    overflow: Any = None,
    nan: Any = None,
    rule: Rule | BlockRule | None = None,
    *,
    axis: int = -1,
    scale: Any = None,
    threads: int | None = None,
    **others: Any,
) -> BlockArray:
    """Quantise values into blocks along an axis; `bittrue.array` comes here. Arguments as in `bittrue.encode`."""
    found = _block_format(fmt)
    if not isinstance(x, np.ndarray) and not hasattr(x, "exact_values"):
        from ..parse import as_input

        x = as_input(x)
    codes = encode(x, found, rounding, overflow, nan, rule, threads=threads, axis=axis, scale=scale, **others)
    return BlockArray(codes, found, tuple(x.shape), axis, scale)
