"""Small problems of a few domains, and heads by the name of their family."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import skdare

TASKS = ("classification", "binary", "regression")
CLASSIFIERS = [name for name in skdare.__all__ if "Classifier" in name]
REGRESSORS = [name for name in skdare.__all__ if "Regressor" in name]
HEADS = [*CLASSIFIERS, *REGRESSORS]
ADAPTABLE = [name for name in HEADS if name.startswith("DARE")]
# Every head that solves one problem, with the tasks it is for.
FAMILIES = [
    *((task, family) for task in TASKS for family in ("ERM", "DARE")),
    *((task, f) for task in TASKS[:2] for f in ("Reweighted", "GroupDRO", "IRM")),
    ("regression", "Anchor"),
]


@dataclass(frozen=True, eq=False)
class DomainProblem:
    """Rows of several domains, in no order; X is exact in float16, so that every storage holds it.

    Means lie far from zero, covariances and sizes differ, and 'south' lacks the last of 3 classes.
    """

    X: np.ndarray
    y: np.ndarray
    domains: np.ndarray
    task: str

    @property
    def labels(self) -> list[str]:
        return sorted(set(self.domains.tolist()))

    def fit(self, head: Any, X: Any = None, **more: Any) -> Any:
        """The head fitted to these rows, or to others in their place."""
        return head.fit(self.X if X is None else X, self.y, domains=self.domains, **more)

    def rows(self, label: str) -> np.ndarray:
        return np.flatnonzero(self.domains == label)

    def parts(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Features and targets, domain by domain."""
        index = [self.rows(label) for label in self.labels]
        return [self.X[i] for i in index], [self.y[i] for i in index]

    def permuted(self, order: np.ndarray) -> DomainProblem:
        return replace(self, X=self.X[order], y=self.y[order], domains=self.domains[order])

    def without(self, label: str) -> tuple[DomainProblem, np.ndarray, np.ndarray]:
        """The other domains, and the features and targets of this one."""
        own = self.domains == label
        return self.permuted(np.flatnonzero(~own)), self.X[own], self.y[own]


def make_problem(task: str, *, d: int = 5, seed: int = 0) -> DomainProblem:
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=(d, 3))
    X, y, domains = [], [], []
    for label, n in {"north": 40, "south": 25, "west": 61}.items():
        A = np.eye(d) + 0.4 * rng.normal(size=(d, d))
        latent = rng.normal(size=(n, d)) + rng.normal(size=d)
        scores = latent @ beta + 0.5 * rng.gumbel(size=(n, 3))
        targets = {
            "classification": np.minimum(scores.argmax(axis=1), 1 if label == "south" else 2),
            "binary": (scores[:, 0] > scores[:, 1]).astype(int),
            "regression": scores[:, 0],
        }
        X.append(latent @ A + rng.normal(size=d))
        y.append(targets[task])
        domains += [label] * n
    features = np.clip(np.round(np.concatenate(X) * 64) / 64, -15, 15)
    features[np.abs(features) < 0.2] = 0.0
    problem = DomainProblem(features, np.concatenate(y), np.array(domains), task)
    return problem.permuted(rng.permutation(len(domains)))


def problem_for(name: str, **options: Any) -> DomainProblem:
    """Three classes for a classifier, numbers for a regressor, by the name of its class."""
    return make_problem("regression" if "Regressor" in name else "classification", **options)


def head_for(task: str, family: str, **options: Any) -> Any:
    """A head by family: a classifier or a regressor, as the task asks."""
    kind = "Regressor" if task == "regression" else "Classifier"
    return getattr(skdare, family + kind)(**options)


def scores(head: Any, X: Any) -> Any:
    return head.decision_function(X) if hasattr(head, "classes_") else head.predict(X)


def assert_same_head(head: Any, expected: Any, *, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Weights agree, softmax intercepts up to a constant; ``rtol`` is of the largest weight."""
    scale = np.abs(expected.coef_).max()
    np.testing.assert_allclose(head.coef_, expected.coef_, rtol=0, atol=atol + rtol * scale)
    ours, theirs = (np.atleast_1d(one.intercept_) for one in (head, expected))
    if len(ours) > 1:
        ours, theirs = ours - ours.mean(), theirs - theirs.mean()
    scale = max(scale, float(np.abs(theirs).max()))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol + rtol * scale)


def assert_same_bits(head: Any, expected: Any) -> None:
    np.testing.assert_array_equal(head.coef_, expected.coef_)
    np.testing.assert_array_equal(head.intercept_, expected.intercept_)
