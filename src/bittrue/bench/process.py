"""Rows about whole processes: start-up times, the first conversion, a large file and the memory that it takes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from statistics import median

import numpy as np

from .measure import Row, Settings

__all__ = ["rows", "write_model"]

_START = "start-up"
_IMPORT = "import time; t = time.perf_counter(); import bittrue; print(time.perf_counter() - t)"
_HELP = "import sys; from bittrue.cli import main; sys.exit(main(['--help']))"
_FIRST = """
import sys, time
if not {scipy}:
    sys.modules["scipy"] = None  # as where it is not installed: bittrue does without it, Numba imports it
import numpy as np
import bittrue as bt
x = np.ones(1 << 16, np.float32)
t = time.perf_counter()
bt.encode(x, {name!r})
print(time.perf_counter() - t)
"""
_CONVERT = """
import resource, sys, time
from bittrue.cli import main
t = time.perf_counter()
code = main(sys.argv[1:])
t = time.perf_counter() - t
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
try:
    # ru_maxrss may be inherited from the process that started this one
    lines = open("/proc/self/status").read().splitlines()
    peak = int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
except (OSError, StopIteration):
    pass
print("peak", t, peak, file=sys.stderr)
sys.exit(code)
"""
_FIRST_FORMATS = ("float8_e4m3fn", "hifloat8")
_TENSORS = 8


def rows() -> list[Row]:
    """Return the rows."""
    return [
        Row(_START, "import bittrue", _printed(_IMPORT), {"seconds": 0.25}),
        Row(_START, "bittrue --help, all of it", _wall(_HELP), {"seconds": 0.4}),
        *(
            Row(_START, f"first encode, {name}", _printed(_FIRST.format(name=name, scipy=False)), {"seconds": 0.4})
            for name in _FIRST_FORMATS
        ),
        *(
            Row(_START, f"first encode, {name}, with SciPy", _printed(_FIRST.format(name=name, scipy=True)))
            for name in (_FIRST_FORMATS if find_spec("scipy") else ())
        ),
        *(
            Row("bittrue convert, float32 safetensors to", name, _converted(name), {"megabytes": 400.0})
            for name in ("hifloat8", "float4_e2m1fn", "bfloat16")
        ),
    ]


def _child(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"a child process failed: {done.stderr.strip() or done.stdout.strip()}")
    return done


def _printed(code: str) -> Callable[[Settings], dict[str, float]]:
    """Measure what a child says it took."""

    def measure(settings: Settings) -> dict[str, float]:
        _child(code)
        return {"seconds": median(float(_child(code).stdout) for _ in range(settings.repeat))}

    return measure


def _wall(code: str) -> Callable[[Settings], dict[str, float]]:
    """Measure a child from outside."""

    def measure(settings: Settings) -> dict[str, float]:
        _child(code)
        times = []
        for _ in range(settings.repeat):
            started = time.perf_counter()
            _child(code)
            times.append(time.perf_counter() - started)
        return {"seconds": median(times)}

    return measure


def _converted(name: str) -> Callable[[Settings], dict[str, float]]:
    """Measure `bittrue convert` on a synthetic checkpoint, beside a plain copy of the file."""

    def measure(settings: Settings) -> dict[str, float]:
        with tempfile.TemporaryDirectory(prefix="bittrue-bench-") as folder:
            source = os.path.join(folder, "model.safetensors")
            write_model(source, settings.file_bytes)
            started = time.perf_counter()
            copy = os.path.join(folder, "copy.safetensors")
            shutil.copyfile(source, copy)
            with open(copy, "rb") as file:
                os.fsync(file.fileno())
            copied = time.perf_counter() - started
            os.unlink(copy)
            said = _child(_CONVERT, "convert", source, "--to", name, "--json").stderr.split()
            at = said.index("peak")
            seconds, peak = float(said[at + 1]), float(said[at + 2])
        size = settings.file_bytes / 1e6
        return {"MB/s": size / seconds, "copy MB/s": size / copied, "megabytes": peak}

    return measure


def write_model(path: str, size: int) -> None:
    """Write a file of float32 tensors, a piece at a time."""
    from ..files import TensorInfo, Writer
    from ..formats import format

    piece = np.random.default_rng(2).standard_normal(1 << 20, np.float32)
    columns = 1024
    per_tensor = max(size // 4 // _TENSORS // columns, 1)
    infos = [TensorInfo(f"layers.{i}.weight", format("float32"), (per_tensor, columns)) for i in range(_TENSORS)]
    with Writer(path, infos) as writer:
        for name in writer.names:
            left = per_tensor * columns
            while left:
                writer.write(name, piece[:left])
                left -= min(left, piece.size)
