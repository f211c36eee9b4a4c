"""How far the probabilities of an ONNX graph are from those of the head, in float64.

    python benchmarks/onnx_precision.py --data DIR

Float32 rows of real features, the first domain held out; beside the graphs, the same product in
float32, plain and after the training mean is subtracted. A tenant is the held-out domain, whose
whitener the adaptable graph is given.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import onnxruntime

from real_data import data_root
from skdare import DAREClassifier

SETS = {
    "PACS": "pacs_finetuned/q0.npz",
    "gas sensors, raw": "gas_drift/gas_drift.npz",
    "Office-Caltech": "office_caltech10_surf/office_caltech10_surf.npz",
}
HEADS = {
    "raw": {},
    "centered": {"adaptation": "centered", "shrinkage": 0.5},
    "pooled": {"shrinkage_target": "pooled", "shrinkage": 0.5},
}


def rows_of(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Float32 features, classes and domains."""
    with np.load(path) as file:
        X = file["q"] * file["s"] if "q" in file else file["X"]
        return X.astype(np.float32), file["y"], file["d" if "d" in file else "domain"]


def graph_distance(head, X: np.ndarray, model, inputs: dict[str, np.ndarray]) -> float:
    """Largest difference of a probability."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (found,) = session.run(["probabilities"], {"X": X, **inputs})
    return distance(head, X, found)


def distance(head, X: np.ndarray, P: np.ndarray) -> float:
    return float(np.abs(P - head.predict_proba(X.astype(np.float64))).max())


def single_precision(head, X: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Probabilities by products and a softmax in float32, after a mean is subtracted."""
    mean = mean.astype(np.float32)
    b = head.intercept_ + head.coef_ @ mean.astype(np.float64)
    F = (X - mean) @ head.coef_.T.astype(np.float32) + b.astype(np.float32)
    P = np.exp(F - F.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def main() -> None:
    """Print a row for each set and form."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the real data sets")
    data = data_root(parser.parse_args().data)
    warnings.simplefilter("ignore")
    print("| features | form | float32 | mean off | graph | tenant |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for name, file in SETS.items():
        X, y, domains = rows_of(data / file)
        new = domains == np.unique(domains)[0]
        seen = X[~new].astype(np.float64)
        for form, options in HEADS.items():
            head = DAREClassifier(max_iter=200, **options)
            head.fit(seen, y[~new], domains=domains[~new])
            tenant, rows = head.adapt(X[new].astype(np.float64)), X[new]
            found = [
                distance(head, rows, single_precision(head, rows, 0 * seen[0])),
                distance(head, rows, single_precision(head, rows, seen.mean(axis=0))),
                graph_distance(head, rows, head.to_onnx(), {}),
                graph_distance(tenant, rows, head.to_onnx(adaptable=True), tenant.onnx_inputs()),
            ]
            shown = " | ".join(f"{value:.1e}" for value in found)
            print(f"| {name} | {form} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
