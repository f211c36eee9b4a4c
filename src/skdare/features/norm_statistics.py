"""Means and variances of batch norms, measured on the rows of a domain without their labels.

A batch norm divides what a layer puts out by the scale that it had on the images of pretraining.
Images of another kind have another mean and scale there, and their own are known without labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from skdare.checks import check_choice
from skdare.errors import InputError, counted
from skdare.features.backbones.backbone import Backbone
from skdare.features.network import Network

NETWORK = "network"
DOMAIN = "domain"
# How often all rows are read.
PASSES = {NETWORK: 1, DOMAIN: 2}
# Rows that are normalised together while statistics are measured; the same on every device.
BATCH = 64


def check_norm_stats(norm_stats: str, backbone: Backbone, domains: np.ndarray) -> None:
    """Refuse statistics that a backbone has no place for, or a domain too few rows."""
    check_choice("norm_stats", norm_stats, PASSES)
    if norm_stats == NETWORK:
        return
    if not batch_norms(backbone.module):
        raise InputError(
            f"norm_stats is {norm_stats!r}, but {backbone.name} has no batch norm",
            f"use norm_stats={NETWORK!r}, or another backbone",
        )
    names, counts = np.unique(domains, return_counts=True)
    if counts.min() < 2:
        raise InputError(
            f"norm_stats is {norm_stats!r}, but domain {str(names[counts.argmin()])!r} has "
            f"{counted(int(counts.min()), 'row')}, and a variance needs 2",
            f"leave that domain out, or use norm_stats={NETWORK!r}",
        )


def batch_norms(module: nn.Module) -> dict[str, Any]:
    """Batch norms that keep statistics, by name."""
    return {
        name: part
        for name, part in module.named_modules()
        if isinstance(part, _BatchNorm) and part.running_mean is not None
    }


def spread_batches(rows: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """Batches of nearly equal size, ``most`` rows or fewer, each spread over all rows.

    Rows mostly come class by class, and a batch of one class has that class's statistics.
    """
    batches = -(-len(rows) // min(most, BATCH))
    for first in range(batches):
        yield rows[first::batches]


@dataclass(frozen=True, eq=False)
class ChannelMoments:
    """Number of values, their mean and their squared deviations summed, channel by channel."""

    n: int
    mean: Tensor
    scatter: Tensor

    @classmethod
    def of(cls, values: Tensor) -> Self:
        """Moments of values (rows, channels, …)."""
        n = values.numel() // values.shape[1]
        others = [0, *range(2, values.ndim)]
        variance, mean = torch.var_mean(values.float(), others, correction=0)
        return cls(n, mean.double(), n * variance.double())

    def __add__(self, other: ChannelMoments) -> ChannelMoments:
        """Moments of both together."""
        n = self.n + other.n
        step = other.mean - self.mean
        between = step**2 * (self.n * other.n / n)
        return ChannelMoments(
            n, self.mean + step * (other.n / n), self.scatter + other.scatter + between
        )


@torch.no_grad()
def norm_statistics(
    network: Network, batches: Iterable[Tensor], precision: torch.dtype
) -> dict[str, Tensor]:
    """Means and variances of all batch norms over these batches, by their names in a state dict.

    One pass: every batch is normalised by its own statistics on its way, as in training, and the
    moments of the batches are added up. A pass for each layer in turn would be exact, at fifty
    times the cost.

    Parameters
    ----------
    network : Network
        With batch norms that are not folded; it is left with the statistics of the last batch.
    batches : iterable of Tensor
        Views of rows.
    precision : dtype
        Of products inside the backbone.
    """
    norms = batch_norms(network)
    with _measured(norms) as moments:
        for batch in batches:
            network.features(batch, precision)
    statistics = {}
    for name, total in moments.items():
        # Divided by n - 1, as torch does for the statistics that it keeps.
        values = {"running_mean": total.mean, "running_var": total.scatter / (total.n - 1)}
        for what, value in values.items():
            statistics[f"{name}.{what}"] = value.to(getattr(norms[name], what).dtype)
    return statistics


@contextmanager
def _measured(norms: dict[str, Any]) -> Iterator[dict[str, ChannelMoments]]:
    """Moments of all that comes into the batch norms, each batch normalised by its own."""
    totals: dict[str, ChannelMoments] = {}

    def measuring(name: str) -> Callable[[Any, tuple[Tensor, ...]], None]:
        def measure(norm: Any, inputs: tuple[Tensor, ...]) -> None:
            batch = ChannelMoments.of(inputs[0])
            totals[name] = totals[name] + batch if name in totals else batch
            norm.running_mean.copy_(batch.mean)
            norm.running_var.copy_(batch.scatter / batch.n)

        return measure

    hooks = [norm.register_forward_pre_hook(measuring(name)) for name, norm in norms.items()]
    try:
        yield totals
    finally:
        for hook in hooks:
            hook.remove()
