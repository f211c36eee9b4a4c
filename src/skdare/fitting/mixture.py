"""The rows of a new domain as a mixture of one Gaussian per class, anchored to a head.

In a new domain each class may have moved by itself, and unlabelled rows show where to. A row
belongs to class c with probability R ∝ exp(F + G): F are the scores of the head, and G those of
Gaussians, one per class, with a common covariance. Rounds of expectation and maximisation, from
R = softmax(F) on, find their means and covariance. F + G is linear in the row, so the result is a
head like any other. Without F, classes could change places.

Notation, in canonical coordinates: Z (m, d) rows about their mean, R (m, c) shares of the classes
in each row, N (c,) and S (d, c) rows and sums of each class, M (d, c) class means, C (d, d)
covariance within classes, P = C⁻¹ M, B (d, k) and b (k,) weights of the head: one column for two
classes, else one a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy import linalg, sparse

from skdare.arrays import (
    Array,
    Index,
    Part,
    as_float64,
    chunks,
    like,
    map_reduce,
    to_numpy,
    transposed_product,
)
from skdare.errors import InputError
from skdare.fitting.lagrangian import Formulation
from skdare.fitting.problem import Classes, Problem
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments

# Above this many features, a covariance within classes would be a matrix too large to factor.
MOST_FEATURES = 4096
# Only class means are estimated: from this many rows they are known far better than domains
# resemble each other.
MOST_ROWS = 8192
# How far the covariance is shrunk towards a multiple of the identity.
SHRINKAGE = 0.2
_ROUNDS = 15
# Shares of the classes in a row that change by no more than this have settled.
_SETTLED = 1e-3


@dataclass(frozen=True)
class Mixture:
    """How the classes of a new domain may differ from those in training."""

    # Rows of the new domain that the place of a class in training counts as; None: all classes
    # move by the same vector.
    anchor_rows: float | None
    estimates_shares: bool  # whether classes may be rarer or more common than in training


BY_CLASS = Mixture(anchor_rows=10.0, estimates_shares=False)
TOGETHER = Mixture(anchor_rows=None, estimates_shares=True)


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Sums over the rows of a domain by class."""

    weight: np.ndarray  # (c,)
    deviations: np.ndarray  # (d, c), from the mean of all its rows

    @classmethod
    def of(cls, problem: Problem, e: int, moments: Moments) -> ClassSums:
        assert isinstance(problem.targets, Classes)
        index = problem.index[e]
        k = len(problem.targets.classes)
        weight = problem.weight[index]
        return cls.of_rows(problem.X, index, problem.T[index], weight, moments.mean, k)

    @classmethod
    def of_rows(
        cls,
        X: Array,
        index: Index,
        codes: np.ndarray,
        weight: np.ndarray,
        mean: np.ndarray,
        k: int,
    ) -> ClassSums:
        member = np.zeros((len(codes), k))
        member[np.arange(len(codes)), codes] = weight
        centre = np.zeros(len(mean)) if sparse.issparse(X) else mean
        total = map_reduce(_sums_of_part, [Part(X, index, (member,))], [centre])[0]
        counts = member.sum(axis=0)
        return cls(counts, to_numpy(total) - (mean - centre)[:, None] * counts)


def _sums_of_part(part: Part, centre: np.ndarray) -> Array:
    total = 0.0
    for place, rows in chunks(part.X, part.index):
        # About the mean, where zeros need not stay: in float32 a large one would cost digits.
        about = rows if sparse.issparse(rows) else rows - like(centre, rows)
        member = like(part.columns[0][place], rows)
        total = total + as_float64(transposed_product(about, member))
    return total


@dataclass(frozen=True, eq=False)
class ClassPlaces:
    """Where the classes of the training domains lie, in canonical coordinates."""

    shares: Annotated[np.ndarray, "c"]
    means: Annotated[np.ndarray, "d c"]
    within: Annotated[np.ndarray, "d d"]

    @classmethod
    def of_domains(
        cls,
        sums: Sequence[ClassSums],
        moments: Sequence[Moments],
        adjustments: Sequence[Adjustment],
        formulation: Formulation,
    ) -> ClassPlaces:
        n = np.array([m.n for m in moments])
        q = n / n.sum() if formulation.by_rows else np.full(len(n), 1.0 / len(n))
        pairs = list(zip(adjustments, moments, strict=True))
        centres = np.stack([W.rows(m.mean[None, :])[0] for W, m in pairs])
        origin = q @ centres
        shares = 0.0 * sums[0].weight
        totals = 0.0 * sums[0].deviations
        scatter = np.zeros((len(origin), len(origin)))
        for e, (W, m) in enumerate(pairs):
            weight = sums[e].weight / n[e]
            away = centres[e] - origin
            shares += q[e] * weight
            totals += q[e] * (W.back(sums[e].deviations / n[e]) + away[:, None] * weight)
            scatter += q[e] * (canonical_covariance(m, W) + away[:, None] * away)
        # A class that these domains lack lies at the mean of all.
        about = totals / np.where(shares > 0, shares, 1.0)
        return cls(shares, about + origin[:, None], scatter - (about * shares) @ about.T)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a new domain, all or some, and their moments."""

    X: np.ndarray  # (m, d)
    weight: np.ndarray  # (m,)
    moments: Moments
    codes: np.ndarray | None = None  # (m,) the number of each row's class, or -1 if unknown


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows of a new domain in canonical coordinates."""

    Z: np.ndarray  # (m, d), less their mean
    weight: np.ndarray  # (m,)
    mean: np.ndarray
    covariance: np.ndarray
    codes: np.ndarray | None = None  # (m,)

    @classmethod
    def of(cls, sample: Sample, W: Adjustment) -> NewRows:
        X = sample.X
        moments = sample.moments
        Z = W.back((X - moments.mean.astype(X.dtype)).T).T.astype(X.dtype, copy=False)
        mean = W.rows(moments.mean[None, :])[0]
        return cls(Z, sample.weight, mean, canonical_covariance(moments, W), sample.codes)

    def shares(self, F: np.ndarray) -> np.ndarray:
        """Shares of the classes in each row by scores; of a labelled row, all to its class."""
        P = np.exp(F - F.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        if self.codes is not None:
            known = np.flatnonzero(self.codes >= 0)
            P[known] = 0.0
            P[known, self.codes[known]] = 1.0
        return P


def canonical_covariance(moments: Moments, W: Adjustment) -> np.ndarray:
    """WᵀΣW for the covariance Σ of rows."""
    return W.back(W.back(moments.second_moment(centered=True)).T)


@dataclass(frozen=True, eq=False)
class ClassFinder:
    """Finds the classes of a new domain, from where they lay in training."""

    mixture: Mixture
    places: ClassPlaces
    rows: NewRows

    def weights(self, B: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Canonical weights and intercept for the new domain, from those of the head.

        Their scores have the size of the head's own on these rows: the Gaussians show where classes
        lie, and are far too confident in many dimensions.
        """
        rows = self.rows
        F = rows.Z @ B.astype(rows.Z.dtype) + (rows.mean @ B + b)
        F = np.hstack([0.0 * F, F]) if B.shape[1] == 1 else F
        P, offset = self._gaussians(F)
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

    def _gaussians(self, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """C⁻¹ M and what is added to every row's scores, after the last round."""
        Z = self.rows.Z
        weight = self.rows.weight[:, None].astype(Z.dtype)
        training = self.places.means - self.rows.mean[:, None]
        anchor = self.mixture.anchor_rows
        scale, factor = self._total_covariance()
        R = self.rows.shares(F)
        for _ in range(_ROUNDS):
            weighted = R * weight
            N = weighted.sum(axis=0, dtype=np.float64)
            S = (weighted.T @ Z).T.astype(np.float64)
            shares = self.places.shares
            log_shares = 0.0 * N
            if self.mixture.estimates_shares:
                shares = (N + 1.0) / (N + 1.0).sum()
                log_shares = np.log(shares)
            M = training - (training @ shares)[:, None]
            if anchor is not None:
                M = (S + anchor * M) / (N + anchor)
            P = _solve_within(factor, scale, M, S, N)
            offset = log_shares - 0.5 * np.sum(M * P, axis=0)
            previous = R
            R = self.rows.shares(F + Z @ P.astype(Z.dtype) + offset)
            if np.abs(R - previous).max() < _SETTLED:
                break
        return P, offset

    def _total_covariance(self) -> tuple[float, tuple[np.ndarray, bool]]:
        """The covariance, shrunk, as a Cholesky factor, and what the scatter of rows counts in it.

        Training counts as d rows. Without the classes' means, which change in every round and
        have low rank, it is factored once.
        """
        places = self.places
        n = self.rows.weight.sum()
        d = len(places.within)
        scale = (1.0 - SHRINKAGE) / (n + d)
        total = scale * (n * self.rows.covariance + d * places.within)
        # Classes of one point each scatter by nothing but rounding.
        about = places.means - (places.means @ places.shares)[:, None]
        rounding = 1e-8 * (np.mean(about**2) + np.abs(np.diagonal(total)).mean())
        ridge = max(SHRINKAGE * np.trace(places.within) / d, rounding) or 1.0
        return scale, cholesky(total + ridge * np.eye(d))


def cholesky(S: np.ndarray) -> tuple[np.ndarray, bool]:
    """The factor, for ``cho_solve``, of a matrix that is positive definite but for rounding.

    One row far out leaves nothing of the others in float32: then as much as it takes is added.
    """
    size = float(np.abs(np.diagonal(S)).mean()) or 1.0
    for more in (0.0, *(size * 10.0**power for power in range(-9, 3))):
        try:
            return linalg.cho_factor(S + more * np.eye(len(S)), lower=True, check_finite=False)
        except linalg.LinAlgError:
            continue
    raise InputError("the covariance of these rows is not finite", "look for huge values")


def _solve_within(
    factor: tuple[np.ndarray, bool], scale: float, M: np.ndarray, S: np.ndarray, N: np.ndarray
) -> np.ndarray:
    """C⁻¹ M by Woodbury's identity, for the scatter about M: Σ z zᵀ - S Mᵀ - M Sᵀ + M N Mᵀ."""
    c = len(N)
    U = np.concatenate([S, M], axis=1)
    X = linalg.cho_solve(factor, U, check_finite=False)
    K = U.T @ X
    one = np.eye(c) / scale
    inner = np.block([[one * N, one], [one, 0.0 * one]]) - K
    return X[:, c:] + X @ np.linalg.solve(inner, K[:, c:])


def _spread(F: np.ndarray, weight: np.ndarray) -> float:
    """Root mean square of the scores about each row's mean."""
    about = F - F.mean(axis=1, keepdims=True)
    return float(np.sqrt(weight @ np.sum(about * about, axis=1))) or 1.0
