"""What a run will take is reckoned from what it does."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="networks are trained with torch")
from skdare.features import Extractor, backbone, jobs
from skdare.features.training.workload import Workload, workload
from small_networks import FAST, images, normed, trainer

COUNTS = {"a": 30, "b": 30, "c": 30}


def reckoned(planned, *, stores=0, recipe=FAST, network=None, **more):
    """Workload on the small images."""
    options = {"classes": 3, "dtype": "float32", "states": 1, **more}
    return workload(planned, stores, recipe, COUNTS, network or backbone("tiny"), **options)


def test_images_in_steps_are_those_that_the_trainer_counts(tmp_path):
    recipe = replace(FAST, draws=3)
    planned = jobs(list(COUNTS), recipe, trials=2)
    steps = trainer(tmp_path, recipe=recipe).remaining(planned)
    # Three checks of a fifth of two domains, or of all three; the held-out domain twice.
    held_out = 18 * (3 * 12 + 2 * 30)
    on_all = 6 * 3 * 18
    assert reckoned(planned, recipe=recipe).passes == steps + held_out + on_all
    assert reckoned(planned, recipe=recipe, stores=7).passes == steps + held_out + on_all + 7 * 90


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_bytes_are_those_that_are_written(tmp_path, dtype):
    planned = jobs(list(COUNTS), FAST, trials=1)
    work = reckoned(planned, stores=4, dtype=dtype, states=0)
    train = trainer(tmp_path / "run")
    train(planned)
    networks = sum(path.stat().st_size for path in (tmp_path / "run").rglob("network.pt"))
    assert work.network_bytes <= networks <= 1.3 * work.network_bytes  # names and headers
    extractor = Extractor(images(), train.backbone, device="cpu", dtype=dtype)
    extractor.fine_tuned(tmp_path / "run", tmp_path / "features")
    extractor.pretrained(tmp_path / "features/pretrained")
    features = sum(path.stat().st_size for path in (tmp_path / "features").rglob("features-*.npy"))
    assert features == work.feature_bytes + 4 * 128  # headers


def test_hours_are_known_for_networks_that_were_measured():
    planned = jobs(list(COUNTS), FAST, trials=1)
    known = replace(backbone("tiny"), name="timm:resnet50.tv_in1k")
    work = reckoned(planned, network=known)
    assert work.hours == (work.passes / 8300 / 3600, work.passes / 3200 / 3600)
    assert reckoned(planned).hours is None
    assert reckoned(planned, rate=2.0).hours == (work.passes / 7200, work.passes / 7200)
    assert reckoned([], network=known).hours == (0, 0)


def test_statistics_of_domains_take_one_more_pass_for_each_store(tmp_path):
    read = []
    network = normed()
    extractor = Extractor(
        images(), network, device="cpu", norm_stats="domain", progress=read.append
    )
    extractor.pretrained(tmp_path / "store")
    work = reckoned([], stores=1, network=network, norm_stats="domain")
    assert work.passes == sum(read) == 2 * 90


def test_images_that_do_not_fit_memory_are_refused(tmp_path, monkeypatch):
    work = Workload(1, 0, 0, 0, 100, None)
    memory = "skdare.features.training.workload._memory"
    monkeypatch.setattr(memory, lambda: 99)
    with pytest.raises(ValueError, match="GB of memory; give a smaller size"):
        work.check_room(tmp_path)
    for enough in (100, None):
        monkeypatch.setattr(memory, lambda enough=enough: enough)
        work.check_room(tmp_path)
