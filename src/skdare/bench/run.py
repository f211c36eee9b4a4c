"""The trials of a bench: those that are not done are run, and each is recorded as it ends."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from skdare.bench.heads import HEADS, BenchHead, Training
from skdare.bench.metrics import METRICS
from skdare.bench.record import NOTHING, UNLABELLED, Record, RecordFile
from skdare.bench.settings import PREPARATIONS, Settings
from skdare.data import DomainData
from skdare.errors import InputError, counted, listed, note

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Trial:
    """One head on one held-out domain, once."""

    head: str
    held_out: str
    repeat: int

    def key(self, fingerprint: str, settings: Settings, version: str = "") -> str:
        """A hash of everything that decides the result; ``version`` is of the head."""
        parts = [fingerprint, settings.decisive(), asdict(self), version]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Plan:
    """The trials of a bench, by key, in the order in which they run."""

    trials: dict[str, Trial]

    @classmethod
    def of(cls, settings: Settings, fingerprint: str, versions: Mapping[str, str]) -> Plan:
        """All heads on all held-out domains; ``versions`` tell heads that users bring apart."""
        trials = [
            Trial(head, held_out, repeat)
            for held_out in settings.held_out
            for repeat in range(settings.repeats)
            for head in settings.heads
        ]
        keys = [t.key(fingerprint, settings, versions.get(t.head, "")) for t in trials]
        return cls(dict(zip(keys, trials, strict=True)))

    def folds(self, done: Set[str]) -> Iterator[tuple[str, int, dict[str, str]]]:
        """Held-out domain, repeat, and the heads that are not done, each by the trial's key."""
        waiting: dict[tuple[str, int], dict[str, str]] = {}
        for key, trial in self.trials.items():
            if key not in done:
                waiting.setdefault((trial.held_out, trial.repeat), {})[key] = trial.head
        for (held_out, repeat), heads in waiting.items():
            yield held_out, repeat, heads


def run_bench(
    data: DomainData,
    out: str | Path,
    settings: Settings | None = None,
    *,
    estimators: Mapping[str, BenchHead] | None = None,
    versions: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> RecordFile:
    """Hold each domain out, fit every head to the others, and write a record for each.

    Parameters
    ----------
    data : DomainData
    out : path
        Folder of the run. Trials that it holds are not run again; those that failed are.
    settings : Settings, optional
    estimators, versions : mapping from name, optional
        Heads beyond those of the bench, and what tells two of the same name apart.
    progress : function of (text, done, total), optional

    Returns
    -------
    RecordFile
    """
    brought = estimators or {}
    data = without_single_rows(data)
    settings = (settings or Settings()).resolved(data, tuple(brought))
    heads = {name: brought.get(name) or HEADS[name] for name in settings.heads}
    fingerprint = data.fingerprint()
    plan = Plan.of(settings, fingerprint, versions or {})
    file = RecordFile(out)
    data = replace(data, domains=data.domains.astype(str))
    with file.open(_about(data, fingerprint, settings)) as done:
        count = len(done & set(plan.trials))
        for domain, repeat, waiting in plan.folds(done):
            train, test = split(data, domain, repeat, settings.share)
            chooses = any(head.fits == "dare-cv" for head in heads.values())
            prepare = PREPARATIONS[settings.preparation]()
            training = Training(train, settings.task, settings.metric, chooses, prepare)
            for key, name in waiting.items():
                if progress is not None:
                    progress(f"{domain}: {name}", count, len(plan.trials))
                file.append(_trial(key, name, heads[name], repeat, training, test))
                count += 1
    if progress is not None:
        progress("", count, len(plan.trials))
    return file


def without_single_rows(data: DomainData) -> DomainData:
    """The table without domains of one row, which no head can learn from or be scored on."""
    if data.domains is None:
        return data
    names, codes, counts = np.unique(data.domains, return_inverse=True, return_counts=True)
    if counts.min() > 1:
        return data
    if counts.max() == 1:
        raise InputError(
            f"every domain of {data.name} has a single row, and nothing can be learnt from it",
            "name another column of domains",
        )
    single = names[counts == 1]
    note(f"left out {counted(len(single), 'domain')} with a single row: {listed(single)}")
    return data.rows(np.flatnonzero(counts[codes] > 1))


def split(
    data: DomainData, domain: str, repeat: int = 0, share: float = 1.0
) -> tuple[DomainData, DomainData]:
    """Rows of the other domains that may be trained on, and those of the held-out domain.

    Rows whose group is held out are in neither. Of each training domain this share is kept, another
    one in each repeat.
    """
    test = data.domains == domain
    train = ~test
    if data.groups is not None:
        train &= ~np.isin(data.groups, data.groups[test])
    if share < 1.0:
        for other in np.unique(data.domains[train]):
            rows = np.flatnonzero(train & (data.domains == other))
            rng = np.random.default_rng([repeat, crc32(other.encode())])
            train[rng.permutation(rows)[int(np.ceil(share * len(rows))) :]] = False
    return data.rows(np.flatnonzero(train)), data.rows(np.flatnonzero(test))


def _about(data: DomainData, fingerprint: str, settings: Settings) -> dict[str, Any]:
    n, d = data.X.shape
    about = {"data": data.name, "fingerprint": fingerprint, "rows": n, "features": d}
    about["domains"] = len(data.domain_names)
    if settings.task == "classification":
        about["classes"] = len(np.unique(data.y))
    return about | settings.decisive()


def _trial(
    key: str, name: str, head: BenchHead, repeat: int, training: Training, test: DomainData
) -> Record:
    """Fit and score; an error in one trial is recorded, and the others go on."""
    start = time.perf_counter()
    train = training.data
    score, reason = None, ""
    values: dict[str, Any] = {"label": head.label, "task": training.task}
    values |= {"n_train": train.X.shape[0], "n_test": test.X.shape[0]}
    if training.task == "classification":
        classes, counts = np.unique(train.y, return_counts=True)
        values["majority"] = float(np.mean(test.y == classes[counts.argmax()]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = training.fit(head, test.X)
            score = METRICS[training.task][training.metric](test.y, fitted.model, fitted.X)
            values |= {"chosen": fitted.strategy, "l2": fitted.l2}
            values["declined"] = getattr(fitted.model, "declined_", None)
            if not np.isfinite(score):
                score, reason = None, f"{training.metric} is not defined on these rows"
        # An estimator that a user brings can raise anything.
        except Exception as error:
            reason = str(error) or type(error).__name__
    values["warnings"] = sorted({str(warning.message) for warning in caught})
    return Record(
        key, "main", train.name, name, str(test.domains[0]), repeat,
        UNLABELLED if head.adapts else NOTHING,
        training.metric, score, round(time.perf_counter() - start, 4), reason, values,
    )  # fmt: skip
