"""Solvers reach the same minimum, and say how they ended."""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
from scipy import optimize

from array_libraries import held_in, libraries
from domain_problems import TASKS, make_problem
from posed_problems import objective_of, zero_of
from skdare.arrays import to_numpy
from skdare.solvers.lbfgs import Status, lbfgs, lockstep
from skdare.solvers.minimax import minimax
from skdare.solvers.newton import newton


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

    def __call__(self, theta):
        return float(0.5 * theta @ self.H @ theta - self.c @ theta), self.H @ theta - self.c

    @property
    def minimum(self):
        return np.linalg.solve(self.H, self.c)


@dataclass
class Breaks(Quadratic):
    """A quadratic that stops being finite after some evaluations, and remembers the good ones."""

    after: int = 4
    broken: float = np.nan
    seen: list = field(default_factory=list)

    def __call__(self, theta):
        value, gradient = super().__call__(theta)
        if len(self.seen) >= self.after:
            return self.broken, gradient
        self.seen.append((value, theta.copy()))
        return value, gradient


def by_lbfgs(function, start, *, tol, max_iter=1000):
    return lbfgs(function, start, tol=tol, max_iter=max_iter)


def by_newton(function, start, *, tol, max_iter=1):
    return newton(function, function.H, tol=tol)


SOLVERS = {"lbfgs": by_lbfgs, "newton": by_newton}
solved = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


# -- Minima ------------------------------------------------------------------------------------


@solved
def test_every_solver_finds_the_minimum_of_a_quadratic(solver):
    function = Quadratic.made()
    solution = solver(function, np.ones(12), tol=1e-6)
    assert solution.status is Status.CONVERGED
    assert solution.gradient_norm <= 1e-6
    np.testing.assert_allclose(solution.theta, function.minimum, atol=4e-6)  # as H ≥ I
    assert solution.value == pytest.approx(function(solution.theta)[0])


@libraries
@solved
def test_the_parameters_stay_in_their_library(library, solver):
    function = Quadratic.made()
    held = Quadratic(held_in(library, function.H), held_in(library, function.c))
    start = held_in(library, np.ones(12))
    solution = solver(held, start, tol=1e-6)
    assert type(solution.theta) is type(start)
    np.testing.assert_allclose(to_numpy(solution.theta), function.minimum, atol=4e-6)


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("penalty", [0.0, 10.0, "exact"])
def test_newton_and_lbfgs_reach_the_same_minimum(intercept, penalty):
    data = make_problem("regression")
    objective = objective_of(data, intercept=intercept, penalty=penalty)
    zero = zero_of(objective)
    quadratic = newton(objective, objective.hessian(zero), tol=1e-9)
    descent = lbfgs(objective, zero + 1.0, tol=1e-11, max_iter=1000)
    assert quadratic.converged
    assert descent.converged
    for ours, theirs in zip(
        objective.coordinates.unpack(quadratic.theta),
        objective.coordinates.unpack(descent.theta),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)


@pytest.mark.parametrize("task", TASKS[:2])
def test_lbfgs_reaches_the_minimum_that_scipy_finds(task):
    objective = objective_of(make_problem(task), l2=1e-2)
    zero = zero_of(objective)
    found = lbfgs(objective, zero, tol=1e-9, max_iter=1000)
    theirs = optimize.minimize(objective, zero, jac=True, method="BFGS", options={"gtol": 1e-8})
    assert found.converged
    assert found.value <= theirs.fun + 1e-12
    np.testing.assert_allclose(found.theta, theirs.x, atol=1e-5)


def test_directions_in_which_a_quadratic_is_flat_keep_the_value_zero():
    function = Quadratic(np.diag([2.0, 0.0, 1.0]), np.array([2.0, 0.0, 3.0]))
    solution = newton(function, function.H, tol=1e-8)
    np.testing.assert_allclose(solution.theta, [1.0, 0.0, 3.0], atol=1e-12)


def test_a_coarse_function_may_lead_and_does_not_change_the_minimum():
    function = Quadratic.made()
    calls = []

    def coarse(theta):
        calls.append(theta)
        value, gradient = function(theta)
        return float(np.float16(value)), gradient.astype(np.float16).astype(float)

    solution = lbfgs(function, np.ones(12), tol=1e-8, max_iter=1000, coarse=coarse)
    assert calls
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.theta, function.minimum, atol=1e-7)


def many(m=12):
    """Smooth convex functions of the same parameters."""
    rng = np.random.default_rng(0)
    problems = [(rng.normal(size=(80, m)), rng.normal(size=80)) for _ in range(5)]

    def function(i, theta):
        A, t = problems[i]
        F = A @ theta - t
        root = np.sqrt(1 + F**2)
        return float(root.sum()) + 0.05 * theta @ theta, A.T @ (F / root) + 0.1 * theta

    return function


def test_many_functions_in_lockstep_end_at_the_bits_where_each_ends_alone():
    function = many()
    start = np.zeros(12)
    rounds = []

    def together(numbers, thetas):
        rounds.append(list(numbers))
        return zip(*(function(i, x) for i, x in zip(numbers, thetas, strict=True)), strict=True)

    alone = [lbfgs(partial(function, i), start, tol=1e-8, max_iter=500) for i in range(5)]
    found = lockstep(together, [start] * 5, tol=1e-8, max_iter=500)
    for ours, theirs in zip(found, alone, strict=True):
        np.testing.assert_array_equal(ours.theta, theirs.theta)
        assert (ours.n_iter, ours.status) == (theirs.n_iter, theirs.status)
    assert rounds[0] == [0, 1, 2, 3, 4]
    assert len(rounds[-1]) < 5  # those that are done are not evaluated again


# -- How they end ------------------------------------------------------------------------------


def test_a_solver_that_runs_out_of_iterations_says_so():
    objective = objective_of(make_problem("classification"), l2=1e-3)
    zero = zero_of(objective)
    solution = lbfgs(objective, zero, tol=1e-10, max_iter=2)
    assert solution.status is Status.ITERATION_LIMIT
    assert not solution.converged
    assert solution.n_iter == 2
    assert solution.value < objective(zero)[0]


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_solver_that_meets_what_is_not_finite_keeps_the_best_point(broken):
    quadratic = Quadratic.made()
    function = Breaks(quadratic.H, quadratic.c, broken=broken)
    solution = lbfgs(function, np.ones(12), tol=1e-8, max_iter=1000)
    value, theta = min(function.seen, key=lambda pair: pair[0])
    assert solution.status is Status.STALLED
    assert not solution.converged
    assert solution.value == value
    np.testing.assert_array_equal(solution.theta, theta)


def test_no_solver_returns_nan_as_a_result():
    function = Breaks(np.eye(3), np.ones(3), after=0)
    with pytest.raises(FloatingPointError, match="not finite at the start"):
        lbfgs(function, np.ones(3), tol=1e-8, max_iter=10)


@solved
def test_a_tolerance_below_rounding_ends_at_rounding(solver):
    function = Quadratic.made()
    solution = solver(function, np.ones(12), tol=1e-300)
    assert solution.status is Status.PRECISION
    assert solution.converged
    np.testing.assert_allclose(solution.theta, function.minimum, atol=1e-5)


@pytest.mark.parametrize("task", TASKS)
def test_a_tolerance_below_the_rounding_of_float32_rows_ends_at_rounding(task):
    data = make_problem(task)
    objective, exact = objective_of(data, dtype="float32"), objective_of(data)
    zero = zero_of(objective)
    solution = lbfgs(objective, zero, tol=1e-13, max_iter=500)
    assert solution.converged
    best = lbfgs(exact, zero, tol=1e-10, max_iter=500)
    assert solution.value == pytest.approx(best.value, rel=1e-6)


@solved
def test_the_start_is_not_modified(solver):
    start = np.ones(12)
    solver(Quadratic.made(), start, tol=1e-8)
    np.testing.assert_array_equal(start, np.ones(12))


def test_a_start_at_the_minimum_stays_there():
    function = Quadratic(np.eye(3), np.ones(3))
    solution = lbfgs(function, np.ones(3), tol=1e-8, max_iter=10)
    assert (solution.n_iter, solution.status) == (0, Status.CONVERGED)


def test_every_status_names_the_cause_and_every_failure_a_remedy():
    for status in Status:
        cause, _, remedy = status.value.partition("; ")
        assert cause.startswith(("converged", "stopped"))
        assert bool(remedy) is cause.startswith("stopped")


# -- The smallest worst loss -------------------------------------------------------------------


@dataclass
class Family:
    """Several quadratics with a common ridge."""

    parts: list

    def losses(self, theta):
        return np.array([part(theta)[0] for part in self.parts])

    def weighted(self, q):
        def function(theta):
            values, gradients = zip(*(part(theta) for part in self.parts), strict=True)
            ridge = 0.05 * theta @ theta
            return q @ np.array(values) + ridge, q @ np.array(gradients) + 0.1 * theta

        return function


@pytest.fixture(scope="module")
def family():
    rng = np.random.default_rng(1)
    parts = [Quadratic(np.diag(rng.uniform(0.5, 3, 4)), rng.normal(size=4)) for _ in range(3)]
    return Family(parts)


@pytest.fixture(scope="module")
def worst_case(family):
    even = np.full(3, 1 / 3)
    return minimax(family.weighted, family.losses, np.zeros(4), even, tol=1e-9, max_iter=300)


def test_minimax_is_the_epigraph_solved_by_brute_force(family, worst_case):
    solution, _ = worst_case
    slack = {"type": "ineq", "fun": lambda x: x[4] - family.losses(x[:4])}
    brute = optimize.minimize(
        lambda x: x[4] + 0.05 * x[:4] @ x[:4],
        np.ones(5),
        constraints=slack,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert solution.converged
    np.testing.assert_allclose(solution.theta, brute.x[:4], atol=1e-4)


def test_the_worst_case_weights_certify_the_minimax(family, worst_case):
    solution, q = worst_case
    losses = family.losses(solution.theta)
    assert q.sum() == pytest.approx(1.0)
    assert q.min() >= 0
    # Complementary slackness: only domains with the worst loss carry weight.
    np.testing.assert_allclose(losses[q > 1e-3], losses.max(), atol=1e-4)
    # The weighted problem has this solution as its minimum: the dual value is a lower bound.
    assert np.abs(family.weighted(q)(solution.theta)[1]).max() < 1e-6


def test_a_minimax_that_runs_out_of_steps_says_so(family):
    uneven = np.array([1.0, 0.0, 0.0])
    solution, _ = minimax(family.weighted, family.losses, np.zeros(4), uneven, tol=1e-9, max_iter=1)
    assert solution.status is Status.GAP
    assert not solution.converged
