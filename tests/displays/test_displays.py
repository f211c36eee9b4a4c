"""Displays show what they say, on the axes they are given."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

from skdare import DAREClassifier, DAREClassifierCV, DARERegressor, ERMClassifier  # noqa: E402
from skdare.data import make_latent_domains  # noqa: E402
from skdare.displays import (  # noqa: E402
    AdaptationCurveDisplay,
    DomainCalibrationDisplay,
    DomainPairDisplay,
    DomainScoreDisplay,
    ShrinkagePathDisplay,
)
from skdare.errors import InputError  # noqa: E402


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_latent_domains(3, 40, random_state=0)


@pytest.fixture(scope="module")
def head(data):
    head = DAREClassifier(adaptation="centered")
    return head.fit(data.X, data.y, domains=data.domains)


def drawn(display):
    """The picture as pixels."""
    display.figure_.canvas.draw()
    return np.asarray(display.figure_.canvas.buffer_rgba())[..., :3]


MADE = {
    "scores": lambda data, head: DomainScoreDisplay.from_estimator(
        head, data.X, data.y, domains=data.domains
    ),
    "calibration": lambda data, head: DomainCalibrationDisplay.from_estimator(
        head, data.X, data.y, domains=data.domains
    ),
    "curve": lambda data, head: AdaptationCurveDisplay.from_estimator(
        head, data.X[:40], data.y[:40], repeats=2
    ),
    "path": lambda data, head: ShrinkagePathDisplay.from_estimator(
        DAREClassifier(), data.X, data.y, domains=data.domains, shrinkages=(0.5, 1.0)
    ),
    "pair": lambda data, head: DomainPairDisplay.from_estimator(head, 0, 1),
}


@pytest.mark.parametrize("name", MADE)
def test_a_display_is_drawn_and_drawn_again_elsewhere(name, data, head):
    display = MADE[name](data, head)
    pixels = drawn(display)
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20
    figure, axes = plt.subplots(1, display.panels)
    assert display.plot(axes) is display
    assert display.ax_ is axes
    assert display.figure_ is figure


def test_scores_are_those_of_each_domain_and_lie_in_their_intervals(data, head):
    display = DomainScoreDisplay.from_estimator(head, data.X, data.y, domains=data.domains)
    expected = [head.score(data.X[data.domains == e], data.y[data.domains == e]) for e in range(3)]
    assert display.scores == pytest.approx(expected)
    assert np.all((display.low <= display.scores) & (display.scores <= display.high))
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["0", "1", "2"]
    (dots, *_) = display.ax_.containers[0]
    assert dots.get_xdata() == pytest.approx(expected)


def test_a_domain_without_a_score_is_left_blank_and_nothing_warns():
    y = np.array([0.5, 1.0, 2.5, 4.0, 3.5])
    domains = ["a", "a", "a", "a", "single"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = DomainScoreDisplay.from_predictions(y, y + 0.1, domains=domains)
    assert np.isfinite(display.scores).tolist() == [True, False]
    assert np.isnan([display.low[1], display.high[1]]).all()


def hit_score(y, predicted):
    return np.mean(predicted[y == 1] == 1)


def test_predictions_are_scored_by_any_metric_and_displays_share_axes(data, head):
    _, axes = plt.subplots()
    predicted = head.predict(data.X)
    for name in ("one", "two"):
        display = DomainScoreDisplay.from_predictions(
            data.y, predicted, domains=data.domains, metric=hit_score, name=name, ax=axes
        )
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
    assert display.confidence[0] == pytest.approx(display.accuracy[0], abs=0.05)


@pytest.mark.parametrize("n", [3, 9])
def test_of_many_domains_only_the_worst_is_in_the_legend(n):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=90)
    display = DomainCalibrationDisplay.from_predictions(
        y, rng.uniform(size=90), domains=np.arange(90) % n
    )
    assert len(display.ax_.get_legend().get_texts()) == (3 if n == 3 else 1)


@pytest.mark.parametrize("kind", [DAREClassifier, DARERegressor])
def test_the_last_point_of_a_curve_is_adapting_to_half_of_the_rows(kind):
    task = "regression" if kind is DARERegressor else "classification"
    data = make_latent_domains(3, 60, task=task, random_state=0)
    new = data.domains == 2
    head = kind().fit(data.X[~new], data.y[~new], domains=data.domains[~new])
    X, y = data.X[new], data.y[new]
    display = AdaptationCurveDisplay.from_estimator(head, X, y, repeats=2)
    assert display.rows.tolist() == [5, 10, 20, 30]
    order = np.random.default_rng(0).permutation(60)
    test = np.sort(order[30:])
    adapted = head.adapt(X[np.sort(order[:30])], force=True)
    assert display.scores[0, -1] == adapted.score(X[test], y[test])


def test_a_path_has_the_scores_of_heads_fitted_without_the_domain(data):
    display = ShrinkagePathDisplay.from_estimator(
        DAREClassifier(), data.X, data.y, domains=data.domains, shrinkages=(0.2, 0.9)
    )
    out = data.domains == 2
    head = DAREClassifier(shrinkage=0.2)
    head.fit(data.X[~out], data.y[~out], domains=data.domains[~out])
    assert display.unadapted[2, 0] == head.score(data.X[out], data.y[out])
    assert display.adapted[2, 0] == head.adapt(data.X[out]).score(data.X[out], data.y[out])
    assert display.domains == ["0", "1", "2"]


def test_whitened_domains_are_the_same_circle(data):
    head = DAREClassifier(adaptation="centered", shrinkage=0.0)
    head.fit(data.X, data.y, domains=data.domains)
    display = DomainPairDisplay.from_estimator(head, 0, 1)
    for mean, covariance in display.after:
        assert covariance == pytest.approx(np.eye(2), abs=1e-6)
        assert mean == pytest.approx(np.zeros(2), abs=1e-9)
    distance = np.linalg.norm(display.before[0][0] - display.before[1][0])
    means = [data.X[data.domains == e].mean(axis=0) for e in (0, 1)]
    assert distance == pytest.approx(np.linalg.norm(means[0] - means[1]))


def test_the_plane_of_a_pair_keeps_variances_along_the_difference_of_means(data, head):
    display = DomainPairDisplay.from_estimator(head, 0, 1)
    rows = [data.X[data.domains == e] for e in (0, 1)]
    direction = rows[1].mean(axis=0) - rows[0].mean(axis=0)
    direction /= np.linalg.norm(direction)
    for (_, covariance), X in zip(display.before, rows, strict=True):
        assert covariance[0, 0] == pytest.approx(np.var(X @ direction), rel=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d, h: AdaptationCurveDisplay.from_estimator(
            ERMClassifier().fit(d.X, d.y), d.X, d.y), "ERMClassifier does not adapt"),
        (lambda d, h: AdaptationCurveDisplay.from_estimator(h, d.X, d.y, rows=[10**6]), "rows"),
        (lambda d, h: AdaptationCurveDisplay.from_estimator(h, d.X[:3], d.y[:3]), "X has 3 rows"),
        (lambda d, h: DomainPairDisplay.from_estimator(
            ERMClassifier().fit(d.X, d.y), 0, 1), "keeps nothing of its training domains"),
        (lambda d, h: DomainPairDisplay.from_estimator(h, "nowhere", 0), "no training domain"),
        (lambda d, h: ShrinkagePathDisplay.from_estimator(
            LogisticRegression(), d.X, d.y, domains=d.domains), "has no one shrinkage"),
        (lambda d, h: DomainScoreDisplay.from_predictions(
            [0, 1], [0, 1], domains=[0, 1], metric="f1"), "function"),
        (lambda d, h: DomainCalibrationDisplay.from_predictions(
            [0, 1], [0.1, 0.9], domains=[0, 1], n_bins=0), "n_bins"),
        (lambda d, h: DomainCalibrationDisplay.from_predictions(
            [0, 1], np.ones((2, 3)), domains=[0, 1]), "a column for each class"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_refused(call, message, data, head):
    with pytest.raises(InputError, match=message):
        call(data, head)


def test_a_head_that_chose_not_to_adapt_has_no_curve(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        head = DAREClassifierCV(strategies=("erm",)).fit(data.X, data.y, domains=data.domains)
    with pytest.raises(InputError, match="does not adapt"):
        AdaptationCurveDisplay.from_estimator(head, data.X, data.y)
