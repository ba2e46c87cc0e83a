"""Block layouts: element by element by the definition, identity for ragged shapes, flat dumps."""

from __future__ import annotations

import numpy as np
import pytest

import bittrue as bt
from bittrue.ascend import nd_to_nz, nz_to_nd

WIDTHS = {"int4": 64, "int8": 32, "uint8": 32, "hifloat8": 32, "float16": 16, "bfloat16": 16, "int32": 16}
SHAPES = [(1, 1), (16, 32), (17, 33), (15, 31), (48, 16), (3, 100), (0, 5), (5, 0), (2, 3, 20, 40)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", WIDTHS)
def test_there_and_back(name: str, shape: tuple[int, ...]) -> None:
    f, c = bt.format(name), WIDTHS[name]
    codes = np.random.default_rng(1).integers(0, 1 << min(f.bits, 31), shape).astype(f.code_dtype).view(f.storage)
    x = bt.Array(codes, f)
    blocks = nd_to_nz(x)
    m, n = shape[-2:]
    assert blocks.format is f and blocks.shape == (*shape[:-2], -(-n // c), -(-m // 16), 16, c)
    back = nz_to_nd(blocks, shape)
    assert back.format is f and back.codes.tobytes() == codes.tobytes() and back.shape == shape
    flat = bt.Array.frombytes(blocks.tobytes(), f)  # a dump
    assert nz_to_nd(flat, shape).codes.tobytes() == codes.tobytes()
    again = nd_to_nz(back)
    assert again.codes.tobytes() == blocks.codes.tobytes()


def test_where_an_element_is() -> None:
    x = np.arange(40 * 70, dtype=np.int32).reshape(40, 70)
    for columns in (8, 16, 32):
        blocks = nd_to_nz(x, columns)
        flat = blocks.ravel()
        height = 48
        for i, j in np.ndindex(x.shape):
            at = (j // columns) * height * columns + i * columns + j % columns
            assert flat[at] == x[i, j] == blocks[j // columns, i // 16, i % 16, j % columns]
        used = np.zeros(flat.size, bool)
        used[flat != 0] = True
        assert used.sum() == x.size - 1  # the rest is zero
        assert np.array_equal(nz_to_nd(flat, x.shape, columns), x)
        assert np.array_equal(nz_to_nd(blocks, x.shape), x)


def test_as_the_vendor_arranges_its_golden_data() -> None:
    """gen_data of fixpipe_l0c2gm: reshape and transpose, for shapes that are whole blocks."""
    for dtype, c in ((np.int8, 32), (np.float16, 16)):
        x = np.random.default_rng(2).integers(-100, 100, (128, 256)).astype(dtype)
        want = x.reshape(128 // 16, 16, 256 // c, c).transpose(2, 0, 1, 3)
        assert np.array_equal(nd_to_nz(x), want)


def test_bad_input() -> None:
    x = np.zeros((4, 4), np.int8)
    with pytest.raises(ValueError, match=r"^x has shape \(4,\); a matrix"):
        nd_to_nz(x[0])
    with pytest.raises(ValueError, match=r"^columns=0 must be a positive integer"):
        nd_to_nz(x, 0)
    with pytest.raises(ValueError, match=r"^shape=\(4,\) must be that of a matrix"):
        nz_to_nd(nd_to_nz(x), (4,))
    message = r"^x has shape \(1, 1, 16, 32\); a matrix of shape \(4, 40\) is \(2, 1, 16, 32\) in blocks$"
    with pytest.raises(ValueError, match=message):
        nz_to_nd(nd_to_nz(x), (4, 40))
