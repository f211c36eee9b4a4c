"""Networks of timm and torchvision without their classifier."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skdare.errors import InputError
from skdare.features.backbones.backbone import ImageBackbone, count_features
from skdare.features.backbones.packages import explaining_torchvision

# Random hyperparameters in DomainBed's files are NumPy's numbers: harmless, but not on torch's
# list. Files written with NumPy 1 name them by their old place.
_SCALAR = np.float64(0).__reduce__()[0]
_SAFE_NUMBERS: list[Any] = [
    (_SCALAR, "numpy._core.multiarray.scalar"),
    (_SCALAR, "numpy.core.multiarray.scalar"),
    np.dtype,
    type(np.dtype(np.float64)),
    type(np.dtype(np.int64)),
]
_FEATURIZER = "featurizer.network."


def load_timm(name: str, *, size: int | None = None, weights: str = "default") -> ImageBackbone:
    """Network of timm: pooled features before the classifier.

    Parameters
    ----------
    name : str
        Such as ``resnet50.a1_in1k``.
    size : int, optional
        Side of an image in pixels. Default: that of the weights.
    weights : str
        ``default`` (timm's pretrained ones), ``none`` (drawn with seed 0), or a file with a state
        dict, with or without a classifier, or DomainBed's ``model.pkl``.

    Returns
    -------
    ImageBackbone
        In evaluation mode.
    """
    with explaining_torchvision():
        timm = import_module("timm")
        data = import_module("timm.data")
    file = _weights_file(weights)
    # A colon names a place, such as hf-hub:, that may have networks which timm does not list.
    if ":" not in name and not timm.is_model(name.partition(".")[0]):
        raise InputError(_unknown("timm", name, timm.list_models()))
    pretrained = weights == "default"
    module = _seeded(lambda: timm.create_model(name, pretrained=pretrained, num_classes=0))
    config = data.resolve_data_config({}, model=module)
    native = config["input_size"][-1]
    if file is not None:
        classifier = module.pretrained_cfg.get("classifier") or ()
        _load(module, file, (classifier,) if isinstance(classifier, str) else classifier)
    if size not in (None, native) and hasattr(module, "set_input_size"):
        module.set_input_size(img_size=(size, size))
    return _backbone(f"timm:{name}", module, size or native, config["mean"], config["std"])


def load_torchvision(
    name: str, *, size: int | None = None, weights: str = "default"
) -> ImageBackbone:
    """Classifier of torchvision, such as ``resnet50``, without its last linear layer.

    The parameters are those of `load_timm`; the default weights are torchvision's best ones.
    """
    with explaining_torchvision():
        models = import_module("torchvision.models")
    file = _weights_file(weights)
    names = models.list_models(module=models)
    if name not in names:
        raise InputError(_unknown("torchvision", name, names))
    default = models.get_model_weights(name).DEFAULT
    pretrained = default if weights == "default" else None
    module = _seeded(lambda: models.get_model(name, weights=pretrained))
    classifier = _last_linear(name, module)
    module.set_submodule(classifier, nn.Identity())
    if file is not None:
        _load(module, file, (classifier,))
    preset = default.transforms()
    size = size or preset.crop_size[0]
    return _backbone(f"torchvision:{name}", module, size, preset.mean, preset.std)


def _weights_file(weights: str) -> Path | None:
    if weights in ("default", "none"):
        return None
    if not Path(weights).is_file():
        raise InputError(f"weights is {weights!r}; pass 'default', 'none' or a file that exists")
    return Path(weights)


def _unknown(package: str, name: str, names: list[str]) -> str:
    near = get_close_matches(name, names, n=5) or sorted(names)[:5]
    return (
        f"{package} has no network {name!r}; it has {', '.join(near)} and "
        f"{len(names) - len(near)} more"
    )


def _seeded(make: Callable[[], Any]) -> Any:
    """Call with seed 0 for weights that are drawn, leaving the global generator alone."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # GoogLeNet and Inception announce another way to draw their weights.
        warnings.simplefilter("ignore", FutureWarning)
        torch.manual_seed(0)
        return make()


def _last_linear(name: str, module: nn.Module) -> str:
    """Name of the classifier: the last linear layer, in order of definition."""
    linear = [key for key, part in module.named_modules() if isinstance(part, nn.Linear)]
    if not linear:
        raise InputError(
            f"torchvision's {name} has no linear classifier to remove; pass another network"
        )
    return linear[-1]


def _load(module: nn.Module, path: Path, classifier: tuple[str, ...]) -> None:
    """Take all weights but the classifier's from a file."""
    expected = module.state_dict()
    left_out = tuple(f"{part}." for part in classifier)
    # A part of the classifier that stays, such as its norm, is loaded like the rest.
    state = {
        key: value
        for key, value in read_state(path).items()
        if key in expected or not key.startswith(left_out)
    }
    missing = sorted(expected.keys() - state.keys())
    unexpected = sorted(state.keys() - expected.keys())
    if missing or unexpected:
        raise InputError(
            f"the weights in {path} belong to another network: {len(missing)} arrays are missing "
            f"and {len(unexpected)} have no place, such as {', '.join((missing + unexpected)[:3])}"
        )
    module.load_state_dict(state)


def read_state(path: Path) -> Mapping[str, Tensor]:
    """Arrays of a network by name, read without running code from the file.

    Of DomainBed's ``model.pkl``, those of its featurizer.
    """
    with torch.serialization.safe_globals(_SAFE_NUMBERS):
        content = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(content, Mapping):
        raise InputError(f"{path} holds a {type(content).__name__}; save a state dict")
    algorithm = content.get("model_dict")
    if not isinstance(algorithm, Mapping):
        return content
    featurizer = {
        key.removeprefix(_FEATURIZER): value
        for key, value in algorithm.items()
        if key.startswith(_FEATURIZER)
    }
    if not featurizer:
        raise InputError(
            f"{path} is DomainBed's, but has no {_FEATURIZER}*: the network is not from timm or "
            "torchvision; give the weights of a ResNet"
        )
    return featurizer


def _backbone(name: str, module: nn.Module, size: int, mean: Any, std: Any) -> ImageBackbone:
    module.eval()
    dim = count_features(name, module, size)
    return ImageBackbone(name, size, dim, module, tuple(mean), tuple(std))
