"""Why is my bfloat16 matrix product on XDNA2 always too small?

Its 8x8x8 shape goes through bfp16: blocks of eight along k share an exponent, and the mantissas are rounded under the
tile's rounding register. That register is floor at reset, so every product of positive numbers comes out too small, and
the loss grows with K. Rounding to nearest even has no such bias.

Run ``python examples/aie_floor_bias.py``.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from bittrue import aie

M, N = 32, 32
MODES = ("floor", "conv_even")


def errors(k: int, mode: str) -> np.ndarray:
    """Return what M x N dot products over `k` are off by."""
    rng = np.random.default_rng(k)
    a = rng.uniform(0, 4, (M, k)).astype(ml_dtypes.bfloat16)
    b = rng.uniform(0, 4, (k, N)).astype(ml_dtypes.bfloat16)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return aie.matmul(a, b, block="bfp16ebs8", arch="xdna2", rounding=mode) - exact


def main() -> None:
    """Print mean error and spread for growing K."""
    print("bfloat16 through bfp16ebs8 on XDNA2, operands from 0 to 4\n")
    print(f"{'K':>5}  {'mode':10} {'mean error':>10} {'per k':>9} {'spread':>8}")
    for k in (64, 512, 4096):
        for mode in MODES:
            error = errors(k, mode)
            print(f"{k:5}  {mode:10} {error.mean():10.3f} {error.mean() / k:9.4f} {error.std():8.3f}")
    print("\nThe register is floor until a kernel writes it: aie::set_rounding(aie::rounding_mode::conv_even).")


if __name__ == "__main__":
    main()
