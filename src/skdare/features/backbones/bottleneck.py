"""Fewer features: a linear layer on top of a backbone's own, trained with it.

Notation
--------
d features of the backbone, K < d that are left, P (K, d) the layer.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from skdare.checks import check_count
from skdare.errors import InputError

if TYPE_CHECKING:
    from skdare.features.backbones.backbone import Backbone


class Bottleneck(nn.Module):
    """A network whose d features become the K features ``P x``.

    There is no offset: the layer after it has one. Products are in float32, as in that layer.
    """

    def __init__(self, network: nn.Module, P: Tensor) -> None:
        super().__init__()
        self.network = network
        self.projection = nn.Parameter(P)

    def forward(self, batch: Tensor) -> Tensor:
        """Features (n, K) of a batch."""
        features = self.network(batch).float()
        with torch.autocast(features.device.type, enabled=False):
            return features @ self.projection.T


def narrowed(backbone: Backbone, size: int, seed: int = 0) -> Backbone:
    """The backbone with a bottleneck of ``size`` features, which is random before any training.

    The weights are normal with variance 1/d, so that a new feature has the mean square of the
    old ones, and scores begin as large as without a bottleneck. They depend on ``seed`` and the
    two numbers of features alone: those of pretrained features are one fixed random projection,
    and every network of a run begins with it.
    """
    check_count("bottleneck", size, 1)
    d = backbone.dim
    if size >= d:
        raise InputError(
            f"bottleneck is {size}, and {backbone.name} has {d} features", f"it must be below {d}"
        )
    # Not variance 1/K, which keeps lengths: scores of a ResNet-50 would begin 14 times as large at
    # K = 8, and the steps of fine-tuning are small.
    P = np.random.default_rng([seed, size]).normal(scale=d**-0.5, size=(size, d))
    narrow = copy(backbone)
    narrow.dim = int(size)
    narrow.module = Bottleneck(backbone.module, torch.from_numpy(P.astype(np.float32)))
    return narrow
