"""One network in training: steps, checkpoints, and the state from which it can go on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skdare.errors import InputError
from skdare.features.device import WARM_UPS, CapturedGraph, compiled
from skdare.features.inputs import DeviceInputs, copy_to
from skdare.features.network import Network
from skdare.features.reader import Reader
from skdare.features.training.recipe import Hyperparameters
from skdare.features.training.sampler import RowSplit, Sampler

# Steps whose random numbers are drawn and sent to the device at once.
_STEPS_PER_BLOCK = 32
# Blocks in the queue of a GPU before the host waits.
_BLOCKS_AHEAD = 2
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class Checkpoint:
    """Mean loss since the last checkpoint, and accuracy on rows set aside, by domain."""

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
    dropout_mask: Tensor | None

    def part(self, rows: slice) -> Batch:
        """Some of the rows."""
        views = None if self.views is None else self.views[rows]
        mask = None if self.dropout_mask is None else self.dropout_mask[rows]
        return Batch(self.rows[rows], views, mask)


def _loss(network: Network, inputs: DeviceInputs, batch: Batch, precision: torch.dtype) -> Tensor:
    """Sum over rows of the cross-entropy."""
    views = network.backbone.views(inputs.inputs, batch.rows, batch.views)
    scores = network(views, batch.dropout_mask, precision)
    return F.cross_entropy(scores, inputs.labels[batch.rows], reduction="sum")


class Training:
    """ERM on equal batches of every training domain."""

    def __init__(
        self,
        network: Network,
        inputs: DeviceInputs,
        sampler: Sampler,
        rows: RowSplit,
        hyperparameters: Hyperparameters,
        precision: torch.dtype,
        *,
        micro_batch: int | None = None,
    ) -> None:
        self.network = network
        self.inputs = inputs
        self.sampler = sampler
        self.rows = rows
        self.precision = precision
        self.device = inputs.inputs.device
        self.step = 0
        self.checkpoints: list[Checkpoint] = []
        self.best: dict[str, Tensor] = {}
        cuda = self.device.type == "cuda"
        self.stream = torch.cuda.Stream(self.device) if cuda else None
        self.block = max(1, min(_STEPS_PER_BLOCK, inputs.capacity // sampler.total))
        self._adam = torch.optim.Adam(
            network.parameters(),
            lr=hyperparameters.lr,
            weight_decay=hyperparameters.weight_decay,
            fused=True,
            capturable=cuda,
        )
        micro_batch = micro_batch or sampler.total
        starts = range(0, sampler.total, micro_batch)
        self._micro_batches = [slice(start, start + micro_batch) for start in starts]
        self._losses: list[float] = []  # since the last checkpoint
        self._pending: deque[tuple[Any, Tensor]] = deque()
        self._allocate()
        self._loss = compiled(_loss, self.device)
        self._run_step: Callable[[], None] | None = None
        self.reader = Reader(network, inputs, precision, self.stream)

    def _allocate(self) -> None:
        """Reserve fixed places for what a block of steps reads and writes."""
        rows = self.sampler.total
        device = self.device
        # Capturing runs a few steps before any is counted.
        steps = max(self.block, WARM_UPS + 1)
        self._rows = torch.zeros((steps, rows), dtype=torch.int64, device=device)
        self._views = self._dropout_masks = None
        if self.sampler.augmentation is not None:
            self._views = torch.zeros((steps, rows, 10), device=device)
        if self.sampler.dropout > 0:
            shape = (steps, rows, self.sampler.dim)
            self._dropout_masks = torch.zeros(shape, dtype=torch.bool, device=device)
        self._counter = torch.zeros(1, dtype=torch.int64, device=device)
        self._step_losses = torch.zeros(steps, device=device)

    def advance(self, most: int) -> int:
        """Take up to ``most`` steps, at most a block; on a GPU, put them into its queue."""
        count = min(most, self.block)
        with torch.cuda.stream(self.stream):
            self._load_draws(count)
            if self._run_step is None:
                self._run_step = self._captured_step()
            self._counter.zero_()
            for _ in range(count):
                self._run_step()
            self._fetch_losses(count)
        self.step += count
        return count

    def _load_draws(self, count: int) -> None:
        draws = self.sampler.draws(self.step, self.step + count)
        self.inputs.stage(draws.rows, self._rows[:count])
        if self._views is not None and draws.views is not None:
            copy_to(self._views[:count], draws.views)
        if self._dropout_masks is not None and draws.dropout_masks is not None:
            copy_to(self._dropout_masks[:count], draws.dropout_masks)

    def _captured_step(self) -> Callable[[], None]:
        """The step, on a GPU as one graph; the steps that capturing takes are undone."""
        if self.stream is None:
            return self._take_step
        state = self.state()
        graph = CapturedGraph(self._take_step, self.stream)
        self.restore(state)
        return graph

    def _take_step(self) -> None:
        at = self._counter
        views, mask = (
            None if place is None else place.index_select(0, at).squeeze(0)
            for place in (self._views, self._dropout_masks)
        )
        batch = Batch(self._rows.index_select(0, at).squeeze(0), views, mask)
        self._adam.zero_grad(set_to_none=True)
        total = torch.zeros(1, device=self.device)
        for rows in self._micro_batches:
            part = batch.part(rows)
            loss = self._loss(self.network, self.inputs, part, self.precision)
            loss = loss / self.sampler.total
            loss.backward()
            total += loss.detach()
        self._adam.step()
        self._step_losses.index_copy_(0, at, total)
        at += 1

    def _fetch_losses(self, count: int) -> None:
        """Send the losses to the host; wait where too much is in the queue."""
        if self.stream is None:
            self._losses += self._step_losses[:count].tolist()
            return
        host = torch.empty(count, pin_memory=True)
        host.copy_(self._step_losses[:count], non_blocking=True)
        self._pending.append((self.stream.record_event(), host))
        self._wait_for_losses(_BLOCKS_AHEAD)

    def _wait_for_losses(self, most_pending: int) -> None:
        while len(self._pending) > most_pending:
            event, host = self._pending.popleft()
            event.synchronize()
            self._losses += host.tolist()

    def wait(self) -> None:
        """Wait until all steps are taken."""
        self._wait_for_losses(0)

    def check(self) -> Checkpoint:
        """Measure accuracy on rows set aside, and keep the weights if they are the best so far."""
        self.wait()
        loss = float(np.mean(self._losses)) if self._losses else float("nan")
        if not np.isfinite(loss):
            raise InputError(f"the loss at step {self.step} is not a number", "lower lr")
        accuracy = {
            domain: float(np.mean(self.correct(rows))) for domain, rows in self.rows.valid.items()
        }
        checkpoint = Checkpoint(self.step, loss, accuracy)
        self.checkpoints.append(checkpoint)
        if self.kept is checkpoint:
            self.best = _copied(self.network.state_dict())
        self._losses = []
        return checkpoint

    @property
    def kept(self) -> Checkpoint:
        """The checkpoint whose weights are kept: the first of the highest value."""
        return max(self.checkpoints, key=lambda checkpoint: checkpoint.value)

    def correct(self, rows: np.ndarray) -> np.ndarray:
        """Whether the network gets each of these rows right."""
        guesses = [outputs.scores.argmax(axis=1) for outputs in self.reader(rows)]
        return np.concatenate(guesses or [rows]) == self.rows.labels[rows]

    def release(self) -> None:
        """Free captured graphs and their memory; the training cannot go on afterwards."""
        self.wait()
        self._run_step = None
        self.reader.release()

    def state(self) -> dict[str, Any]:
        """Everything that decides how the training goes on."""
        self.wait()
        return {
            "step": self.step,
            "weights": _copied(self.network.state_dict()),
            "adam": _copied(adam_moments(self._adam, self.network)),
            "heard": list(self._losses),
            "checks": [(c.step, c.loss, dict(c.accuracy)) for c in self.checkpoints],
            "best": self.best,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; values at fixed places are overwritten, not replaced."""
        self.wait()
        self.step = state["step"]
        restore_moments(self._adam, self.network, state["adam"])
        self.reader.load(state["weights"])
        self._losses = list(state["heard"])
        self.checkpoints = [Checkpoint(*fields) for fields in state["checks"]]
        self.best = state["best"]


def adam_moments(adam: torch.optim.Adam, module: nn.Module) -> dict[str, Tensor]:
    """Running moments of Adam, by the names of the parameters."""
    return {
        f"{name}:{key}": value
        for name, parameter in module.named_parameters()
        for key, value in adam.state.get(parameter, {}).items()
    }


def restore_moments(
    adam: torch.optim.Adam, module: nn.Module, moments: Mapping[str, Tensor]
) -> None:
    """Go on from these moments, in place.

    Adam's own ``load_state_dict`` replaces the tensors, whose addresses a captured graph knows.
    """
    for name, parameter in module.named_parameters():
        state = adam.state[parameter]
        for key in _MOMENTS:
            value = moments.get(f"{name}:{key}")
            if key in state:
                state[key].copy_(torch.zeros_like(state[key]) if value is None else value)
            elif value is not None:
                state[key] = value.to(parameter.device, copy=True)


def _copied(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in values.items()}
