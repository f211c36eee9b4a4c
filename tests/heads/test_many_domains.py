"""Many domains with fewer rows than features: the same heads, without a (d, d) matrix for any."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import linalg

import oracle
from skdare import DAREClassifier, DARERegressor
from skdare.fitting import lagrangian
from skdare.fitting.domain_fit import domain_fit_of
from skdare.fitting.formulation import CENTERED, RAW, Formulation, MeanTreatment
from skdare.fitting.lagrangian import empirical_lagrangian, mean_directions
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics
from skdare.fitting.targets import Classes, Numbers
from skdare.whitening.adjustment import Adjustment, average, same_common
from skdare.whitening.cache import DomainCache
from skdare.whitening.moments import Moments
from skdare.whitening.whitening import Whitening

SIZES = (5, 9, 2, 13, 7, 30, 11)  # of the domains; all but one have fewer rows than features
D = 16
TARGETS = {
    "classification": Classes(np.arange(3)),
    "binary": Classes(np.arange(2)),
    "regression": Numbers(0.0, 1.0),
}
INVARIANT = MeanTreatment(center_in_training=False, mean_penalty=1.5, subtract_in_use=False)
SHIFTED = MeanTreatment(center_in_training=True, mean_penalty=0.7, subtract_in_use=False)


def domains_of_few_rows(seed=0, sizes=SIZES, d=D):
    """Domains that differ in mean and covariance, rows in no order."""
    rng = np.random.default_rng(seed)
    X = np.concatenate(
        [rng.normal(size=(n, d)) * rng.uniform(0.5, 2, d) + rng.normal(size=d) for n in sizes]
    )
    domains = np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(len(X))
    return X[order], domains[order], rng


def problem_of_few_rows(task, *, weighted=False, ordered=False, dtype=np.float64):
    X, domains, rng = domains_of_few_rows()
    if ordered:
        order = np.argsort(domains, kind="stable")
        X, domains = X[order], domains[order]
    targets = TARGETS[task]
    if task == "regression":
        T = rng.normal(size=len(X))
    else:
        T = rng.integers(0, len(targets.classes), len(X))
    weight = rng.uniform(0.5, 2, len(X)) if weighted else np.ones(len(X))
    index = [np.flatnonzero(domains == e) for e in range(len(SIZES))]
    if ordered:
        index = [slice(int(i[0]), int(i[-1]) + 1) for i in index]
    return Problem(X.astype(dtype), T, weight, list(range(len(SIZES))), index, targets)


def two_routes(problem, plan, monkeypatch, *, intercept=True, copied=False):
    """The objective with few rows together, or copied, and with every domain visited on its own."""
    monkeypatch.setattr(lagrangian, "_MANY", 2 if copied else len(SIZES) + 1)
    statistics, chosen = ProblemStatistics(problem), range(len(problem.index))
    adjustments = statistics.adjustments(chosen, plan.whitening)
    given = (problem, statistics, chosen, plan, adjustments)
    together = empirical_lagrangian(*given, intercept=intercept)
    assert (together.few_rows is None) == copied
    monkeypatch.setattr(lagrangian, "_visited_together", lambda *_: False)
    monkeypatch.setattr(lagrangian, "_is_copied", lambda *_: False)
    apart = empirical_lagrangian(*given, intercept=intercept)
    assert (len(together.blocks), len(apart.blocks)) == (1, len(SIZES))
    return together, apart


@pytest.mark.parametrize("copied", [False, True], ids=["in place", "copied"])
@pytest.mark.parametrize("form", [RAW, INVARIANT, SHIFTED, CENTERED], ids=str)
@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
@pytest.mark.parametrize("centered", [False, True], ids=["raw", "covariance"])
@pytest.mark.parametrize("target", ["pooled", "scaled", "identity"])
@pytest.mark.parametrize("task", TARGETS)
def test_rows_visited_together_have_the_losses_of_rows_visited_domain_by_domain(
    task, target, centered, weighted, form, copied, monkeypatch
):
    problem = problem_of_few_rows(task, weighted=weighted)
    plan = Formulation(Whitening(True, centered, 0.3, target), form, 0.1, by_rows=weighted)
    together, apart = two_routes(problem, plan, monkeypatch, copied=copied)
    # Domains come in another order, which turns the span of their means.
    apart = replace(apart, coordinates=together.coordinates)
    theta, direction = np.random.default_rng(1).normal(size=(2, together.size))
    (value, gradient), (want, slope) = (o.value_and_gradient(theta) for o in (together, apart))
    assert value == pytest.approx(want, rel=1e-11)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-11 * np.abs(slope).max())
    curved, expected = (o.hessian_product(theta)(direction) for o in (together, apart))
    np.testing.assert_allclose(curved, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("form", [INVARIANT, SHIFTED], ids=str)
@pytest.mark.parametrize("target", ["pooled", "scaled"])
def test_the_solver_sees_the_same_adjusted_means(target, form, monkeypatch):
    plan = Formulation(Whitening(True, False, 0.3, target), form, 0.1)
    together, apart = two_routes(problem_of_few_rows("classification"), plan, monkeypatch)
    stretches = [(c.span * c.gains) @ c.span.T for c in (together.coordinates, apart.coordinates)]
    np.testing.assert_allclose(*stretches, rtol=0, atol=1e-11)
    if form is INVARIANT:
        np.testing.assert_allclose(
            together.coordinates.origin, apart.coordinates.origin, rtol=0, atol=1e-11
        )


def test_the_hessian_of_a_quadratic_counts_rows_visited_together(monkeypatch):
    plan = Formulation(Whitening(True, False, 0.3, "pooled"), SHIFTED, 0.1)
    together, apart = two_routes(problem_of_few_rows("regression"), plan, monkeypatch)
    apart = replace(apart, coordinates=together.coordinates)
    np.testing.assert_allclose(together.hessian(), apart.hessian(), rtol=0, atol=1e-11)


@pytest.mark.parametrize("shrinkage", [0.0, 1e-9, 0.3, 1.0, "ledoit-wolf", "oas"])
@pytest.mark.parametrize("target", ["pooled", "scaled", "identity"])
def test_every_strength_of_shrinkage_is_the_same_by_both_routes(target, shrinkage, monkeypatch):
    plan = Formulation(Whitening(True, True, shrinkage, target), RAW, 0.1)
    together, apart = two_routes(problem_of_few_rows("binary"), plan, monkeypatch)
    theta = np.random.default_rng(1).normal(size=together.size)
    apart = replace(apart, coordinates=together.coordinates)
    value, gradient = together.value_and_gradient(theta)
    want, slope = apart.value_and_gradient(theta)
    assert value == pytest.approx(want, rel=1e-7)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-7 * np.abs(slope).max())


@pytest.mark.parametrize("rows", [1, 10, 1000])
def test_chunks_of_domains_do_not_matter(rows, visit_in_chunks_of, monkeypatch):
    plan = Formulation(Whitening(True, False, 0.3, "pooled"), INVARIANT, 0.1)
    problem = problem_of_few_rows("classification", ordered=True)
    expected, _ = two_routes(problem, plan, monkeypatch)
    monkeypatch.undo()
    visit_in_chunks_of(rows)
    other, _ = two_routes(problem, plan, monkeypatch)
    assert (len(other.few_rows.chunks) > 1) == (rows < len(problem.T))
    theta = np.random.default_rng(1).normal(size=expected.size)
    np.testing.assert_allclose(
        other.value_and_gradient(theta)[1], expected.value_and_gradient(theta)[1], atol=1e-12
    )


@pytest.mark.parametrize("target", ["pooled", "scaled"])
def test_float32_scores_of_rows_visited_together_are_as_good_as_those_of_others(
    target, monkeypatch
):
    plan = Formulation(Whitening(True, False, 0.3, target), INVARIANT, 0.1)
    single, _ = two_routes(
        problem_of_few_rows("classification", dtype=np.float32), plan, monkeypatch
    )
    monkeypatch.undo()
    double, _ = two_routes(problem_of_few_rows("classification"), plan, monkeypatch)
    theta = np.random.default_rng(1).normal(size=double.size)
    single = replace(single, coordinates=double.coordinates)
    assert all(A.dtype == np.float32 for chunk in single.few_rows.chunks for A in chunk.maps)
    slope, expected = (o.value_and_gradient(theta)[1] for o in (single, double))
    np.testing.assert_allclose(slope, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


# -- The pool -------------------------------------------------------------------------------------


def pooled_adjustments(X, domains, *, shrinkage=0.3, centered=False):
    labels = np.unique(domains)
    parts = [X[domains == e] for e in labels]
    whitening = Whitening(True, centered, shrinkage, "pooled")
    moments = [Moments.of(part) for part in parts]
    C = whitening.common(moments, None)
    return parts, C, [whitening.adjustment(m, None, C) for m in moments]


@pytest.mark.parametrize("centered", [False, True])
def test_the_shrunk_second_moment_is_whitened_exactly(centered):
    X, domains, _ = domains_of_few_rows()
    parts, _, adjustments = pooled_adjustments(X, domains, centered=centered)
    moments = [oracle.second_moment(part, centered=centered) for part in parts]
    for S, W in zip(moments, adjustments, strict=True):
        shrunk = 0.7 * S + 0.3 * np.mean(moments, axis=0)
        np.testing.assert_allclose(W.dense().T @ shrunk @ W.dense(), np.eye(D), atol=1e-9)


def test_few_rows_and_many_have_the_adjustments_of_the_formula():
    X, domains, _ = domains_of_few_rows()
    parts, _, adjustments = pooled_adjustments(X, domains)
    expected = oracle.adjustments(parts, shrinkage=0.3, target="pooled", centered=False)
    B, G = np.random.default_rng(1).normal(size=(2, D, 3))
    for W, E in zip(adjustments, expected, strict=True):
        np.testing.assert_allclose(W.dense(), E, atol=1e-10)
        np.testing.assert_allclose(W.apply(B), E @ B, atol=1e-9)
        np.testing.assert_allclose(W.back(G), E.T @ G, atol=1e-9)
    assert [W.matrix is None for W in adjustments] == [n < D for n in SIZES]


@pytest.mark.parametrize("weights", [None, [0.4, 0.1, 0.0, 0.1, 0.1, 0.2, 0.1]])
def test_the_average_in_common_coordinates_is_the_average_of_the_matrices(weights):
    X, domains, _ = domains_of_few_rows()
    _, C, adjustments = pooled_adjustments(X, domains)
    mean = average(adjustments, weights)
    expected = np.average([W.dense() for W in adjustments], axis=0, weights=weights)
    np.testing.assert_allclose(mean.dense(), expected, atol=1e-10)
    assert mean.common is C
    low_rank = adjustments[2]
    mean = average([low_rank, low_rank], [0.5, 0.5])
    np.testing.assert_allclose(mean.dense(), low_rank.dense(), atol=1e-10)
    assert mean.matrix is None


def test_a_linear_change_of_the_features_changes_no_prediction():
    X, domains, rng = domains_of_few_rows(sizes=(9, 12, 8, 30, 14))
    y = X[:, 0] + rng.normal(size=len(X))
    A = rng.normal(size=(D, D)) + 4 * np.eye(D)
    whitening = {"shrinkage": 0.3, "shrinkage_target": "pooled"}
    head = DARERegressor(l2=0.0, mean_penalty=1.0, adaptation=None, **whitening)
    plain = head.fit(X, y, domains=domains).predict(X)
    changed = head.fit(X @ A, y, domains=domains).predict(X @ A)
    np.testing.assert_allclose(changed, plain, rtol=0, atol=1e-6 * np.abs(plain).max())


@pytest.mark.parametrize("task", TARGETS)
def test_the_value_of_a_fit_to_many_domains_is_the_lagrangian(task):
    X, domains, rng = domains_of_few_rows(sizes=SIZES * 3)
    y = X[:, 0] + rng.normal(size=len(X))
    if task != "regression":
        y = np.digitize(y, [0.0] if task == "binary" else [-1.0, 1.0])
    make = DARERegressor if task == "regression" else DAREClassifier
    whitening = {"shrinkage": 0.3, "shrinkage_target": "pooled"}
    options = {"l2": 0.05, "mean_penalty": 2.0, "fit_intercept": False, "adaptation": None}
    head = make(tol=1e-8, **whitening, **options).fit(X, y, domains=domains)
    parts, targets = zip(*((X[domains == e], y[domains == e]) for e in head.domains_), strict=True)
    roots = oracle.adjustments(parts, shrinkage=0.3, target="pooled", centered=False)
    B = np.linalg.solve(head.adjustment_.dense(), np.atleast_2d(head.coef_).T)
    np.testing.assert_allclose(head.adjustment_.dense(), np.mean(roots, axis=0), atol=1e-9)
    if task == "regression":
        spread = np.sqrt(np.mean(y**2))
        B, targets = B / spread, [t / spread for t in targets]
    ridge = oracle.ridge(parts, 0.05, target="pooled", centered=False)
    given = {"penalty": 2.0, "l2": ridge, "centered_rows": task == "regression"}
    value = oracle.lagrangian(task, parts, targets, roots, B, np.zeros(B.shape[1]), **given)
    assert head.solution_.value == pytest.approx(value, rel=1e-8)


def test_rows_that_are_all_the_same_are_seen_as_the_pool_is():
    X, domains, rng = domains_of_few_rows()
    X[domains == 2] = X[domains == 2][0]
    y = rng.integers(0, 2, len(X))
    head = DAREClassifier(shrinkage_target="pooled", centered=True)
    with pytest.warns(UserWarning, match="rows of domain 2 are all the same"):
        head.fit(X, y, domains=domains)
    assert head.adjustments_[2].is_scalar
    np.testing.assert_allclose(head.adjustments_[2].dense(), head.adjustments_[0].common)


def test_the_covariance_guess_of_a_pooled_head_is_the_root_of_the_pool():
    X, domains, rng = domains_of_few_rows()
    y = rng.integers(0, 2, len(X))
    options = {"shrinkage_target": "pooled", "guess": "covariance"}
    head = DAREClassifier(**options).fit(X, y, domains=domains)
    P = np.mean([oracle.second_moment(X[domains == e], centered=False) for e in range(7)], axis=0)
    np.testing.assert_allclose(head.adjustment_.dense(), oracle.inverse_root(P), atol=1e-9)


@pytest.mark.parametrize("target", ["scaled", "identity"])
def test_the_covariance_guess_averages_shrunk_moments_of_few_rows(target):
    X, domains, rng = domains_of_few_rows()
    y = rng.integers(0, 2, len(X))
    options = {"shrinkage_target": target, "shrinkage": 0.2, "guess": "covariance"}
    head = DAREClassifier(**options).fit(X, y, domains=domains)
    moments = [oracle.second_moment(X[domains == e], centered=False) for e in range(len(SIZES))]
    shrunk = [oracle.shrunk(S, 0.2, target) for S in moments]
    expected = oracle.inverse_root(np.mean(shrunk, axis=0))
    np.testing.assert_allclose(head.adjustment_.dense(), expected, atol=1e-9)


@pytest.mark.parametrize("prior_rows", [0.0, 10.0])
@pytest.mark.parametrize("rows", [6, 40], ids="{} rows of 16 features".format)
@pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")
def test_a_pooled_head_adapts_in_the_coordinates_of_its_own_pool(rows, prior_rows):
    X, domains, rng = domains_of_few_rows()
    y = rng.integers(0, 2, len(X))
    new = rng.normal(size=(rows, D)) * 3.0 + 1.0
    head = DAREClassifier(shrinkage=0.3, shrinkage_target="pooled").fit(X, y, domains=domains)
    adapted = head.adapt(new, prior_rows=prior_rows)
    C = head.adjustments_[0].common
    S, trust = oracle.second_moment(new, centered=False), rows / (rows + prior_rows)
    own = C @ oracle.inverse_root(0.7 * C @ S @ C + 0.3 * np.eye(D))
    expected = trust * own + (1 - trust) * domain_fit_of(head).adaptation.guess.dense()
    np.testing.assert_allclose(adapted.adjustment_.dense(), expected, atol=1e-9)
    adapter = head.adapter(prior_rows=prior_rows)
    for chunk in np.array_split(new, 3):
        adapter.partial_fit(chunk)
    np.testing.assert_allclose(adapter.head_.coef_, adapted.coef_, atol=1e-10)


# -- Moments of few rows --------------------------------------------------------------------------


def moments_of_nine_rows(array_library, weighted):
    """The rows and their weights, their moments, and the same moments held as a matrix."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, D)) + 3.0
    weight = rng.uniform(0.5, 2, 9) if weighted else None
    sample_weight = None if weight is None else array_library.asarray(weight)
    few = Moments.of(array_library.asarray(X), sample_weight=sample_weight)
    assert few.factor.shape == (10, D)
    host = few.to_numpy()
    full = Moments(host.n, host.mean, host.scatter, host.cubic, host.quartic)
    return X, weight, few, full


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_few_rows_say_what_those_of_a_matrix_do(array_library, weighted):
    X, weight, few, full = moments_of_nine_rows(array_library, weighted)
    host = few.to_numpy()
    mean = np.average(X, axis=0, weights=weight)
    scatter = ((X - mean).T * (1.0 if weight is None else weight)) @ (X - mean)
    np.testing.assert_allclose(host.scatter, scatter, atol=1e-11)
    np.testing.assert_allclose(host.variances, full.variances, atol=1e-12)
    assert few.trace == pytest.approx(full.trace, rel=1e-12)
    assert few.concentration == pytest.approx(full.concentration, rel=1e-12)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_second_moments_of_few_rows_are_those_of_a_matrix(array_library, weighted, centered):
    *_, few, full = moments_of_nine_rows(array_library, weighted)
    ours = array_library.to_numpy(few.second_moment(centered=centered))
    np.testing.assert_allclose(ours, full.second_moment(centered=centered), atol=1e-11)


@pytest.mark.parametrize("rule", ["ledoit-wolf", "oas"])
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_few_rows_are_shrunk_as_a_matrix_is(array_library, weighted, centered, rule):
    *_, few, full = moments_of_nine_rows(array_library, weighted)
    want = full.shrinkage(rule, centered=centered)
    assert few.shrinkage(rule, centered=centered) == pytest.approx(want, rel=1e-10)


def test_sums_of_few_rows_stay_rows_until_they_are_many():
    X = np.random.default_rng(0).normal(size=(20, D)) * np.arange(1, 21)[:, None]
    some, sum_of_all = Moments.of(X[:4]) + Moments.of(X[4:9]), None
    for part in np.array_split(X, 5):
        one = Moments.of(part)
        sum_of_all = one if sum_of_all is None else sum_of_all + one
    assert some.factor.shape[0] < D
    assert sum_of_all.factor is None
    for moments, rows in ((some, X[:9]), (sum_of_all, X)):
        expected = Moments.of(np.concatenate([rows] * 4))  # four times as many, and no longer few
        np.testing.assert_allclose(moments.mean, expected.mean, atol=1e-12)
        np.testing.assert_allclose(4 * moments.scatter, expected.scatter, rtol=1e-9)
        np.testing.assert_allclose(4 * moments.cubic, expected.cubic, rtol=1e-9)
        assert 4 * moments.quartic == pytest.approx(expected.quartic, rel=1e-9)


# -- Size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["pooled", "scaled"])
def test_a_head_keeps_no_more_than_the_rows_of_domains_with_few_rows(target, array_library):
    X, domains, rng = domains_of_few_rows(sizes=(9,) * 20)
    X, y = X.astype(np.float32), rng.integers(0, 2, len(X))
    head = DAREClassifier(shrinkage_target=target)
    head.fit(array_library.asarray(X, "float32"), y, domains=domains)
    assert len({id(W.common) for W in head.adjustments_.values()}) == 1
    for label in head.domains_:
        W, m = head.adjustments_[label], head.moments_[label]
        assert (W.matrix, W.score_map) == (None, None)
        assert array_library.name != "numpy" or np.shares_memory(W.U, m.factor)
        assert m.factor.dtype == np.float32
        assert m.factor.shape == (10, D)
        assert same_common(W, head.adjustment_)


@pytest.mark.parametrize("target", ["pooled", "scaled"])
@pytest.mark.parametrize("adaptation", [None, "centered"])
def test_memory_does_not_grow_by_a_matrix_for_every_domain(target, adaptation):
    def peak(domains):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(8 * domains, 200))
        y, labels = rng.integers(0, 3, len(X)), np.repeat(np.arange(domains), 8)
        head = DAREClassifier(shrinkage_target=target, adaptation=adaptation, max_iter=3, tol=1.0)
        tracemalloc.start()
        head.fit(X, y, domains=labels)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    few, many = peak(100), peak(200)
    rows = 8 * 200 * 8  # bytes of a domain, and a third of a matrix is eight times that
    assert many - few < 100 * 8 * rows


def test_the_span_of_many_means_is_that_of_their_singular_vectors():
    M = np.random.default_rng(0).normal(size=(6, 50)) * np.array([5, 3, 1, 0.5, 0.1, 0])[:, None]
    span, gains = mean_directions(M, 1.0)
    U, values, _ = linalg.svd(M, full_matrices=False)
    expected = (1 + 2 * values[:5] ** 2 / 50) ** -0.5
    np.testing.assert_allclose(gains, expected, rtol=1e-10)
    np.testing.assert_allclose(span @ span.T, U[:, :5] @ U[:, :5].T, atol=1e-10)


@pytest.mark.parametrize("target", ["scaled", "pooled"])
@pytest.mark.parametrize("centered", [True, False])
def test_an_adjustment_says_what_it_does_to_the_scores_of_its_own_rows(centered, target):
    rng = np.random.default_rng(0)
    X, weight, B = rng.normal(size=(7, D)) + 2.0, rng.uniform(0.5, 2, 7), rng.normal(size=(D, 3))
    statistics = DomainCache(X, slice(0, 7), weight)
    C = oracle.inverse_root(np.diag(np.linspace(0.5, 4, D))) if target == "pooled" else None
    W = statistics.adjustment(Whitening(True, centered, 0.4, target), C)
    unadjusted = X @ B if C is None else X @ C @ B
    np.testing.assert_allclose(W.score_map @ unadjusted, X @ W.apply(B), atol=1e-10)


def test_an_adjustment_of_no_rows_does_not_say_what_it_does_to_scores():
    assert Adjustment(D, 1.0).score_map is None
