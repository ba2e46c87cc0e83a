"""Loops that compare two arrays of codes: where they differ, in which pairs, where that is, and by how much.

They know plain arrays and numbers, no format. Positions come in ascending order, so that no loop divides per element.
"""

from typing import Any

import numpy as np
from numba import njit

from .ops import leading_zeros, ne, or_, xor

__all__ = ["BUCKETS", "COUNTS", "NO_STEPS", "SUMS", "different", "distances", "errors", "locate", "pairs"]

#: Entries of `sums` and `counts` of `errors`. A sum is followed by its compensation.
SUMS = ("absolute", "", "relative", "", "square", "", "steps", "", "max_absolute", "max_relative")
COUNTS = ("elements", "unordered")

#: Entries of a histogram of distances: none, 1, 2, 3-4, 5-8 ... up to 2**64, and those between a NaN and a number.
BUCKETS = 67

_RUN = 64  # elements that are looked at together; equal ones cost one test
NO_STEPS = 0xFFFF_FFFF_FFFF_FFFF  # the distance between a NaN and a number


@njit(nogil=True, cache=True, error_model="numpy")
def different(golden: Any, actual: Any, where: Any) -> int:
    """Write the positions (int32) at which two arrays of one unsigned type differ, and return their number.

    `where` has room for one position more than there are elements.
    """
    count = 0
    zero = golden.dtype.type(0)
    whole = golden.size // _RUN * _RUN
    for start in range(0, whole, _RUN):
        seen = zero
        for i in range(start, start + _RUN):
            seen = or_(seen, xor(golden[i], actual[i]))
        if ne(seen, zero):
            for i in range(start, start + _RUN):
                where[count] = i
                count += golden[i] != actual[i]
    for i in range(whole, golden.size):
        where[count] = i
        count += golden[i] != actual[i]
    return count


@njit(nogil=True, cache=True, error_model="numpy")
def pairs(golden: Any, actual: Any, where: Any, base: int, counts: Any, first: Any) -> None:
    """Count the pairs of 8-bit codes at the positions `where`: ``counts[golden << 8 | actual]``.

    `first` gets the position, from `base` on, at which a pair comes first.
    """
    for k in range(where.size):
        i = where[k]
        pair = (np.int64(golden[i]) << 8) | np.int64(actual[i])
        if counts[pair] == 0:
            first[pair] = base + i
        counts[pair] += 1


@njit(nogil=True, cache=True, error_model="numpy")
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


@njit(nogil=True, cache=True, error_model="numpy")
def distances(golden: Any, actual: Any, sign: int, steps: Any) -> None:
    """Write the number of steps (uint64) between numbers in sign and magnitude codes; both zeros are one step number.

    `sign` is the mask of the sign bit, 0 without one.
    """
    mask = np.uint64(sign)
    for i in range(golden.size):
        a, b = np.uint64(golden[i]), np.uint64(actual[i])
        x, y = np.int64(a & ~mask), np.int64(b & ~mask)
        x = -x if a & mask else x
        y = -y if b & mask else y
        # Magnitudes have 63 bits: the difference modulo 2**64 is exact.
        steps[i] = np.uint64(x) - np.uint64(y) if x > y else np.uint64(y) - np.uint64(x)


@njit(nogil=True, cache=True, error_model="numpy")
def _add(sums: Any, at: int, value: float) -> None:
    """Add to a compensated sum (Neumaier)."""
    total = sums[at] + value
    if abs(total) < np.inf:
        if abs(sums[at]) >= abs(value):
            sums[at + 1] += (sums[at] - total) + value
        else:
            sums[at + 1] += (value - total) + sums[at]
    sums[at] = total


@njit(nogil=True, cache=True, error_model="numpy")
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
    for i in range(golden.size):
        g, a, weight = golden[i], actual[i], weights[i]
        size = abs(g)
        difference = abs(a - g)
        if g == a or (g != g and a != a):
            difference = 0.0
        elif not difference < np.inf:
            difference = np.inf
        relative = difference / (size + 1e-7) if size < np.inf and difference < np.inf else difference
        if not size < floor:
            counts[0] += weight
            _add(sums, 0, difference * weight)
            _add(sums, 2, relative * weight)
            _add(sums, 4, difference * difference * weight)
            sums[8] = max(sums[8], difference)
            sums[9] = max(sums[9], relative)
        if steps[i]:
            field = np.int64((patterns[i] >> np.uint64(52)) & np.uint64(2047))
            binades[field, 0] += weight
            binades[field, 1] = max(binades[field, 1], relative if relative < np.inf else 0.0)
        if steps[i] == np.uint64(NO_STEPS):
            counts[1] += weight
            histogram[BUCKETS - 1] += weight
        else:
            distance = steps[i]
            bucket = np.uint64(65) - leading_zeros(distance - np.uint64(1)) if distance else np.uint64(0)
            histogram[bucket] += weight
            peak[0] = max(peak[0], distance)
            _add(sums, 6, np.float64(distance) * weight)
        for k in range(criteria.shape[0]):
            if size < criteria[k, 4] or (size >= criteria[k, 5] and criteria[k, 5] < np.inf):
                continue
            if criteria[k, 0] != 0.0:
                bad = relative > criteria[k, 1]
            else:
                limit = criteria[k, 1]
                if criteria[k, 2] != 0.0:
                    limit += criteria[k, 2] * size
                if criteria[k, 3] != 0.0:
                    limit = max(limit, criteria[k, 3] * spacing[i])
                bad = difference > limit
            if bad:
                violations[k] += weight
