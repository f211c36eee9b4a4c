"""A backbone with one linear layer on top."""

from __future__ import annotations

from copy import deepcopy
from typing import Self

import torch
from torch import Tensor, nn

from skdare.features.backbones.backbone import Backbone
from skdare.features.backbones.fixed_norm import fold_batch_norms


class Network(nn.Module):
    """A copy of a backbone, and one linear layer with an intercept.

    It stays in evaluation mode: batch norm keeps its pretrained statistics, while all weights,
    also its gains and shifts, are trained; so it is folded into the convolution before it, unless
    ``fold`` says otherwise. Dropout is a mask that is drawn elsewhere. The seed is that of the last
    layer.
    """

    def __init__(
        self,
        backbone: Backbone,
        classes: int,
        dropout: float = 0.0,
        seed: int = 0,
        *,
        fold: bool = True,
    ) -> None:
        super().__init__()
        self.backbone = deepcopy(backbone)
        self.dropout = dropout
        self.module = self.backbone.module  # registered, so that its weights are found
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.head = nn.Linear(backbone.dim, classes)
        self.eval()
        if fold and backbone.kind == "image":
            fold_batch_norms(self.module, backbone.size)

    def train(self, mode: bool = True) -> Self:
        """Stay in evaluation mode whatever ``mode`` says: statistics must not move."""
        return super().train(False)

    def placed(self, device: torch.device) -> Self:
        """Move to the device; images have channels last there, as tensor cores want it."""
        self.to(device)
        if device.type == "cuda" and self.backbone.kind == "image":
            self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return self

    def features(self, batch: Tensor, precision: torch.dtype = torch.float32) -> Tensor:
        """Features of views, with products inside the backbone in this precision."""
        with torch.autocast(
            batch.device.type, precision, enabled=precision != torch.float32, cache_enabled=False
        ):
            return self.backbone.features(batch)

    def forward(
        self,
        batch: Tensor,
        dropout_mask: Tensor | None = None,
        precision: torch.dtype = torch.float32,
    ) -> Tensor:
        """Scores of classes; the mask is true for features that dropout keeps."""
        features = self.features(batch, precision)
        if dropout_mask is not None:
            features = features * dropout_mask / (1 - self.dropout)
        return self.head(features)
