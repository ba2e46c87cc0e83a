"""Assertions for test suites of operators, with messages that say what differs, where, and which rule would explain it.

The package registers this module with pytest, which then rewrites its assertions; nothing has to be configured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # pytest imports this module in every session: what the assertions need comes when they run
    from .comparison import Report

__all__ = ["assert_bit_true", "assert_explained"]


def assert_bit_true(
    actual: Any,
    golden: Any,
    standard: str = "bitwise",
    *,
    source: Any = None,
    target: str | None = None,
    err_msg: str = "",
    html: Any = None,
    **options: Any,
) -> Report:
    """Raise an `AssertionError` unless what a device produced meets a standard.

    Parameters
    ----------
    actual, golden : array_like, Array, mapping or path
        In the order of `numpy.testing`. An `actual` without a type of its own (codes or packed blocks in an array, a
        raw file) has the format of `golden`.
    standard : str
        As in `bittrue.compare`.
    source : array_like, Array or path, optional
        The input of the conversion: a failure then says which rule would explain the dump, by `bittrue.diagnose`.
    target : str, optional
        Of that diagnosis, such as "ascend:950".
    err_msg : str
        Put before the message.
    html : path, optional
        Where to write the HTML report after a failure; an older one is replaced.
    **options
        As in `bittrue.compare`: ``max_ulp=``, ``rtol=``, ``wide_golden=``, ``nan=`` ...

    Returns
    -------
    Report
        Of a comparison that passed.

    Raises
    ------
    AssertionError
        With the verdict, the figure that decided, the worst elements with their bits, and where they sit.
    ValueError
        For shapes, formats and names that do not fit together: a mistake of the test, not of the device.

    Examples
    --------
    >>> import numpy as np, bittrue as bt
    >>> x = np.float32([1.03125, -3.45])
    >>> report = assert_bit_true(bt.array(x, "hifloat8"), bt.array(x, "hifloat8"))
    >>> assert_bit_true(bt.array(x, "hifloat8", "trunc"), bt.array(x, "hifloat8"), source=x)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    AssertionError: FAIL (bitwise: every code equal): 1 of 2 elements differ
    ...
    """
    __tracebackhide__ = True
    from .comparison import compare

    actual = actual if options.get("format") else _typed(actual, golden)
    report = compare(golden, actual, standard, **options)
    if report.passed:
        return report
    parts = [err_msg, str(report)]
    if source is not None:
        parts.append(_diagnosed(source, actual, golden, target))
    if html is not None:
        report.to_html(html, force=True)
        parts.append(f"report: {html}")
    raise AssertionError("\n".join(part for part in parts if part))


def assert_explained(x: Any, actual: Any, to: Any = None, target: str | None = None, **options: Any) -> Any:
    """Raise an `AssertionError` unless one rule explains everything that a device made of an input.

    Parameters are those of `bittrue.diagnose`; returns its `Diagnosis`.

    Examples
    --------
    >>> import numpy as np, bittrue as bt
    >>> x = np.float32([1.06, -1.06, 2.7, -3.3, 0.2, 77])
    >>> assert_explained(x, bt.array(x, "float8_e4m3fn", "ceil")).best.rule
    'ceil'
    """
    __tracebackhide__ = True
    from .diagnosis import diagnose

    found = diagnose(x, actual, to, target, **options)
    if not found.explained:
        raise AssertionError(str(found))
    return found


def _typed(actual: Any, golden: Any) -> Any:
    """Return the actual data; codes without a type of their own in the golden data's format."""
    import numpy as np

    from .array import Array
    from .blocks.array import BlockArray

    if isinstance(actual, np.ndarray) and isinstance(golden, (Array, BlockArray)):
        if actual.dtype == golden.codes.dtype and isinstance(golden, BlockArray):
            return BlockArray.frombytes(actual, golden.format, golden.shape, golden.axis)
        if isinstance(golden, Array) and actual.dtype == golden.format.code_dtype:
            return Array(actual, golden.format)
    return actual


def _diagnosed(source: Any, actual: Any, golden: Any, target: str | None) -> str:
    from .array import Array
    from .blocks.array import BlockArray
    from .diagnosis import diagnose

    to = golden.format if isinstance(golden, (Array, BlockArray)) else None
    try:
        return f"diagnosis: {diagnose(source, actual, to, target)}"
    except ValueError as error:
        return f"no diagnosis: {error}"
