"""Serves the explorer to this machine alone, until it is interrupted."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable

import uvicorn

from .app import create_app

__all__ = ["DEFAULT_PORT", "listen", "serve"]

DEFAULT_PORT = 8950
_ADDRESS = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """Return a socket that listens on 127.0.0.1.

    Parameters
    ----------
    port : int
        0 takes a free one.

    Raises
    ------
    OSError
        Where the port is taken, or not for this user.
    """
    if not 0 <= port <= 65535:
        raise ValueError(f"--port {port} must be from 0 to 65535")
    # asyncio sends without Nagle's delay only on sockets that say they are TCP
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((_ADDRESS, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        why = (error.strerror or str(error)).lower()
        raise OSError(f"--port {port}: {why} (--port 0 takes a free port)") from None
    return listening


def serve(
    port: int = DEFAULT_PORT, browser: bool = True, said: Callable[[str], object] = print, path: str = ""
) -> None:
    """Serve the explorer until Ctrl-C.

    Parameters
    ----------
    port : int
        Of 127.0.0.1; 0 takes a free one.
    browser : bool
        Whether to open the page.
    said : callable
        Takes the line with the address.
    path : str
        What follows the address: a state of the page, as "?format=half".
    """
    listening = listen(port)
    url = f"http://{_ADDRESS}:{listening.getsockname()[1]}/{path}"
    server = uvicorn.Server(uvicorn.Config(create_app(), log_level="warning", access_log=False, lifespan="off"))
    said(f"bittrue explorer: {url} (Ctrl-C ends it)")
    threading.Thread(target=_warm_up, daemon=True).start()
    if browser:
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        pass  # uvicorn has shut down and says so
    finally:
        listening.close()


def _warm_up() -> None:
    """Load what a first cast would have to wait for: the kernels of the hardware rooms."""
    from .fields import Fields
    from .records import ANSWERS

    for question in ("rule", "srs"):
        known, answer = ANSWERS[question]
        answer(Fields([], known))
