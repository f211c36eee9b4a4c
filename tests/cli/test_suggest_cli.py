"""`skdare suggest`: the rows to label, as a table to fill in."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from command_line import run, run_ok
from skdare import DAREClassifier, ERMClassifier, load
from skdare.datasets import make_latent_domains

pytestmark = pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")


@pytest.fixture(scope="module")
def parts():
    """Training rows, and the rows and classes of a new domain."""
    data = make_latent_domains(4, 100, 5, shift=0.5, random_state=0)
    new = data.domains == 3
    illness = np.array(["ill", "well"])[data.y]
    return data.X[~new], illness[~new], data.domains[~new], data.X[new], illness[new]


@pytest.fixture
def folder(parts, tmp_path, monkeypatch) -> Path:
    """The current folder, with a saved head and rows of a new domain."""
    monkeypatch.chdir(tmp_path)
    X, y, domains, new, _ = parts
    DAREClassifier().fit(X, y, domains=domains).save("head.safetensors")
    names = [f"=p{i}" for i in range(len(new))]
    np.savez("ward7.npz", X=new, patient=names)
    return tmp_path


def rows_in(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_table_has_the_rows_that_python_suggests_with_labels_to_fill_in(folder, parts):
    new = parts[3]
    result = run_ok("suggest", "head.safetensors", "ward7.npz", "-n", "8", "--out", "to_label.csv")
    assert "wrote to_label.csv: 8 rows to label" in result.stderr
    head = load("head.safetensors")
    expected = head.suggest(new, 8)
    rows = rows_in("to_label.csv")
    assert [list(row) for row in rows] == [["id", "prediction", "label"]] * 8
    assert [int(row["id"]) for row in rows] == expected.tolist()
    assert [row["prediction"] for row in rows] == head.predict(new[expected]).tolist()
    assert {row["label"] for row in rows} == {""}


def test_rows_are_named_by_a_column_which_a_spreadsheet_does_not_run(folder, parts):
    arguments = ("suggest", "head.safetensors", "ward7.npz", "-n", "3", "--id", "patient")
    first = load("head.safetensors").suggest(parts[3], 3)[0]
    run_ok(*arguments, "--out", "plain.csv")
    assert rows_in("plain.csv")[0]["id"] == f"=p{first}"
    run_ok(*arguments, "--out", "safe.csv", "--spreadsheet-safe", "--quiet")
    assert rows_in("safe.csv")[0]["id"] == f"'=p{first}"


def test_json_lines_go_to_the_standard_output(folder):
    result = run_ok("suggest", "head.safetensors", "ward7.npz", "-n", "4", "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(lines) == 4
    assert [list(line) for line in lines] == [["id", "prediction", "label"]] * 4
    assert lines[0]["label"] is None


def test_several_files_are_one_domain(folder, parts):
    new = parts[3]
    np.save("a.npy", new[:40])
    np.save("b.npy", new[40:])
    run_ok("suggest", "head.safetensors", "a.npy", "b.npy", "-n", "9", "--out", "both.csv")
    run_ok("suggest", "head.safetensors", "ward7.npz", "-n", "9", "--out", "one.csv")
    assert Path("both.csv").read_text() == Path("one.csv").read_text()


def test_rows_that_have_a_label_in_the_table_are_not_suggested_again(folder, parts):
    _, _, _, new, y = parts
    head = load("head.safetensors")
    first = head.suggest(new, 5).tolist()
    with Path("some.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"f{i}" for i in range(new.shape[1])), "illness"])
        for row, values in enumerate(new):
            writer.writerow([*values, y[row] if row in first else ""])
    run_ok(
        *("suggest", "head.safetensors", "some.csv", "-n", "6"),
        *("--feature-key", "f*", "--target", "illness", "--out", "next.csv"),
    )
    labels = [label if row in first else None for row, label in enumerate(y)]
    expected = head.suggest(new, 6, labels).tolist()
    assert [int(row["id"]) for row in rows_in("next.csv")] == expected
    assert not set(expected) & set(first)


MISTAKES = [
    (["ward7.npz", "-n", "0"], "0 is not in the range x>=1"),
    (["ward7.npz", "-n", "101"], "-n is 101, and there are 100 rows"),
    (["ward7.npz"], "missing option '-n'"),
    (["narrow.npy", "-n", "3"], "narrow.npy has 3 features"),
    (["alike.npy", "-n", "3"], "all the same, as from a stuck sensor"),
    (["ward7.npz", "-n", "3", "--out", "ward7.npz"], "would replace a file that is read"),
    (["ward7.npz", "-n", "3", "--out", "none/x.csv"], "cannot be written"),
    (["ward7.npz", "-n", "3", "--out", "x.csv", "--json"], "--json writes to stdout"),
    (["ward7.npz", "-n", "3", "--json", "--spreadsheet-safe"], "--spreadsheet-safe is for CSV"),
    (["ward7.npz", "-n", "3", "--id", "name"], "no 'name' for id"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), MISTAKES, ids=[" ".join(arguments) for arguments, _ in MISTAKES]
)
def test_mistakes_exit_with_two_say_what_to_do_and_write_nothing(folder, arguments, message):
    new = np.load("ward7.npz")["X"]
    np.save("narrow.npy", new[:, :3])
    np.save("alike.npy", np.repeat(new[:1], 9, axis=0))
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    result = run("suggest", "head.safetensors", *arguments)
    assert result.exit_code == 2, result.stderr
    assert message in result.stderr
    assert result.stdout == ""
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_head_that_knows_no_domains_is_refused(folder, parts):
    X, y = parts[:2]
    ERMClassifier().fit(X, y).save("erm.safetensors")
    result = run("suggest", "erm.safetensors", "ward7.npz", "-n", "3")
    assert result.exit_code == 2
    assert "ERMClassifier, which cannot suggest rows" in result.stderr


def test_a_table_that_was_filled_in_is_not_replaced(folder):
    Path("to_label.csv").write_text("id,prediction,label\n3,ill,well\n")
    result = run("suggest", "head.safetensors", "ward7.npz", "-n", "8", "--out", "to_label.csv")
    assert result.exit_code == 2
    assert "to_label.csv has labels already" in result.stderr
    assert rows_in("to_label.csv")[0]["label"] == "well"


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_table_that_a_spreadsheet_saved_is_taken(folder, parts, separator):
    arguments = ("--id", "patient", "--spreadsheet-safe", "--out", "to_label.csv")
    run_ok("suggest", "head.safetensors", "ward7.npz", "-n", "20", *arguments)
    lines = ["id;label".replace(";", separator)]
    for row in rows_in("to_label.csv"):
        assert row["id"].startswith("'=")
        lines.append(f"{row['id']}{separator}{parts[4][int(row['id'][3:])]}")
    Path("labelled.csv").write_text("\n".join(lines))
    taken = ("--labels", "labelled.csv", "--id", "patient", "--out", "w.safetensors")
    run_ok("adapt", "head.safetensors", "ward7.npz", *taken)
    assert load("w.safetensors").labelled_rows_ == 20


def test_a_stream_may_meet_a_new_class_later_and_be_given_its_own_options_again(folder, parts):
    labels = ["dead", *parts[4][1:40]]
    lines = ["id,label", *(f"{i},{label}" for i, label in enumerate(labels))]
    Path("labels.csv").write_text("\n".join(lines))
    adapt = ("adapt", "head.safetensors", "ward7.npz", "--state", "s.stream", "--prior-rows", "5")
    run_ok(*adapt)
    result = run_ok(*adapt, "--labels", "labels.csv", "--new-classes", "--out", "w.safetensors")
    assert "new classes: 'dead' (1 label)" in result.stderr
    run_ok(*adapt, "--out", "again.safetensors")
    for path in ("w.safetensors", "again.safetensors"):
        assert load(path).classes_.tolist() == ["dead", "ill", "well"]
    refused = run("adapt", "w.safetensors", "ward7.npz", "--out", "x.safetensors")
    assert "use the head that it was adapted from" in refused.stderr
    assert "it only predicts" in run_ok("inspect", "w.safetensors").stdout


def test_labels_of_new_classes_are_taken_where_that_is_asked_for(folder, parts):
    labels = ["dead", *parts[4][1:40]]
    lines = ["id,label", *(f"{i},{label}" for i, label in enumerate(labels))]
    Path("labels.csv").write_text("\n".join(lines))
    adapt = ("adapt", "head.safetensors", "ward7.npz", "--labels", "labels.csv")
    refused = run(*adapt, "--out", "ward7.safetensors")
    assert refused.exit_code == 2
    assert "the label 'dead'" in refused.stderr
    assert "--new-classes" in refused.stderr
    assert not Path("ward7.safetensors").exists()
    run_ok(*adapt, "--out", "ward7.safetensors", "--new-classes")
    assert load("ward7.safetensors").classes_.tolist() == ["dead", "ill", "well"]
