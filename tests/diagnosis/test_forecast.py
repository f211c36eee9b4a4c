"""What is expected of a new domain, from rehearsals whose numbers are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from skdare.diagnosis.forecast import COVERAGE, Forecast, outlook
from skdare.diagnosis.rehearsal import Curve, Rehearsal, Rehearsed
from skdare.fitting.score import Metric

ACCURACY = Metric("accuracy", 0.3)
R2 = Metric("r2", 0.0)


def domain(unadapted=0.8, adapted=0.85, disagreement=0.1, both_right=0.78, labels=None):
    """A held-out domain of 400 rows; adapting to a quarter of them gains half as much."""
    curve = None
    if disagreement is not None:
        curve = Curve([100, 400], [0.5 * (unadapted + adapted), adapted])
    labelled = None if labels is None else Curve(list(labels), list(labels.values()))
    return Rehearsed("a", 400, unadapted, curve, labelled, disagreement, both_right)


def rehearsal(*domains, metric=ACCURACY):
    return Rehearsal(metric, list(domains))


def without_adapting(*scores, metric=ACCURACY):
    return rehearsal(*(Rehearsed("a", 400, score) for score in scores), metric=metric)


def test_a_domain_like_the_rehearsed_ones_is_expected_to_score_as_they_did():
    expected = outlook(rehearsal(*[domain()] * 50), 0.1, 400)
    assert expected.unadapted.expected == pytest.approx(0.8, abs=0.03)
    assert expected.adapted.expected == pytest.approx(0.85, abs=0.03)


def test_the_more_the_models_disagree_the_worse_the_unadapted_one():
    """The adapted model was right where they disagreed."""
    rehearsed = rehearsal(*[domain(0.85, 0.95, both_right=0.85)] * 5)
    scores = [outlook(rehearsed, apart, 400) for apart in (0.05, 0.2, 0.5)]
    assert scores[0].unadapted.expected > scores[1].unadapted.expected + 0.1
    assert scores[1].unadapted.expected > scores[2].unadapted.expected + 0.2
    assert scores[2].adapted.expected > 0.75


def test_the_formula_of_agreement():
    """Right where they agree, and where they do not, as often as on rehearsed domains."""
    domains = [domain(0.8, 0.9, 0.1, 0.75), domain(0.6, 0.7, 0.3, 0.5)]
    agreed = (0.75 + 0.5) / (2 - 0.4)
    apart = {
        "unadapted": (0.8 + 0.6 - 1.25 + 0.02 * 0.25) / 0.42,
        "adapted": (0.9 + 0.7 - 1.25 + 0.02 * 0.45) / 0.42,
    }
    expected = outlook(rehearsal(*domains), 0.2, 400)
    for name, right in apart.items():
        assert getattr(expected, name).expected == pytest.approx(0.8 * agreed + 0.2 * right)


def test_without_adapting_the_mean_of_the_rehearsed_domains_is_expected():
    expected = outlook(rehearsal(domain(0.7), domain(0.9)), None, 400)
    assert expected.unadapted.expected == pytest.approx(0.8)
    assert expected.adapted is None


def test_fewer_rows_to_adapt_to_are_worth_less():
    rehearsed = rehearsal(*[domain(0.8, 0.85)] * 5)
    many, few = (outlook(rehearsed, 0.1, rows).adapted.expected for rows in (400, 100))
    assert many - few == pytest.approx(0.025)


def test_curves_are_linear_in_the_logarithm_and_flat_beyond_their_ends():
    curve = Curve([100, 400], [0.5, 0.7])
    assert curve.at(200) == pytest.approx(0.6)
    assert curve.at(10) == 0.5
    assert curve.at(10_000) == 0.7


def test_a_regression_is_expected_as_in_the_middle_of_the_rehearsed_domains():
    expected = outlook(without_adapting(-1.0, 0.5, 0.6, metric=R2), None, 400)
    assert expected.unadapted.expected == pytest.approx(0.5)


def test_an_unadapted_regression_loses_what_adapting_gained_by_disagreement():
    domains = [domain(0.5, 0.8, 0.2, None), domain(0.6, 0.7, 0.2, None)]
    expected = outlook(rehearsal(*domains, metric=R2), 0.3, 400)
    assert expected.unadapted.expected == pytest.approx(0.75 - (0.3 + 0.1) / 0.4 * 0.3)
    assert expected.adapted.expected == pytest.approx(0.75)


def test_adapting_that_lost_says_nothing_bad_of_the_unadapted_model():
    domains = [domain(0.8, 0.2, both_right=None)] * 4
    expected = outlook(rehearsal(*domains, metric=R2), 0.3, 400)
    assert expected.unadapted.expected == pytest.approx(0.8)
    assert expected.adapted.expected == pytest.approx(0.2)


# -- Ranges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("misses", [[0.1, -0.05, 0.02], [0.2], [0.01] * 30], ids=len)
def test_the_range_is_students_for_one_more_domain(misses):
    """Four misses of the usual size are known beforehand."""
    n = len(misses)
    half = Forecast.of(0.5, misses, rehearsal(domain(0.5)))
    squares = np.sum(np.square(misses)) + 4 * 0.07**2
    quantile = stats.t(n + 3).ppf(0.5 + COVERAGE / 2)
    expected = quantile * np.sqrt(squares / (n + 4)) * np.sqrt(1 + 1 / n)
    assert half.high - half.expected == pytest.approx(expected)
    assert half.expected - half.low == pytest.approx(expected)


@pytest.mark.parametrize(("count", "least", "most"), [(4, 0.72, 0.92), (30, 0.74, 0.86)])
def test_the_range_holds_four_in_five_domains_like_the_rehearsed_ones(count, least, most):
    rng = np.random.default_rng(0)
    held = []
    for _ in range(300):
        scores = 0.7 + 0.07 * rng.standard_normal(count + 1)
        forecast = outlook(without_adapting(*scores[1:]), None, 100).unadapted
        held.append(forecast.low <= scores[0] <= forecast.high)
    assert least < np.mean(held) < most


def test_domains_that_were_hardly_unseen_make_wider_ranges():
    wide, narrow = (
        outlook(rehearsal(*[domain(score, score, 0.01, score)] * 4), 0.01, 400).unadapted
        for score in (0.97, 0.9)
    )
    assert wide.expected - wide.low > 1.8 * (narrow.expected - narrow.low)


@pytest.mark.parametrize(("score", "end"), [(0.02, "low"), (0.98, "high")])
def test_no_accuracy_is_below_zero_or_above_one(score, end):
    forecast = outlook(without_adapting(score, score, score), None, 100).unadapted
    assert getattr(forecast, end) == {"low": 0.0, "high": 1.0}[end]


def test_no_r2_is_below_its_floor():
    assert outlook(without_adapting(-1.0, -0.9, metric=R2), None, 100).unadapted.low == -1.0


# -- Labels ---------------------------------------------------------------------------------------


def test_only_numbers_of_labels_that_half_of_the_domains_gave_count():
    few = domain(labels={20: 0.8, 50: 0.85})
    some = domain(labels={20: 0.7})
    assert set(outlook(rehearsal(few, some), 0.1, 400).labels) == {20, 50}
    assert set(outlook(rehearsal(few, some, some), 0.1, 400).labels) == {20}
    assert outlook(rehearsal(domain(), domain()), 0.1, 400).labels == {}


def test_more_labels_do_not_seem_better_because_hard_domains_are_too_small_for_them():
    large = domain(0.5, 0.5, labels={20: 0.8, 50: 0.8})
    small = domain(0.5, 0.5, labels={20: 0.3})
    labels = outlook(rehearsal(large, small), 0.1, 400).labels
    assert labels[20].expected == labels[50].expected


def test_at_most_half_of_the_new_rows_can_be_labelled():
    rehearsed = rehearsal(domain(labels={20: 0.9, 50: 0.9, 200: 0.9}))
    assert set(outlook(rehearsed, 0.1, 120).labels) == {20, 50}


def test_labels_are_not_expected_to_hurt():
    worse = [replace(domain(0.8, 0.85), labelled=Curve([20], [0.4]))] * 3
    expected = outlook(rehearsal(*worse), 0.1, 400)
    assert expected.labels[20].expected == pytest.approx(expected.adapted.expected)
