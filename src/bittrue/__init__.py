"""Bit-true number formats, casts and block layouts of AI accelerators."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import blockformats as _blockformats  # registers its rows
from .formats import (
    BoolFormat,
    ComplexFormat,
    FloatFormat,
    Format,
    IntFormat,
    TaperedFormat,
    format,
    formats,
    p3109,
    register,
)
from .kinds.block import BlockFormat, BlockRule, ScaledFormat, ScaleRule, SharedExponentFormat
from .rounding import NanPolicy, Negative, Overflow, Rounding, Rule

if TYPE_CHECKING:
    from .array import Array, array
    from .blocks import BlockArray
    from .codec import decode, encode, quantize
    from .comparison import compare
    from .convert import convert
    from .diagnosis import diagnose
    from .files import FileError, Writer, load, open_tensors, save
    from .operations import (
        ULP_NAN,
        abs,
        argmax,
        argmin,
        argsort,
        concatenate,
        equal,
        isfinite,
        isinf,
        isnan,
        max,
        min,
        neg,
        nextafter,
        signbit,
        sort,
        take,
        ulp_distance,
        unique,
    )
    from .reduce import dot, mean, sum
    from .studying import study

__version__ = "0.1.0"

#: Loaded on first use, so that ``import bittrue`` costs little more than NumPy.
_LAZY: dict[str, str] = {
    "Array": "array",
    "array": "array",
    "encode": "codec",
    "decode": "codec",
    "quantize": "codec",
    "BlockArray": "blocks",
    "save": "files",
    "load": "files",
    "FileError": "files",
    "open_tensors": "files",
    "Writer": "files",
    **dict.fromkeys(
        "ULP_NAN abs argmax argmin argsort concatenate equal isfinite isinf isnan max min neg nextafter signbit sort "
        "take ulp_distance unique".split(),
        "operations",
    ),
    **dict.fromkeys(("sum", "mean", "dot"), "reduce"),
    "compare": "comparison",
    "convert": "convert",
    "diagnose": "diagnosis",
    "study": "studying",
}
_ROOMS = (
    *"aie ascend blocks comparison diagnosis exact exact_blocks operations packing reduce".split(),
)

__all__ = [
    "BlockFormat",
    "BlockRule",
    "BoolFormat",
    "ComplexFormat",
    "FloatFormat",
    "Format",
    "IntFormat",
    "NanPolicy",
    "Negative",
    "Overflow",
    "Rounding",
    "Rule",
    "ScaleRule",
    "ScaledFormat",
    "SharedExponentFormat",
    "TaperedFormat",
    "format",
    "formats",
    "p3109",
    "register",
    *_LAZY,
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Package(ModuleType):
    """The package: importing the module `bittrue.array` does not put it over the function of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _LAZY and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_ROOMS})
