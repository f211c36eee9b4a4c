"""Exports of a binary classifier, read by the libraries that they are for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


def _by_weights(path: Path, X: np.ndarray) -> np.ndarray:
    weights = pd.read_csv(path, index_col="feature")
    last = weights.columns[-1]
    return X @ weights[last].drop("intercept").to_numpy() + weights.loc["intercept", last]


def _by_torch(path: Path, X: np.ndarray) -> np.ndarray:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    state = torch.load(path, weights_only=True)
    scores = torch.from_numpy(X).to(state["weight"].dtype) @ state["weight"].T + state["bias"]
    return _of_second(scores.numpy())


def _by_onnx(path: Path, X: np.ndarray) -> np.ndarray:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = runtime.InferenceSession(path.read_bytes())
    inputs = {session.get_inputs()[0].name: X.astype(np.float32)}
    outputs = dict(zip((o.name for o in session.get_outputs()), session.run(None, inputs),
                       strict=True))  # fmt: skip
    P = outputs["probabilities"]
    return np.log(P[:, 1]) - np.log(P[:, 0])


def _of_second(scores: np.ndarray) -> np.ndarray:
    return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]


# By the name of a format: the decision function of the file for these rows.
EXPORTS: dict[str, Callable[[Path, np.ndarray], np.ndarray]] = {
    "csv": _by_weights,
    "torch": _by_torch,
    "onnx": _by_onnx,
}
