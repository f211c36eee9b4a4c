"""The demonstration: the whole bench on data that come with the package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from skdare.bench import Plan, bench_plan
from skdare.datasets import DomainData, load_digit_domains, make_latent_domains

EXTRAS = ("ceilings", "curve", "diagnostics")


@dataclass(frozen=True, eq=False)
class Study:
    """A data set to show: its name, a line about it, how to load it, and the options of heads."""

    name: str
    note: str
    load: Callable[[], DomainData]
    options: Mapping[str, Mapping[str, Any]]

    def plan(self, trials: int) -> Plan:
        """The plan of the bench on this data set."""
        return bench_plan(
            self.load(), extras=EXTRAS, name=self.name, trials=trials, options=self.options
        )


def _latent() -> DomainData:
    return make_latent_domains(6, 400, 8, shift=0.8, random_state=0)


# 400 rows are enough for the moments of 8 features, so shrink little; the means of this model
# carry information, so adapt the covariance only.
_LATENT_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "dare": {"shrinkage": 0.1},
    "adapted": {"adaptation": "covariance"},
}
STUDIES = (
    Study(
        "latent model",
        "the paper's model: 6 domains, each with its own linear map and mean; 2 classes",
        _latent,
        _LATENT_OPTIONS,
    ),
    Study(
        "digits in four styles",
        "1,797 handwritten digits, each image in one style; 10 classes, 64 pixels as features",
        load_digit_domains,
        {"adapted": {"adaptation": "centered"}},
    ),
)
