"""Where the inputs of a training lie: on its device for good, or on the host until they are due."""

from __future__ import annotations

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

    def stage(self, rows: np.ndarray) -> Tensor:
        """Make these rows ready, and say where they lie in ``inputs``, in the same shape."""
        ...


class Resident:
    """All inputs, on the device; shared by all trainings there."""

    def __init__(self, inputs: np.ndarray, labels: np.ndarray, device: torch.device) -> None:
        self.inputs = _tensor(inputs).to(device)
        self.labels = torch.from_numpy(np.asarray(labels, dtype=np.int64)).to(device)
        self.most = 2**62

    def stage(self, rows: np.ndarray) -> Tensor:
        """The rows themselves."""
        return _sent(torch.from_numpy(np.ascontiguousarray(rows)), self.inputs.device)


class Staged:
    """Inputs on the host; a few steps' rows at a time are copied to the device."""

    def __init__(self, inputs: np.ndarray, labels: np.ndarray, device: torch.device) -> None:
        self._inputs, self._labels = inputs, np.asarray(labels, dtype=np.int64)
        each = int(np.prod(inputs.shape[1:])) * inputs.dtype.itemsize
        self.most = max(1, _STAGE // each)
        kind = torch.from_numpy(np.empty(0, inputs.dtype)).dtype
        self.inputs = torch.empty((self.most, *inputs.shape[1:]), dtype=kind, device=device)
        self.labels = torch.empty(self.most, dtype=torch.int64, device=device)

    def stage(self, rows: np.ndarray) -> Tensor:
        """Copy these rows, and number them as they lie there."""
        flat = rows.reshape(-1)
        if len(flat) > self.most:
            raise ValueError(f"{len(flat)} rows are asked for at once; {self.most} fit the stage")
        device = self.inputs.device
        # In the order of the file, so that a memory map is read forwards.
        order = np.argsort(flat, kind="stable")
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(flat))
        self.inputs[: len(flat)].copy_(_sent(_tensor(self._inputs[flat[order]]), device))
        labels = torch.from_numpy(self._labels[flat[order]])
        self.labels[: len(flat)].copy_(_sent(labels, device))
        return _sent(torch.from_numpy(inverse.reshape(rows.shape)), device)


def feed(inputs: np.ndarray, labels: np.ndarray, device: torch.device) -> Resident | Staged:
    """Inputs that stay on the device where they fit, else those that are staged."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        if inputs.nbytes > _ROOM * free:
            return Staged(inputs, labels, device)
    return Resident(inputs, labels, device)


def _tensor(values: np.ndarray) -> Tensor:
    # A memory map opened for reading is not writable, which torch warns of and we never do.
    return torch.from_numpy(values if values.flags.writeable else np.array(values))


def _sent(values: Tensor, device: torch.device) -> Tensor:
    """On the device; from pinned memory the copy does not wait."""
    if device.type == "cuda":
        return values.pin_memory().to(device, non_blocking=True)
    return values.to(device)
