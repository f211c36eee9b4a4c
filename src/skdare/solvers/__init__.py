"""Solvers: they see a function of flat parameters, its derivatives, and nothing else.

Every solver returns a `Solution` whose status names the cause and the remedy; none returns NaN
as a result.
"""

from __future__ import annotations

from collections.abc import Callable

from skdare.solvers._lbfgs import History as History
from skdare.solvers._lbfgs import lbfgs as lbfgs
from skdare.solvers._minimax import minimax as minimax
from skdare.solvers._newton import direct, trust_ncg
from skdare.solvers._solution import Function as Function
from skdare.solvers._solution import Solution, Status

SOLVERS: dict[str, Callable[..., Solution]] = {
    "lbfgs": lbfgs,
    "trust-ncg": trust_ncg,
    "direct": direct,
}

__all__ = ["Solution", "Status"]
