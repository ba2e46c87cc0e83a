"""One accumulator on its way through Fixpipe ends where `ascend.fixpipe` puts it, in every mode."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from bittrue import ascend
from bittrue.ascend import QuantMode
from bittrue.inspection.words import fields_of, walk
from bittrue.parse import parse_number

MODES = [(mode, arch) for mode in QuantMode for arch in (2201, 3510) if arch in mode.info.fields]
FLOATS = [0.0, -0.0, 1.3, -2.5, 7.0, 1e-40, -3e38, 65520.0, 448.0, 464.0, math.inf, -math.inf, math.nan, 16.0, 40000.0]


@pytest.mark.parametrize(("mode", "arch"), MODES, ids=lambda v: str(getattr(v, "name", v)))
def test_the_walk_ends_where_fixpipe_does(mode, arch):
    rng = random.Random(mode.value * 10_000 + arch)
    for _ in range(40):
        words = None
        if mode.info.parametrised:
            scale = rng.choice([0.5, 0.1, 3.0, 1e-3, -0.25, 2.0**-20, 1.0])
            fields = mode.info.reads(arch)
            param = ascend.QuantParam(
                scale,
                rng.choice([0, 10, -3, 255, -256]) if "offset" in fields else 0,
                rng.random() < 0.5 if "signed" in fields else None,
                rng.choice([None, 1, 5, 16]) if "shift" in fields else None,
            )
            words = param.pack(arch, mode)
        relu = rng.random() < 0.4
        whole = mode.info.accumulators == ("int32_t",) or ("int32_t" in mode.info.accumulators and rng.random() < 0.5)
        if whole:
            x = rng.choice([0, 5, -7, 1000, -1000, 2**31 - 1, -(2**31), rng.randrange(-(2**20), 2**20)])
            acc, value = np.int32([[x]]), Fraction(x)
        else:
            x = np.float32(rng.choice([*FLOATS, rng.gauss(0, 100)]))
            special = x == 0 or not np.isfinite(x)
            acc, value = np.array([[x]], np.float32), float(x) if special else Fraction(float(x))
            if "int32_t" in mode.info.accumulators and isinstance(value, Fraction) and value.denominator == 1:
                continue  # a whole number is taken for an int32
            if x == 0 and math.copysign(1, x) > 0:
                value = Fraction(0)
                if "int32_t" in mode.info.accumulators:
                    continue
        wanted = ascend.fixpipe(acc, mode, words if words is None or not mode.info.per_channel else [words], relu, arch)
        steps, target, code = walk(value, mode, words, relu, arch)
        assert (target.name, code) == (wanted.format.name, int(wanted.codes.view(target.code_dtype)[0, 0])), (
            x, words, relu, steps
        )  # fmt: skip


def test_an_example_by_hand():
    # 7 * 0.5 = 3.5, a tie between 3 and 4: 4; 4 + 250 = 254, beyond int8
    word = ascend.QuantParam(0.5, 250).pack(3510, "REQ8")
    steps, target, code = walk(Fraction(7), "REQ8", word, False, "Ascend 950PR")
    values = [(s.name, s.value) for s in steps]
    assert values == [
        ("accumulator", 7), ("scale", Fraction(7, 2)), ("round", 4), ("clamp", 4), ("offset", 254), ("clamp", 127)
    ]  # fmt: skip
    assert target.name == "int8" and code == 0x7F and steps[-1].note == "254 is beyond"


@pytest.mark.parametrize(
    ("value", "mode", "word", "said"),
    [
        ("1.5", "REQ8", 0, "is not an int32"),
        ("1", "REQ8", None, "reads a parameter word"),
        ("1", "F322F16", 1, "takes no parameter word"),
        ("1", "REQ8", 0x7F800000, "finite"),
        ("1", "QF322HIF8_PRE", 0x3F800000, "not on NPU architecture"),
    ],
)
def test_mistakes(value, mode, word, said):
    with pytest.raises(ValueError, match=said):
        walk(parse_number(value), mode, word, False, 2201)


def test_fields_lie_where_the_tables_put_them():
    """Ascend C, fused quantisation, tables 1 and 2."""
    places = {f.name: (f.high, f.low) for f in fields_of(0, 2201) if f.name}
    assert places == {"M1": (31, 0), "N": (35, 32), "MCB": (36, 36), "Offset": (45, 37), "Sign": (46, 46)}
    assert {f.name: (f.high, f.low) for f in fields_of(0, 3510) if f.name} == {
        "M1": (31, 13), "Offset": (45, 37), "Sign": (46, 46)
    }  # fmt: skip
    ignored = {f.name: f.ignored for f in fields_of(0, 2201, QuantMode.DEQF16)}
    assert ignored["Offset"] and ignored["Sign"] and not ignored["M1"] and not ignored["N"]
