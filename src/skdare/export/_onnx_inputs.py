"""What an adaptable ONNX graph holds of a head, and what it is given for each domain.

Notation: W (d, d) whitener, B (d, m) canonical weights, V (d, m) weights on raw features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skdare.adapting.adapter import check_adaptable
from skdare.export._linear_map import LinearMap
from skdare.fitting.domain_fit import Adaptation, domain_fit_of
from skdare.fitting.targets import Numbers
from skdare.heads._adjusted import AdjustedHead


def canonical_weights(head: Any) -> np.ndarray:
    """Canonical weights of a head that adapts, in the units of the targets, (d, m)."""
    if not isinstance(head, AdjustedHead):
        raise ValueError(
            f"a {type(head).__name__} does not adapt; leave adaptable at False, or fit a DARE head"
        )
    if head.preparation_ is not None:
        raise ValueError(
            "a head with preparation has no adaptable graph; prepare the rows beforehand, or use "
            "standardize=True, which is part of the graph"
        )
    B = _adaptation(head).B
    return B * head._targets.spread if isinstance(head._targets, Numbers) else _centred(B)


def _centred(weights: np.ndarray) -> np.ndarray:
    """Weights of three or more classes less their mean, which changes no probability."""
    if weights.shape[-1] < 3:
        return weights
    return weights - weights.mean(axis=-1, keepdims=True)


def _adaptation(head: Any) -> Adaptation:
    check_adaptable(head)
    fit = domain_fit_of(head)
    if fit.declined is not None:
        raise ValueError(
            f"adapting would change nothing. {fit.declined} Either leave adaptable at False, or "
            "fit with strategies=('standardize',)"
        )
    assert fit.adaptation is not None
    return fit.adaptation


def onnx_inputs(head: AdjustedHead) -> dict[str, np.ndarray]:
    """What the adaptable graph is given beside ``X``; see `AdjustedHead.onnx_inputs`."""
    B = canonical_weights(head)
    linear = LinearMap.of(head)
    V = _centred(linear.coef.T)
    fit = domain_fit_of(head)
    standardization = head._standardization
    if fit.adapted_mean is None:
        mean = _adaptation(head).mean
        W = _matrix_from(B, V)
    else:
        mean = fit.adapted_mean
        W = fit.adjustment.dense()
        if standardization is not None:
            W = W / standardization.scale[:, None]
        # Few rows are blended with the head as it was before.
        rest = V - W @ B
        if np.abs(rest).max() > 1e-6 * np.abs(V).max():
            W = W + _matrix_from(B, rest)
    if standardization is not None:
        mean = standardization.mean + standardization.scale * mean
    mean = mean.astype(np.float32)
    b = mean.astype(np.float64) @ V + _centred(linear.intercept)
    return {
        "whitener": np.asarray(W, dtype=np.float32),
        "mean": mean,
        "intercept": b.astype(np.float32),
    }


def _matrix_from(B: np.ndarray, V: np.ndarray) -> np.ndarray:
    """A matrix W with W B = V: that of least norm."""
    # The weights of three or more classes sum to zero, in B and in V alike.
    W = V @ np.linalg.pinv(B, rcond=1e-6)
    if np.abs(W @ B - V).max() > 1e-6 * np.abs(V).max():
        raise ValueError(
            "the weights that adapt uses cannot give this head's own; use to_onnx() without "
            "adaptable until there are rows to adapt to"
        )
    return W
