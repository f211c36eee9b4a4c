"""Preparation: fitted to training rows alone, the same in the bench and in a pipeline."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from skdare.bench._preparation import Preparation

OPTIONS = {
    "impute": Preparation(impute="median"),
    "standardize": Preparation(standardize=True),
    "all": Preparation(impute="median", standardize=True, clip=1.5),
}


def rows(dtype: type) -> np.ndarray:
    """Rows of which some values are missing, one feature altogether."""
    rng = np.random.default_rng(0)
    X = (3.0 * rng.normal(size=(60, 4)) + 5.0).astype(dtype)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = np.nan
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["impute", "all"])
def test_the_bench_prepares_rows_as_a_pipeline_of_the_same_steps_does(name, dtype):
    preparation = OPTIONS[name]
    X = rows(dtype)
    train = np.arange(60) % 3 > 0
    pipeline = Pipeline(preparation.fit(X[train]))
    prepared = preparation(X, train)
    assert prepared.dtype == dtype
    np.testing.assert_allclose(
        prepared, pipeline.transform(X), rtol=4 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps
    )


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_other_rows_change_nothing_in_the_training_rows(name):
    X = np.nan_to_num(rows(np.float64)) if name == "standardize" else rows(np.float64)
    train = np.arange(60) < 40
    other = X.copy()
    other[~train] = 1e6
    np.testing.assert_array_equal(
        OPTIONS[name](X, train)[train], OPTIONS[name](other, train)[train]
    )


def test_without_options_rows_are_not_copied():
    X = rows(np.float32)
    assert Preparation()(X, np.ones(60, dtype=bool)) is X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_feature_that_varies_by_rounding_alone_is_not_blown_up_to_noise(dtype):
    X = np.full((50, 1), 0.1, dtype=dtype)
    X[::2] = np.nextafter(X[0, 0], dtype(1.0))
    prepared = OPTIONS["standardize"](X, np.ones(50, dtype=bool))
    assert np.abs(prepared).max() < 1e-6
