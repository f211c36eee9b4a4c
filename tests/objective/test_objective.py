"""One objective: the paper's Lagrangian, its derivatives, and no copy of the rows."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import paper_formulas as paper
from array_libraries import held_in, libraries, rows_at_a_time
from domain_problems import TASKS, make_problem
from posed_problems import formulated, objective_of, posed, random_parameters
from skdare import DAREClassifier, DARERegressor, ERMClassifier
from skdare.arrays import to_numpy
from skdare.fitting.domain_fit import moments_by_domain
from skdare.fitting.lagrangian import domain_blocks, empirical_lagrangian, with_small_ones_copied
from skdare.objective.invariant_risk import InvariantRisk
from skdare.objective.losses import Logistic, Softmax, Squared
from skdare.objective.objective import Coordinates

tasks = pytest.mark.parametrize("task", TASKS)
intercepts = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
SHIFTS = ("none", "own mean", "mean of means")


def numerical_jacobian(function, theta, h=1e-5):
    """Central differences of a function, one column for each parameter."""
    steps = h * np.eye(len(theta))
    return np.stack([(function(theta + s) - function(theta - s)) / (2 * h) for s in steps], axis=-1)


# -- The paper's equations ---------------------------------------------------------------------


@tasks
@intercepts
@pytest.mark.parametrize("target", ["scaled", "identity", "diagonal"])
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("penalty", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("centered_rows", [False, True], ids=["equation 1", "equation 3"])
def test_the_objective_is_the_lagrangian_written_in_the_paper(
    task, target, centered, penalty, intercept, centered_rows
):
    data = make_problem(task)
    domains, targets = data.parts()
    objective = objective_of(
        data,
        target=target,
        centered=centered,
        penalty=penalty,
        intercept=intercept,
        shift="own mean in training" if centered_rows else "none",
        l2=0.3,
    )
    theta = random_parameters(objective)
    B, b = objective.coordinates.unpack(theta)
    roots = paper.adjustments(domains, shrinkage=0.2, shrinkage_target=target, centered=centered)
    l2 = paper.ridge(domains, 0.3, shrinkage_target=target, centered=centered)
    expected = paper.lagrangian(
        task, domains, targets, roots, B, b, penalty=penalty, l2=l2, centered_rows=centered_rows
    )
    assert objective(theta)[0] == pytest.approx(expected, rel=1e-10)
    assert bool(np.any(b)) is intercept


@tasks
def test_rows_may_be_measured_from_the_mean_of_the_means(task):
    data = make_problem(task)
    centre = np.mean([X.mean(axis=0) for X in data.parts()[0]], axis=0)
    moved = replace(data, X=data.X - centre)
    options = {"penalty": 0.0, "centered": True}
    shifted = objective_of(data, shift="mean of means", **options)
    plain = objective_of(moved, **options)
    B, b = shifted.coordinates.unpack(random_parameters(shifted))
    values = [one(one.coordinates.pack(B, b))[0] for one in (shifted, plain)]
    assert values[0] == pytest.approx(values[1], rel=1e-10)


@tasks
@pytest.mark.parametrize("by_rows", [True, False])
def test_every_row_or_every_domain_counts_the_same(task, by_rows):
    data = make_problem(task)
    objective = objective_of(data, by_rows=by_rows, penalty=0.0, l2=0.0)
    theta = random_parameters(objective)
    B, b = objective.coordinates.unpack(theta)
    losses = []
    for X, y, W in zip(*data.parts(), objective_roots(data), strict=True):
        losses.append([paper.loss(task, x @ W @ B + b, t) for x, t in zip(X, y, strict=True)])
    means = [np.mean(own) for own in losses]
    expected = np.mean(np.concatenate(losses)) if by_rows else np.mean(means)
    assert objective(theta)[0] == pytest.approx(expected, rel=1e-10)


def objective_roots(data):
    return paper.adjustments(
        data.parts()[0], shrinkage=0.2, shrinkage_target="scaled", centered=False
    )


# -- Derivatives -------------------------------------------------------------------------------


@tasks
@intercepts
@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("penalty", [0.0, 2.0, "exact"])
def test_the_gradient_is_that_of_finite_differences(task, intercept, shift, penalty):
    objective = objective_of(make_problem(task), intercept=intercept, shift=shift, penalty=penalty)
    theta = random_parameters(objective)
    expected = numerical_jacobian(lambda t: objective(t)[0], theta)
    np.testing.assert_allclose(objective(theta)[1], expected, rtol=1e-6, atol=1e-7)


@intercepts
@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_the_hessian_of_a_quadratic_is_that_of_finite_differences(intercept, shift, penalty):
    data = make_problem("regression")
    objective = objective_of(data, intercept=intercept, shift=shift, penalty=penalty)
    theta = random_parameters(objective)
    H = objective.hessian(0.0 * theta)
    expected = numerical_jacobian(lambda t: objective(t)[1], theta)
    np.testing.assert_allclose(H, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(H, H.T, rtol=0, atol=1e-12 * np.abs(H).max())


@pytest.mark.parametrize("task", TASKS[:2])
@pytest.mark.parametrize("penalty", [0.0, 2.5])
def test_the_invariance_penalty_has_the_gradient_of_finite_differences(task, penalty):
    objective = objective_of(make_problem(task), penalty=0.0, adjusts=False)
    E = len(objective.blocks)
    blocks = [replace(block, weight=E * block.weight) for block in objective.blocks]
    risk = InvariantRisk(replace(objective, blocks=blocks), penalty)
    theta = random_parameters(objective)
    expected = numerical_jacobian(lambda t: risk(t)[0], theta)
    np.testing.assert_allclose(risk(theta)[1], expected, rtol=1e-5, atol=1e-5)


@tasks
def test_a_ridge_may_draw_towards_other_weights_than_zero(task):
    plain = objective_of(make_problem(task), penalty=0.0)
    theta = random_parameters(plain)
    B, _ = plain.coordinates.unpack(theta)
    centre = np.linspace(-1, 1, B.size).reshape(B.shape)
    objective = replace(plain, centre=centre)
    moved = 0.5 * plain.l2 * (np.sum((B - centre) ** 2) - np.sum(B**2))
    assert objective(theta)[0] == pytest.approx(plain(theta)[0] + moved)
    expected = numerical_jacobian(lambda t: objective(t)[0], theta)
    np.testing.assert_allclose(objective(theta)[1], expected, rtol=1e-6, atol=1e-7)


@tasks
def test_an_objective_is_the_sum_of_its_blocks_and_the_ridge(task):
    objective = objective_of(make_problem(task), penalty=3.0)
    theta = random_parameters(objective)
    B, b = objective.coordinates.unpack(theta)
    sums = objective.by_block(B, b)
    ridge = 0.5 * objective.l2 * np.sum(B**2)
    assert objective(theta)[0] == pytest.approx(ridge + sum(own.value for own in sums), rel=1e-13)
    G = objective.l2 * B + sum(own.G for own in sums)
    expected = objective.coordinates.gradient(G, sum(own.g for own in sums))
    np.testing.assert_allclose(objective(theta)[1], expected, rtol=0, atol=1e-13)


# -- Who holds the rows, and how they are cut --------------------------------------------------


@tasks
@libraries
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-11), ("float32", 1e-5)])
def test_library_precision_and_chunks_do_not_matter(monkeypatch, task, library, dtype, rtol):
    data = make_problem(task)
    reference = objective_of(data)
    theta = random_parameters(reference)
    value, gradient = reference(theta)
    rows_at_a_time(monkeypatch, 11)
    objective = objective_of(data, library=library, dtype=dtype)
    found, slope = objective(held_in(library, theta))
    assert found == pytest.approx(value, rel=rtol)
    np.testing.assert_allclose(
        to_numpy(slope), gradient, rtol=0, atol=rtol * np.abs(gradient).max()
    )


@tasks
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("shift", SHIFTS)
def test_domains_that_are_adjusted_beforehand_give_the_same_sum(monkeypatch, task, store, shift):
    data = make_problem(task)
    problem = posed(data, X=store(data.X))
    formulation = formulated(shift=shift, penalty=0.0)
    moments = moments_by_domain(problem)
    adjustments = formulation.whitening.adjustments(moments, np.float64)
    copied = empirical_lagrangian(problem, moments, adjustments, formulation)
    assert len(copied.blocks) == 1
    blocks = domain_blocks(problem, adjustments, np.full(3, 1 / 3))
    apart = replace(copied, blocks=blocks)
    theta = random_parameters(copied)
    np.testing.assert_allclose(copied(theta)[0], apart(theta)[0], rtol=1e-12)
    np.testing.assert_allclose(copied(theta)[1], apart(theta)[1], rtol=0, atol=1e-11)
    monkeypatch.setattr("skdare.fitting.lagrangian._MOST_COPIED", 10)
    assert len(with_small_ones_copied(blocks)) == 3


@tasks
def test_gathered_domains_equal_contiguous_ones(task):
    data = make_problem(task)
    together = data.permuted(np.concatenate([data.rows(label) for label in data.labels]))
    theta = random_parameters(objective_of(data))
    (value, gradient), (expected, slope) = (objective_of(d)(theta) for d in (data, together))
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-12)


@tasks
def test_a_weight_is_a_number_of_repetitions(task):
    data = make_problem(task)
    times = np.random.default_rng(0).integers(1, 4, len(data.y))
    again = data.permuted(np.repeat(np.arange(len(data.y)), times))
    formulation = formulated()
    values = []
    for problem in (posed(data, weight=times.astype(float)), posed(again)):
        moments = moments_by_domain(problem)
        adjustments = formulation.whitening.adjustments(moments, np.float64)
        objective = empirical_lagrangian(problem, moments, adjustments, formulation)
        values.append(objective(random_parameters(objective)))
    assert values[0][0] == pytest.approx(values[1][0], rel=1e-11)
    np.testing.assert_allclose(values[0][1], values[1][1], rtol=0, atol=1e-11)


@pytest.mark.parametrize("order", ["contiguous", "interleaved"])
@pytest.mark.parametrize(
    "head", [DAREClassifier(), DARERegressor(mean_penalty=1.0), ERMClassifier()], ids=repr
)
def test_fitting_neither_modifies_nor_copies_the_features(monkeypatch, head, order):
    X = np.random.default_rng(0).normal(size=(8_000, 40))
    y = np.sign(X[:, 0]) if "Classifier" in type(head).__name__ else X[:, 0].copy()
    domains = np.repeat([0, 1], 4_000) if order == "contiguous" else np.tile([0, 1], 4_000)
    before = X.copy()
    rows_at_a_time(monkeypatch, 256)
    monkeypatch.setattr("skdare.fitting.lagrangian._SMALL_DOMAIN", 0)
    tracemalloc.start()
    head.fit(X, y, domains=domains)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * X.nbytes
    np.testing.assert_array_equal(X, before)


# -- Coordinates -------------------------------------------------------------------------------


def coordinates(*, intercept, gains, library="numpy"):
    rng = np.random.default_rng(9)
    span = np.linalg.qr(rng.normal(size=(5, 2)))[0]
    parts = (np.linspace(-2, 2, 5), span, np.array(gains))
    return Coordinates(intercept, *(held_in(library, part) for part in parts))


@intercepts
@libraries
def test_a_gradient_in_flat_parameters_is_the_transpose_of_unpacking_them(library, intercept):
    at = coordinates(intercept=intercept, gains=[0.3, 0.0], library=library)
    rng = np.random.default_rng(1)
    theta, G, g = rng.normal(size=3 * (5 + intercept)), rng.normal(size=(5, 3)), rng.normal(size=3)
    B, b = (to_numpy(part) for part in at.unpack(held_in(library, theta)))
    back = to_numpy(at.gradient(held_in(library, G), held_in(library, g)))
    assert np.sum(B * G) + b @ g == pytest.approx(theta @ back, rel=1e-12)


@intercepts
def test_packing_weights_undoes_unpacking_parameters(intercept):
    at = coordinates(intercept=intercept, gains=[0.3, 2.0])
    theta = np.random.default_rng(1).normal(size=3 * (5 + intercept))
    np.testing.assert_allclose(at.pack(*at.unpack(theta)), theta, atol=1e-13)


def test_gains_of_zero_hold_the_constraint_for_any_parameters():
    at = coordinates(intercept=True, gains=[0.0, 0.0])
    B, b = at.unpack(np.random.default_rng(1).normal(size=18))
    assert np.abs(at.span.T @ B).max() < 1e-14 < np.abs(B).max()
    again, _ = at.unpack(at.pack(B + at.span @ np.ones((2, 3)), b))  # the nearest that holds it
    np.testing.assert_allclose(again, B, atol=1e-13)


# -- Losses ------------------------------------------------------------------------------------

LOSSES = {"classification": (Softmax(), 3), "binary": (Logistic(), 1), "regression": (Squared(), 1)}


def scored(task, n=9):
    rng = np.random.default_rng(3)
    k = LOSSES[task][1]
    T = rng.normal(size=n) if task == "regression" else rng.integers(0, max(k, 2), n)
    return 2 * rng.normal(size=(n, k)), T


@tasks
@libraries
def test_losses_and_residuals_are_those_of_the_paper(task, library):
    F, T = scored(task)
    loss = LOSSES[task][0]
    held = held_in(library, F)
    values, R = loss.value_and_residual(held.T, held_in(library, T))
    expected = [paper.loss(task, f, t) for f, t in zip(F, T, strict=True)]
    np.testing.assert_allclose(to_numpy(values), expected, rtol=1e-12)

    def total(flat):
        return sum(paper.loss(task, f, t) for f, t in zip(flat.reshape(F.shape), T, strict=True))

    numerical = numerical_jacobian(total, F.ravel()).reshape(F.shape)
    np.testing.assert_allclose(to_numpy(R).T, numerical, atol=1e-8)


@tasks
@libraries
def test_class_numbers_equal_their_probabilities(task, library):
    F, T = scored(task)
    loss, k = LOSSES[task]
    soft = np.eye(k)[T] if task == "classification" else T[:, None].astype(float)
    held = held_in(library, F)
    hard = loss.value_and_residual(held.T, held_in(library, T))
    for ours, theirs in zip(
        hard, loss.value_and_residual(held.T, held_in(library, soft)), strict=True
    ):
        np.testing.assert_allclose(to_numpy(ours), to_numpy(theirs), rtol=0, atol=1e-14)


@tasks
def test_an_uninformative_target_is_that_of_scores_that_are_all_the_same(task):
    loss, k = LOSSES[task]
    T = np.full((1, k), loss.uninformative(k))
    _, R = loss.value_and_residual(np.zeros((k, 1)), T)
    np.testing.assert_allclose(R, 0.0, atol=1e-15)


@pytest.mark.parametrize("task", TASKS[:2])
@pytest.mark.parametrize("size", [1e3, 1e6, 1e300])
def test_scores_of_any_size_give_finite_losses(task, size):
    F, T = scored(task)
    with np.errstate(all="raise", under="ignore"):
        values, R = LOSSES[task][0].value_and_residual(size * np.sign(F).T, T)
    assert np.all(np.isfinite(values))
    assert np.abs(R).max() <= 1.0


def test_many_problems_on_the_same_rows_are_one_more_axis():
    for task, (loss, _) in LOSSES.items():
        F, T = scored(task)
        stacked = np.stack([F.T, 2 * F.T])
        values, R = loss.value_and_residual(stacked.copy(), T)
        for number in range(2):
            alone = loss.value_and_residual(stacked[number].copy(), T)
            np.testing.assert_array_equal(values[number], alone[0])
            np.testing.assert_array_equal(R[number], alone[1])


def test_a_block_without_an_intercept_has_no_gradient_in_it():
    objective = objective_of(make_problem("binary"), penalty=5.0)
    [pseudo] = [block for block in objective.blocks if not block.intercept]
    B, b = np.ones((5, 1)), np.array([7.0])
    alone = replace(objective, blocks=[pseudo])
    [sums] = alone.by_block(B, b)
    [same] = alone.by_block(B, 0.0 * b)
    assert sums.value == same.value
    np.testing.assert_array_equal(sums.g, [0.0])
