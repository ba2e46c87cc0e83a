"""`emulate`: a model whose layers and products see rounded operands, added up in a stated accumulator."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from ..formats import Format
from ..studying.plan import Trial, parse_trial
from .products import FUNCTIONS, Plan, alone
from .sums import formats_fit, parse_sum

__all__ = ["Emulation", "emulate"]

_PARTS = ("weights", "activations", "outputs", "accumulate")


class Emulation:
    """What `emulate` did to a model; used in a ``with`` statement, it gives the model and undoes it at the end.

    Attributes
    ----------
    model : Module
    layers : list of str
        Names of the layers that round now: Linear, convolutions, MultiheadAttention.
    modules : list of str
        Names of the other modules in whose forward products of tensors round.
    skipped : list of str
        Names of modules whose products are left alone: transposed convolutions, recurrent and bilinear layers, scripts.
    """

    def __init__(
        self, model: torch.nn.Module, changed: dict[str, torch.nn.Module], layers: list[str], modules: list[str],
        skipped: list[str],
    ) -> None:
        self.model, self.layers, self.modules, self.skipped = model, layers, modules, skipped
        self._changed = list(changed.values())

    def __enter__(self) -> torch.nn.Module:
        return self.model

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Make the layers what they were."""
        for module in self._changed:
            if isinstance(module, _Emulated):
                module.__class__ = module._plain
                del module._bittrue
        self._changed = []


def emulate(
    model: torch.nn.Module,
    weights: Format | str | Trial | None = None,
    activations: Format | str | Trial | None = None,
    outputs: Format | str | Trial | None = None,
    *,
    accumulate: Any = None,
    overrides: Mapping[str, Mapping[str, Any] | None] | None = None,
) -> Emulation:
    """Let the products of a model see what a format makes of their operands, and add up as an accumulator does.

    Products are those of Linear, Conv1d to Conv3d and MultiheadAttention layers, and in the forward of all other
    modules ``torch.matmul``, ``mm``, ``bmm``, ``mv``, ``dot``, ``@``, ``addmm``, ``baddbmm``, ``addmv``, ``einsum`` of
    two tensors, ``functional.linear``, ``conv1d`` to ``conv3d`` and ``scaled_dot_product_attention``.

    The model is changed in place, until `Emulation.remove` or the end of the ``with`` statement; parameters,
    state_dict and gradients (straight-through) stay those of the model.

    Parameters
    ----------
    model : Module
    weights, activations, outputs : Format, name or text, optional
        As in `bittrue.study`: "mx6", "int8" (scaled by the largest magnitude of the tensor at each call),
        "int8@channel" (weights: per output channel), "float8_e4m3fn@none" (as it is), "int8@power_of_two". Blocks lie
        along the axis that is summed over: features, or channels of convolutions. In products of two tensors,
        parameters count as weights. Outputs are what a product gives, its bias added.
    accumulate : Format, name, text or callable, optional
        How products are added up, one after the other along the summed axis. "float32", "float32@pairwise",
        "float32@blocked:16", "float32@float64" (see `bittrue.matmul.ordered`); another float format, "@sequential" or
        "@pairwise", to which every product and every partial sum is rounded; "int32", "int32@wrap", "int32@saturate"
        for integer weights and activations, whose scales are multiplied in float64 afterwards. The bias is where float
        accumulators start; to others it is added. A callable takes float32 matrices [m, k] and [k, n] and returns their
        product: ``lambda a, b: aie.matmul(a, b, block="mx6", arch="aie2ps")``. Default: torch's own products and sums.
    overrides : mapping, optional
        Patterns of module names to what differs there: ``{"head*": None, "conv1": {"weights": "int8"}}``. None leaves
        the module's own products alone. Of several patterns that match the last one counts.

    Returns
    -------
    Emulation

    Raises
    ------
    ValueError
        When nothing is there to change, a layer is emulated already, a pattern matches none, or for scales by group
        and by least squares, and accumulators that do not fit.

    Examples
    --------
    >>> layer = torch.nn.Linear(2, 1, bias=False)
    >>> _ = layer.weight.data.copy_(torch.tensor([[1.0, 0.3]]))
    >>> with emulate(layer, weights="float4_e2m1fn@none") as model:
    ...     model(torch.ones(1, 2)).item()
    1.5
    >>> round(layer(torch.ones(1, 2)).item(), 3)
    1.3
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    base = {"weights": weights, "activations": activations, "outputs": outputs, "accumulate": accumulate}
    layers, modules, skipped = _sorted(model)
    candidates = {**layers, **modules}
    if not candidates:
        raise ValueError(f"model: {type(model).__name__} has no Linear, Conv or attention layer and no other products")
    plans: dict[str, Plan | None] = dict.fromkeys(candidates, _plan(base))
    if overrides is not None and not isinstance(overrides, Mapping):
        raise TypeError(f"overrides={overrides!r} must map patterns of module names to what differs there")
    for pattern, changes in (overrides or {}).items():
        if changes is not None and not isinstance(changes, Mapping):
            raise TypeError(f"overrides[{pattern!r}]={changes!r} must be None or a mapping: {{'weights': 'int8'}}")
        matched = [name for name in candidates if fnmatch.fnmatchcase(name, pattern)]
        if not matched:
            raise ValueError(f"overrides: {pattern!r} matches no module ({', '.join(list(layers)[:5])})")
        plan = None if changes is None else _plan({**base, **changes})
        plans.update(dict.fromkeys(matched, plan))
    for name, module in candidates.items():
        # A layer that is left alone needs a scope too: the one around it must not see its products.
        scope = name in modules or plans[name] is None
        kind: Any = type(module)
        module.__class__ = _scoped(kind) if scope else _LAYERS[kind]
        module._bittrue = plans[name]
    names = [[name for name in found if plans[name] is not None] for found in (layers, modules)]
    return Emulation(model, candidates, names[0], names[1], skipped)


def _sorted(
    model: torch.nn.Module,
) -> tuple[dict[str, torch.nn.Module], dict[str, torch.nn.Module], list[str]]:
    """Return the layers, the modules whose forward may multiply, and the names of those that are left alone."""
    layers, modules, skipped = {}, {}, []
    inside: set[torch.nn.Module] = set()  # the parts of layers
    for name, module in model.named_modules():
        if isinstance(module, _Emulated):
            raise ValueError(f"model: layer {name!r} is emulated already; remove that first")
        if module in inside:
            continue
        if type(module) in _LAYERS:
            layers[name] = module
            inside.update(module.children())
        elif isinstance(module, _OTHERS):
            skipped.append(name)
        elif not type(module).__module__.startswith("torch.nn.") or any(True for _ in module.children()):
            modules[name] = module
    return layers, modules, skipped


def _plan(given: Mapping[str, Any]) -> Plan:
    unknown = set(given) - set(_PARTS)
    if unknown:
        raise ValueError(f"overrides: {sorted(unknown)[0]!r} is none of {', '.join(_PARTS)}")
    trials: dict[str, Trial | None] = {}
    for name in _PARTS[:3]:
        value = given[name]
        trial = None if value is None else parse_trial(value)
        if trial is not None and (trial.group or trial.scale == "mse"):
            raise ValueError(f"{name}={value!r}: emulate scales by tensor or channel, and not by least squares")
        if trial is not None and trial.granularity == "channel" and name != "weights":
            raise ValueError(f"{name}={value!r}: scales by channel are for weights")
        trials[name] = trial
    how = parse_sum(given["accumulate"])
    formats_fit(how, trials["weights"], trials["activations"])
    return Plan(**trials, accumulate=how)


# --- modules that round -----------------------------------------------------------------------------------------------


class _Emulated:
    """What all changed modules have: their plan, and the class that they were of."""

    _plain: type
    _bittrue: Any


class _Linear(_Emulated, torch.nn.Linear):  # type: ignore[misc,unused-ignore]
    _plain = torch.nn.Linear

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._bittrue.linear(x, self.weight, self.bias)


class _Convolution(_Emulated):
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            x = functional.pad(x, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        return self._bittrue.convolution(
            x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class _Conv1d(_Convolution, torch.nn.Conv1d):  # type: ignore[misc,unused-ignore]
    _plain = torch.nn.Conv1d


class _Conv2d(_Convolution, torch.nn.Conv2d):  # type: ignore[misc,unused-ignore]
    _plain = torch.nn.Conv2d


class _Conv3d(_Convolution, torch.nn.Conv3d):  # type: ignore[misc,unused-ignore]
    _plain = torch.nn.Conv3d


class _Attention(_Emulated, torch.nn.MultiheadAttention):  # type: ignore[misc,unused-ignore]
    """The projections are Linear layers, the products between them those of scaled_dot_product_attention."""

    _plain = torch.nn.MultiheadAttention

    @alone
    def forward(
        self: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        key_padding_mask: torch.Tensor | None = None,
        need_weights: bool = True,
        attn_mask: torch.Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        plan: Plan = self._bittrue
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        single = query.ndim == 2
        batch = 0 if single or self.batch_first else 1
        given = [t[None] if single else t.transpose(0, batch) for t in (query, key, value)]
        if self._qkv_same_embed_dim:
            matrices = self.in_proj_weight.chunk(3)
        else:
            matrices = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, k, v = (plan.linear(t, w, b) for t, w, b in zip(given, matrices, biases))
        images, extra = q.shape[0], 0
        if self.bias_k is not None:
            k, v = (torch.cat([t, b.expand(images, 1, -1)], 1) for t, b in ((k, self.bias_k), (v, self.bias_v)))
            extra += 1
        if self.add_zero_attn:
            k, v = (functional.pad(t, (0, 0, 0, 1)) for t in (k, v))
            extra += 1
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.reshape(images, 1, 1, -1)
        if attn_mask is not None and attn_mask.ndim == 3:
            attn_mask = attn_mask.reshape(images, self.num_heads, *attn_mask.shape[1:])
        mask = None
        for part in (attn_mask, key_padding_mask):
            if part is not None:
                if part.dtype == torch.bool:
                    part = torch.zeros_like(part, dtype=q.dtype).masked_fill(part, -torch.inf)
                mask = part if mask is None else mask + part
        if mask is not None:
            mask = functional.pad(mask, (0, extra))
        q, k, v = (t.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2) for t in (q, k, v))
        mixed, shares = plan.attention(q, k, v, mask, self.dropout if self.training else 0.0)
        y = plan.linear(mixed.transpose(1, 2).flatten(-2), self.out_proj.weight, self.out_proj.bias)
        y = y[0] if single else y.transpose(0, batch)
        if not need_weights:
            return y, None
        shares = shares.mean(1) if average_attn_weights else shares
        return y, shares[0] if single else shares


class _Products(TorchFunctionMode):  # type: ignore[misc,unused-ignore]
    """Rounds the operands of the products that are made while it is active; without a plan it keeps others from it."""

    def __init__(self, plan: Plan | None) -> None:
        super().__init__()
        self.plan = plan

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        own = FUNCTIONS.get(function)
        if own is None:
            return function(*args, **kwargs)
        if self.plan is None:
            with torch._C.DisableTorchFunction():
                return function(*args, **kwargs)
        return own(self.plan, *args, **kwargs)


class _Scope(_Emulated):
    """A module in whose forward products round."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Let copies and pickles find the class, which is made when it is needed."""
        _, _, *state = cast("tuple[Any, ...]", super().__reduce_ex__(max(protocol, 2)))
        return (_restored, (self._plain,), *state)


@cache
def _scoped(plain: Any) -> Any:
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _Products(self._bittrue):
            return plain.forward(self, *args, **kwargs)

    return type(plain.__name__, (_Scope, plain), {"forward": forward, "_plain": plain, "__module__": plain.__module__})


def _restored(plain: type) -> Any:
    return torch.nn.Module.__new__(_scoped(plain))


_LAYERS: dict[type, type] = {c._plain: c for c in (_Linear, _Conv1d, _Conv2d, _Conv3d, _Attention)}
_OTHERS = (
    torch.nn.modules.conv._ConvTransposeNd, torch.nn.RNNBase, torch.nn.RNNCellBase, torch.nn.Bilinear,
    torch.jit.ScriptModule,
)
