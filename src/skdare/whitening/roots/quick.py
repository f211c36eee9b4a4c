"""Inverse roots without a full decomposition, where that is quicker."""

from __future__ import annotations

from skdare.arrays import Array, like, namespace, on_accelerator
from skdare.whitening.roots.krylov import MIN_FEATURES, MIN_SHRINKAGE, deflated_inverse_root
from skdare.whitening.roots.newton_schulz import MIN_ITERATED, newton_schulz_inverse_root


def quick_inverse_root(S: Array, shrinkage: float, ridge: float, dtype: object) -> Array | None:
    """``((1 - ρ) S + ridge I)^{-1/2}`` in ``dtype``, or None where a decomposition is better.

    On an accelerator by products alone; on the host from part of the spectrum, where that is good
    enough: for products in float32, and strong shrinkage.
    """
    d = S.shape[0]
    if on_accelerator(S):
        if d < MIN_ITERATED or not ridge > 0:
            return None
        W = newton_schulz_inverse_root(S, shrinkage, ridge)
        return None if W is None else like(W, S, dtype)
    if d < MIN_FEATURES or shrinkage < MIN_SHRINKAGE or dtype != namespace(S).float32:
        return None
    return deflated_inverse_root(S, shrinkage, ridge, dtype)
