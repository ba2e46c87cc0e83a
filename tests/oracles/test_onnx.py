"""ONNX, where it is installed: the vectors that its wheel carries for Cast, QuantizeLinear and DequantizeLinear.

    pip install onnx==1.22.0

Its reference code wraps ml_dtypes, but these few values are published data that other runtimes are tested with.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oracles.disagreements import compare
from oracles.inputs import exact_values

import bittrue as bt

onnx = pytest.importorskip("onnx")

FOLDER = Path(onnx.__file__).parent / "backend/test/data/node"
CASES = [
    path.name
    for pattern in ("test_cast_*", "test_quantizelinear*", "test_dequantizelinear*")
    for path in sorted(FOLDER.glob(pattern))
    if "STRING" not in path.name
]


def tensors(case: str, side: str) -> list:
    found = []
    for path in sorted((FOLDER / case / "test_data_set_0").glob(f"{side}_*.pb")):
        found.append(onnx.TensorProto())
        found[-1].ParseFromString(path.read_bytes())
    return found


def attributes(case: str) -> dict:
    node = onnx.load(FOLDER / case / "model.onnx").graph.node[0]
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def typed(tensor) -> bt.Array:
    """Read a tensor by its type's name in ONNX; the bytes, where it is stored as such, through our own packing."""
    name = onnx.TensorProto.DataType.Name(tensor.data_type)
    values = onnx.numpy_helper.to_array(tensor)
    array = bt.Array(values, bt.format(name))
    if tensor.raw_data:
        packed = bt.Array.frombytes(tensor.raw_data, name, tuple(tensor.dims))
        assert packed.codes.tobytes() == array.codes.tobytes() and packed.tobytes() == tensor.raw_data
    return array


def plain_codes(array: bt.Array) -> np.ndarray:
    """Codes as integers, one for all NaN."""
    nan = np.isnan(np.asarray(array, np.float64))
    return np.where(nan, -1, array.codes.view(array.format.code_dtype).astype(np.int64))


@pytest.mark.parametrize("case", [c for c in CASES if "cast" in c])
def test_cast(case):
    (x,), (y,) = tensors(case, "input"), tensors(case, "output")
    given, x, y = attributes(case), typed(x), typed(y)
    if y.format.kind == "int":  # the text says nearest even; the vectors truncate and keep the low bits
        rule = {"rounding": "trunc", "overflow": "wrap", "nan": "zero"}
    elif y.format.bits > 8:
        rule = {"overflow": "infinity"}
    else:
        rule = {"overflow": "saturate" if given.get("saturate", 1) else "infinity"}
        if "round_mode" in given:
            rule["rounding"] = {"up": "ceil", "down": "floor", "nearest": "nearest_up"}[given["round_mode"].decode()]
    ours = x.astype(y.format, **rule)
    assert (ours.format, ours.shape) == (y.format, y.shape)
    v = exact_values(np.asarray(x))
    compare("onnx", x.format.name, y.format.name, v.ravel(), plain_codes(y).ravel(), plain_codes(ours).ravel())


@pytest.mark.parametrize("case", [c for c in CASES if "test_quantizelinear" in c])
def test_quantize_linear(case):
    """Nearest even, saturating; a scale per axis, or per block along it."""
    (x, scale, *zero), (y,) = tensors(case, "input"), tensors(case, "output")
    given, y = attributes(case), typed(y)
    x, scale = onnx.numpy_helper.to_array(x), onnx.numpy_helper.to_array(scale)
    points = [np.asarray(typed(z)).astype(np.int64) for z in zero] if y.format.kind == "int" else []
    axis = given.get("axis", 1)
    if given.get("block_size"):
        scale, *points = (np.repeat(a, given["block_size"], axis)[:, : x.shape[axis]] for a in (scale, *points))
    x = x + np.float32(0)  # ONNX adds a zero point to float formats too: -0 becomes 0
    ours = bt.array(x, y.format, scale=scale, zero_point=points[0] if points else None, axis=axis)
    assert (plain_codes(ours) == plain_codes(y)).all()


@pytest.mark.parametrize("case", [c for c in CASES if "dequantizelinear" in c])
def test_dequantize_linear(case):
    """(value - zero point) * scale, in the type of the scale."""
    (x, scale, *zero), (y,) = tensors(case, "input"), tensors(case, "output")
    given, x = attributes(case), typed(x)
    scale, want = onnx.numpy_helper.to_array(scale), onnx.numpy_helper.to_array(y)
    points = [np.asarray(typed(z)).astype(want.dtype) for z in zero]
    axis = given.get("axis", 1)
    if given.get("block_size"):
        scale, *points = (np.repeat(a, given["block_size"], axis)[:, : want.shape[axis]] for a in (scale, *points))
    ours = bt.decode(
        x.codes, x.format, want.dtype, scale=scale, zero_point=points[0] if points else None, axis=axis
    )
    assert ours.dtype == want.dtype and ours.tobytes() == want.tobytes()
