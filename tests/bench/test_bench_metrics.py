"""Metrics, groups, class weights and choosing heads in a bench."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.utils.class_weight import compute_sample_weight

from command_line import run as command
from skdare import DAREClassifierCV, ERMClassifier
from skdare.bench import Log, Record, run
from skdare.bench._default_protocol import choose_l2
from skdare.bench._heads import HEADS
from skdare.bench._metrics import METRICS, Predictions, measure, metrics_of
from skdare.bench._preparation import PreparationStep
from skdare.bench._record import METRIC
from skdare.datasets import DomainData, read, reserve
from skdare.datasets._domain_data import fingerprint
from skdare.report import summarise, text, tidy
from small_bench import FAST, fold_of, noisy_table, results, small_plan, table

# -- Metrics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3])
def test_metrics_are_those_of_scikit_learn(k):
    rng = np.random.default_rng(0)
    classes = np.array(list("xyz"))[:k]
    y = rng.choice(classes, 200)
    P = rng.dirichlet(np.ones(k), 200)
    predicted = Predictions(classes[P.argmax(axis=1)], P, classes)
    area = {"multi_class": "ovr"} if k > 2 else {}
    expected = {
        "accuracy": sk.accuracy_score(y, predicted.values),
        "balanced_accuracy": sk.balanced_accuracy_score(y, predicted.values),
        "f1_macro": sk.f1_score(y, predicted.values, average="macro"),
        "roc_auc": sk.roc_auc_score(y, P if k > 2 else P[:, 1], **area),
        "neg_log_loss": -sk.log_loss(y, P),
    }
    assert {name: measure(name, y, predicted) for name in expected} == pytest.approx(expected)
    assert tuple(expected) == metrics_of("classification")


def test_metrics_of_numbers_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, values = rng.normal(size=(2, 50))
    expected = {
        "r2": sk.r2_score(y, values),
        "neg_root_mean_squared_error": -sk.root_mean_squared_error(y, values),
        "neg_mean_absolute_error": -sk.mean_absolute_error(y, values),
    }
    predicted = Predictions(values)
    assert {name: measure(name, y, predicted) for name in expected} == pytest.approx(expected)
    assert tuple(expected) == metrics_of("regression")


def test_a_domain_that_lacks_a_class_is_scored_by_those_it_has():
    P = np.array([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1], [0.3, 0.6, 0.1]])
    predicted = Predictions(np.array(list("xyxy")), P, np.array(list("xyz")))
    y = np.array(list("xyxx"))
    assert measure("roc_auc", y, predicted) == 1.0
    assert measure("balanced_accuracy", y, predicted) == pytest.approx((2 / 3 + 1) / 2)
    assert np.isfinite(measure("neg_log_loss", np.array(list("xyxw")), predicted))
    assert np.isnan(measure("roc_auc", np.array(list("xxxx")), predicted))


@pytest.fixture(scope="module")
def several():
    """A finished plan with three metrics, ROC AUC the first."""
    asked = ("roc_auc", "accuracy", "neg_log_loss")
    plan = small_plan(
        settings=replace(FAST, metrics=asked), trials=1, heads=["erm", "dare"], extras=["ceilings"]
    )
    return plan, list(run(plan))


def test_records_keep_every_metric_and_survive_the_file(several):
    for record in several[1]:
        assert record.metric == "roc_auc"
        assert {f"{METRIC}accuracy", f"{METRIC}neg_log_loss"} <= set(record.values)
        assert Record.from_line(record.to_line()) == record
        # Which rows were right says nothing of a difference in another metric.
        assert record.correct() is None


def test_a_run_with_several_metrics_goes_on_where_it_was_stopped(several, tmp_path):
    plan, whole = several
    log = Log(tmp_path)
    begun = run(plan, log)
    for _ in range(3):
        next(begun)
    begun.close()
    list(run(plan, log))
    assert results(log.read()) == results(whole)


def test_a_summary_compares_by_the_first_metric_and_has_the_others(several):
    summary = summarise(several[1])
    [group] = summary.groups
    assert group.metric == group.main.grid.metric == "roc_auc"
    assert list(group.main.further) == ["accuracy", "neg_log_loss"]
    assert {row["metric"] for row in tidy(summary)} == {"roc_auc", "accuracy", "neg_log_loss"}
    first = next(r for r in several[1] if r.head == "dare")
    grid = group.main.further["accuracy"]
    assert grid.at("dare", first.held_out)[0] == first.values[f"{METRIC}accuracy"]


def test_records_without_the_later_values_are_read_and_belong_to_the_same_run(tmp_path):
    plan = small_plan(trials=1, heads=["erm"])
    records = list(run(plan, Log(tmp_path)))
    lines = [json.loads(record.to_line()) for record in records]
    for line in lines:
        del line["majority"]
        assert not {"setting:metrics", "setting:class_weight"} & set(line)
    Log(tmp_path).path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert list(run(plan, Log(tmp_path))) == []


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ("classification", {"metrics": ("r2",)}, "a metric of regression; for classification use"),
        ("regression", {"metrics": ("acuracy",)}, "'acuracy', which is no metric"),
        ("regression", {"class_weight": "balanced"}, "class_weight is for classes"),
        ("classification", {"metrics": ()}, "metrics names none"),
    ],
)
def test_what_the_task_does_not_have_is_refused_before_any_work(task, changes, message):
    with pytest.raises(ValueError, match=message):
        small_plan(table(task), replace(FAST, **changes))


@pytest.mark.parametrize("metric", ["accuracy", "neg_log_loss"])
def test_l2_is_chosen_by_the_first_metric(metric):
    settings = replace(FAST, metrics=(metric,), l2_grid=(1e-3, 1e-1, 10.0))
    fold = fold_of(table())
    means = {}
    for l2 in settings.l2_grid:
        scores = []
        for left_out in fold.training_domains:
            inner, outer = fold.without(left_out), fold.training_rows(left_out)
            head = ERMClassifier(l2=l2).fit(inner.X, inner.y)
            scores.append(measure(metric, outer.y, Predictions.of(head, outer.X, [metric])))
        means[l2] = np.mean(scores)
    assert means[choose_l2(fold, HEADS["erm"], {}, settings)] == max(means.values())


# -- Class weights --------------------------------------------------------------------------------


def test_class_weights_are_those_of_the_estimators():
    data = noisy_table()
    data = replace(data, y=np.where(data.y == "z", "rare", "common"))
    settings = replace(FAST, class_weight="balanced")
    [record] = run(small_plan(data, settings, trials=1, heads=["erm"], held_out=["b"]))
    fold = fold_of(data)
    y = fold.train.y
    head = ERMClassifier(l2=FAST.l2)
    head.fit(fold.train.X, y, sample_weight=compute_sample_weight("balanced", y))
    assert record.score == pytest.approx(head.score(fold.test.X, fold.test.y), abs=0.02)
    plain = ERMClassifier(l2=FAST.l2).fit(fold.train.X, y)
    assert record.score != pytest.approx(plain.score(fold.test.X, fold.test.y), abs=0.02)
    assert record.values["option:class_weight"] == "balanced"


# -- Groups ---------------------------------------------------------------------------------------


def grouped() -> DomainData:
    """Four domains of groups of four rows; some groups have rows in two domains."""
    data = table()
    groups = np.array([f"{domain}{i // 4}" for i, domain in enumerate(data.domains)])
    shared = np.arange(240) % 60 < 12
    return replace(data, groups=np.where(shared, np.arange(240) % 60 // 4, groups))


@pytest.mark.parametrize("tested_on", ["all", "reserved", "rest"])
def test_no_group_is_on_both_sides_of_a_split(tested_on):
    data = grouped()
    fold = fold_of(data, replace(FAST, test_on=tested_on))
    scored = fold.reserved if tested_on == "reserved" else slice(None)
    assert not set(fold.train.groups) & set(fold.test.groups[scored])
    assert not set(fold.train.groups) & set(fold.valid.groups)
    inside = data.groups[data.domains == "b"]
    assert not set(inside[fold.reserved]) & set(inside[~fold.reserved])
    for domain in fold.training_domains:
        assert fold.cache(domain).moments.n == np.sum(fold.train.domains == domain)
    left = {"all": 36, "rest": 36, "reserved": 0}[tested_on]
    assert left - 36 * 0.5 <= fold.left_out_rows <= left


def test_whole_groups_are_set_aside_in_every_domain_at_once():
    data = grouped()
    aside = reserve(data.domains, 0, groups=data.groups)
    assert not set(data.groups[aside]) & set(data.groups[~aside])
    names = np.unique(data.groups)
    assert len(np.unique(data.groups[aside])) == int(0.2 * len(names))
    assert not np.array_equal(aside, reserve(data.domains, 1, groups=data.groups))


def test_where_every_group_is_everywhere_only_reserved_rows_can_be_scored():
    data = replace(table(), groups=np.arange(240) % 60)
    with pytest.raises(ValueError, match=r"leaves nothing to train on.*test_on='reserved'"):
        small_plan(data, heads=["erm"])
    plan = small_plan(data, replace(FAST, test_on="reserved"), heads=["erm", "dare-cv"], trials=1)
    records = list(run(plan))
    assert {record.status for record in records} == {"ok"}
    warned = {r.head for r in records if "made without groups" in r.values.get("warnings", "")}
    assert warned == {"dare-cv"}
    # A fifth of the 60 groups, all of which have rows in every domain.
    assert {record.values["n_groups"] for record in records} == {12}


def test_a_choosing_head_is_told_the_groups():
    data = grouped()
    # Domains a and c share groups, and must be left out together.
    tied = np.where(np.isin(data.domains, ["a", "c"]), np.arange(240) % 30, 1000 + np.arange(240))
    data = replace(data, groups=tied)
    [record] = run(small_plan(data, heads=["dare-cv"], trials=1, held_out=["b"]))
    fold = fold_of(data)
    labels = {"domains": fold.train.domains, "groups": fold.train.groups}
    told, untold = (DAREClassifierCV(l2=FAST.l2_grid) for _ in range(2))
    told.fit(fold.train.X, fold.train.y, **labels)
    untold.fit(fold.train.X, fold.train.y, domains=fold.train.domains)
    assert record.values["choice"] == told.choice_ != untold.choice_


def test_groups_are_read_and_are_part_of_the_fingerprint(tmp_path):
    data = grouped()
    np.savez(tmp_path / "g.npz", X=data.X, y=data.y, domains=data.domains, unit=data.groups)
    plain = read(tmp_path / "g.npz")
    told = read(tmp_path / "g.npz", groups="unit")
    assert plain.groups is None
    np.testing.assert_array_equal(told.groups, data.groups)
    assert fingerprint(plain) != fingerprint(told)


# -- Choosing heads -------------------------------------------------------------------------------


def test_one_search_serves_the_choosing_head_as_it_is_and_adapted(monkeypatch):
    fits = []
    original = DAREClassifierCV._solve
    monkeypatch.setattr(
        DAREClassifierCV, "_solve", lambda self, *rest: fits.append(1) or original(self, *rest)
    )
    plan = small_plan(heads=["dare-cv", "dare-cv-adapted"], trials=1, held_out=["a", "b"])
    records = list(run(plan))
    assert len(fits) == 2
    assert {record.status for record in records} == {"ok"}
    assert all(record.values["choice"] for record in records)


def test_options_of_the_choosing_head_reach_the_adapted_one():
    options = {"dare-cv": {"strategies": ("erm", "center")}}
    plan = small_plan(heads=["dare-cv-adapted"], trials=1, held_out=["a"], options=options)
    [record] = run(plan)
    assert record.values["chosen"] in ("erm", "center")


def test_a_choosing_head_prepares_rows_anew_for_every_domain_it_leaves_out():
    data = table()
    data.X[data.domains == "a"] *= 100.0  # hides the others, where it is among the rows of a scaler
    settings = replace(FAST, standardize=True)
    [record] = run(small_plan(data, settings, heads=["dare-cv"], trials=1, held_out=["b"]))
    fold = fold_of(data, settings)
    head = DAREClassifierCV(preparation=PreparationStep(settings.preparation), l2=FAST.l2_grid)
    head.fit(fold.unprepared, fold.train.y, domains=fold.train.domains)
    once = DAREClassifierCV(l2=FAST.l2_grid)
    once.fit(fold.train.X, fold.train.y, domains=fold.train.domains)
    assert record.values["choice"] == head.choice_ != once.choice_
    raw = data.X[data.domains == "b"]
    assert record.score == head.score(raw, data.y[data.domains == "b"])


def test_a_summary_says_what_was_chosen():
    plan = small_plan(
        heads=["erm", "dare-cv"], trials=1, options={"dare-cv": {"strategies": ("erm",)}}
    )
    summary = summarise(list(run(plan)))
    assert summary.groups[0].main.chosen == {"dare-cv": {d: {"erm": 1} for d in "abcd"}}
    assert "DARE-CV chose ERM in 4 of 4 domains." in text(summary)


# -- Command line ---------------------------------------------------------------------------------


@pytest.fixture
def imbalanced(tmp_path, monkeypatch) -> str:
    """A file with few positives, which nothing tells apart, and groups."""
    monkeypatch.chdir(tmp_path)
    data = grouped()
    rare = np.random.default_rng(0).random(240) < 0.06
    np.savez("f.npz", X=data.X, y=rare.astype(int), domains=data.domains, unit=data.groups)
    return "f.npz"


QUICK = ("--heads", "erm,dare", "--trials", "1", "--l2", "0.01", "--jobs", "1", "--with", "none")


def test_accuracy_at_the_majority_rate_is_said_once_above_the_table(imbalanced):
    result = command("bench", imbalanced, *QUICK)
    assert result.stderr.count("always naming the most frequent class") == 1
    assert "--metric balanced_accuracy" in result.stderr
    told = command("bench", imbalanced, *QUICK, "--metric", "roc_auc,accuracy", "--out", "auc")
    assert "most frequent class" not in told.stderr
    assert {record.metric for record in Log("auc").read()} == {"roc_auc"}


def test_the_command_line_leaves_out_groups_and_says_how_many_rows(imbalanced):
    result = command("bench", imbalanced, *QUICK, "--groups", "unit", "--class-weight", "balanced")
    assert result.exit_code == 0, result.stderr
    assert "training rows of groups that are scored were left out" in result.stderr
    assert {r.values["option:class_weight"] for r in Log("f.bench").read()} == {"balanced"}


def test_fit_takes_metric_groups_and_class_weight(imbalanced):
    chosen = ("--set", "strategies=erm,center", "--metric", "balanced_accuracy")
    result = command("fit", imbalanced, *chosen, "--groups", "unit", "--class-weight", "balanced")
    assert result.exit_code == 2
    assert "group '0' is in every domain" in result.stderr
    result = command("fit", imbalanced, *chosen, "--class-weight", "balanced")
    assert result.exit_code == 0, result.stderr
    assert "% on left-out domains" in result.stdout
    for arguments in (("--head", "dare", "--metric", "roc_auc"), ("--metric", "r2")):
        refused = command("fit", imbalanced, *arguments)
        assert refused.exit_code == 2
        assert "--metric" in refused.stderr


def test_every_metric_is_scored_where_higher_is_better():
    y = np.array([0.0, 1.0, 2.0, 3.0])
    for name, metric in METRICS.items():
        if metric.task == "regression":
            better = measure(name, y, Predictions(y + 0.1))
            assert better > measure(name, y, Predictions(y + 0.5))
