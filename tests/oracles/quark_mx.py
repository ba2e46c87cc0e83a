"""MX9, MX6 and OCP MX against amd-quark and torchao: a script, for both need gigabytes (run it in a venv of its own).

    python -m venv .venv-oracles
    .venv-oracles/bin/pip install torch==2.13.0 amd-quark==0.13 transformers torchao==0.18.0 -e .
    .venv-oracles/bin/python tests/oracles/quark_mx.py

Seen on 30 November 2026: 0 of 640 000 values and 0 of 80 000 blocks differ.

amd-quark compiles a C++ kernel on first use. What is compared, and what is left out because the packages follow another
rule there (not "fixed" on our side):

- amd-quark, MX9 and MX6, half even, saturating: values of finite normal input. Left out: float32 subnormals, Inf and
  NaN, which pass through as elements there.
- torchao, OCP MX: scale and element codes under the rules floor, ceil, even and rceil. Left out: blocks with Inf or NaN
  (a NaN makes the scale 0xFF in both; torchao leaves other element codes) and blocks of subnormals.
"""

from __future__ import annotations

import sys

import numpy as np

import bittrue as bt


def inputs(n: int, size: int) -> np.ndarray:
    """Normal numbers over the exponent range, many ties, maxima just below powers of two, zeros."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, size))
    x[n // 4 : n // 2] = rng.integers(-300, 300, (n // 4, size)) / 128
    x[n // 2 : 3 * n // 4, 0] = 2 - 2.0 ** -rng.integers(1, 12, n // 4)
    x[-n // 8 :] *= rng.random((n // 8, size)) < 0.3
    x = np.ldexp(x, rng.integers(-60, 60, (n, 1))).astype(np.float32)
    return np.where(np.abs(x) < np.float32(2.0**-126), np.float32(0), x)


def against_quark(n: int) -> int:
    """Return the number of values that differ."""
    import torch
    from quark.torch.kernel.hw_emulation.hw_emulation_interface import fake_quantize_mx6_mx9

    wrong = 0
    x = inputs(n, 16)
    for name, bits in (("mx9", 8), ("mx6", 5)):
        theirs = fake_quantize_mx6_mx9(torch.from_numpy(x), -1, 16, quant_bit=bits, sub_block_size=2).numpy()
        different = int((theirs != bt.quantize(x, name)).sum())
        print(f"amd-quark {name}: {different} of {x.size} values differ")
        wrong += different
    return wrong


def against_torchao(n: int) -> int:
    """Return the number of blocks that differ in scale or elements."""
    import torch
    from torchao.prototype.mx_formats.mx_tensor import ScaleCalculationMode, to_mx

    wrong = 0
    x = inputs(n, 32)
    kinds = {
        "mxfp8_e4m3": torch.float8_e4m3fn,
        "mxfp8_e5m2": torch.float8_e5m2,
        "mxfp6_e2m3": "fp6_e2m3",
        "mxfp6_e3m2": "fp6_e3m2",
        "mxfp4": torch.float4_e2m1fn_x2,
    }
    for name, element in kinds.items():
        for rule in ("floor", "ceil", "even", "rceil"):
            scale, codes = to_mx(torch.from_numpy(x), element, 32, ScaleCalculationMode[rule.upper()])
            a = bt.array(x, name, rule=bt.BlockRule(scale_rule=rule))
            theirs = codes.view(torch.uint8).numpy().reshape(n, -1)
            if name == "mxfp4":
                theirs = np.stack([theirs & 15, theirs >> 4], axis=-1).reshape(n, -1)
            bad = (scale.view(torch.uint8).numpy().reshape(n) != a.exponents.reshape(n)) | (
                theirs != a.element_codes
            ).any(axis=1)
            print(f"torchao {name} {rule}: {int(bad.sum())} of {n} blocks differ")
            wrong += int(bad.sum())
    return wrong


if __name__ == "__main__":
    sys.exit(min(against_quark(20000) + against_torchao(4000), 1))
