"""Which linear layer of a network is the one that predicts."""

from __future__ import annotations

from typing import Any

from torch import nn

# What Hugging Face, torchvision and timm call the part that predicts; a network that has two of
# these has prepared the input of the first in the second.
NAMES = ("classifier", "score", "fc", "classification_head", "logits_proj", "heads", "head")
# Layers that change no shape and no order, with which a network may end.
IDLE = (nn.Dropout, nn.Identity, nn.Flatten)


def find_layer(model: nn.Module, name: str | None) -> tuple[str, nn.Linear]:
    """The name and the layer that was asked for, or that the network ends with."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is a {type(model).__name__}; pass a torch.nn.Module")
    if isinstance(model, nn.Linear):
        raise ValueError("the model is itself a linear layer; use head.to_torch() in its place")
    if name is None:
        name = _of_timm(model) or _by_name(model) or _at_the_end(model)
    try:
        layer = model.get_submodule(name)
    except AttributeError as error:
        raise ValueError(f"the network has no layer {name!r}; {_listed(model)}") from error
    if not isinstance(layer, nn.Linear):
        raise ValueError(f"{name!r} is a {type(layer).__name__}, not linear; {_listed(model)}")
    return name, layer


def _of_timm(model: Any) -> str | None:
    """What ``get_classifier`` gives, which timm's networks have."""
    if not callable(getattr(model, "get_classifier", None)):
        return None
    layer = model.get_classifier()
    names = [name for name, part in model.named_modules() if part is layer]
    if not names:
        raise _unclear(model, "its get_classifier() gives no single layer")
    return names[0]


def _by_name(model: nn.Module) -> str | None:
    """The linear layer of the part with a known name."""
    for name in NAMES:
        part = getattr(model, name, None)
        if not isinstance(part, nn.Module):
            continue
        inside = _linear(part)
        if len(inside) == 1 or (inside and isinstance(part, nn.Sequential)):
            return f"{name}.{inside[-1]}".rstrip(".")
        if inside:
            raise _unclear(model, f"its {name} has several linear layers")
    return None


def _at_the_end(model: nn.Module) -> str:
    """The last layer in order of definition, if it is linear and without a twin."""
    leaves = [(name, part) for name, part in model.named_modules() if not list(part.children())]
    while leaves and isinstance(leaves[-1][1], IDLE):
        leaves.pop()
    if not leaves or not isinstance(leaves[-1][1], nn.Linear):
        raise _unclear(model, "it does not end with a linear layer")
    name, last = leaves[-1]
    parent = model.get_submodule(name.rpartition(".")[0])
    # Two heads side by side, such as a distilled network's, are averaged somewhere.
    twins = [p for p in parent.children() if isinstance(p, nn.Linear) and _shape(p) == _shape(last)]
    if len(twins) > 1 and not isinstance(parent, nn.Sequential):
        raise _unclear(model, "it ends with several linear layers of the same shape")
    return name


def _unclear(model: nn.Module, why: str) -> ValueError:
    return ValueError(
        f"which layer of the {type(model).__name__} predicts is not clear: {why}; pass layer=, and "
        f"a head fitted to what feeds it; {_listed(model)}"
    )


def _listed(model: nn.Module, most: int = 6) -> str:
    """The linear layers, the last ones where there are many."""
    names = _linear(model)
    if not names:
        return "it has no linear layers"
    shown = []
    for name in names[-most:]:
        d, k = _shape(model.get_submodule(name))
        shown.append(f"{name!r} ({d} → {k})")
    which = "its linear layers are" if len(names) <= most else f"the last of its {len(names)} are"
    return f"{which} {', '.join(shown)}"


def _linear(part: nn.Module) -> list[str]:
    return [name for name, inner in part.named_modules() if isinstance(inner, nn.Linear)]


def _shape(layer: Any) -> tuple[int, int]:
    return layer.in_features, layer.out_features
