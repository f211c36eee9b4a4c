"""Networks of timm and torchvision, up to what their classifier sees."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from skdare.features._backbone import ImageBackbone
from skdare.features._state import read_state


def load_timm(name: str, *, size: int | None = None, weights: str = "default") -> ImageBackbone:
    """A network of timm: pooled features before the classifier.

    Parameters
    ----------
    name : str
        Such as ``resnet50.a1_in1k``.
    size : int, optional
        Pixels; those of the weights where not given.
    weights : str
        ``default`` (timm's pretrained ones), ``none`` (drawn with seed 0), or a file with a state
        dict, with or without a classifier, or DomainBed's ``model.pkl``.

    Returns
    -------
    ImageBackbone
        In evaluation mode.
    """
    with torchvision_mismatch_named():
        timm = imported("timm", "timm is not installed; pip install timm")
        data = import_module("timm.data")
    file = _file(weights)
    # A name with a colon is of a place, such as hf-hub:, and not of a network.
    if ":" not in name and not timm.is_model(name.partition(".")[0]):
        raise ValueError(_unknown("timm", name, timm.list_models(pretrained=True)))
    pretrained = weights == "default"
    module = _drawn(lambda: timm.create_model(name, pretrained=pretrained, num_classes=0))
    shown = data.resolve_data_config({}, model=module)
    native = shown["input_size"][-1]
    if file is not None:
        classifier = module.pretrained_cfg.get("classifier") or ()
        _load(module, file, (classifier,) if isinstance(classifier, str) else classifier)
    if size not in (None, native) and hasattr(module, "set_input_size"):
        module.set_input_size(img_size=(size, size))
    return _backbone(f"timm:{name}", module, size or native, shown["mean"], shown["std"])


def load_torchvision(
    name: str, *, size: int | None = None, weights: str = "default"
) -> ImageBackbone:
    """A classifier of torchvision without its last linear layer.

    Parameters
    ----------
    name : str
        Such as ``resnet50``.
    size : int, optional
        Pixels; those of torchvision's default weights where not given.
    weights : str
        ``default`` (torchvision's best ones for this network), ``none`` (drawn with seed 0), or a
        file with a state dict, with or without a classifier, or DomainBed's ``model.pkl``.

    Returns
    -------
    ImageBackbone
        In evaluation mode.
    """
    with torchvision_mismatch_named():
        imported(
            "torchvision",
            "torchvision is not installed; install the release that belongs to this torch "
            f"({torch.__version__})",
        )
        models = import_module("torchvision.models")
    file = _file(weights)
    known = models.list_models(module=models)
    if name not in known:
        raise ValueError(_unknown("torchvision", name, known))
    default = models.get_model_weights(name).DEFAULT
    taken = default if weights == "default" else None
    module = _drawn(lambda: models.get_model(name, weights=taken))
    classifier = _last_linear(name, module)
    module.set_submodule(classifier, nn.Identity())
    if file is not None:
        _load(module, file, (classifier,))
    shown = default.transforms()
    return _backbone(
        f"torchvision:{name}", module, size or shown.crop_size[0], shown.mean, shown.std
    )


def imported(package: str, hint: str) -> ModuleType:
    """The package, or an ImportError with a hint where it is not installed."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ImportError(hint) from error


@contextmanager
def torchvision_mismatch_named() -> Iterator[None]:
    """Says so when an import fails because torchvision was built for another torch.

    The error then speaks of an operator that does not exist, or of a class of another package
    that could not be imported; what helps is another torchvision, or none.
    """
    try:
        yield
    except (RuntimeError, ImportError) as error:
        cause: BaseException | None = error
        while cause is not None and "torchvision::" not in str(cause):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        raise ImportError(
            f"torchvision does not match this torch ({torch.__version__}): {cause}; "
            "install the torchvision of the same release, or remove it"
        ) from error


def _file(weights: str) -> Path | None:
    """The file that is meant, if one is."""
    if weights in ("default", "none"):
        return None
    if not Path(weights).is_file():
        raise ValueError(f"weights is {weights!r}; pass 'default', 'none' or a file that exists")
    return Path(weights)


def _unknown(package: str, name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=5) or sorted(known)[:5]
    return (
        f"{package} has no network {name!r}; it has {', '.join(near)} and "
        f"{len(known) - len(near)} more"
    )


def _drawn(make: Callable[[], Any]) -> Any:
    """What is made, with seed 0 where weights are drawn; the global generator stays as it was."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # GoogLeNet and Inception announce another way to draw their weights.
        warnings.simplefilter("ignore", FutureWarning)
        torch.manual_seed(0)
        return make()


def _last_linear(name: str, module: nn.Module) -> str:
    """The classifier of a network: its last linear layer, in order of definition."""
    found = [key for key, part in module.named_modules() if isinstance(part, nn.Linear)]
    if not found:
        raise ValueError(
            f"torchvision's {name} has no linear classifier to take off; pass another network"
        )
    return found[-1]


def _load(module: nn.Module, path: Path, classifier: tuple[str, ...]) -> None:
    """Take all weights but the classifier's from a file."""
    given = read_state(path)
    own = module.state_dict()
    left = tuple(f"{part}." for part in classifier)
    # A part of the classifier that stays, such as its norm, is loaded like the rest.
    kept = {key: value for key, value in given.items() if key in own or not key.startswith(left)}
    missing, unexpected = sorted(own.keys() - kept.keys()), sorted(kept.keys() - own.keys())
    if missing or unexpected:
        raise ValueError(
            f"the weights in {path} are of another network: {len(missing)} arrays are missing and "
            f"{len(unexpected)} have no place, such as {', '.join((missing + unexpected)[:3])}"
        )
    module.load_state_dict(kept)


def _backbone(name: str, module: nn.Module, size: int, mean: Any, deviation: Any) -> ImageBackbone:
    module.eval()
    return ImageBackbone(
        name, size, features_of_zeros(name, module, size), module, tuple(mean), tuple(deviation)
    )


def features_of_zeros(name: str, module: nn.Module, size: int) -> int:
    """How many features a network of images gives, found by trying."""
    try:
        with torch.no_grad():
            found = module(torch.zeros(1, 3, size, size))
    except (RuntimeError, AssertionError, ValueError) as error:
        raise ValueError(
            f"{name} gives no features of an image of {size} pixels: {error}"
        ) from error
    if found.ndim != 2:
        raise ValueError(
            f"{name} gives an array of shape {tuple(found.shape)} for one image, not one vector; "
            "pass another network"
        )
    return found.shape[1]
