"""A comparison is the bench in one call, with estimators of any kind among its heads."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
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
    with pytest.raises(ValueError, match="name of the bench"):
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
        ({"erm": DummyClassifier()}, "name of the bench"),
    ],
)
def test_heads_that_cannot_be_compared_are_refused(data, heads, message):
    with pytest.raises(ValueError, match=message):
        compare(heads, data.X, data.y, domains=data.domains)
