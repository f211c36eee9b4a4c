"""A head in place of a network's last linear layer, and the way back."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import numpy as np
from torch import nn

from skdare._validation import warn
from skdare.export._class_names import Change, change_list, class_order
from skdare.export._last_layer import find_layer
from skdare.export._linear_map import LinearMap
from skdare.export._torch import linear_layer


class Swap:
    """A network whose last linear layer is a head, until `undo`.

    Parameters
    ----------
    model : torch.nn.Module
    names : list of str
        Where the old layer is; more than one where it is shared.
    new : torch.nn.Linear
    changes : list of (object, attribute, value)
        What the network is to say of its outputs meanwhile.

    Attributes
    ----------
    model : torch.nn.Module
    layer : torch.nn.Linear
        The head.

    Examples
    --------
    >>> import torch, skdare
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> head = skdare.ERMClassifier().fit(X, y)
    >>> model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Linear(4, 10))
    >>> with skdare.swap(model, head) as network:
    ...     network(torch.zeros(1, 4)).shape
    torch.Size([1, 3])
    >>> model(torch.zeros(1, 4)).shape
    torch.Size([1, 10])
    """

    def __init__(
        self, model: nn.Module, names: list[str], new: nn.Linear, changes: list[Change]
    ) -> None:
        self.model = model
        self.names = names
        self.layer = new
        self._old = model.get_submodule(names[0])
        self._before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
        self._undone = False
        try:
            self._place(new, changes)
        except BaseException:
            # Such as an attribute that cannot be set: what was set before it is set back.
            self._place(self._old, [c for c in self._before if getattr(c[0], c[1]) is not c[2]])
            raise

    def __repr__(self) -> str:
        state = "undone" if self._undone else f"{self.layer.in_features} features"
        return f"Swap({type(self.model).__name__}, {self.names[0]!r}, {state})"

    def undo(self) -> None:
        """Put the old layer back, and what the network said of its outputs; once is enough."""
        if self._undone:
            return
        if self.model.get_submodule(self.names[0]) is not self.layer:
            raise RuntimeError(
                f"{self.names[0]!r} was replaced again since this swap; undo the later one first"
            )
        self._place(self._old, self._before)
        self._undone = True

    def _place(self, layer: nn.Module, changes: list[Change]) -> None:
        for name in self.names:
            self.model.set_submodule(name, layer)
        for owner, name, value in changes:
            setattr(owner, name, value)

    def __enter__(self) -> Any:
        return self.model

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.undo()


def swapped(model: nn.Module, linear: LinearMap, layer: str | None) -> Swap:
    """The swap of one layer, done after all checks."""
    name, old = find_layer(model, layer)
    if old.in_features != linear.d:
        raise ValueError(
            f"layer {name!r} takes {old.in_features} features, and the head was fitted to "
            f"{linear.d}; fit it to what feeds this layer, or name another with layer="
        )
    if not old.weight.is_floating_point():
        raise ValueError(
            f"layer {name!r} holds {old.weight.dtype}, in which a head cannot be held; swap before "
            "the network is quantised"
        )
    if old.bias is None and np.any(linear.intercept != 0):
        warn(
            f"layer {name!r} has no bias, and the one in its place has the head's intercept: a "
            "network saved now and loaded by its own library would lose it; fit with "
            "fit_intercept=False to save it so"
        )
    one_logit = linear.is_binary and old.out_features == 1
    linear = linear if one_logit else linear.reordered(class_order(model, linear))
    like_old = {"dtype": old.weight.dtype, "device": old.weight.device}
    new = linear_layer(linear, one_logit=one_logit, **like_old).train(old.training)
    # A frozen network stays frozen, and one that is trained goes on.
    new.requires_grad_(old.weight.requires_grad)
    parts = model.named_modules(remove_duplicate=False)
    names = [key for key, part in parts if part is old]
    return Swap(model, names, new, change_list(model, linear, new.out_features))
