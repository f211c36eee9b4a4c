"""From a trial to its record: the fold, the fit, the scores, and whatever went wrong."""

from __future__ import annotations

import math
import platform
import time
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
from skdare.bench._record import LABELS, METRICS, NETWORK, NOTHING, UNLABELLED, Record
from skdare.bench._scores import Measured, evaluate
from skdare.bench._trial import Plan, Trial
from skdare.bench._warnings import warnings_of_thread

PROTOCOL_FITS = {"default": fit_default, "paper": fit_paper}
_VERSIONS = {
    "version:skdare": skdare.__version__,
    "version:python": platform.python_version(),
    "version:numpy": np.__version__,
    "version:scipy": scipy.__version__,
    "version:scikit-learn": sklearn.__version__,
}


class Runner:
    """Turns the trials of a plan into records."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.workspace = Workspace(plan.sources, plan.settings)
        deciding = plan.settings.deciding().items()
        self._settings = {f"setting:{name}": _plain(v) for name, v in deciding if v is not None}

    def __call__(self, trial: Trial) -> Record:
        """Run one trial; what goes wrong in it becomes part of the record."""
        begin, heard = time.perf_counter(), warnings_of_thread()
        heard.clear()
        values: dict[str, Any] = {f"option:{name}": value for name, value in trial.options}
        try:
            values |= self._values(trial)
            status, reason = "ok" if trial.given is None else "given", ""
        except Exception as error:
            status, reason = "failed", f"{type(error).__name__}: {error}"
        if heard:
            values["warnings"] = " | ".join(dict.fromkeys(heard))
        return self._record(trial, status, reason, values, time.perf_counter() - begin)

    def _values(self, trial: Trial) -> dict[str, Any]:
        """Everything measured, ``score`` and ``metric`` among it."""
        if trial.given is not None:
            return trial.given.values()
        fold = self.workspace.fold(trial)
        return {"split": fold.split, **self._measured(trial, fold).values()}

    def _measured(self, trial: Trial, fold: Fold) -> Measured:
        settings, options = self.plan.settings, dict(trial.options)
        if trial.study == "adjustment":
            return measure_adjustment(fold, trial.head, options, settings)
        if trial.study == "alignment":
            return measure_alignment(fold, trial.head, options, settings)
        if trial.head in CEILINGS:
            return evaluate(fit_ceiling(fold, trial.head, settings), fold, "reserved")
        if trial.head in RETRAINED:
            m = int(trial.x or 0)
            fit = fit_retrained(fold, trial.head, m, trial.number, settings)
            return evaluate(fit, fold, "reserved")
        fit = PROTOCOL_FITS[settings.protocol](fold, trial.head, options, settings)
        return evaluate(fit, fold, settings.tested_on)

    def _record(
        self, trial: Trial, status: str, reason: str, values: dict[str, Any], seconds: float
    ) -> Record:
        plan, source = self.plan, self.plan.sources[trial.features]
        values = {name: _plain(value) for name, value in values.items()} | _VERSIONS
        values |= {"conditions": plan.conditions, "cell": trial.cell} | self._settings
        values["table"] = source.fingerprint(trial.held_out, trial.number)
        values["features_of"] = source.features_of
        if trial.projection is not None:
            values["option:projection"] = trial.projection.kind
        if trial.seen is not None:
            values["seen"] = ", ".join(trial.seen)
        usual = {"adjustment": "error", "alignment": "cosine"}.get(
            trial.study, METRICS[source.task]
        )
        metric, score = values.pop("metric", usual), values.pop("score", None)
        if score is None and not reason:
            status, reason = "failed", "the score is not a number: the targets scored are all alike"
        return Record(
            key=plan.key(trial),
            study=trial.study,
            data=plan.data,
            features=trial.features,
            protocol=plan.settings.protocol,
            task=source.task,
            head=trial.head,
            held_out=trial.held_out,
            trial=trial.number,
            x=trial.x,
            status=status,
            reason=reason,
            uses=_uses(trial),
            metric=metric,
            score=score,
            seconds=round(seconds, 4),
            values=values,
        )


def _uses(trial: Trial) -> str:
    """What of the held-out domain a trial saw."""
    if trial.study == "adjustment":
        return UNLABELLED
    if trial.study in ("alignment", NETWORK):
        return NOTHING
    return HEADS[trial.head].uses if trial.head in HEADS else LABELS


def _plain(value: Any) -> Any:
    """As JSON has it; a number that is none becomes null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
