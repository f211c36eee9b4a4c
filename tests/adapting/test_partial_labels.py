"""Labels of some rows: which are known, in every way that a caller may say so."""

import numpy as np
import pandas as pd
import pytest

from skdare._input_error import InputError
from skdare.fitting.partial_labels import PartialLabels

TEXT = np.array(["cat", "dog", "eel"])
WHOLE = np.array([0, 1, 2])
DATES = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")


@pytest.mark.parametrize(
    ("classes", "y"),
    [
        (TEXT, ["eel", None, "cat", None]),
        (TEXT, ["eel", np.nan, "cat", ""]),
        (TEXT, ["eel", -1, "cat", pd.NA]),
        (TEXT, np.array(["eel", "", "cat", ""])),
        (TEXT, pd.Series(["eel", None, "cat", None], dtype="string")),
        (TEXT, pd.Categorical(["eel", None, "cat", None])),
        (WHOLE, [2, -1, 0, -1]),
        (WHOLE, np.array([2, -1, 0, -1], dtype=np.int8)),
        (WHOLE, np.array([2.0, np.nan, 0.0, -1.0])),
        (WHOLE, pd.Series([2, None, 0, None])),
        (WHOLE, pd.Series([2, None, 0, None], dtype="Int64")),
        (WHOLE.astype(float), [2, None, 0, -1]),
        (WHOLE, np.array([[2], [-1], [0], [-1]])),
    ],
)
def test_rows_without_label_are_known_by_any_usual_mark(classes, y):
    labels = PartialLabels.of(classes, y, 4)
    np.testing.assert_array_equal(labels.known, [True, False, True, False])
    np.testing.assert_array_equal(labels.codes, [2, 0])


def test_minus_one_and_the_empty_text_are_classes_where_the_head_has_them():
    labels = PartialLabels.of(np.array([-1, 1]), [1, -1, None], 3)
    np.testing.assert_array_equal(labels.known, [True, True, False])
    np.testing.assert_array_equal(labels.codes, [1, 0])
    labels = PartialLabels.of(np.array(["", "x"]), ["x", "", None], 3)
    np.testing.assert_array_equal(labels.codes, [1, 0])


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_dates_are_classes_and_nat_is_none(unit):
    y = np.array(["2021-01-01", "NaT", "2020-01-01"], dtype=f"datetime64[{unit}]")
    labels = PartialLabels.of(DATES, y, 3)
    np.testing.assert_array_equal(labels.known, [True, False, True])
    np.testing.assert_array_equal(labels.codes, [1, 0])


def test_booleans_are_classes():
    labels = PartialLabels.of(np.array([False, True]), [True, None, False], 3)
    np.testing.assert_array_equal(labels.codes, [1, 0])


@pytest.mark.parametrize(
    "y",
    [
        [1.5, None, -1.0],
        np.array([1.5, np.nan, -1.0]),
        pd.Series([1.5, None, -1.0]),
        pd.array([1.5, None, -1.0], dtype="Float64"),
    ],
)
def test_minus_one_is_a_number_to_a_regressor(y):
    labels = PartialLabels.of(None, y, 3)
    np.testing.assert_array_equal(labels.known, [True, False, True])
    np.testing.assert_array_equal(labels.codes, [1.5, -1.0])
    assert labels.codes.dtype == np.float64


@pytest.mark.parametrize("classes", [TEXT, WHOLE, None])
def test_no_labelled_row_is_no_error(classes):
    labels = PartialLabels.of(classes, [None, None], 2)
    assert not labels.known.any()
    assert len(labels.codes) == 0


def test_all_rows_may_be_labelled():
    labels = PartialLabels.of(TEXT, TEXT[[2, 0, 1]], 3)
    assert labels.known.all()
    np.testing.assert_array_equal(labels.codes, [2, 0, 1])


@pytest.mark.parametrize("classes", [TEXT, None])
def test_y_has_one_entry_per_row(classes):
    with pytest.raises(InputError, match="y has 2 entries but X has 3 rows; give one a row"):
        PartialLabels.of(classes, [None, None], 3)


@pytest.mark.parametrize(
    ("classes", "y", "name"),
    [
        (TEXT, ["cat", "fox", None], "'fox'"),
        (TEXT, np.array(["cat", "fox", "cat"]), "'fox'"),
        (TEXT, np.array([0, 1, -1]), "0"),
        (WHOLE, [0, 1.5, None], "1.5"),
        (WHOLE, [0, -2, -1], "-2"),
        (WHOLE, ["0", None, None], "'0'"),
    ],
)
def test_a_class_that_was_not_trained_on_is_named(classes, y, name):
    message = f"y has the class {name}, which the head was not fitted to; its classes are "
    with pytest.raises(InputError, match=message):
        PartialLabels.of(classes, y, 3)


def test_what_is_no_label_is_refused():
    with pytest.raises(InputError, match="not hashable"):
        PartialLabels.of(TEXT, [["cat"], None], 2)
    with pytest.raises(InputError, match="y is 'cat'; pass one label per row"):
        PartialLabels.of(TEXT, "cat", 3)
    with pytest.raises(InputError, match="not numbers"):
        PartialLabels.of(None, [1.0, "cat"], 2)
    with pytest.raises(InputError, match="NaN or infinity"):
        PartialLabels.of(None, [1.0, np.inf], 2)


@pytest.mark.parametrize(
    ("classes", "y", "new"),
    [
        (TEXT, ["fox", None, "cat", ""], "fox"),
        (WHOLE, [7, -1, 0, -1], 7),
        (WHOLE, np.array([7.0, np.nan, 0.0, -1.0]), 7),
        (WHOLE.astype(float), [7.5, None, 0.0, -1], 7.5),
        (WHOLE.astype(float), [7, None, 0, -1], 7.0),
    ],
)
def test_a_new_class_follows_the_others_where_it_is_asked_for(classes, y, new):
    labels = PartialLabels.of(classes, y, 4, new_classes=True)
    assert labels.added_classes == (new,)
    assert type(labels.added_classes[0]) is type(new)
    np.testing.assert_array_equal(labels.known, [True, False, True, False])
    np.testing.assert_array_equal(labels.codes, [3, 0])


@pytest.mark.parametrize(("classes", "label"), [(TEXT, 7), (WHOLE, "fox"), (WHOLE, 7.5)])
def test_a_new_class_is_of_the_type_of_the_others(classes, label):
    with pytest.raises(InputError, match="of another type"):
        PartialLabels.of(classes, [label, None], 2, new_classes=True)
