"""What came of holding every training domain out in turn, as if it were the new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from skdare.diagnosis._left_out_scores import LeftOutScores
from skdare.diagnosis._score_scale import ScoreScale
from skdare.fitting.targets import hardly_unseen


@dataclass(frozen=True)
class Rehearsed:
    """One training domain, held out.

    Parameters
    ----------
    domain : str
    rows : int
    as_is : float
        Score of the head as it is.
    disagreement : float, optional
        Between the head as it is and the one adapted to all rows.
    both_right : float, optional
        Share of the rows that both predict rightly; of classes only.
    adapted : mapping from a number of rows to the score after adapting by them
    retrained : mapping from a number of labelled rows to the score after adapting with them
    errors : mapping from a number of rows to the normalised error of the others' guess
    moved : float
        By how much, at least, the shift of its mean moved the scores, over their deviation.
    nonconformity, adapted_nonconformity : array of shape (201,), optional
        Quantiles of one less the probability of the true class, as it is and adapted to all rows;
        of classes only.
    """

    domain: str
    rows: int
    as_is: float
    disagreement: float | None
    both_right: float | None
    adapted: Mapping[int, float]
    retrained: Mapping[int, float]
    errors: Mapping[int, float]
    moved: float
    nonconformity: np.ndarray | None = field(default=None, compare=False, repr=False)
    adapted_nonconformity: np.ndarray | None = field(default=None, compare=False, repr=False)

    @property
    def adapted_by_all(self) -> float | None:
        """Score after adapting to all rows, where it could be."""
        return None if self.disagreement is None else self.adapted[self.rows]

    def with_labels(self, labels: int) -> float:
        """Score with at most this many labels, the most of which were tried; else without any."""
        tried = [n for n in self.retrained if n <= labels]
        if tried:
            return self.retrained[max(tried)]
        return self.as_is if self.adapted_by_all is None else self.adapted_by_all

    def gain(self, rows: int) -> float | None:
        """Gain of adapting by this many rows."""
        score = _read_off(self.adapted, rows)
        return None if score is None else score - self.as_is

    def error(self, rows: int) -> float | None:
        """Error of the others' guess, at this many rows."""
        return _read_off(self.errors, rows)


def _read_off(tried: Mapping[int, float], rows: int) -> float | None:
    """A score between the numbers tried, linear in their logarithm; beyond them, the nearest."""
    if not tried:
        return None
    numbers = sorted(tried)
    return float(np.interp(np.log(rows), np.log(numbers), [tried[n] for n in numbers]))


@dataclass(frozen=True)
class Rehearsal:
    """What a head has been through.

    Parameters
    ----------
    domains : sequence of Rehearsed
    task : ScoreScale
    scores : LeftOutScores, optional
        Of the head itself; of a classifier.
    """

    domains: Sequence[Rehearsed]
    task: ScoreScale
    scores: LeftOutScores | None = None

    @property
    def as_is(self) -> float:
        """Mean score of the head as it is."""
        return float(np.mean([one.as_is for one in self.domains]))

    @property
    def typical(self) -> float:
        """Mean score, as it is or adapted, whichever is higher."""
        adapted = [score for one in self.domains if (score := one.adapted_by_all) is not None]
        return max([self.as_is, *([float(np.mean(adapted))] if adapted else [])])

    @property
    def saturated(self) -> bool:
        """Whether held-out domains score as on features that were fine-tuned on them."""
        return hardly_unseen(self.as_is, self.task.saturated)

    def gains(self, rows: int) -> dict[str, float]:
        """Gains of adapting by this many rows, by domain."""
        return {one.domain: g for one in self.domains if (g := one.gain(rows)) is not None}

    def errors(self, rows: int) -> dict[str, float]:
        """Errors of the others' guess at this many rows, by domain."""
        return {one.domain: e for one in self.domains if (e := one.error(rows)) is not None}

    def retrained(self) -> dict[int, list[float]]:
        """Scores after adapting with labels, by a number of them that half of the domains gave.

        Every domain has its score for every number, so that they can be compared: one that is too
        small for a number, that with the most labels it gave.
        """
        numbers = sorted({n for one in self.domains for n in one.retrained})
        given = {n: sum(n in one.retrained for one in self.domains) for n in numbers}
        return {
            n: [one.with_labels(n) for one in self.domains]
            for n in numbers
            if 2 * given[n] >= len(self.domains)
        }
