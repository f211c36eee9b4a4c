"""New domains whose mean is far away, inside or outside the span of the training means.

Notation: ρ the length of a new domain's latent mean, γ and λ penalties.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skdare.theory._adversary import excess_risk
from skdare.theory._model import LatentDomain, LatentModel, orthogonal

INSIDE, OUTSIDE = 4, 8
DOMAINS, NEW, RHO = 6, 20, 3.0
# Log singular values of the training domains, and of every domain outside the span.
SPREAD, QUIET = 0.5, 0.2


@dataclass(frozen=True, eq=False)
class Robustness:
    """Training domains with means in one block of features, and new domains for each of them.

    A is symmetric and block-diagonal: the adversary of theorem 2 without interaction. Half of
    ‖β*‖² lies in each block.

    Parameters
    ----------
    models : sequence of LatentModel
    inside, outside : sequences of lists of LatentDomain
        New domains, with a mean of length ρ in the block of the training means or in the other.
    """

    models: Sequence[LatentModel]
    inside: Sequence[list[LatentDomain]]
    outside: Sequence[list[LatentDomain]]

    @classmethod
    def draw(cls, problems: int, spread: float, rng: np.random.Generator) -> Robustness:
        """Log singular values of new domains are uniform in ±spread inside the span."""
        models, inside, outside = [], [], []
        for _ in range(problems):
            seen = []
            for _ in range(DOMAINS):
                b = _in_blocks(rng.standard_normal(INSIDE), np.zeros(OUTSIDE))
                seen.append(LatentDomain(_matrix(SPREAD, rng), b))
            beta = _in_blocks(_direction(INSIDE, rng), _direction(OUTSIDE, rng)) / np.sqrt(2.0)
            models.append(LatentModel(beta, seen))
            new = [_matrix(spread, rng) for _ in range(NEW)]
            near = [_in_blocks(_direction(INSIDE, rng), np.zeros(OUTSIDE)) for _ in new]
            far = [_in_blocks(np.zeros(INSIDE), _direction(OUTSIDE, rng)) for _ in new]
            inside.append([LatentDomain(A, RHO * b) for A, b in zip(new, near, strict=True)])
            outside.append([LatentDomain(A, RHO * b) for A, b in zip(new, far, strict=True)])
        return cls(models, inside, outside)

    def risk(
        self, solve: Callable[[LatentModel, float], np.ndarray], penalty: float, *, inside: bool
    ) -> float:
        """Mean excess risk on the new domains of weights that ``solve(model, penalty)`` gives."""
        total, count = 0.0, 0
        for model, news in zip(self.models, self.inside if inside else self.outside, strict=True):
            weights, plain = solve(model, penalty), np.eye(len(model.beta))
            for new in news:
                total += excess_risk(weights, model.beta, plain, new)
                count += 1
        return total / count


def _in_blocks(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    return np.concatenate([inside, outside])


def _direction(d: int, rng: np.random.Generator) -> np.ndarray:
    x = rng.standard_normal(d)
    return x / np.linalg.norm(x)


def _matrix(spread: float, rng: np.random.Generator) -> np.ndarray:
    A = np.zeros((INSIDE + OUTSIDE, INSIDE + OUTSIDE))
    for part, width in ((slice(INSIDE), spread), (slice(INSIDE, None), QUIET)):
        d = len(A[part])
        U = orthogonal(d, rng)
        A[part, part] = (U * np.exp(rng.uniform(-width, width, d))) @ U.T
    return A
