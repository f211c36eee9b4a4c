"""Calibrated probabilities: as sure as they are right, by left-out domains or by some labels."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

import skdare
from skdare import DAREClassifier, DARERegressor, make_domain_adjusted
from skdare._input_error import InputError
from skdare.datasets import load_digit_domains, make_latent_domains
from skdare.diagnosis._calibration import _log_factor

pytestmark = pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")

DATA = make_latent_domains(6, 200, 4, shift=0.5, random_state=0)
TRAIN = DATA.domains != 5
ROWS = DATA.X[TRAIN], DATA.y[TRAIN]
NEW = DATA.X[~TRAIN]
TRUE = DATA.y[~TRAIN]


@pytest.fixture(scope="module")
def head():
    fitted = DAREClassifier().fit(*ROWS, domains=DATA.domains[TRAIN])
    return fitted.rehearse(*ROWS, domains=DATA.domains[TRAIN])


def scaled(head, factor):
    """The head with scores that are too large or too small."""
    scaled = DAREClassifier().fit(*ROWS, domains=DATA.domains[TRAIN])
    scaled.coef_ = factor * head.coef_
    scaled.intercept_ = factor * head.intercept_
    return scaled


def best_of(F, classes):
    """The temperature of least log loss, by a grid and by scikit-learn."""
    grid = np.exp(np.linspace(-3.0, 3.0, 601))
    losses = [log_loss(classes, expit(F[:, 0] / T)) for T in grid]
    return grid[int(np.argmin(losses))]


def labels_of(n):
    y = TRUE.astype(object)
    y[np.random.default_rng(0).permutation(len(y))[n:]] = None
    return y


@pytest.mark.parametrize("k", [2, 5])
def test_the_factor_is_the_one_that_rows_were_drawn_with(k):
    rng = np.random.default_rng(0)
    F = rng.standard_normal((20_000, k))
    P = np.exp(2.5 * F)
    P /= P.sum(axis=1, keepdims=True)
    classes = (rng.random((len(F), 1)) > P.cumsum(axis=1)).sum(axis=1)
    assert np.exp(_log_factor(F, classes, 0.0)) == pytest.approx(2.5, rel=0.05)


def test_without_rows_the_factor_is_the_prior():
    assert _log_factor(np.empty((0, 3)), np.empty(0, int), 0.7) == pytest.approx(0.7, abs=1e-3)


@pytest.mark.parametrize("factor", [0.3, 10.0])
def test_some_labels_mend_a_head_that_is_far_too_sure_or_unsure(head, factor):
    off = scaled(head, factor)
    calibrated = off.calibrate(NEW, labels_of(60))
    before = log_loss(TRUE, off.predict_proba(NEW))
    after = log_loss(TRUE, calibrated.predict_proba(NEW))
    best = min(log_loss(TRUE, scaled(head, f).predict_proba(NEW)) for f in np.logspace(-2, 2, 41))
    assert best <= after + 1e-3 < min(before, best + 0.05)
    np.testing.assert_array_equal(calibrated.predict(NEW), off.predict(NEW))
    np.testing.assert_allclose(
        calibrated.decision_function(NEW), off.decision_function(NEW) / calibrated.temperature_
    )


def test_by_the_rehearsal_it_is_the_factor_of_left_out_domains(head):
    scores = head.rehearsal_.scores
    assert head.calibrate().temperature_ == pytest.approx(
        best_of(scores.as_is, scores.classes), rel=0.02
    )
    adapted = head.adapt(NEW).calibrate()
    assert adapted.temperature_ == pytest.approx(best_of(scores.adapted, scores.classes), rel=0.02)
    assert adapted.temperature_ != pytest.approx(best_of(scores.as_is, scores.classes), rel=0.02)


def test_calibrating_twice_is_calibrating_once(head):
    once = head.calibrate(NEW, labels_of(40))
    twice = once.calibrate(NEW, labels_of(40))
    np.testing.assert_allclose(twice.coef_, once.coef_, rtol=1e-3)
    assert head.temperature_ == 1.0


def test_all_else_goes_by_the_scores_as_they_were_fitted(head):
    calibrated = head.calibrate(NEW, labels_of(40))
    assert calibrated.temperature_ != 1.0
    np.testing.assert_allclose(calibrated.adapt(NEW).coef_, head.adapt(NEW).coef_)
    np.testing.assert_array_equal(calibrated.predict_set(NEW), head.predict_set(NEW))
    assert calibrated.bound(NEW).least == pytest.approx(head.bound(NEW).least, abs=1e-6)
    assert str(calibrated.diagnose(NEW)) == str(head.diagnose(NEW))
    adapted = head.adapt(NEW)
    sure = adapted.calibrate(NEW, labels_of(40))
    np.testing.assert_array_equal(sure.suggest(NEW, 9), adapted.suggest(NEW, 9))


def test_the_fleet_of_a_calibrated_head_is_that_of_the_head(head):
    calibrated = head.calibrate(NEW, labels_of(40))
    for rows in (NEW, NEW[:6]):
        devices = ["a"] * len(rows)
        of_calibrated = calibrated.fleet().partial_fit(rows, devices).head_of("a")
        of_head = head.fleet().partial_fit(rows, devices).head_of("a")
        np.testing.assert_allclose(of_calibrated.coef_, of_head.coef_)
        assert of_calibrated.temperature_ == 1.0


@pytest.mark.parametrize("kind", ["adapter", "fleet"])
def test_the_stream_of_a_calibrated_head_goes_on(head, kind, tmp_path):
    calibrated = head.calibrate(NEW, labels_of(40))
    stream = getattr(calibrated, kind)()
    rest = ([*["a"] * len(NEW)],) if kind == "fleet" else ()
    stream.partial_fit(NEW, *rest).save(tmp_path / "stream")
    resumed = calibrated.resume(tmp_path / "stream")
    one, other = (s.head_of("a") if kind == "fleet" else s.head_ for s in (stream, resumed))
    np.testing.assert_allclose(one.coef_, other.coef_)


def test_a_class_that_only_one_domain_has_says_nothing_of_confidence():
    data = load_digit_domains()
    others = (data.y != 3) | (data.domains == "plain")
    X, y, domains = data.X[others], data.y[others], data.domains[others]
    head = DAREClassifier().fit(X, y, domains=domains).rehearse(X, y, domains=domains)
    scores = head.rehearsal_.scores
    assert not scores.seen[scores.classes == 3].any()
    assert scores.seen[scores.classes != 3].all()
    of_seen = replace(
        scores,
        as_is=scores.as_is[scores.seen],
        classes=scores.classes[scores.seen],
        adapted=scores.adapted[scores.seen],
        seen=None,
    )
    expected = copy.copy(head)
    expected.rehearsal_ = replace(head.rehearsal_, scores=of_seen)
    assert head.calibrate().temperature_ == pytest.approx(expected.calibrate().temperature_)


def test_a_calibrated_head_is_saved_with_its_temperature(head, tmp_path):
    calibrated = head.calibrate(NEW, labels_of(40))
    calibrated.save(tmp_path / "head.safetensors")
    loaded = skdare.load(tmp_path / "head.safetensors")
    assert loaded.temperature_ == calibrated.temperature_
    np.testing.assert_allclose(loaded.predict_proba(NEW), calibrated.predict_proba(NEW))
    np.testing.assert_allclose(loaded.adapt(NEW).coef_, head.adapt(NEW).coef_)
    assert skdare.inspect_file(tmp_path / "head.safetensors")["temperature"] == loaded.temperature_


def test_several_classes_have_probabilities_that_sum_to_one():
    data = load_digit_domains()
    new = data.domains == "tilted"
    head = DAREClassifier().fit(data.X[~new], data.y[~new], domains=data.domains[~new])
    y = np.where(np.arange(new.sum()) < 50, data.y[new], -1)
    calibrated = head.calibrate(data.X[new], y)
    P = calibrated.predict_proba(data.X[new])
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert log_loss(data.y[new], P) < log_loss(data.y[new], head.predict_proba(data.X[new]))


def test_a_pipeline_is_calibrated_on_rows_as_recorded():
    pipeline = make_domain_adjusted(StandardScaler(), DAREClassifier())
    pipeline.fit(*ROWS, domains=DATA.domains[TRAIN])
    calibrated = pipeline.calibrate(NEW, labels_of(40))
    np.testing.assert_array_equal(calibrated.predict(NEW), pipeline.predict(NEW))
    assert calibrated[-1].temperature_ != 1.0
    assert pipeline[-1].temperature_ == 1.0


def test_labels_that_a_head_learnt_from_are_told(head):
    adapted = head.adapt(NEW, labels_of(40))
    with pytest.warns(UserWarning, match="40 of 40 labels are among those"):
        adapted.calibrate(NEW, labels_of(40))


def test_what_cannot_be_calibrated_is_refused(head):
    plain = DAREClassifier().fit(*ROWS, domains=DATA.domains[TRAIN])
    with pytest.raises(InputError, match="call rehearse on it, or pass rows and labels"):
        plain.calibrate()
    with pytest.raises(InputError, match="y is None; pass rows and labels, or neither"):
        plain.calibrate(NEW)
    with pytest.raises(InputError, match="y has no label"):
        plain.calibrate(NEW, labels_of(0))
    with pytest.raises(InputError, match="adapted with 40 labels"):
        head.adapt(NEW, labels_of(40)).calibrate()
    numbers = DARERegressor().fit(DATA.X[TRAIN], DATA.X[TRAIN, 0], domains=DATA.domains[TRAIN])
    with pytest.raises(InputError, match="predicts numbers"):
        numbers.calibrate()


def test_domains_that_were_hardly_unseen_say_nothing_of_confidence(head):
    easy = make_latent_domains(4, 100, 4, shift=0.0, noise=0.0, random_state=0)
    y = (easy.X[:, 0] > np.median(easy.X[:, 0])).astype(int)
    sure = DAREClassifier(l2=1e-6).fit(easy.X, y, domains=easy.domains)
    sure.rehearse(easy.X, y, domains=easy.domains)
    assert sure.rehearsal_.saturated
    with pytest.warns(UserWarning, match="some labels would tell"):
        assert sure.calibrate().temperature_ == 1.0
