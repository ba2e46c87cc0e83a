"""How a loop becomes a kernel: compiled to run without the GIL, and kept on disk where there is a place for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit

__all__ = ["kernel"]

_warned = False


def kernel(loop: Callable[..., Any]) -> Any:
    """Compile a loop that other rooms call.

    What was compiled is kept beside the source, else in the user's cache (Numba's choice; ``NUMBA_CACHE_DIR`` comes
    first). No trouble with that place, a read-only or full disk or a damaged file, keeps a kernel from running: it is
    compiled again, with one warning where it cannot be kept.
    """
    compiled = njit(nogil=True, error_model="numpy")(loop)
    try:
        compiled.enable_caching()
    except RuntimeError:  # neither place can be written
        _warn("neither the folder of the package nor the user's cache can be written")
        return compiled
    cache = compiled._cache
    load, save = cache.load_overload, cache.save_overload

    def load_or_miss(signature: Any, context: Any) -> Any:
        try:
            return load(signature, context)
        except Exception:  # a file that a crash cut short raises whatever its pickle happens to say (numba#10434)
            with suppress(OSError):
                cache.flush()
            return None

    def save_or_warn(signature: Any, data: Any) -> None:
        try:
            save(signature, data)
        except OSError as error:
            _warn(f"{cache.cache_path}: {error.strerror or error}")

    cache.load_overload, cache.save_overload = load_or_miss, save_or_warn
    return compiled


def _warn(reason: str) -> None:
    """Say once that kernels are not kept."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled kernels cannot be kept ({reason}), so that each process compiles its own, which takes seconds; "
            "NUMBA_CACHE_DIR may name a folder for them",
            RuntimeWarning,
            stacklevel=2,
        )
