"""Random odd tables: heads are finite or refuse in words, come back from files, and adapt."""

from __future__ import annotations

import os
import pickle
import warnings

import numpy as np
import pytest

import skdare
from domain_problems import HEADS

pytestmark = pytest.mark.hostile
SEED = int(os.environ.get("SEED", "0"))
CASES = 40
OPTIONS = {
    "DAREClassifier": {
        "adaptation": ["raw", "centered", "covariance", "mixture", "translation", None],
        "shrinkage": [0.0, 0.1, 0.9, 1.0],
        "shrinkage_target": ["scaled", "identity", "diagonal"],
        "centered": [True, False],
        "mean_penalty": [None, 0.0, 1.0, "exact"],
        "guess": ["mean", "covariance", None],
    },
    "AnchorRegressor": {"gamma": [0.0, 1.0, 1e6], "adjust": [True, False]},
    "IRMClassifier": {"penalty": [0.0, 1.0, 1e3]},
}
OPTIONS["DARERegressor"] = OPTIONS["DAREClassifier"] | {"adaptation": ["raw", "centered", None]}


def odd_table(rng):
    """Rows of a few domains, of any unit, some columns and domains with nothing in them."""
    d = int(rng.integers(1, 9))
    sizes = rng.integers(1, 25, size=rng.integers(1, 6))
    domains = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(domains), d)) + rng.normal(size=(len(sizes), d))[domains]
    for e in range(len(sizes)):
        own = domains == e
        match rng.integers(8):
            case 0:
                X[own] = X[own][0]
            case 1:
                X[own] = 0.0
            case 2:
                X[own] *= 10.0 ** rng.integers(-20, 20)
    for j in range(d):
        match rng.integers(10):
            case 0:
                X[:, j] = 1.1
            case 1:
                X[0, j] += 1e8
            case 2:
                X[:, j] += 1e8
            case 3:
                X[:, j] *= 10.0 ** rng.integers(-12, 12)
            case 4:
                X[rng.integers(len(X)), j] = rng.choice([np.nan, np.inf, -0.0, 5e-324])
    X = (X * 10.0 ** rng.uniform(-25, 25)) if rng.random() < 0.3 else X
    with np.errstate(all="ignore"):
        return X.astype(rng.choice(["float64", "float32"])), domains


def odd_targets(rng, name, n):
    if "Regressor" in name:
        y = rng.normal(size=n) * 10.0 ** rng.integers(-110, 110)
        return np.full(n, y[0]) if rng.random() < 0.1 else y
    labels = [
        np.array(["a", "b", "ü\x00"], dtype=object),
        np.array([-(2**62), 0, 2**62]),
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
        np.array([False, True]),
        np.arange(7).astype(np.uint8),
    ]
    chosen = labels[rng.integers(len(labels))]
    return chosen[rng.integers(len(chosen), size=n)]


def in_words(action):
    """What comes of it, or None if it is refused in words that a user can read."""
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            result = action()
    except (ValueError, TypeError) as error:
        if len(str(error)) < 10 or isinstance(error, np.linalg.LinAlgError):
            raise AssertionError(f"refused, but not in words: {error!r}") from error
        return None
    wrong = [one for one in heard if not issubclass(one.category, UserWarning)]
    assert not wrong, [str(one.message) for one in wrong]
    return result


def assert_finite(head, X):
    assert np.isfinite(head.coef_).all()
    assert np.isfinite(head.intercept_).all()
    if hasattr(head, "classes_"):
        P = head.predict_proba(X)
        np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-5)
        assert set(head.predict(X).tolist()) <= set(head.classes_.tolist())
    else:
        assert np.isfinite(head.predict(X)).all()


@pytest.mark.parametrize("name", HEADS)
def test_a_head_is_finite_or_refuses_in_words(name, tmp_path):
    fitted = 0
    for case in range(CASES):
        rng = np.random.default_rng([SEED, HEADS.index(name), case])
        X, domains = odd_table(rng)
        y = odd_targets(rng, name, len(X))
        options = {
            key: values[rng.integers(len(values))] for key, values in OPTIONS.get(name, {}).items()
        }
        if rng.random() < 0.5:
            options["preparation"] = "auto"
        head = getattr(skdare, name)(**options)
        before = pickle.dumps((X, y, domains))
        note = f"SEED={SEED}, case {case}: {head}"
        try:
            done = in_words(lambda: head.fit(X, y, domains=domains))  # noqa: B023
            assert pickle.dumps((X, y, domains)) == before
            if done is None:
                continue
            fitted += 1
            rows = X[np.isfinite(X).all(axis=1)]
            if not len(rows):
                continue
            in_words(lambda: assert_finite(head, rows))  # noqa: B023
            head.save(tmp_path / "head")
            again = skdare.load(tmp_path / "head")
            np.testing.assert_array_equal(again.coef_, head.coef_)
            if hasattr(head, "adapt"):
                adapted = in_words(lambda: head.adapt(rows, force=True))  # noqa: B023
                if adapted is not None:
                    in_words(lambda: assert_finite(adapted, rows))  # noqa: B023
                    adapted.save(tmp_path / "head")
                    loaded = skdare.load(tmp_path / "head")
                    np.testing.assert_array_equal(loaded.coef_, adapted.coef_)
        except Exception as error:
            error.add_note(note)
            raise
    assert fitted > CASES // 8
