"""Heads that choose: the search equals the loop one would write, and says what it chose."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from skdare import (
    DAREClassifier,
    DAREClassifierCV,
    DARERegressor,
    DARERegressorCV,
    ERMClassifier,
    ReweightedClassifier,
)
from skdare.datasets import load_digit_domains
from skdare.fitting.search import Candidate, choose


def by_hand(problem, make, *, adapt=False):
    """Score on each domain of a head trained on the others, written as a loop."""
    scores = []
    for label in problem.labels:
        new = problem.domains == label
        head = make().fit(problem.X[~new], problem.y[~new], domains=problem.domains[~new])
        if adapt:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                head = head.adapt(problem.X[new])
        scores.append(head.score(problem.X[new], problem.y[new]))
    return scores


def searched(head, problem, strategy):
    """Scores of the only candidate of a strategy."""
    row = head.cv_results_["strategy"].tolist().index(strategy)
    return [head.cv_results_[f"score_{label}"][row] for label in problem.labels]


@pytest.fixture(scope="module")
def one_of_each(make):
    """Three classes, and a search with a single candidate of every strategy."""
    problem = make("classification")
    search = DAREClassifierCV(l2=(0.03,), shrinkage=(0.4,), tol=1e-7)
    return problem, problem.fit(search)


@pytest.mark.parametrize("family", [ERMClassifier, ReweightedClassifier])
def test_the_search_equals_the_loop_over_domains_with_a_baseline(one_of_each, family):
    problem, head = one_of_each
    strategy = family.__name__.removesuffix("Classifier").lower()
    expected = by_hand(problem, lambda: family(l2=0.03, tol=1e-7))
    assert searched(head, problem, strategy) == pytest.approx(expected)


def test_the_search_equals_the_loop_over_domains_with_the_average(one_of_each):
    problem, head = one_of_each
    options = {"l2": 0.03, "shrinkage": 0.4, "tol": 1e-7, "centered": head.centered}
    expected = by_hand(problem, lambda: DAREClassifier(**options))
    assert searched(head, problem, "averaged") == pytest.approx(expected)


@pytest.mark.parametrize("form", ["raw", "centered"])
def test_the_search_equals_the_loop_over_domains_with_adapted_heads(one_of_each, form):
    problem, head = one_of_each
    options = {"l2": 0.03, "shrinkage": 0.4, "tol": 1e-7, "adaptation": form}
    expected = by_hand(problem, lambda: DAREClassifier(**options), adapt=True)
    assert searched(head, problem, form) == pytest.approx(expected)


def test_the_regression_search_equals_the_loop_over_domains(regression):
    head = regression.fit(DARERegressorCV(l2=(0.03,), shrinkage=(0.4,), strategies=("averaged",)))
    options = {"l2": 0.03, "shrinkage": 0.4, "centered": head.centered}
    expected = by_hand(regression, lambda: DARERegressor(**options))
    assert searched(head, regression, "averaged") == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("target", ["scaled", "identity", "pooled"])
def test_every_shrinkage_target_can_be_searched(target, three_classes):
    head = three_classes.fit(DAREClassifierCV(shrinkage_target=target, l2=(0.1,)))
    assert np.all(np.isfinite(head.cv_results_["mean_score"]))


def test_zero_standard_errors_take_the_highest_mean(three_classes):
    head = three_classes.fit(DAREClassifierCV(standard_errors=0))
    results = head.cv_results_
    assert head.best_score_ == results["mean_score"].max()
    assert results["rank"][results["mean_score"].argmax()] == 1
    assert head.best_strategy_ in head.choice_


def test_within_standard_errors_the_simplest_strategy_is_preferred(three_classes):
    best = three_classes.fit(DAREClassifierCV(standard_errors=0))
    careful = three_classes.fit(DAREClassifierCV(standard_errors=1.5))
    order = list(careful.strategies)
    assert order.index(careful.best_strategy_) <= order.index(best.best_strategy_)
    assert careful.best_score_ <= best.best_score_


def test_predict_uses_the_chosen_options(three_classes):
    head = three_classes.fit(DAREClassifierCV(strategies=("averaged",)))
    row = head.cv_results_["used_for"].tolist().index("predict")
    chosen = {name: head.cv_results_[name][row] for name in ("l2", "shrinkage", "mean_penalty")}
    plain = three_classes.fit(DAREClassifier(tol=head.tol, centered=head.centered, **chosen))
    np.testing.assert_allclose(head.coef_, plain.coef_)


def test_adapt_is_refused_where_leaving_out_says_it_hurts(three_classes):
    head = three_classes.fit(DAREClassifierCV(strategies=("erm", "raw")))
    head._domain_fit = replace(head._domain_fit, declined="chose 'erm'")
    with pytest.warns(UserWarning, match="adapting changed nothing"):
        same = head.adapt(three_classes.X)
    with pytest.warns(UserWarning, match="adapting changed nothing"):
        streamed = head.adapter().partial_fit(three_classes.X).head_
    np.testing.assert_array_equal(same.coef_, head.coef_)
    np.testing.assert_array_equal(streamed.coef_, head.coef_)


@pytest.mark.parametrize("strategies", [("erm",), ("erm", "reweighted", "averaged")])
def test_a_search_without_adapting_strategies_adapts_to_nothing(strategies, three_classes):
    head = three_classes.fit(DAREClassifierCV(strategies=strategies))
    with pytest.warns(UserWarning, match="adapting changed nothing: chose"):
        np.testing.assert_array_equal(head.adapt(three_classes.X).coef_, head.coef_)


def test_a_domain_of_one_target_has_no_say_in_a_regression_search(regression):
    y = regression.y.copy()
    y[regression.rows("west")] = 3.0
    head = DARERegressorCV().fit(regression.X, y, domains=regression.domains)
    assert np.isnan(head.cv_results_["score_west"]).all()
    assert np.isfinite(head.best_score_)


def test_digit_styles_are_best_served_by_adapting():
    data = load_digit_domains()
    head = DAREClassifierCV(l2=(0.01,)).fit(data.X, data.y, domains=data.domains)
    assert head.adapts_
    assert head.best_score_ > searched_mean(head, "erm") + 0.05


def searched_mean(head, strategy):
    results = head.cv_results_
    return results["mean_score"][results["strategy"] == strategy].max()


@pytest.mark.filterwarnings("ignore:.*was given no domains")
def test_one_domain_leaves_none_to_hold_out_and_says_so(three_classes):
    head = DAREClassifierCV().fit(three_classes.X, three_classes.y)
    assert "there is only one domain" in head.choice_


def test_scores_too_good_for_unseen_domains_are_pointed_out():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 4)) + 6.0 * y[:, None]
    with pytest.warns(UserWarning, match="features were trained on them"):
        DAREClassifierCV(l2=(0.1,)).fit(X, y, domains=np.tile([0, 1, 2], 40))


def candidates_of(*strategies):
    return [Candidate(strategy, None) for strategy in strategies]


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [
        ([[0.70, 0.80, 0.75], [0.72, 0.79, 0.76]], "erm"),  # within noise: the simpler
        ([[0.70, 0.80, 0.75], [0.71, 0.95, 0.75]], "raw"),  # nowhere worse: the better
        ([[0.70, 0.80, 0.75], [0.90, 0.99, 0.74]], "raw"),  # far better: the better
        ([[0.80, 0.80, 0.80], [0.70, 0.90, 0.70]], "erm"),  # worse on average: the better
        ([[0.80, 0.80, 0.80], [0.80, 0.80, 0.80]], "erm"),  # the same: the simpler
        ([[0.88] * 4, [0.91, 0.91, 0.91, 0.30], [0.90] * 4], "raw"),  # never a worse middle way
        ([[0.70, 0.701, 0.70], [0.70, 0.70, 0.99]], "raw"),  # a thousandth is no counter-evidence
    ],
)
def test_a_simpler_strategy_gives_way_only_to_evidence(scores, chosen):
    candidates = candidates_of(*(("erm", "averaged", "raw") if len(scores) > 2 else ("erm", "raw")))
    number = choose(candidates, np.array(scores), 1.5)
    assert candidates[number].strategy == chosen


def test_the_best_candidate_of_a_strategy_stands_for_it():
    scores = np.array([[0.1, 0.2, 0.1], [0.8, 0.9, 0.8], [0.7, 0.95, 0.8]])
    assert choose(candidates_of("erm", "erm", "raw"), scores, 1.5) == 1
