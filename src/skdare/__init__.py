"""Linear predictors on frozen features that hold up on domains nobody has seen."""

__version__ = "0.1.0"

from skdare import heads
from skdare.export import swap
from skdare.heads import *  # noqa: F403

__all__ = [*heads.__all__, "swap"]
