"""Why DARE gains less on PACS than in the paper: one experiment for each suspected cause.

    python benchmarks/why.py pacs.run/features --out why
        [--only stopping,means,…] [--rehearse] [--trials 3] [--jobs 2]

Features are the stores that `skdare extract` writes for the networks of a run, or a folder of one
file for each held-out domain, or one store, of a network that was not fine-tuned. An experiment
changes one thing: in the paper's protocol or, where it says "solved", in heads that are solved to
tolerance with a ridge, whitened as in the paper. All are scored on the same rows, those of the
held-out domain that were set aside. A row of the table has means over trials, and the mean gain
over ERM under the same change, with its t 90 % interval over trials.

Rows of the cause "choice" take, in every fold, the ρ that is best by accuracy on rows that the
training domains set aside; with ``--rehearse`` by training domains left out, which a fine-tuned
network has seen all the same; and by the labels that score it, which no rule can surpass; of
equally good ones the strongest shrinkage. The number of principal components is chosen in the
first way too, for ERM and for DARE, among these and all features. The second table is the paper's
Table 2, by ρ. Fits on file are not repeated; rehearsals and T3A keep no records and are.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from skdare._scale import SCALES
from skdare.bench import Log, Plan, Record, Settings, ablation_plan, bench_plan, run
from skdare.bench._default_protocol import common_ridge
from skdare.bench._fold import Fold, Folds, Once, rows_of
from skdare.bench._paper_protocol import fit_paper
from skdare.bench._preparation import Projection
from skdare.bench._trial import Trial
from skdare.datasets import DomainData, read, read_fine_tuned
from skdare.datasets._manifest import MANIFEST
from skdare.heads._dare import AS_IN_PAPER
from skdare.report._names import label
from skdare.report._numbers import spread
from skdare.report.summary.statistics import t_interval
from tables import percent, table
from uda_methods import METHODS, Training

RHOS = (0.01, 0.1, 0.3, 0.5, 0.9, 1.0)
GUESS_RHOS = (0.1, 0.3, 0.9)
COMPONENTS = (16, 64, 256, 1024)
PAPER = Settings(protocol="paper")
SOLVED = Settings(test_on="reserved")
# As patient as epochs of many iterations are.
EVERY_ITERATION = replace(
    PAPER, inner=1, patience=PAPER.inner * PAPER.patience, max_epochs=PAPER.inner * PAPER.max_epochs
)
# The paper's whitening, for heads that are solved.
WHITENING = {name: AS_IN_PAPER[name] for name in ("shrinkage", "shrinkage_target", "centered")}
T3A = next(method for method in METHODS if method.name == "T3A")
MARK = "†"

Data = DomainData | Mapping[Any, DomainData]
# Scores by trial and held-out domain.
Scores = dict[tuple[int, str], float]


@dataclass(frozen=True)
class Experiment:
    """One change, and the heads that are fitted with it.

    Parameters
    ----------
    name : str
        Of the folder that its records are in.
    cause : str
        What is suspected.
    change : str
        In words.
    heads : tuple of str
    settings : Settings
    options : mapping from head to its options
    components : int, optional
        Leading principal components of the training rows that take the place of the features.
    """

    name: str
    cause: str
    change: str
    heads: tuple[str, ...] = ("erm", "dare")
    settings: Settings = PAPER
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    components: int | None = None

    @property
    def of_erm(self) -> tuple[Any, ...]:
        """What decides how ERM is fitted."""
        return self.settings, dict(self.options.get("erm", {})), self.components


UNCHANGED = Experiment(
    "paper", "–", "the paper's protocol", ("erm", "reweighted", "dare", "no-constraint", "adapted")
)
OURS = Experiment(
    "defaults",
    "ours",
    "solved, our defaults",
    ("erm", "dare", "adapted", "dare-cv", "dare-cv-adapted"),
    SOLVED,
)
SWEEP = "rho"
ERRORS = "errors"
EXPERIMENTS = [
    UNCHANGED,
    Experiment(
        "standardised", "scale", "standardised features", settings=replace(PAPER, standardize=True)
    ),
    *(
        Experiment(
            f"components-{count}",
            "dimension",
            f"mean subtracted, {count} principal components",
            components=count,
        )
        for count in COMPONENTS
    ),
    Experiment(
        "validated-by-mean",
        "stopping",
        "validated by the averaged adjustment",
        ("dare",),
        replace(PAPER, validate_with="mean"),
    ),
    Experiment(
        "every-iteration", "stopping", "validated at every iteration", settings=EVERY_ITERATION
    ),
    Experiment(
        "solved",
        "stopping",
        "solved",
        ("erm", "dare", "adapted"),
        SOLVED,
        {"dare": WHITENING},
    ),
    Experiment(
        "no-intercept",
        "intercept",
        "solved, no intercept",
        settings=SOLVED,
        options={"erm": {"fit_intercept": False}, "dare": {**WHITENING, "fit_intercept": False}},
    ),
    Experiment(
        "balanced",
        "class shares",
        "solved, classes balanced",
        settings=replace(SOLVED, class_weight="balanced"),
        options={"dare": WHITENING},
    ),
    Experiment(
        "estimated-mean",
        "means",
        "means subtracted, the new one guessed, no constraint",
        ("estimated-mean",),
    ),
    Experiment(
        "new-mean",
        "means",
        "solved, mean and covariance of the new domain measured",
        ("erm", "adapted"),
        SOLVED,
        {"adapted": {**WHITENING, "adaptation": "centered"}},
    ),
    *(
        Experiment(
            f"guess-{rho:g}",
            "guess",
            f"solved, inverse root of the mean second moment, ρ = {rho:g}",
            settings=SOLVED,
            options={"dare": {**WHITENING, "shrinkage": rho, "guess": "covariance"}},
        )
        for rho in GUESS_RHOS
    ),
    Experiment(
        "covariance",
        "covariance",
        "solved, covariance for second moment",
        settings=SOLVED,
        options={"dare": {**WHITENING, "centered": True}},
    ),
    OURS,
    *(
        Experiment(
            name,
            "ours",
            f"solved, our defaults, adapted by {words}",
            ("adapted",),
            SOLVED,
            {"adapted": {"adaptation": name}},
        )
        for name, words in (("centered", "mean and covariance"), ("mixture", "a mixture"))
    ),
]
CAUSES = list(dict.fromkeys(experiment.cause for experiment in EXPERIMENTS))[1:]


@dataclass(frozen=True, eq=False)
class Bench:
    """Features, and how experiments on them are run.

    Parameters
    ----------
    data : DomainData, or mapping from held-out domain, or from it and trial, to DomainData
    out : Path
        Folder of the records.
    trials : int, optional
    jobs : int
    """

    data: Data
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

    def has_room(self, experiment: Experiment) -> bool:
        """Whether the features are more than the components that an experiment leaves."""
        table = self.data if isinstance(self.data, DomainData) else next(iter(self.data.values()))
        features = table.X.shape[1]
        if experiment.components is None or experiment.components < features:
            return True
        print(f"{experiment.name} is left out: there are {features} features", file=sys.stderr)
        return False

    def records(self, name: str, plan: Plan) -> list[Record]:
        """Records of a plan, of which those on file are not made again."""
        print(name, file=sys.stderr, flush=True)
        log = Log(self.out / name)
        for _ in run(plan, log, jobs=self.jobs, retry_failed=True):
            pass
        keys = set(map(plan.key, plan.trials))
        records = [record for record in log.read() if record.key in keys]
        for record in records:
            where = f"{name}: {record.head} on {record.held_out}, trial {record.trial}"
            if record.status != "ok":
                raise SystemExit(f"{where} failed: {record.reason}")
            if "warnings" in record.values:
                print(f"{where}: {record.values['warnings']}", file=sys.stderr)
        return records

    def swept(self) -> dict[float, list[Record]]:
        """Records of DARE in the paper's protocol, by ρ."""
        plan = ablation_plan(
            "shrinkage", self.data, values=RHOS, settings=PAPER, trials=self.trials
        )
        records = self.records(SWEEP, plan)
        return {rho: [record for record in records if record.x == rho] for rho in RHOS}

    def errors(self) -> dict[float, Scores]:
        """Normalised error of the averaged adjustment, by ρ."""
        plan = self.plan(replace(UNCHANGED, heads=("erm",)))
        measured = [
            Trial(
                "adjustment",
                "averaged adjustment",
                trial.held_out,
                trial.number,
                x=rho,
                options=(("shrinkage", rho),),
            )
            for trial in plan.trials
            for rho in RHOS
        ]
        records = self.records(ERRORS, replace(plan, trials=measured))
        return {
            rho: {(r.trial, r.held_out): r.score for r in records if r.x == rho} for rho in RHOS
        }

    def folds(self, settings: Settings) -> Iterator[tuple[tuple[int, str], Fold]]:
        """Each trial's number and held-out domain, with its fold."""
        plan = self.plan(Experiment("", "", "", ("erm",), settings))
        folds = Folds(plan.feature_sets, plan.settings)
        for trial in plan.trials:
            yield (trial.number, trial.held_out), folds.fold(trial)
            folds.forget(trial, ())

    def rehearsed(self) -> dict[float, Scores]:
        """Mean accuracy of DARE on training domains left out, by ρ."""
        scores: dict[float, Scores] = {rho: {} for rho in RHOS}
        for place, fold in self.folds(PAPER):
            print("rehearsal", *place, file=sys.stderr, flush=True)
            inner = [without(fold, domain) for domain in fold.training_domains]
            for rho in RHOS:
                scores[rho][place] = float(np.mean([accuracy(one, rho) for one in inner]))
        return scores

    def t3a(self) -> Scores:
        """T3A on the last layer of ERM, with all unlabelled rows of the held-out domain."""
        scores: Scores = {}
        for place, fold in self.folds(SOLVED):
            train = fold.train
            l2 = common_ridge(fold, SOLVED)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                head = T3A.learn(Training(train.X, train.y, train.domains, l2))
            for warning in caught:
                print(f"T3A on {place[1]}, trial {place[0]}: {warning.message}", file=sys.stderr)
            correct = T3A.serve(head, fold.test.X, T3A.options[0]) == fold.test.y
            scores[place] = float(np.mean(correct[fold.reserved]))
        return scores


def without(fold: Fold, domain: str) -> Fold:
    """The fold without its held-out domain, with a training domain held out in its place."""
    others = fold.valid.domains != domain
    test = rows_of(fold.valid, ~others)
    return replace(
        fold,
        held_out=domain,
        training_domains=[name for name in fold.training_domains if name != domain],
        train=fold.without(domain),
        valid=rows_of(fold.valid, others),
        test=test,
        reserved=np.ones(len(test.y), dtype=bool),
        once=Once(),
    )


def accuracy(fold: Fold, rho: float) -> float:
    """Accuracy of the paper's DARE on the rows of the held-out domain that were set aside."""
    head = fit_paper(fold, "dare", {"shrinkage": rho}, PAPER).predictor
    rows = fold.reserved
    return float(np.mean(head.predict(fold.test.X[rows]) == fold.test.y[rows]))


def scores_of(records: Sequence[Record], head: str) -> Scores:
    """A head's scores."""
    return {(r.trial, r.held_out): r.score for r in records if r.head == head}


def validation_of(records: Sequence[Record], head: str) -> Scores:
    """Its accuracy on rows that the training domains set aside; empty where that is not known."""
    own = [record for record in records if record.head == head and "valid" in record.values]
    return {(record.trial, record.held_out): record.values["valid"] for record in own}


def chosen(candidates: Mapping[float, Scores], by: Mapping[float, Scores]) -> Scores:
    """Scores with the value that is best by other numbers, in each trial and domain.

    Of equally good ones it is the largest: the strongest shrinkage, the most features.
    """
    places = next(iter(candidates.values()))
    best = {place: max(by, key=lambda value: (by[value][place], value)) for place in places}
    return {place: candidates[value][place] for place, value in best.items()}


def by_domain(scores: Scores) -> list[float]:
    """Means over trials of each domain, in the order of their names."""
    domains = sorted({domain for _, domain in scores})
    return [
        float(np.mean([value for (_, name), value in scores.items() if name == domain]))
        for domain in domains
    ]


def line(
    cause: str, change: str, name: str, scores: Scores, erm: Scores, valid: Scores | None = None
) -> list[str]:
    """A row of the table: means by domain, the gain over ERM, and validation accuracy."""
    means = by_domain(scores)
    scale = SCALES["accuracy"]
    gain = t_interval(
        [
            float(np.mean([scores[place] - erm[place] for place in scores if place[0] == trial]))
            for trial in sorted({trial for trial, _ in scores})
        ]
    )
    over_erm = f"{scale.gain(gain.mean)} {spread(scale, gain.half_width)}".strip()
    return [
        cause,
        change,
        name,
        *map(percent, means),
        percent(float(np.mean(means))),
        "" if scores is erm else over_erm,
        percent(float(np.mean(list(valid.values())))) if valid else "",
    ]


def lines(bench: Bench, causes: Sequence[str], *, rehearse: bool) -> Iterator[list[str]]:
    """Rows of the table, as experiments are done."""
    # ERM as the paper has it and solved, for changes that do not concern it.
    usual: dict[str, Scores] = {}
    shown: list[tuple[Any, ...]] = []
    # Of ERM and DARE in the paper's protocol, by number of features: scores, and validation.
    by_count: dict[str, dict[float, tuple[Scores, Scores]]] = {"erm": {}, "dare": {}}
    wanted = [e for e in EXPERIMENTS if e is UNCHANGED or e.cause in causes]
    # All are planned before the first is run, so that a mistake in one is found at once.
    plans = [(e, bench.plan(e)) for e in wanted if bench.has_room(e)]
    for experiment, plan in plans:
        records = bench.records(experiment.name, plan)
        protocol = experiment.settings.protocol
        erm = scores_of(records, "erm") if "erm" in experiment.heads else usual[protocol]
        if experiment in (UNCHANGED, OURS):
            usual[protocol] = erm
        for head in experiment.heads:
            scores = erm if head == "erm" else scores_of(records, head)
            if head == "erm" and experiment.of_erm in shown:
                continue  # the same ERM, in a row above
            valid = validation_of(records, head)
            yield line(experiment.cause, experiment.change, label(head), scores, erm, valid)
            if head in by_count and (experiment is UNCHANGED or experiment.components):
                by_count[head][experiment.components or math.inf] = scores, valid
        if "erm" in experiment.heads:
            shown.append(experiment.of_erm)
        if experiment is UNCHANGED:
            yield from swept_lines(bench, erm, rehearse=rehearse)
    if "dimension" in causes:
        best = {
            head: chosen(
                {count: scores for count, (scores, _) in own.items()},
                {count: valid for count, (_, valid) in own.items()},
            )
            for head, own in by_count.items()
        }
        for head, scores in best.items():
            change = "number of components by validation accuracy"
            yield line("choice", change, label(head), scores, best["erm"])
    if "ours" in causes:
        yield line("ours", "T3A, scored rows seen", "ERM", bench.t3a(), usual[SOLVED.protocol])


def swept_lines(bench: Bench, erm: Scores, *, rehearse: bool) -> Iterator[list[str]]:
    """Rows of DARE by its ρ, and with a ρ that was chosen."""
    records = bench.swept()
    scores = {rho: scores_of(own, "dare") for rho, own in records.items()}
    valid = {rho: validation_of(own, "dare") for rho, own in records.items()}
    for rho in RHOS:
        yield line("scale", f"ρ = {rho:g}", "DARE", scores[rho], erm, valid[rho])
    rules = {"validation accuracy": valid}
    if rehearse:
        rules["training domains left out"] = bench.rehearsed()
    rules[f"the labels that score it{MARK}"] = scores
    for rule, numbers in rules.items():
        yield line("choice", f"ρ by {rule}", "DARE", chosen(scores, numbers), erm)


def read_features(folder: Path) -> Data:
    """Features for all held-out domains, or by held-out domain, or by that and trial."""
    files = sorted(folder.glob("*.npz"))
    if files:
        return {path.stem: read(path) for path in files}
    return read(folder) if (folder / MANIFEST).exists() else read_fine_tuned(folder)


def main() -> None:
    """Run the experiments, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("features", type=Path)
    parser.add_argument("--out", type=Path, default=Path("why"))
    parser.add_argument(
        "--only", default=",".join(CAUSES), help="causes to look into besides ρ, by commas"
    )
    parser.add_argument("--rehearse", action="store_true", help="also leave training domains out")
    parser.add_argument("--trials", type=int, help="splits, where one network serves all")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    causes = [cause for cause in args.only.split(",") if cause]
    for cause in causes:
        if cause not in CAUSES:
            parser.error(f"there is no cause {cause!r}; there are {', '.join(CAUSES)}")
    bench = Bench(read_features(args.features), args.out, args.trials, args.jobs)
    rows = list(lines(bench, causes, rehearse=args.rehearse))
    errors = bench.errors()
    domains = sorted({domain for _, domain in errors[RHOS[0]]})
    header = ["cause", "change", "head", *domains, "average", "over ERM", "validation"]
    print(table(header, rows))
    print(f"{MARK} a limit, not a rule\n")
    error_rows = []
    for rho, own in errors.items():
        means = by_domain(own)
        error_rows.append([f"{rho:g}", *(f"{value:.3f}" for value in [*means, np.mean(means)])])
    print(table(["ρ", *domains, "average"], error_rows))


if __name__ == "__main__":
    main()
