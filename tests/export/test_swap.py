"""A head in place of a network's last linear layer, and the network as it was afterwards."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import skdare
from skdare import DAREClassifier, DARERegressor, ERMClassifier

torch = pytest.importorskip("torch", reason="torch is not installed")
from skdare.export._last_layer import find_layer  # noqa: E402

nn = torch.nn

TEXT = {"input_ids": torch.arange(40).reshape(20, 2) % 30 + 3}
IMAGES = {"pixel_values": torch.linspace(-1, 1, 20 * 3 * 32 * 32).reshape(20, 3, 32, 32).sin()}
SMALL = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
WORDS = {**SMALL, "vocab_size": 50, "intermediate_size": 8, "max_position_embeddings": 16}
DISTILBERT = {"dim": 8, "hidden_dim": 8, "n_layers": 1, "n_heads": 2, "vocab_size": 50}
GPT2 = {"n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 50, "pad_token_id": 0}
VIT = {**SMALL, "intermediate_size": 8, "image_size": 32, "patch_size": 16}
RESNET = {"embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 1], "layer_type": "basic"}
MODELS = {
    "BertForSequenceClassification": (WORDS, TEXT),
    "DistilBertForSequenceClassification": (DISTILBERT, TEXT),
    "GPT2ForSequenceClassification": (GPT2, TEXT),
    "ViTForImageClassification": (VIT, IMAGES),
    "ResNetForImageClassification": (RESNET, IMAGES),
}


def hugging_face(name, options, **more):
    """A small network of transformers with weights drawn by a seed, in evaluation mode."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    kind = getattr(transformers, name)
    config = kind.config_class(**options, **more)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return kind(config).eval()


def plain(*, bias=True, outputs=5):
    """Two layers of torch."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, outputs, bias=bias))


def head_for_features(d, labels=("a", "b", "c"), seed=0, kind=DAREClassifier):
    """A head of d features, fitted to noise in two domains."""
    rng = np.random.default_rng(seed)
    X, domains = rng.normal(size=(60, d)), np.arange(60) // 30
    codes = (X[:, :1] > [[-0.5, 0.5]]).sum(axis=1) % len(labels)
    if kind is DARERegressor:
        return kind().fit(X, X[:, 0] + 3, domains=domains)
    return kind().fit(X, np.array(labels)[codes], domains=domains)


def fed(model, layer, inputs):
    """What feeds a layer, in float64: the features to fit a head to."""
    seen = []
    hook = layer.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))
    with torch.no_grad():
        model(**inputs)
    hook.remove()
    return seen[0].flatten(1).double().numpy()


@pytest.mark.filterwarnings("ignore:feature . holds", "ignore:layer 'score' has no bias")
@pytest.mark.parametrize("name", MODELS)
def test_a_network_of_transformers_predicts_as_the_head_fitted_to_its_features(name):
    options, inputs = MODELS[name]
    model = hugging_face(name, options, num_labels=5)
    linear = [part for part in model.modules() if isinstance(part, nn.Linear)][-1]
    scores = name.startswith("GPT2")  # which scores every position, and keeps the last
    rows = fed(model, linear, inputs).reshape(20, -1, linear.in_features)[:, -1 if scores else 0]
    y = np.array(["cat", "dog", "fox"])[np.arange(20) % 3]
    head = ERMClassifier().fit(rows, y)
    with torch.no_grad():
        before = model(**inputs).logits
        with skdare.swap(model, head) as network:
            assert network is model
            assert network.config.id2label == {0: "cat", 1: "dog", 2: "fox"}
            assert network.config.label2id == {"cat": 0, "dog": 1, "fox": 2}
            assert (network.config.num_labels, network.num_labels) == (3, 3)
            found = network(**inputs).logits.softmax(dim=-1).numpy()
        np.testing.assert_allclose(found, head.predict_proba(rows), rtol=0, atol=1e-5)
        assert torch.equal(model(**inputs).logits, before)
    assert (model.config.num_labels, model.num_labels) == (5, 5)
    assert model.config.id2label == {place: f"LABEL_{place}" for place in range(5)}
    assert model.config.problem_type is None


def test_a_network_of_this_package_takes_a_head_on_its_features():
    from skdare.features import backbone
    from skdare.features.network import Network

    network = Network(backbone("tiny", size=16, dim=12), classes=4)
    images = torch.linspace(0, 1, 30 * 3 * 16 * 16).reshape(30, 3, 16, 16).sin()
    with torch.no_grad():
        rows = network.features(images).double().numpy()
        head = ERMClassifier(l2=1e-4).fit(rows, np.arange(30) % 2)
        with skdare.swap(network, head):
            found = network(images).softmax(dim=1).numpy()
    np.testing.assert_allclose(found, head.predict_proba(rows), rtol=0, atol=1e-5)


class TimmStyle(nn.Module):
    """What timm's networks offer, with a head that is not the last layer defined."""

    def __init__(self, found="last"):
        super().__init__()
        self.num_classes, self.found = 5, found
        self.last, self.norm = nn.Linear(4, 5), nn.LayerNorm(4)

    def get_classifier(self):
        return {"last": self.last, "two": (self.last, self.last)}[self.found]

    def forward(self, x):
        return self.last(self.norm(x))


class TorchvisionStyle(nn.Module):
    """A classifier of several layers in a row."""

    def __init__(self):
        super().__init__()
        self.classifier = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 5), nn.Dropout())
        self.after = nn.Linear(4, 4)

    def forward(self, x):
        return self.classifier(x)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (TimmStyle(), "last"),
        (TorchvisionStyle(), "classifier.2"),
        (plain(), "2"),
        (nn.Sequential(nn.Linear(6, 4), nn.Sequential(nn.Tanh(), nn.Linear(4, 5))), "1.1"),
    ],
    ids=["timm", "torchvision", "sequential", "nested"],
)
def test_the_layer_that_predicts_is_found(model, name):
    swap, old = skdare.swap(model, head_for_features(4)), getattr(model, "num_classes", None)
    assert model.get_submodule(name) is swap.layer
    assert swap.layer.out_features == 3
    assert old in (None, 3)
    swap.undo()
    assert model.get_submodule(name).out_features == 5
    assert getattr(model, "num_classes", 5) == 5


def test_without_with_a_swap_stays_until_it_is_undone():
    model = plain()
    old, swap = model[2], skdare.swap(model, head_for_features(4))
    assert model[2] is swap.layer is not old
    swap.undo()
    swap.undo()
    assert model[2] is old


def test_a_swap_undoes_itself_after_an_error():
    model = plain()
    old = model[2]
    with pytest.raises(KeyError, match="mine"), skdare.swap(model, head_for_features(4)):
        raise KeyError("mine")
    assert model[2] is old


def test_a_swap_that_fails_leaves_the_network_as_it_was():
    class Fixed(TimmStyle):
        num_labels = property(lambda self: 5)

    model = Fixed()
    old = model.last
    with pytest.raises(AttributeError):
        skdare.swap(model, head_for_features(4))
    assert model.last is old
    assert model.num_classes == 5


def test_swaps_are_undone_in_turn():
    model = plain()
    first = skdare.swap(model, head_for_features(4))
    second = skdare.swap(model, head_for_features(4, seed=1))
    with pytest.raises(RuntimeError, match="undo the later one first"):
        first.undo()
    second.undo()
    assert model[2] is first.layer
    first.undo()
    assert model[2].out_features == 5


def test_a_layer_without_a_bias_says_what_a_saved_network_would_lose():
    with pytest.warns(UserWarning, match="has no bias, and the one in its place"):
        skdare.swap(plain(bias=False), head_for_features(4))
    rng = np.random.default_rng(0)
    head = ERMClassifier(fit_intercept=False).fit(rng.normal(size=(40, 4)), np.arange(40) % 3)
    skdare.swap(plain(bias=False), head)


@pytest.mark.filterwarnings("ignore:layer '2' has no bias")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_new_layer_takes_over_what_the_old_one_had(dtype, bias):
    model = plain(bias=bias).to(dtype).train()
    model[2].eval().requires_grad_(False)
    with skdare.swap(model, head_for_features(4)):
        assert {p.dtype for p in model.parameters()} == {dtype}
        assert model[0].training
        assert not model[2].training
        assert [p.requires_grad for p in model[2].parameters()] == [False, False]
    with skdare.swap(plain().train(), head_for_features(4)) as network:
        assert network[2].training
        assert all(p.requires_grad for p in network.parameters())


def test_a_layer_in_two_places_is_replaced_in_both():
    model = plain()
    model.add_module("again", model[2])
    with skdare.swap(model, head_for_features(4), layer="2") as network:
        assert network.again is network[2]
        assert network.again.out_features == 3
    assert model.again is model[2]
    assert model.again.out_features == 5


@pytest.mark.parametrize("labels", [("a", "b"), (3, 5)])
def test_a_network_with_one_output_keeps_one(labels):
    model, head = plain(outputs=1).double(), head_for_features(4, labels)
    rows = torch.randn(9, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad(), skdare.swap(model, head) as network:
        found = network(rows).sigmoid()[:, 0].numpy()
        features = network[:2](rows).numpy()
    np.testing.assert_allclose(found, head.predict_proba(features)[:, 1], atol=1e-12)


def test_a_regressor_has_one_output():
    model = hugging_face("BertForSequenceClassification", WORDS)
    head = head_for_features(8, kind=DARERegressor)
    with torch.no_grad(), skdare.swap(model, head) as network:
        features = fed(network, network.classifier, TEXT)
        found = network(**TEXT).logits[:, 0].numpy()
        assert network.config.problem_type == "regression"
        assert network.num_labels == 1
    np.testing.assert_allclose(found, head.predict(features), rtol=1e-4, atol=1e-5)


def test_the_order_of_a_network_that_names_the_same_classes_is_kept():
    names = {0: "well", 1: "ill", 2: "mild"}
    model = hugging_face("BertForSequenceClassification", WORDS, id2label=names)
    head = head_for_features(8, ("ill", "mild", "well"))
    with torch.no_grad(), skdare.swap(model, head) as network:
        assert network.config.id2label == names
        features = fed(network, network.classifier, TEXT)
        found = network(**TEXT).logits.softmax(dim=1).numpy()
    np.testing.assert_allclose(found, head.predict_proba(features)[:, [2, 0, 1]], atol=1e-5)


def test_label_numbers_keep_the_names_they_had():
    names = {0: "well", 1: "ill", 2: "mild"}
    model = hugging_face("BertForSequenceClassification", WORDS, id2label=names)
    with skdare.swap(model, head_for_features(8, (0, 2))) as network:
        assert network.config.id2label == {0: "well", 1: "mild"}
    assert model.config.id2label == names


def test_a_loss_of_transformers_is_that_of_the_head():
    model = hugging_face("BertForSequenceClassification", WORDS, num_labels=5)
    head = head_for_features(8)
    labels = torch.arange(20) % 3
    with torch.no_grad(), skdare.swap(model, head) as network:
        features = fed(network, network.classifier, TEXT)
        loss = float(network(**TEXT, labels=labels).loss)
    expected = -np.log(head.predict_proba(features)[np.arange(20), labels]).mean()
    assert loss == pytest.approx(expected, rel=1e-4)


def test_a_head_of_two_layers_asks_which_one():
    model = hugging_face("RobertaForSequenceClassification", WORDS, num_labels=5)
    head = head_for_features(8)
    listed = r"'classifier.dense' \(8 → 8\), 'classifier.out_proj' \(8 → 5\)"
    with pytest.raises(ValueError, match=rf"classifier has several linear layers.*{listed}"):
        skdare.swap(model, head)
    with pytest.raises(ValueError, match="'classifier' is a RobertaClassificationHead, not linear"):
        skdare.swap(model, head, layer="classifier")
    with skdare.swap(model, head, layer="classifier.out_proj") as network:
        assert network.classifier.out_proj.out_features == 3


@pytest.mark.parametrize(
    ("model", "layer", "error", "remedy"),
    [
        (plain(), "0", ValueError, "takes 6 features, and the head was fitted to 4"),
        (plain(), "9", ValueError, r"no layer '9'.*'0' \(6 → 4\), '2' \(4 → 5\)"),
        (plain(), "1", ValueError, "'1' is a ReLU, not linear"),
        (nn.Linear(4, 5), None, ValueError, r"use head.to_torch\(\)"),
        (nn.Sequential(nn.Conv2d(3, 4, 1)), None, ValueError, "it has no linear layers"),
        (nn.Sequential(nn.Linear(4, 4), nn.Tanh()), None, ValueError, "does not end with a linear"),
        (TimmStyle("two"), None, ValueError, "gives no single layer"),
        (lambda x: x, None, TypeError, "pass a torch.nn.Module"),
    ],
    ids=["features", "unknown", "not linear", "itself", "none", "activation", "two", "function"],
)
def test_a_layer_that_does_not_fit_is_refused_before_anything_changes(model, layer, error, remedy):
    parts = list(model.modules()) if isinstance(model, nn.Module) else []
    with pytest.raises(error, match=remedy):
        skdare.swap(model, head_for_features(4), layer=layer)
    assert not parts or list(model.modules()) == parts


def test_two_heads_side_by_side_ask_which_one():
    model = hugging_face("DeiTForImageClassificationWithTeacher", VIT)
    with pytest.raises(ValueError, match="several linear layers of the same shape"):
        skdare.swap(model, head_for_features(8))


def test_a_network_without_a_head_has_nothing_to_swap():
    with pytest.raises(ValueError, match="does not end with a linear layer"):
        skdare.swap(hugging_face("BertModel", WORDS), head_for_features(8))


def test_a_quantised_layer_is_refused():
    model = plain()
    model[2].weight = nn.Parameter(torch.zeros(5, 4, dtype=torch.uint8), requires_grad=False)
    with pytest.raises(ValueError, match="swap before the network is quantised"):
        skdare.swap(model, head_for_features(4))


def test_an_unfitted_head_and_a_missing_torch_are_named(monkeypatch):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        skdare.swap(plain(), DAREClassifier())
    head = head_for_features(4)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"swap needs torch; pip install 'skdare\[torch\]'"):
        skdare.swap(object(), head)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "vit_b_16", "convnext_tiny"])
def test_a_network_of_torchvision_takes_a_head(name):
    models = pytest.importorskip("torchvision.models", reason="torchvision does not load")
    check_pooled(getattr(models, name)(weights=None).eval())


@pytest.mark.parametrize("name", ["resnet18", "vit_tiny_patch16_224", "convnext_atto"])
def test_a_network_of_timm_takes_a_head(name):
    timm = pytest.importorskip("timm", reason="timm does not load")
    check_pooled(timm.create_model(name).eval())


def check_pooled(network):
    """Rows that come to the last layer, predicted by the head in its place as by the head."""
    images = torch.linspace(-1, 1, 2 * 3 * 224 * 224).reshape(2, 3, 224, 224).sin()
    name, layer = find_layer(network, None)
    seen = []
    handle = layer.register_forward_hook(lambda module, given, out: seen.append(given[0]))
    with torch.no_grad():
        before = network(images)
        head = head_for_features(layer.in_features)
        handle.remove()
        with skdare.swap(network, head):
            logits = network(images)
        torch.testing.assert_close(network(images), before)
    expected = head.predict_proba(seen[0].numpy())
    np.testing.assert_allclose(logits.softmax(dim=1).numpy(), expected, atol=1e-5)
    assert network.get_submodule(name) is layer
