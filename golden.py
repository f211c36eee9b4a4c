"""Answers of both houses on the same problems, each in its own process, side by side.

    python golden.py [part of a line]

Prints, for each setting, how far the coefficients, adapted, labelled and streamed weights,
choices, held-out scores and forecasts of `next/src` are from those of `src`; and, where they are
apart by more than 1e-6, how far the answer of `src` itself moves when the rows change in their last
digits. It exits with 1 if an answer differs that `src` itself gives to 1e-8.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_digits

ROOT = Path(__file__).resolve().parent
CLOSE = 1e-6
PAPER = {"l2": 1e-3, "shrinkage": 0.1, "shrinkage_target": "identity", "mean_penalty": 1.0}
TIGHT = {"tol": 1e-9, "max_iter": 5000}


# ---- problems: training rows, targets, domains; rows and targets of a new domain ----
def latent(seed: int, rows: int, *, regression: bool):
    """Rows A_e z + b_e of latent variables z that carry the target, in six domains."""
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=(8, 3))
    X, y = [], []
    for _ in range(6):
        Z = rng.normal(size=(rows, 8))
        A = np.eye(8) + 0.3 * rng.normal(size=(8, 8))
        scores = Z @ beta + 0.3 * rng.normal(size=(rows, 3))
        X.append(Z @ A + 0.5 * rng.normal(size=8))
        y.append(scores[:, 0] if regression else scores.argmax(axis=1))
    return np.concatenate(X), np.concatenate(y), np.repeat(np.arange(6), rows)


def problems():
    X, y = load_digits(return_X_y=True)
    X, y = X[:1200] / 16.0, y[:1200]
    domains = np.repeat([f"style {i}" for i in range(6)], 200)
    rng = np.random.default_rng(0)
    for i, name in enumerate(np.unique(domains)):
        rows = domains == name
        X[rows] = (1.0 - 0.1 * i) * X[rows] + 0.05 * i + 0.05 * i * rng.normal(size=X[rows].shape)
    yield "digits", True, X, y, domains
    import pandas as pd

    birds = pd.read_csv(ROOT / "next/src/skdare/data/penguins.csv").dropna()
    measures = birds[[c for c in birds if c.endswith(("_mm", "_g"))]].to_numpy(float)
    measures = (measures - measures.mean(axis=0)) / measures.std(axis=0)
    place = (birds["species"] + " " + birds["island"]).to_numpy()
    yield "penguins", True, measures, birds["sex"].to_numpy(str), place.astype(str)
    X, y = load_diabetes(return_X_y=True)
    ages = np.argsort(np.argsort(X[:, 0])) * 6 // len(X)
    yield "diabetes", False, 20.0 * np.delete(X, 0, axis=1), y / 50.0, ages
    yield "latent", True, *latent(0, 150, regression=False)
    yield "latent small", True, *latent(1, 40, regression=False)
    yield "latent numbers", False, *latent(2, 150, regression=True)


def settings(classes: bool):
    kind = "Classifier" if classes else "Regressor"
    yield f"ERM{kind}", {"l2": 1e-2, **TIGHT}
    if classes:
        yield "ReweightedClassifier", {"l2": 1e-2, **TIGHT}
        yield "GroupDROClassifier", {"l2": 1e-2, "tol": 1e-10}
        yield "IRMClassifier", {"penalty": 3.0, "l2": 1e-2, "tol": 1e-9}
    else:
        yield "AnchorRegressor", {"gamma": 10.0}
    name = f"DARE{kind}"
    yield name, TIGHT
    yield name, {**PAPER, **TIGHT}
    yield name, {"mean_penalty": None, "centered": True, "guess": "mean", **TIGHT}
    yield name, {"guess": "covariance", "shrinkage": 0.3, **TIGHT}
    yield name, {"adaptation": "centered", "centered": True, "shrinkage": 0.3, **TIGHT}
    if classes:
        yield name, {"mean_penalty": "exact", "shrinkage": 0.3, **TIGHT}
        yield name, {"adaptation": "mixture", "shrinkage": 0.5, **TIGHT}
    yield f"DARE{kind}CV", {"l2": (1e-2, 1e-1)}
    # Strategies without scales of features, which the two houses define differently.
    yield f"DARE{kind}CV", {"strategies": ("erm", "averaged", "raw"), "tol": 1e-9, "max_iter": 5000}


# ---- answers of one package ----
def weights(head) -> np.ndarray:
    return np.append(np.ravel(head.coef_), np.ravel(head.intercept_))


def answers_of(head, X, y, classes: bool) -> dict[str, np.ndarray]:
    answers = {"fit": weights(head)}
    if not hasattr(head, "adapt"):
        return answers
    # Prior rows given: the houses estimate them differently (one by fourth powers, in the units of X).
    answers["adapted"] = weights(head.adapt(X, prior_rows=5.0))
    stream = head.adapter(prior_rows=5.0)
    for start in range(0, len(X), 37):
        stream.partial_fit(X[start : start + 37])
    answers["streamed"] = weights(stream.head_)
    some = np.where(np.arange(len(X)) % 4 == 0, y.astype(object), None)
    answers["labelled"] = weights(head.adapt(X, some, force=True, prior_rows=5.0))
    return answers


def cv_answers(head, X, classes: bool) -> dict[str, np.ndarray]:
    results = head.cv_results_
    splits = sum(name.startswith("split") and name.endswith("test_score") for name in results)
    scores = {
        str(sorted(params.items())): np.array(
            [results[f"split{e}_test_score"][i] for e in range(splits)]
        )
        for i, params in enumerate(results["params"])
    }
    chosen = str(sorted(results["params"][int(results["used_by_predict"].argmax())].items()))
    answers = {"scores": scores, "predicts by": chosen, "adapts by": str(head.best_params_)}
    diagnosis = head.diagnose(X)
    forecasts = getattr(diagnosis, "forecasts", None)
    if forecasts is None:
        forecasts = {"use": diagnosis.unadapted, "adapt": diagnosis.adapted}
    for name in ("use", "adapt"):
        if (forecast := forecasts.get(name)) is not None:
            answers[f"forecast {name}"] = np.array([forecast.expected, forecast.low, forecast.high])
    return answers


def answers(path: str, wanted: str, moved: bool) -> None:
    import skdare

    warnings.simplefilter("ignore")
    every = {}
    for set_name, classes, X, y, domains in problems():
        new = domains == np.unique(domains)[-1]
        X = X * (1.0 + 1e-13) if moved else X
        for name, options in settings(classes):
            line = f"{set_name}: {name} {options}"
            if wanted not in line:
                continue
            if name.endswith("CV"):
                options = {**options, "preparation": None}
            head = getattr(skdare, name)(**options)
            try:
                head.fit(X[~new], y[~new], domains=domains[~new])
                if name.endswith("CV"):
                    head.rehearse(X[~new], y[~new], domains=domains[~new])
                every[line] = answers_of(head, X[new], y[new], classes)
                if name.endswith("CV"):
                    every[line] |= cv_answers(head, X[new], classes)
            except Exception as error:  # an answer as well
                every[line] = {"error": f"{type(error).__name__}: {error}"}
    Path(path).write_bytes(pickle.dumps(every))


def run(source: Path, wanted: str, moved: bool = False) -> dict[str, dict[str, object]]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answers"
        one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        subprocess.run(
            [sys.executable, __file__, "--answers", str(out), wanted, str(int(moved))],
            env=os.environ | one_thread | {"PYTHONPATH": str(source)},
            check=True,
        )
        return pickle.loads(out.read_bytes())


# ---- side by side ----
def apart(a, b) -> float:
    if isinstance(a, str) or isinstance(b, str):
        return 0.0 if a == b else np.inf
    if isinstance(a, dict):
        common = a.keys() & b.keys()
        return max((apart(a[key], b[key]) for key in common), default=0.0)
    if np.shape(a) != np.shape(b):
        return np.inf
    a, b = np.nan_to_num(a), np.nan_to_num(b)
    return float(np.max(np.abs(a - b)) / max(np.max(np.abs(a)), 1e-300))


def main() -> int:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    old, new = run(ROOT / "src", wanted), run(ROOT / "next/src", wanted)
    itself = run(ROOT / "src", wanted, moved=True)
    off = 0
    for line, answer in old.items():
        told = []
        for what in sorted(answer.keys() | new[line].keys()):
            if what not in answer or what not in new[line]:
                told.append(f"{what}: only in {'src' if what in answer else 'next'}")
                off += 1
                continue
            value = apart(answer[what], new[line][what])
            if value > CLOSE:
                own = apart(answer[what], itself[line].get(what, answer[what]))
                off += own < 1e-8
                mark = "DIFFERS" if own < 1e-8 else f"(src itself moves by {own:.0e})"
                told.append(f"{what} {value:.0e} {mark}")
                if isinstance(answer[what], str):
                    told.append(f"[{answer[what]} | {new[line][what]}]")
        if "error" in answer:
            told.append(str(answer["error"]))
        print(f"{'ok ' if not told else '-- '}{line}")
        for text in told:
            print(f"       {text}")
    print(f"{len(old)} settings, {off} answers differ")
    return int(off > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answers"]:
        answers(sys.argv[2], sys.argv[3], sys.argv[4] == "1")
    else:
        sys.exit(main())
