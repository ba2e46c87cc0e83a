"""`cast_dequant`: Ascend C's CastDequant, which scales integers of the vector unit by the parameters of SetDeqScale."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import finish, output
from ..array import Array
from ..chunks import in_chunks
from ..records import records
from .cast import cast
from .choices import Choices
from .control import Saturation
from .products import DEFAULT_PRODUCT, Product
from .products import product as find_product
from .quant import QuantParam, as_words, offset_of, scale_of
from .types import Type, require, type_info

__all__ = ["cast_dequant"]

Plain = np.ndarray[Any, Any]

LANES = 16  # int16 elements of a 32-byte block, each with parameters of its own in the vector form
_BLOCK = 2 * LANES  # bytes
_ROW = 64 * LANES  # elements per row of the kernel, whose inner loop runs over parameters
_CHUNK = 1 << 15  # elements per pass of the choice that needs scratch memory
_NINE_BITS = (-256, 255)
_LIMITS = {"int8_t": (-128, 127), "uint8_t": (0, 255)}
_SIGN = np.uint64(1 << 46)
_DEFAULT = Choices()


def cast_dequant(
    x: ArrayLike | Array,
    dst: Any,
    deqscale: QuantParam | ArrayLike,
    product: str | int | Product = DEFAULT_PRODUCT,
    *,
    half_block: bool | None = None,
    saturation: Saturation = None,
    choices: Choices | None = None,
    out: Plain | None = None,
    threads: int | None = None,
) -> Array:
    """Scale integers and narrow them, as Ascend C's CastDequant does after SetDeqScale.

    Parameters
    ----------
    x : ndarray or Array of int16 or int32
    dst : str, dtype or format
        int8_t or uint8_t for int16_t, half for int32_t.
    deqscale : QuantParam, int, array_like of shape [16], or float
        For int16_t: scale, offset and sign, as a `QuantParam` or a word of the register DEQSCALE; or 16 of them
        (isVecDeq, VdeqInfo): element i, counted through all of `x`, takes those of number i % 16. For int32_t: a scale,
        rounded to half.
    product : str, int or Product
    half_block : bool, optional
        None: one code for each element, in the shape of `x`. Else what the device writes for 8-bit results: for each 16
        elements a block of 32 bytes, with the codes in its second half (True, Ascend C's default) or first half, and
        zeros in the other; the last block is filled up.
    saturation : None, bool, SaturationMode, str or Ctrl
        Overflow in half, as in `cast`. 8-bit results always saturate.
    choices : Choices, optional
        Answers to open questions: 18 and 24 about the word, 34 about the order of the steps.
    out : ndarray, optional
        Array of codes of the result's shape and dtype to write into.
    threads : int, optional
        As in `bittrue.encode`.

    Returns
    -------
    Array
        Of the destination's format and the shape of `x`, or of shape [blocks, 32].

    Raises
    ------
    ValueError
        A pair that the product's CastDequant lacks; a scale that is NaN or infinite; a sign flag that is not that of
        `dst`; neither one nor 16 parameters.
    TypeError
        `x` of another dtype, or parameters that are no words or numbers.

    Notes
    -----
    With M the scale cut to 1 + 8 + 10 bits: t = float32(x) * M is rounded to float32, then to nearest even, clamped to
    -256 .. 255; the offset is added; the sum is clamped to the type. int32_t to half is the dequantising `cast`.

    Examples
    --------
    >>> x = np.int16([5, 7, 1000, -1000])
    >>> cast_dequant(x, "int8_t", QuantParam(0.5, offset=10)).tolist()
    [12, 14, 127, -128]
    >>> cast_dequant(np.int32([1000, -7]), "half", 0.5, product="a2").tolist()
    [500.0, -3.5]
    >>> cast_dequant(x, "uint8_t", 0x3F800000, half_block=False).codes[0, :6]
    array([  5,   7, 255,   0,   0,   0], dtype=uint8)

    References
    ----------
    asc-devkit 82b89a15, CastDequant and SetDeqScale, and the implementation for Ascend 950.
    """
    chosen = _DEFAULT if choices is None else choices
    if not isinstance(chosen, Choices):
        raise TypeError(f"choices={choices!r} must be an ascend.Choices, not {type(choices).__name__}")
    if half_block not in (None, True, False):
        raise ValueError(f"half_block={half_block!r} must be None, True or False")
    of, source, target = find_product(product), _source(x), type_info(dst)
    _require_pair(of, source, target)
    require(of, target, chosen)
    if source.name == "int32_t":
        if half_block is not None:
            raise ValueError(f"half_block={half_block!r} is for 8-bit results, not for {target}")
        scale: Any = deqscale
        result = cast(
            x, target.format, product=of, saturation=saturation, strict=True, deqscale=scale, choices=chosen, out=out,
            threads=threads,
        )  # fmt: skip
        return result if isinstance(result, Array) else Array(np.asarray(result).view(np.uint16), target.format)
    words = _words(deqscale, target.name == "int8_t", target, chosen)
    values = x.codes.view(np.int16) if isinstance(x, Array) else np.asarray(x)
    values = np.ascontiguousarray(values, np.int16).reshape(np.shape(x))
    fmt = target.format
    if half_block is None:
        codes = output(out, values.shape, fmt.storage, fmt, values)
        flat = codes.reshape(-1)
    else:
        blocks = -(-values.size // LANES)
        codes = output(out, (blocks, _BLOCK), fmt.storage, fmt, values)
        flat = np.zeros(blocks * LANES, fmt.storage)
    _run(values.reshape(-1), flat[: values.size].view(np.uint8), words, target, chosen, threads)
    if half_block is not None:
        halves = codes.reshape(-1, 2, LANES)
        halves[:, int(half_block)] = flat.reshape(-1, LANES)
        halves[:, int(not half_block)] = 0
    codes = finish(codes, out, codes)
    return Array._wrap(codes, fmt)


def _source(x: Any) -> Type:
    name = x.format.name if isinstance(x, Array) else None
    if isinstance(x, (np.ndarray, np.generic)):
        name = x.dtype.name
    if name not in ("int16", "int32"):
        what = f"has dtype {name}" if name else f"is a {type(x).__name__}"
        raise TypeError(f"x {what}; CastDequant takes NumPy arrays or Arrays of int16_t or int32_t")
    return type_info(name)


@cache
def _pairs() -> dict[tuple[str, str], tuple[str, ...]]:
    return {(r["source"], r["destination"]): tuple(r["products"].split("|")) for r in records("ascend", "dequant")}


def _require_pair(of: Product, source: Type, target: Type) -> None:
    having = _pairs().get((source.name, target.name), ())
    if of.name not in having:
        have = ", ".join(f"{s} to {d}" for (s, d), names in _pairs().items() if of.name in names)
        raise ValueError(f"{source} to {target} is no CastDequant of {of}; it has " + (have or "none"))


def _words(given: Any, signed: bool, target: Type, choices: Choices) -> Plain:
    """Return one word or 16, with the sign flag of the destination."""
    if isinstance(given, QuantParam):
        words = as_words(given.pack(3510, choices=choices), "deqscale")  # no N, no MCB: the layout of DEQSCALE
        if given.signed is None and not signed:
            words = words & ~_SIGN
    else:
        words = as_words(given, "deqscale")
    words = words.reshape(-1) if words.ndim == 0 else words
    if words.size not in (1, LANES):
        raise ValueError(f"deqscale has shape {words.shape}; one word is needed, or {LANES}: one per lane of a block")
    wrong = (words & _SIGN != 0) != signed
    if wrong.any():
        at = f"deqscale[{int(np.flatnonzero(wrong)[0])}]" if words.size > 1 else "deqscale"
        raise ValueError(f"{at} has signMode {int(not signed)}, but dst is {target}, which is signMode {int(signed)}")
    return words


def _run(src: Plain, dst: Plain, words: Plain, target: Type, choices: Choices, threads: int | None) -> None:
    from ..kernels import fixpipe as kernels

    if src.size == 0:
        return
    scale = scale_of(words, choices, "deqscale")
    offset = offset_of(words, choices).astype(np.float32)
    width = 1 if words.size == 1 else _ROW
    scale, offset = (np.resize(part, width) for part in (scale, offset))
    bounds = np.array([*_NINE_BITS, *_LIMITS[target.name]], np.float32)
    run: Any = partial(kernels.requantise, below=np.float32(0), limit=np.int16(-32768), bounds=bounds)
    if choices.dequant_order == "sum":
        run = partial(_as_sum, limits=bounds[2:])

    def work(lo: int, hi: int) -> int:
        whole = lo + (hi - lo) // width * width
        run(src[lo:whole], dst[lo:whole], m1=scale, offset=offset)
        if whole < hi:
            rest = hi - whole
            run(src[whole:hi], dst[whole:hi], m1=scale[:rest], offset=offset[:rest])
        return 0

    in_chunks(work, src.size, threads, 1, _ROW)


def _as_sum(src: Plain, dst: Plain, m1: Plain, offset: Plain, limits: Plain) -> None:
    """Cast(src * scale + offset), each step rounded to float32: the documented formula as it stands."""
    rows = max(1, _CHUNK // m1.size) * m1.size
    for lo in range(0, src.size, rows):
        with np.errstate(over="ignore"):
            t = src[lo : lo + rows].reshape(-1, m1.size).astype(np.float32) * m1
        code = np.clip(np.rint(t + offset), *limits).astype(np.int16)
        dst[lo : lo + rows] = code.astype(np.uint8).reshape(-1)
