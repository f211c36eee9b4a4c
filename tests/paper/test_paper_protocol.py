"""The paper's protocol, its ceilings and its diagnostics compute what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skdare import DAREClassifier, ERMClassifier
from skdare.data import DomainData, make_latent_domains
from skdare.features.split import reserve
from skdare.paper.ceilings import DESCENT, EXACT, fit_ceiling
from skdare.paper.diagnostics import ALIGNMENTS, GUESSES, adjustment_error, alignment
from skdare.paper.experiment import measure
from skdare.paper.fold import FeatureTable, Fold
from skdare.paper.plan import ABLATIONS, Trial, ablation_trials, study_trials
from skdare.paper.protocol import (
    HEADS,
    MAIN_HEADS,
    Block,
    Descent,
    FixedStepLBFGS,
    InvariantRisk,
    Settings,
    WeightedRisk,
    descend_with_patience,
    fit_head,
)

FAST = Settings(patience=2, max_epochs=5, descent_steps=20)


def table(classes: int = 3, n: int = 60, seed: int = 0) -> DomainData:
    """Domains a to d whose classes no head can tell apart without error."""
    data = make_latent_domains(4, n, 5, task="regression", random_state=seed)
    y = np.digitize(data.y, np.quantile(data.y, np.linspace(0, 1, classes + 1)[1:-1]))
    flipped = np.random.default_rng(3).random(len(y)) < 0.3
    y = np.where(flipped, 0, y)
    return replace(data, y=np.array(list("xyz"))[y], domains=np.array(list("abcd"))[data.domains])


def fold_of(data: DomainData, held_out: str = "b", **more) -> Fold:
    return Fold.of(FeatureTable.of(data), held_out, 0, **more)


def descended_to_the_end(fold: Fold, name: str, **options):
    descent = Descent.of(fold, name, {**HEADS[name], **options})
    solver = FixedStepLBFGS(descent.start, step=0.2, inner=20, memory=100)
    for _ in range(100):
        assert solver.epoch(descent.function(solver.theta))
    return descent.linear(solver.theta)


def test_fixed_step_lbfgs_follows_torchs():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    A = np.random.default_rng(0).normal(size=(30, 4))

    class Function:
        def value_and_gradient(self, theta):
            z = A @ theta - 1.0
            return float(np.sum(np.logaddexp(0, z) + 0.01 * z**2)), A.T @ (
                1 / (1 + np.exp(-z)) + 0.02 * z
            )

    parameters = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([parameters], lr=0.2, history_size=100)
    matrix = torch.tensor(A)

    def closure():
        optimiser.zero_grad()
        z = matrix @ parameters - 1.0
        loss = (torch.nn.functional.softplus(z) + 0.01 * z**2).sum()
        loss.backward()
        return loss

    ours = FixedStepLBFGS(np.zeros(4), step=0.2, inner=20, memory=100)
    for _ in range(4):
        optimiser.step(closure)
        assert ours.epoch(Function())
        np.testing.assert_allclose(ours.theta, parameters.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_patience_keeps_the_first_best_and_stops_after_it():
    class Flat:
        def value_and_gradient(self, theta):
            return float(theta[0] ** 2), 2 * theta

    scores = iter([0.1, 0.5, 0.4, 0.5, 0.3, 0.9])
    solver = FixedStepLBFGS(np.ones(1), step=0.2, inner=1, memory=3)
    stopped = descend_with_patience(
        solver, lambda theta: Flat(), lambda theta: next(scores), patience=3, max_epochs=50
    )
    assert (stopped.best_epoch, stopped.epochs, stopped.score) == (1, 4, 0.5)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", ["plain", "mean row", "shift", "invariant"])
def test_the_gradient_is_that_of_the_value(kind, classes):
    rng = np.random.default_rng(0)
    k = 1 if classes == 2 else classes
    W = rng.normal(size=(4, 4))
    more = {"W": W, "mean": rng.normal(size=4), "penalty": 0.7} if kind == "mean row" else {}
    if kind == "shift":
        more = {"W": W, "shift": rng.normal(size=4)}
    blocks = [
        Block(rng.normal(size=(20, 4)), rng.integers(classes, size=20), k, **more) for _ in "ab"
    ]
    q = np.array([0.3, 0.7])
    risk = InvariantRisk(blocks, q, 0.5) if kind == "invariant" else WeightedRisk(blocks, q)
    theta = rng.normal(size=4 * k + k)
    gradient = risk.value_and_gradient(theta)[1]
    numeric = [
        (risk.value_and_gradient(theta + h)[0] - risk.value_and_gradient(theta - h)[0]) / 2e-6
        for h in 1e-6 * np.eye(len(theta))
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("erm", ERMClassifier()),
        ("dare", DAREClassifier.as_in_paper(adaptation=None)),
        ("no-constraint", DAREClassifier.as_in_paper(adaptation=None, mean_penalty=0.0)),
    ],
)
def test_the_papers_heads_descend_to_the_estimators_minimum(name, head, classes):
    fold = fold_of(table(classes, n=150))
    head.set_params(l2=0.0, tol=1e-9).fit(fold.train.X, fold.train.y, domains=fold.train.domains)
    fitted = descended_to_the_end(fold, name)
    assert np.mean(fitted.predict(fold.test.X) == head.predict(fold.test.X)) > 0.995


def test_groupdro_moves_its_weights_once_an_epoch_by_the_losses_before_it():
    fold = fold_of(table())
    descent = Descent.of(fold, "groupdro", {"step": 0.5})
    solver = FixedStepLBFGS(descent.start, step=0.2, inner=4, memory=100)
    logarithms = np.zeros(3)
    for _ in range(2):
        B, b = WeightedRisk(descent.blocks, np.ones(3)).unpack(solver.theta)
        logarithms = logarithms + 0.5 * np.array([x.sums(B, b)[0] for x in descent.blocks])
        solver.epoch(descent.function(solver.theta))
        q = np.exp(logarithms - logarithms.max())
        np.testing.assert_allclose(descent.function.q, q / q.sum(), rtol=1e-10)


def test_groupdro_without_a_step_is_reweighted_erm():
    fold = fold_of(table())
    still = descended_to_the_end(fold, "groupdro", step=0.0)
    reweighted = descended_to_the_end(fold, "reweighted")
    np.testing.assert_allclose(still.V, reweighted.V, rtol=1e-6, atol=1e-8)


def test_irm_without_a_penalty_is_reweighted_erm():
    fold = fold_of(table())
    free = descended_to_the_end(fold, "irm", penalty=0.0)
    np.testing.assert_allclose(free.V, descended_to_the_end(fold, "reweighted").V, atol=1e-8)


# -- What a head sees -----------------------------------------------------------------------------


def test_a_fold_sets_the_rows_aside_that_the_network_did():
    data = table()
    aside = reserve(data.domains, 7)
    fold = Fold.of(FeatureTable(data, aside, ""), "b", 0)
    assert len(fold.train.y) == np.sum(~aside & (data.domains != "b"))
    np.testing.assert_array_equal(fold.reserved, aside[data.domains == "b"])
    np.testing.assert_array_equal(fold.valid.X, data.X[aside & (data.domains != "b")])


@pytest.mark.parametrize("name", [name for name in HEADS if name != "dare-adapted"])
def test_no_head_but_the_adapted_one_sees_rows_of_the_held_out_domain(name):
    data = table()
    held_out = data.domains == "b"
    X = np.where(held_out[:, None], 50.0 + 1e3 * data.X[::-1], data.X)
    plain, poisoned = fold_of(data), fold_of(replace(data, X=X))
    heads = [fit_head(fold, name, {}, FAST).model for fold in (plain, poisoned)]
    np.testing.assert_array_equal(heads[0].V, heads[1].V)


def test_the_adapted_head_sees_no_labels_and_no_scored_row():
    data = table()
    fold = fold_of(data)
    scored = np.flatnonzero(data.domains == "b")[fold.reserved]
    X, y = data.X.copy(), data.y.copy()
    X[scored] += 9.0
    y[data.domains == "b"] = "x"
    poisoned = fold_of(replace(data, X=X, y=y))
    heads = [fit_head(f, "dare-adapted", {}, FAST).model for f in (fold, poisoned)]
    np.testing.assert_array_equal(heads[0].V, heads[1].V)


def test_a_whitened_domain_has_the_second_moment_that_shrinkage_leaves():
    fold = fold_of(table())
    for domain in "abcd":
        W = fold.whitener(domain, 0.1)
        S = fold.second_moment(domain)
        np.testing.assert_allclose(W @ (0.9 * S + 0.1 * np.eye(5)) @ W, np.eye(5), atol=1e-10)


# -- Ceilings and diagnostics ---------------------------------------------------------------------


def test_the_exact_ceiling_is_logistic_regression_on_every_domain():
    fold = fold_of(table())
    head = fit_ceiling(fold, EXACT, replace(FAST, ceiling_l2=0.1))
    more = fold.rows("b")
    X, y = np.concatenate([fold.train.X, more.X]), np.concatenate([fold.train.y, more.y])
    unit = X.var(axis=0).mean()
    other = LogisticRegression(C=1 / (len(y) * 0.1 * unit), tol=1e-8, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(head.coef_, other.coef_, atol=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_descended_ceiling_nears_the_exact_one(classes):
    fold = fold_of(table(classes, n=150))
    exact = fit_ceiling(fold, EXACT, replace(FAST, ceiling_l2=1e-8))
    near = fit_ceiling(fold, DESCENT, replace(FAST, descent_steps=3000))
    assert np.mean(exact.predict(fold.test.X) == near.predict(fold.test.X)) > 0.99


def test_domains_alike_have_no_adjustment_error_and_full_alignment():
    data = table()
    first = data.domains == "a"
    rows = Fold.of(FeatureTable(data, np.zeros(240, bool), ""), "b", 0)
    X, y = np.tile(data.X[first], (3, 1)), np.tile(data.y[first], 3)
    alike = DomainData.of(X, y, domains=np.repeat(list("abc"), first.sum()))
    fold = Fold.of(FeatureTable(alike, np.zeros(len(y), bool), ""), "b", 0)
    assert adjustment_error(fold, GUESSES[0], FAST) == pytest.approx(0.0, abs=1e-12)
    assert adjustment_error(fold, GUESSES[1], FAST) > 1e-4
    assert adjustment_error(rows, GUESSES[0], FAST) > 1e-4
    for which in ALIGNMENTS:
        assert alignment(fold, which, FAST) == pytest.approx(1.0, abs=1e-6)


# -- What is planned ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ABLATIONS)
def test_every_trial_of_an_ablation_has_a_score(name):
    trials = ablation_trials(name, "b", 0, list("acd"), 5)
    data = table()
    for trial in list(trials)[:6]:
        size, domains = trial.size, trial.training_domains
        fold = fold_of(data, size=size, training_domains=domains)
        score, notes = measure(trial, fold, FAST)
        assert 0.0 <= score <= 1.0
        assert notes["score_reserved"] == score


def test_a_study_has_the_papers_heads_once():
    trials = list(study_trials("b", 0))
    assert [t.head for t in trials if t.study == "main"] == list(MAIN_HEADS)
    assert len(set(trials)) == len(trials)


def test_subsets_of_training_domains_are_all_or_a_few():
    trials = list(ablation_trials("domains", "z", 0, list("abcdef"), 5))
    sizes = [len({t.training_domains for t in trials if t.x == size}) for size in range(1, 7)]
    assert sizes == [6, 10, 10, 10, 6, 1]
    assert trials == list(ablation_trials("domains", "z", 0, list("abcdef"), 5))


def test_settings_that_are_none_are_refused():
    for change in ({"shrinkage": 1.5}, {"inner": 0}, {"patience": 2.5}, {"step": -1.0}):
        with pytest.raises(ValueError, match=next(iter(change))):
            Settings(**change)
    with pytest.raises(ValueError, match="no rows are set aside"):
        fit_head(fold_of(table(), share=0.0), "erm", {}, FAST)


def test_the_score_of_a_trial_is_that_of_the_rows_set_aside():
    fold = fold_of(table())
    score, notes = measure(Trial("main", "erm", "b", 0), fold, FAST)
    model = fit_head(fold, "erm", {}, FAST).model
    right = model.predict(fold.test.X) == fold.test.y
    assert score == np.mean(right[fold.reserved])
    assert notes["score_rest"] == np.mean(right[~fold.reserved])
