"""Class weights are scikit-learn's, in the loss alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils import compute_class_weight

import skdare
from skdare import DAREClassifierCV
from skdare._validation import InputError
from skdare.choosing.strategies import STRATEGIES

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning"),
    pytest.mark.filterwarnings("ignore:leaving a training domain out still scores"),
]


def search(**options):
    return DAREClassifierCV(**{"strategies": ("erm",), "l2": (0.05,), "tol": 1e-9, **options})


def by_scikit_learn(X, y, class_weight, l2):
    """Their logistic regression with our ridge: l2 times the mean variance, beside a mean loss."""
    factors = np.ones(len(y))
    if class_weight is not None:
        classes = np.unique(y)
        values = compute_class_weight(class_weight, classes=classes, y=y)
        factors = values[np.searchsorted(classes, y)]
    C = 1.0 / (l2 * X.var(axis=0).mean() * factors.sum())
    model = LogisticRegression(C=C, class_weight=class_weight, tol=1e-10, max_iter=10_000)
    return model.fit(X, y)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 5.0}, {0: 0.2, 1: 3.0}])
def test_weights_equal_those_of_scikit_learn(classification_problem, class_weight):
    problem = classification_problem
    head = problem.fit(search(class_weight=class_weight))
    expected = by_scikit_learn(problem.X, problem.y, class_weight, 0.05)
    np.testing.assert_allclose(head.coef_, expected.coef_, atol=2e-5)


def test_a_balanced_search_equals_a_loop_that_balances_in_every_fold(classification_problem):
    problem = classification_problem
    head = problem.fit(search(class_weight="balanced"))
    for e, label in enumerate(problem.labels):
        new = problem.domains == label
        fitted = by_scikit_learn(problem.X[~new], problem.y[~new], "balanced", 0.05)
        score = fitted.score(problem.X[new], problem.y[new])
        assert head.cv_results_[f"split{e}_test_score"][0] == pytest.approx(score, abs=1.1 / 25)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_one_weight_for_all_classes_changes_nothing(classification_problem, strategy):
    plain = classification_problem.fit(search(strategies=(strategy,)))
    factor = dict.fromkeys(plain.classes_.tolist(), 3.0)
    weighted = classification_problem.fit(search(strategies=(strategy,), class_weight=factor))
    np.testing.assert_allclose(weighted.coef_, plain.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_moments_of_domains_go_by_the_rows_as_they_are(classification_problem, strategy):
    plain = classification_problem.fit(search(strategies=(strategy,)))
    heavy = classification_problem.fit(search(strategies=(strategy,), class_weight={0: 50.0}))
    assert np.abs(heavy.coef_ - plain.coef_).max() > 1e-3
    for label, moments in plain.moments_.items():
        np.testing.assert_array_equal(heavy.moments_[label].mean, moments.mean)
    shares = [np.mean(head.predict(classification_problem.X) == 0) for head in (plain, heavy)]
    assert shares[1] > shares[0]


def test_domains_of_few_rows_are_centred_by_all_of_them(make):
    problem = make("binary", d=70)  # more features than rows
    head = problem.fit(search(strategies=("center",), class_weight="balanced", l2=(0.5,)))
    centred = problem.X.copy()
    for label in problem.labels:
        centred[problem.rows(label)] -= problem.X[problem.rows(label)].mean(axis=0)
    # The unit of l2 is the variance of all rows, and is smaller now.
    l2 = 0.5 * problem.X.var(axis=0).mean() / centred.var(axis=0).mean()
    same = search(strategies=("center",), class_weight="balanced", l2=(l2,))
    same = problem.fit(same, centred)
    np.testing.assert_allclose(head.coef_, same.coef_, atol=1e-6)


def test_class_weights_are_saved(three_classes, tmp_path):
    head = three_classes.fit(search(class_weight={0: 2.0, 2: 0.5}))
    head.save(tmp_path / "head.safetensors")
    assert skdare.load(tmp_path / "head.safetensors").class_weight == {0: 2.0, 2: 0.5}


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("even", "class_weight is 'even'; use None, 'balanced', or a mapping"),
        ([1.0, 2.0], "use None, 'balanced', or a mapping"),
        ({0: -1.0}, "the weight of class 0 in class_weight is -1.0"),
        ({0: 0.0}, "class_weight gives class 0 the weight 0; drop the rows"),
        ({7: 2.0}, r"class_weight names class 7; the classes are \[0, 1, 2\]"),
    ],
)
def test_wrong_class_weights_are_refused(three_classes, class_weight, message):
    with pytest.raises(InputError, match=message):
        three_classes.fit(search(class_weight=class_weight))
