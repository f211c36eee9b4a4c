"""A head as a module of torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdare.export.linear_map import Clip, Fill, LinearMap

try:
    import torch
    from torch import nn
except ModuleNotFoundError as error:
    what = "to_torch needs torch; pip install 'skdare[torch]'"
    raise ModuleNotFoundError(what, name="torch") from error


def to_torch(head: Any, *, dtype: Any = None) -> nn.Module:
    """A linear layer, after what rows go through before it; see `Head.to_torch`."""
    linear = LinearMap.of(head)
    V, b = linear.by_class()
    # Drawn weights would move torch's generator for nothing.
    layer = nn.utils.skip_init(nn.Linear, V.shape[1], V.shape[0], dtype=dtype or torch.float32)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(V))
        layer.bias.copy_(torch.from_numpy(b))
    if not linear.steps:
        return layer
    return nn.Sequential(*(Prepared(step, layer.weight.dtype) for step in linear.steps), layer)


class Prepared(nn.Module):
    """Fills what is missing, or clips."""

    low: torch.Tensor
    high: torch.Tensor

    def __init__(self, step: Fill | Clip, dtype: torch.dtype) -> None:
        super().__init__()
        limits = (step.values, None) if isinstance(step, Fill) else (step.low, step.high)
        for name, values in zip(("low", "high"), limits, strict=True):
            tensor = None if values is None else torch.from_numpy(np.asarray(values)).to(dtype)
            self.register_buffer(name, tensor)
        self.fills = isinstance(step, Fill)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        if self.fills:
            return torch.where(torch.isnan(X), self.low, X)
        return torch.clamp(X, self.low, self.high)
