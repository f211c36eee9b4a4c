"""Where the inputs of a training lie: on its device for good, or on the host until they are due."""

from __future__ import annotations

import warnings
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

# Share of the device's free memory that inputs may take for good.
_ROOM = 0.5
# Bytes of inputs that are sent to the device at once where they do not stay there.
_STAGE = 2**28


class Feed(Protocol):
    """Gives the inputs and labels of rows, on the device.

    Attributes
    ----------
    inputs, labels : Tensor
        Fixed places on the device, which a captured program may read.
    most : int
        Rows that can be staged at once.
    """

    inputs: Tensor
    labels: Tensor
    most: int

    def stage(self, rows: np.ndarray, place: Tensor) -> None:
        """Make these rows ready, and write to the place where in ``inputs`` each of them lies."""
        ...


class Resident:
    """All inputs, on the device; shared by all trainings there."""

    def __init__(self, inputs: np.ndarray, labels: np.ndarray, device: torch.device) -> None:
        self.inputs = _tensor(inputs).to(device)
        self.labels = torch.from_numpy(np.asarray(labels, dtype=np.int64)).to(device)
        self.most = 2**62

    def stage(self, rows: np.ndarray, place: Tensor) -> None:
        """The rows themselves."""
        put(place, rows)


class Staged:
    """Inputs on the host; a few steps' rows at a time are copied to the device."""

    def __init__(
        self, inputs: np.ndarray, labels: np.ndarray, device: torch.device, least: int = 1
    ) -> None:
        self._inputs, self._labels = inputs, np.asarray(labels, dtype=np.int64)
        each = int(np.prod(inputs.shape[1:])) * inputs.dtype.itemsize
        self.most = max(least, _STAGE // each)
        kind = torch.from_numpy(np.empty(0, inputs.dtype)).dtype
        self.inputs = torch.empty((self.most, *inputs.shape[1:]), dtype=kind, device=device)
        self.labels = torch.empty(self.most, dtype=torch.int64, device=device)

    def stage(self, rows: np.ndarray, place: Tensor) -> None:
        """Copy these rows, and number them as they lie there."""
        flat = rows.reshape(-1)
        # In the order of the file, so that a memory map is read forwards.
        order = np.argsort(flat, kind="stable")
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(flat))
        put(self.inputs[: len(flat)], self._inputs[flat[order]])
        put(self.labels[: len(flat)], self._labels[flat[order]])
        put(place, inverse.reshape(rows.shape))


def feed(
    inputs: np.ndarray, labels: np.ndarray, device: torch.device, least: int = 1
) -> Resident | Staged:
    """Inputs that stay on the device where they fit; else staged, at least so many at once."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        if inputs.nbytes > _ROOM * free:
            return Staged(inputs, labels, device, least)
    return Resident(inputs, labels, device)


def put(place: Tensor, values: np.ndarray) -> None:
    """Copy into a place on the device; from pinned memory the host does not wait for it."""
    sent = _tensor(np.ascontiguousarray(values))
    if place.device.type == "cuda":
        place.copy_(sent.pin_memory(), non_blocking=True)
    else:
        place.copy_(sent)


def _tensor(values: np.ndarray) -> Tensor:
    """The same memory; nothing ever writes to it, so a map opened for reading will do."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.from_numpy(values)
