"""Features and scores of rows, by a network with its present weights."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from skdare.features.device import CapturedGraph, compiled
from skdare.features.inputs import DeviceInputs
from skdare.features.network import Network

# Rows that pass through the network at once.
CHUNK = {"cuda": 512, "cpu": 64}


@dataclass(frozen=True)
class Outputs:
    """Features (n, dim) and scores (n, k) of a chunk of rows, in float32."""

    features: np.ndarray
    scores: np.ndarray


class _Transfer:
    """Outputs on their way from the device to the host."""

    def __init__(self, values: list[Tensor], stream: torch.cuda.Stream | None) -> None:
        self._event = None
        if stream is None:
            self._host = [value.clone() for value in values]
            return
        self._host = [torch.empty(value.shape, pin_memory=True) for value in values]
        for host, value in zip(self._host, values, strict=True):
            host.copy_(value, non_blocking=True)
        self._event = stream.record_event()

    def outputs(self) -> Outputs:
        """Wait until they have arrived."""
        if self._event is not None:
            self._event.synchronize()
        return Outputs(*(value.numpy() for value in self._host))


def _features_and_scores(
    network: Network, inputs: Tensor, rows: Tensor, precision: torch.dtype
) -> tuple[Tensor, Tensor]:
    views = network.backbone.views(inputs, rows)
    features = network.features(views, precision)
    return features, network.head(features)


class Reader:
    """Reads rows through a network, in chunks of one size; on a GPU, on a stream of its own.

    The network's weights may change between calls.
    """

    def __init__(
        self,
        network: Network,
        inputs: DeviceInputs,
        precision: torch.dtype,
        stream: torch.cuda.Stream | None = None,
    ) -> None:
        self.network = network
        self.inputs = inputs
        self.precision = precision
        self.stream = stream
        device = inputs.inputs.device
        self.chunk = min(CHUNK[device.type], inputs.capacity)
        self._rows = torch.zeros(self.chunk, dtype=torch.int64, device=device)
        self._outputs: list[Tensor] = []
        self._forward = compiled(_features_and_scores, device)
        self._graph: CapturedGraph | None = None
        self._wait_for_default_stream()

    def __call__(self, rows: np.ndarray) -> Iterator[Outputs]:
        """Features and scores of these rows, chunk by chunk, in order."""
        transfers: deque[_Transfer] = deque()
        for start in range(0, len(rows), self.chunk):
            transfers.append(self._start(rows[start : start + self.chunk]))
            # One chunk is on its way while the device works on the next.
            if len(transfers) > 1:
                yield transfers.popleft().outputs()
        while transfers:
            yield transfers.popleft().outputs()

    def _start(self, rows: np.ndarray) -> _Transfer:
        """Read a chunk; on a GPU, put that into its queue."""
        with torch.cuda.stream(self.stream):
            if self.stream is None:
                self.inputs.stage(rows, self._rows[: len(rows)])
                self._run(len(rows))
            else:
                # A graph has one shape: a short last chunk is filled up with its first row.
                full = np.concatenate([rows, np.repeat(rows[:1], self.chunk - len(rows))])
                self.inputs.stage(full, self._rows)
                if self._graph is None:
                    self._graph = CapturedGraph(self._run, self.stream)
                self._graph()
            return _Transfer([output[: len(rows)] for output in self._outputs], self.stream)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Replace the network's weights, in place, before anything else is read."""
        self.network.load_state_dict(weights)
        self._wait_for_default_stream()

    def _wait_for_default_stream(self) -> None:
        """Let this stream wait for weights and inputs that were copied on the default one."""
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream(self._rows.device))

    def release(self) -> None:
        """Free the captured graph; it is captured again when it is needed."""
        self._graph = None

    @torch.no_grad()
    def _run(self, count: int | None = None) -> None:
        outputs = self._forward(
            self.network, self.inputs.inputs, self._rows[:count], self.precision
        )
        if self.stream is None or not self._outputs:
            self._outputs = [torch.empty_like(value) for value in outputs]
        for place, value in zip(self._outputs, outputs, strict=True):
            place.copy_(value)
