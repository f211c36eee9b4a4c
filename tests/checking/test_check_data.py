"""Each finding is made where its cause was put into clean data, and nothing is said of those."""

from __future__ import annotations

import numpy as np
import pytest

from skdare._input_error import InputError
from skdare.checking import check_data
from skdare.checking._check import scales_differ
from skdare.checking._finding import LEVELS

N = 240
DOMAINS = np.repeat(["a", "b", "c", "e"], N // 4)


def clean(task="classification"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6)) + rng.normal(size=(4, 6)).repeat(N // 4, axis=0)
    y = rng.integers(3, size=N) if task == "classification" else rng.normal(size=N)
    return X, y


def with_column(values):
    X, y = clean()
    return np.column_stack([X, values]), y, DOMAINS


def _target_with_noise():
    X, y = clean()
    return np.column_stack([X, y + 0.01 * X[:, 0]]), y, DOMAINS


def _with_missing(rows):
    X, y = clean()
    X[rows, 2] = np.nan
    return X, y, DOMAINS


def _with_outlier():
    X, y = clean()
    X[70, 3] = 1e4
    return X, y, DOMAINS


def _own_classes():
    X, _ = clean()
    return X, np.repeat([0, 1, 2, 3], N // 4), DOMAINS


def _without_a_class():
    X, y = clean()
    y[(DOMAINS == "b") & (y == 2)] = 1
    return X, y, DOMAINS


def _other_shares():
    X, y = clean()
    y[DOMAINS == "b"] = np.r_[0, 2, np.ones(N // 4 - 2, int)]
    return X, y, DOMAINS


def _copied_across():
    X, y = clean()
    X[:20] = X[-20:]
    return X, y, DOMAINS


def _copied_within():
    X, y = clean()
    X[:20] = X[20:40]
    return X, y, DOMAINS


def _few_rows():
    X, y = clean()
    return X, y, np.where(np.arange(N) < 4, "small", DOMAINS)


rng = np.random.default_rng(1)
CASES = {
    "scales": with_column(rng.normal(size=N) * 1e4),
    "row number": with_column(np.arange(N) + 5000),
    "domain code": with_column(np.repeat([3.0, 1.0, 2.0, 3.0], N // 4)),
    "leak": _target_with_noise(),
    "constant": with_column(np.full(N, 7.0)),
    "huge value": with_column(np.where(rng.random(N) < 0.2, 1e30, rng.normal(size=N))),
    "code for missing": with_column(np.where(rng.random(N) < 0.2, -999.0, rng.normal(size=N))),
    "mostly missing": _with_missing(rng.random(N) < 0.8),
    "missing in a domain": _with_missing(DOMAINS == "c"),
    "missing": _with_missing(slice(3, 5)),
    "outlier": _with_outlier(),
    "own class": _own_classes(),
    "missing class": _without_a_class(),
    "class shares": _other_shares(),
    "one domain": (*clean(), np.full(N, "a")),
    "few rows": _few_rows(),
    "duplicates across domains": _copied_across(),
    "duplicates": _copied_within(),
}


def names(check):
    return [finding.name for finding in check.findings]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_nothing_is_found_in_clean_data(task):
    X, y = clean(task)
    assert check_data(X, y, domains=DOMAINS).findings == ()


@pytest.mark.parametrize("name", CASES)
def test_what_was_put_into_clean_data_is_found_and_named(name):
    X, y, domains = CASES[name]
    check = check_data(X, y, domains=domains)
    assert name in names(check)
    finding = next(each for each in check.findings if each.name == name)
    about = (*finding.columns, *finding.domains)
    assert not about or any(repr(each) in finding.text for each in about) or len(about) == 4
    assert finding.text in str(check).replace("\n  ", " ")
    assert finding.remedy


def test_a_row_number_shuffled_or_counted_anew_in_each_domain_is_one_all_the_same():
    for values in (rng.permutation(N), np.tile(np.arange(N // 4), 4)):
        X, y, domains = with_column(values)
        assert "row number" in names(check_data(X, y, domains=domains))


def test_whole_numbers_that_repeat_are_no_row_numbers():
    X, y, domains = with_column(rng.integers(90, size=N))
    assert check_data(X, y, domains=domains).findings == ()


def test_the_row_of_an_outlier_is_that_of_the_whole_table():
    X, y, domains = _with_outlier()
    order = rng.permutation(N)
    check = check_data(X[order], y[order], domains=domains[order])
    assert f"row {int(np.flatnonzero(order == 70)[0])} " in check.findings[0].text


def test_a_target_among_the_features_of_a_regression_is_a_leak():
    X, y = clean("regression")
    X[:, 1] = 3 - 2 * y
    finding = check_data(X, y, domains=DOMAINS, feature_names=list("abcdef")).findings[0]
    assert finding.name == "leak"
    assert finding.columns == ("b",)


def test_findings_come_gravest_first():
    X, y, domains = CASES["huge value"]
    X = X.copy()
    X[5, 0] = np.nan
    levels = [LEVELS.index(finding.level) for finding in check_data(X, y, domains=domains).findings]
    assert levels == sorted(levels)
    assert len(set(levels)) > 1


def test_rows_without_label_or_domain_are_counted_and_left_out():
    X, y = clean("regression")
    y[:3] = np.nan
    domains = DOMAINS.astype(object)
    domains[2:5] = None
    check = check_data(X, y, domains=domains)
    assert names(check) == ["rows without label"]
    assert "3 rows without a label and 3 rows without a domain" in check.findings[0].text
    assert check.rows == N - 5


def test_groups_in_several_domains_are_found_and_others_are_not():
    X, y = clean()
    assert names(check_data(X, y, domains=DOMAINS, groups=np.arange(N) % 60)) == ["groups"]
    assert names(check_data(X, y, domains=DOMAINS, groups=np.arange(N) // 2)) == []


def test_a_data_frame_names_its_columns():
    pandas = pytest.importorskip("pandas")
    X, y, domains = CASES["row number"]
    frame = pandas.DataFrame(X, columns=[*"abcdef", "visit"])
    assert check_data(frame, y, domains=domains).findings[0].columns == ("visit",)


def test_the_order_of_rows_does_not_matter_but_to_row_numbers():
    for name in ("leak", "class shares", "scales", "duplicates across domains"):
        X, y, domains = CASES[name]
        order = rng.permutation(N)
        expected = names(check_data(X, y, domains=domains))
        assert names(check_data(X[order], y[order], domains=domains[order])) == expected


def test_scales_differ_by_a_hundred_from_the_median_and_not_from_the_smallest():
    X, _ = clean()
    assert not scales_differ(X)
    assert not scales_differ(X * [1, 1, 1, 1, 1e-9, 1e-9])
    assert scales_differ(X * [1e3, 1, 1, 1, 1, 1])
    X[:, 0] *= 1e3
    X[4, 2] = np.nan
    assert scales_differ(X)


def test_the_html_of_a_check_escapes_names():
    X, y, domains = CASES["row number"]
    check = check_data(X, y, domains=domains, feature_names=[*"abcdef", "<b>"])
    assert "&lt;b&gt;" in check._repr_html_()
    assert "<b>" not in check._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.zeros(3)}, "rows by features"),
        ({"y": np.zeros(3)}, "y has shape"),
        ({"domains": ["a"]}, "domains has shape"),
        ({"feature_names": ["a"]}, "feature_names has 1 names but X has 6 features"),
        ({"y": np.full(N, np.nan)}, "no row has a label and a domain"),
    ],
)
def test_arguments_of_the_wrong_shape_are_refused_in_words(arguments, message):
    X, y = clean()
    given = {"X": X, "y": y, "domains": DOMAINS, **arguments}
    with pytest.raises(InputError, match=message):
        check_data(**given)


@pytest.fixture
def sampled(monkeypatch):
    """A table of which features are looked at in a quarter of the rows only."""
    monkeypatch.setattr("skdare.checking._check._MOST_NUMBERS", 6 * N // 4)
    return clean()


def test_labels_domains_and_groups_are_counted_in_all_rows_of_a_table_that_is_sampled(sampled):
    X, y = sampled
    domains = DOMAINS.copy()
    domains[:3] = "r"
    y = np.where(domains == "c", 1, y)
    groups = np.arange(N)
    groups[[0, -1]] = -1
    check = check_data(X, y, domains=domains, groups=groups)
    assert (check.rows, check.domains, check.looked_at) == (N, 5, N // 4)
    text = str(check).replace("\n  ", " ")
    assert "domain 'r' has fewer than 10 rows (the smallest has 3)" in text
    assert "1 of 239 groups has rows in several domains" in text
    assert "domain 'c' has no row of class '0'" in text


def test_a_sample_has_rows_of_all_domains_and_classes_that_come_in_turn(sampled):
    X, _ = sampled
    turn = np.arange(N) % 4
    check = check_data(np.column_stack([X[:, :5], turn == 3]), turn % 2, domains=turn // 2)
    assert "own class" not in names(check)
    assert check.domains == 2
