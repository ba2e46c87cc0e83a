"""The `bittrue` command: entry point and exit codes; the commands themselves are in the modules of this folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from .commands import app

__all__ = ["app", "main"]

_ClickException: type[Exception] = typer.BadParameter.__mro__[2]  # Typer carries its own copy of Click, or uses it

_INTERRUPTED, _BROKEN_PIPE, _MISTAKE = 130, 141, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows ``bittrue`` on the command line; default ``sys.argv[1:]``.

    Returns
    -------
    int
        0; 2 after a mistake of the user, with one line on stderr; 130 when interrupted; 141 when the reader of the
        output has gone.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    _prepare_streams()
    try:
        code = _invoke(given)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout once more on its way out; that must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _BROKEN_PIPE
    except (_ClickException, ValueError, ArithmeticError, TypeError, OSError, MemoryError, ImportError) as error:
        if os.environ.get("BITTRUE_TRACEBACK"):
            raise
        _complain(error)
        return _MISTAKE


def _prepare_streams() -> None:
    """Let no character and no closed stream be a reason to fail."""
    # What takes a closed stream's place stays open as long as the process.
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _invoke(arguments: list[str]) -> int:
    command = typer.main.get_command(app)
    try:
        with command.make_context("bittrue", arguments) as context:
            command.invoke(context)
    except typer.Exit as done:
        return int(done.exit_code)
    return 0


def _complain(error: BaseException) -> None:
    """Print one line on stderr."""
    if isinstance(error, _ClickException):
        text = error.format_message()  # type: ignore[attr-defined]
        context = getattr(error, "ctx", None)
        if context is not None and getattr(error, "param", None) is None:
            text = f"{text.rstrip('.')} (see '{context.command_path} --help')"
    elif isinstance(error, MemoryError):
        text = "not enough memory" + (f": {error}" if str(error) else "")
    elif isinstance(error, OSError) and error.strerror:
        said = f"{error.strerror[:1].lower()}{error.strerror[1:]}"
        text = said if error.filename is None else f"{error.filename}: {said}"
    else:
        text = str(error) or type(error).__name__
    red, plain = ("\x1b[1;31m", "\x1b[0m") if _coloured() else ("", "")
    print(f"{red}error:{plain} {' '.join(text.split())}", file=sys.stderr)


def _coloured() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
