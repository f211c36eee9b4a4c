"""Adam, and its running moments by the names of parameters."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from skdare.features._recipe import Hyperparameters

_KEPT = ("step", "exp_avg", "exp_avg_sq")


class NamedAdam:
    """Adam on the parameters of a module, whose state can be read and written over by name.

    Parameters
    ----------
    module : torch.nn.Module
    hyperparameters : Hyperparameters
    capturable : bool
        Whether its steps become part of a CUDA graph.
    """

    def __init__(
        self, module: nn.Module, hyperparameters: Hyperparameters, *, capturable: bool
    ) -> None:
        self._module = module
        self._adam = torch.optim.Adam(
            module.parameters(),
            lr=hyperparameters.lr,
            weight_decay=hyperparameters.weight_decay,
            fused=True,
            capturable=capturable,
        )

    def clear(self) -> None:
        """Forget the gradients."""
        self._adam.zero_grad(set_to_none=True)

    def step(self) -> None:
        """Move the parameters."""
        self._adam.step()

    def moments(self) -> dict[str, Tensor]:
        """Running moments, as far as there are any."""
        found = {}
        for name, parameter in self._module.named_parameters():
            for key, value in self._adam.state.get(parameter, {}).items():
                found[f"{name}:{key}"] = value
        return found

    def restore(self, given: Mapping[str, Tensor]) -> None:
        """Go on from these; places that a graph knows are written over, not replaced."""
        for name, parameter in self._module.named_parameters():
            own = self._adam.state[parameter]
            for key in _KEPT:
                value = given.get(f"{name}:{key}")
                if key in own:
                    own[key].copy_(torch.zeros_like(own[key]) if value is None else value)
                elif value is not None:
                    own[key] = value.to(parameter.device, copy=True)
