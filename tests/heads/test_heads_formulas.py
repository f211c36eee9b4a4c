"""Every head is the minimum of its formula, computed in another way."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.utils import compute_class_weight

import paper_formulas as paper
from domain_problems import TASKS, assert_same_head, head_for, make_problem
from skdare import (
    AnchorRegressor,
    DAREClassifier,
    DARERegressor,
    ERMClassifier,
    ERMRegressor,
    GroupDROClassifier,
    IRMClassifier,
    ReweightedClassifier,
)

EXACT = {"tol": 1e-9, "max_iter": 5000}
CLASSES = ("classification", "binary")
WHITENINGS = [
    {"shrinkage": 0.1, "shrinkage_target": "identity", "centered": False},  # as the paper prints it
    {"shrinkage": 0.5, "shrinkage_target": "scaled", "centered": False},
    {"shrinkage": 0.0, "shrinkage_target": "scaled", "centered": True},
    {"shrinkage": 0.3, "shrinkage_target": "diagonal", "centered": True},
    {"shrinkage": 1.0, "shrinkage_target": "diagonal", "centered": False},
]
whitenings = pytest.mark.parametrize(
    "whitening", WHITENINGS, ids=lambda w: "-".join(map(str, w.values()))
)


def dense(adjustment, d=5):
    return adjustment.apply(np.eye(d))


def canonical_weights(head):
    """B of coef_ = (W B)ᵀ."""
    V = np.atleast_2d(head.coef_).T
    return np.linalg.solve(dense(head.adjustment_, len(V)), V)


def ridge_of(domains, whitening, l2):
    target, centered = whitening["shrinkage_target"], whitening["centered"]
    return paper.ridge(domains, l2, shrinkage_target=target, centered=centered)


# -- ERM and its relatives -----------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("l2", [1e-3, 1.0])
@pytest.mark.parametrize("task", CLASSES)
def test_erm_is_logistic_regression(task, l2, intercept):
    problem = make_problem(task)
    n = len(problem.y)
    head = problem.fit(ERMClassifier(l2=l2, fit_intercept=intercept, **EXACT))
    ridge = l2 * problem.X.var(axis=0).mean()  # l2 acts in units where that is one
    coef, b = paper.logistic_regression(
        problem.X, problem.y, np.full(n, 1 / n), ridge, intercept=intercept
    )
    np.testing.assert_allclose(head.coef_, coef, atol=2e-5)
    np.testing.assert_allclose(np.diff(head.intercept_), np.diff(b), atol=1e-4)


@pytest.mark.parametrize("intercept", [True, False])
def test_erm_of_numbers_is_ridge_regression(intercept):
    problem = make_problem("regression")
    n = len(problem.y)
    head = problem.fit(ERMRegressor(l2=0.3, fit_intercept=intercept, **EXACT))
    alpha = 0.3 * n * problem.X.var(axis=0).mean()
    expected = Ridge(alpha, fit_intercept=intercept).fit(problem.X, problem.y)
    np.testing.assert_allclose(head.coef_, expected.coef_, rtol=1e-8)
    assert head.intercept_ == pytest.approx(expected.intercept_, abs=1e-8)


@pytest.mark.filterwarnings("ignore:all rows are of domain 'one'")
@pytest.mark.parametrize("family", ["Reweighted", "GroupDRO", "IRM"])
@pytest.mark.parametrize("task", CLASSES)
def test_with_one_domain_every_baseline_is_erm(task, family):
    problem = make_problem(task)
    options = {"penalty": 0.0} if family == "IRM" else {}
    heads = [head_for(task, family, **options, **EXACT), head_for(task, "ERM", **EXACT)]
    for head in heads:
        head.fit(problem.X, problem.y, domains=["one"] * len(problem.y))
    assert_same_head(*heads, atol=1e-6)


@pytest.mark.parametrize("task", CLASSES)
def test_reweighted_weighs_each_row_by_one_over_the_size_of_its_domain(task):
    problem = make_problem(task)
    weight = np.array([1 / len(problem.rows(label)) for label in problem.domains.tolist()])
    head = problem.fit(ReweightedClassifier(l2=0.02, **EXACT))
    ridge = 0.02 * problem.X.var(axis=0).mean()
    coef, _ = paper.logistic_regression(
        problem.X, problem.y, weight / len(problem.labels), ridge, intercept=True
    )
    np.testing.assert_allclose(head.coef_, coef, atol=5e-4)


@pytest.mark.parametrize("task", CLASSES)
def test_irm_without_a_penalty_is_reweighted(task):
    problem = make_problem(task)
    irm = problem.fit(IRMClassifier(penalty=0.0, **EXACT))
    assert_same_head(irm, problem.fit(ReweightedClassifier(**EXACT)), atol=1e-6)


def domain_losses(problem, head):
    """The mean loss on each domain, row by row."""
    losses = []
    for X, y in zip(*problem.parts(), strict=True):
        F = X @ head.coef_.T + head.intercept_
        losses.append(np.mean([paper.loss(problem.task, f, t) for f, t in zip(F, y, strict=True)]))
    return np.array(losses)


@pytest.mark.parametrize("task", CLASSES)
def test_group_dro_lowers_the_worst_loss_and_evens_out_the_domains_it_weighs(task):
    problem = make_problem(task)
    options = {"l2": 1e-3, "tol": 1e-7}
    robust = problem.fit(GroupDROClassifier(**options))
    losses = domain_losses(problem, robust)
    even = domain_losses(problem, problem.fit(ReweightedClassifier(**options)))
    assert losses.max() < even.max()
    weights = robust.domain_weights_
    assert sum(weights.values()) == pytest.approx(1.0)
    weighed = np.array([weights[label] for label in problem.labels]) > 1e-2
    np.testing.assert_allclose(losses[weighed], losses.max(), rtol=1e-3)


def test_group_dro_is_the_minimum_of_the_largest_loss():
    problem = make_problem("binary")
    head = problem.fit(GroupDROClassifier(l2=0.05, tol=1e-8))
    unit = problem.X.var(axis=0).mean()
    signs = 2.0 * problem.y - 1.0
    rows = [problem.rows(label) for label in problem.labels]

    def losses(theta):
        F = problem.X @ theta[:-1] + theta[-1]
        each = np.logaddexp(0.0, -signs * F)
        return np.array([each[i].mean() for i in rows]) + 0.025 * unit * theta[:-1] @ theta[:-1]

    start = np.append(head.coef_[0], head.intercept_)
    best = optimize.minimize(
        lambda z: z[-1],
        np.append(0.0 * start, 1.0),
        constraints={"type": "ineq", "fun": lambda z: z[-1] - losses(z[:-1])},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert losses(start).max() == pytest.approx(best.fun, rel=1e-6)


def test_irm_is_a_stationary_point_of_its_risk():
    problem = make_problem("binary")
    head = problem.fit(IRMClassifier(penalty=0.7, l2=0.05, **EXACT))
    unit = problem.X.var(axis=0).mean()
    rows = [problem.rows(label) for label in problem.labels]

    def risk(theta):
        total = 0.0
        for i in rows:
            F = problem.X[i] @ theta[:-1] + theta[-1]
            p = 1 / (1 + np.exp(-F))
            value = np.mean(np.logaddexp(0.0, F) - problem.y[i] * F)
            # The gradient in a last layer (scale and offset) on the scores, at (1, 0).
            slope = np.mean((p - problem.y[i]) * F)
            total += value + 0.7 * slope**2
        return total / len(rows) + 0.025 * unit * theta[:-1] @ theta[:-1]

    theta = np.append(head.coef_[0], head.intercept_)
    steps = 1e-5 * np.eye(len(theta))
    gradient = np.array([(risk(theta + s) - risk(theta - s)) / 2e-5 for s in steps])
    assert np.abs(gradient).max() < 1e-5


# -- Class weights -------------------------------------------------------------------------------


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 5.0}, {0: 0.2, 1: 3.0}])
@pytest.mark.parametrize("task", CLASSES)
def test_class_weights_are_those_of_scikit_learn(task, class_weight):
    problem = make_problem(task)
    head = problem.fit(ERMClassifier(l2=0.05, class_weight=class_weight, **EXACT))
    factors = np.ones(len(problem.y))
    if class_weight is not None:
        classes = np.unique(problem.y)
        values = compute_class_weight(class_weight, classes=classes, y=problem.y)
        factors = values[problem.y]
    C = 1.0 / (0.05 * problem.X.var(axis=0).mean() * factors.sum())
    expected = LogisticRegression(C=C, class_weight=class_weight, tol=1e-10, max_iter=10_000)
    np.testing.assert_allclose(head.coef_, expected.fit(problem.X, problem.y).coef_, atol=2e-5)


@pytest.mark.parametrize("family", ["ERM", "Reweighted", "GroupDRO", "IRM", "DARE"])
def test_one_weight_for_all_classes_changes_nothing(family):
    problem = make_problem("classification")
    plain = problem.fit(head_for("classification", family, **EXACT))
    weights = dict.fromkeys(range(3), 3.0)
    even = problem.fit(head_for("classification", family, class_weight=weights, **EXACT))
    assert_same_head(even, plain, atol=1e-6)


def test_moments_of_domains_take_no_class_weights():
    problem = make_problem("classification")
    plain = problem.fit(DAREClassifier())
    heavy = problem.fit(DAREClassifier(class_weight={0: 50.0}))
    assert np.abs(heavy.coef_ - plain.coef_).max() > 1e-3
    for label, moments in plain.moments_.items():
        np.testing.assert_array_equal(heavy.moments_[label].mean, moments.mean)
    assert np.mean(heavy.predict(problem.X) == 0) > np.mean(plain.predict(problem.X) == 0)


# -- DARE: the Lagrangian ------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [0.0, 1.0, 100.0])
@whitenings
@pytest.mark.parametrize("task", CLASSES)
def test_dare_is_logistic_regression_on_whitened_rows_and_pseudo_rows(task, whitening, penalty):
    problem = make_problem(task)
    domains, targets = problem.parts()
    k = 1 + int(problem.y.max())
    roots = paper.adjustments(domains, **whitening)
    rows, labels, weight = [], [], []
    for X, y, W in zip(domains, targets, roots, strict=True):
        rows += [X @ W, np.repeat([X.mean(axis=0) @ W], k, axis=0)]
        labels += [y, np.arange(k)]
        weight += [np.full(len(y), 1 / (3 * len(y))), np.full(k, penalty / (3 * k))]
    stacked = [np.concatenate(part) for part in (rows, labels, weight)]
    B = paper.logistic_regression(*stacked, ridge_of(domains, whitening, 0.01), intercept=False)[0]
    head = DAREClassifier(
        l2=0.01, mean_penalty=penalty, fit_intercept=False, adaptation=None, **whitening, **EXACT
    )
    expected = np.mean(roots, axis=0) @ B.T
    np.testing.assert_allclose(problem.fit(head).coef_.T, expected, rtol=0, atol=3e-5)


@pytest.mark.parametrize("intercept", [True, False])
@whitenings
@pytest.mark.parametrize("task", TASKS)
def test_the_value_of_a_solution_is_the_lagrangian_and_no_step_lowers_it(
    task, whitening, intercept
):
    problem = make_problem(task)
    domains, targets = problem.parts()
    options = {"l2": 0.05, "mean_penalty": 2.0, "adaptation": None, **whitening, **EXACT}
    head = problem.fit(head_for(task, "DARE", fit_intercept=intercept, **options))
    B, b = canonical_weights(head), np.atleast_1d(head.intercept_)
    if task == "regression":  # targets are standardised, so that l2 has no unit
        centre = np.mean([y.mean() for y in targets]) if intercept else 0.0
        spread = np.sqrt(np.mean((problem.y - centre) ** 2))
        B, b, targets = B / spread, np.zeros(1), [(y - centre) / spread for y in targets]
    roots = paper.adjustments(domains, **whitening)
    settings = {"penalty": 2.0, "l2": ridge_of(domains, whitening, 0.05)}
    settings["centered_rows"] = task == "regression"

    def value(B, b):
        return paper.lagrangian(task, domains, targets, roots, B, b, **settings)

    least = value(B, b)
    rng = np.random.default_rng(0)
    assert head.solution_.value == pytest.approx(least, rel=1e-9)
    assert all(value(B + 1e-3 * rng.normal(size=B.shape), b) > least for _ in range(2))
    if intercept and task != "regression":
        assert min(value(B, b + 1e-3 * np.eye(B.shape[1])[0] * sign) for sign in (1, -1)) > least


@pytest.mark.parametrize("task", TASKS)
def test_as_in_paper_has_the_papers_objective(task):
    problem = make_problem(task)
    domains, targets = problem.parts()
    kind = type(head_for(task, "DARE"))
    head = problem.fit(kind.as_in_paper(adaptation=None, **EXACT))
    roots = paper.adjustments(domains, **WHITENINGS[0])
    np.testing.assert_allclose(dense(head.adjustment_), np.mean(roots, axis=0), atol=1e-10)
    B, b = canonical_weights(head), np.atleast_1d(head.intercept_)
    if task == "regression":
        b = np.array([np.mean([y.mean() for y in targets])])
    settings = {"penalty": 1.0, "l2": 0.0, "centered_rows": task == "regression"}
    least = paper.lagrangian(task, domains, targets, roots, B, b, **settings)
    rng = np.random.default_rng(0)
    for _ in range(3):
        other = B + 1e-3 * rng.normal(size=B.shape)
        assert paper.lagrangian(task, domains, targets, roots, other, b, **settings) > least


def test_options_may_be_given_in_place_of_the_papers():
    head = DAREClassifier.as_in_paper(shrinkage=0.01, l2=1e-4)
    assert (head.shrinkage, head.l2, head.shrinkage_target) == (0.01, 1e-4, "identity")


@pytest.mark.parametrize("task", TASKS)
def test_dare_that_neither_whitens_by_domain_nor_minds_the_means_is_reweighted(task):
    # Where all domains are alike every whitening is the same, and every head one problem.
    rng = np.random.default_rng(0)
    problem = make_problem(task)
    X = np.tile(problem.X[:60], (3, 1))
    y = np.tile(problem.y[:60], 3)
    domains = np.repeat([0, 1, 2], 60)
    order = rng.permutation(180)
    options = {"l2": 0.1, "fit_intercept": task != "regression", **EXACT}
    dare = head_for(task, "DARE", shrinkage=1.0, mean_penalty=0.0, centered=True, **options)
    if task == "regression":
        X = X - X.mean(axis=0)  # equation (3) takes each domain's mean from its rows
    dare.fit(X[order], y[order], domains=domains[order])
    erm = head_for(task, "ERM", **options).fit(X[order], y[order])
    assert_same_head(dare, erm, atol=1e-5)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_without_a_guess_and_a_penalty_dare_is_erm_until_it_adapts(task, intercept):
    problem = make_problem(task)
    options = {"fit_intercept": intercept, **EXACT}
    head = problem.fit(head_for(task, "DARE", mean_penalty=None, guess=None, **options))
    erm = problem.fit(head_for(task, "ERM", **options))
    assert_same_head(head, erm, atol=1e-6)
    new = problem.X[problem.rows("north")]
    guessing = problem.fit(head_for(task, "DARE", mean_penalty=1.0, guess="mean", **options))
    adapted, other = (one.adapt(new, prior_rows=0) for one in (head, guessing))
    assert np.abs(adapted.coef_ - erm.coef_).max() > 1e-2
    assert_same_head(adapted, other, atol=1e-6)


def test_a_regressor_whitens_nothing_before_it_adapts():
    problem = make_problem("regression")
    assert_same_head(problem.fit(DARERegressor()), problem.fit(ERMRegressor()), atol=1e-6)


# -- The constraint on the means -----------------------------------------------------------------


def predictions_at_means(head, problem):
    """B at the adjusted mean of each domain."""
    B = canonical_weights(head)
    pairs = [(head.adjustments_[e], head.moments_[e].mean) for e in problem.labels]
    return np.array([dense(W).T @ mean @ B for W, mean in pairs])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_a_large_penalty_approaches_the_exact_constraint(task, intercept):
    # Few features and many rows: no direction of the means passes for noise.
    rng = np.random.default_rng(0)
    domains = np.repeat([0, 1, 2], 400)
    X = rng.normal(size=(1200, 5)) + 2.0 * rng.normal(size=(3, 5))[domains]
    F = X @ rng.normal(size=(5, 3)) + rng.gumbel(size=(1200, 3))
    y = {"classification": F.argmax(axis=1), "binary": F[:, 0] > 0, "regression": F[:, 0]}[task]

    def weights(penalty):
        options = {"mean_penalty": penalty, "fit_intercept": intercept, "adaptation": None}
        return head_for(task, "DARE", **options, **EXACT).fit(X, y, domains=domains)

    exact = weights("exact")
    B = canonical_weights(exact)
    at_means = [dense(exact.adjustments_[e]).T @ exact.moments_[e].mean @ B for e in range(3)]
    assert np.abs(at_means).max() < 1e-9
    distances = [np.abs(weights(10.0**p).coef_ - exact.coef_).max() for p in (0, 2, 4, 6)]
    assert all(b < a for a, b in itertools.pairwise(distances))
    assert distances[-1] < 1e-4 * np.abs(exact.coef_).max()


def test_an_exact_constraint_that_leaves_nothing_is_refused():
    rng = np.random.default_rng(0)
    domains = np.repeat(np.arange(6), 2000)
    X = rng.normal(size=(12000, 3)) + rng.normal(size=(6, 3))[domains]
    with pytest.raises(ValueError, match="leaves nothing to predict from"):
        DAREClassifier(mean_penalty="exact").fit(X, X[:, 0] > 0, domains=domains)


def test_an_exact_constraint_on_means_that_are_noise_has_no_effect():
    rng = np.random.default_rng(0)
    X, domains = rng.normal(size=(90, 3)), np.repeat(np.arange(3), 30)
    with pytest.warns(UserWarning, match="noise.*use a number"):
        DAREClassifier(mean_penalty="exact").fit(X, X[:, 0] > 0, domains=domains)


@pytest.mark.parametrize("guess", ["mean", "covariance", {"north": 3.0, "west": 1.0}], ids=str)
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_an_unseen_domain_is_adjusted_by_the_guess(task, centered, guess):
    problem = make_problem(task)
    options = {"mean_penalty": 1.0, "centered": centered, "shrinkage": 0.5, "adaptation": None}
    domains, _ = problem.parts()
    B = canonical_weights(problem.fit(head_for(task, "DARE", **options, guess="mean")))
    shrunk = [paper.second_moment(X, centered=centered) for X in domains]
    shrunk = [0.5 * S + 0.5 * np.trace(S) / len(S) * np.eye(len(S)) for S in shrunk]
    roots = [paper.inverse_root(S) for S in shrunk]
    W = np.average(roots, axis=0, weights=[3.0, 0.0, 1.0] if isinstance(guess, dict) else None)
    if guess == "covariance":
        W = paper.inverse_root(np.mean(shrunk, axis=0))
    head = problem.fit(head_for(task, "DARE", guess=guess, **options))
    np.testing.assert_allclose(np.atleast_2d(head.coef_).T, W @ B, atol=1e-10)


# -- Theorem 1: closed forms ---------------------------------------------------------------------

THEORY = {"shrinkage": 0.0, "centered": True, "l2": 0.0, "adaptation": None}


def exact_regression(noise, n=120, d=6):
    """A regression problem whose sample moments are the population's, with its β and means b."""
    rng = np.random.default_rng(0)
    beta, b = rng.normal(size=d), rng.normal(size=(d, 3))
    X, y = [], []
    for mean in b.T:
        latent = rng.normal(size=(n, d))
        latent -= latent.mean(axis=0)
        latent = latent @ paper.inverse_root(latent.T @ latent / n) + mean
        U = np.linalg.qr(rng.normal(size=(d, d)))[0]
        design = np.column_stack([latent, np.ones(n)])
        error = rng.normal(size=n)
        error -= design @ np.linalg.lstsq(design, error, rcond=None)[0]
        X.append(latent @ (U * rng.uniform(0.3, 3, size=d)) @ U.T)
        y.append(latent @ beta + noise * error)
    return np.concatenate(X), np.concatenate(y), np.repeat([0, 1, 2], n), beta, b


@pytest.mark.parametrize("penalty", [0.0, 1.0, 50.0])
def test_penalised_dare_regression_shrinks_the_true_weights_along_the_means(penalty):
    X, y, domains, beta, b = exact_regression(noise=1.0)
    head = DARERegressor(mean_penalty=penalty, guess="mean", **THEORY).fit(X, y, domains=domains)
    expected = np.linalg.solve(np.eye(6) + penalty * b @ b.T / 3, beta)
    np.testing.assert_allclose(canonical_weights(head)[:, 0], expected, atol=1e-8)


def test_dare_regression_with_the_exact_constraint_is_the_projection_of_the_true_weights():
    X, y, domains, beta, b = exact_regression(noise=0.0, n=3000)
    head = DARERegressor(mean_penalty="exact", guess="mean", **THEORY).fit(X, y, domains=domains)
    projection = np.eye(6) - b @ np.linalg.pinv(b)
    np.testing.assert_allclose(canonical_weights(head)[:, 0], projection @ beta, atol=1e-7)


@pytest.mark.parametrize("penalty", [None, 1.0])
def test_a_regressor_adapted_by_the_new_covariance_predicts_a_new_domain_exactly(penalty):
    X, y, domains, *_ = exact_regression(noise=0.0)
    new = domains == 2
    options = {**THEORY, "adaptation": "covariance", "fit_intercept": False}
    head = DARERegressor(mean_penalty=penalty, **options).fit(X[~new], y[~new], domains[~new])
    adapted = head.adapt(X[new], prior_rows=0)
    np.testing.assert_allclose(adapted.predict(X[new]), y[new], atol=1e-6)
    assert head.score(X[new], y[new]) < 0.9


@pytest.mark.parametrize("guess", ["mean", {0: 3.0, 2: 1.0}], ids=str)
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_means_by_their_own_adjustments_average_to_the_mean_of_their_mean_targets(penalty, guess):
    X, y, domains, *_ = exact_regression(noise=1.0)
    keep = ~((domains == 1) & (np.arange(len(y)) % 3 == 0))  # unequal sizes
    X, y, domains = X[keep], y[keep], domains[keep]
    head = DARERegressor(mean_penalty=penalty, guess=guess).fit(X, y, domains=domains)
    B = canonical_weights(head)[:, 0]
    at_means = [
        head.moments_[e].mean @ head.adjustments_[e].apply(B[:, None])[:, 0] for e in range(3)
    ]
    goal = np.mean([y[domains == e].mean() for e in range(3)])
    shares = [3, 0, 1] if isinstance(guess, dict) else [1, 1, 1]
    assert np.average(at_means, weights=shares) + head.intercept_ == pytest.approx(goal, abs=1e-9)


# -- Anchor regression ---------------------------------------------------------------------------


@pytest.fixture
def numbers():
    return make_problem("regression")


@pytest.mark.parametrize("penalty", [0.0, 0.3, 1e4])
def test_whitened_anchor_with_zero_target_means_equals_dare_regression(numbers, penalty):
    y = numbers.y.copy()
    for label in numbers.labels:
        y[numbers.rows(label)] -= y[numbers.rows(label)].mean()
    shared = {"l2": 0.03, "shrinkage": 0.3, "centered": True, "fit_intercept": False}
    anchor = AnchorRegressor(gamma=penalty, adjust=True, **shared)
    dare = DARERegressor(mean_penalty=penalty, guess="mean", **shared)
    anchor.fit(numbers.X, y, domains=numbers.domains)
    dare.fit(numbers.X, y, domains=numbers.domains)
    np.testing.assert_allclose(anchor.coef_, dare.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
def test_whitened_anchor_of_gamma_one_equals_dare_that_leaves_the_means_in(numbers, intercept):
    shared = {"l2": 0.03, "shrinkage": 0.3, "centered": True, "fit_intercept": intercept}
    anchor = numbers.fit(AnchorRegressor(gamma=1.0, adjust=True, **shared))
    dare = numbers.fit(DARERegressor(mean_penalty=None, guess="mean", **shared))
    np.testing.assert_allclose(anchor.coef_, dare.coef_, rtol=1e-8, atol=1e-10)
    assert anchor.intercept_ == pytest.approx(dare.intercept_, abs=1e-9)


def test_anchor_of_gamma_one_is_least_squares_in_which_domains_count_the_same(numbers):
    anchor = numbers.fit(AnchorRegressor(gamma=1.0, l2=0.0))
    weight = np.array([1 / len(numbers.rows(label)) for label in numbers.domains.tolist()])
    plain = LinearRegression().fit(numbers.X, numbers.y, sample_weight=weight)
    np.testing.assert_allclose(anchor.coef_, plain.coef_, rtol=1e-8)
    assert anchor.intercept_ == pytest.approx(plain.intercept_)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 7.0])
def test_anchor_minimises_the_objective_of_the_appendix(numbers, gamma):
    def objective(beta):
        total = 0.0
        for X, y in zip(*numbers.parts(), strict=True):
            within = (X - X.mean(axis=0)) @ beta - (y - y.mean())
            total += np.mean(within**2) + gamma * (X.mean(axis=0) @ beta - y.mean()) ** 2
        return total

    anchor = numbers.fit(AnchorRegressor(gamma=gamma, l2=0.0, fit_intercept=False))
    best = optimize.minimize(objective, np.zeros(numbers.X.shape[1]), tol=1e-12)
    assert objective(anchor.coef_) == pytest.approx(best.fun, rel=1e-8)


def test_a_large_gamma_makes_the_mean_residuals_vanish(numbers):
    anchor = numbers.fit(AnchorRegressor(gamma=1e7, l2=0.0))
    for X, y in zip(*numbers.parts(), strict=True):
        assert abs(anchor.predict(X).mean() - y.mean()) < 1e-4


def test_gamma_zero_forgets_the_domain_means(numbers):
    shift = dict(zip(numbers.labels, (5.0, 10.0, 15.0), strict=True))
    shifted = numbers.X + np.array([shift[label] for label in numbers.domains])[:, None]
    anchor = numbers.fit(AnchorRegressor(gamma=0.0, l2=0.0))
    moved = numbers.fit(AnchorRegressor(gamma=0.0, l2=0.0), shifted)
    np.testing.assert_allclose(anchor.coef_, moved.coef_, rtol=1e-6)
