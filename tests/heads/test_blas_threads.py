"""BLAS threads: small fits take one, whatever is set, and leave the number as it was."""

from contextlib import ExitStack

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score
from threadpoolctl import threadpool_info, threadpool_limits

from skdare import DAREClassifierCV
from skdare.arrays import blas_threads, threads_for
from skdare.bench._run import _share_of_threads
from skdare.choosing.lockstep import LogisticProblems

SMALL = np.ones((100, 4))


def threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=6, return_X_y=True)
    return X[:480, 18:46], y[:480]


def blocks(y, number):
    return np.arange(len(y)) * number // len(y)


@pytest.mark.parametrize(("shared", "inside"), [(1 << 20, 1), (0, 2)])
def test_a_small_search_takes_one_thread_and_leaves_the_number_as_it_was(
    digits, monkeypatch, shared, inside
):
    monkeypatch.setattr(blas_threads, "_SHARED", shared)
    seen = set()

    def scoring(estimator, X, y):
        seen.update(threads())
        return accuracy_score(y, estimator.predict(X))

    X, y = digits
    DAREClassifierCV(strategies=("erm",), l2=(0.1,), scoring=scoring).fit(X, y, blocks(y, 4))
    assert seen == {inside}
    assert threads() == {2}


@pytest.mark.parametrize("rows", [np.ones((1 << 14, 64)), np.ones((2, 1024)), [[1.0, 2.0]]])
def test_large_rows_wide_matrices_and_what_has_no_shape_keep_their_threads(rows):
    with threads_for(rows):
        assert threads() == {2}


def test_a_failure_leaves_the_number_as_it_was():
    with pytest.raises(KeyError), threads_for(SMALL):
        raise KeyError
    assert threads() == {2}


def test_the_last_to_leave_puts_the_number_back():
    with ExitStack() as second:
        with threads_for(SMALL):
            second.enter_context(threads_for(SMALL))
        assert threads() == {1}
    assert threads() == {2}


def test_a_number_that_others_set_meanwhile_stays():
    with threads_for(SMALL):
        threadpool_limits(3, user_api="blas")
    assert threads() == {3}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_bench_takes_no_more_threads_than_are_set(jobs):
    with threadpool_limits(1):
        assert set(_share_of_threads(jobs).values()) == {1}


def test_a_search_takes_no_more_passes_over_the_rows_for_more_domains(digits, monkeypatch):
    passes = []
    losses = LogisticProblems._losses

    def counted(self, A, problems):
        passes.append(len(problems))
        return losses(self, A, problems)

    monkeypatch.setattr(LogisticProblems, "_losses", counted)
    X, y = digits
    counts = []
    for number in (4, 24):
        passes.clear()
        DAREClassifierCV(strategies=("erm",), scoring="accuracy").fit(X, y, blocks(y, number))
        counts.append(len(passes))
    assert counts[1] < 1.25 * counts[0]
