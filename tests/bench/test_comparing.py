"""A comparison is the bench in one call, with estimators of any kind among its heads."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier as OneVsRest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdare import DAREClassifier, ERMClassifier, compare, make_domain_adjusted
from skdare.bench import Settings, bench_plan, run
from skdare.datasets import DomainData


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    domains = np.repeat(np.arange(3), 40)
    y = np.arange(120) % 2
    X = np.outer(2.0 * y, [1.0, 0.5, 0.0, 0.0]) + rng.normal(size=(3, 4))[domains]
    return DomainData(X + rng.normal(size=X.shape), y, domains)


@pytest.fixture(scope="module")
def comparison(data):
    heads = ["erm", "dare", LogisticRegression(), make_domain_adjusted(DAREClassifier())]
    return compare(
        heads, data.X, data.y, domains=data.domains, metric=["accuracy", "balanced_accuracy"]
    )


def scores(comparison, head):
    return {r.held_out: r.score for r in comparison.records if r.head == head}


def test_named_heads_score_as_in_the_bench(data, comparison):
    table = DomainData(data.X, data.y, data.domains.astype(str))
    settings = Settings(metrics=("accuracy", "balanced_accuracy"))
    plan = bench_plan(table, heads=["erm", "dare"], extras=[], trials=1, settings=settings)
    for record in run(plan):
        assert record.ok
        assert scores(comparison, record.head)[record.held_out] == record.score


def test_an_estimator_is_fitted_to_the_rows_that_heads_are_fitted_to(data):
    l2 = 0.01
    heads = {"named": "erm", "given": ERMClassifier(l2=l2)}
    with pytest.raises(ValueError, match="pass a name of the bench in a list"):
        compare(heads, data.X, data.y, domains=data.domains)
    heads = {"given": ERMClassifier(l2=l2), "twin": ERMClassifier(l2=l2)}
    comparison = compare(heads, data.X, data.y, domains=data.domains, standardize=True)
    assert scores(comparison, "given") == scores(comparison, "twin")
    table = DomainData(data.X, data.y, data.domains.astype(str))
    settings = Settings(l2=l2, standardize=True)
    plan = bench_plan(table, heads=["erm"], extras=[], trials=1, settings=settings)
    assert {r.held_out: r.score for r in run(plan)} == scores(comparison, "given")


def test_a_plain_pipeline_does_not_keep_domains_from_its_head(data):
    steps = (StandardScaler(), DAREClassifier())
    heads = {"plain": make_pipeline(*steps), "ours": make_domain_adjusted(*steps)}
    comparison = compare(heads, data.X, data.y, domains=data.domains)
    for adapted in ("", " adapted"):
        assert scores(comparison, f"plain{adapted}") == scores(comparison, f"ours{adapted}") != {}


@pytest.mark.parametrize("steps", [[], [StandardScaler()]])
def test_what_is_around_a_head_does_not_keep_domains_from_it(data, steps):
    head = make_pipeline(*steps, DAREClassifier()) if steps else DAREClassifier()
    heads = {"head": head, "searched": GridSearchCV(head, {}, cv=2), "last": OneVsRest(head)}
    comparison = compare(heads, data.X, data.y, domains=data.domains)
    assert scores(comparison, "searched") == scores(comparison, "head")
    assert scores(comparison, "last") == scores(comparison, "head")
    words = [record.values.get("warnings", "") for record in comparison.records]
    assert not any("given no domains" in each for each in words)


def test_what_cannot_hand_domains_on_to_a_head_is_named_in_a_warning(data):
    boosted = AdaBoostClassifier(DAREClassifier(), n_estimators=1)
    with pytest.warns(UserWarning, match="AdaBoostClassifier does not hand domains on"):
        comparison = compare([boosted], data.X, data.y, domains=data.domains)
    assert all("given no domains" in record.values["warnings"] for record in comparison.records)


class Complaining(DummyClassifier):
    """A classifier that warns whenever it is fitted."""

    def fit(self, X, y):
        warnings.warn("odd rows", UserWarning, stacklevel=2)
        return super().fit(X, y)


def test_records_keep_the_warnings_of_estimators_and_nothing_is_printed(data, recwarn):
    heads = [Complaining(), DummyClassifier()]
    comparison = compare(heads, data.X, data.y, domains=data.domains)
    found = {record.head: record.values.get("warnings") for record in comparison.records}
    assert found == {"Complaining": "odd rows", "DummyClassifier": None}
    assert not recwarn.list
    assert "Fitting gave 1 warning" in repr(comparison)


def test_names_that_a_user_gave_are_shown_as_they_were_written(data):
    heads = {"erm": DummyClassifier(), "dare": DAREClassifier(), "retrain (twice)": ERMClassifier()}
    comparison = compare(heads, data.X, data.y, domains=data.domains)
    text = repr(comparison)
    assert all(name in text for name in [*heads, "dare adapted"])
    assert not any(name in text for name in ("ERM", "DARE", "Retrained", "retrain, twice"))
    ours = compare(["erm", "dare"], data.X, data.y, domains=data.domains)
    assert "ERM" in repr(ours)
    assert scores(comparison, "erm") != scores(ours, "erm")


def test_what_can_adapt_is_scored_twice_and_says_what_it_used(comparison):
    uses = {record.head: record.uses for record in comparison.records}
    assert uses == {
        "erm": "nothing",
        "dare": "nothing",
        "LogisticRegression": "nothing",
        "DAREClassifier": "nothing",
        "DAREClassifier adapted": "unlabelled rows",
    }


def test_a_frame_has_a_row_for_each_head_domain_and_trial(comparison):
    pytest.importorskip("pandas")
    frame = comparison.frame()
    assert len(frame) == 5 * 3
    assert {"head", "held_out", "uses", "accuracy", "balanced_accuracy"} <= set(frame.columns)
    by_head = frame.groupby("head")["accuracy"].mean()
    assert by_head["dare"] == pytest.approx(np.mean(list(scores(comparison, "dare").values())))


def test_the_advice_comes_first_wherever_it_is_shown(comparison):
    pytest.importorskip("matplotlib")
    sentence = comparison.verdict.split(": ")[0]
    assert sentence in repr(comparison).split("\n\n")[1].replace("\n", " ")
    page = comparison._repr_html_()
    assert page.index(sentence) < page.index("<svg") < page.index("<table>")


def test_differences_from_the_baseline_are_drawn_on_the_axes_given(comparison):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    figure, axes = plt.subplots(figsize=(5, 4))
    assert comparison.plot(axes) is axes
    assert tuple(figure.get_size_inches()) == (5, 4)
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert "LogisticRegression" in names
    plt.close("all")


def test_rows_of_a_group_that_is_scored_are_not_trained_on(data):
    heads = {"seen": DummyClassifier()}
    groups = np.arange(len(data.y)) % 40
    records = compare(
        heads, data.X, data.y, domains=data.domains, groups=groups // 20 + 2 * data.domains
    ).records
    assert all("left_out_rows" not in record.values for record in records)
    shared = np.where(np.arange(len(data.y)) % 40 < 10, -1, data.domains)
    records = compare(heads, data.X, data.y, domains=data.domains, groups=shared).records
    assert all(record.values["left_out_rows"] > 0 for record in records if record.ok)


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ("erm", "pass a list of names and estimators"),
        ([], "name at least one"),
        (["ermm"], "did you mean `erm`"),
        ([StandardScaler()], "estimators with fit and predict"),
        ([DummyClassifier(), DummyClassifier()], "pass a dict with a name for each"),
    ],
)
def test_heads_that_cannot_be_compared_are_refused(data, heads, message):
    with pytest.raises(ValueError, match=message):
        compare(heads, data.X, data.y, domains=data.domains)


def test_missing_values_are_refused_by_the_name_of_their_column_or_filled_by_medians(data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data.X, columns=["age", "dose", "size", "weight"])
    frame.loc[3, "dose"] = np.nan
    with pytest.raises(ValueError, match=r"feature 'dose'; fill them .* impute='median'"):
        compare(["erm"], frame, data.y, domains=data.domains)
    comparison = compare(["erm"], frame, data.y, domains=data.domains, impute="median")
    assert all(record.ok for record in comparison.records)
