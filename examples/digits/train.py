"""Train the digits network in plain NumPy; write digits.safetensors and test_set.npz beside this file.

Needs scikit-learn for its digits data (`pip install scikit-learn`) and takes a few seconds. A second run on the
same machine writes the same bytes; another CPU may sum in another order and end at slightly other weights.
"""

from __future__ import annotations

import json

import network
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from sklearn.datasets import load_digits

SEED = 2026
TEST_IMAGES = 500
WIDTHS = (64, 64, 32, 10)
EPOCHS = 60
BATCH = 32
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 1e-2

Tensors = dict[str, NDArray[np.float64]]


def initial(rng: np.random.Generator) -> Tensors:
    """He initialisation; weights are [outputs, inputs]."""
    tensors: Tensors = {}
    for i, (inputs, outputs) in enumerate(zip(WIDTHS[:-1], WIDTHS[1:], strict=True)):
        tensors[f"layers.{i}.weight"] = rng.normal(0, np.sqrt(2 / inputs), (outputs, inputs))
        tensors[f"layers.{i}.bias"] = np.zeros(outputs)
    return tensors


def gradients(tensors: Tensors, x: NDArray[np.float64], labels: NDArray[np.int64]) -> Tensors:
    """The gradient of the mean cross entropy, by backpropagation."""
    inputs = [x]
    for i in range(network.LAYERS):
        x = inputs[-1] @ tensors[f"layers.{i}.weight"].T + tensors[f"layers.{i}.bias"]
        inputs.append(np.maximum(x, 0))
    probabilities = np.exp(x - x.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    probabilities[np.arange(len(labels)), labels] -= 1
    delta = probabilities / len(labels)

    result: Tensors = {}
    for i in reversed(range(network.LAYERS)):
        result[f"layers.{i}.weight"] = delta.T @ inputs[i]
        result[f"layers.{i}.bias"] = delta.sum(axis=0)
        delta = (delta @ tensors[f"layers.{i}.weight"]) * (inputs[i] > 0)
    return result


def train(images: NDArray[np.uint8], labels: NDArray[np.int64], rng: np.random.Generator) -> Tensors:
    """Adam with decoupled weight decay and a learning rate that falls linearly to zero."""
    tensors = initial(rng)
    mean = {name: np.zeros_like(t) for name, t in tensors.items()}
    square = {name: np.zeros_like(t) for name, t in tensors.items()}
    x = images / 16.0
    batches = len(x) // BATCH
    steps = EPOCHS * batches
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for batch in order[: batches * BATCH].reshape(batches, BATCH):
            step += 1
            rate = LEARNING_RATE * (1 - (step - 1) / steps)
            for name, gradient in gradients(tensors, x[batch], labels[batch]).items():
                mean[name] += 0.1 * (gradient - mean[name])
                square[name] += 0.001 * (gradient**2 - square[name])
                update = (mean[name] / (1 - 0.9**step)) / (np.sqrt(square[name] / (1 - 0.999**step)) + 1e-8)
                decay = WEIGHT_DECAY if name.endswith("weight") else 0.0
                tensors[name] -= rate * (update + decay * tensors[name])
    return tensors


def main() -> None:
    """Split, train, report, write."""
    digits = load_digits()
    images, labels = digits.data.astype(np.uint8), digits.target
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(images))
    test, rest = order[:TEST_IMAGES], order[TEST_IMAGES:]

    tensors = {name: t.astype(np.float32) for name, t in train(images[rest], labels[rest], rng).items()}
    test_labels = labels[test].astype(np.uint8)
    reached = network.accuracy(tensors, images[test], test_labels)
    fitted = network.accuracy(tensors, images[rest], labels[rest].astype(np.uint8))
    print(f"accuracy: {fitted:.2%} on {len(rest)} training images, {reached:.2%} on {len(test)} held out")

    # One metadata entry: safetensors writes several in an arbitrary order, which would change the bytes.
    about = {
        "description": "Digits 8x8, dense 64-64-32-10 with ReLU; input is grey level / 16",
        "data": "sklearn.datasets.load_digits",
        "split_seed": SEED,
        "test_images": TEST_IMAGES,
        "test_accuracy": reached,
    }
    save_file(tensors, network.CHECKPOINT, metadata={"about": json.dumps(about)})
    np.savez_compressed(network.TEST_SET, images=images[test], labels=test_labels)
    for path in (network.CHECKPOINT, network.TEST_SET):
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
