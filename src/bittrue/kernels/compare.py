"""Loops that compare two arrays of codes: where they differ, in which pairs, where that is, and by how much.

They know plain arrays and numbers, no format. Positions come in ascending order, so that no loop divides per element.
"""

from typing import Any

import numpy as np

from .compiled import kernel
from .ops import leading_zeros

__all__ = [
    "BUCKETS",
    "COUNTS",
    "NO_STEPS",
    "SUMS",
    "different",
    "distances",
    "errors",
    "gather",
    "locate",
    "pairs",
    "rank_distances",
    "unlike",
    "unlike_wide",
]

#: Entries of `sums` and `counts` of `errors`. A sum is followed by its compensation.
SUMS = ("absolute", "", "relative", "", "square", "", "steps", "", "max_absolute", "max_relative")
COUNTS = ("elements", "unordered")

#: Entries of a histogram of distances: none, 1, 2, 3-4, 5-8 ... up to 2**64, and those between a NaN and a number.
BUCKETS = 67

_RUN = 16  # 64-bit words that are looked at together; equal ones cost one test
_BLOCK = 256  # elements per block of a sum; blocks are added with compensation
NO_STEPS = 0xFFFF_FFFF_FFFF_FFFF  # the distance between a NaN and a number


@kernel
def different(golden: Any, actual: Any, golden_words: Any, actual_words: Any, where: Any) -> int:
    """Write the positions (int32) at which two arrays of one unsigned type differ, and return their number.

    `golden_words` and `actual_words` view as many elements as fill 64-bit words; `where` has room for one position more
    than there are elements.
    """
    count = 0
    per_word = 8 // golden.itemsize
    words = golden_words.size // _RUN * _RUN
    for start in range(0, words, _RUN):
        seen = np.uint64(0)
        for w in range(start, start + _RUN):
            seen |= golden_words[w] ^ actual_words[w]
        if seen:
            for w in range(start, start + _RUN):
                if golden_words[w] != actual_words[w]:
                    first = w * per_word
                    for i in range(first, first + per_word):
                        where[count] = i
                        count += golden[i] != actual[i]
    for i in range(words * per_word, golden.size):
        where[count] = i
        count += golden[i] != actual[i]
    return count


@kernel
def unlike_wide(
    golden: Any, actual: Any, where: Any, sign: int, finite: int, nan_alike: bool, zero_alike: bool, zeros: Any
) -> int:
    """As `unlike`, for sign and magnitude codes of which magnitudes above `finite` are NaN."""
    count = 0
    minus, top = np.uint64(sign), np.uint64(finite)
    for k in range(where.size):
        at = where[k]
        a, b = np.uint64(golden[at]), np.uint64(actual[at])
        zero = minus != 0 and (a | b) == minus and (a & b) == 0
        zeros[0] += zero
        same = (zero and zero_alike) or (nan_alike and (a & ~minus) > top and (b & ~minus) > top)
        where[count] = at
        count += not same
    return count


@kernel
def gather(values: Any, where: Any, out: Any) -> None:
    """``out[k] = values[where[k]]``."""
    for k in range(where.size):
        out[k] = values[where[k]]


@kernel
def rank_distances(golden: Any, actual: Any, ranks: Any, nan: int, steps: Any) -> None:
    """Write the number of steps (uint64) between codes whose `ranks` (int32) a table has; NaN has rank `nan`."""
    for i in range(golden.size):
        a, b = ranks[golden[i]], ranks[actual[i]]
        apart = np.uint64(abs(np.int64(a) - np.int64(b)))
        steps[i] = np.uint64(NO_STEPS) if (a == nan) != (b == nan) else apart


@kernel
def unlike(golden: Any, actual: Any, where: Any, alike: Any, minus: int, zeros: Any) -> int:
    """Keep of the positions `where` those whose codes differ in ``alike[code]``; return how many, moved to the front.

    `minus` is the code of -0, 0 without one; ``zeros[0]`` counts the positions with +0 on one side and -0 on the other.
    """
    count = 0
    for k in range(where.size):
        at = where[k]
        a, b = golden[at], actual[at]
        where[count] = at
        count += alike[a] != alike[b]
        zeros[0] += (np.int64(a) | np.int64(b)) == minus and (np.int64(a) & np.int64(b)) == 0
    return count


@kernel
def pairs(golden: Any, actual: Any, where: Any, base: int, counts: Any, first: Any) -> None:
    """Count the pairs of 8-bit codes at the positions `where` in ``counts[:, golden << 8 | actual]``.

    Two lines of counts in turns: equal pairs that follow one another then do not wait for each other's sum. `first`
    gets the position, from `base` on, at which a pair comes first.
    """
    for k in range(where.size):
        i = where[k]
        pair = (np.int64(golden[i]) << 8) | np.int64(actual[i])
        line = k & 1
        if counts[line, pair] == 0 and counts[1 - line, pair] == 0:
            first[pair] = base + i
        counts[line, pair] += 1


@kernel
def locate(
    where: Any,
    base: int,
    columns: int,
    shift: int,
    group: int,
    row_cell: Any,
    column_cell: Any,
    row_hits: Any,
    column_hits: Any,
    grid: Any,
    blocks: Any,
) -> None:
    """Count mismatches by row, column, map cell and block of 16, for ascending positions `base` + `where`.

    A tensor is `columns` wide. Rows are counted in groups of `group`, columns in groups of 2**`shift`; `row_cell` and
    `column_cell` say which line and column of `grid` a group belongs to. `blocks`: the block that was hit last, how
    many were hit, the hits in the last one, the most in one block.
    """
    end = start = np.int64(-1)
    row = line = cell = np.int64(0)
    in_row = in_cell = np.int64(0)  # hits not yet written
    last, hit, inside, most = blocks[0], blocks[1], blocks[2], blocks[3]
    for k in range(where.size):
        at = base + np.int64(where[k])
        if at >= end:
            row_hits[row] += in_row
            grid[line, cell] += in_cell
            in_row = in_cell = np.int64(0)
            number = at // columns
            start = number * columns
            end = start + columns
            row = number // group
            line = np.int64(row_cell[row])
        column = (at - start) >> shift
        column_hits[column] += 1
        now = np.int64(column_cell[column])
        if now != cell:
            grid[line, cell] += in_cell
            in_cell = np.int64(0)
            cell = now
        in_row += 1
        in_cell += 1
        block = at >> 4
        if block != last:
            most = max(most, inside)
            last = block
            hit += 1
            inside = np.int64(0)
        inside += 1
    row_hits[row] += in_row
    grid[line, cell] += in_cell
    blocks[0], blocks[1], blocks[2], blocks[3] = last, hit, inside, max(most, inside)


@kernel
def distances(golden: Any, actual: Any, sign: int, finite: int, steps: Any) -> None:
    """Write the number of steps (uint64) between numbers in sign and magnitude codes; both zeros are one step number.

    `sign` is the mask of the sign bit, 0 without one; magnitudes above `finite` are NaN.
    """
    mask, top = np.uint64(sign), np.uint64(finite)
    for i in range(golden.size):
        a, b = np.uint64(golden[i]), np.uint64(actual[i])
        x, y = np.int64(a & ~mask), np.int64(b & ~mask)
        nan_a, nan_b = np.uint64(x) > top, np.uint64(y) > top
        x = -x if a & mask else x
        y = -y if b & mask else y
        # Magnitudes have 63 bits: the difference modulo 2**64 is exact.
        apart = np.uint64(x) - np.uint64(y) if x > y else np.uint64(y) - np.uint64(x)
        apart = np.uint64(0) if nan_a and nan_b else apart
        steps[i] = np.uint64(NO_STEPS) if nan_a != nan_b else apart


@kernel
def _add(sums: Any, at: int, value: float) -> None:
    """Add to a compensated sum (Neumaier)."""
    total = sums[at] + value
    if abs(total) < np.inf:
        if abs(sums[at]) >= abs(value):
            sums[at + 1] += (sums[at] - total) + value
        else:
            sums[at + 1] += (value - total) + sums[at]
    sums[at] = total


@kernel
def errors(
    golden: Any,
    actual: Any,
    steps: Any,
    weights: Any,
    spacing: Any,
    floor: float,
    criteria: Any,
    violations: Any,
    sums: Any,
    counts: Any,
    histogram: Any,
    peak: Any,
    binades: Any,
) -> None:
    """Add the errors of pairs of values (float64) to `sums` and `counts`, and count what violates each criterion.

    absolute error AE = |actual - golden|, relative error RE = AE / (|golden| + 1e-7); equal infinities have none, and
    the error between a NaN or an infinity and anything else is infinite. `steps`: their distance, or `NO_STEPS`;
    `weights`: how often the pair occurs; `spacing`: the distance of neighbours at the golden value. `histogram` counts
    the distances (see `BUCKETS`), `peak` (uint64) keeps the largest.

    The sums leave out |golden| < `floor`. A criterion is (relative, constant, slope, spacings, low, high): it is
    violated where low <= |golden| < high (or golden is no number), and RE > constant if relative, else AE is greater
    than both constant + slope * |golden| and spacings * spacing. `binades` has a line per exponent field of golden as
    float64: mismatches, largest finite relative error.
    """
    patterns = golden.view(np.uint64)
    gap, ratio = np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(0, golden.size, _BLOCK):
        n = min(_BLOCK, golden.size - start)
        for i in range(n):
            g, a = golden[start + i], actual[start + i]
            difference = abs(a - g)
            difference = difference if difference < np.inf else np.inf
            difference = 0.0 if (g == a) | ((g != g) & (a != a)) else difference
            relative = difference / (abs(g) + 1e-7)
            gap[i] = difference
            ratio[i] = relative if difference < np.inf else difference
        absolute = relatives = squares = apart = 0.0
        most, worst = sums[8], sums[9]
        for i in range(n):
            weight = np.float64(weights[start + i])
            inside = 0.0 if abs(golden[start + i]) < floor else weight
            difference = gap[i] if inside > 0.0 else 0.0
            relative = ratio[i] if inside > 0.0 else 0.0
            counts[0] += np.int64(inside)
            absolute += difference * weight
            relatives += relative * weight
            squares += difference * difference * weight
            most = difference if difference > most else most
            worst = relative if relative > worst else worst
        _add(sums, 0, absolute)
        _add(sums, 2, relatives)
        _add(sums, 4, squares)
        sums[8], sums[9] = most, worst
        for i in range(n):
            distance, weight = steps[start + i], weights[start + i]
            if distance == 0:
                histogram[0] += weight
                continue
            field = np.int64((patterns[start + i] >> np.uint64(52)) & np.uint64(2047))
            binades[field, 0] += weight
            binades[field, 1] = max(binades[field, 1], ratio[i] if ratio[i] < np.inf else 0.0)
            if distance == np.uint64(NO_STEPS):
                counts[1] += weight
                histogram[BUCKETS - 1] += weight
            else:
                histogram[np.uint64(65) - leading_zeros(distance - np.uint64(1))] += weight
                peak[0] = max(peak[0], distance)
                apart += np.float64(distance) * weight
        _add(sums, 6, apart)
        for k in range(criteria.shape[0]):
            for i in range(n):
                size = abs(golden[start + i])
                if size < criteria[k, 4] or (size >= criteria[k, 5] and criteria[k, 5] < np.inf):
                    continue
                if criteria[k, 0] != 0.0:
                    bad = ratio[i] > criteria[k, 1]
                else:
                    limit = criteria[k, 1]
                    if criteria[k, 2] != 0.0:
                        limit += criteria[k, 2] * size
                    if criteria[k, 3] != 0.0:
                        limit = max(limit, criteria[k, 3] * spacing[start + i])
                    bad = gap[i] > limit
                if bad:
                    violations[k] += weights[start + i]
