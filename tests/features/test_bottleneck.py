"""A bottleneck: fewer features, a random projection before training, trained with the network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks are trained with torch")
from torch import nn  # noqa: E402

from skdare.datasets import read, read_fine_tuned, store_info  # noqa: E402
from skdare.features import Extractor, ImageBackbone, backbone, jobs  # noqa: E402
from skdare.features.backbones.backbone import provenance  # noqa: E402
from skdare.features.backbones.bottleneck import narrowed  # noqa: E402
from skdare.features.backbones.fixed_norm import NormalisingConv2d  # noqa: E402
from skdare.features.device import torch_tuned_for  # noqa: E402
from skdare.features.network import Network  # noqa: E402
from skdare.features.training.folder import TrainingFolder  # noqa: E402
from skdare.features.training.recipe import Job  # noqa: E402
from skdare.features.training.workload import workload  # noqa: E402
from small_networks import FAST, images, normed, same_weights, trainer, weights  # noqa: E402

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


@pytest.mark.parametrize("size", [1, K, 63])
def test_features_and_the_last_layer_have_the_size_of_the_bottleneck(size):
    network = Network(narrow(size), 3)
    assert features(network).shape == (90, size)
    assert network.head.in_features == size


def test_features_before_training_are_a_fixed_projection_of_the_backbones_own():
    wide = features(Network(backbone("tiny"), 3))
    P = narrow().module.projection.detach().numpy()
    assert P.shape == (K, 64)
    np.testing.assert_allclose(features(Network(narrow(), 3)), wide @ P.T, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(narrow().module.projection.detach().numpy(), P)
    assert not np.array_equal(narrow(seed=1).module.projection.detach().numpy(), P)


def test_new_features_have_the_mean_square_of_the_old_ones():
    module = nn.Flatten()
    wide = ImageBackbone("pixels", 16, 768, module, (0.5,) * 3, (0.5,) * 3)
    x = torch.randn(100, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    for size in (50, 700):
        z = narrowed(wide, size).features(x).detach()
        assert float(z.square().mean() / x.square().mean()) == pytest.approx(1, abs=0.05)


def test_the_backbone_itself_keeps_its_features_and_generators_are_left_alone():
    wide = backbone("tiny")
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    narrowed(wide, K)
    assert wide.dim == 64
    assert not hasattr(wide.module, "projection")
    assert torch.equal(torch.random.get_rng_state(), before)


def test_batch_norms_are_folded_below_a_bottleneck_too():
    network = Network(narrowed(normed(), K), 3)
    assert any(isinstance(part, NormalisingConv2d) for part in network.module.modules())
    assert features(network).shape == (90, K)


def test_statistics_of_a_domain_are_those_of_the_network_below_the_bottleneck(tmp_path):
    tables = {
        name: read(
            Extractor(images(), network, device="cpu", norm_stats="domain").pretrained(
                tmp_path / name
            )
        )
        for name, network in (("wide", normed()), ("narrow", narrowed(normed(), K)))
    }
    P = narrowed(normed(), K).module.projection.detach().numpy()
    np.testing.assert_allclose(tables["narrow"].X, tables["wide"].X @ P.T, rtol=1e-4, atol=1e-5)


def test_a_backbone_without_a_bottleneck_is_recorded_as_it_always_was():
    assert list(provenance(backbone("tiny"), images())) == [
        *("backbone", "weights", "data", "examples", "transform")
    ]


def test_products_of_a_bottleneck_are_exact_where_those_of_the_backbone_are_not():
    network = Network(narrow(), 3)
    batch = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        rounded = network.features(batch, torch.bfloat16)
        with torch.autocast("cpu", torch.bfloat16):
            wide = network.module.network(batch)
        torch.testing.assert_close(rounded, wide.float() @ network.module.projection.T)
    assert rounded.dtype == torch.float32


@pytest.mark.parametrize("size", [0, -1, 2.0, True])
def test_a_bottleneck_is_a_count(size):
    with pytest.raises(ValueError, match=r"bottleneck is .*; it must be a whole number of 1"):
        narrow(size)


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


def test_a_training_with_a_bottleneck_taken_up_at_any_step_ends_with_the_same_weights(tmp_path):
    whole = trainer(tmp_path / "whole", network=narrow())([WITHOUT_A])
    other = trainer(tmp_path / "cut", network=narrow())
    with torch_tuned_for(other.device, other.backbone.module):
        begun = other._start(WITHOUT_A)
        begun.training.advance(3)
    other.folder.save_state(WITHOUT_A, begun.training.state())
    assert trainer(tmp_path / "cut", network=narrow())([WITHOUT_A]) == whole
    assert same_weights(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


def test_networks_with_a_bottleneck_side_by_side_are_what_they_are_alone(tmp_path):
    planned = [Job("a", 0), Job("b", 0), Job(None, 1)]
    together = trainer(tmp_path / "together", network=narrow(), at_once=3)(planned)
    alone = [trainer(tmp_path / "alone", network=narrow())([job])[0] for job in planned]
    assert together == alone


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


def test_stores_have_the_features_of_the_bottleneck_and_say_so(tmp_path):
    trainer(tmp_path / "run", network=narrow())([WITHOUT_A])
    extractor().fine_tuned(tmp_path / "run", tmp_path / "features")
    network = Network(narrow(), 3)
    pretrained = features(network)
    network.load_state_dict(TrainingFolder(tmp_path / "run").weights(WITHOUT_A))
    ((_, table),) = read_fine_tuned(tmp_path / "features").items()
    np.testing.assert_allclose(table.X, features(network), rtol=1e-4, atol=1e-5)
    before = read(extractor().pretrained(tmp_path / "pretrained"))
    np.testing.assert_allclose(before.X, pretrained, rtol=1e-4, atol=1e-5)
    assert table.made["bottleneck"] == before.made["bottleneck"] == K
    assert store_info(tmp_path / "pretrained").features == K


def test_a_run_with_another_bottleneck_is_not_extracted(tmp_path):
    trainer(tmp_path / "run", network=narrow())([WITHOUT_A])
    with pytest.raises(ValueError, match="was trained with other weights"):
        extractor(narrow(4)).fine_tuned(tmp_path / "run", tmp_path / "features")
    extractor().pretrained(tmp_path / "store")
    with pytest.raises(ValueError, match="made in another way"):
        extractor(narrow(4)).pretrained(tmp_path / "store")


def test_a_bottleneck_takes_less_disk_for_features():
    counts = dict.fromkeys("abc", 30)
    more = {"classes": 3, "dtype": "float32", "states": 1}
    planned = jobs(list(counts), FAST, trials=1)
    work = workload(planned, 4, FAST, counts, narrow(), **more)
    assert work.feature_bytes == 4 * 90 * K * 4
