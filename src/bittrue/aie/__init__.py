"""AMD AI Engine: vectors, accumulators, shift-round-saturate, matrix multiply, block vectors, ports."""

from .accum import accum, mac, msc, mul, negmul
from .arch import DEFAULT_ARCH, Arch, arch, archs
from .block import BlockType, BlockVectorStream, block_format, block_types, block_vector
from .choices import Choices, questions
from .elements import Element, element, elements, lanes
from .floats import float_to_bfloat16, to_fixed, to_float
from .mmul import MmulShape, matmul, mmul, mmul_pairs, mmul_shapes
from .modes import RoundingMode, SaturationMode, rounding_code, rounding_mode, rounding_modes, saturation_mode
from .ports import PortType, check_port, port_types
from .srs import srs, ups
from .tags import Tag, default_tag, native_accum, tag, tags
from .tile import State, current_tile, set_rounding, set_saturation, tile
from .vector import vector
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
    "block_vector",
    "block_types",
    "block_format",
    "BlockVectorStream",
    "BlockType",
    "port_types",
    "check_port",
    "PortType",
    "mmul_pairs",
    "mmul_shapes",
    "mmul",
    "matmul",
    "MmulShape",
    "vector",
    "to_float",
    "to_fixed",
    "float_to_bfloat16",
    "negmul",
    "mul",
    "msc",
    "mac",
    "accum",
]
