"""The paper's ablations by name: one thing left out, or one number swept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from skdare._validation import check_choice
from skdare.bench._feature_set import Data, sorted_domains
from skdare.bench._heads import HEADS, check_options
from skdare.bench._plan import Plan, PlanBuilder
from skdare.bench._preparation import PROJECTIONS, Projection
from skdare.bench._record import ABLATION
from skdare.bench._settings import Settings
from skdare.bench._trial import Trial

Values = tuple[float, ...] | None
SUBSETS = 10  # sets of training domains of each size, at most


def ablation_plan(
    ablation: str,
    data: Data,
    *,
    projection: str = PROJECTIONS[0],
    values: Sequence[float] | None = None,
    pretrained: Data | None = None,
    settings: Settings | None = None,
    trials: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    name: str | None = None,
    task: str | None = None,
    held_out: Sequence[str] | None = None,
    min_rows: int = 1,
) -> Plan:
    """One of the paper's ablations.

    Parameters
    ----------
    ablation : str
        "whitening", "constraint", "mean", "lambda", "shrinkage", "dimension" or "domains".
    data : DomainData, or mapping as in `bench_plan`
    projection : "random" or "pca"
        How "dimension" makes the features fewer.
    values : sequence of float, optional
        Values of a sweep, in place of its own.
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
        raise ValueError("values is empty; give some, or leave it out for the usual ones")
    builder = PlanBuilder.of(
        data,
        pretrained=pretrained,
        settings=settings,
        trials=trials,
        options=options,
        name=name,
        task=task,
        held_out=held_out,
        min_rows=min_rows,
    )
    chosen = None if values is None else tuple(values)
    study = ABLATIONS[ablation]
    if isinstance(study, DimensionSweep):
        study = replace(study, projection=projection)
    return builder.plan(study.trials(builder, ABLATION + ablation, chosen))


class Ablation(Protocol):
    """The trials of an ablation, over its own values where ``values`` is None."""

    def trials(self, builder: PlanBuilder, study: str, values: Values) -> Iterable[Trial]: ...


@dataclass(frozen=True)
class Variants:
    """Heads side by side: ERM, DARE, and DARE with one thing changed."""

    heads: tuple[str, ...]

    def trials(self, builder: PlanBuilder, study: str, values: Values) -> Iterator[Trial]:
        if values is not None:
            raise ValueError("this ablation compares heads and sweeps nothing; leave values out")
        in_paper = builder.settings.protocol == "paper"
        heads = [head for head in self.heads if not in_paper or HEADS[head].in_paper]
        for held_out, number in builder.folds():
            for head in heads:
                yield builder.trial(study, head, held_out, number)


@dataclass(frozen=True)
class OptionSweep:
    """One option of each head over a range."""

    option: Mapping[str, str]
    values: tuple[float, ...]

    def trials(self, builder: PlanBuilder, study: str, values: Values) -> Iterator[Trial]:
        values = values or self.values
        for head, name in self.option.items():
            for x in values:
                check_options(head, {name: x}, builder.features.task, builder.settings.protocol)
        for held_out, number in builder.folds():
            for head, name in self.option.items():
                for x in values:
                    yield builder.trial(
                        study, head, held_out, number, x=float(x), options={name: x}
                    )


@dataclass(frozen=True)
class DimensionSweep:
    """Fewer features: ERM, DARE and the ceiling; the ceiling alone on pretrained features."""

    values: tuple[float, ...]
    projection: str = PROJECTIONS[0]

    def trials(self, builder: PlanBuilder, study: str, values: Values) -> Iterator[Trial]:
        for held_out, number in builder.folds():
            for features, feature_set in builder.feature_sets.items():
                if held_out not in feature_set.held_out:
                    continue
                d = feature_set.table(held_out, number).X.shape[1]
                if values is not None and features == "given":
                    _check_counts("dimension", values, d)
                heads = ("erm", "dare") if features == "given" else ()
                sizes = {int(value) for value in values or self.values if value < d}
                for size in [*sorted(sizes), d]:
                    for head in (*heads, "ceiling-exact"):
                        yield builder.trial(
                            study,
                            head,
                            held_out,
                            number,
                            x=float(size),
                            features=features,
                            projection=Projection(self.projection, size),
                        )


@dataclass(frozen=True)
class DomainSweep:
    """Fewer training domains: every set of each size, or a few at random."""

    def trials(self, builder: PlanBuilder, study: str, values: Values) -> Iterator[Trial]:
        for held_out, number in builder.folds():
            domains = sorted_domains(builder.features.table(held_out, number).domains)
            others = [domain for domain in domains if domain != held_out]
            sizes = tuple(range(1, len(others) + 1)) if values is None else values
            _check_counts("domains", sizes, len(others))
            for size in map(int, sizes):
                for subset in _subsets(others, size, number):
                    for head in ("erm", "dare"):
                        yield builder.trial(
                            study, head, held_out, number, x=float(size), training_domains=subset
                        )


def _check_counts(name: str, values: Sequence[float], largest: int) -> None:
    """Refuse values of a sweep over counts that are not whole numbers from one to the largest."""
    for value in values:
        if value != int(value) or not 1 <= value <= largest:
            raise ValueError(
                f"values of the ablation {name} cannot be {value:g}; use whole numbers from 1 to "
                f"{largest}"
            )


def _subsets(domains: Sequence[str], size: int, seed: int) -> list[tuple[str, ...]]:
    """Every set of ``size`` domains, or a few drawn at random where there are many."""
    rng = np.random.default_rng([seed, size])
    if len(domains) <= 8:
        every = list(combinations(domains, size))
        if len(every) <= SUBSETS:
            return every
        return [every[i] for i in sorted(rng.choice(len(every), SUBSETS, replace=False))]
    draws = (sorted(rng.choice(len(domains), size, replace=False)) for _ in range(SUBSETS))
    return list(dict.fromkeys(tuple(domains[i] for i in draw) for draw in draws))


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
