"""Matrix products against Python integers and fractions, tile by tile and whole."""

from __future__ import annotations

import random
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import bittrue as bt
from bittrue import aie, exact_blocks
from bittrue.kinds.block import BlockRule, SharedExponentFormat

from .test_accum import aligned, bf16_values, floor_log2, some, to_float32, wrap

ARCHS = ("aie", "aie-ml", "xdna2", "aie-mlv2")
NAMES = [e.name for e in aie.elements()]


def pairs(arch, integer):
    for a in NAMES:
        for b in NAMES:
            if aie.element(a).is_integer is integer is aie.element(b).is_integer:
                try:
                    yield a, b, aie.mmul_shapes(a, b, arch)
                except ValueError:
                    continue


def complex_integers(values):
    return [(int(v.real), int(v.imag)) for v in values]


def integer_product(a, b, shape, bits, times=1):
    """Row-major M x K by K x N in Python integers; complex numbers as pairs."""
    found = []
    for i in range(shape.M):
        for j in range(shape.N):
            re = im = 0
            for k in range(shape.K):
                (m, n), (r, s) = a[i * shape.K + k], b[k * shape.N + j]
                re, im = re + m * r - n * s, im + m * s + n * r
            found.append((wrap(times * re, bits), wrap(times * im, bits)))
    return found


@pytest.mark.parametrize("arch", ARCHS)
def test_integer_tiles(arch):
    rng = random.Random(arch)
    count = 0
    for a, b, shapes in pairs(arch, True):
        shape = rng.choice(shapes)
        m = aie.mmul(shape.M, shape.K, shape.N, a, b, arch=arch)
        x, y = some(rng, a, m.size_a), some(rng, b, m.size_b)
        want = integer_product(complex_integers(x), complex_integers(y), shape, m.tag.bits)
        if not m.tag.is_complex:
            want = [re for re, _ in want]
        assert m.mul(x, y).to_accum().tolist() == want, (a, b, shape)
        twice = integer_product(complex_integers(x), complex_integers(y), shape, m.tag.bits, 2)
        found = m.mac(x, y).to_accum().tolist()
        assert found == (twice if m.tag.is_complex else [re for re, _ in twice])
        count += 1
    assert count > 20


def test_tiles_take_vectors_and_give_vectors():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (4, 8), np.int8), rng.integers(0, 256, (8, 4), np.uint8)
    m = aie.mmul(4, 8, 4, "int8", "uint8", arch="aie-ml")
    va, vb = aie.vector("int8", a.ravel(), "aie-ml"), aie.vector("uint8", b.ravel(), "aie-ml")
    plain = a.astype(int) @ b.astype(int)
    assert np.array_equal(m.mul(va, vb).to_numpy(), plain)
    assert np.array_equal(m.mul(a, b).to_numpy(), plain)
    v = m.to_vector("int16", 4, "conv_even", "saturate")
    assert v == m.to_accum().to_vector("int16", 4, "conv_even", "saturate") and v.size == 16
    with aie.tile("aie-ml", "conv_even", "saturate"):
        assert m.to_vector("int16", 4) == v
    big = aie.mmul(8, 8, 8, "int8", "int8", arch="xdna2").mul(np.ones(64, np.int8), np.ones(64, np.int8))
    assert big.to_vector("int32").tolist() == [8] * 64  # two registers


def test_sparse_b_is_read_by_columns():
    rng = np.random.default_rng(1)
    a, b = rng.integers(-99, 99, (4, 16)), rng.integers(-99, 99, (16, 8)) * (np.arange(16) % 4 < 2)[:, None]
    m = aie.mmul(4, 16, 8, "int8", "int8", arch="xdna2", sparse=True)
    assert np.array_equal(m.mul(a, b.T).to_numpy(), a @ b)


def test_overflow_of_a_tile():
    m = aie.mmul(4, 4, 4, "int16", "int16", arch="aie-ml", overflow="raise")
    x = np.full(16, -32768)
    assert aie.mmul(4, 4, 4, "int16", "int16", arch="aie-ml").mul(x, x).to_numpy()[0, 0] == 0
    with pytest.raises(OverflowError, match="lane 0 holds 4294967296, which is beyond acc32"):
        m.mul(x, x)


def test_bad_tiles():
    m = aie.mmul(4, 8, 4, "int8", "int8", arch="aie-ml")
    ones = np.ones(32, np.int8)
    checks = [
        (lambda: m.mul(aie.vector("int16", range(32), "aie-ml"), ones), "a has elements of int16, not of int8"),
        (lambda: m.mul(aie.vector("int8", range(32), "aie"), ones), "a is of aie, not of aie-ml; architectures"),
        (lambda: m.mul(ones, np.ones(16)), "b has 16 elements; 8 x 4 are expected"),
        (lambda: m.mul(ones, np.ones((4, 8))), r"b has shape \(4, 8\); \(8, 4\) is expected"),
        (lambda: m.mul(ones, ones * 1000.5), "b holds 1000.5, which is no integer for int8"),
        (lambda: aie.mmul(4, 8, 4, "int8", "int8", "accfloat", "aie-ml"), "tag='accfloat' cannot hold int8 x int8"),
        (lambda: aie.mmul(4, 8, 4, "mx9", "mx9", arch="aie-ml"), "a='mx9', b='mx9' is no pair of mmul on aie-ml"),
        (lambda: aie.mmul(4, 16, 16, "mx9", "mx9", arch="aie-mlv2", sparse=True), "no pair of sparse mmul on aie-mlv2"),
        (lambda: aie.mmul(4, 8, 4, "int8", "int3", arch="aie-ml"), "b: dtype='int3' is not a vector element type"),
        (lambda: aie.mmul(8, 8, 8, "bfp16ebs8", "bfp16ebs8", arch="xdna2").mul(np.ones(8), np.ones(64)), "a has shape"),
    ]
    for make, message in checks:
        with pytest.raises(ValueError, match=message):
            make()


# --- floats -----------------------------------------------------------------------------------------------------------


def exact_matrix(x):
    return [[Fraction(float(v)) for v in row] for row in x]


def ordered(a, b, step, model):
    """C[i][j] over steps of k: added at once under the aligned model, one after the other in float32 otherwise."""
    found = []
    for row in a:
        for j in range(len(b[0])):
            acc = 0.0
            for start in range(0, len(row), step):
                products = [(row[k], b[k][j]) for k in range(start, min(start + step, len(row)))]
                if model == "aligned23":
                    acc = aligned([Fraction(acc), *products])
                else:
                    for p, q in products:
                        acc = to_float32(Fraction(acc) + Fraction(to_float32(p * q)))
            found.append(acc)
    return found


@pytest.mark.parametrize("arch", ARCHS[1:])
def test_bfloat16_tiles(arch):
    rng = np.random.default_rng(2)
    model = "aligned23" if arch == "aie-ml" else "ieee"
    for shape in aie.mmul_shapes("bfloat16", "bfloat16", arch):
        m = aie.mmul(shape.M, shape.K, shape.N, "bfloat16", "bfloat16", arch=arch)
        a, b = bf16_values(rng, m.size_a).reshape(m.M, m.K), bf16_values(rng, m.size_b).reshape(m.K, m.N)
        want = ordered(exact_matrix(a), exact_matrix(b), 8, model)
        if str(shape) == "8x8x8e":  # section 9.6
            want = block_sums(a.astype(np.float32), b.astype(np.float32), "bfp16ebs8", bt.Rounding.floor)
        assert m.mul(a, b).to_numpy().ravel().tolist() == want, str(shape)


@pytest.mark.parametrize("arch, a, b", [("aie-mlv2", "float8", "bfloat8"), ("aie-mlv2", "float16", "bfloat16")])
def test_other_float_tiles(arch, a, b):
    rng = np.random.default_rng(3)
    shape = aie.mmul_shapes(a, b, arch)[0]
    m = aie.mmul(shape.M, shape.K, shape.N, a, b, arch=arch)
    x = bt.quantize(rng.standard_normal((m.M, m.K)).astype(np.float32), aie.element(a).part)
    y = bt.quantize(rng.standard_normal((m.K, m.N)).astype(np.float32), aie.element(b).part)
    assert m.mul(x, y).to_numpy().ravel().tolist() == ordered(exact_matrix(x), exact_matrix(y), 1, "ieee")


def test_complex_float_tile():
    rng = np.random.default_rng(4)
    m = aie.mmul(2, 2, 2, "cfloat", "cfloat", arch="aie")
    a, b = (rng.integers(-9, 9, (2, 2, 2)).astype(np.float32).view(np.complex64)[..., 0] for _ in range(2))
    assert np.array_equal(m.mul(a, b).to_numpy(), a @ b)  # small integers: exact in any order


@pytest.mark.parametrize("model", ("aligned23", "ieee"))
def test_bfloat16_matrices(model):
    rng = np.random.default_rng(5)
    a, b = bf16_values(rng, 5 * 37).reshape(5, 37), bf16_values(rng, 37 * 6).reshape(37, 6)
    for step in (8, 4, 16):
        found = aie.matmul(a, b, arch="aie-ml", step=step, choices=aie.Choices(mac_model=model))
        assert found.dtype == np.float32
        assert found.ravel().tolist() == ordered(exact_matrix(a), exact_matrix(b), step, model)
    assert np.array_equal(
        found, aie.matmul(a, b, arch="aie-ml", step=16, threads=2, choices=aie.Choices(mac_model=model))
    )


# --- blocks -----------------------------------------------------------------------------------------------------------


def block_sums(a, b, name, rounding, aligned_sums=False):
    """Quantise rows of a and columns of b by the specification; exact block sums, each rounded into float32.

    `aligned_sums`: as chain_ref.py of xdna-engine 9bcbe24 has it, mac_block.
    """
    fmt = bt.format(name)
    exponents = {}

    def rows(matrix):
        found = []
        for row in matrix:
            row = [*row.tolist(), *[0.0] * (-len(row) % fmt.block_size)]
            blocks = [row[n : n + fmt.block_size] for n in range(0, len(row), fmt.block_size)]
            rule = BlockRule(rounding=rounding)
            coded = [exact_blocks.encode(part, fmt, rule) for part in blocks]
            found.append([tuple(Fraction(v) for v in exact_blocks.decode(part, fmt)) for part in coded])
            exponents.update(zip(map(id, found[-1]), (part.exponent - fmt.bias for part in coded)))
        return found

    result = []
    for row in rows(a):
        for column in rows(b.T):
            acc = 0.0
            for x, y in zip(row, column):
                old, new = Fraction(acc), sum(p * q for p, q in zip(x, y))
                if aligned_sums:
                    e = max(exponents[id(x)] + exponents[id(y)], floor_log2(abs(old)) if old else -(10**6))
                    unit = Fraction(2) ** (e - 23)
                    old, new = round(old / unit) * unit, round(new / unit) * unit
                acc = to_float32(old + new)
            result.append(acc)
    return result


@pytest.mark.parametrize(
    "name, arch",
    [("bfp16ebs8", "xdna2"), ("mx9", "aie-mlv2"), ("mx6", "aie-mlv2"), ("mx4", "aie-mlv2"), ("mx9_am027", "aie-mlv2")],
)
@pytest.mark.parametrize("mode", ("floor", "conv_even", "symmetric_inf"))
def test_block_matrices(name, arch, mode):
    rng = np.random.default_rng(6)
    a = (rng.standard_normal((4, 40)) * 2.0 ** rng.integers(-9, 9, (4, 40))).astype(np.float32)
    b = (rng.standard_normal((40, 5)) * 2.0 ** rng.integers(-9, 9, (40, 5))).astype(np.float32)
    found = aie.matmul(a, b, block=name, arch=arch, rounding=mode)
    want = block_sums(a, b, name, aie.RoundingMode(mode).rounding)
    assert found.dtype == np.float32 and found.ravel().tolist() == want
    with aie.tile(arch, mode):
        assert aie.matmul(a, b, block=name, threads=2).ravel().tolist() == want


@pytest.mark.parametrize("name, arch", [("bfp16ebs8", "xdna2"), ("mx9", "aie-mlv2"), ("mx4_am027", "aie-mlv2")])
def test_sums_of_blocks_as_fitted_on_xdna2(name, arch):
    rng = np.random.default_rng(16)
    a = (rng.standard_normal((5, 96)) * 2.0 ** rng.integers(-3, 3, (5, 96))).astype(np.float32)
    b = (rng.standard_normal((96, 6)) * 2.0 ** rng.integers(-3, 3, (96, 6))).astype(np.float32)
    a *= np.float32(2) ** np.repeat(rng.integers(-14, 14, 12), 8)  # blocks whose sums reach below each other's
    choices, rounding = aie.Choices(mx_accumulation="aligned"), bt.Rounding.nearest_even
    with aie.tile(arch, "conv_even"):
        found = aie.matmul(a, b, block=name, choices=choices).ravel().tolist()
        plain = aie.matmul(a, b, block=name).ravel().tolist()
    assert found == block_sums(a, b, name, rounding, True) and plain == block_sums(a, b, name, rounding)
    if name == "bfp16ebs8":
        assert found != plain
        x, y = a[:, :8], b[:8]
        with aie.tile("xdna2", "conv_even", choices=choices):
            m = aie.mmul(8, 8, 8, "bfloat16", "bfloat16")
            x, y = (v.astype(ml_dtypes.bfloat16) for v in (np.resize(x, (8, 8)), np.resize(y, (8, 8))))
            wanted = block_sums(x.astype(np.float32), y.astype(np.float32), name, rounding, True)
            assert m.mul(x, y).to_numpy().ravel().tolist() == wanted


def test_blocks_far_apart_round_once():
    """A block far below the accumulator's last bit decides ties; subnormal results are kept."""
    for big, small in ((1.0, 2.0**-30), (2.0**-60, 2.0**-75), (1.0, -(2.0**-40))):
        a = np.zeros((1, 24), np.float32)
        a[0, 0], a[0, 8], a[0, 16] = big, 2.0**-24 * big, small
        b = np.zeros((24, 1), np.float32)
        b[::8] = 1 if big == 1.0 else 2.0**-80
        found = aie.matmul(a, b, block="bfp16ebs8", arch="xdna2")
        assert found.ravel().tolist() == block_sums(a, b, "bfp16ebs8", aie.RoundingMode.floor.rounding)


def test_block_tiles():
    rng = np.random.default_rng(8)
    for name, arch, mode in (("bfp16ebs8", "xdna2", "conv_even"), ("mx6", "aie-mlv2", "floor")):
        shape = aie.mmul_shapes(name, name, arch)[0]
        m = aie.mmul(shape.M, shape.K, shape.N, name, name, arch=arch)
        a, b = rng.standard_normal((m.M, m.K)).astype(np.float32), rng.standard_normal((m.K, m.N)).astype(np.float32)
        with aie.tile(arch, mode):
            found = m.mul(a, np.ascontiguousarray(b.T)).to_numpy()  # B lies transposed
        assert found.ravel().tolist() == block_sums(a, b, name, aie.RoundingMode(mode).rounding)


def test_block_vectors_as_operands():
    rng = np.random.default_rng(9)
    a, b = (rng.standard_normal(64).astype(np.float32) for _ in range(2))
    m = aie.mmul(8, 8, 8, "bfp16ebs8", "bfp16ebs8", arch="xdna2")
    x, y = (aie.block_vector("bfp16ebs8", 64, v, rounding="conv_even") for v in (a, b))
    with aie.tile("xdna2", "ceil"):  # no part in it: the operands are blocks already
        found = m.mul(x, y).to_numpy()
    want = block_sums(a.reshape(8, 8), b.reshape(8, 8).T, "bfp16ebs8", bt.Rounding.nearest_even)
    assert found.ravel().tolist() == want
    with pytest.raises(ValueError, match="a holds mx9, not bfp16ebs8"):
        m.mul(aie.block_vector("mx9", 64), y)
    with pytest.raises(ValueError, match="a has another number of elements than 8 x 8 = 64"):
        m.mul(aie.block_vector("bfp16ebs8", 128), y)


def test_a_tile_s_sums_become_blocks():
    m = aie.mmul(8, 8, 8, "bfp16ebs8", "bfp16ebs8", arch="xdna2").mul(np.full((8, 8), 1.5), np.eye(8))
    v = m.to_vector("bfp16ebs8", rounding="conv_even")
    assert v.tag == "bfp16ebs8" and np.asarray(v).tolist() == [1.5] * 64
    assert v == m.to_accum().to_vector("bfp16ebs8", rounding="conv_even")


def test_choices_reach_blocks():
    x = np.float32([[1.9999999, 1, 0.5, 0.5] * 4])
    choices = aie.Choices(mx_overflow="bump_block")
    found = aie.matmul(x, x.T, block="mx4", arch="aie-mlv2", rounding="conv_even", choices=choices)
    plain = bt.quantize(x, "mx4", "nearest_even", overflow="bump_block")
    assert found[0, 0] == (plain.astype(float) ** 2).sum() != aie.matmul(x, x.T, block="mx4", arch="aie-mlv2")[0, 0]


def test_choices_say_what_a_tile_s_operands_are():
    """The choices of a tile decide how its blocks are read, not those in force where it is made."""
    am027 = aie.Choices(convention="am027")
    m = aie.mmul(4, 16, 16, "mx9", "mx9", arch="aie-mlv2", choices=am027)
    assert (m.a.name, m.b.name) == ("mx9_am027", "mx9_am027")
    ones = np.ones((16, 16))
    x = np.ones((4, 16))
    x[1, 3] = np.inf  # a NaN block in am027; ug1603 has no code for it
    found = m.mul(x, ones).to_numpy()
    assert np.isnan(found[1]).all() and (found[[0, 2, 3]] == 16).all()
    blocks = aie.block_vector("mx9", 64, np.full(64, 2), choices=am027)
    assert (m.mul(blocks, ones).to_numpy() == 32).all()
    assert aie.matmul(x, ones, block="mx9", arch="aie-mlv2", choices=am027)[0].tolist() == [16] * 16


def test_a_format_of_ones_own_may_have_any_name():
    mine = SharedExponentFormat("mx9_of_mine", block_size=8, mantissa_bits=4)  # 4 bits: 1.75 is the largest at 1
    x = np.full((1, 8), 1.8)
    assert aie.matmul(x, np.ones((8, 1)), block=mine, arch="aie-ml")[0, 0] == 8 * 1.75
    with pytest.raises(ValueError, match="a='mx9_of_mine', b='mx9_of_mine' is no pair of mmul"):
        aie.mmul(4, 16, 16, mine, mine, arch="aie-mlv2")


@pytest.mark.parametrize("step", (0, -1, 2.5, True, None))
def test_steps_are_counted(step):
    x = np.ones((1, 8), ml_dtypes.bfloat16)
    with pytest.raises(ValueError, match="must be a positive integer"):
        aie.matmul(x, x.T, arch="aie-ml", step=step)


# --- whole integer matrices -------------------------------------------------------------------------------------------


def python_product(a, b, bits):
    columns = list(zip(*b.tolist()))
    return [[wrap(sum(x * y for x, y in zip(row, column)), bits) for column in columns] for row in a.tolist()]


@pytest.mark.parametrize("arch", ARCHS)
def test_integer_matrices(arch):
    rng = np.random.default_rng(10)
    count = 0
    for a, b, _ in pairs(arch, True):
        first, second = aie.element(a), aie.element(b)
        if first.is_complex or second.is_complex:
            continue
        tag = aie.tag(aie.default_tag(a, b, arch), arch)
        for k in (1, 9, 40):
            sides = []
            for kind, shape in ((first, (3, k)), (second, (k, 4))):
                low, high = int(kind.part.min), int(kind.part.max)
                m = rng.integers(low, high + 1, shape)
                m[rng.random(shape) < 0.3] = low
                m[rng.random(shape) < 0.3] = high
                sides.append(m)
            x, y = (m.astype(bt.array(m, kind.part).to_numpy().dtype) for m, kind in zip(sides, (first, second)))
            found = aie.matmul(x, y, arch=arch)
            want = python_product(*sides, tag.bits)
            if tag.bits > 64:
                assert isinstance(found, aie.Wide)
                assert found.to_ints() == [n for row in want for n in row]
            else:
                assert found.dtype == (np.int32 if tag.bits == 32 else np.int64)
                assert found.tolist() == want, (a, b, k)
            count += 1
    assert count > 10


def test_a_large_matrix_wraps():
    a = np.full((2, 70000), -32768, np.int16)
    found = aie.matmul(a, a.T, arch="aie-ml")
    assert found.tolist() == [[wrap(70000 * 2**30, 32)] * 2] * 2
    assert aie.matmul(a, a.T, tag="acc48", arch="aie-ml")[0, 0] == 70000 * 2**30
    assert aie.matmul(a, a.T, arch="aie")[0, 0] == wrap(70000 * 2**30, 48)
    with pytest.raises(OverflowError, match="beyond 32 bits"):
        aie.matmul(a, a.T, arch="aie-ml", overflow="raise")


def test_bad_matrices():
    a, f = np.ones((2, 3), np.int8), np.ones((3, 2), np.float32)
    checks = [
        (lambda: aie.matmul(a, a), r"a and b have shapes \(2, 3\) and \(2, 3\)"),
        (lambda: aie.matmul(a, f), r"int8 x float is not a product of aie-ml \("),
        (lambda: aie.matmul(a, a.T.astype(np.int64)), "b: dtype='int64' is not a vector element type of aie-ml"),
        (lambda: aie.matmul(f.T, f, block="mx9", arch="xdna2"), "no pair of mmul on xdna2"),
        (
            lambda: aie.matmul(f.T, f, block="mxfp4", arch="xdna2"),
            "block='mxfp4' is not a format with shared exponents",
        ),
        (lambda: aie.matmul(a, a.T, tag="accfloat"), "tag='accfloat' cannot hold int8 x int8 on aie-ml"),
        (lambda: aie.matmul(f.T * np.inf, f, block="mx9", arch="aie-mlv2"), "Inf or a NaN"),
    ]
    for make, message in checks:
        with pytest.raises(ValueError, match=message):
            make()


def test_float_products_of_other_types():
    x = np.float32([[1.1, 2.2]])
    assert aie.matmul(x, x.T, arch="aie").tolist() == [[float(np.float32(x[0, 0] * x[0, 0]) + x[0, 1] * x[0, 1])]]
    h = x.astype(np.float16)
    assert aie.matmul(h, h.T, arch="aie-mlv2").dtype == np.float32
    assert aie.matmul(x.astype(ml_dtypes.float8_e4m3fn), x.T.astype(ml_dtypes.float8_e5m2), arch="aie-mlv2").shape == (
        1,
        1,
    )


def test_empty_matrices():
    for x in (np.zeros((2, 0), np.int8), np.zeros((2, 0), np.float32)):
        assert aie.matmul(x, x.T).tolist() == [[0, 0], [0, 0]]
        assert aie.matmul(x.T, x).shape == (0, 0)
    x = np.zeros((2, 0), np.float32)
    assert aie.matmul(x, x.T, block="mx9", arch="aie-mlv2").tolist() == [[0, 0], [0, 0]]
    assert aie.matmul(x.T, x, block="mx9", arch="aie-mlv2").shape == (0, 0)
    assert aie.matmul(x.astype(np.int32), x.T.astype(np.int32), arch="aie").to_ints() == [0] * 4


def test_a_user_s_own_block_format():
    mine = bt.kinds.block.SharedExponentFormat("mine", block_size=32, mantissa_bits=5)
    x = np.random.default_rng(3).standard_normal((3, 64)).astype(np.float32)
    q = bt.quantize(x, mine, "floor").astype(np.float64)
    found = aie.matmul(x, x.T, block=mine, arch="aie-ml")
    want = np.zeros((3, 3), np.float32)
    for k in (0, 32):
        want = (want + q[:, k : k + 32] @ q[:, k : k + 32].T).astype(np.float32)
    assert np.array_equal(found, want)
