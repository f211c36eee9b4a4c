"""Where theorem 3 is measured: domains whose means vary, and a new one that is wider there.

Notation: R features along which latent means vary, E domains, w the new domain's width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdare.diagnosis import effective_rank
from skdare.theory._environments import environment_risk
from skdare.theory._measurement import log_slope
from skdare.theory._model import LatentDomain

WIDTH = 3.0
GAIN = WIDTH**2 - 2.0 * WIDTH


@dataclass(frozen=True, eq=False)
class WiderDomain:
    """Latent means vary along R features of R + 1, and a new domain is three times as wide there.

    The guess for the new domain is the identity. With A = w on the varying features, the risk
    of Π̂β* above that of Πβ* is ``(w² - 2w) ‖(Π̂ - Π)β*‖²``, and more where b is not zero.

    Parameters
    ----------
    rank : int
        R.
    repeats : int
        Draws of the domains.
    rng : Generator
    """

    rank: int
    repeats: int
    rng: np.random.Generator

    @property
    def spectra(self) -> dict[str, np.ndarray]:
        """Eigenvalues of the latent means' covariance; the largest is one."""
        j = np.arange(1.0, self.rank + 1)
        return {
            "flat": np.ones(self.rank),
            "equal gaps": 1.0 - (j - 1.0) / self.rank,
            "geometric": np.geomspace(1.0, 1e-3, self.rank),
            "j⁻¹": 1.0 / j,
            "j⁻²": 1.0 / j**2,
        }

    @property
    def limit(self) -> np.ndarray:
        """Π β*."""
        return np.eye(self.rank + 1)[-1]

    def covariance(self, name: str, invariant: int = 1) -> np.ndarray:
        """Σ_b, with one invariant direction or more."""
        return np.diag(np.concatenate([self.spectra[name], np.zeros(invariant)]))

    def means(self, name: str, E: int) -> np.ndarray:
        """A draw of E latent means, as columns."""
        B = np.sqrt(self.spectra[name])[:, None] * self.rng.standard_normal((self.rank, E))
        return np.vstack([B, np.zeros(E)])

    def truth(self, varying: np.ndarray) -> np.ndarray:
        """β*: of norm one among the varying features, and one on the invariant."""
        return np.append(varying / np.linalg.norm(varying), 1.0)

    def risk(
        self,
        name: str,
        varying: np.ndarray,
        E: int,
        *,
        width: float = WIDTH,
        shift: np.ndarray | float = 0.0,
        differences: bool = False,
    ) -> np.ndarray:
        """Mean risk above that of Πβ*, after 1 to E domains."""
        b = np.append(np.broadcast_to(shift, self.rank), 0.0)
        new = LatentDomain(np.diag(np.append(np.full(self.rank, width), 1.0)), b)
        return environment_risk(
            self.covariance(name),
            self.truth(varying),
            new,
            np.eye(self.rank + 1),
            E,
            differences=differences,
            repeats=self.repeats,
            random_state=self.rng,
        )

    def slope(self, name: str, varying: np.ndarray) -> float:
        """Of log risk against log E, from the effective rank to a quarter of the rank."""
        first = max(2, int(np.ceil(effective_rank(self.covariance(name)))))
        E = np.arange(first, self.rank // 4 + 1)
        risk = self.risk(name, varying, int(E[-1]))
        return log_slope(E, risk[E - 1])
