"""Diagnosis: what is said of a new domain without its labels, and when nothing is said."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from skdare import DAREClassifier, DAREClassifierCV, DARERegressor
from skdare.adjustment import adjustment_error
from skdare.datasets import load_digit_domains, make_latent_domains
from skdare.diagnosis import ACTIONS, Rehearsal, Rehearsed, effective_rank, eigengap
from skdare.diagnosis._adjustment_finding import estimated_error
from skdare.diagnosis._label_finding import label_finding
from skdare.diagnosis._performance_finding import Outlook, loss_finding, outlook
from skdare.diagnosis._recommendation import recommend
from skdare.diagnosis._task import Classes
from skdare.domain_statistics import DomainStatistics

HEADS = {"classification": DAREClassifier, "regression": DARERegressor}
NAMES = ("adjustment", "mean shift", "more domains", "assumptions", "loss", "adapting")


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
    assert verdicts.count("typical") >= 6
    assert verdicts.count("outside anything seen") <= 1


def test_few_rows_of_a_typical_domain_raise_no_alarm():
    head, _ = fitted()
    known = latent().X[latent().domains == 2]
    rng = np.random.default_rng(0)
    for n in (20, 25, 40):
        levels = [
            head.diagnose(known[rng.choice(len(known), n, replace=False)])["adjustment"].level
            for _ in range(10)
        ]
        assert levels.count("fine") >= 9, n


def test_a_domain_stretched_in_one_direction_is_outside_anything_seen():
    head, new = fitted()
    turned = new @ np.diag([30.0, 1, 1, 1, 1, 0.02])
    finding = head.diagnose(turned)["adjustment"]
    assert finding.level == "alarm"
    assert finding.numbers["verdict"] == "outside anything seen"


def test_an_error_estimated_from_few_rows_is_near_that_of_many():
    head, _ = fitted(shrinkage=0.1)
    rng = np.random.default_rng(0)
    whitening = head._whitening

    def own(X):
        return lambda rows: DomainStatistics(X, rows, np.ones(len(rows))).adjustment(whitening)

    X = rng.normal(size=(20_000, 6)) @ np.diag([3.0, 2, 1, 1, 0.5, 0.5])
    truth = adjustment_error(head.adjustment_, own(X)(np.arange(20_000)))
    parts = np.array_split(X[:2000], 50)  # 40 rows each
    plain = np.mean([adjustment_error(head.adjustment_, own(P)(np.arange(40))) for P in parts])
    found = np.mean([estimated_error(own(P), head.adjustment_, 40).value for P in parts])
    assert abs(found - truth) < 0.5 * abs(plain - truth)


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


def moved(head, direction):
    """Many rows whose adjusted mean is the training average moved along a canonical direction."""
    rng = np.random.default_rng(0)
    means = [W.dense() @ head.moments_[label].mean for label, W in head.adjustments_.items()]
    target = np.mean(means, axis=0) + direction
    rows = rng.normal(size=(5000, 6))
    return rows - rows.mean(axis=0) + np.linalg.solve(head.adjustment_.dense(), target)


def test_a_shift_within_the_span_of_training_means_is_covered_and_one_outside_is_new():
    head, _ = fitted()  # means of 5 domains vary in 2 directions; W_e turns them a little
    M = np.stack(
        [W.dense() @ head.moments_[label].mean for label, W in head.adjustments_.items()], axis=1
    )
    Q, values, _ = np.linalg.svd(M)
    inside = head.diagnose(moved(head, 3.0 * Q[:, 0]))["mean shift"].numbers
    outside = head.diagnose(moved(head, 3.0 * Q[:, 5]))["mean shift"].numbers
    assert len(values) == 5
    assert inside["covered_share"] > 0.99
    assert outside["covered_share"] < 0.01
    assert outside["new_length"] == pytest.approx(3.0, rel=0.02)


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
    whitening, W = head._whitening, head.adjustment_.dense()
    own = DomainStatistics(new, slice(0, len(new)), np.ones(len(new))).adjustment(whitening).dense()
    D = np.linalg.inv(own) @ W - np.eye(6)
    M = np.stack(
        [A.dense() @ head.moments_[label].mean for label, A in head.adjustments_.items()], axis=1
    )
    P = np.eye(6) - M @ np.linalg.pinv(M)
    mine, truth = head.canonical_coef_.T, head.adaptation_.fitted.B
    B = np.linalg.norm((np.eye(6) - P) @ D @ P @ mine) / np.linalg.norm(P @ truth)
    assert numbers["B"] == pytest.approx(B)
    ratio = np.linalg.norm(D @ P @ truth) / np.linalg.norm(P @ truth)
    assert numbers["assumption_3"] == pytest.approx(ratio)


# -- Labels ---------------------------------------------------------------------------------------


def test_class_shares_as_in_training_show_no_sign_of_a_change():
    rng = np.random.default_rng(0)
    shares = np.array([0.5, 0.3, 0.2])
    rejected = [
        label_finding(rng.multinomial(200, shares), shares, 0.05, "abc").numbers["p"] < 0.05
        for _ in range(400)
    ]
    assert 0.02 < np.mean(rejected) < 0.09


def test_other_class_shares_are_seen_and_named():
    shares = np.array([0.5, 0.3, 0.2])
    finding = label_finding(np.array([20, 20, 160]), shares, 0.05, "abc")
    assert finding.level == "look"
    assert "class c has 80\u00a0%" in finding.answer


def test_a_change_no_larger_than_between_training_domains_is_not_alarming():
    finding = label_finding(np.array([600, 250, 150]), np.array([0.5, 0.3, 0.2]), 0.2, "abc")
    assert finding.numbers["p"] < 1e-6
    assert finding.level == "fine"


def test_too_few_rows_of_a_rare_class_need_more():
    finding = label_finding(np.array([25, 1]), np.array([0.96, 0.04]), 0.1, "ab")
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
    rng = np.random.default_rng(0)
    aside = np.zeros(len(y), dtype=bool)
    for label in range(5):
        rows = np.flatnonzero(domains == label)
        aside[rows] = rng.random(len(rows)) < 0.2
    train = (domains != 3) & ~aside
    other = DAREClassifier().fit(X[train], y[train], domains=domains[train])
    one = head.rehearsal_.domains[3]
    held_out = domains == 3
    assert one.as_is == pytest.approx(other.score(X[held_out], y[held_out]))
    usual = (domains != 3) & aside
    assert one.usual == pytest.approx(other.score(X[usual], y[usual]))
    adapted = other.adapt(X[held_out])
    assert one.adapted[400] == pytest.approx(adapted.score(X[held_out], y[held_out]))
    changed = np.mean(adapted.predict(X[held_out]) != other.predict(X[held_out]))
    assert one.disagreement == pytest.approx(changed)


def made(as_is=0.8, usual=0.9, adapted=0.85, retrained=0.9, **more) -> Rehearsed:
    fields = {
        "confidence": 0.8,
        "usual_confidence": 0.9,
        "disagreement": 0.1,
        "adapted": {100: adapted, 400: adapted + 0.02},
        "retrained": {50: retrained - 0.05, 200: retrained, 500: retrained + 0.005},
    }
    return Rehearsed("a", 400, usual, as_is, **{**fields, **more})


def test_a_foreseen_loss_is_the_mean_of_confidence_lost_and_disagreement():
    assert made().foreseen == pytest.approx(0.1)
    assert made(disagreement=0.3).foreseen == pytest.approx(0.2)
    assert made(disagreement=None).foreseen == pytest.approx(0.1)
    assert made(confidence=None, usual_confidence=None).foreseen == pytest.approx(0.1)


def test_a_rehearsal_on_features_fine_tuned_on_its_domains_is_called_too_good():
    expected = Outlook(0.99, 0.01, 0.01, None)
    too_good = Rehearsal([made(as_is=0.97, usual=0.99)], Classes(0.3))
    assert "fine-tuned on them" in loss_finding(too_good, expected).answer
    assert loss_finding(too_good, expected).level == "look"
    honest = Rehearsal([made(as_is=0.9, usual=0.95)], Classes(0.3))
    assert "fine-tuned" not in loss_finding(honest, expected).answer


def test_gains_between_numbers_of_rows_are_read_off_a_line_and_beyond_are_the_last():
    one = made()
    assert one.gain(100) == pytest.approx(0.05)
    assert one.gain(200) == pytest.approx(0.06)
    assert one.gain(10) == pytest.approx(0.05)
    assert one.gain(10_000) == pytest.approx(0.07)


def test_what_a_rehearsal_missed_counts_the_more_the_more_domains_there_were():
    few = Rehearsal([made(as_is=0.6)] * 2, Classes(0.3))  # lost 0.3, and 0.1 was foreseen
    many = Rehearsal([made(as_is=0.6)] * 90, Classes(0.3))
    assert few.offset == pytest.approx(0.2 * 2 / 22)
    assert many.offset == pytest.approx(0.2 * 90 / 110)
    assert many.miss == pytest.approx(0.2 * 20 / 110)


def test_more_rows_than_there_are_cannot_be_labelled():
    rehearsal = Rehearsal([made()], Classes(0.3))
    expected = Outlook(0.9, 0.4, 0.1, None)
    assert recommend(rehearsal, expected, 120, 0.05, None).labelled_rows == 50
    assert recommend(rehearsal, expected, 49, 0.05, None).labelled_rows is None


def test_adapting_gains_no_more_than_it_changes_nor_more_than_there_is():
    rehearsal = Rehearsal([made(adapted=1.0)], Classes(0.3))
    assert outlook(rehearsal, 0.1, 0.03, 100).gain == pytest.approx(0.03)
    there_is = 1.0 - outlook(rehearsal, -0.05, 0.5, 100).as_is
    assert outlook(rehearsal, -0.05, 0.5, 100).gain == pytest.approx(there_is)


@pytest.mark.parametrize(
    ("expected", "retrained", "action"),
    [
        (Outlook(0.9, 0.0, 0.1, -0.02), 0.91, "use as is"),
        (Outlook(0.9, 0.0, 0.1, 0.004), 0.91, "use as is"),
        (Outlook(0.9, 0.05, 0.1, 0.03), 0.91, "adapt"),
        (Outlook(0.9, 0.3, 0.1, 0.03), 0.91, "collect labels"),
        (Outlook(0.9, 0.5, 0.1, 0.03), 0.5, "do not use"),
    ],
)
def test_the_action_with_the_highest_worth_is_recommended(expected, retrained, action):
    rehearsal = Rehearsal([made(retrained=retrained)], Classes(0.3))
    chosen = recommend(rehearsal, expected, 1000, 0.05, None)
    assert chosen.action == action
    assert chosen.labelled_rows == 200  # 500 are hardly better
    assert chosen.worth["do not use"] == pytest.approx(0.6)


def test_labels_for_nothing_are_collected_and_dear_ones_are_not():
    rehearsal = Rehearsal([made()], Classes(0.3))
    expected = Outlook(0.9, 0.04, 0.1, None)
    assert recommend(rehearsal, expected, 1000, 0.0, None).action == "collect labels"
    assert recommend(rehearsal, expected, 1000, 0.5, None).action == "use as is"
    assert recommend(rehearsal, expected, 1000, 0.5, 0.99).action == "do not use"


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
    data, expected, true = load_digit_domains(), {}, {}
    for new in np.unique(data.domains):
        rows, X = split(data, new)
        head = DAREClassifier().fit(*rows[:2], domains=rows[2])
        head.rehearse(*rows[:2], domains=rows[2])
        expected[new] = head.diagnose(X)["loss"].numbers["expected"]
        true[new] = head.score(X, data.y[data.domains == new])
    assert max(true["faint"], true["tilted"]) < 0.7 < 0.85 < min(true["bold"], true["plain"])
    hard, easy = ("faint", "tilted"), ("bold", "plain")
    assert max(expected[d] for d in hard) < min(expected[d] for d in easy) - 0.1


@pytest.mark.parametrize("n", [1, 2, 19])
def test_too_few_rows_are_met_by_words_without_numbers(rehearsed, n):
    head, new = rehearsed
    found = head.diagnose(new[:n])
    (finding,) = found.findings
    assert finding.answer == f"cannot say, needs at least 20 rows, and {n} were given"
    assert finding.numbers == {}
    assert found.recommendation.action == "cannot say"
    assert found.recommendation.worth == {}


def test_without_a_rehearsal_no_accuracy_is_claimed():
    head, new = fitted()
    found = head.diagnose(new)
    assert found["loss"].level == found["adapting"].level == "unknown"
    assert "head.rehearse" in found.recommendation.reason
    assert found.recommendation.action == "cannot say"


def test_a_new_fit_forgets_the_rehearsal(rehearsed):
    head = pickle.loads(pickle.dumps(rehearsed[0]))
    assert head.rehearsal_ is not None
    (X, y, domains), _ = split(latent(), 5)
    assert head.fit(X, y, domains=domains).rehearsal_ is None


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_rows_that_are_all_the_same_are_met_by_words(rehearsed, value):
    found = rehearsed[0].diagnose(np.full((50, 6), value))
    assert [finding.answer for finding in found.findings] == ["cannot say, needs rows that differ"]
    assert found.recommendation.action == "cannot say"


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
    expected = want["loss"].numbers["expected"]
    assert found["loss"].numbers["expected"] == pytest.approx(expected, abs=1e-3)


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
    assert max(map(len, head.diagnose(new).text(60).splitlines())) <= 64
    assert "recommended: " in str(head.diagnose(new))


# -- Bad input ------------------------------------------------------------------------------------


def test_a_head_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        DAREClassifier().diagnose(np.zeros((30, 2)))
    with pytest.raises(NotFittedError):
        DAREClassifier().rehearse(np.zeros((30, 2)), np.zeros(30))


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
    [({"label_cost": 2.0}, "label_cost is 2.0"), ({"acceptable": -1.0}, "acceptable is -1.0")],
)
def test_prices_that_are_not_shares_are_refused(rehearsed, options, message):
    head, new = rehearsed
    with pytest.raises(ValueError, match=message):
        head.diagnose(new, **options)
