"""The empirical Lagrangian, equation (3) of the paper, over some training domains.

Notation: B (d, k) canonical weights, W (d, d) adjustment, M (d, E) adjusted domain means.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg, sparse

from skdare._validation import warn
from skdare.arrays import as_float64, is_foreign, length, like, to_numpy, work_dtype
from skdare.arrays.passes import SpreadRows
from skdare.fitting.plan import FROM_MEAN, Plan
from skdare.fitting.problem import Problem
from skdare.fitting.statistics import Statistics
from skdare.objective.objective import Block, Objective
from skdare.objective.small_domains import ThinRows
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments, covariance_times, ridge_of
from skdare.whitening.whitening import Whitening

# What stands out from noise is this much above its expected size.
_MARGIN = 1.5


def adjusted_objective(
    problem: Problem,
    statistics: Statistics,
    chosen: Sequence[int],
    plan: Plan,
    adjustments: Sequence[Adjustment],
    *,
    intercept: bool,
) -> Objective:
    """The empirical Lagrangian over the chosen domains: few rows together, others one by one."""
    form, penalty = plan.form, plan.form.mean_penalty
    penalty = 0.0 if isinstance(penalty, str) else penalty
    blocks, thin, M = [], [], []
    alone: list[int] = []
    few: list[int] = []
    shares, common_mean = _shares(problem, chosen, plan.by_rows), statistics.mean(chosen)
    for e, W, share in zip(chosen, adjustments, shares, strict=True):
        if form != FROM_MEAN and _is_thin(problem, e, W):
            few.append(e)
            thin.append(problem.thin_domain(e, share, W.scale if W.own is None else W.own))
            continue
        alone.append(e)
        mean = statistics.domain_mean(e)
        shift = mean if form.centered else common_mean if form.subtract else None
        rows = [problem.domain_rows(e, share, shift)]
        if penalty > 0:
            target = problem.loss.uninformative(problem.k)
            rows.append(problem.mean_row(mean, target, penalty * share))
        blocks.append(Block(W, tuple(rows)))
        adjusted = W.back(like(mean[:, None], problem.X, work_dtype(problem.X)))
        M.append(to_numpy(as_float64(adjusted)).T)
    together = None
    if thin:
        common = adjustments[0].common
        together = ThinRows.of(problem.X, thin, problem.loss, common, form.centered, penalty)
        M.append(together.means())
    means = np.concatenate(M)
    noise = 0.0
    if form.mean_penalty == "exact":
        noise = _MARGIN * sampling_noise(means, problem, statistics, [*alone, *few], plan.whitening)
    span, gains = mean_directions(means.T, form.mean_penalty, noise)
    origin = None if form.centered or form.subtract else means.mean(axis=0)
    ridge = statistics.ridge(chosen, plan.whitening, plan.l2)
    shape = (problem.d, problem.k, ridge, intercept)
    return Objective(blocks, problem.loss, *shape, span, gains, origin, thin=together)


def _shares(problem: Problem, chosen: Sequence[int], by_rows: bool) -> np.ndarray:
    """What each domain weighs: all the same, or by its rows."""
    if not by_rows:
        return np.full(len(chosen), 1.0 / len(chosen))
    totals = np.array([problem.domain_weight(e).sum() for e in chosen])
    return totals / totals.sum()


def _is_thin(problem: Problem, e: int, W: Adjustment) -> bool:
    """Whether a domain's rows can be visited together with others'."""
    few = length(problem.index[e]) < problem.d
    X = problem.X
    here = not is_foreign(X) and not sparse.issparse(X) and not isinstance(X, SpreadRows)
    return few and here and (W.is_scalar or W.own is not None)


def sampling_noise(
    M: np.ndarray,
    problem: Problem,
    statistics: Statistics,
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
    d, unit = M.shape[1], statistics.unit(chosen)
    total, largest = 0.0, 0.0
    for e, mean in zip(chosen, M, strict=True):
        keep, ridge, scale, along = _shrunk(statistics.moments(e), whitening, unit)
        if not scale > 0:
            continue
        a, a_along = keep * scale + ridge, keep * along + ridge
        turned = float(mean @ mean) * keep**2 * along / (a**0.5 + a_along**0.5) ** 2
        n = _effective_rows(problem.domain_weight(e)) / (1.0 + turned)
        total += d * scale / (keep * d * scale + ridge) / n
        largest = max(largest, d * scale / a / n)
    return float(np.sqrt(total) + np.sqrt(largest))


def _effective_rows(weight: np.ndarray) -> float:
    """How many rows of equal weight know as much of a mean: in no unit of the weights."""
    return float(weight.sum() ** 2 / (weight @ weight))


def _shrunk(
    moments: Moments, whitening: Whitening, unit: float
) -> tuple[float, float, float, float]:
    """1 - ρ, the ridge that shrinkage adds, and variances: of the mean feature, along the mean."""
    scale = moments.scale()
    if not whitening.adjust:
        return 0.0, unit, scale, scale
    rho = moments.shrinkage(whitening.shrinkage, centered=whitening.centered)
    if whitening.target == "pooled":  # in the coordinates of the pool, where it is the identity
        return 1.0 - rho, rho, 1.0, 1.0
    ridge = ridge_of(rho, whitening.target, moments.scale(centered=whitening.centered))
    mean = to_numpy(moments.mean)
    square = float(mean @ mean)
    spread = to_numpy(covariance_times(moments, moments.mean[:, None]))[:, 0]
    return 1.0 - rho, ridge, scale, float(mean @ spread) / square if square > 0 else scale


def mean_directions(
    M: np.ndarray, penalty: float | str, noise: float = 0.0
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The span of the adjusted means (columns of M), and by how much to slow the solver there.

    Along a left singular vector of M with singular value s the means add (1 + λ) s²/E to a
    curvature of about one. On features with large means, L-BFGS needed 94 iterations with these
    gains and had not converged after 1,000 without. Gains of zero are the exact constraint, which
    holds where the means stand out from the noise of sampling them: what is below it is a random
    direction, and giving that up would cost as much at any number of rows.
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
    span, values = span[:, present], values[present]
    if penalty == "exact":
        if len(values) == d:
            raise ValueError(
                f"the means of {n} domains span all {d} features, and "
                "mean_penalty='exact' leaves nothing to predict from; use a number"
            )
        return span, np.zeros(len(values))
    return span, (1.0 + (1.0 + float(penalty)) * values**2 / n) ** -0.5
