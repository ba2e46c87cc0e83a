"""Why is 300 stored as 44?

An accumulator that holds 300 does not fit uint8. The saturation register is "none" at reset: the low eight bits stay,
and 300 - 256 = 44. With saturation it becomes 255; negative numbers become 0, where without it -5 becomes 251.

Run ``python examples/aie_saturation.py``.
"""

from __future__ import annotations

from bittrue import aie

VALUES = [300, 255, 256, -5, -300, 0, 100, 1000]


def main() -> None:
    """Print what each saturation mode stores."""
    acc = aie.accum("acc32", 16, VALUES * 2, arch="aie-ml")
    print(f"{'accumulators':20}", VALUES)
    for dtype in ("uint8", "int8"):
        for mode in aie.SaturationMode:
            stored = acc.to_vector(dtype, saturation=mode).tolist()[: len(VALUES)]
            print(f"{dtype:6} {mode.value:13}", stored)


if __name__ == "__main__":
    main()
