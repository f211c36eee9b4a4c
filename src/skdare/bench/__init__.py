"""The bench: hold out each domain in turn, fit every head, and keep what came of it.

>>> from skdare.bench import bench_plan, run
>>> from skdare.datasets import make_latent_domains
>>> from skdare.report import summarise
>>> data = make_latent_domains(3, 60, random_state=0)
>>> plan = bench_plan(data, heads=["erm", "dare"], trials=1, extras=[])
>>> records = list(run(plan))
>>> summarise(records).groups[0].main.grid.lines
('erm', 'dare')
"""

from skdare.bench._ablations import ABLATIONS, ablation_plan
from skdare.bench._domainbed import DomainBedScores, read_domainbed
from skdare.bench._given import Given
from skdare.bench._heads import HEADS
from skdare.bench._log import Log
from skdare.bench._plan import DEFAULT_EXTRAS, EXTRAS, bench_plan
from skdare.bench._preparation import PROJECTIONS, Preparation
from skdare.bench._questions import TRIALS
from skdare.bench._record import (
    ABLATION,
    LABELS,
    METRICS,
    NETWORK,
    NOTHING,
    TESTED_ON,
    UNLABELLED,
    Record,
)
from skdare.bench._run import run
from skdare.bench._source import TASKS, Data
from skdare.bench._trial import PROTOCOLS, VALIDATE_WITH, Plan, Settings, Trial

__all__ = [
    "ABLATION",
    "ABLATIONS",
    "DEFAULT_EXTRAS",
    "EXTRAS",
    "HEADS",
    "LABELS",
    "METRICS",
    "NETWORK",
    "NOTHING",
    "PROJECTIONS",
    "PROTOCOLS",
    "TASKS",
    "TESTED_ON",
    "TRIALS",
    "UNLABELLED",
    "VALIDATE_WITH",
    "Data",
    "DomainBedScores",
    "Given",
    "Log",
    "Plan",
    "Preparation",
    "Record",
    "Settings",
    "Trial",
    "ablation_plan",
    "bench_plan",
    "read_domainbed",
    "run",
]
