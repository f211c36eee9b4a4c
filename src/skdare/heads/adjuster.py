"""The adjustment of domains as a transformer: z-scores by batch, plate, site or subject."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skdare.arrays import take
from skdare.checks import Label, check_choice, check_domains, check_number
from skdare.errors import note
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.moments import Moments
from skdare.whitening.prior import PriorRows
from skdare.whitening.roots import root_of_matrix
from skdare.whitening.whitening import Whitening

# Of the usual variance of a feature: its least variance in a domain, which avoids amplifying the
# noise of a feature that is all but constant there.
_LEAST_VARIANCE = 1e-2


class DomainAdjuster(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Transformer that centres, standardises or whitens the rows of each domain.

    It is what is often done by hand: subtract each batch's mean and divide by its standard
    deviations. Rows of a new domain are adjusted by their own moments if there are enough of them,
    and otherwise blended with the average adjustment of the training domains.

    In a Pipeline the domains must reach `transform` as well as `fit`: enable scikit-learn's
    metadata routing (``sklearn.set_config(enable_metadata_routing=True)``) and pass ``domains=`` to
    the Pipeline or to `cross_validate`. Without it, all rows that it predicts are adjusted as one
    domain. The heads need no such step: they adjust by themselves.

    Parameters
    ----------
    strategy : {"standardize", "center", "whiten"}, default="standardize"
        Whether to subtract each domain's mean and divide by its standard deviations, only subtract,
        or subtract and whiten by its covariance.
    shrinkage : float in [0, 1], default=0.5
        Shrinkage of correlations before whitening; 1.0 only standardises.
    prior_rows : float, optional
        Weight of the training domains' average, in rows of a new domain; 0 uses only the new rows.
        Default: estimated from how much the training domains differ.

    Attributes
    ----------
    domains_ : list of domain labels
    moments_ : dict of Moments by domain
    n_features_in_ : int

    See Also
    --------
    DAREClassifier : adjusts within a linear model, without a copy of the rows.

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
        strategy: Literal["standardize", "center", "whiten"] = "standardize",
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
            None is one domain, of which rows to transform are then, too.

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
        check_choice("strategy", self.strategy, ("standardize", "center", "whiten"))
        check_number("shrinkage", self.shrinkage, 0.0, 1.0)
        check_number("prior_rows", self.prior_rows, also=(None,))
        X = _rows(self, X, reset=not moments)
        labels, index = check_domains(domains, np.ones(len(X)))
        if domains is None:
            note("DomainAdjuster was given no domains and treats all rows as one; pass domains=")
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
        if domains is None and not self._is_one_domain:
            note(
                "DomainAdjuster.transform was given no domains and adjusts all rows as one new "
                "domain; pass domains=, in a Pipeline with metadata routing enabled"
            )
        Z = np.empty_like(X)
        for label, rows in zip(labels, index, strict=True):
            if label in self.moments_ and (domains is not None or self._is_one_domain):
                adjustment = self._adjustment(self.moments_[label])
            else:
                adjustment = self._of_new_domain(Moments.of(X, rows))
            Z[rows] = adjustment.rows(take(X, rows))
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
        shift = moments.mean
        if self.strategy == "center":
            return Adjustment(1.0, shift=shift)
        # In units of the usual variance of each feature, so that no feature's unit matters.
        usual = np.mean([m.variances for m in self.moments_.values()], axis=0)
        usual = np.where(usual > 0, usual, 1.0)
        inverse = np.maximum(moments.variances, _LEAST_VARIANCE * usual) ** -0.5
        whitens = self.strategy == "whiten" and self.shrinkage < 1.0
        if not whitens or not moments.trace > 0:
            return Adjustment(inverse, shift=shift)
        R = inverse[:, None] * moments.second_moment(centered=True) * inverse
        root = root_of_matrix(R, self.shrinkage, self.shrinkage, np.float64).matrix
        assert root is not None
        return Adjustment(0.0, inverse[:, None] * root, shift=shift)

    def _of_new_domain(self, moments: Moments) -> Adjustment:
        """The adjustment of its own moments, blended with the training domains' average."""
        known = list(self.moments_.values())
        if self.prior_rows is None:
            rho = 1.0 if self.strategy == "standardize" else self.shrinkage
            prior = PriorRows.of_domains(known, Whitening(True, True, rho, "diagonal"))
        else:
            prior = PriorRows(self.prior_rows, self.prior_rows)
        others = [self._adjustment(m) for m in known]
        rest = average(others, [1.0 / len(others)] * len(others))
        return prior.trust(moments.n).blend(self._adjustment(moments), rest)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _rows(adjuster: DomainAdjuster, X: Any, *, reset: bool) -> np.ndarray:
    return validate_data(adjuster, X, reset=reset, dtype=[np.float64, np.float32])
