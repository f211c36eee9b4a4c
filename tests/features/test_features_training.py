"""Training: what it sees, what it draws, and that a stopped one ends as if it had not been."""

from __future__ import annotations

import signal
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks are trained with torch")

from interrupts import ended  # noqa: E402
from skdare.features import (  # noqa: E402
    Augmentation,
    Hyperparameters,
    Recipe,
    backbone,
    inputs,
    jobs,
)
from skdare.features.device import torch_tuned_for  # noqa: E402
from skdare.features.network import Network  # noqa: E402
from skdare.features.split import reserve  # noqa: E402
from skdare.features.training.folder import (  # noqa: E402
    TrainingFolder,
    best_draws,
    ceiling_scores,
)
from skdare.features.training.recipe import Job  # noqa: E402
from skdare.features.training.sampler import RowSplit, Sampler  # noqa: E402
from small_networks import (  # noqa: E402
    FAST,
    images,
    losses,
    poisoned,
    same_weights,
    trainer,
    weights,
)

WITHOUT_A = Job("a", 0)


@pytest.mark.parametrize("step", [1, 3, 5, 7, 11])
def test_a_training_taken_up_at_any_step_ends_with_the_same_weights(tmp_path, step):
    whole = trainer(tmp_path / "whole")([WITHOUT_A])
    other = trainer(tmp_path / "cut")
    with torch_tuned_for(other.device, other.backbone.module):
        begun = other._start(WITHOUT_A)
        while begun.training.step < step:
            due = 5 * (begun.training.step // 5 + 1)
            begun.training.advance(min(step, due) - begun.training.step)
            if begun.training.step == due:
                begun.training.check()
    other.folder.save_state(WITHOUT_A, begun.training.state())
    assert trainer(tmp_path / "cut")([WITHOUT_A]) == whole
    assert same_weights(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


@pytest.mark.slow
def test_a_killed_process_goes_on_to_the_same_weights(tmp_path):
    trainer(tmp_path / "whole")([WITHOUT_A])
    script = f"""
import torch; torch.set_num_threads({torch.get_num_threads()})
from interrupts import stop_after
from small_networks import trainer
from skdare.features.training import trainer as module
from skdare.features.training.folder import TrainingFolder
from skdare.features.training.recipe import Job
module.SAVE_EVERY = 0.0
stop_after(TrainingFolder, "save_state", 1, {int(signal.SIGKILL)})
trainer({str(tmp_path / "killed")!r})([Job("a", 0)])
"""
    process = ended(script)
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert TrainingFolder(tmp_path / "killed").record(WITHOUT_A) is None
    assert TrainingFolder(tmp_path / "killed").state(WITHOUT_A)["step"] > 0
    trainer(tmp_path / "killed")([WITHOUT_A])
    assert same_weights(weights(tmp_path / "killed"), weights(tmp_path / "whole"))


@pytest.mark.parametrize("micro_batch", [1, 3, 8])
def test_micro_batches_add_up_to_the_batch(tmp_path, micro_batch):
    recipe = replace(FAST, micro_batch=micro_batch)
    np.testing.assert_allclose(
        losses(tmp_path / "micro", recipe=recipe), losses(tmp_path / "whole"), rtol=1e-4
    )


def test_inputs_that_are_staged_give_what_resident_ones_do(tmp_path, monkeypatch):
    whole = losses(tmp_path / "resident")
    monkeypatch.setattr("skdare.features.training.trainer.place_inputs", inputs.StagedInputs)
    monkeypatch.setattr(inputs, "_STAGE_BYTES", 3 * 16 * 16 * 20)
    assert losses(tmp_path / "staged") == whole


def test_trainings_side_by_side_are_what_they_are_alone(tmp_path):
    planned = [Job("a", 0), Job("b", 0), Job(None, 1)]
    together = trainer(tmp_path / "together", at_once=3)(planned)
    alone = [trainer(tmp_path / "alone")([job])[0] for job in planned]
    assert together == alone


def test_nothing_of_the_held_out_domain_reaches_the_weights(tmp_path):
    examples = images()
    new = examples.domains == "a"
    trainer(tmp_path / "clean", examples)([WITHOUT_A])
    trainer(tmp_path / "poisoned", poisoned(examples, new))([WITHOUT_A])
    assert same_weights(weights(tmp_path / "clean"), weights(tmp_path / "poisoned"))


def test_rows_set_aside_choose_the_checkpoint_and_nothing_else(tmp_path):
    examples = images()
    aside = reserve(examples.domains, 0) & (examples.domains != "a")
    clean, other = (
        trainer(tmp_path / "run", rows)._start(WITHOUT_A).training
        for rows in (examples, poisoned(examples, aside))
    )
    clean.advance(12)
    other.advance(12)
    weights = other.state()["weights"].items()
    assert all(torch.equal(clean.state()["weights"][name], value) for name, value in weights)


def test_a_batch_has_as_many_rows_of_every_domain():
    examples = images()
    rows = RowSplit.of(examples, WITHOUT_A, 0.2)
    sampler = Sampler(list(rows.train.values()), 4, [0])
    drawn = sampler.draws(0, 7).rows
    for batch in drawn:
        names, counts = np.unique(examples.domains[batch], return_counts=True)
        assert names.tolist() == ["b", "c"]
        assert counts.tolist() == [4, 4]
    assert not np.any(rows.aside[drawn])


def test_draws_depend_on_seed_and_step_alone():
    sampler = Sampler([np.arange(50), np.arange(50, 80)], 4, [1, 2], Augmentation(), 0.5, 6)
    whole, part = sampler.draws(0, 9), sampler.draws(4, 6)
    for name in ("rows", "views", "dropout_masks"):
        np.testing.assert_array_equal(getattr(whole, name)[4:6], getattr(part, name))
    other = replace(sampler, seed=[1, 3]).draws(0, 9)
    assert not np.array_equal(whole.rows, other.rows)


@pytest.mark.parametrize("trial", [0, 1, 2])
def test_splits_are_those_of_the_bench(trial):
    examples = images()
    rows = RowSplit.of(examples, Job("b", trial), 0.2)
    np.testing.assert_array_equal(rows.aside, reserve(examples.domains, trial, 0.2))


def test_a_network_stays_in_evaluation_mode():
    tiny = backbone("tiny")
    tiny.module = torch.nn.Sequential(torch.nn.BatchNorm2d(3), tiny.module)
    network = Network(tiny, 3).train()
    before = {name: value.clone() for name, value in network.named_buffers()}
    network(torch.rand(8, 3, 16, 16)).sum().backward()
    assert all(torch.equal(before[name], value) for name, value in network.named_buffers())
    assert all(p.grad is not None for p in network.parameters())


def test_the_kept_checkpoint_is_the_best_by_the_rule(tmp_path):
    (record,) = trainer(tmp_path)([WITHOUT_A])
    values = [np.mean(list(check["accuracy"].values())) for check in record.checks]
    assert record.value == max(values)
    assert record.step == record.checks[int(np.argmax(values))]["step"]
    assert set(record.checks[0]["accuracy"]) == {"b", "c"}
    assert record.checks[-1]["step"] == FAST.steps


def _check(**accuracy: float) -> dict:
    return {"step": 1, "loss": 1.0, "accuracy": accuracy}


def test_no_scored_row_chooses_the_checkpoint_or_the_draw_of_a_ceiling(tmp_path):
    (record,) = trainer(tmp_path)([Job(None, 0)])
    first = replace(record, checks=[_check(a=0.5, b=0.8, c=0.8), _check(a=0.6, b=0.7, c=0.7)])
    second = replace(record, draw=1, checks=[_check(a=0.99, b=0.7, c=0.7)])
    assert ceiling_scores([second, first]) == {("a", 0): 0.5, ("b", 0): 0.7, ("c", 0): 0.7}
    turned = replace(second, checks=[_check(a=0.0, b=0.7, c=0.7)])
    assert ceiling_scores([first, turned])["a", 0] == 0.5


def test_a_training_that_diverges_says_so_and_leaves_no_record(tmp_path):
    recipe = replace(FAST, hyperparameters=Hyperparameters(lr=1e20, batch=4))
    with pytest.raises(ValueError, match=r"the loss at step 5 is not a number; lower lr"):
        trainer(tmp_path, recipe=recipe)([WITHOUT_A])
    assert TrainingFolder(tmp_path).records() == []


def test_the_draw_with_the_best_validation_is_selected(tmp_path):
    recipe = replace(FAST, draws=3)
    planned = jobs(list("abc"), recipe, trials=1, held_out=["a"], ceilings=False)
    records = trainer(tmp_path, recipe=recipe)(planned)
    assert [record.draw for record in records] == [0, 1, 2]
    (chosen,) = best_draws(records)
    assert chosen.value == max(record.value for record in records)


def test_batches_of_draws_stay_between_the_exponents_and_the_first_has_its_own():
    draws = [Job("a", trial, draw) for trial in range(40) for draw in range(5)]
    usual = [Recipe().drawn(job) for job in draws]
    small = [Recipe(batch_exponents=(3, 5)).drawn(job) for job in draws]
    assert {drawn.batch for job, drawn in zip(draws, small, strict=True) if job.draw == 0} == {32}
    assert min(drawn.batch for drawn in small) >= 8
    assert max(drawn.batch for drawn in small) == 32 < max(drawn.batch for drawn in usual) <= 45
    assert [drawn.lr for drawn in small] == [drawn.lr for drawn in usual]


def test_names_of_domains_may_hold_any_letter(tmp_path):
    examples = images()
    odd = np.where(examples.domains == "a", "x/../y", examples.domains)
    trainer(tmp_path / "run", replace(examples, domains=odd))([Job("x/../y", 0)])
    assert TrainingFolder(tmp_path / "run").record(Job("x/../y", 0)) is not None
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_two_trainings_at_once_in_one_folder_are_refused(tmp_path):
    trainer(tmp_path)([WITHOUT_A])
    with (
        TrainingFolder(tmp_path).locked(),
        pytest.raises(ValueError, match="another process is training"),
    ):
        trainer(tmp_path)([Job("b", 0)])
    assert len(trainer(tmp_path)([Job("b", 0)])) == 1


def _one_domain(examples):
    return replace(examples, domains=np.full(len(examples.domains), "a"))


def _one_class(examples):
    return replace(examples, labels=np.where(examples.domains == "a", examples.labels, 0))


def _one_row(examples):
    return replace(examples, domains=np.where(np.arange(90) == 7, "d", examples.domains))


def _text(examples):
    return replace(examples, kind="text")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_one_domain, "one domain"),
        (_one_class, "one class"),
        (_one_row, "domain `d` has 1 row"),
        (_text, "tiny takes images"),
    ],
)
def test_what_cannot_be_trained_on_is_refused_before_any_work(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        trainer(tmp_path / "run", change(images()))([WITHOUT_A])
    assert not (tmp_path / "run").exists()


def test_a_damaged_file_of_a_run_is_named(tmp_path):
    trainer(tmp_path)([WITHOUT_A])
    path = tmp_path / WITHOUT_A.name / "network.pt"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"network\.pt cannot be read"):
        TrainingFolder(tmp_path).weights(WITHOUT_A)
