"""Why does my kernel give other results when another one ran before it?

Rounding and saturation modes are registers of the tile. A kernel that sets them sets them for every kernel that runs on
the same tile afterwards. Here kernel B shifts accumulators down and relies on the reset values; kernel A, which a graph
may place on the same tile, rounds to nearest even and saturates, and cleans nothing up.

Run ``python examples/aie_sticky_register.py``.
"""

from __future__ import annotations

from bittrue import aie

VALUES = [1003, 1005, -1003, 70000, -70000, 6, 2, -2]


def kernel_a() -> None:
    """Set the registers for its own sake, and leave them so."""
    aie.set_rounding("conv_even")
    aie.set_saturation("saturate")


def kernel_b() -> list[int]:
    """Shift eight accumulators down by two bits."""
    return aie.accum("acc32", 8, VALUES).to_vector("int16", 2).tolist()


def careful_kernel_b() -> list[int]:
    """Say what is meant, whatever the registers hold."""
    return aie.accum("acc32", 8, VALUES).to_vector("int16", 2, "floor", "none").tolist()


def main() -> None:
    """Run kernel B alone, after kernel A, and on a tile of its own."""
    print(f"{'accumulators':32}", VALUES)
    with aie.tile(arch="aie-ml"):
        print(f"{'B alone':32}", kernel_b())
    with aie.tile(arch="aie-ml"):
        kernel_a()
        print(f"{'B after A on the same tile':32}", kernel_b(), " ", aie.current_tile())
        print(f"{'B, careful, after A':32}", careful_kernel_b())
        with aie.tile():
            print(f"{'B on another tile, after A':32}", kernel_b(), " ", aie.current_tile())


if __name__ == "__main__":
    main()
