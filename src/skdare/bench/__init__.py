"""The bench: hold out each domain in turn, fit every head, and keep what came of it.

>>> from skdare.bench import bench_plan, run
>>> from skdare.datasets import make_latent_domains
>>> from skdare.summary import summarise
>>> data = make_latent_domains(3, 60, random_state=0)
>>> plan = bench_plan(data, heads=["erm", "dare"], trials=1, extras=[])
>>> records = list(run(plan))
>>> summarise(records).groups[0].main.grid.lines
('erm', 'dare')
"""

from skdare.bench._ablations import ABLATIONS, ablation_plan
from skdare.bench._diagnostics import adjustment_error
from skdare.bench._heads import HEADS
from skdare.bench._plan import DEFAULT_EXTRAS, EXTRAS, bench_plan
from skdare.bench._record import ABLATION, LABELS, METRICS, NOTHING, UNLABELLED, Log, Record
from skdare.bench._run import run
from skdare.bench._source import PROJECTIONS, TASKS, natural
from skdare.bench._trial import PROTOCOLS, TESTED_ON, VALIDATE_WITH, Plan, Settings, Trial

__all__ = [
    "ABLATION",
    "ABLATIONS",
    "DEFAULT_EXTRAS",
    "EXTRAS",
    "HEADS",
    "LABELS",
    "METRICS",
    "NOTHING",
    "PROJECTIONS",
    "PROTOCOLS",
    "TASKS",
    "TESTED_ON",
    "UNLABELLED",
    "VALIDATE_WITH",
    "Log",
    "Plan",
    "Record",
    "Settings",
    "Trial",
    "ablation_plan",
    "adjustment_error",
    "bench_plan",
    "natural",
    "run",
]
