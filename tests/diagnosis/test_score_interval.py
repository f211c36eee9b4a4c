"""Intervals for the score in a new domain: they hold it, and use no more than they are given."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from skdare import DAREClassifier, DARERegressor, make_domain_adjusted
from skdare.datasets import make_latent_domains
from skdare.diagnosis._score_interval import exact_interval, powered_interval

DATA = make_latent_domains(5, 300, 4, shift=0.5, random_state=0)
TRAIN = DATA.domains != 4


@pytest.fixture(scope="module")
def head():
    return DAREClassifier().fit(DATA.X[TRAIN], DATA.y[TRAIN], domains=DATA.domains[TRAIN])


def new_rows(labelled, seed=0):
    """Rows of the new domain in a random order, the first of them labelled."""
    order = np.random.default_rng(seed).permutation(np.flatnonzero(~TRAIN))
    y = DATA.y[order].astype(object)
    y[labelled:] = None
    return DATA.X[order], y


def simulated(rng, n, rows=400, temperature=1.0):
    """Whether labelled rows are right, and the confidences of all rows; four fifths are right."""
    odds = 2.02 + 2.0 * rng.standard_normal(rows)
    right = (rng.random(rows) < expit(odds)).astype(float)
    known = np.arange(rows) < n
    return right[known], expit(odds / temperature), known


@pytest.mark.parametrize("right", [0, 1, 13, 19, 20])
@pytest.mark.parametrize("coverage", [0.8, 0.95])
def test_the_exact_interval_is_that_of_clopper_and_pearson(right, coverage):
    outcomes = np.arange(20) < right
    interval = exact_interval(outcomes.astype(float), coverage)
    known = binomtest(right, 20).proportion_ci(coverage, method="exact")
    np.testing.assert_allclose([interval.low, interval.high], [known.low, known.high])


@pytest.mark.parametrize("temperature", [1.0, 0.2])
@pytest.mark.parametrize("n", [10, 50])
def test_intervals_hold_the_truth_as_often_as_asked_and_confidences_narrow_them(n, temperature):
    rng = np.random.default_rng(n)
    accuracy = expit(2.02 + 2.0 * rng.standard_normal(200_000)).mean()
    held = []
    exact = []
    powered = []
    for _ in range(150):
        sample = simulated(rng, n, temperature=temperature)
        interval = powered_interval(*sample, 0.95)
        held.append(interval.low <= accuracy <= interval.high)
        powered.append(interval.width)
        exact.append(exact_interval(sample[0], 0.95).width)
    # Two standard errors of 150 draws are 3.6 points.
    assert np.mean(held) >= 0.91
    assert np.mean(powered) < 0.9 * np.mean(exact)


def test_confidences_that_say_nothing_do_not_mislead():
    rng = np.random.default_rng(0)
    held = []
    for _ in range(150):
        right = (rng.random(20) < 0.7).astype(float)
        interval = powered_interval(right, rng.random(300), np.arange(300) < 20, 0.95)
        held.append(interval.low <= 0.7 <= interval.high)
    assert np.mean(held) >= 0.91


def test_labelled_rows_that_are_easier_than_the_others_lower_the_powered_interval():
    right = np.r_[np.ones(30), np.zeros(10)]
    sure = np.r_[np.full(30, 0.9), np.full(10, 0.6)]
    known = np.arange(440) < 40
    easier = powered_interval(right, np.r_[sure, np.full(400, 0.6)], known, 0.95)
    harder = powered_interval(right, np.r_[sure, np.full(400, 0.9)], known, 0.95)
    assert easier.high < harder.high
    assert easier.low < harder.low


def test_where_every_row_is_labelled_confidences_add_nothing():
    right, confidence, known = simulated(np.random.default_rng(0), 100, rows=100)
    silent = powered_interval(right, np.full(100, 0.5), known, 0.95)
    telling = powered_interval(right, confidence, known, 0.95)
    assert telling.width == pytest.approx(silent.width, rel=0.02)


@pytest.mark.parametrize("right", [np.ones(40), np.zeros(40), np.r_[np.ones(6), np.zeros(3)]])
def test_where_labels_cannot_tell_what_confidences_are_worth_the_interval_is_exact(right):
    confidence = np.linspace(0.5, 1.0, 200)
    known = np.arange(200) < len(right)
    assert powered_interval(right, confidence, known, 0.9) == exact_interval(right, 0.9)


def test_confidences_of_exactly_one_are_no_obstacle():
    right = np.r_[np.ones(15), np.zeros(5)]
    interval = powered_interval(right, np.ones(100), np.arange(100) < 20, 0.95)
    assert 0.0 < interval.low < 0.75 < interval.high < 1.0


def test_the_interval_is_that_of_the_heads_predictions(head):
    X, y = new_rows(40)
    interval = head.score_interval(X, y)
    right = head.predict(X[:40]) == y[:40].astype(int)
    assert (interval.rows, interval.labelled, interval.coverage) == (300, 40, 0.95)
    assert interval.score == right.mean()
    assert interval.exact == exact_interval(right.astype(float), 0.95)
    assert interval.powered.low < interval.score < interval.powered.high


@pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")
def test_an_adapted_head_has_an_interval_of_its_own(head):
    X, y = new_rows(40)
    adapted = head.adapt(X)
    assert adapted.score_interval(X, y).score == adapted.score(X[:40], y[:40].astype(int))


@pytest.mark.parametrize("missing", [None, np.nan, -1])
def test_rows_without_label_may_say_so_in_any_way(head, missing):
    X, y = new_rows(30)
    y[30:] = missing
    assert head.score_interval(X, y) == head.score_interval(*new_rows(30))


def test_the_order_of_the_rows_does_not_matter(head):
    X, y = new_rows(30)
    order = np.random.default_rng(1).permutation(len(y))
    one = head.score_interval(X, y)
    other = head.score_interval(X[order], y[order])
    assert one.exact == other.exact
    assert one.powered.low == pytest.approx(other.powered.low, abs=1e-6)
    assert one.powered.high == pytest.approx(other.powered.high, abs=1e-6)


def test_a_higher_coverage_has_a_wider_interval(head):
    X, y = new_rows(30)
    widths = [head.score_interval(X, y, coverage=c).powered.width for c in (0.6, 0.9, 0.99)]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


def test_a_pipeline_has_the_interval_of_its_head_on_prepared_rows():
    model = make_domain_adjusted(StandardScaler(), DAREClassifier())
    model.fit(DATA.X[TRAIN], DATA.y[TRAIN], domains=DATA.domains[TRAIN])
    X, y = new_rows(30)
    assert model.score_interval(X, y) == model[-1].score_interval(model[:-1].transform(X), y)


def test_an_interval_reads_as_two_sentences(head):
    text = str(head.score_interval(*new_rows(30)))
    assert text.count(". ") == 1
    assert text.endswith("95\u00a0% confidence.")
    assert "of 30 labelled rows, out of 300" in text


def test_what_cannot_be_used_is_refused_before_rows_are_looked_at(head):
    rows = np.full((300, 3), np.nan)  # of the wrong width, and with nothing in it
    _, y = new_rows(30)
    with pytest.raises(ValueError, match="coverage is 1"):
        head.score_interval(rows, y, coverage=1)
    with pytest.raises(ValueError, match="y has 20 entries but X has 300 rows"):
        head.score_interval(rows, y[:20])
    with pytest.raises(ValueError, match="y has no label; label some rows"):
        head.score_interval(rows, [None] * 300)
    with pytest.raises(ValueError, match="y has the class 7"):
        head.score_interval(rows, [7] * 300)


def test_numbers_have_no_accuracy():
    data = make_latent_domains(task="regression", random_state=0)
    head = DARERegressor().fit(data.X, data.y, domains=data.domains)
    with pytest.raises(ValueError, match="DARERegressor predicts numbers"):
        head.score_interval(data.X, data.y)


def test_a_head_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        DAREClassifier().score_interval(DATA.X, DATA.y)


def test_labels_that_the_head_learnt_from_are_warned_of():
    data = make_latent_domains(random_state=0)
    new = data.domains == 3
    head = DAREClassifier().fit(data.X[~new], data.y[~new], domains=data.domains[~new])
    y = data.y[new].astype(object)
    y[30:] = None
    adapted = head.adapt(data.X[new], y)
    with pytest.warns(UserWarning, match="30 of 30 labels are among those"):
        adapted.score_interval(data.X[new], y)
    with pytest.warns(UserWarning, match="30 of 30 labels are among those"):
        adapted.predict_set(data.X[new], y)
    y = data.y[new].astype(object)
    y[:30] = None
    adapted.score_interval(data.X[new], y)  # by other labels, without a warning
