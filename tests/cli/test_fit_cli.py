"""`skdare fit`: one domain, domains held out, features on disk, and names that are remembered."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

import skdare
from command_line import run, run_json, run_ok
from heads_alike import assert_same_head
from skdare import DAREClassifier, ERMClassifier
from skdare.cli import _on_disk
from skdare.datasets import DomainData, make_latent_domains, read, write

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


@pytest.fixture
def data(tmp_path, monkeypatch) -> DomainData:
    """Rows of four domains, which are also in a table whose columns have names of their own."""
    monkeypatch.chdir(tmp_path)
    made = make_latent_domains(4, 60, 5, shift=0.5, random_state=0)
    table = DomainData(
        made.X,
        np.array(["ill", "well"])[made.y],
        np.array(["east", "north", "south", "west"])[made.domains],
        feature_names=list("abcef"),
    )
    write("plain.csv", table)
    text = Path("plain.csv").read_text().replace("y,domain", "diagnosis,ward", 1)
    Path("rows.csv").write_text(text)
    return table


NAMED = ("rows.csv", "--target", "diagnosis", "--domains", "ward")


def test_erm_needs_one_domain_or_none_and_others_say_what_they_need(data):
    np.savez("one.npz", X=data.X, y=data.y, domain=np.full(len(data.y), "east"))
    np.savez("none.npz", X=data.X, y=data.y)
    np.save("X.npy", data.X)
    np.save("y.npy", data.y)
    expected = ERMClassifier().fit(data.X, data.y)
    for files in (["one.npz"], ["none.npz"], ["X.npy", "--target", "y.npy"]):
        run_ok("fit", *files, "--head", "erm", "--quiet")
        assert_same_head(skdare.load("head.safetensors"), expected, rtol=1e-7)
    refused = run("fit", "one.npz")
    assert refused.exit_code == 2
    assert "one domain to train on, 'east'" in refused.stderr
    assert "--head erm" in refused.stderr
    assert "no domains found" in run("fit", "none.npz").stderr


def test_a_fit_says_what_to_expect_unless_it_is_told_not_to_rehearse(data):
    told = run_json("fit", *NAMED)
    assert told["rehearsed"]
    scores = [one.as_is for one in skdare.load("head.safetensors").rehearsal_.domains]
    assert told["expected"]["use"]["expected"] == pytest.approx(np.mean(scores))
    assert "on a new domain: accuracy" in run_ok("fit", *NAMED).stdout
    silent = run_json("fit", *NAMED, "--no-rehearse")
    assert not silent["rehearsed"]
    assert silent["expected"] is None


def test_what_cannot_be_rehearsed_is_fitted_all_the_same(data):
    """Without either domain a single class is left."""
    y = (np.arange(len(data.y)) % 2).astype(int)
    domains = np.where(y == 1, "odd", "even")
    np.savez("apart.npz", X=data.X, y=y, domain=domains)
    result = run("fit", "apart.npz", "--head", "dare")
    assert result.exit_code == 0
    assert "was not rehearsed: without any one of the domains" in result.stderr
    refused = run("fit", "apart.npz", "--head", "dare", "--rehearse")
    assert refused.exit_code == 2


def test_held_out_domains_are_left_out_and_scored(data):
    options = ("--head", "dare", "--held-out", "west,north", "--quiet")
    found = run_json("fit", *NAMED, *options)
    assert [row["domain"] for row in found["domains"]] == ["east", "south"]
    train = np.isin(data.domains, ["east", "south"])
    head = DAREClassifier().fit(data.X[train], data.y[train], domains=data.domains[train])
    for row in found["held_out"]:
        new = data.domains == row["domain"]
        assert row["rows"] == new.sum()
        assert row["score"] == head.score(data.X[new], data.y[new])
        assert row["adapted"] == head.adapt(data.X[new]).score(data.X[new], data.y[new])
    text = run_ok("fit", *NAMED, *options, "--standardize").stdout
    assert "held out  west (60 rows): accuracy" in text
    assert ", adapted to its rows" in text


@pytest.mark.parametrize("head", ["erm", "dare-cv"])
def test_held_out_domains_are_scored_by_the_metric_asked_for(data, head):
    options = ("--head", head, "--held-out", "west", "--metric", "roc_auc", "--quiet")
    (row,) = run_json("fit", *NAMED, *options)["held_out"]
    model = skdare.load("head.safetensors")
    new = data.domains == "west"
    expected = roc_auc_score(data.y[new] == "well", model.predict_proba(data.X[new])[:, 1])
    assert row["metric"] == "roc_auc"
    assert row["score"] == pytest.approx(expected)
    assert "west (60 rows): ROC AUC 0." in run_ok("fit", *NAMED, *options).stdout


def test_a_metric_of_a_head_that_does_not_choose_needs_domains_to_score(data):
    refused = run("fit", *NAMED, "--head", "erm", "--metric", "roc_auc")
    assert refused.exit_code == 2
    assert "give --head dare-cv, or --held-out" in refused.stderr


def test_groups_that_are_held_out_are_not_trained_on_by_any_head(data):
    person = np.arange(len(data.y)) % 60
    person[data.domains == "east"] += 1000
    np.savez("g.npz", X=data.X, y=data.y, domain=data.domains, person=person)
    options = ("--head", "erm", "--groups", "person", "--quiet")
    assert run_json("fit", "g.npz", *options, "--held-out", "west")["rows"] == 60
    refused = run("fit", "g.npz", *options)
    assert refused.exit_code == 2
    assert "--head erm leaves none out" in refused.stderr


def test_quiet_prints_results_and_errors_only(data):
    text = [line + ",x" for line in Path("rows.csv").read_text().splitlines()]
    Path("rows.csv").write_text("\n".join(text))  # a column of text, which is left out
    for command in (["fit", *NAMED, "--head", "erm"], ["bench", *NAMED, "--heads", "erm"]):
        options = [] if command[0] == "fit" else ["--trials", "1", "--with", "none"]
        assert "left out of the features" in run_ok(*command, *options).stderr
        assert run_ok(*command, *options, "--quiet").stderr == ""


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("wst", "held-out domain `wst` is not in the table"),
        ("east,north,south,west", "every domain"),
    ],
)
def test_held_out_domains_that_cannot_be_are_refused(data, names, message):
    result = run("fit", *NAMED, "--held-out", names)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not Path("head.safetensors").exists()


@pytest.mark.parametrize("name", ["t.npz", "t.parquet", "t.csv"])
def test_features_on_disk_give_the_same_head_and_leave_nothing_behind(data, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    write(name, data)
    options = ("--head", "dare", "--held-out", "west", "--quiet")
    here = run_json("fit", name, *options, "--in-memory")
    expected = skdare.load("head.safetensors")
    before = sorted(Path().iterdir())
    on_disk = run_json("fit", name, *options, "--on-disk")
    assert sorted(Path().iterdir()) == before
    assert_same_head(skdare.load("head.safetensors"), expected, rtol=1e-7)
    assert on_disk["held_out"] == here["held_out"]
    assert on_disk["target_name"] == "y"


def test_features_that_memory_is_too_small_for_stay_on_disk(data, monkeypatch):
    write("a.npz", data)
    write("b.npz", data)
    bytes_needed = 2 * data.X.nbytes
    for room, stays in ((10 * bytes_needed, False), (bytes_needed, True)):
        monkeypatch.setattr(_on_disk, "free_memory", lambda room=room: room)
        result = run_ok("fit", "a.npz", "b.npz", "--head", "erm")
        assert ("stay on disk" in result.stderr) == stays
        assert "480 of 5 features" in result.stdout


def test_a_head_remembers_what_targets_and_domains_are_called(data):
    run_ok("fit", *NAMED, "--head", "dare", "--quiet")
    head = skdare.load("head.safetensors")
    assert (head.target_name_, head.domain_name_) == ("diagnosis", "ward")
    text = run_ok("inspect", "head.safetensors").stdout
    assert "column diagnosis, 2 classes" in text
    assert "column ward, east" in text
    result = run_ok("predict", "head.safetensors", "rows.csv", "--score")
    assert "scored against 'diagnosis', by 'ward'" in result.stderr
    assert "north" in result.stderr
    # Where other names are used, those that the role usually has; no domains are no hindrance.
    np.savez("other.npz", X=data.X, y=data.y)
    scores = json.loads(
        run_ok("predict", "head.safetensors", "other.npz", "--score", "--json").stderr
    )["scores"]
    assert [row["domain"] for row in scores] == ["(all rows)"]
    assert scores[0]["score"] == pytest.approx(head.score(data.X, data.y))


def test_columns_of_a_data_frame_are_remembered_until_the_next_fit(data, tmp_path):
    pd = pytest.importorskip("pandas")
    y = pd.Series(data.y, name="diagnosis")
    head = ERMClassifier().fit(data.X, y, domains=pd.Series(data.domains, name="ward"))
    head.save(tmp_path / "h")
    about = skdare.inspect_file(tmp_path / "h")
    assert (about["target_name"], about["domain_name"]) == ("diagnosis", "ward")
    assert not hasattr(head.fit(data.X, data.y), "target_name_")


def test_a_table_without_domains_is_read_as_one(data):
    np.savez("none.npz", X=data.X, y=data.y)
    assert set(read("none.npz", domains="").domains) == {"all"}


def test_a_graph_of_a_head_that_fills_and_scales_labels_as_predict_does(data):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    X = data.X.astype(np.float32)
    X[::4, 2] = np.nan
    np.savez("holes.npz", X=X, y=data.y, domain=data.domains, feature_names=data.feature_names)
    preparation = ("--impute", "median", "--standardize", "--clip", "2")
    run_ok("fit", "holes.npz", "--head", "dare", *preparation, "--quiet")
    run_ok("export", "head.safetensors", "--out", "head.onnx")
    session = runtime.InferenceSession("head.onnx")
    labels = session.run(["label"], {"X": X})[0].tolist()
    lines = run_ok("predict", "head.safetensors", "holes.npz").stdout.splitlines()[1:]
    assert labels == [line.split(",")[1] for line in lines]
    names = json.loads(session.get_modelmeta().custom_metadata_map["feature_names"])
    assert names == data.feature_names


def test_a_sparse_matrix_is_predicted_and_adapted_to_as_a_dense_one(data):
    X = np.where(np.abs(data.X) > 1, data.X, 0.0)
    np.savez("dense.npz", X=X)
    sparse.save_npz("sparse.npz", sparse.csc_array(X))
    run_ok("fit", *NAMED, "--head", "dare", "--quiet")
    for command in (["predict"], ["adapt", "--out"]):
        results = []
        for name in ("dense", "sparse"):
            out = [f"{name}.safetensors"] if "--out" in command else []
            text = run_ok(command[0], "head.safetensors", f"{name}.npz", *command[1:], *out).stdout
            results.append(skdare.load(out[0]).coef_.tolist() if out else text)
        assert results[0] == results[1]
    refused = run("fit", "sparse.npz")
    assert refused.exit_code == 2
    assert "no target and no domains found in sparse.npz" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit"], "missing argument 'FEATURES...'"),
        (["fit", "rows.csv", "--haed", "erm"], "no such option"),
        (["fit", "rows.csv", "--head", "ermm"], "invalid value for '--head'"),
        (["features", "inf"], "no such command 'inf'"),
        (["fit", "--config", "absent.toml"], "absent.toml cannot be read: no such file"),
    ],
)
def test_what_the_command_line_refuses_is_said_as_all_errors_are(data, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    first, _, hint = result.stderr.strip().splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert hint.startswith(f"hint: `main {arguments[0]}")


def test_medians_of_rows_on_disk_are_refused_before_these_are_copied(data, monkeypatch):
    monkeypatch.setattr("skdare.cli._fitting.table_on_disk", lambda *_: pytest.fail("copied"))
    refused = run("fit", *NAMED, "--impute", "median", "--on-disk")
    assert refused.exit_code == 2
    assert "--impute finds medians" in refused.stderr
