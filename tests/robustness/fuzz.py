"""The fuzzer: ``python -m robustness.fuzz`` (from tests/; `make fuzz`) runs damaged inputs through every way in.

Input number i of a target depends on the seed, the target and i only. Worker processes take slices of the numbers; the
parent sees what a worker cannot report itself: that it died, hangs, or wants more memory than it may have.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import mmap
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .mutator import Mutator
from .targets import TARGETS, WORDS, Sandbox

__all__ = ["main"]

_SECONDS = 10  # of processor time that one input may take
_PATIENCE = 120  # seconds after which one that does nothing counts as hanging, too
_MEGABYTES = 500  # of memory in use, and of address space that may be asked for on top of what is there at the start
_SLICE = 5000
_ROOT = Path(__file__).parents[2]


def make(target: str, seed: int, number: int) -> Any:
    """Return input `number` of a target."""
    return TARGETS[target].make(Mutator(random.Random(f"{seed}/{target}/{number}"), WORDS.get(target, ())))


# --- workers ----------------------------------------------------------------------------------------------------------


@dataclass
class Slice:
    """Numbers of inputs that one process works on."""

    target: str
    start: int
    stop: int
    pid: int = 0
    report: Path = Path()
    # The number at work, and the clocks of the wall and of the processor when it began.
    state: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 24))

    def begin(self, number: int) -> None:
        """Note what is at work."""
        self.state[:] = struct.pack("<qdd", number, time.monotonic(), time.process_time())

    @property
    def number(self) -> int:
        """The number at work."""
        number, _, _ = struct.unpack("<qdd", self.state[:])
        return int(number)

    @property
    def hangs(self) -> bool:
        """Whether the input at work takes too long."""
        _, since, used = struct.unpack("<qdd", self.state[:])
        try:
            figures = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return False
        now = sum(map(int, figures[11:13])) / os.sysconf("SC_CLK_TCK")
        return now - used > _SECONDS or time.monotonic() - since > _PATIENCE


def start(job: Slice, seed: int, folder: Path) -> None:
    """Fork a worker for a slice."""
    job.report = folder / f"{job.target}-{job.start}"
    job.begin(job.start)
    job.pid = os.fork()
    if job.pid:
        return
    code = 1
    try:
        with open(job.report, "w") as report:
            _work(job, seed, folder, report)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _work(job: Slice, seed: int, folder: Path, report: Any) -> None:
    limit_memory()
    box = Sandbox(folder / str(os.getpid()))
    for number in range(job.start, job.stop):
        job.begin(number)
        error = trial(job.target, make(job.target, seed, number), box)
        if error is not None:
            print(json.dumps([number, *error]), file=report, flush=True)
    print(json.dumps(peak()), file=report)


def limit_memory() -> None:
    """Let an allocation beyond the limit fail."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    most = size + (_MEGABYTES << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def peak() -> int:
    """Return this process' largest memory in use, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def trial(target: str, case: Any, box: Sandbox) -> tuple[str, str] | None:
    """Check one input; return the signature and the text of what went wrong."""
    try:
        TARGETS[target].check(case, box)
        if peak() > _MEGABYTES:
            raise MemoryError(f"{peak()} MB in use")
    except BaseException as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "bittrue" in f.filename]
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        return f"{type(error).__name__} {where}", "".join(traceback.format_exception(error))[-3000:]
    return None


# --- the run ----------------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What came of a target."""

    inputs: int = 0
    seconds: float = 0.0
    peak: int = 0
    findings: dict[str, list[int]] = field(default_factory=dict)  # signature: numbers of inputs


class Run:
    """A run over several targets in several processes."""

    def __init__(self, seed: int, workers: int, output: Path) -> None:
        self.seed, self._workers, self._output = seed, workers, output
        self.tallies: dict[str, Tally] = {}

    def do(self, counts: dict[str, int], deadline: float) -> None:
        """Run so many inputs of each target; no slice begins after the deadline."""
        jobs = [Slice(t, at, min(at + _SLICE, n)) for t, n in counts.items() for at in range(0, n, _SLICE)]
        jobs.sort(key=lambda job: job.start / counts[job.target])  # all targets advance together
        self.tallies = {target: Tally() for target in counts}
        running: list[Slice] = []
        shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(prefix="bittrue-fuzz-", dir=shared) as name:
            os.environ["XDG_CACHE_HOME"] = f"{name}/cache"  # journals of studies
            while jobs or running:
                while jobs and len(running) < self._workers:
                    if time.monotonic() > deadline:
                        jobs.clear()
                        break
                    running.append(jobs.pop(0))
                    start(running[-1], self.seed, Path(name))
                time.sleep(0.02)
                for job in list(running):
                    if self._ended(job):
                        running.remove(job)
                        if job.number + 1 < job.stop:  # it died there; the others of the slice are still to be done
                            jobs.insert(0, Slice(job.target, job.number + 1, job.stop))

    def _ended(self, job: Slice) -> bool:
        """Collect a worker that has ended, or that must be ended."""
        hangs = job.hangs
        if hangs:
            os.kill(job.pid, signal.SIGKILL)
        pid, status = os.waitpid(job.pid, 0 if hangs else os.WNOHANG)
        if not pid:
            return False
        tally = self.tallies[job.target]
        for line in job.report.read_text().splitlines() if job.report.exists() else ():
            found = json.loads(line)
            if isinstance(found, int):
                tally.peak = max(tally.peak, found)
            else:
                self._keep(job.target, *found)
        number = job.number
        code = os.waitstatus_to_exitcode(status)
        if hangs:
            self._keep(job.target, number, "hang", f"took more than {_SECONDS} s")
        elif code:
            self._keep(job.target, number, f"exit {code}", "the process died")
        tally.inputs += number + 1 - job.start
        return True

    def _keep(self, target: str, number: int, signature: str, text: str) -> None:
        """Count a finding; save the input where it is the first of its kind."""
        numbers = self.tallies[target].findings.setdefault(signature, [])
        numbers.append(number)
        if len(numbers) > 1:
            return
        self._output.mkdir(parents=True, exist_ok=True)
        name = f"{target}-{hashlib.sha256(signature.encode()).hexdigest()[:8]}.txt"
        text = f"{signature} (seed {self.seed}, input {number})\n{text}"
        comment = "".join(f"# {line}\n" for line in text.splitlines())
        case = (target, make(target, self.seed, number))
        (self._output / name).write_text(comment + repr(case) + "\n", errors="backslashreplace")
        print(f"{target} {number}: {signature}; see {self._output / name}", flush=True)


def replay(path: Path) -> None:
    """Run a saved input without a net."""
    target, case = ast.literal_eval(path.read_text())
    with tempfile.TemporaryDirectory() as folder:
        TARGETS[target].check(case, Sandbox(Path(folder) / "box"))
        os.chdir("/")
    print(f"{path}: nothing is wrong")


def _warm(folder: Path) -> None:
    """Check the corpus itself, which also compiles the kernels that the workers then share."""
    box = Sandbox(folder / "box")
    for target in TARGETS:
        for number in range(40):
            trial(target, make(target, -1, number), box)
    os.chdir("/")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the fuzzer; return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Damaged inputs for every reader and the command line.")
    parser.add_argument("--count", type=int, default=1_000_000, help="inputs, over all targets")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--targets", nargs="+", choices=[*TARGETS], default=[*TARGETS])
    parser.add_argument("--output", type=Path, default=_ROOT / "build" / "fuzz", help="where failing inputs go")
    parser.add_argument("--replay", type=Path, help="run one saved input, with its traceback")
    given = parser.parse_args(arguments)
    warnings.simplefilter("error")  # a user would see them
    os.fsync = lambda _: None  # thousands of small files need not reach the disk
    if given.replay:
        replay(given.replay)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        _warm(Path(folder))
    shares = sum(TARGETS[t].share for t in given.targets)
    run = Run(given.seed, given.workers, given.output)
    began = time.monotonic()
    run.do({t: given.count * TARGETS[t].share // shares for t in given.targets}, began + 60 * given.minutes)
    for target, tally in run.tallies.items():
        kinds = ", ".join(f"{s} ({len(n)}x)" for s, n in tally.findings.items()) or "nothing found"
        print(f"{target:12} {tally.inputs:9,} inputs   peak {tally.peak:4} MB   {kinds}")
    total = sum(t.inputs for t in run.tallies.values())
    print(f"{'total':12} {total:9,} inputs in {time.monotonic() - began:.0f} s, seed {given.seed}")
    return int(any(t.findings for t in run.tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
