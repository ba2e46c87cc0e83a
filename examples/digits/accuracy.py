"""Right answers of the digits network with weights *and* activations in a format, and on two datapaths, bit for bit.

Run it with `python examples/digits/accuracy.py`; `--svg FILE` also draws the table. It takes a few seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import network
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import bittrue as bt
from bittrue import aie, ascend

SCALED = ("int8", "int4", "float8_e4m3fn", "hifloat8", "float4_e2m1fn")  # by the largest magnitude of a tensor
AS_THEY_ARE = ("bfloat16", "float16", "mx9", "mx6", "mx4", "mxfp8_e4m3", "mxfp4", "nvfp4")
AIE_BLOCKS = ("bfp16ebs8", "mx9", "mx6", "mx4")

Layer = Callable[[np.ndarray, np.ndarray], np.ndarray]


def run(tensors: dict[str, np.ndarray], images: np.ndarray, product: Layer) -> np.ndarray:
    """Logits of the network with `product(x [n, k], weight [m, k])` for the products; biases and ReLU in float32."""
    x = images.astype(np.float32) / np.float32(16)
    for i in range(network.LAYERS):
        x = product(x, tensors[f"layers.{i}.weight"]) + tensors[f"layers.{i}.bias"]
        if i < network.LAYERS - 1:
            x = np.maximum(x, np.float32(0))
    return x


def rounded(name: str, scaled: bool) -> Layer:
    """Products in float32 of weights and activations that are rounded to a format."""
    top = 15.0 if name == "hifloat8" else float(bt.format(name).max)  # hifloat8 has three fraction bits up to 15

    def values(x: np.ndarray) -> np.ndarray:
        scale = np.float32(np.abs(x).max() / top) if scaled else np.float32(1)
        return bt.quantize(x / scale, name) * scale

    return lambda x, weight: values(x) @ values(weight).T


def through_the_cube(tensors: dict[str, np.ndarray], images: np.ndarray) -> np.ndarray:
    """int8 on an Ascend 950: exact int32 sums, then Fixpipe's ReLU, scale, rounding and clamp (VREQ8) into int8.

    Scales: of weights per output channel; of activations from the largest ones of the float32 network on these images.
    """
    floats = images.astype(np.float64) / 16
    x_scale = floats.max() / 127
    x = np.rint(floats / x_scale).astype(np.int8)
    for i in range(network.LAYERS):
        weight, bias = tensors[f"layers.{i}.weight"].astype(np.float64), tensors[f"layers.{i}.bias"]
        w_scale = np.abs(weight).max(axis=1) / 127
        codes = np.rint(weight / w_scale[:, None]).astype(np.int8).T
        start = np.rint(bias / (x_scale * w_scale)).astype(np.int32)
        if i == network.LAYERS - 1:
            return np.asarray(ascend.matmul(x, codes, start)) * (x_scale * w_scale)
        floats = np.maximum(floats @ weight.T + bias, 0)
        y_scale = floats.max() / 127
        words = ascend.QuantParam(x_scale * w_scale / y_scale, signed=True)
        x = np.asarray(ascend.matmul(x, codes, start, quant=("VREQ8", words), relu=True)).astype(np.int8)
        x_scale = y_scale
    raise AssertionError("the last layer returns")


def on_the_engine(block: str) -> Layer:
    """Block floats on an AI Engine: exact sums of a block, float32 accumulators in ascending k."""
    arch = "xdna2" if block == "bfp16ebs8" else "aie2ps"
    return lambda x, weight: aie.matmul(x, weight.T, block=block, arch=arch, rounding="conv_even")


def results() -> list[tuple[str, str, float, float, int]]:
    """Rows: format, how products are made, bits per value, accuracy, answers that differ from float32's."""
    images, labels = network.load_test_set()
    tensors = {name: np.asarray(a, np.float32) for name, a in bt.load(network.CHECKPOINT).items()}
    reference = network.forward(tensors, images).argmax(axis=1)
    rows = []

    def add(name: str, how: str, logits: np.ndarray) -> None:
        answers = logits.argmax(axis=1)
        changed = int((answers != reference).sum())
        rows.append((name, how, float(bt.format(name).bits), float((answers == labels).mean()), changed))

    add("float32", "float32", network.forward(tensors, images))
    for name in SCALED:
        add(name, "float32, scaled", run(tensors, images, rounded(name, scaled=True)))
    for name in AS_THEY_ARE:
        add(name, "float32", run(tensors, images, rounded(name, scaled=False)))
    add("int8", "Ascend 950 cube", through_the_cube(tensors, images))
    for name in AIE_BLOCKS:
        add(name, "AI Engine mmul", run(tensors, images, on_the_engine(name)))
    return rows


def drawing(rows: list[tuple[str, str, float, float, int]]) -> str:
    """An SVG of bars."""
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 720 {24 * len(rows) + 10}' "
        "font-family='sans-serif' font-size='12'><rect width='100%' height='100%' fill='white'/>"
    ]
    for k, (name, how, _, reached, _) in enumerate(rows):
        y = 24 * k + 8
        parts.append(f"<text x='6' y='{y + 13}'>{name}, {how}</text>")
        parts.append(f"<rect x='330' y='{y}' width='{300 * reached:.1f}' height='17' fill='#2f6fb5'/>")
        parts.append(f"<text x='{336 + 300 * reached:.1f}' y='{y + 13}'>{reached:.1%}</text>")
    return "".join(parts) + "</svg>\n"


def main() -> None:
    """Print the table, with a bar for each accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--svg", type=Path, help="also draw the table into this file")
    svg = parser.parse_args().svg
    rows = results()
    title = "500 held-out digits, weights and activations in a format"
    table = Table(padding=(0, 1, 0, 0), title=title, box=box.SIMPLE_HEAD)
    for heading in ("format", "products"):
        table.add_column(heading)
    for heading in ("bits", "accuracy", "changed"):
        table.add_column(heading, justify="right")
    table.add_column("", no_wrap=True)
    for name, how, bits, reached, changed in rows:
        table.add_row(name, how, f"{bits:g}", f"{reached:.1%}", str(changed), "█" * round(10 * reached))
    Console().print(table)
    if svg is not None:
        svg.write_text(drawing(rows))


if __name__ == "__main__":
    main()
