"""The bench: hold out each domain in turn, fit every head, and keep a record of each trial.

>>> from skdare.bench import bench_plan, run
>>> from skdare.datasets import make_latent_domains
>>> from skdare.report import summarise
>>> data = make_latent_domains(3, 60, random_state=0)
>>> plan = bench_plan(data, heads=["erm", "dare"], trials=1, extras=[])
>>> records = list(run(plan))
>>> summarise(records).groups[0].main.grid.lines
('erm', 'dare')
"""

from skdare.bench._ablations import ablation_plan
from skdare.bench._domainbed import DomainBedScores, read_domainbed
from skdare.bench._log import Log
from skdare.bench._plan import Plan, bench_plan
from skdare.bench._record import Record
from skdare.bench._run import run
from skdare.bench._settings import Settings
from skdare.bench._trial import NetworkScore

__all__ = [
    "DomainBedScores",
    "Log",
    "NetworkScore",
    "Plan",
    "Record",
    "Settings",
    "ablation_plan",
    "bench_plan",
    "read_domainbed",
    "run",
]
