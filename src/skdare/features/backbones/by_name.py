"""Load a backbone by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skdare.errors import InputError
from skdare.features.backbones.backbone import Backbone
from skdare.features.backbones.bottleneck import narrowed
from skdare.features.backbones.hugging_face import load_transformers, without_path
from skdare.features.backbones.model_zoos import load_timm, load_torchvision
from skdare.features.backbones.tiny import make_tiny

_FAMILIES: dict[str, Callable[..., Backbone]] = {
    "hf": load_transformers,
    "timm": load_timm,
    "torchvision": load_torchvision,
}


def backbone(
    name: str, *, seed: int = 0, bottleneck: int | None = None, **options: Any
) -> Backbone:
    """Load the backbone of this name, with its pretrained weights.

    Parameters
    ----------
    name : str
        ``tiny`` (a small network for small images, not pretrained), ``timm:NAME``,
        ``torchvision:NAME``, or ``hf:FOLDER`` (anything that Hugging Face transformers reads,
        images or text).
    seed : int
        Draws the weights of ``tiny``, and of a bottleneck.
    bottleneck : int, optional
        Number of features that a linear layer makes of the network's own, which are more. It is a
        random projection before any training, and trained with the network.
    **options
        ``size``, in pixels or tokens; for ``tiny`` also ``dim``, for ``hf`` ``pooling``, for
        ``timm`` and ``torchvision`` ``weights``.

    Returns
    -------
    Backbone
    """
    network = _load(name, seed, options)
    return network if bottleneck is None else narrowed(network, bottleneck, seed)


def recorded_name(name: str) -> str:
    """Name of a backbone in records, which do not say where a folder lies."""
    family, _, rest = name.partition(":")
    return f"hf:{without_path(rest)}" if family == "hf" else name


def _load(name: str, seed: int, options: dict[str, Any]) -> Backbone:
    family, _, rest = name.partition(":")
    if family in _FAMILIES and rest:
        return _FAMILIES[family](rest, **options)
    if name == "tiny":
        return make_tiny(seed=seed, **options)
    names = ", ".join(["tiny", *(f"{family}:NAME" for family in _FAMILIES)])
    raise InputError(f"there is no backbone '{name}'", f"there are {names}")
