"""A pipeline that ends in a head adapts, rehearses and diagnoses on rows as they are recorded."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import skdare
from skdare import (
    DAREClassifier,
    DAREClassifierCV,
    DARERegressor,
    DomainAdjusted,
    ERMClassifier,
    LeaveOneDomainOut,
    make_domain_adjusted,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdare.adapting.LabelShiftWarning"),
    pytest.mark.filterwarnings("ignore:leaving a training domain out still scores"),
]


@pytest.fixture(scope="module")
def rows():
    """Four domains whose features have very different scales, and rows of a fifth."""
    rng = np.random.default_rng(0)
    domains = np.repeat(np.arange(5), 60)
    y = rng.integers(3, size=len(domains))
    Z = 2.0 * np.eye(3)[y] @ rng.normal(size=(3, 4)) + 3.0 * rng.normal(size=(5, 4))[domains]
    X = (Z + rng.normal(size=(len(y), 4))) * [1.0, 100.0, 0.01, 5.0]
    seen = domains < 4
    return X[seen], y[seen], domains[seen], X[~seen]


def fitted(head, rows):
    X, y, domains, _ = rows
    return make_domain_adjusted(StandardScaler(), head).fit(X, y, domains=domains)


@pytest.fixture(scope="module")
def model(rows):
    return fitted(DAREClassifierCV(strategies=("erm", "standardize")), rows)


def test_a_head_behind_steps_adapts_as_on_rows_that_went_through_them(rows):
    X, y, domains, new = rows
    model = fitted(DAREClassifier(), rows)
    scale = StandardScaler().fit(X)
    head = DAREClassifier().fit(scale.transform(X), y, domains=domains)
    expected = head.adapt(scale.transform(new)).predict_proba(scale.transform(new))
    assert np.array_equal(model.adapt(new).predict_proba(new), expected)


def test_a_search_sees_steps_that_were_fitted_without_the_domain_left_out(rows, model):
    X, y, domains, _ = rows
    head = DAREClassifierCV(strategies=("erm", "standardize"), preparation=StandardScaler())
    head.fit(X, y, domains=domains)
    assert np.array_equal(model[-1].coef_, head.coef_)
    assert np.array_equal(
        model[-1].cv_results_["mean_test_score"], head.cv_results_["mean_test_score"]
    )
    assert model[-1].preparation is None


def test_a_head_with_a_preparation_of_its_own_has_all_steps_fitted_anew(rows):
    X, y, domains, new = rows
    options = {"strategies": ("erm", "standardize")}
    steps = make_pipeline(StandardScaler(), PCA(3))
    head = DAREClassifierCV(**options, preparation=steps).fit(X, y, domains=domains)
    model = fitted(DAREClassifierCV(**options, preparation=PCA(3)), rows)
    for name in ("mean_test_score", "std_test_score"):
        assert np.array_equal(model[-1].cv_results_[name], head.cv_results_[name])
    assert np.array_equal(model.predict_proba(new), head.predict_proba(new))
    assert list(model.named_steps) == ["standardscaler", "dareclassifiercv"]
    assert isinstance(model[-1].preparation, PCA)
    assert np.array_equal(model.fit(X, y, domains=domains).predict(new), head.predict(new))


def test_arguments_by_step_reach_a_choosing_head_and_no_step_that_is_fitted_anew(rows, model):
    X, y, domains, new = rows
    again = clone(model).fit(X, y, dareclassifiercv__domains=domains)
    assert np.array_equal(again.predict_proba(new), model.predict_proba(new))
    with pytest.raises(ValueError, match="fit was given 'standardscaler__sample_weight'"):
        clone(model).fit(X, y, domains=domains, standardscaler__sample_weight=np.ones(len(y)))


def test_adapting_leaves_the_pipeline_as_it_was_even_when_the_new_one_is_fitted_again(rows, model):
    X, y, domains, new = rows
    before = model.predict_proba(new)
    adapted = model.adapt(new, force=True)
    assert adapted[-1].adapted_rows_ == len(new)
    adapted.fit(1000.0 * X, y, domains=domains)
    assert np.array_equal(model.predict_proba(new), before)


def test_rows_are_rehearsed_and_diagnosed_as_they_are(rows, model):
    X, y, domains, new = rows
    model = clone(model).fit(X, y, domains=domains)
    assert model.rehearse(X, y, domains) is model
    assert model[-1].rehearsal_ is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert str(model.diagnose(new))


@pytest.mark.parametrize("routing", [False, True])
def test_metadata_reaches_the_head_without_routing_being_set_up(rows, routing):
    X, y, domains, _ = rows
    weight = np.where(domains == 0, 0.0, 1.0)
    with config_context(enable_metadata_routing=routing):
        model = make_domain_adjusted(StandardScaler(), DAREClassifier())
        model.fit(X, y, domains=domains, sample_weight=weight)
        search = GridSearchCV(model, {"dareclassifier__l2": [0.01, 0.1]}, cv=LeaveOneDomainOut())
        search.fit(X, y, domains=domains, **({} if routing else {"groups": domains}))
    assert model[-1].domains_ == [1, 2, 3]
    assert search.best_estimator_[-1].domains_ == [0, 1, 2, 3]


def test_copies_and_files_predict_the_same(rows, model, tmp_path):
    new = rows[3]
    expected = model.predict_proba(new)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(new), expected)
    model.save(tmp_path / "model.safetensors")
    again = skdare.load(tmp_path / "model.safetensors")
    assert type(again) is DomainAdjusted
    assert np.array_equal(again.predict_proba(new), expected)
    assert again.adapt(new, force=True)[-1].adapted_rows_ == len(new)
    skdare.save(Pipeline(model.steps), tmp_path / "plain.safetensors")
    assert type(skdare.load(tmp_path / "plain.safetensors")) is Pipeline


def test_what_a_pipeline_offers_depends_on_its_head():
    assert hasattr(make_domain_adjusted(StandardScaler(), DAREClassifier()), "adapt")
    for name in ("adapt", "rehearse", "diagnose", "suggest"):
        assert not hasattr(make_domain_adjusted(StandardScaler(), ERMClassifier()), name)
    assert not hasattr(make_domain_adjusted(DARERegressor()), "predict_proba")


def test_parts_without_the_head_are_plain_pipelines():
    steps = [("fill", SimpleImputer()), ("scale", StandardScaler()), ("head", DAREClassifier())]
    model = DomainAdjusted(steps)
    assert type(model[:-1]) is Pipeline
    assert type(model[1:]) is DomainAdjusted
    assert isinstance(model["scale"], StandardScaler)


def test_steps_that_look_at_targets_and_other_last_steps_are_refused(rows):
    X, y, domains, _ = rows
    with pytest.raises(ValueError, match="the pipeline has a SelectKBest, which looks at y"):
        make_domain_adjusted(SelectKBest(), DAREClassifier()).fit(X, y, domains=domains)
    with pytest.raises(ValueError, match="the last step is LogisticRegression"):
        make_domain_adjusted(StandardScaler(), LogisticRegression()).fit(X, y, domains=domains)


@pytest.mark.parametrize("method", ["adapt", "diagnose"])
def test_the_last_step_of_a_pipeline_says_so_when_it_is_given_raw_rows(rows, method):
    pandas = pytest.importorskip("pandas")
    X, y, domains, new = rows
    names = list("abcd")
    model = make_domain_adjusted(StandardScaler(), DAREClassifier())
    model.fit(pandas.DataFrame(X, columns=names), y, domains=domains)
    frame = pandas.DataFrame(new, columns=names)
    with pytest.warns(UserWarning, match="make it a DomainAdjusted"):
        getattr(model[-1], method)(frame)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "X has column names")
        getattr(model, method)(frame)


@pytest.mark.parametrize(("l2", "said"), [(0.0, False), (0.01, True)])
def test_scales_are_mentioned_only_where_there_is_a_ridge(rows, l2, said):
    X, y, domains, _ = rows
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        DAREClassifier.as_in_paper(l2=l2).fit(X, y, domains=domains)
    assert any("l2 treats the others as small" in str(one.message) for one in heard) is said
