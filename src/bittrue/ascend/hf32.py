"""HF32: the shorter float32 that matrix units multiply when asked to, as a rounding of float32 arrays."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..array import Array
from ..chunks import in_chunks
from ..rounding import suggestion
from .choices import Choices
from .products import DEFAULT_PRODUCT, Product, product, products

__all__ = ["HF32TransMode", "hf32"]

_DEFAULT = Choices()


class HF32TransMode(enum.Enum):
    """Ascend C's HF32TransMode: how float becomes HF32 (SetHF32TransMode)."""

    NEAREST_ZERO = "nearest_zero"  #: "rounded to nearest toward zero": see `Choices.hf32_zero`
    NEAREST_EVEN = "nearest_even"  #: to nearest, ties to even


def hf32(
    x: ArrayLike | Array,
    mode: HF32TransMode | str = HF32TransMode.NEAREST_EVEN,
    product: str | int | Product = DEFAULT_PRODUCT,
    *,
    choices: Choices | None = None,
    threads: int | None = None,
) -> np.ndarray[Any, Any]:
    """Round float32 values to HF32, as a matrix unit does in HF32 mode before it multiplies them.

    Parameters
    ----------
    x : array_like or Array of float32
    mode : HF32TransMode or name
    product : str, int or Product
        Ascend 950 keeps 10 fraction bits, the others that have HF32 keep 11; all keep the 8 exponent bits of float32.
    choices : Choices, optional
        `hf32_zero` says what NEAREST_ZERO is, `hf32_overflow` what lies beyond the largest value.
    threads : int, optional
        As in `bittrue.encode`.

    Returns
    -------
    ndarray of float32, of the shape of `x`
        Subnormals are rounded where HF32's own would lie, and NaN stays NaN; no document speaks of either.

    Raises
    ------
    ValueError
        For an unknown mode, and for a product without HF32.
    TypeError
        For values of another dtype.

    Examples
    --------
    >>> x = np.float32([1 + 2**-11, 1 + 2**-12])
    >>> (hf32(x) - 1).tolist(), (hf32(x, product="a2") - 1).tolist()
    ([0.0, 0.0], [0.00048828125, 0.0])

    References
    ----------
    asc-devkit 82b89a15, HF32.md, SetHF32Mode and SetHF32TransMode; CANN 8.0, ATC parameter allow_hf32.
    """
    of, chosen = _product(product), _DEFAULT if choices is None else choices
    if of.hf32_bits is None:
        have = ", ".join(p.name for p in products() if p.hf32_bits)
        raise ValueError(f"product={product!r}: {of} has no HF32; these have: {have}")
    values = np.asarray(x)
    if values.dtype.newbyteorder("=") != np.float32:
        raise TypeError(f"x has dtype {values.dtype}; HF32 is made of float32")
    even = _mode(mode) is HF32TransMode.NEAREST_EVEN
    src = np.ascontiguousarray(values, np.float32).reshape(values.shape)
    out = np.empty_like(src)
    _round(src.reshape(-1), out.reshape(-1), 23 - of.hf32_bits, even, chosen, threads)
    return out


_product = product


def _round(
    src: np.ndarray[Any, Any],
    dst: np.ndarray[Any, Any],
    dropped: int,
    even: bool,
    choices: Choices,
    threads: int | None,
) -> None:
    from ..kernels.fraction import shorten

    tie = 1 << (dropped - 1)
    half = tie - 1 if even else {"ties_to_zero": tie - 1, "ties_away": tie, "cut": 0}[choices.hf32_zero]
    beyond = 0x7F800000 if choices.hf32_overflow == "infinity" else 0x7F800000 - (1 << dropped)
    numbers = [np.uint32(n) for n in (dropped, half, even, beyond)]
    x, y = src.view(np.uint32), dst.view(np.uint32)

    def work(lo: int, hi: int) -> int:
        shorten(x[lo:hi], y[lo:hi], *numbers)
        return 0

    in_chunks(work, x.size, threads, 1, 64)


def _mode(mode: Any) -> HF32TransMode:
    if isinstance(mode, HF32TransMode):
        return mode
    if isinstance(mode, str):
        text = mode.replace("::", ".").rpartition(".")[2].strip().upper()
        if text in HF32TransMode.__members__:
            return HF32TransMode[text]
    close = suggestion(mode, (m.value for m in HF32TransMode)) if isinstance(mode, str) else ""
    raise ValueError(f"mode={mode!r} is not a mode of HF32{close} ({', '.join(m.name for m in HF32TransMode)})")
