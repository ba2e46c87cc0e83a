"""Matrix products as accumulators make them: exact in integers, in float32 in a stated order; no vendor, no format."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .rounding import Overflow, member, suggestion

__all__ = ["ORDERS", "error_bound", "integer", "ordered"]

Plain = np.ndarray[Any, Any]

#: Orders in which `ordered` adds.
ORDERS = ("sequential", "blocked", "pairwise", "float64")

_EXACT32, _EXACT64 = 1 << 24, 1 << 53  # integers up to here, and hence partial sums, are exact in a float
_WORTH = 256  # products per block from which float32 in blocks beats float64 at once
_LARGEST = 2.0**128 - 2.0**104


def integer(
    a: ArrayLike,
    b: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    bits: int = 32,
    overflow: Overflow | str = "raise",
) -> Plain:
    """Multiply integer matrices exactly, in a signed accumulator.

    Parameters
    ----------
    a, b : array_like of integers, shapes [..., m, k] and [..., k, n]
        Leading axes broadcast, as in `numpy.matmul`.
    bias : array_like of integers, optional
        Where the accumulators start; broadcast to the result, as [n] is.
    bits : int
        Width of an accumulator, 2 to 64.
    overflow : {"raise", "wrap", "saturate"}
        What becomes of a sum beyond it. "wrap" keeps the low bits, whatever the order of addition; "saturate" clamps
        the exact sum, as only an accumulator with spare bits does.

    Returns
    -------
    ndarray of int32, above 32 bits of int64

    Raises
    ------
    OverflowError
        A sum beyond the accumulator under "raise".

    Notes
    -----
    The work is done by float matrix products over blocks of k so short that every partial sum is exact:
    up to 2**24 in float32, up to 2**53 in float64. Their order does not matter; they are as fast as the host's BLAS.

    Examples
    --------
    >>> integer(np.int8([[100, -128]]), np.int8([[127], [-128]]), bias=[1])
    array([[29085]], dtype=int32)
    """
    x, y = _operands(a, b, "iub", "integers")
    rule = member(Overflow, overflow, "overflow")
    if rule not in (Overflow.raise_, Overflow.wrap, Overflow.saturate):
        raise ValueError(f"overflow={rule.value!r} has no meaning for an accumulator (raise, wrap, saturate)")
    if isinstance(bits, bool) or not isinstance(bits, (int, np.integer)) or not 2 <= bits <= 64:
        raise ValueError(f"bits={bits!r} must be from 2 to 64")
    dtype = np.dtype(np.int32 if bits <= 32 else np.int64)
    limit = 1 << (int(bits) - 1)
    bound, total = _exact(x, y)
    if bias is not None:
        start = np.asarray(bias)
        if start.dtype.kind not in "iub":
            raise TypeError(f"bias has dtype {start.dtype}; integers are needed")
        bound += _largest(start)
        if bound < 1 << 63:
            total = _whole(total) + start.astype(np.int64)
        else:
            total = _objects(total) + start.astype(object)
    if bound < limit:
        return total.astype(dtype)
    total = _whole(total) if bound < 1 << 63 else _objects(total)
    if rule is Overflow.saturate:
        return np.asarray(np.minimum(np.maximum(total, -limit), limit - 1)).astype(dtype)
    beyond = (total < -limit) | (total >= limit)
    if rule is Overflow.raise_ and beyond.any():
        where = tuple(int(i) for i in np.argwhere(beyond)[0])
        raise OverflowError(
            f"accumulator {list(where)} is {int(total[where])}, beyond {bits} bits; "
            "overflow='wrap' or 'saturate' says what to do"
        )
    if total.dtype == object or bits not in (32, 64):
        total = ((_objects(total) + limit) % (2 * limit)) - limit
    return total.astype(dtype)


def ordered(
    a: ArrayLike,
    b: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    order: str = "sequential",
    block: int = 16,
    threads: int | None = None,
) -> Plain:
    """Multiply matrices in float32 accumulators, adding in a stated order.

    Parameters
    ----------
    a, b : array_like of shapes [m, k] and [k, n]
        Values that float32 holds. Each product is rounded to float32, which products of two float16, or of two 8-bit
        floats, do not need.
    bias : array_like, optional
        Where the accumulators start, float32; broadcast to [m, n], as [n] is.
    order : {"sequential", "blocked", "pairwise", "float64"}
        "sequential": product by product, from k = 0 up. "blocked": `block` products one after the other from the first
        of them, then their sum to the accumulator. "pairwise": neighbouring products, then neighbouring sums, at last
        to the bias. "float64": product by product in float64, rounded to float32 once, at the end.
    block : int
        Products in a block.
    threads : int, optional
        As in `bittrue.encode`; the result never depends on it.

    Returns
    -------
    ndarray of float32, shape [m, n]

    Examples
    --------
    >>> a, b = np.float32([[1, 2**-24, 2**-24, -1]]), np.ones((4, 1), np.float32)
    >>> [float(ordered(a, b, order=order)[0, 0]) * 2**24 for order in ORDERS]
    [0.0, 0.0, 1.0, 2.0]
    """
    x, y = _operands(a, b, "f", "floats")
    if x.ndim != 2 or y.ndim != 2:
        raise ValueError(f"a and b have shapes {x.shape} and {y.shape}; matrices [m, k] and [k, n] are needed")
    _checked_order(order, block)
    kind = np.dtype(np.float64 if order == "float64" else np.float32)
    x, y = (np.ascontiguousarray(v, kind) for v in (x, y))
    total = np.zeros((x.shape[0], y.shape[1]), kind)
    if bias is not None:
        total[...] = _start(bias)
    if total.size and x.shape[1]:
        from .chunks import in_chunks
        from .kernels import matmul as kernels

        def work(lo: int, hi: int) -> int:
            if order == "blocked":
                kernels.blocked(x[lo:hi], y, total[lo:hi], int(block))
            elif order == "pairwise":
                kernels.pairwise(x[lo:hi], y, total[lo:hi])
            else:
                kernels.sequential(x[lo:hi], y, total[lo:hi])
            return 0

        in_chunks(work, len(x), threads, y.size)
    with np.errstate(over="ignore", under="ignore"):
        return total.astype(np.float32, copy=False)


def error_bound(
    a: ArrayLike, b: ArrayLike, bias: ArrayLike | None = None, *, order: str = "sequential", block: int = 16
) -> Plain:
    """Bound how far `ordered` can be from the exact sums.

    Returns
    -------
    ndarray of float64, shape [m, n]
        At most so large is ``|ordered(a, b, bias) - exact|``; Inf where float32 may have overflowed, or where operands
        are not finite.

    Notes
    -----
    A sum in which no term passes more than r roundings of unit roundoff u = 2**-24 is off by at most r*u / (1 - r*u)
    times the sum of the magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, chapters 3 and 4), plus
    what products lose by underflow.

    Examples
    --------
    >>> bool(error_bound(np.ones((1, 4)), np.ones((4, 1)))[0, 0] < 2e-6)
    True
    """
    x, y = (np.abs(v.astype(np.float64)) for v in _operands(a, b, "f", "floats"))
    _checked_order(order, block)
    count = x.shape[-1]
    with np.errstate(all="ignore"):
        magnitude = np.matmul(x, y)
        if bias is not None:
            magnitude = magnitude + np.abs(_start(bias).astype(np.float64))
        magnitude = magnitude * (1 + 4 * (count + 2) * 2.0**-53)  # what this sum itself may have lost
        steps = {
            "sequential": count + 1,
            "blocked": 1 + min(block, count) + -(-count // block),
            "pairwise": 2 + max(count - 1, 0).bit_length(),
            "float64": 1,
        }[order]
        share = steps * 2.0**-24 / (1 - steps * 2.0**-24) if steps < 1 << 23 else np.inf
        if order == "float64":
            share = (1 + 2.0**-24) * (1 + (count + 2) * 2.0**-52) - 1
        bound = share * magnitude + (count + 1) * 2.0**-149
        safe = np.isfinite(magnitude) & (magnitude + bound < _LARGEST)
    return np.where(safe, bound, np.inf)


# --- arguments --------------------------------------------------------------------------------------------------------


def _operands(a: Any, b: Any, kinds: str, what: str) -> tuple[Plain, Plain]:
    x, y = np.asarray(a), np.asarray(b)
    for name, v in (("a", x), ("b", y)):
        if v.dtype.kind not in kinds:
            raise TypeError(f"{name} has dtype {v.dtype}; {what} are needed")
        if v.ndim < 2:
            raise ValueError(f"{name} has shape {v.shape}; a matrix is needed")
    if x.shape[-1] != y.shape[-2]:
        raise ValueError(f"a has shape {x.shape} and b {y.shape}; the columns of a must be as many as the rows of b")
    return x, y


def _checked_order(order: str, block: int) -> None:
    if order not in ORDERS:
        close = suggestion(order, ORDERS) if isinstance(order, str) else ""
        raise ValueError(f"order={order!r} is not an order of accumulation{close} ({', '.join(ORDERS)})")
    if isinstance(block, bool) or not isinstance(block, (int, np.integer)) or block < 1:
        raise ValueError(f"block={block!r} must be a positive integer")


def _start(bias: Any) -> Plain:
    start = np.asarray(bias)
    if start.dtype.kind != "f":
        raise TypeError(f"bias has dtype {start.dtype}; floats are needed")
    return start.astype(np.float32)


# --- exact integers ---------------------------------------------------------------------------------------------------


def _largest(x: Plain) -> int:
    return max(abs(int(x.min())), abs(int(x.max()))) if x.size else 0


def _whole(total: Plain) -> Plain:
    return np.asarray(total if total.dtype == np.int64 else total.astype(np.int64))


def _objects(total: Plain) -> Plain:
    return np.asarray(total if total.dtype == object else _whole(total).astype(object))


def _exact(x: Plain, y: Plain) -> tuple[int, Plain]:
    """Return a bound on the magnitude of every sum, and the sums: exact, in whatever type was fastest."""
    count = x.shape[-1]
    product = _largest(x) * _largest(y)
    bound = product * count
    if bound <= _EXACT32:
        return bound, np.matmul(x.astype(np.float32), y.astype(np.float32))
    if product * _WORTH <= _EXACT32 and bound < 1 << 63:
        return bound, _in_blocks(x, y, np.float32, _EXACT32 // product)
    if product * 16 <= _EXACT64 and bound < 1 << 63:
        return bound, _in_blocks(x, y, np.float64, _EXACT64 // product)
    dtype: Any = np.int64 if bound < 1 << 63 else object
    return bound, np.matmul(x.astype(dtype), y.astype(dtype))


def _in_blocks(x: Plain, y: Plain, dtype: Any, block: int) -> Plain:
    """Multiply over blocks of so many k that partial sums are exact in `dtype`, and add the blocks in int64."""
    x, y = x.astype(dtype), y.astype(dtype)
    total: Any = None
    for start in range(0, x.shape[-1], block):
        part = np.matmul(x[..., start : start + block], y[..., start : start + block, :]).astype(np.int64)
        total = part if total is None else np.add(total, part, out=total)
    return np.asarray(total)
