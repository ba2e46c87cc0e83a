"""The plan of a cast: the core's stages for its rule, and the few steps around them that a rule cannot say."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from .. import exact
from ..formats import ComplexFormat, Format, TaperedFormat, format
from ..kernels import decode as decoding
from ..kernels import scaled
from ..plans import Plan, check_codes, encode_plan
from ..rounding import Overflow, Rounding, Rule
from .modes import RoundMode
from .rule import CastRule

__all__ = ["plan_of"]

Plain = np.ndarray[Any, Any]
Run = Callable[[Plain, Plain, int, Plain], object]

_CHUNK = 1 << 15  # elements per pass of a step that needs scratch memory
_F32, _BF16, _HIF8 = format("float32"), format("bfloat16"), format("hifloat8")


def plan_of(cast: CastRule, scale: np.float16 | None) -> Plan:
    """Return the stages from bits of the source to codes of the destination (complex: of their parts).

    Parameters
    ----------
    cast : CastRule
    scale : float16, optional
        Scale of the dequantising cast.
    """
    source, target = _part(cast.source.format), _part(cast.destination.format)
    semantics = cast.row.semantics
    if semantics == "e8m0" and source is _BF16:
        return _by_table(_to_e8m0(cast), target)
    if semantics == "dequant":
        assert scale is not None
        return _one(_scaled(np.float32(scale), cast.saturates), target.code_dtype)
    if semantics == "round-integral" or (semantics == "complex" and source is target):
        widen = Plan(()) if source is _F32 else encode_plan(source, _F32, Rule(overflow=Overflow.infinity))
        integral = _integral(cast.mode, plus=cast.answered(39, "plus"))
        return widen + _one(integral, np.uint32) + encode_plan(_F32, target, cast.rule)
    if source.bits < 8 or (source.bits == 8 and source.kind != "int"):
        table = _decode_table(source, target, cast.rule)
        if cast.answered(10, "zero"):
            table = np.where(np.arange(256) == 0, 0, table).astype(table.dtype)
        return _by_table(table, target, source)
    plan = encode_plan(source, target, cast.rule)
    return _corrected(cast, source, target, plan)


def _part(fmt: Format) -> Format:
    return fmt.part if isinstance(fmt, ComplexFormat) else fmt


def _one(run: Run, dtype: Any) -> Plan:
    return Plan(((run, np.dtype(dtype)),))


def _by_table(table: Plain, target: Format, source: Format | None = None) -> Plan:
    def run(src: Plain, dst: Plain, _start: int, _random: Plain) -> None:
        seen = decoding.decode_table(src, table, dst)
        if source is not None:
            check_codes(seen, source)

    return _one(run, target.code_dtype)


# --- whole conversions ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _decode_table(source: Format, target: Format, rule: Rule) -> Plain:
    """Return the code in `target` of every code of a format of at most 8 bits; zero beyond its codes."""
    table = np.zeros(256, target.code_dtype)
    for code in range(1 << source.bits):
        table[code] = exact.encode(source.value(code), target, rule, source=source)
    table.flags.writeable = False
    return table


def _to_e8m0(cast: CastRule) -> Plain:
    """Return the fp8_e8m0 code of every bfloat16 code: its exponent field (Reg Cast.md; open questions 9 and 11)."""
    codes = np.arange(1 << 16)
    table = (codes >> 7 & 0xFF).astype(np.uint8)
    fraction = codes & 0x7F
    special = table == 0xFF
    table[special & (fraction == 0)] = cast.choices.e8m0_inf
    zeroed = cast.saturates and not cast.ctrl.bit50
    table[special & (fraction != 0)] = cast.choices.e8m0_nan if zeroed else 0xFF
    return table


def _scaled(scale: np.float32, saturates: bool) -> Run:
    """int32 to half(float32(src) * scale), each step rounded (the A5 implementation of Cast with SetDeqScale).

    The vendor multiplies by 2**-17 before and by 2**17 after. With |src| from 1 to 2**31 and a half scale from 2**-24
    to 65504 nothing leaves float32's normal range on the way, so both are exact and cancel.
    """

    cap = np.float32(65504 if saturates else np.inf)
    return lambda src, dst, _start, _random: scaled.scale_to_half(src, dst, scale, cap)


_INTEGRAL: dict[RoundMode, Callable[..., Any]] = {
    RoundMode.RINT: np.rint,
    RoundMode.FLOOR: np.floor,
    RoundMode.CEIL: np.ceil,
    RoundMode.TRUNC: np.trunc,
}


def _integral(mode: RoundMode, plus: bool) -> Run:
    """Round float32 to integral values; zero keeps its sign, or loses it (`plus`). NaN is left to what follows."""

    def run(src: Plain, dst: Plain, _start: int, _random: Plain) -> None:
        x, out = src.view(np.float32), dst.view(np.float32)
        with np.errstate(invalid="ignore"):  # signalling NaNs, and Inf - Inf below
            if mode in _INTEGRAL:
                _INTEGRAL[mode](x, out=out)
            else:
                assert mode is RoundMode.ROUND
                np.trunc(x, out=out)
                up = np.abs(x - out) >= 0.5  # exact: both have the grid of x; False for infinities
                np.add(out, np.copysign(up.astype(np.float32), x), out=out)
            if plus:
                np.add(out, np.float32(0), out=out)

    return run


# --- corrections ------------------------------------------------------------------------------------------------------


def _corrected(cast: CastRule, source: Format, target: Format, plan: Plan) -> Plan:
    """Add what open questions ask for beyond the rule."""
    if 8 in cast.row.questions and not cast.saturates and cast.choices.fp8_nan_sign == "positive":
        return plan + _by_table(_positive_nan(target), target)
    if cast.answered(6, 0x8):
        return _with_input(plan, source, lambda x, codes: np.copyto(codes, 0x8, where=np.isnan(x) & np.signbit(x)))
    if cast.answered(15, "torch") and not cast.saturates:
        return _with_input(plan, source, _infinities_as_torch)
    if target is _HIF8 and cast.mode is RoundMode.HYBRID:
        return _hybrid(cast, source, plan)
    return plan


def _positive_nan(target: Format) -> Plain:
    """The kernel gives a NaN from overflow the sign of the value; asc-tools gives both the positive code."""
    table = np.arange(256, dtype=np.uint8)
    table[0xFF] = 0x7F
    return table


def _infinities_as_torch(x: Plain, codes: Plain) -> None:
    infinite = np.isinf(x)
    if infinite.any():
        codes[infinite] = np.where(x[infinite] > 0, -1, 0).astype(codes.dtype)


def _hybrid(cast: CastRule, source: Format, plan: Plan) -> Plan:
    if source is _BF16 and cast.answered(5, "direct"):
        plan = _one(_with_threshold, np.uint32) + encode_plan(_F32, cast.destination.format, cast.rule)
    assert isinstance(cast.destination.format, TaperedFormat)
    target, rule = cast.destination.format, cast.rule
    if cast.answered(3, "golden_script"):
        upper, lower = (exact.encode(4 * limit, target, rule) for limit in (target.max, target.min))

        def overflow(x: Plain, codes: Plain) -> None:
            np.copyto(codes, upper, where=x >= 40960)
            np.copyto(codes, lower, where=x <= -40960)

        plan = _with_input(plan, source, overflow)
    if cast.answered(2, "keep"):
        nearest = encode_plan(source, target, Rule(Rounding.nearest_away, rule.overflow, rule.nan))
        values = np.array([float(target.value(code)) for code in range(256)], np.float32)

        def keep(x: Plain, codes: Plain, bits: Plain) -> None:
            exactly = _through(nearest, bits, np.empty(codes.size, np.uint8))
            np.copyto(codes, exactly, where=values[exactly] == x)

        plan = _with_input(plan, source, keep, bits=True)
    return plan


def _with_threshold(src: Plain, dst: Plain, _start: int, _random: Plain) -> None:
    """Write a bfloat16 as the float32 whose 14 lowest bits hold its own threshold {lowest fraction bit, 1}.

    HYBRID compares the first 14 dropped bits with the 14 lowest ones. At most 7 - k fraction bits of a bfloat16 are
    dropped and the threshold counts in the two highest of the 14, so the comparison is that of the two-bit fields.
    """
    np.copyto(dst, src)
    threshold = (dst & 1) << 13 | 1 << 12
    dst <<= 16
    np.bitwise_or(dst, threshold, out=dst, where=(dst & 0x7F800000) != 0x7F800000)  # an Inf must not become a NaN


def _with_input(plan: Plan, source: Format, correct: Callable[..., object], bits: bool = False) -> Plan:
    """Return a plan that lets ``correct(values, codes[, bits])`` change codes in view of the input values."""
    widen = encode_plan(source, _F32, Rule(overflow=Overflow.infinity)) if source is not _F32 else None

    def run(src: Plain, dst: Plain, _start: int, _random: Plain) -> None:
        for lo in range(0, src.size, _CHUNK):
            part, codes = src[lo : lo + _CHUNK], dst[lo : lo + _CHUNK]
            _through(plan, part, codes)
            x = part if widen is None else _through(widen, part, np.empty(part.size, np.uint32))
            correct(x.view(np.float32), codes, *((part,) if bits else ()))

    return _one(run, plan.stages[-1][1])


def _through(plan: Plan, src: Plain, dst: Plain) -> Plain:
    """Run all stages of a plan on one chunk."""
    none = np.empty(0, np.uint32)
    for run, dtype in plan.stages[:-1]:
        following = np.empty(src.size, dtype)
        run(src, following, 0, none)
        src = following
    plan.stages[-1][0](src, dst, 0, none)
    return dst
