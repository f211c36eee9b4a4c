"""The empirical Lagrangian of the paper's objectives, over some training domains.

Equation (1), for classes:

    1/|E| Σ_e [ 1/n_e Σ_i ℓ(Bᵀ W_e x_i, y_i) + λ ℓ(Bᵀ W_e μ_e, 1/k) ]

Equation (3), for numbers, has x_i - μ_e in place of x_i, the squared error, and asks for zero at
the means. The constraint is this penalty, one more row for each domain; or, with
``mean_penalty="exact"``, it holds as such: the solver's steps along the means are zero.

Notation: B (d, k) canonical weights, W (d, d) adjustment, M (E, d) adjusted domain means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from skdare._validation import warn
from skdare.arrays import as_float64, is_foreign, length, like, to_numpy, work_dtype
from skdare.arrays.passes import SpreadRows
from skdare.fitting.adjusted_rows import adjusted_rows
from skdare.fitting.formulation import FROM_MEAN, Formulation
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import ProblemStatistics
from skdare.objective.coordinates import Coordinates
from skdare.objective.few_rows import FewRowsLoss, in_chunks
from skdare.objective.objective import Objective
from skdare.objective.rows import DomainBlock, WeightedRows
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments, covariance_times
from skdare.whitening.whitening import Whitening

# What stands out from noise is this much above its expected size.
_MARGIN = 1.5
# A visit takes as long as the products of about this many numbers: as many domains as this, with
# fewer numbers each and no more in all, are copied.
_CELLS_OF_A_DOMAIN = 1 << 16
_MANY = 5
_COPIED = 1 << 22


def empirical_lagrangian(
    problem: Problem,
    statistics: ProblemStatistics,
    chosen: Sequence[int],
    formulation: Formulation,
    adjustments: Sequence[Adjustment],
    *,
    intercept: bool,
) -> Objective:
    """The objective of the chosen domains: those with few rows together, others one by one.

    Many domains of few rows each are one block of rows that are adjusted already.
    """
    shares = dict(zip(chosen, _domain_shares(problem, chosen, formulation), strict=True))
    adjustment = dict(zip(chosen, adjustments, strict=True))
    copied = _is_copied(problem, chosen)
    few = []
    if not copied:
        few = [e for e in chosen if _visited_together(problem, e, adjustment[e], formulation)]
    together = set(few)
    alone = [e for e in chosen if e not in together]
    overall_mean = statistics.mean(chosen)
    blocks = []
    for e in [] if copied else alone:
        mean = statistics.domain_mean(e)
        rows = _rows_of(problem, e, mean, overall_mean, formulation, shares[e])
        blocks.append(DomainBlock(adjustment[e], rows))
    means = [_adjusted_mean(problem, statistics, e, adjustment[e]) for e in alone]
    few_rows = None
    if few:
        few_rows = _few_rows_loss(problem, few, formulation, adjustment, shares)
        means.append(few_rows.means())
    M = np.concatenate(means)
    if copied:
        blocks = [_copied_block(problem, statistics, chosen, formulation, adjustments, shares, M)]
    treatment = formulation.means
    noise = 0.0
    if treatment.mean_penalty == "exact":
        in_order = [*alone, *few]
        noise = _MARGIN * sampling_noise(M, problem, statistics, in_order, formulation.whitening)
    span, gains = mean_directions(M.T, treatment.mean_penalty, noise)
    origin = None if treatment.center_in_training or treatment.subtract_in_use else M.mean(axis=0)
    return Objective(
        blocks,
        problem.loss,
        Coordinates(problem.d, problem.k, intercept, span, gains, origin),
        statistics.ridge(chosen, formulation.whitening, formulation.l2),
        few_rows=few_rows,
    )


def _domain_shares(problem: Problem, chosen: Sequence[int], formulation: Formulation) -> np.ndarray:
    """What each domain weighs: all the same, or by its rows."""
    if not formulation.by_rows:
        return np.full(len(chosen), 1.0 / len(chosen))
    totals = np.array([problem.loss_weight[problem.index[e]].sum() for e in chosen])
    return totals / totals.sum()


def _is_copied(problem: Problem, chosen: Sequence[int]) -> bool:
    """Whether copying all rows is cheaper than visiting each of many small domains."""
    X = problem.X
    plain = isinstance(X, np.ndarray) and X.dtype in (np.float32, np.float64)
    cells = problem.d * sum(length(problem.index[e]) for e in chosen)
    few_each = cells < _CELLS_OF_A_DOMAIN * len(chosen)
    return plain and len(chosen) >= _MANY and few_each and cells <= _COPIED


def _copied_block(
    problem: Problem,
    statistics: ProblemStatistics,
    chosen: Sequence[int],
    formulation: Formulation,
    adjustments: Sequence[Adjustment],
    shares: dict[int, float],
    M: np.ndarray,
) -> DomainBlock:
    """All rows, adjusted, and the adjusted means M (E, d) as further ones where penalised."""
    overall_mean = statistics.mean(chosen)
    shifts = [training_shift(formulation, statistics.domain_mean(e), overall_mean) for e in chosen]
    Z = adjusted_rows(problem, chosen, adjustments, shifts)
    T = np.concatenate([problem.T[problem.index[e]] for e in chosen])
    weights = [shares[e] * w / w.sum() for e in chosen for w in [problem.domain_weight(e)]]
    rows = [WeightedRows(Z, slice(0, len(Z)), T, np.concatenate(weights))]
    penalty = _numeric_penalty(formulation)
    if penalty > 0:
        targets = np.full((len(M), problem.k), problem.loss.uninformative(problem.k))
        price = penalty * np.array([shares[e] for e in chosen])
        means = M.astype(Z.dtype)
        rows.append(WeightedRows(means, slice(0, len(M)), targets, price, intercept=False))
    return DomainBlock(Adjustment(problem.d, 1.0), tuple(rows))


def _visited_together(problem: Problem, e: int, W: Adjustment, formulation: Formulation) -> bool:
    """Whether a domain's rows, few and in memory, can be visited together with others'."""
    X = problem.X
    here = not is_foreign(X) and not sparse.issparse(X) and not isinstance(X, SpreadRows)
    few = length(problem.index[e]) < problem.d
    has_map = W.is_scalar or W.score_map is not None
    return few and here and has_map and formulation.means != FROM_MEAN


def _rows_of(
    problem: Problem,
    e: int,
    mean: np.ndarray,
    overall_mean: np.ndarray,
    formulation: Formulation,
    share: float,
) -> tuple[WeightedRows, ...]:
    """The rows of a domain, and its mean as one more where that is penalised."""
    rows = problem.domain_rows(e, share, training_shift(formulation, mean, overall_mean))
    penalty = _numeric_penalty(formulation)
    if not penalty > 0:
        return (rows,)
    target = problem.loss.uninformative(problem.k)
    return rows, problem.mean_row(mean, target, penalty * share)


def training_shift(
    formulation: Formulation, mean: np.ndarray, overall_mean: np.ndarray
) -> np.ndarray | None:
    """What is subtracted from the rows of a domain in training, if anything is."""
    treatment = formulation.means
    if treatment.center_in_training:
        return mean
    return overall_mean if treatment.subtract_in_use else None


def _numeric_penalty(formulation: Formulation) -> float:
    """λ, or zero where the constraint holds exactly."""
    penalty = formulation.means.mean_penalty
    return 0.0 if isinstance(penalty, str) else penalty


def _adjusted_mean(
    problem: Problem, statistics: ProblemStatistics, e: int, W: Adjustment
) -> np.ndarray:
    """Wᵀ μ of a domain as a row, (1, d), on the host."""
    mean = like(statistics.domain_mean(e)[:, None], problem.X, work_dtype(problem.X))
    return to_numpy(as_float64(W.back(mean))).T


def _few_rows_loss(
    problem: Problem,
    few: Sequence[int],
    formulation: Formulation,
    adjustment: dict[int, Adjustment],
    shares: dict[int, float],
) -> FewRowsLoss:
    """The loss of the domains whose rows are visited together."""
    domains = []
    for e in few:
        W = adjustment[e]
        score_map = W.scale if W.score_map is None else W.score_map
        domains.append(problem.few_rows_domain(e, shares[e], score_map))
    return FewRowsLoss(
        problem.X,
        in_chunks(problem.X, domains),
        problem.loss,
        adjustment[few[0]].common,
        formulation.means.center_in_training,
        _numeric_penalty(formulation),
    )


def sampling_noise(
    M: np.ndarray,
    problem: Problem,
    statistics: ProblemStatistics,
    chosen: Sequence[int],
    whitening: Whitening,
) -> float:
    """Largest singular value that sampling alone gives the matrix of adjusted means, M (E, d).

    Of exactly whitened rows, a mean of n has variance 1/n in each of d directions, and E of them
    together have the largest singular value (√E + √d)/√n. Shrinkage makes f(s) = s/a of a variance
    s in place of one, with a = (1-ρ)s + r. f is concave: f at the mean variance bounds the mean of
    f, and f at the trace bounds every direction. The whitening is sampled as well, and turns a
    mean m along a direction i into direction j: to first order that multiplies the variance there
    by 1 + (1-ρ)² ‖m‖² s_i / (√a_i + √a_j)², in which a_j is taken at the mean variance.
    """
    d = M.shape[1]
    unit = statistics.unit(chosen)
    total = 0.0
    largest = 0.0
    for e, mean in zip(chosen, M, strict=True):
        shrunk = _Shrunk.of(statistics.moments(e), whitening, unit)
        keep = shrunk.keep
        ridge = shrunk.ridge
        s = shrunk.variance
        if not s > 0:
            continue
        a = keep * s + ridge
        a_along = keep * shrunk.along_mean + ridge
        turned = float(mean @ mean) * keep**2 * shrunk.along_mean / (a**0.5 + a_along**0.5) ** 2
        n = _effective_rows(problem.domain_weight(e)) / (1.0 + turned)
        total += d * s / (keep * d * s + ridge) / n
        largest = max(largest, d * s / a / n)
    return float(np.sqrt(total) + np.sqrt(largest))


def _effective_rows(weight: np.ndarray) -> float:
    """How many rows of equal weight know as much of a mean: in no unit of the weights."""
    return float(weight.sum() ** 2 / (weight @ weight))


@dataclass(frozen=True)
class _Shrunk:
    """A domain's variance before and after shrinkage.

    Parameters
    ----------
    keep : float
        1 - ρ.
    ridge : float
        What shrinkage adds to every direction.
    variance, along_mean : float
        Variance of the mean feature, and along the domain's mean.
    """

    keep: float
    ridge: float
    variance: float
    along_mean: float

    @classmethod
    def of(cls, moments: Moments, whitening: Whitening, unit: float) -> _Shrunk:
        """The variance of a domain, where the features' unit is ``unit``."""
        scale = moments.scale()
        if not whitening.adjust:
            return cls(0.0, unit, scale, scale)
        rho = whitening.strength(moments)
        if whitening.target == "pooled":  # in the coordinates of the pool, where it is the identity
            return cls(1.0 - rho, rho, 1.0, 1.0)
        ridge = whitening.ridge(moments)
        mean = to_numpy(moments.mean)
        square = float(mean @ mean)
        if not square > 0:
            return cls(1.0 - rho, ridge, scale, scale)
        spread = to_numpy(covariance_times(moments, moments.mean[:, None]))[:, 0]
        return cls(1.0 - rho, ridge, scale, float(mean @ spread) / square)


def mean_directions(
    M: np.ndarray, penalty: float | str, noise: float = 0.0
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The span of the adjusted means (columns of M), and the solver's gains along it.

    With ``penalty="exact"`` the gains are zero, which is the constraint Bᵀ W_e μ_e = 0, as far as
    the means stand out from the noise of sampling them: what is below it is a random direction,
    and giving that up would cost as much at any number of rows. With a number they only speed the
    solver up: along a left singular vector of M with singular value s the means add (1 + λ) s²/E
    to a curvature of about one. On features with large means, L-BFGS needed 94 iterations with
    these gains and had not converged after 1,000 without.
    """
    if penalty == 0:
        return None, None
    d, n = M.shape
    if n > d:  # many domains: the triangle has the same span and values
        M = linalg.qr(M.T, mode="r", check_finite=False)[0][:d].T
    span, values, _ = linalg.svd(M, full_matrices=False, check_finite=False)
    # In canonical units features are of order one: a mean of 1e-7 is rounding, not a direction.
    rounding = 1e-7 * max(1.0, values[0])
    present = values > max(rounding, noise)
    if not present.any():
        if values[0] > rounding:
            warn(
                f"the means of {n} domains cannot be told from the noise of so few rows, and "
                "mean_penalty='exact' then asks for nothing; give more rows, or use a number"
            )
        return None, None
    span = span[:, present]
    values = values[present]
    if penalty == "exact":
        if len(values) == d:
            raise ValueError(
                f"the means of {n} domains span all {d} features, and "
                "mean_penalty='exact' leaves nothing to predict from; use a number"
            )
        return span, np.zeros(len(values))
    return span, (1.0 + (1.0 + float(penalty)) * values**2 / n) ** -0.5
