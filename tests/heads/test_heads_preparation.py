"""Preparation is fitted to training rows only, and users of a head need not know of it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler, TargetEncoder

import skdare
from domain_problems import HEADS, make_problem, problem_for, scores
from skdare import DAREClassifier, DAREClassifierCV, ERMClassifier
from skdare.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")
UNITS = np.array([1e-3, 1.0, 40.0, 1e4, 7.0])


@pytest.fixture
def problem():
    return make_problem("classification")


@pytest.mark.parametrize("name", HEADS)
def test_every_head_prepares_as_a_scaler_before_it(name):
    problem = problem_for(name)
    X = problem.X * UNITS
    scaler = StandardScaler().fit(X)
    head = problem.fit(getattr(skdare, name)(preparation=StandardScaler()), X)
    by_hand = problem.fit(getattr(skdare, name)(), scaler.transform(X))
    atol = 1e-6 if not name.endswith("CV") else 0.05  # whose folds are scaled by themselves
    found, expected = scores(head, X), scores(by_hand, scaler.transform(X))
    if name.endswith("CV") and head.best_params_ != by_hand.best_params_:
        pytest.skip("folds that are scaled by themselves chose otherwise")
    np.testing.assert_allclose(found, expected, atol=atol * np.abs(expected).max())


@pytest.mark.parametrize("name", HEADS)
def test_no_head_fills_unless_that_is_asked_for(name):
    problem = problem_for(name)
    X = problem.X.copy()
    X[3, 1] = np.nan
    head = getattr(skdare, name)()
    assert head.preparation == ("auto" if name.endswith("CV") else None)
    head.set_params(preparation=None)
    with pytest.raises(InputError, match=r"contains NaN, first in feature 1; fill.*'auto'"):
        problem.fit(head, X)
    head = problem.fit(head.set_params(preparation="auto"), X)
    assert np.isfinite(scores(head, X)).all()


@pytest.mark.parametrize("name", HEADS)
def test_an_empty_cell_in_a_column_that_was_complete_in_training_is_filled_by_its_median(name):
    problem = problem_for(name)
    head = problem.fit(getattr(skdare, name)(preparation="auto"))
    plain = problem.fit(getattr(skdare, name)(preparation=scaler_for(name)))
    same = {"rtol": 1e-6, "atol": 1e-9}
    np.testing.assert_allclose(scores(head, problem.X), scores(plain, problem.X), **same)
    new = problem.X[:20].copy()
    new[4, 2] = new[7, 0] = np.nan
    filled = new.copy()
    filled[4, 2], filled[7, 0] = np.median(problem.X[:, 2]), np.median(problem.X[:, 0])
    np.testing.assert_allclose(scores(head, new), scores(plain, filled), **same)
    if hasattr(head, "adapt"):
        adapted = head.adapt(new, force=True)
        np.testing.assert_allclose(adapted.coef_, plain.adapt(filled, force=True).coef_, **same)


def scaler_for(name):
    """What "auto" is if nothing is missing: heads that choose know scales by themselves."""
    return None if name.endswith("CV") else StandardScaler()


def test_auto_is_an_imputer_of_medians_and_a_scaler(problem):
    X = problem.X * [1, 1, 1e5, 1, 1]
    X[::5, 3] = np.nan
    auto = problem.fit(ERMClassifier(preparation="auto"), X)
    steps = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    by_hand = problem.fit(ERMClassifier(preparation=steps), X)
    np.testing.assert_allclose(scores(auto, X), scores(by_hand, X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("DAREClassifier", "mapped"), ("DAREClassifier", "sparse"), ("DAREClassifierCV", "dense")],
)
def test_auto_copies_no_rows_outside_memory_and_none_for_heads_that_know_scales(
    problem, tmp_path, name, kind
):
    np.save(tmp_path / "X.npy", problem.X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    X = {"mapped": mapped, "sparse": sparse.csr_array(problem.X), "dense": problem.X}[kind]
    head = problem.fit(getattr(skdare, name)(preparation="auto"), X)
    assert head.state_.preparation.transform(X) is X
    plain = problem.fit(getattr(skdare, name)(preparation=None), X)
    np.testing.assert_array_equal(head.coef_, plain.coef_)


def test_a_column_without_any_value_is_filled_with_zero(problem):
    X = problem.X.copy()
    X[:, 2] = np.nan
    head = problem.fit(ERMClassifier(preparation="auto"), X)
    X[:, 2] = 0.0
    np.testing.assert_allclose(
        scores(head, X),
        problem.fit(ERMClassifier(preparation=StandardScaler()), X).decision_function(X),
    )


@pytest.mark.parametrize("kind", [sparse.csr_array, lambda X: X.astype(np.float32), pd.DataFrame])
def test_prepared_heads_take_rows_of_any_kind(problem, kind):
    scaler = StandardScaler(with_mean=False)
    plain = problem.fit(DAREClassifier(preparation=scaler))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        head = problem.fit(DAREClassifier(preparation=scaler), kind(problem.X))
        adapted = head.adapt(kind(problem.X))
    np.testing.assert_allclose(head.coef_, plain.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(adapted.coef_, plain.adapt(problem.X).coef_, rtol=1e-3, atol=1e-4)


def test_columns_of_a_data_frame_are_prepared_by_name(problem):
    frame = pd.DataFrame(problem.X, columns=list("abcde"))
    frame["colour"] = np.where(problem.X[:, 0] > 0, "red", "blue")
    preparation = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["colour"]), remainder=StandardScaler()
    )
    head = problem.fit(DAREClassifier(preparation=preparation), frame)
    assert (head.coef_.shape[1], head.n_features_in_) == (7, 6)
    assert head.adapt(frame[:40]).predict(frame[:40]).shape == (40,)


def test_a_prepared_frame_names_its_features(problem):
    frame = pd.DataFrame(problem.X, columns=list("abcde"))
    head = problem.fit(ERMClassifier(preparation="auto"), frame)
    frame.loc[3, "b"] = np.inf
    with pytest.raises(ValueError, match="contains infinity, first in feature 'b'"):
        head.predict(frame)


def test_a_head_that_is_fitted_again_without_preparation_forgets_it(problem):
    head = problem.fit(DAREClassifier(preparation=PCA(3)))
    problem.fit(head.set_params(preparation=None))
    np.testing.assert_array_equal(head.coef_, problem.fit(DAREClassifier()).coef_)


def test_the_given_transformer_is_never_fitted(problem):
    scaler = StandardScaler()
    problem.fit(DAREClassifier(preparation=scaler))
    assert not hasattr(scaler, "mean_")


LOOKING = {
    "SelectKBest": SelectKBest(k=2),
    "SelectFromModel": make_pipeline(StandardScaler(), SelectFromModel(LogisticRegression())),
    "TargetEncoder": make_column_transformer((TargetEncoder(), [0])),
    "LinearDiscriminantAnalysis": make_union(PCA(2), LinearDiscriminantAnalysis()),
}


@pytest.mark.parametrize("name", LOOKING)
def test_steps_that_look_at_targets_are_refused_by_name_before_any_work(problem, name):
    calls = []
    first = FunctionTransformer(lambda X: calls.append(1) or X)
    preparation = make_pipeline(first, LOOKING[name])
    with pytest.raises(InputError, match=f"preparation has a {name}, which looks at y"):
        problem.fit(DAREClassifierCV(preparation=preparation))
    assert not calls


@pytest.mark.parametrize("wrong", ["standardize", StandardScaler, ERMClassifier(), 3], ids=str)
def test_what_does_not_transform_is_refused(problem, wrong):
    with pytest.raises(InputError, match="pass 'auto', a transformer of scikit-learn"):
        problem.fit(ERMClassifier(preparation=wrong))


def test_a_preparation_that_fails_or_drops_rows_is_refused(problem):
    with pytest.raises(InputError, match=r"preparation gave 125 rows of 126; use steps that keep"):
        problem.fit(ERMClassifier(preparation=FunctionTransformer(lambda X: X[1:])))

    def broken(X):
        raise RuntimeError("no such file")

    with pytest.raises(InputError, match="preparation failed: no such file"):
        problem.fit(ERMClassifier(preparation=FunctionTransformer(broken)))


def test_a_preparation_that_fails_in_a_fold_names_the_domain(problem):
    X = problem.X.copy()
    X[:, 0] = (problem.domains == "west").astype(float)
    encoder = make_column_transformer((OneHotEncoder(), [0]), remainder="passthrough")
    with pytest.raises(InputError, match=r"preparation.*'west'.* failed"):
        problem.fit(DAREClassifierCV(preparation=encoder), X)


def test_a_preparation_may_give_other_features_without_a_domain(problem):
    X = np.column_stack([problem.X, problem.domains == "north"]).astype(float)
    head = problem.fit(DAREClassifierCV(preparation=VarianceThreshold()), X)
    assert head.n_features_in_ == X.shape[1]


def test_what_a_preparation_leaves_unfit_is_refused(problem):
    X = problem.X.copy()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        problem.fit(ERMClassifier(preparation=StandardScaler()), X)
