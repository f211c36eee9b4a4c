"""Experiments on why DARE does not gain: what is compared, on which rows, and what is printed."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skdare.datasets import make_latent_domains

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def why():
    """The module and its neighbours by their paths, since their names may be those of packages."""
    modules = {}
    try:
        for name in ("tables", "uda_methods", "why"):
            spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
            modules[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(modules[name])
        yield modules["why"]
    finally:
        for name in modules:
            del sys.modules[name]


@pytest.fixture
def data():
    return make_latent_domains(4, 60, 5, random_state=0)


def test_each_fold_has_the_candidate_that_is_best_by_the_rule(why):
    scores = {
        0.1: {(0, "a"): 0.9, (0, "b"): 0.5, (1, "a"): 0.8, (1, "b"): 0.6},
        1.0: {(0, "a"): 0.7, (0, "b"): 0.7, (1, "a"): 0.6, (1, "b"): 0.8},
    }
    rule = {0.1: dict.fromkeys(scores[0.1], 0.0), 1.0: dict.fromkeys(scores[0.1], 1.0)}
    rule[1.0][1, "a"] = -1.0
    expected = {(0, "a"): 0.7, (0, "b"): 0.7, (1, "a"): 0.8, (1, "b"): 0.8}
    assert why.chosen(scores, rule) == expected
    # Of equally good ones the strongest shrinkage.
    ties = {rho: dict.fromkeys(scores[0.1], 0.0) for rho in scores}
    assert why.chosen(scores, ties) == scores[1.0]
    # By the scores themselves, the best that any rule could do.
    limit = {place: max(own[place] for own in scores.values()) for place in expected}
    assert why.chosen(scores, scores) == limit


def test_gains_are_paired_by_trial(why):
    erm = {(0, "a"): 0.9, (0, "b"): 0.5, (1, "a"): 0.8, (1, "b"): 0.6}
    scores = {(0, "a"): 0.7, (0, "b"): 0.7, (1, "a"): 0.8, (1, "b"): 0.8}
    row = why.line("cause", "change", "DARE", scores, erm)
    assert row[3:6] == ["75.0", "75.0", "75.0"]
    # 0 and 10 points in the two trials: a standard error of 5, and t is 6.31.
    assert row[6] == "+5.0 ± 31.6"
    alone = {place: value for place, value in scores.items() if place[0] == 0}
    assert why.line("cause", "change", "DARE", alone, erm)[6] == "0.0"
    assert why.line("cause", "change", "ERM", erm, erm)[6] == ""


def test_experiments_have_folders_of_their_own(why):
    names = [experiment.name for experiment in why.EXPERIMENTS] + [why.SWEEP, why.ERRORS]
    assert len(set(names)) == len(names)


def test_records_are_those_of_the_data_and_trials_that_were_asked_for(why, data, tmp_path):
    # Of the same name the bench refuses it.
    other = replace(make_latent_domains(4, 60, 5, random_state=1), name="other")
    experiment = why.Experiment("one", "–", "–", ("erm",))

    def scores(data, trials):
        bench = why.Bench(data, tmp_path, trials)
        return why.scores_of(bench.records("one", bench.plan(experiment)), "erm")

    first = scores(data, 2)
    second = scores(other, 1)
    assert scores(data, 2) == first
    assert scores(data, 1) == {place: value for place, value in first.items() if place[0] == 0}
    assert second != scores(data, 1)


def test_a_failed_fit_ends_the_table_in_words(why, data, tmp_path, monkeypatch):
    def fail(self, trial, fold):
        raise FloatingPointError("it diverged")

    monkeypatch.setattr("skdare.bench._run.TrialRunner._measure", fail)
    bench = why.Bench(data, tmp_path, 1)
    with pytest.raises(SystemExit, match=r"one: erm on .*, trial 0 failed: .*it diverged"):
        bench.records("one", bench.plan(why.Experiment("one", "–", "–", ("erm",))))


def test_a_rehearsal_sees_no_row_of_the_held_out_domain(why, data, tmp_path):
    bench = why.Bench(data, tmp_path, 1)
    for (_, held_out), fold in bench.folds(why.PAPER):
        for domain in fold.training_domains:
            inner = why.without(fold, domain)
            seen = {*inner.train.domains, *inner.valid.domains}
            assert seen == set(fold.training_domains) - {domain}
            assert set(inner.test.domains) == {domain}
            assert held_out not in {*seen, domain}
            own = fold.valid.domains == domain
            np.testing.assert_array_equal(inner.test.X[inner.reserved], fold.valid.X[own])


def test_every_experiment_can_be_planned_and_asks_for_fewer_components_than_features(why, data):
    bench = why.Bench(data, None, 1)
    for experiment in why.EXPERIMENTS:
        assert bench.plan(experiment).trials
        assert bench.has_room(experiment) == (experiment.components is None)
    assert bench.has_room(why.Experiment("", "", "", components=4))


def test_t3a_is_scored_on_the_rows_that_were_set_aside(why, data):
    bench = why.Bench(data, None, 2)
    scores = bench.t3a()
    assert set(scores) == {(trial, str(i)) for trial in (0, 1) for i in range(4)}
    for place, fold in bench.folds(why.SOLVED):
        hits = scores[place] * fold.reserved.sum()
        np.testing.assert_allclose(hits, round(hits), atol=1e-6)
    assert np.mean(list(scores.values())) > 0.7


def test_the_table_has_a_row_for_every_head_and_every_rule(
    why, data, tmp_path, monkeypatch, capsys
):
    features = tmp_path / "latent.npz"
    np.savez(features, X=data.X, y=data.y, domain=data.domains)
    folder = tmp_path / "features"
    folder.mkdir()
    for name in np.unique(data.domains):
        (folder / f"{name}.npz").write_bytes(features.read_bytes())
    command = [str(folder), "--out", str(tmp_path / "why"), "--only", "intercept", "--trials", "1"]
    monkeypatch.setattr(sys, "argv", ["why.py", *command, "--rehearse", "--jobs", "1"])
    why.main()
    printed = capsys.readouterr().out
    rows = [line for line in printed.splitlines() if line.startswith("|")]
    table = [row for row in rows if row.count("|") == rows[0].count("|")]
    # Header and rule; five heads, every ρ, three ways to choose it; ERM and DARE without intercept.
    assert len(table) == 2 + 5 + len(why.RHOS) + 3 + 2
    assert len(rows) - len(table) == 2 + len(why.RHOS)
    monkeypatch.setattr("skdare.bench._run.TrialRunner.__call__", None)
    why.main()  # from what is on file
    assert capsys.readouterr().out == printed


def test_an_unknown_cause_is_named_before_any_work(why, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["why.py", "nowhere", "--only", "biass"])
    with pytest.raises(SystemExit):
        why.main()
    assert "there is no cause 'biass'; there are scale" in capsys.readouterr().err
