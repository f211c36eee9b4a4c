"""Candidates are scored by any scorer of scikit-learn, as a head with their weights would be."""

import numpy as np
import pytest
from sklearn.metrics import get_scorer

from skdare import DAREClassifierCV, DARERegressorCV, ERMClassifier, ERMRegressor
from skdare._input_error import InputError
from skdare.datasets import make_latent_domains


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


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss"])
def test_a_scorer_that_needs_probabilities_of_a_regressor_is_refused_before_any_work(scoring):
    with pytest.raises(InputError, match=f"scoring='{scoring}' cannot score a regressor: it needs"):
        DARERegressorCV(scoring=scoring).fit(None, None)


def scores_of(head, e):
    return head.cv_results_[f"split{e}_test_score"]


def test_a_domain_without_which_one_class_is_left_has_no_say(three_classes):
    y = np.where(three_classes.domains == "west", three_classes.y > 0, 0)
    with pytest.warns(UserWarning, match="leaving out domain 'west' leaves a single class"):
        head = DAREClassifierCV(l2=(0.1,)).fit(three_classes.X, y, domains=three_classes.domains)
    assert np.isnan(scores_of(head, 2)).all()
    assert np.isfinite(scores_of(head, 0)).all()
    assert np.isfinite(head.best_score_)


@pytest.mark.filterwarnings("ignore:leaving out domain")
@pytest.mark.filterwarnings("ignore:every domain has one class only")
def test_where_no_domain_can_be_left_out_the_simplest_is_taken_and_it_says_so(three_classes):
    rows = three_classes.domains != "west"
    domains = three_classes.domains[rows]
    y = (domains == "north").astype(int)
    head = DAREClassifierCV(l2=(0.1,)).fit(three_classes.X[rows], y, domains=domains)
    assert head.choice_ == "No domain could be left out and scored: it uses plain ERM."


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr"])
def test_a_domain_that_lacks_a_class_which_the_scorer_needs_has_no_say(three_classes, scoring):
    assert 2 not in three_classes.y[three_classes.rows("south")]
    with pytest.warns(UserWarning, match=f"domain 'south' lacks a class that scoring='{scoring}'"):
        head = three_classes.fit(DAREClassifierCV(l2=(0.1,), scoring=scoring))
    assert np.isnan(scores_of(head, 1)).all()
    assert np.isfinite(head.best_score_)


def test_a_domain_that_lacks_a_class_is_scored_where_the_scorer_can(three_classes):
    head = three_classes.fit(DAREClassifierCV(l2=(0.1,), scoring="balanced_accuracy"))
    assert np.isfinite([scores_of(head, e) for e in range(3)]).all()


def test_rows_of_a_class_that_no_other_domain_has_count_as_errors(three_classes):
    y = np.where(three_classes.domains == "west", 7, three_classes.y % 2)
    head = DAREClassifierCV(l2=(0.1,)).fit(three_classes.X, y, domains=three_classes.domains)
    np.testing.assert_array_equal(scores_of(head, 2), 0.0)


def test_a_scorer_without_a_score_on_any_domain_is_refused(three_classes):
    rows = three_classes.domains != "west"
    domains = three_classes.domains[rows]
    y = np.where(domains == "north", three_classes.y[rows] % 2, 2 + three_classes.y[rows] % 2)
    with pytest.raises(InputError, match="gives no score on any domain, for want of classes"):
        DAREClassifierCV(scoring="neg_log_loss").fit(three_classes.X[rows], y, domains=domains)


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


@pytest.mark.parametrize("scoring", [None, "accuracy", "neg_log_loss"])
def test_a_weight_of_two_is_a_row_given_twice(scoring):
    data = make_latent_domains(4, 60, 5, random_state=0)
    weight = np.random.default_rng(0).integers(1, 4, len(data.y))
    options = {"strategies": ("erm",), "l2": (0.05,), "scoring": scoring}
    weighted = DAREClassifierCV(**options).fit(
        data.X, data.y, domains=data.domains, sample_weight=weight
    )
    repeated = DAREClassifierCV(**options).fit(
        np.repeat(data.X, weight, axis=0),
        np.repeat(data.y, weight),
        domains=np.repeat(data.domains, weight),
    )
    assert weighted.best_score_ == pytest.approx(repeated.best_score_, abs=2e-3)
