"""The empirical Lagrangian of the paper's objectives, over the domains of a problem.

Equation (1), for classes:

    1/|E| Σ_e [ 1/n_e Σ_i ℓ(Bᵀ W_e x_i, y_i) + λ ℓ(Bᵀ W_e μ_e, 1/k) ]

Equation (3), for numbers, has x_i - μ_e in place of x_i, the squared error, and a target of zero at
the means. The constraint on the means is this penalty, one more row for each domain; or, with
λ = "exact", it holds exactly: the solver's steps along the means are zero. The intercept of (3) is
set after the solve, by `without_means` in `skdare.fitting.domain_fit`.

`empirical_lagrangian` makes the sum that is minimised: a block for the rows of each domain, and one
for the means. tests/heads/test_heads_formulas.py compares the minimum with the equations, written
row by row in tests/paper_formulas.py.

Notation: B (d, k) canonical weights, W (d, d) adjustment, μ (d,) mean, M (E, d) adjusted means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from scipy import linalg, sparse

from skdare.arrays import as_float64, beside, chunks, length, like, namespace, to_numpy
from skdare.errors import InputError, note
from skdare.fitting.problem import Problem, Targets
from skdare.objective.objective import Block, Coordinates, Objective
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.guess import Guess
from skdare.whitening.moments import AnyMoments, Moments, mean_variance
from skdare.whitening.whitening import Shift, Whitening

# A pass costs as much as the products of about this many numbers. Domains of fewer, and domains of
# fewer rows than features, whose W costs more than their rows, are copied, adjusted and multiplied
# together, unless the copies have more numbers than this.
_SMALL_DOMAIN = 1 << 16
_MOST_COPIED = 1 << 24
# What stands out from noise is this much above its expected size.
_MARGIN = 1.5

Penalty = float | Literal["exact"]


# One scalar for all domains, in the unit of the features.
PLAIN = Whitening(adjusts=False, centered=True, shrinkage=0.0, target="scaled")


@dataclass(frozen=True)
class Formulation:
    """Which problem is solved, and to which precision."""

    whitening: Whitening
    mean_penalty: Penalty  # the paper's λ
    by_rows: bool  # every row counts the same, as in ERM; else every domain does
    intercept: bool
    l2: float
    tol: float
    max_iter: int
    guess: Guess = "mean"


def training_shift(
    targets: Targets, penalty: Penalty | None, centered: bool, intercept: bool
) -> Shift:
    """What the paper's objective for these targets subtracts from the rows of a domain.

    Whitening by covariances without a penalty is to be translation invariant, and with one W_e for
    each domain it would not be: rows are measured from the mean of the means.
    """
    if targets.rows_are_centered and penalty is not None:
        return "own mean in training"
    return "mean of means" if centered and intercept and not penalty else "none"


def empirical_lagrangian(
    problem: Problem,
    moments: Sequence[AnyMoments],
    adjustments: Sequence[Adjustment],
    formulation: Formulation,
) -> Objective:
    X = problem.X
    loss = problem.targets.loss
    penalty = formulation.mean_penalty
    E = len(moments)
    shares = np.full(E, 1.0 / E)
    if formulation.by_rows:
        totals = np.array([problem.loss_weight[index].sum() for index in problem.index])
        shares = totals / totals.sum()
    xp = namespace(X)
    M = xp.stack([W.back(m.mean[:, None])[:, 0] for W, m in zip(adjustments, moments, strict=True)])
    blocks = with_small_ones_copied(domain_blocks(problem, adjustments, shares))
    on_host = to_numpy(M)
    noise = 0.0
    if penalty == "exact":
        noise = _MARGIN * sampling_noise(
            on_host, problem, cast("Sequence[Moments]", moments), formulation.whitening
        )
    elif penalty > 0:
        k = problem.targets.columns
        T = beside(np.full((E, k), loss.uninformative(k)), X)
        price = beside(penalty * shares, X)
        blocks.append(Block(M, slice(0, E), T, price, Adjustment(1.0), intercept=False))
    span, gains = mean_directions(on_host, penalty, noise)
    origin = xp.mean(M, axis=0) * float(formulation.whitening.shift == "none")
    coordinates = Coordinates(formulation.intercept, origin, beside(span, X), beside(gains, X))
    return Objective(
        blocks, loss, coordinates, formulation.whitening.ridge(moments, formulation.l2)
    )


def domain_blocks(
    problem: Problem,
    adjustments: Sequence[Adjustment],
    shares: Sequence[float] | np.ndarray,
) -> list[Block]:
    """The rows of each domain, which weigh its share together."""
    X = problem.X
    blocks = []
    for index, W, share in zip(problem.index, adjustments, shares, strict=True):
        weight = problem.loss_weight[index]
        weight = beside(share * weight / weight.sum(), X)
        blocks.append(Block(X, index, beside(problem.T[index], X), weight, W))
    return blocks


def with_small_ones_copied(blocks: Sequence[Block]) -> list[Block]:
    """The same sum with small domains adjusted beforehand, Z = (X - m) W, in one block."""
    X = blocks[0].X
    d = X.shape[1]
    small = [b for b in blocks if d * length(b.index) < max(_SMALL_DOMAIN, d * d)]
    copied = d * sum([length(block.index) for block in small])
    if len(small) < 2 or copied > _MOST_COPIED:
        return list(blocks)
    xp = namespace(X)
    parts = []
    for block in small:
        for _, rows in chunks(X, block.index):
            rows = rows.toarray() if sparse.issparse(rows) else rows
            parts.append(like(block.adjustment.rows(as_float64(rows)), X))
    Z = xp.concat(parts, axis=0)
    T = xp.concat([block.T for block in small], axis=0)
    weight = xp.concat([block.weight for block in small], axis=0)
    together = Block(Z, slice(0, Z.shape[0]), T, weight, Adjustment(1.0))
    return [block for block in blocks if block not in small] + [together]


def mean_directions(
    M: np.ndarray, penalty: Penalty, noise: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """The span of the adjusted means, and the solver's gains along it.

    Along a right singular vector of M with singular value s the means add (1 + λ) s²/E to a
    curvature of about one. On features with large means, L-BFGS needed 94 iterations with these
    gains and had not converged after 1,000 without.

    Gains of zero are the constraint Bᵀ W_e μ_e = 0, as far as the means stand out from their
    sampling noise: a direction below it is random, and giving it up would cost as much at any
    number of rows (an error of 0.38 at 500 rows, and of 0.37 at 32,000).
    """
    E, d = M.shape
    nothing = np.empty((d, 0)), np.empty(0)
    if penalty == 0:
        return nothing
    _, values, rows = linalg.svd(M, full_matrices=False, check_finite=False)
    # In canonical units features are of order one: a mean of 1e-7 is rounding, not a direction.
    rounding = 1e-7 * max(1.0, values[0])
    present = values > max(rounding, noise)
    span = rows[present].T
    if penalty != "exact":
        return span, (1.0 + (1.0 + penalty) * values[present] ** 2 / E) ** -0.5
    if not present.any() and values[0] > rounding:
        note(
            f"the means of {E} domains do not stand out from the noise of so few rows, and "
            "mean_penalty='exact' has no effect; give more rows, or use a number"
        )
    if present.sum() == d:
        raise InputError(
            f"the means of {E} domains span all {d} features, and mean_penalty='exact' leaves "
            "nothing to predict from",
            "use a number",
        )
    return span, np.zeros(span.shape[1])


def sampling_noise(
    M: np.ndarray, problem: Problem, moments: Sequence[Moments], whitening: Whitening
) -> float:
    """Largest singular value that sampling alone gives the matrix of adjusted means.

    Of exactly whitened rows, a mean of n has variance 1/n in each of d directions, and E of them
    together have the largest singular value (√E + √d)/√n. Shrinkage makes f(s) = s/a of a variance
    s in place of one, with a = (1-ρ)s + r. f is concave: f at the mean variance bounds the mean of
    f, and f at the trace bounds every direction. The whitening is sampled as well, and turns a
    mean m along a direction i into direction j: to first order that multiplies the variance there
    by 1 + (1-ρ)² ‖m‖² s_i / (√a_i + √a_j)², in which a_j is taken at the mean variance.
    """
    d = M.shape[1]
    total = 0.0
    largest = 0.0
    for index, mean, m in zip(problem.index, M, moments, strict=True):
        s = m.scale(centered=True)
        if not s > 0:
            continue
        keep = 1.0 - whitening.shrinkage
        ridge = whitening.shrinkage
        if whitening.target != "identity":
            ridge *= m.scale(whitening.centered)
        if not whitening.adjusts:
            keep = 0.0
            ridge = mean_variance(moments)
        square = float(m.mean @ m.mean)
        along_mean = float(m.mean @ m.scatter_times(m.mean)) / (m.n * square) if square > 0 else s
        a = keep * s + ridge
        a_along = keep * along_mean + ridge
        turned = float(mean @ mean) * keep**2 * along_mean / (a**0.5 + a_along**0.5) ** 2
        # This many rows of equal weight know as much of a mean: in no unit of the weights.
        weight = problem.weight[index]
        n = weight.sum() ** 2 / (weight @ weight) / (1.0 + turned)
        total += d * s / (keep * d * s + ridge) / n
        largest = max(largest, d * s / a / n)
    return float(np.sqrt(total) + np.sqrt(largest))
