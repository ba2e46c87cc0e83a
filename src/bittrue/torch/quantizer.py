"""`quantize` of tensors: an operator that compilers trace, with a straight-through gradient, for any device.

CPU tensors go through the package's own kernels. On other devices a table does the work in plain torch operations:
the top bits of the pattern, with "anything below" in the lowest, index the results. What no table of moderate size can
say (see `quantize`) is computed on the CPU and sent back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import ml_dtypes
import numpy as np
import torch
from numpy.typing import ArrayLike

from .. import exact
from ..codec import quantize as _quantize
from ..formats import BoolFormat, ComplexFormat, FloatFormat, Format, IntFormat, TaperedFormat
from ..formats import format as _format
from ..kinds.block import BlockFormat, BlockRule
from ..rounding import NanPolicy, Negative, Overflow, Rounding, Rule, make_rule
from ..tables import sticky_shift

__all__ = ["constant_result", "quantize"]

Function = TypeVar("Function", bound=Callable[..., Any])

_FLOATS = {
    torch.float16: ("float16", torch.int16),
    torch.bfloat16: ("bfloat16", torch.int16),
    torch.float32: ("float32", torch.int32),
    torch.float64: ("float64", torch.int64),
}
_TABLE_BITS = 21  # float16 as a destination of float32: the largest table, 8 MiB


class _Spec(NamedTuple):
    """A conversion, as the operator knows it by its key."""

    format: Format
    rule: Rule | BlockRule


def constant_result(function: Function) -> Function:
    """Tell compilers that a function's result is a constant of the graph.

    This is all that ``torch.compiler.assume_constant_result`` does, without its import of the whole compiler, which
    takes as long as that of torch itself.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


#: The operator takes strings and tensors only: conversions by a key that is made of their content.
_SPECS: dict[str, _Spec] = {}


def quantize(
    t: torch.Tensor,
    format: Format | str | torch.dtype,
    rounding: Rounding | str | None = None,
    overflow: Overflow | str | None = None,
    nan: NanPolicy | str | None = None,
    rule: Rule | BlockRule | None = None,
    *,
    negative: Negative | str | None = None,
    seed: int | None = None,
    random: torch.Tensor | ArrayLike | None = None,
    scale: torch.Tensor | ArrayLike | None = None,
    zero_point: torch.Tensor | ArrayLike | None = None,
    axis: int = -1,
) -> torch.Tensor:
    """Round a tensor to the values that a format holds: `bittrue.quantize`, bit for bit, with a gradient.

    The gradient with respect to `t` is straight-through: as if the function were the identity, also where values
    saturate. `scale` and `zero_point` get none.

    Parameters
    ----------
    t : Tensor
        float16, bfloat16, float32 or float64, on any device, contiguous or not. Never modified.
    format : Format, name or dtype
        Any real or block format.
    rounding, overflow, nan, rule, negative, seed, axis
        As in `bittrue.quantize`.
    random : integer Tensor or array, optional
        Random bits of stochastic rounding, one 32-bit word per element.
    scale, zero_point : Tensor, array or number, optional
        As in `bittrue.quantize`; one-dimensional ones lie along `axis`.

    Returns
    -------
    Tensor
        Of the shape, dtype and device of `t`, contiguous.

    Raises
    ------
    TypeError
        For a tensor that is not floating, or a complex format.
    ValueError, OverflowError
        As in `bittrue.quantize`.

    Notes
    -----
    Devices other than the CPU are served by tables for deterministic rounding into formats up to 8 bits, float16 and
    bfloat16, from float16, bfloat16 and float32, without `scale`. Block formats, wider formats, float64, stochastic
    and (from float32) hybrid rounding and the rules that raise take a detour through the CPU: right, but slow.

    ``torch.compile(fullgraph=True)`` traces it (`format` and the rules are constants of the graph), and so does
    ``torch.vmap``, except with stochastic rounding or tensors for `scale` and `zero_point`. Forward-mode
    differentiation and ``torch.func.grad`` do not know such operators; ``backward`` and ``torch.autograd`` do.

    Examples
    --------
    >>> x = torch.tensor([0.1, 3.3, 500.0], requires_grad=True)
    >>> y = quantize(x, "float8_e4m3fn")
    >>> y.tolist()
    [0.1015625, 3.25, 448.0]
    >>> y.sum().backward(); x.grad.tolist()
    [1.0, 1.0, 1.0]
    """
    if not isinstance(t, torch.Tensor):
        raise TypeError(f"t must be a torch tensor, not {type(t).__name__}; bittrue.quantize takes NumPy arrays")
    key = _key(format, rounding, overflow, nan, _parts(rule), negative, seed)
    if t.dtype not in _FLOATS:
        raise TypeError(f"t has dtype {t.dtype}; quantize takes float16, bfloat16, float32 or float64")
    return torch.ops.bittrue.quantize(t, key, _tensor(random), _tensor(scale), _tensor(zero_point), axis)


def _tensor(value: Any) -> torch.Tensor | None:
    if value is None or isinstance(value, torch.Tensor):
        return value
    if isinstance(value, (int, float)):  # which compilers trace
        return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.int64)
    return torch.from_numpy(np.array(value))


def _parts(rule: Any) -> Any:
    """Take a rule apart, so that Dynamo sees constants: of a rule made in traced code it would keep the defaults."""
    if isinstance(rule, Rule):
        return (
            "Rule", rule.rounding, rule.overflow, rule.nan, rule.flush_inputs, rule.flush_outputs, rule.negative,
            rule.nan_sign, rule.nan_code, rule.seed,
        )
    if isinstance(rule, BlockRule):
        return (
            "BlockRule", rule.rounding, rule.overflow, rule.nonfinite, rule.flush_subnormals, rule.zero_pair_shift,
            rule.min_code, rule.negative_zero, rule.top_bump, rule.scale_rule, rule.scale_floor,
        )
    return rule


@constant_result
def _key(format: Any, rounding: Any, overflow: Any, nan: Any, rule: Any, negative: Any, seed: Any) -> str:
    return _register(str(format) if isinstance(format, torch.dtype) else format, rounding, overflow, nan, rule,
                     negative, seed)


@lru_cache(maxsize=4096)
def _register(format: Any, rounding: Any, overflow: Any, nan: Any, rule: Any, negative: Any, seed: Any) -> str:
    """Check a conversion once, and return the key under which the operator finds it."""
    fmt = _format(format)
    if isinstance(rule, tuple):
        rule = (Rule if rule[0] == "Rule" else BlockRule)(*rule[1:])
    given: Rule | BlockRule
    if isinstance(fmt, BlockFormat):
        from ..blocks import block_rule

        for name, value in (("negative", negative), ("seed", seed)):
            if value is not None:
                raise ValueError(f"{name}={value!r} has no meaning for the block format {fmt.name}")
        given = block_rule(fmt, rounding, overflow, nan, rule)
    elif isinstance(fmt, ComplexFormat):
        raise TypeError(f"format={fmt.name!r} is complex; bittrue.torch.quantize takes real and block formats")
    elif isinstance(rule, BlockRule):
        raise TypeError(f"rule={rule!r} is for block formats, not for {fmt.name}")
    else:
        given = make_rule(rule, rounding=rounding, overflow=overflow, nan=nan, negative=negative, seed=seed)
        exact.check_rule(given, fmt)
    content = hashlib.sha256(f"{fmt!r} {given!r}".encode()).hexdigest()[:16]
    key = f"{fmt.name} {content}"
    _SPECS[key] = _Spec(fmt, given)
    return key


_SCHEMA = "(Tensor t, str spec, Tensor? random, Tensor? scale, Tensor? zero_point, int axis) -> Tensor"


@torch.library.custom_op("bittrue::quantize", mutates_args=(), schema=_SCHEMA)  # type: ignore[untyped-decorator,unused-ignore]
def _operator(
    t: torch.Tensor,
    spec: str,
    random: torch.Tensor | None,
    scale: torch.Tensor | None,
    zero_point: torch.Tensor | None,
    axis: int,
) -> torch.Tensor:
    found = _SPECS[spec]
    if t.device.type != "cpu":
        if random is None and scale is None and zero_point is None:
            table = _table(spec, t.dtype, t.device)
            if table is not None:
                return _look_up(t, *table)
        random, scale, zero_point = (None if x is None else x.cpu() for x in (random, scale, zero_point))
        return _on_cpu(t.cpu(), found, random, scale, zero_point, axis).to(t.device)
    return _on_cpu(t, found, random, scale, zero_point, axis)


def _on_cpu(
    t: torch.Tensor,
    spec: _Spec,
    random: torch.Tensor | None,
    scale: torch.Tensor | None,
    zero_point: torch.Tensor | None,
    axis: int,
) -> torch.Tensor:
    values = _numpy(t.contiguous())
    # NumPy asks the system for large pages, which torch does not: a fresh result then costs half the time.
    result = np.empty_like(values)
    _quantize(
        values,
        spec.format,
        rule=spec.rule,
        out=result,
        random=None if random is None else _numpy(random),
        scale=None if scale is None else _numpy(scale),
        zero_point=None if zero_point is None else _numpy(zero_point),
        axis=axis,
    )
    return torch.from_numpy(result.view(f"i{result.itemsize}")).view(t.dtype)


def _numpy(t: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return the memory of a CPU tensor as a NumPy array of its type."""
    t = t.detach()
    if t.dtype is torch.bfloat16:
        return t.view(torch.int16).numpy().view(ml_dtypes.bfloat16)  # type: ignore[no-any-return]
    return t.numpy()  # type: ignore[no-any-return]


@_operator.register_fake  # type: ignore[untyped-decorator,unused-ignore]
def _(t: Any, spec: str, random: Any, scale: Any, zero_point: Any, axis: int) -> torch.Tensor:
    return torch.empty_like(t, memory_format=torch.contiguous_format)


def _backward(context: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    return gradient, None, None, None, None, None


_operator.register_autograd(_backward)


@_operator.register_vmap  # type: ignore[untyped-decorator,unused-ignore]
def _(
    info: Any, dims: Any, t: Any, spec: str, random: Any, scale: Any, zero_point: Any, axis: int
) -> tuple[torch.Tensor, int]:
    rule = _SPECS[spec].rule
    if any(dim is not None for dim in dims[2:5]):
        raise NotImplementedError("quantize under torch.vmap: random, scale and zero_point must not be mapped")
    if random is not None or (isinstance(rule, Rule) and rule.rounding is Rounding.stochastic):
        raise NotImplementedError("quantize under torch.vmap: stochastic rounding is not supported")
    moved = t.movedim(dims[0], 0)
    place = axis if axis < 0 else axis + 1
    if -axis > moved.ndim - 1:
        raise ValueError(f"axis={axis!r} is out of range for {moved.ndim - 1} dimensions")
    return torch.ops.bittrue.quantize(moved, spec, random, scale, zero_point, place), 0


# --- tables for other devices -----------------------------------------------------------------------------------------


@lru_cache(maxsize=128)
def _table(spec: str, dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, int] | None:
    """Return the result for every index and how many bits of a pattern the index drops; None without a table."""
    found = _SPECS[spec]
    shift = _shift(found, dtype)
    if shift is None:
        return None
    name, integer = _FLOATS[dtype]
    bits = 8 * dtype.itemsize
    patterns = np.arange(1 << (bits - shift), dtype=np.uint64) << np.uint64(shift)
    values = torch.from_numpy(patterns.astype(f"u{bits // 8}").view(f"i{bits // 8}")).view(dtype)
    assert values.dtype == dtype and integer.itemsize == dtype.itemsize, name
    return _on_cpu(values, found, None, None, None, -1).to(device), shift


def _shift(spec: _Spec, dtype: torch.dtype) -> int | None:
    fmt, rule = spec
    if isinstance(fmt, BlockFormat) or not isinstance(rule, Rule) or dtype is torch.float64:
        return None
    if rule.rounding is Rounding.stochastic or "raise" in (rule.overflow.value, rule.nan.value):
        return None
    if dtype.itemsize == 2:
        return 0
    if rule.rounding is Rounding.hybrid:
        return None
    source = _format("float32")
    assert isinstance(source, FloatFormat)
    if isinstance(fmt, BoolFormat):
        return None
    if isinstance(fmt, IntFormat):  # the grid of halves up to the limit, and the bit that says "anything below"
        shift = source.mantissa_bits - (fmt.bits + 1)
        return shift if source.bits - shift <= _TABLE_BITS and rule.overflow is not Overflow.wrap else None
    assert isinstance(fmt, (FloatFormat, TaperedFormat))
    if fmt.bits <= 8:
        return sticky_shift(fmt, source)
    if not isinstance(fmt, FloatFormat) or fmt.name not in ("float16", "bfloat16"):
        return None
    # All values and midpoints lie on the index's grid without its lowest bit; subnormals of bfloat16 end at 2**-133.
    return source.mantissa_bits - (fmt.mantissa_bits + 2)


def _look_up(t: torch.Tensor, table: torch.Tensor, shift: int) -> torch.Tensor:
    """Return ``table[(pattern >> shift) | (any bit dropped)]``: plain operations that every device has."""
    pattern = t.detach().contiguous().view(_FLOATS[t.dtype][1])
    index = (pattern >> shift) & (table.numel() - 1)
    if shift:
        index = index | ((pattern & ((1 << shift) - 1)) != 0)
    return table[index.long()]
