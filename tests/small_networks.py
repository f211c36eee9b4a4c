"""Small images in three domains, a small network, and a recipe of a few steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from skdare.features import (
    Augmentation,
    Examples,
    Hyperparameters,
    ImageBackbone,
    Recipe,
    Trainer,
    backbone,
)
from skdare.features.training.folder import TrainingFolder
from skdare.features.training.recipe import Job

FAST = Recipe(
    steps=12,
    check_every=5,
    hyperparameters=Hyperparameters(lr=1e-3, batch=4, dropout=0.3),
    augmentation=Augmentation(),
)


NORMED_WIDTH = 6


def images(n: int = 90, seed: int = 0) -> Examples:
    """Noise whose redness shows the class; domains a, b and c."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    pixels = rng.integers(0, 256, (n, 16, 16, 3))
    pixels[..., 0] = pixels[..., 0] // 2 + 40 * labels[:, None, None]
    domains = np.array(list("abc"))[np.arange(n) % 3]
    ids = np.array([f"{i}.png" for i in range(n)])
    names = ["red", "green", "blue"]
    return Examples(
        pixels.astype(np.uint8), labels, domains, names, ids, "noise", "image", f"seed {seed}"
    )


def normed(*, depth: int = 2) -> ImageBackbone:
    """Convolutions with a batch norm after each, pooled."""
    layers: list[nn.Module] = []
    channels = 3
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for _ in range(depth):
            layers += [
                nn.Conv2d(channels, NORMED_WIDTH, 3, bias=False),
                nn.BatchNorm2d(NORMED_WIDTH),
                nn.ReLU(),
            ]
            channels = NORMED_WIDTH
    module = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return ImageBackbone("normed", 16, NORMED_WIDTH, module, (0.5,) * 3, (0.5,) * 3)


def trainer(folder, examples: Examples | None = None, recipe: Recipe = FAST, **more) -> Trainer:
    """A trainer, on the CPU by default."""
    examples = images() if examples is None else examples
    network = more.pop("network", None) or backbone("tiny")
    return Trainer(examples, network, recipe, folder, **{"device": "cpu", **more})


def losses(folder, job: Job = Job("a", 0), **more) -> list[float]:  # noqa: B008
    """Losses at the checks of one training."""
    (record,) = trainer(folder, **more)([job])
    return [check["loss"] for check in record.checks]


def weights(folder, job: Job = Job("a", 0)) -> dict[str, np.ndarray]:  # noqa: B008
    """Weights of a finished network, by name."""
    return {name: value.numpy() for name, value in TrainingFolder(folder).weights(job).items()}


def same_weights(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    """Whether all weights are equal to the last bit."""
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def poisoned(examples: Examples, rows: np.ndarray) -> Examples:
    """The same examples with other pixels and labels in these rows."""
    pixels = examples.inputs.copy()
    pixels[rows] = 255 - pixels[rows]
    labels = examples.labels.copy()
    labels[rows] = (labels[rows] + 1) % 3
    return replace(examples, inputs=pixels, labels=labels)
