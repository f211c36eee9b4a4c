"""The real data sets of the demonstration, and what comes of a bench of each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skdare.bench import Plan, Record, Settings, bench_plan
from skdare.datasets import DomainData, load_diabetes_domains, load_penguin_domains
from skdare.heads import DAREClassifierCV

DEMO_HEADS = ("erm", "dare", "dare-cv", "dare-cv-adapted")
EXTRAS = ("ceilings", "curve", "diagnostics")
# A difference from which the demonstration calls a head better: two points, or 0.02 of R².
_MATTERS = 0.02


@dataclass(frozen=True, eq=False)
class Study:
    """A real data set to show.

    Parameters
    ----------
    name : str
    question : str
        What is predicted, and where.
    what : str
        What the data are.
    a_domain : str
        What a domain is here.
    load : callable
    """

    name: str
    question: str
    what: str
    a_domain: str
    load: Callable[[], DomainData]

    def plan(self, trials: int) -> Plan:
        """The plan of the bench: every head at its defaults, features standardised."""
        return bench_plan(
            self.load(),
            heads=DEMO_HEADS,
            extras=EXTRAS,
            name=self.name,
            trials=trials,
            settings=Settings(standardize=True),
        )


STUDIES = (
    Study(
        "penguins",
        "male or female, in a species not seen in training",
        "333 real birds, 4 measurements",
        "species",
        load_penguin_domains,
    ),
    Study(
        "diabetes",
        "progress in an age group not seen in training",
        "R², 442 real patients, 9 measurements",
        "age group",
        load_diabetes_domains,
    ),
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The scores of every head on every held-out domain of a study, averaged over trials.

    Parameters
    ----------
    study : Study
    scores : mapping from head to mapping from domain to score
    accuracy : bool
        Whether scores are accuracies; else they are R².
    """

    study: Study
    scores: Mapping[str, Mapping[str, float]]
    accuracy: bool

    @classmethod
    def of(cls, study: Study, records: Sequence[Record]) -> Outcome:
        """The outcome of a bench by its records, in which every head has scores."""
        scores: dict[str, dict[str, list[float]]] = {head: {} for head in DEMO_HEADS}
        for record in records:
            if record.study == "main" and record.score is not None:
                scores[record.head].setdefault(record.held_out, []).append(record.score)
        means = {
            head: {domain: float(np.mean(values)) for domain, values in by_domain.items()}
            for head, by_domain in scores.items()
        }
        return cls(study, means, records[0].task == "classification")

    @property
    def domains(self) -> list[str]:
        """Domains that were held out."""
        return list(self.scores["erm"])

    def mean(self, head: str) -> float:
        """Mean score of a head over held-out domains."""
        return float(np.mean(list(self.scores[head].values())))

    def wins(self, head: str) -> int:
        """Number of domains on which a head scores higher than ERM."""
        erm = self.scores["erm"]
        return sum(self.scores[head][domain] > erm[domain] for domain in self.domains)

    @property
    def advice(self) -> str:
        """What to do: adapt, use a head as it is, or stay with ERM."""
        gains = {
            head: self.mean(head) - self.mean("erm") for head in ("dare-cv-adapted", "dare-cv")
        }
        if gains["dare-cv-adapted"] - max(gains["dare-cv"], 0.0) >= _MATTERS:
            return "adapt"
        return "use" if gains["dare-cv"] >= _MATTERS else "stay"


def one_class_only(study: Study) -> tuple[float, float]:
    """Accuracy on new rows of one class, as it is and adapted to these rows: what adapting risks.

    Every domain is held out in turn, and the rows of each class are taken by themselves.
    """
    data = study.load()
    accuracies = []
    for domain in np.unique(data.domains):
        new = data.domains == domain
        head = DAREClassifierCV(standardize=True)
        head.fit(data.X[~new], data.y[~new], domains=data.domains[~new])
        for name in np.unique(data.y):
            rows = new & (data.y == name)
            with warnings.catch_warnings():
                # That the rows are of one class is the point here.
                warnings.simplefilter("ignore", UserWarning)
                adapted = head.adapt(data.X[rows])
            accuracies.append(
                [other.score(data.X[rows], data.y[rows]) for other in (head, adapted)]
            )
    as_it_is, after = np.mean(accuracies, axis=0)
    return float(as_it_is), float(after)
