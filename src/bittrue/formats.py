"""Formats as data: the catalogue, every format once, with the names it is known by; the kinds are in `kinds`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from .kinds import (
    ALIASES,
    BoolFormat,
    ComplexFormat,
    Field,
    FloatFormat,
    Format,
    IntFormat,
    Regime,
    TaperedFormat,
    Value,
    floor_log2,
)
from .rounding import suggestion

__all__ = [
    "BoolFormat",
    "ComplexFormat",
    "Field",
    "FloatFormat",
    "Format",
    "IntFormat",
    "Regime",
    "TaperedFormat",
    "Value",
    "floor_log2",
    "format",
    "formats",
    "p3109",
    "register",
]


def p3109(bits: int, precision: int, signed: bool = True, extended: bool = True) -> FloatFormat:
    """Return a format of the IEEE P3109 family.

    Parameters
    ----------
    bits : int
        Width K of a code, 3 to 16. (Some formats from 11 bits on exceed float64's range and are refused.)
    precision : int
        Significand bits P with the implicit one, from 1 to `bits` (signed: to ``bits - 1``).
    signed, extended : bool
        With a sign bit; with infinities ("extended" domain) or without ("finite").

    Examples
    --------
    >>> p3109(8, 4).max, p3109(8, 4).nan_code
    (Fraction(224, 1), 128)

    References
    ----------
    IEEE Working Group P3109, interim report, section "Binary floating-point formats for machine learning".
    """
    if not 3 <= bits <= 16:
        raise ValueError(f"bits={bits!r} must be from 3 to 16")
    if not 1 <= precision <= bits - signed:
        raise ValueError(f"precision={precision!r} must be from 1 to {bits - signed} for {bits} bits")
    exponent_bits = bits - precision + (not signed)
    return FloatFormat(
        f"p3109_k{bits}p{precision}{'s' if signed else 'u'}{'e' if extended else 'f'}",
        exponent_bits=exponent_bits,
        mantissa_bits=precision - 1,
        bias=1 << (exponent_bits - 1),
        signed=signed,
        inf=extended,
        nan="negative_zero" if signed else "ones",
    )


def _float(name: str, exponent_bits: int, mantissa_bits: int, **more: Any) -> FloatFormat:
    return FloatFormat(name, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits, **more)


_FN: dict[str, Any] = {"inf": False, "nan": "ones"}
_FNUZ: dict[str, Any] = {"inf": False, "nan": "negative_zero"}
_FINITE: dict[str, Any] = {"inf": False, "nan": "none"}

_float16 = _float("float16", 5, 10)
_float32 = _float("float32", 8, 23)

#: The catalogue: every format once, with its other names. Lookup ignores case.
_CATALOGUE: tuple[tuple[Format, str], ...] = (
    (BoolFormat("bool"), "bool_ DT_BOOL"),
    (IntFormat("int1", width=1), ""),
    (IntFormat("int2", width=2), ""),
    (IntFormat("int4", width=4), "S4 int4b_t int4x2_t int4_t DT_INT4"),
    (IntFormat("int8", width=8), "S8 int8_t DT_INT8 I8"),
    (IntFormat("int16", width=16), "S16 int16_t DT_INT16 I16 short"),
    (IntFormat("int32", width=32), "S32 int32_t DT_INT32 I32 int"),
    (IntFormat("int64", width=64), "S64 int64_t DT_INT64 I64 long"),
    (IntFormat("uint1", width=1, signed=False), ""),
    (IntFormat("uint2", width=2, signed=False), ""),
    (IntFormat("uint4", width=4, signed=False), "U4 uint4_t DT_UINT4"),
    (IntFormat("uint8", width=8, signed=False), "U8 uint8_t DT_UINT8"),
    (IntFormat("uint16", width=16, signed=False), "U16 uint16_t DT_UINT16"),
    (IntFormat("uint32", width=32, signed=False), "U32 uint32_t DT_UINT32"),
    (IntFormat("uint64", width=64, signed=False), "U64 uint64_t DT_UINT64"),
    (_float16, "half FP16 F16 DT_FP16 DT_FLOAT16"),
    (_float("bfloat16", 8, 7), "BF16 bfloat16_t DT_BF16 DT_BFLOAT16"),
    (_float("tfloat32", 8, 10), "TF32 tensorfloat32"),
    (_float32, "float FP32 F32 DT_FP32 DT_FLOAT float32_t"),
    (_float("float64", 11, 52), "double FP64 F64 DT_FP64 DT_DOUBLE float64_t"),
    (_float("float8_e3m4", 3, 4), "F8_E3M4 fp8_e3m4_t FLOAT8E3M4"),
    (_float("float8_e4m3", 4, 3), ""),
    (
        _float("float8_e4m3fn", 4, 3, **_FN),
        "fp8_e4m3fn_t fp8_e4m3fn FP8_E4M3 fp8_e4m3_t F8_E4M3 F8_E4M3FN FLOAT8E4M3FN DT_FP8E4M3 DT_FP8_E4M3FN",
    ),
    (_float("float8_e4m3fnuz", 4, 3, bias=8, **_FNUZ), "F8_E4M3FNUZ fp8_e4m3fnuz FLOAT8E4M3FNUZ"),
    (_float("float8_e4m3b11fnuz", 4, 3, bias=11, **_FNUZ), "float8_e4m3b11 F8_E4M3B11FNUZ FLOAT8E4M3B11FNUZ"),
    (
        _float("float8_e5m2", 5, 2),
        "fp8_e5m2_t fp8_e5m2 FP8_E5M2 F8_E5M2 FLOAT8E5M2 DT_FP8E5M2 DT_FP8_E5M2",
    ),
    (_float("float8_e5m2fnuz", 5, 2, bias=16, **_FNUZ), "F8_E5M2FNUZ fp8_e5m2fnuz FLOAT8E5M2FNUZ"),
    (
        _float("float8_e8m0fnu", 8, 0, signed=False, zero=False, **_FN),
        "fp8_e8m0_t fp8_e8m0 FP8_E8M0 float8_e8m0 e8m0 F8_E8M0 FLOAT8E8M0 F8_E8M0FNU",
    ),
    (_float("float6_e2m3fn", 2, 3, **_FINITE), "float6_e2m3 F6_E2M3 fp6_e2m3 FLOAT6E2M3 FLOAT6E2M3FN"),
    (_float("float6_e3m2fn", 3, 2, **_FINITE), "float6_e3m2 F6_E3M2 fp6_e3m2 FLOAT6E3M2 FLOAT6E3M2FN"),
    (
        _float("float4_e2m1fn", 2, 1, **_FINITE),
        "float4_e2m1 float4_e2m1fn_x2 fp4x2_e2m1_t fp4_e2m1 FP4_E2M1 FLOAT4E2M1 FLOAT4E2M1FN F4 F4_E2M1 "
        "DT_FP4_E2M1X2",
    ),
    (
        _float("float4_e1m2fn", 1, 2, bias=1, **_FINITE),
        "float4_e1m2 fp4x2_e1m2_t fp4_e1m2 FP4_E1M2 FLOAT4E1M2 F4_E1M2 DT_FP4_E1M2X2",
    ),
    (
        TaperedFormat(
            "hifloat8",
            regimes=(
                Regime(0b0000, 4, 0, 3, subnormal=True),
                Regime(0b0001, 4, 0, 3),
                Regime(0b001, 3, 1, 3),
                Regime(0b01, 2, 2, 3),
                Regime(0b10, 2, 3, 2),
                Regime(0b11, 2, 4, 1),
            ),
            subnormal_bias=-23,
            inf_magnitude=0x6F,
            nan_code=0x80,
            max_code=0x6E,
        ),
        "hifloat8_t HiF8 HF8 DT_HF8 DT_HIFLOAT8 DT_FP8_HIF8",
    ),
    (ComplexFormat("complex32", part=_float16), "C32 complex32_t DT_COMPLEX32 chalf"),
    (ComplexFormat("complex64", part=_float32), "C64 complex64_t DT_COMPLEX64 cfloat"),
)

ALIASES.update({f.name: tuple(names.split()) for f, names in _CATALOGUE})
_BY_NAME: dict[str, Format] = {}
#: Names that several formats share in the field, which therefore are names of none here.
_SEVERAL = {
    "fp8 float8 f8": "float8_e4m3fn, float8_e5m2 or hifloat8",
    "e4m3": "float8_e4m3fn (torch, OCP), float8_e4m3 (with Inf) or float8_e4m3fnuz",
    "e5m2": "float8_e5m2 or float8_e5m2fnuz",
    "fp6 float6 f6": "float6_e3m2fn or float6_e2m3fn",
    "fp4 float4": "float4_e2m1fn or float4_e1m2fn, or in blocks mxfp4 or nvfp4",
}
_P3109 = re.compile(r"p3109_k(\d{1,3})p(\d{1,3})([su])([ef])")
_PREFIXES = ("torch.", "numpy.", "np.", "ml_dtypes.", "en_dtypes.", "ascendc::", "pypto.", "tensorproto.", "bittrue.")


def register(format: Format, *aliases: str) -> Format:
    """Make a format of your own known to `format` (and so to every function and command) under its name.

    Raises
    ------
    ValueError
        When the name or an alias already belongs to another format.

    Examples
    --------
    >>> mine = register(FloatFormat("e3m2_ieee", exponent_bits=3, mantissa_bits=2))
    >>> format("E3M2_IEEE") is mine
    True
    """
    names = (format.name, *aliases)
    for name in names:
        if _BY_NAME.get(name.lower(), format) != format:
            raise ValueError(f"name {name!r} already belongs to the format {_BY_NAME[name.lower()].name}")
    for name in names:
        _BY_NAME[name.lower()] = format
    if aliases:
        ALIASES[format.name] = (*ALIASES.get(format.name, ()), *aliases)
    return format


for _f, _ in _CATALOGUE:
    for _name in (_f.name, *ALIASES[_f.name]):
        assert _name.lower() not in _BY_NAME or _BY_NAME[_name.lower()] is _f, _name
        _BY_NAME[_name.lower()] = _f


def _names() -> Iterator[str]:
    for f in dict.fromkeys(_BY_NAME.values()):
        yield f.name
        yield from f.aliases


def format(name: object) -> Format:
    """Return the format with this name.

    Parameters
    ----------
    name : str, dtype or Format
        The canonical name or any alias of Ascend C, PyPTO, torch, ONNX, safetensors, ml_dtypes or en_dtypes, in any
        case; a NumPy, ml_dtypes, en_dtypes or torch dtype object; or a format, which is returned as it is. Strings are
        never read as NumPy type codes ("U8" is uint8, not uint64).

    Raises
    ------
    ValueError
        For an unknown name, with a suggestion.

    Examples
    --------
    >>> format("half") is format("DT_FP16") is format(np.float16)
    True
    >>> format("FP8_E4M3").name
    'float8_e4m3fn'
    >>> format("p3109_k8p4se") == p3109(8, 4)
    True
    """
    if isinstance(name, Format):
        return name
    key = _key(name)
    found = _BY_NAME.get(key) if key else None
    family = _P3109.fullmatch(key) if found is None and key else None
    if family:
        bits, precision, sign, domain = family.groups()
        return p3109(int(bits), int(precision), sign == "s", domain == "e")
    if found is None:
        shown = name if isinstance(name, str) else repr(name)
        several = next((formats for names, formats in _SEVERAL.items() if key in names.split()), None)
        meant = f"; name one: {several}" if several else suggestion(key or "", map(str.lower, _names()))
        raise ValueError(f"format {shown!r} is not known{meant} (bittrue.formats() or 'bittrue formats' lists them)")
    return found


def _key(name: object) -> str | None:
    if name is None or isinstance(name, bytes):
        return None
    if isinstance(name, str):
        text = name.strip().lower()
    elif type(name).__module__ == "torch" and type(name).__name__ == "dtype":
        text = str(name).lower()
    else:
        try:
            dtype = np.dtype(name)  # type: ignore[call-overload]
        except (TypeError, ValueError):
            return None
        if dtype.fields is not None or dtype.subdtype is not None or dtype.kind in "OSUMm":
            return None
        text = str(dtype.name).lower()
    for prefix in _PREFIXES:
        text = text.removeprefix(prefix)
    return text


def formats(kind: str | None = None) -> list[Format]:
    """Return the catalogue: the built-in formats in their order, then the registered ones.

    Parameters
    ----------
    kind : {"bool", "int", "float", "tapered", "complex", "block"}, optional
        Only formats of this kind. Default: all that have one code per element, that is all but "block".

    Examples
    --------
    >>> [f.name for f in formats()][:3], formats("block")[0].name
    (['bool', 'int1', 'int2'], 'mx9')
    """
    every = dict.fromkeys(_BY_NAME.values())
    kinds = {f.kind for f in every}
    if kind is not None and kind not in kinds:
        raise ValueError(f"kind={kind!r} is not a kind of format{suggestion(kind, kinds)} ({', '.join(sorted(kinds))})")
    return [f for f in every if (f.kind != "block" if kind is None else f.kind == kind)]
