"""The adjustment of domains as a transformer: z-scores by batch, plate, site or subject."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skdare.arrays import take
from skdare.checks import check_choice, check_domains, check_number
from skdare.fitting.problem import Label
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.moments import Moments
from skdare.whitening.prior import PriorRows
from skdare.whitening.roots import root_of_matrix
from skdare.whitening.whitening import Whitening

Strategy = Literal["standardize", "center", "whiten"]

# Of the usual variance of a feature: what it varies by at least, so that one that is all but
# constant in a domain is not blown up to noise.
_LEAST_VARIANCE = 1e-2


class DomainAdjuster(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Bring the rows of every domain to a common place and scale.

    It is what is often done by hand: subtract each batch's mean and divide by its standard
    deviations. Rows of a new domain are adjusted by their own moments as far as there are enough of
    them, and by the average of the training domains for the rest.

    Parameters
    ----------
    strategy : {"standardize", "center", "whiten"}, default="standardize"
        Subtract each domain's mean, and divide by its standard deviations, or whiten by its
        covariance.
    shrinkage : float in [0, 1], default=0.5
        How far correlations are shrunk before they are whitened; 1.0 only standardises.
    prior_rows : float, optional
        The average of the training domains counts as this many rows of a new domain; 0 goes by the
        new rows alone. Default: what it is worth by how much the domains differ.

    Attributes
    ----------
    domains_ : list of domain labels
    moments_ : dict of Moments by domain
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from skdare import DomainAdjuster
    >>> X = np.array([[1.0], [3.0], [10.0], [14.0]])
    >>> adjuster = DomainAdjuster()
    >>> adjuster.fit_transform(X, domains=["a", "a", "b", "b"]).ravel()
    array([-1.,  1., -1.,  1.])
    """

    # Routing works without a global switch and without set_fit_request.
    __metadata_request__fit: ClassVar = {"domains": True}
    __metadata_request__partial_fit: ClassVar = {"domains": True}
    __metadata_request__transform: ClassVar = {"domains": True}

    def __init__(
        self,
        strategy: Strategy = "standardize",
        *,
        shrinkage: float = 0.5,
        prior_rows: float | None = None,
    ) -> None:
        self.strategy = strategy
        self.shrinkage = shrinkage
        self.prior_rows = prior_rows

    def fit(self, X: Any, y: Any = None, domains: Collection[Label] | None = None) -> Self:
        """Learn the moments of the training domains.

        Parameters
        ----------
        X : array of shape (n, d)
        y : ignored
        domains : sequence of n labels, optional
            None is one domain, and then rows are transformed as of that domain, too.

        Returns
        -------
        self
        """
        return self._add(X, domains, {})

    def partial_fit(self, X: Any, y: Any = None, domains: Collection[Label] | None = None) -> Self:
        """Take more rows of domains, known or new, as of a stream.

        Parameters
        ----------
        X, y, domains
            As for `fit`.

        Returns
        -------
        self
        """
        return self._add(X, domains, getattr(self, "moments_", {}))

    def _add(
        self, X: Any, domains: Collection[Label] | None, moments: dict[Label, Moments]
    ) -> Self:
        check_choice("strategy", self.strategy, get_args(Strategy))
        check_number("shrinkage", self.shrinkage, 0.0, 1.0)
        check_number("prior_rows", self.prior_rows, also=(None,))
        X = _rows(self, X, reset=not moments)
        labels, index = check_domains(domains, np.ones(len(X)))
        moments = dict(moments)
        for label, rows in zip(labels, index, strict=True):
            new = Moments.of(X, rows)
            moments[label] = moments[label] + new if label in moments else new
        self.moments_ = moments
        self._is_one_domain = domains is None
        return self

    @property
    def domains_(self) -> list[Label]:
        return list(self.moments_)

    def transform(self, X: Any, domains: Collection[Label] | None = None) -> np.ndarray:
        """Adjust rows.

        Parameters
        ----------
        X : array of shape (n, d)
        domains : sequence of n labels, optional
            Rows of a domain that was fitted are adjusted by its moments, rows of any other by their
            own. None: all rows are of one new domain.

        Returns
        -------
        array of shape (n, d)
        """
        check_is_fitted(self, "moments_")
        X = _rows(self, X, reset=False)
        labels, index = check_domains(domains, np.ones(len(X)))
        Z = np.empty_like(X)
        for label, rows in zip(labels, index, strict=True):
            known = label in self.moments_ and (domains is not None or self._is_one_domain)
            if known:
                moments = self.moments_[label]
                W, shift = self._adjustment(moments), moments.mean
            else:
                W, shift = self._for_new_domain(Moments.of(X, rows))
            Z[rows] = W.back((take(X, rows) - shift).T).T
        return Z

    def fit_transform(
        self, X: Any, y: Any = None, domains: Collection[Label] | None = None
    ) -> np.ndarray:
        """Learn the moments of the training domains, and adjust their rows by them.

        Parameters
        ----------
        X, y, domains
            As for `fit`.

        Returns
        -------
        array of shape (n, d)
        """
        return self.fit(X, y, domains).transform(X, domains)

    def _adjustment(self, moments: Moments) -> Adjustment:
        """By which rows are multiplied, less their mean."""
        if self.strategy == "center":
            return Adjustment(1.0)
        # In units of the usual variance of each feature, so that no feature's unit matters.
        usual = np.mean([m.variances for m in self.moments_.values()], axis=0)
        usual = np.where(usual > 0, usual, 1.0)
        inverse = np.maximum(moments.variances, _LEAST_VARIANCE * usual) ** -0.5
        whitens = self.strategy == "whiten" and self.shrinkage < 1.0
        if not whitens or not moments.trace > 0:
            return Adjustment(inverse)
        R = inverse[:, None] * moments.second_moment(centered=True) * inverse
        root = root_of_matrix(R, self.shrinkage, self.shrinkage, np.float64).matrix
        assert root is not None
        return Adjustment(0.0, inverse[:, None] * root)

    def _for_new_domain(self, moments: Moments) -> tuple[Adjustment, np.ndarray]:
        """The adjustment, and what is subtracted, as far as there are enough rows."""
        known = list(self.moments_.values())
        if self.prior_rows is None:
            rho = 1.0 if self.strategy == "standardize" else self.shrinkage
            prior = PriorRows.of_domains(known, Whitening(True, True, rho, "diagonal"))
            trust = prior.trust(moments.n)
        else:
            trust = PriorRows(self.prior_rows, self.prior_rows).trust(moments.n)
        W = [self._adjustment(m) for m in (moments, *known)]
        rest = (1.0 - trust.adjustment) / len(known)
        mean = np.mean([m.mean for m in known], axis=0)
        shift = trust.mean * moments.mean + (1.0 - trust.mean) * mean
        return average(W, [trust.adjustment, *[rest] * len(known)]), shift

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _rows(adjuster: DomainAdjuster, X: Any, *, reset: bool) -> np.ndarray:
    return validate_data(adjuster, X, reset=reset, dtype=[np.float64, np.float32])
