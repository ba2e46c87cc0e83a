"""Products of vectors, lane by lane, on the numbers of registers: integers exact and wrapped, floats as they add."""

from __future__ import annotations

from typing import Any

import numpy as np

from .floats import add_terms, emulated_product
from .tags import Tag
from .tile import State
from .vector import vector
from .wide import Wide

__all__ = ["float_product", "integer_product", "limited", "multiply"]

Array = np.ndarray[Any, Any]


def integer_product(acc: Wide, a: vector, b: vector, negative: bool, state: State, tag: Tag) -> Wide:
    """Return accumulators plus (`negative`: minus) the products of two integer vectors, in the width of `tag`."""
    x, y = a.integers(), b.integers()
    if tag.is_complex:
        xr, xi = _parts(x, a.is_complex)
        yr, yi = _parts(y, b.is_complex)
        total = Wide.zeros(acc.size)
        total.put(slice(0, None, 2), multiply(xr, yr) - multiply(xi, yi))
        total.put(slice(1, None, 2), multiply(xr, yi) + multiply(xi, yr))
    else:
        total = multiply(x, y)
    return limited(acc - total if negative else acc + total, tag, state)


def _parts(x: Array, is_complex: bool) -> tuple[Array, Array]:
    return (x[::2], x[1::2]) if is_complex else (x, np.zeros_like(x))


def multiply(x: Array, y: Array) -> Wide:
    """Multiply integers of up to 32 bits exactly."""
    kind = np.uint64 if x.dtype.kind == y.dtype.kind == "u" else np.int64
    return Wide.from_array(np.asarray(x.astype(kind) * y.astype(kind)))


def limited(total: Wide, tag: Tag, state: State) -> Wide:
    """Wrap exact sums to the native width, or raise where they do not fit and that is wanted."""
    wrapped = total.wrap(tag.bits)
    if state.overflow == "raise":
        fits = wrapped.equals(total)
        if not fits.all():
            index = int(np.argmin(fits.reshape(-1)))
            raise OverflowError(
                f"lane {index // tag.parts} holds {total.reshape(-1)[index : index + 1].to_ints()[0]}, which is beyond "
                f"{tag.native} (overflow='raise')"
            )
    return wrapped


def float_product(acc: Array | None, a: vector, b: vector, negative: bool, state: State, tag: Tag) -> Array:
    """Return float32 accumulators (or none) plus (`negative`: minus) the products of two float vectors."""
    x, y = a.floats(), b.floats()
    asked, native = state.choices.float_products, a.element.part.bits == 16 or state.arch.number == 10
    if asked != "exact" and not native:
        if tag.is_complex:
            raise ValueError(f"float_products={asked!r} is known for real products only; take 'exact'")
        return emulated_product(acc, x, y, negative, state)
    if not tag.is_complex:
        return add_terms(acc, [(x, y, negative)], state, native)
    xr, xi = _parts(x, a.is_complex)
    yr, yi = _parts(y, b.is_complex)
    real, imag = [(xr, yr, negative)], []
    if a.is_complex and b.is_complex:
        real.append((xi, yi, not negative))
    if b.is_complex:
        imag.append((xr, yi, negative))
    if a.is_complex:
        imag.append((xi, yr, negative))
    found = np.empty(len(xr) * 2, np.float32)
    found[::2] = add_terms(None if acc is None else acc[::2], real, state, native)
    found[1::2] = add_terms(None if acc is None else acc[1::2], imag, state, native)
    return found
