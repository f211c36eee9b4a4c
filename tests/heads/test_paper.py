"""The paper's statements about the heads, each against an independent way to compute it."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import oracle
from skdare import DAREClassifier, DARERegressor

EXACT = {"tol": 1e-9, "max_iter": 5000}


def canonical_weights(head):
    """B of coef_ = (W̄ B)ᵀ."""
    return np.linalg.solve(head.adjustment_.dense(), np.atleast_2d(head.coef_).T)


def logistic_regression(rows, targets, weight, l2, *, intercept):
    """scikit-learn's minimum of Σ w_i ℓ_i + l2/2 ‖B‖², as weights (k, d) and intercept (k,)."""
    model = LogisticRegression(C=1.0 / l2, fit_intercept=intercept, tol=1e-12, max_iter=10_000)
    model.fit(rows, targets, sample_weight=weight)
    return model.coef_, model.intercept_


# -- One domain, no penalty, no whitening: plain logistic regression ------------------------------

PLAIN = {
    "ERM": {},
    "Reweighted": {},
    "GroupDRO": {},
    "IRM": {"penalty": 0.0},
    "DARE": {"adjust": False, "mean_penalty": 0.0},
}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("l2", [1e-3, 1.0])
@pytest.mark.parametrize("family", PLAIN)
def test_with_one_domain_no_penalty_and_no_whitening_every_head_is_logistic_regression(
    classification_problem, head_for, family, l2, intercept
):
    X, y, task = (getattr(classification_problem, name) for name in ("X", "y", "task"))
    head = head_for(task, family, l2=l2, fit_intercept=intercept, tol=1e-8, **PLAIN[family])
    head.fit(X, y, domains=np.zeros(len(y)))
    ridge = l2 * X.var(axis=0).mean()  # l2 acts in units where the mean feature variance is one
    coef, offset = logistic_regression(
        X, y, np.full(len(y), 1 / len(y)), ridge, intercept=intercept
    )
    ours, theirs = (
        oracle.lagrangian(task, [X], [y], [np.eye(5)], V.T, b, penalty=0.0, l2=ridge)
        for V, b in [(head.coef_, head.intercept_), (coef, offset)]
    )
    assert ours == pytest.approx(theirs, rel=1e-6)
    np.testing.assert_allclose(head.coef_, coef, atol=1e-3)


# -- The Lagrangian -------------------------------------------------------------------------------

WHITENINGS = [
    {"shrinkage": 0.1, "shrinkage_target": "identity", "centered": False},  # as the paper prints it
    {"shrinkage": 0.5, "shrinkage_target": "scaled", "centered": False},
    {"shrinkage": 0.5, "shrinkage_target": "scaled", "centered": True},
    {"shrinkage": 0.0, "shrinkage_target": "scaled", "centered": True},
    {"shrinkage": 0.3, "shrinkage_target": "pooled", "centered": True},
    {"shrinkage": 0.3, "shrinkage_target": "diagonal", "centered": True},
    {"shrinkage": 1.0, "shrinkage_target": "diagonal", "centered": False},
    {"shrinkage": "ledoit-wolf", "shrinkage_target": "scaled", "centered": False},
    {"shrinkage": "oas", "shrinkage_target": "scaled", "centered": True},
]


def roots_of(domains, whitening):
    options = {"shrinkage": whitening["shrinkage"], "centered": whitening["centered"]}
    return oracle.adjustments(domains, target=whitening["shrinkage_target"], **options)


def ridge_of(domains, whitening, l2):
    options = {"target": whitening["shrinkage_target"], "centered": whitening["centered"]}
    return oracle.ridge(domains, l2, **options)


@pytest.mark.parametrize("penalty", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("whitening", WHITENINGS, ids=str)
def test_dare_is_logistic_regression_on_whitened_rows_and_weighted_pseudo_rows(
    classification_problem, whitening, penalty
):
    domains, targets = classification_problem.parts()
    roots, k = roots_of(domains, whitening), 1 + int(classification_problem.y.max())
    rows, labels, weight = [], [], []
    for X, y, W in zip(domains, targets, roots, strict=True):
        rows += [X @ W, np.repeat([X.mean(axis=0) @ W], k, axis=0)]
        labels += [y, np.arange(k)]
        weight += [np.full(len(y), 1 / (3 * len(y))), np.full(k, penalty / (3 * k))]
    stacked = [np.concatenate(part) for part in (rows, labels, weight)]
    ridge = ridge_of(domains, whitening, 0.01)
    B = logistic_regression(*stacked, ridge, intercept=False)[0].T
    head = DAREClassifier(
        l2=0.01, mean_penalty=penalty, fit_intercept=False, adaptation=None, **whitening, **EXACT
    )
    classification_problem.fit(head)
    np.testing.assert_allclose(head.coef_.T, np.mean(roots, axis=0) @ B, rtol=0, atol=2e-5)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("whitening", WHITENINGS, ids=str)
def test_the_value_of_the_solution_is_the_lagrangian_and_no_step_lowers_it(
    problem, head_for, whitening, intercept
):
    domains, targets = problem.parts()
    options = {"l2": 0.05, "mean_penalty": 2.0, "adaptation": None, **whitening, **EXACT}
    head = problem.fit(head_for(problem.task, "DARE", fit_intercept=intercept, **options))
    B, b, centered = canonical_weights(head), head.intercept_, problem.task == "regression"
    if centered:  # targets are standardised, so that l2 has no unit, and b is the mean target
        centre = np.mean([y.mean() for y in targets]) if intercept else 0.0
        spread = np.sqrt(np.mean((problem.y - centre) ** 2))
        B, b, targets = B / spread, np.zeros(1), [(y - centre) / spread for y in targets]
    roots, rng = roots_of(domains, whitening), np.random.default_rng(0)

    def value(B, b):
        ridge = ridge_of(domains, whitening, 0.05)
        settings = {"penalty": 2.0, "l2": ridge, "centered_rows": centered}
        return oracle.lagrangian(problem.task, domains, targets, roots, B, b, **settings)

    least = value(B, b)
    assert head.solution_.value == pytest.approx(least, rel=1e-9)
    assert all(value(B + 1e-3 * rng.normal(size=B.shape), b) > least for _ in range(3))
    if intercept:
        assert min(value(B, b + 1e-3 * np.eye(B.shape[1])[0] * sign) for sign in (1, -1)) > least


@pytest.mark.parametrize("intercept", [True, False])
def test_the_preset_minimises_what_the_paper_prints(problem, head_for, intercept):
    domains, targets = problem.parts()
    kind = type(head_for(problem.task, "DARE"))
    head = problem.fit(kind.as_in_paper(fit_intercept=intercept, adaptation=None, **EXACT))
    roots = roots_of(domains, WHITENINGS[0])
    np.testing.assert_allclose(head.adjustment_.dense(), np.mean(roots, axis=0), atol=1e-10)
    B, b, centered = canonical_weights(head), head.intercept_, problem.task == "regression"
    if centered:
        b = np.array([np.mean([y.mean() for y in targets]) if intercept else 0.0])
    settings = {"penalty": 1.0, "l2": 0.0, "centered_rows": centered}
    rng = np.random.default_rng(0)

    def value(B):
        return oracle.lagrangian(problem.task, domains, targets, roots, B, b, **settings)

    assert all(value(B + 1e-3 * rng.normal(size=B.shape)) > value(B) for _ in range(3))


# -- The constraint -------------------------------------------------------------------------------


@pytest.fixture
def sure(monkeypatch):
    """No direction of the means passes for noise, however few the rows."""
    monkeypatch.setattr("skdare.fitting.lagrangian._MARGIN", 0.0)


def predictions_at_means(head, problem):
    """Bᵀ W_eᵀ μ_e for every domain, (E, k)."""
    B = canonical_weights(head)
    means = {label: problem.X[problem.rows(label)].mean(axis=0) for label in problem.labels}
    return np.array([B.T @ head.adjustments_[e].dense().T @ means[e] for e in problem.labels])


@pytest.mark.parametrize("whitening", WHITENINGS, ids=str)
@pytest.mark.usefixtures("sure")
def test_the_exact_constraint_makes_every_domain_mean_uninformative(problem, head_for, whitening):
    options = {"adaptation": None, **whitening}
    exact, free = (
        problem.fit(head_for(problem.task, "DARE", mean_penalty=penalty, **options))
        for penalty in ("exact", 0.0)
    )
    assert np.abs(predictions_at_means(exact, problem)).max() < 1e-9
    assert np.abs(predictions_at_means(free, problem)).max() > 1e-2


@pytest.mark.parametrize("intercept", [True, False])
def test_a_large_penalty_approaches_the_exact_constraint(problem, head_for, intercept):
    def coefficients(penalty):
        options = {"mean_penalty": penalty, "fit_intercept": intercept, "adaptation": None}
        return problem.fit(head_for(problem.task, "DARE", **options, **EXACT)).coef_

    exact = coefficients("exact")
    distances = [np.abs(coefficients(10.0**p) - exact).max() for p in range(7)]
    assert all(b < a for a, b in itertools.pairwise(distances))
    assert distances[-1] < 1e-4 * np.abs(exact).max()


@pytest.mark.parametrize("family", [DAREClassifier, DARERegressor])
def test_domains_without_means_are_not_constrained(family, binary):
    X = binary.X.copy()
    for label in binary.labels:
        X[binary.rows(label)] -= X[binary.rows(label)].mean(axis=0)
    options = {"adaptation": None, **EXACT}
    exact, free = (
        family(mean_penalty=penalty, **options).fit(X, binary.y, domains=binary.domains)
        for penalty in ("exact", 0.0)
    )
    np.testing.assert_allclose(exact.coef_, free.coef_, atol=1e-6)


# -- The unseen domain ----------------------------------------------------------------------------


@pytest.mark.parametrize("guess", ["mean", "covariance", {"north": 3.0, "west": 1.0}], ids=str)
@pytest.mark.parametrize("centered", [True, False])
def test_an_unseen_domain_is_adjusted_by_the_guess(problem, head_for, guess, centered):
    options = {"mean_penalty": 1.0, "centered": centered, "shrinkage": 0.5, "adaptation": None}
    domains, _ = problem.parts()
    B = canonical_weights(problem.fit(head_for(problem.task, "DARE", **options)))
    shrunk = [oracle.second_moment(X, centered=centered) for X in domains]
    shrunk = [0.5 * S + 0.5 * np.trace(S) / len(S) * np.eye(len(S)) for S in shrunk]
    roots = [oracle.inverse_root(S) for S in shrunk]
    W = np.average(roots, axis=0, weights=None if isinstance(guess, str) else [3.0, 0.0, 1.0])
    W = oracle.inverse_root(np.mean(shrunk, axis=0)) if guess == "covariance" else W
    head = problem.fit(head_for(problem.task, "DARE", guess=guess, **options))
    np.testing.assert_allclose(np.atleast_2d(head.coef_).T, W @ B, atol=1e-10)


def test_estimating_the_mean_centres_every_domain_and_subtracts_the_average_mean_in_use(
    classification_problem,
):
    domains, targets = classification_problem.parts()
    whitening = WHITENINGS[2]
    roots = roots_of(domains, whitening)
    rows = [(X - X.mean(axis=0)) @ W for X, W in zip(domains, roots, strict=True)]
    weight = np.concatenate([np.full(len(y), 1 / (3 * len(y))) for y in targets])
    stacked_rows = np.concatenate(rows), np.concatenate(targets)
    ridge = ridge_of(domains, whitening, 0.01)
    coef, offset = logistic_regression(*stacked_rows, weight, ridge, intercept=True)
    V, mean = np.mean(roots, axis=0) @ coef.T, np.mean([X.mean(axis=0) for X in domains], axis=0)
    head = DAREClassifier(l2=0.01, estimate_mean=True, adaptation=None, **whitening, **EXACT)
    classification_problem.fit(head)
    np.testing.assert_allclose(head.coef_.T, V, rtol=0, atol=2e-5)
    np.testing.assert_allclose(np.diff(head.intercept_), np.diff(offset - mean @ V), atol=1e-4)


# -- Theorem 1: closed forms ----------------------------------------------------------------------


def latent_domains(n, d, b, *, exact, seed=0):
    """Latents ε₀ + b_e and symmetric A_e for each column b_e; ``exact`` makes the sample moments
    of ε₀ those of the population: mean zero and covariance one to rounding."""
    rng = np.random.default_rng(seed)
    for mean in b.T:
        latent = rng.normal(size=(n, d))
        if exact:
            latent -= latent.mean(axis=0)
            latent = latent @ oracle.inverse_root(latent.T @ latent / n)
        U = np.linalg.qr(rng.normal(size=(d, d)))[0]
        yield latent + mean, (U * rng.uniform(0.3, 3, size=d)) @ U.T


def stacked(domains):
    X, y = (np.concatenate(part) for part in zip(*domains, strict=True))
    labels = np.repeat(np.arange(len(domains)), [len(rows) for rows, _ in domains])
    return X, y, labels


def projection(b):
    """Π̂ = I - C C⁺."""
    return np.eye(len(b)) - b @ np.linalg.pinv(b)


THEORY = {"shrinkage": 0.0, "centered": True, "l2": 0.0, "adaptation": None}


def exact_regression(noise, seed=0):
    """A regression problem whose sample moments are the population's, and its β*, b."""
    rng = np.random.default_rng(seed)
    beta, b, domains = rng.normal(size=6), rng.normal(size=(6, 3)), []
    for latent, A in latent_domains(200, 6, b, exact=True):
        design = np.column_stack([latent, np.ones(len(latent))])
        error = rng.normal(size=len(latent))
        error -= design @ np.linalg.lstsq(design, error, rcond=None)[0]
        domains.append((latent @ A, latent @ beta + noise * error))
    return *stacked(domains), beta, b


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("solver", ["direct", "lbfgs", "trust-ncg"])
@pytest.mark.usefixtures("sure")
def test_dare_regression_is_the_projection_of_the_true_weights(solver, noise):
    X, y, domains, beta, b = exact_regression(noise)
    head = DARERegressor(mean_penalty="exact", solver=solver, tol=1e-10, **THEORY)
    head.fit(X, y, domains=domains)
    np.testing.assert_allclose(canonical_weights(head)[:, 0], projection(b) @ beta, atol=1e-7)


@pytest.mark.parametrize("penalty", [0.0, 1.0, 50.0])
def test_penalised_dare_regression_shrinks_the_true_weights_along_the_means(penalty):
    X, y, domains, beta, b = exact_regression(noise=1.0)
    head = DARERegressor(mean_penalty=penalty, **THEORY).fit(X, y, domains=domains)
    expected = np.linalg.solve(np.eye(6) + penalty * b @ b.T / 3, beta)
    np.testing.assert_allclose(canonical_weights(head)[:, 0], expected, atol=1e-8)


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
@pytest.mark.parametrize("penalty", [0.0, 1.0, "exact"])
@pytest.mark.usefixtures("sure")
def test_predictions_at_the_domain_means_average_to_the_mean_of_their_mean_targets(penalty, guess):
    X, y, domains, *_ = exact_regression(noise=1.0)
    keep = ~((domains == 1) & (np.arange(len(y)) % 3 == 0))  # unequal sizes
    X, y, domains = X[keep], y[keep], domains[keep]
    head = DARERegressor(mean_penalty=penalty, guess=guess).fit(X, y, domains=domains)
    B, shares = canonical_weights(head), [3, 0, 1] if isinstance(guess, dict) else [1, 1, 1]
    scores = [
        X[domains == e].mean(axis=0) @ head.adjustments_[e].dense() @ B[:, 0] for e in range(3)
    ]
    goal = np.mean([y[domains == e].mean() for e in range(3)])
    assert np.average(scores, weights=shares) + head.intercept_ == pytest.approx(goal, abs=1e-9)
    if penalty == "exact":
        assert head.intercept_ == pytest.approx(goal, abs=1e-9)


def test_without_an_intercept_nothing_is_added_to_the_scores():
    X, y, domains, *_ = exact_regression(noise=1.0)
    assert DARERegressor(fit_intercept=False).fit(X, y, domains=domains).intercept_ == 0.0


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("shift", "attenuated"), [(1.0, True), (0.0, False)])
def test_dare_on_gaussian_latents_is_an_attenuated_projection(shift, attenuated, intercept):
    rng = np.random.default_rng(1)
    n, d, domains = 20_000, 4, []
    beta = np.array([1.0, -0.5, 0.8, 0.6])
    b = shift * np.linalg.qr(rng.normal(size=(d, 2)))[0] @ rng.normal(size=(2, 3))
    for latent, A in latent_domains(n, d, b, exact=True, seed=2):
        noise = rng.logistic(size=n)
        domains.append((latent @ A, (latent @ beta + noise > 0).astype(int)))
    X, y, labels = stacked(domains)
    penalty = "exact" if shift else 0.0
    head = DAREClassifier(mean_penalty=penalty, fit_intercept=intercept, **THEORY)
    B = canonical_weights(head.fit(X, y, domains=labels))[:, 0]
    goal = projection(b) @ beta if shift else beta
    alpha = goal @ B / (goal @ goal)
    # A coefficient has standard error (Σ p(1-p))^{-1/2}, here at most 0.011; four are allowed.
    error = 4 * (3 * n * 0.14) ** -0.5
    assert np.abs(B - alpha * goal).max() < error
    assert 0 < alpha < 1 - error if attenuated else abs(alpha - 1) < error
