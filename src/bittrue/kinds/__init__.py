"""What a format can be: the classes of formats; the formats themselves are rows in `formats`."""

from .base import ALIASES, BoolFormat, Field, Format, IntFormat, Value, dyadic, floor_log2, odd_part
from .real import ComplexFormat, FloatFormat, RealFormat, Regime, TaperedFormat

__all__ = [
    "ALIASES",
    "BoolFormat",
    "ComplexFormat",
    "Field",
    "FloatFormat",
    "Format",
    "IntFormat",
    "RealFormat",
    "Regime",
    "TaperedFormat",
    "Value",
    "dyadic",
    "floor_log2",
    "odd_part",
]
