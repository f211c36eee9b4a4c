"""The heads DARE is compared with are special cases of each other."""

import datetime

import numpy as np
import pytest

import oracle
import skdare
from heads_alike import assert_same_head


def test_irm_without_a_penalty_is_reweighted(problem, head_for):
    irm = problem.fit(head_for(problem.task, "IRM", penalty=0.0, tol=1e-8))
    assert_same_head(irm, problem.fit(head_for(problem.task, "Reweighted", tol=1e-8)), atol=1e-6)


@pytest.mark.parametrize("family", ["GroupDRO", "Reweighted"])
def test_with_one_domain_a_baseline_is_erm(problem, head_for, family):
    head, erm = (head_for(problem.task, name, tol=1e-8) for name in (family, "ERM"))
    for model in (head, erm):
        model.fit(problem.X, problem.y, domains=["one"] * len(problem.y))
    assert_same_head(head, erm, atol=1e-6)


def test_dare_without_whitening_and_penalty_is_reweighted(problem, head_for):
    # Centring moves the unit of the ridge, so the regression has none.
    l2 = 0.0 if problem.task == "regression" else 0.01
    head = head_for(problem.task, "DARE", adjust=False, mean_penalty=0.0, l2=l2, tol=1e-8)
    X = problem.X.copy()
    if problem.task == "regression":  # whose objective has all domains at the mean of their means
        means = {label: X[problem.rows(label)].mean(axis=0) for label in problem.labels}
        for label in problem.labels:
            X[problem.rows(label)] += np.mean(list(means.values()), axis=0) - means[label]
    reweighted = problem.fit(head_for(problem.task, "Reweighted", l2=l2, tol=1e-8), X)
    assert_same_head(problem.fit(head), reweighted, atol=1e-6)


def test_dare_that_neither_whitens_nor_minds_the_means_is_reweighted(problem, head_for):
    options = {"adjust": False, "mean_penalty": None, "guess": "mean", "tol": 1e-8}
    head = problem.fit(head_for(problem.task, "DARE", **options))
    reweighted = problem.fit(head_for(problem.task, "Reweighted", tol=1e-8))
    assert_same_head(head, reweighted, atol=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_dare_without_a_guess_is_erm_until_it_adapts(problem, head_for, intercept):
    options = {"fit_intercept": intercept, "tol": 1e-8}
    no_guess = {"mean_penalty": None, "guess": None}
    head = problem.fit(head_for(problem.task, "DARE", **no_guess, **options))
    erm = problem.fit(head_for(problem.task, "ERM", **options))
    assert_same_head(head, erm, atol=1e-6)
    new = problem.X[problem.rows("north")]
    guessing = problem.fit(head_for(problem.task, "DARE", mean_penalty=1.0, **options))
    adapted, other = (one.adapt(new, prior_rows=0) for one in (head, guessing))
    assert_same_head(adapted, other, atol=1e-6)
    assert np.abs(adapted.coef_ - erm.coef_).max() > 1e-2


def test_a_regressor_makes_no_guess_by_default(regression):
    default, erm = (regression.fit(head()) for head in (skdare.DARERegressor, skdare.ERMRegressor))
    assert_same_head(default, erm, atol=1e-6)


def test_reweighted_is_weighing_each_row_by_one_over_the_size_of_its_domain(problem, head_for):
    weight = np.array([1 / len(problem.rows(label)) for label in problem.domains.tolist()])
    reweighted = problem.fit(head_for(problem.task, "Reweighted", l2=0.0, tol=1e-8))
    erm = problem.fit(head_for(problem.task, "ERM", l2=0.0, tol=1e-8), sample_weight=weight)
    assert_same_head(reweighted, erm, atol=1e-4)


def domain_losses(problem, head):
    """The mean loss on each domain, row by row."""
    losses = []
    for X, y in zip(*problem.parts(), strict=True):
        F = X @ np.atleast_2d(head.coef_).T + head.intercept_
        losses.append(np.mean([oracle.loss(problem.task, *row) for row in zip(F, y, strict=True)]))
    return np.array(losses)


def test_group_dro_lowers_the_worst_loss_and_evens_out_the_domains_it_weighs(problem, head_for):
    robust, even = (
        problem.fit(head_for(problem.task, family, l2=1e-3, tol=1e-7))
        for family in ("GroupDRO", "Reweighted")
    )
    losses = domain_losses(problem, robust)
    assert losses.max() < domain_losses(problem, even).max()
    weighed = np.array([robust.domain_weights_[label] for label in problem.labels]) > 1e-2
    np.testing.assert_allclose(losses[weighed], losses.max(), rtol=1e-3)


@pytest.mark.filterwarnings("ignore:the features vary little beside their mean")
@pytest.mark.parametrize("offset", [0.0, 4.0])
@pytest.mark.parametrize("centered", [True, False])
def test_the_ridge_means_the_same_for_every_head(centered, offset):
    # Where all domains are alike and nothing is whitened, every head is the same problem.
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(size=(60, 4)) * [1.0, 2.0, 0.5, 1.0] + offset, (3, 1))
    y = np.tile((X[:60] @ [1.0, -0.5, 1.0, 0.0] + rng.logistic(size=60) > offset * 1.5), 3)
    domains = np.repeat([0, 1, 2], 60)
    options = {"l2": 0.1, "tol": 1e-8}
    dare = skdare.DAREClassifier(shrinkage=1.0, mean_penalty=0.0, centered=centered, **options)
    heads = [skdare.ERMClassifier(**options), skdare.ReweightedClassifier(**options), dare]
    first, *others = (head.fit(X, y, domains=domains) for head in heads)
    for other in others:
        np.testing.assert_allclose(other.coef_, first.coef_, rtol=1e-4, atol=1e-6)


def test_narrow_integers_are_labels_as_wide_ones_are():
    rng = np.random.default_rng(0)
    X, k = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    labels, sites = np.array([-100, 0, 100]), np.array([-128, 0, 127])
    narrow = skdare.ReweightedClassifier().fit(
        X, labels.astype(np.int8)[k], sites.astype(np.int8)[k]
    )
    wide = skdare.ReweightedClassifier().fit(X, labels[k], sites[k])
    assert narrow.classes_.dtype == np.int8
    assert narrow.domains_ == wide.domains_ == [-128, 0, 127]
    np.testing.assert_array_equal(narrow.predict(X), wide.predict(X))


def test_dates_are_labels_whatever_their_unit():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    days = np.array(["2020-01-01", "2021-06-01"], dtype="datetime64[ns]")[np.arange(60) // 30]
    head = skdare.ReweightedClassifier().fit(X, y, domains=days)
    assert head.domains_ == [datetime.datetime(2020, 1, 1), datetime.datetime(2021, 6, 1)]
