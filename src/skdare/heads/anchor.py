"""Anchor regression with the domain as anchor: plain, or after each domain is whitened.

    1/|E| Σ_e [ 1/(2 n_e) Σ_i ((x_i - μ_e)ᵀ W_e B - (t_i - t_e))² + γ/2 (m_eᵀ B - t_e)² ]

Notation: μ (d,) mean, W (d, d) adjustment, M (E, d) adjusted means m_e, t (E,) mean targets, V
(d, 1) weights on raw features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from skdare.arrays import beside, namespace, to_numpy, work_dtype
from skdare.checks import check_choice, check_number
from skdare.fitting.domain_fit import minimise, moments_by_domain
from skdare.fitting.lagrangian import Formulation, domain_blocks, mean_directions
from skdare.fitting.problem import Problem
from skdare.heads.base import RegressorHead
from skdare.heads.data_notes import note_odd_features
from skdare.heads.head_state import HeadState
from skdare.objective.objective import Block, Coordinates, Objective
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.moments import AnyMoments, FeatureMoments
from skdare.whitening.whitening import Target, Whitening


@dataclass(kw_only=True, eq=False, repr=False)
class AnchorRegressor(RegressorHead):
    """Anchor regression with the domain as anchor, plain or after whitening each domain.

    It minimises the squared error within domains plus γ times the squared error of the domain
    means. γ = 1 is least squares in which every domain has the same weight; γ = 0 ignores the
    means; a large γ makes the mean residuals vanish if there are enough features. With
    ``adjust=True`` every domain is whitened first; without an intercept, and if the domains' mean
    targets are zero, that is domain-adjusted regression with λ = γ.

    Parameters
    ----------
    gamma : float
        Weight of the error at the domain means.
    l2 : float
        Ridge penalty; see `ERMRegressor`.
    adjust : bool
        Whether to whiten each domain (the form at the end of the paper's appendix A).
    shrinkage, shrinkage_target
        Of the whitened form; see `DAREClassifier`.
    centered : bool
        Whether to whiten by the covariance; else by the raw second moment.
    fit_intercept : bool
        Whether features and targets are measured from the mean of the domain means.
    preparation, tol, max_iter
        See `ERMClassifier`.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    domains_ : list of domain labels
    n_features_in_, n_iter_ : int

    See Also
    --------
    DARERegressor : domain-adjusted regression.

    References
    ----------
    Rothenhäusler, Meinshausen, Bühlmann and Peters, "Anchor regression: heterogeneous data meet
    causality", JRSS B 2021.

    Examples
    --------
    >>> from skdare import AnchorRegressor
    >>> from skdare.data import make_latent_domains
    >>> data = make_latent_domains(task="regression", random_state=0)
    >>> AnchorRegressor(gamma=5.0).fit(data.X, data.y, domains=data.domains).coef_.shape
    (8,)
    """

    gamma: float = 10.0
    l2: float = 1e-2
    adjust: bool = False
    shrinkage: float = 0.9
    shrinkage_target: Target = "scaled"
    centered: bool = True
    preparation: Any = None
    fit_intercept: bool = True
    tol: float = 1e-5
    max_iter: int = 1000

    def _check_parameters(self) -> None:
        check_number("gamma", self.gamma)
        check_number("l2", self.l2)
        check_number("shrinkage", self.shrinkage, 0.0, 1.0)
        check_choice("shrinkage_target", self.shrinkage_target, get_args(Target))
        check_choice("adjust", self.adjust, (True, False))
        check_choice("centered", self.centered, (True, False))

    def _fitted(self, problem: Problem) -> HeadState:
        X = problem.X
        E = len(problem.index)
        whitening = Whitening(
            self.adjust, self.centered, self.shrinkage, self.shrinkage_target, "own mean"
        )
        if self.adjust:
            if self.centered and self.shrinkage < 1.0:
                problem.check_covariances("shrinkage=1.0 or centered=False")
            moments: Sequence[AnyMoments] = moments_by_domain(problem)
        else:
            moments = [FeatureMoments.of(X, i, problem.weight[i]) for i in problem.index]
        note_odd_features(problem, moments, self.l2)
        adjustments = whitening.adjustments(moments, work_dtype(X))
        # Whitened means differ with the origin of the features: measure them from their mean.
        measured = float(self.fit_intercept)
        centre = measured * sum(m.mean for m in moments) / E
        xp = namespace(moments[0].mean)
        M = xp.stack(
            [
                W.back((m.mean - centre)[:, None])[:, 0]
                for W, m in zip(adjustments, moments, strict=True)
            ]
        )
        origin = measured * xp.mean(M, axis=0)
        t = np.array([np.average(problem.T[i], weights=problem.weight[i]) for i in problem.index])
        T = problem.T.copy()
        for index, mean in zip(problem.index, t, strict=True):
            T[index] -= mean
        about_means = replace(problem, T=T)
        shares = np.full(E, 1.0 / E)
        blocks = domain_blocks(about_means, adjustments, shares)
        zero = 0.0 * origin
        price = beside(self.gamma * shares, X)
        blocks.append(Block(M - origin, slice(0, E), beside(t, X), price, Adjustment(1.0)))
        span, gains = mean_directions(to_numpy(M - origin), self.gamma)
        coordinates = Coordinates(False, zero, beside(span, X), beside(gains, X))
        l2 = whitening.ridge(moments, self.l2)
        objective = Objective(blocks, problem.targets.loss, coordinates, l2)
        how = Formulation(whitening, 0.0, False, False, self.l2, self.tol, self.max_iter)
        solution = minimise(objective, zero, how)
        self._warn_of_no_convergence(solution)
        B, _ = coordinates.unpack(solution.theta)
        V = average(adjustments, shares.tolist()).apply(B)
        b = to_numpy(-(origin @ B) - centre @ V)
        return HeadState(problem.targets, to_numpy(V), b, solution=solution)
