"""`fixpipe`: accumulators of the matrix unit to results by the documented steps; modes and words are in `quant`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import finish, output
from ..array import Array
from ..chunks import in_chunks
from ..formats import Format, format
from ..rounding import Overflow, Rounding, Rule
from .choices import Choices
from .control import Saturation
from .layout import nd_to_nz
from .modes import RoundMode
from .products import DEFAULT_PRODUCT, Product, product
from .quant import QuantParam, offset_of, scale_of, words_of
from .quantmodes import CLIPPING, QuantInfo, QuantMode, architecture, quant_mode, require_mode
from .rule import cast_rule

__all__ = ["fixpipe"]

Plain = np.ndarray[Any, Any]
Run = Callable[[Plain, Plain], object]
Stage = tuple[Run, np.dtype[Any]]

_CHUNK = 1 << 15  # elements per pass where there are several stages: all scratch stays in the second-level cache
_DEFAULT = Choices()
_DTYPES = {"float": np.dtype(np.float32), "int32_t": np.dtype(np.int32)}
_FIRST_CLAMP = (-256, 255)  # nine bits, signed
_F32, _F64, _HALF = format("float32"), format("float64"), format("float16")
_ONE = np.ones(1, np.float32)
_TO_ODD = Rule(Rounding.odd, Overflow.saturate_finite)  # 24 bits of it round on to at most 22 as the exact value would


def fixpipe(
    acc: ArrayLike | Array,
    mode: QuantMode | str | int,
    quant_pre: QuantParam | ArrayLike | None = None,
    relu: bool = False,
    product: str | int | Product = DEFAULT_PRODUCT,
    *,
    alpha: float | None = None,
    clip: float | None = None,
    layout: str = "ND",
    saturation: Saturation = None,
    choices: Choices | None = None,
    out: Plain | None = None,
    threads: int | None = None,
) -> Array:
    """Move accumulators out of L0C: ReLU, scale, round, clamp, offset, clamp, as an Ascend matrix unit does.

    Parameters
    ----------
    acc : array_like or Array of shape [m, n]
        Accumulators, float32 or int32 as the mode takes them. (From a dump in blocks: `nz_to_nd` first.)
    mode : QuantMode, name or number
    quant_pre : QuantParam, int or array_like, optional
        Parameters of a quantising mode: a 64-bit word or a `QuantParam`; n of them for a mode per column (V...).
    relu : bool
        Scale accumulators below zero by 0 instead (Normal ReLU).
    product : str, int or Product
    alpha : float, optional
        With `relu`: scale them by this instead (Leaky, or Scalar, ReLU; the M2 of RELU_ALPHA). Read as the scale is:
        rounded to float32, then cut to 1 + 8 + 10 bits. Open question 35 asks whether it takes the place of M1.
    clip : float, optional
        With `relu`, in modes that give half: the largest result (ClipReLU). Rounded to half; only with
        ``Choices(clip_relu="offered")``, as documents disagree (open question 36).
    layout : {"ND", "NZ"}
        Layout of the result: rows, or blocks; see `nd_to_nz`.
    saturation : None, bool, SaturationMode, str or Ctrl
        Overflow and NaN in half, bfloat16, fp8 and hifloat8, as in `cast`. Integers always saturate, DEQF16 too.
    choices : Choices, optional
        Answers to open questions.
    out : ndarray, optional
        Array of codes of the result's shape and dtype to write into.
    threads : int, optional
        As in `bittrue.encode`.

    Returns
    -------
    Array
        Of shape [m, n] (in blocks: see `nd_to_nz`) and of the mode's output type.

    Raises
    ------
    ValueError
        A mode that the product lacks; parameters missing, of the wrong number, or set though the mode does not read
        them; a scale that is NaN or infinite; columns of int8 beside columns of uint8; accumulators that are no matrix.
    TypeError
        Accumulators of another dtype.

    Notes
    -----
    For an accumulator x, with M = M1, or M2 = 0 or `alpha` if `relu` and x is below 0 or NaN:

    * MCB = 1 (NPU architecture 2201): x becomes x >> N first, saturated to int16.
    * t = float32(x) * M, rounded to float32.
    * To int8 or uint8: t is rounded to nearest even, clamped to -256 .. 255, the offset is added, the sum is clamped to
      the type. NaN counts as 0.
    * To a float: t is rounded to it. A product with M = 0 keeps its sign: ReLU gives half -0 for negative x.
    * Without parameters: x, or where `relu` and x < 0 then 0 or float32(x * `alpha`), is rounded to the output type.

    Examples
    --------
    >>> acc = np.int32([[5, 7, 1000, -1000]])
    >>> fixpipe(acc, "REQ8", QuantParam(scale=0.5, offset=10, signed=False)).tolist()
    [[12, 14, 255, 0]]
    >>> fixpipe(acc, "DEQF16", QuantParam(scale=0.5), relu=True)
    Array([[  2.5,   3.5, 500. ,  -0. ]], shape=(1, 4), format=float16)
    >>> fixpipe(acc, "REQ8", QuantParam(scale=0.5), relu=True, alpha=0.125).tolist()
    [[2, 4, 127, -125]]

    References
    ----------
    Ascend C API, "Fused quantisation"; asc-devkit 82b89a15, pages on ReLU fusion, SetFixPipeClipRelu,
    asc_set_l0c2gm_relu_alpha and asc_set_l0c2gm_lrelu_alpha, and scripts of fixpipe_l0c2gm; `docs/fixpipe.md`, and
    `docs/evidence.md` for what is open.
    """
    chosen = _DEFAULT if choices is None else choices
    if not isinstance(chosen, Choices):
        raise TypeError(f"choices={choices!r} must be an ascend.Choices, not {type(choices).__name__}")
    if layout not in ("ND", "NZ"):
        raise ValueError(f"layout={layout!r} must be 'ND' or 'NZ'")
    if not isinstance(relu, (bool, np.bool_)):
        raise ValueError(f"relu={relu!r} must be True or False; a leaky ReLU is relu=True with alpha=")
    of = _product(product)
    arch = architecture(product, "product")
    info = quant_mode(mode).info
    require_mode(info, arch)
    values = _accumulators(acc, info)
    words = words_of(quant_pre, info, values.shape[1], arch, chosen)
    if info.to_integer and values.dtype.kind == "f" and chosen.fixpipe_nan == "raise" and not np.isfinite(values).all():
        raise ValueError("acc holds NaN or Inf, which fixpipe_nan='raise' does not allow in 8-bit integers")
    read = None if words is None else _read(words, info, arch, chosen)
    target = _target(info, values, read)
    below = _alpha(alpha, bool(relu), info, values.dtype, chosen)
    limit = _clip(clip, bool(relu), below, info, target, arch, chosen)
    stages = _stages(info, values.dtype, target, read, bool(relu), below, limit, of, saturation, chosen)
    direct = out if layout == "ND" else None
    codes = output(direct, values.shape, target.storage, target, values)
    _run(stages, values, codes, 1 if read is None else read.m1.size, threads)
    if layout == "ND":
        return Array._wrap(finish(codes, out, codes), target)
    blocks = nd_to_nz(codes, None)
    if out is not None:
        result = output(out, blocks.shape, target.storage, target, values)
        np.copyto(result, blocks)
        blocks = finish(result, out, values)
    return Array._wrap(blocks, target)


_product = product


def _accumulators(acc: Any, info: QuantInfo) -> Plain:
    """Return the accumulators as a contiguous matrix of a dtype that the mode takes."""
    array = acc.exact_values() if isinstance(acc, Array) else np.asarray(acc)
    allowed = [_DTYPES[name] for name in info.accumulators]
    if array.dtype.newbyteorder("=") not in allowed:
        names = " or ".join(f"{name} ({_DTYPES[name]})" for name in info.accumulators)
        raise TypeError(f"acc has dtype {array.dtype}; mode {info.mode.name} takes accumulators of {names}")
    if array.ndim != 2:
        raise ValueError(f"acc has shape {array.shape}; a matrix [m, n] is needed")
    return np.ascontiguousarray(array, array.dtype.newbyteorder("="))


class _Read(NamedTuple):
    """Parameter words as the device reads them; arrays of one element, or of one per column."""

    m1: Plain  # float32
    offset: Plain  # float32 integers
    signed: bool
    shift: Plain | None  # int32, -1: none


def _read(words: Plain, info: QuantInfo, arch: int, choices: Choices) -> _Read:
    reads = info.reads(arch, choices)
    offset = offset_of(words, choices) if "offset" in reads else np.zeros(words.size, np.int64)
    signed = (words >> np.uint64(46) & np.uint64(1)).astype(np.bool_)
    if "signed" in reads and words.size and signed.min() != signed.max():
        raise ValueError(
            f"quant_pre has the sign flag in {int(signed.sum())} of {words.size} words; one matrix is int8 or uint8"
        )
    shift = None
    if "shift" in reads:
        on = (words >> np.uint64(36) & np.uint64(1)).astype(np.bool_)
        count = (words >> np.uint64(32) & np.uint64(0xF)).astype(np.int32) + (choices.n_field == "plus_one")
        shift = np.where(on, count, -1).astype(np.int32) if on.any() else None
    return _Read(scale_of(words, choices), offset.astype(np.float32), bool(signed.all()), shift)


def _target(info: QuantInfo, values: Plain, read: _Read | None) -> Format:
    if not info.outputs:
        return format(values.dtype)
    if info.to_integer:
        assert read is not None
        return format("int8" if read.signed else "uint8")
    return format(info.outputs[0])


def _alpha(
    alpha: Any, relu: bool, info: QuantInfo, source: np.dtype[Any], choices: Choices
) -> np.float32 | None:
    """Return the factor of accumulators below zero as the device reads it; None: a Normal ReLU, or none."""
    if alpha is None:
        return None
    value = _number(alpha, "alpha", np.float32)
    if not relu:
        raise ValueError(f"alpha={alpha!r} needs relu=True: it is the factor of a leaky ReLU")
    if not info.parametrised and source.kind == "i":
        raise ValueError(f"alpha={alpha!r}: mode {info.mode.name} keeps int32 accumulators, which a factor would not")
    word = np.asarray(value.view(np.uint32), np.uint64)
    return np.float32(scale_of(word, choices, "alpha"))


def _clip(
    clip: Any, relu: bool, alpha: np.float32 | None, info: QuantInfo, target: Format, arch: int, choices: Choices
) -> np.uint16 | None:
    """Return the half pattern of the limit of a ClipReLU, or None."""
    if clip is None:
        return None
    value = _number(clip, "clip", np.float16)
    if arch not in CLIPPING:
        raise ValueError(f"clip={clip!r}: no document gives NPU architecture {arch} a ClipReLU")
    if choices.clip_relu == "refused":
        raise ValueError(
            f"clip={clip!r}: documents disagree whether NPU architecture {arch} has ClipReLU; it is offered under "
            "choices=Choices(clip_relu='offered')"
        )
    if not relu or alpha is not None:
        raise ValueError(f"clip={clip!r} needs a Normal ReLU: relu=True without alpha")
    if target is not _HALF:
        raise ValueError(f"clip={clip!r} limits half results, but mode {info.mode.name} gives {target.name}")
    if value <= 0:
        raise ValueError(f"clip={clip!r} must be above 0 in half")
    return np.uint16(value.view(np.uint16))


def _number(value: Any, name: str, kind: Any) -> Any:
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} must be a number, not {type(value).__name__}")
    with np.errstate(over="ignore"):
        rounded = kind(value)
    if not np.isfinite(rounded):
        raise ValueError(f"{name}={value!r} must be a finite {np.dtype(kind).name}")
    return rounded


# --- stages -----------------------------------------------------------------------------------------------------------


def _stages(
    info: QuantInfo,
    source: np.dtype[Any],
    target: Format,
    read: _Read | None,
    relu: bool,
    alpha: np.float32 | None,
    clip: np.uint16 | None,
    of: Product,
    saturation: Saturation,
    choices: Choices,
) -> list[Stage]:
    """Return what turns accumulators into codes: each stage reads one flat array and writes the next."""
    from ..kernels import fixpipe as kernels
    from ..plans import encode_plan

    stages: list[Stage] = []
    zero_nan = relu and source.kind == "f" and choices.relu_nan == "zero"
    clipped: list[Stage] = [] if clip is None else [(partial(_clip_half, limit=clip), np.dtype(np.uint16))]
    if read is None and alpha is None:
        if relu:
            stages.append((partial(kernels.rectify, zero_nan=int(zero_nan)), source))
        if info.cast is None:
            return stages or [(lambda src, dst: np.copyto(dst, src), source)]
        return stages + _cast(info, target, of, saturation, choices) + clipped
    if zero_nan:
        stages.append((_without_nan, source))
    if read is None:
        stages.append((partial(kernels.multiply, m1=_ONE, below=alpha, limit=np.float32(0)), source))
        return stages if info.cast is None else stages + _cast(info, target, of, saturation, choices)
    if read.shift is not None:
        if source.kind == "f":
            stages.append((partial(_divide, shift=read.shift), source))
        else:
            narrow = int(choices.mcb_narrow == "saturate")
            stages.append((partial(kernels.shift_right, counts=read.shift, saturate=narrow), source))
    below, m1 = np.float32(0) if alpha is None else alpha, read.m1
    after = alpha is not None and choices.leaky_factor == "after_scale"
    lowest: Any = np.iinfo(source).min if source.kind == "i" else -np.inf
    limit = source.type(0 if relu and not after else lowest)
    exact = choices.scale_product == "exact" and target is not _F32 and info.cast is not RoundMode.CAST_HYBRID
    exact = exact and not after
    if exact:
        wide = {"m1": m1.astype(np.float64), "below": np.float64(below)}
        stages.append((partial(kernels.multiply, **wide, limit=limit), np.dtype(np.float64)))
        stages += _planned(encode_plan(_F64, _F32, _TO_ODD), np.uint64)
    elif after or not info.to_integer:
        stages.append((partial(kernels.multiply, m1=m1, below=below, limit=limit), np.dtype(np.float32)))
    if after:
        leaky = partial(kernels.multiply, m1=_ONE, below=below, limit=np.float32(0))
        stages.append((leaky, np.dtype(np.float32)))
    if info.to_integer:
        low, high = (-128, 127) if read.signed else (0, 255)
        bounds = np.array([*_FIRST_CLAMP, low, high], np.float32)
        if exact or after:  # multiplied already
            m1, limit = np.ones_like(m1), np.float32(-np.inf)
        code = partial(
            _requantise, m1=m1, below=below, limit=limit, offset=read.offset, bounds=bounds, odd=exact
        )
        return [*stages, (code, np.dtype(np.uint8))]
    if info.cast is None:
        return stages
    stages += _cast(info, target, of, saturation, choices)
    if read.offset.any():  # read in no other mode than DEQF16, see `QuantInfo.reads`
        stages.append((partial(_add_to_half, offset=read.offset), np.dtype(np.uint16)))
    return stages + clipped


def _cast(info: QuantInfo, target: Format, of: Product, saturation: Saturation, choices: Choices) -> list[Stage]:
    """Return the stages of the cast from float32, by the rule book of casts."""
    from .steps import plan_of

    assert info.cast is not None
    always = choices.fixpipe_sat == "always" or info.mode in (QuantMode.DEQF16, QuantMode.VDEQF16)
    if choices.fixpipe_sat == "c_api" and of.arch is not None:
        always = always or not info.inf_nan.get(of.arch, True)
    rule = cast_rule("float", target, info.cast, of, True if always else saturation, strict=True, choices=choices)
    return _planned(plan_of(rule, None), np.uint32)


def _planned(plan: Any, reads: Any) -> list[Stage]:
    none = np.empty(0, np.uint32)

    def stage(run: Any, reads: np.dtype[Any], writes: np.dtype[Any]) -> Stage:
        return (lambda src, dst: run(src.view(reads), dst.view(writes), 0, none)), writes

    found, now = [], np.dtype(reads)
    for run, dtype in plan.stages:
        found.append(stage(run, now, dtype))
        now = dtype
    return found


def _requantise(src: Plain, dst: Plain, odd: bool, **parameters: Any) -> None:
    from ..kernels import fixpipe as kernels

    kernels.requantise(src.view(np.float32) if odd else src, dst, **parameters)


def _without_nan(src: Plain, dst: Plain) -> None:
    np.copyto(dst, np.where(np.isnan(src), src.dtype.type(0), src))


def _divide(src: Plain, dst: Plain, shift: Plain) -> None:
    """The golden script's MCB for floats: divide by 2**N, round to int16 (nearest even, saturated; NaN is 0)."""
    rows, out = src.reshape(-1, shift.size), dst.reshape(-1, shift.size)
    on = shift >= 0
    with np.errstate(under="ignore"):
        shifted = np.rint(np.clip(np.ldexp(rows, -np.maximum(shift, 0)), -32768, 32767))
    np.copyto(out, np.where(on, np.where(np.isnan(shifted), np.float32(0), shifted), rows))


def _add_to_half(src: Plain, dst: Plain, offset: Plain) -> None:
    """Add integers to half patterns, exactly, and round to half again, saturating."""
    rows = src.view(np.float16).reshape(-1, offset.size).astype(np.float64)
    dst.view(np.float16).reshape(rows.shape)[...] = np.clip(rows + offset, -65504, 65504)


def _clip_half(src: Plain, dst: Plain, limit: np.uint16) -> None:
    """Replace half patterns of values beyond the limit, Inf too, by it; NaN and what has a sign stay."""
    np.copyto(dst, np.where((src > limit) & (src <= 0x7C00), limit, src))


def _run(stages: list[Stage], values: Plain, codes: Plain, width: int, threads: int | None) -> None:
    """Run the stages over whole rows (`width` > 1) or any elements, in threads and in chunks that stay in the cache."""
    if values.size == 0:
        return
    src, dst = values.reshape(-1), codes.reshape(-1).view(stages[-1][1])
    runs = [run for run, _ in stages]

    def work(lo: int, hi: int) -> int:
        if len(runs) == 1:
            runs[0](src[lo * width : hi * width], dst[lo * width : hi * width])
            return 0
        rows = max(1, _CHUNK // width)
        scratch = [np.empty(min(rows, hi - lo) * width, dtype) for _, dtype in stages[:-1]]
        for start in range(lo, hi, rows):
            a, b = start * width, min(start + rows, hi) * width
            now = src[a:b]
            for run, buffer in zip(runs, [*scratch, dst[a:b]]):
                run(now, buffer[: b - a])
                now = buffer[: b - a]
        return 0

    in_chunks(work, src.size // width, threads, width, 64 if width == 1 else 1)
