"""Work without arguments, that a GPU replays as one graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import nn

T = TypeVar("T")

WARM_UPS = 3
# Shapes of batches that a sweep may bring before compiling stops to pay.
_COMPILED = 64
# Parameters below which one thread does better than several.
_SMALL = 500_000


class Program:
    """A function that reads and writes fixed places, run again and again.

    On a GPU it is captured once as a CUDA graph: hundreds of small kernels are then launched by
    one call. Capturing runs it a few times, so whoever makes a program restores what it changes.

    Parameters
    ----------
    work : callable without arguments
    device : torch.device
    stream : torch.cuda.Stream, optional
        Where it runs; programs on several streams share the GPU.
    capture : bool
        False: run it as it is.
    """

    def __init__(
        self,
        work: Callable[[], None],
        device: torch.device,
        stream: torch.cuda.Stream | None = None,
        *,
        capture: bool = True,
    ) -> None:
        # Kept: a graph knows addresses only, and does not keep what lies there alive.
        self._work, self._stream = work, stream
        self._graph = None
        if capture and device.type == "cuda":
            self._graph = self._captured(device)

    def _captured(self, device: torch.device) -> torch.cuda.CUDAGraph:
        stream = self._stream or torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                self._work()
        torch.cuda.synchronize(device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            self._work()
        torch.cuda.synchronize(device)
        return graph

    def __call__(self) -> None:
        """Run once; on a GPU, put into the queue of the stream."""
        if self._graph is None:
            with torch.cuda.stream(self._stream):
                self._work()
        else:
            with torch.cuda.stream(self._stream):
                self._graph.replay()


def compiled(function: Callable[..., T], device: torch.device) -> Callable[..., T]:
    """The function as fused kernels on a GPU, compiled when it first meets a shape."""
    return torch.compile(function, dynamic=False) if device.type == "cuda" else function


@contextmanager
def working(device: torch.device, module: nn.Module) -> Iterator[None]:
    """Within: torch is set up for this network; afterwards it is as it was.

    On a GPU many shapes may be compiled, and the compiler keeps its remarks to itself. On a CPU a
    small network has one thread: its operations are over before a second one has woken up.
    """
    if device.type == "cuda":
        with torch._dynamo.config.patch(recompile_limit=_COMPILED), warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"torch\._inductor")
            yield
        return
    threads = torch.get_num_threads()
    if sum(p.numel() for p in module.parameters()) < _SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
