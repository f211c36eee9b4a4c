"""Data and results of other libraries: skada, Hugging Face datasets, DomainBed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from skdare import DAREClassifier, ERMClassifier
from skdare.bench import NetworkScore, bench_plan, read_domainbed
from skdare.cli import main
from skdare.datasets import (
    domainbed_split,
    from_hugging_face,
    from_skada,
    load_digit_domains,
    make_latent_domains,
    read,
    to_skada,
    write,
)


@pytest.fixture(scope="module")
def digits():
    return load_digit_domains(3)


# skada


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_rows_that_go_to_skada_come_back(task):
    data = make_latent_domains(3, 40, task=task, random_state=0)
    rows = to_skada(data, targets=[1])
    back = from_skada(rows.X, rows.y, rows.sample_domain, domain_names=rows.domain_names)
    source = data.domains != 1
    np.testing.assert_array_equal(back.sources.X, data.X[source])
    np.testing.assert_array_equal(back.sources.y, data.y[source])
    np.testing.assert_array_equal(back.sources.domains, data.domains[source])
    np.testing.assert_array_equal(back.targets[1], data.X[~source])


def test_classes_come_back_by_their_names(digits):
    named = make_named(digits)
    rows = to_skada(named, targets=["tilted"])
    back = from_skada(rows.X, rows.y, rows.sample_domain, classes=rows.classes)
    np.testing.assert_array_equal(back.sources.y, named.y[named.domains != "tilted"])
    assert list(back.targets) == [-4]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_target_labels_are_hidden_and_the_table_is_untouched(task):
    data = make_latent_domains(3, 40, task=task, random_state=0)
    before = data.y.copy()
    rows = to_skada(data, targets=[2])
    masked = rows.y[rows.sample_domain < 0]
    assert np.all(np.isnan(masked) if task == "regression" else masked == -1)
    np.testing.assert_array_equal(data.y, before)
    shown = to_skada(data, targets=[2], mask=False)
    np.testing.assert_array_equal(shown.y, data.y)


def test_a_source_may_have_the_number_zero():
    rows = from_skada(np.eye(4), [0, 1, 0, -1], [0, 0, 1, -2])
    assert rows.sources.domains.tolist() == [0, 0, 1]
    assert list(rows.targets) == [-2]


@pytest.mark.parametrize(
    ("y", "sample_domain", "said"),
    [
        ([0, 1, -1, 1], [1, 1, 2, 2], "1 rows of source domains have no label"),
        ([0.5, np.nan, 1.5, 2.5], [1, 1, 2, 2], "1 rows of source domains have no label"),
        ([0, 1, 0, 1], [-1, -1, -2, -2], "no source domain"),
        ([0, 1, 0], [1, 1, 2, 2], "one label and one number"),
        ([0, 1, 0, 1], [1.5, 1, 2, 2], "whole numbers"),
    ],
)
def test_rows_of_skada_that_cannot_be_learnt_from_are_refused(y, sample_domain, said):
    with pytest.raises(ValueError, match=said):
        from_skada(np.eye(4), y, sample_domain)


def test_classes_of_skada_may_be_floats_that_are_whole():
    rows = from_skada(np.eye(4), [0.0, 1.0, 0.0, np.nan], [1, 1, 2, -3], classes=["a", "b"])
    assert rows.sources.y.tolist() == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ([0.5, 1.0, 0.0, 1.0], "y has dtype float64"),
        ([0, 1, 2, 0], r"y has code 2 in row 2 \(counted from 0\), but only 2 names"),
        (["a", "b", "a", "b"], "y has dtype"),
    ],
)
def test_numbers_that_stand_for_no_class_are_refused(y, said):
    with pytest.raises(ValueError, match=said):
        from_skada(np.eye(4), y, [1, 1, 2, 2], classes=["a", "b"])


@pytest.mark.parametrize("targets", [[], ["no"], ["bold", "faint", "plain", "tilted"]])
def test_targets_are_some_of_the_domains(digits, targets):
    with pytest.raises(ValueError, match="name some of them, not all"):
        to_skada(digits, targets=targets)


def test_numbers_without_a_name_are_refused():
    with pytest.raises(ValueError, match="no name for domain 2"):
        from_skada(np.eye(2), [0, 1], [1, 2], domain_names={"a": 1})


# Hugging Face


@pytest.fixture(scope="module")
def hugging_face(digits):
    package = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    kinds = package.Features(
        embedding=package.List(package.Value("float32")),
        label=package.ClassLabel(names=["zero", "one", "two"]),
        site=package.Value("string"),
        age=package.Value("int32"),
        weight=package.Value("float64"),
    )
    columns = {
        "embedding": digits.X.astype(np.float32),
        "label": digits.y,
        "site": digits.domains,
        "age": np.arange(len(digits.y)),
        "weight": digits.X[:, 10],
    }
    return package.Dataset.from_dict(columns, features=kinds)


def make_named(digits):
    from dataclasses import replace

    return replace(digits, y=np.array(["zero", "one", "two"])[digits.y])


def test_a_hugging_face_dataset_gives_its_rows_and_the_names_of_its_classes(digits, hugging_face):
    data = from_hugging_face(hugging_face)
    np.testing.assert_array_equal(data.X[:], digits.X.astype(np.float32))
    np.testing.assert_array_equal(data.y, make_named(digits).y)
    np.testing.assert_array_equal(data.domains, digits.domains)


def test_a_head_fitted_to_lazy_rows_is_the_head_fitted_to_the_array(hugging_face, monkeypatch):
    monkeypatch.setattr("skdare.datasets._hugging_face._ROWS", 100)
    data = from_hugging_face(hugging_face)
    lazy = DAREClassifier().fit(data.X, data.y, domains=data.domains)
    whole = DAREClassifier().fit(data.X[:], data.y, domains=data.domains)
    np.testing.assert_allclose(lazy.coef_, whole.coef_, atol=1e-5)


def test_a_shuffled_dataset_is_read_in_its_own_order(digits, hugging_face):
    order = np.random.default_rng(0).permutation(len(digits.y))
    data = from_hugging_face(hugging_face.select(order))
    np.testing.assert_array_equal(data.X[5:300], digits.X[order[5:300]].astype(np.float32))
    np.testing.assert_array_equal(data.domains, digits.domains[order])


def test_features_may_be_several_columns(hugging_face):
    data = from_hugging_face(hugging_face, features=["age", "weight"])
    assert data.feature_names == ["age", "weight"]
    assert data.X.shape == (len(hugging_face), 2)


def test_a_folder_of_save_to_disk_is_read_without_the_package(digits, hugging_face, tmp_path):
    hugging_face.save_to_disk(tmp_path / "rows", num_shards=3)
    data = read(tmp_path / "rows")
    np.testing.assert_array_equal(data.X, digits.X.astype(np.float32))
    np.testing.assert_array_equal(data.y, make_named(digits).y)
    assert data.name == "rows"


def test_the_bench_takes_a_folder_of_save_to_disk(hugging_face, tmp_path, capsys):
    hugging_face.save_to_disk(tmp_path / "rows")
    given = [str(tmp_path / "rows"), "--heads", "erm", "--trials", "1", "--with", "none"]
    main(["bench", *given, "--out", str(tmp_path / "run"), "--quiet"], standalone_mode=False)
    assert "tilted" in capsys.readouterr().out


def test_a_folder_of_several_splits_says_which(hugging_face, tmp_path):
    package = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    package.DatasetDict(train=hugging_face, test=hugging_face).save_to_disk(tmp_path / "both")
    with pytest.raises(ValueError, match=r"the splits train, test; give one, such as .*train"):
        read(tmp_path / "both")
    with pytest.raises(ValueError, match="dict of datasets"):
        from_hugging_face(package.DatasetDict(train=hugging_face))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"target": "no"}, "no 'no' for target"),
        ({"features": "site"}, "features are lists of numbers"),
        ({"domains": "label", "target": "label", "features": "age"}, "lists of numbers"),
    ],
)
def test_columns_that_will_not_do_are_refused(hugging_face, asked, said):
    with pytest.raises(ValueError, match=said):
        from_hugging_face(hugging_face, **asked)


def test_a_stream_is_refused(hugging_face):
    with pytest.raises(TypeError, match="a streamed one is saved first"):
        from_hugging_face(hugging_face.to_iterable_dataset())


# DomainBed


def write_run(folder, test_envs, steps, *, trial=0, algorithm="ERM", dataset="PACS", killed=False):
    """A run's results: for each step the accuracies on both parts of three domains."""
    folder.mkdir(parents=True)
    args = {"algorithm": algorithm, "dataset": dataset, "test_envs": test_envs}
    lines = []
    for step, (inner, outer) in steps.items():
        scores = {f"env{e}_in_acc": score for e, score in enumerate(inner)}
        scores |= {f"env{e}_out_acc": score for e, score in enumerate(outer)}
        args_of_run = args | {"trial_seed": trial, "hparams_seed": 0}
        lines.append(json.dumps({"args": args_of_run, "hparams": {}, "step": step, **scores}))
    if killed:
        lines.append(lines[-1][:40])
    (folder / "results.jsonl").write_text("\n".join(lines))


DOMAINS = ("art", "photo", "sketch")


def test_the_step_with_the_best_training_domain_validation_counts(tmp_path):
    better = {0: ((0.9, 0.9, 0.1), (0.8, 0.8, 0.9)), 300: ((0.9, 0.9, 0.3), (0.9, 0.8, 0.2))}
    worse = {0: ((0.9, 0.9, 0.9), (0.8, 0.8, 0.99))}
    write_run(tmp_path / "a", [2], better, killed=True)
    write_run(tmp_path / "b", [2], worse)
    scores = read_domainbed(tmp_path, DOMAINS)
    assert scores.networks == {("sketch", 0): NetworkScore(0.3, "rest")}
    assert scores.chosen == {("sketch", 0): (tmp_path / "a", 300)}


def test_a_step_at_which_a_network_has_diverged_is_never_the_best(tmp_path):
    nan, good = float("nan"), ((0.9, 0.9, 0.3), (0.9, 0.8, 0.2))
    write_run(tmp_path / "a", [2], {0: ((0.9,) * 3, (nan, 0.8, 0.9)), 300: good})
    write_run(tmp_path / "b", [2], {0: ((0.9,) * 3, (0.1, nan, 0.9))})
    assert read_domainbed(tmp_path, DOMAINS).chosen == {("sketch", 0): (tmp_path / "a", 300)}


@pytest.mark.parametrize("none", [99, 3, -1])
def test_a_network_that_saw_every_domain_is_a_ceiling_on_the_rows_set_aside(tmp_path, none):
    write_run(tmp_path / "all", [none], {0: ((0.9, 0.9, 0.9), (0.7, 0.8, 0.6))}, trial=1)
    scores = read_domainbed(tmp_path, DOMAINS)
    assert scores.end_to_end["sketch", 1] == NetworkScore(0.6, "reserved")
    assert not scores.networks


def test_runs_with_two_test_domains_and_of_other_algorithms_are_left_out(tmp_path):
    same = {0: ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))}
    write_run(tmp_path / "one", [0], same)
    write_run(tmp_path / "pair", [0, 1], {0: ((0.9,) * 3, (0.9,) * 3)})
    write_run(tmp_path / "coral", [0], {0: ((0.9,) * 3, (0.9,) * 3)}, algorithm="CORAL")
    assert read_domainbed(tmp_path, DOMAINS).networks == {("art", 0): NetworkScore(0.5, "rest")}
    chosen = read_domainbed(tmp_path, DOMAINS, algorithm="CORAL")
    assert chosen.networks == {("art", 0): NetworkScore(0.9, "rest")}


@pytest.mark.parametrize(
    ("domains", "asked", "said"),
    [
        (("art", "photo"), {}, "scores on 3 domains, and 2 are named"),
        (DOMAINS, {"algorithm": "IRM"}, "no run of IRM .* it has ERM"),
        (DOMAINS, {"dataset": None}, "runs on PACS, VLCS; name one with dataset="),
    ],
)
def test_a_sweep_that_does_not_fit_is_refused(tmp_path, domains, asked, said):
    same = {0: ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))}
    write_run(tmp_path / "a", [0], same)
    write_run(tmp_path / "b", [0], same, dataset="VLCS")
    with pytest.raises(ValueError, match=said):
        read_domainbed(tmp_path, domains, **{"dataset": "PACS", **asked})


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no results\.jsonl"):
        read_domainbed(tmp_path, DOMAINS)


def test_a_broken_line_within_a_run_is_named(tmp_path):
    write_run(tmp_path / "a", [0], {0: ((0.5,) * 3, (0.5,) * 3)})
    file = tmp_path / "a" / "results.jsonl"
    file.write_text("{}\n" + file.read_text())
    with pytest.raises(ValueError, match=r"line 1 of .*results\.jsonl"):
        read_domainbed(tmp_path, DOMAINS)


def test_the_scores_of_a_sweep_stand_in_a_plan():
    data = make_latent_domains(3, 20, random_state=0)
    networks = {("2", 0): NetworkScore(0.3, "rest")}
    plan = bench_plan(data, heads=["erm"], trials=1, extras=[], networks=networks)
    assert [t.network_score for t in plan.trials if t.network_score] == [NetworkScore(0.3, "rest")]


def test_bench_reads_a_sweep_beside_the_features(tmp_path, capsys):
    write(tmp_path / "rows.npz", make_latent_domains(3, 30, shift=0.2, random_state=0))
    write_run(tmp_path / "sweep" / "a", [2], {0: ((0.9, 0.9, 0.123), (0.8, 0.8, 0.9))})
    write_run(tmp_path / "sweep" / "b", [2], {0: ((0.9,) * 3, (0.8,) * 3)}, trial=5)
    given = [str(tmp_path / "rows.npz"), "--heads", "erm", "--trials", "1", "--with", "none"]
    run = ["--domainbed", str(tmp_path / "sweep"), "--out", str(tmp_path / "run")]
    main(["bench", *given, *run, "--quiet", "--details"], standalone_mode=False)
    assert "12.3" in capsys.readouterr().out


@pytest.mark.parametrize("trial", [0, 2])
def test_domainbeds_split_is_that_of_its_formula(trial):
    from hashlib import md5

    domains = np.repeat(["art", "cartoon"], [2048, 50])
    seed = int(md5(f"({trial}, 1)".encode()).hexdigest(), 16) % 2**31
    order = np.arange(50)
    np.random.RandomState(seed).shuffle(order)
    aside = domainbed_split(domains, trial)
    assert set(np.flatnonzero(aside[2048:])) == set(order[:10].tolist())
    assert aside[:2048].sum() == 409


def test_weights_of_a_domainbed_network_are_its_featurizers(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from skdare.features.backbones.model_zoos import read_state

    weight = torch.arange(6.0).reshape(2, 3)
    held = {
        "args": {"test_envs": [0]},
        "model_hparams": {"resnet_dropout": np.float64(0.1), "batch_size": np.int64(8)},
        "model_dict": {"featurizer.network.conv1.weight": weight, "classifier.weight": weight},
    }
    torch.save(held, tmp_path / "model.pkl")
    found = read_state(tmp_path / "model.pkl")
    assert list(found) == ["conv1.weight"]
    assert torch.equal(found["conv1.weight"], weight)


def test_a_file_that_would_run_code_is_refused(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from pickle import UnpicklingError

    from skdare.features.backbones.model_zoos import read_state

    torch.save({"model_dict": {"a": ERMClassifier()}}, tmp_path / "model.pkl")
    with pytest.raises(UnpicklingError):
        read_state(tmp_path / "model.pkl")
