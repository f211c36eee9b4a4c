"""A fitted head in other people's formats: ONNX, torch, scikit-learn, a table, a network's layer.

What a head is reduced to is one `LinearMap`; each format is made from that alone, in a module of
its own that is imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skdare.export._heads import head_to_frame as head_to_frame
from skdare.export._heads import head_to_onnx as head_to_onnx
from skdare.export._heads import head_to_sklearn as head_to_sklearn
from skdare.export._heads import head_to_torch as head_to_torch
from skdare.export._linear_map import LinearMap as LinearMap
from skdare.export._onnx_inputs import onnx_inputs as onnx_inputs
from skdare.export._packages import needed as needed

if TYPE_CHECKING:
    from skdare.export._swap import Swap

__all__ = ["swap"]


def swap(model: Any, head: Any, *, layer: str | None = None) -> Swap:
    """A head in place of the last linear layer of a torch network, until it is undone.

    The head must have been fitted to what feeds that layer. The new layer has one output for each
    class, whose softmax is ``predict_proba``, or one for a regressor; where the old layer had a
    single output, a head of two classes has one too, whose sigmoid is the second class's
    probability. It takes over device, dtype, mode and ``requires_grad`` of the old layer. A Hugging
    Face configuration names the head's classes meanwhile, in the network's own order where it
    named the same ones before; timm's ``num_classes`` follows, too.

    Parameters
    ----------
    model : torch.nn.Module
        Changed in place. Of torch, Hugging Face transformers, timm, torchvision or one's own.
    head : fitted head
        Or a Pipeline of StandardScaler and head, which becomes one layer.
    layer : str, optional
        Which layer, as ``model.named_modules()`` names it. Default: timm's ``get_classifier()``;
        else the linear layer in ``classifier``, ``score``, ``fc``, ``head`` and their like; else
        the one with which the network ends. Where that is not clear, the error lists the layers.

    Returns
    -------
    Swap
        Call its ``undo()``, or use it in a ``with`` statement, which gives the network and undoes
        the swap at the end, also after an error::

            with skdare.swap(model, head) as network:
                logits = network(**batch).logits
    """
    linear = LinearMap.of(head)
    needed("torch", "swap", "torch")
    from skdare.export._swap import swapped

    return swapped(model, linear, layer)
