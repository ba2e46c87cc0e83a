"""Huawei Ascend: data types, products, cast modes, the rule book of casts, and the casts themselves."""

from .cast import cast
from .choices import Choices, questions
from .complex import complex32, complex64
from .control import Ctrl
from .modes import CastMode, RoundMode, SaturationMode, mode
from .products import DEFAULT_PRODUCT, Product, parse_target, product, products
from .rule import CastRule, cast_rule, modes
from .rulebook import Effect, Row, rules
from .types import Type, immediate, supported_types, type_info, types

__all__ = [
    "cast",
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
    "CastMode",
    "RoundMode",
    "SaturationMode",
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
