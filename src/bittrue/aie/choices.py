"""The open questions of the AI Engine: one field each, with the documented default and every candidate."""

from __future__ import annotations

from dataclasses import dataclass

from .. import evidence
from ..evidence import Question, question

__all__ = ["Choices", "questions"]


@dataclass(frozen=True)
class Choices:
    """What to do where AMD's documents contradict each other or say nothing.

    Every field has the documented default; `docs/evidence.md` lists all candidates with their sources.

    Raises
    ------
    ValueError
        For a value that is no candidate of its field.

    Examples
    --------
    >>> Choices(ups_overflow="wrap").bf16_int16
    'wrap'
    """

    convention: str = question(
        1,
        "How are the bytes of MX9, MX6 and MX4 read?",
        ("ug1603", "sign and magnitude, exponent bias 128", "UG1603 2026.1, formula of \"Data Types\""),
        ("am027", "two's complement, exponent bias 127", "AM027, ch. 4; constants of aie_api 2026, accum.hpp"),
    )
    mx_overflow: str = question(
        (2, 3),
        "What happens when an MX mantissa rounds beyond its range (at the top exponent always: it saturates)?",
        ("saturate", "it stops at the limit", "amd-quark 0.13; tensorcast c4d9b1d"),
        ("bump_block", "the exponent goes up, the block is quantised again", "bfp16ebs8 on XDNA2 silicon, by analogy"),
        ("clear_e2_then_bump", "the pair's level-2 exponent is given up first", "possible; no source"),
    )
    zero_pair_e2: int = question(
        4,
        "Which level-2 exponent has a pair of zeros in a block that is not zero?",
        (1, "one", "amd-quark 0.13"),
        (0, "zero", "possible; no source"),
    )
    flush_subnormals: bool = question(
        5,
        "Do float32 subnormals count as zero on the way to MX?",
        (True, "yes", "amd-quark 0.13; bfp16ebs8 on XDNA2 silicon"),
        (False, "no", "tensorcast c4d9b1d"),
    )
    nonfinite: str = question(
        6,
        "What becomes of an MX block with an Inf or a NaN?",
        ("auto", "ug1603: an error, for there is no code; am027: a NaN block, E1 = 255", "amd-quark 0.13, ONNX kernel"),
        ("raise", "an error", "assumed; no source"),
        ("nan_block", "E1 = 255, all codes zero (am027 only)", "amd-quark 0.13, ONNX kernel"),
        ("saturate", "Inf the largest value at the largest exponent, NaN zero", "assumed; no source"),
    )
    e1_255: str = question(
        7,
        "Is a block with E1 = 255 NaN (am027)?",
        ("nan", "yes", "amd-quark 0.13"),
        ("finite", "no: the formula holds", "AM027, ch. 4"),
    )
    min_code: str = question(
        8,
        "Is the lowest two's complement mantissa used (am027)?",
        ("auto", "with the bump policies only", "amd-quark 0.13 never; bfp16ebs8 on XDNA2 silicon does"),
        ("never", "never", "amd-quark 0.13; tensorcast c4d9b1d"),
        ("allow", "always", "bfp16ebs8 on XDNA2 silicon, by analogy"),
    )
    mx_rounding: str = question(
        9,
        "How do floats round on the way to MX, unless told?",
        ("tile", "as the tile's rounding register says, floor after reset", "LLVM headers; UG1639"),
        ("nearest_even", "to nearest even", "amd-quark 0.13 (torch); tensorcast c4d9b1d"),
    )
    neg_zero: str = question(
        10,
        "Which sign has an MX mantissa that became zero (ug1603)?",
        ("keep", "that of the value", "amd-quark 0.13"),
        ("clear", "plus", "possible; no source"),
    )
    block_order: str = question(
        11,
        "In which order do the parts of an MX block lie in memory?",
        ("exponent_first", "E1, the E2 byte, mantissas", "UG1639; amd-quark 0.13"),
        ("exponent_last_bytes", "E1, mantissas, the E2 byte", "possible; no source"),
        ("mantissas_first", "mantissas, the E2 byte, E1", "register order, by analogy"),
    )
    e2_order: str = question(
        12,
        "Which bit of the E2 byte belongs to the first pair?",
        ("lsb", "the lowest", "amd-quark 0.13"),
        ("msb", "the highest", "possible; no source"),
    )
    bit_layout: str = question(
        13,
        "How do mantissas of 5 and 3 bits lie in bytes?",
        ("lsb", "contiguous, from the lowest bits up", "assumed"),
        ("planes", "all low bits, then all top bits", "register form, LLVM typedefs"),
        ("msb", "contiguous, from the highest bits down", "possible; no source"),
    )
    mx4_register: str = question(
        14,
        "Where do the three bits of an MX4 mantissa lie in the five of an MX6 register?",
        ("left", "in the upper three", "derived: both share the constant of aie_api 2026's identity matrix"),
        ("right", "in the lower three", "one reading of a comment in llvm-aie"),
    )
    bump_254: str = question(
        15,
        "Where does a bfp16 block go that rounds beyond exponent 254?",
        ("saturate", "it stays there, mantissas stop at 127", "assumed; no source"),
        ("e255", "to exponent 255", "the rule of the other exponents (XDNA2 silicon), continued"),
        ("raise", "an error", "virtio-accel 4c97e01 refuses such blocks"),
    )
    bfp16ebs16: str = question(
        16,
        "By which rule do floats become bfp16ebs16?",
        ("as_ebs8", "that of bfp16ebs8, over 16 elements", "assumed; the conversion exists, its rule is not published"),
    )
    mac_model: str = question(
        17,
        "How do bfloat16 products and floats add up?",
        ("arch", "as measured or modelled for each architecture: aligned23 on AIE-ML, ieee elsewhere", "XEMU; LLVM"),
        (
            "aligned23",
            "addends are rounded at 23 fraction bits below the largest exponent, where a product has the sum of its "
            "factors' exponents; one exact sum, one rounding; subnormal results become zeros",
            "XDNA1 silicon, xdna-emu 7380bd5; AM020",
        ),
        (
            "aligned26",
            "product by product in ascending k, rounded at 23 fraction bits below the larger exponent (a product's: "
            "the sum of its factors' plus one), the accumulator at 26; one rounding",
            "XDNA2 silicon, fitted: xdna-engine 9bcbe24, attn_ref.py",
        ),
        ("ieee", "float32 additions, nearest even, in ascending k", "LLVM AIE2PSemantics.cpp"),
    )
    mx_accumulation: str = question(
        18,
        "How do blocks add up in matrix products?",
        ("blocks", "exactly in a block, one float32 rounding each, in ascending k", "bfp16ebs8 on XDNA2, MX alike"),
        (
            "aligned",
            "exactly in a block; its sum and the accumulator rounded at 23 fraction bits below the larger exponent (a "
            "block's: the sum of both shared ones), one rounding",
            "bfp16ebs8 on XDNA2, fitted: xdna-engine 9bcbe24, chain_ref.py",
        ),
    )
    fp8_overflow: str = question(
        19,
        "What do float8, bfloat8 and float16 make of values beyond their range (AIE-MLv2)?",
        ("nonsat", "Inf in bfloat8 and float16, NaN in float8", "assumed; no source"),
        ("sat", "the largest finite value", "assumed; no source"),
    )
    bf16_nan: str = question(
        20,
        "Which NaN does float to bfloat16 write?",
        ("truncate", "the upper half of the float's, with a fraction that is not zero", "XDNA1, xdna-emu 7380bd5"),
        ("canonical", "0x7FC0", "not modelled by LLVM"),
    )
    ups_overflow: str = question(
        21,
        "What happens when a value shifted up does not fit the accumulator?",
        ("mode", "the saturation mode decides", "UG1583"),
        ("wrap", "the low bits stay", "LLVM AIE2PSemantics.cpp"),
    )
    api_version: str = question(
        22,
        "How does to_fixed round?",
        ("2025.2", "conv_even for all types", "AI Engine API 2025.2 and later"),
        ("2025.1", "symmetric_zero for float, floor for bfloat16", "AI Engine API up to 2025.1"),
    )
    xdna2_caccfloat: str = question(
        23,
        "Is there caccfloat on XDNA2?",
        ("refused", "no: both accumulator tables leave it empty", "AI Engine API 2025 and 2026"),
        ("offered", "yes, as on AIE-ML", "default-tag table of the AI Engine API 2025"),
    )
    mlv2_cbfloat16: str = question(
        24,
        "Is there cbfloat16 on AIE-MLv2?",
        ("offered", "yes", "AI Engine API 2026"),
        ("refused", "no", "UG1603 2025.1"),
    )
    accum_index: str = question(
        25,
        "Can an accumulator's lanes be indexed?",
        ("read", "yes, for reading", "UG1603 2026.1"),
        ("refused", "no: only vectors have it in the code", "AI Engine API 2025, accum.hpp"),
    )
    shift_check: str = question(
        26,
        "Which shifts does SRS take?",
        ("warn", "-4 to 59; below 0 with a warning", "UG1583; AI Engine API: -4 to -2 are unsafe on AIE-ML"),
        ("accept", "-4 to 59", "UG1583"),
        ("refuse", "0 to 59", "the safe range"),
    )
    bf16_int16: str = question(
        27,
        "What does bfloat16 to int16 do with what int16 cannot hold?",
        ("wrap", "the low 16 bits of the int32 result stay", "vendor code; xdna-emu 7380bd5"),
        ("saturate", "the limits of int16", "possible; no source"),
    )
    aie1_denormals: str = question(
        28,
        "What do the first AI Engine's floats do with denormals?",
        ("ieee", "keep them", "assumed; unknown"),
        ("flush", "they become signed zeros, before and after each operation", "assumed; unknown"),
    )
    mlv2_caccfloat_cascade: str = question(
        29,
        "Does caccfloat travel on AIE-MLv2's cascades?",
        ("refused", "no", "ADF front-end header"),
        ("offered", "yes: the accumulator type exists", "AI Engine API 2026"),
    )

    mx_sparsity: str = question(
        30,
        "Are there matrix products of MX with a sparse B?",
        ("refused", "no", "AM027, ch. 4"),
    )

    float_products: str = question(
        31,
        "How are products of two floats made, which AIE-ML and later have no instruction for (lane by lane)?",
        ("exact", "each exact, rounded once", "0 ULP, as stated of safe: UG1603, Floating-Point Accuracy"),
        ("safe", "nine products of bfloat16 parts", "llvm-aie 84660bc, 3ec7f3f, 7227e2f: Headers"),
        ("fast", "six products of bfloat16 parts", "the same"),
        ("low", "three products of bfloat16 parts", "the same"),
    )

    def __post_init__(self) -> None:
        evidence.check(self)


def questions() -> list[Question]:
    """Return the open questions with their candidates, by number.

    Examples
    --------
    >>> [q.name for q in questions() if 21 in q.numbers]
    ['ups_overflow']
    """
    return evidence.questions(Choices)
