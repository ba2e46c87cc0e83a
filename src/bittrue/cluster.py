"""Work on a dask.distributed cluster: calls spread over its workers, results in order, lost ones made again."""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from .files import FileError, Reader, open_tensors
from .formats import Format

__all__ = ["Cluster", "ClusterError", "Place"]

Result = TypeVar("Result")

_CONNECT = 4.0  # seconds to reach a scheduler, and again for its first worker
_ALONE = 60.0  # seconds without any worker after which the work is given up
_LOOK = 2.0  # seconds between two looks at the workers
_AHEAD = 2  # calls at the workers for each of their threads


class ClusterError(ConnectionError):
    """A cluster that cannot be reached, or that cannot do its work; the message names the scheduler."""


# --- files ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A file of tensors that is opened more than once, or on a worker that finds it under the same path.

    Attributes
    ----------
    path : str
        Absolute.
    size : int
        Bytes, by which a worker notices another file.
    format, shape
        As `bittrue.open_tensors` takes them.
    """

    path: str
    size: int
    format: Format | str | None = None
    shape: tuple[int, ...] | None = None

    @classmethod
    def of(cls, path: str, format: Format | str | None = None, shape: tuple[int, ...] | None = None) -> Place:
        """Return the place of a file that is here."""
        full = os.path.abspath(path)
        return cls(full, os.stat(full).st_size, format, shape)

    def open(self) -> Reader:
        """Open the file, on whatever machine this is."""
        try:
            size = os.stat(self.path).st_size
        except OSError as error:
            said = (error.strerror or "").lower()
            raise FileError(f"{self.path}: {said} on {socket.gethostname()}, where it is to be read") from None
        if size != self.size:
            raise FileError(f"{self.path}: has {size} bytes on {socket.gethostname()}, expected {self.size}")
        return open_tensors(self.path, format=self.format, shape=self.shape, lenient=True)


# --- calls ------------------------------------------------------------------------------------------------------------


class Cluster:
    """The workers of a scheduler; used in a ``with`` statement.

    Parameters
    ----------
    scheduler : str or distributed.Client
        "tcp://host:port", which a client of our own connects to, or a client, which stays open.

    Raises
    ------
    ImportError
        Without dask.distributed.
    ValueError
        For text that is no address.
    ClusterError
        When nothing answers within seconds, or there is no worker.
    """

    def __init__(self, scheduler: Any) -> None:
        try:
            import distributed
        except ImportError as error:
            raise ImportError(
                "scheduler= needs Dask, which is not installed: pip install 'bittrue[dask]'"
            ) from error
        self._client: Any
        self._distributed, self._met = distributed, False  # met: a worker was there once
        self._own = isinstance(scheduler, str)
        if self._own:
            self.address = scheduler
            self._client = _connect(distributed, scheduler)
        elif isinstance(scheduler, distributed.Client):
            self._client = scheduler
            self.address = str(self._client.scheduler.address)
        else:
            raise TypeError(
                f"scheduler={scheduler!r} must be an address such as 'tcp://host:8786', or a distributed.Client"
            )

    def __enter__(self) -> Cluster:
        try:
            self._threads()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._own:
            self._client.close()

    def map(
        self, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]]
    ) -> Generator[Result, None, None]:
        """Yield ``function(*call)`` for every call, in their order, whatever becomes of single workers.

        The function must give the same result each time. Only as many calls are out at once as keep the workers busy.

        Raises
        ------
        ClusterError
            When the scheduler is lost, workers are for good, or they cannot run the function.
        """
        waiting: deque[Any] = deque()
        more, room, looked = iter(calls), 0, 0.0
        while True:
            if time.monotonic() - looked > _LOOK:
                room, looked = max(_AHEAD * self._threads(), _AHEAD), time.monotonic()
            while len(waiting) < room and (call := next(more, None)) is not None:
                waiting.append(self._submit(function, call))
            if not waiting:
                return
            yield self._result(waiting[0])
            waiting.popleft()

    def _submit(self, function: Callable[..., Any], call: tuple[Any, ...]) -> Any:
        try:
            return self._client.submit(_run, _version(), function, *call, pure=False)
        except Exception as error:
            raise ClusterError(f"{self.address}: the connection to the scheduler was lost") from error

    def _result(self, future: Any) -> Any:
        while True:
            try:
                return future.result(timeout=_LOOK)
            except (Exception, CancelledError) as error:
                if future.status == "error":
                    raise self._failed(error) from error
                if not isinstance(error, (TimeoutError, self._distributed.TimeoutError)):
                    raise ClusterError(f"{self.address}: the connection to the scheduler was lost") from error
            self._threads()  # the call takes long, or nobody is there to make it

    def _threads(self) -> int:
        """Return how many threads the workers have; wait for a worker where there is none."""
        patience = time.monotonic() + (_ALONE if self._met else _CONNECT)
        while True:
            try:
                count: int = sum(self._client.nthreads().values())
            except (Exception, CancelledError) as error:
                raise ClusterError(f"{self.address}: the connection to the scheduler was lost") from error
            if count:
                self._met = True
                return count
            if time.monotonic() > patience:
                gone = f"has been without workers for {_ALONE:.0f} s" if self._met else "has no workers"
                raise ClusterError(f"{self.address}: the scheduler {gone}; start some with: dask worker {self.address}")
            time.sleep(0.2)

    def _failed(self, error: BaseException) -> BaseException:
        """Return what to raise for the error of a call: the call's own, unless it is about the workers."""
        if isinstance(error, self._distributed.KilledWorker):
            return ClusterError(f"{self.address}: one worker after the other died at the same part; see their logs")
        if isinstance(error, ModuleNotFoundError) or "deserializ" in str(error):
            return ClusterError(f"{self.address}: the workers cannot run bittrue {_version()}; install it there, too")
        return error


def _run(version: str, function: Callable[..., Result], *call: Any) -> Result:
    """Make a call on a worker that has the same package."""
    if version != _version():
        raise ClusterError(
            f"worker {socket.gethostname()} has bittrue {_version()}, not {version}: results could differ"
        )
    return function(*call)


def _version() -> str:
    from . import __version__

    return __version__


def _connect(distributed: Any, address: str) -> Any:
    """Return a client; first make sure, with less ado than a client makes, that a scheduler answers."""
    import asyncio

    async def meet() -> None:
        comm = await distributed.connect(address, timeout=_CONNECT)
        await comm.close()

    async def greet() -> None:
        await asyncio.wait_for(meet(), _CONNECT + 1)  # a stranger may keep silent after the connection is made

    try:
        with ThreadPoolExecutor(1) as thread:  # the caller may be inside an event loop of its own
            thread.submit(asyncio.run, greet()).result()
        return distributed.Client(address, timeout=_CONNECT, set_as_default=False)
    except ValueError as error:
        raise ValueError(f"scheduler={address!r} is no address such as 'tcp://host:8786' ({error})") from None
    except (OSError, TimeoutError, asyncio.TimeoutError, CancelledError) as error:
        raise ClusterError(f"scheduler={address!r}: no Dask scheduler answers there within {_CONNECT:.0f} s") from error
    except Exception as error:  # strange bytes make strange errors
        raise ClusterError(f"scheduler={address!r}: what answers there is no Dask scheduler ({error})") from error
