"""`skdare fit`, `predict`, `adapt`, `export` and `inspect`: files in, files out."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import skdare
from command_line import run, run_json, run_ok
from heads_alike import assert_same_head
from interrupts import PATIENCE, start
from skdare import DAREClassifier, DAREClassifierCV, DARERegressor
from skdare.datasets import DomainData, make_latent_domains, write, write_store
from skdare.persist import locked

# Python's own calls here give arrays to heads that know the names of columns.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
NAMES = [f"f{i}" for i in range(5)]


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def data() -> DomainData:
    found = make_latent_domains(5, 120, 5, shift=0.5, random_state=0)
    sites = np.array(["east", "north", "south", "ward7", "west"])[found.domains]
    illness = np.array(["ill", "well"])[found.y]
    return DomainData(found.X, illness, sites, feature_names=NAMES)


@pytest.fixture(scope="module")
def parts(data):
    """Training rows, and rows of the new domain."""
    new = data.domains == "ward7"

    def some(rows):
        return DomainData(data.X[rows], data.y[rows], data.domains[rows], feature_names=NAMES)

    return some(~new), some(new)


def write_folder(train: DomainData, new: DomainData) -> None:
    """Training rows, new rows, and a saved head."""
    write("features.npz", train)
    write("features.csv", train)
    np.savez("ward7.npz", X=new.X, patient=[f"p{i}" for i in range(len(new.X))])
    head = DAREClassifier().fit(train.X, train.y, domains=train.domains)
    head.feature_names_in_ = np.array(NAMES, dtype=object)
    head.save("head.safetensors")


@pytest.fixture
def folder(parts, tmp_path, monkeypatch) -> Path:
    """The current folder, with training rows, new rows, and a saved head."""
    monkeypatch.chdir(tmp_path)
    write_folder(*parts)
    return tmp_path


# -- fit ------------------------------------------------------------------------------------------


FILES = ["t.npz", "t.csv", "t.csv.gz", "t.parquet"]
FORMS = [*FILES, "store", "shards", "X.npy"]


def write_training_rows(name: str, train: DomainData) -> tuple[str, ...]:
    """Write the rows in one of the forms; the arguments of `fit` that name them."""
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    if name == "shards":
        write_store(name, train, rows_per_shard=50)
    elif name == "X.npy":
        for array in ("X", "y", "domains"):
            np.save(f"{array}.npy", getattr(train, array))
        return "X.npy", "--target", "y.npy", "--domains", "domains.npy"
    else:
        write(name, train)
    return (name,)


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_file_fits_the_head_that_python_fits(folder, parts, form):
    train, new = parts
    run_ok("fit", *write_training_rows(form, train), "--out", "fitted.safetensors")
    head = skdare.load("fitted.safetensors")
    expected = DAREClassifierCV().fit(train.X, train.y, domains=train.domains)
    assert head.predict(new.X).tolist() == expected.predict(new.X).tolist()
    assert_same_head(head, expected, rtol=1e-7)


@pytest.mark.parametrize("form", FORMS)
def test_a_preparation_is_saved_with_the_head_and_is_the_same_from_disk(folder, parts, form):
    train, new = parts
    options = ("--standardize", "--clip", "2", "--min-rows", "5", "--set", "tol=1e-9")
    run_ok("fit", *write_training_rows(form, train), *options, "--out", "fitted.head")
    model = skdare.load("fitted.head")
    steps = [type(step).__name__ for _, step in model.steps[:-1]]
    assert steps == ["StandardScaler", "FunctionTransformer"]
    spread = (new.X - train.X.mean(axis=0)) / train.X.std(axis=0)
    prepared = model[:-1].transform(new.X)
    np.testing.assert_allclose(prepared, np.clip(spread, -2, 2), rtol=1e-5)
    run_ok("fit", "features.npz", *options, "--out", "expected.head")
    expected = skdare.load("expected.head")[-1].decision_function(prepared)
    scores = model[-1].decision_function(prepared)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-6)


def test_missing_values_are_filled_by_the_medians_of_training_rows(folder, parts):
    train, new = parts
    holes = train.X.copy()
    holes[::7, 2] = np.nan
    np.savez("holes.npz", X=holes, y=train.y, domain=train.domains)
    run_ok("fit", "holes.npz", "--impute", "median", "--out", "h.safetensors")
    model = skdare.load("h.safetensors")
    np.testing.assert_allclose(model[0].statistics_[2], np.nanmedian(holes[:, 2]))
    rows = new.X.copy()
    rows[3, 2] = np.nan
    np.save("rows.npy", rows)
    predicted = [
        row["prediction"] for row in rows_of(run_ok("predict", "h.safetensors", "rows.npy").stdout)
    ]
    assert predicted == model.predict(rows).tolist()


@pytest.mark.parametrize("head", ["erm", "reweighted", "groupdro", "irm", "dare", "dare-cv"])
def test_every_head_is_fitted_by_its_name(folder, head):
    found = run_json("fit", "features.npz", "--head", head, "--set", "tol=0.01", "--quiet")
    assert type(skdare.load(found["file"])).__name__ == found["head"]
    assert found["classes"] == ["ill", "well"]
    assert found["domains"][0] == {"domain": "east", "rows": 120}


def test_columns_are_found_by_name_by_a_head_that_prepares_its_rows(folder, parts):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    train, new = parts
    names = [f"s{i}" for i in range(train.X.shape[1])]
    frame = pandas.DataFrame(train.X, columns=names)
    head = skdare.DAREClassifierCV(preparation=SimpleImputer(), strategies=("erm",))
    head.fit(frame, train.y, domains=train.domains).save("named.safetensors")
    pandas.DataFrame(new.X, columns=names)[names[::-1]].to_csv("reversed.csv", index=False)
    rows = rows_of(run_ok("predict", "named.safetensors", "reversed.csv").stdout)
    expected = head.predict(pandas.DataFrame(new.X, columns=names))
    assert [row["prediction"] for row in rows] == [str(label) for label in expected]


def test_a_choosing_head_says_what_it_chose(folder):
    found = run_json("fit", "features.npz", "--set", "strategies=erm,center", "--quiet")
    head = skdare.load(found["file"])
    assert head.strategies == ("erm", "center")
    assert found["choice"] == head.choice_
    text = run_ok("fit", "features.npz", "--set", "strategies=erm,center").stdout
    assert head.choice_ in " ".join(text.split())
    assert run_json("fit", "features.npz", "--head", "dare", "--quiet")["choice"] is None


def test_rows_are_prepared_anew_for_every_domain_that_is_left_out(folder, parts):
    train, new = parts
    X = train.X.copy()
    X[train.domains == "east", 0] *= 50.0
    X[::7, 2] = np.nan
    np.savez("wild.npz", X=X, y=train.y, domain=train.domains)
    options = ("--impute", "median", "--standardize", "--set", "l2=0.05", "--out", "w.safetensors")
    run_ok("fit", "wild.npz", *options, "--quiet")
    model = skdare.load("w.safetensors")
    preparation = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    expected = DAREClassifierCV(preparation=preparation, l2=(0.05,))
    expected.fit(X, train.y, domains=train.domains)
    scores = "mean_test_score"
    np.testing.assert_allclose(model[-1].cv_results_[scores], expected.cv_results_[scores])
    np.testing.assert_array_equal(model.predict(new.X), expected.predict(new.X))
    assert [type(step).__name__ for _, step in model.steps[:-1]] == [
        "SimpleImputer",
        "StandardScaler",
    ]


@pytest.mark.parametrize("head", ["anchor", "dare"])
def test_numbers_are_fitted_by_regression(folder, parts, head):
    train, _ = parts
    np.savez("r.npz", X=train.X, y=train.X @ np.arange(5.0), domain=train.domains)
    summary = run_json("fit", "r.npz", "--head", head, "--quiet")
    assert summary["head"].endswith("Regressor")
    assert summary["classes"] is None


def test_several_files_are_one_table(folder, parts):
    train, _ = parts
    north = train.domains == "north"
    for name, rows in (("a.npz", ~north), ("b.npz", north | (train.domains == "east"))):
        np.savez(name, X=train.X[rows], y=train.y[rows], domain=train.domains[rows])
    assert run_json("fit", "a.npz", "b.npz")["rows"] == 5 * 120
    assert run_json("fit", "features.npz", "--min-rows", "120")["rows"] == 4 * 120


def test_options_of_fit_come_from_a_file(folder):
    (folder / "fit.toml").write_text(
        'features = "features.npz"\nhead = "dare"\nout = "toml.safetensors"\n\n'
        "[set]\nshrinkage = 0.5\n"
    )
    assert run_json("fit", "--config", "fit.toml")["head"] == "DAREClassifier"
    assert run_json("inspect", "toml.safetensors")["options"] == {"shrinkage": 0.5}


def test_a_head_that_only_predicts_is_smaller_and_predicts_the_same(folder):
    whole = run_json("fit", "features.npz", "--out", "whole.safetensors")
    small = run_json("fit", "features.npz", "--out", "small.safetensors", "--not-adaptable")
    assert small["bytes"] < whole["bytes"]
    outputs = [
        run_ok("predict", f"{n}.safetensors", "ward7.npz").stdout for n in ("whole", "small")
    ]
    assert outputs[0] == outputs[1]
    result = run("adapt", "small.safetensors", "ward7.npz", "--out", "a.safetensors")
    assert result.exit_code == 2
    assert "only predicts" in result.stderr


@pytest.mark.parametrize("name", FILES)
def test_a_table_is_streamed_as_it_is_read(folder, parts, monkeypatch, name):
    from skdare.datasets import _row_source, read, stream_table

    train, _ = parts
    split = np.arange(len(train.X)) % 5 == 0
    write_training_rows(
        name, DomainData(train.X, train.y, train.domains, split, feature_names=NAMES)
    )
    monkeypatch.setattr(_row_source, "_MOST_ROWS", 13)
    streamed = stream_table(name)
    table = read(name)
    np.testing.assert_array_equal(streamed.X[:], table.X)
    for role in ("y", "domains", "split"):
        np.testing.assert_array_equal(getattr(streamed, role), getattr(table, role))
    assert streamed.feature_names == table.feature_names
    assert streamed.X.dtype == table.X.dtype


def test_a_table_whose_rows_do_not_agree_is_refused_before_it_is_streamed(folder):
    np.savez("short.npz", X=np.eye(5)[:3], y=[0, 1, 0, 1, 0], domain=list("aabbb"))
    result = run("features", "convert", "short.npz", "store")
    assert result.exit_code == 2
    assert "rows do not agree: features 'X' in short.npz has 3" in result.stderr
    assert not Path("store").exists()


@pytest.mark.parametrize("name", FILES)
def test_a_file_becomes_a_store_some_rows_at_a_time(folder, parts, name):
    from skdare.datasets import read
    from skdare.datasets._domain_data import fingerprint

    write_training_rows(name, parts[0])
    run_ok("features", "convert", name, "store")
    assert fingerprint(read("store")) == fingerprint(read(name))
    assert run("features", "convert", name, "store").exit_code == 2


def test_whole_numbers_in_an_array_are_fitted_from_disk(folder, parts):
    from skdare.arrays import RowReader
    from skdare.cli._fitting import _arrays

    train, _ = parts
    X = np.round(100 * train.X).astype(np.int16)
    for name, values in (("X", X), ("y", train.y), ("domains", train.domains)):
        np.save(f"{name}.npy", values)
    keys = {"target": "y.npy", "domains": "domains.npy"}
    assert isinstance(_arrays("X.npy", keys).X, RowReader)
    run_ok(
        "fit", "X.npy", "--target", "y.npy", "--domains", "domains.npy", "--out", "h.safetensors"
    )
    expected = DAREClassifierCV().fit(X.astype(np.float32), train.y, domains=train.domains)
    assert_same_head(skdare.load("h.safetensors"), expected, rtol=1e-7)


# -- predict --------------------------------------------------------------------------------------


NEW_FORMS = [
    *("n.npz", "n.csv", "n.csv.gz", "n.parquet", "n.safetensors", "n.store", "n.shards"),
    *("n.npy", "turned.npy", "turned.npz", "packed.npz"),
]


def write_new_rows(name: str, new: DomainData) -> None:
    """Write rows of the new domain in one of the forms."""
    for package, suffix in (("pyarrow", ".parquet"), ("safetensors", ".safetensors")):
        if name.endswith(suffix):
            pytest.importorskip(package, reason=f"{suffix} needs {package}")
    X = np.asfortranarray(new.X) if name.startswith("turned") else new.X
    if name == "packed.npz":
        np.savez_compressed(name, X=X)
    elif name == "turned.npz":
        np.savez(name, X=X)
    elif name.endswith(".npy"):
        np.save(name, X)
    else:
        two_domains = np.where(np.arange(len(X)) % 2, "a", "b")
        table = DomainData(X, new.y, two_domains, None, "", NAMES)
        write_store(name, table, rows_per_shard=25) if "shards" in name else write(name, table)


@pytest.mark.parametrize("form", NEW_FORMS)
def test_every_kind_of_file_gives_the_predictions_that_python_gives(folder, parts, form):
    _, new = parts
    write_new_rows(form, new)
    rows = rows_of(run_ok("predict", "head.safetensors", form, "--proba").stdout)
    head = skdare.load("head.safetensors")
    assert [row["prediction"] for row in rows] == head.predict(new.X).tolist()
    assert [row["id"] for row in rows] == [str(i) for i in range(len(new.X))]
    proba = [[float(row["proba_ill"]), float(row["proba_well"])] for row in rows]
    np.testing.assert_allclose(proba, head.predict_proba(new.X), rtol=1e-6)


@pytest.mark.parametrize("form", NEW_FORMS)
def test_rows_are_predicted_alike_in_chunks_of_any_size(folder, parts, monkeypatch, form):
    from skdare.datasets import _row_source

    _, new = parts
    write_new_rows(form, new)
    monkeypatch.setattr(_row_source, "_MOST_ROWS", 7)
    rows = rows_of(run_ok("predict", "head.safetensors", form, "--scores").stdout)
    scores = [float(row["score_well"]) for row in rows]
    expected = skdare.load("head.safetensors").decision_function(new.X)
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


def test_torch_files_are_read_too(folder, parts):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    _, new = parts
    torch.save({"X": torch.tensor(new.X)}, "n.pt")
    want = run_ok("predict", "head.safetensors", "ward7.npz").stdout
    assert run_ok("predict", "head.safetensors", "n.pt").stdout == want


def test_columns_are_taken_by_name_in_any_order_among_others(folder, parts):
    _, new = parts
    columns = ["note", *NAMES[::-1], "age"]
    lines = [",".join(columns)]
    lines += [",".join(["x", *map(repr, row[::-1].tolist()), "7"]) for row in new.X]
    Path("turned.csv").write_text("\n".join(lines) + "\n")
    want = run_ok("predict", "head.safetensors", "ward7.npz").stdout
    assert run_ok("predict", "head.safetensors", "turned.csv").stdout == want


def test_named_features_of_an_array_are_put_in_order(folder, parts):
    _, new = parts
    np.savez("turned.npz", X=new.X[:, ::-1], feature_names=NAMES[::-1])
    want = run_ok("predict", "head.safetensors", "ward7.npz").stdout
    assert run_ok("predict", "head.safetensors", "turned.npz").stdout == want


def test_csv_comes_from_the_standard_input(folder, parts):
    _, new = parts
    write("n.csv", DomainData(new.X, new.y, np.arange(len(new.X)) % 2, feature_names=NAMES))
    text = Path("n.csv").read_text()
    piped = run_ok("predict", "head.safetensors", "-", input=text)
    assert piped.stdout == run_ok("predict", "head.safetensors", "n.csv").stdout


@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz", "p.jsonl", "p.parquet"])
def test_predictions_are_the_same_in_every_form_of_output(folder, name):
    want = rows_of(run_ok("predict", "head.safetensors", "ward7.npz", "--proba").stdout)
    result = run_ok("predict", "head.safetensors", "ward7.npz", "--proba", "--out", name)
    assert result.stdout == ""
    assert "120 rows" in result.stderr
    if name.endswith("parquet"):
        pq = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
        found = pq.read_table(name).to_pylist()
    elif name.endswith("jsonl"):
        found = [json.loads(line) for line in Path(name).read_text().splitlines()]
    else:
        raw = Path(name).read_bytes()
        found = rows_of((gzip.decompress(raw) if name.endswith("gz") else raw).decode())
    assert [{key: str(value) for key, value in row.items()} for row in found] == want


def test_json_lines_have_the_columns_of_csv(folder):
    lines = run_ok(
        "predict", "head.safetensors", "ward7.npz", "--json", "--proba", "--scores"
    ).stdout
    first = json.loads(lines.splitlines()[0])
    assert list(first) == ["id", "prediction", "proba_ill", "proba_well", "score_well"]
    assert first["proba_ill"] + first["proba_well"] == pytest.approx(1.0)


def test_rows_are_named_by_a_column(folder):
    rows = rows_of(run_ok("predict", "head.safetensors", "ward7.npz", "--id", "patient").stdout)
    assert [row["id"] for row in rows[:2]] == ["p0", "p1"]


def test_labels_are_looked_at_only_where_a_score_is_asked_for(folder, parts):
    train, _ = parts
    plain = run_ok("predict", "head.safetensors", "features.csv")
    assert "accuracy" not in plain.stderr
    scored = run_ok("predict", "head.safetensors", "features.csv", "--score", "--json")
    found = json.loads(scored.stderr)
    assert found["metric"] == "accuracy"
    by_domain = {one["domain"]: one["score"] for one in found["scores"]}
    head = skdare.load("head.safetensors")
    for site in ("east", "north"):
        rows = train.domains == site
        assert by_domain[site] == pytest.approx(head.score(train.X[rows], train.y[rows]))
    assert by_domain["(all rows)"] == pytest.approx(head.score(train.X, train.y))


def test_a_regression_is_scored_by_r2(folder, parts):
    train, _ = parts
    rng = np.random.default_rng(0)
    y = train.X @ np.arange(5.0) + rng.normal(size=len(train.X))
    np.savez("r.npz", X=train.X, y=y, domain=train.domains)
    head = DARERegressor().fit(train.X, y, domains=train.domains)
    head.save("r.safetensors")
    result = run_ok("predict", "r.safetensors", "r.npz", "--score")
    assert result.stderr.splitlines()[-1].endswith(f"  {head.score(train.X, y):.2f}")


def test_a_chunk_of_labels_that_the_head_does_not_know_counts_as_wrong(folder, parts, monkeypatch):
    from skdare.datasets import _row_source

    _, new = parts
    monkeypatch.setattr(_row_source, "_MOST_ROWS", 30)
    labels = np.where(np.arange(len(new.X)) < 60, new.y, "unclear")
    np.savez("some.npz", X=new.X, y=labels, domain=np.arange(len(new.X)) % 2)
    result = run_ok("predict", "head.safetensors", "some.npz", "--score", "--json")
    head = skdare.load("head.safetensors")
    found = json.loads(result.stderr)["scores"][-1]
    assert found["score"] == pytest.approx((head.predict(new.X) == labels).mean())


# -- adapt ----------------------------------------------------------------------------------------


def test_adapting_a_file_is_adapting_in_python(folder, parts):
    _, new = parts
    found = run_json(
        "adapt", "head.safetensors", "ward7.npz", "--out", "ward7.safetensors", "--quiet"
    )
    assert found["rows"] == found["rows_seen"] == len(new.X)
    expected = skdare.load("head.safetensors").adapt(new.X)
    assert_same_head(skdare.load("ward7.safetensors"), expected, rtol=1e-10)


def labels_csv(text: str, name: str = "to_label.csv") -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


@pytest.mark.parametrize("by_id", [False, True])
def test_labels_in_a_file_are_labels_in_python(folder, parts, by_id):
    _, new = parts
    known = range(0, 120, 6)
    lines = [f"{f'p{i}' if by_id else i},{new.y[i]},x" for i in known]
    labels_csv("\n".join(["id,label,prediction", *lines, "p1,,x" if by_id else "1,,x"]))
    more = ("--id", "patient") if by_id else ()
    arguments = ("--labels", "to_label.csv", *more, "--out", "w.safetensors", "--quiet")
    found = run_json("adapt", "head.safetensors", "ward7.npz", *arguments)
    assert found["labels"] == 20
    y = [label if i in known else None for i, label in enumerate(new.y)]
    expected = skdare.load("head.safetensors").adapt(new.X, y)
    assert_same_head(skdare.load("w.safetensors"), expected, rtol=1e-8)
    assert run_json("inspect", "w.safetensors")["labelled_rows"] == 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,label\n1,healthy\n", "line 2 of to_label.csv has the label 'healthy', a class that"),
        ("id,label\n1,ill\n1,well\n", "line 3 of to_label.csv labels row '1' a second time"),
        ("id,label\n1,ill\n500,well\n", "to_label.csv labels row '500', which is not among"),
        ("id,label\n1,\n2,\n", "to_label.csv has no label; fill in"),
        ("id,class\n1,ill\n", "to_label.csv has no column 'label'"),
        ("id,label\n1,ill\n2,ill\n", "there are 2 labels, all of class 'ill'"),
    ],
)
def test_labels_that_cannot_be_taken_are_named_and_nothing_is_written(folder, text, words):
    labels_csv(text)
    arguments = ("--labels", "to_label.csv", "--out", "w.safetensors", "--state", "s.stream")
    result = run("adapt", "head.safetensors", "ward7.npz", *arguments)
    assert result.exit_code == 2
    assert words.split(";")[0] in " ".join(result.stderr.split())
    assert not Path("w.safetensors").exists()
    assert not Path("s.stream").exists()


def test_a_stream_goes_on_from_its_state(folder, parts):
    _, new = parts
    np.save("a.npy", new.X[:50])
    np.save("b.npy", new.X[50:])
    run_ok("adapt", "head.safetensors", "a.npy", "--state", "s.stream", "--prior-rows", "3")
    assert not Path("w.safetensors").exists()
    found = run_json(
        "adapt", "head.safetensors", "b.npy", "--state", "s.stream", "--out", "w.safetensors"
    )
    assert (found["rows"], found["rows_seen"]) == (70, 120)
    expected = skdare.load("head.safetensors").adapt(new.X, prior_rows=3)
    assert_same_head(skdare.load("w.safetensors"), expected, rtol=1e-9)
    assert run_json("inspect", "s.stream")["kind"] == "adapter"


def test_a_stream_of_an_earlier_version_goes_on(tmp_path):
    files = Path(__file__).parents[1] / "files"
    head, state = files / "head-2.safetensors", tmp_path / "ward7.stream"
    shutil.copy(files / "adapter-2.safetensors", state)
    seen = skdare.load(head).resume(state).n_seen_
    rows = np.random.default_rng(0).normal(size=(9, skdare.load(head).n_features_in_))
    np.save(tmp_path / "rows.npy", rows)
    found = run_json("adapt", head, tmp_path / "rows.npy", "--state", state, "--quiet")
    assert (found["rows"], found["rows_seen"]) == (9, seen + 9)
    assert run_json("inspect", state)["format_version"] == 2


def test_a_pipeline_stays_a_pipeline_when_its_head_is_adapted(folder, parts):
    _, new = parts
    run_ok("fit", "features.csv", "--head", "dare", "--standardize", "--out", "p.safetensors")
    run_ok("adapt", "p.safetensors", "ward7.npz", "--out", "w.safetensors", "--quiet")
    before = skdare.load("p.safetensors")
    expected = before[-1].adapt(before[:-1].transform(new.X))
    assert_same_head(skdare.load("w.safetensors")[-1], expected, rtol=1e-10)
    assert run_json("inspect", "w.safetensors")["adapted_rows"] == len(new.X)


def test_a_shift_of_class_shares_is_a_note(folder, parts):
    _, new = parts
    head = skdare.load("head.safetensors")
    np.save("one-class.npy", new.X[head.predict(new.X) == "ill"])
    result = run_ok("adapt", "head.safetensors", "one-class.npy", "--out", "w.safetensors")
    assert "note: predicted class shares" in result.stderr
    quiet = run_ok(
        "adapt", "head.safetensors", "one-class.npy", "--out", "w.safetensors", "--quiet"
    )
    assert quiet.stderr == ""


# -- inspect, diagnose ----------------------------------------------------------------------------


def test_inspect_says_what_a_head_is(folder):
    choices = ("--set", "l2=0.02", "--set", "strategies=erm,whiten")
    run_ok("fit", "features.csv", "--rehearse", "--standardize", *choices, "--quiet")
    text = run_ok("inspect", "head.safetensors").stdout
    for words in (
        "DAREClassifierCV (l2=(0.02,), strategies=('erm', 'whiten'))",
        "ill, well",
        "f0, f1",
        "east (120)",
        "StandardScaler",
    ):
        assert words in text
    found = run_json("inspect", "head.safetensors")
    assert found["rehearsed"] is True
    assert found["adaptable"] is False
    assert "no, it did not pay on left-out domains" in text
    assert found["feature_names"] == NAMES
    assert found["versions"]["skdare"] == skdare.__version__


@pytest.mark.parametrize("key", ["class", "classes", "domains", "parameters", "state", "versions"])
@pytest.mark.parametrize("value", [7, None, [7], {"a": 7}])
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_header_with_values_of_another_kind_gives_no_traceback(folder, key, value, options):
    from skdare.persist import TensorFile

    file = TensorFile.read("head.safetensors")
    TensorFile("head", {**file.header, key: value}, file.arrays).write("odd.safetensors")
    result = run("inspect", "odd.safetensors", *options)
    assert result.exit_code in (0, 2)
    assert result.exit_code == 0 or "odd.safetensors" in result.stderr


def test_a_saved_head_is_diagnosed_without_another_fit(folder, parts):
    train, new = parts
    options = ("--head", "dare", "--rehearse", "--out", "r.safetensors", "--quiet")
    run_ok("fit", "features.npz", *options)
    found = run_json("diagnose", "r.safetensors", "--new", "ward7.npz")
    want = DAREClassifier().fit(train.X, train.y, domains=train.domains)
    want.rehearse(train.X, train.y, domains=train.domains)
    expected = json.loads(json.dumps(want.diagnose(new.X).to_dict()))
    assert found["recommendation"] == expected["recommendation"]


def test_a_head_without_a_rehearsal_tells_distances_and_says_so(folder):
    result = run_ok("diagnose", "head.safetensors", "--new", "ward7.npz", "--json")
    assert "was not rehearsed" in result.stderr
    assert json.loads(result.stdout)["recommendation"]["action"] == "cannot say"


# -- export ---------------------------------------------------------------------------------------


@pytest.fixture
def standardized(folder, parts):
    """A saved pipeline, new rows as exporters take them, and the probabilities it gives them."""
    run_ok("fit", "features.csv", "--standardize", "--out", "p.safetensors")
    X = parts[1].X.astype(np.float32)
    return X, skdare.load("p.safetensors").predict_proba(X)


def test_a_standardisation_is_folded_into_an_onnx_graph(standardized):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    X, want = standardized
    assert run_json("export", "p.safetensors", "--out", "p.onnx")["format"] == "onnx"
    _, found, _ = runtime.InferenceSession("p.onnx").run(None, {"X": X})
    np.testing.assert_allclose(found, want, atol=1e-6)


@pytest.mark.parametrize("options", [{"with_mean": False}, {"with_std": False}, {}])
def test_every_standardisation_is_exported_with_the_names_that_only_it_has(folder, parts, options):
    pd = pytest.importorskip("pandas", reason="frames need pandas")
    train, new = parts
    shifted = train.X + 0.5
    scaler = StandardScaler(**options).fit(pd.DataFrame(shifted, columns=NAMES))
    Z = scaler.transform(pd.DataFrame(shifted, columns=NAMES))
    head = DAREClassifier().fit(Z, train.y, domains=train.domains)
    model = Pipeline([("scale", scaler), ("head", head)])
    skdare.save(model, "p.safetensors")
    run_ok("export", "p.safetensors", "--out", "p.csv")
    rows = rows_of(Path("p.csv").read_text())
    assert [row["feature"] for row in rows] == ["intercept", *NAMES]
    b, *v = [float(row["well"]) for row in rows]
    np.testing.assert_allclose(new.X @ v + b, head.decision_function(scaler.transform(new.X)))
    run_ok("export", "p.safetensors", "--out", "alone.csv", "--head-only")
    rows = rows_of(Path("alone.csv").read_text())
    assert [row["feature"] for row in rows] == ["intercept", *NAMES]
    np.testing.assert_allclose([float(row["well"]) for row in rows[1:]], head.coef_[0])


def test_an_export_that_fails_leaves_what_was_there(folder, monkeypatch):
    pytest.importorskip("pandas", reason="frames need pandas")
    Path("head.csv").write_text("old")

    def fails(self):
        raise ValueError("no frame")

    monkeypatch.setattr(DAREClassifier, "to_frame", fails)
    before = sorted(folder.iterdir())
    assert run("export", "head.safetensors", "--out", "head.csv").exit_code == 2
    assert Path("head.csv").read_text() == "old"
    assert sorted(folder.iterdir()) == before


def test_an_adaptable_graph_takes_the_whitener(folder):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    run_ok("export", "head.safetensors", "--out", "a.onnx", "--format", "onnx-adaptable")
    inputs = {one.name for one in onnx.load("a.onnx").graph.input}
    assert len(inputs) > 1


def test_a_torch_file_and_a_skops_file_predict_the_same(standardized):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    X, want = standardized
    run_ok("export", "p.safetensors", "--out", "p.pt")
    layer = torch.nn.Linear(5, 2)
    layer.load_state_dict(torch.load("p.pt", weights_only=True))
    found = torch.softmax(layer(torch.tensor(X)), 1).detach().numpy()
    np.testing.assert_allclose(found, want, atol=1e-5)
    run_ok("export", "p.safetensors", "--out", "p.skops")
    np.testing.assert_allclose(skops.load("p.skops").predict_proba(X), want, atol=1e-6)


def test_coefficients_are_exported_by_name(folder):
    pytest.importorskip("pandas", reason="frames need pandas")
    run_ok("export", "head.safetensors", "--out", "head.csv")
    rows = rows_of(Path("head.csv").read_text())
    assert [row["feature"] for row in rows] == ["intercept", *NAMES]
    found = [float(row["well"]) for row in rows[1:]]
    np.testing.assert_allclose(found, skdare.load("head.safetensors").coef_[0])


# -- mistakes -------------------------------------------------------------------------------------

LABELS = ["--target", "illness.npy", "--domains", "sites.npy"]
MISTAKES = [
    (["fit", "absent.npz"], "absent.npz does not exist"),
    (["fit", "features.npz", "--out", "absent/h.safetensors"], "cannot be written"),
    (["fit", "features.npz", "--out", "."], "cannot be written"),
    (["fit", "features.npz", "--head", "anchor"], "regression only"),
    (["fit", "features.npz", "--head", "erm", "--rehearse"], "--rehearse is for dare"),
    (["fit", "features.npz", "--rehearse", "--not-adaptable"], "--not-adaptable leaves out"),
    (["fit", "features.npz", "--set", "shrinkag=1"], "no option 'shrinkag'"),
    (["fit", "features.npz", "--set", "shrinkage"], "is not OPTION=VALUE"),
    (["fit", "features.npz", "--clip", "3"], "--clip counts standard deviations"),
    (["fit", "features.npz", "--target", "gas"], "no 'gas' for target"),
    (["fit", "features.npz", "--min-rows", "1000"], "no domain has 1000 rows"),
    (["fit", "holes.npy"], "name a .npy file with --target"),
    (["fit", "store", "--impute", "median"], "--impute finds medians"),
    (["fit", "new.npy", *LABELS, "--impute", "median"], "and these stay on disk"),
    (["fit", "new.npy", "--target", "other.npz", "--domains", "sites.npy"], "as one array"),
    (["fit", "words.npy", *LABELS], "features must be numbers"),
    (["fit", "empty.npz"], "must be rows by features"),
    (["fit", "store", "--target", "y"], "already says which columns are which"),
    (["fit", "features.npz", "other.npz"], "has other features than"),
    (["fit", "holes.npz"], "have missing values"),
    (["predict", "absent.safetensors", "ward7.npz"], "absent.safetensors"),
    (["predict", "features.npz", "ward7.npz"], "cannot be read"),
    (["predict", "cut.safetensors", "ward7.npz"], "cut.safetensors cannot be read"),
    (["predict", "altered.safetensors", "ward7.npz"], "checksum"),
    (["predict", "s.stream", "ward7.npz"], "holds the state of a stream"),
    (["predict", "head.safetensors", "absent.csv"], "absent.csv does not exist"),
    (["predict", "head.safetensors", "narrow.npy"], "has 3 features and head.safetensors was"),
    (["predict", "head.safetensors", "narrow.csv"], "no column 'f3'"),
    (["predict", "head.safetensors", "text.csv"], "has 'abc' in column 'f1'"),
    (["predict", "head.safetensors", "ragged.csv"], "has 4 cells"),
    (["predict", "head.safetensors", "empty.csv"], "has no rows"),
    (["predict", "head.safetensors", "empty.npy"], "has no features"),
    (["predict", "head.safetensors", "empty.npz"], "has no features"),
    (
        ["predict", "head.safetensors", "holes.npy"],
        "row 3 (counted from 0) of holes.npy has no value",
    ),
    (["predict", "head.safetensors", "infinite.npy"], "has infinity in row 1"),
    (["predict", "head.safetensors", "ward7.npz", "--out", "p.xls"], "cannot write to p.xls"),
    (["predict", "head.safetensors", "ward7.npz", "--out", "absent/p.csv"], "cannot be written"),
    (["predict", "head.safetensors", "ward7.npz", "--out", "p.csv", "--json"], "--json writes"),
    (["predict", "head.safetensors", "ward7.npz", "--id", "name"], "no 'name' for id"),
    (["predict", "head.safetensors", "ward7.npz", "--score"], "no target found"),
    (["predict", "head.safetensors", "ward7.npz", "--target", "y"], "are for --score"),
    (
        ["predict", "head.safetensors", "other.npz", "--score", "--out", "p.csv"],
        "the first label is 0",
    ),
    (["predict", "head.safetensors", "both.npz"], "--feature-key"),
    (["adapt", "head.safetensors", "ward7.npz"], "nothing would be written"),
    (["adapt", "head.safetensors", "ward7.npz", "--out", "head.safetensors"], "name another file"),
    (["adapt", "head.safetensors", "ward7.npz", "--out", "narrow.csv"], "is not a saved head"),
    (["adapt", "head.safetensors", "ward7.npz", "--out", "a.x", "--state", "./a.x"], "name two"),
    (
        ["adapt", "head.safetensors", "absent.npy", "--out", "absent.npy"],
        "would replace a file that is read",
    ),
    (["adapt", "head.safetensors", "ward7.npz", "--state", "f.fleet"], "f.fleet holds a fleet"),
    (["adapt", "head.safetensors", "ward7.npz", "--state", "other.safetensors"], "holds a head"),
    (["fit", "features.npz", "--out", "features.npz"], "would replace a file that is read"),
    (["fit", "features.npz", "--out", "narrow.csv"], "is not a saved head"),
    (
        ["predict", "head.safetensors", "narrow.csv", "--out", "narrow.csv"],
        "would replace a file that is read",
    ),
    (
        ["export", "head.safetensors", "--out", "head.safetensors"],
        "would replace a file that is read",
    ),
    (["predict", "head.safetensors", "renamed.npz"], "has no feature 'f4'"),
    (["predict", "head.safetensors", "."], "a folder without manifest.json"),
    (["adapt", "erm.safetensors", "ward7.npz", "--out", "a.safetensors"], "which cannot adapt"),
    (["adapt", "head.safetensors", "one.npy", "--out", "a.safetensors"], "at least 2 rows"),
    (
        ["adapt", "head.safetensors", "ward7.npz", "--state", "s.stream", "--half-life", "9"],
        "was begun with its own",
    ),
    (["adapt", "other.safetensors", "ward7.npz", "--state", "s.stream"], "another head"),
    (["inspect", "features.npz"], "cannot be read"),
    (["inspect", "absent"], "is not a file"),
    (["diagnose", "head.safetensors"], "is a saved head"),
    (["diagnose", "head.safetensors", "--new", "ward7.npz", "--clip", "3"], "fitted already"),
    (["diagnose", "erm.safetensors", "--new", "ward7.npz"], "knows no domains"),
    (["export", "head.safetensors", "--out", "head.xyz"], "cannot choose the format of head.xyz"),
    (["export", "clipped.safetensors", "--out", "head.csv"], "only a StandardScaler"),
    (["export", "head.safetensors", "--out", "h.onnx", "--format", "torch"], "--format is torch"),
    (["diagnose", "cut.safetensors", "--new", "ward7.npz"], "it was cut off"),
    (["diagnose", "newer.safetensors", "--new", "ward7.npz"], "update skdare"),
    (["diagnose", "head.safetensors", "--new", "ward7.npz", "--html", "ward7.npz"], "is read"),
]


def write_broken_files(train: DomainData, new: DomainData) -> None:
    """Files that are wrong, each in its own way, beside those that are right."""
    write("store", train)
    holes = new.X.copy()
    holes[3, 2] = np.nan
    np.save("holes.npy", holes)
    np.savez("holes.npz", X=np.where(train.X > 2, np.nan, train.X), y=train.y, d=train.domains)
    infinite = new.X.copy()
    infinite[1, 0] = np.inf
    np.save("infinite.npy", infinite)
    np.save("narrow.npy", new.X[:, :3])
    np.save("one.npy", new.X[:1])
    np.savez("other.npz", X=new.X, y=np.arange(len(new.X)), domain=new.y)
    np.savez("both.npz", a=new.X, b=new.X)
    np.savez("renamed.npz", X=new.X, feature_names=[*NAMES[:4], "age"])
    header = ",".join(NAMES)
    Path("narrow.csv").write_text("f0,f1,f2\n1,2,3\n")
    Path("text.csv").write_text(header + "\n" + "1,2,3,4,5\n" * 200 + "1,abc,3,4,5\n")
    Path("ragged.csv").write_text(header + "\n1,2,3,4,5\n1,2,3,4\n")
    Path("empty.csv").write_text(header + "\n")
    raw = Path("head.safetensors").read_bytes()
    Path("cut.safetensors").write_bytes(raw[:-9])
    Path("altered.safetensors").write_bytes(raw[:-4] + bytes(4))
    run_ok("fit", "features.npz", "--head", "erm", "--out", "erm.safetensors")
    run_ok("fit", "features.npz", "--set", "l2=1.0", "--out", "other.safetensors")
    run_ok("fit", "features.npz", "--standardize", "--clip", "3", "--out", "clipped.safetensors")
    run_ok("adapt", "head.safetensors", "ward7.npz", "--state", "s.stream")
    skdare.load("head.safetensors").fleet().save("f.fleet")
    newer = raw.replace(rb"\"version\": 2", rb"\"version\": 9")
    assert newer != raw
    Path("newer.safetensors").write_bytes(newer)
    np.save("new.npy", new.X)
    np.save("words.npy", np.full(new.X.shape, "a"))
    np.save("illness.npy", new.y)
    np.save("sites.npy", np.arange(len(new.X)) % 2)
    np.save("empty.npy", new.X[:, :0])
    np.savez("empty.npz", X=new.X[:, :0], y=new.y, domain=np.arange(len(new.X)) % 2)


@pytest.fixture(scope="module")
def broken_files(parts, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("broken")
    with contextlib.chdir(path):
        write_folder(*parts)
        write_broken_files(*parts)
    return path


@pytest.fixture
def broken(broken_files, tmp_path, monkeypatch) -> Path:
    """The current folder, with files that are right and files that are wrong."""
    shutil.copytree(broken_files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"), MISTAKES, ids=[" ".join(arguments) for arguments, _ in MISTAKES]
)
def test_mistakes_exit_with_two_say_what_to_do_and_write_nothing(broken, arguments, message):
    before = {path: path.stat().st_mtime_ns for path in broken.rglob("*")}
    result = run(*arguments)
    assert result.exit_code == 2, result.stderr
    assert message in result.stderr
    assert result.stdout == "" or arguments[2].endswith(".csv")
    assert {path: path.stat().st_mtime_ns for path in broken.rglob("*")} == before


def test_a_failed_prediction_leaves_the_old_file(broken):
    Path("p.csv").write_text("old")
    assert run("predict", "head.safetensors", "text.csv", "--out", "p.csv").exit_code == 2
    assert Path("p.csv").read_text() == "old"
    assert [path.name for path in broken.glob("*p.csv*")] == ["p.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX's")
def test_a_named_pipe_is_refused_and_not_waited_for(folder):
    os.mkfifo("pipe")
    result = run("fit", "features.npz", "--out", "pipe")
    assert result.exit_code == 2
    assert "is not a saved head" in result.stderr


def test_a_full_disk_is_a_failure_and_no_mistake(folder, monkeypatch):
    import errno

    from skdare.datasets import _row_writer

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "p.csv")

    monkeypatch.setattr(_row_writer.CsvRowWriter, "write", full)
    result = run("predict", "head.safetensors", "ward7.npz", "--out", "p.csv")
    assert result.exit_code == 1
    assert "no space left" in result.stderr


# -- processes ------------------------------------------------------------------------------------


def test_a_reader_that_goes_away_is_no_error(folder):
    np.save("many.npy", np.zeros((200_000, 5)))
    running = start("-m", "skdare.cli", "predict", "head.safetensors", "many.npy", "--proba")
    assert running.stdout.readline() == b"id,prediction,proba_ill,proba_well\n"
    running.stdout.close()
    errors = running.stderr.read()
    running.stderr.close()
    assert running.wait(PATIENCE) == 141
    assert errors == b""


def wait_for(ready, running) -> None:
    end = time.monotonic() + PATIENCE
    while not ready():
        assert running.poll() is None, "the process ended by itself"
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_prediction_leaves_nothing(folder, number, code):
    predict = ("-m", "skdare.cli", "predict", "head.safetensors", "-", "--out", "p.csv")
    running = start(*predict, stdin=subprocess.PIPE)
    running.stdin.write((",".join(NAMES) + "\n" + "1,2,3,4,5\n" * 100_000).encode())
    running.stdin.flush()
    # It writes, and waits for more rows.
    wait_for(lambda: list(folder.glob("*p.csv*")), running)
    running.send_signal(number)
    _, errors = running.communicate(timeout=PATIENCE)
    assert running.returncode == code
    assert errors == b"stopped\n"
    assert not list(folder.glob("*p.csv*"))


def test_a_command_leaves_the_handler_of_termination_as_it_was(folder):
    before = signal.getsignal(signal.SIGTERM)
    run_ok("inspect", "head.safetensors")
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the system has no such lock")
def test_processes_that_adapt_with_one_stream_lose_no_row(folder, parts):
    _, new = parts
    rows = np.array_split(new.X, 3)
    for i, some in enumerate(rows):
        np.save(f"{i}.npy", some)
    arguments = ("--state", "s.stream", "--out", "w.safetensors", "--json")
    running = [
        start("-m", "skdare.cli", "adapt", "head.safetensors", f"{i}.npy", *arguments)
        for i in range(3)
    ]
    found = []
    for one in running:
        output, errors = one.communicate(timeout=120)
        assert one.returncode == 0, errors
        found.append(json.loads(output))
    assert sorted(one["rows"] for one in found) == sorted(map(len, rows))
    assert max(one["rows_seen"] for one in found) == len(new.X)
    assert len({one["rows_seen"] for one in found}) == 3
    assert run_json("inspect", "s.stream")["rows"] == len(new.X)
    # The adapted head is that of the last one as well.
    assert run_json("inspect", "w.safetensors")["adapted_rows"] == len(new.X)
    assert not list(folder.glob(".*"))


@pytest.mark.skipif(os.name != "posix", reason="the system has no such lock")
def test_who_waits_for_a_stream_says_so_and_goes_on(folder):
    def unexpected():
        raise AssertionError("nobody has it")

    with locked(Path("s.stream"), unexpected):
        running = start(
            "-m", "skdare.cli", "adapt", "head.safetensors", "ward7.npz", "--state", "s.stream"
        )
        assert running.stderr.readline().startswith(b"waiting for another process that adapts")
        assert not Path("s.stream").exists()
    output, errors = running.communicate(timeout=60)
    assert running.returncode == 0, errors
    assert b"120 rows seen" in output


@pytest.mark.skipif(os.name != "posix", reason="the system has no such lock")
def test_the_lock_of_a_killed_process_holds_nobody_up(folder):
    Path(".s.stream.lock").touch()
    run_ok("adapt", "head.safetensors", "ward7.npz", "--state", "s.stream")
    assert not Path(".s.stream.lock").exists()


MEASURED = """
import sys
import time
from pathlib import Path
from click.testing import CliRunner
from skdare.cli import main
from skdare.datasets import _store_writer
_store_writer._SHARD_BYTES = 1 << 22  # else 256 MB of rows are held, whatever their number
for size in ("small", "large"):
    for name in sys.argv[1:]:
        arguments = ["predict", "head.safetensors", f"{size}.{name}", "--out", "p.csv"]
        result = CliRunner().invoke(main, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.stderr
    for name in ("npz", "parquet", "csv"):
        arguments = ["features", "convert", f"{size}.{name}", f"{size}-{name}"]
        result = CliRunner().invoke(main, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.stderr
    # Not ru_maxrss, which begins with what the process that started this one had.
    status = Path("/proc/self/status").read_text().splitlines()
    print(next(int(line.split()[1]) for line in status if "VmHWM" in line) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the resident set is read from /proc")
def test_ten_times_the_rows_take_no_more_memory(folder):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    rng = np.random.default_rng(0)
    for size, n in (("small", 30_000), ("large", 300_000)):
        X = np.tile(rng.normal(size=(n // 10, 5)), (10, 8))[:, :40]
        labels = np.arange(n) % 2
        np.save(f"{size}.npy", X)
        np.savez(f"{size}.npz", X=X, y=labels, domain=labels)
        wide = DomainData(X, labels, labels)
        write(f"{size}.parquet", wide)
        write(f"{size}.store", wide)
        write(f"{size}.csv", DomainData(X[: n // 10], labels[: n // 10], labels[: n // 10]))
    train = make_latent_domains(3, 100, 40, random_state=0)
    DAREClassifier().fit(train.X, train.y, domains=train.domains).save("head.safetensors")
    kinds = ("npy", "npz", "parquet", "store", "csv")
    result = subprocess.run(
        [sys.executable, "-c", MEASURED, *kinds], capture_output=True, text=True, check=True
    )
    small, large = map(int, result.stdout.split())
    # Large arrays take 82 MB more than small ones: one that were loaded would show.
    assert large - small < 50, result.stdout


@pytest.mark.parametrize(
    "arguments",
    [["adapt", "small", "new.npz", "--out", "out"], ["diagnose", "small", "--new", "new.npz"]],
    ids=["adapt", "diagnose"],
)
def test_a_head_that_only_predicts_says_so(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    data = make_latent_domains(random_state=0)
    head = DAREClassifier().fit(data.X, data.y, domains=data.domains)
    head.save("small", adaptable=False)
    np.savez("new.npz", X=data.X[:50])
    result = run(*arguments)
    assert result.exit_code == 2
    assert "without --not-adaptable" in result.stderr
    assert "--rehearse" not in result.stderr
