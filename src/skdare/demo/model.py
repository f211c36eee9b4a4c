"""The paper's model in the demonstration: what heads risk on new domains, mean and tail.

Notation: A (d, d) a domain's transformation, b (d,) its latent mean, c (d,) a head's weights,
β (d,) the truth, v (d,) the error of a head on the latents, ρ the length of a mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from skdare.datasets import make_latent_domains
from skdare.datasets._synthetic import LatentLaw
from skdare.heads import DARERegressor, ERMRegressor
from skdare.theory import LatentDomain, excess_risk

_DOMAINS = 6
_ROWS = 400
_FEATURES = 8
_MEAN_RANK = 2
_SHIFT = 0.5
# How many times as far the log scales of a domain further out may be from zero.
_FURTHER = 4.0
_NEW_DOMAINS = 100
_NEW_ROWS = 300


@dataclass(frozen=True)
class Risks:
    """Excess risks of a head on new domains, as shares of the signal ‖β‖².

    Parameters
    ----------
    alike, further : array of shape (n,)
        On random domains drawn as the training domains were, and on domains further out.
    adversary : float or None
        On the domain that costs the head most; None where it adapts to each.
    """

    alike: np.ndarray
    further: np.ndarray
    adversary: float | None

    def fields(self) -> dict[str, Any]:
        """Mean and tail, by name."""
        return {
            "alike_mean": float(self.alike.mean()),
            "alike_95": float(np.quantile(self.alike, 0.95)),
            "further_mean": float(self.further.mean()),
            "further_95": float(np.quantile(self.further, 0.95)),
            "adversary": self.adversary,
        }


def paper_model(seed: int = 0) -> dict[str, Risks]:
    """Risks of ERM, DARE and DARE adapted on the paper's model, by name of the head.

    Heads are fitted on samples, without an intercept as the paper prints them; DARE is theorem
    1's: the paper's options, whitened by covariances, with the constraint exact. Risks are exact.
    """
    data = make_latent_domains(
        _DOMAINS,
        _ROWS,
        _FEATURES,
        task="regression",
        shift=_SHIFT,
        mean_rank=_MEAN_RANK,
        noise=1.0,
        random_state=seed,
    )
    # The same seed gives the law that the training domains were drawn from.
    law = LatentLaw.draw(_FEATURES, _MEAN_RANK, np.random.default_rng(seed))
    rng = np.random.default_rng(seed + 1)
    alike = [LatentDomain(*law.domain(_SHIFT, rng)) for _ in range(_NEW_DOMAINS)]
    further = [
        LatentDomain(*law.domain(_SHIFT, rng, further=_FURTHER)) for _ in range(_NEW_DOMAINS)
    ]
    rho = max(float(np.linalg.norm(domain.b)) for domain in chain(alike, further))
    erm = ERMRegressor(fit_intercept=False).fit(data.X, data.y, domains=data.domains)
    dare = DARERegressor.as_in_paper(
        mean_penalty="exact", centered=True, adaptation="covariance", fit_intercept=False
    ).fit(data.X, data.y, domains=data.domains)

    found = {}
    for name, head in (("erm", erm), ("dare", dare)):
        c = np.ravel(head.coef_)
        worst = worst_domain(law, c, _FURTHER * _SHIFT, rho)
        found[name] = Risks(
            np.array([_share(c, law.beta, domain) for domain in alike]),
            np.array([_share(c, law.beta, domain) for domain in further]),
            _share(c, law.beta, worst),
        )
    found["adapted"] = Risks(
        _adapted_shares(dare, law.beta, alike, rng),
        _adapted_shares(dare, law.beta, further, rng),
        None,
    )
    return found


def _adapted_shares(
    dare: DARERegressor,
    beta: np.ndarray,
    domains: Sequence[LatentDomain],
    rng: np.random.Generator,
) -> np.ndarray:
    """Excess risk in each domain after adapting to unlabelled rows of it."""
    shares = []
    for domain in domains:
        rows = domain.latents(_NEW_ROWS, rng) @ domain.A.T
        shares.append(_share(dare.adapt(rows, prior_rows=0).coef_, beta, domain))
    return np.array(shares)


def worst_domain(law: LatentLaw, c: np.ndarray, shift: float, rho: float) -> LatentDomain:
    """The domain of a law's reach, with a mean no longer than ρ, that costs weights c most.

    Along each eigenvector the error is the scale times c less β, which is largest at one end of
    the scales or the other; and the worst mean points along the error.
    """
    weights = law.U.T @ np.ravel(c)
    truth = law.U.T @ law.beta
    reach = law.reach(shift)
    stretched = np.abs(np.exp(reach) * weights - truth)
    shrunk = np.abs(np.exp(-reach) * weights - truth)
    logs = np.where(stretched > shrunk, reach, -reach)
    v = law.U @ (np.exp(logs) * weights - truth)
    return LatentDomain(law.transformation(logs), rho * v / np.linalg.norm(v))


def _share(c: np.ndarray, beta: np.ndarray, domain: LatentDomain) -> float:
    """Excess risk of weights on the features, as a share of the signal ‖β‖²."""
    return excess_risk(np.ravel(c), beta, np.eye(len(beta)), domain) / float(beta @ beta)
