"""Where labels of a new domain find a head: its weights, and the coordinates that they move in.

Notation: X (n, d) rows, Z (n, d) the same in canonical coordinates, B (d, k) canonical weights, V
(d, k) weights on raw features, b (k,) intercept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from skdare.fitting.canonical_fit import CanonicalWeights, raw_weights
from skdare.fitting.domain_fit import Adaptation, DomainFit
from skdare.fitting.formulation import FROM_MEAN, RAW, Formulation
from skdare.fitting.labelled_fit import Anchor, Labelled
from skdare.fitting.replay import replayed_rows
from skdare.fitting.solver_options import SolverOptions
from skdare.fitting.targets import Targets
from skdare.whitening.adjustment import Adjustment, back
from skdare.whitening.moments import Moments


@dataclass(frozen=True, eq=False)
class StartingPoint:
    """A head before it takes labels, in the coordinates of one domain.

    Parameters
    ----------
    anchor : Anchor
        Its canonical weights, and what holds them.
    adjustment : Adjustment
        Of the domain.
    shift : array of shape (d,), optional
        Subtracted from its rows.
    """

    anchor: Anchor
    adjustment: Adjustment
    shift: np.ndarray | None

    @classmethod
    def adapted(
        cls,
        fit: DomainFit,
        adaptation: Adaptation,
        weights: CanonicalWeights,
        adjustment: Adjustment,
        shift: np.ndarray | None,
    ) -> Self:
        """A head that was adapted: canonical weights, adjustment and shift of the new domain."""
        moments = _varying(fit)
        adjustments = [adaptation.adjustment(m, adaptation.spectrum(m)) for m in moments]
        rows = replayed_rows(moments, adjustments, adaptation.formulation)
        return cls(Anchor(*weights, rows, adaptation.formulation.l2), adjustment, shift)

    @classmethod
    def as_it_is(
        cls, fit: DomainFit, V: np.ndarray, b: np.ndarray, l2: float, *, intercept: bool
    ) -> Self:
        """A head that was never adapted, by its weights on raw features and its l2."""
        moments = _varying(fit)
        unit = _feature_unit(moments)
        adjustment = Adjustment(len(V), unit**-0.5)
        # Without an intercept the origin of the features is where it is.
        means = FROM_MEAN if intercept else RAW
        rows = replayed_rows(
            moments, [adjustment] * len(moments), Formulation(fit.whitening, means, l2)
        )
        shift = None
        if intercept:
            shift = np.mean([m.mean for m in moments], axis=0)
            b = b + shift @ V
        return cls(Anchor(V * unit**0.5, b, rows, l2), adjustment, shift)

    def with_labels(
        self,
        X: np.ndarray,
        T: np.ndarray,
        weight: np.ndarray,
        targets: Targets,
        options: SolverOptions,
        prior_labels: float | None,
    ) -> CanonicalWeights:
        """Canonical weights after some labelled rows; see `Anchor.weights`."""
        rows = X if self.shift is None else X - self.shift
        labelled = Labelled(back(self.adjustment, rows.T).T, T, weight)
        return self.anchor.weights(labelled, targets.loss, options, targets.columns, prior_labels)

    def raw_weights(self, weights: CanonicalWeights) -> tuple[np.ndarray, np.ndarray]:
        """V and b of canonical weights here."""
        return raw_weights(weights, self.adjustment, self.shift)


def _varying(fit: DomainFit) -> list[Moments]:
    """Moments of the training domains whose rows differ."""
    moments = [m for m in fit.moments.values() if m.varies()]
    if not moments:
        raise ValueError(
            "the rows of every training domain are all the same, and say nothing to weigh labels "
            "against; fit to domains of several rows"
        )
    return moments


def _feature_unit(moments: list[Moments]) -> float:
    """Mean variance of a feature over all rows: the unit of l2."""
    n = np.array([m.n for m in moments])
    means = np.stack([m.mean for m in moments])
    within = n @ np.stack([m.variances for m in moments]) / n.sum()
    between = n @ (means - n @ means / n.sum()) ** 2 / n.sum()
    return float(np.mean(within + between))
