"""Features fine-tuned anew in every trial: each trial has its own table, split and key."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from skdare.bench import Log, NetworkScore, ablation_plan, bench_plan, run
from skdare.bench._feature_set import FeatureSet
from skdare.bench._fold import Folds
from skdare.bench._record import NETWORK
from skdare.bench._trial import Trial
from skdare.cli import main
from skdare.datasets import DomainData, read_fine_tuned, reserve, write_store
from skdare.report import summarise, text
from skdare.report._sections import document
from small_bench import FAST, fold_of, small_plan, table

Stores = dict[tuple[str, int], DomainData]


def fine_tuned(held_out: str = "ab", trials: tuple[int, ...] = (0, 1), **changes) -> Stores:
    """The small table as a network of each held-out domain and trial would have it."""
    rows = table()
    stores = {}
    for domain in held_out:
        for trial in trials:
            turn = np.random.default_rng([ord(domain), trial]).normal(size=(5, 5))
            made = {"held_out": domain, "trial": trial, "backbone": "small"}
            split = reserve(rows.domains, trial)
            stores[domain, trial] = replace(
                rows, X=rows.X @ turn, split=split, made=made, name="t", **changes
            )
    return stores


def folds_of(data, number: int, **others):
    """The fold that holds out domain b, for each feature set."""
    feature_sets = {name: FeatureSet.of(each) for name, each in {"given": data, **others}.items()}
    folds = Folds(feature_sets, FAST)
    return [folds.fold(Trial("main", "erm", "b", number, features=name)) for name in feature_sets]


# Tables and splits


@pytest.mark.parametrize("number", [0, 1])
def test_each_trial_has_its_own_table_and_the_split_of_that_table(number):
    stores = fine_tuned()
    store = replace(stores["b", number], split=np.arange(240) % (4 + number) == 0)
    stores["b", number] = store
    [fold] = folds_of(stores, number)
    test = store.domains == "b"
    np.testing.assert_array_equal(fold.reserved, store.split[test])
    np.testing.assert_array_equal(fold.test.X, store.X[test])
    np.testing.assert_array_equal(fold.train.X, store.X[~test & ~store.split])
    np.testing.assert_array_equal(fold.valid.X, store.X[~test & store.split])
    assert fold.split == "of the file"


def scores_by_cell(records):
    """Scores of each trial, by its place in the tables."""
    return {
        (r.study, r.head, r.features, r.held_out, r.trial, r.x): {
            "score": r.score,
            **{k: v for k, v in r.values.items() if k.startswith(("score", "correct", "n_"))},
        }
        for r in records
    }


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["default", "paper"])
@pytest.mark.parametrize("place", [("a", 0), ("a", 1), ("b", 1)])
def test_poison_in_the_table_of_one_trial_reaches_no_other(protocol, place):
    stores, heads = fine_tuned(), ["erm", "dare", "adapted"]
    settings = replace(FAST, protocol=protocol)
    asked = {"settings": settings, "heads": heads, "extras": ["ceilings", "curve", "diagnostics"]}
    clean = scores_by_cell(run(small_plan(stores, **asked)))
    bad = stores[place]
    stores[place] = replace(bad, X=1e3 * bad.X[::-1], split=np.roll(bad.split, 1))
    other = scores_by_cell(run(small_plan(stores, **asked)))
    changed = {where[3:5] for where in clean if clean[where] != other[where]}
    assert clean.keys() == other.keys()
    assert changed == {place}


@pytest.mark.parametrize("number", [0, 1, 2])
def test_pretrained_features_are_split_as_the_networks_were_that_drew_theirs_alike(number):
    rows = table()
    given, pretrained = folds_of(fine_tuned(trials=(0, 1, 2)), number, pretrained=rows)
    np.testing.assert_array_equal(given.reserved, pretrained.reserved)
    np.testing.assert_array_equal(given.valid.y, pretrained.valid.y)


def test_one_table_has_the_split_of_the_trial_it_was_made_in():
    data = replace(table(), made={"held_out": "b", "trial": 1})
    data = replace(data, split=np.arange(240) % 3 == 0)
    folds = Folds({"given": FeatureSet.of(data, held_out=["b"])}, FAST)
    splits = [folds.fold(Trial("main", "erm", "b", n)).split for n in (0, 1)]
    assert splits == ["20% of each domain by seed (0, domain)", "of the file"]


def test_the_split_is_the_one_that_earlier_runs_drew():
    drawn = "000100010010100000000010000010000010000110100100000000000010"
    assert "".join(map(str, reserve(["b"] * 60, 1).astype(int))) == drawn
    assert "".join(map(str, fold_of(table(), number=1).reserved.astype(int))) == drawn


def test_a_domain_is_reserved_by_its_name_whatever_the_others_are():
    alone = reserve(["b"] * 60, 0)
    beside = reserve(np.array(["a"] * 30 + ["b"] * 60, dtype=object), 0)
    np.testing.assert_array_equal(beside[30:], alone)
    np.testing.assert_array_equal(reserve([7] * 60, 0), reserve(["7"] * 60, 0))
    assert reserve(["a"] * 2 + ["b"], 0).tolist().count(True) == 1


# Which trials there are


def test_the_trials_are_those_that_have_tables():
    assert {t.number for t in small_plan(fine_tuned(trials=(0, 1))).trials} == {0, 1}
    assert {t.number for t in small_plan(fine_tuned(trials=(2, 5))).trials} == {2, 5}
    assert {t.number for t in small_plan(fine_tuned(trials=(0, 1)), trials=1).trials} == {0}
    assert {t.number for t in small_plan().trials} == {0, 1, 2}


def without(*places) -> Stores:
    return {place: data for place, data in fine_tuned().items() if place not in places}


def mixed():
    return {**fine_tuned("a"), "b": table()}


def other_trial() -> Stores:
    stores = fine_tuned()
    return {("a", 0): stores["a", 1]}


@pytest.mark.parametrize(
    ("data", "more", "message"),
    [
        (without(("b", 1)), {}, "for held-out domain `b` in trial 1; make them"),
        (fine_tuned(), {"trials": 3}, "`a` in trial 2, `b` in trial 2; make them"),
        (fine_tuned(trials=(1,)), {"trials": 1}, "`a` in trial 0"),
        (table(), {"pretrained": fine_tuned()}, "`a` in trial 2"),
        (fine_tuned(), {"held_out": ["c"]}, "held-out domain `c`; there are some for a, b"),
        (mixed(), {}, "give all of them by both"),
        ({("a", "first"): table()}, {}, "the trial of the features for 'a' is 'first'"),
        ({("a", 0, 0): table()}, {}, "name them \\(held-out domain, trial\\)"),
        (other_trial(), {}, "trial 0 of held-out domain `a` were made in trial 1"),
        ({"b": fine_tuned()["a", 0]}, {}, "fine-tuned without `a`, and so with `b`"),
        (fine_tuned()["a", 0], {}, "hold out `a` alone"),
    ],
)
def test_features_that_are_missing_or_of_another_trial_are_refused(data, more, message):
    with pytest.raises(ValueError, match=message):
        small_plan(data, **more)


def test_an_ablation_is_refused_where_features_of_a_trial_are_missing():
    with pytest.raises(ValueError, match="`a` in trial 2"):
        ablation_plan("domains", fine_tuned(), trials=3)


def test_features_made_without_a_domain_may_hold_it_out():
    assert {t.held_out for t in small_plan(fine_tuned()["a", 0], held_out=["a"]).trials} == {"a"}


@pytest.mark.parametrize("name", ["dimension", "domains", "whitening"])
def test_ablations_run_on_tables_of_trials(name):
    values = (2,) if name != "whitening" else None
    plan = ablation_plan(name, fine_tuned(), settings=FAST, values=values)
    records = list(run(plan))
    assert {r.status for r in records} == {"ok"}
    tables = {(r.held_out, r.trial): r.values["table"] for r in records}
    assert len(set(tables.values())) == 4


# Keys


def whole_numbers(n: int = 24) -> DomainData:
    """A table that is the same to the last bit everywhere."""
    rows = np.arange(4 * n)
    X = np.stack([rows % 7, rows % 5, rows % 3], axis=1).astype(np.float64)
    return DomainData(X, np.array(["x", "y"])[rows % 2], np.repeat(list("abcd"), n))


def test_one_table_and_tables_by_domain_have_the_keys_of_earlier_runs():
    asked = {"heads": ["erm"], "extras": [], "trials": 2, "name": "t"}
    plan = bench_plan(whole_numbers(), end_to_end={"a": 0.9}, **asked)
    keys = {(t.head, t.held_out, t.number): plan.key(t) for t in plan.trials}
    assert keys["erm", "a", 0] == "705763ad7e1ed66d304d"
    assert keys["erm", "d", 1] == "3e482e66e7c1fd1dea94"
    assert keys["end-to-end", "a", 0] == "1a4f20438553b8feff33"
    plan = bench_plan({"a": whole_numbers(), "b": whole_numbers(30)}, **asked)
    keys = {(t.held_out, t.number): plan.key(t) for t in plan.trials}
    assert keys["a", 0] == "705763ad7e1ed66d304d"
    assert keys["b", 1] == "78bcc17ded8d9c7edb02"


def test_the_key_of_a_trial_depends_on_its_own_table_alone():
    def keys(stores: Stores):
        plan = small_plan(stores, heads=["erm"], networks={("a", 1): 0.8})
        return {(t.head, t.held_out, t.number): plan.key(t) for t in plan.trials}

    stores = fine_tuned()
    first = keys(stores)
    assert len(set(first.values())) == 5
    stores["a", 1] = replace(stores["a", 1], X=stores["a", 1].X + 1.0)
    second = keys(stores)
    changed = {place for place in first if first[place] != second[place]}
    assert changed == {("erm", "a", 1), (NETWORK, "a", 1)}


def test_a_run_takes_further_trials_and_refuses_other_features_of_the_same(tmp_path):
    stores, asked = fine_tuned(trials=(0, 1, 2)), {"heads": ["erm"]}
    assert len(list(run(small_plan(stores, trials=2, **asked), Log(tmp_path)))) == 4
    assert len(list(run(small_plan(stores, **asked), Log(tmp_path)))) == 2
    later = {place: data for place, data in fine_tuned(trials=(3,)).items() if place[0] == "a"}
    assert len(list(run(small_plan(later, **asked), Log(tmp_path)))) == 1
    stores["b", 1] = replace(stores["b", 1], X=stores["b", 1].X + 1.0)
    for other in (stores, table(), {"a": table(seed=1)}):
        with pytest.raises(ValueError, match="with other features, labels, domains"):
            list(run(small_plan(other, heads=["dare"]), Log(tmp_path)))


# Scores of networks


def test_scores_of_networks_are_records_of_their_trials():
    ceilings = {("a", 0): 0.9, ("a", 1): 0.92, ("b", 1): NetworkScore(0.8, "all")}
    networks = {("a", 0): NetworkScore(0.7, "rest"), "b": 0.6}
    plan = small_plan(fine_tuned(), heads=["erm"], end_to_end=ceilings, networks=networks)
    scores = {
        (r.study, r.head, r.held_out, r.trial): (r.score, r.uses, r.values.get("tested_on"))
        for r in run(plan)
        if r.status == "given"
    }
    assert scores == {
        ("ceiling", "end-to-end", "a", 0): (0.9, "labels", "reserved"),
        ("ceiling", "end-to-end", "a", 1): (0.92, "labels", "reserved"),
        ("ceiling", "end-to-end", "b", 1): (0.8, "labels", "all"),
        ("network", "network", "a", 0): (0.7, "nothing", "rest"),
        ("network", "network", "b", 0): (0.6, "nothing", None),
    }


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"q": 0.9}, "names domain 'q'; held out are a, b"),
        ({("a", 2): 0.9}, "names trial 2 of 'a'; the trials are 0, 1"),
        ({"a": 95.4}, "for 'a' is 95.4; it must be in \\[0, 1\\]"),
        ({"a": NetworkScore(0.9, "some")}, "tested_on of .* for 'a' is 'some'"),
        ({"a": 0.9, ("a", 0): 0.9}, "names trial 0 of 'a' twice"),
    ],
)
@pytest.mark.parametrize("which", ["end_to_end", "networks"])
def test_scores_of_no_such_domain_trial_or_rows_are_refused(which, scores, message):
    with pytest.raises(ValueError, match=f"{which}.*{message}|{message}"):
        small_plan(fine_tuned(), **{which: scores})


# What the report says of them


def reported(**more):
    plan = small_plan(
        fine_tuned(), heads=["erm", "dare"], extras=["ceilings", "diagnostics"], **more
    )
    return summarise(list(run(plan)))


def test_the_report_says_that_every_trial_has_its_own_network():
    said = text(reported(), details=True)
    assert "over 2 trials, each with its own network and split." in said
    assert "splits of the same rows" not in said
    notes = dict(document(reported()).notes)
    assert "Every trial has its own network and split" in notes["t 90 % interval"]
    once = summarise(list(run(small_plan(heads=["erm"], trials=2))))
    assert "over 2 trials, splits of the same rows" in text(once, details=True)
    facts = dict(document(reported()).sections[0].parts[-1].facts)
    assert facts["Features"] == "a table for each held-out domain and trial"
    both = " ".join(text(reported(pretrained=table())).split())
    assert "its own split, and its own network where features were fine-tuned." in both


def test_networks_stand_beside_the_ceilings_with_intervals_over_trials():
    networks = {(d, t): NetworkScore(0.7 + 0.1 * t, "all") for d in "ab" for t in (0, 1)}
    summary = reported(networks=networks, end_to_end={"a": 0.9, "b": 0.9})
    [part] = [p for p in document(summary).sections[0].parts if p.heading == "Ceilings"]
    [shown] = part.tables
    column = shown.columns.index("ERM network")
    assert [row[column].text for row in shown.rows] == ["75.0"] * 4
    assert all(row[column].spread for row in shown.rows)
    assert "ERM network was scored on all its rows." in shown.notes
    assert [row[-1].spread for row in shown.rows] == [""] * 4
    assert "End-to-end ceiling" in shown.columns


# Folders of feature stores


def written(folder, stores: Stores):
    """The stores in a folder, under names that say nothing, beside what is none."""
    for i, data in enumerate(stores.values()):
        write_store(folder / f"store {i}", data)
    (folder / "checkpoints").mkdir()
    (folder / "notes.txt").write_text("by hand")
    return folder


def test_a_folder_of_stores_is_read_by_what_they_say_of_themselves(tmp_path):
    stores = fine_tuned()
    tables = read_fine_tuned(written(tmp_path, stores))
    assert tables.keys() == stores.keys()
    for place, data in tables.items():
        np.testing.assert_array_equal(data.X, stores[place].X)
        np.testing.assert_array_equal(data.split, stores[place].split)
        assert data.name == tmp_path.name


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ({"held_out": "a", "trial": 0}, "both hold out 'a' in trial 0; move one"),
        ({"held_out": "a"}, "it lacks made.trial"),
        ({"backbone": "small"}, "it lacks made.held_out and made.trial"),
        (None, "it lacks made.held_out and made.trial"),
        ({"held_out": "a", "trial": "first"}, "trial 'first'; it must be a whole number"),
    ],
)
def test_stores_that_cannot_be_placed_are_refused_by_name(made, message, tmp_path):
    write_store(tmp_path / "one", fine_tuned()["a", 0])
    write_store(tmp_path / "two", replace(table(), made=made))
    with pytest.raises(ValueError, match=rf"two.*{message}"):
        read_fine_tuned(tmp_path)


def test_a_folder_without_stores_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"has no manifest\.json, and no folder in it has one"):
        read_fine_tuned(tmp_path)


def bench(*arguments):
    return CliRunner().invoke(main, ["bench", *map(str, arguments)], catch_exceptions=False)


def test_the_command_line_benches_a_folder_of_stores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pacs").mkdir()
    folder = written(tmp_path / "pacs", fine_tuned())
    write_store(tmp_path / "before", table())
    fast = ("--heads", "erm,dare", "--l2", "0.01", "--jobs", "1", "--pretrained", "before")
    result = bench(folder, *fast, "--network", "a=70", "--end-to-end", "b=90.5")
    assert result.exit_code == 0, result.stderr
    assert "own network" in result.stdout
    records = Log("pacs.bench").read()
    assert {(r.held_out, r.trial) for r in records} == {(d, t) for d in "ab" for t in (0, 1)}
    assert {r.values["features_of"] for r in records if r.features == "given"} == {"trial"}
    assert {r.values["features_of"] for r in records if r.features == "pretrained"} == {"data"}
    given = {(r.head, r.held_out): r.score for r in records if r.status == "given"}
    assert given == {("network", "a"): 0.7, ("end-to-end", "b"): 0.905}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pacs", "--trials", "3"], "`a` in trial 2"),
        (["pacs", "--target", "y"], "--target is given, but the feature stores in pacs"),
        (["pacs", "--network", "a"], "--network 'a' is not DOMAIN=SCORE"),
        (["empty"], "empty has no manifest.json"),
        (["pacs/store 0"], "hold out `a` alone"),
    ],
)
def test_mistakes_with_a_folder_of_stores_exit_with_two(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pacs").mkdir()
    (tmp_path / "empty").mkdir()
    written(tmp_path / "pacs", fine_tuned())
    result = bench(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.glob("*.bench"))


def test_pretrained_features_of_the_same_rows_are_scored_on_the_same_rows():
    given = table()
    aside = np.arange(len(given.y)) % 3 == 0
    plan = small_plan(
        {("b", 0): replace(given, split=aside, made={"held_out": "b", "trial": 0})},
        pretrained=replace(given, X=given.X[:, ::-1].copy()),
        extras=["ceilings"],
    )
    folds = Folds(plan.feature_sets, plan.settings)
    ceilings = [trial for trial in plan.trials if trial.head == "ceiling-exact"]
    assert {trial.features for trial in ceilings} == {"given", "pretrained"}
    for trial in ceilings:
        np.testing.assert_array_equal(folds.fold(trial).reserved, aside[given.domains == "b"])
