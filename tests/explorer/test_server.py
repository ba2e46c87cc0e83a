"""`bittrue explore`: where it listens, what it prints, how it ends, and what it says when it cannot run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from bittrue.cli import main
from bittrue.cli.explore import _state

server = pytest.importorskip("bittrue.explorer.server", reason="pip install 'bittrue[explorer]'")

MAIN = "import sys; from bittrue.cli import main; sys.exit(main())"
COMMAND = [sys.executable, "-c", MAIN, "explore", "--no-browser"]


def fails(capsys, *arguments):
    assert main(["explore", "--no-browser", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and said.err.startswith("error: ")
    return said.err


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_it_serves_until_interrupted():
    with subprocess.Popen(
        [*COMMAND, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert address and "Ctrl-C" in line, line
        with urllib.request.urlopen(f"{address[0]}api/number?format=half&value=1.5", timeout=30) as answer:
            assert json.load(answer)["first"]["code"] == "0x3e00"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out, err) == (0, "", "")


def test_only_this_machine_can_reach_it():
    listening = server.listen(0)
    try:
        assert listening.getsockname()[0] == "127.0.0.1"
    finally:
        listening.close()


def test_a_taken_port(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = fails(capsys, "--port", str(port))
        assert f"--port {port}" in said and "--port 0" in said


def test_mistakes(capsys):
    assert "65535" in fails(capsys, "--port", "70000")
    assert "did you mean 'hifloat8'" in fails(capsys, "hifloat9")


def test_without_the_extra(capsys, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "uvicorn" else real(name, *a))
    assert "uvicorn" in (said := fails(capsys)) and "pip install 'bittrue[explorer]'" in said


def test_the_browser_is_opened_at_the_state_that_was_asked_for(monkeypatch):
    opened, said = [], []
    monkeypatch.setattr(server.webbrowser, "open", opened.append)
    monkeypatch.setattr(server.uvicorn.Server, "run", lambda self, sockets: opened[0])
    monkeypatch.setattr(server, "_warm_up", lambda: None)
    monkeypatch.setattr(server.threading, "Thread", _Now)
    server.serve(0, True, said.append, _state("FP8_E4M3", "0x7e"))
    assert opened[0].endswith("/?format=float8_e4m3fn&code=0x7e") and opened[0] in said[0]


class _Now:
    """A thread that has finished when it starts."""

    def __init__(self, target, args=(), daemon=None):
        self.start = lambda: target(*args)


@pytest.mark.parametrize(
    ("given", "state"),
    [
        ((None, None), ""),
        (("half", None), "?format=float16"),
        (("half", "-1.5"), "?format=float16&value=-1.5"),
        (("half", "0x1.8p3"), "?format=float16&value=0x1.8p3"),
        (("half", "0b11"), "?format=float16&code=0b11"),
        (("mx9", "1,2"), "?view=block&block=mx9&values=1%2C2"),
    ],
)
def test_states(given, state):
    assert _state(*given) == state
