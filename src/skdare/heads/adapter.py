"""Incremental adapter: the rows of a new domain as they come, and the head that they make."""

from __future__ import annotations

import copy
from os import PathLike
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from skdare.adapting.new_domain import NewDomain
from skdare.adapting.stream_file import save_stream
from skdare.arrays import Array
from skdare.errors import counted

if TYPE_CHECKING:
    from skdare.heads.adaptable import AdaptableHead

H = TypeVar("H", bound="AdaptableHead")


class Adapter(Generic[H]):
    """Incremental adapter for a new domain, made by ``head.adapter(...)``.

    It takes rows in any chunks and gives the adapted head. Rows need no labels; some may have one.

    Parameters
    ----------
    prior_rows : float, optional
        Weight of the training domains' average, in rows of the new domain; 0 is a hard switch.
        Default: estimated from how much the training domains differ; fewer than about 20 rows are
        then also blended with the unadapted head.
    half_life : float, optional
        Number of rows after which a row counts half, for a domain that drifts. Default: never.
    force : bool
        Adapt even if the safety check objects, and accept labels that contradict each other or are
        all of one class.
    prior_labels : float, optional
        Weight of the training domains, in labels of the new one; 0 is a fit to these only.
        Default: estimated from how well labels predict each other.
    new_classes : bool
        Whether labels may name classes that the head was not fitted to. The new head predicts
        these, too, and cannot be adapted again: to go on, give this adapter more rows.

    Attributes
    ----------
    n_seen_ : int
    head_ : head of the same class, made from all rows so far

    Examples
    --------
    >>> import numpy as np
    >>> from skdare import DARERegressor
    >>> from skdare.data import make_latent_domains
    >>> data = make_latent_domains(task="regression", random_state=0)
    >>> train, new = data.domains != 3, data.X[data.domains == 3]
    >>> head = DARERegressor().fit(data.X[train], data.y[train], domains=data.domains[train])
    >>> adapter = head.adapter()
    >>> for chunk in np.array_split(new, 5):
    ...     adapter = adapter.partial_fit(chunk)
    >>> bool(np.allclose(adapter.head_.coef_, head.adapt(new).coef_))
    True
    """

    def __init__(self, head: H, new_domain: NewDomain) -> None:
        self.head = copy.copy(head)  # as it is now: fitting the head again changes no stream
        self.new_domain = new_domain

    @property
    def n_seen_(self) -> int:
        return self.new_domain.stream.n_seen

    def partial_fit(self, X: Array, y: Any = None) -> Self:
        """Take more rows of the new domain.

        Parameters
        ----------
        X : array of shape (m, d)
        y : sequence of m labels, optional
            None, NaN or, for a classifier, -1 for a row without label.

        Returns
        -------
        self
        """
        self.new_domain.add(self.head._prepared(X), y)
        return self

    def check_labels(self) -> None:
        """Refuse labels that are most likely a mistake, unless they are taken by force."""
        self.new_domain.check_labels()

    @property
    def head_(self) -> H:
        return self.head._with_weights(self.new_domain.weights())

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state of the stream to a file, which ``head.resume`` goes on from.

        The file is replaced in one step, and holds no code. The head itself is not in it.
        """
        save_stream(self.new_domain, path)

    def __repr__(self) -> str:
        return f"Adapter({type(self.head).__name__}, {counted(self.n_seen_, 'row')} seen)"
