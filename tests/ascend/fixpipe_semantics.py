"""The documents' Fixpipe, written a second time for tests: one accumulator at a time, in Python integers and Fractions.

Shares nothing with `bittrue` at all. Floats appear only as carriers of float32 values, zeros with a sign, Inf and NaN.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from functools import cache

#: Significand bits, exponent of the smallest subnormal, largest value.
FLOATS = {
    "float": (24, -149, Fraction(2) ** 128 - Fraction(2) ** 104),
    "half": (11, -24, Fraction(65504)),
    "bfloat16_t": (8, -133, Fraction(2) ** 128 - Fraction(2) ** 120),
    "fp8_e4m3fn_t": (4, -9, Fraction(448)),
}


def rint(value: Fraction) -> int:
    """Nearest integer, ties to even."""
    whole, rest = divmod(value.numerator, value.denominator)
    return whole + (2 * rest > value.denominator or (2 * rest == value.denominator and whole % 2 == 1))


def round_to(name: str, value: float | Fraction) -> float:
    """Nearest value of a float type, ties to even, Inf beyond its range (exponent unbounded while rounding)."""
    if isinstance(value, float) and (value == 0 or not math.isfinite(value)):
        return value
    precision, lowest, largest = FLOATS[name]
    exact = Fraction(value)
    top, bottom = abs(exact.numerator), exact.denominator
    exponent = top.bit_length() - bottom.bit_length()
    exponent -= top < bottom << exponent if exponent >= 0 else top << -exponent < bottom
    unit = max(exponent - precision + 1, lowest)
    rounded = rint(exact / Fraction(2) ** unit)
    if abs(rounded) * Fraction(2) ** unit > largest:
        return math.copysign(math.inf, exact)
    return math.copysign(math.ldexp(abs(rounded), unit), exact)


def times(x: float | int, factor: float) -> float | Fraction:
    """Exact product; a float where a Fraction cannot say it."""
    if x and factor and math.isfinite(x) and math.isfinite(factor):
        return Fraction(x) * Fraction(factor)
    return float(x) * factor


def clamp(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


@cache
def m1_of(word: int) -> float:
    """Format (1, 8, 10) in bits 31 to 13."""
    sign, exponent, fraction = word >> 31 & 1, word >> 23 & 0xFF, word >> 13 & 0x3FF
    assert exponent < 255
    if exponent == 0:
        value = Fraction(fraction, 1024) * Fraction(2) ** -126
    else:
        value = (1 + Fraction(fraction, 1024)) * Fraction(2) ** (exponent - 127)
    return -float(value) if sign else float(value)


def code_of(name: str, value: float) -> int:
    """Pattern of a value of a float type; what saturation has left over is no NaN."""
    if name == "float":
        return struct.unpack("<I", struct.pack("<f", value))[0]
    if name == "bfloat16_t":
        return code_of("float", value) >> 16
    if name == "half":
        return struct.unpack("<H", struct.pack("<e", value))[0]
    sign = 0x80 if math.copysign(1, value) < 0 else 0
    magnitude = abs(Fraction(value))
    if magnitude < Fraction(1, 64):
        return sign | int(magnitude * 512)
    exponent = max(e for e in range(-6, 9) if Fraction(2) ** e <= magnitude)
    return sign | (exponent + 7) << 3 | int((magnitude / Fraction(2) ** exponent - 1) * 8)


def saturated(name: str, value: float) -> float:
    """Reset state of the control register: the largest value for Inf, 0 for NaN (CTRL[48] = CTRL[50] = 0)."""
    if name == "float":
        return value
    if math.isnan(value):
        return 0.0
    largest = float(FLOATS[name][2])
    return math.copysign(largest, value) if math.isinf(value) else value


def hif8(value: float, hybrid: bool) -> int:
    """Section 2.4 of the facts (Reg Cast.md), in SAT mode."""
    u = code_of("float", value)
    s, e, m = u >> 31, (u >> 23 & 0xFF) - 127, u & 0x7FFFFF
    t = m & 0x3FFF
    if e == 128:
        c = 0x80 if m else s << 7 | 0x6F
    elif e > 15:
        c = s << 7 | 0x6F
    elif e < -23:
        c = 0
    elif e == -23:
        c = s << 7 | 1 if not hybrid or (1 << 13 | m >> 10) >= t else 0
    else:
        k = 3 if abs(e) <= 3 else 2 if abs(e) <= 7 else 1 if abs(e) <= 15 else 0
        top = m >> 23 - k
        first = m >> 22 - k & 1
        f = m >> 9 - k & 0x3FFF
        if first if abs(e) <= 3 or not hybrid else f >= t:
            top += 1
            if top == 1 << k:
                top, e = 0, e + 1
        if e > 15:
            c = s << 7 | 0x6F
        elif e <= -16:
            c = s << 7 | e + 23
        elif e == 0:
            c = s << 7 | 0x08 | top
        else:
            a, g = abs(e), int(e < 0)
            w = a.bit_length()
            k, prefix = {1: (3, 0x10), 2: (3, 0x20), 3: (2, 0x40), 4: (1, 0x60)}[w]
            c = s << 7 | prefix | g << (w - 1 + k) | (a - (1 << w - 1)) << k | top
    return {0x6F: 0x6E, 0xEF: 0xEE, 0x80: 0}.get(c, c)


def fixpipe(x: int | float, mode: str, word: int, relu: bool, arch: int, alpha: int | None = None) -> int:
    """The code that one accumulator gives in one mode; `mode` without the V, `alpha` the pattern of M2."""
    if mode in ("F322F16", "F322BF16"):
        name = {"F322F16": "half", "F322BF16": "bfloat16_t"}[mode]
        y = x
        if relu and x < 0:
            y = 0.0 if alpha is None else round_to("float", times(x, m1_of(alpha)))
        return code_of(name, saturated(name, round_to(name, y)))
    if mode in ("REQ8", "DEQF16") and arch == 2201 and word >> 36 & 1:
        x = clamp(x >> (word >> 32 & 15) + 1, -32768, 32767)
    m = m1_of(word) if x >= 0 or not relu else 0.0 if alpha is None else m1_of(alpha)
    if not relu and isinstance(x, float) and math.isnan(x):
        m = m1_of(word)
    if isinstance(x, int):
        x = round_to("float", Fraction(x)) if x else 0.0
    t = round_to("float", times(x, m))
    if mode in ("REQ8", "QF322B8_PRE"):
        offset = (word >> 37 & 0x1FF) - (0x200 if word >> 45 & 1 else 0)
        if math.isnan(t):
            q = 0
        elif math.isinf(t):
            q = 255 if t > 0 else -256
        else:
            q = clamp(rint(Fraction(t)), -256, 255)
        q += offset
        return (clamp(q, -128, 127) if word >> 46 & 1 else clamp(q, 0, 255)) & 0xFF
    if mode.startswith("QF322HIF8"):
        return hif8(t, mode.endswith("HYBRID"))
    name = {
        "DEQF16": "half",
        "QF322F16_PRE": "half",
        "QF322BF16_PRE": "bfloat16_t",
        "QS322BF16_PRE": "bfloat16_t",
        "QF322F32_PRE": "float",
        "QF322FP8_PRE": "fp8_e4m3fn_t",
    }[mode]
    return code_of(name, saturated(name, round_to(name, t)))
