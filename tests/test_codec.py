"""The kernels against the exact specification: neighbourhoods of all codes, specials, sources, memory and threads."""

from __future__ import annotations

import time
from fractions import Fraction

import boundary
import ml_dtypes
import numpy as np
import pytest

import bittrue as bt
from bittrue import exact
from bittrue.chunks import in_chunks
from bittrue.rounding import Overflow, Rounding, Rule

FLOATS = [f for f in bt.formats() if f.kind in ("float", "tapered")]
SMALL = [f for f in FLOATS if f.bits <= 8] + [
    bt.p3109(8, 3),
    bt.p3109(6, 1),
    bt.p3109(8, 8, signed=False, extended=False),
    bt.p3109(7, 3, signed=False),
    bt.FloatFormat("no_zero", exponent_bits=2, mantissa_bits=5, signed=False, zero=False, inf=False, nan="ones"),
    bt.FloatFormat("no_normal", exponent_bits=0, mantissa_bits=2, bias=1, inf=False, nan="ones"),
    bt.FloatFormat("wide_exponent", exponent_bits=7, mantissa_bits=0, inf=False, nan="ones", bias=80),
]
MIDDLE = [f for f in FLOATS if 8 < f.bits <= 19] + [
    bt.FloatFormat("e6m9", exponent_bits=6, mantissa_bits=9),
    bt.p3109(12, 6, signed=False),
]
DTYPES = {"float32": np.float32, "float64": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
OVERFLOWS = ["saturate", "saturate_finite", "infinity", "ieee"]


def expect(x, fmt, rule, source):
    """The specification's codes; `tolist` goes through exact conversions, also for bfloat16."""
    return np.array([exact.encode(float(v), fmt, rule, source=source) for v in x.tolist()], np.uint64)


def check(got, want, x, fmt, rule):
    got = np.asarray(got).view(fmt.code_dtype)
    bad = np.flatnonzero(got != want.astype(got.dtype))
    assert not bad.size, (
        f"{fmt.name} {rule}: {bad.size} differ, first x={x[bad[0]]!r} got {got[bad[0]]:#x} want {int(want[bad[0]]):#x}"
    )


SPECIALS = np.array([np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0], np.float64)


@pytest.mark.parametrize("rounding", boundary.DETERMINISTIC, ids=str)
@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_every_neighbourhood_of_small_formats(fmt, rounding):
    for i, source in enumerate(("float32", "float64")):
        x = np.concatenate([boundary.neighbourhood(fmt, DTYPES[source]), SPECIALS.astype(DTYPES[source])])
        rule = Rule(rounding=rounding, overflow=OVERFLOWS[(i + len(fmt.name)) % 4])
        check(bt.encode(x, fmt, rule=rule), expect(x, fmt, rule, source), x, fmt, rule)


@pytest.mark.parametrize("fmt", MIDDLE, ids=str)
def test_every_neighbourhood_of_middle_formats(fmt):
    table = boundary.Boundaries(fmt)
    for source in ("float32", "float64"):
        x = boundary.neighbourhood(fmt, DTYPES[source])
        table.place(x.astype(np.float64))
        sample = np.random.default_rng(1).choice(x.size, 150)
        for rounding in boundary.DETERMINISTIC:
            for overflow in OVERFLOWS:
                rule = boundary.with_overflow(rounding, overflow)
                got = bt.encode(x, fmt, rule=rule)
                check(got, table.encode(rule), x, fmt, rule)
            check(np.asarray(got)[sample], expect(x[sample], fmt, rule, source), x[sample], fmt, rule)


@pytest.mark.parametrize("fmt", SMALL + MIDDLE, ids=str)
def test_random_float32_patterns(fmt):
    x = np.random.default_rng(fmt.bits).integers(0, 1 << 32, 1 << 22, np.uint32).view(np.float32)
    finite = x[np.isfinite(x)]
    table = boundary.Boundaries(fmt)
    table.place(finite.astype(np.float64))
    for i, rounding in enumerate(boundary.DETERMINISTIC):
        rule = boundary.with_overflow(rounding, OVERFLOWS[i % 4])
        check(bt.encode(finite, fmt, rule=rule), table.encode(rule), finite, fmt, rule)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_native_floats(name):
    fmt = bt.format(name)
    rng = np.random.default_rng(3)
    codes = np.concatenate(
        [rng.integers(0, 1 << fmt.bits, 700, np.uint64), [0, 1, 2, 3], fmt.max_code - np.arange(3, dtype=np.uint64)]
    )
    with np.errstate(invalid="ignore"):
        values = codes.astype(fmt.code_dtype).view(name).astype(np.float64)
    values = values[np.isfinite(values)]
    halves = values + np.abs(values) * 2.0**-24
    x = np.concatenate([values, halves, np.nextafter(halves, np.inf), [1e300, -1e300, 5e-324, 1e-46], SPECIALS])
    x = x[~np.isnan(x) | (np.arange(x.size) >= x.size - SPECIALS.size)]
    for i, rounding in enumerate(boundary.DETERMINISTIC):
        rule = boundary.with_overflow(rounding, OVERFLOWS[i % 4])
        check(bt.encode(x, fmt, rule=rule), expect(x, fmt, rule, "float64"), x, fmt, rule)
    x = rng.integers(0, 1 << 32, 2000, np.uint32).view(np.float32)
    check(bt.encode(x, fmt), expect(x, fmt, Rule(), "float32"), x, fmt, Rule())


@pytest.mark.parametrize("source", ["float16", "bfloat16"])
@pytest.mark.parametrize("fmt", SMALL + MIDDLE, ids=str)
def test_every_16_bit_input(fmt, source):
    """Direct encoding equals encoding of the same values as float64, which the tests above tie to `exact`."""
    x = np.arange(1 << 16, dtype=np.uint16).view(DTYPES[source])
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
    wide = np.where(np.isnan(wide), np.copysign(np.nan, np.where(np.signbit(x), -1.0, 1.0)), wide)
    for i, rounding in enumerate(boundary.DETERMINISTIC):
        rule = boundary.with_overflow(rounding, OVERFLOWS[i % 4])
        check(bt.encode(x, fmt, rule=rule), bt.encode(wide, fmt, rule=rule).view(fmt.code_dtype), x, fmt, rule)


@pytest.mark.parametrize("source", list(DTYPES))
@pytest.mark.parametrize("fmt", SMALL + MIDDLE[:2], ids=str)
def test_whole_rules(fmt, source):
    """Flushing, NaN and sign policies in random combination."""
    rng = np.random.default_rng(len(fmt.name))
    width = np.dtype(DTYPES[source]).itemsize
    patterns = rng.integers(0, 1 << 8 * width, 300, np.uint64).astype(f"u{width}").view(DTYPES[source])
    normal = (rng.standard_normal(300) * np.exp2(rng.integers(-14, 9, 300))).astype(DTYPES[source])
    tiny = np.array([1, 3, 5], f"u{width}").view(DTYPES[source])
    x = np.concatenate([patterns, normal, tiny, -tiny, SPECIALS.astype(DTYPES[source])])
    for _ in range(24):
        rule = Rule(
            rounding=rng.choice([m.value for m in boundary.DETERMINISTIC]).item(),
            overflow=rng.choice(OVERFLOWS).item(),
            nan=rng.choice(["keep", "zero", "max"]).item(),
            negative=rng.choice(["overflow", "magnitude"]).item(),
            nan_sign=rng.choice(["keep", "positive"]).item(),
            flush_inputs=bool(rng.integers(2)),
            flush_outputs=bool(rng.integers(2)),
        )
        check(bt.encode(x, fmt, rule=rule), expect(x, fmt, rule, source), x, fmt, rule)


INTS = [f for f in bt.formats() if f.kind == "int"]


@pytest.mark.parametrize("fmt", INTS, ids=str)
def test_floats_to_integers(fmt):
    lo, hi = int(fmt.min), int(fmt.max)
    near = {n + d for n in (lo, -1, 0, 1, 2, hi, hi + 1, 2 * hi + 1) for d in range(-3, 4)}
    points = [float(n + Fraction(quarter, 4)) for n in near for quarter in range(4)]
    points += [2.0**k for k in range(20, 130)] + [2.0**k + 2.0 ** (k - 20) for k in range(20, 80)]
    for source in ("float32", "float64", "float16", "bfloat16"):
        with np.errstate(over="ignore"):
            x = np.array(points).astype(DTYPES[source])
        if source in ("float32", "float64"):
            x = np.concatenate([x, np.nextafter(x, DTYPES[source](np.inf)), np.nextafter(x, DTYPES[source](-np.inf))])
        x = np.concatenate([x, -x, SPECIALS.astype(DTYPES[source])])
        for rounding in boundary.DETERMINISTIC:
            for overflow in ("saturate", "wrap"):
                rule = Rule(rounding=rounding, overflow=overflow)
                check(bt.encode(x, fmt, rule=rule), expect(x, fmt, rule, source), x, fmt, rule)


@pytest.mark.parametrize("source", "int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split())
def test_integer_sources(source):
    rng = np.random.default_rng(5)
    if source == "bool":
        x = np.array([True, False])
    else:
        info = np.iinfo(source)
        x = np.concatenate(
            [
                rng.integers(info.min, info.max, 60, source, endpoint=True),
                np.array([info.min, info.max, 0, 1, info.max - 1, info.max // 2 + 1], source),
                rng.integers(0, 100, 20).astype(source),
            ]
        )
        if info.bits == 64:
            powers = (np.int64(1) << np.arange(40, 62)).astype(source)
            spread = (
                powers[:, None]
                + (powers[:, None] >> np.arange(50, 56).astype(source)) * np.array([1, 3], source)[:, None, None]
            )
            x = np.concatenate([x, powers, spread.ravel(), powers + np.array(1, source), info.max - powers])
            x = np.concatenate([x, -x]) if info.min < 0 else x
    for fmt in [f for f in bt.formats() if f.kind != "complex"]:
        for i, rounding in enumerate(boundary.DETERMINISTIC):
            overflow = ("saturate", "wrap")[i % 2] if fmt.kind in ("int", "bool") else OVERFLOWS[i % 4]
            rule = Rule(rounding=rounding, overflow=overflow)
            want = np.array([exact.encode(int(v), fmt, rule) for v in x.tolist()], np.uint64)
            check(bt.encode(x, fmt, rule=rule), want, x, fmt, rule)


@pytest.mark.parametrize("fmt", SMALL + MIDDLE[:2] + INTS, ids=str)
def test_stochastic_equals_the_specification(fmt):
    rng = np.random.default_rng(9)
    scale = float(min(fmt.max, 1000))
    for source in DTYPES:
        x = (rng.standard_normal(400) * scale * np.exp2(rng.integers(-12, 3, 400))).astype(DTYPES[source])
        if fmt.kind != "int":
            x = np.concatenate([x, (rng.integers(0, 60, 200) * float(fmt.min_subnormal) / 7).astype(DTYPES[source])])
        x = np.concatenate([x, SPECIALS.astype(DTYPES[source])])
        random = rng.integers(0, 1 << 32, x.size, np.uint32)
        random[:4] = [0, (1 << 32) - 1, 1 << 31, 1]
        rule = Rule(
            rounding="stochastic",
            overflow="infinity" if fmt.bits % 2 else "saturate",
            flush_outputs=source in ("float32", "float16"),
            flush_inputs=source == "bfloat16",
        )
        want = [exact.encode(float(v), fmt, rule, int(r), source) for v, r in zip(x.tolist(), random.tolist())]
        check(bt.encode(x, fmt, rule=rule, random=random), np.array(want, np.uint64), x, fmt, rule)


def test_stochastic_depends_on_seed_index_and_value_only():
    x = np.random.default_rng(0).standard_normal(1 << 19).astype(np.float32)
    one = bt.encode(x, "float8_e4m3fn", "stochastic", seed=7, threads=1)
    assert (one == bt.encode(x, "float8_e4m3fn", "stochastic", seed=7, threads=5)).all()
    assert (one == bt.encode(x.reshape(64, -1), "float8_e4m3fn", "stochastic", seed=7).ravel()).all()
    assert (one[:99] == bt.encode(x[:99], "float8_e4m3fn", "stochastic", seed=7)).all()
    assert (one != bt.encode(x, "float8_e4m3fn", "stochastic", seed=8)).any()
    error = (bt.decode(one, "float8_e4m3fn").astype(np.float64) - x).mean()
    assert abs(error) < 5 * 0.03 / np.sqrt(x.size)  # unbiased: the spread of one rounding is about 0.03


def test_hybrid_equals_the_specification():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 1 << 32, 4000, np.uint32).view(np.float32)
    y = (rng.standard_normal(4000) * np.exp2(rng.integers(-26, 18, 4000))).astype(np.float32)
    coarse = (y.view(np.uint32) & np.uint32(0xFFFC0007)).view(np.float32)
    x = np.concatenate([x, y, coarse, SPECIALS.astype(np.float32), np.ldexp(np.float32(1), np.arange(-26, 18))])
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for overflow in OVERFLOWS:
        rule = Rule(rounding="hybrid", overflow=overflow)
        fmt = bt.format("hifloat8")
        check(bt.encode(x, fmt, rule=rule), expect(x, fmt, rule, "float32"), x, fmt, rule)
        with np.errstate(invalid="ignore"):
            brain = x.astype(ml_dtypes.bfloat16)
        check(bt.encode(brain, fmt, rule=rule), expect(brain, fmt, rule, "bfloat16"), brain, fmt, rule)
        check(bt.encode(half, fmt, rule=rule), expect(half, fmt, rule, "float16"), half, fmt, rule)
    with pytest.raises(ValueError, match="float32 or float16"):
        bt.encode(np.float64([1.0]), "hifloat8", "hybrid")


# --- decoding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", [f for f in bt.formats() if f.kind != "complex"] + SMALL[-3:], ids=str)
def test_decode_every_code(fmt):
    rng = np.random.default_rng(4)
    codes = np.arange(1 << fmt.bits) if fmt.bits <= 16 else rng.integers(0, 1 << fmt.bits, 2000, np.uint64)
    codes = codes.astype(fmt.code_dtype)
    for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        target = bt.format(dtype)
        sample = codes if dtype == np.float32 or fmt.bits <= 8 else codes[:: max(1, codes.size // 1500)]
        got = bt.decode(sample, fmt, dtype).view(target.code_dtype)
        want = [exact.encode(fmt.value(c), target, Rule(overflow="infinity")) for c in sample.tolist()]
        want = np.array(want, target.code_dtype)
        nan, sign = np.array([target.is_nan(c) for c in got.tolist()]), target.magnitude_bits
        assert (got[nan] >> sign == want[nan] >> sign).all()  # payloads may be kept, the sign must be
        got = np.where(nan, target.nan_code | got >> sign << sign, got)
        check(got, want, sample, target, "decode")
    if fmt.kind in ("int", "bool"):
        wide = np.uint64 if fmt.max > 2**63 - 1 else np.int64
        assert bt.decode(codes[:999], fmt, wide).tolist() == [int(fmt.value(c)) for c in codes[:999].tolist()]


@pytest.mark.parametrize("fmt", [f for f in FLOATS if f.bits <= 16], ids=str)
def test_round_trip_of_every_code(fmt):
    codes = np.arange(1 << fmt.bits).astype(fmt.storage)
    back = bt.encode(bt.decode(codes, fmt), fmt, overflow="infinity")
    canonical = np.array([not fmt.is_nan(c) for c in range(1 << fmt.bits)])
    assert (back[canonical] == codes[canonical]).all()
    assert all(fmt.is_nan(int(c)) for c in back[~canonical])


@pytest.mark.parametrize("fmt", FLOATS + INTS, ids=str)
def test_quantize_is_decode_of_encode(fmt):
    rng = np.random.default_rng(6)
    x = (rng.standard_normal(3000) * np.exp2(rng.integers(-9, 9, 3000))).astype(np.float32)
    for dtype in DTYPES.values():
        y = x.astype(dtype)
        got = bt.quantize(y, fmt)
        want = bt.decode(bt.encode(y, fmt), fmt, dtype)
        assert got.dtype == y.dtype
        assert got.tobytes() == want.tobytes()
    inplace = x.copy()
    assert bt.quantize(inplace, fmt, out=inplace) is inplace
    assert inplace.tobytes() == bt.quantize(x, fmt).tobytes()


def test_complex():
    x = np.array([1 + 2j, -0.1 + 1e6j, complex(np.nan, -np.inf)], np.complex64)
    codes = bt.encode(x, "complex32", overflow="infinity")
    halves = codes.view(np.uint16)
    assert halves.tolist() == bt.encode(x.view(np.float32), "float16", overflow="infinity").tolist()
    assert (bt.decode(codes, "complex32", np.complex64)[:1] == x[:1]).all()
    assert bt.encode(x, "complex64", overflow="infinity").view(np.uint64)[0] == x.view(np.uint64)[0]
    assert bt.encode(np.complex128(0.1 + 1j), "complex64") == np.complex64(0.1 + 1j)
    assert bt.decode(bt.encode([1.5, 2.0], "complex32"), "complex32", np.complex128).tolist() == [1.5, 2.0]
    assert bt.quantize(x[:2], "complex32").dtype == np.complex64
    with pytest.raises(TypeError, match="complex"):
        bt.encode(x, "float16")


# --- memory, shapes, threads ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "dtype"), [
    ("float8_e4m3fn", ">f4"), ("float8_e4m3fn", ">f8"), ("hifloat8", ">f2"), ("int8", ">i4"), ("complex32", ">c8"),
])  # fmt: skip
def test_values_in_the_other_byte_order(name, dtype):
    codes = np.arange(24, dtype=bt.format(name).storage).reshape(4, 6)
    want = bt.decode(codes, name, np.dtype(dtype).newbyteorder("="))
    scaled = want if name == "complex32" else bt.decode(codes, name, np.dtype(dtype).newbyteorder("="), zero_point=1)
    for out in (None, np.empty((4, 6), dtype), np.empty((6, 4), dtype).T):
        found = bt.decode(codes, name, dtype, out=out)
        assert found.dtype == np.dtype(dtype) and (found == want).all() and (out is None or found is out)
    if name != "complex32":
        assert (bt.decode(codes, name, dtype, zero_point=1) == scaled).all()


def test_codes_are_written_in_native_byte_order_only():
    x = np.float32([1, 2.5])
    for dtype in (">u2", ">f2"):
        with pytest.raises(ValueError, match=r"out has shape \(2,\) and dtype >.2; expected \(2,\) and uint16"):
            bt.encode(x, "float16", out=np.empty(2, dtype))
    strided = np.zeros(4, np.uint8)[::2]
    assert bt.encode(["1", "2.5"], "float8_e4m3fn", out=strided) is strided and strided.tolist() == [0x38, 0x42]


@pytest.mark.parametrize("name", ["float8_e4m3fn", "hifloat8", "float16", "int8", "float32", "float4_e2m1fn"])
def test_shapes_strides_byte_order_and_threads(name):
    rng = np.random.default_rng(8)
    x = rng.standard_normal((300, 1001)).astype(np.float32)
    want = bt.encode(x.ravel(), name, threads=1)
    before = x.copy()
    for threads in (None, 1, 2, 3, 7):
        assert (bt.encode(x, name, threads=threads) == want.reshape(x.shape)).all()
    assert (bt.encode(x.T, name).T == want.reshape(x.shape)).all()
    assert (bt.encode(x[::-3, ::2], name) == want.reshape(x.shape)[::-3, ::2]).all()
    assert (bt.encode(x.astype(">f4"), name) == want.reshape(x.shape)).all()
    frozen = x.copy()
    frozen.flags.writeable = False
    assert (bt.encode(frozen, name) == want.reshape(x.shape)).all()
    unaligned = np.frombuffer(b"x" + x.tobytes(), np.float32, offset=1)
    assert (bt.encode(unaligned, name) == want).all()
    assert (x == before).all()
    assert bt.encode(np.float32(1.0), name).shape == ()
    assert bt.encode(np.empty((0, 3), np.float32), name).shape == (0, 3)
    assert isinstance(bt.encode(np.array(1.0), name), np.ndarray)


def test_out():
    x = np.linspace(-3, 3, 1000, dtype=np.float32).reshape(10, 100)
    want = bt.encode(x, "float8_e4m3fn")
    out = np.empty((10, 100), np.uint8)
    assert bt.encode(x, "float8_e4m3fn", out=out) is out and (out == want).all()
    strided = np.zeros((10, 200), np.uint8)
    bt.encode(x, "float8_e4m3fn", out=strided[:, ::2])
    assert (strided[:, ::2] == want).all() and not strided[:, 1::2].any()
    typed = np.empty((10, 100), ml_dtypes.float8_e4m3fn)
    bt.encode(x, "float8_e4m3fn", out=typed)
    assert (typed.view(np.uint8) == want).all()
    with pytest.raises(ValueError, match=r"out has shape \(10,\)"):
        bt.encode(x, "float8_e4m3fn", out=np.empty(10, np.uint8))
    with pytest.raises(ValueError, match=r"expected .* and uint8"):
        bt.encode(x, "float8_e4m3fn", out=np.empty((10, 100), np.uint16))
    frozen = np.empty((10, 100), np.uint8)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        bt.encode(x, "float8_e4m3fn", out=frozen)
    memory = np.zeros(4000, np.uint8)
    with pytest.raises(ValueError, match="overlaps"):
        bt.encode(memory.view(np.float32), "float8_e4m3fn", out=memory[:1000])
    with pytest.raises(TypeError, match="NumPy array"):
        bt.encode(x, "float8_e4m3fn", out=[1])


def test_bad_arguments():
    for call, error, words in [
        (lambda: bt.encode([1.0], "float8_e4m3fm"), ValueError, "did you mean 'float8_e4m3fn'"),
        (lambda: bt.encode([1.0], "float16", "nearst_even"), ValueError, "did you mean 'nearest_even'"),
        (lambda: bt.encode([1.0], "float16", overflow="wrap"), ValueError, "integer formats only"),
        (lambda: bt.encode([1.0], "float16", "hybrid"), ValueError, "hifloat8 only"),
        (lambda: bt.encode([1.0], "float16", threads=0), ValueError, "threads=0"),
        (lambda: bt.encode(np.zeros(1, "M8[s]"), "float16"), TypeError, "not supported"),
        (lambda: bt.encode([1.0], "float16", random=[1, 2], rounding="stochastic"), ValueError, "random has shape"),
        (lambda: bt.encode([1.0], "float16", random=[1]), ValueError, "stochastic"),
        (lambda: bt.decode(np.uint8([16]), "float4_e2m1fn"), ValueError, "out of range for float4_e2m1fn"),
        (lambda: bt.decode([300], "float8_e5m2"), ValueError, "300 is out of range"),
        (lambda: bt.decode([-1], "float8_e5m2"), ValueError, "-1 is out of range"),
        (lambda: bt.decode(np.float32([1]), "float8_e5m2"), TypeError, "codes have dtype float32"),
        (lambda: bt.decode(np.uint8([1]), "float8_e5m2", np.int8), ValueError, "dtype=int8 cannot hold"),
        (lambda: bt.decode(np.uint8([1]), "uint8", np.int8), ValueError, "0 to 255"),
        (lambda: bt.encode([1.0], "int8", scale=0.0), ValueError, "scale"),
        (lambda: bt.encode([1.0, 2.0], "int8", scale=[1.0, 2.0, 3.0]), ValueError, "scale has 3 elements"),
        (lambda: bt.encode([1.0], "float16", zero_point=3), ValueError, "integer format"),
        (lambda: Rule(seed=-1), ValueError, "seed"),
        (lambda: Rule(nan_sign="x"), ValueError, "nan_sign"),
        (lambda: bt.encode([1.0], "float16", rule="floor"), TypeError, "bittrue.Rule"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_hybrid_overflow_is_not_monotonic():
    """Whether a value above 2**15 overflows depends on its lowest bits: the largest may fit where others do not."""
    f, rule = bt.format("hifloat8"), Rule("hybrid", "raise")
    x = np.random.default_rng(0).uniform(2**15, 2**16, 200).astype(np.float32).reshape(-1, 2)
    x[::2, 0] *= -1
    outcomes = set()

    def fits(v):
        try:
            exact.encode(float(v), f, rule, source="float32")
        except OverflowError:
            return False
        return True

    for pair in x:
        expected = all(fits(v) for v in pair)
        outcomes.add((expected, fits(np.abs(pair).max())))
        if expected:
            bt.encode(pair, f, rule=rule)
        else:
            with pytest.raises(OverflowError, match="beyond the range of hifloat8"):
                bt.encode(pair, f, rule=rule)
    assert (False, True) in outcomes


def test_scales_and_zero_points_fit_the_input():
    x = np.ones((1, 4), np.float32)
    for function, given in ((bt.encode, x), (bt.quantize, x), (bt.decode, x.astype(np.int8))):
        for name in ("scale", "zero_point"):
            with pytest.raises(ValueError, match=rf"{name} of shape \(3, 1\) does not fit x of shape \(1, 4\)"):
                function(given, "int8", **{name: np.ones((3, 1), int)})
        assert function(given, "int8", zero_point=2.0).tolist() == function(given, "int8", zero_point=2).tolist()
    for wrong in (0.5, [0, 1, 2, 2.5], np.nan, Fraction(5, 2)):
        with pytest.raises(ValueError, match=r"zero_point must be integers; (0\.5|2\.5|nan|5/2) is none"):
            bt.encode(x, "int8", zero_point=wrong)
    with pytest.raises(ValueError, match=r"scale of shape \(2,\) does not fit x of shape \(\)"):
        bt.encode(np.float32(1), "int8", scale=[1, 2])


def test_raise_policies():
    x = np.float32([[1, 2], [3, 500]])
    with pytest.raises(OverflowError, match=r"x\[1, 1\].*500.*float8_e4m3fn"):
        bt.encode(x, "float8_e4m3fn", overflow="raise")
    assert bt.encode(np.float32([464]), "float8_e4m3fn", overflow="raise") == 0x7E
    with pytest.raises(OverflowError, match="infinite"):
        bt.encode(np.float32([np.inf]), "float8_e4m3fn", overflow="raise")
    assert bt.encode(np.float32([np.inf]), "float16", overflow="raise") == 0x7C00
    with pytest.raises(OverflowError, match="uint4"):
        bt.encode([16.0], "uint4", overflow="raise")
    with pytest.raises(OverflowError, match="int8"):
        bt.encode([-129], "int8", overflow="raise")
    with pytest.raises(ValueError, match=r"x\[1\] is NaN"):
        bt.encode(np.float32([1, np.nan]), "float16", nan="raise")
    with pytest.raises(OverflowError, match="0 is not a value"):
        bt.encode([1.0, 0.0], "e8m0", overflow="raise")


def test_affine():
    x = np.float32([[2.5, -2.5, 3.5], [np.inf, -np.inf, 1e6]])
    codes = bt.encode(x, "uint8", scale=np.float32(1), zero_point=133)
    assert codes.tolist() == [[135, 131, 137], [255, 0, 255]]
    per_channel = bt.encode(x, "int8", scale=[1.0, 2.0, 0.5], axis=1)
    assert per_channel[0].view(np.int8).tolist() == [2, -1, 7]
    assert bt.decode(codes, "uint8", scale=2.0, zero_point=133)[0].tolist() == [4, -4, 8]
    assert bt.quantize(x[0], "int8", scale=2.0).tolist() == [2.0, -2.0, 4.0]


def test_typed_sources():
    x = np.array([0.5, -6, 3], ml_dtypes.float4_e2m1fn)
    assert bt.encode(x, "float8_e5m2").tolist() == bt.encode([0.5, -6.0, 3.0], "float8_e5m2").tolist()
    assert bt.encode(np.array([-8, 7], ml_dtypes.int4), "float6_e2m3fn").tolist() == [0x3F, 0x1E]


def test_infinity_rule_for_every_format_without_one():
    for fmt in SMALL:
        codes = bt.encode(SPECIALS[:2], fmt, overflow=Overflow.infinity)
        assert codes.tolist() == [exact.encode(v, fmt, Rule(overflow="infinity")) for v in (np.inf, -np.inf)]


def test_rounding_members_are_strings():
    assert Rounding("floor") is Rounding.floor and Rounding.floor == "floor"


def test_after_an_error_no_thread_writes_on():
    done = []

    def work(start: int, stop: int) -> int:
        if not start:
            raise KeyboardInterrupt
        time.sleep(0.05)
        done.append(start)
        return 0

    with pytest.raises(KeyboardInterrupt):
        in_chunks(work, 4, 4)
    assert sorted(done) == [1, 2, 3]
