"""Tests agree with scipy, and intervals cover what they claim."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skdare.report.statistics import Gain, holm, interval, sign_flip


@pytest.mark.parametrize("n", [2, 3, 8, 12])
def test_the_sign_flip_test_equals_scipys_permutation_test(n):
    d = np.random.default_rng(n).normal(0.3, 1.0, size=n)
    theirs = stats.permutation_test(
        (d,), np.mean, permutation_type="samples", alternative="greater", n_resamples=np.inf
    )
    assert sign_flip(d) == pytest.approx(theirs.pvalue)


def test_three_domains_never_go_below_an_eighth():
    assert sign_flip([100.0, 200.0, 300.0]) == 1 / 8
    assert sign_flip([-100.0, -200.0, -300.0]) == 1.0


def test_rounding_is_no_evidence():
    a, b = np.array([0.1 + 0.2, 0.7 + 0.1, 0.1 + 0.7]), np.array([0.3, 0.8, 0.8])
    assert np.ptp(a - b) > 0
    assert sign_flip(a - b) == sign_flip(b - a) == 1.0
    # 0.1 + 0.2 - 0.3 is 5.6e-17: the flip of all three has the same sum as the flip of none.
    assert sign_flip([0.1, 0.2, -0.3]) == sign_flip([1, 2, -3]) == 5 / 8


def test_drawn_flips_approach_the_exact_p_value_and_are_the_same_every_time():
    d = np.random.default_rng(3).normal(0.25, 1.0, size=18)
    flips = (np.arange(2**18)[:, None] >> np.arange(18)) & 1
    exact = np.mean(flips @ d <= 0)
    assert sign_flip(d) == pytest.approx(exact, abs=5 * np.sqrt(exact / 10_000))
    assert sign_flip(d) == sign_flip(d)


@pytest.mark.parametrize("d", [[], [0.1], [0.0, 0.0, 0.0]])
def test_nothing_to_compare_has_p_one(d):
    assert sign_flip(np.array(d)) == 1.0


def test_where_nothing_differs_five_in_a_hundred_are_called_better():
    rng = np.random.default_rng(0)
    p = np.array([sign_flip(rng.normal(size=7)) for _ in range(400)])
    assert np.mean(p < 0.05) == pytest.approx(0.05, abs=0.025)


def test_holm_equals_an_example_worked_by_hand():
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1 is 0.04, 0.06, 0.06, 0.04; then monotone.
    p = {"irm": 0.04, "dare": 0.01, "groupdro": 0.03, "erm": np.nan, "reweighted": 0.02}
    expected = {"irm": 0.06, "dare": 0.04, "groupdro": 0.06, "erm": np.nan, "reweighted": 0.06}
    adjusted = holm(p)
    assert list(adjusted) == list(p)
    assert adjusted == pytest.approx(expected, nan_ok=True)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=6))
def test_holm_is_no_smaller_keeps_the_order_and_stays_below_bonferroni(p):
    given_ = dict(enumerate(p))
    adjusted = holm(given_)
    assert all(p[i] <= adjusted[i] <= min(1.0, len(p) * p[i]) for i in given_)
    order = sorted(given_, key=p.__getitem__)
    assert all(adjusted[a] <= adjusted[b] for a, b in pairwise(order))


@pytest.mark.parametrize(("n", "level"), [(2, 0.9), (3, 0.9), (10, 0.95)])
def test_the_interval_is_students(n, level):
    values = np.random.default_rng(n).normal(size=n)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(level)
    assert interval(values, level) == pytest.approx((expected.low, expected.high))


def test_the_interval_covers_ninety_times_in_a_hundred():
    samples = np.random.default_rng(0).normal(size=(1500, 3))
    ends = np.array([interval(sample) for sample in samples])
    assert np.mean((ends[:, 0] <= 0) & (ends[:, 1] >= 0)) == pytest.approx(0.9, abs=0.025)


def test_one_value_has_no_interval():
    assert np.isnan(interval(np.array([61.2]))).all()


def test_a_gain_holds_the_mean_its_error_and_the_test():
    d = pd.Series([0.1, 0.2, -0.05, 0.0], index=list("abcd"))
    gain = Gain(d)
    assert gain.mean == pytest.approx(d.mean())
    assert gain.standard_error == pytest.approx(d.sem())
    assert (gain.better, len(gain)) == (2, 4)
    assert gain.p == sign_flip(d.to_numpy())
    assert gain.interval == interval(d.to_numpy())
