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


_AS_THEY_ARE = Strategy(
    adjusts_new=False, adjust=False, centered=True, target="scaled", means=RAW, shrinkage=0.0
)
_ERM = replace(_AS_THEY_ARE, by_rows=True)
_CENTER = replace(_AS_THEY_ARE, adjusts_new=True, means=CENTERED)
_STANDARDIZE = replace(_CENTER, adjust=True, target="diagonal", shrinkage=1.0)
_RAW = replace(_AS_THEY_ARE, adjusts_new=True, adjust=True, centered=False, shrinkage=None)
# From the simplest on.
STRATEGIES = {
    "erm": _ERM,
    "reweighted": _AS_THEY_ARE,
    "averaged": replace(_RAW, adjusts_new=False),
    "center": _CENTER,
    "standardize": _STANDARDIZE,
    "whiten": replace(_STANDARDIZE, shrinkage=None),
    "raw": _RAW,
    "erm+translation": replace(_ERM, mixture=TOGETHER, base="erm"),
    "erm+mixture": replace(_ERM, mixture=BY_CLASS, base="erm"),
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


def applicable(names: Sequence[str] | None, d: int, *, classes: bool) -> list[str]:
    """The strategies to try: those named, or all of `BY_DEFAULT` that suit targets and features.

    Mixtures are of classes. They and "whiten" need a (d, d) matrix a domain, and are for no more
    than 4,096 features.
    """
    if names is None:
        return [name for name in BY_DEFAULT if _obstacle(name, d, classes=classes) is None]
    for name in names:
        obstacle = _obstacle(name, d, classes=classes)
        if obstacle is not None:
            raise InputError(
                f"strategies names {name!r}, and {obstacle}",
                "leave it out, or use 'standardize'",
                argument="strategies",
            )
    return list(names)


def _obstacle(name: str, d: int, *, classes: bool) -> str | None:
    """What keeps a strategy from being tried, if anything."""
    mixture = STRATEGIES[name].mixture is not None
    if mixture and not classes:
        return "numbers have no classes that could move"
    if d > MOST_FEATURES and (mixture or name == "whiten"):
        return f"with {d} features it needs a matrix of {d} by {d} a domain"
    return None


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
