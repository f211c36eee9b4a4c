"""Extraction: a store holds what the network says of every row, and how it came to be."""

from __future__ import annotations

import signal
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="features are read with torch")
from interrupts import ended  # noqa: E402
from skdare.data import Store  # noqa: E402
from skdare.features import Extractor, backbone, jobs  # noqa: E402
from skdare.features.network import Network  # noqa: E402
from skdare.features.split import reserve  # noqa: E402
from skdare.features.training.folder import TrainingFolder  # noqa: E402
from skdare.features.training.recipe import Job  # noqa: E402
from small_networks import FAST, images, trainer  # noqa: E402


def extractor(**more) -> Extractor:
    return Extractor(images(), backbone("tiny"), device="cpu", **more)


def tables(folder):
    """Stores of fine-tuned networks by held-out domain and trial."""
    stores = [Store.open(path) for path in sorted(folder.iterdir())]
    return {(store.made["held_out"], store.made["trial"]): store for store in stores}


def features(weights=None) -> np.ndarray:
    """By hand, all rows at once."""
    examples, network = images(), Network(backbone("tiny"), 3)
    if weights is not None:
        network.load_state_dict(weights)
    views = network.backbone.views(torch.from_numpy(examples.inputs), torch.arange(90))
    with torch.no_grad():
        return network.features(views).numpy()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    trainer(folder)(jobs(list("abc"), FAST, trials=2))
    return folder


def test_a_store_has_the_features_of_the_kept_network(run, tmp_path):
    extractor().fine_tuned(run, tmp_path)
    stores = tables(tmp_path)
    assert set(stores) == {(domain, trial) for domain in "abc" for trial in (0, 1)}
    for (held_out, trial), table in stores.items():
        weights = TrainingFolder(run).weights(Job(held_out, trial))
        np.testing.assert_allclose(table.X, features(weights), rtol=1e-5, atol=1e-6)
        aside = reserve(table.column("domains"), trial)
        np.testing.assert_array_equal(table.column("aside").astype(bool), aside)
        names = np.array(images().classes)[images().labels]
        np.testing.assert_array_equal(table.column("y"), names)
        assert table.made["rule"].startswith("largest unweighted mean")
        assert table.made["network"] == TrainingFolder(run).record(Job(held_out, trial)).network


def test_pretrained_features_have_no_split_and_no_trial(tmp_path):
    store = Store.open(extractor().pretrained(tmp_path / "store"))
    np.testing.assert_allclose(store.X, features(), rtol=1e-5, atol=1e-6)
    assert store.columns == ["y", "domains", "id"]
    assert "trial" not in store.made
    assert store.column("id").tolist() == images().ids.tolist()


def test_stores_of_half_the_size_are_near(tmp_path):
    X = Store.open(extractor(dtype="float16").pretrained(tmp_path / "store")).X
    exact = features()
    assert np.max(np.abs(X - exact)) <= 1e-3 * exact.max()
    assert Store.open(tmp_path / "store").dtype == "float16"


def test_finished_stores_are_left_alone(run, tmp_path):
    extractor().fine_tuned(run, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npy")}
    extractor().fine_tuned(run, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npy")} == before


@pytest.mark.slow
def test_a_killed_extraction_goes_on_to_the_same_store(tmp_path):
    script = f"""
from interrupts import stop_after
from small_networks import images
from skdare.data import StoreWriter
from skdare.features import Extractor, backbone, extractor, reader
extractor._ROWS_PER_SHARD["cpu"] = 10
reader.CHUNK["cpu"] = 10
stop_after(StoreWriter, "append", 3, {int(signal.SIGKILL)})
Extractor(images(), backbone("tiny"), device="cpu").pretrained({str(tmp_path / "k")!r})
"""
    process = ended(script)
    assert process.returncode == -signal.SIGKILL, process.stderr
    found = Store.open(tmp_path / "k", unfinished=True)
    assert not found.finished
    assert 0 < found.rows < 90
    with pytest.raises(ValueError, match="unfinished"):
        Store.open(tmp_path / "k")
    extractor().pretrained(tmp_path / "k")
    whole = Store.open(extractor().pretrained(tmp_path / "whole"))
    table = Store.open(tmp_path / "k")
    np.testing.assert_allclose(table.X[:], whole.X[:], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(table.column("y"), whole.column("y"))


def test_features_made_otherwise_are_not_taken_for_these(tmp_path):
    extractor().pretrained(tmp_path / "store")
    other = Extractor(images(), backbone("tiny", seed=1), device="cpu")
    with pytest.raises(ValueError, match="made in another way"):
        other.pretrained(tmp_path / "store")


def test_a_run_without_networks_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"has no run\.json"):
        extractor().fine_tuned(tmp_path, tmp_path / "out")
    recipe = replace(FAST, steps=3)
    trainer(tmp_path, recipe=recipe)([Job(None, 0)])
    with pytest.raises(ValueError, match="no finished network that held a domain out"):
        extractor().fine_tuned(tmp_path, tmp_path / "out")
