"""Products of tensors that are rounded first and added up in a stated accumulator: layers, functions, attention.

Everything here computes beside `torch.overrides`: a mode that rounds the products of a model does not see them again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import torch
from torch.nn import functional

from ..kinds.block import BlockFormat
from ..studying.plan import Trial, largest_precise
from .quantizer import quantize
from .sums import Sum, multiply, takes

__all__ = ["FUNCTIONS", "Operand", "Plan", "alone"]

Method = TypeVar("Method", bound=Callable[..., Any])


def alone(method: Method) -> Method:
    """Keep modes from seeing the products that this method makes."""

    @wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        with torch._C.DisableTorchFunction():
            return method(*args, **kwargs)

    return run  # type: ignore[return-value]


@dataclass(frozen=True)
class Operand:
    """A tensor on the grid of a format, and its scale where it has one: the value is their product."""

    codes: torch.Tensor
    scale: torch.Tensor | None
    dtype: torch.dtype

    @property
    def value(self) -> torch.Tensor:
        """The rounded tensor."""
        return self.codes if self.scale is None else (self.codes * self.scale).to(self.dtype)

    def map(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Operand:
        """Change the shape of both; a scale of the whole tensor has none."""
        scale = self.scale if self.scale is None or self.scale.ndim == 0 else change(self.scale)
        return Operand(change(self.codes), scale, self.dtype)


def rounded(t: torch.Tensor, trial: Trial | None, axis: int, channel: int = 0) -> Operand:
    """Round a tensor as a trial says; blocks lie along `axis`, scales by channel are those of the axis `channel`."""
    if trial is None:
        return Operand(t, None, t.dtype)
    fmt = trial.format
    own = isinstance(fmt, BlockFormat)
    if trial.scale == "none" or (own and not trial.scaled_tensor):
        return Operand(quantize(t, fmt, axis=axis), None, t.dtype)
    size = t.detach().abs().to(torch.promote_types(t.dtype, torch.float32))
    size = size.nan_to_num(nan=0.0, posinf=0.0)  # as in a study, finite values choose the scale
    if trial.granularity == "channel" and t.ndim > 1 and not own:
        keep = channel % t.ndim
        largest = size.amax(dim=[d for d in range(t.ndim) if d != keep], keepdim=True)
    else:
        largest = size.amax() if size.numel() else size.new_zeros(())
    scale = (largest.double() / largest_precise(fmt)).float().clamp(2.0**-126, torch.finfo(torch.float32).max)
    if trial.scale == "power_of_two" and not own:
        fraction, exponent = torch.frexp(largest.double() / largest_precise(fmt))
        scale = torch.ldexp(torch.ones_like(scale), (exponent - (fraction == 0.5).int()).clamp(-126, 127))
    scale = torch.where(largest > 0, scale, torch.ones_like(scale))
    if own:
        return Operand(quantize(t, fmt, scale=scale, axis=axis), None, t.dtype)
    wide = t if t.dtype == torch.float64 else t.float()  # a quotient of 16 bits would round twice
    return Operand(quantize(wide / scale, fmt, axis=axis), scale, t.dtype)


@dataclass(frozen=True)
class Plan:
    """What a layer's tensors are rounded to, and how its products are added up; None: as torch does it."""

    weights: Trial | None
    activations: Trial | None
    outputs: Trial | None
    accumulate: Sum | None

    def _out(self, y: torch.Tensor, axis: int = -1) -> torch.Tensor:
        return rounded(y, self.outputs, axis).value

    def _trial(self, t: torch.Tensor) -> Trial | None:
        """Return the format of an operand of a product of any two tensors: parameters are weights."""
        return self.weights if isinstance(t, torch.nn.Parameter) else self.activations

    def _add_up(self, a: Operand, b: Operand, bias: torch.Tensor | None) -> torch.Tensor:
        """Multiply [..., m, k] by [..., k, n] with the same leading sizes in the accumulator."""
        how = self.accumulate
        assert how is not None
        takes(how, a.dtype)
        if how.function is None and not how.integer:
            return multiply(a.value, b.value, bias, how).to(a.dtype)
        if how.integer:
            y = multiply(a.codes, b.codes, None, how)
            for scale in (a.scale, b.scale):
                y = y if scale is None else y * scale.double()
        else:
            y = multiply(a.value, b.value, None, how)
        if bias is not None:
            y = y + (bias if bias.ndim == 1 else bias[..., None, :])
        return y.to(a.dtype)

    # --- products of two tensors --------------------------------------------------------------------------------------

    def _product(
        self, a: torch.Tensor, b: torch.Tensor, trials: tuple[Trial | None, Trial | None] | None = None
    ) -> torch.Tensor:
        """``torch.matmul`` of rounded operands."""
        first, second = (self._trial(a), self._trial(b)) if trials is None else trials
        left = rounded(a, first, -1, -2 if a.ndim > 1 else 0)
        right = rounded(b, second, -2 if b.ndim > 1 else -1, -1)
        if self.accumulate is None:
            return torch.matmul(left.value, right.value)
        vector = a.ndim == 1, b.ndim == 1
        if vector[0]:
            left = left.map(lambda t: t[None])
        if vector[1]:
            right = right.map(lambda t: t[:, None])
        lead = torch.broadcast_shapes(left.codes.shape[:-2], right.codes.shape[:-2])
        left = left.map(lambda t: t.expand(*lead, *t.shape[-2:]))
        right = right.map(lambda t: t.expand(*lead, *t.shape[-2:]))
        y = self._add_up(left, right, None)
        y = y.squeeze(-1) if vector[1] else y
        return y.squeeze(-1 if vector[1] else -2) if vector[0] else y

    @alone
    def matmul(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """``torch.matmul`` and its kin."""
        return self._out(self._product(a, b))

    @alone
    def addmm(
        self, start: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1
    ) -> torch.Tensor:
        """``beta * start + alpha * (a @ b)``; the addition is torch's. Where `beta` is 0, `start` does not matter."""
        product = alpha * self._product(a, b)
        return self._out(product if beta == 0 else beta * start + product)

    @alone
    def linear(self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """``torch.nn.functional.linear``."""
        left, right = rounded(input, self.activations, -1), rounded(weight, self.weights, -1)
        if self.accumulate is None:
            return self._out(functional.linear(left.value, right.value, bias))
        rows = left.map(lambda t: t.reshape(math.prod(input.shape[:-1]), input.shape[-1]))
        columns = right.map(lambda t: t[None].mT if t.ndim == 1 else t.mT)
        y = self._add_up(rows, columns, None if bias is None else bias.reshape(-1))
        return self._out(y.reshape(input.shape[:-1] + weight.shape[:-1]))

    @alone
    def einsum(self, equation: str, *operands: Any) -> torch.Tensor:
        """``torch.einsum`` of two tensors, as a matrix product over all summed indices in their order on the left."""
        tensors = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
        found = _labels(equation, tensors)
        if found is None:
            raise NotImplementedError(
                f"torch.einsum({equation!r}) is not emulated: it takes two tensors, letters, and sums over shared ones"
            )
        left, right, out = found
        summed = [x for x in left if x in right and x not in out]
        if not summed:
            return torch.einsum(equation, *tensors)
        batch = [x for x in left if x in right and x in out]
        own = [x for x in left if x not in right], [x for x in right if x not in left]
        sizes = {**dict(zip(left, tensors[0].shape)), **dict(zip(right, tensors[1].shape))}

        def arranged(t: torch.Tensor, labels: str, *groups: list[str]) -> torch.Tensor:
            order = [labels.index(x) for group in (batch, *groups) for x in group]
            shape = [sizes[x] for x in batch] + [math.prod(sizes[x] for x in group) for group in groups]
            return t.permute(order).reshape(shape)

        a, b = arranged(tensors[0], left, own[0], summed), arranged(tensors[1], right, summed, own[1])
        z = self._product(a, b, (self._trial(tensors[0]), self._trial(tensors[1])))
        places = batch + own[0] + own[1]
        return self._out(z.reshape([sizes[x] for x in places]).permute([places.index(x) for x in out]))

    # --- convolutions -------------------------------------------------------------------------------------------------

    @alone
    def convolution(
        self,
        input: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> torch.Tensor:
        """``torch.nn.functional.conv1d`` to ``conv3d``; blocks lie along the channels.

        With an accumulator each output is a sum over channels, then places of the kernel: the order of the weights.
        """
        places = weight.ndim - 2
        left, right = rounded(input, self.activations, -1 - places), rounded(weight, self.weights, 1)
        if self.accumulate is None:
            function = (functional.conv1d, functional.conv2d, functional.conv3d)[places - 1]
            y = function(left.value, right.value, bias, stride, padding, dilation, groups)
            return self._out(y, -1 - places)
        single = input.ndim == places + 1
        if single:
            left = left.map(lambda t: t[None])
        steps, gaps = _each(stride, places), _each(dilation, places)
        edges = _edges(padding, weight.shape[2:], gaps)
        windows = left.map(lambda t: _windows(functional.pad(t, edges), weight.shape[2:], steps, gaps, groups))
        filters = right.map(lambda t: t.reshape(groups, t.shape[0] // groups, -1).mT)
        shape = _padded(left.codes.shape[2:], edges)
        outputs = [(n - gap * (k - 1) - 1) // step + 1 for n, k, step, gap in zip(shape, weight.shape[2:], steps, gaps)]
        y = self._add_up(windows, filters, None if bias is None else bias.reshape(groups, -1))
        images = left.codes.shape[0]
        y = y.reshape(groups, images, *outputs, weight.shape[0] // groups).movedim(-1, 1)
        y = y.reshape(weight.shape[0], images, *outputs).transpose(0, 1)
        return self._out(y[0] if single else y, -1 - places)

    # --- attention ----------------------------------------------------------------------------------------------------

    @alone
    def scaled_dot_product_attention(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        """``torch.nn.functional.scaled_dot_product_attention``: both of its products have rounded operands."""
        if self.activations is None and self.accumulate is None:
            options = {"scale": scale, **({"enable_gqa": True} if enable_gqa else {})}
            return self._out(
                functional.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, **options)
            )
        if enable_gqa:
            key, value = (t.repeat_interleave(query.shape[-3] // t.shape[-3], -3) for t in (key, value))
        mask = attn_mask
        if is_causal:
            if mask is not None:
                raise RuntimeError("attn_mask and is_causal=True exclude each other")
            mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
        if mask is not None and mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, -math.inf)
        return self._out(self.attention(query, key, value, mask, dropout_p, scale)[0])

    def attention(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        dropout: float,
        scale: float | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ``softmax(query @ key.T * scale + mask) @ value``, and the weights of the values."""
        scores = self._product(query, key.mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
        if mask is not None:
            scores = scores + mask
        shares = functional.dropout(scores.softmax(-1), dropout) if dropout else scores.softmax(-1)
        return self._product(shares, value), shares


def _labels(equation: str, tensors: Sequence[Any]) -> tuple[str, str, str] | None:
    """Return the indices of two operands and of the result, or None for what is no product of two matrices."""
    inputs, arrow, out = equation.replace(" ", "").partition("->")
    left, comma, right = inputs.partition(",")
    if not comma or len(tensors) != 2 or not (left + right).isalpha():
        return None
    if not arrow:
        out = "".join(sorted(x for x in left + right if (left + right).count(x) == 1))
    unique = all(len(set(part)) == len(part) for part in (left, right, out))
    alone = [x for x in left + right if (x in left) != (x in right)]
    if not unique or any(x not in out for x in alone) or any(x not in left + right for x in out):
        return None
    return left, right, out


def _each(value: Any, count: int) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * count if len(values) == 1 else values


def _edges(padding: Any, kernel: Sequence[int], gaps: Sequence[int]) -> list[int]:
    """Return what `torch.nn.functional.pad` takes, the last axis first."""
    found: list[int] = []
    for place in reversed(range(len(kernel))):
        if padding == "same":
            total = gaps[place] * (kernel[place] - 1)
            found += [total // 2, total - total // 2]
        else:
            found += [0, 0] if padding == "valid" else [_each(padding, len(kernel))[place]] * 2
    return found


def _padded(shape: Sequence[int], edges: Sequence[int]) -> list[int]:
    return [n + edges[2 * k] + edges[2 * k + 1] for n, k in zip(shape, reversed(range(len(shape))))]


def _windows(
    x: torch.Tensor, kernel: Sequence[int], steps: Sequence[int], gaps: Sequence[int], groups: int
) -> torch.Tensor:
    """Return [groups, images * outputs, channels of a group * places of the kernel]."""
    count = len(kernel)
    for place in range(count):
        x = x.unfold(2 + place, gaps[place] * (kernel[place] - 1) + 1, steps[place])[..., :: gaps[place]]
    x = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])  # images, groups, channels, outputs, kernel
    outputs, places = list(range(3, 3 + count)), list(range(3 + count, 3 + 2 * count))
    x = x.permute(1, 0, *outputs, 2, *places)
    return x.reshape(groups, math.prod(x.shape[1 : 2 + count]), math.prod(x.shape[2 + count :]))


# --- functions that are products --------------------------------------------------------------------------------------


#: Names under which torch takes operands (NumPy's among them), those that come first before the others.
_OPERANDS = ("input", "x", "a", "x1", "mat1", "batch1", "mat", "other", "x2", "tensor", "mat2", "batch2", "vec")


def _named(kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Return operands that are given by name in their order."""
    for name in kwargs:
        if name not in _OPERANDS:
            raise TypeError(f"{name}= is not emulated; leave the module alone with overrides={{name: None}}")
    return [kwargs[name] for name in _OPERANDS if name in kwargs]


def _two(plan: Plan, *args: Any, out: torch.Tensor | None = None, **kwargs: Any) -> torch.Tensor:
    y = plan.matmul(*args, *_named(kwargs))
    return y if out is None else out.copy_(y)


def _three(
    plan: Plan, *args: Any, beta: float = 1, alpha: float = 1, out: torch.Tensor | None = None, **kwargs: Any
) -> torch.Tensor:
    y = plan.addmm(*args, *_named(kwargs), beta=beta, alpha=alpha)
    return y if out is None else out.copy_(y)


def _swapped(plan: Plan, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return plan.matmul(b, a)


def _refused(plan: Plan, *args: Any, **kwargs: Any) -> torch.Tensor:
    raise NotImplementedError(
        "torch.nn.functional.multi_head_attention_forward is not emulated; take torch.nn.MultiheadAttention, or leave "
        "the module alone with overrides={name: None}"
    )


#: What replaces which function: ``FUNCTIONS[function](plan, *args, **kwargs)``.
FUNCTIONS: dict[Any, Callable[..., torch.Tensor]] = {
    **dict.fromkeys(
        (
            torch.matmul, torch.mm, torch.bmm, torch.mv, torch.dot, torch.linalg.matmul,
            torch.Tensor.matmul, torch.Tensor.mm, torch.Tensor.bmm, torch.Tensor.mv, torch.Tensor.dot,
            torch.Tensor.__matmul__,
        ),
        _two,
    ),
    torch.Tensor.__rmatmul__: _swapped,
    **dict.fromkeys(
        (torch.addmm, torch.baddbmm, torch.addmv, torch.Tensor.addmm, torch.Tensor.baddbmm, torch.Tensor.addmv),
        _three,
    ),
    torch.einsum: Plan.einsum,
    functional.linear: Plan.linear,
    **dict.fromkeys((functional.conv1d, functional.conv2d, functional.conv3d), Plan.convolution),
    functional.scaled_dot_product_attention: Plan.scaled_dot_product_attention,
    functional.multi_head_attention_forward: _refused,
}
