"""Conversion to and from the rows of skada, whose domain numbers are negative for targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdare.datasets._domain_data import DomainData, guess_task
from skdare.datasets._natural import natural
from skdare.datasets._roles import decode

_MASK = -1  # skada's class of a row that has no label; a measured target is NaN there
Label = int | str


@dataclass(frozen=True, eq=False)
class SourcesAndTargets:
    """Labelled rows of source domains, and rows of target domains without their labels.

    Parameters
    ----------
    sources : DomainData
        To fit a head to.
    targets : dict from domain to array of shape (m, d)
        To adapt the fitted head to, one at a time.
    """

    sources: DomainData
    targets: dict[Label, np.ndarray]


@dataclass(frozen=True, eq=False)
class SkadaRows:
    """Rows as an estimator of skada takes them.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
        Numbers of classes from zero, or measurements; -1 or NaN where masked.
    sample_domain : int array of shape (n,)
        Positive for rows of a source domain, negative for those of a target.
    domain_names : dict from domain to its number in sample_domain
    classes : array, optional
        What the numbers in y stand for; None where y is measured.
    """

    X: np.ndarray
    y: np.ndarray
    sample_domain: np.ndarray
    domain_names: dict[Any, int]
    classes: np.ndarray | None


def from_skada(
    X: ArrayLike,
    y: ArrayLike,
    sample_domain: ArrayLike,
    *,
    domain_names: Mapping[Any, int] | None = None,
    classes: Sequence[Any] | np.ndarray | None = None,
) -> SourcesAndTargets:
    """Split skada's rows into source and target domains.

    A domain with a number of zero or more is a source, one with a negative number a target.
    Labels of target rows, masked or not, are left out; those of source rows must be there.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
    sample_domain : int array of shape (n,)
    domain_names : mapping from name to number, optional
        As ``DomainAwareDataset.pack(..., return_type="Bunch")`` gives it: domains then go by
        their names. Default: by their numbers.
    classes : sequence, optional
        What whole numbers in y stand for, counted from zero.

    Returns
    -------
    SourcesAndTargets
        ``sources``, a `DomainData` to fit a head to, and ``targets``, a dict from domain to an
        array of rows to adapt it to.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare import DAREClassifier
    >>> from skdare.datasets import from_skada, make_latent_domains
    >>> data = make_latent_domains(3, mean_rank=0, random_state=0)
    >>> sample_domain = np.where(data.domains == 2, -3, data.domains + 1)
    >>> y = np.where(sample_domain < 0, -1, data.y)  # masked, as skada wants it
    >>> rows = from_skada(data.X, y, sample_domain)
    >>> head = DAREClassifier().fit(rows.sources.X, rows.sources.y, domains=rows.sources.domains)
    >>> head.adapt(rows.targets[-3]).predict(rows.targets[-3]).shape
    (300,)
    """
    X = np.asarray(X)
    y = np.asarray(y)
    codes = np.asarray(sample_domain)
    _check_rows(X, y, codes)
    source = codes >= 0
    if not source.any():
        raise ValueError(
            "sample_domain has no source domain (a number of zero or more); a head is fitted to "
            "labelled rows of at least 2"
        )
    _check_labelled(y[source])
    names = _names(codes, domain_names)
    labels = y[source] if classes is None else _labels(y[source], classes)
    domains = _named(codes[source], names)
    targets = {names[code]: X[codes == code] for code in sorted(set(codes[~source].tolist()))}
    return SourcesAndTargets(DomainData(X[source], labels, domains), targets)


def to_skada(data: DomainData, targets: Sequence[Any], *, mask: bool = True) -> SkadaRows:
    """Number domains by skada's convention, some as targets, and mask the targets' labels.

    Domains are numbered from 1 in natural order, as skada's ``pack`` does it; the number of a
    target is negative. The table is untouched.

    Parameters
    ----------
    data : DomainData
    targets : sequence of domains
        All others are sources.
    mask : bool, default=True
        Whether to hide the targets' labels, as a fit requires; scoring needs them.

    Returns
    -------
    SkadaRows
        ``X``, ``y`` and ``sample_domain`` for an estimator of skada; ``domain_names`` and
        ``classes`` say what their numbers stand for.

    Examples
    --------
    >>> from skdare.datasets import load_digit_domains, to_skada
    >>> rows = to_skada(load_digit_domains(), targets=["tilted"])
    >>> rows.domain_names
    {'bold': 1, 'faint': 2, 'plain': 3, 'tilted': -4}
    >>> set(rows.y[rows.sample_domain < 0].tolist())
    {-1}
    """
    domains = sorted(np.unique(data.domains).tolist(), key=lambda label: natural(str(label)))
    chosen = [targets] if isinstance(targets, str) else list(targets)
    absent = [target for target in chosen if target not in domains]
    if absent or not chosen or len(set(chosen)) == len(domains):
        raise ValueError(
            f"targets is {targets!r}, and the domains are {', '.join(map(repr, domains))}; name "
            "some of them, not all"
        )
    numbers = {d: -i if d in chosen else i for i, d in enumerate(domains, 1)}
    labels, place = np.unique(data.domains, return_inverse=True)
    codes = np.array([numbers[label] for label in labels.tolist()])[place]
    measured = guess_task(data.y) == "regression"
    classes = None if measured else np.unique(data.y)
    y = np.array(data.y, np.float64) if classes is None else np.searchsorted(classes, data.y)
    if mask:
        y[codes < 0] = np.nan if measured else _MASK
    return SkadaRows(np.asarray(data.X), y, codes, numbers, classes)


def _check_rows(X: np.ndarray, y: np.ndarray, codes: np.ndarray) -> None:
    if X.ndim != 2 or y.shape != (len(X),) or codes.shape != (len(X),):
        raise ValueError(
            f"X has shape {X.shape}, y {y.shape} and sample_domain {codes.shape}; pass rows by "
            "features, and one label and one number of a domain per row"
        )
    if codes.dtype.kind not in "iu" and not np.array_equal(codes, np.round(codes)):
        raise ValueError(f"sample_domain has dtype {codes.dtype}; domains go by whole numbers")


def _check_labelled(y: np.ndarray) -> None:
    """Refuse source rows whose label is masked; a measured target may well be -1."""
    hidden = np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), dtype=bool)
    if not hidden.any() and y.dtype.kind in "if" and guess_task(y) == "classification":
        hidden = y == _MASK
    if hidden.any():
        raise ValueError(
            f"{int(hidden.sum())} rows of source domains have no label (-1 or NaN, the first in "
            f"source row {int(hidden.argmax())}); make those domains targets, or drop the rows"
        )


def _labels(y: np.ndarray, classes: Sequence[Any] | np.ndarray) -> np.ndarray:
    """The classes that numbers stand for; skada may have made floats of them."""
    whole = y.dtype.kind == "f" and np.array_equal(y, np.round(y))
    return decode(y.astype(np.int64) if whole else y, np.asarray(classes).tolist(), "y")


def _names(codes: np.ndarray, domain_names: Mapping[Any, int] | None) -> dict[int, Label]:
    """The name of each domain by its number."""
    present = [int(code) for code in np.unique(codes)]
    if domain_names is None:
        return {code: code for code in present}
    names = {number: name for name, number in domain_names.items()}
    absent = [code for code in present if code not in names]
    if absent:
        raise ValueError(
            f"domain_names has no name for domain {absent[0]}; it names "
            f"{', '.join(map(str, domain_names.values()))}"
        )
    return {code: names[code] for code in present}


def _named(codes: np.ndarray, names: dict[int, Label]) -> np.ndarray:
    values, place = np.unique(codes, return_inverse=True)
    return np.array([names[int(value)] for value in values])[place]
