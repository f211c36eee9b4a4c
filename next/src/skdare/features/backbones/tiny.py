"""A network small enough to train on a laptop in a minute."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skdare.features.backbones.backbone import ImageBackbone


class Tiny(nn.Module):
    """Three convolutions of 3 × 3 with stride 2 between them, pooled, and one wide layer.

    There is no batch norm, so nothing depends on which domains share a batch.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        widths = (3, 16, 32, 64)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(a, b, 3, stride=1 if a == 3 else 2, padding=1) for a, b in pairwise(widths)
        )
        self.wide = nn.Linear(4 * widths[-1], dim)

    def forward(self, x: Tensor) -> Tensor:
        """Features of images (n, 3, size, size)."""
        for convolution in self.convolutions:
            x = F.relu(convolution(x))
        return F.relu(self.wide(F.adaptive_avg_pool2d(x, 2).flatten(1)))


def make_tiny(*, seed: int, size: int = 16, dim: int = 64) -> ImageBackbone:
    """Tiny network with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = Tiny(dim)
    return ImageBackbone("tiny", size, dim, module, (0.5,) * 3, (0.5,) * 3)
