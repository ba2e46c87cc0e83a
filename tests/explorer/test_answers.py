"""The JSON interface: numbers that vendors or hand computation give, mistakes in their fields, and no other host."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import bittrue as bt

HIF8 = Path(__file__).parents[1] / "data" / "hif8_codes.csv"


def bits_of(record):
    return "".join(str(bit["set"]) for bit in record["first"]["bits"])


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_a_value_by_hand(ask):
    """1.3 in hifloat8: dot 0001 means E = 0 and three fraction bits; 1.3 lies 0.4 of the way from 1.25 to 1.375."""
    first = ask("number", format="HiF8", value="1.3")["first"]
    [part] = first["parts"]
    assert first["code"] == "0x0a" and part["result"]["decimal"] == "1.25" and part["result"]["fraction"] == "5/4"
    assert [(f["name"], f["bits"]) for f in first["fields"]] == [("sign", "0"), ("dot", "0001"), ("fraction", "010")]
    assert (part["error"], part["ulp"], part["class"], part["exact"]) == ("-0.4", "2^-3", "normal", False)
    assert part["decision"] == {"kept": "1.010", "exponent": 0, "round": 0, "sticky": 1, "dropped": "0.4"}
    rows = {o["name"]: o for o in part["rounding"]}
    assert {name for name, o in rows.items() if o["code"] == "0x0b"} == {"ceil", "away", "odd"}
    assert rows["ceil"]["error"] == "0.6" and rows["nearest_even"]["why"] == "below half: stays"
    assert rows["odd"]["why"] == "inexact, kept bits even: up" and rows["stochastic"]["why"] == "0x0b with p = 0.4"


@pytest.mark.parametrize(
    ("value", "mode", "why", "decimal"),
    [
        # int8 and 2.5, -2.5, 3.5: every tie and direction, from IEEE 754's definitions
        ("2.5", "nearest_even", "tie, kept bits even: stays", "2"),
        ("3.5", "nearest_even", "tie, kept bits odd: up", "4"),
        ("2.5", "nearest_odd", "tie, kept bits even: up", "3"),
        ("-2.5", "nearest_away", "tie, away from zero: up", "-3"),
        ("-2.5", "nearest_zero", "tie, toward zero: stays", "-2"),
        ("-2.5", "nearest_up", "tie, toward +inf: stays", "-2"),
        ("-2.5", "nearest_down", "tie, toward -inf: up", "-3"),
        ("-2.25", "floor", "toward -inf: up", "-3"),
        ("-2.25", "ceil", "toward +inf: stays", "-2"),
        ("-2.75", "trunc", "toward zero: stays", "-2"),
        ("2.25", "away", "away from zero: up", "3"),
        ("2.25", "odd", "inexact, kept bits even: up", "3"),
        ("3.75", "odd", "inexact, kept bits odd: stays", "3"),
        ("127.5", "nearest_even", "tie, kept bits odd: up; beyond the range: saturates", "127"),
        ("3", "floor", "nothing is dropped", "3"),
    ],
)
def test_reasons(ask, value, mode, why, decimal):
    rows = {o["name"]: o for o in ask("number", format="int8", value=value)["first"]["parts"][0]["rounding"]}
    assert (rows[mode]["why"], rows[mode]["text"]) == (why, decimal)


def test_hybrid_reasons(ask):
    """Ascend C, Reg Cast, CAST_HYBRID: half away for |E| <= 3; else F >= T, so that 16 with F = T = 0 becomes 20."""
    why = {
        value: {o["name"]: (o["why"], o["text"]) for o in ask("number", value=value)["first"]["parts"][0]["rounding"]}
        for value in ("1.25", "16", "17")
    }
    assert why["1.25"]["hybrid"] == ("|E| <= 3: nothing is dropped", "1.25")
    assert why["16"]["hybrid"] == ("|E| > 3: dropped bits >= low bits of float32: up", "20")
    assert why["17"]["nearest_even"] == ("below half: stays", "16")


def test_every_code_of_the_vendors_table(ask):
    cells = ask("map", format="hifloat8_t")["cells"]
    with HIF8.open() as file:
        wanted = {row["code_hex"].lower(): row["value"] for row in csv.DictReader(file)}
    assert len(cells) == len(wanted) == 256
    for cell in cells:
        found, value = float(cell["typed"].replace("0x", "0x")) if "0x" not in cell["typed"] else float.fromhex(
            cell["typed"]
        ), float(wanted[cell["code"]])
        assert found == value or (found != found and value != value), cell
    levels = {c["text"]: c["level"] for c in cells}
    assert levels["32768"] == 1 and levels["2.384185791015625e-07"] == 0 and 0.5 < levels["1"] < 0.7
    assert [c["kind"] for c in cells if c["kind"] in ("nan", "infinite")] == ["infinite", "nan", "infinite"]


@pytest.mark.parametrize(
    ("name", "code", "bit", "flipped", "decimal"),
    [
        ("half", "0x3c00", 15, "0xbc00", "-1"),  # 1.0 and its sign
        ("FP8_E4M3", "0x7e", 0, "0x7f", "nan"),  # OCP FP8: 448, and the only NaN
        ("double", "0x3ff0000000000000", 52, "0x3fe0000000000000", "0.5"),
        ("uint64", "0xffffffffffffffff", 0, "0xfffffffffffffffe", "18446744073709551614"),
        ("bool", "0x00", 3, "0x08", "1"),
    ],
)
def test_flipping_a_bit(ask, name, code, bit, flipped, decimal):
    first = ask("number", format=name, code=code, flip=bit)["first"]
    assert first["code"] == flipped and first["parts"][0]["result"]["decimal"] == decimal
    width = bt.format(name).bits
    assert bits_of({"first": first}) == f"{int(flipped, 16):0{width}b}"
    assert [b["bit"] for b in first["bits"]] == list(reversed(range(width)))


def test_complex_numbers_have_two_parts(ask):
    record = ask("number", format="complex32", value="1-2j", second="complex64")
    assert record["first"]["code"] == "0xc0003c00"  # the real part in the low half: half 1.0, -2.0
    assert [p["label"] for p in record["second"]["parts"]] == ["real", "imaginary"]
    assert record["second"]["code"] == "0xc00000003f800000"
    assert ask("number", format="complex32", value="1-2j", second="half")[:2] == (422, "second")


def test_beside_another_format(ask):
    record = ask("number", format="float8_e4m3fn", code="0x7e", second="half")
    assert record["second"]["value"] == "448" and record["second"]["code"] == "0x5f00"  # 1.75 * 2^8: 23 << 10 | 0x300


def test_the_line(ask):
    line = ask("line", format="float4_e2m1fn", value="2.4", at="3", zoom="2")
    row = line["rows"][0]  # OCP MX: 0 0.5 1 1.5 2 3 4 6
    assert [p["text"] for p in row["points"]] == ["1", "1.5", "2", "3", "4"]
    assert [p["x"] for p in row["points"]] == [0, 0.125, 0.25, 0.5, 0.75]
    assert line["value"]["x"] == pytest.approx(0.35) and row["taken"] == "0x4"
    closer = ask("line", format="float4_e2m1fn", value="2.4", at="3", zoom="2", move="in", point="250")
    assert (closer["at"], closer["zoom"]) == ("2.5", 1)  # what was a quarter from the left stays there
    assert ask("line", format="float4_e2m1fn", at="3", zoom="2", move="right")["at"] == "4"
    assert ask("line", format="float4_e2m1fn", at="3", zoom="2", move="to", point="0")["at"] == "1"
    everything = ask("line", format="float4_e2m1fn", move="all")
    assert everything["rows"][0]["total"] == "15"
    density = ask("line", format="half", move="all")["rows"][0]
    assert density["total"] == "63487" and not density["points"] and max(density["bins"]) == 1


def test_the_line_has_an_end_in_depth(ask):
    at, zoom = "1", "0"
    for _ in range(80):
        line = ask("line", format="half", value="1", at=at, zoom=zoom, move="in")
        at, zoom = line["at"], str(line["zoom"])
    assert int(zoom) == -12 and len(at) < 30  # a quarter of the distance of neighbours, 2^-10


# --- blocks -----------------------------------------------------------------------------------------------------------


def test_a_block_by_hand(ask):
    """UG1603's MX9: E1 = 128 + floor(log2(1.5)) = 128, m = 1.5 * 2^6 = 96; pairs of zeros have E2 = 1."""
    block = ask("block", block="mx9", values="1.5, -0.25")
    assert block["head"]["code"] == "0x80" and "".join(b["hex"] for b in block["bytes"]) == "80fe6090" + "00" * 14
    first, second, third = block["elements"][:3]
    assert (first["element"], first["shift"], first["value"], first["error"]) == ("96", "0", "1.5", "0 %")
    assert (second["element"], second["code"], second["value"]) == ("-16", "10010000", "-0.25")
    assert third["filled"] and third["given"] == "0"
    parts = [(p["name"], p["bits"], p["kind"]) for p in block["bytes"][1]["parts"]]
    assert parts[0] == ("E2[7]", "1", "dot") and parts[7] == ("E2[0]", "0", "dot")


def test_a_scaled_block_by_hand(ask):
    """OCP MX: amax 6 has exponent 2, as float4's largest: scale 2^0 = 0x7f; 6 is 0x7, 0.5 is 0x1, packed low first."""
    block = ask("block", block="mxfp4", values="6,0.5")
    assert [b["hex"] for b in block["bytes"][:2]] == ["7f", "17"] and len(block["bytes"]) == 17
    assert block["options"]["scale_rule"]["words"] == ["floor", "ceil", "even", "rceil"]


def test_block_options(ask):
    down = ask("block", block="mx9", values="1.99999", rounding="trunc")["elements"][0]["element"]
    up = ask("block", block="mx9", values="1.99999", overflow="bump_block")
    assert down == "127" and up["head"]["code"] == "0x81"
    assert "stochastic" not in ask("block")["options"]["rounding"]["words"]


# --- hardware ---------------------------------------------------------------------------------------------------------


def test_a_word_and_its_fields(ask):
    """Ascend C, fused quantisation, table 1: M1 in 31-0, N 35-32, MCB 36, offset 45-37, sign 46."""
    word = 0x3F000000 | 1 << 36 | (0x1FF & -3) << 37 | 1 << 46
    record = ask("fixpipe", product="a2", qmode="REQ8", word=hex(word), acc="-500")
    assert [record["word"][n] for n in ("scale", "offset", "signed", "shift")] == ["0.5", "-3", True, "1"]
    # -500 >> 1 = -250, * 0.5 = -125, - 3 = -128
    assert [s["value"] for s in record["steps"]] == ["-500", "-250", "-125", "-125", "-125", "-128", "-128"]
    assert record["result"]["code"] == "0x80"
    flipped = ask("fixpipe", product="a2", qmode="REQ8", word=hex(word), flip="46")
    assert flipped["result"]["format"] == "uint8" and flipped["word"]["signed"] is False
    put = ask("fixpipe", product="a2", qmode="REQ8", word="0", scale="0.5", offset="-3", signed="1", shift="1")
    assert put["word"]["hex"] == f"{word:#018x}"
    assert ask("fixpipe", product="a2", qmode="REQ8", word=hex(word), shift="0")["word"]["shift"] == ""


def test_a_rule_and_its_evidence(ask):
    """PyPTO: A2 has no ODD from half to int8, and the default from float to integer is TRUNC."""
    rule = ask("rule", product="Atlas A2", src="half", dst="int8_t", mode="CAST_ODD", value="2.9")
    assert (rule["status"], rule["effective"], rule["evidence"]) == ("replaced", "CAST_TRUNC", "documented")
    assert "pypto" in rule["document"].lower() and {r["api"] for r in rule["rows"]} >= {"memory", "pypto"}
    found = {m["mode"]: m["text"] for m in rule["casts"]["modes"]}
    assert found["CAST_ODD"] == found["CAST_TRUNC"] == "2" and found["CAST_RINT"] == "3"
    assert ask("rule", product="950", src="complex32", dst="complex64")["casts"] is None


def test_shift_round_saturate(ask):
    """llvm-aie's aie2p-srs.s has 6 / 4 = 1.5: floor 1, ceil 2, conv_even 2, symmetric_zero 1."""
    record = ask("srs", arch="xdna2", srs="6", shift="2", to="int16", saturation="none")
    found = {m["mode"]: m["result"] for m in record["modes"]}
    assert record["quotient"] == "1.5" and len(found) == 10 and record["note"] == ""
    assert "unsafe" in ask("srs", shift="-1")["note"]
    assert (found["floor"], found["ceil"], found["conv_even"], found["symmetric_zero"]) == ("1", "2", "2", "1")


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "fields", "field", "said"),
    [
        ("number", {"format": "hifloat9"}, "format", "did you mean 'hifloat8'"),
        ("number", {"format": "mx9"}, "format", "view of blocks"),
        ("number", {"value": "1.x"}, "value", "is not a number"),
        ("number", {"value": " "}, "value", "value is empty"),
        ("number", {"value": "0x12"}, "value", "beside 'code'"),
        ("number", {"code": "12"}, "code", "must be hexadecimal"),
        ("number", {"code": "0x100"}, "code", "0 to 0xff"),
        ("number", {"value": "1" * 401}, "value", "401 characters"),
        ("number", {"value": "1e99999"}, "value", "2^5000"),
        ("number", {"value": "1j"}, "value", "complex"),
        ("number", {"value": "1", "code": "0x01"}, "code", "give one of them"),
        ("number", {"flip": "8"}, "flip", "from 0 to 7"),
        ("number", {"colour": "red"}, "colour", "not a field"),
        ("line", {"at": "inf"}, "at", "finite"),
        ("line", {"zoom": "1e3"}, "zoom", "whole number"),
        ("map", {"format": "half"}, "format", "16 bits"),
        ("block", {"block": "half"}, "block", "view of numbers"),
        ("block", {"values": "1,2,x"}, "values", "is not a number"),
        ("block", {"values": ",".join("1" * 17)}, "values", "takes 16"),
        ("block", {"values": "nan"}, "values", "NaN"),
        ("block", {"rounding": "stochastic"}, "rounding", "not known"),
        ("block", {"block": "mxfp4", "overflow": "saturate"}, "overflow", "not a field of mxfp4"),
        ("fixpipe", {"word": "0x7f800000"}, "word", "finite"),
        ("fixpipe", {"acc": "1.5"}, "acc", "int32"),
        ("fixpipe", {"product": "310P"}, "product", "no document"),
        ("fixpipe", {"product": "a2", "qmode": "QF322HIF8_PRE"}, "qmode", "not known"),
        ("fixpipe", {"scale": "1e39"}, "scale", "float32"),
        ("fixpipe", {"offset": "300"}, "offset", "-256 to 255"),
        ("rule", {"product": "A9"}, "product", "not an Ascend product"),
        ("rule", {"product": "a2"}, "dst", "has no hifloat8_t"),
        ("rule", {"dst": "uint8_t"}, "dst", "is not a cast of"),
        ("rule", {"mode": "NEAREST"}, "mode", "not a cast mode"),
        ("srs", {"shift": "60"}, "shift", "-4 to 59"),
        ("srs", {"arch": "aie9"}, "arch", "aie"),
    ],
)
def test_a_mistake_names_its_field(ask, question, fields, field, said):
    status, where, message = ask(question, **fields)
    assert (status, where) == (422, field) and said in message and "\n" not in message


def test_a_field_that_is_given_twice(client):
    assert client.get("/api/number?value=1&value=2").json()["field"] == "value"


def test_only_this_machines_names_are_answered(client):
    for host in ("127.0.0.1", "localhost", "localhost:8950", "[::1]:80"):
        assert client.get("/api/srs", headers={"host": host}).status_code == 200, host
    for host in ("example.com", "127.0.0.1.example.com", "localhost.example.com:80", "10.0.0.1", ""):
        answer = client.get("/", headers={"host": host})
        assert answer.status_code == 400 and "example" not in answer.text, host


def test_nothing_is_loaded_from_elsewhere(client):
    page = client.get("/")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'self';") and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    for path in ("/", "/static/app.js", "/static/style.css", "/api/number", "/nowhere", "/static/nowhere"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == policy and headers["x-content-type-options"] == "nosniff"
    static = Path(bt.__file__).parent / "explorer" / "static"
    for file in static.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text and "https:" not in text and "//cdn" not in text, file
    assert "<script>" not in page.text and "style=" not in page.text and "onclick" not in page.text


def test_only_reading_is_allowed(client):
    assert client.post("/api/number").status_code == 405
    assert client.get("/static/../app.py").status_code == 404 and client.get("/static/%2e%2e/app.py").status_code == 404
