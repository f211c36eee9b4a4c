"""Every head on the networks that `train.py` keeps, and what is done with its folder RUN.

    python heads.py watch RUN --trials 2     fit heads beside the training, as features come
    python heads.py fetch RUN OUT            records, and the next features not yet fetched
    python heads.py assemble RUN RESULTS     records as docs/results/pacs has them

RUN/heads/TRIAL-HELD_OUT-PART has records.jsonl, in the form of the bench, or changes.jsonl, single
changes of a head. A part that is done is not done again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer

from skdare import DAREClassifier
from skdare.bench.heads import HEADS, Training
from skdare.bench.record import RECORDS, Record, RecordFile
from skdare.data import DomainData
from skdare.features.split import reserve
from skdare.files import whole_file
from skdare.paper.diagnostics import adjustment_error
from skdare.paper.experiment import Experiment, Place, network_records
from skdare.paper.fold import FeatureTable, Fold
from skdare.paper.plan import ablation_trials, study_trials
from skdare.paper.protocol import Settings, fit_head

DOMAINS = ("art_painting", "cartoon", "photo", "sketch")
SCALES = (0.125, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0)
IN_PAPER = {"shrinkage": 0.1, "shrinkage_target": "identity", "centered": False}
PAPER = Settings()
CHANGES = "changes.jsonl"


class Features:
    """Features of one network, and what heads on them come to."""

    def __init__(self, run: Path, trial: int, held_out: str, out: Path) -> None:
        self.run, self.trial, self.held_out, self.out = run, trial, held_out, out
        with np.load(run / "rows.npz") as rows:
            self.y, self.domains = rows["y"], rows["domains"]
        self.aside = reserve(self.domains, trial)

    def read(self, name: str) -> np.ndarray:
        """Features from their codes of 8 bits."""
        parts = [np.load(self.run / "features" / f"{name}-{part}.npz") for part in "ab"]
        return np.concatenate([p["codes"] for p in parts]).astype(np.float32) * parts[0]["scale"]

    @cached_property
    def X(self) -> np.ndarray:
        return self.read(f"{self.trial}-{self.held_out}")

    def table(self, X: np.ndarray, rows: Any = slice(None)) -> FeatureTable:
        """Features of these rows, by default of all."""
        data = DomainData.of(X, self.y[rows], domains=self.domains[rows], name="pacs")
        return FeatureTable(data, self.aside[rows], data.fingerprint())

    def fold(self, X: np.ndarray | None = None) -> Fold:
        return Fold.of(self.table(self.X if X is None else X), self.held_out, self.trial)

    def open(self, place: Place | None) -> FeatureTable:
        """As an experiment asks for them; None: before fine-tuning."""
        return self.table(self.read("pretrained") if place is None else self.X)

    def measure(self, *studies: str) -> None:
        """The paper's tables, or ablations, in the paper's protocol."""
        trials = list(study_trials(self.held_out, self.trial)) if "main" in studies else []
        others = [domain for domain in DOMAINS if domain != self.held_out]
        for name in studies:
            if name != "main":
                size = self.X.shape[1]
                trials += ablation_trials(name, self.held_out, self.trial, others, size)
        Experiment("pacs", self.open, PAPER).run(trials, RecordFile(self.out))

    def note(self, change: str, head: str, **values: Any) -> None:
        """A line on one change."""
        line = {"trial": self.trial, "held_out": self.held_out, "change": change, "head": head}
        with (self.out / CHANGES).open("a") as file:
            file.write(json.dumps(line | values) + "\n")

    def note_model(self, change: str, head: str, fold: Fold, model: Any, **values: Any) -> None:
        self.note(change, head, **right(fold, model), **values)

    def stopped(self, change: str, head: str, fold: Fold, *, rule: Settings = PAPER,
                **values: Any) -> None:  # fmt: skip
        """A head in the paper's protocol."""
        try:
            fit = fit_head(fold, head, {}, rule)
        except ValueError as error:
            self.note(change, head, failed=str(error), **values)
            return
        notes = {"valid": fit.valid, "best_epoch": fit.best_epoch, "epochs": fit.epochs}
        self.note_model(change, head, fold, fit.model, protocol="paper", **notes, **values)

    def error(self, change: str, fold: Fold, **values: Any) -> None:
        """The error of Table 2."""
        error = adjustment_error(fold, "averaged adjustment", PAPER)
        self.note(change, "averaged adjustment", error=error, **values)

    def solved(self) -> None:
        """Our heads with the ridge of ERM, T3A, and ERM with domains centred or standardised."""
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        from rivals import T3A

        fold = self.fold()
        training = training_of(fold, chooses=True)
        new = fold.rows(self.held_out).X
        file = RecordFile(self.out)
        with file.open({"data": "pacs"}):
            for name in ("erm", "dare", "dare-adapted", "dare-cv", "dare-cv-adapted"):
                began = time.monotonic()
                head = HEADS[name]
                fitted = training.fit(head, new)
                scores = right(fold, fitted.model)
                values = {"protocol": "default", "features": "given", "x": None, "l2": fitted.l2}
                values |= {"task": "classification", "chosen": fitted.strategy, **scores}
                key = hashlib.sha256(f"{name} {self.table(self.X).fingerprint}".encode())
                uses = "unlabelled rows" if head.adapts else "nothing"
                took = round(time.monotonic() - began, 4)
                score = scores["score_reserved"]
                file.append(Record(
                    key.hexdigest()[:20], "main", "pacs", name, self.held_out, self.trial, uses,
                    "accuracy", score, took, "", values))  # fmt: skip
        t3a = T3A()
        t3a.model_, t3a.prepare_ = training.models["erm"], FunctionTransformer()
        t3a.classes_ = t3a.model_.classes_
        self.note_model("T3A", "t3a", fold, t3a.adapt(fold.test.X), protocol="default")
        for change, scales in (("centred", False), ("standardised", True)):
            own = self.fold(self.by_domain(scales=scales))
            self.stopped(f"{change} by domain", "erm", own)
            model = training_of(own).fit(HEADS["erm"], own.test.X).model
            self.note_model(f"{change} by domain", "erm", own, model, protocol="default")

    def by_domain(self, *, scales: bool) -> np.ndarray:
        """Features without each domain's own mean, and perhaps divided by its own spreads."""
        Z = self.X.copy()
        for name in DOMAINS:
            rows = self.domains == name
            own = self.X[rows & ~self.aside]
            spread = own.std(axis=0) if scales else np.ones(Z.shape[1], np.float32)
            Z[rows] = (Z[rows] - own.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        return Z

    def scale(self) -> None:
        """Features times a number."""
        for x in SCALES:
            fold = self.fold(self.X * np.float32(x))
            self.error("scale", fold, x=x)
            for head in ("erm", "dare"):
                self.stopped("scale", head, fold, x=x)

    def transform(self) -> None:
        """Training domains through the training transform, once and as often as it was read."""
        name = f"augmented-{self.trial}-{self.held_out}-*.npy"
        passes = [np.load(p).astype(np.float32) for p in sorted(self.run.glob(f"features/{name}"))]
        training = self.domains != self.held_out
        X = self.X.copy()
        X[training] = passes[0]
        times = len(passes)
        # Every pass is more rows of the same domains, with the same split.
        rows = np.concatenate([np.flatnonzero(~training), *[np.flatnonzero(training)] * times])
        table = self.table(np.concatenate([self.X[~training], *passes]), rows)
        folds = {"once": self.fold(X), f"{times} times": Fold.of(table, self.held_out, self.trial)}
        for often, fold in folds.items():
            self.error(f"training transform, {often}", fold)
            for head in ("erm", "dare"):
                self.stopped(f"training transform, {often}", head, fold)
        mixed = replace(fold, valid=self.fold().valid)
        self.stopped(
            f"training transform, {often}, validated with the test transform", "dare", mixed
        )

    def stopping(self) -> None:
        """Another rule to stop by, and the paper's whitening solved to tolerance."""
        fold = self.fold()
        patience, most = PAPER.inner * PAPER.patience, PAPER.inner * PAPER.max_epochs
        rule = replace(PAPER, inner=1, patience=patience, max_epochs=most)
        for head in ("erm", "dare"):
            self.stopped("validated at every iteration", head, fold, rule=rule)
        l2 = training_of(fold).ridge
        new = fold.rows(self.held_out).X
        train = fold.train
        for change, options in (
            ("solved", IN_PAPER),
            ("solved, inverse root of the mean second moment", IN_PAPER | {"guess": "covariance"}),
            ("adapted by a mixture", {"adaptation": "mixture"}),
            ("adapted by mean and covariance", {"adaptation": "centered"}),
        ):
            model = DAREClassifier(l2=l2, **options).fit(train.X, train.y, domains=train.domains)
            adapts = change.startswith("adapted")
            model = model.adapt(new) if adapts else model
            name = "dare-adapted" if adapts else "dare"
            self.note_model(change, name, fold, model, protocol="default")


PARTS: dict[str, Callable[[Features], None]] = {
    "main": lambda features: features.measure("main"),
    "lambda": lambda features: features.measure("lambda"),
    "ablations": lambda f: f.measure("whitening", "mean", "constraint", "shrinkage"),
    "solved": Features.solved,
    "scale": Features.scale,
    "transform": Features.transform,
    "stopping": Features.stopping,
}


def right(fold: Fold, model: Any) -> dict[str, float]:
    """Accuracy on both parts of the held-out domain."""
    correct = model.predict(fold.test.X) == fold.test.y
    parts = {"reserved": correct[fold.reserved], "rest": correct[~fold.reserved]}
    return {f"score_{name}": float(np.mean(part)) for name, part in parts.items()}


def training_of(fold: Fold, *, chooses: bool = False) -> Training:
    """The bench's fits to the rows that train, as they come."""
    return Training(fold.train, "classification", "accuracy", chooses, FunctionTransformer())


def fit_part(run: Path, trial: int, held_out: str, part: str) -> None:
    """Do one part; what a process that was killed has left of changes is done again."""
    out = run / "heads" / f"{trial}-{held_out}-{part}"
    out.mkdir(parents=True, exist_ok=True)
    if not (out / "done").exists():
        (out / CHANGES).unlink(missing_ok=True)
        PARTS[part](Features(run, trial, held_out, out))
        (out / "done").touch()


def watch(run: Path, trials: Sequence[int], at_once: int, threads: int) -> None:
    """Start each part, in a process of its own, once its features are there."""
    waiting = [(t, d, part) for t in trials for part in PARTS for d in DOMAINS]
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(threads))
    running: dict[subprocess.Popen[bytes], str] = {}
    (run / "heads").mkdir(parents=True, exist_ok=True)
    while waiting or running:
        for process in [process for process in running if process.poll() is not None]:
            print(running.pop(process), "failed" if process.returncode else "done", flush=True)
        for key in list(waiting):
            trial, held_out, part = key
            needed = (f"{trial}-{held_out}", "pretrained")
            ready = all((run / f"features/{name}-b.npz").exists() for name in needed)
            if ready and len(running) < at_once:
                waiting.remove(key)
                name = f"{trial}-{held_out}-{part}"
                command = [sys.executable, __file__, "part", str(run), *map(str, key)]
                with (run / "heads" / f"{name}.txt").open("w") as log:
                    process = subprocess.Popen(
                        ["nice", "-n", "5", *command], env=environment, stdout=log, stderr=log
                    )
                running[process] = name
        time.sleep(1)


def fetch(run: Path, out: Path, pieces: int) -> None:
    """One archive of all records, and the next features, each below 16 MB, that were not sent."""
    with tarfile.open(out / "records.tgz", "w:gz") as archive:
        for name in ("records", "heads", "log.txt", "rows.npz"):
            if (run / name).exists():
                archive.add(run / name, name)
    sent = run / "sent.txt"
    sent.touch()
    known = sent.read_text().split()
    new = [path for path in sorted(run.glob("features/*.npz")) if path.name not in known]
    for path in new[:pieces]:
        shutil.copy(path, out)
        with sent.open("a") as file:
            file.write(path.name + "\n")
    print(f"{len(new[:pieces])} pieces sent, {len(new[pieces:])} wait; ", end="")
    print(f"{len(list(run.glob('heads/*/done')))} parts of heads are done", flush=True)


def assemble(run: Path, results: Path) -> None:
    """Merge records into a folder of results, each in the place of an earlier one of its kind."""
    from skdare.features.training.folder import TrainingFolder, best_draws, ceiling_scores

    results.mkdir(parents=True, exist_ok=True)
    folder = TrainingFolder(run / "records")
    networks = [json.loads(path.read_text()) for path in folder.folder.glob("*/record.json")]
    merge(results / "networks.jsonl", networks, ("trial", "held_out", "draw"))
    records = folder.records()
    chosen = [record for record in best_draws(records) if record.held_out is not None]
    scores = {(str(r.held_out), r.trial): r.accuracy["reserved"] for r in chosen}
    heads = [
        json.loads(r.to_line()) for r in network_records("pacs", scores, ceiling_scores(records))
    ]
    changes: list[dict[str, Any]] = []
    for path in sorted(run.glob("heads/*/done")):
        for name, lines in ((RECORDS, heads), (CHANGES, changes)):
            file = path.with_name(name)
            lines += map(json.loads, file.read_text().splitlines() if file.exists() else [])
    for trial in sorted({line["trial"] for line in heads}):
        for name, lines in (("heads", heads), ("changes", changes)):
            new = [line for line in lines if line["trial"] == trial]
            columns = ("study", "change", "protocol", "features", "head", "held_out", "x")
            if new:
                merge(results / f"{name}-{trial}.jsonl", new, columns)


def merge(path: Path, new: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """Lines of a file, those that agree in all columns only once: the last of them."""
    old = map(json.loads, path.read_text().splitlines() if path.exists() else [])
    lines = {json.dumps([line.get(name) for name in columns]): line for line in [*old, *new]}
    kept = sorted(lines.values(), key=lambda line: str([line.get(name) for name in columns]))
    with whole_file(path) as file:
        file.write("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept).encode())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    begin = commands.add_parser("watch")
    begin.add_argument("run", type=Path)
    begin.add_argument("--trials", nargs="+", type=int, default=[2])
    begin.add_argument("--at-once", type=int, default=5)
    begin.add_argument("--threads", type=int, default=2)
    bring = commands.add_parser("fetch")
    bring.add_argument("run", type=Path)
    bring.add_argument("out", type=Path)
    bring.add_argument("--pieces", type=int, default=6)
    put = commands.add_parser("assemble")
    put.add_argument("run", type=Path)
    put.add_argument("results", type=Path)
    one = commands.add_parser("part")
    one.add_argument("run", type=Path)
    one.add_argument("trial", type=int)
    one.add_argument("held_out", choices=DOMAINS)
    one.add_argument("part", choices=PARTS)
    options = vars(parser.parse_args(arguments))
    does = {"watch": watch, "fetch": fetch, "assemble": assemble, "part": fit_part}
    does[options.pop("command")](**options)


if __name__ == "__main__":
    main()
