"""Batch norm at fixed statistics, folded into the convolution before it.

Notation
--------
A convolution with kernel ``w`` followed by batch norm at fixed mean m and variance v, gain g and
shift h is one convolution with kernel ``g (v + ε)^{-1/2} w`` and offset ``h - g (v + ε)^{-1/2} m``.
The parameters that train are still w, g and h; the n × h × w arrays in between are never written.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Largest relative difference of features that rounding explains.
_ROUNDING = 1e-3


def fold_norm(
    weight: Tensor, gain: Tensor, shift: Tensor, mean: Tensor, variance: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    """Kernel and offset of the one convolution."""
    factor = gain * torch.rsqrt(variance + epsilon)
    return weight * factor[:, None, None, None], shift - factor * mean


class NormalisingConv2d(nn.Conv2d):
    """A convolution that also does the work of the batch norm after it."""

    # In a tuple, where torch does not look for parameters: they keep the names that they have.
    norm: tuple[nn.BatchNorm2d]

    def forward(self, input: Tensor) -> Tensor:
        """Convolved and normalised images."""
        norm: Any = self.norm[0]
        kernel, offset = fold_norm(
            self.weight, norm.weight, norm.bias, norm.running_mean, norm.running_var, norm.eps
        )
        return F.conv2d(
            input, kernel, offset, self.stride, self.padding, self.dilation, self.groups
        )


class IdleBatchNorm2d(nn.BatchNorm2d):
    """A batch norm whose work the convolution before it does."""

    def forward(self, input: Tensor) -> Tensor:
        """What comes in."""
        return input


@torch.no_grad()
def fold_batch_norms(module: nn.Module, size: int) -> None:
    """Fold every batch norm of a network in evaluation mode into the convolution before it.

    The pairs are found by a trial run on an image of this size. Parameters and buffers keep their
    names and values; a network that makes other use of a convolution's output is left as it was.
    """
    image = torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(0))
    pairs = _consecutive(module, image) if _has_batch_norm(module) else []
    if not pairs:
        return
    before = module(image)
    for conv, norm in pairs:
        conv.norm = (norm,)
        # Not new modules in their places: state dicts would name their arrays otherwise.
        conv.__class__ = NormalisingConv2d
        norm.__class__ = IdleBatchNorm2d
    difference = torch.linalg.vector_norm(module(image) - before)
    if difference <= _ROUNDING * torch.linalg.vector_norm(before):
        return
    for conv, norm in pairs:
        conv.__class__ = nn.Conv2d
        norm.__class__ = nn.BatchNorm2d
        del conv.norm


def _has_batch_norm(module: nn.Module) -> bool:
    return any(type(part) is nn.BatchNorm2d for part in module.modules())


def _consecutive(module: nn.Module, image: Tensor) -> list[tuple[Any, Any]]:
    """Convolutions and the batch norms that take their output, if each is called once."""
    outputs: dict[int, tuple[nn.Module, Tensor]] = {}
    pairs: list[tuple[nn.Module, nn.Module]] = []
    called: list[nn.Module] = []

    def note_output(conv: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
        called.append(conv)
        outputs[id(output)] = conv, output  # kept, so that no other tensor gets its number

    def note_input(norm: nn.Module, inputs: tuple[Tensor]) -> None:
        called.append(norm)
        if id(inputs[0]) in outputs:
            pairs.append((outputs[id(inputs[0])][0], norm))

    hooks = []
    for part in module.modules():
        if type(part) is nn.Conv2d and part.bias is None and part.padding_mode == "zeros":
            hooks.append(part.register_forward_hook(note_output))
        elif type(part) is nn.BatchNorm2d and part.affine and part.track_running_stats:
            hooks.append(part.register_forward_pre_hook(note_input))
    try:
        module(image)
    finally:
        for hook in hooks:
            hook.remove()
    return [pair for pair in pairs if all(called.count(part) == 1 for part in pair)]
