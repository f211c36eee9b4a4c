"""The paper's model of distribution shift, its theorems and their quantities, as code."""

from skdare.theory._laws import LAWS
from skdare.theory._model import LatentDomain, LatentModel

__all__ = ["LAWS", "LatentDomain", "LatentModel"]
