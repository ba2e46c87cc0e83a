"""Loops between float bit patterns and packed blocks; they know plain arrays and numbers, no format.

A vector of at least 32 lanes holds whole blocks, and everything about them is found in it, in one pass (two where the
scales between are computed block by block):

1. exponents: the largest of a group or a block comes into all of its lanes by exchange at distances 1, 2, 4, ...;
2. codes: the significand is shifted to the block's step and rounded as in `encode`. Patterns are doubled, which drops
   the sign; of float32 the upper half alone is used, doubled, with a sticky bit for the lower one in the place made
   free (16-bit lanes: 8 exponent bits, 7 fraction bits, sticky);
3. packing: the codes of eight elements are folded in a 64-bit word. Words and heads of a tile lie in scratch memory
   until their bytes are stored.

How elements lie in groups, blocks and vectors is part of the types (`lanes`), so that LLVM sees straight code: kernels
are compiled once for each geometry, not for each format.

Whether a mantissa will round beyond its range is known from its pattern alone: a constant added to the fraction, which
depends on the rounding rule and the sign, carries into the exponent field exactly if it does. So the exponent of a
block that must go up is found in step 1, and nothing is ever quantised twice.
"""

from .memory import TILE, unpack
from .scaled import decode_scaled, element_form, encode_scaled, quantize_scaled, scaled_parameters
from .shared import (
    AT_TOP,
    BUMP,
    CLEAR,
    NONFINITE,
    SATURATE,
    decode_shared,
    encode_shared,
    quantize_shared,
    shared_form,
    shared_parameters,
)

__all__ = [
    "AT_TOP",
    "BUMP",
    "CLEAR",
    "NONFINITE",
    "SATURATE",
    "TILE",
    "decode_scaled",
    "decode_shared",
    "element_form",
    "encode_scaled",
    "encode_shared",
    "quantize_scaled",
    "quantize_shared",
    "scaled_parameters",
    "shared_form",
    "shared_parameters",
    "unpack",
]
