"""A head as a linear layer of torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from skdare.export._linear_map import LinearMap


def linear_layer(
    linear: LinearMap, *, one_logit: bool = False, dtype: Any = None, device: Any = None
) -> nn.Linear:
    """A layer with an output for each class, or one for a number and where one is asked for."""
    if one_logit and len(linear.coef) > 1:
        raise ValueError(
            f"the head has {len(linear.coef)} classes, and one logit tells two apart; leave "
            "one_logit at False"
        )
    V, b = (linear.coef, linear.intercept) if one_logit else linear.by_class()
    # Drawn weights would move torch's generator for nothing.
    layer = nn.utils.skip_init(
        nn.Linear, V.shape[1], V.shape[0], dtype=dtype or torch.float32, device=device or "cpu"
    )
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(V))
        layer.bias.copy_(torch.from_numpy(b))
    return layer
