"""What a search chooses between: a ladder of adjustments, from none to whitening."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from skdare._validation import InputError
from skdare.fitting.formulation import CENTERED, RAW, Formulation, MeanTreatment
from skdare.fitting.mixture import BY_CLASS, MOST_FEATURES, TOGETHER, Mixture
from skdare.whitening.whitening import Whitening


@dataclass(frozen=True)
class Strategy:
    """A way to deal with domains.

    Parameters
    ----------
    adjusts_new : bool
        Whether a new domain is adjusted by its own rows.
    adjust : bool
    centered : bool
    target : str
        See `Whitening`.
    means : MeanTreatment
    shrinkage : float, optional
        The only strength it has; default: those that the search is given.
    by_rows : bool
        See `Formulation`.
    mixture : Mixture, optional
        How classes may move besides.
    base : str, optional
        The strategy that a mixture starts from.
    """

    adjusts_new: bool
    adjust: bool
    centered: bool
    target: str
    means: MeanTreatment
    shrinkage: float | None = None
    by_rows: bool = False
    mixture: Mixture | None = None
    base: str | None = None

    @property
    def adapts(self) -> bool:
        """Whether it needs unlabelled rows of the new domain."""
        return self.adjusts_new or self.mixture is not None


_ERM = Strategy(False, False, True, "scaled", RAW, 0.0, by_rows=True)
_CENTER = Strategy(True, False, True, "scaled", CENTERED, 0.0)
_STANDARDIZE = Strategy(True, True, True, "diagonal", CENTERED, 1.0)
# From the simplest on.
STRATEGIES = {
    "erm": _ERM,
    "reweighted": Strategy(False, False, True, "scaled", RAW, 0.0),
    "averaged": Strategy(False, True, False, "scaled", RAW),
    "center": _CENTER,
    "standardize": _STANDARDIZE,
    "whiten": Strategy(True, True, True, "diagonal", CENTERED),
    "raw": Strategy(True, True, False, "scaled", RAW),
    "translate": replace(_ERM, mixture=TOGETHER, base="erm"),
    "mixture": replace(_ERM, mixture=BY_CLASS, base="erm"),
    "center+mixture": replace(_CENTER, mixture=BY_CLASS, base="center"),
    "standardize+mixture": replace(_STANDARDIZE, mixture=BY_CLASS, base="standardize"),
}
BY_DEFAULT = tuple(name for name in STRATEGIES if name not in ("averaged", "raw"))


@dataclass(frozen=True)
class Candidate:
    """One combination of options under trial, and the problem it stands for."""

    strategy: str
    formulation: Formulation

    @property
    def adapts(self) -> bool:
        """Whether it needs unlabelled rows of the new domain."""
        return STRATEGIES[self.strategy].adapts

    @property
    def adjusts_new(self) -> bool:
        """Whether a new domain is adjusted by its own rows."""
        return STRATEGIES[self.strategy].adjusts_new

    @property
    def shrinkage(self) -> float | None:
        """The strength of shrinkage, where the search chooses it."""
        fixed = STRATEGIES[self.strategy].shrinkage is not None
        return None if fixed else float(self.formulation.whitening.shrinkage)

    @property
    def mixture(self) -> Mixture | None:
        """How classes may move besides."""
        return STRATEGIES[self.strategy].mixture


def applicable(names: Sequence[str], d: int, *, classes: bool) -> list[str]:
    """The strategies that targets of this kind and this number of features allow.

    Mixtures are of classes. They and "whiten" need a (d, d) matrix a domain, and are for no more
    than 4,096 features.
    """
    mixtures = [name for name in names if STRATEGIES[name].mixture is not None]
    kept = [name for name in names if classes or name not in mixtures]
    if not kept:
        raise InputError(
            f"strategies is {tuple(names)!r}, and numbers have no classes that could move",
            "use 'center' or 'standardize'",
            argument="strategies",
        )
    kept = [name for name in kept if d <= MOST_FEATURES or name not in ("whiten", *mixtures)]
    if not kept:
        raise InputError(
            f"strategies is {tuple(names)!r}, and with {d} features they need a matrix of "
            f"{d} by {d} a domain",
            "use 'standardize', or reduce the features",
            argument="strategies",
        )
    return kept


def candidates_of(
    names: Sequence[str], shrinkages: Sequence[float], l2s: Sequence[float]
) -> Iterator[Candidate]:
    """Every combination that makes a difference; the ridges of one problem one after the other."""
    for name in sorted(set(names), key=list(STRATEGIES).index):
        strategy = STRATEGIES[name]
        fixed = strategy.shrinkage
        for shrinkage in shrinkages if fixed is None else (fixed,):
            whitening = Whitening(
                strategy.adjust, strategy.centered, float(shrinkage), strategy.target
            )
            for l2 in l2s:
                formulation = Formulation(whitening, strategy.means, l2, strategy.by_rows)
                yield Candidate(name, formulation)
