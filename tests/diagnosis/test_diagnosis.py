"""Diagnosis: what is said of a new domain without its labels, and when nothing is said."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import balanced_accuracy_score

from skdare import DAREClassifier, DAREClassifierCV, DARERegressor
from skdare.datasets import load_digit_domains, make_latent_domains
from skdare.diagnosis import Rehearsal, effective_rank, eigengap
from skdare.diagnosis._adjustment_finding import estimated_error
from skdare.diagnosis._forecast import Forecast, Outlook, foresee, foresee_unseen
from skdare.diagnosis._label_finding import label_finding
from skdare.diagnosis._recommendation import ACTIONS, recommend
from skdare.diagnosis._rehearsal import Rehearsed
from skdare.diagnosis._remarks import _to_be_sure
from skdare.diagnosis._score_scale import AccuracyScale, R2Scale
from skdare.theory import LatentModel
from skdare.whitening.adjustment import adjustment_error
from skdare.whitening.cache import DomainCache

HEADS = {
    "classification": DAREClassifier,
    "regression": partial(DARERegressor, mean_penalty=1.0),
}
NAMES = ("adjustment", "mean shift", "more domains", "assumptions")


def latent(task="classification", seed=0, rows=400):
    return make_latent_domains(6, rows, 6, task=task, shift=0.5, random_state=seed)


def split(data, new):
    train = data.domains != new
    return (data.X[train], data.y[train], data.domains[train]), data.X[~train]


def fitted(task="classification", seed=0, rehearse=False, rows=400, **options):
    (X, y, domains), new = split(latent(task, seed, rows), 5)
    head = HEADS[task](**options).fit(X, y, domains=domains)
    return (head.rehearse(X, y, domains=domains) if rehearse else head), new


@pytest.fixture(scope="module")
def rehearsed():
    return fitted(rehearse=True)


# -- The adjustment -------------------------------------------------------------------------------


def test_domains_drawn_like_the_training_ones_are_not_outside_anything_seen():
    verdicts = []
    for seed in range(10):
        head, new = fitted(seed=seed)
        verdicts.append(head.diagnose(new)["adjustment"].numbers["verdict"])
    # One of six exchangeable domains has the largest error.
    assert verdicts.count("typical") >= 6
    assert verdicts.count("outside anything seen") <= 2


@pytest.mark.parametrize("n", [20, 60])
@pytest.mark.parametrize(
    ("d", "shrinkage"), [(6, 0.9), (40, 0.9), (40, 0.1), (80, 0.1), (80, "ledoit-wolf")]
)
def test_few_rows_of_a_training_domain_raise_no_alarm(d, shrinkage, n):
    model = LatentModel.draw(d, 4, mean_rank=2, task="classification", random_state=0)
    data = model.sample(300, random_state=0)
    head = DAREClassifier(shrinkage=shrinkage, l2=1.0)
    head.fit(data.X, data.y, domains=data.domains)
    head.rehearse(data.X, data.y, domains=data.domains)
    rng, levels = np.random.default_rng(0), []
    for domain in range(4):
        rows = np.flatnonzero(data.domains == domain)
        found = head.diagnose(data.X[rng.choice(rows, n, replace=False)])
        levels += [found["adjustment"].level, found["mean shift"].level]
    assert levels.count("alarm") == 0
    assert levels.count("fine") >= 6


def test_without_a_rehearsal_fewer_rows_than_any_training_domain_has_need_one():
    head, new = fitted()
    finding = head.diagnose(new[:100])["adjustment"]
    assert finding.answer.startswith("cannot say, needs at least 400 rows")
    assert finding.numbers == {}


def test_a_domain_stretched_in_one_direction_is_outside_anything_seen():
    head, new = fitted()
    turned = new @ np.diag([30.0, 1, 1, 1, 1, 0.02])
    finding = head.diagnose(turned)["adjustment"]
    assert finding.level == "alarm"
    assert finding.numbers["verdict"] == "outside anything seen"


def test_errors_are_compared_at_one_number_of_rows():
    head, new = fitted(rehearse=True, shrinkage=0.1)
    few = head.diagnose(new[:25])["adjustment"].numbers
    many = head.diagnose(new)["adjustment"].numbers
    assert few["error"] > 1.5 * many["error"]
    assert min(few["training_errors"].values()) > 1.5 * min(many["training_errors"].values())
    one = head.rehearsal_.domains[2]
    own = DomainCache(latent().X, np.flatnonzero(latent().domains == 2), np.ones(400))
    rest = [head.adjustments_[o].dense() for o in (0, 1, 3, 4)]
    W = own.adjustment(head._domain_fit.whitening).dense()
    error = np.sum((np.mean(rest, axis=0) - W) ** 2) / np.sum(W**2)
    assert one.errors[400] == pytest.approx(error)


def test_the_interval_of_an_error_covers_that_of_another_sample():
    """Of the same size: two samples differ by √2 standard errors."""
    head, _ = fitted()
    rng, inside = np.random.default_rng(0), []
    A = np.diag([3.0, 2, 1, 1, 0.5, 0.5])
    for _ in range(60):
        X, Z = rng.normal(size=(2, 200, 6)) @ A
        own = [
            lambda rows, X=X: DomainCache(X, rows, np.ones(len(rows))).adjustment(
                head._domain_fit.whitening
            )
            for X in (X, Z)
        ]
        found = estimated_error(own[0], head.adjustment_, 200)
        other = adjustment_error(head.adjustment_, own[1](np.arange(200)))
        inside.append(found.low <= other <= found.high)
    assert 0.65 <= np.mean(inside) <= 0.98


def test_numbers_of_training_domains_are_those_of_the_others_guess():
    head, new = fitted()
    numbers = head.diagnose(new)["adjustment"].numbers
    W = {label: head.adjustments_[label].dense() for label in range(5)}
    others = np.mean([W[label] for label in range(1, 5)], axis=0)
    error = np.sum((others - W[0]) ** 2) / np.sum(W[0] ** 2)
    assert numbers["training_errors"]["0"] == pytest.approx(error)
    delta = np.linalg.inv(W[0]) @ others - np.eye(6)
    assert numbers["training_norms"]["0"] == pytest.approx(np.linalg.norm(delta, 2))


def test_the_norm_of_a_large_matrix_is_its_largest_singular_value():
    from skdare.diagnosis._geometry import spectral_norm

    D = np.random.default_rng(0).normal(size=(260, 260))
    assert spectral_norm(D) == pytest.approx(np.linalg.norm(D, 2), rel=1e-3)


# -- The means ------------------------------------------------------------------------------------


def adjusted_means(head) -> np.ndarray:
    pairs = head.adjustments_.items()
    return np.stack([W.dense() @ head.moments_[label].mean for label, W in pairs], axis=1)


def moved(head, direction, n=5000):
    """Rows whose adjusted mean is the training average moved along a canonical direction."""
    rows = np.random.default_rng(0).normal(size=(n, 6))
    target = adjusted_means(head).mean(axis=1) + direction
    return rows - rows.mean(axis=0) + np.linalg.solve(head.adjustment_.dense(), target)


@pytest.mark.parametrize("scale", [0.0, 0.5])
@pytest.mark.parametrize("columns", [(5, 9), (0, 9), (5, 0)])
def test_thin_adjustments_differ_as_their_matrices_do(columns, scale):
    from skdare.diagnosis._geometry import adjustment_difference, spectral_norm
    from skdare.whitening.adjustment import Adjustment, adjustment_error

    rng, d = np.random.default_rng(0), 60

    def thin(r, scale):
        if not r:
            return Adjustment(d, scale or 1.0)
        U, Q = rng.normal(size=(d, r)), np.linalg.qr(rng.normal(size=(r, r - 1)))[0]
        return Adjustment(d, scale, None, U, rng.uniform(0.1, 1.0, size=r - 1), Q)

    own, guess = thin(columns[0], scale), thin(columns[1], 0.7)
    dense = [Adjustment(d, 0.0, np.asarray(a.dense())) for a in (own, guess)]
    D, V = adjustment_difference(own, guess), rng.normal(size=(d, 3))
    full = adjustment_difference(*dense)
    assert np.allclose(D @ V, full @ V)
    assert np.allclose(D.T @ V, full.T @ V)
    assert spectral_norm(D) == pytest.approx(np.linalg.norm(full, 2), rel=1e-3)
    assert adjustment_error(guess, own) == pytest.approx(adjustment_error(*dense[::-1]))


def test_a_shift_where_training_means_varied_is_covered_and_another_is_new():
    head, _ = fitted()
    M = adjusted_means(head)
    Q, values, _ = np.linalg.svd(M - M.mean(axis=1, keepdims=True))
    inside = head.diagnose(moved(head, 3.0 * Q[:, 0]))["mean shift"].numbers
    outside = head.diagnose(moved(head, 3.0 * Q[:, 5]))["mean shift"].numbers
    assert values[4] < 1e-12  # five means have four differences
    assert inside["covered_share"] > 0.99
    assert outside["covered_share"] < 0.01
    assert outside["new_length"] == pytest.approx(3.0, rel=0.02)
    V = head.coef_.T
    spread = np.sqrt((V * (np.cov(moved(head, 0 * Q[:, 0]).T, bias=True) @ V)).sum())
    shift = np.abs(3.0 * Q[:, 5] @ head.canonical_coef_.T)[0]
    assert outside["new_moves"] == pytest.approx(shift / spread, rel=0.02)


def test_features_measured_from_the_training_mean_are_not_covered_by_construction():
    """Their domain means add up to zero, so that each lies in the span of the others."""
    data = make_latent_domains(6, 400, 6, shift=0.5, mean_rank=6, random_state=0)
    (X, y, domains), new = split(data, 5)
    centre = X.mean(axis=0)
    head = DAREClassifier(centered=True).fit(X - centre, y, domains=domains)
    found = head.diagnose(new - centre)["more domains"].numbers
    assert found["covered_by_others"] < 0.97


def test_moves_by_sampling_noise_are_taken_off():
    head, _ = fitted()
    rng = np.random.default_rng(0)
    W = np.linalg.inv(head.adjustment_.dense())
    centre = adjusted_means(head).mean(axis=1)
    moves = []
    for _ in range(40):
        X = (rng.normal(size=(40, 6)) + centre) @ W
        moves.append(head.diagnose(X)["mean shift"].numbers)
    assert np.mean([one["moves_at_least"] for one in moves]) < 0.1
    assert np.median([one["new_moves"] for one in moves]) < 0.15


def test_effective_rank_and_eigengap_are_the_papers():
    S = np.diag([4.0, 2.0, 1.0, 0.0])
    assert effective_rank(S) == pytest.approx(7 / 4)
    assert eigengap(S) == pytest.approx(1.0)
    flat = np.eye(5)
    assert effective_rank(flat) == pytest.approx(5.0)
    assert eigengap(flat) == pytest.approx(0.0)


# -- The assumptions ------------------------------------------------------------------------------


def test_the_assumptions_constants_are_those_written_in_the_paper():
    head, new = fitted(mean_penalty="exact")
    numbers = head.diagnose(new)["assumptions"].numbers
    whitening, W = head._domain_fit.whitening, head.adjustment_.dense()
    own = DomainCache(new, slice(0, len(new)), np.ones(len(new))).adjustment(whitening).dense()
    D = np.linalg.inv(own) @ W - np.eye(6)
    M = np.stack(
        [A.dense() @ head.moments_[label].mean for label, A in head.adjustments_.items()], axis=1
    )
    P = np.eye(6) - M @ np.linalg.pinv(M)
    mine, truth = head.canonical_coef_.T, head._domain_fit.adaptation.B
    B = np.linalg.norm((np.eye(6) - P) @ D @ P @ mine) / np.linalg.norm(P @ truth)
    assert numbers["B"] == pytest.approx(B)
    ratio = np.linalg.norm(D @ P @ truth) / np.linalg.norm(P @ truth)
    assert numbers["assumption_3"] == pytest.approx(ratio)


# -- Labels ---------------------------------------------------------------------------------------


def test_class_shares_as_in_training_show_no_sign_of_a_change():
    rng = np.random.default_rng(0)
    shares = np.array([0.5, 0.3, 0.2])
    rejected = [
        label_finding(rng.multinomial(200, shares), shares, 1e9, 0.05, "abc").numbers["p"] < 0.05
        for _ in range(400)
    ]
    assert 0.02 < np.mean(rejected) < 0.09


def test_shares_in_training_count_as_estimates():
    rng = np.random.default_rng(0)
    shares, rejected = np.array([0.5, 0.3, 0.2]), []
    for _ in range(400):
        trained = rng.multinomial(500, shares) / 500
        new = rng.multinomial(2000, shares)
        rejected.append(label_finding(new, trained, 500, 0.05, "abc").numbers["p"] < 0.05)
    assert 0.02 < np.mean(rejected) < 0.09


def test_other_class_shares_are_seen_and_named():
    shares = np.array([0.5, 0.3, 0.2])
    finding = label_finding(np.array([20, 20, 160]), shares, 1e4, 0.05, "abc")
    assert finding.level == "look"
    assert "class c has 80\u00a0%" in finding.answer


def test_a_change_no_larger_than_between_training_domains_is_not_alarming():
    finding = label_finding(np.array([600, 250, 150]), np.array([0.5, 0.3, 0.2]), 1e4, 0.2, "abc")
    assert finding.numbers["p"] < 1e-6
    assert finding.level == "fine"


def test_too_few_rows_of_a_rare_class_need_more():
    finding = label_finding(np.array([25, 1]), np.array([0.96, 0.04]), 1e4, 0.1, "ab")
    assert finding.answer == "cannot say, needs at least 125 rows"
    assert finding.numbers == {}


# -- The rehearsal --------------------------------------------------------------------------------


def test_a_rehearsal_holds_out_every_domain_and_changes_no_prediction(rehearsed):
    head, _ = rehearsed
    (X, y, domains), _ = split(latent(), 5)
    before = DAREClassifier().fit(X, y, domains=domains)
    np.testing.assert_array_equal(head.coef_, before.coef_)
    assert [one.domain for one in head.rehearsal_.domains] == list("01234")
    for one in head.rehearsal_.domains:
        assert set(one.adapted) == {25, 100, 400}
        assert set(one.retrained) == {10, 40, 100}
        assert 0.4 < one.as_is <= 1.0


def test_what_is_rehearsed_is_what_holding_the_domain_out_gives(rehearsed):
    head, _ = rehearsed
    (X, y, domains), _ = split(latent(), 5)
    train = domains != 3
    other = DAREClassifier().fit(X[train], y[train], domains=domains[train])
    one = head.rehearsal_.domains[3]
    held_out = domains == 3
    assert one.as_is == pytest.approx(other.score(X[held_out], y[held_out]))
    adapted = other.adapt(X[held_out])
    assert one.adapted[400] == pytest.approx(adapted.score(X[held_out], y[held_out]))
    changed = np.mean(adapted.predict(X[held_out]) != other.predict(X[held_out]))
    assert one.disagreement == pytest.approx(changed)
    right = other.predict(X[held_out]) == y[held_out]
    right &= adapted.predict(X[held_out]) == y[held_out]
    assert one.both_right == pytest.approx(np.mean(right))
    labelled = np.random.default_rng(0).permutation(np.flatnonzero(held_out))[:40]
    rest = held_out & ~np.isin(np.arange(len(y)), labelled)
    labels = np.where(rest, -1, y)[held_out]
    with_labels = other.adapt(X[held_out], labels)
    assert one.retrained[40] == pytest.approx(with_labels.score(X[rest], y[rest]))


def made(as_is=0.8, adapted=0.85, retrained=0.9, disagreement=0.1, **more) -> Rehearsed:
    """A domain of 400 rows; where the heads disagree, one of them is right."""
    fields = {
        "both_right": 0.5 * (as_is + adapted - (disagreement or 0.0)),
        "adapted": {100: adapted - 0.02, 400: adapted},
        "retrained": {50: retrained - 0.05, 200: retrained, 500: retrained + 0.005},
        "errors": {100: 0.1, 400: 0.05},
        "moved": 0.2,
    }
    return Rehearsed("a", 400, as_is, disagreement, **{**fields, **more})


def rehearsal_of(*domains) -> Rehearsal:
    return Rehearsal(domains, AccuracyScale(0.3))


def test_a_domain_like_the_rehearsed_ones_is_expected_to_score_as_they_did():
    expected = foresee(rehearsal_of(*[made()] * 50), 0.1, 400)
    assert expected.use.expected == pytest.approx(0.8, abs=0.01)
    assert expected.adapt.expected == pytest.approx(0.85, abs=0.01)


def test_the_more_the_adapted_head_disagrees_the_worse_the_head_as_it_is():
    """The adapted head was right where they disagreed."""
    domains = [made(as_is=0.85, adapted=0.95, both_right=0.85)] * 5
    scores = [foresee(rehearsal_of(*domains), d, 400) for d in (0.05, 0.2, 0.5)]
    assert scores[0].use.expected > scores[1].use.expected + 0.1
    assert scores[1].use.expected > scores[2].use.expected + 0.2
    assert scores[2].adapt.expected > 0.8


def test_where_adapting_is_declined_the_mean_of_the_rehearsed_domains_is_expected():
    rehearsal = rehearsal_of(made(as_is=0.7), made(as_is=0.9))
    expected = foresee(rehearsal, None, 400)
    assert expected.use.expected == pytest.approx(0.8)
    assert expected.adapt is None


def test_fewer_rows_to_adapt_to_are_worth_less():
    rehearsal = rehearsal_of(*[made()] * 5)
    lost = foresee(rehearsal, 0.1, 400).adapt.expected - foresee(rehearsal, 0.1, 100).adapt.expected
    assert lost == pytest.approx(0.02)


def test_numbers_are_expected_as_in_the_middle_of_the_rehearsed_domains():
    domains = [made(score, score, both_right=None) for score in (-1.0, 0.5, 0.6)]
    rehearsal = Rehearsal(domains, R2Scale(1.0))
    assert foresee(rehearsal, None, 400).use.expected == pytest.approx(0.5)


def test_adapting_that_lost_says_nothing_bad_of_the_head_as_it_is():
    domains = [made(0.8, 0.2, both_right=None)] * 4
    expected = foresee(Rehearsal(domains, R2Scale(1.0)), 0.3, 400)
    assert expected.use.expected == pytest.approx(0.8)
    assert expected.adapt.expected == pytest.approx(0.2)


def test_before_any_row_is_seen_the_means_of_the_rehearsed_domains_are_expected():
    expected = foresee_unseen(rehearsal_of(made(0.7, 0.8), made(0.9, 0.9)))
    assert expected.use.expected == pytest.approx(0.8)
    assert expected.adapt.expected == pytest.approx(0.85)
    never = made(disagreement=None, adapted=0.8)
    assert foresee_unseen(rehearsal_of(never, never)).adapt is None


def test_domains_that_were_hardly_unseen_make_wide_ranges_and_an_upper_bound():
    wide, narrow = (
        foresee(rehearsal_of(*[made(score, score, disagreement=0.01)] * 4), 0.01, 400).use
        for score in (0.97, 0.9)
    )
    assert wide.expected - wide.low > 1.8 * (narrow.expected - narrow.low)
    rehearsal = rehearsal_of(*[made(0.97, 0.97)] * 4)
    reason = recommend(rehearsal, Outlook(sure(0.97)), 0.05, None).reason
    assert "at most 97" in reason


@pytest.mark.parametrize(("here", "before"), [(0.4, 0.15), (0.24, 0.11), (0.02, 0.2)])
def test_the_labels_to_be_sure_find_a_change_four_times_in_five(here, before):
    n = _to_be_sure(here, before)
    rng = np.random.default_rng(0)
    sign = np.sign(here - before)
    limit = n * before + sign * 1.645 * np.sqrt(n * before * (1 - before))
    found = np.mean(sign * (rng.binomial(n, here, 20_000) - limit) > 0)
    assert found > 0.75
    assert n == 20 or found < 0.95


def test_no_accuracy_is_below_zero_or_above_one():
    low = foresee(rehearsal_of(*[made(as_is=0.02, disagreement=None)] * 3), None, 100).use
    assert low.low == 0.0
    high = foresee(rehearsal_of(*[made(as_is=0.98, disagreement=None)] * 3), None, 100).use
    assert high.high == 1.0


def test_the_range_holds_four_in_five_domains_like_the_rehearsed_ones():
    """Whatever their number; the usual size of a miss is that of these."""
    rng = np.random.default_rng(0)
    for count, least, most in ((4, 0.74, 0.9), (30, 0.74, 0.86)):
        held = []
        for _ in range(300):
            scores = 0.7 + AccuracyScale(0.3).usual_miss * rng.standard_normal(count + 1)
            domains = [made(as_is=score, disagreement=None) for score in scores[1:]]
            forecast = foresee(rehearsal_of(*domains), None, 100).use
            held.append(forecast.low <= scores[0] <= forecast.high)
        assert least < np.mean(held) < most


def test_only_numbers_of_labels_that_half_of_the_domains_gave_count():
    few = made(retrained=0.7)
    some = replace(few, retrained={50: 0.5})
    none = replace(few, retrained={})
    assert set(rehearsal_of(few, some).retrained()) == {50, 200, 500}
    assert rehearsal_of(some, none, none).retrained() == {}


def test_more_labels_do_not_seem_better_because_hard_domains_are_too_small_for_them():
    large = replace(made(), retrained={50: 0.8, 200: 0.8})
    small = replace(made(), retrained={50: 0.3})
    smallest = replace(made(adapted=0.4), retrained={})
    curve = rehearsal_of(large, large, small, smallest).retrained()
    assert curve == {50: [0.8, 0.8, 0.3, 0.4], 200: [0.8, 0.8, 0.3, 0.4]}


def test_where_a_rehearsal_is_too_good_as_many_labels_as_possible_are_asked_for():
    too_good = rehearsal_of(made(as_is=0.97, adapted=0.97, retrained=0.99))
    assert too_good.saturated
    assert foresee(too_good, None, 1000).labelled_rows == 500


def test_gains_between_numbers_of_rows_are_read_off_a_line_and_beyond_are_the_last():
    one = made()
    assert one.gain(100) == pytest.approx(0.03)
    assert one.gain(200) == pytest.approx(0.04)
    assert one.gain(10) == pytest.approx(0.03)
    assert one.gain(10_000) == pytest.approx(0.05)


def test_more_rows_than_there_are_cannot_be_labelled():
    rehearsal = rehearsal_of(made())
    assert foresee(rehearsal, None, 120).labelled_rows == 50
    assert foresee(rehearsal, None, 49).labelled_rows is None


def sure(score):
    return Forecast(score, score - 0.05, min(score + 0.05, 1.0))


@pytest.mark.parametrize(
    ("use", "adapt", "label", "action"),
    [
        (0.9, 0.88, 0.91, "use"),
        (0.9, 0.908, 0.91, "use"),
        (0.9, 0.88, 0.955, "use"),
        (0.85, 0.9, 0.92, "adapt"),
        (0.6, 0.63, 0.91, "label"),
        (0.4, 0.43, 0.5, "do not use"),
    ],
)
def test_the_action_with_the_highest_worth_is_recommended(use, adapt, label, action):
    outlook = Outlook(sure(use), sure(adapt), sure(label), 200)
    chosen = recommend(rehearsal_of(made(as_is=0.9, adapted=0.9)), outlook, 0.05, None)
    assert chosen.action == action
    assert f"{100 * use:.0f}\u00a0%" in chosen.reason
    assert chosen.worth["do not use"] == pytest.approx(0.6)


def test_labels_for_nothing_are_collected_and_dear_ones_are_not():
    rehearsal = rehearsal_of(made(as_is=0.9, adapted=0.9))
    outlook = Outlook(sure(0.86), None, sure(0.9), 200)
    assert recommend(rehearsal, outlook, 0.0, None).action == "label"
    assert recommend(rehearsal, outlook, 0.5, None).action == "use"
    assert recommend(rehearsal, outlook, 0.5, 0.99).action == "do not use"


def test_a_forecast_that_may_be_off_by_more_than_the_score_is_no_reason_to_use_a_head():
    rehearsal = Rehearsal([made(0.2, 0.2, both_right=None)], R2Scale(1.0))
    outlook = Outlook(Forecast(0.3, -1.0, 0.9))
    chosen = recommend(rehearsal, outlook, 0.05, 0.1)
    assert chosen.action == "do not use"
    assert "too unsure to rely on" in chosen.reason


# -- The whole ------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", HEADS)
def test_every_question_is_answered_and_one_action_recommended(task):
    head, new = fitted(task, rehearse=True)
    found = head.diagnose(new)
    asked = [finding.name for finding in found.findings]
    assert set(NAMES) <= set(asked)
    assert ("label shift" in asked) == (task == "classification")
    assert all(finding.level != "unknown" for finding in found.findings)
    assert found.recommendation.action in ACTIONS
    json.dumps(found.to_dict(), allow_nan=False)


def test_domains_that_are_hard_are_expected_to_be():
    data, expected, true = load_digit_domains(5), {}, {}
    for new in np.unique(data.domains):
        rows, X = split(data, new)
        head = DAREClassifierCV(strategies=("erm", "standardize"), l2=(0.01,)).fit(
            *rows[:2], domains=rows[2]
        )
        head.rehearse(*rows[:2], domains=rows[2])
        expected[new] = head.diagnose(X).forecasts["use"].expected
        true[new] = head.score(X, data.y[data.domains == new])
    hard, easy = ("faint", "tilted"), ("bold", "plain")
    assert max(expected[d] for d in hard) < min(expected[d] for d in easy) - 0.05


@pytest.mark.parametrize("n", [1, 2, 19])
def test_too_few_rows_are_met_by_words_without_numbers(rehearsed, n):
    head, new = rehearsed
    found = head.diagnose(new[:n])
    assert found.recommendation.reason == (
        f"cannot say: at least 20 rows are needed, and {n} {'was' if n == 1 else 'were'} given"
    )
    assert not found.findings
    assert found.recommendation.action == "cannot say"
    assert found.recommendation.worth == {}


def test_without_a_rehearsal_no_accuracy_is_claimed():
    head, new = fitted()
    found = head.diagnose(new)
    assert found.forecasts == {}
    assert "rehearse" in found.recommendation.reason
    assert found.recommendation.action == "cannot say"


def test_a_new_fit_forgets_the_rehearsal(rehearsed):
    head = pickle.loads(pickle.dumps(rehearsed[0]))
    assert head.rehearsal_ is not None
    (X, y, domains), _ = split(latent(), 5)
    assert head.fit(X, y, domains=domains).rehearsal_ is None


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_rows_that_are_all_the_same_are_met_by_words(rehearsed, value):
    found = rehearsed[0].diagnose(np.full((50, 6), value))
    assert "20 different rows are needed, and there is 1" in str(found)
    assert found.recommendation.action == "cannot say"


def test_rows_given_many_times_count_once(rehearsed):
    head, new = rehearsed
    found = head.diagnose(np.repeat(new[:5], 40, axis=0))
    assert "20 different rows are needed, and there are 5" in found.recommendation.reason


def test_an_outlier_that_decides_everything_is_named(rehearsed):
    head, new = rehearsed
    outlier = new.copy()
    outlier[7, 2] = 1e9
    found = head.diagnose(outlier)
    assert found.recommendation.action == "do not use"
    assert "one or two rows lie far outside anything seen" in found.recommendation.reason
    assert any("one or two rows hold most of the variance" in text for text in found.remarks)


def test_features_in_other_units_are_not_used_whatever_the_confidence(rehearsed):
    head, new = rehearsed
    found = head.diagnose(1e6 * new)
    assert found["adjustment"].level == "alarm"
    assert found.recommendation.action == "do not use"
    assert not found.bounds
    assert "units or preparation" in found.recommendation.reason


@pytest.mark.parametrize(
    "options",
    [
        {"adjust": False},
        {"adaptation": None},
        {"adaptation": "centered"},
        {"centered": True, "mean_penalty": "exact"},
        {"shrinkage_target": "pooled"},
        {"shrinkage": "oas"},
        {"guess": {0: 1.0, 1: 2.0}},
        {"estimate_mean": True},
        {"shrinkage": 1.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("task", HEADS)
def test_heads_with_any_options_are_diagnosed(task, options):
    head, new = fitted(task, rehearse=True, rows=120, **options)
    found = head.diagnose(new)
    assert found.recommendation.action in ACTIONS
    json.dumps(found.to_dict(), allow_nan=False)


def test_heads_that_choose_their_own_options_are_diagnosed():
    (X, y, domains), new = split(latent(rows=100), 5)
    options = {"l2": (0.01,), "shrinkage": (0.5,), "strategies": ("averaged", "raw")}
    head = DAREClassifierCV(**options).fit(X, y, domains=domains).rehearse(X, y, domains=domains)
    assert head.diagnose(new).recommendation.action in ACTIONS


@pytest.mark.parametrize(
    "options", [{"class_weight": "balanced"}, {"scoring": "balanced_accuracy"}]
)
def test_whoever_balances_classes_is_told_of_balanced_accuracy(options):
    (X, y, domains), new = split(latent(), 5)
    rare = np.flatnonzero(y == 1)[::8]
    rows = np.sort(np.concatenate([np.flatnonzero(y == 0), rare]))
    head = DAREClassifierCV(strategies=("erm", "center"), **options)
    head.fit(X[rows], y[rows], domains=domains[rows])
    head.rehearse(X[rows], y[rows], domains=domains[rows])
    assert "balanced accuracy" in head.diagnose(new).recommendation.reason
    one = head.rehearsal_.domains[0]
    held_out = domains[rows] == 0
    without = head._rehearsal_copy()
    without.fit(X[rows][~held_out], y[rows][~held_out], domains=domains[rows][~held_out])
    expected = balanced_accuracy_score(y[rows][held_out], without.predict(X[rows][held_out]))
    assert one.as_is == pytest.approx(expected)
    again = pickle.loads(pickle.dumps(head))
    assert again.rehearsal_.task == head.rehearsal_.task


def test_a_head_chosen_by_another_score_says_which_one_is_foreseen():
    (X, y, domains), new = split(latent(), 5)
    head = DAREClassifierCV(strategies=("erm",), scoring="neg_log_loss")
    head.fit(X, y, domains=domains).rehearse(X, y, domains=domains)
    assert "chosen by neg_log_loss; scores here are accuracy" in head.diagnose(new).text(200)


def test_a_rehearsal_that_starts_from_the_fitted_head_ends_where_one_from_zero_does():
    (X, y, domains), _ = split(latent(), 5)
    head = DAREClassifierCV(strategies=("erm", "whiten"), tol=1e-9)
    head.fit(X, y, domains=domains)
    raw = np.atleast_2d(head.coef_).T, np.atleast_1d(head.intercept_)
    for warm in (head._rehearsal_copy(), head._retrainer(raw)):
        cold = copy.copy(warm)
        cold._settled = replace(warm._settled, start=None, adapting_start=None)
        train = domains != 0
        for one in (warm, cold):
            one.fit(X[train], y[train], domains=domains[train])
        np.testing.assert_allclose(warm.coef_, cold.coef_, rtol=1e-4, atol=1e-6)
        assert warm.n_iter_ < cold.n_iter_


def test_classes_are_counted_by_the_adapted_head_where_that_is_expected_to_be_right():
    """A shift of all rows is no change of the classes."""
    data = make_latent_domains(6, 400, 6, shift=0.1, random_state=0)
    X = data.X + 6.0 * np.array([1, -1, 1, -1, 1, -1])[data.domains][:, None] * data.X.std()
    (X, y, domains), new = split(replace(data, X=X), 5)
    head = DAREClassifierCV().fit(X, y, domains=domains).rehearse(X, y, domains=domains)
    diagnosis = head.diagnose(new)
    assert diagnosis.recommendation.action == "adapt"
    assert "classes look different" not in diagnosis.text()


@pytest.mark.parametrize("kind", ["sparse", "float32", "torch"])
def test_rows_of_any_kind_are_diagnosed_alike(rehearsed, kind):
    head, new = rehearsed
    want = head.diagnose(new)
    if kind == "torch":
        torch = pytest.importorskip("torch", reason="torch tensors are an option")
        given = torch.from_numpy(new)
    else:
        given = sparse.csr_matrix(new) if kind == "sparse" else new.astype(np.float32)
    found = head.diagnose(given)
    assert found.recommendation.action == want.recommendation.action
    for name in ("error", "norm"):
        got = found["adjustment"].numbers[name]
        assert got == pytest.approx(want["adjustment"].numbers[name], rel=1e-3)
    for name, forecast in want.forecasts.items():
        assert found.forecasts[name].expected == pytest.approx(forecast.expected, abs=2e-3)


def test_frames_are_diagnosed_without_a_word():
    frame = pytest.importorskip("pandas", reason="frames come from pandas").DataFrame
    (X, y, domains), new = split(latent(), 5)
    names = list("abcdef")
    head = DAREClassifier().fit(frame(X, columns=names), y, domains=domains)
    head.rehearse(frame(X, columns=names), y, domains=domains)
    head.diagnose(frame(new, columns=names))


def test_a_head_without_a_guess_says_so_and_still_recommends():
    (X, y, domains), new = split(latent("regression"), 5)
    head = DARERegressor().fit(X, y, domains=domains).rehearse(X, y, domains=domains)
    found = head.diagnose(new)
    assert found["adjustment"].answer == "this head uses no averaged adjustment"
    assert found["assumptions"].level == "unknown"
    assert np.isfinite(found.forecasts["use"].expected)
    assert found.recommendation.action in ACTIONS


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_units_of_a_target_do_not_matter(scale):
    (X, y, domains), new = split(latent("regression"), 5)
    found = []
    for targets in (y, scale * y):
        head = DARERegressor(mean_penalty=1.0).fit(X, targets, domains=domains)
        found.append(head.rehearse(X, targets, domains=domains).diagnose(new))
    for name, key in (("mean shift", "new_moves"), ("assumptions", "B")):
        got, want = (one[name].numbers[key] for one in found)
        assert got == pytest.approx(want, rel=1e-6), name
    got, want = (one.forecasts["use"].expected for one in found)
    assert got == pytest.approx(want, rel=1e-6)
    assert found[0].recommendation.action == found[1].recommendation.action


def test_labels_that_look_alike_are_told_apart():
    data = latent()
    labels = np.array([1, "1", 2, "2", 3, "x"], dtype=object)[data.domains]
    train = data.domains != 5
    head = DAREClassifier().fit(data.X[train], data.y[train], domains=labels[train])
    head.rehearse(data.X[train], data.y[train], domains=labels[train])
    found = head.diagnose(data.X[~train])
    assert len(found["adjustment"].numbers["training_errors"]) == 5
    assert len({one.domain for one in head.rehearsal_.domains}) == 5


@pytest.mark.parametrize("guess", ["mean", "covariance", {0: 1.0}, {0: 1.0, 1: 3.0}])
def test_training_domains_are_compared_with_the_guess_of_the_same_kind(guess):
    head, new = fitted(guess=guess)
    errors = head.diagnose(new)["adjustment"].numbers["training_errors"]
    (X, y, domains), _ = split(latent(), 5)
    if isinstance(guess, dict):
        kept = {k: v for k, v in guess.items() if k != 0} or "mean"
    else:
        kept = guess
    rows = domains != 0
    other = DAREClassifier(guess=kept).fit(X[rows], y[rows], domains=domains[rows])
    want = adjustment_error(other.adjustment_, head.adjustments_[0])
    assert errors["0"] == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("rows", [3, 4])
def test_domains_of_few_rows_are_rehearsed(rows):
    data = make_latent_domains(40, rows, 3, random_state=0)
    head = DAREClassifier().fit(data.X, data.y, domains=data.domains)
    assert len(head.rehearse(data.X, data.y, domains=data.domains).rehearsal_.domains) == 40


def test_a_feature_that_is_constant_in_a_domain_is_no_obstacle():
    data = latent()
    X = data.X.copy()
    X[data.domains == 2, 0] = 1.0
    head = DAREClassifier(shrinkage=0.0, centered=True, l2=0.1)
    head.fit(X, data.y, domains=data.domains)
    found = head.diagnose(X[data.domains == 1])
    assert found["adjustment"].numbers["norm"] < 100


def test_means_that_do_not_differ_are_no_directions():
    data = latent()
    X = data.X.copy()
    for domain in range(6):
        rows = data.domains == domain
        X[rows] = np.concatenate([X[rows][:200], -X[rows][:200]])
    head = DAREClassifier(centered=True).fit(X, data.y, domains=data.domains)
    found = head.diagnose(X[data.domains == 1])
    assert found["more domains"].answer == "cannot say, needs training domains whose means differ"
    json.dumps(found.to_dict(), allow_nan=False)


def test_weights_of_rows_count_in_a_rehearsal():
    (X, y, domains), _ = split(latent(), 5)
    weight = np.where(domains == 4, 0.0, 1.0)
    head = DAREClassifier().fit(X, y, domains=domains, sample_weight=weight)
    head.rehearse(X, y, domains=domains, sample_weight=weight)
    assert len(head.rehearsal_.domains) == 4
    heavy = np.where(np.arange(len(y)) % 2, 5.0, 0.2)
    plain, other = (
        DAREClassifier().fit(X, y, domains, w).rehearse(X, y, domains, w) for w in (None, heavy)
    )
    assert plain.rehearsal_.domains[0].as_is != other.rehearsal_.domains[0].as_is


def test_fits_of_a_rehearsal_that_do_not_converge_are_counted():
    (X, y, domains), _ = split(latent(), 5)
    with pytest.warns(ConvergenceWarning):
        head = DAREClassifier(max_iter=1).fit(X, y, domains=domains)
    with pytest.warns(ConvergenceWarning, match="fits of the rehearsal did not converge"):
        head.rehearse(X, y, domains=domains)


def test_names_are_escaped_in_html():
    data = latent()
    names = np.array(["<b>a", "<b>b"])[data.y]
    rows = data.domains != 5
    head = DAREClassifier().fit(data.X[rows], names[rows], domains=data.domains[rows])
    page = head.diagnose(data.X[~rows]).html()
    assert "&lt;b&gt;" in page
    assert "<b>a" not in page


def test_text_is_as_wide_as_asked(rehearsed):
    head, new = rehearsed
    assert max(map(len, head.diagnose(new).text(66).splitlines())) <= 66
    assert "expected (" in str(head.diagnose(new)).splitlines()[1]


# -- Bad input ------------------------------------------------------------------------------------


def test_a_head_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        DAREClassifier().diagnose(np.zeros((30, 2)))
    with pytest.raises(NotFittedError):
        DAREClassifier().rehearse(np.zeros((30, 2)), np.zeros(30))


def test_an_adapted_head_is_diagnosed_by_the_one_it_came_from(rehearsed):
    head, _ = rehearsed
    known = latent().X[latent().domains == 2]
    with pytest.raises(ValueError, match="diagnose the head that it came from"):
        head.adapt(known).diagnose(known)


def test_options_changed_since_the_fit_are_refused():
    (X, y, domains), _ = split(latent(), 5)
    head = DAREClassifier().fit(X, y, domains=domains).set_params(l2=3.0)
    with pytest.raises(ValueError, match="parameters were changed since fit"):
        head.rehearse(X, y, domains=domains)


def test_a_finding_that_is_not_there_is_named(rehearsed):
    head, new = rehearsed
    with pytest.raises(KeyError, match="there is no finding `lose`; there are `adjustment`"):
        head.diagnose(new)["lose"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, d: (X[:, :3], y, d), "3 features"),
        (lambda X, y, d: (X, y[:-1], d), "y has 1999 entries but X has 2000 rows"),
        (lambda X, y, d: (X[d < 4], y[d < 4], d[d < 4]), "fitted to `0`, `1`, `2`, `3`, `4`"),
        (lambda X, y, d: (X, y, None), "pass the training rows"),
        (lambda X, y, d: (X, y + 5, d), "has the class np.int64"),
        (lambda X, y, d: (X, np.where(y > 0, np.nan, 0.0), d), "NaN"),
    ],
)
def test_a_rehearsal_on_other_rows_is_refused(change, message):
    head, _ = fitted()
    (X, y, domains), _ = split(latent(), 5)
    X, y, domains = change(X, y, domains)
    with pytest.raises(ValueError, match=message):
        head.rehearse(X, y, domains=domains)
    assert head.rehearsal_ is None


@pytest.mark.filterwarnings("ignore:DAREClassifier was given no domains")
def test_one_domain_cannot_rehearse():
    data = latent()
    head = DAREClassifier().fit(data.X, data.y)
    with pytest.raises(ValueError, match="there is 1; it needs at least 2"):
        head.rehearse(data.X, data.y)
    assert head.diagnose(data.X)["adjustment"].level == "unknown"


@pytest.mark.parametrize(
    ("options", "message"),
    [({"label_cost": 2.0}, "label_cost is 2.0"), ({"acceptable": "much"}, "acceptable is 'much'")],
)
def test_prices_that_are_not_shares_are_refused(rehearsed, options, message):
    head, new = rehearsed
    with pytest.raises(ValueError, match=message):
        head.diagnose(new, **options)
