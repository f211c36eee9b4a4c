"""Whitening: moments of each domain, their inverse roots, and the guess for an unseen domain."""

from skdare.whitening.adjustment import Adjustment, adjustment_error, average
from skdare.whitening.moments import Moments
from skdare.whitening.roots.eigen import inverse_sqrt

__all__ = ["Adjustment", "Moments", "adjustment_error", "average", "inverse_sqrt"]
