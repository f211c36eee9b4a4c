"""Backbones: networks up to their features, and how inputs get into them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from skdare.errors import InputError
from skdare.features.augmentation import plain_views, random_views
from skdare.features.backbones.bottleneck import Bottleneck
from skdare.features.examples.examples import Examples


class Backbone(Protocol):
    """What training and extraction need from a network.

    Attributes
    ----------
    name : str
    kind : "image" or "text"
    size : int
        Side of an image in pixels, or the largest number of tokens.
    dim : int
        Number of features.
    module : torch.nn.Module
        Maps what `views` returns to features.
    """

    name: str
    kind: str
    size: int
    dim: int
    module: nn.Module

    @property
    def transform(self) -> str:
        """What `views` does without random numbers, in words."""
        ...

    def encode(self, examples: Examples) -> np.ndarray:
        """Inputs of all rows as one array of numbers, to be kept on the device."""
        ...

    def views(self, inputs: Tensor, rows: Tensor, drawn: Tensor | None = None) -> Tensor:
        """What the module takes, for chosen rows; augmented where random numbers are given."""
        ...

    def features(self, batch: Tensor) -> Tensor:
        """Features of a batch: float32 of shape (n, dim)."""
        ...


@dataclass(eq=False)
class ImageBackbone:
    """A network for images, with pixel values centred and scaled by channel.

    Parameters
    ----------
    name : str
    size : int
        Side of an image in pixels.
    dim : int
        Number of features.
    module : torch.nn.Module
        Maps images of shape (n, 3, size, size) to features of shape (n, dim).
    mean, std : tuple of 3 float
        Of pixel values in [0, 1].
    """

    name: str
    size: int
    dim: int
    module: nn.Module
    mean: tuple[float, ...]
    std: tuple[float, ...]
    kind: str = field(default="image", init=False)

    @property
    def transform(self) -> str:
        """What `views` does without random numbers, in words."""
        mean, std = (", ".join(f"{v:.4g}" for v in values) for values in (self.mean, self.std))
        return f"resized to {self.size}×{self.size}, (x − ({mean})) / ({std})"

    def encode(self, examples: Examples) -> np.ndarray:
        """Pixels, unchanged."""
        return examples.inputs

    def views(self, inputs: Tensor, rows: Tensor, drawn: Tensor | None = None) -> Tensor:
        """Normalised pixels, cropped and coloured where random numbers are given."""
        if drawn is None:
            rgb = plain_views(inputs, rows, self.size)
        else:
            rgb = random_views(inputs, rows, drawn, self.size)
        scaled = [(c - m) / s for c, m, s in zip(rgb, self.mean, self.std, strict=True)]
        # Channels last in memory: tensor cores want it, and pixels come that way.
        return torch.stack(scaled, dim=-1).permute(0, 3, 1, 2)

    def features(self, batch: Tensor) -> Tensor:
        """Features of a batch of views."""
        return self.module(batch).float()


def count_features(name: str, module: nn.Module, size: int) -> int:
    """Number of features that a network for images gives, found by a trial run."""
    try:
        with torch.no_grad():
            features = module(torch.zeros(1, 3, size, size))
    except (RuntimeError, AssertionError, ValueError) as error:
        raise InputError(f"{name} does not take images of {size} pixels: {error}") from error
    if features.ndim != 2:
        raise InputError(
            f"{name} gives an array of shape {tuple(features.shape)} for one image, not one "
            "vector; pass another network"
        )
    return features.shape[1]


def weights_hash(module: nn.Module) -> str:
    """Short name for the weights: 16 hexadecimal digits of a SHA-256."""
    return state_hash(module.state_dict())


def state_hash(state: Mapping[str, Tensor]) -> str:
    """The same for weights by name."""
    digest = hashlib.sha256()
    for name, value in state.items():
        digest.update(f"{name} {tuple(value.shape)}".encode())
        exact = value.float() if value.dtype == torch.bfloat16 else value  # which NumPy lacks
        digest.update(exact.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def provenance(backbone: Backbone, examples: Examples) -> dict[str, Any]:
    """What features are made from before any training, for records, stores and settings."""
    narrow = isinstance(backbone.module, Bottleneck)
    return {
        "backbone": backbone.name,
        **({"bottleneck": backbone.dim} if narrow else {}),
        "weights": weights_hash(backbone.module),
        "data": examples.name,
        "examples": examples.fingerprint,
        "transform": backbone.transform,
    }
