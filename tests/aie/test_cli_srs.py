"""`bittrue aie srs`: the table of one accumulator, against quotients in fractions."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

from bittrue.cli import main


def test_every_mode_of_the_first_ai_engine(capsys):
    value, shift = 3 * 2**49, 50  # one and a half
    assert main(["aie", "srs", hex(value), "--shift", str(shift), "--to", "int16", "--arch", "aie"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{value} / 2^50 = 1.5 to int16 on aie\n")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[4:-2]}
    up = {"ceil", "positive_inf", "symmetric_inf", "conv_even"}
    down = {"floor", "negative_inf", "symmetric_zero", "conv_odd"}
    assert rows == {**{m: ["2"] * 3 for m in up}, **{m: ["1"] * 3 for m in down}}


@pytest.mark.parametrize("value", [2**79 - 1, -(2**79), -(2**60) - 1])
def test_wide_accumulators_and_saturation(value, capsys):
    assert main(["aie", "srs", str(value), "--shift", "40", "--to", "int32", "--arch", "aie", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    lower = math.floor(Fraction(value, 2**40))
    assert results["floor"] == {
        "none": (lower + 2**31) % 2**32 - 2**31,
        "saturate": min(max(lower, -(2**31)), 2**31 - 1),
        "symmetric": min(max(lower, -(2**31) + 1), 2**31 - 1),
    }


def test_an_exact_quotient_and_a_remark(capsys):
    assert main(["aie", "srs", str(2**63 - 1), "--shift", "2"]) == 0
    assert " / 2^2 = 2305843009213693951.75 to int32 on aie-ml" in capsys.readouterr().out
    assert main(["aie", "srs", "-5", "--shift", "-2"]) == 0
    assert capsys.readouterr().err.count("warning: ") == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["1.5"], "is not an integer"),
        ([str(2**63)], "does not fit into 64 bits, the widest accumulator of aie-ml"),
        (["5", "--shift", "60"], "-4 to 59"),
        (["5", "--to", "float"], "integer"),
        (["5", "--arch", "aie9"], "did you mean 'aie'"),
    ],
)
def test_mistakes(arguments, expected, capsys):
    assert main(["aie", "srs", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1 and expected in err
