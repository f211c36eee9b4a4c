"""Inputs of a network: on its device for good, or copied there a few rows at a time."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

# Share of the device's free memory that inputs may take for good.
_LARGEST_SHARE = 0.5
# Bytes of inputs that are sent to the device at once where they do not stay there.
_STAGE_BYTES = 2**28


class ResidentInputs:
    """All inputs, on the device; shared by all trainings there.

    Attributes
    ----------
    inputs, labels : Tensor
        On the device, at a fixed address, which a captured graph may read.
    capacity : int
        Number of rows that can be staged at once.
    """

    def __init__(self, inputs: np.ndarray, labels: np.ndarray, device: torch.device) -> None:
        self.inputs = _tensor(inputs).to(device)
        self.labels = torch.from_numpy(np.asarray(labels, dtype=np.int64)).to(device)
        self.capacity = 2**62

    def stage(self, rows: np.ndarray, places: Tensor) -> None:
        """Write the place of each row in ``inputs`` to ``places``: the row itself."""
        copy_to(places, rows)


class StagedInputs:
    """Inputs on the host, of which a few steps' rows at a time are copied to the device.

    It has the attributes of `ResidentInputs`; at least ``at_least`` rows can be staged at once.
    """

    def __init__(
        self, inputs: np.ndarray, labels: np.ndarray, device: torch.device, at_least: int = 1
    ) -> None:
        self._inputs = inputs
        self._labels = np.asarray(labels, dtype=np.int64)
        row_bytes = int(np.prod(inputs.shape[1:])) * inputs.dtype.itemsize
        self.capacity = max(at_least, _STAGE_BYTES // row_bytes)
        dtype = torch.from_numpy(np.empty(0, inputs.dtype)).dtype
        self.inputs = torch.empty((self.capacity, *inputs.shape[1:]), dtype=dtype, device=device)
        self.labels = torch.empty(self.capacity, dtype=torch.int64, device=device)

    def stage(self, rows: np.ndarray, places: Tensor) -> None:
        """Copy rows to the device, and write the place of each in ``inputs`` to ``places``."""
        flat = rows.reshape(-1)
        # In the order of the file, so that a memory map is read forwards.
        order = np.argsort(flat, kind="stable")
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(flat))
        copy_to(self.inputs[: len(flat)], self._inputs[flat[order]])
        copy_to(self.labels[: len(flat)], self._labels[flat[order]])
        copy_to(places, inverse.reshape(rows.shape))


DeviceInputs = ResidentInputs | StagedInputs


def place_inputs(
    inputs: np.ndarray, labels: np.ndarray, device: torch.device, at_least: int = 1
) -> DeviceInputs:
    """Inputs that stay on the device where they fit, else staged."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        if inputs.nbytes > _LARGEST_SHARE * free:
            return StagedInputs(inputs, labels, device, at_least)
    return ResidentInputs(inputs, labels, device)


def copy_to(place: Tensor, values: np.ndarray) -> None:
    """Copy to the device; from pinned memory, so that the host does not wait for it."""
    source = _tensor(np.ascontiguousarray(values))
    if place.device.type == "cuda":
        place.copy_(source.pin_memory(), non_blocking=True)
    else:
        place.copy_(source)


def _tensor(values: np.ndarray) -> Tensor:
    """Tensor on the same memory. Nothing ever writes to it, so a read-only map will do."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.from_numpy(values)
