"""Properties of every head on odd data: an error in words, or numbers that are finite; and what
must not change a head."""

from __future__ import annotations

import os
import pickle
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import assume, note
from hypothesis import strategies as st

import skdare
from odd_data import HEADS, Problem, fair_problems, heads, problems
from skdare.datasets import DomainData, read, write
from skdare.datasets._domain_data import fingerprint

# Not convex: which of its minima is found may change with the last digit.
CONVEX = [name for name in HEADS if not name.startswith("IRM") and not name.endswith("CV")]


def task_of(name: str) -> str:
    return "classification" if "Classifier" in name else "regression"


def unless_refused(do, *arguments, **more):
    """What comes of it, or None where it is refused in words that a user can read."""
    try:
        return do(*arguments, **more)
    except (ValueError, TypeError) as error:
        # What LAPACK says of its matrices is for others.
        if len(str(error)) < 10 or isinstance(error, np.linalg.LinAlgError):
            raise AssertionError(f"refused, but not in words: {error!r}") from error
        note(f"refused: {error}")
        return None


def fitted(head, problem: Problem):
    """The head, or None where it refuses in words."""
    return unless_refused(head.fit, problem.X, problem.y, domains=problem.domains)


def assert_finite(head, X) -> None:
    """Of a fitted head, all numbers are."""
    assert np.isfinite(head.coef_).all()
    assert np.isfinite(head.intercept_).all()
    if is_classifier(head):
        P = np.asarray(head.predict_proba(X))
        assert np.isfinite(P).all()
        np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-5)
        assert set(np.asarray(head.predict(X)).tolist()) <= set(head.classes_.tolist())
    else:
        assert np.isfinite(np.asarray(head.predict(X), dtype=float)).all()


@pytest.mark.parametrize("name", HEADS)
def test_a_head_is_finite_or_refuses_in_words(search, name):
    @search(rate=10, head=heads(name), problem=problems(task_of(name)))
    def law(head, problem):
        with np.errstate(all="ignore"):
            before = pickle.dumps(problem.X)
            if fitted(head, problem) is not None:
                assert_finite(head, problem.X)
            assert pickle.dumps(problem.X) == before


@pytest.mark.parametrize("name", [name for name in HEADS if name.startswith("DARE")])
def test_a_head_adapts_to_odd_rows_or_refuses_in_words(search, name, make):
    task = task_of(name)
    training = make(task)

    @search(rate=5, head=heads(name), problem=problems(task, training.X.shape[1]))
    def law(head, problem):
        with np.errstate(all="ignore"):
            assume(fitted(head, Problem(training.X, training.y, training.domains, "fair")))
            adapted = unless_refused(head.adapt, problem.X)
            if adapted is not None:
                assert_finite(adapted, problem.X)


@pytest.mark.parametrize("name", HEADS)
def test_what_was_fitted_is_saved_and_comes_back_or_is_refused_before_it_is_written(search, name):
    @search(rate=3, head=heads(name), problem=problems(task_of(name)))
    def law(head, problem):
        with np.errstate(all="ignore"), tempfile.TemporaryDirectory() as folder:
            assume(fitted(head, problem) is not None)
            path = Path(folder) / "head"
            unless_refused(skdare.save, head, path)
            assert os.listdir(folder) in ([], ["head"])
            if path.exists():
                again = skdare.load(path)
                np.testing.assert_array_equal(again.coef_, head.coef_)
                np.testing.assert_array_equal(again.predict(problem.X), head.predict(problem.X))


# -- What must not change a head -------------------------------------------------------------------


def converged(head, problem: Problem, **more):
    """The head fitted to tolerance; a draw with which that takes too long is left out."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        head.fit(problem.X, problem.y, domains=problem.domains, **more)
    assume(not any(issubclass(w.category, ConvergenceWarning) for w in heard))
    return head


def scores(head, X) -> np.ndarray:
    return head.decision_function(X) if is_classifier(head) else head.predict(X)


def precise(name: str):
    head = getattr(skdare, name)()
    return head.set_params(tol=1e-9) if "tol" in head.get_params() else head


def assert_same_scores(found, want) -> None:
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-4 * max(1e-3, np.abs(want).max()))


CHANGES = {
    "order of rows": lambda p, rng: (rng.permutation(len(p.y)), 1.0, None),
    "unit of features": lambda p, rng: (np.arange(len(p.y)), 2.0 ** rng.integers(-30, 30), None),
    "names of domains": lambda p, rng: (np.arange(len(p.y)), 1.0, rng.permutation(99)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", CONVEX)
def test_a_head_does_not_depend_on(search, name, change):
    @search(rate=1.5, problem=fair_problems(task_of(name)), seed=st.integers(0, 99))
    def law(problem, seed):
        order, unit, names = CHANGES[change](problem, np.random.default_rng(seed))
        X, y, domains = problem.X[order] * unit, problem.y[order], problem.domains[order]
        if names is not None:
            domains = [f"name {names[domain]}" for domain in domains.tolist()]
        plain = converged(precise(name), problem)
        changed = converged(clone(plain), Problem(X, y, domains, ""))
        assert_same_scores(scores(changed, problem.X * unit), scores(plain, problem.X))


@pytest.mark.parametrize("name", CONVEX)
def test_a_row_twice_is_a_row_of_weight_two(search, name):
    @search(rate=1.5, problem=fair_problems(task_of(name)), seed=st.integers(0, 99))
    def law(problem, seed):
        times = np.random.default_rng(seed).integers(1, 3, size=len(problem.y))
        rows = np.repeat(np.arange(len(times)), times)
        twice = Problem(problem.X[rows], problem.y[rows], problem.domains[rows], "")
        repeated = converged(precise(name), twice)
        weighted = converged(precise(name), problem, sample_weight=times.astype(float))
        assert_same_scores(scores(weighted, problem.X), scores(repeated, problem.X))


# -- Tables ----------------------------------------------------------------------------------------


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
SUFFIXES = [".npz", ".csv", ".csv.gz", ".parquet", ".safetensors", ""]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_is_read_back_or_refused_before_it_is_written(search, suffix):
    package = {".parquet": "pyarrow", ".safetensors": "safetensors"}.get(suffix)
    if package is not None:
        pytest.importorskip(package, reason=f"{package} is not installed")

    @search(
        rate=10,
        seed=st.integers(0, 99),
        n=st.integers(2, 12),
        classes=st.lists(NAMES, min_size=1, max_size=3, unique=True),
        domains=st.lists(NAMES, min_size=2, max_size=3, unique=True),
        features=st.lists(NAMES, min_size=1, max_size=4, unique=True) | st.integers(1, 4),
        dtype=st.sampled_from(["float64", "float32", "float16"]),
        oddly=st.sampled_from([0.0, 5e-324, 1.0, 6e4, 1e308, -0.0, np.nan, np.inf]),
    )
    def law(seed, n, classes, domains, features, dtype, oddly):
        rng = np.random.default_rng(seed)
        d = features if isinstance(features, int) else len(features)
        with np.errstate(all="ignore"), tempfile.TemporaryDirectory() as folder:
            X = rng.normal(size=(n, d)).astype(dtype)
            X[0, 0] = oddly
            y = np.array(classes)[rng.integers(len(classes), size=n)]
            sites = np.array(domains)[np.arange(n) % len(domains)]
            named = None if isinstance(features, int) else features
            path = Path(folder) / f"table{suffix}"
            unless_refused(write, path, DomainData(X, y, sites, feature_names=named))
            if not os.listdir(folder):
                return
            back = read(path)
            np.testing.assert_array_equal(back.X, X)
            # In text, what looks like a number is one.
            said = [str(name).strip() for name in (*back.y.tolist(), *back.domains.tolist())]
            if "csv" not in suffix:
                assert fingerprint(back) == fingerprint(DomainData(X, y, sites))
            elif not any(map(looks_like_a_number, said)):
                assert said == [str(name).strip() for name in (*y.tolist(), *sites.tolist())]


def looks_like_a_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
