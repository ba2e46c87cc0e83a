"""Parameter words: the seed's bit positions, every limit, words and parameters both ways; the table of modes."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest

from bittrue import ascend
from bittrue.ascend import QuantMode, QuantParam, quant_mode
from bittrue.cli import main

ARCHES = (2201, 3510)


def scale_bits(pattern: int) -> float:
    return float(np.uint32(pattern).view(np.float32))


# --- modes ------------------------------------------------------------------------------------------------------------

NUMBERS = {
    "NoQuant": 0, "F322F16": 1, "VQF322HIF8_PRE": 2, "QF322HIF8_PRE": 3, "VQF322HIF8_PRE_HYBRID": 4,
    "QF322HIF8_PRE_HYBRID": 5, "VREQ8": 8, "REQ8": 9, "VDEQF16": 10, "DEQF16": 11, "VQF322FP8_PRE": 12,
    "QF322FP8_PRE": 13, "VQF322F32_PRE": 14, "QF322F32_PRE": 15, "F322BF16": 16, "VQF322B8_PRE": 23,
    "QF322B8_PRE": 24, "VQF322F16_PRE": 31, "QF322F16_PRE": 32, "VQF322BF16_PRE": 33, "QF322BF16_PRE": 34,
    "VQS322BF16_PRE": 35, "QS322BF16_PRE": 36,
}  # fmt: skip
BOTH = {"NoQuant", "F322F16", "F322BF16", "REQ8", "VREQ8", "DEQF16", "VDEQF16", "QF322B8_PRE", "VQF322B8_PRE"}


def test_numbers_of_the_modes() -> None:
    assert {m.name: m.value for m in QuantMode} == NUMBERS
    for name, number in NUMBERS.items():
        mode = QuantMode(number)
        for spelling in (name, name.lower(), f"QuantMode_t::{name}", number, mode, np.int64(number)):
            assert quant_mode(spelling) is mode


@pytest.mark.parametrize("mode", QuantMode, ids=lambda m: m.name)
def test_the_table_of_modes(mode: QuantMode) -> None:
    """Against the names themselves: [V][Q]SOURCE2DESTINATION, and against the seed's two lists."""
    info, name = mode.info, mode.name
    assert info.mode is mode and info.document
    assert info.per_channel == name.startswith("V")
    assert set(info.fields) == set(ARCHES if name in BOTH else (3510,))
    a5, both = ("Ascend 950PR/950DT",), ("Ascend 950PR/950DT", "Atlas A3", "Atlas A2")
    assert info.products == (both if name in BOTH else a5)
    if name == "NoQuant":
        assert info.accumulators == ("float", "int32_t") and info.outputs == ()
        return
    integers = any(part in name for part in ("REQ8", "DEQ", "QS32"))
    assert info.accumulators == (("int32_t",) if integers else ("float",))
    outputs = {
        "B8": ("int8_t", "uint8_t"), "REQ8": ("int8_t", "uint8_t"), "HIF8": ("hifloat8_t",), "FP8": ("fp8_e4m3fn_t",),
        "BF16": ("bfloat16_t",), "F16": ("half",), "F32_PRE": ("float",),
    }  # fmt: skip
    assert info.outputs == next(v for k, v in outputs.items() if k in name)
    assert info.parametrised == (name not in ("F322F16", "F322BF16"))
    assert info.to_integer == ("int8_t" in info.outputs)
    for arch in info.fields:
        want = {"scale"} if info.parametrised else set()
        if info.to_integer:
            want |= {"offset", "signed"}
        if arch == 2201 and name.removeprefix("V") in ("REQ8", "DEQF16"):
            want |= {"shift"}
        assert set(info.fields[arch]) == want == set(info.reads(arch))


# --- bit positions ----------------------------------------------------------------------------------------------------


def test_bits_of_table_1() -> None:
    """NPU architecture 2201: M1 0-31, N 32-35, MCB 36, offset 37-45, sign 46."""

    def word(**fields: Any) -> int:
        return QuantParam(**{"scale": 0.0, "signed": False, **fields}).pack(2201)  # type: ignore[no-any-return]

    assert word() == 0
    assert word(scale=-0.0) == 1 << 31
    assert word(scale=1.0) == 0x7F << 23
    assert word(scale=2.0**-126) == 1 << 23
    assert word(scale=1.0 + 2.0**-10) == 0x7F << 23 | 1 << 13
    assert word(scale=1.0 + 2.0**-1) == 0x7F << 23 | 1 << 22
    assert word(scale=1.0 + 2.0**-11) == 0x7F << 23
    assert word(shift=1) == 1 << 36
    assert word(shift=16) == 1 << 36 | 0b1111 << 32
    assert word(shift=9) == 1 << 36 | 0b1000 << 32
    assert word(offset=1) == 1 << 37
    assert word(offset=255) == 0xFF << 37
    assert word(offset=-256) == 1 << 45
    assert word(offset=-1) == 0x1FF << 37
    assert word(signed=True) == 1 << 46
    assert word(rest=1 << 47 | 1 << 63 | 1) == 1 << 47 | 1 << 63 | 1
    assert QuantParam(0.5, -3, True, 1).pack(2201) == 0x7FB03F000000
    assert QuantParam(0.1).pack(2201) & 0xFFFFFFFF == 0x3DCCC000


def test_bits_of_table_2() -> None:
    """NPU architecture 3510: M1 13-31, offset 37-45, sign 46, nothing else."""
    assert QuantParam(1.0 + 2.0**-10, 0, False).pack(3510) == 0x7F << 23 | 1 << 13
    assert QuantParam(-1.0, -256, True).pack(3510) == 1 << 31 | 0x7F << 23 | 1 << 45 | 1 << 46
    assert QuantParam(0.0, 170, False).pack(3510) == 170 << 37
    assert QuantParam(0.0, rest=0x1F << 32).pack(3510) == 0x1F << 32 | 1 << 46
    with pytest.raises(ValueError, match=r"^shift=1: NPU architecture 3510 has no shift"):
        QuantParam(1.0, shift=1).pack(3510)


@pytest.mark.parametrize("bit", range(64))
def test_every_bit_is_read_as_the_tables_say(bit: int) -> None:
    for arch in ARCHES:
        param = QuantParam.unpack(1 << bit, arch)
        want: dict[str, Any] = {"scale": 0.0, "offset": 0, "signed": False, "shift": None, "rest": 0}
        if 13 <= bit < 32:
            want["scale"] = scale_bits(1 << bit)
        elif 37 <= bit < 46:
            want["offset"] = 1 << (bit - 37) if bit < 45 else -256
        elif bit == 46:
            want["signed"] = True
        elif arch == 2201 and bit == 36:
            want["shift"] = 1
        else:
            want["rest"] = 1 << bit
        assert {name: getattr(param, name) for name in want} == want
        assert param.pack(arch) == 1 << bit


# --- both ways --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHES)
def test_random_words_both_ways(arch: int) -> None:
    rng = np.random.default_rng(arch)
    every = rng.integers(0, 1 << 64, 100_000, np.uint64, endpoint=False)
    finite = (every >> np.uint64(23) & np.uint64(0xFF)) != 0xFF
    words = every[finite]
    param = QuantParam.unpack(words, arch)
    assert param.columns == words.size > 99_000
    again = param.pack(arch)
    assert again.dtype == np.uint64 and np.array_equal(again, words)
    assert QuantParam.unpack(again, arch) == param
    # the fields themselves, from the bits
    assert np.array_equal(param.scale.view(np.uint32), words.astype(np.uint32) & np.uint32(0xFFFFE000))
    field = (words >> np.uint64(37) & np.uint64(0x1FF)).astype(int)
    assert np.array_equal(param.offset, np.where(field > 255, field - 512, field))
    assert np.array_equal(param.signed, words >> np.uint64(46) & np.uint64(1) == 1)
    if arch == 2201:
        mcb = words >> np.uint64(36) & np.uint64(1) == 1
        assert np.array_equal(param.shift, np.where(mcb, (words >> np.uint64(32) & np.uint64(15)).astype(int) + 1, -1))
    else:
        assert (param.shift == -1).all()
    for word in words[:500].tolist():
        single = QuantParam.unpack(word, arch)
        assert single.pack(arch) == word and type(single.pack(arch)) is int
    with pytest.raises(ValueError, match=r"^word\[\d+\]=0x[0-9a-f]+ must be one whose M1 is finite$"):
        QuantParam.unpack(every, arch)
    with pytest.raises(ValueError, match=r"^word=0x7f800000 must be one whose M1 is finite$"):
        QuantParam.unpack(0x7F800000, arch)


@pytest.mark.parametrize("arch", ARCHES)
def test_random_parameters_both_ways(arch: int) -> None:
    rng = np.random.default_rng(1)
    n = 100_000
    scale = (rng.integers(0, 1 << 32, n) & 0xFFFFE000).astype(np.uint32).view(np.float32)
    scale = np.where(np.isfinite(scale), scale, np.float32(1))
    offset, signed = rng.integers(-256, 256, n), rng.integers(0, 2, n).astype(bool)
    shift = rng.integers(0, 17, n) if arch == 2201 else np.zeros(n, int)
    shift[shift == 0] = -1
    param = QuantParam(scale, offset, signed, shift)
    assert QuantParam.unpack(param.pack(arch), arch) == param


def test_limits() -> None:
    top = float(np.finfo(np.float32).max)
    for scale in (top, -top, 2.0**-149, 0, np.float32(1.5), np.int32(3)):
        assert QuantParam(scale).scale == float(scale)
    assert QuantParam(0.1).scale == float(np.float32(0.1))
    assert QuantParam(2.0**-149).pack() == 1 << 46  # cut to zero
    for scale in (np.inf, -np.inf, np.nan, 1e39, -3.5e38):
        with pytest.raises(ValueError, match=r"^scale=-?(inf|nan|1e\+39|3\.5e\+38) must be a finite float32$"):
            QuantParam(scale)
    with pytest.raises(ValueError, match=r"^scale\[1\]=nan must be a finite float32$"):
        QuantParam([1.0, np.nan])
    for arch in ARCHES:
        for offset in (-256, 255):
            assert QuantParam.unpack(QuantParam(1.0, offset).pack(arch), arch).offset == offset
        for offset in (-257, 256, 512):
            with pytest.raises(ValueError, match=rf"^offset={offset} must be "):
                QuantParam(1.0, offset).pack(arch)
    for shift in (1, 16):
        assert QuantParam.unpack(QuantParam(1.0, shift=shift).pack()).shift == shift
    for shift in (0, 17, -1):
        with pytest.raises(ValueError, match=rf"^shift={shift} must be 1 to 16, or None$"):
            QuantParam(1.0, shift=shift).pack()


@pytest.mark.parametrize("mode", [m for m in QuantMode if m.info.parametrised], ids=lambda m: m.name)
@pytest.mark.parametrize("arch", ARCHES)
def test_fields_that_a_mode_does_not_read(mode: QuantMode, arch: int) -> None:
    """Refused when set; kept and named when a word has them."""
    every = {"offset": 5, "signed": True} | ({"shift": 3} if arch == 2201 else {})
    if arch not in mode.info.fields:
        with pytest.raises(ValueError, match=rf"^mode={mode.name} is not on NPU architecture {arch}"):
            QuantParam(1.0).pack(arch, mode)
        return
    unread = set(every) - set(mode.info.reads(arch))
    for name, value in every.items():
        param = QuantParam(1.0, **{name: value})
        if name in unread:
            with pytest.raises(ValueError, match=rf"^{name}={value}: mode {mode.name} on NPU architecture {arch} does"):
                param.pack(arch, mode)
        else:
            fields = {"signed": "signed" in mode.info.reads(arch), name: value}
            assert param.pack(arch, mode) == QuantParam(1.0, **fields).pack(arch)
    word = QuantParam(1.0, **every).pack(arch) | 1 << 50 | 7
    param = QuantParam.unpack(word, arch, mode)
    assert set(param.ignored) == unread | {"rest"}
    assert param.pack(arch, mode) == param.pack(arch) == word
    assert QuantParam.unpack(word, arch).ignored == ()
    plain = QuantParam(1.0).pack(arch, mode)
    assert plain >> 46 == ("signed" in mode.info.reads(arch))  # int8 where there is a choice


def test_n_without_mcb_is_kept_as_rest() -> None:
    word = 0b1010 << 32 | 0x3F800000
    param = QuantParam.unpack(word, 2201, "REQ8")
    assert param.shift is None and param.rest == 0b1010 << 32 and param.ignored == ("rest",)
    assert param.pack(2201, "REQ8") == word


def test_arrays() -> None:
    param = QuantParam([0.5, 0.25, 2.0], 7, [True, False, True], [None, 3, None])
    words = param.pack()
    assert words.shape == (3,) and words.dtype == np.uint64
    singles = [QuantParam(s, 7, g, n).pack() for s, g, n in zip((0.5, 0.25, 2.0), (1, 0, 1), (None, 3, None))]
    assert words.tolist() == singles
    assert QuantParam.unpack(words.tolist()) == QuantParam.unpack(words)
    assert param.columns == 3 and param.shift.tolist() == [-1, 3, -1] and QuantParam(1.0).columns is None
    with pytest.raises(ValueError, match="read-only"):
        param.scale[0] = 3
    with pytest.raises(ValueError, match=r"^scale has 2, offset has 3 elements; they must agree$"):
        QuantParam([1.0, 2.0], [1, 2, 3])
    with pytest.raises(ValueError, match=r"^scale has shape \(1, 2\)"):
        QuantParam([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"^word has shape \(1, 2\)"):
        QuantParam.unpack([[1, 2]])
    assert QuantParam(np.empty(0)).pack().shape == (0,)


def test_equality_copies_and_text() -> None:
    a = QuantParam(0.5, -3, True, 1)
    for b in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a)), QuantParam.unpack(a.pack())):
        assert a == b and b.pack() == a.pack()
    others = [QuantParam(0.25, -3, True, 1), QuantParam(0.5, 3, True, 1), QuantParam(0.5, -3, False, 1),
              QuantParam(0.5, -3, True), QuantParam([0.5], -3, True, 1), 5]  # fmt: skip
    assert all(a != b for b in others) and QuantParam(0.0) != QuantParam(-0.0)
    assert repr(a) == "QuantParam(scale=0.5, offset=-3, signed=True, shift=1)"
    assert repr(QuantParam.unpack(1 << 60 | 1, mode="DEQF16")).endswith(f"rest={1 << 60 | 1}, ignored=('rest',))")
    array = QuantParam([0.5, 1.0])
    assert pickle.loads(pickle.dumps(array)) == array


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: QuantParam("x"), r"scale='x' must be a real number"),
        (lambda: QuantParam(1.0, 0.5), r"offset=0.5 must be an integer"),
        (lambda: QuantParam(1.0, np.uint64(2**64 - 3)), r"offset=18446744073709551613 must be a 9-bit integer"),
        (lambda: QuantParam(1.0, [2**64 - 3, 1]), r"offset\[0\]=18446744073709551613 must be a 9-bit integer"),
        (lambda: QuantParam(1.0, shift=[2**64 - 1]), r"shift\[0\]=18446744073709551615 must be 1 to 16"),
        (lambda: QuantParam(1.0, shift=2**64), r"shift=18446744073709551616 must be 1 to 16"),
        (lambda: QuantParam(1.0, shift=[True]), r"shift=\[True\] must be an integer"),
        (lambda: QuantParam(1.0, shift=1.0), r"shift=1.0 must be an integer"),
        (lambda: QuantParam(1.0, signed=2), r"signed=2 must be True or False"),
        (lambda: QuantParam(1.0, signed="yes"), r"signed='yes' must be True or False"),
        (lambda: QuantParam(1.0, rest=-1), r"rest=-1 must be a 64-bit word"),
        (lambda: QuantParam(1.0, rest=1 << 13).pack(), r"rest=0x2000 must be bits that no field has"),
        (lambda: QuantParam(1.0, rest=1 << 36).pack(2201), r"rest=0x1000000000 must be bits that no field has"),
        (lambda: QuantParam.unpack(1 << 64), r"word=18446744073709551616 must be a 64-bit word"),
        (lambda: QuantParam.unpack(0.5), r"word=0.5 must be a 64-bit word"),
        (lambda: QuantParam(1.0).pack(1234), r"product=1234 is not an Ascend product"),
        (lambda: QuantParam(1.0).pack("910A"), r"arch='910A': no document describes the Fixpipe of Atlas training"),
        (lambda: QuantParam(1.0).pack(2201, "F322F16"), r"mode=F322F16 takes no parameter word"),
        (lambda: QuantParam(1.0).pack(2201, "QF322F16_PRE"), r"mode=QF322F16_PRE is not on NPU architecture 2201"),
        (lambda: QuantParam(1.0).pack(2201, "REQ"), r"mode='REQ' is not a quantisation mode"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        call()


def test_products_stand_for_their_architecture() -> None:
    param = QuantParam(0.5, 1, True)
    assert param.pack("Ascend 910B") == param.pack(2201) and param.pack("950") == param.pack(3510)
    assert ascend.QuantMode.REQ8.info.fields[3510] == ("scale", "offset", "signed")


# --- command line -----------------------------------------------------------------------------------------------------


def bittrue(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["quantparam", *arguments]) == code
    found = capsys.readouterr()
    return found.err if code else found.out


def test_command_pack(capsys: pytest.CaptureFixture[str]) -> None:
    fields = ["--scale", "0.5", "--offset=-3", "--signed", "--shift", "1"]
    data = json.loads(bittrue(capsys, "pack", *fields, "--mode", "REQ8", "--json"))
    assert data["word"] == "0x00007fb03f000000" and data["mode"] == "REQ8" and data["ignored"] == []
    assert [data[k] for k in ("arch", "scale", "offset", "signed", "shift")] == [2201, "0.5", -3, True, 1]
    drawn = {row["field"]: (row["high"], row["low"], row["pattern"]) for row in data["bits"]}
    assert drawn == {
        "": (63, 47, "0" * 17),
        "Sign": (46, 46, "1"),
        "Offset": (45, 37, "111111101"),
        "MCB": (36, 36, "1"),
        "N": (35, 32, "0000"),
        "M1": (31, 0, "00111111000000000000000000000000"),
    }
    out = bittrue(capsys, "pack", *fields)
    assert "0x00007fb03f000000" in out and "0 01111110 0000000000 0000000000000" in out and "right by 1" in out
    for scale, bits in (("1/3", "0x3eaaa000"), ("0x1.8p-3", "0x3e400000"), ("0.1", "0x3dccc000")):
        data = json.loads(bittrue(capsys, "pack", "--scale", scale, "--unsigned", "--arch", "950", "--json"))
        assert data["word"] == f"{int(bits, 16):#018x}" and data["arch"] == 3510
    assert bittrue(capsys, "pack", "--scale", "x", code=2) == (
        "error: --scale x is not a number, such as 0.05, 1/3 or 0x1.8p-3\n"
    )
    assert "has no shift" in bittrue(capsys, "pack", "--scale", "1", "--shift", "2", "--arch", "3510", code=2)
    assert "--arch='310P'" in bittrue(capsys, "pack", "--scale", "1", "--arch", "310P", code=2)


def test_command_unpack(capsys: pytest.CaptureFixture[str]) -> None:
    out = bittrue(capsys, "unpack", "0x7fb03f000000", "70369801142272", "--mode", "DEQF16")
    assert out.count("mode DEQF16") == 2 and "-3 (ignored by DEQF16)" in out and "right by 1" in out
    data = json.loads(bittrue(capsys, "unpack", "0x7fb03f000000", "1", "--arch", "a2", "--mode", "DEQF16", "--json"))
    assert [entry["ignored"] for entry in data] == [["offset", "signed"], ["rest"]]
    assert "word zz is not a number" in bittrue(capsys, "unpack", "zz", code=2)
    assert "M1 is finite" in bittrue(capsys, "unpack", "0x7f800000", code=2)
    assert "Example: bittrue quantparam" in bittrue(capsys) == bittrue(capsys, "--help")
    for command in ("pack", "unpack"):
        assert f"bittrue quantparam {command}" in bittrue(capsys, command, "--help")
