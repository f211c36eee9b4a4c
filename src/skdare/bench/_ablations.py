"""The paper's ablations by name: one thing left out, or one number swept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from skdare._validation import InputError, check_choice
from skdare.bench._heads import HEADS
from skdare.bench._preparation import PROJECTIONS, Projection
from skdare.bench._questions import Questions, check_options
from skdare.bench._record import ABLATION
from skdare.bench._source import Data, distinct
from skdare.bench._trial import Plan, Trial

Values = tuple[float, ...] | None
SUBSETS = 10  # sets of training domains of each size, at most


class Ablation(Protocol):
    """What an ablation tries."""

    def trials(self, q: Questions, study: str) -> Iterable[Trial]: ...

    def visiting(self, values: Values, projection: str) -> Ablation:
        """The same with other values, where some are given."""
        ...


@dataclass(frozen=True)
class Variants:
    """Heads side by side: ERM, DARE, and DARE with one thing changed."""

    heads: tuple[str, ...]

    def trials(self, q: Questions, study: str) -> Iterator[Trial]:
        known = [h for h in self.heads if q.settings.protocol != "paper" or HEADS[h].in_paper]
        for held_out, number in q.folds():
            for head in known:
                yield q.trial(study, head, held_out, number)

    def visiting(self, values: Values, projection: str) -> Variants:
        if values is not None:
            raise ValueError("this ablation compares heads and sweeps nothing; leave values out")
        return self


@dataclass(frozen=True)
class OptionSweep:
    """One option of each head over a range."""

    option: Mapping[str, str]
    values: tuple[float, ...]

    def trials(self, q: Questions, study: str) -> Iterator[Trial]:
        for head, name in self.option.items():
            for x in self.values:
                check_options(head, {name: x}, q.source.task, q.settings.protocol)
        for held_out, number in q.folds():
            for head, name in self.option.items():
                for x in self.values:
                    yield q.trial(study, head, held_out, number, x=float(x), options={name: x})

    def visiting(self, values: Values, projection: str) -> OptionSweep:
        return OptionSweep(self.option, values or self.values)


@dataclass(frozen=True)
class DimensionSweep:
    """Fewer features: ERM, DARE and the ceiling; of pretrained features, the ceiling."""

    values: tuple[float, ...]
    projection: str = "random"

    def trials(self, q: Questions, study: str) -> Iterator[Trial]:
        _check_whole("dimension", self.values)
        for held_out, number in q.folds():
            for features, source in q.sources.items():
                if held_out not in source.held_out:
                    continue
                d = source.table(held_out, number).X.shape[1]
                heads = ("erm", "dare") if features == "given" else ()
                for size in [*sorted({int(v) for v in self.values if v < d}), d]:
                    kept = Projection(self.projection, size)
                    more = {"x": float(size), "features": features, "projection": kept}
                    for head in (*heads, "ceiling-exact"):
                        yield q.trial(study, head, held_out, number, **more)

    def visiting(self, values: Values, projection: str) -> DimensionSweep:
        return DimensionSweep(values or self.values, projection)


@dataclass(frozen=True)
class DomainSweep:
    """Fewer training domains: every set of each size, or a few at random."""

    values: Values = None

    def trials(self, q: Questions, study: str) -> Iterator[Trial]:
        for held_out, number in q.folds():
            domains = distinct(q.source.table(held_out, number).domains)
            seen = [d for d in domains if d != held_out]
            sizes = tuple(range(1, len(seen) + 1)) if self.values is None else self.values
            _check_whole("domains", sizes, len(seen))
            for size in map(int, sizes):
                for chosen in _subsets(seen, size, number):
                    for head in ("erm", "dare"):
                        yield q.trial(study, head, held_out, number, x=float(size), seen=chosen)

    def visiting(self, values: Values, projection: str) -> DomainSweep:
        return DomainSweep(values)


def _check_whole(name: str, values: Sequence[float], most: int | None = None) -> None:
    """A sweep over counts visits whole numbers from one on."""
    for value in values:
        if value != int(value) or value < 1 or (most is not None and value > most):
            limit = f"from 1 to {most}" if most is not None else "of 1 or more"
            raise InputError(
                f"{name} cannot be {value:g}",
                f"use whole numbers {limit} as values",
                argument="values",
            )


def _subsets(seen: Sequence[str], size: int, seed: int) -> list[tuple[str, ...]]:
    """Every set of so many domains, or a few drawn at random where there are many."""
    rng = np.random.default_rng([seed, size])
    if len(seen) <= 8:
        every = list(combinations(seen, size))
        if len(every) <= SUBSETS:
            return every
        return [every[i] for i in sorted(rng.choice(len(every), SUBSETS, replace=False))]
    draws = (sorted(rng.choice(len(seen), size, replace=False)) for _ in range(SUBSETS))
    return list(dict.fromkeys(tuple(seen[i] for i in draw) for draw in draws))


ABLATIONS: dict[str, Ablation] = {
    "whitening": Variants(("erm", "dare", "no-whitening")),
    "constraint": Variants(("erm", "dare", "no-constraint", "exact-constraint")),
    "mean": Variants(("erm", "dare", "estimated-mean")),
    "lambda": OptionSweep(
        {"dare": "mean_penalty", "irm": "penalty"},
        (0.0, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5),
    ),
    "shrinkage": OptionSweep(
        {"dare": "shrinkage"}, (0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 1.0)
    ),
    "dimension": DimensionSweep((8, 16, 32, 64, 128, 256, 512, 1024, 2048)),
    "domains": DomainSweep(),
}


def ablation_plan(
    ablation: str,
    data: Data,
    *,
    projection: str = "random",
    values: Sequence[float] | None = None,
    **asked: Any,
) -> Plan:
    """One ablation of the paper's, by name.

    Parameters
    ----------
    ablation : str
        "whitening", "constraint", "mean", "lambda", "shrinkage", "dimension" or "domains".
    data : DomainData, or mapping as in `bench_plan`
    projection : "random" or "pca"
        How features are made fewer, for "dimension".
    values : sequence of float, optional
        What a sweep visits, in place of its own values.
    pretrained, settings, trials, options, name, task, held_out, min_rows
        As in `bench_plan`.
    """
    if ablation not in ABLATIONS:
        close = get_close_matches(ablation, ABLATIONS, n=1)
        hint = f"did you mean `{close[0]}`? " if close else ""
        raise ValueError(
            f"no ablation is called `{ablation}`; {hint}there are {', '.join(ABLATIONS)}"
        )
    check_choice("projection", projection, PROJECTIONS)
    if values is not None and not len(values):
        raise ValueError("values is empty; name what to visit, or leave it out")
    chosen = ABLATIONS[ablation].visiting(None if values is None else tuple(values), projection)
    q = Questions.of(data, **asked)
    return q.plan(chosen.trials(q, ABLATION + ablation))
