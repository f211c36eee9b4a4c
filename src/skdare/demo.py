"""The demonstration: the whole bench on embedded data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from skdare.bench import Plan, Questions, Source, bench_plan
from skdare.datasets import DomainData, load_digit_domains, make_latent_domains

EXTRAS = ("ceilings", "curve", "diagnostics")


@dataclass(frozen=True, eq=False)
class Study:
    """A data set to show: a name, a sentence, the data, and the options of DARE on it."""

    name: str
    note: str
    load: Callable[[], DomainData]
    options: Mapping[str, Mapping[str, Any]]

    def ask(self, trials: int) -> tuple[Plan, dict[str, Source]]:
        """The plan of its bench, and the sources to run it on."""
        sources = {"given": Source.of(self.load(), name=self.name)}
        return bench_plan(Questions(sources, trials=trials, options=self.options), EXTRAS), sources


def _latent() -> DomainData:
    return make_latent_domains(6, 400, 8, shift=0.8, random_state=0)


# The model's own inverse: 400 rows tell 8 features' moments, and its means carry information, so
# little shrinkage and the means left in.
_LATENT = {"shrinkage": 0.1, "adaptation": "covariance"}
STUDIES = (
    Study(
        "latent model",
        "the paper's model: 6 domains, each with its own linear map and mean; 2 classes",
        _latent,
        {"dare": {"shrinkage": 0.1}, "adapted": _LATENT},
    ),
    Study(
        "digits in four styles",
        "1,797 handwritten digits, each image in one style; 10 classes, 64 pixels as features",
        load_digit_domains,
        {"adapted": {"adaptation": "centered"}},
    ),
)


def studies(trials: int) -> Iterator[tuple[Study, Plan, dict[str, Source]]]:
    """Every study with its plan and sources."""
    for study in STUDIES:
        yield study, *study.ask(trials)
