"""What must not change a head: units, order, names, repetitions, storage."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import is_classifier

import heads_alike
from skdare import DARERegressor, DARERegressorCV
from skdare.heads._dare import AS_IN_PAPER

TASKS = ("classification", "binary", "regression")
FAMILIES = ("ERM", "Reweighted", "GroupDRO", "IRM", "DARE")
REGRESSION_FAMILIES = (*FAMILIES, "constrained DARE")
# Only whitening minds whether a domain has fewer rows than features.
CASES = [
    *(("classification", family, 5) for family in FAMILIES),
    ("classification", "DARE", 30),
    ("regression", "DARE", 5),
    ("regression", "constrained DARE", 5),
    ("regression", "GroupDRO", 5),
    ("regression", "Anchor", 5),
]
PRECISE = {"tol": 1e-8}


def scores(head, X):
    """What the head says of rows: scores of a classifier, predictions of a regressor."""
    return head.decision_function(X) if is_classifier(head) else head.predict(X)


def assert_same_head(head, expected, rtol):
    """The same to ``rtol`` of the largest coefficient; intercepts are sums over all features."""
    heads_alike.assert_same_head(head, expected, rtol=rtol, intercept_factor=10)


# -- Units, order, names, repetitions -------------------------------------------------------------


@pytest.mark.parametrize("constant", [1e-4, 3e3])
@pytest.mark.parametrize("family", FAMILIES)
def test_multiplying_the_features_by_a_constant_changes_no_default_prediction(
    problem, head_for, family, constant
):
    X = constant * problem.X
    unit = problem.fit(head_for(problem.task, family))
    scaled = problem.fit(head_for(problem.task, family), X)
    np.testing.assert_allclose(scores(scaled, X), scores(unit, problem.X), rtol=1e-5, atol=1e-5)
    if is_classifier(unit):
        np.testing.assert_array_equal(scaled.predict(X), unit.predict(problem.X))


@pytest.mark.parametrize("family", REGRESSION_FAMILIES)
def test_multiplying_the_targets_by_a_constant_multiplies_the_predictions(
    regression, head_for, family
):
    X, y, domains = regression.X, regression.y, regression.domains
    unit = head_for("regression", family).fit(X, y, domains=domains)
    scaled = head_for("regression", family).fit(X, 1000 * y + 5000, domains=domains)
    np.testing.assert_allclose(scaled.predict(X), 1000 * unit.predict(X) + 5000, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_permuting_the_rows_changes_nothing(problem, head_for, family):
    order = np.random.default_rng(7).permutation(len(problem.y))
    given, permuted, sorted_ = (
        p.fit(head_for(problem.task, family, **PRECISE))
        for p in (problem, problem.permuted(order), problem.contiguous())
    )
    assert_same_head(permuted, given, rtol=1e-5)
    assert_same_head(sorted_, given, rtol=1e-5)


# Heads in which nothing knows where the features have their origin.
WITHOUT_ORIGIN = {
    "ERM": {},
    "Reweighted": {},
    "GroupDRO": {},
    "IRM": {},
    "Anchor": {},
    "Anchor, whitened": {"adjust": True},
    "DARE": {"centered": True, "mean_penalty": 0.0},
    "DARE, the paper's shrinkage": {
        "centered": True,
        "mean_penalty": 0.0,
        "shrinkage": 0.1,
        "shrinkage_target": "identity",
    },
    "DARE, pooled": {"centered": True, "mean_penalty": 0.0, "shrinkage_target": "pooled"},
    "DARE, diagonal": {"centered": True, "mean_penalty": 0.0, "shrinkage_target": "diagonal"},
    "DARE, standardised": {
        "centered": True,
        "mean_penalty": 0.0,
        "shrinkage": 1.0,
        "shrinkage_target": "diagonal",
    },
    "DARE, means in": {"centered": True, "mean_penalty": None, "guess": "mean"},
    "DARE, no guess": {"mean_penalty": None, "guess": None, "adaptation": "centered"},
    "DARE, covariance": {"centered": True, "mean_penalty": 0.0, "guess": "covariance"},
    "DARE, weighted": {"centered": True, "mean_penalty": 0.0, "guess": {"north": 1.0, "west": 3.0}},
    "DARE, means estimated": {"centered": True, "estimate_mean": True},
    "DARE, no whitening": {"adjust": False, "mean_penalty": 0.0},
}


@pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")
@pytest.mark.parametrize("d", [5, 30])  # more rows than features in each domain, and fewer
@pytest.mark.parametrize(
    ("task", "name"),
    [(t, n) for t, n in product(TASKS, WITHOUT_ORIGIN) if t == "regression" or "Anchor" not in n],
)
def test_shifting_all_features_by_a_constant_changes_no_prediction(make, head_for, task, name, d):
    family, options = name.split(",")[0], {**WITHOUT_ORIGIN[name], **PRECISE}
    if family == "DARE":
        options["adaptation"] = "centered"
    problem, rng = make(task, d=d), np.random.default_rng(5)
    shift = 10.0 * rng.normal(size=d) * problem.X.std(axis=0)
    given, moved = (
        problem.fit(head_for(task, family, **options), X) for X in (problem.X, problem.X + shift)
    )
    new = rng.normal(size=(50, d))
    expected = scores(given, new)
    atol = 1e-4 * np.abs(expected).max()
    np.testing.assert_allclose(scores(moved, new + shift), expected, rtol=0, atol=atol)
    if family == "DARE" and options.get("adjust", True):
        adapted = scores(given.adapt(new), new)
        again = scores(moved.adapt(new + shift), new + shift)
        np.testing.assert_allclose(again, adapted, rtol=0, atol=atol)


KNOWS_AN_ORIGIN = {
    "default": {},
    "guess": {"guess": "mean"},
    "penalty": {"mean_penalty": 1.0},
    "covariance": {"mean_penalty": 1.0, "centered": True},
    "no penalty": {"mean_penalty": 0.0},
    "exact": {"mean_penalty": "exact"},
    "the paper's": AS_IN_PAPER,
    "no whitening": {"mean_penalty": 1.0, "adjust": False},
    "chosen": None,
}


@pytest.mark.parametrize("options", KNOWS_AN_ORIGIN)
@pytest.mark.parametrize("d", [2, 20])
def test_an_origin_ten_standard_deviations_away_costs_little_or_is_pointed_out(options, d):
    rng, beta = np.random.default_rng(0), np.random.default_rng(1).normal(size=d)

    def rows(n):
        X = rng.normal(size=(n, d))
        return X, X @ beta + 0.3 * np.linalg.norm(beta) * rng.normal(size=n)

    (X, y), (X_new, y_new) = rows(1200), rows(500)
    domains = np.repeat(np.arange(4), 300)  # without any shift between them
    lost, pointed_out = [], False
    for shift in (0.0, 10.0):
        head = DARERegressorCV() if KNOWS_AN_ORIGIN[options] is None else None
        head = head or DARERegressor(**KNOWS_AN_ORIGIN[options])
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            head.fit(X + shift, y, domains=domains)
        lost.append(-head.score(X_new + shift, y_new))
        pointed_out = any("vary little beside their mean" in str(w.message) for w in heard)
    assert lost[1] - lost[0] <= 0.05 or pointed_out


NAMINGS = {
    "reversed": {"north": "z", "south": "y", "west": "x"},
    "numbers": {"north": 3, "south": 1, "west": 2},
    "of any kind": {"north": ("plate", 4), "south": 2.5, "west": "sketch"},
}


@pytest.mark.parametrize("naming", NAMINGS)
@pytest.mark.parametrize("family", FAMILIES)
def test_renaming_the_domains_changes_nothing(problem, head_for, family, naming):
    given = problem.fit(head_for(problem.task, family, **PRECISE))
    names = [NAMINGS[naming][label] for label in problem.domains.tolist()]
    renamed = head_for(problem.task, family, **PRECISE).fit(problem.X, problem.y, domains=names)
    assert set(renamed.domains_) == set(names)
    assert_same_head(renamed, given, rtol=1e-5)


@pytest.mark.parametrize(("task", "family", "d"), CASES)
def test_a_weight_is_a_number_of_repetitions(make, head_for, task, family, d):
    problem = make(task, d=d)
    times = np.random.default_rng(2).integers(0, 3, size=len(problem.y))
    weighted = problem.fit(head_for(task, family, **PRECISE), sample_weight=times)
    repeated = problem.permuted(np.repeat(np.arange(len(times)), times))
    assert_same_head(weighted, repeated.fit(head_for(task, family, **PRECISE)), rtol=1e-5)


@pytest.mark.parametrize("penalty", [1.0, "exact"])
def test_the_unit_of_the_weights_changes_nothing(problem, head_for, penalty):
    weight = np.random.default_rng(3).uniform(0.5, 2.0, size=len(problem.y))
    counted, shared = (
        problem.fit(
            head_for(problem.task, "DARE", mean_penalty=penalty, **PRECISE), sample_weight=w
        )
        for w in (weight, weight / weight.sum())
    )
    assert_same_head(shared, counted, rtol=1e-5)


# -- Domains that lack something ------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_domain_may_lack_a_class(classification_problem, head_for, family):
    problem, y = classification_problem, classification_problem.y.copy()
    y[problem.rows("south")] = 0
    head = head_for(problem.task, family).fit(problem.X, y, domains=problem.domains)
    P = head.predict_proba(problem.X)
    np.testing.assert_array_equal(head.classes_, np.unique(y))
    assert P.shape == (len(y), len(np.unique(y)))
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("centered", [True, False])
def test_a_domain_may_have_one_row_where_nothing_of_its_covariance_is_used(
    problem, head_for, centered
):
    domains = problem.domains.astype(object)
    domains[3] = "alone"
    head = head_for(problem.task, "constrained DARE", shrinkage=1.0, centered=centered)
    head.fit(problem.X, problem.y, domains=domains)
    assert np.all(np.isfinite(head.coef_))


# -- Storage --------------------------------------------------------------------------------------


def memory_mapped(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


# X is exact in every one of these. In float64 the solutions agree to the solver's tolerance, in
# float32 to the rounding of the products, which the whitening and the solver enlarge.
STORAGES = {
    "csr matrix": (lambda X, _: sparse.csr_matrix(X), 1e-5),
    "csr array float32": (lambda X, _: sparse.csr_array(X.astype(np.float32)), 1e-3),
    "Fortran order": (lambda X, _: np.asfortranarray(X), 1e-5),
    "memory-mapped": (memory_mapped, 1e-5),
    "memory-mapped float16": (lambda X, f: memory_mapped(X.astype(np.float16), f), 1e-3),
    "float32": (lambda X, _: X.astype(np.float32), 1e-3),
    "float16": (lambda X, _: X.astype(np.float16), 1e-3),
}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(("task", "family", "d"), CASES)
def test_chunks_and_storage_do_not_matter(
    make, head_for, visit_in_chunks_of, tmp_path, task, family, storage, d
):
    problem, (store, rtol) = make(task, d=d), STORAGES[storage]
    dense = problem.fit(head_for(task, family, l2=0.1, tol=1e-6))
    visit_in_chunks_of(40)
    X = store(problem.X, tmp_path)
    stored = problem.fit(head_for(task, family, l2=0.1, tol=1e-6), X)
    assert_same_head(stored, dense, rtol)
    expected = scores(dense, problem.X)
    atol = rtol * 10 * np.abs(expected).max()
    np.testing.assert_allclose(scores(stored, X), expected, rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("task", "family", "d", "dtype", "rtol"),
    [(*case, "float64", 1e-5) for case in CASES]
    + [(*case, "float32", 3e-3) for case in CASES if case[1] in ("ERM", "DARE")],
)
def test_the_array_library_does_not_matter(
    make, head_for, array_library, task, family, d, dtype, rtol
):
    problem = make(task, d=d)
    dense = problem.fit(head_for(task, family, l2=0.1))
    X = array_library.asarray(problem.X, dtype)
    held = problem.fit(head_for(task, family, l2=0.1), X)
    assert_same_head(held, dense, rtol)
    said, expected = scores(held, X), scores(dense, problem.X)
    assert type(said) is type(X)
    atol = rtol * 10 * np.abs(expected).max()
    np.testing.assert_allclose(array_library.to_numpy(said), expected, rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("shrinkage", "target"),
    [
        *product([0.0, 0.5, 1.0], ["scaled", "identity", "pooled", "diagonal"]),
        *product(["ledoit-wolf"], ["scaled", "identity"]),
    ],
)
def test_every_whitening_works_in_every_array_library(
    make, head_for, array_library, shrinkage, target
):
    # 'north' is rich, 'south' is thin, and a flat 'west' makes the estimated shrinkage complete.
    problem = make("binary", d=30)
    problem.X[problem.rows("west")] = np.vstack([np.eye(30), -np.eye(30), 0 * np.eye(30)[:1]])
    options = {"shrinkage": shrinkage, "shrinkage_target": target, "centered": True}
    dense = problem.fit(head_for("binary", "DARE", l2=0.1, **options))
    X = array_library.asarray(problem.X)
    held = problem.fit(head_for("binary", "DARE", l2=0.1, **options), X)
    assert_same_head(held, dense, rtol=1e-5)


@pytest.mark.parametrize("rows", [60, 300], ids=["fewer rows than features", "more rows"])
@pytest.mark.parametrize("family", ["ERM", "DARE"])
def test_precision_does_not_matter_on_real_features(real_data, head_for, family, rows):
    with np.load(real_data("gas_drift/gas_drift.npz")) as data:
        X, y, domains = data["X"], data["y"], data["domain"]
    rng, names = np.random.default_rng(0), ("batch1", "batch2", "batch3")
    batches = [rng.choice(np.flatnonzero(domains == name), rows, replace=False) for name in names]
    kept = np.concatenate(batches)
    single, double = (
        head_for("classification", family).fit(rows, y[kept], domains=domains[kept])
        for rows in (X[kept], X[kept].astype(np.float64))
    )
    unseen = X[domains == "batch4"]
    np.testing.assert_allclose(
        single.predict_proba(unseen), double.predict_proba(unseen.astype(np.float64)), atol=1e-3
    )
