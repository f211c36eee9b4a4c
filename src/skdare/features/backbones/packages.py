"""An import of torchvision that fails because it was built for another torch, explained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from skdare.errors import InputError


@contextmanager
def explaining_torchvision() -> Iterator[None]:
    """Explain imports that fail because torchvision was built for another torch.

    The error itself speaks of an operator that does not exist, or of a class of another package
    that could not be imported.
    """
    try:
        yield
    except (RuntimeError, ImportError) as error:
        cause: BaseException | None = error
        while cause is not None and "torchvision::" not in str(cause):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        raise InputError(
            f"torchvision does not match this torch ({torch.__version__}): {cause}",
            "install the torchvision of the same release, or remove it",
        ) from error
