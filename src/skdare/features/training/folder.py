"""The folder of a run: its settings, saved states, and finished networks."""

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

from skdare.errors import InputError
from skdare.features.backbones.backbone import state_hash
from skdare.features.examples.listing import RUN_SETTINGS
from skdare.features.json_file import read_json
from skdare.features.training.recipe import Job
from skdare.files import whole_file

_STATE = "state.pt"
_RECORD = "record.json"
_WEIGHTS = "network.pt"
_REMEDY = "remove it to do that part again, or train in another folder"
_SETTINGS_SHAPE = {"examples": str, "weights": str, "recipe": {"aside": float, "precision": str}}
_RECORD_SHAPE = {
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
    """How a network was trained, and how well it does.

    Parameters
    ----------
    held_out, trial, draw
        As in `Job`.
    hyperparameters : dict
    rule : str
        Which checkpoint is kept, in words.
    step : int
        Step of the kept checkpoint.
    value : float
        What the rule maximises, at the kept checkpoint.
    accuracy : dict
        On the held-out domain at the kept checkpoint: on the rows set aside ("reserved"), on the
        others ("rest"), and on "all"; empty for a network that was trained on all domains.
    last : dict
        The same at the last step.
    checks : list of dict
        Step, mean loss since the last checkpoint, and accuracy on rows set aside, by domain.
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
        """The job that was done."""
        return Job(self.held_out, self.trial, self.draw)


def ceiling_scores(records: Iterable[TrainingRecord]) -> dict[tuple[str, int], float]:
    """Accuracy of networks trained on all domains, on rows set aside, by (domain, trial).

    The checkpoint and the draw are those that do best on the other domains' rows set aside, so
    that no scored row takes part in the choice.
    """
    best: dict[tuple[str, int], tuple[float, float]] = {}
    for record in sorted(records, key=lambda r: r.draw):
        for check in record.checks if record.held_out is None else ():
            for domain, score in check["accuracy"].items():
                others = [v for name, v in check["accuracy"].items() if name != domain]
                if not others:
                    continue
                key = (domain, record.trial)
                value = sum(others) / len(others)
                if key not in best or value > best[key][0]:
                    best[key] = value, score
    return {key: score for key, (_, score) in best.items()}


def best_draws(records: Iterable[TrainingRecord]) -> list[TrainingRecord]:
    """The draw with the best checkpoint, for every held-out domain and trial."""
    best: dict[tuple[str | None, int], TrainingRecord] = {}
    for record in sorted(records, key=lambda r: r.draw):
        key = record.held_out, record.trial
        if key not in best or record.value > best[key].value:
            best[key] = record
    return list(best.values())


class TrainingFolder:
    """Files of a run.

    ``run.json`` has the settings that all networks of the run share. Every network has a folder
    with ``state.pt`` while it is trained, and ``network.pt`` (weights) and ``record.json`` when it
    is done.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def begin(self, settings: Mapping[str, Any], source: Mapping[str, Any]) -> None:
        """Write down the settings of a new run, or check those of an old one.

        Where the examples are (``source``) is written down too, and may change.
        """
        path = self.folder / RUN_SETTINGS
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            _write(path, json.dumps({**settings, "source": source}, indent=1).encode())
            return
        self.check_settings(settings)
        earlier = self.settings()
        if source and earlier.get("source") != source:
            _write(path, json.dumps({**earlier, "source": source}, indent=1).encode())

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Refuse settings that differ from those with which the run was begun."""
        self._compare(self.settings(), json.loads(json.dumps(settings)))

    def _compare(self, begun_with: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        for name, value in settings.items():
            earlier = begun_with.get(name)
            if isinstance(value, Mapping) and isinstance(earlier, Mapping):
                self._compare(earlier, value)
            elif value != earlier:
                raise InputError(
                    f"{self.folder} was begun with {name} {_shown(earlier)}, not {_shown(value)}; "
                    "give the same settings, or another folder"
                )

    def settings(self) -> dict[str, Any]:
        """Settings of the run."""
        path = self.folder / RUN_SETTINGS
        if not path.is_file():
            raise InputError(
                f"{self.folder} has no {RUN_SETTINGS}; name the folder of a run, or train one first"
            )
        return read_json(path, _SETTINGS_SHAPE, remedy=_REMEDY)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Refuse other processes that want to train here at the same time."""
        from filelock import FileLock, Timeout

        try:
            with FileLock(self.folder / ".lock", timeout=0):
                yield
        except Timeout as error:
            raise InputError(
                f"another process is training in '{self.folder}'", "wait for it"
            ) from error

    def save_state(self, job: Job, state: Mapping[str, Any]) -> None:
        """Save a state to go on from."""
        self._place(job).mkdir(parents=True, exist_ok=True)
        _save(self._place(job) / _STATE, state)

    def state(self, job: Job) -> dict[str, Any] | None:
        """State to go on from, if there is one."""
        path = self._place(job) / _STATE
        return _load(path) if path.exists() else None

    def step(self, job: Job) -> int:
        """Number of steps that the saved state has taken; its arrays are not read."""
        path = self._place(job) / _STATE
        return _load(path, mmap=True)["step"] if path.exists() else 0

    def finish(self, record: TrainingRecord, weights: Mapping[str, Tensor]) -> None:
        """Write the weights, then the record, which says that they are there."""
        folder = self._place(record.job)
        folder.mkdir(parents=True, exist_ok=True)
        _save(folder / _WEIGHTS, dict(weights))
        _write(folder / _RECORD, json.dumps(asdict(record), indent=1).encode())
        (folder / _STATE).unlink(missing_ok=True)

    def record(self, job: Job) -> TrainingRecord | None:
        """Record of a network, or None if it is not done."""
        path = self._place(job) / _RECORD
        return _read_record(path) if path.exists() else None

    def records(self) -> list[TrainingRecord]:
        """Records of all networks that are done."""
        return [_read_record(path) for path in sorted(self.folder.glob(f"*/{_RECORD}"))]

    def chosen(self) -> list[TrainingRecord]:
        """Records of networks that held a domain out, the best draw of each; at least one."""
        chosen = [record for record in best_draws(self.records()) if record.held_out is not None]
        if not chosen:
            raise InputError(
                f"{self.folder} has no finished network that held a domain out; train one first"
            )
        return chosen

    def weights(self, job: Job) -> dict[str, Tensor]:
        """Kept weights of a network, checked against its record."""
        path = self._place(job) / _WEIGHTS
        weights = _load(path)
        record = self.record(job)
        if record is not None and state_hash(weights) != record.network:
            raise InputError(f"'{path}' is damaged", "remove its folder, and train it again")
        return weights

    def _place(self, job: Job) -> Path:
        return self.folder / job.name


def _read_record(path: Path) -> TrainingRecord:
    # The loss of a network that diverged is not a number.
    content = read_json(path, _RECORD_SHAPE, remedy=_REMEDY)
    return TrainingRecord(**{name: content[name] for name in _RECORD_SHAPE})


def _load(path: Path, *, mmap: bool = False) -> dict[str, Any]:
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except Exception as error:
        raise InputError(
            f"{path} cannot be read ({type(error).__name__}); remove it to do that part again"
        ) from error


def _save(path: Path, value: Mapping[str, Any]) -> None:
    # In memory first: on a full disk torch's own writer hides why it failed.
    content = io.BytesIO()
    torch.save(value, content)
    _write(path, content.getbuffer())


def _write(path: Path, content: bytes | memoryview) -> None:
    with whole_file(path) as file:
        file.write(content)


def _shown(value: Any) -> str:
    if value is None:
        return "off"
    return "on" if isinstance(value, Mapping) else str(value)
