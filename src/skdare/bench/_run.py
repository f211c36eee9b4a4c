"""Running a plan: trials side by side, each to a record, and none twice."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

from joblib import cpu_count
from threadpoolctl import threadpool_limits

from skdare._validation import check_count
from skdare.bench._log import Log, Writer, finished
from skdare.bench._record import Record
from skdare.bench._runner import Runner
from skdare.bench._trial import FoldKey, Plan, Trial
from skdare.bench._warnings import heard_by_thread

# So often does the main thread look up from waiting, so that Ctrl-C is heard.
LISTEN = 0.1


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
        Told each trial as it begins, from the thread that runs it.
    """
    check_count("jobs", jobs, 1)
    if log is None:
        yield from _run(plan, list(plan.trials), jobs, started, None)
        return
    # The lock first: what another process has just finished is then on file.
    with log.open() as writer:
        records = log.read()
        _check_same_conditions(records, plan)
        known = finished(records, retry_failed=retry_failed)
        trials = [trial for trial in plan.trials if plan.key(trial) not in known]
        log.announce(plan.data, plan.settings.protocol, map(plan.key, plan.trials))
        yield from _run(plan, trials, jobs, started, writer)


def _check_same_conditions(records: list[Record], plan: Plan) -> None:
    """Refuse to put trials into one table that were not run alike."""
    keys, conditions = {trial.cell: plan.key(trial) for trial in plan.trials}, plan.conditions
    for record in records:
        if (record.data, record.protocol) != (plan.data, plan.settings.protocol):
            continue
        own = {name: str(record.values.get(name)) for name in ("conditions", "table", "cell")}
        table = plan.table(record.features, record.held_out, record.trial) or own["table"]
        alike = own["conditions"] == conditions and own["table"] == table
        if not alike or keys.get(own["cell"], record.key) != record.key:
            raise ValueError(
                f"the run has records of {plan.data!r} with other settings, options or features; "
                "name another folder, or other data with name="
            )


def _run(
    plan: Plan,
    trials: list[Trial],
    jobs: int,
    started: Callable[[Trial], None] | None,
    writer: Writer | None,
) -> Iterator[Record]:
    """Records in the order in which they finish, each written by the thread that ran it."""
    runner, done = Runner(plan), queue.SimpleQueue[Record | BaseException]()
    groups = _Groups(trials, runner)

    def work() -> None:
        group: FoldKey | None = None
        try:
            while (trial := groups.next(group)) is not None:
                group = trial.fold_key
                if started is not None:
                    started(trial)
                record = runner(trial)
                if writer is not None:
                    writer.append(record)
                groups.finished(trial)
                done.put(record)
        except BaseException as error:  # a fault of the bench itself, not of a trial
            done.put(error)

    with heard_by_thread(), threadpool_limits(max(1, cpu_count() // jobs)):
        # Daemons: after Ctrl-C nobody waits for a fit that no one wants any more.
        for _ in range(min(jobs, len(trials))):
            threading.Thread(target=work, daemon=True).start()
        try:
            for _ in trials:
                record = _next(done)
                if isinstance(record, BaseException):
                    raise record
                yield record
        finally:
            groups.stop()


def _next(done: queue.SimpleQueue[Record | BaseException]) -> Record | BaseException:
    while True:
        try:
            return done.get(timeout=LISTEN)
        except queue.Empty:
            continue


class _Groups:
    """Trials by fold: workers share a fold only when folds run out, and a done fold is dropped."""

    def __init__(self, trials: list[Trial], runner: Runner) -> None:
        self._lock, self._workspace = threading.Lock(), runner.workspace
        self._waiting: dict[FoldKey, list[Trial]] = {}
        for trial in trials:
            self._waiting.setdefault(trial.fold_key, []).append(trial)
        self._running: dict[FoldKey, list[Trial]] = {}

    def next(self, group: FoldKey | None) -> Trial | None:
        """A trial of this group, else of one that nobody is at, else of the longest."""
        with self._lock:
            if not self._waiting:
                return None
            if group not in self._waiting:
                fresh = [key for key in self._waiting if not self._running.get(key)]
                longest = max(self._waiting, key=lambda key: len(self._waiting[key]))
                group = fresh[0] if fresh else longest
            trial = self._waiting[group].pop(0)
            if not self._waiting[group]:
                del self._waiting[group]
            self._running.setdefault(group, []).append(trial)
            return trial

    def finished(self, trial: Trial) -> None:
        """Count it, and drop what no trial needs any more."""
        with self._lock:
            key = trial.fold_key
            self._running[key].remove(trial)
            if self._running[key] or key in self._waiting:
                return
            del self._running[key]
            others = [*self._waiting.values(), *self._running.values()]
            # Between two of its trials a fold runs none; it is among those that wait, then.
            self._workspace.forget(trial, [group[0] for group in others if group])

    def stop(self) -> None:
        """Hand out nothing more."""
        with self._lock:
            self._waiting.clear()
