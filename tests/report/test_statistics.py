"""Intervals cover what they claim, tests agree with SciPy, and marks follow the paper's rule."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from skdare.report.summary.statistics import (
    Interval,
    holm,
    joint_sign_flip,
    mark_best,
    mcnemar,
    normal_interval,
    paired_difference,
    paired_t,
    prediction_interval,
    sign_flip,
    t_interval,
)

SPREAD = np.array([-1.0, 0.0, 1.0])  # three trials of mean 0 and standard deviation 1


def coverage(interval, n, repeats=1500):
    """Share of normal samples of mean zero whose interval has zero in it."""
    samples = np.random.default_rng(0).normal(size=(repeats, n))
    ends = [interval(sample) for sample in samples]
    return np.mean([end.low <= 0 <= end.high for end in ends])


def test_the_normal_interval_is_the_one_the_paper_prints():
    interval = normal_interval(70 + SPREAD)
    assert interval == Interval(70.0, pytest.approx(1.645 / np.sqrt(3)))
    assert (interval.low, interval.high) == pytest.approx((69.0503, 70.9497), abs=1e-4)


@pytest.mark.parametrize(("n", "level"), [(2, 0.9), (3, 0.9), (10, 0.95)])
def test_the_t_interval_equals_scipys(n, level):
    values = np.random.default_rng(n).normal(size=n)
    interval = t_interval(values, level)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(level)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_of_three_trials_the_t_factor_is_2920():
    assert t_interval(SPREAD).half_width * np.sqrt(3) == pytest.approx(2.920, abs=5e-4)


def test_of_three_trials_the_normal_interval_covers_76_times_in_100_and_the_t_interval_90():
    claimed = 1 - 2 * stats.t.sf(1.645, 2)
    assert claimed == pytest.approx(0.758, abs=1e-3)
    assert coverage(normal_interval, 3) == pytest.approx(claimed, abs=0.03)
    assert coverage(t_interval, 3) == pytest.approx(0.9, abs=0.025)


def test_one_more_value_falls_into_the_prediction_interval_80_times_in_100():
    draws = np.random.default_rng(0).normal(size=(4000, 5))
    intervals = [prediction_interval(x[:4]) for x in draws]
    inside = [i.low <= x[4] <= i.high for i, x in zip(intervals, draws, strict=True)]
    assert np.mean(inside) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("interval", [normal_interval, t_interval, prediction_interval])
def test_one_value_has_a_mean_and_no_width(interval):
    assert interval([61.2]).mean == 61.2
    assert np.isnan(interval([61.2]).half_width)


@pytest.mark.parametrize("n", [2, 3, 12])
def test_paired_t_equals_scipys(n):
    a, b = np.random.default_rng(n).normal(size=(2, n))
    assert paired_t(a, b) == pytest.approx(stats.ttest_rel(a, b, alternative="greater").pvalue)
    assert paired_t(a, b) + paired_t(b, a) == pytest.approx(1.0)


def test_of_three_trials_t_must_pass_1886_to_be_significant_at_one_in_ten():
    def p(t):
        return paired_t(t / np.sqrt(3) + SPREAD, np.zeros(3))

    assert p(1.885) > 0.1 > p(1.887)


def test_one_pair_has_no_p_value():
    assert np.isnan(paired_t([2.0], [1.0]))
    assert np.isnan(paired_difference([2.0], [1.0]).p)


@pytest.mark.parametrize(("gain", "expected"), [(0.1, 1 / 16), (-0.1, 1.0), (0.0, 1.0)])
def test_a_constant_difference_is_left_to_the_sign_flip_test(gain, expected):
    b = np.array([0.1, 0.7, 0.3, 0.9])
    assert paired_t(b + gain, b) == expected


def test_rounding_is_no_evidence():
    a, b = np.array([0.1 + 0.2, 0.7 + 0.1, 0.1 + 0.7]), np.array([0.3, 0.8, 0.8])
    assert np.ptp(a - b) > 0
    assert paired_t(a, b) == paired_t(b, a) == 1.0
    assert paired_difference(a, b).sign_flip.p == paired_difference(b, a).sign_flip.p == 1.0


@pytest.mark.parametrize("n", [2, 3, 8])
def test_the_exact_sign_flip_test_equals_scipys_permutation_test(n):
    d = np.random.default_rng(n).normal(0.3, 1.0, size=n)
    theirs = stats.permutation_test(
        (d,), np.mean, permutation_type="samples", alternative="greater", n_resamples=np.inf
    )
    ours = sign_flip(d)
    assert ours.exact
    assert ours.p == pytest.approx(theirs.pvalue)


def test_of_three_trials_no_sign_flip_test_goes_below_an_eighth():
    result = sign_flip([100.0, 200.0, 300.0])
    assert result.p == result.smallest == 1 / 8
    assert sign_flip([-100.0, -200.0, -300.0]).p == 1.0


def test_flips_that_tie_up_to_rounding_count_as_ties():
    # 0.1 + 0.2 - 0.3 is 5.6e-17: the flip of all three has the same sum as the flip of none.
    assert sign_flip([0.1, 0.2, -0.3]).p == sign_flip([1, 2, -3]).p == 5 / 8


def test_drawn_sign_flips_approach_the_exact_p_value():
    d = np.random.default_rng(3).normal(0.25, 1.0, size=18)
    flips = (np.arange(2**18)[:, None] >> np.arange(18)) & 1
    exact = np.mean(flips @ d <= 0)
    drawn = sign_flip(d)
    assert not drawn.exact
    assert drawn.p == pytest.approx(exact, abs=5 * np.sqrt(exact / 100_000))
    assert drawn == sign_flip(d)
    assert drawn != sign_flip(d, seed=1)


def test_a_drawn_p_value_is_never_zero():
    result = sign_flip(np.ones(40), n_draws=99)
    assert result.p == result.smallest == 1 / 100


def test_of_one_row_the_joint_sign_flip_is_the_sign_flip():
    for n in (2, 5, 9):
        d = np.random.default_rng(n).normal(0.4, 1.0, size=n)
        assert joint_sign_flip([d]) == sign_flip(d).p


def test_the_joint_sign_flip_counts_where_the_best_of_all_rows_is_as_high():
    D = np.random.default_rng(1).normal(0.5, 1.0, size=(3, 6))
    D[2, 1] = np.nan
    sums = []
    for signs in product((1, -1), repeat=6):
        rows = [np.array(signs)[np.isfinite(d)] * d[np.isfinite(d)] for d in D]
        sums.append([row.sum() / np.sqrt(np.sum(row**2)) for row in rows])
    highest = np.max(sums, axis=1)
    expected = [np.mean(highest >= s - 1e-9) for s in sums[0]]
    assert joint_sign_flip(D) == pytest.approx(expected)


def test_the_size_of_a_row_changes_no_joint_sign_flip():
    D = np.random.default_rng(2).normal(0.3, 1.0, size=(4, 7))
    assert joint_sign_flip(D * [[1], [100], [0.01], [1]]) == pytest.approx(joint_sign_flip(D))


def test_the_joint_sign_flip_reaches_its_smallest_p_however_many_rows_there_are():
    D = np.random.default_rng(3).normal(0.0, 1.0, size=(6, 5))
    D[0] = [2.0, 2.1, 1.9, 2.0, 2.2]
    assert joint_sign_flip(D)[0] == 1 / 32


@pytest.mark.parametrize("n", [5, 8])
@pytest.mark.parametrize("m", [4, 6])
def test_where_no_head_differs_the_best_is_called_better_five_times_in_100_at_most(m, n):
    # Each by its own t interval at 90 %, the best of four would be in more than eight.
    rng = np.random.default_rng(0)
    by_flips = 0
    by_interval = 0
    for _ in range(400):
        shared = rng.normal(size=n)
        D = np.linspace(1, 3, m)[:, None] * (0.6 * shared + 0.8 * rng.normal(size=(m, n)))
        best = D[D.mean(axis=1).argmax()]
        by_flips += joint_sign_flip(D)[D.mean(axis=1).argmax()] < 0.05
        by_interval += t_interval(best).low > 0
    assert by_flips / 400 <= 0.05
    assert by_interval / 400 > 0.08


def test_holm_equals_an_example_worked_by_hand():
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1 is 0.04, 0.06, 0.06, 0.04; then monotone.
    p = {"irm": 0.04, "dare": 0.01, "groupdro": 0.03, "erm": np.nan, "reweighted": 0.02}
    expected = {"irm": 0.06, "dare": 0.04, "groupdro": 0.06, "erm": np.nan, "reweighted": 0.06}
    adjusted = holm(p)
    assert list(adjusted) == list(p)
    assert adjusted == pytest.approx(expected, nan_ok=True)


def test_holm_never_exceeds_one_and_leaves_an_empty_family_alone():
    assert holm({"irm": 0.7, "dare": 0.6}) == {"irm": 1.0, "dare": 1.0}
    assert holm({}) == {}
    assert np.isnan(holm({"irm": np.nan})["irm"])


def test_a_paired_difference_holds_its_interval_and_both_tests():
    a, b = np.array([64.0, 63.1, 64.9]), np.array([61.2, 62.0, 61.5])
    result = paired_difference(a, b, level=0.8)
    interval = t_interval(a - b, 0.8)
    assert (result.mean, result.low, result.high, result.n) == pytest.approx(
        (interval.mean, interval.low, interval.high, 3)
    )
    assert result.p == paired_t(a, b)
    assert result.sign_flip == sign_flip(a - b)


@pytest.mark.parametrize(("t", "above"), [(1.885, False), (1.887, True)])
def test_the_80_percent_interval_is_above_zero_where_one_sided_p_is_below_a_tenth(t, above):
    result = paired_difference(t / np.sqrt(3) + SPREAD, np.zeros(3), level=0.8)
    assert (result.low > 0) == (result.p < 0.1) == above


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (1, 0), (7, 7), (3, 11), (40, 12)])
def test_mcnemar_equals_the_binomial_test_of_discordant_rows(only_a, only_b):
    correct_a = np.repeat([True, False, True, False], [only_a, only_b, 20, 5])
    correct_b = np.repeat([False, True, True, False], [only_a, only_b, 20, 5])
    result = mcnemar(correct_a, correct_b)
    m = only_a + only_b
    expected = stats.binomtest(only_a, m, 0.5).pvalue if m else 1.0
    assert (result.only_a, result.only_b, result.n) == (only_a, only_b, m + 25)
    assert result.p == pytest.approx(expected)
    d = correct_a.astype(float) - correct_b
    difference = result.difference
    assert difference.mean == pytest.approx(correct_a.mean() - correct_b.mean())
    assert difference.half_width == pytest.approx(1.645 * d.std() / np.sqrt(len(d)))


def trials(means, noise=0.2):
    """Three trials about each mean: a shift shared by all heads, and a little of their own."""
    rng = np.random.default_rng(0)
    shared = rng.normal(0, 2, size=3)
    return {head: mean + shared + noise * rng.normal(size=3) for head, mean in means.items()}


def test_a_head_above_every_other_is_bold_and_those_below_erm_have_no_mark():
    scores = trials({"erm": 84.3, "irm": 83.6, "groupdro": 83.6, "dare": 85.6})
    assert mark_best(scores, "erm") == {"erm": "", "irm": "", "groupdro": "", "dare": "bold"}


def test_heads_above_erm_that_no_test_tells_apart_are_underlined_and_none_is_bold():
    scores = trials({"erm": 74.9, "irm": 76.4, "groupdro": 76.8, "dare": 76.7}, noise=0.4)
    marks = mark_best(scores, "erm")
    assert marks == {"erm": "", "irm": "underline", "groupdro": "underline", "dare": "underline"}


def test_the_baseline_may_be_bold():
    assert mark_best(trials({"erm": 80.0, "dare": 75.0}), "erm") == {"erm": "bold", "dare": ""}


@pytest.mark.parametrize(("t", "mark"), [(1.885, ""), (1.887, "bold")])
def test_bold_asks_for_more_than_the_highest_mean(t, mark):
    scores = {"erm": np.zeros(3), "dare": t / np.sqrt(3) + SPREAD}
    assert mark_best(scores, "erm")["dare"] == mark


def test_heads_with_equal_scores_share_no_bold():
    above = 5 + SPREAD[::-1]
    scores = {"erm": SPREAD, "dare": above, "twin": above}
    assert mark_best(scores, "erm") == {"erm": "", "dare": "underline", "twin": "underline"}


@pytest.mark.parametrize(
    "scores", [{"erm": [61.0], "dare": [99.0]}, {"erm": [61.0, 62.0]}], ids=["trial", "head"]
)
def test_one_trial_or_one_head_has_no_marks(scores):
    assert set(mark_best(scores, "erm").values()) == {""}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: normal_interval([1.0, np.nan]), "values is nan in trial 1; rerun or drop"),
        (lambda: t_interval([]), r"values has shape \(0,\); pass one value for each trial"),
        (lambda: t_interval([1.0, 2.0], level=90), r"level is 90; it must be in \[0, 1\]"),
        (lambda: paired_t([1.0, 2.0], [1.0]), "a has 2 values but b has 1; pair them"),
        (lambda: sign_flip([1.0], n_draws=0), "n_draws is 0; it must be a whole number"),
        (lambda: holm({"dare": 1.2}), r"the p-value of 'dare' is 1.2; it must be in \[0, 1\]"),
        (lambda: mcnemar([True] * 2, [True]), "correct_a has 2 rows but correct_b has 1; score"),
        (lambda: mcnemar([2, 1], [1, 1]), r"correct_a has shape \(2,\) and dtype int64; pass"),
        (lambda: mark_best({"dare": [1.0]}, "erm"), r"no scores; use one of \['dare'\]"),
        (lambda: mark_best({"erm": [1.0], "dare": [np.inf]}, "erm"), r"scores\['dare'\] is inf"),
        (lambda: mark_best({"erm": [1.0], "dare": [1.0, 2.0]}, "erm"), "'erm': 1, 'dare': 2"),
    ],
)
def test_errors_say_what_was_given_and_what_to_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()
