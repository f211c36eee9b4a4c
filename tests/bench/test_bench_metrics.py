"""Metrics of a bench are scikit-learn's, and a domain that lacks a class is scored all the same."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from skdare.bench.metrics import METRICS, scoring_of
from skdare.fitting.score import R2_FLOOR, Metric, accuracy, balanced_accuracy, r_squared


class Fixed:
    """A model with these predictions, whatever the rows."""

    def __init__(self, predicted, P=None, classes=None):
        self.predicted = predicted
        self.P = P
        self.classes_ = classes

    def predict(self, X):
        return self.predicted

    def predict_proba(self, X):
        return self.P


@pytest.mark.parametrize("k", [2, 3])
def test_metrics_of_classes_are_those_of_scikit_learn(k):
    rng = np.random.default_rng(0)
    classes = np.array(list("xyz"))[:k]
    y = rng.choice(classes, 200)
    P = rng.dirichlet(np.ones(k), 200)
    model = Fixed(classes[P.argmax(axis=1)], P, classes)
    several = {"multi_class": "ovr"} if k > 2 else {}
    expected = {
        "accuracy": sk.accuracy_score(y, model.predicted),
        "balanced_accuracy": sk.balanced_accuracy_score(y, model.predicted),
        "f1_macro": sk.f1_score(y, model.predicted, average="macro"),
        "roc_auc": sk.roc_auc_score(y, P if k > 2 else P[:, 1], **several),
        "neg_log_loss": -sk.log_loss(y, P),
    }
    found = {name: measure(y, model, None) for name, measure in METRICS["classification"].items()}
    assert found == pytest.approx(expected)


def test_metrics_of_regression_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, predicted = rng.normal(size=(2, 50))
    expected = {
        "r2": sk.r2_score(y, predicted),
        "neg_root_mean_squared_error": -sk.root_mean_squared_error(y, predicted),
        "neg_mean_absolute_error": -sk.mean_absolute_error(y, predicted),
    }
    model = Fixed(predicted)
    found = {name: measure(y, model, None) for name, measure in METRICS["regression"].items()}
    assert found == pytest.approx(expected)


def test_a_domain_that_lacks_a_class_is_scored_by_those_it_has():
    P = np.array([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1], [0.3, 0.6, 0.1]])
    model = Fixed(np.array(list("xyxy")), P, np.array(list("xyz")))
    y = np.array(list("xyxx"))
    measures = METRICS["classification"]
    assert measures["roc_auc"](y, model, None) == 1.0
    assert measures["balanced_accuracy"](y, model, None) == pytest.approx((2 / 3 + 1) / 2)
    assert np.isfinite(measures["neg_log_loss"](np.array(list("xyxw")), model, None))
    assert np.isnan(measures["roc_auc"](np.array(list("xxxx")), model, None))


@pytest.mark.parametrize("task", METRICS)
def test_every_metric_is_a_scorer_of_scikit_learn_where_higher_is_better(task):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60) if task == "classification" else rng.normal(size=60)
    P = np.eye(2)[y] * 0.8 + 0.1 if task == "classification" else None
    right = Fixed(y, P, np.arange(2))
    wrong = Fixed(y[::-1], None if P is None else P[::-1], np.arange(2))
    for name, measure in METRICS[task].items():
        assert scoring_of(name, 2) in (None, *sk.get_scorer_names())
        assert scoring_of(name, 3) in (None, *sk.get_scorer_names())
        assert measure(y, right, None) > measure(y, wrong, None)


# -- One way to a score, for a search, a rehearsal and a bench -------------------------------------


def test_weights_of_rows_count_as_in_scikit_learn():
    rng = np.random.default_rng(0)
    y, predicted = rng.normal(size=(2, 40))
    weight = rng.integers(1, 4, 40).astype(float)
    assert r_squared(y, predicted, weight, floor=-np.inf) == pytest.approx(
        sk.r2_score(y, predicted, sample_weight=weight)
    )
    codes, guessed = rng.integers(0, 3, (2, 40))
    assert accuracy(codes, guessed, weight) == pytest.approx(
        sk.accuracy_score(codes, guessed, sample_weight=weight)
    )
    assert balanced_accuracy(codes, guessed) == pytest.approx(
        sk.balanced_accuracy_score(codes, guessed)
    )


def test_r2_has_a_floor_and_none_without_variance():
    y = np.array([1.0, 2.0, 3.0])
    assert r_squared(y, 100.0 * y) == R2_FLOOR == -1.0
    assert r_squared(y, y) == 1.0
    for constant in (0.0, 0.1, 1e8 + 0.1):
        assert np.isnan(r_squared(np.full(7, constant), np.arange(7.0)))


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "r2"])
def test_disagreement_is_none_between_equals_and_shares_add_up(name):
    rng = np.random.default_rng(0)
    T, first, second = rng.integers(0, 3, (3, 90))
    metric = Metric(name, 0.0)
    assert metric.disagreement(first, first) == 0.0
    if name == "accuracy":
        apart = metric.disagreement(first, second)
        assert apart == pytest.approx(np.mean(first != second))
        both = metric.both_right(T, first, second)
        assert both == pytest.approx(np.mean((first == T) & (second == T)))
        # Where they differ at most one is right.
        assert metric.score(T, first) + metric.score(T, second) <= 2 * both + apart
    assert metric.score(T, T) == 1.0


def test_guessing_is_the_share_of_the_most_frequent_class():
    from held_out_problems import made, problem_of

    table = made()
    counts = np.bincount(table.y)
    problem = problem_of(table)
    assert Metric.of(problem, balanced=False).guessing == pytest.approx(counts.max() / counts.sum())
    assert Metric.of(problem, balanced=True) == Metric("balanced_accuracy", 1.0 / 3.0)
    assert Metric.of(problem_of(made("regression")), balanced=True) == Metric("r2", 0.0)


def test_differences_have_a_sign_and_no_negative_zero():
    assert Metric("accuracy", 0.5).differences([0.031, -0.002, -0.05]) == "+3, +0, -5 points"
    assert Metric("r2", 0.0).differences([0.301, -0.001]) == "+0.30, +0.00"
