"""Weights that take some labels of a new domain, and are held to what they were before.

Labelled rows of the new domain count one each. Rows like those in training, with the targets that
the weights B₀, b₀ expect there, count as p labels together:

    1/(n + p) [ Σ_i ℓ(z_iᵀB + b, y_i) + p E ℓ(zᵀB + b, E[y | zᵀB₀ + b₀]) ]
        + l2/2 ‖B - p/(n + p) B₀‖²

Without labels that is least at B₀ and b₀; with p = 0 it is a fit to the new domain alone. How much
the training domains are worth differs by a factor of a thousand between real sets, so the labels
say it: fits for several p are averaged by how well each predicts labels that it was not given.

Scores of classes are first scaled as the labels have it. Where a new domain is fainter than those
in training, a head is less sure than it should be, and labels of common classes would push out the
others.

Notation: Z (n, d) rows in canonical coordinates, T targets, B (d, k) weights, b (k,) intercept, Q
(d, q) an orthonormal basis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg
from scipy.special import logsumexp

from skdare.fitting.canonical_fit import CanonicalWeights
from skdare.fitting.solver_options import SolverOptions
from skdare.objective.coordinates import Coordinates
from skdare.objective.losses import Loss
from skdare.objective.objective import Objective
from skdare.objective.rows import DomainBlock, WeightedRows
from skdare.whitening.adjustment import Adjustment

# What the training domains may count as, in labels, and what is thought of each before any label is
# looked at: normal in log10 p about 30. On half of the sets 30 was best at one label a class.
PRIOR_LABELS = (750.0, 150.0, 30.0, 6.0, 1.2)
_LOG_BELIEF = -0.5 * (np.log10(np.array(PRIOR_LABELS) / 30.0) / 0.5) ** 2
# By what scores may be scaled; before any label is looked at, normal in log about one.
_SCALES = np.exp(np.linspace(-3.0, 3.0, 61))
_FOLDS = 4
# Rows in training are not of a class that nobody had seen; this likely to be, at most.
_UNHEARD_OF = 1e-3
# More labels than this are left out in two halves: they tell enough, and each fit takes longer.
_MANY = 500
# Fits that are only compared, or averaged with others, need not be solved to the last digit.
_TOLERANCE = 1e-3
_STEPS = 60


@dataclass(frozen=True, eq=False)
class Labelled:
    """Labelled rows of a new domain, in canonical coordinates.

    Parameters
    ----------
    Z : array of shape (n, d)
    T : array of shape (n,)
        Class numbers, or standardised targets.
    weight : array of shape (n,)
        The number of labels that each row counts as.
    """

    Z: np.ndarray
    T: np.ndarray
    weight: np.ndarray

    def __getitem__(self, index: np.ndarray) -> Labelled:
        return Labelled(self.Z[index], self.T[index], self.weight[index])


@dataclass(frozen=True, eq=False)
class Anchor:
    """What weights are held to while they take labels.

    Parameters
    ----------
    B, b : arrays of shape (d, k) and (k,)
        The weights before.
    rows : array of shape (m, d)
        Rows like those in training.
    ridge : float
    """

    B: np.ndarray
    b: np.ndarray
    rows: np.ndarray
    ridge: float

    def fits(
        self, labelled: Labelled, loss: Loss, options: SolverOptions, priors: Sequence[float]
    ) -> Iterator[CanonicalWeights]:
        """The weights for each number of labels that the training domains may count as."""
        d, k = self.B.shape
        coordinates = Coordinates(d, k, options.intercept)
        theta = coordinates.pack(self.B, self.b)
        n = labelled.weight.sum()
        new = _block(labelled.Z, labelled.T, labelled.weight / n)
        m = len(self.rows)
        before = _block(self.rows, loss.expected(self.rows @ self.B + self.b), np.full(m, 1.0 / m))
        for prior in priors:
            share = prior / (n + prior)
            objective = Objective(
                [new, before] if share else [new],
                loss,
                coordinates,
                self.ridge,
                centre=share * self.B,
                block_weights=[1.0 - share, share] if share else None,
            )
            theta = options.minimise(objective, theta).theta
            B, b = coordinates.unpack(theta)
            yield B, b

    def weights(
        self,
        labelled: Labelled,
        loss: Loss,
        options: SolverOptions,
        columns: int,
        prior_labels: float | None = None,
    ) -> CanonicalWeights:
        """Weights for the new domain.

        Where there are new classes, they have more ``columns`` than the weights before. Without
        ``prior_labels``, what the training domains count as, they are the average over what
        that may be, by the labels' own evidence.
        """
        if not loss.of_classes:
            scaled = self
        elif columns == self.B.shape[1]:
            scaled = self._scaled(labelled, loss)
        else:
            by_class = self._by_class()
            classes = by_class.B.shape[1]
            of_known_classes = labelled[classes > labelled.T]
            scaled = by_class._scaled(of_known_classes, loss)._with_columns(columns)
        if prior_labels is not None:
            return next(scaled.fits(labelled, loss, options, [prior_labels]))
        options = replace(
            options, tol=max(options.tol, _TOLERANCE), max_iter=min(options.max_iter, _STEPS)
        )
        Q = scaled._basis(labelled.Z)
        reduced = replace(scaled, B=Q.T @ scaled.B, rows=self.rows @ Q)
        rows = replace(labelled, Z=labelled.Z @ Q)
        shares = reduced.shares(rows, loss, options)
        fits = list(reduced.fits(rows, loss, options, PRIOR_LABELS))
        B = sum(share * B for share, (B, _) in zip(shares, fits, strict=True))
        b = sum(share * b for share, (_, b) in zip(shares, fits, strict=True))
        return Q @ B, b

    def shares(self, labelled: Labelled, loss: Loss, options: SolverOptions) -> np.ndarray:
        """What each fit counts: by labels that were left out, and by what was thought before."""
        groups = _groups(labelled.T, classes=loss.of_classes)
        losses = np.zeros((len(PRIOR_LABELS), len(groups)))
        tested = np.flatnonzero(groups >= 0)
        for group in np.unique(groups[tested]):
            left_out = labelled[groups == group]
            fits = self.fits(labelled[groups != group], loss, options, PRIOR_LABELS)
            for p, (B, b) in enumerate(fits):
                losses[p, groups == group] = loss.value_and_residual(
                    left_out.Z @ B + b, left_out.T
                )[0]
        evidence = _LOG_BELIEF
        if len(tested):
            evidence = evidence - loss.surprise(losses[:, tested], labelled.weight[tested])
        shares = np.exp(evidence - evidence.max())
        return shares / shares.sum()

    def _scaled(self, labelled: Labelled, loss: Loss) -> Anchor:
        """The same weights times one number, under which the labels are most likely."""
        F = labelled.Z @ self.B + self.b
        losses = [
            loss.weighted(scale * F, labelled.T, labelled.weight)[0] + 0.5 * np.log(scale) ** 2
            for scale in _SCALES
        ]
        scale = _SCALES[int(np.argmin(losses))]
        return replace(self, B=scale * self.B, b=scale * self.b)

    def _by_class(self) -> Anchor:
        """The same weights with a column for each class, where two share one."""
        if self.B.shape[1] > 1:
            return self
        halves = np.array([-0.5, 0.5])
        return replace(self, B=self.B * halves, b=self.b * halves)

    def _with_columns(self, columns: int) -> Anchor:
        """The same weights, and new columns for classes that no row in training is of."""
        new = columns - self.B.shape[1]
        lowest = float(logsumexp(self.rows @ self.B + self.b, axis=1).min())
        return replace(
            self,
            B=np.pad(self.B, ((0, 0), (0, new))),
            b=np.append(self.b, np.full(new, lowest + np.log(_UNHEARD_OF))),
        )

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
    """The number of the group that each row is left out with; -1 where it never is.

    The only labelled row of a class stays: without it nobody could predict its class.
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


def _block(Z: np.ndarray, T: np.ndarray, weight: np.ndarray) -> DomainBlock:
    """Rows that are adjusted already."""
    rows = WeightedRows(Z, slice(0, len(Z)), T, weight)
    return DomainBlock(Adjustment(Z.shape[1], 1.0), (rows,))
