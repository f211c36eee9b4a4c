"""Running a plan: trials side by side in threads, each to a record, and no trial twice."""

from __future__ import annotations

import math
import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import cpu_count
from threadpoolctl import threadpool_info, threadpool_limits

from skdare._validation import InputError, check_count
from skdare.bench._ceilings import CEILINGS, RETRAINED, fit_ceiling, fit_retrained
from skdare.bench._default_protocol import fit_default
from skdare.bench._diagnostics import measure_adjustment, measure_alignment
from skdare.bench._fold import Fold, Folds
from skdare.bench._heads import HEADS
from skdare.bench._log import Log, Writer, finished
from skdare.bench._metrics import check_metrics
from skdare.bench._paper_protocol import fit_paper
from skdare.bench._plan import Plan
from skdare.bench._record import LABELS, NETWORK, NOTHING, UNLABELLED, Record
from skdare.bench._scores import Fit, TrialMeasurement, evaluate
from skdare.bench._settings import Settings
from skdare.bench._trial import FoldKey, NetworkScore, Trial
from skdare.model_io.head_file import versions

# Seconds after which the main thread looks up from waiting, so that Ctrl-C is heard.
LISTEN = 0.1
FitHead = Callable[[Fold, str, dict[str, Any], Settings], Fit]
PROTOCOL_FITS: dict[str, FitHead] = {"default": fit_default, "paper": fit_paper}
_VERSIONS = {f"version:{package}": version for package, version in versions().items()}


def run(
    plan: Plan,
    log: Log | None = None,
    *,
    jobs: int = 1,
    retry_failed: bool = False,
    started: Callable[[Trial], None] | None = None,
) -> Iterator[Record]:
    """Run the trials that are not on file, and yield each record once it is.

    Parameters
    ----------
    plan : Plan
    log : Log, optional
        Where records are kept; trials found there are not run again.
    jobs : int
        Trials at once, in threads that share the features; each has its share of BLAS threads,
        which are limited in the whole process until the last record is taken.
    retry_failed : bool
        Run again what failed before.
    started : callable, optional
        Called with each trial as it begins, in the thread that runs it.
    """
    check_count("jobs", jobs, 1)
    if log is None:
        yield from run_trials(plan, plan.trials, jobs=jobs, started=started)
        return
    # The lock first: what another process has just finished is then on file.
    with log.open() as writer:
        records = log.read()
        _check_same_conditions(records, plan)
        done = finished(records, retry_failed=retry_failed)
        trials = [trial for trial in plan.trials if plan.key(trial) not in done]
        log.announce(plan.data, plan.settings.protocol, map(plan.key, plan.trials))
        yield from run_trials(plan, trials, jobs=jobs, started=started, writer=writer)


def _settings_of(plan: Plan) -> dict[str, Any]:
    """The settings of a plan as its records have them."""
    return {
        f"setting:{name}": _json_value(value)
        for name, value in plan.settings.of_protocol().items()
        if value is not None
    }


def _check_same_conditions(records: list[Record], plan: Plan) -> None:
    """Refuse to put trials into one table that were not run alike."""
    planned = {trial.cell: trial for trial in plan.trials}
    for record in records:
        if (record.data, record.protocol) != (plan.data, plan.settings.protocol):
            continue
        conditions, table, cell = (
            str(record.values.get(name)) for name in ("conditions", "table", "cell")
        )
        fingerprint = plan.fingerprint(record.features, record.held_out, record.trial)
        trial = planned.get(cell)
        difference = ""
        if conditions != plan.conditions:
            difference = _other_settings(record, plan)
        elif table != (fingerprint or table):
            difference = "other features, labels, domains, groups or split"
        elif trial is not None and record.key != plan.key(trial):
            difference = _other_options(record, trial)
        if difference:
            raise InputError(
                f"the run has records of {plan.data!r} with {difference}",
                "choose another folder, or give the data another name with name=",
                argument="folder",
            )


def _other_settings(record: Record, plan: Plan) -> str:
    """The settings in which a record differs from a plan, with both values."""
    now = _settings_of(plan) | {"setting:task": plan.feature_sets["given"].task}
    before = {name: value for name, value in record.values.items() if name.startswith("setting:")}
    return _differences("settings", before | {"setting:task": record.task}, now)


def _other_options(record: Record, trial: Trial) -> str:
    """The options in which a record differs from a trial, with both values."""
    if trial.network_score is not None:
        return f"another score of {trial.head} ({record.score:g})"
    bench_head = HEADS.get(trial.head)
    chosen = dict(trial.options)
    now = chosen
    if bench_head is not None and record.protocol == "default":
        now = bench_head.make(record.task, **chosen).get_params()
    elif bench_head is not None:
        now = {**(bench_head.paper_options or {}), **chosen}
    # What the fold chooses for itself, and what comes with the settings, says nothing here.
    settled = ("l2", "scoring", "class_weight")
    names = [name for name in now if name in chosen or name not in settled]
    before = {f"option:{name}": record.values.get(f"option:{name}") for name in names}
    return _differences(
        f"options of {trial.head}", before, {f"option:{name}": now[name] for name in names}
    )


def _differences(what: str, before: dict[str, Any], now: dict[str, Any]) -> str:
    """``other settings: l2 was 0.01 and is 0.1 now``."""
    pairs = {name: (before.get(name), _json_value(now.get(name))) for name in {**before, **now}}
    parts = [
        f"{name.partition(':')[2]} was {old} and is {new} now"
        for name, (old, new) in sorted(pairs.items())
        if old != new
    ]
    return f"other {what}" + (f" ({', '.join(parts)})" if parts else "")


def run_trials(
    plan: Plan,
    trials: Sequence[Trial],
    *,
    jobs: int = 1,
    started: Callable[[Trial], None] | None = None,
    writer: Writer | None = None,
    fit: FitHead | None = None,
) -> Iterator[Record]:
    """Records in the order in which they finish, each written by the thread that ran it.

    ``fit`` fits every head, in the place of the plan's protocol.
    """
    runner = TrialRunner(plan, fit)
    done = queue.SimpleQueue[Record | BaseException]()
    schedule = Schedule(trials, runner.folds)

    def work() -> None:
        fold_key: FoldKey | None = None
        try:
            while (trial := schedule.next(fold_key)) is not None:
                fold_key = trial.fold_key
                if started is not None:
                    started(trial)
                record = runner(trial)
                if writer is not None:
                    writer.append(record)
                schedule.finished(trial)
                done.put(record)
        except BaseException as error:  # a fault of the bench itself, not of a trial
            done.put(error)

    with _warnings_by_thread(), threadpool_limits(_share_of_threads(jobs)):
        # Daemons: after Ctrl-C nobody waits for a fit that is no longer wanted.
        for _ in range(min(jobs, len(trials))):
            threading.Thread(target=work, daemon=True).start()
        try:
            for _ in trials:
                record = _next(done)
                if isinstance(record, BaseException):
                    raise record
                yield record
        finally:
            schedule.stop()


def _share_of_threads(jobs: int) -> dict[str, int]:
    """Threads of BLAS and OpenMP for each job: its share of the processors, and no more than set.

    Who has set ``OPENBLAS_NUM_THREADS=1`` shares the machine.
    """
    share = max(1, cpu_count() // jobs)
    pools = threadpool_info()
    return {
        kind: min(share, *(pool["num_threads"] for pool in pools if pool["user_api"] == kind))
        for kind in {pool["user_api"] for pool in pools}
    }


def _next(done: queue.SimpleQueue[Record | BaseException]) -> Record | BaseException:
    while True:
        try:
            return done.get(timeout=LISTEN)
        except queue.Empty:
            continue


class Schedule:
    """Trials by fold: workers share a fold only when folds run out, and a done fold is dropped."""

    def __init__(self, trials: Sequence[Trial], folds: Folds) -> None:
        self._lock = threading.Lock()
        self._folds = folds
        self._waiting: dict[FoldKey, list[Trial]] = {}
        for trial in trials:
            self._waiting.setdefault(trial.fold_key, []).append(trial)
        self._running: dict[FoldKey, list[Trial]] = {}

    def next(self, fold_key: FoldKey | None) -> Trial | None:
        """A trial of this fold, else of one without a worker, else of the longest."""
        with self._lock:
            if not self._waiting:
                return None
            if fold_key not in self._waiting:
                fresh = [key for key in self._waiting if not self._running.get(key)]
                longest = max(self._waiting, key=lambda key: len(self._waiting[key]))
                fold_key = fresh[0] if fresh else longest
            trial = self._waiting[fold_key].pop(0)
            if not self._waiting[fold_key]:
                del self._waiting[fold_key]
            self._running.setdefault(fold_key, []).append(trial)
            return trial

    def finished(self, trial: Trial) -> None:
        """Count the trial as done, and drop what no other trial needs."""
        with self._lock:
            key = trial.fold_key
            self._running[key].remove(trial)
            if self._running[key] or key in self._waiting:
                return
            del self._running[key]
            others = [*self._waiting.values(), *self._running.values()]
            # Between two of its trials a fold runs none; it is among those that wait, then.
            self._folds.forget(trial, [trials[0] for trials in others if trials])

    def stop(self) -> None:
        """Hand out nothing more."""
        with self._lock:
            self._waiting.clear()


class TrialRunner:
    """Turns the trials of a plan into records.

    Parameters
    ----------
    plan : Plan
    fit : callable, optional
        Fits every head, in the place of the plan's protocol.
    """

    def __init__(self, plan: Plan, fit: FitHead | None = None) -> None:
        self.plan = plan
        self._fit = fit
        self.folds = Folds(plan.feature_sets, plan.settings)
        self._settings = _settings_of(plan)

    def __call__(self, trial: Trial) -> Record:
        """Run one trial; what goes wrong in it becomes part of the record."""
        begin = time.perf_counter()
        messages = _warnings_of_thread()
        messages.clear()
        values: dict[str, Any] = {f"option:{name}": value for name, value in trial.options}
        status = "ok" if trial.network_score is None else "given"
        reason = ""
        try:
            values |= self._values(trial)
        except Exception as error:
            status = "failed"
            reason = f"{type(error).__name__}: {error}"
        if messages:
            values["warnings"] = " | ".join(dict.fromkeys(messages))
        return self._record(trial, status, reason, values, time.perf_counter() - begin)

    def _values(self, trial: Trial) -> dict[str, Any]:
        """Everything measured, ``score`` and ``metric`` among it."""
        if trial.network_score is not None:
            return _network_values(trial.network_score)
        fold = self.folds.fold(trial)
        measured = self._measure(trial, fold)
        scores = {"score": measured.score, "metric": measured.metric}
        return {"split": fold.split, **scores, **measured.notes}

    def _measure(self, trial: Trial, fold: Fold) -> TrialMeasurement:
        settings = self.plan.settings
        metrics = check_metrics(settings.metrics, fold.task)
        options = dict(trial.options)
        if self._fit is not None:
            fit = self._fit(fold, trial.head, options, settings)
            return evaluate(fit, fold, settings.tested_on, metrics)
        if trial.study == "adjustment":
            return measure_adjustment(fold, trial.head, options, settings)
        if trial.study == "alignment":
            return measure_alignment(fold, trial.head, options, settings)
        if trial.head in CEILINGS:
            return evaluate(fit_ceiling(fold, trial.head, settings), fold, "reserved", metrics)
        if trial.head in RETRAINED:
            m = int(trial.x or 0)
            fit = fit_retrained(fold, trial.head, m, trial.number, settings)
            return evaluate(fit, fold, "reserved", metrics)
        fit = PROTOCOL_FITS[settings.protocol](fold, trial.head, options, settings)
        return evaluate(fit, fold, settings.tested_on, metrics)

    def _record(
        self, trial: Trial, status: str, reason: str, values: dict[str, Any], seconds: float
    ) -> Record:
        plan = self.plan
        features = plan.feature_sets[trial.features]
        values = {name: _json_value(value) for name, value in values.items()} | _VERSIONS
        values |= {"conditions": plan.conditions, "cell": trial.cell} | self._settings
        values["table"] = features.fingerprint(trial.held_out, trial.number)
        values["features_of"] = features.features_of
        if trial.projection is not None:
            values["option:projection"] = trial.projection.kind
        if trial.training_domains is not None:
            values["seen"] = ", ".join(trial.training_domains)
        usual = {"adjustment": "error", "alignment": "cosine"}.get(
            trial.study, check_metrics(plan.settings.metrics, features.task)[0]
        )
        metric = values.pop("metric", usual)
        score = values.pop("score", None)
        if score is None and not reason:
            status = "failed"
            reason = f"{metric} is not a number here: the targets scored are all alike"
        return Record(
            key=plan.key(trial),
            study=trial.study,
            data=plan.data,
            features=trial.features,
            protocol=plan.settings.protocol,
            task=features.task,
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


def _network_values(score: NetworkScore) -> dict[str, Any]:
    """A network's score under the names that records have for scores."""
    if score.tested_on is None:
        return {"score": score.score}
    tested_on = score.tested_on
    return {"score": score.score, "tested_on": tested_on, f"score_{tested_on}": score.score}


def _uses(trial: Trial) -> str:
    """What a trial used of the held-out domain."""
    if trial.study == "adjustment":
        return UNLABELLED
    if trial.study in ("alignment", NETWORK):
        return NOTHING
    return HEADS[trial.head].uses if trial.head in HEADS else LABELS


def _json_value(value: Any) -> Any:
    """A value that JSON has; NaN and infinity become null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str | int | float | bool | None):
        return value
    words = isinstance(value, tuple) and all(isinstance(word, str) for word in value)
    return ", ".join(value) if words else str(value)


_LOCAL = threading.local()


def _warnings_of_thread() -> list[str]:
    """Messages of the warnings in this thread since its first call of this function."""
    if not hasattr(_LOCAL, "messages"):
        _LOCAL.messages = []
    return _LOCAL.messages


@contextmanager
def _warnings_by_thread() -> Iterator[None]:
    """Collect the warnings of each thread that runs trials, so that a trial has its own.

    `warnings.catch_warnings` changes the whole process, so it is entered once, around all
    threads, and not around each trial; the warnings of other threads are shown as before.
    """
    with warnings.catch_warnings():
        show = warnings.showwarning

        def collect(message: Warning | str, *details: Any, **more: Any) -> None:
            if hasattr(_LOCAL, "messages"):
                _LOCAL.messages.append(str(message))
            else:
                show(message, *details, **more)

        warnings.simplefilter("always")
        warnings.showwarning = collect
        yield
