"""Atomic, streaming output: the bytes go to a temporary file, which gets the final name only when it is complete."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

from ..kinds.block import BlockFormat
from .base import FULL, RAW_SUFFIXES, Codes, ExistingFileError, FileError, Path, Sink, TensorInfo, explained, to_image
from .npy import NpySink, NpzSink
from .raw import RawSink
from .safetensors import SafetensorsSink

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AtomicFile", "Writer", "uninterrupted"]

SINKS: dict[str, type[Sink]] = {
    ".safetensors": SafetensorsSink,
    ".npz": NpzSink,
    ".npy": NpySink,
    **dict.fromkeys(RAW_SUFFIXES, RawSink),
}


class AtomicFile:
    """A file that appears under its name complete and synced, or not at all.

    Used in a ``with`` statement, which gives the open temporary file beside `path`. Leaving it normally syncs it to
    the disk and renames it; an exception (also KeyboardInterrupt) removes it. Without `force` a file that exists is
    never replaced, also when it appears in the meantime. A symbolic link is followed.
    """

    def __init__(self, path: Path, force: bool = False) -> None:
        self.path, self.force = os.fspath(path), force
        self._target = os.path.realpath(self.path)
        self._temporary = os.path.join(os.path.dirname(self._target), f".bittrue-{secrets.token_hex(8)}.tmp")
        self._file: BinaryIO | None = None

    def __enter__(self) -> BinaryIO:
        self._check_names()
        try:
            with explained(self.path), uninterrupted():  # else Ctrl-C could come between the file and its name here
                self._file = open(self._temporary, "xb")
        except BaseException:
            self._remove()
            raise
        return self._file

    def check(self) -> None:
        """Raise if `path` must not be written, or its folder cannot be; for those who will write only much later."""
        self._check_names()
        with explained(self.path), TemporaryFile(dir=os.path.dirname(self._target)):
            pass

    def _check_names(self) -> None:
        folder = os.path.dirname(self._target)
        if not os.path.isdir(folder):
            raise FileError(f"{self.path}: the folder {folder} does not exist")
        if os.path.isdir(self._target):
            raise FileError(f"{self.path}: is a folder, expected the name of a file")
        if os.path.lexists(self._target):
            if not os.path.isfile(self._target):
                raise FileError(f"{self.path}: exists and is not a regular file")
            if not self.force:
                raise self._exists()

    def _exists(self) -> ExistingFileError:
        return ExistingFileError(f"{self.path}: exists already and was left alone; force (--force) replaces it")

    def sync(self) -> None:
        """Bring everything to the disk and close the temporary file; it keeps its temporary name."""
        if self._file is not None and not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._remove()
            if isinstance(error, OSError) and error.errno in FULL:  # only writing runs out of space
                with explained(self.path):
                    raise error
            return
        try:
            with explained(self.path):
                self.sync()
                self._rename()
                _sync_folder(os.path.dirname(self._target))
        except BaseException:
            self._remove()
            raise

    def _rename(self) -> None:
        if self.force:
            os.replace(self._temporary, self._target)
            return
        try:
            os.link(self._temporary, self._target)  # fails where the name exists, unlike a rename
        except FileExistsError:
            raise self._exists() from None
        except OSError:  # a file system without hard links: claim the name, then replace our own empty file
            try:
                os.close(os.open(self._target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            except FileExistsError:
                raise self._exists() from None
            os.replace(self._temporary, self._target)
        else:
            os.unlink(self._temporary)

    def _remove(self) -> None:
        if self._file is not None:
            with suppress(OSError, ValueError):
                self._file.close()
        with suppress(OSError):
            os.unlink(self._temporary)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block, which takes milliseconds: several files get their names together."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # interrupts reach the main thread only
        return
    waiting: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting:
            before(*waiting[0])


def _sync_folder(folder: str) -> None:
    """Make a new name durable, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class Writer:
    """Write tensors of known formats and shapes into a file, piece by piece.

    Parameters
    ----------
    path : path
        The suffix chooses the container: .safetensors, .npz, .npy, .bin or .raw.
    tensors : iterable of TensorInfo
        What will be written. `names` is the order in which it must be written, which the container decides.
    force : bool
        Replace a file that exists.
    metadata : dict of str to str, optional
        Free text to keep in the file (safetensors only).

    Raises
    ------
    FileError
        When the file exists or cannot be written; nothing is left behind.
    ValueError
        For tensors that the container cannot hold, or pieces that do not fit what was announced.

    Examples
    --------
    >>> import tempfile, numpy as np, bittrue as bt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Writer(folder + "/w.safetensors", [TensorInfo("w", bt.format("int4"), (48,))]) as writer:
    ...         for start in (0, 32):
    ...             writer.write("w", np.arange(start, min(start + 32, 48), dtype=np.uint8) % 16)
    ...     bt.load(folder + "/w.safetensors")["w"].shape
    (48,)
    """

    def __init__(
        self,
        path: Path,
        tensors: Iterable[TensorInfo],
        *,
        force: bool = False,
        metadata: dict[str, str] | None = None,
    ) -> None:
        infos = list(tensors)
        self._tensors = {info.name: info for info in infos}
        if len(self._tensors) < len(infos):
            raise ValueError(f"{os.fspath(path)}: two tensors have the same name")
        for name in self._tensors:
            _check_name(name)
        self.path = os.fspath(path)
        self._sink = SINKS[suffix_of(path)](infos, _checked_metadata(metadata))
        self._atomic = AtomicFile(path, force)
        self._left = list(self._sink.order)
        self._done: int | None = None  # bytes written of the first of `_left`; None before it begins
        self._finished = False

    @property
    def names(self) -> list[str]:
        """The order in which tensors must be written."""
        return [info.name for info in self._sink.order]

    def __enter__(self) -> Self:
        try:
            file = self._atomic.__enter__()
            with explained(self.path):
                self._sink.start(file)
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def write(self, name: str, codes: Codes) -> None:
        """Append codes (`format.storage`, C order) to a tensor; for packed formats whole bytes at a time."""
        info = self._tensors.get(name)
        if info is None:
            raise ValueError(f"{self.path}: no tensor {name!r} was announced")
        if codes.dtype.newbyteorder("=") != info.format.storage:
            wanted = info.format.storage
            raise ValueError(f"tensor {name!r}: codes of {info.format.name} are {wanted}, not {codes.dtype}")
        self._advance()
        data = to_image(codes, info.format)
        position = (0 if self._done is None else self._done) + data.size
        if not isinstance(info.format, BlockFormat) and codes.size * info.format.bits % 8 and position != info.nbytes:
            raise ValueError(f"tensor {name!r}: {codes.size} codes of {info.format.bits} bits do not fill whole bytes")
        self.write_raw(name, data)

    def write_raw(self, name: str, data: Any) -> None:
        """Append bytes of the memory image to a tensor."""
        view = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
        if not view and name in self._tensors:
            return
        self._advance()
        if not self._left or self._left[0].name != name:
            expected = repr(self._left[0].name) if self._left else "nothing more"
            raise ValueError(f"{self.path}: got tensor {name!r}, but {expected} is due; write in the order of `names`")
        if self._done is None:
            with explained(self.path):
                self._sink.begin(self._left[0])
            self._done = 0
        if self._done + len(view) > self._left[0].nbytes:
            raise ValueError(f"tensor {name!r}: got more than the {self._left[0].nbytes} bytes of its shape and format")
        with explained(self.path):
            self._sink.write(view)
        self._done += len(view)

    def _advance(self) -> None:
        """Finish the tensors that are complete; empty ones need no piece."""
        while self._left and (self._done or 0) == self._left[0].nbytes:
            with explained(self.path):
                if self._done is None:
                    self._sink.begin(self._left[0])
                self._sink.end()
            self._left.pop(0)
            self._done = None

    def finish(self) -> None:
        """Complete the temporary file and bring it to the disk; leaving the ``with`` statement gives it its name."""
        if self._finished:
            return
        self._advance()
        if self._left:
            info = self._left[0]
            raise ValueError(f"{self.path}: tensor {info.name!r} got {self._done or 0} of its {info.nbytes} bytes")
        with explained(self.path):
            self._sink.finish()
            self._atomic.sync()
        self._finished = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            try:
                self.finish()
            except BaseException as problem:
                self._sink.abandon()
                self._atomic.__exit__(type(problem), problem, problem.__traceback__)
                raise
        else:
            self._sink.abandon()
        self._atomic.__exit__(kind, error, trace)


def suffix_of(path: Path) -> str:
    """Return the container's suffix, or raise `ValueError`."""
    name = os.fspath(path).lower()
    for suffix in SINKS:
        if name.endswith(suffix):
            return suffix
    pickled = os.path.splitext(os.fspath(path))[1].lower() in (".pt", ".pth", ".ckpt")
    raise ValueError(
        f"path={os.fspath(path)!r} must end in one of {', '.join(SINKS)}"
        + ("; write PyTorch's state_dict with safetensors.torch.save_file" if pickled else "")
    )


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name or name == "__metadata__" or "\0" in name:
        raise ValueError(f"name={name!r} of a tensor must be a non-empty string other than '__metadata__'")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"name={name!r} of a tensor must be valid Unicode") from None


def _checked_metadata(metadata: object) -> dict[str, str]:
    if metadata is None:
        return {}
    if not isinstance(metadata, dict) or not all(isinstance(t, str) for pair in metadata.items() for t in pair):
        raise ValueError(f"metadata={metadata!r} must map strings to strings")
    if "bittrue" in metadata:
        raise ValueError("metadata key 'bittrue' is where the formats are kept; use another key")
    return dict(metadata)
