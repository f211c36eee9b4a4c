"""How a choice is made of scores on held-out domains, and what it says."""

from __future__ import annotations

import numpy as np
import pytest

from skdare.choosing.rule import Reason, choose
from skdare.choosing.strategies import STRATEGIES, Candidate, candidates_of


def candidates(*names):
    return [Candidate(name, 0.1, None) for name in names]


def chosen(names, scores, metric="accuracy", standard_errors=1.0, **options):
    """The names for domains without rows and for those with rows."""
    tried = candidates(*names)
    choice = choose(tried, np.array(scores), metric, standard_errors, **options)
    return tried[choice.predicting].name, tried[choice.adapting].name


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([[0.70, 0.80, 0.75], [0.72, 0.77, 0.77]], "erm"),  # within its own noise
        ([[0.70, 0.80, 0.75], [0.90, 0.99, 0.74]], "reweighted"),  # far better, if not everywhere
        ([[0.80, 0.80, 0.80], [0.70, 0.90, 0.70]], "erm"),  # worse on average
        ([[0.80, 0.80, 0.80], [0.80, 0.80, 0.80]], "erm"),  # the same
        ([[0.70, 0.70, 0.70], [0.71, 0.71, 0.71]], "reweighted"),  # small, and sure
        ([[0.5, 0.9, 0.9], [0.5, 0.9, np.nan]], "erm"),  # a domain counts if all have a score
        ([[0.8, 0.7, 0.9], [0.8 + 1e-9, 0.7 + 1e-9, 0.9 + 1e-9]], "erm"),  # rounding
        ([[0.8, 0.7, 0.9], [0.8, 0.7, 0.95]], "erm"),  # a gain on one domain is its own noise
    ],
)
def test_without_rows_a_gain_must_exceed_its_standard_error(scores, expected):
    assert chosen(("erm", "reweighted"), scores)[0] == expected


def test_the_standard_errors_can_be_asked_for():
    scores = [[0.70, 0.80, 0.75], [0.90, 0.99, 0.74]]
    for errors, expected in ((0.0, "reweighted"), (1.0, "reweighted"), (3.0, "erm")):
        assert chosen(("erm", "reweighted"), scores, standard_errors=errors)[0] == expected


def test_the_highest_mean_of_those_that_are_sure_is_taken():
    scores = [[0.5, 0.5, 0.5], [0.6, 0.6, 0.6], [0.7, 0.71, 0.7]]
    assert chosen(("erm", "reweighted", "averaged"), scores)[0] == "averaged"


def test_others_must_beat_the_simplest_strategy_at_its_best_ridge():
    tried = [Candidate("erm", 0.1, None), Candidate("erm", 1.0, None), *candidates("reweighted")]
    scores = np.array([[0.5, 0.5, 0.5], [0.8, 0.8, 0.8], [0.7, 0.7, 0.7]])
    assert choose(tried, scores, "accuracy", 1.0).predicting == 1


@pytest.mark.parametrize(("gain", "expected"), [(0.001, "center"), (0.0, "erm"), (-0.1, "erm")])
def test_with_rows_the_highest_mean_is_taken(gain, expected):
    assert chosen(("erm", "center"), [[0.6, 0.8], [0.6 + 5 * gain, 0.8 - 3 * gain]])[1] == expected


def regression(gains, scores=None, metric="r2"):
    plain = np.resize(np.log([0.3, 0.2, 0.25]), len(gains))
    errors = np.stack([plain, plain - gains])
    r2 = 1.0 - np.exp(errors) if scores is None else np.array(scores)
    return choose(candidates("erm", "center"), r2, metric, 1.0, errors)


@pytest.mark.parametrize(
    ("gains", "adapts"),
    [
        ([0.09, 0.07, 0.08], False),  # three domains that gain a little are not sure
        ([0.09, 0.07, 0.08] * 7, True),  # twenty-one are
        ([1.0, 0.9, 1.1], True),
        ([2.0, 0.1, -0.1], False),
        ([0.0, 0.0, 0.0], False),
        ([3.0], True),
    ],
)
def test_a_regression_adapts_if_its_gain_exceeds_two_standard_errors(gains, adapts):
    choice = regression(np.array(gains))
    assert choice.adapts == adapts
    # Two more domains of gain 0 ± 0.3 count.
    n = len(gains)
    error = np.sqrt((n * np.var(gains) + 2 * 0.3**2) / (n + 1) / n)
    assert adapts == (np.mean(gains) > 2 * error)
    if choice.declined is not None:
        assert choice.declined.standard_error == pytest.approx(error)
        assert choice.declined.gain == pytest.approx(np.mean(gains))


def test_a_regression_is_judged_by_logarithms_of_errors_unless_another_score_is_named():
    names = ("erm", "center", "standardize")
    errors = np.log([[0.2] * 12, [0.1] * 11 + [0.9], [0.13] * 12])
    r2 = 1.0 - np.exp(errors)
    for metric, best in (("r2", "center"), ("neg_mean_absolute_error", "standardize")):
        choice = choose(candidates(*names), r2, metric, 1.0, errors)
        assert names[choice.best_adapting] == best


# -- Cross-fitting --------------------------------------------------------------------------------


def test_what_a_choice_reports_is_not_the_winners_own_mean():
    rng = np.random.default_rng(0)
    tried = [Candidate("erm", 0.1, None)]
    tried += [Candidate("center", l2, None) for l2 in np.linspace(0.01, 1.0, 40)]
    own, reported = [], []
    for _ in range(200):  # adapting is worth nothing, and forty ways of it are tried
        choice = choose(tried, 0.8 + 0.05 * rng.normal(size=(41, 5)), "accuracy", 1.0)
        own.append(choice.means[choice.best_adapting])
        reported.append(choice.expected_adapting)
    assert np.mean(own) > 0.84
    assert np.mean(reported) == pytest.approx(0.8, abs=0.006)


def test_for_each_domain_the_others_choose():
    scores = np.array([[0.8, 0.7], [0.9, 0.6], [0.7, 0.9]])
    choice = choose(candidates("erm", "center", "whiten"), scores, "x", 1.0)
    assert choice.adapting_without == [2, 1]
    assert choice.expected_adapting == pytest.approx(0.65)
    assert choice.expected == pytest.approx(0.75)


def test_domains_without_a_score_are_not_averaged():
    scores = np.array([[0.8, 0.7, np.nan], [0.9, 0.8, 0.1]])
    choice = choose(candidates("erm", "center"), scores, "accuracy", 1.0)
    np.testing.assert_allclose(choice.means, [0.75, 0.85])
    assert choice.expected == pytest.approx(0.75)


# -- Reasons --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "scores", "reason", "text"),
    [
        (("erm", "center"), [[np.nan]] * 2, Reason.ONE_DOMAIN, "there was one training domain"),
        (("erm", "center"), [[np.nan] * 3] * 2, Reason.NOT_SCORED, "could be held out and scored"),
        (("erm", "reweighted"), [[0.8] * 3] * 2, Reason.NONE_TRIED, "no strategy that adapts was"),
        (
            ("erm", "center"),
            [[0.8] * 3, [0.7] * 3],
            Reason.NO_GAIN,
            "no strategy that adapts scored higher on 3 held-out training domains",
        ),
    ],
)
def test_a_choice_that_declines_says_why(names, scores, reason, text):
    choice = choose(candidates(*names), np.array(scores), "accuracy", 1.0)
    assert not choice.adapts
    assert choice.declined is not None
    assert choice.declined.reason is reason
    assert text in str(choice.declined)
    assert str(choice.declined)[1:] in str(choice)


def test_an_unsure_gain_is_said_in_percent_of_the_squared_error():
    choice = regression(np.array([0.09, 0.07, 0.08]))
    assert choice.declined.reason is Reason.UNSURE
    assert str(choice.declined) == (
        "adapting made squared errors 8 % smaller on 3 held-out training domains, and that can be "
        "chance (two standard errors: 25 %)"
    )


def test_a_loss_in_regression_is_no_gain():
    choice = regression(np.array([-0.1, 0.0, -0.2]))
    assert choice.declined.reason is Reason.NO_GAIN
    assert "the best, centring each domain" in str(choice)


def test_a_choice_that_adapts_declines_nothing():
    choice = choose(candidates("erm", "center"), np.array([[0.7, 0.7], [0.8, 0.8]]), "accuracy", 1)
    assert choice.adapts
    assert choice.declined is None
    assert str(choice) == (
        "Without rows of a new domain it predicts by plain ERM: 70.0 % on held-out domains. With "
        "rows it adapts by centring each domain: 80.0 %, 10.0 points more."
    )


def test_a_choice_that_is_luck_says_so():
    scores = np.array([[0.6, 0.6, 0.6], [0.9, 0.5, 0.5], [0.5, 0.9, 0.5], [0.5, 0.5, 0.81]])
    choice = choose(candidates("erm", "center", "standardize", "whiten"), scores, "accuracy", 1.0)
    assert choice.adapts
    assert choice.expected_adapting == pytest.approx(0.5)
    assert str(choice).endswith(
        "With rows it adapts by centring each domain: that did best on held-out domains, but what "
        "the other domains would have chosen scores 50.0 %, 10.0 points less."
    )


def test_where_every_strategy_adapts_there_is_nothing_to_decline():
    choice = choose(candidates("center", "whiten"), np.array([[0.7], [0.8]]), "accuracy", 1.0)
    assert choice.declined is None
    assert choice.adapting == choice.predicting == 1
    assert str(choice).startswith("Every strategy adapts")


# -- Candidates -----------------------------------------------------------------------------------


def test_the_best_ridge_is_that_of_the_highest_mean_and_the_strongest_of_several():
    tried = [Candidate("erm", l2, None) for l2 in (0.01, 0.1, 1.0)]
    tried += candidates("center")
    scores = np.array([[0.8, 0.6], [0.7, 0.7], [0.5, 0.5], [0.9, 0.9]])
    assert choose(tried, scores, "accuracy", 1.0).best_ridge("erm") == 0.1


def test_candidates_come_from_the_simplest_on_whatever_the_order():
    names = [tried.name for tried in candidates_of(("whiten", "erm", "center"), (0.5, 0.1), (1.0,))]
    assert names == ["erm", "center", "whiten", "whiten"]


def test_only_strategies_that_whiten_have_a_shrinkage_to_choose():
    tried = candidates_of(tuple(STRATEGIES), (0.3,), (1.0,))
    assert {one.name for one in tried if one.shrinkage is not None} == {"averaged", "whiten", "raw"}
