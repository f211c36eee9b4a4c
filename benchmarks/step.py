"""One training step of EfficientNet-Lite0 on a GPU, in variants: what each choice is worth.

    python benchmarks/step.py

96 random images; milliseconds a step, and images per second. "package" is the network of
``efficientnet_lite_pytorch`` with batch norm layers in evaluation mode, "folded" is ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from skdare.features import Augmentation, backbone
from skdare.features.augmentation import random_views
from skdare.features.backbones.efficientnet_lite import weights_file

BATCH, IMAGES, CLASSES = 96, 4096, 7
DEVICE = torch.device("cuda")


class Packaged(nn.Module):
    """The package's network up to its features."""

    def __init__(self) -> None:
        super().__init__()
        from efficientnet_lite_pytorch import EfficientNet

        path = str(weights_file(0))
        self.net = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Pooled features."""
        return self.net.extract_features(x).mean((2, 3))


def step(
    features: nn.Module, images, precision: torch.dtype, *, last: bool, fused: bool, augment: bool
) -> Callable[[], None]:
    """Forward, backward and Adam, on one batch again and again."""
    ours, rng = backbone("efficientnet-lite0"), np.random.default_rng(0)
    model = nn.Sequential(features, nn.Linear(1280, CLASSES)).to(DEVICE)
    if last:
        model = model.to(memory_format=torch.channels_last)
    adam = torch.optim.Adam(model.parameters(), lr=5e-5, fused=True, capturable=True)
    rows = torch.randint(0, IMAGES, (BATCH,), device=DEVICE)
    labels = torch.randint(0, CLASSES, (BATCH,), device=DEVICE)
    drawn = torch.from_numpy(Augmentation().draw(rng, BATCH)).to(DEVICE)
    fixed = ours.views(images, rows)
    fixed = fixed if last else fixed.contiguous()

    def loss() -> torch.Tensor:
        x = ours.views(images, rows, drawn) if augment else fixed
        mixed = precision != torch.float32
        with torch.autocast("cuda", precision, enabled=mixed, cache_enabled=False):
            return F.cross_entropy(model(x), labels)

    loss = torch.compile(loss, dynamic=False) if fused else loss

    def work() -> None:
        adam.zero_grad(set_to_none=True)
        loss().backward()
        adam.step()

    return work


def captured(work: Callable[[], None]) -> Callable[[], None]:
    """The same as one graph; the work is kept, as a graph only knows addresses."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()

    def replay(kept: Callable[[], None] = work) -> None:
        graph.replay()

    return replay


def milliseconds(work: Callable[[], None], times: int = 40) -> float:
    """Of one run, after a few."""
    for _ in range(8):
        work()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(times):
        work()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - begin) / times


def main() -> None:
    """Print a line a variant."""
    images = torch.randint(0, 256, (IMAGES, 224, 224, 3), dtype=torch.uint8, device=DEVICE)
    half, whole = torch.bfloat16, torch.float32
    ours = lambda: backbone("efficientnet-lite0").module  # noqa: E731
    usual = {"last": True, "fused": True, "augment": False}
    variants = {
        "package, float32, channels first, kernel by kernel": (
            Packaged,
            whole,
            False,
            {"last": False, "fused": False},
        ),
        "folded, bfloat16, a graph": (ours, half, True, {"fused": False}),
        "package, bfloat16, compiled, a graph": (Packaged, half, True, {}),
        "folded, bfloat16, compiled, a graph, channels first": (ours, half, True, {"last": False}),
        "folded, bfloat16, compiled, a graph": (ours, half, True, {}),
        "the same with augmentation": (ours, half, True, {"augment": True}),
    }
    for name, (features, precision, graph, changed) in variants.items():
        torch._dynamo.reset()
        work = step(features(), images, precision, **{**usual, **changed})
        took = milliseconds(captured(work) if graph else work)
        print(f"| {name} | {took:.2f} | {1e3 * BATCH / took:,.0f} |", flush=True)
    rows = torch.randint(0, IMAGES, (BATCH,), device=DEVICE)
    drawn = torch.from_numpy(Augmentation().draw(np.random.default_rng(0), BATCH)).to(DEVICE)
    for name, view in (("kernels", random_views), ("compiled", torch.compile(random_views))):
        took = milliseconds(captured(lambda view=view: view(images, rows, drawn, 224)))
        print(f"| augmentation alone, {name} | {took:.2f} | |", flush=True)


if __name__ == "__main__":
    main()
