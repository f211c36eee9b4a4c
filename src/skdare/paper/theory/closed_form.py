"""The solution of the population objective: theorem 1.

Notation: B (d, E) latent means as columns, β (d,) the truth, Π (d, d) the projection onto the
null space of Bᵀ, N (d, r) an orthonormal basis of it, α a scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.optimize import brentq
from scipy.special import expit, logit

from skdare.checks import check_count, check_number
from skdare.paper.theory.matrices import mean_null_projection
from skdare.paper.theory.model import LatentModel

# The trapezoidal rule converges geometrically for smooth functions of a normal variable: with these
# nodes it is exact to rounding up to a deviation of 20. Gauss-Hermite rules of 100 nodes lose
# digits beyond a deviation of 5, because σ has poles at ±iπ.
_NODES = np.linspace(-10.0, 10.0, 801)
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()

# Below it a share of a class has fewer than four digits, as the difference of another from one.
_RAREST = 1e-12


@dataclass(frozen=True)
class Attenuation:
    """The fit ``α u + c`` of a logistic regression that sees the part u of a score."""

    scale: float
    intercept: float = 0.0


def logistic_scale(
    kept: float, dropped: float, shifts: np.ndarray, *, intercept: bool = False
) -> Attenuation:
    """The factor by which logistic regression shrinks a score when it sees only a part of it.

    The log-odds are u + τ with u ~ N(0, kept²) seen and τ ~ N(m_e, dropped²) not. By Stein's
    identity the gradient along u vanishes where ``α E σ'(αu) = mean_e E σ'(u + τ)``. The left
    side grows with α and at one it is the larger, because σ' is even and has one peak; so α lies
    in (0, 1], whatever the means m_e. It is exact to 1e-14, and so comes out as 0.0 where every
    shift is beyond 35 or so. With an intercept c there is a second equation,
    ``E σ(αu + c) = mean_e E σ(u + τ)``, and α stays in (0, 1] because E σ'(u + ·) is log-concave.

    Parameters
    ----------
    kept, dropped : float
        Standard deviations of u and τ: the norms of Πβ and (I - Π)β.
    shifts : array of shape (E,)
        m_e, the truth at each domain's latent mean.
    intercept : bool

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import logistic_scale
    >>> round(logistic_scale(1.0, 2.0, np.zeros(3)).scale, 3)
    0.614
    """
    check_number("kept", kept)
    check_number("dropped", dropped)
    total = float(np.hypot(kept, dropped))
    slope = float(np.mean([_normal_mean(_steepness, m, total) for m in shifts]))
    share = float(np.mean([_normal_mean(expit, m, total) for m in shifts]))
    if intercept and min(share, 1.0 - share) < _RAREST:
        raise ValueError(
            f"shifts leave one class a share below {_RAREST:g}, which no intercept can be fitted "
            "to; use smaller shifts"
        )

    def offset(scale: float) -> float:
        return _offset(share, scale * kept) if intercept else 0.0

    def excess(scale: float) -> float:
        return scale * _normal_mean(_steepness, offset(scale), scale * kept) - slope

    # Nothing dropped gives one exactly, where rounding decides the sign.
    scale = 1.0 if excess(1.0) <= 0.0 else float(brentq(excess, 0.0, 1.0, xtol=1e-14))
    return Attenuation(scale, offset(scale))


def _offset(share: float, deviation: float) -> float:
    """c such that E σ(N(c, deviation²)) is this share."""
    bound = abs(float(logit(share))) + 10.0 * deviation + 1.0
    return float(
        brentq(lambda c: _normal_mean(expit, c, deviation) - share, -bound, bound, xtol=1e-14)
    )


def _normal_mean(
    function: Callable[[np.ndarray], np.ndarray], mean: float, deviation: float
) -> float:
    """Mean of a function of a normal variable."""
    return float(_WEIGHTS @ function(mean + deviation * _NODES))


def _steepness(score: np.ndarray) -> np.ndarray:
    """Derivative of the logistic function σ."""
    return expit(score) * expit(-score)


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """Theorem 1: the truth, projected, and for logistic regression shrunk.

    Parameters
    ----------
    coef : array of shape (d,)
        α Π β, on aligned features.
    projection : array of shape (d, d)
    scale, intercept : float
        α, which is one in regression, and c.
    """

    coef: np.ndarray
    projection: np.ndarray
    scale: float
    intercept: float


def closed_form(model: LatentModel, *, intercept: bool = False) -> ClosedForm:
    """The minimiser of the population objective whose predictions at every latent mean are equal.

    Parameters
    ----------
    model : LatentModel
        Latents may have any law in regression, and are Gaussian in classification.
    intercept : bool
        Whether scores have an intercept, which does not count at the means.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import LatentModel, closed_form
    >>> model = LatentModel.draw(d=5, n_domains=3, mean_rank=2, random_state=0)
    >>> solution = closed_form(model)
    >>> bool(np.allclose(model.means.T @ solution.coef, 0.0))
    True
    """
    if model.task == "classification":
        for e, domain in enumerate(model.domains):
            if domain.law != "gaussian":
                raise ValueError(
                    f"domain {e} has {domain.law!r} latents, and logistic regression has a closed "
                    "form for 'gaussian' ones only; fit a head to rows of model.sample"
                )
        return _gaussian_coefficients(model, intercept=intercept)
    projection = mean_null_projection(model.means)
    offset = float(np.mean(model.means.T @ model.beta)) if intercept else 0.0
    return ClosedForm(projection @ model.beta, projection, 1.0, offset)


def _gaussian_coefficients(model: LatentModel, *, intercept: bool) -> ClosedForm:
    """The logistic solution, were the latents Gaussian."""
    projection = mean_null_projection(model.means)
    coef = projection @ model.beta
    kept = float(np.linalg.norm(coef))
    dropped = float(np.linalg.norm(model.beta - coef))
    fit = logistic_scale(kept, dropped, model.means.T @ model.beta, intercept=intercept)
    return ClosedForm(fit.scale * coef, projection, fit.scale, fit.intercept)


def sampled_logistic(
    model: LatentModel, n: int, *, random_state: int | np.random.Generator | None = None
) -> np.ndarray:
    """The constrained logistic solution (d,) for latents of any law, over n latents a domain.

    Labels enter as probabilities, and the residuals of each domain are given their population
    moments. Both take noise away, so that the effect of the law is left.
    """
    check_count("n", n, len(model.beta) + 1)
    rng = np.random.default_rng(random_state)
    N = linalg.null_space(model.means.T)
    if not N.shape[1]:
        raise ValueError(
            f"the latent means span all {len(N)} dimensions and leave no weights; use fewer "
            "domains, or a smaller mean_rank"
        )
    Z, T = [], []
    for domain in model.domains:
        residuals = domain.latents(n, rng) - domain.b
        residuals -= residuals.mean(axis=0)
        root = linalg.cholesky(residuals.T @ residuals / n, lower=True)
        latents = linalg.solve_triangular(root, residuals.T, lower=True).T + domain.b
        Z.append(latents @ N)
        T.append(expit(latents @ model.beta))
    # The solution for Gaussian latents is near: three or four steps from there, ten from zero.
    start = _gaussian_coefficients(model, intercept=False).coef @ N
    return N @ _logistic_minimum(np.concatenate(Z), np.concatenate(T), start)


def _logistic_minimum(Z: np.ndarray, T: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Newton's method for rows Z and probabilities T, from near the minimum."""
    w = start
    for _ in range(50):
        P = expit(Z @ w)
        step = linalg.solve((Z.T * (P * (1.0 - P))) @ Z, Z.T @ (P - T), assume_a="pos")
        w = w - step
        if np.abs(step).max() < 1e-8 * max(1.0, np.abs(w).max()):
            return w
    raise RuntimeError("Newton's method did not settle in 50 steps")
