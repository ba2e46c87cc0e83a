"""Matrix products: integers against Python's, float orders against one addition at a time, bounds against Fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bittrue.matmul import ORDERS, error_bound, integer, ordered


def exact_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.matmul(a.astype(object), b.astype(object))


def extremes(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Random integers of which half are the dtype's limits."""
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return np.where(rng.integers(0, 4, shape) < 2, np.where(x < 0, info.min, info.max), x).astype(dtype)


# --- integers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [("i1", "i1"), ("u1", "i1"), ("u1", "u1"), ("i2", "i1"), ("i2", "i2"), ("u2", "u2"), ("i4", "i1"), ("i4", "i2"),
     ("i4", "i4"), ("u4", "u4"), ("i8", "i8"), ("u8", "i1")],
)  # fmt: skip
@pytest.mark.parametrize("k", [0, 1, 7, 1024, 1025, 5000])
def test_integers_are_exact(left: str, right: str, k: int) -> None:
    """Widths and lengths on either side of 2**24, 2**53 and 2**63."""
    rng = np.random.default_rng(k)
    a, b = extremes(rng, left, (2, k)), extremes(rng, right, (k, 3))
    want = exact_product(a, b) if k else np.zeros((2, 3), object)
    wrapped = integer(a, b, bits=64, overflow="wrap")
    assert wrapped.dtype == np.int64
    assert wrapped.tolist() == ((want + 2**63) % 2**64 - 2**63).tolist()
    for bits in (20, 32, 48, 64):
        half = 1 << (bits - 1)
        assert integer(a, b, bits=bits, overflow="wrap").tolist() == ((want + half) % (2 * half) - half).tolist()
        clamped = np.minimum(np.maximum(want, -half), half - 1).tolist()
        assert integer(a, b, bits=bits, overflow="saturate").tolist() == clamped
        if ((want < -half) | (want >= half)).any():
            with pytest.raises(OverflowError, match=rf"^accumulator \[\d, \d\] is -?\d+, beyond {bits} bits"):
                integer(a, b, bits=bits)
        else:
            found = integer(a, b, bits=bits)
            assert found.tolist() == want.tolist() and found.dtype == (np.int32 if bits <= 32 else np.int64)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_partial_sums(sign: int) -> None:
    """Sums that reach 2**24 exactly, one product beyond it, and odd ones there, which float32 could not hold."""
    for k in (1023, 1024, 1025, 2049, 131071, 131072):
        a = np.full((1, k), -128, np.int8)
        b = np.full((k, 1), -128 * sign if sign > 0 else 127, np.int8)
        a[0, -1] = 1
        want = int(exact_product(a, b)[0, 0])
        assert integer(a, b, bits=40)[0, 0] == want
        assert integer(a, b, bits=40, bias=[1])[0, 0] == want + 1


def test_bias_and_stacks() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (5, 1, 4, 9), np.int8), rng.integers(-128, 128, (3, 9, 6), np.int8)
    bias = rng.integers(-(2**30), 2**30, 6)
    want = np.matmul(a.astype(np.int64), b.astype(np.int64)) + bias
    assert np.array_equal(integer(a, b, bias), want) and want.shape == (5, 3, 4, 6)
    top = [[2**31 - 1]]
    assert integer([[0]], [[0]], top).tolist() == top
    with pytest.raises(OverflowError, match=r"^accumulator \[0, 0\] is 2147483648, beyond 32 bits"):
        integer([[1]], [[1]], top)
    assert integer([[1]], [[1]], top, overflow="wrap").tolist() == [[-(2**31)]]
    assert integer([[1]], [[1]], [2**64 - 1], bits=64, overflow="saturate").tolist() == [[2**63 - 1]]
    assert integer(np.array([[True]]), np.int8([[-3]])).tolist() == [[-3]]


def test_large_product_of_int8() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-128, 128, (130, 700), np.int8), rng.integers(-128, 128, (700, 90), np.int8)
    assert np.array_equal(integer(a, b), np.matmul(a.astype(np.int64), b.astype(np.int64)))


# --- float orders -----------------------------------------------------------------------------------------------------

F = np.float32


def one_by_one(p: list[np.float32], start: np.float32, order: str, block: int) -> np.float32:
    """Add rounded products, one float32 addition at a time."""
    if order == "sequential":
        for v in p:
            start = F(start + v)
        return start
    if order == "blocked":
        for i in range(0, len(p), block):
            group = p[i]
            for v in p[i + 1 : i + block]:
                group = F(group + v)
            start = F(start + group)
        return start
    while len(p) > 1:
        p = [F(p[i] + p[i + 1]) if i + 1 < len(p) else p[i] for i in range(0, len(p), 2)]
    return F(start + p[0]) if p else start


def operands(k: int, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(k)
    a, b = rng.standard_normal((3, k)), rng.standard_normal((k, 19))
    a, b = a * 2.0 ** rng.integers(-9, 9, a.shape), b * 2.0 ** rng.integers(-9, 9, b.shape)
    dtype = np.float16 if kind == "half" else np.float32
    return a.astype(dtype).astype(F), b.astype(dtype).astype(F), rng.standard_normal(19).astype(F)


@pytest.mark.parametrize("kind", ["half", "float"])
@pytest.mark.parametrize("k", [0, 1, 2, 3, 5, 6, 7, 15, 16, 17, 31, 33, 100])
def test_orders_add_as_they_say(k: int, kind: str) -> None:
    a, b, bias = operands(k, kind)
    for order in ("sequential", "blocked", "pairwise"):
        for start, block in ((None, 16), (bias, 16), (bias, 1), (bias, 5)):
            found = ordered(a, b, start, order=order, block=block)
            assert found.dtype == F and found.shape == (3, 19)
            for i in range(3):
                for j in range(0, 19, 4):
                    products = [F(x * y) for x, y in zip(a[i], b[:, j])]
                    want = one_by_one(products, F(0) if start is None else start[j], order, block)
                    assert found[i, j] == want, (order, block, i, j)
    total = np.zeros((3, 19)) + bias
    for i in range(k):
        total = total + a[:, i : i + 1].astype(float) * b[i]
    assert np.array_equal(ordered(a, b, bias, order="float64"), total.astype(F))


def test_products_and_sums_are_not_fused() -> None:
    """With a fused multiply-add the rest of the product would stay."""
    x = F(1 + 2.0**-12)
    a, b = np.array([[-1, x]], F), np.array([[F(x * x)], [x]], F)
    assert F(x * x) != Fraction(float(x)) ** 2
    for order in ("sequential", "blocked", "pairwise"):
        assert ordered(a, b, order=order)[0, 0] == 0
    assert ordered(a, b, order="float64")[0, 0] == float(Fraction(float(x)) ** 2 - Fraction(float(F(x * x))))


def test_threads_do_not_matter() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((67, 300)).astype(F), rng.standard_normal((300, 41)).astype(F)
    for order in ORDERS:
        one = ordered(a, b, order=order, threads=1)
        for threads in (2, 3, 100, None):
            assert np.array_equal(ordered(a, b, order=order, threads=threads), one)
        assert np.array_equal(ordered(a.T.copy().T, b[:, ::-1], order=order), one[:, ::-1])


def test_infinities_and_nan_pass_through() -> None:
    a = np.array([[np.inf, 1], [np.nan, 1], [0, 1], [3e38, 3e38]], F)
    b = np.array([[1], [2]], F)
    for order in ORDERS:
        found = ordered(a, b, order=order)[:, 0]
        assert np.array_equal(found, np.array([np.inf, np.nan, 2, np.inf], F), equal_nan=True)


@pytest.mark.parametrize("k", [1, 2, 16, 33, 257])
@pytest.mark.parametrize("scale", [1.0, 1e-22])
def test_bounds_hold(k: int, scale: float) -> None:
    a, b, bias = operands(k, "float")
    a, bias = (a * F(scale)).astype(F), (bias * F(scale)).astype(F)
    b[::2] *= F(scale)  # products that underflow
    exact = [
        [sum((Fraction(float(x)) * Fraction(float(y)) for x, y in zip(row, b[:, j])), Fraction(float(bias[j])))
         for j in range(5)]
        for row in a
    ]  # fmt: skip
    for order in ORDERS:
        found, bound = ordered(a, b, bias, order=order), error_bound(a, b, bias, order=order)
        for i in range(3):
            for j in range(5):
                assert abs(Fraction(float(found[i, j])) - exact[i][j]) <= Fraction(float(bound[i, j]))
    tight = error_bound(a, b, bias, order="float64")
    assert (tight <= error_bound(a, b, bias)).all()


def test_bound_is_infinite_where_nothing_can_be_said() -> None:
    big = np.full((1, 4), 1e38, F)
    assert np.isinf(error_bound(big, np.ones((4, 1), F))).all()
    assert np.isinf(error_bound(np.array([[np.nan]], F), np.ones((1, 1), F))).all()
    assert np.isfinite(error_bound(big / 100, np.ones((4, 1), F))).all()


# --- bad input --------------------------------------------------------------------------------------------------------

I = np.zeros((2, 3), np.int8)  # noqa: E741
X = np.zeros((2, 3), F)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: integer(X, I.T), r"a has dtype float32; integers are needed"),
        (lambda: ordered(X, I.T), r"b has dtype int8; floats are needed"),
        (lambda: integer(I, I), r"a has shape \(2, 3\) and b \(2, 3\); the columns of a must be as many as the rows"),
        (lambda: integer(I[0], I), r"a has shape \(3,\); a matrix is needed"),
        (lambda: ordered(X[None], X.T), r"a and b have shapes \(1, 2, 3\) and \(3, 2\); matrices"),
        (lambda: integer(I, I.T, bits=65), r"bits=65 must be from 2 to 64"),
        (lambda: integer(I, I.T, overflow="infinity"), r"overflow='infinity' has no meaning for an accumulator"),
        (lambda: integer(I, I.T, bias=[0.5, 1]), r"bias has dtype float64; integers are needed"),
        (lambda: ordered(X, X.T, [1, 2]), r"bias has dtype int64; floats are needed"),
        (lambda: ordered(X, X.T, order="pairwize"), r"order='pairwize' is not an order .*did you mean 'pairwise'\?"),
        (lambda: ordered(X, X.T, block=0), r"block=0 must be a positive integer"),
        (lambda: error_bound(X, X.T, order="tree"), r"order='tree' is not an order"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        call()
