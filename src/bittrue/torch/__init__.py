"""PyTorch: `quantize` with a straight-through gradient, models as hardware runs them (`emulate`), tensors to and from
`bittrue.Array`; needs torch.
"""

from __future__ import annotations

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError("bittrue.torch needs PyTorch, which is not installed: pip install 'bittrue[torch]'") from error

from .arrays import from_torch, to_torch
from .models import Emulation, emulate
from .quantizer import quantize

__all__ = ["Emulation", "emulate", "from_torch", "quantize", "to_torch"]
