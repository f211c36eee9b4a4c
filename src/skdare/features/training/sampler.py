"""Which rows a network trains on, and everything random in its steps.

What a step draws depends on (seed, step) alone. No generator has a state that would have to be
saved: a training that is resumed at any step draws what it would have drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skdare.errors import InputError
from skdare.features.augmentation import Augmentation
from skdare.features.examples.examples import Examples
from skdare.features.split import reserve
from skdare.features.training.recipe import Job


@dataclass(frozen=True, eq=False)
class RowSplit:
    """Rows that a network trains on, validates on, and must not see.

    Parameters
    ----------
    labels : int64 array
        Of all rows.
    train, valid : mapping from training domain to int64 array
        Rows to train on, and those set aside.
    new : int64 array
        All rows of the held-out domain; empty for a network that is trained on all.
    aside : bool array
        Whether a row was set aside in this trial, for all rows.
    """

    labels: np.ndarray
    train: Mapping[str, np.ndarray]
    valid: Mapping[str, np.ndarray]
    new: np.ndarray
    aside: np.ndarray

    @classmethod
    def of(cls, examples: Examples, job: Job, share: float) -> RowSplit:
        """Split for a job, seeded by (trial, domain), whichever domain is held out."""
        domains = examples.domains
        aside = reserve(domains, job.trial, share)
        training = [name for name in np.unique(domains).tolist() if name != job.held_out]
        train = {name: np.flatnonzero((domains == name) & ~aside) for name in training}
        valid = {name: np.flatnonzero((domains == name) & aside) for name in training}
        return cls(examples.labels, train, valid, np.flatnonzero(domains == job.held_out), aside)


def check_trainable(examples: Examples, held_out: Iterable[str | None], share: float) -> None:
    """Refuse, before any work, examples that no network could be trained on."""
    names, counts = np.unique(examples.domains, return_counts=True)
    if len(names) < 2:
        raise InputError(
            f"there is one domain, `{names[0]}`; at least 2 are needed to hold one out"
        )
    for name, count in zip(names, counts, strict=True):
        if count < 2:
            raise InputError(
                f"domain `{name}` has 1 row, too few to set {share:.0%} aside; merge or drop it"
            )
    for domain in held_out:
        if len(np.unique(examples.labels[examples.domains != domain])) < 2:
            raise InputError(
                f"without `{domain}` the examples have one class; there is nothing to learn"
            )


@dataclass(frozen=True)
class StepDraws:
    """What is drawn for a few consecutive steps, each with a batch of b rows.

    Parameters
    ----------
    rows : int64 array of shape (steps, b)
    views : float32 array of shape (steps, b, 10), optional
        Random numbers of the augmentation.
    dropout_masks : bool array of shape (steps, b, dim), optional
        True for features that dropout keeps.
    """

    rows: np.ndarray
    views: np.ndarray | None
    dropout_masks: np.ndarray | None


@dataclass(frozen=True)
class Sampler:
    """Draws an equal number of rows from every domain, with replacement.

    Parameters
    ----------
    domains : sequence of int64 arrays
        Rows of each training domain.
    batch : int
        Rows of each domain in a step.
    seed : list of int
    augmentation : Augmentation, optional
    dropout : float
    dim : int
        Number of features.
    """

    domains: Sequence[np.ndarray]
    batch: int
    seed: list[int]
    augmentation: Augmentation | None = None
    dropout: float = 0.0
    dim: int = 0

    @property
    def total(self) -> int:
        """Rows in a batch."""
        return self.batch * len(self.domains)

    def draws(self, start: int, stop: int) -> StepDraws:
        """Draws of steps ``start`` to ``stop``."""
        steps = [self._step(step) for step in range(start, stop)]
        rows, views, masks = zip(*steps, strict=True)
        return StepDraws(
            np.stack(rows),
            None if self.augmentation is None else np.stack(views),
            None if self.dropout == 0 else np.stack(masks),
        )

    def _step(self, step: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        rng = np.random.default_rng([*self.seed, step])
        chosen = [rows[rng.integers(len(rows), size=self.batch)] for rows in self.domains]
        views = mask = None
        if self.augmentation is not None:
            views = self.augmentation.draw(rng, self.total)
        if self.dropout > 0:
            mask = rng.random((self.total, self.dim), dtype=np.float32) >= self.dropout
        return np.concatenate(chosen), views, mask
