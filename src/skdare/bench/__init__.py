"""The bench: hold out each domain in turn, and say which head is better and how sure we are.

>>> from skdare.bench import Questions, Source, bench_plan, run
>>> from skdare.datasets import make_latent_domains
>>> sources = {"given": Source.of(make_latent_domains(3, 60, random_state=0), name="latent")}
>>> plan = bench_plan(Questions(sources, trials=1, heads=["erm", "dare"]), extras=[])
>>> sorted({record.head for record in run(plan, sources)})
['dare', 'erm']
"""

from skdare.bench._ablations import ABLATIONS, ablation_plan
from skdare.bench._diagnostics import adjustment_error
from skdare.bench._heads import DEFAULT_HEADS, HEADS
from skdare.bench._plan import EXTRAS, Questions, bench_plan
from skdare.bench._record import Log, Record
from skdare.bench._run import run
from skdare.bench._source import PROJECTIONS, TASKS, Preparation, Source
from skdare.bench._summary import Summary, summarise
from skdare.bench._trial import PROTOCOLS, TESTED_ON, Plan, Settings, Trial

__all__ = [
    "ABLATIONS",
    "DEFAULT_HEADS",
    "EXTRAS",
    "HEADS",
    "PROJECTIONS",
    "PROTOCOLS",
    "TASKS",
    "TESTED_ON",
    "Log",
    "Plan",
    "Preparation",
    "Questions",
    "Record",
    "Settings",
    "Source",
    "Summary",
    "Trial",
    "ablation_plan",
    "adjustment_error",
    "bench_plan",
    "run",
    "summarise",
]
