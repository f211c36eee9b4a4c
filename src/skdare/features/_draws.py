"""Everything random in a training, drawn on the host by (seed, step).

No generator has a state that would have to be saved: a training that is taken up at any step
draws what it would have drawn, and two processes draw the same batch and take their shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skdare.features._augment import Augmentation


@dataclass(frozen=True)
class Draws:
    """Of a few steps in a row, each with a batch of b rows.

    Parameters
    ----------
    rows : int64 array of shape (steps, b)
    views : float32 array of shape (steps, b, 10), optional
    kept : bool array of shape (steps, b, dim), optional
        Features that dropout keeps.
    """

    rows: np.ndarray
    views: np.ndarray | None
    kept: np.ndarray | None


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
    share : (int, int)
        Which of how many processes: each takes every so many-th row of the same batch.
    """

    domains: Sequence[np.ndarray]
    batch: int
    seed: list[int]
    augmentation: Augmentation | None = None
    dropout: float = 0.0
    dim: int = 0
    share: tuple[int, int] = (0, 1)

    @property
    def total(self) -> int:
        """Rows in a batch of all processes."""
        return self.batch * len(self.domains)

    @property
    def own(self) -> int:
        """Rows in this process's share."""
        return len(range(self.share[0], self.total, self.share[1]))

    def draws(self, start: int, stop: int) -> Draws:
        """What steps start to stop take."""
        drawn = [self._step(step) for step in range(start, stop)]
        rows, views, kept = zip(*drawn, strict=True)
        return Draws(
            np.stack(rows),
            None if self.augmentation is None else np.stack(views),
            None if self.dropout == 0 else np.stack(kept),
        )

    def _step(self, step: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        rng = np.random.default_rng([*self.seed, step])
        mine = slice(self.share[0], None, self.share[1])
        chosen = [rows[rng.integers(len(rows), size=self.batch)] for rows in self.domains]
        rows = np.concatenate(chosen)[mine]
        views = kept = None
        if self.augmentation is not None:
            views = self.augmentation.draw(rng, self.total)[mine]
        if self.dropout > 0:
            kept = (rng.random((self.total, self.dim), dtype=np.float32) >= self.dropout)[mine]
        return rows, views, kept
