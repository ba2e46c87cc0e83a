"""Matrix products of tensors in a stated accumulator: what `accumulate` says, and the operator that adds up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from .. import matmul as products
from ..accumulators import Accumulator, accumulator
from ..formats import Format, IntFormat
from ..formats import format as _format
from ..rounding import suggestion
from .quantizer import constant_result

__all__ = ["Sum", "formats_fit", "multiply", "parse_sum", "takes"]

Plain = np.ndarray[Any, Any]
Function = Callable[[Plain, Plain], Any]

_ORDERS = ("sequential", "pairwise", "blocked", "float64")
_LIMITS = ("raise", "wrap", "saturate")


@dataclass(frozen=True)
class Sum:
    """How products are added up: in an accumulator, or by a function of two matrices.

    Attributes
    ----------
    format : Format or None
        Of the accumulator; None: `function` does it.
    order : str
        Floats: one of `bittrue.matmul.ORDERS`. Integers: what becomes of a sum beyond the accumulator.
    block : int
        Products in a block, of the order "blocked".
    function : callable or None
    """

    format: Format | None
    order: str = "sequential"
    block: int = 16
    function: Function | None = None

    @property
    def integer(self) -> bool:
        """Whether integers are added up, without rounding."""
        return isinstance(self.format, IntFormat)

    @property
    def dtype(self) -> torch.dtype:
        """In which the operator computes and returns sums."""
        wide = self.integer or (self.format is not None and self.format.name == "float64")
        return torch.float64 if wide else torch.float32

    def matrices(self, a: Plain, b: Plain, bias: Plain | None) -> Plain:
        """Multiply [m, k] by [k, n]; a bias is where float accumulators start."""
        if self.function is not None:
            found = np.asarray(self.function(a, b))
            if found.shape != (a.shape[0], b.shape[1]):
                raise ValueError(
                    f"accumulate={self.function!r} gave shape {found.shape} for {a.shape} by {b.shape}, not "
                    f"{(a.shape[0], b.shape[1])}"
                )
            return found
        if isinstance(self.format, IntFormat):
            whole = (_integers(a, "activations"), _integers(b, "weights"))
            return products.integer(*whole, bits=self.format.bits, overflow=self.order)
        assert self.format is not None
        if self.format.name == "float32":
            return products.ordered(a, b, bias, order=self.order, block=self.block)
        return self._accumulator.matmul(a, b, bias)

    @property
    def _accumulator(self) -> Accumulator:
        assert self.format is not None
        return accumulator(self.format, [_format("float32")] * 2, self.order, "saturate")


def _integers(x: Plain, name: str) -> Plain:
    whole = x.astype(np.int64)
    if not (whole == x).all():
        raise ValueError(f"{name} has values that are no integers (NaN or Inf), which integer accumulators cannot add")
    return whole


def parse_sum(accumulate: Any) -> Sum | None:
    """Return what text such as "float32@blocked:32", "float16@pairwise" or "int32@wrap" means; a function is one.

    Raises
    ------
    ValueError
        For formats and orders that cannot accumulate.

    Examples
    --------
    >>> parse_sum("float32@blocked:32").order, parse_sum("int32").order
    ('blocked', 'raise')
    """
    if accumulate is None or isinstance(accumulate, Sum):
        return accumulate
    if callable(accumulate) and not isinstance(accumulate, (Format, type)):
        return Sum(None, function=accumulate)
    name, _, order = accumulate.partition("@") if isinstance(accumulate, str) else (accumulate, "", "")
    if name == "exact":
        raise ValueError(f"accumulate={accumulate!r} is not offered here; 'float32@float64' rounds once, at the end")
    kind = _format(name)
    if kind.kind not in ("int", "float", "tapered"):
        raise ValueError(f"accumulate={accumulate!r} is no format of an accumulator; take integers or floats")
    if isinstance(kind, IntFormat):
        known: tuple[str, ...] = _LIMITS
        if not kind.signed or kind.bits < 2:
            raise ValueError(f"accumulate={accumulate!r}: integer accumulators are signed, of 2 to 64 bits")
    else:
        known = _ORDERS if kind.name == "float32" else _ORDERS[:2]
    order, _, size = order.partition(":")
    order = order or known[0]
    if order not in known or (size and (order != "blocked" or not size.isdecimal() or not int(size))):
        shown = ", ".join("blocked:N" if k == "blocked" else k for k in known)
        raise ValueError(f"accumulate={accumulate!r}: {kind.name} takes {shown}{suggestion(order, known)}")
    found = Sum(kind, order, int(size or 16))
    if not isinstance(kind, IntFormat):
        try:
            found._accumulator if kind.name != "float32" else None  # noqa: B018  checks the format
        except TypeError as error:
            raise ValueError(f"accumulate={accumulate!r} cannot add up floats: {error}") from None
    return found


# --- the operator -----------------------------------------------------------------------------------------------------

#: The operator takes strings and tensors only: sums by a key.
_SUMS: dict[str, Sum] = {}


def multiply(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, how: Sum) -> torch.Tensor:
    """Multiply [..., m, k] by [..., k, n] with the same leading sizes; returns `Sum.dtype`.

    A bias of shape [n], or with the leading sizes before it, is where float accumulators start. Gradients are those of
    ``torch.matmul`` and an addition.
    """
    return torch.ops.bittrue.matmul(a, b, bias, _key(how))


@constant_result
def _key(how: Sum) -> str:
    return _register(how)


@lru_cache(maxsize=1024)
def _register(how: Sum) -> str:
    key = f"{how.format} {how.order}:{how.block} {len(_SUMS)}"
    _SUMS[key] = how
    return key


_SCHEMA = "(Tensor a, Tensor b, Tensor? bias, str how) -> Tensor"


@torch.library.custom_op("bittrue::matmul", mutates_args=(), schema=_SCHEMA)  # type: ignore[untyped-decorator,unused-ignore]
def _operator(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, how: str) -> torch.Tensor:
    found = _SUMS[how]
    x, y = (t.detach().to("cpu", found.dtype).numpy() for t in (a, b))
    start = None if bias is None else bias.detach().to("cpu", found.dtype).numpy()
    lead = a.shape[:-2]
    result = np.empty((*lead, a.shape[-2], b.shape[-1]), np.float64 if found.dtype == torch.float64 else np.float32)
    for at in np.ndindex(*lead):
        own = start[at] if start is not None and start.ndim > 1 else start
        result[at] = found.matrices(x[at], y[at], own)
    return torch.from_numpy(result).to(a.device)


@_operator.register_fake  # type: ignore[untyped-decorator,unused-ignore]
def _(a: Any, b: Any, bias: Any, how: str) -> torch.Tensor:
    return a.new_empty((*a.shape[:-1], b.shape[-1]), dtype=_SUMS[how].dtype)


def _remember(ctx: Any, inputs: Any, output: Any) -> None:  # torch passes these by name
    a, b, bias, _ = inputs
    ctx.save_for_backward(a, b)
    ctx.bias = None if bias is None else (bias.ndim, bias.dtype)


def _backward(context: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    a, b = context.saved_tensors
    left = (gradient @ b.to(gradient.dtype).mT).to(a.dtype)
    right = (a.to(gradient.dtype).mT @ gradient).to(b.dtype)
    if context.bias is None:
        return left, right, None, None
    dimensions, dtype = context.bias
    summed = gradient.sum(-2) if dimensions > 1 else gradient.sum(tuple(range(gradient.ndim - 1)))
    return left, right, summed.to(dtype), None


_operator.register_autograd(_backward, setup_context=_remember)


@_operator.register_vmap  # type: ignore[untyped-decorator,unused-ignore]
def _(info: Any, dims: Any, a: Any, b: Any, bias: Any, how: str) -> tuple[torch.Tensor, int]:
    """Make the mapped axis one more leading one."""

    def moved(t: Any, dim: int | None) -> Any:
        return t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)

    first, second = moved(a, dims[0]), moved(b, dims[1])
    third = None if bias is None else moved(bias, dims[2])
    if third is not None:
        lead = first.shape[:-2]
        own = third.shape[1:-1]  # the leading sizes before the mapped one, where the bias has them
        third = third.reshape(-1, *((1,) * (len(lead) - 1 - len(own))), *own, third.shape[-1])
        third = third.expand(*lead, third.shape[-1])
    return torch.ops.bittrue.matmul(first, second, third, how), 0


def takes(how: Sum, dtype: torch.dtype) -> None:
    """Raise for tensors that the accumulator would round."""
    if dtype == torch.float64 and how.dtype != torch.float64:
        raise TypeError(f"accumulate={how.format or how.function}: tensors are float64; only 'float64' adds these up")


def formats_fit(how: Sum | None, weights: Any, activations: Any) -> None:
    """Raise where an integer accumulator gets anything but integers."""
    if how is not None and how.integer:
        for name, trial in (("weights", weights), ("activations", activations)):
            if trial is None or not isinstance(trial.format, IntFormat):
                raise ValueError(f"accumulate={how.format} adds up integers: {name}= must be an integer format")

