"""Fine-tune networks: one for each held-out domain and trial, and one on all domains a trial."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

import skdare
from skdare._validation import InputError, check_count
from skdare.features._active import Active
from skdare.features._backbone import Backbone, provenance
from skdare.features._device import pick_device, pick_precision
from skdare.features._draws import Sampler
from skdare.features._examples import Examples
from skdare.features._feed import Feed, Resident, feed
from skdare.features._network import Network
from skdare.features._processes import Processes
from skdare.features._program import working
from skdare.features._recipe import Job, Recipe
from skdare.features._rows import Rows, check_trainable
from skdare.features._training import Training
from skdare.features._training_folder import TrainingFolder, TrainingRecord

AT_ONCE = {"cuda": 4, "cpu": 1}


def jobs(
    domains: Sequence[str],
    recipe: Recipe,
    *,
    trials: int = 3,
    held_out: Sequence[str] | None = None,
    ceilings: bool = True,
) -> list[Job]:
    """Every network of a reproduction: each domain held out, and none, in each trial.

    Parameters
    ----------
    domains : sequence of str
    recipe : Recipe
    trials : int
    held_out : sequence of str, optional
        Default: every domain.
    ceilings : bool
        Whether to train on all domains too.
    """
    check_count("trials", trials, 1)
    absent = [domain for domain in held_out or () if domain not in domains]
    if absent:
        known = ", ".join(f"`{name}`" for name in domains)
        raise ValueError(f"held-out domain `{absent[0]}` is not there; there are {known}")
    places: list[str | None] = [*(held_out or domains), *([None] * ceilings)]
    return [
        Job(domain, trial, draw)
        for trial in range(trials)
        for domain in places
        for draw in range(recipe.draws)
    ]


class Trainer:
    """Trains the networks of a run, several at once where the device has room.

    Parameters
    ----------
    examples : Examples
    backbone : Backbone
    recipe : Recipe
    folder : path
        Of the run; a run that was stopped goes on.
    device : str
    at_once : int, optional
        Networks in training at the same time; default: 4 on a GPU, else 1.
    progress : callable, optional
        Called with the number of images that were just trained on.
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
        progress: Callable[[int], None] | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        if examples.kind != backbone.kind:
            raise ValueError(
                f"{backbone.name} takes {backbone.kind}s, and {examples.name} has "
                f"{examples.kind}s; choose another backbone"
            )
        self.examples, self.backbone, self.recipe = examples, backbone, recipe
        self.device, self.folder = pick_device(device), TrainingFolder(folder)
        self.processes = Processes.found(self.device)
        self.at_once = at_once or (1 if self.processes.several else AT_ONCE[self.device.type])
        self.progress, self.source = progress or (lambda images: None), source or {}
        self.say: Callable[[str], None] | None = None
        self.precision = pick_precision(recipe.precision, self.device)
        self._made = provenance(backbone, examples)
        self._made["precision"] = str(self.precision).removeprefix("torch.")
        self._domains = np.unique(examples.domains)
        self._inputs: np.ndarray | None = None
        self._resident: Resident | None = None

    def images(self, job: Job) -> int:
        """How many images a job trains on in all."""
        domains = len(self._domains) - (job.held_out is not None)
        return self.recipe.steps * self.recipe.hyperparameters.drawn(job).batch * domains

    def remaining(self, planned: Iterable[Job]) -> int:
        """How many images are still to be trained on."""
        left = 0
        for job in planned:
            if self.folder.record(job) is None:
                done = self.folder.step(job)
                left += self.images(job) * (self.recipe.steps - done) // self.recipe.steps
        return left

    def __call__(self, planned: Sequence[Job]) -> list[TrainingRecord]:
        """Train what is not done yet; return the records of all."""
        check_trainable(self.examples, {job.held_out for job in planned}, self.recipe.aside)
        self._check_shares(planned)
        if self.processes.first:
            settings = {**self._made, "recipe": self.recipe.deciding()}
            self.folder.agree(settings, self.source)
        self.processes.together()
        alone = self.folder.locked() if self.processes.first else nullcontext()
        with alone, working(self.device, self.backbone.module):
            self._train([job for job in planned if self.folder.record(job) is None])
        self.processes.together()
        found = [self.folder.record(job) for job in planned]
        return [record for record in found if record is not None]

    def _train(self, waiting: list[Job]) -> None:
        active: list[Active] = []
        while waiting or active:
            while waiting and len(active) < self.at_once:
                active.append(self._start(waiting.pop(0)))
            for one in active:
                self.progress(one.advance())
            for one in [one for one in active if one.finished()]:
                active.remove(one)
                if self.say is not None:
                    self.say(f"trained {one.job.name}")

    def _check_shares(self, planned: Sequence[Job]) -> None:
        """Every process needs a row of every batch."""
        for job in planned:
            rows = self.images(job) // self.recipe.steps
            if rows < self.processes.count:
                raise InputError(
                    f"{job.name} has {rows} rows a step for {self.processes.count} processes",
                    "raise batch, or start fewer processes",
                    argument="batch",
                )

    def _start(self, job: Job) -> Active:
        rows = Rows.of(self.examples, job, self.recipe.aside)
        training = self._training(job, rows)
        state = self.folder.state(job)
        if state is not None:
            training.restore(state)
        return Active(job, training, self.recipe, self.folder, self.made())

    def _training(self, job: Job, rows: Rows) -> Training:
        recipe, backbone = self.recipe, self.backbone
        hyper = recipe.hyperparameters.drawn(job)
        seed = int(np.random.default_rng(job.seed("last layer")).integers(2**31))
        network = Network(backbone, len(self.examples.classes), hyper.dropout, seed)
        sampler = Sampler(
            list(rows.train.values()),
            hyper.batch,
            job.seed("steps"),
            recipe.augmentation if backbone.kind == "image" else None,
            hyper.dropout,
            backbone.dim,
            (self.processes.rank, self.processes.count),
        )
        return Training(
            network.placed(self.device),
            self.feed(sampler.own),
            sampler,
            rows,
            hyper,
            self.precision,
            micro_batch=recipe.micro_batch,
            processes=self.processes,
        )

    def feed(self, least: int) -> Feed:
        """The inputs: one place for all trainings, or a stage for each, at least of so many."""
        if self._resident is not None:
            return self._resident
        if self._inputs is None:
            self._inputs = self.backbone.encode(self.examples)
        found = feed(self._inputs, self.examples.labels, self.device, least)
        if isinstance(found, Resident):
            self._resident = found
        return found

    def made(self) -> dict[str, Any]:
        """How networks of this run are made, for their records."""
        cuda = self.device.type == "cuda"
        return {
            **self._made,
            "device": torch.cuda.get_device_name(self.device) if cuda else "cpu",
            "processes": self.processes.count,
            "torch": torch.__version__,
            "skdare": skdare.__version__,
        }
