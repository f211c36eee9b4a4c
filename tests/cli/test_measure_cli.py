"""`skdare measure`, `calibrate` and `predict --sets`: what can be said of a new domain."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from command_line import run, run_json, run_ok
from skdare import DAREClassifier, DARERegressor, ERMClassifier, load
from skdare.datasets import make_latent_domains

pytestmark = pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")

DATA = make_latent_domains(5, 120, 5, shift=0.5, random_state=0)
NEW = DATA.domains == 4
KINDS = np.array(["ill", "well"])
CLASSES = KINDS[DATA.y]


@pytest.fixture(scope="module")
def rehearsed():
    X, y, domains = DATA.X[~NEW], CLASSES[~NEW], DATA.domains[~NEW]
    return DAREClassifier().fit(X, y, domains=domains).rehearse(X, y, domains=domains)


@pytest.fixture
def folder(rehearsed, tmp_path, monkeypatch) -> Path:
    """The current folder: a saved head, rows of a new domain, and labels of every third."""
    monkeypatch.chdir(tmp_path)
    rehearsed.save("head.safetensors")
    names = [f"p{i}" for i in range(NEW.sum())]
    np.savez("ward7.npz", X=DATA.X[NEW], patient=names)
    labelled = list(enumerate(CLASSES[NEW]))[::3]
    for path, ids in (("labelled.csv", range(NEW.sum())), ("named.csv", names)):
        lines = ["id,label", *(f"{ids[i]},{label}" for i, label in labelled)]
        Path(path).write_text("\n".join(lines))
    return tmp_path


def partly():
    return [label if i % 3 == 0 else None for i, label in enumerate(CLASSES[NEW])]


def test_labels_give_the_interval_that_python_gives(folder, rehearsed):
    interval = rehearsed.score_interval(DATA.X[NEW], partly())
    assert str(interval) in run_ok(
        "measure", "head.safetensors", "ward7.npz", "--labels", "labelled.csv"
    ).stdout.replace("\n", " ")
    found = run_json(
        *("measure", "head.safetensors", "ward7.npz", "--labels", "named.csv", "--id", "patient")
    )
    assert found["labelled"] == 40
    assert found["powered"]["low"] == pytest.approx(interval.powered.low)


def test_without_labels_it_is_the_bound(folder, rehearsed):
    least = rehearsed.bound(DATA.X[NEW], confidence=0.9).least
    found = run_json("measure", "head.safetensors", "ward7.npz", "--confidence", "0.9")
    assert found["least"] == pytest.approx(least)


def test_a_calibrated_head_is_the_one_that_python_makes(folder, rehearsed):
    run_ok("calibrate", "head.safetensors", "--out", "calm.safetensors")
    assert load("calm.safetensors").temperature_ == pytest.approx(
        rehearsed.calibrate().temperature_
    )
    labels = ("--labels", "labelled.csv")
    result = run_ok(
        "calibrate", "head.safetensors", "ward7.npz", *labels, "--out", "ward7.safetensors"
    )
    assert "temperature" in result.stdout
    expected = rehearsed.calibrate(DATA.X[NEW], partly())
    np.testing.assert_allclose(load("ward7.safetensors").coef_, expected.coef_)


def test_sets_of_classes_stand_beside_predictions(folder, rehearsed):
    run_ok("predict", "head.safetensors", "ward7.npz", "--sets", "0.9", "--out", "p.csv")
    with Path("p.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    included = rehearsed.predict_set(DATA.X[NEW], coverage=0.9)
    assert [row["set"] for row in rows] == ["|".join(KINDS[one]) for one in included]
    assert {row["set"] for row in rows} >= {"ill|well", "ill"}


def test_headings_of_labels_may_be_capitals(folder):
    Path("capitals.csv").write_text(
        Path("labelled.csv").read_text().replace("id,label", "ID,Label")
    )
    found = run_json("measure", "head.safetensors", "ward7.npz", "--labels", "capitals.csv")
    assert found["labelled"] == 40


def test_a_class_that_the_head_does_not_know_is_a_miss(folder):
    text = Path("labelled.csv").read_text()
    Path("odd.csv").write_text(text.replace("ill", "dead"))
    some = run_json("measure", "head.safetensors", "ward7.npz", "--labels", "odd.csv")
    right = [
        predicted == label == "well"
        for predicted, label in zip(
            load("head.safetensors").predict(DATA.X[NEW]), partly(), strict=True
        )
        if label is not None
    ]
    assert some["score"] == pytest.approx(np.mean(right))
    result = run("measure", "head.safetensors", "ward7.npz", "--labels", "odd.csv")
    assert "count as wrong" in result.stderr.replace("\n", " ")


def test_a_cell_that_says_none_is_no_label(folder):
    Path("none.csv").write_text(Path("labelled.csv").read_text() + "\n1,-1\n2,NaN\n4,None")
    found = run_json("measure", "head.safetensors", "ward7.npz", "--labels", "none.csv")
    assert found["labelled"] == 40


def test_rows_that_were_suggested_are_told_not_to_be_random(folder):
    lines = Path("labelled.csv").read_text().splitlines()
    rows = ["id,prediction,label", *(line.replace(",", ",ill,") for line in lines[1:])]
    Path("suggested.csv").write_text("\n".join(rows))
    result = run_ok("measure", "head.safetensors", "ward7.npz", "--labels", "suggested.csv")
    assert "not a random sample" in result.stderr


def test_a_label_of_two_rows_is_refused(folder):
    np.savez("twice.npz", X=DATA.X[NEW], patient=["p0", "p0", *map(str, range(2, NEW.sum()))])
    labels = ("--labels", "named.csv", "--id", "patient")
    result = run("measure", "head.safetensors", "twice.npz", *labels)
    assert result.exit_code == 2
    assert "two of the rows are called 'p0'" in result.stderr


def test_classes_that_cannot_be_told_apart_in_a_set_are_refused(folder):
    X, domains = DATA.X[~NEW], DATA.domains[~NEW]
    names = np.array(["a|b", "c"])[DATA.y[~NEW]]
    head = DAREClassifier().fit(X, names, domains=domains).rehearse(X, names, domains=domains)
    head.save("bars.safetensors")
    result = run("predict", "bars.safetensors", "ward7.npz", "--sets", "0.9")
    assert result.exit_code == 2
    assert "class 'a|b' has one" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("measure fresh.safetensors ward7.npz", "skdare fit --rehearse"),
        ("measure head.safetensors ward7.npz --id patient", "--id is for --labels"),
        ("measure plain.safetensors ward7.npz", "ERMClassifier, which cannot be measured"),
        ("measure numbers.safetensors ward7.npz", "DARERegressor, which cannot be measured"),
        ("calibrate fresh.safetensors --out x.safetensors", "give ROWS and --labels"),
        ("calibrate head.safetensors ward7.npz --out x.safetensors", "no --labels"),
        ("calibrate head.safetensors --labels labelled.csv --out x.safetensors", "no ROWS"),
        ("calibrate head.safetensors --out head.safetensors", "head.safetensors"),
        ("calibrate head.safetensors --id patient --out x.safetensors", "--id is for --labels"),
        ("predict fresh.safetensors ward7.npz --sets 0.9 --out x.csv", "skdare fit --rehearse"),
        ("predict numbers.safetensors ward7.npz --sets 0.9 --out x.csv", "--sets is for classes"),
        ("predict plain.safetensors ward7.npz --sets 0.9 --out x.csv", "cannot be asked for sets"),
    ],
)
def test_mistakes_exit_with_two_say_what_to_do_and_write_nothing(folder, arguments, message):
    X, y, domains = DATA.X[~NEW], CLASSES[~NEW], DATA.domains[~NEW]
    DAREClassifier().fit(X, y, domains=domains).save("fresh.safetensors")
    DARERegressor().fit(X, X[:, 0], domains=domains).save("numbers.safetensors")
    ERMClassifier().fit(X, y).save("plain.safetensors")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = run(*arguments.split())
    assert result.exit_code == 2
    assert message in result.stderr.replace("\n", " ")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_what_is_printed_as_json_says_what_the_text_says(folder):
    text = run_ok("measure", "head.safetensors", "ward7.npz").stdout
    found = json.loads(run_ok("measure", "head.safetensors", "ward7.npz", "--json").stdout)
    assert f"{100 * found['by_confidence']:.0f}" in text
