"""How an accumulator adds: its type, its order, its overflow; on rows of values, without codes or shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from . import exact
from .codec import quantize
from .codes import value_dtype, values
from .formats import BoolFormat, ComplexFormat, FloatFormat, Format, IntFormat, Value, format
from .rounding import Overflow, Rule, member, suggestion

__all__ = ["Accumulator"]

Values = np.ndarray[Any, Any]

_ORDERS = ("pairwise", "sequential")
_CHUNK = 1 << 16
_NARROW = 25  # significand bits whose sums and products float64 rounds without harm before the final rounding
_IEEE = Rule(overflow=Overflow.infinity)


@dataclass(frozen=True)
class Accumulator:
    """How numbers are added up.

    Attributes
    ----------
    format : Format or None
        Float: every element or product, and every partial sum, is rounded to it. Integer: elements and products are
        exact, partial sums are limited to it. None: nothing is rounded.
    order : {"pairwise", "sequential"}
        "pairwise": neighbours are added, then neighbouring sums, as a balanced tree; the last one of an odd number
        moves up unchanged. "sequential": from the first element to the last, integers starting from 0.
    overflow : Overflow
        What an integer accumulator does; floats become infinite (NaN where the format has no Inf).
    """

    format: Format | None
    order: str
    overflow: Overflow

    @np.errstate(all="ignore")
    def sum_rows(self, x: Values) -> Values:
        """Add up the last axis of (rows, n) values.

        Returns
        -------
        ndarray of shape (rows,)
            The dtype that holds the accumulator's values; for the exact accumulator Python objects, exact values.
        """
        if self.format is None:
            return _objects([_exact_sum(row) for row in x])
        if isinstance(self.format, IntFormat):
            return _sum_integers(x, self.format, self)
        if self.format.name in ("float32", "float64"):
            x = x.astype(self.format.storage)
            if self.order == "sequential":
                return _running(x)
            return _tree(x, np.add, 0)
        target = self.format
        x = _rounded(x, target)
        return _fold(x, lambda a, b: _rounded(a + b, target), self, 0.0).astype(value_dtype(target))

    @np.errstate(all="ignore")
    def multiply(self, x: Values, y: Values) -> Values:
        """Multiply for `sum_rows`: rounded once to a float accumulator, exact for the other kinds."""
        if self.format is not None and not isinstance(self.format, IntFormat):
            if self.format.name in ("float32", "float64"):
                return np.asarray(x.astype(self.format.storage) * y.astype(self.format.storage))
            return _rounded(_rounded(x, self.format) * _rounded(y, self.format), self.format)
        if x.dtype.kind in "biu" and y.dtype.kind in "biu":
            dtype: Any = np.int64 if _largest(x) * _largest(y) < 1 << 63 else object
            return np.asarray(x.astype(dtype) * y.astype(dtype))
        if _is_narrow(x) and _is_narrow(y):
            return np.asarray(x.astype(np.float64) * y.astype(np.float64))  # at most 48 significand bits: exact
        pairs = zip(*(v.ravel().tolist() for v in np.broadcast_arrays(x, y)))
        return _objects([_product(a, b) for a, b in pairs]).reshape(np.broadcast_shapes(x.shape, y.shape))

    @np.errstate(all="ignore")
    def matmul(self, x: Values, y: Values, start: Values | None = None) -> Values:
        """Multiply matrices in a float accumulator: sums as `sum_rows` makes them, of products as in `multiply`.

        Parameters
        ----------
        x, y : ndarray of floats, shapes [m, k] and [k, n]
        start : ndarray, optional
            Shape [n] or [m, n]; default zeros. "sequential" sums begin with it, to "pairwise" sums it is added last.

        Returns
        -------
        ndarray of shape [m, n]

        Examples
        --------
        >>> narrow = accumulator("float16", [format("float16")] * 2, "sequential", "saturate")
        >>> narrow.matmul(np.full((1, 3), 2048.0), np.float64([[1], [0.00048828125], [0.5]])).tolist()
        [[3072.0]]
        """
        target = self.format
        assert target is not None and not isinstance(target, IntFormat)
        plain = target.name in ("float32", "float64")
        dtype = target.storage if plain else np.dtype(np.float64)

        def rounded(values: Values) -> Values:
            return values.astype(dtype, copy=False) if plain else _rounded(values, target)

        x, y = rounded(x), rounded(y)
        begin = np.broadcast_to(rounded(np.zeros(1) if start is None else start), (x.shape[0], y.shape[1]))
        result = np.empty(begin.shape, dtype)
        rows = max(_CHUNK // max(y.shape[1], 1), 1)  # all numbers at work stay in the cache
        for top in range(0, len(x), rows):
            part = slice(top, top + rows)
            products = (rounded(x[part, k, None] * y[None, k, :]) for k in range(x.shape[1]))
            result[part] = self._add_up(products, begin[part], lambda a, b: rounded(a + b))
        return result.astype(value_dtype(target), copy=False)

    def _add_up(self, terms: Iterable[Values], start: Values, add: Callable[[Values, Values], Values]) -> Values:
        if self.order == "sequential":
            for term in terms:
                start = add(start, term)
            return start
        waiting: list[tuple[int, Values]] = []  # sums of finished groups of 2**level terms, the earliest first
        for term in terms:
            level = 0
            while waiting and waiting[-1][0] == level:
                term = add(waiting.pop()[1], term)
                level += 1
            waiting.append((level, term))
        total: Values | None = None
        for _, group in reversed(waiting):
            total = group if total is None else add(group, total)
        return start if total is None else add(start, total)

    @np.errstate(all="ignore")
    def divide(self, totals: Values, count: int) -> Values:
        """Divide the results of `sum_rows` by `count`, rounding once to the accumulator's type (integers: float64)."""
        if self.format is None:
            return _objects([_over(total, count) for total in totals.tolist()])
        if isinstance(self.format, IntFormat):
            return np.array([total / count if count else math.nan for total in totals.tolist()], np.float64)
        if totals.dtype == np.float64 or (self.format.name == "float32" and count <= 1 << 24):
            return np.asarray(totals / totals.dtype.type(count))
        quotients = _objects([_over(total, count) for total in totals.tolist()])
        return values(codes_from_exact(quotients, self.format, _IEEE), self.format)


def accumulator(accumulate: object, elements: Sequence[Format], order: str, overflow: object) -> Accumulator:
    """Check the arguments of a reduction of elements (or products of elements) of these formats."""
    if order not in _ORDERS:
        names = ", ".join(_ORDERS)
        raise ValueError(f"order={order!r} is not an order of summation{suggestion(order, _ORDERS)} ({names})")
    rule = member(Overflow, overflow, "overflow")
    if rule not in (Overflow.saturate, Overflow.wrap, Overflow.raise_):
        raise ValueError(f"overflow={rule.value!r} has no meaning for an accumulator (saturate, wrap, raise)")
    if isinstance(accumulate, str) and accumulate.lower() == "exact":
        return Accumulator(None, order, rule)
    kind = format(accumulate) if accumulate is not None else default_accumulator(elements)
    integers = all(isinstance(f, (IntFormat, BoolFormat)) for f in elements)
    if isinstance(kind, (ComplexFormat, BoolFormat)) or (isinstance(kind, IntFormat) and not integers):
        allowed = "a real number format" if integers else "a float format"
        shown = " and ".join(dict.fromkeys(f.name for f in elements))
        raise TypeError(f"accumulate={kind.name!r} cannot add up {shown}; take {allowed} or 'exact'")
    if isinstance(kind, FloatFormat) and kind.mantissa_bits >= _NARROW and kind.name != "float64":
        raise TypeError(f"accumulate={kind.name!r} is not supported: it has more than {_NARROW} significand bits")
    return Accumulator(kind, order, rule)


def default_accumulator(elements: Sequence[Format]) -> Format:
    """Return the accumulator that is taken if none is named.

    float32, or float64 where float32 does not hold the elements; for integers int32 up to 16 bits, then int64
    (unsigned 64-bit elements: uint64).
    """
    parts = [f.part if isinstance(f, ComplexFormat) else f for f in elements]
    if all(isinstance(f, (IntFormat, BoolFormat)) for f in parts):
        if all(value_dtype(f) == np.uint64 for f in parts):
            return format("uint64")
        return format("int32" if all(f.bits <= 16 for f in parts) else "int64")
    return format("float64" if any(value_dtype(f) == np.float64 for f in parts) else "float32")


def exact_target(elements: Sequence[Format], mean: bool) -> tuple[Format, Rule]:
    """Return what an exact result is rounded to if nothing is named: the default accumulator, float64 for a mean of
    integers; sums of integers beyond 64 bits raise.
    """
    default = default_accumulator(elements)
    if isinstance(default, IntFormat) and not mean:
        return format("int64" if default.signed else "uint64"), Rule(overflow=Overflow.raise_)
    return format("float64") if isinstance(default, IntFormat) else default, _IEEE


def codes_from_exact(numbers: Values, target: Format, rule: Rule) -> Values:
    """Round exact values to a format, once, and return the codes."""
    codes = [exact.encode(number, target, rule, source="float64") for number in numbers.ravel().tolist()]
    return np.array(codes, target.code_dtype).view(target.storage).reshape(numbers.shape)


def _objects(items: list[Any]) -> Values:
    """Make an object array of numbers, as they are."""
    out = np.empty(len(items), object)
    out[:] = items
    return out


# --- floats -----------------------------------------------------------------------------------------------------------


def _rounded(x: Values, target: Format) -> Values:
    """Round to the values of a narrow format; they come as float64."""
    return np.asarray(quantize(x, target, rule=_IEEE)).astype(np.float64)


def _running(x: Values) -> Values:
    """Add from first to last in the dtype of `x`."""
    total = x[:, 0].copy() if x.shape[1] else np.zeros(len(x), x.dtype)
    for start in range(1, x.shape[1], _CHUNK):
        part = np.concatenate([total[:, None], x[:, start : start + _CHUNK]], axis=1)
        total = np.add.accumulate(part, axis=1)[:, -1]
    return total


def _tree(x: Values, add: Callable[[Values, Values], Values], zero: Any) -> Values:
    """Add neighbours until one is left."""
    if x.shape[1] == 0:
        return np.full(len(x), zero, x.dtype)
    while x.shape[1] > 1:
        even = x.shape[1] // 2 * 2
        last = x[:, even:]
        x = add(x[:, 0:even:2], x[:, 1:even:2])
        if last.shape[1]:
            x = np.concatenate([x, last], axis=1)
    return x[:, 0]


def _fold(x: Values, add: Callable[[Values, Values], Values], how: Accumulator, zero: Any) -> Values:
    """Add with any `add`, in either order."""
    if how.order == "pairwise" or x.shape[1] == 0:
        return _tree(x, add, zero)
    total = x[:, 0]
    for k in range(1, x.shape[1]):
        total = add(total, x[:, k])
    return total


# --- integers ---------------------------------------------------------------------------------------------------------


def _largest(x: Values) -> int:
    return max(abs(int(x.min())), abs(int(x.max()))) if x.size else 0


def _sum_integers(x: Values, target: IntFormat, how: Accumulator) -> Values:
    dtype, low, high = value_dtype(target), int(target.min), int(target.max)
    if how.overflow is Overflow.wrap:
        return _wrapped(x, target).astype(dtype)
    if not x.size:
        return np.zeros(len(x), dtype)
    if low <= x.shape[1] * min(int(x.min()), 0) and x.shape[1] * max(int(x.max()), 0) <= high:  # in whatever order
        return np.asarray(x.sum(axis=1, dtype=dtype))
    if how.order == "sequential" and len(x) <= 16:  # long rows: faster in Python than in NumPy, one step at a time
        return np.array([_sum_row(row, low, high, how) for row in x.tolist()], object).astype(dtype)
    small = max(_largest(x), -low, high) < 1 << 61
    x = x.astype(np.int64 if small else object)

    def limited(total: Values) -> Values:
        if how.overflow is Overflow.raise_ and ((total < low) | (total > high)).any():
            raise _beyond(low, high)
        return np.asarray(np.minimum(np.maximum(total, low), high))

    if how.order == "sequential":  # from 0, whose first addition limits too
        x = np.concatenate([np.zeros((len(x), 1), x.dtype), x], axis=1)
    return limited(_fold(x, lambda a, b: limited(a + b), how, 0)).astype(dtype)


def _sum_row(row: list[int], low: int, high: int, how: Accumulator) -> int:
    total = 0
    for number in row:
        total += number
        if not low <= total <= high:
            if how.overflow is Overflow.raise_:
                raise _beyond(low, high)
            total = low if total < low else high
    return total


def _beyond(low: int, high: int) -> OverflowError:
    return OverflowError(f"a partial sum is beyond the accumulator's range of {low} to {high} (overflow='raise')")


def _wrapped(x: Values, target: IntFormat) -> Values:
    """Sum modulo 2**bits; the order does not matter."""
    if x.dtype == object:
        total = np.array([sum(row) & (1 << 64) - 1 for row in x.tolist()], np.uint64)
    else:
        total = x.astype(np.uint64).sum(axis=1, dtype=np.uint64)
    spare = np.uint64(64 - target.bits)
    lifted = total << spare
    return np.asarray(lifted.view(np.int64) >> np.int64(spare) if target.signed else lifted >> spare)


# --- exact ------------------------------------------------------------------------------------------------------------


def _exact_sum(row: Values) -> Value | int:
    """Return the exact sum; of -0.0 only, -0.0."""
    if row.dtype.kind in "biu":
        return int(row.sum()) if _largest(row) * row.size < 1 << 63 else sum(row.tolist())
    if row.dtype == object:
        return _exact_sum_of_objects(row.tolist())
    numbers = row.astype(np.float64)
    if not np.isfinite(numbers).all():
        return float(numbers[~np.isfinite(numbers)].sum())
    if numbers.size and (numbers == 0).all() and np.signbit(numbers).all():
        return -0.0
    fraction, exponent = np.frexp(numbers)
    order = np.argsort(exponent, kind="stable")
    significand = np.ldexp(fraction, 53).astype(np.int64)[order]
    binades, first = np.unique(exponent[order], return_index=True)
    if not binades.size:
        return Fraction(0)
    high = np.add.reduceat(significand >> 26, first).tolist()  # in two halves, which cannot overflow int64
    low = np.add.reduceat(significand & ((1 << 26) - 1), first).tolist()
    base = int(binades[0])
    total = sum(((h << 26) + lo) << (int(b) - base) for h, lo, b in zip(high, low, binades))
    return Fraction(total) * Fraction(2) ** (base - 53)


def _exact_sum_of_objects(row: list[Any]) -> Value | int:
    special = [v for v in row if isinstance(v, float) and not math.isfinite(v)]
    if special:
        return math.nan if len(set(special)) > 1 else special[0]
    if row and all(isinstance(v, float) and math.copysign(1, v) < 0 for v in row):  # the only finite float is -0.0
        return -0.0
    return sum(Fraction(v) for v in row)


def _is_narrow(x: Values) -> bool:
    return x.dtype == np.float32 or (x.dtype.kind in "biu" and x.dtype.itemsize <= 2)


def _product(a: float, b: float) -> Value:
    """Multiply exactly; a product of zero keeps its sign."""
    if a and b and math.isfinite(a) and math.isfinite(b):
        return Fraction(a) * Fraction(b)
    product = float(a) * float(b)
    return Fraction(0) if product == 0 and math.copysign(1, product) > 0 else product


def _over(total: Any, count: int) -> Value:
    if not count:
        return math.nan
    if isinstance(total, float) and (total == 0 or not math.isfinite(total)):
        return total
    return Fraction(total) / count
