"""The digits network as its users see it: the forward pass, the accuracy and the held-out images."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
CHECKPOINT = HERE / "digits.safetensors"
TEST_SET = HERE / "test_set.npz"
LAYERS = 3


def load_test_set() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images [n, 64] with grey levels 0 to 16, and labels [n] from 0 to 9."""
    with np.load(TEST_SET) as data:
        return data["images"], data["labels"]


def forward(tensors: Mapping[str, NDArray[np.float32]], images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Logits [n, 10] in float32: three dense layers, ReLU between them, grey levels scaled to 0 to 1."""
    x = images.astype(np.float32) / np.float32(16)
    for i in range(LAYERS):
        x = x @ tensors[f"layers.{i}.weight"].T + tensors[f"layers.{i}.bias"]
        if i < LAYERS - 1:
            x = np.maximum(x, np.float32(0))
    return x


def accuracy(
    tensors: Mapping[str, NDArray[np.float32]], images: NDArray[np.uint8], labels: NDArray[np.uint8]
) -> float:
    """The fraction of images whose largest logit is that of their label."""
    return float(np.mean(forward(tensors, images).argmax(axis=1) == labels))
