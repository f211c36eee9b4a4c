"""The bench's protocols, ceilings and diagnostics compute what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skdare import DAREClassifier, ERMClassifier
from skdare.bench._ceilings import fit_ceiling, labelled_rows
from skdare.bench._diagnostics import _adjustment, measure_adjustment, measure_alignment
from skdare.bench._heads import HEADS
from skdare.bench._paper_protocol import Descent, FixedStepLBFGS, descend_with_patience
from skdare.datasets import DomainData
from skdare.whitening.adjustment import Adjustment, adjustment_error
from skdare.whitening.whitening import Whitening
from small_bench import FAST, FAST_PAPER, fold_of, noisy_table, small_plan, table


def test_fixed_step_lbfgs_follows_torchs():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    A = np.random.default_rng(0).normal(size=(30, 4))

    class Function:
        size = 4

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
        size = 1

        def value_and_gradient(self, theta):
            return float(theta[0] ** 2), 2 * theta

    scores = iter([0.1, 0.5, 0.4, 0.5, 0.3, 0.9])
    solver = FixedStepLBFGS(np.ones(1), step=0.2, inner=1, memory=3)
    stopped = descend_with_patience(
        solver, lambda theta: Flat(), lambda theta: next(scores), patience=3, max_epochs=50
    )
    assert (stopped.best_epoch, stopped.epochs, stopped.score) == (1, 4, 0.5)


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("erm", ERMClassifier()),
        (
            "dare",
            DAREClassifier(shrinkage=0.1, shrinkage_target="identity", adaptation=None),
        ),
        (
            "no-constraint",
            DAREClassifier(
                shrinkage=0.1, shrinkage_target="identity", adaptation=None, mean_penalty=0.0
            ),
        ),
    ],
)
def test_the_papers_heads_descend_to_the_estimators_minimum(name, head):
    fold = fold_of(noisy_table())
    head.set_params(l2=0.0, tol=1e-9).fit(fold.train.X, fold.train.y, domains=fold.train.domains)
    fitted = _descended_to_the_end(fold, name)
    agree = np.mean(fitted.predict(fold.test.X) == head.predict(fold.test.X))
    assert agree > 0.995


def test_without_a_penalty_a_free_last_layer_descends_to_the_reweighted_minimum():
    fold = fold_of(noisy_table())
    free = _descended_to_the_end(fold, "irm", penalty=0.0, free_layer=True)
    reweighted = _descended_to_the_end(fold, "reweighted")
    p = free.predict_proba(fold.test.X)
    np.testing.assert_allclose(p, reweighted.predict_proba(fold.test.X), atol=1e-3)


class Watched:
    """A function that notes where it is evaluated."""

    def __init__(self, function):
        self.function = function
        self.points = []

    def value_and_gradient(self, theta):
        self.points.append(theta)
        return self.function.value_and_gradient(theta)


@pytest.mark.parametrize("every_step", [False, True])
def test_groupdro_moves_its_weights_once_an_epoch_or_at_every_step(every_step):
    fold = fold_of(noisy_table())
    descent = Descent.of(fold, "groupdro", {"step": 0.5, "every_step": every_step})
    losses = Descent.of(fold, "reweighted", {}).function(descent.start).block_losses
    solver = FixedStepLBFGS(descent.start, step=0.2, inner=4, memory=100)
    logarithms = np.zeros(len(fold.training_domains))
    for _ in range(2):
        watched = Watched(descent.function(solver.theta))
        solver.epoch(watched)
        assert len(watched.points) == 4
        for theta in watched.points if every_step else watched.points[:1]:
            logarithms = logarithms + 0.5 * losses(theta)
    q = np.exp(logarithms - logarithms.max())
    np.testing.assert_allclose(descent.function.q, q / q.sum(), rtol=1e-10)


def test_groupdro_without_a_step_is_reweighted_erm():
    fold = fold_of(noisy_table())
    still = _descended_to_the_end(fold, "groupdro", step=0.0, every_step=True)
    reweighted = _descended_to_the_end(fold, "reweighted")
    np.testing.assert_allclose(still.V, reweighted.V, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("option", [("irm", "free_layer"), ("groupdro", "every_step")])
def test_switches_of_the_papers_heads_are_true_or_false(option):
    name, key = option
    small_plan(settings=FAST_PAPER, heads=[name], options={name: {key: True}})
    with pytest.raises(ValueError, match=f"{name}.{key} is 1; use one of True, False"):
        small_plan(settings=FAST_PAPER, heads=[name], options={name: {key: 1}})


def _descended_to_the_end(fold, name, **options):
    descent = Descent.of(fold, name, {**HEADS[name].paper_options, **options})
    solver = FixedStepLBFGS(descent.start, step=0.2, inner=20, memory=100)
    for _ in range(100):
        assert solver.epoch(descent.function(solver.theta))
    return descent.linear(solver.theta)


def test_the_exact_ceiling_is_logistic_regression_on_every_domain():
    fold = fold_of(table())
    head = fit_ceiling(fold, "ceiling-exact", replace(FAST, l2=0.1)).predictor
    rows = fold.train_with_held_out()
    unit = rows.X.var(axis=0).mean()
    other = LogisticRegression(C=1 / (len(rows.y) * 0.1 * unit), tol=1e-8, max_iter=1000)
    np.testing.assert_allclose(head.coef_, other.fit(rows.X, rows.y).coef_, atol=1e-4)


def test_the_descended_ceiling_nears_the_exact_one():
    fold = fold_of(noisy_table())
    exact = fit_ceiling(fold, "ceiling-exact", replace(FAST, l2=1e-8)).predictor
    near = fit_ceiling(fold, "ceiling-sgd", replace(FAST, sgd_steps=3000))
    assert near.notes["option:steps"] == 3000
    assert np.mean(exact.predict(fold.test.X) == near.predictor.predict(fold.test.X)) > 0.99


@pytest.mark.parametrize(("classes", "bend"), [(2, 0.25), (3, 0.5)])
def test_the_descent_steps_by_one_over_a_bound_on_the_curvature(classes, bend):
    data = table()
    data = replace(data, y=np.minimum(np.searchsorted(list("xyz"), data.y), classes - 1))
    fold = fold_of(data)
    rows = fold.train_with_held_out()
    step = fit_ceiling(fold, "ceiling-sgd", FAST).notes["option:step"]
    largest = np.linalg.eigvalsh(rows.X.T @ rows.X / len(rows.y))[-1]
    assert step == pytest.approx(1.0 / (bend * (largest + 1.0)))


def test_more_labelled_rows_include_the_fewer():
    y = np.repeat([0, 1, 2], [50, 30, 3])
    few, many = (labelled_rows(y, m, "classification", [0, 1]) for m in (2, 10))
    assert set(few) <= set(many)
    np.testing.assert_array_equal(np.bincount(y[many]), [10, 10, 3])


def test_adjustment_error_is_the_normalised_squared_distance():
    rng = np.random.default_rng(0)
    A, B = (M @ M.T for M in rng.normal(size=(2, 4, 4)))
    expected = np.linalg.norm(A - B) ** 2 / np.linalg.norm(B) ** 2
    error = adjustment_error(Adjustment(4, 0.0, A), Adjustment(4, 0.0, B))
    assert error == pytest.approx(expected)


def test_domains_alike_have_no_adjustment_error_and_full_alignment():
    data = table()
    first = data.domains == "a"
    X, y = np.tile(data.X[first], (3, 1)), np.tile(data.y[first], 3)
    alike = DomainData(X, y, np.repeat(list("abc"), 60), split=np.zeros(180, dtype=bool))
    fold = fold_of(alike)
    measured = measure_adjustment(fold, "averaged adjustment", {}, FAST)
    assert measured.score == pytest.approx(0.0, abs=1e-12)
    assert measure_adjustment(fold, "averaged scalar", {}, FAST).score > 1e-4
    for which in ("with adjustment", "without adjustment"):
        assert measure_alignment(fold, which, {}, FAST).score == pytest.approx(1.0, abs=1e-6)


def test_a_pooled_target_is_measured_as_such():
    fold = fold_of(table())
    errors = {
        target: measure_adjustment(
            fold, "averaged adjustment", {"shrinkage_target": target}, FAST
        ).score
        for target in ("scaled", "pooled")
    }
    assert errors["scaled"] != pytest.approx(errors["pooled"])


def test_the_measured_adjustments_are_those_of_the_fitted_head():
    fold, options = fold_of(table()), {"shrinkage": 0.5, "shrinkage_target": "pooled"}
    rows = fold.train
    head = DAREClassifier(**options).fit(rows.X, rows.y, domains=rows.domains)
    for domain in fold.training_domains:
        ours = _adjustment(fold, domain, Whitening.of_head(head)).dense()
        np.testing.assert_allclose(ours, head.adjustments_[domain].dense(), rtol=1e-9)
