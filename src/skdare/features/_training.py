"""One network in training: steps, checks, and the state from which it can go on."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from skdare._validation import InputError
from skdare.features._adam import NamedAdam
from skdare.features._draws import Sampler
from skdare.features._feed import Feed, put
from skdare.features._network import Network
from skdare.features._processes import Processes
from skdare.features._program import WARM_UPS, Program, compiled
from skdare.features._reader import Reader
from skdare.features._recipe import Hyperparameters
from skdare.features._rows import Rows

# Steps whose random numbers are drawn and sent to the device at once.
BLOCK = 32
# Blocks in the queue of a GPU before the host waits.
_IN_FLIGHT = 2


@dataclass(frozen=True)
class Check:
    """A checkpoint: the mean loss since the last one, and accuracy on rows set aside by domain."""

    step: int
    loss: float
    accuracy: Mapping[str, float]

    @property
    def value(self) -> float:
        """What selection looks at: the unweighted mean over domains."""
        return float(np.mean(list(self.accuracy.values())))


class Batch(NamedTuple):
    """Rows of a step, and what is drawn for them; a tuple, which the compiler looks into."""

    rows: Tensor
    views: Tensor | None
    kept: Tensor | None

    def part(self, rows: slice) -> Batch:
        """Some of the rows."""
        views = None if self.views is None else self.views[rows]
        return Batch(self.rows[rows], views, None if self.kept is None else self.kept[rows])


def _loss(
    model: torch.nn.Module, network: Network, feed: Feed, batch: Batch, precision: torch.dtype
) -> Tensor:
    """Sum over rows of the cross-entropy; the model is the network, or wraps it."""
    views = network.backbone.views(feed.inputs, batch.rows, batch.views)
    scores = model(views, batch.kept, precision)
    return F.cross_entropy(scores, feed.labels[batch.rows], reduction="sum")


class Training:
    """ERM on equal batches of every training domain.

    Parameters
    ----------
    network : Network
    feed : Feed
    sampler : Sampler
    rows : Rows
        Of the training domains, those set aside for validation.
    hyperparameters : Hyperparameters
    precision : torch.dtype
    micro_batch : int, optional
    processes : Processes
    """

    def __init__(
        self,
        network: Network,
        feed: Feed,
        sampler: Sampler,
        rows: Rows,
        hyperparameters: Hyperparameters,
        precision: torch.dtype,
        *,
        micro_batch: int | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.network, self.feed, self.sampler, self.rows = network, feed, sampler, rows
        self.precision, self.device = precision, feed.inputs.device
        self.processes = processes or Processes()
        self.step = 0
        self.checks: list[Check] = []
        self.best: dict[str, Tensor] = {}
        self._heard: list[float] = []
        cuda = self.device.type == "cuda"
        self.stream = torch.cuda.Stream(self.device) if cuda else None
        self.block = max(1, min(BLOCK, feed.most // sampler.own))
        self._adam = NamedAdam(network, hyperparameters, capturable=cuda)
        own = sampler.own
        self._parts = [
            slice(i, i + (micro_batch or own)) for i in range(0, own, micro_batch or own)
        ]
        self._pending: deque[tuple[Any, Tensor]] = deque()
        self._allocate()
        self._model: torch.nn.Module = network
        if self.processes.several:
            self._freeze_idle()
            self._model = DistributedDataParallel(network)
        self._loss = _loss if self.processes.several else compiled(_loss, self.device)
        self._program: Program | None = None
        self.reader = Reader(network, feed, precision, self.stream)

    def _freeze_idle(self) -> None:
        """Leave out parameters that features do not depend on: processes would wait for them."""
        views = self.network.backbone.views(self.feed.inputs, torch.zeros_like(self._rows[0, :1]))
        self.network(views).sum().backward()
        for parameter in self.network.parameters():
            parameter.requires_grad_(parameter.grad is not None)
            parameter.grad = None

    def _allocate(self) -> None:
        """Places for what a block of steps reads and writes."""
        own, device = self.sampler.own, self.device
        # Capturing runs a few steps before any is counted.
        steps = max(self.block, WARM_UPS + 1)
        self._rows = torch.zeros((steps, own), dtype=torch.int64, device=device)
        self._views = self._kept = None
        if self.sampler.augmentation is not None:
            self._views = torch.zeros((steps, own, 10), device=device)
        if self.sampler.dropout > 0:
            kept = (steps, own, self.sampler.dim)
            self._kept = torch.zeros(kept, dtype=torch.bool, device=device)
        self._counter = torch.zeros(1, dtype=torch.int64, device=device)
        self._losses = torch.zeros(steps, device=device)

    def advance(self, most: int) -> int:
        """Take up to so many steps, at most a block; on a GPU, put them into its queue."""
        count = min(most, self.block)
        with torch.cuda.stream(self.stream):
            self._load_draws(count)
            if self._program is None:
                self._program = self._prepared()
            self._counter.zero_()
            for _ in range(count):
                self._program()
            self._remember(count)
        self.step += count
        return count

    def _load_draws(self, count: int) -> None:
        drawn = self.sampler.draws(self.step, self.step + count)
        self.feed.stage(drawn.rows, self._rows[:count])
        for place, values in ((self._views, drawn.views), (self._kept, drawn.kept)):
            if place is not None and values is not None:
                put(place[:count], values)

    def _prepared(self) -> Program:
        """The step as a program; capturing takes steps, which are undone."""
        captures = self.device.type == "cuda" and not self.processes.several
        state = self.state() if captures else None
        program = Program(self._take_step, self.device, self.stream, capture=captures)
        if state is not None:
            self.restore(state)
        return program

    def _take_step(self) -> None:
        at = self._counter
        views, kept = (
            None if place is None else place.index_select(0, at).squeeze(0)
            for place in (self._views, self._kept)
        )
        batch = Batch(self._rows.index_select(0, at).squeeze(0), views, kept)
        self._adam.clear()
        total = torch.zeros(1, device=self.device)
        for i, part in enumerate(self._parts):
            with self.processes.waiting(self._model, last=i == len(self._parts) - 1):
                some = batch.part(part)
                loss = self._loss(self._model, self.network, self.feed, some, self.precision)
                # The mean over the batch of all processes, whose gradients are averaged.
                loss = loss * (self.processes.count / self.sampler.total)
                loss.backward()
            total += loss.detach()
        self._adam.step()
        self._losses.index_copy_(0, at, total)
        at += 1

    def _remember(self, count: int) -> None:
        """Send the losses to the host; wait where too much is in the queue."""
        if self.stream is None:
            self._heard += self._losses[:count].tolist()
            return
        host = torch.empty(count, pin_memory=True)
        host.copy_(self._losses[:count], non_blocking=True)
        self._pending.append((self.stream.record_event(), host))
        self._collect(_IN_FLIGHT)

    def _collect(self, left: int) -> None:
        while len(self._pending) > left:
            event, host = self._pending.popleft()
            event.synchronize()
            self._heard += host.tolist()

    def wait(self) -> None:
        """Until all steps are taken."""
        self._collect(0)

    def check(self) -> Check:
        """Measure accuracy on rows set aside, and keep the weights if they are the best so far."""
        self.wait()
        loss = self.processes.mean(float(np.mean(self._heard)) if self._heard else float("nan"))
        if not np.isfinite(loss):
            raise InputError(
                f"the loss at step {self.step} is not a number", "lower lr", argument="lr"
            )
        accuracy = {domain: self.accuracy(rows) for domain, rows in self.rows.valid.items()}
        found = Check(self.step, loss, accuracy)
        if all(found.value > earlier.value for earlier in self.checks):
            self.best = _copied(self.network.state_dict())
        self.checks.append(found)
        self._heard = []
        return found

    def accuracy(self, rows: np.ndarray) -> float:
        """Share of these rows that the network gets right."""
        return float(np.mean(self.correct(rows)))

    def correct(self, rows: np.ndarray) -> np.ndarray:
        """Which of these rows the network gets right; every process reads its share."""
        own = rows[self.processes.rank :: self.processes.count]
        guesses = [read.scores.argmax(axis=1) for read in self.reader(own)]
        found = np.concatenate(guesses or [own]) == self.rows.labels[own]
        return self.processes.interleaved(found, len(rows))

    def release(self) -> None:
        """Let go of captured programs and their memory; it cannot go on."""
        self.wait()
        self._program = None
        # Its threads must end before the group of processes does.
        self._model = self.network
        self.reader.release()

    def state(self) -> dict[str, Any]:
        """Everything that decides how the training goes on."""
        self.wait()
        return {
            "step": self.step,
            "weights": _copied(self.network.state_dict()),
            "adam": _copied(self._adam.moments()),
            "heard": list(self._heard),
            "checks": [(c.step, c.loss, dict(c.accuracy)) for c in self.checks],
            "best": self.best,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; what lies in fixed places is written over, not replaced."""
        self.wait()
        self.step = state["step"]
        self._adam.restore(state["adam"])
        self.reader.load(state["weights"])
        self._heard = list(state["heard"])
        self.checks = [Check(*entry) for entry in state["checks"]]
        self.best = state["best"]


def _copied(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in values.items()}
