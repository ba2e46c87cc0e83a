"""What is proved: a job is one source, target and rule with its oracle, cut into parts that run in any order."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, cast

import boundary
import ml_dtypes
import numpy as np
from oracles import disagreements
from oracles.inputs import exact_values

import bittrue as bt
from bittrue import exact
from bittrue.formats import BoolFormat, FloatFormat, Format, IntFormat, TaperedFormat, floor_log2
from bittrue.rounding import Negative, Overflow, Rounding, Rule

from .steps import BEYOND, DETERMINISTIC, Codes, asker, fill, fill_hybrid

PIECE = 1 << 20
_BLOCK = 1 << 17  # patterns that the codec gets at a time: input and output stay in the second-level cache
P3109 = ("p3109_k8p4se", "p3109_k8p3sf", "p3109_k8p1ue", "p3109_k6p3uf", "p3109_k4p2sf", "p3109_k16p11se")
FLOATS = [f.name for f in bt.formats() if isinstance(f, (FloatFormat, TaperedFormat)) and f.bits <= 16] + list(P3109)
INTS = ("int4", "int8", "uint8", "int16")
NEAREST = Rounding.nearest_even
SOURCES = {name: cast(FloatFormat, bt.format(name)) for name in ("float16", "bfloat16", "float32", "float64")}


class Outcome(NamedTuple):
    """Inputs compared, how many of them differed without and with an entry in the table, and the first of those."""

    inputs: int
    differences: int = 0
    explained: int = 0
    example: str = ""


@dataclass(frozen=True)
class Job:
    """One line of the table."""

    target: str
    rounding: str
    overflow: str
    source: ClassVar[str] = "float32"
    oracle: ClassVar[str] = ""
    parts: ClassVar[int] = 0

    @property
    def key(self) -> str:
        """Name in the file of results."""
        return f"{self.source} -> {self.target}, {self.rounding}, {self.overflow}, {self.oracle}"

    @cached_property
    def format(self) -> Format:
        return bt.format(self.target)

    def check(self, part: int) -> Outcome:
        """Compare one part."""
        raise NotImplementedError(part)


def _words(codes: Codes) -> Codes:
    """Look at several codes as one word where they fill words."""
    whole = codes.flags.c_contiguous and codes.nbytes % 8 == 0
    return codes.view(np.uint64) if whole else codes


def differences(patterns: Codes, got: Codes, want: Codes) -> Outcome:
    """Count, and show the first one."""
    if got.dtype == want.dtype and np.array_equal(_words(got), _words(want)):
        return Outcome(patterns.size)
    wrong = got != want
    if not wrong.any():
        return Outcome(patterns.size)
    at = int(np.argmax(wrong))
    example = f"{int(patterns[at]):#x} gives {int(got[at]):#x} instead of {int(want[at]):#x}"
    return Outcome(patterns.size, int(np.count_nonzero(wrong)), 0, example)


def total(outcomes: Iterator[Outcome]) -> Outcome:
    """Add up."""
    inputs = wrong = explained = 0
    example = ""
    for one in outcomes:
        inputs, wrong, explained = inputs + one.inputs, wrong + one.differences, explained + one.explained
        example = example or one.example
    return Outcome(inputs, wrong, explained, example)


# --- float32: all 2**32 patterns --------------------------------------------------------------------------------------

_COUNT = np.arange(PIECE, dtype=np.uint32)
_local = threading.local()


def _scratch(name: str, dtype: Any) -> Codes:
    """A thread's own buffer of one piece."""
    key = f"{name}{np.dtype(dtype)}"
    if not hasattr(_local, key):
        setattr(_local, key, np.empty(PIECE, dtype))
    return cast(Codes, getattr(_local, key))


def _patterns(first: int, count: int = PIECE) -> Codes:
    return np.add(_COUNT[:count], np.uint32(first), out=_scratch("patterns", np.uint32)[:count])


class Steps(Job):
    """All float32 patterns beside the steps of the specification."""

    oracle = "steps of exact"
    parts = (1 << 32) // PIECE

    def check(self, part: int) -> Outcome:
        fmt, rule = self.format, Rule(rounding=self.rounding, overflow=self.overflow)
        want = _scratch("want", fmt.code_dtype)
        if rule.rounding is Rounding.hybrid:
            fill_hybrid(want, _patterns(part * PIECE), cast(TaperedFormat, fmt), rule.overflow, part * PIECE)
        else:
            fill(want, asker(SOURCES["float32"], fmt, rule), SOURCES["float32"], part * PIECE)
        out = _scratch("got", fmt.storage)[:_BLOCK]

        def compared(at: int) -> Outcome:
            x = _patterns(part * PIECE + at, _BLOCK)
            got = bt.encode(x.view(np.float32), fmt, rule=rule, threads=1, out=out)
            return differences(x, got.view(fmt.code_dtype), want[at : at + _BLOCK])

        return total(compared(at) for at in range(0, PIECE, _BLOCK))


def _ml_dtypes(x: Codes, target: str) -> Codes:
    with np.errstate(all="ignore"):
        return x.view(np.float32).astype(np.dtype(getattr(ml_dtypes, target)))


def _numpy(x: Codes, target: str) -> Codes:
    with np.errstate(all="ignore"):
        return x.view(np.float32).astype(target)


def _torch(x: Codes, target: str) -> Codes:
    torch = import_module("torch")
    torch.set_num_threads(1)
    y = torch.from_numpy(x.view(np.float32)).to(getattr(torch, target))
    return cast(Codes, y.view(torch.uint8 if y.itemsize == 1 else torch.int16).numpy())


_LIBRARIES = {"ml_dtypes": _ml_dtypes, "torch": _torch, "numpy": _numpy}
#: What each library does; e8m0 rounds ties up in both, and torch drops the sign there.
_E8M0 = Rule(rounding=Rounding.nearest_up, overflow=Overflow.infinity)
_RULES = {
    ("ml_dtypes", "float8_e8m0fnu"): _E8M0,
    ("torch", "float8_e8m0fnu"): replace(_E8M0, negative=Negative.magnitude),
    ("torch", "float8_e4m3fn"): Rule(overflow=Overflow.saturate),
}
LIBRARY_TARGETS = {
    "ml_dtypes": [n for n in FLOATS if hasattr(ml_dtypes, n)],
    "numpy": ["float16"],
    "torch": "float16 bfloat16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz float8_e8m0fnu".split(),
}


@dataclass(frozen=True)
class Library(Job):
    """All float32 patterns beside a library, which rounds to nearest; differences need an entry in the table."""

    oracle: str = ""  # type: ignore[misc]  # a field here
    parts = (1 << 32) // PIECE

    def check(self, part: int) -> Outcome:
        fmt, x = self.format, _patterns(part * PIECE)
        rule = _RULES.get((self.oracle, self.target), Rule(overflow=Overflow.infinity))
        theirs = _LIBRARIES[self.oracle](x, self.target).view(fmt.code_dtype)
        ours = bt.encode(x.view(np.float32), fmt, rule=rule, threads=1, out=_scratch("got", fmt.storage))
        bad = np.flatnonzero(theirs != ours)
        if not bad.size:
            return Outcome(PIECE)
        v = exact_values(x[bad].view(np.float32))
        known = np.zeros(bad.size, np.bool_)
        for entry in disagreements.entries(self.oracle, "float32", self.target):
            known |= entry.inputs(v, self.target)
        if self.target in disagreements.NAN_ABOVE:  # any NaN is right
            known |= disagreements.same_nan(theirs[bad], self.target) == disagreements.same_nan(ours[bad], self.target)
        shown = [
            f"{int(x[at]):#x} gives {int(ours[at]):#x}, {self.oracle} {int(theirs[at]):#x}" for at in bad[~known][:1]
        ]
        return Outcome(PIECE, int(np.count_nonzero(~known)), int(np.count_nonzero(known)), "".join(shown))


# --- float16 and bfloat16: all patterns under all rules ---------------------------------------------------------------

_EVERY = np.arange(1 << 16, dtype=np.uint16)
_FLUSHES = [(False, False), (True, True), (True, False), (False, True)]
_NAN_RULES: list[dict[str, Any]] = [{"nan": "keep"}, {"nan": "zero"}, {"nan": "max"}, {"nan_sign": "positive"}]
_FLOAT_OVERFLOWS = ("saturate", "saturate_finite", "infinity", "ieee")


@dataclass(frozen=True)
class Sixteen(Job):
    """All patterns of a 16-bit float under every rule: modes, overflow, NaN, flushing, negative values."""

    source: str = "float16"  # type: ignore[misc]  # a field here
    oracle = "exact"

    @cached_property
    def bases(self) -> list[Rule]:
        """Rules without their overflow and NaN parts."""
        fmt, hybrid = self.format, isinstance(bt.format(self.target), TaperedFormat)
        negatives = [Negative.overflow]
        if isinstance(fmt, FloatFormat) and not fmt.signed:
            negatives.append(Negative.magnitude)
        return [
            Rule(rounding=mode, flush_inputs=i, flush_outputs=o, negative=negative)
            for mode in [*DETERMINISTIC, *[Rounding.hybrid] * hybrid]
            for i, o in (_FLUSHES if mode is NEAREST else _FLUSHES[:2])
            for negative in negatives
        ]

    @property
    def parts(self) -> int:  # type: ignore[override]
        return len(self.bases)

    def check(self, part: int) -> Outcome:
        return total(self._compare(self.bases[part]))

    @cached_property
    def _holds(self) -> bool:
        """Whether the target holds every finite value of the source, so that no mode has anything to decide."""
        source, fmt = SOURCES[self.source], self.format
        ask = asker(source, fmt, Rule(overflow=Overflow.raise_))
        if isinstance(fmt, (IntFormat, BoolFormat, TaperedFormat)) or fmt.bits < 16:
            return False
        finite = [u for u in range(1 << 16) if not source.is_nan(u) and u & 0x7FFF != source.inf_magnitude]
        return all((code := ask(u)) != BEYOND and fmt.value(code) == source.value(u) for u in finite)

    def _codes(self, rule: Rule) -> Codes:
        """Return the code of every pattern, or BEYOND, by the specification; the rule raises on overflow."""
        source, fmt = SOURCES[self.source], self.format
        ask, size = asker(source, fmt, rule), np.int64 if fmt.bits < 63 else object
        if rule.rounding is Rounding.hybrid:  # no steps
            return np.array([ask(u) for u in range(1 << 16)], size)
        if self._holds and rule.rounding is not NEAREST:
            return self._codes(replace(rule, rounding=NEAREST))
        if rule not in self._kept:
            codes = np.empty(1 << 16, size)
            fill(codes, ask, source, 0)
            if not self._holds:
                return codes
            self._kept[rule] = codes
        return self._kept[rule]

    @cached_property
    def _kept(self) -> dict[Rule, Codes]:
        return {}

    def _compare(self, base: Rule) -> Iterator[Outcome]:
        source, fmt = SOURCES[self.source], self.format
        raising = replace(base, overflow=Overflow.raise_)
        codes = self._codes(raising)
        beyond = codes == BEYOND
        x = _EVERY.view(np.float16 if self.source == "float16" else ml_dtypes.bfloat16)
        with np.errstate(invalid="ignore"):  # signalling NaNs
            nan, infinite, zero, negative = np.isnan(x), np.isinf(x), x == 0, np.signbit(x)

        def encode(rule: Rule, chosen: Codes) -> Codes:
            return np.asarray(bt.encode(x[chosen], fmt, rule=rule)).view(fmt.code_dtype)

        # Flushing speaks of floats only, wrapping of integers only; otherwise every overflow rule with every NaN rule.
        for overflow in (*_FLOAT_OVERFLOWS, *["wrap"] * isinstance(fmt, (IntFormat, BoolFormat))):
            rule = replace(base, overflow=Overflow(overflow))
            want = codes.copy()
            if overflow == "wrap" and isinstance(fmt, IntFormat):
                want[beyond] = [_wrapped(source, fmt, rule, int(u)) for u in _EVERY[beyond]]
            else:
                ask = asker(source, fmt, rule)
                for sign in (negative, ~negative):
                    for kind in (zero, infinite, ~(zero | infinite | nan)):
                        chosen = np.flatnonzero((beyond | infinite) & kind & sign)
                        if chosen.size:  # one answer for all, if `exact` says the same of the nearest and the farthest
                            ends = {ask(int(chosen[0])), ask(int(chosen[-1]))}
                            each = [ask(int(u)) for u in chosen] if len(ends) > 1 else ends.pop()
                            want[chosen] = each
            for changes in _NAN_RULES:
                full = replace(rule, **changes)
                for sign, value in ((negative, -float("nan")), (~negative, float("nan"))):
                    want[nan & sign] = exact.encode(value, fmt, full, source=source)
                yield differences(_EVERY, encode(full, _EVERY >= 0), want.astype(fmt.code_dtype))
        strict = replace(raising, nan="raise")  # type: ignore[arg-type]
        usable = ~beyond & ~nan
        yield differences(_EVERY[usable], encode(strict, usable), codes[usable].astype(fmt.code_dtype))
        for chosen, error in ((beyond & ~nan, OverflowError), (nan, ValueError)):
            for at in np.flatnonzero(chosen)[:: max(1, np.count_nonzero(chosen) // 64)]:
                raised = _raises(lambda at=at: encode(strict, _EVERY == at), error) or isinstance(fmt, BoolFormat)
                yield Outcome(1, int(not raised), 0, "" if raised else f"{int(at):#x} raises no {error.__name__}")


def _raises(call: Any, error: type[Exception]) -> bool:
    try:
        call()
    except error:
        return True
    return False


def _wrapped(source: FloatFormat, fmt: IntFormat, rule: Rule, pattern: int) -> int:
    return exact.encode(source.value(pattern), fmt, rule, source=source)


# --- float64 ----------------------------------------------------------------------------------------------------------

FLOAT64_TARGETS = [*FLOATS, "tfloat32"]


def _table(target: str) -> boundary.Boundaries:
    """A thread's own table: it holds the numbers that were placed last."""
    if getattr(_local, "target", None) != target:
        _local.target, _local.table = target, boundary.Boundaries(cast(Any, bt.format(target)))
    return cast(boundary.Boundaries, _local.table)


class _Float64(Job):
    source = "float64"
    oracle = "sorted values, searched"

    def inputs(self, part: int) -> Codes:
        raise NotImplementedError(part)

    def rules(self) -> list[Rule]:
        raise NotImplementedError

    def check(self, part: int) -> Outcome:
        x = self.inputs(part)
        table = _table(self.target)
        table.place(x)
        return total(
            differences(x.view(np.uint64), bt.encode(x, self.format, rule=rule).view(self.format.code_dtype), want)
            for rule in self.rules()
            for want in [table.encode(rule)]
        )


class Neighbours(_Float64):
    """Every value and midpoint of the target, one ulp either side, both signs, in all modes and overflow rules."""

    parts = 1

    def inputs(self, part: int) -> Codes:
        return boundary.neighbourhood(cast(Any, self.format), np.float64)

    def rules(self) -> list[Rule]:
        return [Rule(rounding=m, overflow=o) for m in DETERMINISTIC for o in _FLOAT_OVERFLOWS]


class Sample(_Float64):
    """Random float64 of the target's range and a little beyond; a third of them with few bits, so that ties occur."""

    @property
    def parts(self) -> int:  # type: ignore[override]
        return 100 if self.rounding == NEAREST else 10

    def inputs(self, part: int) -> Codes:
        fmt, n = cast(FloatFormat, self.format), 10**6
        rng = np.random.default_rng([zlib.crc32(self.target.encode()), part])
        low, high = floor_log2(fmt.min_subnormal) - 3, floor_log2(fmt.max) + 2
        fraction = rng.integers(0, 1 << 52, n, np.uint64)
        short = np.uint64(1) << rng.integers(30, 52, n // 3).astype(np.uint64)
        fraction[: n // 3] &= ~(short - np.uint64(1))
        significand = (fraction | np.uint64(1023 << 52)).view(np.float64)
        x = np.ldexp(significand, rng.integers(max(low, -1060), min(high, 1022) + 1, n))
        return np.where(rng.random(n) < 0.5, -x, x)

    def rules(self) -> list[Rule]:
        modes = [NEAREST] if self.rounding == NEAREST else [m for m in DETERMINISTIC if m is not NEAREST]
        return [Rule(rounding=m, overflow=Overflow(self.overflow)) for m in modes]


class Midpoints(Job):
    """Every midpoint of float32 neighbours and one float64 ulp either side: the codes follow from its place."""

    source = "float64"
    oracle = "by construction"
    parts = (1 << 31) // PIECE - (1 << 23) // PIECE  # finite magnitudes

    def check(self, part: int) -> Outcome:
        few = _BLOCK // 4  # for the cache, too: float64, six numbers for each pattern
        return total(self._compare(_patterns(part * PIECE + at, few)) for at in range(0, PIECE, few))

    def _compare(self, lower: Codes) -> Outcome:
        low, step = lower.view(np.float32).astype(np.float64), (lower + np.uint32(1)).view(np.float32)
        with np.errstate(over="ignore"):
            high = np.where(np.isinf(step), 2.0**128, step.astype(np.float64))
        middle = ((low + high) / 2).view(np.uint64)  # above zero: the next pattern is the next value
        rule, top = Rule(rounding=self.rounding), np.uint32(0x7F7FFFFF)
        odd = lower & np.uint32(1)
        outcomes = []
        for negative in (False, True):
            for rest, bits in ((1, middle - np.uint64(1)), (2, middle), (3, middle + np.uint64(1))):
                up = [int(exact.round_up(rule.rounding, is_odd, negative, rest, 4)) for is_odd in (False, True)]
                want = np.minimum(lower + np.uint32(up[0]) + odd * np.uint32((up[1] - up[0]) % (1 << 32)), top)
                if negative:
                    want, bits = want | np.uint32(1 << 31), bits | np.uint64(1 << 63)
                got = bt.encode(bits.view(np.float64), "float32", rule=rule, threads=1).view(np.uint32)
                outcomes.append(differences(bits, got, want))
        return total(iter(outcomes))


# --- the list ---------------------------------------------------------------------------------------------------------


def jobs() -> list[Job]:
    """Return all jobs, the most telling for their time first."""
    hardware = ["nearest_away", "odd", "trunc", "floor", "ceil"]
    modes = hardware + [m.value for m in DETERMINISTIC if m is not NEAREST and m.value not in hardware]
    names = [f.name for f in bt.formats() if f.kind != "complex"] + list(P3109)
    wide = [name for name in names if bt.format(name).bits > 8 and bt.format(name).kind != "int"]  # these take minutes
    narrow = [name for name in names if name not in wide]
    infinite = ("float16", "float8_e5m2", "float8_e4m3fn", "hifloat8")

    def steps(names: Iterable[str], modes: Iterable[str], overflow: str = "saturate") -> list[Job]:
        return [Steps(name, mode, overflow) for mode in modes for name in names]

    def library(name: str) -> list[Job]:
        return [Library(target, "nearest_even", "its own", name) for target in LIBRARY_TARGETS[name]]

    def sixteen(names: Iterable[str]) -> list[Job]:
        return [Sixteen(name, "all", "all", source) for source in ("float16", "bfloat16") for name in names]

    def random(mode: str) -> list[Job]:
        return [Sample(name, mode, "infinity") for name in FLOAT64_TARGETS]

    return [
        *steps(FLOATS, ["nearest_even"]),
        *steps(["hifloat8"], ["hybrid"]),
        *(Neighbours(name, "all", "all") for name in FLOAT64_TARGETS),
        *steps(FLOATS, modes[:3]),
        *library("torch"),
        *sixteen(narrow),
        *steps(FLOATS, modes[3:5]),
        *sixteen(wide),
        *library("ml_dtypes"),
        *library("numpy"),
        *random("nearest_even"),
        *steps(FLOATS, modes[5:]),
        *steps(["hifloat8"], ["hybrid"], "infinity"),
        *random("the others"),
        *(job for overflow in _FLOAT_OVERFLOWS[1:] for job in steps(FLOATS, ["nearest_even"], overflow)),
        *steps(infinite, modes, "ieee"),
        *steps(INTS, ["nearest_even", *modes]),
        *(Midpoints("float32", m.value, "saturate") for m in DETERMINISTIC),
    ]
