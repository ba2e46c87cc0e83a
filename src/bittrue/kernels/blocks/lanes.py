"""Vectors as values: a fixed number of lanes, of which block kernels hold whole blocks at once.

The operations of `kernels.ops` take them as they take scalars, and scalars beside them are spread to all lanes. What is
here moves lanes: from and to memory, within a block, between widths. LLVM splits vectors that the host does not have.

How many lanes there are is part of the type, and so is how they lie in blocks: `shape` is three tuples, of which only
the lengths matter: log2 of the elements per group, of the groups per block, of the blocks per vector.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import types
from numba.core.datamodel import models
from numba.extending import intrinsic, lower_cast, register_model

from ..memory import LINE, request
from ..ops import binary

#: For functions of vectors, which must not pass through memory from one to the next.
inlined = njit(nogil=True, error_model="numpy", forceinline=True)


class Lanes(types.Type):  # type: ignore[misc]  # Numba is untyped
    """The Numba type of `count` lanes of `dtype`: an unsigned integer, float32, float64 or Boolean."""

    def __init__(self, dtype: Any, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(name=f"Lanes({dtype}, {count})")

    @property
    def mask(self) -> Any:
        """The type of a comparison of two such vectors."""
        return Lanes(types.boolean, self.count)

    @property
    def llvm(self) -> Any:
        """The LLVM type."""
        if isinstance(self.dtype, types.Float):
            return ir.VectorType(ir.FloatType() if self.dtype == types.float32 else ir.DoubleType(), self.count)
        return ir.VectorType(ir.IntType(1 if self.dtype == types.boolean else self.dtype.bitwidth), self.count)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Lanes) -> None:
        super().__init__(dmm, fe_type, fe_type.llvm)


@lower_cast(types.Integer, Lanes)
@lower_cast(types.Float, Lanes)
def _spread_scalar(context: Any, builder: Any, fromty: Any, toty: Lanes, value: Any) -> Any:
    one = builder.insert_element(
        ir.Constant(toty.llvm, ir.Undefined), context.cast(builder, value, fromty, toty.dtype), ir.IntType(32)(0)
    )
    return _shuffle(builder, one, [0] * toty.count)


@lower_cast(types.IntegerLiteral, Lanes)
def _spread_literal(context: Any, builder: Any, fromty: Any, toty: Lanes, value: Any) -> Any:
    ones = (1 << toty.dtype.bitwidth) - 1
    return ir.Constant(toty.llvm, [toty.llvm.element(fromty.literal_value & ones)] * toty.count)


@lower_cast(Lanes, Lanes)
def _change_width(context: Any, builder: Any, fromty: Lanes, toty: Lanes, value: Any) -> Any:
    if isinstance(toty.dtype, types.Float):
        return value if fromty == toty else builder.fpext(value, toty.llvm)
    if fromty.dtype.bitwidth < toty.dtype.bitwidth:
        return builder.zext(value, toty.llvm)
    return value if fromty == toty else builder.trunc(value, toty.llvm)


def _shuffle(builder: Any, value: Any, order: list[int]) -> Any:
    indices = ir.Constant(ir.VectorType(ir.IntType(32), len(order)), order)
    return builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), indices)


def _levels(shape: Any) -> tuple[int, int, int]:
    group, block, vector = (len(part) for part in shape)
    return group, group + block, group + block + vector


@intrinsic
def width_of(typingctx: Any, like: Any) -> Any:
    """The width in bits of the elements of an array, as a constant."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(ir.IntType(64), like.dtype.bitwidth)

    return types.int64(like), codegen


# --- memory -----------------------------------------------------------------------------------------------------------


def _at(context: Any, builder: Any, kind: Any, array: Any, index: Any, llvm: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), llvm.as_pointer())


@intrinsic
def load(typingctx: Any, array: Any, index: Any, shape: Any) -> Any:
    """The elements of an array from `index` on, one per lane."""
    result = Lanes(array.dtype, 1 << _levels(shape)[2])

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(_at(context, builder, array, args[0], args[1], result.llvm))
        value.align = array.dtype.bitwidth // 8
        return value

    return result(array, types.int64, shape), codegen


def _asking(to_write: int) -> Any:
    @intrinsic
    def operation(typingctx: Any, array: Any, index: Any, shape: Any) -> Any:
        size = array.dtype.bitwidth // 8 << _levels(shape)[2]

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            start = _at(context, builder, array, args[0], args[1], ir.IntType(8))
            for line in range(0, size, LINE):
                request(builder, builder.gep(start, [ir.IntType(64)(line)]), to_write)
            return context.get_dummy_value()

        return types.none(array, types.int64, shape), codegen

    return operation


prefetch = _asking(0)  # ask for the memory of a later `load`; it may lie beyond the end
prefetch_to_store = _asking(1)


@intrinsic
def store(typingctx: Any, array: Any, index: Any, lanes: Any) -> Any:
    """Store lanes into an array, or a mask as bits into bytes; float32 may be widened."""
    stored = Lanes(array.dtype, lanes.count) if isinstance(lanes.dtype, types.Float) else lanes
    llvm = ir.IntType(lanes.count) if lanes.dtype == types.boolean else stored.llvm

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.bitcast(args[2], llvm)
        builder.store(value, _at(context, builder, array, args[0], args[1], llvm)).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.none(array, types.int64, stored), codegen


def _first(which: int, bits: bool) -> Any:
    @intrinsic
    def operation(typingctx: Any, array: Any, index: Any, shape: Any) -> Any:
        count, level = 1 << _levels(shape)[2], _levels(shape)[which]
        few = count >> level
        result = Lanes(types.boolean if bits else array.dtype, count)
        stored = ir.IntType(few) if bits else ir.VectorType(result.llvm.element, few)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = builder.load(_at(context, builder, array, args[0], args[1], stored))
            value.align = 1 if bits else array.dtype.bitwidth // 8
            value = builder.bitcast(value, ir.VectorType(result.llvm.element, few))
            return _shuffle(builder, value, [i >> level for i in range(count)])

        return result(array, types.int64, shape), codegen

    return operation


load_blocks = _first(1, False)  # one element of an array per block, in all its lanes
load_group_bits = _first(0, True)  # one bit of an array of bytes per group, as a mask


def _starts(which: int) -> Any:
    @intrinsic
    def operation(typingctx: Any, lanes: Any, shape: Any) -> Any:
        level = _levels(shape)[which]
        result = Lanes(lanes.dtype, lanes.count >> level)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _shuffle(builder, args[0], [i << level for i in range(result.count)])

        return result(lanes, shape), codegen

    return operation


of_groups = _starts(0)  # the first lane of every group
of_blocks = _starts(1)  # the first lane of every block


# --- between lanes ----------------------------------------------------------------------------------------------------


def _maximum(span: Callable[[Any], tuple[int, int]]) -> Any:
    @intrinsic
    def operation(typingctx: Any, lanes: Any, shape: Any) -> Any:
        first, last = span(shape)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = args[0]
            for level in range(first, last):
                other = _shuffle(builder, value, [i ^ (1 << level) for i in range(lanes.count)])
                value = builder.select(builder.icmp_unsigned(">", value, other), value, other)
            return value

        return lanes(lanes, shape), codegen

    return operation


group_maxima = _maximum(lambda shape: (0, _levels(shape)[0]))  # the largest lane of each group, in all its lanes
block_maxima = _maximum(lambda shape: _levels(shape)[:2])  # the same of each block, given those of the groups


@intrinsic
def any_(typingctx: Any, mask: Any) -> Any:
    """Whether any lane of a mask is set."""
    word = ir.IntType(mask.count)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.icmp_unsigned("!=", builder.bitcast(args[0], word), word(0))

    return types.boolean(mask), codegen


@intrinsic
def upper(typingctx: Any, lanes: Any, like: Any) -> Any:
    """Lanes as wide as the elements of `like`: the upper halves, or the lanes as they are."""
    result = Lanes(like.dtype, lanes.count)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0] if result == lanes else _halves(builder, args[0], result, 1)

    return result(lanes, like), codegen


@intrinsic
def below(typingctx: Any, lanes: Any, like: Any) -> Any:
    """What `upper` leaves out: the lower halves, or zeros."""
    result = Lanes(like.dtype, lanes.count)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(result.llvm, None) if result == lanes else _halves(builder, args[0], result, 0)

    return result(lanes, like), codegen


def _halves(builder: Any, value: Any, result: Lanes, which: int) -> Any:
    pairs = builder.bitcast(value, ir.VectorType(result.llvm.element, 2 * result.count))
    return _shuffle(builder, pairs, [2 * i + which for i in range(result.count)])


@intrinsic
def widened(typingctx: Any, lanes: Any) -> Any:
    """float32 patterns: lanes of 32 bits as they are, those of 16 as upper halves."""
    result = Lanes(types.uint32, lanes.count)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if result == lanes:
            return args[0]
        return builder.shl(builder.zext(args[0], result.llvm), ir.Constant(result.llvm, [16] * result.count))

    return result(lanes), codegen


@intrinsic
def paired(typingctx: Any, lanes: Any) -> Any:
    """Pairs of lanes as lanes of twice the width, the first one lowest."""
    result = Lanes(types.Integer.from_bitwidth(2 * lanes.dtype.bitwidth, False), lanes.count // 2)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], result.llvm)

    return result(lanes), codegen


@intrinsic
def unpaired(typingctx: Any, lanes: Any) -> Any:
    """The inverse of `paired`."""
    result = Lanes(types.Integer.from_bitwidth(lanes.dtype.bitwidth // 2, False), lanes.count * 2)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], result.llvm)

    return result(lanes), codegen


def _cast(bits: int) -> Any:
    @intrinsic
    def operation(typingctx: Any, lanes: Any) -> Any:
        result = Lanes(types.Integer.from_bitwidth(bits, False), lanes.count)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return args[0]

        return result(result), codegen

    return operation


to_bytes = _cast(8)  # lanes of 8 bits: the low ones
to_words = _cast(16)
to_longs = _cast(32)


# --- floats -----------------------------------------------------------------------------------------------------------


def _reading(kind: Callable[[Any], Any], instruction: str) -> Any:
    @intrinsic
    def operation(typingctx: Any, lanes: Any) -> Any:
        result = Lanes(kind(lanes.dtype), lanes.count)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, instruction)(args[0], result.llvm)

        return result(lanes), codegen

    return operation


floats = _reading(lambda dtype: types.float32, "bitcast")  # the float32 values of patterns
to_floats = _reading(lambda dtype: types.float32, "sitofp")  # the float32 values of small integers
patterns = _reading(lambda dtype: types.Integer.from_bitwidth(dtype.bitwidth, False), "bitcast")  # of floats


@intrinsic
def floats_like(typingctx: Any, lanes: Any, like: Any) -> Any:
    """Floats as wide as those of other lanes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]

    return like(like, like), codegen


times, over = binary("fmul"), binary("fdiv")
