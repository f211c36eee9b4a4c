"""The command line: data on stdout, mistakes exit with 2, help with an example."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import skdare
from command_line import run
from skdare.bench import Log
from skdare.bench._heads import HEADS
from skdare.cli import main
from skdare.datasets import make_latent_domains


@pytest.fixture
def features(tmp_path, monkeypatch):
    """A small file of features, in a folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    data = make_latent_domains(3, 60, 4, random_state=0)
    names = np.array(["art", "photo", "sketch"])[data.domains]
    np.savez("f.npz", X=data.X, y=data.y, domains=names)
    return "f.npz"


FAST = ("--heads", "erm,dare", "--trials", "2", "--l2", "0.01", "--jobs", "1")


def test_version_is_the_packages():
    assert run("--version").output.strip() == f"skdare, version {skdare.__version__}"


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_has_help_with_an_example(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"skdare {command}" in result.output


def test_bench_prints_a_table_and_keeps_records(features):
    result = run("bench", features, *FAST)
    assert result.exit_code == 0
    for word in ("art", "photo", "sketch", "ERM", "DARE", "average", "worst domain"):
        assert word in result.stdout
    assert "f.bench" in result.stderr
    assert len(Log("f.bench").read()) > 12


def test_the_same_command_again_runs_nothing_and_prints_the_same(features):
    first = run("bench", features, *FAST)
    written = Log("f.bench").path.read_bytes()
    second = run("bench", features, *FAST)
    assert second.stdout == first.stdout
    assert "are on file" in second.stderr
    assert Log("f.bench").path.read_bytes() == written


def test_quiet_prints_nothing_on_stderr(features):
    assert run("bench", features, *FAST, "--quiet").stderr == ""


def test_ablate_and_report_go_on_in_the_same_folder(features):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    run("bench", features, *FAST)
    swept = run(
        "ablate", "lambda", features, "--trials", "2", "--l2", "0.01", "--values", "0,1", "--jobs=1"
    )
    assert swept.exit_code == 0
    assert "IRM" in swept.stdout
    written = run("report", "f.bench")
    assert written.stdout.split()[0] == "f.bench/report.html"
    with open("f.bench/report.html", encoding="utf-8") as page:
        assert "art" in page.read()


def test_features_may_differ_by_held_out_domain(features):
    result = run("bench", "art=f.npz", "sketch=f.npz", "--name", "both", *FAST)
    assert result.exit_code == 0
    assert {record.held_out for record in Log("both.bench").read()} == {"art", "sketch"}


def test_options_come_from_a_file_and_the_command_line_overrules_it(features, tmp_path):
    (tmp_path / "bench.toml").write_text(
        'features = "f.npz"\nheads = ["erm", "dare"]\ntrials = 3\nl2 = 0.01\nwith = "none"\n'
        'out = "run"\n\n[set.dare]\nshrinkage = 0.5\nestimate_mean = true\n\n'
        "[end-to-end]\nart = 97.5\n"
    )
    assert run("bench", "--config", "bench.toml", "--trials", "1").exit_code == 0
    records = Log(tmp_path / "run").read()
    assert {record.trial for record in records} == {0}
    dare = [record for record in records if record.head == "dare"]
    assert {record.values["option:shrinkage"] for record in dare} == {0.5}
    assert {record.values["option:estimate_mean"] for record in dare} == {True}
    given = [record for record in records if record.status == "given"]
    assert [(record.held_out, record.score) for record in given] == [("art", 0.975)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench", "absent.npz"], "absent.npz does not exist"),
        (["bench", "f.npz", "--held-out", "sketches"], "held-out domain `sketches` is not"),
        (["bench", "f.npz", "--heads", "erm,darre"], "did you mean `dare`"),
        (["bench", "f.npz", "--target", "labels"], "labels"),
        (["bench", "f.npz", "f.npz"], "name the held-out domain of each"),
        (["bench", "f.npz", "--set", "dare.shrinkage"], "is not HEAD.OPTION=VALUE"),
        (["bench", "f.npz", "--set", "dare.shrinkag=1"], "did you mean 'shrinkage'"),
        (["bench", "f.npz", "--end-to-end", "art=x"], "is not DOMAIN=SCORE"),
        (["bench", "f.npz", "--l2-grid", "a,b"], "is not numbers"),
        (["bench", "f.npz", "--config", "wrong.toml"], "did you mean `trials`"),
        (["bench", "f.npz", "--config", "broken.toml"], "cannot be read as TOML"),
        (["bench", "f.npz", "--trials", "0"], "trials"),
        (["bench", "f.npz", "--with", "ceiling"], "--with is 'ceiling'"),
        (["bench", "f.npz", "--held-out", ","], "no domain is named"),
        (["bench", "f.npz", "--set", "dare.shrinkage=5"], "shrinkage is 5"),
        (["bench", "f.npz", "--out", "f.npz"], "f.npz"),
        (["bench", "f.npz", "--config", "number.toml"], "must be a path"),
        (["bench", "f.npz", "--config", "list.toml"], "must be a path"),
        (["bench", "f.npz", "--config", "table.toml"], "must be a path"),
        (["report", "f.npz", "--formats", ""], "no format is named"),
        (["ablate", "lamda", "f.npz"], "lambda"),
        (["ablate", "whitening", "f.npz", "--values", "1"], "sweeps nothing"),
        (["report", "absent.bench"], "there are no records"),
        (["report", "f.npz"], "f.npz"),
        (["demo", "--trials", "0"], "trials"),
    ],
)
def test_a_mistake_exits_with_two_and_says_what_to_do(features, tmp_path, arguments, message):
    (tmp_path / "wrong.toml").write_text("trails = 3\n")
    (tmp_path / "broken.toml").write_text("trials = \n")
    (tmp_path / "number.toml").write_text("features = 5\n")
    (tmp_path / "list.toml").write_text("out = []\n")
    (tmp_path / "table.toml").write_text("out = {}\n")
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert not list(tmp_path.glob("*.bench"))


def test_when_every_head_fails_the_exit_code_is_one(features):
    data = make_latent_domains(2, 60, 4, random_state=0)
    names = np.array(["art", "photo"])[data.domains]
    np.savez("one.npz", X=data.X, y=(names == "art").astype(int), domains=names)
    result = run("bench", "one.npz", *FAST, "--with", "none")
    assert result.exit_code == 1
    assert "needs at least 2 classes" in result.stderr


def test_what_numbers_were_taken_for_is_said(features):
    assert "y is taken as 2 classes" in run("bench", features, *FAST).stderr


def test_every_head_of_the_bench_is_on_its_page():
    page = Path(__file__).resolve().parents[2] / "docs/howto/compare-heads.md"
    for name in HEADS:
        assert f"`{name}`" in page.read_text(encoding="utf-8"), name
