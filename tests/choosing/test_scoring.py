"""Candidates are scored by any scorer of scikit-learn, as a head with their weights would be."""

import numpy as np
import pytest
from sklearn.metrics import get_scorer

from skdare import DAREClassifierCV, DARERegressorCV, ERMClassifier, ERMRegressor
from skdare._input_error import InputError


def left_out(problem, head, scoring):
    """Score on each domain of a head trained on the others."""
    scores = []
    for label in problem.labels:
        new = problem.domains == label
        head.fit(problem.X[~new], problem.y[~new])
        scores.append(get_scorer(scoring)(head, problem.X[new], problem.y[new]))
    return scores


@pytest.mark.filterwarnings("ignore:.*classes in y_true:UserWarning")
@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc", "neg_log_loss", "f1"])
def test_a_scorer_of_classes_sees_what_it_would_see_of_a_head(binary, scoring):
    head = binary.fit(DAREClassifierCV(strategies=("erm",), l2=(0.1,), scoring=scoring))
    expected = left_out(binary, ERMClassifier(l2=0.1, tol=1e-7), scoring)
    scores = [head.cv_results_[f"split{e}_test_score"][0] for e in range(3)]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=0.05)


def test_a_scorer_of_numbers_sees_them_in_their_own_units(regression):
    scoring = "neg_root_mean_squared_error"
    options = {"strategies": ("erm",), "l2": (0.1,), "scoring": scoring}
    y = 1000.0 * regression.y
    head = DARERegressorCV(**options).fit(regression.X, y, domains=regression.domains)
    expected = 1000.0 * np.array(left_out(regression, ERMRegressor(l2=0.1, tol=1e-9), scoring))
    scores = [head.cv_results_[f"split{e}_test_score"][0] for e in range(3)]
    np.testing.assert_allclose(scores, expected, rtol=1e-3)


def test_a_callable_scores_as_scikit_learn_calls_it(three_classes):
    def share_of_first(head, X, y):
        return float(np.mean(head.predict(X) == head.classes_[0]))

    head = three_classes.fit(DAREClassifierCV(l2=(0.1,), scoring=share_of_first))
    assert 0 < head.best_score_ < 1


def test_a_scorer_that_needs_probabilities_of_a_regressor_is_refused_in_words(regression):
    with pytest.raises(InputError, match="scoring='roc_auc' cannot score a regressor"):
        regression.fit(DARERegressorCV(scoring="roc_auc"))


def test_an_unknown_scorer_is_refused_before_any_work(three_classes):
    with pytest.raises(InputError, match="scoring is 'best'"):
        three_classes.fit(DAREClassifierCV(scoring="best"))


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_threads_change_nothing(three_classes, n_jobs):
    alone, together = (
        three_classes.fit(DAREClassifierCV(n_jobs=n)).cv_results_["mean_test_score"]
        for n in (None, n_jobs)
    )
    np.testing.assert_array_equal(alone, together)
