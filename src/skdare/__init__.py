"""Domain-adjusted linear models: the folders are the equation, and imports go down only.

    cli -> paper -> displays | demo | features -> report -> bench -> checking -> data -> heads
        -> diagnosis -> choosing | export -> adapting -> fitting -> cluster -> objective | solvers
        -> whitening -> saving -> checks | files -> arrays | errors | progress

Five objects carry a fit, and everything else is a function of them:

    Problem -> list[Moments] -> list[Adjustment] -> Objective -> DomainFit

A solver sees a function of flat parameters. A head sees a DomainFit, and shows weights V and b on
raw features. A file holds any of the dataclasses by their annotations.
"""

from importlib import import_module
from typing import Any

from skdare.heads.table import CLASSES
from skdare.version import __version__

# Where each public name is; it is imported when it is used, so that `import skdare` takes no time.
_PLACES = {
    **{name: f"heads.{module}" for name, module in CLASSES.items()},
    "LeaveOneDomainOut": "heads.split",
    "DomainAdjuster": "heads.adjuster",
    "inspect_file": "heads.inspect",
    "load": "heads.head_file",
    "save": "heads.head_file",
    "check": "checking",
    "compare": "report",
    "read": "data",
}

__all__ = ["__version__", *sorted(_PLACES)]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
