"""Why DARE on PACS is not where the paper has it: one experiment for each suspected cause.

    python benchmarks/why.py pacs.run/features --out why
        [--only scale,stopping,…] [--rehearse] [--trials 3] [--jobs 2]

Features are the stores that `skdare extract` writes for the networks of a run, or a folder of one
file for each held-out domain, or one store, of a network that was not fine-tuned. Every experiment
changes one thing in the paper's protocol and is scored on the same rows: those of the held-out
domain that were set aside. A row of the table has means over trials, and the mean gain over ERM
under the same change, with its t 90 % interval over trials. Rows of the cause "choice" take the ρ
that is best by accuracy on rows that the training domains set aside, with ``--rehearse`` by
training domains left out, and, as a limit that no rule can pass, by labels of the held-out domain.
A second table has, by ρ, what the paper's second table has. A run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from skdare.bench import Log, Plan, Record, Settings, bench_plan, run
from skdare.bench._diagnostics import GUESSES, measure_adjustment
from skdare.bench._fold import Fold, Folds
from skdare.bench._preparation import Projection
from skdare.bench._trial import Trial
from skdare.datasets import DomainData, read, read_fine_tuned
from skdare.datasets._manifest import MANIFEST
from skdare.heads._dare import AS_IN_PAPER
from skdare.report._names import label
from tables import percent, table
from uda_methods import Training, learn_erm, serve_t3a

RHOS = (0.01, 0.1, 0.3, 0.5, 0.9, 1.0)
COMPONENTS = (16, 64, 256)
# That of the default protocol for these features, and what T3A keeps of each class by default.
T3A_L2, T3A_KEPT = 1e-2, 100
PAPER = Settings(protocol="paper")
SOLVED = Settings(test_on="reserved")
# The paper's whitening, where a head is solved to tolerance with a ridge.
WHITENING = {name: AS_IN_PAPER[name] for name in ("shrinkage", "shrinkage_target", "centered")}

Tables = Mapping[Any, DomainData]
# Scores by trial and held-out domain.
Scores = dict[tuple[int, str], float]


@dataclass(frozen=True)
class Experiment:
    """One change, and the heads that are fitted with it.

    Parameters
    ----------
    cause : str
        What is suspected.
    change : str
        What is changed in the paper's protocol, in words.
    heads : tuple of str
    settings : Settings
    options : mapping from head to its options
    components : int, optional
        Leading principal components of the training rows that take the place of the features.
    """

    cause: str
    change: str
    heads: tuple[str, ...] = ("erm", "dare")
    settings: Settings = PAPER
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    components: int | None = None


@dataclass(frozen=True, eq=False)
class Laboratory:
    """Features, and how experiments on them are run.

    Parameters
    ----------
    data : mapping from held-out domain, or from it and trial, to DomainData
    out : Path
        Folder of the records.
    trials : int, optional
    jobs : int
    """

    data: Tables
    out: Path
    trials: int | None = None
    jobs: int = 1

    def plan(self, experiment: Experiment) -> Plan:
        """Trials of an experiment."""
        plan = bench_plan(
            self.data,
            heads=experiment.heads,
            extras=(),
            settings=experiment.settings,
            options=experiment.options,
            trials=self.trials,
        )
        if experiment.components is None:
            return plan
        projection = Projection("pca", experiment.components)
        projected = [replace(trial, projection=projection) for trial in plan.trials]
        return replace(plan, trials=projected)

    def records(self, experiment: Experiment) -> list[Record]:
        """All records of an experiment, of which those on file are not made again."""
        log = Log(self.out / folder_name(experiment.change))
        for _ in run(self.plan(experiment), log, jobs=self.jobs):
            pass
        return log.read()

    def folds(self, experiment: Experiment) -> Iterator[tuple[Trial, Fold]]:
        """Each trial of an experiment with its fold, which is dropped afterwards."""
        plan = self.plan(experiment)
        folds = Folds(plan.feature_sets, plan.settings)
        for trial in plan.trials:
            yield trial, folds.fold(trial)
            folds.forget(trial, ())


def folder_name(change: str) -> str:
    """Name of the folder that an experiment's records are in."""
    return re.sub(r"[^a-z0-9.]+", "-", change.replace("ρ", "rho").lower())


SWEEP = {
    rho: Experiment("scale", f"ρ = {rho:g}", ("dare",), options={"dare": {"shrinkage": rho}})
    for rho in RHOS
}
UNCHANGED = Experiment("–", "none", ("erm", "reweighted", "dare", "no-constraint", "adapted"))
OURS = Experiment(
    "ours", "our defaults", ("erm", "dare", "adapted", "dare-cv", "dare-cv-adapted"), SOLVED
)
EXPERIMENTS = [
    UNCHANGED,
    *SWEEP.values(),
    Experiment("scale", "standardised features", settings=replace(PAPER, standardize=True)),
    *(
        Experiment("dimension", f"{count} principal components", components=count)
        for count in COMPONENTS
    ),
    Experiment(
        "stopping", "validated by the average adjustment", ("dare",),
        replace(PAPER, validate_with="mean"),
    ),
    Experiment("stopping", "validated at every iteration", settings=replace(PAPER, inner=1)),
    Experiment(
        "stopping", "solved to tolerance, with a ridge", settings=SOLVED,
        options={"dare": WHITENING},
    ),
    Experiment(
        "bias", "solved, no intercept", settings=SOLVED,
        options={
            "erm": {"fit_intercept": False},
            "dare": {**WHITENING, "fit_intercept": False},
        },
    ),
    Experiment(
        "shares", "solved, classes balanced", settings=replace(SOLVED, class_weight="balanced"),
        options={"dare": WHITENING},
    ),
    Experiment("means", "means subtracted, and estimated", ("estimated-mean",)),
    Experiment(
        "means", "solved, mean and covariance of the new rows", ("erm", "adapted"), SOLVED,
        {"adapted": {**WHITENING, "adaptation": "centered", "centered": True}},
    ),
    Experiment(
        "guess", "solved, root of the mean covariance", settings=SOLVED,
        options={"dare": {**WHITENING, "guess": "covariance"}},
    ),
    Experiment(
        "moment", "solved, covariance", settings=SOLVED,
        options={"dare": {**WHITENING, "centered": True}},
    ),
    OURS,
    *(
        Experiment(
            "ours", f"adapted by {name}", ("adapted",), SOLVED,
            {"adapted": {"adaptation": adaptation, "centered": True}},
        )
        for name, adaptation in (("means and covariance", "centered"), ("a mixture", "mixture"))
    ),
]  # fmt: skip


def scores_of(records: Sequence[Record], head: str, value: str = "score") -> Scores:
    """A head's scores, or another number of its records."""
    rows = [record for record in records if record.head == head and record.status == "ok"]
    return {(r.trial, r.held_out): r.score if value == "score" else r.values[value] for r in rows}


def chosen(candidates: Mapping[float, Scores], by: Mapping[float, Scores]) -> Scores:
    """Scores with the candidate that is best by other numbers, in each trial and domain."""
    places = next(iter(candidates.values()))
    best = {place: max(by, key=lambda value: by[value][place]) for place in places}
    return {place: candidates[value][place] for place, value in best.items()}


def rehearsed(laboratory: Laboratory) -> dict[float, Scores]:
    """What each ρ scores, on average over training domains left out, by trial and domain."""
    scores: dict[float, Scores] = {rho: {} for rho in RHOS}
    for place, everything in laboratory.data.items():
        held_out, trial = place if isinstance(place, tuple) else (place, None)
        rows = everything.domains != held_out
        left = replace(
            everything,
            X=everything.X[rows],
            y=everything.y[rows],
            domains=everything.domains[rows],
            split=None if everything.split is None else everything.split[rows],
            made=None,
        )
        names = np.unique(left.domains).tolist()
        tables = {name if trial is None else (name, trial): left for name in names}
        folder = laboratory.out / f"without-{held_out}-{trial or 0}"
        rehearsal = replace(laboratory, data=tables, out=folder)
        for rho, experiment in SWEEP.items():
            records = rehearsal.records(experiment)
            for number in {record.trial for record in records}:
                own = [r.score for r in records if r.trial == number]
                scores[rho][number, held_out] = float(np.mean(own))
    return scores


def t3a(laboratory: Laboratory) -> Scores:
    """T3A on the last layer of ERM, with all unlabelled rows of the held-out domain."""
    scores: Scores = {}
    for trial, fold in laboratory.folds(Experiment("ours", "T3A", ("erm",), SOLVED)):
        train = fold.train
        head = learn_erm(Training(train.X, train.y, train.domains, T3A_L2))
        right = serve_t3a(head, fold.test.X, T3A_KEPT) == fold.test.y
        scores[trial.number, trial.held_out] = float(np.mean(right[fold.reserved]))
    return scores


def adjustment_errors(laboratory: Laboratory) -> dict[float, Scores]:
    """Normalised error of the averaged adjustment, by ρ."""
    errors: dict[float, Scores] = {rho: {} for rho in RHOS}
    for trial, fold in laboratory.folds(Experiment("scale", "error", ("erm",))):
        for rho in RHOS:
            measured = measure_adjustment(fold, GUESSES[0], {"shrinkage": rho}, PAPER)
            errors[rho][trial.number, trial.held_out] = measured.score
    return errors


def by_domain(scores: Scores) -> list[float]:
    """Means over trials of each domain, in the order of their names."""
    domains = sorted({domain for _, domain in scores})
    return [
        float(np.mean([value for (_, name), value in scores.items() if name == domain]))
        for domain in domains
    ]


def interval(gains: Sequence[float]) -> str:
    """Mean and half of the t 90 % interval, in points."""
    values = 100 * np.asarray(gains)
    if len(values) < 2:
        return f"{values.mean():+.1f}"
    half = t.ppf(0.95, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return f"{values.mean():+.1f} ± {half:.1f}"


def line(
    cause: str, change: str, name: str, scores: Scores, erm: Scores, valid: Scores | None = None
) -> list[str]:
    """A row of the table: means by domain, the gain over ERM, and validation accuracy."""
    means = by_domain(scores)
    trials = sorted({trial for trial, _ in scores})
    gains = [
        float(np.mean([scores[place] - erm[place] for place in scores if place[0] == trial]))
        for trial in trials
    ]
    return [
        cause,
        change,
        name,
        *map(percent, means),
        percent(float(np.mean(means))),
        "" if scores is erm else interval(gains),
        "" if valid is None else percent(float(np.mean(list(valid.values())))),
    ]


def lines(laboratory: Laboratory, only: Sequence[str], *, rehearse: bool) -> Iterator[list[str]]:
    """Rows of the table, as experiments are done."""
    # ERM as the paper has it, and solved, by whether it is stopped early.
    usual: dict[bool, Scores] = {}
    candidates: dict[float, Scores] = {}
    valid_of: dict[float, Scores] = {}
    for experiment in EXPERIMENTS:
        if only and experiment not in (UNCHANGED, *SWEEP.values()) and experiment.cause not in only:
            continue
        print(f"{experiment.cause}: {experiment.change}", file=sys.stderr, flush=True)
        records = laboratory.records(experiment)
        stopped = experiment.settings.protocol == "paper"
        # Some changes do not concern ERM.
        erm = scores_of(records, "erm") or usual[stopped]
        if experiment in (UNCHANGED, OURS):
            usual[stopped] = erm
        for head in experiment.heads:
            scores = erm if head == "erm" else scores_of(records, head)
            valid = scores_of(records, head, "valid") if stopped else None
            if experiment in SWEEP.values():
                rho = experiment.options["dare"]["shrinkage"]
                candidates[rho] = scores
                valid_of[rho] = valid or {}
            yield line(experiment.cause, experiment.change, label(head), scores, erm, valid)
    rules = {"validation accuracy": valid_of}
    if rehearse:
        rules["training domains left out"] = rehearsed(laboratory)
    rules["labels of the held-out domain†"] = candidates
    for rule, numbers in rules.items():
        yield line("choice", f"ρ by {rule}", "DARE", chosen(candidates, numbers), usual[True])
    if False in usual:
        yield line("ours", "T3A on ERM", "T3A", t3a(laboratory), usual[False])


def read_tables(folder: Path) -> Tables:
    """Features by held-out domain, and by trial where networks were trained for each."""
    files = sorted(folder.glob("*.npz"))
    if files:
        return {path.stem: read(path) for path in files}
    if (folder / MANIFEST).exists():
        data = read(folder)
        return dict.fromkeys(np.unique(data.domains).tolist(), data)
    return read_fine_tuned(folder)


def main() -> None:
    """Run the experiments, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("features", type=Path)
    parser.add_argument("--out", type=Path, default=Path("why"))
    parser.add_argument("--only", default="", help="causes beside ρ, by commas")
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--trials", type=int, help="splits, where one network serves all")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    laboratory = Laboratory(read_tables(args.features), args.out, args.trials, args.jobs)
    only = [cause for cause in args.only.split(",") if cause]
    unknown = set(only) - {experiment.cause for experiment in EXPERIMENTS}
    if unknown:
        parser.error(f"there is no cause {unknown.pop()!r}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = list(lines(laboratory, only, rehearse=args.rehearse))
        errors = adjustment_errors(laboratory)
    domains = sorted({domain for _, domain in errors[RHOS[0]]})
    header = ["cause", "change", "head", *domains, "average", "over ERM", "validation"]
    print(table(header, rows))
    print(
        table(
            ["ρ", *domains, "average"],
            [
                [
                    f"{rho:g}",
                    *(f"{error:.3f}" for error in [*by_domain(own), np.mean(by_domain(own))]),
                ]
                for rho, own in errors.items()
            ],
        )
    )


if __name__ == "__main__":
    main()
