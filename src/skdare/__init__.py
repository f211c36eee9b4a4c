"""Linear predictors on frozen features that hold up on domains nobody has seen."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skdare.adapting import *  # noqa: F403
    from skdare.comparing import *  # noqa: F403
    from skdare.export import *  # noqa: F403
    from skdare.heads import *  # noqa: F403
    from skdare.model_io import *  # noqa: F403

__version__ = "0.1.0"

# A public name is listed once, in the module that has it; here the lists of these add up.
_OFFERING = (
    *("skdare.heads", "skdare.adapting", "skdare.model_io", "skdare.export"),
    "skdare.comparing",
)
# What is public beside the names here: the names in `__all__` of these modules. All else may change
# in any release.
_PUBLIC_MODULES = (
    *("bench", "checking", "datasets", "diagnosis", "displays", "engines"),
    *("features", "report", "solvers", "theory", "whitening"),
)


def _offered() -> dict[str, str]:
    """Every public name, and the module that has it."""
    return {name: module for module in _OFFERING for name in import_module(module).__all__}


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
    imported = [name for name in _PUBLIC_MODULES if name in globals()]
    return sorted([*_offered(), *imported, "__version__"])
