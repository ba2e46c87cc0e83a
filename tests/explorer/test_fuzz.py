"""Whatever is asked: an answer or a mistake in a field, never a failure, never much, and no markup said back."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bittrue as bt
from bittrue.explorer.records import ANSWERS

MOST = 200_000  # bytes of an answer
MARKUP = "<script>alert(1)</script>\"'&<img src=x onerror=alert(1)>"

NAMES = [f.name for f in (*bt.formats(), *bt.formats("block"))] + ["half", "FP8_E4M3", "p3109_k8p4se", "p3109_k16p12uf"]
NUMBERS = st.one_of(
    st.sampled_from(["0", "-0", "inf", "-inf", "nan", "-nan", "1/3", "1e400", "-1e-400", "0x1.8p3", "1+2j", "5e-324"]),
    st.floats().map(repr),
    st.integers(-(2**70), 2**70).map(str),
    st.integers(0, 2**64).map(hex),
    st.tuples(st.integers(-999, 999), st.integers(-6000, 6000)).map(lambda p: f"{p[0]}e{p[1]}"),
)
NUISANCE = st.one_of(st.just(MARKUP), st.text(max_size=30), st.text("0123456789abcdefx.,-+/epinfj <>&", max_size=40))
SENSIBLE = {
    "format": st.sampled_from(NAMES),
    "second": st.sampled_from(NAMES),
    "block": st.sampled_from([f.name for f in bt.formats("block")]),
    "values": st.lists(NUMBERS, max_size=34).map(",".join),
    "rounding": st.sampled_from([m.value for m in bt.Rounding]),
    "overflow": st.sampled_from(["saturate", "bump_block", "clear_e2_then_bump"]),
    "scale_rule": st.sampled_from(["floor", "ceil", "even", "rceil", "divide"]),
    "nonfinite": st.sampled_from(["raise", "nan_block", "saturate", "coded"]),
    "move": st.sampled_from(["in", "out", "left", "right", "all"]),
    "zoom": st.integers(-1200, 1200).map(str),
    "point": st.integers(-5, 1005).map(str),
    "flip": st.integers(-1, 64).map(str),
    "product": st.sampled_from(["a2", "950", "Atlas training", "310P", "Ascend 910B"]),
    "qmode": st.sampled_from([m.name for m in bt.ascend.QuantMode]),
    "mode": st.sampled_from([m.name for m in bt.ascend.RoundMode]),
    "src": st.sampled_from([t.name for t in bt.ascend.types()]),
    "dst": st.sampled_from([t.name for t in bt.ascend.types()]),
    "arch": st.sampled_from([a.name for a in bt.aie.archs()]),
    "to": st.sampled_from(["int8", "uint8", "int16", "uint16", "int32", "uint32"]),
    "saturation": st.sampled_from(["none", "saturate", "symmetric"]),
    "relu": st.sampled_from(["0", "1"]),
    "signed": st.sampled_from(["0", "1"]),
    "shift": st.integers(-6, 62).map(str),
}


@st.composite
def requests(draw):
    question = draw(st.sampled_from([*ANSWERS, "nothing"]))
    known = ANSWERS[question][0] if question in ANSWERS else ("a",)
    names = draw(st.lists(st.sampled_from(known), max_size=len(known), unique=True))
    if draw(st.integers(0, 9)) == 0:
        names.append(draw(st.sampled_from([MARKUP, "format", "x" * 90])))
    wild = draw(st.integers(0, 3)) == 0
    pairs = [(n, draw(NUISANCE if wild else SENSIBLE.get(n, NUMBERS))) for n in names]
    path = question if question != "nothing" else draw(NUISANCE)
    return path, pairs


def check(client, request):
    path, pairs = request
    query = "&".join(f"{quote(n, safe='', errors='replace')}={quote(t, safe='', errors='replace')}" for n, t in pairs)
    answer = client.get(f"/api/{quote(path, safe='', errors='replace')}?{query}")
    assert answer.status_code in (200, 404, 422), (request, answer.status_code)
    assert len(answer.content) < MOST
    assert answer.headers["content-type"] == "application/json"
    assert b"<" not in answer.content and b"&" not in answer.content, request
    record = answer.json()
    if answer.status_code == 422:
        assert set(record) == {"field", "message"} and 0 < len(record["message"]) < 2500
        assert "Traceback" not in record["message"]
    page = client.get(f"/?{query}")
    assert page.status_code == 200 and MARKUP not in page.text and page.text.count("<script") == 2


COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None}


@settings(max_examples=250, derandomize=True, **COMMON)
@given(requests())
def test_any_request(client, request):
    check(client, request)


@pytest.mark.slow
@settings(max_examples=10_000, **COMMON)
@given(requests())
def test_ten_thousand_requests(client, request):
    check(client, request)


def test_the_largest_inputs_are_bounded(client):
    for name in ("float64", "hifloat8", "e8m0", "int64", "bool", "complex64", "p3109_k16p12uf"):
        for value in ("9" * 400, "1e1500", "-1e-1500", "1/" + "3" * 390):
            answer = client.get("/api/number", params={"format": name, "value": value, "second": "float64"})
            assert answer.status_code in (200, 422) and len(answer.content) < MOST
    values = ",".join(["1e-1500"] * 32)
    assert len(client.get("/api/block", params={"block": "mxfp8_e4m3", "values": values}).content) < MOST
    assert client.get("/api/number?value=" + "1" * 30_000).status_code == 422
