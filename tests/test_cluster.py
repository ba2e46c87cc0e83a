"""A cluster gives what one machine gives, byte for byte, also when it loses a worker; troubles are told in a line."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import bittrue as bt
from bittrue import cluster as clusters
from bittrue import studying
from bittrue.cli import main
from bittrue.cluster import Cluster, ClusterError, Place
from bittrue.convert import convert, work
from bittrue.files import FileError, save

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")


@pytest.fixture(scope="module")
def workers() -> Iterator[distributed.LocalCluster]:
    """Two worker processes; a killed one comes back after a while."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as started:
        yield started


@pytest.fixture(autouse=True)
def many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut tensors into many parts, and be patient with a busy machine."""
    monkeypatch.setattr(work, "_PART", 1 << 12)
    monkeypatch.setattr(work, "_PIECE", 1 << 12)  # figures are added up by pieces
    monkeypatch.setattr(clusters, "_CONNECT", 30.0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sharded checkpoint, with integers, an empty tensor and one whose blocks are not a run of memory."""
    folder = tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(0)

    def values(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 6, shape)).astype(np.float32)

    shards = {
        "m-1.safetensors": {f"layers.{i}": values(64, 256) for i in range(12)} | {"ids": np.arange(9)},
        "m-2.safetensors": {"odd": values(40, 33), "none": values(0, 16), "bias": values(100).astype(np.float16)},
    }
    for name, tensors in shards.items():
        save(folder / name, tensors)
    places = {tensor: name for name, tensors in shards.items() for tensor in tensors}
    (folder / "m.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return folder / "m.safetensors.index.json"


def killer(workers: distributed.LocalCluster) -> tuple[Callable[[str, int, int], None], list[int]]:
    """Return a progress callback that kills a worker when a third is done, and whom it killed."""
    victim = next(iter(workers.workers.values())).pid
    killed: list[int] = []

    def progress(name: str, done: int, total: int) -> None:
        if not killed and total / 3 < done < total:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    return progress, killed


@pytest.mark.parametrize("name", ["hifloat8", "mx9"])
def test_convert_loses_a_worker(tmp_path: Path, workers: distributed.LocalCluster, model: Path, name: str) -> None:
    expected = convert(model, tmp_path / "one", name)
    progress, killed = killer(workers)
    found = convert(model, tmp_path / "two", name, scheduler=workers.scheduler_address, progress=progress)
    assert killed and found == expected
    assert sorted(os.listdir(tmp_path / "two")) == sorted(os.listdir(tmp_path / "one"))
    for file in os.listdir(tmp_path / "one"):
        assert (tmp_path / "two" / file).read_bytes() == (tmp_path / "one" / file).read_bytes(), file


def test_study_loses_a_worker(
    workers: distributed.LocalCluster, model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(studying, "HELD", 5000)  # larger tensors go to the workers in one format at a time
    formats = ["int8@group:32@mse", "mx6", "nvfp4", "hifloat8"]
    expected = bt.study(model, formats)
    progress, killed = killer(workers)
    with distributed.Client(workers, set_as_default=False) as client:
        found = bt.study(model, formats, scheduler=client, progress=progress, resume=tmp_path / "journal")
        assert client.status == "running"
    assert killed and found == expected and not (tmp_path / "journal").exists()


def held(block: np.ndarray, folder: Path) -> np.ndarray:
    """Wait until the test says so."""
    (folder / "begun").touch()
    until = time.monotonic() + 60
    while not (folder / "go").exists() and time.monotonic() < until:
        time.sleep(0.01)
    return block


def test_dask_arrays_lose_a_worker(workers: distributed.LocalCluster, tmp_path: Path) -> None:
    from dask import array as da

    from bittrue import dask as bdask

    x = np.random.default_rng(0).standard_normal((80, 500)).astype(np.float32)
    lazy = da.from_array(x, chunks=(2, 500)).map_blocks(held, folder=tmp_path, dtype=x.dtype, meta=x[:0])
    victim = next(iter(workers.workers.values())).pid
    with distributed.Client(workers, set_as_default=False) as client:
        encoded = client.compute(bdask.encode(lazy, "mx9"))
        while not (tmp_path / "begun").exists():
            assert encoded.status == "pending"
            time.sleep(0.01)
        os.kill(victim, signal.SIGKILL)
        (tmp_path / "go").touch()
        assert encoded.result(timeout=100).tobytes() == bt.encode(x, "mx9").tobytes()


def test_commands(
    workers: distributed.LocalCluster, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    address = ["--scheduler", workers.scheduler_address]
    for options, output in (([], "one"), (address, "two")):
        assert main(["convert", str(model), "--to", "int8", "-o", str(tmp_path / output), *options]) == 0
        study = ["study", str(model), "--formats", "mx4,int8", "--csv", str(tmp_path / output) + ".csv"]
        assert main([*study, *options]) == 0
    assert (tmp_path / "two.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()
    for file in os.listdir(tmp_path / "one"):
        assert (tmp_path / "two" / file).read_bytes() == (tmp_path / "one" / file).read_bytes(), file


def test_errors_of_the_work_are_those_of_one_machine(
    workers: distributed.LocalCluster, model: Path, tmp_path: Path
) -> None:
    said = []
    for scheduler in (None, workers.scheduler_address):
        with pytest.raises(OverflowError) as error:
            convert(model, tmp_path / "out", "float4_e2m1fn", rule=bt.Rule(overflow="raise"), scheduler=scheduler)
        said.append(str(error.value))
    assert said[0] == said[1] and "tensor 'layers.0', from element 0" in said[0]
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_another_one_elsewhere(tmp_path: Path) -> None:
    save(tmp_path / "m.npy", np.ones(4, np.float32))
    place = Place.of(str(tmp_path / "m.npy"))
    with place.open() as reader:
        assert reader.read("m").tolist() == [1] * 4
    save(tmp_path / "m.npy", np.ones(5, np.float32), force=True)
    with pytest.raises(FileError, match=rf"has {place.size + 4} bytes on .*, expected {place.size}"):
        place.open()
    (tmp_path / "m.npy").unlink()
    with pytest.raises(FileError, match="no such file or directory on"):
        place.open()


@pytest.mark.parametrize("lost", ["scheduler", "workers"])
def test_a_cluster_that_goes_away(
    lost: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("_ALONE", 0.5), ("_LOOK", 0.2), ("_CONNECT", 2.0)):
        monkeypatch.setattr(clusters, name, seconds)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=50
    ) as started:

        def progress(name: str, done: int, total: int) -> None:
            if lost == "scheduler":
                started.close()
            else:
                started.scale(0)

        words = {"scheduler": "connection to the scheduler was lost", "workers": "without workers"}[lost]
        with pytest.raises(ClusterError, match=words):
            convert(model, tmp_path / "out", "int8", scheduler=started.scheduler_address, progress=progress)
    assert not (tmp_path / "out").exists()


def test_another_version_is_refused() -> None:
    assert clusters._run(bt.__version__, sum, [1, 2]) == 3
    with pytest.raises(ClusterError, match=r"not 0\.0: results could differ"):
        clusters._run("0.0", sum, [1, 2])


@pytest.mark.parametrize("command", [["convert", "--to", "int8"], ["study"]], ids=" ".join)
@pytest.mark.parametrize(
    "address, words",
    [("tcp://127.0.0.1:9", "no Dask scheduler answers there"), ("here", "is no address such as 'tcp://host:8786'")],
)
def test_an_unreachable_scheduler(
    command: list[str], address: str, words: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(clusters, "_CONNECT", 0.3)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shard = str(model.with_name("m-2.safetensors"))
    assert main([*command, shard, "--scheduler", address]) == 2
    out = capsys.readouterr()
    assert words in out.err and out.err.count("\n") == 1 and out.out == ""
    assert not list(model.parent.glob("*int8*"))


def test_no_workers_and_no_dask(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty:
        monkeypatch.setattr(clusters, "_CONNECT", 0.3)
        with distributed.Client(empty, set_as_default=False) as client, pytest.raises(ClusterError, match="no workers"):
            bt.study(model, scheduler=client)
    with pytest.raises(ValueError, match="needs a file"):
        bt.study({"w": np.ones(3)}, scheduler="tcp://127.0.0.1:9")
    for run in (lambda **o: bt.study(model, **o), lambda **o: convert(model, "nowhere", "int8", **o)):
        with pytest.raises(ValueError, match="threads=2 has no meaning with a scheduler"):
            run(scheduler="tcp://127.0.0.1:9", threads=2)
    with pytest.raises(TypeError, match="scheduler=8786 must be an address"):
        Cluster(8786)
    monkeypatch.setitem(sys.modules, "distributed", None)  # as if it were not installed
    assert main(["study", str(model), "--scheduler", "tcp://127.0.0.1:9"]) == 2
    assert "pip install 'bittrue[dask]'" in capsys.readouterr().err
