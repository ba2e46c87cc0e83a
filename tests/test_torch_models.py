"""Emulated models: every product has the operands and the sums that the same arithmetic, written down, gives."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest

import bittrue as bt
from bittrue import aie
from bittrue import matmul as products

torch = pytest.importorskip("torch")

from bittrue import torch as btorch  # noqa: E402
from bittrue.torch.sums import parse_sum  # noqa: E402

functional = torch.nn.functional


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(16, 8, 3, padding=1)
        self.body = torch.nn.Sequential(torch.nn.Linear(32, 48), torch.nn.ReLU())
        self.head = torch.nn.Linear(48, 5, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.conv(x).flatten(1)))


def rounded(t: torch.Tensor, name: str, **options: object) -> torch.Tensor:
    return torch.from_numpy(bt.quantize(t.detach().numpy(), name, **options))


def test_layers_see_rounded_weights_and_inputs() -> None:
    torch.manual_seed(0)
    net, x = Net(), torch.randn(3, 16, 2, 2)
    plain = net(x)
    linear, conv = torch.nn.functional.linear, torch.nn.functional.conv2d
    hidden = conv(rounded(x, "mx9", axis=1), rounded(net.conv.weight, "mx6", axis=1), net.conv.bias, padding=1)
    hidden = linear(rounded(hidden.flatten(1), "mx9"), rounded(net.body[0].weight, "mx6"), net.body[0].bias).relu()
    expected = linear(rounded(hidden, "mx9"), rounded(net.head.weight, "mx6"))
    keys = list(net.state_dict())
    with btorch.emulate(net, weights="mx6", activations="mx9") as model:
        assert model is net and torch.equal(net(x), expected) and list(net.state_dict()) == keys
        assert torch.equal(copy.deepcopy(net)(x), expected)
        net(x).sum().backward()
        assert all(p.grad is not None for p in net.parameters())
        compiled = torch.compile(net, fullgraph=True, backend="eager")
        assert torch.equal(compiled(x), expected)
    assert torch.equal(net(x), plain) and type(net.head) is torch.nn.Linear


def test_overrides_and_a_permanent_change() -> None:
    net, x = Net(), torch.randn(3, 16, 2, 2)
    head = {"weights": "int8@channel", "outputs": "float16@none"}
    done = btorch.emulate(net, "mx4", overrides={"body*": None, "conv": None, "head": head})
    assert done.layers == ["head"] and done.modules == [""] and done.skipped == []
    hidden = net.body(net.conv(x).flatten(1))
    scale = net.head.weight.detach().abs().amax(1, keepdim=True) / 127
    weight = torch.clamp(torch.round(net.head.weight / scale), -127, 127) * scale
    assert torch.equal(net(x), torch.nn.functional.linear(hidden, weight).half().float())
    with pytest.raises(ValueError, match="emulated already"):
        btorch.emulate(net, "mx4")
    done.remove()
    assert torch.equal(net(x), net.head(hidden))


@pytest.mark.parametrize("name", ["int8@power_of_two", "hifloat8", "nvfp4", "float8_e4m3fn", "float8_e4m3fn@none"])
def test_scales_of_a_model_are_those_of_a_study(name: str) -> None:
    torch.manual_seed(1)
    layer = torch.nn.Linear(64, 24, bias=False)
    (cost,) = bt.study({"w": layer.weight.detach().numpy()}, [name]).costs
    with btorch.emulate(layer, name):
        seen = layer(torch.eye(64)).T.double()
    noise = ((seen - layer.weight.detach().double()) ** 2).sum().item()
    assert noise == pytest.approx(cost.noise, rel=1e-6)


def test_values_that_are_not_finite_have_no_part_in_a_scale() -> None:
    layer = torch.nn.Linear(4, 4, bias=False)
    layer.weight.data = torch.eye(4)
    with btorch.emulate(layer, activations="int8"):
        seen = layer(torch.tensor([2.0, 1.0, 0.0, torch.inf])), layer(torch.tensor([2.0, 1.0, 0.0, -2.0]))
    one = 64 * (2.0 / 127)  # 1 / (2 / 127) = 63.5
    assert torch.equal(seen[1], torch.tensor([2.0, one, 0.0, -2.0]))
    assert torch.equal(seen[0], torch.tensor([2.0, one, 0.0, 2.0]))  # saturates
    with btorch.emulate(layer.double(), activations="int8"):
        seen = layer(torch.tensor([127e40, 1e40, 0.0, 1e308], dtype=torch.float64))
        assert seen.isfinite().all() and seen[3] == 127 * torch.finfo(torch.float32).max


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("accumulate", ["float32", "float16", "int32"])
def test_products_of_nothing(accumulate: str) -> None:
    for layer, shape, result in (
        (torch.nn.Conv2d(4, 2, 3, groups=2), (0, 4, 5, 6), (0, 2, 3, 4)),
        (torch.nn.Linear(4, 3), (2, 0, 4), (2, 0, 3)),
        (torch.nn.Linear(0, 3), (2, 0), (2, 3)),
    ):
        with btorch.emulate(layer, "int8", "int8", accumulate=accumulate):
            seen = layer(torch.zeros(shape))
        assert torch.equal(seen, layer(torch.zeros(shape))) and seen.shape == result


def test_what_emulation_refuses() -> None:
    net = Net()
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module, not int"):
        btorch.emulate(3, "mx6")  # type: ignore[arg-type]
    for overrides, words in (({"head": "int8"}, "overrides.'head'.='int8' must be None or"), (["head"], "must map")):
        with pytest.raises(TypeError, match=words):
            btorch.emulate(net, "mx6", overrides=overrides)  # type: ignore[arg-type]
    for mistake, words in (
        ({"weights": "int8@group:32"}, "by tensor or channel"),
        ({"activations": "int8@channel"}, "for weights"),
        ({"weights": "mx6", "overrides": {"tail": None}}, "matches no module"),
        ({"weights": "mx6", "overrides": {"head": {"weight": "mx6"}}}, "none of weights"),
        ({"weights": "mx5"}, "mx"),
    ):
        with pytest.raises(ValueError, match=words):
            btorch.emulate(net, **mistake)
    assert type(net.head) is torch.nn.Linear
    with pytest.raises(ValueError, match="no Linear, Conv or attention layer"):
        btorch.emulate(torch.nn.ReLU())
    some = torch.nn.Sequential(torch.nn.LSTM(8, 8), torch.nn.Linear(8, 8), torch.nn.ConvTranspose1d(2, 2, 3))
    assert btorch.emulate(some, "mx6").skipped == ["0", "2"]


# --- products that are no layers --------------------------------------------------------------------------------------


def mx9(t: torch.Tensor, axis: int = -1) -> torch.Tensor:
    return rounded(t, "mx9", axis=axis)


class Functions(torch.nn.Module):
    """One product of each kind; `weight` is a parameter [24, 32], the others are activations."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(24, 32))

    def forward(self, x: torch.Tensor, kind: str) -> torch.Tensor:
        w, y = self.weight, x.transpose(-1, -2)
        return {
            "@": lambda: x @ y,
            "matmul": lambda: torch.matmul(x, other=y),
            "bmm": lambda: torch.bmm(x, y),
            "mm": lambda: x[0].mm(y[1]),
            "mm by name": lambda: torch.mm(mat2=y[1], input=x[0]),
            "mv": lambda: torch.mv(x[0], x[1, 0]),
            "dot": lambda: x[0, 0].dot(x[1, 0]),
            "weight left": lambda: w @ y,
            "linear": lambda: functional.linear(input=x, weight=w),
            "addmm": lambda: torch.addmm(x[0] @ y[0], mat1=x[0], mat2=y[1], beta=0, alpha=2),
            "addmm of NaN": lambda: torch.addmm(torch.tensor(torch.nan), mat2=y[1], mat1=x[0], beta=0, alpha=2),
            "einsum": lambda: torch.einsum("bik,bjk->bji", x, x * 2),
            "einsum weight": lambda: torch.einsum("bik,jk->bij", x, w),
            "conv1d": lambda: functional.conv1d(y, w[..., None], padding=0),
            "attention": lambda: functional.scaled_dot_product_attention(x, x * 2, x * 3, is_causal=True),
        }[kind]()


def by_hand(x: torch.Tensor, w: torch.Tensor, kind: str) -> torch.Tensor:
    y = x.transpose(-1, -2)
    a, b, weight = mx9(x), mx9(y, -2), rounded(w, "mx6")
    if kind == "attention":
        scores = mx9(x) @ mx9((x * 2).transpose(-1, -2), -2) * 32**-0.5
        scores = scores + torch.zeros(5, 5).masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -torch.inf)
        return mx9(scores.softmax(-1)) @ mx9(x * 3, -2)
    return {
        "@": a @ b, "matmul": a @ b, "bmm": a @ b, "mm": a[0] @ b[1], "mv": a[0] @ a[1, 0], "dot": a[0, 0] @ a[1, 0],
        "weight left": weight @ b, "linear": a @ weight.T, "addmm": 2 * (a[0] @ b[1]),
        "mm by name": a[0] @ b[1], "addmm of NaN": 2 * (a[0] @ b[1]),
        "einsum": (mx9(x) @ mx9((x * 2).transpose(-1, -2), -2)).transpose(-1, -2), "einsum weight": a @ weight.T,
        "conv1d": (a @ weight.T).transpose(-1, -2),
    }[kind]


KINDS = "@ matmul bmm mm mv dot linear addmm einsum conv1d attention".split()
KINDS += ["weight left", "einsum weight", "mm by name", "addmm of NaN"]


@pytest.mark.parametrize("kind", KINDS)
def test_products_in_the_forward_of_a_module(kind: str) -> None:
    torch.manual_seed(0)
    module, x = Functions(), torch.randn(2, 5, 32)
    plain = module(x, kind)
    with btorch.emulate(module, "mx6", "mx9") as model:
        found = model(x, kind)
        assert torch.allclose(found, by_hand(x, module.weight.detach(), kind), rtol=1e-6, atol=1e-6)
        assert not torch.allclose(found, plain, rtol=1e-4, atol=1e-4)
        assert torch.equal(copy.deepcopy(model)(x, kind), found)
    assert torch.equal(module(x, kind), plain) and type(module) is Functions


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.linear = Functions(), torch.nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) @ self.inner(x, "@")[..., :1, :].mT.expand(-1, -1, 4)[:, :1].expand(-1, 32, -1)


def test_a_module_that_is_left_alone_is_not_seen_by_the_one_around_it() -> None:
    torch.manual_seed(0)
    model, x = Outer(), torch.randn(2, 5, 32)
    inner, linear = model.inner(x, "@"), model.linear(x)
    overrides = {"inner": None, "linear": None}
    done = btorch.emulate(model, "mx4", "mx4", overrides=overrides)
    assert done.layers == [] and done.modules == [""]
    assert torch.equal(model.inner(x, "@"), inner) and torch.equal(model.linear(x), linear)
    right = inner[..., :1, :].mT.expand(-1, -1, 4)[:, :1].expand(-1, 32, -1)
    assert torch.equal(model(x), rounded(linear, "mx4") @ rounded(right, "mx4", axis=-2))
    again = pickle.loads(pickle.dumps(model))
    assert torch.equal(again(x), model(x))
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    assert torch.equal(compiled(x), model(x))
    model(x).sum().backward()
    assert model.linear.weight.grad is not None
    done.remove()
    assert type(model) is Outer and type(model.linear) is torch.nn.Linear


def test_what_is_no_product_of_two_matrices_is_refused() -> None:
    class Strange(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.einsum("...i,...i", x, x)

    model = Strange()
    with btorch.emulate(model, activations="mx9"), pytest.raises(NotImplementedError, match=r"einsum\('\.\.\.i,"):
        model(torch.ones(3, 16))


# --- attention --------------------------------------------------------------------------------------------------------


def attention(**options: object) -> torch.nn.MultiheadAttention:
    torch.manual_seed(0)
    return torch.nn.MultiheadAttention(32, 2, **options).eval()


@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"add_bias_kv": True, "add_zero_attn": True},
                                     {"kdim": 16, "vdim": 48, "bias": False}], ids=str)
def test_attention_is_torchs_where_nothing_is_rounded(options: dict) -> None:
    layer = attention(**options)
    generator = torch.Generator().manual_seed(1)
    first = options.get("batch_first", False)
    q, k, v = (torch.randn((3, n, d) if first else (n, 3, d), generator=generator)
               for n, d in ((5, 32), (7, options.get("kdim", 32)), (7, options.get("vdim", 32))))
    causal = torch.ones(5, 7, dtype=torch.bool).triu(3)
    padding = torch.zeros(3, 7, dtype=torch.bool)
    padding[1, 5:] = True
    masks = [
        {}, {"attn_mask": causal}, {"attn_mask": torch.randn(6, 5, 7), "key_padding_mask": padding.float() * -9},
        {"key_padding_mask": padding, "average_attn_weights": False}, {"need_weights": False},
    ]
    expected = [layer(q, k, v, **mask) for mask in masks]
    alone = layer(q[:, 0], k[:, 0], v[:, 0])
    with btorch.emulate(layer, "float32@none", "float32@none"):
        for mask, (y, shares) in zip(masks, expected):
            found, weights = layer(q, k, v, **mask)
            assert torch.allclose(found, y, atol=1e-6)
            assert weights is None if shares is None else torch.allclose(weights, shares, atol=1e-6)
        assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(layer(q[:, 0], k[:, 0], v[:, 0]), alone))


def test_attention_rounds_projections_and_products() -> None:
    layer = attention(batch_first=True)
    x = torch.randn(3, 5, 32)
    matrices = [rounded(w, "mx6") for w in layer.in_proj_weight.chunk(3)]
    q, k, v = (functional.linear(mx9(x), w, b).unflatten(-1, (2, 16)).transpose(1, 2)
               for w, b in zip(matrices, layer.in_proj_bias.chunk(3)))
    shares = (mx9(q) @ mx9(k.mT, -2) * 0.25).softmax(-1)
    mixed = (mx9(shares) @ mx9(v, -2)).transpose(1, 2).flatten(-2)
    expected = functional.linear(mx9(mixed), rounded(layer.out_proj.weight, "mx6"), layer.out_proj.bias)
    with btorch.emulate(layer, "mx6", "mx9") as model:
        assert torch.allclose(model(x, x, x)[0], expected, atol=1e-6)
    with pytest.raises(RuntimeError, match="attn_mask"), btorch.emulate(layer, "mx6"):
        layer(x, x, x, is_causal=True)


def test_the_fast_path_of_a_transformer_does_not_pass_by() -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(32, 2, 48, dropout=0.0, batch_first=True)
    x = torch.randn(2, 5, 32)
    done = btorch.emulate(layer, "mx4", "mx6")
    assert done.layers == ["self_attn", "linear1", "linear2"] and done.modules == [""]
    slow = layer.train()(x)
    with torch.no_grad():
        assert torch.equal(layer.eval()(x), slow)


# --- accumulators -----------------------------------------------------------------------------------------------------

SUMS = "float32 float32@pairwise float32@blocked:8 float32@float64 float16 bfloat16@pairwise float64".split()


def summed(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor, accumulate: str) -> torch.Tensor:
    """The package's own sums of float32 matrices."""
    name, _, order = accumulate.partition("@")
    order, _, block = (order or "sequential").partition(":")
    x, y, start = (t.detach().numpy() for t in (a, b, bias))
    if name == "float32":
        return torch.from_numpy(products.ordered(x, y, start, order=order, block=int(block or 16)))
    ones = np.ones((len(x), 1), np.float32)
    if order == "sequential":  # the bias is the first of the terms
        left, right = np.concatenate([ones, x], axis=1), np.concatenate([start[None], y])
        total = np.asarray(bt.dot(bt.array(left, "float32"), bt.array(right, "float32"), accumulate=name, order=order))
    else:
        total = np.asarray(bt.dot(bt.array(x, "float32"), bt.array(y, "float32"), accumulate=name, order=order))
        total = bt.quantize(total.astype(np.float64) + bt.quantize(start, name), name)
    return torch.from_numpy(np.asarray(total, np.float32))


@pytest.mark.parametrize("accumulate", SUMS)
def test_linear_adds_up_in_the_accumulator(accumulate: str) -> None:
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(37, 11), torch.randn(2, 3, 37)
    expected = summed(mx9(x).reshape(6, 37), rounded(layer.weight, "mx6").T, layer.bias, accumulate).reshape(2, 3, 11)
    with btorch.emulate(layer, "mx6", "mx9", accumulate=accumulate) as model:
        assert torch.equal(model(x), expected)
        assert torch.equal(model(x[0, 0]), expected[0, 0])
        assert torch.equal(torch.compile(model, fullgraph=True, backend="eager")(x), expected)
    found = []
    for how in (accumulate, None):  # without rounding the order of addition is seen
        with btorch.emulate(layer, accumulate=how, activations="float32@none") as model:
            found.append(model(x * 1000))
    assert torch.allclose(found[0], found[1], rtol=0.05, atol=9) and not torch.equal(found[0], found[1])


def test_integers_are_added_up_exactly() -> None:
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(40, 6), torch.randn(7, 40)
    x_scale = np.float32(float(x.abs().max()) / 127)
    w = layer.weight.detach().numpy()
    w_scale = (np.abs(w).max(axis=1, keepdims=True).astype(np.float64) / 127).astype(np.float32)
    codes = np.rint(x.numpy() / x_scale).astype(np.int8), np.rint(w / w_scale).astype(np.int8)
    total = products.integer(codes[0], codes[1].T).astype(np.float64) * x_scale * w_scale.T.astype(np.float64)
    expected = torch.from_numpy(total + layer.bias.detach().numpy().astype(np.float64)).float()
    with btorch.emulate(layer, "int8@channel", "int8", accumulate="int32") as model:
        assert torch.equal(model(x), expected)
    with btorch.emulate(layer, "int8", "int8", accumulate="int16"), pytest.raises(OverflowError, match="16 bits"):
        layer(torch.ones(1, 40) * layer.weight.sign()[:1])
    with btorch.emulate(layer, "int8", "int8", accumulate="int16@saturate"):
        assert layer(torch.ones(1, 40) * layer.weight.sign()[:1]).isfinite().all()


def test_a_function_adds_up() -> None:
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(64, 16), torch.randn(8, 64)

    def engine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return aie.matmul(a, b, block="mx6", arch="aie2ps", rounding="conv_even")

    expected = torch.from_numpy(engine(x.numpy(), layer.weight.detach().numpy().T)) + layer.bias
    with btorch.emulate(layer, accumulate=engine) as model:
        assert torch.equal(model(x), expected)
    with btorch.emulate(layer, accumulate=lambda a, b: a), pytest.raises(ValueError, match=r"gave shape \(8, 64\)"):
        layer(x)


CONVOLUTIONS = [
    (1, {"kernel_size": 3, "padding": 2, "stride": 2}),
    (1, {"kernel_size": 4, "padding": "same", "dilation": 2}),
    (2, {"kernel_size": (3, 2), "padding": (1, 0), "stride": (1, 2), "dilation": (2, 1), "groups": 2}),
    (2, {"kernel_size": 3, "padding": 1, "padding_mode": "reflect", "bias": False}),
    (2, {"kernel_size": 3, "groups": 4}),
    (3, {"kernel_size": (1, 3, 2), "padding": "valid"}),
]


@pytest.mark.parametrize("places, options", CONVOLUTIONS, ids=str)
def test_convolutions_are_sums_over_windows(places: int, options: dict) -> None:
    """Geometry: in float64 they are torch's; arithmetic: see the next test."""
    torch.manual_seed(0)
    kind = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)[places - 1]
    layer, x = kind(4, 8, **options).double(), torch.randn(3, 4, *(7, 8, 5)[:places]).double()
    expected, alone = layer(x), layer(x[0])
    with btorch.emulate(layer, accumulate="float64") as model:
        assert model(x).shape == expected.shape and torch.allclose(model(x), expected, rtol=1e-12, atol=1e-12)
        assert torch.allclose(model(x[0]), alone, rtol=1e-12, atol=1e-12)


def test_a_convolution_adds_up_in_the_order_of_its_weights() -> None:
    torch.manual_seed(0)
    layer, x = torch.nn.Conv2d(16, 4, 3, padding=1, stride=2), torch.randn(2, 16, 6, 5)
    weight, padded = rounded(layer.weight, "mx6", axis=1), functional.pad(rounded(x, "mx9", axis=1), (1, 1, 1, 1))
    expected = torch.empty(2, 4, 3, 3)
    for n, i, j in itertools.product(range(2), range(3), range(3)):
        window = padded[n, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3].reshape(1, -1)
        expected[n, :, i, j] = summed(window, weight.reshape(4, -1).T, layer.bias, "float16")[0]
    with btorch.emulate(layer, "mx6", "mx9", accumulate="float16") as model:
        assert torch.equal(model(x), expected)


def test_attention_and_products_add_up_in_the_accumulator() -> None:
    layer, x = attention(batch_first=True), torch.randn(2, 5, 32)
    expected = layer(x, x, x)[0]
    with btorch.emulate(layer, accumulate="float32@pairwise") as model:
        assert torch.allclose(model(x, x, x)[0], expected, atol=1e-6)
    module, x = Functions(), torch.randn(2, 5, 32)
    for kind in KINDS:
        plain = module(x, kind)
        with btorch.emulate(module, accumulate="float32"):
            found = module(x, kind)
            assert found.shape == plain.shape and torch.allclose(found, plain, atol=1e-5), kind


def test_gradients_are_those_of_the_product() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(6, 3).double()
    x = torch.randn(2, 4, 6, dtype=torch.float64, requires_grad=True)
    with btorch.emulate(layer, accumulate="float64"):
        assert torch.autograd.gradcheck(layer, (x,))
        layer(x).square().sum().backward()
    found = [x.grad, layer.weight.grad, layer.bias.grad]
    x.grad = layer.weight.grad = layer.bias.grad = None
    layer(x).square().sum().backward()
    assert all(torch.allclose(a, b) for a, b in zip(found, [x.grad, layer.weight.grad, layer.bias.grad]))
    conv, y = torch.nn.Conv2d(4, 6, 3, groups=2), torch.randn(2, 4, 5, 5, requires_grad=True)
    with btorch.emulate(conv, accumulate="float32@float64"):
        conv(y).sum().backward()
    found, y.grad, conv.bias.grad = [y.grad, conv.bias.grad], None, None
    conv(y).sum().backward()
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(found, [y.grad, conv.bias.grad]))


def test_half_precision_tensors() -> None:
    layer, x = torch.nn.Linear(16, 4).bfloat16(), torch.randn(3, 16).bfloat16()
    with btorch.emulate(layer, accumulate="float32") as model:
        expected = summed(x.float(), layer.weight.float().T, layer.bias.float(), "float32").bfloat16()
        assert torch.equal(model(x), expected)
    with btorch.emulate(layer, "int8") as model:
        weight = layer.weight.detach().float()
        scale = weight.abs().max() / 127
        grid = (torch.round(weight / scale) * scale).bfloat16()
        assert torch.equal(model(torch.eye(16).bfloat16()) - layer.bias, functional.linear(
            torch.eye(16).bfloat16(), grid, layer.bias) - layer.bias)
    with btorch.emulate(layer.double(), accumulate="float32"), pytest.raises(TypeError, match="only 'float64'"):
        layer(x.double())


def test_vmap_is_a_loop() -> None:
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(16, 3), torch.randn(4, 5, 16)
    conv, images = torch.nn.Conv1d(4, 6, 3, groups=2), torch.randn(3, 2, 4, 9)
    for module, given in ((layer, x), (conv, images)):
        with btorch.emulate(module, "mx6", "float8_e4m3fn@none", accumulate="float16") as model:
            assert torch.equal(torch.vmap(model)(given), torch.stack([model(t) for t in given]))


@pytest.mark.parametrize(
    "accumulate, words",
    [
        ("exact", "rounds once, at the end"), ("float32@backwards", "float32 takes sequential"),
        ("float32@sequential:3", "float32 takes"), ("float16@blocked:4", "float16 takes sequential, pairwise"),
        ("uint32", "signed"), ("int32", "weights= must be an integer format"), ("mx6", "accumulate='mx6'"),
        ("complex64", "complex64"), ("flot32", "float32"),
    ],
)
def test_accumulators_that_do_not_fit(accumulate: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        btorch.emulate(torch.nn.Linear(2, 2), accumulate=accumulate)


def test_the_operator_keeps_torchs_contract() -> None:
    from bittrue.torch import sums

    key = sums._key(parse_sum("float32@pairwise"))
    a, b, bias = torch.randn(2, 3, 5, requires_grad=True), torch.randn(2, 5, 4, requires_grad=True), torch.randn(4)
    torch.library.opcheck(torch.ops.bittrue.matmul.default, (a, b, bias, key))
