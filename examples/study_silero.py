"""What number formats cost a network in daily use: the voice detector silero-vad (MIT licence), 309 633 parameters.

Run it with `python examples/study_silero.py`: pip downloads the package's wheel (11 MB) into a temporary folder, from
which only the file of weights is taken; nothing is installed or imported. The study itself takes a few seconds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from bittrue.cli import main as bittrue

PACKAGE = "silero-vad==6.2.3"
FORMATS = "hifloat8,float8_e4m3fn,int8,int8@channel,int4@group:32@mse,mx9,mx6,mx4,mxfp4,nvfp4"


def weights(folder: Path) -> Path:
    """Download the wheel and unpack its checkpoint."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run([*command, "--only-binary=:all:", "--dest", str(folder), PACKAGE])
    if done.returncode:
        sys.exit(f"study_silero: pip could not download {PACKAGE}")
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".safetensors"))
        return Path(archive.extract(name, folder)).rename(folder / Path(name).name)


def main() -> int:
    """Study every tensor; further arguments go to `bittrue study`, such as `--html report.html`."""
    with tempfile.TemporaryDirectory(prefix="bittrue-silero-") as folder:
        return bittrue(["study", str(weights(Path(folder))), "--formats", FORMATS, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
