"""gfloat: the P3109 family up to 8 bits, decoded code by code and encoded in five modes; OCP and IEEE formats too."""

from __future__ import annotations

import boundary
import numpy as np
import pytest
from oracles.disagreements import compare, same_nan
from oracles.inputs import same_number

import bittrue as bt
from bittrue import exact
from bittrue.rounding import Rule

gfloat = pytest.importorskip("gfloat")
catalogue = pytest.importorskip("gfloat.formats")

MODES = {
    "nearest_even": gfloat.RoundMode.TiesToEven,
    "nearest_away": gfloat.RoundMode.TiesToAway,
    "trunc": gfloat.RoundMode.TowardZero,
    "floor": gfloat.RoundMode.TowardNegative,
    "ceil": gfloat.RoundMode.TowardPositive,
}
#: The working group's value tables begin at 3 bits: signed with precision 1 to K - 1, unsigned with 1 to K.
FAMILY = [
    (bits, precision, signed, extended)
    for bits in range(3, 9)
    for signed in (True, False)
    for precision in range(1, bits + (not signed))
    for extended in (True, False)
]
CATALOGUE = {
    "float8_e5m2": "ocp_e5m2",
    "float8_e4m3fn": "ocp_e4m3",
    "float6_e3m2fn": "ocp_e3m2",
    "float6_e2m3fn": "ocp_e2m3",
    "float4_e2m1fn": "ocp_e2m1",
    "float8_e8m0fnu": "ocp_e8m0",
    "float16": "binary16",
    "bfloat16": "bfloat16",
}


def pair(bits, precision, signed, extended):
    """The same format there and here."""
    theirs = catalogue.format_info_p3109(
        bits,
        precision,
        gfloat.Signedness.Signed if signed else gfloat.Signedness.Unsigned,
        gfloat.Domain.Extended if extended else gfloat.Domain.Finite,
    )
    return theirs, bt.p3109(bits, precision, signed=signed, extended=extended)


def name_of(parameters):
    bits, precision, signed, extended = parameters
    return f"k{bits}p{precision}{'s' if signed else 'u'}{'e' if extended else 'f'}"


def check_decode(info, fmt):
    codes = np.arange(1 << fmt.bits, dtype=fmt.storage)
    with np.errstate(all="ignore"):
        theirs = gfloat.decode_ndarray(info, codes).tolist()
    for code, (their, ours) in enumerate(zip(theirs, bt.decode(codes, fmt, np.float64).tolist())):
        assert same_number(ours, their), code
        if fmt.bits <= 8:
            assert same_number(exact.decode(code, fmt), their), code


def check_encode(info, fmt, x, name):
    """`sat` is our "saturate"; without it directed modes stop at the largest value, as in IEEE 754: our "ieee"."""
    for rounding, mode in MODES.items():
        for sat in (True, False):
            if not sat and info.num_nans == 0 and info.domain is gfloat.Domain.Finite:
                continue  # raises: there is nothing to overflow to
            with np.errstate(all="ignore"):
                theirs = gfloat.encode_ndarray(info, gfloat.round_ndarray(info, x, mode, sat)).astype(np.int64)
            rule = Rule(rounding=rounding, overflow="saturate" if sat else "ieee")
            ours = bt.encode(x, fmt, rule=rule)
            for i in np.random.default_rng(1).choice(x.size, 20).tolist():
                assert exact.encode(float(x[i]), fmt, rule, source="float64") == ours[i]
            if name in ("float8_e5m2", "float8_e4m3fn", "float16", "bfloat16"):
                theirs, ours = same_nan(theirs, name), same_nan(ours, name)
            compare("gfloat", "float64", name, x, theirs, ours)


@pytest.mark.parametrize("parameters", FAMILY, ids=name_of)
def test_p3109(parameters):
    info, fmt = pair(*parameters)
    check_decode(info, fmt)
    largest = max(v for v in fmt.values() if v == v and abs(v) != float("inf"))
    assert (fmt.max, fmt.min_subnormal, fmt.bits) == (largest, info.smallest, info.bits)
    x = np.concatenate([boundary.neighbourhood(fmt, np.float64), [np.inf, -np.inf, np.nan, -0.0]])
    if not fmt.signed:  # gfloat has no rule for negative numbers there
        x = np.abs(x)
    check_encode(info, fmt, x, fmt.name)


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_catalogue(name):
    info, fmt = getattr(catalogue, f"format_info_{CATALOGUE[name]}"), bt.format(name)
    check_decode(info, fmt)
    x = boundary.neighbourhood(fmt, np.float64)
    if x.size > 20_000:
        x = np.random.default_rng(3).choice(x, 20_000)
    x = np.concatenate([x, [np.inf, -np.inf, -0.0], [np.nan] * bool(info.num_nans)])
    if not fmt.signed:  # e8m0: no zero either; below the range powers of two only, which the mode does not change
        x = x[(x >= 2.0**-127) | ((x > 0) & (np.frexp(x)[0] == 0.5)) | np.isnan(x)]
    check_encode(info, fmt, x, name)
