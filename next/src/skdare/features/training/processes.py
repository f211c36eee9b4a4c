"""Processes that train one network together, each on its share of every batch."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn


@dataclass(frozen=True)
class Processes:
    """Number of this process, and of all."""

    rank: int = 0
    count: int = 1

    @classmethod
    def join(cls, device: torch.device) -> Processes:
        """Join the processes that ``torchrun`` started, if it did."""
        if int(os.environ.get("WORLD_SIZE", "1")) < 2:
            return cls()
        if not dist.is_initialized():
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def several(self) -> bool:
        """Whether there are others."""
        return self.count > 1

    @property
    def first(self) -> bool:
        """Whether this is the one that writes files and speaks."""
        return self.rank == 0

    def exchanging(self, model: nn.Module, *, last: bool) -> AbstractContextManager[Any]:
        """Exchange gradients once a step: within, only in the last micro-batch."""
        return model.no_sync() if self.several and not last else nullcontext()  # type: ignore

    def mean(self, value: float) -> float:
        """Mean of a number over all processes."""
        return float(self._summed(np.array([value]))[0]) / self.count

    def interleaved(self, share: np.ndarray, n: int) -> np.ndarray:
        """All n flags, of which this process has every ``count``-th."""
        if not self.several:
            return share
        flags = np.zeros(n)
        flags[self.rank :: self.count] = share
        return self._summed(flags) > 0.5

    def _summed(self, values: np.ndarray) -> np.ndarray:
        if not self.several:
            return values
        nccl = dist.get_backend() == "nccl"
        place = torch.device("cuda", torch.cuda.current_device()) if nccl else "cpu"
        total = torch.from_numpy(values.astype(np.float64)).to(place)
        dist.all_reduce(total)
        return total.cpu().numpy()

    def wait(self) -> None:
        """Wait for the others."""
        if self.several:
            dist.barrier()


ALONE = Processes()
