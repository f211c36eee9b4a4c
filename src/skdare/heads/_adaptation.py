"""Just-in-time adaptation: new weights for a new domain from its unlabelled rows alone."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

from skdare._array import take, to_numpy
from skdare._validation import check_count, check_features, check_number, warn
from skdare.adjustment import Adjustment, Spectrum, average
from skdare.domain_statistics import guess_adjustment
from skdare.engines import as_rows
from skdare.heads._adjusted import Fitted, Plan
from skdare.heads._base import class_numbers
from skdare.moments import Moments, pooled_second_moment
from skdare.objective import linear_scores


class LabelShiftWarning(UserWarning):
    """The new rows seem to have other class shares than the training rows."""


@dataclass(frozen=True, eq=False)
class Adaptation:
    """What a head keeps so that it can adapt: canonical weights and how to adjust for a domain.

    Parameters
    ----------
    plan : Plan
    fitted : Fitted
    guess : Adjustment
        The averaged adjustment, towards which few rows are blended.
    pool : array of shape (d, d), optional
        The pooled second moment, where shrinkage goes towards it.
    """

    plan: Plan
    fitted: Fitted
    guess: Adjustment
    pool: np.ndarray | None

    @classmethod
    def of(
        cls,
        plan: Plan,
        fitted: Fitted,
        labels: Sequence[Hashable],
        moments: Sequence[Moments],
    ) -> Adaptation:
        """On the host, from a fit without penalty."""
        whitening, pool = plan.whitening, None
        guess = guess_adjustment("mean", fitted.adjustments, labels, moments, whitening)
        if whitening.target == "pooled":
            pool = to_numpy(pooled_second_moment(moments, centered=whitening.centered))
        return cls(plan, replace(fitted, adjustments=[]), guess.to_numpy(), pool)

    def weights(
        self, moments: Moments, rows: np.ndarray | None, prior_rows: float
    ) -> tuple[Adjustment, Any, Any]:
        """Adjustment, weights and intercept for a domain with these moments.

        Where the rows themselves are given, fewer than features, they make the thin route.
        """
        trust, spectrum = moments.n / (moments.n + prior_rows), None
        if rows is not None and self.pool is None:
            Z = rows - moments.mean if self.plan.whitening.centered else rows
            spectrum = Spectrum.of_rows(Z, moments.n)
        own = self.plan.whitening.of_moments(moments, spectrum, self.pool, None)
        W = own if trust == 1.0 else average([own, self.guess], [trust, 1.0 - trust])
        shift = None
        if self.plan.form.subtract:
            shift = trust * moments.mean + (1.0 - trust) * self.fitted.mean
        return W, *self.fitted.weights(W, shift)


class Adapter:
    """Takes the unlabelled rows of a new domain, in any chunks, and gives the adapted head.

    Parameters
    ----------
    head : fitted DARE head
        Never modified.
    prior_rows : float, optional
        The averaged adjustment counts as this many rows of the new domain; 0 is a hard switch.
        Default: the number of features.
    min_rows : int, default=2
        Rows below which ``head_`` refuses.

    Attributes
    ----------
    head_ : adapted head, a new object made from all rows seen so far
    n_seen_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from skdare import DARERegressor
    >>> from skdare.datasets import make_latent_domains
    >>> data = make_latent_domains(task="regression", random_state=0)
    >>> train, new = data.domains != 3, data.X[data.domains == 3]
    >>> head = DARERegressor().fit(data.X[train], data.y[train], domains=data.domains[train])
    >>> adapter = head.adapter()
    >>> for chunk in np.array_split(new, 5):
    ...     adapter = adapter.partial_fit(chunk)
    >>> adapter.n_seen_
    300
    >>> bool(np.allclose(adapter.head_.coef_, head.adapt(new).coef_))
    True
    """

    def __init__(self, head: Any, *, prior_rows: float | None = None, min_rows: int = 2) -> None:
        check_number("prior_rows", prior_rows, also=(None,))
        check_count("min_rows", min_rows, 2)
        _check_adaptable(head)
        self._head = head
        self._prior_rows = head.n_features_in_ if prior_rows is None else prior_rows
        self._min_rows = min_rows
        self._active = getattr(head, "adapts_", True)
        self._moments: Moments | None = None
        self._rows: list[np.ndarray] | None = []
        self._counts = np.zeros(len(getattr(head, "classes_", ())))
        self.n_seen_ = 0

    def __repr__(self) -> str:
        return f"Adapter({type(self._head).__name__}, {self.n_seen_} rows seen)"

    def partial_fit(self, X) -> Self:
        """Take more rows of the new domain.

        Parameters
        ----------
        X : array of shape (m, d)

        Returns
        -------
        self
        """
        X = check_features(self._head, as_rows(X), reset=False)
        self.n_seen_ += X.shape[0]
        if not self._active:
            return self
        moments = Moments.of(X).to_numpy()
        self._moments = moments if self._moments is None else self._moments + moments
        self._keep_rows(X)
        if len(self._counts):
            # The unadapted head's predictions: the only ones that do not depend on the chunking.
            V, b = np.atleast_2d(self._head.coef_).T, self._head.intercept_
            numbers = class_numbers(linear_scores(X, slice(0, X.shape[0]), V, b))
            self._counts += np.bincount(numbers, minlength=len(self._counts))
        return self

    def _keep_rows(self, X) -> None:
        """Keep the rows themselves while they are fewer than features and dense."""
        if self._rows is None or self.n_seen_ >= self._head.n_features_in_ or sparse.issparse(X):
            self._rows = None
        else:
            rows = to_numpy(take(X, slice(0, X.shape[0])))
            self._rows.append(np.array(rows, dtype=np.float64))

    @property
    def head_(self):
        """The head for the rows seen so far; the head it came from is untouched."""
        if self.n_seen_ < self._min_rows:
            raise ValueError(
                f"adapting needs at least {self._min_rows} rows of the new domain, and "
                f"{self.n_seen_} were given"
            )
        head = copy.copy(self._head)
        if not self._active:
            warn(
                f"adapting changed nothing: {head.choice_}; set strategies=('raw', 'centered') to "
                "adapt all the same"
            )
            return head
        assert self._moments is not None
        rows, adaptation = np.concatenate(self._rows) if self._rows else None, head.adaptation_
        W, V, b = adaptation.weights(self._moments, rows, self._prior_rows)
        head.adjustment_, head.adapted_rows_ = W, self.n_seen_
        head.canonical_coef_, head.solution_ = adaptation.fitted.B.T, adaptation.fitted.solution
        head._set_weights(V, b)
        warn_of_outliers({"(new)": self._moments})
        self._warn_of_label_shift()
        return head

    def _warn_of_label_shift(self) -> None:
        if not len(self._counts):
            return
        shares = self._counts / self._counts.sum()
        known = self._head.predicted_shares_
        distance = 0.5 * float(np.abs(shares - known).sum())
        limit = self._head.predicted_share_range_ + 0.5 * np.sqrt(len(known) / self.n_seen_)
        if distance > limit:
            worst = int(np.argmax(np.abs(shares - known)))
            warn(
                f"predicted class shares are {distance:.0%} away from those in training "
                f"(class {self._head.classes_[worst]}: {shares[worst]:.0%}, was "
                f"{known[worst]:.0%}), further than any training domain; if the classes "
                "themselves are rarer or more common there, aligning moments can hurt: "
                "compare with the head before adapt",
                LabelShiftWarning,
            )


def warn_of_outliers(moments: Mapping[Hashable, Moments]) -> None:
    """Say where one or two rows decide a domain's second moment."""
    for label, m in moments.items():
        if m.dominated:
            warn(
                f"one or two of the rows of domain {label} hold most of their variance, and decide "
                "how the others are adjusted; look for outliers, or clip the features"
            )


def _check_adaptable(head: Any) -> None:
    if not hasattr(head, "solution_"):
        raise NotFittedError(
            f"this {type(head).__name__} is not fitted yet; call fit before adapt or adapter"
        )
    if head.adaptation_ is None and getattr(head, "adapts_", True):
        raise ValueError(
            f"this {type(head).__name__} cannot adapt: it was fitted with "
            f"adaptation=None or adjust=False; set adaptation='centered' or 'raw' and fit again"
        )
