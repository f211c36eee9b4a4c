"""`skdare reproduce` and `skdare theory`: what they say, refuse, write, and go on with."""

from __future__ import annotations

import os
import shutil
from html import unescape
from pathlib import Path

import pytest

from commands import answer, run, snapshot, text
from skdare.bench.record import RecordFile
from skdare.cli.outputs import writable

STUDY = """
backbone = "tiny"
size = 16
trials = 1
steps = 4
check-every = 2
source = "SOURCE"

[data]
domains = ["art_painting", "cartoon", "photo", "sketch"]
classes = 7

[data.images]
photo = 14

[published]
source = "a paper"
main.dare = { photo = 50 }
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A miniature of PACS and its study."""
    pytest.importorskip("torch", reason="networks are trained with torch")
    pytest.importorskip("PIL.Image", reason="images are read with Pillow")
    from small_sets import PACS, write_domains

    place = tmp_path_factory.mktemp("made")
    write_domains(place / "PACS", PACS, 7)
    return place


@pytest.fixture
def here(made, tmp_path) -> Path:
    shutil.copytree(made / "PACS", tmp_path / "PACS")
    (tmp_path / "small.toml").write_text(STUDY.replace("SOURCE", str(tmp_path / "PACS")))
    return tmp_path


def refused(*words: object, folder: Path) -> str:
    before = snapshot(folder)
    done = run(*words, folder=folder)
    assert done.code == 2, done.err
    assert len(done.errors) == 1
    assert snapshot(folder) == before
    return " ".join(done.err.split())


def test_a_dry_run_says_what_would_be_done_and_does_nothing(here):
    before = snapshot(here)
    facts = answer("reproduce", "small.toml", "--dry-run", folder=here)
    assert snapshot(here) == before
    assert facts["domains"] == dict.fromkeys(("art_painting", "cartoon", "photo", "sketch"), 14)
    assert (facts["networks"], facts["trained"], facts["classes"]) == (5, 0, 7)
    assert facts["decoded_bytes"] == 56 * 16 * 16 * 3
    assert facts["feature_bytes"] == 5 * 56 * 64 * 4
    assert facts["hours"] is None


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_what_is_wrong_with_a_set_is_found_before_the_first_step(here, dry):
    study = ("reproduce", "small.toml", *dry)
    photo = here / "PACS/photo"
    photo.rename(here / "photo")
    assert "no folder for domain `photo`" in refused(*study, folder=here)
    (here / "photo").rename(photo)
    file = photo / "class_2/photo_1.jpg"
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    assert "1 of 56 images" in refused(*study, folder=here)
    file.write_bytes(whole)
    (photo / "class_3").rename(photo / "class 3")
    assert "`class 3` and `class_3` look like one class" in refused(*study, folder=here)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pacs"], "there is no source for pacs hint: give --source, the folder of 'art_painting'"),
        (["pacz"], "no study is called 'pacz' hint: did you mean 'pacs'?"),
        (["small.toml", "--ablations", "lamda"], "no ablation is called 'lamda'"),
        (["small.toml", "--held-out", "foto"], "no domain `foto` to hold out"),
        (["small.toml", "--trials", "0"], "trials is 0"),
        (["pacs", "--source", "PACS", "--dry-run"], "is not as expected: domain `art_painting`"),
    ],
)
def test_a_mistake_ends_a_study_before_any_work(here, monkeypatch, words, message):
    if words[0] == "pacs" and len(words) > 1:  # without the weights of its network
        from skdare.features import run as module
        from skdare.features.backbones.by_name import backbone

        monkeypatch.setattr(module, "backbone", lambda name, **options: backbone("tiny"))
    assert message in refused("reproduce", *words, folder=here)


@pytest.mark.slow
def test_a_study_ends_with_its_tables_and_again_changes_nothing(here):
    words = ("reproduce", "small.toml", "--ablations", "whitening")
    first = answer(*words, folder=here)
    records = RecordFile(here / "small.run/bench").records()
    # Heads, ceilings on two kinds of features, diagnostics, an ablation and two networks.
    assert len(records) == 4 * (6 + 4 + 4 + 3 + 2)
    page = (here / first["files"][0]).read_text()
    for title in ("Accuracy in %", "Networks and ceilings", "Ablation: whitening", "a paper"):
        assert title in page
    before = snapshot(here)
    assert answer(*words, folder=here) == first
    changed = {path for path, content in snapshot(here).items() if before.get(path, b"") != content}
    assert changed == set()
    assert len(answer("reproduce", "small.toml", "--dry-run", folder=here)["domains"]) == 4
    text("bench", "small.run/features/without-photo-0", "--heads", "erm", folder=here)


@pytest.mark.slow
def test_the_theory_is_printed_and_written_as_a_page(tmp_path):
    fields = answer("theory", "--quick", folder=tmp_path)
    verdicts = [statement["told"] for statement in fields["statements"]]
    assert len(verdicts) == 41
    assert {name: verdicts.count(name) for name in set(verdicts)} == {
        "holds": 14,
        "holds in part": 18,
        "does not hold as printed": 9,
    }
    page = unescape((tmp_path / "theory.html").read_text())
    assert page.count("<picture>") > 9
    assert writable(tmp_path / "theory.html", "page").replaces
    assert all(statement["where"] in page for statement in fields["statements"])


def test_a_page_that_cannot_be_written_is_refused_before_any_work(tmp_path):
    assert "name must end in .html" in refused("theory", "--out", "x.txt", folder=tmp_path)
    assert "seed is -1" in refused("theory", "--seed", "-1", folder=tmp_path)
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed").chmod(0o500)
    if not os.access(tmp_path / "closed", os.W_OK):
        assert "cannot be written" in refused("theory", "--out", "closed/x.html", folder=tmp_path)
