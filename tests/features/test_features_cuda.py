"""Networks on a GPU: what they do on a CPU, however inputs and steps reach the device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks are trained with torch")
if not torch.cuda.is_available():
    pytest.skip("torch sees no GPU", allow_module_level=True)
import small_networks  # noqa: E402
from skdare.data import Store  # noqa: E402
from skdare.features import (  # noqa: E402
    Extractor,
    Hyperparameters,
    backbone,
    inputs,
    jobs,
    reader,
)
from skdare.features.training.recipe import Job  # noqa: E402
from small_networks import FAST, images, trainer  # noqa: E402

WHOLE = replace(FAST, precision="float32")
# Sums of one GPU differ from run to run in their order, those of a CPU in more.
NEAR = {"rtol": 2e-3, "atol": 1e-4}


@pytest.fixture(autouse=True)
def exact_products(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def losses(folder, job: Job = Job("a", 0), **more) -> list[float]:  # noqa: B008
    """Losses at the checkpoints of one training, on the GPU in float32 by default."""
    return small_networks.losses(folder, job, **{"device": "cuda", "recipe": WHOLE, **more})


@pytest.mark.parametrize("bottleneck", [None, 5])
def test_losses_are_those_of_a_cpu(tmp_path, bottleneck):
    network = backbone("tiny", bottleneck=bottleneck)
    np.testing.assert_allclose(
        losses(tmp_path / "cuda", network=network),
        losses(tmp_path / "cpu", network=network, device="cpu"),
        **NEAR,
    )


def test_losses_in_bfloat16_are_near(tmp_path):
    half = replace(FAST, precision="bfloat16")
    np.testing.assert_allclose(
        losses(tmp_path / "half", recipe=half), losses(tmp_path / "whole"), rtol=0.05
    )


@pytest.mark.parametrize("micro_batch", [3, 8])
def test_micro_batches_add_up_to_the_batch(tmp_path, micro_batch):
    recipe = replace(WHOLE, micro_batch=micro_batch)
    np.testing.assert_allclose(
        losses(tmp_path / "micro", recipe=recipe), losses(tmp_path / "whole"), **NEAR
    )


@pytest.mark.parametrize("rows", [1, 20])
def test_inputs_that_are_staged_give_what_resident_ones_do(tmp_path, monkeypatch, rows):
    whole = losses(tmp_path / "resident")
    monkeypatch.setattr("skdare.features.training.trainer.place_inputs", inputs.StagedInputs)
    monkeypatch.setattr(inputs, "_STAGE_BYTES", 3 * 16 * 16 * rows)
    np.testing.assert_allclose(losses(tmp_path / "staged"), whole, **NEAR)


@pytest.mark.parametrize("step", [1, 5, 7])
def test_a_training_taken_up_at_any_step_goes_on(tmp_path, step):
    whole = losses(tmp_path / "whole")
    other = trainer(tmp_path / "cut", device="cuda", recipe=WHOLE)
    begun = other._start(Job("a", 0)).training
    while begun.step < step:
        begun.advance(min(step, 5) - begun.step if begun.step < 5 else step - begun.step)
        if begun.step == 5:
            begun.check()
    other.folder.save_state(Job("a", 0), begun.state())
    np.testing.assert_allclose(losses(tmp_path / "cut"), whole, **NEAR)


def test_trainings_side_by_side_are_what_they_are_alone(tmp_path):
    planned = [Job("a", 0), Job("b", 0), Job(None, 1)]
    together = trainer(tmp_path / "together", device="cuda", recipe=WHOLE, at_once=3)(planned)
    for job, record in zip(planned, together, strict=True):
        alone = losses(tmp_path / job.name, job)
        np.testing.assert_allclose([check["loss"] for check in record.checks], alone, **NEAR)


def test_batches_of_many_sizes_are_trained_on(tmp_path):
    recipe = replace(WHOLE, draws=3)
    planned = jobs(list("abc"), recipe, trials=1, held_out=["a"], ceilings=False)
    records = trainer(tmp_path, device="cuda", recipe=recipe)(planned)
    assert len({record.hyperparameters["batch"] for record in records}) == 3


def test_a_training_that_diverges_says_so(tmp_path):
    recipe = replace(WHOLE, hyperparameters=Hyperparameters(lr=1e20, batch=4))
    with pytest.raises(ValueError, match="is not a number; lower lr"):
        losses(tmp_path, recipe=recipe)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_store_has_the_features_of_the_kept_network(tmp_path, precision):
    trainer(tmp_path / "run", device="cpu")(jobs(list("abc"), FAST, trials=2, ceilings=False))
    stores = {}
    for device, kind in (("cuda", precision), ("cpu", "float32")):
        extractor = Extractor(images(), backbone("tiny"), device=device, precision=kind)
        extractor.fine_tuned(tmp_path / "run", tmp_path / device)
        pretrained = Store.open(extractor.pretrained(tmp_path / f"pretrained on {device}"))
        stores[device] = {
            "pretrained": pretrained.X,
            **{path.name: Store.open(path).X for path in (tmp_path / device).iterdir()},
        }
    assert len(stores["cpu"]) == 7
    for at, X in stores["cpu"].items():
        near = 1e-4 if precision == "float32" else 0.03
        assert np.max(np.abs(stores["cuda"][at] - X)) <= near * X.max()


def test_chunks_that_are_short_or_many_are_read_alike(tmp_path, monkeypatch):
    def features(path) -> np.ndarray:
        extractor = Extractor(images(), backbone("tiny"), device="cuda", precision="float32")
        return Store.open(extractor.pretrained(path)).X

    whole = features(tmp_path / "whole")
    monkeypatch.setitem(reader.CHUNK, "cuda", 7)
    np.testing.assert_allclose(features(tmp_path / "cut"), whole, rtol=1e-4, atol=1e-5)
