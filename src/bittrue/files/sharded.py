"""Sharded checkpoints: several .safetensors files and an index that says which tensor lies in which."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from .base import Codes, FileError, Path, Reader, TensorInfo, explained
from .safetensors import SafetensorsReader, loads

__all__ = ["SUFFIX", "ShardedReader"]

SUFFIX = ".safetensors.index.json"
_MAX_INDEX = 100_000_000


class ShardedReader(Reader):
    """Reader of a checkpoint through its index; the shards lie in the index's folder.

    Attributes
    ----------
    shards : dict of str to SafetensorsReader
        By file name, in the order of their names.
    about : dict
        The index's own "metadata", as it is.
    """

    def __init__(self, path: Path, lenient: bool = False) -> None:
        index = _read_index(path)
        self.about: dict[str, Any] = index.get("metadata") or {}
        self._shard_of: dict[str, str] = index["weight_map"]
        folder = os.path.dirname(os.fspath(path))
        self.shards: dict[str, SafetensorsReader] = {}
        try:
            for shard in sorted(set(self._shard_of.values())):
                self.shards[shard] = _open_shard(path, os.path.join(folder, shard), lenient)
            self._check(path)
        except BaseException:
            self.close()
            raise
        tensors = {name: info for reader in self.shards.values() for name, info in reader.tensors.items()}
        metadata: dict[str, str] = {}
        for reader in self.shards.values():
            metadata = {**reader.metadata, **metadata}
        super().__init__(path, tensors, metadata)
        self.unsupported = {name: t for reader in self.shards.values() for name, t in reader.unsupported.items()}

    def _check(self, path: Path) -> None:
        for name, shard in self._shard_of.items():
            if name not in self.shards[shard].tensors and name not in self.shards[shard].unsupported:
                raise FileError(f"{path}: places tensor {name!r} in {shard}, which does not have it")
        for shard, reader in self.shards.items():
            for name in (*reader.tensors, *reader.unsupported):
                if self._shard_of.get(name) != shard:
                    listed = self._shard_of.get(name, "nowhere")
                    raise FileError(f"{path}: {shard} holds tensor {name!r}, which the index places in {listed}")

    def close(self) -> None:
        """Close all shards."""
        for reader in self.shards.values():
            reader.close()

    def file_of(self, name: str) -> str:
        """Return the path of the shard that holds a tensor."""
        return self.shards[self._shard_of[self[name].name]].path

    def image(self, name: str) -> Codes:
        """Return a tensor's whole memory image as bytes."""
        return self.shards[self._shard_of[self[name].name]].image(name)

    def _pieces(self, info: TensorInfo, size: int, begin: int = 0, end: int | None = None) -> Iterator[Codes]:
        return self.shards[self._shard_of[info.name]]._pieces(info, size, begin, end)


def _open_shard(index: Path, path: str, lenient: bool) -> SafetensorsReader:
    try:
        return SafetensorsReader(path, lenient)
    except FileNotFoundError:
        raise FileError(f"{index}: names the shard {os.path.basename(path)}, which is missing beside it") from None


def _read_index(path: Path) -> dict[str, Any]:
    with explained(path), open(path, "rb") as file:
        if file.seek(0, 2) > _MAX_INDEX:
            raise FileError(f"{path}: the index is longer than {_MAX_INDEX} bytes")
        file.seek(0)
        text = file.read()
    index: dict[str, Any] = loads(text, path, "the index")
    shards = index.get("weight_map")
    if not isinstance(shards, dict):
        raise FileError(f"{path}: has no weight_map that says which tensor lies in which shard")
    if not isinstance(index.get("metadata", {}), (dict, type(None))):
        raise FileError(f"{path}: its metadata must be a JSON object")
    for name, shard in shards.items():
        plain = isinstance(shard, str) and shard.isprintable() and not set(shard) & set("/\\:")
        if not plain or not shard.lower().endswith(".safetensors"):
            raise FileError(
                f"{path}: places tensor {name!r} in {shard!r}, expected the plain name of a .safetensors file beside it"
            )
    return index
