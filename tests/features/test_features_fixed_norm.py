"""Batch norm at fixed statistics, folded into the convolution before it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from skdare.features import ImageBackbone  # noqa: E402
from skdare.features.backbones.backbone import weights_hash  # noqa: E402
from skdare.features.backbones.fixed_norm import IdleBatchNorm2d  # noqa: E402
from skdare.features.network import Network  # noqa: E402

SIDE = 12


class Residual(nn.Module):
    """A stem and a block with a shortcut; ``peek`` also reads the stem before its norm."""

    def __init__(self, *, peek: bool = False, twice: bool = False) -> None:
        super().__init__()
        self.peek = peek
        self.twice = twice
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(8, eps=1e-3)
        self.grouped = nn.Conv2d(8, 8, 3, padding=1, groups=4, bias=False)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        raw = self.stem(x)
        x = F.relu(self.stem_norm(raw))
        inner = self.norm(self.grouped(x))
        if self.twice:
            inner = self.norm(self.grouped(inner))
        inner += x
        features = F.relu(inner).mean((2, 3))
        return features + raw.mean((2, 3)) if self.peek else features


def network(**options):
    """A backbone whose statistics, gains and shifts are not those of a new one, and its network."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Residual(**options).eval()
        for name, value in module.state_dict().items():
            if value.ndim == 1:
                value.copy_(torch.rand_like(value) + ("running_mean" not in name))
    backbone = ImageBackbone("residual", SIDE, 8, module, (0.5,) * 3, (0.5,) * 3)
    return module, Network(backbone, 4)


def features_and_gradients(module):
    images = torch.randn(3, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(1)).double()
    module.double()
    features = module(images)
    features.square().sum().backward()
    return features, {name: value.grad for name, value in module.named_parameters()}


def folded(net):
    return [name for name, part in net.module.named_modules() if isinstance(part, IdleBatchNorm2d)]


def test_folding_changes_neither_features_nor_gradients():
    module, net = network()
    assert folded(net) == ["stem_norm", "norm"]
    torch.testing.assert_close(
        features_and_gradients(net.module), features_and_gradients(module), rtol=1e-10, atol=1e-10
    )


def test_folding_leaves_weights_their_names_and_the_backbone_as_it_was():
    module, net = network()
    assert weights_hash(net.module) == weights_hash(module)
    assert not any(isinstance(part, IdleBatchNorm2d) for part in module.modules())
    # A copy folds the norms that it has itself.
    assert net.module.stem.norm[0] is net.module.stem_norm
