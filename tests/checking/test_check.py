"""Each finding is made where its cause was put into plain rows, and no other is made there."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from skdare.checking import check
from skdare.checking.oddities import LEVELS
from skdare.checking.sorted_table import SortedTable
from skdare.data import DomainData, read
from skdare.errors import InputError

N = 300
DOMAIN = np.repeat([0, 1, 2], N // 3)
TARGET = np.tile([0, 1, 1], N // 3)
rng = np.random.default_rng(0)
PLAIN = {
    "X": rng.normal(size=(N, 6)),
    "y": TARGET,
    "domains": np.array(["a", "b", "c"])[DOMAIN],
}


def with_column(values) -> dict:
    X = PLAIN["X"].copy()
    X[:, 2] = values
    return {**PLAIN, "X": X}


def with_rows(rows, values) -> dict:
    X = PLAIN["X"].copy()
    X[rows] = values
    return {**PLAIN, "X": X}


def found(table: dict) -> list[tuple[str, str]]:
    return [(finding.level, finding.what) for finding in check(**table).findings]


noise = rng.normal(size=N)
CASES = {
    "one domain": (
        {**PLAIN, "domains": np.repeat("a", N)},
        "problem", "all rows are of one domain, 'a'",
    ),
    "no domains": ({**PLAIN, "domains": None}, "problem", "all rows are of one domain, so"),
    "names as target": (
        {**PLAIN, "y": [f"c{i}" for i in range(N)]},
        "problem", "the target has 300 classes in 300 rows",
    ),
    "one class": (
        {**PLAIN, "y": np.repeat("sick", N)}, "problem", "every row has the target 'sick'",
    ),
    "classes are domains": (
        {**PLAIN, "y": DOMAIN}, "problem", "every domain has rows of one class only",
    ),
    "a class is missing": (
        {**PLAIN, "y": np.where(DOMAIN == 1, 0, TARGET)},
        "caution", "domain 'b' has no row of class '1'",
    ),
    "shares differ": (
        {**PLAIN, "y": (rng.random(N) < 0.1 + 0.4 * DOMAIN).astype(int)},
        "caution", "class shares differ between domains: '0' is 14 % of 'c' and 87 % of 'a'",
    ),
    "a small domain": (
        {**PLAIN, "domains": np.r_[np.repeat(["a", "b"], 147), ["d"] * 6]},
        "caution", "1 of 3 domains has fewer than 10 rows: 'd'",
    ),
    "groups tie all": (
        {**PLAIN, "groups": np.arange(N) % (N // 3)},
        "caution", "100 of 100 groups in several domains tie all domains together",
    ),
    "a group is shared": (
        {**PLAIN, "groups": np.where(np.arange(N) == 150, 5, np.arange(N))},
        "note", "1 of 299 groups in several domains",
    ),
    "a leak": (
        with_column(TARGET + 0.01 * noise), "problem", "column 'x2' alone determines the target",
    ),
    "classes that do not overlap": (
        with_column(np.where(TARGET, np.exp(5 * np.abs(noise)), -np.abs(noise) - 1)),
        "problem", "column 'x2' alone determines the target",
    ),
    "a code of the domain": (
        with_column(DOMAIN * 2.5), "problem", "column 'x2' is constant within every domain",
    ),
    "a row number": (with_column(np.arange(N)), "problem", "column 'x2' counts the rows"),
    "row numbers shuffled": (
        with_column(rng.permutation(N) + 5000), "problem", "column 'x2' counts the rows",
    ),
    "row numbers of each domain": (
        with_column(np.tile(np.arange(N // 3), 3)), "problem", "column 'x2' counts the rows",
    ),
    "a code of missing values": (
        with_column(np.where(np.arange(N) % 80 == 7, -999.0, noise)),
        "problem", "column 'x2' is -999 in 4 rows, far from its other values",
    ),
    "no measurement": (
        with_column(np.where(np.arange(N) % 80 == 7, 1e30, noise)),
        "problem", "column 'x2' reaches 1e+30",
    ),
    "one value of 1e300": (
        with_column(np.where(np.arange(N) == 7, 1e300, noise)),
        "problem", "column 'x2' reaches 1e+300",
    ),
    "zeros in a domain": (
        with_column(np.where(DOMAIN == 1, 0.0, 200 + 5 * noise)),
        "caution", "column 'x2' is 0 in every row of domain 'b'",
    ),
    "an outlier": (
        with_rows((5, 3), 60.0), "caution",
        "of the variance of domain 'a': row 6 has 60 in column 'x3'",
    ),
    "a grave outlier": (with_rows((205, 3), 6000.0), "problem", "row 206 has 6e+03 in column 'x3'"),
    "copies across domains": (
        with_rows(slice(100, 130), PLAIN["X"][:30]),
        "caution", "60 rows of 300 have the same features as a row of another domain",
    ),
    "copies": (
        with_rows(slice(10, 20), PLAIN["X"][:10]),
        "note", "20 rows of 300 have the same features as another row of their domain",
    ),
    "mostly empty": (
        with_rows((slice(0, 240), 1), np.nan),
        "caution", "column 'x1' is empty in up to 80 % of the rows",
    ),
    "empty in a domain": (
        with_column(np.where(DOMAIN == 1, np.nan, noise)),
        "caution", "column 'x2' has no value at all in 'b'",
    ),
    "missing values": (
        with_column(np.where(np.arange(N) % 5, noise, np.nan)),
        "note", "60 of 1,800 values are missing, in 1 feature",
    ),
    "wide": (
        {**PLAIN, "X": rng.normal(size=(N, 200))},
        "note", "all 3 domains have fewer rows than the 200 features",
    ),
    "scales": (with_column(noise * 1e4), "note", "the spread of 'x2' is "),
    "a constant": (with_column(np.full(N, 7.0)), "note", "column 'x2' has one value in all rows"),
}  # fmt: skip
# Causes that are one and the same have two findings.
WITH = {
    "mostly empty": ("missing",), "empty in a domain": ("missing",),
    "a code of missing values": ("spread",), "classes that do not overlap": ("spread", "two rows"),
    "a class is missing": ("shares differ",), "a grave outlier": ("spread",),
    "names as target": ("no row of class",),
}  # fmt: skip


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_nothing_is_found_in_plain_rows(task):
    y = TARGET if task == "classification" else noise
    assert found({**PLAIN, "y": y}) == []
    assert str(check(**{**PLAIN, "y": y})).endswith("nothing odd was found")


@pytest.mark.parametrize("name", CASES)
def test_what_was_put_into_plain_rows_is_found_and_little_else(name):
    table, level, words = CASES[name]
    findings = found(table)
    assert any(level == at and words in what for at, what in findings), findings
    others = [what for _, what in findings if words not in what]
    assert all(any(word in what for word in WITH.get(name, ())) for what in others), others


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_rows_and_domains_does_not_matter(name):
    table = CASES[name][0]
    order = np.random.default_rng(1).permutation(N)
    mixed = {key: None if v is None else np.asarray(v)[order] for key, v in table.items()}
    if name == "row numbers of each domain":
        return  # which are about the order

    def kinds(rows: dict) -> list[str]:
        return [re.sub(r"row \d+ has", "a row has", what) for _, what in found(rows)]

    assert sorted(kinds(mixed)) == sorted(kinds(table))


def test_the_row_of_an_outlier_is_that_of_the_whole_table():
    order = rng.permutation(N)
    mixed = {key: np.asarray(values)[order] for key, values in CASES["an outlier"][0].items()}
    (finding,) = check(**mixed).findings
    assert f"row {int(np.flatnonzero(order == 5)[0]) + 1:,} has" in finding.what


@pytest.mark.parametrize(
    "values",
    [
        rng.integers(90, size=N),  # whole numbers that repeat
        np.where(DOMAIN == 1, 1.0, 2.0 * (rng.random(N) < 0.9)),  # a rare value
        TARGET + 0.5 * noise,
        np.exp(noise),
        np.round(noise, 1),
    ],
)
def test_usual_columns_are_no_finding(values):
    assert found(with_column(values)) == []


def test_scales_differ_by_a_hundred_from_the_median_and_not_from_the_smallest():
    X = PLAIN["X"]
    spread = [what for _, what in found({**PLAIN, "X": X * [1, 1, 1, 1, 1e-9, 1e-9]})]
    assert not any("spread" in what for what in spread)
    assert "the spread of 'x0' is 1,0" in found({**PLAIN, "X": X * [1e3, 1, 1, 1, 1, 1]})[0][1]


def test_a_target_among_the_features_of_a_regression_is_a_leak():
    X = PLAIN["X"].copy()
    X[:, 1] = 3 - 2 * noise
    assert found({**PLAIN, "X": X, "y": noise}) == [
        ("problem", "column 'x1' alone determines the target")
    ]


def test_findings_come_gravest_first_with_what_to_do():
    X = CASES["a code of missing values"][0]["X"].copy()
    X[5, 0] = np.nan
    findings = check(**{**PLAIN, "X": X}).findings
    levels = [LEVELS.index(finding.level) for finding in findings]
    assert levels == sorted(levels)
    assert len(set(levels)) > 1
    assert all(finding.remedy for finding in findings)


def test_the_table_is_said_in_one_line_and_no_line_is_longer_than_a_terminal():
    assert check(**PLAIN).summary == "data: 300 rows, 6 features, 2 classes, 3 domains"
    for table, _, _ in CASES.values():
        assert max(map(len, str(check(**table)).splitlines())) <= 80


def test_names_of_columns_are_harmless_in_text_and_html():
    columns = ["a", "b", "<b>\x9b", "d", "e", "f"]
    frame = pd.DataFrame(CASES["a row number"][0]["X"], columns=columns)
    found_ = check(**{**PLAIN, "X": frame})
    assert "'<b>\\x9b' counts" in str(found_)
    assert "&lt;b&gt;" in found_._repr_html_()
    assert "<b>" not in found_._repr_html_()


def test_rows_of_every_storage_are_checked_alike():
    table = CASES["a row number"][0]
    expected = found(table)
    for X in (table["X"].astype(np.float32), scipy.sparse.csr_array(table["X"]),
              table["X"].tolist(), DomainData.of(table["X"]).X):  # fmt: skip
        assert found({**table, "X": X}) == expected


@pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")
def test_a_table_with_text_says_how_to_use_it_and_suggests_the_domains(tmp_path):
    lines = [
        f"{i},{rng.normal()},{['natural', 'plastic'][i % 2]},2024-01-{i % 28 + 1:02d},name {i},"
        f"{'abc'[i % 3]},{i // 2 % 2}"
        for i in range(60)
    ]
    path = tmp_path / "wine.csv"
    path.write_text("bottle_id,a,cork,day,owner,place,y\n" + "\n".join(lines))
    data = read(path)
    findings = {finding.what: finding.remedy for finding in check(data).findings}
    (domain,) = (remedy for what, remedy in findings.items() if "one domain" in what)
    assert domain.endswith("where each row came from: domains=cork")
    (remedy,) = (
        r for what, r in findings.items() if what.startswith("columns 'cork', 'place' are")
    )
    assert "encode it as numbers, for example with pandas.get_dummies" in remedy
    assert "column 'day' has dates, and is not used" in findings
    assert "left out of the features: 'bottle_id' is called like an id" in findings
    data = read(path, domains="place")
    assert not any("one domain" in finding.what for finding in check(data).findings)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"X": np.zeros(3)}, r"shape \(3,\)"),
        ({"y": np.zeros(3)}, "y has 3 labels but X has 300 rows"),
        ({"y": None}, "has no target"),
        ({"y": [*["a"] * (N - 1), None]}, "y has no label in row 299"),
        ({"domains": ["a"]}, "domains has 1 labels"),
    ],
)
def test_arguments_that_make_no_table_are_refused_in_words(arguments, words):
    with pytest.raises(InputError, match=words):
        check(**{**PLAIN, **arguments})


@pytest.fixture
def sampled(monkeypatch):
    """Of six features a quarter of the rows is examined."""
    monkeypatch.setattr("skdare.checking.sorted_table._MOST_NUMBERS", 6 * N // 4)


def test_labels_are_counted_in_all_rows_of_a_table_that_is_sampled(sampled):
    domains = np.where(np.arange(N) < 3, "r", PLAIN["domains"])
    y = np.where(DOMAIN == 2, 1, TARGET)
    groups = np.r_[-1, np.arange(1, N - 1), -1]
    found_ = check(PLAIN["X"], y, domains=domains, groups=groups)
    text = " ".join(str(found_).split())
    assert "300 rows, 6 features, 2 classes, 4 domains, features of 75 rows examined" in text
    assert "1 of 4 domains has fewer than 10 rows: 'r'" in text
    assert "1 of 299 groups in several domains" in text
    assert "domain 'c' has no row of class '0'" in text


def test_a_sample_has_rows_of_all_domains_and_classes_that_come_in_turn(sampled):
    turn = np.arange(N) % 4
    assert found({"X": PLAIN["X"], "y": turn % 2, "domains": turn // 2}) == []


# -- The statistics behind -------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [False, True])
def test_statistics_of_domains_are_those_of_pandas(missing):
    X = rng.normal(size=(60, 4)) * [1, 1e3, 1e-3, 1]
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
        X[::3, 3] = np.nan  # all of domain 0
    domains = np.arange(60) % 3
    table = SortedTable.of(DomainData.of(X, domains == 1, domains=domains))
    groups = pd.DataFrame(X).groupby(domains)
    np.testing.assert_allclose(table.mean_within, groups.mean().fillna(table.mean[3]), atol=1e-9)
    np.testing.assert_array_equal(table.low, groups.min())
    np.testing.assert_array_equal(table.high, groups.max())
    np.testing.assert_array_equal(table.missing, groups.agg(lambda c: c.isna().sum()))
    np.testing.assert_allclose(table.mean, pd.DataFrame(X).mean())
    np.testing.assert_allclose(table.spread, pd.DataFrame(X).std(ddof=0))
    known = ~groups.std(ddof=0).isna().to_numpy()
    np.testing.assert_allclose(
        table.spread_within[known], groups.std(ddof=0).to_numpy()[known], rtol=1e-6, atol=1e-9
    )
    np.testing.assert_array_equal(X[table.places], table.X)


def test_a_feature_determines_a_number_where_their_correlation_is_one():
    from scipy import stats

    y = rng.normal(size=N)
    for sigma in (0.01, 0.03, 0.05, 0.1):
        x = y + sigma * rng.normal(size=N)
        X = PLAIN["X"].copy()
        X[:, 2] = x
        leaks = any("alone determines" in what for _, what in found({**PLAIN, "X": X, "y": y}))
        assert leaks == (stats.pearsonr(x, y).statistic ** 2 > 0.998)


def test_a_feature_determines_classes_where_they_explain_its_variance():
    from scipy import stats

    y = rng.integers(3, size=N)
    for sigma in (0.05, 0.1, 0.2, 0.4):
        x = y + sigma * rng.normal(size=N)
        X = PLAIN["X"].copy()
        X[:, 2] = x
        F = stats.f_oneway(*(x[y == c] for c in range(3))).statistic
        explained = F * 2 / (F * 2 + N - 3)
        overlap = x[y == 0].max() >= x[y == 1].min() or x[y == 1].max() >= x[y == 2].min()
        leaks = any("alone determines" in what for _, what in found({**PLAIN, "X": X, "y": y}))
        assert leaks == (explained >= 0.98 or not overlap)


def test_a_check_of_many_columns_is_json(tmp_path):
    findings = check(rng.normal(size=(30, 400)), TARGET[:30], domains=DOMAIN[:30]).findings
    assert json.dumps([vars(finding) for finding in findings])
