"""kill -9 at random moments: nothing partial is ever visible, and the next run ends as if nothing had happened."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import bittrue as bt
from bittrue.convert import convert
from bittrue.files import save

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")

_CONVERT = "from bittrue.convert import convert as f; f({source!r}, {target!r}, 'float8_e4m3fn', threads=1)"
_STUDY = """
import bittrue as bt, json, bittrue.files as files
found = bt.study({source!r}, ['int8@group:32', 'mx6'], threads=1, resume={journal!r})
with files.AtomicFile({target!r}) as file:
    file.write(json.dumps(found.to_dict()).encode())
"""
# One process with everything imported and compiled forks a child for each trial, which starts within milliseconds.
_SERVER = """
import os, sys
import bittrue as bt, bittrue.convert, bittrue.studying, numpy as np
bt.study({{'w': np.ones((64, 64), np.float32)}}, ['int8@group:32', 'mx6'], threads=1)
bt.encode(np.ones(9, np.float32), 'float8_e4m3fn')
import tempfile
with tempfile.TemporaryDirectory() as folder:
    bt.save(folder + '/a.npz', {{'w': np.ones(100, np.float32)}})
    bt.convert(folder + '/a.npz', folder + '/b.npz', 'float8_e4m3fn', threads=1)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            exec({code!r})
            code = 0
        finally:
            os._exit(code)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Server:
    """Runs code in child processes and can kill them after some time."""

    def __init__(self, code: str) -> None:
        source = _SERVER.format(code=code)
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Server:
        self.run(None)  # everything is warm from here on
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def run(self, after: float | None) -> int:
        """Run the code once, killed after so many seconds; return the exit code (-9: killed)."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        child = int(self._process.stdout.readline())
        if after is not None:
            time.sleep(after)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        return int(self._process.stdout.readline())


    def kill_at_random(self, moments: random.Random) -> Iterator[None]:
        """Run the code until it was killed 20 times, at moments spread over what a run takes; yield after each run."""
        started = time.monotonic()
        assert self.run(None) == 0
        takes = time.monotonic() - started
        killed = 0
        for _ in range(200):
            yield
            if self.run(moments.uniform(0, takes)) == -signal.SIGKILL:
                killed += 1
                if killed == 20:
                    yield
                    return
            else:
                takes *= 0.9  # the machine has become quicker
        raise AssertionError(f"killed {killed} of 20 times")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that takes some tenths of a second."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    save(path, {f"layers.{i}": rng.standard_normal((256, 512)).astype(np.float32) for i in range(24)})
    return path


def test_convert(tmp_path: Path, model: Path) -> None:
    convert(model, tmp_path / "whole.safetensors", "float8_e4m3fn")
    expected = (tmp_path / "whole.safetensors").read_bytes()
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "o.safetensors"
    with Server(_CONVERT.format(source=str(model), target=str(target))) as server:
        target.unlink()
        for _ in server.kill_at_random(random.Random(0)):
            if target.exists():
                assert target.read_bytes() == expected
            assert all(p == target or p.name.startswith(".bittrue-") for p in folder.iterdir())
            target.unlink(missing_ok=True)
        assert server.run(None) == 0
    assert target.read_bytes() == expected


def test_study_goes_on_where_it_was_killed(tmp_path: Path, model: Path) -> None:
    expected = bt.study(model, ["int8@group:32", "mx6"]).to_dict()
    folder = tmp_path / "out"
    folder.mkdir()
    target, journal = folder / "o.json", folder / "journal"
    moments, resumed = random.Random(1), 0
    with Server(_STUDY.format(source=str(model), target=str(target), journal=str(journal))) as server:
        target.unlink()
        for _ in server.kill_at_random(moments):
            resumed += journal.exists() and journal.read_bytes().count(b"\n") > 1
            if target.exists():
                assert json.loads(target.read_bytes()) == expected
            if moments.random() < 0.5:  # half of the time the next run starts from what was done
                target.unlink(missing_ok=True)
                assert server.run(None) == 0
                assert json.loads(target.read_bytes()) == expected
                assert not journal.exists()
            target.unlink(missing_ok=True)
        assert server.run(None) == 0
    assert json.loads(target.read_bytes()) == expected and not journal.exists()
    assert resumed >= 3
