"""Weights fitted to some labels of a new domain, and held to the weights before them.

Labelled rows of the new domain count one each. Rows like those in training, with the targets that
the weights B₀, b₀ expect there, count as p labels together:

    1/(n + p) [ Σ_i ℓ(z_iᵀB + b, y_i) + p E ℓ(zᵀB + b, E[y | zᵀB₀ + b₀]) ]
        + r/2 ‖B - p/(n + p) B₀‖²

r is the ridge of the fit to the training domains, in whose unit it is. Without labels the minimum
is B₀ and b₀; with p = 0 it is a fit to the new domain only. The best p differs by a factor of a
thousand between real sets, so it is estimated from the labels: fits for several p are averaged,
weighted by how well each predicts held-out labels.

Scores of a classifier are first scaled to fit the labels. If a new domain is fainter than those in
training, scores are too small, and labels of common classes would push out the others.

Notation: X (n, d) rows, Z (n, d) the same in canonical coordinates, T targets, B (d, k) canonical
weights, V (d, k) weights on raw features, b (k,) intercept, Q (d, q) an orthonormal basis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy import linalg
from scipy.special import logsumexp

from skdare.errors import InputError
from skdare.fitting.domain_fit import Adaptation, CanonicalFit, DomainFit, Weights, readjusted
from skdare.fitting.lagrangian import Formulation
from skdare.fitting.mixture import cholesky
from skdare.objective.losses import Loss
from skdare.objective.objective import Block, Coordinates, Objective
from skdare.solvers.lbfgs import lbfgs
from skdare.solvers.newton import newton
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments, mean_variance

# Weights of the training domains, in labels, and the prior probability of each: normal in log10 p
# about 30. On half of the sets 30 was best at one label per class.
PRIOR_LABELS = (750.0, 150.0, 30.0, 6.0, 1.2)
_LOG_BELIEF = -0.5 * (np.log10(np.array(PRIOR_LABELS) / 30.0) / 0.5) ** 2
# Factors of the scores; their prior is normal in log about one.
_SCALES = np.exp(np.linspace(-3.0, 3.0, 61))
_FOLDS = 4
# Maximum probability that a training row is of a new class.
_UNHEARD_OF = 1e-3
# More labels than this are held out in two halves, which is precise enough and quicker.
_MANY = 500
# Fits that are only compared, or averaged with others, need not be solved to the last digit.
_TOLERANCE = 1e-3
_STEPS = 60
# Rows like those in training: twice as many as features, so that every direction is held, and
# enough to know it well.
_FEWEST_REPLAYED = 1000
_MOST_REPLAYED = 1 << 24


@dataclass(frozen=True, eq=False)
class Labelled:
    """Labelled rows of a new domain, in canonical coordinates."""

    Z: np.ndarray
    T: np.ndarray  # class numbers, or standardised targets
    weight: np.ndarray  # the number of labels that each row counts as

    def __getitem__(self, index: np.ndarray) -> Labelled:
        return Labelled(self.Z[index], self.T[index], self.weight[index])


@dataclass(frozen=True, eq=False)
class Before:
    """Weights before the labels, and rows like those in training."""

    B: np.ndarray
    b: np.ndarray
    rows: np.ndarray  # (m, d), like those in training
    how: Formulation
    ridge: float  # its l2 in these coordinates

    def weights(
        self, labelled: Labelled, loss: Loss, columns: int, prior_labels: float | None
    ) -> Weights:
        """Canonical weights for the new domain.

        With new classes they have more ``columns`` than the weights before. Without
        ``prior_labels``, what the training domains count as, they are the average over what that
        may be, by the labels' own evidence.
        """
        before = self
        if not loss.is_quadratic:
            old = labelled
            if columns > self.B.shape[1]:
                before = self._by_class()
                old = labelled[before.B.shape[1] > labelled.T]
            before = before._scaled(old, loss)._with_columns(columns)
        if prior_labels is not None:
            return next(before.fits(labelled, loss, [prior_labels]))
        how = self.how
        how = replace(how, tol=max(how.tol, _TOLERANCE), max_iter=min(how.max_iter, _STEPS))
        Q = before._basis(labelled.Z)
        before = replace(before, B=Q.T @ before.B, rows=before.rows @ Q, how=how)
        labelled = replace(labelled, Z=labelled.Z @ Q)
        shares = before.shares(labelled, loss)
        fits = list(before.fits(labelled, loss, PRIOR_LABELS))
        B = sum(share * B for share, (B, _) in zip(shares, fits, strict=True))
        b = sum(share * b for share, (_, b) in zip(shares, fits, strict=True))
        return Q @ B, b

    def fits(self, labelled: Labelled, loss: Loss, priors: Sequence[float]) -> Iterator[Weights]:
        """The weights for each number of labels that the training domains may count as."""
        how = self.how
        d, k = self.B.shape
        n = labelled.weight.sum()
        m = len(self.rows)
        T = labelled.T[:, None]
        T = (np.arange(k) == T) if k > 1 else T
        # The targets at which scores have no residual are those that they stand for.
        F = self.rows @ self.B + self.b
        _, expected = loss.value_and_residual(F.T, np.zeros((m, k)))
        T = np.concatenate([T.astype(np.float64), expected.T])
        Z = np.concatenate([labelled.Z, self.rows])
        coordinates = Coordinates.plain(d, intercept=how.intercept)
        theta = coordinates.pack(self.B, self.b)
        for prior in priors:
            share = prior / (n + prior)
            weight = np.concatenate([(1 - share) * labelled.weight / n, np.full(m, share / m)])
            rows = Block(Z, slice(0, len(Z)), T, weight, Adjustment(1.0))
            objective = Objective([rows], loss, coordinates, self.ridge, centre=share * self.B)
            if loss.is_quadratic:
                theta = newton(objective, objective.hessian(0.0 * theta), tol=how.tol).theta
            else:
                theta = lbfgs(objective, theta, tol=how.tol, max_iter=how.max_iter).theta
            yield coordinates.unpack(theta)

    def shares(self, labelled: Labelled, loss: Loss) -> np.ndarray:
        """Weight of each fit: prior probability times the likelihood of held-out labels."""
        groups = _groups(labelled.T, classes=not loss.is_quadratic)
        tested = groups >= 0
        losses = np.zeros((len(PRIOR_LABELS), len(groups)))
        for group in np.unique(groups[tested]):
            new = labelled[groups == group]
            fits = self.fits(labelled[groups != group], loss, PRIOR_LABELS)
            for p, (B, b) in enumerate(fits):
                losses[p, groups == group] = loss.value_and_residual((new.Z @ B + b).T, new.T)[0]
        evidence = _LOG_BELIEF
        if tested.any():
            weight = labelled.weight[tested]
            surprise = losses[:, tested] @ weight
            if loss.is_quadratic:  # of normal errors with the variance that is most likely
                n = weight.sum()
                surprise = 0.5 * n * np.log(np.maximum(surprise / n, np.finfo(float).tiny))
            evidence = evidence - surprise
        shares = np.exp(evidence - evidence.max())
        return shares / shares.sum()

    def _scaled(self, labelled: Labelled, loss: Loss) -> Before:
        """The same weights times one number, under which the labels are most likely."""
        F = (labelled.Z @ self.B + self.b).T
        losses = [
            labelled.weight @ loss.value_and_residual(scale * F, labelled.T)[0]
            + 0.5 * np.log(scale) ** 2
            for scale in _SCALES
        ]
        scale = _SCALES[int(np.argmin(losses))]
        return replace(self, B=scale * self.B, b=scale * self.b)

    def _by_class(self) -> Before:
        """The same weights with a column for each class, where two share one."""
        if self.B.shape[1] > 1:
            return self
        halves = np.array([-0.5, 0.5])
        return replace(self, B=self.B * halves, b=self.b * halves)

    def _with_columns(self, columns: int) -> Before:
        """The same weights, and new columns for classes that no row in training is of."""
        new = columns - self.B.shape[1]
        if not new:
            return self
        lowest = float(logsumexp(self.rows @ self.B + self.b, axis=1).min())
        b = np.append(self.b, np.full(new, lowest + np.log(_UNHEARD_OF)))
        return replace(self, B=np.pad(self.B, ((0, 0), (0, new))), b=b)

    def _basis(self, Z: np.ndarray) -> np.ndarray:
        """Directions in which labels of these rows move the weights.

        Under a squared loss and a small ridge that is Σ⁻¹z for each row z, and Σ⁻¹μ, with Σ and μ
        the second moment and the mean of the rows like those in training; under others nearly so.
        Few labels thus need few dimensions. The weights themselves belong to it, as they may
        shrink.
        """
        d, k = self.B.shape
        if len(Z) + 1 + k >= d:
            return np.eye(d)
        second_moment = self.rows.T @ self.rows / len(self.rows)
        second_moment[np.diag_indices(d)] += max(self.ridge, 1e-6 * np.trace(second_moment) / d)
        points = np.concatenate([Z, self.rows.mean(axis=0)[None, :]])
        moved = linalg.solve(second_moment, points.T, assume_a="pos")
        sizes = np.linalg.norm(moved, axis=0)
        moved = moved / np.where(sizes > 0, sizes, 1.0)
        own = self.B / (np.linalg.norm(self.B) or 1.0)
        return linalg.orth(np.concatenate([moved, own], axis=1))


def _groups(T: np.ndarray, *, classes: bool) -> np.ndarray:
    """The number of the group that each row is held out with; -1 if it never is.

    The only labelled row of a class stays: without it no fit could predict its class.
    """
    count = 2 if len(T) > _MANY else min(_FOLDS, len(T))
    if count < 2:
        return np.full(len(T), -1)
    rng = np.random.default_rng(0)
    # Rows of a class, or of near targets, go to different groups.
    order = np.lexsort((rng.random(len(T)), T))
    groups = np.empty(len(T), dtype=int)
    groups[order] = np.arange(len(T)) % count
    if classes:
        groups[np.bincount(T)[T] < 2] = -1
    return groups


@dataclass(frozen=True, eq=False)
class StartingPoint:
    """Weights of a head before it is fitted to labels, and the coordinates of that fit."""

    before: Before
    adjustment: Adjustment

    @classmethod
    def adapted(cls, fit: DomainFit, adaptation: Adaptation, own: CanonicalFit) -> Self:
        """A head that was adapted to the domain."""
        formulation = adaptation.fit.formulation
        moments, adjustments = _varying(fit)
        whitenings = (fit.unseen.formulation.whitening, formulation.whitening)
        adjustments = readjusted(adjustments, *whitenings, moments, np.float64)
        rows = replayed_rows(moments, adjustments)
        ridge = formulation.whitening.ridge(fit.moments, formulation.l2)
        before = Before(own.B, own.b, rows, formulation, ridge)
        return cls(before, own.adjustment)

    @classmethod
    def unadapted(cls, fit: DomainFit) -> Self:
        """A head that was never adapted, in the unit of the features."""
        formulation = fit.unseen.formulation
        V, b = fit.unseen.raw_weights()
        moments, _ = _varying(fit)
        unit = mean_variance(moments)
        # Without an intercept the origin of the features is where it is.
        shift = np.mean([m.mean for m in moments], axis=0) if formulation.intercept else None
        adjustment = Adjustment(unit**-0.5, shift=shift)
        rows = replayed_rows(moments, [adjustment] * len(moments))
        b = b if shift is None else b + shift @ V
        before = Before(V * unit**0.5, b, rows, formulation, formulation.l2)
        return cls(before, adjustment)

    def with_labels(
        self, labelled: Labelled, loss: Loss, columns: int, prior_labels: float | None
    ) -> Weights:
        """V and b after some labelled rows, given on raw features; see `Before.weights`."""
        Z = self.adjustment.rows(labelled.Z)
        B, b = self.before.weights(replace(labelled, Z=Z), loss, columns, prior_labels)
        return self.adjustment.raw_weights(B, b)


def _varying(fit: DomainFit) -> tuple[list[Moments], list[Adjustment]]:
    """Moments and adjustments of the training domains whose rows differ."""
    pairs = zip(fit.moments, fit.adjustments, strict=True)
    varying = [(m, W) for m, W in pairs if m.trace > 0]
    if not varying:
        raise InputError(
            "the rows of every training domain are all the same, and labels cannot be weighed "
            "against them",
            "fit to domains of several rows",
        )
    return [m for m, _ in varying], [W for _, W in varying]


def replayed_rows(moments: Sequence[Moments], adjustments: Sequence[Adjustment]) -> np.ndarray:
    """Gaussian rows in canonical coordinates with the moments that a head keeps of its training.

    The same number from every domain; of very many domains some are drawn from, evenly spread.
    """
    d = len(moments[0].mean)
    whole = min(max(_FEWEST_REPLAYED, 2 * d), max(_MOST_REPLAYED // d, 2))
    each = -(-whole // len(moments))
    chosen = np.unique(np.linspace(0, len(moments) - 1, min(len(moments), whole)).round())
    rng = np.random.default_rng(0)
    drawn = []
    for e in chosen.astype(int):
        m = moments[e]
        if m.rows is not None:
            rows = m.rows[:-1].astype(np.float64)
            X = rng.standard_normal((each, len(rows))) @ rows / m.n**0.5
        else:
            L = np.tril(cholesky(m.second_moment(centered=True))[0])
            X = rng.standard_normal((each, d)) @ L.T
        drawn.append(adjustments[e].rows(X + m.mean))
    return np.concatenate(drawn)
