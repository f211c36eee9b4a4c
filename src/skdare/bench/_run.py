"""Running a plan: trials side by side, each to a record, and none twice."""

from __future__ import annotations

import os
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from threadpoolctl import threadpool_limits

from skdare._validation import check_count
from skdare.bench._record import Log, Record, Writer
from skdare.bench._runner import Runner, cell
from skdare.bench._source import Source
from skdare.bench._trial import Plan, Trial
from skdare.bench._warnings import heard_by_thread

# So often does the main thread look up from waiting, so that Ctrl-C is heard.
LISTEN = 0.1


def run(
    plan: Plan,
    sources: Mapping[str, Source],
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
    sources : mapping from name to Source
    log : Log, optional
        Where records are kept; trials found there are not run again.
    jobs : int
        Trials at once, in threads that share the features; each has its share of BLAS threads.
    retry_failed : bool
        Run again what failed before.
    started : callable, optional
        Told each trial as it begins, from the thread that runs it.
    """
    check_count("jobs", jobs, 1)
    records = log.read() if log else []
    _check_same_conditions(records, plan, sources["given"].name)
    known = {r.key for r in records if r.status != "failed" or not retry_failed}
    trials = [trial for trial in plan.trials if plan.key(trial) not in known]
    if not trials:
        return
    threads = max(1, (os.cpu_count() or 1) // jobs)
    with heard_by_thread(), threadpool_limits(threads):
        runner = Runner(plan, sources, jobs)
        if log is None:
            yield from _run_threads(runner, trials, jobs, started, None)
            return
        with log.open() as writer:
            yield from _run_threads(runner, trials, jobs, started, writer)


def _check_same_conditions(records: list[Record], plan: Plan, data: str) -> None:
    """Refuse to put trials into one table that were not run alike."""
    keys = {cell(trial): plan.key(trial) for trial in plan.trials}
    for record in records:
        if (record.data, record.protocol) != (data, plan.settings.protocol):
            continue
        own = record.values
        table = plan.fingerprints.get((record.features, record.held_out), own["table"])
        alike = own["conditions"] == plan.conditions and own["table"] == table
        if not alike or keys.get(own["cell"], record.key) != record.key:
            raise ValueError(
                f"the run has records of {data!r} with other settings, options or features; "
                "name another folder (--out) or other data (--name)"
            )


def _run_threads(
    runner: Runner,
    trials: list[Trial],
    jobs: int,
    started: Callable[[Trial], None] | None,
    writer: Writer | None,
) -> Iterator[Record]:
    """Records in the order in which they finish, each written before it is yielded."""
    groups, done = _Groups(trials), queue.SimpleQueue[Record | BaseException]()

    def work() -> None:
        # Keyed by itself: a worker stays with a fold until its trials are gone.
        group = None
        try:
            while (found := groups.next(group)) is not None:
                group, trial = found
                if started is not None:
                    started(trial)
                done.put(runner(trial))
        except BaseException as error:  # a fault of the bench itself, not of a trial
            done.put(error)

    # Daemons: after Ctrl-C nobody waits for a fit that no one wants any more.
    for _ in range(min(jobs, len(trials))):
        threading.Thread(target=work, daemon=True).start()
    try:
        for _ in range(len(trials)):
            record = _next(done)
            if isinstance(record, BaseException):
                raise record
            if writer is not None:
                writer.append(record)
            yield record
    finally:
        groups.stop()


def _next(done: queue.SimpleQueue) -> Record | BaseException:
    while True:
        try:
            return done.get(timeout=LISTEN)
        except queue.Empty:
            continue


class _Groups:
    """Trials by fold, handed out so that workers share a fold only when folds run out."""

    def __init__(self, trials: list[Trial]) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[tuple, list[Trial]] = defaultdict(list)
        for trial in trials:
            self._waiting[trial.fold_key].append(trial)
        self._taken: set[tuple] = set()

    def next(self, group: tuple | None) -> tuple[tuple, Trial] | None:
        """A trial of this group, else of one that nobody has begun, else of the longest."""
        with self._lock:
            if group not in self._waiting:
                fresh = [key for key in self._waiting if key not in self._taken]
                longest = max(self._waiting, key=lambda k: len(self._waiting[k]), default=None)
                group = fresh[0] if fresh else longest
            if group is None:
                return None
            self._taken.add(group)
            trial = self._waiting[group].pop(0)
            if not self._waiting[group]:
                del self._waiting[group]
            return group, trial

    def stop(self) -> None:
        """Hand out nothing more."""
        with self._lock:
            self._waiting.clear()
