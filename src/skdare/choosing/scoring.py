"""Scores of candidates by any scikit-learn scorer.

Notation: X (n, d) rows, V (d, k) weights, b (k,) intercept, F (n, k) scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer

from skdare._validation import InputError
from skdare.arrays import to_numpy
from skdare.arrays.passes import RowPart
from skdare.fitting.targets import Classes, Targets, Weights
from skdare.objective.scores import linear_scores

Scoring = str | Callable[..., float] | None


class _Predictor(BaseEstimator):
    """An estimator as scorers see it, whose rows are given by their scores."""

    def fit(self, F: np.ndarray, y: np.ndarray) -> _Predictor:
        """Scorers only use what is fitted."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class _Regressor(RegressorMixin, _Predictor):
    def predict(self, F: np.ndarray) -> np.ndarray:
        return F[:, 0]


class _Classifier(ClassifierMixin, _Predictor):
    def __init__(self, classes: np.ndarray) -> None:
        self.classes = classes
        self.classes_ = classes

    def decision_function(self, F: np.ndarray) -> np.ndarray:
        return F[:, 0] if F.shape[1] == 1 else F

    def predict_proba(self, F: np.ndarray) -> np.ndarray:
        scores = np.hstack([np.zeros_like(F), F]) if F.shape[1] == 1 else F
        probabilities: np.ndarray = special.softmax(scores, axis=1)
        return probabilities

    def predict(self, F: np.ndarray) -> np.ndarray:
        labels: np.ndarray = self.classes[self.predict_proba(F).argmax(axis=1)]
        return labels


@dataclass(frozen=True)
class HeldOutScore:
    """The score of weights on the rows of a domain.

    Parameters
    ----------
    targets : Targets
    scoring : str, callable or None
        As in scikit-learn; None is accuracy, or R² with -1 for anything below.
    """

    targets: Targets
    scoring: Scoring = None

    def __call__(self, part: RowPart, weights: Weights) -> float:
        """The score; the part's columns are targets T and sample weights.

        NaN where the rows lack a class that the scorer needs.
        """
        if self.scoring is None:
            return max(self.targets.score(part, weights), -1.0)
        F = self.targets.in_target_units(to_numpy(linear_scores(part.X, part.index, *weights)))
        T = to_numpy(part.columns[0])
        predictor: Any = _Regressor()
        y = self.targets.in_target_units(T)
        if isinstance(self.targets, Classes):
            predictor = _Classifier(self.targets.classes)
            y = self.targets.classes[T]
        try:
            score = float(scorer_of(self.scoring)(predictor, F, y, **self._weights(part)))
        except (AttributeError, ValueError, TypeError) as error:
            if self._lacks_rows(T):
                return float("nan")
            what = "a classifier" if isinstance(self.targets, Classes) else "a regressor"
            raise InputError(
                f"scoring={self.scoring!r} cannot score {what} here ({error})",
                "choose another of scikit-learn's scorers",
                argument="scoring",
            ) from error
        if np.isnan(score) and not self._lacks_rows(T):
            raise InputError(
                f"scoring={_name(self.scoring)} gave NaN on a domain of {len(T)} rows",
                "return a number for every domain that has rows of every class",
                argument="scoring",
            )
        return score

    def _lacks_rows(self, T: np.ndarray) -> bool:
        """Whether a domain lacks a class, or a second row, without which scores may be NaN."""
        if isinstance(self.targets, Classes):
            return len(np.unique(T)) < len(self.targets.classes)
        return len(T) < 2

    def _weights(self, part: RowPart) -> dict[str, np.ndarray]:
        """Weights of the rows, for scorers of scikit-learn; a callable of one's own gets none."""
        weight = to_numpy(part.columns[1])
        if callable(self.scoring) or np.all(weight == weight[0]):
            return {}
        return {"sample_weight": weight}


def _name(scoring: Scoring) -> str:
    return repr(scoring) if isinstance(scoring, str) else getattr(scoring, "__name__", "callable")


def check_scoring(scoring: Scoring, *, of_numbers: bool) -> None:
    """Refuse unknown scorers, and those of scores or probabilities where there are only numbers."""
    if scoring is None:
        return
    response = getattr(scorer_of(scoring), "_response_method", "predict")
    responses = (response,) if isinstance(response, str) else tuple(response)
    if of_numbers and "predict" not in responses:
        raise InputError(
            f"scoring={scoring!r} cannot score a regressor: it needs {' or '.join(responses)}",
            "choose one for numbers, such as 'neg_root_mean_squared_error'",
            argument="scoring",
        )


def scorer_of(scoring: str | Callable[..., float]) -> Callable[..., float]:
    """The scorer of that name, or the callable itself."""
    if callable(scoring):
        return scoring
    try:
        scorer: Callable[..., float] = get_scorer(scoring)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"scoring is {scoring!r}",
            "pass None, a callable, or one of sklearn.metrics.get_scorer_names()",
            argument="scoring",
        ) from error
    return scorer
