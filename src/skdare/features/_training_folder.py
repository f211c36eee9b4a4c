"""The folder of a run: its settings, what can be taken up again, and what is done."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from skdare.features._recipe import Job

SETTINGS, STATE, RECORD, WEIGHTS = "run.json", "state.pt", "record.json", "network.pt"


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
    ceilings : dict
        Of a network that was trained on all domains: for each domain, accuracy on its rows set
        aside at the checkpoint that is best on the other domains' ones, so that no scored row has
        a say in the choice.
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
    ceilings: Mapping[str, float]
    checks: list[Mapping[str, Any]]
    network: str
    made: Mapping[str, Any]

    @property
    def job(self) -> Job:
        """What was to be trained."""
        return Job(self.held_out, self.trial, self.draw)


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

    def __init__(self, folder: str | os.PathLike) -> None:
        self.folder = Path(folder)

    def agree(self, settings: Mapping[str, Any], source: Mapping[str, Any]) -> None:
        """Write down the settings of a new run; refuse others than those of an old one.

        Where its examples lie (``source``) is written down too, and may change.
        """
        path, settings = self.folder / SETTINGS, json.loads(json.dumps(settings))
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            _write(path, json.dumps({**settings, "source": source}, indent=1).encode())
            return
        earlier = _json(path)
        for name, value in settings.items():
            if earlier.get(name) != value:
                raise ValueError(
                    f"{self.folder} was begun with {name} {_short(earlier.get(name))}, and this "
                    f"run has {_short(value)}; give the same settings, or another folder"
                )

    def settings(self) -> dict[str, Any]:
        """Those of the run."""
        path = self.folder / SETTINGS
        if not path.is_file():
            raise ValueError(
                f"{self.folder} has no {SETTINGS}; make it with `skdare train`, or name a run"
            )
        return _json(path)

    def save_state(self, job: Job, state: Mapping[str, Any]) -> None:
        """Keep a state to go on from."""
        self._of(job).mkdir(parents=True, exist_ok=True)
        _saved(self._of(job) / STATE, state)

    def state(self, job: Job) -> dict[str, Any] | None:
        """The state to go on from, where there is one."""
        path = self._of(job) / STATE
        return _loaded(path) if path.exists() else None

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
        return TrainingRecord(**_json(path)) if path.exists() else None

    def records(self) -> list[TrainingRecord]:
        """Of all networks that are done."""
        found = sorted(self.folder.glob(f"*/{RECORD}"))
        return [TrainingRecord(**_json(path)) for path in found]

    def weights(self, job: Job) -> dict[str, Tensor]:
        """The kept weights."""
        return _loaded(self._of(job) / WEIGHTS)

    def _of(self, job: Job) -> Path:
        return self.folder / job.name


def _json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{path} is not JSON ({error}); remove it to do that part again"
        ) from error


def _loaded(path: Path) -> dict[str, Any]:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read ({type(error).__name__}); remove it to do that part again"
        ) from error


def _saved(path: Path, value: Mapping[str, Any]) -> None:
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        torch.save(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    os.replace(part, path)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 80 else text[:77] + "…"
