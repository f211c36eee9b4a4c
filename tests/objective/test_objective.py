"""One objective: the paper's Lagrangian, its derivatives, and no copy of the rows."""

import itertools
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import oracle
from skdare import DAREClassifier, DARERegressor, ERMClassifier
from skdare.objective.invariant_risk import FreeLayerRisk, InvariantRisk
from skdare.whitening.moments import Moments
from skdare.whitening.whitening import Whitening


def random_parameters(objective, seed=5):
    return np.random.default_rng(seed).normal(size=objective.size)


def numerical_jacobian(function, theta, h=1e-5):
    """Central differences of a function, one column for each parameter."""
    steps = h * np.eye(len(theta))
    return np.stack([(function(theta + s) - function(theta - s)) / (2 * h) for s in steps], axis=-1)


@pytest.mark.parametrize("target", ["scaled", "identity", "pooled", "diagonal"])
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("penalty", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_objective_equals_the_lagrangian_written_in_the_paper(
    problem, objective_of, target, centered, penalty, intercept
):
    template = objective_of(problem, penalty=penalty, l2=0.3, intercept=intercept)
    rows, targets = problem.parts()
    moments, blocks = [Moments.of(X) for X in rows], []
    whitening = Whitening(True, centered, 0.2, target)
    common = whitening.common(moments, None)
    for m, block in zip(moments, template.blocks, strict=True):
        adjustment = whitening.adjustment(m, None, common)
        blocks.append(replace(block, adjustment=adjustment))
    objective = replace(template, blocks=blocks)
    theta = random_parameters(objective)
    B, b = objective.coordinates.unpack(theta)
    roots = oracle.adjustments(rows, shrinkage=0.2, target=target, centered=centered)
    settings = {"penalty": penalty, "l2": 0.3}
    expected = oracle.lagrangian(problem.task, rows, targets, roots, B, b, **settings)
    assert objective.value_and_gradient(theta)[0] == pytest.approx(expected, rel=1e-11)
    assert bool(np.any(b)) is intercept


def parametrisations(d):
    """Every way to pose the same problem to a solver."""
    span = np.linalg.qr(np.random.default_rng(9).normal(size=(d, 2)))[0]
    choices = {
        "shifted": [{}, {"shifted": True}],
        "origin": [{}, {"origin": np.linspace(-2, 2, d)}],
        "span": [{}, {"span": span, "gains": np.array([0.3, 0.0])}],
        "weights": [{}, {"block_weights": [0.2, 1.5, 0.0]}],
    }
    for chosen in itertools.product(*choices.values()):
        yield {name: value for part in chosen for name, value in part.items()}


OPTIONS = [pytest.param(p, id="-".join(p) or "plain") for p in parametrisations(5)]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
def test_gradient_matches_finite_differences(problem, objective_of, options, intercept):
    objective = objective_of(problem, intercept=intercept, **options)
    theta = random_parameters(objective)
    expected = numerical_jacobian(lambda t: objective.value_and_gradient(t)[0], theta)
    gradient = objective.value_and_gradient(theta)[1]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)


def test_a_ridge_may_draw_towards_other_weights_than_zero(problem, objective_of):
    plain = objective_of(problem, l2=0.3)
    d = plain.coordinates.d
    centre = np.linspace(-1, 1, d)[:, None] * np.ones(plain.coordinates.k)
    objective = replace(plain, centre=centre)
    theta = random_parameters(objective)
    expected = numerical_jacobian(lambda t: objective.value_and_gradient(t)[0], theta)
    value, gradient = objective.value_and_gradient(theta)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)
    B, _ = plain.coordinates.unpack(theta)
    moved = 0.15 * (np.sum((B - centre) ** 2) - np.sum(B**2))
    assert value == pytest.approx(plain.value_and_gradient(theta)[0] + moved)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
def test_hessian_product_matches_finite_differences(problem, objective_of, options, intercept):
    objective = objective_of(problem, intercept=intercept, **options)
    theta = random_parameters(objective)
    expected = numerical_jacobian(lambda t: objective.value_and_gradient(t)[1], theta)
    product = objective.hessian_product(theta)
    H = np.stack([product(direction) for direction in np.eye(objective.size)], axis=-1)
    np.testing.assert_allclose(H, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(H, H.T, rtol=0, atol=1e-12 * np.abs(H).max())


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
def test_the_hessian_of_a_quadratic_equals_its_stacked_products(
    regression, objective_of, options, intercept
):
    objective = objective_of(regression, intercept=intercept, **options)
    product = objective.hessian_product(random_parameters(objective))
    stacked = np.stack([product(direction) for direction in np.eye(objective.size)])
    np.testing.assert_allclose(objective.hessian(), stacked, rtol=0, atol=1e-12)


def test_only_small_quadratics_suit_a_direct_solve(problem, objective_of):
    assert objective_of(problem).suits_direct is (problem.task == "regression")


@pytest.mark.parametrize("origin", [None, np.linspace(-2, 2, 5)])
def test_chaining_a_gradient_is_the_transpose_of_unpacking_parameters(
    three_classes, objective_of, origin
):
    span = np.linalg.qr(np.random.default_rng(9).normal(size=(5, 2)))[0]
    objective = objective_of(three_classes, origin=origin, span=span, gains=np.array([0.5, 0.0]))
    theta, rng = random_parameters(objective), np.random.default_rng(1)
    G, g = rng.normal(size=(5, 3)), rng.normal(size=3)
    B, b = objective.coordinates.unpack(theta)
    assert np.sum(B * G) + b @ g == pytest.approx(
        theta @ objective.coordinates.chain(G, g), rel=1e-12
    )


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("origin", [None, np.linspace(-2, 2, 5)])
def test_packing_weights_is_the_inverse_of_unpacking_parameters(
    three_classes, objective_of, origin, intercept
):
    span = np.linalg.qr(np.random.default_rng(9).normal(size=(5, 2)))[0]
    options = {"origin": origin, "span": span, "gains": np.array([0.5, 0.1])}
    objective = objective_of(three_classes, intercept=intercept, **options)
    theta = random_parameters(objective)
    np.testing.assert_allclose(
        objective.coordinates.pack(*objective.coordinates.unpack(theta)), theta, atol=1e-13
    )


def test_gains_of_zero_hold_the_constraint_for_any_parameters(three_classes, objective_of):
    span = np.linalg.qr(np.random.default_rng(9).normal(size=(5, 2)))[0]
    objective = objective_of(three_classes, span=span, gains=np.zeros(2))
    B, _ = objective.coordinates.unpack(random_parameters(objective))
    assert np.abs(span.T @ B).max() < 1e-14 < np.abs(B).max()


def test_the_value_is_the_weighted_sum_of_block_losses_and_the_ridge(problem, objective_of):
    weights = [0.2, 1.5, 0.7]
    objective = objective_of(problem).weighted(weights)
    theta = random_parameters(objective)
    B, _ = objective.coordinates.unpack(theta)
    expected = weights @ objective.block_losses(theta) + 0.05 * np.sum(B**2)
    assert objective.value_and_gradient(theta)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 1e-5)])
def test_array_library_and_precision_of_the_features_do_not_matter(
    problem, objective_of, array_library, visit_in_chunks_of, dtype, rtol
):
    options = {"shifted": True, "origin": np.linspace(-2, 2, 5)}
    reference = objective_of(problem, **options)
    visit_in_chunks_of(11)
    objective = objective_of(problem, library=array_library, dtype=dtype, **options)
    theta = random_parameters(reference)
    (value, gradient), (expected, slope) = (
        o.value_and_gradient(theta) for o in (objective, reference)
    )
    direction = np.random.default_rng(1).normal(size=theta.size)
    product, curve = (o.hessian_product(theta)(direction) for o in (objective, reference))
    assert value == pytest.approx(expected, rel=rtol)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=rtol * np.abs(slope).max())
    np.testing.assert_allclose(product, curve, rtol=0, atol=rtol * np.abs(curve).max())


def test_gathered_domains_equal_contiguous_ones(problem, objective_of):
    gathered, contiguous = objective_of(problem), objective_of(problem.contiguous())
    assert {type(b.rows[0].index) for b in gathered.blocks} == {np.ndarray}
    assert {type(b.rows[0].index) for b in contiguous.blocks} == {slice}
    theta = random_parameters(gathered)
    (value, gradient), (expected, slope) = (
        o.value_and_gradient(theta) for o in (gathered, contiguous)
    )
    assert value == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-13)


def test_class_numbers_equal_their_indicator_rows(three_classes, objective_of, array_library):
    hard, soft = (objective_of(three_classes, library=array_library, soft=s) for s in (False, True))
    theta = random_parameters(hard)
    (value, gradient), (expected, slope) = (o.value_and_gradient(theta) for o in (hard, soft))
    assert value == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-14)


def test_scores_of_any_size_give_finite_values(problem, objective_of):
    objective = objective_of(problem)
    value, gradient = objective.value_and_gradient(1e6 * random_parameters(objective))
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradient))


def test_the_invariance_penalty_has_the_gradient_of_finite_differences(problem, objective_of):
    risk = InvariantRisk(objective_of(problem, penalty=0.0, origin=np.linspace(-2, 2, 5)), 2.5)
    theta = random_parameters(risk)
    expected = numerical_jacobian(lambda t: risk.value_and_gradient(t)[0], theta)
    np.testing.assert_allclose(risk.value_and_gradient(theta)[1], expected, rtol=1e-5, atol=1e-5)


def test_a_free_last_layer_has_the_gradient_of_finite_differences(problem, objective_of):
    objective = objective_of(problem, penalty=0.0, l2=0.3, origin=np.linspace(-2, 2, 5))
    risk = FreeLayerRisk(InvariantRisk(objective, 2.5))
    theta = random_parameters(risk)
    expected = numerical_jacobian(lambda t: risk.value_and_gradient(t)[0], theta)
    np.testing.assert_allclose(risk.value_and_gradient(theta)[1], expected, rtol=1e-5, atol=1e-5)


def test_a_free_layer_at_the_identity_is_the_layer_that_is_held_there(problem, objective_of):
    held = InvariantRisk(objective_of(problem, penalty=0.0), 2.5)
    free = FreeLayerRisk(held)
    theta = free.start + np.append(random_parameters(held), np.zeros(free.size - held.size))
    value, gradient = held.value_and_gradient(theta[: held.size])
    assert free.value_and_gradient(theta)[0] == value
    np.testing.assert_array_equal(free.value_and_gradient(theta)[1][: held.size], gradient)
    B, b = held.objective.coordinates.unpack(theta[: held.size])
    np.testing.assert_array_equal(free.weights(theta)[0], B)
    np.testing.assert_array_equal(free.weights(theta)[1], b)


def test_a_free_layer_can_hide_the_penalty_and_predict_the_same(problem, objective_of):
    held = InvariantRisk(objective_of(problem, penalty=0.0, l2=0.0), 2.5)
    free = FreeLayerRisk(held)
    theta = random_parameters(free)
    hidden = np.append(theta[: held.size] / 100, theta[held.size :] * 100)
    for scores, expected in zip(free.weights(hidden), free.weights(theta), strict=True):
        np.testing.assert_allclose(scores, expected)
    without = FreeLayerRisk(InvariantRisk(held.objective, 0.0))
    loss = without.value_and_gradient(theta)[0]
    penalty = free.value_and_gradient(theta)[0] - loss
    assert free.value_and_gradient(hidden)[0] - loss == pytest.approx(penalty / 100**2, rel=1e-6)


@pytest.mark.parametrize("order", ["contiguous", "interleaved"])
@pytest.mark.parametrize(
    "head", [DAREClassifier(), DARERegressor(mean_penalty=1.0), ERMClassifier()], ids=repr
)
def test_fitting_neither_modifies_nor_copies_the_features(head, order, visit_in_chunks_of):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 100))
    y = np.sign(X[:, 0]) if "Classifier" in type(head).__name__ else X[:, 0].copy()
    domains = np.repeat([0, 1], 10_000) if order == "contiguous" else np.tile([0, 1], 10_000)
    before = X.copy()
    visit_in_chunks_of(512)
    tracemalloc.start()
    head.fit(X, y, domains=domains)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * X.nbytes
    np.testing.assert_array_equal(X, before)
