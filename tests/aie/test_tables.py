"""The tables of types, lanes, accumulators, products, rounding codes, matrix shapes and ports, cell by cell.

The literals are the tables of the project's reference (AI Engine API 2025 and 2026, UG1603, the ADF header), typed in as
they stand there; what is compared with them comes from the public functions, never from the data files.
"""

# ruff: noqa: E501

from __future__ import annotations

import itertools
import re

import ml_dtypes
import numpy as np
import pytest

import bittrue as bt
from bittrue import aie

ARCHS = ("aie", "aie-ml", "xdna2", "aie-mlv2")

ELEMENTS = """
| element | arch 10 | arch 20 | arch 21 | arch 22 |
|---|---|---|---|---|
| int4, uint4 | - | 32/64/128/256 | same | same |
| int8, uint8 | 16/32/64/128 | same | same | same |
| int16 | 8/16/32/64 | same | same | same |
| uint16 | - | 8/16/32/64 | same | same |
| int32 | 4/8/16/32 | same | same | same |
| uint32 | - | 4/8/16/32 | same | same |
| bfloat16 | - | 8/16/32/64 | same | same |
| float16 | - | - | - | 8/16/32/64 |
| float | 4/8/16/32 | same | same | same |
| cint16 | 4/8/16/32 | same | same | same |
| cint32 | 2/4/8/16 | same | same | same |
| cbfloat16 | - | 4/8/16/32 | - | 4/8/16/32 (OQ 24) |
| cfloat | 2/4/8/16 | 2/4/8/16 | - | 2/4/8/16 |
| float8 (E4M3) | - | - | - | 16/32/64/128 |
| bfloat8 (E5M2) | - | - | - | 16/32/64/128 |
"""

ACCUMULATORS = """
| tag | arch 10 native | arch 10 lanes | arch 20/21/22 native | arch 20/21/22 lanes |
|---|---|---|---|---|
| acc32 | 48 | 8..128 | 32 | 8..128 |
| acc40, acc48 | 48 | 8..128 | 64 | 4..64 |
| acc56, acc64 | 80 | 4..64 | 64 | 4..64 |
| acc72, acc80 | 80 | 4..64 | - | - |
| accfloat | 32 | 4..32 | 32 | 4..128 |
| cacc32, cacc40, cacc48 | 48 per part | 4..64 | 64 per part | 2..32 |
| cacc56, cacc64 | 80 per part | 2..32 | 64 per part | 2..32 |
| cacc72, cacc80 | 80 per part | 2..32 | - | - |
| caccfloat | 32 per part | 2..16 | 32 per part (not arch 21, OQ 23) | 2..64 |
"""

PRODUCTS = """
| factors | arch 10 | arch 20/21/22 |
|---|---|---|
| int4 x int8 | - | acc32 |
| int8 x int8, int8 x int16, int16 x int16 | acc48 | acc32 |
| int16 x int32 | acc48 | acc64 |
| int32 x int32 | acc80 | acc64 (two 32x16 products) |
| complex int, at most one 32-bit side | cacc48 | cacc64 |
| cint32 x int32, cint32 x cint32 | cacc80 | cacc64 |
| float, bfloat16, float16, fp8, bfp16, mx | accfloat | accfloat |
| complex float types | caccfloat | caccfloat |
"""

ROUNDING = """
| aie::rounding_mode | result for r > 0 | code arch 10 | code arch 20/21/22 |
|---|---|---|---|
| floor | f | 0 | 0 |
| ceil | f + 1 | 1 | 1 |
| symmetric_floor | toward zero | - | 2 |
| symmetric_ceil | away from zero | - | 3 |
| positive_inf | nearest, tie to +inf | 2 | 9 |
| negative_inf | nearest, tie to -inf | 3 | 8 |
| symmetric_inf | nearest, tie away from zero | 4 | 11 |
| symmetric_zero | nearest, tie to zero | 5 | 10 |
| conv_even | nearest, tie to even | 6 | 12 |
| conv_odd | nearest, tie to odd | 7 | 13 |
"""

MMUL = """
| A x B | arch 10 | arch 20 | arch 21 | arch 22 |
|---|---|---|---|---|
| 8x4 | - | 4x16x8, 8x16x8a, 4x32x8ab | 4x16x16 | 4x16x16ab, 8x8x8 |
| 8x8 | 4x8x4, 4x16x4a, 8x8x4a, 2x8x8, 4x8x8a, 1x16x8, 2x16x8a, 4x16x8a | 4x8x4ab, 4x16x4ab, 8x8x4ab, 2x8x8, 4x8x8, 8x8x8a, 1x16x8ab, 2x16x8ab, 4x16x8ab | 4x8x8, 8x8x8 | 4x8x8(32), 8x8x8(32) |
| 16x8 | 4x4x4, 8x4x4a, 4x8x4a, 4x4x8a | 4x4x4ab, 8x4x4ab, 4x8x4, 4x4x8, 8x4x8ab, 2x8x8 | 4x4x8, 8x4x8, 4x8x8, 2x8x8b | 8x2x8b, 8x4x8ab, 4x4x8b, 4x8x8ab |
| 8x16 | 4x4x8a, 4x4x4a, 8x8x1ab | 4x4x8ab, 4x4x4ab | 8x2x8b, 4x4x8b | 8x2x8b, 4x4x8b |
| 16x16 | 4x4x4a, 2x4x8a, 4x4x8a, 4x2x8a, 8x8x1ab | 4x4x4, 2x4x8, 4x4x8ab, 4x2x8, 8x2x8a, 8x1x8ab | 4x2x8(32), 8x2x8(32), 2x4x8(64), 4x4x8(64), 8x1x8b(32) | same as arch 21 |
| 32x16 | 2x4x8a, 4x4x4a, 4x2x4a, 2x2x4, 2x4x4a, 4x4x2a, 2x2x8a | 2x4x8, 4x4x8ab, 4x4x4, 4x2x4, 4x1x8ab | 4x2x8, 2x4x8ab, 4x4x8ab, 4x1x8b | same as arch 21 |
| 16x32 | 4x2x2, 2x4x8a, 4x4x4a | 2x4x8, 4x4x4 | 4x4x8ab | 4x4x8ab |
| 32x32 (emulated on 20+) | 4x2x4a, 2x2x2, 2x4x2a, 2x8x2a, 4x2x2a, 4x4x2a, 2x4x4a, 4x4x1a | 4x2x4a, 4x4x4ab, 8x2x4a, 4x1x8ab, 8x1x8ab | 4x2x8ab, 4x4x4ab, 4x4x8ab, 8x2x8ab, 4x1x8b | same as arch 21 |
| fp8 x fp8 | - | - | - | 8x8x8 |
| bf16 x bf16 (arch 22: also float16 mixes) | - | 4x8x4, 8x8x4a, 4x16x8ab, 8x8x8ab | 8x8x4ab, 4x8x8ab, 4x8x4ab, 8x8x8e, 8x1x8b | 4x8x4ab, 4x8x8, 8x8x8a, 8x1x8b |
| float x float (emulated on 20+) | 4x2x4a, 2x2x2a, 2x4x2ab, 2x8x2ab, 4x2x2a, 4x4x2a, 2x4x4a, 4x4x1ab | 4x8x4, 4x1x4b, 4x1x8ab | 4x8x4ab | 4x8x4ab |
| bfp16 x bfp16 | - | - | 8x8x8, 8x8x16ab | - |
| mx4 x mx4, mx6 x mx6 | - | - | - | 4x16x16, 8x16x16a |
| mx9 x mx9 | - | - | - | 4x16x16b |
"""

COMPLEX_MMUL = """
| A x B | arch 10 | arch 20 | arch 21 | arch 22 |
|---|---|---|---|---|
| 16 x c16 | 4x2x2, 4x4x4a, 4x4x1 | - | - | - |
| 16 x c32 | 2x4x2a, 2x4x4a, 2x8x2a, 4x4x2a, 4x4x1a | - | - | - |
| c16 x 16 | 2x2x4, 2x2x8a, 2x4x4a, 2x4x8a, 4x2x4a, 4x4x2a, 4x4x4a | 2x4x8ab, 4x4x4ab | 4x4x8ab, 2x4x8ab | 4x4x8ab, 2x4x8ab |
| c16 x c16 | 2x2x2, 2x4x2a, 2x8x2a, 2x4x4a, 4x2x2a, 4x4x2a, 4x2x4a, 4x4x1a | 1x4x8ab, 2x4x8ab | 1x4x8ab, 2x2x16ab | 1x4x8ab, 2x2x16ab |
| c16 x 32 | as c16 x c16 | 4x4x4ab | - | - |
| c16 x c32 | 2x2x2a, 2x4x2a, 4x2x1a | - | - | - |
| 32 x c16 | as c16 x c16 | - | - | - |
| 32 x c32 | 2x2x2a, 2x4x2a, 4x2x1a | - | - | - |
| c32 x 16 | 2x4x2a, 2x8x2a, 2x4x4a, 4x4x2a | 4x2x4ab, 4x4x4ab | - | - |
| c32 x c16 | 2x2x2a, 2x4x2a, 4x4x1a | 1x2x4ab, 1x2x8ab, 2x2x8ab, 1x4x8ab, 2x4x8ab | 1x2x4ab, 1x2x8ab, 1x2x16ab | 1x2x4ab, 1x2x8ab, 1x2x16ab |
| c32 x 32 | 1x2x2, 2x2x2a, 2x4x2a, 4x4x1a | 4x2x4ab | - | - |
| c32 x c32 | 1x2x2a, 2x2x1a, 2x2x1 | 1x2x8ab | 1x2x8ab | 1x2x8ab |
| bf16 x cbf16, cbf16 x bf16, cbf16 x cbf16 | - | 2x8x2ab | - | - |
| float x cfloat | 2x2x2a, 2x4x2a, 4x2x1a | - | - | - |
| cfloat x float | 2x2x2a, 2x4x2a, 4x4x1a, 2x4x1ab | - | - | - |
| cfloat x cfloat | 2x2x2a, 2x2x4a, 2x4x2a, 4x2x2a, 4x2x1a | - | - | - |
"""

SPARSE_MMUL = """
| A x B | arch 20 | arch 21 | arch 22 |
|---|---|---|---|
| 8x4 | 4x32x8 | - | - |
| 8x8 | 4x16x8, 8x16x8a, 4x16x16ab | 4x16x8, 8x16x8 | 4x16x8, 8x16x8 |
| 16x8 | 2x16x8, 4x16x8a | 2x16x8, 4x16x8 | - |
| 16x16 | 2x8x8, 4x8x8a, 2x8x16ab | 2x8x8, 4x8x8 | 2x8x8, 4x8x8 |
| bf16 x bf16 | 4x16x4, 4x16x8ab | - | 4x16x8 |
"""

PORTS = """
| port | all | arch 10 only | arch <= 20 | arch >= 20 | arch >= 22 |
|---|---|---|---|---|---|
| stream | int8/16/32/64, uint8/16/32/64, float, cint16, cint32 | - | cfloat | int4, uint4, bfloat16 | float16, float8, bfloat8 |
| cascade, accumulator | acc32, acc48, acc64, cacc32, cacc48, cacc64, accfloat | acc80, cacc80 | caccfloat | - | - |
| cascade, vector | int8/16/32/64, uint8/16, cint16, cint32, float, cfloat | - | - | int4, uint4, bfloat16 | float16, float8, bfloat8 |
| old input_stream_accX | accfloat | acc48, cacc48, acc80, cacc80, caccfloat | - | acc32, acc64, cacc64 | - |
| run-time parameter | int8..int64, uint8..uint64, float, cint16, cint32 | - | cfloat | int4, uint4, bfloat16 | float16, float8, bfloat8 |
"""


def rows(table):
    """Cells of a Markdown table, without headings; "same" repeats the cell to the left."""
    found = []
    for line in table.strip().splitlines()[2:]:
        cells = [c.strip() for c in line.strip("|").split("|")]
        for n, cell in enumerate(cells):
            if cell in ("same", "same as arch 21"):
                cells[n] = cells[n - 1]
        found.append(cells)
    return found


# --- vectors ----------------------------------------------------------------------------------------------------------


def test_elements_and_lanes():
    seen = {arch: set() for arch in ARCHS}
    for names, *cells in rows(ELEMENTS):
        for name in names.split(", "):
            name = name.split(" ")[0]
            for arch, cell in zip(ARCHS, cells):
                cell = cell.split(" ")[0]
                if cell == "-":
                    with pytest.raises(ValueError, match=f"dtype='{name}' is not a vector element type of {arch}[ ;]"):
                        aie.lanes(name, arch)
                else:
                    assert aie.lanes(name, arch) == tuple(map(int, cell.split("/"))), (name, arch)
                    seen[arch].add(name)
                    for n in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 12):
                        if n in aie.lanes(name, arch):
                            assert aie.vector.zeros(name, n, arch).size == n
                        else:
                            with pytest.raises(ValueError, match=f"lanes={n} is not a size of {name} vectors"):
                                aie.vector.zeros(name, n, arch)
    for arch in ARCHS:
        assert {e.name for e in aie.elements() if arch in dict(e.sizes)} == seen[arch]


def test_layouts():
    """Section 2.1: sign, exponent and fraction bits."""
    for name, layout in {"float16": (1, 5, 10), "bfloat16": (1, 8, 7), "float8": (1, 4, 3), "bfloat8": (1, 5, 2)}.items():
        part = aie.element(name).part
        assert (1, part.exponent_bits, part.mantissa_bits) == layout
    bits = {"int4": 4, "uint8": 8, "cint16": 32, "cint32": 64, "cbfloat16": 32, "cfloat": 64, "float": 32}
    assert {name: aie.element(name).bits for name in bits} == bits


# --- accumulators -----------------------------------------------------------------------------------------------------


def test_accumulators():
    seen = {arch: set() for arch in ARCHS}
    for names, first, first_lanes, later, later_lanes in rows(ACCUMULATORS):
        for name, arch in itertools.product(names.split(", "), ARCHS):
            native, lanes = (first, first_lanes) if arch == "aie" else (later, later_lanes)
            if native == "-" or ("not arch 21" in native and arch == "xdna2"):
                with pytest.raises(ValueError, match=f"tag='{name}' is not an accumulator tag of {arch}[ ;]"):
                    aie.tag(name, arch)
                continue
            bits = int(native.split(" ")[0])
            low, high = map(int, lanes.split(".."))
            found = aie.tag(name, arch)
            assert found.bits == bits
            assert found.lanes == tuple(n for n in (1, 2, 4, 8, 16, 32, 64, 128, 256) if low <= n <= high)
            kind = name.rstrip("0123456789")
            assert aie.native_accum(name, arch=arch) == (name if kind.endswith("float") else f"{kind}{bits}")
            acc = aie.accum(name, low, arch=arch)
            assert acc.size == low and acc.bits == low * bits * (2 if name.startswith("c") else 1)
            with pytest.raises(ValueError, match=f"lanes={2 * high} is not a size of {name} accumulators"):
                aie.accum(name, 2 * high, arch=arch)
            seen[arch].add(name)
    for arch in ARCHS:
        assert {t.name for t in aie.tags(arch)} == seen[arch]


def test_native_accumulators_of_the_seed():
    assert aie.native_accum("acc48", arch="aie-ml") == "acc64"  # UG1603, Accumulator Data Types
    with pytest.raises(ValueError, match="acc24"):
        aie.native_accum("acc24", arch="aie-ml")


FAMILIES = {
    "int4": ["int4", "uint4"],
    "int8": ["int8", "uint8"],
    "int16": ["int16", "uint16"],
    "int32": ["int32", "uint32"],
}


def products_of(text):
    """Pairs of element types that a row of the table speaks of."""
    if text.startswith("complex int"):
        return [("cint16", "int16"), ("cint16", "cint16"), ("cint16", "int32"), ("cint32", "int16"), ("cint32", "cint16")]
    if text.startswith("float, bfloat16"):
        return [(n, n) for n in ("float", "bfloat16", "float16", "float8", "bfloat8")]
    if text == "complex float types":
        return [("cfloat", "cfloat"), ("cbfloat16", "cbfloat16"), ("cfloat", "float"), ("cbfloat16", "bfloat16")]
    found = []
    for pair in text.split(", "):
        a, b = pair.split(" x ")
        found += itertools.product(FAMILIES.get(a, [a]), FAMILIES.get(b, [b]))
    return found


def test_default_tags_of_block_types():
    for name, arch in (("mx9", "aie-mlv2"), ("mx6", "aie-mlv2"), ("mx4", "aie-mlv2"), ("bfp16ebs8", "xdna2")):
        assert aie.default_tag(name, name, arch) == "accfloat"
        with pytest.raises(ValueError, match=f"'{name}' is not a vector element type of aie-ml"):
            aie.default_tag(name, name, "aie-ml")
    with pytest.raises(ValueError, match="mx9 x mx6 is not a product of aie-mlv2"):
        aie.default_tag("mx9", "mx6", "aie-mlv2")


def test_default_tags():
    for text, *cells in rows(PRODUCTS):
        for (a, b), arch in itertools.product(products_of(text), ARCHS):
            cell = cells[0 if arch == "aie" else -1].split(" (")[0]
            legal = all(arch in dict(aie.element(n).sizes) for n in (a, b))
            if cell == "-" or not legal:
                with pytest.raises(ValueError):
                    aie.default_tag(a, b, arch)
            else:
                assert aie.default_tag(a, b, arch) == aie.default_tag(b, a, arch) == cell


# --- modes ------------------------------------------------------------------------------------------------------------


def test_rounding_codes():
    assert [cells[0] for cells in rows(ROUNDING)] == [m.value for m in aie.RoundingMode]
    for mode, _, first, later in rows(ROUNDING):
        for arch in ARCHS:
            code = first if arch == "aie" else later
            if code == "-":
                assert mode not in [m.value for m in aie.rounding_modes(arch)]
            else:
                assert aie.rounding_code(mode, arch) == int(code)


def test_saturation_codes():
    """Section 4.2."""
    codes = {"none": 0, "saturate": 1, "symmetric": 3}
    assert {m.value: m.code for m in aie.SaturationMode} == codes
    assert aie.saturation_mode("truncate") is aie.SaturationMode.saturate
    assert (aie.current_tile().rounding.value, aie.current_tile().saturation.value) == ("floor", "none")


def test_architectures():
    """Section 1."""
    numbers = {"aie": 10, "aie-ml": 20, "xdna1": 20, "aie2": 20, "npu1": 20, "xdna2": 21, "aie2p": 21, "npu2": 21}
    numbers |= {"aie-mlv2": 22, "aie2ps": 22, "AIE1": 10, "AIE-ML": 20}
    assert {name: aie.arch(name).number for name in numbers} == numbers
    assert [aie.arch(n).cascade_bits for n in (10, 20, 21, 22)] == [384, 512, 512, 512]  # section 11


# --- matrix shapes ----------------------------------------------------------------------------------------------------

TYPES = {
    **{n: [f"int{n}", f"uint{n}"] for n in ("4", "8", "16", "32")},
    "c16": ["cint16"],
    "c32": ["cint32"],
    "bf16": ["bfloat16"],
    "cbf16": ["cbfloat16"],
    "fp8": ["float8", "bfloat8"],
    "bfp16": ["bfp16ebs8"],
}


def shapes_of_table(table):
    """(first, second, arch) -> shapes as written."""
    heading = [c.strip() for c in table.strip().splitlines()[0].strip("|").split("|")][1:]
    archs = [ARCHS[(10, 20, 21, 22).index(int(c.split(" ")[1]))] for c in heading]
    lines = rows(table)
    by_label = {cells[0]: cells for cells in lines}
    found = {}
    for label, *cells in lines:
        plain = re.sub(r" \(.*", "", label)
        pairs = [p.split(" x " if " x " in p else "x") for p in plain.split(", ")]
        for (a, b), (n, arch) in itertools.product(pairs, enumerate(archs)):
            cell = cells[n]
            if cell.startswith("as "):
                cell = by_label[cell[3:]][n + 1]
            if cell == "-":
                continue
            for pair in itertools.product(TYPES.get(a, [a]), TYPES.get(b, [b])):
                found[(*pair, arch)] = cell.split(", ")
            if (a, b) == ("bf16", "bf16") and arch == "aie-mlv2" and "float16" in label:
                for pair in itertools.product(["bfloat16", "float16"], repeat=2):
                    found[(*pair, arch)] = cell.split(", ")
    return found


def known(name, arch):
    return name.startswith(("mx", "bfp")) or arch in dict(aie.element(name).sizes)


ALL = [e.name for e in aie.elements()] + ["mx9", "mx6", "mx4", "bfp16ebs8"]


@pytest.mark.parametrize("sparse", (False, True))
def test_matrix_shapes(sparse):
    want = shapes_of_table(SPARSE_MMUL) if sparse else shapes_of_table(MMUL) | shapes_of_table(COMPLEX_MMUL)
    assert len(want) > (20 if sparse else 100)
    for a, b, arch in itertools.product(ALL, ALL, ARCHS):
        if (a, b, arch) in want and known(a, arch) and known(b, arch):
            found = aie.mmul_shapes(a, b, arch, sparse=sparse)
            assert [str(s) for s in found] == want[a, b, arch], (a, b, arch)
            for shape in found:
                m = aie.mmul(shape.M, shape.K, shape.N, a, b, arch=arch, sparse=sparse)
                assert (m.size_a, m.size_b, m.size_c) == (shape.M * shape.K, shape.K * shape.N, shape.M * shape.N)
                if shape.accumulator_bits is not None:
                    assert m.tag.bits == shape.accumulator_bits
        else:
            with pytest.raises(ValueError, match=r"no pair of|is not a vector element type"):
                aie.mmul_shapes(a, b, arch, sparse=sparse)


def test_illegal_shapes_name_the_legal_ones():
    with pytest.raises(ValueError, match=r"4x4x4 is no shape of int8 x int8 on xdna2 \(4x8x8, 8x8x8\)"):
        aie.mmul(4, 4, 4, "int8", "int8", arch="xdna2")
    with pytest.raises(ValueError, match=r"int16 x int16 as 2x4x8\(64\) has accumulators of 64 bits only"):
        aie.mmul(2, 4, 8, "int16", "int16", "acc32", "xdna2")


# --- ports ------------------------------------------------------------------------------------------------------------

PORT_NAMES = {
    "stream": "stream",
    "cascade, accumulator": "cascade",
    "cascade, vector": "cascade",
    "old input_stream_accX": "input_stream_acc",
    "run-time parameter": "rtp",
}


def port_types_in(cell):
    for text in [] if cell == "-" else cell.split(", "):
        if ".." in text:
            sign = text[: text.index("int")]
            yield from (f"{sign}int{n}" for n in (8, 16, 32, 64))
        elif "/" in text:
            first, *others = text.split("/")
            yield first
            yield from (first.rstrip("0123456789") + n for n in others)
        else:
            yield text


def test_ports():
    want = {(port, arch): set() for port in set(PORT_NAMES.values()) for arch in ARCHS}
    for label, every, only10, upto20, from20, from22 in rows(PORTS):
        for arch, number in zip(ARCHS, (10, 20, 21, 22)):
            cells = [every]
            cells += [only10] * (number == 10) + [upto20] * (number <= 20)
            cells += [from20] * (number >= 20) + [from22] * (number >= 22)
            for cell in cells:
                want[PORT_NAMES[label], arch] |= set(port_types_in(cell))
    for (port, arch), names in want.items():
        found = aie.port_types(port, arch)
        assert {t.name for t in found} == names and len(found) == len(names)
        for name in names:
            native = aie.native_accum(name, arch) if name.startswith(("acc", "cacc")) else name
            if native == name:
                assert aie.check_port(port, name, arch).name == name
            else:
                with pytest.raises(ValueError, match=f"dtype='{name}' is not native on {arch}: graph code takes {native}"):
                    aie.check_port(port, name, arch)
            assert aie.check_port(port, name, arch, map_nonnative=True).name == native


def test_names_of_port_types():
    """Whatever names an element type elsewhere names it here."""
    names = {np.int16: "int16", np.dtype("i8"): "int64", np.float32: "float", "float32": "float", "int8_t": "int8"}
    for name, wanted in names.items():
        assert aie.check_port("stream", name, "aie").name == wanted
    assert aie.check_port("cascade", "ACC48", "aie").name == "acc48"
    with pytest.raises(ValueError, match=r"dtype='bfloat16' is not a type of a stream on aie;"):
        aie.check_port("stream", ml_dtypes.bfloat16, "aie")
    with pytest.raises(ValueError, match=r"dtype='mx9' is not a type of a stream .*block types travel on no port"):
        aie.check_port("stream", bt.format("mx9"), "aie-mlv2")


def test_refused_ports():
    for block in ("mx9", "mx6", "mx4", "bfp16ebs8"):
        for port in ("stream", "cascade", "rtp"):
            with pytest.raises(ValueError, match="block types travel on no port"):
                aie.check_port(port, block, "aie-mlv2")
    with pytest.raises(ValueError, match="accumulator type, which travels on cascades, not on a stream"):
        aie.check_port("stream", "acc48", "aie")
    with pytest.raises(ValueError, match=r"dtype='bfloat16' is not a type of a stream on aie; .*cfloat"):
        aie.check_port("stream", "bfloat16", "aie")
    with pytest.raises(ValueError, match=r"port='cascde' is not a kind of port; did you mean 'cascade'\?"):
        aie.port_types("cascde", "aie")
    with pytest.raises(ValueError, match="caccfloat"):
        aie.check_port("cascade", "caccfloat", "aie-mlv2")
    choices = aie.Choices(mlv2_caccfloat_cascade="offered")
    assert aie.check_port("cascade", "caccfloat", "aie-mlv2", choices=choices).name == "caccfloat"
