"""Which rows a network trains on, validates on, and must not see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from skdare.datasets import reserve
from skdare.features._examples import Examples
from skdare.features._recipe import Job


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows by domain.

    Parameters
    ----------
    labels : int64 array
        Of all rows.
    train, valid : mapping from training domain to int64 array
        The rest, and those set aside.
    new : int64 array
        All rows of the held-out domain; none for a network that is trained on all.
    aside : bool array
        Which of all rows were set aside in this trial.
    """

    labels: np.ndarray
    train: Mapping[str, np.ndarray]
    valid: Mapping[str, np.ndarray]
    new: np.ndarray
    aside: np.ndarray

    @classmethod
    def of(cls, examples: Examples, job: Job, share: float) -> Rows:
        """Those of a job; the splits are seeded by (trial, domain), whoever is held out."""
        domains = examples.domains
        aside = reserve(domains, job.trial, share)
        seen = [name for name in np.unique(domains).tolist() if name != job.held_out]
        train = {name: np.flatnonzero((domains == name) & ~aside) for name in seen}
        valid = {name: np.flatnonzero((domains == name) & aside) for name in seen}
        return cls(examples.labels, train, valid, np.flatnonzero(domains == job.held_out), aside)


def check_trainable(examples: Examples, held_out: Iterable[str | None], share: float) -> None:
    """Refuse, before any work, what no network could be trained on."""
    names, counts = np.unique(examples.domains, return_counts=True)
    if len(names) < 2:
        raise ValueError(
            f"there is one domain, `{names[0]}`; at least 2 are needed to hold one out"
        )
    for name, count in zip(names, counts, strict=True):
        if count < 2:
            raise ValueError(
                f"domain `{name}` has 1 row, too few to set {share:.0%} aside; merge or drop it"
            )
    for domain in held_out:
        seen = np.unique(examples.labels[examples.domains != domain])
        if len(seen) < 2:
            raise ValueError(
                f"without `{domain}` the examples have one class; there is nothing to learn"
            )
