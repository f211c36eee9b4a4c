"""Leave one domain out: the split under which a head is judged on a domain it has not seen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from skdare._validation import Labels, check_domains
from skdare.arrays import Array, Index


class LeaveOneDomainOut(BaseCrossValidator):
    """Hold out each domain in turn.

    ``domains`` may be any hashable labels; scikit-learn's ``groups`` is accepted for the same
    thing, so the splitter works in `cross_validate` with metadata routing on and off.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare import LeaveOneDomainOut
    >>> for train, test in LeaveOneDomainOut().split(np.zeros(4), domains=["a", "b", "b", "a"]):
    ...     print(train, test)
    [1 2] [0 3]
    [0 3] [1 2]
    """

    # scikit-learn reads these names: both arrive at `split` when routing is on.
    __metadata_request__split = {"domains": True, "groups": True}  # noqa: RUF012

    def split(
        self,
        X: Array,
        y: Array | None = None,
        groups: Labels | None = None,
        domains: Labels | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row numbers of (training domains, held-out domain), for each domain in turn.

        Parameters
        ----------
        X : array with n rows
        y : ignored
        groups, domains : sequence of n labels
            One of them.
        """
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        everything = np.arange(n)
        for index in self._index(n, groups, domains):
            test = everything[index]
            yield np.setdiff1d(everything, test, assume_unique=True), test

    def get_n_splits(
        self,
        X: Array | None = None,
        y: Array | None = None,
        groups: Labels | None = None,
        domains: Labels | None = None,
    ) -> int:
        """Number of splits, which is that of the domains."""
        labels = domains if domains is not None else groups
        if labels is None:
            raise ValueError("domains is None; pass one label per row as domains or groups")
        return len(self._index(len(labels), groups, domains))

    @staticmethod
    def _index(n: int, groups: Labels | None, domains: Labels | None) -> list[Index]:
        if (groups is None) == (domains is None):
            raise ValueError("pass one label per row, either as domains or as groups")
        labels = domains if domains is not None else groups
        index = check_domains(labels, n, np.ones(n)).index
        if len(index) < 2:
            raise ValueError("all rows have the same domain; holding one out needs at least 2")
        return index
