"""Two benches on embedded data: a gain of adapting, its limit, and a case without a gain."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skdare.bench import Settings, run_bench
from skdare.data import DomainData, load_diabetes_domains, load_penguin_domains
from skdare.errors import filled
from skdare.heads.dare_cv import DAREClassifierCV
from skdare.report import Summary

if TYPE_CHECKING:
    import pandas as pd

_ROWS = {
    "erm": "ERM, on all rows",
    "by-hand": "standardised by hand",
    "dare-cv": "DARE-CV, unadapted",
    "dare-cv-adapted": "DARE-CV, adapted",
}
# Least difference of accuracies or R² that is mentioned.
_MATTERS = 0.02


@dataclass(frozen=True)
class Demo:
    """A screen, and the scores on it by data set, head and held-out domain."""

    text: str
    scores: dict[str, dict[str, dict[str, float]]]

    @classmethod
    def run(cls, folder: Path) -> Demo:
        """Run both benches, with their records in a folder."""
        birds = load_penguin_domains()
        # Grams are a thousand times as many as millimetres: in units of the same size.
        birds = replace(birds, X=(birds.X - birds.X.mean(axis=0)) / birds.X.std(axis=0))
        people = load_diabetes_domains()
        sexes = _scores(birds, folder / "penguins")
        progress = _scores(people, folder / "diabetes")
        parts = [
            "Penguins: male or female, in a species that was not in training? (333 birds)",
            _table(sexes, "% right", 100.0, 1),
            filled(f"{_gain(sexes)} {_limit(birds)}") + "\n",
            "Diabetes: progress in an age group that was not in training? (442 patients)",
            _table(progress, "R²", 1.0, 2),
            filled(_no_gain(progress)),
        ]
        scores: Any = {"penguins": sexes.to_dict(), "diabetes": progress.to_dict()}
        return cls("\n".join(parts), scores)


def _scores(data: DomainData, folder: Path) -> pd.DataFrame:
    """A column for each head, and a row for each held-out domain."""
    run = run_bench(data, folder, Settings(heads=tuple(_ROWS)))
    return Summary.of(run).scores[list(_ROWS)]


def _table(scores: pd.DataFrame, unit: str, factor: float, digits: int) -> str:
    columns = [*map(str, scores.index), "average"]
    each = min(max(map(len, columns)) + 2, (80 - 24) // len(columns))
    lines = [f"  {unit:<22}" + "".join(name.rjust(each) for name in columns)]
    for head, label in _ROWS.items():
        values = factor * np.append(scores[head], scores[head].mean())
        cells = [f"{value:.{digits}f}".rjust(each) for value in values]
        lines.append(f"  {label:<22}" + "".join(cells))
    return "\n".join(lines) + "\n"


def _gain(scores: pd.DataFrame) -> str:
    erm, by_hand, _, adapted = 100 * scores.mean()
    return (
        "Adapted to birds of the new species, without their labels, DARE-CV has "
        f"{adapted:.0f} % right; ERM has {erm:.0f} %, and standardising each species by hand "
        f"{by_hand:.0f} %."
    )


def _limit(data: DomainData) -> str:
    """How often predictions are right where all rows of each held-out domain are of one class."""
    right = []
    for domain in np.unique(data.domains):
        new = data.domains == domain
        head = DAREClassifierCV().fit(data.X[~new], data.y[~new], domains=data.domains[~new])
        for label in np.unique(data.y):
            rows = new & (data.y == label)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that the rows are of one class is the point
                adapted = head.adapt(data.X[rows])
            right.append([each.score(data.X[rows], data.y[rows]) for each in (head, adapted)])
    unadapted, adapted = 100 * np.mean(right, axis=0)
    return (
        "The limit: it assumes class proportions as in training. If all new birds are of one "
        f"sex, {adapted:.0f} % are right, and {unadapted:.0f} % unadapted."
    )


def _no_gain(scores: pd.DataFrame) -> str:
    erm, by_hand, unadapted, adapted = scores.mean()
    if abs(adapted - unadapted) >= _MATTERS:
        return f"Adapted, DARE-CV has {adapted:.2f}, and ERM {erm:.2f}."
    words = "does worse" if erm - by_hand >= _MATTERS else "is no better"
    return (
        f"Here adapting gains nothing: ERM has {erm:.2f}, and standardising by hand {words} "
        f"({by_hand:.2f}). DARE-CV finds this on its training domains, and stays unadapted."
    )
