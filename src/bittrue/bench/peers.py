"""What other libraries do for the same conversion, where they are installed: one row of data per library."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from ..formats import Format
from ..kinds.block import BlockFormat

__all__ = ["PEERS", "block_jobs", "casts", "numpy_dtype"]

Array = np.ndarray[Any, Any]
Job = Callable[[], object]


class Peer(NamedTuple):
    """A library: its distribution, the module to import, its names of our formats, and how to prepare a conversion.

    `prepare` takes the input (for `back`: codes), the library's name of the format and `back`, and returns the job, or
    None where the library lacks the conversion.
    """

    name: str
    module: str
    formats: dict[str, str]
    prepare: Callable[[Array, str, bool], Job | None]


def casts(x: Array, f: Format, back: bool = False) -> dict[str, Job]:
    """Return what installed peers do for a cast of `x` to codes of the format (`back`: from codes to float32)."""
    return _jobs(_CASTS, x, f.name, back)


def block_jobs(x: Array, f: BlockFormat, what: str) -> dict[str, Job]:
    """Return what installed peers do to float32 `x`: make blocks of it ("encode") or round it ("quantize")."""
    return _jobs(_BLOCKS.get(what, ()), x, f.name, False)


def numpy_dtype(f: Format) -> np.dtype[Any]:
    """Return the dtype that NumPy or ml_dtypes has for a format."""
    if f.name in ("float16", "float32", "float64"):
        return np.dtype(f.name)
    dtype: np.dtype[Any] = np.dtype(getattr(import_module("ml_dtypes"), f.name))
    return dtype


def _jobs(peers: tuple[Peer, ...], x: Array, name: str, back: bool) -> dict[str, Job]:
    found = {}
    for peer in peers:
        if name in peer.formats and find_spec(peer.module.partition(".")[0]) is not None:
            job = peer.prepare(x, peer.formats[name], back)
            if job is not None:
                found[peer.name] = job
    return found


def _dtype_of(module: str) -> Callable[[Array, str, bool], Job | None]:
    """Return how a library of NumPy dtypes converts: `numpy.copyto`."""

    def prepare(x: Array, name: str, back: bool) -> Job | None:
        dtype = np.dtype(getattr(import_module(module), name))
        source, out = (x.view(dtype), np.empty(x.size, np.float32)) if back else (x, np.empty(x.size, dtype))
        try:
            np.copyto(out[:0], source[:0], casting="unsafe")
        except TypeError:
            return None

        def cast() -> None:
            with np.errstate(all="ignore"):
                np.copyto(out, source, casting="unsafe")

        return cast

    return prepare


def _torch(x: Array, name: str, back: bool) -> Job | None:
    torch = import_module("torch")
    if not hasattr(torch, name) or x.dtype.kind not in "fiu":
        return None
    torch.set_num_threads(1)
    given = torch.from_numpy(x.view(f"i{x.itemsize}") if back else x)
    dtype = getattr(torch, name)
    if back:
        given = given.view(dtype)
    out = torch.empty(x.size, dtype=torch.float32 if back else dtype)
    try:
        out.copy_(given)
    except (RuntimeError, NotImplementedError):
        return None
    return lambda: out.copy_(given)


def _gfloat(x: Array, name: str, back: bool) -> Job | None:
    gfloat = import_module("gfloat")
    info = getattr(import_module("gfloat.formats"), name)
    if back:
        return lambda: gfloat.decode_ndarray(info, x)
    if x.dtype != np.float32:
        return None
    return lambda: gfloat.encode_ndarray(info, gfloat.round_ndarray(info, x, sat=True))


def _torchao(x: Array, name: str, _back: bool) -> Job | None:
    torch = import_module("torch")
    to_mx = import_module("torchao.prototype.mx_formats.mx_tensor").to_mx
    torch.set_num_threads(1)
    given, element = torch.from_numpy(x.reshape(-1, 32)), getattr(torch, name, name)
    return lambda: to_mx(given, element, 32)


def _quark(x: Array, bits: str, _back: bool) -> Job | None:
    torch = import_module("torch")
    quantize = import_module("quark.torch.kernel.hw_emulation.hw_emulation_interface").fake_quantize_mx6_mx9
    torch.set_num_threads(1)
    given = torch.from_numpy(x.reshape(-1, 16))
    return lambda: quantize(given, -1, 16, quant_bit=int(bits), sub_block_size=2)


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_SMALL = (
    "bfloat16 float8_e3m4 float8_e4m3 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2 float8_e5m2fnuz "
    "float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn int4 int2 uint4 uint2"
)
_EN = {"hifloat8": "hifloat8", "float4_e1m2fn": "float4_e1m2", "float4_e2m1fn": "float4_e2m1"}
_IN_TORCH = "float16 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"
_OCP = {
    "float8_e4m3fn": "format_info_ocp_e4m3",
    "float8_e5m2": "format_info_ocp_e5m2",
    "float6_e2m3fn": "format_info_ocp_e2m3",
    "float6_e3m2fn": "format_info_ocp_e3m2",
    "float4_e2m1fn": "format_info_ocp_e2m1",
}
_MX = {
    "mxfp8_e4m3": "float8_e4m3fn",
    "mxfp8_e5m2": "float8_e5m2",
    "mxfp6_e2m3": "fp6_e2m3",
    "mxfp6_e3m2": "fp6_e3m2",
    "mxfp4": "float4_e2m1fn_x2",
}
_CASTS = (
    Peer("numpy", "numpy", _same("float16"), _dtype_of("numpy")),
    Peer("ml_dtypes", "ml_dtypes", _same(*_SMALL.split()), _dtype_of("ml_dtypes")),
    Peer("en_dtypes", "en_dtypes", _EN, _dtype_of("en_dtypes")),
    Peer("torch", "torch", _same(*_IN_TORCH.split()), _torch),
    Peer("gfloat", "gfloat", _OCP, _gfloat),
)
_BLOCKS = {
    "encode": (Peer("torchao", "torchao", _MX, _torchao),),
    "quantize": (Peer("amd-quark", "quark", {"mx9": "8", "mx6": "5"}, _quark),),
}
#: Names of all peers, in the order of the tables.
PEERS = tuple(peer.name for peer in (*_CASTS, *_BLOCKS["encode"], *_BLOCKS["quantize"]))
