"""What `bittrue bench` measures: rows declared as data, timed side by side with NumPy's plain copy and with peers."""

from .measure import Case, Result, Row, Settings, collect, header, run, throughput
from .peers import PEERS
from .scaling import Point, draw, measure_scaling

__all__ = [
    "PEERS",
    "Case",
    "Point",
    "Result",
    "Row",
    "Settings",
    "collect",
    "draw",
    "header",
    "run",
    "measure_scaling",
    "throughput",
]
