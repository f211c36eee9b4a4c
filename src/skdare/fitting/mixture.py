"""The rows of a new domain as a mixture of one Gaussian a class, anchored to a head.

In a new domain each class may have moved by itself, and unlabelled rows say where to. A row is
taken to belong to class k with probability R ∝ exp(F + G): F are the scores of the head, and G
those of Gaussians, one a class, with a common covariance. Rounds of expectation and maximisation,
from R = softmax(F) on, find their means and covariance. F + G is linear in the row, so that the
result is a head like any other. Without F, classes would change places.

Notation, in canonical coordinates: Z (m, d) rows about their mean, R (m, k) shares of the classes
in each row, N (k,) and S (d, k) rows and sums of each class, M (d, k) class means, C (d, d)
covariance within classes, P = C⁻¹ M, B (d, c) and b (c,) weights of the head: one column for two
classes, else one a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import linalg, sparse

from skdare.arrays import (
    chunks,
    length,
    like,
    products_of,
    to_numpy,
    transposed_product,
)
from skdare.arrays.passes import RowPart, route
from skdare.fitting.formulation import Formulation
from skdare.fitting.problem import Problem
from skdare.fitting.targets import Classes
from skdare.objective.losses import softmax
from skdare.objective.scores import scores_by_class
from skdare.whitening.adjustment import Adjustment, back
from skdare.whitening.moments import Moments
from skdare.whitening.roots.cholesky import cholesky

# Above this many features, a covariance within classes would be a matrix too large to factor.
MOST_FEATURES = 4096
# How far the covariance is shrunk towards a multiple of the identity.
SHRINKAGE = 0.2
_ROUNDS = 15
# Shares of the classes in a row that change by no more than this have settled.
_SETTLED = 1e-3


@dataclass(frozen=True)
class Mixture:
    """How the classes of a new domain may differ from those in training.

    Parameters
    ----------
    anchor_rows : float
        Rows of the new domain that the place of a class in training counts as. Infinite: all
        classes move by the same vector.
    estimate_shares : bool
        Whether classes may also be rarer or more common than in training.
    """

    anchor_rows: float
    estimate_shares: bool


# Each class moves by itself; all classes move together, and their shares change.
BY_CLASS = Mixture(anchor_rows=10.0, estimate_shares=False)
TOGETHER = Mixture(anchor_rows=float("inf"), estimate_shares=True)


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Sums over the rows of a domain by class.

    Parameters
    ----------
    weight : array of shape (k,)
        Weight of the rows of each class.
    deviations : array of shape (d, k)
        Weighted sums of their deviations from the mean of all rows.
    """

    weight: np.ndarray
    deviations: np.ndarray

    @classmethod
    def of_problem(cls, problem: Problem, means: Sequence[np.ndarray]) -> list[ClassSums]:
        """Sums of every domain of a problem with classes, by their means on the host."""
        assert isinstance(problem.targets, Classes)
        visit = partial(_visit, len(problem.targets.classes))
        parts = [
            RowPart(problem.X, index, (problem.T[index], problem.weight[index]))
            for index in problem.index
        ]
        return list(route(parts).run(visit, means))

    def __add__(self, other: ClassSums) -> ClassSums:
        return ClassSums(self.weight + other.weight, self.deviations + other.deviations)


@dataclass(frozen=True, eq=False)
class ClassPlaces:
    """Where the classes of the training domains lie, in canonical coordinates.

    Parameters
    ----------
    shares : array of shape (k,)
    means : array of shape (d, k)
    within : array of shape (d, d)
        Covariance within classes.
    """

    shares: np.ndarray
    means: np.ndarray
    within: np.ndarray

    @classmethod
    def of_domains(
        cls,
        sums: Sequence[ClassSums],
        moments: Sequence[Moments],
        adjustments: Sequence[Adjustment],
        formulation: Formulation,
    ) -> ClassPlaces:
        """Places in some domains, by their sums, and moments and adjustments on the host."""
        n = np.array([m.n for m in moments])
        q = n / n.sum() if formulation.by_rows else np.full(len(n), 1.0 / len(n))
        d = moments[0].d
        centres = np.zeros((len(n), d))
        if not formulation.means.center_in_training:
            pairs = zip(adjustments, moments, strict=True)
            centres = np.stack([back(W, m.mean[:, None])[:, 0] for W, m in pairs])
        origin = q @ centres
        shares = np.zeros_like(sums[0].weight)
        totals = np.zeros_like(sums[0].deviations)
        scatter = np.zeros((d, d))
        for e, own in enumerate(sums):
            W = adjustments[e]
            weight = own.weight / n[e]
            away = centres[e] - origin
            shares += q[e] * weight
            totals += q[e] * (back(W, own.deviations / n[e]) + away[:, None] * weight)
            scatter += q[e] * canonical_covariance(moments[e], W)
            scatter += q[e] * away[:, None] * away
        # A class that these domains lack lies at the mean of all.
        about = totals / np.where(shares > 0, shares, 1.0)
        return cls(shares, about + origin[:, None], scatter - (about * shares) @ about.T)


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows of a new domain in canonical coordinates.

    Parameters
    ----------
    Z : array of shape (m, d)
        Less their mean.
    weight : array of shape (m,)
    mean : array of shape (d,)
    covariance : array of shape (d, d)
    codes : array of int of shape (m,), optional
        The number of each row's class, or -1 where that is not known.
    """

    Z: np.ndarray
    weight: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    codes: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        weight: np.ndarray,
        moments: Moments,
        adjustment: Adjustment,
        shift: np.ndarray | None,
        codes: np.ndarray | None = None,
    ) -> NewRows:
        """Rows X, whose moments these are, adjusted after the shift is subtracted."""
        mean = moments.mean if shift is None else moments.mean - shift
        return cls(
            back(adjustment, (X - moments.mean.astype(X.dtype)).T).T,
            weight,
            back(adjustment, mean[:, None])[:, 0],
            canonical_covariance(moments, adjustment),
            codes,
        )

    def with_known_classes(self, R: np.ndarray) -> np.ndarray:
        """Shares of the classes in each row, all of it to the class of a labelled one."""
        if self.codes is None:
            return R
        known = np.flatnonzero(self.codes >= 0)
        R[known] = 0.0
        R[known, self.codes[known]] = 1.0
        return R


class ClassFinder:
    """Finds the classes of a new domain.

    Parameters
    ----------
    places : ClassPlaces
        In training.
    rows : NewRows
    """

    def __init__(self, places: ClassPlaces, rows: NewRows) -> None:
        self.places = places
        self.rows = rows
        n = rows.weight.sum()
        d = len(rows.mean)
        # The covariance in training counts as d rows. Without the classes' means, which change in
        # every round and have low rank, it is factored once.
        self._scale = (1.0 - SHRINKAGE) / (n + d)
        total = self._scale * (n * rows.covariance + d * places.within)
        # Classes of one point each scatter by nothing but rounding.
        about = places.means - (places.means @ places.shares)[:, None]
        rounding = 1e-8 * (np.mean(about**2) + np.abs(np.diagonal(total)).mean())
        ridge = max(SHRINKAGE * np.trace(places.within) / d, rounding) or 1.0
        total[np.diag_indices(d)] += ridge
        self._factor = cholesky(total)

    def weights(
        self, mixture: Mixture, B: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Canonical weights and intercept for the new domain, from those of the head.

        Their scores have the size of the head's own on these rows: the Gaussians say where classes
        lie, and would be far too sure of themselves in many dimensions.
        """
        rows = self.rows
        F = scores_by_class(rows.Z @ B.astype(rows.Z.dtype) + (rows.mean @ B + b))
        P, offset = self._gaussians(mixture, F)
        adapted = F + rows.Z @ P.astype(rows.Z.dtype) + offset
        size = _spread(F, rows.weight) / _spread(adapted, rows.weight)
        offset = offset - rows.mean @ P
        if B.shape[1] == 1:
            P = P[:, 1:] - P[:, :1]
            offset = offset[1:] - offset[:1]
        else:
            P = P - P.mean(axis=1, keepdims=True)
            offset = offset - offset.mean()
        return size * (B + P), size * (b + offset)

    def _gaussians(self, mixture: Mixture, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """C⁻¹ M and what is added for every row, after the last round."""
        Z = self.rows.Z
        weight = self.rows.weight[:, None].astype(Z.dtype)
        training = self.places.means - self.rows.mean[:, None]
        R = self.rows.with_known_classes(softmax(F))
        for _ in range(_ROUNDS):
            weighted = R * weight
            N = weighted.sum(axis=0, dtype=np.float64)
            S = (weighted.T @ Z).T.astype(np.float64)
            shares = self.places.shares
            log_shares = np.zeros(len(N))
            if mixture.estimate_shares:
                shares = (N + 1.0) / (N + 1.0).sum()
                log_shares = np.log(shares)
            M = training - (training @ shares)[:, None]
            if np.isfinite(mixture.anchor_rows):
                M = (S + mixture.anchor_rows * M) / (N + mixture.anchor_rows)
            P = self._solve(M, S, N)
            offset = log_shares - 0.5 * np.sum(M * P, axis=0)
            previous = R
            R = self.rows.with_known_classes(softmax(F + Z @ P.astype(Z.dtype) + offset))
            if np.abs(R - previous).max() < _SETTLED:
                break
        return P, offset

    def _solve(self, M: np.ndarray, S: np.ndarray, N: np.ndarray) -> np.ndarray:
        """C⁻¹ M by Woodbury's identity, for the scatter about M: Σ z zᵀ - S Mᵀ - M Sᵀ + M N Mᵀ."""
        k = len(N)
        one = np.arange(k)
        U = np.concatenate([S, M], axis=1)
        X = linalg.cho_solve(self._factor, U, check_finite=False)
        K = U.T @ X
        inner = -K
        inner[one, one] += N / self._scale
        inner[one, k + one] += 1.0 / self._scale
        inner[k + one, one] += 1.0 / self._scale
        P: np.ndarray = X[:, k:] + X @ np.linalg.solve(inner, K[:, k:])
        return P


def canonical_covariance(moments: Moments, W: Adjustment) -> np.ndarray:
    """WᵀΣW for the covariance Σ of rows, on the host."""
    covariance = to_numpy(moments.second_moment(centered=True)).astype(np.float64)
    half = back(W, covariance)
    return back(W, half.T)


def _spread(F: np.ndarray, weight: np.ndarray) -> float:
    """Root mean square of the scores about each row's mean."""
    about = F - F.mean(axis=1, keepdims=True)
    return float(np.sqrt(weight @ np.sum(about * about, axis=1))) or 1.0


def sums_by_class(
    part: RowPart, numbers: np.ndarray, mean: np.ndarray, n_classes: int
) -> ClassSums:
    """Sums over rows whose classes have these numbers; the part's last column is their weight."""
    weight = to_numpy(part.columns[-1])
    totals = np.bincount(numbers, weight, n_classes)
    sums = np.zeros((part.X.shape[1], n_classes))
    for place, chunk in chunks(part.X, part.index):
        member = np.zeros((length(place), n_classes))
        member[np.arange(len(member)), numbers[place]] = weight[place]
        subtracted = None if sparse.issparse(chunk) else like(mean, chunk)
        rows = chunk if subtracted is None else chunk - subtracted
        with products_of(part.X):
            sums += to_numpy(transposed_product(rows, like(member, chunk))).astype(np.float64)
        # What rounding left of the mean, or all of it.
        rest = mean if subtracted is None else mean - to_numpy(subtracted).astype(np.float64)
        sums -= rest[:, None] * member.sum(axis=0)
    return ClassSums(totals, sums)


def _visit(n_classes: int, part: RowPart, mean: np.ndarray) -> ClassSums:
    """Sums of a part by its targets, where its rows lie."""
    return sums_by_class(part, to_numpy(part.columns[0]), mean, n_classes)
