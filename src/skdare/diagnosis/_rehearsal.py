"""What came of holding every training domain out in turn, as if it were the new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skdare.diagnosis._score_scale import ScoreScale

# On features fine-tuned on the training domains, new domains lost 1.8 to 3.6 times what the signs
# said (PACS, four networks; 1.7 to 3.3 on twelve others that this number has not seen).
_FINE_TUNED = 3.0
# Rehearsed domains that no offset at all is worth: with three or four the average misleads.
_PRIOR = 20.0


@dataclass(frozen=True)
class Rehearsed:
    """One training domain, held out.

    Parameters
    ----------
    domain : str
    rows : int
    usual : float
        Score on rows of the other domains that were not trained on.
    as_is : float
        Score on the held-out domain, with the averaged adjustment.
    confidence, usual_confidence : float, optional
        Mean confidence there, and on the rows of the other domains.
    disagreement : float, optional
        Between the head as it is and the adapted one.
    adapted : mapping from a number of rows to the score after adapting by them
    retrained : mapping from a number of labelled rows to the score after retraining with them
    errors : mapping from a number of rows to the normalised error of the others' guess
    moved : float
        By how much, at least, the shift of its mean moved the scores, over their deviation.
    """

    domain: str
    rows: int
    usual: float
    as_is: float
    confidence: float | None
    usual_confidence: float | None
    disagreement: float | None
    adapted: Mapping[int, float]
    retrained: Mapping[int, float]
    errors: Mapping[int, float]
    moved: float

    @property
    def loss(self) -> float:
        """What the new domain cost."""
        return self.usual - self.as_is

    @property
    def foreseen(self) -> float | None:
        """What would have been said of that without a label; see `foreseen_loss`."""
        return foreseen_loss(self.usual_confidence, self.confidence, self.disagreement)

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


def foreseen_loss(
    usual_confidence: float | None, confidence: float | None, disagreement: float | None
) -> float | None:
    """The mean of two signs of a loss, both on the scale of scores.

    Confidence lost against rows of the training domains; and disagreement between the head with
    the averaged adjustment and the one with the new domain's own. Either alone is less good; see
    docs/diagnosis.md.
    """
    signs = [] if disagreement is None else [disagreement]
    if usual_confidence is not None and confidence is not None:
        signs.append(usual_confidence - confidence)
    return float(np.mean(signs)) if signs else None


@dataclass(frozen=True)
class Rehearsal:
    """What a head has been through.

    Parameters
    ----------
    domains : sequence of Rehearsed
    task : ScoreScale
    """

    domains: Sequence[Rehearsed]
    task: ScoreScale

    @property
    def usual(self) -> float:
        """The score one is used to."""
        return float(np.mean([one.usual for one in self.domains]))

    @property
    def usual_confidence(self) -> float | None:
        """Mean confidence where that score was had."""
        values = [c for one in self.domains if (c := one.usual_confidence) is not None]
        return float(np.mean(values)) if values else None

    @property
    def typical_loss(self) -> float:
        """Median loss over domains."""
        return float(np.median([one.loss for one in self.domains]))

    @property
    def saturated(self) -> bool:
        """Whether held-out domains score as on features that were fine-tuned on them."""
        return float(np.mean([one.as_is for one in self.domains])) > self.task.saturated

    @property
    def offset(self) -> float:
        """What foreseen losses lacked on average, as far as a few domains can be believed.

        A domain that is hard when held out is not among those it was rehearsed with, so with few
        domains the average leans the wrong way; hence `_PRIOR`.
        """
        lacked = np.clip(self._lacked(), -1.0, 1.0)
        return float(lacked.mean()) * len(lacked) / (len(lacked) + _PRIOR) if len(lacked) else 0.0

    def expected_loss(self, foreseen: float | None) -> float:
        """Expected loss on a new domain; where nothing is foreseen, what was typical."""
        if foreseen is None:
            return self.typical_loss
        return (_FINE_TUNED if self.saturated else 1.0) * foreseen + self.offset

    @property
    def miss(self) -> float:
        """How far the expected loss was off: a value that nine in ten domains stayed below."""
        lacked = self._lacked()
        misses = np.abs(lacked - self.offset) if len(lacked) else self._spread()
        return float(np.quantile(misses, 0.9, method="higher"))

    def _lacked(self) -> np.ndarray:
        """Losses less foreseen ones, of domains that had any."""
        pairs = [(one.loss, one.foreseen) for one in self.domains]
        return np.array([loss - foreseen for loss, foreseen in pairs if foreseen is not None])

    def _spread(self) -> np.ndarray:
        """Losses about their median, where nothing was foreseen."""
        return np.abs(np.array([one.loss for one in self.domains]) - self.typical_loss)

    def gains(self, rows: int) -> dict[str, float]:
        """Gains of adapting by this many rows, by domain."""
        return {one.domain: g for one in self.domains if (g := one.gain(rows)) is not None}

    def errors(self, rows: int) -> dict[str, float]:
        """Errors of the others' guess at this many rows, by domain."""
        return {one.domain: e for one in self.domains if (e := one.error(rows)) is not None}

    def retrained(self) -> dict[int, float]:
        """Mean score after retraining, by number of labelled rows that every domain could give."""
        tried = [one.retrained for one in self.domains if one.retrained]
        common = sorted(set.intersection(*map(set, tried))) if tried else []
        return {n: float(np.mean([scores[n] for scores in tried])) for n in common}
