"""A program that uses the package, for mypy alone: it is never run.

Where a mistake is no longer seen, mypy says that its comment is not needed.
"""

from pathlib import Path

import numpy as np

import skdare
from skdare import Adapter, DAREClassifier, DAREClassifierCV, DARERegressor, LeaveOneDomainOut
from skdare.bench import Record, bench_plan, run
from skdare.datasets import DomainData, make_latent_domains, open_table
from skdare.diagnosis import Diagnosis
from skdare.engines import DaskEngine
from skdare.report import Summary, summarise, write_report
from skdare.solvers import Status
from skdare.theory import LatentModel, closed_form
from skdare.whitening.moments import Moments


def fitted(data: DomainData) -> DAREClassifier:
    head = DAREClassifier(l2=1e-2, shrinkage="oas", guess={"a": 0.5, "b": 0.5})
    return head.fit(data.X, data.y, domains=data.domains)


def adapted(head: DAREClassifier, chunks: list[np.ndarray]) -> DAREClassifier:
    adapter: Adapter = head.adapter(half_life=100.0)
    for chunk in chunks:
        adapter = adapter.partial_fit(chunk)
    adapter.save(Path("ward7.stream"))
    return head.adapt(chunks[0], prior_rows=10.0)


def diagnosed(head: DAREClassifier, X: np.ndarray) -> Diagnosis:
    return head.diagnose(X, acceptable=0.8)


def compared(data: DomainData) -> Summary:
    records: list[Record] = list(run(bench_plan(data, heads=["erm", "dare"], trials=1)))
    return summarise(records)


def program() -> None:
    data = make_latent_domains(random_state=0)
    head = fitted(data)
    labels: np.ndarray = head.predict(data.X)
    splits = [test.sum() for _, test in LeaveOneDomainOut().split(data.X, domains=data.domains)]
    total: Moments = head.moments_["a"] + head.moments_["b"]
    converged: bool = head.solution_.status is Status.CONVERGED
    model = LatentModel.draw(4, 3, random_state=0)
    rows = open_table(Path("store.features"))
    write_report("some.bench", formats=["md"])
    DARERegressor(engine=DaskEngine()).fit(data.X, data.y, ["a", "b"])
    DAREClassifierCV(l2=(0.1, 1.0), shrinkage=(0.3, 0.5))
    print(skdare.__version__, adapted(head, [data.X]), diagnosed(head, data.X), compared(data))
    print(labels, splits, total, converged, closed_form(model).coef, rows)


def mistakes(head: DAREClassifier, data: DomainData) -> None:
    DAREClassifier(l2="much")  # type: ignore[arg-type]
    DAREClassifier(lambda_=1.0)  # type: ignore[call-arg]
    DAREClassifier(1.0)  # type: ignore[call-arg]
    head.fit(data.X, data.y, domains=3)  # type: ignore[arg-type]
    head.adapter(half_life="a day")  # type: ignore[arg-type]
    write_report(3)  # type: ignore[arg-type]
