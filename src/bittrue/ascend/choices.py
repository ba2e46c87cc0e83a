"""The open questions of Ascend's types, casts, matrix unit and Fixpipe: one field each, its default, all candidates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .. import evidence
from ..evidence import Question, question

__all__ = ["Choices", "questions"]

_DK = "asc-devkit 82b89a15"
_CAST = f"{_DK}, Reg Cast.md"
_EDGES = f"{_DK}, boundary values of"
_S1 = "Ascend C, built-in data types"
_PP = "pypto 883e7dfb"
_S3 = "Ascend C, fused quantisation"
_FX = f"{_DK}, gen_data*.py of fixpipe_l0c2gm"
_FIXPIPE = f"{_DK}, Fixpipe.md (L0C to GM), constraints"


@dataclass(frozen=True)
class Choices:
    """What to do where Ascend's documents contradict each other or say nothing.

    Every field has the documented default; `docs/evidence.md` lists all candidates with their sources. The numbers are
    those by which rows of the rule book refer to questions.

    Raises
    ------
    ValueError
        For a value that is no candidate of its field.

    Examples
    --------
    >>> Choices(hybrid_exact="keep").hybrid_overflow
    'documented'
    """

    type_matrix: str = question(
        (1, 31),
        "Which types does a product have, beyond doubt?",
        ("doc", "the support table: no bool or int4 on A3, A2 and older, no bfloat16 on 200I/500 A2", _S1),
        ("devkit_2026", "bool and int4b_t on every product besides", f"{_DK}, the same page"),
        ("cast_table", "besides, every type that the product's own Cast rows name", f"{_DK}, Cast.md"),
    )
    hybrid_exact: str = question(
        2,
        "Does HYBRID move exactly representable inputs with |E| >= 4?",
        ("documented", "yes: F = T = 0 counts as F >= T (16 becomes 20)", f"{_CAST}; hif8.py of matmul_fp8"),
        ("keep", "no: what hifloat8 holds stays", "intuition, no source"),
    )
    hybrid_overflow: str = question(
        3,
        "What does HYBRID do with 32768 <= |x| < 49152?",
        ("documented", "F >= T decides, as in every other binade", _CAST),
        ("golden_script", "from 40960 on it overflows, whatever F and T are", f"{_DK}, matmul_fp8/scripts/hif8.py"),
    )
    half_subnormal: str = question(
        4,
        "What becomes of half subnormals on the way to hifloat8?",
        ("normalise", "they count with their value: 2^-23 gives 0x01", "en_dtypes 0.0.4 (measured); amct 2be20daf"),
        ("zero", "they become zero", f"not spelled out in {_CAST}"),
    )
    bf16_hif8: str = question(
        5,
        "How does bfloat16 become hifloat8 (no such cast is documented)?",
        ("via_float", "as a float32 with low bits of zero: T = 0, and HYBRID rounds up for |E| >= 4", "derived"),
        ("direct", "T = {lowest fraction bit, 1} of the bfloat16, as for half", "HiFloat8 paper, arXiv 2409.16626"),
    )
    fp4_nan_code: int = question(
        6,
        "Which fp4 code does -NaN give?",
        (0x0, "+0, as for +NaN", f"asc-tools 2113e48f; {_DK}"),
        (0x8, "-0", "en_dtypes 0.0.4"),
    )
    mode_table: str = question(
        7,
        "Which modes have float to fp8 (one or five) and bfloat16 to fp4 (five or none)?",
        ("by_call", "Ascend C's table when strict, PyPTO's otherwise", "each document for its own API"),
        ("ascendc", "fp8: RINT only; fp4: five modes, in default use too", _CAST),
        ("pypto", "fp8: five modes; fp4: none to choose (RINT), when strict too", _PP),
    )
    fp8_nan_sign: str = question(
        8,
        "Which byte do a negative overflow and -NaN give in fp8_e4m3fn without saturation?",
        ("positive", "0x7F for both signs", "asc-tools 2113e48f"),
        ("keep", "0xFF", "the convention of ml_dtypes"),
    )
    e8m0_inf: int = question(
        9,
        "Which fp8_e8m0 code does an infinite bfloat16 give?",
        (0xFE, "the largest value", _CAST),
        (0xFF, "NaN: the exponent field as it is", f"{_EDGES} register APIs, table 34; implementation"),
    )
    e8m0_zero_code: str = question(
        10,
        "What is the value of fp8_e8m0 code 0x00?",
        ("min", "2^-127, in bfloat16 the subnormal 0x0040", f"{_S1}, range of table 3; en_dtypes 0.0.4"),
        ("zero", "bfloat16 +0", f"{_EDGES} register APIs, table 34 (0 becomes 0); implementation"),
    )
    e8m0_nan: int = question(
        11,
        "Which fp8_e8m0 code does NaN give when saturating with CTRL[50] = 0?",
        (0xFF, "NaN", _CAST),
        (0x00, "the smallest value, for \"NaN becomes 0.0\"", f"{_DK}, CTRL[48] and CTRL[50]"),
    )
    int_to_uint8: str = question(
        12,
        "Do int16_t and int32_t to uint8_t saturate by default?",
        ("saturate", "yes: 32767 gives 255", f"{_DK}, examples of precision_conversion.md; CTRL[59] = 0"),
        ("cut", "no: the high bits are cut", f"{_DK}, wording of precision_conversion.md"),
    )
    entry_ctrl: str = question(
        13,
        "Which control state does a kernel find under a framework (`saturation=None`)?",
        ("reset", "the reset values: everything saturates", f"{_DK}, SetCtrlSpr"),
        (
            "host_sets_48",
            "CTRL[48] = 1: float casts keep Inf and NaN",
            f"{_EDGES} memory and register APIs: Inf and NaN come out as they are by default",
        ),
    )
    directed_overflow: str = question(
        14,
        "What does an overflow give without saturation in TRUNC and the directed modes?",
        ("inf", "Inf in every mode", f"{_DK}, wording"),
        ("ieee", "the largest finite value where the mode points toward zero", "IEEE 754-2019, 7.4"),
    )
    a2a3_special: str = question(
        15,
        "What do infinities give in a float to integer cast that keeps low bits, on A2 and A3?",
        ("limits", "the limits, as on 950", f"{_CAST}, table 4"),
        ("torch", "+Inf gives -1, -Inf gives 0", "extra code in tests of pto-isa 3186c381"),
    )
    double_special: str = question(
        16,
        "What do overflow and NaN give when the source is double?",
        ("like_float", "the same as from float", "assumed; no source"),
        ("raise", "an error: nobody says", "no source"),
    )
    satmode: str = question(
        19,
        "What does PyPTO's SaturationMode.OFF do to integers?",
        ("truncation", "the low bits stay: 300 gives 44 in int8", f"{_PP}, SaturationMode.md and its examples"),
        ("clamp", "the limits", f"{_PP}, summary sentence"),
    )
    pypto_sat_default: str = question(
        20,
        "What is the default of pypto.cast's satmode (`saturation=\"pypto\"`)?",
        ("doc", "OFF for every pair", f"{_PP}, signature"),
        ("pto", "OFF for six pairs into narrow integers, ON for the others", "test generator of pto-isa 3186c381"),
    )
    odd_to_int: str = question(
        32,
        "Is CAST_ODD offered from float to integer?",
        ("refused", "no", f"tables of {_DK}"),
        ("offered", "yes: 1.5 gives 1, 2.5 gives 3", f"{_DK}, a C API page"),
    )
    integral_zero: str = question(
        39,
        "What is the sign of a zero that float to float gives on A2 and A3?",
        ("plus", "plus: -0 gives +0", f"{_EDGES} memory APIs, table 32, for -0; derived for what rounds to zero"),
        ("keep", "that of the value, as elsewhere", "IEEE 754-2019, 5.9"),
    )
    half_bf16_sat: str = question(
        40,
        "Does half to bfloat16_t saturate on 950?",
        ("ctrl", "as CTRL[48] says: Inf gives the largest value, NaN 0", f"{_CAST}, table 5"),
        ("never", "no: Inf and NaN stay in both states", f"{_EDGES} register APIs, table 34"),
    )
    half_int16_sat: str = question(
        41,
        "What does a half beyond int16_t give on 950 where casts keep low bits?",
        ("low_bits", "the low bits, as in other integers: 65504 gives -32", f"{_CAST}, table 4"),
        ("limits", "the limits: 65504 gives 32767", f"{_EDGES} register APIs, table 34"),
    )
    n_field: str = question(
        17,
        "Fixpipe: how far does the field N of QUANT_PRE shift?",
        ("plus_one", "by the field + 1: 1 to 16", f"{_S3}, table 1; pto-isa 3186c381"),
        ("raw", "by the field: 0 to 15", _FX),
    )
    offset_signed: bool = question(
        18,
        "Fixpipe and CastDequant: is the 9-bit offset of QUANT_PRE and DEQSCALE signed?",
        (True, "two's complement, -256 to 255", f"{_DK}, SetDeqScale; s9 in the names of arch 3510"),
        (False, "0 to 511", f"{_FX}; pto-isa 3186c381; the A5 implementation"),
    )
    mcb_narrow: str = question(
        21,
        "Fixpipe: how does a shifted int32 become int16 (MCB = 1)?",
        ("saturate", "it is clamped", _FX),
        ("wrap", "its low 16 bits stay", f"not said in {_S3}"),
    )
    mcb_modes: str = question(
        22,
        "Fixpipe: in which modes is MCB = 1 obeyed?",
        ("documented", "(V)REQ8 and (V)DEQF16", f"{_S3}, row MCB of table 1"),
        ("requant_only", "(V)REQ8 alone", f"{_S3}, row N of table 1"),
        ("golden_script", "(V)QF322B8_PRE too: divided by 2^N, rounded to int16, saturated", _FX),
    )
    scale_product: str = question(
        23,
        "Fixpipe: how wide is the product of accumulator and M1?",
        ("float32", "rounded to float32 before it is rounded again", f"{_FX}, under numpy 2"),
        ("exact", "exact until the one rounding into the output (HYBRID and float: float32)", f"{_FX}, under numpy 1"),
    )
    m1: str = question(
        24,
        "Fixpipe and CastDequant: what becomes of the 13 low bits of the scale?",
        ("truncate", "they are cut off", f"{_S3}, format (1, 8, 10); {_FIXPIPE}; {_FX}; pto-isa 3186c381"),
        ("round", "M1 is rounded to nearest even", "no source"),
    )
    m1_subnormal: str = question(
        24,
        "Fixpipe and CastDequant: what is a subnormal scale?",
        ("keep", "its value as float32", "no source"),
        ("flush", "zero", "no source"),
        ("raise", "an error", f"{_FIXPIPE}, and Tensor API: forbidden"),
    )
    relu_nan: str = question(
        25,
        "Fixpipe: what does ReLU do with NaN?",
        ("m2", "it is not >= 0, so M2 = 0 multiplies it: it stays NaN", f"{_DK}, ReLU fusion"),
        ("zero", "it becomes 0", "no source"),
    )
    fixpipe_nan: str = question(
        26,
        "Fixpipe: what do NaN and Inf give in 8-bit integers?",
        (
            "zero",
            "NaN gives 0 before the offset, Inf clamps",
            f"{_FIXPIPE} (integers always saturate; NaN becomes 0); CPU model of pto-isa 3186c381",
        ),
        ("raise", "an error: no document says", "unknown on hardware"),
    )
    fixpipe_sat: str = question(
        27,
        "Fixpipe: does the control register decide about overflow and NaN in float outputs?",
        ("ctrl", "as in casts (`saturation=`); DEQF16 always saturates", f"{_FIXPIPE}: CTRL[48], CTRL[50] in fp8"),
        ("always", "no: they always saturate", "goldens of pto-isa 3186c381 clip half to +-65504"),
        (
            "c_api",
            "F322F16 on 3510 alone keeps Inf and NaN; F322F16 on 2201 and F322BF16 always saturate; other modes: ctrl",
            f"{_DK}, asc_copy_l0c2gm for both architectures, which says nothing of the other modes",
        ),
    )
    deqf16_offset: str = question(
        33,
        "Fixpipe: does (V)DEQF16 add the offset?",
        ("ignored", "no", f"{_S3}, table 1"),
        ("added", "yes: to the half, which is rounded again", _FX),
    )

    dequant_order: str = question(
        34,
        "CastDequant: is the product rounded before the offset is added?",
        ("rounded_first", "yes, and clamped to nine bits; the sum is clamped to the type", f"{_DK}, A5 implementation"),
        ("sum", "no: Cast(src * scale + offset), the float32 sum is rounded and clamped once", f"{_DK}, CastDequant"),
    )
    leaky_factor: str = question(
        35,
        "Fixpipe: what multiplies an accumulator below zero under a leaky ReLU?",
        ("m2", "M2 alone, in the place of M1", f"{_DK}, ReLU fusion (M2 for negative x) and asc_set_l0c2gm_relu_alpha"),
        ("after_scale", "M1, and the product below zero then M2; each rounded to float32", "the name; no source"),
    )
    clip_relu: str = question(
        36,
        "Fixpipe: does NPU architecture 3510 have ClipReLU?",
        ("refused", "no: only Atlas 200I/500 A2 has", f"{_DK}, SetFixPipeClipRelu.md"),
        ("offered", "yes, after a Normal ReLU: half results above the limit become it", f"{_DK}, asc_copy_l0c2gm"),
    )
    hf32_zero: str = question(
        37,
        "Matrix unit: how does HF32 round under NEAREST_ZERO?",
        ("ties_to_zero", "to nearest, ties toward zero", f"{_DK}, SetHF32TransMode.md and two more pages"),
        ("ties_away", "to nearest, ties away from zero", f"{_DK}, SetHF32.md of the high-level Matmul, transMode 1"),
        ("cut", "toward zero", "another reading of SetHF32TransMode.md"),
    )
    hf32_overflow: str = question(
        38,
        "Matrix unit: what does a float become that HF32 rounds beyond its range?",
        ("infinity", "Inf", "IEEE 754-2019, 7.4; no source of the vendor"),
        ("largest", "the largest value of HF32", "no source"),
    )

    def __post_init__(self) -> None:
        evidence.check(self)

    def value(self, number: int) -> object:
        """Return the answer to the question with this number."""
        return getattr(self, _by_number()[number])

    def answer(self, number: int) -> str:
        """Return "field=value" for the question with this number."""
        return f"{_by_number()[number]}={self.value(number)!r}"


@cache
def _by_number() -> dict[int, str]:
    return {number: q.name for q in questions() for number in q.numbers}


def questions() -> list[Question]:
    """Return the open questions with their candidates, by number.

    Examples
    --------
    >>> questions()[0].name
    'type_matrix'
    """
    return evidence.questions(Choices)
