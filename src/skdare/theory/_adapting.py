"""When to adapt: whitening a new domain by its own rows, against the averaged guess.

Six training domains, log singular values uniform in ±0.5; those of the new domain are uniform in
± a shift. All are symmetric, latent means are zero and β* is known, so that only the adjustment of
the new domain is compared.
"""

from __future__ import annotations

import math

import numpy as np

from skdare.theory._adversary import averaged_guess, excess_risk
from skdare.theory._just_in_time import Draws, JustInTime
from skdare.theory._model import LatentModel

DOMAINS, SPREAD = 6, 0.5


def adapting_gain(d: int, shift: float, n_target: int, draws: Draws) -> float:
    """log₁₀ of mean risk of the averaged guess over that of adapting: positive if adapting wins.

    Each of the draws has its own training and new domains, and ten draws of the new rows.
    """
    averaged, adapted, rows = 0.0, 0.0, Draws(10, draws.rng)
    for _ in range(draws.repeats):
        seen, new = (
            LatentModel.draw(d, number, shift=0.0, spread=spread, random_state=draws.rng)
            for number, spread in ((DOMAINS, SPREAD), (1, shift))
        )
        target = new.domains[0]
        averaged += excess_risk(seen.beta, seen.beta, averaged_guess(seen), target)
        problem = JustInTime(target, target, seen.beta, 0.0)
        adapted += rows.risk(problem, math.inf, n_target)
    return float(np.log10(averaged / adapted))


def break_even_rows(d: int, shift: float, draws: Draws) -> float:
    """Rows from which adapting beats the averaged guess, between 1.5 and 12 a feature."""
    rows = d * np.array([1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0])
    gains = np.array([adapting_gain(d, shift, int(n), draws) for n in rows])
    return float(np.exp(first_crossing(np.log(rows), gains)))


def first_crossing(x: np.ndarray, y: np.ndarray) -> float:
    """Where y, in order of x, first reaches zero from below: on the line to the point before.

    Noise may take y below zero again. The first x if y starts above, the last if it stays below.
    """
    above = np.flatnonzero(y >= 0.0)
    if not len(above):
        return float(x[-1])
    k = int(above[0])
    return float(x[0]) if k == 0 else float(np.interp(0.0, y[k - 1 : k + 1], x[k - 1 : k + 1]))
