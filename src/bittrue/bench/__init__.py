"""What `bittrue bench` measures: rows declared as data, timed side by side with NumPy's plain copy and with peers."""

from .measure import Case, Result, Row, Settings, collect, header, run, throughput

__all__ = ["Case", "Result", "Row", "Settings", "collect", "header", "run", "throughput"]
