"""What only torch does: rows on a device, and files of tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from skdare.arrays.libraries import to_numpy
from skdare.arrays.readers import RowReader
from skdare.arrays.rows import chunk_rows


def on_device(values: Any, device: str) -> Any:
    """Arrays as torch tensors on a device, in any nesting of tuples and lists.

    Rows that lie elsewhere are brought there a chunk at a time, in their own dtype.
    """
    if isinstance(values, tuple | list):
        return type(values)(on_device(value, device) for value in values)
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"device={device!r} needs torch; pip install 'skdare[torch]' where the rows are"
        ) from error
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"device={device!r} is not on this machine; use one that is, such as 'cpu', or leave "
            "device out"
        ) from error
    if not isinstance(values, RowReader):
        return torch.asarray(np.ascontiguousarray(values)).to(device)
    first = torch.asarray(np.array(values[0:1]))
    tensor = torch.empty(values.shape, dtype=first.dtype, device=device)
    step = chunk_rows(values)
    for start in range(0, values.shape[0], step):
        rows = slice(start, min(start + step, values.shape[0]))
        tensor[rows] = torch.asarray(np.array(values[rows])).to(device)
    return tensor


def load_tensors(path: str | Path) -> dict[str, Any]:
    """A dict that torch saved, tensors as NumPy arrays and lists as they are; no code is run.

    bfloat16, which NumPy lacks, becomes float32. Values of other kinds are left out.
    """
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"{path} needs torch; pip install 'skdare[torch]'") from error
    contents = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(contents, dict):
        raise TypeError(
            f"{path} holds a {type(contents).__name__}; save a dict of tensors or lists"
        )
    arrays: dict[str, Any] = {}
    for key, value in contents.items():
        if isinstance(value, torch.Tensor):
            arrays[str(key)] = to_numpy(value.float() if value.dtype == torch.bfloat16 else value)
        elif isinstance(value, list):
            arrays[str(key)] = value
    return arrays


def save_tensors(tensors: dict[str, Any], path: str | Path) -> None:
    """Write a dict of torch tensors, which `load_tensors` reads without running code."""
    import torch

    torch.save(tensors, path)
