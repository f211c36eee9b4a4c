"""A training under way: what is due after every block of steps, and at the end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from skdare.features._backbone import weights_hash
from skdare.features._recipe import RULE, Job, Recipe
from skdare.features._training import Training
from skdare.features._training_folder import TrainingFolder, TrainingRecord

# Seconds between states that are kept; longer where keeping one takes long.
SAVE_EVERY, SAVE_SHARE = 30.0, 0.05


@dataclass(eq=False)
class Active:
    """One network of a run, being trained.

    Parameters
    ----------
    job : Job
    training : Training
    recipe : Recipe
    folder : TrainingFolder
    made : dict
        What goes into its record.
    """

    job: Job
    training: Training
    recipe: Recipe
    folder: TrainingFolder
    made: Mapping[str, Any]
    _due: float = field(init=False)

    def __post_init__(self) -> None:
        self._due = time.monotonic() + SAVE_EVERY

    def advance(self) -> int:
        """Take steps up to the next check, at most a block; say how many rows that were."""
        training, every = self.training, self.recipe.check_every
        due = min(self.recipe.steps, (training.step // every + 1) * every)
        taken = training.advance(due - training.step)
        if training.step == due:
            training.check()
        if time.monotonic() > self._due and training.step < self.recipe.steps:
            self._save()
        return taken * training.sampler.total

    def _save(self) -> None:
        begin, state = time.monotonic(), self.training.state()
        if self.training.processes.first:
            self.folder.save_state(self.job, state)
        now = time.monotonic()
        self._due = now + max(SAVE_EVERY, (now - begin) / SAVE_SHARE)

    def finished(self) -> bool:
        """Whether the last step is taken; then the record is written."""
        if self.training.step < self.recipe.steps:
            return False
        record = self._record()
        if self.training.processes.first:
            self.folder.finish(record, self.training.best)
        # A program and its training hold each other; waiting for the collector, fifteen networks
        # would not fit one GPU.
        self.training.release()
        return True

    def _record(self) -> TrainingRecord:
        """Of a training that took its last step; its network then has the kept weights."""
        job, training = self.job, self.training
        last = self._accuracy()
        training.reader.load(training.best)
        kept = training.checks[int(np.argmax([check.value for check in training.checks]))]
        return TrainingRecord(
            held_out=job.held_out,
            trial=job.trial,
            draw=job.draw,
            hyperparameters=asdict(self.recipe.hyperparameters.drawn(job)),
            rule=RULE,
            step=kept.step,
            value=kept.value,
            accuracy=self._accuracy(),
            last=last,
            checks=[asdict(check) for check in training.checks],
            network=weights_hash(training.network),
            made=self.made,
        )

    def _accuracy(self) -> dict[str, float]:
        """On the held-out domain."""
        rows = self.training.rows
        if not len(rows.new):
            return {}
        correct, aside = self.training.correct(rows.new), rows.aside[rows.new]
        shares = {"reserved": correct[aside], "rest": correct[~aside], "all": correct}
        return {name: float(np.mean(flags)) for name, flags in shares.items()}
