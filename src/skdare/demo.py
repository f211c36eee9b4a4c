"""The demonstration: every head on embedded data, each domain held out in turn."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from skdare.datasets import DomainData, load_digit_domains, make_latent_domains
from skdare.heads import (
    DAREClassifier,
    ERMClassifier,
    GroupDROClassifier,
    IRMClassifier,
    LabelShiftWarning,
    ReweightedClassifier,
)

BASELINES: dict[str, Callable] = {
    "erm": ERMClassifier,
    "reweighted": ReweightedClassifier,
    "groupdro": GroupDROClassifier,
    "irm": IRMClassifier,
}
COLUMNS = (*BASELINES, "dare", "adapted")


@dataclass(frozen=True, eq=False)
class Study:
    """A data set to show: a title, a sentence, how to draw trial number t, and DARE's options."""

    title: str
    note: str
    draw: Callable[[int], DomainData]
    options: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Result:
    """Accuracy in percent, (trials, held-out domains, columns)."""

    study: Study
    domains: list[str]
    accuracy: np.ndarray


def _latent(trial: int) -> DomainData:
    return make_latent_domains(6, 400, 8, shift=0.8, random_state=trial)


def _digits(trial: int) -> DomainData:
    data = load_digit_domains()
    chosen = np.random.default_rng(trial).random(len(data.y)) < 0.8
    return DomainData(data.X[chosen], data.y[chosen], data.domains[chosen])


STUDIES = (
    Study(
        "The paper's latent model",
        "6 domains, each with its own linear map and mean; 2 classes, 8 features",
        _latent,
        # The model's own inverse: 400 rows tell 8 features' moments, and its means carry
        # information, so little shrinkage and the means left in.
        {"shrinkage": 0.1, "adaptation": "covariance"},
    ),
    Study(
        "Digits in four styles",
        "1,797 handwritten digits, each image in one style; 10 classes, 64 pixels as features",
        _digits,
        {"adaptation": "centered"},
    ),
)


def trials(study: Study, n_trials: int) -> Iterator[tuple[list[str], np.ndarray]]:
    """Domain names and accuracies, (domains, columns), one trial at a time."""
    for trial in range(n_trials):
        data = study.draw(trial)
        names = sorted(set(data.domains.tolist()))
        accuracy = [_hold_out(data, name, study.options) for name in names]
        yield [str(name) for name in names], np.array(accuracy)


def collect(study: Study, parts: list[tuple[list[str], np.ndarray]]) -> Result:
    """All trials of a study."""
    return Result(study, parts[0][0], 100.0 * np.stack([accuracy for _, accuracy in parts]))


def _hold_out(data: DomainData, name: object, options: dict[str, Any]) -> list[float]:
    """Accuracy of every column on one domain, trained on the others."""
    new = data.domains == name
    train = (data.X[~new], data.y[~new])
    dare = DAREClassifier(**options)
    heads = [make() for make in BASELINES.values()] + [dare]
    for head in heads:
        head.fit(*train, domains=data.domains[~new])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelShiftWarning)
        heads.append(dare.adapt(data.X[new]))
    return [head.score(data.X[new], data.y[new]) for head in heads]


def table(result: Result) -> str:
    """The result as aligned text: a row a held-out domain, then their mean and the worst."""
    A = result.accuracy
    rows = [(name, A[:, e]) for e, name in enumerate(result.domains)]
    rows += [("mean", A.mean(axis=1)), ("worst", A.min(axis=1))]
    gain = COLUMNS.index("dare")
    lines = [f"{'held out':<10}" + "".join(f"{c:>14}" for c in COLUMNS) + f"{'dare gain':>12}"]
    for name, values in rows:
        cells = "".join(f"{_interval(values[:, c]):>14}" for c in range(len(COLUMNS)))
        difference = (values[:, gain] - values[:, 0]).mean()
        lines.append(f"{name:<10}{cells}{difference:>+12.1f}")
    return "\n".join(lines)


def _interval(values: np.ndarray) -> str:
    """Mean and half-width of the t-based 90 % interval over trials."""
    n = len(values)
    if n < 2:
        return f"{values.mean():.1f}"
    half = stats.t.ppf(0.95, n - 1) * values.std(ddof=1) / math.sqrt(n)
    return f"{values.mean():.1f} ± {half:.1f}"
