"""The code in Markdown pages: what a page shows, and whether it happens; used by the tests and by `.ci/newcomer`.

A page may show three kinds of fenced blocks: `python` (with `>>>` as a doctest; without, statements whose trailing
comment is the value where it is a literal), `console` (`$ command`, then its output; `...` stands for anything, a
here-document may follow) and `text`, which is no code. Comments that readers do not see steer the tests:

    <!-- needs: torch -->          what follows is left out where this package is not installed
    <!-- setup                     Python that runs before what follows; ROOT is the repository
    ... -->
    <!-- newcomer -->              the next block is for `.ci/newcomer` alone: it installs
    <!-- not run: why -->          the next block is not run at all

Only the standard library is needed to read a page.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib.util
import io
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Block", "Command", "Missing", "blocks", "check_output", "commands", "run", "without_comments"]

ROOT = Path(__file__).parents[1]

#: Columns of the terminal in which the pages' output was printed.
WIDTH = 80

_PART = re.compile(
    r"^```(?P<language>[^\n`]*)\n(?P<code>.*?)^```[ ]*$"
    r"|^<!--[ ]*(?P<word>setup|newcomer|not run|needs)\b:?(?P<text>.*?)-->"
    r"|^(?P<indented>    \S[^\n]*)$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"(make|pip|python|bittrue|\S*\.venv/bin/\w+|[A-Z_]+=\S+) ")
_LIST = re.compile(r"^ *([-*]|\d+\.) ", re.MULTILINE)


class Block(NamedTuple):
    """A block of code: "python", "console", "text" or (unseen) "setup" and "needs"; its first line; its mark."""

    language: str
    code: str
    line: int
    mark: str = ""


class Missing(Exception):
    """The rest of a page needs a package that is not installed."""


class Command(NamedTuple):
    """A command of a console block, with its here-document, and the output that the page shows."""

    text: str
    output: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page; raise `ValueError` for code in a form that would not be run."""
    mark = ""
    for found in _PART.finditer(page):
        line = page.count("\n", 0, found.start()) + 2
        word = found["word"]
        if word in ("setup", "needs"):
            yield Block(word, found["text"], line)
        elif word in ("newcomer", "not run"):
            mark = word
            if word == "not run" and not found["text"].strip():
                raise ValueError(f"line {line}: say why it is not run")
        elif found["indented"]:
            if not _LIST.search(page[: found.start()].rpartition("\n\n")[0].rpartition("\n\n")[2]):
                raise ValueError(f"line {line - 1}: code stands in a fence, with its language")
        elif word is None:
            language = found["language"].strip()
            if not language.startswith("{"):  # a directive of the site
                if language not in ("python", "console", "text"):
                    raise ValueError(f"line {line - 1}: {language!r} is not python, console or text")
                if language == "text" and _COMMAND.match(found["code"]):
                    raise ValueError(f"line {line}: commands stand in a console block, after a dollar sign")
                yield Block(language, found["code"], line, mark)
            mark = ""


def commands(block: Block) -> list[Command]:
    """Split a console block."""
    found: list[Command] = []
    until = None
    for i, line in enumerate(block.code.splitlines()):
        if until is not None:
            last = found[-1]
            found[-1] = last._replace(text=f"{last.text}\n{line}")
            until = None if line == until else until
        elif line.startswith("$ "):
            found.append(Command(line[2:], "", block.line + i))
            here = re.search(r"<<'(\w+)'", line)
            until = here[1] if here else None
        elif found:
            found[-1] = found[-1]._replace(output=f"{found[-1].output}{line}\n")
        elif line.strip():
            raise ValueError(f"line {block.line + i}: output without a command")
    return found


def without_comments(code: str) -> str:
    """Return code without its comments, which may be in another language."""
    return "\n".join(re.sub(r"(^|\s+)# .*$", "", line) for line in code.splitlines())


def _plain(text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(lines).strip("\n") + "\n"


def check_output(command: Command, output: str) -> None:
    """Raise `AssertionError` where the output is not what the page shows."""
    want, got = _plain(command.output), _plain(output)
    checker = doctest.OutputChecker()
    if not checker.check_output(want, got, doctest.ELLIPSIS):
        example = doctest.Example(command.text, want)
        difference = checker.output_difference(example, got, doctest.ELLIPSIS)
        raise AssertionError(f"line {command.line}: {command.text}\n{difference}")


# --- running ----------------------------------------------------------------------------------------------------------


def _doctest(block: Block, names: dict[str, Any], page: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.code, names, page, page, block.line - 1)
    report = io.StringIO()
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, out=report.write, clear_globs=False)
    names.update(test.globs)
    if result.failed:
        raise AssertionError(report.getvalue())


def _expected(code: str) -> dict[int, str]:
    """Return trailing comments, up to a colon, by line."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return {t.start[0]: t.string.lstrip("# ").partition(": ")[0] for t in tokens if t.type == tokenize.COMMENT}


def _literal(text: str) -> Any:
    """Return the value of a comment, or None where it is words."""
    try:
        tree = ast.parse(text, mode="eval")
        allowed = {name.id for name in ast.walk(tree) if isinstance(name, ast.Name)} <= {"nan", "inf"}
        calls = any(isinstance(node, (ast.Call, ast.Attribute)) for node in ast.walk(tree))
        return eval(text, {"nan": float("nan"), "inf": float("inf")}) if allowed and not calls else None
    except SyntaxError:
        return None


def _statements(block: Block, names: dict[str, Any], page: str) -> None:
    """Run statements; a trailing comment that is a literal is the value of the expression or of the assigned name."""
    comments = _expected(block.code)
    for node in ast.parse(block.code).body:
        ast.increment_lineno(node, block.line - 1)
        value = None
        if isinstance(node, ast.Expr):
            value = eval(compile(ast.Expression(node.value), page, "eval"), names)
        else:
            exec(compile(ast.Module([node], []), page, "exec"), names)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                value = names[node.targets[0].id]
        assert node.end_lineno is not None
        want = _literal(comments.get(node.end_lineno - block.line + 1, "..."))
        if want is not None and want is not ...:
            got = value.tolist() if hasattr(value, "tolist") else value
            if repr(got) != repr(want):
                raise AssertionError(f"{page}, line {node.end_lineno}: {got!r}, where the comment says {want!r}")


def _shell(command: Command, invoke: Callable[[list[str]], int]) -> str:
    """Return what a command prints; `bittrue` runs in this process."""
    words = command.text.split()
    if words[0] == "bittrue" and not re.search(r"[|<>;&$]", command.text):
        import shlex

        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            invoke(shlex.split(command.text)[1:])
        return out.getvalue()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command.text], env={**os.environ, "PATH": path}, text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False,
    )  # fmt: skip
    return done.stdout


def run(page: str, name: str, invoke: Callable[[list[str]], int]) -> int:
    """Run all code of a page in the current folder; return how many blocks there were.

    `invoke` is the program: it takes the words after `bittrue`. COLUMNS must be `WIDTH`. Raises `AssertionError` for
    what does not do what the page says, and `Missing`.
    """
    names: dict[str, Any] = {"__name__": "__page__", "ROOT": ROOT}
    count = 0
    for block in blocks(page):
        if block.language == "text" or block.mark:
            continue
        if block.language == "needs":
            if importlib.util.find_spec(block.code.strip()) is None:
                raise Missing(f"{name} from line {block.line - 1} on needs {block.code.strip()}")
            continue
        count += 1
        if block.language == "console":
            for command in commands(block):
                check_output(command, _shell(command, invoke))
        elif block.language == "setup":
            exec(compile("\n" * (block.line - 2) + block.code, name, "exec"), names)
        elif ">>> " in block.code:
            _doctest(block, names, name)
        else:
            _statements(block, names, name)
    return count
