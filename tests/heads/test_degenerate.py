"""Domains, columns and targets with nothing in them, or too much: an error in words, or a result.

Whatever the data, no head gives numbers that are none, and none ends in an error about arithmetic.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import skdare
from skdare.datasets import DomainData
from skdare.whitening.whitening import RowsAlike

HEADS = [name for name in skdare.__all__ if name.endswith(("Classifier", "Regressor", "CV"))]
ADJUSTED = {
    "by default": {},
    "penalty": {"mean_penalty": 1.0},
    "covariance": {"centered": True, "shrinkage": 0.0, "adaptation": "centered"},
    "pooled": {"shrinkage_target": "pooled"},
    "diagonal": {"shrinkage_target": "diagonal"},
    "standardised": {"shrinkage": 1.0, "shrinkage_target": "diagonal", "adaptation": "centered"},
    "pooled covariance": {"shrinkage_target": "pooled", "centered": True},
    "ledoit-wolf": {"shrinkage": "ledoit-wolf"},
    "identity": {"shrinkage_target": "identity"},
}
OPTIONS = [
    *((name, {}) for name in HEADS),
    *(
        (name, {"mean_penalty": 1.0, **options})
        for name in ("DAREClassifier", "DARERegressor")
        for options in ADJUSTED.values()
    ),
    ("DARERegressorCV", {"strategies": ("erm", "raw"), "shrinkage": (0.1,)}),
    ("AnchorRegressor", {"adjust": True}),
]
every_head = pytest.mark.parametrize(
    ("name", "options"), OPTIONS, ids=lambda value: str(value) if value else None
)
# Warnings are looked at one by one.
pytestmark = pytest.mark.filterwarnings("default")


def plain(features: int = 4, rows: int = 30) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of three domains, numbers that depend on them, and the domains' names."""
    rng = np.random.default_rng(0)
    scales, offsets = np.array([1.0, 1.3, 1.6]), np.array([0.0, 0.5, 1.0])
    X = rng.normal(size=(3, rows, features)) * scales[:, None, None] + offsets[:, None, None]
    X = X.reshape(3 * rows, features)
    y = X @ rng.normal(size=features) + 0.3 * rng.normal(size=len(X))
    return X, y, np.repeat(["a", "b", "c"], rows)


def with_domain(value, features: int = 4) -> np.ndarray:
    """Domain b with these values, or with its first row in every row."""
    X, _, domains = plain(features)
    b = domains == "b"
    X[b] = X[b][0] if value is None else value
    return X


def with_column(values) -> np.ndarray:
    X = plain()[0]
    X[:, 0] = values
    return X


def jitter(features: int) -> np.ndarray:
    """Numbers that differ by a rounding unit at most."""
    rng = np.random.default_rng(1)
    return np.where(rng.random((90, features)) < 0.5, 0.1, np.nextafter(0.1, 1.0))


# What a fit must say: None where there is nothing to say, "domain" for a warning that names b,
# else part of the error.
CASES = {
    "zeros in one domain": (with_domain(0.0), "domain"),
    "one row again and again": (with_domain(None), "domain"),
    "one row again and again, float32": (with_domain(None).astype(np.float32), "domain"),
    "one row again and again, few rows": (with_domain(None, 60), "domain"),
    "zeros, few rows": (with_domain(0.0, 60), "domain"),
    "one value again and again": (with_domain(0.1), "domain"),
    "a domain too small to square": (with_domain(1e-200), "domain"),
    "every domain one row": (np.repeat(plain()[0][[0, 40, 70]], 30, axis=0), "domain"),
    "a constant column": (with_column(1e8 / 3), None),
    "a constant column, float32": (with_column(1e8 / 3).astype(np.float32), None),
    "nothing but constants": (np.tile([0.1, 1e8 / 3, 7e-5, 0.0], (90, 1)), "every feature is con"),
    "constants, float32": (np.tile([0.1, 1e8 / 3], (90, 1)).astype(np.float32), "every feature"),
    "constants but for rounding": (jitter(4), "every feature is constant"),
    "all zero": (np.zeros((90, 4)), "every feature is constant"),
    "float32 at 1e-25": ((1e-25 * plain()[0]).astype(np.float32), None),
    "float32 at 1e-25, few rows": ((1e-25 * plain(60)[0]).astype(np.float32), None),
    "float32 at 1e12": ((1e12 * plain()[0]).astype(np.float32), None),
    "float32 at 1e17": ((1e17 * plain()[0]).astype(np.float32), None),
    "float32 at 1e17, few rows": ((1e17 * plain(60)[0]).astype(np.float32), None),
    "nanoseconds": (with_column(1.7e18 + 1e15 * np.arange(90)).astype(np.float32), None),
    "float32 at 1e30": ((1e30 * plain()[0]).astype(np.float32), "feature 0 reaches .*e.30"),
    "nothing beside a constant": (
        np.c_[1e-20 * plain()[0], np.full(90, 1e8)].astype(np.float32),
        r"feature 4 is about 1e.08, and beside it the features vary by",
    ),
    "1e60": (1e60 * plain()[0], None),
    "1e-100": (1e-100 * plain()[0], None),
    "1e150": (1e150 * plain()[0], "feature 0 reaches .*e.150"),
    "1e150 in one column": (with_column(1e150 * np.arange(90)), "feature 0 reaches 8.9e.151"),
    "1e150, few rows": (1e150 * plain(60)[0], "feature 0 reaches .*e.150"),
    "1e-150": (1e-150 * plain()[0], "every feature is constant, or varies by less"),
    "1e308 either way": (1e308 * np.sign(plain()[0]), "feature 0 reaches 1.0e.308"),
}


def targets_for(name: str, y: np.ndarray) -> np.ndarray:
    return (y > np.median(y)).astype(int) if "Classifier" in name else y


def carefully(action, *, named: str | None = None):
    """What an action gives; arithmetic that goes wrong on the way is an error."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        result = action()
    for one in heard:
        assert issubclass(one.category, UserWarning), f"{one.category.__name__}: {one.message}"
    if named is not None:
        assert any(named in str(one.message) for one in heard), [str(o.message) for o in heard]
    return result


def is_finite(*arrays) -> bool:
    return all(np.isrealobj(a) and np.isfinite(a).all() for a in map(np.asarray, arrays))


def fitted(name, options, X, y, domains, named=None):
    head = getattr(skdare, name)(**options)
    carefully(lambda: head.fit(X, y, domains=domains), named=named)
    assert is_finite(head.coef_, head.intercept_)
    return head


@pytest.mark.parametrize("case", CASES)
@every_head
def test_odd_features_are_refused_in_words_or_fitted_to_finite_weights(name, options, case):
    X, says = CASES[case]
    _, y, domains = plain()
    y = targets_for(name, y)
    if says not in (None, "domain"):
        with pytest.raises(ValueError, match=says):
            carefully(lambda: getattr(skdare, name)(**options).fit(X, y, domains=domains))
        return
    if options.get("shrinkage") == "ledoit-wolf" and case == "1e-100":
        with pytest.raises(ValueError, match="shrinkage='ledoit-wolf' is made of them"):
            fitted(name, options, X, y, domains)
        return
    # ERM does not look at domains.
    named = "domain 'b'" if says == "domain" and not name.startswith("ERM") else None
    named = "all the same" if case == "every domain one row" and named else named
    head = fitted(name, options, X, y, domains, named)
    assert is_finite(carefully(lambda: head.predict(X)))
    if hasattr(head, "predict_proba"):
        assert is_finite(carefully(lambda: head.predict_proba(X)))


def is_rehearsed(name: str, kind: str, case: str) -> bool:
    """A third of all pairs, so that every head, kind and case is: a rehearsal is many fits."""
    places = list(ADJUSTED).index(kind) + list(CASES).index(case) + name.endswith("Regressor")
    return places % 3 == 0


@pytest.mark.parametrize(
    "case", [case for case, (_, says) in CASES.items() if says in (None, "domain")]
)
@pytest.mark.parametrize("kind", ADJUSTED)
@pytest.mark.parametrize("name", ["DAREClassifier", "DARERegressor"])
def test_whatever_was_fitted_adapts_diagnoses_and_rehearses_or_says_why_not(name, kind, case):
    X, _ = CASES[case]
    _, y, domains = plain()
    y = targets_for(name, y)
    options = ADJUSTED[kind]
    if options.get("shrinkage") == "ledoit-wolf" and case == "1e-100":
        pytest.skip("refused when fitted")
    head = fitted(name, options, X, y, domains)
    if is_rehearsed(name, kind, case):
        carefully(lambda: head.rehearse(X, y, domains=domains))
    for rows in (X[domains == "a"], X[domains == "b"]):
        try:
            adapted = carefully(lambda rows=rows: head.adapt(rows))
        except RowsAlike as error:
            assert "these rows are all the same" in str(error)  # noqa: PT017
        else:
            assert is_finite(adapted.coef_, adapted.intercept_, adapted.predict(X))
        text = str(carefully(lambda rows=rows: head.diagnose(rows)))
        assert "nan" not in text


@pytest.mark.parametrize(
    "case", [case for case, (_, says) in CASES.items() if says in (None, "domain")]
)
@pytest.mark.parametrize("name", ["DAREClassifier", "DARERegressor"])
def test_a_fleet_predicts_finite_numbers_or_says_why_not(name, case):
    X, _ = CASES[case]
    _, y, domains = plain()
    head = fitted(name, {}, X, targets_for(name, y), domains)
    if case in ("1e60", "1e-100"):
        with pytest.raises(ValueError, match="a fleet keeps float32"):
            head.fleet()
        return
    fleet = carefully(lambda: head.fleet(rank=3).partial_fit(X, domains))
    assert is_finite(carefully(lambda: fleet.predict(X, domains)))


@pytest.mark.parametrize(
    "spoil", [lambda X: 1e150 * X, lambda X: np.sign(X) * 1e308], ids=["1e150", "1e308"]
)
def test_a_stream_refuses_rows_that_would_spoil_it_and_goes_on(spoil):
    X, y, domains = plain()
    wrong = spoil(X)
    head = fitted("DARERegressor", {}, X, y, domains)
    adapter, fleet = head.adapter().partial_fit(X[:20]), head.fleet().partial_fit(X, domains)
    with pytest.raises(ValueError, match="feature 0 reaches"):
        adapter.partial_fit(wrong)
    with pytest.raises(ValueError, match="feature 0 reaches"):
        fleet.partial_fit(wrong, domains)
    with pytest.raises(ValueError, match="feature 0 reaches"):
        head.predict(wrong)
    with pytest.raises(ValueError, match="a fleet keeps float32"):
        fleet.partial_fit(1e40 * X, domains)
    np.testing.assert_array_equal(adapter.head_.coef_, head.adapt(X[:20]).coef_)
    assert is_finite(fleet.predict(X, domains))


@pytest.mark.parametrize("name", HEADS)
def test_float32_rows_are_scored_by_weights_that_float32_does_not_hold(name):
    X, y, domains = plain()
    y = targets_for(name, y) * (1 if "Classifier" in name else 1e60)
    head = fitted(name, {}, 1e-30 * X, y, domains)
    expected = head.predict(X)
    predicted = carefully(lambda: head.predict(X.astype(np.float32)))
    if "Classifier" in name:
        assert np.mean(predicted == expected) > 0.98
    else:
        np.testing.assert_allclose(predicted, expected, rtol=1e-3, atol=1e-5 * np.ptp(expected))


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e155, 1e200, 1e307])
@pytest.mark.parametrize("name", [name for name in HEADS if "Regressor" in name])
def test_targets_whose_squares_are_no_numbers_are_refused(name, scale):
    X, y, domains = plain()
    with pytest.raises(ValueError, match=r"y reaches .* multiply or divide y"):
        carefully(lambda: getattr(skdare, name)().fit(X, scale * y, domains=domains))


@pytest.mark.parametrize("name", [name for name in HEADS if "Regressor" in name])
@pytest.mark.parametrize("y", [np.full(90, 0.1), 1e17 + plain()[1], 1e90 * plain()[1]])
def test_odd_targets_have_finite_weights(name, y):
    X, _, domains = plain()
    assert is_finite(fitted(name, {}, X, y, domains).predict(X))


@pytest.mark.parametrize("weight", [1e-200, 1e200])
@pytest.mark.parametrize("name", HEADS)
def test_weights_of_rows_whose_sums_are_no_numbers_are_refused(name, weight):
    X, y, domains = plain()
    head, given = getattr(skdare, name)(), np.full(len(X), weight)
    with pytest.raises(ValueError, match="the largest sample_weight is"):
        head.fit(X, targets_for(name, y), domains=domains, sample_weight=given)


@pytest.mark.parametrize("scale", [1e-25, 1e17])
@pytest.mark.parametrize("features", [4, 60])
@every_head
def test_the_unit_of_float32_features_changes_no_prediction(name, options, features, scale):
    if options.get("shrinkage_target") == "identity":
        pytest.skip("the raw identity has a unit")
    X, y, domains = plain(features)
    X, y = X.astype(np.float32), targets_for(name, y)
    small = X * np.float32(2.0 ** round(np.log2(scale)))
    expected = fitted(name, options, X, y, domains).predict(X)
    predicted = fitted(name, options, small, y, domains).predict(small)
    np.testing.assert_allclose(predicted, expected, rtol=1e-3, atol=1e-3)


def held_as(kind: str, X: np.ndarray):
    if kind == "sparse":
        return sparse.csr_array(X)
    if kind == "torch":
        return pytest.importorskip("torch").asarray(X)
    return X


@pytest.mark.parametrize("case", ["one row again and again", "one value again and again"])
@pytest.mark.parametrize("options", ADJUSTED.values(), ids=ADJUSTED)
@pytest.mark.parametrize("kind", ["sparse", "torch"])
def test_a_stuck_domain_is_named_wherever_its_rows_lie(kind, options, case):
    X, _ = CASES[case]
    _, y, domains = plain()
    head = fitted("DARERegressor", options, held_as(kind, X), y, domains, "domain 'b'")
    expected = fitted("DARERegressor", options, X, y, domains)
    np.testing.assert_allclose(head.coef_, expected.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["dense", "sparse", "torch"])
@pytest.mark.parametrize("name", HEADS)
def test_constants_are_refused_wherever_they_lie(name, kind):
    X, _ = CASES["nothing but constants"]
    _, y, domains = plain()
    head, X, y = getattr(skdare, name)(), held_as(kind, X), targets_for(name, y)
    with pytest.raises(ValueError, match="every feature is constant"):
        carefully(lambda: head.fit(X, y, domains=domains))


@pytest.mark.parametrize("name", ["DAREClassifierCV", "DARERegressorCV"])
def test_a_search_passes_over_a_domain_without_which_nothing_varies(name):
    X, y, domains = plain()
    y, domains = targets_for(name, y), np.where(domains == "c", "a", domains)
    X[domains == "b"] = 0.1
    head = fitted(name, {}, X, y, domains, "domain 'b'")
    assert np.isnan(head.cv_results_["split0_test_score"]).all()
    assert np.isfinite(head.cv_results_["split1_test_score"]).all()


@pytest.mark.parametrize("protocol", ["default", "paper"])
@pytest.mark.parametrize("value", [0.0, None])
def test_one_stuck_domain_fails_no_trial_of_the_others(protocol, value):
    from skdare.bench import Settings, bench_plan, run
    from skdare.bench._heads import HEADS as BENCHED

    X, y, domains = with_domain(value), *plain()[1:]
    settings = Settings(
        **({"l2_grid": (0.01, 0.1)} if protocol == "default" else {}),
        protocol=protocol,
        patience=2,
        max_epochs=5,
        sgd_steps=5,
    )
    heads = [name for name, entry in BENCHED.items() if protocol == "default" or entry.in_paper]
    heads = [name for name in heads if "classification" in BENCHED[name].tasks]
    data = DomainData(X, targets_for("Classifier", y), domains)
    plan = bench_plan(data, settings=settings, name="t", heads=heads, trials=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        records = list(run(plan))
    failed = [(r.study, r.held_out, r.reason) for r in records if r.status == "failed"]
    # The diagnostic of alignment compares two domains, and beside the stuck one there is one.
    alone = "alignment compares two training domains"
    assert not [
        (study, held_out, reason)
        for study, held_out, reason in failed
        if held_out != "b" and not (study == "alignment" and alone in reason)
    ]
    assert all("all the same" in reason for _, held_out, reason in failed if held_out == "b")


def test_without_a_pool_there_is_nothing_to_shrink_towards_but_the_trace():
    # Rows that are the same within every domain: nothing varies, and there is no pool.
    rng = np.random.default_rng(0)
    domains = np.repeat(np.arange(6), 3)
    X = rng.normal(size=(6, 4))[domains]
    y = np.arange(18) % 2
    options = {"centered": True, "adaptation": "centered", "shrinkage": 0.5, "guess": "covariance"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pooled, scaled = (
            skdare.DAREClassifier(shrinkage_target=target, **options).fit(X, y, domains=domains)
            for target in ("pooled", "scaled")
        )
    np.testing.assert_allclose(pooled.coef_, scaled.coef_, atol=1e-12)
