"""The demonstration: what to expect on two real data sets and on the paper's model.

Notation: A (d, d) a domain's transformation, b (d,) its latent mean, c (d,) a head's weights,
β (d,) the truth, v (d,) the error of a head on the latents, ρ the length of a mean.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from skdare.bench import Plan, Record, Settings, bench_plan
from skdare.datasets import (
    DomainData,
    load_diabetes_domains,
    load_penguin_domains,
    make_latent_domains,
)
from skdare.datasets._synthetic import LatentLaw
from skdare.heads import DAREClassifierCV, DARERegressor, ERMRegressor
from skdare.theory import LatentDomain, excess_risk

HEADS = ("erm", "dare", "dare-cv", "dare-cv-adapted")
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
            heads=HEADS,
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
        scores: dict[str, dict[str, list[float]]] = {head: {} for head in HEADS}
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


# -- The paper's model ----------------------------------------------------------------------------

_DOMAINS = 6
_ROWS = 400
_FEATURES = 8
_MEAN_RANK = 2
_SHIFT = 0.5
# How many times as far the log scales of a domain further out may be from zero.
_FURTHER = 4.0
_NEW_DOMAINS = 100
_NEW_ROWS = 300


@dataclass(frozen=True)
class Risks:
    """Excess risks of a head on new domains, as shares of the signal ‖β‖².

    Parameters
    ----------
    alike, further : array of shape (n,)
        On random domains drawn as the training domains were, and on domains further out.
    adversary : float or None
        On the domain that costs the head most; None where it adapts to each.
    """

    alike: np.ndarray
    further: np.ndarray
    adversary: float | None

    def fields(self) -> dict[str, Any]:
        """Mean and tail, by name."""
        return {
            "alike_mean": float(self.alike.mean()),
            "alike_95": float(np.quantile(self.alike, 0.95)),
            "further_mean": float(self.further.mean()),
            "further_95": float(np.quantile(self.further, 0.95)),
            "adversary": self.adversary,
        }


def paper_model(seed: int = 0) -> dict[str, Risks]:
    """Risks of ERM, DARE and DARE adapted on the paper's model, by name of the head.

    Heads are fitted on samples, without an intercept as the paper prints them; DARE is theorem
    1's: the paper's options, whitened by covariances, with the constraint exact. Risks are exact.
    """
    data = make_latent_domains(
        _DOMAINS,
        _ROWS,
        _FEATURES,
        task="regression",
        shift=_SHIFT,
        mean_rank=_MEAN_RANK,
        noise=1.0,
        random_state=seed,
    )
    # The same seed gives the law that the training domains were drawn from.
    law = LatentLaw.draw(_FEATURES, _MEAN_RANK, np.random.default_rng(seed))
    rng = np.random.default_rng(seed + 1)
    alike = [LatentDomain(*law.domain(_SHIFT, rng)) for _ in range(_NEW_DOMAINS)]
    further = [
        LatentDomain(*law.domain(_SHIFT, rng, further=_FURTHER)) for _ in range(_NEW_DOMAINS)
    ]
    rho = max(float(np.linalg.norm(domain.b)) for domain in chain(alike, further))
    erm = ERMRegressor(fit_intercept=False).fit(data.X, data.y, domains=data.domains)
    dare = DARERegressor.as_in_paper(
        mean_penalty="exact", centered=True, adaptation="covariance", fit_intercept=False
    ).fit(data.X, data.y, domains=data.domains)

    found = {}
    for name, head in (("erm", erm), ("dare", dare)):
        c = np.ravel(head.coef_)
        worst = worst_domain(law, c, _FURTHER * _SHIFT, rho)
        found[name] = Risks(
            np.array([_share(c, law.beta, domain) for domain in alike]),
            np.array([_share(c, law.beta, domain) for domain in further]),
            _share(c, law.beta, worst),
        )
    found["adapted"] = Risks(
        _adapted_shares(dare, law.beta, alike, rng),
        _adapted_shares(dare, law.beta, further, rng),
        None,
    )
    return found


def _adapted_shares(
    dare: DARERegressor,
    beta: np.ndarray,
    domains: Sequence[LatentDomain],
    rng: np.random.Generator,
) -> np.ndarray:
    """Excess risk in each domain after adapting to unlabelled rows of it."""
    shares = []
    for domain in domains:
        rows = domain.latents(_NEW_ROWS, rng) @ domain.A.T
        shares.append(_share(dare.adapt(rows, prior_rows=0).coef_, beta, domain))
    return np.array(shares)


def worst_domain(law: LatentLaw, c: np.ndarray, shift: float, rho: float) -> LatentDomain:
    """The domain of a law's reach, with a mean no longer than ρ, that costs weights c most.

    Along each eigenvector the error is the scale times c less β, which is largest at one end of
    the scales or the other; and the worst mean points along the error.
    """
    weights = law.U.T @ np.ravel(c)
    truth = law.U.T @ law.beta
    reach = law.reach(shift)
    stretched = np.abs(np.exp(reach) * weights - truth)
    shrunk = np.abs(np.exp(-reach) * weights - truth)
    logs = np.where(stretched > shrunk, reach, -reach)
    v = law.U @ (np.exp(logs) * weights - truth)
    return LatentDomain(law.transformation(logs), rho * v / np.linalg.norm(v))


def _share(c: np.ndarray, beta: np.ndarray, domain: LatentDomain) -> float:
    """Excess risk of weights on the features, as a share of the signal ‖β‖²."""
    return excess_risk(np.ravel(c), beta, np.eye(len(beta)), domain) / float(beta @ beta)
