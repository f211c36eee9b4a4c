"""A head that takes some labels of a new domain."""

import numpy as np
import pytest
from scipy import sparse

import skdare
from heads_alike import assert_same_head
from skdare import (
    DAREClassifier,
    DAREClassifierCV,
    DARERegressor,
    ERMClassifier,
    ERMRegressor,
    LabelShiftWarning,
    make_domain_adjusted,
)
from skdare._input_error import InputError
from skdare.datasets import load_digit_domains, make_latent_domains
from skdare.fitting.labelled_fit import Anchor, Labelled
from skdare.fitting.solver_options import SolverOptions
from skdare.objective.losses import LOGISTIC, SOFTMAX, SQUARED

EXACT = SolverOptions(True, "auto", 1e-9, 2000)


def data_of(task="classification", **options):
    return make_latent_domains(5, 120, 6, task=task, random_state=0, **options)


def parts(task="classification"):
    data = data_of(task)
    new = data.domains == 4
    train = (data.X[~new], data.y[~new], data.domains[~new])
    return train, data.X[new], data.y[new]


def head_of(task="classification", **options):
    (X, y, domains), *_ = parts(task)
    kind = DAREClassifier if task == "classification" else DARERegressor
    return kind(**options).fit(X, y, domains=domains)


def partly(y, known, missing=None):
    labels = np.full(len(y), missing, dtype=object)
    labels[known] = y[known]
    return labels


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("adaptation", ["centered", "raw"])
def test_without_a_label_it_is_the_unlabelled_adapt(task, adaptation):
    head = head_of(task, adaptation=adaptation)
    _, X, y = parts(task)
    adapted = head.adapt(X, partly(y, []))
    assert_same_head(adapted, head.adapt(X))
    assert adapted.labelled_rows_ is None


@pytest.mark.parametrize("loss", [LOGISTIC, SOFTMAX, SQUARED])
def test_weights_that_have_no_labels_to_take_are_a_minimum(loss):
    rng = np.random.default_rng(0)
    k = 3 if loss is SOFTMAX else 1
    B = rng.standard_normal((5, k))
    b = rng.standard_normal(k)
    anchor = Anchor(B, b, rng.standard_normal((300, 5)), 0.1)
    labelled = Labelled(rng.standard_normal((4, 5)), np.zeros(4, dtype=int), np.ones(4))
    # With a prior that outweighs every label, nothing moves.
    weights, intercept = next(anchor.fits(labelled, loss, EXACT, [1e12]))
    np.testing.assert_allclose(weights, B, atol=1e-5)
    np.testing.assert_allclose(intercept, b, atol=1e-5)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_with_all_labels_and_no_prior_it_is_a_fit_on_the_new_domain(task):
    head = head_of(task, adaptation=None, l2=0.0, tol=1e-9)
    _, X, y = parts(task)
    start = head._starting_point()
    T = head._targets.fitted_targets(y)
    labels = start.with_labels(X, T, np.ones(len(y)), head._targets, EXACT, 0.0)
    V, b = start.raw_weights(labels)
    kind = ERMClassifier if task == "classification" else ERMRegressor
    alone = kind(l2=0.0, tol=1e-9, max_iter=2000).fit(X, y)
    coef, intercept = head._targets.coef_and_intercept(V, b)
    np.testing.assert_allclose(coef, alone.coef_, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(intercept, alone.intercept_, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_starting_point_has_the_scores_of_its_head(task, intercept):
    head = head_of(task, fit_intercept=intercept)
    start = head._starting_point()
    weights = start.raw_weights((start.anchor.B, start.anchor.b))
    coef, b = head._targets.coef_and_intercept(*weights)
    np.testing.assert_allclose(coef, head.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(b, head.intercept_, rtol=1e-9, atol=1e-9)


def test_labels_overrule_a_head_that_is_wrong():
    head = head_of()
    _, X, y = parts()
    flipped = 1 - y  # whatever training says is wrong here
    scores = []
    for n in (0, 20, 110):
        labels = partly(flipped, np.arange(n))
        scores.append(head.adapt(X, labels, force=True).score(X, flipped))
    assert scores[0] < 0.3
    assert min(scores[1:]) > 0.8


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_head_itself_is_untouched(task):
    head = head_of(task)
    coef = head.coef_.copy()
    _, X, y = parts(task)
    adapted = head.adapt(X, partly(y, np.arange(30)))
    np.testing.assert_array_equal(head.coef_, coef)
    assert head.labelled_rows_ is None
    assert adapted.labelled_rows_ == 30
    assert not np.allclose(adapted.coef_, head.adapt(X).coef_)


def test_labels_may_come_in_any_chunks():
    head = head_of()
    _, X, y = parts()
    labels = partly(y, np.arange(0, 120, 4))
    adapter = head.adapter()
    for start in range(0, 120, 37):
        adapter.partial_fit(X[start : start + 37], labels[start : start + 37])
    np.testing.assert_allclose(adapter.head_.coef_, head.adapt(X, labels).coef_, rtol=1e-6)


def test_a_stream_with_labels_goes_on_from_its_file(tmp_path):
    head = head_of()
    _, X, y = parts()
    labels = partly(y, np.arange(0, 120, 4))
    head.adapter(half_life=500.0).partial_fit(X[:60], labels[:60]).save(tmp_path / "s.safetensors")
    assert skdare.inspect_file(tmp_path / "s.safetensors")["labels"] == 15
    resumed = head.resume(tmp_path / "s.safetensors").partial_fit(X[60:], labels[60:])
    whole = head.adapter(half_life=500.0).partial_fit(X, labels)
    np.testing.assert_allclose(resumed.head_.coef_, whole.head_.coef_, rtol=1e-6)


def test_old_labels_fade():
    head = head_of()
    _, X, y = parts()
    wrong = partly(1 - y, np.arange(60))
    right = partly(y, np.arange(60))
    scores = []
    for half_life in (None, 30.0):
        adapter = head.adapter(half_life=half_life, force=True).partial_fit(X[:60], wrong[:60])
        adapter.partial_fit(X[60:])
        adapter.partial_fit(X[:60], right[:60])
        scores.append(adapter.head_.score(X, y))
    assert scores[1] > scores[0] + 0.1


def test_a_head_that_does_not_adapt_takes_labels_all_the_same():
    (X, y, domains), new, labels = parts()
    head = DAREClassifierCV(strategies=("erm",)).fit(X, y, domains=domains)
    flipped = 1 - labels
    adapted = head.adapt(new, flipped)
    assert adapted.labelled_rows_ == len(new)
    assert adapted.score(new, flipped) > head.score(new, flipped) + 0.3


@pytest.mark.parametrize("options", [{}, {"standardize": True}])
def test_units_of_features_do_not_matter(options):
    (X, y, domains), new, labels = parts()
    known = partly(labels, np.arange(30))
    predicted = []
    for unit in (1.0, 1000.0):
        head = DAREClassifier(**options).fit(unit * X, y, domains=domains)
        predicted.append(head.adapt(unit * new, known).decision_function(unit * new))
    np.testing.assert_allclose(*predicted, rtol=1e-3, atol=1e-3)


def test_sparse_rows_are_as_dense_ones():
    head = head_of()
    _, X, y = parts()
    labels = partly(y, np.arange(30))
    dense = head.adapt(X, labels)
    np.testing.assert_allclose(
        head.adapt(sparse.csr_matrix(X), labels).coef_, dense.coef_, rtol=1e-6
    )


def test_a_pipeline_takes_labels():
    from sklearn.preprocessing import StandardScaler

    (X, y, domains), new, labels = parts()
    model = make_domain_adjusted(StandardScaler(), DAREClassifier())
    model.fit(X, y, domains=domains)
    assert model.adapt(new, partly(labels, np.arange(20)))[-1].labelled_rows_ == 20


def test_a_saved_head_says_how_many_labels_it_took(tmp_path):
    head = head_of()
    _, X, y = parts()
    adapted = head.adapt(X, partly(y, np.arange(20)))
    adapted.save(tmp_path / "head.safetensors")
    assert skdare.load(tmp_path / "head.safetensors").labelled_rows_ == 20
    assert "20 of them labelled" in adapted._repr_html_()


def test_labels_of_a_class_weight_count_as_in_the_fit():
    (X, y, domains), new, labels = parts()
    known = partly(labels, np.arange(40))
    predicted = [
        DAREClassifierCV(class_weight=weight, strategies=("standardize",))
        .fit(X, y, domains=domains)
        .adapt(new, known)
        .predict(new)
        .sum()
        for weight in (None, {1: 50.0})
    ]
    assert predicted[1] > predicted[0]


def test_labels_of_common_classes_do_not_push_out_the_others_where_a_domain_is_faint():
    data = load_digit_domains()
    new = data.domains == "faint"
    head = DAREClassifier(adjust=False, adaptation="centered", l2=0.1)
    head.fit(data.X[~new], data.y[~new], domains=data.domains[~new])
    X = data.X[new]
    y = data.y[new]
    labels = partly(y, np.flatnonzero(y < 7)[:20])  # none of three classes
    with pytest.warns(UserWarning, match="no labelled row is of class 7, 8, 9"):
        adapted = head.adapt(X, labels)
    with pytest.warns(LabelShiftWarning):
        unlabelled = head.adapt(X)
    rest = y >= 7
    assert adapted.score(X[rest], y[rest]) > unlabelled.score(X[rest], y[rest]) - 0.1


def test_labels_of_one_class_are_refused_before_anything_changes():
    head = head_of()
    _, X, y = parts()
    labels = partly(y, np.flatnonzero(y == 1)[:5])
    with pytest.raises(
        InputError, match="there are 5 labels, all of class 1; label rows of another"
    ):
        head.adapt(X, labels)
    assert head.adapt(X, labels, force=True).labelled_rows_ == 5


def test_equal_rows_with_different_labels_are_named():
    head = head_of()
    _, X, y = parts()
    X = X.copy()
    X[7] = X[3]
    labels = partly(y, np.arange(20))
    labels[3], labels[7] = 0, 1
    with pytest.raises(InputError, match="rows 3 and 7 are the same and are labelled 0 and 1"):
        head.adapt(X, labels)
    assert head.adapt(X, labels, force=True).labelled_rows_ == 20


def test_a_label_that_was_never_trained_on_is_named():
    head = head_of()
    _, X, y = parts()
    labels = partly(y, np.arange(20))
    labels[5] = 9
    adapter = head.adapter()
    with pytest.raises(InputError, match="y has the class 9, which the head was not fitted to"):
        adapter.partial_fit(X, labels)
    assert adapter.n_seen_ == 0


def test_a_class_without_labels_is_told():
    data = data_of()
    y = data.y + (data.X[:, 0] > 1.0)  # three classes
    new = data.domains == 4
    head = DAREClassifier().fit(data.X[~new], y[~new], domains=data.domains[~new])
    labels = partly(y[new], np.flatnonzero(y[new] != 2)[:20])
    with pytest.warns(UserWarning, match="no labelled row is of class 2"):
        head.adapt(data.X[new], labels)


def test_numbers_far_from_those_in_training_are_named():
    head = head_of("regression")
    _, X, y = parts("regression")
    labels = partly(y, np.arange(20))
    labels[4] = 1e6
    with pytest.raises(InputError, match=r"row 4 has the label 1e\+06, .* standard deviations"):
        head.adapt(X, labels)
    assert head.adapt(X, labels, force=True).labelled_rows_ == 20


def test_adapting_again_says_that_earlier_labels_do_not_count():
    head = head_of()
    _, X, y = parts()
    adapted = head.adapt(X, partly(y, np.arange(20)))
    with pytest.warns(UserWarning, match="adapted with 20 labels, which adapting it again"):
        again = adapted.adapt(X)
    assert_same_head(again, head.adapt(X))


def test_a_stream_goes_on_while_its_labels_are_of_one_class():
    head = head_of()
    _, X, y = parts()
    ones = np.flatnonzero(y == 1)[:5]
    adapter = head.adapter().partial_fit(X, partly(y, ones))
    with pytest.warns(UserWarning, match="all labels so far are of one class"):
        assert_same_head(adapter.head_, head.adapt(X))
    adapter.partial_fit(X, partly(y, np.flatnonzero(y == 0)[:5]))
    assert adapter.head_.labelled_rows_ == 10


def test_labels_that_are_long_forgotten_are_dropped():
    head = head_of()
    _, X, y = parts()
    adapter = head.adapter(half_life=2.0).partial_fit(X[:40], y[:40])
    for _ in range(3):
        adapter.partial_fit(X)
    assert adapter.head_.labelled_rows_ is None


def test_sparse_rows_are_as_dense_ones_where_a_head_standardises():
    head = head_of(standardize=True)
    _, X, y = parts()
    labels = partly(y, np.arange(30))
    for known in (None, labels):
        sparse_rows = head.adapt(sparse.csr_matrix(X), known)
        np.testing.assert_allclose(sparse_rows.coef_, head.adapt(X, known).coef_, rtol=1e-6)


def digits_without(*classes):
    """A head fitted without some digits, and the rows and classes of a new domain that has them."""
    data = load_digit_domains()
    new = data.domains == "bold"
    known = ~new & ~np.isin(data.y, classes)
    head = DAREClassifier().fit(data.X[known], data.y[known], domains=data.domains[known])
    return head, data.X[new], data.y[new]


@pytest.mark.parametrize("form", [lambda y: y, lambda y: y.astype(float)])
def test_labels_teach_a_class_that_was_never_trained_on_where_that_is_asked_for(form):
    head, X, y = digits_without(4)
    labelled = np.arange(len(y)) % 3 == 0
    adapted = head.adapt(X, np.where(labelled, form(y), -1), new_classes=True)
    np.testing.assert_array_equal(adapted.classes_, np.arange(10))
    assert adapted.classes_.dtype == head.classes_.dtype
    old = adapted.score(X[~labelled & (y != 4)], y[~labelled & (y != 4)])
    new = adapted.score(X[~labelled & (y == 4)], y[~labelled & (y == 4)])
    assert min(old, new) > 0.85
    assert 4 not in head.classes_


@pytest.mark.parametrize("intercept", [True, False])
def test_two_classes_become_three(intercept):
    data = load_digit_domains()
    new = data.domains == "bold"
    names = np.array(list("abcdefghij"))[data.y]
    train = ~new & np.isin(data.y, [1, 7])
    head = DAREClassifier(fit_intercept=intercept)
    head.fit(data.X[train], names[train], domains=data.domains[train])
    some = new & np.isin(data.y, [1, 4, 7])
    X, y = data.X[some], names[some]
    adapted = head.adapt(X, partly(y, np.arange(0, len(y), 3)), new_classes=True)
    assert adapted.classes_.tolist() == ["b", "e", "h"]
    assert adapted.predict_proba(X).shape == (len(X), 3)
    assert adapted.score(X, y) > 0.9


def test_a_prior_that_outweighs_every_label_leaves_no_room_for_a_new_class():
    head, X, y = digits_without(4)
    labels = partly(y, np.arange(0, len(y), 3))
    adapted = head.adapt(X, labels, new_classes=True, prior_labels=1e9)
    before = head.adapt(X, np.where(y == 4, None, labels))
    assert (adapted.predict(X) == 4).mean() < 0.02
    assert (adapted.predict(X) == before.predict(X)).mean() > 0.9


def test_a_head_with_a_new_class_only_predicts_also_once_it_was_saved(tmp_path):
    head, X, y = digits_without(4)
    adapted = head.adapt(X, partly(y, np.arange(0, len(y), 3)), new_classes=True)
    adapted.save(tmp_path / "head.safetensors")
    loaded = skdare.load(tmp_path / "head.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), adapted.predict(X))
    for one in (adapted, loaded):
        with pytest.raises(ValueError, match=r"only predicts.*use the head that it was adapted"):
            one.adapt(X)


def test_a_stream_keeps_the_classes_that_it_learnt(tmp_path):
    head, X, y = digits_without(0, 4)
    stream = head.adapter(new_classes=True)
    half = len(y) // 2
    stream.partial_fit(X[:half], partly(y[:half], np.arange(0, half, 3)))
    stream.save(tmp_path / "stream")
    resumed = head.resume(tmp_path / "stream")
    for one in (stream, resumed):
        one.partial_fit(X[half:], partly(y[half:], np.arange(0, len(y) - half, 3)))
    np.testing.assert_array_equal(resumed.head_.classes_, np.arange(10))
    np.testing.assert_allclose(resumed.head_.coef_, stream.head_.coef_, rtol=1e-9)


def test_new_classes_of_dates_stay_dates(tmp_path):
    head, X, y = digits_without(4)
    days = np.datetime64("2020-01-01", "ns") + np.arange(10) * np.timedelta64(1, "D")
    data = load_digit_domains()
    known = (data.domains != "bold") & (data.y != 4)
    head = DAREClassifier().fit(data.X[known], days[data.y[known]], domains=data.domains[known])
    labels = np.where(np.arange(len(y)) % 3 == 0, days[y], np.datetime64("NaT"))
    stream = head.adapter(new_classes=True).partial_fit(X, labels)
    stream.save(tmp_path / "stream")
    for adapted in (stream.head_, head.resume(tmp_path / "stream").head_):
        np.testing.assert_array_equal(adapted.classes_, days)
        assert adapted.predict(X).dtype == days.dtype


def test_a_stream_says_when_a_new_class_is_forgotten():
    head, X, y = digits_without(4)
    stream = head.adapter(new_classes=True, half_life=5.0)
    stream.partial_fit(X[:30], y[:30])
    assert 4 in stream.head_.classes_
    stream.partial_fit(X[30:])
    with pytest.warns(UserWarning, match=r"teaches the new classes \(4\) any more"):
        assert 4 not in stream.head_.classes_


def test_sets_of_a_head_with_new_classes_need_labels():
    head, X, y = digits_without(4)
    adapted = head.adapt(X, partly(y, np.arange(0, len(y), 3)), new_classes=True)
    with pytest.raises(InputError, match="give labels of other rows"):
        adapted.predict_set(X)
    others = partly(y, np.arange(1, len(y), 3))
    assert adapted.predict_set(X, others).shape == (len(X), 10)


def test_a_regressor_has_no_new_classes():
    with pytest.raises(InputError, match="new_classes is set, and a DARERegressor"):
        head_of("regression").adapter(new_classes=True)
