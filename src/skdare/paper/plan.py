"""The trials of a study: the paper's tables, its ceilings, its diagnostics, its ablations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from skdare.errors import unknown
from skdare.paper.ceilings import DESCENT, EXACT
from skdare.paper.diagnostics import ALIGNMENTS, GUESSES
from skdare.paper.protocol import MAIN_HEADS

ABLATION = "ablation:"
GIVEN = "given"
PRETRAINED = "pretrained"
MOST_SUBSETS = 10  # sets of training domains of each size
_LAMBDAS = (0.0, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5)
_SHRINKAGES = (0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 1.0)
_SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
# Heads side by side: ERM, DARE, and DARE with one thing changed.
_VARIANTS = {
    "whitening": ("erm", "dare", "no-whitening"),
    "constraint": ("erm", "dare", "no-constraint"),
    "mean": ("erm", "dare", "estimated-mean"),
}
ABLATIONS = (*_VARIANTS, "lambda", "shrinkage", "dimension", "domains")


@dataclass(frozen=True)
class Trial:
    """One thing to fit and to score.

    Parameters
    ----------
    study : str
        "main", "ceiling", "adjustment", "alignment", or an ablation.
    head, held_out : str
    trial : int
        Seeds the split.
    x : float, optional
        Value of the number that a study varies.
    options : tuple of (name, value)
        Options of the head.
    features : "given" or "pretrained"
    size : int, optional
        Number of features that a random projection leaves.
    training_domains : tuple of str
        Default: every domain but the held-out one.
    """

    study: str
    head: str
    held_out: str
    trial: int
    x: float | None = None
    options: tuple[tuple[str, Any], ...] = ()
    features: str = GIVEN
    size: int | None = None
    training_domains: tuple[str, ...] = ()

    @property
    def fold(self) -> tuple[Any, ...]:
        """Trials with the same rows and features."""
        return self.features, self.size, self.training_domains

    @property
    def fields(self) -> dict[str, Any]:
        return asdict(self)


def study_trials(held_out: str, number: int) -> Iterator[Trial]:
    """What every study measures on one held-out domain in one trial."""
    for head in MAIN_HEADS:
        yield Trial("main", head, held_out, number)
    for head in (EXACT, DESCENT):
        for features in (GIVEN, PRETRAINED):
            yield Trial("ceiling", head, held_out, number, features=features)
    for which in GUESSES:
        yield Trial("adjustment", which, held_out, number)
    for which in ALIGNMENTS:
        yield Trial("alignment", which, held_out, number)


def ablation_trials(
    name: str, held_out: str, number: int, domains: Sequence[str], features: int
) -> Iterator[Trial]:
    """An ablation on one held-out domain in one trial; ``domains`` are those that train."""
    study = ABLATION + name
    first = Trial(study, "dare", held_out, number)
    if name in _VARIANTS:
        for head in _VARIANTS[name]:
            yield replace(first, head=head)
    elif name == "lambda":
        for head, option in (("dare", "mean_penalty"), ("irm", "penalty")):
            for x in _LAMBDAS:
                yield replace(first, head=head, x=x, options=((option, x),))
    elif name == "shrinkage":
        for x in _SHRINKAGES:
            yield replace(first, x=x, options=(("shrinkage", x),))
    elif name == "dimension":
        for size in [*(size for size in _SIZES if size < features), features]:
            for head in ("erm", "dare", EXACT):
                yield replace(first, head=head, x=float(size), size=size)
            yield replace(first, head=EXACT, x=float(size), size=size, features=PRETRAINED)
    elif name == "domains":
        for size in range(1, len(domains) + 1):
            for subset in _subsets(domains, size, number):
                for head in ("erm", "dare"):
                    yield replace(first, head=head, x=float(size), training_domains=subset)
    else:
        raise unknown("ablation", name, ABLATIONS)


def _subsets(domains: Sequence[str], size: int, seed: int) -> list[tuple[str, ...]]:
    """Every set of this many domains, or a few drawn at random if there are many."""
    rng = np.random.default_rng([seed, size])
    if len(domains) <= 8:
        every = list(combinations(domains, size))
        if len(every) <= MOST_SUBSETS:
            return every
        return [every[i] for i in sorted(rng.choice(len(every), MOST_SUBSETS, replace=False))]
    draws = (sorted(rng.choice(len(domains), size, replace=False)) for _ in range(MOST_SUBSETS))
    return list(dict.fromkeys(tuple(domains[i] for i in draw) for draw in draws))
