"""`skdare train` and `skdare extract`: what they write, refuse, and go on with."""

from __future__ import annotations

import shutil
import signal
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks are trained with torch")
Image = pytest.importorskip("PIL.Image", reason="images are read with Pillow")

from commands import answer, run, snapshot, text  # noqa: E402
from interrupts import ended  # noqa: E402
from skdare.data import Store  # noqa: E402
from skdare.features.training.folder import TrainingFolder  # noqa: E402

DOMAINS = ("art", "photo", "sketch")
CLASSES = ("cat", "dog")
TINY = ("--backbone", "tiny")
SMALL = (*TINY, "--steps", "6", "--batch", "4", "--trials", "1")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Pictures whose redness shows the class, as a folder, a zip and a table, and a run on them."""
    place = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    lines = ["path,label,domain"]
    with zipfile.ZipFile(place / "zipped.zip", "w") as archive:
        for domain in DOMAINS:
            for number, name in enumerate(CLASSES):
                folder = place / "pictures" / domain / name
                folder.mkdir(parents=True)
                for i in range(6):
                    pixels = rng.integers(0, 256, (12, 14, 3))
                    pixels[..., 0] = pixels[..., 0] // 2 + 100 * number
                    Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.png")
                    archive.write(folder / f"{i}.png", f"{domain}/{name}/{i}.png")
                    lines.append(f"pictures/{domain}/{name}/{i}.png,{name},{domain}")
    (place / "table.csv").write_text("\n".join(lines))
    text("train", "pictures", *SMALL, folder=place)
    return place


@pytest.fixture
def here(made, tmp_path) -> Path:
    """Copies of the pictures and the run."""
    for name in ("pictures", "pictures.run"):
        shutil.copytree(made / name, tmp_path / name)
    settings = tmp_path / "pictures.run/run.json"
    settings.write_text(settings.read_text().replace(str(made), str(tmp_path)))
    return tmp_path


def networks(folder: Path) -> dict[str, str]:
    """Hash of the weights of every network of a run."""
    return {record.job.name: record.network for record in TrainingFolder(folder).records()}


def refused(*words: object, folder: Path) -> str:
    """The error of a command that must change nothing."""
    before = snapshot(folder)
    done = run(*words, folder=folder)
    assert done.code == 2, done.err
    assert len(done.errors) == 1
    assert snapshot(folder) == before
    return done.err


@pytest.mark.parametrize("source", ["zipped.zip", "table.csv"])
def test_a_zip_and_a_table_train_the_networks_of_the_folder(made, tmp_path, source):
    out = tmp_path / "out"
    fields = answer("train", source, *SMALL, "--out", out, "--held-out", "art", folder=made)
    hashes = networks(made / "pictures.run")
    assert networks(out) == {name: hashes[name] for name in networks(out)}
    assert [n["held_out"] for n in fields["networks"]] == ["art", None]
    assert fields["next"] == [f"skdare extract {out}"]


def test_the_same_command_again_trains_nothing_and_says_the_same(here):
    first = answer("train", "pictures", *SMALL, folder=here)
    before = snapshot(here)
    assert answer("train", "pictures", *SMALL, folder=here) == first
    assert snapshot(here) == before


def test_a_run_has_a_store_for_each_network_and_one_before_fine_tuning(here):
    stores = answer("extract", "pictures.run", folder=here)["stores"]
    names = {f"features/without-{domain}-0" for domain in DOMAINS} | {"pretrained"}
    assert set(stores) == {f"pictures.run/{name}" for name in names}
    for path in stores:
        store = Store.open(here / path)
        assert (store.rows, len(store.feature_names)) == (36, 64)
        assert ("aside" in store.columns) == ("without" in path)
    before = snapshot(here)
    answer("extract", "pictures.run", folder=here)
    assert snapshot(here) == before


def test_a_store_can_be_benched(here):
    text("extract", "pictures", *TINY, folder=here)
    fields = answer("bench", "pictures.features", "--heads", "erm", folder=here)
    assert fields["trials"] == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["absent"], "there is no file or folder 'absent'"),
        (["pictures", "--backbone", "tini"], "there is no backbone 'tini'"),
        (
            ["pictures", *TINY, "--held-out", "artt"],
            "no domain `artt` to hold out; there are `a",
        ),
        (["pictures", *TINY, "--lr", "-1"], "lr is -1.0"),
        (["pictures", *TINY, "--dropout", "1"], "dropout is 1.0"),
        (["pictures", *TINY, "--steps", "0"], "steps is 0"),
        (["pictures", *TINY, "--trials", "0"], "trials is 0"),
        (["pictures", *TINY, "--device", "cuda"], "torch sees no GPU"),
        (["pictures", *SMALL, "--lr", "1e-3"], "was begun with lr 5e-05, not 0.001"),
        (["pictures/art", *TINY], "must lie in 2"),
    ],
)
def test_a_mistake_ends_training_before_any_work(here, words, message):
    import torch

    if "cuda" in words and torch.cuda.is_available():
        pytest.skip("torch sees a GPU")
    if "was begun" not in message:
        words = [*words, "--out", "new.run"]
    assert message in " ".join(refused("train", *words, folder=here).split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pictures.run", "--out", "x"], "which has its own out"),
        (["pictures.run", *TINY], "which has its own backbone"),
        (["pictures.run", "--norm-stats", "domain"], "tiny has no batch norm"),
        (["pictures", *TINY, "--out", "pictures"], "exists already"),
        (["absent", *TINY], "there is no file or folder 'absent'"),
    ],
)
def test_a_mistake_ends_extraction_before_any_work(here, words, message):
    assert message in " ".join(refused("extract", *words, folder=here).split())


def test_a_damaged_image_is_named_before_the_first_step(here):
    file = here / "pictures/photo/dog/3.png"
    file.write_bytes(file.read_bytes()[:-200])
    told = refused("train", "pictures", *SMALL, "--out", "new.run", folder=here)
    assert "1 of 36 images" in told
    assert "photo/dog/3.png" in told


def test_other_images_are_not_taken_for_those_of_a_run(here):
    shutil.copytree(here / "pictures", here / "others")
    (here / "others/art/dog/0.png").unlink()
    told = refused("train", "others", *SMALL, "--out", "pictures.run", folder=here)
    assert "was begun with other images" in told
    shutil.rmtree(here / "pictures/photo")
    assert "no domain `photo`" in refused(
        "train", "pictures", *SMALL, "--held-out", "photo", folder=here
    )


def test_images_that_were_moved_are_found_again(here):
    (here / "pictures").rename(here / "elsewhere")
    told = refused("extract", "pictures.run", folder=here)
    assert "if it was moved, run `skdare train` on it with --out pictures.run" in told
    text("train", "elsewhere", *SMALL, "--out", "pictures.run", folder=here)
    assert len(answer("extract", "pictures.run", folder=here)["stores"]) == 4


def test_finished_stores_are_not_taken_for_others(here):
    text("extract", "pictures", *TINY, folder=here)
    told = refused("extract", "pictures", *TINY, "--dtype", "float16", folder=here)
    assert "has features of dtype float32, not float16" in told


@pytest.mark.slow
def test_a_killed_command_goes_on_to_the_same_networks(here):
    code = f"""
import os, sys
os.chdir({str(here)!r})
from interrupts import stop_after
from skdare.features.training.folder import TrainingFolder
stop_after(TrainingFolder, "finish", 1, {int(signal.SIGKILL)})
sys.argv = ["skdare", "train", "pictures", *{SMALL!r}, "--out", "killed.run"]
from skdare.cli import main
main()
"""
    assert ended(code).returncode == -signal.SIGKILL
    assert len(networks(here / "killed.run")) == 1
    text("train", "pictures", *SMALL, "--out", "killed.run", folder=here)
    assert networks(here / "killed.run") == networks(here / "pictures.run")


@pytest.mark.hostile
@pytest.mark.parametrize("name", ["run.json", "record.json", "network.pt"])
def test_a_damaged_file_of_a_run_is_a_mistake_and_never_a_crash(here, name):
    file = here / "pictures.run" / ("" if name == "run.json" else "without-art-0-0") / name
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    for case in range(25):
        content = bytearray(whole)
        if case % 2:
            for place in rng.integers(len(whole), size=1 + case // 8):
                content[place] = rng.integers(256)
        else:
            del content[rng.integers(len(whole)) :]
        file.write_bytes(content)
        shutil.rmtree(here / "pictures.run/features", ignore_errors=True)
        done = run("extract", "pictures.run", folder=here)
        assert done.code in (0, 2), done.err
        if name == "network.pt" and done.code == 0:  # what was damaged was no weight
            store = Store.open(here / "pictures.run/features/without-art-0")
            assert store.made["network"] == networks(here / "pictures.run")["without-art-0-0"]
        assert len(done.errors) == (done.code == 2)
