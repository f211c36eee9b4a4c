"""Run the trials of a study that are not done, and record each as it ends."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skdare.bench.record import NOTHING, UNLABELLED, Record, RecordFile
from skdare.paper.ceilings import DESCENT, EXACT, fit_ceiling
from skdare.paper.diagnostics import adjustment_error, alignment
from skdare.paper.fold import FeatureTable, Fold
from skdare.paper.plan import GIVEN, PRETRAINED, Trial
from skdare.paper.protocol import ADAPTED, Settings, fit_head
from skdare.progress import tracked

PROTOCOL = "paper"
LABELS = "labels"
NETWORK = "network"
END_TO_END = "end-to-end"
Place = tuple[str, int]  # a held-out domain and a trial


@dataclass(frozen=True, eq=False)
class Experiment:
    """Features, settings, and where records go.

    Parameters
    ----------
    name : str
    open_table : callable
        Opens the features of a held-out domain and trial; given None, those of the network before
        fine-tuning.
    settings : Settings
    share : float
        Share of rows that is set aside, where features do not say which.
    """

    name: str
    open_table: Callable[[Place | None], FeatureTable]
    settings: Settings
    share: float = 0.2

    @cached_property
    def pretrained(self) -> FeatureTable:
        """Features before fine-tuning."""
        return self.open_table(None)

    def run(self, planned: Sequence[Trial], file: RecordFile) -> None:
        """Run what is not done; what goes wrong in one trial is recorded, and the others go on."""
        places = list(dict.fromkeys((trial.held_out, trial.trial) for trial in planned))
        with file.open({"data": self.name}) as done:
            for place in tracked(places, "heads"):
                trials = [t for t in planned if (t.held_out, t.trial) == place]
                self._run(place, trials, file, done)

    def _run(self, place: Place, trials: Sequence[Trial], file: RecordFile, done: set[str]) -> None:
        table = self.open_table(place)
        prints = {GIVEN: table.fingerprint}
        if any(trial.features == PRETRAINED for trial in trials):
            prints[PRETRAINED] = self.pretrained.fingerprint
        waiting = {self._key(t, prints[t.features]): t for t in trials}
        waiting = {key: trial for key, trial in waiting.items() if key not in done}
        folds = list(dict.fromkeys(trial.fold for trial in waiting.values()))
        for kind in folds:
            trial = next(t for t in waiting.values() if t.fold == kind)
            fold = self._fold(trial, table)
            for key, trial in waiting.items():
                if trial.fold == kind:
                    file.append(self._record(key, trial, fold))

    def _key(self, trial: Trial, fingerprint: str) -> str:
        """Hash of everything that decides the result of a trial."""
        content = [trial.fields, asdict(self.settings), self.share, fingerprint, PROTOCOL]
        text = json.dumps(content, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def _fold(self, trial: Trial, given: FeatureTable) -> Fold:
        table = given
        if trial.features == PRETRAINED:
            other = self.pretrained
            same = np.array_equal(other.data.domains, given.data.domains)
            table = FeatureTable(other.data, given.aside if same else None, other.fingerprint)
        return Fold.of(
            table,
            trial.held_out,
            trial.trial,
            share=self.share,
            training_domains=trial.training_domains,
            size=trial.size,
        )

    def _record(self, key: str, trial: Trial, fold: Fold) -> Record:
        start = time.perf_counter()
        score: float | None = None
        reason = ""
        values: dict[str, Any] = {}
        try:
            score, values = measure(trial, fold, self.settings)
        except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
            reason = str(error)
        values |= {"task": "classification", "protocol": PROTOCOL, "features": trial.features}
        values |= {"x": trial.x, "n_train": len(fold.train.y)}
        values |= {f"option:{name}": value for name, value in trial.options}
        uses = UNLABELLED if trial.head in ADAPTED else NOTHING
        return Record(
            key,
            trial.study,
            self.name,
            trial.head,
            trial.held_out,
            trial.trial,
            LABELS if trial.head in (EXACT, DESCENT) else uses,
            _METRICS.get(trial.study, "accuracy"),
            score,
            round(time.perf_counter() - start, 4),
            reason,
            values,
        )


_METRICS = {"adjustment": "error", "alignment": "cosine"}


def measure(trial: Trial, fold: Fold, settings: Settings) -> tuple[float, dict[str, Any]]:
    """The score of a trial, and notes on how it came about.

    Heads are scored on the rows of the held-out domain that were set aside.
    """
    if trial.study == "adjustment":
        return adjustment_error(fold, trial.head, settings), {}
    if trial.study == "alignment":
        return alignment(fold, trial.head, settings), {}
    notes: dict[str, Any] = {}
    if trial.head in (EXACT, DESCENT):
        model = fit_ceiling(fold, trial.head, settings)
    else:
        stopped = fit_head(fold, trial.head, dict(trial.options), settings)
        model = stopped.model
        notes = {"epochs": stopped.epochs, "best_epoch": stopped.best_epoch, "valid": stopped.valid}
    right = model.predict(fold.test.X) == fold.test.y
    for name, rows in (("reserved", fold.reserved), ("rest", ~fold.reserved)):
        notes[f"score_{name}"] = float(np.mean(right[rows]))
    notes |= {"score_all": float(np.mean(right)), "n_test": int(fold.reserved.sum())}
    return notes["score_reserved"], notes


def network_records(
    name: str, networks: Mapping[Place, float], end_to_end: Mapping[Place, float]
) -> Iterable[Record]:
    """Scores of networks with their own last layer, on rows set aside, as records."""
    kinds = ((NETWORK, NETWORK, NOTHING, networks), ("ceiling", END_TO_END, LABELS, end_to_end))
    for study, head, uses, scores in kinds:
        for (domain, trial), score in scores.items():
            content = json.dumps([study, head, domain, trial, score])
            key = hashlib.sha256(content.encode()).hexdigest()[:20]
            values = {"protocol": PROTOCOL, "task": "classification", "status": "given"}
            yield Record(
                key, study, name, head, domain, trial, uses, "accuracy", score, 0.0, "", values
            )
