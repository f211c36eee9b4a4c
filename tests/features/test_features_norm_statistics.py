"""Batch norms with the statistics of each domain: measured right, kept apart, and not mixed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks are run with torch")

from skdare.data import Store  # noqa: E402
from skdare.features import (  # noqa: E402
    Examples,
    Extractor,
    ImageBackbone,
    backbone,
    jobs,
    norm_statistics,
)
from skdare.features.backbones.backbone import weights_hash  # noqa: E402
from skdare.features.norm_statistics import ChannelMoments  # noqa: E402
from skdare.features.training.folder import TrainingFolder  # noqa: E402
from skdare.features.training.recipe import Job  # noqa: E402
from small_networks import FAST, images, normed, trainer  # noqa: E402


def shifted(n: int = 90) -> Examples:
    """Images of which domain b is dark and domain c of low contrast."""
    examples = images(n)
    pixels = examples.inputs.astype(float)
    pixels[examples.domains == "b"] /= 4
    pixels[examples.domains == "c"] = 100 + pixels[examples.domains == "c"] / 10
    return replace(examples, inputs=pixels.astype(np.uint8))


def extractor(examples: Examples | None = None, network: ImageBackbone | None = None, **more):
    examples = shifted() if examples is None else examples
    options = {"device": "cpu", "norm_stats": "domain", **more}
    return Extractor(examples, network or normed(), **options)


def only(examples: Examples, rows: np.ndarray) -> Examples:
    """Some rows of the examples."""
    columns = ("inputs", "labels", "domains", "ids")
    return replace(examples, **{name: getattr(examples, name)[rows] for name in columns})


def by_hand(network: ImageBackbone, examples: Examples, domain: str) -> np.ndarray:
    """Features of a domain whose rows are one batch in training mode."""
    rows = torch.from_numpy(np.flatnonzero(examples.domains == domain))
    views = network.views(torch.from_numpy(examples.inputs), rows)
    with torch.no_grad():
        return network.module.train()(views).numpy()


def near(a: np.ndarray, b: np.ndarray, rtol: float = 1e-4) -> None:
    np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-5)


def test_moments_of_a_concatenation_equal_the_sum_of_moments():
    values = torch.randn(30, 4, 5, 3, generator=torch.Generator().manual_seed(0)) * 2 + 7
    total = ChannelMoments.of(values[:4]) + ChannelMoments.of(values[4:25])
    total = total + ChannelMoments.of(values[25:])
    variance, mean = torch.var_mean(values.double(), (0, 2, 3))
    near(total.mean, mean)
    near(total.scatter / (total.n - 1), variance)


@pytest.mark.parametrize("batch", [64, 7])
def test_statistics_of_one_layer_are_those_of_the_domain(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(norm_statistics, "BATCH", batch)
    examples = shifted()
    network = normed(depth=1)
    X = Store.open(extractor(examples, network).pretrained(tmp_path / "store")).X
    convolution, norm = network.module[0], network.module[1]
    for domain in "abc":
        rows = torch.from_numpy(np.flatnonzero(examples.domains == domain))
        with torch.no_grad():
            outputs = convolution(network.views(torch.from_numpy(examples.inputs), rows))
            variance, mean = torch.var_mean(outputs, (0, 2, 3), keepdim=True)
            scaled = torch.relu((outputs - mean) / torch.sqrt(variance + norm.eps))
        near(X[rows], scaled.mean(dim=(2, 3)).numpy())


def test_a_deep_network_normalises_a_domain_as_one_batch_in_training_would(tmp_path):
    X = Store.open(extractor().pretrained(tmp_path / "store")).X
    for domain in "abc":
        near(X[shifted().domains == domain], by_hand(normed(), shifted(), domain), rtol=1e-2)


def test_the_network_is_unchanged_afterwards(tmp_path):
    network = normed()
    before = weights_hash(network.module)
    extractor(network=network).pretrained(tmp_path / "domain")
    assert weights_hash(network.module) == before
    own = extractor(network=network, norm_stats="network").pretrained(tmp_path / "after")
    first = extractor(norm_stats="network").pretrained(tmp_path / "first")
    np.testing.assert_array_equal(Store.open(own).X, Store.open(first).X)


def test_rows_of_one_domain_do_not_influence_those_of_another(tmp_path):
    examples = shifted()
    together = Store.open(extractor(examples).pretrained(tmp_path / "together")).X
    others = examples.domains != "a"
    pixels = examples.inputs.copy()
    pixels[others] = 255 - pixels[others]
    changed = extractor(replace(examples, inputs=pixels)).pretrained(tmp_path / "changed")
    np.testing.assert_array_equal(Store.open(changed).X[~others], together[~others])
    assert np.abs(Store.open(changed).X[others] - together[others]).max() > 1e-2


def test_a_new_domain_alone_has_the_features_it_has_among_others(tmp_path):
    examples = shifted()
    together = Store.open(extractor(examples).pretrained(tmp_path / "together")).X
    for domain in "abc":
        own = np.flatnonzero(examples.domains == domain)
        alone = extractor(only(examples, own)).pretrained(tmp_path / domain)
        near(Store.open(alone).X, together[own])


def test_brightness_and_contrast_of_a_domain_leave_no_trace(tmp_path):
    examples = shifted()
    faint = np.where(examples.domains[:, None, None, None] == "a", 60 + examples.inputs // 2, 0)
    own = np.flatnonzero(examples.domains == "a")
    stores = {}
    for norm_stats in ("network", "domain"):
        for name, pixels in (("plain", examples.inputs), ("faint", faint.astype(np.uint8))):
            rows = only(replace(examples, inputs=pixels), own)
            store = extractor(rows, norm_stats=norm_stats).pretrained(tmp_path / norm_stats / name)
            stores[norm_stats, name] = Store.open(store).X
    change = {
        norm_stats: np.linalg.norm(stores[norm_stats, "faint"] - stores[norm_stats, "plain"])
        / np.linalg.norm(stores[norm_stats, "plain"])
        for norm_stats in ("network", "domain")
    }
    assert change["domain"] < 0.05 < change["network"]


def test_fine_tuned_networks_measure_with_their_own_weights(tmp_path):
    examples = shifted()
    run = tmp_path / "run"
    trainer(run, examples, network=normed())(jobs(list("abc"), FAST, trials=1, ceilings=False))
    extractor(examples).fine_tuned(run, tmp_path / "features")
    for path in (tmp_path / "features").iterdir():
        table = Store.open(path)
        held_out, trial = table.made["held_out"], table.made["trial"]
        network = normed()
        weights = TrainingFolder(run).weights(Job(held_out, trial))
        prefix = "module."
        network.module.load_state_dict(
            {name.removeprefix(prefix): w for name, w in weights.items() if name.startswith(prefix)}
        )
        assert table.made["norm_stats"] == "domain"
        for domain in "abc":
            near(table.X[examples.domains == domain], by_hand(network, examples, domain), rtol=1e-2)


def test_a_backbone_without_batch_norm_is_refused():
    with pytest.raises(ValueError, match="'domain', but tiny has no batch norm; use norm_stats="):
        extractor(network=backbone("tiny"))


def test_a_domain_of_one_row_is_refused():
    one = only(shifted(), np.array([0, 1, 3, 4, 5]))
    with pytest.raises(ValueError, match="domain 'c' has 1 row, and a variance needs 2; leave"):
        extractor(one)
    extractor(one, norm_stats="network")
