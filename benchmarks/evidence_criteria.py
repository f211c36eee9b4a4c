"""Can the strength of shrinkage be chosen from the training domains, or from unlabelled rows?

Each criterion sees the training domains (and, where it says so, the unlabelled rows of the
held-out one), and names one ρ; the table gives the held-out score at that ρ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import log_loss

from real_data import Fold, Rows
from skdare import DAREClassifier, DARERegressor, ERMClassifier, ERMRegressor
from skdare.whitening.moments import Moments
from skdare.whitening.roots.eigen import Spectrum
from tables import average, percent, table, unique, worst

RHOS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
MOST_DOMAINS = 12
KEPT_DOMAINS = 8


@dataclass(frozen=True, eq=False)
class Path:
    """Heads of one set of training rows along the strengths of shrinkage."""

    rows: Rows
    heads: dict[float, object]

    @classmethod
    def fit(cls, rows: Rows, task: str, **options) -> Path:
        """One head for each strength."""
        dare = DAREClassifier if task == "classification" else DARERegressor
        heads = {}
        for rho in RHOS:
            head = dare(mean_penalty=1.0, shrinkage=rho, adaptation=None, **options)
            heads[rho] = head.fit(rows.X, rows.y, domains=rows.domains)
        return cls(rows, heads)

    def scores(self, rows: Rows) -> np.ndarray:
        """Accuracy or R² at each strength."""
        return np.array([head.score(rows.X, rows.y) for head in self.heads.values()])

    def likelihoods(self, rows: Rows) -> np.ndarray:
        """Mean log-likelihood of the labels at each strength."""
        return np.array([-_log_loss(head, rows) for head in self.heads.values()])

    def confidences(self, X: np.ndarray) -> np.ndarray:
        """Largest class probability of each row, at each strength."""
        return np.array([head.predict_proba(X).max(axis=1) for head in self.heads.values()])

    def predictions(self, X: np.ndarray) -> np.ndarray:
        """Predictions for each row, at each strength."""
        return np.array([head.predict(X) for head in self.heads.values()])


def measure(folds: list[Fold]) -> list[dict]:
    """What each criterion picks, and what that gives on the domain held out."""
    kept = kept_domains(folds)
    records = []
    for fold in folds:
        if fold.held_out not in kept:
            continue
        train = fold.train[np.isin(fold.train.domains, kept)]
        aside = fold.aside[np.isin(fold.aside.domains, kept)]
        path = Path.fit(train, fold.task)
        inner = {}
        for domain in np.unique(train.domains):
            inner[domain] = Path.fit(train[train.domains != domain], fold.task)
        truth = path.scores(fold.test)
        choices = _labelled(train, aside, inner, fold.task)
        if fold.task == "classification":
            choices |= _label_free(fold, train, aside, path, inner)
        choices |= _of_moments(fold.test.X, path, inner)
        choices["oracle: the held-out labels"] = truth
        erm = ERMClassifier if fold.task == "classification" else ERMRegressor
        base = erm().fit(train.X, train.y, domains=train.domains)
        common = {"part": "criteria", "set": fold.name, "held_out": fold.held_out}
        score = base.score(fold.test.X, fold.test.y)
        records.append(common | {"criterion": "ERM", "rho": None, "score": score})
        for rho, score in zip(RHOS, truth, strict=True):
            records.append(common | {"criterion": f"fixed ρ = {rho}", "rho": rho, "score": score})
        for name, values in choices.items():
            best = int(np.argmax(values))
            record = common | {"criterion": name, "rho": RHOS[best], "score": truth[best]}
            records.append(record | {"values": [float(v) for v in values]})
    return records


def kept_domains(folds: list[Fold]) -> list[str]:
    """All domains, or the largest few where leaving out two at a time would take too long."""
    names = [fold.held_out for fold in folds]
    if len(names) <= MOST_DOMAINS:
        return names
    sizes = [len(fold.test.y) for fold in folds]
    return [names[i] for i in np.argsort(sizes, kind="stable")[-KEPT_DOMAINS:]]


def _labelled(train: Rows, aside: Rows, inner: dict, task: str) -> dict[str, np.ndarray]:
    """Leave one training domain out, and score its labels."""
    left_out = {e: train[train.domains == e] for e in inner}
    scores = np.array([inner[e].scores(rows) for e, rows in left_out.items()])
    scores = np.maximum(scores, -1.0)
    choices = {"LODO, mean score": scores.mean(axis=0), "LODO, worst score": scores.min(axis=0)}
    if task == "classification":
        logs = np.array([inner[e].likelihoods(rows) for e, rows in left_out.items()])
        choices["LODO, log loss"] = logs.mean(axis=0)
    if len(aside.y):
        fresh = {e: aside[aside.domains == e] for e in inner}
        scores = np.array([inner[e].scores(rows) for e, rows in fresh.items()])
        choices["LODO, mean score on rows not fine-tuned on"] = scores.mean(axis=0)
        logs = np.array([inner[e].likelihoods(rows) for e, rows in fresh.items()])
        choices["LODO, log loss on rows not fine-tuned on"] = logs.mean(axis=0)
    return choices


def _label_free(
    fold: Fold, train: Rows, aside: Rows, path: Path, inner: dict
) -> dict[str, np.ndarray]:
    """Confidence and agreement on the unlabelled rows of the held-out domain."""
    X = fold.test.X
    known = aside if len(aside.y) else train
    new, old = path.confidences(X), path.confidences(known.X)
    accuracy = path.scores(known)
    # Average thresholded confidence: the share of new rows above the confidence that the right
    # share of known rows is above.
    thresholds = [np.quantile(c, 1.0 - a) for c, a in zip(old, accuracy, strict=True)]
    votes = np.array([p.predictions(X) for p in inner.values()])
    pairs = [(i, j) for i in range(len(votes)) for j in range(i)]
    agreement = np.mean([(votes[i] == votes[j]).mean(axis=1) for i, j in pairs], axis=0)
    return {
        "new rows: mean confidence": new.mean(axis=1),
        "new rows: accuracy by difference of confidences": (
            accuracy - old.mean(axis=1) + new.mean(axis=1)
        ),
        "new rows: accuracy by thresholded confidence": np.array(
            [(c >= t).mean() for c, t in zip(new, thresholds, strict=True)]
        ),
        "new rows: agreement of heads without one domain": agreement,
    }


def _of_moments(X: np.ndarray, path: Path, inner: dict) -> dict[str, np.ndarray]:
    """How well the average of other domains' adjustments fits a domain's own."""
    moments = Moments.of(X)
    spectrum = Spectrum.of_matrix(moments.second_moment(centered=False), X.dtype)
    between, ahead, skill_between, skill_ahead = [], [], [], []
    for rho, head in path.heads.items():
        own = {e: a.dense() for e, a in head.adjustments_.items()}
        total = sum(own.values())
        errors = [_error((total - W) / (len(own) - 1), W) for W in own.values()]
        between.append(np.mean([e for e, _ in errors]))
        skill_between.append(np.mean([s for _, s in errors]))
        true = spectrum.inverse_root(rho, rho * spectrum.scale).dense()
        error, skill = _error(total / len(own), true)
        ahead.append(error)
        skill_ahead.append(skill)
    return {
        "LODO, adjustment error": -np.array(between),
        "LODO, adjustment error relative to no whitening": np.array(skill_between),
        "new rows: adjustment error": -np.array(ahead),
        "new rows: adjustment error relative to no whitening": np.array(skill_ahead),
    }


def _error(guess: np.ndarray, W: np.ndarray) -> tuple[float, float]:
    """‖Ŵ - W‖² / ‖W‖², and the share of ‖c I - W‖² that the guess explains (best c)."""
    error = float(np.sum((guess - W) ** 2))
    total = float(np.sum(W**2))
    flat = total - np.trace(W) ** 2 / len(W)
    # With ρ = 1 the guess is a multiple of I: it explains nothing of no departure from it.
    return error / total, 1.0 - error / flat if flat > 1e-9 * total else 0.0


def _log_loss(head, rows: Rows) -> float:
    known = np.isin(rows.y, head.classes_)
    return log_loss(rows.y[known], head.predict_proba(rows.X[known]), labels=head.classes_)


def report(records: list[dict]) -> str:
    """Markdown: for each set, what each criterion picks and what it gives."""
    parts = []
    for name in unique(records, "set"):
        chosen = [record for record in records if record["set"] == name]
        means, least = average(chosen, "criterion"), worst(chosen, "criterion")
        rows = []
        for criterion in unique(chosen, "criterion"):
            picks = [r["rho"] for r in chosen if r["criterion"] == criterion]
            shown = "" if picks[0] is None else " ".join(f"{rho:g}" for rho in picks)
            key = (criterion,)
            rows.append([criterion, shown, percent(means[key]), percent(least[key])])
        parts.append(f"**{name}**\n\n" + table(["criterion", "ρ picked", "mean", "worst"], rows))
    return "## Choosing ρ\n\n" + "\n".join(parts)
