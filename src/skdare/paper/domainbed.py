"""Scores of networks from a DomainBed sweep, to be compared with those of a study."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from skdare.bench.record import Record
from skdare.errors import InputError
from skdare.features.json_file import check_shape
from skdare.paper.experiment import Place, network_records

RESULTS = "results.jsonl"
_ARGS = {"algorithm": str, "dataset": str, "test_envs": [int], "trial_seed": int}
_LINE = {"args": _ARGS, "step": int}


@dataclass(frozen=True, eq=False)
class DomainBedScores:
    """Accuracies of DomainBed's networks.

    Parameters
    ----------
    networks : dict from (held-out domain, trial) to float
        Scores on 80 % of a domain that the network has not seen.
    end_to_end : dict from (domain, trial) to float
        Scores of networks that were trained on every domain, on the 20 % set aside.
    chosen : dict from (held-out domain, trial) to (Path, int)
        The folder of the run behind each score in networks, and the step at which it was best.
    """

    networks: dict[Place, float] = field(default_factory=dict)
    end_to_end: dict[Place, float] = field(default_factory=dict)
    chosen: dict[Place, tuple[Path, int]] = field(default_factory=dict)

    def records(self, name: str) -> list[Record]:
        """The scores as records of a study."""
        return list(network_records(name, self.networks, self.end_to_end))


@dataclass(frozen=True, eq=False)
class _Checkpoint:
    """One line of results: a step of a run, and accuracies by domain on both parts of its rows."""

    folder: Path
    algorithm: str
    dataset: str
    test_domains: list[int]
    trial: int
    step: int
    inner: list[float]
    outer: list[float]

    @classmethod
    def of_line(cls, folder: Path, line: bytes) -> _Checkpoint:
        # After a divergence, accuracies and losses are NaN.
        values = json.loads(line)
        check_shape(values, _LINE)
        args = values["args"]
        return cls(
            folder,
            algorithm=args["algorithm"],
            dataset=args["dataset"],
            test_domains=args["test_envs"],
            trial=args["trial_seed"],
            step=values["step"],
            inner=_accuracies(values, "in"),
            outer=_accuracies(values, "out"),
        )

    @property
    def held_out(self) -> int | None:
        """The test domain; None where no such domain exists, and all were trained on."""
        [number] = self.test_domains
        return number if 0 <= number < len(self.outer) else None

    @property
    def validation(self) -> float:
        """Mean accuracy on the 20 % set aside of every training domain, each counting alike."""
        scores = [score for e, score in enumerate(self.outer) if e != self.held_out]
        return math.fsum(scores) / len(scores) if scores else math.nan


def read_domainbed(
    folder: str | Path,
    domains: Sequence[str],
    *,
    algorithm: str = "ERM",
    dataset: str | None = None,
) -> DomainBedScores:
    """Read a DomainBed sweep, and choose by training-domain validation as DomainBed does.

    Of all runs and steps with a test domain and trial, the one with the best mean accuracy on the
    20 % set aside of the training domains counts. Runs with two test domains, which DomainBed
    makes for another rule of selection, are left out. Where the test domain of a run does not
    exist, the network was trained on all domains, and is a ceiling. A step whose mean is NaN,
    because the network diverged, is never the best.

    Parameters
    ----------
    folder : str or Path
        DomainBed's output folder of the sweep, or of one run.
    domains : sequence of str
        What the features call DomainBed's environments 0, 1, …: sorted names of folders.
    algorithm : str, default="ERM"
    dataset : str, optional
        Needed where the folder has runs on several.

    Returns
    -------
    DomainBedScores

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from skdare.paper.domainbed import read_domainbed
    >>> args = {"algorithm": "ERM", "dataset": "PACS", "test_envs": [1], "trial_seed": 0}
    >>> scores = {"env0_in_acc": 0.9, "env0_out_acc": 0.8, "env1_in_acc": 0.7, "env1_out_acc": 0.6}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     line = json.dumps({"args": args, "step": 300, **scores})
    ...     _ = Path(folder, "results.jsonl").write_text(line)
    ...     read_domainbed(folder, ["art", "photo"]).networks
    {('photo', 0): 0.7}
    """
    path = Path(folder)
    every = [checkpoint for file in _files(path) for checkpoint in _checkpoints(file)]
    best: dict[tuple[int | None, int], _Checkpoint] = {}
    for checkpoint in _of_one_kind(path, every, algorithm, dataset):
        _check_domains(checkpoint, domains)
        if math.isnan(checkpoint.validation):
            continue
        key = checkpoint.held_out, checkpoint.trial
        if key not in best or checkpoint.validation > best[key].validation:
            best[key] = checkpoint
    scores = DomainBedScores()
    for (held_out, trial), checkpoint in sorted(best.items(), key=lambda item: str(item[0])):
        if held_out is None:
            for name, score in zip(domains, checkpoint.outer, strict=True):
                scores.end_to_end[name, trial] = score
        else:
            place = domains[held_out], trial
            scores.networks[place] = checkpoint.inner[held_out]
            scores.chosen[place] = checkpoint.folder, checkpoint.step
    return scores


def _files(path: Path) -> list[Path]:
    files = [path / RESULTS] if (path / RESULTS).is_file() else sorted(path.glob(f"*/{RESULTS}"))
    if not files:
        raise InputError(
            f"{path} has no {RESULTS}, and no folder in it has one; give the output folder of a "
            "DomainBed sweep"
        )
    return files


def _checkpoints(file: Path) -> Iterator[_Checkpoint]:
    """The lines of a run; the last of one that was killed may be half a line."""
    lines = file.read_bytes().splitlines()
    for number, line in enumerate(lines):
        try:
            checkpoint = _Checkpoint.of_line(file.parent, line)
        except ValueError as error:
            if number == len(lines) - 1:
                return
            raise InputError(
                f"line {number + 1} of {file} {error}; run it again, or move its folder away"
            ) from error
        if len(checkpoint.test_domains) == 1:
            yield checkpoint


def _accuracies(values: dict[str, Any], part: str) -> list[float]:
    keys = takewhile(values.__contains__, (f"env{e}_{part}_acc" for e in count()))
    scores = {key: values[key] for key in keys}
    check_shape(scores, {str: float})
    return [float(score) for score in scores.values()]


def _of_one_kind(
    path: Path, every: list[_Checkpoint], algorithm: str, dataset: str | None
) -> list[_Checkpoint]:
    """Checkpoints of this algorithm on this set; refused without any, or with several sets."""
    algorithms = sorted({checkpoint.algorithm for checkpoint in every})
    chosen = [checkpoint for checkpoint in every if checkpoint.algorithm == algorithm]
    sets = sorted({checkpoint.dataset for checkpoint in chosen})
    if dataset is not None:
        chosen = [checkpoint for checkpoint in chosen if checkpoint.dataset == dataset]
    if not chosen:
        raise InputError(
            f"{path} has no run of {algorithm} on {dataset or 'one test domain'}; it has "
            f"{', '.join(algorithms) or 'none'} on {', '.join(sets) or 'nothing'}"
        )
    if dataset is None and len(sets) > 1:
        raise InputError(f"{path} has runs on {', '.join(sets)}; name one with dataset=")
    return chosen


def _check_domains(checkpoint: _Checkpoint, domains: Sequence[str]) -> None:
    if len(checkpoint.outer) != len(domains) or len(checkpoint.inner) != len(domains):
        raise InputError(
            f"{checkpoint.folder} has scores on {len(checkpoint.outer)} domains, and "
            f"{len(domains)} are named ({', '.join(domains)}); name them all, in DomainBed's order"
        )
