"""What the paper says, what was measured, and the curves behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from skdare._validation import check_choice

VERDICTS = ("holds", "holds in part", "does not hold as printed")
# What is claimed: a result; a step of a proof, whose conclusion may stand all the same; a symbol.
KINDS = ("result", "proof step", "notation")


@dataclass(frozen=True)
class Claim:
    """One statement beside its measurement.

    Parameters
    ----------
    where : str
        Such as "theorem 2".
    says : str
        The paper's statement, in a sentence.
    measured : str
        What was found, with numbers.
    confirmed : bool
        Whether those numbers bear the verdict out: computed from them, with the sentence.
    verdict : one of `VERDICTS`
    kind : one of `KINDS`

    Examples
    --------
    >>> from skdare.theory import Claim
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
        """The verdict, if these numbers bear it out."""
        return self.verdict if self.confirmed else "not confirmed"


@dataclass(frozen=True, eq=False)
class Curve:
    """A line or points: y against x.

    Parameters
    ----------
    x, y : arrays of shape (m,)
    dots : bool
        Points that were measured, rather than a line that was computed.
    """

    x: np.ndarray
    y: np.ndarray
    dots: bool = False


@dataclass(frozen=True, eq=False)
class Chart:
    """Curves by name over one pair of axes, with a sentence that says what they show.

    Parameters
    ----------
    name : str
        Also that of a file.
    title, x, y, note : str
    curves : mapping from name to Curve
    logarithmic : sequence of "x" and "y"
    marks : mapping from name to x
        Upright lines.
    """

    name: str
    title: str
    x: str
    y: str
    note: str
    curves: Mapping[str, Curve]
    logarithmic: Sequence[str] = ()
    marks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Map:
    """Values over a grid, positive and negative, with a sentence that says what they show.

    Parameters
    ----------
    name, title, x, y, value, note : str
    at_x, at_y : arrays of shape (m,) and (k,)
    values : array of shape (k, m)
    """

    name: str
    title: str
    x: str
    y: str
    value: str
    note: str
    at_x: np.ndarray
    at_y: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Chapter:
    """The statements of one part of the paper, and their pictures."""

    title: str
    claims: Sequence[Claim]
    pictures: Sequence[Chart | Map] = ()
