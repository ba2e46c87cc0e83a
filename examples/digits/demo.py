"""The main job on a real network: convert digits.safetensors to four formats, read back, count right answers.

Every conversion is the `bittrue` command a user would type, shown before it runs. Run it with `make demo`.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import network
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import bittrue as bt

FORMATS = ("hifloat8", "float8_e4m3fn", "float4_e2m1fn", "bfloat16")
OUTPUT = network.HERE.parents[1] / "build" / "digits"

console = Console()


def shown(path: Path) -> str:
    """The path as a user in the current directory would type it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def command() -> str:
    """The `bittrue` script of this interpreter's environment."""
    beside = Path(sys.executable).with_name("bittrue")
    found = str(beside) if beside.exists() else shutil.which("bittrue")
    if found is None:
        sys.exit("demo: the command bittrue is not installed; run `make demo`, or `pip install -e .` first")
    return found


def convert(source: Path, name: str, output: Path) -> None:
    """Run `bittrue convert`; its table goes straight to the terminal."""
    arguments = ["convert", shown(source), "--to", name, "-o", shown(output), "--force"]
    console.print(f"\n[bold]$ bittrue {shlex.join(arguments)}", highlight=False, soft_wrap=True)
    sys.stdout.flush()
    status = subprocess.run([command(), *arguments], check=False).returncode
    if status != 0:
        sys.exit(f"demo: bittrue convert ended with exit code {status}")


def values(path: Path) -> dict[str, np.ndarray]:
    """The decoded tensors of a file, float32."""
    return {name: np.asarray(array, dtype=np.float32) for name, array in bt.load(path).items()}


def main() -> None:
    """Convert, read back, check, count, and put all formats in one table."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    images, labels = network.load_test_set()
    original = values(network.CHECKPOINT)
    reference = network.accuracy(original, images, labels)

    table = Table(title=f"Accuracy on {len(labels)} held-out digits", box=box.SIMPLE_HEAD)
    table.add_column("format")
    for heading in ("bits", "file bytes", "accuracy", "against float32", "changed answers"):
        table.add_column(heading, justify="right")
    table.add_row("float32", "32", f"{network.CHECKPOINT.stat().st_size:,}", f"{reference:.1%}", "", "")

    answers = network.forward(original, images).argmax(axis=1)
    for name in FORMATS:
        output = OUTPUT / f"digits.{name}.safetensors"
        convert(network.CHECKPOINT, name, output)
        converted = values(output)
        for tensor, array in original.items():
            if not np.array_equal(converted[tensor], bt.quantize(array, name)):
                sys.exit(f"demo: {tensor} read back from {shown(output)} differs from the cast in memory")
        reached = network.accuracy(converted, images, labels)
        changed = int(np.sum(network.forward(converted, images).argmax(axis=1) != answers))
        table.add_row(
            name,
            str(bt.format(name).bits),
            f"{output.stat().st_size:,}",
            f"{reached:.1%}",
            f"{100 * (reached - reference):+.1f} points",
            str(changed),
        )

    console.print()
    console.print(table)
    console.print(
        f"Files are in {shown(OUTPUT)}; each was read back and equals the cast in memory. Weights and biases "
        "are cast as they are, without a scale: that is what float4_e2m1fn, whose smallest step is 0.5, pays "
        f"for. One image is {1 / len(labels):.1%}.",
        highlight=False,
    )


if __name__ == "__main__":
    main()
