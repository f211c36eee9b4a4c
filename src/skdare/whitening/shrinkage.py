"""Shrinkage of second moments: how strongly, and towards what.

    (1 - ρ) S + ρ · target

A target is a multiple of the identity, so that S and its shrunk form share eigenvectors; the pooled
one is, too, in the coordinates in which the pool is the identity (see `Whitening.common`), and the
diagonal one in those in which every feature has unit variance (see `diagonal_root`). The strength ρ
is a number, or a rule that `Moments.shrinkage` estimates from the moments.
"""

from __future__ import annotations

from skdare._validation import InputError

SHRINKAGE_RULES = ("ledoit-wolf", "oas")
# (tr S / d) I; the raw identity, as the paper prints it; the mean second moment of all domains; the
# domain's own diagonal.
SHRINKAGE_TARGETS = ("scaled", "identity", "pooled", "diagonal")


def ridge_of(rho: float, target: str, scale: float) -> float:
    """What shrinkage adds to the diagonal of a second moment whose tr(S) / d is ``scale``.

    Towards a pool, S is seen in the pool's coordinates, and the target there is the identity.
    Where no domain varies there is no pool, and "pooled" is as "scaled". Towards the diagonal it
    adds as much to the mean feature.
    """
    units = {"scaled": scale, "identity": 1.0, "pooled": scale, "diagonal": scale}
    return rho * units[target]


def check_strength(shrinkage: float | str, target: str) -> None:
    """Refuse a rule for a target that it was not derived for."""
    if isinstance(shrinkage, str) and target in ("pooled", "diagonal"):
        raise InputError(
            f"shrinkage={shrinkage!r} is the best strength towards a multiple of the identity",
            f"with shrinkage_target={target!r} use a number",
            argument="shrinkage",
        )
