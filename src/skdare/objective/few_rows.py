"""Losses of many domains with few rows, fewer than features, through one matrix of weights.

The scores of such a domain's adjusted rows are a small linear map of the unadjusted ones,
``X_e W_e B = A_e (X_e β)`` with ``β = C B`` the same for all. So the rows of several domains at a
time go through one product with β, each domain's (m, m) map follows, and nothing of size d is held
for any domain.

Notation: X (n, d) rows, B (d, k) canonical weights, β = C B, A (m, m) map of one domain's scores,
F (n, k) scores, M (E, k) scores of domain means, R (n, k) residuals, G a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from skdare.arrays import (
    Array,
    Index,
    as_float64,
    chunk_rows,
    compact,
    like,
    product,
    take,
    transposed_product,
    work_dtype,
)
from skdare.objective.losses import Loss
from skdare.objective.rows import LossSums

# From the scores of a chunk's rows and means, and its number, to the residuals of both.
_Residual = Callable[[np.ndarray, np.ndarray, int], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class FewRowsDomain:
    """Rows of one domain that has few, and the map of their scores.

    Parameters
    ----------
    index : slice or array of int
    T : array of shape (m,)
        Class numbers, or targets.
    weight : array of shape (m,)
        In the loss.
    A : array of shape (m, m), or float
    shares : array of shape (m,)
        In the domain's mean; they sum to one.
    """

    index: Index
    T: np.ndarray
    weight: np.ndarray
    A: np.ndarray | float
    shares: np.ndarray


@dataclass(frozen=True, eq=False)
class DomainChunk:
    """Several domains whose rows are visited together.

    ``totals`` are the weights of the domains, ``shares`` those of the rows in their domain's mean.
    """

    index: Index
    T: np.ndarray
    weight: np.ndarray
    totals: np.ndarray
    shares: np.ndarray
    maps: Sequence[np.ndarray | float]
    bounds: np.ndarray

    @classmethod
    def of(cls, domains: Sequence[FewRowsDomain]) -> DomainChunk:
        """Domains visited together, in this order."""
        numbers = [
            np.arange(i.start, i.stop) if isinstance(i, slice) else i
            for i in (domain.index for domain in domains)
        ]
        totals = np.array([domain.weight.sum() for domain in domains])
        return cls(
            _joined(np.concatenate(numbers)),
            np.concatenate([domain.T for domain in domains]),
            np.concatenate([domain.weight for domain in domains]),
            totals,
            np.concatenate([domain.shares for domain in domains])[:, None],
            [domain.A for domain in domains],
            np.concatenate([[0], np.cumsum([len(part) for part in numbers])]),
        )

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum over the rows of each domain."""
        return np.add.reduceat(values, self.bounds[:-1], axis=0)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """One row for each domain, repeated for each of its rows."""
        return np.repeat(values, np.diff(self.bounds), axis=0)

    def map(self, F: np.ndarray, *, transposed: bool = False) -> np.ndarray:
        """A F domain by domain, or AᵀF."""
        out = np.empty_like(F)
        for A, (start, stop) in zip(self.maps, pairwise(self.bounds.tolist()), strict=True):
            if isinstance(A, np.ndarray):
                np.matmul(A.T if transposed else A, F[start:stop], out=out[start:stop])
            else:
                np.multiply(F[start:stop], A, out=out[start:stop])
        return out


@dataclass(frozen=True, eq=False)
class FewRowsLoss:
    """Weighted losses of the rows and means of many domains, in canonical weights.

    Parameters
    ----------
    X : array of shape (n, d)
        In host memory, mapped, or elsewhere.
    chunks : sequence of DomainChunk
        See `in_chunks`.
    loss : Loss
    common : array of shape (d, d), optional
        C.
    centered : bool
        Whether each domain's mean is subtracted from its rows.
    mean_penalty : float
        Weight of a domain's mean beside that of its rows; the intercept does not count there.
    """

    X: Array
    chunks: Sequence[DomainChunk]
    loss: Loss
    common: np.ndarray | None
    centered: bool
    mean_penalty: float

    def value_and_gradient(self, B: np.ndarray, b: np.ndarray) -> LossSums:
        """Sum of the losses, and its gradients in B and b."""
        values = []

        def residual(F: np.ndarray, M: np.ndarray, c: int) -> tuple[np.ndarray, np.ndarray]:
            chunk = self.chunks[c]
            goal = self.loss.uninformative(M.shape[1])
            at_rows, R = self.loss.value_and_residual(F, chunk.T)
            at_means, Q = self.loss.value_and_residual(M, np.full_like(M, goal))
            values.append(float(at_rows @ chunk.weight))
            values.append(self.mean_penalty * float(at_means @ chunk.totals))
            return R, Q

        G, g = self._pull_back(B, b, residual)
        return LossSums(math.fsum(values), G, g)

    def hessian_product(
        self, B: np.ndarray, b: np.ndarray
    ) -> Callable[[np.ndarray, np.ndarray], LossSums]:
        """The second derivative at B and b, as a function of directions in them."""
        loss = self.loss
        states = [(None, None)] * len(self.chunks)
        if not loss.constant_curvature:
            scores = self._scores(B, b)
            states = [(loss.curvature(F), loss.curvature(M)) for _, _, F, M in scores]

        def curve(F: np.ndarray, M: np.ndarray, c: int) -> tuple[np.ndarray, np.ndarray]:
            at_rows, at_means = states[c]
            return loss.curve(at_rows, F), loss.curve(at_means, M)

        return lambda D, c: LossSums(0.0, *self._pull_back(D, c, curve))

    def means(self) -> np.ndarray:
        """Adjusted means of the domains, (E, d)."""
        parts = []
        for chunk in self.chunks:
            X = take(self.X, chunk.index)
            mixed = chunk.map(like(chunk.shares, X, X.dtype), transposed=True)[:, 0]
            bounds = pairwise(chunk.bounds.tolist())
            parts += [mixed[start:stop] @ X[start:stop] for start, stop in bounds]
        means: np.ndarray = as_float64(np.stack(parts))
        return means if self.common is None else means @ self.common

    def _scores(
        self, B: np.ndarray, b: np.ndarray
    ) -> Iterator[tuple[DomainChunk, np.ndarray, np.ndarray, np.ndarray]]:
        """Chunk by chunk: rows, their scores in float64, and those of the domain means."""
        V = (B if self.common is None else self.common @ B).astype(work_dtype(self.X))
        for chunk in self.chunks:
            X = take(self.X, chunk.index)
            F = as_float64(chunk.map(product(X, V)))
            M = chunk.sums(F * chunk.shares)
            yield chunk, X, F + b - (chunk.spread(M) if self.centered else 0.0), M

    def _pull_back(
        self, B: np.ndarray, b: np.ndarray, residual: _Residual
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradients in B and b, for residuals made from the scores of rows and means."""
        G = np.zeros(B.shape)
        g = np.zeros(b.shape)
        for c, (chunk, X, F, M) in enumerate(self._scores(B, b)):
            R, Q = residual(F, M, c)
            R = R * chunk.weight[:, None]
            g += R.sum(axis=0)
            Q = self.mean_penalty * chunk.totals[:, None] * Q
            if self.centered:
                Q = Q - chunk.sums(R)
            # A mean is a mixture of its rows, and so is what it asks for.
            R = like(R + chunk.shares * chunk.spread(Q), X, X.dtype)
            G += transposed_product(X, chunk.map(R, transposed=True))
        return (G if self.common is None else self.common @ G), g


def in_chunks(X: Array, domains: Sequence[FewRowsDomain]) -> list[DomainChunk]:
    """Domains, several to a chunk of rows."""
    chunks: list[DomainChunk] = []
    waiting: list[FewRowsDomain] = []
    n_rows = 0
    most = chunk_rows(X)
    for domain in domains:
        if waiting and n_rows + len(domain.T) > most:
            chunks.append(DomainChunk.of(waiting))
            waiting = []
            n_rows = 0
        waiting.append(domain)
        n_rows += len(domain.T)
    return [*chunks, DomainChunk.of(waiting)]


def _joined(numbers: np.ndarray) -> Index:
    """Row numbers of several domains, as a slice where they follow each other."""
    return compact(numbers) if np.all(np.diff(numbers) == 1) else numbers
