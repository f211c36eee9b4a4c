"""Backbones: what networks give, and how inputs get into them."""

from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from skdare.features import Examples, backbone  # noqa: E402
from skdare.features.backbones.backbone import weights_hash  # noqa: E402

VISION = ("resnet", "convnext", "vit", "dinov2", "clip")
SENTENCES = [
    "the cat sat on the mat",
    "a dog",
    "the dog sat",
    "on the mat a cat and a dog sat and sat and sat",
]
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


@pytest.fixture
def transformers(request):
    if find_spec("torchvision") is not None:  # which it imports where it is there
        request.getfixturevalue("torchvision")
    return pytest.importorskip("transformers")


@pytest.fixture
def folder(transformers, tmp_path):
    """Function that saves a tiny random network of a kind, with its processor or tokenizer."""

    def save(kind, **processor):
        path = tmp_path / kind
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = tiny_model(transformers, kind)
            noisy(model)
        model.save_pretrained(path)
        if kind == "bert":
            save_tokenizer(transformers, path)
        else:
            written = {"size": {"height": 32, "width": 32}, **IMAGENET, **processor}
            (path / "preprocessor_config.json").write_text(json.dumps(written))
        return path

    return save


def tiny_model(t, kind):
    blocks = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    wide = {**blocks, "intermediate_size": 32}
    patches = {"image_size": 32, "patch_size": 8}
    pyramid = {"hidden_sizes": [8, 16], "depths": [1, 1]}
    if kind == "resnet":
        return t.ResNetModel(t.ResNetConfig(embedding_size=8, layer_type="basic", **pyramid))
    if kind == "convnext":
        return t.ConvNextModel(t.ConvNextConfig(num_stages=2, drop_path_rate=0.1, **pyramid))
    if kind == "vit":
        return t.ViTModel(t.ViTConfig(**wide, **patches), add_pooling_layer=False)
    if kind == "dinov2":
        return t.Dinov2Model(t.Dinov2Config(**blocks, **patches))
    if kind == "clip":
        text = {**wide, "vocab_size": 20, "eos_token_id": 1, "bos_token_id": 0}
        config = t.CLIPConfig(
            text_config=text, vision_config={**wide, **patches}, projection_dim=12
        )
        return t.CLIPModel(config)
    return t.BertModel(t.BertConfig(vocab_size=20, max_position_embeddings=32, **wide))


def noisy(model):
    """Norms and offsets away from one and zero, so that leaving one out would show."""
    with torch.no_grad():
        for value in model.parameters():
            value += 0.1 * torch.randn_like(value)


def save_tokenizer(t, path):
    tokenizers = pytest.importorskip("tokenizers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted(set(" ".join(SENTENCES).split()))]
    plain = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
    )
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    plain.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    t.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]"
    ).save_pretrained(path)


def texts(sentences):
    n = len(sentences)
    inputs = np.array(sentences, dtype=object)
    names = np.array([str(i) for i in range(n)])
    labels = np.zeros(n, dtype=np.int64)
    return Examples(inputs, labels, names, ["only"], names, "texts", "text", "0" * 16)


def pixels(n, size, seed=0):
    drawn = np.random.default_rng(seed).integers(0, 256, (n, size, size, 3), dtype=np.uint8)
    return torch.from_numpy(drawn)


def all_features(network, inputs):
    """Features of all rows at once, and row by row."""
    with torch.no_grad():
        rows = torch.arange(len(inputs))
        together = network.features(network.views(inputs, rows))
        alone = [network.features(network.views(inputs, row[None])) for row in rows]
    return together, torch.cat(alone)


def same(a, b):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["resnet50", "hf:", "unknown:net"])
def test_an_unknown_backbone_is_an_error_that_lists_those_there_are(name):
    with pytest.raises(ValueError, match=r"there are tiny, hf:NAME, timm:NAME"):
        backbone(name)


def test_a_seed_gives_the_same_tiny_network_and_leaves_the_global_generator_alone():
    before = torch.random.get_rng_state()
    first, again, other = (backbone("tiny", seed=seed) for seed in (3, 3, 4))
    assert weights_hash(first.module) == weights_hash(again.module) != weights_hash(other.module)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("kind", VISION)
def test_features_of_images_do_not_depend_on_the_batch_and_have_the_stated_number(folder, kind):
    network = backbone(f"hf:{folder(kind)}")
    assert (network.kind, network.size) == ("image", 32)
    together, alone = all_features(network, pixels(3, 40))
    assert together.shape == (3, network.dim)
    assert together.dtype == torch.float32
    assert together.std(dim=0).max() > 1e-2
    same(together, alone)


@pytest.mark.parametrize("kind", VISION)
def test_features_of_images_are_those_of_the_network_that_was_saved(transformers, folder, kind):
    path = folder(kind)
    network = backbone(f"hf:{path}")
    x = network.views(pixels(2, 32), torch.arange(2))
    model = type(tiny_model(transformers, kind)).from_pretrained(path).eval()
    with torch.no_grad():
        if kind == "clip":
            expected = model.get_image_features(pixel_values=x).pooler_output
        elif kind in ("resnet", "convnext"):
            expected = model(pixel_values=x).pooler_output.flatten(1)
        else:
            expected = model(pixel_values=x).last_hidden_state[:, 0]
        same(network.features(x), expected)


def test_a_pooling_that_a_network_does_not_have_is_an_error(folder):
    with pytest.raises(ValueError, match="it has no tokens; pass pooling='mean'"):
        backbone(f"hf:{folder('resnet')}", pooling="cls")
    with pytest.raises(ValueError, match="use one of 'cls', 'mean', 'pooler'"):
        backbone(f"hf:{folder('vit')}", pooling="max")


def test_weights_that_are_not_in_the_folder_are_an_error_and_never_random(folder):
    path = folder("vit")
    with pytest.raises(ValueError, match=r"no weights for 2 arrays, such as pooler\.dense\.bias"):
        backbone(f"hf:{path}", pooling="pooler")
    hashes = {weights_hash(backbone(f"hf:{path}").module) for _ in range(2)}
    assert len(hashes) == 1


@pytest.mark.parametrize(
    "processor",
    [
        {},
        {"rescale_factor": 1 / 127.5},
        {"do_rescale": False},
        {"do_normalize": False},
    ],
)
def test_pixels_are_normalised_as_the_processor_says(folder, processor):
    network = backbone(f"hf:{folder('resnet', **processor)}")
    images = pixels(2, 32)
    expected = images.permute(0, 3, 1, 2).double()
    if processor.get("do_rescale", True):
        expected = expected * processor.get("rescale_factor", 1 / 255)
    if processor.get("do_normalize", True):
        mean, deviation = (torch.tensor(v)[:, None, None].double() for v in IMAGENET.values())
        expected = (expected - mean) / deviation
    found = network.views(images, torch.arange(2)).double()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_features_of_texts_depend_neither_on_padding_nor_on_the_batch(transformers, folder):
    path = folder("bert")
    network = backbone(f"hf:{path}")
    assert (network.kind, network.size) == ("text", 32)
    tokens = torch.from_numpy(network.encode(texts(SENTENCES)))
    assert tokens.shape == (len(SENTENCES), 32)
    together, alone = all_features(network, tokens)
    assert together.shape == (len(SENTENCES), network.dim)
    same(together, alone)
    shorter = backbone(f"hf:{path}", size=16)
    same(all_features(shorter, torch.from_numpy(shorter.encode(texts(SENTENCES))))[0], together)
    model = transformers.BertModel.from_pretrained(path).eval()
    with torch.no_grad():
        for row, found in zip(tokens, together, strict=True):
            hidden = model(input_ids=row[row != 0][None].long()).last_hidden_state
            same(found, hidden[0].mean(dim=0))


@pytest.mark.parametrize("pooling", ["cls", "pooler"])
def test_texts_are_pooled_as_asked(transformers, folder, pooling):
    path = folder("bert")
    network = backbone(f"hf:{path}", pooling=pooling)
    tokens = torch.from_numpy(network.encode(texts(SENTENCES)))
    model = transformers.BertModel.from_pretrained(path).eval()
    with torch.no_grad():
        output = model(input_ids=tokens.long(), attention_mask=(tokens != 0).long())
    expected = output.pooler_output if pooling == "pooler" else output.last_hidden_state[:, 0]
    same(all_features(network, tokens)[0], expected)


def sentence_transformers_files(path, mode, parts=("Transformer", "Pooling", "Normalize")):
    modules = [
        {"type": f"sentence_transformers.models.{part}", "path": f"{i}_{part}" if i else ""}
        for i, part in enumerate(parts)
    ]
    (path / "modules.json").write_text(json.dumps(modules))
    (path / "1_Pooling").mkdir(exist_ok=True)
    modes = {f"pooling_mode_{name}": name == mode for name in ("cls_token", "mean_tokens", "max")}
    (path / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 16, **modes})
    )


@pytest.mark.parametrize(("mode", "pooling"), [("cls_token", "cls"), ("mean_tokens", "mean")])
def test_a_sentence_encoder_pools_and_scales_as_its_files_say(folder, mode, pooling):
    path = folder("bert")
    plain = backbone(f"hf:{path}", pooling=pooling)
    sentence_transformers_files(path, mode)
    network = backbone(f"hf:{path}")
    tokens = torch.from_numpy(network.encode(texts(SENTENCES)))
    expected = all_features(plain, tokens)[0]
    same(all_features(network, tokens)[0], nn.functional.normalize(expected))
    assert "unit length" in network.transform
    assert "unit length" not in plain.transform


def test_many_texts_that_are_cut_are_a_warning(folder):
    network = backbone(f"hf:{folder('bert')}", size=8)
    with pytest.warns(UserWarning, match="1 of 4 texts have more than 8 tokens"):
        tokens = network.encode(texts(SENTENCES))
    assert tokens.shape == (4, 8)
    assert len(network.encode(texts([*SENTENCES, *(8 * ["a dog"])]))) == 12


def test_a_text_encoder_refuses_images_and_more_tokens_than_it_has_places(folder):
    path = folder("bert")
    with pytest.raises(ValueError, match=r"size is 33, and .* takes at most 32 tokens"):
        backbone(f"hf:{path}", size=33)
    names = np.array(["0"])
    images = Examples(
        pixels(1, 8).numpy(), np.zeros(1, dtype=np.int64), names, ["a"], names, "p", "image", "0"
    )
    with pytest.raises(ValueError, match="p holds images"):
        backbone(f"hf:{path}").encode(images)


@pytest.mark.parametrize(
    ("kind", "lost"),
    [
        ("vit", ["config.json"]),
        ("vit", ["preprocessor_config.json"]),
        ("bert", ["tokenizer.json"]),
        ("bert", ["model.safetensors"]),
    ],
)
def test_a_folder_without_a_file_is_an_error_that_names_it(folder, kind, lost):
    path = folder(kind)
    for name in lost:
        (path / name).unlink()
    with pytest.raises(OSError, match=lost[0]):
        backbone(f"hf:{path}")


@pytest.mark.parametrize("family", ["timm", "torchvision"])
def test_weights_that_are_drawn_are_the_same_and_leave_the_generator_alone(torchvision, family):
    before = torch.random.get_rng_state()
    drawn = [weights_hash(backbone(f"{family}:resnet18", weights="none").module) for _ in "ab"]
    assert drawn[0] == drawn[1]
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("family", ["timm", "torchvision"])
def test_a_zoo_refuses_what_it_does_not_have(torchvision, family, tmp_path):
    with pytest.raises(ValueError, match=r"has no network 'resnet19'; it has .*resnet18"):
        backbone(f"{family}:resnet19")
    with pytest.raises(ValueError, match="pass 'default', 'none' or a file"):
        backbone(f"{family}:resnet18", weights="imagenet")
    other = backbone(f"{family}:resnet18", weights="none").module.state_dict()
    torch.save({"layer.weight": torch.zeros(1), **other}, tmp_path / "other.pth")
    with pytest.raises(ValueError, match="0 arrays are missing and 1 have no place"):
        backbone(f"{family}:resnet18", weights=str(tmp_path / "other.pth"))


@pytest.mark.parametrize(
    "name",
    ["resnet18", "mobilenet_v3_small", "swin_t"],
)
def test_torchvision_scores_are_its_last_layer_of_our_features(torchvision, name, tmp_path):
    models = torchvision.models

    full = models.get_model(name, weights=None).eval()
    torch.save(full.state_dict(), tmp_path / "weights.pth")
    network = backbone(f"torchvision:{name}", size=64, weights=str(tmp_path / "weights.pth"))
    x = network.views(pixels(2, 64), torch.arange(2))
    last = [part for part in full.modules() if isinstance(part, nn.Linear)][-1]
    with torch.no_grad():
        same(last(network.features(x)), full(x))


@pytest.mark.parametrize("name", ["resnet18", "convnext_atto", "vit_tiny_patch16_224"])
def test_timm_scores_are_its_classifier_of_our_features(torchvision, name, tmp_path):
    timm = pytest.importorskip("timm")
    full = timm.create_model(name, pretrained=False).eval()
    torch.save(full.state_dict(), tmp_path / "weights.pth")
    network = backbone(f"timm:{name}", weights=str(tmp_path / "weights.pth"))
    x = network.views(pixels(2, network.size), torch.arange(2))
    with torch.no_grad():
        same(full.get_classifier()(network.features(x)), full(x))
