"""Huawei Ascend: data types, products, cast modes, the rule book of casts, the casts themselves, the matrix unit."""

from .cast import cast
from .choices import Choices, questions
from .complex import complex32, complex64
from .control import Ctrl
from .cube import MatmulReport, matmul
from .dequant import cast_dequant
from .fixpipe import fixpipe
from .hf32 import HF32TransMode, hf32
from .layout import nd_to_nz, nz_to_nd
from .modes import CastMode, RoundMode, SaturationMode, mode
from .products import DEFAULT_PRODUCT, Product, parse_target, product, products
from .quant import QuantParam
from .quantmodes import QuantInfo, QuantMode, quant_mode
from .rule import CastRule, cast_rule, modes
from .rulebook import Effect, Row, rules
from .types import Type, immediate, supported_types, type_info, types

__all__ = [
    "cast",
    "cast_dequant",
    "fixpipe",
    "hf32",
    "matmul",
    "MatmulReport",
    "complex32",
    "complex64",
    "cast_rule",
    "modes",
    "rules",
    "parse_target",
    "product",
    "products",
    "supported_types",
    "type_info",
    "types",
    "immediate",
    "mode",
    "quant_mode",
    "nd_to_nz",
    "nz_to_nd",
    "CastMode",
    "RoundMode",
    "QuantMode",
    "QuantInfo",
    "QuantParam",
    "SaturationMode",
    "HF32TransMode",
    "Ctrl",
    "Choices",
    "questions",
    "CastRule",
    "Effect",
    "Row",
    "Product",
    "Type",
    "DEFAULT_PRODUCT",
]
