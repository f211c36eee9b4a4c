"""Fine-tune the networks of a run, and go on with one that was stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from skdare import __version__
from skdare.errors import InputError
from skdare.features.backbones.backbone import Backbone, provenance, weights_hash
from skdare.features.device import pick_device, pick_precision, torch_tuned_for
from skdare.features.examples.examples import Examples
from skdare.features.inputs import DeviceInputs, ResidentInputs, place_inputs
from skdare.features.network import Network
from skdare.features.training.folder import TrainingFolder, TrainingRecord
from skdare.features.training.recipe import RULE, Job, Recipe
from skdare.features.training.sampler import RowSplit, Sampler, check_trainable
from skdare.features.training.training import Training

# Networks in training at the same time.
AT_ONCE = {"cuda": 4, "cpu": 1}
# Seconds between saved states of a network; longer where saving all that train side by side takes
# more than this share of the time.
SAVE_EVERY = 30.0
_SAVE_SHARE = 0.05
# Seconds of steps between two looks at progress on a CPU. There a block of a large network takes
# minutes, and a stop would lose all of it.
_SECONDS_OF_STEPS = 2.0


class Trainer:
    """Trains the networks of a run, several at once where the device has room.

    Parameters
    ----------
    examples : Examples
    backbone : Backbone
    recipe : Recipe
    folder : path
        Folder of the run; a run that was stopped goes on.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.
    at_once : int, optional
        Networks in training at the same time; default: 4 on a GPU, else 1.
    source : dict, optional
        Where examples and backbone come from, written down so that they can be found again.
    """

    def __init__(
        self,
        examples: Examples,
        backbone: Backbone,
        recipe: Recipe,
        folder: str | os.PathLike[str],
        *,
        device: str = "auto",
        at_once: int | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        if examples.kind != backbone.kind:
            raise InputError(
                f"{backbone.name} takes {backbone.kind}s, and {examples.name} has "
                f"{examples.kind}s; choose another backbone"
            )
        self.examples = examples
        self.backbone = backbone
        self.recipe = recipe
        self.folder = TrainingFolder(folder)
        self.device = pick_device(device)
        self.at_once = at_once or AT_ONCE[self.device.type]
        self.source = source or {}
        self.precision = pick_precision(recipe.precision, self.device)
        self._provenance = provenance(backbone, examples)
        self._provenance["precision"] = str(self.precision).removeprefix("torch.")
        self._domains = np.unique(examples.domains)
        self._encoded: np.ndarray | None = None
        self._resident: ResidentInputs | None = None

    def remaining(self, planned: Iterable[Job]) -> int:
        """Number of rows that are still to be trained on."""
        rows = 0
        for job in planned:
            if self.folder.record(job) is None:
                steps = self.recipe.steps - self.folder.step(job)
                rows += self._rows_per_step(job) * steps
        return rows

    def __call__(
        self,
        planned: Sequence[Job],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> list[TrainingRecord]:
        """Train the networks that are not done yet.

        Parameters
        ----------
        planned : sequence of Job
            As `jobs` lists them.
        progress : callable, optional
            Called with the number of rows that were just trained on.

        Returns
        -------
        list of TrainingRecord
            Of all planned networks: hyperparameters, accuracy, and how they were made.
        """
        check_trainable(self.examples, {job.held_out for job in planned}, self.recipe.aside)
        # Without a bottleneck this is said too, so that going on with one is refused.
        settings = {"bottleneck": None, **self._provenance, "recipe": self.recipe.settings()}
        self.folder.begin(settings, self.source)
        with self.folder.locked(), torch_tuned_for(self.device, self.backbone.module):
            waiting = [job for job in planned if self.folder.record(job) is None]
            self._train(waiting, progress or (lambda rows: None))
        records = [self.folder.record(job) for job in planned]
        return [record for record in records if record is not None]

    def _train(self, waiting: list[Job], progress: Callable[[int], None]) -> None:
        active: list[ActiveTraining] = []
        while waiting or active:
            while waiting and len(active) < self.at_once:
                active.append(self._start(waiting.pop(0)))
            for one in active:
                progress(one.advance())
            for one in [one for one in active if one.is_done]:
                one.finish()
                active.remove(one)

    def _rows_per_step(self, job: Job) -> int:
        domains = len(self._domains) - (job.held_out is not None)
        return self.recipe.drawn(job).batch * domains

    def _start(self, job: Job) -> ActiveTraining:
        training = self._training(job)
        state = self.folder.state(job)
        if state is not None:
            training.restore(state)
        return ActiveTraining(
            job, training, self.recipe, self.folder, self._made(), at_once=self.at_once
        )

    def _training(self, job: Job) -> Training:
        recipe = self.recipe
        backbone = self.backbone
        rows = RowSplit.of(self.examples, job, recipe.aside)
        hyperparameters = recipe.drawn(job)
        seed = int(np.random.default_rng(job.seed("last layer")).integers(2**31))
        network = Network(backbone, len(self.examples.classes), hyperparameters.dropout, seed)
        sampler = Sampler(
            list(rows.train.values()),
            hyperparameters.batch,
            job.seed("steps"),
            recipe.augmentation if backbone.kind == "image" else None,
            hyperparameters.dropout,
            backbone.dim,
        )
        return Training(
            network.placed(self.device),
            self._inputs(sampler.total),
            sampler,
            rows,
            hyperparameters,
            self.precision,
            micro_batch=recipe.micro_batch,
        )

    def _inputs(self, at_least: int) -> DeviceInputs:
        """Inputs on the device: the same for all trainings where they fit, else a stage each."""
        if self._resident is not None:
            return self._resident
        if self._encoded is None:
            self._encoded = self.backbone.encode(self.examples)
        inputs = place_inputs(self._encoded, self.examples.labels, self.device, at_least)
        if isinstance(inputs, ResidentInputs):
            self._resident = inputs
        return inputs

    def _made(self) -> dict[str, Any]:
        """How networks of this run are made, for their records."""
        cuda = self.device.type == "cuda"
        return {
            **self._provenance,
            "device": torch.cuda.get_device_name(self.device) if cuda else "cpu",
            "torch": torch.__version__,
            "skdare": __version__,
        }


class ActiveTraining:
    """One network of a run in training: its checkpoints, saved states and record."""

    def __init__(
        self,
        job: Job,
        training: Training,
        recipe: Recipe,
        folder: TrainingFolder,
        made: Mapping[str, Any],
        *,
        at_once: int,
    ) -> None:
        self.job = job
        self.training = training
        self._recipe = recipe
        self._folder = folder
        self._made = made
        self._at_once = at_once
        self._next_save = time.monotonic() + SAVE_EVERY
        # At once; on a CPU the first few show how long one takes.
        self._most_steps = training.block if training.stream is not None else 1

    @property
    def is_done(self) -> bool:
        """Whether the last step is taken."""
        return self.training.step >= self._recipe.steps

    def advance(self) -> int:
        """Take steps up to the next checkpoint; return the number of rows.

        At most a block on a GPU, and on a CPU as many as take about two seconds.
        """
        training = self.training
        start = time.monotonic()
        every = self._recipe.check_every
        checkpoint = min(self._recipe.steps, (training.step // every + 1) * every)
        steps = training.advance(min(checkpoint - training.step, self._most_steps))
        if training.stream is None:
            pace = (time.monotonic() - start) / steps
            wanted = int(_SECONDS_OF_STEPS / max(pace, 1e-9))
            self._most_steps = max(1, min(training.block, 2 * self._most_steps, wanted))
        if training.step == checkpoint:
            training.check()
        if time.monotonic() > self._next_save and not self.is_done:
            self._save()
        return steps * training.sampler.total

    def _save(self) -> None:
        start = time.monotonic()
        state = self.training.state()
        self._folder.save_state(self.job, state)
        now = time.monotonic()
        self._next_save = now + max(SAVE_EVERY, self._at_once * (now - start) / _SAVE_SHARE)

    def finish(self) -> None:
        """Write the record and the kept weights."""
        record = self._record()
        self._folder.finish(record, self.training.best)
        # A graph and its training hold each other; waiting for the collector, fifteen networks
        # would not fit one GPU.
        self.training.release()

    def _record(self) -> TrainingRecord:
        """Record of a finished training; its network has the kept weights afterwards."""
        job = self.job
        training = self.training
        last = self._accuracy()
        training.reader.load(training.best)
        return TrainingRecord(
            held_out=job.held_out,
            trial=job.trial,
            draw=job.draw,
            hyperparameters=asdict(self._recipe.drawn(job)),
            rule=RULE,
            step=training.kept.step,
            value=training.kept.value,
            accuracy=self._accuracy(),
            last=last,
            checks=[asdict(checkpoint) for checkpoint in training.checkpoints],
            network=weights_hash(training.network),
            made=self._made,
        )

    def _accuracy(self) -> dict[str, float]:
        """Accuracy on the held-out domain."""
        rows = self.training.rows
        if not len(rows.new):
            return {}
        correct = self.training.correct(rows.new)
        aside = rows.aside[rows.new]
        shares = {"reserved": correct[aside], "rest": correct[~aside], "all": correct}
        return {name: float(np.mean(flags)) for name, flags in shares.items()}
