"""`Array`: codes with a format and a shape, as a typed array; functions over arrays are in `operations`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.typing import ArrayLike, DTypeLike

from .codec import encode
from .codes import absolute, bit_patterns, checked, compare_values, ecosystem_dtype, negative, sort_keys, values
from .formats import BoolFormat, ComplexFormat, Format, IntFormat
from .formats import format as find_format
from .kinds.block import BlockFormat, BlockRule
from .packing import from_image, image_size, to_image
from .parse import as_input
from .rounding import NanPolicy, Negative, Overflow, Rounding, Rule

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Array", "array"]

Axis = int | tuple[int, ...] | None
Plain = np.ndarray[Any, Any]

#: dtypes in which `codec` takes values as they are; the other formats go through `values`.
_TAKEN_AS_IS = frozenset(
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64".split()
)


class Array:
    """An array of codes that knows its number format.

    It behaves like a NumPy array for indexing, shapes, comparison, sorting and reductions, and never loses its type;
    `numpy.asarray` gives the values. Its elements cannot be assigned. Two arrays are compared by value: NaN differs
    from itself, -0.0 equals 0.0.

    Parameters
    ----------
    codes : array_like
        One code per element: ``format.storage``, the dtype that NumPy or ml_dtypes has for the format, or integers
        in range. Not copied where the dtype fits.
    format : Format, name or dtype

    Raises
    ------
    ValueError
        For a code that the format does not have.
    TypeError
        For a dtype that holds no codes of the format.

    Examples
    --------
    >>> a = Array([0x38, 0x7F, 0x80], "float8_e4m3fn")
    >>> a
    Array([ 1., nan, -0.], shape=(3,), format=float8_e4m3fn)
    >>> a[0], a.tobytes(), f"{a[0]:.3f}"
    (Array(1., shape=(), format=float8_e4m3fn), b'8\\x7f\\x80', '1.000')
    """

    __slots__ = ("_codes", "_format")
    __hash__ = None  # type: ignore[assignment]
    _codes: Plain
    _format: Format

    def __init__(self, codes: ArrayLike, format: Format | str | DTypeLike) -> None:
        self._format = find_format(format)
        if isinstance(self._format, BlockFormat):
            raise TypeError(f"{self._format.name} has blocks, no code per element; use bittrue.BlockArray")
        self._codes = checked(codes.codes if isinstance(codes, Array) else codes, self._format)

    @classmethod
    def _wrap(cls, codes: Any, format: Format) -> Self:
        """Make an array of codes that need no check."""
        self = cls.__new__(cls)
        self._codes, self._format = np.asarray(codes), format
        return self

    # --- what it holds ------------------------------------------------------------------------------------------------

    @property
    def codes(self) -> Plain:
        """The codes, one per element, of dtype ``format.storage`` (shared memory, not a copy)."""
        return self._codes

    @property
    def format(self) -> Format:
        """The number format."""
        return self._format

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each axis."""
        return tuple(self._codes.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._codes.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._codes.size

    @property
    def nbytes(self) -> int:
        """Size of the memory image (`tobytes`): packed."""
        return image_size(self.size, self._format)

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def real(self) -> Array:
        """Real parts, in the format of a part."""
        return self._part(0)

    @property
    def imag(self) -> Array:
        """Imaginary parts of a complex array, in the format of a part."""
        if not isinstance(self._format, ComplexFormat):
            raise TypeError(f"imag: the format {self._format.name} is not complex")
        return self._part(1)

    def _part(self, which: int) -> Array:
        f = self._format
        if not isinstance(f, ComplexFormat):
            return self
        patterns = bit_patterns(self._codes, f) >> f.code_dtype.type(which * f.part.bits)
        codes = patterns & f.code_dtype.type((1 << f.part.bits) - 1)
        return Array._wrap(np.asarray(codes.astype(f.part.code_dtype)).view(f.part.storage), f.part)

    # --- memory image -------------------------------------------------------------------------------------------------

    def tobytes(self, order: str = "low_first") -> bytes:
        """Return the memory image on a device: C order, little-endian, formats below 8 bits packed.

        Formats of more than 8 bits take whole words of their `Format.storage`: tfloat32, with 19 bits, takes 4 bytes.

        Parameters
        ----------
        order : {"low_first", "high_first"}
            Where in a byte the first of several codes is; see `bittrue.packing.pack`.

        Examples
        --------
        >>> Array([1, 2, 15], "uint4").tobytes().hex()
        '210f'
        """
        return to_image(self._codes, self._format, order).tobytes()

    @classmethod
    def frombytes(
        cls,
        data: Any,
        format: Format | str | DTypeLike,
        shape: int | tuple[int, ...] | None = None,
        order: str = "low_first",
        axis: int = -1,
    ) -> Self:
        """Read a memory image; the inverse of `tobytes`.

        Parameters
        ----------
        data : bytes-like or numpy.ndarray of uint8
        format : Format, name or dtype
        shape : int or tuple of int, optional
            Counts elements, also where several share a byte. Default: one axis with as many as there are.
        order : {"low_first", "high_first"}
        axis : int
            Along which the blocks of a block format lie; the result is then a `BlockArray`.

        Raises
        ------
        ValueError
            When the number of bytes does not fit `format` and `shape`, or a code is out of range.

        Examples
        --------
        >>> Array.frombytes(b"\\x21\\x0f", "int4", 3)
        Array([ 1,  2, -1], shape=(3,), format=int4)
        """
        f = find_format(format)
        if isinstance(f, BlockFormat):
            from .blocks import BlockArray

            found: Any = BlockArray.frombytes(data, f, shape, axis)
            return found  # type: ignore[no-any-return]
        return cls(from_image(data, f, shape, order), f)

    # --- values -------------------------------------------------------------------------------------------------------

    def exact_values(self) -> Plain:
        """Return the values in a dtype that conversions start from: the format's own where `encode` knows it."""
        dtype = ecosystem_dtype(self._format)
        if dtype is not None and dtype.name in _TAKEN_AS_IS:
            return self._codes.view(dtype)
        return values(self._codes, self._format)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Plain:
        """Return the values: float32 (float64 where needed), the matching integer dtype, bool, or complex64."""
        own = ecosystem_dtype(self._format)
        if dtype is not None and own is not None and np.dtype(dtype) == own and own.kind != "b":
            found = self._codes.view(own)
        else:
            found = values(self._codes, self._format)
            if dtype is not None and found.dtype != dtype:
                found = _cast(found, np.dtype(dtype))
        if np.may_share_memory(found, self._codes):
            return found.copy() if copy else found
        if copy is False:
            raise ValueError(f"the values of {self._format.name} cannot be had without a copy")
        return found

    def to_numpy(self) -> Plain:
        """View the codes with the dtype that NumPy, ml_dtypes or an installed en_dtypes has for the format.

        Returns
        -------
        numpy.ndarray
            Shares memory with `codes`; the codes themselves where no such dtype exists. (bool: a copy where a code is
            neither 0 nor 1, which NumPy does not allow.)

        Examples
        --------
        >>> Array([0x38], "float8_e4m3fn").to_numpy()
        array([1], dtype='float8_e4m3fn')
        """
        dtype = ecosystem_dtype(self._format)
        if dtype is None:
            return self._codes
        if isinstance(self._format, BoolFormat) and (self._codes > 1).any():
            return values(self._codes, self._format)
        return self._codes.view(dtype)

    def item(self, *index: Any) -> Any:
        """Return one element as a Python bool, int, float or complex, exactly."""
        return values(self._codes, self._format).item(*index)

    def tolist(self) -> Any:
        """Return the values as nested lists of Python numbers."""
        return values(self._codes, self._format).tolist()

    def _scalar(self, kind: str) -> Any:
        if self.ndim:
            raise TypeError(f"only an Array without axes becomes {kind}, not one of shape {self.shape}; index it first")
        return self.item()

    def __float__(self) -> float:
        return float(self._scalar("a float"))

    def __int__(self) -> int:
        return int(self._scalar("an int"))

    def __complex__(self) -> complex:
        return complex(self._scalar("a complex"))

    def __index__(self) -> int:
        if not isinstance(self._format, IntFormat):
            raise TypeError(f"an Array of {self._format.name} is not an index; take an integer format")
        return int(self._scalar("an index"))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                f"an Array of shape {self.shape} is neither true nor false; use .any() or .all() of a test"
            )
        return bool(self.item())

    # --- text ---------------------------------------------------------------------------------------------------------

    def _text(self, prefix: str = "", separator: str = " ") -> str:
        codes, options = self._codes, np.get_printoptions()
        edge, elided = options["edgeitems"], self.size > options["threshold"]
        if elided:  # decode what is shown, not everything
            for axis, n in enumerate(codes.shape):
                if n > 2 * edge + 1:
                    codes = np.take(codes, [*range(edge + 1), *range(n - edge, n)], axis)
        threshold = 0 if elided else options["threshold"]
        return np.array2string(values(codes, self._format), separator=separator, prefix=prefix, threshold=threshold)

    def __str__(self) -> str:
        return str(values(self._codes, self._format)[()]) if self.ndim == 0 else self._text()

    def __repr__(self) -> str:
        return f"Array({self._text('Array(', ', ')}, shape={self.shape}, format={self._format.name})"

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        return self._scalar("formatted text").__format__(spec)  # type: ignore[no-any-return]

    # --- parts and shapes ---------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Array:
        key = tuple(map(_index, key)) if isinstance(key, tuple) else _index(key)
        return Array._wrap(self._codes[key], self._format)

    def __iter__(self) -> Iterator[Array]:
        if self.ndim == 0:
            raise TypeError("an Array without axes cannot be iterated over")
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: Any) -> Array:
        """Return the elements in another shape, as `numpy.ndarray.reshape`."""
        return Array._wrap(self._codes.reshape(*shape), self._format)

    def ravel(self) -> Array:
        """Return the elements along one axis, in C order."""
        return Array._wrap(self._codes.ravel(), self._format)

    def transpose(self, *axes: Any) -> Array:
        """Return the axes in another order, by default reversed."""
        return Array._wrap(self._codes.transpose(*axes), self._format)

    @property
    def T(self) -> Array:
        """The transpose."""
        return self.transpose()

    def copy(self) -> Array:
        """Return an array with its own memory."""
        return Array._wrap(self._codes.copy(), self._format)

    def take(self, indices: ArrayLike, axis: int | None = None) -> Array:
        """Return the elements at `indices`, of the flattened array or along `axis`."""
        return Array._wrap(np.take(self._codes, _index(indices), axis), self._format)

    def __reduce__(self) -> tuple[Callable[..., Array], tuple[Plain, Format]]:
        return _restore, (self._codes, self._format)

    # --- conversion ---------------------------------------------------------------------------------------------------

    def astype(
        self,
        format: Format | str | DTypeLike,
        rounding: Rounding | str | None = None,
        overflow: Overflow | str | None = None,
        nan: NanPolicy | str | None = None,
        rule: Rule | None = None,
        **more: Any,
    ) -> Array:
        """Convert to another format with one rounding; arguments as in `bittrue.array`.

        Examples
        --------
        >>> Array([0x3F80, 0x4049], "bfloat16").astype("float8_e4m3fn")
        Array([1.  , 3.25], shape=(2,), format=float8_e4m3fn)
        """
        return array(self, format, rounding, overflow, nan, rule, **more)

    # --- signs and comparison -----------------------------------------------------------------------------------------

    def __neg__(self) -> Array:
        return Array._wrap(negative(self._codes, self._format), self._format)

    def __pos__(self) -> Array:
        return self.copy()

    def __abs__(self) -> Array:
        return Array._wrap(absolute(self._codes, self._format), self._format)

    def __eq__(self, other: object) -> Any:
        return self._compared(other, np.equal, lambda order: order == 0)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, np.not_equal, lambda order: order != 0)

    def __lt__(self, other: object) -> Any:
        return self._compared(other, np.less, lambda order: order == -1)

    def __le__(self, other: object) -> Any:
        return self._compared(other, np.less_equal, lambda order: order <= 0)

    def __gt__(self, other: object) -> Any:
        return self._compared(other, np.greater, lambda order: order == 1)

    def __ge__(self, other: object) -> Any:
        return self._compared(other, np.greater_equal, lambda order: (order == 0) | (order == 1))

    def _compared(self, other: object, test: np.ufunc, by_order: Callable[[Plain], Plain]) -> Any:
        """Compare values exactly; NumPy would compare 64-bit integers and floats as floats."""
        mine, its = values(self._codes, self._format), plain_values(other)
        if its is None:
            return NotImplemented
        if its.dtype.kind == "O":
            return np.asarray(test(mine.astype(object), its, dtype=object)).astype(np.bool_)[()]
        if {mine.dtype.kind, its.dtype.kind} in ({"i", "f"}, {"u", "f"}):
            return by_order(compare_values(mine, its))[()]
        with np.errstate(invalid="ignore"):  # signalling NaN
            return test(mine, its)

    # --- order --------------------------------------------------------------------------------------------------------

    def sort(self, axis: int | None = -1) -> Array:
        """Return a sorted copy, by value: stable, NaN last, -0.0 and 0.0 equal. ``axis=None`` sorts all elements."""
        codes = self._codes.ravel() if axis is None else self._codes
        order = np.argsort(sort_keys(codes, self._format), axis=-1 if axis is None else axis, kind="stable")
        return Array._wrap(np.take_along_axis(codes, order, -1 if axis is None else axis), self._format)

    def argsort(self, axis: int | None = -1) -> Plain:
        """Return the indices that sort the array, as `sort` does."""
        return np.argsort(sort_keys(self._codes, self._format), axis=axis, kind="stable")

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Any:
        """Return the index of the first largest value; the first NaN counts as largest."""
        return np.argmax(sort_keys(self._codes, self._format), axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Any:
        """Return the index of the first smallest value; the first NaN counts as smallest."""
        return np.argmin(sort_keys(self._codes, self._format, nan_first=True), axis=axis, keepdims=keepdims)

    def max(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Return the largest value; NaN where there is one."""
        return self._extreme(axis, keepdims, nan_first=False)

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Return the smallest value; NaN where there is one."""
        return self._extreme(axis, keepdims, nan_first=True)

    def _extreme(self, axis: Axis, keepdims: bool, nan_first: bool) -> Array:
        rows, shape = rows_along(self._codes, axis, keepdims)
        if rows.shape[1] == 0:
            raise ValueError(f"{'min' if nan_first else 'max'} of no elements: shape {self.shape}, axis {axis}")
        keys = sort_keys(rows, self._format, nan_first)
        at = (np.argmin if nan_first else np.argmax)(keys, axis=1)
        return Array._wrap(np.take_along_axis(rows, at[:, None], 1).reshape(shape), self._format)

    # --- reductions ---------------------------------------------------------------------------------------------------

    def sum(self, axis: Axis = None, **how: Any) -> Any:
        """Add up the elements in a stated accumulator; see `bittrue.sum`."""
        from .reduce import sum

        return sum(self, axis, **how)

    def mean(self, axis: Axis = None, **how: Any) -> Any:
        """Return the arithmetic mean; see `bittrue.mean`."""
        from .reduce import mean

        return mean(self, axis, **how)

    def dot(self, other: Array, **how: Any) -> Any:
        """Multiply and add up along the last axis of this and the last but one of the other; see `bittrue.dot`."""
        from .reduce import dot

        return dot(self, other, **how)

    # --- NumPy's functions --------------------------------------------------------------------------------------------

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from .operations import call_numpy_function

        return call_numpy_function(func, args, kwargs)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from .operations import call_ufunc

        return call_ufunc(ufunc, method, inputs, kwargs)


def array(
    x: Any,
    format: Format | str | DTypeLike,
    rounding: Rounding | str | None = None,
    overflow: Overflow | str | None = None,
    nan: NanPolicy | str | None = None,
    rule: Rule | BlockRule | None = None,
    *,
    negative: Negative | str | None = None,
    seed: int | None = None,
    random: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    zero_point: ArrayLike | None = None,
    axis: int = -1,
    threads: int | None = None,
) -> Array:
    """Round values into a format.

    Parameters
    ----------
    x : array_like
        What `encode` takes: NumPy and ml_dtypes arrays, numbers, nested lists, strings ("1.5", "0x1.8p3", "1/3",
        "nan"), integers of any size, fractions, decimals, or an `Array`. Each is rounded once, from its exact value.
    format : Format, name or dtype
    rounding, overflow, nan, rule, negative, seed, random, scale, zero_point, axis, threads
        As in `encode`.

    Returns
    -------
    Array (a `BlockArray` for block formats, whose blocks lie along `axis`)
        Of the shape of `x`.

    Raises
    ------
    ValueError
        For a string that is not a number, and as `encode` does.
    TypeError
        For objects that are not numbers.

    Examples
    --------
    >>> array(["1.5", "nan", "-0"], "float8_e4m3fn")
    Array([ 1.5,  nan, -0. ], shape=(3,), format=float8_e4m3fn)
    >>> array(2**70, "bfloat16").codes
    array(25216, dtype=uint16)
    """
    f = find_format(format)
    if isinstance(f, BlockFormat):
        from .blocks import block_array

        found: Any = block_array(
            x, f, rounding, overflow, nan, rule, axis=axis, scale=scale, threads=threads,
            negative=negative, seed=seed, random=random, zero_point=zero_point,
        )
        return found  # type: ignore[no-any-return]
    codes = encode(
        x if isinstance(x, Array) else as_input(x),
        f,
        rounding,
        overflow,
        nan,
        rule,
        threads=threads,
        negative=negative,
        seed=seed,
        random=random,
        scale=scale,
        zero_point=zero_point,
        axis=axis,
    )
    return Array._wrap(codes, f)


# --- helpers ----------------------------------------------------------------------------------------------------------


def _restore(codes: Plain, format: Format) -> Array:
    """Unpickle; the catalogue's own format object where it is that one."""
    try:
        known = find_format(format.name)
    except ValueError:
        known = format
    return Array._wrap(codes, known if known == format else format)


def _cast(found: Plain, dtype: np.dtype[Any]) -> Plain:
    """Convert values as NumPy does, but with one rounding where ml_dtypes would take two."""
    try:
        target = find_format(dtype)
    except ValueError:
        return found.astype(dtype)
    if dtype.kind in "biufc" or found.dtype.kind not in "biuf":
        with np.errstate(invalid="ignore" if dtype.kind in "fc" else None):  # signalling NaN
            return found.astype(dtype)
    return np.asarray(encode(found, target, overflow="infinity")).view(dtype)


def expect_array(a: Any, argument: str = "a") -> Array:
    """Return `a` if it is an Array, else raise `TypeError`."""
    if not isinstance(a, Array):
        raise TypeError(f"{argument} must be a bittrue.Array, not {type(a).__name__}; bittrue.array makes one")
    return a


def plain_values(other: Any) -> Plain | None:
    """Return numbers to compare with; None for what is none."""
    if isinstance(other, Array):
        return values(other.codes, other.format)
    found = as_input(other)
    if found.dtype.kind in "biufcO":
        return found
    try:
        find_format(found.dtype)
    except ValueError:
        return None
    return found.astype(np.float64)  # the small types of ml_dtypes and en_dtypes


def _index(key: Any) -> Any:
    return np.asarray(key) if isinstance(key, Array) else key


def rows_along(a: Plain, axis: Axis, keepdims: bool) -> tuple[Plain, tuple[int, ...]]:
    """Return `a` with the reduced axes last and flattened, (rows, n), and the shape of the result."""
    axes = tuple(range(a.ndim)) if axis is None else normalize_axis_tuple(axis, a.ndim)
    kept = [i for i in range(a.ndim) if i not in axes]
    shape = tuple(1 if i in axes else a.shape[i] for i in range(a.ndim) if keepdims or i not in axes)
    count, n = math.prod(a.shape[i] for i in kept), math.prod(a.shape[i] for i in axes)
    return a.transpose(*kept, *axes).reshape(count, n), shape
