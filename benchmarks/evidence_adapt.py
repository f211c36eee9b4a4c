"""Does adapting to unlabelled rows help, in which form, with how strong a prior?"""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np

from real_data import Fold
from skdare import DAREClassifier, DARERegressor, ERMClassifier, ERMRegressor, LabelShiftWarning
from tables import average, floored, percent, table, unique, worst

SHRINKAGES = (0.5, 0.9)
FORMS = ("raw", "centered")
ROWS = (5, 20, 100, None)  # None: every row of the held-out domain
PRIORS = ("0", "10", "d/4", "d", "4d")
SEED = 0


def measure(folds: list[Fold]) -> list[dict]:
    """Held-out scores of adapted heads, by form, shrinkage, rows given and prior."""
    records = []
    for fold in folds:
        erm = ERMClassifier if fold.task == "classification" else ERMRegressor
        base = erm().fit(fold.train.X, fold.train.y, domains=fold.train.domains)
        for shrinkage in SHRINKAGES:
            for form in FORMS:
                records += [
                    r | {"erm": base.score(fold.test.X, fold.test.y)}
                    for r in _measure_form(fold, shrinkage, form)
                ]
    return records


def _measure_form(fold: Fold, shrinkage: float, form: str) -> list[dict]:
    dare = DAREClassifier if fold.task == "classification" else DARERegressor
    X, y = fold.test.X, fold.test.y
    head = dare(shrinkage=shrinkage, adaptation=form)
    head.fit(fold.train.X, fold.train.y, domains=fold.train.domains)
    common = {"part": "adapt", "set": fold.name, "held_out": fold.held_out, "form": form}
    common |= {"shrinkage": shrinkage, "unadapted": head.score(X, y), **_shares(head, fold)}
    order = np.random.default_rng(SEED).permutation(len(y))
    records = []
    for m in ROWS:
        rows = X if m is None else X[order[:m]]
        for prior in PRIORS:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", LabelShiftWarning)
                adapted = head.adapt(rows, prior_rows=_prior_rows(prior, X.shape[1]))
            warned = any(issubclass(w.category, LabelShiftWarning) for w in caught)
            record = {"rows": "all" if m is None else m, "prior": prior, "warned": warned}
            records.append(common | record | {"score": adapted.score(X, y)})
    return records


def _prior_rows(prior: str, d: int) -> float:
    return {"d/4": d / 4, "d": d, "4d": 4 * d}.get(prior) or float(prior)


def _shares(head, fold: Fold) -> dict[str, float]:
    """Total variation distances of class shares from the training ones: predicted and true."""
    if fold.task == "regression":
        return {}
    shares = {}
    for key, labels in (("predicted", head.predict(fold.test.X)), ("true", fold.test.y)):
        new = np.array([np.mean(labels == c) for c in head.classes_])
        shares[f"{key}_shift"] = float(
            0.5 * np.abs(new - head._domain_fit.class_shares.shares).sum()
        )
    return shares | {"known_shift": head._domain_fit.class_shares.reach}


def report(records: list[dict]) -> str:
    """Markdown: forms with all rows, priors by number of rows, and what the warning is worth."""
    return "\n".join((_forms(records), _priors(records), _warning(records)))


def _forms(records: list[dict]) -> str:
    """Both forms from every row of the new domain, beside ERM and the head before adapt."""
    rows = []
    chosen = [r for r in records if r["rows"] == "all" and r["prior"] == "0"]
    for name in unique(chosen, "set"):
        for shrinkage in SHRINKAGES:
            some = [r for r in chosen if (r["set"], r["shrinkage"]) == (name, shrinkage)]
            cells = [_mean_and_worst(some, "erm"), _mean_and_worst(some, "unadapted")]
            cells += [_mean_and_worst([r for r in some if r["form"] == f], "score") for f in FORMS]
            rows.append([f"{name}, ρ {shrinkage}", *cells])
    header = ["set", "ERM", "unadapted", *(f"adapt {form}" for form in FORMS)]
    return "## Adapting to all unlabelled rows: mean / worst\n\n" + table(header, rows)


def _priors(records: list[dict]) -> str:
    """Gain over the unadapted head, by how many rows are given and how strong the prior is."""
    rows = []
    gains = [r | {"gain": _gain(r)} for r in records if r["shrinkage"] == SHRINKAGES[0]]
    means = average(gains, "set", "form", "rows", "prior", value="gain")
    for name in unique(records, "set"):
        for form in FORMS:
            for m in ("all" if m is None else m for m in ROWS):
                cells = [f"{100 * means[name, form, m, prior]:+.1f}" for prior in PRIORS]
                rows.append([f"{name}, {form}, {m} rows", *cells])
    title = f"## Gain of adapt over the same head unadapted, ρ {SHRINKAGES[0]}, by `prior_rows`"
    return f"{title}\n\n" + table(["set, form, rows", *PRIORS], rows)


def _warning(records: list[dict]) -> str:
    """How often the label-shift warning comes with a loss of more than a point."""
    counts: Counter = Counter()
    chosen = [r for r in records if r["rows"] == "all" and r["prior"] == "0" and "true_shift" in r]
    chosen = [r for r in chosen if r["shrinkage"] == SHRINKAGES[0]]
    for r in chosen:
        counts[r["set"], r["form"], r["warned"], _gain(r) < -0.01] += 1
    rows = []
    for name in unique(chosen, "set"):
        for form in FORMS:
            cells = [
                str(counts[name, form, w, hurt]) for w in (True, False) for hurt in (True, False)
            ]
            rows.append([f"{name}, {form}", *cells])
    header = ["set, form", "warned, hurt", "warned, fine", "silent, hurt", "silent, fine"]
    return "## The label-shift warning: held-out domains\n\n" + table(header, rows)


def _gain(record: dict) -> float:
    return floored(record["score"]) - floored(record["unadapted"])


def _mean_and_worst(records: list[dict], value: str) -> str:
    mean, least = average(records, "set", value=value), worst(records, "set", value=value)
    return " / ".join(percent(next(iter(scores.values()))) for scores in (mean, least))
