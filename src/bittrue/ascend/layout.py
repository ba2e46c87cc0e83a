"""Matrix layouts of device memory: row-major (ND) and blocks of 16 rows in columns of blocks (NZ)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array import Array

__all__ = ["BLOCK_ROWS", "block_columns", "nd_to_nz", "nz_to_nd", "nz_shape"]

BLOCK_ROWS = 16
_BLOCK_BYTES = 32  # of a row of a block, for elements of up to two bytes


def block_columns(bits: int) -> int:
    """Return how many columns a block has: 16, for elements of 8 bits 32, of 4 bits 64.

    Blocks of 32-bit elements are 16 wide, as in L0C and on the way out of it unless channels are split.

    Examples
    --------
    >>> [block_columns(bits) for bits in (4, 8, 16, 32)]
    [64, 32, 16, 16]

    References
    ----------
    asc-devkit 82b89a15, gen_data*.py of fixpipe_l0c2gm: 16 columns of half, 32 of int8_t.
    """
    return max(_BLOCK_BYTES * 8 // max(bits, 4), 16)


def nz_shape(m: int, n: int, columns: int) -> tuple[int, int, int, int]:
    """Return the shape of an m x n matrix in NZ: block columns, block rows, 16 rows, `columns` columns.

    Examples
    --------
    >>> nz_shape(20, 40, 32)
    (2, 2, 16, 32)
    """
    return -(-n // columns), -(-m // BLOCK_ROWS), BLOCK_ROWS, columns


def nd_to_nz(x: Any, columns: int | None = None) -> Any:
    """Arrange a matrix in blocks: the blocks of a column follow one another, inside a block rows do.

    Parameters
    ----------
    x : ndarray or Array of shape [..., m, n]
    columns : int, optional
        Width of a block; default `block_columns` of the element.

    Returns
    -------
    ndarray or Array of shape [..., ceil(n / columns), ceil(m / 16), 16, columns]
        Filled up with zero codes.

    Examples
    --------
    >>> nd_to_nz(np.arange(32, dtype=np.int8).reshape(1, 32)).shape
    (1, 1, 16, 32)
    """
    codes, fmt = _codes(x)
    if codes.ndim < 2:
        raise ValueError(f"x has shape {codes.shape}; a matrix [..., m, n] is needed")
    width = _width(columns, codes, fmt)
    *more, m, n = codes.shape
    n1, m1, rows, _ = nz_shape(m, n, width)
    if (m1 * rows, n1 * width) == (m, n):
        full = codes
    else:
        full = np.zeros((*more, m1 * rows, n1 * width), codes.dtype)
        full[..., :m, :n] = codes
    blocks = np.moveaxis(full.reshape(*more, m1, rows, n1, width), -2, -4)
    return _like(np.ascontiguousarray(blocks), fmt)


def nz_to_nd(x: Any, shape: tuple[int, ...], columns: int | None = None) -> Any:
    """Read a matrix out of blocks (NZ2ND); the inverse of `nd_to_nz`.

    Parameters
    ----------
    x : ndarray or Array
        In the shape that `nd_to_nz` returns, or flat, as a dump is.
    shape : tuple of int
        Shape [..., m, n] of the matrix; what fills up the last blocks is left out.
    columns : int, optional
        Width of a block; default the last axis of `x`, or `block_columns` of the element where `x` is flat.

    Raises
    ------
    ValueError
        When the number of elements does not fit `shape`.

    Examples
    --------
    >>> x = np.arange(6, dtype=np.float16).reshape(2, 3)
    >>> nz_to_nd(nd_to_nz(x).ravel(), (2, 3))
    array([[0., 1., 2.],
           [3., 4., 5.]], dtype=float16)
    """
    codes, fmt = _codes(x)
    if len(shape) < 2:
        raise ValueError(f"shape={shape!r} must be that of a matrix [..., m, n]")
    width = codes.shape[-1] if columns is None and codes.ndim >= 4 else _width(columns, codes, fmt)
    *more, m, n = shape
    blocked = (*more, *nz_shape(m, n, width))
    if codes.shape != blocked and not (codes.ndim == 1 and codes.size == int(np.prod(blocked))):
        raise ValueError(f"x has shape {codes.shape}; a matrix of shape {tuple(shape)} is {blocked} in blocks")
    n1, m1, rows, _ = blocked[-4:]
    full = np.moveaxis(codes.reshape(blocked), -4, -2).reshape(*more, m1 * rows, n1 * width)
    return _like(np.ascontiguousarray(full[..., :m, :n]), fmt)


def _codes(x: Any) -> tuple[np.ndarray[Any, Any], Any]:
    return (x.codes, x.format) if isinstance(x, Array) else (np.asarray(x), None)


def _like(codes: np.ndarray[Any, Any], fmt: Any) -> Any:
    return codes if fmt is None else Array._wrap(codes, fmt)


def _width(columns: int | None, codes: np.ndarray[Any, Any], fmt: Any) -> int:
    if columns is None:
        return block_columns(8 * codes.itemsize if fmt is None else fmt.bits)
    if not isinstance(columns, (int, np.integer)) or columns < 1:
        raise ValueError(f"columns={columns!r} must be a positive integer")
    return int(columns)
