"""A fit to training domains, and the weights that it gives for unseen and for new ones."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import paper_formulas as paper
from array_libraries import held_in, libraries
from domain_problems import TASKS, DomainProblem, make_problem
from posed_problems import formulated, posed
from skdare import AnchorRegressor, DAREClassifier, DARERegressor, ERMClassifier, ERMRegressor
from skdare.errors import DataNote, InputError
from skdare.fitting.domain_fit import (
    Formulations,
    fit_domains,
    moments_by_domain,
    readjusted,
    solve,
)
from skdare.fitting.lagrangian import mean_directions, sampling_noise, training_shift
from skdare.fitting.problem import Classes, Numbers, class_factors
from skdare.whitening.moments import FeatureMoments, Moments
from skdare.whitening.whitening import Whitening

tasks = pytest.mark.parametrize("task", TASKS)


def fitted(data, *, adapting=None, mixture=None, X=None, **options):
    return fit_domains(
        posed(data, X=X),
        Formulations(formulated(**options), adapting, mixture),
    )


def dense(W, d=5):
    return W.apply(np.eye(d))


# -- The way of a fit --------------------------------------------------------------------------


@tasks
@pytest.mark.parametrize("shift", ["none", "own mean in training"])
def test_a_fit_is_where_the_lagrangian_of_the_paper_is_least(task, shift):
    data = make_problem(task)
    domains, targets = data.parts()
    fit = fitted(data, shift=shift, penalty=2.0)
    roots = paper.adjustments(domains, shrinkage=0.2, shrinkage_target="scaled", centered=False)
    l2 = paper.ridge(domains, 0.1, shrinkage_target="scaled", centered=False)
    B = fit.unseen.B
    # In training, before equation (3) gives its intercept to rows that are not centred.
    problem = posed(data)
    moments = moments_by_domain(problem)
    formulation = formulated(shift=shift, penalty=2.0)
    b = solve(problem, moments, fit.adjustments, formulation).b

    def value(B, b):
        centered_rows = shift != "none"
        options = {"penalty": 2.0, "l2": l2, "centered_rows": centered_rows}
        return paper.lagrangian(task, domains, targets, roots, B, b, **options)

    least = value(B, b)
    assert fit.unseen.solution.value == pytest.approx(least, rel=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(5):
        step = 1e-3 * rng.normal(size=B.shape), 1e-3 * rng.normal(size=b.shape)
        assert value(B + step[0], b + step[1]) > least


@tasks
def test_what_a_fit_knows_of_the_domains(task):
    data = make_problem(task)
    fit = fitted(data)
    assert fit.labels == ["north", "south", "west"]
    for X, m, W in zip(data.parts()[0], fit.moments, fit.adjustments, strict=True):
        np.testing.assert_allclose(m.mean, X.mean(axis=0), rtol=1e-12)
        assert m.n == len(X)
        S = paper.second_moment(X, centered=False)
        root = paper.inverse_root(0.8 * S + 0.2 * np.trace(S) / 5 * np.eye(5))
        np.testing.assert_allclose(dense(W), root, atol=1e-9)


@libraries
@tasks
def test_a_fit_ends_on_the_host_whatever_held_the_rows(task, library):
    data = make_problem(task)
    want = fitted(data)
    found = fitted(data, X=held_in(library, data.X))
    for ours, theirs in zip(found.unseen.raw_weights(), want.unseen.raw_weights(), strict=True):
        assert type(ours) is np.ndarray
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert all(type(m.mean) is np.ndarray for m in found.moments)


def test_moments_that_are_known_are_not_made_again():
    data = make_problem("binary")
    problem = posed(data)
    moments = moments_by_domain(problem)
    formulations = Formulations(formulated(), None)
    known = fit_domains(problem, formulations, moments)
    np.testing.assert_array_equal(known.unseen.B, fit_domains(problem, formulations).unseen.B)


def test_a_fit_may_start_at_the_weights_of_a_similar_one():
    data = make_problem("classification")
    problem = posed(data)
    moments = moments_by_domain(problem)
    formulation = formulated()
    adjustments = formulation.whitening.adjustments(moments, np.float64)
    cold = solve(problem, moments, adjustments, formulation)
    warm = solve(problem, moments, adjustments, formulation, (cold.B, cold.b))
    assert warm.solution.n_iter <= 1 < cold.solution.n_iter
    np.testing.assert_allclose(warm.B, cold.B, atol=1e-7)


@pytest.mark.parametrize("after", ["own mean", "mean of means", "none"])
def test_a_whitening_that_only_shifts_otherwise_has_the_same_roots(after):
    moments = [Moments.of(X) for X in make_problem("binary").parts()[0]]
    before = Whitening(True, True, 0.3, "scaled")
    roots = before.adjustments(moments, np.float64)
    whitening = replace(before, shift=after)
    found = readjusted(roots, before, whitening, moments, np.float64)
    expected = whitening.adjustments(moments, np.float64)
    for W, V, root in zip(found, expected, roots, strict=True):
        assert W.matrix is root.matrix
        np.testing.assert_array_equal(dense(W), dense(V))
        np.testing.assert_array_equal(W.shift, V.shift)


# -- An unseen domain --------------------------------------------------------------------------


@tasks
@pytest.mark.parametrize("shift", ["none", "mean of means"])
@pytest.mark.parametrize("guess", ["mean", "covariance", {"north": 3.0, "west": 1.0}])
def test_an_unseen_domain_is_scored_by_the_guessed_adjustment(task, shift, guess):
    data = make_problem(task)
    fit = fitted(data, shift=shift, guess=guess, penalty=0.0, centered=True)
    V, b = fit.unseen.raw_weights()
    centre = np.mean([m.mean for m in fit.moments], axis=0) if shift != "none" else np.zeros(5)
    Z = (data.X - centre) @ dense(fit.unseen.adjustment)
    np.testing.assert_allclose(data.X @ V + b, Z @ fit.unseen.B + fit.unseen.b, atol=1e-10)


@pytest.mark.parametrize("guess", ["mean", "covariance", {"north": 3.0, "west": 1.0}])
def test_equation_3_has_the_mean_target_on_average_at_the_training_means_in_training(guess):
    data = make_problem("regression")
    problem = posed(data)
    fit = fitted(data, shift="own mean in training", guess=guess, penalty=1.0)
    moments = moments_by_domain(problem)
    formulation = formulated(shift="own mean in training", penalty=1.0, guess=guess)
    in_training = solve(problem, moments, fit.adjustments, formulation)
    V, b = fit.unseen.raw_weights()
    shares = {"north": 0.75, "west": 0.25} if isinstance(guess, dict) else {}
    q = np.array([shares.get(label, 0.0) if shares else 1 / 3 for label in fit.labels])
    at_means = np.array(
        [
            m.mean @ dense(W) @ in_training.B
            for m, W in zip(fit.moments, fit.adjustments, strict=True)
        ]
    )
    if guess != "covariance":  # whose matrix is not the mean of the others
        np.testing.assert_allclose(b, in_training.b - q @ at_means, atol=1e-9)
    np.testing.assert_allclose(V, dense(fit.unseen.adjustment) @ in_training.B, atol=1e-12)


def test_equation_3_without_an_intercept_subtracts_nothing_in_use():
    fit = fitted(
        make_problem("regression"), shift="own mean in training", penalty=1.0, intercept=False
    )
    V, b = fit.unseen.raw_weights()
    np.testing.assert_array_equal(b, 0.0 * b)
    np.testing.assert_allclose(V, dense(fit.unseen.adjustment) @ fit.unseen.B, atol=1e-14)


@pytest.mark.parametrize(
    ("task", "penalty", "centered", "intercept", "shift"),
    [
        ("binary", 1.0, False, True, "none"),
        ("binary", 0.0, True, True, "mean of means"),
        ("binary", None, True, True, "mean of means"),
        ("binary", 0.0, True, False, "none"),
        ("binary", "exact", True, True, "none"),
        ("regression", 1.0, False, True, "own mean in training"),
        ("regression", 0.0, True, True, "own mean in training"),
        ("regression", None, True, True, "mean of means"),
        ("regression", None, False, True, "none"),
    ],
)
def test_what_each_objective_subtracts_in_training(task, penalty, centered, intercept, shift):
    targets = Numbers(0.0, 1.0) if task == "regression" else Classes(np.array([0, 1]))
    assert training_shift(targets, penalty, centered, intercept) == shift


# -- A new domain ------------------------------------------------------------------------------


ADAPTING = {
    "raw": {"centered": False, "shift": "none"},
    "centered": {"centered": True, "shift": "own mean"},
    "covariance": {"centered": True, "shift": "none"},
    "centre": {"adjusts": False, "centered": True, "shift": "own mean"},
}


@tasks
@pytest.mark.parametrize("name", ADAPTING)
def test_a_new_domain_is_scored_by_its_own_adjustment_as_far_as_trusted(task, name):
    data, X_new, _ = make_problem(task).without("south")
    adapting = formulated(penalty=0.0, **ADAPTING[name])
    fit = fitted(data, adapting=adapting)
    new = Moments.of(X_new)
    trust = fit.adaptation.trust(new.n)
    adapted = fit.adapted(new, trust)
    V, b = adapted.raw_weights()
    average = fit.adaptation.fit.adjustment
    own = dense(average)
    if adapting.whitening.adjusts:
        S = paper.second_moment(X_new, centered=adapting.whitening.centered)
        own = paper.inverse_root(0.8 * S + 0.2 * np.trace(S) / 5 * np.eye(5))
    W = trust.adjustment * own + (1 - trust.adjustment) * dense(average)
    shift = np.zeros(5)
    if adapting.whitening.shift == "own mean":
        rest = np.mean([m.mean for m in fit.moments], axis=0)
        shift = trust.mean * X_new.mean(axis=0) + (1 - trust.mean) * rest
    expected = (X_new - shift) @ W @ fit.adaptation.fit.B + fit.adaptation.fit.b
    np.testing.assert_allclose(X_new @ V + b, expected, atol=1e-9)


@tasks
def test_without_rows_a_new_domain_is_the_average_one(task):
    data, X_new, _ = make_problem(task).without("south")
    fit = fitted(data, adapting=formulated(penalty=0.0, centered=True, shift="own mean"))
    trust = fit.adaptation.trust(0.0)
    adapted = fit.adapted(Moments.of(X_new), trust)
    for ours, theirs in zip(adapted.raw_weights(), fit.adaptation.fit.raw_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_a_training_domain_that_comes_again_is_scored_as_in_training():
    data = make_problem("binary")
    fit = fitted(data, adapting=formulated(penalty=0.0, centered=True, shift="own mean"))
    for X, m, W in zip(data.parts()[0], fit.moments, fit.adjustments, strict=True):
        everything = fit.adaptation.trust(m.n, prior_rows=0.0)
        adapted = fit.adapted(m, everything)
        V, b = adapted.raw_weights()
        W = paper.inverse_root(
            0.8 * paper.second_moment(X, centered=True)
            + 0.2 * np.trace(paper.second_moment(X, centered=True)) / 5 * np.eye(5)
        )
        expected = (X - X.mean(axis=0)) @ W @ fit.adaptation.fit.B + fit.adaptation.fit.b
        np.testing.assert_allclose(X @ V + b, expected, atol=1e-8)


# -- The exact constraint ----------------------------------------------------------------------


@tasks
@pytest.mark.parametrize("centered", [True, False])
def test_an_exact_penalty_holds_at_every_mean_that_stands_out(task, centered):
    rng = np.random.default_rng(0)
    where = np.repeat([0, 1, 2], 300)
    X = rng.normal(size=(900, 8)) + 3.0 * rng.normal(size=(3, 8))[where]
    scores = X[:, :3] + rng.gumbel(size=(900, 3))
    y = {"classification": scores.argmax(axis=1), "binary": scores[:, 0] > 0}
    data = DomainProblem(X, y.get(task, scores[:, 0]), np.array(["a", "b", "c"])[where], task)
    fit = fitted(data, penalty="exact", centered=centered)
    for m, W in zip(fit.moments, fit.adjustments, strict=True):
        at_mean = W.back(m.mean[:, None])[:, 0] @ fit.unseen.B
        scale = np.abs(W.back(m.mean[:, None])).max() * np.abs(fit.unseen.B).max()
        np.testing.assert_allclose(at_mean, 0.0, atol=1e-10 * scale)


def test_means_within_their_sampling_noise_give_up_nothing():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(60, 20)) for _ in range(3)]
    moments = [Moments.of(X) for X in parts]
    data = replace(
        make_problem("binary"),
        X=np.concatenate(parts),
        y=np.arange(180) % 2,
        domains=np.repeat(["a", "b", "c"], 60),
    )
    M = np.stack([m.mean for m in moments])
    noise = sampling_noise(M, posed(data), moments, Whitening(True, True, 0.0, "scaled"))
    assert np.linalg.svd(M)[1][0] < 1.5 * noise < 10 * np.linalg.svd(M)[1][0]
    with pytest.warns(DataNote, match="mean_penalty='exact' has no effect"):
        span, gains = mean_directions(M, "exact", 1.5 * noise)
    assert span.shape == (20, 0)
    assert gains.shape == (0,)


def test_means_that_span_everything_are_refused():
    with pytest.raises(InputError, match="span all 3 features, and mean_penalty='exact' leaves"):
        mean_directions(10 * np.eye(3), "exact")


def test_the_directions_of_the_means_are_orthonormal_and_stiff():
    M = np.random.default_rng(0).normal(size=(3, 8)) * 4
    span, gains = mean_directions(M, 5.0)
    np.testing.assert_allclose(span.T @ span, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(M @ span @ span.T, M, atol=1e-12)
    s = np.linalg.svd(M)[1]
    np.testing.assert_allclose(gains, (1 + 6 * s**2 / 3) ** -0.5, rtol=1e-12)


# -- Degenerate data ---------------------------------------------------------------------------


def degenerate(name):
    data = make_problem("binary")
    X, y = data.X.copy(), data.y.copy()
    own = data.domains == "south"
    if name == "a constant feature":
        X[:, 1] = 3.0
    elif name == "a feature that is constant in a domain":
        X[own, 1] = 3.0
    elif name == "two features that are the same":
        X[:, 1] = X[:, 0]
    elif name == "a domain of one class":
        y[own] = 0
    elif name == "a domain of rows that are all the same":
        X[own] = X[own][0]
    elif name == "fewer rows than features":
        X = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 40))])
    elif name == "features of very different units":
        X = X * np.geomspace(1e-6, 1e6, 5)
    elif name == "a domain of one row":
        keep = ~own
        keep[np.flatnonzero(own)[0]] = True
        return replace(data.permuted(np.flatnonzero(keep)))
    return replace(data, X=X, y=y)


CASES = [
    "a constant feature",
    "a feature that is constant in a domain",
    "two features that are the same",
    "a domain of one class",
    "a domain of rows that are all the same",
    "fewer rows than features",
    "features of very different units",
    "a domain of one row",
]
HEADS = {
    "default": DAREClassifier(),
    "standardise": DAREClassifier(
        shrinkage=1.0, shrinkage_target="diagonal", mean_penalty=0.0, adaptation="centered"
    ),
    "whiten": DAREClassifier(shrinkage=0.5, shrinkage_target="diagonal"),
    "raw identity": DAREClassifier(shrinkage=0.1, shrinkage_target="identity"),
    "no shrinkage": DAREClassifier(shrinkage=0.0, adaptation="raw"),
    "equation 3": DARERegressor(mean_penalty=1.0),
    "anchor": AnchorRegressor(adjust=True, shrinkage=1.0),
    "ERM": ERMClassifier(),
    "ridge": ERMRegressor(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", HEADS)
def test_no_head_is_ever_nan(name, case):
    data = degenerate(case)
    head = HEADS[name]
    y = data.y if "Classifier" in type(head).__name__ else data.X[:, 0] + 0.1 * data.y
    for X in (data.X, data.X.astype(np.float32), sparse.csr_array(data.X)):
        fitted = type(head)(**head.get_params()).fit(X, y, domains=data.domains)
        assert np.all(np.isfinite(fitted.coef_))
        assert np.all(np.isfinite(fitted.intercept_))
        assert np.all(np.isfinite(fitted.predict(data.X)))


def test_features_that_never_vary_are_refused_before_any_solve():
    with pytest.raises(InputError, match="every feature is constant"):
        DAREClassifier().fit(np.ones((20, 3)), np.arange(20) % 2, domains=np.arange(20) // 10)


# -- Problems ----------------------------------------------------------------------------------


def test_class_weights_are_those_of_scikit_learn():
    codes = np.array([0, 0, 0, 1, 1, 2])
    weight = np.ones(6)
    names = np.array(["a", "b", "c"])
    np.testing.assert_allclose(class_factors("balanced", names, codes, weight), [2 / 3, 1.0, 2.0])
    np.testing.assert_array_equal(class_factors({"b": 4.0}, names, codes, weight), [1.0, 4.0, 1.0])


def test_some_domains_of_a_problem_share_its_rows():
    problem = posed(make_problem("binary"))
    rest = problem.only([0, 2])
    assert rest.labels == ["north", "west"]
    assert rest.X is problem.X
    whole = problem.pooled()
    assert (whole.labels, whole.index) == (["all"], [slice(0, len(problem.T))])


def test_numbers_are_standardised_with_every_domain_counting_the_same():
    y = np.array([0.0, 0.0, 0.0, 10.0])
    targets, T = Numbers.encode(y, np.ones(4), [slice(0, 3), slice(3, 4)], centre=True)
    assert targets.centre == 5.0
    np.testing.assert_allclose(targets.decode(T), y)
    assert np.mean(T**2) == pytest.approx(1.0)


@pytest.mark.parametrize("y", [np.full(4, 1e200), np.array([0.0, 1e-200, 0.0, 0.0])])
def test_targets_whose_squares_overflow_are_refused(y):
    with pytest.raises(InputError, match="multiply or divide y by a constant"):
        Numbers.encode(y, np.ones(4), [slice(0, 4)], centre=True)


def test_plain_heads_go_by_means_and_variances_alone():
    data = make_problem("binary")
    problem = posed(data)
    light = [FeatureMoments.of(data.X, i, np.ones(len(i))) for i in problem.index]
    formulation = formulated(adjusts=False, penalty=0.0)
    fits = []
    for moments in (light, moments_by_domain(problem)):
        adjustments = formulation.whitening.adjustments(moments, np.float64)
        fits.append(solve(problem, moments, adjustments, formulation))
    np.testing.assert_allclose(fits[0].B, fits[1].B, atol=1e-9)
