"""Some labels of a new domain: which rows have one, in every way to say so, and what they teach."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

import skdare
from domain_problems import assert_same_bits, assert_same_head
from new_domains import fitted, moved_domains, new_rows, partly, training
from skdare import (
    DAREClassifier,
    DAREClassifierCV,
    DARERegressor,
    ERMClassifier,
    ERMRegressor,
)
from skdare.data import load_digit_domains

pytestmark = [
    pytest.mark.filterwarnings("ignore:the features vary little"),
]
TASKS = ["classification", "regression"]
every_task = pytest.mark.parametrize("task", TASKS)


# -- Which rows are labelled ---------------------------------------------------------------------

TEXT = np.array(["cat", "dog", "eel"])
DAYS = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[D]")


def known(classes, y, **options):
    """The labels that a head with these classes took of five rows: their numbers and classes."""
    X, codes, domains = training()
    head = DAREClassifier(max_iter=1, tol=1e9)  # how well it is fitted does not matter
    head.fit(X, np.asarray(classes)[codes], domains=domains)
    adapter = head.adapter(**options).partial_fit(new_rows()[0][: len(y)], y)
    labels = adapter.new_domain.stream.labels
    if labels is None:
        return []
    names = adapter.new_domain.stream.classes[labels.T.astype(int)].tolist()
    return list(zip(labels.numbers.astype(int).tolist(), names, strict=True))


@pytest.mark.parametrize(
    ("classes", "y"),
    [
        (TEXT, ["eel", None, "cat", None]),
        (TEXT, ["eel", np.nan, "cat", ""]),
        (TEXT, ["eel", -1, "cat", pd.NA]),
        (TEXT, np.array(["eel", "", "cat", ""])),
        (TEXT, pd.Series(["eel", None, "cat", None], dtype="string")),
        (TEXT, pd.Categorical(["eel", None, "cat", None])),
        ([0, 1, 2], [2, -1, 0, -1]),
        ([0, 1, 2], np.array([2, -1, 0, -1], dtype=np.int8)),
        ([0, 1, 2], np.array([2.0, np.nan, 0.0, -1.0])),
        ([0, 1, 2], pd.Series([2, None, 0, None], dtype="Int64")),
        ([0.0, 1.0, 2.0], [2, None, 0, -1]),
        ([0, 1, 2], np.array([[2], [-1], [0], [-1]])),
        (DAYS, np.array(["2022-01-01", "NaT", "2020-01-01", "NaT"], dtype="datetime64[ns]")),
    ],
    ids=lambda value: str(value).replace("\n", " ")[:40],
)
def test_rows_without_label_are_known_by_any_usual_mark(classes, y):
    first, last = np.asarray(classes)[[2, 0]].tolist()
    assert known(classes, y) == [(0, first), (2, last)]


def test_minus_one_and_the_empty_text_are_classes_if_the_head_has_them():
    assert known([-1, 1, 2], [1, -1, None]) == [(0, 1), (1, -1)]
    assert known(["", "x", "y"], ["x", "", None]) == [(0, "x"), (1, "")]


def test_no_labelled_row_is_no_error():
    assert known(TEXT, [None, None, None]) == []


@pytest.mark.parametrize(
    ("classes", "y", "message"),
    [
        (
            TEXT,
            ["cat", "fox", None],
            "y has the class 'fox', which the head was not fitted to; its",
        ),
        (TEXT, np.array(["cat", "Cat", "dog"]), "y has the class 'Cat'"),
        (TEXT, np.array([0, 1, -1]), "y has the class 0"),
        ([0, 1, 2], [0, 1.5, None], "y has the class 1.5"),
        ([0, 1, 2], [0, -2, -1], "y has the class -2"),
        ([0, 1, 2], ["0", None, None], "y has the class '0'"),
        (TEXT, ["cat", None], "y has 2 entries but X has 3 rows; pass one for each row"),
        (TEXT, "cat", "y is 'cat'; pass one label per row"),
        (TEXT, [["cat"], None, None], r"y has the label \['cat'\]; use text or numbers"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_class_that_was_never_trained_on_is_named_and_nothing_changes(classes, y, message):
    X, codes, domains = training()
    head = DAREClassifier().fit(X, np.asarray(classes)[codes], domains=domains)
    adapter = head.adapter()
    with pytest.raises(ValueError, match=message):
        adapter.partial_fit(new_rows()[0][:3], y)
    assert adapter.n_seen_ == 0


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, "cat", None], "not numbers"),
        ([1.0, np.inf, None], "infinity"),
        ([1.0, None], "y has 2 entries"),
    ],
)
def test_labels_of_a_regressor_are_numbers(y, message):
    with pytest.raises(ValueError, match=message):
        fitted("regression").adapter().partial_fit(new_rows("regression")[0][:3], y)


def test_minus_one_is_a_number_to_a_regressor():
    adapter = fitted("regression").adapter()
    adapter.partial_fit(new_rows("regression")[0][:3], [1.5, None, -1.0])
    np.testing.assert_array_equal(adapter.new_domain.stream.labels.T, [1.5, -1.0])


# -- What labels teach ---------------------------------------------------------------------------


@every_task
@pytest.mark.parametrize("adaptation", ["centered", "raw"])
def test_without_a_label_it_is_the_unlabelled_adapt(task, adaptation):
    head = fitted(task, adaptation=adaptation)
    X, y = new_rows(task)
    adapted = head.adapt(X, partly(y, []))
    assert_same_bits(adapted, head.adapt(X))
    assert adapted.labelled_rows_ is None


@every_task
def test_the_head_itself_is_untouched(task):
    head = fitted(task)
    X, y = new_rows(task)
    before = head.coef_.copy()
    adapted = head.adapt(X, partly(y, np.arange(30)))
    np.testing.assert_array_equal(head.coef_, before)
    assert (head.labelled_rows_, adapted.labelled_rows_) == (None, 30)
    assert np.abs(adapted.coef_ - head.adapt(X).coef_).max() > 1e-3


@pytest.mark.parametrize("task", TASKS)
def test_a_prior_that_outweighs_every_label_leaves_the_direction_of_the_weights(task):
    head = fitted(task)
    X, y = new_rows(task)
    adapted = head.adapt(X, partly(y, np.arange(30)), prior_labels=1e12)
    before = head.adapt(X)
    cosine = np.vdot(adapted.coef_, before.coef_)
    cosine /= np.linalg.norm(adapted.coef_) * np.linalg.norm(before.coef_)
    assert cosine > 1 - 1e-4
    if task == "regression":  # scores of classes are first scaled as the labels have it
        assert_same_head(adapted, before, rtol=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_with_all_labels_and_no_prior_it_is_a_fit_on_the_new_domain(task):
    X, y = new_rows(task)
    options = {"l2": 1e-8, "tol": 1e-9, "max_iter": 2000}
    head = fitted(task, **options)
    kind = ERMClassifier if task == "classification" else ERMRegressor
    alone = kind(l2=1e-3 if task == "classification" else 1e-8, tol=1e-9).fit(X, y)
    adapted = head.adapt(X, y, prior_labels=0, prior_rows=0)
    if task == "regression":
        np.testing.assert_allclose(adapted.predict(X), alone.predict(X), atol=1e-3)
    else:  # without a ridge separable classes have no minimum: compare what is predicted
        assert adapted.score(X, y) >= alone.score(X, y) - 0.02


@pytest.mark.parametrize("far", [0.0, 30.0])
def test_the_ridge_of_a_fit_to_labels_has_the_unit_of_the_features(far):
    X, y, domains = training("regression")
    new, targets = new_rows("regression")
    X, new = X + far, new + far
    head = DARERegressor(l2=0.3, shrinkage=1.0, tol=1e-10).fit(X, y, domains=domains)
    adapted = head.adapt(new, targets, prior_labels=0, prior_rows=0)
    # Scalar adjustments: the weights are those of ridge regression, whose ridge is l2 times the
    # mean variance, but for how large the new domain is beside the others.
    own = np.mean([np.mean(X[domains == e] ** 2) for e in np.unique(domains)])
    ridge = 0.3 * X.var(axis=0).mean() * np.mean(new**2) / own
    Z = new - new.mean(axis=0)
    hessian = Z.T @ Z / len(Z) + ridge * np.eye(Z.shape[1])
    expected = np.linalg.solve(hessian, Z.T @ (targets - targets.mean()) / len(Z))
    np.testing.assert_allclose(adapted.coef_, expected, rtol=1e-5)


def test_labels_overrule_a_head_that_is_wrong():
    head = fitted()
    X, y = new_rows()
    wrong = (y + 1) % 3  # whatever training says is wrong here
    scores = [
        head.adapt(X, partly(wrong, np.arange(n)), force=True).score(X, wrong) for n in (0, 30, 80)
    ]
    assert scores[0] < 0.3
    assert min(scores[1:]) > 0.6


@every_task
@pytest.mark.parametrize("adaptation", ["raw", "centered", "mixture"])
def test_labels_may_come_in_any_chunks(task, adaptation):
    if task == "regression" and adaptation == "mixture":
        pytest.skip("a regressor has no classes to look for")
    head = fitted(task, adaptation=adaptation)
    X, y = new_rows(task)
    labels = partly(y, np.arange(0, 90, 4))
    whole = head.adapt(X, labels)
    for sizes in ([37], [1, 2, 30]):
        adapter = head.adapter()
        start = 0
        while start < 90:
            size = sizes[start % len(sizes)]
            adapter.partial_fit(X[start : start + size], labels[start : start + size])
            start += size
        assert_same_head(adapter.head_, whole, rtol=1e-6)
    assert_same_head(head.adapt(sparse.csr_matrix(X), labels), whole, rtol=1e-6)


def test_units_of_features_do_not_matter():
    X, y, domains = training()
    new, targets = new_rows()
    labels = partly(targets, np.arange(30))
    found = []
    for unit in (1.0, 1000.0):
        head = DAREClassifier(tol=1e-8).fit(unit * X, y, domains=domains)
        found.append(head.adapt(unit * new, labels).decision_function(unit * new))
    np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-3)


def test_old_labels_fade():
    head = fitted()
    X, y = new_rows()
    scores = []
    for half_life in (None, 20.0):
        adapter = head.adapter(half_life=half_life, force=True)
        adapter.partial_fit(X[:60], partly((y + 1) % 3, np.arange(60))[:60])
        adapter.partial_fit(X[60:]).partial_fit(X[:60], y[:60])
        scores.append(adapter.head_.score(X, y))
    assert scores[1] > scores[0]


def test_labels_that_are_long_forgotten_are_dropped():
    head = fitted()
    X, y = new_rows()
    adapter = head.adapter(half_life=2.0).partial_fit(X[:40], y[:40])
    adapter.partial_fit(X).partial_fit(X)
    assert adapter.head_.labelled_rows_ is None


def test_a_head_that_declined_to_adapt_takes_labels_all_the_same():
    X, y, domains = moved_domains()
    head = DAREClassifierCV(strategies=("erm",)).fit(X, y, domains=domains)
    new, labels, _ = moved_domains(n=100, domains=1, seed=11)
    wrong = (labels + 1) % 3
    adapted = head.adapt(new, wrong)
    assert adapted.labelled_rows_ == 100
    assert adapted.declined_
    assert adapted.score(new, wrong) > head.score(new, wrong) + 0.3


def test_labels_of_a_class_weight_count_as_in_the_fit():
    X, y, domains = training()
    new, targets = new_rows()
    labels = partly(targets, np.arange(40))
    counts = [
        (DAREClassifier(class_weight=w).fit(X, y, domains=domains).adapt(new, labels).predict(new))
        for w in (None, {1: 50.0})
    ]
    assert np.sum(counts[1] == 1) > np.sum(counts[0] == 1)


def test_prepared_heads_take_labels():
    X, y, domains = training()
    new, targets = new_rows()
    labels = partly(targets, np.arange(30))
    units = 10.0 ** np.arange(-6, 6)
    head = DAREClassifier(preparation=StandardScaler())
    head.fit(X, y, domains=domains)
    expected = head.adapt(new, labels).decision_function(new)
    head.fit(X * units, y, domains=domains)
    found = head.adapt(new * units, labels).decision_function(new * units)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


# -- Labels that are most likely a mistake -------------------------------------------------------


def test_labels_of_one_class_are_refused_before_anything_changes():
    head = fitted()
    X, y = new_rows()
    labels = partly(y, np.flatnonzero(y == 1)[:5])
    with pytest.raises(ValueError, match="there are 5 labels, all of class 1; label rows of ano"):
        head.adapt(X, labels)
    with pytest.raises(ValueError, match="there is 1 label, all of class 1"):
        head.adapt(X, partly(y, np.flatnonzero(y == 1)[:1]))
    assert head.adapt(X, labels, force=True).labelled_rows_ == 5


def test_equal_rows_with_different_labels_are_named():
    X, y = new_rows()
    X = X.copy()
    X[7] = X[3]
    labels = partly(y, np.arange(20))
    labels[3], labels[7] = 0, 1
    with pytest.raises(ValueError, match="rows 3 and 7 are the same and are labelled 0 and 1"):
        fitted().adapt(X, labels)
    assert fitted().adapt(X, labels, force=True).labelled_rows_ == 20


def test_a_class_without_labels_is_warned_of():
    X, y = new_rows()
    with pytest.warns(UserWarning, match="no labelled row is of class '2'"):
        fitted().adapt(X, partly(y, np.flatnonzero(y != 2)[:20]))


def test_numbers_far_from_those_in_training_are_named():
    X, y = new_rows("regression")
    labels = partly(y, np.arange(20))
    labels[4] = 1e6
    with pytest.raises(ValueError, match=r"row 4 has the label 1e\+06, .* standard deviations"):
        fitted("regression").adapt(X, labels)
    assert fitted("regression").adapt(X, labels, force=True).labelled_rows_ == 20


def test_adapting_again_says_that_earlier_labels_do_not_count():
    head = fitted()
    X, y = new_rows()
    adapted = head.adapt(X, partly(y, np.arange(20)))
    with pytest.warns(UserWarning, match="adapted with 20 labels, which adapting it again"):
        again = adapted.adapt(X)
    assert_same_bits(again, head.adapt(X))


def test_a_stream_goes_on_while_its_labels_are_of_one_class():
    head = fitted()
    X, y = new_rows()
    adapter = head.adapter().partial_fit(X, partly(y, np.flatnonzero(y == 1)[:4]))
    with pytest.warns(UserWarning, match="all labels so far are of one class"):
        assert_same_bits(adapter.head_, head.adapt(X))
    adapter.partial_fit(X, partly(y, np.flatnonzero(y == 0)[:4]))
    assert adapter.head_.labelled_rows_ == 8


# -- New classes ---------------------------------------------------------------------------------


def digits_without(*classes, names=tuple(range(10)), **options):
    """A head fitted without some digits, and the rows and classes of a scanner that has them."""
    names = np.asarray(names)
    data = load_digit_domains()
    new = data.domains == "scanner 7"
    seen = ~new & ~np.isin(data.y, classes)
    head = DAREClassifier(**options)
    head.fit(data.X[seen], names[data.y[seen]], domains=data.domains[seen])
    return head, data.X[new], names[data.y[new]]


@pytest.mark.parametrize("form", [lambda y: y, lambda y: y.astype(float)], ids=["int", "float"])
def test_labels_teach_a_class_that_was_never_trained_on_if_that_is_asked_for(form):
    head, X, y = digits_without(4)
    labelled = np.arange(len(y)) % 2 == 0
    y_some = np.where(labelled, form(y), -1)
    adapted = head.adapt(X, y_some, new_classes=True, prior_labels=5.0)
    np.testing.assert_array_equal(adapted.classes_, np.arange(10))
    assert adapted.classes_.dtype == head.classes_.dtype
    old = adapted.score(X[~labelled & (y != 4)], y[~labelled & (y != 4)])
    new = adapted.score(X[~labelled & (y == 4)], y[~labelled & (y == 4)])
    assert min(old, new) > 0.75
    assert 4 not in head.classes_
    with pytest.raises(ValueError, match=r"only predicts.*use the head that it was made from"):
        adapted.adapt(X)


@pytest.mark.parametrize("intercept", [True, False])
def test_two_classes_become_three(intercept):
    names = np.array(list("abcdefghij"))
    head, X, y = digits_without(0, 2, 3, 4, 5, 6, 8, 9, names=names, fit_intercept=intercept)
    some = np.isin(y, ["b", "e", "h"])
    X, y = X[some], y[some]
    adapted = head.adapt(X, partly(y, np.arange(0, len(y), 3)), new_classes=True)
    assert adapted.classes_.tolist() == ["b", "e", "h"]
    assert adapted.predict_proba(X).shape == (len(X), 3)
    assert adapted.score(X, y) > 0.9


def test_a_prior_that_outweighs_every_label_leaves_no_room_for_a_new_class():
    head, X, y = digits_without(4)
    labels = partly(y, np.arange(0, len(y), 3))
    adapted = head.adapt(X, labels, new_classes=True, prior_labels=1e9)
    assert (adapted.predict(X) == 4).mean() < 0.02


@pytest.mark.parametrize(
    "names", [np.arange(10), DAYS[0] + np.arange(10), np.array([*"abcdefghij"])]
)
def test_new_classes_keep_their_type_and_a_stream_the_classes_that_it_learnt(tmp_path, names):
    head, X, y = digits_without(0, 4, names=names)
    half = len(y) // 2
    labels = partly(y, np.arange(0, len(y), 3))
    stream = head.adapter(new_classes=True).partial_fit(X[:half], labels[:half])
    stream.save(tmp_path / "stream")
    for one in (stream, head.resume(tmp_path / "stream")):
        adapted = one.partial_fit(X[half:], labels[half:]).head_
        np.testing.assert_array_equal(adapted.classes_, names)
        assert adapted.predict(X).dtype == y.dtype


def test_a_stream_warns_when_a_new_class_is_forgotten():
    head, X, y = digits_without(4)
    stream = head.adapter(new_classes=True, half_life=5.0).partial_fit(X[:30], y[:30])
    assert 4 in stream.head_.classes_
    stream.partial_fit(X[30:])
    with pytest.warns(UserWarning, match="no labelled rows remain for the new classes '4'"):
        assert 4 not in stream.head_.classes_


@pytest.mark.parametrize(
    ("names", "label"),
    [(np.arange(10), "fox"), (np.arange(10), 7.5), (np.array([*"abcdefghij"]), 7)],
)
def test_a_new_class_is_of_the_type_of_the_others(names, label):
    head, X, _ = digits_without(4, names=names)
    with pytest.raises(ValueError, match="of another type"):
        head.adapter(new_classes=True).partial_fit(X[:2], [label, None])


def test_a_regressor_has_no_new_classes():
    with pytest.raises(ValueError, match="new_classes is set, and a regressor has no classes"):
        fitted("regression").adapter(new_classes=True)


def test_every_head_that_adapts_takes_labels():
    X, y, domains = training()
    new, targets = new_rows()
    head = skdare.DAREClassifierCV(strategies=("erm", "standardize")).fit(X, y, domains=domains)
    assert head.adapt(new, partly(targets, np.arange(20)), force=True).labelled_rows_ == 20
