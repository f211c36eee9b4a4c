"""The least accuracy to count on: what a critic of the scores finds in rows without labels."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from skdare import DAREClassifier, DARERegressor, load, make_domain_adjusted
from skdare._input_error import InputError
from skdare.datasets import make_latent_domains
from skdare.diagnosis import bound
from skdare.diagnosis._bound import least_accuracy, sample_term
from skdare.diagnosis._left_out_scores import LeftOutScores


def latent(seed=0, rows=400, **options):
    return make_latent_domains(5, rows, 5, shift=0.5, random_state=seed, **options)


@pytest.fixture(scope="module")
def fold():
    """A rehearsed head, its training rows, and rows and labels of another domain."""
    data = latent()
    train = data.domains != 4
    training = data.X[train], data.y[train], data.domains[train]
    head = DAREClassifier().fit(training[0], training[1], domains=training[2])
    head.rehearse(*training)
    return head, training, data.X[~train], data.y[~train]


def scored(n, k, noise, seed):
    """Scores of k classes that name the right one but for noise."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(k, size=n)
    F = 2.0 * np.eye(k)[classes] + noise * rng.standard_normal((n, k))
    return F, classes


# -- The formula ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("left_out_rows", "rows"), [(1000, 50), (50, 1000), (300, 300)])
def test_the_sample_size_term_is_that_of_the_paper(left_out_rows, rows):
    want = (left_out_rows + 4 * rows) * math.log(1 / 0.05) / (2 * left_out_rows * rows)
    assert sample_term(left_out_rows, rows, 0.95) == pytest.approx(want**0.5)


def test_the_least_accuracy_is_what_all_terms_leave(fold):
    head, _, new, _ = fold
    found = head.bound(new)
    error = found.left_out_error + found.disagreement - found.left_out_disagreement
    assert found.disagreement > found.left_out_disagreement
    assert found.least == pytest.approx(1 - error - found.sample_term)
    assert found.sample_term == sample_term(found.left_out_rows // 2, len(new) // 2, 0.95)


# -- What a critic finds --------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 6])
def test_on_rows_like_those_in_training_only_the_left_out_error_and_the_term_are_lost(k):
    known, classes = scored(4000, k, 1.0, 0)
    new, _ = scored(4000, k, 1.0, 1)
    found = least_accuracy(LeftOutScores(known, classes), new, adapted=False)
    assert found.discrepancy < 0.03
    assert found.left_out_error == pytest.approx(np.mean(known.argmax(axis=1) != classes))


def test_of_very_many_rows_a_critic_is_trained_on_some_and_tried_on_all_others():
    known, classes = scored(2000, 3, 1.0, 0)
    many, _ = scored(40_000, 3, 1.0, 1)
    found = least_accuracy(LeftOutScores(known, classes), many, adapted=False)
    assert found.sample_term == sample_term(1000, 20_000, 0.95)
    assert found.discrepancy < 0.03


@pytest.mark.parametrize("k", [2, 3, 6])
def test_where_scores_lie_elsewhere_the_critic_disagrees(k):
    known, classes = scored(2000, k, 0.5, 0)
    new, truth = scored(2000, k, 0.5, 1)
    # One class drifts over the border to another, whose score is then the higher one.
    drifted = truth == 0
    new[drifted, 1] += 2.5
    error = np.mean(new.argmax(axis=1) != truth)
    found = least_accuracy(LeftOutScores(known, classes), new, adapted=False)
    assert error > 0.7 / k
    assert found.discrepancy > 0.7 * error
    assert found.least <= 1 - error


def test_the_bound_holds_on_domains_drawn_like_the_training_ones():
    for seed in range(10):
        data = latent(seed, rows=200)
        train = data.domains != 4
        training = data.X[train], data.y[train], data.domains[train]
        head = DAREClassifier().fit(training[0], training[1], domains=training[2])
        head.rehearse(*training)
        new = data.X[~train]
        for one in (head, head.adapt(new)):
            least = one.bound(new).least
            assert 0 < least <= one.score(new, data.y[~train])


def test_the_bound_holds_where_a_head_knows_its_training_rows_by_heart():
    """Nothing but noise can be learnt, and training rows are predicted all the same."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 150))
    y = rng.integers(3, size=600)
    domains = np.arange(600) % 4
    train = domains != 3
    head = DAREClassifier(l2=1e-3).fit(X[train], y[train], domains=domains[train])
    assert head.score(X[train], y[train]) > 0.6
    head.rehearse(X[train], y[train], domains=domains[train])
    for one in (head, head.adapt(X[~train])):
        assert one.bound(X[~train]).least <= one.score(X[~train], y[~train])


@pytest.mark.parametrize("k", [2, 5])
def test_what_is_common_to_the_scores_of_all_classes_does_not_matter(k):
    known, classes = scored(1000, k, 1.0, 0)
    new, _ = scored(500, k, 1.0, 1)
    moved = new + np.random.default_rng(2).standard_normal((500, 1)) + 5.0
    found = [least_accuracy(LeftOutScores(known, classes), F, adapted=False) for F in (new, moved)]
    assert found[0].least == pytest.approx(found[1].least)


def test_more_confidence_leaves_less_to_count_on(fold):
    head, _, new, _ = fold
    leasts = [head.bound(new, confidence=c).least for c in (0.5, 0.9, 0.99)]
    assert leasts == sorted(leasts, reverse=True)
    assert leasts[0] > leasts[-1]


def test_units_of_features_do_not_matter():
    data = latent()
    train = data.domains != 4
    unit = np.array([1.0, 1e3, 1e-3, 10.0, 0.1])
    found = []
    for X in (data.X, data.X * unit):
        training = X[train], data.y[train], data.domains[train]
        head = DAREClassifier(standardize=True, tol=1e-8)
        head.fit(training[0], training[1], domains=training[2])
        found.append(head.rehearse(*training).bound(X[~train]))
    assert found[0].least == pytest.approx(found[1].least, abs=5e-3)


# -- Which head, and by which rows ----------------------------------------------------------------


def test_left_out_rows_are_predicted_by_heads_that_were_fitted_without_their_domain(fold):
    head, training, new, _ = fold
    X, y, domains = training
    right = []
    for e in range(4):
        rest = domains != e
        other = DAREClassifier().fit(X[rest], y[rest], domains=domains[rest])
        right.append(other.predict(X[~rest]) == y[~rest])
    expected = 1 - np.mean(np.concatenate(right))
    assert head.bound(new).left_out_error == pytest.approx(expected, abs=2e-3)


def test_a_saved_head_bounds_as_before(fold, tmp_path):
    head, _, new, _ = fold
    head.save(tmp_path / "head.safetensors")
    assert load(tmp_path / "head.safetensors").bound(new) == head.bound(new)


def test_a_pipeline_bounds_rows_that_its_first_step_takes():
    data = latent()
    train = data.domains != 4
    training = data.X[train], data.y[train], data.domains[train]
    pipeline = make_domain_adjusted(StandardScaler(), DAREClassifier())
    pipeline.fit(training[0], training[1], domains=training[2])
    pipeline.rehearse(*training)
    new = data.X[~train]
    want = pipeline[-1].bound(pipeline[:-1].transform(new))
    assert pipeline.bound(new).least == pytest.approx(want.least)


def test_no_labels_of_the_new_domain_are_needed_and_nothing_is_changed(fold):
    head, _, new, _ = fold
    before = head.coef_.copy()
    assert head.bound(new) == bound(head, new)
    assert np.array_equal(before, head.coef_)


# -- Estimates beside it --------------------------------------------------------------------------


def test_estimates_of_a_domain_like_the_training_ones_are_near_the_truth(fold):
    head, _, new, truth = fold
    adapted = head.adapt(new)
    found = adapted.bound(new)
    accuracy = adapted.score(new, truth)
    assert found.by_confidence == pytest.approx(accuracy, abs=0.1)
    assert found.by_agreement == pytest.approx(accuracy, abs=0.1)


def test_the_estimate_by_agreement_is_the_forecast_of_a_diagnosis(fold):
    head, _, new, _ = fold
    forecasts = head.diagnose(new).forecasts
    assert head.bound(new).by_agreement == forecasts["use"].expected
    assert head.adapt(new).bound(new).by_agreement == forecasts["adapt"].expected


# -- Words ----------------------------------------------------------------------------------------


def test_a_bound_is_two_sentences(fold):
    head, _, new, _ = fold
    text = str(head.bound(new))
    assert text.count(". ") == 1
    assert "95\u00a0% confidence" in text
    assert "by agreement" in text


def test_where_nothing_can_be_counted_on_that_is_said():
    known, classes = scored(1000, 3, 0.1, 0)
    # All rows are of one class, and less surely than any was in training.
    new = 0.2 * scored(400, 3, 0.1, 1)[0] + [0.0, 0.0, 3.0]
    found = least_accuracy(LeftOutScores(known, classes), new, adapted=False)
    assert found.least == 0
    assert str(found).startswith("No accuracy can be counted on")


def test_a_diagnosis_tells_the_least_of_both_heads_in_one_line(fold):
    head, _, new, _ = fold
    diagnosis = head.diagnose(new)
    assert diagnosis.bounds["use"].least == head.bound(new).least
    assert diagnosis.bounds["adapt"].least == head.adapt(new).bound(new).least
    lines = [line for line in str(diagnosis).splitlines() if "to count on" in line]
    assert len(lines) == 1
    assert json.loads(json.dumps(diagnosis.to_dict()))["bounds"]["use"]["rows"] == len(new)


# -- Errors, before any work ----------------------------------------------------------------------


def test_a_regressor_has_no_accuracy_to_bound():
    data = latent(task="regression")
    head = DARERegressor().fit(data.X, data.y, domains=data.domains)
    with pytest.raises(InputError, match="a DARERegressor predicts numbers; see diagnose"):
        head.bound(data.X)


def test_without_scores_of_left_out_rows_rehearse_is_asked_for(fold):
    _, training, new, _ = fold
    head = DAREClassifier().fit(training[0], training[1], domains=training[2])
    with pytest.raises(InputError, match="call rehearse on it"):
        head.bound(new)


def test_few_rows_and_odd_confidences_are_refused(fold):
    head, _, new, _ = fold
    with pytest.raises(InputError, match="X has 19 rows, and a bound needs 20"):
        head.bound(new[:19])
    with pytest.raises(InputError, match=r"confidence is 1.0; it must be in \[0.5, 0.999\]"):
        head.bound(new, confidence=1.0)


def test_a_head_that_took_labels_has_no_bound():
    data = make_latent_domains(random_state=0)
    new = data.domains == 3
    X, y, domains = data.X[~new], data.y[~new], data.domains[~new]
    head = DAREClassifier().fit(X, y, domains=domains).rehearse(X, y, domains=domains)
    adapted = head.adapt(data.X[new], data.y[new])
    with pytest.raises(InputError, match="this head was adapted with 300 labels"):
        adapted.bound(data.X[new])
