"""Rows of `bittrue bench` for models: a study of a checkpoint, and PyTorch's way into the codec where it is there."""

from __future__ import annotations

import copy
import os
import tempfile
import time
from importlib import util
from typing import Any

import numpy as np

from ..bench.measure import Case, Row, Settings, throughput
from ..bench.process import write_model
from ..chunks import usable_cpus
from ..codec import quantize
from . import DEFAULT_FORMATS, study

__all__ = ["rows"]

_BYTES = 100_000_000


def rows() -> list[Row]:
    """Return the rows."""
    found = [Row("study", f"100 MB of float32 in {len(DEFAULT_FORMATS)} formats", _study, {"seconds": 15})]
    if util.find_spec("torch") is not None:
        found += [_torch(name) for name in ("float8_e4m3fn", "hifloat8", "mx6")]
        found.append(_emulation())
    return found


def _study(settings: Settings) -> dict[str, float]:
    """Seconds that a study takes, its kernels compiled."""
    study({"w": np.ones((4, 64), np.float32)})
    with tempfile.TemporaryDirectory(prefix="bittrue-bench-") as folder:
        path = os.path.join(folder, "model.safetensors")
        write_model(path, min(settings.file_bytes, _BYTES))
        started = time.perf_counter()
        study(path)
        return {"seconds": time.perf_counter() - started}


def _torch(name: str) -> Row:
    """`bittrue.torch.quantize` of a CPU tensor beside `bittrue.quantize` of the same memory, both with two threads."""

    def prepare(size: int) -> Case:
        import torch

        from ..torch import quantize as torch_quantize

        torch.set_num_threads(usable_cpus())  # peers leave it at one
        t = torch.from_numpy(np.random.default_rng(0).standard_normal(max(size // 16 * 16, 16), np.float32))
        x = t.numpy()
        return Case(t.numel(), lambda threads: torch_quantize(t, name), None, {"NumPy": lambda: quantize(x, name)})

    return throughput("bittrue.torch.quantize, CPU, all threads", name, prepare, {"times NumPy": 1 / 1.15})


def _emulation() -> Row:
    """A forward pass through Linear layers with rounded weights and inputs, beside the plain one."""

    def prepare(size: int) -> Case:
        import torch

        from ..torch import emulate

        torch.set_num_threads(usable_cpus())  # peers leave it at one
        width = 1024 if size >= 1 << 20 else 32
        layers = [torch.nn.Linear(width, width) for _ in range(4)]
        plain, rounding = torch.nn.Sequential(*layers), torch.nn.Sequential(*map(copy.deepcopy, layers))
        emulate(rounding, weights="mx6", activations="mx9")
        x = torch.randn(256, width)

        def run(model: Any) -> object:
            with torch.no_grad():
                return model(x)

        return Case(x.numel(), lambda threads: run(rounding), None, {"plain": lambda: run(plain)})

    return throughput("bittrue.torch.emulate, CPU, all threads", "4 Linear layers, mx6 and mx9, batch 256", prepare)
