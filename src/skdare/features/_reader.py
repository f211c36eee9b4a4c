"""Features and scores of rows, by a network as it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from skdare.features._feed import Feed
from skdare.features._network import Network
from skdare.features._program import Program, compiled

# Rows that pass through the network at once.
CHUNK = {"cuda": 512, "cpu": 64}


@dataclass(frozen=True)
class Read:
    """Of a chunk of rows.

    Parameters
    ----------
    features : float32 array of shape (n, dim)
    scores : float32 array of shape (n, k)
    """

    features: np.ndarray
    scores: np.ndarray


class _Sent:
    """Results on their way to the host."""

    def __init__(self, values: list[Tensor], stream: torch.cuda.Stream | None) -> None:
        self._event = None
        if stream is None:
            self._host = [value.clone() for value in values]
            return
        self._host = [torch.empty(value.shape, pin_memory=True) for value in values]
        for host, value in zip(self._host, values, strict=True):
            host.copy_(value, non_blocking=True)
        self._event = stream.record_event()

    def received(self) -> Read:
        """Once they are there."""
        if self._event is not None:
            self._event.synchronize()
        return Read(*(value.numpy() for value in self._host))


def _read(
    network: Network, inputs: Tensor, rows: Tensor, precision: torch.dtype
) -> tuple[Tensor, Tensor]:
    views = network.backbone.views(inputs, rows)
    features = network.features(views, precision)
    return features, network.head(features)


class Reader:
    """Reads rows through a network, in chunks of one size.

    Parameters
    ----------
    network : Network
        Its weights may change between calls.
    feed : Feed
    precision : torch.dtype
        Of products inside the backbone.
    stream : torch.cuda.Stream, optional
    """

    def __init__(
        self,
        network: Network,
        feed: Feed,
        precision: torch.dtype,
        stream: torch.cuda.Stream | None = None,
    ) -> None:
        self.network, self.feed, self.precision, self.stream = network, feed, precision, stream
        device = feed.inputs.device
        self.chunk = min(CHUNK[device.type], feed.most)
        self._rows = torch.zeros(self.chunk, dtype=torch.int64, device=device)
        self._out: list[Tensor] = []
        self._work = compiled(_read, device)
        self._program: Program | None = None
        self.follow()

    def __call__(self, rows: np.ndarray) -> Iterator[Read]:
        """Features and scores of these rows, chunk by chunk, in order."""
        ahead: deque[_Sent] = deque()
        for start in range(0, len(rows), self.chunk):
            ahead.append(self._send(rows[start : start + self.chunk]))
            # One chunk is on its way while the device works on the next.
            if len(ahead) > 1:
                yield ahead.popleft().received()
        while ahead:
            yield ahead.popleft().received()

    def _send(self, rows: np.ndarray) -> _Sent:
        """Read a chunk; on a GPU, put that into its queue."""
        with torch.cuda.stream(self.stream):
            if self.stream is None:
                self.feed.stage(rows, self._rows[: len(rows)])
                self._run(len(rows))
            else:
                # A graph has one shape: a short last chunk is filled up with its first row.
                full = np.concatenate([rows, np.repeat(rows[:1], self.chunk - len(rows))])
                self.feed.stage(full, self._rows)
                if self._program is None:
                    self._program = Program(self._run, self._rows.device, self.stream)
                self._program()
            return _Sent([out[: len(rows)] for out in self._out], self.stream)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Take other weights, in place, before whatever is read next."""
        self.network.load_state_dict(weights)
        self.follow()

    def follow(self) -> None:
        """Let this stream wait for what was put into the usual one: weights, inputs, zeros."""
        if self.stream is not None:
            device = self._rows.device
            self.stream.wait_stream(torch.cuda.current_stream(device))

    def release(self) -> None:
        """Let go of the captured program; it is captured anew when it is needed."""
        self._program = None

    @torch.no_grad()
    def _run(self, count: int | None = None) -> None:
        out = self._work(self.network, self.feed.inputs, self._rows[:count], self.precision)
        if self.stream is None or not self._out:
            self._out = [torch.empty_like(value) for value in out]
        for kept, value in zip(self._out, out, strict=True):
            kept.copy_(value)
