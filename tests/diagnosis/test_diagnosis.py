"""A diagnosis: whether to adapt, an expected score, and the warnings that matter."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from held_out_problems import TASKS, made
from skdare import DAREClassifier, DAREClassifierCV, DARERegressor
from skdare.diagnosis.diagnosis import Diagnosis
from skdare.diagnosis.forecast import Forecast
from skdare.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")


@pytest.fixture(scope="module", params=TASKS)
def rehearsed(request):
    """A table, and a head that knows all of its domains but the first."""
    table = made(request.param, E=6, n=90)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        head = table.choosing(l2=(0.05,)).fit(*table.without(0), rehearse=True)
    return table, head


@pytest.fixture(scope="module")
def classes():
    table = made("classes", E=6, n=90)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return table, table.choosing(l2=(0.05,)).fit(*table.without(0), rehearse=True)


def test_a_diagnosis_is_text_and_json(rehearsed):
    table, head = rehearsed
    diagnosis = head.diagnose(table.of(0)[0])
    fields = json.loads(json.dumps(diagnosis.to_dict()))
    assert fields["rows"] == 90
    assert fields["use"] == diagnosis.use
    assert set(fields["rehearsed"]) == set("12345")
    assert str(diagnosis).startswith("A new domain: 90 rows, no labels.")
    assert max(map(len, str(diagnosis).splitlines())) <= 80
    forecast = diagnosis.forecast
    assert forecast.low <= forecast.expected <= forecast.high


def test_what_is_expected_to_score_higher_is_advised(rehearsed):
    table, head = rehearsed
    diagnosis = head.diagnose(table.of(0)[0])
    if diagnosis.adapted is None:
        assert diagnosis.use == "unadapted"
    else:
        better = diagnosis.adapted.expected > diagnosis.unadapted.expected
        assert diagnosis.use == ("adapted" if better else "unadapted")


def test_a_shift_that_adapting_takes_out_is_met_by_adapting():
    table = made("binary", E=8, n=120, spread=4.0)
    head = DAREClassifierCV(l2=(0.05,)).fit(*table.without(0), rehearse=True)
    X, y = table.of(0)
    diagnosis = head.diagnose(X)
    assert diagnosis.use == "adapted"
    assert diagnosis.adapted.low <= head.adapt(X).score(X, y) <= diagnosis.adapted.high
    assert "Adapt to these rows" in str(diagnosis)


def test_the_labels_of_rows_are_not_needed_and_the_head_stays_as_it_was(classes):
    table, head = classes
    coef = head.coef_.copy()
    first, second = head.diagnose(table.of(0)[0]), head.diagnose(table.of(0)[0])
    assert str(first) == str(second)
    np.testing.assert_array_equal(head.coef_, coef)


def test_the_order_of_rows_does_not_matter(classes):
    table, head = classes
    X = table.of(0)[0]
    first, second = (head.diagnose(rows).to_dict() for rows in (X, X[::-1]))
    assert first["use"] == second["use"]
    assert first["adapted"] == pytest.approx(second["adapted"], abs=0.03)


@pytest.mark.parametrize("kind", [sparse.csr_array, np.float32])
def test_rows_of_any_kind_are_diagnosed_alike(classes, kind):
    table, head = classes
    X = table.of(0)[0]
    plain = head.diagnose(X)
    other = head.diagnose(X.astype(kind) if kind is np.float32 else kind(X))
    assert other.use == plain.use
    assert other.forecast.expected == pytest.approx(plain.forecast.expected, abs=0.02)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_unit_of_a_target_does_not_matter(scale):
    table = made("regression", E=5, n=60)
    diagnoses = []
    for y in (table.y, scale * table.y):
        scaled = replace(table, y=y)
        head = DARERegressor().fit(*scaled.without(0))
        head.rehearse(*scaled.without(0))
        diagnoses.append(head.diagnose(table.of(0)[0]))
    assert diagnoses[0].use == diagnoses[1].use
    assert diagnoses[0].forecast.expected == pytest.approx(diagnoses[1].forecast.expected)


# -- Warnings -------------------------------------------------------------------------------------


def test_features_in_other_units_are_named(classes):
    table, head = classes
    [warning] = [w for w in head.diagnose(1e3 * table.of(0)[0]).warnings if "units" in w]
    assert "times as large as in training" in warning


@pytest.mark.parametrize("n", [2, 5, 19, 20])
def test_few_rows_say_little(classes, n):
    table, head = classes
    warned = any("are few to judge" in w for w in head.diagnose(table.of(0)[0][:n]).warnings)
    assert warned == (n < 20)


def test_an_outlier_that_decides_everything_is_named(classes):
    table, head = classes
    X = table.of(0)[0].copy()
    X[7] *= 60.0
    assert any("One or two rows hold most" in w for w in head.diagnose(X).warnings)


def test_a_head_that_learnt_nothing_is_not_to_be_relied_on():
    table = made(E=6, n=90)
    noise = np.random.default_rng(0).integers(0, 3, len(table.y))
    head = DAREClassifierCV().fit(*replace(table, y=noise).without(0), rehearse=True)
    diagnosis = head.diagnose(table.of(0)[0])
    assert any("not clearly more than guessing" in w for w in diagnosis.warnings)
    none = Forecast(0.2, 0.1, 0.3)
    lost = replace(diagnosis, use="unadapted", unadapted=none)
    assert "Do not use it before you have labelled some rows" in str(lost)


def test_domains_that_were_hardly_unseen_make_an_upper_bound():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=240)
    X = rng.normal(size=(240, 4)) + 6.0 * y[:, None]
    domains = np.arange(240) % 4
    head = DAREClassifierCV(l2=(0.1,)).fit(X, y, domains, rehearse=True)
    diagnosis = head.diagnose(X[:60])
    assert "at most" in str(diagnosis)
    assert any("expect less on a new one" in w for w in diagnosis.warnings)


def test_a_declined_adaptation_is_said_in_one_sentence():
    table = made(E=5)
    head = table.choosing(strategies=("erm",)).fit(*table.without(0), rehearse=True)
    diagnosis = head.diagnose(table.of(0)[0])
    assert isinstance(diagnosis, Diagnosis)
    assert diagnosis.adapted is None
    assert diagnosis.labels


@pytest.mark.parametrize(
    ("scoring", "warned"), [(None, False), ("balanced_accuracy", False), ("neg_log_loss", True)]
)
def test_a_head_that_was_chosen_by_another_score_says_so(scoring, warned):
    table = made(E=4)
    head = table.choosing(strategies=("erm", "center"), l2=(0.1,), scoring=scoring)
    diagnosis = head.fit(*table.without(0), rehearse=True).diagnose(table.of(0)[0])
    said = [w for w in diagnosis.warnings if "was chosen by" in w]
    assert bool(said) == warned
    if warned:
        assert said == ["These scores are of accuracy; the strategy was chosen by neg_log_loss."]


# -- Refusals -------------------------------------------------------------------------------------


def test_without_a_rehearsal_no_score_is_forecast():
    table = made()
    with pytest.raises(InputError, match="call rehearse with the training rows"):
        DAREClassifier().fit(*table.rows).diagnose(table.of(0)[0])


def test_an_adapted_head_is_not_diagnosed(classes):
    table, head = classes
    adapted = head.adapt(table.of(0)[0])
    with pytest.raises(InputError, match="was adapted; use the head that it was made from"):
        adapted.diagnose(table.of(0)[0])


def test_rows_that_are_all_the_same_are_refused(classes):
    table, head = classes
    with pytest.raises(InputError, match="these rows are all the same"):
        head.diagnose(np.repeat(table.X[:1], 30, axis=0))


def test_one_row_is_refused(classes):
    table, head = classes
    with pytest.raises(InputError, match="at least 2 rows"):
        head.diagnose(table.X[:1])
