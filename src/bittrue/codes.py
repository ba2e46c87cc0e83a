"""Arithmetic on codes themselves: their values, their order, their neighbours and signs; no shapes or conversions."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from .codec import decode
from .formats import BoolFormat, ComplexFormat, FloatFormat, Format, IntFormat, TaperedFormat, format

__all__ = ["ULP_NAN"]

Codes = np.ndarray[Any, Any]
Real = FloatFormat | TaperedFormat

#: What `ulp_distance` gives between a NaN and a number: the largest uint64.
ULP_NAN = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

_CHUNK = 1 << 15
_TABLE_BITS = 16  # formats up to this width order their codes by table
_ELSEWHERE = {"hifloat8": "hifloat8", "float4_e1m2fn": "float4_e1m2"}  # what only en_dtypes has


# --- values -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def value_dtype(f: Format) -> np.dtype[Any]:
    """Return the plainest NumPy dtype that holds every value of `f` exactly."""
    if isinstance(f, BoolFormat):
        return np.dtype(np.bool_)
    if isinstance(f, IntFormat):
        size = next(n for n in (1, 2, 4, 8) if 8 * n >= f.bits)
        return np.dtype(f"{'i' if f.signed else 'u'}{size}")
    if isinstance(f, ComplexFormat):
        return np.dtype(np.complex64 if value_dtype(f.part) == np.float32 else np.complex128)
    assert isinstance(f, (FloatFormat, TaperedFormat))
    single = format("float32")
    assert isinstance(single, FloatFormat)
    narrow = getattr(f, "mantissa_bits", 0) <= 23 and f.min_subnormal >= single.min_subnormal and f.max <= single.max
    return np.dtype(np.float32 if narrow else np.float64)


@lru_cache(maxsize=256)
def ecosystem_dtype(f: Format) -> np.dtype[Any] | None:
    """Return the dtype that NumPy, ml_dtypes or an installed en_dtypes has for `f`, or None."""
    try:
        if format(f.name) != f:
            return None
    except ValueError:
        return None
    for module, name in (("numpy", f.name), ("ml_dtypes", f.name), ("en_dtypes", _ELSEWHERE.get(f.name, ""))):
        try:
            found = getattr(import_module(module), name, None)
        except ImportError:
            continue
        if found is not None:
            return np.dtype(found)  # type: ignore[no-any-return]
    return None


def checked(codes: Any, f: Format) -> Codes:
    """Return codes as a native array of ``f.storage``; see `bittrue.Array` for what is accepted and raised."""
    found, own = np.asarray(codes), ecosystem_dtype(f)
    if not found.dtype.isnative:
        found = found.astype(found.dtype.newbyteorder("="))
    if found.size == 0 and isinstance(codes, (list, tuple)):
        return found.astype(f.storage)
    if own is not None and found.dtype == own != f.storage:
        found = found.view(f.code_dtype)
        if f.bits < 8:  # ml_dtypes leaves the other bits of the byte open
            found = found & np.uint8(_low(f.bits))
        return found.view(f.storage)
    if found.dtype in (f.storage, f.code_dtype):
        found = found.view(f.storage)
        if f.bits == 8 * f.storage.itemsize:
            return found
    elif found.dtype.kind not in "iu" or f.storage.kind in "fc":
        raise TypeError(f"codes have dtype {found.dtype}; {f.name} takes {f.storage} or {f.code_dtype}")
    if f.storage.kind == "i":
        low, high = int(np.iinfo(f.storage).min), int(np.iinfo(f.storage).max)
    else:
        low, high = 0, _low(f.bits)
    if found.size and not (low <= int(found.min()) and int(found.max()) <= high):
        bad = next(v for v in found.ravel().tolist() if not low <= v <= high)
        raise ValueError(f"codes: {bad:#x} is out of range for {f.name}: {low:#x} to {high:#x}")
    return found.astype(f.storage, copy=False)


def values(codes: Codes, f: Format) -> Codes:
    """Decode into `value_dtype`, exact; a view of the codes where they are values already."""
    dtype = value_dtype(f)
    if isinstance(f, BoolFormat):
        return np.asarray(codes != 0)
    own = ecosystem_dtype(f)
    if own is not None and own == dtype:
        return codes.view(dtype)
    return np.asarray(decode(codes, f, dtype))


def bit_patterns(codes: Codes, f: Format) -> Codes:
    """View codes as unsigned integers."""
    return codes.view(f.code_dtype)


def _real(f: Format, what: str) -> Format:
    if isinstance(f, ComplexFormat):
        raise TypeError(f"{what} is not defined for the complex format {f.name}; take .real and .imag")
    return f


# --- classes of values ------------------------------------------------------------------------------------------------


def is_nan(codes: Codes, f: Format) -> Codes:
    """Whether each code is a NaN (complex: either part)."""
    if isinstance(f, ComplexFormat):
        return np.isnan(values(codes, f))
    if not isinstance(f, (FloatFormat, TaperedFormat)) or f.nan_code is None:
        return np.zeros(codes.shape, np.bool_)
    test: Any = f.is_nan  # made for one code, and as good for an array of them
    return np.asarray(test(bit_patterns(codes, f)))


def is_inf(codes: Codes, f: Format) -> Codes:
    """Whether each code is an infinity (complex: either part)."""
    if isinstance(f, ComplexFormat):
        return np.isinf(values(codes, f))
    if not isinstance(f, (FloatFormat, TaperedFormat)) or f.inf_magnitude is None:
        return np.zeros(codes.shape, np.bool_)
    return np.asarray(bit_patterns(codes, f) & _low(f.magnitude_bits) == f.inf_magnitude)


def sign_bit(codes: Codes, f: Format) -> Codes:
    """Whether each value is negative; -0.0 is, and so is a NaN with the sign set where the format has two."""
    _real(f, "signbit")
    if not f.signed:
        return np.zeros(codes.shape, np.bool_)
    negative = np.asarray(bit_patterns(codes, f) >> (f.bits - 1) != 0)
    if isinstance(f, (FloatFormat, TaperedFormat)) and not f.nan_signed:
        negative &= ~is_nan(codes, f)
    return negative


def _low(bits: int) -> int:
    return (1 << bits) - 1


def _signless(codes: Codes, f: Real) -> Codes:
    """Where the sign bit of a code is no sign: NaN without a negative twin, zero without one."""
    patterns = bit_patterns(codes, f)
    fixed = np.zeros(codes.shape, np.bool_) if f.nan_signed else is_nan(codes, f)
    if not f.has_negative_zero:
        fixed |= patterns & _low(f.magnitude_bits) == 0
    return fixed


def negative(codes: Codes, f: Format) -> Codes:
    """Negate exactly; the lowest integer and unsigned integers wrap as in NumPy."""
    patterns = bit_patterns(codes, f)
    if isinstance(f, ComplexFormat):
        sign = 1 << f.part.magnitude_bits
        return np.asarray(patterns ^ f.code_dtype.type(sign | sign << f.part.bits)).view(f.storage)
    if isinstance(f, IntFormat):
        return np.asarray(-patterns & f.code_dtype.type(_low(f.bits))).view(f.storage)
    if not isinstance(f, (FloatFormat, TaperedFormat)) or not f.signed:
        raise TypeError(f"neg: the format {f.name} has no negative values")
    flipped = patterns ^ f.code_dtype.type(1 << f.magnitude_bits)
    return np.where(_signless(codes, f), patterns, flipped).view(f.storage)


def absolute(codes: Codes, f: Format) -> Codes:
    """Drop the sign exactly; the lowest integer stays itself as in NumPy."""
    _real(f, "abs")
    if isinstance(f, (FloatFormat, TaperedFormat)):
        positive = bit_patterns(codes, f) & f.code_dtype.type(_low(f.magnitude_bits))
        return np.where(_signless(codes, f), bit_patterns(codes, f), positive).view(f.storage)
    return np.where(sign_bit(codes, f), negative(codes, f), codes) if f.signed else codes.copy()


# --- order ------------------------------------------------------------------------------------------------------------


class Order(NamedTuple):
    """Codes of a format by value."""

    ranks: Codes  # of every code: equal values share one, NaN has the highest
    ranks_nan_first: Codes  # the same with NaN lowest
    codes: Codes  # the lowest code of each rank, NaN left out


@lru_cache(maxsize=64)
def order(f: Format) -> Order:
    """Return the order of the values of a real format up to 16 bits."""
    codes = np.arange(1 << f.bits, dtype=f.storage)
    numbers = np.asarray(decode(codes, f, np.float64))
    nan = np.isnan(numbers)
    distinct, first, rank = np.unique(numbers[~nan], return_index=True, return_inverse=True)
    ranks = np.full(codes.shape, distinct.size, np.int64)
    ranks[~nan] = rank
    nan_first = np.where(nan, 0, ranks + 1) if nan.any() else ranks
    return Order(ranks.astype(f.storage), nan_first.astype(f.storage), codes[~nan][first])


def _look_up(table: Codes, index: Codes) -> Codes:
    """Return ``table[index]``, in pieces: NumPy first widens the index to 64 bits, which should not leave the cache."""
    flat, out = index.reshape(-1), np.empty(index.size, table.dtype)
    for start in range(0, flat.size, _CHUNK):
        stop = start + _CHUNK
        np.take(table, flat[start:stop], mode="clip", out=out[start:stop])
    return out.reshape(index.shape)


def sort_keys(codes: Codes, f: Format, nan_first: bool = False) -> Codes:
    """Return numbers that NumPy's functions order as the values of `codes`; `nan_first` is for minima."""
    if f.bits > _TABLE_BITS:
        return values(codes, f)
    table = order(f)
    return _look_up(table.ranks_nan_first if nan_first else table.ranks, codes)


def _ranks(codes: Codes, f: Format) -> Codes:
    """Number the values in their order, zero's two codes alike; NaN gets a meaningless number."""
    if f.bits <= _TABLE_BITS:
        return _look_up(order(f).ranks, codes).astype(np.int32)
    if isinstance(f, IntFormat):
        return values(codes, f).astype(np.uint64 if f.bits == 64 and not f.signed else np.int64)
    assert isinstance(f, FloatFormat)  # in each half, codes go up with the magnitude
    magnitude = (bit_patterns(codes, f) & f.code_dtype.type(_low(f.magnitude_bits))).astype(np.int64)
    return np.asarray(np.where(sign_bit(codes, f), -magnitude, magnitude))


def _from_ranks(ranks: Codes, f: Format) -> Codes:
    """Return the codes with these numbers (+0 for zero)."""
    if f.bits <= _TABLE_BITS:
        return _look_up(order(f).codes, ranks)
    if isinstance(f, IntFormat):
        return np.asarray(ranks.view(np.uint64) & np.uint64(_low(f.bits))).astype(f.code_dtype).view(f.storage)
    assert isinstance(f, FloatFormat)
    sign = np.where(ranks < 0, np.uint64(1 << f.magnitude_bits), np.uint64(0))
    return (np.abs(ranks).astype(np.uint64) | sign).astype(f.code_dtype).view(f.storage)


def _limits(f: Format) -> tuple[int, int]:
    """Return the lowest and the highest rank."""
    if f.bits <= _TABLE_BITS:
        return 0, order(f).codes.size - 1
    if isinstance(f, IntFormat):
        return int(f.min), int(f.max)
    assert isinstance(f, FloatFormat)
    top = int(f.max_code if f.inf_magnitude is None else f.inf_magnitude)
    return -top if f.signed else 0, top


def step(codes: Codes, direction: Codes, f: Format) -> Codes:
    """Move each code to the next value: up where `direction` is 1, down where it is -1; elsewhere it stays.

    NaN stays NaN; the ends of the range stay. A step from a negative value onto zero gives -0 where there is one.
    """
    _real(f, "nextafter")
    if f.bits <= _TABLE_BITS:
        up, down = _neighbours(f)
        return np.where(direction == 1, _look_up(up, codes), np.where(direction == -1, _look_up(down, codes), codes))
    return np.where(direction == 1, _moved(codes, 1, f), np.where(direction == -1, _moved(codes, -1, f), codes))


@lru_cache(maxsize=64)
def _neighbours(f: Format) -> tuple[Codes, Codes]:
    """Return for every code the next one up and the next one down."""
    codes = np.arange(1 << f.bits, dtype=f.storage)
    return _moved(codes, 1, f), _moved(codes, -1, f)


def _moved(codes: Codes, way: int, f: Format) -> Codes:
    ranks, (low, high) = _ranks(codes, f), _limits(f)
    able = (ranks < high if way > 0 else ranks > low) & ~is_nan(codes, f)
    near = np.where(able, ranks, ranks.dtype.type(0 if low <= 0 else low))  # elsewhere any number with two neighbours
    near = near + able if way > 0 else near - able
    moved = _from_ranks(near, f)
    if isinstance(f, (FloatFormat, TaperedFormat)) and f.has_negative_zero:
        zero = (bit_patterns(moved, f) == 0) & sign_bit(codes, f)
        moved = np.where(zero, f.code_dtype.type(1 << f.magnitude_bits), bit_patterns(moved, f)).view(f.storage)
    return np.where(able, moved, codes)


def distance(a: Codes, b: Codes, f: Format) -> Codes:
    """Count the steps between values; see `bittrue.ulp_distance`."""
    _real(f, "ulp_distance")
    ra, rb = _ranks(a, f), _ranks(b, f)
    if f.bits <= _TABLE_BITS:
        steps = np.asarray(np.abs(np.subtract(ra, rb, dtype=np.int32))).astype(np.uint64)
    else:
        ua, ub = ra.astype(np.uint64), rb.astype(np.uint64)  # differences modulo 2**64 are exact
        steps = np.where(ra >= rb, ua - ub, ub - ua)
    if f.has_nan:
        na, nb = is_nan(a, f), is_nan(b, f)
        steps[na != nb] = ULP_NAN
        steps[na & nb] = 0
    return steps


# --- comparison of values ---------------------------------------------------------------------------------------------

UNORDERED = 2


def compare_values(x: Codes, y: Codes) -> Codes:
    """Return -1, 0 or 1 for x < y, x == y and x > y, and `UNORDERED` beside NaN; exact between any real dtypes."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is as good as a quiet one
        less, more, equal = (np.asarray(test(x, y)) for test in (np.less, np.greater, np.equal))
    result = np.subtract(more, less, dtype=np.int8)
    result = np.where(less | more | equal, result, np.int8(UNORDERED))
    if {x.dtype.kind, y.dtype.kind} in ({"i", "f"}, {"u", "f"}):
        _break_ties(result, x, y)
    return result


def _break_ties(result: Codes, x: Codes, y: Codes) -> None:
    """NumPy compares integers with floats as floats: large ones that seem equal are compared as integers."""
    if max(v.dtype.itemsize for v in (x, y) if v.dtype.kind != "f") < 8:
        return
    tied = (result == 0) & (np.abs(x if x.dtype.kind == "f" else y) >= 2.0**53)
    left, right = (np.broadcast_to(v, result.shape)[tied].tolist() for v in (x, y))
    result[tied] = [(int(a) > int(b)) - (int(a) < int(b)) for a, b in zip(left, right)]
