"""The paper's protocol: raw features, no ridge, fixed-step L-BFGS, stopped by validation accuracy.

The heads descend on the plain objective: the estimators choose units and parameters that speed up a
solve to tolerance, and a descent that is stopped early depends on both.

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
from skdare.fitting.canonical_fit import CanonicalWeights, raw_weights
from skdare.fitting.problem import Problem
from skdare.fitting.targets import Classes
from skdare.heads._dare import AS_IN_PAPER
from skdare.objective.coordinates import Coordinates
from skdare.objective.invariant_risk import FreeLayerRisk, InvariantRisk
from skdare.objective.objective import Objective
from skdare.objective.rows import DomainBlock
from skdare.objective.scores import class_numbers, linear_scores, probabilities
from skdare.solvers import Function
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.whitening import Whitening

# An epoch ends early at a flat gradient, or at a step or a change of value too small to matter.
FLAT = 1e-7
SMALL = 1e-9
LEAST_CURVATURE = 1e-10


@dataclass(frozen=True, eq=False)
class Linear:
    """Weights on raw features, and the classes they tell apart, if any."""

    V: np.ndarray
    b: np.ndarray
    classes_: np.ndarray | None

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Class labels, or numbers."""
        F = self._scores(X)
        if self.classes_ is None:
            return F[:, 0]
        return self.classes_[class_numbers(F)]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probability of every class, for each row."""
        return probabilities(self._scores(X))

    def _scores(self, X: np.ndarray) -> np.ndarray:
        return linear_scores(X, slice(0, len(X)), self.V, self.b)


@dataclass(frozen=True, eq=False)
class Descent:
    """What one head descends on, and how its parameters become predictions.

    Parameters
    ----------
    start : array
        Parameters to descend from.
    weights : callable
        The weights and the intercept that parameters stand for.
    function : callable
        The function to descend on in the next epoch, from the parameters before it.
    adjustments, guess : Adjustment
        Of each training domain, and of an unseen one.
    means, mean : arrays
        What is subtracted from rows of each training domain, and of an unseen one.
    classes : array
    """

    start: np.ndarray
    weights: Callable[[np.ndarray], CanonicalWeights]
    function: Callable[[np.ndarray], Function]
    adjustments: Sequence[Adjustment]
    guess: Adjustment
    means: Sequence[np.ndarray | None]
    mean: np.ndarray | None
    classes: np.ndarray

    @classmethod
    def of(cls, fold: Fold, name: str, options: Mapping[str, Any]) -> Descent:
        """The descent of a head of the paper."""
        classes, codes = np.unique(fold.train.y, return_inverse=True)
        problem = _problem(fold, codes, classes)
        if "mean_penalty" not in options:
            return cls._unadjusted(problem, classes, name, options)
        return cls._adjusted(problem, classes, fold, options, adapt=HEADS[name].adapts)

    @classmethod
    def _unadjusted(
        cls, problem: Problem, classes: np.ndarray, name: str, options: Mapping[str, Any]
    ) -> Descent:
        """ERM, reweighted ERM, GroupDRO and IRM: features as they are."""
        n = len(problem.index)
        identity = Adjustment(problem.d, 1.0)
        even = _objective(
            problem, [DomainBlock(identity, (problem.domain_rows(e, 1.0),)) for e in range(n)]
        )
        start = np.zeros(even.size)
        weights = even.coordinates.unpack
        function = _always(even)
        if name == "erm":
            sizes = np.array([problem.domain_weight(e).sum() for e in range(n)])
            function = _always(even.weighted(sizes / sizes.sum()))
        elif name == "irm":
            risk = InvariantRisk(even, options["penalty"])
            function = _always(risk)
            if options["free_layer"]:
                layered = FreeLayerRisk(risk)
                start = layered.start
                weights = layered.weights
                function = _always(layered)
        elif name == "groupdro":
            function = _WorstDomain(even, options["step"], every_step=options["every_step"])
        return cls(start, weights, function, [identity] * n, identity, [None] * n, None, classes)

    @classmethod
    def _adjusted(
        cls,
        problem: Problem,
        classes: np.ndarray,
        fold: Fold,
        options: Mapping[str, Any],
        *,
        adapt: bool,
    ) -> Descent:
        """DARE and what its ablations leave out."""
        caches = [fold.cache(domain) for domain in fold.training_domains]
        whitening = Whitening(
            adjust=True,
            centered=AS_IN_PAPER["centered"],
            shrinkage=options.get("shrinkage", 0.0),
            target=AS_IN_PAPER["shrinkage_target"],
        )
        adjustments = [Adjustment(problem.d, 1.0) for _ in caches]
        if options.get("adjust", True):
            adjustments = [cache.adjustment(whitening) for cache in caches]
        guess = average(adjustments)
        if adapt:
            guess = fold.cache(fold.held_out).adjustment(whitening)
        means = [cache.mean_and_variances[0] for cache in caches]
        centered = options.get("estimate_mean", False)
        penalty = options["mean_penalty"]
        blocks = []
        for e, (W, mean) in enumerate(zip(adjustments, means, strict=True)):
            rows = [problem.domain_rows(e, 1.0, mean if centered else None)]
            if penalty > 0:
                target = problem.loss.uninformative(problem.k)
                rows.append(problem.mean_row(mean, target, penalty))
            blocks.append(DomainBlock(W, tuple(rows)))
        objective = _objective(problem, blocks)
        return cls(
            np.zeros(objective.size),
            objective.coordinates.unpack,
            _always(objective),
            adjustments,
            guess,
            means if centered else [None] * len(means),
            np.mean(means, axis=0) if centered else None,
            classes,
        )

    def linear(self, theta: np.ndarray, e: int | None = None) -> Linear:
        """Weights on raw features of training domain e; by default, of an unseen domain."""
        W = self.guess if e is None else self.adjustments[e]
        mean = self.mean if e is None else self.means[e]
        V, b = raw_weights(self.weights(theta), W, mean)
        return Linear(V, b, self.classes)


def _problem(fold: Fold, codes: np.ndarray, classes: np.ndarray) -> Problem:
    """The training rows of a fold, which lie domain after domain, and their class numbers."""
    index = []
    for domain in fold.training_domains:
        rows = np.flatnonzero(fold.train.domains == domain)
        index.append(slice(int(rows[0]), int(rows[-1]) + 1))
    weight = np.ones(len(codes))
    return Problem(fold.train.X, codes, weight, fold.training_domains, index, Classes(classes))


def _objective(problem: Problem, blocks: Sequence[DomainBlock]) -> Objective:
    """Domains of equal weight, in the plain parameters.

    `empirical_lagrangian` is the same function in coordinates that speed up a solve, and visits
    domains of fewer rows than features together, which rounds otherwise. A descent that stops early
    depends on both: even without those coordinates, 7 of 96 records changed on domains of 80 rows
    and 200 features, one of them from the third epoch to the first.
    """
    weights = [1.0 / len(blocks)] * len(blocks)
    coordinates = Coordinates(problem.d, problem.k)
    return Objective(blocks, problem.loss, coordinates, block_weights=weights)


def _always(function: Any) -> Callable[[np.ndarray], Any]:
    """The same function to descend on in every epoch."""
    return lambda theta: function


class _WorstDomain:
    """GroupDRO by exponentiated gradient: domain weights grow with their losses.

    They move once an epoch, or at every step within it, for which this is the function itself.
    """

    def __init__(self, objective: Objective, step: float, *, every_step: bool) -> None:
        self.objective = objective
        self.step = step
        self.every_step = every_step
        self.q = np.full(len(objective.blocks), 1.0 / len(objective.blocks))

    def __call__(self, theta: np.ndarray) -> Any:
        return self if self.every_step else self._reweighted(theta)

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        return self._reweighted(theta).value_and_gradient(theta)

    def _reweighted(self, theta: np.ndarray) -> Objective:
        losses = self.objective.block_losses(theta)
        self.q = self.q * np.exp(self.step * (losses - losses.max()))
        self.q = self.q / self.q.sum()
        return self.objective.weighted(self.q)


def fit_paper(fold: Fold, name: str, options: Mapping[str, Any], settings: Settings) -> Fit:
    """A head stopped early."""
    options = {**(HEADS[name].paper_options or {}), **options}
    descent = Descent.of(fold, name, options)
    solver = FixedStepLBFGS(
        descent.start,
        step=settings.step,
        inner=settings.inner,
        memory=settings.memory,
    )
    stopped = descend_with_patience(
        solver,
        descent.function,
        _validator(fold, descent, settings.validate_with),
        patience=settings.patience,
        max_epochs=settings.max_epochs,
    )
    notes = {f"option:{key}": value for key, value in sorted(options.items())}
    notes |= {"epochs": stopped.epochs, "best_epoch": stopped.best_epoch, "valid": stopped.score}
    return Fit(descent.linear(stopped.theta), notes)


def _validator(fold: Fold, descent: Descent, validate_with: str) -> Callable[[np.ndarray], float]:
    """Mean over training domains of the accuracy on the rows that they set aside."""
    valid = fold.valid
    parts = []
    for e, domain in enumerate(fold.training_domains):
        rows = valid.domains == domain
        if rows.any():
            parts.append((e if validate_with == "own" else None, valid.X[rows], valid.y[rows]))
    if not parts:
        raise ValueError(
            "the paper's protocol validates on rows set aside, but no rows are; raise aside"
        )

    def validate(theta: np.ndarray) -> float:
        accuracies = [np.mean(descent.linear(theta, e).predict(X) == y) for e, X, y in parts]
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
        Length along each direction; the very first is cut to 1/‖g‖₁ where that is less than one.
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
                raise FloatingPointError(
                    f"L-BFGS of step {solver.step:g} diverged in epoch {epoch}, before any gain; "
                    "standardise the features, or lower the step"
                )
            break
        new_score = validate(solver.theta)
        if new_score > score:
            best = solver.theta
            score = new_score
            best_epoch = epoch
    return EarlyStop(best, score, best_epoch, epoch)
