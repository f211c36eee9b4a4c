"""Linear predictors on frozen features that hold up on domains nobody has seen."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skdare.export import swap as swap
    from skdare.heads import *  # noqa: F403

__version__ = "0.1.0"


def _offered() -> dict[str, str]:
    """Every public name, and the module that has it."""
    heads = "skdare.heads"
    return {**dict.fromkeys(import_module(heads).__all__, heads), "swap": "skdare.export"}


def __getattr__(name: str) -> Any:
    """What is public, when it is asked for: `skdare --help` need not wait for scikit-learn."""
    # What Python itself may ask a module for is never there, and must not cost an import.
    private = name.startswith("_") and name != "__all__"
    offered = {} if private else _offered()
    if name == "__all__":
        return list(offered)
    if name not in offered:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(offered[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_offered()})
