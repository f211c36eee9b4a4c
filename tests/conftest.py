"""Small multi-domain problems, array libraries, and real data where it is found."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skdare
from skdare.arrays import compact, rows
from skdare.objective import few_rows
from skdare.objective.coordinates import Coordinates
from skdare.objective.losses import LOGISTIC, SOFTMAX, SQUARED, Loss
from skdare.objective.objective import Objective
from skdare.objective.rows import DomainBlock, WeightedRows
from skdare.whitening.adjustment import Adjustment

TASKS = ("classification", "binary", "regression")
LOSSES: dict[str, tuple[Loss, int]] = {
    "classification": (SOFTMAX, 3),
    "binary": (LOGISTIC, 1),
    "regression": (SQUARED, 1),
}


@dataclass(frozen=True, eq=False)
class DomainProblem:
    """Rows of several domains, interleaved; X is exact in float16, so every storage holds it."""

    X: np.ndarray
    y: np.ndarray
    domains: np.ndarray
    task: str

    @property
    def labels(self) -> list[str]:
        return sorted(set(self.domains.tolist()))

    def fit(self, head: Any, X: Any = None, **more: Any) -> Any:
        """The head fitted to these rows, or to the same rows held by another library."""
        return head.fit(self.X if X is None else X, self.y, domains=self.domains, **more)

    def rows(self, label: str) -> np.ndarray:
        return np.flatnonzero(self.domains == label)

    def parts(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Features and targets, domain by domain."""
        index = [self.rows(label) for label in self.labels]
        return [self.X[i] for i in index], [self.y[i] for i in index]

    def contiguous(self) -> DomainProblem:
        """The same rows, domain after domain."""
        return self.permuted(np.argsort(self.domains, kind="stable"))

    def permuted(self, order: np.ndarray) -> DomainProblem:
        return replace(self, X=self.X[order], y=self.y[order], domains=self.domains[order])


def make_problem(task: str, *, d: int = 5, seed: int = 0) -> DomainProblem:
    """Unequal sizes, means far from zero, own covariances; 'south' lacks the last of 3 classes."""
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


@pytest.fixture(params=TASKS)
def problem(request) -> DomainProblem:
    return make_problem(request.param)


@pytest.fixture(params=["classification", "binary"])
def classification_problem(request) -> DomainProblem:
    return make_problem(request.param)


@pytest.fixture
def three_classes() -> DomainProblem:
    return make_problem("classification")


@pytest.fixture
def binary() -> DomainProblem:
    return make_problem("binary")


@pytest.fixture
def regression() -> DomainProblem:
    return make_problem("regression")


@pytest.fixture(scope="session")
def make() -> Callable[..., DomainProblem]:
    """The maker of problems, for a test that is parametrised by task itself."""
    return make_problem


@pytest.fixture(scope="session")
def head_for() -> Callable[..., Any]:
    """A head by family name, a classifier or a regressor as the task asks."""

    def head(task: str, family: str, **options: Any) -> Any:
        kind = "Regressor" if task == "regression" else "Classifier"
        if family == "constrained DARE":
            return getattr(skdare, "DARE" + kind)(**{"mean_penalty": 1.0, **options})
        return getattr(skdare, family + kind)(**options)

    return head


@dataclass(frozen=True)
class ArrayLibrary:
    """A way to hold arrays: its ``asarray(values, dtype name)`` and the way back."""

    name: str
    asarray: Callable[..., Any]
    to_numpy: Callable[[Any], np.ndarray]


def array_library_named(name: str) -> ArrayLibrary:
    """NumPy, torch, or the strict array API on its first or second device."""
    if name == "numpy":
        return ArrayLibrary(name, lambda v, dtype="float64": np.array(v, dtype=dtype), np.asarray)
    if name == "torch":
        torch = pytest.importorskip("torch", reason="torch is not installed")
        return ArrayLibrary(
            name,
            lambda v, dtype="float64": torch.tensor(np.asarray(v), dtype=getattr(torch, dtype)),
            lambda v: v.numpy(),
        )
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    host = xp.Device("CPU_DEVICE")
    device = xp.Device("device1") if name == "strict-second-device" else host
    return ArrayLibrary(
        name,
        lambda v, dtype="float64": xp.asarray(
            np.array(v), dtype=getattr(xp, dtype), device=device, copy=True
        ),
        lambda v: np.asarray(v.to_device(host)),
    )


ARRAY_LIBRARIES = ("numpy", "torch", "strict", "strict-second-device")


@pytest.fixture(params=ARRAY_LIBRARIES)
def array_library(request) -> ArrayLibrary:
    return array_library_named(request.param)


@pytest.fixture
def visit_in_chunks_of(monkeypatch) -> Callable[[int], None]:
    """Make every pass over rows visit this many at a time."""

    def patch(n_rows: int) -> None:
        for module in (rows, few_rows):
            monkeypatch.setattr(module, "chunk_rows", lambda X, columns=None: n_rows)

    return patch


@pytest.fixture
def real_data() -> Callable[[str], Path]:
    """The path of a real data set, or a skip that says where it was looked for."""

    def find(name: str) -> Path:
        named = os.environ.get("SKDARE_DATA")
        beside = Path(__file__).resolve().parents[2] / "shared" / "data"
        path = (Path(named) if named else beside) / name
        if not path.exists():
            pytest.skip(f"no real data at {path}; set SKDARE_DATA to the folder that has it")
        return path

    return find


def build_objective(
    problem: DomainProblem,
    *,
    library: ArrayLibrary | None = None,
    dtype: str = "float64",
    penalty: float = 0.7,
    l2: float = 0.1,
    shifted: bool = False,
    soft: bool = False,
    adjusted: bool = True,
    block_weights: Any = None,
    **coordinates: Any,
) -> Objective:
    """A domain-adjusted objective with one block a domain, in any array library."""
    loss, k = LOSSES[problem.task]
    library = library or array_library_named("numpy")
    share = 1.0 / len(problem.labels)
    X, blocks = library.asarray(problem.X, dtype), []
    for e, label in enumerate(problem.labels):
        index = problem.rows(label)
        mean = problem.X[index].mean(axis=0)
        A = np.random.default_rng(e).normal(size=(len(mean), len(mean)))
        W = Adjustment(len(mean), 0.3, library.asarray(0.1 * (A + A.T), dtype))
        weight = library.asarray(np.full(len(index), share / len(index)))
        T = problem.y[index]
        if soft and k > 1:
            T = np.eye(k)[T]
        T = library.asarray(T, "int64" if T.dtype.kind == "i" else "float64")
        shift = np.linspace(-1, 1, len(mean)) * (e + 1) if shifted else None
        rows = [WeightedRows(X, compact(index), T, weight, shift)]
        if penalty:
            target = library.asarray(np.full((1, k), loss.uninformative(k)))
            mean, price = library.asarray(mean[None], dtype), library.asarray([penalty * share])
            rows.append(WeightedRows(mean, slice(0, 1), target, price, intercept=False))
        blocks.append(
            DomainBlock(W if adjusted else Adjustment(problem.X.shape[1], 1.0), tuple(rows))
        )
    parameters = Coordinates(problem.X.shape[1], k, **coordinates)
    return Objective(blocks, loss, parameters, l2, block_weights)


@pytest.fixture(scope="session")
def objective_of() -> Callable[..., Objective]:
    """The builder of objectives from problems."""
    return build_objective
