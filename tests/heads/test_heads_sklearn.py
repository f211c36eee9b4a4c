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
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneGroupOut,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import skdare
from domain_problems import CLASSIFIERS, HEADS, make_problem, problem_for
from skdare import DAREClassifier, DomainAdjuster, ERMClassifier, LeaveOneDomainOut

every_head = pytest.mark.parametrize("name", HEADS)


def every_check():
    estimators = [*(getattr(skdare, name)() for name in HEADS), DomainAdjuster()]
    estimators.append(DomainAdjuster("whiten"))
    for estimator in estimators:
        for _, check in estimator_checks_generator(estimator, legacy=True):
            name = getattr(check, "func", check).__name__
            yield pytest.param(clone(estimator), check, id=f"{type(estimator).__name__}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(every_check()))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


@every_head
def test_clone_and_set_params_keep_every_option(name):
    head = getattr(skdare, name)()
    assert clone(head).get_params() == head.get_params()
    again = type(head)().set_params(**head.get_params())
    assert again.get_params() == head.get_params()


@every_head
def test_options_are_given_by_name(name):
    with pytest.raises(TypeError, match="positional"):
        getattr(skdare, name)(1.0)


@every_head
def test_the_docstring_has_every_parameter_and_no_other(name):
    kind = getattr(skdare, name)
    text = kind.__doc__.split("    Parameters\n    ----------\n")[1].split("\n\n    ")[0]
    documented = re.findall(r"^    (\w[\w, ]*?)(?: :.*)?$", text, re.MULTILINE)
    documented = {one for line in documented for one in line.split(", ")}
    assert documented == set(kind().get_params())


@every_head
def test_every_documented_attribute_is_there_once_fitted(name):
    problem = problem_for(name)
    head = fitted_quietly(getattr(skdare, name)(), problem)
    text = head.__doc__.split("    Attributes\n")[1].split("\n\n")[0]
    documented = re.findall(r"^    (\w[\w, ]*?)(?: :.*)?$", text, re.MULTILINE)
    for line in documented:
        for attribute in line.split(", "):
            assert hasattr(head, attribute), attribute


@pytest.mark.parametrize("name", [*HEADS, "DomainAdjuster", "LeaveOneDomainOut"])
def test_public_docstrings_have_an_example_and_refer_to_each_other(name):
    text = getattr(skdare, name).__doc__
    assert "    Examples\n    --------\n" in text
    assert "    See Also\n    --------\n" in text


def fitted_quietly(head, problem, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return problem.fit(head, **more)


@every_head
def test_a_pickled_head_predicts_the_same(name):
    problem = problem_for(name)
    head = fitted_quietly(getattr(skdare, name)(), problem)
    again = pickle.loads(pickle.dumps(head))
    np.testing.assert_array_equal(again.predict(problem.X), head.predict(problem.X))


@every_head
def test_a_copy_is_fitted_apart(name):
    problem = problem_for(name)
    head = fitted_quietly(getattr(skdare, name)(), problem)
    before = head.coef_
    fitted_quietly(clone(head), problem, X=2.0 * problem.X)
    np.testing.assert_array_equal(head.coef_, before)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("task", ["classification", "binary"])
def test_probabilities_scores_and_labels_agree(name, task):
    problem = make_problem(task)
    head = fitted_quietly(getattr(skdare, name)(), problem)
    P = head.predict_proba(problem.X)
    F = head.decision_function(problem.X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(head.classes_[P.argmax(axis=1)], head.predict(problem.X))
    np.testing.assert_allclose(head.predict_log_proba(problem.X), np.log(P), atol=1e-12)
    assert F.shape == ((len(F),) if task == "binary" else (len(F), 3))
    expected = problem.X @ head.coef_.T + head.intercept_
    np.testing.assert_allclose(F, expected[:, 0] if task == "binary" else expected, atol=1e-10)


# -- Routing, pipelines, searches ----------------------------------------------------------------


@pytest.fixture
def problem():
    return make_problem("classification")


def test_a_pipeline_takes_domains_by_step_without_routing(problem):
    pipe = make_pipeline(StandardScaler(), DAREClassifier())
    pipe.fit(problem.X, problem.y, dareclassifier__domains=problem.domains)
    assert pipe[-1].domains_ == problem.labels


@pytest.mark.parametrize("step", [StandardScaler(), DomainAdjuster()], ids=str)
def test_a_pipeline_routes_domains_without_a_request(problem, step):
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(step, DAREClassifier())
        pipe.fit(problem.X, problem.y, domains=problem.domains)
    assert pipe[-1].domains_ == problem.labels
    assert getattr(pipe[0], "domains_", problem.labels) == problem.labels


@pytest.mark.parametrize("routing", [False, True])
def test_cross_validation_holds_domains_out(problem, routing):
    params = {"domains": problem.domains}
    with sklearn.config_context(enable_metadata_routing=routing):
        result = cross_validate(
            DAREClassifier(),
            problem.X,
            problem.y,
            params=params,
            groups=None if routing else problem.domains,
            cv=LeaveOneDomainOut(),
            return_estimator=True,
        )
    assert [head.domains_ for head in result["estimator"]] == [
        ["south", "west"],
        ["north", "west"],
        ["north", "south"],
    ]


@pytest.mark.parametrize("routing", [False, True])
def test_a_grid_search_holds_domains_out(problem, routing):
    labels = {"domains": problem.domains}
    if not routing:
        labels["groups"] = problem.domains
    with sklearn.config_context(enable_metadata_routing=routing):
        search = GridSearchCV(
            DAREClassifier(), {"shrinkage": [0.3, 0.9]}, cv=LeaveOneDomainOut(), error_score="raise"
        )
        search.fit(problem.X, problem.y, **labels)
    assert search.best_params_["shrinkage"] in (0.3, 0.9)
    assert search.best_estimator_.domains_ == problem.labels


def test_calibration_routes_domains(problem):
    with sklearn.config_context(enable_metadata_routing=True):
        model = CalibratedClassifierCV(DAREClassifier(), cv=3)
        model.fit(problem.X, problem.y, domains=problem.domains)
    np.testing.assert_allclose(model.predict_proba(problem.X).sum(axis=1), 1.0)


def test_domains_may_also_be_the_groups_of_a_scikit_learn_splitter(problem):
    scores = cross_val_score(
        ERMClassifier(), problem.X, problem.y, groups=problem.domains, cv=LeaveOneDomainOut()
    )
    theirs = cross_val_score(
        ERMClassifier(), problem.X, problem.y, groups=problem.domains, cv=LeaveOneGroupOut()
    )
    np.testing.assert_array_equal(scores, theirs)


def test_leave_one_domain_out_equals_leave_one_group_out(problem):
    ours = list(LeaveOneDomainOut().split(problem.X, domains=problem.domains))
    theirs = list(LeaveOneGroupOut().split(problem.X, groups=problem.domains))
    assert LeaveOneDomainOut().get_n_splits(domains=problem.domains) == len(ours) == len(theirs)
    for pair, other in zip(ours, theirs, strict=True):
        for rows, expected in zip(pair, other, strict=True):
            np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({}, "one label per row is needed; pass either domains or groups"),
        ({"domains": ["a", "b"], "groups": ["a", "b"]}, "pass either domains or groups"),
        ({"domains": ["a", "a"]}, "needs at least 2"),
        ({"domains": ["a", "b", "c"]}, "domains has 3 labels but X has 2 rows"),
        ({"groups": ["a", None]}, "no label in row 1"),
    ],
)
def test_a_split_needs_one_label_per_row_of_two_domains(labels, message):
    with pytest.raises(ValueError, match=message):
        next(LeaveOneDomainOut().split(np.zeros((2, 1)), **labels))


# -- Names, labels, warnings ---------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_give_feature_names_and_the_same_head(problem, library):
    frames = pytest.importorskip(library)
    names = [f"f{j}" for j in range(problem.X.shape[1])]
    frame = frames.DataFrame(dict(zip(names, problem.X.T, strict=True)))
    head = DAREClassifier().fit(frame, problem.y, domains=frames.Series(problem.domains))
    assert head.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(head.coef_, problem.fit(DAREClassifier()).coef_)
    with pytest.warns(UserWarning, match="valid feature names"):
        head.predict(problem.X)
    with pytest.raises(ValueError, match="feature names"):
        head.predict(
            frame.rename(
                **{"columns": {"f0": "g"}} if library == "pandas" else {"mapping": {"f0": "g"}}
            )
        )


LABELS = {
    "text": np.array(["ill", "mild", "well"]),
    "objects": np.array(["a", "bb", "c"], dtype=object),
    "negative": np.array([-100, 0, 100], dtype=np.int8),
    "unsigned": np.array([0, 7, 255], dtype=np.uint8),
    "floats": np.array([0.0, 1.0, 2.0], dtype=np.float32),
    "dates": np.array(["2020-01-01", "2020-01-02", "2021-01-01"], dtype="datetime64[ns]"),
    "spans": np.array([1, 2, 9], dtype="timedelta64[D]"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_classes_of_any_kind_come_back_as_they_were(problem, kind):
    y = LABELS[kind][problem.y]
    head = DAREClassifier().fit(problem.X, y, domains=problem.domains)
    np.testing.assert_array_equal(head.classes_, LABELS[kind])
    assert head.classes_.dtype == y.dtype
    assert head.predict(problem.X).dtype == y.dtype
    plain = problem.fit(DAREClassifier())
    np.testing.assert_array_equal(head.predict(problem.X), LABELS[kind][plain.predict(problem.X)])


def test_booleans_are_two_classes():
    problem = make_problem("binary")
    head = DAREClassifier().fit(problem.X, problem.y.astype(bool), domains=problem.domains)
    assert head.classes_.tolist() == [False, True]
    assert head.predict(problem.X).dtype == bool


def test_importing_changes_nothing_outside():
    code = (
        "import numpy as np, sklearn, warnings, sys;"
        "before = (sklearn.get_config(), np.geterr(), list(warnings.filters));"
        "import skdare;"
        "assert before == (sklearn.get_config(), np.geterr(), list(warnings.filters));"
        "skdare.DAREClassifierCV;"
        "late = {'torch', 'onnx', 'safetensors', 'matplotlib', 'cyclopts', 'dask', 'filelock'};"
        "assert not late & set(sys.modules), late & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@every_head
def test_a_head_without_domains_warns_unless_it_uses_none(name):
    problem = problem_for(name)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        getattr(skdare, name)().fit(problem.X, problem.y)
    warned = [one for one in heard if "pass domains= to fit" in str(one.message)]
    assert len(warned) == (not name.startswith("ERM"))
    assert all(one.filename == __file__ for one in warned)


def test_a_head_shows_its_options_in_a_notebook():
    assert "shrinkage" in DAREClassifier(shrinkage=0.25)._repr_html_()
    assert repr(DAREClassifier(shrinkage=0.25)) == "DAREClassifier(shrinkage=0.25)"


@every_head
def test_what_a_head_is_for_is_in_its_tags(name):
    assert is_classifier(getattr(skdare, name)()) is ("Classifier" in name)
