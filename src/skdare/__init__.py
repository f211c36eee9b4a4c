"""Linear predictors on frozen features that hold up on domains nobody has seen."""

__version__ = "0.1.0"

from skdare import export, heads
from skdare.export import *  # noqa: F403
from skdare.heads import *  # noqa: F403

# A public name is listed once, in the module that has it; this adds the lists up.
__all__: list[str] = []
__all__ += heads.__all__
__all__ += export.__all__

# What is public beside the names here: the names in `__all__` of these modules. All else may change
# in any release.
_PUBLIC_MODULES = (
    *("adjustment", "bench", "datasets", "diagnosis", "engines", "features"),
    *("moments", "report", "solvers", "summary", "theory"),
)


def __dir__() -> list[str]:
    imported = [name for name in _PUBLIC_MODULES if name in globals()]
    return sorted([*__all__, *imported, "__version__"])
