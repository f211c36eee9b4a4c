"""Plans: which trials they have, and what is refused before any work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from skdare.bench import Log, Settings, ablation_plan, run
from skdare.bench._ablations import ABLATIONS
from skdare.bench._feature_set import FeatureSet
from skdare.bench._heads import HEADS
from skdare.datasets import DomainData
from small_bench import FAST, FAST_PAPER, small_plan, table


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ABLATIONS))
@pytest.mark.parametrize("protocol", ["default", "paper"])
def test_every_ablation_runs(name, protocol):
    settings = replace(FAST, protocol=protocol)
    values = {"lambda": (0.0, 1.0), "shrinkage": (0.1, 1.0), "dimension": (2,)}.get(name)
    records = list(run(ablation_plan(name, table(), settings=settings, trials=1, values=values)))
    assert {record.status for record in records} == {"ok"}
    assert {record.study for record in records} == {f"ablation:{name}"}


@pytest.mark.parametrize("protocol", ["default", "paper"])
@pytest.mark.parametrize("name", ["whitening", "constraint", "mean"])
def test_an_ablation_differs_from_dare_in_its_own_option_whatever_dare_is_given(name, protocol):
    given = {"mean_penalty": 10.0, "shrinkage": 0.5}
    settings = replace(FAST, protocol=protocol)
    plan = ablation_plan(name, table(), settings=settings, trials=1, options={"dare": given})
    records = [r for r in run(plan) if r.held_out == "a" and r.head != "erm"]
    options = {
        r.head: {k: v for k, v in r.values.items() if k.startswith("option:")} for r in records
    }
    assert options["dare"]["option:mean_penalty"] == 10.0
    for head, own in options.items():
        different = {k for k in own if own[k] != options["dare"].get(k)}
        assert head == "dare" or len(different) == 1 or own.get("option:estimate_mean")
        assert own.get("option:shrinkage", 0.5) == 0.5


@pytest.mark.parametrize("head", [n for n, e in HEADS.items() if "regression" in e.tasks])
def test_regression_has_r2_and_rmse(head):
    records = list(run(small_plan(table("regression"), trials=1, heads=[head])))
    assert [record.metric for record in records] == ["r2"] * 4
    assert all(record.score <= 1 for record in records)
    assert all(record.values["rmse"] > 0 for record in records)


def tiny() -> DomainData:
    """The same table with a fifth domain of two rows."""
    data = table()
    domains = data.domains.copy()
    domains[:2] = "e"
    return replace(data, domains=domains)


def test_small_domains_can_be_left_out():
    assert {trial.held_out for trial in small_plan(tiny(), min_rows=3).trials} == set("abcd")


def test_options_of_dare_reach_the_adapted_head_unless_it_has_its_own():
    given = {"dare": {"shrinkage": 0.5, "mean_penalty": 7.0}}
    [options] = {t.options for t in small_plan(heads=["adapted"], options=given).trials}
    assert dict(options) == {"shrinkage": 0.5}
    [options] = {
        t.options
        for t in small_plan(
            heads=["adapted"], options=given | {"adapted": {"shrinkage": 0.1}}
        ).trials
    }
    assert dict(options) == {"shrinkage": 0.1}


def test_a_run_knows_what_is_still_to_be_done(tmp_path):
    plan, log = small_plan(trials=1, heads=["erm", "dare"]), Log(tmp_path)
    begun = run(plan, log)
    next(begun)
    begun.close()
    assert sum(log.unfinished().values()) == len(plan.trials) - len(log.read())
    list(run(plan, log))
    assert log.unfinished() == {("t", "default"): 0}


def without_reserved_rows() -> DomainData:
    return replace(table(), split=np.zeros(240, dtype=bool))


def with_every_row_of_c_aside() -> DomainData:
    return replace(table(), split=table().domains == "c")


def with_other_domains() -> DomainData:
    return replace(table(), domains=np.arange(240) % 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"heads": ["dar"]}, "did you mean `dare`"),
        ({"heads": ["anchor"]}, "for regression only"),
        ({"heads": []}, "no heads"),
        ({"options": {"dare": {"shrinkag": 1}}}, "did you mean 'shrinkage'"),
        ({"options": {"dare": {"shrinkage": 5}}}, "shrinkage is 5"),
        ({"trials": 0}, "whole number of 1 or more"),
        ({"held_out": ["e"]}, "is not in the features; they have `a`"),
        ({"held_out": []}, "no domain is named"),
        ({"extras": ["curves"]}, "extras"),
        ({"min_rows": 99}, "no domain has 99 rows"),
        ({"end_to_end": {"q": 1.0}}, "end_to_end names domain 'q'"),
        ({"pretrained": with_other_domains()}, "none of"),
        ({"data": tiny()}, "domain `e` has 2 rows, too few to whiten"),
        ({"data": with_every_row_of_c_aside()}, "every row of domain `c` aside"),
        ({"data": replace(table(), y=np.full(240, "x"))}, "y has one class"),
        ({"data": replace(table(), y=np.full(240, np.nan))}, "NaN"),
        ({"data": replace(table(), X=np.full((240, 5), np.inf))}, "infinite"),
        ({"data": without_reserved_rows(), "extras": ["ceilings"]}, "`a` of 60 rows has none"),
        ({"settings": replace(FAST, aside=0.0), "extras": ["ceilings"]}, "60 rows has none"),
        ({"settings": FAST_PAPER, "data": table("regression")}, "no regression"),
        ({"settings": FAST_PAPER, "heads": ["dare-cv"]}, "not in the paper"),
        ({"settings": FAST_PAPER, "options": {"dare": {"guess": 1}}}, "no option 'guess'"),
        (
            {"settings": FAST_PAPER, "options": {"dare": {"mean_penalty": "exact"}}},
            "dare.mean_penalty is 'exact'",
        ),
    ],
)
def test_mistakes_are_refused_before_any_work(arguments, message):
    with pytest.raises(ValueError, match=message):
        small_plan(**arguments)


@pytest.mark.parametrize(
    ("ablation", "values", "message"),
    [
        ("lambda", [np.inf], "mean_penalty is inf"),
        ("lambda", [], "values is empty"),
        ("lamda", None, "did you mean `lambda`"),
        ("domains", [9], "whole numbers from 1 to 3"),
        ("dimension", [-1], "whole numbers from 1 to"),
        ("dimension", [2, 1000], "cannot be 1000; use whole numbers from 1 to"),
        ("whitening", [1], "sweeps nothing"),
    ],
)
def test_mistakes_in_an_ablation_are_refused_before_any_work(ablation, values, message):
    with pytest.raises(ValueError, match=message):
        ablation_plan(ablation, table(), values=values)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"protocol": "papers"}, "protocol"),
        ({"l2": "best"}, "l2"),
        ({"l2_grid": ()}, "l2_grid is empty"),
        ({"clip": 3.0}, "needs standardize"),
        ({"protocol": "paper", "aside": 0.0}, "rows set aside"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Settings(**settings)


def test_missing_values_are_refused_with_a_hint():
    data = table()
    data.X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"1 of 5 features has missing values.*impute='median'"):
        small_plan(data)
    assert small_plan(data, replace(FAST, impute="median")).trials


def test_numbered_domains_are_held_out_in_order_of_size():
    data = table()
    numbers = np.array([2, 10, 1, 3])[np.searchsorted(list("abcd"), data.domains)]
    assert FeatureSet.of(replace(data, domains=numbers)).held_out == ["1", "2", "3", "10"]
