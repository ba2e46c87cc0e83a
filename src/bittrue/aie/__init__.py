"""AMD AI Engine: vectors, accumulators, shift-round-saturate, matrix multiply, block vectors, ports."""

from .arch import DEFAULT_ARCH, Arch, arch, archs
from .choices import Choices, questions
from .elements import Element, element, elements, lanes
from .modes import RoundingMode, SaturationMode, rounding_code, rounding_mode, rounding_modes, saturation_mode
from .srs import srs, ups
from .tags import Tag, default_tag, native_accum, tag, tags
from .tile import State, current_tile, set_rounding, set_saturation, tile
from .wide import Wide

__all__ = [
    "DEFAULT_ARCH",
    "Arch",
    "Choices",
    "Element",
    "RoundingMode",
    "SaturationMode",
    "State",
    "Tag",
    "Wide",
    "arch",
    "archs",
    "current_tile",
    "default_tag",
    "element",
    "elements",
    "lanes",
    "native_accum",
    "questions",
    "rounding_code",
    "rounding_mode",
    "rounding_modes",
    "saturation_mode",
    "set_rounding",
    "set_saturation",
    "srs",
    "tag",
    "tags",
    "tile",
    "ups",
]
