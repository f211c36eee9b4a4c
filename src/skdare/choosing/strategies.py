"""What a search chooses between: a ladder of adjustments, from none to whitening."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skdare._validation import InputError
from skdare.fitting.formulation import CENTERED, RAW, Formulation, MeanTreatment
from skdare.whitening.whitening import Whitening


@dataclass(frozen=True)
class Strategy:
    """A way to deal with domains.

    Parameters
    ----------
    adapts : bool
        Whether it needs unlabelled rows of the new domain.
    adjust : bool
    centered : bool
    target : str
        See `Whitening`.
    means : MeanTreatment
    shrinkage : float, optional
        The only strength it has; default: those that the search is given.
    by_rows : bool
        See `Formulation`.
    """

    adapts: bool
    adjust: bool
    centered: bool
    target: str
    means: MeanTreatment
    shrinkage: float | None = None
    by_rows: bool = False


# From the simplest on.
STRATEGIES = {
    "erm": Strategy(False, False, True, "scaled", RAW, 0.0, by_rows=True),
    "reweighted": Strategy(False, False, True, "scaled", RAW, 0.0),
    "averaged": Strategy(False, True, False, "scaled", RAW),
    "center": Strategy(True, False, True, "scaled", CENTERED, 0.0),
    "standardize": Strategy(True, True, True, "diagonal", CENTERED, 1.0),
    "whiten": Strategy(True, True, True, "diagonal", CENTERED),
    "raw": Strategy(True, True, False, "scaled", RAW),
}
# Above this many features, whitening a domain of fewer rows would make a (d, d) matrix of it.
MOST_WHITENED = 4096
BY_DEFAULT = ("erm", "reweighted", "center", "standardize", "whiten")


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
    def shrinkage(self) -> float | None:
        """The strength of shrinkage, where the search chooses it."""
        fixed = STRATEGIES[self.strategy].shrinkage is not None
        return None if fixed else float(self.formulation.whitening.shrinkage)


def applicable(names: Sequence[str], d: int) -> list[str]:
    """The strategies that features of this number allow: "whiten" is for no more than 4,096."""
    kept = [name for name in names if name != "whiten" or d <= MOST_WHITENED]
    if not kept:
        raise InputError(
            f"strategies is {tuple(names)!r}, and with {d} features whitening needs a matrix of "
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
