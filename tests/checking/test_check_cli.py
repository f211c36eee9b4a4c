"""`skdare check`, and the checks before a fit, a bench and a diagnosis."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from command_line import run, run_json, run_ok
from skdare import load
from skdare.datasets import DomainData, make_latent_domains, write


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A table as it should be, one of mixed scales, and one with labels missing."""
    folder = tmp_path_factory.mktemp("checked")
    data = make_latent_domains(4, 60, 4, shift=0.5, random_state=0)
    y = (data.y > np.median(data.y)).astype(int)
    domains = np.array(["north", "south", "east", "west"])[data.domains]
    np.savez(folder / "clean.npz", X=data.X, y=y, domain=domains)
    np.savez(folder / "mixed.npz", X=data.X * [1e6, 1, 1, 1], y=y, domain=domains)
    labels = y.astype(str)
    labels[:7] = ""
    np.savez(folder / "partly.npz", X=data.X, gas=labels, domain=domains)
    lines = [f"{a},{b},{i},{k}" for (a, b, *_), i, k in zip(data.X, y, domains, strict=True)]
    (folder / "numbered.csv").write_text(
        "a,b,y,site,visit\n" + "\n".join(f"{line},{i}" for i, line in enumerate(lines))
    )
    return folder


def test_a_clean_table_is_fine_and_the_exit_code_of_findings_is_zero(tables):
    assert run_ok("check", tables / "clean.npz").stdout.endswith(
        "4 domains, target taken as classes: fine\n"
    )
    result = run_ok("check", tables / "numbered.csv")
    assert "problem: column 'visit' counts rows" in result.stdout
    assert run("check", tables / "absent.npz").exit_code == 2


def test_the_object_of_a_check_has_its_findings(tables):
    found = run_json("check", tables / "numbered.csv")
    assert [each["name"] for each in found["findings"]] == ["row number"]
    assert found["findings"][0]["columns"] == ["visit"]


def test_a_check_imports_neither_scikit_learn_nor_scipy(tables):
    program = (
        "import sys; from skdare.cli import main\n"
        f"main(['check', {str(tables / 'clean.npz')!r}], standalone_mode=False)\n"
        "print(sorted({'sklearn', 'scipy', 'rich'} & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert output.endswith("fine\n[]\n")


def test_rows_without_a_label_are_dropped_when_asked(tables, tmp_path):
    path = tables / "partly.npz"
    refused = run("fit", path, "--target", "gas", "--out", tmp_path / "h.safetensors")
    assert refused.exit_code == 2
    assert "hint: leave those rows out with --drop-missing" in refused.stderr
    assert "7 rows without a label" in run_ok("check", path, "--target", "gas").stdout
    dropped = run_ok("check", path, "--target", "gas", "--drop-missing")
    assert dropped.stdout.startswith("233 rows")
    assert "note: 7 rows without a label, of 240, left out" in dropped.stderr
    options = ["--head", "erm", "--out", tmp_path / "h.safetensors", "--drop-missing"]
    fitted = run_json("fit", path, "--target", "gas", *options)
    assert fitted["rows"] == 233
    assert fitted["classes"] == ["0", "1"]


def test_features_of_mixed_scales_are_standardised_unless_told_not_to(tables, tmp_path):
    def prepared(table, *options):
        out = tmp_path / "h.safetensors"
        result = run_ok("fit", tables / table, "--head", "erm", "--out", out, *options)
        return hasattr(load(out), "steps"), "features are standardised" in result.stderr

    assert prepared("clean.npz") == (False, False)
    assert prepared("mixed.npz") == (True, True)
    assert prepared("mixed.npz", "--quiet") == (True, False)
    assert prepared("mixed.npz", "--no-standardize") == (False, False)
    assert prepared("clean.npz", "--standardize") == (True, False)


def test_a_bench_standardises_mixed_scales_by_itself(tables, tmp_path):
    options = ["--heads", "erm", "--with", "none", "--trials", "1", "--l2", "0.01", "--jobs", "1"]

    def statistics(*more):
        out = tmp_path / "-".join(map(str, ["run", *more]))
        return run_json("bench", tables / "mixed.npz", *options, "--out", out, *more)["statistics"]

    assert statistics() == statistics("--standardize") != statistics("--no-standardize")


def test_findings_are_printed_once_above_the_table(tables, tmp_path):
    options = ["--heads", "erm", "--with", "none", "--trials", "1", "--l2", "0.01", "--jobs", "1"]
    result = run_ok("bench", tables / "numbered.csv", *options, "--out", tmp_path / "run")
    assert result.stderr.count("column 'visit' counts rows") == 1
    assert "numbered.csv` lists all" in result.stderr
    quiet = run_ok("bench", tables / "numbered.csv", *options, "--out", tmp_path / "q", "--quiet")
    assert "visit" not in quiet.stderr


def test_a_name_that_is_nearly_right_is_suggested_and_few_columns_are_listed(tmp_path):
    path = tmp_path / "wide.csv"
    columns = [f"feature_{i}" for i in range(100)]
    path.write_text(",".join([*columns, "gas", "site"]) + "\n" + ",".join(["1"] * 102) + "\n")
    result = run("check", path, "--target", "Gass")
    assert result.exit_code == 2
    assert "hint: did you mean 'gas'?" in result.stderr
    assert "… (92 more), feature_99, gas, site" in result.stderr
    assert "feature_10" not in result.stderr


def test_a_cell_that_is_not_a_number_is_located_by_line_and_column(tmp_path):
    path = tmp_path / "spoilt.csv"
    rows = [f"{i},{0.5 * i},{i % 2},{'ab'[i // 20]}" for i in range(40)]
    rows[17] = rows[17].replace("17", "l7", 1)
    path.write_text("\n".join(["age,b,y,site", *rows]))
    assert "number: line 19 has 'l7'" in run_ok("check", path).stderr
    refused = run("check", path, "--feature-key", "age,b")
    assert refused.exit_code == 2
    assert "number: line 19 has 'l7'" in refused.stderr


def test_features_without_a_target_are_looked_at_all_the_same(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n3,4\n5,6\n")
    fields = run_json("features", "info", path)
    assert (fields["rows"], fields["features"], fields["classes"]) == (3, 2, None)
    result = run_ok("features", "info", path)
    assert "3 rows of 2 features" in result.stdout
    assert "no target found" in result.stderr


def test_groups_are_found_by_the_name_of_their_column(tables, tmp_path):
    arrays = dict(np.load(tables / "clean.npz"))
    path = tmp_path / "grouped.npz"
    np.savez(path, **arrays, patient=np.arange(240) % 60)
    text = "60 of 60 groups have rows in several domains"
    assert f"caution: by column 'patient', {text}" in run_ok("check", path).stdout
    assert f"caution: {text}" in run_ok("check", path, "--groups", "patient").stdout


def test_a_store_on_disk_is_checked_and_standardised_as_a_file_is(tables, tmp_path):
    store = tmp_path / "store"
    run_ok("features", "convert", tables / "mixed.npz", store)
    assert "very different scales" in run_ok("check", store).stdout
    result = run_ok("fit", store, "--head", "erm", "--out", tmp_path / "h.safetensors")
    assert "features are standardised" in result.stderr


@pytest.fixture(scope="module")
def odd_tables(tmp_path_factory):
    """Tables of grades, of one class a row, of paired samples, and with a domain of one row."""
    folder = tmp_path_factory.mktemp("odd")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    X[40:80, 1] = 0.0
    site = np.repeat(["a", "b", "c"], 40)
    alone = np.where(np.arange(120) == 0, "alone", site.astype("<U5"))
    grades = rng.integers(19, size=120)
    np.savez(folder / "grades.npz", X=X, y=grades, domain=site)
    np.savez(folder / "ids.npz", X=X, y=[f"p{i}" for i in range(120)], domain=site)
    sample = np.arange(120) % 40
    np.savez(folder / "paired.npz", X=X, y=grades % 2, domain=site, sample=sample)
    np.savez(folder / "alone.npz", X=X, y=grades % 2, domain=alone)
    holes = np.where(np.arange(360).reshape(120, 3) == 7, np.nan, X)
    holes[:, 1] += 200.0 * (holes[:, 1] != 0.0)
    np.savez(folder / "holes.npz", X=holes, y=grades % 2, domain=site)
    return folder


def test_every_command_says_that_whole_numbers_are_taken_as_classes(odd_tables, tmp_path):
    path = odd_tables / "grades.npz"
    said = "y is taken as 19 classes; if they are numbers, --task regression"
    out = ["--head", "erm", "--out", tmp_path / "h.safetensors"]
    new = ["--held-out", "a", "--head", "dare", "--no-rehearsal"]
    assert said in run_ok("check", path).stderr
    assert said in run_ok("fit", path, *out).stderr
    assert said in run_ok("diagnose", path, *new).stderr
    assert said not in run_ok("check", path, "--task", "regression").stderr
    assert said not in run_ok("fit", path, *out, "--quiet").stderr


@pytest.mark.parametrize("command", [["fit"], ["bench"], ["diagnose", "--held-out", "a"]])
def test_a_target_that_names_rows_is_refused_before_any_work(odd_tables, command, tmp_path):
    name, *options = command
    if name != "diagnose":
        options += ["--out", str(tmp_path / "out")]
    refused = run(name, odd_tables / "ids.npz", *options)
    assert refused.exit_code == 2
    assert "120 classes in 120 rows: every row is its own class" in refused.stderr
    assert "hint: name another column with --target" in refused.stderr
    assert not list(tmp_path.iterdir())


def test_a_check_advises_only_what_can_be_done_about_groups(odd_tables, tmp_path):
    path = odd_tables / "paired.npz"
    finding = next(
        each
        for each in run_json("check", path, "--groups", "sample")["findings"]
        if each["name"] == "groups"
    )
    assert "fit without groups" in finding["remedy"]
    options = ["--heads", "erm", "--with", "none", "--trials", "1", "--l2", "0.01"]
    run_ok(
        "bench",
        path,
        "--groups",
        "sample",
        "--test-on",
        "reserved",
        *options,
        "--out",
        tmp_path / "r",
    )
    refused = run("diagnose", path, "--groups", "sample", "--held-out", "a")
    assert "every row to train on is of a group that is held out" in refused.stderr


def test_a_domain_of_one_row_is_left_out_as_the_hint_says(odd_tables, tmp_path):
    out = ["--head", "dare", "--out", tmp_path / "h.safetensors"]
    refused = run("fit", odd_tables / "alone.npz", *out)
    assert "domain 'alone' has 1 row" in refused.stderr
    assert "--min-rows 2" in refused.stderr
    fitted = run_ok("fit", odd_tables / "alone.npz", *out, "--min-rows", "2")
    assert "alone'" not in fitted.stderr


def test_a_check_names_missing_values_and_columns_constant_in_a_domain(odd_tables):
    findings = {
        each["name"]: each for each in run_json("check", odd_tables / "holes.npz")["findings"]
    }
    assert findings["missing"]["level"] == "problem"
    assert "--impute median" in findings["missing"]["remedy"]
    assert findings["constant in a domain"]["columns"] == ["feature 1"]
    assert findings["constant in a domain"]["domains"] == ["b"]


def test_messages_about_columns_show_the_last_ones_and_cells_that_are_no_numbers(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join([*(f"f{i}" for i in range(20)), "outcome", "place"]) + "\n")
    refused = run("check", path).stderr
    assert "f19, outcome, place" in refused
    assert "hint: name them with --target and --domains" in refused
    rows = [f"{i};{i},5;{i * i};{i % 2};{'ab'[i % 2]}" for i in range(40)]
    rows[3] = "54 years;3,5;9;1;b"
    path.write_text("age;dose;size;y;site\n" + "\n".join(rows) + "\n")
    stderr = run("check", path).stderr
    assert "'age' is text, for 1 of 40 cells is not a number: line 5" in stderr
    assert "'dose' is text, for it has decimal commas: line 2" in stderr


def test_a_finding_names_the_line_of_a_file_and_the_row_of_an_array(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[13, 1] = 1e6
    domains = np.repeat(["a", "b"], 30)
    write(tmp_path / "t.csv", DomainData(X, np.arange(60) % 2, domains))
    write(tmp_path / "t.npz", DomainData(X, np.arange(60) % 2, domains))
    assert "first of all line 15 by" in run_ok("check", tmp_path / "t.csv").stdout
    assert "row 13 (counted from 0) by" in " ".join(
        run_ok("check", tmp_path / "t.npz").stdout.split()
    )
    findings = run_json("check", tmp_path / "t.csv")["findings"]
    assert [each["rows"] for each in findings if each["name"] == "outlier"] == [[13]]


def test_the_check_that_a_fit_hints_at_works_when_pasted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    values = enumerate(rng.normal(size=(60, 2)).tolist())
    lines = [f"{a},{b},{i},{i % 2},{'xy'[i // 30]}" for i, (a, b) in values]
    Path("my rows.csv").write_text("\n".join(["a,b,number,is it,the place", *lines]))
    named = ("--target", "is it", "--domains", "the place")
    fitted = run_ok("fit", "my rows.csv", *named, "--head", "erm", "--out", "h.safetensors")
    hint = re.search(r"`(skdare check [^`]*)` lists all", fitted.stderr)
    assert hint is not None
    command = shlex.split(hint[1])
    assert command[2:] == ["my rows.csv", *named]
    assert "column 'number' counts rows" in run_ok(*command[1:]).stdout
    assert "--feature-key" in fitted.stderr


@pytest.mark.parametrize(
    ("last", "message"),
    [("3,4,0", "line 4 of .* has 3 cells"), ('3,4,0,"b', "as CSV from line 4 on")],
)
def test_a_file_that_ends_within_a_line_names_it(tmp_path, last, message):
    (tmp_path / "t.csv").write_text(f"a,b,y,site\n1,2,0,a\n2,3,1,b\n{last}")
    refused = run("check", tmp_path / "t.csv")
    assert refused.exit_code == 2
    assert re.search(message, refused.stderr)
