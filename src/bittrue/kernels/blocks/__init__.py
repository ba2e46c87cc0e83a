"""Loops between float bit patterns and packed blocks; they know plain arrays and numbers, no format.

The work is done tile by tile, in short passes over scratch arrays that stay in the first-level cache, each of which
LLVM turns into vector code of its own lane width:

1. exponents: the exponent fields as bytes;
2. maxima: pairs of bytes are merged level by level until one is left per group and per block, and block results are
   spread back to the elements the same way, so that any power of two is served by one loop;
3. codes: the significand is shifted to the block's step and rounded as in `encode`. Patterns are doubled, which drops
   the sign; of float32 the upper half alone is used, doubled, with a sticky bit for the lower one in the place made
   free (16-bit lanes: 8 exponent bits, 7 fraction bits, sticky);
4. packing: the codes of eight elements are folded in a 64-bit word, of which the bytes are stored.

Whether a mantissa will round beyond its range is known from its pattern alone: a constant added to the fraction, which
depends on the rounding rule and the sign, carries into the exponent field exactly if it does. So the exponent of a
block that must go up is found in pass 2, and nothing is ever quantised twice.
"""

from .memory import TILE, fold_masks, pack, unpack
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
    "fold_masks",
    "pack",
    "quantize_scaled",
    "quantize_shared",
    "scaled_parameters",
    "shared_form",
    "shared_parameters",
    "unpack",
]
