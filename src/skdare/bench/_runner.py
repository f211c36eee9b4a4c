"""From a trial to its record: the fold, the fit, the scores, and whatever went wrong."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy
import sklearn

import skdare
from skdare.bench._ceilings import CEILINGS, RETRAINED, fit_ceiling, fit_retrained
from skdare.bench._default import fit_default
from skdare.bench._diagnostics import measure_adjustment, measure_alignment
from skdare.bench._fold import Fold, Workspace
from skdare.bench._heads import HEADS
from skdare.bench._paper import fit_paper
from skdare.bench._record import Record
from skdare.bench._scores import METRICS, evaluate
from skdare.bench._source import Source
from skdare.bench._trial import Plan, Trial
from skdare.bench._warnings import warnings_of_thread

PROTOCOL_FITS = {"default": fit_default, "paper": fit_paper}


class Runner:
    """Turns trials into records.

    Parameters
    ----------
    plan : Plan
    sources : dict of Source
    jobs : int
        How many trials will run at once.
    """

    def __init__(self, plan: Plan, sources: Mapping[str, Source], jobs: int = 1) -> None:
        self.plan, self.sources = plan, dict(sources)
        settings = plan.settings
        self.workspace = Workspace(self.sources, settings.preparation, settings.aside, jobs)

    def __call__(self, trial: Trial) -> Record:
        """Run one trial; what goes wrong in it becomes part of the record."""
        begin, heard = time.perf_counter(), warnings_of_thread()
        heard.clear()
        try:
            values = self._values(trial)
            status, reason = "ok" if trial.given is None else "given", ""
        except Exception as error:
            values, status = {"score": None}, "failed"
            reason = f"{type(error).__name__}: {error}"
        if heard:
            values["warnings"] = " | ".join(dict.fromkeys(heard))
        return self._record(trial, status, reason, values, time.perf_counter() - begin)

    def _values(self, trial: Trial) -> dict[str, Any]:
        """Everything measured, ``score`` and ``metric`` among it."""
        if trial.given is not None:
            return {"score": trial.given}
        fold = self.workspace.fold(*trial.fold_key)
        if (seen := trial.seen) is not None:
            fold = fold.once(seen, lambda: fold.restricted(seen))
        values = _STUDIES.get(trial.study, _run_head)(trial, fold, self.plan)
        return {"split": fold.split, **values}

    def _record(
        self, trial: Trial, status: str, reason: str, values: dict[str, Any], seconds: float
    ) -> Record:
        source = self.sources[trial.features]
        values = {name: _plain(value) for name, value in values.items()} | _VERSIONS
        table = self.plan.fingerprints[trial.features, trial.held_out]
        values |= {"conditions": self.plan.conditions, "cell": cell(trial), "table": table}
        if trial.projection is not None:
            values |= {"option:projection": trial.projection.kind}
        if trial.seen is not None:
            values["seen"] = ", ".join(trial.seen)
        metric = values.pop("metric", METRICS[source.task])
        score = values.pop("score")
        return Record(
            key=self.plan.key(trial),
            study=trial.study,
            data=self.sources["given"].name,
            features=trial.features,
            protocol=self.plan.settings.protocol,
            task=source.task,
            head=trial.head,
            held_out=trial.held_out,
            trial=trial.number,
            x=trial.x,
            status=status if score is not None else "failed",
            reason=reason if score is not None or reason else "the score is not a number",
            uses=_uses(trial),
            metric=metric,
            score=score,
            seconds=round(seconds, 4),
            values=values,
        )


def _run_head(trial: Trial, fold: Fold, plan: Plan) -> dict[str, Any]:
    """Fit a head by the protocol and score it on the held-out domain."""
    settings = plan.settings
    if trial.head in CEILINGS:
        predictor, notes = fit_ceiling(fold, trial.head, settings)
        tested_on = "20"
    elif trial.head in RETRAINED:
        m = int(trial.x or 0)
        predictor, notes = fit_retrained(fold, trial.head, m, trial.number, settings)
        tested_on = "20"
    else:
        fit = PROTOCOL_FITS[settings.protocol]
        predictor, notes = fit(fold, trial.head, dict(trial.options), settings)
        tested_on = settings.tested_on
    values = evaluate(predictor, fold, tested_on)
    return {"score": values[f"score_{tested_on}"], **values, **notes}


def _run_adjustment(trial: Trial, fold: Fold, plan: Plan) -> dict[str, Any]:
    score, notes = measure_adjustment(fold, dict(trial.options), plan.settings)
    return {"score": score, "metric": "error", **notes}


def _run_alignment(trial: Trial, fold: Fold, plan: Plan) -> dict[str, Any]:
    score, notes = measure_alignment(fold, trial.head, dict(trial.options), plan.settings)
    return {"score": score, "metric": "cosine", **notes}


_STUDIES: dict[str, Callable[[Trial, Fold, Plan], dict[str, Any]]] = {
    "adjustment": _run_adjustment,
    "alignment": _run_alignment,
}
_VERSIONS = {
    "version:skdare": skdare.__version__,
    "version:python": platform.python_version(),
    "version:numpy": np.__version__,
    "version:scipy": scipy.__version__,
    "version:scikit-learn": sklearn.__version__,
}


def _uses(trial: Trial) -> str:
    """What of the held-out domain a trial saw."""
    if trial.study == "adjustment":
        return "unlabelled rows"
    if trial.study == "alignment":
        return "nothing"
    return HEADS[trial.head].uses if trial.head in HEADS else "labels"


def _plain(value: Any) -> Any:
    """As JSON has it; a number that is none becomes null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def cell(trial: Trial) -> str:
    """Where a trial stands in its tables, whatever options it was run with."""
    return "/".join(str(value) for name, value in vars(trial).items() if name != "options")
