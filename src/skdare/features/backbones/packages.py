"""Optional packages of networks: imported when they are needed, with errors that say what helps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

import torch


def optional_package(package: str, remedy: str) -> ModuleType:
    """Import a package, or raise an ImportError that says how to install it."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ImportError(f"{package} is not installed; {remedy}") from error


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
        raise ImportError(
            f"torchvision does not match this torch ({torch.__version__}): {cause}; "
            "install the torchvision of the same release, or remove it"
        ) from error
