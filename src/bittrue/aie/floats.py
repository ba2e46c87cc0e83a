"""Floats of the vector unit: narrowing under the rounding register, fixed point, and how floats are added.

Sources: specs of AM020, AM027, AI Engine API; float to bfloat16 from LLVM's tests and measurements on XDNA1
(xdna-emu). Open questions are fields of `Choices`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike

from .. import matmul
from ..chunks import in_chunks
from ..codec import encode
from ..codes import value_dtype
from ..formats import FloatFormat, IntFormat, format
from ..rounding import Overflow, Rounding, Rule
from .arch import Arch
from .choices import Choices
from .elements import Element, element
from .srs import narrow_integers
from .tile import State, in_force

__all__ = [
    "add_products",
    "add_terms",
    "check_matrix_factors",
    "emulated_product",
    "float_to_bfloat16",
    "mac_model",
    "narrow",
    "to_fixed",
    "to_float",
]

Array = np.ndarray[Any, Any]

#: Products that one instruction adds to the accumulator at once: K of the native bfloat16 shape (4x8x4 on AIE-ML).
INSTRUCTION = 8

_NAN = np.uint32(0x7FC00000)

#: Products of the bfloat16 parts of two floats, largest part first, in the order in which they are added: llvm-aie,
#: mul_elem_16_accuracy_low, _fast and _safe of aiev2_core.h (84660bc), aie2p_vmult.h (3ec7f3f) and
#: aie2ps_vmult_float_emulated.h (7227e2f). UG1603 states errors of 10, 5 and 0 ULP.
_SAFE = ((2, 2), (2, 1), (1, 2), (0, 2), (1, 1), (2, 0), (1, 0), (0, 1), (0, 0))
EMULATIONS = {"low": ((1, 0), (0, 1), (0, 0)), "fast": _SAFE[3:], "safe": _SAFE}


def float_to_bfloat16(
    x: ArrayLike,
    rounding: object = None,
    *,
    arch: str | int | Arch | None = None,
    choices: Choices | None = None,
) -> Array:
    """Convert float32 to bfloat16 as `accfloat.to_vector<bfloat16>` does: under the rounding register.

    Parameters
    ----------
    x : array_like
        Real numbers; what is not float32 is rounded to it first, to nearest even: accumulators hold float32.
    rounding, arch, choices : optional
        Default: the current tile's; the reset value of the rounding register is floor, not nearest even.

    Returns
    -------
    ndarray of ml_dtypes.bfloat16

    Examples
    --------
    >>> x = np.array([0x3FC18000, 0xBFC18000], np.uint32).view(np.float32)
    >>> [hex(c) for c in float_to_bfloat16(x).view(np.uint16)]
    ['0x3fc1', '0xbfc2']
    >>> [hex(c) for c in float_to_bfloat16(x, "conv_even").view(np.uint16)]
    ['0x3fc2', '0xbfc2']

    References
    ----------
    LLVM aie2p-vector-conv-bf16.s; NaN: measured on XDNA1 (xdna-emu 7380bd5), see `Choices.bf16_nan`.
    """
    state = in_force(arch, rounding, choices=choices)
    return narrow(_float32(x), _float("bfloat16"), state).view(ml_dtypes.bfloat16)


def _float32(x: Any) -> Array:
    found = np.asarray(x)
    if found.dtype.kind not in "fiubV":  # V: the types of ml_dtypes
        return np.asarray(encode(x, "float32", overflow=Overflow.infinity)).view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # Inf is right, and so is a quiet NaN
        return found.astype(np.float32)


def _float(name: str) -> FloatFormat:
    found = format(name)
    assert isinstance(found, FloatFormat)
    return found


def narrow(x: Array, target: FloatFormat, state: State) -> Array:
    """Return the codes of float32 values in a vector's float format."""
    x = np.ascontiguousarray(x, np.float32).reshape(x.shape)
    if target.name == "float32":
        return x.view(np.uint32).copy()
    saturates = target.name != "bfloat16" and state.choices.fp8_overflow == "sat"
    rule = Rule(state.rounding.rounding, Overflow.saturate if saturates else Overflow.infinity)
    codes = np.asarray(encode(x, target, rule=rule)).view(target.code_dtype).reshape(x.shape)
    if target.name == "bfloat16" and (nan := np.isnan(x)).any():
        if state.choices.bf16_nan == "canonical":
            codes[nan] = 0x7FC0
        else:
            upper = (x.view(np.uint32)[nan] >> np.uint32(16)).astype(np.uint16)
            codes[nan] = np.where(upper & 0x7F, upper, upper | 1)
    return codes


# --- fixed point ------------------------------------------------------------------------------------------------------


def to_float(x: Any, shift: int = 0, *, arch: str | int | Arch | None = None) -> Any:
    """Return ``x * 2**-shift`` as float32, rounded to nearest even.

    Parameters
    ----------
    x : vector of int8, int16, int32, their unsigned kin, cint16 or cint32, or array_like of such integers
    shift : int
        -128 to 127.

    Returns
    -------
    vector of float (cfloat for a complex one) for a vector, else ndarray of float32

    Raises
    ------
    TypeError
        For anything but integers.
    ValueError
        For other vectors, a shift out of range, integers of more than 32 bits.

    Examples
    --------
    >>> to_float(np.int32([5, -3]), 2)
    array([ 1.25, -0.75], dtype=float32)
    """
    _check_shift(shift)
    from .vector import check_lanes, vector

    if isinstance(x, vector):
        of = _own_arch(x, arch)
        if x.element.part.bits < 8:
            raise ValueError(f"vectors of {x.element} do not become floats; unpack them first (int8 to int32 do)")
        kind = element("cfloat" if x.is_complex else "float", of)
        check_lanes(kind, x.size, of)
        return vector.of(to_float(x.integers(), shift).view(np.uint32), kind, of)
    source = narrow_integers(x, "x")
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(source.astype(np.float64), -shift)).astype(np.float32)


def to_fixed(
    x: Any,
    dtype: Any = "int32",
    shift: int = 0,
    *,
    arch: str | int | Arch | None = None,
    choices: Choices | None = None,
) -> Any:
    """Return ``x * 2**shift`` rounded to integers and saturated.

    The tile's registers do not count: the API fixes the rounding (`Choices.api_version`), and saturation is always on.
    NaN gives 0 (assumed).

    Parameters
    ----------
    x : vector of float, bfloat16 or cfloat, or array_like of float32 or bfloat16
    dtype : name or dtype
        int8, int16, int32 or their unsigned kin; cint16 or cint32 from a vector of cfloat.
    shift : int
        -128 to 127.
    arch, choices : optional
        Default: the current tile's.

    Returns
    -------
    vector for a vector, else ndarray

    Raises
    ------
    TypeError
        For anything but float32 and bfloat16, which round by different rules.
    ValueError
        For other vectors and destinations, and a shift out of range.

    Examples
    --------
    >>> to_fixed(np.float32([1.25, -0.5, 1e12]), "int32", 1).tolist()
    [2, -1, 2147483647]
    """
    _check_shift(shift)
    from .vector import check_lanes, vector

    if isinstance(x, vector):
        state = in_force(_own_arch(x, arch), choices=choices)
        if x.element.name not in ("float", "bfloat16", "cfloat"):
            raise ValueError(f"vectors of {x.element} do not become fixed point (float, bfloat16 and cfloat do)")
        kind = element(dtype, state.arch)
        if kind.is_complex != x.is_complex:
            raise ValueError(f"dtype={kind.name!r} and vectors of {x.element}: only one of them is complex")
        numbers = x.floats() if x.element.part.bits == 32 else x.to_numpy()
        values = to_fixed(numbers, kind.part, shift, arch=state.arch, choices=state.choices)
        check_lanes(kind, x.size, state.arch)
        return vector.of(values, kind, state.arch)
    state = in_force(arch, choices=choices)
    target = format(dtype)
    if not isinstance(target, IntFormat) or not 8 <= target.bits <= 32:
        raise ValueError(f"dtype={target.name!r} must be int8, int16, int32, uint8, uint16 or uint32")
    source = np.asarray(x)
    narrow_source = source.dtype == ml_dtypes.bfloat16
    if not narrow_source and source.dtype.newbyteorder("=") != np.float32:
        raise TypeError(f"x has dtype {source.dtype}; float32 or bfloat16 is expected")
    if state.choices.api_version == "2025.2":
        rounding = Rounding.nearest_even
    else:
        rounding = Rounding.floor if narrow_source else Rounding.nearest_zero
    scaled = np.ldexp(source.astype(np.float64), shift)
    wide = target
    low_bits = narrow_source and target.name == "int16" and state.choices.bf16_int16 == "wrap"
    if low_bits:
        wide = format("int32")  # type: ignore[assignment]
    codes = np.asarray(encode(scaled, wide, rounding, Overflow.saturate)).view(wide.code_dtype)
    return codes.astype(target.code_dtype).view(value_dtype(target))


def _own_arch(x: Any, arch: str | int | Arch | None) -> Arch:
    if arch is not None and in_force(arch).arch != x.arch:
        raise ValueError(f"arch={arch!r}: the vector is of {x.arch}; architectures cannot be mixed")
    return x.arch  # type: ignore[no-any-return]


def _check_shift(shift: object) -> None:
    if isinstance(shift, bool) or not isinstance(shift, (int, np.integer)) or not -128 <= shift <= 127:
        raise ValueError(f"shift={shift!r} must be an integer from -128 to 127")


# --- addition ---------------------------------------------------------------------------------------------------------


def mac_model(state: State) -> str:
    """Return how floats add up: "aligned23", "aligned26" or "ieee".

    Measured on XDNA1; AM009's first AI Engine has an IEEE float unit, and LLVM models XDNA2 and AIE-MLv2 with IEEE
    additions. What others fitted to XDNA2 silicon differs from that ("aligned26").
    """
    asked = state.choices.mac_model
    if asked != "arch":
        return asked
    return "aligned23" if state.arch.number == 20 else "ieee"


@np.errstate(all="ignore")
def add_products(
    acc: Array, a: Array, b: Array, state: State, step: int = INSTRUCTION, threads: int | None = 1
) -> None:
    """Add the matrix product of float32 matrices to float32 accumulators, in place.

    Parameters
    ----------
    acc, a, b : float32 (M, N), (M, K), (K, N), C-contiguous
    state : State
    step : int
        In the aligned model, products that are added together; otherwise they are added in ascending k.
    threads : int, optional
    """
    if (model := mac_model(state)) != "ieee":
        left, right = a.astype(np.float64), b.astype(np.float64)
        power_left, power_right = _powers(left), _powers(right)

        def work(lo: int, hi: int) -> int:
            _aligned(model, acc[lo:hi], left[lo:hi], right, power_left[lo:hi], power_right, step)
            return 0

        in_chunks(work, len(acc), threads, right.size)
    elif state.arch.number == 10 and state.choices.aie1_denormals == "flush":
        left, right = _flushed(a), _flushed(b)
        acc[...] = _flushed(acc)
        for k in range(left.shape[1]):
            acc[...] = _flushed(acc + _flushed(left[:, k : k + 1] * right[k]))
    else:
        acc[...] = matmul.ordered(a, b, acc, threads=threads)
    acc.view(np.uint32)[np.isnan(acc)] = _NAN


@np.errstate(all="ignore")
def add_terms(
    acc: Array | None, terms: Sequence[tuple[Array, Array, bool]], state: State, native: bool = True
) -> Array:
    """Return accumulators plus products (minus, where the flag is set), lane by lane.

    In the aligned model all terms are added at once, else in their order. Without accumulators the sum starts from the
    first product. Products that are not `native` are rounded to float32 before.
    """
    total = np.full(len(terms[0][0]), -0.0, np.float32) if acc is None else acc.copy()
    if (model := mac_model(state)) != "ieee":
        if not native:
            terms = [(x * y, np.ones_like(x), negative) for x, y, negative in terms]
        left = np.stack([x for x, _, _ in terms]).astype(np.float64)
        right = np.stack([y for _, y, _ in terms]).astype(np.float64)
        signs = np.array([[-1.0 if negative else 1.0 for *_, negative in terms]])
        matrix, powers = total[None], _powers(left) * _powers(right)
        _aligned(model, matrix, signs, left * right, np.abs(signs), powers, len(terms))
        total = matrix[0]
    else:
        flush = state.arch.number == 10 and state.choices.aie1_denormals == "flush"
        for x, y, negative in terms:
            if flush:
                total = _flushed(_flushed(total) + (-1 if negative else 1) * _flushed(_flushed(x) * _flushed(y)))
            else:
                total = total - x * y if negative else total + x * y
    total.view(np.uint32)[np.isnan(total)] = _NAN
    return total


def _add_lanes(total: Array, other: Array, negative: bool, state: State) -> Array:
    """Return accumulators plus (`negative`: minus) others: addition, without a product."""
    if mac_model(state) == "aligned26":  # of products only
        state = replace(state, choices=replace(state.choices, mac_model="aligned23"))
    return add_terms(total, [(other, np.ones_like(other), negative)], state)


def _aligned(model: str, acc: Array, a: Array, b: Array, power_a: Array, power_b: Array, step: int) -> None:
    from ..kernels import mmul as kernels

    work = np.empty((4, max(acc.shape[1], 1)))
    if model == "aligned23":
        kernels.aligned(acc, a, b, power_a, power_b, step, work)
    else:
        kernels.aligned_singly(acc, a, b, power_a, power_b, work)


# --- products of floats out of bfloat16 -------------------------------------------------------------------------------


def check_matrix_factors(a: Element, b: Element, state: State) -> None:
    """Raise `ValueError` where `Choices.float_products` asks for what is known for products lane by lane only."""
    asked = state.choices.float_products
    if asked != "exact" and a.part.bits == b.part.bits == 32 and not a.is_integer and state.arch.number != 10:
        raise ValueError(f"float_products={asked!r} is known for products lane by lane, not for matrices; take 'exact'")


def emulated_product(acc: Array | None, x: Array, y: Array, negative: bool, state: State) -> Array:
    """Return float32 accumulators (or none) plus (`negative`: minus) products of float32 lanes, out of bfloat16 parts.

    The parts are split off under the rounding register, each from what those before left; `EMULATIONS` says which of
    their products are added, one instruction each; after AIE-ML, "safe" multiplies and adds by two. Where AIE-ML adds a
    product to accumulators, the last instruction takes both sums; all else is made first, then added or subtracted. An
    Inf leaves a NaN for the next part: the product is NaN.
    """
    asked, later = state.choices.float_products, state.arch.number > 20
    if acc is not None and later and asked != "safe":
        raise ValueError(
            f"float_products={asked!r}: how {state.arch} adds such products to accumulators is not known; take 'safe' "
            "or 'exact', or mul alone"
        )
    left, right = _parts(x, state), _parts(y, state)
    pairs = [(left[n], right[m], False) for n, m in EMULATIONS[asked]]

    def plus(total: Array, pair: tuple[Array, Array, bool]) -> Array:
        if later and asked == "safe":
            return _add_lanes(total, add_terms(None, [pair], state), False, state)
        return add_terms(total, [pair], state)

    total = add_terms(None, pairs[:1], state)
    for pair in pairs[1:-1]:
        total = plus(total, pair)
    if acc is not None and not negative and not later:
        return add_terms(acc, [pairs[-1], (total, np.ones_like(total), False)], state)
    total = plus(total, pairs[-1])
    if acc is not None:
        return _add_lanes(acc, total, negative, state)
    return np.where(np.isnan(total), total, -total) if negative else total


def _parts(x: Array, state: State) -> list[Array]:
    """Split float32 into bfloat16 values, as float32: the largest, what it leaves, and what that leaves."""
    one, found = np.ones_like(x), []
    for _ in range(3):
        part = narrow(x, _float("bfloat16"), state).astype(np.uint32) << np.uint32(16)
        found.append(part.view(np.float32))
        x = add_terms(x, [(found[-1], one, True)], state)
    return found


def _powers(x: Array) -> Array:
    """Return the powers of two that float32 values have as exponents: the least for subnormals; Inf for NaN."""
    found = (x.view(np.int64) & np.int64(0x7FF << 52)).view(np.float64)
    return np.asarray(np.where(x == 0, 0.0, np.maximum(found, 2.0**-126)))


def _flushed(x: Array) -> Array:
    """Return zeros of their sign for subnormal float32 values."""
    return np.asarray(np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x), np.float32)
