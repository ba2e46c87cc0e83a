"""The catalogue of block formats: every one once, with its other names; the kinds are in `kinds.block`."""

from __future__ import annotations

from .formats import FloatFormat, Format, IntFormat, format, register
from .kinds.block import BlockRule, ScaledFormat, SharedExponentFormat

__all__ = ["CATALOGUE"]


def _mx(bits: int, mantissa_bits: int) -> tuple[tuple[Format, str], ...]:
    """UG1603's formula (sign and magnitude, bias 128), and AM027 with aie_api's constants (two's complement, 127)."""
    common = {"block_size": 16, "mantissa_bits": mantissa_bits, "shift_group": 2}
    ug1603 = SharedExponentFormat(
        f"mx{bits}", mantissa="sign_magnitude", bias=128, convention="ug1603", **common  # type: ignore[arg-type]
    )
    am027 = SharedExponentFormat(
        f"mx{bits}_am027", bias=127, exponent_255="nan", convention="am027", **common  # type: ignore[arg-type]
    )
    return (ug1603, f"aie::mx{bits} mx{bits}_ug1603"), (am027, "")


def _bfp16(size: int) -> tuple[Format, str]:
    rule = BlockRule(overflow="bump_block", nonfinite="coded")  # type: ignore[arg-type]
    name = f"bfp16ebs{size}"
    return SharedExponentFormat(name, block_size=size, rule=rule), f"aie::{name} v64{name}"


def _ocp(name: str, element: str, aliases: str) -> tuple[Format, str]:
    found = format(element)
    assert isinstance(found, FloatFormat) and isinstance(_E8M0, FloatFormat)
    return ScaledFormat(name, block_size=32, element=found, scale=_E8M0), aliases


_E8M0 = format("float8_e8m0fnu")
_UE4M3 = FloatFormat("float8_ue4m3fn", exponent_bits=4, mantissa_bits=3, signed=False, inf=False, nan="ones")
_INT8, _E2M1 = format("int8"), format("float4_e2m1fn")
assert isinstance(_E8M0, FloatFormat) and isinstance(_INT8, IntFormat) and isinstance(_E2M1, FloatFormat)

#: Rows: format, other names.
CATALOGUE: tuple[tuple[Format, str], ...] = (
    *_mx(9, 8),
    *_mx(6, 5),
    *_mx(4, 3),
    _bfp16(8),
    _bfp16(16),
    _ocp("mxfp8_e5m2", "float8_e5m2", ""),
    _ocp("mxfp8_e4m3", "float8_e4m3fn", "mxfp8 mxfp8_e4m3fn"),
    _ocp("mxfp6_e3m2", "float6_e3m2fn", "mxfp6_e3m2fn"),
    _ocp("mxfp6_e2m3", "float6_e2m3fn", "mxfp6_e2m3fn"),
    _ocp("mxfp4", "float4_e2m1fn", "mxfp4_e2m1 mxfp4_e2m1fn"),
    _ocp("mxfp4_e1m2", "float4_e1m2fn", "mxfp4_e1m2fn"),
    (ScaledFormat("mxint8", block_size=32, element=_INT8, scale=_E8M0, fraction_bits=6), ""),
    (ScaledFormat("nvfp4", block_size=16, element=_E2M1, scale=_UE4M3, tensor_scale=True), ""),
)

for _format, _names in CATALOGUE:
    register(_format, *_names.split())
