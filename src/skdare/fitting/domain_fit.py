"""A fit to training domains, and the weights that it gives for unseen and for new ones.

Notation: B (d, k) canonical weights, b (k,) intercept, W (d, d) adjustment, V = W B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from skdare.arrays import (
    Array,
    Part,
    beside,
    has_coarse_products,
    length,
    map_reduce,
    on_accelerator,
    take,
    to_numpy,
    work_dtype,
)
from skdare.checks import Label
from skdare.fitting.lagrangian import Formulation, empirical_lagrangian
from skdare.fitting.mixture import ClassFinder, ClassPlaces, ClassSums, Mixture, NewRows, Sample
from skdare.fitting.problem import Problem
from skdare.fitting.safety_check import SafetyCheck
from skdare.objective.objective import Objective
from skdare.solvers.lbfgs import Solution, lbfgs
from skdare.solvers.newton import newton
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.guess import guess_adjustment, guess_shares
from skdare.whitening.moments import AnyMoments, Moments, moments_of, overall_variances
from skdare.whitening.prior import PriorRows, Trust
from skdare.whitening.whitening import Whitening

Weights = tuple[np.ndarray, np.ndarray]
"""V (d, k) and b (k,): weights and intercept on raw features."""

# Below this many parameters a quadratic's Hessian is cheaper than its iterations.
_DIRECT_SIZE = 1000
# Of the second moments that one pass adds up.
_PASS_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class Formulations:
    """The problems that a head solves: for unseen domains, and for ones with unlabelled rows."""

    unseen: Formulation
    adapting: Formulation | None
    mixture: Mixture | None = None
    start: Weights | None = None  # canonical weights of a similar fit
    adapting_start: Weights | None = None


def fit_domains(
    problem: Problem, formulations: Formulations, moments: Sequence[Moments] | None = None
) -> DomainFit:
    """Minimise the Lagrangian for unseen domains, and the one for domains to adapt to.

    ``moments`` are those of the domains, if known.
    """
    problem = side_by_side(problem)
    dtype = work_dtype(problem.X)
    unseen = formulations.unseen
    adapting = formulations.adapting
    moments = moments_by_domain(problem) if moments is None else moments
    overall_variances(moments, problem.X.dtype)  # refuses constants before any solve
    adjustments = unseen.whitening.adjustments(moments, dtype)
    first = solve(problem, moments, adjustments, unseen, formulations.start)
    on_host = [m.to_numpy() for m in moments]
    adaptation = None
    if adapting is not None:
        others = readjusted(adjustments, unseen.whitening, adapting.whitening, moments, dtype)
        start = formulations.adapting_start or (first.B, first.b)
        second = solve(problem, moments, others, adapting, start)
        places = None
        if formulations.mixture is not None:
            sums = [ClassSums.of(problem, e, m) for e, m in enumerate(on_host)]
            whiteners = [W.to_numpy() for W in others]
            places = ClassPlaces.of_domains(sums, on_host, whiteners, adapting)
        prior_rows = PriorRows.of_domains(moments, adapting.whitening)
        adaptation = Adaptation(second, prior_rows, formulations.mixture, places)
    adjustments = [W.to_numpy() for W in adjustments]
    labels = list(problem.labels)
    if unseen.guess != "mean":
        guess = guess_adjustment(unseen.guess, labels, on_host, adjustments, unseen.whitening)
        first = replace(first, adjustment=guess)
    if unseen.whitening.shift == "own mean in training":
        first = without_means(first, adjustments, guess_shares(unseen.guess, labels))
    return DomainFit(labels, on_host, adjustments, first, adaptation)


def readjusted(
    adjustments: Sequence[Adjustment],
    before: Whitening,
    after: Whitening,
    moments: Sequence[Moments],
    dtype: object,
) -> list[Adjustment]:
    """The adjustments of another whitening; one that only shifts rows otherwise has the same W."""
    if replace(before, shift=after.shift) == after:
        return after.shifted(adjustments, moments)
    return after.adjustments(moments, dtype)


def without_means(
    fit: CanonicalFit, adjustments: Sequence[Adjustment], shares: np.ndarray
) -> CanonicalFit:
    """Equation (3) in use: rows were centred by domain in training, and no mean is subtracted now.

    The score at a mean cannot be learnt from centred rows, so the intercept is set to predict the
    mean target on average at the training domains' means, each adjusted by its own W_e as in the
    constraint: b - Σ_e q_e m_eᵀ W_e B. Where that holds nothing is subtracted, as in the paper.
    """
    if not fit.formulation.intercept:
        return replace(fit, adjustment=replace(fit.adjustment, shift=None))
    middle: Array = fit.adjustment.shift
    # About the mean of the shifts, so that the origin of the features does not matter.
    at_means = [(W.shift - middle) @ W.apply(fit.B) for W in adjustments]
    return replace(fit, b=fit.b - shares @ np.array(at_means))


def solve(
    problem: Problem,
    moments: Sequence[AnyMoments],
    adjustments: Sequence[Adjustment],
    formulation: Formulation,
    start: Weights | None = None,
) -> CanonicalFit:
    """Canonical weights of one formulation, from zero or from those of a similar one."""
    objective = empirical_lagrangian(problem, moments, adjustments, formulation)
    k = problem.targets.columns
    B, b = start or (np.zeros((problem.X.shape[1], k)), np.zeros(k))
    theta = objective.coordinates.pack(beside(B, problem.X), beside(b, problem.X))
    solution = minimise(objective, theta, formulation)
    B, b = [to_numpy(part) for part in objective.coordinates.unpack(solution.theta)]
    guess = average(adjustments, [1.0 / len(adjustments)] * len(adjustments)).to_numpy()
    solution = replace(solution, theta=to_numpy(solution.theta))
    return CanonicalFit(formulation, B, b, guess, solution)


def minimise(objective: Objective, theta: Array, formulation: Formulation) -> Solution:
    """Directly, for a quadratic of few parameters; else by L-BFGS."""
    if objective.loss.is_quadratic and theta.shape[0] <= _DIRECT_SIZE:
        return newton(objective, objective.hessian(0.0 * theta), tol=formulation.tol)
    # On a GPU, products with three digits come first, until these are reached.
    is_quicker = has_coarse_products(objective.blocks[0].X)
    coarse = replace(objective, coarse=True) if is_quicker else None
    tol = formulation.tol
    return lbfgs(objective, theta, tol=tol, max_iter=formulation.max_iter, coarse=coarse)


def moments_by_domain(problem: Problem) -> list[Moments]:
    """Moments of each domain; one pass takes as many domains as a worker can hold."""
    weights = [problem.weight[index] for index in problem.index]
    parts = [
        Part(problem.X, index, () if np.all(weight == 1.0) else (weight,))
        for index, weight in zip(problem.index, weights, strict=True)
    ]
    step = max(1, _PASS_BYTES // (8 * problem.X.shape[1] ** 2))
    passes = [parts[i : i + step] for i in range(0, len(parts), step)]
    return [m for some in passes for m in map_reduce(moments_of, some, [None] * len(some))]


def side_by_side(problem: Problem) -> Problem:
    """The same problem; on an accelerator, with the rows of each domain next to each other.

    Gathered once, and not in every pass.
    """
    X = problem.X
    if not on_accelerator(X) or all(isinstance(index, slice) for index in problem.index):
        return problem
    order = np.concatenate([np.arange(X.shape[0])[index] for index in problem.index])
    ends = np.cumsum([length(index) for index in problem.index]).tolist()
    index = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    groups = None if problem.groups is None else problem.groups[order]
    return replace(
        problem,
        X=take(X, order),
        T=problem.T[order],
        weight=problem.weight[order],
        index=index,
        groups=groups,
    )


@dataclass(frozen=True, eq=False)
class CanonicalFit:
    """Weights on adjusted rows, and the adjustment of the rows that they predict."""

    formulation: Formulation
    B: Annotated[np.ndarray, "d k"]
    b: Annotated[np.ndarray, "k"]
    # The mean of the training domains' or, of an unseen domain, as the formulation guesses it;
    # once adapted, that of the new domain.
    adjustment: Adjustment
    solution: Solution | None  # None where a search solved many at once

    def raw_weights(self) -> Weights:
        return self.adjustment.raw_weights(self.B, self.b)


@dataclass(frozen=True, eq=False)
class Adaptation:
    """A fit for new domains with unlabelled rows."""

    fit: CanonicalFit
    prior_rows: PriorRows  # that the average domain counts as, by how much domains differ
    mixture: Mixture | None = None  # how classes may move as well
    places: ClassPlaces | None = None  # of the classes in training

    def trust(self, n: float, prior_rows: float | None = None) -> Trust:
        """Weight of n rows of a new domain relative to the averages, or to that many rows."""
        if prior_rows is not None:
            return PriorRows(prior_rows, prior_rows).trust(n)
        return self.prior_rows.trust(n)

    def adapted(
        self, n: float, own: Adjustment, trust: Trust, sample: Sample | None = None
    ) -> CanonicalFit:
        """The fit for a domain of ``n`` rows, with its own adjustment as far as trusted.

        A mixture needs a sample of the rows.
        """
        fit = replace(self.fit, adjustment=trust.blend(own, self.fit.adjustment))
        if self.mixture is None or self.places is None:
            return fit
        assert sample is not None
        counted = sample.weight * (n / sample.weight.sum())
        rows = NewRows.of(replace(sample, weight=counted), fit.adjustment)
        B, b = ClassFinder(self.mixture, self.places, rows).weights(fit.B, fit.b)
        return replace(fit, B=B, b=b)


@dataclass(frozen=True, eq=False)
class DomainFit:
    """What a head keeps of its training domains, and the fits to them."""

    labels: list[Label]
    moments: list[Moments]
    adjustments: list[Adjustment]
    unseen: CanonicalFit
    adaptation: Adaptation | None
    declined: str | None = None  # why adapting changes nothing, where a search found no gain
    safety_check: SafetyCheck | None = None  # what may object to adapting to some rows
    mean_error: float | None = None  # for numbers: see `objection_to_mean`

    def adapted(self, moments: Moments, trust: Trust, sample: Sample | None = None) -> CanonicalFit:
        """The fit for a new domain with these moments; a mixture needs a sample of its rows."""
        assert self.adaptation is not None
        own = self.adaptation.fit.adjustment
        whitening = self.adaptation.fit.formulation.whitening
        if whitening.adjusts:
            own = whitening.root(moments, whitening.usual(self.moments), np.float64)
        [own] = whitening.shifted([own], [moments])
        return self.adaptation.adapted(moments.n, own, trust, sample)
