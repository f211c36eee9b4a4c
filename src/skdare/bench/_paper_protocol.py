"""The paper's protocol: raw features, no ridge, fixed-step L-BFGS, stopped by validation accuracy.

The heads are written out here on the plain objective: the estimators choose units and parameters
that speed up a solve to tolerance, and a descent that is stopped early depends on both.

Notation: B (d, k) weights, b (k,) intercept, W (d, d) adjustment, V = W B.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdare.bench._fold import Fold
from skdare.bench._heads import HEADS
from skdare.bench._scores import Fit
from skdare.bench._settings import Settings
from skdare.objective.invariant_risk import InvariantRisk
from skdare.objective.losses import LOGISTIC, SOFTMAX, Loss
from skdare.objective.objective import Block, Objective, Rows
from skdare.objective.scores import linear_scores
from skdare.solvers import Function
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.whitening import Whitening

# What ends an epoch early: a flat gradient, a step or a change of value too small to matter.
FLAT, SMALL = 1e-7, 1e-9
LEAST_CURVATURE = 1e-10


@dataclass(frozen=True, eq=False)
class Linear:
    """Weights on raw features, and the classes they tell apart, if any."""

    V: np.ndarray
    b: np.ndarray
    classes: np.ndarray | None

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Class labels, or numbers."""
        F = linear_scores(X, slice(0, len(X)), self.V, self.b)
        if self.classes is None:
            return F[:, 0]
        return self.classes[(F[:, 0] > 0).astype(int) if F.shape[1] == 1 else F.argmax(axis=1)]


@dataclass(frozen=True, eq=False)
class _Descent:
    """What one head descends on, and how its parameters become predictions.

    Parameters
    ----------
    objective : Objective
        Unpacks the parameters.
    function : callable
        The function to descend on in the next epoch, from the parameters before it.
    adjustments, guess : Adjustment
        Of each training domain, and of an unseen one.
    means, mean : arrays
        What is subtracted from rows of each training domain, and of an unseen one.
    """

    objective: Objective
    function: Callable[[np.ndarray], Function]
    adjustments: Sequence[Adjustment]
    guess: Adjustment
    means: Sequence[np.ndarray | None]
    mean: np.ndarray | None = None

    def weights(self, theta: np.ndarray, e: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercept on raw features for training domain e, or an unseen one."""
        W, mean = (self.guess, self.mean) if e is None else (self.adjustments[e], self.means[e])
        B, b = self.objective.unpack(theta)
        V = np.asarray(W.apply(W.like(B)), dtype=np.float64)
        return V, b if mean is None else b - mean @ V


@dataclass(frozen=True, eq=False)
class _Training:
    """Training rows of a fold, and the heads' objectives made of them."""

    fold: Fold
    classes: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, fold: Fold) -> _Training:
        return cls(fold, *np.unique(fold.train.y, return_inverse=True))

    @property
    def loss(self) -> Loss:
        return LOGISTIC if len(self.classes) == 2 else SOFTMAX

    @property
    def k(self) -> int:
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def d(self) -> int:
        return self.fold.train.X.shape[1]

    def _rows(self, domain: str, shift: np.ndarray | None) -> Rows:
        """The rows of a domain, weighing one together."""
        index = np.flatnonzero(self.fold.train.domains == domain)
        place = slice(int(index[0]), int(index[-1]) + 1)  # domain after domain
        weight = np.full(len(index), 1.0 / len(index))
        return Rows(self.fold.train.X, place, self.codes[place], weight, shift)

    def _mean_row(self, mean: np.ndarray, penalty: float) -> Rows:
        """A domain mean, to be predicted as uninformative."""
        X = mean[None, :].astype(self.fold.train.X.dtype)
        T = np.full((1, self.k), self.loss.uninformative(self.k))
        return Rows(X, slice(0, 1), T, np.array([penalty]), intercept=False)

    def _objective(self, blocks: Sequence[Block], weights: Sequence[float]) -> Objective:
        return Objective(blocks, self.loss, self.d, self.k, block_weights=weights)

    def plain(self, name: str, options: Mapping[str, Any]) -> _Descent:
        """ERM, reweighted ERM, GroupDRO and IRM: features as they are."""
        seen, raw = self.fold.training_domains, Adjustment(self.d, 1.0)
        n = len(seen)
        even = self._objective([Block(raw, (self._rows(d, None),)) for d in seen], [1.0 / n] * n)
        function = _always(even)
        if name == "erm":
            sizes = np.array([np.sum(self.fold.train.domains == domain) for domain in seen])
            function = _always(even.weighted(sizes / sizes.sum()))
        elif name == "irm":
            function = _always(InvariantRisk(even, options["penalty"]))
        elif name == "groupdro":
            function = _WorstDomain(even, options["step"])
        return _Descent(even, function, [raw] * n, raw, [None] * n)

    def adjusted(self, options: Mapping[str, Any], *, adapt: bool) -> _Descent:
        """DARE and what its ablations leave out."""
        known = [self.fold.statistics(domain) for domain in self.fold.training_domains]
        n, whiten = len(known), options.get("adjust", True)
        whitening = Whitening(True, False, options.get("shrinkage", 0.0), "identity")
        raw = Adjustment(self.d, 1.0)
        adjustments = [own.adjustment(whitening) if whiten else raw for own in known]
        guess = average(adjustments)
        if adapt:
            guess = self.fold.statistics(self.fold.held_out).adjustment(whitening)
        means = [own.mean_and_variances[0] for own in known]
        penalty, centre = options["mean_penalty"], options.get("estimate_mean", False)
        blocks = [
            self._block(domain, W, mean, penalty, centre)
            for domain, W, mean in zip(self.fold.training_domains, adjustments, means, strict=True)
        ]
        objective = self._objective(blocks, [1.0 / n] * n)
        subtracted = means if centre else [None] * n
        overall = np.mean(means, axis=0) if centre else None
        return _Descent(objective, _always(objective), adjustments, guess, subtracted, overall)

    def _block(
        self, domain: str, W: Adjustment, mean: np.ndarray, penalty: float, centre: bool
    ) -> Block:
        """The rows of a domain, centred or not, and its mean where that is penalised."""
        rows = [self._rows(domain, mean if centre else None)]
        if penalty > 0:
            rows.append(self._mean_row(mean, penalty))
        return Block(W, tuple(rows))

    def validator(self, descent: _Descent, validate_with: str) -> Callable[[np.ndarray], float]:
        """Mean over training domains of accuracy on the rows they set aside."""
        valid, parts = self.fold.valid, []
        for e, domain in enumerate(self.fold.training_domains):
            rows = valid.domains == domain
            if rows.any():
                parts.append((e if validate_with == "own" else None, valid.X[rows], valid.y[rows]))
        if not parts:
            raise ValueError("the paper's protocol validates on rows set aside, and there are none")

        def validate(theta: np.ndarray) -> float:
            right = [
                Linear(*descent.weights(theta, e), self.classes).predict(X) == y
                for e, X, y in parts
            ]
            return float(np.mean([flags.mean() for flags in right]))

        return validate


def _always(function: Any) -> Callable[[np.ndarray], Any]:
    """The same function to descend on in every epoch."""
    return lambda theta: function


class _WorstDomain:
    """GroupDRO by exponentiated gradient: domain weights move once an epoch, by their losses."""

    def __init__(self, objective: Objective, step: float) -> None:
        self.objective, self.step = objective, step
        self.q = np.full(len(objective.blocks), 1.0 / len(objective.blocks))

    def __call__(self, theta: np.ndarray) -> Objective:
        losses = self.objective.block_losses(theta)
        self.q = self.q * np.exp(self.step * (losses - losses.max()))
        self.q = self.q / self.q.sum()
        return self.objective.weighted(self.q)


def fit_paper(fold: Fold, name: str, options: Mapping[str, Any], settings: Settings) -> Fit:
    """A head stopped early."""
    chosen = {**(HEADS[name].paper_options or {}), **options}
    training = _Training.of(fold)
    if "mean_penalty" in chosen:
        descent = training.adjusted(chosen, adapt=name == "adapted")
    else:
        descent = training.plain(name, chosen)
    stopped = descend_with_patience(
        FixedStepLBFGS(
            np.zeros(descent.objective.size),
            step=settings.step,
            inner=settings.inner,
            memory=settings.memory,
        ),
        descent.function,
        training.validator(descent, settings.validate_with),
        patience=settings.patience,
        max_epochs=settings.max_epochs,
    )
    notes = {f"option:{key}": value for key, value in sorted(chosen.items())}
    notes |= {"epochs": stopped.epochs, "best_epoch": stopped.best_epoch, "valid": stopped.score}
    return Fit(Linear(*descent.weights(stopped.theta, None), training.classes), notes)


class FixedStepLBFGS:
    """L-BFGS without a line search, in epochs, as `torch.optim.LBFGS` does it by default.

    The paper stops by epochs of such a solver with step 0.2; what an epoch is, it does not say.
    Here it is one call of that optimiser's ``step``: up to ``inner`` iterations, with the pairs
    of earlier epochs kept.

    Parameters
    ----------
    theta : array of shape (m,)
        Where to start.
    step : float
        Length along each direction; the very first is cut to 1/‖g‖₁ where that is less than one.
    inner : int
        Iterations an epoch.
    memory : int
        Pairs kept.
    """

    def __init__(self, theta: np.ndarray, *, step: float, inner: int, memory: int) -> None:
        self.theta = np.array(theta, dtype=np.float64)
        self.step, self.inner = step, inner
        self.pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=memory)
        self.n_iter = 0
        self._last: tuple[np.ndarray, np.ndarray] | None = None  # gradient and step taken

    def epoch(self, function: Function) -> bool:
        """Up to ``inner`` iterations; whether the parameters are still finite."""
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
            change, moved = gradient - self._last[0], self._last[1]
            inner = float(change @ moved)
            if inner > LEAST_CURVATURE:
                self.pairs.append((moved, change, inner))
        result, weights = -gradient, []
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
class Stopped:
    """Where patience ended: the best parameters, their validation score, and the epochs."""

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
) -> Stopped:
    """Epochs until so many in a row bring no new best validation score.

    ``function`` gives the objective for the next epoch: that of GroupDRO changes as it goes.
    """
    best, score, best_epoch = solver.theta, validate(solver.theta), 0
    epoch = 0
    while epoch < max_epochs and epoch - best_epoch < patience:
        epoch += 1
        if not solver.epoch(function(solver.theta)):
            if best_epoch == 0:
                raise FloatingPointError(
                    f"L-BFGS of step {solver.step:g} diverged in epoch {epoch}, before any gain; "
                    "standardise the features, or lower the step"
                )
            break
        new = validate(solver.theta)
        if new > score:
            best, score, best_epoch = solver.theta, new, epoch
    return Stopped(best, score, best_epoch, epoch)
