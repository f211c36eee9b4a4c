"""The paper's ablations by name: one thing left out, or one number swept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from itertools import combinations

import numpy as np

from skdare._validation import check_choice
from skdare.bench._heads import HEADS
from skdare.bench._plan import Questions
from skdare.bench._source import PROJECTIONS, Projection, distinct
from skdare.bench._trial import Plan, Trial

PENALTIES = (0.0, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5)
SHRINKAGES = (0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 1.0)
SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
SUBSETS = 10  # sets of training domains of each size, at most


def ablation_plan(
    name: str,
    questions: Questions,
    *,
    projection: str = "random",
    values: Sequence[float] | None = None,
) -> Plan:
    """One ablation of the paper's, by name.

    Parameters
    ----------
    name : str
        One of `ABLATIONS`.
    questions : Questions
    projection : "random" or "pca"
        How features are made fewer, for "dimension".
    values : sequence of float, optional
        What a sweep visits, in place of its own values.
    """
    if name not in ABLATIONS:
        close = get_close_matches(name, ABLATIONS, n=1)
        hint = f"; did you mean `{close[0]}`?" if close else ""
        raise ValueError(f"no ablation is called `{name}`{hint} There are {', '.join(ABLATIONS)}")
    check_choice("projection", projection, PROJECTIONS)
    trials = ABLATIONS[name](questions, f"ablation:{name}", projection, values)
    return questions.plan(iter(list(trials)))


Ablation = Callable[[Questions, str, str, Sequence[float] | None], Iterator[Trial]]


def _variants(*heads: str) -> Ablation:
    """Heads side by side."""

    def ask(
        q: Questions, study: str, projection: str, values: Sequence[float] | None
    ) -> Iterator[Trial]:
        if values is not None:
            raise ValueError(f"{study.removeprefix('ablation:')} compares heads and sweeps nothing")
        known = [h for h in heads if q.settings.protocol != "paper" or HEADS[h].in_paper]
        for held_out, number in q.folds():
            for head in known:
                # An ablation is DARE with one thing left out: it has the options of DARE.
                own = {} if head == "erm" else dict(q.options.get("dare", {}))
                yield q.trial(study, head, held_out, number, options=own)

    return ask


def _sweep(option: dict[str, str], own: Sequence[float]) -> Ablation:
    """One option of each head over a range."""

    def ask(
        q: Questions, study: str, projection: str, values: Sequence[float] | None
    ) -> Iterator[Trial]:
        for held_out, number in q.folds():
            for head, name in option.items():
                for x in own if values is None else values:
                    yield q.trial(study, head, held_out, number, x=float(x), options={name: x})

    return ask


def _dimension(
    q: Questions, study: str, projection: str, values: Sequence[float] | None
) -> Iterator[Trial]:
    for held_out, number in q.folds():
        for features, source in q.sources.items():
            if held_out not in source.held_out:
                continue
            d = source.tables[held_out].X.shape[1]
            sizes = [int(v) for v in (SIZES if values is None else values) if v < d]
            heads = ("erm", "dare", "ceiling-exact") if features == "given" else ("ceiling-exact",)
            for size in [*sizes, d]:
                for head in heads:
                    yield q.trial(
                        study,
                        head,
                        held_out,
                        number,
                        x=float(size),
                        features=features,
                        projection=Projection(projection, size),
                    )


def _domains(
    q: Questions, study: str, projection: str, values: Sequence[float] | None
) -> Iterator[Trial]:
    for held_out, number in q.folds():
        seen = [d for d in distinct(q.source.tables[held_out].domains) if d != held_out]
        sizes = range(1, len(seen) + 1) if values is None else [int(v) for v in values]
        for size in sizes:
            for chosen in _subsets(seen, size, number):
                for head in ("erm", "dare"):
                    yield q.trial(study, head, held_out, number, x=float(size), seen=chosen)


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
    "whitening": _variants("erm", "dare", "no-whitening"),
    "constraint": _variants("erm", "dare", "no-constraint", "exact-constraint"),
    "mean": _variants("erm", "dare", "estimated-mean"),
    "lambda": _sweep({"dare": "mean_penalty", "irm": "penalty"}, PENALTIES),
    "shrinkage": _sweep({"dare": "shrinkage"}, SHRINKAGES),
    "dimension": _dimension,
    "domains": _domains,
}
