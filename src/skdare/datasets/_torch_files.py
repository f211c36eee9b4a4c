"""Files that torch saves: a dict of tensors or lists, loaded without running code."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from skdare.arrays import load_tensors
from skdare.datasets._contents import ArrayInfo, Contents, reading

# How such a file begins: a zip archive, or, before torch 1.6, a pickle.
_SAVED_BY_TORCH = (b"PK\x03\x04", b"\x80")


def read_torch(path: Path) -> Contents:
    """Contents of a dict of tensors or lists."""
    with reading(path, "a dict of tensors or lists (weights only)"):
        with path.open("rb") as file:
            if not file.read(4).startswith(_SAVED_BY_TORCH):
                raise ValueError("neither a zip archive nor a pickle")
        arrays = {key: np.asarray(values) for key, values in load_tensors(path).items()}
    entries = {key: ArrayInfo(values.shape, values.dtype) for key, values in arrays.items()}
    return Contents(path, entries, lambda keys: [arrays[key] for key in keys])
