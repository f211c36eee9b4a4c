"""Every head is a scikit-learn estimator, in and out of scikit-learn's own tools."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _get_feature_names

import skdare
from skdare import DAREClassifier, DARERegressor, ERMClassifier, LeaveOneDomainOut

HEADS = [
    head
    for name in skdare.__all__
    if hasattr(head := getattr(skdare, name), "fit")
    and hasattr(head, "predict")
    and head is not skdare.DomainAdjusted  # a Pipeline, which needs steps
]
CLASSIFIERS = [head for head in HEADS if "Classifier" in head.__name__]


def parametrize_with_every_check(function):
    """As scikit-learn does; its lists are a generator in 1.6, which pytest 9 warns of."""
    mark = parametrize_with_checks([head() for head in HEADS]).mark
    names, cases = mark.args
    return pytest.mark.parametrize(names, list(cases), **mark.kwargs)(function)


@parametrize_with_every_check
@pytest.mark.filterwarnings("ignore:.*was given no domains")
@pytest.mark.filterwarnings("ignore:the features vary little beside their mean")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_scikit_learn_checks_pass_without_exception(estimator, check):
    check(estimator)


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.__name__)
def test_clone_and_set_params_keep_every_option(head):
    original = head()
    assert clone(original).get_params() == original.get_params()
    assert head(**original.get_params()).get_params() == original.get_params()


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.__name__)
def test_documented_defaults_match_signatures(head):
    text = head.__doc__.split("Attributes\n")[0]
    documented = dict(re.findall(r"^    (\w+) : .*?default=(.+)$", text, re.MULTILINE))
    optional = set(re.findall(r"^    (\w+) : .*optional$", text, re.MULTILINE))
    for name, default in head().get_params().items():
        if name in optional:
            assert default is None, name
        else:
            assert documented[name].replace('"', "'") == repr(default), name


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.__name__)
def test_a_pickled_head_predicts_the_same(head, three_classes, regression):
    problem = three_classes if head in CLASSIFIERS else regression
    fitted = problem.fit(head())
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(problem.X), fitted.predict(problem.X))


def test_pipeline_with_step_prefixed_domains_needs_no_routing(three_classes):
    pipe = make_pipeline(StandardScaler(), DAREClassifier())
    pipe.fit(three_classes.X, three_classes.y, dareclassifier__domains=three_classes.domains)
    assert pipe.score(three_classes.X, three_classes.y) > 0.5
    assert len(pipe[-1].domains_) == 3


def test_pipeline_routes_domains_without_a_request(three_classes):
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), DAREClassifier())
        pipe.fit(three_classes.X, three_classes.y, domains=three_classes.domains)
        assert len(pipe[-1].domains_) == 3


def test_cross_validate_without_routing(three_classes):
    result = cross_validate(
        DAREClassifier(),
        three_classes.X,
        three_classes.y,
        groups=three_classes.domains,
        params={"domains": three_classes.domains},
        cv=LeaveOneDomainOut(),
        return_estimator=True,
    )
    assert [len(head.domains_) for head in result["estimator"]] == [2, 2, 2]


def test_cross_validate_with_routing_needs_one_array_for_head_and_split(three_classes):
    with sklearn.config_context(enable_metadata_routing=True):
        result = cross_validate(
            DAREClassifier(),
            three_classes.X,
            three_classes.y,
            params={"domains": three_classes.domains},
            cv=LeaveOneDomainOut(),
            return_estimator=True,
        )
    assert [len(head.domains_) for head in result["estimator"]] == [2, 2, 2]


@pytest.mark.parametrize("routing", [False, True])
def test_grid_search_over_shrinkage(three_classes, routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        search = GridSearchCV(
            DAREClassifier(), {"shrinkage": [0.3, 0.9]}, cv=LeaveOneDomainOut(), error_score="raise"
        )
        labels = {"domains": three_classes.domains}
        if not routing:
            labels["groups"] = three_classes.domains
        search.fit(three_classes.X, three_classes.y, **labels)
    assert search.best_params_["shrinkage"] in (0.3, 0.9)
    assert len(search.best_estimator_.domains_) == 3


def test_calibration_routes_domains(three_classes):
    with sklearn.config_context(enable_metadata_routing=True):
        model = CalibratedClassifierCV(DAREClassifier(), cv=3)
        model.fit(three_classes.X, three_classes.y, domains=three_classes.domains)
    probabilities = model.predict_proba(three_classes.X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_leave_one_domain_out_equals_leave_one_group_out(three_classes):
    ours = LeaveOneDomainOut().split(three_classes.X, domains=three_classes.domains)
    theirs = LeaveOneGroupOut().split(three_classes.X, groups=three_classes.domains)
    for (train, test), (their_train, their_test) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(train, their_train)
        np.testing.assert_array_equal(test, their_test)


def test_leave_one_domain_out_asks_for_labels(three_classes):
    with pytest.raises(ValueError, match="one label per row"):
        next(LeaveOneDomainOut().split(three_classes.X))
    with pytest.raises(ValueError, match="at least 2"):
        next(LeaveOneDomainOut().split(three_classes.X, domains=["a"] * len(three_classes.X)))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_give_feature_names_and_the_same_head(three_classes, library):
    frames = pytest.importorskip(library)
    names = [f"f{j}" for j in range(three_classes.X.shape[1])]
    frame = frames.DataFrame(dict(zip(names, three_classes.X.T, strict=True)))
    if _get_feature_names(frame) is None:
        pytest.skip(f"this scikit-learn does not know frames of this {library}")
    domains = frames.Series(three_classes.domains)
    head = DAREClassifier().fit(frame, three_classes.y, domains=domains)
    plain = three_classes.fit(DAREClassifier())
    assert head.feature_names_in_.tolist() == names
    np.testing.assert_allclose(head.coef_, plain.coef_, rtol=1e-10)
    with pytest.warns(UserWarning, match="valid feature names"):
        head.predict(three_classes.X)


def test_labels_of_any_kind_come_back_as_they_were(binary):
    words = np.where(binary.y == 1, "ill", "well")
    head = DAREClassifier().fit(binary.X, words, domains=binary.domains)
    assert set(head.predict(binary.X)) <= {"ill", "well"}
    assert head.classes_.tolist() == ["ill", "well"]


@pytest.mark.parametrize(
    "relabel",
    [
        lambda names: [("site", name) for name in names],
        lambda names: [{"north": 1, "south": 2.5, "west": "x"}[name] for name in names],
        lambda names: np.array([{"north": 7, "south": 3, "west": 5}[name] for name in names]),
    ],
    ids=["tuples", "mixed", "integers"],
)
def test_domain_labels_may_be_any_hashable(three_classes, relabel):
    head = DAREClassifier().fit(
        three_classes.X, three_classes.y, domains=relabel(three_classes.domains)
    )
    plain = three_classes.fit(DAREClassifier())
    np.testing.assert_allclose(head.coef_, plain.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.filterwarnings("ignore:leaving a training domain out still scores")
@pytest.mark.parametrize("head", CLASSIFIERS, ids=lambda head: head.__name__)
def test_probabilities_agree_with_scores_and_labels(head, classification_problem):
    fitted = classification_problem.fit(head())
    probabilities = fitted.predict_proba(classification_problem.X)
    scores = fitted.decision_function(classification_problem.X)
    labels = fitted.predict(classification_problem.X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(fitted.classes_[probabilities.argmax(axis=1)], labels)
    np.testing.assert_allclose(
        fitted.predict_log_proba(classification_problem.X), np.log(probabilities)
    )
    assert scores.ndim == (1 if len(fitted.classes_) == 2 else 2)


@pytest.mark.parametrize(
    "head",
    [head for head in HEADS if "warm_start" in head().get_params()],
    ids=lambda head: head.__name__,
)
def test_warm_start_goes_on_where_the_last_fit_ended(head, three_classes, regression):
    problem = three_classes if head in CLASSIFIERS else regression
    options = {"solver": "lbfgs"} if "solver" in head().get_params() else {}
    fitted = problem.fit(head(warm_start=True, **options))
    first, coef = fitted.solution_.n_evaluations, fitted.coef_
    problem.fit(fitted)
    assert fitted.solution_.n_evaluations < first
    np.testing.assert_allclose(fitted.coef_, coef, rtol=1e-2, atol=1e-3)


def test_html_representation_names_the_options():
    assert "shrinkage" in DAREClassifier(shrinkage=0.25)._repr_html_()


def test_importing_changes_nothing_outside():
    code = (
        "import numpy as np, sklearn, warnings, sys;"
        "before = (sklearn.get_config(), np.geterr(), list(warnings.filters));"
        "import skdare;"
        "assert before == (sklearn.get_config(), np.geterr(), list(warnings.filters));"
        "assert 'torch' not in sys.modules and 'click' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_head_without_domains_says_so_but_erm_does_not(three_classes):
    with pytest.warns(UserWarning, match="pass domains="):
        DAREClassifier().fit(three_classes.X, three_classes.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ERMClassifier().fit(three_classes.X, three_classes.y)


def test_a_warning_points_at_the_callers_line(three_classes):
    with pytest.warns(UserWarning, match="pass domains=") as caught:
        DAREClassifier().fit(three_classes.X, three_classes.y)
    assert caught[0].filename == __file__


def test_a_regressor_predicts_in_the_units_of_its_targets(regression):
    head = regression.fit(DARERegressor())
    scaled = DARERegressor().fit(regression.X, 1e6 * regression.y, domains=regression.domains)
    np.testing.assert_allclose(
        scaled.predict(regression.X), 1e6 * head.predict(regression.X), rtol=1e-6
    )
