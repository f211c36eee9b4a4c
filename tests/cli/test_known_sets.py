"""Studies of known sets: checked before the first step, told by a dry run, run to the report."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks are trained with torch")
pytest.importorskip("PIL.Image", reason="images are read with Pillow")
from command_line import run, run_json, run_ok
from skdare.bench import Log
from skdare.cli import main
from skdare.datasets import read
from skdare.features import backbone
from skdare.report import Published
from small_networks import normed
from small_sets import CLASSES, MINIATURES, PACS, old_vlcs, picture, write_domains

TINY = ("--backbone", "tiny", "--size", "16", "--device", "cpu")
SHORT = (*TINY, "--steps", "4", "--batch", "4", "--trials", "1", "--draws", "1")
BRIEF = ("--heads", "erm,dare", "--protocols", "paper,default", "--with", "none", "--jobs", "1")
# PACS in small: two images of seven classes in each domain.
SMALL = """
source = "PACS"
backbone = "tiny"
size = 16
steps = 4
batch = 4
trials = 1
shrinkage = 0.01

[data]
domains = ["art_painting", "cartoon", "photo", "sketch"]
classes = 7
total = 56

[data.images]
photo = 14
"""
# What others measured on it.
PUBLISHED = """
[published]
source = "an earlier study"
main.erm = { photo = 50.0 }
main.dare = { photo = 61.5 }
"""
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Empty current folder, beside a study of a small set."""
    write_domains(tmp_path / "PACS", PACS, 7)
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def is_empty() -> bool:
    """Whether nothing was written."""
    return not list(Path().iterdir())


def options_of(study: str) -> dict:
    """Options of `skdare reproduce` with the values that a study gives them."""
    return main.commands["reproduce"].make_context("reproduce", [study]).params


# What a study is


@pytest.mark.parametrize("study", MINIATURES)
def test_a_study_has_the_settings_of_the_paper(study):
    options = options_of(study)
    large = study == "domainnet"
    assert options["shrinkage"] == (0.01 if large else None)
    assert options["batch_exponents"] == ((3, 5) if large else (3, 5.5))
    assert options["check_every"] == (1000 if large else 300)
    settings = {name: options[name] for name in ("trials", "steps", "draws", "lr", "batch")}
    assert settings == {"trials": 3, "steps": 5001, "draws": 5, "lr": 5e-5, "batch": 32}
    assert "resnet50" in options["backbone"]


@pytest.mark.parametrize("study", MINIATURES)
def test_a_study_has_the_figures_of_the_paper_where_the_paper_has_it(study):
    options = options_of(study)
    data, published = options["study"].data, options["study"].published
    if study in {"camelyon17", "terra-incognita"}:
        assert not published
        assert options["ablations"] == []
        return
    figures = Published.of(published)
    assert list(figures.main) == ["erm", "reweighted", "groupdro", "irm", "dare"]
    for lines in (figures.main, figures.adjustment, figures.alignment):
        assert all(list(line) == data["domains"] for line in lines.values())
    # Mean gains of DARE over ERM in Table 1.
    gains = {"office-home": 3.2, "pacs": 1.0, "vlcs": -0.2, "domainnet": 2.3}
    means = {head: np.mean(list(figures.main[head].values())) for head in ("erm", "dare")}
    np.testing.assert_allclose(means["dare"] - means["erm"], gains[study], atol=0.05)
    table_one_alone = study == "domainnet"
    assert bool(figures.adjustment) != table_one_alone
    assert options["ablations"] == ([] if table_one_alone else ["whitening", "mean", "lambda"])


def test_digits_are_as_they_were():
    options = options_of("digits")
    assert options["study"].data == {}
    assert (options["steps"], options["check_every"], options["lr"]) == (400, 50, 3e-3)
    assert (options["backbone"], options["draws"], options["shrinkage"]) == ("tiny", 1, None)


# A dry run


@pytest.mark.parametrize("study", MINIATURES)
def test_a_dry_run_tells_what_would_be_done_and_does_nothing(here, study):
    source = MINIATURES[study](here / "sets")
    facts = run_json("reproduce", study, "--source", source, *TINY, "--as-found", "--dry-run")
    assert is_empty()
    domains = len(facts["domains"])
    assert facts["networks"] == 3 * 5 * (domains + 1)
    assert facts["classes"] == CLASSES[study]
    assert facts["images"] == sum(facts["domains"].values())
    assert facts["decoded"] == facts["images"] * 16 * 16 * 3
    # One byte for each of the 64 features of a store; one for each fold, one before fine-tuning.
    assert facts["disk"]["features"] == (3 * domains + 1) * facts["images"] * 64
    assert facts["hours"] is None


def test_a_dry_run_prints_lines_and_the_rate_that_its_hours_rest_on(here):
    result = run_ok("reproduce", here / "small.toml", "--dry-run", "--rate", "1")
    lines = dict(line.split(None, 1) for line in result.stdout.splitlines())
    assert lines["domains"] == "art_painting 14, cartoon 14, photo 14, sketch 14"
    assert lines["images"] == "56"
    assert lines["networks"].startswith("5 to train (4 domains held out and none, 1 trial, 1 draw)")
    assert lines["disk"].endswith(" free")
    passes = run_json("reproduce", here / "small.toml", "--dry-run")["passes"]
    minutes = f"{passes / 60:.1f} minutes for {passes:,} images through networks at 1 a second"
    assert lines["time"] == f"{minutes}; heads come on top"
    assert is_empty()


def test_a_dry_run_says_what_will_be_compared_and_with_what(here):
    (here / "small.toml").write_text(SMALL + PUBLISHED)
    study = ("reproduce", here / "small.toml", "--dry-run", "--ablations", "whitening,mean")
    lines = dict(line.split(None, 1) for line in run_ok(*study).stdout.splitlines())
    assert lines["protocols"] == "paper, default"
    assert lines["ablations"] == "whitening, mean"
    assert lines["published"] == "an earlier study"
    facts = run_json(*study, "--ablations", "none")
    assert (facts["protocols"], facts["ablations"]) == (["paper", "default"], [])
    refused = run("reproduce", here / "small.toml", "--ablations", "none,mean", "--dry-run")
    assert refused.exit_code == 2
    assert "none stands alone" in refused.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--steps", "9"), "was begun with steps 4, not 9"),
        (("--backbone", "efficientnet-lite0"), "was begun with backbone tiny"),
        # Before the network is looked for.
        (("--backbone", "hf:nowhere"), "was begun with backbone tiny, not hf:nowhere"),
    ],
)
def test_a_dry_run_refuses_other_settings_as_the_run_would(here, change, message):
    study = ("reproduce", here / "small.toml", *BRIEF, "--held-out", "photo", "--no-ceilings")
    run_ok(*study)
    for dry_run in ((), ("--dry-run",)):
        refused = run(*study, *change, *dry_run)
        assert refused.exit_code == 2
        assert message in refused.stderr


def test_a_dry_run_refuses_another_network_in_the_place_of_the_first(here, monkeypatch):
    study = ("reproduce", here / "small.toml", *BRIEF, "--held-out", "photo", "--no-ceilings")
    run_ok(*study)
    other = backbone("tiny", size=16, seed=1)
    monkeypatch.setattr("skdare.reproduce.backbone", lambda name, **options: other)
    refused = run(*study, "--dry-run")
    assert refused.exit_code == 2
    assert "was begun with weights" in refused.stderr


def test_a_run_in_the_folder_of_its_images_goes_on(here, monkeypatch):
    monkeypatch.chdir(here / "PACS")
    file = Path("my.toml")
    file.write_text(SMALL.replace('"PACS"', '"."').partition("[data]")[0])
    study = ("reproduce", file, *BRIEF, "--held-out", "photo", "--no-ceilings")
    first = run_ok(*study)
    assert Path("my.run/bench/report.html").exists()
    assert run_ok(*study).stdout == first.stdout
    assert set(run_json(*study, "--dry-run")["domains"]) == set(PACS)


def test_the_network_of_a_study_lies_where_its_file_says(here):
    (here / "net").mkdir()
    file = here / "small.toml"
    file.write_text(SMALL.replace('"tiny"', '"hf:net"'))
    assert options_of(str(file))["backbone"] == f"hf:{here / 'net'}"
    file.write_text(SMALL.replace('"tiny"', '"hf:someone/net"'))
    assert options_of(str(file))["backbone"] == "hf:someone/net"


def test_a_dry_run_counts_what_is_left(here):
    study = ("reproduce", here / "small.toml", *BRIEF)
    run_ok(*study, "--held-out", "photo", "--no-ceilings")
    facts = run_json(*study, "--dry-run")
    assert (facts["trained"], facts["networks"]) == (1, 4)
    assert facts["disk"]["features"] == 3 * 56 * 64 * 4  # photo and pretrained are there


def test_a_dry_run_counts_the_passes_that_measure_statistics_of_domains(here, monkeypatch):
    monkeypatch.setattr("skdare.reproduce.backbone", lambda name, **options: normed())
    study = ("reproduce", here / "small.toml", "--dry-run")
    more = run_json(*study, "--norm-stats", "domain")["passes"] - run_json(*study)["passes"]
    assert more == 5 * 56  # one for each fold, one before fine-tuning


def test_the_embedded_digits_have_a_dry_run(here):
    facts = run_json("reproduce", "digits", "--dry-run")
    assert (facts["images"], facts["networks"], facts["steps"]) == (1797, 15, 400)
    assert is_empty()


# What is found before the first step


def refused(*arguments) -> str:
    """What the command says that is wrong, before anything is written."""
    result = run("reproduce", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert is_empty()
    return result.stderr


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_what_is_wrong_with_a_set_is_found_before_the_first_step(here, dry):
    study = (here / "small.toml", *dry)
    photo = here / "PACS/photo"
    photo.rename(here / "photo")
    assert "no folder for domain `photo`; it has `art_painting`, `cartoon`, `sketch`" in refused(
        *study
    )
    (here / "photo").rename(photo)
    whole = (photo / "class_2/photo_1.jpg").read_bytes()
    (photo / "class_2/photo_1.jpg").write_bytes(whole[:-9])
    text = refused(*study)
    assert "1 of 56 images of" in text
    assert "photo/class_2/photo_1.jpg" in text
    assert text.endswith("or leave them out with --skip-unreadable\n")
    (photo / "class_2/photo_1.jpg").write_bytes(whole)
    (photo / "class_3").rename(photo / "class 3")
    text = refused(*study)
    assert "`class 3` and `class_3` look like one class" in text
    assert "domain `photo` has no `class_3`" in text
    assert text.endswith("take it as it is with --as-found\n")
    (photo / "class 3").rename(photo / "class_3")
    for i in range(9):
        (photo / "class_0" / f"more_{i}.png").write_bytes(picture(0, i))
    assert "domain `photo` has 23 images, where 14 are usual" in refused(*study)
    assert "note:" in run_ok("reproduce", *study[:1], "--as-found", "--dry-run").stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("main.dare", "main2.dare", "`published` in {} has an unknown key `main2`"),
        ("61.5", '"61.5"', "`published` in {} has main.dare.photo '61.5', and a number is needed"),
        ("61.5", "nan", "`published` in {} has main.dare.photo nan"),
        ("photo = 50", "foto = 50", "`published` in {} has figures of `foto`, which is no domain"),
        ("source", "ablations = 3\nsource", "`published` in {} has an unknown key `ablations`"),
    ],
)
def test_a_mistake_in_published_figures_is_named(here, old, new, message):
    file = here / "small.toml"
    file.write_text(SMALL + PUBLISHED.replace(old, new))
    assert message.format(file) in refused(file)


def test_an_ablation_that_there_is_not_is_refused(here):
    text = refused(here / "small.toml", "--ablations", "whitening,lamda")
    assert "no ablation is called `lamda`\n\nhint: did you mean `lambda`?" in text


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_backbone_that_will_not_do_is_named_before_images_are_looked_at(here, dry):
    file = here / "PACS/photo/class_2/photo_1.jpg"
    file.write_bytes(file.read_bytes()[:-9])
    study = (here / "small.toml", *dry)
    assert "there is no backbone 'small'" in refused(*study, "--backbone", "small")
    text = refused(*study, "--norm-stats", "domain")
    assert "--norm-stats is 'domain', but tiny has no batch norm" in text


def test_shrinkage_without_the_protocol_that_has_it_is_refused(here):
    default = (here / "small.toml", "--protocols", "default")
    text = refused(*default, "--shrinkage", "0.2", "--dry-run")
    assert "--shrinkage is that of the protocol paper, and --protocols is default" in text
    assert text.endswith("hint: add paper to --protocols, or leave --shrinkage out\n")
    # The study itself has one, for when it is needed.
    run_ok("reproduce", *default, "--dry-run")
    run_ok("reproduce", here / "small.toml", "--shrinkage", "0.2", "--dry-run")


def test_a_miniature_is_not_taken_for_the_set(here):
    text = refused("office-home", "--source", MINIATURES["office-home"](here / "sets"), *TINY)
    assert "domain `Art` has 130 images, where 2,427 are usual" in text


def test_digits_are_not_taken_for_another_set(here):
    assert "digits does not exist" in refused("office-home", "--source", "digits", *TINY)


def test_a_study_without_images_asks_for_its_folder(here):
    text = refused("office-home")
    assert "hint: give --source, the folder of Art, Clipart, Product, Real World" in text
    assert "and the embedded studies are camelyon17, digits, domainnet" in refused("office-hom")


def test_images_that_lists_do_not_name_are_a_note(here):
    text = SMALL.replace("[data]", '[data]\nlists = ["{domain}.txt"]')
    for domain in PACS:
        files = sorted((here / "PACS" / domain).rglob("*.*"))
        lines = [f"{domain}/{file.parent.name}/{file.name} 0" for file in files]
        (here / f"PACS/{domain}.txt").write_text("\n".join(lines[domain == "photo" :]))
    text = text.replace("total = 56", "").replace("photo = 14", "") + PUBLISHED
    (here / "small.toml").write_text(text)
    result = run_ok(
        "reproduce", here / "small.toml", *BRIEF, "--held-out", "photo", "--no-ceilings"
    )
    assert "note: 1 image of" in result.stderr
    assert "do not name: photo 1" in result.stderr
    assert "Warning" not in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("classes = 7", "class = 7", "has an unknown key `class`\n\nhint: keys are domains"),
        ("photo = 14", "foto = 14", "speaks of `foto`, which is not among its domains"),
        ("[data]", "[[data]]", "it must be a table"),
    ],
)
def test_a_mistake_in_the_layout_of_a_study_is_named(here, old, new, message):
    text = SMALL.replace(old, new)
    if new == "[[data]]":
        text = text.replace("\n[data.images]\nphoto = 14\n", "")
    (here / "small.toml").write_text(text)
    assert message in refused(here / "small.toml")


def test_a_disk_that_is_too_small_is_found_before_the_first_step(here, monkeypatch):
    study = (here / "small.toml",)
    needed = run_json("reproduce", *study, "--dry-run")
    disk = needed["disk"]["networks"] + needed["disk"]["features"]

    def with_free(size: int) -> None:
        usage = Usage(size, 0, size)
        monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)

    with_free(disk - 1)
    assert "GB are free\n\nhint: choose another disk, --dtype uint8" in refused(*study)
    told = run("reproduce", *study, "--dry-run")
    assert told.exit_code == 2
    assert told.stdout.startswith("study")
    with_free(disk)
    run_ok("reproduce", *study, "--dry-run")
    assert (
        "GB will go to small.run"
        in run("reproduce", *study, "--dry-run", "--cache", "pixels").stderr
    )
    with_free(disk + needed["decoded"])
    run_ok("reproduce", *study, "--dry-run", "--cache", "pixels")
    assert is_empty()


def test_images_that_do_not_fit_memory_are_told_to_take_a_cache(here, monkeypatch):
    monkeypatch.setattr("skdare.features.training.workload._memory", lambda: 1000)
    text = refused(here / "small.toml")
    assert text.endswith("hint: give a folder for them with --cache FOLDER, or a smaller --size\n")


# A whole run


def test_a_miniature_runs_to_its_report_and_is_found_again(here):
    root = old_vlcs(here / "sets")
    study = ("reproduce", "vlcs", "--source", here / "sets", *SHORT, *BRIEF, "--as-found")
    first = run_ok(*study)
    assert Path("vlcs.run/bench/report.html").exists()
    assert "where 1,415 are usual" in first.stderr
    records = Log("vlcs.run/bench").read()
    assert {record.held_out for record in records} == {"Caltech101", "LabelMe", "SUN09", "VOC2007"}
    assert run_ok(*study).stdout == first.stdout
    # The run knows how its images lie, wherever they are by now.
    X = read("vlcs.run/features/without-SUN09-0").X
    shutil.rmtree("vlcs.run/features")
    shutil.move(root, here / "elsewhere")
    (here / "elsewhere/SUN").rename(here / "elsewhere/sun09")
    run_ok("extract", "vlcs.run", "--source", here / "elsewhere", "--dtype", "uint8")
    np.testing.assert_array_equal(read("vlcs.run/features/without-SUN09-0").X, X)


def test_shrinkage_is_that_of_the_papers_protocol_alone(here):
    run_ok("reproduce", here / "small.toml", *BRIEF, "--held-out", "photo", "--no-ceilings")
    shrinkage = {
        record.protocol: record.values.get("option:shrinkage")
        for record in Log("small.run/bench").read()
        if record.head == "dare"
    }
    assert shrinkage == {"paper": 0.01, "default": 0.9}


def test_published_figures_and_ablations_are_in_the_report_of_a_run(here):
    file = here / "small.toml"
    file.write_text(SMALL.replace("[data]", 'ablations = "whitening"\n[data]', 1) + PUBLISHED)
    study = ("reproduce", file, *BRIEF, "--held-out", "photo", "--no-ceilings")
    printed = run_ok(*study).stdout
    records = Log("small.run/bench").read()
    ablated = {record.protocol for record in records if record.study == "ablation:whitening"}
    assert ablated == {"paper"}
    # The ablation has the shrinkage of the study.
    assert {
        record.values["option:shrinkage"]
        for record in records
        if record.study == "ablation:whitening" and record.head == "dare"
    } == {0.01}
    assert "Accuracy (%) on the held-out domain; in brackets an earlier study" in printed
    assert "(+11.5)" in printed
    page = Path("small.run/bench/report.html").read_text()
    assert page.count("an earlier study</span>") == 1  # under the paper's protocol alone
    # It is kept for reports that are written later.
    Path("small.run/bench/report.html").unlink()
    run_ok("report", "small.run/bench")
    assert Path("small.run/bench/report.html").read_text() == page
    # A study without figures leaves none behind.
    file.write_text(SMALL)
    assert "an earlier study" not in run_ok(*study).stdout
    assert "an earlier study" not in Path("small.run/bench/report.html").read_text()


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (("--heads", "erm"), "figures of `main.dare` will not be shown; the run does not measure"),
        (
            ("--protocols", "default"),
            "figures will not be shown; they belong to the protocol paper",
        ),
    ],
)
def test_published_figures_that_stand_beside_nothing_are_a_note(here, options, note):
    file = here / "small.toml"
    file.write_text(SMALL + PUBLISHED)
    assert note in run_ok("reproduce", file, "--dry-run", *options).stderr
    assert "published figures" not in run_ok("reproduce", file, "--dry-run").stderr


def test_a_run_is_one_set_of_data_though_its_study_is_renamed(here):
    brief = (*BRIEF, "--held-out", "photo", "--no-ceilings", "--out", "one.run")
    run_ok("reproduce", here / "small.toml", *brief, "--protocols", "paper")
    (here / "small.toml").rename(here / "other.toml")
    run_ok(
        "reproduce", here / "other.toml", *brief, "--protocols", "paper", "--with", "diagnostics"
    )
    assert {record.data for record in Log("one.run/bench").read()} == {"small"}


def test_ablations_go_with_the_first_protocol_where_the_papers_is_not_asked_for(here):
    default = ("--protocols", "default", "--ablations", "whitening", "--with", "none")
    study = (here / "small.toml", "--heads", "erm,dare", *default)
    run_ok("reproduce", *study, "--held-out", "photo", "--no-ceilings")
    ablated = [r for r in Log("small.run/bench").read() if r.study == "ablation:whitening"]
    assert {record.protocol for record in ablated} == {"default"}
