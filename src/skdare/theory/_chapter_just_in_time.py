"""Theorem 4 beside measurements."""

from __future__ import annotations

import math

import numpy as np

from skdare.theory._adapting import break_even_rows
from skdare.theory._claim import Chapter, Claim
from skdare.theory._just_in_time import (
    Draws,
    JustInTime,
    just_in_time_bound,
    just_in_time_expected,
)
from skdare.theory._just_in_time_pictures import just_in_time_pictures
from skdare.theory._measurement import RATE, ROUNDING, listed, log_slope, near
from skdare.theory._model import orthogonal
from skdare.theory._whitening_error import (
    eigen_root_risk,
    latent_covariances,
    whitening_error,
    whitening_error_bound,
)

_LEMMA = "theorem 4, lemma on the root"
# Of a mean risk: four standard errors over the fewest draws, and the terms beyond the first in 1/n.
SCATTER = 0.25


def just_in_time_chapter(seed: int = 0, quick: bool = False) -> Chapter:
    """Theorem 4: just-in-time adaptation."""
    rng = np.random.default_rng(seed)
    d, draws = (6, Draws(200, rng)) if quick else (16, Draws(300, rng))
    problem = JustInTime.draw(d, random_state=rng)
    claims = [
        _rates(problem, draws),
        _dimension(draws),
        _units(d, draws),
        _condition(d, draws),
        _hadamard(d, draws),
        _no_mean(d, draws),
        _latent_mean(d, draws),
        _splitting(problem, draws),
        _other_root(d, draws),
        _break_even(Draws(20 if quick else 50, rng)),
    ]
    pictures = just_in_time_pictures(problem, draws)
    return Chapter("Theorem 4: adapting just in time", claims, pictures)


def _rates(problem: JustInTime, draws: Draws) -> Claim:
    d = len(problem.beta)
    n = d**2 * np.array([1, 4, 16, 64])
    target = [draws.risk(problem, math.inf, int(m)) for m in n]
    source = [draws.risk(problem, int(m), math.inf) for m in n]
    lines = [just_in_time_expected(problem, math.inf, int(m)) for m in n]
    off = np.abs(np.divide(target, lines) - 1.0)
    powers = log_slope(n, source), log_slope(n, target)
    few = draws.risk(problem, math.inf, 4 * d) / just_in_time_expected(problem, math.inf, 4 * d)
    return Claim(
        "theorem 4",
        "With n_S and n_T of order m d² or more, the risk falls as 1/n_S and as 1/n_T.",
        f"d = {d}, rows from d² to 64 d²: slopes {powers[0]:.3g} in n_S and "
        f"{powers[1]:.3g} in n_T. An expansion to first order in 1/n is off by "
        f"{100 * off[0]:.2g} % at n_T = d² and by {100 * off[-1]:.2g} % at 64 d²; at 4 d the risk "
        f"is {few:.3g} times as large as it says.",
        max(abs(power + 1.0) for power in powers) < RATE and off[-1] < SCATTER and few > 1.0,
    )


def _dimension(draws: Draws) -> Claim:
    sizes, n = np.array([8, 16, 32, 64]), 6400
    fewer = Draws(draws.repeats // 3, draws.rng)
    risk = np.array([fewer.risk(JustInTime.plain(int(d)), math.inf, n) for d in sizes])
    first, power, room = (sizes + 1) / (4 * n), log_slope(sizes, risk), sizes**2 / n / risk
    return Claim(
        "theorem 4",
        "The risk of estimating Σ_T is O(d² m/n_T).",
        "True with room: it is linear in d. At Σ = I, Σ̂^{-1/2} ≈ I - H/2 and E‖Hβ‖²/4 = "
        f"(d + 1)/(4 n). At n = {n} and d = 8, 16, 32, 64 the risk is {listed(risk)}, beside "
        f"{listed(first)}; slope {power:.3g}. d²/n is {listed(room)} times as large, about 4 d.",
        near(risk, first, SCATTER) and abs(power - 1.0) < RATE and near(room, 4.0 * sizes, SCATTER),
    )


def _units(d: int, draws: Draws) -> Claim:
    problem = JustInTime.draw(d, shift=0.0, noise=0.0, random_state=draws.rng)
    n, seed, risk, bound = 4 * d**2, int(draws.rng.integers(2**31)), [], []
    for scale in (0.1, 1.0, 10.0, 100.0):
        scaled = problem.in_units(scale)
        risk.append(Draws(draws.repeats, np.random.default_rng(seed)).risk(scaled, n, n))
        bound.append(just_in_time_bound(scaled, n, n))
    repaired, free = (just_in_time_bound(problem, n, n, form) for form in ("repaired", "free"))
    return Claim(
        _LEMMA,
        "m(Σ) = λ_max/λ_min³.",
        f"It has units. With x in units c = 0.1, 1, 10, 100 (d = {d}, n_S = n_T = 4 d², no noise, "
        f"no means) the risk is {listed(risk)}, and the bound with a constant of one "
        f"{listed(bound)}: no constant holds for all units. The proof differentiates the root at "
        "Σ⁻¹, but takes divided differences at the eigenvalues of Σ; at those of Σ⁻¹ the same "
        f"steps give m = κ², without units (bound {repaired:.3g}), and m = 1 holds as well (bound "
        f"{free:.3g}).",
        near(np.array(risk), risk[0], ROUNDING)
        and bound[-1] < risk[0] < min(repaired, free)
        and near(np.divide(bound, bound[0]), np.array([1.0, 1e-4, 1e-8, 1e-12]), ROUNDING),
        "does not hold as printed",
    )


def _condition(d: int, draws: Draws) -> Claim:
    n, norms, shares, squares = 4 * d**2, [], [], []
    for condition in (1.0, 1e2, 1e4, 1e6):
        U, C = orthogonal(d, draws.rng), latent_covariances(d, n, draws.repeats, draws.rng)
        error = whitening_error((U * np.geomspace(condition**-0.5, condition**0.5, d)) @ U.T, C)
        length = np.linalg.norm(error, axis=(1, 2))
        norms.append(np.linalg.norm(error, 2, axis=(1, 2)).max() * np.sqrt(n) / d)
        shares.append((length / whitening_error_bound(C)).max())
        squares.append(float(np.mean(length**2)) / d * n / d)
    return Claim(
        _LEMMA,
        "‖Σ^{1/2}Σ̂^{-1/2} - I‖² is at most of order m d²/n, with an m that grows with κ.",
        "It hardly grows. To first order the error is -K∘H, with K_ij = t_i/(t_i + t_j) < 1 for t "
        "the roots of Σ's eigenvalues: n/d times the square it makes of a unit β is between 1/4 "
        f"and 1/2, averaged over β, for every Σ. Measured {listed(squares)} for κ = 1, 10², 10⁴, "
        f"10⁶ (d = {d}, n = 4 d²), and ‖Σ^{{1/2}}Σ̂^{{-1/2}} - I‖ ≤ {max(norms):.3g} d/√n. Without "
        "expansion, ‖Σ^{1/2}Σ̂^{-1/2} - I‖_F ≤ ‖C^{-1/2} - I‖_F + ½‖log C‖_F for every Σ, where C "
        "is the sample covariance of the latents and knows no Σ; at most "
        f"{max(shares):.3g} of it was seen.",
        min(squares) > (1.0 - SCATTER) / 4.0
        and max(squares) < (1.0 + SCATTER) / 2.0
        and max(shares) <= 1.0,
        "holds in part",
    )


def _hadamard(d: int, draws: Draws) -> Claim:
    shares = []
    for _ in range(draws.repeats):
        a, E = draws.rng.exponential(size=d) + 1e-3, draws.rng.standard_normal((d, d))
        K = 1.0 / np.add.outer(np.sqrt(a), np.sqrt(a))
        shares.append(np.linalg.norm(K * (E + E.T), 2) / np.linalg.norm(E + E.T, 2) / K.max())
    norm = np.linalg.norm(np.full((d, d), 0.5), 2)
    return Claim(
        _LEMMA,
        "The d by d matrix with entries 1/(√D_ii + √D_jj) has a norm of at most √(d‖Σ⁻¹‖).",
        f"At Σ = I its norm is d/2: {norm:.3g}, beside {np.sqrt(d):.3g} for d = {d}. But it is "
        "positive semi-definite, and the entrywise product with such a matrix multiplies a norm by "
        f"its largest entry at most (by {max(shares):.3g} of it in {draws.repeats} draws): with "
        "m = κ² the lemma survives, and d/n can stand for its d²/n.",
        norm > np.sqrt(d) and max(shares) < 1.0 + ROUNDING,
        "does not hold as printed",
        "proof step",
    )


def _no_mean(d: int, draws: Draws) -> Claim:
    risk = draws.risk(JustInTime.plain(d), math.inf, 4 * d**2)
    return Claim(
        "theorem 4, shortened",
        "The risk is O(d² ‖μ_T‖² (m(Σ_S)/n_S + m(Σ_T)/n_T)).",
        f"At μ_T = 0 that is zero, and the risk is {risk:.3g} (d = {d}, n_T = 4 d², Σ_T = I). The "
        "appendix has 1 + ‖μ_T‖², and the noise term that the short form leaves out; it also "
        "assumes ε ~ N(0, I), which makes μ_T zero.",
        near(risk, (d + 1) / (16 * d**2), SCATTER),
        "does not hold as printed",
    )


def _latent_mean(d: int, draws: Draws) -> Claim:
    n, b, scale = 4 * d**2, np.full(d, 10.0 / np.sqrt(d)), 0.01
    shifted = draws.risk(JustInTime.plain(d, b, scale), math.inf, n)
    centered = draws.risk(JustInTime.plain(d, 0.0, scale), math.inf, n)
    ratio, printed = shifted / centered, 1.0 + scale**2 * float(b @ b)
    return Claim(
        "theorem 4",
        "The risk of an error v is vᵀ(I + μ_T μ_Tᵀ)v, with μ_T the mean of x.",
        "It is vᵀ(I + b_T b_Tᵀ)v with b_T = Σ_T^{-1/2} μ_T, the mean of the latents. At "
        f"Σ_T = 10⁻⁴ I and b_T = 10 β*, where ‖μ_T‖ = 0.1, the mean makes the risk "
        f"{ratio:.3g} times as large, and 1 + ‖μ_T‖² is {printed:.3g}. A bound without units "
        "needs b_T.",
        # Σ_T = 10⁻⁴ I has β* as an eigenvector: its error has the variance 2/(4n), and the mean
        # of length ten counts it a hundred times.
        near(ratio, 1.0 + 100.0 * 0.5 / ((d + 1) / 4.0), 2.0 * SCATTER) and ratio > 2.0 * printed,
        "does not hold as printed",
        "notation",
    )


def _splitting(problem: JustInTime, draws: Draws) -> Claim:
    sizes, more = (4 * len(problem.beta) ** 2, math.inf), Draws(2 * draws.repeats, draws.rng)
    halves, whole = (more.risk(problem, *sizes, split=split) for split in (True, False))
    first, second = (just_in_time_expected(problem, *sizes, split=s) for s in (True, False))
    return Claim(
        "theorem 4",
        "Half of the source rows estimate Σ_S, the other half β.",
        "Splitting serves the proof and costs rows: β̂ = Σ̂_S^{1/2} θ̂, with θ̂ least squares on x "
        f"itself, so that whitening is a change of variables. The source's part of the risk is "
        f"{halves:.3g} with halves and {whole:.3g} with all rows for both, a ratio of "
        f"{halves / whole:.3g} (expansion: {first / second:.3g}).",
        near(halves / whole, first / second, SCATTER),
    )


def _other_root(d: int, draws: Draws) -> Claim:
    beta, sizes = np.ones(d) / np.sqrt(d), (4 * d**2, 64 * d**2)
    often, rng, spectrum = draws.repeats, draws.rng, 4.0 ** -np.arange(d)
    equal = [eigen_root_risk(np.ones(d), beta, n, often, rng) for n in sizes]
    apart = [eigen_root_risk(spectrum, beta, n, often, rng) for n in sizes]
    plain = [draws.risk(JustInTime.plain(d), math.inf, n) for n in sizes]
    return Claim(
        "theorem 4, assumption 1",
        "Σ^{1/2} means A = U S, from the eigendecomposition of Σ.",
        "The proof is about the symmetric root. With A = U S, even with the signs of eigenvectors "
        f"given, the risk at Σ_T = I is {listed(equal)} for n_T = 4 d², 64 d² (d = {d}): "
        "eigenvectors of equal eigenvalues cannot be told apart. With eigenvalues 4⁻ʲ it is "
        f"{listed(apart)}; the symmetric root has {listed(plain)} at Σ_T = I.",
        equal[1] > 0.5 * equal[0] and all(risk[1] < risk[0] / 8.0 for risk in (apart, plain)),
        "holds in part",
    )


def _break_even(draws: Draws) -> Claim:
    sizes = np.array([8, 16, 32])
    rows = np.array([break_even_rows(int(d), 0.5, draws) for d in sizes])
    power = log_slope(sizes, rows)
    return Claim(
        "theorem 4, discussion",
        "That DARE does not outperform methods made for UDA is possibly due to n ≪ d².",
        "Other methods are not looked at here. In this model d² rows are the bound's need, not the "
        "method's: adapting beats the averaged guess of six training domains of the same spread, "
        f"±0.5 in log singular values, from {listed(rows / sizes)} rows a feature on at d = 8, 16, "
        f"32 (slope of rows in d: {power:.3g}).",
        # Nearer to d than to d².
        bool(np.all(rows < sizes**2)) and power < 1.5,
        "holds in part",
    )
