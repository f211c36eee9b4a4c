"""Leave-one-domain-out as a splitter for scikit-learn; searches here use `fitting.hold_out`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from skdare.checks import Label, check_labels
from skdare.errors import InputError


class LeaveOneDomainOut(BaseCrossValidator):
    """Leave-one-domain-out splitter for scikit-learn's cross-validation.

    ``groups`` is accepted for ``domains``, so the splitter works in `cross_validate` with metadata
    routing on and off.

    See Also
    --------
    sklearn.model_selection.LeaveOneGroupOut : the same splits of NumPy groups.

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
    __metadata_request__split: ClassVar = {"domains": True, "groups": True}

    def split(
        self,
        X: Any,
        y: Any = None,
        groups: Collection[Label] | None = None,
        domains: Collection[Label] | None = None,
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
        labels, codes = _labels_of(groups, domains, n)
        for e in range(len(labels)):
            yield np.flatnonzero(codes != e), np.flatnonzero(codes == e)

    def get_n_splits(
        self,
        X: Any = None,
        y: Any = None,
        groups: Collection[Label] | None = None,
        domains: Collection[Label] | None = None,
    ) -> int:
        """Number of splits, which is that of the domains."""
        return len(_labels_of(groups, domains, None)[0])


def _labels_of(
    groups: Collection[Label] | None, domains: Collection[Label] | None, n: int | None
) -> tuple[list[Label], np.ndarray]:
    if (groups is None) == (domains is None):
        raise InputError("one label per row is needed", "pass either domains or groups")
    given = domains if domains is not None else groups
    assert given is not None
    labels, codes = check_labels("domains", given, len(given) if n is None else n)
    if len(labels) < 2:
        raise InputError("all rows have the same domain", "holding one out needs at least 2")
    return labels, codes
