"""Commands that learn: train, extract, reproduce; stopped anywhere, they end as if they had not."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks are trained with torch")
Image = pytest.importorskip("PIL.Image", reason="images are read with Pillow")
from command_line import run, run_ok  # noqa: E402
from interrupts import stopped_command  # noqa: E402
from skdare.bench import Log  # noqa: E402
from skdare.cli import main  # noqa: E402
from skdare.datasets import read, store_info  # noqa: E402
from skdare.features import Hyperparameters, Recipe, backbone  # noqa: E402
from skdare.features.backbones.by_name import recorded_name  # noqa: E402
from skdare.features.training.folder import TrainingFolder  # noqa: E402
from small_networks import normed, two_processes  # noqa: E402

NETWORK = ("--backbone", "tiny", "--size", "16")
SMALL = (*NETWORK, "--steps", "6", "--batch", "4", "--trials", "1")
DOMAINS = ("art", "photo", "sketch")
CLASSES = ("cat", "dog")
STUDY = """
source = "pictures"
backbone = "tiny"
size = 16
steps = 6
batch = 4
trials = 1
heads = ["erm", "dare"]
protocols = "default"
with = "none"
jobs = 1
"""


def draw_pictures(folder: Path) -> None:
    """Eight small images of each class in each domain; their redness shows the class."""
    rng = np.random.default_rng(0)
    for domain in DOMAINS:
        for number, name in enumerate(CLASSES):
            (folder / domain / name).mkdir(parents=True)
            for i in range(8):
                pixels = rng.integers(0, 256, (12, 14, 3))
                pixels[..., 0] = pixels[..., 0] // 2 + 100 * number
                picture = Image.fromarray(pixels.astype(np.uint8))
                picture.save(folder / domain / name / f"{i}.png")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The pictures as a folder, a zip and a table, a study, and a run on the folder."""
    place = tmp_path_factory.mktemp("made")
    draw_pictures(place / "pictures")
    files = sorted((place / "pictures").rglob("*.png"))
    with zipfile.ZipFile(place / "pictures.zip", "w") as archive:
        for file in files:
            archive.write(file, file.relative_to(place / "pictures"))
    rows = [f"{f.relative_to(place)},{f.parts[-2]},{f.parts[-3]}" for f in files]
    (place / "table.csv").write_text("\n".join(["path,animal,style", *rows]))
    (place / "study.toml").write_text(STUDY)
    run_ok("train", place / "pictures", *SMALL, "--out", place / "pictures.run")
    return place


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """Empty current folder, with copies of the pictures, the study and the run one level above."""
    for name in ("pictures", "pictures.run"):
        shutil.copytree(made / name, tmp_path / name)
    for name in ("pictures.zip", "table.csv", "study.toml"):
        shutil.copy(made / name, tmp_path)
    settings = tmp_path / "pictures.run/run.json"
    settings.write_text(settings.read_text().replace(str(made), str(tmp_path)))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def networks(folder) -> dict[str, str]:
    """Hash of the weights of every network of a run."""
    return {record.job.name: record.network for record in TrainingFolder(folder).records()}


def contents(folder: Path) -> dict[Path, int]:
    """Every file, with the time when it was written."""
    return {p: p.stat().st_mtime_ns for p in Path(folder).rglob("*") if p.is_file()}


def results(folder) -> list[str]:
    """Records of a bench, without the time that each took."""
    records = [json.loads(record.to_line()) | {"seconds": 0} for record in Log(folder).read()]
    return sorted(json.dumps(record, sort_keys=True) for record in records)


def environment() -> dict[str, str]:
    """Environment with as many threads as here, so that sums are taken in the same order."""
    return {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}


NETWORK_DONE = "skdare.features.training.folder:TrainingFolder.finish"
TRIAL_DONE = "skdare.bench._log:Writer.append"


def stopped(by: signal.Signals, place: str, *arguments) -> subprocess.CompletedProcess[str]:
    """Run a command that stops itself when a network or a trial is done."""
    return stopped_command(by, place, 1, *arguments, env=environment())


# Training


@pytest.mark.parametrize(
    "source",
    [("pictures.zip",), ("table.csv", "--label-column", "animal", "--domain-column", "style")],
)
def test_a_folder_a_zip_and_a_table_train_the_same_networks(here, source):
    place, *columns = source
    run_ok("train", here / place, *columns, *SMALL, "--out", "other.run")
    assert networks("other.run") == networks(here / "pictures.run")
    assert len(networks("other.run")) == len(DOMAINS) + 1


def test_the_run_is_called_after_its_source(here):
    run("train", here / "pictures.zip", *SMALL, "--held-out", "art", "--no-ceilings")
    assert [path.name for path in Path().iterdir()] == ["pictures.run"]
    assert list(networks("pictures.run")) == ["without-art-0-0"]


def test_the_same_command_again_trains_nothing_and_prints_the_same(here):
    again = ("train", here / "pictures", *SMALL, "--out", here / "pictures.run")
    before = contents(here)
    first, second = run(*again), run(*again)
    assert contents(here) == before
    assert first.stdout == second.stdout
    assert all(f"\n{domain} " in first.stdout for domain in DOMAINS)
    assert "images" not in second.stderr  # they were not read


def test_a_run_whose_images_were_moved_goes_on(here):
    before = networks(here / "pictures.run")
    shutil.rmtree(here / "pictures.run" / "all-0-0")
    (here / "pictures").rename(here / "elsewhere")
    run_ok("train", here / "elsewhere", *SMALL, "--out", here / "pictures.run")
    assert networks(here / "pictures.run") == before


@pytest.fixture
def folders_of_networks(monkeypatch, tmp_path):
    """Folders `first/net` and `moved/net` of one network, and `other/net` of another."""
    seeds = {"first": 0, "moved": 0, "other": 1}
    for name in seeds:
        (tmp_path / name / "net").mkdir(parents=True)

    def load(name, **options):
        network = backbone("tiny", seed=seeds[Path(name).parent.name], **options)
        return replace(network, name=recorded_name(name))

    monkeypatch.setattr("skdare.reproduce.backbone", load)
    return {name: f"hf:{tmp_path / name / 'net'}" for name in seeds}


@pytest.mark.parametrize("begun", ["trained", "begun"])
def test_a_run_goes_on_with_a_network_that_was_moved_and_with_no_other(
    here, folders_of_networks, begun
):
    command = ("train", here / "pictures", *SMALL, "--no-ceilings", "--out", "net.run")
    first, moved, other = ((*command, "--backbone", name) for name in folders_of_networks.values())
    run_ok(*first)
    before = networks("net.run")
    if begun == "begun":
        shutil.rmtree("net.run/without-art-0-0")
    refused = run(*other)
    assert refused.exit_code == 2
    assert "was begun with weights" in refused.stderr
    assert "decoding" not in refused.stderr
    run_ok(*moved)
    assert networks("net.run") == before
    assert all(
        record.made["backbone"] == "hf:net" for record in TrainingFolder("net.run").records()
    )


@pytest.mark.slow
def test_interrupted_training_exits_with_130_and_goes_on_to_the_same_weights(here):
    arguments = ("train", here / "pictures", *SMALL, "--steps", "60", "--out")
    process = stopped(signal.SIGINT, NETWORK_DONE, *arguments, "cut.run")
    assert process.returncode == 130, process.stderr
    assert process.stderr.endswith("stopped; the same command goes on from what is on file\n")
    assert process.stdout == ""
    finished = networks("cut.run")
    assert len(finished) == 1
    run_ok(*arguments, "cut.run")
    run_ok(*arguments, "whole.run")
    assert networks("cut.run") == networks("whole.run")
    assert finished.items() <= networks("cut.run").items()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--lr", "0.1"], "was begun with lr 5e-05, not 0.1"),
        (["--steps", "7"], "was begun with steps 6, not 7"),
        (["--aside", "0.3"], "was begun with aside 0.2"),
        (["--no-flip"], "was begun with flip 0.5"),
        (["--no-augment"], "was begun with augmentation on, not off"),
        (["--precision", "bfloat16"], "was begun with precision auto"),
        (["--backbone", "minilm"], "was begun with backbone tiny"),
        (["--size", "12"], "other images or texts, or with another size"),
        (["--bottleneck", "4"], "was begun with bottleneck off, not 4"),
    ],
)
def test_a_run_refuses_other_settings_though_it_is_finished(here, change, message):
    before = contents(here)
    result = run("train", here / "pictures", *SMALL, *change, "--out", here / "pictures.run")
    assert result.exit_code == 2
    assert message in result.stderr
    assert "hint: give the same" in result.stderr
    assert result.stdout == ""
    assert contents(here) == before


def test_a_run_refuses_other_images(here):
    shutil.copy(here / "pictures/art/cat/1.png", here / "pictures/art/cat/8.png")
    (here / "pictures").rename(here / "more")
    result = run("train", here / "more", *SMALL, "--out", here / "pictures.run")
    assert result.exit_code == 2
    assert "was begun with other images" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent"], "absent does not exist"),
        (["../pictures", "--backbone", "tine"], "there is no backbone 'tine'"),
        (
            ["../pictures", "--held-out", "zoo"],
            "there is no domain `zoo` to hold out\n\nhint: there are `art`, `ph",
        ),
        (["../pictures", "--held-out", ","], "--held-out names no domain"),
        (["../pictures", "--lr", "-1"], "--lr is -1.0\n\nhint: it must be a finite number of 0"),
        (["../pictures", "--lr", "nan"], "--lr is nan"),
        (["../pictures", "--weight-decay", "-1"], "--weight-decay is -1.0"),
        (["../pictures", "--dropout", "2"], "--dropout is 2.0\n\nhint: it must be in [0, 0.99]"),
        (["../pictures", "--aside", "1.5"], "--aside is 1.5"),
        (["../pictures", "--size", "0"], "'--size': 0 is not in the range"),
        (["../pictures", "--bottleneck", "0"], "'--bottleneck': 0 is not in the range"),
        (["../pictures", "--bottleneck", "64"], "--bottleneck is 64, and tiny has 64 features"),
        (["../pictures", "--trials", "0"], "'--trials': 0 is not in the range"),
        (["../pictures", "--device", "gpu"], "there is no device 'gpu'"),
        (["../pictures", "--label-column", "animal"], "--label-column names a column, but"),
        (["../table.csv"], "no column for the label"),
        (["../table.csv", "--label-column", "x"], "no column 'x'"),
        (["../study.toml"], "cannot be read as images or texts"),
        (["../pictures", "--out", "../table.csv"], "table.csv is a file"),
        (["../pictures", "--config", "../study.toml"], "unknown key `heads`"),
    ],
)
def test_a_mistake_ends_training_before_any_work(here, arguments, message):
    before = contents(here)
    first, *rest = arguments
    result = run("train", first, *SMALL, *rest)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "hint: " in result.stderr or "Try " in result.stderr
    assert "48 images" not in result.stderr  # they were not read
    assert result.stdout == ""
    assert contents(here) == before
    assert not list(Path().iterdir())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("arguments", [["train", "../pictures"], ["extract", "../pictures"]])
def test_a_gpu_that_is_not_there_is_refused_before_any_work(here, arguments):
    result = run(*arguments, *NETWORK, "--device", "cuda")
    assert result.exit_code == 2
    assert "torch sees no GPU\n\nhint: use --device cpu" in result.stderr
    assert "48 images" not in result.stderr
    assert not list(Path().iterdir())


def test_a_column_that_is_missing_is_asked_for_by_its_option(here):
    refused = run("train", here / "table.csv", *SMALL, "--label-column", "animal")
    assert "hint: name one with --domain-column" in refused.stderr
    header, *rows = (here / "table.csv").read_text().splitlines()
    (here / "both.csv").write_text("\n".join([f"{header},text", *(f"{row},x" for row in rows)]))
    refused = run("train", here / "both.csv", *SMALL)
    assert "--image-column or --text-column" in refused.stderr


def test_a_domain_that_is_named_twice_is_held_out_once(here):
    result = run(
        "train", here / "pictures", *SMALL, "--held-out", "art,art", "--no-ceilings", "--out", "r"
    )
    assert len(result.stdout.splitlines()) == 2
    assert list(networks("r")) == ["without-art-0-0"]


def test_an_unreadable_image_is_named_and_may_be_skipped(here):
    (here / "pictures/art/cat/3.png").write_text("no picture")
    arguments = ("train", here / "pictures", *SMALL, "--held-out", "photo", "--no-ceilings")
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert "art/cat/3.png" in refused.stderr
    assert refused.stderr.endswith("or leave them out with --skip-unreadable\n")
    assert not list(Path().iterdir())
    skipped = run_ok(*arguments, "--skip-unreadable")
    assert "note: 1 of 48 images" in skipped.stderr
    assert "Warning" not in skipped.stderr
    run_ok("extract", "pictures.run")  # the run knows what it skipped
    assert store_info("pictures.run/pretrained").rows == 47


def test_a_held_out_domain_that_nobody_can_read_is_refused(here):
    for file in (here / "pictures/art").rglob("*.png"):
        file.write_text("no picture")
    result = run("train", here / "pictures", *SMALL, "--skip-unreadable")
    assert result.exit_code == 2
    assert "no image of the held-out domain `art` can be read" in result.stderr
    assert not list(Path().iterdir())
    rest = ("--held-out", "photo", "--no-ceilings")
    run_ok("train", here / "pictures", *SMALL, "--skip-unreadable", *rest)


def test_classes_that_a_domain_lacks_are_told(here):
    shutil.rmtree(here / "pictures/sketch/dog")
    result = run_ok("train", here / "pictures", *SMALL, "--held-out", "art", "--no-ceilings")
    assert "domain `sketch` has no `dog`" in result.stderr


@pytest.mark.parametrize(
    ("package", "arguments", "hint"),
    [
        ("torch", ["../pictures"], "pip install 'skdare[vision]'"),
        ("PIL", ["../pictures"], "pip install 'skdare[vision]'"),
        ("pyarrow", ["../table.parquet"], "pip install 'skdare[parquet]'"),
        ("timm", ["../pictures", "--backbone", "timm:resnet18"], "pip install timm"),
        ("transformers", ["../pictures", "--backbone", "hf:x"], "pip install 'skdare[text]'"),
    ],
)
def test_a_missing_package_is_a_mistake_that_says_what_to_install(
    here, monkeypatch, package, arguments, hint
):
    (here / "table.parquet").write_bytes(b"PAR1")
    for name in [m for m in sys.modules if m.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    if package == "torch":
        for name in ("skdare.features", "skdare.reproduce"):
            monkeypatch.delitem(sys.modules, name)
    first, *rest = arguments
    result = run("train", first, *SMALL, *rest)
    assert result.exit_code == 2
    assert "hint: " in result.stderr
    assert hint in result.stderr
    assert not list(Path().iterdir())


def test_a_gpu_without_memory_is_a_mistake_and_other_faults_are_not(here, monkeypatch):
    def failing(message):
        def train(self):
            raise RuntimeError(message)

        monkeypatch.setattr("skdare.reproduce.Reproduction.train", train)
        return run("train", here / "pictures", *SMALL)

    result = failing("CUDA out of memory. Tried to allocate 2.00 GiB")
    assert result.exit_code == 2
    assert "hint: give --at-once 1, a --micro-batch" in result.stderr
    with pytest.raises(RuntimeError, match="a fault of ours"):
        failing("a fault of ours")


@pytest.mark.slow
def test_two_processes_train_as_one_and_only_the_first_speaks(here):
    held = ("--held-out", "art", "--no-ceilings")
    asked = ["train", str(here / "pictures"), *SMALL, *held]
    done = two_processes("-m", "skdare.cli", *asked, "--out", "two.run")
    one = run(*asked, "--out", "one.run")
    assert done.returncode == 0, done.stderr
    assert done.stdout == one.stdout
    assert done.stderr.count("48 images") == 1
    assert "destroy_process_group" not in done.stderr
    (record,) = TrainingFolder("two.run").records()
    assert record.made["processes"] == 2


@pytest.mark.parametrize("arguments", [["extract", "../pictures.run"], ["reproduce", "digits"]])
def test_what_one_process_does_is_refused_to_several(here, monkeypatch, arguments):
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = run(*arguments)
    assert result.exit_code == 2
    assert "runs in one process" in result.stderr


# Progress


@pytest.mark.parametrize("what", ["train", "extract", "reproduce"])
def test_quiet_changes_stderr_and_nothing_else(here, what):
    arguments = {
        "train": (here / "pictures", *SMALL, "--held-out", "art"),
        "extract": (here / "pictures", *NETWORK),
        "reproduce": (here / "study.toml", "--held-out", "art"),
    }[what]
    loud = run(what, *arguments, "--out", "loud.out")
    quiet = run(what, *arguments, "--out", "quiet.out", "--quiet")
    assert "48 images" in loud.stderr
    assert quiet.stderr == ""
    assert quiet.stdout.replace("quiet.out", "loud.out") == loud.stdout != ""
    assert "48 images" not in loud.stdout


@contextlib.contextmanager
def terminal():
    """Replace stderr by a terminal; the list has what was written there once it is closed."""
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals")
    ours, theirs = pty.openpty()
    written: list[bytes] = []

    def collect() -> None:
        with contextlib.suppress(OSError):  # how Linux says that nobody writes any more
            while part := os.read(ours, 1 << 16):
                written.append(part)

    reader = threading.Thread(target=collect)
    reader.start()
    with os.fdopen(theirs, "w") as stream, contextlib.redirect_stderr(stream):
        yield written
    reader.join()
    os.close(ours)


def test_a_terminal_sees_images_a_second_and_the_time_left(here, capsys, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with terminal() as parts:
        main(["train", str(here / "pictures"), *SMALL, "--held-out", "art"], standalone_mode=False)
    shown = b"".join(parts).decode()
    table = capsys.readouterr().out
    rate_and_time = r".*%.* [\d,]+ images/s .*\d:\d\d:\d\d.* left"
    assert re.search(f"decoding{rate_and_time}", shown)
    assert re.search(f"training{rate_and_time}", shown)
    # Sentences in between have lines of their own, and the bar is taken away in the end.
    assert "\x1b[2K3 domains" in shown
    assert re.search(r"\x1b\[2K\s+networks: pictures\.run", shown)
    assert "\nart " in table
    assert "left" not in table


# Extraction


def test_a_run_gives_a_store_for_each_network_and_one_before_fine_tuning(here):
    result = run("extract", here / "pictures.run")
    stores = [f"features/without-{domain}-0" for domain in DOMAINS] + ["pretrained"]
    assert result.stdout.split() == [str(here / "pictures.run" / store) for store in stores]
    before = contents(here)
    again = run("extract", here / "pictures.run")
    assert again.stdout == result.stdout
    assert contents(here) == before
    benched = run_ok(
        *("bench", here / "pictures.run/features", "--heads", "erm,dare", "--jobs", "1"),
        *("--pretrained", here / "pictures.run/pretrained", "--out", "bench", "--details"),
    )
    assert {r.held_out for r in Log("bench").read()} == set(DOMAINS)
    assert "Linear ceiling, pretrained" in benched.stdout


def test_images_give_one_store_of_the_backbone_as_it_is(here):
    run("extract", here / "pictures.run")
    result = run("extract", here / "pictures", *NETWORK)
    assert result.stdout.split() == ["pictures.features"]
    X = read("pictures.features").X
    np.testing.assert_array_equal(X, read(here / "pictures.run/pretrained").X)


def test_a_run_with_a_bottleneck_gives_stores_of_fewer_features(here):
    train = ("train", here / "pictures", *SMALL, "--no-ceilings", "--bottleneck", "5")
    run_ok(*train, "--out", "narrow.run")
    run_ok("extract", "narrow.run")
    assert read("narrow.run/features/without-art-0").X.shape == (48, 5)
    run_ok("extract", here / "pictures", *NETWORK, "--bottleneck", "5")
    X = read("pictures.features").X
    np.testing.assert_array_equal(X, read("narrow.run/pretrained").X)
    assert "bottleneck: 5" in run("features", "info", "pictures.features").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["../pictures.run", "--out", "x"], "--out is given, but ../pictures.run is a run"),
        (["../pictures.run", "--backbone", "tiny"], "--backbone is given"),
        (["../pictures.run", "--size", "16"], "--size is given"),
        (["../pictures.run", "--bottleneck", "4"], "--bottleneck is given"),
        (["../pictures.run", "--text-column", "x"], "--text-column is given"),
        (["../pictures.run", "--dtype", "int8"], "'--dtype': 'int8' is not one of"),
        (["../pictures", "--norm-stats", "batch"], "'--norm-stats': 'batch' is not one of"),
        (
            ["../pictures", *NETWORK, "--norm-stats", "domain"],
            "--norm-stats is 'domain', but tiny has no batch norm\n\nhint: use --norm-stats n",
        ),
        (["../pictures", "--source", "x"], "--source is given, but ../pictures is not a run"),
        (["../pictures", "--out", "../pictures"], "exists and is not a feature store"),
        (["../pictures", "--out", "../table.csv"], "exists and is not a feature store"),
        (["../pictures", "--backbone", "tine"], "there is no backbone 'tine'"),
        (["absent"], "absent does not exist"),
    ],
)
def test_a_mistake_ends_extraction_before_any_work(here, arguments, message):
    before = contents(here)
    result = run("extract", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "48 images" not in result.stderr
    assert result.stdout == ""
    assert contents(here) == before


@pytest.mark.parametrize("source", [["../pictures.run"], ["../pictures", *NETWORK]])
@pytest.mark.parametrize(
    ("option", "value", "stored"),
    [
        ("--dtype", "uint8", "float32"),
        ("--precision", "bfloat16", "float32"),
        ("--norm-stats", "domain", "network"),
    ],
)
def test_finished_stores_are_not_taken_for_others(here, source, option, value, stored):
    run_ok("extract", *source)
    before = contents(here)
    result = run("extract", *source, option, value)
    assert result.exit_code == 2
    name = option[2:].replace("-", "_")
    assert f"has features of {name} {stored}, not {value}\n" in result.stderr
    assert f"hint: choose {option} {stored}, or remove it" in result.stderr
    assert contents(here) == before


def test_statistics_of_domains_are_behind_the_stores_of_images_and_of_a_run(here, monkeypatch):
    monkeypatch.setattr("skdare.reproduce.backbone", lambda name, **options: normed())
    run_ok("extract", here / "pictures", "--out", "own")
    run_ok("extract", here / "pictures", "--out", "domain", "--norm-stats", "domain")
    assert store_info("domain").made["norm_stats"] == "domain"
    assert np.abs(read("own").X - read("domain").X).max() > 1e-2
    run_ok("train", here / "pictures", *SMALL, "--out", "normed.run")
    stores = run("extract", "normed.run", "--norm-stats", "domain").stdout.split()
    assert len(stores) == len(DOMAINS) + 1
    assert all(store_info(store).made["norm_stats"] == "domain" for store in stores)
    np.testing.assert_array_equal(read("normed.run/pretrained").X, read("domain").X)


def test_features_of_a_network_that_is_no_longer_chosen_are_refused(here):
    run("extract", here / "pictures.run")
    path = here / "pictures.run/without-art-0-0/record.json"
    record = json.loads(path.read_text())
    (here / "pictures.run/without-art-0-1").mkdir()
    better = {**record, "draw": 1, "value": 1.1, "network": "another"}
    (here / "pictures.run/without-art-0-1/record.json").write_text(json.dumps(better))
    result = run("extract", here / "pictures.run")
    assert result.exit_code == 2
    assert "without-art-0 has features made in another way" in result.stderr


@pytest.mark.parametrize("place", ["elsewhere", "pictures.zip"])
def test_images_that_were_moved_are_found_again(here, place):
    run("extract", here / "pictures.run")
    expected = {p.name: read(p).X for p in (here / "pictures.run/features").iterdir()}
    shutil.rmtree(here / "pictures.run/features")
    (here / "pictures").rename(here / "elsewhere")
    lost = run("extract", here / "pictures.run")
    assert lost.exit_code == 2
    assert (
        "does not exist\n\nhint: if it was moved, give its new place with --source" in lost.stderr
    )
    run_ok("extract", here / "pictures.run", "--source", here / place)
    for name, X in expected.items():
        np.testing.assert_array_equal(read(here / "pictures.run/features" / name).X, X)


def test_finished_stores_are_there_without_their_images(here):
    first = run("extract", here / "pictures.run")
    shutil.rmtree(here / "pictures")
    assert run("extract", here / "pictures.run").stdout == first.stdout


def test_other_images_are_not_taken_for_those_of_a_run(here):
    (here / "pictures/art/cat/0.png").unlink()
    result = run("extract", here / "pictures.run")
    assert result.exit_code == 2
    assert "was trained with other examples" in result.stderr
    assert not (here / "pictures.run/features").exists()


def test_a_run_can_be_taken_up_from_another_folder(here, monkeypatch):
    run_ok(
        *("train", "../pictures", *SMALL, "--cache", "pixels", "--held-out", "art"),
        *("--no-ceilings", "--out", "r"),
    )
    monkeypatch.chdir(here)
    run_ok("extract", "work/r")
    assert not (here / "pixels").exists()
    assert (here / "work/pixels").exists()


def test_a_run_that_is_not_trained_yet_is_named(here):
    for folder in (here / "pictures.run").glob("without-*"):
        shutil.rmtree(folder)
    result = run("extract", here / "pictures.run")
    assert result.exit_code == 2
    assert "no finished network that held a domain out" in result.stderr


# The whole paper


REPORT = ("report.html", "report.md", "report.tex", "report.csv", "records.csv")


def test_a_study_ends_with_a_report_and_a_figure_and_again_changes_nothing(here):
    first = run_ok("reproduce", here / "study.toml", "--protocols", "paper,default")
    words = ("held out", "trained on all domains", "paper protocol", "default protocol")
    assert all(word in first.stdout for word in words)
    files = [*REPORT, "figure1.svg", "figure1.png"]
    assert first.stdout.split()[-len(files) :] == [f"study.run/bench/{name}" for name in files]
    assert {record.held_out for record in Log("study.run/bench").read()} == set(DOMAINS)
    before = contents(Path("study.run"))
    again = run("reproduce", here / "study.toml", "--protocols", "paper,default")
    assert again.stdout == first.stdout
    assert "48 images" not in again.stderr
    changed = {path.name for path, at in contents(Path("study.run")).items() if before[path] != at}
    assert changed <= {*files, "planned.json"}


@pytest.mark.slow
def test_a_killed_study_goes_on_to_the_same_records(here):
    arguments = ("reproduce", here / "study.toml", "--steps", "60", "--protocols", "paper,default")
    for place, trained, scored in ((NETWORK_DONE, 1, 0), (TRIAL_DONE, len(DOMAINS) + 1, 1)):
        process = stopped(signal.SIGKILL, place, *arguments, "--out", "killed.run")
        assert process.returncode == -signal.SIGKILL, process.stderr
        assert len(networks("killed.run")) == trained
        assert len(Log("killed.run/bench").read()) == scored
    run_ok(*arguments, "--out", "killed.run")
    run_ok(*arguments, "--out", "whole.run")
    assert networks("killed.run") == networks("whole.run")
    assert results("killed.run/bench") == results("whole.run/bench")
    assert len(results("whole.run/bench")) > 1


def test_the_embedded_digits_are_a_study(here):
    Path("digits").mkdir()
    result = run_ok(
        *("reproduce", "digits", "--quick", "--steps", "4", "--held-out", "plain", "--batch", "4"),
        *("--protocols", "default", "--heads", "erm", "--with", "none", "--no-ceilings"),
    )
    (record,) = TrainingFolder("digits-quick.run").records()
    assert (record.held_out, record.trial) == ("plain", 0)
    assert Path("digits-quick.run/bench/figure1.svg").exists()
    assert "using the embedded digits; for the files here, give ./digits" in result.stderr


def test_a_study_may_name_the_embedded_digits(here):
    text = STUDY.replace('"pictures"', '"digits"').replace('"erm", "dare"', '"erm"')
    (here / "mine.toml").write_text(text + 'held-out = "faint"\nceilings = false\n')
    run_ok("reproduce", here / "mine.toml")
    assert TrainingFolder("mine.run").settings()["data"] == "digits"
    shutil.copytree(here / "pictures", here / "digits")
    run_ok("reproduce", here / "mine.toml", "--held-out", "art", "--out", "files.run")
    assert TrainingFolder("files.run").settings()["source"]["path"] == str(here / "digits")


def test_runs_with_bottlenecks_make_one_sweep_of_the_dimension(here):
    study = f"{STUDY}ceilings = false\n".replace('"none"', '"ceilings"')
    for size in (3, 6):
        (here / "study.toml").write_text(f"{study}bottleneck = {size}\n")
        run_ok("reproduce", here / "study.toml", "--out", f"{size}.run")
        assert store_info(f"{size}.run/pretrained").features == size
        assert store_info(f"{size}.run/features/without-art-0").features == size
    script = Path(__file__).parents[2] / "benchmarks/bottleneck.py"
    command = [sys.executable, script, "--protocol", "default", "--out", "sweep"]
    swept = subprocess.run([*command, "6.run", "3.run"], capture_output=True, text=True)
    assert swept.returncode == 0, swept.stderr
    header, _, *rows = swept.stdout.splitlines()
    assert header.split(" | ")[1:3] == ["ERM", "DARE"]
    assert [row.split(" | ")[0] for row in rows] == ["| 3", "| 6"]
    of_six = [r for r in Log("6.run/bench").read() if r.head == "ceiling-exact"]
    mean = 100 * np.mean([r.score for r in of_six if r.features == "pretrained"])
    column = header.split(" | ").index("Linear ceiling, pretrained")
    assert float(rows[1].split(" | ")[column].split(" ± ")[0]) == pytest.approx(mean, abs=0.05)
    run_ok("report", "sweep", "--formats", "md")
    assert "## Bottleneck" in Path("sweep/report.md").read_text()
    twice = subprocess.run([*command, "6.run", "6.run"], capture_output=True, text=True)
    assert "the same number of features" in twice.stderr


@pytest.mark.parametrize(
    ("change", "heads", "figure"),
    [
        (["--held-out", "art"], {"erm", "dare", "network", "end-to-end"}, True),
        (["--no-ceilings"], {"erm", "dare", "network"}, True),
        (["--with", "ceilings"], {"erm", "dare", "network", "end-to-end", "ceiling-exact"}, True),
        (["--heads", "reweighted"], {"reweighted", "network", "end-to-end"}, False),
        (["--check-every", "100"], {"erm", "dare", "network", "end-to-end"}, True),
    ],
)
def test_a_smaller_study_ends_with_what_there_is(here, change, heads, figure):
    result = run_ok("reproduce", here / "study.toml", *change)
    assert {record.head for record in Log("study.run/bench").read()} == heads
    assert all(Path("study.run/bench", name).exists() for name in REPORT)
    assert Path("study.run/bench/figure1.svg").exists() == figure
    assert ("note: no first figure" in result.stderr) != figure


def test_a_study_grows_in_its_folder_and_shows_what_was_asked_for(here):
    command = ("reproduce", here / "study.toml", "--held-out")
    run_ok(*command, "art")
    second = run_ok(*command, "photo")
    assert "\nphoto " in second.stdout
    assert "\nart " not in second.stdout
    assert {record.held_out for record in Log("study.run/bench").read()} == {"art", "photo"}


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (STUDY, ["--heads", "erm,darre"], "no head is called `darre`\n\nhint: did you mean `dare`"),
        (STUDY, ["--heads", ","], "no heads are named"),
        (STUDY, ["--with", "ceiling"], "--with is 'ceiling'"),
        (STUDY, ["--protocols", "papr"], "'papr' is not among default, paper"),
        (STUDY, ["--protocols", "paper", "--heads", "dare-cv"], "`dare-cv` is not in the paper"),
        (STUDY, ["--held-out", "zoo"], "there is no domain `zoo` to hold out"),
        (STUDY, ["--source", "absent"], "absent does not exist"),
        (STUDY, ["--bottleneck", "64"], "--bottleneck is 64, and tiny has 64 features"),
        (STUDY.replace("steps", "step"), [], "has an unknown key `step`; did you mean `steps`?"),
        (STUDY.replace("pictures", "absent"), [], "absent does not exist"),
        (STUDY.replace("source", "#"), [], 'names no source\n\nhint: add source = "FOLDER"'),
        (STUDY.replace("= 6", "= 'six'"), [], "'--steps': 'six' is not a valid integer"),
        ("steps = ", [], "cannot be read as TOML"),
    ],
)
def test_a_mistake_ends_a_study_before_any_network_is_trained(here, text, arguments, message):
    (here / "study.toml").write_text(text)
    result = run("reproduce", here / "study.toml", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "48 images" not in result.stderr
    assert result.stdout == ""
    assert not list(Path().iterdir())


@pytest.mark.parametrize("package", ["matplotlib", "jinja2"])
def test_a_report_that_cannot_be_written_is_told_first_and_nothing_is_lost(
    here, monkeypatch, package
):
    with monkeypatch.context() as without:
        without.setitem(sys.modules, package, None)
        early = run("reproduce", here / "study.toml")
        assert early.exit_code == 2
        assert f"the report needs {package}\n\nhint: pip install 'skdare[report]'" in early.stderr
        assert not list(Path().iterdir())
    run_ok("reproduce", here / "study.toml", "--held-out", "art")
    before = contents(Path("study.run"))
    monkeypatch.setitem(sys.modules, package, None)
    assert run("reproduce", here / "study.toml", "--held-out", "art").exit_code == 2
    assert contents(Path("study.run")) == before


def test_options_have_the_defaults_of_the_recipe():
    recipe = Recipe()
    defaults = {f.name: getattr(recipe, f.name) for f in fields(Recipe)}
    defaults |= {f.name: getattr(recipe.hyperparameters, f.name) for f in fields(Hyperparameters)}
    options = {p.name: p.default for p in main.commands["train"].params}
    shared = defaults.keys() & options.keys() - {"micro_batch"}
    assert len(shared) == 10
    assert {name: options[name] for name in shared} == {name: defaults[name] for name in shared}
