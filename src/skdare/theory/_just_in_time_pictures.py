"""Pictures of theorem 4: risk against rows, condition number and units, and when to adapt."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from skdare.theory._adapting import DOMAINS, SPREAD, adapting_gain
from skdare.theory._claim import Chart, Curve, Map
from skdare.theory._just_in_time import (
    Draws,
    JustInTime,
    just_in_time_bound,
    just_in_time_expected,
)

_BOUNDS = {"bound as printed": "printed", "bound, m = κ²": "repaired", "bound, m = 1": "free"}
_LOG = ("x", "y")


def just_in_time_pictures(problem: JustInTime, draws: Draws) -> list[Chart | Map]:
    """Four charts and a map."""
    return [
        _against_target_rows(problem, draws),
        _against_source_rows(problem, draws),
        _against_condition(problem, draws),
        _against_units(problem, draws),
        _when_to_adapt(len(problem.beta), Draws(max(10, draws.repeats // 6), draws.rng)),
    ]


def _curves(
    x: np.ndarray,
    problems: Sequence[JustInTime],
    sizes: Sequence[tuple[float, float]],
    draws: Draws,
) -> dict[str, Curve]:
    """Measured, expanded and bounded risk of each problem with its rows (n_S, n_T)."""
    cases = list(zip(problems, sizes, strict=True))
    measured = [draws.risk(problem, *n) for problem, n in cases]
    expected = [just_in_time_expected(problem, *n) for problem, n in cases]
    curves = {"measured": Curve(x, np.array(measured), dots=True)}
    curves["first order"] = Curve(x, np.array(expected))
    for name, form in _BOUNDS.items():
        bound = [just_in_time_bound(problem, *n, form) for problem, n in cases]
        curves[name] = Curve(x, np.array(bound))
    return curves


def _against_target_rows(problem: JustInTime, draws: Draws) -> Chart:
    d = len(problem.beta)
    n = np.unique(np.geomspace(2 * d, 64 * d**2, 10).astype(int))
    curves = _curves(n, [problem] * len(n), [(math.inf, int(m)) for m in n], draws)
    note = (
        f"d = {d}, condition number e² in both domains; the source is known. Bounds have "
        "constants of one. Dots leave the line where n_T is a few times d, not d²."
    )
    axes, marks = ("target rows n_T", "excess risk"), {"d": float(d), "d²": float(d**2)}
    return Chart("just-in-time-target", "Rows to adapt by", *axes, note, curves, _LOG, marks)


def _against_source_rows(problem: JustInTime, draws: Draws) -> Chart:
    d = len(problem.beta)
    n = np.unique(np.geomspace(6 * d, 64 * d**2, 10).astype(int))
    curves = _curves(n, [problem] * len(n), [(int(m), math.inf) for m in n], draws)
    whole = [draws.risk(problem, int(m), math.inf, split=False) for m in n]
    curves["measured, no splitting"] = Curve(n, np.array(whole), dots=True)
    note = "The target's covariance is known. Without splitting the same rows give Σ̂_S and β̂."
    axes, marks = ("source rows n_S", "excess risk"), {"d": float(d), "d²": float(d**2)}
    return Chart("just-in-time-source", "Rows to learn by", *axes, note, curves, _LOG, marks)


def _against_condition(problem: JustInTime, draws: Draws) -> Chart:
    d, at = len(problem.beta), np.geomspace(1.0, 1e6, 13)
    problems = [
        JustInTime.draw(d, condition=float(c), shift=0.0, noise=0.0, random_state=draws.rng)
        for c in at
    ]
    curves = _curves(at, problems, [(math.inf, 4 * d**2)] * len(at), draws)
    note = (
        f"d = {d}, n_T = 4 d², eigenvalues in geometric progression around one, with new axes and "
        "β* at every κ; no means. In these units λ_max/λ_min³ = κ². The risk stays below d/n_T at "
        "first order, whatever κ."
    )
    axes = ("condition number κ of Σ_T", "excess risk")
    title = "The condition number hardly matters"
    return Chart("just-in-time-condition", title, *axes, note, curves, _LOG)


def _against_units(problem: JustInTime, draws: Draws) -> Chart:
    d, at = len(problem.beta), np.geomspace(0.1, 100.0, 7)
    centered = JustInTime.draw(d, shift=0.0, noise=0.0, random_state=draws.rng)
    problems = [centered.in_units(float(c)) for c in at]
    curves = _curves(at, problems, [(math.inf, 4 * d**2)] * len(at), draws)
    note = (
        "x → c x changes neither predictions nor risk; λ_max/λ_min³ falls as c⁻⁴. "
        f"d = {d}, n_T = 4 d², no means."
    )
    axes = ("unit c", "excess risk")
    return Chart("just-in-time-units", "The printed m has units", *axes, note, curves, _LOG)


def _when_to_adapt(d: int, draws: Draws) -> Map:
    per = np.array([1.25, 2.0, 4.0, 8.0, 16.0, 64.0])
    shifts = np.array([0.0, 0.25, 0.5, 1.0, 1.5])
    gains = [[adapting_gain(d, float(s), int(p * d), draws) for p in per] for s in shifts]
    note = (
        "Positive where adapting has the smaller risk. "
        f"d = {d}: d² rows are {d} a feature. {DOMAINS} training domains with log singular values "
        f"uniform in ±{SPREAD}; the new domain's are uniform in ± the shift."
    )
    labels = ("rows a feature, n_T/d", "shift of the new domain", "log₁₀ risk averaged/adapted")
    title = "When adapting beats the averaged guess"
    return Map("just-in-time-map", title, *labels, note, per, shifts, np.array(gains))
