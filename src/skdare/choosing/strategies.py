"""What a search chooses between: a ladder of adjustments, from none to whitening."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from skdare.errors import InputError
from skdare.fitting.lagrangian import Formulation
from skdare.fitting.mixture import BY_CLASS, MOST_FEATURES, TOGETHER, Mixture
from skdare.whitening.whitening import Whitening


@dataclass(frozen=True)
class Strategy:
    """A way to deal with domains."""

    words: str  # "predicts by ...", "adapts by ..."
    whitening: Whitening
    adjusts_new: bool = False  # whether a new domain is adjusted by its own rows
    by_rows: bool = False
    shrinks: bool = False  # whether the search chooses the shrinkage
    mixture: Mixture | None = None
    base: str | None = None  # the strategy that the mixture starts from

    @property
    def adapts(self) -> bool:
        """Whether it needs unlabelled rows of the new domain."""
        return self.adjusts_new or self.mixture is not None


_DIAGONAL = Whitening(adjusts=True, centered=True, shrinkage=1.0, target="diagonal")
# Features in units of their scales over all training rows, so that a ridge knows no other unit.
_SCALED = replace(_DIAGONAL, adjusts=False)
_SECOND_MOMENT = Whitening(adjusts=True, centered=False, shrinkage=0.5, target="scaled")
_ERM = Strategy("plain ERM", _SCALED, by_rows=True)
_REWEIGHTED = Strategy("ERM with domains of equal weight", _SCALED)
_CENTER = Strategy("centring each domain", replace(_SCALED, shift="own mean"), adjusts_new=True)
_STANDARDIZE = replace(
    _CENTER, words="standardising each domain", whitening=replace(_DIAGONAL, shift="own mean")
)
_AVERAGED = Strategy("the averaged adjustment", _SECOND_MOMENT, shrinks=True)


def _with_mixture(strategy: Strategy, base: str, mixture: Mixture = BY_CLASS) -> Strategy:
    looking = "looking for each class among its rows"
    words = looking if strategy is _ERM else f"{strategy.words} and {looking}"
    return replace(strategy, words=words, mixture=mixture, base=base)


# From the simplest on.
STRATEGIES = {
    "erm": _ERM,
    "reweighted": _REWEIGHTED,
    "averaged": _AVERAGED,
    "center": _CENTER,
    "standardize": _STANDARDIZE,
    "by-hand": Strategy(
        "standardising each domain by its rows alone",
        replace(_STANDARDIZE.whitening, blends=False),
        adjusts_new=True,
        by_rows=True,
    ),
    "whiten": replace(_STANDARDIZE, words="centring and whitening each domain", shrinks=True),
    "raw": replace(
        _AVERAGED, words="whitening each domain by its raw second moment", adjusts_new=True
    ),
    "erm+translation": replace(
        _ERM,
        words="moving all classes by one vector, their shares estimated",
        mixture=TOGETHER,
        base="erm",
    ),
    "erm+mixture": _with_mixture(_ERM, "erm"),
    "center+mixture": _with_mixture(_CENTER, "center"),
    "standardize+mixture": _with_mixture(_STANDARDIZE, "standardize"),
}
_BY_DEFAULT = [name for name in STRATEGIES if name not in ("averaged", "raw", "by-hand")]


@dataclass(frozen=True)
class Candidate:
    """A strategy with its strengths, and the problem that it stands for."""

    name: str
    l2: float
    shrinkage: float | None  # None if the strategy has no choice of it

    @property
    def strategy(self) -> Strategy:
        return STRATEGIES[self.name]

    @property
    def whitening(self) -> Whitening:
        if self.shrinkage is None:
            return self.strategy.whitening
        return replace(self.strategy.whitening, shrinkage=self.shrinkage)

    def formulation(self, *, intercept: bool, tol: float, max_iter: int) -> Formulation:
        strategy = self.strategy
        return Formulation(self.whitening, 0.0, strategy.by_rows, intercept, self.l2, tol, max_iter)


def applicable(names: Sequence[str] | None, d: int, *, classes: bool) -> list[str]:
    """The strategies to try: those named, or by default all that suit targets and features.

    Mixtures are of classes. They and "whiten" need a (d, d) matrix for each domain.
    """
    chosen = []
    for name in _BY_DEFAULT if names is None else dict.fromkeys(names):
        obstacle = None
        mixture = STRATEGIES[name].mixture is not None
        if mixture and not classes:
            obstacle = "a regression has no classes that could move"
        elif d > MOST_FEATURES and (mixture or name == "whiten"):
            obstacle = f"with {d} features it needs a matrix of {d} by {d} for each domain"
        if obstacle is None:
            chosen.append(name)
        elif names is not None:
            raise InputError(
                f"strategies names {name!r}, and {obstacle}", "leave it out, or use 'standardize'"
            )
    return chosen


def candidates_of(
    names: Sequence[str], shrinkages: Sequence[float], l2s: Sequence[float]
) -> Iterator[Candidate]:
    """Every combination that makes a difference; the ridges of one problem one after the other."""
    for name in sorted(set(names), key=list(STRATEGIES).index):
        for shrinkage in shrinkages if STRATEGIES[name].shrinks else (None,):
            for l2 in l2s:
                yield Candidate(name, float(l2), shrinkage)
