"""Weights from a file, without running code from it: a state dict, or what DomainBed saves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

# Random hyperparameters of DomainBed are NumPy's numbers: harmless, but not on torch's list.
# Files written with NumPy 1 name them by their old place.
_SCALAR = np.float64(0).__reduce__()[0]
_NUMBERS: list[Any] = [
    (_SCALAR, "numpy._core.multiarray.scalar"),
    (_SCALAR, "numpy.core.multiarray.scalar"),
    np.dtype,
    type(np.dtype(np.float64)),
    type(np.dtype(np.int64)),
]
_FEATURIZER = "featurizer.network."


def read_state(path: Path) -> Mapping[str, Tensor]:
    """The arrays of a network by name; of DomainBed's ``model.pkl``, those of its featurizer."""
    with torch.serialization.safe_globals(_NUMBERS):
        held = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(held, Mapping):
        raise ValueError(f"{path} holds a {type(held).__name__}; save a state dict")
    whole = held.get("model_dict")
    if not isinstance(whole, Mapping):
        return held
    found = {
        key.removeprefix(_FEATURIZER): value
        for key, value in whole.items()
        if key.startswith(_FEATURIZER)
    }
    if not found:
        raise ValueError(
            f"{path} is DomainBed's, but has no {_FEATURIZER}*: such a network is not of timm or "
            "torchvision; give the weights of a ResNet"
        )
    return found
