"""What a network says its outputs are, and what it says while a head is in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skdare.export._linear_map import LinearMap

Change = tuple[Any, str, Any]


def class_order(model: Any, linear: LinearMap) -> list[int]:
    """The head's classes in the order of the network, where it names the same ones."""
    classes = [] if linear.classes is None else linear.classes.tolist()
    names = _names(model)
    places = {str(name): place for place, name in names.items()}
    if len(places) == len(classes) and {str(c) for c in classes} == set(places):
        return sorted(range(len(classes)), key=lambda c: places[str(classes[c])])
    return list(range(len(classes)))


def change_list(model: Any, linear: LinearMap, outputs: int) -> list[Change]:
    """Attributes to set, for Hugging Face and timm."""
    changes: list[Change] = []
    if isinstance(getattr(model, "num_classes", None), int):
        changes.append((model, "num_classes", outputs))
    if isinstance(getattr(model, "num_labels", None), int):
        changes.append((model, "num_labels", outputs))
    config = getattr(model, "config", None)
    if hasattr(config, "id2label"):
        names = _output_names(model, linear, outputs)
        changes.append((config, "id2label", dict(enumerate(names))))
        changes.append((config, "label2id", {name: place for place, name in enumerate(names)}))
    if hasattr(config, "problem_type"):
        changes.append((config, "problem_type", _problem_type(linear, outputs)))
    return changes


def _output_names(model: Any, linear: LinearMap, outputs: int) -> Sequence[str]:
    names = _names(model)
    if linear.classes is None:
        return [names[0] if len(names) == 1 else "LABEL_0"]
    shown = linear.classes.tolist()[-outputs:]
    # A head that was fitted to label numbers of this network keeps their names.
    if linear.classes.dtype.kind in "iu" and set(linear.classes.tolist()) <= set(names):
        return [names[number] for number in shown]
    return [str(label) for label in shown]


def _names(model: Any) -> dict[int, str]:
    return dict(getattr(getattr(model, "config", None), "id2label", None) or {})


def _problem_type(linear: LinearMap, outputs: int) -> str:
    if linear.classes is None:
        return "regression"
    # Hugging Face's word for a sigmoid of each output.
    return "multi_label_classification" if outputs == 1 else "single_label_classification"
