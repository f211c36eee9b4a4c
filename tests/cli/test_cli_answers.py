"""Answers of the commands: text and JSON, what to type next, and what is written."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

import skdare
from commands import ROLES, answer, run, snapshot, text, typed
from made_heads import EXPORTS


def test_each_command_that_is_printed_runs_as_printed(folder):
    """From a table to predictions, and at no point does a user have to make a command up."""
    for name in ("table.safetensors", "new.adapted.safetensors"):
        (folder / name).unlink()
    waiting = [["check", "table.csv", *ROLES]]
    ran = []
    while waiting:
        words = waiting.pop()
        done = run(*words, "--json", folder=folder)
        assert done.code == 0, (words, done.err)
        ran.append(words[0])
        following = json.loads(done.out)["next"]
        waiting += [typed(command, NEW="new.csv") for command in reversed(following)]
        if len(ran) > 12:
            break
    assert {"check", "bench", "fit", "adapt", "predict", "report"} <= set(ran)
    assert (folder / "new.adapted.predictions.csv").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("check", "table.csv", *ROLES),
        ("fit", "table.csv", *ROLES),
        ("fit", "table.csv", *ROLES, "--head", "erm"),
        ("fit", "table.csv", *ROLES, "--head", "by-hand"),
        ("fit", "numbers.csv", "--target", "score", "--domains", "site"),
        ("predict", "table.safetensors", "new.csv"),
        ("predict", "table.safetensors", "labelled.csv"),
        ("diagnose", "table.safetensors", "new.csv"),
        ("diagnose", "table.safetensors", "new.csv", "--labels", "labels.csv"),
        ("diagnose", "table.safetensors", "labelled.csv", "--labels", "labelled.csv"),
        ("adapt", "table.safetensors", "new.csv"),
        ("adapt", "table.safetensors", "new.csv", "--labels", "labels.csv"),
        ("adapt", "table.safetensors", "new.csv", "--state", "new.stream"),
        ("inspect", "table.safetensors"),
        ("inspect", "new.adapted.safetensors"),
        ("export", "table.safetensors", "--format", "csv"),
        ("bench", "table.csv", *ROLES, "--heads", "erm,by-hand"),
    ],
    ids=" ".join,
)
def test_text_has_80_columns_and_no_colour_and_json_is_one_object(words, folder):
    if "--state" in words:
        text(*words, folder=folder)
    out = text(*words, folder=folder)
    # A name of a file is not broken, and lines that hold one may be longer.
    assert max(len(line) for line in out.splitlines() if "skdare" not in line) <= 80, out
    assert "\x1b" not in out
    assert isinstance(answer(*words, folder=folder)["next"], list)


def test_the_same_command_again_gives_the_same_answer_and_says_what_it_replaces(folder):
    for words in (
        ("fit", "table.csv", *ROLES, "--out", "again.safetensors"),
        ("adapt", "table.safetensors", "new.csv", "--out", "again.adapted.safetensors"),
        ("predict", "table.safetensors", "new.csv", "--out", "again.csv"),
        ("export", "table.safetensors", "--out", "again.weights.csv"),
    ):
        first, second = (text(*words, folder=folder) for _ in range(2))
        assert "replaced" not in first
        assert "replaced" in second
        assert first.split() == second.replace(", replaced", "").split()


# What is written


def test_fit_writes_the_head_that_python_fits(folder):
    table = pd.read_csv(folder / "table.csv")
    X = table[["a", "b", "c"]]
    head = skdare.DAREClassifierCV().fit(X, table["died"], domains=table["site"])
    saved = skdare.load(folder / "table.safetensors")
    assert np.array_equal(saved.coef_, head.coef_)


def test_parameters_are_set_as_in_python_or_in_words(folder):
    for given, expected in (
        ("strategies=standardize", ("standardize",)),
        ("strategies=erm,center", ("erm", "center")),
        ("strategies=['erm', 'center']", ["erm", "center"]),
        ("l2=0.01", (0.01,)),
        ("l2=0.01,0.1", (0.01, 0.1)),
        ("cv=2", 2),
    ):
        out = folder / "set.safetensors"
        text("fit", "table.csv", *ROLES, "--set", given, "--out", out, folder=folder)
        found = skdare.load(out).get_params()[given.partition("=")[0]]
        assert found == expected or list(found) == list(expected)


def test_a_head_without_domains_in_its_name_can_be_diagnosed(folder):
    """The unadapted baseline that a bench may recommend is no dead end."""
    fitted = answer("fit", "table.csv", *ROLES, "--head", "erm", "--out", "e.safetensors",
                    folder=folder)  # fmt: skip
    assert fitted["expected"]["expected"] > 0
    said = answer(*typed(fitted["next"][0], NEW="new.csv"), folder=folder)
    assert said["use"] == "unadapted"
    table = pd.read_csv(folder / "table.csv")
    l2 = skdare.load(folder / "e.safetensors").best_params_["l2"]
    erm = skdare.ERMClassifier(l2=l2, preparation="auto").fit(table[["a", "b", "c"]], table["died"])
    new = pd.read_csv(folder / "new.csv")[["a", "b", "c"]]
    ours = skdare.load(folder / "e.safetensors").predict(new)
    assert np.mean(ours == erm.predict(new)) > 0.98


def test_predictions_are_those_of_python_with_the_columns_that_are_no_features(folder):
    text("predict", "table.safetensors", "labelled.csv", folder=folder)
    found = pd.read_csv(folder / "labelled.predictions.csv")
    table = pd.read_csv(folder / "labelled.csv")
    head = skdare.load(folder / "table.safetensors")
    assert found.columns.tolist() == [
        "patient", "site", "died", "prediction", "probability_no", "probability_yes",
    ]  # fmt: skip
    assert (found["prediction"] == head.predict(table[["a", "b", "c"]])).all()
    P = head.predict_proba(table[["a", "b", "c"]])
    assert np.allclose(found[["probability_no", "probability_yes"]], P)


def test_predictions_of_an_adapted_head_have_a_name_of_their_own(folder):
    unadapted = answer("predict", "table.safetensors", "new.csv", folder=folder)
    adapted = answer("predict", "new.adapted.safetensors", "new.csv", folder=folder)
    assert unadapted["out"] == "new.predictions.csv"
    assert adapted["out"] == "new.adapted.predictions.csv"


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".jsonl", ".parquet"])
def test_predictions_are_the_same_in_every_format(folder, suffix):
    read = {
        ".tsv": lambda path: pd.read_csv(path, sep="\t"),
        ".jsonl": lambda path: pd.read_json(path, lines=True),
        ".parquet": pd.read_parquet,
    }.get(suffix, pd.read_csv)
    out = folder / f"p{suffix}"
    for _ in range(2):  # it knows its own files again, in every format
        text("predict", "table.safetensors", "new.csv", "--out", out, folder=folder)
    text("predict", "table.safetensors", "new.csv", folder=folder)
    pd.testing.assert_frame_equal(read(out), pd.read_csv(folder / "new.predictions.csv"))


def test_predictions_of_numbers_are_described_by_their_range_and_mean(folder):
    text("fit", "numbers.csv", "--target", "score", "--domains", "site", folder=folder)
    out = text("predict", "numbers.safetensors", "new.csv", folder=folder)
    y = pd.read_csv(folder / "new.predictions.csv")["prediction"]
    line = next(line for line in out.splitlines() if line.startswith("predicted"))
    assert line.split()[1:] == f"{y.min():.4g} to {y.max():.4g}, on average {y.mean():.4g}".split()


def test_predictions_are_scored_by_the_target_if_the_table_has_it(folder):
    table = pd.read_csv(folder / "labelled.csv")
    table.loc[:9, "died"] = None
    table.loc[10, "died"] = "perhaps"  # no class of the head: wrong
    table.to_csv(folder / "some.csv", index=False)
    said = answer("predict", "table.safetensors", "some.csv", folder=folder)
    predicted = skdare.load(folder / "table.safetensors").predict(table[["a", "b", "c"]])
    assert said["labelled"] == 70
    assert said["score"] == pytest.approx(np.mean(predicted[10:] == table["died"][10:]))


def test_classes_that_are_numbers_are_scored_however_they_are_written(folder):
    table = pd.read_csv(folder / "table.csv")
    table["died"] = (table["died"] == "yes") + 1
    table.to_csv(folder / "coded.csv", index=False)
    text("fit", "coded.csv", *ROLES, folder=folder)
    table["died"] = table["died"].astype(float)
    table.loc[0, "died"] = np.nan  # the column is floats now
    table.to_csv(folder / "floats.csv", index=False)
    assert answer("predict", "coded.safetensors", "floats.csv", folder=folder)["score"] > 0.4


def test_rows_come_from_stdin_and_go_to_stdout(folder):
    rows = (folder / "new.csv").read_text()
    done = run("predict", "table.safetensors", "-", "--out", "-", folder=folder, stdin=rows)
    assert done.code == 0
    text("predict", "table.safetensors", "new.csv", folder=folder)
    assert done.out == (folder / "new.predictions.csv").read_text()


def test_spreadsheet_safe_predictions_hold_no_formula(folder):
    table = pd.read_csv(folder / "new.csv")
    table["patient"] = ["=1+1", "+1", "-site", "@sum"] * 20
    table.to_csv(folder / "formulas.csv", index=False)
    words = ("predict", "table.safetensors", "formulas.csv", "--out", "-")
    done = run(*words, "--spreadsheet-safe", folder=folder)
    cells = [row[0] for row in csv.reader(io.StringIO(done.out))][1:]
    assert all(cell.startswith("'") for cell in cells)
    plain = run(*words, folder=folder)
    assert [f"'{row[0]}" for row in csv.reader(io.StringIO(plain.out))][1:] == cells


@pytest.mark.parametrize("kind", EXPORTS)
def test_an_export_predicts_as_the_head_does(kind, folder):
    if kind in ("torch", "onnx"):
        pytest.importorskip(kind)
    new = pd.read_csv(folder / "new.csv")[["a", "b", "c"]]
    expected = skdare.load(folder / "table.safetensors").decision_function(new)
    out = answer("export", "table.safetensors", "--format", kind, folder=folder)["out"]
    assert np.allclose(EXPORTS[kind](folder / out, new.to_numpy()), expected, atol=1e-4)


def test_inspect_shows_what_the_file_says(folder):
    said = answer("inspect", "table.safetensors", folder=folder)
    about = skdare.inspect_file(folder / "table.safetensors")
    assert {name: said[name] for name in about} == json.loads(json.dumps(about))


# Adapting and labels


def test_adapting_a_file_is_adapting_in_python(folder):
    new = pd.read_csv(folder / "new.csv")[["a", "b", "c"]]
    ours = skdare.load(folder / "new.adapted.safetensors")
    head = skdare.load(folder / "table.safetensors").adapt(new)
    assert np.array_equal(ours.coef_, head.coef_)


@pytest.mark.parametrize("form", ["ids", "rows", "semicolons", "spreadsheet", "inside"])
def test_labels_in_a_file_are_labels_in_python(form, folder):
    table = pd.read_csv(folder / "labelled.csv")
    some = table.iloc[::3][["patient", "died"]]
    labels = folder / "given.csv"
    file = "new.csv"
    if form == "ids":
        some.sample(frac=1.0, random_state=0).to_csv(labels, index=False)
    elif form == "rows":
        pd.DataFrame({"row": some.index + 1, "label": some["died"]}).to_csv(labels, index=False)
    elif form == "semicolons":
        some.to_csv(labels, index=False, sep=";")
    elif form == "spreadsheet":  # with a byte-order mark, apostrophes, and rows left empty
        both = table[["patient"]].merge(some, how="left")
        both["patient"] = "'" + both["patient"]
        both.to_csv(labels, index=False, encoding="utf-8-sig")
    else:
        table["died"] = table["died"].where(table.index % 3 == 0)
        table.to_csv(labels, index=False)
        file = "given.csv"
    words = ("adapt", "table.safetensors", file, "--labels", "given.csv", "--out", "l.safetensors")
    assert answer(*words, folder=folder)["labels"] == len(some)
    y = np.full(len(table), None, dtype=object)
    y[some.index] = some["died"]
    head = skdare.load(folder / "table.safetensors").adapt(table[["a", "b", "c"]], y)
    assert np.array_equal(skdare.load(folder / "l.safetensors").coef_, head.coef_)


def test_a_file_of_one_column_is_refused_by_its_name(folder):
    (folder / "one.csv").write_text("died\nyes\nno\n")
    done = run("diagnose", "table.safetensors", "new.csv", "--labels", "one.csv", folder=folder)
    assert done.code == 2
    assert "row" in done.err


def test_a_stream_goes_on_from_its_state(folder):
    rows = pd.read_csv(folder / "new.csv")
    for part in (0, 1):
        rows.iloc[40 * part : 40 * part + 40].to_csv(folder / f"part{part}.csv", index=False)
        words = ("--state", "new.stream", "--out", "streamed.safetensors")
        said = answer("adapt", "table.safetensors", f"part{part}.csv", *words, folder=folder)
    assert (said["rows"], said["rows_seen"]) == (40, 80)
    streamed = skdare.load(folder / "streamed.safetensors")
    assert np.allclose(streamed.coef_, skdare.load(folder / "new.adapted.safetensors").coef_)


def test_a_head_whose_adapting_was_declined_says_so_and_goes_on(folder):
    roles = ("--target", "score", "--domains", "site")
    text("fit", "numbers.csv", *roles, "--head", "erm", folder=folder)
    done = run("adapt", "numbers.safetensors", "new.csv", "--json", folder=folder)
    said = json.loads(done.out)
    assert said["declined"]
    assert "declined" in done.err
    assert typed(said["next"][0]) == ["predict", "numbers.safetensors", "new.csv"]
    predicted = answer("predict", said["out"], "new.csv", folder=folder)
    assert predicted["next"] == []
    assert run("diagnose", said["out"], "new.csv", folder=folder).code == 2


# Diagnosing


def test_a_diagnosis_is_the_one_of_python(folder):
    new = pd.read_csv(folder / "new.csv")[["a", "b", "c"]]
    diagnosis = skdare.load(folder / "table.safetensors").diagnose(new)
    said = answer("diagnose", "table.safetensors", "new.csv", folder=folder)
    expected = json.loads(json.dumps(diagnosis.to_dict()))
    assert {name: said[name] for name in expected} == expected
    assert typed(said["next"][0])[0] == {"adapted": "adapt", "unadapted": "predict"}[diagnosis.use]


@pytest.mark.parametrize("better", ["unadapted", "adapted"])
def test_measured_scores_come_first_and_decide(better, folder):
    """Labels that agree with one of both models, whatever was forecast."""
    names = {"unadapted": "table.safetensors", "adapted": "new.adapted.safetensors"}
    new = pd.read_csv(folder / "new.csv")
    predicted = {
        name: skdare.load(folder / file).predict(new[["a", "b", "c"]])
        for name, file in names.items()
    }
    assert np.mean(predicted["unadapted"] != predicted["adapted"]) > 0.05
    new[["patient"]].assign(died=predicted[better]).to_csv(folder / "told.csv", index=False)
    words = ("diagnose", "table.safetensors", "new.csv", "--labels", "told.csv")
    said = answer(*words, folder=folder)
    assert said["use"] == better
    assert said["measured"][better]["score"] == 1.0
    commands = [typed(command) for command in said["next"]]
    assert commands[0][0] == ("adapt" if better == "adapted" else "predict")
    assert any(words[-2:] == ["--labels", "told.csv"] for words in commands)
    lines = text(*words, folder=folder).splitlines()
    assert lines[0].endswith("80 labels.")
    assert lines[1].startswith("Measured: accuracy")
    assert any("Adapt to these rows" in line or "Use it unadapted" in line for line in lines[2:5])


def test_measured_intervals_hold_the_score(folder):
    said = answer("diagnose", "table.safetensors", "new.csv", "--labels", "labels.csv",
                  folder=folder)  # fmt: skip
    truth = pd.read_csv(folder / "labels.csv").merge(pd.read_csv(folder / "new.csv"))
    for name, file in (("unadapted", "table"), ("adapted", "new.adapted")):
        head = skdare.load(folder / f"{file}.safetensors")
        one = said["measured"][name]
        score = head.score(truth[["a", "b", "c"]], truth["died"])
        assert one["score"] == pytest.approx(score)
        assert one["low"] <= score <= one["high"]
        # A bootstrap of a share is its binomial interval, nearly.
        assert one["high"] - one["low"] == pytest.approx(
            2 * 1.96 * np.sqrt(score * (1 - score) / 40), abs=0.07
        )


def test_rows_that_do_not_look_like_one_new_domain_are_noted(folder):
    table = pd.read_csv(folder / "table.csv").drop(columns="died")
    table[table["site"] == "north"].to_csv(folder / "known.csv", index=False)
    table[table["site"].isin(["north", "south"])].to_csv(folder / "two.csv", index=False)
    diagnosed = {
        name: run("diagnose", "table.safetensors", f"{name}.csv", folder=folder).err
        for name in ("known", "two", "labelled")
    }
    assert "a training domain" in diagnosed["known"]
    assert "2 domains" in diagnosed["two"]
    assert "--labels labelled.csv" in diagnosed["labelled"]


# Options from a file


def test_options_from_a_file_are_overruled_by_what_is_typed(folder):
    (folder / "config.toml").write_text(
        'target = "died"\ndomains = "site"\n[bench]\nheads = ["erm"]\nheld_out = ["north"]\n'
    )
    config = ("--config", "config.toml")
    said = answer("bench", "table.csv", *config, "--out", "c.bench", folder=folder)
    assert said["trials"] == 1
    more = ("--held-out", "north,south", "--out", "d.bench")
    assert answer("bench", "table.csv", *config, *more, folder=folder)["trials"] == 2
    assert answer("check", "table.csv", *config, folder=folder)["summary"]


def test_quiet_says_nothing_on_stderr(folder):
    table = pd.read_csv(folder / "table.csv")
    table.loc[0, "site"] = "lonely"  # worth a note
    table.to_csv(folder / "lonely.csv", index=False)
    words = ("fit", "lonely.csv", *ROLES, "--out", "q.safetensors")
    assert run(*words, folder=folder).err.startswith("note: ")
    done = run(*words, "--quiet", folder=folder)
    assert (done.code, done.err) == (0, "")


def test_a_bench_prepares_rows_as_it_is_told_and_gives_that_on(folder):
    words = ("bench", "table.csv", *ROLES, "--heads", "erm")
    runs = {
        name: answer(*words, "--preparation", name, "--out", f"{name}.bench", folder=folder)
        for name in ("auto", "standardize")
    }
    assert "--preparation" not in runs["auto"]["next"][0]
    assert "--preparation standardize" in runs["standardize"]["next"][0]
    done = run(*words, "--preparation", "none", "--out", "auto.bench", folder=folder)
    assert done.code == 2
    assert "preparation" in done.err


def test_a_table_with_a_problem_is_an_answer_that_fails(folder):
    table = pd.read_csv(folder / "table.csv")
    table["copy"] = np.where(table["died"] == "yes", 1.0, 0.0)
    table.to_csv(folder / "leaks.csv", index=False)
    done = run("check", "leaks.csv", *ROLES, "--json", folder=folder)
    said = json.loads(done.out)
    levels = {finding["level"] for finding in said["findings"]}
    assert done.code == int("problem" in levels) == 1
    assert said["next"] == []


def test_a_domain_of_one_row_is_left_out_as_in_the_bench(folder):
    table = pd.read_csv(folder / "table.csv")
    table.loc[0, "site"] = "lonely"
    table.to_csv(folder / "lonely.csv", index=False)
    done = run("fit", "lonely.csv", *ROLES, "--json", folder=folder)
    assert done.code == 0
    assert "lonely" not in json.loads(done.out)["domains"]
    assert "lonely" in done.err


def test_nothing_but_what_is_named_is_written(folder):
    before = snapshot(folder)
    said = answer("fit", "table.csv", *ROLES, "--out", "x.safetensors", folder=folder)
    after = snapshot(folder)
    assert after.keys() - before.keys() == {folder / said["file"]}
    assert all(after[path] == before[path] for path in before)
