"""Linear predictors on frozen features that hold up on domains nobody has seen."""

__version__ = "0.1.0"

from skdare.heads import *  # noqa: F403
from skdare.heads import __all__ as __all__
