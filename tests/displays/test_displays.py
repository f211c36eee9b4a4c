"""Displays show what they say, on the axes they are given."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from skdare import DAREClassifier, DAREClassifierCV, ERMClassifier, make_domain_adjusted
from skdare.datasets import make_latent_domains

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

from skdare.displays import (  # noqa: E402
    AdaptationCurveDisplay,
    DomainCalibrationDisplay,
    DomainPairDisplay,
    DomainScoreDisplay,
    ShrinkagePathDisplay,
)

pytestmark = pytest.mark.filterwarnings("ignore::skdare.adapting.LabelShiftWarning")


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_latent_domains(3, 40, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    pipeline = make_domain_adjusted(StandardScaler(), DAREClassifier(adaptation="centered"))
    return pipeline.fit(data.X, data.y, domains=data.domains)


def test_scores_are_those_of_each_domain_and_lie_in_their_intervals(data, model):
    display = DomainScoreDisplay.from_estimator(model, data.X, data.y, domains=data.domains)
    expected = [model.score(data.X[data.domains == e], data.y[data.domains == e]) for e in range(3)]
    np.testing.assert_allclose(display.scores, expected)
    assert np.all(display.low <= display.scores)
    assert np.all(display.scores <= display.high)
    labels = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert labels == ["0", "1", "2"]


def test_a_domain_without_a_score_is_left_blank_and_nothing_warns():
    y = np.array([0.5, 1.0, 2.5, 4.0, 3.5])
    domains = ["a", "a", "a", "a", "single"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = DomainScoreDisplay.from_predictions(y, y + 0.1, domains=domains)
        alone = DomainScoreDisplay.from_predictions(y[4:], y[4:], domains=["single"])
    assert np.isfinite(display.scores).tolist() == [True, False]
    assert np.isnan([display.low[1], display.high[1], alone.scores[0]]).all()


def hit_score(y, predicted):
    return np.mean(predicted[y == 1] == 1)


def test_predictions_are_scored_by_any_metric_and_displays_share_axes(data, model):
    _, axes = plt.subplots()
    predicted = model.predict(data.X)
    for name in ("one", "two"):
        display = DomainScoreDisplay.from_predictions(
            data.y, predicted, domains=data.domains, metric=hit_score, name=name, ax=axes
        )
        assert display.ax_ is axes
        assert display.figure_ is axes.figure
    assert display.score_name == "hit"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]


def test_a_calibrated_classifier_lies_on_the_diagonal():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=20000)
    y = (rng.uniform(size=len(p)) < p).astype(int)
    domains = np.repeat(["calibrated", "overconfident"], 10000)
    p = np.where(domains == "calibrated", p, np.where(p > 0.5, 0.99, 0.01))
    display = DomainCalibrationDisplay.from_predictions(y, p, domains=domains)
    assert display.errors[0] < 0.02
    assert display.errors[1] == pytest.approx(0.99 - 0.75, abs=0.02)
    with pytest.raises(ValueError, match="a column for each class"):
        DomainCalibrationDisplay.from_predictions(y, np.ones((len(y), 3)), domains=domains)


@pytest.mark.parametrize("n", [3, 9])
def test_many_domains_have_one_legend_entry(n):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=90)
    display = DomainCalibrationDisplay.from_predictions(
        y, rng.uniform(size=90), domains=np.arange(90) % n
    )
    assert len(display.ax_.get_legend().get_texts()) == (3 if n == 3 else 1)


def test_the_last_point_of_a_curve_is_adapting_to_half_of_the_rows(data, model):
    new = make_latent_domains(1, 60, random_state=5)
    display = AdaptationCurveDisplay.from_estimator(model, new.X, new.y, repeats=2)
    assert display.rows.tolist() == [5, 10, 20, 30]
    order = np.random.default_rng(0).permutation(60)
    test = np.sort(order[30:])
    adapted = model.adapt(new.X[np.sort(order[:30])], force=True)
    assert display.scores[0, -1] == adapted.score(new.X[test], new.y[test])
    with pytest.raises(ValueError, match="rows has 31, and half of the rows are 30"):
        AdaptationCurveDisplay.from_estimator(model, new.X, new.y, rows=[31])


@pytest.mark.filterwarnings("ignore:leaving a training domain out still scores")
def test_a_head_that_chose_not_to_adapt_has_no_curve(data):
    head = DAREClassifierCV(strategies=("erm",)).fit(data.X, data.y, domains=data.domains)
    with pytest.raises(ValueError, match="has learnt no way of adapting"):
        AdaptationCurveDisplay.from_estimator(head, data.X, data.y)


def test_a_path_has_the_score_of_a_head_fitted_without_the_domain(data):
    display = ShrinkagePathDisplay.from_estimator(
        DAREClassifier(), data.X, data.y, domains=data.domains, shrinkages=(0.2, 0.9)
    )
    left_out = data.domains == 2
    head = DAREClassifier(shrinkage=0.2)
    head.fit(data.X[~left_out], data.y[~left_out], domains=data.domains[~left_out])
    assert display.as_is[2, 0] == head.score(data.X[left_out], data.y[left_out])
    adapted = head.adapt(data.X[left_out])
    assert display.adapted[2, 0] == adapted.score(data.X[left_out], data.y[left_out])


def test_whitened_domains_are_the_same_circle(data):
    head = DAREClassifier(adaptation="centered", shrinkage=0.0)
    head.fit(data.X, data.y, domains=data.domains)
    display = DomainPairDisplay.from_estimator(head, 0, 1)
    for ellipse in display.after:
        np.testing.assert_allclose(ellipse.covariance, np.eye(2), atol=1e-6)
        np.testing.assert_allclose(ellipse.mean, 0.0, atol=1e-9)
    distance = np.linalg.norm(display.before[0].mean - display.before[1].mean)
    means = [data.X[data.domains == e].mean(axis=0) for e in (0, 1)]
    assert distance == pytest.approx(np.linalg.norm(means[0] - means[1]))


def test_what_cannot_be_shown_is_refused(data):
    erm = ERMClassifier().fit(data.X, data.y)
    with pytest.raises(ValueError, match="ERMClassifier cannot adapt"):
        AdaptationCurveDisplay.from_estimator(erm, data.X, data.y)
    with pytest.raises(ValueError, match="keeps nothing of its training domains"):
        DomainPairDisplay.from_estimator(erm, 0, 1)
    with pytest.raises(ValueError, match="has no one shrinkage to vary"):
        ShrinkagePathDisplay.from_estimator(
            LogisticRegression(), data.X, data.y, domains=data.domains
        )
