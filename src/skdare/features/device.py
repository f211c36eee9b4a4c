"""Devices: which one networks run on, in which precision, and how work is run there."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import nn

from skdare.checks import check_choice
from skdare.errors import InputError

T = TypeVar("T")

PRECISIONS = ("auto", "float32", "bfloat16")
WARM_UPS = 3
_KINDS = ("cpu", "cuda")
# Shapes of batches that a sweep may bring before compiling stops to pay.
_MOST_COMPILED = 64
# Parameters below which one thread does better than several.
_SMALL = 500_000


def pick_device(name: str = "auto") -> torch.device:
    """Device of this name; "auto" is a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"there is no device {name!r}; use auto, cpu, cuda or cuda:1") from error
    if device.type not in _KINDS:
        raise InputError(f"device {name!r} is not supported; use cpu or cuda")
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise InputError(f"device is {name!r}, but torch sees no GPU", "use device='cpu'")
        count = torch.cuda.device_count()
        if (device.index or 0) >= count:
            raise InputError(
                f"device is {name!r}, but torch sees {count} GPUs", "use device='cuda:0'"
            )
        device = torch.device("cuda", device.index or 0)
        torch.cuda.set_device(device)
    return device


def pick_precision(name: str, device: torch.device) -> torch.dtype:
    """Type of products inside a backbone; "auto" is bfloat16 on a GPU, else float32."""
    check_choice("precision", name, PRECISIONS)
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return getattr(torch, name)


class CapturedGraph:
    """Work that reads and writes fixed places, captured once as a CUDA graph and replayed.

    Hundreds of small kernels are then launched by one call. Capturing runs the work `WARM_UPS`
    times, so the caller has to restore what it changes. Graphs on several streams share the GPU.
    """

    def __init__(self, work: Callable[[], None], stream: torch.cuda.Stream) -> None:
        # Kept: a graph knows addresses only, and does not keep what lies there alive.
        self._work = work
        self._stream = stream
        stream.wait_stream(torch.cuda.current_stream(stream.device))
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                work()
        torch.cuda.synchronize(stream.device)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=stream):
            work()
        torch.cuda.synchronize(stream.device)

    def __call__(self) -> None:
        """Put one run into the queue of the stream."""
        with torch.cuda.stream(self._stream):
            self._graph.replay()


def compiled(function: Callable[..., T], device: torch.device) -> Callable[..., T]:
    """The function as fused kernels on a GPU, compiled when it first meets a shape."""
    return torch.compile(function, dynamic=False) if device.type == "cuda" else function


@contextmanager
def torch_tuned_for(device: torch.device, module: nn.Module) -> Iterator[None]:
    """Set torch up for this network, and restore its settings afterwards.

    On a GPU many shapes may be compiled, without the compiler's remarks. On a CPU a small network
    gets one thread: its operations are over before a second one has woken up.
    """
    if device.type == "cuda":
        with torch._dynamo.config.patch(recompile_limit=_MOST_COMPILED), warnings.catch_warnings():
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
