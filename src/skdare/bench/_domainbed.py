"""What a DomainBed sweep measured: its networks' scores, to stand beside heads on features."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from skdare.bench._given import Given, Place
from skdare.persist import check_shape, parse_json

RESULTS = "results.jsonl"
_ARGS = {"algorithm": str, "dataset": str, "test_envs": [int], "trial_seed": int}
_LINE = {"args": _ARGS, "step": int}


@dataclass(frozen=True, eq=False)
class DomainBedScores:
    """Scores of DomainBed's networks, as `bench_plan` takes them.

    Parameters
    ----------
    networks : dict from (held-out domain, trial) to Given
        On the 80 % of the domain that the network has not seen.
    end_to_end : dict from (domain, trial) to Given
        Of networks that were trained on every domain, on the 20 % set aside.
    chosen : dict from (held-out domain, trial) to (Path, int)
        The folder of the run behind each score in networks, and the step at which it was best.
    """

    networks: dict[Place, Given] = field(default_factory=dict)
    end_to_end: dict[Place, Given] = field(default_factory=dict)
    chosen: dict[Place, tuple[Path, int]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Check:
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
    def of_line(cls, folder: Path, line: bytes) -> _Check:
        # A network that diverged has accuracies, or a loss, that are no numbers.
        held = parse_json(line, _LINE, finite=False)
        args = held["args"]
        return cls(
            folder,
            algorithm=args["algorithm"],
            dataset=args["dataset"],
            test_domains=args["test_envs"],
            trial=args["trial_seed"],
            step=held["step"],
            inner=_accuracies(held, "in"),
            outer=_accuracies(held, "out"),
        )

    @property
    def held_out(self) -> int | None:
        """The test domain; None where it names none that there is, and all were trained on."""
        [number] = self.test_domains
        return number if 0 <= number < len(self.outer) else None

    @property
    def validation(self) -> float:
        """Mean accuracy on the 20 % set aside of every training domain, each counting alike."""
        seen = [score for e, score in enumerate(self.outer) if e != self.held_out]
        return math.fsum(seen) / len(seen) if seen else math.nan


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
    makes for another rule of selection, are left out. Where ``--test_envs`` named a domain that
    there is not, the network saw them all, and is a ceiling. A step whose mean is no number, of a
    network that diverged, is never the best.

    Parameters
    ----------
    folder : str or Path
        What ``--output_dir`` was of the sweep, or of one run.
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
    >>> from skdare.bench import read_domainbed
    >>> args = {"algorithm": "ERM", "dataset": "PACS", "test_envs": [1], "trial_seed": 0}
    >>> scores = {"env0_in_acc": 0.9, "env0_out_acc": 0.8, "env1_in_acc": 0.7, "env1_out_acc": 0.6}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     line = json.dumps({"args": args, "step": 300, **scores})
    ...     _ = Path(folder, "results.jsonl").write_text(line)
    ...     read_domainbed(folder, ["art", "photo"]).networks
    {('photo', 0): Given(score=0.7, tested_on='rest')}
    """
    path = Path(folder)
    found = [check for file in _files(path) for check in _checks(file)]
    kept = _of_one_kind(path, found, algorithm, dataset)
    best: dict[tuple[int | None, int], _Check] = {}
    for check in kept:
        _check_domains(check, domains)
        if math.isnan(check.validation):
            continue
        key = check.held_out, check.trial
        if key not in best or check.validation > best[key].validation:
            best[key] = check
    scores = DomainBedScores()
    for (held_out, trial), check in sorted(best.items(), key=lambda item: str(item[0])):
        if held_out is None:
            for name, score in zip(domains, check.outer, strict=True):
                scores.end_to_end[name, trial] = Given(score, "reserved")
        else:
            place = domains[held_out], trial
            scores.networks[place] = Given(check.inner[held_out], "rest")
            scores.chosen[place] = check.folder, check.step
    return scores


def _files(path: Path) -> list[Path]:
    found = [path / RESULTS] if (path / RESULTS).is_file() else sorted(path.glob(f"*/{RESULTS}"))
    if not found:
        raise ValueError(
            f"{path} has no {RESULTS}, and no folder in it has one; give the --output_dir of a "
            "DomainBed sweep"
        )
    return found


def _checks(file: Path) -> Iterator[_Check]:
    """The lines of a run; the last of one that was killed may be half a line."""
    lines = file.read_bytes().splitlines()
    for number, line in enumerate(lines):
        try:
            check = _Check.of_line(file.parent, line)
        except ValueError as error:
            if number == len(lines) - 1:
                return
            raise ValueError(
                f"line {number + 1} of {file} {error}; run it again, or move its folder away"
            ) from error
        if len(check.test_domains) == 1:
            yield check


def _accuracies(held: dict[str, Any], part: str) -> list[float]:
    keys = takewhile(held.__contains__, (f"env{e}_{part}_acc" for e in count()))
    found = {key: held[key] for key in keys}
    check_shape(found, {str: float})
    return [float(score) for score in found.values()]


def _of_one_kind(
    path: Path, found: list[_Check], algorithm: str, dataset: str | None
) -> list[_Check]:
    """The lines of this algorithm on this set; refuse where there are none, or several sets."""
    algorithms = sorted({check.algorithm for check in found})
    kept = [check for check in found if check.algorithm == algorithm]
    sets = sorted({check.dataset for check in kept})
    if dataset is not None:
        kept = [check for check in kept if check.dataset == dataset]
    if not kept:
        raise ValueError(
            f"{path} has no run of {algorithm} on {dataset or 'one test domain'}; it has "
            f"{', '.join(algorithms) or 'none'} on {', '.join(sets) or 'nothing'}"
        )
    if dataset is None and len(sets) > 1:
        raise ValueError(f"{path} has runs on {', '.join(sets)}; name one with dataset=")
    return kept


def _check_domains(check: _Check, domains: Sequence[str]) -> None:
    if len(check.outer) != len(domains) or len(check.inner) != len(domains):
        raise ValueError(
            f"{check.folder} has scores on {len(check.outer)} domains, and {len(domains)} are "
            f"named ({', '.join(domains)}); name them all, in DomainBed's order"
        )
