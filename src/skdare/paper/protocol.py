"""The paper's protocol: raw features, no ridge, fixed-step L-BFGS, stopped by validation accuracy.

The heads descend on the plain objective, written out: the library's heads choose units and
coordinates that speed up a solve to tolerance, and a descent that is stopped early depends on both.

Notation: B (d, k) weights, b (k,) intercept, W (d, d) adjustment, V = W B, F (n, k) scores,
P (n, k) probabilities, R = P - T their residual, G a gradient.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from skdare.checks import check_count, check_number
from skdare.errors import InputError
from skdare.paper.fold import Fold

# An epoch ends early at a flat gradient, or at a step or a change of value too small to matter.
FLAT = 1e-7
SMALL = 1e-9
LEAST_CURVATURE = 1e-10
# The paper's shrinkage of second moments, and λ.
SHRINKAGE = 0.1
PENALTY = 1.0
# Options of each head. The paper does not give the step of GroupDRO, which is DomainBed's, nor the
# weight of IRM: at DomainBed's 100 this penalty, on a (k, k) layer and not on one scalar, costs
# four points of accuracy on PACS, and the paper too finds that less is better.
HEADS: dict[str, Mapping[str, Any]] = {
    "erm": {},
    "reweighted": {},
    "groupdro": {"step": 1e-2},
    "irm": {"penalty": 1.0},
    "dare": {"mean_penalty": PENALTY, "shrinkage": SHRINKAGE},
    # It does not use the constrained solution.
    "dare-adapted": {"mean_penalty": 0.0, "shrinkage": SHRINKAGE},
    "no-whitening": {"mean_penalty": PENALTY, "whiten": False},
    "no-constraint": {"mean_penalty": 0.0, "shrinkage": SHRINKAGE},
    "estimated-mean": {"mean_penalty": 0.0, "shrinkage": SHRINKAGE, "subtract_mean": True},
}
MAIN_HEADS = ("erm", "reweighted", "groupdro", "irm", "dare", "dare-adapted")
ADAPTED = ("dare-adapted",)


@dataclass(frozen=True)
class Settings:
    """The rule that stops a head, and what ceilings need.

    Parameters
    ----------
    shrinkage : float
        ρ of DARE; the paper has 0.1, and 0.01 for DomainNet.
    step, inner, memory, patience, max_epochs
        L-BFGS with a fixed step, ``inner`` iterations an epoch and ``memory`` stored pairs. It
        stops after ``patience`` epochs without a new best accuracy on the rows set aside.
    ceiling_l2 : float
        Ridge of ceilings and of the alignment: without one, separable classes have no optimum.
    descent_steps, momentum
        The paper's descent on the labels of all domains.
    """

    shrinkage: float = SHRINKAGE
    step: float = 0.2
    inner: int = 20
    memory: int = 100
    patience: int = 20
    max_epochs: int = 500
    ceiling_l2: float = 1e-3
    descent_steps: int = 3000
    momentum: float = 0.9

    def __post_init__(self) -> None:
        check_number("shrinkage", self.shrinkage, 0.0, 1.0)
        for name in ("step", "ceiling_l2"):
            check_number(name, getattr(self, name))
        check_number("momentum", self.momentum, 0.0, 1.0)
        for name in ("inner", "memory", "patience", "max_epochs", "descent_steps"):
            check_count(name, getattr(self, name))


class Function(Protocol):
    """What a solver sees."""

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]: ...


@dataclass(frozen=True, eq=False)
class Linear:
    """Weights V (d, k) and b on raw features, and the classes they tell apart."""

    V: np.ndarray
    b: np.ndarray
    classes: np.ndarray

    def scores(self, X: np.ndarray) -> np.ndarray:
        """F, the scores."""
        return (X @ self.V.astype(X.dtype)).astype(np.float64) + self.b

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Class labels."""
        F = self.scores(X)
        codes = (F[:, 0] > 0).astype(int) if F.shape[1] == 1 else F.argmax(axis=1)
        return self.classes[codes]


@dataclass(frozen=True, eq=False)
class Block:
    """One domain in the objective: rows X seen through W, and its mean as one more row.

    The value is the mean cross-entropy of the rows, plus λ times that of the mean row, without
    the intercept, against the target 1/k. ``shift`` is subtracted from rows, if not None.
    """

    X: np.ndarray
    codes: np.ndarray
    k: int  # columns of scores: one for two classes
    W: np.ndarray | None = None
    shift: np.ndarray | None = None
    mean: np.ndarray | None = None
    penalty: float = 0.0

    def scores(self, B: np.ndarray, b: np.ndarray) -> np.ndarray:
        V = B if self.W is None else self.W @ B
        F = (self.X @ V.astype(self.X.dtype)).astype(np.float64) + b
        return F if self.shift is None else F - self.shift @ V

    def back(self, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradients in B and b from those in the scores."""
        g = R.sum(axis=0)
        G = (self.X.T @ R.astype(self.X.dtype)).astype(np.float64)
        if self.shift is not None:
            G = G - np.outer(self.shift, g)
        return (G if self.W is None else self.W.T @ G), g

    def sums(self, B: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, and gradients in B and b."""
        F = self.scores(B, b)
        values, P = log_loss(F, self.codes)
        R = (P - one_hot(self.codes, self.k)) / len(self.X)
        G, g = self.back(R)
        value = float(values.mean())
        if self.penalty > 0.0 and self.mean is not None:
            m = self.mean if self.W is None else self.W.T @ self.mean
            f = (m @ B)[None, :]
            padded = _padded(f)
            P = _softmax(padded)
            value += self.penalty * float(_log_sum(padded)[0] - padded.mean())
            r = (P - 1.0 / padded.shape[1])[0, padded.shape[1] - self.k :]
            G = G + self.penalty * np.outer(m, r)
        return value, G, g


def _padded(F: np.ndarray) -> np.ndarray:
    """Scores of all classes: with one column, the first class has zero."""
    return np.hstack([np.zeros_like(F), F]) if F.shape[1] == 1 else F


def _log_sum(F: np.ndarray) -> np.ndarray:
    top = F.max(axis=1)
    return top + np.log(np.exp(F - top[:, None]).sum(axis=1))


def _softmax(F: np.ndarray) -> np.ndarray:
    E = np.exp(F - F.max(axis=1, keepdims=True))
    return E / E.sum(axis=1, keepdims=True)


def log_loss(F: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cross-entropy of each row, and probabilities in the columns of F."""
    padded = _padded(F)
    values = _log_sum(padded) - padded[np.arange(len(F)), codes]
    return values, _softmax(padded)[:, padded.shape[1] - F.shape[1] :]


def one_hot(codes: np.ndarray, k: int) -> np.ndarray:
    """Targets in the columns of the scores."""
    return (codes[:, None] == (np.arange(k) if k > 1 else 1)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class WeightedRisk:
    """Sum of the domains' values with weights q."""

    blocks: Sequence[Block]
    q: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.blocks[0].X.shape[1], self.blocks[0].k

    def unpack(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        d, k = self.shape
        return theta[: d * k].reshape(d, k), theta[d * k :]

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        B, b = self.unpack(theta)
        value = 0.0
        gradient = np.zeros_like(theta)
        for weight, block in zip(self.q, self.blocks, strict=True):
            one, G, g = block.sums(B, b)
            value += weight * one
            gradient += weight * np.concatenate([G.ravel(), g])
        return value, gradient


@dataclass(frozen=True, eq=False)
class InvariantRisk(WeightedRisk):
    """Plus ``penalty ‖N_e‖²`` for each domain, N = FᵀR/n its gradient in a last layer (k, k).

    With H the curvature of the loss in the scores, the gradient of ‖N‖² in F is
    ``2 (R Nᵀ + H(F N)) / n``.
    """

    penalty: float

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = super().value_and_gradient(theta)
        B, b = self.unpack(theta)
        for weight, block in zip(self.q, self.blocks, strict=True):
            F = block.scores(B, b)
            n = len(F)
            P = log_loss(F, block.codes)[1]
            R = P - one_hot(block.codes, block.k)
            N = F.T @ R / n
            D = F @ N
            H = P * (D - (P * D).sum(axis=1, keepdims=True))
            G, g = block.back(2.0 * (R @ N.T + H) / n)
            value += weight * self.penalty * float(np.sum(N * N))
            gradient += weight * self.penalty * np.concatenate([G.ravel(), g])
        return value, gradient


class WorstDomain:
    """GroupDRO by exponentiated gradient: domain weights grow with their losses, once an epoch."""

    def __init__(self, blocks: Sequence[Block], step: float) -> None:
        self.blocks = blocks
        self.step = step
        self.q = np.full(len(blocks), 1.0 / len(blocks))

    def __call__(self, theta: np.ndarray) -> Function:
        risk = WeightedRisk(self.blocks, self.q)
        B, b = risk.unpack(theta)
        losses = np.array([log_loss(x.scores(B, b), x.codes)[0].mean() for x in self.blocks])
        self.q = self.q * np.exp(self.step * (losses - losses.max()))
        self.q = self.q / self.q.sum()
        return WeightedRisk(self.blocks, self.q)


@dataclass(frozen=True, eq=False)
class Descent:
    """What one head descends on, and how its parameters become predictions.

    Parameters
    ----------
    function : callable
        The function to descend on in the next epoch, from the parameters before it.
    blocks : sequence of Block
    guess : array of shape (d, d), optional
        Adjustment of an unseen domain.
    shift : array, optional
        What is subtracted from rows of an unseen domain.
    classes : array
    """

    function: Callable[[np.ndarray], Function]
    blocks: Sequence[Block]
    guess: np.ndarray | None
    shift: np.ndarray | None
    classes: np.ndarray

    @classmethod
    def of(cls, fold: Fold, name: str, options: Mapping[str, Any]) -> Descent:
        """The descent of a head."""
        classes, codes = np.unique(fold.train.y, return_inverse=True)
        k = 1 if len(classes) == 2 else len(classes)
        X = np.asarray(fold.train.X)
        rows = [(X[part], codes[part]) for part in fold.parts.values()]
        even = np.full(len(rows), 1.0 / len(rows))
        if "mean_penalty" in options:
            return cls._adjusted(fold, name, options, rows, classes, k)
        blocks = [Block(x, c, k) for x, c in rows]
        function: Callable[[np.ndarray], Function] = _always(WeightedRisk(blocks, even))
        if name == "erm":
            sizes = np.array([len(c) for _, c in rows], dtype=float)
            function = _always(WeightedRisk(blocks, sizes / sizes.sum()))
        elif name == "irm":
            function = _always(InvariantRisk(blocks, even, options["penalty"]))
        elif name == "groupdro":
            function = WorstDomain(blocks, options["step"])
        return cls(function, blocks, None, None, classes)

    @classmethod
    def _adjusted(
        cls,
        fold: Fold,
        name: str,
        options: Mapping[str, Any],
        rows: Sequence[tuple[np.ndarray, np.ndarray]],
        classes: np.ndarray,
        k: int,
    ) -> Descent:
        """DARE and what its ablations leave out."""
        whitens = options.get("whiten", True)
        roots: list[np.ndarray | None] = [None] * len(rows)
        guess = None
        if whitens:
            roots = [fold.whitener(domain, options["shrinkage"]) for domain in fold.domains]
            guess = np.mean([W for W in roots if W is not None], axis=0)
            if name in ADAPTED:
                guess = fold.whitener(fold.held_out, options["shrinkage"])
        means = [fold.mean(domain) for domain in fold.domains]
        shifts: list[np.ndarray | None] = [None] * len(rows)
        if options.get("subtract_mean", False):
            shifts = list(means)
        blocks = [
            Block(x, c, k, W, shift, mean, options["mean_penalty"])
            for (x, c), W, shift, mean in zip(rows, roots, shifts, means, strict=True)
        ]
        shift = np.mean(means, axis=0) if options.get("subtract_mean", False) else None
        even = np.full(len(rows), 1.0 / len(rows))
        return cls(_always(WeightedRisk(blocks, even)), blocks, guess, shift, classes)

    @property
    def start(self) -> np.ndarray:
        d, k = self.blocks[0].X.shape[1], self.blocks[0].k
        return np.zeros(d * k + k)

    def linear(self, theta: np.ndarray, e: int | None = None) -> Linear:
        """Weights on raw features of training domain e; by default, of an unseen domain."""
        B, b = WeightedRisk(self.blocks, np.ones(len(self.blocks))).unpack(theta)
        W = self.guess if e is None else self.blocks[e].W
        shift = self.shift if e is None else self.blocks[e].shift
        V = B if W is None else W @ B
        return Linear(V, b if shift is None else b - shift @ V, self.classes)


def _always(function: Function) -> Callable[[np.ndarray], Function]:
    """The same function to descend on in every epoch."""
    return lambda theta: function


@dataclass(frozen=True, eq=False)
class StoppedHead:
    """A head that was stopped early, its validation accuracy, and its epochs: best and run."""

    model: Linear
    valid: float
    best_epoch: int
    epochs: int


def fit_head(fold: Fold, name: str, options: Mapping[str, Any], settings: Settings) -> StoppedHead:
    """Descend on a head's objective, stopped as in the paper.

    Examples
    --------
    >>> from skdare.data import make_latent_domains
    >>> from skdare.paper.fold import FeatureTable, Fold
    >>> from skdare.paper.protocol import Settings, fit_head
    >>> table = FeatureTable.of(make_latent_domains(4, 60, random_state=0))
    >>> head = fit_head(Fold.of(table, "3", 0), "dare", {}, Settings())
    >>> head.best_epoch <= head.epochs
    True
    """
    usual = {**HEADS[name]}
    if "shrinkage" in usual:
        usual["shrinkage"] = settings.shrinkage
    descent = Descent.of(fold, name, {**usual, **options})
    solver = FixedStepLBFGS(
        descent.start, step=settings.step, inner=settings.inner, memory=settings.memory
    )
    stopped = descend_with_patience(
        solver,
        descent.function,
        _validator(fold, descent),
        patience=settings.patience,
        max_epochs=settings.max_epochs,
    )
    return StoppedHead(
        descent.linear(stopped.theta), stopped.score, stopped.best_epoch, stopped.epochs
    )


def _validator(fold: Fold, descent: Descent) -> Callable[[np.ndarray], float]:
    """Mean over training domains of the accuracy on the rows that they set aside."""
    valid = fold.valid
    rows = [np.flatnonzero(valid.domains == domain) for domain in fold.domains]
    parts = [(e, valid.rows(index)) for e, index in enumerate(rows) if len(index)]
    if not parts:
        raise InputError("no rows are set aside", "the paper's protocol validates on them")

    def validate(theta: np.ndarray) -> float:
        accuracies = [np.mean(descent.linear(theta, e).predict(p.X) == p.y) for e, p in parts]
        return float(np.mean(accuracies))

    return validate


class FixedStepLBFGS:
    """L-BFGS without a line search, in epochs, as `torch.optim.LBFGS` does it by default.

    The paper stops by epochs of such a solver with step 0.2, and does not say what an epoch is.
    Here it is one call of that optimiser's ``step``: up to ``inner`` iterations, which remember
    the pairs of earlier epochs.

    Parameters
    ----------
    theta : array of shape (m,)
        Where to start.
    step : float
        Length along each direction; the very first is cut to 1/‖g‖₁ if that is less than one.
    inner : int
        Iterations an epoch.
    memory : int
        Pairs of steps and gradient changes to remember.
    """

    def __init__(self, theta: np.ndarray, *, step: float, inner: int, memory: int) -> None:
        self.theta = np.array(theta, dtype=np.float64)
        self.step = step
        self.inner = inner
        self.pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=memory)
        self.n_iter = 0
        self._last: tuple[np.ndarray, np.ndarray] | None = None  # gradient and step taken

    def epoch(self, function: Function) -> bool:
        """Run up to ``inner`` iterations; return whether the parameters are still finite."""
        value, gradient = function.value_and_gradient(self.theta)
        if np.max(np.abs(gradient), initial=0.0) <= FLAT:
            return True
        for iteration in range(1, self.inner + 1):
            direction = self._direction(gradient)
            length = self.step
            if self.n_iter == 1:
                length *= min(1.0, 1.0 / float(np.abs(gradient).sum()))
            moved = length * direction
            self._last = gradient, moved
            if gradient @ direction > -SMALL:
                break
            self.theta = self.theta + moved
            if iteration == self.inner:
                break
            before = value
            value, gradient = function.value_and_gradient(self.theta)
            if not np.isfinite(value):
                return False
            if np.max(np.abs(gradient)) <= FLAT or np.max(np.abs(moved)) <= SMALL:
                break
            if abs(value - before) < SMALL:
                break
        return bool(np.all(np.isfinite(self.theta)))

    def _direction(self, gradient: np.ndarray) -> np.ndarray:
        """Minus the gradient, bent by the pairs: the two-loop recursion."""
        self.n_iter += 1
        if self._last is not None:
            before, moved = self._last
            change = gradient - before
            inner = float(change @ moved)
            if inner > LEAST_CURVATURE:
                self.pairs.append((moved, change, inner))
        result = -gradient
        weights: list[float] = []
        for s, y, inner in reversed(self.pairs):
            weights.append(float(s @ result) / inner)
            result = result - weights[-1] * y
        if self.pairs:
            _, y, inner = self.pairs[-1]
            result = result * (inner / float(y @ y))
        for (s, y, inner), weight in zip(self.pairs, reversed(weights), strict=True):
            result = result + s * (weight - float(y @ result) / inner)
        return result


@dataclass(frozen=True, eq=False)
class EarlyStop:
    """The best parameters, their validation score and epoch, and how many epochs were run."""

    theta: np.ndarray
    score: float
    best_epoch: int
    epochs: int


def descend_with_patience(
    solver: FixedStepLBFGS,
    function: Callable[[np.ndarray], Function],
    validate: Callable[[np.ndarray], float],
    *,
    patience: int,
    max_epochs: int,
) -> EarlyStop:
    """Epochs until ``patience`` of them in a row bring no new best validation score.

    ``function`` gives the objective for the next epoch: that of GroupDRO changes as it goes.
    """
    best = solver.theta
    score = validate(solver.theta)
    best_epoch = 0
    epoch = 0
    while epoch < max_epochs and epoch - best_epoch < patience:
        epoch += 1
        if not solver.epoch(function(solver.theta)):
            if best_epoch == 0:
                raise InputError(
                    f"L-BFGS of step {solver.step:g} diverged in epoch {epoch}, before any gain",
                    "standardise the features, or lower the step",
                )
            break
        new_score = validate(solver.theta)
        if new_score > score:
            best = solver.theta
            score = new_score
            best_epoch = epoch
    return EarlyStop(best, score, best_epoch, epoch)
