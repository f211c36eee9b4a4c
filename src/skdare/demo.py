"""The demonstration: the whole bench on embedded data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from skdare.bench import Plan, bench_plan
from skdare.datasets import DomainData, load_digit_domains, make_latent_domains

EXTRAS = ("ceilings", "curve", "diagnostics")


@dataclass(frozen=True, eq=False)
class Study:
    """A data set to show: a name, a sentence, the data, and the options of DARE on it."""

    name: str
    note: str
    load: Callable[[], DomainData]
    options: Mapping[str, Mapping[str, Any]]

    def plan(self, trials: int) -> Plan:
        """The plan of its bench."""
        return bench_plan(
            self.load(), extras=EXTRAS, name=self.name, trials=trials, options=self.options
        )


def _latent() -> DomainData:
    return make_latent_domains(6, 400, 8, shift=0.8, random_state=0)


# The model's own inverse: 400 rows tell 8 features' moments, and its means carry information, so
# little shrinkage and the means left in.
_LATENT: Mapping[str, Mapping[str, Any]] = {
    "dare": {"shrinkage": 0.1},
    "adapted": {"adaptation": "covariance"},
}
STUDIES = (
    Study(
        "latent model",
        "the paper's model: 6 domains, each with its own linear map and mean; 2 classes",
        _latent,
        _LATENT,
    ),
    Study(
        "digits in four styles",
        "1,797 handwritten digits, each image in one style; 10 classes, 64 pixels as features",
        load_digit_domains,
        {"adapted": {"adaptation": "centered"}},
    ),
)
