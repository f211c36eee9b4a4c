"""Sets of classes: they hold the true one as often as asked, by domains that were held out."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import skdare
from skdare import DAREClassifier, DARERegressor, make_domain_adjusted
from skdare.datasets import make_latent_domains
from skdare.diagnosis import Rehearsal
from skdare.diagnosis._nonconformity import (
    LEVELS,
    fewest_rows,
    nonconformity,
    quantiles_of,
    threshold_of_domains,
    threshold_of_rows,
)

pytestmark = pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")

DATA = make_latent_domains(6, 200, 4, shift=0.5, random_state=0)
TRAIN = DATA.domains != 5
ROWS = DATA.X[TRAIN], DATA.y[TRAIN]
NEW = DATA.X[~TRAIN]


def fitted():
    return DAREClassifier().fit(*ROWS, domains=DATA.domains[TRAIN])


@pytest.fixture(scope="module")
def head():
    return fitted().rehearse(*ROWS, domains=DATA.domains[TRAIN])


@pytest.fixture(scope="module")
def unrehearsed():
    return fitted()


def labels_of(n):
    """Labels of the new domain, of which n rows drawn at random have one."""
    y = DATA.y[~TRAIN].astype(object)
    y[np.random.default_rng(0).permutation(len(y))[n:]] = None
    return y


def is_largest(P):
    return np.arange(P.shape[1]) == P.argmax(axis=1)[:, None]


# -- Thresholds -----------------------------------------------------------------------------------


def test_nonconformity_is_one_less_the_probability_of_the_true_class():
    P = np.array([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]])
    np.testing.assert_allclose(nonconformity(P, np.array([0, 0, 1])), [0.3, 0.8, 0.5])


def test_domains_that_are_alike_have_the_quantile_of_each():
    scores = quantiles_of(np.linspace(0.0, 1.0, 1001))
    assert threshold_of_domains([scores] * 4, 0.9) == pytest.approx(0.9, abs=0.006)


def test_a_domain_counts_the_same_however_many_rows_it_has():
    easy = np.full(10, 0.1)
    hard = np.full(10, 0.8)
    few = threshold_of_domains([quantiles_of(easy), quantiles_of(hard)], 0.6)
    many = threshold_of_domains([quantiles_of(np.repeat(easy, 50)), quantiles_of(hard)], 0.6)
    assert few == many == 0.8


def test_the_new_domain_counts_as_the_worst_of_the_others():
    easy = quantiles_of(np.full(10, 0.1))
    hard = quantiles_of(np.full(10, 0.8))
    # Nine of ten domains are covered at 0.1, but nine of eleven with the new one.
    assert threshold_of_domains([easy] * 9 + [hard], 0.9) == 0.8
    assert threshold_of_domains([easy] * 9 + [hard], 0.8) == 0.1


def test_shares_of_small_domains_are_exact():
    scores = np.arange(1, 21) / 20
    assert threshold_of_domains([quantiles_of(scores)], 0.9) == 0.9


@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_domains_drawn_like_the_rehearsed_ones_are_covered_as_often_as_asked(coverage):
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(300):
        difficulty = rng.standard_normal(11)
        scores = [expit(centre + 2.0 * rng.standard_normal(100)) for centre in difficulty]
        limit = threshold_of_domains([quantiles_of(one) for one in scores[:10]], coverage)
        covered.append(np.mean(scores[10] <= limit))
    assert coverage - 0.02 <= np.mean(covered) <= coverage + 0.04


def test_rows_drawn_like_the_labelled_ones_are_covered_as_often_as_asked():
    scores = np.random.default_rng(0).random((4000, 20))
    covered = [one[-1] <= threshold_of_rows(one[:-1], 0.9) for one in scores]
    assert np.mean(covered) == pytest.approx(0.9, abs=0.015)


@pytest.mark.parametrize(("coverage", "needed"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19)])
def test_fewest_rows_are_those_whose_largest_is_the_threshold(coverage, needed):
    assert fewest_rows(coverage) == needed
    assert threshold_of_rows(np.arange(needed) / needed, coverage) == (needed - 1) / needed


# -- Sets of a head -------------------------------------------------------------------------------


def test_sets_have_the_classes_whose_nonconformity_was_usual_in_the_rehearsal(head):
    limit = threshold_of_domains([one.nonconformity for one in head.rehearsal_.domains], 0.9)
    P = head.predict_proba(NEW)
    included = head.predict_set(NEW)
    assert included.dtype == bool
    np.testing.assert_array_equal(included, (limit >= 1.0 - P) | is_largest(P))


def test_what_is_kept_of_a_domain_comes_from_a_head_that_had_not_seen_it(head):
    first = DATA.domains == 0
    others = TRAIN & ~first
    without = DAREClassifier().fit(DATA.X[others], DATA.y[others], domains=DATA.domains[others])
    for one, kept in (
        (without, head.rehearsal_.domains[0].nonconformity),
        (without.adapt(DATA.X[first]), head.rehearsal_.domains[0].adapted_nonconformity),
    ):
        P = one.predict_proba(DATA.X[first])
        own = quantiles_of(nonconformity(P, DATA.y[first]))
        np.testing.assert_allclose(kept, own, atol=1e-3)


def test_sets_grow_with_the_coverage_and_always_have_the_predicted_class(head):
    sets = [head.predict_set(NEW, coverage=coverage) for coverage in (0.5, 0.8, 0.9, 0.99)]
    for small, large in pairwise(sets):
        assert (small <= large).all()
    assert sets[0].sum() < sets[-1].sum()
    predicted = head.predict(NEW)[:, None] == head.classes_
    assert (predicted <= sets[0]).all()


def test_sets_of_held_out_domains_hold_the_true_class_on_average():
    covered = []
    data = make_latent_domains(7, 150, 4, shift=0.5, random_state=3)
    for new in range(7):
        train = data.domains != new
        rows = data.X[train], data.y[train]
        head = DAREClassifier().fit(*rows, domains=data.domains[train])
        head.rehearse(*rows, domains=data.domains[train])
        sets = head.predict_set(data.X[~train])
        covered.append(sets[np.arange(len(sets)), data.y[~train]].mean())
    assert 0.85 <= np.mean(covered) <= 0.99


def test_an_adapted_head_goes_by_domains_that_were_adapted_to(head):
    adapted = head.adapt(NEW)
    domains = [one.adapted_nonconformity for one in head.rehearsal_.domains]
    P = adapted.predict_proba(NEW)
    limit = threshold_of_domains(domains, 0.9)
    expected = (limit >= 1.0 - P) | is_largest(P)
    np.testing.assert_array_equal(adapted.predict_set(NEW), expected)


def test_probabilities_and_predictions_are_those_of_a_head_without_rehearsal(head, unrehearsed):
    np.testing.assert_array_equal(head.predict_proba(NEW), unrehearsed.predict_proba(NEW))
    np.testing.assert_array_equal(head.predict(NEW), unrehearsed.predict(NEW))


def test_each_row_has_its_set_whatever_stands_beside_it(head):
    order = np.random.default_rng(0).permutation(len(NEW))
    np.testing.assert_array_equal(head.predict_set(NEW[order]), head.predict_set(NEW)[order])
    np.testing.assert_array_equal(head.predict_set(NEW[:3]), head.predict_set(NEW)[:3])


def test_labels_of_the_domain_take_the_place_of_the_rehearsal(head, unrehearsed):
    y = labels_of(30)
    known = np.array([label is not None for label in y])
    P = unrehearsed.predict_proba(NEW)
    own = nonconformity(P[known], y[known].astype(int))
    limit = threshold_of_rows(own, 0.9)
    sets = unrehearsed.predict_set(NEW, y)
    np.testing.assert_array_equal(sets, (limit >= 1.0 - P) | is_largest(P))
    np.testing.assert_array_equal(sets, head.predict_set(NEW, y))


def test_saved_and_loaded_heads_have_the_same_sets(head, tmp_path):
    for one, name in ((head, "head"), (head.adapt(NEW), "adapted")):
        one.save(tmp_path / name)
        again = skdare.load(tmp_path / name)
        np.testing.assert_array_equal(again.predict_set(NEW), one.predict_set(NEW))


def test_a_pipeline_has_the_sets_of_its_head_on_prepared_rows():
    model = make_domain_adjusted(StandardScaler(), DAREClassifier())
    model.fit(*ROWS, domains=DATA.domains[TRAIN]).rehearse(*ROWS, domains=DATA.domains[TRAIN])
    sets = model[-1].predict_set(model[:-1].transform(NEW))
    np.testing.assert_array_equal(model.predict_set(NEW), sets)


def test_a_class_that_a_held_out_domain_alone_has_is_no_obstacle():
    y = DATA.y.copy()
    y[np.flatnonzero(DATA.domains == 0)[:50]] = 2
    rows = DATA.X[TRAIN], y[TRAIN]
    head = DAREClassifier().fit(*rows, domains=DATA.domains[TRAIN])
    head.rehearse(*rows, domains=DATA.domains[TRAIN])
    assert head.rehearsal_.domains[0].nonconformity[-1] > 0.999
    assert head.predict_set(NEW).shape == (len(NEW), 3)


# -- What is refused ------------------------------------------------------------------------------


def test_a_head_without_rehearsal_says_what_to_do(unrehearsed):
    with pytest.raises(ValueError, match=r"has not been rehearsed.*call rehearse"):
        unrehearsed.predict_set(NEW)


def test_a_rehearsal_of_an_earlier_version_says_what_to_do(head, tmp_path):
    older = skdare.load(_saved(head, tmp_path))
    domains = [replace(one, nonconformity=None) for one in head.rehearsal_.domains]
    older.rehearsal_ = Rehearsal(domains, head.rehearsal_.task)
    loaded = skdare.load(_saved(older, tmp_path))
    with pytest.raises(ValueError, match=r"rehearsed by an earlier version.*again"):
        loaded.predict_set(NEW)


def test_what_cannot_be_used_is_refused_before_rows_are_looked_at(head):
    rows = np.full((200, 3), np.nan)  # of the wrong width, and with nothing in it
    with pytest.raises(ValueError, match=r"coverage is 1\.0"):
        head.predict_set(rows, coverage=1.0)
    with pytest.raises(ValueError, match=r"y has 5 labels, and a coverage of 0\.9 needs 9"):
        head.predict_set(rows, labels_of(5))
    with pytest.raises(ValueError, match="y has 3 entries but X has 200 rows"):
        head.predict_set(rows, [0, 1, 0])


def test_a_file_whose_quantiles_are_none_is_refused(head, tmp_path):
    domains = [replace(one, nonconformity=1.0 - LEVELS) for one in head.rehearsal_.domains]
    odd = fitted()
    odd.rehearsal_ = Rehearsal(domains, head.rehearsal_.task)
    with pytest.raises(ValueError, match="Rehearsed"):
        skdare.load(_saved(odd, tmp_path))


def test_numbers_have_no_sets():
    data = make_latent_domains(task="regression", random_state=0)
    head = DARERegressor().fit(data.X, data.y, domains=data.domains)
    with pytest.raises(ValueError, match="DARERegressor predicts numbers"):
        head.predict_set(data.X)


def test_a_head_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        DAREClassifier().predict_set(NEW)


def _saved(head, folder):
    head.save(folder / "head")
    return folder / "head"
