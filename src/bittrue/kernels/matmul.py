"""Loops of matrix products that add in a stated order; they know plain arrays, no format.

`a` is [m, k], `b` [k, n], `c` [m, n]; all have one float type, to which every product and every sum is rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import kernel
from .ops import widest_vectors

__all__ = ["blocked", "pairwise", "sequential"]


@kernel
def sequential(a: Any, b: Any, c: Any) -> None:
    """Add the products to `c` one after the other."""
    widest_vectors()
    for i in range(a.shape[0]):
        row = c[i]
        for k in range(a.shape[1]):
            x = a[i, k]
            other = b[k]
            for j in range(row.size):
                row[j] = row[j] + x * other[j]


@kernel
def blocked(a: Any, b: Any, c: Any, block: Any) -> None:
    """Add the products of each `block` of k one after the other, starting from its first; then its sum to `c`."""
    widest_vectors()
    part = np.empty(b.shape[1], c.dtype)
    for i in range(a.shape[0]):
        row = c[i]
        for start in range(0, a.shape[1], block):
            x = a[i, start]
            other = b[start]
            for j in range(row.size):
                part[j] = x * other[j]
            for k in range(start + 1, min(start + block, a.shape[1])):
                x = a[i, k]
                other = b[k]
                for j in range(row.size):
                    part[j] = part[j] + x * other[j]
            for j in range(row.size):
                row[j] = row[j] + part[j]


@kernel
def pairwise(a: Any, b: Any, c: Any) -> None:
    """Add neighbouring products, then neighbouring sums, and the total to `c`; an odd last one moves up unchanged.

    As in a binary counter, ``waiting[l]`` holds the sum of a finished group of 2**l products for which bit l of the
    number of products so far is set.
    """
    widest_vectors()
    count, n = b.shape
    levels = 1
    while count >> levels:
        levels += 1
    waiting = np.empty((levels, n), c.dtype)
    total = np.empty(n, c.dtype)
    for i in range(a.shape[0]):
        for k in range(count):
            x = a[i, k]
            other = b[k]
            for j in range(n):
                total[j] = x * other[j]
            level = 0
            while k >> level & 1:
                group = waiting[level]
                for j in range(n):
                    total[j] = group[j] + total[j]
                level += 1
            waiting[level, :] = total
        first = True
        for level in range(levels):
            if count >> level & 1:
                group = waiting[level]
                for j in range(n):
                    total[j] = group[j] if first else group[j] + total[j]
                first = False
        if not first:
            row = c[i]
            for j in range(n):
                row[j] = row[j] + total[j]
