"""Which rows to label: spread over the rows that a head is unsure of, and never one twice."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from skdare import DAREClassifier, DAREClassifierCV, DomainAdjusted
from skdare.datasets import open_table, write_store
from skdare.datasets._domain_data import DomainData

ignore_label_shift = pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")


@pytest.fixture
def split(problem):
    """The problem without 'west', and the rows and targets of 'west'."""
    west = problem.rows("west")
    seen = problem.permuted(np.flatnonzero(problem.domains != "west"))
    return seen, problem.X[west], problem.y[west]


@pytest.fixture
def classes_split(classification_problem):
    west = classification_problem.rows("west")
    others = np.flatnonzero(classification_problem.domains != "west")
    seen = classification_problem.permuted(others)
    return seen, classification_problem.X[west], classification_problem.y[west]


def test_suggested_rows_differ_and_are_the_same_each_time(split, head_for):
    seen, new, _ = split
    head = seen.fit(head_for(seen.task, "DARE"))
    before = copy.deepcopy(head.coef_)
    suggested = head.suggest(new, 20)
    assert suggested.dtype.kind == "i"
    assert len(set(suggested.tolist())) == 20
    assert suggested.min() >= 0
    assert suggested.max() < len(new)
    assert suggested.tolist() == head.suggest(new, 20).tolist()
    np.testing.assert_array_equal(head.coef_, before)


def test_fewer_rows_are_the_first_of_more(split, head_for):
    seen, new, _ = split
    head = seen.fit(head_for(seen.task, "DARE"))
    assert head.suggest(new, 5).tolist() == head.suggest(new, 30)[:5].tolist()


def test_all_rows_can_be_suggested(split, head_for):
    seen, new, _ = split
    head = seen.fit(head_for(seen.task, "DARE"))
    assert sorted(head.suggest(new, len(new)).tolist()) == list(range(len(new)))


def test_rows_in_another_order_are_suggested_in_the_same_one(split, head_for):
    seen, new, _ = split
    head = seen.fit(head_for(seen.task, "DARE"))
    order = np.random.default_rng(0).permutation(len(new))
    assert order[head.suggest(new[order], 15)].tolist() == head.suggest(new, 15).tolist()


def test_rows_that_have_a_label_are_not_suggested(split, head_for):
    seen, new, y = split
    head = seen.fit(head_for(seen.task, "DARE"))
    labels = [None] * len(y)
    first = head.suggest(new, 10)
    for row in first.tolist():
        labels[row] = y[row]
    rest = head.suggest(new, len(new) - 10, labels)
    assert sorted([*first.tolist(), *rest.tolist()]) == list(range(len(new)))


def test_rows_near_a_label_come_last(classes_split):
    seen, new, y = classes_split
    head = seen.fit(DAREClassifier())
    rows = np.concatenate([new, new[:1] + 1e-9])
    labels = [y[0], *[None] * len(new)]
    assert head.suggest(rows, len(new), labels)[-1] == len(new)
    assert len(new) not in head.suggest(rows, len(new) - 1, labels)


def test_labels_without_any_change_nothing(split, head_for):
    seen, new, _ = split
    head = seen.fit(head_for(seen.task, "DARE"))
    assert head.suggest(new, 7, [None] * len(new)).tolist() == head.suggest(new, 7).tolist()


def test_every_predicted_class_is_among_the_first_rows(classes_split):
    seen, _, _ = classes_split
    head = seen.fit(DAREClassifier(adaptation=None))
    rows = 10.0 * np.random.default_rng(0).normal(size=(80, seen.X.shape[1]))
    predicted = head.predict(rows)
    classes = set(head.classes_.tolist())
    assert set(predicted.tolist()) == classes
    assert set(predicted[head.suggest(rows, len(classes))].tolist()) == classes
    labels = [0, *[None] * 79]
    others = classes - {0}
    assert set(predicted[head.suggest(rows, len(others), labels)].tolist()) == others


def test_a_class_that_is_rare_in_a_dense_crowd_is_not_forgotten(classes_split):
    seen, new, _ = classes_split
    head = seen.fit(DAREClassifier(adaptation=None))
    rows = np.concatenate([seen.X, new])
    predicted = head.predict(rows)
    rare = rows[predicted == 1][:1]
    crowd = np.repeat(rows[predicted == 0], 20, axis=0)
    rows = np.concatenate([crowd, rare])
    assert len(crowd) in head.suggest(rows, 2).tolist()


@ignore_label_shift
def test_an_adapted_head_suggests_by_its_own_predictions(classes_split):
    seen, new, _ = classes_split
    head = seen.fit(DAREClassifier())
    adapted = head.adapt(new)
    assert adapted.suggest(new, 10).tolist() == head.suggest(new, 10).tolist()
    elsewhere = head.adapt(3.0 * new + 1.0)
    assert elsewhere.suggest(new, 10).tolist() != head.suggest(new, 10).tolist()


def test_a_head_that_cannot_adapt_suggests_all_the_same(classes_split, tmp_path):
    import skdare

    seen, new, _ = classes_split
    plain = seen.fit(DAREClassifier(adaptation=None))
    plain.save(tmp_path / "small", adaptable=False)
    loaded = skdare.load(tmp_path / "small")
    assert loaded.suggest(new, 8).tolist() == plain.suggest(new, 8).tolist()


def test_a_choosing_head_that_declines_to_adapt_does_not_warn(classes_split):
    seen, new, _ = classes_split
    head = seen.fit(DAREClassifierCV(strategies=("erm", "center"), l2=(0.01,)))
    assert len(head.suggest(new, 5)) == 5


def test_sparse_rows_are_suggested_as_dense_ones(split, head_for):
    seen, new, _ = split
    head = seen.fit(head_for(seen.task, "DARE"))
    assert head.suggest(sparse.csr_array(new), 12).tolist() == head.suggest(new, 12).tolist()


def test_rows_on_disk_are_suggested_as_those_in_memory(classes_split, tmp_path):
    seen, new, y = classes_split
    head = seen.fit(DAREClassifier())
    expected = head.suggest(new, 12).tolist()
    np.save(tmp_path / "new.npy", new)
    assert head.suggest(np.load(tmp_path / "new.npy", mmap_mode="r"), 12).tolist() == expected
    write_store(tmp_path / "store", DomainData(new, y, np.zeros(len(y), dtype=int)))
    assert head.suggest(open_table(tmp_path / "store").X, 12).tolist() == expected


def test_rows_in_any_array_library_are_suggested_alike(split, head_for, array_library):
    seen, new, _ = split
    head = seen.fit(head_for(seen.task, "DARE"))
    suggested = head.suggest(array_library.asarray(new), 12)
    assert suggested.tolist() == head.suggest(new, 12).tolist()


def test_a_pipeline_suggests_as_its_head_does_on_rows_it_prepared(classes_split):
    seen, new, _ = classes_split
    model = DomainAdjusted([("scale", StandardScaler()), ("head", DAREClassifier())])
    model = seen.fit(model)
    prepared = model[:-1].transform(new)
    assert model.suggest(new, 9).tolist() == model[-1].suggest(prepared, 9).tolist()


def test_of_many_rows_some_are_looked_at_and_enough_of_them(classes_split, monkeypatch):
    from skdare.adapting import suggestion

    seen, new, _ = classes_split
    head = seen.fit(DAREClassifier())
    monkeypatch.setattr(suggestion, "_MOST_ROWS", 12)
    monkeypatch.setattr(suggestion, "_MOST_NUMBERS", 1)
    monkeypatch.setattr(suggestion, "_LEAST_ROWS", 12)
    for n in (5, 20, len(new)):
        labels = [None] * len(new)
        assert len(set(head.suggest(new, n, labels).tolist())) == n


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6], ids=["unsure", "as fitted", "sure of all"])
def test_clusters_have_a_row_each(classes_split, scale):
    seen, _, _ = classes_split
    head = seen.fit(DAREClassifier(adaptation=None))
    head.coef_ = scale * head.coef_
    rng = np.random.default_rng(0)
    centres = 50.0 * rng.normal(size=(6, seen.X.shape[1]))
    cluster = np.repeat(np.arange(6), 10)
    rows = centres[cluster] + 0.01 * rng.normal(size=(60, seen.X.shape[1]))
    assert set(cluster[head.suggest(rows, 6)].tolist()) == set(range(6))


@pytest.mark.parametrize(
    ("n", "labels", "message"),
    [
        (0, None, "n is 0; it must be a whole number of 1 or more"),
        (2.5, None, "n is 2.5"),
        (True, None, "n is True"),
        (62, None, "n is 62, and there are 61 rows; ask for fewer rows"),
        (60, [0, 1, *[None] * 59], "n is 60, and 59 rows have no label yet"),
        (5, [0, 1], "y has 2 entries but X has 61 rows"),
        (5, [7, *[None] * 60], "class 7, which the head was not fitted to"),
    ],
)
def test_what_cannot_be_suggested_is_refused_in_words(classes_split, n, labels, message):
    seen, new, _ = classes_split
    head = seen.fit(DAREClassifier())
    with pytest.raises(ValueError, match=message):
        head.suggest(new, n, labels)


def test_rows_that_are_all_alike_or_of_other_columns_are_refused(classes_split):
    seen, new, _ = classes_split
    head = seen.fit(DAREClassifier())
    with pytest.raises(ValueError, match="rows that are all the same, as from a stuck sensor"):
        head.suggest(np.repeat(new[:1], 9, axis=0), 3)
    with pytest.raises(ValueError, match="X has 4 features"):
        head.suggest(new[:, :4], 3)
    with pytest.raises(NotFittedError):
        DAREClassifier().suggest(new, 3)
