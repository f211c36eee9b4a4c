"""A bottleneck: fewer features, a random projection before training, trained with the network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks are trained with torch")

from skdare.features import Extractor, backbone  # noqa: E402
from skdare.features.network import Network  # noqa: E402
from skdare.features.training.recipe import Job  # noqa: E402
from small_networks import FAST, images, trainer, weights  # noqa: E402

K = 5
WITHOUT_A = Job("a", 0)
PROJECTION = "module.projection"


def narrow(size: int = K, **more):
    return backbone("tiny", bottleneck=size, **more)


def extractor(network=None) -> Extractor:
    return Extractor(images(), network or narrow(), device="cpu")


def features(network: Network) -> np.ndarray:
    """By hand, all rows at once."""
    views = network.backbone.views(torch.from_numpy(images().inputs), torch.arange(90))
    with torch.no_grad():
        return network.features(views).numpy()


def test_features_before_training_are_a_fixed_projection_of_the_backbones_own():
    wide = features(Network(backbone("tiny"), 3))
    P = narrow().module.projection.detach().numpy()
    assert P.shape == (K, 64)
    np.testing.assert_allclose(features(Network(narrow(), 3)), wide @ P.T, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(narrow().module.projection.detach().numpy(), P)
    assert not np.array_equal(narrow(seed=1).module.projection.detach().numpy(), P)


def test_products_of_a_bottleneck_are_exact_where_those_of_the_backbone_are_not():
    network = Network(narrow(), 3)
    batch = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        rounded = network.features(batch, torch.bfloat16)
        with torch.autocast("cpu", torch.bfloat16):
            wide = network.module.network(batch)
        torch.testing.assert_close(rounded, wide.float() @ network.module.projection.T)
    assert rounded.dtype == torch.float32


@pytest.mark.parametrize("size", [64, 100])
def test_a_bottleneck_that_makes_nothing_fewer_is_refused(size):
    with pytest.raises(
        ValueError, match=f"bottleneck is {size}, and tiny has 64 features; it must be below 64"
    ):
        narrow(size)


def test_the_loss_moves_the_bottleneck_and_the_layers_before_it(tmp_path):
    begun = Network(narrow(), 3).state_dict()
    (record,) = trainer(tmp_path, network=narrow())([WITHOUT_A])
    trained = weights(tmp_path)
    assert trained[PROJECTION].shape == (K, 64)
    assert trained["head.weight"].shape == (3, K)
    moved = {name for name in trained if not np.array_equal(trained[name], begun[name].numpy())}
    assert moved == set(trained)
    assert record.made["bottleneck"] == K


def test_the_bottleneck_has_the_gradient_of_the_product_of_two_layers():
    network = Network(narrow(), 3)
    batch = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(4, K, dtype=torch.bool)
    mask[:, 0] = False  # dropout acts on the features of the bottleneck
    network.dropout = 0.2
    network(batch, mask).sum().backward()
    x = network.module.network(batch)
    by_hand = (network.head.weight * mask[0] / 0.8).sum(0)[:, None] * x.sum(0)
    torch.testing.assert_close(network.module.projection.grad, by_hand)
    assert not by_hand[0].any()


@pytest.mark.parametrize(
    ("begun", "again", "message"),
    [
        (K, 4, "was begun with bottleneck 5, not 4; give the same settings"),
        (K, None, "was begun with bottleneck 5, not off"),
        (None, K, "was begun with bottleneck off, not 5"),
    ],
)
def test_a_run_does_not_go_on_with_another_bottleneck(tmp_path, begun, again, message):
    recipe = replace(FAST, steps=2)
    trainer(tmp_path, recipe=recipe, network=backbone("tiny", bottleneck=begun))([WITHOUT_A])
    other = trainer(tmp_path, recipe=recipe, network=backbone("tiny", bottleneck=again))
    with pytest.raises(ValueError, match=message):
        other([WITHOUT_A, Job("b", 0)])
