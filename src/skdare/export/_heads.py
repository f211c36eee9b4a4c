"""Fitted heads in other formats: what the methods ``to_...`` of a head do."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import skdare
from skdare.export._linear_map import LinearMap
from skdare.export._onnx_inputs import canonical_weights
from skdare.export._packages import needed
from skdare.export._prepared_map import PreparedMap
from skdare.persist import whole_file


def head_to_onnx(
    head: Any, path: str | PathLike[str] | None = None, *, adaptable: bool = False
) -> Any:
    """An ONNX graph that predicts as a head does; see `Head.to_onnx`."""
    prepared = PreparedMap.of(head)
    canonical = canonical_weights(head) if adaptable else None
    needed("onnx", "to_onnx", "onnx")
    from skdare.export._onnx import adaptable_graph, plain_graph

    if canonical is None:
        model = plain_graph(prepared, skdare.__version__)
    else:
        model = adaptable_graph(prepared.linear, canonical, skdare.__version__)
    if path is not None:
        with whole_file(Path(path)) as file:
            file.write(model.SerializeToString())
    return model


def head_to_torch(
    head: Any, *, one_logit: bool = False, dtype: Any = None, device: Any = None
) -> Any:
    """A linear layer of torch; see `Head.to_torch`."""
    linear = LinearMap.of(head)
    needed("torch", "to_torch", "torch")
    from skdare.export._torch import linear_layer

    return linear_layer(linear, one_logit=one_logit, dtype=dtype, device=device)


def head_to_sklearn(head: Any) -> Any:
    """A fitted estimator of scikit-learn's own; see `Head.to_sklearn`."""
    from skdare.export._sklearn import linear_model

    return linear_model(LinearMap.of(head))


def head_to_frame(head: Any) -> Any:
    """A pandas data frame of the coefficients; see `Head.to_frame`."""
    linear = LinearMap.of(head)
    needed("pandas", "to_frame", "pandas")
    from skdare.export._frame import coefficient_frame

    return coefficient_frame(linear)
