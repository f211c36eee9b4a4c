"""The dress rehearsal: every training domain held out in turn, as if it were the new one."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from skdare._array import take
from skdare.diagnosis._task import Classes, Numbers, Reading, Task

# Rows of every other domain that a rehearsal does not train on: what one is used to is read there.
ASIDE = 0.2
# Unlabelled rows to adapt by, beside all that a domain has.
ADAPT_ROWS = (25, 100, 400, 1600, 6400)
# Rehearsed domains that no offset at all is worth.
_PRIOR = 20.0
# Labelled rows to retrain by: so many a class, or for a regression so many tens.
LABELLED = (5, 20, 50)


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

    @property
    def loss(self) -> float:
        """What the new domain cost."""
        return self.usual - self.as_is

    @property
    def foreseen(self) -> float | None:
        """What would have been said of that without a label; see `foreseen_loss`."""
        return foreseen_loss(
            self.usual_confidence,
            Reading(np.empty(0), self.confidence),
            self.disagreement,
        )

    def gain(self, rows: int) -> float | None:
        """Of adapting by so many rows: between the numbers tried, linear in their logarithm."""
        if not self.adapted:
            return None
        tried = sorted(self.adapted)
        gains = [self.adapted[n] - self.as_is for n in tried]
        return float(np.interp(np.log(rows), np.log(tried), gains))


def foreseen_loss(
    usual_confidence: float | None, read: Reading, disagreement: float | None
) -> float | None:
    """The mean of two signs of a loss, both on the scale of scores.

    Confidence lost against rows of the training domains; and disagreement between the head with
    the averaged adjustment and the one with the new domain's own. Either alone is less good; see
    docs/diagnosis.md.
    """
    signs = []
    if usual_confidence is not None and read.confidence is not None:
        signs.append(usual_confidence - read.confidence)
    if disagreement is not None:
        signs.append(disagreement)
    return float(np.mean(signs)) if signs else None


@dataclass(frozen=True)
class Rehearsal:
    """What a head has been through.

    Parameters
    ----------
    domains : sequence of Rehearsed
    task : Task
    """

    domains: Sequence[Rehearsed]
    task: Task

    @property
    def usual(self) -> float:
        """The score one is used to."""
        return float(np.mean([one.usual for one in self.domains]))

    @property
    def usual_confidence(self) -> float | None:
        """Mean confidence where that score was had."""
        found = [one.usual_confidence for one in self.domains]
        return None if found[0] is None else float(np.mean(found))  # type: ignore[arg-type]

    @property
    def saturated(self) -> bool:
        """Whether held-out domains score as on features that were fine-tuned on them."""
        return float(np.mean([one.as_is for one in self.domains])) > self.task.saturated

    @property
    def offset(self) -> float:
        """What foreseen losses lacked on average, as far as so few domains can be believed.

        A domain that is hard when held out is not among those it was rehearsed with, so with few
        domains the average leans the wrong way; hence `_PRIOR`.
        """
        lacked = np.clip([one.loss - (one.foreseen or 0.0) for one in self.domains], -1.0, 1.0)
        return float(lacked.mean()) * len(lacked) / (len(lacked) + _PRIOR)

    @property
    def miss(self) -> float:
        """How far the expected loss was off: a value that nine in ten domains stayed below."""
        expected = [self.offset + (one.foreseen or 0.0) for one in self.domains]
        misses = [abs(one.loss - e) for one, e in zip(self.domains, expected, strict=True)]
        return float(np.quantile(misses, 0.9, method="higher"))

    def gains(self, rows: int) -> dict[str, float]:
        """Of adapting by so many rows, by domain."""
        found = {one.domain: one.gain(rows) for one in self.domains}
        return {domain: gain for domain, gain in found.items() if gain is not None}

    def retrained(self) -> dict[int, float]:
        """Mean score after retraining, by number of labelled rows that every domain could give."""
        tried = [set(one.retrained) for one in self.domains if one.retrained]
        if not tried:
            return {}
        common = sorted(set.intersection(*tried))
        return {
            n: float(np.mean([one.retrained[n] for one in self.domains if one.retrained]))
            for n in common
        }

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"usual": self.usual, "domains": [asdict(one) for one in self.domains]}


class Rehearsing:
    """Runs the rehearsal of one head on its training rows.

    Parameters
    ----------
    head : fitted head
        Never modified; copies of it are fitted.
    X, y : training rows
    numbers : sequence of arrays
        Rows of each domain.
    labels : sequence of domain labels
    """

    def __init__(
        self,
        head: Any,
        X: Any,
        y: np.ndarray,
        numbers: Sequence[np.ndarray],
        labels: Sequence[Hashable],
    ) -> None:
        self.head, self.X, self.y, self.numbers, self.labels = head, X, y, numbers, labels
        rng = np.random.default_rng(0)
        self._aside = [rng.random(len(rows)) < ASIDE for rows in numbers]
        self.task: Task
        if is_classifier(head):
            _, counts = np.unique(y, return_counts=True)
            self.task, self._unit = Classes(float(counts.max() / len(y))), len(counts)
        else:
            self.task, self._unit = Numbers(float(np.var(y))), 10

    def __call__(self) -> Rehearsal:
        """Hold every domain out in turn."""
        with warnings.catch_warnings():
            # What they say of a domain, the diagnosis says better.
            warnings.simplefilter("ignore")
            found = list(self._rehearsed())
        if not found:
            raise ValueError(
                "no training domain could be held out: without it the others have one class, or "
                "too few rows"
            )
        return Rehearsal(tuple(found), self.task)

    def _rehearsed(self) -> Iterator[Rehearsed]:
        for e in range(len(self.labels)):
            others = [o for o in range(len(self.labels)) if o != e]
            if is_classifier(self.head):
                left = np.concatenate([self.y[self._train(o)] for o in others])
                if len(np.unique(left)) < 2:
                    continue
            yield self._one(e, others)

    def _train(self, e: int) -> np.ndarray:
        return self.numbers[e][~self._aside[e]]

    def _one(self, e: int, others: Sequence[int]) -> Rehearsed:
        head = clone(self.head).set_params(**_free_of_labels(self.head))
        self._fit(head, others)
        aside = np.concatenate([self.numbers[o][self._aside[o]] for o in others])
        usual = self.task.read(head, take(self.X, aside))
        rows, y = take(self.X, self.numbers[e]), self.y[self.numbers[e]]
        read = self.task.read(head, rows)
        adapted, disagreement = self._adapted(head, rows, y, read)
        return Rehearsed(
            str(self.labels[e]),
            len(y),
            self.task.score(usual.values, self.y[aside]),
            self.task.score(read.values, y),
            read.confidence,
            usual.confidence,
            disagreement,
            adapted,
            self._retrained(e, others),
        )

    def _fit(self, head: Any, others: Sequence[int], new: np.ndarray | None = None) -> None:
        """On the rows of others that are not set aside, and on labelled rows of a new domain."""
        parts = [self._train(o) for o in others] + ([] if new is None else [new])
        names = [np.full(len(part), number) for number, part in enumerate(parts)]
        index = np.concatenate(parts)
        head.fit(take(self.X, index), self.y[index], domains=np.concatenate(names))

    def _adapted(
        self, head: Any, rows: Any, y: np.ndarray, read: Reading
    ) -> tuple[dict[int, float], float | None]:
        """Scores after adapting, and the disagreement where all rows were used."""
        if head.adaptation_ is None:
            return {}, None
        rng, scores, disagreement = np.random.default_rng(0), {}, None
        for n in [*(n for n in ADAPT_ROWS if n < len(y)), len(y)]:
            if n < 2:
                continue
            some = np.sort(rng.permutation(len(y))[:n])
            values = self.task.read(head.adapt(take(rows, some)), rows).values
            scores[n] = self.task.score(values, y)
            disagreement = self.task.disagreement(read.values, values)
        return scores, disagreement

    def _retrained(self, e: int, others: Sequence[int]) -> dict[int, float]:
        """Scores on the other rows of a domain after retraining with some of its labels."""
        rng, scores = np.random.default_rng(0), {}
        order = rng.permutation(self.numbers[e])
        for each in LABELLED:
            n = each * self._unit
            if 2 * n > len(order):
                break
            head = self.head._retrainer()
            self._fit(head, others, np.sort(order[:n]))
            rest = np.sort(order[n:])
            values = self.task.read(head, take(self.X, rest)).values
            scores[n] = self.task.score(values, self.y[rest])
        return scores


def _free_of_labels(head: Any) -> dict[str, Any]:
    """A guess that names domains cannot be asked for when one of them is away."""
    return {"guess": "mean"} if isinstance(getattr(head, "guess", None), Mapping) else {}
