"""`bittrue encode` and `bittrue decode`: numbers line by line through a pipe, so that any language can be a peer.

Lines are answered in blocks: as many as one read brings, at once. A program that writes one line and waits gets its
answer, and a file of millions goes through vectorised code.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, BinaryIO

import numpy as np

from .. import codec, exact
from ..array import Array
from ..files import FileError
from ..formats import BoolFormat, ComplexFormat, FloatFormat, Format, IntFormat, format
from ..parse import encode_objects, parse_number
from ..rounding import Overflow, Rounding, Rule, suggestion

__all__ = ["OUTPUTS", "decode_lines", "encode_lines", "read_hex"]

Codes = np.ndarray[Any, Any]

#: What `decode` writes.
OUTPUTS = ("hex-float", "decimal", "float32-bits", "float64-bits")

_BLOCK = 1 << 20  # bytes per read
_LONGEST = 1 << 20  # bytes of a line
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def encode_lines(name: str, source: str | None, rule: Rule) -> None:
    """Read numbers (or codes of the format `source`) from stdin, write codes of a format to stdout."""
    f = _single(format(name), "--to")
    src = None if source is None else _single(format(source), "--source")
    exact.check_rule(rule, f)
    start = 0
    for lines in _blocks(sys.stdin.buffer):
        random = _random_words(rule.seed, start, len(lines)) if rule.rounding is Rounding.stochastic else None
        if src is None:
            codes = _encode_text(lines, f, rule, random, start)
        else:
            codes = _encode_codes(_read_codes(lines, src, start), src, f, rule, random, start)
        _write(_hex_lines(codes, f))
        start += len(lines)


def decode_lines(name: str, output: str) -> None:
    """Read codes in hexadecimal from stdin, write their values to stdout."""
    f = _single(format(name), "--from")
    if output not in OUTPUTS:
        raise ValueError(f"--as {output!r} is not an output{suggestion(output, OUTPUTS)} ({', '.join(OUTPUTS)})")
    write = _writer(f, output)
    start = 0
    for lines in _blocks(sys.stdin.buffer):
        _write(write(_read_codes(lines, f, start)))
        start += len(lines)


def _random_words(seed: int, start: int, count: int) -> Codes:
    """Return the random bits that belong to the elements from `start` on."""
    from ..kernels.stochastic import random_bits

    words = np.empty(count, np.uint32)
    random_bits(np.uint64(seed), start, words)
    return words


def _single(f: Format, option: str) -> Format:
    if isinstance(f, ComplexFormat) or f.kind == "block":
        raise ValueError(f"{option} {f.name}: pipes carry one real number per line; {f.name} has none per code")
    return f


def _blocks(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Yield the lines that each read completes."""
    rest, number = b"", 1
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    while data := read(_BLOCK):
        whole, found, rest = (rest + data).rpartition(b"\n")
        if found:
            lines = whole.split(b"\n")
            yield lines
            number += len(lines)
        if len(rest) > _LONGEST:  # else one that never ends would fill memory
            raise ValueError(f"line {number}: is longer than {_LONGEST} bytes; expected one number in each line")
    if rest:
        yield [rest]


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


# --- codes ------------------------------------------------------------------------------------------------------------


def _read_codes(lines: list[bytes], f: Format, start: int) -> Codes:
    """Read codes in hexadecimal, with or without 0x."""
    if not re.search(rb"[_+-]", b"".join(lines)):  # which int() reads, but which are no part of a code
        try:
            numbers = [int(line, 16) for line in lines]
            if max(numbers) < 1 << f.bits:
                return np.array(numbers, f.code_dtype)
        except ValueError:
            pass
    return np.array([_read_code(line, f, start + i) for i, line in enumerate(lines)], f.code_dtype)


def _read_code(line: bytes, f: Format, index: int) -> int:
    text = _text(line)
    if not re.fullmatch(r"(0[xX])?[0-9a-fA-F]+", text):
        raise ValueError(f"line {index + 1}: {text!r:.60} is not a code; expected hexadecimal, such as 0x2e")
    code = int(text, 16)
    if code >= 1 << f.bits:
        raise ValueError(f"line {index + 1}: code {text:.60} is out of range for {f.name}: 0 to {(1 << f.bits) - 1:#x}")
    return code


def read_hex(path: str, f: Format) -> Array:
    """Return the codes in a text file, one in a line in hexadecimal; // begins a comment.

    Raises
    ------
    FileError
        When the file cannot be read.
    ValueError
        For a line that is no code of the format, with its number.
    """
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None
    given = [(i, line) for i, text in enumerate(lines) if (line := text.partition(b"//")[0].strip())]
    for i, line in given:
        if len(line.split()) > 1:
            raise ValueError(f"{path}: line {i + 1}: has {len(line.split())} columns; expected one code in each line")
    try:
        return Array(np.array([_read_code(line, f, i) for i, line in given], f.code_dtype).view(f.storage), f)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace").strip()


def _hex_lines(codes: Codes, f: Format) -> bytes:
    """Return the codes as lines "0x.." of equal length."""
    digits = -(-f.bits // 4)
    numbers = codes.view(f.code_dtype)
    out = np.empty((numbers.size, digits + 3), np.uint8)
    out[:, 0], out[:, 1], out[:, -1] = ord("0"), ord("x"), ord("\n")
    for i in range(digits):
        out[:, 2 + i] = _HEX[(numbers >> numbers.dtype.type(4 * (digits - 1 - i))) & numbers.dtype.type(15)]
    return out.tobytes()


# --- encode -----------------------------------------------------------------------------------------------------------


def _encode_codes(
    given: Codes, src: Format, f: Format, rule: Rule, random: Codes | None, start: int
) -> Codes:
    """Encode values that are given as codes of a format."""
    if _has_dtype(src):
        values = given.view(_dtype(src))
    else:
        single = src.bits <= 16 and not (isinstance(src, FloatFormat) and src.exponent_bits > 8)
        wide = np.float32 if single else np.float64
        values = codec.decode(given, src, wide)
    try:
        return codec.encode(values, f, rule=rule, random=random)
    except (ValueError, OverflowError):
        for i in range(len(values)):
            word = None if random is None else random[i : i + 1]
            try:
                codec.encode(values[i : i + 1], f, rule=rule, random=word)
            except (ValueError, OverflowError) as error:
                raise _at(error, start + i) from None
        raise


def _has_dtype(f: Format) -> bool:
    return f.name in _DTYPES


_DTYPES = frozenset("int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64".split())


def _dtype(f: Format) -> np.dtype[Any]:
    if f.name == "bfloat16":
        import ml_dtypes

        dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return dtype
    return np.dtype(f.name)


def _encode_text(lines: list[bytes], f: Format, rule: Rule, random: Codes | None, start: int) -> Codes:
    """Encode numbers in decimal or any other notation that `parse_number` reads, each rounded once.

    float() reads most lines; its result x is the nearest float64. Encoding is monotonic, so that where the codes of x
    and of its two neighbours agree, the number itself, which lies between them, has that code too. Only the other
    lines are looked at one by one: where x is the number, nothing is lost; else the exact path rounds it.
    """
    if rule.rounding is Rounding.hybrid:  # not monotonic
        return _encode_exactly(lines, range(len(lines)), f, rule, random, start)
    numbers, others = _read_floats(lines)
    try:
        codes, below, above = (
            codec.encode(x, f, rule=rule, random=random)
            for x in (numbers, np.nextafter(numbers, -math.inf), np.nextafter(numbers, math.inf))
        )
    except (ValueError, OverflowError):  # nan="raise", overflow="raise"
        return _encode_exactly(lines, range(len(lines)), f, rule, random, start)
    unsure = (codes != below) | (codes != above) | np.isinf(numbers)
    if rule.overflow is Overflow.wrap:
        unsure |= np.abs(numbers) >= _WHOLE
    unsure[others] = False
    left = [i for i in np.flatnonzero(unsure).tolist() if not _is_exactly(lines[i], float(numbers[i]))] + others
    if left:
        codes = codes.copy()
        codes[left] = _encode_exactly(lines, left, f, rule, random, start)
    return codes


_WHOLE = 2.0**52  # from here on, the neighbours of a float64 may be many integers away


def _read_floats(lines: list[bytes]) -> tuple[Codes, list[int]]:
    """Read each line as the nearest float64; also return the places of those that are in no notation of floats."""
    if b"_" not in b"".join(lines):  # Python would read 1_000
        try:
            return np.array([float(line) for line in lines]), []
        except ValueError:
            pass
    numbers, others = np.zeros(len(lines)), []
    for i, line in enumerate(lines):
        try:
            if b"_" in line:
                raise ValueError
            numbers[i] = float.fromhex(line.decode("ascii")) if b"x" in line.lower() else float(line)
        except (ValueError, OverflowError):
            others.append(i)
    return numbers, others


def _is_exactly(line: bytes, number: float) -> bool:
    """Say whether a line that was read as `number` is that number, not just near it."""
    if b"x" in line.lower():
        return bool(parse_number(line) == number)
    try:
        return Decimal(_text(line)) == Decimal(number)
    except InvalidOperation:  # an exponent beyond Decimal's
        return False


def _encode_exactly(
    lines: list[bytes], where: Sequence[int], f: Format, rule: Rule, random: Codes | None, start: int
) -> Codes:
    """Encode the lines at the places `where` through the specification; name the line in the error."""
    texts = np.array([lines[i] for i in where], dtype=object)
    words = None if random is None else random[list(where)]
    try:
        return encode_objects(texts, f, rule, words)
    except (ValueError, OverflowError, TypeError):
        for n, i in enumerate(where):
            try:
                value = parse_number(_text(lines[i]))
                if isinstance(value, tuple):
                    raise ValueError(f"{_text(lines[i])!r:.60} is complex, which {f.name} cannot hold")
                exact.encode(value, f, rule, 0 if words is None else int(words[n]))
            except (ValueError, OverflowError) as error:
                raise _at(error, start + i) from None
        raise


def _at(error: Exception, index: int) -> Exception:
    return type(error)(f"line {index + 1}: {error}")


# --- decode -----------------------------------------------------------------------------------------------------------


def _writer(f: Format, output: str) -> Callable[[Codes], bytes]:
    """Return the function that turns codes into lines."""
    if output.endswith("-bits"):
        target = format(output.removesuffix("-bits"))
        wide = np.dtype(target.name)
        return lambda codes: _hex_lines(codec.decode(codes, f, wide).view(target.code_dtype), target)
    if isinstance(f, (IntFormat, BoolFormat)) and output == "decimal":
        return lambda codes: _lines(map(str, (f.value(c).numerator for c in codes.tolist())))  # type: ignore[union-attr]
    if f.bits <= 16:
        texts: dict[int, str] = {}

        def by_code(codes: Codes) -> bytes:
            for code in set(codes.tolist()) - texts.keys():
                texts[code] = _number_text(f.value(code), output)
            return _lines(map(texts.__getitem__, codes.tolist()))

        return by_code
    if f.bits <= 32 or isinstance(f, FloatFormat):
        return lambda codes: _lines(
            _number_text(x, output) for x in codec.decode(codes, f, np.float64).tolist()
        )
    return lambda codes: _lines(_number_text(f.value(c), output) for c in codes.tolist())


def _lines(texts: Any) -> bytes:
    return ("\n".join(texts) + "\n").encode("ascii")


def _number_text(value: Any, output: str) -> str:
    """Return a number as text; decimal is the shortest that reads back as the same float64."""
    number = float(value)
    if number != number:
        return "-nan" if math.copysign(1.0, number) < 0 else "nan"
    return number.hex() if output == "hex-float" else repr(number)
