"""Solvers reach the same minimum, and say how they ended."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy import optimize

from skdare.solvers import SOLVERS, Status, minimax

ITERATIVE = ("lbfgs", "trust-ncg")


@dataclass
class Quadratic:
    """½ θᵀHθ - cᵀθ with a known minimum."""

    H: np.ndarray
    c: np.ndarray

    @classmethod
    def made(cls, m=12, condition=1e3):
        rng = np.random.default_rng(0)
        Q = np.linalg.qr(rng.normal(size=(m, m)))[0]
        return cls((Q * np.geomspace(1, condition, m)) @ Q.T, rng.normal(size=m))

    @property
    def size(self):
        return len(self.c)

    def value_and_gradient(self, theta):
        return 0.5 * theta @ self.H @ theta - self.c @ theta, self.H @ theta - self.c

    def hessian_product(self, theta):
        return lambda direction: self.H @ direction

    def hessian(self):
        return self.H


@dataclass
class Breaks(Quadratic):
    """A quadratic that stops being finite after some evaluations, and remembers the good ones."""

    after: int = 4
    broken: float = np.nan
    seen: list = field(default_factory=list)

    def value_and_gradient(self, theta):
        value, gradient = super().value_and_gradient(theta)
        if len(self.seen) >= self.after:
            return self.broken, gradient
        self.seen.append((value, theta.copy()))
        return value, gradient


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_finds_the_minimum_of_a_quadratic(solver):
    function = Quadratic.made()
    solution = SOLVERS[solver](function, np.ones(function.size), tol=1e-6, max_iter=1000)
    assert solution.status is Status.CONVERGED
    assert solution.gradient_norm <= 1e-6  # so the distance is at most ‖g‖, as H ≥ I
    np.testing.assert_allclose(solution.theta, np.linalg.solve(function.H, function.c), atol=4e-6)
    assert solution.value == pytest.approx(function.value_and_gradient(solution.theta)[0])


@pytest.mark.parametrize("intercept", [True, False])
def test_newton_and_lbfgs_reach_the_same_minimum(problem, objective_of, intercept):
    objective = objective_of(problem, intercept=intercept, l2=1e-2)
    names = SOLVERS if problem.task == "regression" else ITERATIVE
    start = np.random.default_rng(1).normal(size=objective.size)
    solutions = [SOLVERS[s](objective, start, tol=1e-9, max_iter=1000) for s in names]
    assert all(s.converged for s in solutions)
    for solution in solutions[1:]:
        assert solution.value == pytest.approx(solutions[0].value, rel=1e-12)
        np.testing.assert_allclose(solution.theta, solutions[0].theta, atol=1e-6)


def test_directions_in_which_a_quadratic_is_flat_keep_the_value_zero():
    H, c = np.diag([2.0, 0.0, 1.0]), np.array([2.0, 0.0, 3.0])
    solution = SOLVERS["direct"](Quadratic(H, c), np.full(3, 7.0), tol=1e-8, max_iter=1)
    np.testing.assert_allclose(solution.theta, [1.0, 0.0, 3.0], atol=1e-12)


@pytest.mark.parametrize("solver", ITERATIVE)
def test_a_solver_that_runs_out_of_iterations_says_so(solver, three_classes, objective_of):
    objective = objective_of(three_classes, l2=1e-3)
    zero = np.zeros(objective.size)
    solution = SOLVERS[solver](objective, zero, tol=1e-10, max_iter=2)
    assert solution.status is Status.ITERATION_LIMIT
    assert not solution.converged
    assert solution.n_iter == 2
    assert solution.value < objective.value_and_gradient(zero)[0]
    assert "raise max_iter" in solution.status.value


@pytest.mark.parametrize("broken", [np.nan, np.inf])
@pytest.mark.parametrize("solver", ITERATIVE)
def test_a_solver_that_meets_nan_keeps_the_best_finite_iterate(solver, broken):
    quadratic = Quadratic.made()
    function = Breaks(quadratic.H, quadratic.c, broken=broken)
    solution = SOLVERS[solver](function, np.ones(function.size), tol=1e-8, max_iter=1000)
    value, theta = min(function.seen, key=lambda pair: pair[0])
    assert solution.status is Status.DIVERGED
    assert not solution.converged
    assert solution.value == value
    np.testing.assert_array_equal(solution.theta, theta)


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_solver_returns_nan_as_a_result(solver):
    quadratic = Quadratic.made()
    function = Breaks(np.full_like(quadratic.H, np.nan), quadratic.c, after=0)
    with pytest.raises(FloatingPointError, match="not finite"):
        SOLVERS[solver](function, np.ones(function.size), tol=1e-8, max_iter=1000)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_tolerance_below_rounding_ends_at_rounding(solver):
    function = Quadratic.made()
    solution = SOLVERS[solver](function, np.ones(function.size), tol=1e-300, max_iter=1000)
    assert solution.status is Status.PRECISION
    assert solution.converged
    np.testing.assert_allclose(solution.theta, np.linalg.solve(function.H, function.c), atol=1e-5)


@pytest.mark.parametrize("solver", ITERATIVE)
def test_a_tolerance_below_the_rounding_of_float32_features_ends_at_rounding(
    solver, problem, objective_of
):
    objective = objective_of(problem, dtype="float32")
    start = np.zeros(objective.size)
    solution = SOLVERS[solver](objective, start, tol=1e-13, max_iter=500)
    exact = SOLVERS[solver](objective_of(problem), start, tol=1e-10, max_iter=500)
    assert solution.converged
    assert solution.value == pytest.approx(exact.value, rel=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_start_is_not_modified(solver):
    function, start = Quadratic.made(), np.ones(12)
    SOLVERS[solver](function, start, tol=1e-8, max_iter=1000)
    np.testing.assert_array_equal(start, np.ones(12))


def worst_case(objective, theta):
    """max_e L_e + ridge, the function that the minimax minimises."""
    B, _ = objective.coordinates.unpack(theta)
    return objective.block_losses(theta).max() + 0.5 * objective.l2 * np.sum(B**2)


def epigraph_minimum(objective):
    """min t + ridge subject to L_e(θ) <= t, by a general-purpose constrained solver."""
    m, E = objective.size, len(objective.blocks)
    ridge = objective.weighted([0.0] * E)

    def slack_gradient(x):
        rows = [objective.weighted(q).value_and_gradient(x[:m])[1] for q in np.eye(E)]
        rows = np.array(rows) - ridge.value_and_gradient(x[:m])[1]
        return np.hstack([-rows, np.ones((E, 1))])

    def value(x):
        value, gradient = ridge.value_and_gradient(x[:m])
        return value + x[m], np.append(gradient, 1.0)

    start = np.append(np.zeros(m), objective.block_losses(np.zeros(m)).max())
    slack = {"type": "ineq", "fun": lambda x: x[m] - objective.block_losses(x[:m])}
    slack["jac"] = slack_gradient
    options = {"maxiter": 500, "ftol": 1e-14}
    return optimize.minimize(
        value, start, jac=True, method="SLSQP", constraints=slack, options=options
    )


EVEN = np.full(3, 1 / 3)
STEPS = {"exact": None, "exponentiated gradient": 3.0}
SOLVED_ONCE = pytest.mark.xdist_group("minimax")  # where tests run side by side


@pytest.fixture(scope="module", params=["classification", "binary", "regression"])
def family(request, make, objective_of):
    """Block losses on the same footing: the mean loss of each domain, no penalty."""
    return objective_of(make(request.param), penalty=0.0, adjusted=False, l2=0.05)


@pytest.fixture(scope="module")
def solved(family):
    """The solution and the worst-case weights by each rule."""
    options = {"tol": 1e-7, "max_iter": 300}
    start = np.zeros(family.size)
    return {
        rule: minimax(family, start, EVEN, step=step, **options) for rule, step in STEPS.items()
    }


@SOLVED_ONCE
@pytest.mark.parametrize("rule", STEPS)
def test_minimax_equals_the_epigraph_solved_by_brute_force(family, solved, rule):
    brute, (solution, _) = epigraph_minimum(family), solved[rule]
    assert brute.success
    assert solution.converged
    assert worst_case(family, solution.theta) == pytest.approx(brute.fun, rel=1e-5)
    np.testing.assert_allclose(solution.theta, brute.x[:-1], atol=1e-2)


@SOLVED_ONCE
@pytest.mark.parametrize("rule", STEPS)
def test_the_worst_case_weights_certify_the_minimax(family, solved, rule):
    solution, q = solved[rule]
    losses = family.block_losses(solution.theta)
    assert q.sum() == pytest.approx(1.0)
    assert q.min() >= 0
    # Complementary slackness: only domains with the worst loss carry weight.
    np.testing.assert_allclose(losses[q > 1e-3], losses.max(), rtol=1e-4)
    # The weighted problem has this solution as its minimum: the dual value is a lower bound.
    assert solution.value == pytest.approx(worst_case(family, solution.theta), rel=1e-5)
    assert np.abs(family.weighted(q).value_and_gradient(solution.theta)[1]).max() < 1e-6


@SOLVED_ONCE
def test_exact_and_exponentiated_gradient_minimax_agree(solved):
    (exact, q), (slow, p) = solved["exact"], solved["exponentiated gradient"]
    np.testing.assert_allclose(slow.theta, exact.theta, atol=1e-2)
    np.testing.assert_allclose(p, q, atol=2e-2)
    assert slow.value == pytest.approx(exact.value, rel=1e-5)


def test_a_minimax_that_runs_out_of_steps_says_so(family):
    solution, _ = minimax(family, np.zeros(family.size), EVEN, tol=1e-7, max_iter=1, step=1e-6)
    assert solution.status is Status.GAP
