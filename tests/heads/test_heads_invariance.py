"""What must not change a head: units, origin, order, names, repetitions, storage."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from domain_problems import FAMILIES, TASKS, assert_same_head, head_for, make_problem, scores
from skdare import DAREClassifier, DARERegressor

PRECISE = {"tol": 1e-8}
every_family = pytest.mark.parametrize(("task", "family"), FAMILIES)
pytestmark = [
    pytest.mark.filterwarnings("ignore:the features vary little"),
]
# More rows than features in each domain; and fewer, which only whitening minds.
SIZES = [
    *((task, family, 5) for task, family in FAMILIES if task != "binary"),
    ("classification", "DARE", 30),
]


@pytest.mark.parametrize("constant", [1e-4, 3e3])
@every_family
def test_a_common_unit_of_the_features_changes_no_prediction(task, family, constant):
    problem = make_problem(task)
    X = constant * problem.X
    unit = problem.fit(head_for(task, family))
    scaled = problem.fit(head_for(task, family), X)
    np.testing.assert_allclose(scores(scaled, X), scores(unit, problem.X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("strategy", ["standardize", "whiten"])
@pytest.mark.parametrize("task", TASKS)
def test_standardising_heads_know_no_units(task, strategy):
    problem = make_problem(task)
    rng = np.random.default_rng(1)
    units = 10.0 ** rng.uniform(-4, 4, size=5)
    options = {"shrinkage": 1.0 if strategy == "standardize" else 0.3, "tol": 1e-9}
    options |= {"shrinkage_target": "diagonal", "centered": True, "adaptation": "centered"}
    options["guess"] = "mean"
    new = problem.X[problem.rows("west")]
    found = []
    for unit in (1.0, units):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the feature with the largest unit
            head = problem.fit(
                head_for(task, "DARE", mean_penalty=1.0, **options), unit * problem.X
            )
            found.append([scores(head, unit * new), scores(head.adapt(unit * new), unit * new)])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("family", ["ERM", "DARE", "Anchor"])
def test_the_unit_and_the_origin_of_the_targets_are_those_of_the_predictions(family):
    problem = make_problem("regression")
    unit = problem.fit(head_for("regression", family))
    scaled = head_for("regression", family)
    scaled.fit(problem.X, 1000 * problem.y + 5000, domains=problem.domains)
    np.testing.assert_allclose(
        scaled.predict(problem.X), 1000 * unit.predict(problem.X) + 5000, rtol=1e-5
    )


WITHOUT_ORIGIN = {
    "ERM": {},
    "Reweighted": {},
    "GroupDRO": {},
    "IRM": {},
    "Anchor": {},
    "Anchor, whitened": {"adjust": True},
    "DARE": {"centered": True, "mean_penalty": 0.0},
    "DARE, identity": {
        "centered": True,
        "mean_penalty": 0.0,
        "shrinkage": 0.1,
        "shrinkage_target": "identity",
    },
    "DARE, diagonal": {"centered": True, "mean_penalty": 0.0, "shrinkage_target": "diagonal"},
    "DARE, means in": {"centered": True, "mean_penalty": None, "guess": "mean"},
    "DARE, no guess": {"mean_penalty": None, "guess": None},
    "DARE, covariance": {"centered": True, "mean_penalty": 0.0, "guess": "covariance"},
    "DARE, named": {"centered": True, "mean_penalty": 0.0, "guess": {"north": 1.0, "west": 3.0}},
}


@pytest.mark.parametrize("d", [5, 30])
@pytest.mark.parametrize(
    ("task", "name"),
    [
        (task, name)
        for task in TASKS
        for name in WITHOUT_ORIGIN
        if (task, name.split(",")[0]) in FAMILIES
    ],
)
def test_the_origin_of_the_features_changes_no_prediction(task, name, d):
    family = name.split(",")[0]
    options = {**WITHOUT_ORIGIN[name], **PRECISE}
    if family == "DARE":
        options["adaptation"] = "centered"
    problem = make_problem(task, d=d)
    rng = np.random.default_rng(5)
    shift = 10.0 * rng.normal(size=d) * problem.X.std(axis=0)
    given, moved = (
        problem.fit(head_for(task, family, **options), X) for X in (problem.X, problem.X + shift)
    )
    new = rng.normal(size=(50, d))
    expected = scores(given, new)
    atol = 1e-4 * np.abs(expected).max()
    np.testing.assert_allclose(scores(moved, new + shift), expected, rtol=0, atol=atol)
    if family == "DARE":
        adapted = scores(given.adapt(new), new)
        again = scores(moved.adapt(new + shift), new + shift)
        np.testing.assert_allclose(again, adapted, rtol=0, atol=atol)


@every_family
def test_the_order_of_rows_changes_nothing(task, family):
    problem = make_problem(task)
    given = problem.fit(head_for(task, family, **PRECISE))
    order = np.random.default_rng(7).permutation(len(problem.y))
    for rows in (order, np.argsort(problem.domains, kind="stable")):
        other = problem.permuted(rows)
        assert_same_head(other.fit(head_for(task, family, **PRECISE)), given, rtol=1e-5)


NAMES = {
    "reversed": {"north": "z", "south": "y", "west": "x"},
    "numbers": {"north": 3, "south": 1, "west": 2},
    "floats": {"north": 0.5, "south": np.inf, "west": -1.0},
    "booleans": {"north": True, "south": False, "west": True},
    "days": {
        name: np.datetime64(day)
        for name, day in {
            "north": "2020-01-03",
            "south": "2020-01-01",
            "west": "2021-01-01",
        }.items()
    },
}


@pytest.mark.parametrize("naming", NAMES)
@pytest.mark.parametrize("family", ["ERM", "Reweighted", "GroupDRO", "DARE"])
def test_the_names_of_domains_change_nothing(family, naming):
    problem = make_problem("classification")
    names = np.array([NAMES[naming][label] for label in problem.domains.tolist()])
    _, same = np.unique(names, return_inverse=True)
    given = head_for("classification", family, **PRECISE).fit(problem.X, problem.y, domains=same)
    for labels in (names, names.tolist()):
        head = head_for("classification", family, **PRECISE)
        head.fit(problem.X, problem.y, domains=labels)
        assert len(head.domains_) == len(set(names.tolist()))
        assert_same_head(head, given, rtol=1e-5)


def test_narrow_integers_are_names_as_wide_ones_are():
    problem = make_problem("classification")
    sites = np.array([-128, 0, 127])
    codes = np.unique(problem.domains, return_inverse=True)[1]
    heads = [
        DAREClassifier().fit(problem.X, problem.y, domains=sites.astype(kind)[codes])
        for kind in (np.int8, np.int64)
    ]
    assert heads[0].domains_ == heads[1].domains_ == [-128, 0, 127]
    np.testing.assert_array_equal(heads[0].coef_, heads[1].coef_)


@pytest.mark.parametrize(("task", "family", "d"), SIZES)
def test_a_weight_is_a_number_of_repetitions(task, family, d):
    problem = make_problem(task, d=d)
    times = np.random.default_rng(2).integers(0, 3, size=len(problem.y))
    weighted = problem.fit(head_for(task, family, **PRECISE), sample_weight=times)
    repeated = problem.permuted(np.repeat(np.arange(len(times)), times))
    assert_same_head(weighted, repeated.fit(head_for(task, family, **PRECISE)), rtol=1e-5)


@pytest.mark.parametrize("penalty", [1.0, "exact"])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.filterwarnings("ignore:the domain means")
@pytest.mark.filterwarnings("ignore:.*noise")
def test_the_unit_of_the_weights_changes_nothing(task, penalty):
    problem = make_problem(task)
    weight = np.random.default_rng(3).uniform(0.5, 2.0, size=len(problem.y))
    counted, shared = (
        problem.fit(head_for(task, "DARE", mean_penalty=penalty, **PRECISE), sample_weight=w)
        for w in (weight, weight / weight.sum() * 126)
    )
    assert_same_head(shared, counted, rtol=1e-5)


@pytest.mark.parametrize("family", ["ERM", "Reweighted", "GroupDRO", "IRM", "DARE"])
@pytest.mark.parametrize("task", TASKS[:2])
def test_a_domain_may_lack_a_class(task, family):
    problem = make_problem(task)
    y = problem.y.copy()
    y[problem.rows("south")] = 0
    head = head_for(task, family).fit(problem.X, y, domains=problem.domains)
    P = head.predict_proba(problem.X)
    assert P.shape == (len(y), len(np.unique(y)))
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)


# -- Storage -------------------------------------------------------------------------------------


def memory_mapped(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def torch_tensor(X):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.from_numpy(np.ascontiguousarray(X))


# X is exact in every one of these. In float64 the solutions agree to the solver's tolerance, in
# float32 to the rounding of the products, which the whitening and the solver enlarge.
STORAGES = {
    "csr matrix": (lambda X, _: sparse.csr_matrix(X), 1e-5),
    "csr array float32": (lambda X, _: sparse.csr_array(X.astype(np.float32)), 1e-3),
    "csc": (lambda X, _: sparse.csc_array(X), 1e-5),
    "Fortran order": (lambda X, _: np.asfortranarray(X), 1e-5),
    "read-only": (lambda X, _: memory_mapped(X, _).copy("K"), 1e-5),
    "memory-mapped": (memory_mapped, 1e-5),
    "memory-mapped float16": (lambda X, f: memory_mapped(X.astype(np.float16), f), 1e-3),
    "float32": (lambda X, _: X.astype(np.float32), 1e-3),
    "torch": (lambda X, _: torch_tensor(X), 1e-5),
    "torch float32": (lambda X, _: torch_tensor(X.astype(np.float32)), 1e-3),
}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(("task", "family", "d"), SIZES)
def test_where_rows_are_stored_does_not_matter(tmp_path, task, family, storage, d):
    problem = make_problem(task, d=d)
    store, rtol = STORAGES[storage]
    dense = problem.fit(head_for(task, family, l2=0.1, tol=1e-6))
    X = store(problem.X, tmp_path)
    stored = problem.fit(head_for(task, family, l2=0.1, tol=1e-6), X)
    assert_same_head(stored, dense, rtol=rtol)
    expected = scores(dense, problem.X)
    found = scores(stored, X)
    if storage.startswith("torch"):
        assert type(found) is type(X)
        found = found.numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=10 * rtol * np.abs(expected).max())


def test_the_callers_arrays_are_never_modified():
    problem = make_problem("classification")
    weight = np.linspace(0.5, 2, len(problem.y))
    given = [problem.X, problem.y, weight, problem.domains]
    before = [array.copy() for array in given]
    for array in given:
        array.setflags(write=False)
    head = problem.fit(DAREClassifier(class_weight="balanced"), sample_weight=weight)
    head.adapt(problem.X).predict(problem.X)
    problem.fit(DAREClassifier(preparation="auto"), 1e3 * problem.X[:, [0]] * [1, 1e-6])
    for now, then in zip(given, before, strict=True):
        np.testing.assert_array_equal(now, then)


# -- An origin far away --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"guess": "mean"},
        {"mean_penalty": 1.0},
        {"mean_penalty": 1.0, "centered": True},
        {"mean_penalty": 0.0},
    ],
    ids=str,
)
def test_an_origin_ten_standard_deviations_away_costs_little_or_is_warned_of(options):
    rng = np.random.default_rng(0)
    beta = np.random.default_rng(1).normal(size=4)

    def rows(n):
        X = rng.normal(size=(n, 4))
        return X, X @ beta + 0.3 * np.linalg.norm(beta) * rng.normal(size=n)

    (X, y), (X_new, y_new) = rows(600), rows(300)
    domains = np.repeat(np.arange(4), 150)  # without any shift between them
    lost = []
    warned = False
    for shift in (0.0, 10.0):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            head = DARERegressor(**options).fit(X + shift, y, domains=domains)
        lost.append(-head.score(X_new + shift, y_new))
        warned = any("vary little" in str(one.message) for one in heard)
    assert lost[1] - lost[0] <= 0.05 or warned
