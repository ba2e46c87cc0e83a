"""PyTorch: results are those of `bittrue.quantize` bit for bit, gradients pass through, compilers trace it."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import bittrue as bt
from bittrue import Rule

torch = pytest.importorskip("torch")

from bittrue import torch as btorch  # noqa: E402
from bittrue.torch import quantizer  # noqa: E402

BLOCKS = "mx9 mx6 mx4 mxfp4 mxfp8_e4m3 nvfp4 bfp16ebs8".split()
REAL = [f for f in bt.formats() if f.kind in ("bool", "int", "float", "tapered")]
PLAIN = [r for r in bt.Rounding if r.value not in ("stochastic", "hybrid")]
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def values(dtype: torch.dtype, count: int = 512, seed: int = 0) -> torch.Tensor:
    """Values over many binades, with everything that is special."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(count) * 2.0 ** rng.integers(-16, 12, count)
    x[:10] = [0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 3.3e38, -65504, 1e-45, 0.5]
    return torch.from_numpy(x).to(dtype)


def plain(t: torch.Tensor) -> np.ndarray:
    if t.dtype is torch.bfloat16:
        return t.detach().contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return t.detach().numpy()


def same(t: torch.Tensor, expected: np.ndarray) -> bool:
    a, b = plain(t), np.asarray(expected)
    integer = f"u{b.dtype.itemsize}"
    return a.shape == b.shape and a.dtype == b.dtype and bool((a.view(integer) == b.view(integer)).all())


def roundings(f: bt.Format) -> list[bt.Rounding]:
    return [*PLAIN, bt.Rounding.stochastic, *([bt.Rounding.hybrid] if f.name == "hifloat8" else [])]


# --- forward ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("f", REAL, ids=str)
def test_every_format_and_rounding(f: bt.Format, dtype: torch.dtype) -> None:
    x = values(dtype)
    for rounding in roundings(f):
        if (rounding.value, dtype) == ("hybrid", torch.float64):
            continue  # takes its threshold from narrower inputs only
        assert same(btorch.quantize(x, f, rounding), bt.quantize(plain(x), f, rounding)), rounding


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_along_any_axis(name: str, dtype: torch.dtype) -> None:
    x = torch.nan_to_num(values(dtype, 480), 1, 2, 3).clamp(-6e4, 6e4).reshape(20, 24)
    for axis, rounding in itertools.product((-1, 0), (None, "floor")):
        assert same(btorch.quantize(x, name, rounding, axis=axis), bt.quantize(plain(x), name, rounding, axis=axis))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_shapes_and_strides(dtype: torch.dtype) -> None:
    x = values(dtype, 96).reshape(4, 6, 4)
    some = {
        "transposed": x.permute(2, 0, 1),
        "strided": x[::2, 1:, ::3],
        "expanded": x[:1].expand(3, 6, 4),
        "0-d": x[3, 2, 1],
        "empty": x[:0],
        "channels last": x[None].contiguous(memory_format=torch.channels_last),
    }
    for name, t in some.items():
        before = t.clone()
        y = btorch.quantize(t, "float8_e5m2", "trunc")
        assert same(y, bt.quantize(plain(t), "float8_e5m2", "trunc")) and y.shape == t.shape, name
        assert same(t, plain(before)), name


@pytest.mark.parametrize("overflow, nan", [("infinity", "keep"), ("saturate_finite", "zero"), ("ieee", "max")])
def test_rules(overflow: str, nan: str) -> None:
    x = values(torch.float32)
    rule = Rule("floor", overflow, nan, flush_inputs=True, flush_outputs=True)
    for name in ("float8_e4m3fn", "float8_e5m2", "hifloat8", "float16"):
        assert same(btorch.quantize(x, name, rule=rule), bt.quantize(plain(x), name, rule=rule)), name
    assert same(btorch.quantize(x, "int4", overflow="wrap"), bt.quantize(plain(x), "int4", overflow="wrap"))


def test_scales_and_random_bits() -> None:
    x = values(torch.float32, 60).reshape(3, 20).nan_to_num(0, 1, -1)
    scale = torch.tensor([0.5, 0.03, 7.0])
    zero = torch.tensor([1, -2, 3])
    assert same(
        btorch.quantize(x, "int8", scale=scale, zero_point=zero, axis=0),
        bt.quantize(plain(x), "int8", scale=scale.numpy(), zero_point=zero.numpy(), axis=0),
    )
    assert same(btorch.quantize(x, "int8", scale=0.1, zero_point=3), bt.quantize(plain(x), "int8", scale=0.1,
                                                                                  zero_point=3))
    assert same(btorch.quantize(x, "nvfp4", scale=0.25), bt.quantize(plain(x), "nvfp4", scale=0.25))
    bits = torch.arange(60, dtype=torch.int64).reshape(3, 20) * 0x4321ABC % (1 << 32)
    assert same(
        btorch.quantize(x, "float8_e4m3fn", "stochastic", random=bits),
        bt.quantize(plain(x), "float8_e4m3fn", "stochastic", random=bits.numpy()),
    )
    seeded = btorch.quantize(x, "float8_e4m3fn", "stochastic", seed=5)
    assert same(seeded, bt.quantize(plain(x), "float8_e4m3fn", "stochastic", seed=5))


def test_arrays_of_numpy_are_arguments_too() -> None:
    x = np.float32([[1.3, 2.2], [3.4, -4.4]])
    for scale in (np.float32(1.7), [1.7, 2.5], np.array([1.7, 2.5], np.float32), np.float64(0.3)):
        expected = bt.quantize(x, "int8", scale=scale, zero_point=np.int8(3), axis=0)
        found = btorch.quantize(torch.from_numpy(x), "int8", scale=scale, zero_point=np.int8(3), axis=0)
        assert found.numpy().tobytes() == expected.tobytes()
    random = np.full(x.shape, 0xFFFF_FFFF, np.uint32)
    found = btorch.quantize(torch.from_numpy(x), "int8", "stochastic", random=random)
    assert found.tolist() == [[2, 3], [4, -5]]


def test_a_format_of_ones_own_and_names() -> None:
    own = bt.FloatFormat("own_e3m2", exponent_bits=3, mantissa_bits=2, bias=5, inf=False, nan="none")
    x = values(torch.float32)
    assert same(btorch.quantize(x, own, "floor"), bt.quantize(plain(x), own, "floor"))
    assert same(btorch.quantize(x, torch.float8_e5m2), bt.quantize(plain(x), "float8_e5m2"))


# --- tables: what other devices get, on this one ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
@pytest.mark.parametrize("f", [f for f in REAL if f.bits <= 16], ids=str)
def test_tables_say_the_same(f: bt.Format, dtype: torch.dtype) -> None:
    some = map(float, f.values() if f.bits <= 8 else (1, min(f.max, 10**30)))
    edges = sorted(v for v in some if abs(v) < 1e31)
    near = np.array([e * k for e in edges for k in (1, 1 + 2**-9, 1 - 2**-9)], np.float32)
    middles = (near[1:] + near[:-1]) / 2
    fine = np.concatenate([near, middles, np.nextafter(middles, np.float32(9e9)), np.nextafter(middles, -near[-1])])
    x = torch.cat([values(dtype, 2000), torch.from_numpy(fine).to(dtype)])
    tables = 0
    for rounding in roundings(f):
        key = quantizer._key(f, rounding, None, None, None, None, None)
        table = quantizer._table(key, dtype, torch.device("cpu"))
        if table is None:
            continue
        tables += 1
        assert same(quantizer._look_up(x, *table), bt.quantize(plain(x), f, rounding)), rounding
        empty = quantizer._look_up(x[:0].reshape(0, 3), *table)
        assert empty.shape == (0, 3)
    served = dtype.itemsize == 2 or (f.bits <= 8 and f.kind != "bool") or f.name in ("float16", "bfloat16")
    assert (tables >= len(PLAIN)) == served


def test_what_has_no_table() -> None:
    for name, rule in (("int16", Rule()), ("hifloat8", Rule("hybrid")), ("int8", Rule(overflow="raise"))):
        key = quantizer._key(name, None, None, None, rule, None, None)
        assert quantizer._table(key, torch.float32, torch.device("cpu")) is None


# --- gradients and transformations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float8_e4m3fn", "int8", "mx9", "mxfp4"])
def test_the_gradient_is_that_of_the_identity(name: str) -> None:
    x = torch.linspace(-700, 700, 64, requires_grad=True)
    weights = torch.arange(64.0)
    y = btorch.quantize(x, name)
    assert y.requires_grad and not torch.equal(y, x)
    (y * weights).sum().backward()
    assert torch.equal(x.grad, weights)
    jacobian = torch.autograd.functional.jacobian(lambda t: btorch.quantize(t, name), x.detach())
    assert torch.equal(jacobian, torch.eye(64))


def test_gradcheck_where_rounding_is_the_identity() -> None:
    """Numerical differences know the straight-through rule only where nothing is rounded: float64 to float64."""
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: btorch.quantize(t, "float64"), (x,))
    assert torch.autograd.gradgradcheck(lambda t: btorch.quantize(t, "float64") ** 2, (x,))


def test_the_operator_keeps_torchs_contract() -> None:
    key = quantizer._key("float8_e4m3fn", None, None, None, None, None, None)
    x = torch.randn(4, 6).t().requires_grad_()
    torch.library.opcheck(torch.ops.bittrue.quantize.default, (x, key, None, None, None, -1))


def test_compiles_into_one_graph() -> None:
    def layer(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.relu(btorch.quantize(x, "mx9") @ btorch.quantize(w, "float8_e4m3fn", rounding="floor"))

    x, w = torch.randn(8, 32), torch.randn(32, 16, requires_grad=True)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x, w), layer(x, w))
    compiled(x, w).sum().backward()
    gradient, w.grad = w.grad, None
    layer(x, w).sum().backward()
    assert torch.equal(gradient, w.grad)


OWN = bt.FloatFormat("own_e3m2", exponent_bits=3, mantissa_bits=2, bias=5, inf=False, nan="none")
RULE = Rule("away", "infinity", flush_outputs=True)


@pytest.mark.parametrize(
    "rounds",
    [
        lambda t: btorch.quantize(t, OWN, rule=Rule("floor", nan="max")),
        lambda t: btorch.quantize(t, "float8_e5m2", rule=RULE),
        lambda t: btorch.quantize(t, "mx6", rule=bt.BlockRule(rounding="ceil", overflow="clear_e2_then_bump")),
        lambda t: btorch.quantize(t, torch.float8_e4m3fn, bt.Rounding.stochastic, seed=7),
        lambda t: btorch.quantize(t, "int8", scale=0.25, zero_point=3),
    ],
)
def test_compiled_rules_are_the_rules_given(rounds) -> None:
    """A rule made in traced code once lost its arguments."""
    x = torch.nan_to_num(values(torch.float32), 1, 100, -100).clamp(-1e4, 1e4)
    assert torch.equal(torch.compile(rounds, fullgraph=True, backend="eager")(x), rounds(x))


def test_rules_have_no_other_parts() -> None:
    rule, blocks = Rule("floor", seed=3), bt.BlockRule(rounding="ceil")
    for given in (rule, blocks):
        name, *parts = quantizer._parts(given)
        assert name == type(given).__name__ and type(given)(*parts) == given
        assert len(parts) == len(dataclasses.fields(given))


def test_vmap_is_a_loop() -> None:
    x = torch.randn(3, 5, 32)
    for name, axis in (("float8_e4m3fn", -1), ("mx9", -1), ("mx9", 0)):
        mapped = torch.vmap(lambda t: btorch.quantize(t, name, axis=axis), in_dims=1, out_dims=1)(x)  # noqa: B023
        assert torch.equal(mapped, torch.stack([btorch.quantize(t, name, axis=axis) for t in x.unbind(1)], 1))
    with pytest.raises(NotImplementedError, match="stochastic"):
        torch.vmap(lambda t: btorch.quantize(t, "int8", "stochastic"))(x)


# --- arrays -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", bt.formats(), ids=str)
def test_arrays_share_memory_with_tensors(f: bt.Format) -> None:
    a = bt.array(np.float32([0, 1, -0.0, 1]).reshape(2, 2), f)
    t = btorch.to_torch(a)
    assert t.shape == (2, 2) and t.data_ptr() == a.codes.ctypes.data
    back = btorch.from_torch(t, f)
    assert back.format == f and (back.codes == a.codes).all() and np.shares_memory(back.codes, a.codes)
    if f.name.startswith("float8") and hasattr(torch, f.name):
        assert t.dtype is getattr(torch, f.name) and btorch.from_torch(t).format == f


def test_views_that_torch_has_not_computed_yet() -> None:
    t = torch.tensor([1 + 2j, -3j], dtype=torch.complex64)
    assert btorch.from_torch(t.conj()).tolist() == [1 - 2j, 3j]
    assert btorch.from_torch(t.conj().imag).tolist() == [-2, 3]


def test_float8_means_the_same_to_torch() -> None:
    a = bt.Array(np.arange(256, dtype=np.uint8), "float8_e5m2")
    assert np.array_equal(btorch.to_torch(a).float().numpy(), np.asarray(a, np.float32), equal_nan=True)


# --- mistakes ---------------------------------------------------------------------------------------------------------


def test_mistakes() -> None:
    for function in (lambda x: btorch.quantize(x, "int8"), btorch.from_torch):
        with pytest.raises(TypeError, match="t must be a torch tensor, not ndarray"):
            function(np.ones(2, np.float32))
    x = torch.ones(4)
    with pytest.raises(ValueError, match="float8_e4m3fn"):
        btorch.quantize(x, "float8_e4m3f")
    with pytest.raises(TypeError, match=r"t has dtype torch\.int32"):
        btorch.quantize(x.int(), "int8")
    with pytest.raises(TypeError, match="complex64"):
        btorch.quantize(x, "complex64")
    with pytest.raises(ValueError, match="axis=3"):
        btorch.quantize(x, "mx9", axis=3)
    with pytest.raises(OverflowError):
        btorch.quantize(x * 1e9, "int8", overflow="raise")
    with pytest.raises(ValueError, match=r"torch\.quint8|no format"):
        btorch.from_torch(torch.zeros(2, dtype=torch.complex128))
    with pytest.raises(TypeError, match="not list"):
        btorch.to_torch([1])
    with pytest.raises(TypeError, match=r"torch.from_numpy\(np.array\(a\)\) has its values"):
        btorch.to_torch(bt.array(np.ones(16), "mx9"))


def test_importing_does_not_import_the_compiler() -> None:
    code = "import bittrue.torch, sys; raise SystemExit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_import_bittrue_does_not_import_torch() -> None:
    code = "import bittrue, sys; raise SystemExit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_rows_of_the_benchmark_use_all_threads_again() -> None:
    from bittrue import chunks
    from bittrue.studying import bench

    before = torch.get_num_threads()
    try:
        for row in bench.rows()[1:]:
            torch.set_num_threads(1)  # as the rows with peers do
            assert row.prepare is not None
            row.prepare(64).ours(2)
            assert torch.get_num_threads() == chunks.usable_cpus(), row.name
    finally:
        torch.set_num_threads(before)
