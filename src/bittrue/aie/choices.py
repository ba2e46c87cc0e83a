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

    mac_model: str = question(
        17,
        "How do bfloat16 products and floats add up?",
        ("arch", "as measured or modelled for each architecture: aligned23 on AIE-ML, ieee elsewhere", "XEMU; LLVM"),
        (
            "aligned23",
            "every addend is rounded to 23 fraction bits below the largest exponent; one exact sum, one rounding",
            "XDNA1 silicon, xdna-emu 7380bd5; AM020",
        ),
        ("ieee", "float32 additions, nearest even, in ascending k", "LLVM AIE2PSemantics.cpp"),
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
