"""`diagnose`: which rule, layout or parameter explains what a device made of an input."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array import Array
from ..blocks.array import BlockArray
from ..codes import bit_patterns
from ..comparison.sides import as_array
from ..files import RAW_SUFFIXES, FileError, load
from ..formats import ComplexFormat, Format
from ..formats import format as find_format
from ..packing import packed_size, unpack
from .candidates import Candidate, candidates, fitted
from .case import Case, as_rows, facts, plain_nan, telling_rows
from .probes import probe_case
from .result import Diagnosis, Explanation, Separation
from .slips import NONE, Slip, slips
from .targets import check_target

__all__ = ["Diagnosis", "Explanation", "Separation", "diagnose"]

Codes = np.ndarray[Any, Any]
Progress = Callable[[str, int, int], object]

_ALL_AT_ONCE = 1 << 17  # elements up to which every candidate sees everything
_SAMPLE = 1 << 15
_PIECE = 1 << 20
_KEPT = 160  # candidates that see everything after a sample
_CLOSE = 0.9
_LISTED = 10
_FAR_FETCHED = 25  # a rule whose prior is so much worse does not make a simple explanation ambiguous


def diagnose(
    x: Any,
    actual: Any,
    to: Format | str | None = None,
    target: str | None = None,
    *,
    format: Format | str | None = None,
    shape: Sequence[int] | None = None,
    scale: Any = None,
    zero_point: Any = None,
    axis: int = -1,
    shift: int | None = None,
    deqscale: float | None = None,
    mode: Any = None,
    quant: Any = None,
    relu: bool = False,
    nan: str = "equal",
    progress: Progress | None = None,
) -> Diagnosis:
    """Find the rule, and the layout slip if there is one, that turns an input into what a device produced.

    Parameters
    ----------
    x : array_like, Array or path
        The input of the conversion. (Fixpipe: the accumulators, [m, n].)
    actual : array_like of codes, Array, bytes or path
        What the device produced: codes of `to`, one per element, or the bytes of its memory image.
    to : Format or name
        The format that `actual` should have; by default that of an Array or of a typed dtype.
    target : str, optional
        "ascend:950", "ascend:a2" ..., "aie:aie-ml" ...: its own modes, control states and open questions are tried
        before everything else.
    format, shape : optional
        Format and shape of `x` where it is a raw file; `format` also where an array holds codes.
    scale, zero_point, axis : optional
        The quantisation parameters that should have been used, as in `bittrue.encode`.
    shift : int, optional
        AI Engine: the shift of the accumulators.
    deqscale : float, optional
        Ascend: the scale of a dequantising cast.
    mode, quant, relu : optional
        Ascend Fixpipe: the quantisation mode, its parameter word(s) or `QuantParam`, and whether ReLU was on.
    nan : {"equal", "code"}
        Whether any NaN explains a NaN.
    progress : callable, optional
        Called with (text, candidates done, candidates in total).

    Returns
    -------
    Diagnosis
        Explanations by the number of elements they explain; true when one explains all. Printing it says what was
        found, what else is possible, and which input decides.

    Raises
    ------
    ValueError
        When the sizes do not fit each other or the format; unknown names.

    Notes
    -----
    Tried are: every rounding mode with the overflow, NaN and flushing rules that the input can tell apart; the target's
    own rules; two roundings through float32, tfloat32, float16 or bfloat16; adding half a unit to the bits; other
    formats of the same width; an exponent bias off by one; faults in scale and zero point, any scale that fits; each as
    it is and with every layout slip: swapped nibbles, byte orders, transposition, NZ, ZZ, ZN and tiles against rows,
    sign and magnitude against two's complement. Above 2**17 elements a sample chooses the candidates that see all.

    Examples
    --------
    >>> import numpy as np, bittrue as bt
    >>> x = np.linspace(-400, 400, 2001, dtype=np.float32)
    >>> dump = bt.array(x, "float8_e4m3fn", rounding="floor")
    >>> print(diagnose(x, dump).headline())
    EXPLAINED: floor (2001 of 2001 elements)
    """
    if nan not in ("equal", "code"):
        raise ValueError(f"nan={nan!r} must be 'equal' or 'code'")
    if target is not None:
        check_target(target)
    values, source = _input(x, format, shape)
    if isinstance(actual, BlockArray):
        values = np.ascontiguousarray(np.moveaxis(values, actual.axis, -1))
    dump, f = _dump(actual, to, values, mode, quant)
    options = {"shift": shift, "deqscale": deqscale, "mode": mode, "quant": quant, "relu": relu}
    _check_options(options, target, values)
    rows, scale, zero_point = as_rows(values, scale, zero_point, axis, f.kind != "block")
    case = Case(rows, source, f, scale, zero_point, options)
    search = _Search(case, dump, values.shape, target, nan == "equal", progress)
    return search.run()


# --- arguments --------------------------------------------------------------------------------------------------------


def _input(x: Any, fmt: Any, shape: Any) -> tuple[Codes, Format]:
    """Return values in a dtype that `encode` takes, and their format."""
    given = None if fmt is None else find_format(fmt)
    if isinstance(x, (str, os.PathLike)):
        x = _one(x, given, shape)
    array = as_array(x, "x", given)
    if isinstance(array.format, ComplexFormat) or array.format.kind == "block":
        raise ValueError(f"x has format {array.format.name}; diagnose takes real numbers")
    if array.size == 0:
        raise ValueError("x has no elements; there is nothing to diagnose")
    return np.ascontiguousarray(array.exact_values()).reshape(array.shape), array.format


def _one(path: Any, fmt: Format | None, shape: Any) -> Any:
    found = load(path, format=fmt if str(path).lower().endswith((".npy", *RAW_SUFFIXES)) else None,
                 shape=None if shape is None else tuple(shape))
    if isinstance(found, dict):
        if len(found) != 1:
            raise ValueError(f"{path}: has {len(found)} tensors; diagnose takes one (load the file and choose)")
        found = next(iter(found.values()))
    return found


def _dump(actual: Any, to: Any, x: Codes, mode: Any, quant: Any) -> tuple[Codes, Format]:
    """Return the codes in the shape of the input, and their format."""
    f = None if to is None else find_format(to)
    if isinstance(actual, (str, os.PathLike)):
        actual = _read_dump(os.fspath(actual), f)
    if isinstance(actual, (bytes, bytearray, memoryview)):
        actual = np.frombuffer(actual, np.uint8)
    if f is None:
        if isinstance(actual, (Array, BlockArray)):
            f = actual.format
        else:
            try:
                f = find_format(np.asarray(actual).dtype)
            except ValueError:
                raise ValueError("to=None: the format of actual is not known; give it") from None
            if f.name == "uint8" and not (mode or quant):
                raise ValueError("to=None: actual holds bytes; give the format of its codes")
    if isinstance(f, ComplexFormat):
        raise ValueError(f"to={f.name!r}: complex formats are not diagnosed; take real and imaginary parts")
    if f.kind == "block":
        data = np.ascontiguousarray(actual.codes if isinstance(actual, (Array, BlockArray)) else actual)
        if data.dtype != np.uint8:
            raise ValueError(f"actual has dtype {data.dtype}; blocks of {f.name} are bytes (uint8)")
        lines = x.reshape(-1, x.shape[-1]) if x.ndim else x.reshape(1, 1)
        blocks = f.blocks(lines.shape[1])  # type: ignore[attr-defined]
        expected = lines.shape[0] * blocks * f.block_bytes  # type: ignore[attr-defined]
        if data.size != expected:
            raise ValueError(f"actual has {data.size} bytes; {x.shape} elements in {f.name} take {expected}")
        return data.reshape(-1), f
    codes = _codes(actual, f, x.size)
    if codes.size != x.size:
        raise ValueError(f"actual has {codes.size} elements, x has {x.size} {x.shape}")
    return np.ascontiguousarray(codes).reshape(x.shape), f


def _read_dump(path: str, f: Format | None) -> Any:
    if path.lower().endswith(RAW_SUFFIXES):
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError as error:
            raise FileError(f"{path}: {error.strerror}") from None
    try:
        return _one(path, f, None)
    except FileError:
        if f is None:
            raise
        return _one(path, None, None)


def _codes(actual: Any, f: Format, elements: int) -> Codes:
    """Return codes of what may be codes or the bytes of a memory image."""
    if isinstance(actual, Array):
        if actual.format == f:
            return actual.codes
        if actual.format.code_dtype.itemsize == f.code_dtype.itemsize and actual.format.kind in ("int", "bool"):
            actual = bit_patterns(actual.codes, actual.format)
        else:
            raise ValueError(f"actual has format {actual.format.name}, but to={f.name!r} is given")
    data = np.asarray(actual)
    if data.dtype == np.uint8 and (data.size != elements or f.storage.itemsize > 1):
        size = packed_size(elements, f.bits) if f.bits < 8 else elements * f.storage.itemsize
        if data.size == size:
            raw = np.ascontiguousarray(data).reshape(-1)
            if f.bits < 8:
                return unpack(raw, f.bits, elements)
            return raw.view(f.storage.newbyteorder("<")).astype(f.storage, copy=False)
        unit = "bytes" if f.bits < 8 or f.storage.itemsize > 1 else "elements"
        raise ValueError(f"actual has {data.size} {unit}; {elements} elements of {f.name} take {size} bytes")
    if isinstance(actual, np.ndarray):  # of a list, the dtype means nothing
        actual = data if data.dtype.kind != "i" or f.storage.kind == "i" else data.view(f"u{data.itemsize}")
    return as_array(actual, "actual", f).codes


def _check_options(options: dict[str, Any], target: str | None, values: Codes) -> None:
    vendor = "" if target is None else target.partition(":")[0].casefold()
    for name, owner in (("shift", "aie"), ("deqscale", "ascend"), ("quant", "ascend"), ("mode", "ascend")):
        if options[name] is not None and vendor != owner:
            raise ValueError(f"{name}={options[name]!r} is for target '{owner}:...', not for target={target!r}")
    if options["quant"] is not None and options["mode"] is None:
        raise ValueError("quant= needs mode=, the quantisation mode, such as 'REQ8'")
    if options["mode"] is not None:
        _check_fixpipe(options, str(target), values)


def _check_fixpipe(options: dict[str, Any], target: str, acc: Codes) -> None:
    """Refuse what Fixpipe would: the rules that are tried say only that they do not apply."""
    from ..ascend import fixpipe, parse_target, quant_mode

    try:
        quant_mode(options["mode"])
    except ValueError:
        raise ValueError(
            f"mode={options['mode']!r} is not a quantisation mode of Fixpipe, such as 'REQ8'; for a cast leave it out, "
            f"since every mode is tried"
        ) from None
    fixpipe(acc[:1], options["mode"], options["quant"], options["relu"], parse_target(target))


# --- search -----------------------------------------------------------------------------------------------------------


class _Found(NamedTuple):
    """A candidate with the slip under which it matches best."""

    matches: int
    prior: int
    candidate: Candidate
    slip: Slip

    @property
    def name(self) -> str:
        return f"{self.candidate.name}, {self.slip.name}" if self.slip.name else self.candidate.name


class _Search:
    """One diagnosis on its way."""

    def __init__(
        self, case: Case, dump: Codes, shape: tuple[int, ...], target: str | None, equal_nan: bool, progress: Any
    ) -> None:
        self._case, self._shape, self._target = case, shape, target
        self._equal_nan, self._progress = equal_nan, progress
        f = case.to
        self._slips = [NONE, *slips(f, shape)]
        width = -1 if f.kind == "block" else case.x.shape[1]
        self._width = width if width > 0 else dump.size // max(case.x.shape[0], 1)
        self._dump = dump
        self._dumps = [self._plain(s.undo(dump, f)).reshape(-1, self._width) for s in self._slips]
        self._facts = facts(case)
        self.tried = 0

    def _plain(self, codes: Codes) -> Codes:
        """Return codes as unsigned patterns: as floats, NaNs would be equal to nothing, and -0 to 0."""
        f = self._case.to
        plain = plain_nan(codes, f) if self._equal_nan else codes
        return plain if f.kind == "block" else plain.view(f.code_dtype)

    def run(self) -> Diagnosis:
        """Try everything, rank it, and look for inputs that decide."""
        case, whole = self._case, self._case
        dumps, rows = self._dumps, case.x.shape[0]
        sampled = case.x.size > _ALL_AT_ONCE and rows > 1
        if sampled:
            pick = telling_rows(case, max(1, min(rows, _SAMPLE // max(case.x.shape[1], 1))))
            case, dumps = case.rows(pick), [d[pick] for d in dumps]
        found = self._count_all(case, dumps, list(candidates(case, self._facts, self._target)))
        if not found:
            raise ValueError(f"no rule turns {case.source.name} into {case.to.name}")
        if max(f.matches for f in found) < dumps[0].size:
            found += self._count_all(case, dumps, list(self._fitted(case, dumps)))
        found.sort(key=lambda f: (-f.matches, f.prior))
        if sampled:
            top = found[0].matches
            chosen = [f for f in found if f.matches >= top - top // 1000][:_KEPT]
            found = self._recount(whole, chosen)
        return self._diagnosis(whole, found)

    def _fitted(self, case: Case, dumps: list[Codes]) -> Iterator[Candidate]:
        if case.to.kind != "block" and case.options.get("quant") is None:
            yield from fitted(case, dumps[0])

    def _count_all(self, case: Case, dumps: list[Codes], tried: list[Candidate]) -> list[_Found]:
        """Return every candidate with its best slip."""
        found, seen = [], {}
        for k, candidate in enumerate(tried):
            if self._progress is not None:
                self._progress(candidate.name, k, len(tried))
            expected = self._expected(candidate, case)
            if expected is None or expected.size != dumps[0].size:
                continue
            self.tried += len(dumps)
            expected = expected.reshape(dumps[0].shape)
            key = hash(expected.tobytes())
            if key not in seen:
                seen[key] = [int(np.count_nonzero(expected == dump)) for dump in dumps]
            counts = seen[key]
            best = max(range(len(counts)), key=lambda i: (counts[i], -i))
            found.append(_Found(counts[best], candidate.prior + 10 * (best > 0), candidate, self._slips[best]))
        return found

    def _expected(self, candidate: Candidate, case: Case) -> Codes | None:
        """Return the codes that a candidate expects; None where the rule does not exist for this conversion."""
        try:
            with np.errstate(all="ignore"):
                return self._plain(np.asarray(candidate.make(case)))
        except (ValueError, TypeError, OverflowError):
            return None

    def _recount(self, case: Case, chosen: list[_Found]) -> list[_Found]:
        """Count again, over everything, in pieces."""
        step = max(1, _PIECE // max(case.x.shape[1], 1))
        found = []
        for f in chosen:
            dump = self._dumps[self._slips.index(f.slip)]
            matches = 0
            for start in range(0, case.x.shape[0], step):
                part = case.rows(slice(start, start + step))
                expected = self._expected(f.candidate, part)
                if expected is not None:
                    piece = dump[start : start + step]
                    matches += int(np.count_nonzero(expected.reshape(piece.shape) == piece))
            found.append(f._replace(matches=matches))
        return sorted(found, key=lambda f: (-f.matches, f.prior))

    # --- verdict ------------------------------------------------------------------------------------------------------

    def _diagnosis(self, case: Case, found: list[_Found]) -> Diagnosis:
        elements, best = self._dump.size, found[0]
        ties = [f for f in found if f.matches == best.matches]
        probes = probe_case(case)
        answers = {id(f): self._expected(f.candidate, probes) for f in ties}
        groups: list[list[_Found]] = []
        for f in ties:
            for group in groups:
                if f.slip is group[0].slip and _equal(answers[id(f)], answers[id(group[0])]):
                    group.append(f)
                    break
            else:
                groups.append([f])
        complete = best.matches == elements
        ratio = best.matches / elements
        others = groups[1:] if complete else []
        likely = [g for g in others if g[0].prior < best.prior + _FAR_FETCHED]
        if complete:
            verdict = "ambiguous" if likely else "explained"
        else:
            verdict = "close" if ratio >= _CLOSE else "unexplained"
        rivals = [self._explanation(g[0], g[1:]) for g in likely]
        unlikely = [self._explanation(g[0], g[1:]) for g in others if g not in likely]
        listed = [self._explanation(g[0], g[1:]) for g in groups]
        listed += [self._explanation(f, []) for f in found if f.matches < best.matches][: _LISTED]
        separating = []
        if others:
            separating = _separate([groups[0], *likely] if likely else groups[:2], answers, probes)
        elif verdict != "unexplained":
            second = next((f for f in found if f.matches < best.matches), None)
            separating = [] if second is None else self._deciding(case, best, second)
        return Diagnosis(
            verdict, case.to.name, self._target or "", elements, self.tried, listed[: _LISTED + 1], rivals, unlikely,
            separating, [] if complete else self._left(case, best), self._notes(case, complete),
        )

    def _explanation(self, f: _Found, same: list[_Found]) -> Explanation:
        about = f.candidate.about
        if f.slip.name:
            about += f"; {f.slip.about}"
        return Explanation(
            f.name, about, f.candidate.name, f.slip.name, f.matches, self._dump.size, f.candidate.rule,
            [s.name for s in same],
        )

    def _notes(self, case: Case, complete: bool) -> list[str]:
        notes = []
        cast = case.to.kind != "block" and case.options.get("quant") is None
        untested = self._facts.untested(case.to) if cast else []
        if untested:
            notes.append("the input does not test: " + "; ".join(untested))
        with np.errstate(invalid="ignore"):
            distinct = np.unique(case.x[: 1 << 10].astype(np.float64)).size
        if complete and distinct * min(float(case.to.bits), 8.0) < math.log2(max(self.tried, 2)) + 30:
            notes.append(f"only {distinct} different inputs: another rule may fit by chance")
        return notes

    def _index(self, at: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(at, self._shape)) if self._shape else ()

    def _pieces(self, case: Case, f: _Found) -> Iterator[tuple[int, Case, Codes, Codes]]:
        """Yield (first row, case, expected, dump) piece by piece."""
        dump = self._dumps[self._slips.index(f.slip)]
        step = max(1, _PIECE // max(case.x.shape[1], 1))
        for start in range(0, case.x.shape[0], step):
            part = case.rows(slice(start, start + step))
            expected = self._expected(f.candidate, part)
            piece = dump[start : start + step]
            if expected is not None:
                yield start, part, expected.reshape(piece.shape), piece

    def _left(self, case: Case, best: _Found) -> list[tuple[tuple[int, ...], str, str, str]]:
        """Return the first elements that the best explanation leaves."""
        if case.to.kind == "block":
            return []
        left: list[tuple[tuple[int, ...], str, str, str]] = []
        for start, part, expected, dump in self._pieces(case, best):
            for at in np.flatnonzero((expected != dump).reshape(-1))[: 5 - len(left)].tolist():
                left.append((
                    self._index(start * self._width + at), _number(part.x.reshape(-1)[at]),
                    _code(expected.reshape(-1)[at], case.to), _code(dump.reshape(-1)[at], case.to),
                ))
            if len(left) >= 5:
                break
        return left

    def _deciding(self, case: Case, best: _Found, second: _Found) -> list[Separation]:
        """Return an element of the data on which the best is right and the second is not."""
        if case.to.kind == "block" or best.slip is not second.slip:
            return []
        for start, part, expected, dump in self._pieces(case, best):
            other = self._expected(second.candidate, part)
            if other is None:
                continue
            other = other.reshape(expected.shape)
            hits = np.flatnonzero(((expected == dump) & (other != dump)).reshape(-1))
            if hits.size:
                at = int(hits[0])
                names = {best.name: _code(expected.reshape(-1)[at], case.to),
                         second.name: _code(other.reshape(-1)[at], case.to)}
                number = part.x.reshape(-1)[at]
                return [Separation(
                    _number(number), _pattern(number), self._index(start * self._width + at), names,
                    _code(dump.reshape(-1)[at], case.to),
                )]
        return []


def _equal(a: Codes | None, b: Codes | None) -> bool:
    return a is not None and b is not None and a.shape == b.shape and bool(np.array_equal(a, b))


def _separate(groups: list[list[_Found]], answers: dict[int, Codes | None], probes: Case) -> list[Separation]:
    """Return a small set of probes that tells the best from every rival (greedy; for one rival it is one probe)."""
    best = answers[id(groups[0][0])]
    if best is None:
        return []
    rows = probes.x.shape[0]
    base = best.reshape(rows, -1)
    differs: dict[int, Codes] = {}
    for k, group in enumerate(groups[1:], 1):
        other = answers[id(group[0])]
        if other is not None and other.size == best.size and group[0].slip is groups[0][0].slip:
            apart = (other.reshape(rows, -1) != base).any(axis=1)
            if apart.any():
                differs[k] = apart
    found: list[Separation] = []
    while differs and len(found) < 8:
        votes = np.sum(list(differs.values()), axis=0)
        at = int(np.argmax(votes))  # the simplest comes first
        split = [k for k, apart in differs.items() if apart[at]]
        expected = {groups[0][0].name: _cell(base[at], probes.to)}
        for k in split[:4]:
            other = answers[id(groups[k][0])]
            assert other is not None
            expected[groups[k][0].name] = _cell(other.reshape(rows, -1)[at], probes.to)
        line = probes.x[at]
        one = line.size == 1 or probes.to.kind != "block"
        text = _number(line[0]) if one else f"[{', '.join(_number(v) for v in line)}]"
        found.append(Separation(text, _pattern(line[0]) if one else "", None, expected))
        differs = {k: apart for k, apart in differs.items() if k not in split}
    return found


def _cell(codes: Codes, f: Format) -> str:
    return codes.astype(np.uint8).tobytes().hex() if f.kind == "block" else _code(codes[0], f)


def _number(value: Any) -> str:
    item = value.item() if hasattr(value, "item") else value
    return str(item) if isinstance(item, (int, bool)) else f"{float(item):.9g}"


def _pattern(value: Any) -> str:
    v = np.asarray(value).reshape(1)
    size = v.dtype.itemsize
    return "" if v.dtype.kind in "iub" else f"{int(v.view(f'u{size}')[0]):#0{2 + 2 * size}x}"


def _code(code: Any, f: Format) -> str:
    v = np.asarray(code).reshape(1)
    v = v.astype(f.storage) if v.dtype.kind == "i" and f.storage.kind != "i" else v
    return f"{int(v.view(f'u{v.dtype.itemsize}')[0]) & ((1 << f.bits) - 1):#0{2 + -(-f.bits // 4)}x}"
