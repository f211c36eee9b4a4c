"""The folder of a run: its settings, what can be taken up again, and what is done."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from skdare.features._recipe import Job
from skdare.persist import lock_folder, read_json, whole_file

SETTINGS, STATE, RECORD, WEIGHTS = "run.json", "state.pt", "record.json", "network.pt"
_REMEDY = "remove it to do that part again, or train in another folder"
_SETTINGS = {"examples": str, "weights": str, "recipe": {"aside": float, "precision": str}}
_RECORD = {
    "held_out": str | None,
    "trial": int,
    "draw": int,
    "hyperparameters": dict,
    "rule": str,
    "step": int,
    "value": float,
    "accuracy": {str: float},
    "last": {str: float},
    "checks": [{"step": int, "accuracy": {str: float}}],
    "network": str,
    "made": dict,
}


@dataclass(frozen=True)
class TrainingRecord:
    """What one training was, and what came of it.

    Parameters
    ----------
    held_out, trial, draw
        As in `Job`.
    hyperparameters : dict
    rule : str
        Which checkpoint is kept, in words.
    step : int
        The kept checkpoint's.
    value : float
        What the rule looks at, there.
    accuracy : dict
        On the held-out domain at the kept checkpoint: of the rows set aside ("reserved"), of the
        others ("rest"), and of all; empty for a network that was trained on all domains.
    last : dict
        The same at the last step.
    checks : list of dict
        Step, mean loss since the last check, and accuracy by domain on rows set aside.
    network : str
        Hash of the kept weights.
    made : dict
        Backbone, weights, data, transform, precision, versions.
    """

    held_out: str | None
    trial: int
    draw: int
    hyperparameters: Mapping[str, Any]
    rule: str
    step: int
    value: float
    accuracy: Mapping[str, float]
    last: Mapping[str, float]
    checks: list[Mapping[str, Any]]
    network: str
    made: Mapping[str, Any]

    @property
    def job(self) -> Job:
        """What was to be trained."""
        return Job(self.held_out, self.trial, self.draw)


def ceiling_scores(records: Iterable[TrainingRecord]) -> dict[tuple[str, int], float]:
    """Of networks trained on all domains, by (domain, trial): accuracy on its rows set aside.

    The checkpoint, and the draw, are those that are best on the other domains' rows set aside, so
    that no scored row has a say in the choice.
    """
    best: dict[tuple[str, int], tuple[float, float]] = {}
    for record in sorted(records, key=lambda r: r.draw):
        for check in record.checks if record.held_out is None else ():
            for domain, score in check["accuracy"].items():
                others = [v for name, v in check["accuracy"].items() if name != domain]
                if not others:
                    continue
                place, value = (domain, record.trial), sum(others) / len(others)
                if place not in best or value > best[place][0]:
                    best[place] = value, score
    return {place: score for place, (_, score) in best.items()}


def selected(records: Iterable[TrainingRecord]) -> list[TrainingRecord]:
    """Of every (held-out domain, trial), the draw whose checkpoint is best by the rule."""
    best: dict[tuple[str | None, int], TrainingRecord] = {}
    for record in sorted(records, key=lambda r: r.draw):
        place = record.held_out, record.trial
        if place not in best or record.value > best[place].value:
            best[place] = record
    return list(best.values())


class TrainingFolder:
    """Files of a run.

    ``run.json`` has the settings that all networks of the run share; every network has a folder
    with ``state.pt`` while it is trained, and then ``network.pt`` (weights) and ``record.json``.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def agree(self, settings: Mapping[str, Any], source: Mapping[str, Any]) -> None:
        """Write down the settings of a new run; refuse others than those of an old one.

        Where its examples lie (``source``) is written down too, and may change.
        """
        path = self.folder / SETTINGS
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            _write(path, json.dumps({**settings, "source": source}, indent=1).encode())
            return
        self.refuse_other(settings)
        earlier = self.settings()
        if source and earlier.get("source") != source:
            _write(path, json.dumps({**earlier, "source": source}, indent=1).encode())

    def refuse_other(self, asked: Mapping[str, Any]) -> None:
        """Name the first setting that differs from those with which the run was begun."""
        self._compare(self.settings(), json.loads(json.dumps(asked)))

    def _compare(self, written: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
        for name, value in asked.items():
            earlier = written.get(name)
            if isinstance(value, Mapping) and isinstance(earlier, Mapping):
                self._compare(earlier, value)
            elif value != earlier:
                raise ValueError(
                    f"{self.folder} was begun with {name} {_shown(earlier)}, and {_shown(value)} "
                    "is asked for; give the same settings, or another folder"
                )

    def settings(self) -> dict[str, Any]:
        """Those of the run."""
        path = self.folder / SETTINGS
        if not path.is_file():
            raise ValueError(
                f"{self.folder} has no {SETTINGS}; name the folder of a run, or train one first"
            )
        return read_json(path, _SETTINGS, remedy=_REMEDY)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Within, no other process trains here; it is refused."""
        descriptor = lock_folder(self.folder)
        try:
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def save_state(self, job: Job, state: Mapping[str, Any]) -> None:
        """Keep a state to go on from."""
        self._of(job).mkdir(parents=True, exist_ok=True)
        _saved(self._of(job) / STATE, state)

    def state(self, job: Job) -> dict[str, Any] | None:
        """The state to go on from, where there is one."""
        path = self._of(job) / STATE
        return _loaded(path) if path.exists() else None

    def step(self, job: Job) -> int:
        """How far a network is, where there is a state; its arrays are not read."""
        path = self._of(job) / STATE
        return _loaded(path, mmap=True)["step"] if path.exists() else 0

    def finish(self, record: TrainingRecord, weights: Mapping[str, Tensor]) -> None:
        """Keep the weights, then the record, which says that they are there."""
        folder = self._of(record.job)
        folder.mkdir(parents=True, exist_ok=True)
        _saved(folder / WEIGHTS, dict(weights))
        _write(folder / RECORD, json.dumps(asdict(record), indent=1).encode())
        (folder / STATE).unlink(missing_ok=True)

    def record(self, job: Job) -> TrainingRecord | None:
        """Of a network that is done."""
        path = self._of(job) / RECORD
        return _record(path) if path.exists() else None

    def records(self) -> list[TrainingRecord]:
        """Of all networks that are done."""
        found = sorted(self.folder.glob(f"*/{RECORD}"))
        return [_record(path) for path in found]

    def weights(self, job: Job) -> dict[str, Tensor]:
        """The kept weights."""
        return _loaded(self._of(job) / WEIGHTS)

    def _of(self, job: Job) -> Path:
        return self.folder / job.name


def _record(path: Path) -> TrainingRecord:
    # The loss of a network that diverged is no number.
    found = read_json(path, _RECORD, remedy=_REMEDY, finite=False)
    return TrainingRecord(**{name: found[name] for name in _RECORD})


def _loaded(path: Path, *, mmap: bool = False) -> dict[str, Any]:
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read ({type(error).__name__}); remove it to do that part again"
        ) from error


def _saved(path: Path, value: Mapping[str, Any]) -> None:
    # In memory first: on a full disk torch's own writer hides why it failed.
    content = io.BytesIO()
    torch.save(value, content)
    _write(path, content.getbuffer())


def _write(path: Path, content: bytes | memoryview) -> None:
    with whole_file(path) as file:
        file.write(content)


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return "on" if isinstance(value, Mapping) else str(value)
