"""What several commands read out of their arguments."""

from __future__ import annotations

import logging
import os
from contextlib import suppress

from ..files import INDEX_SUFFIX

__all__ = ["checkpoint_of", "parse_shape", "quiet_cluster"]


def checkpoint_of(source: str) -> str:
    """Return the index of a sharded checkpoint where `source` is its folder."""
    if not os.path.isdir(source):
        return source
    found = [name for name in sorted(os.listdir(source)) if name.lower().endswith(INDEX_SUFFIX)]
    if len(found) != 1:
        raise ValueError(f"{source}: is a folder with {len(found)} files *{INDEX_SUFFIX}; name the file")
    return os.path.join(source, found[0])


def parse_shape(text: str | None) -> tuple[int, ...] | None:
    """Return the sizes in text such as "64,128".

    Examples
    --------
    >>> parse_shape("64x128")
    (64, 128)
    """
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.lower().replace("x", ",").split(",") if part.strip())
    except ValueError:
        raise ValueError(f"--shape {text!r} is not a shape; expected sizes such as 64,128") from None


def quiet_cluster(scheduler: str | None) -> None:
    """Keep Dask's remarks about lost workers, which are dealt with, out of a command's output."""
    if scheduler is not None:
        with suppress(ImportError):  # about which the work itself complains
            import distributed  # noqa: F401  sets the levels that are changed here

            for name in ("distributed", "distributed.client"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
