"""Packages that only some formats need."""

from __future__ import annotations

from importlib import import_module


def needed(package: str, what: str, extra: str) -> None:
    """The package is installed, or an ImportError says how to get it."""
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ImportError(f"{what} needs {package}; pip install 'skdare[{extra}]'") from error
