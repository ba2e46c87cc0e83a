"""Tensors of codes: to and from `bittrue.Array`, without copies where the memory allows."""

from __future__ import annotations

import torch

from ..array import Array
from ..blocks.array import BlockArray
from ..formats import Format
from ..formats import format as _format

__all__ = ["from_torch", "to_torch"]

#: Formats whose codes torch has a dtype for; all of them have the same memory in both.
_DTYPES: dict[str, torch.dtype] = {
    f.name: dtype
    for f, dtype in (
        (_format(name), getattr(torch, name, None))
        for name in (
            "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 "
            "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
        ).split()
    )
    if dtype is not None
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def to_torch(a: Array) -> torch.Tensor:
    """Return the codes of an array as a tensor that shares its memory (read-only and odd strides: a copy).

    Formats that torch has (float8 among them) get torch's dtype, all others their codes as uint8 or uint16 (integers
    of 4 bits and the like one to a byte).

    Examples
    --------
    >>> import bittrue as bt
    >>> to_torch(bt.array([1.0, 0.3], "float8_e4m3fn")).dtype
    torch.float8_e4m3fn
    """
    if isinstance(a, BlockArray):
        raise TypeError("a is a BlockArray, and torch has no blocks; torch.from_numpy(np.array(a)) has its values")
    if not isinstance(a, Array):
        raise TypeError(f"a must be a bittrue.Array, not {type(a).__name__}")
    codes = a.codes
    if not codes.flags.writeable or any(n < 0 for n in codes.strides):
        codes = codes.copy()
    plain = codes if codes.dtype.kind == "c" else codes.view(f"u{codes.dtype.itemsize}")
    tensor = torch.from_numpy(plain)
    dtype = _DTYPES.get(a.format.name)
    return tensor if dtype is None or dtype is tensor.dtype else tensor.view(dtype)


def from_torch(t: torch.Tensor, format: Format | str | None = None) -> Array:
    """Return the elements of a CPU tensor as codes of a format, without a copy where NumPy can share the memory.

    Parameters
    ----------
    t : Tensor
        Detached from its graph. On another device: call ``.cpu()`` first.
    format : Format or name, optional
        What the codes of an integer tensor mean; default: the format of the tensor's dtype.

    Raises
    ------
    ValueError
        For a dtype without a format, or codes that `format` does not have.

    Examples
    --------
    >>> from_torch(torch.tensor([1.0, 0.3]).to(torch.float8_e4m3fn))
    Array([1.    , 0.3125], shape=(2,), format=float8_e4m3fn)
    """
    if not isinstance(t, torch.Tensor):
        raise TypeError(f"t must be a torch tensor, not {type(t).__name__}; bittrue.Array takes NumPy arrays")
    name = _NAMES.get(t.dtype)
    if format is None and name is None:
        raise ValueError(f"t has dtype {t.dtype}, for which there is no format; give format=")
    if t.device.type != "cpu":
        raise ValueError(f"t is on {t.device}; an Array lives in main memory: call t.cpu()")
    fmt = _format(name if format is None else format)
    t = t.detach().resolve_conj().resolve_neg()
    if t.dtype.is_complex:
        return Array(t.numpy(), fmt)
    codes = t.view(getattr(torch, f"uint{8 * t.dtype.itemsize}")).numpy()
    if format is None:
        codes = codes.view(fmt.storage)
    return Array(codes, fmt)
