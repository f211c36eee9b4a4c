"""Linear predictors on frozen features that hold up on domains nobody has seen."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skdare.heads import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """What `heads` offers, when it is asked for: `skdare --help` need not wait for scikit-learn."""
    # What Python itself may ask a module for is never there, and must not cost an import.
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    offered = import_module("skdare.heads")
    if name == "__all__":
        return list(offered.__all__)
    if name in offered.__all__:
        return getattr(offered, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module("skdare.heads").__all__})
