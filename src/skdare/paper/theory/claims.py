"""What the paper says, what was measured, and how near the two must be.

A statement of the paper is a function: `statement` names its place and our verdict, its docstring
is the paper's sentence, and its body measures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec

import numpy as np

from skdare.checks import check_choice
from skdare.paper.theory.charts import Chart, Map

P = ParamSpec("P")

VERDICTS = ("holds", "holds in part", "does not hold as printed")
NOT_CONFIRMED = "not confirmed"
# A proof step may fail and its conclusion stand all the same; notation is a symbol in the wrong
# place.
KINDS = ("result", "proof step", "notation")

# What rounding leaves of a number that is zero, or of a difference between equals, after a few
# solves of well-conditioned systems; it printed below 1e-9 wherever it was looked at.
ROUNDING = 1e-7
# Powers in question are multiples of 1/2: a fitted one belongs to the nearest.
RATE = 0.25
# Standard errors by which a mean of independent draws may miss: 1 in 16,000 does so by chance.
DEVIATIONS = 4.0
# A share of the whole that shows without looking closely; what a sentence calls a difference is
# larger.
VISIBLE = 0.01


@dataclass(frozen=True)
class Claim:
    """One statement of the paper and its measurement.

    Parameters
    ----------
    where : str
        The place in the paper, such as "theorem 2".
    says : str
        The paper's statement, in a sentence.
    measured : str
        What was measured, with numbers.
    confirmed : bool
        Whether those numbers bear the verdict out: computed from them, with the sentence.
    verdict : "holds", "holds in part" or "does not hold as printed"
    kind : "result", "proof step" or "notation"

    Examples
    --------
    >>> from skdare.paper.theory import Claim
    >>> Claim("a sum", "2 + 2 is 4.", f"It is {2 + 2}.", 2 + 2 == 4).told
    'holds'
    >>> Claim("a sum", "2 + 2 is 5.", f"It is {2 + 2}.", 2 + 2 == 5).told
    'not confirmed'
    """

    where: str
    says: str
    measured: str
    confirmed: bool
    verdict: str = "holds"
    kind: str = "result"

    def __post_init__(self) -> None:
        check_choice("verdict", self.verdict, VERDICTS)
        check_choice("kind", self.kind, KINDS)
        # Comparisons of numpy's numbers are numpy's booleans, which JSON does not take.
        object.__setattr__(self, "confirmed", bool(self.confirmed))

    @property
    def told(self) -> str:
        """The verdict if the numbers bear it out, else "not confirmed"."""
        return self.verdict if self.confirmed else NOT_CONFIRMED


@dataclass(frozen=True)
class Measurement:
    """What was measured, in words with numbers, and whether these bear the verdict out."""

    text: str
    confirmed: bool


def statement(
    where: str, verdict: str = "holds", kind: str = "result"
) -> Callable[[Callable[P, Measurement]], Callable[P, Claim]]:
    """Make a claim of a function that measures; its docstring is what the paper says."""

    def decorate(measure: Callable[P, Measurement]) -> Callable[P, Claim]:
        says = " ".join((measure.__doc__ or "").split())

        @wraps(measure)
        def claim(*args: P.args, **kwargs: P.kwargs) -> Claim:
            measurement = measure(*args, **kwargs)
            return Claim(where, says, measurement.text, measurement.confirmed, verdict, kind)

        return claim

    return decorate


@dataclass(frozen=True, eq=False)
class Chapter:
    """The statements of one part of the paper, and the pictures behind them."""

    title: str
    claims: Sequence[Claim]
    pictures: Sequence[Chart | Map] = ()


def listed(values: Iterable[float]) -> str:
    """Numbers in words, three digits each; what rounding leaves of a zero is written as zero."""
    return ", ".join(f"{0.0 if abs(value) < 1e-12 else value:.3g}" for value in values)


def log_slope(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> float:
    """The power of x that y follows: least squares on logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def near(
    measured: float | Sequence[float] | np.ndarray, expected: float | np.ndarray, share: float
) -> bool:
    """Whether every number is within a share of the expected one."""
    return bool(np.all(np.abs(np.subtract(measured, expected)) <= share * np.abs(expected)))
