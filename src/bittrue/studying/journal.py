"""The journal of a study: one line of JSON for each tensor that is done, so that an interrupted study goes on."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ..files.base import FileError, Path
from .report import Cost, Spread

__all__ = ["Journal"]

_KIND = "bittrue study 1"


class Journal:
    """A file of finished tensors; without a path it keeps nothing.

    A line that a crash has cut short or damaged, and all after it, is measured again. A file of another study is not
    touched.

    Raises
    ------
    FileError
        When the path holds something other than a journal of this study, or cannot be written.
    """

    def __init__(self, path: Path | None, about: object) -> None:
        self._path = None if path is None else os.fspath(path)
        self._about = json.loads(json.dumps([_KIND, about]))
        self._done: dict[str, tuple[list[Cost], Spread]] = {}
        self._file: Any = None

    def __enter__(self) -> Journal:
        if self._path is None:
            return self
        try:
            with self._explained():
                self._file = open(self._path, "a+b", buffering=0)
                self._file.seek(0)
                kept = self._read(self._file.read())
                self._file.truncate(kept)
            if not kept:
                self._write(self._about)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def _read(self, data: bytes) -> int:
        """Take what is done, and return how many bytes of the file are whole lines of this study."""
        kept = 0
        for number, line in enumerate(data.splitlines(keepends=True)):
            try:
                found = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                found = None
            if found is None:
                if not number and not json.dumps(self._about).encode().startswith(line):
                    raise FileError(f"{self._path}: is not the journal of a study; name another file to resume from")
                break
            if not number:
                if found != self._about:
                    raise FileError(
                        f"{self._path}: is the journal of another file, other formats or other options; remove it or "
                        "name another"
                    )
            else:
                try:
                    costs = [Cost(**{**c, "shape": tuple(c["shape"])}) for c in found["costs"]]
                    self._done[found["tensor"]] = costs, Spread(**found["spread"])
                except (KeyError, TypeError):  # JSON, but not ours
                    break
            kept += len(line)
        return kept

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            said = (error.strerror or str(error)).lower()
            raise FileError(f"{self._path}: the journal cannot be kept: {said}") from error

    def _write(self, data: object) -> None:
        left = memoryview(json.dumps(data).encode() + b"\n")
        with self._explained():
            while left:  # a disk that fills up takes a part
                left = left[self._file.write(left) :]

    def get(self, name: str) -> tuple[list[Cost], Spread] | None:
        """Return what was measured of a tensor, or None."""
        return self._done.get(name)

    def put(self, name: str, costs: list[Cost], spread: Spread) -> None:
        """Keep what was measured."""
        if self._file is not None:
            rows = [dataclasses.asdict(c) for c in costs]
            self._write({"tensor": name, "costs": rows, "spread": dataclasses.asdict(spread)})

    def finish(self) -> None:
        """Remove the file: the study is complete."""
        if self._path is not None:
            with suppress(OSError):
                os.unlink(self._path)
