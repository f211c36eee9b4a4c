"""Fine-tuning and extraction beside a plain PyTorch loop, in images per second.

    python benchmarks/features.py PACS [--device cuda] [--backbone efficientnet-lite0]
        [--precision auto] [--micro-batch 32]

PACS is a folder of images or of zips, ``domain/class/image``. The plain loop is what one would
script: a ``DataLoader`` with a worker for every core over JPEG files, torchvision's transforms
(Pillow's resizing where torchvision does not load), the network of ``efficientnet_lite_pytorch``
(install it) or that of ``hf:FOLDER``, with batch norm in evaluation mode, float32, kernels launched
one by one. Ours is `Trainer` and `Extractor`; their time is that of steps after the first block (on
a CPU after the first step), or of a second pass, with the images already decoded: decoding happens
once and its own rate is shown.
On a GPU the last columns relate ours to what the device can do: the bytes that every convolution, a
pass of its own, must read and write at least, and its multiplications, over a measured copy and
matrix product; other layers, such as attention, are not counted.
"""

from __future__ import annotations

import argparse
import io
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from skdare.features import (
    Augmentation,
    Examples,
    Hyperparameters,
    Recipe,
    Trainer,
    backbone,
    decode,
    read_collection,
)
from skdare.features.backbones.backbone import ImageBackbone
from skdare.features.backbones.efficientnet_lite import FixedNormConv, weights_file
from skdare.features.device import pick_precision
from skdare.features.examples.collection import Archives
from skdare.features.inputs import place_inputs
from skdare.features.network import Network
from skdare.features.reader import Reader
from skdare.features.training.recipe import Job

BATCH = 32
# Steps of the plain loop before its time is taken, and between two looks at the clock.
WARM_UPS = 5
BETWEEN_LOOKS = 5


class Files(torch.utils.data.Dataset):
    """JPEG bytes in memory, decoded and transformed one by one."""

    def __init__(self, collection, transform) -> None:
        with Archives({item.file for item in collection.items if item.member}) as archives:
            self.raw = [item.read(archives) for item in collection.items]
        self.labels, self.transform = collection.labels, transform

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, i):
        from PIL import Image

        return self.transform(Image.open(io.BytesIO(self.raw[i])).convert("RGB")), self.labels[i]


def transforms(ours: ImageBackbone, augment: bool):
    """torchvision's, or Pillow's resizing alone."""

    from PIL import Image

    size = ours.size
    mean, std = (torch.tensor(values)[:, None, None] for values in (ours.mean, ours.std))

    def bytes_to_network(image):
        pixels = torch.from_numpy(
            np.array(image.resize((size, size), Image.Resampling.BILINEAR))
        ).permute(2, 0, 1)
        return (pixels.float() / 255 - mean) / std

    try:
        from torchvision import transforms as T
    except (ImportError, RuntimeError):
        if augment:
            print("torchvision does not load: the plain loop only resizes", flush=True)
        return bytes_to_network
    if not augment:
        return bytes_to_network
    return T.Compose(
        [
            T.RandomResizedCrop(size, scale=(0.7, 1.0)),
            T.RandomHorizontalFlip(),
            T.ColorJitter(0.3, 0.3, 0.3, 0.3),
            T.RandomGrayscale(),
            T.ToTensor(),
            T.Normalize(ours.mean, ours.std),
        ]
    )


class PlainNetwork(nn.Module):
    """A network as its package has it, in evaluation mode, with one linear layer on top."""

    def __init__(self, ours: ImageBackbone, classes: int) -> None:
        super().__init__()
        self.net = ours.module
        self.last = nn.Linear(ours.dim, classes)
        if ours.name.startswith("efficientnet-lite"):
            from efficientnet_lite_pytorch import EfficientNet

            path = str(weights_file(int(ours.name[-1])))
            self.net = EfficientNet.from_pretrained(ours.name, weights_path=path)
        self.eval()

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """Pooled features."""
        if hasattr(self.net, "extract_features"):
            return self.net.extract_features(x).mean((2, 3))
        return self.net(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of classes."""
        return self.last(self.features(x))


def plain_rate(
    files: Files, net: PlainNetwork, device, seconds: float, batch: int, *, train: bool
) -> float:
    """Images per second of the plain loop."""
    # Endless, as DomainBed's: an epoch of a small set would drain the workers at its end.
    sampler = torch.utils.data.RandomSampler(files, replacement=True, num_samples=10**9)
    loader = torch.utils.data.DataLoader(
        files,
        batch_size=batch,
        sampler=sampler,
        num_workers=os.cpu_count() or 1,
        pin_memory=device.type == "cuda",
        drop_last=True,
        persistent_workers=True,
    )
    adam, done, begin = torch.optim.Adam(net.parameters(), lr=5e-5), 0, None
    for step, (x, y) in enumerate(loader):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        if train:
            adam.zero_grad()
            F.cross_entropy(net(x), y).backward()
            adam.step()
        else:
            with torch.no_grad():
                net.features(x).cpu()
        if step == WARM_UPS:
            _wait(device)
            begin = time.perf_counter()
        elif step > WARM_UPS:
            done += len(x)
            if step % BETWEEN_LOOKS == 0:
                _wait(device)
                if time.perf_counter() - begin > seconds:
                    return done / (time.perf_counter() - begin)
    raise AssertionError("the loader ends")


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def our_rate(
    examples: Examples, name: str, device, seconds: float, at_once: int, recipe: Recipe
) -> float:
    """Images per second of so many trainings side by side."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(examples, backbone(name), recipe, folder, device=str(device))
        active = [trainer._start(Job(None, trial)) for trial in range(at_once)]
        # A block is compiled and captured at once on a GPU; elsewhere it may take minutes.
        most = active[0].training.block if device.type == "cuda" else 1
        for one in active:
            one.training.advance(most)
            one.training.wait()
        begin, done = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            for one in active:
                done += one.training.advance(most) * one.training.sampler.total
        for one in active:
            one.training.wait()
        return done / (time.perf_counter() - begin)


def our_reading(examples: Examples, name: str, device, dtype: torch.dtype) -> float:
    """Images per second of extraction, from the pixels on the device to arrays on the host."""
    net = Network(backbone(name), len(examples.classes)).placed(device)
    inputs = place_inputs(examples.inputs, examples.labels, device)
    stream = torch.cuda.Stream() if device.type == "cuda" else None
    reader = Reader(net, inputs, dtype, stream)
    rows = np.arange(len(examples.labels))
    for _ in reader(rows[: 2 * reader.chunk]):
        pass
    begin, done = time.perf_counter(), 0
    while time.perf_counter() - begin < (3.0 if device.type == "cuda" else 10.0):
        for outputs in reader(rows[: 200 * reader.chunk]):
            done += len(outputs.features)
    return done / (time.perf_counter() - begin)


def floors(name: str) -> tuple[float, float]:
    """Numbers moved and operations of one image's convolutions, each a pass of its own, forward."""
    net, counted = backbone(name), [0.0, 0.0]

    def count(layer: FixedNormConv | nn.Conv2d, given, out) -> None:
        counted[0] += given[0].numel() + out.numel()
        counted[1] += 2 * out.numel() * layer.weight[0].numel()

    for layer in net.module.modules():
        if isinstance(layer, FixedNormConv | nn.Conv2d):
            layer.register_forward_hook(count)
    with torch.no_grad():
        net.module(torch.zeros(1, 3, net.size, net.size))
    return counted[0], counted[1]


def ceilings(device) -> tuple[float, float]:
    """Measured: bytes a second of a copy, and operations a second of a bfloat16 product."""
    a = torch.empty(2**30, dtype=torch.uint8, device=device)
    b = torch.empty_like(a)
    c = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
    rates = []
    for work, amount in ((lambda: b.copy_(a), 2 * 2**30), (lambda: c @ c, 2 * 8192**3)):
        for _ in range(3):
            work()
        _wait(device)
        begin = time.perf_counter()
        for _ in range(20):
            work()
        _wait(device)
        rates.append(20 * amount / (time.perf_counter() - begin))
    return rates[0], rates[1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--backbone", default="efficientnet-lite0")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--at-once", default="1,2,3,4,6")
    parser.add_argument("--precision", default="auto", help="of fine-tuning and extraction")
    parser.add_argument("--micro-batch", type=int)
    args = parser.parse_args()
    device, name = torch.device(args.device), args.backbone
    ours = backbone(name)
    collection = read_collection(Path(args.images))
    begin = time.perf_counter()
    examples = decode(collection, ours.size)
    rate = len(examples.labels) / (time.perf_counter() - begin)
    print(f"| decoding, once, all cores | {rate:,.0f} |", flush=True)
    domains = np.unique(examples.domains)
    per_step = BATCH * len(domains)
    print(f"{len(examples.labels):,} images of {len(domains)} domains, {per_step} a step of ours")
    recipe = Recipe(
        steps=10**6,
        augmentation=Augmentation(),
        hyperparameters=Hyperparameters(batch=BATCH),
        precision=args.precision,
        micro_batch=args.micro_batch,
    )
    precision = pick_precision(args.precision, device)
    limits = ceilings(device) if device.type == "cuda" else (0.0, 0.0)
    net = PlainNetwork(backbone(name), len(examples.classes)).to(device)
    for train in (True, False):
        files = Files(collection, transforms(ours, train))
        plain = plain_rate(files, net, device, args.seconds, per_step, train=train)
        what = "fine-tuning" if train else "extraction"
        print(f"| {what}, plain loop | {plain:,.0f} |", flush=True)
        moved, done = floors(name)
        if train:
            # Forward, and in the backward pass twice: for the input's gradient and the weight's.
            moved, done = 3 * moved, 3 * done
            rates = {
                f"{k} at once": our_rate(examples, name, device, args.seconds, k, recipe)
                for k in map(int, args.at_once.split(","))
            }
        else:
            kinds = dict.fromkeys([torch.float32, precision])
            rates = {str(k): our_reading(examples, name, device, k) for k in kinds}
        for kind, rate in rates.items():
            line = f"| {what}, skdare, {kind} | {rate:,.0f} | {rate / plain:.1f} × |"
            if device.type == "cuda":
                whole = (str(precision) if train else kind) == str(torch.float32)
                of_copy = rate * moved * (4 if whole else 2) / limits[0]
                line += f" {of_copy:.0%} of the copy's bytes |"
                if not whole:
                    line += f" {rate * done / limits[1]:.1%} of the product's operations |"
            print(line, flush=True)


if __name__ == "__main__":
    main()
