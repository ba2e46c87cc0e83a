"""Integer operations that stay at the width of their first operand, for use inside Numba kernels.

Numba computes ``uint32 + uint32`` in 64 bits, which halves the SIMD lanes.  These operations emit the LLVM instruction
at the width of the first operand; every other integer operand is converted (truncated or zero-extended) to that type.
One kernel source therefore serves 16-, 32- and 64-bit lanes.
"""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

# llvmlite and Numba are untyped; `Any` below is deliberate.


def _mask(x: Any) -> Any:
    """The type of a comparison: a Boolean, or one per lane of a vector (`blocks.lanes`)."""
    return getattr(x, "mask", types.boolean)


def binary(instruction: str) -> Any:
    """Return an intrinsic for one LLVM instruction of two operands."""

    @intrinsic
    def operation(typingctx: Any, x: Any, y: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, instruction)(*args)

        return x(x, x), codegen

    return operation


def _comparison(predicate: str, signed: bool = False) -> Any:
    """Return an intrinsic for one LLVM integer comparison; its result is a Boolean for `select`."""

    @intrinsic
    def operation(typingctx: Any, x: Any, y: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            compare = builder.icmp_signed if signed else builder.icmp_unsigned
            return compare(predicate, *args)

        return _mask(x)(x, x), codegen

    return operation


def _extremum(predicate: str) -> Any:
    """Return an intrinsic for the unsigned minimum or maximum."""

    @intrinsic
    def operation(typingctx: Any, x: Any, y: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(builder.icmp_unsigned(predicate, *args), *args)

        return x(x, x), codegen

    return operation


add = binary("add")
sub = binary("sub")
mul = binary("mul")
and_ = binary("and_")
or_ = binary("or_")
xor = binary("xor")
shl = binary("shl")  # the shift count must be below the width
lshr = binary("lshr")
ashr = binary("ashr")
lt = _comparison("<")  # unsigned comparisons
gt = _comparison(">")
eq = _comparison("==")
ne = _comparison("!=")
lt_signed = _comparison("<", signed=True)
min_ = _extremum("<")
max_ = _extremum(">")


@intrinsic
def leading_zeros(typingctx: Any, x: Any) -> Any:
    """The number of zero bits above the highest set bit; the width for zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return x(x), codegen


@intrinsic
def select(typingctx: Any, condition: Any, x: Any, y: Any) -> Any:
    """``x if condition else y``, without a branch, at the width of `x`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(*args)

    return x(_mask(x), x, x), codegen


@intrinsic
def float_to_half_bits(typingctx: Any, x: Any) -> Any:
    """The float16 pattern (uint16) of a float32, rounded to nearest even by the host's own conversion."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), codegen


@intrinsic
def half_bits_to_float(typingctx: Any, x: Any) -> Any:
    """The float32 value of a float16 pattern (uint16)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), codegen


@intrinsic
def float_to_bits(typingctx: Any, x: Any) -> Any:
    """The pattern (uint32) of a float32."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.uint32(types.float32), codegen


@intrinsic
def bits_to_float(typingctx: Any, x: Any) -> Any:
    """The float32 value of a pattern (uint32)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.uint32), codegen


@intrinsic
def lit(typingctx: Any, x: Any, value: Any) -> Any:
    """`value` (an integer) converted to the type of `x`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[1]

    return x(x, x), codegen


@intrinsic
def widest_vectors(typingctx: Any) -> Any:
    """Let LLVM use the widest vectors of the host in the calling kernel (it prefers 256 bits on AVX-512)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # llvmlite's `add` knows the bare attributes only; this one is a string attribute.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), codegen
