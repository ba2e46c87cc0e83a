"""The progress bar of long commands."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from .output import console, middle

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Bar"]

_PATIENCE = 0.5  # seconds of silence before the bar appears


class Bar:
    """A progress bar on stderr that appears when the work takes long, and only on a terminal."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._progress: Progress | None = None
        self._task: Any = None
        self._wanted = sys.stderr.isatty()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def show(self, name: str, done: int, total: int) -> None:
        """Take the news: what is at work, how much is done and how much there is."""
        if not self._wanted:
            return
        if self._progress is None:
            if time.monotonic() - self._started < _PATIENCE:
                return
            self._start(total)
        assert self._progress is not None
        self._progress.update(self._task, completed=done, description=middle(name, 32))

    def _start(self, total: int) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("", total=total)
        self._progress.start()
