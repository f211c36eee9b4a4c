"""A mistake ends with exit code 2 and one `error:` line, before any work, and nothing is lost."""

from __future__ import annotations

import errno
import os
import shutil

import numpy as np
import pandas as pd
import pytest

from commands import ROLES, hospitals, run, snapshot, text

TABLE = ("table.csv", *ROLES)
HEAD = "head.safetensors"


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """Tables, heads, runs, options and labels, most of them wrong in one way."""
    folder = tmp_path_factory.mktemp("broken")
    table, new = hospitals(rows=30)
    n = len(table)

    def write(name, changed, **options):
        changed.to_csv(folder / name, index=False, **options)

    write("table.csv", table)
    write("new.csv", new.drop(columns=["died", "site"]))
    write("one.csv", table[table["site"] == "north"])
    write("two.csv", table[table["site"].isin(["north", "south"])])
    write("other.csv", table.rename(columns={"c": "weight"}))
    write("one_class.csv", table.assign(died="no"))
    write("no_rows.csv", table.iloc[:0])
    write("misspelt.csv", table.assign(c=["x"] + ["1.0"] * (n - 1)))
    write("infinite.csv", table.assign(a=np.where(np.arange(n) == 7, np.inf, table["a"])))
    write("unlabelled.csv", table.assign(died=table["died"].where(np.arange(n) != 7)))
    write("one_row.csv", new.drop(columns=["died", "site"]).iloc[:1])
    write("latin.csv", table.assign(site=table["site"] + "é"), encoding="latin-1")
    write("changed.csv", table.assign(a=table["a"] + 1.0))
    (folder / "ragged.csv").write_text("a,b,site,died\n1,2,x,y\n3,4,z\n")
    (folder / "empty.csv").write_text("")
    (folder / "doubled.csv").write_text("a,a,site,died\n1,2,x,y\n")
    (folder / "broken.parquet").write_bytes(b"PAR1 and no more")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "noise.safetensors").write_bytes(os.urandom(4000))
    (folder / "notes.txt").write_text("no table")
    (folder / "folder").mkdir()
    (folder / "wrong.toml").write_text('tagret = "died"\n')
    (folder / "command.toml").write_text("[bnech]\nrepeats = 2\n")
    (folder / "no.toml").write_text("target = ")
    (folder / "labels.csv").write_text("row,label\n1,yes\n999,no\n")
    (folder / "odd_labels.csv").write_text("row,label\n1,perhaps\n")
    (folder / "no_labels.csv").write_text("row,label\n1,\n")
    (folder / "twice.csv").write_text("row,label\n1,yes\n1,no\n")
    (folder / "other_ids.csv").write_text("name,label\nx,yes\n")
    text("fit", *TABLE, "--out", HEAD, folder=folder)
    text("fit", *TABLE, "--out", "small.safetensors", "--no-adaptable", folder=folder)
    text("fit", *TABLE, "--out", "quick.safetensors", "--no-rehearse", folder=folder)
    text("fit", *TABLE, "--out", "irm.safetensors", "--head", "irm", folder=folder)
    text("adapt", HEAD, "new.csv", "--state", "new.stream", "--out", "a.safetensors", folder=folder)
    text("bench", *TABLE, "--heads", "erm", folder=folder)
    shutil.copytree(folder / "table.bench", folder / "changed.bench")
    return folder


# What is typed, and what the message must name: what was given, or what to give instead.
MISTAKES = {
    "misspelt command": (("fti", "table.csv"), "fit"),
    "no file": (("fit",), "FILE"),
    "missing file": (("fit", "absent.csv", *ROLES), "absent.csv"),
    "a folder": (("fit", "folder", *ROLES), "folder"),
    "an empty file": (("check", "empty.csv", *ROLES), "empty.csv"),
    "no rows": (("fit", "no_rows.csv", *ROLES), "row"),
    "Latin-1": (("fit", "latin.csv", *ROLES), "UTF-8"),
    "a ragged row": (("fit", "ragged.csv", *ROLES), "ragged.csv"),
    "two columns of one name": (("check", "doubled.csv", *ROLES), "'a'"),
    "a picture": (("check", "picture.png", *ROLES), "picture.png"),
    "text": (("check", "notes.txt", *ROLES), "notes.txt"),
    "damaged parquet": (("check", "broken.parquet", *ROLES), "broken.parquet"),
    "misspelt target": (("fit", "table.csv", "--target", "deid", "--domains", "site"), "died"),
    "wrong case": (("fit", "table.csv", "--target", "Died", "--domains", "site"), "'died'"),
    "misspelt domains": (("bench", "table.csv", "--target", "died", "--domains", "sit"), "site"),
    "no target": (("fit", "table.csv"), "--target"),
    "misspelt drop": (("fit", *TABLE, "--drop", "zz"), "zz"),
    "misspelt option": (("fit", "table.csv", "--traget", "died"), "--target"),
    "unknown task": (("fit", *TABLE, "--task", "classifying"), "classif"),
    "misspelt head": (("fit", *TABLE, "--head", "drae"), "dare"),
    "misspelt parameter": (("fit", *TABLE, "--set", "shrinkge=0.5"), "'shrinkage'"),
    "parameter without value": (("fit", *TABLE, "--set", "shrinkage"), "="),
    "impossible parameter": (("fit", *TABLE, "--set", "max_iter=0"), "max_iter"),
    "misspelt strategy": (("fit", *TABLE, "--set", "strategies=centre"), "center"),
    "misspelt metric": (("fit", *TABLE, "--metric", "acuracy"), "'accuracy'"),
    "metric for no choice": (
        ("fit", *TABLE, "--head", "dare", "--metric", "f1_macro"), "--head dare-cv",
    ),
    "regression of text": (("fit", *TABLE, "--task", "regression"), "'died'"),
    "head of the other task": (("fit", *TABLE, "--head", "anchor"), "regression"),
    "an id as target": (
        ("fit", "table.csv", "--target", "patient", "--domains", "site"), "id",
    ),
    "an id as target in bench": (
        ("bench", "table.csv", "--target", "patient", "--domains", "site"), "id",
    ),
    "a misspelt number": (("fit", "misspelt.csv", *ROLES), "'c'"),
    "infinity": (("fit", "infinite.csv", *ROLES), "'a'"),
    "a row without label": (("fit", "unlabelled.csv", *ROLES), "--missing"),
    "one class": (("fit", "one_class.csv", *ROLES), "no"),
    "one domain": (("fit", "one.csv", *ROLES), "--head erm"),
    "two domains in a bench": (("bench", "two.csv", *ROLES), "three"),
    "misspelt head in a bench": (("bench", *TABLE, "--heads", "erm,drae"), "'dare'"),
    "misspelt domain": (("bench", *TABLE, "--held-out", "nort"), "'north'"),
    "misspelt metric in a bench": (("bench", *TABLE, "--metric", "f1"), "f1_macro"),
    "not a number": (("bench", *TABLE, "--repeats", "two"), "two"),
    "too few repeats": (("bench", *TABLE, "--repeats", "0"), "repeats"),
    "another table in a run": (("bench", "changed.csv", *ROLES), "changed.bench"),
    "a run over a table": (("bench", *TABLE, "--out", "table.csv"), "table.csv"),
    "a run in a folder of others": (("bench", *TABLE, "--out", "."), "other files"),
    "another metric in a run": (
        ("bench", *TABLE, "--heads", "erm", "--metric", "roc_auc"), "metric",
    ),
    "no folder to write to": (("fit", *TABLE, "--out", "nowhere/x.safetensors"), "nowhere"),
    "a folder in the way": (("fit", *TABLE, "--out", "folder"), ".safetensors"),
    "a head without its ending": (("fit", *TABLE, "--out", "head"), "head.safetensors"),
    "over what is read": (("fit", *TABLE, "--out", "table.csv"), ".safetensors"),
    "over a file of others": (("fit", *TABLE, "--out", "noise.safetensors"), "noise"),
    "over a stream": (
        ("predict", HEAD, "new.csv", "--out", "new.stream"), "new.stream",
    ),
    "no config": (("fit", "table.csv", "--config", "absent.toml"), "absent.toml"),
    "no TOML": (("fit", "table.csv", "--config", "no.toml"), "no.toml"),
    "misspelt option in a config": (("fit", "table.csv", "--config", "wrong.toml"), "'target'"),
    "misspelt command in a config": (("bench", *TABLE, "--config", "command.toml"), "'bench'"),
    "no head": (("predict", "absent.safetensors", "new.csv"), "absent.safetensors"),
    "arguments swapped": (("predict", "new.csv", HEAD), "the head first"),
    "a head of noise": (("predict", "noise.safetensors", "new.csv"), "noise.safetensors"),
    "a stream as a head": (("predict", "new.stream", "new.csv"), "new.stream"),
    "no rows to predict": (("predict", HEAD), "FILE"),
    "rows of other columns": (("predict", HEAD, "other.csv"), "'c'"),
    "predictions over the rows": (("predict", HEAD, "new.csv", "--out", "new.csv"), "new.csv"),
    "predictions over the training table": (
        ("predict", HEAD, "new.csv", "--out", "table.csv"), "table.csv",
    ),
    "predictions of no format": (("predict", HEAD, "new.csv", "--out", "x.pdf"), ".csv"),
    "adapting to other columns": (("adapt", HEAD, "other.csv"), "'c'"),
    "adapting to one row": (("adapt", HEAD, "one_row.csv"), "row"),
    "adapting an adapted head": (("adapt", "a.safetensors", "new.csv"), "a.safetensors"),
    "adapting what only predicts": (("adapt", "small.safetensors", "new.csv"), "--no-adaptable"),
    "adapting what knows no domains": (("adapt", "irm.safetensors", "new.csv"), "dare-cv"),
    "diagnosing what was not rehearsed": (
        ("diagnose", "quick.safetensors", "new.csv"), "--no-rehearse",
    ),
    "labels of rows that are not there": (
        ("adapt", HEAD, "new.csv", "--labels", "labels.csv"), "999",
    ),
    "labels of no class": (("adapt", HEAD, "new.csv", "--labels", "odd_labels.csv"), "perhaps"),
    "two labels of one row": (("adapt", HEAD, "new.csv", "--labels", "twice.csv"), "two labels"),
    "labels of no row": (("adapt", HEAD, "new.csv", "--labels", "other_ids.csv"), "row"),
    "no label": (("diagnose", HEAD, "new.csv", "--labels", "no_labels.csv"), "no label"),
    "no file of labels": (("diagnose", HEAD, "new.csv", "--labels", "absent.csv"), "absent.csv"),
    "no such id": (
        ("diagnose", HEAD, "new.csv", "--labels", "labels.csv", "--id", "rwo"), "'row'",
    ),
    "a state that is none": (("adapt", HEAD, "new.csv", "--state", "notes.txt"), "notes.txt"),
    "a state that is the head": (
        ("adapt", HEAD, "new.csv", "--state", HEAD), "give another name with --state",
    ),
    "a state in the place of the output": (
        ("adapt", HEAD, "new.csv", "--state", "both.safetensors", "--out", "./both.safetensors"),
        "--out and --state",
    ),
    "a state with other options": (
        ("adapt", HEAD, "new.csv", "--state", "new.stream", "--force"), "'force'",
    ),
    "an unknown format": (("export", HEAD, "--out", "head.xyz"), ".onnx"),
    "an export over a table": (("export", HEAD, "--out", "table.csv"), "table.csv"),
    "inspecting a table": (("inspect", "table.csv"), "table.csv"),
    "a run that is none": (("report", "folder"), "folder"),
    "no run": (("report", "absent.bench"), "absent.bench"),
    "a page over notes": (("report", "table.bench", "--out", "notes.txt"), ".html"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_ends_with_one_line_that_helps_and_changes_nothing(case, broken):
    words, named = MISTAKES[case]
    before = snapshot(broken)
    done = run(*words, folder=broken)
    assert done.code == 2, done.out + done.err
    assert len(done.errors) == 1, done.err
    assert named in done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    # Options are written as they are typed: no arguments as in Python.
    hints = [line for line in done.err.splitlines() if line.startswith(("error: ", "hint: "))]
    assert not any(f" {name}=" in line for line in hints for name in ("target", "domains", "drop"))
    assert snapshot(broken) == before


def test_every_command_refuses_before_it_reads_rows(broken, monkeypatch):
    """The place to write to is looked at first: an hour of work must not end in a refusal."""

    def read(*_, **__):
        raise AssertionError("rows were read")

    monkeypatch.setattr("skdare.data.read", read)
    monkeypatch.setattr("skdare.data.stream", read)
    for words in (
        ("fit", *TABLE, "--out", "nowhere/x.safetensors"),
        ("predict", HEAD, "new.csv", "--out", "nowhere/x.csv"),
        ("adapt", HEAD, "new.csv", "--out", "nowhere/x.safetensors"),
        ("adapt", HEAD, "new.csv", "--labels", "odd_labels.csv"),
    ):
        assert run(*words, folder=broken).code == 2


def test_the_advice_for_a_table_of_one_domain_can_be_followed(broken, tmp_path):
    said = text(
        "fit",
        "one.csv",
        *ROLES,
        "--head",
        "erm",
        "--out",
        tmp_path / "x.safetensors",
        folder=broken,
    )
    assert "wrote" in said


def test_a_table_is_not_taken_for_weights_by_its_first_column(broken):
    (broken / "importance.csv").write_text("feature,score\nage,1\n")
    before = snapshot(broken)
    done = run("export", HEAD, "--format", "csv", "--out", "importance.csv", folder=broken)
    assert (done.code, len(done.errors)) == (2, 1)
    assert snapshot(broken) == before
    text("export", HEAD, "--format", "csv", "--out", "w.csv", folder=broken)
    assert "replaced" in text("export", HEAD, "--format", "csv", "--out", "w.csv", folder=broken)


def test_the_hint_about_a_folder_that_cannot_be_made_names_the_option(broken):
    done = run("bench", *TABLE, "--out", "notes.txt", folder=broken)
    assert "give another --out" in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused_by_its_name(broken, tmp_path):
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o500)
    done = run("fit", *TABLE, "--out", shut / "x.safetensors", folder=broken)
    assert done.code == 2
    assert "shut" in done.err
    assert ".partial" not in done.err


def test_a_folder_without_permission_is_refused_by_its_name(broken, monkeypatch):
    monkeypatch.setattr("skdare.cli.outputs.os.access", lambda *_: False)
    done = run("fit", *TABLE, "--out", "x.safetensors", folder=broken)
    assert (done.code, done.errors) == (2, ["error: 'x.safetensors' cannot be written"])


def test_a_locked_run_is_refused(broken):
    from filelock import FileLock

    with FileLock(broken / "table.bench" / ".lock"):
        done = run("bench", *TABLE, "--heads", "erm", folder=broken)
    assert done.code == 2
    assert "another process" in done.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "x"), 1),
        (MemoryError(), 1),
        (OSError(errno.EACCES, "Permission denied", "x"), 2),
        (ModuleNotFoundError("no", name="onnx.helper"), 2),
    ],
    ids=lambda value: str(value),
)
def test_failures_of_the_machine_are_no_mistakes(error, code, broken, monkeypatch):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr("skdare.heads.head_file.load", fails)
    before = snapshot(broken)
    done = run("predict", HEAD, "new.csv", folder=broken)
    assert (done.code, len(done.errors)) == (code, 1)
    assert snapshot(broken) == before


def test_a_failed_prediction_leaves_the_old_file(broken):
    text("predict", HEAD, "new.csv", "--out", "old.csv", folder=broken)
    before = (broken / "old.csv").read_bytes()
    rows = pd.read_csv(broken / "new.csv")
    rows["c"] = ["x", *rows["c"].astype(str)[1:]]
    rows.to_csv(broken / "bad.csv", index=False)
    assert run("predict", HEAD, "bad.csv", "--out", "old.csv", folder=broken).code == 2
    assert (broken / "old.csv").read_bytes() == before


@pytest.mark.parametrize("kind", ["onnx", "torch", "csv"])
def test_an_export_knows_its_own_files_and_no_others(kind, broken, tmp_path):
    if kind in ("onnx", "torch"):
        pytest.importorskip(kind, reason=f"{kind} is not installed")
    ending = {"onnx": ".onnx", "torch": ".pt", "csv": ".csv"}[kind]
    out = tmp_path / f"x{ending}"
    text("export", HEAD, "--out", out, folder=broken)
    text("export", HEAD, "--out", out, folder=broken)
    out.write_bytes(b"something of mine")
    assert run("export", HEAD, "--out", out, folder=broken).code == 2
    assert out.read_bytes() == b"something of mine"


def test_a_bug_is_not_taken_for_a_mistake(broken, monkeypatch):
    def fails(*_, **__):
        raise ValueError("a bug")

    monkeypatch.setattr("skdare.heads.head_file.load", fails)
    with pytest.raises(ValueError, match="a bug"):
        run("predict", HEAD, "new.csv", folder=broken)
