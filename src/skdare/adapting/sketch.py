"""Sketches of many domains' moments: a mean, a few directions, and the size of what is left out.

Notation: F (r, d) factor with FᵀF the scatter about the mean along its largest directions,
K (q, d) rows with KᵀK / n the second moment, X (m, d) rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdare.adapting.stream_moments import Forgetting
from skdare.arrays import symmetric_eigen

# Rows folded in at a time: the decomposition of q stacked rows costs q² d + q³.
_PIECE_ROWS = 64
_FIRST_SLOTS = 16


@dataclass(frozen=True, eq=False)
class LowRankMoments:
    """A second moment ``KᵀK / n + rest (I - P)``, P the projection on the rows of K.

    Parameters
    ----------
    n : float
    mean : array of shape (d,)
    K : array of shape (q, d)
    values : array of shape (r,)
        Its eigenvalues along the rows of K.
    Q : array of shape (q, r)
        ``Kᵀ Q`` are the eigenvectors.
    rest : float
        Its eigenvalue everywhere else.
    """

    n: float
    mean: np.ndarray
    K: np.ndarray
    values: np.ndarray
    Q: np.ndarray
    rest: float

    @property
    def scale(self) -> float:
        """Mean over features of their second moment."""
        d = self.K.shape[1]
        return float(self.values.sum() + (d - len(self.values)) * self.rest) / d

    @property
    def varies(self) -> bool:
        """Whether the second moment is more than the rounding of rows that are all the same."""
        return self.scale > 1e-14 * float(self.mean @ self.mean) / len(self.mean)

    def inverse_root(self, shrinkage: float, ridge: float) -> tuple[float, np.ndarray]:
        """Inverse root of the shrunk second moment: everywhere, and more along the eigenvectors.

        Directions without variance map to zero, as in `Spectrum.inverse_root`.
        """
        values = (1.0 - shrinkage) * self.values + ridge
        rest = (1.0 - shrinkage) * self.rest + ridge
        if not rest > 0:
            return 0.0, values**-0.5
        return rest**-0.5, values**-0.5 - rest**-0.5


class Sketches:
    """Moments of many domains in the same number of bytes each.

    Parameters
    ----------
    rank, d : int
    forgetting : Forgetting
    """

    # Axes of each array, by name: s domains, r directions, d features.
    SHAPES: ClassVar = {
        **dict.fromkeys(("n", "seen", "used", "tail"), "s"),
        "mean": "sd",
        "factor": "srd",
    }
    FIELDS = tuple(SHAPES)

    def __init__(self, rank: int, d: int, forgetting: Forgetting) -> None:
        self.rank = min(rank, d)
        self.d = d
        self.forgetting = forgetting
        self.size = 0
        self.n = np.zeros(_FIRST_SLOTS)
        self.tail = np.zeros(_FIRST_SLOTS)
        self.seen = np.zeros(_FIRST_SLOTS, dtype=np.int64)
        self.used = np.zeros(_FIRST_SLOTS, dtype=np.int64)
        self.mean = np.zeros((_FIRST_SLOTS, d), dtype=np.float32)
        self.factor = np.zeros((_FIRST_SLOTS, self.rank, d), dtype=np.float32)

    @property
    def bytes_each(self) -> int:
        """Bytes of one domain."""
        return sum(getattr(self, name)[:1].nbytes for name in self.FIELDS)

    def new(self) -> int:
        """The slot of one more domain."""
        if self.size == len(self.n):
            for name in self.FIELDS:
                array = getattr(self, name)
                grown = np.zeros((2 * len(array), *array.shape[1:]), dtype=array.dtype)
                grown[: len(array)] = array
                setattr(self, name, grown)
        self.size += 1
        return self.size - 1

    def add(self, slot: int, rows: np.ndarray) -> None:
        """Fold rows into one domain."""
        for start in range(0, len(rows), _PIECE_ROWS):
            self._fold(slot, rows[start : start + _PIECE_ROWS].astype(np.float64))

    def _fold(self, slot: int, X: np.ndarray) -> None:
        m = len(X)
        fade = self.forgetting.factor(len(X))
        weight = self.forgetting.weights(m)
        weight = np.ones(m) if weight is None else weight
        old = fade * self.n[slot]
        new = weight.sum()
        mean = weight @ X / new
        parts = [(X - mean) * np.sqrt(weight)[:, None]]
        if old > 0:
            # Scatters about two means add up to one about theirs with this row beside them.
            delta = mean - self.mean[slot]
            used = self.factor[slot, : self.used[slot]]
            parts += [np.sqrt(fade) * used, (np.sqrt(old * new / (old + new)) * delta)[None]]
            mean = self.mean[slot] + delta * (new / (old + new))
        F, dropped = _largest(np.concatenate(parts), self.rank)
        self.used[slot] = len(F)
        self.factor[slot, : len(F)] = F
        self.tail[slot] = fade * self.tail[slot] + dropped
        self.n[slot] = old + new
        self.mean[slot] = mean
        self.seen[slot] += m

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on with these arrays, one entry for each domain."""
        used = arrays["used"]
        if used.dtype.kind != "i" or not np.isin(used, range(self.rank + 1)).all():
            raise ValueError("the numbers of directions are not valid")
        self.size = len(arrays["n"])
        for name in self.FIELDS:
            setattr(self, name, arrays[name])

    def moments(self, slot: int, *, centered: bool) -> LowRankMoments:
        """The second moment of a domain: covariance, or about the origin."""
        n = float(self.n[slot])
        mean = self.mean[slot].astype(np.float64)
        K = self.factor[slot, : self.used[slot]].astype(np.float64)
        if not centered:
            K = np.concatenate([K, np.sqrt(n) * mean[None]])
        values, Q = symmetric_eigen(K @ K.T / n)
        present = values > max(values[-1], 0.0) * (len(K) * 1e-13)
        values = values[present]
        Q = Q[:, present]
        others = self.d - len(values)
        rest = float(self.tail[slot]) / (n * others) if others else 0.0
        return LowRankMoments(n, mean, K, values, Q / np.sqrt(n * values), rest)


def _largest(rows: np.ndarray, rank: int) -> tuple[np.ndarray, float]:
    """Fewer rows with about the same products with themselves, and the trace that they lack."""
    if len(rows) <= rank:
        return rows, 0.0
    values, Q = symmetric_eigen(rows @ rows.T)
    return Q[:, -rank:].T @ rows, float(max(values[:-rank].sum(), 0.0))
