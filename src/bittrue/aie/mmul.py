"""`aie.mmul`: one tile of a matrix product in a legal shape; `aie.matmul`: whole matrices by the same accumulators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import matmul as core
from ..formats import format
from ..kinds.block import SharedExponentFormat
from ..records import records
from .accum import accum, is_block
from .arch import Arch
from .block import block_format, type_of
from .block_products import add_blocks, block_operand, quantised
from .choices import Choices
from .elements import Element, element, find
from .floats import INSTRUCTION, add_products, check_matrix_factors
from .products import limited, multiply
from .tags import Tag, default_tag, find_tag, kind, product_tag, unkind
from .tile import State, in_force
from .vector import vector
from .wide import Wide

__all__ = ["MmulShape", "matmul", "mmul", "mmul_pairs", "mmul_shapes"]

Array = np.ndarray[Any, Any]
Operand = Element | SharedExponentFormat


#: What AIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16 quantises bfloat16 operands to.
EMULATION = "bfp16ebs8"


@dataclass(frozen=True)
class MmulShape:
    """A shape that `aie::mmul` has: M x K by K x N.

    Attributes
    ----------
    M, K, N : int
    notes : str
        Letters of AMD's table: a, several intrinsics; b, extra data movement; e, through bfp16 emulation.
    accumulator_bits : int or None
        The only native accumulator width the shape has, where there is but one.
    """

    M: int
    K: int
    N: int
    notes: str
    accumulator_bits: int | None

    def __str__(self) -> str:
        bits = "" if self.accumulator_bits is None else f"({self.accumulator_bits})"
        return f"{self.M}x{self.K}x{self.N}{self.notes}{bits}"


@cache
def _table(of: Arch, sparse: bool) -> dict[tuple[str, str], tuple[MmulShape, ...]]:
    found: dict[tuple[str, str], tuple[MmulShape, ...]] = {}
    for row in records("aie", "mmul"):
        if row["arch"] == of.name and (row["sparse"] == "yes") == sparse:
            bits = int(row["accumulator_bits"]) if row["accumulator_bits"] else None
            shape = MmulShape(int(row["M"]), int(row["K"]), int(row["N"]), row["notes"], bits)
            pair = row["a"], row["b"]
            found[pair] = (*found.get(pair, ()), shape)
    return found


def mmul_shapes(
    a: Any, b: Any, arch: str | int | Arch | None = None, *, sparse: bool = False
) -> tuple[MmulShape, ...]:
    """Return the shapes of a pair of operand types.

    Parameters
    ----------
    a, b : element types, or block formats ("mx9", "bfp16ebs8")
    arch : optional
        Default: the current tile's.
    sparse : bool
        With a sparse B.

    Raises
    ------
    ValueError
        For a pair without any shape, with the legal pairs.

    Examples
    --------
    >>> [str(s) for s in mmul_shapes("int8", "int8", "xdna2")]
    ['4x8x8', '8x8x8']
    """
    of = in_force(arch).arch
    first, second = _operand(a, of, "a"), _operand(b, of, "b")
    table = _table(of, bool(sparse))
    found = table.get((_kind(first), _kind(second)))
    if found is None:
        legal = ", ".join(unkind(pair) for pair in table) or "none"
        what = "sparse mmul" if sparse else "mmul"
        raise ValueError(f"a={first.name!r}, b={second.name!r} is no pair of {what} on {of} ({legal}; uint like int)")
    return found


def mmul_pairs(arch: str | int | Arch | None = None, *, sparse: bool = False) -> list[tuple[str, str]]:
    """Return the pairs of operand types that have shapes; unsigned integers are like signed ones.

    Examples
    --------
    >>> mmul_pairs("xdna2")[:3]
    [('int8', 'int4'), ('int8', 'int8'), ('int16', 'int8')]
    """
    found = (unkind(pair).split(" x ") for pair in _table(in_force(arch).arch, bool(sparse)))
    return [(a, b) for a, b in found]


def _operand(dtype: Any, of: Arch, argument: str, choices: Choices | None = None) -> Operand:
    if find(dtype) is None:
        try:
            known = format(dtype)
        except ValueError:
            known = None
        if isinstance(known, SharedExponentFormat):
            return block_format(dtype, choices) if isinstance(dtype, str) and type_of(known) is not None else known
    try:
        return element(dtype, of)
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from None


def _kind(of: Operand) -> str:
    if isinstance(of, SharedExponentFormat):
        known = type_of(of)
        return kind(of.name if known is None else known.name)
    return kind(of)


class mmul:
    """A matrix product of one tile: `aie::mmul<M, K, N, A, B>`.

    Parameters
    ----------
    M, K, N : int
        A is M x K, B is K x N; what the architecture has for the types.
    a, b : element types, or block formats
    tag : str, optional
        Accumulator; default: that of the product, or the one that the shape has.
    arch : optional
        Default: the current tile's.
    sparse : bool
        B is sparse: given with all its zeros, in column-major order, as hardware reads it.
    overflow : {"wrap", "raise"}, optional
    choices : Choices, optional

    Raises
    ------
    ValueError
        For a shape that the types do not have, with the legal shapes.

    Notes
    -----
    Operands are tiles in row-major order, as `aie.vector`, or as arrays of M * K or (M, K) values where no vector has
    that size. Of block formats, and with a sparse B, the second operand is stored by columns: (N, K). Integer sums are
    exact and wrap at the accumulator's native width; floats add as `Choices.mac_model` says, block floats with exact
    sums of a block, in ascending k, as `Choices.mx_accumulation` says. XDNA2's bfloat16 shape 8x8x8 exists through
    bfp16 emulation only: both operands are quantised along k under the rounding mode, by default floor.

    Examples
    --------
    >>> m = mmul(4, 8, 4, "int8", "int8", arch="aie-ml")
    >>> a, b = vector("int8", range(32), "aie-ml"), vector("int8", [1] * 32, "aie-ml")
    >>> m.mul(a, b).mac(a, b).to_vector("int16", 1).tolist()[:5]
    [28, 28, 28, 28, 92]
    """

    def __init__(
        self,
        M: int,
        K: int,
        N: int,
        a: Any = "int8",
        b: Any = "int8",
        tag: str | None = None,
        arch: str | int | Arch | None = None,
        *,
        sparse: bool = False,
        overflow: str | None = None,
        choices: Choices | None = None,
    ) -> None:
        state = in_force(arch, overflow=overflow, choices=choices)
        self.arch = state.arch
        self.a, self.b = (_operand(x, self.arch, name, state.choices) for name, x in (("a", a), ("b", b)))
        shapes = mmul_shapes(self.a, self.b, self.arch, sparse=sparse)
        found = [s for s in shapes if (s.M, s.K, s.N) == (M, K, N)]
        if not found:
            legal = ", ".join(f"{s.M}x{s.K}x{s.N}" for s in shapes)
            raise ValueError(f"{M}x{K}x{N} is no shape of {self.a} x {self.b} on {self.arch} ({legal})")
        self.shape, self.sparse = found[0], bool(sparse)
        self.M, self.K, self.N = int(M), int(K), int(N)
        self.tag = self._tag(tag, state)
        self._overflow, self._choices = overflow, choices
        self._acc = self._zero()

    def _tag(self, name: str | None, state: State) -> Tag:
        what = f"{self.a} x {self.b}"
        least = "accfloat"
        if isinstance(self.a, Element) and isinstance(self.b, Element):
            least = default_tag(self.a, self.b, self.arch)
        only = self.shape.accumulator_bits
        if name is None and only is not None and find_tag(least, state).bits != only:
            name = f"acc{only}"
        found = product_tag(least, name, state, what)
        if only is not None and found.bits != only:
            raise ValueError(f"tag={found.name!r}: {what} as {self.shape} has accumulators of {only} bits only")
        return found

    def _zero(self) -> accum:
        count = self.size_c * self.tag.parts
        if self.tag.is_float:
            return accum.of(self.tag, None, np.zeros(count, np.float32))
        return accum.of(self.tag, Wide.zeros(count), None)

    @property
    def size_a(self) -> int:
        """Elements of A."""
        return self.M * self.K

    @property
    def size_b(self) -> int:
        """Elements of B."""
        return self.K * self.N

    @property
    def size_c(self) -> int:
        """Elements of C."""
        return self.M * self.N

    def mul(self, a: Any, b: Any) -> mmul:
        """Start from ``a @ b``; returns the mmul itself."""
        self._acc = self._zero()
        return self.mac(a, b)

    def mac(self, a: Any, b: Any) -> mmul:
        """Add ``a @ b``; returns the mmul itself."""
        state = in_force(self.arch, overflow=self._overflow, choices=self._choices)
        columns = self.sparse or isinstance(self.b, SharedExponentFormat)
        if isinstance(self.a, SharedExponentFormat):
            assert isinstance(self.b, SharedExponentFormat) and self._acc._floats is not None
            x = block_operand(a, self.a, self.M, self.K, "a", state)
            y = block_operand(b, self.b, self.N, self.K, "b", state)
            add_blocks(self._acc._floats.reshape(self.M, self.N), x, y, self.a, state, 1)
            return self
        assert isinstance(self.b, Element)
        shape = (self.N, self.K) if columns else (self.K, self.N)
        left = self._matrix(a, self.a, (self.M, self.K), "a")
        right = self._matrix(b, self.b, shape, "b")
        if columns:
            right = [np.ascontiguousarray(part.T) for part in right]
        if "e" in self.shape.notes:  # through bfp16: both operands are quantised along k
            fmt = block_format(EMULATION)
            assert self._acc._floats is not None
            x = quantised(left[0], fmt, state)
            y = quantised(np.ascontiguousarray(right[0].T), fmt, state)
            add_blocks(self._acc._floats.reshape(self.M, self.N), x, y, fmt, state, 1)
        elif self.tag.is_float:
            assert isinstance(self.a, Element)
            check_matrix_factors(self.a, self.b, state)
            self._add_floats(left, right, state)
        else:
            self._add_integers(left, right, state)
        return self

    def to_accum(self) -> accum:
        """Return a copy of the accumulators, row-major."""
        return self._acc.copy()

    def to_vector(
        self,
        dtype: Any,
        shift: int = 0,
        rounding: object = None,
        saturation: object = None,
        *,
        choices: Choices | None = None,
    ) -> Any:
        """Return C as a vector (of floats also as a block vector), row-major; arguments as in `accum.to_vector`.

        C may be larger than the vectors that the tables list: then it is several registers.
        """
        choices = self._choices if choices is None else choices
        if is_block(dtype):
            return self._acc.to_vector(dtype, shift, rounding, saturation, choices=choices)
        state = in_force(self.arch, rounding, saturation, choices=choices)
        return self._acc.converted(element(dtype, self.arch), shift, state)

    def to_numpy(self) -> Array:
        """Return the accumulators as a matrix (complex integers: with a last axis of two)."""
        found = self._acc.to_numpy()
        return found.reshape(self.M, self.N, *found.shape[1:])

    def _matrix(self, x: Any, kind: Element, shape: tuple[int, int], argument: str) -> list[Array]:
        """Return the real part (and, for complex types, the imaginary part) as integers or float32."""
        numbers = _numbers(x, kind, self.arch, shape, argument)
        return [np.ascontiguousarray(numbers[part :: kind.parts]).reshape(shape) for part in range(kind.parts)]

    def _add_integers(self, left: Sequence[Array], right: Sequence[Array], state: State) -> None:
        assert self._acc._wide is not None
        wide = self._acc._wide.reshape((self.M, self.N, self.tag.parts)).copy()
        for i, x in enumerate(left):
            for j, y in enumerate(right):
                total = Wide.zeros((self.M, self.N))
                for k in range(self.K):
                    total = total + multiply(x[:, k : k + 1], y[k])
                part = (i + j) % 2
                wide.put((..., part), wide[..., part] + (-total if i and j else total))
        self._acc = accum.of(self.tag, limited(wide.reshape(-1), self.tag, state), None)

    def _add_floats(self, left: Sequence[Array], right: Sequence[Array], state: State) -> None:
        """Add products in ascending k; of complex numbers, those of the real and the imaginary factor in turns."""
        assert self._acc._floats is not None
        lanes = self._acc._floats.reshape(self.M, self.N, self.tag.parts)
        for part in range(self.tag.parts):
            pairs = [
                (x, -y if i and j else y)
                for i, x in enumerate(left)
                for j, y in enumerate(right)
                if (i + j) % 2 == part
            ]
            x = np.stack([p[0] for p in pairs], axis=2).reshape(self.M, -1)
            y = np.stack([p[1] for p in pairs], axis=1).reshape(-1, self.N)
            acc = np.ascontiguousarray(lanes[..., part])
            add_products(acc, np.ascontiguousarray(x), np.ascontiguousarray(y), state)
            lanes[..., part] = acc


def _numbers(x: Any, kind: Element, of: Arch, shape: tuple[int, int], argument: str) -> Array:
    """Return the numbers of an operand, parts in turns: integers, or float32."""
    if isinstance(x, vector):
        if x.arch != of:
            raise ValueError(f"{argument} is of {x.arch}, not of {of}; architectures cannot be mixed")
        if x.element != kind:
            raise ValueError(f"{argument} has elements of {x.element}, not of {kind}")
        found, size = x, x.size
    else:
        values = np.asarray(x)
        if values.ndim > 1 and values.shape != shape:
            raise ValueError(f"{argument} has shape {values.shape}; {shape} is expected")
        size = values.size
        found = vector.of(vector.numbers(values.reshape(-1), kind, argument), kind, of)
    if size != shape[0] * shape[1]:
        raise ValueError(f"{argument} has {size} elements; {shape[0]} x {shape[1]} are expected")
    return found.integers() if kind.is_integer else found.floats()


# --- whole matrices ---------------------------------------------------------------------------------------------------


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    block: Any = None,
    tag: str | None = None,
    arch: str | int | Arch | None = None,
    rounding: object = None,
    overflow: str | None = None,
    choices: Choices | None = None,
    step: int = INSTRUCTION,
    threads: int | None = None,
) -> Any:
    """Multiply whole matrices as a kernel does that walks along k, and return the accumulators.

    Parameters
    ----------
    a, b : array_like of shapes (M, K) and (K, N)
        Integers, bfloat16, float16, float8 or float32 arrays (ml_dtypes); with `block`, any real values.
    block : block format, optional
        "bfp16ebs8", "mx9", "mx6" or "mx4" (or a format of yours of that kind): both operands are quantised along k
        under the rounding mode; K is padded with zeros. bfloat16 through bfp16 on XDNA2 is this, too.
    tag : str, optional
        Accumulator; default: that of the product.
    arch, rounding, overflow, choices : optional
        Default: the current tile's. `rounding` counts for blocks only.
    step : int
        Where several are added at once (`Choices.mac_model`: aligned23), how many products one instruction adds.
    threads : int, optional

    Returns
    -------
    ndarray of shape (M, N), or Wide
        int32 or int64 by the native width, wrapped to it; float32; for 80-bit accumulators a `Wide`.

    Raises
    ------
    ValueError
        For types that the architecture does not multiply, or shapes that do not fit.
    OverflowError
        Under ``overflow="raise"``.

    Notes
    -----
    Integers: exact. Floats: see `Choices.mac_model`; IEEE additions go in ascending k. Block floats: exact block sums,
    added to float32 in ascending k, with one rounding each unless `Choices.mx_accumulation` says otherwise.

    Examples
    --------
    >>> matmul(np.int8([[100, -128]]), np.int8([[127], [-128]]), arch="aie-ml")
    array([[29084]], dtype=int32)
    >>> x = np.full((1, 8), 0.7, np.float32)
    >>> matmul(x, x.T, block="bfp16ebs8", arch="xdna2", rounding="conv_even")
    array([[3.9550781]], dtype=float32)
    """
    state = in_force(arch, rounding, overflow=overflow, choices=choices)
    x, y = np.asarray(a), np.asarray(b)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[0]:
        raise ValueError(f"a and b have shapes {x.shape} and {y.shape}; (M, K) and (K, N) are expected")
    if isinstance(step, bool) or not isinstance(step, (int, np.integer)) or step < 1:
        raise ValueError(f"step={step!r} must be a positive integer")
    if block is not None:
        return _matmul_blocks(x, y, block, tag, state, threads)
    first, second = _element(x, state.arch, "a"), _element(y, state.arch, "b")
    what = f"{first} x {second}"
    wanted = product_tag(default_tag(first, second, state.arch), tag, state, what)
    if wanted.is_complex:
        raise ValueError(f"{what} is complex; matmul takes real matrices (mmul has complex tiles)")
    if wanted.is_float:
        check_matrix_factors(first, second, state)
        acc = np.zeros((x.shape[0], y.shape[1]), np.float32)
        left, right = (np.ascontiguousarray(v, np.float32) for v in (x, y))
        add_products(acc, left, right, state, int(step), threads)
        return acc
    return _matmul_integers(x, y, first, second, wanted, state)


def _element(x: Array, of: Arch, argument: str) -> Element:
    try:
        return element(x.dtype, of)
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from None


def _matmul_integers(x: Array, y: Array, a: Element, b: Element, tag: Tag, state: State) -> Any:
    if a.bits < 8:
        x = x.astype(np.int8)
    if b.bits < 8:
        y = y.astype(np.int8)
    if a.bits + b.bits + x.shape[1].bit_length() <= 62:
        if tag.bits <= 64:
            return core.integer(x, y, bits=tag.bits, overflow=state.overflow)
        return Wide.from_array(core.integer(x, y, bits=64))
    # The upper and the lower half of b on their own: their sums are exact in 64 bits.
    high = core.integer(x, y >> 16, bits=64)
    low = core.integer(x, y & 0xFFFF, bits=64)
    total = (Wide.from_array(high) << 16) + Wide.from_array(low)
    found = limited(total, tag, state)
    return found if tag.bits > 64 else found.to_int64().copy()


def _matmul_blocks(x: Array, y: Array, block: Any, tag: str | None, state: State, threads: int | None) -> Array:
    fmt = format(block)
    if not isinstance(fmt, SharedExponentFormat):
        raise ValueError(f"block={fmt.name!r} is not a format with shared exponents (bfp16ebs8, mx9, mx6, mx4)")
    if type_of(fmt) is not None:
        mmul_shapes(fmt, fmt, state.arch)  # raises where the architecture lacks it
        fmt = block_format(block, state.choices) if isinstance(block, str) else fmt
    product_tag("accfloat", tag, state, f"{fmt} x {fmt}")
    acc = np.zeros((x.shape[0], y.shape[1]), np.float32)
    if not acc.size or not x.shape[1]:
        return acc
    left = quantised(x, fmt, state)
    right = quantised(np.ascontiguousarray(y.T), fmt, state)
    add_blocks(acc, left, right, fmt, state, threads)
    return acc
